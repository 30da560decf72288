// SPDX-License-Identifier: MIT
/*
 * Programs whose tiles together are larger than SBUF and PSUM: memory is freed, used
 * again and takes turns, and strict mode finds nothing.
 */
#include "kernel_common.h"

#define ROWS	4096
#define COLUMNS	2304		/* 36 MiB of fp32: more than any SBUF */
#define M	1024
#define N	1024		/* 4 MiB of fp32: more than PSUM */
#define K	256

static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
static float a[K * M], b[K * N], c[M * N];

FIXTURE(large) {
	struct nki_kernel *k;
};

FIXTURE_SETUP(large)
{
	ASSERT_EQ(NRT_SUCCESS, kernel_init());
	self->k = nki_kernel_new("large", kernel_arch());
}

FIXTURE_TEARDOWN(large)
{
	nki_kernel_free(self->k);
	nrt_close();
}

/* Block of 128 rows; blocks take turns in two sets of tiles. */
TEST_F(large, softmax)
{
	struct nki_kernel *k = self->k;
	struct binding io[] = { IN("x", x), OUT("y", y) };
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, ROWS / 128, 128, COLUMNS);
	struct nki_view out = nki_output(k, "y", NKI_FLOAT32, ROWS / 128, 128, COLUMNS);
	struct nki_ring tiles = nki_ring_sbuf(k, 2, NKI_FLOAT32, 128, COLUMNS);
	struct nki_ring columns = nki_ring_sbuf(k, 2, NKI_FLOAT32, 128, 2);

	fill(x, ROWS * COLUMNS, 1);
	nki_for_unrolled(k, i, 0, ROWS / 128, 1, 2) {
		struct nki_view t = nki_ring_next(&tiles), col = nki_ring_next(&columns);
		struct nki_view max = nki_cols(k, col, 0, 1), sum = nki_cols(k, col, 1, 2);

		nki_dma_copy(k, t, nki_dyn(k, nki_rows(k, in, 0, 1), 0, i));
		nki_tensor_reduce(k, max, NKI_MAXIMUM, t, 1, .negate = true);
		nki_activation_reduce(k, t, NKI_EXP, t, NKI_ADD, sum, .bias = nki_vec(max));
		nki_reciprocal(k, sum, sum);
		nki_tensor_scalar(k, t, t, NKI_MULTIPLY, nki_vec(sum));
		nki_dma_copy(k, nki_dyn(k, nki_rows(k, out, 0, 1), 0, i), t);
	}
	ASSERT_TRUE(RUN(k, io));
	for (unsigned int r = 0; r < ROWS; r += 97) {
		const float *row = x + (size_t)r * COLUMNS;
		double expected[COLUMNS], sum = 0;

		for (unsigned int i = 0; i < COLUMNS; i++)
			sum += exp(row[i]);
		for (unsigned int i = 0; i < COLUMNS; i++)
			expected[i] = exp(row[i]) / sum;
		ASSERT_GE(1, worst(y + (size_t)r * COLUMNS, expected, COLUMNS, 1e-5, 1e-9));
	}
}

/* Tiles of the product come and go; only one row of blocks of inputs is kept. */
TEST_F(large, gemm)
{
	struct nki_kernel *k = self->k;
	struct binding io[] = { IN("a", a), IN("b", b), OUT("c", c) };
	struct nki_view in_a = nki_input(k, "a", NKI_FLOAT32, K, M), in_b = nki_input(k, "b", NKI_FLOAT32, K, N);
	struct nki_view out = nki_output(k, "c", NKI_FLOAT32, M, N);

	fill(a, K * M, 2);
	fill(b, K * N, 3);
	for (unsigned int n = 0; n < N; n += 512) {
		struct nki_view right[K / 128];

		for (unsigned int i = 0; i < K / 128; i++) {
			right[i] = nki_sbuf(k, NKI_FLOAT32, 128, 512);
			nki_dma_copy(k, right[i], nki_cols(k, nki_rows(k, in_b, 128 * i, 128 * i + 128), n, n + 512));
		}
		for (unsigned int m = 0; m < M; m += 128) {
			struct nki_view ps = nki_psum(k, NKI_FLOAT32, 128, 512), t = nki_sbuf(k, NKI_FLOAT32, 128, 512);

			for (unsigned int i = 0; i < K / 128; i++) {
				struct nki_view left = nki_sbuf(k, NKI_FLOAT32, 128, 128);

				nki_dma_copy(k, left, nki_cols(k, nki_rows(k, in_a, 128 * i, 128 * i + 128), m, m + 128));
				nki_nc_matmul(k, ps, left, right[i], .accumulate = i > 0);
				nki_free(k, left);
			}
			nki_tensor_copy(k, t, ps);
			nki_free(k, ps);
			nki_dma_copy(k, nki_cols(k, nki_rows(k, out, m, m + 128), n, n + 512), t);
			nki_free(k, t);
		}
		for (unsigned int i = 0; i < K / 128; i++)
			nki_free(k, right[i]);
	}
	ASSERT_TRUE(RUN(k, io));
	for (unsigned int m = 0; m < M; m += 61) {
		double expected[N];

		for (unsigned int n = 0; n < N; n++) {
			expected[n] = 0;
			for (unsigned int i = 0; i < K; i++)
				expected[n] += (double)a[i * M + m] * b[i * N + n];
		}
		ASSERT_GE(1, worst(c + m * N, expected, N, 1e-5, 1e-4));
	}
}

/* Nothing freed: the error says what is alive. */
TEST_F(large, exhausted)
{
	struct nki_kernel *k = self->k;

	for (int i = 0; i < 40 && !nki_error(k); i++)
		nki_psum(k, NKI_FLOAT32, 128, 512);
	ASSERT_NE(NULL, nki_error(k));
	EXPECT_NE(NULL, strstr(nki_error(k), "no PSUM left: 2048 bytes per partition asked for, 16384 exist"));
	EXPECT_NE(NULL, strstr(nki_error(k), "kernel_large.c"));
}

TEST_HARNESS_MAIN
