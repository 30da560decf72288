/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NEURON_GEM_H
#define NEURON_GEM_H

#include <drm/drm_gem_shmem_helper.h>

#include "neuron_device.h"

/**
 * struct neuron_seg - a contiguous part of a BO
 * @offset: first byte in the BO; the part ends where the next one begins
 * @addr: HBM: offset in BAR4; host: bus address
 */
struct neuron_seg {
	u64 offset;
	u64 addr;
};

/**
 * struct neuron_bo - memory that the chip can address
 * @shmem: host memory; of an HBM BO only the GEM object in it is used
 * @flags: DRM_NEURON_BO_*
 * @stack: HBM stack
 * @blocks: HBM: struct gpu_buddy_block
 * @lock: protects @segs of host memory; the reservation protects the mappings
 * @segs: where it is; host memory: NULL until pinned
 * @nsegs: number of them
 */
struct neuron_bo {
	struct drm_gem_shmem_object shmem;
	u32 flags;
	unsigned int stack;
	struct list_head blocks;
	struct mutex lock; /* see above */
	struct neuron_seg *segs;
	unsigned int nsegs;
};

static inline struct neuron_bo *to_neuron_bo(struct drm_gem_object *obj)
{
	return container_of(to_drm_gem_shmem_obj(obj), struct neuron_bo, shmem);
}

static inline bool neuron_bo_is_host(const struct neuron_bo *bo)
{
	return bo->flags & DRM_NEURON_BO_HOST;
}

struct drm_gem_object *neuron_gem_create_object(struct drm_device *dev, size_t size);
int neuron_bo_pin(struct neuron_bo *bo);
u64 neuron_bo_seg(const struct neuron_bo *bo, u64 offset, u64 *addr);
u64 neuron_bo_dpa(const struct neuron_bo *bo, u64 offset, u64 *dpa);

int neuron_ioctl_bo_create(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_bo_mmap_offset(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_bo_info(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_bo_wait(struct drm_device *dev, void *data, struct drm_file *file);

#endif /* NEURON_GEM_H */
