// SPDX-License-Identifier: MIT
/*
 * Operands of DMA instructions: from words to checked addresses, the published limits
 * of each kind of transfer, and what it costs.
 */
#include <endian.h>
#include <string.h>

#include "exec_state.h"

#define MAX_ELEMENTS	(1ull << 40)
#define SPLIT_BYTES	4096u		/* long rows are split over idle engines down to this */
#define AUX_USED	(NEURON_DMA_QUEUE_MASK | 3u << NEURON_DMA_PRIORITY_SHIFT | \
			 3u << NEURON_DMA_DGE_SHIFT | 0xffu << NEURON_DMA_CORE_SHIFT)

/* --- operands --------------------------------------------------------------------- */

static bool hbm_counts(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
		       struct dma_side *side)
{
	struct hbm_opnd *h = &side->hbm;
	unsigned int i;

	if (!d->dims || d->dims > NEURON_DMA_DIMS)
		return exec_bad(s, index, d->dims, NEURON_DMA_DIMS);
	h->dims = d->dims;
	side->elements = 1;
	for (i = 0; i < d->dims; i++) {
		h->count[i] = d->count[i];
		h->stride[i] = d->stride[i];
		if (!h->count[i])
			return exec_bad(s, index, 0, MAX_ELEMENTS);
	}
	if (d->count_reg != NEURON_REG_NONE) {
		if (d->count_reg >= NEURON_REGS || d->count_dim >= d->dims)
			return exec_bad(s, index, d->count_reg, NEURON_REGS - 1);
		if (!seq_reg_known(s, d->count_reg))
			return false;
		h->count[d->count_dim] = s->reg[d->count_reg];
	}
	for (i = 0; i < d->dims; i++) {
		side->elements *= h->count[i];
		if (side->elements > MAX_ELEMENTS)
			return exec_bad(s, index, side->elements, MAX_ELEMENTS);
	}
	return true;
}

/* The operand's first byte, from the start of the argument. */
static bool hbm_offset(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
		       struct hbm_opnd *h)
{
	__int128 offset = (__int128)d->offset;

	if (d->offset_reg != NEURON_REG_NONE) {
		if (d->offset_reg >= NEURON_REGS)
			return exec_bad(s, index, d->offset_reg, NEURON_REGS - 1);
		offset += (__int128)(int32_t)s->reg[d->offset_reg] * (int64_t)d->offset_scale;
	}
	if (offset < INT64_MIN || offset > INT64_MAX)
		offset = INT64_MAX;	/* outside any argument: the bounds check says so */
	h->offset = offset;
	return true;
}

static bool hbm_index(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
		      struct hbm_opnd *h)
{
	h->indexed = d->index.space != NEURON_SPACE_NONE;
	h->row_bound = d->row_bound;
	if (!h->indexed)
		return true;
	/* The published form: rows of a tensor, its leading dimension. */
	if (d->index_dim != (uint32_t)d->dims - 1)
		return exec_bad(s, index, d->index_dim, d->dims - 1);
	if (!opnd_resolve(s, &d->index, index, SPACE_BIT(NEURON_SPACE_SBUF), &h->index))
		return false;
	if (h->index.dtype != NEURON_DTYPE_INT32 && h->index.dtype != NEURON_DTYPE_UINT32)
		return exec_bad(s, index, h->index.dtype, NEURON_DTYPE_UINT32);
	if (h->index.n != 1 && s->cur->w.opcode != NEURON_OP_DMA_TRANSPOSE)
		return exec_bad(s, index, h->index.n, 1);
	if (h->count[h->dims - 1] != (uint64_t)h->index.parts * h->index.n)
		return exec_bad(s, index, h->count[h->dims - 1],
				(uint64_t)h->index.parts * h->index.n);
	return true;
}

