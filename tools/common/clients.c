// SPDX-License-Identifier: MIT
/* Processes that use the chips, from /proc/PID/fdinfo (drm-usage-stats). */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accel.h"
#include "tool.h"

#define ACCEL_MAJOR	261	/* include/drm/drm_accel.h */
#define MAX_SEEN	4096

/* Clients of one process: file descriptors that share a file count once. */
struct seen {
	uint64_t id[MAX_SEEN];
	unsigned int dev[MAX_SEEN];
	size_t count;
};

struct result {
	struct accel_client *clients;
	size_t count;
	size_t cap;
};

static uint64_t kib(const char *value)
{
	char unit[8] = "";
	unsigned long long v = 0;

	if (sscanf(value, "%llu %7s", &v, unit) < 1)
		return 0;
	if (!strcmp(unit, "KiB"))
		return (uint64_t)v << 10;
	if (!strcmp(unit, "MiB"))
		return (uint64_t)v << 20;
	return v;
}

static void parse_pair(struct accel_fdinfo *info, const char *key, const char *value)
{
	unsigned int core;

	if (!strcmp(key, "drm-driver")) {
		info->neuron = !strcmp(value, "neuron");
	} else if (!strcmp(key, "drm-pdev")) {
		snprintf(info->pdev, sizeof(info->pdev), "%.15s", value);
	} else if (!strcmp(key, "drm-client-id")) {
		info->client_id = strtoull(value, NULL, 10);
		info->has_client_id = true;
	} else if (!strcmp(key, "drm-total-hbm")) {
		info->client.hbm = kib(value);
	} else if (!strcmp(key, "drm-total-host")) {
		info->client.host = kib(value);
	} else if (!strcmp(key, "neuron-cores")) {
		info->client.core_mask = strtoul(value, NULL, 0);
	} else if (sscanf(key, "drm-engine-nc%u", &core) == 1 && core < ACCEL_MAX_CORES) {
		info->client.core_ns[core] = strtoull(value, NULL, 10);
	}
}

void accel_parse_fdinfo(struct accel_fdinfo *info, const char *text)
{
	char key[64], value[128];
	const char *line = text, *end, *colon;

	memset(info, 0, sizeof(*info));
	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		colon = memchr(line, ':', end - line);
		if (!colon || (size_t)(colon - line) >= sizeof(key))
			continue;
		memcpy(key, line, colon - line);
		key[colon - line] = '\0';
		colon++;
		while (colon < end && isspace((unsigned char)*colon))
			colon++;
		if ((size_t)(end - colon) >= sizeof(value))
			continue;
		memcpy(value, colon, end - colon);
		value[end - colon] = '\0';
		parse_pair(info, key, value);
	}
}

void accel_parse_maps(const char *line, char *version, size_t size)
{
	const char *name = strstr(line, "/libnrt.so");
	size_t n;

	if (!name)
		return;
	name += strlen("/libnrt.so");
	if (*name == '.')
		name++;
	n = strspn(name, "0123456789.");
	if (n >= size)
		n = size - 1;
	memcpy(version, name, n);
	version[n] = '\0';
	if (!n)
		snprintf(version, size, "unknown");
}

static void find_runtime(struct accel_client *client)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", client->pid);
	file = fopen(path, "re");
	while (file && !client->runtime[0] && getline(&line, &room, file) > 0)
		accel_parse_maps(line, client->runtime, sizeof(client->runtime));
	free(line);
	if (file)
		fclose(file);
}

static void describe(struct accel_client *client)
{
	char path[64], text[ACCEL_COMMAND];
	int n, i;

	snprintf(path, sizeof(path), "/proc/%d/comm", client->pid);
	tool_read_file(path, text, sizeof(text));
	tool_printable(client->comm, sizeof(client->comm), text);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", client->pid);
	n = tool_read_file(path, text, sizeof(text));
	for (i = 0; i + 1 < n; i++)
		if (!text[i])
			text[i] = ' ';
	tool_printable(client->command, sizeof(client->command), n > 0 ? text : client->comm);
	find_runtime(client);
}

