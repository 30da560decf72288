// SPDX-License-Identifier: MIT
/* Execution: bind tensors by name, submit, wait, say what went wrong. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/*
 * A short job ends before a sleeping thread could be woken: its fence is polled
 * for so long before the kernel is asked.
 */
#define SPIN_NS		100000

/**
 * struct exec - one nrt_execute()
 * @model: -
 * @slot: queue memory in use
 * @windows: by argument; storage NULL: not a tensor
 * @staged: by argument: offset + 1 in the staging memory, 0: used in place
 * @staging_size: bytes
 * @flags: NEURON_JOB_*
 * @seed: -
 * @point: of the job
 * @generation: of the context it went to
 */
struct exec {
	struct nrt_model *model;
	struct exec_slot *slot;
	struct window *windows;
	uint64_t *staged;
	uint64_t staging_size;
	uint32_t flags;
	uint64_t seed;
	struct dev_point point;
	unsigned int generation;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	/* 33.6 ticks are a nanosecond; divided first, so nothing overflows. */
	return ticks / 336 * 10 + ticks % 336 * 10 / 336;
}

/* ---- slots ------------------------------------------------------------------------ */

static struct exec_slot *slot_get(struct nrt_model *m, struct exec *x)
{
	struct exec_slot *slot = NULL;

	pthread_mutex_lock(&m->lock);
	while (!slot) {
		for (int i = 0; i < NRT_EXEC_SLOTS && !slot; i++)
			if (!m->slots[i].busy)
				slot = &m->slots[i];
		if (!slot)
			pthread_cond_wait(&m->slot_free, &m->lock);
	}
	slot->busy = true;
	x->flags = m->flags;
	x->seed = m->seed;
	pthread_mutex_unlock(&m->lock);
	return slot;
}

static void slot_put(struct nrt_model *m, struct exec_slot *slot)
{
	pthread_mutex_lock(&m->lock);
	slot->busy = false;
	pthread_cond_signal(&m->slot_free);
	pthread_mutex_unlock(&m->lock);
}

/* ---- binding ------------------------------------------------------------------------ */

static NRT_STATUS find_tensor(struct exec *x, const struct neff_arg *arg,
			      const nrt_tensor_set_t *set, struct window *w)
{
	bool input = arg->type == NEFF_VAR_INPUT;
	const char *model = x->model->neff->name;
	struct nrt_tensor *t = set_lookup(set, arg->name);
	bool ok;

	if (!t) {
		log_err("NMGR", "model %s: %s tensor '%s' of %" PRIu64 " bytes is not in the %s set",
			model, neff_var_type_name(arg->type), arg->name, arg->size,
			neff_var_type_name(arg->type));
		return input ? NRT_EXEC_BAD_INPUT : NRT_FAILURE;
	}
	ok = window_get(t, w);
	tensor_unref(t);
	if (!ok) {
		log_err("NMGR", "model %s: tensor '%s' has no memory", model, arg->name);
		return NRT_EXEC_BAD_INPUT;
	}
	if (w->size != arg->size) {
		log_err("NMGR", "model %s: tensor '%s' has %zu bytes, wanted %" PRIu64, model,
			arg->name, w->size, arg->size);
		return NRT_EXEC_BAD_INPUT;
	}
	if (w->bo && w->device != x->model->vcore->device) {
		log_err("NMGR", "model %s runs on ND %u, but tensor '%s' is on ND %u", model,
			x->model->vcore->device->index, arg->name, w->device->index);
		return NRT_EXEC_BAD_INPUT;
	}
	return NRT_SUCCESS;
}

static bool in_place(const struct window *w)
{
	return w->bo && w->bo->mem == DEV_MEM_HBM;
}

/* An output that is also an input shares its staging memory. */
static uint64_t find_staged(const struct exec *x, unsigned int arg)
{
	const struct window *w = &x->windows[arg];

	for (unsigned int i = 0; i < arg; i++)
		if (x->staged[i] && x->windows[i].storage == w->storage &&
		    x->windows[i].offset == w->offset)
			return x->staged[i];
	return 0;
}

