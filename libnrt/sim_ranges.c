// SPDX-License-Identifier: MIT
/* First-fit allocator of address ranges: HBM, device and bus addresses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

int sim_ranges_init(struct sim_ranges *r, uint64_t start, uint64_t size)
{
	memset(r, 0, sizeof(*r));
	r->cap = 16;
	r->free = malloc(r->cap * sizeof(*r->free));
	if (!r->free)
		return -ENOMEM;
	r->free[0] = (struct sim_range){ start, size };
	r->count = 1;
	r->free_bytes = size;
	return 0;
}

void sim_ranges_fini(struct sim_ranges *r)
{
	free(r->free);
	memset(r, 0, sizeof(*r));
}

/*
 * There are never more holes than ranges handed out plus one. Making room when
 * a range is taken means that giving it back cannot fail.
 */
static int make_room(struct sim_ranges *r)
{
	struct sim_range *grown;

	if (r->cap >= r->taken + 3)
		return 0;
	grown = realloc(r->free, 2 * r->cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->free = grown;
	r->cap *= 2;
	return 0;
}

static void cut(struct sim_ranges *r, size_t i, uint64_t start, uint64_t size)
{
	struct sim_range hole = r->free[i];
	uint64_t before = start - hole.start;
	uint64_t after = hole.size - before - size;

	if (before && after) {
		memmove(&r->free[i + 2], &r->free[i + 1], (r->count - i - 1) * sizeof(hole));
		r->free[i].size = before;
		r->free[i + 1] = (struct sim_range){ start + size, after };
		r->count++;
	} else if (before) {
		r->free[i].size = before;
	} else if (after) {
		r->free[i] = (struct sim_range){ start + size, after };
	} else {
		memmove(&r->free[i], &r->free[i + 1], (r->count - i - 1) * sizeof(hole));
		r->count--;
	}
	r->taken++;
	r->free_bytes -= size;
}

int sim_ranges_take(struct sim_ranges *r, uint64_t size, uint64_t align,
		    uint64_t phase, uint64_t *start)
{
	uint64_t skip;
	size_t i;

	if (make_room(r))
		return -ENOMEM;
	for (i = 0; i < r->count; i++) {
		skip = (phase - r->free[i].start) & (align - 1);
		if (skip >= r->free[i].size || r->free[i].size - skip < size)
			continue;
		*start = r->free[i].start + skip;
		cut(r, i, *start, size);
		return 0;
	}
	return -ENOSPC;
}

int sim_ranges_take_largest(struct sim_ranges *r, uint64_t max, struct sim_range *got)
{
	size_t best = 0, i;

	if (!r->count)
		return -ENOSPC;
	if (make_room(r))
		return -ENOMEM;
	for (i = 1; i < r->count; i++)
		if (r->free[i].size > r->free[best].size)
			best = i;
	*got = r->free[best];
	if (got->size > max)
		got->size = max;
	cut(r, best, got->start, got->size);
	return 0;
}

void sim_ranges_give(struct sim_ranges *r, uint64_t start, uint64_t size)
{
	size_t lo = 0, hi = r->count;
	bool left, right;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (r->free[mid].start < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	left = lo > 0 && r->free[lo - 1].start + r->free[lo - 1].size == start;
	right = lo < r->count && start + size == r->free[lo].start;
	if (left && right) {
		r->free[lo - 1].size += size + r->free[lo].size;
		memmove(&r->free[lo], &r->free[lo + 1], (r->count - lo - 1) * sizeof(*r->free));
		r->count--;
	} else if (left) {
		r->free[lo - 1].size += size;
	} else if (right) {
		r->free[lo].start = start;
		r->free[lo].size += size;
	} else {
		memmove(&r->free[lo + 1], &r->free[lo], (r->count - lo) * sizeof(*r->free));
		r->free[lo] = (struct sim_range){ start, size };
		r->count++;
	}
	r->taken--;
	r->free_bytes += size;
}
