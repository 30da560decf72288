/* SPDX-License-Identifier: MIT */
/* Shared by the benchmark programs. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t bench_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts @v. */
static inline uint64_t bench_median(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), bench_compare);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

#define bench_die(...) (fprintf(stderr, "bench: error: " __VA_ARGS__), fputc('\n', stderr), exit(1))

#define BENCH_CHECK(call) do {								\
	NRT_STATUS status_ = (call);							\
	if (status_ != NRT_SUCCESS)							\
		bench_die("%s: %s", #call, nrt_get_status_as_str(status_));		\
} while (0)

#endif /* BENCH_H */
