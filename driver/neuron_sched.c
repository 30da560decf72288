// SPDX-License-Identifier: GPL-2.0
/*
 * The only file that calls drm_sched: one scheduler for each hardware queue, one
 * entity for each context in front of it.
 */
#include <linux/slab.h>
#include <linux/xarray.h>

#include <drm/drm_print.h>

#include "neuron_ctx.h"
#include "neuron_device.h"

static const char *neuron_fence_name(struct dma_fence *fence)
{
	return "neuron";
}

static const struct dma_fence_ops neuron_fence_ops = {
	.get_driver_name = neuron_fence_name,
	.get_timeline_name = neuron_fence_name,
};

static struct neuron_fence *neuron_fence_alloc(void)
{
	struct neuron_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	BUILD_BUG_ON(offsetof(struct neuron_fence, base));
	if (!fence)
		return NULL;
	spin_lock_init(&fence->lock);
	/* Nobody orders these: the scheduler's fences are what users see. */
	dma_fence_init(&fence->base, &neuron_fence_ops, &fence->lock,
		       dma_fence_context_alloc(1), 1);
	return fence;
}

/**
 * neuron_fence_signal() - a job left the hardware
 * @fence: its fence; the caller's reference is dropped
 * @error: 0 or what became of it
 *
 * Context: any, also hard interrupts.
 */
void neuron_fence_signal(struct neuron_fence *fence, int error)
{
	if (error)
		dma_fence_set_error(&fence->base, error);
	dma_fence_signal(&fence->base);
	dma_fence_put(&fence->base);
}

static struct neuron_job *to_job(struct drm_sched_job *base)
{
	return container_of(base, struct neuron_job, base);
}

static struct dma_fence *neuron_sched_run(struct drm_sched_job *base)
{
	struct neuron_job *job = to_job(base);
	int ret;

	ret = READ_ONCE(job->ctx->dead) ? -ECANCELED : job->ops->run(job);
	if (ret)
		return ERR_PTR(ret);
	return dma_fence_get(&job->fence->base);
}

static void neuron_sched_free(struct drm_sched_job *base)
{
	neuron_job_free(to_job(base));
}

/*
 * drm_sched_stop() and drm_sched_start() are of no use here: between them they
 * forget the hardware's fences and end every job with -ECANCELED. Instead the
 * fences say what became of the jobs, and the one that the scheduler took from its
 * list goes back to it: whether it ended or not, it is found there.
 */
static void neuron_sched_reinsert(struct drm_sched_job *base)
{
	struct drm_gpu_scheduler *sched = base->sched;

	spin_lock(&sched->job_list_lock);
	list_add(&base->list, &sched->pending_list);
	spin_unlock(&sched->job_list_lock);
}

static enum drm_gpu_sched_stat neuron_sched_timedout(struct drm_sched_job *base)
{
	struct neuron_sched *sched = container_of(base->sched, struct neuron_sched, base);
	struct neuron_job *job = to_job(base);

	if (!sched->ops->hung(sched->owner, job)) {
		/* Nothing is given to the hardware while it is being reset. */
		drm_sched_wqueue_stop(&sched->base);
		sched->ops->recover(sched->owner, job);
	}
	neuron_sched_reinsert(base);
	/* Also looks for jobs that have ended meanwhile. */
	drm_sched_wqueue_start(&sched->base);
#ifdef HAVE_SCHED_NO_HANG
	return DRM_GPU_SCHED_STAT_RESET;
#else
	return DRM_GPU_SCHED_STAT_NOMINAL;
#endif
}

static const struct drm_sched_backend_ops neuron_sched_backend = {
	.run_job = neuron_sched_run,
	.free_job = neuron_sched_free,
	.timedout_job = neuron_sched_timedout,
};

/**
 * neuron_sched_init() - make a feeder
 * @sched: zeroed
 * @ndev: chip
 * @ops: the hardware queue
 * @owner: first argument of @ops
 * @name: static string
 * @credits: what the queue takes at once
 * @priorities: entities of several priorities will share it
 *
 * Return: 0 or -ENOMEM.
 */
int neuron_sched_init(struct neuron_sched *sched, struct neuron_device *ndev,
		      const struct neuron_sched_ops *ops, void *owner, const char *name,
		      u32 credits, bool priorities)
{
	long timeout = msecs_to_jiffies(neuron_timeout_ms);
	u32 rqs = priorities ? DRM_SCHED_PRIORITY_COUNT : 1;

	sched->ops = ops;
	sched->owner = owner;
#ifdef HAVE_SCHED_INIT_ARGS
	{
		const struct drm_sched_init_args args = {
			.ops = &neuron_sched_backend,
			.submit_wq = ndev->submit_wq,
			.num_rqs = rqs,
			.credit_limit = credits,
			.timeout = timeout,
			.timeout_wq = ndev->reset_wq,
			.name = name,
			.dev = ndev->drm.dev,
		};

		return drm_sched_init(&sched->base, &args);
	}
#else
	return drm_sched_init(&sched->base, &neuron_sched_backend, ndev->submit_wq, rqs,
			      credits, 0, timeout, ndev->reset_wq, NULL, name,
			      ndev->drm.dev);
#endif
}

