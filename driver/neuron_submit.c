// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT: all jobs or none. Everything that may fail comes first; then the jobs
 * are armed, their fences published, and pushed.
 */
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_exec.h>
#include <drm/drm_print.h>
#include <drm/drm_syncobj.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_exec.h"
#include "neuron_vm.h"

/* Pieces of one copy that are pinned at once. */
#define NEURON_STREAM_PIECES	32

/* A syncobj that a job signals. */
struct neuron_signal {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain;	/* timeline */
	u32 handle;
	u64 point;
};

/* A wait for an earlier job of the same SUBMIT. */
struct neuron_later {
	u32 job;
	u32 index;
};

/**
 * struct neuron_ujob - a job of a SUBMIT on its way to the schedulers
 * @args: copied from user space
 * @copy: COPY and FILL
 * @pieces: struct neuron_job, in order; the first waits, the last signals
 * @syncs: copied from user space
 * @signals: to signal
 * @nsignals: number of @signals
 * @laters: waits for jobs of the same SUBMIT
 * @nlaters: number of @laters
 * @waits: has any
 * @done: fence of the last piece, once armed
 */
struct neuron_ujob {
	const struct drm_neuron_job *args;
	struct neuron_copy copy;
	struct list_head pieces;
	struct drm_neuron_sync_op *syncs;
	struct neuron_signal *signals;
	u32 nsignals;
	struct neuron_later *laters;
	u32 nlaters;
	bool waits;
	struct dma_fence *done;
};

struct neuron_submit {
	struct neuron_ctx *ctx;
	struct drm_file *file;
	struct drm_neuron_job *args;
	struct neuron_ujob *jobs;
	u32 count;
};

static struct neuron_exec_job *to_exec(struct neuron_job *job)
{
	return container_of(job, struct neuron_exec_job, job);
}

static int neuron_exec_run(struct neuron_job *job)
{
	int ret, idx;

	if (!drm_dev_enter(&job->ctx->ndev->drm, &idx))
		return -ENODEV;
	ret = neuron_slot_post(job->ctx->slot, &to_exec(job)->desc, job->fence);
	drm_dev_exit(idx);
	return ret;
}

static void neuron_exec_free(struct neuron_job *job)
{
	kfree(to_exec(job));
}

static const struct neuron_job_ops neuron_exec_ops = {
	.run = neuron_exec_run,
	.free = neuron_exec_free,
};

static int neuron_exec_check(struct neuron_ctx *ctx, const struct drm_neuron_exec *args)
{
	if (!neuron_has_exec(ctx->ndev))
		return -EOPNOTSUPP;
	if (!ctx->slot || args->pad || args->flags & ~NEURON_JOB_FLAGS ||
	    args->core_mask & ~ctx->core_mask || args->arg_count > NEURON_MAX_ARGS)
		return -EINVAL;
	if (!IS_ALIGNED(args->program_va, NEURON_PROGRAM_ALIGN) ||
	    !IS_ALIGNED(args->args_va, 8) || !IS_ALIGNED(args->fence_va, 8))
		return -EINVAL;
	return 0;
}

/**
 * neuron_exec_create() - make an EXEC job
 * @ctx: context with cores
 * @file: who submits it
 * @args: copied from user space
 *
 * Return: a job for neuron_job_free() or the scheduler, or an error.
 */
struct neuron_job *neuron_exec_create(struct neuron_ctx *ctx, struct drm_file *file,
				      const struct drm_neuron_exec *args)
{
	struct neuron_exec_job *exec;
	int ret = neuron_exec_check(ctx, args);

	if (ret)
		return ERR_PTR(ret);
	exec = kzalloc(sizeof(*exec), GFP_KERNEL);
	if (!exec)
		return ERR_PTR(-ENOMEM);
	exec->desc = (struct neuron_job_desc) {
		.flags = cpu_to_le32(args->flags),
		.core_mask = cpu_to_le32(args->core_mask ?: ctx->core_mask),
		.program_va = cpu_to_le64(args->program_va),
		.args_va = cpu_to_le64(args->args_va),
		.arg_count = cpu_to_le32(args->arg_count),
		.result_va = cpu_to_le64(args->result_va),
		.fence_va = cpu_to_le64(args->fence_va),
		.fence_value = cpu_to_le64(args->fence_value),
		.trace_va = cpu_to_le64(args->trace_va),
		.trace_size = cpu_to_le64(args->trace_size),
		.seed = cpu_to_le64(args->seed),
	};
	ret = neuron_job_init(&exec->job, &neuron_exec_ops, ctx, &ctx->exec, 1, file);
	if (!ret)
		return &exec->job;
	kfree(exec);
	return ERR_PTR(ret);
}

