// SPDX-License-Identifier: MIT
/*
 * Strict mode: transfers that touch the same bytes of HBM with nothing to order them.
 * Bytes are known by device address, so two arguments that name one buffer meet. There
 * is one set of records for all cores of the job. And which bytes of scratch have been
 * written.
 */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

#define PAGE_SHIFT	20
#define PAGES		256
#define WIDE		16		/* pages; more go to a list of their own */
#define MAX_RUNS	65536		/* to enumerate; beyond, patterns do not meet */
#define MAX_STEPS	(1u << 20) 	/* of one comparison, whatever the patterns are */
#define MAX_RECORDS	4096		/* of a page; the oldest go first */

struct hbm_list {
	struct hbm_access *a;
	unsigned int n, max;
};

#define SCRATCH_SHIFT	16	/* bytes that one bitmap covers */

/**
 * struct hbm_check - strict mode's view of HBM
 * @page: accesses, by megabyte modulo PAGES; @wide: those of more than WIDE pages
 * @can_race: by argument
 * @scratch: by argument: what was written, a bitmap by 64 KiB; NULL: not scratch
 * @chunks: bitmaps of each argument
 */
struct hbm_check {
	struct hbm_list page[PAGES], wide;
	bool can_race[NEURON_MAX_ARGS];
	uint64_t **scratch[NEURON_MAX_ARGS];
	uint64_t chunks[NEURON_MAX_ARGS];
};

/* --- regions -------------------------------------------------------------------------- */

static void region_dim(struct hbm_region *r, uint64_t count, int64_t stride)
{
	uint64_t step = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
	unsigned int d;

	if (count == 1 || !stride)
		return;
	if (stride < 0)
		r->lo -= (count - 1) * step;
	/* Widest step first. */
	for (d = r->dims; d && r->step[d - 1] < step; d--) {
		r->step[d] = r->step[d - 1];
		r->num[d] = r->num[d - 1];
	}
	r->step[d] = step;
	r->num[d] = count;
	r->dims++;
}

/* Dimensions that continue the run without a gap become part of it. */
static void region_close(struct hbm_region *r)
{
	unsigned int d;

	while (r->dims && r->step[r->dims - 1] <= r->run) {
		r->run += (r->num[r->dims - 1] - 1) * r->step[r->dims - 1];
		r->dims--;
	}
	r->hi = r->lo + r->run;
	for (d = 0; d < r->dims; d++)
		r->hi += (r->num[d] - 1) * r->step[d];
}

/* @row: offset of the indexed dimension. */
static void region_of_hbm(const struct hbm_opnd *h, int64_t row, struct hbm_region *r)
{
	unsigned int i, dims = h->dims - h->indexed;

	r->dims = 0;
	r->run = h->bytes;
	r->lo = h->va + (uint64_t)(h->offset + row);
	for (i = 0; i < dims; i++)
		region_dim(r, h->count[i], h->stride[i]);
	region_close(r);
}

static uint64_t runs(const struct hbm_region *r)
{
	uint64_t n = 1;
	unsigned int d;

	for (d = 0; d < r->dims && n <= MAX_RUNS; d++)
		n *= r->num[d];
	return n;
}

/* Does @r, from dimension @d on with its first byte at @at, touch [lo, hi)? */
static bool touches(const struct hbm_region *r, unsigned int d, uint64_t at, uint64_t lo,
		    uint64_t hi, unsigned int *steps)
{
	uint64_t inner = r->run, i = 0, last;
	unsigned int k;

	if (at >= hi || !*steps)
		return false;
	--*steps;
	if (d >= r->dims || d >= NEURON_DMA_DIMS)
		return at + r->run > lo;
	for (k = d + 1; k < r->dims && k < NEURON_DMA_DIMS; k++)
		inner += (r->num[k] - 1) * r->step[k];
	/* The first that reaches lo, and the last that begins before hi. */
	if (at + inner <= lo)
		i = (lo - at - inner) / r->step[d] + 1;
	last = (hi - 1 - at) / r->step[d];
	if (last > r->num[d] - 1)
		last = r->num[d] - 1;
	for (; i <= last && *steps; i++)
		if (touches(r, d + 1, at + i * r->step[d], lo, hi, steps))
			return true;
	return false;
}

static bool any_run_touches(const struct hbm_region *a, unsigned int d, uint64_t at,
			    const struct hbm_region *b, unsigned int *steps)
{
	uint64_t i;

	if (d >= a->dims || d >= NEURON_DMA_DIMS)
		return touches(b, 0, b->lo, at, at + a->run, steps);
	for (i = 0; i < a->num[d] && *steps; i++)
		if (any_run_touches(a, d + 1, at + i * a->step[d], b, steps))
			return true;
	return false;
}

static bool meet(const struct hbm_region *a, const struct hbm_region *b)
{
	unsigned int steps = MAX_STEPS;
	const struct hbm_region *t;

	if (a->lo >= b->hi || b->lo >= a->hi)
		return false;
	if (runs(b) < runs(a)) {
		t = a;
		a = b;
		b = t;
	}
	return runs(a) <= MAX_RUNS && any_run_touches(a, 0, a->lo, b, &steps);
}

