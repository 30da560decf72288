// SPDX-License-Identifier: MIT
/*
 * Semaphores and events: waits, and updates that arrive later than they were sent.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "exec_state.h"
#include "neuron/trace.h"

void sync_reset(struct exec *x, struct exec_core *c)
{
	unsigned int i;

	c->blocked = 0;
	c->stalled = 0;
	c->updates = 0;
	for (i = 0; i < NEURON_SEMAPHORES; i++)
		atomic_store_explicit(&c->core->sem[i], 0, memory_order_relaxed);
	for (i = 0; i < NEURON_EVENTS; i++)
		atomic_store_explicit(&c->core->event[i], 0, memory_order_relaxed);
}

static struct sem *sem_get(struct exec *x, struct exec_core *c, unsigned int n)
{
	struct sem *sem = &c->sem[n];

	if (sem->job != x->serial) {
		sem->job = x->serial;
		sem->added = 0;
		sem->taken = 0;
		sem->count = 0;
	}
	return sem;
}

uint32_t sync_value(struct exec *x, struct exec_core *c, unsigned int n)
{
	struct sem *sem = sem_get(x, c, n);

	return sem->added - sem->taken;
}

static void sem_show(struct exec_core *c, unsigned int n, const struct sem *sem)
{
	atomic_store_explicit(&c->core->sem[n], sem->added - sem->taken, memory_order_relaxed);
}

/* --- waits ------------------------------------------------------------------------ */

static uint32_t wait_value(const struct stream *s, const struct neuron_wait *w)
{
	return w->cond & NEURON_WAIT_REG ? s->reg[w->value] : w->value;
}

/* Does the wait hold, when @less has just been taken from its semaphore? */
static bool wait_holds(struct stream *s, const struct neuron_wait *w, uint32_t less)
{
	struct exec_core *c = stream_core(s);
	unsigned int cond = w->cond & NEURON_WAIT_COND_MASK;
	uint32_t want = wait_value(s, w), value;

	if (cond == NEURON_WAIT_NONE)
		return true;
	if (cond == NEURON_WAIT_EVENT || cond == NEURON_WAIT_EVENT_CLEAR)
		return atomic_load_explicit(&c->core->event[w->sem], memory_order_relaxed);
	value = sync_value(s->x, c, w->sem);
	if (value < less)
		return false;
	value -= less;
	return cond == NEURON_WAIT_EQ ? value == want : value >= want;
}

/*
 * Which update made the wait true: the first whose total is enough. Older than the
 * history: the oldest known, which is early enough to cost nothing in practice.
 */
static struct cause sem_cause(const struct sem *sem, const struct neuron_wait *w, uint64_t want)
{
	struct cause cause = { .index = w->sem };
	uint32_t have = sem->count < SEM_HISTORY ? sem->count : SEM_HISTORY;
	uint32_t i;

	if ((w->cond & NEURON_WAIT_COND_MASK) == NEURON_WAIT_EQ)
		want = UINT64_MAX;	/* the last update decided */
	for (i = 0; i < have; i++) {
		const struct sem_update *u = &sem->hist[(sem->count - 1 - i) % SEM_HISTORY];

		if (i && u->added < want)
			break;
		cause = u->cause;
	}
	return cause;
}

static void wait_take(struct stream *s, const struct neuron_wait *w, struct cause *cause)
{
	struct exec_core *c = stream_core(s);
	unsigned int cond = w->cond & NEURON_WAIT_COND_MASK;
	struct sem *sem = NULL;
	struct cause mine;

	if (cond == NEURON_WAIT_NONE)
		return;
	if (cond == NEURON_WAIT_EVENT || cond == NEURON_WAIT_EVENT_CLEAR) {
		mine = c->event_cause[w->sem];
		if (cond == NEURON_WAIT_EVENT_CLEAR)
			atomic_store_explicit(&c->core->event[w->sem], 0, memory_order_relaxed);
	} else {
		sem = sem_get(s->x, c, w->sem);
		mine = sem_cause(sem, w, wait_value(s, w) + sem->taken);
	}
	if (s->x->strict)
		check_wait(s, w, wait_value(s, w));
	if (cond == NEURON_WAIT_GE_SUB) {
		sem->taken += wait_value(s, w);
		sem_show(c, w->sem, sem);
	}
	if (mine.kind != NEURON_TRACE_WAIT_NONE && mine.time >= cause->time)
		*cause = mine;
}

