// SPDX-License-Identifier: MIT
/* Median time of memcpy of 64 MiB, warm; prints nanoseconds. */
#include <string.h>

#include "bench.h"

enum { SIZE = 64 << 20, RUNS = 21 };

int main(void)
{
	char *a = malloc(SIZE), *b = malloc(SIZE);
	uint64_t ns[RUNS];

	if (!a || !b)
		bench_die("out of memory");
	memset(a, 1, SIZE);
	memset(b, 2, SIZE);
	for (int i = 0; i < RUNS; i++) {
		uint64_t start = bench_ns();

		memcpy(b, a, SIZE);
		/* So that the copy is not left out. */
		__asm__ volatile("" : : "r"(b) : "memory");
		ns[i] = bench_ns() - start;
	}
	printf("memcpy_ns %llu\n", (unsigned long long)bench_median(ns, RUNS));
	free(a);
	free(b);
	return 0;
}
