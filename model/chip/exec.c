// SPDX-License-Identifier: MIT
/*
 * The executor: takes events in order of modelled time, moves streams along, XX exec_state.h for the model.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "exec_state.h"
#include "neuron/trace.h"

#define POLL_STEPS	16	/* retired instructions are published this often */

/* --- faults ----------------------------------------------------------------------- */

static void end_streams(struct exec *x)
{
	unsigned int i;

	for (i = 0; i < NEURON_MAX_CORES * SLOTS; i++)
		x->due[i] = TICKS_NEVER;
}

struct neuron_fault_record *exec_fault_at(struct exec *x, enum neuron_fault code,
					  unsigned int core, unsigned int engine,
					  uint32_t pc, const struct insn *insn)
{
	static _Thread_local struct neuron_fault_record spare;
	struct neuron_fault_record *f = &x->job->fault;

	if (x->faulted)
		return &spare;
	x->faulted = true;
	end_streams(x);
	memset(f, 0, sizeof(*f));
	f->code = htole16(code);
	f->core = core;
	f->engine = engine;
	f->pc = htole32(pc);
	f->ticks = htole64(x->now);
	if (insn) {
		f->opcode = insn->w.opcode;
		f->debug_id = htole32(insn->w.debug_id);
	}
	exec_end_at(x, x->now);
	return f;
}

struct neuron_fault_record *exec_fault(struct exec *x, const struct stream *s,
				       enum neuron_fault code)
{
	return exec_fault_at(x, code, s->core, s->engine, s->pc, s->cur);
}

bool exec_bad(struct stream *s, unsigned int index, uint64_t value, uint64_t limit)
{
	struct neuron_fault_record *f = exec_fault(s->x, s, NEURON_FAULT_BAD_OPERAND);

	f->index = htole32(index);
	f->addr = htole64(value);
	f->value = htole64(limit);
	return false;
}

uint64_t exec_latency(struct exec *x, uint64_t ticks)
{
	if (!x->jitter || !ticks)
		return ticks;
	/* Half to one and a half times. */
	return ticks / 2 + num_random(&x->prng_jitter) % (ticks + 1);
}

void exec_end_at(struct exec *x, uint64_t ticks)
{
	if (ticks > x->end)
		x->end = ticks;
}

/* --- streams ------------------------------------------------------------------------ */

static void set_due(struct stream *s, uint64_t ticks)
{
	*exec_due(s->x, s->core, s->engine) = ticks;
}

static uint64_t cycles_ticks(const struct stream *s, uint64_t cycles)
{
	return cycles * s->x->timing->tick[s->engine];
}

static void retire(struct stream *s)
{
	s->retired++;
	s->x->ops_since_poll++;
}

/* The next instruction, reached by the sequencer at @ticks. */
static void go_on(struct stream *s, uint32_t pc, uint64_t ticks)
{
	retire(s);
	s->pc = pc;
	s->issue = ticks;
	s->cause = (struct cause){ 0 };
	s->waits.n = 0;
	s->waits.from = ticks;
	if (pc >= s->words) {
		s->phase = PHASE_IDLE;
		exec_end_at(s->x, ticks);
		set_due(s, TICKS_NEVER);
		return;
	}
	s->phase = PHASE_ISSUE;
	set_due(s, ticks);
}

static uint64_t operand_bytes(const struct stream *s)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (s->op[i].space != NEURON_SPACE_NONE)
			bytes += (uint64_t)s->op[i].n * s->op[i].bytes * s->op[i].parts;
	return bytes;
}

/* Moves the start to @ticks for a reason, when that is later. */
static uint64_t later(struct stream *s, uint64_t start, uint64_t ticks,
		      enum neuron_trace_wait kind, unsigned int engine)
{
	if (ticks <= start)
		return start;
	s->cause = (struct cause){
		.time = ticks, .kind = kind, .engine = engine,
		.record = stream_core(s)->stream[engine].last_record,
	};
	if (trace_on(s->x))
		trace_wait(s, &s->cause, ticks);
	return ticks;
}