/* Both waits hold now. The second sees what the first takes from its semaphore. */
static bool waits_hold(struct stream *s)
{
	const struct neuron_wait *w = s->cur->w.wait;
	uint32_t less = 0;

	if ((w[0].cond & NEURON_WAIT_COND_MASK) == NEURON_WAIT_GE_SUB && w[0].sem == w[1].sem)
		less = wait_value(s, &w[0]);
	return wait_holds(s, &w[0], 0) && wait_holds(s, &w[1], less);
}

bool sync_wait_holds(struct stream *s, unsigned int i)
{
	return wait_holds(s, &s->cur->w.wait[i], 0);
}

/* False: faulted, the value is not known in a timing-only job. */
static bool wait_known(struct stream *s, const struct neuron_wait *w)
{
	return !(w->cond & NEURON_WAIT_REG) || seq_reg_known(s, w->value);
}

bool sync_try(struct stream *s, uint64_t *when)
{
	const struct neuron_wait *w = s->cur->w.wait;
	struct cause cause = { 0 }, first = { 0 };

	*when = 0;
	if (w[0].cond || w[1].cond) {
		if (!wait_known(s, &w[0]) || !wait_known(s, &w[1]))
			return true;
		if (!waits_hold(s))
			return false;
		wait_take(s, &w[0], &first);
		wait_take(s, &w[1], &cause);
		/* Two waits: the one that ended first, then the other, which decides. */
		if (first.kind && (!cause.kind || cause.time < first.time)) {
			struct cause t = cause;

			cause = first;
			first = t;
		}
		if (trace_on(s->x) && first.kind)
			trace_wait(s, &first, first.time);
		if (cause.kind)
			*when = cause.time;
	}
	s->cause = cause;
	return true;
}

/* --- updates ---------------------------------------------------------------------- */