/* Everything but an index is known now: the operand must stay in its argument. */
static bool hbm_bounds(struct stream *s, const struct hbm_opnd *h)
{
	__int128 lo = h->offset, hi = lo;
	struct neuron_fault_record *f;
	unsigned int i;

	for (i = 0; i < h->dims; i++) {
		__int128 span = (__int128)h->stride[i] * (int64_t)(h->count[i] - 1);

		if (!h->count[i])
			return true;
		if (h->indexed && i == h->dims - 1u)
			continue;
		if (span < 0)
			lo += span;
		else
			hi += span;
	}
	hi += h->bytes;
	if (lo >= 0 && hi <= (__int128)h->size)
		return true;
	f = exec_fault(s->x, s, NEURON_FAULT_ARG_BOUNDS);
	f->space = NEURON_SPACE_HBM;
	f->index = htole32(h->arg);
	f->addr = htole64((uint64_t)(lo < 0 ? lo : hi - h->bytes));
	f->size = htole64((uint64_t)(hi - lo));
	f->value = htole64(h->size);
	return false;
}

static bool hbm_resolve(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
			unsigned int need, struct dma_side *side)
{
	struct hbm_opnd *h = &side->hbm;
	struct neuron_fault_record *f;
	const struct neuron_arg *arg;

	if (d->flags)
		return exec_bad(s, index, d->flags, 0);
	if (d->arg >= s->x->args)
		return exec_bad(s, index, d->arg, s->x->args);
	arg = &s->x->arg[d->arg];
	if ((arg->access & need) != need) {
		f = exec_fault(s->x, s, NEURON_FAULT_ARG_ACCESS);
		f->space = NEURON_SPACE_HBM;
		f->index = htole32(d->arg);
		return false;
	}
	if (!num_dtype(d->dtype)->bytes)
		return exec_bad(s, index, d->dtype, NEURON_DTYPE_FLOAT8_E4M3FN);
	h->arg = d->arg;
	h->va = arg->va;
	h->size = arg->size;
	h->dtype = side->dtype = d->dtype;
	h->bytes = side->bytes = num_dtype(d->dtype)->bytes;
	return hbm_counts(s, d, index, side) && hbm_offset(s, d, index, h) &&
	       hbm_index(s, d, index, h) && hbm_bounds(s, h);
}

bool dma_hbm_side(struct stream *s, unsigned int index, unsigned int need, struct dma_side *side)
{
	const struct neuron_dma_operand *d = &s->cur->dma[index];

	if (d->space != NEURON_SPACE_HBM)
		return exec_bad(s, index, d->space, NEURON_SPACE_HBM);
	side->is_hbm = true;
	side->sb.space = NEURON_SPACE_NONE;
	return hbm_resolve(s, d, index, need, side);
}

/* --- SBUF ----------------------------------------------------------------------------- */

/* Another core's SBUF: the same place there. */
static bool side_retarget(struct stream *s, unsigned int index, unsigned int core,
			  struct dma_side *side)
{
	struct core_mem *here = &stream_core(s)->core->mem[NEURON_SPACE_SBUF], *there;

	if (s->x->job->nc_version < 3)
		return exec_bad(s, index, core + 1, 0);
	if (core >= s->x->cores)
		return exec_bad(s, index, core + 1, s->x->cores);
	side->core = core;
	side->remote = core != s->core;
	if (!side->remote || !side->sb.n)
		return true;
	there = &s->x->core[core]->core->mem[NEURON_SPACE_SBUF];
	side->sb.base = there->base + (side->sb.base - here->base);
	core_mem_validate(s->x->core[core]->core, there, side->sb.lo, side->sb.hi);
	return true;
}

static bool side_sbuf(struct stream *s, unsigned int index, const struct neuron_dma_operand *d,
		      const struct neuron_ap *ap, struct dma_side *side)
{
	if (d->space != NEURON_SPACE_SBUF)
		return exec_bad(s, index, d->space, NEURON_SPACE_SBUF);
	if (!opnd_resolve(s, ap, index, SPACE_BIT(NEURON_SPACE_SBUF), &side->sb))
		return false;
	side->dtype = side->sb.dtype;
	side->bytes = side->sb.bytes;
	side->elements = (uint64_t)side->sb.n * side->sb.parts;
	side->hbm.indexed = false;
	side->core = s->core;
	side->remote = false;
	return !d->arg || side_retarget(s, index, d->arg - 1u, side);
}

