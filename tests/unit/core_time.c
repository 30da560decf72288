// SPDX-License-Identifier: MIT
/*
 * Modelled time against published figures, and the trace.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "fake_vm.h"
#include "neuron/trace.h"

#define SBUF	NEURON_SPACE_SBUF
#define PSUM	NEURON_SPACE_PSUM
#define F32	NEURON_DTYPE_FLOAT32
#define BF16	NEURON_DTYPE_BFLOAT16
#define DVE	NEURON_ENGINE_DVE
#define ACT	NEURON_ENGINE_ACT
#define POOL	NEURON_ENGINE_POOL
#define SP	NEURON_ENGINE_SP
#define PE	NEURON_ENGINE_PE
#define TRACE_VA (VM_BASE + (48ull << 20))

static double ns(uint64_t ticks)
{
	return ticks * 1e9 / NEURON_TICK_HZ;
}

static void traced(struct prog *p)
{
	p->trace_va = TRACE_VA;
	p->trace_size = 4 << 20;
}

static const struct neuron_trace_header *header(struct prog *p)
{
	return vm_at(p->vm, TRACE_VA);
}

static const struct neuron_trace_record *record(struct prog *p, unsigned int i)
{
	return (const struct neuron_trace_record *)(header(p) + 1) + i;
}

static struct prog *p;

static void start(unsigned int nc)
{
	if (p)
		prog_free(p);
	p = prog_new(nc, 1);
	traced(p);
}

/* --- tensor engine -------------------------------------------------------------------- */

/* ns from a MATMUL's start to the next one's in a stream of LDWEIGHTS and MATMUL. */
static double matmul_period(unsigned int nc, unsigned int dtype, unsigned int m, unsigned int n)
{
	struct neuron_insn w;
	unsigned int i;

	start(nc);
	for (i = 0; i < 8; i++) {
		w = insn_new(NEURON_OP_LDWEIGHTS);
		w.ap[1] = ap_row(SBUF, dtype, 0, 128, 0, m);
		prog_add(p, 0, PE, &w);
		w = insn_new(NEURON_OP_MATMUL);
		w.ap[0] = ap_row(PSUM, F32, 0, m, 0, n);
		w.ap[1] = ap_row(SBUF, dtype, 0, 128, 1024, n);
		prog_add(p, 0, PE, &w);
	}
	if (prog_run(p))
		return -1;
	return ns(le64toh(prog_record(p, 0, PE, NEURON_OP_MATMUL, 6)->start) -
		  le64toh(prog_record(p, 0, PE, NEURON_OP_MATMUL, 5)->start));
}

/* max(min(64, Nstat), Nmov) cycles; 512 columns at 2.4 GHz: 213 ns. fp32: four passes. */
TEST(matmul)
{
	EXPECT_LT(fabs(matmul_period(3, BF16, 128, 512) - 213.3), 0.1);
	EXPECT_LT(fabs(matmul_period(2, BF16, 128, 512) - 512 / 2.8), 0.1);
	EXPECT_LT(fabs(matmul_period(4, BF16, 128, 512) - 213.3), 0.1);
	EXPECT_LT(fabs(matmul_period(3, F32, 128, 512) - 4 * 213.33), 0.1);
	EXPECT_LT(fabs(matmul_period(3, BF16, 128, 64) - 64 / 2.4), 0.1);
	/* Vector times matrix is faster with the matrix stationary: 64 against 128. */
	EXPECT_LT(fabs(matmul_period(3, BF16, 128, 1) - 64 / 2.4), 0.1);
	EXPECT_LT(fabs(matmul_period(3, BF16, 1, 128) - 128 / 2.4), 0.1);
}

/* A stream of @n products of 512 columns on Trn2: their starts are in the trace. */
static void matmuls(unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);

	w.ap[1] = ap_row(SBUF, BF16, 0, 128, 0, 128);
	prog_add(p, 0, PE, &w);
	w = insn_new(NEURON_OP_MATMUL);
	w.ap[0] = ap_row(PSUM, F32, 0, 128, 0, 512);
	w.ap[1] = ap_row(SBUF, BF16, 0, 128, 1024, 512);
	while (n--)
		prog_add(p, 0, PE, &w);
}

