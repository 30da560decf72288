// SPDX-License-Identifier: MIT
/*
 * Strict mode: what threads (streams and DMA queues) know of each other, and the
 * checks at each instruction.
 *
 * Knowledge travels with updates of semaphores. A wait teaches its stream what an
 * update carried only when the wait could not have been satisfied without it: when
 * all that the other threads have sent, and what the sender had sent before, is less
 * than the wait needs. So an order that only held by luck counts as none.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

static struct check *check_of(struct exec_core *c)
{
	return c->core->check;
}

void vclock_join(struct vclock *a, const struct vclock *b)
{
	unsigned int t;

	for (t = 0; t < CHECK_THREADS; t++) {
		a->r[t] = a->r[t] > b->r[t] ? a->r[t] : b->r[t];
		a->w[t] = a->w[t] > b->w[t] ? a->w[t] : b->w[t];
	}
}

void check_free(struct check *k)
{
	unsigned int s, t;

	if (!k)
		return;
	for (s = 0; s < NEURON_SEMAPHORES; s++) {
		for (t = 0; k->sem[s] && t < CHECK_THREADS; t++)
			free(k->sem[s]->by[t]);
		free(k->sem[s]);
	}
	free(k->msg);
	free(k->msg_free);
	mem_free(k);
	race_free(k);
	hbm_free(k->hbm);
	free(k);
}

static bool begin_core(struct exec_core *c)
{
	struct check *k = check_of(c);
	unsigned int s, t;

	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return false;
		c->core->check = k;
	}
	memset(k->n, 0, sizeof(k->n));
	memset(k->clock, 0, sizeof(k->clock));
	memset(k->event, 0, sizeof(k->event));
	for (s = 0; s < NEURON_SEMAPHORES; s++) {
		if (!k->sem[s])
			continue;
		memset(&k->sem[s]->taken, 0, sizeof(k->sem[s]->taken));
		for (t = 0; t < CHECK_THREADS; t++)
			if (k->sem[s]->by[t])
				k->sem[s]->by[t]->total = k->sem[s]->by[t]->count = 0;
	}
	k->msgs = k->frees = 0;
	race_begin(k);
	return mem_begin(c, k);
}

bool check_begin(struct exec *x)
{
	unsigned int c;

	for (c = 0; c < x->cores; c++) {
		if (!begin_core(x->core[c])) {
			exec_fault_at(x, NEURON_FAULT_INTERNAL, c, 0, 0, NULL);
			return false;
		}
	}
	if (!hbm_begin(x, check_of(x->core[0]))) {
		exec_fault_at(x, NEURON_FAULT_INTERNAL, 0, 0, 0, NULL);
		return false;
	}
	return true;
}

/* --- messages ------------------------------------------------------------------------- */

/* 0: out of memory; nothing is known from such a message. */
static uint32_t msg_new(struct check *k, const struct vclock *clock)
{
	uint32_t m;

	if (k->frees) {
		m = k->msg_free[--k->frees];
	} else {
		if (k->msgs == k->msgs_max) {
			uint32_t want = k->msgs_max ? 2 * k->msgs_max : 64;
			struct vclock *msg = realloc(k->msg, want * sizeof(*msg));
			uint32_t *fr = realloc(k->msg_free, want * sizeof(*fr));

			k->msg = msg ? msg : k->msg;
			k->msg_free = fr ? fr : k->msg_free;
			if (!msg || !fr)
				return 0;
			k->msgs_max = want;
		}
		m = k->msgs++;
	}
	k->msg[m] = *clock;
	return m + 1;
}

static void msg_put(struct check *k, uint32_t msg)
{
	if (msg)
		k->msg_free[k->frees++] = msg - 1;
}

static struct sent *sent_get(struct check *k, unsigned int sem, unsigned int thread)
{
	struct sem_check *s = k->sem[sem];

	if (!s)
		s = k->sem[sem] = calloc(1, sizeof(*s));
	if (s && !s->by[thread])
		s->by[thread] = calloc(1, sizeof(*s->by[thread]));
	return s ? s->by[thread] : NULL;
}

/* The message of an update, noted with the semaphore when it adds to it. */
static uint32_t send(struct check *k, const struct neuron_update *u, unsigned int thread,
		     const struct vclock *clock)
{
	unsigned int op = u->op & NEURON_UPDATE_OP_MASK;
	struct sent *sent;

	if (op == NEURON_UPDATE_SEM_ADD || op == NEURON_UPDATE_SEM_WRITE) {
		sent = sent_get(k, u->sem, thread);
		if (sent) {
			sent->last[sent->count % SENT_KEPT].before = sent->total;
			sent->last[sent->count % SENT_KEPT].clock = *clock;
			sent->count++;
			sent->total += u->value;
		}
	}
	return msg_new(k, clock);
}

