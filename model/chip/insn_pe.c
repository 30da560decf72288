// SPDX-License-Identifier: MIT
/*
 * Tensor engine. LDWEIGHTS fills weights of a tile of the array that are not in use;
 * the next MATMUL of that tile takes them. A product accumulates in fp32 over k from 0
 * upwards, by fused multiply-add, in one pass; ACCUMULATE adds that sum to PSUM once.
 * insn_pe_mx.c and insn_pe_sparse.c have what is different for those operands.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exec_state.h"

#define PERF(w)		(((w)->flags >> NEURON_FLAG_PERF_SHIFT) & 3)
#define PERF_DOUBLE_ROW	1
#define ALL_CELLS	0xffffu

/* --- tiles ------------------------------------------------------------------------------ */

static unsigned int tile_field(uint32_t aux, unsigned int shift)
{
	return aux >> shift & 15;
}

/* Rows and columns of a tile; 0, the whole array, means 128. */
static unsigned int tile_rows(uint32_t aux)
{
	return aux ? 32 * tile_field(aux, NEURON_TILE_ROWS_SHIFT) : 128;
}

static unsigned int tile_columns(uint32_t aux)
{
	return aux ? 32 * tile_field(aux, NEURON_TILE_COLUMNS_SHIFT) : 128;
}

static uint16_t tile_cells(uint32_t aux)
{
	unsigned int row = tile_field(aux, NEURON_TILE_ROW_SHIFT);
	unsigned int column = tile_field(aux, NEURON_TILE_COLUMN_SHIFT);
	uint16_t cells = 0;
	unsigned int r, c;

	if (!aux)
		return ALL_CELLS;
	for (r = row; r < row + tile_rows(aux) / 32; r++)
		for (c = column; c < column + tile_columns(aux) / 32; c++)
			cells |= 1u << (4 * r + c);
	return cells;
}

static bool tile_side(struct stream *s, unsigned int position, unsigned int size)
{
	unsigned int least = s->x->job->nc_version >= 3 ? 1 : 2;

	if ((size != 1 && size != 2 && size != 4) || size < least)
		return exec_bad(s, 7, 32 * size, 32 * least);
	if (position % size || position >= 4)
		return exec_bad(s, 7, 32 * position, 32 * size);
	return true;
}

/* Double row and MX products divide rows only, sparse ones nothing. */
static bool tile_ok(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	uint32_t aux = w->aux;
	bool mx = w->opcode == NEURON_OP_LDWEIGHTS_MX || w->opcode == NEURON_OP_MATMUL_MX;

	if (!aux)
		return true;
	if (aux >> 16)
		return exec_bad(s, 7, aux, 0xffff);
	if (s->cur->index && aux & 0xff)
		return exec_bad(s, 7, aux & 0xff, 0);
	if (w->opcode == NEURON_OP_LDWEIGHTS_SPARSE || w->opcode == NEURON_OP_MATMUL_SPARSE)
		return exec_bad(s, 7, aux, 0);
	if (!tile_side(s, tile_field(aux, NEURON_TILE_ROW_SHIFT),
		       tile_field(aux, NEURON_TILE_ROWS_SHIFT)) ||
	    !tile_side(s, tile_field(aux, NEURON_TILE_COLUMN_SHIFT),
		       tile_field(aux, NEURON_TILE_COLUMNS_SHIFT)))
		return false;
	if ((mx || PERF(w)) && tile_columns(aux) != 128)
		return exec_bad(s, 7, tile_columns(aux), 128);
	if (s->op[1].parts > tile_rows(aux))
		return exec_bad(s, 1, s->op[1].parts, tile_rows(aux));
	return true;
}

/* Weights of exactly this tile, pending or at work. */
static struct pe_weights *find(struct pe *pe, uint32_t tile, bool pending)
{
	uint16_t cells = tile_cells(tile);
	unsigned int i;

	for (i = 0; i < 2 * PE_CELLS; i++) {
		struct pe_weights *w = &pe->slot[i];

		if (w->opcode && w->pending == pending && w->cells == cells)
			return w;
	}
	return NULL;
}

struct pe_weights *pe_weights_of(const struct stream *s)
{
	struct pe *pe = s->x->core[s->core]->pe;
	struct pe_weights *w = find(pe, s->cur->w.aux, true);

