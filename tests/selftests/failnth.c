// SPDX-License-Identifier: MIT
/*
 * Every allocation and user copy of an ioctl fails once, the n-th in the n-th
 * round. Needs a kernel with fault injection (the debug kernel); what goes wrong
 * unseen is found by KASAN and kmemleak.
 */
#include "kselftest_harness.h"

#include "drv.h"

struct round {
	int fd;
	uint32_t vm, bo, ctx, copy, sync;
	struct drv_prog p;
	char user[4 * PAGE];
};

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ok;

	if (fd < 0)
		return -1;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok ? 0 : -1;
}

/*
 * In the stack that r->bo is in, where its buddy of the same size is free: Linux
 * 6.12.95's drm_buddy frees a block twice when it cannot allocate while splitting
 * a larger one (alloc_from_freetree(), err_undo), and no driver can help that.
 */
static int op_bo(struct round *r)
{
	struct drm_neuron_bo_info info = { .handle = r->bo };
	struct drm_neuron_bo_create c = { .size = 4 * MIB };
	int ret = drv_ioctl(r->fd, DRM_IOCTL_NEURON_BO_INFO, &info);

	c.region_mask = 1u << info.region;
	return ret ? ret : drv_ioctl(r->fd, DRM_IOCTL_NEURON_BO_CREATE, &c);
}

static int op_host_bo(struct round *r)
{
	uint32_t h;
	int ret = drv_bo(r->fd, 8 * PAGE, DRM_NEURON_BO_HOST, &h);

	return ret ? ret : drv_bind(r->fd, r->vm, h, 0, 0x7000000000, 8 * PAGE, 0);
}

static int op_vm(struct round *r)
{
	uint32_t id;

	return drv_vm(r->fd, &id);
}

static int op_bind(struct round *r)
{
	return drv_bind(r->fd, r->vm, r->bo, 0, 0x123456789000, MIB, 0);
}

static int op_split(struct round *r)
{
	return drv_unbind(r->fd, r->vm, 0x40000000 + 16 * PAGE, PAGE);
}

static int op_ctx(struct round *r)
{
	uint32_t mask = 2, id;

	return drv_ctx(r->fd, r->vm, 0, &mask, 0, &id);
}

static int op_exec(struct round *r)
{
	struct drm_neuron_sync_op op[2] = {
		{ .flags = DRM_NEURON_SYNC_SIGNAL, .handle = r->sync },
	};
	struct drm_neuron_job jobs[2] = { drv_exec(), drv_exec() };

	op[1] = op[0];
	op[1].flags = 0;
	drv_syncs(&jobs[0], &op[0], 1);
	drv_syncs(&jobs[1], &op[1], 1);
	return drv_submit(r->fd, r->ctx, jobs, 2);
}

static int op_copy(struct round *r)
{
	struct drm_neuron_sync_op op = {
		.flags = DRM_NEURON_SYNC_SIGNAL | DRM_NEURON_SYNC_TIMELINE, .handle = r->sync,
		.point = 9,
	};
	struct drm_neuron_job jobs[3] = {
		drv_to(r->bo, 5, r->user, sizeof(r->user)),
		drv_fill(r->bo, MIB, MIB, 0x55),
		drv_from(r->user, r->bo, 5, sizeof(r->user)),
	};

	drv_syncs(&jobs[2], &op, 1);
	return drv_submit(r->fd, r->copy, jobs, 3);
}

static int op_fault(struct round *r)
{
	void *p = drv_map(r->fd, r->bo, MIB);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, MIB);
	return 0;
}

static int set_up(struct round *r)
{
	uint32_t mask = 1;
	int ret;

	r->fd = drv_open();
	ret = r->fd < 0 ? -errno : 0;
	if (!ret)
		ret = drv_vm(r->fd, &r->vm);
	if (!ret)
		ret = drv_bo(r->fd, 4 * MIB, 0, &r->bo);
	if (!ret)
		ret = drv_bind(r->fd, r->vm, r->bo, 0, 0x40000000, 4 * MIB, 0);
	if (!ret)
		ret = drv_ctx(r->fd, r->vm, 0, &mask, 0, &r->ctx);
	if (!ret)
		ret = drv_ctx(r->fd, 0, 0, NULL, 0, &r->copy);
	if (!ret)
		ret = drv_prog_init(r->fd, r->vm, &r->p);
	if (ret)
		return ret;
	r->p.code[0] = drv_insn(NEURON_OP_HALT);
	drv_prog_stream(&r->p, 1, 1);
	return drmSyncobjCreate(r->fd, 0, &r->sync) ? -errno : 0;
}

/* 1: the n-th was reached, 0: there are fewer, or an error. */
static int one(int (*op)(struct round *), int n, int *result)
{
	static struct round r;
	char text[16];
	int nth, ret, left;

	memset(&r, 0, sizeof(r));
	ret = set_up(&r);
	if (ret)
		return ret;
	nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (nth < 0)
		return -errno;
	snprintf(text, sizeof(text), "%d", n);
	if (write(nth, text, strlen(text)) < 0)
		return -errno;
	*result = op(&r);
	memset(text, 0, sizeof(text));
	/* When the operation did not get there, one of these copies may be the n-th. */
	ret = pread(nth, text, sizeof(text) - 1, 0);
	left = ret < 0 ? 1 : atoi(text);
	if (pwrite(nth, "0", 1, 0) < 0 && pwrite(nth, "0", 1, 0) < 0)
		return -errno;
	close(nth);
	/* What was accepted must also end. */
	ret = drv_bo_wait(r.fd, r.bo, drv_now() + 20000000000ll);
	munmap(r.p.mem, PROG_BYTES);
	close(r.fd);
	return ret ? ret : !left;
}

FIXTURE(failnth) {
	int fd;
	uint64_t used;
};

FIXTURE_SETUP(failnth)
{
	const char *files[] = { "failslab", "fail_page_alloc" };
	char path[96];
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", files[i]);
		if (put(path, "0"))
			SKIP(return, "the kernel has no fault injection");
	}
	put("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	put("/sys/kernel/debug/failslab/verbose", "0");
	put("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	put("/sys/kernel/debug/fail_usercopy/verbose", "0");
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	self->used = drv_hbm_used(self->fd);
}

FIXTURE_TEARDOWN(failnth)
{
	close(self->fd);
}

FIXTURE_VARIANT(failnth) {
	int (*op)(struct round *r);
};

#define VARIANT(name) FIXTURE_VARIANT_ADD(failnth, name) { .op = op_##name }
VARIANT(bo);
VARIANT(host_bo);
VARIANT(vm);
VARIANT(bind);
VARIANT(split);
VARIANT(ctx);
VARIANT(exec);
VARIANT(copy);
VARIANT(fault);

TEST_F_TIMEOUT(failnth, every_allocation, 240)
{
	int n, result = -EIO, hit = 1, failed = 0;

	for (n = 1; hit == 1 && n < 400; n++) {
		hit = one(variant->op, n, &result);
		ASSERT_GE(hit, 0) TH_LOG("round %d: %d", n, hit);
		/* Some failures are tolerated; others say what they are. */
		if (result)
			EXPECT_TRUE(result == -ENOMEM || result == -EFAULT || result == -EINTR)
				TH_LOG("round %d: %d", n, result);
		failed += result != 0;
		EXPECT_EQ(self->used, drv_hbm_used(self->fd)) TH_LOG("round %d", n);
	}
	EXPECT_EQ(0, result);
	TH_LOG("%d rounds, %d failures", n, failed);
	EXPECT_GT(failed, 0);
}

TEST_HARNESS_MAIN
