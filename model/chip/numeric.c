// SPDX-License-Identifier: MIT
/*
 * Row functions: one set per host instruction set, all with the same results.
 */
/*
 * Nobody looks at floating-point exception flags. Without this GCC keeps selects
 * with comparisons as branches and loops as scalar ones; results do not change.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math,no-math-errno")
#endif

#include <math.h>
#include <stdlib.h>

#include "numeric.h"
#include "numeric_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define TARGET_AVX2 __attribute__((target("avx2,fma")))
#endif
#define TARGET_BASE

const struct num_dtype num_dtypes[32] = {
#define NEURON_DTYPE(code, name, text, bytes)					\
	[code] = { text, bytes,							\
		   (code) == 0x06 || (code) == 0x07 || (code) >= 0x0a,		\
		   ((code) & 1) == 0 || (code) >= 0x06 },
#include "neuron/isa.def"
};

#define CLS_A false
#define CLS_B true
const struct num_alu num_alus[64] = {
#define NEURON_ALU(code, name, text, cls, arity, reduce)			\
	[code] = { text, CLS_##cls, arity, reduce },
#include "neuron/isa.def"
};

static void matmul_base(float *acc, const float *w, const float *x, size_t ldx,
			 unsigned int k)
{
	unsigned int i, m, n;

	for (i = 0; i < NUM_MR * NUM_NR; i++)
		acc[i] = 0.0f;
	for (i = 0; i < k; i++, w += NUM_MR, x += ldx)
		for (m = 0; m < NUM_MR; m++)
			for (n = 0; n < NUM_NR; n++)
				acc[m * NUM_NR + n] = fmaf(w[m], x[n], acc[m * NUM_NR + n]);
}

#if defined(__x86_64__)
TARGET_AVX512
static void matmul_avx512(float *acc, const float *w, const float *x, size_t ldx,
			 unsigned int k)
{
	__m512 c[NUM_MR][2];
	unsigned int i, m;

#pragma GCC unroll 8
	for (m = 0; m < NUM_MR; m++)
		c[m][0] = c[m][1] = _mm512_setzero_ps();
	for (i = 0; i < k; i++, w += NUM_MR, x += ldx) {
		__m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);

#pragma GCC unroll 8
		for (m = 0; m < NUM_MR; m++) {
			__m512 b = _mm512_set1_ps(w[m]);

			c[m][0] = _mm512_fmadd_ps(b, x0, c[m][0]);
			c[m][1] = _mm512_fmadd_ps(b, x1, c[m][1]);
		}
	}
#pragma GCC unroll 8
	for (m = 0; m < NUM_MR; m++) {
		_mm512_storeu_ps(acc + m * NUM_NR, c[m][0]);
		_mm512_storeu_ps(acc + m * NUM_NR + 16, c[m][1]);
	}
}

/* A quarter of the panel: 4 rows of 16 columns fit 16 registers. */
TARGET_AVX2
static void matmul_avx2_part(float *acc, const float *w, const float *x, size_t ldx,
			 unsigned int k)
{
	__m256 c[4][2];
	unsigned int i, m;

#pragma GCC unroll 4
	for (m = 0; m < 4; m++)
		c[m][0] = c[m][1] = _mm256_setzero_ps();
	for (i = 0; i < k; i++, w += NUM_MR, x += ldx) {
		__m256 x0 = _mm256_loadu_ps(x), x1 = _mm256_loadu_ps(x + 8);

#pragma GCC unroll 4
		for (m = 0; m < 4; m++) {
			__m256 b = _mm256_set1_ps(w[m]);

			c[m][0] = _mm256_fmadd_ps(b, x0, c[m][0]);
			c[m][1] = _mm256_fmadd_ps(b, x1, c[m][1]);
		}
	}
#pragma GCC unroll 4
	for (m = 0; m < 4; m++) {
		_mm256_storeu_ps(acc + m * NUM_NR, c[m][0]);
		_mm256_storeu_ps(acc + m * NUM_NR + 8, c[m][1]);
	}
}

TARGET_AVX2
static void matmul_avx2(float *acc, const float *w, const float *x, size_t ldx,
			 unsigned int k)
{
	unsigned int m, n;

	for (m = 0; m < NUM_MR; m += 4)
		for (n = 0; n < NUM_NR; n += 16)
			matmul_avx2_part(acc + m * NUM_NR + n, w + m, x + n, ldx, k);
}
#endif

#define INSTANCE(isa, TARGET)							\
TARGET static void load_##isa(unsigned int dtype, float *dst, const void *src,	\
			      ptrdiff_t step, size_t n)				\
{ k_load(dtype, dst, src, step, n); }						\
TARGET static void store_##isa(unsigned int dtype, void *dst, ptrdiff_t step,	\
			       const float *src, size_t n)			\
{ k_store(dtype, dst, step, src, n); }						\
TARGET static void unary_##isa(unsigned int op, float *dst, const float *a, size_t n) \
{ k_unary(op, dst, a, n); }							\
TARGET static void vv_##isa(unsigned int op, float *dst, const float *a,	\
			    const float *b, size_t n)				\
{ k_vv(op, dst, a, b, n); }							\
TARGET static void vs_##isa(unsigned int op, float *dst, const float *a, float s, size_t n) \
{ k_vs(op, dst, a, s, n); }							\
TARGET static void sv_##isa(unsigned int op, float *dst, float s, const float *a, size_t n) \
{ k_sv(op, dst, s, a, n); }							\
TARGET static void act_##isa(unsigned int fn, float *dst, const float *a, size_t n) \
{ k_act(fn, dst, a, n); }							\
TARGET static float reduce_##isa(unsigned int op, const float *a, size_t n)	\
{ return k_reduce(op, a, n); }							\
TARGET static void fma_##isa(float *acc, float w, const float *x, size_t n)	\
{ k_fma(acc, w, x, n); }							\
TARGET static void put_##isa(void *dst, size_t stride, const float *acc,	\
			     unsigned int rows, unsigned int cols, bool add)	\
{ k_put(dst, stride, acc, rows, cols, add); }					\
static const struct num_ops ops_##isa = {					\
	#isa, load_##isa, store_##isa, unary_##isa, vv_##isa, vs_##isa,		\
	sv_##isa, act_##isa, reduce_##isa, matmul_##isa, fma_##isa, put_##isa,		\
};

