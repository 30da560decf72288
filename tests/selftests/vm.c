// SPDX-License-Identifier: MIT
/* Address spaces: what VM_BIND accepts, and that references are right. */
#include "kselftest_harness.h"

#include "drv.h"

#define VA	0x100000000ull

FIXTURE(vm) {
	int fd;
	uint32_t vm;
	uint32_t bo;
	struct drm_neuron_query_device dev;
};

FIXTURE_SETUP(vm)
{
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, &self->dev, sizeof(self->dev)));
	ASSERT_EQ(0, drv_vm(self->fd, &self->vm));
	ASSERT_EQ(0, drv_bo(self->fd, 4 * MIB, 0, &self->bo));
}

FIXTURE_TEARDOWN(vm)
{
	close(self->fd);
}

TEST_F(vm, bad_arguments)
{
	const struct drm_neuron_vm_bind_op good = { .handle = self->bo, .va = VA, .size = MIB };
	struct drm_neuron_vm_bind_op op;
	struct drm_neuron_vm_create c = { .flags = 1 };
	struct drm_neuron_id id = { .id = self->vm, .pad = 1 };

#define BAD(err, change) do {								\
		op = good;								\
		change;									\
		EXPECT_EQ(err, drv_bind_ops(self->fd, self->vm, &op, 1, NULL))		\
			TH_LOG(#change);						\
	} while (0)
	BAD(-EINVAL, op.size = 0);
	BAD(-EINVAL, op.size = 1);
	BAD(-EINVAL, op.va++);
	BAD(-EINVAL, op.bo_offset = 1);
	BAD(-EINVAL, op.flags = 2);
	BAD(-EINVAL, op.flags = 1u << 9);
	BAD(-EINVAL, op.flags = 1u << 31);
	BAD(-EINVAL, op.va = 0);
	BAD(-EINVAL, op.va = self->dev.va_start - PAGE);
	BAD(-EINVAL, op.va = self->dev.va_end);
	BAD(-EINVAL, op.va = self->dev.va_end - MIB + PAGE);
	BAD(-EINVAL, op.va = ~0ull - PAGE + 1);
	BAD(-EINVAL, op.size = ~0ull - PAGE + 1);
	BAD(-EINVAL, op.size = 4 * MIB + PAGE);
	BAD(-EINVAL, op.bo_offset = 3 * MIB + PAGE);
	BAD(-EINVAL, op.bo_offset = ~0ull - PAGE + 1);
	BAD(-ENOENT, op.handle = 0x7fffffff);
	BAD(-EINVAL, op.flags = DRM_NEURON_BIND_UNMAP);
	BAD(-EINVAL, (op.flags = DRM_NEURON_BIND_UNMAP, op.handle = 0, op.bo_offset = PAGE));
	BAD(-EINVAL, (op.flags = DRM_NEURON_BIND_UNMAP | DRM_NEURON_BIND_READONLY, op.handle = 0));
#undef BAD
	op = good;
	EXPECT_EQ(-ENOENT, drv_bind_ops(self->fd, 0x7fffffff, &op, 1, NULL));
	EXPECT_EQ(-ENOENT, drv_bind_ops(self->fd, 0, &op, 1, NULL));
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_VM_CREATE, &c));
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_VM_DESTROY, &id));
}

TEST_F(vm, the_whole_range_can_be_mapped)
{
	EXPECT_EQ(0, drv_bind(self->fd, self->vm, self->bo, 0, self->dev.va_start, MIB, 0));
	EXPECT_EQ(0, drv_bind(self->fd, self->vm, self->bo, 0, self->dev.va_end - MIB, MIB, 0));
	/* Across a 512 GiB and a 1 GiB boundary. */
	EXPECT_EQ(0, drv_bind(self->fd, self->vm, self->bo, 0, (1ull << 39) - MIB, 2 * MIB, 0));
	EXPECT_EQ(0, drv_bind(self->fd, self->vm, self->bo, 0, (1ull << 30) - PAGE, 2 * MIB, 0));
	EXPECT_EQ(0, drv_unbind(self->fd, self->vm, self->dev.va_start,
				self->dev.va_end - self->dev.va_start));
}

