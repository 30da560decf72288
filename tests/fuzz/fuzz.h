/* SPDX-License-Identifier: MIT */
/*
 * What every fuzz target has: its entry, and its input, read as choices. A target
 * holds no main(): libFuzzer brings one, else driver.c.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; a finding is an abort(), or what the sanitizers see. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: driver.c calls it at the end; what was covered, for people. */
void fuzz_report(void) __attribute__((weak));

struct fuzz_input {
	const uint8_t *p, *end;
};

/* The next bytes (up to 8), most significant first; zeros at the end. */
static inline uint64_t fuzz_take(struct fuzz_input *in, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes-- && in->p < in->end)
		v = v << 8 | *in->p++;
	return v;
}

/* 0 to below - 1. */
static inline unsigned int fuzz_below(struct fuzz_input *in, unsigned int below)
{
	return (unsigned int)(fuzz_take(in, below > 256 ? 4 : 1) % below);
}

/* Numbers near edges are more interesting than any. */
static inline uint64_t fuzz_number(struct fuzz_input *in)
{
	uint8_t kind = (uint8_t)fuzz_take(in, 1);

	switch (kind & 7) {
	case 0:
		return fuzz_take(in, 1);
	case 1:
		return (uint64_t)-(int64_t)fuzz_take(in, 1);
	case 2:
		return 1ull << (kind >> 3);
	case 3:
		return (1ull << (kind >> 3)) - 1;
	case 4:
		return fuzz_take(in, 2) << (kind >> 3);
	case 5:
		return fuzz_take(in, 8);
	default:
		return fuzz_take(in, 4);
	}
}

#endif
