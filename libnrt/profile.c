// SPDX-License-Identifier: MIT
/* nrt_profile_start() and nrt_profile_stop(): keep the traces of executions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "profile_file.h"

/**
 * struct profile - a trace in progress
 * @lock: held during a traced execution: there is one buffer
 * @buffer: host memory that the chip writes
 * @path: where it will be written; owned
 * @file: executions so far
 * @capacity: allocated entries of file.executions
 * @bytes: of records kept
 */
struct profile {
	pthread_mutex_t lock;
	struct mem *buffer;
	char *path;
	struct profile_file file;
	size_t capacity;
	size_t bytes;
};

void profile_free(struct profile *p)
{
	if (!p)
		return;
	devmem_free(p->buffer);
	for (size_t i = 0; i < p->file.count; i++)
		free(p->file.executions[i].records);
	free(p->file.executions);
	free(p->path);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static struct profile *profile_new(struct nrt_model *m, const char *path, NRT_STATUS *status)
{
	struct mem_request r = {
		.vcore = m->vcore, .mem = DEV_MEM_HOST,
		.size = (size_t)nrt_state.env.profile_mb << 20,
		.category = MEM_PROFILE, .owner = m->neff->name,
	};
	struct profile *p = calloc(1, sizeof(*p));

	*status = NRT_RESOURCE;
	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->path = strdup(path);
	if (p->path)
		*status = devdevmem_alloc(&r, &p->buffer);
	if (*status) {
		profile_free(p);
		return NULL;
	}
	snprintf(p->file.model, sizeof(p->file.model), "%s", m->neff->name);
	snprintf(p->file.arch, sizeof(p->file.arch), "%s", m->vcore->device->dev->info.arch);
	p->file.nd = m->vcore->device->index;
	p->file.nc = m->vcore->first_core;
	p->file.core_count = m->neff->core_count;
	/* Lent: the model lives as long as its profile. */
	memcpy(p->file.core, m->neff->core, sizeof(p->file.core));
	return p;
}

struct mem *profile_begin(struct nrt_model *m, struct profile **profile)
{
	struct neuron_trace_header *h;

	*profile = NULL;
	/* It changes with vcore.rw held for writing; an execution holds it. */
	*profile = m->profile;
	if (!*profile)
		return NULL;
	pthread_mutex_lock(&(*profile)->lock);
	h = (*profile)->buffer->bo->cpu;
	memset(h, 0, sizeof(*h));
	return (*profile)->buffer;
}

static bool make_room(struct profile *p)
{
	size_t capacity = p->capacity ? 2 * p->capacity : 16;
	struct profile_execution *bigger;

	if (p->file.count < p->capacity)
		return true;
	bigger = realloc(p->file.executions, capacity * sizeof(*bigger));
	if (!bigger)
		return false;
	p->file.executions = bigger;
	p->capacity = capacity;
	return true;
}

static void keep(struct profile *p, const nrtx_execution_t *e)
{
	struct neuron_trace_header h;
	struct profile_execution *out;
	size_t size = p->buffer->bo->size, bytes;

	memcpy(&h, p->buffer->bo->cpu, sizeof(h));
	if (h.magic != NEURON_TRACE_MAGIC || h.record_size != sizeof(*out->records) ||
	    h.records > (size - sizeof(h)) / sizeof(*out->records)) {
		log_warn("NRT", "model %s: the chip left no trace of an execution", p->file.model);
		return;
	}
	bytes = h.records * sizeof(*out->records);
	if (h.dropped)
		log_warn("NRT", "model %s: %llu trace records did not fit into %s=%u",
			 p->file.model, (unsigned long long)h.dropped,
			 env_rows[ENV_PROFILE_MB].name, nrt_state.env.profile_mb);
	if (p->bytes + bytes > size || !make_room(p)) {
		p->file.dropped_executions++;
		return;
	}
	out = &p->file.executions[p->file.count];
	*out = (struct profile_execution){
		.seqno = e->seqno, .status = e->status, .modelled_ns = e->modelled_ns,
		.wall_ns = e->wall_ns, .instructions = e->instructions, .header = h,
		.records = malloc(bytes + 1),
	};
	if (!out->records) {
		p->file.dropped_executions++;
		return;
	}
	memcpy(out->records, (char *)p->buffer->bo->cpu + sizeof(h), bytes);
	p->file.count++;
	p->bytes += bytes;
}

void profile_end(struct profile *p, const nrtx_execution_t *e)
{
	if (!p)
		return;
	keep(p, e);
	pthread_mutex_unlock(&p->lock);
}

/* The traced model of that file name; objects is held. */
static struct nrt_model *find_traced(const char *filename)
{
	struct nrt_model *m, *found = NULL;

	TAILQ_FOREACH(m, &nrt_state.models, link) {
		pthread_mutex_lock(&m->lock);
		if (!m->dead && m->profile && !strcmp(m->profile->path, filename))
			found = m;
		pthread_mutex_unlock(&m->lock);
	}
	return found;
}

/* Exchange the model's profile for @new; returns the old one. */
static struct profile *swap_profile(struct nrt_model *m, struct profile *new)
{
	struct profile *old;

	pthread_mutex_lock(&m->lock);
	old = m->profile;
	m->profile = new;
	pthread_mutex_unlock(&m->lock);
	return old;
}

NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename)
{
	struct nrt_model *m;
	NRT_STATUS status;

	if (!filename || !*filename)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	m = model_get(model, &status);
	if (m) {
		pthread_rwlock_wrlock(&m->vcore->rw);
		if (m->profile) {
			log_err("NRT", "model %s is being traced to %s already",
				m->neff->name, m->profile->path);
			status = NRT_INVALID;
		} else {
			swap_profile(m, profile_new(m, filename, &status));
		}
		pthread_rwlock_unlock(&m->vcore->rw);
	}
	api_leave();
	return status;
}

static NRT_STATUS write_out(const struct profile *p)
{
	char error[512] = "";

	if (!profile_write(p->path, &p->file, error, sizeof(error)))
		return NRT_SUCCESS;
	log_err("NRT", "%s", error);
	return NRT_FAILURE;
}

NRT_STATUS nrt_profile_stop(const char *filename)
{
	struct profile *p = NULL;
	struct nrt_model *m;
	NRT_STATUS status;

	if (!filename)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	pthread_mutex_lock(&nrt_state.objects);
	m = find_traced(filename);
	pthread_mutex_unlock(&nrt_state.objects);
	if (m) {
		pthread_rwlock_wrlock(&m->vcore->rw);
		p = swap_profile(m, NULL);
		pthread_rwlock_unlock(&m->vcore->rw);
	}
	if (p) {
		status = write_out(p);
		profile_free(p);
	} else {
		log_err("NRT", "no trace to '%s' was started", filename);
		status = NRT_INVALID;
	}
	api_leave();
	return status;
}
