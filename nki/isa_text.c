// SPDX-License-Identifier: MIT
/* Names of isa.def, both ways. */
#include <stdio.h>
#include <string.h>

#include "isa_text.h"

#define E(x) ISA_##x
static const struct isa_text_row rows[] = {
#define NEURON_INSN(code, name, text, engines, min_nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	{ code, #name, text, engines, min_nc, words, aps, types, ops, imms, aux },
#include "neuron/isa.def"
};
#undef E

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct isa_text_row *isa_text_row(unsigned int opcode)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].opcode == opcode)
			return &rows[i];
	}
	return NULL;
}

static bool is(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && !memcmp(name, text, len);
}

const struct isa_text_row *isa_text_find(const char *text, size_t len)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (is(rows[i].text, text, len))
			return &rows[i];
	}
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (is(rows[i].name, text, len))
			return &rows[i];
	}
	return NULL;
}

enum isa_second isa_text_second(unsigned int opcode)
{
	const struct isa_text_row *row = isa_text_row(opcode);

	if (opcode == NEURON_OP_READ || opcode == NEURON_OP_WRITE)
		return ISA_SECOND_HBM;
	if (row && !strcmp(row->aux, "dma"))
		return ISA_SECOND_DMA;
	return row && row->words == 2 ? ISA_SECOND_EXT : ISA_SECOND_NONE;
}

/* ------------------------------------------------------------------------ */
/* Types and operators							    */

struct name {
	unsigned int code;
	const char *text;
};

static const struct name dtypes[] = {
#define NEURON_DTYPE(code, name, text, bytes) { code, text },
#include "neuron/isa.def"
};

static const struct name alus[] = {
#define NEURON_ALU(code, name, text, cls, arity, reduce) { code, text },
#include "neuron/isa.def"
};

static const struct name acts[] = {
#define NEURON_ACTFN(code, name, text) { code, text },
#include "neuron/isa.def"
};

static const char *text_of(const struct name *list, size_t count, unsigned int code)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i].code == code)
			return list[i].text;
	}
	return NULL;
}

static int code_of(const struct name *list, size_t count, const char *text, size_t len)
{
	for (size_t i = 0; i < count; i++) {
		if (is(list[i].text, text, len))
			return list[i].code;
	}
	return -1;
}

/* The profiler's short names: fp32, bf16, fp8_e4m3. */
static void shorten(const char *text, char *buf, size_t size)
{
	const char *at = strstr(text, "float");

	if (!at)
		snprintf(buf, size, "%s", text);
	else if (at == text)
		snprintf(buf, size, "fp%s", text + 5);
	else
		snprintf(buf, size, "%cf%s", text[0], at + 5);
}

const char *isa_text_dtype(unsigned int dtype, char *buf, size_t size)
{
	const char *text = text_of(dtypes, COUNT(dtypes), dtype);

	if (!text)
		return NULL;
	shorten(text, buf, size);
	return buf;
}

int isa_text_find_dtype(const char *text, size_t len)
{
	for (size_t i = 0; i < COUNT(dtypes); i++) {
		char buf[32];

		shorten(dtypes[i].text, buf, sizeof(buf));
		if (is(buf, text, len) || is(dtypes[i].text, text, len))
			return dtypes[i].code;
	}
	return -1;
}

const char *isa_text_alu(unsigned int op)
{
	return text_of(alus, COUNT(alus), op);
}

int isa_text_find_alu(const char *text, size_t len)
{
	return code_of(alus, COUNT(alus), text, len);
}

const char *isa_text_act(unsigned int op)
{
	return text_of(acts, COUNT(acts), op);
}

int isa_text_find_act(const char *text, size_t len)
{
	return code_of(acts, COUNT(acts), text, len);
}

unsigned int isa_text_flag(unsigned int n, const char **text)
{
	static const struct name flags[] = {
		{ NEURON_FLAG_REVERSE0, "reverse0" },
		{ NEURON_FLAG_REVERSE1, "reverse1" },
		{ NEURON_FLAG_NEGATE, "negate" },
		{ NEURON_FLAG_ACCUMULATE, "accumulate" },
		{ NEURON_FLAG_TRANSPOSE, "transpose" },
		{ NEURON_FLAG_OOB_SKIP, "oob_skip" },
		{ NEURON_FLAG_REVERSE_PRED, "reverse_pred" },
		{ NEURON_FLAG_ONEZERO_STATIONARY, "onezero_stationary" },
		{ NEURON_FLAG_ONEZERO_MOVING, "onezero_moving" },
		{ NEURON_FLAG_INDIRECT, "indirect" },
	};

	if (n >= COUNT(flags))
		return 0;
	*text = flags[n].text;
	return flags[n].code;
}

