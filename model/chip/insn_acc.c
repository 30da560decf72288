// SPDX-License-Identifier: MIT
/*
 * Instructions of the vector engine that carry something from element to element:
 * scans, and reductions into the accumulators, one fp32 for each lane, which a
 * later instruction reads out.
 *
 * Published: an instruction of this group with the command idle leaves the
 * accumulators undefined.
 */
#include <endian.h>
#include <math.h>

#include "exec_state.h"

#define FP32_MIN	(-3.4028234663852886e38f)

/* --- accumulators ---------------------------------------------------------------------- */

static void acc_mark(struct stream *s, bool defined)
{
	struct exec_core *c = stream_core(s);
	unsigned int p, lane;

	for (p = 0; p < s->op[0].parts; p++) {
		lane = s->op[0].part + p;
		if (defined)
			c->dve_acc_defined[lane / 64] |= 1ull << (lane % 64);
		else
			c->dve_acc_defined[lane / 64] &= ~(1ull << (lane % 64));
	}
}

/* The command needs accumulators that hold something; strict mode says when not. */
static bool acc_holds(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	unsigned int p, lane;

	for (p = 0; s->x->strict && p < s->op[0].parts; p++) {
		lane = s->op[0].part + p;
		if (!(c->dve_acc_defined[lane / 64] >> (lane % 64) & 1)) {
			struct neuron_fault_record *f = exec_fault(s->x, s, NEURON_FAULT_ACC_UNDEFINED);

			f->partition = lane;
			f->size = htole64(4);
			return false;
		}
	}
	return true;
}

/* Value that changes nothing; subtract: it is subtracted from the first element. */
static float identity(unsigned int op)
{
	switch (op) {
	case NEURON_ALU_MULTIPLY:	return 1.0f;
	case NEURON_ALU_MAXIMUM:	return -INFINITY;
	case NEURON_ALU_MINIMUM:	return INFINITY;
	default:			return 0.0f;
	}
}

/* Accumulator commands of @w with an initial value in scalar @init. */
static bool acc_command(struct stream *s, unsigned int lowest, unsigned int init)
{
	unsigned int cmd = s->cur->w.acc;

	if (cmd < lowest || cmd > NEURON_ACC_LOAD_REDUCE || cmd == NEURON_ACC_RESET)
		return exec_bad(s, 11, cmd, NEURON_ACC_LOAD_REDUCE);
	if (cmd == NEURON_ACC_LOAD_REDUCE && !s->imm[init].present)
		return exec_bad(s, 4 + init, NEURON_IMM_NONE, NEURON_IMM_F32);
	return cmd != NEURON_ACC_REDUCE || acc_holds(s);
}

/* Lane @part before the instruction's own elements. */
static float acc_start(const struct stream *s, unsigned int part, unsigned int op,
		       const struct scalar *init)
{
	switch (s->cur->w.acc) {
	case NEURON_ACC_REDUCE:
		return stream_core((struct stream *)s)->dve_acc[s->op[0].part + part];
	case NEURON_ACC_LOAD_REDUCE:
		return scalar_get(init, part);
	default:
		return identity(op);
	}
}

static void acc_add(struct stream *s, unsigned int part, unsigned int op, const float *row,
		    const struct scalar *init)
{
	struct exec_core *c = stream_core(s);
	float acc = acc_start(s, part, op, init), sum;

	if (s->cur->w.acc == NEURON_ACC_IDLE)
		return;
	sum = s->x->num->reduce(op, row, s->op[0].n);
	s->x->num->vv(op, &c->dve_acc[s->op[0].part + part], &acc, &sum, 1);
}

static void acc_done(struct stream *s)
{
	acc_mark(s, s->cur->w.acc != NEURON_ACC_IDLE);
}

/* --- shared checks -------------------------------------------------------------------- */

