/* SPDX-License-Identifier: MIT */
/* Inside the drm back-end. */
#ifndef LIBNRT_DEVICE_DRM_H
#define LIBNRT_DEVICE_DRM_H

#include "device.h"
#include "va.h"

#define DRM_MAX_STACKS	8
#define DRM_ERROR_RING	32

/**
 * struct dev_drm - one chip
 * @base: first
 * @fd: accel node
 * @vm_id: the process's address space
 * @copy_ctx: context of copies
 * @page_size: smallest mapping
 * @va: addresses of @vm_id
 */
struct dev_drm {
	struct dev base;
	int fd;
	uint32_t vm_id;
	uint32_t copy_ctx;
	uint32_t page_size;
	struct va_space va;
};

struct bo_drm {
	struct dev_bo base;
	uint32_t handle;
};

struct dev_ctx {
	struct dev_drm *dev;
	uint32_t id;
};

static inline struct dev_drm *to_drm(struct dev *dev)
{
	return (struct dev_drm *)dev;
}

/* 0 or -errno */
int drm_ioctl(struct dev_drm *d, unsigned long request, void *arg);

int drm_copy(struct dev *dev, struct dev_loc dst, struct dev_loc src, size_t size,
	     const struct dev_sync *sync);
int drm_fill(struct dev *dev, struct dev_bo *bo, size_t offset, size_t size,
	     uint32_t pattern, const struct dev_sync *sync);
int drm_exec(struct dev_ctx *ctx, const struct dev_exec *exec, const struct dev_sync *sync);
int drm_timeline_create(struct dev *dev, struct dev_timeline **timeline);
void drm_timeline_destroy(struct dev_timeline *timeline);
int drm_wait(struct dev_point point, int64_t timeout_ns);

#endif /* LIBNRT_DEVICE_DRM_H */
