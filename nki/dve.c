// SPDX-License-Identifier: MIT
/* Vector engine: reductions with its accumulators, scans, selects, statistics. */
#include <string.h>

#include "rules.h"

static void set_flag(struct nki_insn *insn, bool on, unsigned int flag)
{
	if (on)
		insn->w.flags |= htole16(flag);
}

/* Operators of the vector engine: arithmetic, neither power nor rsqrt. */
static bool vector_alu(struct nki_kernel *k, struct nki_loc loc, const char *what, enum nki_op op,
		       bool two_operands)
{
	struct nki_alu alu;

	if (!nki_alu_ok(k, loc, op, &alu))
		return false;
	if (alu.cls == 'A' && op != NKI_POWER && op != NKI_RSQRT && (!two_operands || alu.arity == 2))
		return true;
	nki_fail(k, loc, "%s is %s; allowed: arithmetic operators of the vector engine%s", what, alu.text,
		 two_operands ? " with two operands" : "");
	return false;
}

static bool one_of(struct nki_kernel *k, struct nki_loc loc, const char *what, enum nki_op op,
		   const char *allowed, const enum nki_op *list, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		if (list[i] == op)
			return true;
	}
	nki_fail(k, loc, "%s 0x%x; allowed: %s", what, op, allowed);
	return false;
}

static bool dst_and(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn, struct nki_view dst,
		    const char *name, struct nki_view src)
{
	return insn && nki_put_view(k, loc, insn, 0, "dst", dst, 0) &&
	       nki_put_view(k, loc, insn, 1, name, src, 0);
}

/* ------------------------------------------------------------------------ */
/* Reductions and scans							    */

void nki_tensor_scalar_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			       struct nki_view data, enum nki_op op0, struct nki_scalar operand0,
			       enum nki_op reduce_op, struct nki_view reduce_res,
			       const struct nki_tensor_scalar_reduce_args *args)
{
	static const enum nki_op reductions[] = { NKI_ADD, NKI_MULTIPLY, NKI_MAXIMUM, NKI_MINIMUM };
	enum nki_reduce_cmd cmd = args->reduce_cmd ? args->reduce_cmd : NKI_REDUCE_RESET_REDUCE;
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_TENSOR_SCALAR_REDUCE, NKI_ENGINE_VECTOR, 0);
	struct nki_alu alu;

	if (!dst_and(k, loc, insn, dst, "data", data) || !nki_same_shape(k, loc, "dst", dst, "data", data) ||
	    !vector_alu(k, loc, "op0", op0, false) ||
	    !one_of(k, loc, "reduce_op", reduce_op, "add, multiply, maximum, minimum", reductions, 4) ||
	    !nki_reduce_ok(k, loc, cmd, reduce_res, data.num[0], true) ||
	    !nki_put_stage(k, loc, insn, 0, op0, operand0, args->reverse0, data.num[0], &alu))
		return;
	if (args->reverse0) {
		nki_fail(k, loc, "reverse0 is not supported yet, as in nki.isa");
		return;
	}
	if (cmd == NKI_REDUCE_LOAD_REDUCE && (!nki_f32_or_vec(k, loc, "reduce_init", args->reduce_init) ||
	    !nki_put_scalar(k, loc, insn, 1, "reduce_init", args->reduce_init, data.num[0])))
		return;
	insn->w.op[2] = reduce_op;
	insn->w.acc = cmd;
	nki_emit(k, insn);
	nki_read_acc(k, loc, reduce_res, args->reduce_res_negate);
}

