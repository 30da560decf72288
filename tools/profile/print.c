// SPDX-License-Identifier: MIT
/* The text timeline. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile_priv.h"

#define DEFAULT_WIDTH	60
#define MIN_WIDTH	10
#define MAX_WIDTH	400

#define GREEN	"\033[32m"
#define YELLOW	"\033[33m"
#define PLAIN	"\033[0m"

static const unsigned int order[] = {
	NEURON_ENGINE_PE, NEURON_ENGINE_ACT, NEURON_ENGINE_DVE, NEURON_ENGINE_POOL,
	NEURON_ENGINE_SP, NEURON_ENGINE_CC, NEURON_ENGINE_DMA,
};

#define ENGINES	(sizeof(order) / sizeof(order[0]))

/* Ticks by column. */
struct bars {
	unsigned int width;
	double column;		/* ticks of a column */
	double busy[NEURON_ENGINE_COUNT][MAX_WIDTH];
	double waiting[NEURON_ENGINE_COUNT][MAX_WIDTH];
};

static void spread(const struct bars *b, double *cells, const struct profile_span *span,
		   uint64_t from, uint64_t to)
{
	double at, end;
	unsigned int c;

	if (from < span->from)
		from = span->from;
	if (to > span->to)
		to = span->to;
	if (from >= to)
		return;
	at = from - span->from;
	end = to - span->from;
	for (c = at / b->column; c < b->width && at < end; c++) {
		double edge = (c + 1) * b->column, stop = edge < end ? edge : end;

		if (stop > at)
			cells[c] += stop - at;
		at = stop;
	}
}

static void fill_bars(struct bars *b, const struct profile_span *span, unsigned int core)
{
	struct profile_walk walk;
	struct profile_piece p;
	uint64_t i;

	profile_walk_init(&walk);
	for (i = 0; i < span->execution->header.records; i++) {
		const struct neuron_trace_record *r = &span->execution->records[i];

		if (r->core != core || r->engine >= NEURON_ENGINE_COUNT)
			continue;
		profile_walk(&walk, r, &p);
		spread(b, b->busy[r->engine], span, p.busy_from, p.busy_to);
		spread(b, b->waiting[r->engine], span, p.wait_from, p.wait_to);
	}
}

