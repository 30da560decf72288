// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: who holds which cores, and what becomes of their jobs.
 */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "neuron_ctx.h"
#include "neuron_vm.h"

/* Jobs that only wait for themselves are drained for that long, then dropped. */
#define NEURON_DRAIN_TIMEOUT	(2 * HZ)

/* Frees contexts; what is on it when the module goes is waited for. */
static struct workqueue_struct *neuron_release_wq;

int neuron_ctx_module_init(void)
{
	neuron_release_wq = alloc_workqueue("neuron-release", WQ_UNBOUND, 0);
	return neuron_release_wq ? 0 : -ENOMEM;
}

void neuron_ctx_module_exit(void)
{
	destroy_workqueue(neuron_release_wq);
}

static void neuron_ctx_release_work(struct work_struct *work)
{
	struct neuron_ctx *ctx = container_of(work, struct neuron_ctx, release);
	struct neuron_device *ndev = ctx->ndev;
	bool user = ctx->file;

	if (user)
		neuron_file_put(ctx->file);
	mutex_destroy(&ctx->submit_lock);
	kfree(ctx);
	drm_dev_put(&ndev->drm);
	if (user)
		module_put(THIS_MODULE);
}

/* Contexts that nobody references any more are gone afterwards. */
void neuron_ctx_flush(void)
{
	flush_workqueue(neuron_release_wq);
}

static void neuron_ctx_release(struct kref *kref)
{
	struct neuron_ctx *ctx = container_of(kref, struct neuron_ctx, ref);

	/* A job may hold the last reference, and its scheduler goes with ours. */
	queue_work(neuron_release_wq, &ctx->release);
}

void neuron_ctx_put(struct neuron_ctx *ctx)
{
	kref_put(&ctx->ref, neuron_ctx_release);
}

struct neuron_ctx *neuron_ctx_lookup(struct neuron_file *nf, u32 id)
{
	struct neuron_ctx *ctx;

	xa_lock(&nf->ctxs);
	ctx = xa_load(&nf->ctxs, id);
	if (ctx)
		neuron_ctx_get(ctx);
	xa_unlock(&nf->ctxs);
	return ctx;
}

void neuron_ctx_set_state(struct neuron_ctx *ctx, u32 state)
{
	unsigned long flags;

	spin_lock_irqsave(&ctx->state_lock, flags);
	ctx->state |= state;
	spin_unlock_irqrestore(&ctx->state_lock, flags);
}

/* Interrupt context: a job ended. */
void neuron_ctx_completed(struct neuron_ctx *ctx, const struct neuron_completion *c)
{
	u64 start = le64_to_cpu(c->wall_start), end = le64_to_cpu(c->wall_end);
	unsigned long mask = le32_to_cpu(c->core_mask) & ctx->core_mask, flags;
	u32 status = le32_to_cpu(c->status);
	unsigned int i;

	if (ctx->file && end > start)
		for_each_set_bit(i, &mask, NEURON_MAX_CORES)
			atomic64_add(end - start, &ctx->file->core_ns[i]);
	if (status == NEURON_FAULT_NONE || status == NEURON_FAULT_ABORTED)
		return;
	spin_lock_irqsave(&ctx->state_lock, flags);
	ctx->faults++;
	ctx->fault = c->fault;
	spin_unlock_irqrestore(&ctx->state_lock, flags);
}

static struct neuron_ctx *neuron_ctx_new(struct neuron_device *ndev, u32 priority)
{
	struct neuron_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	unsigned int n = atomic_inc_return(&ndev->next_queue);

	if (!ctx)
		return NULL;
	kref_init(&ctx->ref);
	ctx->ndev = ndev;
	ctx->priority = priority;
	ctx->queue = &ndev->queue[n % ndev->queues];
	init_waitqueue_head(&ctx->idle);
	mutex_init(&ctx->submit_lock);
	spin_lock_init(&ctx->state_lock);
	INIT_LIST_HEAD(&ctx->node);
	INIT_LIST_HEAD(&ctx->vm_node);
	INIT_WORK(&ctx->release, neuron_ctx_release_work);
	/* Until neuron_ctx_release_work(). */
	drm_dev_get(&ndev->drm);
	return ctx;
}

