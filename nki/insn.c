// SPDX-License-Identifier: MIT
/* The compute instructions: published rules checked, then recorded. */
#include <string.h>

#include "priv.h"

struct alu {
	const char *text;
	char cls;
	unsigned int arity;
	bool reduce;
};

static bool find_alu(enum nki_op op, struct alu *alu)
{
	static const char A = 'A', B = 'B';

	switch ((unsigned int)op) {
#define NEURON_ALU(code, name, text, cls, arity, reduce) \
	case code: \
		*alu = (struct alu){ text, cls, arity, reduce }; \
		return true;
#include "neuron/isa.def"
	}
	return false;
}

static bool alu_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op, struct alu *alu)
{
	if (find_alu(op, alu))
		return true;
	nki_fail(k, loc, "operator 0x%x is not one of the ALU (activation functions belong in nki_activation)",
		 op);
	return false;
}

/* Activation function of an operator that may be known by its ALU name. */
static int act_fn(enum nki_op op)
{
	switch ((unsigned int)op) {
	case NKI_SQUARE:
		return NEURON_ACTFN_SQUARE;
	case NKI_RELU:
		return NEURON_ACTFN_RELU;
	case NKI_ABS:
		return NEURON_ACTFN_ABS;
	case NKI_RSQRT:
		return NEURON_ACTFN_RSQRT;
	case NKI_RECIPROCAL:
		return NEURON_ACTFN_RECIPROCAL;
#define NEURON_ACTFN(code, name, text) case 0x100 | (code):
#include "neuron/isa.def"
		return op & 0xff;
	}
	return -1;
}

struct row {
	const char *text;
	unsigned int engines, min_nc;
};

static struct row find_row(enum neuron_opcode op)
{
#define E(x) E_##x
	enum {
		E_PE = 1 << NEURON_ENGINE_PE,
		E_ACT = 1 << NEURON_ENGINE_ACT,
		E_POOL = 1 << NEURON_ENGINE_POOL,
		E_DVE = 1 << NEURON_ENGINE_DVE,
		E_SP = 1 << NEURON_ENGINE_SP,
		E_ALL = E_PE | E_ACT | E_POOL | E_DVE | E_SP | 1 << NEURON_ENGINE_CC,
	};
	switch (op) {
#define NEURON_INSN(code, name, text, engines, min_nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	case code: \
		return (struct row){ text, engines, min_nc };
#include "neuron/isa.def"
	}
#undef E
	return (struct row){ "?", 0, 0 };
}

static const char *const engine_name[NKI_ENGINES] = {
	[NEURON_ENGINE_PE] = "tensor", [NEURON_ENGINE_ACT] = "scalar", [NEURON_ENGINE_POOL] = "gpsimd",
	[NEURON_ENGINE_DVE] = "vector", [NEURON_ENGINE_SP] = "sync",
};

static bool engine_ok(struct nki_kernel *k, struct nki_loc loc, enum neuron_opcode op,
		      unsigned int engine)
{
	struct row row = find_row(op);
	char allowed[64] = "";

	if (engine < NKI_ENGINES && engine_name[engine] && (row.engines & 1u << engine) &&
	    k->arch->nc_version >= row.min_nc)
		return true;
	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		if (engine_name[e] && row.engines & 1u << e) {
			strcat(allowed, " ");
			strcat(allowed, engine_name[e]);
		}
	}
	nki_fail(k, loc, "engine %s; allowed:%s",
		 engine < NKI_ENGINES && engine_name[engine] ? engine_name[engine] : "unknown", allowed);
	return false;
}

static struct nki_insn *begin(struct nki_kernel *k, struct nki_loc loc, enum neuron_opcode op,
			      enum nki_engine wanted, enum nki_engine otherwise)
{
	unsigned int engine = wanted ? wanted : otherwise;

	if (!nki_ok(k) || !engine_ok(k, loc, op, engine))
		return NULL;
	return nki_new_insn(k, loc, op, engine);
}

