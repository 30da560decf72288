// SPDX-License-Identifier: GPL-2.0
/*
 * COPY and FILL: cut into pieces, each of which holds the memory it moves. User
 * memory is pinned piece by piece, so that a long copy runs while the next part
 * of it is being pinned.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"

#define NEURON_PIN_BYTES	SZ_1M

static struct neuron_piece *to_piece(struct neuron_job *job)
{
	return container_of(job, struct neuron_piece, job);
}

static int neuron_piece_run(struct neuron_job *job)
{
	struct neuron_piece *piece = to_piece(job);
	struct neuron_udmaq *q = job->ctx->queue;
	int ret, idx;

	/* An earlier piece of the same copy may have been lost. */
	if (piece->follows && READ_ONCE(q->failures) != piece->failures)
		return -EIO;
	if (!drm_dev_enter(&q->ndev->drm, &idx))
		return -ENODEV;
	ret = neuron_udmaq_post(q, piece, job->fence);
	drm_dev_exit(idx);
	return ret;
}

static void neuron_piece_unpin(struct device *dev, struct neuron_piece *piece)
{
	if (piece->mapped) {
		dma_unmap_sgtable(dev, &piece->sgt, piece->dir, 0);
		sg_free_table(&piece->sgt);
	}
	if (piece->npages)
		unpin_user_pages_dirty_lock(piece->pages, piece->npages,
					    piece->dir == DMA_FROM_DEVICE);
	kvfree(piece->pages);
}

static void neuron_piece_destroy(struct neuron_piece *piece, struct device *dev)
{
	neuron_piece_unpin(dev, piece);
	if (piece->pattern) {
		dma_unmap_single(dev, piece->pattern_dma, piece->pattern_size, DMA_TO_DEVICE);
		kfree(piece->pattern);
	}
	if (piece->dst)
		drm_gem_object_put(piece->dst);
	if (piece->src)
		drm_gem_object_put(piece->src);
	kvfree(piece->xfer);
	kfree(piece);
}

static void neuron_piece_free(struct neuron_job *job)
{
	neuron_piece_destroy(to_piece(job), job->ctx->ndev->drm.dev);
}

static const struct neuron_job_ops neuron_piece_ops = {
	.run = neuron_piece_run,
	.free = neuron_piece_free,
};

static int neuron_piece_pin(struct neuron_piece *piece, struct device *dev, u64 addr, u64 size,
			    bool write)
{
	unsigned int offset = offset_in_page(addr);
	unsigned int n = DIV_ROUND_UP(offset + size, PAGE_SIZE);
	int ret;

	piece->dir = write ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	piece->pages = kvmalloc_array(n, sizeof(*piece->pages), GFP_KERNEL);
	if (!piece->pages)
		return -ENOMEM;
	ret = pin_user_pages_fast(addr & PAGE_MASK, n, write ? FOLL_WRITE : 0, piece->pages);
	if (ret < 0)
		return ret;
	piece->npages = ret;
	if (ret != n)
		return -EFAULT;
	ret = sg_alloc_table_from_pages(&piece->sgt, piece->pages, n, offset, size, GFP_KERNEL);
	if (ret)
		return ret;
	ret = dma_map_sgtable(dev, &piece->sgt, piece->dir, 0);
	if (ret) {
		sg_free_table(&piece->sgt);
		return ret;
	}
	piece->mapped = true;
	return 0;
}

static int neuron_piece_pattern(struct neuron_piece *piece, struct device *dev, u64 size,
				u32 pattern)
{
	size_t bytes = min_t(u64, size, NEURON_UDMA_DESC_MAX_LEN);
	__le32 *buf = kmalloc(bytes, GFP_KERNEL);
	dma_addr_t dma;

	if (!buf)
		return -ENOMEM;
	memset32((u32 *)buf, (__force u32)cpu_to_le32(pattern), bytes / sizeof(*buf));
	dma = dma_map_single(dev, buf, bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(dev, dma)) {
		kfree(buf);
		return -ENOMEM;
	}
	piece->pattern = buf;
	piece->pattern_dma = dma;
	piece->pattern_size = bytes;
	return 0;
}

/* Where the next bytes of user memory are. */
struct neuron_sg_pos {
	struct scatterlist *sg;
	u64 offset;
};

