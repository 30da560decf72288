// SPDX-License-Identifier: MIT
/*
 * From memory to instructions: the program header, the argument table and the
 * streams are copied once, at job start, and checked here. An instruction is
 * decoded when its stream first reaches it, so a fault is precise.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exec_state.h"

/* Streams larger than this are refused: a program is megabytes, not gigabytes. */
#define PROGRAM_MAX_BYTES	(256ull << 20)

#define E_ALL	(ENGINE_BIT(NEURON_ENGINE_PE) | ENGINE_BIT(NEURON_ENGINE_ACT) |	\
		 ENGINE_BIT(NEURON_ENGINE_POOL) | ENGINE_BIT(NEURON_ENGINE_DVE) | \
		 ENGINE_BIT(NEURON_ENGINE_SP) | ENGINE_BIT(NEURON_ENGINE_CC))
#define E_PE	ENGINE_BIT(NEURON_ENGINE_PE)
#define E_ACT	ENGINE_BIT(NEURON_ENGINE_ACT)
#define E_POOL	ENGINE_BIT(NEURON_ENGINE_POOL)
#define E_DVE	ENGINE_BIT(NEURON_ENGINE_DVE)
#define E(name)	(E_##name)

/* Column aps: two characters by access pattern. */
#define AP_CHAR(aps, i)	((i) < sizeof(aps) ? (aps)[i] : '-')
#define AP_IS(aps, i, upper, lower)						\
	(AP_CHAR(aps, 2 * (i)) == (upper) || AP_CHAR(aps, 2 * (i)) == (lower) || \
	 AP_CHAR(aps, 2 * (i) + 1) == (upper) || AP_CHAR(aps, 2 * (i) + 1) == (lower))
#define SPACES(aps, i)								\
	((AP_IS(aps, i, 'S', 's') ? SPACE_BIT(NEURON_SPACE_SBUF) : 0) |		\
	 (AP_IS(aps, i, 'P', 'p') ? SPACE_BIT(NEURON_SPACE_PSUM) : 0))
#define WRITTEN(aps, i)	(AP_IS(aps, i, 's', 'p') ? 1 << (i) : 0)

const struct isa_row isa_rows[256] = {
#define NEURON_INSN(code, id, text, eng, nc, nwords, aps, types_, ops, nimm, aux, max, kind, summary) \
	[code] = {								\
		.name = text, .engines = eng, .min_nc = nc, .words = nwords,	\
		.space = { SPACES(aps, 0), SPACES(aps, 1), SPACES(aps, 2),	\
			   SPACES(aps, 3), SPACES(aps, 4), SPACES(aps, 5) },	\
		.written = WRITTEN(aps, 0) | WRITTEN(aps, 1) | WRITTEN(aps, 2) | \
			   WRITTEN(aps, 3) | WRITTEN(aps, 4) | WRITTEN(aps, 5),	\
		.types = types_, .imms = nimm, .limit = max,			\
		.cost = NEURON_COST_##kind,					\
	},
#include "neuron/isa.def"
};

/* --- loading ---------------------------------------------------------------------- */

static bool load_fault(struct exec *x, enum neuron_fault code, uint64_t addr,
		       uint64_t value, uint32_t index)
{
	struct neuron_fault_record *f = exec_fault_at(x, code, 0, 0, 0, NULL);

	f->addr = htole64(addr);
	f->value = htole64(value);
	f->index = htole32(index);
	return false;
}

static bool read_vm(struct exec *x, uint64_t va, void *buf, size_t len)
{
	enum neuron_fault code;
	uint64_t bad = va;

	if (va + len < va)
		return load_fault(x, NEURON_FAULT_PAGE_NOT_MAPPED, va, len, 0);
	code = chip_vm_read(x->job->vm, va, buf, len, &bad);
	return code == NEURON_FAULT_NONE || load_fault(x, code, bad, len, 0);
}