	return w ? w : find(pe, s->cur->w.aux, false);
}

/* Forgets what @cells had, at work or pending. */
static void drop(struct pe *pe, uint16_t cells, bool pending)
{
	unsigned int i;

	for (i = 0; i < 2 * PE_CELLS; i++)
		if (pe->slot[i].opcode && pe->slot[i].pending == pending && pe->slot[i].cells & cells)
			pe->slot[i].opcode = 0;
}

/* There is one: of each kind at most PE_CELLS that do not overlap. */
static struct pe_weights *unused(struct pe *pe)
{
	unsigned int i = 0;

	while (pe->slot[i].opcode)
		i++;
	return &pe->slot[i];
}

uint64_t pe_tile_free(struct stream *s)
{
	const struct pe *pe = stream_core(s)->pe;
	uint16_t cells = tile_cells(s->cur->w.aux);
	uint64_t ticks = 0;
	unsigned int i;

	for (i = 0; i < PE_CELLS; i++)
		if (cells >> i & 1 && pe->cell_free[i] > ticks)
			ticks = pe->cell_free[i];
	return ticks;
}

void pe_tile_busy(struct stream *s, uint64_t until)
{
	struct pe *pe = stream_core(s)->pe;
	uint16_t cells = tile_cells(s->cur->w.aux);
	unsigned int i;

	for (i = 0; i < PE_CELLS; i++)
		if (cells >> i & 1)
			pe->cell_free[i] = until;
}

void pe_reset(struct exec_core *c)
{
	unsigned int i;

	if (!c->pe)
		return;
	for (i = 0; i < 2 * PE_CELLS; i++)
		c->pe->slot[i].opcode = 0;
	memset(c->pe->cell_free, 0, sizeof(c->pe->cell_free));
}

/* --- checks ----------------------------------------------------------------------------- */

static bool is_fp8(unsigned int dtype)
{
	return dtype == NEURON_DTYPE_FLOAT8_E4M3 || dtype == NEURON_DTYPE_FLOAT8_E5M2 ||
	       dtype == NEURON_DTYPE_FLOAT8_E4M3FN;
}

static bool is_32bit(unsigned int dtype)
{
	return dtype == NEURON_DTYPE_FLOAT32 || dtype == NEURON_DTYPE_TFLOAT32;
}

/* An operand's type, alone. */
static bool pe_dtype(struct stream *s, unsigned int index)
{
	unsigned int dtype = s->op[index].dtype, nc = s->x->job->nc_version;

	if ((dtype == NEURON_DTYPE_FLOAT8_E4M3FN && nc < 4) ||
	    (dtype == NEURON_DTYPE_FLOAT8_E3M4 && nc > 3))
		return exec_bad(s, index, dtype, NEURON_DTYPE_BFLOAT16);
	if (PERF(&s->cur->w) > PERF_DOUBLE_ROW)
		return exec_bad(s, 12, PERF(&s->cur->w), PERF_DOUBLE_ROW);
	if (PERF(&s->cur->w) == PERF_DOUBLE_ROW &&
	    (nc < 3 || !is_fp8(dtype) || s->cur->w.flags & NEURON_FLAG_TRANSPOSE))
		return exec_bad(s, 12, PERF(&s->cur->w), 0);
	return true;
}

/* MX values mix freely: they are E5M2, E4M3FN or, as that, E2M1. */
static bool pe_pairing(unsigned int a, unsigned int b)
{
	if (is_32bit(a) != is_32bit(b))
		return false;
	return !((a == NEURON_DTYPE_FLOAT8_E4M3 && b == NEURON_DTYPE_FLOAT8_E4M3FN) ||
		 (b == NEURON_DTYPE_FLOAT8_E4M3 && a == NEURON_DTYPE_FLOAT8_E4M3FN));
}

/* Rows of the array that stack on each partition: 2 in double row mode. */
static unsigned int pe_rows(const struct neuron_insn *w)
{
	return PERF(w) == PERF_DOUBLE_ROW ? 2 : 1;
}

unsigned int pe_columns(const struct stream *s)
{
	return s->op[1].n / pe_rows(&s->cur->w);
}

