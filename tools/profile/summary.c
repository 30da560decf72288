// SPDX-License-Identifier: MIT
/* Shares, stalls and rates of a window of a trace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile_view.h"
#include "profile_priv.h"

static const char *const engine_names[NEURON_ENGINE_COUNT] = {
	[NEURON_ENGINE_PE] = "PE", [NEURON_ENGINE_ACT] = "ACT", [NEURON_ENGINE_POOL] = "POOL",
	[NEURON_ENGINE_DMA] = "DMA", [NEURON_ENGINE_DVE] = "DVE", [NEURON_ENGINE_SP] = "SP",
	[NEURON_ENGINE_CC] = "CC",
};

/*
 * Published rates: NKI architecture guides (PE clock; 128 x 128 array) and the NKI
 * DMA bandwidth guide (bytes a nanosecond of one of 16 DMA engines).
 */
static const struct {
	unsigned int nc_version;
	double pe_ghz;
	double dma_engine;
} rates[] = {
	{ 2, 2.8, 17 }, { 3, 2.4, 23 }, { 4, 2.4, 33 },
};

#define PE_MACS		(128.0 * 128.0)
#define DMA_ENGINES	16.0

const char *profile_engine_name(unsigned int engine)
{
	return engine < NEURON_ENGINE_COUNT && engine_names[engine] ? engine_names[engine] : "?";
}

double profile_ticks_to_us(uint64_t ticks)
{
	return ticks * 1e6 / NEURON_TICK_HZ;
}

int profile_resolve(const struct profile_file *file, const struct profile_view *view,
		    struct profile_span *span)
{
	if (view->execution >= file->count || view->core >= file->core_count)
		return -ENOENT;
	span->execution = &file->executions[view->execution];
	span->from = view->from;
	span->to = view->to ? view->to : span->execution->header.end_ticks;
	return span->from < span->to ? 0 : -ENOENT;
}

uint64_t profile_overlap(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
	if (start < from)
		start = from;
	if (end > to)
		end = to;
	return start < end ? end - start : 0;
}

void profile_walk_init(struct profile_walk *w)
{
	memset(w, 0, sizeof(*w));
}

/* Records come in order of start, so what is covered grows only at its end. */
void profile_walk(struct profile_walk *w, const struct neuron_trace_record *r,
		  struct profile_piece *p)
{
	uint64_t *covered = &w->covered[r->engine], end = r->start + r->busy;

	if (r->engine == NEURON_ENGINE_DMA || end < r->start)
		end = r->end;
	p->busy_from = r->start > *covered ? r->start : *covered;
	p->busy_to = end;
	p->wait_from = r->issue > *covered ? r->issue : *covered;
	p->wait_to = r->start;
	if (r->engine == NEURON_ENGINE_DMA)
		p->wait_to = p->wait_from;
	if (end > *covered)
		*covered = end;
}

/* Index in profile_use.wait_on of a wait. */
static unsigned int wait_slot(unsigned int kind, unsigned int engine)
{
	switch (kind) {
	case NEURON_TRACE_WAIT_SEMAPHORE:
	case NEURON_TRACE_WAIT_EVENT:
		return engine < NEURON_ENGINE_COUNT ? engine : 0;
	case NEURON_TRACE_WAIT_BANK:
		return NEURON_ENGINE_COUNT;
	case NEURON_TRACE_WAIT_DMA:
		return NEURON_ENGINE_DMA;
	default:
		return 0;
	}
}

static unsigned int waited_on(const struct neuron_trace_record *r)
{
	return wait_slot(r->wait, r->wait_engine);
}

