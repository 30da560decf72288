// SPDX-License-Identifier: MIT
/* One sample as a line of JSON, and back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "top.h"

const unsigned int top_engine[TOP_ENGINES] = {
	NEURON_ENGINE_PE, NEURON_ENGINE_ACT, NEURON_ENGINE_DVE, NEURON_ENGINE_POOL,
	NEURON_ENGINE_SP, NEURON_ENGINE_DMA,
};

const char *const top_engine_name[TOP_ENGINES] = { "PE", "ACT", "DVE", "POOL", "SP", "DMA" };

static json_t *core_json(const struct top_core *c, unsigned int index)
{
	json_t *engines = json_object();
	unsigned int i;

	for (i = 0; i < TOP_ENGINES; i++)
		json_object_set_new(engines, top_engine_name[i],
				    json_integer(c->raw.engine_ns[top_engine[i]]));
	return json_pack("{s:i, s:f, s:f, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
			 "core", index, "wall_utilization", c->wall, "jobs_per_second", c->jobs,
			 "claimed", c->raw.flags & DRM_NEURON_CORE_CLAIMED ? 1 : 0,
			 "wall_busy_ns", (json_int_t)c->raw.wall_busy_ns,
			 "modelled_ns", (json_int_t)c->raw.modelled_ns,
			 "jobs", (json_int_t)c->raw.jobs, "instructions", (json_int_t)c->raw.insns,
			 "errors", (json_int_t)c->raw.faults, "pe_macs", (json_int_t)c->raw.pe_macs,
			 "dma_bytes", (json_int_t)c->raw.dma_bytes, "modelled_engine_ns", engines);
}

static json_t *process_json(const struct top_process *p)
{
	json_t *ns = json_array();
	unsigned int c;

	for (c = 0; c < ACCEL_MAX_CORES; c++)
		json_array_append_new(ns, json_integer(p->client.core_ns[c]));
	return json_pack("{s:i, s:i, s:s%, s:s%, s:I, s:I, s:I, s:f, s:o}",
			 "pid", (int)p->client.pid, "neuron_device", (int)p->client.dev,
			 "name", p->client.comm, strlen(p->client.comm),
			 "command", p->client.command, strlen(p->client.command),
			 "core_mask", (json_int_t)p->client.core_mask,
			 "hbm_bytes", (json_int_t)p->client.hbm,
			 "host_bytes", (json_int_t)p->client.host,
			 "wall_utilization", p->wall, "core_wall_ns", ns);
}

json_t *top_to_json(const struct top_state *state)
{
	json_t *devs = json_array(), *processes = json_array();
	struct timespec ts;
	unsigned int d, c;
	size_t i;

	for (d = 0; d < state->dev_count; d++) {
		const struct top_dev *dev = &state->devs[d];
		json_t *cores = json_array();

		for (c = 0; c < dev->core_count; c++)
			json_array_append_new(cores, core_json(&dev->core[c], c));
		json_array_append_new(devs, json_pack("{s:i, s:s, s:s, s:I, s:I, s:o}",
			"neuron_device", d, "bdf", dev->bdf, "arch", dev->arch,
			"hbm_size", (json_int_t)dev->hbm_size, "hbm_used", (json_int_t)dev->hbm_used,
			"cores", cores));
	}
	for (i = 0; i < state->process_count; i++)
		json_array_append_new(processes, process_json(&state->processes[i]));
	clock_gettime(CLOCK_REALTIME, &ts);
	return json_pack("{s:f, s:I, s:f, s:o, s:o}", "time", ts.tv_sec + ts.tv_nsec / 1e9,
			 "monotonic_ns", (json_int_t)state->ns, "interval_s", state->seconds,
			 "devices", devs, "processes", processes);
}

/* --- and back: nothing in a recording is trusted ---------------------------------- */

static uint64_t get_number(const json_t *object, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(object, key));

	return v > 0 ? v : 0;
}

static void get_text(const json_t *object, const char *key, char *buf, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));
	size_t i;

	snprintf(buf, size, "%s", text ? text : "");
	for (i = 0; buf[i]; i++)
		if ((unsigned char)buf[i] < ' ' || buf[i] == 127)
			buf[i] = '?';
}

static void get_core(const json_t *j, struct top_core *c)
{
	const json_t *engines = json_object_get(j, "modelled_engine_ns");
	unsigned int i;

	c->raw.flags = json_is_true(json_object_get(j, "claimed")) ? DRM_NEURON_CORE_CLAIMED : 0;
	c->raw.wall_busy_ns = get_number(j, "wall_busy_ns");
	c->raw.modelled_ns = get_number(j, "modelled_ns");
	c->raw.jobs = get_number(j, "jobs");
	c->raw.insns = get_number(j, "instructions");
	c->raw.faults = get_number(j, "errors");
	c->raw.pe_macs = get_number(j, "pe_macs");
	c->raw.dma_bytes = get_number(j, "dma_bytes");
	for (i = 0; i < TOP_ENGINES; i++)
		c->raw.engine_ns[top_engine[i]] = get_number(engines, top_engine_name[i]);
}

static int get_devs(const json_t *devs, struct top_state *state)
{
	size_t n = json_array_size(devs), d, c;

	if (!n || n > ACCEL_MAX_DEVS)
		return -EINVAL;
	state->devs = calloc(n, sizeof(*state->devs));
	if (!state->devs)
		return -ENOMEM;
	state->dev_count = n;
	for (d = 0; d < n; d++) {
		const json_t *j = json_array_get(devs, d), *cores = json_object_get(j, "cores");
		struct top_dev *dev = &state->devs[d];

		get_text(j, "bdf", dev->bdf, sizeof(dev->bdf));
		get_text(j, "arch", dev->arch, sizeof(dev->arch));
		dev->hbm_size = get_number(j, "hbm_size");
		dev->hbm_used = get_number(j, "hbm_used");
		for (c = 0; c < json_array_size(cores) && c < ACCEL_MAX_CORES; c++)
			get_core(json_array_get(cores, c), &dev->core[c]);
		dev->core_count = c;
	}
	return 0;
}

static int get_processes(const json_t *list, struct top_state *state)
{
	size_t n = json_array_size(list), i, c;

	state->processes = calloc(n + 1, sizeof(*state->processes));
	if (!state->processes)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct accel_client *p = &state->processes[i].client;
		const json_t *j = json_array_get(list, i), *ns = json_object_get(j, "core_wall_ns");

		p->pid = get_number(j, "pid");
		p->dev = get_number(j, "neuron_device");
		p->core_mask = get_number(j, "core_mask");
		p->hbm = get_number(j, "hbm_bytes");
		p->host = get_number(j, "host_bytes");
		get_text(j, "name", p->comm, sizeof(p->comm));
		get_text(j, "command", p->command, sizeof(p->command));
		for (c = 0; c < json_array_size(ns) && c < ACCEL_MAX_CORES; c++)
			p->core_ns[c] = json_integer_value(json_array_get(ns, c));
	}
	state->process_count = n;
	return 0;
}

int top_from_json(const json_t *line, struct top_state *state)
{
	int ret = get_devs(json_object_get(line, "devices"), state);

	if (!ret)
		ret = get_processes(json_object_get(line, "processes"), state);
	state->ns = get_number(line, "monotonic_ns");
	return !ret && !state->ns ? -EINVAL : ret;
}
