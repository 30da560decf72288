// SPDX-License-Identifier: GPL-2.0
/*
 * Buffer objects: HBM, mapped to user space through BAR4, and host memory.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include <drm/drm_drv.h>
#include <drm/drm_gpuvm.h>
#include <drm/drm_print.h>
#include <drm/drm_utils.h>

#include "neuron_copy.h"
#include "neuron_gem.h"

/* Pages that one fault maps: faults cost more than page-table entries. */
#define NEURON_FAULT_AROUND	128

#define NEURON_BO_FLAGS \
	(DRM_NEURON_BO_HOST | DRM_NEURON_BO_NO_MMAP | DRM_NEURON_BO_CONTIGUOUS)

/* Where @offset is, and how many bytes from there on are contiguous. */
u64 neuron_bo_seg(const struct neuron_bo *bo, u64 offset, u64 *addr)
{
	unsigned int lo = 0, hi = bo->nsegs;
	const struct neuron_seg *seg;
	u64 end;

	while (hi - lo > 1) {
		unsigned int mid = lo + (hi - lo) / 2;

		if (bo->segs[mid].offset <= offset)
			lo = mid;
		else
			hi = mid;
	}
	seg = &bo->segs[lo];
	end = hi < bo->nsegs ? bo->segs[hi].offset : bo->shmem.base.size;
	*addr = seg->addr + (offset - seg->offset);
	return end - offset;
}

/* The same with an address that descriptors take. */
u64 neuron_bo_dpa(const struct neuron_bo *bo, u64 offset, u64 *dpa)
{
	struct neuron_device *ndev = to_neuron(bo->shmem.base.dev);
	u64 addr, len = neuron_bo_seg(bo, offset, &addr);

	if (neuron_bo_is_host(bo))
		*dpa = neuron_host_dpa(ndev, addr);
	else
		*dpa = neuron_hbm_dpa(ndev, addr);
	return len;
}

/**
 * neuron_bo_pin() - make host memory addressable for the device
 * @bo: BO; HBM always is
 *
 * The pages stay until the BO is freed.
 *
 * Return: 0 or an error.
 */
int neuron_bo_pin(struct neuron_bo *bo)
{
	struct scatterlist *sg;
	struct sg_table *sgt;
	struct neuron_seg *segs;
	u64 offset = 0, end = 0;
	unsigned int i, n = 0;

	if (!neuron_bo_is_host(bo) || READ_ONCE(bo->segs))
		return 0;
	sgt = drm_gem_shmem_get_pages_sgt(&bo->shmem);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	segs = kvmalloc_array(sgt->nents, sizeof(*segs), GFP_KERNEL_ACCOUNT);
	if (!segs)
		return -ENOMEM;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (!n || sg_dma_address(sg) != end)
			segs[n++] = (struct neuron_seg){ offset, sg_dma_address(sg) };
		offset += sg_dma_len(sg);
		end = sg_dma_address(sg) + sg_dma_len(sg);
	}
	mutex_lock(&bo->lock);
	if (bo->segs) {
		kvfree(segs);
	} else {
		bo->nsegs = n;
		/* Pairs with the unlocked check above. */
		smp_store_release(&bo->segs, segs);
	}
	mutex_unlock(&bo->lock);
	return 0;
}

static int neuron_hbm_segs(struct neuron_device *ndev, struct neuron_bo *bo)
{
	struct gpu_buddy *mm = &ndev->hbm[bo->stack].mm;
	u64 base = bo->stack * ndev->stack_stride, offset = 0, end = 0;
	struct gpu_buddy_block *block;
	unsigned int n = 0;

	list_for_each_entry(block, &bo->blocks, link)
		n++;
	bo->segs = kvmalloc_array(n, sizeof(*bo->segs), GFP_KERNEL_ACCOUNT);
	if (!bo->segs)
		return -ENOMEM;
	n = 0;
	list_for_each_entry(block, &bo->blocks, link) {
		u64 addr = base + gpu_buddy_block_offset(block);

		if (!n || addr != end)
			bo->segs[n++] = (struct neuron_seg){ offset, addr };
		offset += gpu_buddy_block_size(mm, block);
		end = addr + gpu_buddy_block_size(mm, block);
	}
	bo->nsegs = n;
	return 0;
}

static void neuron_bo_free(struct drm_gem_object *obj)
{
	struct neuron_bo *bo = to_neuron_bo(obj);
	struct neuron_device *ndev = to_neuron(obj->dev);

	kvfree(bo->segs);
	mutex_destroy(&bo->lock);
	if (neuron_bo_is_host(bo)) {
		drm_gem_shmem_free(&bo->shmem);
		return;
	}
	if (!list_empty(&bo->blocks))
		neuron_hbm_free(ndev, &bo->blocks, obj->size, bo->stack);
	drm_gem_object_release(obj);
	kfree(bo);
}

static int neuron_host_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct neuron_bo *bo = to_neuron_bo(obj);

	if (bo->flags & DRM_NEURON_BO_NO_MMAP)
		return -EACCES;
	return drm_gem_shmem_mmap(&bo->shmem, vma);
}