/*
 * An instruction that reads what one of the last few of the same engine wrote
 * starts when those writes are visible. (PE only writes PSUM and only reads SBUF.)
 */
static uint64_t dependence(const struct stream *s)
{
	uint64_t ticks = 0;
	unsigned int i, r;

	for (r = 0; r < RECENT; r++) {
		const struct recent *w = &s->recent[r];

		if (w->visible <= s->x->now)
			continue;
		for (i = 1; i < 3; i++) {
			const struct opnd *op = &s->op[i];

			if (op->space == w->space && op->lo < w->hi && w->lo < op->hi &&
			    op->part < w->part + w->parts && w->part < op->part + op->parts &&
			    w->visible > ticks)
				ticks = w->visible;
		}
	}
	return ticks;
}

static void remember_write(struct stream *s, uint64_t visible)
{
	struct recent *w = &s->recent[s->recent_next++ % RECENT];
	const struct opnd *op = &s->op[0];

	*w = (struct recent){
		.visible = visible, .lo = op->lo, .hi = op->hi, .space = op->space,
		.part = op->part, .parts = op->parts,
	};
}

static bool prepare(struct stream *s)
{
	switch (s->cur->row->cost) {
	case NEURON_COST_SEQ:
	case NEURON_COST_DRAIN:
		return seq_prepare(s);
	case NEURON_COST_HBMREG:
		return hbmreg_prepare(s);
	default:
		return insn_prepare(s);
	}
}

/* When the waits are over: finds out when the instruction starts. */
static void make_ready(struct stream *s, uint64_t waited)
{
	const struct timing *t = s->x->timing;
	const struct isa_row *row = s->cur->row;
	uint64_t start = s->issue;

	if (row->cost == NEURON_COST_DMA) {
		/* The trigger latency covers the way from the semaphore. */
		start = waited > start ? waited : start;
		if (trace_on(s->x))
			trace_wait(s, &s->cause, start);
		if (!dma_prepare(s))
			return;
	} else {
		if (waited) {
			waited += exec_latency(s->x, t->sem_to_start[s->engine]);
			start = waited > start ? waited : start;
			if (trace_on(s->x))
				trace_wait(s, &s->cause, start);
		}
		if (!prepare(s))
			return;
	}
	if (start == s->issue)
		s->cause = (struct cause){ 0 };
	s->cycles = timing_cycles(s);
	if (row->cost == NEURON_COST_LDWEIGHTS) {
		start = later(s, start, s->weights_free, NEURON_TRACE_WAIT_ENGINE, s->engine);
	} else if (row->cost == NEURON_COST_MATMUL) {
		/* Tiles of the array work side by side. */
		start = later(s, start, pe_tile_free(s), NEURON_TRACE_WAIT_ENGINE, s->engine);
		start = later(s, start, s->weights_done, NEURON_TRACE_WAIT_ENGINE, s->engine);
	} else if (row->cost == NEURON_COST_REGMEM || row->cost == NEURON_COST_DRAIN ||
		   row->cost == NEURON_COST_DEBUG) {
		start = later(s, start, s->complete, NEURON_TRACE_WAIT_ENGINE, s->engine);
	} else if (row->cost == NEURON_COST_HBMREG) {
		start = later(s, start, s->complete, NEURON_TRACE_WAIT_ENGINE, s->engine);
		/* The request is on its way. */
		start = later(s, start, start + exec_latency(s->x, t->hbm_way),
			      NEURON_TRACE_WAIT_ENGINE, s->engine);
	} else if (row->cost == NEURON_COST_DMA) {
		/* POOL writes the descriptors itself. */
		if (dma_is_swdge(s))
			start = later(s, start, s->engine_free, NEURON_TRACE_WAIT_ENGINE, s->engine);
	} else if (row->cost != NEURON_COST_SEQ) {
		start = later(s, start, s->engine_free, NEURON_TRACE_WAIT_ENGINE, s->engine);
		start = later(s, start, dependence(s), NEURON_TRACE_WAIT_ENGINE, s->engine);
	}
	s->phase = PHASE_READY;
	set_due(s, start > s->x->now ? start : s->x->now);
}

