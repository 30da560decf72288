// SPDX-License-Identifier: GPL-2.0
/*
 * HBM: one buddy allocator for each stack.
 */
#include <drm/drm_print.h>

#include "neuron_device.h"

int neuron_hbm_init(struct neuron_device *ndev)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ndev->arch->stacks; i++) {
		struct neuron_hbm *hbm = &ndev->hbm[i];

		ret = gpu_buddy_init(&hbm->mm, hbm->size, NEURON_HBM_PAGE);
		if (ret)
			return ret;
		hbm->ready = true;
	}
	return 0;
}

void neuron_hbm_fini(struct neuron_device *ndev)
{
	unsigned int i;

	for (i = 0; i < NEURON_MAX_STACKS; i++) {
		if (!ndev->hbm[i].ready)
			continue;
		drm_WARN_ON(&ndev->drm, ndev->hbm[i].used);
		gpu_buddy_fini(&ndev->hbm[i].mm);
	}
}

/* The stack of @mask with most free space. */
static int neuron_hbm_pick(struct neuron_device *ndev, u32 mask)
{
	u64 most = 0;
	int best = -1;
	unsigned int i;

	for (i = 0; i < ndev->arch->stacks; i++) {
		u64 avail = ndev->hbm[i].size - ndev->hbm[i].used;

		if ((mask & BIT(i)) && (best < 0 || avail > most)) {
			best = i;
			most = avail;
		}
	}
	return best;
}

static int neuron_hbm_alloc_stack(struct neuron_hbm *hbm, u64 size, bool contiguous,
				  struct list_head *blocks)
{
	unsigned long flags = contiguous ? GPU_BUDDY_CONTIGUOUS_ALLOCATION : 0;
	int ret;

	if (size > hbm->size - hbm->used)
		return -ENOSPC;
	/* 2 MiB blocks make 2 MiB translations; if there are none left, smaller ones do. */
	if (!contiguous && IS_ALIGNED(size, SZ_2M)) {
		ret = gpu_buddy_alloc_blocks(&hbm->mm, 0, hbm->size, size, SZ_2M, blocks, 0);
		if (ret != -ENOSPC)
			return ret;
	}
	ret = gpu_buddy_alloc_blocks(&hbm->mm, 0, hbm->size, size, NEURON_HBM_PAGE, blocks,
				     flags);
	/* What the allocator rounds up beyond the stack's size is no user error. */
	return ret == -EINVAL ? -ENOSPC : ret;
}

/**
 * neuron_hbm_alloc() - allocate from one stack
 * @ndev: chip
 * @size: bytes, multiple of NEURON_HBM_PAGE
 * @mask: stacks that may be used
 * @contiguous: one range
 * @blocks: filled with struct gpu_buddy_block
 * @stack: out: which one
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int neuron_hbm_alloc(struct neuron_device *ndev, u64 size, u32 mask, bool contiguous,
		     struct list_head *blocks, unsigned int *stack)
{
	int i, ret = -ENOSPC;

	mutex_lock(&ndev->hbm_lock);
	while (mask) {
		i = neuron_hbm_pick(ndev, mask);
		if (i < 0)
			break;
		ret = neuron_hbm_alloc_stack(&ndev->hbm[i], size, contiguous, blocks);
		if (!ret) {
			ndev->hbm[i].used += size;
			*stack = i;
			break;
		}
		if (ret != -ENOSPC)
			break;
		mask &= ~BIT(i);
	}
	mutex_unlock(&ndev->hbm_lock);
	return ret;
}

void neuron_hbm_free(struct neuron_device *ndev, struct list_head *blocks, u64 size,
		     unsigned int stack)
{
	mutex_lock(&ndev->hbm_lock);
	gpu_buddy_free_list(&ndev->hbm[stack].mm, blocks, 0);
	ndev->hbm[stack].used -= size;
	mutex_unlock(&ndev->hbm_lock);
}

/* Device physical address, for descriptors, of an offset in BAR4. */
u64 neuron_hbm_dpa(const struct neuron_device *ndev, u64 offset)
{
	u64 in_stack;
	u64 stack = div64_u64_rem(offset, ndev->stack_stride, &in_stack);

	if (neuron_is_v2(ndev))
		return NEURON_V2_HBM_DPA(stack) + in_stack;
	return NEURON_V3_HBM_DPA(stack) + in_stack;
}

void neuron_hbm_usage(struct neuron_device *ndev, u64 *total, u64 *used)
{
	unsigned int i;

	*total = 0;
	*used = 0;
	mutex_lock(&ndev->hbm_lock);
	for (i = 0; i < ndev->arch->stacks; i++) {
		*total += ndev->hbm[i].size;
		*used += ndev->hbm[i].used;
	}
	mutex_unlock(&ndev->hbm_lock);
}
