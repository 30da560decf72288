// SPDX-License-Identifier: MIT
/*
 * activate2 of the scalar engine (v4): dst = fn((data op0 imm0) op1 imm1), with two
 * operators from a published list, and a reduction that may be other than a sum.
 */
#include <endian.h>
#include <math.h>

#include "exec_state.h"

static const struct {
	uint8_t op0, op1;
} pairs[] = {
	{ NEURON_ALU_MULTIPLY, NEURON_ALU_ADD }, { NEURON_ALU_MULTIPLY, NEURON_ALU_SUBTRACT },
	{ NEURON_ALU_MULTIPLY, NEURON_ALU_BYPASS }, { NEURON_ALU_ADD, NEURON_ALU_BYPASS },
	{ NEURON_ALU_SUBTRACT, NEURON_ALU_BYPASS }, { NEURON_ALU_BYPASS, NEURON_ALU_BYPASS },
};

static bool pair_ok(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (w->op[0] == pairs[i].op0 && w->op[1] == pairs[i].op1)
			return true;
	return exec_bad(s, 6, w->op[0], NEURON_ALU_MULTIPLY);
}

static bool reduces(unsigned int op)
{
	return op == NEURON_ALU_ADD || op == NEURON_ALU_MAXIMUM || op == NEURON_ALU_MINIMUM ||
	       op == NEURON_ALU_ABS_MAX || op == NEURON_ALU_ABS_MIN;
}

/* Strict mode: what is added to must hold something. */
static bool acc_holds(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	unsigned int p, lane;

	for (p = 0; s->x->strict && s->cur->w.acc == NEURON_ACC_REDUCE && p < s->op[0].parts; p++) {
		lane = s->op[0].part + p;
		if (!(c->acc_defined[lane / 64] >> (lane % 64) & 1)) {
			struct neuron_fault_record *f = exec_fault(s->x, s, NEURON_FAULT_ACC_UNDEFINED);

			f->partition = lane;
			f->size = htole64(4);
			return false;
		}
	}
	return true;
}

bool activate2_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int i;

	if (!act_fn_exists(w->op[2]))
		return exec_bad(s, 6, w->op[2], NEURON_ACTFN_GELU_APPRX_SIGMOID_DX);
	if (s->op[1].parts != s->op[0].parts || s->op[1].n != s->op[0].n)
		return exec_bad(s, 1, s->op[1].n, s->op[0].n);
	if (!pair_ok(s))
		return false;
	for (i = 0; i < 2; i++)
		if (w->op[i] != NEURON_ALU_BYPASS && !s->imm[i].present)
			return exec_bad(s, 4 + i, NEURON_IMM_NONE, NEURON_IMM_F32);
	if (w->acc > NEURON_ACC_RESET_REDUCE)
		return exec_bad(s, 11, w->acc, NEURON_ACC_RESET_REDUCE);
	if (w->acc != NEURON_ACC_IDLE && !reduces(s->cur->ext->aux[0]))
		return exec_bad(s, 28, s->cur->ext->aux[0], NEURON_ALU_ADD);
	return acc_holds(s);
}

static void step(struct stream *s, unsigned int k, unsigned int part, float *out, const float *in)
{
	unsigned int op = s->cur->w.op[k];
	float v = s->imm[k].present ? scalar_get(&s->imm[k], part) : 0.0f;

	if (s->cur->w.flags & (k ? NEURON_FLAG_REVERSE1 : NEURON_FLAG_REVERSE0))
		s->x->num->sv(op, out, v, in, s->op[0].n);
	else
		s->x->num->vs(op, out, in, v, s->op[0].n);
}

static void prelu(struct stream *s, float *v, float slope)
{
	uint32_t i;

	for (i = 0; i < s->op[0].n; i++)
		v[i] = v[i] < 0 ? v[i] * slope : v[i];
}

static void reduce(struct stream *s, unsigned int part, const float *row)
{
	struct exec_core *c = stream_core(s);
	unsigned int lane = s->op[0].part + part, op = s->cur->ext->aux[0], cmd = s->cur->w.acc;
	float sum;

	if (cmd == NEURON_ACC_IDLE)
		return;
	if (cmd != NEURON_ACC_REDUCE)
		c->acc[lane] = op == NEURON_ALU_MAXIMUM ? -INFINITY :
			       op == NEURON_ALU_MINIMUM || op == NEURON_ALU_ABS_MIN ? INFINITY : 0.0f;
	c->acc_defined[lane / 64] |= 1ull << (lane % 64);
	if (cmd == NEURON_ACC_RESET)
		return;
	sum = s->x->num->reduce(op, row, s->op[0].n);
	s->x->num->vv(op, &c->acc[lane], &c->acc[lane], &sum, 1);
}

void activate2_run(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float *out = row_target(s, p, s->x->row[1]);

		step(s, 0, p, out, in);
		if (w->op[1] != NEURON_ALU_BYPASS)
			step(s, 1, p, out, out);
		if (w->op[2] == NEURON_ACTFN_PRELU)
			prelu(s, out, s->imm[2].present ? scalar_get(&s->imm[2], p) : 0.0f);
		else
			s->x->num->act(w->op[2], out, out, s->op[0].n);
		reduce(s, p, out);
		row_store(s->x, &s->op[0], p, out);
	}
}
