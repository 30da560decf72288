// SPDX-License-Identifier: MIT
/*
 * Instructions of the vector engine; several also run on ACT and POOL. Arithmetic
 * is in fp32; bit vector operators work on the bits of integers.
 */
#include <endian.h>

#include "exec_state.h"

#define BOTH_PSUM(a, b)	((a)->space == NEURON_SPACE_PSUM && (b)->space == NEURON_SPACE_PSUM)

static bool same_shape(struct stream *s, unsigned int a, unsigned int b)
{
	const struct opnd *x = &s->op[a], *y = &s->op[b];

	if (x->parts != y->parts)
		return exec_bad(s, b, y->parts, x->parts);
	if (x->n != y->n)
		return exec_bad(s, b, y->n, x->n);
	return true;
}

/* Two tensors never both come from PSUM. */
static bool not_both_psum(struct stream *s)
{
	if (BOTH_PSUM(&s->op[1], &s->op[2]))
		return exec_bad(s, 2, NEURON_SPACE_PSUM, NEURON_SPACE_SBUF);
	return true;
}

/* An operator that exists, on an engine that has it. */
static bool alu_valid(struct stream *s, unsigned int which)
{
	unsigned int op = s->cur->w.op[which];
	bool pool_only = op == NEURON_ALU_POWER || op == NEURON_ALU_RSQRT;

	if (!num_alu(op)->name || op == NEURON_ALU_AVERAGE)
		return exec_bad(s, 6, op, NEURON_ALU_RIGHT_SHIFT);
	if ((op == NEURON_ALU_ABS_MAX || op == NEURON_ALU_ABS_MIN) && s->x->job->nc_version < 4)
		return exec_bad(s, 6, op, NEURON_ALU_MAXIMUM);
	if (pool_only && s->engine != NEURON_ENGINE_POOL)
		return exec_bad(s, 6, op, NEURON_ENGINE_POOL);
	return true;
}

static bool is_bits(unsigned int op)
{
	return num_alu(op)->bits;
}

/* Bit vector operands: integers of one size. */
static bool bits_operands(struct stream *s)
{
	unsigned int i;

	if (s->engine == NEURON_ENGINE_ACT)
		return exec_bad(s, 6, s->cur->w.op[0], NEURON_ENGINE_DVE);
	for (i = 0; i < 3; i++) {
		const struct opnd *op = &s->op[i];

		if (op->space == NEURON_SPACE_NONE)
			continue;
		if (num_dtype(op->dtype)->is_float)
			return exec_bad(s, i, op->dtype, NEURON_DTYPE_INT32);
		if (op->bytes != s->op[0].bytes)
			return exec_bad(s, i, op->bytes, s->op[0].bytes);
	}
	return true;
}

static bool int32_exact(const struct stream *s)
{
	unsigned int i;

	if (s->engine != NEURON_ENGINE_POOL || s->cur->w.op[0] > NEURON_ALU_MINIMUM)
		return false;
	for (i = 0; i < 3; i++)
		if (s->op[i].dtype != NEURON_DTYPE_INT32 && s->op[i].dtype != NEURON_DTYPE_UINT32)
			return false;
	return s->op[1].dtype == s->op[2].dtype;
}

/* ACT has tensor_scalar from v3, as multiply-add, multiply or add only. */
static bool act_scalar(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	bool ok = (w->op[0] == NEURON_ALU_MULTIPLY &&
		   (w->op[1] == NEURON_ALU_ADD || w->op[1] == NEURON_ALU_BYPASS)) ||
		  (w->op[0] == NEURON_ALU_ADD && w->op[1] == NEURON_ALU_BYPASS);

	if (s->x->job->nc_version < 3) {
		exec_fault(s->x, s, NEURON_FAULT_ILLEGAL_INSN);
		return false;
	}
	return ok || exec_bad(s, 6, w->op[0], NEURON_ALU_MULTIPLY);
}

