// SPDX-License-Identifier: MIT
/* References of kernels that are mostly matrix products. */
#include "kernel_case.h"

/* Sum over @n of a[i * sa] * b[i * sb] */
static double dot(const double *a, size_t sa, const double *b, size_t sb, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i * sa] * b[i * sb];
	return sum;
}

/* --- gemm ----------------------------------------------------------------------- */

static void gemm_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_gemm(k, s[0], s[1], s[2]);
}

/* Of a large product one element of 61 is checked, in no pattern that a tile has. */
static void gemm_data(struct case_data *d, const unsigned int *s)
{
	unsigned int M = s[0], N = s[1], K = s[2];
	double *at = case_input(d, "at", NKI_BFLOAT16, (size_t)K * M, -1, 1);
	double *b = case_input(d, "b", NKI_BFLOAT16, (size_t)K * N, -1, 1);
	double *c = case_output(d, "c", NKI_FLOAT32, (size_t)M * N);
	size_t step = (size_t)M * N * K > 1u << 27 ? 61 : 1;

	for (size_t i = 0; i < (size_t)M * N; i += step)
		c[i] = dot(at + i / N, M, b + i % N, N, K);
}

/* Products of bf16 are exact in fp32; the sum of K of them has K roundings of 2^-24. */
const struct kernel_case case_gemm = {
	.name = "gemm", .min_nc = 2, .build = gemm_build, .data = gemm_data,
	.small = { 128, 512, 2304 }, .large = { 640, 1024, 16384 },
	.rtol = 1e-5, .atol = 2e-3,
};

/* --- attention ------------------------------------------------------------------- */

static void attention_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_attention(k, s[0], s[1]);
}

static void attention_row(double *o, const double *qt, const double *kt, const double *v,
			  unsigned int S, unsigned int D, unsigned int row)
{
	double max = -INFINITY, sum = 0, score[8192];

	for (unsigned int j = 0; j <= row; j++) {
		score[j] = dot(qt + row, S, kt + j, S, D) / sqrt(D);
		max = fmax(max, score[j]);
	}
	for (unsigned int j = 0; j <= row; j++)
		sum += score[j] = exp(score[j] - max);
	for (unsigned int i = 0; i < D; i++)
		o[(size_t)row * D + i] = dot(score, 1, v + i, D, row + 1) / sum;
}

/* Queries 0, 17, 34, ... of a long sequence, and the last. */
static void attention_data(struct case_data *d, const unsigned int *s)
{
	unsigned int S = s[0], D = s[1];
	double *qt = case_input(d, "qt", NKI_BFLOAT16, (size_t)D * S, -2, 2);
	double *kt = case_input(d, "kt", NKI_BFLOAT16, (size_t)D * S, -2, 2);
	double *v = case_input(d, "v", NKI_BFLOAT16, (size_t)S * D, -1, 1);
	double *o = case_output(d, "o", NKI_FLOAT32, (size_t)S * D);

	for (unsigned int row = 0; row < S; row += S > 1024 ? 17 : 1)
		attention_row(o, qt, kt, v, S, D, row);
	attention_row(o, qt, kt, v, S, D, S - 1);
}

/* The exponentials go through bf16 (2^-9 of each, of weights that add up to 1). */
const struct kernel_case case_attention = {
	.name = "attention", .min_nc = 2, .build = attention_build, .data = attention_data,
	.small = { 512, 64 }, .large = { 4096, 128 },
	.rtol = 4e-3, .atol = 4e-3,
};

/* --- mlp ------------------------------------------------------------------------- */

static double gelu(double x)
{
	return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

static void mlp_data(struct case_data *d, const unsigned int *s, bool gated)
{
	unsigned int D = s[0], F = s[1], T = 128;
	double range = 2 / sqrt(D);
	double *xt = case_input(d, "xt", NKI_BFLOAT16, (size_t)D * T, -2, 2);
	double *w1 = case_input(d, "w1", NKI_BFLOAT16, (size_t)D * F, -range, range);
	double *w3 = gated ? case_input(d, "w3", NKI_BFLOAT16, (size_t)D * F, -range, range) : NULL;
	double *w2 = case_input(d, "w2", NKI_BFLOAT16, (size_t)F * D, -range, range);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)T * D), h[4096];

	for (unsigned int t = 0; t < T; t += F > 256 ? 13 : 1) {
		for (unsigned int f = 0; f < F; f++) {
			double a = dot(xt + t, T, w1 + f, F, D);

			h[f] = w3 ? silu(a) * dot(xt + t, T, w3 + f, F, D) : gelu(a);
		}
		for (unsigned int i = 0; i < D; i++)
			y[t * D + i] = dot(h, 1, w2 + i, D, F);
	}
}

