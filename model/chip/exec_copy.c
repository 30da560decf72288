// SPDX-License-Identifier: MIT
/*
 * The bytes of a DMA transfer. Elements are taken in order on all sides; runs that
 * all sides have without gaps are copied, cast or added at once.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exec_copy.h"

#define POLL_BYTES	(1u << 20)
#define ELEMENT_COST	16	/* of an element by itself, in bytes, for polling */

bool copy_fault(struct copy *m, enum neuron_fault code, uint32_t index, uint64_t addr,
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

void cursor_add(struct cursor *c, uint64_t count, int64_t stride)
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

void cursor_begin(struct cursor *c, const struct dma_side *side, bool write)
{
	c->hbm = side->is_hbm;
	c->write = write;
	c->arg = side->is_hbm ? side->hbm.arg : 0;
	c->dims = 0;
	c->dtype = side->dtype;
	c->bytes = side->bytes;
	c->lo = c->hi = 0;
	c->va = side->hbm.va;
	c->size = side->hbm.size;
	c->host = side->sb.base;
}

/* The outermost dimension of an indexed operand is left out. */
static void cursor_init(struct cursor *c, const struct dma_side *side, bool write)
{
	unsigned int i, dims = side->hbm.dims - side->hbm.indexed;

	cursor_begin(c, side, write);
	if (side->is_hbm) {
		for (i = 0; i < dims; i++)
			cursor_add(c, side->hbm.count[i], side->hbm.stride[i]);
		return;
	}
	for (i = 0; i < side->sb.dims; i++)
		cursor_add(c, side->sb.num[i], side->sb.step[i]);
	cursor_add(c, side->sb.parts, side->sb.stride);
}

/* Goes to element @n from @start. */
void cursor_seek(struct cursor *c, int64_t start, uint64_t n)
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
		copy_fault(m, code, c->arg, bad, *n * c->bytes, 0);
		return NULL;
	}
	return c->bounce;
}

/* --- moving ------------------------------------------------------------------------ */

/* Sums in the order of the sources, in fp32; one cast. */
static void combine(struct copy *m, uint8_t *dst, const uint8_t **src, uint64_t n)
{
	const struct num_ops *num = m->x->num;
	float *sum = m->x->row[0], *term = m->x->row[1];
	unsigned int i;
	uint32_t k;

	while (n) {
		uint32_t part = n < SBUF_ELEMENTS ? n : SBUF_ELEMENTS;

		for (i = 0; i < m->sources; i++) {
			num->load(m->src[i].dtype, i ? term : sum, src[i], m->src[i].bytes, part);
			for (k = 0; i && k < part; k++)
				sum[k] += term[k];
			src[i] += (size_t)part * m->src[i].bytes;
		}
		if (m->x->stochastic)
			num_store_sr(m->dst.dtype, dst, m->dst.bytes, sum, part, &m->x->prng_sr);
		else
			num->store(m->dst.dtype, dst, m->dst.bytes, sum, part);
		dst += (size_t)part * m->dst.bytes;
		n -= part;
	}
}

static void move(struct copy *m, uint8_t *dst, const uint8_t **src, uint64_t n)
{
	if (m->sources == 1 && m->dst.dtype == m->src[0].dtype)
		memmove(dst, src[0], n * m->dst.bytes);
	else
		combine(m, dst, src, n);
}

/* A long copy must not keep a reset or an INVALIDATE waiting. */
static bool copy_poll(struct copy *m, uint64_t n)
{
	unsigned int i;

	m->since_poll += n * m->dst.bytes + ELEMENT_COST;
	if (m->since_poll < POLL_BYTES)
		return true;
	m->since_poll = 0;
	m->dst.lo = m->dst.hi = 0;
	for (i = 0; i < m->sources; i++)
		m->src[i].lo = m->src[i].hi = 0;
	return exec_poll(m->x);
}

/* One piece that lies together on all sides. 0: faulted. */
static uint64_t copy_piece(struct copy *m, uint64_t n)
{
	const uint8_t *src[COPY_SOURCES];
	uint64_t run = cursor_run(&m->dst), bad = 0;
	bool bounced, dst_bounced;
	enum neuron_fault code;
	unsigned int i;
	uint8_t *dst;

	n = run < n ? run : n;
	for (i = 0; i < m->sources; i++) {
		run = cursor_run(&m->src[i]);
		n = run < n ? run : n;
	}
	/* Pieces: a poll in between keeps its promise. */
	if (n > POLL_BYTES)
		n = POLL_BYTES;
	dst = cursor_map(m, &m->dst, &n, &dst_bounced);
	if (!dst)
		return 0;
	for (i = 0; i < m->sources; i++) {
		src[i] = cursor_map(m, &m->src[i], &n, &bounced);
		if (!src[i])
			return 0;
	}
	move(m, dst, src, n);
	if (!dst_bounced)
		return n;
	code = chip_vm_write(m->x->job->vm, m->dst.va + m->dst.pos, dst, n * m->dst.bytes, &bad);
	if (code == NEURON_FAULT_NONE)
		return n;
	copy_fault(m, code, m->dst.arg, bad, n * m->dst.bytes, 0);
	return 0;
}

