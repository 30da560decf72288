/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels, the only place that has them. HAVE_* comes from
 * conftest.sh.
 */
#ifndef NEURON_COMPAT_H
#define NEURON_COMPAT_H

#include <linux/hrtimer.h>

#ifdef HAVE_GPU_BUDDY
#include <linux/gpu_buddy.h>
#else
#include <drm/drm_buddy.h>
#define gpu_buddy			drm_buddy
#define gpu_buddy_block			drm_buddy_block
#define gpu_buddy_init			drm_buddy_init
#define gpu_buddy_fini			drm_buddy_fini
#define gpu_buddy_alloc_blocks		drm_buddy_alloc_blocks
#define gpu_buddy_free_list		drm_buddy_free_list
#define gpu_buddy_block_offset		drm_buddy_block_offset
#define gpu_buddy_block_size		drm_buddy_block_size
#define GPU_BUDDY_CONTIGUOUS_ALLOCATION	DRM_BUDDY_CONTIGUOUS_ALLOCATION
#endif

#ifndef HAVE_GPUVM_BO_OBTAIN_LOCKED
#define drm_gpuvm_bo_obtain_locked	drm_gpuvm_bo_obtain
#endif

#ifndef HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#endif /* NEURON_COMPAT_H */
