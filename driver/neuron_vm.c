// SPDX-License-Identifier: GPL-2.0
/*
 * Device address spaces: drm_gpuvm knows what is mapped, neuron_mmu.c writes it.
 */
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "neuron_ctx.h"
#include "neuron_vm.h"

/**
 * struct neuron_vm_op - one change of an address space
 * @vma: mappings for the steps: the new one, and both ends of a split one
 * @vm_bo: of the new mapping
 * @readonly: the new mapping
 * @prune: nothing will be mapped where something is unmapped
 * @cleared: translations were removed
 * @dead: mappings that are gone once the device knows
 */
struct neuron_vm_op {
	struct neuron_vma *vma[3];
	struct drm_gpuvm_bo *vm_bo;
	bool readonly;
	bool prune;
	bool cleared;
	struct list_head dead;
};

static struct neuron_vma *neuron_vm_op_vma(struct neuron_vm_op *op, bool readonly)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(op->vma); i++) {
		struct neuron_vma *vma = op->vma[i];

		if (vma) {
			op->vma[i] = NULL;
			vma->readonly = readonly;
			return vma;
		}
	}
	return NULL;
}

static void neuron_vma_link(struct neuron_vma *vma, struct drm_gpuvm_bo *vm_bo)
{
	struct neuron_bo *bo = to_neuron_bo(vma->base.gem.obj);

	dma_resv_lock(bo->shmem.base.resv, NULL);
	drm_gpuva_link(&vma->base, vm_bo);
	dma_resv_unlock(bo->shmem.base.resv);
}

/* May free the BO, but not while its lock is held. */
static void neuron_vma_destroy(struct neuron_vma *vma)
{
	struct drm_gem_object *obj = vma->base.gem.obj;
	struct neuron_bo *bo = to_neuron_bo(obj);

	drm_gem_object_get(obj);
	dma_resv_lock(bo->shmem.base.resv, NULL);
	drm_gpuva_unlink(&vma->base);
	dma_resv_unlock(bo->shmem.base.resv);
	drm_gem_object_put(obj);
	kfree(vma);
}

struct neuron_vm_step {
	struct neuron_vm *vm;
	struct neuron_vm_op *op;
};

static int neuron_vm_step_map(struct drm_gpuva_op *gop, void *priv)
{
	struct neuron_vm_step *step = priv;
	struct neuron_vma *vma = neuron_vm_op_vma(step->op, step->op->readonly);

	if (WARN_ON(!vma))
		return -EINVAL;
	drm_gpuva_map(&step->vm->base, &vma->base, &gop->map);
	neuron_vma_link(vma, step->op->vm_bo);
	neuron_mmu_map(&step->vm->mmu, to_neuron_bo(vma->base.gem.obj), vma->base.gem.offset,
		       vma->base.va.addr, vma->base.va.range, !vma->readonly);
	return 0;
}

static int neuron_vm_step_remap(struct drm_gpuva_op *gop, void *priv)
{
	struct drm_gpuva_op_remap *remap = &gop->remap;
	struct drm_gpuva *old = remap->unmap->va;
	struct neuron_vma *vma = container_of(old, struct neuron_vma, base);
	struct neuron_vma *prev = NULL, *next = NULL;
	struct neuron_vm_step *step = priv;
	u64 start = old->va.addr, end = old->va.addr + old->va.range;

	if (remap->prev) {
		prev = neuron_vm_op_vma(step->op, vma->readonly);
		start = remap->prev->va.addr + remap->prev->va.range;
	}
	if (remap->next) {
		next = neuron_vm_op_vma(step->op, vma->readonly);
		end = remap->next->va.addr;
	}
	if (WARN_ON((remap->prev && !prev) || (remap->next && !next)))
		return -EINVAL;
	neuron_mmu_unmap(&step->vm->mmu, start, end - start, step->op->prune);
	step->op->cleared = true;
	drm_gpuva_remap(prev ? &prev->base : NULL, next ? &next->base : NULL, remap);
	if (prev)
		neuron_vma_link(prev, old->vm_bo);
	if (next)
		neuron_vma_link(next, old->vm_bo);
	list_add(&vma->node, &step->op->dead);
	return 0;
}

static int neuron_vm_step_unmap(struct drm_gpuva_op *gop, void *priv)
{
	struct drm_gpuva *va = gop->unmap.va;
	struct neuron_vma *vma = container_of(va, struct neuron_vma, base);
	struct neuron_vm_step *step = priv;

	neuron_mmu_unmap(&step->vm->mmu, va->va.addr, va->va.range, step->op->prune);
	step->op->cleared = true;
	drm_gpuva_unmap(&gop->unmap);
	list_add(&vma->node, &step->op->dead);
	return 0;
}

