// SPDX-License-Identifier: MIT
/*
 * Whole kernels against references in fp64, written from the formulas: elementwise,
 * matrix product, softmax, layer normalisation, transposes. In strict mode, so a
 * semaphore that the builder forgot is an error too.
 *
 * Tolerances: fp32 arithmetic of a few steps, 1e-5; products of bf16 numbers are
 * exact in fp32, so their sums have fp32's error only: K * 2^-24 of the largest
 * partial sum, for which 1e-5 * sqrt(K) is generous.
 */
#include "kernel_common.h"

FIXTURE(math) {
	struct nki_kernel *k;
};

FIXTURE_SETUP(math)
{
	ASSERT_EQ(NRT_SUCCESS, kernel_init());
	self->k = nki_kernel_new("test", kernel_arch());
	ASSERT_NE(NULL, self->k);
}

FIXTURE_TEARDOWN(math)
{
	nki_kernel_free(self->k);
	nrt_close();
}

TEST_F(math, add)
{
	static float a[128 * 512], b[128 * 512], c[128 * 512];
	static double want[128 * 512];
	struct binding io[] = { IN("a", a), IN("b", b), OUT("c", c) };
	struct nki_kernel *k = self->k;
	struct nki_view ta, tb;

	fill(a, 128 * 512, 1);
	fill(b, 128 * 512, 2);
	for (int i = 0; i < 128 * 512; i++)
		want[i] = (double)a[i] + b[i];
	ta = nki_sbuf(k, NKI_FLOAT32, 128, 512);
	tb = nki_sbuf(k, NKI_FLOAT32, 128, 512);
	nki_dma_copy(k, ta, nki_input(k, "a", NKI_FLOAT32, 128, 512));
	nki_dma_copy(k, tb, nki_input(k, "b", NKI_FLOAT32, 128, 512));
	nki_tensor_tensor(k, ta, ta, tb, NKI_ADD);
	nki_dma_copy(k, nki_output(k, "c", NKI_FLOAT32, 128, 512), ta);
	ASSERT_TRUE(RUN(k, io));
	EXPECT_LE(worst(c, want, 128 * 512, 1e-7, 1e-9), 1);
}

/* C[M, N] = A[M, K] B[K, N], A given transposed; tiles larger than the array and a bank. */
enum { GM = 256, GK = 320, GN = 1100 };

static struct nki_view load_bf16(struct nki_kernel *k, struct nki_view src)
{
	struct nki_view t = nki_sbuf(k, NKI_BFLOAT16, src.num[0], src.num[1]);
	struct nki_view f = nki_sbuf(k, NKI_FLOAT32, src.num[0], src.num[1]);

	nki_dma_copy(k, f, src);
	nki_tensor_copy(k, t, f);
	nki_free(k, f);
	return t;
}

static void gemm_block(struct nki_kernel *k, struct nki_view c, const struct nki_view *a,
		       const struct nki_view *b, unsigned int steps)
{
	struct nki_view sum = nki_psum(k, NKI_FLOAT32, c.num[0], c.num[1]);
	struct nki_view out = nki_sbuf(k, NKI_FLOAT32, c.num[0], c.num[1]);

	for (unsigned int s = 0; s < steps; s++)
		nki_nc_matmul(k, sum, a[s], b[s], .accumulate = s > 0);
	nki_tensor_copy(k, out, sum);
	nki_dma_copy(k, c, out);
	nki_free(k, sum);
	nki_free(k, out);
}

static void gemm(struct nki_kernel *k)
{
	struct nki_view at = nki_input(k, "at", NKI_FLOAT32, GK, GM);
	struct nki_view b = nki_input(k, "b", NKI_FLOAT32, GK, GN);
	struct nki_view c = nki_output(k, "c", NKI_FLOAT32, GM, GN);
	struct nki_view ta[3], tb[3];

	for (int s = 0; s < 3; s++) {
		int lo = s * 128, hi = lo + 128 < GK ? lo + 128 : GK;

		ta[s] = load_bf16(k, nki_rows(k, at, lo, hi));
		tb[s] = load_bf16(k, nki_rows(k, b, lo, hi));
	}
	for (int m = 0; m < GM; m += 128) {
		for (int n = 0; n < GN; n += 512) {
			int end = n + 512 < GN ? n + 512 : GN;
			struct nki_view pa[3], pb[3];

			for (int s = 0; s < 3; s++) {
				pa[s] = nki_cols(k, ta[s], m, m + 128);
				pb[s] = nki_cols(k, tb[s], n, end);
			}
			gemm_block(k, nki_cols(k, nki_rows(k, c, m, m + 128), n, end), pa, pb, 3);
		}
	}
}

