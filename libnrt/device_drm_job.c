// SPDX-License-Identifier: MIT
/* The drm back-end: jobs and waiting for them. */
#include <errno.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>

#include "device_drm.h"
#include "drm/neuron_accel.h"

/**
 * struct dev_timeline - timeline syncobj
 * @dev: chip
 * @handle: of the syncobj
 * @lock: guards @value and @binary
 * @value: by ring place: point whose fence @binary holds
 * @binary: syncobjs that the newest jobs signal too. A timeline drops the errors of
 *	its fences; a sync_file of these has them
 */
struct dev_timeline {
	struct dev_drm *dev;
	uint32_t handle;
	pthread_mutex_t lock;
	uint64_t value[DRM_ERROR_RING];
	uint32_t binary[DRM_ERROR_RING];
};

int drm_timeline_create(struct dev *dev, struct dev_timeline **out)
{
	struct dev_drm *d = to_drm(dev);
	struct dev_timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->dev = d;
	pthread_mutex_init(&t->lock, NULL);
	if (drmSyncobjCreate(d->fd, 0, &t->handle))
		goto err;
	for (int i = 0; i < DRM_ERROR_RING; i++)
		if (drmSyncobjCreate(d->fd, 0, &t->binary[i]))
			goto err;
	*out = t;
	return 0;
err:
	drm_timeline_destroy(t);
	return -ENOMEM;
}