static void gelu_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_mlp(k, s[0], s[1], false);
}

static void gelu_data(struct case_data *d, const unsigned int *s)
{
	mlp_data(d, s, false);
}

static void swiglu_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_mlp(k, s[0], s[1], true);
}

static void swiglu_data(struct case_data *d, const unsigned int *s)
{
	mlp_data(d, s, true);
}

/* The hidden layer goes through bf16: 2^-9 of each of F terms of random sign. */
const struct kernel_case case_mlp_gelu = {
	.name = "mlp_gelu", .min_nc = 2, .build = gelu_build, .data = gelu_data,
	.small = { 512, 256 }, .large = { 1024, 4096 },
	.rtol = 1e-2, .atol = 2e-2,
};

const struct kernel_case case_mlp_swiglu = {
	.name = "mlp_swiglu", .min_nc = 2, .build = swiglu_build, .data = swiglu_data,
	.small = { 512, 256 }, .large = { 1024, 4096 },
	.rtol = 1e-2, .atol = 2e-2,
};

/* --- conv2d ------------------------------------------------------------------------ */

static void conv2d_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_conv2d(k, s[0], s[1], s[2], s[3]);
}

static void conv2d_data(struct case_data *d, const unsigned int *s)
{
	unsigned int C = s[0], H = s[1], W = s[2], O = s[3];
	double *x = case_input(d, "x", NKI_BFLOAT16, (size_t)C * H * W, -1, 1);
	double *w = case_input(d, "w", NKI_BFLOAT16, (size_t)C * 9 * O, -1, 1);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)O * (H - 2) * (W - 2));

	for (unsigned int o = 0; o < O; o++) {
		for (unsigned int i = 0; i < (H - 2) * (W - 2); i++) {
			unsigned int r = i / (W - 2), c = i % (W - 2);
			double sum = 0;

			for (unsigned int j = 0; j < 9; j++)
				sum += dot(x + (r + j / 3) * W + c + j % 3, H * W, w + j * O + o, 9 * O, C);
			y[o * (H - 2) * (W - 2) + i] = sum;
		}
	}
}

const struct kernel_case case_conv2d = {
	.name = "conv2d", .min_nc = 2, .build = conv2d_build, .data = conv2d_data,
	.small = { 32, 18, 20, 16 }, .large = { 128, 58, 58, 64 },
	.rtol = 1e-5, .atol = 1e-4,
};

/* --- mixture of experts ----------------------------------------------------------------- */

static void moe_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_moe_router(k, s[0], s[1], s[2]);
}

static void moe_token(const double *score, unsigned int E, const double *experts, unsigned int H,
		      double *y, double *chosen)
{
	unsigned int first = 0, second;
	double gate;

	for (unsigned int e = 1; e < E; e++)
		first = score[e] > score[first] ? e : first;
	second = first ? 0 : 1;
	for (unsigned int e = 0; e < E; e++)
		second = e != first && score[e] > score[second] ? e : second;
	gate = 1 / (1 + exp(score[second] - score[first]));
	chosen[0] = first;
	chosen[1] = second;
	for (unsigned int i = 0; i < H; i++)
		y[i] = gate * experts[(size_t)first * H + i] + (1 - gate) * experts[(size_t)second * H + i];
}

static void moe_data(struct case_data *d, const unsigned int *s)
{
	unsigned int D = s[0], E = s[1], H = s[2], T = 128;
	double *xt = case_input(d, "xt", NKI_BFLOAT16, (size_t)D * T, -1, 1);
	double *wr = case_input(d, "wr", NKI_BFLOAT16, (size_t)D * E, -1, 1);
	double *experts = case_input(d, "experts", NKI_FLOAT32, (size_t)E * H, -1, 1);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)T * H);
	double *chosen = case_output(d, "chosen", NKI_UINT32, T * 2), score[512];

	for (unsigned int t = 0; t < T; t++) {
		for (unsigned int e = 0; e < E; e++)
			score[e] = dot(xt + t, T, wr + e, E, D);
		moe_token(score, E, experts, H, y + (size_t)t * H, chosen + t * 2);
	}
}

/* The difference of two scores has the error of sums of D products. */
const struct kernel_case case_moe_router = {
	.name = "moe_router", .min_nc = 2, .build = moe_build, .data = moe_data,
	.small = { 128, 16, 40 }, .large = { 1024, 128, 2048 },
	.rtol = 1e-4, .atol = 1e-4,
};
