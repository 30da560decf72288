// SPDX-License-Identifier: MIT
/*
 * The trace of a job: records in order of start, kept on the host until the job ends,
 * then written to the job's trace buffer, the header last.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exec_state.h"
#include "neuron/trace.h"

#define TRACE_MAX_RECORDS	(1u << 22)	/* whatever room the job names */

void trace_begin(struct exec *x)
{
	uint64_t size = le64toh(x->job->desc.trace_size);

	x->trace_count = 0;
	x->trace_dropped = 0;
	x->trace_max = 0;
	if (!x->job->desc.trace_va || size < sizeof(struct neuron_trace_header))
		return;
	x->trace_max = (size - sizeof(struct neuron_trace_header)) / sizeof(x->trace[0]);
	if (x->trace_max > TRACE_MAX_RECORDS)
		x->trace_max = TRACE_MAX_RECORDS;
}

static bool trace_grow(struct exec *x)
{
	uint64_t want = x->trace_room ? 2 * x->trace_room : 1024;
	struct neuron_trace_record *grown = realloc(x->trace, want * sizeof(*grown));

	if (!grown)
		return false;
	x->trace = grown;
	x->trace_room = want;
	return true;
}

uint64_t trace_add(struct exec *x, const struct neuron_trace_record *rec)
{
	if (!trace_on(x)) {
		if (x->job->desc.trace_va)
			x->trace_dropped++;
		return UINT64_MAX;
	}
	if (x->trace_count == x->trace_max ||
	    (x->trace_count == x->trace_room && !trace_grow(x))) {
		x->trace_dropped++;
		return UINT64_MAX;
	}
	x->trace[x->trace_count] = *rec;
	return x->trace_count++;
}

uint32_t trace_next(const struct exec *x)
{
	return x->trace_count < x->trace_max ? x->trace_count : NEURON_TRACE_NO_RECORD;
}

static uint32_t cut(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : v;
}

/* --- waits -------------------------------------------------------------------------- */

static void wait_put(struct trace_waits *t, const struct cause *cause, uint64_t ticks)
{
	struct neuron_trace_waits *w = &t->w[t->n];

	if (t->n == NEURON_TRACE_WAITS) {
		w--;
		w->ticks = htole32(cut(le32toh(w->ticks) + ticks));
		return;
	}
	t->n++;
	*w = (struct neuron_trace_waits){
		.ticks = htole32(cut(ticks)), .record = htole32(cause->record),
		.index = htole16(cause->index), .kind = cause->kind, .engine = cause->engine,
	};
}

void trace_wait(struct stream *s, const struct cause *cause, uint64_t until)
{
	struct trace_waits *t = &s->waits;

	if (until <= t->from || cause->kind == NEURON_TRACE_WAIT_NONE)
		return;
	wait_put(t, cause, until - t->from);
	t->from = until;
}

/* --- operands ----------------------------------------------------------------------- */

static struct neuron_trace_operand opnd_record(const struct opnd *op)
{
	return (struct neuron_trace_operand){
		.addr = htole64(op->lo), .n = htole32(op->n), .space = op->space,
		.part = op->part, .parts = op->parts, .dtype = op->dtype,
	};
}

static struct neuron_trace_operand side_record(const struct dma_side *side)
{
	if (!side->is_hbm)
		return opnd_record(&side->sb);
	return (struct neuron_trace_operand){
		.addr = htole64(side->hbm.va + (uint64_t)side->hbm.offset),
		.n = htole32(cut(side->elements)), .space = NEURON_SPACE_HBM,
		.part = side->hbm.arg & 0xff, .parts = side->hbm.arg >> 8, .dtype = side->dtype,
	};
}

static void insn_operands(const struct stream *s, struct neuron_trace_record *rec)
{
	unsigned int i;

	switch (s->cur->row->cost) {
	case NEURON_COST_SEQ:
	case NEURON_COST_DRAIN:
		return;
	case NEURON_COST_HBMREG:
		rec->operand[0] = side_record(&s->dma_dst);
		return;
	case NEURON_COST_DMA:
		rec->operand[0] = side_record(&s->dma_dst);
		for (i = 1; i < NEURON_TRACE_OPERANDS && i < s->cur->w.words - 1u; i++)
			rec->operand[i] = side_record(&s->dma_src[i - 1]);
		return;
	}
	for (i = 0; i < NEURON_TRACE_OPERANDS; i++)
		if (s->op[i].space != NEURON_SPACE_NONE)
			rec->operand[i] = opnd_record(&s->op[i]);
}

/* --- records ------------------------------------------------------------------------ */