static void neuron_vm_free(struct drm_gpuvm *base)
{
	kfree(to_neuron_vm(base));
}

static const struct drm_gpuvm_ops neuron_gpuvm_ops = {
	.vm_free = neuron_vm_free,
	.sm_step_map = neuron_vm_step_map,
	.sm_step_remap = neuron_vm_step_remap,
	.sm_step_unmap = neuron_vm_step_unmap,
};

/* Returns when no slot uses a translation that was removed. */
static void neuron_vm_invalidate(struct neuron_vm *vm, u64 va, u64 size)
{
	struct neuron_ctx *ctx;

	lockdep_assert_held(&vm->lock);
	list_for_each_entry(ctx, &vm->ctxs, vm_node) {
		if (!neuron_slot_invalidate(ctx->slot, va, size))
			continue;
		/* A slot that does not answer is stopped: then it uses nothing. */
		drm_err(&vm->ndev->drm, "slot %u: invalidation timed out\n", ctx->slot->id);
		neuron_ctx_set_state(ctx, DRM_NEURON_CTX_TIMEDOUT | DRM_NEURON_CTX_FATAL);
		neuron_slot_stop(ctx->slot);
	}
}

static void neuron_vm_op_finish(struct neuron_vm *vm, struct neuron_vm_op *op, u64 va, u64 size)
{
	struct neuron_vma *vma, *next;
	unsigned int i;

	if (op->cleared)
		neuron_vm_invalidate(vm, va, size);
	neuron_mmu_free_dead(&vm->mmu);
	list_for_each_entry_safe(vma, next, &op->dead, node)
		neuron_vma_destroy(vma);
	for (i = 0; i < ARRAY_SIZE(op->vma); i++)
		kfree(op->vma[i]);
}

static int neuron_vm_op_alloc(struct neuron_vm_op *op)
{
	unsigned int i;

	INIT_LIST_HEAD(&op->dead);
	for (i = 0; i < ARRAY_SIZE(op->vma); i++) {
		op->vma[i] = kzalloc(sizeof(*op->vma[i]), GFP_KERNEL_ACCOUNT);
		if (!op->vma[i])
			return -ENOMEM;
	}
	return 0;
}

static int neuron_vm_split(struct neuron_vm *vm, u64 va, u64 size)
{
	int ret = neuron_mmu_split(&vm->mmu, va);

	return ret ?: neuron_mmu_split(&vm->mmu, va + size);
}

static int neuron_vm_sm_map(struct neuron_vm *vm, struct neuron_vm_step *step,
			    struct drm_gem_object *obj, const struct drm_neuron_vm_bind_op *args)
{
#ifdef HAVE_GPUVM_MAP_REQ
	const struct drm_gpuvm_map_req req = {
		.map = {
			.va.addr = args->va,
			.va.range = args->size,
			.gem.obj = obj,
			.gem.offset = args->bo_offset,
		},
	};

	return drm_gpuvm_sm_map(&vm->base, step, &req);
#else
	return drm_gpuvm_sm_map(&vm->base, step, args->va, args->size, obj, args->bo_offset);
#endif
}

static int neuron_vm_map_locked(struct neuron_vm *vm, struct neuron_vm_op *op,
				struct neuron_bo *bo, const struct drm_neuron_vm_bind_op *args)
{
	struct neuron_vm_step step = { vm, op };
	struct drm_gem_object *obj = &bo->shmem.base;
	int ret;

	if (vm->dead)
		return -ENODEV;
	ret = neuron_vm_split(vm, args->va, args->size);
	if (!ret)
		ret = neuron_mmu_prepare(&vm->mmu, bo, args->bo_offset, args->va, args->size);
	if (ret)
		return ret;
	dma_resv_lock(bo->shmem.base.resv, NULL);
	op->vm_bo = drm_gpuvm_bo_obtain_locked(&vm->base, obj);
	dma_resv_unlock(bo->shmem.base.resv);
	if (IS_ERR(op->vm_bo))
		return PTR_ERR(op->vm_bo);
	ret = neuron_vm_sm_map(vm, &step, obj, args);
	dma_resv_lock(bo->shmem.base.resv, NULL);
	drm_gpuvm_bo_put(op->vm_bo);
	dma_resv_unlock(bo->shmem.base.resv);
	return ret;
}

