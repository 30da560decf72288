// SPDX-License-Identifier: MIT
/*
 * Strict mode: what threads (streams and DMA queues) know of each other.
 *
 * Knowledge travels with updates of semaphores. A wait that needs a total of N teaches
 * that instruction i of thread t is over when the updates sent so far that do not know
 * of i are less than N together: then whatever the order in which they arrive, one that
 * knows it was among those that ended the wait. So the wait learns, for each thread, a
 * quantile of what the updates know, weighted by what they add. What the semaphore has
 * lost counts towards N only as far as the waiting thread knows of it: other takers may
 * come later in another order. An order that only held by luck counts as none.
 */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

#define SENT_MAX	4096	/* updates kept by semaphore and thread */

/**
 * struct sent - what one thread did to a semaphore, in its order
 * @n, @max: entries
 * @cum: total up to and with the entry
 * @clock: what the thread knew then
 */
struct sent {
	unsigned int n, max;
	uint64_t *cum;
	uint32_t *clock;
};

/**
 * struct sem_check - a semaphore
 * @add: what each thread added
 * @sub: what it took, by waits and updates
 * @write: what it wrote; totals are values here
 * @unclear: written beside other updates that nothing orders: waits teach nothing
 */
struct sem_check {
	struct sent *add[THREADS_MAX];
	struct sent *sub[THREADS_MAX];
	struct sent *write[THREADS_MAX];
	bool takes, writes, unclear;
};

void clock_join(const struct check_job *j, uint32_t *a, const uint32_t *b)
{
	unsigned int i;

	for (i = 0; i < 2 * j->threads; i++)
		a[i] = a[i] > b[i] ? a[i] : b[i];
}

static size_t clock_bytes(const struct check_job *j)
{
	return 2 * j->threads * sizeof(uint32_t);
}

/* --- memory -------------------------------------------------------------------------- */

static void sent_free(struct sent *s)
{
	if (!s)
		return;
	free(s->cum);
	free(s->clock);
	free(s);
}

static void sem_free(struct sem_check *s)
{
	unsigned int t;

	for (t = 0; s && t < THREADS_MAX; t++) {
		sent_free(s->add[t]);
		sent_free(s->sub[t]);
		sent_free(s->write[t]);
	}
	free(s);
}

static void job_clear(struct check_job *j)
{
	unsigned int c, s;

	for (c = 0; c < NEURON_MAX_CORES; c++) {
		for (s = 0; s < NEURON_SEMAPHORES; s++) {
			sem_free(j->sem[c][s]);
			j->sem[c][s] = NULL;
		}
		for (s = 0; s < NEURON_EVENTS; s++) {
			free(j->event[c][s]);
			j->event[c][s] = NULL;
		}
	}
	j->msgs = j->frees = 0;
}

void check_job_free(struct check_job *j)
{
	if (!j)
		return;
	job_clear(j);
	free(j->clock);
	free(j->msg);
	free(j->msg_free);
	free(j);
}

bool clock_begin(struct exec *x)
{
	unsigned int threads = x->cores * CHECK_THREADS;
	struct check_job *j = x->check;

	if (!j)
		j = x->check = calloc(1, sizeof(*j));
	if (!j)
		return false;
	job_clear(j);
	if (j->threads != threads) {
		free(j->clock);
		free(j->msg);
		free(j->msg_free);
		j->msg = j->msg_free = NULL;
		j->msgs_max = 0;
		j->threads = threads;
		j->clock = malloc(threads * clock_bytes(j));
		if (!j->clock) {
			j->threads = 0;
			return false;
		}
	}
	memset(j->clock, 0, threads * clock_bytes(j));
	memset(j->n, 0, sizeof(j->n));
	return true;
}

/* --- messages ------------------------------------------------------------------------- */

