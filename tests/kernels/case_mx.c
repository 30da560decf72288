// SPDX-License-Identifier: MIT
/*
 * References of products in microscaling formats, from the text of the OCP
 * specification and of quantize_mx.
 */
#include "kernel_case.h"

/* Value of an E4M3 byte (no infinity, largest 448). */
static double from_e4m3(unsigned int byte)
{
	int e = byte >> 3 & 15, m = byte & 7;
	double v = e ? ldexp(8 + m, e - 10) : ldexp(m, -9);

	return byte & 0x80 ? -v : v;
}

static double from_e2m1(unsigned int nibble)
{
	int e = nibble >> 1 & 3, m = nibble & 1;
	double v = e ? ldexp(2 + m, e - 2) : m / 2.0;

	return nibble & 8 ? -v : v;
}

/* The nearest E4M3 number, ties to even. */
static double to_e4m3(double v)
{
	int e = v == 0 ? -6 : fmax(ilogb(v), -6);
	double step = ldexp(1, e - 3), r = rint(v / step) * step;

	return fmin(fmax(r, -448), 448);
}

/* Random packed data [rows, columns] and scales; out[4 * rows][columns]: what they mean. */
static double *packed(struct case_data *d, const char *name, const char *scale_name,
		      enum nki_dtype dtype, unsigned int rows, unsigned int columns, double *out)
{
	unsigned int bits = dtype == NKI_FLOAT4_E2M1FN_X4 ? 4 : 8;
	double *word = case_input(d, name, dtype, (size_t)rows * columns, 0, 1);
	double *scale = case_input(d, scale_name, NKI_UINT8, (size_t)rows / 8 * columns, 124, 131);

	for (size_t i = 0; i < (size_t)rows * columns; i++) {
		unsigned int p = i / columns, f = i % columns;
		double by = ldexp(1, (int)scale[p / 8 * columns + f] - 127);

		word[i] = 0;
		for (unsigned int q = 0; q < 4; q++) {
			unsigned int v = case_random(d) * (1 << bits);

			/* Not a number: the largest instead. */
			v = bits == 8 && (v & 0x7f) == 0x7f ? v - 1 : v;
			word[i] += ldexp(v, bits * q);
			out[(size_t)(4 * p + q) * columns + f] = by * (bits == 8 ? from_e4m3(v) : from_e2m1(v));
		}
	}
	return word;
}

/* What quantize_mx makes of b[rows][4 * columns], in out[4 * rows][columns]. */
static void quantized(const double *b, unsigned int rows, unsigned int columns, double *out)
{
	for (unsigned int g = 0; g < rows; g += 8) {
		for (unsigned int f = 0; f < columns; f++) {
			double amax = 0, by;

			for (unsigned int i = 0; i < 32; i++)
				amax = fmax(amax, fabs(b[(size_t)(g + i / 4) * 4 * columns + 4 * f + i % 4]));
			by = ldexp(1, ilogb(amax) - 7);
			for (unsigned int i = 0; i < 32; i++)
				out[(size_t)(4 * g + i) * columns + f] =
					by * to_e4m3(b[(size_t)(g + i / 4) * 4 * columns + 4 * f + i % 4] / by);
		}
	}
}

static void product(double *c, const double *a, const double *b, const unsigned int *s)
{
	unsigned int M = s[0], N = s[1], K = s[2];

	for (size_t i = 0; i < (size_t)M * N; i++) {
		c[i] = 0;
		for (unsigned int k = 0; k < K; k++)
			c[i] += a[(size_t)k * M + i / N] * b[(size_t)k * N + i % N];
	}
}

static double a[1 << 18], b[1 << 20];

static void mxfp8_data(struct case_data *d, const unsigned int *s)
{
	unsigned int M = s[0], N = s[1], K = s[2];
	double *raw;

	packed(d, "a", "a_scale", NKI_FLOAT8_E4M3FN_X4, K / 4, M, a);
	raw = case_input(d, "b", NKI_BFLOAT16, (size_t)K * N, -3, 3);
	quantized(raw, K / 4, N, b);
	product(case_output(d, "c", NKI_FLOAT32, (size_t)M * N), a, b, s);
}

static void mxfp4_data(struct case_data *d, const unsigned int *s)
{
	unsigned int M = s[0], N = s[1], K = s[2];

	packed(d, "a", "a_scale", NKI_FLOAT4_E2M1FN_X4, K / 4, M, a);
	packed(d, "b", "b_scale", NKI_FLOAT4_E2M1FN_X4, K / 4, N, b);
	product(case_output(d, "c", NKI_FLOAT32, (size_t)M * N), a, b, s);
}

static void mxfp8_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_gemm_mxfp8(k, s[0], s[1], s[2]);
}

static void mxfp4_build(struct nki_kernel *k, const unsigned int *s)
{
	kernel_gemm_mxfp4(k, s[0], s[1], s[2]);
}

/* Products are exact; a sum of K of them loses at most half a step of fp32 K times. */
const struct kernel_case case_gemm_mxfp8 = {
	.name = "gemm_mxfp8", .min_nc = 4, .build = mxfp8_build, .data = mxfp8_data,
	.small = { 64, 96, 1024 }, .large = { 128, 512, 2048 },
	.rtol = 1e-5, .atol = 4,
};

const struct kernel_case case_gemm_mxfp4 = {
	.name = "gemm_mxfp4", .min_nc = 4, .build = mxfp4_build, .data = mxfp4_data,
	.small = { 64, 96, 1024 }, .large = { 128, 512, 2048 },
	.rtol = 1e-5, .atol = 0.5,
};
