// SPDX-License-Identifier: MIT
/* Device memory with an owner, copies, and the report when memory is exhausted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static LIST_HEAD(, mem) mems = LIST_HEAD_INITIALIZER(mems);
static pthread_mutex_t mems_lock = PTHREAD_MUTEX_INITIALIZER;

/* Column titles and usage names of the public runtime's report. */
static const struct {
	const char *title;
	const char *usage;
} categories[MEM_CATEGORIES] = {
	[MEM_CODE] = { "Model Code", "code" },
	[MEM_CONSTANTS] = { "Model Constants", "constants" },
	[MEM_TENSORS] = { "Tensors", "tensors" },
	[MEM_SCRATCH] = { "Shared Scratchpad", "scratchpad" },
	[MEM_RUNTIME] = { "Runtime", "runtime" },
	[MEM_PROFILE] = { "Profiler Buffers", "profiler" },
};

/* ---- report -------------------------------------------------------------------- */

struct row {
	uint64_t bytes[MEM_CATEGORIES];
	uint64_t total;
};

static void format_size(char *text, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB" };
	unsigned int u = 0;
	double value = bytes;

	while (value >= 1024 && u < ARRAY_SIZE(units) - 1) {
		value /= 1024;
		u++;
	}
	snprintf(text, size, "%.3f%s", value, units[u]);
}

static void print_row(FILE *out, const char *name, const struct row *row)
{
	char text[32];

	format_size(text, sizeof(text), row->total);
	fprintf(out, "%-24.24s %12s", name, text);
	for (int c = 0; c < MEM_CATEGORIES; c++) {
		format_size(text, sizeof(text), row->bytes[c]);
		fprintf(out, " %17s", text);
	}
	fputc('\n', out);
}

/* Sum of this process's memory on a stack, of one core and owner when given. */
static struct row sum(const struct vcore *vcore, int vnc, const char *owner)
{
	struct row row = { 0 };
	struct mem *m;

	LIST_FOREACH(m, &mems, link) {
		if (m->device != vcore->device || m->bo->mem != DEV_MEM_HBM ||
		    m->bo->stack != vcore->stack)
			continue;
		if ((vnc >= 0 && m->vnc != vnc) || (owner && strcmp(owner, m->owner)))
			continue;
		row.bytes[m->category] += m->bo->size;
		row.total += m->bo->size;
	}
	return row;
}

static void print_cores(FILE *out, const struct vcore *vcore)
{
	char name[32 + NEFF_NAME_BYTES];
	struct row row;
	struct mem *m;

	for (unsigned int i = 0; i < nrt_state.vcore_count; i++) {
		const struct vcore *v = &nrt_state.vcores[i];

		if (v->device != vcore->device || v->stack != vcore->stack)
			continue;
		row = sum(vcore, i, NULL);
		snprintf(name, sizeof(name), " \\_NC %u", v->first_core);
		print_row(out, name, &row);
		LIST_FOREACH(m, &mems, link) {
			if (m->vnc != (int)i || m->category != MEM_CODE || m->device != v->device)
				continue;
			row = sum(vcore, i, m->owner);
			snprintf(name, sizeof(name), "  \\_NEFF %s", m->owner);
			print_row(out, name, &row);
		}
	}
}

static void print_report(FILE *out, const struct vcore *vcore, uint64_t used)
{
	struct row row = sum(vcore, -1, NULL);
	char own[32], all[32], limit[32];

	format_size(own, sizeof(own), row.total);
	format_size(all, sizeof(all), used);
	format_size(limit, sizeof(limit), vcore->device->dev->info.hbm_stack_size);
	fprintf(out, "Usage breakdown on ND %u HBM %u: %s of this process, %s of all processes, limit %s\n",
		vcore->device->index, vcore->stack, own, all, limit);
	fprintf(out, "%-24s %12s", "", "TOTAL");
	for (int c = 0; c < MEM_CATEGORIES; c++)
		fprintf(out, " %17s", categories[c].title);
	fputc('\n', out);
	print_row(out, "Overall", &row);
	print_cores(out, vcore);
}

static void save_report(const struct vcore *vcore, const char *text, size_t size)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/neuron_mem_table_device_%u_hbm_%u.log",
		 vcore->device->index, vcore->stack);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
	if (fd < 0)
		return;
	if (write(fd, text, size) != (ssize_t)size)
		log_warn("TDRV", "%s: %s", path, strerror(errno));
	close(fd);
}

