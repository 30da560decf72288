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
		if (!w->has_raw)
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

/* Row k of the array: in double row mode the second half of a partition's elements. */
void pe_ldweights(struct stream *s)
{
	struct pe *pe = stream_core(s)->pe;
	struct pe_weights *w = &pe->buf[!pe->active];
	const struct opnd *src = &s->op[1];
	unsigned int rows = pe_rows(&s->cur->w), p, k, m;
	float *row = s->x->row[0];

	w->dtype = src->dtype;
	w->perf = PERF(&s->cur->w);
	w->k = src->parts * rows;
	w->m = src->n / rows;
	w->bytes = src->bytes;
	w->has_raw = rows == 1;
	for (p = 0; p < src->parts; p++) {
		if (w->has_raw)
			memcpy(&w->raw[(size_t)p * w->m * w->bytes],
			       row_gather(src, p, s->x->row[1]), (size_t)w->m * w->bytes);
		row_load(s->x, src, p, row);
		for (k = p; k < w->k; k += src->parts) {
			const float *part = row + (k / src->parts) * w->m;

			for (m = 0; m < w->m; m++)
				w->panel[(m / NUM_MR * w->k + k) * NUM_MR + m % NUM_MR] = part[m];
			for (; m % NUM_MR; m++)
				w->panel[(m / NUM_MR * w->k + k) * NUM_MR + m % NUM_MR] = 0.0f;
		}
	}
	w->loaded = true;
	pe->pending = true;
}

/* The moving operand as fp32 in panels of NUM_NR columns: [n / NUM_NR][k][NUM_NR]. */
static void pack_moving(struct stream *s, float *panel, unsigned int k_all, unsigned int n)
{
	const struct opnd *src = &s->op[1];
	unsigned int p, k, j;

	for (p = 0; p < src->parts; p++) {
		const float *row = row_get(s->x, src, p, s->x->row[0]);

		for (k = p; k < k_all; k += src->parts) {
			const float *part = row + (size_t)(k / src->parts) * n;

			for (j = 0; j < n; j += NUM_NR) {
				float *to = panel + ((size_t)(j / NUM_NR) * k_all + k) * NUM_NR;
				unsigned int cols = n - j < NUM_NR ? n - j : NUM_NR;

				memcpy(to, part + j, cols * sizeof(float));
				if (cols < NUM_NR)
					memset(to + cols, 0, (NUM_NR - cols) * sizeof(float));
			}
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

static uint32_t raw_get(const struct pe_weights *w, unsigned int k, unsigned int m)
{
	const uint8_t *p = &w->raw[((size_t)k * w->m + m) * w->bytes];
	uint32_t v = 0;

	memcpy(&v, p, w->bytes);
	return le32toh(v);
}

static void transpose_bits(struct stream *s, const struct pe_weights *w)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	uint32_t *pick = (uint32_t *)s->x->row[1], *out = (uint32_t *)s->x->row[2];
	float *row = s->x->row[0];
	unsigned int k, m, n;

	/* Which row of the stationary matrix each column of the identity selects. */
	for (n = 0; n < dst->n; n++)
		pick[n] = UINT32_MAX;
	for (k = 0; k < w->k; k++) {
		row_load(s->x, src, k, row);
		for (n = 0; n < dst->n; n++)
			if (row[n] != 0.0f)
				pick[n] = k;
	}
	for (m = 0; m < w->m; m++) {
		for (n = 0; n < dst->n; n++)
			out[n] = pick[n] == UINT32_MAX ? 0 : raw_get(w, pick[n], m);
		row_bits_store(dst, m, out);
	}
}

void pe_matmul(struct stream *s)
{
	struct pe *pe = stream_core(s)->pe;
	const struct opnd *dst = &s->op[0];
	float *panel = s->x->row[1], *rows = s->x->row[2];
	unsigned int n = dst->n, m, j, i;
	struct pe_weights *w;
	float acc[NUM_MR * NUM_NR] __attribute__((aligned(64)));

	if (pe->pending) {
		pe->active = !pe->active;
		pe->pending = false;
	}
	w = &pe->buf[pe->active];
	s->macs = (uint64_t)w->k * w->m * n;
	if (is_transpose(s)) {
		transpose_bits(s, w);
		return;
	}
	pack_moving(s, panel, w->k, n);
	for (j = 0; j < n; j += NUM_NR) {
		unsigned int cols = n - j < NUM_NR ? n - j : NUM_NR;

		for (m = 0; m < w->m; m += NUM_MR) {
			s->x->num->matmul(acc, w->panel + (size_t)m * w->k,
					  panel + (size_t)j * w->k, w->k);
			for (i = 0; i < NUM_MR && m + i < w->m; i++) {
				if (dst->dense)
					put_row(s, m + i, j, cols, acc + i * NUM_NR);
				else
					memcpy(rows + (size_t)(m + i) * n + j, acc + i * NUM_NR,
					       cols * sizeof(float));
			}
		}
	}
	if (!dst->dense)
		put_strided(s, rows, w->m);
}