/* Picks cores, all or none. */
static int neuron_ctx_claim(struct neuron_ctx *ctx, u32 mask, u32 count)
{
	struct neuron_device *ndev = ctx->ndev;
	u32 busy = ndev->claimed;
	unsigned int c;

	lockdep_assert_held(&ndev->ctx_lock);
	if (ctx->exclusive)
		for (c = 0; c < ndev->arch->cores; c++)
			if (ndev->sharers[c])
				busy |= BIT(c);
	for (c = 0; !mask && c < ndev->arch->cores; c++)
		if (!(busy & BIT(c)) && hweight32(ctx->core_mask) < count)
			ctx->core_mask |= BIT(c);
	if (mask)
		ctx->core_mask = mask;
	if (ctx->core_mask & busy || (!mask && hweight32(ctx->core_mask) < count)) {
		ctx->core_mask = 0;
		return -EBUSY;
	}
	for (c = 0; c < ndev->arch->cores; c++)
		if (!ctx->exclusive && ctx->core_mask & BIT(c))
			ndev->sharers[c]++;
	if (ctx->exclusive)
		ndev->claimed |= ctx->core_mask;
	return 0;
}

static void neuron_ctx_unclaim(struct neuron_ctx *ctx)
{
	struct neuron_device *ndev = ctx->ndev;
	unsigned int c;

	lockdep_assert_held(&ndev->ctx_lock);
	if (ctx->exclusive) {
		ndev->claimed &= ~ctx->core_mask;
		return;
	}
	for (c = 0; c < ndev->arch->cores; c++)
		if (ctx->core_mask & BIT(c))
			ndev->sharers[c]--;
}

static int neuron_ctx_take_slot(struct neuron_ctx *ctx)
{
	struct neuron_device *ndev = ctx->ndev;
	unsigned int i = find_first_zero_bit(ndev->slot_map, ndev->slots_count);
	int ret;

	lockdep_assert_held(&ndev->ctx_lock);
	if (i >= ndev->slots_count)
		return -EBUSY;
	mutex_lock(&ctx->vm->lock);
	ret = ctx->vm->dead ? -ENODEV : neuron_slot_start(&ndev->slots[i], ctx);
	if (!ret) {
		ctx->slot = &ndev->slots[i];
		list_add(&ctx->vm_node, &ctx->vm->ctxs);
		set_bit(i, ndev->slot_map);
	} else {
		neuron_slot_free(&ndev->slots[i]);
	}
	mutex_unlock(&ctx->vm->lock);
	return ret;
}

static void neuron_ctx_drop_slot(struct neuron_ctx *ctx)
{
	struct neuron_slot *slot = ctx->slot;

	mutex_lock(&ctx->vm->lock);
	list_del_init(&ctx->vm_node);
	mutex_unlock(&ctx->vm->lock);
	/* One that could not be reset is not used again. */
	if (slot->ring)
		clear_bit(slot->id, ctx->ndev->slot_map);
	neuron_slot_free(slot);
}

static int neuron_ctx_set_up(struct neuron_ctx *ctx, u32 mask, u32 count)
{
	struct neuron_device *ndev = ctx->ndev;
	unsigned int prio = ctx->file ? ctx->priority + 1 : 0;
	int ret = neuron_entity_init(&ctx->copy, &ctx->queue->sched, prio);

	if (ret || !ctx->vm)
		goto out;
	ret = neuron_ctx_claim(ctx, mask, count);
	if (ret)
		goto out;
	ret = neuron_ctx_take_slot(ctx);
	if (!ret)
		ret = neuron_entity_init(&ctx->exec, &ctx->slot->sched, prio);
	if (!ret)
		goto out;
	if (ctx->slot) {
		neuron_slot_stop(ctx->slot);
		neuron_ctx_drop_slot(ctx);
	}
	neuron_ctx_unclaim(ctx);
out:
	if (ret) {
		ctx->finished = true;
		neuron_entity_fini(&ctx->copy);
	} else {
		list_add(&ctx->node, &ndev->ctxs);
	}
	return ret;
}

