// SPDX-License-Identifier: MIT
/*
 * GpSimd engine: instructions that make values from an affine pattern
 * offset + partition * multiplier + sum of index * step, in 32-bit integers.
 */
#include <endian.h>

#include "exec_state.h"

static bool is_compare(unsigned int op)
{
	return op >= NEURON_ALU_EQUAL && op <= NEURON_ALU_LESS;
}

/* The pattern stands in access pattern 2, which has no memory behind it. */
static bool pattern_check(struct stream *s)
{
	const struct neuron_ap *ap = &s->cur->w.ap[2];
	uint64_t n = 1;
	unsigned int i;

	if (!ap->dims || ap->dims > NEURON_AP_DIMS)
		return exec_bad(s, 2, ap->dims, NEURON_AP_DIMS);
	for (i = 0; i < ap->dims; i++) {
		n *= ap->num[i];
		if (!n || n > SBUF_ELEMENTS)
			return exec_bad(s, 2, n, SBUF_ELEMENTS);
	}
	if (n != s->op[0].n)
		return exec_bad(s, 2, n, s->op[0].n);
	return true;
}

bool pool_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int i;

	if (!pattern_check(s))
		return false;
	for (i = 0; i < 2; i++) {
		bool integer = w->opcode == NEURON_OP_IOTA || i == 0;

		if (integer && w->imm[i].kind != NEURON_IMM_I32 && w->imm[i].kind != NEURON_IMM_NONE &&
		    w->imm[i].kind != NEURON_IMM_REG)
			return exec_bad(s, 4 + i, w->imm[i].kind, NEURON_IMM_I32);
	}
	if (w->opcode == NEURON_OP_IOTA)
		return true;
	if (!is_compare(w->op[0]))
		return exec_bad(s, 6, w->op[0], NEURON_ALU_LESS);
	if (s->op[1].parts != s->op[0].parts)
		return exec_bad(s, 1, s->op[1].parts, s->op[0].parts);
	if (s->op[1].n != s->op[0].n)
		return exec_bad(s, 1, s->op[1].n, s->op[0].n);
	return true;
}

static void affine_row(const struct neuron_ap *ap, uint32_t first, uint32_t *out)
{
	uint32_t num[NEURON_AP_DIMS] = { 1, 1, 1, 1 }, step[NEURON_AP_DIMS] = { 0 };
	uint32_t i0, i1, i2, i3, at = 0;

	for (i0 = 0; i0 < ap->dims; i0++) {
		num[i0] = ap->num[i0];
		step[i0] = (int32_t)(int16_t)ap->step[i0];
	}
	for (i3 = 0; i3 < num[3]; i3++)
		for (i2 = 0; i2 < num[2]; i2++)
			for (i1 = 0; i1 < num[1]; i1++)
				for (i0 = 0; i0 < num[0]; i0++)
					out[at++] = first + i3 * step[3] + i2 * step[2] +
						    i1 * step[1] + i0 * step[0];
}

/* 32-bit integers to the type of @dst: to floats through fp32, to integers exactly. */
static void iota(struct stream *s)
{
	const struct opnd *dst = &s->op[0];
	uint32_t *v = (uint32_t *)s->x->row[0], i;
	float *f = s->x->row[1];
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		affine_row(&s->cur->w.ap[2], s->imm[0].bits + p * s->imm[1].bits, v);
		if (!num_dtype(dst->dtype)->is_float && dst->bytes == 4) {
			row_bits_store(dst, p, v);
			continue;
		}
		for (i = 0; i < dst->n; i++)
			f[i] = (int32_t)v[i];
		row_store(s->x, dst, p, f);
	}
}

static bool compare(unsigned int op, int32_t v)
{
	switch (op) {
	case NEURON_ALU_EQUAL:		return v == 0;
	case NEURON_ALU_NOT_EQUAL:	return v != 0;
	case NEURON_ALU_GREATER_EQUAL:	return v >= 0;
	case NEURON_ALU_GREATER:	return v > 0;
	case NEURON_ALU_LESS_EQUAL:	return v <= 0;
	default:			return v < 0;
	}
}

static void affine_select(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	const struct neuron_insn *w = &s->cur->w;
	uint32_t *v = (uint32_t *)s->x->row[0], i;
	float *in = s->x->row[1];
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		float other = scalar_get(&s->imm[1], p);

		affine_row(&w->ap[2], s->imm[0].bits + p * w->aux, v);
		row_load(s->x, src, p, in);
		for (i = 0; i < dst->n; i++)
			in[i] = compare(w->op[0], v[i]) ? in[i] : other;
		row_store(s->x, dst, p, in);
	}
}

void pool_run(struct stream *s)
{
	if (s->cur->w.opcode == NEURON_OP_IOTA)
		iota(s);
	else
		affine_select(s);
}
