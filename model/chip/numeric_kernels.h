/* SPDX-License-Identifier: MIT */
/*
 * Bodies of the row functions, always inlined: numeric.c instantiates them once
 * per host instruction set. Element functions have no branches on data.
 */
#ifndef NEURON_CHIP_NUMERIC_KERNELS_H
#define NEURON_CHIP_NUMERIC_KERNELS_H

#include "numeric_math.h"
#include "neuron/isa.h"

#define F_NAN_BITS	0x7fc00000u

MATH_FN uint32_t f_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	return u;
}

MATH_FN float f_from(uint32_t u)
{
	float x;

	memcpy(&x, &u, 4);
	return x;
}

MATH_FN float f_canon(float x)
{
	return x != x ? f_from(F_NAN_BITS) : x;
}

/* --- elements to fp32 ----------------------------------------------------------- */

/*
 * Small float formats: @man mantissa bits, @bias of the exponent, @ieee: exponent of
 * all ones is infinity and NaN; else only the largest code is NaN.
 */
MATH_FN float f_expand(uint32_t h, int width, int man, int bias, bool ieee)
{
	uint32_t sign = (h >> (width - 1)) << 31;
	uint32_t mag = h & ((1u << (width - 1)) - 1);
	uint32_t top = ((1u << (width - 1)) - 1) & ~((1u << man) - 1);
	float scale = f_from((uint32_t)(127 - bias + 127) << 23);
	uint32_t u = f_bits(f_from(mag << (23 - man)) * scale);
	uint32_t special = (mag & ((1u << man) - 1)) ? F_NAN_BITS : 0x7f800000u;

	if (ieee)
		u = mag >= top ? special : u;
	else
		u = mag == top + (1u << man) - 1 ? F_NAN_BITS : u;
	return f_from(u | (u == F_NAN_BITS ? 0 : sign));
}

MATH_FN float f_from_bf16(uint16_t h)
{
	/* A NaN keeps its payload here and loses it when it is stored. */
	return f_from((uint32_t)h << 16);
}

MATH_FN float f_from_tf32(uint32_t u)
{
	uint32_t r = (u + 0xfffu + ((u >> 13) & 1)) & ~0x1fffu;

	return (u & 0x7fffffffu) > 0x7f800000u ? f_from(F_NAN_BITS) : f_from(r);
}

/* OCP MX scale: 2^(code - 127), the smallest of which is subnormal in fp32. */
MATH_FN float f_from_e8m0(uint8_t c)
{
	uint32_t u = c ? (uint32_t)c << 23 : 0x00400000u;

	return f_from(c == 0xff ? F_NAN_BITS : u);
}

#define f_from_fp16(h)	f_expand(h, 16, 10, 15, true)
#define f_from_e3m4(h)	f_expand(h, 8, 4, 3, true)
#define f_from_e4m3(h)	f_expand(h, 8, 3, 7, true)
#define f_from_e5m2(h)	f_expand(h, 8, 2, 15, true)
#define f_from_fn(h)	f_expand(h, 8, 3, 7, false)

/* --- fp32 to elements ----------------------------------------------------------- */

/* Round to nearest even. Subnormal results are rounded by adding a number whose ulp
 * is the format's smallest step. */
MATH_FN uint32_t f_shrink(float x, int width, int man, int bias, bool ieee)
{
	uint32_t u = f_bits(x), abs = u & 0x7fffffffu;
	uint32_t top = ((1u << (width - 1)) - 1) & ~((1u << man) - 1);
	uint32_t limit = ieee ? top : top + (1u << man) - 1;
	int shift = 23 - man;
	uint32_t tiny = (uint32_t)(127 - bias + 1) << 23;
	float magic = f_from((uint32_t)(127 + 1 - bias - man + 23) << 23);
	uint32_t sub = f_bits(f_from(abs) + magic) - f_bits(magic);
	uint32_t norm = (abs + ((1u << (shift - 1)) - 1) + ((abs >> shift) & 1) -
			 ((uint32_t)(127 - bias) << 23)) >> shift;
	uint32_t nan = ieee ? top | (1u << (man - 1)) : limit;
	uint32_t r = abs < tiny ? sub : norm;

	r = r > limit || abs >= 0x7f800000u ? limit : r;
	r |= (u >> 31) << (width - 1);
	if (!ieee)
		r = (r & limit) == limit ? limit : r;
	return abs > 0x7f800000u ? nan : r;
}