void nki_tensor_scalar_cumulative_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				   struct nki_view src, enum nki_op op0, enum nki_op op1,
				   struct nki_scalar imm0, const struct nki_cumulative_args *args)
{
	static const enum nki_op scans[] = { NKI_ADD, NKI_SUBTRACT, NKI_MULTIPLY, NKI_MAXIMUM, NKI_MINIMUM };
	enum nki_reduce_cmd cmd = args->reduce_cmd ? args->reduce_cmd : NKI_REDUCE_RESET_REDUCE;
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_TENSOR_SCALAR_CUMULATIVE, NKI_ENGINE_VECTOR, 0);
	struct nki_alu alu;

	if (!dst_and(k, loc, insn, dst, "src", src) || !nki_same_shape(k, loc, "dst", dst, "src", src) ||
	    !vector_alu(k, loc, "op0", op0, false) ||
	    !one_of(k, loc, "op1", op1, "add, subtract, multiply, maximum, minimum", scans, 5) ||
	    !nki_reduce_ok(k, loc, cmd, NKI_NONE, src.num[0], true) ||
	    !nki_put_stage(k, loc, insn, 0, op0, imm0, false, src.num[0], &alu))
		return;
	if (cmd == NKI_REDUCE_RESET || dst.dtype == NKI_INT32 || dst.dtype == NKI_UINT32 ||
	    src.dtype == NKI_INT32 || src.dtype == NKI_UINT32) {
		nki_fail(k, loc, "reduce_cmd %d, dst %s, src %s; allowed: reduce, reset_reduce, load_reduce, and no 32-bit integers",
			 cmd, nki_dtype_text(dst.dtype), nki_dtype_text(src.dtype));
		return;
	}
	if (cmd == NKI_REDUCE_LOAD_REDUCE && (!nki_f32_or_vec(k, loc, "imm1", args->imm1) ||
	    !nki_put_scalar(k, loc, insn, 1, "imm1", args->imm1, src.num[0])))
		return;
	insn->w.op[1] = op1;
	insn->w.acc = cmd;
	nki_emit(k, insn);
}

void nki_tensor_tensor_scan_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			     struct nki_view data0, struct nki_view data1, struct nki_scalar initial,
			     enum nki_op op0, enum nki_op op1, const struct nki_scan_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_TENSOR_TENSOR_SCAN, NKI_ENGINE_VECTOR, 0);

	if (!dst_and(k, loc, insn, dst, "data0", data0) || !nki_put_view(k, loc, insn, 2, "data1", data1, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data0", data0) ||
	    !nki_same_shape(k, loc, "data0", data0, "data1", data1) ||
	    !nki_not_both_psum(k, loc, data0, data1) || !vector_alu(k, loc, "op0", op0, true) ||
	    !vector_alu(k, loc, "op1", op1, true) || !nki_f32_or_vec(k, loc, "initial", initial) ||
	    !nki_put_scalar(k, loc, insn, 0, "initial", initial, data0.num[0]))
		return;
	insn->w.op[0] = op0;
	insn->w.op[1] = op1;
	set_flag(insn, args->reverse0, NEURON_FLAG_REVERSE0);
	set_flag(insn, args->reverse1, NEURON_FLAG_REVERSE1);
	nki_emit(k, insn);
}

void nki_exponential_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view src,
		      const struct nki_exponential_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_EXPONENTIAL, NKI_ENGINE_VECTOR, 0);
	struct nki_scalar max = args->max_value.kind ? args->max_value : nki_f32(0);
	struct nki_scalar init = args->reduce_init.kind ? args->reduce_init : nki_f32(0);

	if (!dst_and(k, loc, insn, dst, "src", src) || !nki_same_shape(k, loc, "dst", dst, "src", src) ||
	    !nki_f32_or_vec(k, loc, "max_value", max) || !nki_f32_or_vec(k, loc, "reduce_init", init) ||
	    !nki_reduce_ok(k, loc, args->reduce_cmd, args->reduce_res, src.num[0], true) ||
	    !nki_put_scalar(k, loc, insn, 0, "max_value", max, src.num[0]))
		return;
	if (args->reduce_cmd == NKI_REDUCE_LOAD_REDUCE &&
	    !nki_put_scalar(k, loc, insn, 1, "reduce_init", init, src.num[0]))
		return;
	insn->w.acc = args->reduce_cmd;
	if (args->reduce_cmd > NKI_REDUCE_RESET)
		insn->w.op[2] = NKI_ADD;
	nki_emit(k, insn);
	nki_read_acc(k, loc, args->reduce_res, false);
}