/* Clocks are of one core: a message to another carries nothing. */
uint32_t check_message(struct stream *s, unsigned int core, const struct neuron_update *u,
		       bool at_read)
{
	struct check *k = check_of(stream_core(s));
	struct vclock clock = k->clock[s->engine];
	bool seq = s->cur->row->cost == NEURON_COST_SEQ || s->cur->row->cost == NEURON_COST_DRAIN;

	/* Earlier instructions have completed; this one has, or has read its inputs. */
	clock.r[s->engine] = k->n[s->engine];
	clock.w[s->engine] = k->n[s->engine] - (at_read && !seq && k->n[s->engine] ? 1 : 0);
	return core == s->core ? send(k, u, s->engine, &clock) : 0;
}

void check_arrive(struct exec *x, struct exec_core *c, const struct update *u)
{
	struct check *k = check_of(c);
	unsigned int op = u->u.op & NEURON_UPDATE_OP_MASK;
	const struct vclock *clock;

	if (!u->msg)
		return;
	clock = &k->msg[u->msg - 1];
	if (op == NEURON_UPDATE_EVENT_SET)
		k->event[u->u.sem] = *clock;
	else if (op == NEURON_UPDATE_SEM_SUB && sent_get(k, u->u.sem, 0))
		vclock_join(&k->sem[u->u.sem]->taken, clock);
	msg_put(k, u->msg);
}

/* What @by's updates teach when a total of @need is waited for and others sent @others. */
static void learn(struct vclock *clock, const struct sent *by, uint64_t others, uint64_t need)
{
	uint32_t kept = by->count < SENT_KEPT ? by->count : SENT_KEPT, i;

	for (i = 0; i < kept; i++) {
		uint32_t at = (by->count - 1 - i) % SENT_KEPT;

		if (others + by->last[at].before < need) {
			/* Needed, and so are all before it, which it knows. */
			vclock_join(clock, &by->last[at].clock);
			return;
		}
	}
}

void check_wait(struct stream *s, const struct neuron_wait *w, uint32_t value)
{
	struct exec_core *c = stream_core(s);
	struct check *k = check_of(c);
	unsigned int cond = w->cond & NEURON_WAIT_COND_MASK, t;
	struct vclock *clock = &k->clock[s->engine];
	const struct sem_check *sem = k->sem[w->sem];
	uint64_t need, all = 0;

	if (cond == NEURON_WAIT_EVENT || cond == NEURON_WAIT_EVENT_CLEAR) {
		vclock_join(clock, &k->event[w->sem]);
		return;
	}
	if (!sem)
		return;
	need = c->sem[w->sem].job == s->x->serial ? c->sem[w->sem].taken + value : value;
	for (t = 0; t < CHECK_THREADS; t++)
		all += sem->by[t] ? sem->by[t]->total : 0;
	for (t = 0; t < CHECK_THREADS; t++)
		if (sem->by[t])
			learn(clock, sem->by[t], all - sem->by[t]->total, need);
	if (cond == NEURON_WAIT_EQ)
		vclock_join(clock, &sem->taken);
}

/* --- accesses --------------------------------------------------------------------------- */

/* Who makes an access, for the fault and for order. */
struct who {
	struct exec *x;
	struct exec_core *c;
	unsigned int thread;
	unsigned int engine;	/* of the stream */
	uint32_t pc;
	const struct insn *insn;
};

static struct neuron_fault_record *who_fault(const struct who *who, enum neuron_fault code,
					     unsigned int index, unsigned int space,
					     unsigned int part, uint32_t byte, uint32_t size)
{
	struct neuron_fault_record *f;

	f = exec_fault_at(who->x, code, who->c->index, who->engine, who->pc, who->insn);
	f->index = htole32(index);
	f->space = space;
	f->partition = part;
	f->addr = htole64(byte);
	f->size = htole64(size);
	return f;
}

