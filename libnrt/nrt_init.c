// SPDX-License-Identifier: MIT
/* The process: finding chips, claiming cores, and giving everything back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/*
 * Calls read-lock; nrt_close() must get in even when other threads call all the
 * time, so writers are preferred. No call of the API may call another one.
 */
struct nrt_state nrt_state = {
	.lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
	.objects = PTHREAD_MUTEX_INITIALIZER,
	.models = TAILQ_HEAD_INITIALIZER(nrt_state.models),
	.storages = TAILQ_HEAD_INITIALIZER(nrt_state.storages),
};

static const struct {
	const char *name;
	unsigned int lnc;
	nrt_instance_family_t family;
} archs[] = {
#define NEURON_ARCH(id, name, product, device, nc, cores, stacks, gib, stride, sbuf, bit, lnc, udma, h2t) \
	{ name, lnc, NRT_INSTANCE_##id },
#include "neuron/arch.def"
#undef NEURON_ARCH
};

/* ---- shared by all calls ------------------------------------------------------- */

static NRT_STATUS phase_status(enum nrt_phase phase)
{
	switch (phase) {
	case NRT_PHASE_NEW:
		return NRT_UNINITIALIZED;
	case NRT_PHASE_CLOSED:
		return NRT_CLOSED;
	default:
		return NRT_SUCCESS;
	}
}

NRT_STATUS api_enter(void)
{
	NRT_STATUS status;

	pthread_rwlock_rdlock(&nrt_state.lock);
	status = phase_status(nrt_state.phase);
	if (status)
		pthread_rwlock_unlock(&nrt_state.lock);
	return status;
}

void api_leave(void)
{
	pthread_rwlock_unlock(&nrt_state.lock);
}

NRT_STATUS status_of(int error)
{
	switch (error) {
	case 0:
		return NRT_SUCCESS;
	case -ENOMEM:
	case -ENOSPC:
	case -EMFILE:
	case -ENFILE:
		return NRT_RESOURCE;
	case -EBUSY:
		return NRT_EXEC_NC_BUSY;
	case -ETIME:
	case -ETIMEDOUT:
	case -ECANCELED:
		return NRT_TIMEOUT;
	case -ENODEV:
	case -EIO:
		return NRT_HW_ERROR;
	case -EINVAL:
	case -EFAULT:
	case -ENOENT:
	case -EOPNOTSUPP:
		return NRT_INVALID;
	default:
		return NRT_FAILURE;
	}
}

struct vcore *vcore_get(int64_t vnc, const char *function)
{
	if (vnc >= 0 && vnc < nrt_state.vcore_count)
		return &nrt_state.vcores[vnc];
	log_line(LOG_ERR_, "NRT", function, "logical core %lld does not exist, must be 0 to %u",
		 (long long)vnc, nrt_state.vcore_count - 1);
	return NULL;
}

void vcore_idle(struct vcore *v)
{
	struct dev_point last;

	pthread_mutex_lock(&v->submit);
	last = (struct dev_point){ v->timeline, v->value };
	pthread_mutex_unlock(&v->submit);
	if (last.timeline && last.value)
		nrt_state.backend->wait(last, (int64_t)nrt_state.env.exec_timeout_s * 1000000000);
}

int vcore_renew(struct vcore *v)
{
	const struct dev_backend *b = nrt_state.backend;
	int ret;

	if (v->ctx)
		b->ctx_destroy(v->ctx);
	v->ctx = NULL;
	v->generation++;
	ret = b->ctx_create(v->device->dev, v->core_mask, false, &v->ctx);
	if (ret)
		log_err("TDRV", "[ND %u][NC %u] the core could not be claimed again: %s",
			v->device->index, v->first_core, strerror(-ret));
	return ret;
}

/* ---- chips ------------------------------------------------------------------------ */

static void device_close(struct nrt_device *d)
{
	const struct dev_backend *b;

	if (!d)
		return;
	b = d->dev->backend;
	if (d->copies)
		b->timeline_destroy(d->copies);
	b->close(d->dev);
	pthread_mutex_destroy(&d->copy_lock);
	free(d);
}

static int device_open(const struct dev_backend *b, unsigned int index, struct nrt_device **device)
{
	struct nrt_device *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return -ENOMEM;
	ret = b->open(index, &d->dev);
	if (ret) {
		log_err("TDRV", "[ND %u] cannot be opened: %s", index, strerror(-ret));
		free(d);
		return ret;
	}
	d->index = index;
	pthread_mutex_init(&d->copy_lock, NULL);
	ret = b->timeline_create(d->dev, &d->copies);
	if (ret) {
		device_close(d);
		return ret;
	}
	*device = d;
	return 0;
}

static void devices_close(struct nrt_state *s)
{
	for (unsigned int i = 0; i < s->device_count; i++)
		device_close(s->devices[i]);
	free(s->devices);
	s->devices = NULL;
	s->device_count = 0;
}

static int devices_open(struct nrt_state *s)
{
	int count = s->backend->count(), ret;

	if (count <= 0) {
		log_err("TDRV", "No neuron device available: no chip is found by the %s back-end",
			s->backend->name);
		return count < 0 ? count : -ENODEV;
	}
	s->devices = calloc(count, sizeof(*s->devices));
	if (!s->devices)
		return -ENOMEM;
	s->device_count = count;
	for (int i = 0; i < count; i++) {
		ret = device_open(s->backend, i, &s->devices[i]);
		if (ret) {
			devices_close(s);
			return ret;
		}
	}
	return 0;
}

/* ---- topology ------------------------------------------------------------------------ */

/* Physical cores of a logical core: the variable, else the chip's default. */
static int choose_lnc(struct nrt_state *s)
{
	const struct dev_info *info = &s->devices[0]->dev->info;
	unsigned int fallback = 1;

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
		if (!strcmp(archs[i].name, info->arch))
			fallback = archs[i].lnc;
	s->lnc = s->env.lnc ?: fallback;
	if (s->lnc > fallback) {
		log_err("NRT", "%s=%u: %s has logical cores of 1 physical core only",
			env_rows[ENV_LNC].name, s->lnc, info->arch);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < s->device_count; i++)
		s->total += s->devices[i]->dev->info.cores / s->lnc;
	return 0;
}

/* Environment, chips and topology; what nrt_init() and the counters share. */
static NRT_STATUS discover(struct nrt_state *s)
{
	char error[512];
	int ret;

	if (log_setup(error, sizeof(error)) || env_parse(&s->env, error, sizeof(error))) {
		log_err("NRT", "%s", error);
		return NRT_INVALID;
	}
	s->backend = dev_backend_select();
	if (!s->backend) {
		log_err("NRT", "%s is set, but this library was built without the chip model",
			env_rows[ENV_SIM].name);
		return NRT_INVALID;
	}
	ret = devices_open(s);
	if (ret == -ENODEV || ret == -EINVAL)
		return NRT_INVALID;
	if (ret)
		return status_of(ret);
	if (choose_lnc(s)) {
		devices_close(s);
		return NRT_INVALID;
	}
	return NRT_SUCCESS;
}

/* The chip and first physical core of a logical core of the machine. */
static struct nrt_device *locate(const struct nrt_state *s, unsigned int global,
				 unsigned int *first_core)
{
	for (unsigned int i = 0; i < s->device_count; i++) {
		unsigned int cores = s->devices[i]->dev->info.cores / s->lnc;

		if (global < cores) {
			*first_core = global * s->lnc;
			return s->devices[i];
		}
		global -= cores;
	}
	return NULL;
}

/* ---- claiming ---------------------------------------------------------------------- */

static void vcore_release(struct vcore *v)
{
	const struct dev_backend *b = nrt_state.backend;

	if (v->ctx)
		b->ctx_destroy(v->ctx);
	if (v->timeline)
		b->timeline_destroy(v->timeline);
	pthread_mutex_destroy(&v->submit);
	pthread_rwlock_destroy(&v->rw);
}

static int vcore_claim(struct nrt_state *s, unsigned int global)
{
	struct vcore *v = &s->vcores[s->vcore_count];
	const struct dev_info *info;
	int ret;

	memset(v, 0, sizeof(*v));
	v->device = locate(s, global, &v->first_core);
	v->global = global;
	v->index = s->vcore_count;
	v->core_mask = ((1u << s->lnc) - 1) << v->first_core;
	info = &v->device->dev->info;
	v->stack = v->first_core * info->hbm_stacks / info->cores;
	pthread_mutex_init(&v->submit, NULL);
	pthread_rwlock_init(&v->rw, NULL);
	ret = s->backend->timeline_create(v->device->dev, &v->timeline);
	/* Without an execution block there is nothing to claim: memory only. */
	if (!ret && info->has_exec)
		ret = s->backend->ctx_create(v->device->dev, v->core_mask, false, &v->ctx);
	if (ret)
		vcore_release(v);
	else
		s->vcore_count++;
	return ret;
}

static int check_visible(const struct nrt_state *s)
{
	for (unsigned int i = 0; i < s->env.visible_count; i++) {
		if (s->env.visible[i] < s->total)
			continue;
		log_err("NRT", "%s names core %u: the machine has logical cores 0 to %u (of %u physical)",
			env_rows[ENV_VISIBLE_CORES].name, s->env.visible[i], s->total - 1, s->lnc);
		return -EINVAL;
	}
	return 0;
}

/* How many logical cores the environment asks for. */
static unsigned int wanted(const struct nrt_state *s)
{
	return s->env.visible_count ?: s->env.num_cores ?: s->total;
}

static NRT_STATUS nrt_allocate_neuron_cores(struct nrt_state *s)
{
	unsigned int want = wanted(s);
	bool listed = s->env.visible_count;
	unsigned int tries = listed ? want : s->total;
	int ret = 0, last = 0;

	if (check_visible(s))
		return NRT_INVALID;
	s->vcores = calloc(want, sizeof(*s->vcores));
	if (!s->vcores)
		return NRT_RESOURCE;
	for (unsigned int i = 0; i < tries && s->vcore_count < want; i++) {
		ret = vcore_claim(s, listed ? s->env.visible[i] : i);
		if (ret && ret != -EBUSY) {
			log_err("NRT", "claiming a core failed: %s", strerror(-ret));
			return status_of(ret);
		}
		last = ret ?: last;
	}
	if (s->vcore_count == want)
		return NRT_SUCCESS;
	log_err("NRT", "Logical Neuron Core(s) not available - Requested:%u Available:%u Logical Core size:%u (%s, ret=%d)",
		want, s->vcore_count, s->lnc, last ? "cores busy" : "not that many cores",
		last ?: -ENODEV);
	return NRT_FAILURE;
}

static void release_all(struct nrt_state *s)
{
	for (unsigned int i = 0; i < s->vcore_count; i++)
		vcore_release(&s->vcores[i]);
	free(s->vcores);
	s->vcores = NULL;
	s->vcore_count = 0;
	s->total = 0;
	devices_close(s);
}

/* ---- fork -------------------------------------------------------------------------- */

/*
 * The chip's objects stay the parent's: a child that ended with nrt_close() would
 * otherwise take the parent's context away. The child begins anew; what it
 * inherited is forgotten, not freed.
 */
static void after_fork_in_child(void)
{
	struct nrt_state *s = &nrt_state;
	struct nrt_model *m;
	struct storage *st;

	s->lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
	s->objects = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memory_forget();
	TAILQ_FOREACH(m, &s->models, link)
		m->dead = true;
	TAILQ_FOREACH(st, &s->storages, link)
		st->mem = NULL;
	s->vcores = NULL;
	s->vcore_count = 0;
	s->devices = NULL;
	s->device_count = 0;
	s->total = 0;
	s->phase = NRT_PHASE_NEW;
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* ---- API --------------------------------------------------------------------------- */

static NRT_STATUS init_locked(struct nrt_state *s)
{
	NRT_STATUS status;

	if (s->phase == NRT_PHASE_OPEN) {
		log_err("NRT", "nrt_init() was called already; nrt_close() comes first");
		return NRT_INVALID;
	}
	status = discover(s);
	if (status)
		return status;
	status = nrt_allocate_neuron_cores(s);
	if (status) {
		release_all(s);
		return status;
	}
	s->phase = NRT_PHASE_OPEN;
	log_info("NRT", "%s: %u of %u logical cores of %u physical on %u %s (%s)",
		 s->backend->name, s->vcore_count, s->total, s->lnc, s->device_count,
		 s->devices[0]->dev->info.arch, s->devices[0]->dev->info.bdf);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
		    const char *fal_version)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	NRT_STATUS status;

	/*
	 * The version strings are not read: one public client passes garbage in the
	 * third place.
	 */
	(void)fw_version;
	(void)fal_version;
	if (framework == NRT_FRAMEWORK_TYPE_INVALID) {
		log_err("NRT", "framework is NRT_FRAMEWORK_TYPE_INVALID, must be 1 to 5");
		return NRT_INVALID;
	}
	pthread_once(&once, register_fork);
	pthread_rwlock_wrlock(&nrt_state.lock);
	status = init_locked(&nrt_state);
	pthread_rwlock_unlock(&nrt_state.lock);
	return status;
}

void nrt_close(void)
{
	struct nrt_state *s = &nrt_state;

	pthread_rwlock_wrlock(&s->lock);
	if (s->phase == NRT_PHASE_OPEN) {
		for (unsigned int i = 0; i < s->vcore_count; i++)
			vcore_idle(&s->vcores[i]);
		models_close();
		storages_close();
		for (unsigned int i = 0; i < s->vcore_count; i++)
			devmem_free(s->vcores[i].scratch);
		release_all(s);
		s->phase = NRT_PHASE_CLOSED;
	}
	pthread_rwlock_unlock(&s->lock);
}

enum count_kind {
	COUNT_TOTAL,
	COUNT_VISIBLE,
};

static bool count_open(enum count_kind kind, uint32_t *count)
{
	const struct nrt_state *s = &nrt_state;

	if (s->phase != NRT_PHASE_OPEN)
		return false;
	*count = kind == COUNT_TOTAL ? s->total : s->vcore_count;
	return true;
}

/* Before nrt_init() the chips are opened for the question and closed again. */
static NRT_STATUS count_closed(enum count_kind kind, uint32_t *count)
{
	struct nrt_state *s = &nrt_state;
	NRT_STATUS status = discover(s);

	if (!status && kind == COUNT_VISIBLE && check_visible(s))
		status = NRT_INVALID;
	if (!status)
		*count = kind == COUNT_TOTAL ? s->total : wanted(s);
	release_all(s);
	return status;
}

static NRT_STATUS count_cores(enum count_kind kind, uint32_t *count)
{
	NRT_STATUS status = NRT_SUCCESS;
	bool known;

	if (!count)
		return NRT_INVALID;
	/* Not the other lock at once: it would wait for running executions. */
	pthread_rwlock_rdlock(&nrt_state.lock);
	known = count_open(kind, count);
	pthread_rwlock_unlock(&nrt_state.lock);
	if (known)
		return NRT_SUCCESS;
	pthread_rwlock_wrlock(&nrt_state.lock);
	if (!count_open(kind, count))
		status = count_closed(kind, count);
	pthread_rwlock_unlock(&nrt_state.lock);
	return status;
}

NRT_STATUS nrt_get_total_nc_count(uint32_t *vnc_count)
{
	return count_cores(COUNT_TOTAL, vnc_count);
}

NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count)
{
	return count_cores(COUNT_TOTAL, vnc_count);
}

