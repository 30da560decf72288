/* SPDX-License-Identifier: MIT */
/*
 * User interface of the neuron DRM accel driver (/dev/accel/accelN).
 *
 * Rules that hold for every ioctl: unknown flags, non-zero pads and reserved
 * fields are -EINVAL; ids and handles that do not exist are -ENOENT; bad user
 * pointers are -EFAULT; -ENOSPC means HBM or device addresses are exhausted,
 * -ENOMEM host memory; -ENODEV the device is gone, -EIO it is wedged; no state
 * changes when an error is returned, with two exceptions: VM_BIND says how many
 * operations were done, and a COPY whose user memory turns out bad half way
 * (-EFAULT) may have moved what came before. Waiting for jobs is done with DRM syncobjs
 * (binary or timeline). Job errors are fence errors: -ETIME hang, -EIO fault,
 * -ECANCELED the context was destroyed or reset.
 */
#ifndef _NEURON_ACCEL_H_
#define _NEURON_ACCEL_H_

#ifdef __KERNEL__
#include <drm/drm.h>
#else
#include <drm.h>
#endif

#if defined(__cplusplus)
extern "C" {
#endif

enum drm_neuron_ioctl_id {
	DRM_NEURON_DEV_QUERY = 0,
	DRM_NEURON_BO_CREATE,
	DRM_NEURON_BO_MMAP_OFFSET,
	DRM_NEURON_BO_INFO,
	DRM_NEURON_BO_WAIT,
	DRM_NEURON_VM_CREATE,
	DRM_NEURON_VM_DESTROY,
	DRM_NEURON_VM_BIND,
	DRM_NEURON_CTX_CREATE,
	DRM_NEURON_CTX_DESTROY,
	DRM_NEURON_CTX_GET_STATE,
	DRM_NEURON_SUBMIT,
};

/**
 * struct drm_neuron_obj_array - array of objects of a possibly other layout version
 * @stride: sizeof(object) that user space knows; larger objects must end in zeros
 * @count: number of objects
 * @array: user pointer
 */
struct drm_neuron_obj_array {
	__u32 stride;
	__u32 count;
	__u64 array;
};

#define DRM_NEURON_OBJ_ARRAY(cnt, ptr) \
	{ .stride = sizeof((ptr)[0]), .count = (cnt), .array = (__u64)(uintptr_t)(ptr) }

/* DEV_QUERY ---------------------------------------------------------------- */

enum drm_neuron_query_type {
	DRM_NEURON_QUERY_DEVICE = 0,	/* struct drm_neuron_query_device */
	DRM_NEURON_QUERY_CORES,		/* array of struct drm_neuron_query_core */
	DRM_NEURON_QUERY_REGIONS,	/* array of struct drm_neuron_query_region */
	DRM_NEURON_QUERY_TIMESTAMP,	/* struct drm_neuron_query_timestamp */
	DRM_NEURON_QUERY_LIMITS,	/* struct drm_neuron_query_limits */
};

/**
 * struct drm_neuron_dev_query - ask for facts and counters
 * @type: enum drm_neuron_query_type
 * @size: in: bytes at @pointer; out: bytes the kernel has. The smaller is copied
 * @pointer: user memory; 0: only report @size
 */
struct drm_neuron_dev_query {
	__u32 type;
	__u32 size;
	__u64 pointer;
};

#define DRM_NEURON_DEVICE_HAS_EXEC	(1u << 0)	/* jobs of type EXEC can run */
#define DRM_NEURON_DEVICE_HAS_IRQ	(1u << 1)	/* else completions are polled */

/**
 * struct drm_neuron_query_device - the chip
 * @pci_id: PCI device id
 * @pci_revision: PCI revision
 * @nc_version: NeuronCore version, 2 to 4
 * @core_count: physical NeuronCores
 * @routing_id: place of the chip in the instance
 * @hbm_stacks: number of HBM regions
 * @flags: DRM_NEURON_DEVICE_*
 * @fw_api_version: firmware interface version
 * @serial: serial number
 * @hbm_size: bytes of all stacks
 * @va_start: first device virtual address a VM may map
 * @va_end: one past the last
 * @page_size: smallest mapping unit in bytes
 * @sbuf_bytes: bytes of one SBUF partition; 0 without EXEC
 * @psum_bytes: bytes of one PSUM partition; 0 without EXEC
 * @exec_version: version of the execution block; 0 without EXEC
 */
struct drm_neuron_query_device {
	__u16 pci_id;
	__u8 pci_revision;
	__u8 nc_version;
	__u32 core_count;
	__u32 routing_id;
	__u32 hbm_stacks;
	__u32 flags;
	__u32 fw_api_version;
	__u64 serial;
	__u64 hbm_size;
	__u64 va_start;
	__u64 va_end;
	__u32 page_size;
	__u32 sbuf_bytes;
	__u32 psum_bytes;
	__u32 exec_version;
};

#define DRM_NEURON_ENGINES	8

/**
 * struct drm_neuron_query_core - one physical core; counters grow monotonically
 * @core: index
 * @flags: DRM_NEURON_CORE_*
 * @contexts: contexts that hold the core
 * @pad: 0
 * @wall_busy_ns: wall time with a job on the core
 * @modelled_ns: modelled length of the jobs that ran
 * @jobs: jobs ended
 * @insns: instructions retired
 * @faults: jobs that faulted
 * @pe_macs: multiply-accumulates of the tensor engine
 * @dma_bytes: bytes moved by engine DMA
 * @engine_ns: modelled busy nanoseconds by enum neuron_engine
 */
struct drm_neuron_query_core {
	__u32 core;
#define DRM_NEURON_CORE_CLAIMED		(1u << 0)	/* exclusively, by a context */
	__u32 flags;
	__u32 contexts;
	__u32 pad;
	__u64 wall_busy_ns;
	__u64 modelled_ns;
	__u64 jobs;
	__u64 insns;
	__u64 faults;
	__u64 pe_macs;
	__u64 dma_bytes;
	__u64 engine_ns[DRM_NEURON_ENGINES];
};

/**
 * struct drm_neuron_query_region - one HBM stack
 * @id: bit number in region masks
 * @flags: 0
 * @size: bytes
 * @cpu_visible_size: bytes that can be mmapped
 * @used: bytes allocated by all clients
 */
struct drm_neuron_query_region {
	__u32 id;
	__u32 flags;
	__u64 size;
	__u64 cpu_visible_size;
	__u64 used;
};

/**
 * struct drm_neuron_query_timestamp - two clocks read together
 * @cpu_ns: CLOCK_MONOTONIC
 * @device_ns: clock of the execution block; 0 without EXEC
 */
struct drm_neuron_query_timestamp {
	__u64 cpu_ns;
	__u64 device_ns;
};

/**
 * struct drm_neuron_query_limits - what the kernel accepts
 * @jobs_per_submit: jobs in one SUBMIT
 * @syncs_per_job: sync operations of one job
 * @bind_ops: operations in one VM_BIND
 * @queue_depth: jobs in flight in one context before SUBMIT blocks
 * @args_per_job: entries of an argument table
 * @contexts: contexts of the whole chip
 */
struct drm_neuron_query_limits {
	__u32 jobs_per_submit;
	__u32 syncs_per_job;
	__u32 bind_ops;
	__u32 queue_depth;
	__u32 args_per_job;
	__u32 contexts;
};

/* Buffer objects ----------------------------------------------------------- */

/**
 * struct drm_neuron_bo_create - allocate memory, zeroed
 * @size: in: bytes, > 0; out: rounded up to the page size (HBM: 64 KiB)
 * @flags: DRM_NEURON_BO_*
 * @region_mask: HBM stacks that may be used, in order of free space; 0: any.
 *	Must be 0 with DRM_NEURON_BO_HOST
 * @handle: out: GEM handle
 * @pad: 0
 */
struct drm_neuron_bo_create {
	__u64 size;
#define DRM_NEURON_BO_HOST		(1u << 0)	/* host memory; default: HBM */
#define DRM_NEURON_BO_NO_MMAP		(1u << 1)
#define DRM_NEURON_BO_CONTIGUOUS	(1u << 2)	/* HBM only */
	__u32 flags;
	__u32 region_mask;
	__u32 handle;
	__u32 pad;
};

/**
 * struct drm_neuron_bo_mmap_offset - get the offset to mmap() a BO at
 * @handle: GEM handle
 * @pad: 0
 * @offset: out. -EACCES for DRM_NEURON_BO_NO_MMAP
 */
struct drm_neuron_bo_mmap_offset {
	__u32 handle;
	__u32 pad;
	__u64 offset;
};

/**
 * struct drm_neuron_bo_info - what a handle is
 * @handle: GEM handle
 * @flags: out: DRM_NEURON_BO_*
 * @size: out: bytes
 * @region: out: HBM stack of the first byte; ~0: host memory
 * @pad: 0
 * @hbm_offset: out: offset in BAR4 of the first byte; 0 for host memory
 */
struct drm_neuron_bo_info {
	__u32 handle;
	__u32 flags;
	__u64 size;
	__u32 region;
	__u32 pad;
	__u64 hbm_offset;
};

/**
 * struct drm_neuron_bo_wait - wait until no job uses a BO
 * @handle: GEM handle
 * @pad: 0
 * @timeout_ns: absolute, CLOCK_MONOTONIC; past: poll. -ETIME when it expires
 */
struct drm_neuron_bo_wait {
	__u32 handle;
	__u32 pad;
	__s64 timeout_ns;
};

/* Address spaces ----------------------------------------------------------- */

/**
 * struct drm_neuron_vm_create - new device address space
 * @flags: 0
 * @id: out
 */
struct drm_neuron_vm_create {
	__u32 flags;
	__u32 id;
};

/**
 * struct drm_neuron_id - destroy an object
 * @id: of a VM or a context
 * @pad: 0
 */
struct drm_neuron_id {
	__u32 id;
	__u32 pad;
};

/**
 * struct drm_neuron_vm_bind_op - map or unmap
 * @flags: DRM_NEURON_BIND_*
 * @handle: MAP: GEM handle; UNMAP: 0
 * @bo_offset: MAP: page aligned; UNMAP: 0
 * @va: page aligned, in [va_start, va_end)
 * @size: page aligned, > 0
 *
 * MAP over an existing mapping replaces it. UNMAP of a hole is no error.
 */
struct drm_neuron_vm_bind_op {
#define DRM_NEURON_BIND_MAP		0u
#define DRM_NEURON_BIND_UNMAP		1u
#define DRM_NEURON_BIND_TYPE_MASK	0xffu
#define DRM_NEURON_BIND_READONLY	(1u << 8)
	__u32 flags;
	__u32 handle;
	__u64 bo_offset;
	__u64 va;
	__u64 size;
};

/**
 * struct drm_neuron_vm_bind - change an address space, synchronously
 * @vm_id: from VM_CREATE
 * @flags: 0
 * @ops: struct drm_neuron_vm_bind_op; on error those before the failing one
 *	have been done and @done says how many
 * @done: out: operations done
 */
struct drm_neuron_vm_bind {
	__u32 vm_id;
	__u32 flags;
	struct drm_neuron_obj_array ops;
	__u64 done;
};

/* Contexts ----------------------------------------------------------------- */

enum drm_neuron_priority {
	DRM_NEURON_PRIORITY_LOW = 0,
	DRM_NEURON_PRIORITY_NORMAL = 1,
	DRM_NEURON_PRIORITY_HIGH = 2,	/* CAP_SYS_NICE */
};

/**
 * struct drm_neuron_ctx_create - new context: an ordered stream of EXEC jobs
 * @vm_id: address space; 0 only for a context without cores
 * @flags: DRM_NEURON_CTX_*
 * @core_mask: in: physical cores wanted, 0: any @core_count free ones; out: cores
 *	held. -EBUSY when a core is claimed by another context
 * @core_count: used when @core_mask is 0; 0: a context for COPY and FILL only
 * @priority: enum drm_neuron_priority
 * @id: out
 */
struct drm_neuron_ctx_create {
	__u32 vm_id;
#define DRM_NEURON_CTX_SHARED		(1u << 0)	/* others may share the cores; default: exclusive */
	__u32 flags;
	__u32 core_mask;
	__u32 core_count;
	__u32 priority;
	__u32 id;
};

/**
 * struct drm_neuron_ctx_state - how a context is
 * @id: context
 * @state: out: DRM_NEURON_CTX_*
 * @faults: out: jobs that faulted
 * @pad: 0
 * @fault: out: struct neuron_fault_record of the last one (uapi/neuron/regs.h)
 */
struct drm_neuron_ctx_state {
	__u32 id;
#define DRM_NEURON_CTX_TIMEDOUT		(1u << 0)	/* a job made no progress and was ended */
#define DRM_NEURON_CTX_FATAL		(1u << 1)	/* no further jobs are accepted: -ECANCELED */
#define DRM_NEURON_CTX_INNOCENT		(1u << 2)	/* lost jobs to somebody else's reset; no reset
						 * that this driver does today takes others' jobs */
	__u32 state;
	__u32 faults;
	__u32 pad;
	__u8 fault[64];
};

/* Jobs --------------------------------------------------------------------- */

/**
 * struct drm_neuron_sync_op - wait for or signal a syncobj
 * @flags: DRM_NEURON_SYNC_*
 * @handle: syncobj
 * @point: timeline point; 0 for a binary syncobj. A wait for a point that has no
 *	fence yet is -EINVAL
 */
struct drm_neuron_sync_op {
#define DRM_NEURON_SYNC_SIGNAL		(1u << 31)	/* else: wait */
#define DRM_NEURON_SYNC_TIMELINE	(1u << 0)
	__u32 flags;
	__u32 handle;
	__u64 point;
};

/**
 * struct drm_neuron_mem - one side of a COPY or FILL
 * @type: DRM_NEURON_MEM_BO or DRM_NEURON_MEM_USER
 * @handle: BO: GEM handle; USER: 0
 * @addr: BO: byte offset; USER: pointer, pinned until the job has ended
 */
struct drm_neuron_mem {
#define DRM_NEURON_MEM_BO		0u
#define DRM_NEURON_MEM_USER		1u
	__u32 type;
	__u32 handle;
	__u64 addr;
};

enum drm_neuron_job_type {
	DRM_NEURON_JOB_EXEC = 0,	/* -EOPNOTSUPP without an execution block */
	DRM_NEURON_JOB_COPY = 1,	/* BO to BO, BO to USER, USER to BO */
	DRM_NEURON_JOB_FILL = 2,	/* BO only */
};

/**
 * struct drm_neuron_exec - EXEC: run a program
 * @program_va: struct neuron_program_header
 * @args_va: struct neuron_arg []
 * @arg_count: entries
 * @flags: NEURON_JOB_STRICT and so on (uapi/neuron/regs.h)
 * @result_va: struct neuron_completion; 0: none
 * @fence_va: user fence, 8-byte aligned; 0: none
 * @fence_value: written there
 * @trace_va: trace buffer; 0: none
 * @trace_size: its bytes
 * @seed: of random numbers and jitter
 * @core_mask: physical cores, subset of the context's; 0: all of them
 * @pad: 0
 */
struct drm_neuron_exec {
	__u64 program_va;
	__u64 args_va;
	__u32 arg_count;
	__u32 flags;
	__u64 result_va;
	__u64 fence_va;
	__u64 fence_value;
	__u64 trace_va;
	__u64 trace_size;
	__u64 seed;
	__u32 core_mask;
	__u32 pad;
};

/**
 * struct drm_neuron_copy - COPY: move bytes; FILL: write a 32-bit pattern
 * @dst: destination
 * @src: source; all 0 for FILL
 * @size: bytes, > 0; FILL: multiple of 4, as is the offset
 * @pattern: FILL
 * @pad: 0
 */
struct drm_neuron_copy {
	struct drm_neuron_mem dst;
	struct drm_neuron_mem src;
	__u64 size;
	__u32 pattern;
	__u32 pad;
};

/**
 * struct drm_neuron_job - one job
 * @type: enum drm_neuron_job_type
 * @flags: 0
 * @syncs: struct drm_neuron_sync_op
 * @exec: EXEC
 * @copy: COPY and FILL
 * @reserved: room of the union
 */
struct drm_neuron_job {
	__u32 type;
	__u32 flags;
	struct drm_neuron_obj_array syncs;
	union {
		struct drm_neuron_exec exec;
		struct drm_neuron_copy copy;
		__u64 reserved[16];
	};
};

/**
 * struct drm_neuron_submit - queue jobs, all or none
 * @ctx_id: context. EXEC jobs of a context run in order; COPY and FILL jobs run
 *	in order among themselves; between the two only syncs order
 * @flags: 0
 * @jobs: struct drm_neuron_job
 */
struct drm_neuron_submit {
	__u32 ctx_id;
	__u32 flags;
	struct drm_neuron_obj_array jobs;
};

#define DRM_IOCTL_NEURON(access, id, type) \
	DRM_IO##access(DRM_COMMAND_BASE + DRM_NEURON_##id, struct drm_neuron_##type)

enum {
	DRM_IOCTL_NEURON_DEV_QUERY = DRM_IOCTL_NEURON(WR, DEV_QUERY, dev_query),
	DRM_IOCTL_NEURON_BO_CREATE = DRM_IOCTL_NEURON(WR, BO_CREATE, bo_create),
	DRM_IOCTL_NEURON_BO_MMAP_OFFSET = DRM_IOCTL_NEURON(WR, BO_MMAP_OFFSET, bo_mmap_offset),
	DRM_IOCTL_NEURON_BO_INFO = DRM_IOCTL_NEURON(WR, BO_INFO, bo_info),
	DRM_IOCTL_NEURON_BO_WAIT = DRM_IOCTL_NEURON(W, BO_WAIT, bo_wait),
	DRM_IOCTL_NEURON_VM_CREATE = DRM_IOCTL_NEURON(WR, VM_CREATE, vm_create),
	DRM_IOCTL_NEURON_VM_DESTROY = DRM_IOCTL_NEURON(W, VM_DESTROY, id),
	DRM_IOCTL_NEURON_VM_BIND = DRM_IOCTL_NEURON(WR, VM_BIND, vm_bind),
	DRM_IOCTL_NEURON_CTX_CREATE = DRM_IOCTL_NEURON(WR, CTX_CREATE, ctx_create),
	DRM_IOCTL_NEURON_CTX_DESTROY = DRM_IOCTL_NEURON(W, CTX_DESTROY, id),
	DRM_IOCTL_NEURON_CTX_GET_STATE = DRM_IOCTL_NEURON(WR, CTX_GET_STATE, ctx_state),
	DRM_IOCTL_NEURON_SUBMIT = DRM_IOCTL_NEURON(W, SUBMIT, submit),
};

/*
 * fdinfo (Documentation/gpu/drm-usage-stats.rst): drm-driver, drm-pdev,
 * drm-client-id, drm-total-hbm, drm-resident-hbm, drm-total-host,
 * drm-engine-nc<N> (wall ns on core N), and neuron-cores: mask of the cores held.
 */

#if defined(__cplusplus)
}
#endif

#endif /* _NEURON_ACCEL_H_ */