/* Published: about half speed for the first 3 us after a window used less than half. */
TEST(throttle)
{
	double span[32], half = 2 * 512 / 2.4, full = 512 / 2.4;
	struct neuron_insn w = insn_new(NEURON_OP_READ);
	struct neuron_dma_operand d;
	unsigned int i, nc;

	for (nc = 2; nc < 5; nc++) {
		start(nc);
		p->flags = NEURON_JOB_THROTTLE;
		matmuls(20);
		ASSERT_EQ(prog_run(p), 0);
		for (i = 0; i < 20; i++)
			span[i] = ns(le32toh(prog_record(p, 0, PE, NEURON_OP_MATMUL, i)->busy));
		for (i = 0; i < 20 && nc > 2; i++)
			EXPECT_LT(fabs(span[i] - (i * half < 3000 ? half : full)), 0.1);
		for (i = 0; i < 20 && nc == 2; i++)
			EXPECT_LT(fabs(span[i] - 512 / 2.8), 0.1);
	}
	/* 20 products, 6 us of polling HBM, then throttled again; not after 1 us. */
	for (nc = 0; nc < 2; nc++) {
		start(3);
		p->flags = NEURON_JOB_THROTTLE;
		prog_arg(p, 4, NEURON_ARG_READ);
		d = dma_hbm(0, NEURON_DTYPE_INT32, 0, 1, 1, 4);
		matmuls(20);
		for (i = 0; i < (nc ? 10 : 1); i++)
			prog_words(p, 0, PE, &w, &d, 1);
		matmuls(2);
		ASSERT_EQ(prog_run(p), 0);
		EXPECT_LT(fabs(ns(le32toh(prog_record(p, 0, PE, NEURON_OP_MATMUL, 21)->busy)) -
			       (nc ? half : full)), 0.1);
	}
}

/* --- other engines --------------------------------------------------------------------- */

/* Cycles of one instruction, from its record. */
static double busy_cycles(unsigned int engine, const struct neuron_insn *w, double ghz)
{
	traced(p);
	prog_add(p, 0, engine, w);
	if (prog_run(p))
		return -1;
	return ns(le32toh(prog_record(p, 0, engine, w->opcode, 0)->busy)) * ghz;
}

static double copy_cycles(unsigned int nc, unsigned int engine, double ghz, unsigned int dtype,
			  unsigned int dst, unsigned int step, unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY);

	start(nc);
	w.ap[0] = ap_row(dst, dtype, 0, 128, 0, n);
	w.ap[1] = ap_row(SBUF, dtype, 0, 128, 16384, n);
	w.ap[1].step[0] = htole16(step);
	return busy_cycles(engine, &w, ghz);
}

TEST(vector_fast_modes)
{
	EXPECT_EQ(round(copy_cycles(3, DVE, 0.96, F32, SBUF, 1, 1024)), 1024);
	EXPECT_EQ(round(copy_cycles(3, DVE, 0.96, F32, SBUF, 1, 8)), 64);
	/* 16-bit: four times, twice when not contiguous or one side in PSUM. */
	EXPECT_EQ(round(copy_cycles(3, DVE, 0.96, BF16, SBUF, 1, 1024)), 256);
	EXPECT_EQ(round(copy_cycles(3, DVE, 0.96, BF16, SBUF, 2, 1024)), 512);
	EXPECT_EQ(round(copy_cycles(3, DVE, 0.96, BF16, PSUM, 1, 1024)), 512);
	/* Not on Trn1, not on ACT before Trn3. */
	EXPECT_EQ(round(copy_cycles(2, DVE, 1.12, BF16, SBUF, 1, 1024)), 1024);
	EXPECT_EQ(round(copy_cycles(3, ACT, 1.2, BF16, SBUF, 1, 1024)), 1024);
	EXPECT_EQ(round(copy_cycles(4, ACT, 1.2, BF16, SBUF, 1, 1024)), 512);
	/* An inner stride of 32 bytes halves the bandwidth. */
	EXPECT_EQ(round(copy_cycles(3, DVE, 0.96, F32, SBUF, 8, 512)), 1024);
}

