// SPDX-License-Identifier: MIT
/*
 * Where semaphores are needed.
 *
 * A sequence (the program, or a loop body) is walked in program order. For every
 * stream we keep what it knows: knows[C][s] = n means that when stream C gets to
 * this point, instruction n of stream s has completed. An instruction that
 * touches bytes after another one, one of them writing, needs to know that the
 * other has completed; if its stream does not, an edge is placed, and the stream
 * then knows all that the other knew when it completed. So edges that program
 * order or earlier waits imply are never made. The hardware gives for free:
 * compute instructions of one engine run in order, transfers of one queue too.
 *
 * A loop body is walked twice. What the second pass needs from the first are the
 * carried edges: the consumer begins with a credit for each (lower.c), and takes
 * the last signals after the loop, so counts balance for any number of
 * iterations. The walk of a body assumes nothing of what is before the loop:
 * those orders are established in front of it, by its pre points. Seen from
 * around it, a loop is one instruction on each of its engines; its transfers are
 * known to have completed when the engine that started them leaves the loop.
 *
 * An access that depends on a register counts as all bytes it may reach, so
 * distances of more than one iteration are covered by those of one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "priv.h"

/**
 * struct nki_record - an access that later ones may depend on
 * @stream, @idx: who; the stream that signals
 * @queue: DMA queue that did it, or NKI_QUEUE_NONE
 * @known: engines that need no edge
 * @after: loops: engines that have done something in the iteration before this access
 * @gone: a later access stands for it
 */
struct nki_record {
	const struct nki_access *access;
	uint8_t stream;
	uint8_t queue;
	unsigned int known, after;
	bool gone;
	int idx;
};

/* Where records are looked for: those that touch bytes of one piece of memory. */
struct page {
	uint32_t *node;
	uint32_t count, room;
};

#define PAGE_SHIFT	10	/* bytes of a partition in a page of SBUF or PSUM */
#define SBUF_PAGES	256
#define PSUM_PAGES	16
#define ARG_PAGES	128	/* of each argument */

struct completion {
	struct nki_point *point;
	int order;
	int knows[NKI_STREAMS];
};

struct completions {
	struct completion *c;
	int room;
};

/**
 * struct walk - state of walking one sequence
 * @pass: 1 or 2; the outermost sequence has only the first
 * @order: points passed
 * @base: instructions with a number up to it are of the first pass
 * @last: number of the last instruction by stream
 * @forced: queues whose last transfer must be waited for in the next iteration
 * @final: last transfer of each queue in the body
 * @all: loops: every access of the body, for the sequence around it
 */
struct walk {
	struct nki_kernel *k;
	struct nki_loop *loop;
	unsigned int pass;
	int order, order_base;
	int base[NKI_STREAMS];
	int last[NKI_STREAMS];
	int knows[NKI_ENGINES][NKI_STREAMS];
	struct completions done[NKI_STREAMS];
	struct nki_record *rec;
	size_t recs, rec_room;
	struct page *page;
	unsigned int args;
	uint64_t *arg_page_bytes;
	struct nki_record *all;
	size_t alls, all_room;
	unsigned int forced;
	struct nki_point *final[NEURON_DMA_QUEUES];
	bool nomem;
};

struct need {
	int idx[NKI_STREAMS];
	const char *reason[NKI_STREAMS];
};

static struct nki_record *push(struct walk *w, struct nki_record **list, size_t *count, size_t *room)
{
	if (*count == *room) {
		size_t more = *room ? 2 * *room : 64;
		struct nki_record *r = realloc(*list, more * sizeof(*r));

		if (!r) {
			w->nomem = true;
			return NULL;
		}
		*list = r;
		*room = more;
	}
	return &(*list)[(*count)++];
}

static void learn(int *knows, const int *more)
{
	for (unsigned int s = 0; s < NKI_STREAMS; s++) {
		if (more[s] > knows[s])
			knows[s] = more[s];
	}
}