/* A scalar is there exactly when its operator takes two operands. */
static bool scalar_arity(struct stream *s, unsigned int i)
{
	if (num_alu(s->cur->w.op[i])->arity == 2 && !s->imm[i].present)
		return exec_bad(s, 4 + i, NEURON_IMM_NONE, NEURON_IMM_F32);
	return true;
}

static bool scalar_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;

	if (!alu_valid(s, 0) || !alu_valid(s, 1) || !scalar_arity(s, 0) || !scalar_arity(s, 1))
		return false;
	if (w->op[1] != NEURON_ALU_BYPASS && is_bits(w->op[0]) != is_bits(w->op[1]))
		return exec_bad(s, 6, w->op[1], w->op[0]);
	if (s->engine == NEURON_ENGINE_ACT)
		return act_scalar(s);
	return !is_bits(w->op[0]) || bits_operands(s);
}

/* The dimensions that stay give the result's elements. */
static bool reduce_prepare(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	const struct neuron_insn *w = &s->cur->w;
	uint32_t left = 1, i;

	if (!alu_valid(s, 0))
		return false;
	if (!num_alu(w->op[0])->reduce)
		return exec_bad(s, 6, w->op[0], NEURON_ALU_ADD);
	if (!w->aux || w->aux > src->dims)
		return exec_bad(s, 7, w->aux, src->dims);
	for (i = w->aux; i < src->dims; i++)
		left *= src->num[i];
	if (dst->parts != src->parts)
		return exec_bad(s, 0, dst->parts, src->parts);
	if (dst->n != left || !src->n)
		return exec_bad(s, 0, dst->n, left);
	if (is_bits(w->op[0]) && w->flags & NEURON_FLAG_NEGATE)
		return exec_bad(s, 13, NEURON_FLAG_NEGATE, 0);
	return !is_bits(w->op[0]) || bits_operands(s);
}

static bool predicate_prepare(struct stream *s)
{
	const struct opnd *pred = &s->op[2];
	bool has_src = s->op[1].space != NEURON_SPACE_NONE;

	if (has_src && (!same_shape(s, 0, 1) || !not_both_psum(s)))
		return false;
	if (!same_shape(s, 0, 2))
		return false;
	if (num_dtype(pred->dtype)->is_float)
		return exec_bad(s, 2, pred->dtype, NEURON_DTYPE_UINT8);
	if (s->cur->w.opcode == NEURON_OP_SELECT)
		return (s->imm[0].present || exec_bad(s, 4, NEURON_IMM_NONE, NEURON_IMM_F32)) &&
		       select_acc_prepare(s);
	if (has_src == s->imm[0].present)
		return exec_bad(s, 4, s->cur->w.imm[0].kind, NEURON_IMM_NONE);
	if (has_src && s->op[1].dtype != s->op[0].dtype)
		return exec_bad(s, 1, s->op[1].dtype, s->op[0].dtype);
	return true;
}

static bool transpose_prepare(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];

	if (src->parts > 32 || src->n > 32)
		return exec_bad(s, 1, src->parts > 32 ? src->parts : src->n, 32);
	if (dst->parts != src->n || dst->n != src->parts)
		return exec_bad(s, 0, dst->parts, src->n);
	if (dst->dtype != src->dtype)
		return exec_bad(s, 0, dst->dtype, src->dtype);
	return true;
}

