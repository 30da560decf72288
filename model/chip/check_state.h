/* SPDX-License-Identifier: MIT */
/*
 * State of strict mode: what the threads of a job know of each other (check_clock.c),
 * and by core which bytes were written (check_mem.c) and touched (check_race.c).
 */
#ifndef NEURON_CHIP_CHECK_STATE_H
#define NEURON_CHIP_CHECK_STATE_H

#include "check.h"
#include "exec_state.h"

/* Threads of a core: streams by engine, then DMA queues. */
#define CHECK_THREADS	(STREAMS + NEURON_DMA_QUEUES)
#define THREADS_MAX	(NEURON_MAX_CORES * CHECK_THREADS)
#define THREAD(core, local)	((core) * CHECK_THREADS + (local))
#define THREAD_QUEUE(q)	(STREAMS + (q))

static inline unsigned int thread_engine(unsigned int thread)
{
	unsigned int local = thread % CHECK_THREADS;

	return local >= STREAMS ? NEURON_ENGINE_DMA : local;
}

/* --- clocks -------------------------------------------------------------------------- */

/*
 * A clock says how far a thread knows the others: [t] instructions of thread t up to
 * this one have read their inputs, [threads + t] they have also completed their writes.
 */
struct sent;
struct sem_check;

/**
 * struct check_job - what the threads of a job know of each other
 * @threads: of all cores; a clock has twice as many words
 * @n: what each thread has done so far: instructions with operands, transfers, and
 *	waits and updates that take from a semaphore
 * @clock: what each thread knows
 * @msg: clocks under way, by the index that updates and transfers carry
 * @sem: by core
 * @event: by core: clock of the last set
 */
struct check_job {
	unsigned int threads;
	uint32_t n[THREADS_MAX];
	uint32_t *clock;
	uint32_t *msg;
	uint32_t *msg_free;
	uint32_t msgs, msgs_max, frees;
	struct sem_check *sem[NEURON_MAX_CORES][NEURON_SEMAPHORES];
	uint32_t *event[NEURON_MAX_CORES][NEURON_EVENTS];
};

bool clock_begin(struct exec *x);
static inline uint32_t *clock_of(struct check_job *j, unsigned int thread)
{
	return j->clock + (size_t)thread * 2 * j->threads;
}

void clock_join(const struct check_job *j, uint32_t *a, const uint32_t *b);
/* A message with @clock; 0: out of memory, nothing is known from it. */
uint32_t msg_new(struct check_job *j, const uint32_t *clock);
/* @clock learns what the message says, which ends. */
void msg_take(struct check_job *j, uint32_t msg, uint32_t *clock);
/* The message of update @u for @core, noted with its semaphore. */
uint32_t msg_send(struct check_job *j, unsigned int core, const struct neuron_update *u,
		  unsigned int thread, const uint32_t *clock);

/* --- memory -------------------------------------------------------------------------- */

/**
 * struct region - the bytes of an operand
 * @first: offset of the first element in its partition
 * @lo, @hi: bounds in the partition
 */
struct region {
	uint8_t space;
	uint8_t part;
	uint8_t parts;
	uint8_t bytes;
	bool dense;
	uint32_t lo, hi;
	int32_t first;
	uint32_t num[NEURON_AP_DIMS];
	int32_t step[NEURON_AP_DIMS];
};

/* An access that later ones may race with. */
struct access {
	struct region at;
	bool write;
	uint8_t thread;
	uint32_t clock;
	uint32_t debug_id;
};

#define GRAIN		64u	/* bytes of a partition that one word of bits describes */

/* 128 partitions, a bit each. */
struct lanes {
	uint64_t bit[2];
};

/**
 * struct bytemap - a bit for each byte of SBUF or PSUM
 * @grains: of a partition
 * @full: by grain: partitions in which all of it is set
 * @part: by grain: partitions in which @bits says what is set; else nothing is
 * @bits: partition after partition
 */
struct bytemap {
	uint32_t grains;
	struct lanes *full, *part;
	uint64_t *bits;
};

#define BUCKET_SHIFT	11
#define BUCKETS		(CORE_COLUMNS_MAX >> (BUCKET_SHIFT - CORE_COLUMN_SHIFT))

struct bucket {
	struct access *a;
	unsigned int n, max;
};

/**
 * struct check - strict mode's view of a core's memories
 * @written: by space
 * @by_pe: PSUM bytes whose last writer was the tensor engine
 * @bus: SBUF and PSUM by engine: its last access, where another engine may not use them
 *	at the same time
 * @hbm: in the check of core 0: transfers of all cores
 */
struct check {
	struct bytemap written[3];
	struct bytemap by_pe;
	struct bucket bucket[3][BUCKETS];
	uint8_t *window;
	struct {
		uint32_t clock, debug_id;
	} bus[2][STREAMS];
	struct hbm_check *hbm;
};

/* --- check_mem.c -------------------------------------------------------------------- */

bool mem_begin(struct exec_core *c, struct check *k);
void mem_free(struct check *k);
void region_of(const struct exec_core *c, const struct opnd *op, struct region *r);
/* True: every byte has been written; else the first that was not. */
bool mem_written(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte);
bool mem_by_pe(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte);
void mem_write(struct check *k, const struct region *r, bool pe);
/* Bytes [@lo, @hi) of one partition. */
void mem_write_bytes(struct check *k, unsigned int space, unsigned int part, uint32_t lo,
		     uint32_t hi, bool pe);

/* --- check_race.c ------------------------------------------------------------------- */

void race_begin(struct check *k);
void race_free(struct check *k);
/*
 * Checks @a against what came before and remembers it. @clock: of its thread. NULL, or
 * whom it races with.
 */
const struct access *race_access(struct check *k, const struct check_job *j,
				 const uint32_t *clock, const struct access *a, bool *nomem);
/* First byte and number of bytes, from first to last, that two regions share. */
bool region_overlap(struct check *k, const struct region *a, const struct region *b,
		    uint32_t *byte, uint32_t *size);

/* --- check_hbm.c -------------------------------------------------------------------- */

/**
 * struct hbm_region - bytes of HBM by device address
 * @lo, @hi: bounds
 * @run: bytes of each run without gaps
 * @num, @step: dimensions, widest step first
 */
struct hbm_region {
	uint64_t lo, hi;
	uint64_t run;
	unsigned int dims;
	uint64_t num[NEURON_DMA_DIMS];
	uint64_t step[NEURON_DMA_DIMS];
};

struct hbm_access {
	struct hbm_region at;
	bool write;
	uint8_t thread;
	uint32_t clock;
	uint32_t debug_id;
};

bool hbm_begin(struct exec *x, struct check *k);
void hbm_free(struct hbm_check *h);
/* As race_access(), for an operand in HBM; @a without its region. */
const struct hbm_access *hbm_touch(struct check *k, const struct check_job *j,
				   const uint32_t *clock, const struct hbm_opnd *h,
				   struct hbm_access *a, bool *nomem);
/* Row @r of a gather is not left out. */
bool hbm_row_taken(const struct hbm_opnd *h, unsigned int r);
/* Scratch: false: byte @at of the argument was read and never written. */
bool hbm_scratch_read(struct check *k, const struct hbm_opnd *h, uint64_t *at);
/* False: out of memory. */
bool hbm_scratch_write(struct check *k, const struct hbm_opnd *h);

#endif /* NEURON_CHIP_CHECK_STATE_H */