static NRT_STATUS bind_tensors(struct exec *x, const nrt_tensor_set_t *in,
			       const nrt_tensor_set_t *out)
{
	const struct neff *neff = x->model->neff;
	NRT_STATUS status;

	for (unsigned int i = 0; i < neff->arg_count; i++) {
		const struct neff_arg *arg = &neff->args[i];
		struct window *w = &x->windows[i];

		if (arg->type != NEFF_VAR_INPUT && arg->type != NEFF_VAR_OUTPUT)
			continue;
		status = find_tensor(x, arg, arg->type == NEFF_VAR_INPUT ? in : out, w);
		if (status)
			return status;
		if (in_place(w))
			continue;
		x->staged[i] = find_staged(x, i);
		if (!x->staged[i]) {
			x->staged[i] = x->staging_size + 1;
			x->staging_size += align_up(arg->size, 64);
		}
	}
	return NRT_SUCCESS;
}

static NRT_STATUS get_staging(struct exec *x)
{
	struct mem_request r = {
		.vcore = x->model->vcore, .mem = DEV_MEM_HBM, .size = x->staging_size,
		.category = MEM_RUNTIME, .owner = x->model->neff->name,
	};
	struct mem *old = x->slot->staging;

	if (!x->staging_size || (old && old->bo->size >= x->staging_size))
		return NRT_SUCCESS;
	x->slot->staging = NULL;
	devmem_free(old);
	return devdevmem_alloc(&r, &x->slot->staging);
}

/* Outputs are copied in too: a program need not write all of their bytes. */
static int stage(struct exec *x, enum neff_var_type type)
{
	const struct neff *neff = x->model->neff;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < neff->arg_count; i++) {
		struct dev_loc staging, host;
		const struct window *w = &x->windows[i];

		if (!x->staged[i] || (type == NEFF_VAR_OUTPUT && neff->args[i].type != type))
			continue;
		staging = (struct dev_loc){ .bo = x->slot->staging->bo,
					    .offset = x->staged[i] - 1 };
		host = window_loc(w, 0);
		if (type == NEFF_VAR_OUTPUT)
			ret = device_copy(x->model->vcore->device, host, staging, w->size);
		else
			ret = device_copy(x->model->vcore->device, staging, host, w->size);
	}
	return ret;
}

static void fill_args(struct exec *x)
{
	const struct nrt_model *m = x->model;

	for (unsigned int i = 0; i < m->neff->arg_count; i++) {
		const struct neff_arg *arg = &m->neff->args[i];
		struct neuron_arg *a = &x->slot->args[i];

		memset(a, 0, sizeof(*a));
		a->size = arg->size;
		a->access = NEURON_ARG_READ;
		if (arg->type == NEFF_VAR_OUTPUT || arg->type == NEFF_VAR_TMP)
			a->access |= NEURON_ARG_WRITE;
		if (arg->type == NEFF_VAR_TMP)
			a->access |= NEURON_ARG_SCRATCH;
		if (arg->type == NEFF_VAR_FILE)
			a->va = m->constants->bo->va + m->arg_offset[i];
		else if (arg->type == NEFF_VAR_TMP)
			a->va = m->vcore->scratch->bo->va + m->arg_offset[i];
		else if (x->staged[i])
			a->va = x->slot->staging->bo->va + x->staged[i] - 1;
		else
			a->va = x->windows[i].bo->va + x->windows[i].offset;
	}
}

/* ---- submit and wait --------------------------------------------------------------- */

static int submit(struct exec *x, struct mem *trace)
{
	const struct dev_backend *b = nrt_state.backend;
	struct vcore *v = x->model->vcore;
	struct exec_slot *slot = x->slot;
	struct dev_exec job = {
		.program_va = x->model->program->bo->va,
		.args_va = slot->args_va,
		.arg_count = x->model->neff->arg_count,
		.flags = x->flags,
		.result_va = slot->result_va,
		.fence_va = slot->fence_va,
		.seed = x->seed,
	};
	struct dev_sync sync = { 0 };
	int ret = 0;

	if (trace) {
		job.trace_va = trace->bo->va;
		job.trace_size = trace->bo->size;
	}
	*slot->fence = 0;
	slot->result->phase = 0;
	pthread_mutex_lock(&v->submit);
	/* Values rise in the order in which jobs are queued. */
	x->point = (struct dev_point){ v->timeline, v->value + 1 };
	job.fence_value = x->point.value;
	sync.signal = x->point;
	if (!v->ctx)
		ret = vcore_renew(v);
	if (!ret)
		ret = b->exec(v->ctx, &job, &sync);
	if (ret == -ECANCELED) {
		/* The context was lost with an earlier job. */
		ret = vcore_renew(v);
		if (!ret)
			ret = b->exec(v->ctx, &job, &sync);
	}
	if (!ret)
		v->value = x->point.value;
	x->generation = v->generation;
	pthread_mutex_unlock(&v->submit);
	return ret;
}