uint32_t msg_new(struct check_job *j, const uint32_t *clock)
{
	uint32_t m;

	if (j->frees) {
		m = j->msg_free[--j->frees];
	} else {
		if (j->msgs == j->msgs_max) {
			uint32_t want = j->msgs_max ? 2 * j->msgs_max : 64;
			uint32_t *msg = realloc(j->msg, want * clock_bytes(j));
			uint32_t *fr = realloc(j->msg_free, want * sizeof(*fr));

			j->msg = msg ? msg : j->msg;
			j->msg_free = fr ? fr : j->msg_free;
			if (!msg || !fr)
				return 0;
			j->msgs_max = want;
		}
		m = j->msgs++;
	}
	memcpy(j->msg + (size_t)m * 2 * j->threads, clock, clock_bytes(j));
	return m + 1;
}

void msg_take(struct check_job *j, uint32_t msg, uint32_t *clock)
{
	if (!msg)
		return;
	if (clock)
		clock_join(j, clock, j->msg + (size_t)(msg - 1) * 2 * j->threads);
	j->msg_free[j->frees++] = msg - 1;
}

/* --- what was sent ---------------------------------------------------------------------- */

static const uint32_t *sent_clock(const struct check_job *j, const struct sent *s, unsigned int i)
{
	return s->clock + (size_t)i * 2 * j->threads;
}

static bool sent_room(const struct check_job *j, struct sent *s)
{
	unsigned int want = s->max ? 2 * s->max : 8, half = s->n / 2;
	uint64_t *cum;
	uint32_t *clock;

	if (s->n < s->max)
		return true;
	if (s->n == SENT_MAX) {
		/* The older half as one, which knows what its first did. */
		s->cum[0] = s->cum[half - 1];
		memmove(s->cum + 1, s->cum + half, (s->n - half) * sizeof(*s->cum));
		memmove(s->clock + 2 * j->threads, s->clock + (size_t)half * 2 * j->threads,
			(s->n - half) * clock_bytes(j));
		s->n -= half - 1;
		return true;
	}
	cum = realloc(s->cum, want * sizeof(*cum));
	s->cum = cum ? cum : s->cum;
	clock = realloc(s->clock, want * clock_bytes(j));
	s->clock = clock ? clock : s->clock;
	if (!cum || !clock)
		return false;
	s->max = want;
	return true;
}

static void sent_add(const struct check_job *j, struct sent **at, uint64_t value, bool absolute,
		     const uint32_t *clock)
{
	struct sent *s = *at;

	if (!s)
		s = *at = calloc(1, sizeof(*s));
	if (!s || !sent_room(j, s))
		return;		/* forgotten: nothing is learnt from it */
	s->cum[s->n] = value + (s->n && !absolute ? s->cum[s->n - 1] : 0);
	memcpy(s->clock + (size_t)s->n * 2 * j->threads, clock, clock_bytes(j));
	s->n++;
}

static struct sem_check *sem_get(struct check_job *j, unsigned int core, unsigned int sem)
{
	if (!j->sem[core][sem])
		j->sem[core][sem] = calloc(1, sizeof(*j->sem[core][sem]));
	return j->sem[core][sem];
}

static uint64_t sent_total(const struct sent *s)
{
	return s && s->n ? s->cum[s->n - 1] : 0;
}

/* Total of the entries that know no more of word @i than @limit. */
static uint64_t sent_below(const struct check_job *j, const struct sent *s, unsigned int i,
			   uint32_t limit)
{
	unsigned int lo = 0, hi = s ? s->n : 0;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (sent_clock(j, s, mid)[i] <= limit)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? s->cum[lo - 1] : 0;
}

/* What @clock knows that the others have sent. */
static uint64_t sent_known(const struct check_job *j, struct sent *const *by, unsigned int self,
			   const uint32_t *clock)
{
	uint64_t known = 0;
	unsigned int t;

	for (t = 0; t < j->threads; t++)
		if (by[t])
			known += t == self ? sent_total(by[t]) : sent_below(j, by[t], t, clock[t]);
	return known;
}

/* --- semaphores that are written ---------------------------------------------------------- */

static void forget(struct sent **by, unsigned int threads)
{
	unsigned int t;

	for (t = 0; t < threads; t++)
		if (by[t])
			by[t]->n = 0;
}

/*
 * A written value replaces what was added before. Updates that the writer does not know
 * of make the outcome depend on who comes first.
 */