/* The point is the next instruction of @stream, and knows what its engine knows. */
static int complete(struct walk *w, struct nki_point *p, unsigned int stream)
{
	struct completions *d = &w->done[stream];
	int idx = w->last[stream] + 1;
	struct completion *c;

	if (idx >= d->room) {
		int room = d->room ? 2 * d->room : 64;

		c = realloc(d->c, room * sizeof(*c));
		if (!c) {
			w->nomem = true;
			return 0;
		}
		d->c = c;
		d->room = room;
	}
	c = &d->c[idx];
	c->point = p;
	c->order = w->order;
	memcpy(c->knows, w->knows[p->engine], sizeof(c->knows));
	c->knows[stream] = idx;
	w->last[stream] = idx;
	p->idx = idx;
	return idx;
}

static void add_edge(struct walk *w, struct nki_point *from, struct nki_point *to, bool carried,
		     const char *reason)
{
	struct nki_kernel *k = w->k;
	struct nki_edge_priv *e = nki_build_zalloc(k, sizeof(*e));

	if (!e) {
		w->nomem = true;
		return;
	}
	e->from = from;
	e->to = to;
	e->loop = w->loop;
	e->depth = w->loop ? w->loop->depth : 0;
	e->carried = carried;
	e->reason = reason;
	e->number = k->edge_count++;
	*k->edges_tail = e;
	k->edges_tail = &e->next;
	if (k->drop >= 0 && e->number == (unsigned int)k->drop)
		e->dropped = true;
}

/*
 * What the engine of @p must wait for. The latest producer first: what it knew may
 * make the others unnecessary.
 */
static void satisfy(struct walk *w, struct nki_point *p, struct need *need)
{
	int *knows = w->knows[p->engine];

	for (;;) {
		struct completion *best = NULL;
		unsigned int stream = 0;

		for (unsigned int s = 0; s < NKI_STREAMS; s++) {
			struct completion *c = &w->done[s].c[need->idx[s]];

			if (need->idx[s] > knows[s] && (!best || c->order > best->order)) {
				best = c;
				stream = s;
			}
		}
		if (!best)
			return;
		/* The first pass finds the edges within an iteration, the second the carried ones. */
		if (w->pass == 1 || need->idx[stream] <= w->base[stream])
			add_edge(w, best->point, p, w->pass == 2, need->reason[stream]);
		learn(knows, best->knows);
	}
}

static const char *hazard(const struct nki_access *earlier, const struct nki_access *later)
{
	if (!earlier->write)
		return "WAR";
	return later->write ? "WAW" : "RAW";
}

/* Is the order of r before an access of @engine (by @queue) given without an edge? */
static bool in_order(const struct nki_record *r, unsigned int engine, unsigned int queue)
{
	if (queue != NKI_QUEUE_NONE && r->queue == queue)
		return true;
	if (r->known & 1u << engine)
		return true;
	return r->stream == engine && (queue == NKI_QUEUE_NONE || r->queue != NKI_QUEUE_NONE);
}

/* Pages of an access: [*first, *last]. */
static void page_range(const struct walk *w, const struct nki_access *a, size_t *first, size_t *last)
{
	size_t base = 0, pages = SBUF_PAGES;
	uint64_t bytes = 1u << PAGE_SHIFT;

	if (a->space == NEURON_SPACE_PSUM) {
		base = SBUF_PAGES;
		pages = PSUM_PAGES;
	} else if (a->space == NEURON_SPACE_HBM) {
		base = SBUF_PAGES + PSUM_PAGES + (size_t)a->arg * ARG_PAGES;
		pages = ARG_PAGES;
		bytes = w->arg_page_bytes[a->arg];
	}
	*first = a->lo < 0 ? 0 : a->lo / bytes;
	*last = a->hi < 1 ? 0 : (a->hi - 1) / bytes;
	if (*first >= pages)
		*first = pages - 1;
	if (*last >= pages)
		*last = pages - 1;
	*first += base;
	*last += base;
}

static void find_needs(struct walk *w, const struct nki_access *a, unsigned int engine,
		       unsigned int queue, struct need *need)
{
	size_t first, last;

	page_range(w, a, &first, &last);
	for (size_t p = first; p <= last; p++) {
		for (uint32_t i = 0; i < w->page[p].count; i++) {
			const struct nki_record *r = &w->rec[w->page[p].node[i]];

			if (r->gone || (!a->write && !r->access->write) || need->idx[r->stream] >= r->idx ||
			    in_order(r, engine, queue) || !nki_overlap(a, r->access))
				continue;
			need->idx[r->stream] = r->idx;
			need->reason[r->stream] = hazard(r->access, a);
		}
	}
}

