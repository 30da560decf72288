// SPDX-License-Identifier: MIT
/*
 * Strict mode: a corpus of racy programs and their correct twins, reads of bytes
 * never written, accumulators, and jitter.
 */
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "fake_vm.h"

#define SBUF	NEURON_SPACE_SBUF
#define PSUM	NEURON_SPACE_PSUM
#define F32	NEURON_DTYPE_FLOAT32
#define DVE	NEURON_ENGINE_DVE
#define ACT	NEURON_ENGINE_ACT
#define POOL	NEURON_ENGINE_POOL
#define SP	NEURON_ENGINE_SP
#define PE	NEURON_ENGINE_PE

FIXTURE(strict)
{
	struct prog *p;
};

FIXTURE_SETUP(strict)
{
	self->p = prog_new(3, 1);
	self->p->flags = NEURON_JOB_STRICT;
}

FIXTURE_TEARDOWN(strict)
{
	prog_free(self->p);
}

/* Instructions of this file: debug ids say which is which. */

static void set(struct prog *p, unsigned int engine, uint32_t id, uint32_t offset, unsigned int n,
		struct neuron_wait wait, struct neuron_update update)
{
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

	w.debug_id = htole32(id);
	w.ap[0] = ap_row(SBUF, F32, 0, 32, offset, n);
	w.imm[0] = imm_f32(id);
	w.wait[0] = wait;
	w.update = update;
	prog_add(p, 0, engine, &w);
}

static void copy(struct prog *p, unsigned int engine, uint32_t id, uint32_t to, uint32_t from,
		 unsigned int n, struct neuron_wait wait, struct neuron_update update)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY);

	w.debug_id = htole32(id);
	w.ap[0] = ap_row(SBUF, F32, 0, 32, to, n);
	w.ap[1] = ap_row(SBUF, F32, 0, 32, from, n);
	w.wait[0] = wait;
	w.update = update;
	prog_add(p, 0, engine, &w);
}

static void load(struct prog *p, unsigned int engine, uint32_t id, unsigned int queue,
		 uint32_t offset, unsigned int n, struct neuron_wait wait,
		 struct neuron_update update)
{
	struct neuron_dma_operand dst = dma_sbuf(), src = dma_hbm(0, F32, 0, n, 32, n * 4);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);

	w.debug_id = htole32(id);
	w.aux = htole32(queue);
	w.ap[0] = ap_row(SBUF, F32, 0, 32, offset, n);
	w.wait[0] = wait;
	w.update = update;
	prog_dma(p, 0, engine, &w, &dst, &src);
}

static void store(struct prog *p, unsigned int engine, uint32_t id, unsigned int queue,
		  uint32_t offset, unsigned int n, struct neuron_wait wait)
{
	struct neuron_dma_operand src = dma_sbuf(), dst = dma_hbm(0, F32, 0, n, 32, n * 4);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);

	w.debug_id = htole32(id);
	w.aux = htole32(queue);
	w.ap[1] = ap_row(SBUF, F32, 0, 32, offset, n);
	w.wait[0] = wait;
	prog_dma(p, 0, engine, &w, &dst, &src);
}

static void semaphore(struct prog *p, unsigned int engine, struct neuron_wait wait,
		      struct neuron_update update)
{
	struct neuron_insn w = insn_new(NEURON_OP_EVENT_SEMAPHORE);

	w.wait[0] = wait;
	w.update = update;
	prog_add(p, 0, engine, &w);
}

static const struct neuron_wait no_wait;
static const struct neuron_update no_update;

#define FAULT(p)	(&(p)->job.fault)

#define EXPECT_RACE(p, id, other)						\
	do {									\
		ASSERT_EQ(prog_run(p), NEURON_FAULT_DATA_RACE);			\
		EXPECT_EQ(le32toh(FAULT(p)->debug_id), id);			\
		EXPECT_EQ(le32toh(FAULT(p)->other_debug_id), other);		\
	} while (0)