MATH_FN uint16_t f_to_bf16(float x)
{
	uint32_t u = f_bits(x);
	uint32_t r = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;

	return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0 : r;
}

MATH_FN float f_rint(float x)
{
	const float magic = 0x1p23f;
	float a = f_from(f_bits(x) & 0x7fffffffu);
	float r = f_from(f_bits((a + magic) - magic) | (f_bits(x) & 0x80000000u));

	return a < magic ? r : x;
}

MATH_FN int32_t f_to_int(float x, float lo, float hi)
{
	float r = f_rint(x);

	r = r > hi ? hi : r;
	r = r < lo ? lo : r;
	r = x != x ? 0.0f : r;
	return (int32_t)r;
}

MATH_FN int32_t f_to_i32(float x)
{
	/* 2147483520 is the largest fp32 below 2^31. */
	int32_t r = f_to_int(x, -0x1p31f, 2147483520.0f);

	return x >= 0x1p31f ? INT32_MAX : r;
}

MATH_FN uint32_t f_to_u32(float x)
{
	uint32_t low = f_to_int(x, 0.0f, 2147483520.0f);
	uint32_t high = f_to_int(x - 0x1p31f, 0.0f, 2147483520.0f) + 0x80000000u;
	uint32_t r = x >= 0x1p31f ? high : low;

	return x >= 0x1p32f ? UINT32_MAX : r;
}

/* The nearest power of two; of two, the even code. Not below 2^-127; else NaN. */
MATH_FN uint8_t f_to_e8m0(float x)
{
	uint32_t u = f_bits(x);
	uint32_t r = (u + 0x3fffffu + (u >> 23 & 1)) >> 23;

	/* Between 2^-127 and 2^-126 there are subnormals: half way is 3 * 2^-128. */
	r = u < 0x00800000u ? u > 0x00600000u : r;
	r = u == 0x80000000u ? 0 : r;
	return u > 0x80000000u || r > 0xff ? 0xff : r;
}

#define f_to_fp16(x)	f_shrink(x, 16, 10, 15, true)
#define f_to_e3m4(x)	f_shrink(x, 8, 4, 3, true)
#define f_to_e4m3(x)	f_shrink(x, 8, 3, 7, true)
#define f_to_e5m2(x)	f_shrink(x, 8, 2, 15, true)
#define f_to_fn(x)	f_shrink(x, 8, 3, 7, false)

/* --- rows of elements ------------------------------------------------------------ */

/* A contiguous row and a row with a step, the first of which vectorises. */
#define LOAD_ROW(ctype, expr)							\
	do {									\
		if (step == (ptrdiff_t)sizeof(ctype)) {				\
			for (i = 0; i < n; i++) {				\
				ctype v;					\
				memcpy(&v, s + i * sizeof(v), sizeof(v));	\
				dst[i] = (expr);				\
			}							\
		} else {							\
			for (i = 0; i < n; i++) {				\
				ctype v;					\
				memcpy(&v, s + (ptrdiff_t)i * step, sizeof(v));	\
				dst[i] = (expr);				\
			}							\
		}								\
	} while (0)

#define STORE_ROW(ctype, expr)							\
	do {									\
		if (step == (ptrdiff_t)sizeof(ctype)) {				\
			for (i = 0; i < n; i++) {				\
				float x = src[i];				\
				ctype v = (expr);				\
				memcpy(d + i * sizeof(v), &v, sizeof(v));	\
			}							\
		} else {							\
			for (i = 0; i < n; i++) {				\
				float x = src[i];				\
				ctype v = (expr);				\
				memcpy(d + (ptrdiff_t)i * step, &v, sizeof(v));	\
			}							\
		}								\
	} while (0)