static void put_on_page(struct walk *w, struct page *page, uint32_t node)
{
	if (page->count == page->room) {
		uint32_t room = page->room ? 2 * page->room : 8;
		uint32_t *more = realloc(page->node, room * sizeof(*more));

		if (!more) {
			w->nomem = true;
			return;
		}
		page->node = more;
		page->room = room;
	}
	page->node[page->count++] = node;
}

/* Does the new record stand for @o from now on? */
static bool replaces(const struct nki_record *r, const struct nki_record *o, bool sure)
{
	bool same = o->stream == r->stream && o->queue == r->queue;

	return (r->access->write ? sure || same : same && !o->access->write) &&
	       nki_covers(r->access, o->access);
}

/*
 * Remember an access; forget those that it stands for from now on. @sure: it
 * happens in any case (a loop may have no iteration).
 */
static void remember(struct walk *w, struct nki_record r, bool sure)
{
	struct nki_record *slot;
	size_t first, last;

	r.gone = false;
	page_range(w, r.access, &first, &last);
	for (size_t p = first; p <= last; p++) {
		struct page *page = &w->page[p];
		uint32_t out = 0;

		for (uint32_t i = 0; i < page->count; i++) {
			struct nki_record *o = &w->rec[page->node[i]];

			o->gone = o->gone || replaces(&r, o, sure);
			if (!o->gone)
				page->node[out++] = page->node[i];
		}
		page->count = out;
	}
	slot = push(w, &w->rec, &w->recs, &w->rec_room);
	if (!slot)
		return;
	*slot = r;
	for (size_t p = first; p <= last; p++)
		put_on_page(w, &w->page[p], w->recs - 1);
}

/* For the sequence around the loop: everything the body does, once. */
static void collect(struct walk *w, struct nki_record r, bool sure)
{
	struct nki_record *slot;

	if (!w->loop || w->pass == 1)
		return;
	for (size_t i = 0; i < w->alls; i++) {
		struct nki_record *o = &w->all[i];

		if (o->stream == r.stream && o->queue == r.queue && o->access->write == r.access->write &&
		    nki_covers(o->access, r.access)) {
			o->idx = r.idx;
			/* A stream works in order: who knows the later one knows both. */
			o->known = sure ? r.known : o->known & r.known;
			o->after &= r.after;
			return;
		}
	}
	slot = push(w, &w->all, &w->alls, &w->all_room);
	if (slot)
		*slot = r;
}

/* Engines of which @engine knows that they are in this iteration already. */
static unsigned int worked_before(const struct walk *w, unsigned int engine)
{
	unsigned int engines = 0;

	for (unsigned int e = 0; w->loop && w->pass == 2 && e < NKI_ENGINES; e++) {
		if (e != engine && w->knows[engine][e] > w->base[e])
			engines |= 1u << e;
	}
	return engines;
}

static void walk_point(struct walk *w, struct nki_point *p, const struct nki_access *access,
		       unsigned int count)
{
	unsigned int stream = p->queue == NKI_QUEUE_NONE ? p->engine : NKI_ENGINES + p->queue;
	struct need need = { 0 };
	unsigned int after;
	int idx;

	p->pos = w->order++ - w->order_base;
	for (unsigned int i = 0; i < count; i++)
		find_needs(w, &access[i], p->engine, p->queue, &need);
	if (w->pass == 2 && p->queue != NKI_QUEUE_NONE && w->forced & 1u << p->queue &&
	    w->final[p->queue] == p) {
		need.idx[stream] = w->base[stream];
		need.reason[stream] = "loop";
	}
	satisfy(w, p, &need);
	after = worked_before(w, p->engine);
	idx = complete(w, p, stream);
	for (unsigned int i = 0; i < count && !w->nomem; i++) {
		struct nki_record r = { .access = &access[i], .stream = stream, .queue = p->queue,
					.after = after, .idx = idx };

		remember(w, r, true);
		collect(w, r, true);
	}
}

