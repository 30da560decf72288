// SPDX-License-Identifier: MIT
/*
 * DMA queues: from an instruction to a transfer, its turn in its queue, and its
 * share of the core's 16 DMA engines and of HBM. The bytes move when it starts
 * (exec_copy.c).
 *
 * Time: rows go round the engines; a transfer alone needs @work. When transfers of
 * several queues want more engines than there are, all slow down alike, which is
 * what round robin by row comes to; on Trn3 only the best priority goes on. The
 * cores that share a HBM stack slow down alike when they want more than its rate.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "exec_state.h"
#include "neuron/trace.h"

#define FULL_RATE	(1u << 16)

/* --- issue ------------------------------------------------------------------------- */

static struct xfer *xfer_get(struct exec *x)
{
	struct xfer *t = x->free_xfer;

	if (t)
		x->free_xfer = t->next;
	else
		t = malloc(sizeof(*t));
	if (t)
		t->more = NULL;
	return t;
}

static void xfer_put(struct exec *x, struct xfer *t)
{
	free(t->more);
	t->more = NULL;
	t->next = x->free_xfer;
	x->free_xfer = t;
}

static bool is_dynamic(const struct stream *s, unsigned int i, const struct dma_side *side)
{
	return (side->is_hbm ? s->cur->dma[i].offset_reg : s->cur->w.ap[i].offset_reg) !=
	       NEURON_REG_NONE;
}

/*
 * Published: about 1300 ns from the trigger to the first byte; hardware descriptor
 * generators of Trn2 and later, at SP and ACT, serve transfers whose addresses come
 * from registers in about 600 ns.
 */
static uint64_t trigger_ticks(const struct stream *s)
{
	const struct timing *t = s->x->timing;
	const struct dma_side *dst = &s->dma_dst, *src = &s->dma_src[0];
	unsigned int mode = s->cur->w.aux >> NEURON_DMA_DGE_SHIFT & 3;
	bool hw = mode == NEURON_DGE_HWDGE;

	/* Unknown: as the compiler does, hardware where it can. */
	if (mode == NEURON_DGE_UNKNOWN && s->cur->w.opcode == NEURON_OP_DMA_COPY)
		hw = (s->engine == NEURON_ENGINE_SP || s->engine == NEURON_ENGINE_ACT) &&
		     (is_dynamic(s, 0, dst) || is_dynamic(s, 1, src)) &&
		     dst->dtype == src->dtype && !dst->hbm.indexed && !src->hbm.indexed;
	return hw && t->dge_trigger ? t->dge_trigger : t->dma_trigger;
}

bool dma_full(const struct stream *s)
{
	const struct exec_core *c = s->x->core[s->core];

	return c->queue[s->cur->w.aux & 0xff].depth >= DMA_QUEUE_DEPTH;
}

static struct xfer *xfer_make(struct stream *s)
{
	unsigned int sources = s->cur->w.words - 2u, core = s->cur->w.aux >> NEURON_DMA_CORE_SHIFT;
	struct xfer *t = xfer_get(s->x);

	if (!t)
		return NULL;
	memset(t, 0, offsetof(struct xfer, dst));
	if (sources > 1) {
		t->more = malloc((sources - 1) * sizeof(*t->more));
		if (!t->more) {
			xfer_put(s->x, t);
			return NULL;
		}
		memcpy(t->more, &s->dma_src[1], (sources - 1) * sizeof(*t->more));
	}
	t->sources = sources;
	t->dst = s->dma_dst;
	t->src = s->dma_src[0];
	t->cost = s->dma_cost;
	t->left = t->cost.work;
	t->sem_core = core ? core - 1 : s->core;
	return t;
}

