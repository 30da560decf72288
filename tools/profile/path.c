// SPDX-License-Identifier: MIT
/* The critical path of an execution. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile_priv.h"

#define NONE	NEURON_TRACE_NO_RECORD

/* Time on the path by source instruction. */
struct share {
	const struct neuron_trace_record *record;
	uint64_t ticks;
	uint64_t times;
};

struct walk {
	const struct neuron_trace_record *r;
	uint32_t *before;	/* the record before it in its stream */
	uint32_t n;
	struct share *share;
	size_t cap;
};

/* Records of one stream, or of one DMA queue. */
static unsigned int lane(const struct neuron_trace_record *r)
{
	unsigned int queue = r->engine == NEURON_ENGINE_DMA ? 1u + r->queue % 31 : 0;

	return (r->core % NEURON_MAX_CORES * NEURON_ENGINE_COUNT + r->engine % NEURON_ENGINE_COUNT) * 32 +
	       queue;
}

static void link_streams(struct walk *w)
{
	static const unsigned int lanes = NEURON_MAX_CORES * NEURON_ENGINE_COUNT * 32;
	uint32_t last[NEURON_MAX_CORES * NEURON_ENGINE_COUNT * 32], i;

	for (i = 0; i < lanes; i++)
		last[i] = NONE;
	for (i = 0; i < w->n; i++) {
		w->before[i] = last[lane(&w->r[i])];
		last[lane(&w->r[i])] = i;
	}
}

static uint32_t latest(const struct walk *w)
{
	uint32_t i, best = 0;

	for (i = 1; i < w->n; i++)
		if (w->r[i].end >= w->r[best].end)
			best = i;
	return best;
}

/* The last wait before the start; transfers also wait while they run. */
static const struct neuron_trace_waits *deciding(const struct neuron_trace_record *r)
{
	const struct neuron_trace_waits *w = NULL;
	unsigned int i;

	for (i = 0; i < NEURON_TRACE_WAITS && r->waits[i].kind; i++)
		if (r->waits[i].ticks && r->waits[i].kind != NEURON_TRACE_WAIT_DMA)
			w = &r->waits[i];
	return w;
}

/* Who decided when record @i started, or NONE; @when: until when that kept it. */
static uint32_t decider(const struct walk *w, uint32_t i, uint64_t *when)
{
	const struct neuron_trace_record *r = &w->r[i];
	const struct neuron_trace_waits *wait = deciding(r);
	uint32_t p = wait ? wait->record : NONE;

	if (!wait) {
		*when = r->issue;
		return w->before[i];
	}
	if (p >= i)
		p = w->before[i];
	if (p == NONE)
		return NONE;
	*when = w->r[p].end;
	if (wait->kind == NEURON_TRACE_WAIT_TRIGGER)
		*when = r->issue;
	else if (*when > r->start)	/* it only had to make room */
		*when = w->r[p].start + w->r[p].busy;
	return p;
}

static void share_add(struct walk *w, const struct neuron_trace_record *r, uint64_t ticks)
{
	size_t i = (r->debug_id * 2654435761u + r->engine * 97u) & (w->cap - 1);

	while (w->share[i].record && (w->share[i].record->engine != r->engine ||
				      w->share[i].record->core != r->core ||
				      w->share[i].record->debug_id != r->debug_id))
		i = (i + 1) & (w->cap - 1);
	w->share[i].record = r;
	w->share[i].ticks += ticks;
	w->share[i].times++;
}

/* Record @r is on the path until @until: work first, then its latency. */
static void add(struct walk *w, struct profile_path *path, const struct neuron_trace_record *r,
		uint64_t until)
{
	uint64_t busy = r->engine == NEURON_ENGINE_DMA ? r->end : r->start + r->busy;
	uint64_t length = until > r->start ? until - r->start : 0;
	uint64_t work = profile_overlap(r->start, busy, r->start, until);

	path->steps++;
	path->ticks += length;
	path->work[r->engine % NEURON_ENGINE_COUNT] += work;
	path->latency += length - work;
	share_add(w, r, work);
}

static void follow(struct walk *w, struct profile_path *path)
{
	uint32_t i = latest(w), p, left = w->n;
	uint64_t until = w->r[i].end, when = 0;

	while (left--) {
		const struct neuron_trace_record *r = &w->r[i];

		add(w, path, r, until);
		p = decider(w, i, &when);
		if (p == NONE)
			return;
		if (when > r->start)
			when = r->start;
		/* From there to the start nobody worked for it. */
		path->ticks += r->start - when;
		path->latency += r->start - when;
		until = when;
		i = p;
	}
}

static void find_top(const struct walk *w, struct profile_path *path)
{
	unsigned int n;
	size_t i;

	for (i = 0; i < w->cap; i++) {
		if (!w->share[i].record || !w->share[i].ticks)
			continue;
		for (n = PROFILE_STALLS; n && path->top[n - 1].ticks < w->share[i].ticks; n--)
			if (n < PROFILE_STALLS)
				path->top[n] = path->top[n - 1];
		if (n == PROFILE_STALLS)
			continue;
		path->top[n].record = w->share[i].record;
		path->top[n].ticks = w->share[i].ticks;
		path->top[n].times = w->share[i].times;
	}
}

int profile_critical_path(const struct profile_file *file, size_t execution,
			  struct profile_path *path)
{
	struct walk w = { 0 };
	int ret = -ENOMEM;

	memset(path, 0, sizeof(*path));
	if (execution >= file->count || !file->executions[execution].header.records ||
	    file->executions[execution].header.records >= NONE)
		return -ENOENT;
	w.r = file->executions[execution].records;
	w.n = file->executions[execution].header.records;
	for (w.cap = 256; w.cap < 2ull * w.n; w.cap *= 2)
		;
	w.before = malloc(w.n * sizeof(*w.before));
	w.share = calloc(w.cap, sizeof(*w.share));
	if (w.before && w.share) {
		link_streams(&w);
		follow(&w, path);
		find_top(&w, path);
		ret = 0;
	}
	free(w.before);
	free(w.share);
	return ret;
}
