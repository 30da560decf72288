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

#define MAX_ELEMENTS	(1ull << 40)
#define SPLIT_BYTES	4096u		/* long rows are split over idle engines down to this */
#define FULL_RATE	(1u << 16)

/* --- operands --------------------------------------------------------------------- */

static bool hbm_counts(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
		       struct dma_side *side)
{
	struct hbm_opnd *h = &side->hbm;
	unsigned int i;

	if (!d->dims || d->dims > NEURON_DMA_DIMS)
		return exec_bad(s, index, d->dims, NEURON_DMA_DIMS);
	h->dims = d->dims;
	side->elements = 1;
	for (i = 0; i < d->dims; i++) {
		h->count[i] = d->count[i];
		h->stride[i] = d->stride[i];
		if (!h->count[i])
			return exec_bad(s, index, 0, MAX_ELEMENTS);
	}
	if (d->count_reg != NEURON_REG_NONE) {
		if (d->count_reg >= NEURON_REGS || d->count_dim >= d->dims)
			return exec_bad(s, index, d->count_reg, NEURON_REGS - 1);
		h->count[d->count_dim] = s->reg[d->count_reg];
	}
	for (i = 0; i < d->dims; i++) {
		side->elements *= h->count[i];
		if (side->elements > MAX_ELEMENTS)
			return exec_bad(s, index, side->elements, MAX_ELEMENTS);
	}
	return true;
}

/* The operand's first byte, from the start of the argument. */
static bool hbm_offset(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
		       struct hbm_opnd *h)
{
	__int128 offset = (__int128)d->offset;

	if (d->offset_reg != NEURON_REG_NONE) {
		if (d->offset_reg >= NEURON_REGS)
			return exec_bad(s, index, d->offset_reg, NEURON_REGS - 1);
		offset += (__int128)(int32_t)s->reg[d->offset_reg] * (int64_t)d->offset_scale;
	}
	if (offset < INT64_MIN || offset > INT64_MAX)
		offset = INT64_MAX;	/* outside any argument: the bounds check says so */
	h->offset = offset;
	return true;
}

static bool hbm_index(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
		      struct hbm_opnd *h)
{
	h->indexed = d->index.space != NEURON_SPACE_NONE;
	h->row_bound = d->row_bound;
	if (!h->indexed)
		return true;
	/* The published form: rows of a tensor, its leading dimension. */
	if (d->index_dim != (uint32_t)d->dims - 1)
		return exec_bad(s, index, d->index_dim, d->dims - 1);
	if (!opnd_resolve(s, &d->index, index, SPACE_BIT(NEURON_SPACE_SBUF), &h->index))
		return false;
	if (h->index.dtype != NEURON_DTYPE_INT32 && h->index.dtype != NEURON_DTYPE_UINT32)
		return exec_bad(s, index, h->index.dtype, NEURON_DTYPE_UINT32);
	if (h->index.n != 1)
		return exec_bad(s, index, h->index.n, 1);
	if (h->count[h->dims - 1] != h->index.parts)
		return exec_bad(s, index, h->count[h->dims - 1], h->index.parts);
	return true;
}

/* Everything but an index is known now: the operand must stay in its argument. */
static bool hbm_bounds(struct stream *s, const struct hbm_opnd *h)
{
	__int128 lo = h->offset, hi = lo;
	struct neuron_fault_record *f;
	unsigned int i;

	for (i = 0; i < h->dims; i++) {
		__int128 span = (__int128)h->stride[i] * (int64_t)(h->count[i] - 1);

		if (!h->count[i])
			return true;
		if (h->indexed && i == h->dims - 1u)
			continue;
		if (span < 0)
			lo += span;
		else
			hi += span;
	}
	hi += h->bytes;
	if (lo >= 0 && hi <= (__int128)h->size)
		return true;
	f = exec_fault(s->x, s, NEURON_FAULT_ARG_BOUNDS);
	f->space = NEURON_SPACE_HBM;
	f->index = htole32(h->arg);
	f->addr = htole64((uint64_t)(lo < 0 ? lo : hi - h->bytes));
	f->size = htole64((uint64_t)(hi - lo));
	f->value = htole64(h->size);
	return false;
}