static const char *cell(double busy, double waiting, bool utf8)
{
	static const char *const block[] = { "▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { "_", "_", "_", "-", "-", "=", "=", "#", "#" };

	if (busy < 0.02)
		return waiting < 0.25 ? " " : utf8 ? "·" : ".";
	if (busy > 1)
		busy = 1;
	return (utf8 ? block : ascii)[(unsigned int)(busy * 8)];
}

static void print_bar(const struct bars *b, unsigned int engine, const struct profile_view *view,
		      FILE *out)
{
	unsigned int c;

	fprintf(out, "%-5s", profile_engine_name(engine));
	for (c = 0; c < b->width; c++) {
		double busy = b->busy[engine][c] / b->column;

		if (view->colour)
			fputs(busy < 0.02 ? YELLOW : GREEN, out);
		fputs(cell(busy, b->waiting[engine][c] / b->column, view->utf8), out);
	}
	if (view->colour)
		fputs(PLAIN, out);
}

static double percent(uint64_t part, const struct profile_summary *sum)
{
	return 100.0 * part / (sum->to - sum->from);
}

static void print_axis(const struct bars *b, const struct profile_summary *sum, FILE *out)
{
	char left[32], right[32];

	snprintf(left, sizeof(left), "%.2f us", profile_ticks_to_us(sum->from));
	snprintf(right, sizeof(right), "%.2f us", profile_ticks_to_us(sum->to));
	fprintf(out, "%-5s%-*s%s\n", "", (int)(b->width - strlen(right)), left, right);
}

static int print_timeline(const struct profile_view *view, const struct profile_span *span,
			  const struct profile_summary *sum, FILE *out)
{
	struct bars *b = calloc(1, sizeof(*b));
	unsigned int i;

	if (!b)
		return -ENOMEM;
	b->width = view->width ? view->width : DEFAULT_WIDTH;
	if (b->width < MIN_WIDTH)
		b->width = MIN_WIDTH;
	if (b->width > MAX_WIDTH)
		b->width = MAX_WIDTH;
	b->column = (double)(span->to - span->from) / b->width;
	fill_bars(b, span, view->core);
	print_axis(b, sum, out);
	for (i = 0; i < ENGINES; i++) {
		const struct profile_use *use = &sum->use[order[i]];

		if (order[i] == NEURON_ENGINE_CC && !use->instructions)
			continue;
		print_bar(b, order[i], view, out);
		fprintf(out, " %5.1f %% busy\n", percent(use->busy, sum));
	}
	fprintf(out, "%-5sheight: share of the time busy; %s waiting; blank: idle\n", "",
		view->utf8 ? "·" : ".");
	free(b);
	return 0;
}

/* "DMA 30.1 %, ACT 7.9 %", largest first. */
static void print_waits(const struct profile_use *use, const struct profile_summary *sum, FILE *out)
{
	bool done[NEURON_ENGINE_COUNT + 1] = { false };
	unsigned int i, e, best;
	const char *name;

	for (i = 0; i < 3; i++) {
		best = 0;
		for (e = 0; e <= NEURON_ENGINE_COUNT; e++)
			if (!done[e] && (done[best] || use->wait_on[e] > use->wait_on[best]))
				best = e;
		if (done[best] || percent(use->wait_on[best], sum) < 0.05)
			break;
		done[best] = true;
		name = best == 0 ? "pipeline" : best == NEURON_ENGINE_COUNT ? "shared memory" :
		       profile_engine_name(best);
		fprintf(out, "%s%s %.1f %%", i ? ", " : "", name, percent(use->wait_on[best], sum));
	}
}

static void print_shares(const struct profile_summary *sum, FILE *out)
{
	unsigned int i;

	fprintf(out, "\n%-6s %12s %8s %8s %8s  %s\n", "engine", "instructions", "busy", "waiting",
		"idle", "waiting for");
	for (i = 0; i < ENGINES; i++) {
		const struct profile_use *use = &sum->use[order[i]];

		if (!use->instructions && !use->busy && !use->waiting)
			continue;
		fprintf(out, "%-6s %12llu %6.1f %% %6.1f %% %6.1f %%  ", profile_engine_name(order[i]),
			(unsigned long long)use->instructions, percent(use->busy, sum),
			percent(use->waiting, sum), percent(use->idle, sum));
		print_waits(use, sum, out);
		fputc('\n', out);
	}
}

static void print_source(const struct profile_file *file, unsigned int core, uint32_t id, FILE *out)
{
	const struct neff_line *line = profile_line(file, core, id);
	const char *name = line ? line->file : "";

	/* As the compiler was told: from a build folder inside the tree. */
	while (!strncmp(name, "../", 3))
		name += 3;
	if (line)
		fprintf(out, "%s:%u %s", name, line->line, line->name);
	else
		fprintf(out, "instruction without a source line");
}

static void print_reason(const struct profile_file *file, const struct neuron_trace_record *r,
			 FILE *out)
{
	switch (r->wait) {
	case NEURON_TRACE_WAIT_SEMAPHORE:
	case NEURON_TRACE_WAIT_EVENT:
		fprintf(out, "%s %u, updated by %s at ",
			r->wait == NEURON_TRACE_WAIT_EVENT ? "event" : "semaphore", r->wait_index,
			profile_engine_name(r->wait_engine));
		print_source(file, r->core, r->wait_debug_id, out);
		break;
	case NEURON_TRACE_WAIT_BANK:
		fprintf(out, "memory shared with %s", profile_engine_name(r->wait_engine));
		break;
	case NEURON_TRACE_WAIT_DMA:
		fputs("DMA engines busy with other queues", out);
		break;
	default:
		fputs("its own pipeline", out);
	}
}

static void print_stalls(const struct profile_file *file, const struct profile_summary *sum,
			 FILE *out)
{
	unsigned int i;

	fputs(sum->stalls ? "\nCostliest stalls:\n" : "\nNo stalls.\n", out);
	for (i = 0; i < sum->stalls; i++) {
		const struct profile_stall *s = &sum->stall[i];

		fprintf(out, "  %u. %s %.2f us", i + 1, profile_engine_name(s->record->engine),
			profile_ticks_to_us(s->ticks));
		if (s->times > 1)
			fprintf(out, " in %llu waits", (unsigned long long)s->times);
		fputs(" at ", out);
		print_source(file, s->record->core, s->record->debug_id, out);
		fputs("\n     for ", out);
		print_reason(file, s->record, out);
		fputc('\n', out);
	}
}

static void print_rates(const struct profile_summary *sum, FILE *out)
{
	double ns = profile_ticks_to_us(sum->to - sum->from) * 1000;

	fputc('\n', out);
	if (sum->mac_peak > 0)
		fprintf(out, "Systolic array: %.2f %% of 128 x 128 multiply-accumulates a cycle (%.3f of %.1f TFLOP/s)\n",
			100 * sum->macs / sum->mac_peak, 2 * sum->macs / ns / 1000,
			2 * sum->mac_peak / ns / 1000);
	if (sum->dma_peak > 0)
		fprintf(out, "DMA: %.1f GB/s of %.0f GB/s (%.1f %%)\n", sum->dma_bytes / ns,
			sum->dma_peak / ns, 100 * sum->dma_bytes / sum->dma_peak);
}

static int print_path(const struct profile_file *file, const struct profile_view *view, FILE *out)
{
	struct profile_path path;
	unsigned int i;
	int ret = profile_critical_path(file, view->execution, &path);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	fprintf(out, "\nCritical path: %llu steps, %.2f us", (unsigned long long)path.steps,
		profile_ticks_to_us(path.ticks));
	for (i = 0; i < ENGINES && path.ticks; i++)
		if (path.work[order[i]])
			fprintf(out, ", %s %.1f %%", profile_engine_name(order[i]),
				100.0 * path.work[order[i]] / path.ticks);
	if (path.ticks)
		fprintf(out, ", latencies %.1f %%\n", 100.0 * path.latency / path.ticks);
	for (i = 0; i < PROFILE_STALLS && path.top[i].record; i++) {
		fprintf(out, "  %u. %s %.2f us in %llu at ", i + 1,
			profile_engine_name(path.top[i].record->engine),
			profile_ticks_to_us(path.top[i].ticks), (unsigned long long)path.top[i].times);
		print_source(file, path.top[i].record->core, path.top[i].record->debug_id, out);
		fputc('\n', out);
	}
	return 0;
}

int profile_print(const struct profile_file *file, const struct profile_view *view, FILE *out)
{
	struct profile_summary sum;
	struct profile_span span;
	int ret = profile_summarize(file, view, &sum);

	if (ret)
		return ret;
	profile_resolve(file, view, &span);
	fprintf(out, "%s on %s, core %u: %.2f us of %.2f us modelled time, %llu instructions\n",
		file->model, file->arch, file->nc + view->core,
		profile_ticks_to_us(sum.to - sum.from),
		profile_ticks_to_us(span.execution->header.end_ticks),
		(unsigned long long)span.execution->instructions);
	if (span.execution->header.dropped)
		fprintf(out, "Warning: %llu trace records did not fit the buffer\n",
			(unsigned long long)span.execution->header.dropped);
	ret = print_timeline(view, &span, &sum, out);
	if (ret)
		return ret;
	print_shares(&sum, out);
	print_stalls(file, &sum, out);
	print_rates(&sum, out);
	return print_path(file, view, out);
}