static struct pe *pe_get(struct stream *s)
{
	struct exec_core *c = stream_core(s);

	if (!c->pe)
		c->pe = calloc(1, sizeof(*c->pe));
	if (!c->pe)
		exec_fault(s->x, s, NEURON_FAULT_INTERNAL);
	return c->pe;
}

static bool ldweights_prepare(struct stream *s)
{
	unsigned int rows = pe_rows(&s->cur->w), max = tile_columns(s->cur->w.aux);

	if (s->cur->w.opcode == NEURON_OP_LDWEIGHTS_MX)
		return pe_mx_ok(s, max) && (s->op[1].n % 2 == 0 || exec_bad(s, 1, s->op[1].n, max));
	if (!pe_dtype(s, 1))
		return false;
	if (!s->op[1].n || s->op[1].n % rows || s->op[1].n / rows > max)
		return exec_bad(s, 1, s->op[1].n, max * rows);
	return s->cur->w.opcode == NEURON_OP_LDWEIGHTS || pe_sparse_load_ok(s);
}

/*
 * Transposes pass bits through: dst has the input's type, fp8 in 16 bits. On v2 the
 * flag is only a label.
 */
static bool is_transpose(const struct stream *s)
{
	return s->cur->w.opcode == NEURON_OP_MATMUL && s->cur->w.flags & NEURON_FLAG_TRANSPOSE &&
	       s->x->job->nc_version >= 3;
}

static bool matmul_dst(struct stream *s, const struct pe_weights *w)
{
	const struct opnd *dst = &s->op[0];
	unsigned int nc = s->x->job->nc_version;
	unsigned int max = nc < 4 ? 512 : dst->bytes == 2 ? 8192 : 4096;

	if (is_transpose(s)) {
		if (w->rows != 1)
			return exec_bad(s, 12, w->perf, 0);
		if (dst->bytes != (num_dtype(w->dtype)->bytes == 1 ? 2 : num_dtype(w->dtype)->bytes))
			return exec_bad(s, 0, dst->dtype, w->dtype);
		if (s->cur->w.flags & NEURON_FLAG_ACCUMULATE)
			return exec_bad(s, 13, NEURON_FLAG_ACCUMULATE, 0);
	} else if (dst->dtype != NEURON_DTYPE_FLOAT32 &&
		   !(nc >= 4 && dst->dtype == NEURON_DTYPE_BFLOAT16)) {
		return exec_bad(s, 0, dst->dtype, NEURON_DTYPE_FLOAT32);
	}
	if (dst->n && nc < 4 &&
	    dst->lo / NEURON_PSUM_BANK_BYTES != (dst->hi - 1) / NEURON_PSUM_BANK_BYTES)
		return exec_bad(s, 0, dst->hi - dst->lo, NEURON_PSUM_BANK_BYTES);
	if (dst->n > max)
		return exec_bad(s, 0, dst->n, max);
	return true;
}

/* Did the LDWEIGHTS of the same kind load @w? */
static bool same_kind(const struct stream *s, const struct pe_weights *w)
{
	return w->opcode + 1 == s->cur->w.opcode;
}

/* The moving operand against weights and destination. */
static bool matmul_shape(struct stream *s, const struct pe_weights *w)
{
	unsigned int rows = s->cur->w.opcode == NEURON_OP_MATMUL_SPARSE ? w->ratio / 4 :
			    pe_rows(&s->cur->w);

	if (s->op[1].parts != w->parts)
		return exec_bad(s, 1, s->op[1].parts, w->parts);
	if (s->op[0].parts != w->m)
		return exec_bad(s, 0, s->op[0].parts, w->m);
	if (s->op[1].n != s->op[0].n * rows)
		return exec_bad(s, 1, s->op[1].n, s->op[0].n * rows);
	return true;
}

static bool matmul_prepare(struct stream *s)
{
	const struct pe_weights *w = pe_weights_of(s);

	if (!w)
		return exec_bad(s, 14, 0, 1);
	if (!same_kind(s, w))
		return exec_bad(s, 14, w->opcode, s->cur->w.opcode - 1);
	if (s->cur->w.opcode == NEURON_OP_MATMUL_MX ? !pe_mx_ok(s, 8192) : !pe_dtype(s, 1))
		return false;
	if (!matmul_dst(s, w))
		return false;
	if (!pe_pairing(w->dtype, s->op[1].dtype))
		return exec_bad(s, 1, s->op[1].dtype, w->dtype);
	if (w->perf != PERF(&s->cur->w))
		return exec_bad(s, 12, PERF(&s->cur->w), w->perf);
	return matmul_shape(s, w);
}

