// SPDX-License-Identifier: MIT
/*
 * Programs made from bytes: instructions with mostly plausible fields, some of them
 * overwritten with anything. Whatever the program is, a job ends, and with a code
 * that exists; nothing outside its memory is touched (sanitizers watch).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_vm.h"
#include "fuzz.h"

#define MAX_STEPS	3000	/* polls until an endless program is ended */
#define MAX_RERUNS	60
#define ARG_BYTES	65536

static uint32_t take(struct fuzz_input *in, uint32_t below)
{
	uint32_t v = 0;
	unsigned int i;

	for (i = 0; i < (below > 256 ? 4u : 1u); i++)
		v = v << 8 | (in->p < in->end ? *in->p++ : 0);
	return below ? v % below : v;
}

static const struct row {
	uint8_t opcode, engines, words;
} rows[] = {
#define E_ALL	0xff
#define E_PE	(1 << NEURON_ENGINE_PE)
#define E_ACT	(1 << NEURON_ENGINE_ACT)
#define E_POOL	(1 << NEURON_ENGINE_POOL)
#define E_DVE	(1 << NEURON_ENGINE_DVE)
#define E(x)	(E_##x)
#define NEURON_INSN(code, name, text, eng, nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	{ code, eng, words },
#include "neuron/isa.def"
};

static const uint8_t dtypes[] = {
#define NEURON_DTYPE(code, name, text, bytes) code,
#include "neuron/isa.def"
};

static struct neuron_ap make_ap(struct fuzz_input *in)
{
	static const uint8_t parts[] = { 1, 2, 16, 32, 64, 128 };
	struct neuron_ap ap = ap_row(1 + take(in, 2), dtypes[take(in, sizeof(dtypes))],
				     32 * take(in, 4), parts[take(in, 6)],
				     take(in, 8) ? 64 * take(in, 32) : take(in, 0), 1 + take(in, 64));
	unsigned int d;

	ap.dims = 1 + take(in, 4) * take(in, 2);
	for (d = 1; d < ap.dims; d++) {
		ap.num[d] = htole16(1 + take(in, 5));
		ap.step[d] = htole16(take(in, 200) - 40);
	}
	if (!take(in, 8))
		ap.step[0] = htole16(take(in, 40) - 10);
	if (!take(in, 10))
		ap.offset_reg = take(in, 66);
	if (!take(in, 10)) {
		ap.count_reg = take(in, 66);
		ap.count_dim = take(in, 5);
	}
	return ap;
}

static struct neuron_imm make_imm(struct fuzz_input *in)
{
	struct neuron_imm imm = { .kind = take(in, 6) };

	imm.dtype = dtypes[take(in, sizeof(dtypes))];
	imm.space = 1 + take(in, 2);
	imm.part = 32 * take(in, 4);
	imm.value = htole32(imm.kind == NEURON_IMM_REG ? take(in, 66) : take(in, 4) ? take(in, 2000) : take(in, 0));
	return imm;
}

static struct neuron_dma_operand make_dma(struct fuzz_input *in, unsigned int args)
{
	struct neuron_dma_operand d;
	unsigned int i;

	if (take(in, 2)) {
		d = dma_sbuf();
		/* Sometimes the other core's; a source of a sum has its pattern here. */
		if (!take(in, 4))
			d.arg = htole16(take(in, 4));
		if (take(in, 2))
			d.index = make_ap(in);
		return d;
	}
	d = dma_hbm(take(in, args + 1), dtypes[take(in, sizeof(dtypes))], take(in, 2000),
		    1 + take(in, 64), 1 + take(in, 64), take(in, 512));
	d.dims = 1 + take(in, 5);
	for (i = 2; i < d.dims; i++) {
		d.count[i] = htole32(1 + take(in, 4));
		d.stride[i] = htole64((int64_t)take(in, 4096) - 1000);
	}
	if (!take(in, 5)) {
		d.index = make_ap(in);
		d.index.space = 1;
		d.index_dim = htole32(d.dims - 1);
		d.count[d.dims - 1] = htole32(d.index.part_count);
	}
	if (!take(in, 6)) {
		d.offset_reg = take(in, 66);
		d.offset_scale = htole64((int64_t)take(in, 0));
	}
	return d;
}

