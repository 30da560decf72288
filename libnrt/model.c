// SPDX-License-Identifier: MIT
/* Models: a NEFF on a logical core. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "neuron/isa.h"

struct nrt_model *model_get(const nrt_model_t *model, NRT_STATUS *status)
{
	*status = NRT_INVALID_HANDLE;
	if (!model || model->magic != MODEL_MAGIC)
		return NULL;
	if (model->dead) {
		log_err("NMGR", "model %s was unloaded by nrt_close()", model->neff->name);
		return NULL;
	}
	*status = NRT_SUCCESS;
	return (struct nrt_model *)model;
}

/* ---- freeing -------------------------------------------------------------------- */

static void release_memory(struct nrt_model *m)
{
	devmem_free(m->program);
	devmem_free(m->constants);
	devmem_free(m->queue);
	for (int i = 0; i < NRT_EXEC_SLOTS; i++) {
		devmem_free(m->slots[i].staging);
		m->slots[i].staging = NULL;
	}
	m->program = m->constants = m->queue = NULL;
	profile_free(m->profile);
	m->profile = NULL;
	m->vcore = NULL;
	m->dead = true;
}

static void free_handle(struct nrt_model *m)
{
	m->magic = 0;
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->slot_free);
	neff_free(m->neff);
	free(m->arg_offset);
	free(m);
}

void models_close(void)
{
	struct nrt_model *m;

	/* state.lock is held for writing: nothing runs. */
	TAILQ_FOREACH(m, &nrt_state.models, link)
		if (!m->dead)
			release_memory(m);
}

NRT_STATUS nrt_unload(nrt_model_t *model)
{
	NRT_STATUS status = NRT_SUCCESS;
	struct vcore *v;

	if (!model || model->magic != MODEL_MAGIC)
		return NRT_INVALID_HANDLE;
	/* Not api_enter(): a handle that outlived nrt_close() is freed here too. */
	pthread_rwlock_rdlock(&nrt_state.lock);
	/* First: who walks the list looks only at models that stay. */
	pthread_mutex_lock(&nrt_state.objects);
	TAILQ_REMOVE(&nrt_state.models, model, link);
	pthread_mutex_unlock(&nrt_state.objects);
	if (model->dead) {
		status = nrt_state.phase == NRT_PHASE_OPEN ? NRT_SUCCESS : NRT_CLOSED;
	} else {
		v = model->vcore;
		pthread_rwlock_wrlock(&v->rw);
		vcore_idle(v);
		release_memory(model);
		v->models--;
		pthread_rwlock_unlock(&v->rw);
	}
	free_handle(model);
	pthread_rwlock_unlock(&nrt_state.lock);
	return status;
}

/* ---- loading ---------------------------------------------------------------------- */

static struct mem_request request(const struct nrt_model *m, enum mem_category category,
				  enum dev_mem mem, size_t size)
{
	return (struct mem_request){ .vcore = m->vcore, .mem = mem, .size = size,
				     .category = category, .owner = m->neff->name };
}

static NRT_STATUS upload(const struct nrt_model *m, struct mem *mem, uint64_t offset,
			 void *data, size_t size)
{
	struct dev_loc dst = { .bo = mem->bo, .offset = offset }, src = { .ptr = data };
	int ret = device_copy(m->vcore->device, dst, src, size);

	if (ret)
		log_err("NMGR", "model %s: copy of %zu bytes to the device failed: %s",
			m->neff->name, size, strerror(-ret));
	return status_of(ret);
}

static uint64_t program_size(const struct neff *neff)
{
	uint64_t size = sizeof(struct neuron_program_header);

	for (unsigned int c = 0; c < neff->core_count; c++)
		for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++)
			size += (uint64_t)neff->core[c].words[e] * NEURON_WORD_BYTES;
	return size;
}

