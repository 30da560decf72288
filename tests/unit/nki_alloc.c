// SPDX-License-Identifier: MIT
/* Where tiles lie, and which orders are placed between their users. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disasm.h"
#include "nki.h"
#include "kselftest_harness.h"

FIXTURE(alloc) {
	struct nki_kernel *k;
};

FIXTURE_SETUP(alloc)
{
	self->k = nki_kernel_new("alloc", "trn2");
}

FIXTURE_TEARDOWN(alloc)
{
	nki_kernel_free(self->k);
}

/* Is there an edge from a line to a line? */
static bool ordered(struct nki_kernel *k, int from, int to)
{
	int n = nki_edge_count(k);

	for (int i = 0; i < n; i++) {
		struct nki_edge e;

		if (!nki_edge(k, i, &e) && e.producer.line == from && e.consumer.line == to)
			return true;
	}
	return false;
}

/* Usable to the last byte: 224 KiB a partition on Trn2. */
TEST_F(alloc, whole_sbuf)
{
	struct nki_kernel *k = self->k;

	nki_sbuf(k, NKI_UINT8, 128, 200 * 1024);
	nki_sbuf(k, NKI_UINT8, 128, 24 * 1024);
	EXPECT_EQ(NULL, nki_error(k));
	nki_sbuf(k, NKI_UINT8, 1, 1);
	ASSERT_NE(NULL, nki_error(k));
	EXPECT_NE(NULL, strstr(nki_error(k), "no SBUF left: 1 bytes per partition asked for, 229376 exist on trn2"));
	EXPECT_NE(NULL, strstr(nki_error(k), "204800 bytes at 0: "));
	EXPECT_NE(NULL, strstr(nki_error(k), "24576 bytes at 204800: "));
}

TEST_F(alloc, psum_banks)
{
	struct nki_kernel *k = self->k;
	struct nki_view last;

	for (int i = 0; i < 7; i++)
		nki_psum(k, NKI_FLOAT32, 128, 512);
	nki_psum(k, NKI_FLOAT32, 128, 256);
	last = nki_psum(k, NKI_FLOAT32, 128, 256);
	EXPECT_EQ(NULL, nki_error(k));
	EXPECT_NE(NULL, last.buf);
	nki_psum(k, NKI_FLOAT32, 1, 1);
	ASSERT_NE(NULL, nki_error(k));
	EXPECT_NE(NULL, strstr(nki_error(k), "no PSUM left"));
}

/* Freed and taken again: the new writer waits for the old reader. */
TEST_F(alloc, reuse_waits)
{
	struct nki_kernel *k = self->k;
	struct nki_view out = nki_output(k, "out", NKI_FLOAT32, 128, 64);
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, 64), b;
	int write_a, store, write_b;

	write_a = __LINE__ + 1;
	nki_memset(k, a, 1);
	store = __LINE__ + 1;
	nki_dma_copy(k, out, a);
	nki_free(k, a);
	b = nki_sbuf(k, NKI_FLOAT32, 128, 64);
	write_b = __LINE__ + 1;
	nki_memset(k, b, 2, .engine = NKI_ENGINE_GPSIMD);
	EXPECT_TRUE(ordered(k, write_a, store));
	EXPECT_TRUE(ordered(k, store, write_b));
	/* The first write is ordered before the second through the store. */
	EXPECT_FALSE(ordered(k, write_a, write_b));
	EXPECT_EQ(2, nki_edge_count(k));
}

/* Program order of an engine needs no semaphore; nor do reads of the same bytes. */
TEST_F(alloc, no_more_than_needed)
{
	struct nki_kernel *k = self->k;
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, 64), b = nki_sbuf(k, NKI_FLOAT32, 128, 64);
	struct nki_view c = nki_sbuf(k, NKI_FLOAT32, 128, 64);

	nki_memset(k, a, 1);
	nki_tensor_scalar(k, a, a, NKI_ADD, nki_f32(1));
	EXPECT_EQ(0, nki_edge_count(k));
	nki_activation(k, b, NKI_EXP, a);
	EXPECT_EQ(1, nki_edge_count(k));
	nki_activation(k, c, NKI_EXP, a);
	nki_tensor_scalar(k, nki_sbuf(k, NKI_FLOAT32, 128, 64), a, NKI_ADD, nki_f32(1));
	EXPECT_EQ(1, nki_edge_count(k));
	/* Different halves of a tile do not depend on each other. */
	nki_memset(k, nki_cols(k, b, 0, 32), 0, .engine = NKI_ENGINE_GPSIMD);
	EXPECT_EQ(2, nki_edge_count(k));
	nki_memset(k, nki_cols(k, b, 32, 64), 0, .engine = NKI_ENGINE_VECTOR);
	EXPECT_EQ(3, nki_edge_count(k));
}

