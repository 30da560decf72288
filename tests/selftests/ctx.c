// SPDX-License-Identifier: MIT
/* Who gets which cores, and that they come back whatever happens to the holder. */
#include "kselftest_harness.h"

#include <signal.h>

#include "drv.h"

FIXTURE(ctx) {
	int fd;
	uint32_t vm;
	struct drm_neuron_query_device dev;
};

FIXTURE_SETUP(ctx)
{
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, &self->dev, sizeof(self->dev)));
	ASSERT_EQ(0, drv_vm(self->fd, &self->vm));
	if (!(self->dev.flags & DRM_NEURON_DEVICE_HAS_EXEC)) {
		uint32_t id;

		EXPECT_EQ(-EOPNOTSUPP, drv_ctx(self->fd, self->vm, 0, NULL, 1, &id));
		EXPECT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &id));
		SKIP(return, "the chip has no execution block");
	}
}

FIXTURE_TEARDOWN(ctx)
{
	close(self->fd);
}

TEST_F(ctx, cores_are_exclusive_by_default)
{
	uint32_t mask = 1, a, b;

	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &a));
	EXPECT_EQ(1, mask);
	EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, 0, &mask, 0, &b));
	EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, DRM_NEURON_CTX_SHARED, &mask, 0, &b));
	mask = 3;
	EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, 0, &mask, 0, &b));
	mask = 2;
	EXPECT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &b));
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, a));
	mask = 1;
	EXPECT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &a));
}

TEST_F(ctx, cores_may_be_shared)
{
	uint32_t mask = 1, a, b, c;

	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, DRM_NEURON_CTX_SHARED, &mask, 0, &a));
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, DRM_NEURON_CTX_SHARED, &mask, 0, &b));
	EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, 0, &mask, 0, &c));
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, a));
	EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, 0, &mask, 0, &c));
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, b));
	EXPECT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &c));
}

TEST_F(ctx, any_cores_or_none)
{
	uint32_t mask = 0, id, all = (1u << self->dev.core_count) - 1;

	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, self->dev.core_count - 1, &id));
	EXPECT_EQ(self->dev.core_count - 1, __builtin_popcount(mask));
	EXPECT_EQ(0, mask & ~all);
	mask = 0;
	EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, 0, &mask, 2, &id));
	mask = 0;
	EXPECT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 1, &id));
	EXPECT_EQ(1, __builtin_popcount(mask));
}

TEST_F(ctx, bad_arguments)
{
	const struct drm_neuron_ctx_create good = {
		.vm_id = self->vm, .core_mask = 1, .priority = DRM_NEURON_PRIORITY_NORMAL,
	};
	struct drm_neuron_ctx_create c;
	struct drm_neuron_ctx_state st;
	struct drm_neuron_id id = { .id = 1, .pad = 1 };

#define BAD(err, change) do {								\
		c = good;								\
		change;									\
		EXPECT_EQ(err, drv_ioctl(self->fd, DRM_IOCTL_NEURON_CTX_CREATE, &c))	\
			TH_LOG(#change);						\
	} while (0)
	BAD(-EINVAL, c.flags = 2);
	BAD(-EINVAL, c.flags = 1u << 31);
	BAD(-EINVAL, c.priority = 3);
	BAD(-EINVAL, c.core_mask = 1u << self->dev.core_count);
	BAD(-EINVAL, (c.core_mask = 0, c.core_count = self->dev.core_count + 1));
	BAD(-EINVAL, c.vm_id = 0);
	BAD(-ENOENT, c.vm_id = 0x7fffffff);
#undef BAD
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_CTX_DESTROY, &id));
	EXPECT_EQ(-ENOENT, drv_ctx_destroy(self->fd, 0x7fffffff));
	EXPECT_EQ(-ENOENT, drv_ctx_destroy(self->fd, 0));
	EXPECT_EQ(-ENOENT, drv_ctx_state(self->fd, 0x7fffffff, &st));
}

TEST_F(ctx, priority_needs_the_right)
{
	struct drm_neuron_ctx_create c = {
		.vm_id = self->vm, .core_mask = 1, .priority = DRM_NEURON_PRIORITY_HIGH,
	};

	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_CTX_CREATE, &c));
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, c.id));
	ASSERT_EQ(0, setuid(65534));
	EXPECT_EQ(-EACCES, drv_ioctl(self->fd, DRM_IOCTL_NEURON_CTX_CREATE, &c));
	c.priority = DRM_NEURON_PRIORITY_LOW;
	EXPECT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_CTX_CREATE, &c));
}

TEST_F(ctx, slots_run_out_and_come_back)
{
	struct drm_neuron_query_limits l = {};
	uint32_t *id, mask = 1, i, n, more;

	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_LIMITS, &l, sizeof(l)));
	id = calloc(l.contexts, sizeof(*id));
	ASSERT_NE(NULL, id);
	for (n = 0; n < l.contexts; n++)
		ASSERT_EQ(0, drv_ctx(self->fd, self->vm, DRM_NEURON_CTX_SHARED, &mask, 0, &id[n]));
	EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, DRM_NEURON_CTX_SHARED, &mask, 0, &more));
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, id[n / 2]));
	EXPECT_EQ(0, drv_ctx(self->fd, self->vm, DRM_NEURON_CTX_SHARED, &mask, 0, &id[n / 2]));
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, drv_ctx_destroy(self->fd, id[i]));
	free(id);
}