bool pe_prepare(struct stream *s)
{
	if (!pe_get(s) || !tile_ok(s))
		return false;
	return s->cur->row->cost == NEURON_COST_LDWEIGHTS ? ldweights_prepare(s) : matmul_prepare(s);
}

/* --- weights ---------------------------------------------------------------------------- */

/* Row k of the array, NUM_MR columns at a time, the last ones padded with zeros. */
void pe_pack_row(struct pe_weights *w, unsigned int k, const float *row)
{
	unsigned int m;

	for (m = 0; m + NUM_MR <= w->m; m += NUM_MR)
		memcpy(&w->panel[((size_t)m * w->k) + k * NUM_MR], row + m, NUM_MR * sizeof(float));
	if (m < w->m) {
		float *to = &w->panel[((size_t)m * w->k) + k * NUM_MR];

		memset(to, 0, NUM_MR * sizeof(float));
		memcpy(to, row + m, (w->m - m) * sizeof(float));
	}
}

void pe_ldweights(struct stream *s)
{
	struct pe *pe = stream_core(s)->pe;
	uint16_t cells = tile_cells(s->cur->w.aux);
	const struct opnd *src = &s->op[1];
	size_t len = (size_t)src->n * src->bytes;
	struct pe_weights *w;
	unsigned int p;

	drop(pe, cells, true);
	w = unused(pe);
	w->opcode = s->cur->w.opcode;
	w->pending = true;
	w->packed = false;
	w->cells = cells;
	w->dtype = src->dtype;
	w->bytes = src->bytes;
	w->perf = PERF(&s->cur->w);
	w->rows = pe_rows(&s->cur->w);
	w->ratio = s->imm[0].bits;
	w->parts = src->parts;
	w->k = src->parts * (w->opcode == NEURON_OP_LDWEIGHTS_MX ? 4 : w->rows);
	w->m = src->n / w->rows;
	if (s->x->timing_only)
		return;
	for (p = 0; p < src->parts; p++)
		memcpy(w->raw + p * len, row_gather(src, p, s->x->row[0]), len);
	if (w->opcode == NEURON_OP_LDWEIGHTS_MX)
		pe_mx_load(s, w);
	else if (w->opcode == NEURON_OP_LDWEIGHTS_SPARSE)
		pe_sparse_load(s, w);
}

/* Row k of the array: in double row mode the second half of a partition's elements. */
static void pack(struct stream *s, struct pe_weights *w)
{
	unsigned int parts = w->k / w->rows, n = w->m * w->rows, p, r;
	float *row = s->x->row[0];

	for (p = 0; p < parts; p++) {
		s->x->num->load(w->dtype, row, w->raw + (size_t)p * n * w->bytes, w->bytes, n);
		for (r = 0; r < w->rows; r++)
			pe_pack_row(w, p + r * parts, row + (size_t)r * w->m);
	}
	w->packed = true;
}

/* Row length of the moving operand's copy: off powers of two, for the host's cache. */
size_t pe_ld(unsigned int n)
{
	return (n + NUM_NR - 1) / NUM_NR * NUM_NR + 16;
}

/* Zeros up to a whole block of columns. */
void pe_pad(float *row, unsigned int n)
{
	if (n % NUM_NR)
		memset(row + n, 0, (NUM_NR - n % NUM_NR) * sizeof(float));
}

/* The moving operand as fp32, [k][ld], padded to whole blocks. */
static void unpack_moving(struct stream *s, float *x, unsigned int k_all, unsigned int n)
{
	const struct opnd *src = &s->op[1];
	size_t ld = pe_ld(n);
	unsigned int p, k;

	for (p = 0; p < src->parts; p++) {
		float *to = x + p * ld;

		if (k_all == src->parts) {
			row_load(s->x, src, p, to);
			pe_pad(to, n);
			continue;
		}
		row_load(s->x, src, p, s->x->row[0]);
		for (k = p; k < k_all; k += src->parts) {
			to = x + k * ld;
			memcpy(to, s->x->row[0] + (size_t)(k / src->parts) * n, n * sizeof(float));
			pe_pad(to, n);
		}
	}
}

