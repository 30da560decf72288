// SPDX-License-Identifier: MIT
/* References of kernels that work row by row or element by element. */
#include "kernel_case.h"
#include "nrt/nrt_ext.h"

/* --- softmax ------------------------------------------------------------------------ */

static void softmax_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_softmax(k, s[0], s[1]);
}

static void softmax_data(struct case_data *d, const unsigned int *s)
{
	unsigned int N = s[0];
	double *x = case_input(d, "x", NKI_FLOAT32, (size_t)128 * N, -20, 20);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)128 * N);

	for (size_t row = 0; row < 128; row++, x += N, y += N) {
		double max = -INFINITY, sum = 0;

		for (unsigned int i = 0; i < N; i++)
			max = fmax(max, x[i]);
		for (unsigned int i = 0; i < N; i++)
			sum += exp(x[i] - max);
		for (unsigned int i = 0; i < N; i++)
			y[i] = exp(x[i] - max) / sum;
	}
}

/* Exponents of up to 40 have an error of 40 * 2^-24 before exp. */
const struct kernel_case case_softmax = {
	.name = "softmax", .min_nc = 2, .build = softmax_build, .data = softmax_data,
	.small = { 256, 64 }, .large = { 1u << 16, 4096 },
	.rtol = 2e-5, .atol = 1e-12,
};

/* --- normalisation -------------------------------------------------------------------- */

static void layernorm_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_layernorm(k, s[0], s[1]);
}

static void layernorm_data(struct case_data *d, const unsigned int *s)
{
	unsigned int R = s[0], D = s[1];
	double *x = case_input(d, "x", NKI_FLOAT32, (size_t)R * D, -3, 5);
	double *gamma = case_input(d, "gamma", NKI_FLOAT32, D, 0.5, 1.5);
	double *beta = case_input(d, "beta", NKI_FLOAT32, D, -1, 1);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)R * D);

	for (unsigned int row = 0; row < R; row++, x += D, y += D) {
		double mean = 0, var = 0;

		for (unsigned int i = 0; i < D; i++)
			mean += x[i] / D;
		for (unsigned int i = 0; i < D; i++)
			var += (x[i] - mean) * (x[i] - mean) / D;
		for (unsigned int i = 0; i < D; i++)
			y[i] = (x[i] - mean) / sqrt(var + 1e-5) * gamma[i] + beta[i];
	}
}

const struct kernel_case case_layernorm = {
	.name = "layernorm", .min_nc = 2, .build = layernorm_build, .data = layernorm_data,
	.small = { 256, 96 }, .large = { 1024, 4096 },
	.rtol = 1e-5, .atol = 1e-5,
};

static void rmsnorm_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_rmsnorm(k, s[0], s[1]);
}

static void rmsnorm_data(struct case_data *d, const unsigned int *s)
{
	unsigned int R = s[0], D = s[1];
	double *x = case_input(d, "x", NKI_FLOAT32, (size_t)R * D, -3, 5);
	double *gamma = case_input(d, "gamma", NKI_FLOAT32, D, 0.5, 1.5);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)R * D);

	for (unsigned int row = 0; row < R; row++, x += D, y += D) {
		double square = 0;

		for (unsigned int i = 0; i < D; i++)
			square += x[i] * x[i] / D;
		for (unsigned int i = 0; i < D; i++)
			y[i] = x[i] / sqrt(square + 1e-5) * gamma[i];
	}
}

const struct kernel_case case_rmsnorm = {
	.name = "rmsnorm", .min_nc = 2, .build = rmsnorm_build, .data = rmsnorm_data,
	.small = { 256, 96 }, .large = { 1024, 4096 },
	.rtol = 1e-5, .atol = 1e-6,
};

/* --- rotary embedding -------------------------------------------------------------------- */

static void rope_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_rope(k, s[0], s[1]);
}