static struct neuron_job *neuron_ujob_first(struct neuron_ujob *job)
{
	return list_first_entry(&job->pieces, struct neuron_job, node);
}

static int neuron_ujob_add(struct neuron_ujob *job, struct neuron_job *piece)
{
	if (IS_ERR(piece))
		return PTR_ERR(piece);
	list_add_tail(&piece->node, &job->pieces);
	return 0;
}

/* The job before @before that signals what @op waits for, or -1. */
static int neuron_submit_find_signal(struct neuron_submit *s, u32 before,
				     const struct drm_neuron_sync_op *op)
{
	bool timeline = op->flags & DRM_NEURON_SYNC_TIMELINE;
	int found = -1;
	u32 i, k;

	for (i = 0; i < before; i++) {
		for (k = 0; k < s->jobs[i].nsignals; k++) {
			const struct neuron_signal *sig = &s->jobs[i].signals[k];

			if (sig->handle != op->handle || timeline != !!sig->chain)
				continue;
			/* The first one that reaches a point, the last of a binary one. */
			if (timeline && sig->point >= op->point)
				return i;
			if (!timeline)
				found = i;
		}
	}
	return found;
}

static int neuron_ujob_wait(struct neuron_submit *s, u32 i, const struct drm_neuron_sync_op *op)
{
	struct neuron_ujob *job = &s->jobs[i];
	struct neuron_job *piece = neuron_ujob_first(job);
	struct dma_fence *fence;
	int from = -1, ret = -EINVAL;

	job->waits = true;
	if (!(op->flags & DRM_NEURON_SYNC_TIMELINE))
		from = neuron_submit_find_signal(s, i, op);
	if (from < 0) {
		ret = drm_syncobj_find_fence(s->file, op->handle, op->point, 0, &fence);
		if (!ret)
			return neuron_job_wait_for(piece, fence);
		if (ret == -ENOENT || !(op->flags & DRM_NEURON_SYNC_TIMELINE))
			return ret;
		from = neuron_submit_find_signal(s, i, op);
	}
	if (from < 0)
		return ret;
	job->laters[job->nlaters].job = from;
	ret = neuron_job_wait_later(piece, &job->laters[job->nlaters].index);
	if (!ret)
		job->nlaters++;
	return ret;
}

static int neuron_ujob_signal(struct neuron_submit *s, struct neuron_ujob *job,
			      const struct drm_neuron_sync_op *op)
{
	struct neuron_signal *sig = &job->signals[job->nsignals];

	sig->syncobj = drm_syncobj_find(s->file, op->handle);
	if (!sig->syncobj)
		return -ENOENT;
	job->nsignals++;
	sig->handle = op->handle;
	sig->point = op->point;
	if (!(op->flags & DRM_NEURON_SYNC_TIMELINE))
		return 0;
	sig->chain = dma_fence_chain_alloc();
	return sig->chain ? 0 : -ENOMEM;
}

static int neuron_ujob_syncs(struct neuron_submit *s, u32 i)
{
	struct neuron_ujob *job = &s->jobs[i];
	u32 n = job->args->syncs.count, k;
	int ret = 0;

	if (!n)
		return 0;
	job->syncs = neuron_copy_array(&job->args->syncs, sizeof(*job->syncs),
				       sizeof(*job->syncs), NEURON_MAX_SYNCS);
	if (IS_ERR(job->syncs)) {
		ret = PTR_ERR(job->syncs);
		job->syncs = NULL;
		return ret;
	}
	job->signals = kcalloc(n, sizeof(*job->signals), GFP_KERNEL);
	job->laters = kcalloc(n, sizeof(*job->laters), GFP_KERNEL);
	if (!job->signals || !job->laters)
		return -ENOMEM;
	for (k = 0; k < n && !ret; k++) {
		const struct drm_neuron_sync_op *op = &job->syncs[k];

		/* A timeline has no point 0, a binary syncobj no other. */
		if (op->flags & ~(DRM_NEURON_SYNC_SIGNAL | DRM_NEURON_SYNC_TIMELINE) ||
		    !op->point == !!(op->flags & DRM_NEURON_SYNC_TIMELINE))
			return -EINVAL;
		if (op->flags & DRM_NEURON_SYNC_SIGNAL)
			ret = neuron_ujob_signal(s, job, op);
		else
			ret = neuron_ujob_wait(s, i, op);
	}
	return ret;
}