/* Each wait of a record to its cause; what none of them covers to the last. */
static void add_waits(struct profile_summary *sum, struct profile_use *use,
		      const struct neuron_trace_record *r, const struct profile_piece *p,
		      uint64_t waited)
{
	uint64_t from = p->wait_from > sum->from ? p->wait_from : sum->from;
	uint64_t to = p->wait_to < sum->to ? p->wait_to : sum->to, at = r->issue, part;
	unsigned int i;

	for (i = 0; i < NEURON_TRACE_WAITS && r->waits[i].kind; i++) {
		part = profile_overlap(at, at + r->waits[i].ticks, from, to);
		if (part > waited)
			part = waited;
		use->wait_on[wait_slot(r->waits[i].kind, r->waits[i].engine)] += part;
		waited -= part;
		at += r->waits[i].ticks;
	}
	use->wait_on[waited_on(r)] += waited;
}

/* --- stalls, by engine and source instruction ---------------------------------- */

struct stalls {
	struct profile_stall *table;	/* open addressing, by engine and debug_id */
	uint64_t *longest;
	size_t cap;
	size_t count;
};

static size_t stall_slot(const struct stalls *s, const struct neuron_trace_record *r)
{
	size_t i = (r->debug_id * 2654435761u + r->engine * 97u) & (s->cap - 1);

	while (s->table[i].record && (s->table[i].record->engine != r->engine ||
				      s->table[i].record->debug_id != r->debug_id))
		i = (i + 1) & (s->cap - 1);
	return i;
}

static int stalls_grow(struct stalls *s)
{
	struct stalls old = *s;
	size_t i;

	s->cap = old.cap ? 2 * old.cap : 256;
	s->table = calloc(s->cap, sizeof(*s->table));
	s->longest = calloc(s->cap, sizeof(*s->longest));
	if (!s->table || !s->longest) {
		free(s->table);
		free(s->longest);
		*s = old;
		return -ENOMEM;
	}
	for (i = 0; i < old.cap; i++) {
		if (old.table[i].record) {
			size_t to = stall_slot(s, old.table[i].record);

			s->table[to] = old.table[i];
			s->longest[to] = old.longest[i];
		}
	}
	free(old.table);
	free(old.longest);
	return 0;
}

static int stall_add(struct stalls *s, const struct neuron_trace_record *r, uint64_t ticks)
{
	size_t i;

	if (2 * (s->count + 1) > s->cap && stalls_grow(s))
		return -ENOMEM;
	i = stall_slot(s, r);
	if (!s->table[i].record)
		s->count++;
	s->table[i].ticks += ticks;
	s->table[i].times++;
	if (!s->table[i].record || ticks > s->longest[i]) {
		s->table[i].record = r;
		s->longest[i] = ticks;
	}
	return 0;
}

/*
 * An engine that has little to do waits most, and that costs nothing. So waits count
 * by how much of the window their engine works.
 */
static double cost(const struct profile_summary *sum, const struct profile_stall *s)
{
	return (double)s->ticks * sum->use[s->record->engine].busy;
}

static void stalls_top(const struct stalls *s, struct profile_summary *sum)
{
	unsigned int n;
	size_t i;

	for (i = 0; i < s->cap; i++) {
		if (!s->table[i].record)
			continue;
		for (n = sum->stalls; n > 0 && cost(sum, &sum->stall[n - 1]) < cost(sum, &s->table[i]); n--)
			if (n < PROFILE_STALLS)
				sum->stall[n] = sum->stall[n - 1];
		if (n < PROFILE_STALLS) {
			sum->stall[n] = s->table[i];
			if (sum->stalls < PROFILE_STALLS)
				sum->stalls++;
		}
	}
}

static int add_record(struct profile_summary *sum, struct stalls *stalls,
		      const struct neuron_trace_record *r, const struct profile_piece *p)
{
	struct profile_use *use = &sum->use[r->engine];
	uint64_t waited = profile_overlap(p->wait_from, p->wait_to, sum->from, sum->to);
	uint64_t length = p->busy_to > r->start ? p->busy_to - r->start : 0, inside;

	use->busy += profile_overlap(p->busy_from, p->busy_to, sum->from, sum->to);
	use->waiting += waited;
	add_waits(sum, use, r, p, waited);
	if (r->start >= sum->from && r->start < sum->to)
		use->instructions++;
	inside = profile_overlap(r->start, p->busy_to, sum->from, sum->to);
	if (length && inside) {
		sum->macs += (double)r->macs * inside / length;
		if (r->engine == NEURON_ENGINE_DMA)
			sum->dma_bytes += (double)r->bytes * inside / length;
	}
	/* SP only triggers others: its waiting is theirs. */
	if (!waited || !waited_on(r) || r->engine == NEURON_ENGINE_SP)
		return 0;
	return stall_add(stalls, r, waited);
}

