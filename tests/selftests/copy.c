// SPDX-License-Identifier: MIT
/* COPY and FILL between HBM, host BOs and user memory. */
#include "kselftest_harness.h"

#include "drv.h"

FIXTURE(copy) {
	int fd;
	uint32_t ctx;
	uint32_t sync;
};

FIXTURE_SETUP(copy)
{
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &self->ctx));
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &self->sync));
}

FIXTURE_TEARDOWN(copy)
{
	close(self->fd);
}

TEST_F(copy, user_to_hbm_and_back)
{
	/* Sizes around pages, descriptors and pieces; offsets that fit nothing. */
	const size_t size[] = { 1, 3, 4095, 4097, 65535, 65536, 65537, 200001, 3 * MIB + 77 };
	const size_t skew[] = { 0, 1, 63, 4095 };
	const size_t room = 4 * MIB;
	uint8_t *in = malloc(room + PAGE), *out = malloc(room + PAGE);
	struct drm_neuron_job job;
	uint32_t bo;
	size_t i, k;

	ASSERT_NE(NULL, in);
	ASSERT_NE(NULL, out);
	ASSERT_EQ(0, drv_bo(self->fd, room + HBM_PAGE, 0, &bo));
	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		for (k = 0; k < sizeof(skew) / sizeof(skew[0]); k++) {
			drv_pattern(in, room, i * 16 + k);
			memset(out, 0xee, room + PAGE);
			job = drv_to(bo, skew[3 - k], in + skew[k], size[i]);
			ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
			job = drv_from(out + skew[k], bo, skew[3 - k], size[i]);
			ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
			EXPECT_EQ(0, memcmp(in + skew[k], out + skew[k], size[i]));
			EXPECT_EQ(0xee, out[skew[k] + size[i]]);
			if (skew[k])
				EXPECT_EQ(0xee, out[skew[k] - 1]);
		}
	}
	free(in);
	free(out);
}

TEST_F(copy, between_all_kinds_of_bo)
{
	const uint32_t kind[] = { 0, DRM_NEURON_BO_HOST };
	const uint64_t size = MIB + 3 * PAGE;
	uint8_t *a, *b;
	struct drm_neuron_job job;
	uint32_t from, to;
	int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, drv_bo(self->fd, size, kind[i & 1], &from));
		ASSERT_EQ(0, drv_bo(self->fd, size, kind[i >> 1], &to));
		a = drv_map(self->fd, from, size);
		b = drv_map(self->fd, to, size);
		ASSERT_NE(MAP_FAILED, a);
		ASSERT_NE(MAP_FAILED, b);
		drv_pattern(a, size, i);
		job = drv_copy(to, PAGE + 5, from, 17, size - PAGE - 22);
		ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
		EXPECT_EQ(0, memcmp(a + 17, b + PAGE + 5, size - PAGE - 22));
		EXPECT_EQ(0, b[PAGE + 4]);
		munmap(a, size);
		munmap(b, size);
	}
}

TEST_F(copy, fill_writes_the_pattern)
{
	const uint64_t size = 2 * MIB;
	struct drm_neuron_job job;
	uint32_t *p, bo;
	uint64_t i;
	int bad = 0;

	ASSERT_EQ(0, drv_bo(self->fd, size, 0, &bo));
	p = drv_map(self->fd, bo, size);
	ASSERT_NE(MAP_FAILED, p);
	job = drv_fill(bo, 12, size - 20, 0x12345678);
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	for (i = 3; i < size / 4 - 2; i++)
		bad += p[i] != 0x12345678;
	EXPECT_EQ(0, bad);
	EXPECT_EQ(0, p[2]);
	EXPECT_EQ(0, p[size / 4 - 2]);
	job = drv_fill(bo, 4096, 8192, 0);
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(0x12345678, p[1023]);
	EXPECT_EQ(0, p[1024]);
	EXPECT_EQ(0, p[1024 + 2047]);
	EXPECT_EQ(0x12345678, p[1024 + 2048]);
}

TEST_F(copy, bad_arguments)
{
	struct drm_neuron_job good, job;
	char user[64];
	uint32_t bo;

	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &bo));
	good = drv_to(bo, 0, user, sizeof(user));
#define BAD(err, change) do {							\
		job = good;							\
		change;								\
		EXPECT_EQ(err, drv_submit(self->fd, self->ctx, &job, 1))	\
			TH_LOG(#change);					\
	} while (0)
	BAD(-EINVAL, job.copy.size = 0);
	BAD(-EINVAL, job.copy.size = HBM_PAGE + 1);
	BAD(-EINVAL, job.copy.dst.addr = HBM_PAGE - 63);
	BAD(-EINVAL, job.copy.dst.addr = ~0ull);
	BAD(-EINVAL, job.copy.dst.addr = ~0ull - 62);
	BAD(-EINVAL, job.copy.dst.type = 2);
	BAD(-EINVAL, job.copy.pad = 1);
	BAD(-EINVAL, job.copy.pattern = 1);
	BAD(-EINVAL, job.copy.src.handle = bo);
	BAD(-EINVAL, job.flags = 1);
	BAD(-EINVAL, job.type = 3);
	BAD(-EINVAL, job.reserved[15] = 1);
	BAD(-ENOENT, job.copy.dst.handle = 0x7fffffff);
	BAD(-EFAULT, job.copy.src.addr = 8);
	BAD(-EFAULT, job.copy.src.addr = ~0ull - 4095);
	BAD(-EINVAL, (job.copy.dst.type = DRM_NEURON_MEM_USER, job.copy.dst.handle = 0,
		      job.copy.dst.addr = (uintptr_t)user));
	good = drv_fill(bo, 0, 64, 1);
	BAD(-EINVAL, job.copy.size = 63);
	BAD(-EINVAL, job.copy.dst.addr = 2);
	BAD(-EINVAL, job.copy.src.addr = 1);
	BAD(-EINVAL, job.copy.dst.type = DRM_NEURON_MEM_USER);
