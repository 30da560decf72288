// SPDX-License-Identifier: MIT
/* Memory, copies, fills and timelines of the device interface. */
#include "kselftest_harness.h"

#include <sys/mman.h>

#include "dev_common.h"

FIXTURE(mem) {
	const struct dev_backend *be;
	struct dev *dev;
	struct dev_timeline *tl;
	uint64_t point;
};

FIXTURE_SETUP(mem)
{
	self->be = dev_backend_select();
	ASSERT_GT(self->be->count(), 0);
	ASSERT_EQ(0, self->be->open(0, &self->dev));
	ASSERT_EQ(0, self->be->timeline_create(self->dev, &self->tl));
	self->point = 0;
}

FIXTURE_TEARDOWN(mem)
{
	self->be->timeline_destroy(self->tl);
	self->be->close(self->dev);
}

static struct dev_loc bo_at(struct dev_bo *bo, size_t offset)
{
	return (struct dev_loc){ .bo = bo, .offset = offset };
}

static struct dev_loc user_at(void *ptr)
{
	return (struct dev_loc){ .ptr = ptr };
}

/* Copy and wait. */
static int copy(struct _test_data_mem *self, struct dev_loc dst, struct dev_loc src, size_t size)
{
	struct dev_sync sync = { .signal = { self->tl, ++self->point } };
	int ret = self->be->copy(self->dev, dst, src, size, &sync);

	if (ret) {
		self->point--;
		return ret;
	}
	return self->be->wait(sync.signal, WAIT_NS);
}

static int fill(struct _test_data_mem *self, struct dev_bo *bo, size_t offset, size_t size,
		uint32_t pattern)
{
	struct dev_sync sync = { .signal = { self->tl, ++self->point } };
	int ret = self->be->fill(self->dev, bo, offset, size, pattern, &sync);

	if (ret) {
		self->point--;
		return ret;
	}
	return self->be->wait(sync.signal, WAIT_NS);
}

/* Published sizes: NKI architecture guides (Trn1 2 x 16 GiB, Trn2 4 x 24, Trn3 4 x 36). */
TEST_F(mem, info)
{
	const struct dev_info *info = &self->dev->info;
	uint64_t gib = info->hbm_stack_size >> 30;

	if (info->nc_version == 2) {
		EXPECT_TRUE(!strcmp(info->arch, "trn1") || !strcmp(info->arch, "inf2"));
		EXPECT_EQ(2, info->cores);
		EXPECT_EQ(2, info->hbm_stacks);
		EXPECT_EQ(16, gib);
	} else {
		EXPECT_EQ(0, strncmp(info->nc_version == 3 ? "trn2" : "trn3", info->arch, 4));
		EXPECT_EQ(8, info->cores);
		EXPECT_EQ(4, info->hbm_stacks);
		EXPECT_EQ(info->nc_version == 3 ? 24 : 36, gib);
	}
	EXPECT_NE('\0', info->bdf[0]);
}

TEST_F(mem, open_out_of_range)
{
	struct dev *dev;

	EXPECT_EQ(-ENODEV, self->be->open(self->be->count(), &dev));
}

TEST_F(mem, new_memory_is_zero_and_mapped)
{
	static const uint8_t zero[65536];
	struct dev_bo *bo;
	enum dev_mem mem;
	int i;

	for (mem = DEV_MEM_HBM; mem <= DEV_MEM_HOST; mem++) {
		/* The second object gets the memory of the first. */
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(0, self->be->bo_alloc(self->dev, 65536, mem, 0, &bo));
			EXPECT_GE(bo->size, 65536);
			EXPECT_NE(0, bo->va);
			ASSERT_EQ(0, self->be->bo_map(bo));
			EXPECT_EQ(0, memcmp(bo->cpu, zero, sizeof(zero)));
			memset(bo->cpu, 0xa5, 65536);
			self->be->bo_free(bo);
		}
	}
}