static int neuron_ujob_check(const struct drm_neuron_job *args)
{
	size_t used = args->type == DRM_NEURON_JOB_EXEC ? sizeof(args->exec) : sizeof(args->copy);

	if (args->type > DRM_NEURON_JOB_FILL || args->flags ||
	    memchr_inv((const void *)args->reserved + used, 0, sizeof(args->reserved) - used))
		return -EINVAL;
	return 0;
}

/* Pushes what is ready of a long copy while the rest is being pinned. */
static int neuron_ujob_stream(struct neuron_submit *s, struct neuron_ujob *job)
{
	struct neuron_ctx *ctx = s->ctx;
	struct neuron_job *piece = neuron_ujob_first(job);
	int ret = 0;

	list_del_init(&piece->node);
	neuron_job_arm(piece);
	neuron_job_push(piece);
	/* A copy that waits for something else must not wait here, with the lock. */
	if (!job->waits)
		ret = wait_event_interruptible(ctx->idle, atomic_read(&ctx->jobs) <
					       NEURON_STREAM_PIECES);
	return ret;
}

static int neuron_submit_prepare(struct neuron_submit *s, u32 i)
{
	struct neuron_ujob *job = &s->jobs[i];
	const struct drm_neuron_job *args = job->args;
	bool fill = args->type == DRM_NEURON_JOB_FILL;
	int ret = neuron_ujob_check(args);

	if (ret)
		return ret;
	if (args->type == DRM_NEURON_JOB_EXEC) {
		ret = neuron_ujob_add(job, neuron_exec_create(s->ctx, s->file, &args->exec));
		return ret ?: neuron_ujob_syncs(s, i);
	}
	ret = neuron_copy_parse(&job->copy, s->ctx, s->file, &args->copy, fill);
	if (!ret)
		ret = neuron_ujob_add(job, neuron_copy_next(&job->copy));
	if (!ret)
		ret = neuron_ujob_syncs(s, i);
	while (!ret && job->copy.left) {
		/* Only one job: with several, a later one might still fail. */
		if (s->count == 1)
			ret = neuron_ujob_stream(s, job);
		if (!ret)
			ret = neuron_ujob_add(job, neuron_copy_next(&job->copy));
	}
	return ret;
}

static int neuron_submit_lock_obj(struct neuron_submit *s, struct drm_exec *exec,
				  struct drm_gem_object *obj)
{
	return obj ? drm_exec_prepare_obj(exec, obj, s->count) : 0;
}

static int neuron_submit_lock(struct neuron_submit *s, struct drm_exec *exec)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < s->count && !ret; i++) {
		struct neuron_ujob *job = &s->jobs[i];

		if (job->args->type == DRM_NEURON_JOB_EXEC) {
			ret = neuron_submit_lock_obj(s, exec,
						     drm_gpuvm_resv_obj(&s->ctx->vm->base));
			continue;
		}
		ret = neuron_submit_lock_obj(s, exec, job->copy.dst);
		if (!ret)
			ret = neuron_submit_lock_obj(s, exec, job->copy.src);
	}
	return ret;
}

static void neuron_ujob_publish(struct neuron_submit *s, struct neuron_ujob *job)
{
	u32 k;

	if (job->args->type == DRM_NEURON_JOB_EXEC)
		dma_resv_add_fence(drm_gpuvm_resv(&s->ctx->vm->base), job->done,
				   DMA_RESV_USAGE_BOOKKEEP);
	if (job->copy.dst)
		dma_resv_add_fence(job->copy.dst->resv, job->done, DMA_RESV_USAGE_WRITE);
	if (job->copy.src)
		dma_resv_add_fence(job->copy.src->resv, job->done, DMA_RESV_USAGE_READ);
	for (k = 0; k < job->nsignals; k++) {
		struct neuron_signal *sig = &job->signals[k];

		if (sig->chain)
			drm_syncobj_add_point(sig->syncobj, sig->chain, job->done, sig->point);
		else
			drm_syncobj_replace_fence(sig->syncobj, job->done);
		sig->chain = NULL;
	}
}

