// SPDX-License-Identifier: MIT
/*
 * Strict mode: which bytes of SBUF and PSUM have been written in this job. Most
 * operands cover whole grains in many partitions, so those take two words for all
 * partitions; what is written in part has its bits, a word for each partition.
 */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

static bool map_begin(struct bytemap *m, uint32_t bytes)
{
	m->grains = bytes / GRAIN;
	if (!m->full)
		m->full = malloc(m->grains * sizeof(*m->full));
	if (!m->part)
		m->part = malloc(m->grains * sizeof(*m->part));
	if (!m->bits)
		m->bits = malloc((size_t)m->grains * NEURON_PARTITIONS * sizeof(*m->bits));
	if (!m->full || !m->part || !m->bits)
		return false;
	/* @bits counts only where @part says so. */
	memset(m->full, 0, m->grains * sizeof(*m->full));
	memset(m->part, 0, m->grains * sizeof(*m->part));
	return true;
}

static void map_free(struct bytemap *m)
{
	free(m->full);
	free(m->part);
	free(m->bits);
}

bool mem_begin(struct exec_core *c, struct check *k)
{
	struct core_mem *mem = c->core->mem;

	return map_begin(&k->written[NEURON_SPACE_SBUF], mem[NEURON_SPACE_SBUF].bytes) &&
	       map_begin(&k->written[NEURON_SPACE_PSUM], mem[NEURON_SPACE_PSUM].bytes) &&
	       map_begin(&k->by_pe, mem[NEURON_SPACE_PSUM].bytes);
}