/* The stream looks at its instruction: blocks, or gets ready. */
static void stream_issue(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	uint64_t waited;

	if (!program_fetch(s->x, s))
		return;
	if (!sync_try(s, &waited)) {
		s->phase = PHASE_BLOCKED;
		c->blocked |= ENGINE_BIT(s->engine);
		set_due(s, TICKS_NEVER);
		return;
	}
	if (!s->x->faulted)
		make_ready(s, waited);
}

/* --- exclusion between engines -------------------------------------------------------- */

static uint64_t bank_conflict(const struct stream *s, const struct opnd *op, unsigned int other)
{
	struct exec_core *c = stream_core((struct stream *)s);
	unsigned int b, last = (op->hi - 1) / NEURON_PSUM_BANK_BYTES;
	uint64_t until = 0;

	/* Trn1: DVE and ACT never use PSUM together; later: not the same bank. */
	if (s->x->job->nc_version == 2)
		b = 0, last = NEURON_PSUM_BANKS - 1;
	else
		b = op->lo / NEURON_PSUM_BANK_BYTES;
	for (; b <= last; b++)
		if (c->busy[other].psum_bank[b] > until)
			until = c->busy[other].psum_bank[b];
	return until;
}

/*
 * DVE holds the SBUF bus that it shares with POOL: on Trn1 always, later in its
 * fast modes. True: the current instruction uses that bus.
 */
static bool uses_bus(const struct stream *s)
{
	bool sbuf = false;
	unsigned int i;

	for (i = 0; i < 3; i++)
		sbuf |= s->op[i].space == NEURON_SPACE_SBUF;
	if (!sbuf)
		return false;
	if (s->engine == NEURON_ENGINE_POOL || s->x->job->nc_version == 2)
		return true;
	switch (s->cur->row->cost) {
	case NEURON_COST_COPY:
	case NEURON_COST_TENSOR_SCALAR:
		return s->op[0].bytes <= 2 && s->op[1].bytes <= 2;
	case NEURON_COST_TENSOR_TENSOR:
		return s->op[0].bytes == 2 && s->op[1].bytes == 2 && s->op[2].bytes == 2;
	default:
		return false;
	}
}

/* Ticks until which another engine keeps the current instruction out, 0: none. */
static uint64_t excluded(struct stream *s, unsigned int *by)
{
	struct exec_core *c = stream_core(s);
	unsigned int i, other;
	uint64_t until = 0, t;

	if (s->engine == NEURON_ENGINE_DVE || s->engine == NEURON_ENGINE_POOL) {
		other = s->engine == NEURON_ENGINE_DVE ? NEURON_ENGINE_POOL : NEURON_ENGINE_DVE;
		if (uses_bus(s) && c->busy[other].sbuf_bus > s->x->now) {
			until = c->busy[other].sbuf_bus;
			*by = other;
		}
	}
	if (s->engine != NEURON_ENGINE_DVE && s->engine != NEURON_ENGINE_ACT)
		return until;
	other = s->engine == NEURON_ENGINE_DVE ? NEURON_ENGINE_ACT : NEURON_ENGINE_DVE;
	for (i = 0; i < 3; i++) {
		if (s->op[i].space != NEURON_SPACE_PSUM || !s->op[i].n)
			continue;
		t = bank_conflict(s, &s->op[i], other);
		if (t > s->x->now && t > until) {
			until = t;
			*by = other;
		}
	}
	return until;
}