static void finish(const struct profile_file *file, struct profile_summary *sum,
		   unsigned int nc_version)
{
	double ns = profile_ticks_to_us(sum->to - sum->from) * 1000;
	uint64_t length = sum->to - sum->from, used;
	unsigned int e, i;

	for (e = 0; e < NEURON_ENGINE_COUNT; e++) {
		used = sum->use[e].busy + sum->use[e].waiting;
		sum->use[e].idle = used < length ? length - used : 0;
	}
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (rates[i].nc_version != nc_version)
			continue;
		sum->mac_peak = PE_MACS * rates[i].pe_ghz * ns;
		sum->dma_peak = DMA_ENGINES * rates[i].dma_engine * ns;
	}
}

int profile_summarize(const struct profile_file *file, const struct profile_view *view,
		      struct profile_summary *sum)
{
	struct stalls stalls = { 0 };
	struct profile_walk walk;
	struct profile_piece piece;
	struct profile_span span;
	uint64_t i;
	int ret = profile_resolve(file, view, &span);

	memset(sum, 0, sizeof(*sum));
	if (ret)
		return ret;
	sum->from = span.from;
	sum->to = span.to;
	profile_walk_init(&walk);
	for (i = 0; i < span.execution->header.records && !ret; i++) {
		const struct neuron_trace_record *r = &span.execution->records[i];

		if (r->core != view->core || r->engine >= NEURON_ENGINE_COUNT)
			continue;
		profile_walk(&walk, r, &piece);
		ret = add_record(sum, &stalls, r, &piece);
	}
	if (!ret) {
		stalls_top(&stalls, sum);
		finish(file, sum, span.execution->header.nc_version);
	}
	free(stalls.table);
	free(stalls.longest);
	return ret;
}

const char *profile_bound(const struct profile_summary *sum)
{
	unsigned int e, best = NEURON_ENGINE_PE;

	for (e = 1; e < NEURON_ENGINE_COUNT; e++)
		if (sum->use[e].busy > sum->use[best].busy)
			best = e;
	return profile_engine_name(best);
}

static bool same_line(const struct neff_line *line, const char *file_name, uint32_t number)
{
	size_t n, m;

	if (!line || line->line != number)
		return false;
	if (!file_name)
		return true;
	n = strlen(line->file);
	m = strlen(file_name);
	return n >= m && !strcmp(line->file + n - m, file_name) &&
	       (n == m || line->file[n - m - 1] == '/');
}

/* One instruction stands for the line: a line may emit several. */
int profile_find_step(const struct profile_file *file, const char *file_name, uint32_t line,
		      unsigned int step, struct profile_view *view)
{
	const struct profile_execution *x;
	const struct neuron_trace_record *first = NULL, *r;
	unsigned int seen = 0;
	uint64_t i;

	if (view->execution >= file->count)
		return -ENOENT;
	x = &file->executions[view->execution];
	for (i = 0; i < x->header.records; i++) {
		r = &x->records[i];
		if (r->core != view->core || r->engine == NEURON_ENGINE_DMA ||
		    !same_line(profile_line(file, r->core, r->debug_id), file_name, line))
			continue;
		if (!first)
			first = r;
		if (r->engine != first->engine || r->pc != first->pc)
			continue;
		if (seen == step)
			view->from = r->start;
		if (seen++ == step + 1) {
			view->to = r->start;
			return 0;
		}
	}
	if (seen != step + 1)
		return -ENOENT;
	view->to = x->header.end_ticks;
	return view->from < view->to ? 0 : -ENOENT;
}