MATH_FN void k_load(unsigned int dtype, float *restrict dst, const void *src, ptrdiff_t step, size_t n)
{
	const uint8_t *restrict s = src;
	size_t i;

	switch (dtype) {
	case NEURON_DTYPE_INT8:		LOAD_ROW(int8_t, v); break;
	case NEURON_DTYPE_UINT8:	LOAD_ROW(uint8_t, v); break;
	case NEURON_DTYPE_INT16:	LOAD_ROW(int16_t, v); break;
	case NEURON_DTYPE_UINT16:	LOAD_ROW(uint16_t, v); break;
	case NEURON_DTYPE_INT32:	LOAD_ROW(int32_t, (float)v); break;
	case NEURON_DTYPE_UINT32:	LOAD_ROW(uint32_t, (float)v); break;
	case NEURON_DTYPE_BFLOAT16:	LOAD_ROW(uint16_t, f_from_bf16(v)); break;
	case NEURON_DTYPE_FLOAT16:	LOAD_ROW(uint16_t, f_from_fp16(v)); break;
	case NEURON_DTYPE_FLOAT32:	LOAD_ROW(float, v); break;
	case NEURON_DTYPE_TFLOAT32:	LOAD_ROW(uint32_t, f_from_tf32(v)); break;
	case NEURON_DTYPE_FLOAT8_E3M4:	LOAD_ROW(uint8_t, f_from_e3m4(v)); break;
	case NEURON_DTYPE_FLOAT8_E4M3:	LOAD_ROW(uint8_t, f_from_e4m3(v)); break;
	case NEURON_DTYPE_FLOAT8_E5M2:	LOAD_ROW(uint8_t, f_from_e5m2(v)); break;
	case NEURON_DTYPE_FLOAT8_E4M3FN: LOAD_ROW(uint8_t, f_from_fn(v)); break;
	case NEURON_DTYPE_FLOAT8_E8M0FNU: LOAD_ROW(uint8_t, f_from_e8m0(v)); break;
	}
}

MATH_FN void k_store(unsigned int dtype, void *dst, ptrdiff_t step, const float *restrict src, size_t n)
{
	uint8_t *restrict d = dst;
	size_t i;

	switch (dtype) {
	case NEURON_DTYPE_INT8:		STORE_ROW(int8_t, f_to_int(x, -128.0f, 127.0f)); break;
	case NEURON_DTYPE_UINT8:	STORE_ROW(uint8_t, f_to_int(x, 0.0f, 255.0f)); break;
	case NEURON_DTYPE_INT16:	STORE_ROW(int16_t, f_to_int(x, -32768.0f, 32767.0f)); break;
	case NEURON_DTYPE_UINT16:	STORE_ROW(uint16_t, f_to_int(x, 0.0f, 65535.0f)); break;
	case NEURON_DTYPE_INT32:	STORE_ROW(int32_t, f_to_i32(x)); break;
	case NEURON_DTYPE_UINT32:	STORE_ROW(uint32_t, f_to_u32(x)); break;
	case NEURON_DTYPE_BFLOAT16:	STORE_ROW(uint16_t, f_to_bf16(x)); break;
	case NEURON_DTYPE_FLOAT16:	STORE_ROW(uint16_t, f_to_fp16(x)); break;
	case NEURON_DTYPE_FLOAT32:	STORE_ROW(float, f_canon(x)); break;
	case NEURON_DTYPE_TFLOAT32:	STORE_ROW(float, f_from_tf32(f_bits(x))); break;
	case NEURON_DTYPE_FLOAT8_E3M4:	STORE_ROW(uint8_t, f_to_e3m4(x)); break;
	case NEURON_DTYPE_FLOAT8_E4M3:	STORE_ROW(uint8_t, f_to_e4m3(x)); break;
	case NEURON_DTYPE_FLOAT8_E5M2:	STORE_ROW(uint8_t, f_to_e5m2(x)); break;
	case NEURON_DTYPE_FLOAT8_E4M3FN: STORE_ROW(uint8_t, f_to_fn(x)); break;
	case NEURON_DTYPE_FLOAT8_E8M0FNU: STORE_ROW(uint8_t, f_to_e8m0(x)); break;
	}
}

/* --- ALU -------------------------------------------------------------------------- */

/* power in double: |x|^y, sign of an odd integer power, 0 and NaN as C's pow(). */
MATH_FN double d_pow(double x, double y)
{
	double r = d_exp(y * d_log(d_abs(x)));
	double n = d_abs(y) < 0x1p50 ? d_rint(y) : y;
	double half = d_abs(y) < 0x1p50 ? d_rint(y * 0.5) * 2.0 : y;
	double odd = n == y && half != y ? -1.0 : 1.0;

	r = x == 0.0 ? (y < 0.0 ? D_INF : 0.0) : r;
	r = d_bits(x) >> 63 ? (n == y ? r * odd : x == 0.0 || x == -D_INF ? r : D_NAN) : r;
	r = y != y ? y : r;
	r = x == -1.0 && d_abs(y) == D_INF ? 1.0 : r;
	r = x == 1.0 || y == 0.0 ? 1.0 : r;
	return r;
}

MATH_FN float f_abs(float a)
{
	return f_from(f_bits(a) & 0x7fffffffu);
}