/* One result row of a panel to PSUM, added to what is there or in its place. */
static void put_row(struct stream *s, unsigned int m, unsigned int at, unsigned int cols,
		    const float *acc)
{
	const struct opnd *dst = &s->op[0];
	uint8_t *to = dst->base + m * dst->stride + (size_t)at * dst->bytes;
	float sum[NUM_NR];
	const float *from = acc;

	if (s->cur->w.flags & NEURON_FLAG_ACCUMULATE) {
		s->x->num->load(dst->dtype, sum, to, dst->bytes, cols);
		s->x->num->vv(NEURON_ALU_ADD, sum, sum, acc, cols);
		from = sum;
	}
	if (s->x->stochastic)
		num_store_sr(dst->dtype, to, dst->bytes, from, cols, &s->x->prng_sr);
	else
		s->x->num->store(dst->dtype, to, dst->bytes, from, cols);
}

/* A block of the product, at row @m and column @j. */
static void put_block(struct stream *s, unsigned int m, unsigned int j, const float *acc)
{
	const struct opnd *dst = &s->op[0];
	unsigned int rows = dst->parts - m < NUM_MR ? dst->parts - m : NUM_MR;
	unsigned int cols = dst->n - j < NUM_NR ? dst->n - j : NUM_NR;
	uint8_t *to = dst->base + m * dst->stride + (size_t)j * dst->bytes;
	unsigned int i;

	if (dst->dense && dst->dtype == NEURON_DTYPE_FLOAT32 && (uintptr_t)to % 4 == 0) {
		s->x->num->put(to, dst->stride, acc, rows, cols,
			       s->cur->w.flags & NEURON_FLAG_ACCUMULATE);
		return;
	}
	for (i = 0; i < rows; i++) {
		if (dst->dense)
			put_row(s, m + i, j, cols, acc + i * NUM_NR);
		else
			memcpy(s->x->row[2] + (size_t)(m + i) * dst->n + j, acc + i * NUM_NR,
			       cols * sizeof(float));
	}
}

/* May an element of the pattern lie on another? */
static bool overlaps_itself(const struct opnd *op)
{
	int64_t step[NEURON_AP_DIMS], extent = op->bytes, x;
	uint32_t num[NEURON_AP_DIMS], u;
	unsigned int i, j, n = 0;

	/* Its offsets may say anything. */
	if (op->index)
		return true;
	/* By size of the step. */
	for (i = 0; i < op->dims; i++) {
		if (op->num[i] == 1)
			continue;
		x = op->step[i] < 0 ? -(int64_t)op->step[i] : op->step[i];
		u = op->num[i];
		for (j = n++; j && step[j - 1] > x; j--) {
			step[j] = step[j - 1];
			num[j] = num[j - 1];
		}
		step[j] = x;
		num[j] = u;
	}
	for (i = 0; i < n; i++) {
		if (step[i] < extent)
			return true;
		extent += (num[i] - 1) * step[i];
	}
	return false;
}

/* Adds element by element: one that is met twice gets both. */
static void add_row(struct stream *s, unsigned int m, const float *from)
{
	const struct opnd *dst = &s->op[0];
	uint8_t *base = dst->base + m * dst->stride, *to;
	uint32_t at[NEURON_AP_DIMS] = { 0 }, i;
	unsigned int d;
	float sum;

	for (i = 0; i < dst->n; i++) {
		to = base;
		for (d = 0; d < dst->dims; d++)
			to += (int64_t)at[d] * dst->step[d];
		if (dst->index)
			to = indirect_at(dst, m, i);
		sum = num_get(dst->dtype, to) + from[i];
		if (s->x->stochastic)
			num_store_sr(dst->dtype, to, dst->bytes, &sum, 1, &s->x->prng_sr);
		else
			num_put(dst->dtype, to, sum);
		for (d = 0; d < dst->dims && ++at[d] == dst->num[d]; d++)
			at[d] = 0;
	}
}

