// SPDX-License-Identifier: MIT
/*
 * Device loops: register offsets, orders that are carried from one iteration to the
 * next, nesting, a trip count from memory, gather. In strict mode, and with every
 * latency varied: the bytes must not change.
 */
#include "kernel_common.h"

FIXTURE(loop) {
	struct nki_kernel *k;
};

FIXTURE_SETUP(loop)
{
	ASSERT_EQ(NRT_SUCCESS, kernel_init());
	self->k = nki_kernel_new("test", kernel_arch());
	ASSERT_NE(NULL, self->k);
}

FIXTURE_TEARDOWN(loop)
{
	nki_kernel_free(self->k);
	nrt_close();
}

enum { ROWS = 9, F = 64 };

/* y[i] = exp(x[i]), sum += x[i]: one tile for all iterations, so each waits for the last. */
static void accumulate(struct nki_kernel *k, unsigned int rows)
{
	struct nki_view x = nki_input(k, "x", NKI_FLOAT32, rows, 128, F);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, rows, 128, F);
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, F), e = nki_sbuf(k, NKI_FLOAT32, 128, F);
	struct nki_view sum = nki_sbuf(k, NKI_FLOAT32, 128, F);

	nki_memset(k, sum, 0);
	nki_for(k, i, 0, (int32_t)rows, 1) {
		nki_dma_copy(k, t, nki_index(k, nki_dyn(k, nki_rows(k, x, 0, 1), 0, i), 0, 0));
		nki_activation(k, e, NKI_EXP, t);
		nki_tensor_tensor(k, sum, sum, t, NKI_ADD);
		nki_dma_copy(k, nki_index(k, nki_dyn(k, nki_rows(k, y, 0, 1), 0, i), 0, 0), e);
	}
	nki_dma_copy(k, nki_output(k, "sum", NKI_FLOAT32, 128, F), sum);
}

static float x[ROWS * 128 * F], y[ROWS * 128 * F], sum[128 * F], again[ROWS * 128 * F];

TEST_F(loop, accumulate)
{
	static double want_y[ROWS * 128 * F], want_sum[128 * F];
	struct binding io[] = { IN("x", x), OUT("y", y), OUT("sum", sum) };

	fill(x, ROWS * 128 * F, 1);
	memset(want_sum, 0, sizeof(want_sum));
	for (int i = 0; i < ROWS * 128 * F; i++) {
		want_y[i] = exp(x[i]);
		want_sum[i % (128 * F)] += x[i];
	}
	accumulate(self->k, ROWS);
	ASSERT_TRUE(RUN(self->k, io));
	EXPECT_LE(worst(y, want_y, ROWS * 128 * F, 1e-6, 0), 1);
	EXPECT_LE(worst(sum, want_sum, 128 * F, 1e-6, 1e-6), 1);
}

TEST_F(loop, jitter)
{
	struct binding io[] = { IN("x", x), OUT("y", y), OUT("sum", sum) };

	fill(x, ROWS * 128 * F, 1);
	accumulate(self->k, ROWS);
	ASSERT_TRUE(RUN(self->k, io));
	memcpy(again, y, sizeof(y));
	for (uint64_t seed = 1; seed <= 10; seed++) {
		memset(y, 0, sizeof(y));
		ASSERT_TRUE(run_kernel(self->k, io, 3, NRTX_STRICT | NRTX_JITTER, seed));
		EXPECT_EQ(0, memcmp(again, y, sizeof(y)));
	}
}

/* A NEFF is as large for many iterations as for one. */
TEST_F(loop, size)
{
	struct nki_kernel *few = nki_kernel_new("test", kernel_arch());
	size_t many_bytes, few_bytes;
	void *neff;

	accumulate(self->k, 1000);
	accumulate(few, 10);
	ASSERT_EQ(0, nki_build(self->k, &neff, &many_bytes));
	free(neff);
	ASSERT_EQ(0, nki_build(few, &neff, &few_bytes));
	free(neff);
	nki_kernel_free(few);
	EXPECT_EQ(few_bytes, many_bytes);
}