MATH_FN float f_alu(unsigned int op, float a, float b)
{
	switch (op) {
	case NEURON_ALU_BYPASS:		return a;
	case NEURON_ALU_ADD:		return a + b;
	case NEURON_ALU_SUBTRACT:	return a - b;
	case NEURON_ALU_MULTIPLY:	return a * b;
	/* Bit-wise or: no branch on data. */
	case NEURON_ALU_MAXIMUM:	return ((a > b) | (a != a)) ? a : b;
	case NEURON_ALU_MINIMUM:	return ((a < b) | (a != a)) ? a : b;
	case NEURON_ALU_ABS_MAX:	return ((f_abs(a) > f_abs(b)) | (a != a)) ? f_abs(a) : f_abs(b);
	case NEURON_ALU_ABS_MIN:	return ((f_abs(a) < f_abs(b)) | (a != a)) ? f_abs(a) : f_abs(b);
	case NEURON_ALU_EQUAL:		return a == b ? 1.0f : 0.0f;
	case NEURON_ALU_NOT_EQUAL:	return a != b ? 1.0f : 0.0f;
	case NEURON_ALU_GREATER_EQUAL:	return a >= b ? 1.0f : 0.0f;
	case NEURON_ALU_GREATER:	return a > b ? 1.0f : 0.0f;
	case NEURON_ALU_LESS_EQUAL:	return a <= b ? 1.0f : 0.0f;
	case NEURON_ALU_LESS:		return a < b ? 1.0f : 0.0f;
	case NEURON_ALU_LOGICAL_AND:	return ((a != 0.0f) & (b != 0.0f)) ? 1.0f : 0.0f;
	case NEURON_ALU_LOGICAL_OR:	return ((a != 0.0f) | (b != 0.0f)) ? 1.0f : 0.0f;
	case NEURON_ALU_LOGICAL_XOR:	return ((a != 0.0f) ^ (b != 0.0f)) ? 1.0f : 0.0f;
	case NEURON_ALU_POWER:		return (float)d_pow(a, b);
	case NEURON_ALU_ABS:		return f_from(f_bits(a) & 0x7fffffffu);
	case NEURON_ALU_SQUARE:		return a * a;
	case NEURON_ALU_RELU:		return ((a > 0.0f) | (a != a)) ? a : 0.0f;
	case NEURON_ALU_RSQRT:		return (float)(1.0 / __builtin_sqrt((double)a));
	case NEURON_ALU_RECIPROCAL:	return 1.0f / a;
	}
	return f_from(F_NAN_BITS);
}

#define FOR_ALL_ALU(X)								\
	X(BYPASS) X(ADD) X(SUBTRACT) X(MULTIPLY) X(MAXIMUM) X(MINIMUM)		\
	X(EQUAL) X(NOT_EQUAL) X(GREATER_EQUAL) X(GREATER) X(LESS_EQUAL) X(LESS)	\
	X(LOGICAL_AND) X(LOGICAL_OR) X(LOGICAL_XOR) X(POWER)			\
	X(ABS) X(SQUARE) X(RELU) X(RSQRT) X(RECIPROCAL) X(ABS_MAX) X(ABS_MIN)

