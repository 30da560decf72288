// SPDX-License-Identifier: MIT
/* Buffer objects and their mappings. */
#include "kselftest_harness.h"

#include "drv.h"

FIXTURE(bo) {
	int fd;
	struct drm_neuron_query_device dev;
};

FIXTURE_SETUP(bo)
{
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, &self->dev, sizeof(self->dev)));
}

FIXTURE_TEARDOWN(bo)
{
	close(self->fd);
}

static int is_zero(const void *mem, size_t size)
{
	const uint8_t *p = mem;
	size_t i;

	for (i = 0; i < size; i++)
		if (p[i])
			return 0;
	return 1;
}

TEST_F(bo, size_is_rounded_up)
{
	struct drm_neuron_bo_create c = { .size = 1 };

	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_CREATE, &c));
	EXPECT_EQ(HBM_PAGE, c.size);
	EXPECT_NE(0, c.handle);
	c = (struct drm_neuron_bo_create) { .size = PAGE + 1, .flags = DRM_NEURON_BO_HOST };
	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_CREATE, &c));
	EXPECT_EQ(2 * PAGE, c.size);
}

TEST_F(bo, bad_arguments)
{
	const struct drm_neuron_bo_create bad[] = {
		{ .size = 0 },
		{ .size = PAGE, .flags = 1u << 3 },
		{ .size = PAGE, .flags = 1u << 31 },
		{ .size = PAGE, .pad = 1 },
		{ .size = PAGE, .region_mask = 1u << 8 },
		{ .size = PAGE, .region_mask = 1, .flags = DRM_NEURON_BO_HOST },
		{ .size = PAGE, .flags = DRM_NEURON_BO_HOST | DRM_NEURON_BO_CONTIGUOUS },
	};
	struct drm_neuron_bo_create c;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c = bad[i];
		EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_CREATE, &c))
			TH_LOG("case %zu", i);
	}
}

TEST_F(bo, more_than_there_is)
{
	uint64_t used = drv_hbm_used(self->fd);
	uint64_t stack = self->dev.hbm_size / self->dev.hbm_stacks;
	uint32_t h;

	EXPECT_EQ(-ENOSPC, drv_bo(self->fd, stack + 1, 0, &h));
	EXPECT_EQ(-ENOSPC, drv_bo(self->fd, stack + 1, DRM_NEURON_BO_CONTIGUOUS, &h));
	EXPECT_EQ(-ENOSPC, drv_bo(self->fd, 1ull << 62, 0, &h));
	EXPECT_EQ(-ENOSPC, drv_bo(self->fd, ~0ull, 0, &h));
	EXPECT_EQ(-ENOSPC, drv_bo(self->fd, ~0ull - 4095, 0, &h));
	EXPECT_EQ(-ENOMEM, drv_bo(self->fd, 1ull << 62, DRM_NEURON_BO_HOST, &h));
	EXPECT_EQ(-ENOMEM, drv_bo(self->fd, ~0ull, DRM_NEURON_BO_HOST, &h));
	EXPECT_EQ(used, drv_hbm_used(self->fd));
}

TEST_F(bo, info_says_where_it_is)
{
	struct drm_neuron_bo_create c = { .size = HBM_PAGE, .region_mask = 2,
					  .flags = DRM_NEURON_BO_CONTIGUOUS };
	struct drm_neuron_bo_info i = {};

	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_CREATE, &c));
	i.handle = c.handle;
	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_INFO, &i));
	EXPECT_EQ(1, i.region);
	EXPECT_EQ(HBM_PAGE, i.size);
	EXPECT_EQ(DRM_NEURON_BO_CONTIGUOUS, i.flags);
	EXPECT_NE(0, i.hbm_offset);
	EXPECT_EQ(0, i.hbm_offset % HBM_PAGE);
	ASSERT_EQ(0, drv_bo(self->fd, PAGE, DRM_NEURON_BO_HOST, &i.handle));
	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_INFO, &i));
	EXPECT_EQ(~0u, i.region);
	EXPECT_EQ(0, i.hbm_offset);
	i.pad = 1;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_INFO, &i));
	i.pad = 0;
	i.handle = 0x7fffffff;
	EXPECT_EQ(-ENOENT, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_INFO, &i));
}

TEST_F(bo, memory_is_zero_again)
{
	uint8_t *p;
	uint32_t h;
	int i;

	/* Dirty it, free it, and get the same memory once more. */
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, drv_bo(self->fd, MIB, 0, &h));
		p = drv_map(self->fd, h, MIB);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(1, is_zero(p, MIB));
		memset(p, 0x5a, MIB);
		munmap(p, MIB);
		ASSERT_EQ(0, drv_bo_close(self->fd, h));
	}
}