static bool same_shape(struct nki_kernel *k, struct nki_loc loc, const char *a_name,
		       struct nki_view a, const char *b_name, struct nki_view b)
{
	if (a.num[0] == b.num[0] && nki_free_elements(a) == nki_free_elements(b))
		return true;
	nki_fail(k, loc, "%s has %u partitions of %llu elements, %s %u of %llu; they must be equal",
		 a_name, a.num[0], (unsigned long long)nki_free_elements(a), b_name, b.num[0],
		 (unsigned long long)nki_free_elements(b));
	return false;
}

static bool not_both_psum(struct nki_kernel *k, struct nki_loc loc, struct nki_view a,
			  struct nki_view b)
{
	if (a.buf->space != NEURON_SPACE_PSUM || b.buf->space != NEURON_SPACE_PSUM)
		return true;
	nki_fail(k, loc, "both tensor inputs are in PSUM; allowed: at most one (nki_tensor_copy the other to SBUF)");
	return false;
}

/* Bit vectors take integers of one type; no cast. */
static bool bits_ok(struct nki_kernel *k, struct nki_loc loc, const struct nki_view *v, unsigned int n,
		    const char *op)
{
	for (unsigned int i = 0; i < n; i++) {
		if (!nki_dtype_is_int(v[i].dtype) ||
		    nki_dtype_size(v[i].dtype) != nki_dtype_size(v[0].dtype)) {
			nki_fail(k, loc, "bit-vector operator %s on %s; allowed: integers of one size for all operands",
				 op, nki_dtype_text(v[i].dtype));
			return false;
		}
	}
	return true;
}

/* ------------------------------------------------------------------------ */
/* Tensor engine							    */

static bool matmul_types_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view s,
			    struct nki_view m)
{
	bool s32 = nki_dtype_size(s.dtype) == 4, m32 = nki_dtype_size(m.dtype) == 4;

	if (nki_dtype_is_int(s.dtype) || nki_dtype_is_int(m.dtype)) {
		nki_fail(k, loc, "stationary %s, moving %s; allowed: floating-point types",
			 nki_dtype_text(s.dtype), nki_dtype_text(m.dtype));
		return false;
	}
	if (s32 != m32) {
		nki_fail(k, loc, "stationary %s, moving %s; float32 and tfloat32 go only with each other",
			 nki_dtype_text(s.dtype), nki_dtype_text(m.dtype));
		return false;
	}
	if ((s.dtype == NKI_FLOAT8_E4M3FN || m.dtype == NKI_FLOAT8_E4M3FN) && k->arch->nc_version < 4) {
		nki_fail(k, loc, "float8_e4m3fn needs NeuronCore-v4 (Trn3)");
		return false;
	}
	if ((s.dtype == NKI_FLOAT8_E4M3FN && m.dtype == NKI_FLOAT8_E4M3) ||
	    (s.dtype == NKI_FLOAT8_E4M3 && m.dtype == NKI_FLOAT8_E4M3FN)) {
		nki_fail(k, loc, "float8_e4m3 and float8_e4m3fn cannot be multiplied with each other");
		return false;
	}
	return true;
}

static bool matmul_dst_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			  struct nki_view moving, bool transpose)
{
	unsigned int size = nki_dtype_size(dst.dtype);
	uint64_t n = nki_free_elements(dst);
	uint64_t byte = dst.buf->base + dst.offset;
	bool type_ok = dst.dtype == NKI_FLOAT32;

	if (transpose)
		type_ok = dst.dtype == moving.dtype;
	else if (k->arch->nc_version >= 4)
		type_ok |= dst.dtype == NKI_BFLOAT16;
	if (!type_ok) {
		nki_fail(k, loc, "dst is %s; allowed: %s", nki_dtype_text(dst.dtype),
			 transpose ? "the type of moving" :
			 k->arch->nc_version >= 4 ? "float32, bfloat16" : "float32");
		return false;
	}
	if (k->arch->nc_version >= 4)
		return true;
	if (n > 512 || byte / NEURON_PSUM_BANK_BYTES !=
		       (byte + (dst.reg.id ? 0 : n * size - 1)) / NEURON_PSUM_BANK_BYTES) {
		nki_fail(k, loc, "dst has %llu elements from byte %llu of a partition; allowed on %s: at most 512, in one bank of %d bytes",
			 (unsigned long long)n, (unsigned long long)byte, k->arch->name,
			 NEURON_PSUM_BANK_BYTES);
		return false;
	}
	return true;
}