void drm_timeline_destroy(struct dev_timeline *t)
{
	for (int i = 0; i < DRM_ERROR_RING; i++)
		if (t->binary[i])
			drmSyncobjDestroy(t->dev->fd, t->binary[i]);
	if (t->handle)
		drmSyncobjDestroy(t->dev->fd, t->handle);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- waiting ------------------------------------------------------------------------ */

/* A sync_file of the job that signals @point, or -1: too old, or none. */
static int export_fence(struct dev_point point)
{
	struct dev_timeline *t = point.timeline;
	unsigned int i = point.value % DRM_ERROR_RING;
	int fd = -1;

	pthread_mutex_lock(&t->lock);
	if (t->value[i] == point.value &&
	    drmSyncobjExportSyncFile(t->dev->fd, t->binary[i], &fd))
		fd = -1;
	pthread_mutex_unlock(&t->lock);
	return fd;
}

static int64_t deadline(int64_t timeout_ns)
{
	struct timespec now;

	if (timeout_ns < 0)
		return INT64_MAX;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (__builtin_add_overflow(now.tv_sec * 1000000000ll + now.tv_nsec, timeout_ns, &timeout_ns))
		return INT64_MAX;
	return timeout_ns;
}

static int wait_timeline(struct dev_point point, int64_t timeout_ns)
{
	struct dev_timeline *t = point.timeline;

	/* libdrm returns -errno here. */
	return drmSyncobjTimelineWait(t->dev->fd, &t->handle, &point.value, 1,
				      deadline(timeout_ns),
				      DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, NULL);
}

/* Status of a signalled fence: 1 fine, negative the job's error. */
static int fence_error(int fd)
{
	struct sync_file_info info = { 0 };

	if (ioctl(fd, SYNC_IOC_FILE_INFO, &info) || info.status >= 0)
		return 0;
	/* Driver: -ETIME is a hang; this interface: -ETIME is "not yet". */
	return info.status == -ETIME ? -ETIMEDOUT : info.status;
}

int drm_wait(struct dev_point point, int64_t timeout_ns)
{
	int fd, ret;

	if (!point.timeline)
		return 0;
	fd = export_fence(point);
	ret = wait_timeline(point, timeout_ns);
	if (fd < 0 && !ret)	/* it was submitted meanwhile */
		fd = export_fence(point);
	if (fd < 0)
		return ret;
	if (!ret)
		ret = fence_error(fd);
	close(fd);
	return ret;
}

/* ---- jobs --------------------------------------------------------------------------------- */

/* Submit one job with its syncs. */
static int submit(struct dev_drm *d, uint32_t ctx, struct drm_neuron_job *job,
		  const struct dev_sync *sync)
{
	unsigned int waits = sync ? sync->wait_count : 0, count = 0;
	struct dev_timeline *t = sync ? sync->signal.timeline : NULL;
	struct drm_neuron_submit arg = { .ctx_id = ctx, .jobs = DRM_NEURON_OBJ_ARRAY(1, job) };
	struct drm_neuron_sync_op *ops = calloc(waits + 2, sizeof(*ops));
	int ret;

	if (!ops)
		return -ENOMEM;
	for (unsigned int i = 0; i < waits; i++) {
		if (!sync->wait[i].timeline)
			continue;
		ops[count].flags = DRM_NEURON_SYNC_TIMELINE;
		ops[count].handle = sync->wait[i].timeline->handle;
		ops[count++].point = sync->wait[i].value;
	}
	if (t) {
		unsigned int i = sync->signal.value % DRM_ERROR_RING;

		ops[count].flags = DRM_NEURON_SYNC_SIGNAL | DRM_NEURON_SYNC_TIMELINE;
		ops[count].handle = t->handle;
		ops[count++].point = sync->signal.value;
		ops[count].flags = DRM_NEURON_SYNC_SIGNAL;
		ops[count++].handle = t->binary[i];
		pthread_mutex_lock(&t->lock);
	}
	job->syncs = (struct drm_neuron_obj_array)DRM_NEURON_OBJ_ARRAY(count, ops);
	ret = drm_ioctl(d, DRM_IOCTL_NEURON_SUBMIT, &arg);
	if (t) {
		if (!ret)
			t->value[sync->signal.value % DRM_ERROR_RING] = sync->signal.value;
		pthread_mutex_unlock(&t->lock);
	}
	free(ops);
	return ret;
}

static struct drm_neuron_mem mem_of(struct dev_loc loc)
{
	if (loc.bo)
		return (struct drm_neuron_mem){ .type = DRM_NEURON_MEM_BO,
						.handle = ((struct bo_drm *)loc.bo)->handle,
						.addr = loc.offset };
	return (struct drm_neuron_mem){ .type = DRM_NEURON_MEM_USER, .addr = (uintptr_t)loc.ptr };
}

int drm_copy(struct dev *dev, struct dev_loc dst, struct dev_loc src, size_t size,
	     const struct dev_sync *sync)
{
	struct dev_drm *d = to_drm(dev);
	struct drm_neuron_job job = { .type = DRM_NEURON_JOB_COPY };

	job.copy.dst = mem_of(dst);
	job.copy.src = mem_of(src);
	job.copy.size = size;
	return submit(d, d->copy_ctx, &job, sync);
}

int drm_fill(struct dev *dev, struct dev_bo *bo, size_t offset, size_t size,
	     uint32_t pattern, const struct dev_sync *sync)
{
	struct dev_drm *d = to_drm(dev);
	struct drm_neuron_job job = { .type = DRM_NEURON_JOB_FILL };

	job.copy.dst = mem_of((struct dev_loc){ .bo = bo, .offset = offset });
	job.copy.size = size;
	job.copy.pattern = pattern;
	return submit(d, d->copy_ctx, &job, sync);
}

int drm_exec(struct dev_ctx *ctx, const struct dev_exec *e, const struct dev_sync *sync)
{
	struct drm_neuron_job job = { .type = DRM_NEURON_JOB_EXEC };

	job.exec = (struct drm_neuron_exec){
		.program_va = e->program_va,
		.args_va = e->args_va,
		.arg_count = e->arg_count,
		.flags = e->flags,
		.result_va = e->result_va,
		.fence_va = e->fence_va,
		.fence_value = e->fence_value,
		.trace_va = e->trace_va,
		.trace_size = e->trace_size,
		.seed = e->seed,
		.core_mask = e->core_mask,
	};
	return submit(ctx->dev, ctx->id, &job, sync);
}
