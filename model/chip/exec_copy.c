// SPDX-License-Identifier: MIT
/*
 * The bytes of a DMA transfer. Elements are taken in order on both sides; runs that
 * both sides have without gaps are copied or cast at once.
 */
#include <endian.h>
#include <string.h>

#include "exec_state.h"

#define CURSOR_DIMS	6
#define BOUNCE_BYTES	4096u
#define POLL_BYTES	(1u << 20)
#define ELEMENT_COST	16	/* of an element by itself, in bytes, for polling */

/**
 * struct cursor - position in one side of a transfer
 * @count, @stride, @at: by dimension, innermost first; neighbours that continue
 *	each other are merged
 * @pos: byte position of the current element: host address, or offset in the argument
 * @host: SBUF: pos is relative to it
 * @va: HBM: address of the argument
 * @window, @lo, @hi: last part of the argument that was found in HBM
 */
struct cursor {
	bool hbm;
	bool write;
	unsigned int dims;
	unsigned int bytes;
	uint64_t count[CURSOR_DIMS];
	int64_t stride[CURSOR_DIMS];
	uint64_t at[CURSOR_DIMS];
	int64_t pos;
	uint8_t *host;
	uint64_t va;
	uint64_t size;
	uint8_t *window;
	uint64_t lo, hi;
	uint8_t bounce[BOUNCE_BYTES];
};

struct copy {
	struct exec *x;
	struct exec_core *c;
	struct xfer *t;
	struct cursor dst, src;
	uint64_t since_poll;
};

static bool copy_fault(struct copy *m, enum neuron_fault code, uint32_t index, uint64_t addr,
		       uint64_t size, unsigned int part)
{
	struct neuron_fault_record *f;

	f = exec_fault_at(m->x, code, m->c->index, m->t->engine, m->t->pc, m->t->insn);
	f->space = NEURON_SPACE_HBM;
	f->index = htole32(index);
	f->addr = htole64(addr);
	f->size = htole64(size);
	if (code == NEURON_FAULT_OOB_INDEX)
		f->value = htole64(size);	/* the limit */
	f->partition = part;
	return false;
}

/* --- cursors ----------------------------------------------------------------------- */

static void cursor_add(struct cursor *c, uint64_t count, int64_t stride)
{
	unsigned int d = c->dims;

	if (count == 1)
		return;
	if (d && (__int128)c->stride[d - 1] * (int64_t)c->count[d - 1] == stride) {
		c->count[d - 1] *= count;
		return;
	}
	c->count[d] = count;
	c->stride[d] = stride;
	c->dims++;
}

/* @dims: leave out the outermost of an indexed operand. */
static void cursor_init(struct cursor *c, const struct dma_side *side, bool write)
{
	unsigned int i, dims;

	c->hbm = side->is_hbm;
	c->write = write;
	c->dims = 0;
	c->bytes = side->bytes;
	c->lo = c->hi = 0;
	if (side->is_hbm) {
		dims = side->hbm.dims - side->hbm.indexed;
		for (i = 0; i < dims; i++)
			cursor_add(c, side->hbm.count[i], side->hbm.stride[i]);
		c->va = side->hbm.va;
		c->size = side->hbm.size;
	} else {
		for (i = 0; i < side->sb.dims; i++)
			cursor_add(c, side->sb.num[i], side->sb.step[i]);
		cursor_add(c, side->sb.parts, side->sb.stride);
		c->host = side->sb.base;
	}
}

/* Goes to element @n from @start. */
static void cursor_seek(struct cursor *c, int64_t start, uint64_t n)
{
	unsigned int i;

	c->pos = start;
	for (i = 0; i < c->dims; i++) {
		c->at[i] = i + 1 < c->dims ? n % c->count[i] : n;
		n /= c->count[i];
		c->pos += (int64_t)c->at[i] * c->stride[i];
	}
}

/* Elements from here on that lie one after the other. */
static uint64_t cursor_run(const struct cursor *c)
{
	if (!c->dims || c->stride[0] != (int64_t)c->bytes)
		return 1;
	return c->count[0] - c->at[0];
}

