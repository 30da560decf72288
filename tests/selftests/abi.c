// SPDX-License-Identifier: MIT
/*
 * The layout that binaries rely on, and that every bit which must be zero is
 * refused: one that is not can never be given a meaning.
 */
#include "kselftest_harness.h"

#include <stddef.h>

#include "drv.h"

/* Sizes and offsets are the ABI: these numbers never change. */
_Static_assert(sizeof(struct drm_neuron_obj_array) == 16, "");
_Static_assert(sizeof(struct drm_neuron_dev_query) == 16, "");
_Static_assert(sizeof(struct drm_neuron_query_device) == 72, "");
_Static_assert(sizeof(struct drm_neuron_query_core) == 136, "");
_Static_assert(sizeof(struct drm_neuron_query_region) == 32, "");
_Static_assert(sizeof(struct drm_neuron_query_timestamp) == 16, "");
_Static_assert(sizeof(struct drm_neuron_query_limits) == 24, "");
_Static_assert(sizeof(struct drm_neuron_bo_create) == 24, "");
_Static_assert(sizeof(struct drm_neuron_bo_mmap_offset) == 16, "");
_Static_assert(sizeof(struct drm_neuron_bo_info) == 32, "");
_Static_assert(sizeof(struct drm_neuron_bo_wait) == 16, "");
_Static_assert(sizeof(struct drm_neuron_vm_create) == 8, "");
_Static_assert(sizeof(struct drm_neuron_id) == 8, "");
_Static_assert(sizeof(struct drm_neuron_vm_bind_op) == 32, "");
_Static_assert(sizeof(struct drm_neuron_vm_bind) == 32, "");
_Static_assert(sizeof(struct drm_neuron_ctx_create) == 24, "");
_Static_assert(sizeof(struct drm_neuron_ctx_state) == 80, "");
_Static_assert(sizeof(struct drm_neuron_sync_op) == 16, "");
_Static_assert(sizeof(struct drm_neuron_mem) == 16, "");
_Static_assert(sizeof(struct drm_neuron_exec) == 80, "");
_Static_assert(sizeof(struct drm_neuron_copy) == 48, "");
_Static_assert(sizeof(struct drm_neuron_job) == 152, "");
_Static_assert(offsetof(struct drm_neuron_job, exec) == 24, "");
_Static_assert(sizeof(struct drm_neuron_submit) == 24, "");
_Static_assert(DRM_IOCTL_NEURON_DEV_QUERY == 0xc0106440, "");
_Static_assert(DRM_IOCTL_NEURON_SUBMIT == 0x4018644b, "");

FIXTURE(abi) {
	int fd;
	uint32_t ctx;
	uint32_t bo;
};

FIXTURE_SETUP(abi)
{
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &self->ctx));
	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &self->bo));
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
}

/* Each bit of a field alone. */
#define EACH_BIT(request, type, init, field, allowed) do {				\
		unsigned int bit_;							\
		for (bit_ = 0; bit_ < 8 * sizeof(((type *)0)->field); bit_++) {		\
			type arg_ = init;						\
			if ((allowed) >> bit_ & 1)					\
				continue;						\
			arg_.field |= (__typeof__(arg_.field))1 << bit_;		\
			EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, request, &arg_))		\
				TH_LOG(#type "." #field " bit %u", bit_);		\
		}									\
	} while (0)

TEST_F(abi, every_bit_that_must_be_zero)
{
#define I(...)	{ __VA_ARGS__ }
	EACH_BIT(DRM_IOCTL_NEURON_BO_CREATE, struct drm_neuron_bo_create, I(.size = PAGE), pad, 0);
	EACH_BIT(DRM_IOCTL_NEURON_BO_CREATE, struct drm_neuron_bo_create, I(.size = PAGE), flags, 7);
	EACH_BIT(DRM_IOCTL_NEURON_BO_MMAP_OFFSET, struct drm_neuron_bo_mmap_offset,
		 I(.handle = self->bo), pad, 0);
	EACH_BIT(DRM_IOCTL_NEURON_BO_INFO, struct drm_neuron_bo_info, I(.handle = self->bo), pad, 0);
	EACH_BIT(DRM_IOCTL_NEURON_BO_WAIT, struct drm_neuron_bo_wait, I(.handle = self->bo), pad, 0);
	EACH_BIT(DRM_IOCTL_NEURON_VM_CREATE, struct drm_neuron_vm_create, I(0), flags, 0);
	EACH_BIT(DRM_IOCTL_NEURON_VM_DESTROY, struct drm_neuron_id, I(.id = 1), pad, 0);
	EACH_BIT(DRM_IOCTL_NEURON_VM_BIND, struct drm_neuron_vm_bind, I(.vm_id = 1), flags, 0);
	EACH_BIT(DRM_IOCTL_NEURON_CTX_CREATE, struct drm_neuron_ctx_create, I(0), flags, 0);
	EACH_BIT(DRM_IOCTL_NEURON_CTX_DESTROY, struct drm_neuron_id, I(.id = self->ctx), pad, 0);
	EACH_BIT(DRM_IOCTL_NEURON_CTX_GET_STATE, struct drm_neuron_ctx_state,
		 I(.id = self->ctx), pad, 0);
	EACH_BIT(DRM_IOCTL_NEURON_SUBMIT, struct drm_neuron_submit, I(.ctx_id = self->ctx), flags, 0);
#undef I
}