#undef BAD
	EXPECT_EQ(0, drv_bo_wait(self->fd, bo, 0));
}

TEST_F(copy, user_memory_must_be_writable)
{
	struct drm_neuron_job job;
	uint32_t bo;
	void *p;

	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &bo));
	p = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	job = drv_from(p, bo, 0, 4 * PAGE);
	EXPECT_EQ(-EFAULT, drv_submit(self->fd, self->ctx, &job, 1));
	job = drv_to(bo, 0, p, 4 * PAGE);
	EXPECT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	/* A hole at the end of it. */
	munmap((char *)p + 3 * PAGE, PAGE);
	EXPECT_EQ(-EFAULT, drv_submit(self->fd, self->ctx, &job, 1));
}

TEST_F(copy, all_jobs_or_none)
{
	struct drm_neuron_job jobs[3];
	uint32_t bo, *p, i;

	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &bo));
	p = drv_map(self->fd, bo, HBM_PAGE);
	ASSERT_NE(MAP_FAILED, p);
	for (i = 0; i < 3; i++)
		jobs[i] = drv_fill(bo, 4 * i, 4, i + 1);
	jobs[2].copy.size = 3;
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->ctx, jobs, 3));
	usleep(20000);
	EXPECT_EQ(0, p[0] | p[1] | p[2]);
	jobs[2].copy.size = 4;
	EXPECT_EQ(0, drv_submit(self->fd, self->ctx, jobs, 3));
	EXPECT_EQ(0, drv_bo_wait(self->fd, bo, INT64_MAX));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(i + 1, p[i]);
}

TEST_F(copy, jobs_run_in_order)
{
	struct drm_neuron_job jobs[32];
	uint32_t bo, *p, i, round;

	ASSERT_EQ(0, drv_bo(self->fd, 4 * MIB, 0, &bo));
	p = drv_map(self->fd, bo, 4 * MIB);
	ASSERT_NE(MAP_FAILED, p);
	for (round = 1; round <= 4; round++) {
		/* Long ones and short ones on the same bytes: the last must win. */
		for (i = 0; i < 32; i++)
			jobs[i] = drv_fill(bo, 0, i % 2 ? 64 : 4 * MIB, round * 100 + i);
		ASSERT_EQ(0, drv_submit(self->fd, self->ctx, jobs, 32));
		ASSERT_EQ(0, drv_bo_wait(self->fd, bo, INT64_MAX));
		EXPECT_EQ(round * 100 + 31, p[0]);
		EXPECT_EQ(round * 100 + 30, p[MIB - 1]);
	}
}

TEST_F(copy, many_contexts_at_once)
{
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL };
	struct drm_neuron_job job;
	uint32_t ctx[16], sync[16], bo[16], *p;
	int i;

	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &ctx[i]));
		ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync[i]));
		ASSERT_EQ(0, drv_bo(self->fd, MIB, 0, &bo[i]));
	}
	for (i = 0; i < 16; i++) {
		job = drv_fill(bo[i], 0, MIB, 1000 + i);
		op.handle = sync[i];
		drv_syncs(&job, &op, 1);
		ASSERT_EQ(0, drv_submit(self->fd, ctx[i], &job, 1));
	}
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, drv_wait(self->fd, sync[i], 10000));
		p = drv_map(self->fd, bo[i], MIB);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(1000 + i, p[0]);
		EXPECT_EQ(1000 + i, p[MIB / 4 - 1]);
		munmap(p, MIB);
	}
}

TEST_F(copy, memory_lives_until_the_job_has_ended)
{
	struct drm_neuron_job job;
	uint8_t *in = malloc(8 * MIB), *out = malloc(8 * MIB);
	uint32_t a, b;

	drv_pattern(in, 8 * MIB, 7);
	ASSERT_EQ(0, drv_bo(self->fd, 8 * MIB, 0, &a));
	ASSERT_EQ(0, drv_bo(self->fd, 8 * MIB, 0, &b));
	job = drv_to(a, 0, in, 8 * MIB);
	ASSERT_EQ(0, drv_submit(self->fd, self->ctx, &job, 1));
	job = drv_copy(b, 0, a, 0, 8 * MIB);
	ASSERT_EQ(0, drv_submit(self->fd, self->ctx, &job, 1));
	/* The source's handle goes while both copies may still be queued. */
	ASSERT_EQ(0, drv_bo_close(self->fd, a));
	job = drv_from(out, b, 0, 8 * MIB);
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(0, memcmp(in, out, 8 * MIB));
	free(in);
	free(out);
}

TEST_HARNESS_MAIN
