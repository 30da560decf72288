// SPDX-License-Identifier: MIT
/*
 * Strict mode: which bytes of SBUF and PSUM have been written in this job.
 */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

static bool space_begin(struct exec_core *c, struct check *k, unsigned int space)
{
	size_t words = c->core->mem[space].bytes / 64;

	if (!k->written[space]) {
		k->written[space] = calloc(words * NEURON_PARTITIONS, 8);
		k->words[space] = words;
		return k->written[space];
	}
	memset(k->written[space], 0, words * NEURON_PARTITIONS * 8);
	return true;
}

bool mem_begin(struct exec_core *c, struct check *k)
{
	if (!space_begin(c, k, NEURON_SPACE_SBUF) || !space_begin(c, k, NEURON_SPACE_PSUM))
		return false;
	free(k->by_pe);
	k->by_pe = calloc(k->words[NEURON_SPACE_PSUM] * NEURON_PARTITIONS, 8);
	return k->by_pe;
}

void mem_free(struct check *k)
{
	free(k->written[NEURON_SPACE_SBUF]);
	free(k->written[NEURON_SPACE_PSUM]);
	free(k->by_pe);
}

void region_of(const struct exec_core *c, const struct opnd *op, struct region *r)
{
	const struct core_mem *mem = &c->core->mem[op->space];

	r->space = op->space;
	r->part = op->part;
	r->parts = op->parts;
	r->bytes = op->bytes;
	r->dense = op->dense;
	r->lo = op->lo;
	r->hi = op->hi;
	r->first = op->base - mem->base - (ptrdiff_t)(op->part * mem->stride);
	memcpy(r->num, op->num, sizeof(r->num));
	memcpy(r->step, op->step, sizeof(r->step));
}

/* --- ranges of bits ------------------------------------------------------------------ */

static uint64_t bits_mask(uint32_t lo, uint32_t hi, uint32_t word)
{
	uint64_t mask = UINT64_MAX;

	if (word == lo / 64)
		mask &= UINT64_MAX << (lo % 64);
	if (word == (hi - 1) / 64)
		mask &= UINT64_MAX >> (63 - (hi - 1) % 64);
	return mask;
}

/* First clear bit of [lo, hi), or @hi. */
static uint32_t bits_clear(const uint64_t *bits, uint32_t lo, uint32_t hi)
{
	uint32_t w;

	for (w = lo / 64; w <= (hi - 1) / 64; w++) {
		uint64_t missing = ~bits[w] & bits_mask(lo, hi, w);

		if (missing)
			return w * 64 + __builtin_ctzll(missing);
	}
	return hi;
}

static void bits_set(uint64_t *bits, uint32_t lo, uint32_t hi, bool value)
{
	uint32_t w;

	for (w = lo / 64; w <= (hi - 1) / 64; w++) {
		if (value)
			bits[w] |= bits_mask(lo, hi, w);
		else
			bits[w] &= ~bits_mask(lo, hi, w);
	}
}

/* --- regions --------------------------------------------------------------------------- */

/* Calls @expr for each run of the inner dimension that has no gaps: [lo_, hi_). */
#define FOR_BYTES(r, lo_, hi_, body)						\
	do {									\
		bool run_ = (r)->step[0] == (r)->bytes;				\
		uint32_t n_ = run_ ? 1 : (r)->num[0], i0_, i1_, i2_, i3_;	\
		uint32_t len_ = run_ ? (r)->num[0] * (r)->bytes : (r)->bytes;	\
		for (i3_ = 0; i3_ < (r)->num[3]; i3_++)				\
			for (i2_ = 0; i2_ < (r)->num[2]; i2_++)			\
				for (i1_ = 0; i1_ < (r)->num[1]; i1_++)		\
					for (i0_ = 0; i0_ < n_; i0_++) {	\
						uint32_t lo_ = (r)->first + (int32_t)i3_ * (r)->step[3] + \
							(int32_t)i2_ * (r)->step[2] +	\
							(int32_t)i1_ * (r)->step[1] +	\
							(int32_t)i0_ * (r)->step[0];	\
						uint32_t hi_ = lo_ + len_;	\
						body;				\
					}					\
	} while (0)

static uint32_t region_missing(const uint64_t *bits, const struct region *r)
{
	if (r->dense)
		return bits_clear(bits, r->lo, r->hi) == r->hi ? UINT32_MAX :
		       bits_clear(bits, r->lo, r->hi);
	FOR_BYTES(r, lo, hi, {
		uint32_t at = bits_clear(bits, lo, hi);

		if (at != hi)
			return at;
	});
	return UINT32_MAX;
}

static bool all_set(const struct check *k, const uint64_t *bits, const struct region *r,
		    unsigned int *part, uint32_t *byte)
{
	unsigned int p;

	for (p = r->part; p < r->part + r->parts; p++) {
		*byte = region_missing(bits + p * k->words[r->space], r);
		if (*byte != UINT32_MAX) {
			*part = p;
			return false;
		}
	}
	return true;
}

bool mem_written(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte)
{
	return all_set(k, k->written[r->space], r, part, byte);
}

bool mem_by_pe(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte)
{
	return all_set(k, k->by_pe, r, part, byte);
}

static void region_set(uint64_t *bits, const struct region *r, bool value)
{
	if (r->dense) {
		bits_set(bits, r->lo, r->hi, value);
		return;
	}
	FOR_BYTES(r, lo, hi, bits_set(bits, lo, hi, value));
}

void mem_write(struct check *k, const struct region *r, bool pe)
{
	size_t words = k->words[r->space];
	unsigned int p;

	for (p = r->part; p < r->part + r->parts; p++) {
		region_set(k->written[r->space] + p * words, r, true);
		if (r->space == NEURON_SPACE_PSUM)
			region_set(k->by_pe + p * words, r, pe);
	}
}
