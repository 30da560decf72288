/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic of the NeuronCore: conversions, ALU operators, activation
 * functions and reductions, on rows of elements. Every function gives the same
 * bits on every host; the host's vector unit is only used where it cannot change
 * them. Results:
 *
 * - fp32 to a narrower float: round to nearest even; past the largest value
 *   infinity, or NaN in float8_e4m3fn, which has no infinity
 * - fp32 to float8_e8m0fnu, which has powers of two only: the nearest, the one with
 *   the even code when two are; 2^-127 below that; past 2^127 and negative: NaN
 * - fp32 to an integer: round to nearest even, saturate; NaN gives 0
 * - a NaN that arithmetic or a conversion produces is the positive quiet NaN
 * - maximum and minimum give NaN when an input is NaN
 */
#ifndef NEURON_CHIP_NUMERIC_H
#define NEURON_CHIP_NUMERIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron/isa.h"

/* Columns and rows of the block of a matrix product that num_ops.matmul() makes. */
#define NUM_NR	32
#define NUM_MR	8

struct num_dtype {
	const char *name;
	uint8_t bytes;		/* 0: no such type */
	bool is_float;
	bool is_signed;
};

/* By enum neuron_dtype; codes above 31 do not exist. */
extern const struct num_dtype num_dtypes[32];

static inline const struct num_dtype *num_dtype(unsigned int code)
{
	return &num_dtypes[code < 32 ? code : 0];
}

/* Four values in one element: only the MX instructions look inside. */
static inline bool num_packed(unsigned int code)
{
	return code >= NEURON_DTYPE_FLOAT8_E5M2_X4 && code <= NEURON_DTYPE_FLOAT4_E2M1FN_X4;
}

struct num_alu {
	const char *name;	/* NULL: no such operator */
	bool bits;		/* bit vector operator: integers, no cast */
	uint8_t arity;
	bool reduce;
};

extern const struct num_alu num_alus[64];

static inline const struct num_alu *num_alu(unsigned int code)
{
	return &num_alus[code < 64 ? code : 63];
}

/**
 * struct num_ops - row functions, one table per host instruction set
 * @load: @n elements of @dtype at @src, @step bytes apart, as fp32
 * @store: the other direction, rounds
 * @unary: dst = op(a)
 * @vv: dst = a op b
 * @vs: dst = a op s
 * @sv: dst = s op a
 * @act: dst = fn(a)
 * @reduce: op over @n > 0 elements, in the order described at num_reduce()
 * @matmul: acc[NUM_MR][NUM_NR] = sum over k of w[k][NUM_MR] x[k * ldx ..][NUM_NR]: each
 *	element by fused multiply-add from 0 in increasing k
 * @fma: acc[i] = fused multiply-add of @w, x[i] and acc[i]
 * @put: @rows x @cols of such a block to fp32 memory, @stride bytes from row to row;
 *	@add: added to what is there
 *
 * @dst may be @a or @b.
 */
struct num_ops {
	const char *name;
	void (*load)(unsigned int dtype, float *dst, const void *src, ptrdiff_t step, size_t n);
	void (*store)(unsigned int dtype, void *dst, ptrdiff_t step, const float *src, size_t n);
	void (*unary)(unsigned int op, float *dst, const float *a, size_t n);
	void (*vv)(unsigned int op, float *dst, const float *a, const float *b, size_t n);
	void (*vs)(unsigned int op, float *dst, const float *a, float s, size_t n);
	void (*sv)(unsigned int op, float *dst, float s, const float *a, size_t n);
	void (*act)(unsigned int fn, float *dst, const float *a, size_t n);
	float (*reduce)(unsigned int op, const float *a, size_t n);
	void (*matmul)(float *acc, const float *w, const float *x, size_t ldx, unsigned int k);
	void (*fma)(float *acc, float w, const float *x, size_t n);
	void (*put)(void *dst, size_t stride, const float *acc, unsigned int rows,
		    unsigned int cols, bool add);
};

/* Fastest table of this host. */
const struct num_ops *num_ops(void);
/* The i-th table this host can run, for tests; NULL past the last. */
const struct num_ops *num_ops_variant(unsigned int i);

/* One element of @dtype as fp32 and back; for scalars. */
float num_get(unsigned int dtype, const void *src);
void num_put(unsigned int dtype, void *dst, float value);

/**
 * num_unpack() - values of packed MX elements as fp32
 * @ops: row functions
 * @dtype: packed type
 * @dst: value q of the elements goes to @dst[q], @n of them
 * @src: elements, one after the other
 * @n: their number
 * @scratch: @n bytes
 */
void num_unpack(const struct num_ops *ops, unsigned int dtype, float *const dst[4],
		const void *src, size_t n, uint8_t *scratch);

/* Stochastic rounding: rounds up with the probability that the lost bits say. */
void num_store_sr(unsigned int dtype, void *dst, ptrdiff_t step, const float *src, size_t n,
		  uint64_t *prng);

/* Bit vector operators on elements of 1, 2 or 4 bytes, zero-extended. */
uint32_t num_bits_op(unsigned int op, uint32_t a, uint32_t b, unsigned int bytes);

/* splitmix64 */
uint64_t num_random(uint64_t *state);

/* Activation functions in double; internal, shared with tests. */
double num_act_double(unsigned int fn, double x);

#endif /* NEURON_CHIP_NUMERIC_H */