TEST_F(mem, bad_allocations)
{
	uint32_t beyond = 1u << self->dev->info.hbm_stacks;
	struct dev_bo *bo;

	EXPECT_EQ(-EINVAL, self->be->bo_alloc(self->dev, 0, DEV_MEM_HBM, 0, &bo));
	EXPECT_EQ(-EINVAL, self->be->bo_alloc(self->dev, 4096, DEV_MEM_HBM, beyond, &bo));
	EXPECT_EQ(-ENOSPC, self->be->bo_alloc(self->dev, self->dev->info.hbm_stack_size + 1,
					      DEV_MEM_HBM, 1, &bo));
	EXPECT_EQ(-ENOSPC, self->be->bo_alloc(self->dev, SIZE_MAX / 4, DEV_MEM_HBM, 0, &bo));
}

/*
 * The driver writes zeros to new memory, and written HBM is memory of the host that
 * runs the model: tests of a whole stack are for the other back-end.
 */
#define SKIP_UNLESS_SIM() \
	do { \
		if (strcmp(self->be->name, "sim")) \
			SKIP(return, "would need as much memory as the chip has"); \
	} while (0)

TEST_F(mem, every_stack_can_be_filled_and_is_accounted)
{
	const struct dev_info *info = &self->dev->info;
	struct dev_bo *bo[4], *more;
	uint64_t before[4], used;
	unsigned int i;

	SKIP_UNLESS_SIM();
	for (i = 0; i < info->hbm_stacks; i++) {
		ASSERT_EQ(0, self->be->mem_used(self->dev, i, &before[i]));
		ASSERT_EQ(0, self->be->bo_alloc(self->dev, info->hbm_stack_size - before[i] - (64 << 20),
						DEV_MEM_HBM, 1u << i, &bo[i]));
		EXPECT_EQ(i, bo[i]->stack);
		ASSERT_EQ(0, self->be->mem_used(self->dev, i, &used));
		EXPECT_EQ(bo[i]->size, used - before[i]);
	}
	EXPECT_EQ(-ENOSPC, self->be->bo_alloc(self->dev, 65 << 20, DEV_MEM_HBM, 0, &more));
	self->be->bo_free(bo[0]);
	EXPECT_EQ(0, self->be->bo_alloc(self->dev, 65 << 20, DEV_MEM_HBM, 0, &more));
	EXPECT_EQ(0, more->stack);
	self->be->bo_free(more);
	for (i = 1; i < info->hbm_stacks; i++)
		self->be->bo_free(bo[i]);
	for (i = 0; i < info->hbm_stacks; i++) {
		ASSERT_EQ(0, self->be->mem_used(self->dev, i, &used));
		EXPECT_EQ(before[i], used);
	}
	EXPECT_EQ(-EINVAL, self->be->mem_used(self->dev, info->hbm_stacks, &used));
}

TEST_F(mem, fragmented_memory_is_usable)
{
	const size_t piece = 1 << 20, count = 32;
	uint64_t free_bytes, used;
	struct dev_bo *hog, *bo[32], *big;
	uint8_t *data, *back;
	size_t i;

	SKIP_UNLESS_SIM();
	ASSERT_EQ(0, self->be->mem_used(self->dev, 0, &used));
	free_bytes = self->dev->info.hbm_stack_size - used;
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, free_bytes - count * piece, DEV_MEM_HBM, 1, &hog));
	for (i = 0; i < count; i++)
		ASSERT_EQ(0, self->be->bo_alloc(self->dev, piece, DEV_MEM_HBM, 1, &bo[i]));
	for (i = 0; i < count; i += 2)
		self->be->bo_free(bo[i]);
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, count / 2 * piece, DEV_MEM_HBM, 1, &big));
	data = malloc(big->size);
	back = calloc(1, big->size);
	ASSERT_TRUE(data && back);
	dev_fill_random(data, big->size, 7);
	EXPECT_EQ(0, copy(self, bo_at(big, 0), user_at(data), big->size));
	EXPECT_EQ(0, copy(self, user_at(back), bo_at(big, 0), big->size));
	EXPECT_EQ(0, memcmp(data, back, big->size));
	free(data);
	free(back);
	self->be->bo_free(big);
	for (i = 1; i < count; i += 2)
		self->be->bo_free(bo[i]);
	self->be->bo_free(hog);
}