struct neuron_ctx *neuron_ctx_create_kernel(struct neuron_device *ndev)
{
	struct neuron_ctx *ctx = neuron_ctx_new(ndev, DRM_NEURON_PRIORITY_HIGH);
	int ret;

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&ndev->ctx_lock);
	ret = neuron_ctx_set_up(ctx, 0, 0);
	mutex_unlock(&ndev->ctx_lock);
	if (!ret)
		return ctx;
	neuron_ctx_put(ctx);
	return ERR_PTR(ret);
}

/* No further jobs; those in the slot end now. */
static void neuron_ctx_stop(struct neuron_ctx *ctx)
{
	mutex_lock(&ctx->submit_lock);
	WRITE_ONCE(ctx->dead, true);
	mutex_unlock(&ctx->submit_lock);
	wake_up_all(&ctx->idle);
	if (ctx->slot && !ctx->finished)
		neuron_slot_stop(ctx->slot);
}

/* What is queued ends with -ECANCELED, unless it waits for somebody else. */
static void neuron_ctx_drain(struct neuron_ctx *ctx)
{
	wait_event_timeout(ctx->idle, !atomic_read(&ctx->jobs), NEURON_DRAIN_TIMEOUT);
}

/* After neuron_ctx_stop(): give back what the context holds. */
static void neuron_ctx_finish(struct neuron_ctx *ctx)
{
	struct neuron_device *ndev = ctx->ndev;

	lockdep_assert_held(&ndev->ctx_lock);
	if (ctx->finished)
		return;
	neuron_entity_fini(&ctx->exec);
	neuron_entity_fini(&ctx->copy);
	if (ctx->slot) {
		neuron_ctx_drop_slot(ctx);
		neuron_ctx_unclaim(ctx);
	}
	list_del_init(&ctx->node);
	ctx->finished = true;
	if (ctx->vm)
		neuron_vm_put(ctx->vm);
	ctx->vm = NULL;
}

/* A file is closed. All its contexts stop first: their jobs may wait for each other. */
void neuron_ctx_stop_file(struct neuron_file *nf)
{
	struct neuron_device *ndev = nf->ndev;
	struct neuron_ctx *ctx;
	unsigned long id;

	mutex_lock(&ndev->ctx_lock);
	xa_for_each(&nf->ctxs, id, ctx)
		neuron_ctx_stop(ctx);
	mutex_unlock(&ndev->ctx_lock);
	xa_for_each(&nf->ctxs, id, ctx)
		neuron_ctx_drain(ctx);
	mutex_lock(&ndev->ctx_lock);
	xa_for_each(&nf->ctxs, id, ctx)
		neuron_ctx_finish(ctx);
	mutex_unlock(&ndev->ctx_lock);
	xa_for_each(&nf->ctxs, id, ctx) {
		xa_erase(&nf->ctxs, id);
		neuron_ctx_put(ctx);
	}
}

/* The chip goes. */
void neuron_ctx_stop_all(struct neuron_device *ndev)
{
	struct neuron_ctx *ctx, *next;

	mutex_lock(&ndev->ctx_lock);
	list_for_each_entry(ctx, &ndev->ctxs, node)
		neuron_ctx_stop(ctx);
	list_for_each_entry(ctx, &ndev->ctxs, node)
		neuron_ctx_drain(ctx);
	list_for_each_entry_safe(ctx, next, &ndev->ctxs, node)
		neuron_ctx_finish(ctx);
	mutex_unlock(&ndev->ctx_lock);
}

u32 neuron_ctx_file_cores(struct neuron_file *nf)
{
	struct neuron_ctx *ctx;
	unsigned long id;
	u32 mask = 0;

	xa_lock(&nf->ctxs);
	xa_for_each(&nf->ctxs, id, ctx)
		mask |= ctx->core_mask;
	xa_unlock(&nf->ctxs);
	return mask;
}

