/* SPDX-License-Identifier: MIT */
/* What the tests of the driver's interface share: one open device, thin wrappers. */
#ifndef DRV_H
#define DRV_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xf86drm.h>

#include "drm/neuron_accel.h"
#include "neuron/isa.h"
#include "neuron/regs.h"

#define DRV_NODE	"/dev/accel/accel0"
#define HBM_PAGE	65536u
#define PAGE		4096u
#define MIB		(1ull << 20)

/* 0 or -errno, as the kernel's functions return it. */
static inline int drv_ioctl(int fd, unsigned long request, void *arg)
{
	return drmIoctl(fd, request, arg) ? -errno : 0;
}

static inline int drv_open(void)
{
	return open(DRV_NODE, O_RDWR | O_CLOEXEC);
}

static inline int64_t drv_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static inline int drv_query(int fd, uint32_t type, void *out, uint32_t size)
{
	struct drm_neuron_dev_query q = {
		.type = type, .size = size, .pointer = (uintptr_t)out,
	};

	return drv_ioctl(fd, DRM_IOCTL_NEURON_DEV_QUERY, &q);
}

static inline uint64_t drv_hbm_used(int fd)
{
	struct drm_neuron_query_region r[8] = {};
	uint64_t used = 0;
	int i;

	drv_query(fd, DRM_NEURON_QUERY_REGIONS, r, sizeof(r));
	for (i = 0; i < 8; i++)
		used += r[i].used;
	return used;
}

static inline int drv_bo(int fd, uint64_t size, uint32_t flags, uint32_t *handle)
{
	struct drm_neuron_bo_create c = { .size = size, .flags = flags };
	int ret = drv_ioctl(fd, DRM_IOCTL_NEURON_BO_CREATE, &c);

	*handle = c.handle;
	return ret;
}

static inline int drv_bo_close(int fd, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	return drv_ioctl(fd, DRM_IOCTL_GEM_CLOSE, &c);
}

static inline int drv_bo_wait(int fd, uint32_t handle, int64_t timeout)
{
	struct drm_neuron_bo_wait w = { .handle = handle, .timeout_ns = timeout };

	return drv_ioctl(fd, DRM_IOCTL_NEURON_BO_WAIT, &w);
}

/* MAP_FAILED with errno when it does not work. */
static inline void *drv_map(int fd, uint32_t handle, uint64_t size)
{
	struct drm_neuron_bo_mmap_offset o = { .handle = handle };

	if (drv_ioctl(fd, DRM_IOCTL_NEURON_BO_MMAP_OFFSET, &o))
		return MAP_FAILED;
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, o.offset);
}

static inline int drv_vm(int fd, uint32_t *id)
{
	struct drm_neuron_vm_create c = {};
	int ret = drv_ioctl(fd, DRM_IOCTL_NEURON_VM_CREATE, &c);

	*id = c.id;
	return ret;
}

static inline int drv_vm_destroy(int fd, uint32_t id)
{
	struct drm_neuron_id d = { .id = id };

	return drv_ioctl(fd, DRM_IOCTL_NEURON_VM_DESTROY, &d);
}

static inline int drv_bind_ops(int fd, uint32_t vm, struct drm_neuron_vm_bind_op *ops, uint32_t n,
			       uint64_t *done)
{
	struct drm_neuron_vm_bind b = {
		.vm_id = vm, .ops = { .stride = sizeof(*ops), .count = n, .array = (uintptr_t)ops },
	};
	int ret = drv_ioctl(fd, DRM_IOCTL_NEURON_VM_BIND, &b);

	if (done)
		*done = b.done;
	return ret;
}

static inline int drv_bind(int fd, uint32_t vm, uint32_t handle, uint64_t offset, uint64_t va,
			   uint64_t size, uint32_t flags)
{
	struct drm_neuron_vm_bind_op op = {
		.flags = flags, .handle = handle, .bo_offset = offset, .va = va, .size = size,
	};

	return drv_bind_ops(fd, vm, &op, 1, NULL);
}

static inline int drv_unbind(int fd, uint32_t vm, uint64_t va, uint64_t size)
{
	return drv_bind(fd, vm, 0, 0, va, size, DRM_NEURON_BIND_UNMAP);
}