/* --- the corpus ------------------------------------------------------------------------ */

TEST_F(strict, read_after_write)
{
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(5, 1), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	set(p, DVE, 1, 0, 64, no_wait, no_update);
	/* Late enough to find the data there, but by luck. */
	set(p, POOL, 3, 4096, 64, no_wait, update_add(6, 1));
	set(p, POOL, 4, 8192, 64, no_wait, update_add(6, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(6, 2), no_update);
	EXPECT_RACE(p, 2, 1);
	EXPECT_EQ(FAULT(p)->engine, ACT);
	EXPECT_EQ(FAULT(p)->other_engine, DVE);
	EXPECT_EQ(FAULT(p)->space, SBUF);
	EXPECT_EQ(FAULT(p)->partition, 0);
	EXPECT_EQ(le64toh(FAULT(p)->addr), 0);
	EXPECT_EQ(le64toh(FAULT(p)->size), 256);
}

TEST_F(strict, write_after_read)
{
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(5, 1), update_add(6, 1));
	set(p, DVE, 3, 0, 64, wait_ge(6, 1), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(5, 1), no_update);
	set(p, DVE, 4, 4096, 64, no_wait, no_update);
	set(p, DVE, 5, 8192, 2048, no_wait, no_update);
	set(p, DVE, 3, 0, 64, no_wait, no_update);
	EXPECT_RACE(p, 3, 2);
}

