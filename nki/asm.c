// SPDX-License-Identifier: MIT
/* One instruction from text to words. */
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asm.h"
#include "isa_text.h"

#define MAX_SOURCES	(NEURON_INSN_MAX_WORDS - 2)

/**
 * struct as - an instruction being assembled
 * @token: word of the text at hand
 * @index: the last word of an indirect instruction
 * @channels: "channels=", or what the PE's "N*K" says; -1: not given
 * @own: access patterns, by number, whose partitions are given by themselves
 * @sources: of a DMA instruction
 */
struct as {
	struct nki_asm_insn *insn;
	const struct isa_text_row *row;
	const char *token;
	struct neuron_insn_ext index;
	int channels;
	unsigned int own;
	unsigned int waits;
	bool updated;
	unsigned int sources;
	char *error;
	size_t size;
};

static bool fail(struct as *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct as *a, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(a->error, a->size, "\"%.60s\": ", a->token);
	if (n < 0 || (size_t)n >= a->size)
		return false;
	va_start(ap, fmt);
	vsnprintf(a->error + n, a->size - n, fmt, ap);
	va_end(ap);
	return false;
}

/* ------------------------------------------------------------------------ */
/* Pieces								    */

static bool skip(const char **p, const char *text)
{
	size_t n = strlen(text);

	if (strncmp(*p, text, n))
		return false;
	*p += n;
	return true;
}

static bool number(struct as *a, const char **p, uint64_t max, uint64_t *value)
{
	char *end;

	*value = 0;
	if (!isdigit((unsigned char)**p))
		return fail(a, "a number is missing at \"%.20s\"", *p);
	errno = 0;
	*value = strtoull(*p, &end, 0);
	if (errno || *value > max)
		return fail(a, "the number at \"%.20s\" is too large; allowed: up to %" PRIu64, *p, max);
	*p = end;
	return true;
}

static bool signed_number(struct as *a, const char **p, int64_t min, int64_t max, int64_t *value)
{
	bool minus = skip(p, "-");
	uint64_t n;

	if (!number(a, p, minus ? 0 - (uint64_t)min : (uint64_t)max, &n))
		return false;
	*value = minus ? (int64_t)(0 - n) : (int64_t)n;
	return true;
}

static bool end(struct as *a, const char *p)
{
	return !*p || fail(a, "\"%.20s\" is left over", p);
}

static bool dtype(struct as *a, const char **p, const char *stops, uint8_t *code)
{
	size_t n = strcspn(*p, stops);
	uint64_t value;
	int found = isa_text_find_dtype(*p, n);

	if (found < 0 && skip(p, "dtype")) {
		if (!number(a, p, 255, &value))
			return false;
		*code = value;
		return true;
	}
	if (found < 0)
		return fail(a, "\"%.*s\" is not a data type", (int)n, *p);
	*p += n;
	*code = found;
	return true;
}

static bool address(struct as *a, const char **p, uint8_t *space, uint32_t *offset)
{
	uint64_t value, where;

	*space = NEURON_SPACE_SBUF;
	if (skip(p, "psum:")) {
		*space = NEURON_SPACE_PSUM;
	} else if (skip(p, "space")) {
		if (!number(a, p, 255, &where) || !skip(p, ":"))
			return fail(a, "allowed: spaceN:0xADDRESS");
		*space = where;
	} else if (!skip(p, "sbuf:")) {
		if (!number(a, p, UINT32_MAX, &value))
			return false;
		if (value >= ISA_PSUM_TEXT_BASE) {
			*space = NEURON_SPACE_PSUM;
			value -= ISA_PSUM_TEXT_BASE;
		}
		*offset = htole32(value);
		return true;
	}
	if (!number(a, p, UINT32_MAX, &value))
		return false;
	*offset = htole32(value);
	return true;
}