/* Header and streams as the chip wants them; streams are dropped from the NEFF. */
static void fill_program(struct neff *neff, char *image, uint64_t size)
{
	struct neuron_program_header *h = (void *)image;
	uint64_t offset = sizeof(*h);

	memset(h, 0, sizeof(*h));
	h->magic = NEURON_PROGRAM_MAGIC;
	h->isa_version = neff->isa_version;
	h->nc_version = neff->nc_version;
	h->cores = neff->core_count;
	h->size = size;
	h->arg_count = neff->arg_count;
	for (unsigned int c = 0; c < neff->core_count; c++) {
		for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++) {
			size_t bytes = (size_t)neff->core[c].words[e] * NEURON_WORD_BYTES;

			if (!bytes)
				continue;
			h->stream[c][e].offset = offset;
			h->stream[c][e].words = neff->core[c].words[e];
			memcpy(image + offset, neff->core[c].stream[e], bytes);
			offset += bytes;
			free(neff->core[c].stream[e]);
			neff->core[c].stream[e] = NULL;
		}
	}
}

static NRT_STATUS load_program(struct nrt_model *m)
{
	uint64_t size = program_size(m->neff);
	struct mem_request r = request(m, MEM_CODE, DEV_MEM_HBM, size);
	char *image = malloc(size);
	NRT_STATUS status;

	if (!image)
		return NRT_RESOURCE;
	fill_program(m->neff, image, size);
	status = devdevmem_alloc(&r, &m->program);
	if (!status)
		status = upload(m, m->program, 0, image, size);
	free(image);
	return status;
}

static bool add_size(uint64_t *total, uint64_t size, uint64_t align)
{
	/* Sizes are at most 2^48 each and there are at most 1,024. */
	*total += align_up(size, align);
	return *total <= 1ull << NEURON_VA_BITS;
}

/* Offsets of constants and of scratch variables. */
static NRT_STATUS lay_out(struct nrt_model *m, uint64_t *constants)
{
	struct neff *neff = m->neff;

	*constants = 0;
	m->arg_offset = calloc(neff->arg_count + 1, sizeof(*m->arg_offset));
	if (!m->arg_offset)
		return NRT_RESOURCE;
	for (unsigned int i = 0; i < neff->arg_count; i++) {
		struct neff_arg *arg = &neff->args[i];
		bool ok = true;

		if (arg->type == NEFF_VAR_FILE) {
			m->arg_offset[i] = *constants;
			ok = add_size(constants, arg->size, NRT_CONSTANT_ALIGN);
		} else if (arg->type == NEFF_VAR_TMP) {
			m->arg_offset[i] = m->scratch_size;
			ok = add_size(&m->scratch_size, arg->size, NRT_SCRATCH_ALIGN);
		}
		if (!ok) {
			log_err("NMGR", "model %s: constants or scratch memory exceed the address space",
				neff->name);
			return NRT_RESOURCE;
		}
	}
	return NRT_SUCCESS;
}

static NRT_STATUS load_constants(struct nrt_model *m, uint64_t size)
{
	struct mem_request r = request(m, MEM_CONSTANTS, DEV_MEM_HBM, size);
	NRT_STATUS status;

	if (!size)
		return NRT_SUCCESS;
	status = devdevmem_alloc(&r, &m->constants);
	for (unsigned int i = 0; !status && i < m->neff->arg_count; i++) {
		struct neff_arg *arg = &m->neff->args[i];

		if (arg->type != NEFF_VAR_FILE)
			continue;
		status = upload(m, m->constants, m->arg_offset[i], arg->data, arg->size);
		free(arg->data);
		arg->data = NULL;
	}
	return status;
}

/* Scratch memory of a core is shared: as large as the largest model needs. */
static NRT_STATUS grow_scratch(struct nrt_model *m)
{
	struct mem_request r = request(m, MEM_SCRATCH, DEV_MEM_HBM, m->scratch_size);
	struct vcore *v = m->vcore;
	struct mem *bigger;
	NRT_STATUS status;

	if (!m->scratch_size || (v->scratch && v->scratch->bo->size >= m->scratch_size))
		return NRT_SUCCESS;
	status = devdevmem_alloc(&r, &bigger);
	if (status)
		return status;
	devmem_free(v->scratch);
	v->scratch = bigger;
	return NRT_SUCCESS;
}