static bool matmul_shape_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    struct nki_view s, struct nki_view m)
{
	uint64_t columns = nki_free_elements(s), n = nki_free_elements(m);
	uint64_t limit = k->arch->nc_version >= 4 ? 4096 : 512;

	if (s.num[0] != m.num[0]) {
		nki_fail(k, loc, "stationary has K = %u partitions, moving %u; they must be equal",
			 s.num[0], m.num[0]);
		return false;
	}
	if (columns > 128) {
		nki_fail(k, loc, "stationary has M = %llu columns; allowed: at most 128",
			 (unsigned long long)columns);
		return false;
	}
	if (n > limit) {
		nki_fail(k, loc, "moving has N = %llu columns; allowed on %s: at most %llu",
			 (unsigned long long)n, k->arch->name, (unsigned long long)limit);
		return false;
	}
	if (dst.num[0] != columns || nki_free_elements(dst) != n) {
		nki_fail(k, loc, "dst has %u partitions of %llu elements; wanted: M = %llu of N = %llu",
			 dst.num[0], (unsigned long long)nki_free_elements(dst),
			 (unsigned long long)columns, (unsigned long long)n);
		return false;
	}
	return true;
}

static bool spaces_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		      struct nki_view s, struct nki_view m)
{
	if (!nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "stationary", s) ||
	    !nki_live(k, loc, "moving", m))
		return false;
	if (dst.buf->space == NEURON_SPACE_PSUM && s.buf->space == NEURON_SPACE_SBUF &&
	    m.buf->space == NEURON_SPACE_SBUF)
		return true;
	nki_fail(k, loc, "dst in %s, stationary in %s, moving in %s; allowed: PSUM, SBUF, SBUF",
		 nki_space_text(dst.buf->space), nki_space_text(s.buf->space),
		 nki_space_text(m.buf->space));
	return false;
}

/* The array keeps its weights, so the same ones need not be loaded twice. */
static bool weights_loaded(struct nki_kernel *k, const struct nki_insn *ld, struct nki_view s)
{
	return k->weights_valid && !s.reg.id && !s.count_reg.id &&
	       !memcmp(&ld->w.ap[1], &k->weights_ap, sizeof(k->weights_ap));
}

static bool load_weights(struct nki_kernel *k, struct nki_loc loc, struct nki_view s)
{
	struct nki_insn *ld = nki_new_insn(k, loc, NEURON_OP_LDWEIGHTS, NEURON_ENGINE_PE);

	if (!ld || !nki_put_view(k, loc, ld, 1, "stationary", s, 0))
		return false;
	if (weights_loaded(k, ld, s))
		return true;
	nki_emit(k, ld);
	k->weights_valid = true;
	k->weights_ap = ld->w.ap[1];
	nki_view_access(s, false, &k->weights);
	return nki_ok(k);
}

void nki_nc_matmul_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		    struct nki_view stationary, struct nki_view moving,
		    const struct nki_matmul_args *args)
{
	struct nki_insn *mm;

	if (!nki_ok(k) || !spaces_ok(k, loc, dst, stationary, moving) ||
	    !matmul_shape_ok(k, loc, dst, stationary, moving) ||
	    !matmul_types_ok(k, loc, stationary, moving))
		return;
	if (args->is_transpose && k->arch->nc_version < 3) {
		nki_fail(k, loc, "is_transpose needs NeuronCore-v3 (Trn2) or later");
		return;
	}
	if (!matmul_dst_ok(k, loc, dst, moving, args->is_transpose) ||
	    !load_weights(k, loc, stationary))
		return;
	mm = nki_new_insn(k, loc, NEURON_OP_MATMUL, NEURON_ENGINE_PE);
	if (!mm || !nki_put_view(k, loc, mm, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, mm, 1, "moving", moving, 0))
		return;
	if (args->accumulate)
		mm->w.flags |= htole16(NEURON_FLAG_ACCUMULATE);
	if (args->is_transpose)
		mm->w.flags |= htole16(NEURON_FLAG_TRANSPOSE);
	if (args->accumulate)
		nki_add_access(k, mm, dst, false);
	nki_emit(k, mm);
}

