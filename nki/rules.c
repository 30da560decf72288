// SPDX-License-Identifier: MIT
/* What the documents demand of operands, as far as instructions have it in common. */
#include <string.h>

#include "rules.h"

bool nki_find_alu(enum nki_op op, struct nki_alu *alu)
{
	static const char A = 'A', B = 'B';

	switch ((unsigned int)op) {
#define NEURON_ALU(code, name, text, cls, arity, reduce) \
	case code: \
		*alu = (struct nki_alu){ text, cls, arity, reduce }; \
		return true;
#include "neuron/isa.def"
	}
	return false;
}

bool nki_alu_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op, struct nki_alu *alu)
{
	if (nki_find_alu(op, alu))
		return true;
	nki_fail(k, loc, "operator 0x%x is not one of the ALU (activation functions belong in nki_activation)",
		 op);
	return false;
}

/* Activation function of an operator that may be known by its ALU name. */
int nki_act_fn(enum nki_op op)
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

struct nki_row nki_find_row(enum neuron_opcode op)
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
		return (struct nki_row){ text, engines, min_nc, words, NEURON_COST_##cost, aps, types };
#include "neuron/isa.def"
	}
#undef E
	return (struct nki_row){ "?", 0, 0, 1, 0, "------", "---" };
}

static const char *const engine_name[NKI_ENGINES] = {
	[NEURON_ENGINE_PE] = "tensor", [NEURON_ENGINE_ACT] = "scalar", [NEURON_ENGINE_POOL] = "gpsimd",
	[NEURON_ENGINE_DVE] = "vector", [NEURON_ENGINE_SP] = "sync",
};

bool nki_generation_ok(struct nki_kernel *k, struct nki_loc loc, unsigned int min_nc)
{
	static const char *const product[] = { "", "", "Trn1", "Trn2", "Trn3" };

	if (k->arch->nc_version >= min_nc)
		return true;
	nki_fail(k, loc, "needs NeuronCore-v%u%s%s%s; the program is for %s", min_nc, min_nc < 5 ? " (" : "",
		 min_nc < 5 ? product[min_nc] : "", min_nc < 5 ? ")" : "", k->arch->name);
	return false;
}