void dma_issue(struct stream *s, uint64_t written)
{
	struct exec_core *c = stream_core(s);
	struct exec *x = s->x;
	struct xfer *t = xfer_make(s);
	struct dma_queue *q;
	uint64_t due;

	if (!t) {
		exec_fault(x, s, NEURON_FAULT_INTERNAL);
		return;
	}
	t->insn = s->cur;
	t->pc = s->pc;
	t->engine = s->engine;
	t->queue = s->cur->w.aux & 0xff;
	t->priority = (s->cur->w.aux >> 8) & 3;
	t->issue = x->now;
	t->issuer = trace_next(x);
	t->trace = UINT64_MAX;
	t->arrive = written + exec_latency(x, trigger_ticks(s));
	if (x->strict)
		t->msg = check_xfer_issue(s);
	q = &c->queue[t->queue];
	/* Triggers of one queue arrive in order. */
	if (q->tail && q->tail->arrive > t->arrive)
		t->arrive = q->tail->arrive;
	if (q->tail)
		q->tail->next = t;
	else
		q->head = t;
	q->tail = t;
	q->depth++;
	due = *exec_due(x, c->index, NEURON_ENGINE_DMA);
	if (q->head == t && t->arrive < due)
		*exec_due(x, c->index, NEURON_ENGINE_DMA) = t->arrive;
}

/* --- progress ----------------------------------------------------------------------- */

/* Best priority among the running; only Trn3 looks at it. */
static unsigned int best_priority(const struct exec *x, const struct exec_core *c)
{
	unsigned int q, best = 3;

	if (!x->timing->dma_priority)
		return 0;
	for (q = 0; q < NEURON_DMA_QUEUES; q++)
		if (c->queue[q].head && c->queue[q].head->running && c->queue[q].head->priority < best)
			best = c->queue[q].head->priority;
	return best;
}

static bool moves(const struct exec *x, const struct xfer *t, unsigned int best)
{
	return t && t->running && (!x->timing->dma_priority || t->priority == best);
}

/* Bytes per ns that the core's transfers ask of HBM, and their engines. */
static uint64_t demand(const struct exec *x, const struct exec_core *c, unsigned int *width)
{
	unsigned int q, best = best_priority(x, c);
	uint64_t rate = 0;

	*width = 0;
	for (q = 0; q < NEURON_DMA_QUEUES; q++) {
		const struct xfer *t = c->queue[q].head;

		if (!moves(x, t, best))
			continue;
		*width += t->cost.width;
		if (t->cost.work)
			rate += (uint64_t)((unsigned __int128)t->cost.bytes * t->cost.hbm *
					   TICKS_PER_NS_X10 * 256 / 10 / t->cost.work);
	}
	if (*width > DMA_ENGINES)
		rate = rate * DMA_ENGINES / *width;
	return rate;
}

/* The cores that share a HBM stack with @c, as program core numbers. */
static void stack_cores(const struct exec *x, const struct exec_core *c,
			unsigned int *first, unsigned int *last)
{
	unsigned int n = x->timing->cores_per_stack;

	*first = c->index / n * n;
	*last = *first + n < x->cores ? *first + n : x->cores;
}

/* Moves all transfers of a core on to the present at the rate they had. */
static void advance(struct exec *x, struct exec_core *c)
{
	uint64_t elapsed = x->now - c->dma_time;
	unsigned int q, best = best_priority(x, c);
	bool any = false;

	c->dma_time = x->now;
	if (!elapsed)
		return;
	for (q = 0; q < NEURON_DMA_QUEUES; q++) {
		struct xfer *t = c->queue[q].head;
		unsigned __int128 done;

		if (!moves(x, t, best))
			continue;
		any = true;
		done = (unsigned __int128)elapsed * c->dma_rate >> 8;
		t->left = done >= t->left ? 0 : t->left - (uint64_t)done;
	}
	if (any)
		c->dma_busy += elapsed;
}

/* When something happens next on the core's queues at the present rates. */
static void plan(struct exec *x, struct exec_core *c)
{
	unsigned int q, best = best_priority(x, c);
	uint64_t due = TICKS_NEVER;

	for (q = 0; q < NEURON_DMA_QUEUES; q++) {
		const struct xfer *t = c->queue[q].head;
		uint64_t at;

		if (!t)
			continue;
		if (!t->running)
			at = t->arrive > x->now ? t->arrive : x->now;
		else if (moves(x, t, best))
			at = x->now + (uint64_t)((((unsigned __int128)t->left << 8) +
						  c->dma_rate - 1) / c->dma_rate);
		else
			continue;
		if (at < due)
			due = at;
	}
	*exec_due(x, c->index, NEURON_ENGINE_DMA) = due;
}