void neuron_sched_fini(struct neuron_sched *sched)
{
	drm_sched_fini(&sched->base);
}

/**
 * neuron_entity_init() - a context's queue
 * @entity: zeroed
 * @sched: where its jobs go
 * @priority: 0 kernel, else DRM_NEURON_PRIORITY_* + 1
 *
 * Return: 0 or an error.
 */
int neuron_entity_init(struct neuron_entity *entity, struct neuron_sched *sched,
		       unsigned int priority)
{
	static const enum drm_sched_priority map[] = {
		DRM_SCHED_PRIORITY_KERNEL,
		DRM_SCHED_PRIORITY_LOW,
		DRM_SCHED_PRIORITY_NORMAL,
		DRM_SCHED_PRIORITY_HIGH,
	};
	struct drm_gpu_scheduler *base = &sched->base;
	enum drm_sched_priority prio = base->num_rqs > 1 ? map[priority] : 0;
	int ret;

	ret = drm_sched_entity_init(&entity->base, prio, &base, 1, NULL);
	entity->ready = !ret;
	return ret;
}

/* Jobs that wait for somebody else's fence are ended by this with -ESRCH. */
void neuron_entity_fini(struct neuron_entity *entity)
{
	if (!entity->ready)
		return;
	drm_sched_entity_fini(&entity->base);
	entity->ready = false;
}

/**
 * neuron_job_init() - make a job that can be armed
 * @job: zeroed
 * @ops: kind
 * @ctx: context
 * @entity: the context's queue
 * @credits: what it takes of the hardware queue
 * @file: who submits it; NULL: the kernel
 *
 * On success neuron_job_free() undoes it, until neuron_job_push().
 *
 * Return: 0 or -ENOMEM.
 */
int neuron_job_init(struct neuron_job *job, const struct neuron_job_ops *ops,
		    struct neuron_ctx *ctx, struct neuron_entity *entity, u32 credits,
		    struct drm_file *file)
{
	int ret;

	job->fence = neuron_fence_alloc();
	if (!job->fence)
		return -ENOMEM;
#ifdef HAVE_SCHED_JOB_CLIENT_ID
	ret = drm_sched_job_init(&job->base, &entity->base, credits, file,
				 file ? file->client_id : 0);
#else
	ret = drm_sched_job_init(&job->base, &entity->base, credits, file);
#endif
	if (ret) {
		dma_fence_put(&job->fence->base);
		job->fence = NULL;
		return ret;
	}
	job->ready = true;
	job->ops = ops;
	job->ctx = neuron_ctx_get(ctx);
	atomic_inc(&ctx->jobs);
	return 0;
}

/**
 * neuron_job_free() - undo neuron_job_init() and free the job
 * @job: from a kind's allocation
 */
void neuron_job_free(struct neuron_job *job)
{
	struct neuron_ctx *ctx = job->ctx;

	if (job->ready) {
		drm_sched_job_cleanup(&job->base);
		dma_fence_put(&job->fence->base);
	}
	job->ops->free(job);
	if (ctx) {
		atomic_dec(&ctx->jobs);
		wake_up_all(&ctx->idle);
		neuron_ctx_put(ctx);
	}
}

/* Takes over the reference to @fence, also when it fails. */
int neuron_job_wait_for(struct neuron_job *job, struct dma_fence *fence)
{
	return drm_sched_job_add_dependency(&job->base, fence);
}

/*
 * A job may wait for another of the same SUBMIT, whose fence exists only once it
 * is armed, when nothing may fail any more: this keeps a place for it.
 */
int neuron_job_wait_later(struct neuron_job *job, u32 *index)
{
	struct dma_fence *stub = dma_fence_get_stub();
	int ret;

	ret = xa_alloc(&job->base.dependencies, index, stub, xa_limit_32b, GFP_KERNEL);
	if (ret)
		dma_fence_put(stub);
	return ret;
}

void neuron_job_wait_set(struct neuron_job *job, u32 index, struct dma_fence *fence)
{
	struct dma_fence *stub;

	stub = xa_store(&job->base.dependencies, index, dma_fence_get(fence), 0);
	dma_fence_put(stub);
}

/**
 * neuron_job_arm() - the point of no return
 * @job: job; must be pushed next, under the same lock as others of its context
 *
 * Return: the fence that users see, no reference taken.
 */
struct dma_fence *neuron_job_arm(struct neuron_job *job)
{
	drm_sched_job_arm(&job->base);
	return &job->base.s_fence->finished;
}

void neuron_job_push(struct neuron_job *job)
{
	drm_sched_entity_push_job(&job->base);
}