static bool place(struct as *a, const char **p, uint8_t *part, uint8_t *reg)
{
	uint64_t value;

	while (skip(p, "+")) {
		bool is_part = skip(p, "p");

		if (!is_part && !skip(p, "r"))
			return fail(a, "after + allowed: pN, a partition, or rN, a register");
		if (!number(a, p, is_part ? 255 : 254, &value))
			return false;
		if (is_part)
			*part = value;
		else if (reg)
			*reg = value;
		else
			return fail(a, "no register is possible here");
	}
	return true;
}

/* "[steps][nums]", innermost first; *reg replaces number *reg_dim. */
static bool pattern(struct as *a, const char **p, unsigned int max, int64_t *step, uint64_t *num,
		    int64_t step_limit, uint64_t num_limit, unsigned int *dims, uint8_t *reg,
		    uint8_t *reg_dim)
{
	unsigned int n = 0;
	uint64_t value;

	if (!skip(p, "["))
		return fail(a, "[steps] is missing at \"%.20s\"", *p);
	for (*dims = 0; !skip(p, "]"); (*dims)++) {
		if ((*dims && !skip(p, ",")) || *dims == max)
			return fail(a, "allowed: 0 to %u steps with commas", max);
		if (!signed_number(a, p, -step_limit - 1, step_limit, &step[*dims]))
			return false;
	}
	if (!skip(p, "["))
		return fail(a, "[numbers] are missing at \"%.20s\"", *p);
	for (; !skip(p, "]"); n++) {
		if ((n && !skip(p, ",")) || n == *dims)
			return fail(a, "as many numbers as steps, with commas");
		if (skip(p, "r")) {
			if (!number(a, p, 254, &value) || !skip(p, "<="))
				return fail(a, "allowed: rREGISTER<=MAXIMUM");
			*reg = value;
			*reg_dim = n;
		}
		if (!number(a, p, num_limit, &num[n]))
			return false;
	}
	return n == *dims || fail(a, "%u steps, %u numbers", *dims, n);
}

static bool ap_pattern(struct as *a, const char **p, struct neuron_ap *ap)
{
	int64_t step[NEURON_AP_DIMS];
	uint64_t num[NEURON_AP_DIMS];
	unsigned int dims;

	if (!pattern(a, p, NEURON_AP_DIMS, step, num, INT16_MAX, UINT16_MAX, &dims, &ap->count_reg,
		     &ap->count_dim))
		return false;
	ap->dims = dims;
	for (unsigned int d = 0; d < dims; d++) {
		ap->step[d] = htole16((uint16_t)step[d]);
		ap->num[d] = htole16(num[d]);
	}
	return true;
}

/* "$MX[data,scale,partition]": the last two are repeated by "scale=". */
static bool mx_address(struct as *a, const char **p, struct neuron_ap *ap)
{
	uint64_t scale, part;

	return address(a, p, &ap->space, &ap->offset) && (skip(p, ",") || fail(a, "$MX[data,scale,partition]")) &&
	       number(a, p, UINT32_MAX, &scale) && (skip(p, ",") || fail(a, "$MX[data,scale,partition]")) &&
	       number(a, p, 255, &part) && (skip(p, "]") || fail(a, "] is missing")) &&
	       place(a, p, &ap->part_start, &ap->offset_reg) && (skip(p, "@") || fail(a, "@ is missing"));
}

static bool access_pattern(struct as *a, const char *p, struct neuron_ap *ap)
{
	if (!dtype(a, &p, "@", &ap->dtype) || (!skip(&p, "@") && !fail(a, "@ is missing")))
		return false;
	if (skip(&p, "$MX[")) {
		if (!mx_address(a, &p, ap))
			return false;
	} else if (!address(a, &p, &ap->space, &ap->offset) ||
		   !place(a, &p, &ap->part_start, &ap->offset_reg)) {
		return false;
	}
	return ap_pattern(a, &p, ap) && end(a, p);
}

/* ------------------------------------------------------------------------ */
/* Immediates								    */