static bool like(struct stream *s, unsigned int i)
{
	if (s->op[i].parts != s->op[0].parts)
		return exec_bad(s, i, s->op[i].parts, s->op[0].parts);
	return s->op[i].n == s->op[0].n || exec_bad(s, i, s->op[i].n, s->op[0].n);
}

/* Published: abs_max and abs_min from v4 on; average belongs to partition_reduce. */
static bool on_dve(const struct stream *s, unsigned int op)
{
	bool absolute = op == NEURON_ALU_ABS_MAX || op == NEURON_ALU_ABS_MIN;

	return op != NEURON_ALU_AVERAGE && (!absolute || s->x->job->nc_version >= 4);
}

/* An arithmetic operator of two operands that the vector engine has. */
static bool binary(struct stream *s, unsigned int which)
{
	unsigned int op = s->cur->w.op[which];
	const struct num_alu *alu = num_alu(op);

	if (!alu->name || alu->bits || alu->arity != 2 || op == NEURON_ALU_POWER || !on_dve(s, op))
		return exec_bad(s, 6, op, NEURON_ALU_LOGICAL_XOR);
	return true;
}

/* An arithmetic operator with one operand or with a scalar. */
static bool scalar_op(struct stream *s, unsigned int which)
{
	unsigned int op = s->cur->w.op[which];
	const struct num_alu *alu = num_alu(op);

	if (!alu->name || alu->bits || op == NEURON_ALU_POWER || op == NEURON_ALU_RSQRT || !on_dve(s, op))
		return exec_bad(s, 6, op, NEURON_ALU_LOGICAL_XOR);
	if (alu->arity == 2 && !s->imm[which].present)
		return exec_bad(s, 4 + which, NEURON_IMM_NONE, NEURON_IMM_F32);
	return true;
}

static bool one_of(struct stream *s, unsigned int which, uint32_t mask)
{
	unsigned int op = s->cur->w.op[which];

	return (op < 32 && mask >> op & 1) || exec_bad(s, 6, op, NEURON_ALU_ADD);
}

#define OP(name)	(1u << NEURON_ALU_##name)
#define REDUCES		(OP(ADD) | OP(MULTIPLY) | OP(MAXIMUM) | OP(MINIMUM))

static void apply(const struct stream *s, unsigned int op, float *out, const float *in,
		  const struct scalar *sc, unsigned int part)
{
	if (num_alu(op)->arity == 1)
		s->x->num->unary(op, out, in, s->op[0].n);
	else
		s->x->num->vs(op, out, in, scalar_get(sc, part), s->op[0].n);
}

/* --- tensor_scalar_reduce ---------------------------------------------------------------- */

bool scalar_reduce_prepare(struct stream *s)
{
	if (!like(s, 1) || !scalar_op(s, 0) || !one_of(s, 2, REDUCES))
		return false;
	if (s->cur->w.flags & NEURON_FLAG_REVERSE0)
		return exec_bad(s, 13, NEURON_FLAG_REVERSE0, 0);
	return acc_command(s, NEURON_ACC_IDLE, 1);
}

void scalar_reduce_run(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float *out = row_target(s, p, s->x->row[1]);

		apply(s, w->op[0], out, in, &s->imm[0], p);
		acc_add(s, p, w->op[2], out, &s->imm[1]);
		row_store(s->x, &s->op[0], p, out);
	}
	acc_done(s);
}

/* --- scans ------------------------------------------------------------------------------- */

bool cumulative_prepare(struct stream *s)
{
	unsigned int i;

	if (!like(s, 1) || !scalar_op(s, 0) || !one_of(s, 1, REDUCES | OP(SUBTRACT)))
		return false;
	for (i = 0; i < 2; i++)
		if (!num_dtype(s->op[i].dtype)->is_float && s->op[i].bytes == 4)
			return exec_bad(s, i, s->op[i].dtype, NEURON_DTYPE_FLOAT32);
	return acc_command(s, NEURON_ACC_REDUCE, 1);
}