TEST(published_formulas)
{
	struct neuron_insn w = insn_new(NEURON_OP_RECIPROCAL);

	start(3);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 100);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 4096, 100);
	EXPECT_EQ(round(busy_cycles(DVE, &w, 0.96)), 800);

	start(3);
	w = insn_new(NEURON_OP_TENSOR_TENSOR);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 300);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 4096, 300);
	w.ap[2] = ap_row(SBUF, F32, 0, 128, 8192, 300);
	EXPECT_EQ(round(busy_cycles(DVE, &w, 0.96)), 600);
	start(3);
	w.ap[2].space = PSUM;
	EXPECT_EQ(round(busy_cycles(DVE, &w, 0.96)), 300);

	start(3);
	w = insn_new(NEURON_OP_IOTA);
	w.ap[0] = ap_row(SBUF, NEURON_DTYPE_INT32, 0, 128, 0, 300);
	w.ap[2].dims = 1;
	w.ap[2].num[0] = htole16(300);
	EXPECT_EQ(round(busy_cycles(POOL, &w, 1.2)), 450);

	start(3);
	w = insn_new(NEURON_OP_TENSOR_REDUCE);
	w.op[0] = NEURON_ALU_MAXIMUM;
	w.aux = htole32(1);
	w.ap[0] = ap_row(SBUF, BF16, 0, 128, 0, 1);
	w.ap[1] = ap_row(SBUF, BF16, 0, 128, 4096, 300);
	EXPECT_EQ(round(busy_cycles(DVE, &w, 0.96)), 150);
}

/* AWS's example: a chain of dependent instructions takes 264 cycles each on Trn1's ACT. */
TEST(dependent_chain)
{
	struct neuron_insn w = insn_new(NEURON_OP_ACTIVATE);
	unsigned int i;

	start(2);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 1);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 0, 1);
	for (i = 0; i < 4; i++)
		prog_add(p, 0, ACT, &w);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(round(ns(le64toh(prog_record(p, 0, ACT, NEURON_OP_ACTIVATE, 3)->start) -
			   le64toh(prog_record(p, 0, ACT, NEURON_OP_ACTIVATE, 2)->start)) * 1.4), 264);
	/* Independent: 64. */
	start(2);
	w.ap[1].offset = htole32(4096);
	for (i = 0; i < 4; i++)
		prog_add(p, 0, ACT, &w);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(round(ns(le64toh(prog_record(p, 0, ACT, NEURON_OP_ACTIVATE, 3)->start) -
			   le64toh(prog_record(p, 0, ACT, NEURON_OP_ACTIVATE, 2)->start)) * 1.4), 64);
}

/* Published for Trn2: PE 81 ns from a semaphore, DVE 161 ns until its writes are visible. */
TEST(semaphore_latency)
{
	const struct neuron_trace_record *first, *second;
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

	start(3);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 64);
	w.imm[0] = imm_f32(1);
	w.update = update_add(4, 1);
	w.debug_id = htole32(77);
	prog_add(p, 0, DVE, &w);
	w = insn_new(NEURON_OP_LDWEIGHTS);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 0, 64);
	w.wait[0] = wait_sub(4, 1);
	prog_add(p, 0, PE, &w);
	ASSERT_EQ(prog_run(p), 0);
	first = prog_record(p, 0, DVE, NEURON_OP_MEMSET, 0);
	second = prog_record(p, 0, PE, NEURON_OP_LDWEIGHTS, 0);
	EXPECT_LT(fabs(ns(le64toh(first->end) - le64toh(first->start)) - 64 / 0.96 - 161), 0.1);
	EXPECT_LT(fabs(ns(le64toh(second->start) - le64toh(first->end)) - 81), 0.1);
	EXPECT_EQ(second->wait, NEURON_TRACE_WAIT_SEMAPHORE);
	EXPECT_EQ(second->wait_engine, DVE);
	EXPECT_EQ(le16toh(second->wait_index), 4);
	EXPECT_EQ(le32toh(second->wait_debug_id), 77);
}