TEST_F(strict, write_after_write)
{
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	set(p, POOL, 2, 128, 64, wait_ge(5, 1), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	set(p, DVE, 1, 0, 64, no_wait, no_update);
	set(p, POOL, 3, 4096, 64, no_wait, no_update);
	set(p, POOL, 2, 128, 64, no_wait, no_update);
	EXPECT_RACE(p, 2, 1);
	EXPECT_EQ(le64toh(FAULT(p)->addr), 128);
	EXPECT_EQ(le64toh(FAULT(p)->size), 128);
}

TEST_F(strict, neighbours_do_not_race)
{
	struct prog *p = self->p;
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

	/* Interleaved columns: even elements here, odd elements there. */
	w.ap[0] = ap_row(SBUF, F32, 0, 32, 0, 64);
	w.ap[0].step[0] = htole16(2);
	w.imm[0] = imm_f32(1);
	prog_add(p, 0, DVE, &w);
	w.ap[0].offset = htole32(4);
	prog_add(p, 0, POOL, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	/* The same columns do. */
	w.ap[0].offset = htole32(8);
	prog_add(p, 0, POOL, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_DATA_RACE);
	EXPECT_EQ(le64toh(FAULT(p)->addr), 8);
}

TEST_F(strict, other_partitions_do_not_race)
{
	struct prog *p = self->p;
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

	w.ap[0] = ap_row(SBUF, F32, 0, 32, 0, 64);
	w.imm[0] = imm_f32(1);
	prog_add(p, 0, DVE, &w);
	w.ap[0] = ap_row(SBUF, F32, 32, 32, 0, 64);
	prog_add(p, 0, POOL, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	w.ap[0] = ap_row(SBUF, F32, 0, 64, 0, 64);
	prog_add(p, 0, POOL, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_DATA_RACE);
	EXPECT_EQ(FAULT(p)->partition, 0);
}

/* A third engine passes the knowledge on. */
TEST_F(strict, order_is_transitive)
{
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	semaphore(p, SP, wait_ge(5, 1), update_add(6, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(6, 1), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	semaphore(p, SP, no_wait, update_add(6, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(6, 1), no_update);
	EXPECT_RACE(p, 2, 1);
}

/*
 * Two producers, a wait for one of them: the other's update could have satisfied it,
 * so neither is known to have come.
 */
TEST_F(strict, one_of_two_updates_is_no_order)
{
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	set(p, POOL, 2, 1024, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 3, 2048, 0, 64, wait_ge(5, 2), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	set(p, POOL, 2, 1024, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 3, 2048, 0, 64, wait_ge(5, 1), no_update);
	EXPECT_RACE(p, 3, 1);
}

/* A credit that the consumer gave itself orders nothing; the producer's next does. */
TEST_F(strict, credits)
{
	struct prog *p = self->p;

	semaphore(p, ACT, no_wait, update_add(5, 1));
	semaphore(p, ACT, wait_sub(5, 1), no_update);
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_sub(5, 1), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	semaphore(p, ACT, no_wait, update_add(5, 1));
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	set(p, POOL, 3, 4096, 1024, no_wait, update_add(6, 1));
	semaphore(p, ACT, wait_ge(6, 1), no_update);
	copy(p, ACT, 2, 1024, 0, 64, wait_sub(5, 1), no_update);
	EXPECT_RACE(p, 2, 1);
}

/* "When it has read its inputs" says nothing about its writes. */
TEST_F(strict, update_at_read)
{
	struct neuron_update at_read = update_add(6, 1);
	struct prog *p = self->p;

	at_read.op |= NEURON_UPDATE_AT_READ;
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(5, 1), at_read);
	set(p, POOL, 3, 0, 64, wait_ge(6, 1), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	copy(p, POOL, 4, 2048, 1024, 64, no_wait, no_update);
	EXPECT_RACE(p, 4, 2);
}

TEST_F(strict, dma_is_not_its_stream)
{
	struct prog *p = self->p;

	prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE);
	load(p, SP, 1, 0, 0, 64, no_wait, update_add(5, 16));
	copy(p, DVE, 2, 1024, 0, 64, wait_ge(5, 16), update_add(6, 1));
	store(p, SP, 3, 1, 1024, 64, wait_ge(6, 1));
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	/* ACT starts a transfer of what it is still writing. */
	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE);
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(5, 1), no_update);
	store(p, ACT, 3, 0, 1024, 64, no_wait);
	EXPECT_RACE(p, 3, 2);
	EXPECT_EQ(FAULT(p)->engine, ACT);

	/* A wait for its own update makes it right. */
	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE);
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	copy(p, ACT, 2, 1024, 0, 64, wait_ge(5, 1), update_add(6, 1));
	store(p, ACT, 3, 0, 1024, 64, wait_ge(6, 1));
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
}

TEST_F(strict, queues_are_ordered_inside_only)
{
	struct prog *p = self->p;

	prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE);
	load(p, SP, 1, 0, 0, 64, no_wait, no_update);
	store(p, SP, 2, 0, 0, 64, no_wait);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE);
	load(p, SP, 1, 0, 0, 64, no_wait, no_update);
	store(p, SP, 2, 1, 0, 64, no_wait);
	EXPECT_RACE(p, 2, 1);
	EXPECT_EQ(FAULT(p)->other_engine, NEURON_ENGINE_DMA);
}

/* --- HBM -------------------------------------------------------------------------------- */

/* SBUF to columns [@column, @column + @n) of a matrix of 64 columns and 32 rows. */
static void store_columns(struct prog *p, unsigned int core, unsigned int arg, uint32_t id,
			  unsigned int queue, unsigned int column, unsigned int n,
			  struct neuron_update update)
{
	struct neuron_dma_operand src = dma_sbuf();
	struct neuron_dma_operand dst = dma_hbm(arg, F32, column * 4, n, 32, 256);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);

	w.debug_id = htole32(id);
	w.aux = htole32(queue);
	w.ap[1] = ap_row(SBUF, F32, 0, 32, 0, n);
	w.update = update;
	if (core || id == 1)
		w.wait[0] = wait_ge(5, 1);
	prog_dma(p, core, SP, &w, &dst, &src);
}

static void hbm_start(struct prog *p)
{
	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE);
	set(p, DVE, 9, 0, 64, no_wait, update_add(5, 1));
}