static bool touch(const struct who *who, const struct opnd *op, unsigned int index, bool write)
{
	struct check *k = check_of(who->c);
	struct access a = {
		.write = write, .thread = who->thread, .clock = k->n[who->thread],
		.engine = who->thread >= STREAMS ? NEURON_ENGINE_DMA : who->thread,
		.debug_id = who->insn->w.debug_id,
	};
	const struct access *other;
	uint32_t byte = 0, size = 0;
	bool nomem = false;

	region_of(who->c, op, &a.at);
	other = race_access(k, &k->clock[who->thread], &a, &nomem);
	if (nomem) {
		who_fault(who, NEURON_FAULT_INTERNAL, index, op->space, 0, 0, 0);
		return false;
	}
	if (other) {
		unsigned int part = a.at.part > other->at.part ? a.at.part : other->at.part;
		struct neuron_fault_record *f;

		region_overlap(k, &a.at, &other->at, &byte, &size);
		f = who_fault(who, NEURON_FAULT_DATA_RACE, index, op->space, part, byte, size);
		f->other_debug_id = htole32(other->debug_id);
		f->other_engine = other->engine;
		return false;
	}
	return true;
}

typedef bool access_fn(const struct who *who, const struct opnd *op, unsigned int index);

static bool reads(const struct who *who, const struct opnd *op, unsigned int index);

/* An indirect operand: its index tile is read, then run for run. */
static bool pieces(const struct who *who, const struct opnd *op, unsigned int index, access_fn *fn)
{
	struct opnd_walk walk = { 0 };
	struct opnd piece;

	if (!reads(who, op->index, 24 + index))
		return false;
	while (indirect_piece(op, &walk, &piece))
		if (!fn(who, &piece, index))
			return false;
	return true;
}

static bool reads(const struct who *who, const struct opnd *op, unsigned int index)
{
	struct check *k = check_of(who->c);
	struct region r;
	unsigned int part;
	uint32_t byte;

	if (op->space == NEURON_SPACE_NONE || !op->n)
		return true;
	if (op->index)
		return pieces(who, op, index, reads);
	region_of(who->c, op, &r);
	if (!mem_written(k, &r, &part, &byte)) {
		who_fault(who, NEURON_FAULT_UNINITIALIZED, index, op->space, part, byte, op->bytes);
		return false;
	}
	return touch(who, op, index, false);
}

static bool writes(const struct who *who, const struct opnd *op, unsigned int index)
{
	struct check *k = check_of(who->c);
	struct region r;

	if (op->space == NEURON_SPACE_NONE || !op->n)
		return true;
	if (op->index)
		return pieces(who, op, index, writes);
	if (!touch(who, op, index, true))
		return false;
	region_of(who->c, op, &r);
	mem_write(k, &r, who->thread == NEURON_ENGINE_PE);
	return true;
}

/*
 * Adding to PSUM: published as undefined where no product was written before, and on
 * v2 and v3 also after anything else wrote there.
 */
static bool accumulates(const struct who *who, const struct opnd *op, unsigned int index)
{
	struct check *k = check_of(who->c);
	struct region r;
	unsigned int part;
	uint32_t byte;

	if (op->index)
		return pieces(who, op, index, accumulates);
	region_of(who->c, op, &r);
	if (!mem_written(k, &r, &part, &byte) ||
	    (who->x->job->nc_version < 4 && !mem_by_pe(k, &r, &part, &byte))) {
		who_fault(who, NEURON_FAULT_ACC_UNDEFINED, index, op->space, part, byte, op->bytes);
		return false;
	}
	return true;
}

/* ACT's accumulators: a lane must have been reset before it is added to or read. */
static bool acc_defined(struct stream *s, const struct who *who)
{
	const struct neuron_insn *w = &s->cur->w;
	struct exec_core *c = stream_core(s);
	unsigned int p;

	if (w->opcode != NEURON_OP_ACT_READ_ACC &&
	    !(w->opcode == NEURON_OP_ACTIVATE && w->acc == NEURON_ACC_REDUCE))
		return true;
	for (p = s->op[0].part; p < s->op[0].part + s->op[0].parts; p++) {
		if (!(c->acc_defined[p / 64] >> (p % 64) & 1)) {
			who_fault(who, NEURON_FAULT_ACC_UNDEFINED, 0, NEURON_SPACE_NONE, p, 0, 4);
			return false;
		}
	}
	return true;
}

bool check_insn(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	const struct neuron_insn *w = &s->cur->w;
	struct who who = { s->x, c, s->engine, s->engine, s->pc, s->cur };
	unsigned int i;

	check_of(c)->n[s->engine]++;
	if (!acc_defined(s, &who))
		return false;
	for (i = 1; i < 3; i++)
		if (!reads(&who, &s->op[i], i))
			return false;
	for (i = 0; i < 2; i++)
		if (s->imm[i].vector && !reads(&who, &s->imm[i].vec, 4 + i))
			return false;
	if (w->opcode == NEURON_OP_MATMUL && w->flags & NEURON_FLAG_ACCUMULATE && s->op[0].n &&
	    !accumulates(&who, &s->op[0], 0))
		return false;
	return writes(&who, &s->op[0], 0);
}