void trace_insn(struct stream *s, uint64_t busy, uint64_t end, uint64_t bytes)
{
	const struct neuron_insn *w = &s->cur->w;
	struct neuron_trace_record rec;
	struct exec *x = s->x;
	uint64_t at;

	if (!trace_on(x)) {
		x->trace_dropped += !!x->job->desc.trace_va;
		return;
	}
	/* What nobody accounted for: room in a DMA queue. */
	trace_wait(s, &s->cause, x->now);
	rec = (struct neuron_trace_record){
		.issue = htole64(s->issue), .start = htole64(x->now), .end = htole64(end),
		.busy = htole32(cut(busy)), .debug_id = htole32(w->debug_id), .pc = htole32(s->pc),
		.opcode = w->opcode, .core = s->core, .engine = s->engine, .queue = 0xff,
		.wait = s->cause.kind, .wait_engine = s->cause.engine,
		.wait_index = htole16(s->cause.index),
		.wait_debug_id = htole32(s->cause.debug_id),
		.bytes = htole32(cut(bytes)), .macs = htole32(cut(s->macs)),
	};
	memcpy(rec.waits, s->waits.w, s->waits.n * sizeof(rec.waits[0]));
	insn_operands(s, &rec);
	at = trace_add(x, &rec);
	s->last_record = at > UINT32_MAX ? NEURON_TRACE_NO_RECORD : at;
}

void trace_xfer(struct exec *x, struct exec_core *c, struct dma_queue *q, struct xfer *t)
{
	const struct neuron_insn *w = &t->insn->w;
	struct trace_waits waits = { .n = 0 };
	struct neuron_trace_record rec = {
		.issue = htole64(t->issue), .start = htole64(x->now), .end = htole64(x->now),
		.debug_id = htole32(w->debug_id), .pc = htole32(t->pc), .opcode = w->opcode,
		.core = c->index, .engine = NEURON_ENGINE_DMA, .queue = t->queue,
		.wait = NEURON_TRACE_WAIT_ENGINE,
		.wait_engine = q->free_at > t->arrive ? NEURON_ENGINE_DMA : t->engine,
		.bytes = htole32(cut(t->cost.bytes)),
	};
	struct cause trigger = {
		.kind = NEURON_TRACE_WAIT_TRIGGER, .engine = t->engine, .record = t->issuer,
	};
	struct cause queue = {
		.kind = NEURON_TRACE_WAIT_ENGINE, .engine = NEURON_ENGINE_DMA,
		.record = q->last_record,
	};
	unsigned int i;

	wait_put(&waits, &trigger, t->arrive - t->issue);
	if (x->now > t->arrive)
		wait_put(&waits, &queue, x->now - t->arrive);
	memcpy(rec.waits, waits.w, waits.n * sizeof(rec.waits[0]));
	rec.operand[0] = side_record(&t->dst);
	for (i = 1; i < NEURON_TRACE_OPERANDS && i <= t->sources; i++)
		rec.operand[i] = side_record(xfer_source(t, i - 1));
	t->trace = trace_add(x, &rec);
}

void trace_xfer_end(struct exec *x, const struct xfer *t)
{
	struct neuron_trace_record *rec = &x->trace[t->trace];
	uint64_t busy = x->now - t->start, alone = (t->cost.work + 255) >> 8;
	unsigned int i = 0;

	rec->end = htole64(x->now);
	rec->busy = htole32(cut(busy));
	while (i < NEURON_TRACE_WAITS && rec->waits[i].kind)
		i++;
	/* Rounding up to whole ticks is no wait. */
	if (busy > alone + 1 && i < NEURON_TRACE_WAITS)
		rec->waits[i] = (struct neuron_trace_waits){
			.ticks = htole32(cut(busy - alone)), .record = htole32(NEURON_TRACE_NO_RECORD),
			.kind = NEURON_TRACE_WAIT_DMA, .engine = NEURON_ENGINE_DMA,
		};
}

void trace_end(struct exec *x)
{
	struct chip_job *job = x->job;
	uint64_t va = le64toh(job->desc.trace_va), bad = 0;
	struct neuron_trace_header h = {
		.magic = htole32(NEURON_TRACE_MAGIC), .version = htole16(NEURON_TRACE_VERSION),
		.record_size = htole16(sizeof(x->trace[0])), .nc_version = htole32(job->nc_version),
		.cores = htole32(x->cores), .records = htole64(x->trace_count),
		.dropped = htole64(x->trace_dropped), .tick_hz = htole64(NEURON_TICK_HZ),
		.end_ticks = htole64(x->end), .seqno = job->desc.seqno,
	};
	enum neuron_fault code = NEURON_FAULT_NONE;

	if (!va || le64toh(job->desc.trace_size) < sizeof(h))
		return;
	if (x->trace_count)
		code = chip_vm_write(job->vm, va + sizeof(h), x->trace,
				     x->trace_count * sizeof(x->trace[0]), &bad);
	if (code == NEURON_FAULT_NONE)
		code = chip_vm_write(job->vm, va, &h, sizeof(h), &bad);
	if (code != NEURON_FAULT_NONE) {
		/* The job's own fault, if there is one, says more. */
		exec_fault_at(x, code, 0, 0, 0, NULL)->addr = htole64(bad);
		return;
	}
	job->trace_records = x->trace_count;
}

void trace_release(struct exec *x)
{
	if (x->trace_room * sizeof(x->trace[0]) <= KEEP_BYTES)
		return;
	free(x->trace);
	x->trace = NULL;
	x->trace_room = 0;
}
