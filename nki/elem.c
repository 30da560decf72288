// SPDX-License-Identifier: MIT
/* Elementwise instructions. */
#include <string.h>

#include "rules.h"

static bool int32_in_sbuf(struct nki_view v)
{
	return (v.dtype == NKI_INT32 || v.dtype == NKI_UINT32) && v.buf->space == NEURON_SPACE_SBUF;
}

void nki_tensor_tensor_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view data1, struct nki_view data2, enum nki_op op,
			const struct nki_engine_args *args)
{
	enum nki_engine engine = args->engine;
	struct nki_view v[3] = { dst, data1, data2 };
	struct nki_insn *insn;
	struct nki_alu alu;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "data1", data1) ||
	    !nki_live(k, loc, "data2", data2) || !nki_alu_ok(k, loc, op, &alu))
		return;
	if (alu.arity != 2) {
		nki_fail(k, loc, "operator %s has one operand; allowed: two-operand operators", alu.text);
		return;
	}
	if (!engine && op == NKI_POWER)
		engine = NKI_ENGINE_GPSIMD;
	if (!engine && alu.cls == 'A' && int32_in_sbuf(dst) && int32_in_sbuf(data1) && int32_in_sbuf(data2))
		engine = NKI_ENGINE_GPSIMD;
	if (op == NKI_POWER && engine != NKI_ENGINE_GPSIMD) {
		nki_fail(k, loc, "power runs on gpsimd only");
		return;
	}
	insn = nki_begin(k, loc, NEURON_OP_TENSOR_TENSOR, engine, NKI_ENGINE_VECTOR);
	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data1", data1, 0) ||
	    !nki_put_view(k, loc, insn, 2, "data2", data2, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data1", data1) ||
	    !nki_same_shape(k, loc, "data1", data1, "data2", data2) ||
	    !nki_not_both_psum(k, loc, data1, data2) ||
	    (alu.cls == 'B' && !nki_bits_ok(k, loc, v, 3, alu.text)))
		return;
	insn->w.op[0] = op;
	nki_emit(k, insn);
}

static bool act_pair_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op0, enum nki_op op1)
{
	if (k->arch->nc_version < 3) {
		nki_fail(k, loc, "the scalar engine does this from NeuronCore-v3 (Trn2) on");
		return false;
	}
	if ((op0 == NKI_MULTIPLY && (op1 == NKI_ADD || op1 == NKI_BYPASS)) ||
	    (op0 == NKI_ADD && op1 == NKI_BYPASS))
		return true;
	nki_fail(k, loc, "operators allowed on the scalar engine: multiply and add, multiply, add");
	return false;
}

void nki_tensor_scalar_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view data, enum nki_op op0, struct nki_scalar operand0,
			const struct nki_tensor_scalar_args *args)
{
	bool rsqrt = op0 == NKI_RSQRT || args->op1 == NKI_RSQRT;
	bool power = op0 == NKI_POWER || args->op1 == NKI_POWER;
	struct nki_view v[2] = { dst, data };
	struct nki_alu alu0, alu1 = { "bypass", 'A', 1, false };
	struct nki_insn *insn;

	insn = nki_begin(k, loc, NEURON_OP_TENSOR_SCALAR, args->engine,
		     rsqrt || power ? NKI_ENGINE_GPSIMD : NKI_ENGINE_VECTOR);
	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data", data) ||
	    !nki_put_stage(k, loc, insn, 0, op0, operand0, args->reverse0, data.num[0], &alu0) ||
	    !nki_put_stage(k, loc, insn, 1, args->op1, args->operand1, args->reverse1, data.num[0], &alu1))
		return;
	if ((rsqrt || power) && insn->point.engine != NEURON_ENGINE_POOL) {
		nki_fail(k, loc, "%s runs on gpsimd only", rsqrt ? "rsqrt" : "power");
		return;
	}
	if (args->op1 && alu0.cls != alu1.cls) {
		nki_fail(k, loc, "%s and %s; allowed: both arithmetic or both bit-vector", alu0.text,
			 alu1.text);
		return;
	}
	if (alu0.cls == 'B' && (insn->point.engine != NEURON_ENGINE_DVE || !nki_bits_ok(k, loc, v, 2, alu0.text))) {
		nki_fail(k, loc, "bit-vector operators run on the vector engine only");
		return;
	}
	if (insn->point.engine == NEURON_ENGINE_ACT && !act_pair_ok(k, loc, op0, args->op1))
		return;
	nki_emit(k, insn);
}

void nki_scalar_tensor_tensor_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			       struct nki_view data, enum nki_op op0, struct nki_scalar operand0,
			       enum nki_op op1, struct nki_view operand1,
			       const struct nki_scalar_tensor_tensor_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_SCALAR_TENSOR_TENSOR, NKI_ENGINE_VECTOR, 0);
	struct nki_alu alu0, alu1;

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_put_view(k, loc, insn, 2, "operand1", operand1, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data", data) ||
	    !nki_same_shape(k, loc, "data", data, "operand1", operand1) ||
	    !nki_not_both_psum(k, loc, data, operand1) ||
	    !nki_put_stage(k, loc, insn, 0, op0, operand0, args->reverse0, data.num[0], &alu0) ||
	    !nki_alu_ok(k, loc, op1, &alu1))
		return;
	if (alu0.cls != 'A' || alu1.cls != 'A' || alu1.arity != 2 || op0 == NKI_RSQRT ||
	    op0 == NKI_POWER || op1 == NKI_POWER) {
		nki_fail(k, loc, "%s, %s; allowed: arithmetic operators of the vector engine, op1 with two operands",
			 alu0.text, alu1.text);
		return;
	}
	insn->w.op[1] = op1;
	if (args->reverse1)
		insn->w.flags |= htole16(NEURON_FLAG_REVERSE1);
	nki_emit(k, insn);
}