/* Is what @need asks for known to an engine of @engines when it enters the loop? */
static void drop_known(const struct walk *w, unsigned int engines, struct need *need)
{
	for (unsigned int s = 0; s < NKI_STREAMS; s++) {
		for (unsigned int e = 0; e < NKI_ENGINES; e++) {
			if (engines & 1u << e && (e == s || w->knows[e][s] >= need->idx[s]))
				need->idx[s] = 0;
		}
	}
}

/*
 * What engine @e must know before it enters. An access that in every iteration
 * comes after another engine's work comes after that engine entered, too, and so
 * after all that it waited for: those are looked at in a second round.
 */
static void enter(struct walk *w, struct nki_loop *loop, unsigned int e, bool first)
{
	struct need need = { 0 };

	for (size_t i = 0; i < loop->record_count; i++) {
		const struct nki_record *r = &loop->records[i];
		struct need one = { 0 };

		if (r->stream != e || first == (r->after != 0))
			continue;
		find_needs(w, r->access, e, r->queue, &one);
		drop_known(w, r->after, &one);
		for (unsigned int s = 0; s < NKI_STREAMS; s++) {
			if (one.idx[s] > need.idx[s]) {
				need.idx[s] = one.idx[s];
				need.reason[s] = one.reason[s];
			}
		}
	}
	satisfy(w, &loop->pre[e], &need);
}

/*
 * An engine that leaves the loop knowing that another one has done work of the last
 * iteration knows all that this one had done and waited for in front of the loop.
 */
static void learn_by_meeting(struct walk *w, const struct nki_loop *loop)
{
	int pre[NKI_ENGINES][NKI_STREAMS];

	memcpy(pre, w->knows, sizeof(pre));
	for (unsigned int f = 0; f < NKI_ENGINES; f++) {
		pre[f][f] = w->last[f];
		for (unsigned int e = 0; e < NKI_ENGINES; e++) {
			if (loop->met[e] & 1u << f)
				learn(w->knows[e], pre[f]);
		}
	}
}

static void walk_loop(struct walk *w, struct nki_loop *loop)
{
	bool sure = loop->hi.kind == NEURON_IMM_I32;
	unsigned int before[NKI_ENGINES];
	int idx[NKI_ENGINES];

	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		loop->pre[e].pos = w->order - w->order_base;
		if (loop->engines & 1u << e)
			enter(w, loop, e, true);
	}
	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		if (loop->engines & 1u << e)
			enter(w, loop, e, false);
		before[e] = worked_before(w, e);
	}
	if (sure)
		learn_by_meeting(w, loop);
	w->order++;
	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		if (!(loop->engines & 1u << e))
			continue;
		loop->post[e].pos = w->order - w->order_base;
		idx[e] = complete(w, &loop->post[e], e);
	}
	w->order++;
	for (size_t i = 0; i < loop->record_count && !w->nomem; i++) {
		struct nki_record r = loop->records[i];

		r.idx = idx[r.stream];
		r.after |= before[r.stream];
		remember(w, r, sure);
		collect(w, r, sure);
	}
}

static void walk_seq(struct walk *w, struct nki_seq *seq)
{
	for (struct nki_item *i = seq->first; i && !w->nomem; i = i->next) {
		switch (i->kind) {
		case NKI_ITEM_INSN:
			walk_point(w, &i->insn->point, i->insn->access, i->insn->accesses);
			break;
		case NKI_ITEM_REGOP:
			for (unsigned int e = 0; i->regop->has_access && e < NKI_ENGINES; e++) {
				if (w->k->reg_used[e] & 1ull << i->regop->dst)
					walk_point(w, &i->regop->point[e], &i->regop->access, 1);
			}
			break;
		case NKI_ITEM_LOOP:
			walk_loop(w, i->loop);
			break;
		}
	}
}

static size_t page_count(const struct walk *w)
{
	return SBUF_PAGES + PSUM_PAGES + (size_t)w->args * ARG_PAGES;
}

