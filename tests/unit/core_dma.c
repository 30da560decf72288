// SPDX-License-Identifier: MIT
/*
 * When transfers run: shares of DMA engines and of HBM, who writes descriptors, and
 * what crosses from core to core. Expected values are the rules of
 * Documentation/timing.rst.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "fake_vm.h"
#include "neuron/trace.h"

#define SBUF	NEURON_SPACE_SBUF
#define F32	NEURON_DTYPE_FLOAT32
#define I32	NEURON_DTYPE_INT32
#define DVE	NEURON_ENGINE_DVE
#define ACT	NEURON_ENGINE_ACT
#define POOL	NEURON_ENGINE_POOL
#define SP	NEURON_ENGINE_SP
#define DMA	NEURON_ENGINE_DMA
#define TRACE_VA (VM_BASE + (48ull << 20))

static struct prog *p;

static double ns(uint64_t ticks)
{
	return ticks * 1e9 / NEURON_TICK_HZ;
}

static void start(unsigned int nc, unsigned int cores)
{
	if (p)
		prog_free(p);
	p = prog_new(nc, cores);
	p->trace_va = TRACE_VA;
	p->trace_size = 4 << 20;
	prog_arg(p, 128 * 8192, NEURON_ARG_READ | NEURON_ARG_WRITE);
}

static double length(unsigned int core, unsigned int n)
{
	const struct neuron_trace_record *r = prog_record(p, core, DMA, NEURON_OP_DMA_COPY, n);

	return ns(le64toh(r->end) - le64toh(r->start));
}

/* @rows partitions of @bytes from HBM. */
static void copy(unsigned int core, unsigned int engine, unsigned int rows, unsigned int bytes,
		 uint32_t aux)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm = dma_hbm(0, F32, 0, bytes / 4, rows, bytes);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);

	w.ap[0] = ap_row(SBUF, F32, 0, rows, 16384 * (aux & 7), bytes / 4);
	w.aux = htole32(aux);
	prog_dma(p, core, engine, &w, &sb, &hbm);
}

static double alone(unsigned int nc)
{
	start(nc, 1);
	copy(0, SP, 128, 8192, 0);
	return prog_run(p) ? NAN : length(0, 0);
}

/* Two queues that want all engines: alike on Trn2, the better priority first on Trn3. */
TEST(priority)
{
	double one = alone(3), best;

	start(3, 1);
	copy(0, SP, 128, 8192, 0 | 3 << NEURON_DMA_PRIORITY_SHIFT);
	copy(0, ACT, 128, 8192, 1 | 0 << NEURON_DMA_PRIORITY_SHIFT);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_LT(fabs(length(0, 0) / (2 * one) - 1), 0.01);
	EXPECT_LT(fabs(length(0, 1) / (2 * one) - 1), 0.01);
	one = alone(4);
	start(4, 1);
	copy(0, SP, 128, 8192, 0 | 3 << NEURON_DMA_PRIORITY_SHIFT);
	copy(0, ACT, 128, 8192, 1 | 0 << NEURON_DMA_PRIORITY_SHIFT);
	ASSERT_EQ(prog_run(p), 0);
	best = prog_record(p, 0, DMA, NEURON_OP_DMA_COPY, 0)->queue == 1 ? length(0, 0) : length(0, 1);
	EXPECT_LT(fabs(best / one - 1), 0.01);
	EXPECT_LT(fabs((length(0, 0) + length(0, 1)) / (3 * one) - 1), 0.01);
}

/* Few rows leave engines to others. */
TEST(engines)
{
	double one;

	start(3, 1);
	copy(0, SP, 8, 4096, 0);
	ASSERT_EQ(prog_run(p), 0);
	one = length(0, 0);
	start(3, 1);
	copy(0, SP, 8, 4096, 0);
	copy(0, ACT, 8, 4096, 1);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_LT(fabs(length(0, 0) / one - 1), 0.001);
	EXPECT_LT(fabs(length(0, 1) / one - 1), 0.001);
}

/*
 * A stack of 725 bytes per ns has two cores; 16 engines of 23.25 move 128 rows of 8192
 * bytes at 365.3, so two cores fit less well than one: 730.6 of 725.
 */
TEST(stacks)
{
	double one = alone(3), want = 2 * 128 * 8192 / one / 725;
	unsigned int c;

	ASSERT_GT(want, 1.001);
	start(3, 4);
	copy(0, SP, 128, 8192, 0);
	copy(1, SP, 128, 8192, 0);
	copy(2, SP, 128, 8192, 0);
	ASSERT_EQ(prog_run(p), 0);
	for (c = 0; c < 3; c++)
		EXPECT_LT(fabs(length(c, 0) / one - (c < 2 ? want : 1)), 0.001);
}