static bool covers(const struct hbm_region *a, const struct hbm_region *b)
{
	if (!a->dims)
		return a->lo <= b->lo && a->hi >= b->hi;
	return a->lo == b->lo && a->run == b->run && a->dims == b->dims &&
	       !memcmp(a->num, b->num, a->dims * sizeof(a->num[0])) &&
	       !memcmp(a->step, b->step, a->dims * sizeof(a->step[0]));
}

/* --- records -------------------------------------------------------------------------- */

static void scratch_free(struct hbm_check *h)
{
	unsigned int i;
	uint64_t c;

	for (i = 0; i < NEURON_MAX_ARGS; i++) {
		for (c = 0; h->scratch[i] && c < h->chunks[i]; c++)
			free(h->scratch[i][c]);
		free(h->scratch[i]);
		h->scratch[i] = NULL;
	}
}

static bool scratch_begin(struct exec *x, struct hbm_check *h)
{
	uint32_t i;

	scratch_free(h);
	for (i = 0; i < x->args; i++) {
		if (!(x->arg[i].access & NEURON_ARG_SCRATCH) || !x->arg[i].size)
			continue;
		h->chunks[i] = ((x->arg[i].size - 1) >> SCRATCH_SHIFT) + 1;
		h->scratch[i] = calloc(h->chunks[i], sizeof(*h->scratch[i]));
		if (!h->scratch[i])
			return false;
	}
	return true;
}

void hbm_free(struct hbm_check *h)
{
	unsigned int i;

	if (!h)
		return;
	scratch_free(h);
	for (i = 0; i < PAGES; i++)
		free(h->page[i].a);
	free(h->wide.a);
	free(h);
}

/* An argument that is only read, and that no written one overlaps, cannot race. */
static void find_shared(struct exec *x, struct hbm_check *h)
{
	uint32_t i, k;

	for (i = 0; i < x->args; i++) {
		const struct neuron_arg *a = &x->arg[i];

		h->can_race[i] = a->access & NEURON_ARG_WRITE;
		for (k = 0; k < x->args && !h->can_race[i]; k++) {
			const struct neuron_arg *b = &x->arg[k];

			h->can_race[i] = b->access & NEURON_ARG_WRITE &&
					 a->va < b->va + b->size && b->va < a->va + a->size;
		}
	}
}

bool hbm_begin(struct exec *x, struct check *k)
{
	unsigned int i;

	if (!k->hbm)
		k->hbm = calloc(1, sizeof(*k->hbm));
	if (!k->hbm)
		return false;
	for (i = 0; i < PAGES; i++)
		k->hbm->page[i].n = 0;
	k->hbm->wide.n = 0;
	find_shared(x, k->hbm);
	return scratch_begin(x, k->hbm);
}

static bool is_before(const struct check_job *j, const uint32_t *clock,
		      const struct hbm_access *old, const struct hbm_access *a)
{
	if (old->thread == a->thread)
		return true;
	return clock[old->write ? j->threads + old->thread : old->thread] >= old->clock;
}

static const struct hbm_access *search(struct hbm_list *l, const struct check_job *j,
				       const uint32_t *clock, const struct hbm_access *a)
{
	unsigned int i, out = 0;

	for (i = 0; i < l->n; i++) {
		struct hbm_access *old = &l->a[i];
		bool before = is_before(j, clock, old, a);

		if (!before && (a->write || old->write) && meet(&a->at, &old->at))
			return old;
		if (before && covers(&a->at, &old->at) &&
		    (a->write || (!old->write && old->thread == a->thread)))
			continue;
		l->a[out++] = *old;
	}
	l->n = out;
	return NULL;
}

static bool add(struct hbm_list *l, const struct hbm_access *a)
{
	if (l->n == MAX_RECORDS)
		memmove(l->a, l->a + 1, --l->n * sizeof(*l->a));
	if (l->n == l->max) {
		unsigned int want = l->max ? 2 * l->max : 16;
		struct hbm_access *grown = realloc(l->a, want * sizeof(*grown));

		if (!grown)
			return false;
		l->a = grown;
		l->max = want;
	}
	l->a[l->n++] = *a;
	return true;
}

static const struct hbm_access *one(struct hbm_check *h, const struct check_job *j,
				    const uint32_t *clock, const struct hbm_access *a, bool *nomem)
{
	uint64_t first = a->at.lo >> PAGE_SHIFT, last = (a->at.hi - 1) >> PAGE_SHIFT, p;
	const struct hbm_access *other = search(&h->wide, j, clock, a);
	bool wide = last - first >= WIDE;

	if (wide) {
		first = 0;
		last = PAGES - 1;
	}
	for (p = first; p <= last && !other; p++)
		other = search(&h->page[p % PAGES], j, clock, a);
	if (other)
		return other;
	if (wide && !add(&h->wide, a))
		*nomem = true;
	for (p = first; p <= last && !wide; p++)
		if (!add(&h->page[p % PAGES], a))
			*nomem = true;
	return NULL;
}