static void rope_data(struct case_data *d, const unsigned int *s)
{
	unsigned int S = s[0], D = s[1], half = D / 2;
	double *x = case_input(d, "x", NKI_FLOAT32, (size_t)S * D, -2, 2);
	double *c = case_input(d, "cos", NKI_FLOAT32, (size_t)S * half, -1, 1);
	double *sn = case_input(d, "sin", NKI_FLOAT32, (size_t)S * half, -1, 1);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)S * D);

	for (size_t p = 0; p < S; p++) {
		for (unsigned int i = 0; i < half; i++) {
			double angle = p * pow(10000, -2.0 * i / D);
			size_t at = p * half + i, lo = p * D + i, hi = lo + half;

			c[at] = (float)cos(angle);
			sn[at] = (float)sin(angle);
			y[lo] = x[lo] * c[at] - x[hi] * sn[at];
			y[hi] = x[hi] * c[at] + x[lo] * sn[at];
		}
	}
}

const struct kernel_case case_rope = {
	.name = "rope", .min_nc = 2, .build = rope_build, .data = rope_data,
	.small = { 256, 64 }, .large = { 4096, 128 },
	.rtol = 1e-6, .atol = 1e-6,
};

/* --- embedding ----------------------------------------------------------------------------- */

static void embedding_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_embedding(k, s[0], s[1], s[2]);
}

static void embedding_data(struct case_data *d, const unsigned int *s)
{
	unsigned int T = s[0], V = s[1], D = s[2];
	double *ids = case_input(d, "ids", NKI_INT32, T, 0, V);
	double *table = case_input(d, "table", NKI_FLOAT32, (size_t)V * D, -1, 1);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)T * D);

	for (unsigned int t = 0; t < T; t++)
		for (unsigned int i = 0; i < D; i++)
			y[t * D + i] = table[(size_t)ids[t] * D + i];
}

const struct kernel_case case_embedding = {
	.name = "embedding", .min_nc = 2, .build = embedding_build, .data = embedding_data,
	.small = { 256, 100, 32 }, .large = { 2048, 8192, 512 },
};

/* --- adam ------------------------------------------------------------------------------------ */

static const struct adam opt = { .lr = 1e-2f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-6f, .step = 3 };

static void adam_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_adam(k, s[0], s[1], opt);
}

static void adam_data(struct case_data *d, const unsigned int *s)
{
	size_t n = (size_t)s[0] * s[1];
	double b1 = opt.beta1, b2 = opt.beta2;
	double *p = case_input(d, "p", NKI_FLOAT32, n, -1, 1);
	double *g = case_input(d, "g", NKI_FLOAT32, n, -1, 1);
	double *m = case_input(d, "m", NKI_FLOAT32, n, -0.5, 0.5);
	double *v = case_input(d, "v", NKI_FLOAT32, n, 0.1, 0.5);
	double *p_new = case_output(d, "p_new", NKI_FLOAT32, n);
	double *m_new = case_output(d, "m_new", NKI_FLOAT32, n);
	double *v_new = case_output(d, "v_new", NKI_FLOAT32, n);

	for (size_t i = 0; i < n; i++) {
		m_new[i] = b1 * m[i] + (1 - b1) * g[i];
		v_new[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
		p_new[i] = p[i] - opt.lr * (m_new[i] / (1 - pow(b1, opt.step))) /
				  (sqrt(v_new[i] / (1 - pow(b2, opt.step))) + opt.eps);
	}
}

const struct kernel_case case_adam = {
	.name = "adam", .min_nc = 2, .build = adam_build, .data = adam_data,
	.small = { 256, 48 }, .large = { 1024, 2048 },
	.rtol = 1e-5, .atol = 1e-6,
};

/* --- stochastic rounding ---------------------------------------------------------------------- */

static void sr_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_sr_update(k, s[0], s[1]);
}