TEST_F(bo, mappings_show_the_same_bytes)
{
	const uint32_t flags[] = { 0, DRM_NEURON_BO_HOST };
	uint8_t *a, *b;
	uint32_t h;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, drv_bo(self->fd, MIB, flags[i], &h));
		a = drv_map(self->fd, h, MIB);
		b = drv_map(self->fd, h, MIB);
		ASSERT_NE(MAP_FAILED, a);
		ASSERT_NE(MAP_FAILED, b);
		drv_pattern(a, MIB, i);
		EXPECT_EQ(0, memcmp(a, b, MIB));
		/* The mapping holds the memory, the handle does not have to. */
		ASSERT_EQ(0, drv_bo_close(self->fd, h));
		EXPECT_EQ(0, memcmp(a, b, MIB));
		munmap(a, MIB);
		munmap(b, MIB);
	}
}

TEST_F(bo, two_bos_do_not_overlap)
{
	uint8_t *p[8];
	uint32_t h[8];
	int i;

	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, drv_bo(self->fd, 3 * HBM_PAGE, 0, &h[i]));
		p[i] = drv_map(self->fd, h[i], 3 * HBM_PAGE);
		ASSERT_NE(MAP_FAILED, p[i]);
		memset(p[i], i + 1, 3 * HBM_PAGE);
	}
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(i + 1, p[i][0]);
		EXPECT_EQ(i + 1, p[i][3 * HBM_PAGE - 1]);
	}
}

TEST_F(bo, mapping_is_refused)
{
	struct drm_neuron_bo_mmap_offset o = {};
	uint32_t h;

	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, DRM_NEURON_BO_NO_MMAP, &h));
	o.handle = h;
	EXPECT_EQ(-EACCES, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &o));
	ASSERT_EQ(0, drv_bo(self->fd, PAGE, DRM_NEURON_BO_NO_MMAP | DRM_NEURON_BO_HOST, &h));
	o.handle = h;
	EXPECT_EQ(-EACCES, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &o));
	o.pad = 1;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &o));
	o = (struct drm_neuron_bo_mmap_offset) { .handle = 0x7fffffff };
	EXPECT_EQ(-ENOENT, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &o));
}

TEST_F(bo, mapping_ends_with_the_bo)
{
	struct drm_neuron_bo_mmap_offset o = {};
	void *p;
	uint32_t h;

	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &h));
	o.handle = h;
	ASSERT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &o));
	p = mmap(NULL, HBM_PAGE + PAGE, PROT_READ, MAP_SHARED, self->fd, o.offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, o.offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = drv_map(self->fd, h, HBM_PAGE);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(MAP_FAILED, mremap(p, HBM_PAGE, 2 * HBM_PAGE, MREMAP_MAYMOVE));
	/* Somebody else's handle means nothing here. */
	close(self->fd);
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	EXPECT_EQ(-ENOENT, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &o));
	p = mmap(NULL, HBM_PAGE, PROT_READ, MAP_SHARED, self->fd, o.offset);
	EXPECT_EQ(MAP_FAILED, p);
}

TEST_F(bo, wait_for_an_idle_one)
{
	struct drm_neuron_bo_wait w = { .pad = 1 };
	uint32_t h;

	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &h));
	EXPECT_EQ(0, drv_bo_wait(self->fd, h, 0));
	EXPECT_EQ(0, drv_bo_wait(self->fd, h, INT64_MAX));
	EXPECT_EQ(-ENOENT, drv_bo_wait(self->fd, 0x7fffffff, 0));
	w.handle = h;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_BO_WAIT, &w));
}

TEST_F(bo, export_is_refused)
{
	uint32_t h;
	int prime;

	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &h));
	EXPECT_NE(0, drmPrimeHandleToFD(self->fd, h, DRM_CLOEXEC, &prime));
	ASSERT_EQ(0, drv_bo(self->fd, PAGE, DRM_NEURON_BO_HOST, &h));
	EXPECT_NE(0, drmPrimeHandleToFD(self->fd, h, DRM_CLOEXEC, &prime));
}

TEST_F(bo, closing_the_file_frees_all)
{
	uint64_t used = drv_hbm_used(self->fd);
	uint32_t h;
	int fd = drv_open(), i;

	ASSERT_GE(fd, 0);
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, drv_bo(fd, 5 * HBM_PAGE, 0, &h));
	EXPECT_EQ(used + 20 * 5 * HBM_PAGE, drv_hbm_used(self->fd));
	close(fd);
	EXPECT_EQ(used, drv_hbm_used(self->fd));
}

TEST_HARNESS_MAIN
