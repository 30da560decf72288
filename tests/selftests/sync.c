// SPDX-License-Identifier: MIT
/* Waits and signals of jobs: binary and timeline syncobjs. */
#include "kselftest_harness.h"

#include "drv.h"

FIXTURE(sync) {
	int fd;
	uint32_t a, b;		/* contexts; their copies are not ordered */
	uint32_t bo;
	uint32_t *mem;
};

FIXTURE_SETUP(sync)
{
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &self->a));
	ASSERT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &self->b));
	ASSERT_EQ(0, drv_bo(self->fd, 16 * MIB, 0, &self->bo));
	self->mem = drv_map(self->fd, self->bo, 16 * MIB);
	ASSERT_NE(MAP_FAILED, self->mem);
}

FIXTURE_TEARDOWN(sync)
{
	close(self->fd);
}

static struct drm_neuron_sync_op signal_op(uint32_t handle, uint64_t point)
{
	return (struct drm_neuron_sync_op) {
		.flags = DRM_NEURON_SYNC_SIGNAL | (point ? DRM_NEURON_SYNC_TIMELINE : 0),
		.handle = handle, .point = point,
	};
}

static struct drm_neuron_sync_op wait_op(uint32_t handle, uint64_t point)
{
	return (struct drm_neuron_sync_op) {
		.flags = point ? DRM_NEURON_SYNC_TIMELINE : 0, .handle = handle, .point = point,
	};
}

static int wait_point(int fd, uint32_t handle, uint64_t point)
{
	return drmSyncobjTimelineWait(fd, &handle, &point, 1, drv_now() + 10000000000ll,
				      DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, NULL);
}

TEST_F(sync, bad_arguments)
{
	struct drm_neuron_job job = drv_fill(self->bo, 0, 4, 1);
	struct drm_neuron_sync_op op;
	uint32_t s;

	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &s));
#define BAD(err, value, change) do {						\
		op = value;							\
		change;								\
		drv_syncs(&job, &op, 1);					\
		EXPECT_EQ(err, drv_submit(self->fd, self->a, &job, 1))		\
			TH_LOG(#value " " #change);				\
	} while (0)
	BAD(-EINVAL, wait_op(s, 0), );		/* no fence yet */
	BAD(-EINVAL, wait_op(s, 1), );
	BAD(-EINVAL, wait_op(s, 0), op.point = 1);
	BAD(-EINVAL, signal_op(s, 1), op.point = 0);
	BAD(-EINVAL, signal_op(s, 0), op.point = 5);
	BAD(-EINVAL, signal_op(s, 0), op.flags |= 2);
	BAD(-EINVAL, signal_op(s, 0), op.flags |= 1u << 30);
	BAD(-ENOENT, signal_op(0x7fffffff, 0), );
	BAD(-ENOENT, wait_op(0x7fffffff, 0), );
	BAD(-EINVAL, signal_op(s, 0), (drv_syncs(&job, &op, 1), job.syncs.count = 1 << 20,
				       op.flags = 1u << 30));
#undef BAD
	op = signal_op(s, 0);
	drv_syncs(&job, &op, 1);
	job.syncs.stride = 8;
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->a, &job, 1));
	drv_syncs(&job, &op, 1);
	job.syncs.array = 8;
	EXPECT_EQ(-EFAULT, drv_submit(self->fd, self->a, &job, 1));
	drv_syncs(&job, &op, 1);
	job.syncs.count = 1000;
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->a, &job, 1));
	usleep(20000);
	EXPECT_EQ(0, self->mem[0]);
}

TEST_F(sync, contexts_wait_for_each_other)
{
	struct drm_neuron_sync_op op[2];
	struct drm_neuron_job job;
	uint32_t s, t, i;

	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &s));
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &t));
	for (i = 1; i <= 10; i++) {
		/* The long one first; the short one overwrites a part of it. */
		job = drv_fill(self->bo, 0, 16 * MIB, i);
		op[0] = signal_op(s, 0);
		drv_syncs(&job, op, 1);
		ASSERT_EQ(0, drv_submit(self->fd, self->a, &job, 1));
		job = drv_fill(self->bo, 16 * MIB - 64, 64, 100 + i);
		op[0] = wait_op(s, 0);
		op[1] = signal_op(t, 0);
		drv_syncs(&job, op, 2);
		ASSERT_EQ(0, drv_submit(self->fd, self->b, &job, 1));
		ASSERT_EQ(0, drv_wait(self->fd, t, 10000));
		EXPECT_EQ(i, self->mem[0]);
		EXPECT_EQ(100 + i, self->mem[4 * MIB - 1]);
	}
}