/* Every wait with its length: two semaphores, then the engine; together all of it. */
TEST(trace_waits)
{
	const struct neuron_trace_record *r, *one, *two, *before;
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	uint64_t sum = 0;
	unsigned int i;

	start(3);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 64);
	w.imm[0] = imm_f32(1);
	w.update = update_add(4, 1);
	prog_add(p, 0, POOL, &w);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 4096, 512);
	w.update = update_add(5, 1);
	prog_add(p, 0, POOL, &w);
	w = insn_new(NEURON_OP_ACTIVATE);
	w.op[0] = NEURON_ACTFN_COPY;
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 8192, 4096);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 32768, 4096);
	prog_add(p, 0, ACT, &w);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 65536, 64);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 0, 64);
	w.wait[0] = wait_sub(5, 1);
	w.wait[1] = wait_sub(4, 1);
	prog_add(p, 0, ACT, &w);
	ASSERT_EQ(prog_run(p), 0);
	one = prog_record(p, 0, POOL, NEURON_OP_MEMSET, 0);
	two = prog_record(p, 0, POOL, NEURON_OP_MEMSET, 1);
	before = prog_record(p, 0, ACT, NEURON_OP_ACTIVATE, 0);
	r = prog_record(p, 0, ACT, NEURON_OP_ACTIVATE, 1);
	EXPECT_EQ(r->waits[0].kind, NEURON_TRACE_WAIT_SEMAPHORE);
	EXPECT_EQ(le16toh(r->waits[0].index), 4);
	EXPECT_EQ(record(p, le32toh(r->waits[0].record)), one);
	EXPECT_EQ(le32toh(r->waits[0].ticks), le64toh(one->end) - le64toh(r->issue));
	EXPECT_EQ(r->waits[1].kind, NEURON_TRACE_WAIT_SEMAPHORE);
	EXPECT_EQ(r->waits[1].engine, POOL);
	EXPECT_EQ(le16toh(r->waits[1].index), 5);
	EXPECT_EQ(record(p, le32toh(r->waits[1].record)), two);
	EXPECT_EQ(r->waits[2].kind, NEURON_TRACE_WAIT_ENGINE);
	EXPECT_EQ(record(p, le32toh(r->waits[2].record)), before);
	EXPECT_EQ(r->waits[3].kind, NEURON_TRACE_WAIT_NONE);
	for (i = 0; i < NEURON_TRACE_WAITS; i++)
		sum += le32toh(r->waits[i].ticks);
	EXPECT_EQ(sum, le64toh(r->start) - le64toh(r->issue));
	/* Operands as they were. */
	EXPECT_EQ(le64toh(r->operand[0].addr), 65536);
	EXPECT_EQ(le32toh(r->operand[0].n), 64);
	EXPECT_EQ(r->operand[1].space, SBUF);
	EXPECT_EQ(r->operand[1].parts, 128);
	EXPECT_EQ(r->operand[2].space, NEURON_SPACE_NONE);
}

/* A transfer: its trigger, its turn in the queue, and what sharing engines cost it. */
TEST(trace_transfers)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
	const struct neuron_trace_record *a, *b, *c;
	unsigned int i;

	start(3);
	prog_arg(p, 128 * 4096, NEURON_ARG_READ);
	hbm = dma_hbm(0, F32, 0, 1024, 128, 4096);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 1024);
	for (i = 0; i < 3; i++) {
		w.aux = htole32(i == 2);
		prog_dma(p, 0, i == 2 ? ACT : SP, &w, &sb, &hbm);
	}
	ASSERT_EQ(prog_run(p), 0);
	/* In order of start: the first, the one of the other queue, the second. */
	a = prog_record(p, 0, NEURON_ENGINE_DMA, NEURON_OP_DMA_COPY, 0);
	c = prog_record(p, 0, NEURON_ENGINE_DMA, NEURON_OP_DMA_COPY, 1);
	b = prog_record(p, 0, NEURON_ENGINE_DMA, NEURON_OP_DMA_COPY, 2);
	EXPECT_EQ(c->queue, 1);
	EXPECT_EQ(a->waits[0].kind, NEURON_TRACE_WAIT_TRIGGER);
	EXPECT_LT(fabs(ns(le32toh(a->waits[0].ticks)) - 1300), 0.1);
	EXPECT_EQ(record(p, le32toh(a->waits[0].record))->engine, SP);
	EXPECT_EQ(b->waits[1].kind, NEURON_TRACE_WAIT_ENGINE);
	EXPECT_EQ(record(p, le32toh(b->waits[1].record)), a);
	EXPECT_EQ(le32toh(b->waits[0].ticks) + le32toh(b->waits[1].ticks),
		  le64toh(b->start) - le64toh(b->issue));
	/* Two want all engines: each takes twice its time. */
	EXPECT_EQ(a->waits[1].kind, NEURON_TRACE_WAIT_DMA);
	EXPECT_LT(fabs(2.0 * le32toh(a->waits[1].ticks) / le32toh(a->busy) - 1), 0.01);
	EXPECT_EQ(a->operand[1].space, NEURON_SPACE_HBM);
	EXPECT_EQ(le64toh(a->operand[1].addr), le64toh(p->arg[0].va));
	EXPECT_EQ(le32toh(a->operand[1].n), 128 * 1024);
}

/* --- exclusion ------------------------------------------------------------------------- */