static bool imm_vec(struct as *a, const char *p, struct neuron_imm *imm)
{
	imm->kind = NEURON_IMM_VEC;
	return dtype(a, &p, "@", &imm->dtype) && (skip(&p, "@") || fail(a, "@ is missing")) &&
	       address(a, &p, &imm->space, &imm->value) && place(a, &p, &imm->part, NULL) &&
	       (skip(&p, "[1][1]") || fail(a, "allowed: [1][1], one value per partition")) && end(a, p);
}

static bool imm_float(struct as *a, const char **p, struct neuron_imm *imm)
{
	uint64_t bits;
	uint32_t u;
	char *stop;
	float f;

	imm->kind = NEURON_IMM_F32;
	imm->dtype = NEURON_DTYPE_FLOAT32;
	if (skip(p, "f:")) {
		if (!number(a, p, UINT32_MAX, &bits))
			return false;
		imm->value = htole32(bits);
		return true;
	}
	f = strtof(*p, &stop);
	if (stop == *p)
		return fail(a, "\"%.20s\" is not a value", *p);
	*p = stop;
	memcpy(&u, &f, sizeof(u));
	imm->value = htole32(u);
	return true;
}

static bool imm_int(struct as *a, const char **p, struct neuron_imm *imm)
{
	int64_t value;

	imm->dtype = NEURON_DTYPE_INT32;
	imm->kind = skip(p, "r") ? NEURON_IMM_REG : NEURON_IMM_I32;
	if (!signed_number(a, p, INT32_MIN, UINT32_MAX, &value))
		return false;
	imm->value = htole32((uint32_t)value);
	return true;
}

static bool immediate(struct as *a, const char *p, struct neuron_imm *imm)
{
	size_t n = strcspn(p, ":");
	bool is_reg = p[0] == 'r' && isdigit((unsigned char)p[1]);
	bool is_int = is_reg || (strspn(p, "-0123456789") == n && n) || !strncmp(p, "0x", 2);

	if (strchr(p, '@'))
		return imm_vec(a, p, imm);
	if (is_int ? !imm_int(a, &p, imm) : !imm_float(a, &p, imm))
		return false;
	return (!skip(&p, ":") || dtype(a, &p, "", &imm->dtype)) && end(a, p);
}

/* ------------------------------------------------------------------------ */
/* Waits and updates							    */

static bool wait(struct as *a, const char *p, unsigned int sem, unsigned int cond)
{
	struct neuron_wait *w = &a->insn->word[0].wait[a->waits];
	uint64_t value = 0;

	if (a->waits == 2)
		return fail(a, "an instruction has at most two waits");
	a->waits++;
	if (cond != NEURON_WAIT_EVENT) {
		if (skip(&p, "r"))
			w->cond = NEURON_WAIT_REG;
		if (!number(a, &p, UINT16_MAX, &value))
			return false;
	}
	if (skip(&p, "-")) {
		if (cond == NEURON_WAIT_EQ)
			return fail(a, "== does not take what it waited for; allowed: >=");
		cond = cond == NEURON_WAIT_EVENT ? NEURON_WAIT_EVENT_CLEAR : NEURON_WAIT_GE_SUB;
	}
	w->sem = sem;
	w->cond |= cond;
	w->value = htole16(value);
	return end(a, p);
}

static bool update(struct as *a, const char *p, unsigned int sem, unsigned int op, bool event)
{
	struct neuron_update *u = &a->insn->word[0].update;
	uint64_t value = 1;

	if (a->updated)
		return fail(a, "an instruction has at most one update");
	a->updated = true;
	if (*p != '@' && !number(a, &p, event ? 1 : UINT16_MAX, &value))
		return false;
	if (event) {
		op = value ? NEURON_UPDATE_EVENT_SET : NEURON_UPDATE_EVENT_CLEAR;
		value = 0;
	}
	if (skip(&p, "@read"))
		op |= NEURON_UPDATE_AT_READ;
	else if (!skip(&p, "@complete"))
		return fail(a, "allowed: @read, @complete");
	u->sem = sem;
	u->op = op;
	u->value = htole16(value);
	return end(a, p);
}