TEST_F(mem, copies_of_odd_sizes_and_offsets)
{
	static const size_t sizes[] = { 1, 2, 3, 7, 63, 64, 65, 511, 4095, 4096, 4097, 65535, 65536,
					65537, 131071, 1000003 };
	const size_t room = 1 << 20;
	uint8_t *data = malloc(room + 64), *back = malloc(room + 64), *model = calloc(1, room);
	struct dev_bo *bo;
	size_t i;

	ASSERT_TRUE(data && back && model);
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, room, DEV_MEM_HBM, 0, &bo));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t at = 17 * i + 3, skew = i % 13;

		dev_fill_random(data, sizes[i] + skew, i + 1);
		memcpy(model + at, data + skew, sizes[i]);
		ASSERT_EQ(0, copy(self, bo_at(bo, at), user_at(data + skew), sizes[i]));
		memset(back, 0x11, room + 64);
		ASSERT_EQ(0, copy(self, user_at(back + skew), bo_at(bo, 0), room));
		EXPECT_EQ(0, memcmp(back + skew, model, room));
		/* Nothing beside the range is written. */
		EXPECT_TRUE(!skew || back[skew - 1] == 0x11);
		EXPECT_EQ(0x11, back[room + skew]);
	}
	self->be->bo_free(bo);
	free(data);
	free(back);
	free(model);
}

TEST_F(mem, large_copy_and_copies_inside_the_chip)
{
	const size_t size = (64 << 20) + 12345;
	uint8_t *data = malloc(size), *back = calloc(1, size);
	struct dev_bo *a, *b, *host;

	ASSERT_TRUE(data && back);
	dev_fill_random(data, size, 99);
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, size, DEV_MEM_HBM, 1, &a));
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, size, DEV_MEM_HBM, 2, &b));
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, size, DEV_MEM_HOST, 0, &host));
	ASSERT_EQ(0, self->be->bo_map(host));
	ASSERT_EQ(0, copy(self, bo_at(a, 0), user_at(data), size));
	ASSERT_EQ(0, copy(self, bo_at(b, 0), bo_at(a, 0), size));
	ASSERT_EQ(0, copy(self, bo_at(host, 0), bo_at(b, 0), size));
	EXPECT_EQ(0, memcmp(host->cpu, data, size));
	ASSERT_EQ(0, copy(self, user_at(back), bo_at(host, 0), size));
	EXPECT_EQ(0, memcmp(back, data, size));
	self->be->bo_free(a);
	self->be->bo_free(b);
	self->be->bo_free(host);
	free(data);
	free(back);
}

TEST_F(mem, fill_writes_its_range_only)
{
	static const size_t sizes[] = { 4, 8, 60, 4096, 65532, 65536, 65540, 3 << 20 };
	const size_t room = 4 << 20;
	uint32_t *back = malloc(room);
	struct dev_bo *bo;
	size_t i, w;

	ASSERT_NE(NULL, back);
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, room, DEV_MEM_HBM, 0, &bo));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t pattern = i % 2 ? 0xdeadbe00u + i : 0;
		size_t at = 4 * (5 * i + 1);

		ASSERT_EQ(0, fill(self, bo, 0, room, 0x77777777));
		ASSERT_EQ(0, fill(self, bo, at, sizes[i], pattern));
		ASSERT_EQ(0, copy(self, user_at(back), bo_at(bo, 0), room));
		for (w = 0; w < room / 4; w++) {
			bool in = w >= at / 4 && w < (at + sizes[i]) / 4;

			if (back[w] != (in ? pattern : 0x77777777))
				break;
		}
		EXPECT_EQ(room / 4, w);
	}
	self->be->bo_free(bo);
	free(back);
}

