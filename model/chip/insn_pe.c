// SPDX-License-Identifier: MIT
/*
 * Tensor engine. LDWEIGHTS fills the weight buffer that is not in use; the next
 * MATMUL takes it. A product accumulates in fp32 over k from 0 upwards, by fused
 * multiply-add, in one pass; ACCUMULATE adds that sum to PSUM once.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exec_state.h"

#define PERF(w)		(((w)->flags >> NEURON_FLAG_PERF_SHIFT) & 3)
#define PERF_DOUBLE_ROW	1

static bool is_fp8(unsigned int dtype)
{
	return num_dtype(dtype)->bytes == 1 && num_dtype(dtype)->is_float;
}

static bool is_32bit(unsigned int dtype)
{
	return dtype == NEURON_DTYPE_FLOAT32 || dtype == NEURON_DTYPE_TFLOAT32;
}

/* An operand's type, alone. */
static bool pe_dtype(struct stream *s, unsigned int index)
{
	unsigned int dtype = s->op[index].dtype, nc = s->x->job->nc_version;

	if (!num_dtype(dtype)->is_float ||
	    (dtype == NEURON_DTYPE_FLOAT8_E4M3FN && nc < 4) ||
	    (dtype == NEURON_DTYPE_FLOAT8_E3M4 && nc > 3))
		return exec_bad(s, index, dtype, NEURON_DTYPE_BFLOAT16);
	if (PERF(&s->cur->w) > PERF_DOUBLE_ROW)
		return exec_bad(s, 12, PERF(&s->cur->w), PERF_DOUBLE_ROW);
	if (PERF(&s->cur->w) == PERF_DOUBLE_ROW &&
	    (nc < 3 || !is_fp8(dtype) || s->cur->w.flags & NEURON_FLAG_TRANSPOSE))
		return exec_bad(s, 12, PERF(&s->cur->w), 0);
	return true;
}

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
	unsigned int rows = pe_rows(&s->cur->w);

	if (!pe_dtype(s, 1))
		return false;
	if (!s->op[1].n || s->op[1].n % rows || s->op[1].n / rows > 128)
		return exec_bad(s, 1, s->op[1].n, 128 * rows);
	return true;
}

/*
 * Transposes pass bits through: dst has the input's type, fp8 in 16 bits. On v2 the
 * flag is only a label.
 */
static bool is_transpose(const struct stream *s)
{
	return s->cur->w.flags & NEURON_FLAG_TRANSPOSE && s->x->job->nc_version >= 3;
}

static bool matmul_dst(struct stream *s, const struct pe_weights *w)
{
	const struct opnd *dst = &s->op[0];
	unsigned int nc = s->x->job->nc_version;

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
	if (dst->n > (nc < 4 ? 512u : 8192u))
		return exec_bad(s, 0, dst->n, nc < 4 ? 512 : 8192);
	return true;
}

static bool matmul_prepare(struct stream *s)
{
	struct pe *pe = stream_core(s)->pe;
	const struct pe_weights *w = &pe->buf[pe->pending ? !pe->active : pe->active];
	unsigned int rows = pe_rows(&s->cur->w);

	if (!w->loaded)
		return exec_bad(s, 14, 0, 1);
	if (!pe_dtype(s, 1) || !matmul_dst(s, w))
		return false;
	if (!pe_pairing(w->dtype, s->op[1].dtype))
		return exec_bad(s, 1, s->op[1].dtype, w->dtype);
	if (w->perf != PERF(&s->cur->w))
		return exec_bad(s, 12, PERF(&s->cur->w), w->perf);
	if (s->op[1].parts * rows != w->k)
		return exec_bad(s, 1, s->op[1].parts, w->k / rows);
	if (s->op[0].parts != w->m)
		return exec_bad(s, 0, s->op[0].parts, w->m);
	if (s->op[1].n != s->op[0].n * rows)
		return exec_bad(s, 1, s->op[1].n, s->op[0].n * rows);
	return true;
}

bool pe_prepare(struct stream *s)
{
	if (!pe_get(s))
		return false;
	return s->cur->w.opcode == NEURON_OP_LDWEIGHTS ? ldweights_prepare(s) : matmul_prepare(s);
}