static bool semaphore(struct as *a, const char *p)
{
	bool event = false;
	uint64_t sem;

	if (!strcmp(p, "$-")) {
		a->waits++;
		return a->waits <= 2 || fail(a, "an instruction has at most two waits");
	}
	if (skip(&p, "$E["))
		event = true;
	else if (!skip(&p, "$S["))
		return fail(a, "allowed: $S[semaphore], $E[event]");
	if (!number(a, &p, 255, &sem) || (!skip(&p, "]") && !fail(a, "] is missing")))
		return false;
	if (event)
		return skip(&p, "=") ? update(a, p, sem, 0, true) : wait(a, p, sem, NEURON_WAIT_EVENT);
	if (skip(&p, ">="))
		return wait(a, p, sem, NEURON_WAIT_GE);
	if (skip(&p, "=="))
		return wait(a, p, sem, NEURON_WAIT_EQ);
	if (skip(&p, "++"))
		return update(a, p, sem, NEURON_UPDATE_SEM_ADD, false);
	if (skip(&p, "+="))
		return update(a, p, sem, NEURON_UPDATE_SEM_ADD, false);
	if (skip(&p, "--") || skip(&p, "-="))
		return update(a, p, sem, NEURON_UPDATE_SEM_SUB, false);
	if (skip(&p, "="))
		return update(a, p, sem, NEURON_UPDATE_SEM_WRITE, false);
	return fail(a, "allowed: >=, == to wait; ++, --, +=, -=, = to update");
}

/* ------------------------------------------------------------------------ */
/* HBM									    */

static bool hbm_address(struct as *a, const char **p, struct neuron_dma_operand *d)
{
	uint64_t arg, offset, reg;
	int64_t scale;

	if (!skip(p, "@arg") || !number(a, p, UINT16_MAX, &arg) || !skip(p, "+") ||
	    !number(a, p, UINT64_MAX, &offset))
		return fail(a, "allowed: type@argN+0xOFFSET[strides][counts]");
	d->arg = htole16(arg);
	d->offset = htole64(offset);
	if (!skip(p, "+r"))
		return true;
	if (!number(a, p, 254, &reg) || !skip(p, "*") ||
	    !signed_number(a, p, INT64_MIN, INT64_MAX, &scale))
		return fail(a, "allowed: +rREGISTER*SCALE");
	d->offset_reg = reg;
	d->offset_scale = htole64((uint64_t)scale);
	return true;
}

static bool hbm(struct as *a, const char *p, struct neuron_dma_operand *d)
{
	int64_t stride[NEURON_DMA_DIMS];
	uint64_t count[NEURON_DMA_DIMS];
	unsigned int dims;

	d->space = NEURON_SPACE_HBM;
	if (!dtype(a, &p, "@", &d->dtype) || !hbm_address(a, &p, d) ||
	    !pattern(a, &p, NEURON_DMA_DIMS, stride, count, INT64_MAX, UINT32_MAX, &dims, &d->count_reg,
		     &d->count_dim))
		return false;
	d->dims = dims;
	for (unsigned int i = 0; i < dims; i++) {
		d->stride[i] = htole64((uint64_t)stride[i]);
		d->count[i] = htole32(count[i]);
	}
	return end(a, p);
}

static bool u32(struct as *a, const char *p, uint64_t max, __le32 *out)
{
	uint64_t value;

	if (!number(a, &p, max, &value) || !end(a, p))
		return false;
	*out = htole32(value);
	return true;
}

static bool u8(struct as *a, const char *p, uint8_t *out)
{
	uint64_t value;

	if (!number(a, &p, 255, &value) || !end(a, p))
		return false;
	*out = value;
	return true;
}

