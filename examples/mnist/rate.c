// SPDX-License-Identifier: MIT
/*
 * How long a step takes in modelled time and what bounds it, from a trace.
 */
#include <string.h>

#include "neuron/isa.h"
#include "profile_view.h"
#include "run.h"

enum {
	/* Away from both ends of the epoch. */
	FIRST = 10,
	LAST = 60,
};

/* From one step to the next: an instruction that each has once. */
static const struct neff_line *step_line(const struct profile_file *file)
{
	const struct profile_execution *e = &file->executions[0];

	for (uint64_t i = 0; i < e->header.records; i++) {
		const struct neuron_trace_record *r = &e->records[i];

		if (r->opcode == NEURON_OP_RECIPROCAL)
			return profile_line(file, r->core, r->debug_id);
	}
	return NULL;
}

static void print_row(const struct profile_file *file, const struct profile_summary *s)
{
	static const unsigned int engines[] = {
		NEURON_ENGINE_PE, NEURON_ENGINE_ACT, NEURON_ENGINE_DVE, NEURON_ENGINE_POOL,
		NEURON_ENGINE_DMA,
	};
	const char *bound = profile_bound(s);
	double total = (double)(s->to - s->from), share = 0;

	printf("  %-5s %9.2f   ", file->arch, profile_ticks_to_us(s->to - s->from) / (LAST - FIRST));
	for (unsigned int i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		double busy = 100 * (double)s->use[engines[i]].busy / total;

		printf(" %5.0f", busy);
		if (!strcmp(profile_engine_name(engines[i]), bound))
			share = busy;
	}
	/* Where no engine is busy most of the time, the way from one to the next counts. */
	printf("   %s%s\n", bound, share < 80 ? ", and the latency from engine to engine" : "");
}

int show_rate(const char *path)
{
	struct profile_view first = { .execution = 0 }, last = { .execution = 0 };
	struct profile_summary summary;
	struct profile_file *file;
	const struct neff_line *line;
	char error[256];
	int err = -1;

	if (profile_read(path, &file, error, sizeof(error)))
		return fail("%s: %s", path, error);
	line = file->count ? step_line(file) : NULL;
	if (!line || profile_find_step(file, line->file, line->line, FIRST, &first) ||
	    profile_find_step(file, line->file, line->line, LAST, &last)) {
		fail("%s: no %d steps in the trace", path, LAST + 1);
	} else {
		first.to = last.from;
		err = profile_summarize(file, &first, &summary);
		if (err)
			err = fail("%s: cannot be analysed", path);
		else
			print_row(file, &summary);
	}
	profile_close(file);
	return err;
}