bool dve_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;

	switch (w->opcode) {
	case NEURON_OP_TENSOR_COPY:
		if (s->engine == NEURON_ENGINE_ACT && s->x->job->nc_version < 3) {
			exec_fault(s->x, s, NEURON_FAULT_ILLEGAL_INSN);
			return false;
		}
		return same_shape(s, 0, 1);
	case NEURON_OP_RECIPROCAL:
		return same_shape(s, 0, 1);
	case NEURON_OP_MEMSET:
		if (!s->imm[0].present || s->imm[0].vector)
			return exec_bad(s, 4, w->imm[0].kind, NEURON_IMM_I32);
		return true;
	case NEURON_OP_TENSOR_TENSOR:
		if (!alu_valid(s, 0) || !same_shape(s, 0, 1) || !same_shape(s, 0, 2) ||
		    !not_both_psum(s))
			return false;
		return !is_bits(w->op[0]) || bits_operands(s);
	case NEURON_OP_TENSOR_SCALAR:
		return same_shape(s, 0, 1) && scalar_prepare(s);
	case NEURON_OP_SCALAR_TENSOR_TENSOR:
		if (!alu_valid(s, 0) || !alu_valid(s, 1) || !scalar_arity(s, 0) ||
		    !same_shape(s, 0, 1) || !same_shape(s, 0, 2) || !not_both_psum(s))
			return false;
		if (is_bits(w->op[0]) || is_bits(w->op[1]))
			return exec_bad(s, 6, w->op[0], NEURON_ALU_RECIPROCAL);
		return true;
	case NEURON_OP_TENSOR_REDUCE:
		return reduce_prepare(s);
	case NEURON_OP_TRANSPOSE32:
		return transpose_prepare(s);
	default:
		return predicate_prepare(s);
	}
}

/* --- effects ------------------------------------------------------------------------ */

/* Same type: the bits. Else through fp32, as all arithmetic. */
static void tensor_copy(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		if (dst->dtype == src->dtype)
			row_scatter(dst, p, row_gather(src, p, s->x->row[0]));
		else
			row_store(s->x, dst, p, row_get(s->x, src, p, s->x->row[0]));
	}
}

/* What a scalar looks like as an element of @dst. */
static uint32_t scalar_bits(struct stream *s, const struct scalar *sc, unsigned int part,
			    const struct opnd *dst)
{
	uint32_t bits = 0;
	float v = scalar_get(sc, part);

	if (s->cur->w.imm[0].kind == NEURON_IMM_I32 && !num_dtype(dst->dtype)->is_float)
		return sc->bits;
	num_put(dst->dtype, &bits, v);
	return le32toh(bits);
}

static void tensor_memset(struct stream *s)
{
	uint32_t *row = (uint32_t *)s->x->row[0], bits = scalar_bits(s, &s->imm[0], 0, &s->op[0]);
	const struct opnd *dst = &s->op[0];
	uint8_t *bytes = (uint8_t *)row;
	uint32_t i;
	unsigned int p;

	bits = htole32(bits);
	for (i = 0; i < dst->n; i++)
		for (p = 0; p < dst->bytes; p++)
			bytes[i * dst->bytes + p] = bits >> (8 * p);
	for (p = 0; p < dst->parts; p++)
		row_scatter(dst, p, row);
}

static void int_tensor_tensor(struct stream *s)
{
	uint32_t *a = (uint32_t *)s->x->row[0], *b = (uint32_t *)s->x->row[1];
	bool is_signed = s->op[1].dtype == NEURON_DTYPE_INT32;
	unsigned int op = s->cur->w.op[0], p, bytes = s->op[0].bytes;
	uint32_t i;

	for (p = 0; p < s->op[0].parts; p++) {
		row_bits_load(&s->op[1], p, a);
		row_bits_load(&s->op[2], p, b);
		for (i = 0; i < s->op[0].n; i++) {
			bool less = is_signed ? (int32_t)a[i] < (int32_t)b[i] : a[i] < b[i];

			switch (op) {
			case NEURON_ALU_BYPASS:		break;
			case NEURON_ALU_ADD:		a[i] += b[i]; break;
			case NEURON_ALU_SUBTRACT:	a[i] -= b[i]; break;
			case NEURON_ALU_MULTIPLY:	a[i] *= b[i]; break;
			case NEURON_ALU_MAXIMUM:	a[i] = less ? b[i] : a[i]; break;
			case NEURON_ALU_MINIMUM:	a[i] = less ? a[i] : b[i]; break;
			default: a[i] = num_bits_op(op, a[i], b[i], bytes); break;
			}
		}
		row_bits_store(&s->op[0], p, a);
	}
}