static void walk_free(struct walk *w)
{
	for (unsigned int s = 0; s < NKI_STREAMS; s++)
		free(w->done[s].c);
	for (size_t p = 0; w->page && p < page_count(w); p++)
		free(w->page[p].node);
	free(w->page);
	free(w->arg_page_bytes);
	free(w->rec);
	free(w->all);
}

static bool make_pages(struct walk *w)
{
	w->args = w->k->root->arg_count;
	w->page = calloc(page_count(w), sizeof(*w->page));
	w->arg_page_bytes = calloc(w->args + 1, sizeof(*w->arg_page_bytes));
	if (!w->page || !w->arg_page_bytes)
		return false;
	for (const struct nki_buf *b = w->k->bufs; b; b = b->next) {
		if (b->space == NEURON_SPACE_HBM)
			w->arg_page_bytes[b->arg] = b->bytes / ARG_PAGES + 1;
	}
	return true;
}

static bool walk_start(struct walk *w, struct nki_kernel *k, struct nki_loop *loop)
{
	memset(w, 0, sizeof(*w));
	w->k = k;
	w->loop = loop;
	w->pass = 1;
	if (!make_pages(w)) {
		walk_free(w);
		return false;
	}
	for (unsigned int s = 0; s < NKI_STREAMS; s++) {
		w->done[s].c = calloc(1, sizeof(struct completion));
		w->done[s].room = 1;
		if (!w->done[s].c) {
			walk_free(w);
			return false;
		}
	}
	return true;
}

static int analyse(struct nki_kernel *k, struct nki_loop *loop, struct nki_seq *seq,
		   struct nki_seq *more);

static int analyse_inner(struct nki_kernel *k, struct nki_seq *seq)
{
	int ret = 0;

	for (struct nki_item *i = seq->first; i && !ret; i = i->next) {
		if (i->kind == NKI_ITEM_LOOP)
			ret = analyse(k, i->loop, &i->loop->body, NULL);
	}
	return ret;
}

/* After the loop every consumer takes the last signals of its carried edges. */
static void drain(struct walk *w, struct nki_edge_priv *first)
{
	for (struct nki_edge_priv *e = first; e; e = e->next) {
		unsigned int s = e->from->queue == NKI_QUEUE_NONE ? e->from->engine :
				 NKI_ENGINES + e->from->queue;

		if (e->carried)
			learn(w->knows[e->to->engine], w->done[s].c[e->from->idx].knows);
	}
}

static unsigned int unfinished_queues(struct walk *w)
{
	unsigned int queues = 0;

	for (unsigned int q = 0; q < NEURON_DMA_QUEUES; q++) {
		struct nki_point *p = w->final[q];

		if (p && w->knows[p->engine][NKI_ENGINES + q] < w->last[NKI_ENGINES + q])
			queues |= 1u << q;
	}
	return queues;
}

static int keep_records(struct walk *w)
{
	struct nki_loop *loop = w->loop;

	loop->records = nki_build_zalloc(w->k, (w->alls + 1) * sizeof(*loop->records));
	if (!loop->records)
		return -ENOMEM;
	loop->record_count = w->alls;
	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		loop->met[e] = 0;
		for (unsigned int f = 0; f < NKI_ENGINES; f++) {
			if (f != e && w->knows[e][f] > w->base[f])
				loop->met[e] |= 1u << f;
		}
	}
	for (size_t i = 0; i < w->alls; i++) {
		struct nki_record r = w->all[i];

		for (unsigned int e = 0; e < NKI_ENGINES; e++) {
			if (w->knows[e][r.stream] >= r.idx)
				r.known |= 1u << e;
		}
		/* From outside, a transfer belongs to the engine that started it. */
		if (r.stream >= NKI_ENGINES)
			r.stream = w->final[r.stream - NKI_ENGINES]->engine;
		loop->records[i] = r;
	}
	return 0;
}

/* Edges from @tail on are forgotten: the walk is made again. */
static void forget_edges(struct nki_kernel *k, struct nki_edge_priv **tail, unsigned int count)
{
	*tail = NULL;
	k->edges_tail = tail;
	k->edge_count = count;
}

