// SPDX-License-Identifier: MIT
/* Scalar engine. */
#include <string.h>

#include "rules.h"

static bool activation_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op,
			  const struct nki_activation_args *args)
{
	if (nki_act_fn(op) < 0) {
		nki_fail(k, loc, "operator 0x%x is not an activation function", op);
		return false;
	}
	if (nki_act_fn(op) == NEURON_ACTFN_PRELU) {
		nki_fail(k, loc, "prelu has its slope in nki_activate2 only");
		return false;
	}
	if (nki_act_fn(op) == NEURON_ACTFN_RECIPROCAL && args->bias.kind && k->arch->nc_version < 3) {
		nki_fail(k, loc, "reciprocal takes no bias on %s", k->arch->name);
		return false;
	}
	if (args->bias.kind && args->bias.kind != NEURON_IMM_VEC && k->arch->nc_version < 3) {
		nki_fail(k, loc, "a scalar bias needs NeuronCore-v3 (Trn2); allowed on %s: a (P, 1) tile",
			 k->arch->name);
		return false;
	}
	if (args->scale.kind && args->scale.kind != NEURON_IMM_F32 && args->scale.kind != NEURON_IMM_VEC) {
		nki_fail(k, loc, "scale must be nki_f32() or nki_vec()");
		return false;
	}
	if (args->reduce_op && args->reduce_op != NKI_ADD) {
		nki_fail(k, loc, "reduce_op must be NKI_ADD");
		return false;
	}
	if (args->reduce_cmd > NKI_REDUCE_RESET_REDUCE) {
		nki_fail(k, loc, "reduce_cmd %d; allowed: 0 to %d", args->reduce_cmd,
			 NKI_REDUCE_RESET_REDUCE);
		return false;
	}
	return true;
}

static void read_accumulators(struct nki_kernel *k, struct nki_loc loc, struct nki_view res)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_ACT_READ_ACC, NKI_ENGINE_SCALAR, 0);

	if (insn && nki_put_view(k, loc, insn, 0, "reduce_res", res, 0))
		nki_emit(k, insn);
}

static void activate(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, enum nki_op op,
		     struct nki_view data, const struct nki_activation_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_ACTIVATE, NKI_ENGINE_SCALAR, 0);
	struct nki_scalar scale = args->scale.kind ? args->scale : nki_f32(1.0f);

	if (!insn || !activation_ok(k, loc, op, args) || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data", data) ||
	    !nki_put_scalar(k, loc, insn, 0, "scale", scale, data.num[0]) ||
	    !nki_put_scalar(k, loc, insn, 1, "bias", args->bias, data.num[0]))
		return;
	insn->w.op[0] = nki_act_fn(op);
	insn->w.acc = args->reduce_cmd;
	if (args->reduce_cmd == NKI_REDUCE_REDUCE || args->reduce_cmd == NKI_REDUCE_RESET_REDUCE)
		insn->w.op[2] = NEURON_ALU_ADD;
	nki_emit(k, insn);
	if (args->reduce_res.buf && nki_live(k, loc, "reduce_res", args->reduce_res)) {
		if (args->reduce_res.num[0] != data.num[0] || nki_free_elements(args->reduce_res) != 1) {
			nki_fail(k, loc, "reduce_res has %u partitions of %llu elements; wanted: %u of 1",
				 args->reduce_res.num[0],
				 (unsigned long long)nki_free_elements(args->reduce_res), data.num[0]);
			return;
		}
		read_accumulators(k, loc, args->reduce_res);
	}
}

void nki_activation_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, enum nki_op op,
		     struct nki_view data, const struct nki_activation_args *args)
{
	if (nki_ok(k))
		activate(k, loc, dst, op, data, args);
}

void nki_activation_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    enum nki_op op, struct nki_view data, enum nki_op reduce_op,
			    struct nki_view reduce_res, const struct nki_activation_args *args)
{
	struct nki_activation_args a = *args;

	if (!nki_ok(k))
		return;
	if (reduce_op != NKI_ADD || a.reduce_cmd || a.reduce_res.buf || !reduce_res.buf) {
		nki_fail(k, loc, "reduce_op must be NKI_ADD, reduce_res a (P, 1) tile, and neither given twice");
		return;
	}
	a.reduce_op = reduce_op;
	a.reduce_res = reduce_res;
	a.reduce_cmd = NKI_REDUCE_RESET_REDUCE;
	activate(k, loc, dst, op, data, &a);
}