TEST_F(mem, bad_copies_are_refused)
{
	struct dev_sync sync = { .signal = { self->tl, 1 } };
	uint8_t byte[16] = { 0 };
	struct dev_bo *bo;
	void *hole;

	ASSERT_EQ(0, self->be->bo_alloc(self->dev, 65536, DEV_MEM_HBM, 0, &bo));
	EXPECT_EQ(-EINVAL, self->be->copy(self->dev, bo_at(bo, 0), user_at(byte), 0, &sync));
	EXPECT_EQ(-EINVAL, self->be->copy(self->dev, bo_at(bo, 65530), user_at(byte), 16, &sync));
	EXPECT_EQ(-EINVAL, self->be->copy(self->dev, bo_at(bo, SIZE_MAX - 3), user_at(byte), 8, &sync));
	EXPECT_EQ(-EINVAL, self->be->copy(self->dev, user_at(byte), user_at(byte + 8), 8, &sync));
	EXPECT_EQ(-EINVAL, self->be->fill(self->dev, bo, 0, 6, 0, &sync));
	EXPECT_EQ(-EINVAL, self->be->fill(self->dev, bo, 65536, 4, 0, &sync));
	EXPECT_EQ(-EINVAL, self->be->fill(self->dev, bo, 0, 0, 0, &sync));
	hole = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, hole);
	EXPECT_EQ(-EFAULT, self->be->copy(self->dev, user_at(hole), bo_at(bo, 0), 64, &sync));
	ASSERT_EQ(0, munmap(hole, 4096));
	EXPECT_EQ(-EFAULT, self->be->copy(self->dev, bo_at(bo, 0), user_at(hole), 64, &sync));
	/* None of them took the point. */
	EXPECT_EQ(-ETIME, self->be->wait(sync.signal, 0));
	EXPECT_EQ(0, self->be->copy(self->dev, bo_at(bo, 0), user_at(byte), 16, &sync));
	EXPECT_EQ(0, self->be->wait(sync.signal, WAIT_NS));
	self->be->bo_free(bo);
}

TEST_F(mem, waits_and_time_outs)
{
	struct dev_point never = { self->tl, 1000 };
	struct dev_sync sync = { .wait = &never, .wait_count = 1, .signal = { self->tl, 1001 } };
	struct dev_point none = { NULL, 0 };
	struct dev_bo *bo;

	EXPECT_EQ(0, self->be->wait(none, 0));
	EXPECT_EQ(-ETIME, self->be->wait(never, 0));
	EXPECT_EQ(-ETIME, self->be->wait(never, 20 * 1000000));
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, 4096, DEV_MEM_HBM, 0, &bo));
	EXPECT_EQ(-EINVAL, self->be->fill(self->dev, bo, 0, 4096, 0, &sync));
	self->be->bo_free(bo);
}

/* A chain in which each copy waits for the one before, over two timelines. */
TEST_F(mem, a_chain_of_dependent_copies)
{
	const size_t size = 8 << 20;
	const unsigned int links = 12;
	uint8_t *data = malloc(size), *back = calloc(1, size);
	struct dev_timeline *other;
	struct dev_bo *bo[2];
	unsigned int i;

	ASSERT_TRUE(data && back);
	dev_fill_random(data, size, 5);
	ASSERT_EQ(0, self->be->timeline_create(self->dev, &other));
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, size, DEV_MEM_HBM, 0, &bo[0]));
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, size, DEV_MEM_HBM, 0, &bo[1]));
	for (i = 0; i < links; i++) {
		struct dev_point before = { i % 2 ? self->tl : other, i };
		struct dev_sync sync = { .wait = &before, .wait_count = i ? 1 : 0,
					 .signal = { i % 2 ? other : self->tl, i + 1 } };
		struct dev_loc src = i ? bo_at(bo[(i + 1) % 2], 0) : user_at(data);

		ASSERT_EQ(0, self->be->copy(self->dev, bo_at(bo[i % 2], 0), src, size, &sync));
	}
	ASSERT_EQ(0, self->be->wait((struct dev_point){ other, links }, WAIT_NS));
	self->point = links;
	ASSERT_EQ(0, copy(self, user_at(back), bo_at(bo[(links - 1) % 2], 0), size));
	EXPECT_EQ(0, memcmp(back, data, size));
	self->be->bo_free(bo[0]);
	self->be->bo_free(bo[1]);
	self->be->timeline_destroy(other);
	free(data);
	free(back);
}

TEST_F(mem, a_second_opener_shares_the_chip)
{
	struct dev_bo *a, *b;
	struct dev *dev2;
	uint64_t before, after;

	ASSERT_EQ(0, self->be->open(0, &dev2));
	ASSERT_EQ(0, self->be->mem_used(dev2, 0, &before));
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, 1 << 20, DEV_MEM_HBM, 1, &a));
	ASSERT_EQ(0, self->be->bo_alloc(dev2, 1 << 20, DEV_MEM_HBM, 1, &b));
	ASSERT_EQ(0, self->be->mem_used(dev2, 0, &after));
	EXPECT_EQ(2 << 20, after - before);
	self->be->bo_free(b);
	self->be->close(dev2);
	self->be->bo_free(a);
}

TEST_HARNESS_MAIN
