// SPDX-License-Identifier: MIT
/*
 * Strict mode: accesses that no chain of semaphores orders. Of the accesses so far
 * we keep those that a later one could race with: an access that is ordered after
 * another, and writes all its bytes, stands for it from then on (whoever races with
 * the earlier one races with the later one too).
 */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

#define MAX_RECORDS	4096	/* of a bucket; the oldest go first */
#define WINDOW_BYTES	(CORE_COLUMNS_MAX << CORE_COLUMN_SHIFT)

void race_begin(struct check *k)
{
	unsigned int s, b;

	for (s = 0; s < 3; s++)
		for (b = 0; b < BUCKETS; b++)
			k->bucket[s][b].n = 0;
}

void race_free(struct check *k)
{
	unsigned int s, b;

	for (s = 0; s < 3; s++)
		for (b = 0; b < BUCKETS; b++)
			free(k->bucket[s][b].a);
	free(k->window);
}

static bool boxes_meet(const struct region *a, const struct region *b)
{
	return a->lo < b->hi && b->lo < a->hi &&
	       a->part < b->part + b->parts && b->part < a->part + a->parts;
}

static bool same_pattern(const struct region *a, const struct region *b)
{
	return a->first == b->first && a->bytes == b->bytes && a->part == b->part &&
	       a->parts == b->parts && !memcmp(a->num, b->num, sizeof(a->num)) &&
	       !memcmp(a->step, b->step, sizeof(a->step));
}

/* Every byte of @b is one of @a. May say no where the answer is yes. */
static bool covers(const struct region *a, const struct region *b)
{
	if (a->dense && a->lo <= b->lo && a->hi >= b->hi)
		return a->part <= b->part && a->part + a->parts >= b->part + b->parts;
	return same_pattern(a, b);
}

/* Goes over the elements of @r: marks them, or finds marked bytes. */
static void walk(const struct region *r, uint8_t *window, bool mark, uint32_t *lo, uint32_t *hi)
{
	uint32_t i[NEURON_AP_DIMS] = { 0 }, b;
	unsigned int d;

	for (;;) {
		int32_t at = r->first;

		for (d = 0; d < NEURON_AP_DIMS; d++)
			at += (int32_t)i[d] * r->step[d];
		for (b = at; b < (uint32_t)at + r->bytes; b++) {
			if (mark) {
				window[b] = 1;
			} else if (window[b]) {
				*lo = b < *lo ? b : *lo;
				*hi = b + 1 > *hi ? b + 1 : *hi;
			}
		}
		for (d = 0; d < NEURON_AP_DIMS && ++i[d] == r->num[d]; d++)
			i[d] = 0;
		if (d == NEURON_AP_DIMS)
			return;
	}
}

bool region_overlap(struct check *k, const struct region *a, const struct region *b,
		    uint32_t *byte, uint32_t *size)
{
	uint32_t lo = a->lo > b->lo ? a->lo : b->lo, hi = a->hi < b->hi ? a->hi : b->hi;

	if (!boxes_meet(a, b))
		return false;
	if (!a->dense || !b->dense) {
		if (!k->window)
			k->window = malloc(WINDOW_BYTES);
		if (k->window) {
			memset(k->window + a->lo, 0, a->hi - a->lo);
			memset(k->window + b->lo, 0, b->hi - b->lo);
			walk(a, k->window, true, NULL, NULL);
			lo = UINT32_MAX;
			hi = 0;
			walk(b, k->window, false, &lo, &hi);
			if (!hi)
				return false;
		}
	}
	*byte = lo;
	*size = hi - lo;
	return true;
}

static bool is_before(const struct check_job *j, const uint32_t *clock, const struct access *old,
		      const struct access *a)
{
	if (old->thread == a->thread)
		return true;
	return clock[old->write ? j->threads + old->thread : old->thread] >= old->clock;
}

/* @a stands for @old from now on. */
static bool replaces(const struct access *a, const struct access *old, bool before)
{
	if (!before || !covers(&a->at, &old->at))
		return false;
	return a->write || (!old->write && old->thread == a->thread);
}

static bool bucket_add(struct bucket *b, const struct access *a)
{
	if (b->n == MAX_RECORDS)
		memmove(b->a, b->a + 1, --b->n * sizeof(*b->a));
	if (b->n == b->max) {
		unsigned int want = b->max ? 2 * b->max : 8;
		struct access *grown = realloc(b->a, want * sizeof(*grown));

		if (!grown)
			return false;
		b->a = grown;
		b->max = want;
	}
	b->a[b->n++] = *a;
	return true;
}

const struct access *race_access(struct check *k, const struct check_job *j,
				 const uint32_t *clock, const struct access *a, bool *nomem)
{
	static _Thread_local struct access other;
	unsigned int i, out, at, last = (a->at.hi - 1) >> BUCKET_SHIFT;
	uint32_t byte, size;

	for (at = a->at.lo >> BUCKET_SHIFT; at <= last; at++) {
		struct bucket *b = &k->bucket[a->at.space][at];

		for (i = out = 0; i < b->n; i++) {
			struct access *old = &b->a[i];
			bool before = is_before(j, clock, old, a);

			if (!before && (a->write || old->write) &&
			    region_overlap(k, &a->at, &old->at, &byte, &size)) {
				other = *old;
				return &other;
			}
			if (!replaces(a, old, before))
				b->a[out++] = *old;
		}
		b->n = out;
		if (!bucket_add(b, a))
			*nomem = true;
	}
	return NULL;
}