TEST_F(sync, timeline_points)
{
	struct drm_neuron_sync_op op[2];
	struct drm_neuron_job job;
	uint64_t value = 0;
	uint32_t s, i;

	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &s));
	for (i = 1; i <= 20; i++) {
		job = drv_fill(self->bo, 0, i % 2 ? 8 * MIB : 64, i);
		op[0] = signal_op(s, i);
		op[1] = wait_op(s, i - 1);
		drv_syncs(&job, op, i > 1 ? 2 : 1);
		ASSERT_EQ(0, drv_submit(self->fd, i % 2 ? self->a : self->b, &job, 1));
	}
	ASSERT_EQ(0, wait_point(self->fd, s, 20));
	EXPECT_EQ(20, self->mem[0]);
	EXPECT_EQ(19, self->mem[MIB]);
	ASSERT_EQ(0, drmSyncobjQuery(self->fd, &s, &value, 1));
	EXPECT_EQ(20, value);
}

TEST_F(sync, jobs_of_one_submit_wait_for_each_other)
{
	struct drm_neuron_sync_op op[4];
	struct drm_neuron_job jobs[3];
	uint32_t s, t;

	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &s));
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &t));
	jobs[0] = drv_fill(self->bo, 0, 16 * MIB, 1);
	op[0] = signal_op(s, 7);
	drv_syncs(&jobs[0], &op[0], 1);
	jobs[1] = drv_fill(self->bo, 0, 64, 2);
	op[1] = wait_op(s, 5);		/* point 7 reaches it */
	op[2] = signal_op(t, 0);
	drv_syncs(&jobs[1], &op[1], 2);
	jobs[2] = drv_fill(self->bo, 0, 4, 3);
	op[3] = wait_op(t, 0);
	drv_syncs(&jobs[2], &op[3], 1);
	ASSERT_EQ(0, drv_submit(self->fd, self->a, jobs, 3));
	ASSERT_EQ(0, drv_bo_wait(self->fd, self->bo, INT64_MAX));
	EXPECT_EQ(3, self->mem[0]);
	EXPECT_EQ(2, self->mem[1]);
	EXPECT_EQ(1, self->mem[16]);
	/* A later job's signal is none of an earlier one's. */
	ASSERT_EQ(0, drmSyncobjReset(self->fd, &t, 1));
	drv_syncs(&jobs[0], &op[3], 1);
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->a, jobs, 2));
}

TEST_F(sync, a_failed_submit_signals_nothing)
{
	struct drm_neuron_sync_op op;
	struct drm_neuron_job jobs[2];
	uint32_t s;

	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &s));
	jobs[0] = drv_fill(self->bo, 0, 4, 1);
	op = signal_op(s, 0);
	drv_syncs(&jobs[0], &op, 1);
	jobs[1] = drv_fill(self->bo, 0, 4, 1);
	jobs[1].copy.size = 3;
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->a, jobs, 2));
	/* No fence: waiting for it is an error. */
	EXPECT_EQ(-EINVAL, drv_wait(self->fd, s, 0));
}

TEST_F(sync, a_queue_of_waiting_jobs_is_cancelled)
{
	struct drm_neuron_sync_op op[2];
	struct drm_neuron_job job;
	uint32_t s, i;

	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &s));
	for (i = 1; i <= 50; i++) {
		job = drv_fill(self->bo, 0, 16 * MIB, i);
		op[0] = signal_op(s, i);
		op[1] = wait_op(s, i - 1);
		drv_syncs(&job, op, i > 1 ? 2 : 1);
		ASSERT_EQ(0, drv_submit(self->fd, i % 2 ? self->a : self->b, &job, 1));
	}
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, self->a));
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, self->b));
	ASSERT_EQ(0, wait_point(self->fd, s, 50));
	EXPECT_EQ(0, drv_bo_wait(self->fd, self->bo, drv_now() + 5000000000ll));
}

TEST_HARNESS_MAIN