static u64 neuron_sg_next(struct neuron_device *ndev, struct neuron_sg_pos *pos, u64 *dpa)
{
	while (pos->sg && pos->offset >= sg_dma_len(pos->sg)) {
		pos->offset -= sg_dma_len(pos->sg);
		pos->sg = sg_next(pos->sg);
	}
	*dpa = neuron_host_dpa(ndev, sg_dma_address(pos->sg) + pos->offset);
	return sg_dma_len(pos->sg) - pos->offset;
}

static u64 neuron_copy_src(struct neuron_copy *copy, struct neuron_piece *piece,
			   struct neuron_sg_pos *pos, u64 *dpa)
{
	struct neuron_device *ndev = copy->ctx->ndev;

	if (copy->src)
		return neuron_bo_dpa(to_neuron_bo(copy->src), copy->src_addr, dpa);
	if (!copy->fill)
		return neuron_sg_next(ndev, pos, dpa);
	if (!piece->pattern) {
		*dpa = neuron_host_dpa(ndev, ndev->zeros_dma);
		return NEURON_UDMA_DESC_MAX_LEN;
	}
	*dpa = neuron_host_dpa(ndev, piece->pattern_dma);
	return piece->pattern_size;
}

static void neuron_copy_build(struct neuron_copy *copy, struct neuron_piece *piece, u64 bytes)
{
	struct neuron_sg_pos pos = { .sg = piece->sgt.sgl };

	while (bytes && piece->count < piece->room) {
		struct neuron_xfer *x = &piece->xfer[piece->count];
		u64 len = min_t(u64, bytes, NEURON_UDMA_DESC_MAX_LEN);

		len = min(len, neuron_copy_src(copy, piece, &pos, &x->src));
		if (copy->dst)
			len = min(len, neuron_bo_dpa(to_neuron_bo(copy->dst), copy->dst_addr,
						     &x->dst));
		else
			len = min(len, neuron_sg_next(copy->ctx->ndev, &pos, &x->dst));
		x->len = len;
		piece->count++;
		pos.offset += len;
		copy->dst_addr += len;
		copy->src_addr += copy->fill ? 0 : len;
		copy->left -= len;
		bytes -= len;
	}
}

static int neuron_piece_fill_in(struct neuron_copy *copy, struct neuron_piece *piece)
{
	struct device *dev = copy->ctx->ndev->drm.dev;
	bool from_user = !copy->src && !copy->fill;
	u64 bytes = min_t(u64, copy->left, (u64)NEURON_PIECE_XFERS * NEURON_UDMA_DESC_MAX_LEN);
	unsigned int n;
	int ret = 0;

	if (!copy->started)
		copy->failures = READ_ONCE(copy->ctx->queue->failures);
	piece->failures = copy->failures;
	piece->follows = copy->started;
	copy->started = true;
	/* The kernel waits for what it copies itself. */
	if (copy->dst && copy->file) {
		drm_gem_object_get(copy->dst);
		piece->dst = copy->dst;
	}
	if (copy->src) {
		drm_gem_object_get(copy->src);
		piece->src = copy->src;
	}
	if (!copy->dst || from_user) {
		bytes = min_t(u64, bytes, NEURON_PIN_BYTES);
		ret = neuron_piece_pin(piece, dev, from_user ? copy->src_addr : copy->dst_addr,
				       bytes, !from_user);
	} else if (copy->fill && copy->pattern) {
		ret = neuron_piece_pattern(piece, dev, bytes, copy->pattern);
	}
	if (ret)
		return ret;
	/* A small copy takes few descriptors whatever memory it is between. */
	n = min_t(u64, NEURON_PIECE_XFERS, 2 * (bytes / PAGE_SIZE + 2));
	piece->xfer = kvmalloc_array(n, sizeof(*piece->xfer), GFP_KERNEL);
	if (!piece->xfer)
		return -ENOMEM;
	piece->room = n;
	neuron_copy_build(copy, piece, bytes);
	return 0;
}

/**
 * neuron_copy_next() - make the next piece of a copy
 * @copy: with bytes left
 *
 * Context: the process whose user memory is copied.
 * Return: a job that neuron_job_free() or the scheduler frees, or an error.
 */
struct neuron_job *neuron_copy_next(struct neuron_copy *copy)
{
	struct neuron_piece *piece = kzalloc(sizeof(*piece), GFP_KERNEL);
	int ret;