/* Word @index of the operands: 0 is the destination, which @need may also read. */
static bool side_resolve(struct stream *s, unsigned int index, unsigned int need,
			 struct dma_side *side)
{
	const struct neuron_dma_operand *d = &s->cur->dma[index];
	bool own_ap = index && s->cur->w.opcode == NEURON_OP_DMA_COMPUTE;
	const struct neuron_ap *ap = own_ap ? &d->index : &s->cur->w.ap[index];

	side->remote = false;
	side->is_hbm = d->space == NEURON_SPACE_HBM;
	if (!side->is_hbm)
		return side_sbuf(s, index, d, ap, side);
	side->sb.space = NEURON_SPACE_NONE;
	if (!own_ap && ap->space != NEURON_SPACE_NONE)
		return exec_bad(s, index, ap->space, NEURON_SPACE_NONE);
	return hbm_resolve(s, d, index, need, side);
}

/* --- limits ---------------------------------------------------------------------------- */

static unsigned int dge(const struct stream *s)
{
	return s->cur->w.aux >> NEURON_DMA_DGE_SHIFT & 3;
}

bool dma_is_swdge(const struct stream *s)
{
	return dge(s) == NEURON_DGE_SWDGE;
}

static bool aux_valid(struct stream *s)
{
	uint32_t aux = s->cur->w.aux, core = aux >> NEURON_DMA_CORE_SHIFT;
	bool own = !core || core == s->core + 1u;

	if ((aux & NEURON_DMA_QUEUE_MASK) >= NEURON_DMA_QUEUES)
		return exec_bad(s, 7, aux & NEURON_DMA_QUEUE_MASK, NEURON_DMA_QUEUES - 1);
	if (aux & ~AUX_USED)
		return exec_bad(s, 7, aux, AUX_USED);
	if (core > s->x->cores || (!own && s->x->job->nc_version < 3))
		return exec_bad(s, 7, aux, s->x->job->nc_version < 3 ? 0 : s->x->cores);
	return true;
}

/* Who may write which descriptors. */
static bool dge_valid(struct stream *s, bool indexed, bool same_types)
{
	uint32_t aux = s->cur->w.aux;

	switch (dge(s)) {
	case NEURON_DGE_SWDGE:
		return s->engine == NEURON_ENGINE_POOL || exec_bad(s, 7, aux, NEURON_DGE_SWDGE);
	case NEURON_DGE_HWDGE:
		return (s->x->timing->dge_trigger && same_types && !indexed &&
			(s->engine == NEURON_ENGINE_SP || s->engine == NEURON_ENGINE_ACT)) ||
		       exec_bad(s, 7, aux, NEURON_DGE_HWDGE);
	case NEURON_DGE_NONE:
		return !indexed || exec_bad(s, 7, aux, NEURON_DGE_NONE);
	}
	return true;
}

static bool same_elements(struct stream *s, unsigned int sources)
{
	unsigned int i;

	for (i = 0; i < sources; i++)
		if (s->dma_src[i].elements != s->dma_dst.elements)
			return exec_bad(s, i + 1, s->dma_src[i].elements, s->dma_dst.elements);
	return true;
}

static bool accumulates(const struct stream *s)
{
	return s->cur->w.flags & NEURON_FLAG_ACCUMULATE;
}

static bool copy_prepare(struct stream *s)
{
	unsigned int need = NEURON_ARG_WRITE | (accumulates(s) ? NEURON_ARG_READ : 0);
	const struct dma_side *d = &s->dma_dst, *src = &s->dma_src[0];

	if (accumulates(s) && s->cur->w.op[0] != NEURON_ALU_ADD)
		return exec_bad(s, 6, s->cur->w.op[0], NEURON_ALU_ADD);
	if (!side_resolve(s, 0, need, &s->dma_dst) ||
	    !side_resolve(s, 1, NEURON_ARG_READ, &s->dma_src[0]) || !same_elements(s, 1))
		return false;
	/* Packed values have no sum and no cast. */
	if ((num_packed(d->dtype) || num_packed(src->dtype)) &&
	    (d->dtype != src->dtype || accumulates(s)))
		return exec_bad(s, 1, src->dtype, d->dtype);
	return dge_valid(s, d->hbm.indexed || src->hbm.indexed, d->dtype == src->dtype);
}