static void find_final(struct walk *w, struct nki_seq *seq)
{
	for (struct nki_item *i = seq->first; i; i = i->next) {
		if (i->kind == NKI_ITEM_INSN && i->insn->point.queue != NKI_QUEUE_NONE)
			w->final[i->insn->point.queue] = &i->insn->point;
	}
}

static int analyse_loop(struct nki_kernel *k, struct nki_loop *loop, unsigned int *forced)
{
	struct nki_edge_priv **tail = k->edges_tail;
	unsigned int count = k->edge_count, open;
	struct walk w;
	int ret = -ENOMEM;

	if (!walk_start(&w, k, loop))
		return -ENOMEM;
	w.forced = *forced;
	find_final(&w, &loop->body);
	walk_seq(&w, &loop->body);
	w.pass = 2;
	w.order_base = w.order;
	memcpy(w.base, w.last, sizeof(w.base));
	walk_seq(&w, &loop->body);
	if (w.nomem)
		goto out;
	drain(&w, *tail);
	open = unfinished_queues(&w);
	if (open & ~*forced) {
		*forced |= open;
		forget_edges(k, tail, count);
		ret = -EAGAIN;
		goto out;
	}
	ret = keep_records(&w);
out:
	walk_free(&w);
	return ret;
}

static int analyse(struct nki_kernel *k, struct nki_loop *loop, struct nki_seq *seq,
		   struct nki_seq *more)
{
	unsigned int forced = 0;
	struct walk w;
	int ret;

	ret = analyse_inner(k, seq);
	if (!ret && more)
		ret = analyse_inner(k, more);
	while (!ret && loop) {
		ret = analyse_loop(k, loop, &forced);
		if (ret != -EAGAIN)
			return ret;
		ret = 0;
	}
	if (ret)
		return ret;
	if (!walk_start(&w, k, NULL))
		return -ENOMEM;
	walk_seq(&w, seq);
	if (more)
		walk_seq(&w, more);
	ret = w.nomem ? -ENOMEM : 0;
	walk_free(&w);
	return ret;
}

/* ------------------------------------------------------------------------ */
/* From edges to semaphores						    */

static void reset_point(struct nki_point *p)
{
	p->waits = NULL;
	p->signals = NULL;
}

static void reset_points(struct nki_seq *seq)
{
	for (struct nki_item *i = seq->first; i; i = i->next) {
		if (i->kind == NKI_ITEM_INSN)
			reset_point(&i->insn->point);
		for (unsigned int e = 0; e < NKI_ENGINES; e++) {
			if (i->kind == NKI_ITEM_REGOP)
				reset_point(&i->regop->point[e]);
			if (i->kind == NKI_ITEM_LOOP) {
				reset_point(&i->loop->pre[e]);
				reset_point(&i->loop->post[e]);
			}
		}
		if (i->kind == NKI_ITEM_LOOP)
			reset_points(&i->loop->body);
	}
}

/* Which of two edges of one transfer is satisfied first? */
static bool earlier(const struct nki_edge_priv *a, const struct nki_edge_priv *b)
{
	if (a->carried != b->carried)
		return b->carried;
	return a->to->pos < b->to->pos;
}

static void hook_up(struct nki_kernel *k)
{
	for (struct nki_edge_priv *e = k->edges; e; e = e->next) {
		e->signal_pos = 2 * e->from->pos + 1;
		e->wait_pos = 2 * e->to->pos;
		e->next_wait = e->to->waits;
		e->to->waits = e;
		e->next_signal = e->from->signals;
		e->from->signals = e;
	}
}

/*
 * A transfer has one semaphore update. Its first consumer passes the news on to
 * the others, before its own instruction.
 */
static void make_relays(struct nki_point *p)
{
	struct nki_edge_priv *first = p->signals, *next;

	if (p->queue == NKI_QUEUE_NONE || !first || !first->next_signal)
		return;
	for (struct nki_edge_priv *e = first->next_signal; e; e = e->next_signal) {
		if (earlier(e, first))
			first = e;
	}
	for (struct nki_edge_priv *e = p->signals; e; e = next) {
		next = e->next_signal;
		e->next_signal = NULL;
		if (e == first)
			continue;
		e->relay = first;
		e->signal_pos = first->wait_pos;
		/* The relay runs one iteration after the transfer, as the consumer does. */
		e->carried = e->carried && !first->carried;
		e->next_signal = first->relays;
		first->relays = e;
	}
	p->signals = first;
}