static bool fence_done(const struct exec *x)
{
	return __atomic_load_n(x->slot->fence, __ATOMIC_ACQUIRE) == x->point.value;
}

/* Poll the user fence; sleep in the kernel only when the job takes longer. */
static int wait_job(struct exec *x)
{
	static atomic_int cpus;
	uint64_t end = now_ns() + SPIN_NS;

	if (!cpus)
		cpus = sysconf(_SC_NPROCESSORS_ONLN);
	do {
		if (fence_done(x))
			return 0;
		/* One CPU: whoever completes the job needs it. */
		if (cpus < 2)
			sched_yield();
	} while (now_ns() < end);
	return nrt_state.backend->wait(x->point, (int64_t)nrt_state.env.exec_timeout_s * 1000000000);
}

static uint64_t retired(const struct vcore *v)
{
	struct dev_core_stats stats = { 0 };

	nrt_state.backend->core_stats(v->device->dev, v->first_core, &stats);
	return stats.insns;
}

/* End the job, and say whether it was getting anywhere. */
static void handle_timeout(struct exec *x, nrtx_execution_t *e)
{
	struct vcore *v = x->model->vcore;
	const struct timespec pause = { .tv_nsec = 20000000 };
	uint64_t before = retired(v), after;

	nanosleep(&pause, NULL);
	after = retired(v);
	snprintf(e->fault_text, sizeof(e->fault_text),
		 "(FATAL-RT-UNDEFINED-STATE) execution timeout (%u ms) on Neuron Device %u NC %u, model %s, waiting for execution completion notification; the program %s",
		 nrt_state.env.exec_timeout_s * 1000, v->device->index, v->first_core,
		 x->model->neff->name, after != before ?
		 "was still making progress: a longer NEURON_RT_EXEC_TIMEOUT lets it finish" :
		 "made no progress");
	log_err("TDRV", "%s", e->fault_text);
	pthread_mutex_lock(&v->submit);
	if (v->generation == x->generation)
		vcore_renew(v);
	pthread_mutex_unlock(&v->submit);
}

/* The chip left no result: ask the context. */
static NRT_STATUS lost_job(struct exec *x, int error, nrtx_execution_t *e)
{
	struct vcore *v = x->model->vcore;
	struct neuron_fault_record fault;
	bool known = false;

	pthread_mutex_lock(&v->submit);
	if (v->ctx && v->generation == x->generation)
		known = nrt_state.backend->ctx_fault(v->ctx, &fault) && fault.code;
	pthread_mutex_unlock(&v->submit);
	if (known && error != -ECANCELED) {
		fault_describe(x->model, &fault, e);
		return error == -ETIMEDOUT ? NRT_TIMEOUT : fault_status(fault.code);
	}
	snprintf(e->fault_text, sizeof(e->fault_text), "the job was lost: %s",
		 error == -ETIMEDOUT ? "it took too long and the watchdog ended it" :
		 error == -ECANCELED ? "its context was reset" :
		 error ? strerror(-error) : "completed without a result");
	return error ? status_of(error) : NRT_HW_ERROR;
}