/* @n: not more than the run. */
static void cursor_advance(struct cursor *c, uint64_t n)
{
	unsigned int i;

	for (i = 0; i < c->dims; i++) {
		c->pos += (int64_t)n * c->stride[i];
		c->at[i] += n;
		if (c->at[i] < c->count[i])
			return;
		c->pos -= (int64_t)c->count[i] * c->stride[i];
		c->at[i] = 0;
		n = 1;
	}
}

/*
 * Host memory for up to *n elements at the cursor; lowers *n to what is there. NULL:
 * faulted. HBM that has no direct pointer goes through the bounce buffer.
 */
static uint8_t *cursor_map(struct copy *m, struct cursor *c, uint64_t *n, bool *bounced)
{
	uint64_t pos = c->pos, bad = 0;
	enum neuron_fault code;
	size_t len;

	*bounced = false;
	if (!c->hbm)
		return c->host + c->pos;
	if (pos < c->lo || pos + c->bytes > c->hi) {
		len = c->size - pos;
		c->window = chip_vm_hbm(m->x->job->vm, c->va + pos, c->write, &len);
		c->lo = pos;
		c->hi = c->window ? pos + len : pos;
		if (c->hi > c->size)
			c->hi = c->size;
	}
	if (pos + c->bytes <= c->hi) {
		if (*n > (c->hi - pos) / c->bytes)
			*n = (c->hi - pos) / c->bytes;
		return c->window + (pos - c->lo);
	}
	/* Not HBM, or an element across the end of what is contiguous. */
	*bounced = true;
	if (c->window)
		*n = 1;
	if (*n > BOUNCE_BYTES / c->bytes)
		*n = BOUNCE_BYTES / c->bytes;
	if (c->write)
		return c->bounce;
	code = chip_vm_read(m->x->job->vm, c->va + pos, c->bounce, *n * c->bytes, &bad);
	if (code != NEURON_FAULT_NONE) {
		copy_fault(m, code, m->t->src.hbm.arg, bad, *n * c->bytes, 0);
		return NULL;
	}
	return c->bounce;
}

/* --- moving ------------------------------------------------------------------------ */

static void move(struct copy *m, uint8_t *dst, const uint8_t *src, uint64_t n)
{
	const struct xfer *t = m->t;
	float *buf = m->x->row[0];

	if (t->dst.dtype == t->src.dtype) {
		memmove(dst, src, n * t->dst.bytes);
		return;
	}
	while (n) {
		uint32_t part = n < SBUF_ELEMENTS ? n : SBUF_ELEMENTS;

		m->x->num->load(t->src.dtype, buf, src, t->src.bytes, part);
		if (m->x->stochastic)
			num_store_sr(t->dst.dtype, dst, t->dst.bytes, buf, part, &m->x->prng_sr);
		else
			m->x->num->store(t->dst.dtype, dst, t->dst.bytes, buf, part);
		src += (size_t)part * t->src.bytes;
		dst += (size_t)part * t->dst.bytes;
		n -= part;
	}
}

/* A long copy must not keep a reset or an INVALIDATE waiting. */
static bool copy_poll(struct copy *m, uint64_t n)
{
	m->since_poll += n * m->t->dst.bytes + ELEMENT_COST;
	if (m->since_poll < POLL_BYTES)
		return true;
	m->since_poll = 0;
	m->dst.lo = m->dst.hi = m->src.lo = m->src.hi = 0;
	return exec_poll(m->x);
}

static bool copy_elements(struct copy *m, uint64_t left)
{
	while (left) {
		uint64_t n = cursor_run(&m->src), run = cursor_run(&m->dst), bad = 0;
		bool src_bounced, dst_bounced;
		uint8_t *src, *dst;
		enum neuron_fault code;

		n = n < run ? n : run;
		n = n < left ? n : left;
		/* Pieces: a poll in between keeps its promise. */
		if (n > POLL_BYTES)
			n = POLL_BYTES;
		dst = cursor_map(m, &m->dst, &n, &dst_bounced);
		src = dst ? cursor_map(m, &m->src, &n, &src_bounced) : NULL;
		if (!src)
			return false;
		move(m, dst, src, n);
		if (dst_bounced) {
			code = chip_vm_write(m->x->job->vm, m->dst.va + m->dst.pos, dst,
					     n * m->dst.bytes, &bad);
			if (code != NEURON_FAULT_NONE)
				return copy_fault(m, code, m->t->dst.hbm.arg, bad,
						  n * m->dst.bytes, 0);
		}
		cursor_advance(&m->dst, n);
		cursor_advance(&m->src, n);
		left -= n;
		if (!copy_poll(m, n))
			return false;
	}
	return true;
}

