/* SPDX-License-Identifier: MIT */
/* Loops that the benchmarks compare the model's vector engines with. */
#ifndef BENCH_PLAIN_H
#define BENCH_PLAIN_H

#include <stddef.h>
#include <stdint.h>

enum plain_op { PLAIN_COPY, PLAIN_ADD, PLAIN_EXP, PLAIN_REDUCE, PLAIN_OPS };

/* @rows rows of @n elements: dst = op(a, b); a reduction gives one element of each row. */
void plain_f32(enum plain_op op, float *dst, const float *a, const float *b, size_t rows, size_t n);
/* The same in bf16, rounded to nearest even. */
void plain_bf16(enum plain_op op, uint16_t *dst, const uint16_t *a, const uint16_t *b, size_t rows,
		size_t n);

#endif /* BENCH_PLAIN_H */