/* ------------------------------------------------------------------------ */
/* activate2								    */

static bool act_alu(enum nki_op op)
{
	return op == NKI_BYPASS || op == NKI_ADD || op == NKI_SUBTRACT || op == NKI_MULTIPLY;
}

static bool activate2_ops_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op, enum nki_op op0,
			     enum nki_op op1, const struct nki_activate2_args *args)
{
	bool second = op1 == NKI_ADD || op1 == NKI_SUBTRACT || op1 == NKI_BYPASS;
	unsigned int r = args->reduce_op;

	if (nki_act_fn(op) < 0) {
		nki_fail(k, loc, "operator 0x%x is not an activation function", op);
		return false;
	}
	if (!act_alu(op0) || !second || (op0 != NKI_MULTIPLY && op1 != NKI_BYPASS)) {
		nki_fail(k, loc, "op0, op1 allowed: multiply and add, subtract or bypass; add, subtract or bypass alone");
		return false;
	}
	if (r && r != NKI_ADD && r != NKI_MAXIMUM && r != NKI_MINIMUM && r != NEURON_ALU_ABS_MAX && r != NEURON_ALU_ABS_MIN) {
		nki_fail(k, loc, "reduce_op allowed: add, maximum, minimum, abs_max, abs_min");
		return false;
	}
	return true;
}

static bool activate2_scalars_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op0,
				 enum nki_op op1, struct nki_scalar imm0, struct nki_scalar imm1)
{
	if ((op0 != NKI_BYPASS && !nki_f32_or_vec(k, loc, "imm0", imm0)) ||
	    (op1 != NKI_BYPASS && !nki_f32_or_vec(k, loc, "imm1", imm1)))
		return false;
	if (imm0.kind == NEURON_IMM_VEC && imm1.kind == NEURON_IMM_VEC && imm0.vec.dtype != imm1.vec.dtype) {
		nki_fail(k, loc, "imm0 is %s, imm1 %s; they must be equal", nki_dtype_text(imm0.vec.dtype),
			 nki_dtype_text(imm1.vec.dtype));
		return false;
	}
	return true;
}

void nki_activate2_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, enum nki_op op,
		    struct nki_view data, struct nki_scalar imm0, struct nki_scalar imm1,
		    enum nki_op op0, enum nki_op op1, const struct nki_activate2_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_ACTIVATE2, NKI_ENGINE_SCALAR, 0);
	struct nki_scalar none = { 0 };
	struct nki_scalar param = args->relu_param.kind ? args->relu_param : nki_f32(0);

	if (!insn || !nki_live(k, loc, "data", data) || !activate2_ops_ok(k, loc, op, op0, op1, args) ||
	    !activate2_scalars_ok(k, loc, op0, op1, imm0, imm1) ||
	    !nki_f32_or_vec(k, loc, "relu_param", param) ||
	    !nki_reduce_ok(k, loc, args->reduce_cmd, args->reduce_res, data.num[0], false) ||
	    !nki_put_view(k, loc, insn, 0, "dst", dst, 0) || !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data", data) ||
	    !nki_put_scalar(k, loc, insn, 0, "imm0", op0 == NKI_BYPASS ? none : imm0, data.num[0]) ||
	    !nki_put_scalar(k, loc, insn, 1, "imm1", op1 == NKI_BYPASS ? none : imm1, data.num[0]) ||
	    !nki_put_scalar(k, loc, insn, 2, "relu_param", param, data.num[0]))
		return;
	insn->w.op[0] = op0;
	insn->w.op[1] = op1;
	insn->w.op[2] = nki_act_fn(op);
	insn->w.flags |= htole16((args->reverse0 ? NEURON_FLAG_REVERSE0 : 0) |
				 (args->reverse1 ? NEURON_FLAG_REVERSE1 : 0));
	insn->w.acc = args->reduce_cmd;
	if (args->reduce_cmd > NKI_REDUCE_RESET)
		nki_ext(k, insn)->aux[0] = htole32(args->reduce_op ? args->reduce_op : NKI_ADD);
	nki_emit(k, insn);
	if (args->reduce_res.buf)
		read_accumulators(k, loc, args->reduce_res);
}