static bool hbm_resolve(struct stream *s, const struct neuron_dma_operand *d, unsigned int index,
			unsigned int need, struct dma_side *side)
{
	struct hbm_opnd *h = &side->hbm;
	struct neuron_fault_record *f;
	const struct neuron_arg *arg;

	if (d->flags)
		return exec_bad(s, index, d->flags, 0);
	if (d->arg >= s->x->args)
		return exec_bad(s, index, d->arg, s->x->args);
	arg = &s->x->arg[d->arg];
	if ((arg->access & need) != need) {
		f = exec_fault(s->x, s, NEURON_FAULT_ARG_ACCESS);
		f->space = NEURON_SPACE_HBM;
		f->index = htole32(d->arg);
		return false;
	}
	if (!num_dtype(d->dtype)->bytes)
		return exec_bad(s, index, d->dtype, NEURON_DTYPE_FLOAT8_E4M3FN);
	h->arg = d->arg;
	h->va = arg->va;
	h->size = arg->size;
	h->dtype = side->dtype = d->dtype;
	h->bytes = side->bytes = num_dtype(d->dtype)->bytes;
	return hbm_counts(s, d, index, side) && hbm_offset(s, d, index, h) &&
	       hbm_index(s, d, index, h) && hbm_bounds(s, h);
}

bool dma_hbm_side(struct stream *s, unsigned int index, unsigned int need, struct dma_side *side)
{
	const struct neuron_dma_operand *d = &s->cur->dma[index];

	if (d->space != NEURON_SPACE_HBM)
		return exec_bad(s, index, d->space, NEURON_SPACE_HBM);
	side->is_hbm = true;
	side->sb.space = NEURON_SPACE_NONE;
	return hbm_resolve(s, d, index, need, side);
}

static bool side_resolve(struct stream *s, unsigned int index, struct dma_side *side)
{
	const struct neuron_dma_operand *d = &s->cur->dma[index];
	const struct neuron_ap *ap = &s->cur->w.ap[index];

	side->is_hbm = d->space == NEURON_SPACE_HBM;
	if (side->is_hbm) {
		side->sb.space = NEURON_SPACE_NONE;
		if (ap->space != NEURON_SPACE_NONE)
			return exec_bad(s, index, ap->space, NEURON_SPACE_NONE);
		return hbm_resolve(s, d, index, index ? NEURON_ARG_READ : NEURON_ARG_WRITE, side);
	}
	if (d->space != NEURON_SPACE_SBUF)
		return exec_bad(s, index, d->space, NEURON_SPACE_SBUF);
	if (!opnd_resolve(s, ap, index, SPACE_BIT(NEURON_SPACE_SBUF), &side->sb))
		return false;
	side->dtype = side->sb.dtype;
	side->bytes = side->sb.bytes;
	side->elements = (uint64_t)side->sb.n * side->sb.parts;
	side->hbm.indexed = false;
	return true;
}

bool dma_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;

	if ((w->aux & 0xff) >= NEURON_DMA_QUEUES)
		return exec_bad(s, 7, w->aux & 0xff, NEURON_DMA_QUEUES - 1);
	if (w->aux >> 16 || ((w->aux >> 8) & 0xff) > 3)
		return exec_bad(s, 7, w->aux, 0x3ff);
	if (!side_resolve(s, 0, &s->dma_dst) || !side_resolve(s, 1, &s->dma_src))
		return false;
	if (s->dma_dst.elements != s->dma_src.elements)
		return exec_bad(s, 0, s->dma_dst.elements, s->dma_src.elements);
	s->op[0].n = s->op[1].n = s->op[2].n = 0;
	s->op[0].space = s->op[1].space = s->op[2].space = NEURON_SPACE_NONE;
	s->imm[0].vector = s->imm[1].vector = false;
	return true;
}

/* --- issue ------------------------------------------------------------------------- */

/* Bytes of the longest run without gaps at the operand's inner end. */
static uint64_t side_run(const struct dma_side *side)
{
	uint64_t run = side->bytes;
	unsigned int i;

	if (!side->is_hbm) {
		for (i = 0; i < side->sb.dims; i++) {
			if (side->sb.num[i] == 1)
				continue;
			if (side->sb.step[i] != (int64_t)run)
				break;
			run *= side->sb.num[i];
		}
		return run;
	}
	for (i = 0; i < side->hbm.dims; i++) {
		if (side->hbm.count[i] == 1)
			continue;
		if (side->hbm.stride[i] != (int64_t)run ||
		    (side->hbm.indexed && i == side->hbm.dims - 1u))
			break;
		run *= side->hbm.count[i];
	}
	return run;
}

static void xfer_cost(struct exec *x, struct xfer *t)
{
	uint64_t dst = side_run(&t->dst) / t->dst.bytes, src = side_run(&t->src) / t->src.bytes;
	unsigned int wide = t->dst.bytes > t->src.bytes ? t->dst.bytes : t->src.bytes;
	uint64_t run = dst < src ? dst : src;
	uint64_t rows, bytes, split;

	t->bytes = t->src.elements * wide;
	if (!t->bytes || !run) {
		t->work = t->left = 0;
		t->width = 1;
		return;
	}
	rows = (t->src.elements + run - 1) / run;
	bytes = run * wide;
	split = bytes / SPLIT_BYTES;
	if (rows < DMA_ENGINES && split > 1) {
		if (split > DMA_ENGINES / rows)
			split = DMA_ENGINES / rows;
		rows *= split;
		bytes = (bytes + split - 1) / split;
	}
	t->width = rows < DMA_ENGINES ? rows : DMA_ENGINES;
	t->work = timing_dma_rows(x->timing, (rows + DMA_ENGINES - 1) / DMA_ENGINES, bytes);
	t->left = t->work;
}

