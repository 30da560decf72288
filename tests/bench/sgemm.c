// SPDX-License-Identifier: MIT
/*
 * OpenBLAS sgemm on one core: the shape of one PE instruction, and a large square for
 * its best rate. Prints the kernel that it chose; the result is checked.
 */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "bench.h"

enum { LARGE = 1024, RUNS = 15 };

static double rate(int m, int n, int k, int repeat)
{
	float *a = malloc(sizeof(*a) * (size_t)m * k), *b = malloc(sizeof(*b) * (size_t)k * n);
	float *c = malloc(sizeof(*c) * (size_t)m * n);
	uint64_t ns[RUNS];

	if (!a || !b || !c)
		bench_die("out of memory");
	for (int i = 0; i < m * k; i++)
		a[i] = (float)(i * 7 % 31 - 15) / 16;
	for (int i = 0; i < k * n; i++)
		b[i] = (float)(i * 11 % 29 - 14) / 16;
	for (int r = -1; r < RUNS; r++) {
		uint64_t start = bench_ns();

		for (int i = 0; i < repeat; i++)
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n,
				    0, c, n);
		if (r >= 0)
			ns[r] = (bench_ns() - start) / (uint64_t)repeat;
	}
	for (int i = 0; i < m; i += 5) {
		for (int j = 0; j < n; j += 3) {
			double sum = 0;

			for (int l = 0; l < k; l++)
				sum += (double)a[i * k + l] * b[l * n + j];
			if (fabs(sum - c[i * n + j]) > 1e-3)
				bench_die("sgemm gives c[%d][%d] = %g, not %g: wrong kernel for this CPU",
					  i, j, c[i * n + j], sum);
		}
	}
	free(a);
	free(b);
	free(c);
	return 2.0 * m * n * k / (double)bench_median(ns, RUNS);
}

int main(void)
{
	openblas_set_num_threads(1);
	printf("sgemm_core %s\n", openblas_get_corename());
	printf("sgemm_gflops %.2f\n", rate(128, 512, 128, 200));
	printf("sgemm_large_gflops %.2f\n", rate(LARGE, LARGE, LARGE, 1));
	return 0;
}