/* Every semaphore of a loop is back at 0 after it, so it can run again at once. */
TEST_F(loop, nested)
{
	static float c[6 * 5 * 32];
	struct binding io[] = { OUT("c", c) };
	struct nki_kernel *k = self->k;
	struct nki_view out = nki_output(k, "c", NKI_FLOAT32, 6, 5, 32);
	struct nki_view row = nki_sbuf(k, NKI_FLOAT32, 1, 32), one = nki_sbuf(k, NKI_FLOAT32, 1, 32);
	struct nki_view buf = nki_sbuf(k, NKI_FLOAT32, 1, 5, 32);

	nki_memset(k, row, 0);
	nki_memset(k, one, 1);
	nki_for(k, i, 0, 6, 1) {
		nki_for(k, j, 0, 5, 1) {
			nki_tensor_tensor(k, row, row, one, NKI_ADD, .engine = NKI_ENGINE_GPSIMD);
			nki_tensor_copy(k, nki_dyn(k, nki_slice(k, buf, 1, 0, 1), 1, j), row,
					.engine = NKI_ENGINE_VECTOR);
		}
		nki_activation(k, buf, NKI_SQUARE, buf);
		nki_dma_copy(k, nki_dyn(k, nki_rows(k, out, 0, 1), 0, i), buf);
	}
	ASSERT_TRUE(RUN(k, io));
	for (int i = 0; i < 30; i++) {
		for (int f = 0; f < 32; f++)
			EXPECT_EQ((i + 1) * (i + 1), c[i * 32 + f]);
	}
}

/* The number of iterations is read from memory; 0 is one. */
static bool run_counted(int32_t rows, float *y_out, size_t bytes)
{
	static int32_t n[1];
	static float in[4 * 8], out[4 * 8];
	struct binding io[] = { IN("n", n), IN("x", in), OUT("y", out) };
	struct nki_kernel *k = nki_kernel_new("counted", kernel_arch());
	struct nki_view nt = nki_sbuf(k, NKI_INT32, 1, 1), t = nki_sbuf(k, NKI_FLOAT32, 1, 8);
	struct nki_view xs = nki_input(k, "x", NKI_FLOAT32, 4, 8), ys = nki_output(k, "y", NKI_FLOAT32, 4, 8);
	struct nki_reg count = nki_register_alloc(k);
	bool ok;

	n[0] = rows;
	for (int i = 0; i < 4 * 8; i++)
		in[i] = i + 1;
	memset(out, 0, sizeof(out));
	nki_dma_copy(k, nt, nki_input(k, "n", NKI_INT32, 1, 1));
	nki_register_load(k, count, nt);
	nki_for_reg(k, i, 0, count, 1) {
		nki_dma_copy(k, t, nki_dyn(k, nki_rows(k, xs, 0, 1), 0, i));
		nki_tensor_scalar(k, t, t, NKI_MULTIPLY, nki_f32(2));
		nki_dma_copy(k, nki_dyn(k, nki_rows(k, ys, 0, 1), 0, i), t);
	}
	ok = RUN(k, io);
	memcpy(y_out, out, bytes);
	nki_kernel_free(k);
	return ok;
}

TEST_F(loop, counted)
{
	float out[4 * 8];

	for (int count = 0; count <= 4; count++) {
		ASSERT_TRUE(run_counted(count, out, sizeof(out)));
		for (int i = 0; i < 4 * 8; i++)
			EXPECT_EQ(i / 8 < count ? 2 * (i + 1) : 0, out[i]);
	}
	/* Past the tensor: an error of the program, not of the chip. */
	EXPECT_FALSE(run_counted(5, out, sizeof(out)));
}

TEST_F(loop, gather)
{
	static float table[50 * 16], out[32 * 16];
	static int32_t index[32];
	struct binding io[] = { IN("table", table), IN("index", index), OUT("out", out) };
	struct nki_kernel *k = self->k;
	struct nki_view it = nki_sbuf(k, NKI_INT32, 32, 1), t = nki_sbuf(k, NKI_FLOAT32, 32, 16);

	fill(table, 50 * 16, 2);
	for (int i = 0; i < 32; i++)
		index[i] = i * 13 % 50;
	nki_dma_copy(k, it, nki_input(k, "index", NKI_INT32, 32, 1));
	nki_dma_copy(k, t, nki_gather(k, nki_input(k, "table", NKI_FLOAT32, 50, 16), it),
		     .engine = NKI_ENGINE_GPSIMD);
	nki_dma_copy(k, nki_output(k, "out", NKI_FLOAT32, 32, 16), t);
	ASSERT_TRUE(RUN(k, io));
	for (int i = 0; i < 32 * 16; i++)
		EXPECT_EQ(table[index[i / 16] * 16 + i % 16], out[i]);
	index[7] = 50;
	EXPECT_FALSE(RUN(k, io));
}

TEST_HARNESS_MAIN