/* ------------------------------------------------------------------------ */
/* Transposes								    */

/* ones, then keep the diagonal: p - i == 0 */
static void fill_identity(struct nki_kernel *k, struct nki_loc loc, struct nki_view id)
{
	struct nki_loop *loop = k->loop;
	struct nki_seq seq = k->seq;

	k->loop = NULL;
	k->seq = k->prologue;
	nki_memset_(k, loc, id, 1.0, &(struct nki_engine_args){ .engine = NKI_ENGINE_GPSIMD });
	nki_affine_select_(k, loc, id, NKI_PATTERN({ -1, NEURON_PARTITIONS }), 1, id, 0.0f,
			   &(struct nki_affine_select_args){ .cmp_op = NKI_EQUAL });
	k->prologue = k->seq;
	k->seq = seq;
	k->loop = loop;
}

static struct nki_view identity(struct nki_kernel *k, struct nki_loc loc, enum nki_dtype dtype)
{
	struct nki_view v;

	for (unsigned int i = 0; i < k->identities; i++) {
		if (k->identity[i].dtype == dtype)
			return k->identity[i].view;
	}
	v = nki_top_tile(k, loc, dtype, NEURON_PARTITIONS, NEURON_PARTITIONS);
	if (!nki_ok(k))
		return NKI_NONE;
	fill_identity(k, loc, v);
	if (k->identities < sizeof(k->identity) / sizeof(k->identity[0])) {
		k->identity[k->identities].dtype = dtype;
		k->identity[k->identities++].view = v;
	}
	return v;
}

static void transpose_pe(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			 struct nki_view data)
{
	bool exact = k->arch->nc_version >= 3;
	struct nki_view id;

	if (nki_dtype_is_int(data.dtype)) {
		nki_fail(k, loc, "data is %s; allowed on the tensor engine: floating-point types",
			 nki_dtype_text(data.dtype));
		return;
	}
	id = identity(k, loc, data.dtype);
	if (!nki_ok(k))
		return;
	id = nki_cols(k, nki_rows(k, id, 0, data.num[0]), 0, data.num[0]);
	nki_nc_matmul_(k, loc, dst, data, id, &(struct nki_matmul_args){ .is_transpose = exact });
}

static void transpose_dve(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			  struct nki_view data)
{
	struct nki_insn *insn = begin(k, loc, NEURON_OP_TRANSPOSE32, NKI_ENGINE_VECTOR, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0))
		return;
	if (data.num[0] > 32 || nki_free_elements(data) > 32) {
		nki_fail(k, loc, "%u x %llu; allowed on the vector engine: at most 32 x 32", data.num[0],
			 (unsigned long long)nki_free_elements(data));
		return;
	}
	nki_emit(k, insn);
}

void nki_nc_transpose_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view data, const struct nki_engine_args *args)
{
	enum nki_engine engine = args->engine;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "data", data))
		return;
	if (dst.num[0] != nki_free_elements(data) || nki_free_elements(dst) != data.num[0]) {
		nki_fail(k, loc, "dst is %u x %llu, data %u x %llu", dst.num[0],
			 (unsigned long long)nki_free_elements(dst), data.num[0],
			 (unsigned long long)nki_free_elements(data));
		return;
	}
	if (!engine)
		engine = dst.buf->space == NEURON_SPACE_PSUM ? NKI_ENGINE_TENSOR : NKI_ENGINE_VECTOR;
	if (dst.dtype != data.dtype && (engine != NKI_ENGINE_TENSOR || k->arch->nc_version >= 3)) {
		nki_fail(k, loc, "dst is %s, data %s; they must be equal", nki_dtype_text(dst.dtype),
			 nki_dtype_text(data.dtype));
		return;
	}
	if (engine == NKI_ENGINE_TENSOR)
		transpose_pe(k, loc, dst, data);
	else if (engine == NKI_ENGINE_VECTOR)
		transpose_dve(k, loc, dst, data);
	else
		nki_fail(k, loc, "allowed engines: tensor, vector");
}