TEST_F(strict, hbm_columns)
{
	struct prog *p = self->p;

	hbm_start(p);
	store_columns(p, 0, 0, 1, 0, 0, 32, no_update);
	store_columns(p, 0, 0, 2, 1, 32, 32, no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	hbm_start(p);
	store_columns(p, 0, 0, 1, 0, 0, 33, no_update);
	store_columns(p, 0, 0, 2, 1, 32, 32, no_update);
	EXPECT_RACE(p, 2, 1);
	EXPECT_EQ(FAULT(p)->space, NEURON_SPACE_HBM);
	EXPECT_EQ(le64toh(FAULT(p)->addr), le64toh(p->arg[0].va) + 128);
}

TEST_F(strict, hbm_read_back)
{
	struct prog *p = self->p;

	hbm_start(p);
	store_columns(p, 0, 0, 1, 0, 0, 64, update_add(6, 16));
	load(p, ACT, 2, 1, 4096, 64, wait_ge(6, 16), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	hbm_start(p);
	store_columns(p, 0, 0, 1, 0, 0, 64, update_add(6, 16));
	load(p, ACT, 2, 1, 4096, 64, wait_ge(5, 1), no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_DATA_RACE);
}

/* Two arguments that name the same memory. */
TEST_F(strict, hbm_aliases)
{
	struct prog *p = self->p;

	hbm_start(p);
	prog_arg(p, 32 * 256, NEURON_ARG_WRITE);
	store_columns(p, 0, 0, 1, 0, 0, 64, no_update);
	store_columns(p, 0, 1, 2, 1, 0, 64, no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	p->arg[1].va = p->arg[0].va;
	EXPECT_RACE(p, 2, 1);
}

/* Nothing orders two cores. */
TEST(hbm_of_two_cores)
{
	struct prog *p = prog_new(3, 2);
	unsigned int same;

	for (same = 0; same < 2; same++) {
		struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

		hbm_start(p);
		w.ap[0] = ap_row(SBUF, F32, 0, 32, 0, 64);
		w.imm[0] = imm_f32(2);
		w.update = update_add(5, 1);
		prog_add(p, 1, DVE, &w);
		store_columns(p, 0, 0, 1, 0, 0, 32, no_update);
		store_columns(p, 1, 0, 3, 0, same ? 0 : 32, 32, no_update);
		ASSERT_EQ(prog_run(p), same ? NEURON_FAULT_DATA_RACE : NEURON_FAULT_NONE);
	}
	prog_free(p);
}

TEST_F(strict, events_order)
{
	struct neuron_update event = { .sem = 9, .op = NEURON_UPDATE_EVENT_SET };
	struct neuron_wait wait = { .sem = 9, .cond = NEURON_WAIT_EVENT_CLEAR };
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 64, no_wait, event);
	copy(p, ACT, 2, 1024, 0, 64, wait, no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
}

/* --- never written ----------------------------------------------------------------------- */

/* Without strict mode such programs run, and read what happens to be there. */
TEST_F(strict, uninitialized)
{
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 63, no_wait, no_update);
	copy(p, DVE, 2, 1024, 0, 64, no_wait, no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_UNINITIALIZED);
	EXPECT_EQ(le64toh(FAULT(p)->addr), 63 * 4);
	EXPECT_EQ(FAULT(p)->space, SBUF);
	EXPECT_EQ(le32toh(FAULT(p)->debug_id), 2);
	/* What an earlier job wrote does not count, nor what the host wrote. */
	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	copy(p, DVE, 2, 1024, 0, 4, no_wait, no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_UNINITIALIZED);
	p->flags = 0;
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
}

static void matmul(struct prog *p, uint32_t id, bool accumulate)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);

	w.ap[1] = ap_row(SBUF, F32, 0, 32, 0, 32);
	prog_add(p, 0, PE, &w);
	w = insn_new(NEURON_OP_MATMUL);
	w.debug_id = htole32(id);
	w.ap[0] = ap_row(PSUM, F32, 0, 32, 0, 32);
	w.ap[1] = ap_row(SBUF, F32, 0, 32, 0, 32);
	w.flags = htole16(accumulate ? NEURON_FLAG_ACCUMULATE : 0);
	prog_add(p, 0, PE, &w);
}