static void tensor_tensor(struct stream *s)
{
	unsigned int p;

	if (is_bits(s->cur->w.op[0]) || int32_exact(s)) {
		int_tensor_tensor(s);
		return;
	}
	for (p = 0; p < s->op[0].parts; p++) {
		const float *a = row_get(s->x, &s->op[1], p, s->x->row[0]);
		const float *b = row_get(s->x, &s->op[2], p, s->x->row[1]);
		float *out = row_target(s, p, s->x->row[2]);

		s->x->num->vv(s->cur->w.op[0], out, a, b, s->op[0].n);
		row_store(s->x, &s->op[0], p, out);
	}
}

static void bits_scalar(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	uint32_t *a = (uint32_t *)s->x->row[0], i;
	unsigned int p, k, bytes = s->op[0].bytes;

	for (p = 0; p < s->op[0].parts; p++) {
		row_bits_load(&s->op[1], p, a);
		for (k = 0; k < 2; k++) {
			bool reverse = w->flags & (k ? NEURON_FLAG_REVERSE1 : NEURON_FLAG_REVERSE0);
			const struct scalar *sc = &s->imm[k];
			uint32_t v = sc->bits;

			if (sc->vector) {
				struct opnd vec = sc->vec;

				row_bits_load(&vec, p, &v);
			}
			for (i = 0; i < s->op[0].n; i++)
				a[i] = num_bits_op(w->op[k], reverse ? v : a[i], reverse ? a[i] : v, bytes);
		}
		row_bits_store(&s->op[0], p, a);
	}
}

/* out = in op scalar, or the other way round. */
static void apply_scalar(struct stream *s, unsigned int k, unsigned int part, float *out,
			 const float *in)
{
	const struct neuron_insn *w = &s->cur->w;
	bool reverse = w->flags & (k ? NEURON_FLAG_REVERSE1 : NEURON_FLAG_REVERSE0);
	unsigned int op = w->op[k];

	if (num_alu(op)->arity == 1)
		s->x->num->unary(op, out, in, s->op[0].n);
	else if (reverse)
		s->x->num->sv(op, out, scalar_get(&s->imm[k], part), in, s->op[0].n);
	else
		s->x->num->vs(op, out, in, scalar_get(&s->imm[k], part), s->op[0].n);
}

static void tensor_scalar(struct stream *s)
{
	unsigned int p;

	if (is_bits(s->cur->w.op[0])) {
		bits_scalar(s);
		return;
	}
	for (p = 0; p < s->op[0].parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float *out = row_target(s, p, s->x->row[1]);

		apply_scalar(s, 0, p, out, in);
		if (s->cur->w.op[1] != NEURON_ALU_BYPASS)
			apply_scalar(s, 1, p, out, out);
		row_store(s->x, &s->op[0], p, out);
	}
}

static void scalar_tensor_tensor(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		const float *t = row_get(s->x, &s->op[2], p, s->x->row[1]);
		float *mid = s->x->row[2], *out = row_target(s, p, mid);

		apply_scalar(s, 0, p, mid, in);
		if (num_alu(w->op[1])->arity == 1)
			s->x->num->unary(w->op[1], out, mid, s->op[0].n);
		else if (w->flags & NEURON_FLAG_REVERSE1)
			s->x->num->vv(w->op[1], out, t, mid, s->op[0].n);
		else
			s->x->num->vv(w->op[1], out, mid, t, s->op[0].n);
		row_store(s->x, &s->op[0], p, out);
	}
}

static uint32_t reduce_bits(unsigned int op, const uint32_t *v, uint32_t n, unsigned int bytes)
{
	uint32_t r = v[0], i;

	for (i = 1; i < n; i++)
		r = num_bits_op(op, r, v[i], bytes);
	return r;
}

