// SPDX-License-Identifier: MIT
/* Samples of the counters, from the driver or from a recording, and their rates. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "top.h"

struct top_source {
	struct accel_list list;
	FILE *replay;
	bool owned;
	unsigned long line;
};

struct top_source *top_source_open(char *error, size_t size)
{
	struct top_source *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(error, size, "out of memory");
		return NULL;
	}
	if (accel_open(&s->list)) {
		snprintf(error, size, "%s", s->list.error);
		top_source_close(s);
		return NULL;
	}
	return s;
}

struct top_source *top_source_replay(const char *path, char *error, size_t size)
{
	struct top_source *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(error, size, "out of memory");
		return NULL;
	}
	s->owned = strcmp(path, "-");
	s->replay = s->owned ? fopen(path, "re") : stdin;
	if (!s->replay) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		free(s);
		return NULL;
	}
	return s;
}

void top_source_close(struct top_source *s)
{
	if (!s)
		return;
	if (s->replay && s->owned)
		fclose(s->replay);
	accel_close(&s->list);
	free(s);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int sample_dev(struct accel_dev *from, struct top_dev *to)
{
	unsigned int i;
	int ret = accel_refresh(from);

	if (ret)
		return ret;
	snprintf(to->bdf, sizeof(to->bdf), "%s", from->bdf);
	snprintf(to->arch, sizeof(to->arch), "%s", from->arch);
	to->core_count = from->device.core_count;
	for (i = 0; i < to->core_count; i++)
		to->core[i].raw = from->cores[i];
	for (i = 0; i < from->device.hbm_stacks; i++) {
		to->hbm_size += from->regions[i].size;
		to->hbm_used += from->regions[i].used;
	}
	return 0;
}

static int sample_driver(struct top_source *s, struct top_state *state)
{
	struct accel_client *clients;
	size_t count, i;
	unsigned int d;
	int ret;

	state->devs = calloc(s->list.count, sizeof(*state->devs));
	if (!state->devs)
		return -ENOMEM;
	state->dev_count = s->list.count;
	state->ns = now_ns();
	for (d = 0; d < s->list.count; d++) {
		ret = sample_dev(&s->list.devs[d], &state->devs[d]);
		if (ret)
			return ret;
	}
	ret = accel_clients(&s->list, &clients, &count);
	if (ret)
		return ret;
	state->processes = calloc(count + 1, sizeof(*state->processes));
	if (!state->processes) {
		free(clients);
		return -ENOMEM;
	}
	for (i = 0; i < count; i++)
		state->processes[i].client = clients[i];
	state->process_count = count;
	free(clients);
	return 0;
}

static int sample_replay(struct top_source *s, struct top_state *state)
{
	char *text = NULL;
	size_t room = 0;
	json_t *line;
	int ret;

	if (getline(&text, &room, s->replay) < 0) {
		free(text);
		return ferror(s->replay) ? -EIO : -ENODATA;
	}
	s->line++;
	line = json_loads(text, 0, NULL);
	free(text);
	ret = line ? top_from_json(line, state) : -EINVAL;
	json_decref(line);
	return ret;
}

/* --- rates ------------------------------------------------------------------------- */

/* Counters of a chip that was reset start again. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

static void rate_core(struct top_core *now, const struct top_core *before, double seconds)
{
	const struct drm_neuron_query_core *a = &before->raw, *b = &now->raw;
	uint64_t modelled = since(b->modelled_ns, a->modelled_ns);
	unsigned int e;

	memcpy(now->history, before->history, sizeof(now->history));
	now->at = before->at;
	now->errors = b->faults;
	now->wall = since(b->wall_busy_ns, a->wall_busy_ns) / seconds / 1e7;
	if (now->wall > 100)
		now->wall = 100;
	now->jobs = since(b->jobs, a->jobs) / seconds;
	/* Modelled figures come when a job ends: a long one keeps those of the last. */
	for (e = 0; e < NEURON_ENGINE_COUNT; e++) {
		now->busy[e] = before->busy[e];
		if (modelled)
			now->busy[e] = 100.0 * since(b->engine_ns[e], a->engine_ns[e]) / modelled;
	}
	now->tflops = before->tflops;
	if (modelled)
		now->tflops = 2e-3 * since(b->pe_macs, a->pe_macs) / modelled;
	now->history[now->at] = now->wall;
	now->at = (now->at + 1) % TOP_HISTORY;
}

static const struct top_dev *same_dev(const struct top_state *state, const struct top_dev *dev)
{
	unsigned int i;

	for (i = 0; i < state->dev_count; i++)
		if (!strcmp(state->devs[i].bdf, dev->bdf))
			return &state->devs[i];
	return NULL;
}

static void first_rates(struct top_core *core)
{
	unsigned int e;

	core->errors = core->raw.faults;
	core->tflops = -1;
	for (e = 0; e < NEURON_ENGINE_COUNT; e++)
		core->busy[e] = -1;
}

static void rate_process(struct top_process *p, const struct top_state *before, double seconds)
{
	uint64_t ns = 0;
	unsigned int c;
	size_t i;

	for (i = 0; i < before->process_count; i++) {
		const struct accel_client *old = &before->processes[i].client;

		if (old->pid != p->client.pid || old->dev != p->client.dev)
			continue;
		for (c = 0; c < ACCEL_MAX_CORES; c++)
			ns += since(p->client.core_ns[c], old->core_ns[c]);
		p->wall = ns / seconds / 1e7;
	}
}

static void rates(struct top_state *now, const struct top_state *before)
{
	unsigned int d, c;
	size_t i;

	now->seconds = before->ns && now->ns > before->ns ? (now->ns - before->ns) / 1e9 : 0;
	for (d = 0; d < now->dev_count; d++) {
		const struct top_dev *old = now->seconds > 0 ? same_dev(before, &now->devs[d]) : NULL;

		for (c = 0; c < now->devs[d].core_count; c++) {
			if (old && c < old->core_count)
				rate_core(&now->devs[d].core[c], &old->core[c], now->seconds);
			else
				first_rates(&now->devs[d].core[c]);
		}
	}
	for (i = 0; i < now->process_count && now->seconds > 0; i++)
		rate_process(&now->processes[i], before, now->seconds);
}

int top_sample(struct top_source *source, struct top_state *state)
{
	struct top_state next = { 0 };
	int ret = source->replay ? sample_replay(source, &next) : sample_driver(source, &next);

	if (ret) {
		top_state_free(&next);
		return ret;
	}
	rates(&next, state);
	top_state_free(state);
	*state = next;
	return 0;
}

void top_state_free(struct top_state *state)
{
	free(state->devs);
	free(state->processes);
	memset(state, 0, sizeof(*state));
}