static void occupy(struct stream *s, uint64_t until)
{
	struct exec_core *c = stream_core(s);
	unsigned int i, b;

	if (s->engine == NEURON_ENGINE_PE)
		return;
	if (uses_bus(s))
		c->busy[s->engine].sbuf_bus = until;
	for (i = 0; i < 3; i++) {
		const struct opnd *op = &s->op[i];

		if (op->space != NEURON_SPACE_PSUM || !op->n)
			continue;
		for (b = op->lo / NEURON_PSUM_BANK_BYTES;
		     b <= (op->hi - 1) / NEURON_PSUM_BANK_BYTES; b++)
			c->busy[s->engine].psum_bank[b] = until;
	}
}

/* --- starting ------------------------------------------------------------------------- */

static void start_seq(struct stream *s)
{
	uint64_t now = s->x->now, end = now + cycles_ticks(s, s->cycles);
	uint32_t next;

	/* Branches in a timing-only job, and what is sent, may fault. */
	next = seq_run(s, end);
	if (s->x->faulted)
		return;
	sync_update_from_stream(s, end, end);
	trace_insn(s, end - now, end, 0);
	go_on(s, next, end);
}

static void start_hbmreg(struct stream *s)
{
	uint64_t now = s->x->now, end = now + cycles_ticks(s, s->cycles);

	if (s->cur->w.opcode == NEURON_OP_READ)
		end += exec_latency(s->x, s->x->timing->hbm_way);
	if ((s->x->strict && !check_hbmreg(s)) || !hbmreg_run(s))
		return;
	sync_update_from_stream(s, end, end);
	s->complete = end;
	exec_end_at(s->x, end);
	trace_insn(s, end - now, end, 4);
	go_on(s, s->pc + s->cur->w.words, end);
}

static void start_regmem(struct stream *s)
{
	uint64_t now = s->x->now, end = now + cycles_ticks(s, s->cycles);

	if (s->x->strict && !check_insn(s))
		return;
	if (!s->x->timing_only || s->cur->w.opcode == NEURON_OP_TENSOR_LOAD)
		insn_run(s);
	if (s->x->faulted)
		return;
	sync_update_from_stream(s, end, end);
	s->complete = end;
	exec_end_at(s->x, end);
	trace_insn(s, end - now, end, operand_bytes(s));
	go_on(s, s->pc + s->cur->w.words, end);
}

static void start_compute(struct stream *s)
{
	const struct timing *t = s->x->timing;
	uint64_t now = s->x->now;
	uint64_t busy = timing_busy(s, cycles_ticks(s, s->cycles));
	uint64_t read = now + busy;
	uint64_t visible = read + exec_latency(s->x, t->drain[s->engine]);
	struct chip_job_counters *count = &s->x->job->counters[s->core];

	if (s->x->strict && !check_insn(s))
		return;
	s->macs = 0;
	s->x->stochastic = stream_core(s)->stochastic;
	/* The tensor engine's time depends on what it holds. */
	if (!s->x->timing_only || s->engine == NEURON_ENGINE_PE)
		insn_run(s);
	if (s->x->faulted)
		return;
	occupy(s, read);
	sync_update_from_stream(s, read, visible);
	if (visible > s->complete)
		s->complete = visible;
	exec_end_at(s->x, visible);
	if (s->cur->row->cost == NEURON_COST_LDWEIGHTS) {
		/* One deep: again when a MATMUL has taken these weights. */
		s->weights_done = read;
		s->weights_free = read;
	} else {
		uint64_t from = s->engine_free > now ? s->engine_free : now;

		if (s->cur->row->cost == NEURON_COST_MATMUL)
			pe_tile_busy(s, read);
		/* Time in which another tile works too counts once. */
		if (read > from)
			count->engine_ticks[s->engine] += read - from;
		if (read > s->engine_free)
			s->engine_free = read;
		remember_write(s, visible);
	}
	count->pe_macs += s->macs;
	trace_insn(s, busy, visible, operand_bytes(s));
	go_on(s, s->pc + s->cur->w.words, now + cycles_ticks(s, t->dispatch_cycles));
}