/* Operand number @word of a DMA instruction; @part: what follows its name. */
static bool dma_operand(struct as *a, unsigned int word, const char *part, const char *value)
{
	struct neuron_dma_operand *d = (struct neuron_dma_operand *)&a->insn->word[1 + word];
	bool own_ap = word && a->row->opcode == NEURON_OP_DMA_COMPUTE;
	struct neuron_ap *ap = own_ap ? &d->index : &a->insn->word[0].ap[word ? 1 : 0];
	uint64_t number64;

	if (!*part && strstr(value, "@arg"))
		return hbm(a, value, d);
	if (!*part) {
		d->space = NEURON_SPACE_SBUF;
		if (!access_pattern(a, value, ap))
			return false;
		d->dtype = ap->dtype;
		return true;
	}
	if (!strcmp(part, "_channels"))
		return u8(a, value, &ap->part_count);
	if (!strcmp(part, "_core")) {
		if (!number(a, &value, UINT16_MAX, &number64))
			return false;
		d->arg = htole16(number64);
		return end(a, value);
	}
	if (!strcmp(part, "_index"))
		return access_pattern(a, value, &d->index);
	if (!strcmp(part, "_index_channels"))
		return u8(a, value, &d->index.part_count);
	if (!strcmp(part, "_index_dim"))
		return u32(a, value, UINT32_MAX, &d->index_dim);
	if (strcmp(part, "_rows") || !number(a, &value, UINT64_MAX, &number64))
		return fail(a, "allowed after the operand's name: _channels, _core, _index, _index_channels, _index_dim, _rows");
	d->row_bound = htole64(number64);
	return end(a, value);
}

/* "dst", "src", "src1" ...: 0 when the key is none of them, -1 after an error, else 1. */
static int dma_key(struct as *a, const char *key, const char *value)
{
	unsigned int word = 0;
	uint64_t n = 0;

	if (skip(&key, "src")) {
		if (isdigit((unsigned char)*key) && !number(a, &key, MAX_SOURCES - 1, &n))
			return -1;
		word = 1 + n;
		if (a->row->opcode != NEURON_OP_DMA_COMPUTE && word > 1) {
			fail(a, "one source");
			return -1;
		}
		if (word > a->sources)
			a->sources = word;
	} else if (!skip(&key, "dst")) {
		return 0;
	}
	if (*key && *key != '_')
		return 0;
	return dma_operand(a, word, key, value) ? 1 : -1;
}

/* ------------------------------------------------------------------------ */
/* Keys									    */

static bool operator_value(struct as *a, unsigned int slot, const char *p)
{
	char kind = isa_text_op_kind(a->row, slot);
	int code = -1;

	if (*p == '?')
		p++;
	else if (kind == 'F')
		code = isa_text_find_act(p, strlen(p));
	else if (kind == 'A')
		code = isa_text_find_alu(p, strlen(p));
	if (code < 0) {
		if (!isdigit((unsigned char)*p))
			return fail(a, "not an %s", kind == 'F' ? "activation function" : "ALU operator");
		return u8(a, p, &a->insn->word[0].op[slot]);
	}
	a->insn->word[0].op[slot] = code;
	return true;
}

static bool shuffle_mask(struct as *a, const char *p)
{
	struct neuron_insn_ext *ext = (struct neuron_insn_ext *)&a->insn->word[1];
	uint64_t value;

	if (!skip(&p, "["))
		return fail(a, "allowed: [32 numbers]");
	for (unsigned int i = 0; i < 32; i++) {
		if ((i && !skip(&p, ",")) || !number(a, &p, 255, &value))
			return fail(a, "allowed: [32 numbers up to 255]");
		ext->mask[i] = value;
	}
	return (skip(&p, "]") || fail(a, "] is missing")) && end(a, p);
}

/* Part of aux, of a DMA instruction. */
static bool dma_aux(struct as *a, const char *p, unsigned int shift)
{
	uint64_t value;

	if (!number(a, &p, 255, &value) || !end(a, p))
		return false;
	a->insn->word[0].aux |= htole32((uint32_t)value << shift);
	return true;
}

static bool target(struct as *a, const char *p)
{
	if (isdigit((unsigned char)*p))
		return u32(a, p, UINT32_MAX, &a->insn->word[0].aux);
	if (strlen(p) >= sizeof(a->insn->label))
		return fail(a, "a label has at most %zu characters", sizeof(a->insn->label) - 1);
	strcpy(a->insn->label, p);
	return true;
}