static bool overlap(const struct neuron_trace_record *a, const struct neuron_trace_record *b)
{
	return le64toh(a->start) < le64toh(b->start) + le32toh(b->busy) &&
	       le64toh(b->start) < le64toh(a->start) + le32toh(a->busy);
}

/* Two memsets at once, of fp32 in @space at @second for the other engine. */
static bool together(unsigned int nc, unsigned int other, unsigned int space, uint32_t second)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY);

	start(nc);
	w.ap[0] = ap_row(space, F32, 0, 128, 0, 512);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 32768, 512);
	prog_add(p, 0, DVE, &w);
	w.ap[0].offset = htole32(second);
	if (other == ACT) {
		w.opcode = NEURON_OP_ACTIVATE;
		w.op[0] = NEURON_ACTFN_COPY;
	}
	prog_add(p, 0, other, &w);
	if (prog_run(p))
		abort();
	return overlap(prog_record(p, 0, DVE, NEURON_OP_TENSOR_COPY, 0), prog_record(p, 0, other, w.opcode, 0));
}

TEST(shared_memories)
{
	/* Trn1: never together. Trn2: together on SBUF, and on different PSUM banks. */
	EXPECT_FALSE(together(2, POOL, SBUF, 8192));
	EXPECT_TRUE(together(3, POOL, SBUF, 8192));
	EXPECT_FALSE(together(2, ACT, PSUM, 4096));
	EXPECT_TRUE(together(3, ACT, PSUM, 4096));
	EXPECT_FALSE(together(3, ACT, PSUM, 0));
}

/* --- DMA --------------------------------------------------------------------------------- */

/* ns of a transfer of @rows partitions of @bytes, on its own. */
static double dma_ns(unsigned int nc, unsigned int rows, unsigned int bytes)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
	const struct neuron_trace_record *r;

	start(nc);
	prog_arg(p, (uint64_t)rows * bytes, NEURON_ARG_READ);
	hbm = dma_hbm(0, F32, 0, bytes / 4, rows, bytes);
	w.ap[0] = ap_row(SBUF, F32, 0, rows, 0, bytes / 4);
	prog_dma(p, 0, SP, &w, &sb, &hbm);
	if (prog_run(p))
		return -1;
	r = prog_record(p, 0, NEURON_ENGINE_DMA, NEURON_OP_DMA_COPY, 0);
	return ns(le64toh(r->end) - le64toh(r->start));
}

/* 32 KiB on one Trn2 engine: 1,416 ns by AWS's example. Here 16 engines do one row each. */
TEST(dma_example)
{
	double t = dma_ns(3, 16, 32768);

	EXPECT_LT(fabs(t - 1416) / 1416, 0.02) {
		TH_LOG("%.1f ns", t);
	}
}

/* AWS's curve for 128 partitions: per cent of the plateau by bytes of a partition. */
TEST(dma_curve)
{
	static const struct {
		unsigned int bytes;
		double percent;
	} curve[] = {
		{ 32, 1.2 }, { 64, 2.6 }, { 128, 5 }, { 256, 10 }, { 512, 21 }, { 1024, 42 },
		{ 2048, 81 }, { 4096, 97 }, { 8192, 98 }, { 16384, 99 }, { 32768, 100 },
	};
	double plateau = 128.0 * 32768 / dma_ns(3, 128, 32768);
	unsigned int i;

	/* 16 engines of 23 bytes per ns. */
	EXPECT_LT(fabs(plateau / (16 * 23) - 1), 0.01);
	for (i = 0; i < sizeof(curve) / sizeof(curve[0]); i++) {
		double got = 100 * 128.0 * curve[i].bytes / dma_ns(3, 128, curve[i].bytes) / plateau;

		EXPECT_LT(fabs(got - curve[i].percent), 2.5) {
			TH_LOG("%u bytes: %.1f %%, published %.1f %%", curve[i].bytes, got,
			       curve[i].percent);
		}
	}
}

TEST(dma_trigger)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
	const struct neuron_trace_record *r;

	start(3);
	prog_arg(p, 4096, NEURON_ARG_READ);
	hbm = dma_hbm(0, F32, 0, 32, 32, 128);
	w.ap[0] = ap_row(SBUF, F32, 0, 32, 0, 32);
	prog_dma(p, 0, SP, &w, &sb, &hbm);
	ASSERT_EQ(prog_run(p), 0);
	r = prog_record(p, 0, NEURON_ENGINE_DMA, NEURON_OP_DMA_COPY, 0);
	EXPECT_LT(fabs(ns(le64toh(r->start) - le64toh(r->issue)) - 1300), 0.1);
	EXPECT_EQ(r->queue, 0);
	EXPECT_EQ(le32toh(r->bytes), 4096);
}