static bool header_check(struct exec *x, uint64_t va)
{
	const struct neuron_program_header *h = &x->header;
	uint64_t size = le64toh(h->size);

	if (le32toh(h->magic) != NEURON_PROGRAM_MAGIC)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, va, NEURON_PROGRAM_MAGIC, 0);
	if (le16toh(h->isa_version) != NEURON_ISA_VERSION)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, va + 4, NEURON_ISA_VERSION, 1);
	if (h->nc_version != x->job->nc_version)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, va + 6, x->job->nc_version, 2);
	if (h->cores != x->cores)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, va + 7, x->cores, 3);
	if (size < sizeof(*h) || size > PROGRAM_MAX_BYTES || va + size < va)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, va + 8, PROGRAM_MAX_BYTES, 4);
	if (le32toh(h->arg_count) != x->args)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, va + 16, x->args, 5);
	if (h->flags)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, va + 20, 0, 6);
	return true;
}

/* Bytes of a stream that are instructions, or 0 when @st is malformed or empty. */
static bool stream_check(struct exec *x, const struct neuron_program_stream *st,
			 unsigned int core, unsigned int engine)
{
	uint64_t offset = le64toh(st->offset), size = le64toh(x->header.size);
	uint64_t bytes = (uint64_t)le32toh(st->words) * NEURON_WORD_BYTES;

	if (!bytes)
		return true;
	if (engine == 0 || engine == NEURON_ENGINE_DMA || st->reserved ||
	    offset % NEURON_WORD_BYTES || offset < sizeof(x->header) ||
	    offset > size || bytes > size - offset)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, offset, size,
				  16 + core * NEURON_ENGINE_COUNT + engine);
	return true;
}

static bool args_load(struct exec *x)
{
	uint64_t va = le64toh(x->job->desc.args_va);
	uint32_t i;

	if (x->args > NEURON_MAX_ARGS)
		return load_fault(x, NEURON_FAULT_BAD_JOB, x->args, NEURON_MAX_ARGS, 0);
	if (!x->args)
		return true;
	if (!read_vm(x, va, x->arg, x->args * sizeof(x->arg[0])))
		return false;
	for (i = 0; i < x->args; i++) {
		struct neuron_arg *a = &x->arg[i];

		a->va = le64toh(a->va);
		a->size = le64toh(a->size);
		a->access = le32toh(a->access);
		if (a->va + a->size < a->va || a->size > INT64_MAX ||
		    a->access & ~NEURON_ARG_FLAGS || a->reserved)
			return load_fault(x, NEURON_FAULT_BAD_JOB, a->va, a->size, i);
	}
	return true;
}

static bool room(void **buf, size_t *have, size_t want, size_t size)
{
	if (want <= *have)
		return true;
	free(*buf);
	*have = 0;
	*buf = malloc(want * size);
	if (!*buf)
		return false;
	*have = want;
	return true;
}

/* Words of all streams, which is what buffers are sized by. */
static bool streams_check(struct exec *x, size_t *words)
{
	unsigned int c, e;

	*words = 0;
	for (c = 0; c < NEURON_MAX_CORES; c++) {
		for (e = 0; e < NEURON_ENGINE_COUNT; e++) {
			const struct neuron_program_stream *st = &x->header.stream[c][e];

			if (c >= x->cores)
				continue;
			if (!stream_check(x, st, c, e))
				return false;
			*words += le32toh(st->words);
		}
	}
	if (*words > PROGRAM_MAX_BYTES / NEURON_WORD_BYTES)
		return load_fault(x, NEURON_FAULT_BAD_PROGRAM, 0,
				  PROGRAM_MAX_BYTES / NEURON_WORD_BYTES, 7);
	return true;
}