/* For destinations that are not one run: whole rows through a buffer. */
void pe_put_rows(struct stream *s, const float *rows, unsigned int m_all)
{
	const struct opnd *dst = &s->op[0];
	bool add = s->cur->w.flags & NEURON_FLAG_ACCUMULATE;
	bool twice = add && !dst->dense && overlaps_itself(dst);
	unsigned int m;

	for (m = 0; m < m_all; m++) {
		const float *from = rows + (size_t)m * dst->n;

		if (twice) {
			add_row(s, m, from);
			continue;
		}
		if (add) {
			row_load(s->x, dst, m, s->x->row[0]);
			s->x->num->vv(NEURON_ALU_ADD, s->x->row[0], s->x->row[0], from, dst->n);
			from = s->x->row[0];
		}
		row_store(s->x, dst, m, from);
	}
}

/* Which row of the stationary matrix each column of the identity selects; @k: none. */
static void find_ones(struct stream *s, unsigned int k_all, uint32_t *pick)
{
	const struct opnd *src = &s->op[1];
	unsigned int k, n;

	for (n = 0; n < src->n; n++)
		pick[n] = k_all;
	for (k = 0; k < k_all; k++) {
		const float *row = row_get(s->x, src, k, s->x->row[0]);

		for (n = 0; n < src->n; n++)
			pick[n] = row[n] != 0.0f ? k : pick[n];
	}
}

/* Elements of one size each, so that the inner loop has no calls. */
#define TRANSPOSE(from, to)							\
	do {									\
		const from *in = (const from *)w->raw;				\
		to *out = (to *)tile;						\
		for (i = 0; i < n; i++)						\
			for (m = 0; m < w->m; m++)				\
				out[(size_t)m * n + i] = in[(size_t)pick[i] * w->m + m]; \
	} while (0)

static void transpose_bits(struct stream *s, struct pe_weights *w)
{
	uint32_t *pick = (uint32_t *)s->x->row[1];
	uint8_t *tile = (uint8_t *)s->x->row[2];
	const struct opnd *dst = &s->op[0];
	unsigned int n = dst->n, i, m;

	find_ones(s, w->k, pick);
	memset(w->raw + (size_t)w->k * w->m * w->bytes, 0, (size_t)w->m * w->bytes);
	/* fp8 comes out in 16 bits, the upper byte 0. */
	if (w->bytes == 1)
		TRANSPOSE(uint8_t, uint16_t);
	else if (w->bytes == 2)
		TRANSPOSE(uint16_t, uint16_t);
	else
		TRANSPOSE(uint32_t, uint32_t);
	for (m = 0; m < w->m; m++)
		row_scatter(dst, m, tile + (size_t)m * n * dst->bytes);
}

void pe_product(struct stream *s, const struct pe_weights *w, const float *moving)
{
	float acc[NUM_MR * NUM_NR] __attribute__((aligned(64)));
	unsigned int n = s->op[0].n, m, j;

	for (j = 0; j < n; j += NUM_NR) {
		for (m = 0; m < w->m; m += NUM_MR) {
			s->x->num->matmul(acc, w->panel + (size_t)m * w->k, moving + j, pe_ld(n), w->k);
			put_block(s, m, j, acc);
		}
	}
	if (!s->op[0].dense)
		pe_put_rows(s, s->x->row[2], w->m);
}

static void matmul(struct stream *s, struct pe_weights *w)
{
	if (!w->packed)
		pack(s, w);
	unpack_moving(s, s->x->row[1], w->k, s->op[0].n);
	pe_product(s, w, s->x->row[1]);
}

void pe_matmul(struct stream *s)
{
	struct pe *pe = stream_core(s)->pe;
	struct pe_weights *w = pe_weights_of(s);

	if (w->pending) {
		drop(pe, w->cells, false);
		w->pending = false;
	}
	s->macs = (uint64_t)w->k * w->m * s->op[0].n;
	if (s->x->timing_only)
		return;
	if (is_transpose(s))
		transpose_bits(s, w);
	else if (w->opcode == NEURON_OP_LDWEIGHTS_MX)
		pe_mx_matmul(s, w);
	else if (w->opcode == NEURON_OP_LDWEIGHTS_SPARSE)
		pe_sparse_matmul(s, w);
	else
		matmul(s, w);
}
