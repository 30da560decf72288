// SPDX-License-Identifier: MIT
/*
 * Scalar engine: dst = fn(src * scale + bias), product and sum rounded to fp32, the
 * function evaluated in double and rounded once. Accumulators add up results.
 */
#include <endian.h>

#include "exec_state.h"

bool act_fn_exists(unsigned int fn)
{
	switch (fn) {
#define NEURON_ACTFN(code, name, text) case code:
#include "neuron/isa.def"
		return true;
	}
	return false;
}

static bool activate_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	const struct opnd *dst = &s->op[0], *src = &s->op[1];

	/* Published: the slope of prelu exists in activate2 only. */
	if (!act_fn_exists(w->op[0]) || w->op[0] == NEURON_ACTFN_PRELU)
		return exec_bad(s, 6, w->op[0], NEURON_ACTFN_RECIPROCAL);
	if (dst->parts != src->parts)
		return exec_bad(s, 0, dst->parts, src->parts);
	if (dst->n != src->n)
		return exec_bad(s, 0, dst->n, src->n);
	if (w->acc > NEURON_ACC_RESET_REDUCE)
		return exec_bad(s, 11, w->acc, NEURON_ACC_RESET_REDUCE);
	if (w->acc != NEURON_ACC_IDLE && w->op[2] != NEURON_ALU_ADD)
		return exec_bad(s, 6, w->op[2], NEURON_ALU_ADD);
	/* Published: a bias is a (P, 1) tile on v2, and reciprocal has none there. */
	if (s->x->job->nc_version == 2 && s->imm[1].present &&
	    (w->op[0] == NEURON_ACTFN_RECIPROCAL ||
	     (!s->imm[1].vector && s->imm[1].value != 0.0f)))
		return exec_bad(s, 5, w->imm[1].kind, NEURON_IMM_VEC);
	if (s->imm[1].vector && s->imm[1].vec.dtype == NEURON_DTYPE_TFLOAT32)
		return exec_bad(s, 5, NEURON_DTYPE_TFLOAT32, NEURON_DTYPE_FLOAT32);
	return true;
}

bool act_prepare(struct stream *s)
{
	if (s->cur->w.opcode == NEURON_OP_ACTIVATE)
		return activate_prepare(s);
	if (s->op[0].n != 1)
		return exec_bad(s, 0, s->op[0].n, 1);
	return true;
}

static void accumulate(struct stream *s, unsigned int part, const float *row)
{
	struct exec_core *c = stream_core(s);
	unsigned int lane = s->op[0].part + part, cmd = s->cur->w.acc;
	float sum;

	if (cmd == NEURON_ACC_IDLE)
		return;
	if (cmd != NEURON_ACC_REDUCE)
		c->acc[lane] = 0.0f;
	c->acc_defined[lane / 64] |= 1ull << (lane % 64);
	if (cmd == NEURON_ACC_RESET)
		return;
	sum = s->x->num->reduce(NEURON_ALU_ADD, row, s->op[0].n);
	s->x->num->vs(NEURON_ALU_ADD, &c->acc[lane], &c->acc[lane], sum, 1);
}

void act_activate(struct stream *s)
{
	const struct num_ops *num = s->x->num;
	const struct opnd *dst = &s->op[0];
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float *out = row_target(s, p, s->x->row[1]);

		if (s->imm[0].present) {
			num->vs(NEURON_ALU_MULTIPLY, out, in, scalar_get(&s->imm[0], p), dst->n);
			in = out;
		}
		if (s->imm[1].present) {
			num->vs(NEURON_ALU_ADD, out, in, scalar_get(&s->imm[1], p), dst->n);
			in = out;
		}
		num->act(s->cur->w.op[0], out, in, dst->n);
		accumulate(s, p, out);
		row_store(s->x, dst, p, out);
	}
}

void act_read_acc(struct stream *s)
{
	const struct opnd *dst = &s->op[0];
	struct exec_core *c = stream_core(s);
	unsigned int p;

	for (p = 0; p < dst->parts; p++) {
		unsigned int lane = dst->part + p;

		row_store(s->x, dst, p, &c->acc[lane]);
	}
}