static bool flag_bits(struct as *a, const char *p, unsigned int shift)
{
	uint64_t value;

	if (!number(a, &p, shift ? 3 : UINT16_MAX, &value) || !end(a, p))
		return false;
	a->insn->word[0].flags |= htole16(value << shift);
	return true;
}

static bool acc_flags(struct as *a, const char *p)
{
	if (!strcmp(p, "1"))
		a->insn->word[0].flags |= htole16(NEURON_FLAG_ACCUMULATE);
	else if (strcmp(p, "2"))
		return fail(a, "allowed: 1 (accumulate), 2 (overwrite)");
	return true;
}

static bool channels(struct as *a, const char *p)
{
	uint8_t n;

	if (!u8(a, p, &n))
		return false;
	a->channels = n;
	return true;
}

static bool channel_multiplier(struct as *a, const char *p)
{
	int64_t value;

	if (!signed_number(a, &p, INT32_MIN, INT32_MAX, &value) || !end(a, p))
		return false;
	a->insn->word[0].aux = htole32((uint32_t)value);
	return true;
}

/* Keys of any instruction: 0: not one of them. */
static int common_key(struct as *a, const char *key, const char *value)
{
	struct neuron_insn *w = &a->insn->word[0];
	struct neuron_insn_ext *ext = (struct neuron_insn_ext *)&a->insn->word[1];
	bool has_ext = isa_text_second(a->row->opcode) == ISA_SECOND_EXT;
	bool dma = isa_text_second(a->row->opcode) == ISA_SECOND_DMA;
	bool ok;

	if (!strcmp(key, "channels"))
		ok = channels(a, value);
	else if (!strcmp(key, "acc_cmd"))
		ok = u8(a, value, &w->acc);
	else if (!strcmp(key, "acc_flags"))
		ok = acc_flags(a, value);
	else if (!strcmp(key, "perf_mode"))
		ok = flag_bits(a, value, NEURON_FLAG_PERF_SHIFT);
	else if (!strcmp(key, "flags"))
		ok = flag_bits(a, value, 0);
	else if (!strcmp(key, "aux") || (!strcmp(key, "dims") && !strcmp(a->row->aux, "dims")))
		ok = u32(a, value, UINT32_MAX, &w->aux);
	else if (!strcmp(key, "target") && !strcmp(a->row->aux, "target"))
		ok = target(a, value);
	else if (!strcmp(key, "channel_multiplier") && !strcmp(a->row->aux, "channel_multiplier"))
		ok = channel_multiplier(a, value);
	else if (!strcmp(key, "queue") && dma)
		ok = dma_aux(a, value, 0);
	else if (!strcmp(key, "priority") && dma)
		ok = dma_aux(a, value, 8);
	else if (!strcmp(key, "dge_mode") && dma)
		ok = dma_aux(a, value, 16);
	else if (!strcmp(key, "sem_core") && dma)
		ok = dma_aux(a, value, 24);
	else if (!strcmp(key, "mask") && a->row->opcode == NEURON_OP_STREAM_SHUFFLE)
		ok = shuffle_mask(a, value);
	else if ((!strcmp(key, "aux1") || !strcmp(key, "aux2")) && has_ext)
		ok = u32(a, value, UINT32_MAX, &ext->aux[key[3] - '1']);
	else if (!strcmp(key, "ext_flags") && has_ext)
		ok = u32(a, value, UINT32_MAX, &ext->flags);
	else if (!strcmp(key, "line"))
		ok = a->insn->has_line = u32(a, value, UINT32_MAX, &w->debug_id);
	else
		return 0;
	return ok ? 1 : -1;
}

static bool ap_used(const struct isa_text_row *row, unsigned int slot)
{
	if (isa_text_is_pattern(row->opcode, slot))
		return true;
	return strlen(row->aps) > 2 * slot + 1 && (row->aps[2 * slot] != '-' || row->aps[2 * slot + 1] != '-');
}