static inline int drv_ctx(int fd, uint32_t vm, uint32_t flags, uint32_t *mask, uint32_t count,
			  uint32_t *id)
{
	struct drm_neuron_ctx_create c = {
		.vm_id = vm, .flags = flags, .core_mask = mask ? *mask : 0, .core_count = count,
		.priority = DRM_NEURON_PRIORITY_NORMAL,
	};
	int ret = drv_ioctl(fd, DRM_IOCTL_NEURON_CTX_CREATE, &c);

	*id = c.id;
	if (mask && !ret)
		*mask = c.core_mask;
	return ret;
}

static inline int drv_ctx_destroy(int fd, uint32_t id)
{
	struct drm_neuron_id d = { .id = id };

	return drv_ioctl(fd, DRM_IOCTL_NEURON_CTX_DESTROY, &d);
}

static inline int drv_ctx_state(int fd, uint32_t id, struct drm_neuron_ctx_state *state)
{
	memset(state, 0, sizeof(*state));
	state->id = id;
	return drv_ioctl(fd, DRM_IOCTL_NEURON_CTX_GET_STATE, state);
}

static inline int drv_submit(int fd, uint32_t ctx, struct drm_neuron_job *jobs, uint32_t n)
{
	struct drm_neuron_submit s = {
		.ctx_id = ctx, .jobs = { .stride = sizeof(*jobs), .count = n, .array = (uintptr_t)jobs },
	};

	return drv_ioctl(fd, DRM_IOCTL_NEURON_SUBMIT, &s);
}

static inline void drv_syncs(struct drm_neuron_job *job, struct drm_neuron_sync_op *ops, uint32_t n)
{
	job->syncs.stride = sizeof(*ops);
	job->syncs.count = n;
	job->syncs.array = (uintptr_t)ops;
}

/* Waits for a binary syncobj: 0, -ETIME ... */
static inline int drv_wait(int fd, uint32_t syncobj, int64_t ms)
{
	int ret = drmSyncobjWait(fd, &syncobj, 1, drv_now() + ms * 1000000, 0, NULL);

	return ret < 0 && ret != -1 ? ret : ret ? -errno : 0;
}

/*
 * The error of a signalled syncobj's fence: a sync file says it. 0: it succeeded.
 */
struct drv_sync_file_info {
	char name[32];
	__s32 status;
	__u32 flags;
	__u32 num_fences;
	__u32 pad;
	__u64 sync_fence_info;
};

static inline int drv_fence_error(int fd, uint32_t syncobj)
{
	struct drv_sync_file_info info = {};
	int sync, ret;

	if (drmSyncobjExportSyncFile(fd, syncobj, &sync))
		return -EBADF;
	ret = ioctl(sync, _IOWR('>', 4, struct drv_sync_file_info), &info);
	close(sync);
	if (ret)
		return -errno;
	return info.status < 0 ? info.status : info.status == 1 ? 0 : -EINPROGRESS;
}

/* One job that signals @syncobj; its fence's error once it is done. */
static inline int drv_run(int fd, uint32_t ctx, struct drm_neuron_job *job, uint32_t syncobj)
{
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL, .handle = syncobj };
	int ret;

	drv_syncs(job, &op, 1);
	ret = drv_submit(fd, ctx, job, 1);
	if (ret)
		return ret;
	ret = drv_wait(fd, syncobj, 20000);
	return ret ? ret : drv_fence_error(fd, syncobj);
}

static inline struct drm_neuron_job drv_copy(uint32_t dst, uint64_t dst_offset, uint32_t src,
					     uint64_t src_offset, uint64_t size)
{
	return (struct drm_neuron_job) {
		.type = DRM_NEURON_JOB_COPY,
		.copy = { .dst = { .handle = dst, .addr = dst_offset },
			  .src = { .handle = src, .addr = src_offset }, .size = size },
	};
}

static inline struct drm_neuron_job drv_to(uint32_t dst, uint64_t offset, const void *src,
					   uint64_t size)
{
	return (struct drm_neuron_job) {
		.type = DRM_NEURON_JOB_COPY,
		.copy = { .dst = { .handle = dst, .addr = offset },
			  .src = { .type = DRM_NEURON_MEM_USER, .addr = (uintptr_t)src },
			  .size = size },
	};
}

static inline struct drm_neuron_job drv_from(void *dst, uint32_t src, uint64_t offset,
					     uint64_t size)
{
	return (struct drm_neuron_job) {
		.type = DRM_NEURON_JOB_COPY,
		.copy = { .dst = { .type = DRM_NEURON_MEM_USER, .addr = (uintptr_t)dst },
			  .src = { .handle = src, .addr = offset }, .size = size },
	};
}

