/* SPDX-License-Identifier: MIT */
/*
 * The device interface of libnrt: everything above it is the same code on the
 * kernel driver ("drm") and on the chip model in this process ("sim").
 *
 * All functions return 0 or a negative errno with the meaning of
 * uapi/drm/neuron_accel.h. All may be called from any thread; an object must not
 * be destroyed while another thread uses it.
 */
#ifndef LIBNRT_DEVICE_H
#define LIBNRT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron/regs.h"

struct dev;

/**
 * struct dev_info - facts of one chip
 * @arch: "trn1", "inf2", "trn2", "trn3"
 * @bdf: PCI address "0000:00:04.0"; sim: "sim:0"
 * @nc_version: 2 to 4
 * @cores: physical NeuronCores
 * @hbm_stacks: HBM stacks; cores share them evenly, in order
 * @hbm_stack_size: bytes
 * @routing_id: place in the instance
 * @has_exec: programs can run
 */
struct dev_info {
	char arch[8];
	char bdf[16];
	unsigned int nc_version;
	unsigned int cores;
	unsigned int hbm_stacks;
	uint64_t hbm_stack_size;
	unsigned int routing_id;
	bool has_exec;
};

enum dev_mem {
	DEV_MEM_HBM,
	DEV_MEM_HOST,
};

/**
 * struct dev_bo - memory that the chip can address
 * @dev: chip
 * @mem: kind
 * @size: rounded up by the back-end
 * @va: device virtual address in the process's one address space on @dev
 * @stack: HBM stack; HOST: 0
 * @cpu: CPU mapping once dev_bo_map() was called, else NULL
 */
struct dev_bo {
	struct dev *dev;
	enum dev_mem mem;
	size_t size;
	uint64_t va;
	unsigned int stack;
	void *cpu;
};

/**
 * struct dev_loc - one side of a copy
 * @bo: NULL: host memory of this process at @ptr
 * @offset: in @bo
 * @ptr: used when @bo is NULL
 */
struct dev_loc {
	struct dev_bo *bo;
	size_t offset;
	void *ptr;
};

struct dev_timeline;	/* monotonic counter that jobs signal */
struct dev_ctx;		/* ordered stream of programs on claimed cores */

/**
 * struct dev_point - a value of a timeline
 * @timeline: NULL: nothing
 * @value: > 0
 */
struct dev_point {
	struct dev_timeline *timeline;
	uint64_t value;
};

/**
 * struct dev_sync - what a job waits for and signals
 * @wait: @wait_count points; a wait for a point that no submitted job signals is
 *	-EINVAL
 * @signal: signalled when the job ended, also when it failed
 */
struct dev_sync {
	const struct dev_point *wait;
	unsigned int wait_count;
	struct dev_point signal;
};

/* EXEC job; fields as in struct neuron_job_desc. */
struct dev_exec {
	uint64_t program_va;
	uint64_t args_va;
	uint32_t arg_count;
	uint32_t flags;
	uint64_t result_va;
	uint64_t fence_va;
	uint64_t fence_value;
	uint64_t trace_va;
	uint64_t trace_size;
	uint64_t seed;
	uint32_t core_mask;	/* physical cores; 0: all of the context */
};

/* Counters of one core, as struct drm_neuron_query_core. */
struct dev_core_stats {
	uint64_t wall_busy_ns;
	uint64_t modelled_ns;
	uint64_t jobs;
	uint64_t insns;
	uint64_t faults;
	uint64_t pe_macs;
	uint64_t dma_bytes;
	uint64_t engine_ns[NEURON_ENGINE_COUNT];
};

/**
 * struct dev_backend - one implementation
 * @name: "drm" or "sim"
 * @count: chips present
 * @open: open chip @index; @dev->info is filled. Creates the process's address space
 * @close: end of use; every object of the chip has been destroyed
 * @bo_alloc: zeroed memory, mapped in the address space. @stack_mask 0: any
 * @bo_free: unmap and free; the caller has waited for the jobs that use it
 * @bo_map: make @bo->cpu valid
 * @copy: COPY job
 * @fill: FILL job: 32-bit @pattern, @size a multiple of 4
 * @timeline_create: starts at 0
 * @timeline_destroy: -
 * @wait: until @point is reached. @timeout_ns relative, < 0 forever. -ETIME, or the
 *	error of the job that signalled it: -EIO fault, -ETIMEDOUT ended by the
 *	watchdog, -ECANCELED
 * @ctx_create: claim physical cores exclusively (or shared); -EBUSY when taken
 * @ctx_destroy: ends its jobs
 * @ctx_fault: last fault of the context; false: none
 * @exec: EXEC job; jobs of a context run in order
 * @mem_used: bytes in use on an HBM stack, by all processes
 * @core_stats: counters
 */
struct dev_backend {
	const char *name;
	int (*count)(void);
	int (*open)(unsigned int index, struct dev **dev);
	void (*close)(struct dev *dev);
	int (*bo_alloc)(struct dev *dev, size_t size, enum dev_mem mem,
			uint32_t stack_mask, struct dev_bo **bo);
	void (*bo_free)(struct dev_bo *bo);
	int (*bo_map)(struct dev_bo *bo);
	int (*copy)(struct dev *dev, struct dev_loc dst, struct dev_loc src,
		    size_t size, const struct dev_sync *sync);
	int (*fill)(struct dev *dev, struct dev_bo *bo, size_t offset, size_t size,
		    uint32_t pattern, const struct dev_sync *sync);
	int (*timeline_create)(struct dev *dev, struct dev_timeline **timeline);
	void (*timeline_destroy)(struct dev_timeline *timeline);
	int (*wait)(struct dev_point point, int64_t timeout_ns);
	int (*ctx_create)(struct dev *dev, uint32_t core_mask, bool shared,
			  struct dev_ctx **ctx);
	void (*ctx_destroy)(struct dev_ctx *ctx);
	bool (*ctx_fault)(struct dev_ctx *ctx, struct neuron_fault_record *fault);
	int (*exec)(struct dev_ctx *ctx, const struct dev_exec *exec,
		    const struct dev_sync *sync);
	int (*mem_used)(struct dev *dev, unsigned int stack, uint64_t *used);
	int (*core_stats)(struct dev *dev, unsigned int core,
			  struct dev_core_stats *stats);
};

/**
 * struct dev - first member of a back-end's own chip object
 * @backend: its functions
 * @info: facts
 */
struct dev {
	const struct dev_backend *backend;
	struct dev_info info;
};

extern const struct dev_backend dev_backend_drm;
/* Chips from NEURON_RT_SIM: "trn2" or "trn2:4" (four chips). */
extern const struct dev_backend dev_backend_sim;

/* dev_backend_sim when NEURON_RT_SIM is set, else dev_backend_drm. */
const struct dev_backend *dev_backend_select(void);

#endif /* LIBNRT_DEVICE_H */
