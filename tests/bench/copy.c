// SPDX-License-Identifier: MIT
/* Median time of 64 MiB to HBM and back through libnrt; the bytes are compared. */
#include <string.h>

#include "bench.h"
#include "nrt/nrt.h"

enum { SIZE = 64 << 20, RUNS = 15 };

static void fill(uint32_t *p, uint32_t seed)
{
	for (size_t i = 0; i < SIZE / sizeof(*p); i++)
		p[i] = seed + (uint32_t)i;
}

int main(void)
{
	uint64_t to[RUNS], from[RUNS];
	void *a, *b;
	nrt_tensor_t *t;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 0);
	if (posix_memalign(&a, 4096, SIZE) || posix_memalign(&b, 4096, SIZE))
		bench_die("out of memory");
	BENCH_CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
	BENCH_CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, SIZE, "bench", &t));
	fill(a, 1);
	memset(b, 0, SIZE);
	/* Warm: once each before the clock runs. */
	for (int i = -1; i < RUNS; i++) {
		uint64_t start = bench_ns(), middle, end;

		BENCH_CHECK(nrt_tensor_write(t, a, 0, SIZE));
		middle = bench_ns();
		BENCH_CHECK(nrt_tensor_read(t, b, 0, SIZE));
		end = bench_ns();
		if (i < 0 && memcmp(a, b, SIZE))
			bench_die("what came back is not what was written");
		if (i >= 0) {
			to[i] = middle - start;
			from[i] = end - middle;
		}
	}
	if (memcmp(a, b, SIZE))
		bench_die("what came back is not what was written");
	nrt_tensor_free(&t);
	nrt_close();
	printf("to_ns %llu\n", (unsigned long long)bench_median(to, RUNS));
	printf("from_ns %llu\n", (unsigned long long)bench_median(from, RUNS));
	free(a);
	free(b);
	return 0;
}