/* Gather-add and scatter-add: dst += the other operand, which may have rows by index. */
static bool compute_indexed(struct stream *s, unsigned int sources)
{
	const struct neuron_dma_operand *d = s->cur->dma;

	if (sources != 2)
		return exec_bad(s, 1, sources, 2);
	if (dge(s) != NEURON_DGE_SWDGE && dge(s) != NEURON_DGE_UNKNOWN)
		return exec_bad(s, 7, s->cur->w.aux, NEURON_DGE_SWDGE);
	/* One of them is what is added to. */
	if (s->dma_dst.hbm.indexed && memcmp(&d[0], &d[1], sizeof(d[0])) &&
	    memcmp(&d[0], &d[2], sizeof(d[0])))
		return exec_bad(s, 1, sources, 2);
	return true;
}

static bool compute_prepare(struct stream *s)
{
	unsigned int i, sources = s->cur->w.words - 2u;
	bool indexed;

	if (s->cur->w.op[0] != NEURON_ALU_ADD)
		return exec_bad(s, 6, s->cur->w.op[0], NEURON_ALU_ADD);
	if (!side_resolve(s, 0, NEURON_ARG_WRITE, &s->dma_dst))
		return false;
	indexed = s->dma_dst.hbm.indexed;
	for (i = 0; i < sources; i++) {
		if (!side_resolve(s, i + 1, NEURON_ARG_READ, &s->dma_src[i]))
			return false;
		/* Packed values have no sum. */
		if (num_packed(s->dma_dst.dtype) || num_packed(s->dma_src[i].dtype))
			return exec_bad(s, i + 1, s->dma_src[i].dtype, NEURON_DTYPE_FLOAT32);
		indexed |= s->dma_src[i].hbm.indexed;
	}
	if (!same_elements(s, sources) || (indexed && !compute_indexed(s, sources)))
		return false;
	/* The generators of hardware copy only. */
	return dge(s) == NEURON_DGE_HWDGE ? exec_bad(s, 7, s->cur->w.aux, NEURON_DGE_NONE) :
					    dge_valid(s, indexed, true);
}

/* Counts from the outermost axis on; partitions are the first of a SBUF operand's. */
static unsigned int side_shape(const struct dma_side *side, uint64_t *shape)
{
	unsigned int i, n = 0;

	if (side->is_hbm) {
		for (i = side->hbm.dims; i--;)
			shape[n++] = side->hbm.count[i];
		return n;
	}
	shape[n++] = side->sb.parts;
	for (i = side->sb.dims; i--;)
		shape[n++] = side->sb.num[i];
	return n;
}

static bool transpose_shape(struct stream *s, const uint64_t *src, unsigned int rank)
{
	const uint8_t *axes = dma_axes(s->cur->w.op[0]);
	uint64_t dst[NEURON_DMA_DIMS + 1];
	unsigned int k, n = side_shape(&s->dma_dst, dst);

	if (rank != axes[0])
		return exec_bad(s, 1, rank, axes[0]);
	if (n != rank)
		return exec_bad(s, 0, n, rank);
	for (k = 0; k < n; k++)
		if (dst[k] != src[axes[1 + k]])
			return exec_bad(s, 0, dst[k], src[axes[1 + k]]);
	return true;
}