/* A copy of one shape, so that not every elementwise instruction is refused. */
static void align_shapes(struct fuzz_input *in, struct neuron_insn *w)
{
	unsigned int i;

	for (i = 1; i < 3; i++) {
		uint8_t dtype = w->ap[i].dtype, space = w->ap[i].space;
		uint32_t offset = w->ap[i].offset;

		w->ap[i] = w->ap[0];
		w->ap[i].offset = offset;
		w->ap[i].space = space;
		if (take(in, 3))
			w->ap[i].dtype = dtype;
	}
}

static void make_sync(struct fuzz_input *in, struct neuron_insn *w)
{
	if (!take(in, 4))
		w->wait[0] = (struct neuron_wait){ take(in, 6), take(in, 6), htole16(take(in, 3)) };
	if (take(in, 2))
		w->update = (struct neuron_update){ take(in, 6), take(in, 6), htole16(1 + take(in, 2)) };
	if (!take(in, 8))
		w->update.op |= NEURON_UPDATE_AT_READ;
}

/* Operands that the row does not have must be absent. */
static void trim(struct neuron_insn *w)
{
	static const struct {
		char dst, src0, src1;
		uint8_t imms;
	} has[256] = {
#define NEURON_INSN(code, name, text, eng, nc, words, aps, types, ops, nimm, aux, limit, cost, summary) \
		[code] = { aps[0], aps[2], aps[4], nimm },
#include "neuron/isa.def"
	};

	if (has[w->opcode].dst == '-')
		w->ap[0] = ap_none();
	if (has[w->opcode].src0 == '-')
		w->ap[1] = ap_none();
	if (has[w->opcode].src1 == '-')
		w->ap[2].space = 0;
	if (has[w->opcode].imms < 2)
		memset(&w->imm[1], 0, sizeof(w->imm[1]));
	if (has[w->opcode].imms < 1)
		memset(&w->imm[0], 0, sizeof(w->imm[0]));
}

/* Operands of a transfer: dst, then sources; a row of one word of HBM has one. */
static void add_dma(struct fuzz_input *in, struct prog *p, unsigned int core, unsigned int engine,
		    struct neuron_insn *w)
{
	struct neuron_dma_operand d[1 + NEURON_DMA_SOURCES];
	unsigned int n = w->opcode == NEURON_OP_DMA_COMPUTE ? 2 + take(in, 4) * take(in, 5) :
			 w->opcode == NEURON_OP_READ || w->opcode == NEURON_OP_WRITE ? 1 : 2, i;

	for (i = 0; i < n; i++)
		d[i] = make_dma(in, p->args);
	if (n == 1 && take(in, 4)) {
		d[0].dims = 1;
		d[0].count[0] = htole32(1);
	}
	if (n > 1 && d[0].space == NEURON_SPACE_HBM)
		w->ap[0] = ap_none();
	if (n == 2 && d[1].space == NEURON_SPACE_HBM)
		w->ap[1] = ap_none();
	/* Sums and sources of one shape are not all refused. */
	for (i = 2; i < n && take(in, 4); i++)
		d[i] = d[1];
	if (take(in, 2))
		w->aux |= htole32(take(in, 4) << NEURON_DMA_DGE_SHIFT |
				  take(in, 4) << NEURON_DMA_CORE_SHIFT);
	if (w->opcode == NEURON_OP_DMA_TRANSPOSE && take(in, 8))
		w->op[0] = take(in, 3);
	if (w->opcode != NEURON_OP_DMA_TRANSPOSE && take(in, 2))
		w->op[0] = NEURON_ALU_ADD;
	w->words = 1 + n;
	prog_words(p, core, engine, w, d, n);
}

static bool has_dma_words(unsigned int opcode)
{
	return opcode == NEURON_OP_READ || opcode == NEURON_OP_WRITE || opcode >= NEURON_OP_DMA_COPY;
}