TEST_F(vm, what_was_done_before_an_error_is_said)
{
	struct drm_neuron_vm_bind_op ops[4] = {
		{ .handle = self->bo, .va = VA, .size = MIB },
		{ .handle = self->bo, .va = VA + MIB, .size = MIB },
		{ .handle = 0x7fffffff, .va = VA + 2 * MIB, .size = MIB },
		{ .handle = self->bo, .va = VA + 3 * MIB, .size = MIB },
	};
	uint64_t done = 99;

	EXPECT_EQ(-ENOENT, drv_bind_ops(self->fd, self->vm, ops, 4, &done));
	EXPECT_EQ(2, done);
	EXPECT_EQ(0, drv_bind_ops(self->fd, self->vm, ops, 2, &done));
	EXPECT_EQ(2, done);
}

TEST_F(vm, a_mapping_holds_its_memory)
{
	uint64_t used = drv_hbm_used(self->fd);
	uint32_t bo;

	ASSERT_EQ(0, drv_bo(self->fd, MIB, 0, &bo));
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, bo, 0, VA, MIB, 0));
	ASSERT_EQ(0, drv_bo_close(self->fd, bo));
	EXPECT_EQ(used + MIB, drv_hbm_used(self->fd));
	/* A hole in the middle: both ends still hold it. */
	ASSERT_EQ(0, drv_unbind(self->fd, self->vm, VA + HBM_PAGE, HBM_PAGE));
	EXPECT_EQ(used + MIB, drv_hbm_used(self->fd));
	ASSERT_EQ(0, drv_unbind(self->fd, self->vm, VA, HBM_PAGE));
	EXPECT_EQ(used + MIB, drv_hbm_used(self->fd));
	ASSERT_EQ(0, drv_unbind(self->fd, self->vm, VA, MIB));
	EXPECT_EQ(used, drv_hbm_used(self->fd));
	/* Nothing is there any more: no error. */
	EXPECT_EQ(0, drv_unbind(self->fd, self->vm, VA, MIB));
}

TEST_F(vm, mapping_over_replaces)
{
	uint64_t used = drv_hbm_used(self->fd);
	uint32_t bo;

	ASSERT_EQ(0, drv_bo(self->fd, MIB, 0, &bo));
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, bo, 0, VA, MIB, 0));
	ASSERT_EQ(0, drv_bo_close(self->fd, bo));
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, self->bo, 0, VA, MIB, 0));
	EXPECT_EQ(used, drv_hbm_used(self->fd));
}

TEST_F(vm, destroy_drops_the_mappings)
{
	uint64_t used = drv_hbm_used(self->fd);
	uint32_t bo;

	ASSERT_EQ(0, drv_bo(self->fd, MIB, 0, &bo));
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, bo, 0, VA, MIB, 0));
	ASSERT_EQ(0, drv_bo_close(self->fd, bo));
	ASSERT_EQ(0, drv_vm_destroy(self->fd, self->vm));
	EXPECT_EQ(used, drv_hbm_used(self->fd));
}

TEST_F(vm, random_changes_leave_nothing_behind)
{
	uint64_t used, va, size, off;
	uint32_t seed = 12345, bo[4], i;

	ASSERT_EQ(0, drv_bo_close(self->fd, self->bo));
	used = drv_hbm_used(self->fd);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, drv_bo(self->fd, 6 * MIB, i == 3 ? DRM_NEURON_BO_HOST : 0, &bo[i]));
	for (i = 0; i < 400; i++) {
		seed = seed * 1103515245 + 12345;
		va = VA + (uint64_t)(seed >> 16 & 0xfff) * PAGE;
		size = (1 + (seed >> 4 & 0x3ff)) * PAGE;
		off = (seed >> 20 & 0xff) * PAGE;
		if (seed >> 29 & 1) {
			ASSERT_EQ(0, drv_unbind(self->fd, self->vm, va, size));
		} else {
			ASSERT_EQ(0, drv_bind(self->fd, self->vm, bo[seed >> 30], off, va, size, 0));
		}
	}
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, drv_bo_close(self->fd, bo[i]));
	ASSERT_EQ(0, drv_unbind(self->fd, self->vm, VA, 64 * MIB));
	EXPECT_EQ(used, drv_hbm_used(self->fd));
}

TEST_HARNESS_MAIN