NRT_STATUS nrt_get_visible_nc_count(uint32_t *vnc_count)
{
	return count_cores(COUNT_VISIBLE, vnc_count);
}

NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count)
{
	return count_cores(COUNT_VISIBLE, vnc_count);
}

NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t instance_info_len)
{
	nrt_instance_info_t result = { .size = NRT_INSTANCE_SIZE_UNKNOWN };
	NRT_STATUS status;
	const char *arch;

	if (!info || !instance_info_len)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	arch = nrt_state.devices[0]->dev->info.arch;
	snprintf(result.arch_name, sizeof(result.arch_name), "%s", arch);
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
		if (!strcmp(archs[i].name, arch))
			result.family = archs[i].family;
	memcpy(info, &result, min_size(instance_info_len, sizeof(result)));
	api_leave();
	return NRT_SUCCESS;
}

NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats,
				    size_t stats_size_in, size_t *stats_size_out)
{
	nrt_vnc_memory_stats_t result = { 0 };
	uint64_t used = 0;
	NRT_STATUS status;
	struct vcore *v;

	if (!stats || !stats_size_in)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	v = vcore_get(vnc, __func__);
	status = v ? status_of(nrt_state.backend->mem_used(v->device->dev, v->stack, &used)) :
		     NRT_INVALID;
	if (!status) {
		result.bytes_used = used;
		result.bytes_limit = v->device->dev->info.hbm_stack_size;
		memcpy(stats, &result, min_size(stats_size_in, sizeof(result)));
		if (stats_size_out)
			*stats_size_out = min_size(stats_size_in, sizeof(result));
	}
	api_leave();
	return status;
}