static void start_dma(struct stream *s)
{
	uint64_t now = s->x->now, end = now + dma_issue_ticks(s);

	if (dma_full(s)) {
		s->cause = (struct cause){ .kind = NEURON_TRACE_WAIT_DMA, .engine = NEURON_ENGINE_DMA };
		stream_core(s)->stalled |= ENGINE_BIT(s->engine);
		set_due(s, TICKS_NEVER);
		return;
	}
	dma_issue(s, dma_is_swdge(s) ? end : now);
	if (dma_is_swdge(s)) {
		s->engine_free = end;
		s->x->job->counters[s->core].engine_ticks[s->engine] += end - now;
	}
	trace_insn(s, end - now, end, 0);
	if (!s->x->faulted)
		go_on(s, s->pc + s->cur->w.words, end);
}

static void stream_event(struct stream *s)
{
	unsigned int by = 0;
	uint64_t until;

	s->macs = 0;
	if (s->phase == PHASE_ISSUE)
		stream_issue(s);
	if (s->phase != PHASE_READY || *exec_due(s->x, s->core, s->engine) > s->x->now ||
	    s->x->faulted)
		return;
	switch (s->cur->row->cost) {
	case NEURON_COST_SEQ:
	case NEURON_COST_DRAIN:
		start_seq(s);
		return;
	case NEURON_COST_HBMREG:
		start_hbmreg(s);
		return;
	case NEURON_COST_DMA:
		start_dma(s);
		return;
	case NEURON_COST_REGMEM:
	case NEURON_COST_DEBUG:
		start_regmem(s);
		return;
	}
	until = excluded(s, &by);
	if (until) {
		set_due(s, later(s, s->x->now, until, NEURON_TRACE_WAIT_BANK, by));
		return;
	}
	start_compute(s);
}

/* --- job ------------------------------------------------------------------------------ */

static void publish(struct exec *x)
{
	if (x->job->retired)
		atomic_fetch_add_explicit(x->job->retired, x->ops_since_poll, memory_order_relaxed);
	x->ops_since_poll = 0;
}

bool exec_poll(struct exec *x)
{
	struct chip_job *job = x->job;

	if (x->ops_since_poll >= POLL_STEPS)
		publish(x);
	if (job->abort && atomic_load_explicit(job->abort, memory_order_relaxed)) {
		exec_fault_at(x, NEURON_FAULT_ABORTED, 0, 0, 0, NULL);
		return false;
	}
	if (job->poll && atomic_load_explicit(job->poll, memory_order_relaxed))
		chip_job_poll(job);
	return true;
}

/* Streams that wait, 8 * core + engine. */
static uint64_t waiting(const struct exec *x)
{
	uint64_t mask = 0;
	unsigned int c, e;

	for (c = 0; c < x->cores; c++)
		for (e = 1; e < STREAMS; e++)
			if (x->core[c]->stream[e].phase == PHASE_BLOCKED)
				mask |= 1ull << (8 * c + e);
	return mask;
}

static void deadlock(struct exec *x)
{
	unsigned int c, e;

	for (c = 0; c < x->cores; c++) {
		for (e = 1; e < STREAMS; e++) {
			struct stream *s = &x->core[c]->stream[e];
			const struct neuron_wait *w;
			struct neuron_fault_record *f;
			struct sem *sem;

			if (s->phase != PHASE_BLOCKED)
				continue;
			x->now = x->end;
			f = exec_fault(x, s, NEURON_FAULT_DEADLOCK);
			f->waiting = htole64(waiting(x));
			w = &s->cur->w.wait[0];
			if (!w->cond || sync_wait_holds(s, 0))
				w = &s->cur->w.wait[1];
			sem = &x->core[c]->sem[w->sem];
			f->index = htole32(w->sem);
			f->value = htole64(w->cond & NEURON_WAIT_REG ? s->reg[w->value] : w->value);
			f->addr = htole64(sync_value(x, x->core[c], w->sem));
			if (sem->count)
				f->other_engine = sem->hist[(sem->count - 1) % SEM_HISTORY].cause.engine;
			return;
		}
	}
}

