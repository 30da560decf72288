/* SPDX-License-Identifier: MIT */
/*
 * Inside the in-process back-end: a small driver in user space for chips of
 * model/chip. It reaches a chip only through registers, rings, page tables and
 * UDMA descriptors, as the kernel driver does.
 *
 * Lock order: sim_chip.lock, sim_queue.lock, dev_timeline.lock; slots_lock and
 * the bus lock are leaves. None of them is held while a register is written that
 * can start work (doorbells, CQ_HEAD), because the chip may run a whole job and
 * call back before that write returns.
 */
#ifndef LIBNRT_SIM_H
#define LIBNRT_SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"
#include "neuron/regs.h"
#include "neuron_chip.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "structures of the chip are little-endian");

#define SIM_PAGE		4096ull
#define SIM_HUGE		(2ull << 20)
#define SIM_HBM_UNIT		(64ull << 10)
#define SIM_MAX_STACKS		4
#define SIM_MAX_CHIPS		144

/* ---- sim_ranges.c: first-fit allocator of address ranges ------------------ */

struct sim_range {
	uint64_t start;
	uint64_t size;
};

/* Free ranges, sorted, never adjacent. The owner locks. */
struct sim_ranges {
	struct sim_range *free;
	size_t count;
	size_t cap;
	size_t taken;		/* ranges handed out */
	uint64_t free_bytes;
};

int sim_ranges_init(struct sim_ranges *r, uint64_t start, uint64_t size);
void sim_ranges_fini(struct sim_ranges *r);
/* A range with start % align == phase; align is a power of two. -ENOSPC, -ENOMEM */
int sim_ranges_take(struct sim_ranges *r, uint64_t size, uint64_t align,
		    uint64_t phase, uint64_t *start);
/* The largest hole, or @max bytes of it. -ENOSPC when nothing is free */
int sim_ranges_take_largest(struct sim_ranges *r, uint64_t max, struct sim_range *got);
void sim_ranges_give(struct sim_ranges *r, uint64_t start, uint64_t size);

/* ---- sim_bus.c: host memory that a chip may reach ------------------------- */

/**
 * struct sim_region - host memory with a bus address
 * @bus: first byte as the chip sees it; same offset in the page as @ptr
 * @ptr: first byte as the CPU sees it
 * @size: exact; bytes beside it are unreachable
 * @writable: the chip may write
 */
struct sim_region {
	uint64_t bus;
	uint8_t *ptr;
	size_t size;
	bool writable;
};

/*
 * Bus addresses are not pointers: a descriptor carries a bus address or'ed with
 * the chip's host bit (44 or 46), which user pointers have set already.
 */
struct sim_bus {
	pthread_rwlock_t lock;
	struct sim_region **slot;	/* by 2 MiB of bus address */
	struct sim_ranges ranges;
};

int sim_bus_init(struct sim_bus *bus);
void sim_bus_fini(struct sim_bus *bus);
int sim_bus_add(struct sim_bus *bus, void *ptr, size_t size, bool writable,
		struct sim_region **region);
/* Returns when no access is under way any more. NULL is allowed. */
void sim_bus_remove(struct sim_bus *bus, struct sim_region *region);
int sim_bus_read(struct sim_bus *bus, uint64_t addr, void *buf, size_t len);
int sim_bus_write(struct sim_bus *bus, uint64_t addr, const void *buf, size_t len);
/* CPU pointer of a bus address that the caller knows to be registered. */
void *sim_bus_ptr(struct sim_bus *bus, uint64_t addr);
/* Zeroed, page-aligned, registered memory. */
int sim_bus_alloc(struct sim_bus *bus, size_t size, struct sim_region **region);
void sim_bus_free(struct sim_bus *bus, struct sim_region *region);

/* ---- sim_sync.c: timelines ------------------------------------------------ */

/* A job will signal @point (may be empty). */
int sim_point_submit(struct dev_point point);
/* It did; @error is 0 or a negative errno. */
void sim_point_complete(struct dev_point point, int error);
/* Takes a submitted point back when the job was not queued after all. */
void sim_point_cancel(struct dev_point point);
bool sim_point_submitted(struct dev_point point);
bool sim_point_reached(struct dev_point point);
int sim_timeline_create(struct dev *dev, struct dev_timeline **timeline);
void sim_timeline_destroy(struct dev_timeline *timeline);
int sim_wait(struct dev_point point, int64_t timeout_ns);