/* ------------------------------------------------------------------------ */
/* Selects								    */

void nki_range_select_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view on_true, enum nki_op comp_op0, enum nki_op comp_op1,
		       struct nki_view bound0, struct nki_view bound1,
		       const struct nki_range_select_args *args)
{
	static const enum nki_op compares[] = { NKI_EQUAL, NKI_LESS, NKI_LESS_EQUAL, NKI_GREATER,
						NKI_GREATER_EQUAL };
	enum nki_reduce_cmd cmd = args->reduce_cmd ? args->reduce_cmd : NKI_REDUCE_RESET_REDUCE;
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_RANGE_SELECT, NKI_ENGINE_VECTOR, 0);
	struct nki_scalar b0 = nki_vec(bound0), b1 = nki_vec(bound1);

	if (!dst_and(k, loc, insn, dst, "on_true_tile", on_true) ||
	    !nki_same_shape(k, loc, "dst", dst, "on_true_tile", on_true) ||
	    !nki_type_ok(k, loc, "on_true_tile", on_true.dtype, 'f') ||
	    !one_of(k, loc, "comp_op0", comp_op0, "equal, less, less_equal, greater, greater_equal", compares, 5) ||
	    !one_of(k, loc, "comp_op1", comp_op1, "equal, less, less_equal, greater, greater_equal", compares, 5) ||
	    !nki_reduce_ok(k, loc, cmd, args->reduce_res, dst.num[0], false) ||
	    !nki_put_scalar(k, loc, insn, 0, "bound0", b0, dst.num[0]) ||
	    !nki_put_scalar(k, loc, insn, 1, "bound1", b1, dst.num[0]) ||
	    !nki_put_scalar(k, loc, insn, 2, "range_start", nki_f32(args->range_start), 0) ||
	    !nki_put_scalar(k, loc, insn, 3, "on_false_value", nki_f32(-3.4028235e38f), 0))
		return;
	if (bound0.dtype != NKI_FLOAT32 || bound1.dtype != NKI_FLOAT32) {
		nki_fail(k, loc, "bound0 is %s, bound1 %s; allowed: float32", nki_dtype_text(bound0.dtype),
			 nki_dtype_text(bound1.dtype));
		return;
	}
	if (args->range_start >= 1 << 24 || args->range_start <= -(1 << 24)) {
		nki_fail(k, loc, "range_start %d; allowed: below 2^24, where float32 counts exactly",
			 args->range_start);
		return;
	}
	if ((args->reduce_op && args->reduce_op != NKI_MAXIMUM) ||
	    (args->on_false.kind && (args->on_false.kind != NEURON_IMM_F32 || args->on_false.f != -3.4028235e38f))) {
		nki_fail(k, loc, "reduce_op must be maximum, on_false_value -3.4028235e38");
		return;
	}
	insn->w.op[0] = comp_op0;
	insn->w.op[1] = comp_op1;
	insn->w.op[2] = NKI_MAXIMUM;
	insn->w.acc = cmd;
	nki_emit(k, insn);
	nki_read_acc(k, loc, args->reduce_res, false);
}

static bool select_types_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view on_true,
			    struct nki_view predicate, struct nki_scalar on_false)
{
	if (on_true.dtype == NKI_TFLOAT32 || on_true.dtype == NKI_INT32 || on_true.dtype == NKI_UINT32) {
		nki_fail(k, loc, "on_true is %s; allowed: any but tfloat32, int32, uint32",
			 nki_dtype_text(on_true.dtype));
		return false;
	}
	if (!nki_dtype_is_int(predicate.dtype) || nki_dtype_size(predicate.dtype) > 2) {
		nki_fail(k, loc, "predicate is %s; allowed: int8, uint8, int16, uint16",
			 nki_dtype_text(predicate.dtype));
		return false;
	}
	return nki_f32_or_vec(k, loc, "on_false", on_false);
}

