// SPDX-License-Identifier: MIT
/* Disassembler, made from the tables of isa.def. */
#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "disasm.h"
#include "neuron/isa.h"

#define PSUM_TEXT_BASE 0x2000000u	/* where the profiler shows PSUM */

struct out {
	char *text;
	size_t size, used;
};

static void add(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct out *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (o->used + 1 >= o->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(o->text + o->used, o->size - o->used, fmt, ap);
	va_end(ap);
	if (n > 0)
		o->used += n;
	if (o->used >= o->size)
		o->used = o->size - 1;
}

/* The profiler's short names: fp32, bf16, fp8_e4m3. */
static void add_dtype(struct out *o, unsigned int dtype)
{
	const char *text = NULL, *at;

	switch (dtype) {
#define NEURON_DTYPE(code, name, string, bytes) \
	case code: \
		text = string; \
		break;
#include "neuron/isa.def"
	}
	at = text ? strstr(text, "float") : NULL;
	if (!text)
		add(o, "dtype%u", dtype);
	else if (!at)
		add(o, "%s", text);
	else if (at == text)
		add(o, "fp%s", text + 5);
	else
		add(o, "%cf%s", text[0], at + 5);
}

static const char *alu_name(unsigned int op)
{
	switch (op) {
#define NEURON_ALU(code, name, text, cls, arity, reduce) \
	case code: \
		return text;
#include "neuron/isa.def"
	}
	return NULL;
}

static const char *act_name(unsigned int op)
{
	switch (op) {
#define NEURON_ACTFN(code, name, text) \
	case code: \
		return text;
#include "neuron/isa.def"
	}
	return NULL;
}

struct row {
	const char *text;
	unsigned int words;
};

static struct row find_row(unsigned int opcode)
{
	switch (opcode) {
#define NEURON_INSN(code, name, string, engines, min_nc, n, aps, types, ops, imms, aux, limit, cost, summary) \
	case code: \
		return (struct row){ string, n };
#include "neuron/isa.def"
	}
	return (struct row){ NULL, 1 };
}

const char *nki_disasm_opcode(unsigned int opcode)
{
	return find_row(opcode).text;
}

static void add_op(struct out *o, const char *name, unsigned int op, bool activation)
{
	const char *text = activation ? act_name(op) : alu_name(op);

	if (text)
		add(o, " %s=%s", name, text);
	else
		add(o, " %s=?%u", name, op);
}

static void add_wait(struct out *o, const struct neuron_wait *w)
{
	const char *reg = w->cond & NEURON_WAIT_REG ? "r" : "";
	unsigned int value = le16toh(w->value);

	switch (w->cond & NEURON_WAIT_COND_MASK) {
	case NEURON_WAIT_NONE:
		return;
	case NEURON_WAIT_GE:
		add(o, " $S[%u]>=%s%u", w->sem, reg, value);
		return;
	case NEURON_WAIT_EQ:
		add(o, " $S[%u]==%s%u", w->sem, reg, value);
		return;
	case NEURON_WAIT_GE_SUB:
		add(o, " $S[%u]>=%s%u-", w->sem, reg, value);
		return;
	case NEURON_WAIT_EVENT:
		add(o, " $E[%u]", w->sem);
		return;
	case NEURON_WAIT_EVENT_CLEAR:
		add(o, " $E[%u]-", w->sem);
		return;
	}
	add(o, " wait?%u", w->cond);
}

static void add_update(struct out *o, const struct neuron_update *u)
{
	const char *when = u->op & NEURON_UPDATE_AT_READ ? "@read" : "@complete";
	unsigned int value = le16toh(u->value);

	switch (u->op & NEURON_UPDATE_OP_MASK) {
	case NEURON_UPDATE_NONE:
		return;
	case NEURON_UPDATE_SEM_ADD:
		if (value == 1)
			add(o, " $S[%u]++%s", u->sem, when);
		else
			add(o, " $S[%u]+=%u%s", u->sem, value, when);
		return;
	case NEURON_UPDATE_SEM_SUB:
		if (value == 1)
			add(o, " $S[%u]--%s", u->sem, when);
		else
			add(o, " $S[%u]-=%u%s", u->sem, value, when);
		return;
	case NEURON_UPDATE_SEM_WRITE:
		add(o, " $S[%u]=%u%s", u->sem, value, when);
		return;
	case NEURON_UPDATE_EVENT_SET:
		add(o, " $E[%u]=1%s", u->sem, when);
		return;
	case NEURON_UPDATE_EVENT_CLEAR:
		add(o, " $E[%u]=0%s", u->sem, when);
		return;
	}
	add(o, " update?%u", u->op);
}

/* Steps and numbers, without a type: what iota's pattern has too. */
static void add_pattern(struct out *o, const struct neuron_ap *ap)
{
	unsigned int dims = ap->dims <= NEURON_AP_DIMS ? ap->dims : NEURON_AP_DIMS;

	add(o, "[");
	for (unsigned int d = 0; d < dims; d++)
		add(o, "%s%d", d ? "," : "", (int16_t)le16toh(ap->step[d]));
	add(o, "][");
	for (unsigned int d = 0; d < dims; d++) {
		if (ap->count_reg != NEURON_REG_NONE && ap->count_dim == d)
			add(o, "%sr%u", d ? "," : "", ap->count_reg);
		else
			add(o, "%s%u", d ? "," : "", le16toh(ap->num[d]));
	}
	add(o, "]");
}

static void add_ap(struct out *o, const char *name, const struct neuron_ap *ap)
{
	uint32_t addr = le32toh(ap->offset);

	if (ap->space == NEURON_SPACE_NONE)
		return;
	add(o, " %s=", name);
	add_dtype(o, ap->dtype);
	if (ap->space == NEURON_SPACE_PSUM)
		addr += PSUM_TEXT_BASE;
	else if (ap->space != NEURON_SPACE_SBUF)
		add(o, "?space%u", ap->space);
	add(o, "@0x%x", addr);
	if (ap->part_start)
		add(o, "+p%u", ap->part_start);
	if (ap->offset_reg != NEURON_REG_NONE)
		add(o, "+r%u", ap->offset_reg);
	add_pattern(o, ap);
}

static void add_imm(struct out *o, const char *name, const struct neuron_imm *imm)
{
	uint32_t value = le32toh(imm->value);
	float f;

	switch (imm->kind) {
	case NEURON_IMM_NONE:
		return;
	case NEURON_IMM_F32:
		memcpy(&f, &value, sizeof(f));
		add(o, " %s=%.9g", name, f);
		return;
	case NEURON_IMM_I32:
		add(o, " %s=%d", name, (int32_t)value);
		return;
	case NEURON_IMM_REG:
		add(o, " %s=r%u", name, value);
		return;
	case NEURON_IMM_VEC:
		add(o, " %s=", name);
		add_dtype(o, imm->dtype);
		add(o, "@0x%x", imm->space == NEURON_SPACE_PSUM ? value + PSUM_TEXT_BASE : value);
		if (imm->part)
			add(o, "+p%u", imm->part);
		add(o, "[1][1]");
		return;
	}
	add(o, " %s=?%u", name, imm->kind);
}

static void add_flags(struct out *o, unsigned int flags)
{
	static const struct {
		unsigned int bit;
		const char *text;
	} names[] = {
		{ NEURON_FLAG_REVERSE0, "reverse0" },	{ NEURON_FLAG_REVERSE1, "reverse1" },
		{ NEURON_FLAG_NEGATE, "negate" },	{ NEURON_FLAG_ACCUMULATE, "accumulate" },
		{ NEURON_FLAG_TRANSPOSE, "transpose" },	{ NEURON_FLAG_OOB_SKIP, "oob_skip" },
		{ NEURON_FLAG_REVERSE_PRED, "reverse_pred" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (flags & names[i].bit)
			add(o, " %s", names[i].text);
	}
	if (flags >> NEURON_FLAG_PERF_SHIFT & 3)
		add(o, " perf_mode=%u", flags >> NEURON_FLAG_PERF_SHIFT & 3);
}

static void add_channels(struct out *o, const struct neuron_insn *w)
{
	for (unsigned int i = 0; i < 3; i++) {
		if (w->ap[i].space != NEURON_SPACE_NONE) {
			add(o, " channels=%u", w->ap[i].part_count);
			return;
		}
	}
}

/* ------------------------------------------------------------------------ */
/* Kinds of instructions						    */

static void add_register_op(struct out *o, const struct neuron_insn *w)
{
	uint32_t aux = le32toh(w->aux);

	switch (w->opcode) {
	case NEURON_OP_REG_MOVE:
		add(o, " r%u", aux);
		add_imm(o, "src", &w->imm[0]);
		break;
	case NEURON_OP_REG_ALU:
		add(o, " r%u", aux);
		add_op(o, "op", w->op[0], false);
		add_imm(o, "a", &w->imm[0]);
		add_imm(o, "b", &w->imm[1]);
		break;
	case NEURON_OP_COMPARE_BRANCH:
		add_op(o, "cmp", w->op[0], false);
		add_imm(o, "a", &w->imm[0]);
		add_imm(o, "b", &w->imm[1]);
		add(o, " target=%u", aux);
		break;
	case NEURON_OP_TENSOR_LOAD:
		add(o, " r%u", aux);
		add_ap(o, "src", &w->ap[1]);
		break;
	case NEURON_OP_TENSOR_STORE:
		add_imm(o, "src", &w->imm[0]);
		add_ap(o, "dst", &w->ap[0]);
		break;
	}
}

static void add_dma_side(struct out *o, const char *name, const struct neuron_dma_operand *d,
			 const struct neuron_ap *ap)
{
	unsigned int dims = d->dims <= NEURON_DMA_DIMS ? d->dims : NEURON_DMA_DIMS;

	if (d->space != NEURON_SPACE_HBM) {
		add_ap(o, name, ap);
		if (ap->space != NEURON_SPACE_NONE)
			add(o, " %s_channels=%u", name, ap->part_count);
		return;
	}
	add(o, " %s=", name);
	add_dtype(o, d->dtype);
	add(o, "@arg%u+0x%" PRIx64, le16toh(d->arg), (uint64_t)le64toh(d->offset));
	if (d->offset_reg != NEURON_REG_NONE)
		add(o, "+r%u*%" PRId64, d->offset_reg, (int64_t)le64toh(d->offset_scale));
	add(o, "[");
	for (unsigned int i = 0; i < dims; i++)
		add(o, "%s%" PRId64, i ? "," : "", (int64_t)le64toh(d->stride[i]));
	add(o, "][");
	for (unsigned int i = 0; i < dims; i++) {
		if (d->count_reg != NEURON_REG_NONE && d->count_dim == i)
			add(o, "%sr%u", i ? "," : "", d->count_reg);
		else
			add(o, "%s%u", i ? "," : "", le32toh(d->count[i]));
	}
	add(o, "]");
	if (d->index.space != NEURON_SPACE_NONE) {
		add_ap(o, "index", &d->index);
		add(o, " index_dim=%u rows=%" PRIu64, le32toh(d->index_dim),
		    (uint64_t)le64toh(d->row_bound));
	}
}

static void add_dma(struct out *o, const struct neuron_insn *w)
{
	struct neuron_dma_operand d[2];

	memcpy(d, w + 1, sizeof(d));
	add(o, " queue=%u", le32toh(w->aux) & 0xff);
	if (le32toh(w->aux) >> 8 & 0xff)
		add(o, " priority=%u", le32toh(w->aux) >> 8 & 0xff);
	add_dma_side(o, "src", &d[1], &w->ap[1]);
	add_dma_side(o, "dst", &d[0], &w->ap[0]);
}

static void add_pe(struct out *o, const struct neuron_insn *w)
{
	unsigned int n = 1;

	add_ap(o, "src", &w->ap[1]);
	add_ap(o, "dst", &w->ap[0]);
	for (unsigned int d = 0; d < w->ap[1].dims && d < NEURON_AP_DIMS; d++)
		n *= le16toh(w->ap[1].num[d]);
	add(o, " %u*%u", n, w->ap[1].part_count);
	if (w->opcode == NEURON_OP_MATMUL)
		add(o, " acc_flags=%u", le16toh(w->flags) & NEURON_FLAG_ACCUMULATE ? 1 : 2);
}

static void add_activate(struct out *o, const struct neuron_insn *w)
{
	add_op(o, "func", w->op[0], true);
	add_ap(o, "src", &w->ap[1]);
	add_ap(o, "dst", &w->ap[0]);
	add_imm(o, "scale", &w->imm[0]);
	add_imm(o, "bias", &w->imm[1]);
	if (w->acc) {
		add(o, " acc_cmd=%u", w->acc);
		add_op(o, "acc_op", w->op[2], false);
	}
}

static void add_general(struct out *o, const struct neuron_insn *w)
{
	unsigned int opcode = w->opcode;

	if (opcode == NEURON_OP_TENSOR_TENSOR || opcode == NEURON_OP_TENSOR_SCALAR ||
	    opcode == NEURON_OP_SCALAR_TENSOR_TENSOR || opcode == NEURON_OP_TENSOR_REDUCE ||
	    opcode == NEURON_OP_AFFINE_SELECT)
		add_op(o, "op0", w->op[0], false);
	if ((opcode == NEURON_OP_TENSOR_SCALAR && w->op[1]) || opcode == NEURON_OP_SCALAR_TENSOR_TENSOR)
		add_op(o, "op1", w->op[1], false);
	add_ap(o, "src", &w->ap[1]);
	if (opcode == NEURON_OP_COPY_PREDICATED || opcode == NEURON_OP_SELECT)
		add_ap(o, "predicate", &w->ap[2]);
	else
		add_ap(o, "src1", &w->ap[2]);
	if (opcode == NEURON_OP_IOTA || opcode == NEURON_OP_AFFINE_SELECT) {
		add(o, " pattern=");
		add_pattern(o, &w->ap[2]);
	}
	add_ap(o, "dst", &w->ap[0]);
	add_imm(o, "imm0", &w->imm[0]);
	add_imm(o, "imm1", &w->imm[1]);
	if (opcode == NEURON_OP_TENSOR_REDUCE)
		add(o, " dims=%u", le32toh(w->aux));
	if (opcode == NEURON_OP_AFFINE_SELECT)
		add(o, " channel_multiplier=%d", (int32_t)le32toh(w->aux));
}

static void add_operands(struct out *o, const struct neuron_insn *w)
{
	switch (w->opcode) {
	case NEURON_OP_NOP:
	case NEURON_OP_HALT:
	case NEURON_OP_EVENT_SEMAPHORE:
		return;
	case NEURON_OP_REG_MOVE:
	case NEURON_OP_REG_ALU:
	case NEURON_OP_COMPARE_BRANCH:
	case NEURON_OP_TENSOR_LOAD:
	case NEURON_OP_TENSOR_STORE:
		add_register_op(o, w);
		return;
	case NEURON_OP_DMA_COPY:
		add_dma(o, w);
		break;
	case NEURON_OP_LDWEIGHTS:
	case NEURON_OP_MATMUL:
		add_pe(o, w);
		break;
	case NEURON_OP_ACTIVATE:
		add_activate(o, w);
		add_channels(o, w);
		break;
	default:
		add_general(o, w);
		add_channels(o, w);
		break;
	}
	add_flags(o, le16toh(w->flags));
}

size_t nki_disasm(const void *words, size_t count, char *text, size_t size)
{
	struct out o = { text, size, 0 };
	struct neuron_insn w[NEURON_INSN_MAX_WORDS];
	struct row row;

	if (size)
		text[0] = 0;
	memcpy(w, words, sizeof(w[0]));
	row = find_row(w[0].opcode);
	if (!row.text) {
		add(&o, "?opcode 0x%02x", w[0].opcode);
		return 1;
	}
	if (w[0].words != row.words || row.words > count) {
		add(&o, "%s ?words %u of %u, %zu left", row.text, w[0].words, row.words, count);
		return 1;
	}
	memcpy(w, words, row.words * sizeof(w[0]));
	add(&o, "%s", row.text);
	add_wait(&o, &w[0].wait[0]);
	add_wait(&o, &w[0].wait[1]);
	add_update(&o, &w[0].update);
	add_operands(&o, w);
	return row.words;
}
