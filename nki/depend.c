// SPDX-License-Identifier: MIT
/* Whether two accesses touch a byte in common. */
#include "priv.h"

#define EXACT_LIMIT 4096	/* runs to enumerate before calling it an overlap */

static bool same_place(const struct nki_access *a, const struct nki_access *b)
{
	if (a->space != b->space || a->arg != b->arg)
		return false;
	if (a->space != NEURON_SPACE_HBM &&
	    (a->part >= b->part + b->parts || b->part >= a->part + a->parts))
		return false;
	return a->lo < b->hi && b->lo < a->hi;
}

/* Bytes from the first to the last of dimensions dim and inward. */
static int64_t extent(const struct nki_access *a, unsigned int dim)
{
	int64_t bytes = a->run;

	for (unsigned int d = dim; d < a->dims; d++)
		bytes += (a->num[d] - 1) * a->step[d];
	return bytes;
}

/* Does a, from dimension dim on and based at base, touch [lo, hi)? */
static bool hits(const struct nki_access *a, unsigned int dim, int64_t base, int64_t lo, int64_t hi)
{
	int64_t inner, first = 0, last;

	if (dim == a->dims)
		return base < hi && lo < base + a->run;
	inner = extent(a, dim + 1);
	last = a->num[dim] - 1;
	if (a->step[dim] > 0) {
		if (lo - base >= inner)
			first = (lo - base - inner) / a->step[dim] + 1;
		if (hi - base <= 0)
			return false;
		if ((hi - base - 1) / a->step[dim] < last)
			last = (hi - base - 1) / a->step[dim];
	}
	for (int64_t i = first; i <= last; i++) {
		if (hits(a, dim + 1, base + i * a->step[dim], lo, hi))
			return true;
	}
	return false;
}

static int64_t runs(const struct nki_access *a)
{
	int64_t n = 1;

	for (unsigned int d = 0; d < a->dims && n <= EXACT_LIMIT; d++)
		n *= a->num[d];
	return n;
}

/* Does any run of a, from dimension dim on, touch b? */
static bool any_run_hits(const struct nki_access *a, unsigned int dim, int64_t base,
			 const struct nki_access *b)
{
	if (dim == a->dims)
		return hits(b, 0, b->lo, base, base + a->run);
	for (int64_t i = 0; i < a->num[dim]; i++) {
		if (any_run_hits(a, dim + 1, base + i * a->step[dim], b))
			return true;
	}
	return false;
}

bool nki_overlap(const struct nki_access *a, const struct nki_access *b)
{
	if (!same_place(a, b))
		return false;
	if (!a->dims && !b->dims)
		return true;
	if (runs(b) < runs(a)) {
		const struct nki_access *t = a;

		a = b;
		b = t;
	}
	if (runs(a) > EXACT_LIMIT)
		return true;
	return any_run_hits(a, 0, a->lo, b);
}

static bool same_pattern(const struct nki_access *a, const struct nki_access *b)
{
	if (a->lo != b->lo || a->run != b->run || a->dims != b->dims)
		return false;
	for (unsigned int d = 0; d < a->dims; d++) {
		if (a->num[d] != b->num[d] || a->step[d] != b->step[d])
			return false;
	}
	return true;
}

/* Every byte of b is one of a. May say no where the answer is yes. */
bool nki_covers(const struct nki_access *a, const struct nki_access *b)
{
	if (a->space != b->space || a->arg != b->arg)
		return false;
	if (a->space != NEURON_SPACE_HBM &&
	    (b->part < a->part || b->part + b->parts > a->part + a->parts))
		return false;
	if (!a->dims)
		return a->lo <= b->lo && b->hi <= a->hi;
	return same_pattern(a, b);
}