/* acc = op1(op0(x, imm0), acc), and every acc is an element of the result. */
void cumulative_run(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	struct exec_core *c = stream_core(s);
	unsigned int p;
	uint32_t i;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float acc = acc_start(s, p, w->op[1], &s->imm[1]), *v = s->x->row[1];

		apply(s, w->op[0], v, in, &s->imm[0], p);
		for (i = 0; i < s->op[0].n; i++) {
			s->x->num->vv(w->op[1], &acc, &v[i], &acc, 1);
			v[i] = acc;
		}
		c->dve_acc[s->op[0].part + p] = acc;
		row_store(s->x, &s->op[0], p, v);
	}
	acc_done(s);
}

bool scan_prepare(struct stream *s)
{
	if (!like(s, 1) || !like(s, 2) || !binary(s, 0) || !binary(s, 1))
		return false;
	if (s->op[1].space == NEURON_SPACE_PSUM && s->op[2].space == NEURON_SPACE_PSUM)
		return exec_bad(s, 2, NEURON_SPACE_PSUM, NEURON_SPACE_SBUF);
	return s->imm[0].present || exec_bad(s, 4, NEURON_IMM_NONE, NEURON_IMM_F32);
}

/* r = op1(op0(data0, r), data1); REVERSE swaps an operator's operands. */
void scan_run(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	bool swap0 = w->flags & NEURON_FLAG_REVERSE0, swap1 = w->flags & NEURON_FLAG_REVERSE1;
	const struct num_ops *num = s->x->num;
	unsigned int p;
	uint32_t i;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *a = row_get(s->x, &s->op[1], p, s->x->row[0]);
		const float *b = row_get(s->x, &s->op[2], p, s->x->row[1]);
		float r = scalar_get(&s->imm[0], p), *out = s->x->row[2];

		for (i = 0; i < s->op[0].n; i++) {
			num->vv(w->op[0], &r, swap0 ? &r : &a[i], swap0 ? &a[i] : &r, 1);
			num->vv(w->op[1], &r, swap1 ? &b[i] : &r, swap1 ? &r : &b[i], 1);
			out[i] = r;
		}
		row_store(s->x, &s->op[0], p, out);
	}
}

/* --- selections ---------------------------------------------------------------------------- */

/* The reduction of select_reduce: maximum, from -inf. */
bool select_acc_prepare(struct stream *s)
{
	if (s->cur->w.acc == NEURON_ACC_IDLE)
		return true;
	if (s->cur->w.acc > NEURON_ACC_RESET_REDUCE || s->cur->w.acc == NEURON_ACC_RESET)
		return exec_bad(s, 11, s->cur->w.acc, NEURON_ACC_RESET_REDUCE);
	/* Published: the data is no tf32 or 32-bit integer, the predicate has 8 or 16 bits. */
	if (s->op[1].bytes == 4 && s->op[1].dtype != NEURON_DTYPE_FLOAT32)
		return exec_bad(s, 1, s->op[1].dtype, NEURON_DTYPE_FLOAT32);
	if (s->op[2].bytes > 2)
		return exec_bad(s, 2, s->op[2].dtype, NEURON_DTYPE_UINT16);
	return one_of(s, 2, OP(MAXIMUM)) && acc_command(s, NEURON_ACC_REDUCE, 0);
}

void select_acc(struct stream *s, unsigned int part, const float *row)
{
	acc_add(s, part, NEURON_ALU_MAXIMUM, row, NULL);
	if (part + 1 == s->op[0].parts)
		acc_done(s);
}

static bool comparison(struct stream *s, unsigned int which)
{
	return one_of(s, which, OP(EQUAL) | OP(GREATER_EQUAL) | OP(GREATER) | OP(LESS_EQUAL) | OP(LESS));
}

static bool bound(struct stream *s, unsigned int i)
{
	if (!s->imm[i].vector || s->imm[i].vec.dtype != NEURON_DTYPE_FLOAT32)
		return exec_bad(s, 4 + i, s->cur->w.imm[i].kind, NEURON_IMM_VEC);
	return true;
}