/* ------------------------------------------------------------------------ */
/* Scalar engine							    */

static bool activation_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op,
			  const struct nki_activation_args *args)
{
	if (act_fn(op) < 0) {
		nki_fail(k, loc, "operator 0x%x is not an activation function", op);
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
	struct nki_insn *insn = begin(k, loc, NEURON_OP_ACT_READ_ACC, NKI_ENGINE_SCALAR, 0);

	if (insn && nki_put_view(k, loc, insn, 0, "reduce_res", res, 0))
		nki_emit(k, insn);
}

static void activate(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, enum nki_op op,
		     struct nki_view data, const struct nki_activation_args *args)
{
	struct nki_insn *insn = begin(k, loc, NEURON_OP_ACTIVATE, NKI_ENGINE_SCALAR, 0);
	struct nki_scalar scale = args->scale.kind ? args->scale : nki_f32(1.0f);

	if (!insn || !activation_ok(k, loc, op, args) || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !same_shape(k, loc, "dst", dst, "data", data) ||
	    !nki_put_scalar(k, loc, insn, 0, "scale", scale, data.num[0]) ||
	    !nki_put_scalar(k, loc, insn, 1, "bias", args->bias, data.num[0]))
		return;
	insn->w.op[0] = act_fn(op);
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
/* Elementwise								    */

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
	struct alu alu;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "data1", data1) ||
	    !nki_live(k, loc, "data2", data2) || !alu_ok(k, loc, op, &alu))
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
	insn = begin(k, loc, NEURON_OP_TENSOR_TENSOR, engine, NKI_ENGINE_VECTOR);
	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data1", data1, 0) ||
	    !nki_put_view(k, loc, insn, 2, "data2", data2, 0) ||
	    !same_shape(k, loc, "dst", dst, "data1", data1) ||
	    !same_shape(k, loc, "data1", data1, "data2", data2) ||
	    !not_both_psum(k, loc, data1, data2) ||
	    (alu.cls == 'B' && !bits_ok(k, loc, v, 3, alu.text)))
		return;
	insn->w.op[0] = op;
	nki_emit(k, insn);
}