bool copy_elements(struct copy *m, uint64_t left)
{
	unsigned int i;

	while (left) {
		uint64_t n = copy_piece(m, left);

		if (!n)
			return false;
		cursor_advance(&m->dst, n);
		for (i = 0; i < m->sources; i++)
			cursor_advance(&m->src[i], n);
		left -= n;
		if (!copy_poll(m, n))
			return false;
	}
	return true;
}

/* --- gather and scatter -------------------------------------------------------------- */

/* Row @r of an indexed operand: its offset in the argument. 0: skip, negative: fault. */
int copy_row_start(struct copy *m, const struct hbm_opnd *h, unsigned int r, int64_t *start)
{
	__int128 lo, hi;
	int64_t index;
	uint32_t bits;
	unsigned int i;

	bits = hbm_index_bits(h, r);
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
		copy_fault(m, NEURON_FAULT_OOB_INDEX, bits, h->arg, h->row_bound,
			   r % h->index.parts);
		return -1;
	}
	*start = (int64_t)((__int128)h->offset + (__int128)index * h->stride[h->dims - 1]);
	return 1;
}

/* Adding to rows by index: the published limit is that indices are unique. */
static bool unique(struct copy *m, const struct hbm_opnd *h)
{
	unsigned int i, k;

	for (i = 1; i < h->index.parts; i++) {
		uint32_t bits = hbm_index_bits(h, i);

		for (k = 0; k < i; k++) {
			if (hbm_index_bits(h, k) != bits)
				continue;
			return copy_fault(m, NEURON_FAULT_BAD_OPERAND, 0, bits, k, i);
		}
	}
	return true;
}

static const struct dma_side *side_of(const struct copy *m, unsigned int i)
{
	return i < m->sources ? m->side[i] : &m->t->dst;
}

static struct cursor *cursor_of(struct copy *m, unsigned int i)
{
	return i < m->sources ? &m->src[i] : &m->dst;
}

/* All sides to row @r. 0: the row is left out, negative: faulted. */
static int seek_row(struct copy *m, unsigned int r, uint64_t per_row)
{
	unsigned int i;

	for (i = 0; i <= m->sources; i++) {
		const struct dma_side *side = side_of(m, i);
		int64_t start = side->is_hbm ? side->hbm.offset : 0;
		int ok = side->hbm.indexed ? copy_row_start(m, &side->hbm, r, &start) : 1;

		if (ok <= 0)
			return ok;
		cursor_seek(cursor_of(m, i), start, side->hbm.indexed ? 0 : r * per_row);
	}
	return 1;
}

static bool copy_rows(struct copy *m, unsigned int rows)
{
	uint64_t per_row = m->t->dst.elements / rows;
	unsigned int r, i;
	int ok;

	for (i = 0; i <= m->sources; i++)
		if (side_of(m, i)->hbm.indexed && side_of(m, i)->hbm.index.parts != rows)
			return copy_fault(m, NEURON_FAULT_BAD_OPERAND, i,
					  side_of(m, i)->hbm.index.parts, rows, 0);
	if (m->t->dst.hbm.indexed && m->sources > 1 && !unique(m, &m->t->dst.hbm))
		return false;
	for (r = 0; r < rows; r++) {
		ok = seek_row(m, r, per_row);
		if (ok < 0 || (ok && !copy_elements(m, per_row)))
			return false;
	}
	return true;
}

/* What is added up, in order: with ACCUMULATE the destination first. */
static void find_sources(struct copy *m)
{
	const struct xfer *t = m->t;
	unsigned int i;

	m->sources = 0;
	if (t->insn->w.flags & NEURON_FLAG_ACCUMULATE)
		m->side[m->sources++] = &t->dst;
	for (i = 0; i < t->sources; i++)
		m->side[m->sources++] = xfer_source(t, i);
}

static void run_copy(struct copy *m)
{
	unsigned int i, rows = 0;

	cursor_init(&m->dst, &m->t->dst, true);
	for (i = 0; i < m->sources; i++)
		cursor_init(&m->src[i], m->side[i], false);
	for (i = 0; i <= m->sources && !rows; i++)
		rows = side_of(m, i)->hbm.indexed ? side_of(m, i)->hbm.index.parts : 0;
	if (rows) {
		copy_rows(m, rows);
		return;
	}
	for (i = 0; i <= m->sources; i++)
		cursor_seek(cursor_of(m, i), side_of(m, i)->is_hbm ? side_of(m, i)->hbm.offset : 0, 0);
	copy_elements(m, m->t->dst.elements);
}

void copy_run_xfer(struct exec *x, struct exec_core *c, struct xfer *t)
{
	struct copy *m = x->copy;

	if (!t->dst.elements || x->timing_only)
		return;
	if (!m)
		m = x->copy = malloc(sizeof(*m));
	if (!m) {
		exec_fault_at(x, NEURON_FAULT_INTERNAL, c->index, t->engine, t->pc, t->insn);
		return;
	}
	m->x = x;
	m->c = c;
	m->t = t;
	m->since_poll = 0;
	find_sources(m);
	if (t->insn->w.opcode == NEURON_OP_DMA_TRANSPOSE)
		copy_transpose(m);
	else
		run_copy(m);
}