static bool engine_ok(struct nki_kernel *k, struct nki_loc loc, unsigned int op, unsigned int engine)
{
	struct nki_row row = nki_find_row(op);
	char allowed[64] = "";

	if (!row.engines) {
		nki_fail(k, loc, "the instruction set has no opcode 0x%02x", op);
		return false;
	}
	if (!nki_generation_ok(k, loc, row.min_nc))
		return false;
	if (engine < NKI_ENGINES && engine_name[engine] && row.engines & 1u << engine)
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

struct nki_insn *nki_begin(struct nki_kernel *k, struct nki_loc loc, unsigned int op,
			   enum nki_engine wanted, enum nki_engine otherwise)
{
	unsigned int engine = wanted ? wanted : otherwise;
	struct nki_insn *insn;

	if (!nki_ok(k) || !engine_ok(k, loc, op, engine))
		return NULL;
	insn = nki_new_insn(k, loc, op, engine);
	return insn && nki_find_row(op).words == 2 && !nki_ext(k, insn) ? NULL : insn;
}

bool nki_same_shape(struct nki_kernel *k, struct nki_loc loc, const char *a_name,
		       struct nki_view a, const char *b_name, struct nki_view b)
{
	if (a.num[0] == b.num[0] && nki_free_elements(a) == nki_free_elements(b))
		return true;
	nki_fail(k, loc, "%s has %u partitions of %llu elements, %s %u of %llu; they must be equal",
		 a_name, a.num[0], (unsigned long long)nki_free_elements(a), b_name, b.num[0],
		 (unsigned long long)nki_free_elements(b));
	return false;
}

bool nki_not_both_psum(struct nki_kernel *k, struct nki_loc loc, struct nki_view a,
			  struct nki_view b)
{
	if (a.buf->space != NEURON_SPACE_PSUM || b.buf->space != NEURON_SPACE_PSUM)
		return true;
	nki_fail(k, loc, "both tensor inputs are in PSUM; allowed: at most one (nki_tensor_copy the other to SBUF)");
	return false;
}

/* Bit vectors take integers of one type; no cast. */
bool nki_bits_ok(struct nki_kernel *k, struct nki_loc loc, const struct nki_view *v, unsigned int n,
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

/* One of the two operations of tensor_scalar. */
bool nki_put_stage(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		      unsigned int stage, enum nki_op op, struct nki_scalar operand, bool reverse,
		      unsigned int parts, struct nki_alu *alu)
{
	static const char *const name[] = { "operand0", "operand1" };

	if (!nki_alu_ok(k, loc, op, alu))
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

bool nki_shape_is(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
		  unsigned int parts, uint64_t elements)
{
	if (v.num[0] == parts && nki_free_elements(v) == elements)
		return true;
	nki_fail(k, loc, "%s has %u partitions of %llu elements; wanted: %u of %llu", what, v.num[0],
		 (unsigned long long)nki_free_elements(v), parts, (unsigned long long)elements);
	return false;
}

bool nki_same_type(struct nki_kernel *k, struct nki_loc loc, const char *a_name, struct nki_view a,
		   const char *b_name, struct nki_view b)
{
	if (a.dtype == b.dtype)
		return true;
	nki_fail(k, loc, "%s is %s, %s %s; they must be equal", a_name, nki_dtype_text(a.dtype), b_name,
		 nki_dtype_text(b.dtype));
	return false;
}

bool nki_packed(enum nki_dtype dtype)
{
	return (unsigned int)dtype >= NEURON_DTYPE_FLOAT8_E5M2_X4 && (unsigned int)dtype <= NEURON_DTYPE_FLOAT4_E2M1FN_X4;
}

/* The letters of the column "types" of isa.def. */
static const struct {
	char rule;
	const char *allowed;
} type_rule[] = {
	{ 'a', "any type but packed MX" },
	{ 'f', "floating-point types" },
	{ 'h', "bfloat16, float16" },
	{ 'b', "bfloat16" },
	{ 'p', "floating-point types" },
	{ 'i', "integers" },
	{ 'd', "32-bit types" },
	{ 'w', "int32, uint32" },
	{ 'u', "uint8, uint16, uint32" },
	{ 'o', "uint16, uint32" },
	{ 'm', "packed MX types" },
	{ 'e', "float8_e8m0fnu, uint8" },
	{ '4', "float32, int32, uint32" },
};

bool nki_type_fits(enum nki_dtype dtype, char rule)
{
	bool is_int = nki_dtype_is_int(dtype), packed = nki_packed(dtype);
	bool scale = (unsigned int)dtype == NEURON_DTYPE_FLOAT8_E8M0FNU;

	switch (rule) {
	case '-':
		return true;
	case 'f':
	case 'p':
		return !is_int && !packed && !scale;
	case 'h':
		return dtype == NKI_BFLOAT16 || dtype == NKI_FLOAT16;
	case 'b':
		return dtype == NKI_BFLOAT16;
	case 'i':
		return is_int;
	case 'd':
		return nki_dtype_size(dtype) == 4 && !packed;
	case 'w':
		return dtype == NKI_INT32 || dtype == NKI_UINT32;
	case 'u':
		return dtype == NKI_UINT8 || dtype == NKI_UINT16 || dtype == NKI_UINT32;
	case 'o':
		return dtype == NKI_UINT16 || dtype == NKI_UINT32;
	case 'm':
		return packed;
	case 'e':
		return scale || dtype == NKI_UINT8;
	case '4':
		return dtype == NKI_FLOAT32 || dtype == NKI_INT32 || dtype == NKI_UINT32;
	default:
		return !packed;
	}
}

const char *nki_type_allowed(char rule)
{
	for (size_t i = 0; i < sizeof(type_rule) / sizeof(type_rule[0]); i++) {
		if (type_rule[i].rule == rule)
			return type_rule[i].allowed;
	}
	return "nothing";
}

bool nki_type_ok(struct nki_kernel *k, struct nki_loc loc, const char *what, enum nki_dtype dtype,
		 char rule)
{
	if (nki_type_fits(dtype, rule))
		return true;
	nki_fail(k, loc, "%s is %s; allowed: %s", what, nki_dtype_text(dtype), nki_type_allowed(rule));
	return false;
}

bool nki_f32_or_vec(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_scalar s)
{
	if (s.kind == NEURON_IMM_F32 || s.kind == NEURON_IMM_VEC)
		return true;
	nki_fail(k, loc, "%s must be nki_f32() or nki_vec()", what);
	return false;
}

bool nki_reduce_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_reduce_cmd cmd,
		   struct nki_view res, unsigned int parts, bool load)
{
	unsigned int last = load ? NKI_REDUCE_LOAD_REDUCE : NKI_REDUCE_RESET_REDUCE;

	if ((unsigned int)cmd > last) {
		nki_fail(k, loc, "reduce_cmd %d; allowed: 0 to %u", cmd, last);
		return false;
	}
	if (!res.buf)
		return true;
	if (cmd == NKI_REDUCE_IDLE) {
		nki_fail(k, loc, "reduce_res with reduce_cmd idle, which leaves the accumulators undefined");
		return false;
	}
	return nki_live(k, loc, "reduce_res", res) && nki_shape_is(k, loc, "reduce_res", res, parts, 1);
}

void nki_read_acc(struct nki_kernel *k, struct nki_loc loc, struct nki_view res, bool negate)
{
	struct nki_insn *insn;

	if (!res.buf || !nki_ok(k))
		return;
	insn = nki_begin(k, loc, NEURON_OP_DVE_READ_ACC, NKI_ENGINE_VECTOR, 0);
	if (!insn || !nki_put_view(k, loc, insn, 0, "reduce_res", res, 0))
		return;
	if (negate)
		insn->w.flags |= htole16(NEURON_FLAG_NEGATE);
	nki_emit(k, insn);
}