/* Trn3's adding to SBUF, sums of four: multiples of a copy. */
TEST(sums)
{
	double one = alone(3);
	struct neuron_dma_operand d[5] = { dma_sbuf() };
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COMPUTE);
	const struct neuron_trace_record *r;
	unsigned int i;

	start(3, 1);
	for (i = 1; i < 5; i++)
		d[i] = dma_hbm(0, F32, 0, 2048, 128, 8192);
	w.words = 6;
	w.op[0] = NEURON_ALU_ADD;
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 2048);
	prog_words(p, 0, SP, &w, d, 5);
	ASSERT_EQ(prog_run(p), 0);
	r = prog_record(p, 0, DMA, NEURON_OP_DMA_COMPUTE, 0);
	EXPECT_LT(fabs(ns(le64toh(r->end) - le64toh(r->start)) / (4 * one) - 1), 0.01);
}

/* Software descriptors: POOL is busy for 64 cycles and 8 a row, then comes the trigger. */
TEST(software_descriptors)
{
	double written = (64 + 8 * 128) / 1.2;
	const struct neuron_trace_record *r;
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

	start(3, 1);
	copy(0, POOL, 128, 512, NEURON_DGE_SWDGE << NEURON_DMA_DGE_SHIFT);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 65536, 64);
	w.imm[0] = imm_f32(0);
	prog_add(p, 0, POOL, &w);
	ASSERT_EQ(prog_run(p), 0);
	r = prog_record(p, 0, DMA, NEURON_OP_DMA_COPY, 0);
	EXPECT_LT(fabs(ns(le64toh(r->start) - le64toh(r->issue)) - written - 1300), 0.1);
	r = prog_record(p, 0, POOL, NEURON_OP_MEMSET, 0);
	EXPECT_LT(fabs(ns(le64toh(r->start)) - written), 0.1);
	/* Without them POOL goes on after 64 cycles. */
	start(3, 1);
	copy(0, POOL, 128, 512, NEURON_DGE_NONE << NEURON_DMA_DGE_SHIFT);
	prog_add(p, 0, POOL, &w);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_LT(fabs(ns(le64toh(prog_record(p, 0, POOL, NEURON_OP_MEMSET, 0)->start)) - 64 / 1.2), 0.1);
}

/* 500 ns to another core's semaphore; with a transfer, 50 behind the data as well. */
TEST(remote)
{
	const struct neuron_trace_record *a, *b;
	struct neuron_insn w = insn_new(NEURON_OP_REMOTE_SEMAPHORE);

	start(3, 2);
	w.imm[0] = imm_i32(3);
	w.imm[1] = imm_i32(1);
	w.aux = htole32(1);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.wait[0] = wait_sub(3, 1);
	prog_add(p, 1, SP, &w);
	ASSERT_EQ(prog_run(p), 0);
	a = prog_record(p, 0, SP, NEURON_OP_REMOTE_SEMAPHORE, 0);
	b = prog_record(p, 1, SP, NEURON_OP_EVENT_SEMAPHORE, 0);
	/* SP's own latency from a semaphore is 100. */
	EXPECT_LT(fabs(ns(le64toh(b->start) - le64toh(a->end)) - 600), 0.1);
	EXPECT_EQ(b->waits[0].kind, NEURON_TRACE_WAIT_SEMAPHORE);
	EXPECT_EQ(b->waits[0].engine, SP);

	start(3, 2);
	w = insn_new(NEURON_OP_DMA_COPY);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 64);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 4096, 64);
	w.update = update_add(3, 1);
	w.aux = htole32(2u << NEURON_DMA_CORE_SHIFT);
	{
		struct neuron_dma_operand d[2] = { dma_sbuf(), dma_sbuf() };

		d[0].arg = htole16(2);
		prog_words(p, 0, SP, &w, d, 2);
	}
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.wait[0] = wait_sub(3, 1);
	prog_add(p, 1, SP, &w);
	ASSERT_EQ(prog_run(p), 0);
	a = prog_record(p, 0, DMA, NEURON_OP_DMA_COPY, 0);
	b = prog_record(p, 1, SP, NEURON_OP_EVENT_SEMAPHORE, 0);
	EXPECT_LT(fabs(ns(le64toh(b->start) - le64toh(a->end)) - 650), 0.1);
	EXPECT_EQ(b->waits[0].engine, DMA);
}

