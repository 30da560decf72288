// SPDX-License-Identifier: MIT
/*
 * Disassembler, made from the tables of isa.def. What is printed is enough to make
 * the words again (asm.c), as long as bytes that nothing uses are 0.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disasm.h"
#include "isa_text.h"

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

static void add_dtype(struct out *o, unsigned int dtype)
{
	char buf[32];
	const char *text = isa_text_dtype(dtype, buf, sizeof(buf));

	if (text)
		add(o, "%s", text);
	else
		add(o, "dtype%u", dtype);
}

const char *nki_disasm_opcode(unsigned int opcode)
{
	const struct isa_text_row *row = isa_text_row(opcode);

	return row ? row->text : NULL;
}

/* ------------------------------------------------------------------------ */
/* Waits and updates							    */

static void add_wait(struct out *o, const struct neuron_wait *w, bool more)
{
	const char *reg = w->cond & NEURON_WAIT_REG ? "r" : "";
	unsigned int value = le16toh(w->value);

	switch (w->cond & NEURON_WAIT_COND_MASK) {
	case NEURON_WAIT_NONE:
		if (more)
			add(o, " $-");
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

/* ------------------------------------------------------------------------ */
/* Operands								    */

/* Addresses that another memory's would look like are marked. */
static void add_address(struct out *o, unsigned int space, uint32_t offset)
{
	if (space == NEURON_SPACE_PSUM && offset < ISA_PSUM_TEXT_BASE)
		add(o, "0x%x", offset + ISA_PSUM_TEXT_BASE);
	else if (space == NEURON_SPACE_PSUM)
		add(o, "psum:0x%x", offset);
	else if (space == NEURON_SPACE_SBUF && offset >= ISA_PSUM_TEXT_BASE)
		add(o, "sbuf:0x%x", offset);
	else if (space == NEURON_SPACE_SBUF)
		add(o, "0x%x", offset);
	else
		add(o, "space%u:0x%x", space, offset);
}

/* Steps and numbers; a register that replaces a number is shown with the number. */
static void add_pattern(struct out *o, const struct neuron_ap *ap)
{
	unsigned int dims = ap->dims <= NEURON_AP_DIMS ? ap->dims : NEURON_AP_DIMS;

	add(o, "[");
	for (unsigned int d = 0; d < dims; d++)
		add(o, "%s%d", d ? "," : "", (int16_t)le16toh(ap->step[d]));
	add(o, "][");
	for (unsigned int d = 0; d < dims; d++) {
		add(o, "%s", d ? "," : "");
		if (ap->count_reg != NEURON_REG_NONE && ap->count_dim == d)
			add(o, "r%u<=", ap->count_reg);
		add(o, "%u", le16toh(ap->num[d]));
	}
	add(o, "]");
}

static void add_place(struct out *o, const struct neuron_ap *ap)
{
	if (ap->part_start)
		add(o, "+p%u", ap->part_start);
	if (ap->offset_reg != NEURON_REG_NONE)
		add(o, "+r%u", ap->offset_reg);
}

/* @channels: printed for all; another number is this operand's own. */
static void add_ap(struct out *o, const char *name, const struct neuron_ap *ap, int channels)
{
	if (ap->space == NEURON_SPACE_NONE)
		return;
	add(o, " %s=", name);
	add_dtype(o, ap->dtype);
	add(o, "@");
	add_address(o, ap->space, le32toh(ap->offset));
	add_place(o, ap);
	add_pattern(o, ap);
	if (ap->part_count != channels)
		add(o, " %s_channels=%u", name, ap->part_count);
}

/* The profiler's form of MX data with its scales; the scales follow in full. */
static void add_mx(struct out *o, const char *name, const struct neuron_ap *ap,
		   const struct neuron_ap *scale)
{
	add(o, " %s=", name);
	add_dtype(o, ap->dtype);
	add(o, "@$MX[");
	add_address(o, ap->space, le32toh(ap->offset));
	add(o, ",0x%x,%u]", le32toh(scale->offset), scale->part_start);
	add_place(o, ap);
	add(o, "@");
	add_pattern(o, ap);
}

static void add_float(struct out *o, uint32_t bits)
{
	char text[40];
	uint32_t again;
	float f;

	memcpy(&f, &bits, sizeof(f));
	snprintf(text, sizeof(text), "%.9g", f);
	if (!strpbrk(text, ".en"))
		strcat(text, ".0");
	f = strtof(text, NULL);
	memcpy(&again, &f, sizeof(again));
	if (again == bits)
		add(o, "%s", text);
	else
		add(o, "f:0x%08x", bits);
}

static void add_imm(struct out *o, const char *name, const struct neuron_imm *imm)
{
	uint32_t value = le32toh(imm->value);
	unsigned int usual = imm->kind == NEURON_IMM_F32 ? NEURON_DTYPE_FLOAT32 : NEURON_DTYPE_INT32;

	if (imm->kind == NEURON_IMM_NONE)
		return;
	add(o, " %s=", name);
	switch (imm->kind) {
	case NEURON_IMM_F32:
		add_float(o, value);
		break;
	case NEURON_IMM_I32:
		add(o, "%d", (int32_t)value);
		break;
	case NEURON_IMM_REG:
		add(o, "r%u", value);
		break;
	case NEURON_IMM_VEC:
		add_dtype(o, imm->dtype);
		add(o, "@");
		add_address(o, imm->space, value);
		if (imm->part)
			add(o, "+p%u", imm->part);
		add(o, "[1][1]");
		return;
	default:
		add(o, "?%u", imm->kind);
		return;
	}
	if (imm->dtype != usual) {
		add(o, ":");
		add_dtype(o, imm->dtype);
	}
}

/* ------------------------------------------------------------------------ */
/* Fields								    */

static void add_flags(struct out *o, unsigned int flags)
{
	unsigned int bit, known = 3u << NEURON_FLAG_PERF_SHIFT;
	const char *text;

	for (unsigned int n = 0; (bit = isa_text_flag(n, &text)); n++) {
		known |= bit;
		if (flags & bit)
			add(o, " %s", text);
	}
	if (flags >> NEURON_FLAG_PERF_SHIFT & 3)
		add(o, " perf_mode=%u", flags >> NEURON_FLAG_PERF_SHIFT & 3);
	if (flags & ~known)
		add(o, " flags=0x%x", flags & ~known);
}

static void add_op(struct out *o, const struct isa_text_row *row, unsigned int slot, unsigned int op)
{
	char kind = isa_text_op_kind(row, slot);
	const char *text = kind == 'F' ? isa_text_act(op) : kind == 'A' ? isa_text_alu(op) : NULL;

	if (!op && (row->ops[slot] == '-' || (slot && row->ops[slot] != 'F')))
		return;
	add(o, " %s=", isa_text_key(row->opcode, 'o', slot));
	if (text)
		add(o, "%s", text);
	else
		add(o, kind == '-' ? "%u" : "?%u", op);
}

static void add_dma_aux(struct out *o, uint32_t aux)
{
	add(o, " queue=%u", aux & 0xff);
	if (aux >> 8 & 0xff)
		add(o, " priority=%u", aux >> 8 & 0xff);
	if (aux >> 16 & 0xff)
		add(o, " dge_mode=%u", aux >> 16 & 0xff);
	if (aux >> 24)
		add(o, " sem_core=%u", aux >> 24);
}

static void add_aux(struct out *o, const struct isa_text_row *row, uint32_t aux)
{
	if (!strcmp(row->aux, "dims"))
		add(o, " dims=%u", aux);
	else if (!strcmp(row->aux, "target"))
		add(o, " target=%u", aux);
	else if (!strcmp(row->aux, "channel_multiplier"))
		add(o, " channel_multiplier=%d", (int32_t)aux);
	else if (aux && strcmp(row->aux, "reg") && strcmp(row->aux, "dma"))
		add(o, " aux=0x%x", aux);
}

static bool is_pe(unsigned int opcode)
{
	return opcode >= NEURON_OP_LDWEIGHTS && opcode <= NEURON_OP_MATMUL_SPARSE;
}

/* Number of partitions that is printed once: of the first access pattern in memory. */
static int channels_of(const struct neuron_insn *w)
{
	static const unsigned int order[2][3] = { { 0, 1, 2 }, { 1, 0, 2 } };

	for (unsigned int i = 0; i < 3; i++) {
		const struct neuron_ap *ap = &w->ap[order[is_pe(w->opcode)][i]];

		if (ap->space != NEURON_SPACE_NONE)
			return ap->part_count;
	}
	return -1;
}

static void add_pe_tail(struct out *o, const struct neuron_insn *w)
{
	unsigned int n = 1;

	for (unsigned int d = 0; d < w->ap[1].dims && d < NEURON_AP_DIMS; d++)
		n *= le16toh(w->ap[1].num[d]);
	add(o, " %u*%u", n, w->ap[1].part_count);
	if (w->opcode == NEURON_OP_MATMUL || w->opcode == NEURON_OP_MATMUL_MX || w->opcode == NEURON_OP_MATMUL_SPARSE)
		add(o, " acc_flags=%u", le16toh(w->flags) & NEURON_FLAG_ACCUMULATE ? 1 : 2);
}

static void add_aps(struct out *o, const struct neuron_insn *w, const struct neuron_insn_ext *ext,
		    int channels)
{
	static const unsigned int order[NEURON_INSN_APS] = { 1, 2, 0, 3, 4, 5 };

	for (unsigned int i = 0; i < (ext ? 6u : 3u); i++) {
		unsigned int slot = order[i];
		const struct neuron_ap *ap = slot < 3 ? &w->ap[slot] : &ext->ap[slot - 3];
		const char *name = isa_text_key(w->opcode, 'a', slot);

		if (isa_text_is_pattern(w->opcode, slot) && ap->space == NEURON_SPACE_NONE) {
			add(o, " %s=", name);
			add_pattern(o, ap);
			if (ap->part_count != channels)
				add(o, " %s_channels=%u", name, ap->part_count);
		} else if (slot == 1 && isa_text_is_mx(w->opcode)) {
			add_mx(o, name, ap, &w->ap[2]);
		} else {
			add_ap(o, name, ap, channels);
		}
	}
}

static void add_ext(struct out *o, const struct neuron_insn *w, const struct neuron_insn_ext *ext)
{
	if (w->opcode == NEURON_OP_STREAM_SHUFFLE) {
		add(o, " mask=[");
		for (unsigned int i = 0; i < 32; i++)
			add(o, "%s%u", i ? "," : "", ext->mask[i]);
		add(o, "]");
	} else {
		for (unsigned int i = 0; i < 4; i++)
			add_imm(o, isa_text_key(w->opcode, 'i', i + 2), &ext->imm[i]);
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (ext->aux[i])
			add(o, " aux%u=0x%x", i + 1, le32toh(ext->aux[i]));
	}
	if (ext->flags)
		add(o, " ext_flags=0x%x", le32toh(ext->flags));
}

static void add_index_word(struct out *o, unsigned int opcode, const struct neuron_insn_ext *ext)
{
	for (unsigned int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s_index", isa_text_key(opcode, 'a', i));
		add_ap(o, name, &ext->ap[i], -1);
	}
}

/* ------------------------------------------------------------------------ */
/* HBM									    */

static void add_hbm(struct out *o, const char *name, const struct neuron_dma_operand *d)
{
	unsigned int dims = d->dims <= NEURON_DMA_DIMS ? d->dims : NEURON_DMA_DIMS;
	char index[40];

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
		add(o, "%s", i ? "," : "");
		if (d->count_reg != NEURON_REG_NONE && d->count_dim == i)
			add(o, "r%u<=", d->count_reg);
		add(o, "%u", le32toh(d->count[i]));
	}
	add(o, "]");
	if (d->index.space == NEURON_SPACE_NONE)
		return;
	snprintf(index, sizeof(index), "%s_index", name);
	add_ap(o, index, &d->index, -1);
	add(o, " %s_index_dim=%u %s_rows=%" PRIu64, name, le32toh(d->index_dim), name,
	    (uint64_t)le64toh(d->row_bound));
}

static void add_dma_side(struct out *o, const char *name, const struct neuron_dma_operand *d,
			 const struct neuron_ap *ap)
{
	if (d->space == NEURON_SPACE_HBM) {
		add_hbm(o, name, d);
		return;
	}
	add_ap(o, name, ap, -1);
	if (d->arg)
		add(o, " %s_core=%u", name, le16toh(d->arg));
}

static void add_dma(struct out *o, const struct neuron_insn *w)
{
	struct neuron_dma_operand d[NEURON_INSN_MAX_WORDS - 1];
	unsigned int operands = w->words - 1;

	memcpy(d, w + 1, operands * sizeof(d[0]));
	for (unsigned int i = 1; i < operands; i++) {
		char name[16] = "src";

		if (i > 1)
			snprintf(name, sizeof(name), "src%u", i - 1);
		add_dma_side(o, name, &d[i], w->opcode == NEURON_OP_DMA_COMPUTE ? &d[i].index : &w->ap[1]);
	}
	add_dma_side(o, "dst", &d[0], &w->ap[0]);
}

/* ------------------------------------------------------------------------ */
/* Instructions								    */

static void add_imms(struct out *o, const struct neuron_insn *w)
{
	for (unsigned int i = 0; i < 2; i++)
		add_imm(o, isa_text_key(w->opcode, 'i', i), &w->imm[i]);
}

static bool one_element(unsigned int opcode)
{
	return opcode == NEURON_OP_TENSOR_LOAD || opcode == NEURON_OP_TENSOR_STORE;
}

static void add_operands(struct out *o, const struct isa_text_row *row, const struct neuron_insn *w)
{
	enum isa_second second = isa_text_second(row->opcode);
	const struct neuron_insn_ext *ext = second == ISA_SECOND_EXT ?
					    (const struct neuron_insn_ext *)(w + 1) : NULL;
	int channels = channels_of(w);

	if (!strcmp(row->aux, "reg"))
		add(o, " r%u", le32toh(w->aux));
	if (second == ISA_SECOND_DMA)
		add_dma_aux(o, le32toh(w->aux));
	for (unsigned int i = 0; i < 3; i++)
		add_op(o, row, i, w->op[i]);
	if (second == ISA_SECOND_DMA) {
		add_dma(o, w);
	} else {
		add_aps(o, w, ext, channels);
		if (second == ISA_SECOND_HBM)
			add_hbm(o, row->opcode == NEURON_OP_READ ? "src" : "dst",
				(const struct neuron_dma_operand *)(w + 1));
	}
	add_imms(o, w);
	if (ext)
		add_ext(o, w, ext);
	add_aux(o, row, le32toh(w->aux));
	if (w->acc)
		add(o, " acc_cmd=%u", w->acc);
	if (is_pe(row->opcode) && w->ap[1].space != NEURON_SPACE_NONE)
		add_pe_tail(o, w);
	else if (channels >= 0 && second != ISA_SECOND_DMA && !(one_element(row->opcode) && channels == 1))
		add(o, " channels=%d", channels);
	add_flags(o, le16toh(w->flags));
	if (le16toh(w->flags) & NEURON_FLAG_INDIRECT)
		add_index_word(o, row->opcode, (const struct neuron_insn_ext *)(w + w->words - 1));
}

static unsigned int words_of(const struct isa_text_row *row, const struct neuron_insn *w)
{
	if (row->opcode == NEURON_OP_DMA_COMPUTE && w->words >= 3 && w->words <= NEURON_INSN_MAX_WORDS)
		return w->words;
	return row->words + (le16toh(w->flags) & NEURON_FLAG_INDIRECT ? 1 : 0);
}

size_t nki_disasm_line(const void *words, size_t count, bool line, char *text, size_t size)
{
	struct out o = { text, size, 0 };
	struct neuron_insn w[NEURON_INSN_MAX_WORDS];
	const struct isa_text_row *row;
	unsigned int n;

	if (size)
		text[0] = 0;
	memcpy(w, words, sizeof(w[0]));
	row = isa_text_row(w[0].opcode);
	if (!row) {
		add(&o, "?opcode 0x%02x", w[0].opcode);
		return 1;
	}
	n = words_of(row, &w[0]);
	if (w[0].words != n || n > count) {
		add(&o, "%s ?words %u of %u, %zu left", row->text, w[0].words, n, count);
		return 1;
	}
	memcpy(w, words, n * sizeof(w[0]));
	add(&o, "%s", row->text);
	add_wait(&o, &w[0].wait[0], w[0].wait[1].cond & NEURON_WAIT_COND_MASK);
	add_wait(&o, &w[0].wait[1], false);
	add_update(&o, &w[0].update);
	add_operands(&o, row, w);
	if (line && w[0].debug_id)
		add(&o, " line=%u", le32toh(w[0].debug_id));
	return n;
}

size_t nki_disasm(const void *words, size_t count, char *text, size_t size)
{
	return nki_disasm_line(words, count, false, text, size);
}