/* ---- sim_queue.c: jobs that wait for points or for room ------------------- */

struct sim_queue;
struct sim_job;

/* One register write; size 0: none. */
struct sim_bell {
	unsigned int bar;
	uint64_t offset;
	uint64_t value;
};

enum sim_push {
	SIM_PUSH_FULL,		/* no room now */
	SIM_PUSH_MORE,		/* part of the job is in the ring */
	SIM_PUSH_DONE,		/* all of it is */
};

/**
 * struct sim_queue_ops - what differs between a slot and the UDMA queue
 * @push: write ring entries for @job and say how to ring; lock held
 * @drain: pop what the chip has completed from @pushed and signal; takes the lock
 * @release: free what @job holds
 */
struct sim_queue_ops {
	enum sim_push (*push)(struct sim_queue *q, struct sim_job *job, struct sim_bell bell[2]);
	void (*drain)(struct sim_queue *q);
	void (*release)(struct sim_queue *q, struct sim_job *job);
};

struct sim_job {
	struct sim_job *next;
	struct dev_point signal;
	struct dev_point *wait;
	unsigned int wait_count;
	uint64_t seqno;
};

struct sim_job_list {
	struct sim_job *head;
	struct sim_job **tail;
};

/**
 * struct sim_queue - jobs in order
 * @chip: its chip
 * @lock: everything below
 * @idle: signalled when @running becomes false or @pushed empty
 * @waiting: not in the ring yet
 * @pushed: in the ring, oldest first
 * @running: a thread feeds the ring; others leave their job and go
 * @paused: feed nothing (reset)
 * @error: not 0: the queue is dead, jobs are refused with it
 */
struct sim_queue {
	const struct sim_queue_ops *ops;
	struct sim_chip *chip;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct sim_job_list waiting;
	struct sim_job_list pushed;
	bool running;
	bool paused;
	int error;
};

void sim_job_list_init(struct sim_job_list *list);
void sim_job_list_add(struct sim_job_list *list, struct sim_job *job);
struct sim_job *sim_job_list_pop(struct sim_job_list *list);

int sim_queue_init(struct sim_queue *q, struct sim_chip *chip, const struct sim_queue_ops *ops);
/* Cancels what is waiting; nothing is pushed any more. */
void sim_queue_fini(struct sim_queue *q);
/* Checks @sync, takes @job over (released in every case) and runs what can run. */
int sim_queue_submit(struct sim_queue *q, struct sim_job *job, const struct dev_sync *sync);
/* Feed the ring; stops after @mine was pushed. NULL: as far as it goes. */
void sim_queue_run(struct sim_queue *q, const struct sim_job *mine);
/* Ends a popped job. */
void sim_job_end(struct sim_queue *q, struct sim_job *job, int error);
/* Ends a list of jobs with @error. */
void sim_job_list_end(struct sim_queue *q, struct sim_job_list *list, int error);

/* ---- sim_service.c: the thread for what no caller can do ------------------ */

/* Jobs in any @waiting list; a signal looks at it. */
extern atomic_uint sim_waiting;
int sim_service_start(void);
void sim_service_stop(void);
/* Run the waiting queues soon. */
void sim_service_kick(void);
/* A job runs: the watchdog must look. */
void sim_service_watch(void);

/* ---- chips, address spaces, contexts -------------------------------------- */

/* One row of uapi/neuron/arch.def. */
struct sim_arch {
	const char *name;
	unsigned int nc_version;
	unsigned int cores;
	unsigned int hbm_stacks;
	uint64_t stack_size;
	uint64_t stack_stride;
	unsigned int host_bit;
	unsigned int udma_engines;
	unsigned int h2t_engines;
};

/* The chip's copy queue: queue 0 of one H2T engine. */
struct sim_udma {
	struct sim_queue queue;
	uint64_t base;			/* engine window in BAR0 */
	unsigned int engine;
	struct sim_region *src_ring;
	struct sim_region *dst_ring;
	struct sim_region *words;	/* completion word, then one source word by ring entry */
	uint32_t tail;			/* free-running descriptor count */
	uint32_t done;			/* descriptors whose job part completed */
	uint64_t seqno;
	struct sim_region *zero;	/* 64 KiB of zeros for FILL */
};