/* 300 ns to HBM, 300 back. */
TEST(registers)
{
	struct neuron_dma_operand d = dma_hbm(0, I32, 0, 1, 1, 4);
	struct neuron_insn w = insn_new(NEURON_OP_READ);
	unsigned int i;

	start(3, 1);
	for (i = 0; i < 2; i++)
		prog_words(p, 0, SP, &w, &d, 1);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_LT(fabs(ns(le64toh(prog_record(p, 0, SP, NEURON_OP_READ, 1)->start) -
			  le64toh(prog_record(p, 0, SP, NEURON_OP_READ, 0)->start)) - 600 - 16 / 1.2), 0.1);
}

/* Ring of four cores, ten times round; every seed of jitter gives the same bytes. */
static void ring(uint64_t seed, uint32_t flags)
{
	struct neuron_dma_operand d[2] = { dma_sbuf(), dma_sbuf() };
	struct neuron_insn w;
	unsigned int c, i;

	start(3, 4);
	p->seed = seed;
	p->flags = flags;
	for (c = 0; c < 4; c++) {
		float v = c + 1;

		for (i = 0; i < 32; i++)
			sbuf_put(p->core[c], i, 0, &v, 4);
		for (i = 0; i < 10; i++) {
			/* To the right, when that has taken what came before. */
			w = insn_new(NEURON_OP_DMA_COPY);
			w.ap[0] = ap_row(SBUF, F32, 0, 32, 64, 1);
			w.ap[1] = ap_row(SBUF, F32, 0, 32, 0, 1);
			w.update = update_add(1, 16);
			w.aux = htole32(((c + 1) % 4 + 1u) << NEURON_DMA_CORE_SHIFT);
			if (i) {
				w.wait[0] = wait_sub(2, 1);	/* mine is new */
				w.wait[1] = wait_sub(3, 1);	/* theirs is read */
			}
			d[0].arg = htole16((c + 1) % 4 + 1);
			prog_words(p, c, SP, &w, d, 2);
			w = insn_new(NEURON_OP_TENSOR_SCALAR);
			w.op[0] = NEURON_ALU_MULTIPLY;
			w.op[1] = NEURON_ALU_ADD;
			w.ap[0] = ap_row(SBUF, F32, 0, 32, 0, 1);
			w.ap[1] = ap_row(SBUF, F32, 0, 32, 64, 1);
			w.imm[0] = imm_f32(2);
			w.imm[1] = imm_f32(1);
			/* It is here, and my own transfer has been sent: the right one has it. */
			w.wait[0] = wait_sub(5, 1);
			w.wait[1] = wait_sub(4, 1);
			w.update = update_add(2, 1);
			prog_add(p, c, DVE, &w);
			w = insn_new(NEURON_OP_DRAIN);
			prog_add(p, c, DVE, &w);
			w = insn_new(NEURON_OP_REMOTE_SEMAPHORE);
			w.imm[0] = imm_i32(3);
			w.imm[1] = imm_i32(1);
			w.aux = htole32((c + 3) % 4);
			prog_add(p, c, DVE, &w);
			/* ACT passes on that the left one's transfer has come. */
			w.imm[0] = imm_i32(4);
			w.wait[0] = wait_sub(1, 16);
			w.update = update_add(5, 1);
			prog_add(p, c, ACT, &w);
		}
	}
}

TEST(jitter)
{
	float want[4] = { 1, 2, 3, 4 }, next[4], got;
	uint64_t ticks[2] = { 0, 0 };
	unsigned int seed, c, i;

	for (i = 0; i < 10; i++) {
		for (c = 0; c < 4; c++)
			next[(c + 1) % 4] = 2 * want[c] + 1;
		memcpy(want, next, sizeof(want));
	}
	for (seed = 0; seed < 20; seed++) {
		ring(seed, seed ? NEURON_JOB_JITTER : 0);
		ASSERT_EQ(prog_run(p), 0);
		for (c = 0; c < 4; c++) {
			sbuf_get(p->core[c], 31, 0, &got, 4);
			ASSERT_EQ(got, want[c]);
		}
		if (seed < 2)
			ticks[seed] = p->job.modelled_ticks;
	}
	EXPECT_NE(ticks[0], ticks[1]);
	/* Without jitter the time is the program's. */
	ring(5, 0);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(p->job.modelled_ticks, ticks[0]);
	ring(1, NEURON_JOB_JITTER);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(p->job.modelled_ticks, ticks[1]);
}

TEST_HARNESS_MAIN