static bool streams_copy(struct exec *x, uint64_t va)
{
	size_t at = 0;
	unsigned int c, e;

	for (c = 0; c < x->cores; c++) {
		for (e = 0; e < NEURON_ENGINE_COUNT; e++) {
			const struct neuron_program_stream *st = &x->header.stream[c][e];
			struct stream *s = &x->core[c]->stream[e];
			uint32_t n = le32toh(st->words);

			s->words = n;
			if (!n)
				continue;
			s->code = x->code + at * NEURON_WORD_BYTES;
			s->insn = x->insn + at;
			if (!read_vm(x, va + le64toh(st->offset), x->code + at * NEURON_WORD_BYTES,
				     (size_t)n * NEURON_WORD_BYTES))
				return false;
			at += n;
		}
	}
	return true;
}

bool program_load(struct exec *x)
{
	uint64_t va = le64toh(x->job->desc.program_va);
	size_t words, i;

	x->args = le32toh(x->job->desc.arg_count);
	if (va % NEURON_WORD_BYTES)
		return load_fault(x, NEURON_FAULT_BAD_JOB, va, NEURON_WORD_BYTES, 1);
	/* The part of the table that this program's cores need. */
	memset(&x->header, 0, sizeof(x->header));
	if (!read_vm(x, va, &x->header,
		     offsetof(struct neuron_program_header, stream) +
		     x->cores * sizeof(x->header.stream[0])) ||
	    !header_check(x, va) || !args_load(x) || !streams_check(x, &words))
		return false;
	if (!words)
		return true;
	if (!room((void **)&x->code, &x->code_bytes, words * NEURON_WORD_BYTES, 1) ||
	    !room((void **)&x->insn, &x->insns, words, sizeof(x->insn[0])) ||
	    !room((void **)&x->word, &x->words, words, sizeof(x->word[0])))
		return load_fault(x, NEURON_FAULT_INTERNAL, 0, 0, 0);
	for (i = 0; i < words; i++)
		x->insn[i].row = NULL;
	return streams_copy(x, va);
}

void program_release(struct exec *x)
{
	if (x->code_bytes <= KEEP_BYTES)
		return;
	free(x->code);
	free(x->insn);
	free(x->word);
	x->code = NULL;
	x->insn = NULL;
	x->word = NULL;
	x->code_bytes = x->insns = x->words = 0;
}

/* --- decoding --------------------------------------------------------------------- */

static void ap_to_host(struct neuron_ap *ap)
{
	unsigned int i;

	ap->offset = le32toh(ap->offset);
	for (i = 0; i < NEURON_AP_DIMS; i++) {
		ap->num[i] = le16toh(ap->num[i]);
		ap->step[i] = le16toh(ap->step[i]);
	}
}

static void insn_to_host(struct neuron_insn *w)
{
	unsigned int i;

	w->flags = le16toh(w->flags);
	w->debug_id = le32toh(w->debug_id);
	for (i = 0; i < 2; i++) {
		w->wait[i].value = le16toh(w->wait[i].value);
		w->imm[i].value = le32toh(w->imm[i].value);
	}
	w->update.value = le16toh(w->update.value);
	for (i = 0; i < 3; i++)
		ap_to_host(&w->ap[i]);
	w->aux = le32toh(w->aux);
}

static void dma_to_host(struct neuron_dma_operand *d)
{
	unsigned int i;

	d->arg = le16toh(d->arg);
	d->offset = le64toh(d->offset);
	d->offset_scale = le64toh(d->offset_scale);
	for (i = 0; i < NEURON_DMA_DIMS; i++) {
		d->count[i] = le32toh(d->count[i]);
		d->stride[i] = le64toh(d->stride[i]);
	}
	d->flags = le32toh(d->flags);
	ap_to_host(&d->index);
	d->index_dim = le32toh(d->index_dim);
	d->row_bound = le64toh(d->row_bound);
}

static void ext_to_host(struct neuron_insn_ext *e, unsigned int opcode)
{
	bool masked = opcode == 0x55;	/* STREAM_SHUFFLE */
	unsigned int i;

	for (i = 0; i < 3; i++)
		ap_to_host(&e->ap[i]);
	/* Its mask is bytes. */
	for (i = 0; i < 4 && !masked; i++)
		e->imm[i].value = le32toh(e->imm[i].value);
	for (i = 0; i < 2; i++)
		e->aux[i] = le32toh(e->aux[i]);
	e->flags = le32toh(e->flags);
}