void nki_tensor_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			enum nki_op op, struct nki_view data, unsigned int axis,
			const struct nki_tensor_reduce_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_TENSOR_REDUCE, NKI_ENGINE_VECTOR, 0);
	struct nki_view v[2] = { dst, data };
	uint64_t left = 1;
	struct nki_alu alu;

	if (!insn || !nki_live(k, loc, "data", data) || !nki_alu_ok(k, loc, op, &alu))
		return;
	if (!alu.reduce || (alu.cls == 'B' && !nki_bits_ok(k, loc, v, 2, alu.text))) {
		nki_fail(k, loc, "operator %s is not a reduction", alu.text);
		return;
	}
	if (axis < 1 || axis >= data.dims) {
		nki_fail(k, loc, "axis %u; allowed: 1 to %u (partitions cannot be reduced here)", axis,
			 data.dims - 1);
		return;
	}
	for (unsigned int d = 1; d < axis; d++)
		left *= data.num[d];
	if (!nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, axis))
		return;
	if (dst.num[0] != data.num[0] || nki_free_elements(dst) != left) {
		nki_fail(k, loc, "dst has %u partitions of %llu elements; wanted: %u of %llu", dst.num[0],
			 (unsigned long long)nki_free_elements(dst), data.num[0], (unsigned long long)left);
		return;
	}
	insn->w.op[0] = op;
	if (args->negate)
		insn->w.flags |= htole16(NEURON_FLAG_NEGATE);
	nki_emit(k, insn);
}

void nki_tensor_copy_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		      struct nki_view src, const struct nki_engine_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_TENSOR_COPY, args->engine, NKI_ENGINE_VECTOR);

	if (!insn)
		return;
	if (insn->point.engine == NEURON_ENGINE_ACT && k->arch->nc_version < 3) {
		nki_fail(k, loc, "the scalar engine copies from NeuronCore-v3 (Trn2) on; allowed on %s: nki_activation with NKI_COPY",
			 k->arch->name);
		return;
	}
	if (nki_put_view(k, loc, insn, 0, "dst", dst, 0) && nki_put_view(k, loc, insn, 1, "src", src, 0) &&
	    nki_same_shape(k, loc, "dst", dst, "src", src))
		nki_emit(k, insn);
}

void nki_tensor_copy_predicated_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				 struct nki_view src, struct nki_view predicate,
				 const struct nki_predicated_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_COPY_PREDICATED, NKI_ENGINE_VECTOR, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 2, "predicate", predicate, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "predicate", predicate))
		return;
	if (!src.buf == !args->scalar.kind) {
		nki_fail(k, loc, "either a src tile or .scalar (with src NKI_NONE) must be given");
		return;
	}
	if (src.buf) {
		if (!nki_put_view(k, loc, insn, 1, "src", src, 0) ||
		    !nki_same_shape(k, loc, "dst", dst, "src", src) ||
		    !nki_not_both_psum(k, loc, src, predicate))
			return;
		if (src.dtype != dst.dtype) {
			nki_fail(k, loc, "src is %s, dst %s; they must be equal", nki_dtype_text(src.dtype),
				 nki_dtype_text(dst.dtype));
			return;
		}
	} else if (!nki_put_scalar(k, loc, insn, 0, "scalar", args->scalar, dst.num[0])) {
		return;
	}
	if (args->reverse_pred)
		insn->w.flags |= htole16(NEURON_FLAG_REVERSE_PRED);
	nki_add_access(k, insn, dst, false);	/* elements that stay are bytes that must be there */
	nki_emit(k, insn);
}

void nki_select_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		 struct nki_view predicate, struct nki_view on_true, struct nki_scalar on_false)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_SELECT, NKI_ENGINE_VECTOR, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "on_true", on_true, 0) ||
	    !nki_put_view(k, loc, insn, 2, "predicate", predicate, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "on_true", on_true) ||
	    !nki_same_shape(k, loc, "dst", dst, "predicate", predicate) ||
	    !nki_not_both_psum(k, loc, on_true, predicate))
		return;
	if (on_false.kind != NEURON_IMM_F32 && on_false.kind != NEURON_IMM_VEC) {
		nki_fail(k, loc, "on_false must be nki_f32() or nki_vec()");
		return;
	}
	if (nki_put_scalar(k, loc, insn, 0, "on_false", on_false, dst.num[0]))
		nki_emit(k, insn);
}

void nki_memset_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, double value,
		 const struct nki_engine_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_MEMSET, args->engine, NKI_ENGINE_VECTOR);
	struct nki_scalar s = nki_f32(value);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0))
		return;
	if (nki_dtype_is_int(dst.dtype)) {
		if (value != (double)(int64_t)value || value < INT32_MIN || value > UINT32_MAX) {
			nki_fail(k, loc, "value %g in a %s tile; allowed: 32-bit integers", value,
				 nki_dtype_text(dst.dtype));
			return;
		}
		s = nki_i32((int32_t)(uint32_t)(int64_t)value);
	}
	if (nki_put_scalar(k, loc, insn, 0, "value", s, dst.num[0]))
		nki_emit(k, insn);
}

void nki_reciprocal_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		     struct nki_view data)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_RECIPROCAL, NKI_ENGINE_VECTOR, 0);

	if (insn && nki_put_view(k, loc, insn, 0, "dst", dst, 0) &&
	    nki_put_view(k, loc, insn, 1, "data", data, 0) && nki_same_shape(k, loc, "dst", dst, "data", data))
		nki_emit(k, insn);
}