static int find_dev(const struct accel_list *list, const char *pdev)
{
	unsigned int i;

	for (i = 0; i < list->count; i++)
		if (!strcmp(list->devs[i].bdf, pdev))
			return i;
	return -1;
}

static bool first_sight(struct seen *seen, unsigned int dev, uint64_t id)
{
	size_t i;

	for (i = 0; i < seen->count; i++)
		if (seen->id[i] == id && seen->dev[i] == dev)
			return false;
	if (seen->count == MAX_SEEN)
		return false;
	seen->id[seen->count] = id;
	seen->dev[seen->count++] = dev;
	return true;
}

/* The entry of a process on a chip, made when new. NULL: out of memory. */
static struct accel_client *entry_of(struct result *r, pid_t pid, unsigned int dev)
{
	struct accel_client *grown;
	size_t i;

	for (i = r->count; i > 0 && r->clients[i - 1].pid == pid; i--)
		if (r->clients[i - 1].dev == dev)
			return &r->clients[i - 1];
	if (r->count == r->cap) {
		grown = realloc(r->clients, (2 * r->cap + 16) * sizeof(*grown));
		if (!grown)
			return NULL;
		r->clients = grown;
		r->cap = 2 * r->cap + 16;
	}
	grown = &r->clients[r->count++];
	memset(grown, 0, sizeof(*grown));
	grown->pid = pid;
	grown->dev = dev;
	describe(grown);
	return grown;
}

static int add_fd(const struct accel_list *list, struct result *r, struct seen *seen, pid_t pid,
		  int dir, const char *fd)
{
	struct accel_client *client;
	struct accel_fdinfo info;
	char path[300], text[4096];
	struct stat st;
	unsigned int i;
	int dev;

	/* Opening fdinfo of every file of the machine would be slow. */
	if (fstatat(dir, fd, &st, 0) || !S_ISCHR(st.st_mode) || major(st.st_rdev) != ACCEL_MAJOR)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, fd);
	if (tool_read_file(path, text, sizeof(text)) <= 0)
		return 0;
	accel_parse_fdinfo(&info, text);
	dev = info.neuron ? find_dev(list, info.pdev) : -1;
	if (dev < 0 || (info.has_client_id && !first_sight(seen, dev, info.client_id)))
		return 0;
	client = entry_of(r, pid, dev);
	if (!client)
		return -ENOMEM;
	client->core_mask |= info.client.core_mask;
	client->hbm += info.client.hbm;
	client->host += info.client.host;
	for (i = 0; i < ACCEL_MAX_CORES; i++)
		client->core_ns[i] += info.client.core_ns[i];
	return 0;
}

static int add_process(const struct accel_list *list, struct result *r, pid_t pid,
		       struct seen *seen)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	seen->count = 0;
	while (!ret && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			ret = add_fd(list, r, seen, pid, dirfd(dir), entry->d_name);
	closedir(dir);
	return ret;
}

static int by_dev_and_pid(const void *a, const void *b)
{
	const struct accel_client *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

int accel_clients(const struct accel_list *list, struct accel_client **clients, size_t *count)
{
	struct seen *seen = malloc(sizeof(*seen));
	struct result r = { 0 };
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int ret = seen ? 0 : -ENOMEM;

	while (!ret && proc && (entry = readdir(proc))) {
		pid_t pid = strtol(entry->d_name, NULL, 10);

		if (isdigit((unsigned char)entry->d_name[0]) && pid != getpid())
			ret = add_process(list, &r, pid, seen);
	}
	if (proc)
		closedir(proc);
	free(seen);
	if (ret) {
		free(r.clients);
		return ret;
	}
	if (r.count)
		qsort(r.clients, r.count, sizeof(*r.clients), by_dev_and_pid);
	*clients = r.clients;
	*count = r.count;
	return 0;
}