/* Two queues share the engines; two transfers of one queue go one after the other. */
TEST(dma_sharing)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	double alone = dma_ns(3, 128, 4096), took;
	unsigned int two;

	for (two = 0; two < 2; two++) {
		struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
		const struct neuron_trace_record *a, *b;

		start(3);
		prog_arg(p, 128 * 4096, NEURON_ARG_READ);
		hbm = dma_hbm(0, F32, 0, 1024, 128, 4096);
		w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 1024);
		prog_dma(p, 0, SP, &w, &sb, &hbm);
		w.aux = htole32(two);
		w.ap[0].offset = htole32(8192);
		prog_dma(p, 0, ACT, &w, &sb, &hbm);
		ASSERT_EQ(prog_run(p), 0);
		a = prog_record(p, 0, NEURON_ENGINE_DMA, NEURON_OP_DMA_COPY, 0);
		b = prog_record(p, 0, NEURON_ENGINE_DMA, NEURON_OP_DMA_COPY, 1);
		took = ns(le64toh(b->end) - le64toh(a->start));
		/* The same bytes at the same rate, either way. */
		EXPECT_LT(fabs(took / (2 * alone) - 1), 0.01);
		EXPECT_EQ(overlap(a, b), two == 1);
	}
}

/* --- time without data ------------------------------------------------------------------- */

/* Some of everything: DMA both ways, products, a copy, a loop of 5. */
static void mixed(void)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
	unsigned int top;

	prog_arg(p, 128 * 2048, NEURON_ARG_READ);
	prog_arg(p, 128 * 2048, NEURON_ARG_WRITE);
	memset(prog_arg_mem(p, 1), 0x5a, 128 * 2048);
	hbm = dma_hbm(0, BF16, 0, 1024, 128, 2048);
	w.ap[0] = ap_row(SBUF, BF16, 0, 128, 0, 1024);
	w.update = update_add(1, 16);
	prog_dma(p, 0, SP, &w, &sb, &hbm);
	w = insn_new(NEURON_OP_REG_MOVE);
	w.imm[0] = imm_i32(5);
	w.aux = htole32(3);
	w.wait[0] = wait_sub(1, 16);
	top = prog_add(p, 0, PE, &w) + 1;
	matmuls(3);
	w = insn_new(NEURON_OP_REG_ALU);
	w.op[0] = NEURON_ALU_SUBTRACT;
	w.imm[0] = imm_reg(3, NEURON_DTYPE_INT32);
	w.imm[1] = imm_i32(1);
	w.aux = htole32(3);
	prog_add(p, 0, PE, &w);
	w.opcode = NEURON_OP_COMPARE_BRANCH;
	w.op[0] = NEURON_ALU_GREATER;
	w.imm[1] = imm_i32(0);
	w.aux = htole32(top);
	prog_add(p, 0, PE, &w);
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.update = update_add(2, 1);
	prog_add(p, 0, PE, &w);
	w = insn_new(NEURON_OP_TENSOR_COPY);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 8192, 512);
	w.ap[1] = ap_row(PSUM, F32, 0, 128, 0, 512);
	w.wait[0] = wait_sub(2, 1);
	w.update = update_add(3, 1);
	prog_add(p, 0, DVE, &w);
	w = insn_new(NEURON_OP_DMA_COPY);
	hbm = dma_hbm(1, F32, 0, 512, 128, 2048);
	w.ap[1] = ap_row(SBUF, F32, 0, 128, 8192, 512);
	w.wait[0] = wait_sub(3, 1);
	prog_dma(p, 0, SP, &w, &hbm, &sb);
}

TEST(timing_only)
{
	uint64_t ticks, macs;
	unsigned int i;

	start(3);
	mixed();
	ASSERT_EQ(prog_run(p), 0);
	ticks = p->job.modelled_ticks;
	macs = p->job.counters[0].pe_macs;
	EXPECT_EQ(macs, 15ull * 128 * 128 * 512);
	EXPECT_EQ(*(uint32_t *)prog_arg_mem(p, 1), 0);
	start(3);
	p->flags = NEURON_JOB_TIMING_ONLY;
	mixed();
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(p->job.modelled_ticks, ticks);
	EXPECT_EQ(p->job.counters[0].pe_macs, macs);
	for (i = 0; i < 128 * 2048; i++)
		ASSERT_EQ(((uint8_t *)prog_arg_mem(p, 1))[i], 0x5a);
}