	if (!piece)
		return ERR_PTR(-ENOMEM);
	ret = neuron_piece_fill_in(copy, piece);
	if (!ret)
		ret = neuron_job_init(&piece->job, &neuron_piece_ops, copy->ctx,
				      &copy->ctx->copy, piece->count + 1, copy->file);
	if (ret) {
		neuron_piece_destroy(piece, copy->ctx->ndev->drm.dev);
		return ERR_PTR(ret);
	}
	return &piece->job;
}

static int neuron_mem_parse(struct drm_file *file, const struct drm_neuron_mem *mem, u64 size,
			    struct drm_gem_object **obj, u64 *addr)
{
	*addr = mem->addr;
	if (mem->type == DRM_NEURON_MEM_USER) {
		if (mem->handle)
			return -EINVAL;
		if (mem->addr != untagged_addr(mem->addr) ||
		    !access_ok(u64_to_user_ptr(mem->addr), size))
			return -EFAULT;
		return 0;
	}
	if (mem->type != DRM_NEURON_MEM_BO)
		return -EINVAL;
	*obj = drm_gem_object_lookup(file, mem->handle);
	if (!*obj)
		return -ENOENT;
	if (mem->addr > (*obj)->size || size > (*obj)->size - mem->addr)
		return -EINVAL;
	return neuron_bo_pin(to_neuron_bo(*obj));
}

/**
 * neuron_copy_parse() - check what user space wants copied
 * @copy: filled; neuron_copy_put() it also after an error
 * @ctx: context
 * @file: who submits it
 * @args: copied from user space
 * @fill: FILL, else COPY
 *
 * Return: 0 or an error.
 */
int neuron_copy_parse(struct neuron_copy *copy, struct neuron_ctx *ctx, struct drm_file *file,
		      const struct drm_neuron_copy *args, bool fill)
{
	int ret;

	copy->ctx = ctx;
	copy->file = file;
	copy->left = args->size;
	copy->fill = fill;
	copy->pattern = args->pattern;
	if (!args->size || args->pad)
		return -EINVAL;
	if (fill && (args->dst.type != DRM_NEURON_MEM_BO || args->size % 4 || args->dst.addr % 4 ||
		     args->src.type || args->src.handle || args->src.addr))
		return -EINVAL;
	if (!fill && (args->pattern || (args->dst.type == DRM_NEURON_MEM_USER &&
					args->src.type == DRM_NEURON_MEM_USER)))
		return -EINVAL;
	ret = neuron_mem_parse(file, &args->dst, args->size, &copy->dst, &copy->dst_addr);
	if (ret || fill)
		return ret;
	return neuron_mem_parse(file, &args->src, args->size, &copy->src, &copy->src_addr);
}

void neuron_copy_put(struct neuron_copy *copy)
{
	if (copy->dst)
		drm_gem_object_put(copy->dst);
	if (copy->src)
		drm_gem_object_put(copy->src);
	copy->dst = NULL;
	copy->src = NULL;
}

/**
 * neuron_copy_clear() - zero a new BO
 * @ndev: chip
 * @bo: HBM that nobody else knows
 *
 * Return: 0 or an error; nothing moves any more.
 */
int neuron_copy_clear(struct neuron_device *ndev, struct neuron_bo *bo)
{
	struct neuron_copy copy = {
		.ctx = ndev->kctx,
		.dst = &bo->shmem.base,
		.left = bo->shmem.base.size,
		.fill = true,
	};
	struct dma_fence *last = NULL, *done;
	struct neuron_job *job;
	int ret = 0;

	mutex_lock(&ndev->kctx->submit_lock);
	while (copy.left && !ret) {
		if (ndev->kctx->dead) {
			ret = -ENODEV;
			break;
		}
		job = neuron_copy_next(&copy);
		if (IS_ERR(job)) {
			ret = PTR_ERR(job);
			break;
		}
		done = neuron_job_arm(job);
		dma_fence_put(last);
		last = dma_fence_get(done);
		neuron_job_push(job);
	}
	mutex_unlock(&ndev->kctx->submit_lock);
	if (!last)
		return ret;
	/* Ends in any case: the watchdog sees to it. No piece runs after the last. */
	dma_fence_wait(last, false);
	if (!ret && last->error)
		ret = last->error == -ENODEV ? -ENODEV : -EIO;
	dma_fence_put(last);
	return ret;
}
