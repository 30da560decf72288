// SPDX-License-Identifier: MIT
/*
 * neuron-ls: the chips of this machine and who uses them. Options, columns, JSON
 * keys and the failure line are those that AWS documents for its tool.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/accel.h"
#include "common/table.h"
#include "common/tool.h"

#define NAME "neuron-ls"

struct options {
	bool wide;
	bool all;
	bool json;
};

struct machine {
	struct accel_list list;
	struct accel_client *clients;
	size_t client_count;
	char type[64];
	char id[64];
	unsigned int lnc;
};

static const char help[] =
	"Usage: neuron-ls [OPTION]...\n"
	"List the Neuron devices of this machine.\n\n"
	"  -w, --wide            also PID, command line and runtime version\n"
	"  -a, --show-all-procs  with processes that do not use the runtime\n"
	"  -j, --json-output     JSON instead of a table\n"
	"  -h, --help            this text\n"
	"      --version         version\n\n"
	"Logical cores follow NEURON_LOGICAL_NC_CONFIG, as the runtime does.\n"
	"Exit status: 0, or 1 when no device can be listed.\n";

/* As AWS documents: the text of a usage error is on standard output. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "wide", no_argument, NULL, 'w' },
		{ "show-all-procs", no_argument, NULL, 'a' },
		{ "json-output", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "wajh", longs, NULL)) != -1) {
		switch (c) {
		case 'w':
			o->wide = true;
			break;
		case 'a':
			o->all = true;
			break;
		case 'j':
			o->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			exit(tool_finish(NAME));
		case 'v':
			tool_version(NAME);
			exit(tool_finish(NAME));
		default:
			printf("unknown flag `%s'\n%s", argv[optind - 1], help);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		printf("unexpected argument `%s'\n%s", argv[optind], help);
		return -EINVAL;
	}
	return 0;
}

static int fatal(const char *hint)
{
	char stamp[64];
	time_t now = time(NULL);
	struct tm tm;

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	fprintf(stderr,
		"time=\"%s\" level=fatal msg=\"Failed to load MLA system information\" "
		"error=\"failed to discover Neuron devices\" hint=\"%s\"\n", stamp, hint);
	return 1;
}

static void read_instance(struct machine *m)
{
	char text[64];

	strcpy(m->type, "unknown");
	strcpy(m->id, "unknown");
	if (tool_read_file("/sys/class/dmi/id/sys_vendor", text, sizeof(text)) <= 0 ||
	    strcmp(text, "Amazon EC2"))
		return;
	if (tool_read_file("/sys/class/dmi/id/product_name", text, sizeof(text)) > 0)
		tool_printable(m->type, sizeof(m->type), text);
	if (tool_read_file("/sys/class/dmi/id/board_asset_tag", text, sizeof(text)) > 0)
		tool_printable(m->id, sizeof(m->id), text);
}

/* Physical cores of a logical one: 1 or 2. */
static int read_lnc(struct machine *m)
{
	const char *text = getenv("NEURON_LOGICAL_NC_CONFIG");
	uint64_t lnc = m->list.devs[0].lnc;

	if (text && !tool_number(text, 1, 2, &lnc)) {
		tool_error(NAME, "NEURON_LOGICAL_NC_CONFIG=\"%s\": allowed are 1 and 2", text);
		return -EINVAL;
	}
	m->lnc = lnc;
	return 0;
}

/* Processes of a chip that are shown. */
static bool shown(const struct accel_client *c, unsigned int dev, const struct options *o)
{
	return c->dev == dev && (o->all || c->runtime[0]);
}

static unsigned int logical_cores(const struct machine *m, unsigned int dev)
{
	return m->list.devs[dev].device.core_count / m->lnc;
}

static unsigned int first_core(const struct machine *m, unsigned int dev)
{
	unsigned int first = 0, i;

	for (i = 0; i < dev; i++)
		first += logical_cores(m, i);
	return first;
}

/* Logical core @n of the chip is used by the process. */
static bool holds(const struct machine *m, const struct accel_client *c, unsigned int n)
{
	return c->core_mask >> (n * m->lnc) & ((1u << m->lnc) - 1);
}

/* --- JSON ------------------------------------------------------------------------- */

static json_t *process_json(const struct machine *m, const struct accel_client *c)
{
	json_t *cores = json_array();
	unsigned int n;

	for (n = 0; n < logical_cores(m, c->dev); n++)
		if (holds(m, c, n))
			json_array_append_new(cores, json_integer(first_core(m, c->dev) + n));
	return json_pack("{s:i, s:s%, s:s, s:o, s:I}", "pid", (int)c->pid,
			 "command", c->command, strlen(c->command),
			 "neuron_runtime_version", c->runtime[0] ? c->runtime : "NA",
			 "neuroncore_ids", cores, "memory_used", (json_int_t)c->hbm);
}