/* --- transfers -------------------------------------------------------------------------- */

uint32_t check_xfer_issue(struct stream *s)
{
	struct check *k = check_of(stream_core(s));

	/*
	 * The queue knows what the stream knows, but not that the stream's own earlier
	 * instructions have completed: a trigger does not wait for them.
	 */
	return msg_new(k, &k->clock[s->engine]);
}

/* An operand in HBM against the other transfers of the job. */
static bool touch_hbm(const struct who *who, const struct dma_side *side, bool write)
{
	struct check *k = check_of(who->c);
	struct hbm_access a = {
		.write = write, .core = who->c->index, .thread = who->thread,
		.clock = k->n[who->thread], .debug_id = who->insn->w.debug_id,
	};
	const struct hbm_access *other;
	struct neuron_fault_record *f;
	bool nomem = false;
	uint64_t lo, hi;

	other = hbm_touch(check_of(who->x->core[0]), &k->clock[who->thread], &side->hbm, &a, &nomem);
	if (nomem) {
		who_fault(who, NEURON_FAULT_INTERNAL, side->hbm.arg, NEURON_SPACE_HBM, 0, 0, 0);
		return false;
	}
	if (!other)
		return true;
	lo = a.at.lo > other->at.lo ? a.at.lo : other->at.lo;
	hi = a.at.hi < other->at.hi ? a.at.hi : other->at.hi;
	f = who_fault(who, NEURON_FAULT_DATA_RACE, side->hbm.arg, NEURON_SPACE_HBM, 0, 0, 0);
	f->addr = htole64(lo);
	f->size = htole64(hi - lo);
	f->other_debug_id = htole32(other->debug_id);
	f->other_engine = NEURON_ENGINE_DMA;
	return false;
}

bool check_hbmreg(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	struct who who = { s->x, c, s->engine, s->engine, s->pc, s->cur };

	check_of(c)->n[s->engine]++;
	return touch_hbm(&who, &s->dma_dst, s->cur->w.opcode == NEURON_OP_WRITE);
}

/* SBUF of another core: clocks are of one core, so only what was written is known. */
static bool check_remote(const struct who *who, const struct dma_side *side, unsigned int index)
{
	struct exec_core *c = who->x->core[side->core];
	struct region r;
	unsigned int part;
	uint32_t byte;

	if (!side->sb.n)
		return true;
	region_of(c, &side->sb, &r);
	if (!index) {
		mem_write(check_of(c), &r, false);
		return true;
	}
	if (mem_written(check_of(c), &r, &part, &byte))
		return true;
	who_fault(who, NEURON_FAULT_UNINITIALIZED, index, side->sb.space, part, byte, side->sb.bytes);
	return false;
}

static bool check_side(const struct who *who, const struct dma_side *side, unsigned int index)
{
	if (side->remote)
		return check_remote(who, side, index);
	if (side->hbm.indexed && !reads(who, &side->hbm.index, index))
		return false;
	if (index)
		return side->is_hbm ? touch_hbm(who, side, false) : reads(who, &side->sb, index);
	return side->is_hbm ? touch_hbm(who, side, true) : writes(who, &side->sb, index);
}

bool check_xfer_start(struct exec *x, struct exec_core *c, struct xfer *t)
{
	struct check *k = check_of(c);
	unsigned int thread = THREAD_QUEUE(t->queue);
	struct who who = { x, c, thread, t->engine, t->pc, t->insn };
	unsigned int i;

	if (t->msg) {
		vclock_join(&k->clock[thread], &k->msg[t->msg - 1]);
		msg_put(k, t->msg);
		t->msg = 0;
	}
	k->n[thread]++;
	for (i = 0; i < t->sources; i++)
		if (!check_side(&who, xfer_source(t, i), i + 1))
			return false;
	/* What is added to is read. */
	if (t->insn->w.flags & NEURON_FLAG_ACCUMULATE && !t->dst.is_hbm &&
	    !check_side(&who, &t->dst, 1))
		return false;
	return check_side(&who, &t->dst, 0);
}

uint32_t check_xfer_message(struct exec *x, struct exec_core *c, struct xfer *t)
{
	struct check *k = check_of(c);
	unsigned int thread = THREAD_QUEUE(t->queue);
	struct vclock clock = k->clock[thread];

	clock.r[thread] = k->n[thread];
	clock.w[thread] = k->n[thread];
	return t->sem_core == c->index ? send(k, &t->insn->w.update, thread, &clock) : 0;
}