static NRT_STATUS collect(struct exec *x, int error, nrtx_execution_t *e)
{
	const struct neuron_completion *r = x->slot->result;
	struct vcore *v = x->model->vcore;
	NRT_STATUS status;

	e->seqno = x->point.value;
	if (error == -ETIME) {
		handle_timeout(x, e);
		return NRT_TIMEOUT;
	}
	if (!__atomic_load_n(&r->phase, __ATOMIC_ACQUIRE)) {
		status = lost_job(x, error, e);
	} else {
		e->modelled_ns = ticks_to_ns(r->modelled_ticks);
		e->wall_ns = r->wall_end - r->wall_start;
		e->instructions = r->instructions;
		status = fault_status(r->status);
		if (r->status)
			fault_describe(x->model, &r->fault, e);
	}
	if (status)
		log_err("TDRV", "[ND %u][NC %u] model %s: %s", v->device->index, v->first_core,
			x->model->neff->name, e->fault_text);
	return status;
}

static NRT_STATUS run_once(struct exec *x)
{
	nrtx_execution_t e = { 0 };
	struct profile *profile;
	struct mem *trace = profile_begin(x->model, &profile);
	int ret = submit(x, trace);

	if (ret) {
		log_err("TDRV", "[ND %u][NC %u] model %s: submission failed: %s",
			x->model->vcore->device->index, x->model->vcore->first_core,
			x->model->neff->name, strerror(-ret));
		e.status = status_of(ret);
	} else {
		e.status = collect(x, wait_job(x), &e);
	}
	profile_end(profile, &e);
	pthread_mutex_lock(&x->model->lock);
	x->model->last = e;
	x->model->executed = true;
	pthread_mutex_unlock(&x->model->lock);
	return e.status;
}

/* ---- API ------------------------------------------------------------------------------ */

static NRT_STATUS run_bound(struct exec *x, int repeat)
{
	NRT_STATUS status = get_staging(x);
	int ret;

	if (status)
		return status;
	ret = stage(x, NEFF_VAR_INPUT);
	if (ret)
		return status_of(ret);
	fill_args(x);
	for (int i = 0; !status && i < repeat; i++)
		status = run_once(x);
	/* Also after a fault: what was written before it is there to be looked at. */
	if (status != NRT_TIMEOUT) {
		ret = stage(x, NEFF_VAR_OUTPUT);
		if (ret && !status)
			status = status_of(ret);
	}
	return status;
}

static NRT_STATUS execute(struct nrt_model *m, const nrt_tensor_set_t *in,
			  const nrt_tensor_set_t *out, int repeat)
{
	unsigned int args = m->neff->arg_count;
	struct exec x = { .model = m };
	NRT_STATUS status = NRT_RESOURCE;

	x.windows = calloc(args + 1, sizeof(*x.windows));
	x.staged = calloc(args + 1, sizeof(*x.staged));
	if (x.windows && x.staged) {
		pthread_rwlock_rdlock(&m->vcore->rw);
		x.slot = slot_get(m, &x);
		status = bind_tensors(&x, in, out);
		if (!status)
			status = run_bound(&x, repeat);
		slot_put(m, x.slot);
		pthread_rwlock_unlock(&m->vcore->rw);
	}
	for (unsigned int i = 0; x.windows && i < args; i++)
		if (x.windows[i].storage)
			window_put(&x.windows[i]);
	free(x.windows);
	free(x.staged);
	return status;
}

/* Failures of the device or of the program's control, not of its data. */
static bool is_fatal(NRT_STATUS status)
{
	return status == NRT_TIMEOUT || status == NRT_HW_ERROR ||
	       status == NRT_EXEC_UNIT_UNRECOVERABLE || status >= NRT_EXEC_HW_ERR_COLLECTIVES;
}

NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
			      nrt_tensor_set_t *output_set, int repeat_count)
{
	struct nrt_model *m;
	NRT_STATUS status;

	if (repeat_count < 1) {
		log_err("NRT", "repeat_count is %d, must be at least 1", repeat_count);
		return NRT_INVALID;
	}
	if (!set_valid(input_set) || !set_valid(output_set))
		return NRT_INVALID_HANDLE;
	status = api_enter();
	if (status)
		return status;
	m = model_get(model, &status);
	if (m)
		status = execute(m, input_set, output_set, repeat_count);
	if (is_fatal(status))
		nrt_infodump(status, "nrt_execute");
	api_leave();
	return status;
}

NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
		       nrt_tensor_set_t *output_set)
{
	return nrt_execute_repeat(model, input_set, output_set, 1);
}
