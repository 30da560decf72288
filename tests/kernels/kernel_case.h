/* SPDX-License-Identifier: MIT */
/*
 * A kernel of examples/kernels with its data and its reference: fp64 code written
 * from the formula that the kernel is named after.
 */
#ifndef KERNEL_CASE_H
#define KERNEL_CASE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels.h"

enum { CASE_TENSORS = 10, CASE_SHAPE = 4 };

/**
 * struct case_tensor - a tensor of the program
 * @value: of an input: what the chip gets, in fp64 (already rounded to @dtype); of an
 *	output: what it must give; NAN: any value
 */
struct case_tensor {
	const char *name;
	enum nki_dtype dtype;
	size_t n;
	bool output;
	double *value;
};

struct case_data {
	struct case_tensor tensor[CASE_TENSORS];
	unsigned int count;
	uint32_t seed;
};

/* An input of values in [lo, hi), rounded to @dtype (whole numbers for an integer type). */
double *case_input(struct case_data *d, const char *name, enum nki_dtype dtype, size_t n,
		   double lo, double hi);
/* The next pseudo-random number in [0, 1). */
double case_random(struct case_data *d);
/* An output; all NAN. */
double *case_output(struct case_data *d, const char *name, enum nki_dtype dtype, size_t n);

/**
 * struct kernel_case - what the tests run
 * @min_nc: first NeuronCore version with all its instructions
 * @build: the program
 * @data: makes inputs and what is expected
 * @small: shape for the tests that run it hundreds of times
 * @large: shape of realistic size
 * @rtol, @atol: |got - expected| <= rtol * |expected| + atol
 * @check: instead of comparing: true when the outputs @got are right
 * @flags: NRTX_* beside strict mode
 */
struct kernel_case {
	const char *name;
	unsigned int min_nc;
	void (*build)(struct nki_kernel *k, const unsigned int *shape);
	void (*data)(struct case_data *d, const unsigned int *shape);
	unsigned int small[CASE_SHAPE], large[CASE_SHAPE];
	double rtol, atol;
	bool (*check)(const struct case_data *d, double *const *got);
	uint32_t flags;
};

/* Every case, by the name of its variable case_NAME. */
#define KERNEL_CASES(X) \
	X(gemm) X(softmax) X(layernorm) X(rmsnorm) X(attention) X(rope) X(mlp_gelu) X(mlp_swiglu) \
	X(embedding) X(conv2d) X(adam) X(sr_update) X(mamba) \
	X(moe_router) X(argmax) X(gemm_mxfp8) X(gemm_mxfp4)

#define DECLARE_CASE(name) extern const struct kernel_case case_##name;
KERNEL_CASES(DECLARE_CASE)

#endif /* KERNEL_CASE_H */