static void run_events(struct exec *x)
{
	unsigned int n = x->cores * SLOTS;

	while (!x->faulted && exec_poll(x)) {
		uint64_t first = TICKS_NEVER;
		unsigned int i, slot = 0;
		struct exec_core *c;

		for (i = 0; i < n; i++) {
			if (x->due[i] < first) {
				first = x->due[i];
				slot = i;
			}
		}
		if (first == TICKS_NEVER) {
			deadlock(x);
			return;
		}
		x->now = first;
		c = x->core[slot / SLOTS];
		slot %= SLOTS;
		if (slot == SLOT_UPDATE)
			sync_arrive(x, c);
		else if (slot == NEURON_ENGINE_DMA)
			dma_event(x, c);
		else
			stream_event(&c->stream[slot]);
	}
}

static void stream_reset(struct exec *x, struct exec_core *c, unsigned int e)
{
	struct stream *s = &c->stream[e];

	/* Not the operands: they are written before they are read. */
	s->x = x;
	s->core = c->index;
	s->engine = e;
	s->phase = s->words ? PHASE_ISSUE : PHASE_IDLE;
	s->pc = 0;
	s->cur = NULL;
	s->issue = s->engine_free = s->complete = s->last_update = 0;
	s->weights_free = s->weights_done = 0;
	s->cause = (struct cause){ 0 };
	s->waits = (struct trace_waits){ 0 };
	s->last_record = NEURON_TRACE_NO_RECORD;
	s->retired = 0;
	s->reg_unknown = 0;
	memset(s->recent, 0, sizeof(s->recent));
	if (s->words) {
		memset(s->reg, 0, sizeof(s->reg));
		memset(s->op, 0, sizeof(s->op));
		memset(s->imm, 0, sizeof(s->imm));
		set_due(s, 0);
	}
}

static void core_reset(struct exec *x, struct exec_core *c)
{
	unsigned int e;

	sync_reset(x, c);
	dma_reset(x, c);
	c->dma_busy = 0;
	c->stochastic = le32toh(x->job->desc.flags) & NEURON_JOB_STOCHASTIC_ROUNDING;
	memset(c->acc, 0, sizeof(c->acc));
	memset(c->acc_defined, 0, sizeof(c->acc_defined));
	memset(c->dve_acc_defined, 0, sizeof(c->dve_acc_defined));
	memset(c->busy, 0, sizeof(c->busy));
	memset(&c->throttle, 0, sizeof(c->throttle));
	pe_reset(c);
	for (e = 0; e < STREAMS; e++)
		stream_reset(x, c, e);
}

static struct exec *exec_get(struct chip_job *job)
{
	struct exec *x = job->core[0]->exec;
	unsigned int i;

	if (!x) {
		x = calloc(1, sizeof(*x));
		if (!x)
			return NULL;
		job->core[0]->exec = x;
	}
	for (i = 0; i < job->core_count; i++) {
		if (!x->core[i])
			x->core[i] = calloc(1, sizeof(*x->core[i]));
		if (!x->core[i])
			return NULL;
		x->core[i]->index = i;
		x->core[i]->core = job->core[i];
	}
	for (i = 0; i < 3 && !x->row[i]; i++) {
		x->row[i] = aligned_alloc(64, SCRATCH_ELEMENTS * sizeof(float));
		if (!x->row[i])
			return NULL;
	}
	return x;
}