/* Weights in [1, 2), where bf16 has steps of 2^-7; updates of less than half of one. */
static void sr_data(struct case_data *d, const unsigned int *s)
{
	size_t n = (size_t)s[0] * s[1];
	double *w = case_input(d, "w", NKI_BFLOAT16, n, 1, 1.99);
	double *u = case_input(d, "u", NKI_FLOAT32, n, 0, 0.003);
	double *w_new = case_output(d, "w_new", NKI_BFLOAT16, n);

	for (size_t i = 0; i < n; i++)
		w_new[i] = w[i] + u[i];
}

/*
 * Each result is a neighbour of the sum, and all together lean to no side: the error
 * of one has a deviation of at most half a step, and six times that of the sum of
 * them is not exceeded by chance.
 */
static bool sr_check(const struct case_data *d, double *const *got)
{
	const struct case_tensor *t = &d->tensor[2];
	double step = 1.0 / 128, error = 0;

	for (size_t i = 0; i < t->n; i++) {
		double e = got[2][i] - t->value[i];

		if (!(fabs(e) < step) || got[2][i] * 128 != floor(got[2][i] * 128))
			return false;
		error += e;
	}
	return fabs(error) <= 6 * sqrt(t->n) * step / 2;
}

const struct kernel_case case_sr_update = {
	.name = "sr_update", .min_nc = 2, .build = sr_build, .data = sr_data,
	.small = { 256, 64 }, .large = { 1024, 2048 },
	.check = sr_check, .flags = NRTX_STOCHASTIC_ROUNDING,
};

/* --- mamba ---------------------------------------------------------------------------------- */

static void mamba_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_mamba(k, s[0], s[1], s[2]);
}

static void mamba_data(struct case_data *d, const unsigned int *s)
{
	unsigned int channels = s[0], states = s[1], L = s[2];
	double *delta = case_input(d, "delta", NKI_FLOAT32, (size_t)channels * L, 0.001, 0.5);
	double *u = case_input(d, "u", NKI_FLOAT32, (size_t)channels * L, -1, 1);
	double *A = case_input(d, "A", NKI_FLOAT32, (size_t)channels * states, -4, -0.1);
	double *B = case_input(d, "B", NKI_FLOAT32, (size_t)states * L, -1, 1);
	double *C = case_input(d, "C", NKI_FLOAT32, (size_t)states * L, -1, 1);
	double *y = case_output(d, "y", NKI_FLOAT32, (size_t)channels * L);

	for (size_t c = 0; c < channels; c++) {
		for (unsigned int t = 0; t < L; t++)
			y[c * L + t] = 0;
		for (unsigned int n = 0; n < states; n++) {
			double h = 0;

			for (unsigned int t = 0; t < L; t++) {
				size_t at = c * L + t;

				h = exp(delta[at] * A[c * states + n]) * h + delta[at] * u[at] * B[n * L + t];
				y[at] += h * C[n * L + t];
			}
		}
	}
}

const struct kernel_case case_mamba = {
	.name = "mamba", .min_nc = 2, .build = mamba_build, .data = mamba_data,
	.small = { 128, 3, 64 }, .large = { 512, 16, 1024 },
	.rtol = 1e-5, .atol = 1e-5,
};

/* --- argmax ----------------------------------------------------------------------------------- */

static void argmax_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_argmax(k, s[0]);
}

/* Whole numbers, so that the largest is there more than once. */
static void argmax_data(struct case_data *d, const unsigned int *s)
{
	unsigned int V = s[0], best;
	double *logits = case_input(d, "logits", NKI_FLOAT32, (size_t)128 * V, -9, 9);
	double *token = case_output(d, "token", NKI_UINT32, 128);

	for (unsigned int row = 0; row < 128; row++, logits += V) {
		for (unsigned int i = 0; i < V; i++)
			logits[i] = floor(logits[i] * V / 16);
		for (unsigned int i = best = 0; i < V; i++)
			best = logits[i] > logits[best] ? i : best;
		token[row] = best;
	}
}

const struct kernel_case case_argmax = {
	.name = "argmax", .min_nc = 2, .build = argmax_build, .data = argmax_data,
	.small = { 8200 }, .large = { 50257 },
};