static struct xfer *xfer_get(struct exec *x)
{
	struct xfer *t = x->free_xfer;

	if (t)
		x->free_xfer = t->next;
	else
		t = malloc(sizeof(*t));
	return t;
}

static void xfer_put(struct exec *x, struct xfer *t)
{
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
	bool dynamic = is_dynamic(s, 0, &s->dma_dst) || is_dynamic(s, 1, &s->dma_src);
	bool dge = s->engine == NEURON_ENGINE_SP || s->engine == NEURON_ENGINE_ACT;

	if (t->dge_trigger && dge && dynamic && s->dma_dst.dtype == s->dma_src.dtype &&
	    !s->dma_dst.hbm.indexed && !s->dma_src.hbm.indexed)
		return t->dge_trigger;
	return t->dma_trigger;
}

bool dma_full(const struct stream *s)
{
	const struct exec_core *c = s->x->core[s->core];

	return c->queue[s->cur->w.aux & 0xff].depth >= DMA_QUEUE_DEPTH;
}

void dma_issue(struct stream *s, uint64_t now)
{
	struct exec_core *c = stream_core(s);
	struct exec *x = s->x;
	struct xfer *t = xfer_get(x);
	struct dma_queue *q;
	uint64_t due;

	if (!t) {
		exec_fault(x, s, NEURON_FAULT_INTERNAL);
		return;
	}
	memset(t, 0, offsetof(struct xfer, dst));
	t->insn = s->cur;
	t->pc = s->pc;
	t->engine = s->engine;
	t->queue = s->cur->w.aux & 0xff;
	t->priority = (s->cur->w.aux >> 8) & 3;
	t->issue = now;
	t->arrive = now + exec_latency(x, trigger_ticks(s));
	t->dst = s->dma_dst;
	t->src = s->dma_src;
	xfer_cost(x, t);
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
		*width += t->width;
		if (t->work)
			rate += (uint64_t)((unsigned __int128)t->bytes *
					   (t->dst.is_hbm + t->src.is_hbm) *
					   TICKS_PER_NS_X10 * 256 / 10 / t->work);
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
	if (t->trace != UINT64_MAX) {
		uint64_t busy = x->now - t->start;

		x->trace[t->trace].end = htole64(x->now);
		x->trace[t->trace].busy = htole32(busy > UINT32_MAX ? UINT32_MAX : busy);
	}
	if (w->update.op & NEURON_UPDATE_OP_MASK) {
		struct update u = {
			.time = x->now + exec_latency(x, x->timing->dma_sem), .pc = t->pc,
			.debug_id = w->debug_id, .u = w->update, .engine = t->engine,
			.from = NEURON_ENGINE_DMA, .opcode = w->opcode,
		};

		/* Semaphore writes of one queue stay in order. */
		if (u.time < q->last_update)
			u.time = q->last_update;
		q->last_update = u.time;
		if (x->strict)
			u.msg = check_xfer_message(x, c, t);
		sync_send(x, c->index, &u);
	}
	q->head = t->next;
	if (!q->head)
		q->tail = NULL;
	q->depth--;
	q->free_at = x->now;
	xfer_put(x, t);
	wake_stalled(x, c);
}

static void trace_xfer(struct exec *x, struct exec_core *c, struct dma_queue *q, struct xfer *t)
{
	const struct neuron_insn *w = &t->insn->w;
	struct neuron_trace_record rec = {
		.issue = htole64(t->issue), .start = htole64(x->now), .end = htole64(x->now),
		.debug_id = htole32(w->debug_id), .pc = htole32(t->pc), .opcode = w->opcode,
		.core = c->index, .engine = NEURON_ENGINE_DMA, .queue = t->queue,
		.wait = NEURON_TRACE_WAIT_ENGINE,
		.wait_engine = q->free_at > t->arrive ? NEURON_ENGINE_DMA : t->engine,
		.bytes = htole32(t->bytes > UINT32_MAX ? UINT32_MAX : t->bytes),
	};

	t->trace = trace_add(x, &rec);
}

static void begin(struct exec *x, struct exec_core *c, struct dma_queue *q)
{
	struct xfer *t = q->head;

	if (x->strict && !check_xfer_start(x, c, t))
		return;
	t->running = true;
	t->start = x->now;
	trace_xfer(x, c, q, t);
	x->job->counters[c->index].dma_bytes += t->bytes;
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
	}
	c->dma_time = 0;
	c->dma_rate = FULL_RATE;
}