static int neuron_ctx_create_check(struct neuron_device *ndev,
				   const struct drm_neuron_ctx_create *args)
{
	if (args->flags & ~DRM_NEURON_CTX_SHARED ||
	    args->priority > DRM_NEURON_PRIORITY_HIGH ||
	    args->core_mask & ~neuron_cores_mask(ndev) ||
	    args->core_count > ndev->arch->cores ||
	    (args->core_mask && args->core_count &&
	     args->core_count != hweight32(args->core_mask)))
		return -EINVAL;
	if (args->priority == DRM_NEURON_PRIORITY_HIGH && !capable(CAP_SYS_NICE))
		return -EACCES;
	if (!args->core_mask && !args->core_count)
		return args->flags ? -EINVAL : 0;
	if (!neuron_has_exec(ndev))
		return -EOPNOTSUPP;
	return args->vm_id ? 0 : -EINVAL;
}

int neuron_ioctl_ctx_create(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct neuron_device *ndev = to_neuron(dev);
	struct neuron_file *nf = file->driver_priv;
	struct drm_neuron_ctx_create *args = data;
	struct neuron_vm *vm = NULL;
	struct neuron_ctx *ctx;
	int ret, idx;

	ret = neuron_ctx_create_check(ndev, args);
	if (ret)
		return ret;
	if (args->vm_id) {
		vm = neuron_vm_lookup(nf, args->vm_id);
		if (!vm)
			return -ENOENT;
	}
	ctx = neuron_ctx_new(ndev, args->priority);
	if (!ctx) {
		if (vm)
			neuron_vm_put(vm);
		return -ENOMEM;
	}
	ctx->file = neuron_file_get(nf);
	/* A job that waits for somebody else may outlive the open file. */
	__module_get(THIS_MODULE);
	ctx->exclusive = !(args->flags & DRM_NEURON_CTX_SHARED);
	/* Without cores there is nothing that would use an address space. */
	if (args->core_mask || args->core_count)
		swap(ctx->vm, vm);
	ret = -ENODEV;
	if (drm_dev_enter(dev, &idx)) {
		mutex_lock(&ndev->ctx_lock);
		ret = neuron_ctx_set_up(ctx, args->core_mask, args->core_count);
		args->core_mask = ctx->core_mask;
		if (!ret) {
			ret = xa_alloc(&nf->ctxs, &args->id, ctx, xa_limit_31b,
				       GFP_KERNEL_ACCOUNT);
			if (ret) {
				neuron_ctx_stop(ctx);
				neuron_ctx_finish(ctx);
			}
		}
		mutex_unlock(&ndev->ctx_lock);
		drm_dev_exit(idx);
	}
	if (vm)
		neuron_vm_put(vm);
	if (ret) {
		if (ctx->vm)
			neuron_vm_put(ctx->vm);
		neuron_ctx_put(ctx);
	}
	return ret;
}

int neuron_ioctl_ctx_destroy(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct neuron_device *ndev = to_neuron(dev);
	struct neuron_file *nf = file->driver_priv;
	struct drm_neuron_id *args = data;
	struct neuron_ctx *ctx;

	if (args->pad)
		return -EINVAL;
	ctx = xa_erase(&nf->ctxs, args->id);
	if (!ctx)
		return -ENOENT;
	mutex_lock(&ndev->ctx_lock);
	neuron_ctx_stop(ctx);
	mutex_unlock(&ndev->ctx_lock);
	neuron_ctx_drain(ctx);
	mutex_lock(&ndev->ctx_lock);
	neuron_ctx_finish(ctx);
	mutex_unlock(&ndev->ctx_lock);
	neuron_ctx_put(ctx);
	return 0;
}

int neuron_ioctl_ctx_get_state(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_neuron_ctx_state *args = data;
	struct neuron_ctx *ctx;

	BUILD_BUG_ON(sizeof(args->fault) != sizeof(ctx->fault));
	if (args->pad)
		return -EINVAL;
	ctx = neuron_ctx_lookup(file->driver_priv, args->id);
	if (!ctx)
		return -ENOENT;
	spin_lock_irq(&ctx->state_lock);
	args->state = ctx->state;
	args->faults = ctx->faults;
	memcpy(args->fault, &ctx->fault, sizeof(args->fault));
	spin_unlock_irq(&ctx->state_lock);
	neuron_ctx_put(ctx);
	return 0;
}