struct sim_chip {
	struct sim_chip *next;
	unsigned int refs;		/* under sim_chips lock */
	unsigned int index;
	const struct sim_arch *arch;
	struct neuron_chip *chip;
	struct sim_bus bus;

	pthread_mutex_t lock;		/* HBM and address spaces */
	uint8_t *hbm;
	struct sim_ranges stack[SIM_MAX_STACKS];

	pthread_mutex_t slots_lock;	/* taken in interrupts, so never held over the chip */
	uint32_t exclusive;		/* cores claimed by one context */
	unsigned int users[NEURON_MAX_CORES];
	struct dev_ctx *slot[NEURON_MAX_SLOTS];
	unsigned int slots;
	unsigned int vectors;
	bool can_populate;		/* user pointers of copies can be checked */

	struct sim_udma udma;
};

/* The process's address space on a chip. */
struct sim_vm {
	struct sim_region *root;
	struct sim_region **chunk;	/* 2 MiB each, cut into tables */
	size_t chunks;
	unsigned int next_table;	/* in the last chunk */
	struct sim_ranges va;
};

struct sim_dev {
	struct dev base;
	struct sim_chip *chip;
	struct sim_vm vm;
};

struct sim_extent {
	unsigned int stack;
	uint64_t offset;	/* in the stack */
	uint64_t size;
};

struct sim_bo {
	struct dev_bo base;
	struct sim_region *region;	/* HOST */
	struct sim_extent *extent;	/* HBM */
	unsigned int extents;
	uint64_t va_start;		/* what was taken from the VA allocator */
	uint64_t va_size;
};

static inline struct sim_dev *to_sim_dev(struct dev *dev)
{
	return (struct sim_dev *)dev;
}

static inline struct sim_bo *to_sim_bo(struct dev_bo *bo)
{
	return (struct sim_bo *)bo;
}

/* sim_chip.c */
struct sim_chip *sim_chip_get(const char *arch, unsigned int index, int *error);
void sim_chip_put(struct sim_chip *chip);
/* References to all chips, at most @max. */
unsigned int sim_chips_get(struct sim_chip **chips, unsigned int max);
/* Device physical address of an HBM byte, and of host memory. */
uint64_t sim_hbm_dpa(const struct sim_chip *chip, unsigned int stack, uint64_t offset);
uint64_t sim_host_dpa(const struct sim_chip *chip, uint64_t bus);
void sim_log(enum neuron_chip_log level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* sim_vm.c; sim_chip.lock held except for the operations of the back-end */
int sim_vm_init(struct sim_dev *dev);
void sim_vm_fini(struct sim_dev *dev);
int sim_bo_alloc(struct dev *dev, size_t size, enum dev_mem mem, uint32_t stack_mask,
		 struct dev_bo **bo);
void sim_bo_free(struct dev_bo *bo);
int sim_bo_map(struct dev_bo *bo);

/* sim_udma.c */
int sim_udma_init(struct sim_chip *chip);
void sim_udma_fini(struct sim_chip *chip);
/* The engine aborted: every copy fails from now on. */
void sim_udma_abort(struct sim_chip *chip);
int sim_copy(struct dev *dev, struct dev_loc dst, struct dev_loc src, size_t size,
	     const struct dev_sync *sync);
int sim_fill(struct dev *dev, struct dev_bo *bo, size_t offset, size_t size,
	     uint32_t pattern, const struct dev_sync *sync);

/* sim_ctx.c */
int sim_ctx_create(struct dev *dev, uint32_t core_mask, bool shared, struct dev_ctx **ctx);
void sim_ctx_destroy(struct dev_ctx *ctx);
bool sim_ctx_fault(struct dev_ctx *ctx, struct neuron_fault_record *fault);
int sim_exec(struct dev_ctx *ctx, const struct dev_exec *exec, const struct dev_sync *sync);
struct sim_queue *sim_ctx_queue(struct dev_ctx *ctx);
void sim_ctx_put(struct dev_ctx *ctx);
/* References to the contexts of a chip whose completions raise @vector (~0: all). */
unsigned int sim_ctxs_get(struct sim_chip *chip, unsigned int vector,
			  struct dev_ctx *ctxs[NEURON_MAX_SLOTS]);
/* Ends a job that made no progress; true: a job is under way. */
bool sim_ctx_watchdog(struct dev_ctx *ctx, uint64_t now);
uint64_t sim_now(void);

#endif /* LIBNRT_SIM_H */