static json_t *device_json(const struct machine *m, unsigned int i, const struct options *o)
{
	const struct accel_dev *dev = &m->list.devs[i];
	json_t *ids = json_array(), *processes = json_array(), *j;
	unsigned int n;
	size_t c;

	for (n = 0; n < logical_cores(m, i); n++)
		json_array_append_new(ids, json_integer(first_core(m, i) + n));
	for (c = 0; c < m->client_count; c++)
		if (shown(&m->clients[c], i, o))
			json_array_append_new(processes, process_json(m, &m->clients[c]));
	j = json_pack("{s:i, s:s, s:s, s:s, s:n, s:i}", "neuron_device", i, "bdf", dev->bdf,
		      "cpu_affinity", dev->cpu_affinity, "numa_node", dev->numa_node,
		      "connected_to", "nc_count", logical_cores(m, i));
	if (dev->device.nc_version >= 3)
		json_object_set_new(j, "logical_neuroncore_config", json_integer(m->lnc));
	json_object_set_new(j, "memory_size", json_integer(dev->device.hbm_size));
	json_object_set_new(j, "neuroncore_ids", ids);
	json_object_set_new(j, "neuron_processes", processes);
	return j;
}

static int print_json(const struct machine *m, const struct options *o)
{
	json_t *array = json_array();
	unsigned int i;
	int ret;

	for (i = 0; i < m->list.count; i++)
		json_array_append_new(array, device_json(m, i, o));
	ret = json_dumpf(array, stdout, JSON_INDENT(4));
	json_decref(array);
	return ret;
}

/* --- table ------------------------------------------------------------------------ */

enum column { DEVICE, CORES, IDS, MEMORY, CONNECTED, BDF, AFFINITY, NUMA, PID, COMMAND, RUNTIME };

static const char *const titles[] = {
	[DEVICE] = "NEURON\nDEVICE", [CORES] = "NEURON\nCORES", [IDS] = "NEURON\nCORE IDS",
	[MEMORY] = "NEURON\nMEMORY", [CONNECTED] = "CONNECTED\nDEVICES", [BDF] = "PCI\nBDF",
	[AFFINITY] = "CPU\nAFFINITY", [NUMA] = "NUMA\nNODE", [PID] = "\nPID",
	[COMMAND] = "\nCOMMAND", [RUNTIME] = "RUNTIME\nVERSION",
};

static void device_cells(struct table *t, const struct machine *m, unsigned int i)
{
	const struct accel_dev *dev = &m->list.devs[i];
	unsigned int first = first_core(m, i), count = logical_cores(m, i);

	table_set(t, DEVICE, "%u", i);
	table_set(t, CORES, "%u", count);
	table_set(t, IDS, count > 1 ? "%u-%u" : "%u", first, first + count - 1);
	table_set(t, MEMORY, "%llu GB", (unsigned long long)dev->device.hbm_size >> 30);
	table_set(t, BDF, "%s", dev->bdf);
	table_set(t, AFFINITY, "%s", dev->cpu_affinity);
	table_set(t, NUMA, "%s", dev->numa_node);
}

static int print_table(const struct machine *m, const struct options *o)
{
	struct table *t = table_new(titles, o->wide || o->all ? RUNTIME + 1 : NUMA + 1);
	unsigned int i, rows;
	size_t c;

	if (!t)
		return -ENOMEM;
	printf("instance-type: %s\ninstance-id: %s\n", m->type, m->id);
	if (m->list.devs[0].device.nc_version >= 3)
		printf("logical-neuroncore-config: %u\n", m->lnc);
	for (i = 0; i < m->list.count; i++) {
		table_row(t, 1);
		device_cells(t, m, i);
		for (c = 0, rows = 0; c < m->client_count && (o->wide || o->all); c++) {
			const struct accel_client *p = &m->clients[c];

			if (!shown(p, i, o))
				continue;
			if (rows++)
				table_row(t, 0);
			table_set(t, PID, "%d", p->pid);
			table_set(t, COMMAND, o->wide ? "%s" : "%.40s", p->command);
			table_set(t, RUNTIME, "%s", p->runtime[0] ? p->runtime : "NA");
		}
	}
	table_print(t, stdout);
	table_free(t);
	return 0;
}

static int show(struct machine *m, const struct options *o)
{
	if (read_lnc(m))
		return 1;
	read_instance(m);
	if (accel_clients(&m->list, &m->clients, &m->client_count)) {
		tool_error(NAME, "out of memory");
		return 1;
	}
	if (o->json ? print_json(m, o) : print_table(m, o)) {
		tool_error(NAME, "output failed");
		return 1;
	}
	return tool_finish(NAME);
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct machine m = { 0 };
	int ret;

	if (parse(argc, argv, &o))
		return 1;
	if (accel_open(&m.list)) {
		ret = fatal(getenv("NEURON_RT_SIM") ?
			    "NEURON_RT_SIM is set: chips of the in-process model belong to their "
			    "process and cannot be listed" : m.list.error);
		accel_close(&m.list);
		return ret;
	}
	ret = show(&m, &o);
	free(m.clients);
	accel_close(&m.list);
	return ret;
}