static int neuron_vm_map(struct neuron_vm *vm, struct drm_file *file,
			 const struct drm_neuron_vm_bind_op *args)
{
	struct neuron_vm_op op = { .readonly = args->flags & DRM_NEURON_BIND_READONLY };
	struct drm_gem_object *obj = drm_gem_object_lookup(file, args->handle);
	struct neuron_bo *bo;
	int ret;

	if (!obj)
		return -ENOENT;
	bo = to_neuron_bo(obj);
	ret = -EINVAL;
	if (args->bo_offset > obj->size || args->size > obj->size - args->bo_offset)
		goto out;
	ret = neuron_bo_pin(bo);
	if (ret)
		goto out;
	ret = neuron_vm_op_alloc(&op);
	mutex_lock(&vm->lock);
	if (!ret)
		ret = neuron_vm_map_locked(vm, &op, bo, args);
	neuron_vm_op_finish(vm, &op, args->va, args->size);
	mutex_unlock(&vm->lock);
out:
	drm_gem_object_put(obj);
	return ret;
}

static int neuron_vm_unmap(struct neuron_vm *vm, u64 va, u64 size)
{
	struct neuron_vm_op op = { .prune = true };
	struct neuron_vm_step step = { vm, &op };
	int ret = neuron_vm_op_alloc(&op);

	mutex_lock(&vm->lock);
	if (!ret && vm->dead)
		ret = -ENODEV;
	if (!ret)
		ret = neuron_vm_split(vm, va, size);
	if (!ret)
		ret = drm_gpuvm_sm_unmap(&vm->base, &step, va, size);
	neuron_vm_op_finish(vm, &op, va, size);
	mutex_unlock(&vm->lock);
	return ret;
}

/* No context uses the address space any more. */
static void neuron_vm_kill(struct neuron_vm *vm)
{
	struct neuron_vm_op op = { .prune = true };
	struct neuron_vm_step step = { vm, &op };

	INIT_LIST_HEAD(&op.dead);
	mutex_lock(&vm->lock);
	if (!vm->dead) {
		WARN_ON(!list_empty(&vm->ctxs));
		drm_gpuvm_sm_unmap(&vm->base, &step, NEURON_VA_START,
				   NEURON_VA_END - NEURON_VA_START);
		neuron_vm_op_finish(vm, &op, 0, ~0ull);
		neuron_mmu_fini(&vm->mmu);
		vm->dead = true;
	}
	mutex_unlock(&vm->lock);
}

/* The chip goes; memory got from the DMA API must not outlive it. */
void neuron_vm_kill_all(struct neuron_device *ndev)
{
	struct neuron_vm *vm;

	mutex_lock(&ndev->vm_lock);
	list_for_each_entry(vm, &ndev->vms, node)
		neuron_vm_kill(vm);
	mutex_unlock(&ndev->vm_lock);
}

static void neuron_vm_release(struct kref *kref)
{
	struct neuron_vm *vm = container_of(kref, struct neuron_vm, users);

	mutex_lock(&vm->ndev->vm_lock);
	list_del(&vm->node);
	neuron_vm_kill(vm);
	mutex_unlock(&vm->ndev->vm_lock);
	mutex_destroy(&vm->lock);
	drm_gpuvm_put(&vm->base);
}

void neuron_vm_put(struct neuron_vm *vm)
{
	kref_put(&vm->users, neuron_vm_release);
}

struct neuron_vm *neuron_vm_lookup(struct neuron_file *nf, u32 id)
{
	struct neuron_vm *vm;

	xa_lock(&nf->vms);
	vm = xa_load(&nf->vms, id);
	if (vm)
		kref_get(&vm->users);
	xa_unlock(&nf->vms);
	return vm;
}

static struct neuron_vm *neuron_vm_new(struct neuron_device *ndev)
{
	struct neuron_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL_ACCOUNT);
	struct drm_gem_object *resv;

	if (!vm)
		return NULL;
	if (neuron_mmu_init(&vm->mmu, ndev->drm.dev))
		goto err_vm;
	resv = drm_gpuvm_resv_object_alloc(&ndev->drm);
	if (!resv)
		goto err_mmu;
	drm_gpuvm_init(&vm->base, "neuron", 0, &ndev->drm, resv, NEURON_VA_START,
		       NEURON_VA_END - NEURON_VA_START, 0, 0, &neuron_gpuvm_ops);
	drm_gem_object_put(resv);
	kref_init(&vm->users);
	vm->ndev = ndev;
	mutex_init(&vm->lock);
	INIT_LIST_HEAD(&vm->ctxs);
	mutex_lock(&ndev->vm_lock);
	list_add(&vm->node, &ndev->vms);
	mutex_unlock(&ndev->vm_lock);
	return vm;