static void report_oom(const struct mem_request *r)
{
	struct vcore *v = r->vcore;
	char *text = NULL, *line, *save;
	uint64_t used = 0;
	char size[32];
	size_t length;
	FILE *out;

	format_size(size, sizeof(size), r->size);
	if (r->mem == DEV_MEM_HOST) {
		log_err("TDRV", "Failed to allocate %s of host memory (usage: %s, owner: %s)",
			size, categories[r->category].usage, r->owner);
		return;
	}
	log_err("TDRV", "Failed to allocate %s (alignment: none, usage: %s) on ND %u:NC %u",
		size, categories[r->category].usage, v->device->index, v->first_core);
	nrt_state.backend->mem_used(v->device->dev, v->stack, &used);
	out = open_memstream(&text, &length);
	if (!out)
		return;
	pthread_mutex_lock(&mems_lock);
	print_report(out, v, used);
	pthread_mutex_unlock(&mems_lock);
	fclose(out);
	save_report(v, text, length);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_err("TDRV", "%s", line);
	free(text);
}

/* ---- allocation ------------------------------------------------------------------- */

static int devmem_alloc_bo(const struct mem_request *r, struct mem *m)
{
	const struct dev_backend *b = nrt_state.backend;
	uint32_t mask = r->mem == DEV_MEM_HBM ? 1u << r->vcore->stack : 0;
	int ret;

	ret = b->bo_alloc(r->vcore->device->dev, r->size, r->mem, mask, &m->bo);
	if (ret || r->mem != DEV_MEM_HOST)
		return ret;
	ret = b->bo_map(m->bo);
	if (ret)
		b->bo_free(m->bo);
	return ret;
}

NRT_STATUS devdevmem_alloc(const struct mem_request *r, struct mem **mem)
{
	struct mem *m = calloc(1, sizeof(*m));
	int ret = -ENOMEM;

	*mem = NULL;
	if (m)
		m->owner = strdup(r->owner);
	if (m && m->owner)
		ret = devmem_alloc_bo(r, m);
	if (ret) {
		if (ret == -ENOMEM || ret == -ENOSPC)
			report_oom(r);
		else
			log_err("TDRV", "Allocation of %zu bytes for %s failed: %s", r->size,
				r->owner, strerror(-ret));
		if (m)
			free(m->owner);
		free(m);
		return status_of(ret);
	}
	m->device = r->vcore->device;
	m->category = r->category;
	m->vnc = r->vcore->index;
	pthread_mutex_lock(&mems_lock);
	LIST_INSERT_HEAD(&mems, m, link);
	pthread_mutex_unlock(&mems_lock);
	*mem = m;
	return NRT_SUCCESS;
}

void devmem_free(struct mem *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&mems_lock);
	LIST_REMOVE(m, link);
	pthread_mutex_unlock(&mems_lock);
	nrt_state.backend->bo_free(m->bo);
	free(m->owner);
	free(m);
}

void memory_forget(void)
{
	LIST_INIT(&mems);
	mems_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- copies ------------------------------------------------------------------------ */

/* The lock is held while a value is taken and its job queued: points must rise. */
static struct dev_sync copy_begin(struct nrt_device *d)
{
	pthread_mutex_lock(&d->copy_lock);
	return (struct dev_sync){ .signal = { d->copies, d->copy_value + 1 } };
}

static int copy_end(struct nrt_device *d, const struct dev_sync *sync, int ret)
{
	if (!ret)
		d->copy_value = sync->signal.value;
	pthread_mutex_unlock(&d->copy_lock);
	return ret ?: nrt_state.backend->wait(sync->signal, -1);
}

int device_copy(struct nrt_device *d, struct dev_loc dst, struct dev_loc src, size_t size)
{
	struct dev_sync sync = copy_begin(d);

	return copy_end(d, &sync, nrt_state.backend->copy(d->dev, dst, src, size, &sync));
}

int device_fill(struct nrt_device *d, struct dev_bo *bo, size_t offset, size_t size,
		uint32_t pattern)
{
	struct dev_sync sync = copy_begin(d);

	return copy_end(d, &sync,
			nrt_state.backend->fill(d->dev, bo, offset, size, pattern, &sync));
}