static int neuron_hbm_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct neuron_bo *bo = to_neuron_bo(obj);

	if (bo->flags & DRM_NEURON_BO_NO_MMAP)
		return -EACCES;
	/* A private mapping would copy what only the device may hold. */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
		return -EINVAL;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = pgprot_writecombine(vm_get_page_prot(vma->vm_flags));
	return 0;
}

static vm_fault_t neuron_hbm_fault_around(struct neuron_bo *bo, struct vm_fault *vmf)
{
	struct neuron_device *ndev = to_neuron(bo->shmem.base.dev);
	struct vm_area_struct *vma = vmf->vma;
	u64 fake = drm_vma_node_start(&bo->shmem.base.vma_node);
	u64 page = vmf->pgoff - fake, len, addr;
	unsigned long va = vmf->address & PAGE_MASK, i, n;
	vm_fault_t ret = VM_FAULT_NOPAGE;

	if (vmf->pgoff < fake || page >= bo->shmem.base.size >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	len = neuron_bo_seg(bo, page << PAGE_SHIFT, &addr);
	n = min_t(u64, len >> PAGE_SHIFT, (vma->vm_end - va) >> PAGE_SHIFT);
	n = min_t(unsigned long, n, NEURON_FAULT_AROUND);
	for (i = 0; i < n; i++) {
		ret = vmf_insert_pfn(vma, va + i * PAGE_SIZE,
				     PHYS_PFN(ndev->hbm_base + addr) + i);
		if (ret != VM_FAULT_NOPAGE)
			break;
	}
	/* The page that was asked for is there when any is. */
	return i ? VM_FAULT_NOPAGE : ret;
}

static vm_fault_t neuron_hbm_fault(struct vm_fault *vmf)
{
	struct neuron_bo *bo = to_neuron_bo(vmf->vma->vm_private_data);
	struct neuron_device *ndev = to_neuron(bo->shmem.base.dev);
	vm_fault_t ret;
	int idx;

	/* Once the chip is gone a program reads zeros instead of dying. */
	if (!drm_dev_enter(&ndev->drm, &idx))
		return vmf_insert_pfn(vmf->vma, vmf->address & PAGE_MASK,
				      page_to_pfn(ndev->dummy));
	ret = neuron_hbm_fault_around(bo, vmf);
	drm_dev_exit(idx);
	return ret;
}

static const struct vm_operations_struct neuron_hbm_vm_ops = {
	.fault = neuron_hbm_fault,
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
};

/* Sharing between devices comes with links between chips. */
static struct dma_buf *neuron_bo_export(struct drm_gem_object *obj, int flags)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static const struct drm_gem_object_funcs neuron_hbm_funcs = {
	.free = neuron_bo_free,
	.export = neuron_bo_export,
	.mmap = neuron_hbm_mmap,
	.vm_ops = &neuron_hbm_vm_ops,
};

static const struct drm_gem_object_funcs neuron_host_funcs = {
	.free = neuron_bo_free,
	.export = neuron_bo_export,
	.print_info = drm_gem_shmem_object_print_info,
	.pin = drm_gem_shmem_object_pin,
	.unpin = drm_gem_shmem_object_unpin,
	.get_sg_table = drm_gem_shmem_object_get_sg_table,
	.mmap = neuron_host_mmap,
	.vm_ops = &drm_gem_shmem_vm_ops,
};

static struct neuron_bo *neuron_bo_new(void)
{
	struct neuron_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);

	if (!bo)
		return NULL;
	INIT_LIST_HEAD(&bo->blocks);
	mutex_init(&bo->lock);
	return bo;
}

/* Called by the shmem helper. */
struct drm_gem_object *neuron_gem_create_object(struct drm_device *dev, size_t size)
{
	struct neuron_bo *bo = neuron_bo_new();

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->flags = DRM_NEURON_BO_HOST;
	bo->shmem.base.funcs = &neuron_host_funcs;
	return &bo->shmem.base;
}

static struct neuron_bo *neuron_bo_create_host(struct neuron_device *ndev, u64 size, u32 flags)
{
	struct drm_gem_shmem_object *shmem;
	struct neuron_bo *bo;

	if (size >> PAGE_SHIFT > totalram_pages())
		return ERR_PTR(-ENOMEM);
	shmem = drm_gem_shmem_create(&ndev->drm, size);
	/* -ENOSPC is for HBM. */
	if (IS_ERR(shmem))
		return shmem == ERR_PTR(-ENOSPC) ? ERR_PTR(-ENOMEM) : ERR_CAST(shmem);
	bo = to_neuron_bo(&shmem->base);
	bo->flags = flags;
	return bo;
}