/* Offset of row @r of a gather or scatter; false: left out. */
static bool row_offset(const struct hbm_opnd *h, unsigned int r, int64_t *offset)
{
	uint32_t bits = hbm_index_bits(h, r);
	int64_t index;

	index = h->index.dtype == NEURON_DTYPE_INT32 ? (int64_t)(int32_t)bits : (int64_t)bits;
	if (index < 0 || (h->row_bound && (uint64_t)index >= h->row_bound))
		return false;
	if ((__int128)index * h->stride[h->dims - 1] > INT64_MAX / 2 ||
	    (__int128)index * h->stride[h->dims - 1] < INT64_MIN / 2)
		return false;
	*offset = index * h->stride[h->dims - 1];
	/* A row outside is the copy's own fault to report. */
	return h->offset + *offset >= 0 && (uint64_t)(h->offset + *offset) < h->size;
}

bool hbm_row_taken(const struct hbm_opnd *h, unsigned int r)
{
	int64_t offset;

	return row_offset(h, r, &offset);
}

const struct hbm_access *hbm_touch(struct check *k, const struct check_job *j,
				   const uint32_t *clock, const struct hbm_opnd *h,
				   struct hbm_access *a, bool *nomem)
{
	unsigned int r, rows = h->indexed ? h->index.parts * h->index.n : 1, i;
	const struct hbm_access *other = NULL;
	int64_t offset = 0;

	if (!k->hbm->can_race[h->arg])
		return NULL;
	for (i = 0; i < h->dims; i++)
		if (!h->count[i])
			return NULL;
	for (r = 0; r < rows && !other; r++) {
		if (h->indexed && !row_offset(h, r, &offset))
			continue;
		region_of_hbm(h, offset, &a->at);
		other = one(k->hbm, j, clock, a, nomem);
	}
	return other;
}

/* --- scratch -------------------------------------------------------------------------- */

struct scratch_walk {
	struct hbm_check *h;
	uint32_t arg;
	bool write;
	uint64_t at;		/* first byte that was not written */
};

/* Bytes [lo, hi) of the argument. */
static bool scratch_run(struct scratch_walk *w, uint64_t lo, uint64_t hi)
{
	const uint64_t chunk = 1ull << SCRATCH_SHIFT;

	while (lo < hi) {
		uint64_t **map = &w->h->scratch[w->arg][lo >> SCRATCH_SHIFT], *word, mask;
		uint64_t end = (lo | 63) + 1 < hi ? (lo | 63) + 1 : hi;

		if (!*map && w->write)
			*map = calloc(chunk / 64, sizeof(**map));
		if (!*map) {
			w->at = lo;
			return false;
		}
		word = &(*map)[lo % chunk / 64];
		mask = UINT64_MAX << (lo % 64) & UINT64_MAX >> (63 - (end - 1) % 64);
		if (w->write) {
			*word |= mask;
		} else if (mask & ~*word) {
			w->at = (lo & ~63ull) + __builtin_ctzll(mask & ~*word);
			return false;
		}
		lo = end;
	}
	return true;
}

static bool scratch_region(struct scratch_walk *w, const struct hbm_region *r, unsigned int d,
			   uint64_t at)
{
	uint64_t i;

	if (d >= r->dims || d >= NEURON_DMA_DIMS)
		return scratch_run(w, at, at + r->run);
	for (i = 0; i < r->num[d]; i++)
		if (!scratch_region(w, r, d + 1, at + i * r->step[d]))
			return false;
	return true;
}

static bool scratch_walk(struct check *k, const struct hbm_opnd *h, bool write, uint64_t *at)
{
	struct scratch_walk w = { .h = k->hbm, .arg = h->arg, .write = write };
	unsigned int r, rows = h->indexed ? h->index.parts * h->index.n : 1, i;
	struct hbm_region region;
	int64_t offset = 0;

	if (!k->hbm->scratch[h->arg])
		return true;
	for (i = 0; i < h->dims; i++)
		if (!h->count[i])
			return true;
	for (r = 0; r < rows; r++) {
		if (h->indexed && !row_offset(h, r, &offset))
			continue;
		region_of_hbm(h, offset, &region);
		/* A row that leaves the argument is the copy's own fault to report. */
		if (region.lo < h->va || region.hi > h->va + h->size)
			continue;
		region.hi -= h->va;
		region.lo -= h->va;
		if (!scratch_region(&w, &region, 0, region.lo)) {
			*at = w.at;
			return false;
		}
	}
	return true;
}

bool hbm_scratch_read(struct check *k, const struct hbm_opnd *h, uint64_t *at)
{
	return scratch_walk(k, h, false, at);
}

bool hbm_scratch_write(struct check *k, const struct hbm_opnd *h)
{
	uint64_t at;

	return scratch_walk(k, h, true, &at);
}