/* An access pattern, its partitions, or its index tile. */
static int ap_key(struct as *a, const char *key, const char *value)
{
	struct neuron_insn_ext *ext = (struct neuron_insn_ext *)&a->insn->word[1];
	unsigned int slots = isa_text_second(a->row->opcode) == ISA_SECOND_EXT ? 6 : 3;

	for (unsigned int i = 0; i < slots; i++) {
		const char *rest = key;
		struct neuron_ap *ap = i < 3 ? &a->insn->word[0].ap[i] : &ext->ap[i - 3];

		if (!ap_used(a->row, i) || !skip(&rest, isa_text_key(a->row->opcode, 'a', i)))
			continue;
		if (!*rest && isa_text_is_pattern(a->row->opcode, i) && *value == '[')
			return ap_pattern(a, &value, ap) && end(a, value) ? 1 : -1;
		if (!*rest)
			return access_pattern(a, value, ap) ? 1 : -1;
		if (!strcmp(rest, "_channels")) {
			a->own |= 1u << i;
			return u8(a, value, &ap->part_count) ? 1 : -1;
		}
		if (!strcmp(rest, "_index") && i < 3)
			return access_pattern(a, value, &a->index.ap[i]) ? 1 : -1;
		if (!strcmp(rest, "_index_channels") && i < 3)
			return u8(a, value, &a->index.ap[i].part_count) ? 1 : -1;
	}
	return 0;
}

static int scalar_key(struct as *a, const char *key, const char *value)
{
	struct neuron_insn_ext *ext = (struct neuron_insn_ext *)&a->insn->word[1];

	for (unsigned int i = 0; i < a->row->imms; i++) {
		struct neuron_imm *imm = i < 2 ? &a->insn->word[0].imm[i] : &ext->imm[i - 2];

		if (!strcmp(key, isa_text_key(a->row->opcode, 'i', i)))
			return immediate(a, value, imm) ? 1 : -1;
	}
	for (unsigned int i = 0; i < 3; i++) {
		if (!strcmp(key, isa_text_key(a->row->opcode, 'o', i)))
			return operator_value(a, i, value) ? 1 : -1;
	}
	return 0;
}

static bool assign(struct as *a, const char *key, const char *value)
{
	enum isa_second second = isa_text_second(a->row->opcode);
	int done = common_key(a, key, value);

	if (!done && second == ISA_SECOND_HBM && !strcmp(key, a->row->opcode == NEURON_OP_READ ? "src" : "dst"))
		return hbm(a, value, (struct neuron_dma_operand *)&a->insn->word[1]);
	if (!done && second == ISA_SECOND_DMA)
		done = dma_key(a, key, value);
	else if (!done)
		done = ap_key(a, key, value);
	if (!done)
		done = scalar_key(a, key, value);
	if (!done)
		return fail(a, "%s has no \"%s\"", a->row->text, key);
	return done > 0;
}

/* ------------------------------------------------------------------------ */
/* The instruction							    */

static bool bare(struct as *a, const char *p)
{
	const char *text;
	uint64_t n, k;
	unsigned int bit;

	if (*p == 'r' && isdigit((unsigned char)p[1]) && !strcmp(a->row->aux, "reg"))
		return u32(a, p + 1, UINT32_MAX, &a->insn->word[0].aux);
	if (isdigit((unsigned char)*p) && strchr(p, '*')) {
		if (!number(a, &p, UINT64_MAX, &n) || !skip(&p, "*") || !number(a, &p, 255, &k))
			return fail(a, "allowed: ELEMENTS*PARTITIONS");
		a->channels = k;
		return end(a, p);
	}
	for (unsigned int i = 0; (bit = isa_text_flag(i, &text)); i++) {
		if (!strcmp(p, text)) {
			a->insn->word[0].flags |= htole16(bit);
			return true;
		}
	}
	return fail(a, "not a flag, and not key=value");
}