TEST_F(strict, psum_accumulation)
{
	struct neuron_insn w;
	struct prog *p = self->p;

	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	semaphore(p, PE, wait_ge(5, 1), no_update);
	matmul(p, 2, false);
	matmul(p, 3, true);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	semaphore(p, PE, wait_ge(5, 1), no_update);
	matmul(p, 3, true);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_ACC_UNDEFINED);
	EXPECT_EQ(le32toh(FAULT(p)->debug_id), 3);

	/* A memset is no start for an accumulation on this generation. */
	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	w = insn_new(NEURON_OP_MEMSET);
	w.ap[0] = ap_row(PSUM, F32, 0, 32, 0, 32);
	w.imm[0] = imm_f32(0);
	prog_add(p, 0, DVE, &w);
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	semaphore(p, PE, wait_ge(5, 1), no_update);
	matmul(p, 3, true);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_ACC_UNDEFINED);
}

TEST_F(strict, act_accumulator)
{
	struct neuron_insn w = insn_new(NEURON_OP_ACT_READ_ACC);
	struct prog *p = self->p;

	w.ap[0] = ap_row(SBUF, F32, 0, 32, 0, 1);
	prog_add(p, 0, ACT, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_ACC_UNDEFINED);
}

/* --- scratch, memories of one engine, deadlocks -------------------------------------------- */

TEST_F(strict, scratch_in_hbm)
{
	struct prog *p = self->p;
	unsigned int scratch;

	for (scratch = 0; scratch < 2; scratch++) {
		prog_reset(p);
		p->flags = NEURON_JOB_STRICT;
		prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE |
			 (scratch ? NEURON_ARG_SCRATCH : 0));
		load(p, SP, 1, 0, 0, 64, no_wait, no_update);
		ASSERT_EQ(prog_run(p), scratch ? NEURON_FAULT_UNINITIALIZED : NEURON_FAULT_NONE);
	}
	EXPECT_EQ(le64toh(FAULT(p)->addr), le64toh(p->arg[0].va));
	/* Written before, in order. */
	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	prog_arg(p, 32 * 256, NEURON_ARG_READ | NEURON_ARG_WRITE | NEURON_ARG_SCRATCH);
	set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
	store(p, SP, 2, 0, 0, 64, wait_ge(5, 1));
	load(p, SP, 3, 0, 4096, 64, no_wait, no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
}

TEST(sbuf_of_one_engine)
{
	unsigned int nc, ordered;

	for (nc = 2; nc <= 4; nc++) {
		struct prog *p = prog_new(nc, 1);

		for (ordered = 0; ordered < 2; ordered++) {
			prog_reset(p);
			p->flags = NEURON_JOB_STRICT;
			set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
			set(p, POOL, 2, 4096, 64, ordered ? wait_ge(5, 1) : no_wait, no_update);
			EXPECT_EQ(prog_run(p), nc == 2 && !ordered ? NEURON_FAULT_SBUF_CONFLICT :
								      NEURON_FAULT_NONE);
		}
		prog_free(p);
	}
}

TEST(psum_of_one_engine)
{
	unsigned int nc, ordered, e;

	for (nc = 2; nc <= 4; nc++) {
		struct prog *p = prog_new(nc, 1);

		for (ordered = 0; ordered < 2; ordered++) {
			prog_reset(p);
			p->flags = NEURON_JOB_STRICT;
			set(p, DVE, 1, 0, 64, no_wait, update_add(5, 1));
			semaphore(p, ACT, wait_ge(5, 1), no_update);
			for (e = 0; e < 2; e++) {
				struct neuron_insn w = insn_new(e ? NEURON_OP_ACTIVATE : NEURON_OP_MEMSET);

				w.debug_id = htole32(2 + e);
				w.ap[0] = ap_row(PSUM, F32, 0, 32, e * 2048, 64);
				if (e)
					w.ap[1] = ap_row(SBUF, F32, 0, 32, 0, 64);
				w.imm[0] = imm_f32(1);
				if (e && ordered)
					w.wait[0] = wait_ge(6, 1);
				if (!e)
					w.update = update_add(6, 1);
				prog_add(p, 0, e ? ACT : DVE, &w);
			}
			EXPECT_EQ(prog_run(p), nc == 2 && !ordered ? NEURON_FAULT_PSUM_CONFLICT :
								      NEURON_FAULT_NONE);
		}
		prog_free(p);
	}
}