static inline struct drm_neuron_job drv_fill(uint32_t dst, uint64_t offset, uint64_t size,
					     uint32_t pattern)
{
	return (struct drm_neuron_job) {
		.type = DRM_NEURON_JOB_FILL,
		.copy = { .dst = { .handle = dst, .addr = offset }, .size = size,
			  .pattern = pattern },
	};
}

/* Numbers that differ from place to place. */
static inline void drv_pattern(void *mem, size_t size, uint32_t seed)
{
	uint8_t *p = mem;
	uint32_t x = seed * 2654435761u + 1;
	size_t i;

	for (i = 0; i < size; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		p[i] = x;
	}
}

/* A program in a host BO that is mapped at the same place in every test. */
#define PROG_VA		0x10000000ull
#define PROG_BYTES	0x10000u
#define PROG_CODE	sizeof(struct neuron_program_header)
#define PROG_ARGS	0xc000u
#define PROG_RESULT	0xe000u
#define PROG_FENCE	0xf000u

struct drv_prog {
	uint32_t bo;
	void *mem;
	struct neuron_program_header *header;
	struct neuron_insn *code;
	struct neuron_arg *args;
	struct neuron_completion *result;
	volatile uint64_t *fence;
};

static inline int drv_prog_init(int fd, uint32_t vm, struct drv_prog *p)
{
	struct drm_neuron_query_device q = {};
	int ret;

	ret = drv_query(fd, DRM_NEURON_QUERY_DEVICE, &q, sizeof(q));
	if (!ret)
		ret = drv_bo(fd, PROG_BYTES, DRM_NEURON_BO_HOST, &p->bo);
	if (!ret)
		ret = drv_bind(fd, vm, p->bo, 0, PROG_VA, PROG_BYTES, DRM_NEURON_BIND_MAP);
	if (ret)
		return ret;
	p->mem = drv_map(fd, p->bo, PROG_BYTES);
	if (p->mem == MAP_FAILED)
		return -errno;
	memset(p->mem, 0, PROG_BYTES);
	p->header = p->mem;
	p->code = (void *)((char *)p->mem + PROG_CODE);
	p->args = (void *)((char *)p->mem + PROG_ARGS);
	p->result = (void *)((char *)p->mem + PROG_RESULT);
	p->fence = (void *)((char *)p->mem + PROG_FENCE);
	p->header->magic = NEURON_PROGRAM_MAGIC;
	p->header->isa_version = NEURON_ISA_VERSION;
	p->header->nc_version = q.nc_version;
	p->header->cores = 1;
	return 0;
}

/* The first @words instructions run on the sync engine of every core. */
static inline void drv_prog_stream(struct drv_prog *p, uint32_t words, uint32_t cores)
{
	uint32_t c;

	p->header->cores = cores;
	p->header->size = PROG_CODE + (uint64_t)words * NEURON_WORD_BYTES;
	for (c = 0; c < cores; c++) {
		p->header->stream[c][NEURON_ENGINE_SP].offset = PROG_CODE;
		p->header->stream[c][NEURON_ENGINE_SP].words = words;
	}
}

static inline struct neuron_insn drv_insn(unsigned int opcode)
{
	struct neuron_insn in = { .opcode = opcode, .words = 1 };
	int i;

	for (i = 0; i < 3; i++) {
		in.ap[i].offset_reg = NEURON_REG_NONE;
		in.ap[i].count_reg = NEURON_REG_NONE;
	}
	return in;
}

static inline struct drm_neuron_job drv_exec(void)
{
	return (struct drm_neuron_job) {
		.type = DRM_NEURON_JOB_EXEC,
		.exec = { .program_va = PROG_VA, .result_va = PROG_VA + PROG_RESULT },
	};
}

/* A program that never ends, but retires instructions. */
static inline void drv_prog_loop(struct drv_prog *p)
{
	p->code[0] = drv_insn(NEURON_OP_COMPARE_BRANCH);
	p->code[0].op[0] = NEURON_ALU_EQUAL;
	p->code[0].imm[0].kind = NEURON_IMM_I32;
	p->code[0].imm[0].dtype = NEURON_DTYPE_INT32;
	p->code[0].imm[1].kind = NEURON_IMM_I32;
	p->code[0].imm[1].dtype = NEURON_DTYPE_INT32;
	p->code[0].aux = 0;
	p->code[1] = drv_insn(NEURON_OP_HALT);
	drv_prog_stream(p, 2, 1);
}

#endif /* DRV_H */