/* Row k of the array, NUM_MR columns at a time, the last ones padded with zeros. */
static void pack_weights(struct pe_weights *w, unsigned int k, const float *row)
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
	struct pe_weights *w = &pe->buf[!pe->active];
	const struct opnd *src = &s->op[1];
	size_t len = (size_t)src->n * src->bytes;
	unsigned int p;

	w->dtype = src->dtype;
	w->bytes = src->bytes;
	w->perf = PERF(&s->cur->w);
	w->rows = pe_rows(&s->cur->w);
	w->k = src->parts * w->rows;
	w->m = src->n / w->rows;
	for (p = 0; p < src->parts && !s->x->timing_only; p++)
		memcpy(w->raw + p * len, row_gather(src, p, s->x->row[0]), len);
	w->packed = false;
	w->loaded = true;
	pe->pending = true;
}

/* Row k of the array: in double row mode the second half of a partition's elements. */
static void pack(struct stream *s, struct pe_weights *w)
{
	unsigned int parts = w->k / w->rows, n = w->m * w->rows, p, r;
	float *row = s->x->row[0];

	for (p = 0; p < parts; p++) {
		s->x->num->load(w->dtype, row, w->raw + (size_t)p * n * w->bytes, w->bytes, n);
		for (r = 0; r < w->rows; r++)
			pack_weights(w, p + r * parts, row + (size_t)r * w->m);
	}
	w->packed = true;
}

/* Row length of the moving operand's copy: off powers of two, for the host's cache. */
static size_t moving_ld(unsigned int n)
{
	return (n + NUM_NR - 1) / NUM_NR * NUM_NR + 16;
}

/* Zeros up to a whole block of columns. */
static void pad(float *row, unsigned int n)
{
	if (n % NUM_NR)
		memset(row + n, 0, (NUM_NR - n % NUM_NR) * sizeof(float));
}

/* The moving operand as fp32, [k][ld], padded to whole blocks. */
static void unpack_moving(struct stream *s, float *x, unsigned int k_all, unsigned int n)
{
	const struct opnd *src = &s->op[1];
	size_t ld = moving_ld(n);
	unsigned int p, k;

	for (p = 0; p < src->parts; p++) {
		float *to = x + p * ld;

		if (k_all == src->parts) {
			row_load(s->x, src, p, to);
			pad(to, n);
			continue;
		}
		row_load(s->x, src, p, s->x->row[0]);
		for (k = p; k < k_all; k += src->parts) {
			to = x + k * ld;
			memcpy(to, s->x->row[0] + (size_t)(k / src->parts) * n, n * sizeof(float));
			pad(to, n);
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

/* For destinations that are not one run: whole rows through a buffer. */
static void put_strided(struct stream *s, const float *rows, unsigned int m_all)
{
	const struct opnd *dst = &s->op[0];
	unsigned int m;

	for (m = 0; m < m_all; m++) {
		const float *from = rows + (size_t)m * dst->n;

		if (s->cur->w.flags & NEURON_FLAG_ACCUMULATE) {
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

void pe_matmul(struct stream *s)
{
	struct pe *pe = stream_core(s)->pe;
	const struct opnd *dst = &s->op[0];
	float *moving = s->x->row[1];
	unsigned int n = dst->n, m, j;
	struct pe_weights *w;
	float acc[NUM_MR * NUM_NR] __attribute__((aligned(64)));

	if (pe->pending) {
		pe->active = !pe->active;
		pe->pending = false;
	}
	w = &pe->buf[pe->active];
	s->macs = (uint64_t)w->k * w->m * n;
	if (s->x->timing_only)
		return;
	if (is_transpose(s)) {
		transpose_bits(s, w);
		return;
	}
	if (!w->packed)
		pack(s, w);
	unpack_moving(s, moving, w->k, n);
	for (j = 0; j < n; j += NUM_NR) {
		for (m = 0; m < w->m; m += NUM_MR) {
			s->x->num->matmul(acc, w->panel + (size_t)m * w->k, moving + j,
					  moving_ld(n), w->k);
			put_block(s, m, j, acc);
		}
	}
	if (!dst->dense)
		put_strided(s, s->x->row[2], w->m);
}