/* One loop per operator, so that each is vectorised for itself. */
#define ALU_LOOP(name, x, y)							\
	case NEURON_ALU_##name:							\
		for (i = 0; i < n; i++)						\
			dst[i] = f_canon(f_alu(NEURON_ALU_##name, x, y));	\
		break;

MATH_FN void k_unary(unsigned int op, float *dst, const float *a, size_t n)
{
	size_t i;

	switch (op) {
#define X(name) ALU_LOOP(name, a[i], 0.0f)
	X(BYPASS) X(ABS) X(SQUARE) X(RELU) X(RSQRT) X(RECIPROCAL)
#undef X
	}
}

MATH_FN void k_vv(unsigned int op, float *dst, const float *a, const float *b, size_t n)
{
	size_t i;

	switch (op) {
#define X(name) ALU_LOOP(name, a[i], b[i])
	FOR_ALL_ALU(X)
#undef X
	}
}

MATH_FN void k_vs(unsigned int op, float *dst, const float *a, float s, size_t n)
{
	size_t i;

	switch (op) {
#define X(name) ALU_LOOP(name, a[i], s)
	FOR_ALL_ALU(X)
#undef X
	}
}

MATH_FN void k_sv(unsigned int op, float *dst, float s, const float *a, size_t n)
{
	size_t i;

	switch (op) {
#define X(name) ALU_LOOP(name, s, a[i])
	FOR_ALL_ALU(X)
#undef X
	}
}

/*
 * Order of a reduction: 16 running results, element i goes to number i mod 16; then
 * the upper half is folded onto the lower, 16 to 8 to 4 to 2 to 1, leaving out what
 * is not there. Subtraction goes from the first element to the last.
 */
#define REDUCE_LANES	16

#define REDUCE_OP(name)								\
	case NEURON_ALU_##name:							\
		for (j = 0; j < m; j++)						\
			lane[j] = a[j];						\
		for (i = REDUCE_LANES; i + REDUCE_LANES <= n; i += REDUCE_LANES)\
			for (j = 0; j < REDUCE_LANES; j++)			\
				lane[j] = f_alu(NEURON_ALU_##name, lane[j], a[i + j]);\
		for (j = 0; i + j < n; j++)					\
			lane[j] = f_alu(NEURON_ALU_##name, lane[j], a[i + j]);	\
		for (w = REDUCE_LANES / 2; w; w /= 2)				\
			for (j = 0; j < w && j + w < m; j++)			\
				lane[j] = f_alu(NEURON_ALU_##name, lane[j], lane[j + w]);\
		break;

MATH_FN float k_reduce(unsigned int op, const float *a, size_t n)
{
	size_t m = n < REDUCE_LANES ? n : REDUCE_LANES, i, j, w;
	float lane[REDUCE_LANES];

	lane[0] = f_from(F_NAN_BITS);
	switch (op) {
	REDUCE_OP(ADD)
	case NEURON_ALU_SUBTRACT:
		lane[0] = a[0];
		for (i = 1; i < n; i++)
			lane[0] -= a[i];
		break;
	REDUCE_OP(MULTIPLY)
	REDUCE_OP(MAXIMUM)
	REDUCE_OP(MINIMUM)
	REDUCE_OP(ABS_MAX)
	REDUCE_OP(ABS_MIN)
	REDUCE_OP(LOGICAL_AND)
	REDUCE_OP(LOGICAL_OR)
	REDUCE_OP(LOGICAL_XOR)
	}
	/* One element has not been through the operator yet. */
	if (op >= NEURON_ALU_LOGICAL_AND && op <= NEURON_ALU_LOGICAL_XOR)
		lane[0] = lane[0] != 0.0f ? 1.0f : 0.0f;
	if (op == NEURON_ALU_ABS_MAX || op == NEURON_ALU_ABS_MIN)
		lane[0] = f_abs(lane[0]);
	return f_canon(lane[0]);
}

MATH_FN void k_fma(float *restrict acc, float w, const float *restrict x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		acc[i] = __builtin_fmaf(w, x[i], acc[i]);
}

/* A block of a matrix product to PSUM, in place or added. */
MATH_FN void k_put(void *dst, size_t stride, const float *acc, unsigned int rows,
		   unsigned int cols, bool add)
{
	uint8_t *to = dst;
	unsigned int m, n;

	for (m = 0; m < rows; m++, to += stride, acc += NUM_NR) {
		float *d = (float *)to;

		if (add)
			for (n = 0; n < cols; n++)
				d[n] = f_canon(d[n] + acc[n]);
		else
			for (n = 0; n < cols; n++)
				d[n] = f_canon(acc[n]);
	}
}

/* --- activation functions --------------------------------------------------------- */

#define SQRT_2_PI	0.79788456080286535588	/* sqrt(2 / pi) */
#define SQRT_1_2	0.70710678118654752440
#define INV_SQRT_2_PI	0.39894228040143267794	/* 1 / sqrt(2 pi) */
#define TWO_SQRT_PI	1.12837916709551257390	/* 2 / sqrt(pi) */

MATH_FN double d_gelu_tanh(double x)
{
	/* 0.5 x (1 + tanh(u)) = x sigmoid(2 u), which does not cancel. */
	return x * d_sigmoid(2.0 * SQRT_2_PI * (x + 0.044715 * x * x * x));
}

MATH_FN double d_mish(double x)
{
	/* tanh(ln(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2) */
	double e = d_exp(x > 30.0 ? 30.0 : x);
	double q = e * (e + 2.0);

	return x * (q / (q + 2.0));
}

/* -inf times a factor that is 0 there: the limit is 0. */
MATH_FN double d_gate(double x, double y)
{
	return x == -D_INF ? 0.0 : y;
}

/*
 * Published: the table of sin covers [-pi, pi] and its end cubics go on outside, so that
 * sin(9.0) is about 27.65: that is the cubic Taylor polynomial at pi.
 */
MATH_FN double d_sin_table(double x)
{
	double d = d_abs(x) - 0x1.921fb54442d18p1;
	double far = d * (d * d * (1.0 / 6) - 1.0);

	return d > 0.0 ? (x < 0.0 ? -far : far) : d_sin(x);
}

MATH_FN double d_act(unsigned int fn, double x)
{
	double s;

	switch (fn) {
	case NEURON_ACTFN_COPY:		return x;
	case NEURON_ACTFN_SQUARE:	return x * x;
	case NEURON_ACTFN_SIGMOID:	return d_sigmoid(x);
	case NEURON_ACTFN_RELU:		return x > 0.0 ? x : x != x ? x : 0.0;
	case NEURON_ACTFN_GELU:		return d_gate(x, 0.5 * x * d_erfc(-x * SQRT_1_2));
	case NEURON_ACTFN_GELU_DX:
		return 0.5 * d_erfc(-x * SQRT_1_2) +
		       (d_abs(x) > 50.0 ? 0.0 : x * INV_SQRT_2_PI * d_exp(-0.5 * x * x));
	case NEURON_ACTFN_GELU_APPRX_TANH: return d_gate(x, d_gelu_tanh(x));
	case NEURON_ACTFN_GELU_APPRX_SIGMOID: return d_gate(x, x * d_sigmoid(1.702 * x));
	case NEURON_ACTFN_GELU_APPRX_SIGMOID_DX:
		s = d_sigmoid(1.702 * x);
		return s + (d_abs(x) > 400.0 ? 0.0 : 1.702 * x * s * d_sigmoid(-1.702 * x));
	case NEURON_ACTFN_SILU:		return d_gate(x, x * d_sigmoid(x));
	case NEURON_ACTFN_SILU_DX:
		s = d_sigmoid(x);
		return s + (d_abs(x) > 700.0 ? 0.0 : x * s * d_sigmoid(-x));
	case NEURON_ACTFN_TANH:		return d_tanh(x);
	case NEURON_ACTFN_SOFTPLUS:
		return (x > 0.0 ? x : 0.0) + d_log1p(d_exp(-d_abs(x)));
	case NEURON_ACTFN_MISH:		return d_gate(x, d_mish(x));
	case NEURON_ACTFN_ERF:		return d_erf(x);
	case NEURON_ACTFN_ERF_DX:	return TWO_SQRT_PI * d_exp(-x * x);
	case NEURON_ACTFN_EXP:		return d_exp(x);
	case NEURON_ACTFN_SIGN:		return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
	case NEURON_ACTFN_ABS:		return d_abs(x);
	case NEURON_ACTFN_LOG:		return d_log(x);
	case NEURON_ACTFN_SIN:		return d_sin_table(x);
	case NEURON_ACTFN_ARCTAN:	return d_atan(x);
	case NEURON_ACTFN_SQRT:		return __builtin_sqrt(x);
	case NEURON_ACTFN_RSQRT:	return 1.0 / __builtin_sqrt(x);
	case NEURON_ACTFN_RECIPROCAL:	return 1.0 / x;
	}
	return D_NAN;
}

#define FOR_ALL_ACT(X)								\
	X(COPY) X(SQUARE) X(SIGMOID) X(RELU) X(GELU) X(GELU_DX)			\
	X(GELU_APPRX_TANH) X(GELU_APPRX_SIGMOID) X(SILU) X(SILU_DX) X(TANH)	\
	X(SOFTPLUS) X(MISH) X(ERF) X(ERF_DX) X(EXP) X(SIGN) X(ABS) X(LOG)	\
	X(SIN) X(ARCTAN) X(SQRT) X(RSQRT) X(RECIPROCAL) X(GELU_APPRX_SIGMOID_DX)

MATH_FN void k_act(unsigned int fn, float *dst, const float *a, size_t n)
{
	size_t i;

	switch (fn) {
#define X(name)									\
	case NEURON_ACTFN_##name:						\
		for (i = 0; i < n; i++)						\
			dst[i] = f_canon((float)d_act(NEURON_ACTFN_##name, a[i]));\
		break;
	FOR_ALL_ACT(X)
#undef X
	}
}

#endif /* NEURON_CHIP_NUMERIC_KERNELS_H */