TEST_F(math, gemm)
{
	static float at[GK * GM], b[GK * GN], c[GM * GN];
	static double want[GM * GN];
	struct binding io[] = { IN("at", at), IN("b", b), OUT("c", c) };

	fill(at, GK * GM, 3);
	fill(b, GK * GN, 4);
	for (int m = 0; m < GM; m++) {
		for (int n = 0; n < GN; n++) {
			double sum = 0;

			for (int i = 0; i < GK; i++)
				sum += (double)as_bf16(at[i * GM + m]) * as_bf16(b[i * GN + n]);
			want[m * GN + n] = sum;
		}
	}
	gemm(self->k);
	ASSERT_TRUE(RUN(self->k, io));
	EXPECT_LE(worst(c, want, GM * GN, 1e-5, 1e-5 * sqrt(GK)), 1);
}

enum { SN = 384 };

static void softmax(struct nki_kernel *k)
{
	struct nki_view x = nki_sbuf(k, NKI_FLOAT32, 128, SN);
	struct nki_view neg_max = nki_sbuf(k, NKI_FLOAT32, 128, 1);
	struct nki_view sum = nki_sbuf(k, NKI_FLOAT32, 128, 1);

	nki_dma_copy(k, x, nki_input(k, "x", NKI_FLOAT32, 128, SN));
	nki_tensor_reduce(k, neg_max, NKI_MAXIMUM, x, 1, .negate = true);
	nki_activation_reduce(k, x, NKI_EXP, x, NKI_ADD, sum, .bias = nki_vec(neg_max));
	nki_reciprocal(k, sum, sum);
	nki_tensor_scalar(k, x, x, NKI_MULTIPLY, nki_vec(sum));
	nki_dma_copy(k, nki_output(k, "y", NKI_FLOAT32, 128, SN), x);
}

TEST_F(math, softmax)
{
	static float x[128 * SN], y[128 * SN];
	static double want[128 * SN];
	struct binding io[] = { IN("x", x), OUT("y", y) };

	fill(x, 128 * SN, 5);
	for (int p = 0; p < 128; p++) {
		double max = -INFINITY, sum = 0;

		for (int i = 0; i < SN; i++) {
			x[p * SN + i] *= 20;
			max = fmax(max, x[p * SN + i]);
		}
		for (int i = 0; i < SN; i++)
			sum += exp(x[p * SN + i] - max);
		for (int i = 0; i < SN; i++)
			want[p * SN + i] = exp(x[p * SN + i] - max) / sum;
	}
	softmax(self->k);
	ASSERT_TRUE(RUN(self->k, io));
	/* fp32 rounds x - max by up to 2^-19 before exp; then a few roundings. */
	EXPECT_LE(worst(y, want, 128 * SN, 1e-5, 1e-12), 1);
}

enum { LN = 256 };

/* y = (x - mean) / sqrt(var + eps) * gamma + beta, by rows */
static void layernorm(struct nki_kernel *k)
{
	struct nki_view x = nki_sbuf(k, NKI_FLOAT32, 128, LN), sq = nki_sbuf(k, NKI_FLOAT32, 128, LN);
	struct nki_view gamma = nki_sbuf(k, NKI_FLOAT32, 128, LN);
	struct nki_view beta = nki_sbuf(k, NKI_FLOAT32, 128, LN);
	struct nki_view mean = nki_sbuf(k, NKI_FLOAT32, 128, 1), var = nki_sbuf(k, NKI_FLOAT32, 128, 1);
	struct nki_view eps = nki_sbuf(k, NKI_FLOAT32, 128, 1);

	nki_dma_copy(k, x, nki_input(k, "x", NKI_FLOAT32, 128, LN));
	nki_dma_copy(k, gamma, nki_broadcast(k, nki_input(k, "gamma", NKI_FLOAT32, 1, LN), 0, 128));
	nki_dma_copy(k, beta, nki_broadcast(k, nki_input(k, "beta", NKI_FLOAT32, 1, LN), 0, 128),
		     .engine = NKI_ENGINE_SCALAR);
	nki_tensor_reduce(k, mean, NKI_ADD, x, 1);
	nki_tensor_scalar(k, mean, mean, NKI_MULTIPLY, nki_f32(1.0f / LN));
	nki_tensor_scalar(k, x, x, NKI_SUBTRACT, nki_vec(mean));
	nki_activation_reduce(k, sq, NKI_SQUARE, x, NKI_ADD, var);
	nki_memset(k, eps, 1e-5);
	nki_activation(k, var, NKI_SQRT, var, .scale = nki_f32(1.0f / LN), .bias = nki_vec(eps));
	nki_reciprocal(k, var, var);
	nki_scalar_tensor_tensor(k, x, x, NKI_MULTIPLY, nki_vec(var), NKI_MULTIPLY, gamma);
	nki_tensor_tensor(k, x, x, beta, NKI_ADD, .engine = NKI_ENGINE_GPSIMD);
	nki_dma_copy(k, nki_output(k, "y", NKI_FLOAT32, 128, LN), x);
}