TEST_F(strict, deadlock_names_all)
{
	struct prog *p = self->p;

	semaphore(p, DVE, wait_ge(5, 1), update_add(6, 1));
	semaphore(p, ACT, wait_ge(6, 1), update_add(5, 1));
	semaphore(p, SP, no_wait, no_update);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_DEADLOCK);
	EXPECT_EQ(le64toh(FAULT(p)->waiting), 1ull << DVE | 1ull << ACT);
}

/* --- loops, costs, jitter ------------------------------------------------------------------ */

/* Ping-pong in a loop with counts that balance; strict mode's memory stays bounded. */
static void ping_pong(struct prog *p, int times)
{
	struct neuron_insn w;
	unsigned int e, top;

	for (e = 0; e < 2; e++) {
		unsigned int engine = e ? ACT : DVE;

		w = insn_new(NEURON_OP_REG_MOVE);
		w.imm[0] = imm_i32(0);
		prog_add(p, 0, engine, &w);
		if (!e)
			set(p, DVE, 1, 0, 64, no_wait, no_update);
		top = e ? 1 : 2;
		if (!e) {
			copy(p, DVE, 2, 1024, 0, 64, no_wait, update_add(5, 1));
			semaphore(p, DVE, wait_sub(6, 1), no_update);
		} else {
			copy(p, ACT, 3, 0, 1024, 64, wait_sub(5, 1), update_add(6, 1));
		}
		w = insn_new(NEURON_OP_REG_ALU);
		w.op[0] = NEURON_ALU_ADD;
		w.imm[0] = imm_reg(0, NEURON_DTYPE_INT32);
		w.imm[1] = imm_i32(1);
		prog_add(p, 0, engine, &w);
		w = insn_new(NEURON_OP_COMPARE_BRANCH);
		w.op[0] = NEURON_ALU_LESS;
		w.imm[0] = imm_reg(0, NEURON_DTYPE_INT32);
		w.imm[1] = imm_i32(times);
		w.aux = htole32(top);
		prog_add(p, 0, engine, &w);
	}
}

TEST_F(strict, loops_with_balanced_counts)
{
	ping_pong(self->p, 20000);
	ASSERT_EQ(prog_run(self->p), NEURON_FAULT_NONE);
	EXPECT_EQ(self->p->job.counters[0].insns, 2 + 20000 * 4ull + 20000 * 3ull + 1);
}

TEST_F(strict, jitter_changes_times_not_bytes)
{
	struct prog *p = self->p;
	uint64_t ticks[4];
	uint8_t first[32 * 256], now[32 * 256];
	unsigned int i, k;

	ping_pong(p, 50);
	for (i = 0; i < 4; i++) {
		p->flags = NEURON_JOB_STRICT | NEURON_JOB_JITTER;
		p->seed = i < 3 ? i : 2;
		ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
		ticks[i] = p->job.modelled_ticks;
		for (k = 0; k < 32; k++)
			sbuf_get(p->core[0], k, 1024, now + 256 * k, 256);
		if (!i)
			memcpy(first, now, sizeof(first));
		ASSERT_EQ(memcmp(first, now, sizeof(first)), 0);
	}
	EXPECT_NE(ticks[0], ticks[1]);
	EXPECT_NE(ticks[1], ticks[2]);
	EXPECT_EQ(ticks[2], ticks[3]);
}

TEST_HARNESS_MAIN