/* --- gather and scatter -------------------------------------------------------------- */

/* Row @r of an indexed operand: its offset in the argument. 0: skip, negative: fault. */
static int row_start(struct copy *m, const struct hbm_opnd *h, unsigned int r, int64_t *start)
{
	__int128 lo, hi;
	int64_t index;
	uint32_t bits;
	unsigned int i;

	memcpy(&bits, h->index.base + r * h->index.stride, 4);
	bits = le32toh(bits);
	index = h->index.dtype == NEURON_DTYPE_INT32 ? (int64_t)(int32_t)bits : (int64_t)bits;
	lo = (__int128)h->offset + (__int128)index * h->stride[h->dims - 1];
	hi = lo;
	for (i = 0; i + 1 < h->dims; i++) {
		__int128 span = (__int128)h->stride[i] * (int64_t)(h->count[i] - 1);

		if (span < 0)
			lo += span;
		else
			hi += span;
	}
	if (index < 0 || (h->row_bound && (uint64_t)index >= h->row_bound) ||
	    lo < 0 || hi + h->bytes > (__int128)h->size) {
		if (m->t->insn->w.flags & NEURON_FLAG_OOB_SKIP)
			return 0;
		copy_fault(m, NEURON_FAULT_OOB_INDEX, bits, h->arg, h->row_bound, r);
		return -1;
	}
	*start = (int64_t)((__int128)h->offset + (__int128)index * h->stride[h->dims - 1]);
	return 1;
}

static bool copy_rows(struct copy *m)
{
	const struct xfer *t = m->t;
	const struct hbm_opnd *lead = t->dst.hbm.indexed ? &t->dst.hbm : &t->src.hbm;
	unsigned int rows = lead->index.parts, r;
	uint64_t per_row = t->src.elements / rows;

	if (t->dst.hbm.indexed && t->src.hbm.indexed && t->src.hbm.index.parts != rows)
		return copy_fault(m, NEURON_FAULT_BAD_OPERAND, 1, t->src.hbm.index.parts, rows, 0);
	for (r = 0; r < rows; r++) {
		int64_t dst = t->dst.is_hbm ? t->dst.hbm.offset : 0;
		int64_t src = t->src.is_hbm ? t->src.hbm.offset : 0;
		int ok = 1;

		if (t->dst.hbm.indexed)
			ok = row_start(m, &t->dst.hbm, r, &dst);
		if (ok > 0 && t->src.hbm.indexed)
			ok = row_start(m, &t->src.hbm, r, &src);
		if (ok < 0)
			return false;
		if (!ok)
			continue;
		cursor_seek(&m->dst, dst, t->dst.hbm.indexed ? 0 : r * per_row);
		cursor_seek(&m->src, src, t->src.hbm.indexed ? 0 : r * per_row);
		if (!copy_elements(m, per_row))
			return false;
	}
	return true;
}

void copy_run_xfer(struct exec *x, struct exec_core *c, struct xfer *t)
{
	struct copy m;

	m.x = x;
	m.c = c;
	m.t = t;
	m.since_poll = 0;
	if (!t->src.elements)
		return;
	cursor_init(&m.dst, &t->dst, true);
	cursor_init(&m.src, &t->src, false);
	if (t->dst.hbm.indexed || t->src.hbm.indexed) {
		copy_rows(&m);
		return;
	}
	cursor_seek(&m.dst, t->dst.is_hbm ? t->dst.hbm.offset : 0, 0);
	cursor_seek(&m.src, t->src.is_hbm ? t->src.hbm.offset : 0, 0);
	copy_elements(&m, t->src.elements);
}