static void add_one(struct fuzz_input *in, struct prog *p, unsigned int core)
{
	const struct row *row = &rows[take(in, sizeof(rows) / sizeof(rows[0]))];
	struct neuron_insn w = insn_new(row->opcode);
	unsigned int i, engine = 1 + take(in, 7);
	uint8_t *bytes = (uint8_t *)&w;

	for (i = 0; i < 7 && !(row->engines >> engine & 1); i++)
		engine = engine % 7 + 1;
	if (engine == NEURON_ENGINE_DMA)
		engine = NEURON_ENGINE_SP;
	for (i = 0; i < 3; i++) {
		w.op[i] = take(in, 8) ? take(in, 0x26) : take(in, 256);
		w.ap[i] = make_ap(in);
	}
	w.imm[0] = make_imm(in);
	w.imm[1] = make_imm(in);
	w.acc = take(in, 6);
	w.aux = htole32(take(in, 20));
	if (!take(in, 3))
		w.flags = htole16(take(in, NEURON_FLAGS + 1));
	if (take(in, 4))
		align_shapes(in, &w);
	make_sync(in, &w);
	trim(&w);
	for (i = take(in, 16) ? 0 : 1 + take(in, 4); i; i--)
		bytes[take(in, sizeof(w))] = take(in, 256);
	if (has_dma_words(row->opcode)) {
		add_dma(in, p, core, engine, &w);
	} else {
		prog_add(p, core, engine, &w);
	}
}

/* The instruction that faulted gives way, so that what comes after it is reached. */
static void drop_faulting(struct prog *p)
{
	const struct neuron_fault_record *f = &p->job.fault;
	struct neuron_insn nop = insn_new(NEURON_OP_NOP), *w;
	unsigned int i, n;

	if (f->core >= p->cores || f->engine >= NEURON_ENGINE_COUNT || !p->stream[f->core][f->engine])
		return;
	n = p->stream[f->core][f->engine]->n;
	w = p->stream[f->core][f->engine]->word;
	i = le32toh(f->pc);
	if (i >= n)
		return;
	for (n = i + (w[i].words && w[i].words <= n - i ? w[i].words : 1); i < n; i++)
		w[i] = nop;
}

static unsigned int run_limited(struct prog *p)
{
	unsigned int code;

	p->vm->polls = 0;
	atomic_store(&p->abort, false);
	atomic_store(&p->poll, true);
	code = prog_run(p);
	if (code >= NEURON_FAULT_COUNT || code == NEURON_FAULT_INTERNAL) {
		fprintf(stderr, "fuzz_program: fault code %u\n", code);
		abort();
	}
	return code;
}

static unsigned int run_one(const uint8_t *data, size_t size)
{
	static struct prog *progs[3];
	struct fuzz_input in = { data, data + size };
	unsigned int nc = take(&in, 3), n, i, code;
	struct prog *p = progs[nc];

	if (!p)
		p = progs[nc] = prog_new(nc + 2, 2);
	prog_reset(p);
	prog_arg(p, ARG_BYTES, NEURON_ARG_READ | NEURON_ARG_WRITE);
	prog_arg(p, ARG_BYTES, NEURON_ARG_READ);
	prog_arg(p, 100, NEURON_ARG_READ | NEURON_ARG_WRITE);
	p->flags = take(&in, NEURON_JOB_FLAGS + 1);
	if (p->flags & NEURON_JOB_STRICT)
		p->flags &= ~NEURON_JOB_TIMING_ONLY;
	p->seed = take(&in, 256);
	p->vm->direct = take(&in, 4);
	p->vm->contiguous = take(&in, 2) ? 4096 : 64;
	p->vm->hole = VM_BASE + (4 << 20) + take(&in, 0x40000);
	p->vm->hole_size = take(&in, 8) ? 0 : 64;
	n = 1 + take(&in, 40);
	for (i = 0; i < n; i++)
		add_one(&in, p, take(&in, 2));
	if (take(&in, 2)) {
		p->trace_va = VM_BASE + (32 << 20);
		p->trace_size = 64 + take(&in, 4096);
	}
	p->vm->poll_limit = MAX_STEPS;
	code = run_limited(p);
	for (i = 0; i < MAX_RERUNS && code != NEURON_FAULT_NONE && code != NEURON_FAULT_ABORTED; i++) {
		drop_faulting(p);
		code = run_limited(p);
	}
	return code;
}

static unsigned long long counts[NEURON_FAULT_COUNT];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	counts[run_one(data, size)]++;
	return 0;
}

/* How far the programs came: most should not end in the first check. */
void fuzz_report(void)
{
	static const char *const names[] = {
#define NEURON_FAULT(code, name, status, text) #name,
#include "neuron/fault.def"
	};
	unsigned int i;

	for (i = 0; i < NEURON_FAULT_COUNT; i++)
		if (counts[i])
			printf("%8llu %s\n", counts[i], names[i]);
}