static bool one_token(struct as *a, char *token)
{
	char *equal;

	a->token = token;
	if (*token == '$')
		return semaphore(a, token);
	equal = strchr(token, '=');
	if (!equal)
		return bare(a, token);
	*equal = 0;
	if (!*token)
		return fail(a, "a key is missing");
	return assign(a, token, equal + 1);
}

static void no_registers(struct neuron_ap *ap)
{
	for (unsigned int i = 0; i < 3; i++) {
		ap[i].offset_reg = NEURON_REG_NONE;
		ap[i].count_reg = NEURON_REG_NONE;
	}
}

static void start(struct as *a)
{
	struct nki_asm_insn *insn = a->insn;
	enum isa_second second = isa_text_second(a->row->opcode);
	unsigned int words = second == ISA_SECOND_DMA ? NEURON_INSN_MAX_WORDS : a->row->words;

	insn->words = a->row->words;
	insn->word[0].opcode = a->row->opcode;
	no_registers(insn->word[0].ap);
	no_registers(a->index.ap);
	if (second == ISA_SECOND_EXT)
		no_registers(((struct neuron_insn_ext *)&insn->word[1])->ap);
	for (unsigned int i = 1; i < words && (second == ISA_SECOND_DMA || second == ISA_SECOND_HBM); i++) {
		struct neuron_dma_operand *d = (struct neuron_dma_operand *)&insn->word[i];

		d->offset_reg = NEURON_REG_NONE;
		d->count_reg = NEURON_REG_NONE;
		d->index.offset_reg = NEURON_REG_NONE;
		d->index.count_reg = NEURON_REG_NONE;
	}
}

static void set_channels(struct as *a)
{
	struct neuron_insn_ext *ext = (struct neuron_insn_ext *)&a->insn->word[1];
	bool has_ext = isa_text_second(a->row->opcode) == ISA_SECOND_EXT;

	for (unsigned int i = 0; i < (has_ext ? 6u : 3u); i++) {
		struct neuron_ap *ap = i < 3 ? &a->insn->word[0].ap[i] : &ext->ap[i - 3];
		bool there = ap->space != NEURON_SPACE_NONE || (isa_text_is_pattern(a->row->opcode, i) && ap->dims);

		if (there && !(a->own & 1u << i))
			ap->part_count = a->channels < 0 ? 1 : a->channels;
	}
}

static bool finish(struct as *a)
{
	struct nki_asm_insn *insn = a->insn;

	if (isa_text_second(a->row->opcode) == ISA_SECOND_DMA) {
		if (a->row->opcode == NEURON_OP_DMA_COMPUTE)
			insn->words = 2 + (a->sources ? a->sources : 1);
		else
			insn->words = a->row->words;
	} else {
		set_channels(a);
	}
	/* Operands that were not named must leave no trace. */
	for (unsigned int i = insn->words; i < NEURON_INSN_MAX_WORDS; i++)
		memset(&insn->word[i], 0, sizeof(insn->word[i]));
	if (le16toh(insn->word[0].flags) & NEURON_FLAG_INDIRECT) {
		if (insn->words == NEURON_INSN_MAX_WORDS)
			return fail(a, "too many words");
		memcpy(&insn->word[insn->words++], &a->index, sizeof(a->index));
	}
	insn->word[0].words = insn->words;
	return true;
}

int nki_asm(const char *text, struct nki_asm_insn *insn, char *error, size_t size)
{
	struct as a = { .insn = insn, .token = text, .channels = -1, .error = error, .size = size };
	char *copy = strdup(text), *state = NULL, *token;
	bool ok = true;

	memset(insn, 0, sizeof(*insn));
	if (size)
		error[0] = 0;
	if (!copy)
		return -ENOMEM;
	token = strtok_r(copy, " \t\r\n", &state);
	a.row = token ? isa_text_find(token, strlen(token)) : NULL;
	if (!a.row)
		ok = fail(&a, "not an opcode");
	else
		start(&a);
	while (ok && (token = strtok_r(NULL, " \t\r\n", &state)))
		ok = one_token(&a, token);
	ok = ok && finish(&a);
	free(copy);
	return ok ? 0 : -EINVAL;
}