/* Interleaved columns: same range of bytes, no byte in common. */
TEST_F(alloc, interleaved)
{
	struct nki_kernel *k = self->k;
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, 64);

	nki_memset(k, nki_slice_step(k, a, 1, 0, 64, 2), 1);
	nki_memset(k, nki_slice_step(k, a, 1, 1, 64, 2), 2, .engine = NKI_ENGINE_GPSIMD);
	EXPECT_EQ(0, nki_edge_count(k));
	nki_memset(k, nki_slice_step(k, a, 1, 0, 64, 3), 3, .engine = NKI_ENGINE_GPSIMD);
	EXPECT_EQ(1, nki_edge_count(k));
}

/* Counts of one stream: semaphores are back at 0 when every loop of the program has run. */
static void tally(struct nki_kernel *k, int64_t *balance)
{
	for (unsigned int e = 1; e < NEURON_ENGINE_COUNT; e++) {
		const struct neuron_insn *w;
		const void *words;
		size_t count;

		if (nki_stream(k, e, &words, &count))
			return;
		w = words;
		for (size_t pc = 0; pc < count; pc += w[pc].words) {
			if (w[pc].update.op)
				balance[w[pc].update.sem] += w[pc].update.value;
			for (int i = 0; i < 2; i++) {
				if (w[pc].wait[i].cond)
					balance[w[pc].wait[i].sem] -= w[pc].wait[i].value;
			}
		}
	}
}

/* One consumer of a transfer signals the others, so many edges can leave it. */
TEST_F(alloc, many_consumers)
{
	struct nki_kernel *k = self->k;
	struct nki_view x = nki_input(k, "x", NKI_FLOAT32, 128, 64);
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, 64), b[4], ps = nki_psum(k, NKI_FLOAT32, 64, 64);
	int64_t balance[NEURON_SEMAPHORES] = { 0 };

	for (int i = 0; i < 4; i++)
		b[i] = nki_sbuf(k, NKI_FLOAT32, 128, 64);
	nki_for(k, n, 0, 5, 1) {
		nki_dma_copy(k, a, x);
		nki_activation(k, b[0], NKI_EXP, a);
		nki_tensor_copy(k, b[1], a);
		nki_tensor_copy(k, b[2], a, .engine = NKI_ENGINE_GPSIMD);
		nki_nc_matmul(k, ps, a, a);
	}
	/* Four wait for the load; the load waits for the four of the iteration before. */
	ASSERT_EQ(8, nki_edge_count(k));
	tally(k, balance);
	for (int s = 0; s < NEURON_SEMAPHORES; s++)
		EXPECT_EQ(0, balance[s]);
}

TEST_F(alloc, drop)
{
	struct nki_kernel *k = self->k;
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, 64);
	int64_t balance[NEURON_SEMAPHORES] = { 0 };
	struct nki_edge e;

	nki_memset(k, a, 1);
	nki_activation(k, a, NKI_EXP, a);
	nki_reciprocal(k, a, a);
	ASSERT_EQ(2, nki_edge_count(k));
	nki_drop_semaphore(k, 1);
	ASSERT_EQ(2, nki_edge_count(k));
	ASSERT_EQ(0, nki_edge(k, 1, &e));
	EXPECT_TRUE(e.dropped);
	EXPECT_STREQ("nki_activation", e.producer.name);
	EXPECT_STREQ("nki_reciprocal", e.consumer.name);
	tally(k, balance);
	for (int s = 0; s < NEURON_SEMAPHORES; s++)
		EXPECT_EQ(0, balance[s]);
	EXPECT_GT(0, nki_edge(k, 2, &e));
}

TEST_HARNESS_MAIN
