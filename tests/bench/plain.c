// SPDX-License-Identifier: MIT
/*
 * Plain loops, compiled with -O3 -ffast-math: the compiler makes them vectors (expf()
 * those of the C library) for the widest instructions that this CPU has.
 */
#include <math.h>
#include <string.h>

#include "plain.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define BEST __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define BEST
#endif

static inline float up(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static inline uint16_t down(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#define SAME(x) (x)
#define LOOPS(type, get, put)								\
	size_t i, r;									\
											\
	for (r = 0; r < rows; r++, a += n, b += n) {					\
		type *restrict d = dst + (op == PLAIN_REDUCE ? r : r * n);		\
		float sum = 0;								\
											\
		switch (op) {								\
		case PLAIN_COPY:							\
			for (i = 0; i < n; i++)						\
				d[i] = a[i];						\
			break;								\
		case PLAIN_ADD:								\
			for (i = 0; i < n; i++)						\
				d[i] = put(get(a[i]) + get(b[i]));			\
			break;								\
		case PLAIN_EXP:								\
			for (i = 0; i < n; i++)						\
				d[i] = put(expf(get(a[i])));				\
			break;								\
		default:								\
			for (i = 0; i < n; i++)						\
				sum += get(a[i]);					\
			d[0] = put(sum);						\
			break;								\
		}									\
	}

BEST void plain_f32(enum plain_op op, float *dst, const float *a, const float *b, size_t rows, size_t n)
{
	LOOPS(float, SAME, SAME)
}

BEST void plain_bf16(enum plain_op op, uint16_t *dst, const uint16_t *a, const uint16_t *b, size_t rows,
		     size_t n)
{
	LOOPS(uint16_t, up, down)
}
