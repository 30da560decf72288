// SPDX-License-Identifier: MIT
/*
 * Several cores of one job: sendrecv and core_barrier of a pair (LNC=2), by transfers
 * into the other core's SBUF and updates of its semaphores. And streams whose way
 * depends on what a transfer brought.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "fake_vm.h"
#include "neuron/trace.h"
#include "numeric.h"

#define SBUF	NEURON_SPACE_SBUF
#define F32	NEURON_DTYPE_FLOAT32
#define I32	NEURON_DTYPE_INT32
#define DVE	NEURON_ENGINE_DVE
#define ACT	NEURON_ENGINE_ACT
#define POOL	NEURON_ENGINE_POOL
#define SP	NEURON_ENGINE_SP
#define TRACE_VA (VM_BASE + (48ull << 20))

typedef struct __test_metadata meta;

static struct prog *p;

static void start(unsigned int nc, unsigned int cores)
{
	if (p)
		prog_free(p);
	p = prog_new(nc, cores);
	p->trace_va = TRACE_VA;
	p->trace_size = 4 << 20;
}

static void put(unsigned int core, unsigned int part, uint32_t offset, float v)
{
	sbuf_put(p->core[core], part, offset, &v, 4);
}

static float get(unsigned int core, unsigned int part, uint32_t offset)
{
	float v;

	sbuf_get(p->core[core], part, offset, &v, 4);
	return v;
}

/* Core @from's tile at 0 goes to @to's at 4096, whose semaphore 9 hears of it. */
static void send(unsigned int from, unsigned int to)
{
	struct neuron_dma_operand src = dma_sbuf(), dst = dma_sbuf();
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);

	dst.arg = htole16(to + 1);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 4096, 64);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 0, 64);
	w.update = update_add(9, 16);
	w.aux = htole32((to + 1u) << NEURON_DMA_CORE_SHIFT);
	prog_dma(p, from, SP, &w, &dst, &src);
}

/* sendrecv: each has the other's tile when its own semaphore says so. */
static void swap_tiles(meta *_metadata, unsigned int nc, uint32_t flags)
{
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	unsigned int c, i, k;

	start(nc, 2);
	p->flags = flags;
	for (c = 0; c < 2; c++) {
		w = insn_new(NEURON_OP_MEMSET);
		w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 64);
		w.imm[0] = imm_f32(10.0f + c);
		w.update = update_add(1, 1);
		prog_add(p, c, DVE, &w);
		w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
		w.wait[0] = wait_sub(1, 1);
		prog_add(p, c, SP, &w);
		send(c, !c);
		w = insn_new(NEURON_OP_TENSOR_COPY);
		w.ap[0] = ap_row(SBUF, F32, 0, 128, 8192, 64);
		w.ap[1] = ap_row(SBUF, F32, 0, 128, 4096, 64);
		w.wait[0] = wait_sub(9, 16);
		prog_add(p, c, DVE, &w);
	}
	ASSERT_EQ(prog_run(p), 0);
	for (c = 0; c < 2; c++)
		for (i = 0; i < 128; i++)
			for (k = 0; k < 64; k++)
				ASSERT_EQ(get(c, i, 8192 + 4 * k), 10.0f + !c);
}

TEST(sendrecv)
{
	swap_tiles(_metadata, 3, 0);
	swap_tiles(_metadata, 4, 0);
}

TEST(sendrecv_strict)
{
	swap_tiles(_metadata, 3, NEURON_JOB_STRICT);
}

TEST(limits)
{
	start(3, 2);
	send(0, 2);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_BAD_OPERAND);
	start(2, 2);
	send(0, 1);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_BAD_OPERAND);
	/* One's own core by its number is no other core. */
	start(3, 2);
	put(0, 5, 8, 77);
	send(0, 0);
	EXPECT_EQ(prog_run(p), 0);
	EXPECT_EQ(get(0, 5, 4096 + 8), 77);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 9), 16);
}

/* Each tells the other and waits for it. */
static void barrier(unsigned int core)
{
	struct neuron_insn w = insn_new(NEURON_OP_REMOTE_SEMAPHORE);

	w.imm[0] = imm_i32(30);
	w.imm[1] = imm_i32(1);
	w.aux = htole32(!core);
	prog_add(p, core, POOL, &w);
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.wait[0] = wait_sub(30, 1);
	w.debug_id = htole32(99);
	prog_add(p, core, POOL, &w);
}

/* Nobody leaves before both have come, and the way takes time. */
TEST(core_barrier)
{
	const struct neuron_trace_record *busy, *left[2];
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	unsigned int c;

	start(3, 2);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 4096);
	w.imm[0] = imm_f32(0);
	prog_add(p, 1, POOL, &w);
	w = insn_new(NEURON_OP_DRAIN);
	prog_add(p, 1, POOL, &w);
	for (c = 0; c < 2; c++)
		barrier(c);
	ASSERT_EQ(prog_run(p), 0);
	busy = prog_record(p, 1, POOL, NEURON_OP_MEMSET, 0);
	for (c = 0; c < 2; c++) {
		left[c] = prog_record(p, c, POOL, NEURON_OP_EVENT_SEMAPHORE, 0);
		ASSERT_NE(left[c], NULL);
		EXPECT_GT(le64toh(left[c]->start), le64toh(busy->end));
	}
	/* The one that waited left 500 ns (assumed) and its latency after the other came. */
	EXPECT_GT((le64toh(left[0]->start) - le64toh(busy->end)) / 33.6, 500);
}