INSTANCE(base, TARGET_BASE)
#if defined(__x86_64__)
INSTANCE(avx2, TARGET_AVX2)
INSTANCE(avx512, TARGET_AVX512)
#endif

const struct num_ops *num_ops_variant(unsigned int i)
{
	const struct num_ops *table[4] = { NULL };
	unsigned int n = 0;

#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		table[n++] = &ops_avx512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		table[n++] = &ops_avx2;
#endif
	table[n++] = &ops_base;
	return i < n ? table[i] : NULL;
}

const struct num_ops *num_ops(void)
{
	static const struct num_ops *_Atomic best;
	const struct num_ops *ops = best;

	if (!ops)
		best = ops = num_ops_variant(0);
	return ops;
}

float num_get(unsigned int dtype, const void *src)
{
	float x = 0.0f;

	k_load(dtype, &x, src, 0, 1);
	return x;
}

void num_put(unsigned int dtype, void *dst, float value)
{
	k_store(dtype, dst, 0, &value, 1);
}

/* Codes of E2M1 are those of E4M3FN with fewer bits: sign, then 48 + 4 c, or 48 c. */
static uint8_t e2m1_code(unsigned int c)
{
	unsigned int mag = c & 7;

	return (c & 8) << 4 | (mag < 2 ? 48 * mag : 48 + 4 * mag);
}

void num_unpack(const struct num_ops *ops, unsigned int dtype, float *const dst[4],
		const void *src, size_t n, uint8_t *scratch)
{
	bool nibbles = dtype == NEURON_DTYPE_FLOAT4_E2M1FN_X4;
	unsigned int to = dtype == NEURON_DTYPE_FLOAT8_E5M2_X4 ? NEURON_DTYPE_FLOAT8_E5M2 :
								 NEURON_DTYPE_FLOAT8_E4M3FN;
	const uint8_t *s = src;
	unsigned int q;
	size_t i;

	for (q = 0; q < 4; q++) {
		for (i = 0; i < n && nibbles; i++)
			scratch[i] = e2m1_code(s[2 * i + q / 2] >> (4 * (q % 2)) & 15);
		for (i = 0; i < n && !nibbles; i++)
			scratch[i] = s[4 * i + q];
		ops->load(to, dst[q], scratch, 1, n);
	}
}

double num_act_double(unsigned int fn, double x)
{
	return d_act(fn, x);
}

uint64_t num_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Mantissa bits and smallest exponent of the types that are rounded stochastically. */
static bool sr_format(unsigned int dtype, int *man, int *emin)
{
	switch (dtype) {
	case NEURON_DTYPE_BFLOAT16:	*man = 7; *emin = -126; return true;
	case NEURON_DTYPE_FLOAT16:	*man = 10; *emin = -14; return true;
	case NEURON_DTYPE_TFLOAT32:	*man = 10; *emin = -126; return true;
	case NEURON_DTYPE_FLOAT8_E3M4:	*man = 4; *emin = -2; return true;
	case NEURON_DTYPE_FLOAT8_E4M3:	*man = 3; *emin = -6; return true;
	case NEURON_DTYPE_FLOAT8_E4M3FN: *man = 3; *emin = -6; return true;
	case NEURON_DTYPE_FLOAT8_E5M2:	*man = 2; *emin = -14; return true;
	}
	return false;
}

void num_store_sr(unsigned int dtype, void *dst, ptrdiff_t step, const float *src, size_t n,
		  uint64_t *prng)
{
	uint8_t *d = dst;
	int man, emin, e;
	size_t i;

	if (!sr_format(dtype, &man, &emin)) {
		k_store(dtype, dst, step, src, n);
		return;
	}
	for (i = 0; i < n; i++, d += step) {
		float x = src[i];

		if (isfinite(x) && x != 0.0f) {
			double q;

			frexp(x, &e);
			e = e - 1 < emin ? emin : e - 1;
			q = ldexp(1.0, e - man);
			/* Exact: x / q has at most 24 significant bits. */
			x = floor(x / q + (num_random(prng) >> 11) * 0x1p-53) * q;
		}
		k_store(dtype, d, step, &x, 1);
	}
}

uint32_t num_bits_op(unsigned int op, uint32_t a, uint32_t b, unsigned int bytes)
{
	uint32_t mask = bytes == 4 ? UINT32_MAX : (1u << (8 * bytes)) - 1;

	switch (op) {
	case NEURON_ALU_INVERT:		return ~a & mask;
	case NEURON_ALU_BITWISE_AND:	return a & b;
	case NEURON_ALU_BITWISE_OR:	return (a | b) & mask;
	case NEURON_ALU_BITWISE_XOR:	return (a ^ b) & mask;
	case NEURON_ALU_LEFT_SHIFT:	return b < 8 * bytes ? (a << b) & mask : 0;
	case NEURON_ALU_RIGHT_SHIFT:	return b < 8 * bytes ? (a & mask) >> b : 0;
	}
	return a & mask;
}