static void sem_write(struct check_job *j, struct sem_check *s, uint32_t value, unsigned int thread,
		      const uint32_t *clock)
{
	uint64_t added = 0, taken = 0;
	unsigned int t;

	for (t = 0; t < j->threads; t++) {
		added += sent_total(s->add[t]);
		taken += sent_total(s->sub[t]);
	}
	if (added || taken) {
		if (sent_known(j, s->add, thread, clock) != added ||
		    sent_known(j, s->sub, thread, clock) != taken)
			s->unclear = true;
		forget(s->add, j->threads);
		forget(s->sub, j->threads);
		forget(s->write, j->threads);
	}
	sent_add(j, &s->write[thread], value, true, clock);
	s->writes = true;
}

/* The last write, if there is one writer. */
static const struct sent *last_write(const struct check_job *j, const struct sem_check *s,
				     unsigned int *thread)
{
	const struct sent *last = NULL;
	unsigned int t;

	for (t = 0; t < j->threads; t++) {
		if (!s->write[t] || !s->write[t]->n)
			continue;
		if (last)
			return NULL;
		last = s->write[t];
		*thread = t;
	}
	return last;
}

static bool write_known(const struct check_job *j, const struct sem_check *s, const uint32_t *clock)
{
	unsigned int t = 0;
	const struct sent *w = last_write(j, s, &t);

	return w && sent_clock(j, w, w->n - 1)[t] <= clock[t];
}

uint32_t msg_send(struct check_job *j, unsigned int core, const struct neuron_update *u,
		  unsigned int thread, const uint32_t *clock)
{
	unsigned int op = u->op & NEURON_UPDATE_OP_MASK;
	struct sem_check *s = NULL;

	if (op < NEURON_UPDATE_EVENT_SET)
		s = sem_get(j, core, u->sem);
	if (s && op == NEURON_UPDATE_SEM_ADD) {
		if (s->writes && !write_known(j, s, clock))
			s->unclear = true;
		sent_add(j, &s->add[thread], u->value, false, clock);
	} else if (s && op == NEURON_UPDATE_SEM_SUB) {
		sent_add(j, &s->sub[thread], u->value, false, clock);
		s->takes = true;
	} else if (s && op == NEURON_UPDATE_SEM_WRITE) {
		sem_write(j, s, u->value, thread, clock);
	}
	return msg_new(j, clock);
}

void check_arrive(struct exec *x, struct exec_core *c, const struct update *u)
{
	unsigned int op = u->u.op & NEURON_UPDATE_OP_MASK;
	struct check_job *j = x->check;
	uint32_t **event = &j->event[c->index][u->u.sem];

	if (op == NEURON_UPDATE_EVENT_SET && u->msg) {
		if (!*event)
			*event = malloc(clock_bytes(j));
		if (*event)
			memcpy(*event, j->msg + (size_t)(u->msg - 1) * 2 * j->threads, clock_bytes(j));
	}
	msg_take(j, u->msg, NULL);
}

/* --- waits ------------------------------------------------------------------------------ */

/* Smallest value v of word @i such that updates that know at most v reach @need, or 0. */
static uint32_t quantile(const struct check_job *j, struct sent *const *by, unsigned int i,
			 uint64_t need)
{
	uint32_t best = UINT32_MAX;
	unsigned int t, k;

	for (t = 0; t < j->threads; t++) {
		unsigned int lo = 0, hi = by[t] ? by[t]->n : 0;

		while (lo < hi) {
			unsigned int mid = (lo + hi) / 2;
			uint32_t v = sent_clock(j, by[t], mid)[i];
			uint64_t total = 0;

			for (k = 0; k < j->threads; k++)
				total += by[k] ? sent_below(j, by[k], i, v) : 0;
			if (total >= need) {
				best = v < best ? v : best;
				hi = mid;
			} else {
				lo = mid + 1;
			}
		}
	}
	return best == UINT32_MAX ? 0 : best;
}