/* One of the two operations of tensor_scalar. */
static bool put_stage(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		      unsigned int stage, enum nki_op op, struct nki_scalar operand, bool reverse,
		      unsigned int parts, struct alu *alu)
{
	static const char *const name[] = { "operand0", "operand1" };

	if (!alu_ok(k, loc, op, alu))
		return false;
	if (alu->arity == 2 && !operand.kind) {
		nki_fail(k, loc, "operator %s needs %s", alu->text, name[stage]);
		return false;
	}
	if (alu->arity == 1 && operand.kind) {
		nki_fail(k, loc, "operator %s takes no %s (leave it out: (struct nki_scalar){ 0 })",
			 alu->text, name[stage]);
		return false;
	}
	if (!nki_put_scalar(k, loc, insn, stage, name[stage], operand, parts))
		return false;
	insn->w.op[stage] = op;
	if (reverse)
		insn->w.flags |= htole16(stage ? NEURON_FLAG_REVERSE1 : NEURON_FLAG_REVERSE0);
	return true;
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
	struct alu alu0, alu1 = { "bypass", 'A', 1, false };
	struct nki_insn *insn;

	insn = begin(k, loc, NEURON_OP_TENSOR_SCALAR, args->engine,
		     rsqrt || power ? NKI_ENGINE_GPSIMD : NKI_ENGINE_VECTOR);
	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !same_shape(k, loc, "dst", dst, "data", data) ||
	    !put_stage(k, loc, insn, 0, op0, operand0, args->reverse0, data.num[0], &alu0) ||
	    !put_stage(k, loc, insn, 1, args->op1, args->operand1, args->reverse1, data.num[0], &alu1))
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
	if (alu0.cls == 'B' && (insn->point.engine != NEURON_ENGINE_DVE || !bits_ok(k, loc, v, 2, alu0.text))) {
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
	struct nki_insn *insn = begin(k, loc, NEURON_OP_SCALAR_TENSOR_TENSOR, NKI_ENGINE_VECTOR, 0);
	struct alu alu0, alu1;

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_put_view(k, loc, insn, 2, "operand1", operand1, 0) ||
	    !same_shape(k, loc, "dst", dst, "data", data) ||
	    !same_shape(k, loc, "data", data, "operand1", operand1) ||
	    !not_both_psum(k, loc, data, operand1) ||
	    !put_stage(k, loc, insn, 0, op0, operand0, args->reverse0, data.num[0], &alu0) ||
	    !alu_ok(k, loc, op1, &alu1))
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
	struct nki_insn *insn = begin(k, loc, NEURON_OP_TENSOR_REDUCE, NKI_ENGINE_VECTOR, 0);
	struct nki_view v[2] = { dst, data };
	uint64_t left = 1;
	struct alu alu;

	if (!insn || !nki_live(k, loc, "data", data) || !alu_ok(k, loc, op, &alu))
		return;
	if (!alu.reduce || (alu.cls == 'B' && !bits_ok(k, loc, v, 2, alu.text))) {
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
	struct nki_insn *insn = begin(k, loc, NEURON_OP_TENSOR_COPY, args->engine, NKI_ENGINE_VECTOR);

	if (!insn)
		return;
	if (insn->point.engine == NEURON_ENGINE_ACT && k->arch->nc_version < 3) {
		nki_fail(k, loc, "the scalar engine copies from NeuronCore-v3 (Trn2) on; allowed on %s: nki_activation with NKI_COPY",
			 k->arch->name);
		return;
	}
	if (nki_put_view(k, loc, insn, 0, "dst", dst, 0) && nki_put_view(k, loc, insn, 1, "src", src, 0) &&
	    same_shape(k, loc, "dst", dst, "src", src))
		nki_emit(k, insn);
}

static bool predicate_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view predicate)
{
	if (predicate.dtype == NKI_UINT8 || predicate.dtype == NKI_UINT16 ||
	    predicate.dtype == NKI_UINT32)
		return true;
	nki_fail(k, loc, "predicate is %s; allowed: uint8, uint16, uint32",
		 nki_dtype_text(predicate.dtype));
	return false;
}

void nki_tensor_copy_predicated_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				 struct nki_view src, struct nki_view predicate,
				 const struct nki_predicated_args *args)
{
	struct nki_insn *insn = begin(k, loc, NEURON_OP_COPY_PREDICATED, NKI_ENGINE_VECTOR, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 2, "predicate", predicate, 0) ||
	    !same_shape(k, loc, "dst", dst, "predicate", predicate) || !predicate_ok(k, loc, predicate))
		return;
	if (!src.buf == !args->scalar.kind) {
		nki_fail(k, loc, "either a src tile or .scalar (with src NKI_NONE) must be given");
		return;
	}
	if (src.buf) {
		if (!nki_put_view(k, loc, insn, 1, "src", src, 0) ||
		    !same_shape(k, loc, "dst", dst, "src", src) ||
		    !not_both_psum(k, loc, src, predicate))
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
	struct nki_insn *insn = begin(k, loc, NEURON_OP_SELECT, NKI_ENGINE_VECTOR, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "on_true", on_true, 0) ||
	    !nki_put_view(k, loc, insn, 2, "predicate", predicate, 0) ||
	    !same_shape(k, loc, "dst", dst, "on_true", on_true) ||
	    !same_shape(k, loc, "dst", dst, "predicate", predicate) ||
	    !not_both_psum(k, loc, on_true, predicate) || !predicate_ok(k, loc, predicate))
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
	struct nki_insn *insn = begin(k, loc, NEURON_OP_MEMSET, args->engine, NKI_ENGINE_VECTOR);
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
	struct nki_insn *insn = begin(k, loc, NEURON_OP_RECIPROCAL, NKI_ENGINE_VECTOR, 0);

	if (insn && nki_put_view(k, loc, insn, 0, "dst", dst, 0) &&
	    nki_put_view(k, loc, insn, 1, "data", data, 0) && same_shape(k, loc, "dst", dst, "data", data))
		nki_emit(k, insn);
}