bool range_select_prepare(struct stream *s)
{
	const struct scalar *start = &s->imm[2], *other = &s->imm[3];

	if (!like(s, 1) || !comparison(s, 0) || !comparison(s, 1) || !bound(s, 0) || !bound(s, 1))
		return false;
	if (start->vector || !(start->value >= 0) || start->value + s->op[0].n > 0x1p24f)
		return exec_bad(s, 20, start->bits, 1u << 24);
	/* Published: the only value there is for on_false. */
	if (other->present && (other->vector || other->value != FP32_MIN))
		return exec_bad(s, 21, other->bits, 0xff7fffff);
	if (s->cur->w.acc == NEURON_ACC_LOAD_REDUCE)
		return exec_bad(s, 11, s->cur->w.acc, NEURON_ACC_RESET_REDUCE);
	return s->cur->w.acc == NEURON_ACC_IDLE ||
	       (one_of(s, 2, OP(MAXIMUM)) && acc_command(s, NEURON_ACC_REDUCE, 0));
}

static bool compares(unsigned int op, float a, float b)
{
	switch (op) {
	case NEURON_ALU_EQUAL:		return a == b;
	case NEURON_ALU_GREATER_EQUAL:	return a >= b;
	case NEURON_ALU_GREATER:	return a > b;
	case NEURON_ALU_LESS_EQUAL:	return a <= b;
	default:			return a < b;
	}
}

void range_select_run(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int p;
	uint32_t i;

	for (p = 0; p < s->op[0].parts; p++) {
		float lo = scalar_get(&s->imm[0], p), hi = scalar_get(&s->imm[1], p), *v = s->x->row[0];

		row_load(s->x, &s->op[1], p, v);
		for (i = 0; i < s->op[0].n; i++) {
			float at = s->imm[2].value + i;

			if (!compares(w->op[0], at, lo) || !compares(w->op[1], at, hi))
				v[i] = FP32_MIN;
		}
		acc_add(s, p, NEURON_ALU_MAXIMUM, v, NULL);
		row_store(s->x, &s->op[0], p, v);
	}
	acc_done(s);
}

/* --- exponential ----------------------------------------------------------------------------- */

bool exponential_prepare(struct stream *s)
{
	if (!like(s, 1))
		return false;
	if (s->cur->w.acc != NEURON_ACC_IDLE && !one_of(s, 2, OP(ADD)))
		return false;
	return acc_command(s, NEURON_ACC_IDLE, 1);
}

void exponential_run(struct stream *s)
{
	const struct num_ops *num = s->x->num;
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *in = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float *out = row_target(s, p, s->x->row[1]);

		num->vs(NEURON_ALU_SUBTRACT, out, in, s->imm[0].present ? scalar_get(&s->imm[0], p) : 0.0f,
			s->op[0].n);
		num->act(NEURON_ACTFN_EXP, out, out, s->op[0].n);
		acc_add(s, p, NEURON_ALU_ADD, out, &s->imm[1]);
		row_store(s->x, &s->op[0], p, out);
	}
	acc_done(s);
}

/* --- read-out ---------------------------------------------------------------------------------- */

bool dve_acc_prepare(struct stream *s)
{
	return s->op[0].n == 1 ? acc_holds(s) : exec_bad(s, 0, s->op[0].n, 1);
}

void dve_acc_run(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	unsigned int p, lane;
	float v;

	for (p = 0; p < s->op[0].parts; p++) {
		lane = s->op[0].part + p;
		/* Undefined is poison, so that nobody takes it for a result. */
		v = c->dve_acc_defined[lane / 64] >> (lane % 64) & 1 ? c->dve_acc[lane] : NAN;
		if (s->cur->w.flags & NEURON_FLAG_NEGATE)
			s->x->num->vs(NEURON_ALU_MULTIPLY, &v, &v, -1.0f, 1);
		row_store(s->x, &s->op[0], p, &v);
	}
}