/* Published for the indirect form, and for hardware descriptors. */
static bool transpose_limits(struct stream *s, const uint64_t *src, unsigned int rank)
{
	const struct dma_side *side = &s->dma_src[0];
	uint64_t first = src[0], last = src[rank - 1];

	if (side->hbm.indexed) {
		if (s->x->job->nc_version < 3 || side->bytes != 2)
			return exec_bad(s, 1, side->bytes, s->x->job->nc_version < 3 ? 0 : 2);
		if (last > 128 || first % 16)
			return exec_bad(s, 1, last > 128 ? last : first, last > 128 ? 128 : 16);
		if (side->hbm.index.dtype != NEURON_DTYPE_UINT32)
			return exec_bad(s, 1, side->hbm.index.dtype, NEURON_DTYPE_UINT32);
		if (side->hbm.index.parts % 16 ||
		    (side->hbm.index.n > 1 && side->hbm.index.parts != 128))
			return exec_bad(s, 1, side->hbm.index.parts, side->hbm.index.n > 1 ? 128 : 16);
		return dge(s) == NEURON_DGE_SWDGE || dge(s) == NEURON_DGE_UNKNOWN ||
		       exec_bad(s, 7, s->cur->w.aux, NEURON_DGE_SWDGE);
	}
	if (side->bytes != 2 && side->bytes != 4)
		return exec_bad(s, 1, side->bytes, 4);
	if (dge(s) == NEURON_DGE_SWDGE)
		return exec_bad(s, 7, s->cur->w.aux, NEURON_DGE_HWDGE);
	if (dge(s) != NEURON_DGE_HWDGE)
		return true;
	if (side->bytes != 2)
		return exec_bad(s, 1, side->bytes, 2);
	if (last > 128)
		return exec_bad(s, 1, last, 128);
	if (rank == 2 ? first != 16 : !first || first > 16 || first & (first - 1) ||
				      first * src[rank - 2] % 16)
		return exec_bad(s, 1, first, 16);
	return true;
}

static bool transpose_prepare(struct stream *s)
{
	uint64_t src[NEURON_DMA_DIMS + 1];
	unsigned int rank;

	if (!dma_axes(s->cur->w.op[0]))
		return exec_bad(s, 6, s->cur->w.op[0], NEURON_AXES_3120);
	if (!side_resolve(s, 0, NEURON_ARG_WRITE, &s->dma_dst) ||
	    !side_resolve(s, 1, NEURON_ARG_READ, &s->dma_src[0]))
		return false;
	if (s->dma_dst.dtype != s->dma_src[0].dtype)
		return exec_bad(s, 0, s->dma_dst.dtype, s->dma_src[0].dtype);
	if (s->dma_dst.hbm.indexed)
		return exec_bad(s, 0, 1, 0);
	rank = side_shape(&s->dma_src[0], src);
	if (!transpose_shape(s, src, rank) || !transpose_limits(s, src, rank))
		return false;
	return s->dma_src[0].hbm.indexed || dge_valid(s, false, true);
}

const uint8_t *dma_axes(unsigned int op)
{
	static const uint8_t axes[][5] = {
		[NEURON_AXES_10] = { 2, 1, 0 },
		[NEURON_AXES_210] = { 3, 2, 1, 0 },
		[NEURON_AXES_3120] = { 4, 3, 1, 2, 0 },
	};

	return op < sizeof(axes) / sizeof(axes[0]) ? axes[op] : NULL;
}

/* --- cost ------------------------------------------------------------------------------ */

uint64_t side_run(const struct dma_side *side)
{
	uint64_t run = side->bytes;
	unsigned int i;

	if (!side->is_hbm) {
		for (i = 0; i < side->sb.dims; i++) {
			if (side->sb.num[i] == 1)
				continue;
			if (side->sb.step[i] != (int64_t)run)
				break;
			run *= side->sb.num[i];
		}
		return run / side->bytes;
	}
	for (i = 0; i < side->hbm.dims; i++) {
		if (side->hbm.count[i] == 1)
			continue;
		if (side->hbm.stride[i] != (int64_t)run ||
		    (side->hbm.indexed && i == side->hbm.dims - 1u))
			break;
		run *= side->hbm.count[i];
	}
	return run / side->bytes;
}


static uint64_t shortest_run(const struct stream *s, unsigned int sources)
{
	uint64_t run = side_run(&s->dma_dst), r;
	unsigned int i;

	for (i = 0; i < sources; i++) {
		r = side_run(&s->dma_src[i]);
		run = r < run ? r : run;
	}
	return run;
}