/* Words that the instruction has; a DMA instruction may have more sources. */
static bool words_ok(const struct neuron_insn *w, const struct isa_row *row)
{
	unsigned int index = w->flags & NEURON_FLAG_INDIRECT ? 1 : 0;

	if (w->opcode == NEURON_OP_DMA_COMPUTE)
		return !index && w->words >= row->words && w->words < row->words + NEURON_DMA_SOURCES;
	if (row->cost == NEURON_COST_DMA)
		return !index && w->words == row->words;
	return w->words == row->words + index;
}

/* What every instruction must have right, whatever it does. */
static bool decode_check(struct stream *s, const struct insn *insn)
{
	const struct neuron_insn *w = &insn->w;
	const struct isa_row *row = insn->row;
	unsigned int i;

	if (!row->name || !(row->engines & ENGINE_BIT(s->engine)) ||
	    row->min_nc > s->x->job->nc_version || !words_ok(w, row) ||
	    w->flags & ~NEURON_FLAGS) {
		exec_fault(s->x, s, NEURON_FAULT_ILLEGAL_INSN);
		return false;
	}
	if (w->words > s->words - s->pc) {
		exec_fault(s->x, s, NEURON_FAULT_ILLEGAL_INSN)->value = htole64(s->words);
		return false;
	}
	for (i = 0; i < 2; i++) {
		const struct neuron_wait *wait = &w->wait[i];

		if ((wait->cond & NEURON_WAIT_COND_MASK) > NEURON_WAIT_EVENT_CLEAR ||
		    (wait->cond & NEURON_WAIT_REG && wait->value >= NEURON_REGS))
			return exec_bad(s, 8 + i, wait->cond, NEURON_WAIT_EVENT_CLEAR);
	}
	if ((w->update.op & NEURON_UPDATE_OP_MASK) > NEURON_UPDATE_EVENT_CLEAR)
		return exec_bad(s, 10, w->update.op, NEURON_UPDATE_EVENT_CLEAR);
	return true;
}

/* The words behind the first; decode_check() saw that the stream has them. */
static void decode_words(struct exec *x, struct insn *insn, const uint8_t *code)
{
	union insn_word *word = x->word + (insn - x->insn);
	unsigned int i, n = insn->w.words - 1u;

	if (!n)
		return;
	memcpy(word, code + NEURON_WORD_BYTES, n * sizeof(*word));
	if (insn->row->cost == NEURON_COST_DMA || insn->row->cost == NEURON_COST_HBMREG) {
		for (i = 0; i < n; i++)
			dma_to_host(&word[i].dma);
		insn->dma = &word[0].dma;
		return;
	}
	for (i = 0; i < n; i++)
		ext_to_host(&word[i].ext, insn->w.opcode);
	if (insn->w.flags & NEURON_FLAG_INDIRECT)
		insn->index = &word[n - 1].ext;
	if (insn->row->words > 1)
		insn->ext = &word[0].ext;
}

const struct insn *program_fetch(struct exec *x, struct stream *s)
{
	struct insn *insn = &s->insn[s->pc];
	const uint8_t *code = s->code + (size_t)s->pc * NEURON_WORD_BYTES;

	if (insn->row) {
		s->cur = insn;
		return insn;
	}
	memcpy(&insn->w, code, sizeof(insn->w));
	insn_to_host(&insn->w);
	insn->row = &isa_rows[insn->w.opcode];
	insn->dma = NULL;
	insn->ext = insn->index = NULL;
	s->cur = insn;
	if (!decode_check(s, insn)) {
		insn->row = NULL;
		return NULL;
	}
	decode_words(x, insn, code);
	return insn;
}