static bool update_before(const struct update *a, const struct update *b)
{
	return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

void sync_send(struct exec *x, unsigned int core, const struct update *update)
{
	struct exec_core *c = x->core[core];
	unsigned int i, up;

	if (c->updates == c->updates_max) {
		unsigned int want = c->updates_max ? 2 * c->updates_max : 64;
		struct update *grown = realloc(c->update, want * sizeof(*grown));

		if (!grown) {
			exec_fault_at(x, NEURON_FAULT_INTERNAL, core, update->engine, update->pc, NULL);
			return;
		}
		c->update = grown;
		c->updates_max = want;
	}
	i = c->updates++;
	c->update[i] = *update;
	c->update[i].seq = x->seq++;
	while (i && update_before(&c->update[i], &c->update[up = (i - 1) / 2])) {
		struct update t = c->update[i];

		c->update[i] = c->update[up];
		c->update[up] = t;
		i = up;
	}
	*exec_due(x, core, SLOT_UPDATE) = c->update[0].time;
	exec_end_at(x, update->time);
}

static struct update update_pop(struct exec *x, struct exec_core *c)
{
	struct update top = c->update[0];
	unsigned int i = 0, kid;

	c->update[0] = c->update[--c->updates];
	while ((kid = 2 * i + 1) < c->updates) {
		struct update t;

		if (kid + 1 < c->updates && update_before(&c->update[kid + 1], &c->update[kid]))
			kid++;
		if (!update_before(&c->update[kid], &c->update[i]))
			break;
		t = c->update[i];
		c->update[i] = c->update[kid];
		c->update[kid] = t;
		i = kid;
	}
	*exec_due(x, c->index, SLOT_UPDATE) = c->updates ? c->update[0].time : TICKS_NEVER;
	return top;
}

static void update_fault(struct exec *x, struct exec_core *c, const struct update *u,
			 enum neuron_fault code, uint64_t value)
{
	struct neuron_fault_record *f;

	f = exec_fault_at(x, code, c->index, u->engine, u->pc, NULL);
	f->opcode = u->opcode;
	f->debug_id = htole32(u->debug_id);
	f->index = htole32(u->u.sem);
	f->value = htole64(value);
}

static void sem_update(struct exec *x, struct exec_core *c, const struct update *u)
{
	struct sem *sem = sem_get(x, c, u->u.sem);
	uint32_t value = sem->added - sem->taken, v = u->u.value;
	struct sem_update *hist;

	switch (u->u.op & NEURON_UPDATE_OP_MASK) {
	case NEURON_UPDATE_SEM_ADD:
		if (v > UINT32_MAX - value) {
			update_fault(x, c, u, NEURON_FAULT_SEM_OVERFLOW, value);
			return;
		}
		sem->added += v;
		break;
	case NEURON_UPDATE_SEM_SUB:
		if (v > value) {
			update_fault(x, c, u, NEURON_FAULT_SEM_UNDERFLOW, value);
			return;
		}
		sem->taken += v;
		break;
	default:
		/* Written: the past no longer counts. */
		sem->added += v;
		sem->taken += value;
		sem->count = 0;
		break;
	}
	hist = &sem->hist[sem->count++ % SEM_HISTORY];
	hist->added = sem->added;
	hist->cause = (struct cause){
		.time = u->time, .debug_id = u->debug_id, .index = u->u.sem,
		.record = u->record, .engine = u->from, .kind = NEURON_TRACE_WAIT_SEMAPHORE,
	};
	sem_show(c, u->u.sem, sem);
}

static void event_update(struct exec *x, struct exec_core *c, const struct update *u)
{
	bool set = (u->u.op & NEURON_UPDATE_OP_MASK) == NEURON_UPDATE_EVENT_SET;

	if (atomic_load_explicit(&c->core->event[u->u.sem], memory_order_relaxed) == set) {
		update_fault(x, c, u, NEURON_FAULT_EVENT_DOUBLE, set);
		return;
	}
	atomic_store_explicit(&c->core->event[u->u.sem], set, memory_order_relaxed);
	c->event_cause[u->u.sem] = (struct cause){
		.time = u->time, .debug_id = u->debug_id, .index = u->u.sem,
		.record = u->record, .engine = u->from, .kind = NEURON_TRACE_WAIT_EVENT,
	};
}

/* Streams that wait look again, in the order of their engines. */
static void wake(struct exec *x, struct exec_core *c)
{
	unsigned int e;

	for (e = 1; e < STREAMS; e++) {
		struct stream *s = &c->stream[e];

		if ((c->blocked & ENGINE_BIT(e)) && waits_hold(s)) {
			/* It looks again itself, when updates of this time are done. */
			c->blocked &= ~ENGINE_BIT(e);
			s->phase = PHASE_ISSUE;
			*exec_due(x, c->index, e) = x->now;
		}
	}
}

void sync_arrive(struct exec *x, struct exec_core *c)
{
	struct update u = update_pop(x, c);

	if ((u.u.op & NEURON_UPDATE_OP_MASK) >= NEURON_UPDATE_EVENT_SET)
		event_update(x, c, &u);
	else
		sem_update(x, c, &u);
	if (x->strict && !x->faulted)
		check_arrive(x, c, &u);
	if (c->blocked && !x->faulted)
		wake(x, c);
}

void sync_send_from_stream(struct stream *s, unsigned int core, const struct neuron_update *update,
			   uint64_t ticks)
{
	const struct neuron_insn *w = &s->cur->w;
	struct exec *x = s->x;
	bool at_read = update->op & NEURON_UPDATE_AT_READ;
	struct update u = {
		.time = ticks, .pc = s->pc, .debug_id = w->debug_id, .u = *update,
		.engine = s->engine, .from = s->engine, .opcode = w->opcode,
		.record = trace_next(x),
	};

	/* In the stream's order, and after what its earlier instructions did. */
	if (u.time < s->complete)
		u.time = s->complete;
	if (u.time < s->last_update)
		u.time = s->last_update;
	s->last_update = u.time;
	if (x->strict)
		u.msg = check_message(s, core, update, at_read);
	sync_send(x, core, &u);
}

void sync_update_from_stream(struct stream *s, uint64_t read, uint64_t complete)
{
	const struct neuron_update *u = &s->cur->w.update;

	if (u->op & NEURON_UPDATE_OP_MASK)
		sync_send_from_stream(s, s->core, u, u->op & NEURON_UPDATE_AT_READ ? read : complete);
}