TEST_F(abi, every_unused_byte_of_a_job)
{
	struct drm_neuron_job good = drv_fill(self->bo, 0, 4, 1), job;
	size_t i;

	for (i = offsetof(struct drm_neuron_job, copy) + sizeof(good.copy); i < sizeof(job); i++) {
		job = good;
		((uint8_t *)&job)[i] = 1;
		EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->ctx, &job, 1))
			TH_LOG("byte %zu", i);
	}
	for (i = 0; i < 32; i++) {
		job = good;
		job.flags = 1u << i;
		EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->ctx, &job, 1));
		job = good;
		job.copy.pad = 1u << i;
		EXPECT_EQ(-EINVAL, drv_submit(self->fd, self->ctx, &job, 1));
	}
	EXPECT_EQ(0, drv_submit(self->fd, self->ctx, &good, 1));
}

TEST_F(abi, arrays_of_newer_layouts)
{
	struct {
		struct drm_neuron_job job;
		uint64_t more;
	} jobs[2] = {};
	struct drm_neuron_submit s = {
		.ctx_id = self->ctx,
		.jobs = { .stride = sizeof(jobs[0]), .count = 2, .array = (uintptr_t)jobs },
	};

	jobs[0].job = drv_fill(self->bo, 0, 4, 1);
	jobs[1].job = drv_fill(self->bo, 4, 4, 2);
	EXPECT_EQ(0, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
	jobs[1].more = 1;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
	jobs[1].more = 0;
	s.jobs.stride = sizeof(struct drm_neuron_job) - 8;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
	s.jobs.stride = 0;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
	s.jobs.stride = 1u << 30;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
	s.jobs.stride = sizeof(struct drm_neuron_job);
	s.jobs.count = ~0u;
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
	s.jobs.count = 1;
	s.jobs.array = 8;
	EXPECT_EQ(-EFAULT, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
	s.jobs.array = ~0ull;
	EXPECT_EQ(-EFAULT, drv_ioctl(self->fd, DRM_IOCTL_NEURON_SUBMIT, &s));
}

TEST_F(abi, arguments_of_other_sizes)
{
	/* An older program passes less, a newer one more: the rest counts as zeros. */
	struct drm_neuron_vm_create c = {};
	uint8_t big[64] = {};

	EXPECT_EQ(0, drv_ioctl(self->fd, _IOWR('d', 0x45, c), &c));
	EXPECT_EQ(0, drv_ioctl(self->fd, _IOWR('d', 0x45, big), big));
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, _IO('d', 0x4c), NULL));
	EXPECT_EQ(-EINVAL, drv_ioctl(self->fd, _IO('d', 0x9f), NULL));
}

TEST_F(abi, version)
{
	drmVersionPtr v = drmGetVersion(self->fd);

	ASSERT_NE(NULL, v);
	EXPECT_STREQ("neuron", v->name);
	EXPECT_EQ(1, v->version_major);
	drmFreeVersion(v);
}

TEST_F(abi, garbage_is_refused_and_harmless)
{
	uint32_t seed = 99, i, k, word[64];
	unsigned int nr;

	for (i = 0; i < 20000; i++) {
		for (k = 0; k < 64; k++) {
			seed = seed * 1664525 + 1013904223;
			word[k] = seed >> 8 & 3 ? seed >> 28 : seed;
		}
		nr = seed % 12;
		if (nr == DRM_NEURON_BO_CREATE)
			word[1] |= 1;	/* not all of the memory there is */
		/* BO_WAIT may rightly wait for ever only if something runs: nothing does. */
		drmIoctl(self->fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x40 + nr, 4 * (seed >> 16 & 31)),
			 word);
	}
	close(self->fd);
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_bo(self->fd, HBM_PAGE, 0, &self->bo));
}

TEST_HARNESS_MAIN