/* ------------------------------------------------------------------------ */
/* Names of operands							    */

static const struct {
	unsigned int opcode;
	char kind;
	unsigned int slot;
	const char *name;
} special[] = {
	{ NEURON_OP_REG_MOVE, 'i', 0, "src" },
	{ NEURON_OP_REG_ALU, 'o', 0, "op" },
	{ NEURON_OP_REG_ALU, 'i', 0, "a" },
	{ NEURON_OP_REG_ALU, 'i', 1, "b" },
	{ NEURON_OP_COMPARE_BRANCH, 'o', 0, "cmp" },
	{ NEURON_OP_COMPARE_BRANCH, 'i', 0, "a" },
	{ NEURON_OP_COMPARE_BRANCH, 'i', 1, "b" },
	{ NEURON_OP_TENSOR_STORE, 'i', 0, "src" },
	{ NEURON_OP_WRITE, 'i', 0, "value" },
	{ NEURON_OP_REMOTE_SEMAPHORE, 'i', 0, "sem" },
	{ NEURON_OP_REMOTE_SEMAPHORE, 'i', 1, "add" },
	{ NEURON_OP_LDWEIGHTS_MX, 'a', 2, "scale" },
	{ NEURON_OP_MATMUL_MX, 'a', 2, "scale" },
	{ NEURON_OP_LDWEIGHTS_SPARSE, 'a', 2, "tag" },
	{ NEURON_OP_ACTIVATE, 'o', 0, "func" },
	{ NEURON_OP_ACTIVATE, 'o', 2, "acc_op" },
	{ NEURON_OP_ACTIVATE, 'i', 0, "scale" },
	{ NEURON_OP_ACTIVATE, 'i', 1, "bias" },
	{ NEURON_OP_ACTIVATE2, 'o', 2, "func" },
	{ NEURON_OP_ACTIVATE2, 'i', 2, "relu_param" },
	{ NEURON_OP_COPY_PREDICATED, 'a', 2, "predicate" },
	{ NEURON_OP_SELECT, 'a', 2, "predicate" },
	{ NEURON_OP_FIND_INDEX8, 'a', 2, "vals" },
	{ NEURON_OP_MATCH_REPLACE8, 'a', 2, "vals" },
	{ NEURON_OP_MATCH_REPLACE8, 'a', 3, "dst_idx" },
	{ NEURON_OP_QUANTIZE_MX, 'a', 2, "dst_scale" },
	{ NEURON_OP_IOTA, 'a', 2, "pattern" },
	{ NEURON_OP_AFFINE_SELECT, 'a', 2, "pattern" },
	{ NEURON_OP_LOCAL_GATHER, 'a', 2, "index" },
	{ NEURON_OP_N_GATHER, 'a', 2, "index" },
	{ NEURON_OP_TOPK, 'a', 2, "idx" },
	{ NEURON_OP_DMA_TRANSPOSE, 'o', 0, "axes" },
};

const char *isa_text_key(unsigned int opcode, char kind, unsigned int slot)
{
	static const char *const ap[NEURON_INSN_APS] = { "dst", "src", "src1", "ap3", "ap4", "ap5" };
	static const char *const imm[NEURON_INSN_IMMS] = { "imm0", "imm1", "imm2", "imm3", "imm4", "imm5" };
	static const char *const op[] = { "op0", "op1", "op2" };

	for (size_t i = 0; i < COUNT(special); i++) {
		if (special[i].opcode == opcode && special[i].kind == kind && special[i].slot == slot)
			return special[i].name;
	}
	return kind == 'a' ? ap[slot] : kind == 'i' ? imm[slot] : op[slot];
}

char isa_text_op_kind(const struct isa_text_row *row, unsigned int slot)
{
	if (row->opcode == NEURON_OP_DMA_TRANSPOSE)
		return '-';
	return row->ops[slot] == 'F' ? 'F' : 'A';
}

bool isa_text_is_mx(unsigned int opcode)
{
	return opcode == NEURON_OP_LDWEIGHTS_MX || opcode == NEURON_OP_MATMUL_MX;
}

bool isa_text_is_pattern(unsigned int opcode, unsigned int slot)
{
	return slot == 2 && (opcode == NEURON_OP_IOTA || opcode == NEURON_OP_AFFINE_SELECT);
}