/* Nothing in here can fail. */
static void neuron_ujob_commit(struct neuron_submit *s, struct neuron_ujob *job)
{
	struct neuron_job *piece, *next;
	struct dma_fence *fence;
	u32 k;

	for (k = 0; k < job->nlaters; k++)
		neuron_job_wait_set(neuron_ujob_first(job), job->laters[k].index,
				    s->jobs[job->laters[k].job].done);
	list_for_each_entry_safe(piece, next, &job->pieces, node) {
		bool last = list_is_last(&piece->node, &job->pieces);

		list_del_init(&piece->node);
		fence = neuron_job_arm(piece);
		if (last) {
			job->done = dma_fence_get(fence);
			neuron_ujob_publish(s, job);
		}
		neuron_job_push(piece);
		if (last)
			break;
	}
}

static int neuron_submit_locked(struct neuron_submit *s)
{
	struct drm_exec exec;
	int ret = 0;
	u32 i;

	if (s->ctx->dead || READ_ONCE(s->ctx->state) & DRM_NEURON_CTX_FATAL)
		return -ECANCELED;
	for (i = 0; i < s->count && !ret; i++)
		ret = neuron_submit_prepare(s, i);
	if (ret)
		return ret;
	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES, 0);
	drm_exec_until_all_locked(&exec) {
		ret = neuron_submit_lock(s, &exec);
		drm_exec_retry_on_contention(&exec);
		if (ret)
			break;
	}
	if (!ret)
		for (i = 0; i < s->count; i++)
			neuron_ujob_commit(s, &s->jobs[i]);
	drm_exec_fini(&exec);
	return ret;
}

static void neuron_ujob_cleanup(struct neuron_ujob *job)
{
	struct neuron_job *piece, *next;
	u32 k;

	list_for_each_entry_safe(piece, next, &job->pieces, node)
		neuron_job_free(piece);
	for (k = 0; k < job->nsignals; k++) {
		drm_syncobj_put(job->signals[k].syncobj);
		dma_fence_chain_free(job->signals[k].chain);
	}
	neuron_copy_put(&job->copy);
	dma_fence_put(job->done);
	kfree(job->signals);
	kfree(job->laters);
	kvfree(job->syncs);
}

static int neuron_submit_run(struct neuron_submit *s)
{
	int ret, idx;
	u32 i;

	s->jobs = kvcalloc(s->count, sizeof(*s->jobs), GFP_KERNEL_ACCOUNT);
	if (!s->jobs)
		return -ENOMEM;
	for (i = 0; i < s->count; i++) {
		s->jobs[i].args = &s->args[i];
		INIT_LIST_HEAD(&s->jobs[i].pieces);
	}
	ret = -ENODEV;
	if (drm_dev_enter(&s->ctx->ndev->drm, &idx)) {
		ret = mutex_lock_interruptible(&s->ctx->submit_lock);
		if (!ret) {
			ret = neuron_submit_locked(s);
			mutex_unlock(&s->ctx->submit_lock);
		}
		drm_dev_exit(idx);
	}
	for (i = 0; i < s->count; i++)
		neuron_ujob_cleanup(&s->jobs[i]);
	kvfree(s->jobs);
	return ret;
}

int neuron_ioctl_submit(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct neuron_submit s = { .file = file };
	struct drm_neuron_submit *args = data;
	int ret;

	if (args->flags)
		return -EINVAL;
	s.ctx = neuron_ctx_lookup(file->driver_priv, args->ctx_id);
	if (!s.ctx)
		return -ENOENT;
	s.count = args->jobs.count;
	s.args = neuron_copy_array(&args->jobs, sizeof(*s.args), sizeof(*s.args), NEURON_MAX_JOBS);
	if (IS_ERR_OR_NULL(s.args)) {
		ret = s.args ? PTR_ERR(s.args) : -EINVAL;
		goto out_ctx;
	}
	ret = wait_event_interruptible(s.ctx->idle,
				       atomic_read(&s.ctx->jobs) < NEURON_QUEUE_DEPTH ||
				       READ_ONCE(s.ctx->dead));
	if (!ret)
		ret = neuron_submit_run(&s);
	kvfree(s.args);
out_ctx:
	neuron_ctx_put(s.ctx);
	return ret;
}