void nki_select_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view predicate, struct nki_view on_true, struct nki_scalar on_false,
			const struct nki_select_reduce_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_SELECT, NKI_ENGINE_VECTOR, 0);
	struct nki_view bits = predicate;

	if (!insn || !nki_live(k, loc, "predicate", predicate) || !nki_live(k, loc, "on_true", on_true) ||
	    !select_types_ok(k, loc, on_true, predicate, on_false))
		return;
	/* Zero or not is the same for signed and unsigned. */
	bits.dtype = nki_dtype_size(bits.dtype) == 1 ? NKI_UINT8 : NKI_UINT16;
	if (!dst_and(k, loc, insn, dst, "on_true", on_true) ||
	    !nki_put_view(k, loc, insn, 2, "predicate", bits, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "on_true", on_true) ||
	    !nki_same_shape(k, loc, "dst", dst, "predicate", predicate) ||
	    !nki_not_both_psum(k, loc, on_true, predicate) ||
	    !nki_reduce_ok(k, loc, args->reduce_cmd, args->reduce_res, dst.num[0], false) ||
	    !nki_put_scalar(k, loc, insn, 0, "on_false", on_false, dst.num[0]))
		return;
	if (args->reduce_op && args->reduce_op != NKI_MAXIMUM) {
		nki_fail(k, loc, "reduce_op must be maximum");
		return;
	}
	set_flag(insn, args->reverse_pred, NEURON_FLAG_REVERSE_PRED);
	insn->w.acc = args->reduce_cmd;
	if (args->reduce_cmd > NKI_REDUCE_RESET)
		insn->w.op[2] = NKI_MAXIMUM;
	nki_emit(k, insn);
	nki_read_acc(k, loc, args->reduce_res, false);
}

/* ------------------------------------------------------------------------ */
/* Statistics and searches						    */

void nki_bn_stats_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_BN_STATS, NKI_ENGINE_VECTOR, 0);

	if (!dst_and(k, loc, insn, dst, "data", data) || !nki_shape_is(k, loc, "dst", dst, data.num[0], 6))
		return;
	if (nki_free_elements(data) > 512) {
		nki_fail(k, loc, "data has %llu elements per partition; allowed: at most 512",
			 (unsigned long long)nki_free_elements(data));
		return;
	}
	nki_emit(k, insn);
}

void nki_bn_aggr_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_BN_AGGR, NKI_ENGINE_VECTOR, 0);

	if (!dst_and(k, loc, insn, dst, "data", data) || !nki_shape_is(k, loc, "dst", dst, data.num[0], 2))
		return;
	if (nki_free_elements(data) % 3) {
		nki_fail(k, loc, "data has %llu elements per partition; allowed: a multiple of 3",
			 (unsigned long long)nki_free_elements(data));
		return;
	}
	nki_emit(k, insn);
}

static bool search_size_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view data)
{
	uint64_t n = nki_free_elements(data);

	if (n >= 8 && n <= 16384)
		return true;
	nki_fail(k, loc, "the data has %llu elements per partition; allowed: 8 to 16384",
		 (unsigned long long)n);
	return false;
}

void nki_max8_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view src)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_MAX8, NKI_ENGINE_VECTOR, 0);

	if (dst_and(k, loc, insn, dst, "src", src) && nki_shape_is(k, loc, "dst", dst, src.num[0], 8) &&
	    search_size_ok(k, loc, src))
		nki_emit(k, insn);
}

void nki_nc_find_index8_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			 struct nki_view data, struct nki_view vals)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_FIND_INDEX8, NKI_ENGINE_VECTOR, 0);

	if (dst_and(k, loc, insn, dst, "data", data) && nki_put_view(k, loc, insn, 2, "vals", vals, 0) &&
	    nki_shape_is(k, loc, "dst", dst, data.num[0], 8) &&
	    nki_shape_is(k, loc, "vals", vals, data.num[0], 8) && search_size_ok(k, loc, data))
		nki_emit(k, insn);
}