/* Rows round the engines; fewer rows than engines are cut into pieces. */
static void copy_cost(const struct stream *s, unsigned int sources, struct dma_cost *cost)
{
	uint64_t run = shortest_run(s, sources), elements = s->dma_dst.elements;
	uint64_t wide = s->dma_dst.bytes, rows, bytes, split;
	unsigned int i;

	for (i = 0; i < sources; i++)
		wide = s->dma_src[i].bytes > wide ? s->dma_src[i].bytes : wide;
	cost->bytes = elements * wide;
	if (!cost->bytes)
		return;
	rows = (elements + run - 1) / run;
	bytes = run * wide;
	split = bytes / SPLIT_BYTES;
	if (rows < DMA_ENGINES && split > 1) {
		if (split > DMA_ENGINES / rows)
			split = DMA_ENGINES / rows;
		rows *= split;
		bytes = (bytes + split - 1) / split;
	}
	cost->rows = rows;
	cost->width = rows < DMA_ENGINES ? rows : DMA_ENGINES;
	cost->work = timing_dma_rows(s->x->timing, (rows + DMA_ENGINES - 1) / DMA_ENGINES, bytes);
}

/* Tiles of 16 rows: the elements' own distances do not matter. */
static void transpose_cost(const struct stream *s, struct dma_cost *cost)
{
	const struct timing *t = s->x->timing;
	bool hbm = s->dma_dst.is_hbm || s->dma_src[0].is_hbm;

	cost->bytes = s->dma_dst.elements * s->dma_dst.bytes;
	cost->rows = (cost->bytes + SPLIT_BYTES - 1) / SPLIT_BYTES;
	cost->width = cost->rows < DMA_ENGINES ? cost->rows : DMA_ENGINES;
	if (!cost->bytes)
		return;
	cost->work = timing_dma_rows(t, 1, (cost->bytes + cost->width - 1) / cost->width);
	cost->work = cost->work * 100 / (hbm ? t->transpose_hbm : t->transpose_sbuf);
}

static void find_cost(struct stream *s, unsigned int sources)
{
	struct dma_cost *cost = &s->dma_cost;
	unsigned int i, reads = sources;

	*cost = (struct dma_cost){ .width = 1 };
	if (s->cur->w.opcode == NEURON_OP_DMA_TRANSPOSE)
		transpose_cost(s, cost);
	else
		copy_cost(s, sources, cost);
	cost->hbm = s->dma_dst.is_hbm;
	for (i = 0; i < sources; i++)
		cost->hbm += s->dma_src[i].is_hbm;
	if (accumulates(s)) {
		cost->hbm += s->dma_dst.is_hbm;
		reads = s->x->timing->sbuf_add_full && !s->dma_dst.is_hbm ? 1 : 2;
	} else if (s->cur->w.opcode == NEURON_OP_DMA_COMPUTE && sources < 2) {
		reads = 2;
	}
	/* Half the copy rate for two sources. */
	cost->work *= reads;
}

bool dma_prepare(struct stream *s)
{
	unsigned int sources = s->cur->w.words - 2u;
	bool ok;

	if (!aux_valid(s))
		return false;
	if (s->cur->w.flags & ~(NEURON_FLAG_OOB_SKIP | NEURON_FLAG_ACCUMULATE) ||
	    (accumulates(s) && s->cur->w.opcode != NEURON_OP_DMA_COPY))
		return exec_bad(s, 13, s->cur->w.flags, NEURON_FLAG_OOB_SKIP);
	switch (s->cur->w.opcode) {
	case NEURON_OP_DMA_TRANSPOSE:
		ok = transpose_prepare(s);
		break;
	case NEURON_OP_DMA_COMPUTE:
		ok = compute_prepare(s);
		break;
	default:
		ok = copy_prepare(s);
	}
	if (!ok)
		return false;
	find_cost(s, sources);
	s->op[0].n = s->op[1].n = s->op[2].n = 0;
	s->op[0].space = s->op[1].space = s->op[2].space = NEURON_SPACE_NONE;
	s->imm[0].vector = s->imm[1].vector = false;
	return true;
}

uint64_t dma_issue_ticks(const struct stream *s)
{
	const struct timing *t = s->x->timing;
	uint64_t cycles = t->dma_issue_cycles;

	if (dma_is_swdge(s))
		cycles += s->dma_cost.rows * t->swdge_row_cycles;
	return cycles * t->tick[s->engine];
}