/* A core that never comes: the other says what it waits for. */
TEST(barrier_alone)
{
	struct neuron_insn w = insn_new(NEURON_OP_NOP);

	start(3, 2);
	barrier(0);
	prog_add(p, 1, POOL, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_DEADLOCK);
	EXPECT_EQ(p->job.fault.core, 0);
	EXPECT_EQ(le32toh(p->job.fault.index), 30);
	EXPECT_EQ(le64toh(p->job.fault.value), 1);
}

/* --- ways that depend on data ------------------------------------------------------------ */

static void branch(unsigned int core, unsigned int engine, unsigned int reg, unsigned int op,
		   int32_t than, uint32_t target)
{
	struct neuron_insn w = insn_new(NEURON_OP_COMPARE_BRANCH);

	w.op[0] = op;
	w.imm[0] = imm_reg(reg, I32);
	w.imm[1] = imm_i32(than);
	w.aux = htole32(target);
	prog_add(p, core, engine, &w);
}

static void add_reg(unsigned int core, unsigned int engine, unsigned int reg, int32_t v)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_ALU);

	w.op[0] = NEURON_ALU_ADD;
	w.imm[0] = imm_reg(reg, I32);
	w.imm[1] = imm_i32(v);
	w.aux = htole32(reg);
	prog_add(p, core, engine, &w);
}

/* x += 1, as many times as a word that a transfer brings says. */
static void data_loop(int32_t trips)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
	unsigned int top;

	prog_arg(p, 4, NEURON_ARG_READ);
	memcpy(prog_arg_mem(p, 0), &trips, 4);
	hbm = dma_hbm(0, I32, 0, 1, 1, 4);
	w.ap[0] = ap_row(SBUF, I32, 0, 1, 0, 1);
	w.update = update_add(2, 16);
	prog_dma(p, 0, SP, &w, &sb, &hbm);
	w = insn_new(NEURON_OP_MEMSET);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 64, 1);
	w.imm[0] = imm_f32(0);
	prog_add(p, 0, DVE, &w);
	w = insn_new(NEURON_OP_TENSOR_LOAD);
	w.ap[1] = ap_row(SBUF, I32, 0, 1, 0, 1);
	w.wait[0] = wait_sub(2, 16);
	w.aux = htole32(5);
	top = prog_add(p, 0, DVE, &w) + 1;
	branch(0, DVE, 5, NEURON_ALU_LESS_EQUAL, 0, top + 4);
	w = insn_new(NEURON_OP_TENSOR_SCALAR);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[0] = w.ap[1] = ap_row(SBUF, F32, 0, 128, 64, 1);
	w.imm[0] = imm_f32(1);
	prog_add(p, 0, DVE, &w);
	add_reg(0, DVE, 5, -1);
	branch(0, DVE, 5, NEURON_ALU_GREATER, 0, top + 1);
}

TEST(trip_count_from_dma)
{
	static const int32_t trips[] = { 0, 1, 37 };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		start(3, 1);
		p->flags = NEURON_JOB_STRICT;
		data_loop(trips[i]);
		ASSERT_EQ(prog_run(p), 0);
		EXPECT_EQ(get(0, 127, 64), trips[i]);
	}
}

/*
 * Core 0 polls a word of HBM until core 1 has written it; then a wait with a register's
 * value as its count.
 */
TEST(poll)
{
	struct neuron_dma_operand flag;
	struct neuron_insn w = insn_new(NEURON_OP_READ);
	unsigned int top;

	start(3, 2);
	prog_arg(p, 4, NEURON_ARG_READ | NEURON_ARG_WRITE);
	memset(prog_arg_mem(p, 0), 0, 4);
	flag = dma_hbm(0, I32, 0, 1, 1, 4);
	w.aux = htole32(1);
	top = prog_words(p, 0, SP, &w, &flag, 1);
	branch(0, SP, 1, NEURON_ALU_EQUAL, 0, top);
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.wait[0] = (struct neuron_wait){ 12, NEURON_WAIT_GE_SUB | NEURON_WAIT_REG, htole16(1) };
	w.update = update_add(13, 1);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_REMOTE_SEMAPHORE);
	w.imm[0] = imm_i32(12);
	w.imm[1] = imm_i32(7);
	w.aux = htole32(0);
	prog_add(p, 1, ACT, &w);
	w = insn_new(NEURON_OP_MEMSET);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 16384);
	w.imm[0] = imm_f32(0);
	w.update = update_add(3, 1);
	prog_add(p, 1, DVE, &w);
	w = insn_new(NEURON_OP_WRITE);
	w.imm[0] = imm_i32(6);
	w.wait[0] = wait_sub(3, 1);
	prog_words(p, 1, ACT, &w, &flag, 1);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 12), 1);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 13), 1);
	/* It polled more than once, and ended after the write. */
	EXPECT_NE(prog_record(p, 0, SP, NEURON_OP_READ, 5), NULL);
	EXPECT_GT(le64toh(prog_record(p, 0, SP, NEURON_OP_EVENT_SEMAPHORE, 0)->start),
		  le64toh(prog_record(p, 1, ACT, NEURON_OP_WRITE, 0)->start));
}

TEST_HARNESS_MAIN