void nki_nc_match_replace8_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    struct nki_view data, struct nki_view vals, float imm,
			    const struct nki_match_replace8_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_MATCH_REPLACE8, NKI_ENGINE_VECTOR, 0);
	struct nki_view index = args->dst_idx;

	if (!dst_and(k, loc, insn, dst, "data", data) || !nki_put_view(k, loc, insn, 2, "vals", vals, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data", data) ||
	    !nki_shape_is(k, loc, "vals", vals, data.num[0], 8) || !search_size_ok(k, loc, data) ||
	    !nki_put_scalar(k, loc, insn, 0, "imm", nki_f32(imm), 0))
		return;
	if (index.buf && (!nki_put_view(k, loc, insn, 3, "dst_idx", index, 0) ||
			  !nki_shape_is(k, loc, "dst_idx", index, data.num[0], 8) ||
			  !nki_type_ok(k, loc, "dst_idx", index.dtype, 'o')))
		return;
	nki_emit(k, insn);
}

void nki_nc_stream_shuffle_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    struct nki_view src, const uint8_t *mask)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_STREAM_SHUFFLE, NKI_ENGINE_VECTOR, 0);
	bool keeps = false;

	if (!dst_and(k, loc, insn, dst, "src", src) || !nki_same_shape(k, loc, "dst", dst, "src", src) ||
	    !nki_same_type(k, loc, "dst", dst, "src", src))
		return;
	for (unsigned int i = 0; i < 32; i++) {
		if (mask[i] > 31 && mask[i] != 255) {
			nki_fail(k, loc, "shuffle_mask[%u] is %u; allowed: 0 to 31, 255 to keep", i, mask[i]);
			return;
		}
		keeps |= mask[i] == 255;
	}
	memcpy(nki_ext(k, insn)->mask, mask, 32);
	if (keeps)
		nki_add_access(k, insn, dst, false);
	nki_emit(k, insn);
}

/* ------------------------------------------------------------------------ */
/* MX									    */

void nki_quantize_mx_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view src,
		      struct nki_view dst_scale, const struct nki_quantize_mx_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_QUANTIZE_MX, NKI_ENGINE_VECTOR, 0);
	unsigned int parts;

	if (!dst_and(k, loc, insn, dst, "src", src) || !nki_live(k, loc, "dst_scale", dst_scale))
		return;
	if ((unsigned int)dst.dtype == NEURON_DTYPE_FLOAT4_E2M1FN_X4) {
		nki_fail(k, loc, "dst is float4_e2m1fn_x4; allowed: float8_e5m2_x4, float8_e4m3fn_x4");
		return;
	}
	if (src.num[0] % 32 || nki_free_elements(src) % 4) {
		nki_fail(k, loc, "src is %u x %llu; allowed: multiples of 32 partitions and of 4 elements",
			 src.num[0], (unsigned long long)nki_free_elements(src));
		return;
	}
	parts = src.num[0] <= 32 ? src.num[0] / 8 : src.num[0] - 28;
	if (!nki_shape_is(k, loc, "dst", dst, src.num[0], nki_free_elements(src) / 4))
		return;
	if (dst_scale.buf->space != NEURON_SPACE_SBUF || dst_scale.num[0] < parts || dst_scale.part % 32 > 12 ||
	    dst_scale.part % 4 || nki_free_elements(dst_scale) != nki_free_elements(dst) ||
	    !nki_type_ok(k, loc, "dst_scale", dst_scale.dtype, 'e')) {
		nki_fail(k, loc, "dst_scale has %u partitions from %u of %llu elements; wanted: at least %u, from 0, 4, 8 or 12 of a quadrant, of %llu in SBUF",
			 dst_scale.num[0], dst_scale.part,
			 (unsigned long long)nki_free_elements(dst_scale), parts,
			 (unsigned long long)nki_free_elements(dst));
		return;
	}
	dst_scale.num[0] = parts;
	if (!nki_put_ap(k, loc, "dst_scale", dst_scale, 0, &insn->w.ap[2], NULL, true) ||
	    !nki_put_fix(k, loc, insn, dst_scale, &insn->w.ap[2].offset_reg) ||
	    !nki_add_access(k, insn, dst_scale, true))
		return;
	insn->w.aux = htole32(args->old_scale);
	nki_emit(k, insn);
}
