/* SPDX-License-Identifier: MIT */
/*
 * State of strict mode, by core.
 */
#ifndef NEURON_CHIP_CHECK_STATE_H
#define NEURON_CHIP_CHECK_STATE_H

#include "check.h"
#include "exec_state.h"

/* Threads of a core: streams by engine, then DMA queues. */
#define CHECK_THREADS	(STREAMS + NEURON_DMA_QUEUES)
#define THREAD_QUEUE(q)	(STREAMS + (q))

/**
 * struct vclock - what a thread knows of the others
 * @r: by thread: its instructions up to this one have read their inputs
 * @w: they have also completed their writes
 */
struct vclock {
	uint32_t r[CHECK_THREADS];
	uint32_t w[CHECK_THREADS];
};

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
	uint8_t engine;
	uint32_t clock;
	uint32_t debug_id;
};

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
	uint8_t core;
	uint8_t thread;
	uint32_t clock;
	uint32_t debug_id;
};

#define BUCKET_SHIFT	11
#define BUCKETS		(CORE_COLUMNS_MAX >> (BUCKET_SHIFT - CORE_COLUMN_SHIFT))

struct bucket {
	struct access *a;
	unsigned int n, max;
};

#define SENT_KEPT	64

/**
 * struct sent - updates of a semaphore by one thread, in its order
 * @total: of all of them
 * @count: how many
 * @last: the last SENT_KEPT: total before it, and what it carries
 */
struct sent {
	uint64_t total;
	uint32_t count;
	struct {
		uint64_t before;
		struct vclock clock;
	} last[SENT_KEPT];
};

/**
 * struct sem_check - a semaphore
 * @by: updates by thread
 * @taken: what the subtracting updates carried
 */
struct sem_check {
	struct sent *by[CHECK_THREADS];
	struct vclock taken;
};

/**
 * struct check - strict mode's view of a core
 * @n: instructions with operands that each thread has started
 * @clock: what each thread knows
 * @msg: clocks under way, by the index that updates and transfers carry
 * @written: by space: a bit for each byte, partition after partition
 * @words: by space: 64-bit words of a partition
 * @hbm: in the check of core 0: transfers of all cores
 * @by_pe: PSUM bytes whose last writer was the tensor engine, one bit each
 */
struct check {
	uint32_t n[CHECK_THREADS];
	struct vclock clock[CHECK_THREADS];
	struct sem_check *sem[NEURON_SEMAPHORES];
	struct vclock event[NEURON_EVENTS];
	struct vclock *msg;
	uint32_t *msg_free;
	uint32_t msgs, msgs_max, frees;
	uint64_t *written[3];
	size_t words[3];
	uint64_t *by_pe;
	struct bucket bucket[3][BUCKETS];
	uint8_t *window;
	struct hbm_check *hbm;
};

void vclock_join(struct vclock *a, const struct vclock *b);

/* --- check_mem.c -------------------------------------------------------------------- */

bool mem_begin(struct exec_core *c, struct check *k);
void mem_free(struct check *k);
void region_of(const struct exec_core *c, const struct opnd *op, struct region *r);
/* True: every byte has been written; else the first that was not. */
bool mem_written(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte);
bool mem_by_pe(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte);
void mem_write(struct check *k, const struct region *r, bool pe);

/* --- check_race.c ------------------------------------------------------------------- */

void race_begin(struct check *k);
void race_free(struct check *k);
/* Checks @a against what came before and remembers it. NULL, or whom it races with. */
const struct access *race_access(struct check *k, const struct vclock *clock,
				 const struct access *a, bool *nomem);
/* First byte and number of bytes, from first to last, that two regions share. */
bool region_overlap(struct check *k, const struct region *a, const struct region *b,
		    uint32_t *byte, uint32_t *size);

/* --- check_hbm.c -------------------------------------------------------------------- */

bool hbm_begin(struct exec *x, struct check *k);
void hbm_free(struct hbm_check *h);
/* As race_access(), for an operand in HBM; @a without its region. */
const struct hbm_access *hbm_touch(struct check *k, const struct vclock *clock,
				   const struct hbm_opnd *h, struct hbm_access *a, bool *nomem);

#endif /* NEURON_CHIP_CHECK_STATE_H */
