// SPDX-License-Identifier: MIT
/*
 * main() of a fuzz target without libFuzzer: random inputs, or files.
 *
 *	fuzz_NAME [--runs N] [--seconds S] [--seed S] [FILE...]
 *
 * Input i of seed s is always the same bytes: what failed is found again with
 * --seed (s + i) --runs 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"

#define INPUT_BYTES	8192
#define FILE_BYTES	(1u << 20)

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* A third each: any bytes, mostly zeros, mostly small numbers. */
static size_t make(uint64_t seed, uint8_t *buf)
{
	uint64_t s = (seed + 1) * 0x9e3779b97f4a7c15ull | 1, v;
	size_t size = 64 + next_random(&s) % (INPUT_BYTES - 64), k;
	unsigned int kind = next_random(&s) % 3;

	for (k = 0; k < size; k++) {
		v = next_random(&s);
		buf[k] = (uint8_t)(v >> 32);
		if (kind == 1 && v % 4)
			buf[k] = 0;
		if (kind == 2 && v % 4)
			buf[k] &= 15;
	}
	return size;
}

static int run_file(const char *name)
{
	uint8_t *buf = malloc(FILE_BYTES);
	FILE *f = fopen(name, "rb");
	size_t n;

	if (!f || !buf) {
		perror(name);
		free(buf);
		return 1;
	}
	n = fread(buf, 1, FILE_BYTES, f);
	fclose(f);
	LLVMFuzzerTestOneInput(buf, n);
	free(buf);
	return 0;
}

static int usage(const char *name)
{
	fprintf(stderr, "usage: %s [--runs N] [--seconds S] [--seed S] [FILE...]\n", name);
	return 2;
}

static int run_random(uint64_t seed, uint64_t runs, time_t seconds)
{
	time_t end = time(NULL) + seconds;
	static uint8_t buf[INPUT_BYTES];
	uint64_t i;

	for (i = 0; i < runs && (!seconds || time(NULL) < end); i++) {
		/* A block of its own size, so that a sanitizer sees where it ends. */
		size_t size = make(seed + i, buf);
		uint8_t *exact = malloc(size);

		if (!exact)
			return 1;
		memcpy(exact, buf, size);
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	printf("%llu inputs from seed %llu\n", (unsigned long long)i, (unsigned long long)seed);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t runs = 0, seed = 1;
	int i, ret = 0, files = 0;
	time_t seconds = 0;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--runs") && i + 1 < argc) {
			runs = strtoull(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			seed = strtoull(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
			seconds = (time_t)strtoull(argv[++i], NULL, 0);
		} else if (argv[i][0] == '-') {
			return usage(argv[0]);
		} else {
			files++;
			ret |= run_file(argv[i]);
		}
	}
	if (!files || runs || seconds)
		ret |= run_random(seed, runs ? runs : seconds ? UINT64_MAX : 2000, seconds);
	if (fuzz_report)
		fuzz_report();
	return ret;
}