/* ------------------------------------------------------------------------ */
/* GpSimd								    */

static bool put_pattern(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
			struct nki_pattern pattern, struct nki_view dst)
{
	struct neuron_ap *ap = &insn->w.ap[2];
	unsigned int dims = 0;
	uint64_t n = 1;

	while (dims < NEURON_AP_DIMS && pattern.dim[dims].num)
		dims++;
	for (unsigned int d = 0; d < dims; d++) {
		unsigned int from = dims - 1 - d;

		if (pattern.dim[from].num > UINT16_MAX || pattern.dim[from].step > INT16_MAX ||
		    pattern.dim[from].step < INT16_MIN) {
			nki_fail(k, loc, "pattern of %u elements with step %d; allowed: 65535, and -32768 to 32767",
				 pattern.dim[from].num, pattern.dim[from].step);
			return false;
		}
		ap->num[d] = htole16(pattern.dim[from].num);
		ap->step[d] = htole16(pattern.dim[from].step);
		n *= pattern.dim[from].num;
	}
	if (!dims || n != nki_free_elements(dst)) {
		nki_fail(k, loc, "the pattern has %llu elements, dst %llu per partition",
			 dims ? (unsigned long long)n : 0ull, (unsigned long long)nki_free_elements(dst));
		return false;
	}
	ap->dims = dims;
	ap->part_count = dst.num[0];
	return true;
}

void nki_iota_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
	       struct nki_pattern pattern, const struct nki_iota_args *args)
{
	struct nki_insn *insn = begin(k, loc, NEURON_OP_IOTA, NKI_ENGINE_GPSIMD, 0);

	if (insn && nki_put_view(k, loc, insn, 0, "dst", dst, 0) &&
	    put_pattern(k, loc, insn, pattern, dst) &&
	    nki_put_scalar(k, loc, insn, 0, "offset", nki_i32(args->offset), 0) &&
	    nki_put_scalar(k, loc, insn, 1, "channel_multiplier", nki_i32(args->channel_multiplier), 0))
		nki_emit(k, insn);
}

void nki_affine_select_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_pattern pattern, int32_t channel_multiplier,
			struct nki_view on_true, float on_false,
			const struct nki_affine_select_args *args)
{
	struct nki_insn *insn = begin(k, loc, NEURON_OP_AFFINE_SELECT, NKI_ENGINE_GPSIMD, 0);
	enum nki_op cmp = args->cmp_op ? args->cmp_op : NKI_EQUAL;

	if (!insn)
		return;
	if (cmp < NKI_EQUAL || cmp > NKI_LESS) {
		nki_fail(k, loc, "cmp_op must be a comparison");
		return;
	}
	if (!nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "on_true", on_true, 0) ||
	    !same_shape(k, loc, "dst", dst, "on_true", on_true) ||
	    !put_pattern(k, loc, insn, pattern, dst) ||
	    !nki_put_scalar(k, loc, insn, 0, "offset", nki_i32(args->offset), 0) ||
	    !nki_put_scalar(k, loc, insn, 1, "on_false", nki_f32(on_false), 0))
		return;
	insn->w.op[0] = cmp;
	insn->w.aux = htole32(channel_multiplier);
	nki_emit(k, insn);
}