void exec_free(struct exec *x)
{
	unsigned int i;

	if (!x)
		return;
	for (i = 0; i < NEURON_MAX_CORES; i++) {
		if (!x->core[i])
			continue;
		dma_reset(x, x->core[i]);
		free(x->core[i]->update);
		free(x->core[i]->pe);
		free(x->core[i]);
	}
	while (x->free_xfer) {
		struct xfer *t = x->free_xfer;

		x->free_xfer = t->next;
		free(t);
	}
	for (i = 0; i < 3; i++)
		free(x->row[i]);
	free(x->code);
	free(x->insn);
	free(x->word);
	free(x->trace);
	free(x->copy);
	check_job_free(x->check);
	free(x);
}

static void job_begin(struct exec *x, struct chip_job *job)
{
	uint32_t flags = le32toh(job->desc.flags);

	x->job = job;
	x->timing = timing_get(job->nc_version);
	x->num = num_ops();
	x->strict = flags & NEURON_JOB_STRICT;
	x->jitter = flags & NEURON_JOB_JITTER;
	x->timing_only = flags & NEURON_JOB_TIMING_ONLY;
	x->throttle = flags & NEURON_JOB_THROTTLE;
	x->faulted = false;
	x->serial++;
	x->now = x->end = x->seq = 0;
	x->cores = job->core_count;
	x->ops_since_poll = 0;
	x->prng_jitter = le64toh(job->desc.seed);
	x->prng_sr = ~le64toh(job->desc.seed);
	end_streams(x);
	memset(job->counters, 0, sizeof(job->counters));
	memset(&job->fault, 0, sizeof(job->fault));
	job->modelled_ticks = 0;
	job->trace_records = 0;
}

static void job_end(struct exec *x)
{
	struct chip_job *job = x->job;
	unsigned int c, e;
	uint64_t insns;

	for (c = 0; c < x->cores; c++) {
		insns = 0;
		for (e = 0; e < STREAMS; e++)
			insns += x->core[c]->stream[e].retired;
		/* Registers show these two while the job is still being ended. */
		__atomic_store_n(&job->counters[c].insns, insns, __ATOMIC_RELAXED);
		__atomic_store_n(&job->counters[c].engine_ticks[NEURON_ENGINE_DMA],
				 x->core[c]->dma_busy, __ATOMIC_RELAXED);
		dma_reset(x, x->core[c]);
	}
	job->modelled_ticks = x->end;
	publish(x);
	trace_end(x);
	program_release(x);
	trace_release(x);
}

/* What the ring entry may ask of this model. */
static bool job_check(struct exec *x)
{
	struct chip_job *job = x->job;
	uint32_t flags = le32toh(job->desc.flags);

	if (flags & ~NEURON_JOB_FLAGS || !x->timing) {
		exec_fault_at(x, NEURON_FAULT_BAD_JOB, 0, 0, 0, NULL)->value =
			htole64(NEURON_JOB_FLAGS);
		return false;
	}
	if (x->timing_only && x->strict) {
		exec_fault_at(x, NEURON_FAULT_BAD_JOB, 0, 0, 0, NULL)->value =
			htole64(NEURON_JOB_FLAGS & ~NEURON_JOB_STRICT);
		return false;
	}
	return true;
}

void chip_job_run(struct chip_job *job)
{
	struct exec *x;
	unsigned int c, e;

	if (!job->core_count || job->core_count > NEURON_MAX_CORES || !(x = exec_get(job))) {
		memset(&job->fault, 0, sizeof(job->fault));
		job->fault.code = htole16(job->core_count ? NEURON_FAULT_INTERNAL : NEURON_FAULT_BAD_JOB);
		job->modelled_ticks = 0;
		job->trace_records = 0;
		return;
	}
	job_begin(x, job);
	for (c = 0; c < x->cores; c++)
		for (e = 0; e < STREAMS; e++)
			x->core[c]->stream[e].words = 0;
	trace_begin(x);
	if (job_check(x) && program_load(x)) {
		for (c = 0; c < x->cores; c++)
			core_reset(x, x->core[c]);
		if (!x->strict || check_begin(x))
			run_events(x);
	}
	job_end(x);
}