/* What runs next may not depend on data: the fault names the register. */
TEST(timing_only_refused)
{
	struct neuron_dma_operand d;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		struct neuron_insn w = insn_new(NEURON_OP_READ);

		start(3);
		p->flags = NEURON_JOB_TIMING_ONLY;
		prog_arg(p, 4, NEURON_ARG_READ);
		d = dma_hbm(0, NEURON_DTYPE_INT32, 0, 1, 1, 4);
		w.aux = htole32(7);
		prog_words(p, 0, DVE, &w, &d, 1);
		/* What is computed from it is as unknown; an address may be. */
		w = insn_new(NEURON_OP_REG_ALU);
		w.op[0] = NEURON_ALU_ADD;
		w.imm[0] = imm_reg(7, NEURON_DTYPE_INT32);
		w.imm[1] = imm_i32(1);
		w.aux = htole32(8);
		prog_add(p, 0, DVE, &w);
		w = insn_new(i == 0 ? NEURON_OP_COMPARE_BRANCH : NEURON_OP_NOP);
		if (i == 0) {
			w.op[0] = NEURON_ALU_EQUAL;
			w.imm[0] = imm_i32(0);
			w.imm[1] = imm_reg(8, NEURON_DTYPE_INT32);
		} else if (i == 1) {
			w.wait[0] = (struct neuron_wait){ 1, NEURON_WAIT_GE | NEURON_WAIT_REG, htole16(8) };
		} else if (i < 4) {
			w = insn_new(NEURON_OP_MEMSET);
			w.imm[0] = imm_f32(1);
			w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 8);
			*(i == 2 ? &w.ap[0].count_reg : &w.ap[0].offset_reg) = 8;
		}
		prog_add(p, 0, DVE, &w);
		ASSERT_EQ(prog_run(p), i < 3 ? NEURON_FAULT_DATA_DEPENDENT : 0);
		EXPECT_EQ(le32toh(p->job.fault.index), i < 3 ? 8 : 0);
	}
}

/* --- trace ------------------------------------------------------------------------------ */

TEST(trace_layout)
{
	struct neuron_insn w = insn_new(NEURON_OP_NOP);
	uint64_t last = 0;
	unsigned int i;

	start(3);
	for (i = 0; i < 100; i++) {
		prog_add(p, 0, SP, &w);
		prog_add(p, 0, ACT, &w);
	}
	p->job.desc.seqno = 0;
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(le32toh(header(p)->magic), NEURON_TRACE_MAGIC);
	EXPECT_EQ(le16toh(header(p)->record_size), sizeof(struct neuron_trace_record));
	EXPECT_EQ(le64toh(header(p)->records), 200);
	EXPECT_EQ(le64toh(header(p)->dropped), 0);
	EXPECT_EQ(le64toh(header(p)->end_ticks), p->job.modelled_ticks);
	EXPECT_EQ(p->job.trace_records, 200);
	for (i = 0; i < 200; i++) {
		ASSERT_GE(le64toh(record(p, i)->start), last);
		last = le64toh(record(p, i)->start);
	}
	/* Room for ten. */
	p->trace_size = sizeof(struct neuron_trace_header) + 10 * sizeof(struct neuron_trace_record) + 8;
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(le64toh(header(p)->records), 10);
	EXPECT_EQ(le64toh(header(p)->dropped), 190);
	/* Nowhere to write. */
	p->trace_va = VM_BASE + VM_SIZE;
	ASSERT_EQ(prog_run(p), NEURON_FAULT_PAGE_NOT_MAPPED);
}

/* The same program takes the same time, whatever ran before. */
TEST(time_is_a_function_of_the_program)
{
	uint64_t first;

	matmul_period(3, BF16, 128, 512);
	first = p->job.modelled_ticks;
	dma_ns(3, 128, 128);
	matmul_period(3, BF16, 128, 512);
	EXPECT_EQ(p->job.modelled_ticks, first);
	ASSERT_EQ(prog_run(p), 0);
	EXPECT_EQ(p->job.modelled_ticks, first);
}

TEST_HARNESS_MAIN