err_mmu:
	neuron_mmu_fini(&vm->mmu);
err_vm:
	kfree(vm);
	return NULL;
}

int neuron_ioctl_vm_create(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct neuron_file *nf = file->driver_priv;
	struct drm_neuron_vm_create *args = data;
	struct neuron_vm *vm;
	int ret, idx;

	if (args->flags)
		return -EINVAL;
	if (!drm_dev_enter(dev, &idx))
		return -ENODEV;
	vm = neuron_vm_new(to_neuron(dev));
	ret = vm ? xa_alloc(&nf->vms, &args->id, vm, xa_limit_31b, GFP_KERNEL_ACCOUNT) : -ENOMEM;
	if (ret && vm)
		neuron_vm_put(vm);
	drm_dev_exit(idx);
	return ret;
}

int neuron_ioctl_vm_destroy(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct neuron_file *nf = file->driver_priv;
	struct drm_neuron_id *args = data;
	struct neuron_vm *vm;

	if (args->pad)
		return -EINVAL;
	vm = xa_erase(&nf->vms, args->id);
	if (!vm)
		return -ENOENT;
	neuron_vm_put(vm);
	return 0;
}

/**
 * neuron_copy_array() - copy an array of structures from user space
 * @in: array
 * @size: the kernel's size of an element
 * @min_size: its first version's
 * @max: elements allowed
 *
 * Return: memory for kvfree(), NULL when there are no elements, or an error.
 */
void *neuron_copy_array(const struct drm_neuron_obj_array *in, size_t size, size_t min_size,
			u32 max)
{
	void __user *from = u64_to_user_ptr(in->array);
	void *out;
	u32 i;
	int ret = 0;

	if (!in->count)
		return NULL;
	if (in->count > max || in->stride < min_size || in->stride > PAGE_SIZE)
		return ERR_PTR(-EINVAL);
	out = kvmalloc_array(in->count, size, GFP_KERNEL_ACCOUNT);
	if (!out)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < in->count && !ret; i++)
		ret = copy_struct_from_user(out + i * size, size, from + (u64)i * in->stride,
					    in->stride);
	if (!ret)
		return out;
	kvfree(out);
	/* Newer structures may hold what this kernel does not know. */
	return ERR_PTR(ret == -E2BIG ? -EINVAL : ret);
}

static int neuron_vm_bind_one(struct neuron_vm *vm, struct drm_file *file,
			      const struct drm_neuron_vm_bind_op *op)
{
	u32 type = op->flags & DRM_NEURON_BIND_TYPE_MASK;
	u64 mask = ~PAGE_MASK;

	if (op->flags & ~(DRM_NEURON_BIND_TYPE_MASK | DRM_NEURON_BIND_READONLY) ||
	    !op->size || (op->va | op->size | op->bo_offset) & mask ||
	    op->va < NEURON_VA_START || op->va >= NEURON_VA_END ||
	    op->size > NEURON_VA_END - op->va)
		return -EINVAL;
	switch (type) {
	case DRM_NEURON_BIND_MAP:
		return neuron_vm_map(vm, file, op);
	case DRM_NEURON_BIND_UNMAP:
		if (op->handle || op->bo_offset || op->flags & DRM_NEURON_BIND_READONLY)
			return -EINVAL;
		return neuron_vm_unmap(vm, op->va, op->size);
	default:
		return -EINVAL;
	}
}

int neuron_ioctl_vm_bind(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct neuron_file *nf = file->driver_priv;
	struct drm_neuron_vm_bind *args = data;
	struct drm_neuron_vm_bind_op *ops;
	struct neuron_vm *vm;
	int ret = 0, idx;
	u32 i;

	args->done = 0;
	if (args->flags)
		return -EINVAL;
	vm = neuron_vm_lookup(nf, args->vm_id);
	if (!vm)
		return -ENOENT;
	ops = neuron_copy_array(&args->ops, sizeof(*ops), sizeof(*ops), NEURON_MAX_BINDS);
	if (IS_ERR(ops)) {
		ret = PTR_ERR(ops);
		goto out_vm;
	}
	if (!drm_dev_enter(dev, &idx)) {
		ret = -ENODEV;
		goto out_ops;
	}
	for (i = 0; i < args->ops.count && !ret; i++) {
		ret = neuron_vm_bind_one(vm, file, &ops[i]);
		if (!ret)
			args->done++;
	}
	drm_dev_exit(idx);
out_ops:
	kvfree(ops);
out_vm:
	neuron_vm_put(vm);
	return ret;
}