static void tensor_reduce(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	const struct neuron_insn *w = &s->cur->w;
	float *out = s->x->row[1];
	uint32_t run = src->n / dst->n, i;
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		if (is_bits(w->op[0])) {
			uint32_t *v = (uint32_t *)s->x->row[0], *r = (uint32_t *)out;

			row_bits_load(src, p, v);
			for (i = 0; i < dst->n; i++)
				r[i] = reduce_bits(w->op[0], v + i * run, run, src->bytes);
			row_bits_store(dst, p, r);
		} else {
			const float *v = row_get(s->x, src, p, s->x->row[0]);

			for (i = 0; i < dst->n; i++)
				out[i] = s->x->num->reduce(w->op[0], v + (size_t)i * run, run);
			if (w->flags & NEURON_FLAG_NEGATE)
				s->x->num->vs(NEURON_ALU_MULTIPLY, out, out, -1.0f, dst->n);
			row_store(s->x, dst, p, out);
		}
	}
}

static void reciprocal(struct stream *s)
{
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float *out = row_target(s, p, s->x->row[1]);

		s->x->num->unary(NEURON_ALU_RECIPROCAL, out, in, s->op[0].n);
		row_store(s->x, &s->op[0], p, out);
	}
}

/* Where the predicate fails the destination keeps its bits. */
static void copy_predicated(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	bool reverse = s->cur->w.flags & NEURON_FLAG_REVERSE_PRED;
	uint32_t *pred = (uint32_t *)s->x->row[0], *from = (uint32_t *)s->x->row[1];
	uint32_t *to = (uint32_t *)s->x->row[2], i, bits = 0;
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		row_bits_load(&s->op[2], p, pred);
		row_bits_load(dst, p, to);
		if (src->space != NEURON_SPACE_NONE)
			row_bits_load(src, p, from);
		else
			bits = scalar_bits(s, &s->imm[0], p, dst);
		for (i = 0; i < dst->n; i++)
			if ((pred[i] != 0) != reverse)
				to[i] = src->space != NEURON_SPACE_NONE ? from[i] : bits;
		row_bits_store(dst, p, to);
	}
}

static void select_scalar(struct stream *s)
{
	const struct opnd *dst = &s->op[0];
	bool reverse = s->cur->w.flags & NEURON_FLAG_REVERSE_PRED;
	uint32_t *pred = (uint32_t *)s->x->row[0], i;
	float *in = s->x->row[1];
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		float other = scalar_get(&s->imm[0], p);

		row_bits_load(&s->op[2], p, pred);
		row_load(s->x, &s->op[1], p, in);
		for (i = 0; i < dst->n; i++)
			in[i] = (pred[i] != 0) != reverse ? in[i] : other;
		select_acc(s, p, in);
		row_store(s->x, dst, p, in);
	}
}

static void transpose32(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	uint32_t tile[32][32], row[32];
	unsigned int p, i;

	for (p = 0; p < src->parts; p++)
		row_bits_load(src, p, tile[p]);
	for (p = 0; p < dst->parts; p++) {
		for (i = 0; i < dst->n; i++)
			row[i] = tile[i][p];
		row_bits_store(dst, p, row);
	}
}

void dve_run(struct stream *s)
{
	switch (s->cur->w.opcode) {
	case NEURON_OP_TENSOR_COPY:		tensor_copy(s); break;
	case NEURON_OP_COPY_PREDICATED:		copy_predicated(s); break;
	case NEURON_OP_MEMSET:			tensor_memset(s); break;
	case NEURON_OP_TENSOR_TENSOR:		tensor_tensor(s); break;
	case NEURON_OP_TENSOR_SCALAR:		tensor_scalar(s); break;
	case NEURON_OP_SCALAR_TENSOR_TENSOR:	scalar_tensor_tensor(s); break;
	case NEURON_OP_TENSOR_REDUCE:		tensor_reduce(s); break;
	case NEURON_OP_RECIPROCAL:		reciprocal(s); break;
	case NEURON_OP_SELECT:			select_scalar(s); break;
	case NEURON_OP_TRANSPOSE32:		transpose32(s); break;
	}
}