/* Argument tables, results and fences of the executions in flight. */
static NRT_STATUS make_queue(struct nrt_model *m)
{
	size_t args = align_up(m->neff->arg_count * sizeof(struct neuron_arg), 64);
	size_t stride = args + align_up(sizeof(struct neuron_completion), 64) + 64;
	struct mem_request r = request(m, MEM_RUNTIME, DEV_MEM_HOST, stride * NRT_EXEC_SLOTS);
	NRT_STATUS status = devdevmem_alloc(&r, &m->queue);

	for (int i = 0; !status && i < NRT_EXEC_SLOTS; i++) {
		struct exec_slot *slot = &m->slots[i];
		char *cpu = (char *)m->queue->bo->cpu + i * stride;
		uint64_t va = m->queue->bo->va + i * stride;

		slot->args = (void *)cpu;
		slot->args_va = va;
		slot->fence = (void *)(cpu + args);
		slot->fence_va = va + args;
		slot->result = (void *)(cpu + args + 64);
		slot->result_va = va + args + 64;
	}
	return status;
}

static NRT_STATUS load_memory(struct nrt_model *m)
{
	uint64_t constants;
	NRT_STATUS status = lay_out(m, &constants);

	if (!status)
		status = load_program(m);
	if (!status)
		status = load_constants(m, constants);
	if (!status)
		status = make_queue(m);
	if (!status)
		status = grow_scratch(m);
	return status;
}

/* ---- checks --------------------------------------------------------------------------- */

static NRT_STATUS check_target(const struct neff *neff, const struct vcore *v)
{
	const struct dev_info *info = &v->device->dev->info;

	if (!info->has_exec) {
		log_err("NMGR", "[ND %u] has no execution block: memory and copies only",
			v->device->index);
		return NRT_FAILURE;
	}
	if (neff->nc_version != info->nc_version) {
		log_err("NMGR", "NEFF %s is for NeuronCore version %u (%s); this chip is %s with version %u",
			neff->name, neff->nc_version, neff->target, info->arch, info->nc_version);
		return NRT_UNSUPPORTED_NEFF_VERSION;
	}
	if (neff->core_count != nrt_state.lnc) {
		log_err("NMGR", "NEFF %s has lnc_size %u, but logical cores here have %u physical cores: set %s=%u",
			neff->name, neff->core_count, nrt_state.lnc,
			env_rows[ENV_LNC].name, neff->core_count);
		return neff->core_count > nrt_state.lnc ? NRT_LOAD_NOT_ENOUGH_NC : NRT_INVALID;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS read_neff(const void *bytes, size_t size, struct neff **neff)
{
	char error[1024] = "";

	switch (neff_read(bytes, size, neff, error, sizeof(error))) {
	case 0:
		return NRT_SUCCESS;
	case -EOPNOTSUPP:
		log_err("NEFF", "%s", error);
		return NRT_UNSUPPORTED_NEFF_VERSION;
	case -ENOMEM:
		log_err("NEFF", "%s", error);
		return NRT_RESOURCE;
	default:
		log_err("NEFF", "bad NEFF: %s", error);
		return NRT_INVALID;
	}
}

/* The first core with the fewest models. */
static struct vcore *pick_vcore(void)
{
	struct vcore *best = &nrt_state.vcores[0];

	for (unsigned int i = 1; i < nrt_state.vcore_count; i++)
		if (nrt_state.vcores[i].models < best->models)
			best = &nrt_state.vcores[i];
	return best;
}

static struct nrt_model *new_model(struct neff *neff, struct vcore *v)
{
	struct nrt_model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->magic = MODEL_MAGIC;
	m->neff = neff;
	m->vcore = v;
	m->seed = nrt_state.env.seed;
	if (nrt_state.env.strict)
		m->flags |= NEURON_JOB_STRICT;
	if (nrt_state.env.stochastic_rounding)
		m->flags |= NEURON_JOB_STOCHASTIC_ROUNDING;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->slot_free, NULL);
	return m;
}

static NRT_STATUS load(struct neff *neff, struct vcore *v, nrt_model_t **model)
{
	struct nrt_model *m = new_model(neff, v);
	NRT_STATUS status;

	if (!m) {
		neff_free(neff);
		return NRT_RESOURCE;
	}
	pthread_rwlock_wrlock(&v->rw);
	status = load_memory(m);
	if (!status)
		v->models++;
	pthread_rwlock_unlock(&v->rw);
	if (status) {
		release_memory(m);
		free_handle(m);
		return status;
	}
	pthread_mutex_lock(&nrt_state.objects);
	TAILQ_INSERT_TAIL(&nrt_state.models, m, link);
	pthread_mutex_unlock(&nrt_state.objects);
	log_info("NMGR", "[ND %u][NC %u] loaded %s: %zu bytes of code, %zu of constants, %" PRIu64 " of scratch",
		 v->device->index, v->first_core, neff->name, m->program->bo->size,
		 m->constants ? m->constants->bo->size : 0, m->scratch_size);
	*model = m;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
		    nrt_model_t **model)
{
	struct neff *neff = NULL;
	NRT_STATUS status;
	struct vcore *v;

	if (!model || !neff_bytes)
		return NRT_INVALID;
	*model = NULL;
	status = api_enter();
	if (status)
		return status;
	log_dbg("NRT", "API:IN: (start_nc=%d, nc_count=%d, size=%zu)", vnc, vnc_count, size);
	if (vnc_count != -1 && vnc_count != 1) {
		log_err("NRT", "vnc_count is %d, must be -1 or 1", vnc_count);
		status = NRT_INVALID;
		goto out;
	}
	v = vnc == -1 ? pick_vcore() : vcore_get(vnc, __func__);
	status = v ? read_neff(neff_bytes, size, &neff) : NRT_INVALID;
	if (status)
		goto out;
	status = check_target(neff, v);
	if (status)
		neff_free(neff);
	else
		status = load(neff, v, model);
out:
	api_leave();
	return status;
}

/* ---- questions --------------------------------------------------------------------------- */

/* @value of a live model, under the lock. */
static NRT_STATUS answer(const nrt_model_t *model, uint32_t *result, uint32_t value)
{
	NRT_STATUS status;

	if (!result)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	if (model_get(model, &status))
		*result = value;
	api_leave();
	return status;
}

NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *vnc_count)
{
	return answer(model, vnc_count, 1);
}

NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count)
{
	return answer(model, vnc_count, 1);
}

NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count)
{
	return answer(model, instance_count, 1);
}

NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info,
			      size_t info_size_in, size_t *info_size_out)
{
	nrt_model_info_t result = { 0 };
	struct nrt_model *m;
	NRT_STATUS status;

	if (!info || !info_size_in)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	m = model_get(model, &status);
	if (m) {
		result.vnc = m->vcore->index;
		memcpy(info, &result, min_size(info_size_in, sizeof(result)));
		if (info_size_out)
			*info_size_out = min_size(info_size_in, sizeof(result));
	}
	api_leave();
	return status;
}

static nrt_dtype_t dtype_of(const char *name)
{
	static const struct {
		const char *name;
		nrt_dtype_t dtype;
	} table[] = {
		{ "uint64", NRT_DTYPE_UINT64 }, { "int64", NRT_DTYPE_INT64 },
		{ "int8", NRT_DTYPE_INT8 }, { "uint8", NRT_DTYPE_UINT8 },
		{ "int16", NRT_DTYPE_INT16 }, { "uint16", NRT_DTYPE_UINT16 },
		{ "int32", NRT_DTYPE_INT32 }, { "uint32", NRT_DTYPE_UINT32 },
		{ "bfloat16", NRT_DTYPE_BFLOAT16 }, { "float16", NRT_DTYPE_FLOAT16 },
		{ "float32", NRT_DTYPE_FLOAT32 }, { "tfloat32", NRT_DTYPE_FP32R },
		/* Clients of the public runtime rely on this (nrtpy). */
		{ "float8_e3m4", NRT_DTYPE_INT8 }, { "float8_e4m3", NRT_DTYPE_INT8 },
		{ "float8_e5m2", NRT_DTYPE_INT8 }, { "float8_e4m3fn", NRT_DTYPE_INT8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(table[i].name, name))
			return table[i].dtype;
	return NRT_DTYPE_UNKNOWN;
}

static NRT_STATUS fill_info(const struct neff *neff, enum neff_var_type type,
			    nrt_tensor_info_array_t *array)
{
	for (unsigned int i = 0; i < neff->arg_count; i++) {
		const struct neff_arg *arg = &neff->args[i];
		nrt_tensor_info_t *info = &array->tensor_array[array->tensor_count];

		if (arg->type != type)
			continue;
		/* At least one element, so that it is never NULL. */
		info->shape = calloc(arg->ndim ?: 1, sizeof(*info->shape));
		if (!info->shape)
			return NRT_RESOURCE;
		memcpy(info->shape, arg->shape, arg->ndim * sizeof(*info->shape));
		snprintf(info->name, sizeof(info->name), "%s", arg->name);
		info->usage = type == NEFF_VAR_INPUT ? NRT_TENSOR_USAGE_INPUT :
						       NRT_TENSOR_USAGE_OUTPUT;
		info->size = arg->size;
		info->dtype = dtype_of(arg->dtype);
		info->ndim = arg->ndim;
		array->tensor_count++;
	}
	return NRT_SUCCESS;
}

NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model, nrt_tensor_info_array_t **tensor_info)
{
	nrt_tensor_info_array_t *array;
	struct nrt_model *m;
	NRT_STATUS status;

	if (!tensor_info)
		return NRT_INVALID;
	*tensor_info = NULL;
	status = api_enter();
	if (status)
		return status;
	m = model_get(model, &status);
	if (m) {
		array = calloc(1, sizeof(*array) + m->neff->arg_count * sizeof(nrt_tensor_info_t));
		status = array ? fill_info(m->neff, NEFF_VAR_INPUT, array) : NRT_RESOURCE;
		if (!status)
			status = fill_info(m->neff, NEFF_VAR_OUTPUT, array);
		if (status)
			nrt_free_model_tensor_info(array);
		else
			*tensor_info = array;
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info)
{
	for (uint64_t i = 0; tensor_info && i < tensor_info->tensor_count; i++)
		free(tensor_info->tensor_array[i].shape);
	free(tensor_info);
	return NRT_SUCCESS;
}

NRT_STATUS nrtx_model_set_flags(nrt_model_t *model, uint32_t flags, uint64_t seed)
{
	struct nrt_model *m;
	NRT_STATUS status;

	if (flags & ~NRTX_FLAGS) {
		log_err("NRT", "flags 0x%x, must be within 0x%x", flags, NRTX_FLAGS);
		return NRT_INVALID;
	}
	status = api_enter();
	if (status)
		return status;
	m = model_get(model, &status);
	if (m) {
		pthread_mutex_lock(&m->lock);
		m->flags = (flags & NRTX_STRICT ? NEURON_JOB_STRICT : 0) |
			   (flags & NRTX_JITTER ? NEURON_JOB_JITTER : 0) |
			   (flags & NRTX_STOCHASTIC_ROUNDING ? NEURON_JOB_STOCHASTIC_ROUNDING : 0);
		m->seed = seed;
		pthread_mutex_unlock(&m->lock);
	}
	api_leave();
	return status;
}

NRT_STATUS nrtx_get_last_execution(nrt_model_t *model, nrtx_execution_t *execution, size_t size)
{
	struct nrt_model *m;
	NRT_STATUS status;

	if (!execution || !size)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	m = model_get(model, &status);
	if (m) {
		pthread_mutex_lock(&m->lock);
		if (m->executed)
			memcpy(execution, &m->last, min_size(size, sizeof(m->last)));
		else
			status = NRT_FAILURE;
		pthread_mutex_unlock(&m->lock);
	}
	api_leave();
	return status;
}