TEST_F(ctx, ids_belong_to_the_file)
{
	uint32_t mask = 1, id;
	int other = drv_open();

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &id));
	EXPECT_EQ(-ENOENT, drv_ctx_destroy(other, id));
	EXPECT_EQ(-ENOENT, drv_ctx(other, self->vm, 0, &mask, 0, &id));
	close(other);
}

TEST_F(ctx, a_vm_outlives_its_id)
{
	uint32_t mask = 1, id, sync;
	struct drm_neuron_job job = drv_exec();
	struct drv_prog p = {};

	ASSERT_EQ(0, drv_prog_init(self->fd, self->vm, &p));
	p.code[0] = drv_insn(NEURON_OP_HALT);
	drv_prog_stream(&p, 1, 1);
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync));
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &id));
	ASSERT_EQ(0, drv_vm_destroy(self->fd, self->vm));
	EXPECT_EQ(-ENOENT, drv_vm_destroy(self->fd, self->vm));
	EXPECT_EQ(0, drv_run(self->fd, id, &job, sync));
}

TEST_F(ctx, several_cores_run_one_program)
{
	uint32_t mask = 3, id, sync;
	struct drm_neuron_job job = drv_exec();
	struct drv_prog p = {};

	ASSERT_EQ(0, drv_prog_init(self->fd, self->vm, &p));
	p.code[0] = drv_insn(NEURON_OP_HALT);
	drv_prog_stream(&p, 1, 2);
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync));
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &id));
	ASSERT_EQ(0, drv_run(self->fd, id, &job, sync));
	EXPECT_EQ(3, p.result->core_mask);
	EXPECT_EQ(2, p.result->instructions);
	/* One core is not enough for it. */
	job.exec.core_mask = 2;
	EXPECT_EQ(-EIO, drv_run(self->fd, id, &job, sync));
}

TEST_F(ctx, shared_cores_serve_both)
{
	uint32_t mask = 1, id[2], sync[2], vm[2];
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL };
	struct drm_neuron_job jobs[20];
	struct drv_prog p[2] = {};
	int i, k;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, drv_vm(self->fd, &vm[i]));
		ASSERT_EQ(0, drv_prog_init(self->fd, vm[i], &p[i]));
		p[i].code[0] = drv_insn(NEURON_OP_HALT);
		drv_prog_stream(&p[i], 1, 1);
		ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync[i]));
		ASSERT_EQ(0, drv_ctx(self->fd, vm[i], DRM_NEURON_CTX_SHARED, &mask, 0, &id[i]));
	}
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 20; k++) {
			jobs[k] = drv_exec();
			jobs[k].exec.fence_va = PROG_VA + PROG_FENCE;
			jobs[k].exec.fence_value = k + 1;
		}
		op.handle = sync[i];
		drv_syncs(&jobs[19], &op, 1);
		ASSERT_EQ(0, drv_submit(self->fd, id[i], jobs, 20));
	}
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, drv_wait(self->fd, sync[i], 10000));
		EXPECT_EQ(20, *p[i].fence);
	}
}

/* A process that holds a core, memory and a program that never ends. */
static void hold(int ready)
{
	int fd = drv_open();
	uint32_t vm, ctx, mask = 1, bo;
	struct drm_neuron_job job = drv_exec();
	struct drv_prog p = {};
	char ok = 'y';

	if (fd < 0 || drv_vm(fd, &vm) || drv_ctx(fd, vm, 0, &mask, 0, &ctx) ||
	    drv_prog_init(fd, vm, &p) || drv_bo(fd, 8 * MIB, 0, &bo))
		ok = 'n';
	if (ok == 'y') {
		drv_prog_loop(&p);
		if (drv_submit(fd, ctx, &job, 1))
			ok = 'n';
	}
	if (write(ready, &ok, 1) == 1)
		pause();
	_exit(1);
}

TEST_F(ctx, a_killed_process_gives_everything_back)
{
	uint64_t used = drv_hbm_used(self->fd);
	uint32_t mask = 1, id;
	int round, pipefd[2];
	char ok = 'n';
	pid_t pid;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			hold(pipefd[1]);
		ASSERT_EQ(1, read(pipefd[0], &ok, 1));
		ASSERT_EQ('y', ok);
		EXPECT_EQ(-EBUSY, drv_ctx(self->fd, self->vm, 0, &mask, 0, &id));
		EXPECT_EQ(used + 8 * MIB, drv_hbm_used(self->fd));
		usleep(20000);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		EXPECT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &id));
		EXPECT_EQ(used, drv_hbm_used(self->fd));
		ASSERT_EQ(0, drv_ctx_destroy(self->fd, id));
		close(pipefd[0]);
		close(pipefd[1]);
	}
}

TEST_F(ctx, a_child_that_dies_leaves_its_parents_context)
{
	uint32_t mask = 1, id, sync;
	struct drm_neuron_job job = drv_exec();
	struct drv_prog p = {};
	pid_t pid;

	ASSERT_EQ(0, drv_prog_init(self->fd, self->vm, &p));
	p.code[0] = drv_insn(NEURON_OP_HALT);
	drv_prog_stream(&p, 1, 1);
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync));
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &mask, 0, &id));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		drv_submit(self->fd, id, &job, 1);
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, drv_run(self->fd, id, &job, sync));
}

TEST_HARNESS_MAIN
