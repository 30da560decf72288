// SPDX-License-Identifier: MIT
/* Plain text for scripts. */
#include <string.h>
#include <time.h>

#include "common/tool.h"
#include "top.h"

void top_mask_text(uint32_t mask, char *buf, size_t size)
{
	unsigned int c, first;
	size_t n = 0;

	buf[0] = '\0';
	for (c = 0; c < 32 && n < size; c++) {
		if (!(mask >> c & 1))
			continue;
		first = c;
		while (c < 31 && mask >> (c + 1) & 1)
			c++;
		n += snprintf(buf + n, size - n, first == c ? "%s%u" : "%s%u-%u", n ? "," : "", first, c);
	}
	if (!n)
		snprintf(buf, size, "-");
}

static void print_core(const struct top_core *c, unsigned int dev, unsigned int core, FILE *out)
{
	char name[24];
	unsigned int i;

	snprintf(name, sizeof(name), "%u:%u", dev, core);
	fprintf(out, "%-6s %6.1f %9.1f %7llu  ", name, c->wall, c->jobs,
		(unsigned long long)c->errors);
	for (i = 0; i < TOP_ENGINES; i++) {
		if (c->busy[top_engine[i]] < 0)
			fprintf(out, " %5s", "-");
		else
			fprintf(out, " %5.1f", c->busy[top_engine[i]]);
	}
	if (c->tflops < 0)
		fprintf(out, " %8s\n", "-");
	else
		fprintf(out, " %8.3f\n", c->tflops);
}

static void print_processes(const struct top_state *state, FILE *out)
{
	char cores[64], hbm[32], host[32], held[80];
	size_t i;

	if (!state->process_count)
		return;
	fprintf(out, "%-8s %-10s %6s %10s %10s  %s\n", "PID", "CORES", "WALL%", "HBM", "HOST", "COMMAND");
	for (i = 0; i < state->process_count; i++) {
		const struct top_process *p = &state->processes[i];

		tool_bytes(p->client.hbm, hbm, sizeof(hbm));
		tool_bytes(p->client.host, host, sizeof(host));
		top_mask_text(p->client.core_mask, cores, sizeof(cores));
		snprintf(held, sizeof(held), "%u:%s", p->client.dev, cores);
		fprintf(out, "%-8d %-10s %6.1f %10s %10s  %s\n", p->client.pid, held, p->wall, hbm, host,
			p->client.command);
	}
}

void top_print(const struct top_state *state, FILE *out)
{
	char stamp[32], used[32], size[32];
	time_t now = time(NULL);
	unsigned int d, c, i;
	struct tm tm;

	strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", localtime_r(&now, &tm));
	fprintf(out, "neuron-top %s, over %.2f s\n", stamp, state->seconds);
	for (d = 0; d < state->dev_count; d++) {
		tool_bytes(state->devs[d].hbm_used, used, sizeof(used));
		tool_bytes(state->devs[d].hbm_size, size, sizeof(size));
		fprintf(out, "device %u: %s at %s, HBM %s of %s\n", d, state->devs[d].arch,
			state->devs[d].bdf, used, size);
	}
	fprintf(out, "%-6s %6s %9s %7s  %-36s %8s\n", "", "wall", "", "", " modelled busy %", "modelled");
	fprintf(out, "%-6s %6s %9s %7s  ", "CORE", "%", "JOBS/S", "ERRORS");
	for (i = 0; i < TOP_ENGINES; i++)
		fprintf(out, " %5s", top_engine_name[i]);
	fprintf(out, " %8s\n", "TFLOP/S");
	for (d = 0; d < state->dev_count; d++)
		for (c = 0; c < state->devs[d].core_count; c++)
			print_core(&state->devs[d].core[c], d, c, out);
	print_processes(state, out);
}