TEST_F(math, layernorm)
{
	static float x[128 * LN], y[128 * LN], gamma[LN], beta[LN];
	static double want[128 * LN];
	struct binding io[] = { IN("x", x), IN("gamma", gamma), IN("beta", beta), OUT("y", y) };

	fill(x, 128 * LN, 6);
	fill(gamma, LN, 7);
	fill(beta, LN, 8);
	for (int p = 0; p < 128; p++) {
		double mean = 0, var = 0;

		for (int i = 0; i < LN; i++)
			mean += x[p * LN + i] / (double)LN;
		for (int i = 0; i < LN; i++)
			var += (x[p * LN + i] - mean) * (x[p * LN + i] - mean) / LN;
		for (int i = 0; i < LN; i++)
			want[p * LN + i] = (x[p * LN + i] - mean) / sqrt(var + 1e-5f) * gamma[i] + beta[i];
	}
	layernorm(self->k);
	ASSERT_TRUE(RUN(self->k, io));
	EXPECT_LE(worst(y, want, 128 * LN, 1e-5, 1e-5), 1);
}

TEST_F(math, transposes)
{
	static float x[96 * 80], by_pe[80 * 96], x32[32 * 20], by_dve[20 * 32];
	struct binding io[] = { IN("x", x), OUT("pe", by_pe), IN("x32", x32), OUT("dve", by_dve) };
	struct nki_kernel *k = self->k;
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 96, 80), out = nki_sbuf(k, NKI_FLOAT32, 80, 96);
	struct nki_view ps = nki_psum(k, NKI_FLOAT32, 80, 96);
	struct nki_view s = nki_sbuf(k, NKI_FLOAT32, 32, 20), st = nki_sbuf(k, NKI_FLOAT32, 20, 32);

	fill(x, 96 * 80, 9);
	fill(x32, 32 * 20, 10);
	nki_dma_copy(k, t, nki_input(k, "x", NKI_FLOAT32, 96, 80));
	nki_nc_transpose(k, ps, t);
	nki_tensor_copy(k, out, ps);
	nki_dma_copy(k, nki_output(k, "pe", NKI_FLOAT32, 80, 96), out);
	nki_dma_copy(k, s, nki_input(k, "x32", NKI_FLOAT32, 32, 20));
	nki_nc_transpose(k, st, s);
	nki_dma_copy(k, nki_output(k, "dve", NKI_FLOAT32, 20, 32), st);
	ASSERT_TRUE(RUN(k, io));
	for (int i = 0; i < 96; i++) {
		for (int j = 0; j < 80; j++)
			ASSERT_EQ(x[i * 80 + j], by_pe[j * 96 + i]);
	}
	for (int i = 0; i < 32; i++) {
		for (int j = 0; j < 20; j++)
			ASSERT_EQ(x32[i * 20 + j], by_dve[j * 32 + i]);
	}
}

/* Causal mask and one-hot, as attention and losses use them: iota, affine_select, select. */
TEST_F(math, masks)
{
	static float x[64 * 64], causal[64 * 64], numbers[64 * 64], copied[64 * 64];
	static uint8_t mask[64 * 64];
	struct binding io[] = { IN("x", x), IN("mask", mask), OUT("causal", causal), OUT("n", numbers),
				OUT("copied", copied) };
	struct nki_kernel *k = self->k;
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 64, 64), c = nki_sbuf(k, NKI_FLOAT32, 64, 64);
	struct nki_view n = nki_sbuf(k, NKI_FLOAT32, 64, 8, 8), m = nki_sbuf(k, NKI_UINT8, 64, 64);
	struct nki_view p = nki_sbuf(k, NKI_FLOAT32, 64, 64);

	fill(x, 64 * 64, 11);
	for (int i = 0; i < 64 * 64; i++)
		mask[i] = i * 7 % 3 == 0;
	nki_dma_copy(k, t, nki_input(k, "x", NKI_FLOAT32, 64, 64));
	nki_dma_copy(k, m, nki_input(k, "mask", NKI_UINT8, 64, 64));
	nki_affine_select(k, c, NKI_PATTERN({-1, 64}), 1, t, -1e30f, .cmp_op = NKI_GREATER_EQUAL);
	nki_iota(k, n, NKI_PATTERN({100, 8}, {3, 8}), .offset = -5, .channel_multiplier = 1000);
	nki_memset(k, p, 2.5);
	nki_tensor_copy_predicated(k, p, t, m);
	nki_dma_copy(k, nki_output(k, "causal", NKI_FLOAT32, 64, 64), c);
	nki_dma_copy(k, nki_output(k, "n", NKI_FLOAT32, 64, 64), n);
	nki_dma_copy(k, nki_output(k, "copied", NKI_FLOAT32, 64, 64), p);
	ASSERT_TRUE(RUN(k, io));
	for (int i = 0; i < 64; i++) {
		for (int j = 0; j < 64; j++) {
			EXPECT_EQ(j <= i ? x[i * 64 + j] : -1e30f, causal[i * 64 + j]);
			EXPECT_EQ(-5.0f + 1000 * i + j / 8 * 100 + j % 8 * 3, numbers[i * 64 + j]);
			EXPECT_EQ(mask[i * 64 + j] ? x[i * 64 + j] : 2.5f, copied[i * 64 + j]);
		}
	}
}

TEST_HARNESS_MAIN
