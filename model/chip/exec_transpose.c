// SPDX-License-Identifier: MIT
/*
 * DMA_TRANSPOSE: elements in the order of the destination, the source with its axes
 * in that order. Axes count from the outermost; partitions are axis 0 of SBUF.
 */
#include "exec_copy.h"

static uint64_t axis_count(const struct dma_side *side, unsigned int axis)
{
	if (side->is_hbm)
		return side->hbm.count[side->hbm.dims - 1 - axis];
	return axis ? side->sb.num[side->sb.dims - axis] : side->sb.parts;
}

static int64_t axis_stride(const struct dma_side *side, unsigned int axis)
{
	if (side->is_hbm)
		return side->hbm.stride[side->hbm.dims - 1 - axis];
	return axis ? side->sb.step[side->sb.dims - axis] : (int64_t)side->sb.stride;
}

static int64_t side_start(const struct dma_side *side)
{
	return side->is_hbm ? side->hbm.offset : 0;
}

/* The first @rank axes of the destination. */
static void begin(struct copy *m, const uint8_t *axes, unsigned int rank)
{
	const struct dma_side *dst = &m->t->dst, *src = &m->t->src;
	unsigned int k;

	cursor_begin(&m->dst, dst, true);
	cursor_begin(&m->src[0], src, false);
	for (k = rank; k--;) {
		cursor_add(&m->dst, axis_count(dst, k), axis_stride(dst, k));
		cursor_add(&m->src[0], axis_count(src, axes[k]), axis_stride(src, axes[k]));
	}
}

/* Rows by index: axis 0 of the source, which all the orders put last. */
static void indirect(struct copy *m, const uint8_t *axes, unsigned int rank)
{
	const struct hbm_opnd *h = &m->t->src.hbm;
	unsigned int r, rows = h->index.parts * h->index.n;
	int64_t step = axis_stride(&m->t->dst, rank - 1), start = 0;
	uint64_t per_row = m->t->dst.elements / rows;

	begin(m, axes, rank - 1);
	for (r = 0; r < rows; r++) {
		int ok = copy_row_start(m, h, r, &start);

		if (ok < 0)
			return;
		if (!ok)
			continue;
		cursor_seek(&m->dst, side_start(&m->t->dst) + r * step, 0);
		cursor_seek(&m->src[0], start, 0);
		if (!copy_elements(m, per_row))
			return;
	}
}

void copy_transpose(struct copy *m)
{
	const uint8_t *axes = dma_axes(m->t->insn->w.op[0]);

	if (m->t->src.hbm.indexed) {
		indirect(m, axes + 1, axes[0]);
		return;
	}
	begin(m, axes + 1, axes[0]);
	cursor_seek(&m->dst, side_start(&m->t->dst), 0);
	cursor_seek(&m->src[0], side_start(&m->t->src), 0);
	copy_elements(m, m->t->dst.elements);
}