/* New rates for all cores of a stack, after any of their transfers came or went. */
static void share(struct exec *x, struct exec_core *c)
{
	unsigned int first, last, i, width;
	uint64_t total = 0;

	stack_cores(x, c, &first, &last);
	for (i = first; i < last; i++)
		total += demand(x, x->core[i], &width);
	for (i = first; i < last; i++) {
		struct exec_core *o = x->core[i];
		uint64_t rate = FULL_RATE;

		demand(x, o, &width);
		if (width > DMA_ENGINES)
			rate = rate * DMA_ENGINES / width;
		if (total > x->timing->hbm_rate)
			rate = rate * x->timing->hbm_rate / total;
		o->dma_rate = rate ? rate : 1;
		plan(x, o);
	}
}

/* There is room in a queue: streams that wait for it look again. */
static void wake_stalled(struct exec *x, struct exec_core *c)
{
	unsigned int e;

	for (e = 1; c->stalled; e++) {
		if (c->stalled & ENGINE_BIT(e))
			*exec_due(x, c->index, e) = x->now;
		c->stalled &= ~ENGINE_BIT(e);
	}
}

static void finish(struct exec *x, struct exec_core *c, struct dma_queue *q)
{
	struct xfer *t = q->head;
	const struct neuron_insn *w = &t->insn->w;

	exec_end_at(x, x->now);
	if (t->trace != UINT64_MAX)
		trace_xfer_end(x, t);
	q->last_record = t->trace > UINT32_MAX ? NEURON_TRACE_NO_RECORD : t->trace;
	if (w->update.op & NEURON_UPDATE_OP_MASK) {
		struct update u = {
			.time = x->now + exec_latency(x, x->timing->dma_sem +
						      (t->sem_core != c->index ? x->timing->remote_sem : 0)),
			.pc = t->pc,
			.debug_id = w->debug_id, .u = w->update, .engine = t->engine,
			.from = NEURON_ENGINE_DMA, .opcode = w->opcode,
			.record = q->last_record,
		};

		/* Semaphore writes of one queue stay in order. */
		if (u.time < q->last_update)
			u.time = q->last_update;
		q->last_update = u.time;
		if (x->strict)
			u.msg = check_xfer_message(x, c, t);
		sync_send(x, t->sem_core, &u);
	}
	q->head = t->next;
	if (!q->head)
		q->tail = NULL;
	q->depth--;
	q->free_at = x->now;
	xfer_put(x, t);
	wake_stalled(x, c);
}

static void begin(struct exec *x, struct exec_core *c, struct dma_queue *q)
{
	struct xfer *t = q->head;

	if (x->strict && !check_xfer_start(x, c, t))
		return;
	t->running = true;
	t->start = x->now;
	if (trace_on(x))
		trace_xfer(x, c, q, t);
	x->job->counters[c->index].dma_bytes += t->cost.bytes;
	x->stochastic = c->stochastic;
	copy_run_xfer(x, c, t);
}

void dma_event(struct exec *x, struct exec_core *c)
{
	unsigned int first, last, i;

	stack_cores(x, c, &first, &last);
	for (i = first; i < last; i++)
		advance(x, x->core[i]);
	for (i = 0; i < NEURON_DMA_QUEUES && !x->faulted; i++) {
		struct dma_queue *q = &c->queue[i];

		if (q->head && q->head->running && !q->head->left)
			finish(x, c, q);
		if (q->head && !q->head->running && q->head->arrive <= x->now)
			begin(x, c, q);
	}
	if (!x->faulted)
		share(x, c);
}

void dma_reset(struct exec *x, struct exec_core *c)
{
	unsigned int i;

	for (i = 0; i < NEURON_DMA_QUEUES; i++) {
		struct dma_queue *q = &c->queue[i];

		while (q->head) {
			struct xfer *t = q->head;

			q->head = t->next;
			xfer_put(x, t);
		}
		memset(q, 0, sizeof(*q));
		q->last_record = NEURON_TRACE_NO_RECORD;
	}
	c->dma_time = 0;
	c->dma_rate = FULL_RATE;
}