struct sem_key {
	unsigned int producer, consumer, depth, colour;
	bool carried;
};

struct colouring {
	struct sem_key key[NEURON_SEMAPHORES];
	/* Last edge of the sequence at hand. */
	const struct nki_edge_priv *last[NEURON_SEMAPHORES];
};

static unsigned int producer_of(const struct nki_edge_priv *e)
{
	if (e->relay)
		return e->relay->to->engine;
	return e->from->queue == NKI_QUEUE_NONE ? e->from->engine : NKI_ENGINES + e->from->queue;
}

static int pick_semaphore(struct nki_kernel *k, struct colouring *c, struct nki_edge_priv *e)
{
	struct sem_key key = { producer_of(e), e->to->engine, e->depth, 0, e->carried };

	for (unsigned int s = 0; s < k->semaphores; s++) {
		const struct nki_edge_priv *last = c->last[s];

		if (c->key[s].producer != key.producer || c->key[s].consumer != key.consumer ||
		    c->key[s].depth != key.depth || c->key[s].carried != key.carried)
			continue;
		if (!last || (last->loop == e->loop && last->signal_pos < e->signal_pos &&
			      last->wait_pos < e->wait_pos))
			return s;
	}
	if (k->semaphores == (k->peer ? NKI_CORE_SEMAPHORES : NEURON_SEMAPHORES))
		return -1;
	c->key[k->semaphores] = key;
	return k->semaphores++;
}

static int by_sequence(const void *a, const void *b)
{
	const struct nki_edge_priv *x = *(struct nki_edge_priv *const *)a;
	const struct nki_edge_priv *y = *(struct nki_edge_priv *const *)b;

	unsigned int lx = x->loop ? x->loop->number : 0, ly = y->loop ? y->loop->number : 0;

	if (lx != ly)
		return lx < ly ? -1 : 1;
	if (x->signal_pos != y->signal_pos)
		return x->signal_pos < y->signal_pos ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/*
 * A semaphore counts, so its n-th wait ends with its n-th signal: edges share one
 * only when signals and waits come in the same order, which within a sequence is
 * checked here; sequences of one depth follow each other in every stream.
 */
static int colour(struct nki_kernel *k)
{
	struct colouring *c = calloc(1, sizeof(*c));
	struct nki_edge_priv **list = calloc(k->edge_count + 1, sizeof(*list));
	unsigned int n = 0;
	int ret = c && list ? 0 : -ENOMEM;

	for (struct nki_edge_priv *e = k->edges; e && !ret; e = e->next)
		list[n++] = e;
	if (!ret)
		qsort(list, n, sizeof(*list), by_sequence);
	for (unsigned int i = 0; i < n && !ret; i++) {
		int sem;

		if (i && list[i]->loop != list[i - 1]->loop)
			memset(c->last, 0, sizeof(c->last));
		sem = pick_semaphore(k, c, list[i]);
		if (sem < 0) {
			nki_fail(k, (struct nki_loc){ "nki", 0, "semaphores" },
				 "the program needs more than %d semaphores",
				 k->peer ? NKI_CORE_SEMAPHORES : NEURON_SEMAPHORES);
			ret = -EINVAL;
			break;
		}
		list[i]->sem = sem;
		c->last[sem] = list[i];
	}
	free(list);
	free(c);
	return ret;
}

int nki_place_semaphores(struct nki_kernel *k)
{
	int ret;

	nki_free_chunks(&k->build_chunks);
	free(k->edge_list);
	k->edge_list = NULL;
	k->edges = NULL;
	k->edges_tail = &k->edges;
	k->edge_count = 0;
	k->semaphores = 0;
	reset_points(&k->prologue);
	reset_points(&k->seq);
	ret = analyse(k, NULL, &k->prologue, &k->seq);
	if (ret)
		return ret;
	hook_up(k);
	for (struct nki_edge_priv *e = k->edges; e; e = e->next)
		make_relays(e->from);
	return colour(k);
}