/* One sender: the first update that reaches @need, which knows all before it. */
static void learn_one(const struct check_job *j, uint32_t *clock, const struct sent *s, uint64_t need)
{
	unsigned int lo = 0, hi = s->n;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (s->cum[mid] >= need)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo < s->n)
		clock_join(j, clock, sent_clock(j, s, lo));
}

static void learn(const struct check_job *j, uint32_t *clock, struct sent *const *by, uint64_t need)
{
	unsigned int i, t, senders = 0, last = 0;

	if (!need)
		return;
	for (t = 0; t < j->threads; t++) {
		if (by[t] && by[t]->n) {
			senders++;
			last = t;
		}
	}
	if (senders == 1) {
		learn_one(j, clock, by[last], need);
		return;
	}
	for (i = 0; i < 2 * j->threads; i++) {
		uint32_t most = 0, v;

		for (t = 0; t <= last; t++) {
			if (!by[t] || !by[t]->n)
				continue;
			v = sent_clock(j, by[t], by[t]->n - 1)[i];
			most = v > most ? v : most;
		}
		if (most <= clock[i])
			continue;
		v = quantile(j, by, i, need);
		clock[i] = v > clock[i] ? v : clock[i];
	}
}

/* Only written, never added to: any value that satisfies the wait may have ended it. */
static void learn_written(const struct check_job *j, uint32_t *clock, struct sent *const *by,
			  uint32_t value, bool equal)
{
	uint32_t least[2 * THREADS_MAX];
	unsigned int t, i, k;
	bool any = false;

	for (t = 0; t < j->threads; t++) {
		for (k = 0; by[t] && k < by[t]->n; k++) {
			const uint32_t *c = sent_clock(j, by[t], k);

			if (equal ? by[t]->cum[k] != value : by[t]->cum[k] < value)
				continue;
			for (i = 0; i < 2 * j->threads; i++)
				least[i] = any && least[i] < c[i] ? least[i] : c[i];
			any = true;
		}
	}
	if (any)
		clock_join(j, clock, least);
}

static bool sent_any(const struct check_job *j, struct sent *const *by)
{
	unsigned int t;

	for (t = 0; t < j->threads; t++)
		if (by[t] && by[t]->n)
			return true;
	return false;
}

static void take(struct check_job *j, struct sem_check *s, unsigned int thread, uint32_t value)
{
	uint32_t *clock = clock_of(j, thread);
	uint32_t own = clock[thread];

	/* Others know of the take when they know of this. */
	clock[thread] = ++j->n[thread];
	sent_add(j, &s->sub[thread], value, false, clock);
	clock[thread] = own;
	s->takes = true;
}

void check_wait(struct stream *st, const struct neuron_wait *w, uint32_t value)
{
	unsigned int cond = w->cond & NEURON_WAIT_COND_MASK, thread = THREAD(st->core, st->engine);
	struct check_job *j = st->x->check;
	uint32_t *clock = clock_of(j, thread);
	uint64_t added, taken, written = 0;
	unsigned int writer = 0;
	struct sem_check *s;

	if (cond == NEURON_WAIT_EVENT || cond == NEURON_WAIT_EVENT_CLEAR) {
		if (j->event[st->core][w->sem])
			clock_join(j, clock, j->event[st->core][w->sem]);
		return;
	}
	s = sem_get(j, st->core, w->sem);
	if (!s)
		return;
	if (s->unclear)
		goto out;
	if (s->writes) {
		const struct sent *base = last_write(j, s, &writer);

		if (!base || !sent_any(j, s->add)) {
			learn_written(j, clock, s->write, value, cond == NEURON_WAIT_EQ);
			goto out;
		}
		clock_join(j, clock, sent_clock(j, base, base->n - 1));
		written = base->cum[base->n - 1];
	}
	taken = s->takes ? sent_known(j, s->sub, thread, clock) : 0;
	added = cond == NEURON_WAIT_EQ && s->takes ? sent_known(j, s->add, thread, clock) : 0;
	if (taken + value > written)
		learn(j, clock, s->add, taken + value - written);
	if (added + written > value)
		learn(j, clock, s->sub, added + written - value);
out:
	if (cond == NEURON_WAIT_GE_SUB)
		take(j, s, thread, value);
}