static struct neuron_bo *neuron_bo_create_hbm(struct neuron_device *ndev, u64 size, u32 flags,
					      u32 mask)
{
	struct neuron_bo *bo = neuron_bo_new();
	int ret;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->flags = flags;
	bo->shmem.base.funcs = &neuron_hbm_funcs;
	drm_gem_private_object_init(&ndev->drm, &bo->shmem.base, size);
	ret = neuron_hbm_alloc(ndev, size, mask, flags & DRM_NEURON_BO_CONTIGUOUS,
			       &bo->blocks, &bo->stack);
	if (!ret)
		ret = neuron_hbm_segs(ndev, bo);
	/* Nobody sees what somebody else left there. */
	if (!ret)
		ret = neuron_copy_clear(ndev, bo);
	if (ret) {
		drm_gem_object_put(&bo->shmem.base);
		return ERR_PTR(ret);
	}
	return bo;
}

static int neuron_bo_create_check(struct neuron_device *ndev,
				  const struct drm_neuron_bo_create *args)
{
	u32 stacks = BIT(ndev->arch->stacks) - 1;

	if (args->flags & ~NEURON_BO_FLAGS || args->pad || !args->size ||
	    args->region_mask & ~stacks)
		return -EINVAL;
	if (args->flags & DRM_NEURON_BO_HOST &&
	    (args->region_mask || args->flags & DRM_NEURON_BO_CONTIGUOUS))
		return -EINVAL;
	/* Beyond any memory, and rounding up would overflow. */
	if (args->size > S64_MAX)
		return args->flags & DRM_NEURON_BO_HOST ? -ENOMEM : -ENOSPC;
	return 0;
}

int neuron_ioctl_bo_create(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct neuron_device *ndev = to_neuron(dev);
	struct drm_neuron_bo_create *args = data;
	u32 mask = args->region_mask ?: BIT(ndev->arch->stacks) - 1;
	struct neuron_bo *bo;
	u64 size;
	int ret;

	ret = neuron_bo_create_check(ndev, args);
	if (ret)
		return ret;
	if (args->flags & DRM_NEURON_BO_HOST) {
		size = PAGE_ALIGN(args->size);
		bo = neuron_bo_create_host(ndev, size, args->flags);
	} else {
		size = ALIGN(args->size, NEURON_HBM_PAGE);
		bo = neuron_bo_create_hbm(ndev, size, args->flags, mask);
	}
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = drm_gem_handle_create(file, &bo->shmem.base, &args->handle);
	drm_gem_object_put(&bo->shmem.base);
	if (!ret)
		args->size = size;
	return ret;
}

int neuron_ioctl_bo_mmap_offset(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_neuron_bo_mmap_offset *args = data;
	struct drm_gem_object *obj;
	int ret = -EACCES;

	if (args->pad)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	if (!(to_neuron_bo(obj)->flags & DRM_NEURON_BO_NO_MMAP))
		ret = drm_gem_create_mmap_offset(obj);
	if (!ret)
		args->offset = drm_vma_node_offset_addr(&obj->vma_node);
	drm_gem_object_put(obj);
	return ret;
}

int neuron_ioctl_bo_info(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_neuron_bo_info *args = data;
	struct drm_gem_object *obj;
	struct neuron_bo *bo;

	if (args->pad)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	bo = to_neuron_bo(obj);
	args->flags = bo->flags;
	args->size = obj->size;
	args->region = neuron_bo_is_host(bo) ? ~0u : bo->stack;
	args->hbm_offset = neuron_bo_is_host(bo) ? 0 : bo->segs[0].addr;
	drm_gem_object_put(obj);
	return 0;
}

/* The reservation of an address space that maps the BO and has jobs, or NULL. */
static struct drm_gem_object *neuron_bo_busy_vm(struct neuron_bo *bo)
{
	struct drm_gem_object *obj = &bo->shmem.base, *found = NULL;
	struct drm_gpuvm_bo *vm_bo;

	dma_resv_lock(obj->resv, NULL);
	drm_gem_for_each_gpuvm_bo(vm_bo, obj) {
		struct drm_gem_object *resv_obj = drm_gpuvm_resv_obj(vm_bo->vm);

		if (!dma_resv_test_signaled(resv_obj->resv, DMA_RESV_USAGE_BOOKKEEP)) {
			drm_gem_object_get(resv_obj);
			found = resv_obj;
			break;
		}
	}
	dma_resv_unlock(obj->resv);
	return found;
}

static long neuron_resv_wait(struct dma_resv *resv, unsigned long timeout)
{
	long ret = dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, true, timeout);

	return ret > 0 ? 0 : ret ?: -ETIME;
}

int neuron_ioctl_bo_wait(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_neuron_bo_wait *args = data;
	struct drm_gem_object *obj, *vm;
	long ret;

	if (args->pad)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	ret = neuron_resv_wait(obj->resv, drm_timeout_abs_to_jiffies(args->timeout_ns));
	/* Programs reach it through an address space: any job there may use it. */
	while (!ret && (vm = neuron_bo_busy_vm(to_neuron_bo(obj)))) {
		ret = neuron_resv_wait(vm->resv, drm_timeout_abs_to_jiffies(args->timeout_ns));
		drm_gem_object_put(vm);
	}
	drm_gem_object_put(obj);
	return ret;
}