void mem_free(struct check *k)
{
	map_free(&k->written[NEURON_SPACE_SBUF]);
	map_free(&k->written[NEURON_SPACE_PSUM]);
	map_free(&k->by_pe);
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

/* --- one grain ------------------------------------------------------------------------ */

static struct lanes lanes_of(unsigned int part, unsigned int parts)
{
	struct lanes l = { { 0 } };
	unsigned int p;

	for (p = part; p < part + parts; p++)
		l.bit[p / 64] |= 1ull << (p % 64);
	return l;
}

/* Bits that are set in grain @g of partition @p. */
static uint64_t grain_get(const struct bytemap *m, uint32_t g, unsigned int p)
{
	uint64_t lane = 1ull << (p % 64);

	if (m->full[g].bit[p / 64] & lane)
		return UINT64_MAX;
	return m->part[g].bit[p / 64] & lane ? m->bits[(size_t)p * m->grains + g] : 0;
}

static void grain_put(struct bytemap *m, uint32_t g, unsigned int p, uint64_t bits)
{
	uint64_t lane = 1ull << (p % 64);

	m->full[g].bit[p / 64] &= ~lane;
	m->part[g].bit[p / 64] &= ~lane;
	if (bits == UINT64_MAX) {
		m->full[g].bit[p / 64] |= lane;
	} else if (bits) {
		m->part[g].bit[p / 64] |= lane;
		m->bits[(size_t)p * m->grains + g] = bits;
	}
}

/* All of @mask set in grain @g of the partitions @l? Else the first, and its byte. */
static bool grain_has(const struct bytemap *m, uint32_t g, uint64_t mask, const struct lanes *l,
		      unsigned int *part, uint32_t *byte)
{
	uint64_t rest, missing;
	unsigned int i, p;

	for (i = 0; i < 2; i++) {
		for (rest = l->bit[i] & ~m->full[g].bit[i]; rest; rest &= rest - 1) {
			p = 64 * i + __builtin_ctzll(rest);
			missing = mask & ~grain_get(m, g, p);
			if (missing) {
				*part = p;
				*byte = g * GRAIN + __builtin_ctzll(missing);
				return false;
			}
		}
	}
	return true;
}

static void grain_set(struct bytemap *m, uint32_t g, uint64_t mask, const struct lanes *l, bool value)
{
	uint64_t rest;
	unsigned int i, p;

	for (i = 0; i < 2; i++) {
		if (mask == UINT64_MAX) {
			m->part[g].bit[i] &= ~l->bit[i];
			m->full[g].bit[i] &= ~l->bit[i];
			m->full[g].bit[i] |= value ? l->bit[i] : 0;
			continue;
		}
		rest = value ? l->bit[i] & ~m->full[g].bit[i] :
			       l->bit[i] & (m->full[g].bit[i] | m->part[g].bit[i]);
		for (; rest; rest &= rest - 1) {
			p = 64 * i + __builtin_ctzll(rest);
			grain_put(m, g, p, value ? grain_get(m, g, p) | mask :
						   grain_get(m, g, p) & ~mask);
		}
	}
}

/* --- regions --------------------------------------------------------------------------- */

enum grain_op { GRAIN_HAS, GRAIN_SET, GRAIN_CLEAR };

struct walk {
	struct bytemap *m;
	enum grain_op op;
	struct lanes l;
	unsigned int part;
	uint32_t byte;
	uint32_t grain;		/* not done yet, with @mask */
	uint64_t mask;
};

static bool walk_flush(struct walk *w)
{
	if (!w->mask)
		return true;
	if (w->op == GRAIN_HAS) {
		if (!grain_has(w->m, w->grain, w->mask, &w->l, &w->part, &w->byte))
			return false;
	} else {
		grain_set(w->m, w->grain, w->mask, &w->l, w->op == GRAIN_SET);
	}
	w->mask = 0;
	return true;
}

static uint64_t bits_between(uint32_t lo, uint32_t hi)
{
	return UINT64_MAX << lo & UINT64_MAX >> (GRAIN - hi);
}

/* Bytes [lo, hi) of each partition. */
static bool walk_run(struct walk *w, uint32_t lo, uint32_t hi)
{
	uint32_t g;

	for (g = lo / GRAIN; lo < hi; g++) {
		uint32_t end = hi < (g + 1) * GRAIN ? hi : (g + 1) * GRAIN;

		if (g != w->grain && !walk_flush(w))
			return false;
		w->grain = g;
		w->mask |= bits_between(lo - g * GRAIN, end - g * GRAIN);
		lo = end;
	}
	return true;
}

static bool walk_region(struct walk *w, const struct region *r)
{
	bool run = r->step[0] == r->bytes;
	uint32_t n = run ? 1 : r->num[0], len = run ? r->num[0] * r->bytes : r->bytes;
	uint32_t i[NEURON_AP_DIMS], at;

	w->mask = 0;
	w->l = lanes_of(r->part, r->parts);
	if (r->dense)
		return walk_run(w, r->lo, r->hi) && walk_flush(w);
	for (i[3] = 0; i[3] < r->num[3]; i[3]++) {
		for (i[2] = 0; i[2] < r->num[2]; i[2]++) {
			for (i[1] = 0; i[1] < r->num[1]; i[1]++) {
				at = r->first + (int32_t)i[3] * r->step[3] +
				     (int32_t)i[2] * r->step[2] + (int32_t)i[1] * r->step[1];
				for (i[0] = 0; i[0] < n; i[0]++, at += r->step[0])
					if (!walk_run(w, at, at + len))
						return false;
			}
		}
	}
	return walk_flush(w);
}

static bool all_set(const struct bytemap *m, const struct region *r, unsigned int *part,
		    uint32_t *byte)
{
	struct walk w = { .m = (struct bytemap *)m, .op = GRAIN_HAS };

	if (walk_region(&w, r))
		return true;
	*part = w.part;
	*byte = w.byte;
	return false;
}

bool mem_written(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte)
{
	return all_set(&k->written[r->space], r, part, byte);
}

bool mem_by_pe(const struct check *k, const struct region *r, unsigned int *part, uint32_t *byte)
{
	return all_set(&k->by_pe, r, part, byte);
}

void mem_write(struct check *k, const struct region *r, bool pe)
{
	struct walk w = { .m = &k->written[r->space], .op = GRAIN_SET };

	walk_region(&w, r);
	if (r->space == NEURON_SPACE_PSUM) {
		w.m = &k->by_pe;
		w.op = pe ? GRAIN_SET : GRAIN_CLEAR;
		walk_region(&w, r);
	}
}

void mem_write_bytes(struct check *k, unsigned int space, unsigned int part, uint32_t lo,
		     uint32_t hi, bool pe)
{
	struct region r = {
		.space = space, .part = part, .parts = 1, .dense = true, .lo = lo, .hi = hi,
	};

	mem_write(k, &r, pe);
}
