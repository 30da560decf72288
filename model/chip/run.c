// SPDX-License-Identifier: MIT
/*
 * From job descriptor to completion. The arbiter starts a slot's head job only
 * when every core of its mask is free. A job that is passed over ages: first it
 * counts as one of higher priority, then the free cores it waits for are kept for
 * it, so a job that wants many cores is not starved by those that want few.
 */
#include <string.h>

#include "chip.h"

#define AGE_PER_PRIORITY	4
#define AGE_RESERVE		8

/* --- descriptors ---------------------------------------------------------------------- */

static bool bad_field(struct chip_job *job, size_t offset, uint64_t value, uint64_t limit)
{
	job->fault.code = htole16(NEURON_FAULT_BAD_JOB);
	job->fault.index = htole32((uint32_t)offset);
	job->fault.addr = htole64(value);
	job->fault.value = htole64(limit);
	return false;
}

#define BAD(field, limit) \
	bad_field(job, offsetof(struct neuron_job_desc, field), \
		  sizeof(d->field) == 8 ? le64toh(d->field) : le32toh((uint32_t)d->field), limit)

static bool bad_va(uint64_t va, uint64_t align)
{
	va = le64toh(va);
	return va >> NEURON_VA_BITS || va % align;
}

/* The record names the field by its offset, its value, and the limit it breaks. */
static bool check_desc(const struct chip_slot *s, struct chip_job *job)
{
	const struct neuron_job_desc *d = &job->desc;
	const uint32_t flags = NEURON_JOB_FLAGS;
	size_t i;

	if (le32toh(d->flags) & ~flags)
		return BAD(flags, flags);
	if (le32toh(d->flags) & NEURON_JOB_TIMING_ONLY && le32toh(d->flags) & NEURON_JOB_STRICT)
		return BAD(flags, flags & ~NEURON_JOB_STRICT);
	if (!d->core_mask || (le32toh(d->core_mask) & ~s->core_mask))
		return BAD(core_mask, s->core_mask);
	if (bad_va(d->program_va, 128))
		return BAD(program_va, 128);
	if (le32toh(d->arg_count) > NEURON_MAX_ARGS)
		return BAD(arg_count, NEURON_MAX_ARGS);
	if (bad_va(d->args_va, 8))
		return BAD(args_va, 8);
	if (le32toh(d->gang_members) > 1)
		return BAD(gang_members, 1);
	if (bad_va(d->result_va, 8))
		return BAD(result_va, 8);
	if (bad_va(d->fence_va, 8))
		return BAD(fence_va, 8);
	if (bad_va(d->trace_va, 8))
		return BAD(trace_va, 8);
	for (i = 0; i < ARRAY_LEN(d->reserved); i++) {
		if (d->reserved[i])
			return BAD(reserved[i], 0);
	}
	return true;
}

/* Lock held. */
static bool slot_error(struct chip_slot *s)
{
	s->error = true;
	s->chip->slot_faults |= 1ull << s->index;
	return chip_admin_event(s->chip, NEURON_EXEC_ADMIN_SLOT_FAULT);
}

static bool wants_fetch(const struct chip_slot *s)
{
	return !s->chip->stopping && s->enabled && !s->error && !s->loaded && !s->running && !s->fetching &&
	       !s->reset_pending && s->taken != s->producer &&
	       s->done - s->cq_head < 1u << s->cq_order;
}

/* Lock held, dropped for the read. True: raise vector 0. */
static bool fetch(struct chip_slot *s)
{
	struct neuron_chip *chip = s->chip;
	struct neuron_job_desc desc;
	uint32_t gen = s->gen;
	uint64_t addr = s->ring + sizeof(desc) * (uint64_t)(s->taken & ((1u << s->ring_order) - 1));
	bool ok;

	s->fetching = true;
	pthread_mutex_unlock(&chip->lock);
	ok = chip_dma_read(chip, addr, &desc, sizeof(desc));
	pthread_mutex_lock(&chip->lock);
	s->fetching = false;
	if (s->gen != gen) {
		chip_slot_reset(s);
		pthread_cond_broadcast(&chip->cond);
		return false;
	}
	if (!ok)
		return slot_error(s);
	memset(&s->job, 0, sizeof(s->job));
	s->job.desc = desc;
	s->taken++;
	s->loaded = true;
	s->age = 0;
	s->ready_seq = ++chip->next_ready;
	/* A job that is malformed needs no cores: it only completes. */
	s->job_mask = check_desc(s, &s->job) ? le32toh(desc.core_mask) : 0;
	return false;
}

/* --- arbiter ---------------------------------------------------------------------------- */

static bool waits(const struct chip_slot *s)
{
	return s->loaded && !s->running && !s->reset_pending;
}

static unsigned int urgency(const struct chip_slot *s)
{
	return s->priority + s->age / AGE_PER_PRIORITY;
}

static struct chip_slot *most_urgent(struct neuron_chip *chip, uint64_t seen)
{
	struct chip_slot *best = NULL, *s;
	unsigned int i;

	for (i = 0; i < NEURON_MAX_SLOTS; i++) {
		s = &chip->slot[i];
		if (!waits(s) || (seen >> i & 1))
			continue;
		if (!best || urgency(s) > urgency(best) ||
		    (urgency(s) == urgency(best) && s->ready_seq < best->ready_seq))
			best = s;
	}
	return best;
}

static uint32_t busy_cores(const struct neuron_chip *chip)
{
	uint32_t mask = chip->core_reset_pending;
	unsigned int i;

	for (i = 0; i < chip->profile.cores; i++) {
		if (chip->core[i].slot >= 0)
			mask |= 1u << i;
	}
	return mask;
}

static void age_others(struct neuron_chip *chip, const struct chip_slot *started)
{
	struct chip_slot *s;
	unsigned int i;

	for (i = 0; i < NEURON_MAX_SLOTS; i++) {
		s = &chip->slot[i];
		if (s != started && waits(s) && (s->job_mask & started->job_mask))
			s->age++;
	}
}

static void take_cores(struct neuron_chip *chip, struct chip_slot *s)
{
	struct chip_job *job = &s->job;
	unsigned int i;

	s->new_owner = 0;
	for (i = 0; i < chip->profile.cores; i++) {
		if (!(s->job_mask >> i & 1))
			continue;
		if (chip->core[i].owner_era != s->era)
			s->new_owner |= 1u << i;
		chip->core[i].owner_era = s->era;
		chip->core[i].slot = (int)s->index;
		chip->core[i].job_core = job->core_count;
		job->core[job->core_count++] = chip->core[i].core;
	}
}

static void start(struct neuron_chip *chip, struct chip_slot *s)
{
	struct chip_job *job = &s->job;

	s->running = true;
	s->loaded = false;
	s->on_cpu = false;
	s->inject_fault = NEURON_FAULT_NONE;
	atomic_store(&s->abort, false);
	job->vm = s->vm;
	job->nc_version = chip->profile.nc_version;
	job->abort = &s->abort;
	job->poll = &s->poll;
	job->opaque = s;
	job->retired = &s->retired;
	take_cores(chip, s);
	age_others(chip, s);
}

static void job_work(struct chip_pool_work *work);

/* Lock held. Returns the job that the caller's thread shall run. */
static struct chip_slot *start_ready(struct neuron_chip *chip, int inline_slot)
{
	struct chip_slot *s, *mine = NULL;
	uint32_t taken = busy_cores(chip);
	uint64_t seen = 0;

	while (!chip->stopping && (s = most_urgent(chip, seen))) {
		seen |= 1ull << s->index;
		if (s->job_mask & taken) {
			if (s->age >= AGE_RESERVE)
				taken |= s->job_mask;
			continue;
		}
		taken |= s->job_mask;
		start(chip, s);
		chip_busy_get(chip);
		if ((int)s->index == inline_slot) {
			mine = s;
			continue;
		}
		s->work.fn = job_work;
		chip_pool_submit(CHIP_POOL_JOB, &s->work);
	}
	return mine;
}

/* Lock held, dropped in between; only one thread at a time is in it. */
static struct chip_slot *arbitrate(struct neuron_chip *chip, int inline_slot)
{
	struct chip_slot *mine = NULL, *s;
	bool irq = false;
	unsigned int i;

	if (chip->scheduling) {
		chip->resched = true;
		return NULL;
	}
	chip->scheduling = true;
	do {
		chip->resched = false;
		for (i = 0; i < NEURON_MAX_SLOTS; i++) {
			if (wants_fetch(&chip->slot[i]))
				irq |= fetch(&chip->slot[i]);
		}
		s = start_ready(chip, mine ? -1 : inline_slot);
		mine = s ? s : mine;
	} while (chip->resched);
	chip->scheduling = false;
	if (irq) {
		pthread_mutex_unlock(&chip->lock);
		chip_raise(chip, 0);
		pthread_mutex_lock(&chip->lock);
	}
	return mine;
}

/* --- execution --------------------------------------------------------------------------- */

/* Lock held. From here on the job uses translations. */
static void begin(struct chip_slot *s)
{
	if (s->pt_dirty) {
		s->vm->root = s->pt & NEURON_PTE_ADDR_MASK;
		chip_vm_flush(s->vm);
		s->pt_dirty = false;
	}
	s->on_cpu = true;
	if (chip_inject_watches_jobs(s->chip))
		atomic_store(&s->poll, true);
	s->retired_start = atomic_load(&s->retired);
	s->wall_start = chip_now();
}

static void give_cores(struct chip_slot *s)
{
	struct neuron_chip *chip = s->chip;
	unsigned int i;

	for (i = 0; i < chip->profile.cores; i++) {
		if (!(s->new_owner >> i & 1))
			continue;
		pthread_mutex_lock(&chip->core[i].lock);
		chip_core_new_owner(chip->core[i].core);
		pthread_mutex_unlock(&chip->core[i].lock);
	}
}

static void set_fault(struct chip_job *job, enum neuron_fault code, uint64_t addr, uint64_t size)
{
	if (job->fault.code)
		return;
	job->fault.code = htole16((uint16_t)code);
	job->fault.addr = htole64(addr);
	job->fault.size = htole64(size);
}

static void fill_completion(struct chip_slot *s, struct neuron_completion *c, uint32_t phase)
{
	const struct chip_job *job = &s->job;

	memset(c, 0, sizeof(*c));
	c->seqno = job->desc.seqno;
	c->status = htole32(le16toh(job->fault.code));
	c->phase = htole32(phase);
	c->wall_start = htole64(s->wall_start);
	c->wall_end = htole64(s->wall_end);
	c->modelled_ticks = htole64(job->modelled_ticks);
	c->instructions = htole64(atomic_load(&s->retired) - s->retired_start);
	c->core_mask = htole32(s->job_mask);
	c->trace_records = htole32(job->trace_records);
	if (job->fault.code)
		c->fault = job->fault;
}

static void write_user(struct chip_slot *s, uint64_t va, const void *data, size_t len)
{
	enum neuron_fault fault;
	uint64_t bad = 0;

	fault = chip_vm_write(s->vm, va, data, len, &bad);
	if (fault)
		set_fault(&s->job, fault, bad, len);
}

/* Outputs are written; result, then fence. */
static void tell_user(struct chip_slot *s)
{
	const struct neuron_job_desc *d = &s->job.desc;
	struct neuron_completion c;

	if (d->result_va && !bad_va(d->result_va, 8)) {
		fill_completion(s, &c, 1);
		write_user(s, le64toh(d->result_va), &c, sizeof(c));
	}
	atomic_thread_fence(memory_order_release);
	if (d->fence_va && !bad_va(d->fence_va, 8))
		write_user(s, le64toh(d->fence_va), &d->fence_value, sizeof(d->fence_value));
}

/* Made-up bytes with the right phase (inject.def). */
static void spoil(struct chip_slot *s, struct neuron_completion *c, uint32_t phase)
{
	unsigned char *p = (unsigned char *)c;
	uint64_t seed = 0;
	size_t i;

	if (!chip_inject_hit_slow(s->chip, CHIP_INJECT_CQ_GARBAGE, chip_site_slot(s->index), &seed))
		return;
	for (i = 0; i < sizeof(*c); i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		p[i] = (unsigned char)(seed >> 56);
	}
	c->phase = htole32(phase);
}

/* The phase goes last, in a write of its own. */
static bool tell_driver(struct chip_slot *s)
{
	uint32_t mask = (1u << s->cq_order) - 1, phase = (s->done >> s->cq_order & 1) ^ 1;
	uint64_t at = s->cq + sizeof(struct neuron_completion) * (uint64_t)(s->done & mask);
	struct neuron_completion c;
	uint32_t word = htole32(phase);

	fill_completion(s, &c, phase ^ 1);
	if (chip_inject_armed(s->chip, CHIP_INJECT_CQ_GARBAGE))
		spoil(s, &c, phase ^ 1);
	if (!chip_dma_write(s->chip, at, &c, sizeof(c)))
		return false;
	atomic_thread_fence(memory_order_release);
	return chip_dma_write(s->chip, at + offsetof(struct neuron_completion, phase), &word, sizeof(word));
}

/* A job that was ended by a fault on demand says so; the place and time are right. */
static void show_injected(struct chip_slot *s)
{
	struct neuron_fault_record *f = &s->job.fault;

	if (!s->inject_fault || le16toh(f->code) != NEURON_FAULT_ABORTED)
		return;
	f->code = htole16((uint16_t)s->inject_fault);
	f->core = (uint8_t)s->inject_core;
	f->space = NEURON_SPACE_SBUF;
}

/* No lock held. False: the completion could not be written. */
static bool execute(struct chip_slot *s)
{
	struct chip_job *job = &s->job;
	bool dropped;

	give_cores(s);
	if (!job->fault.code) {
		if (atomic_load(&s->abort))
			set_fault(job, NEURON_FAULT_ABORTED, 0, 0);
		else
			chip_job_run(job);
		show_injected(s);
	}
	s->wall_end = chip_now();
	pthread_mutex_lock(&s->chip->lock);
	dropped = s->reset_pending;
	pthread_mutex_unlock(&s->chip->lock);
	if (dropped)	/* nobody waits for it, and its rings may be gone */
		return true;
	tell_user(s);
	return tell_driver(s);
}

/* --- the end ------------------------------------------------------------------------------- */

static void add_counters(struct chip_core_state *c, const struct chip_slot *s)
{
	const struct chip_job_counters *n = &s->job.counters[c->job_core];
	unsigned int e;

	c->wall_busy_ns += s->wall_end - s->wall_start;
	c->modelled_ticks += s->job.modelled_ticks;
	c->jobs++;
	c->faults += s->job.fault.code != 0;
	c->insns += n->insns;
	c->pe_macs += n->pe_macs;
	c->dma_bytes += n->dma_bytes;
	for (e = 0; e < NEURON_ENGINE_COUNT; e++)
		c->engine_ticks[e] += n->engine_ticks[e];
}

static void release_cores(struct chip_slot *s)
{
	struct neuron_chip *chip = s->chip;
	struct chip_core_state *c;
	unsigned int i;

	for (i = 0; i < chip->profile.cores; i++) {
		c = &chip->core[i];
		if (c->slot != (int)s->index)
			continue;
		add_counters(c, s);
		c->slot = -1;
		if (!(chip->core_reset_pending >> i & 1))
			continue;
		pthread_mutex_lock(&c->lock);
		chip_core_reset(c->core);
		pthread_mutex_unlock(&c->lock);
		chip->core_reset_pending &= ~(1u << i);
	}
}

/* Lock held. The completion is written; returns the vectors to raise, a bit each. */
static uint32_t account(struct chip_slot *s, bool told)
{
	uint32_t vector = s->vector & ~NEURON_SLOT_VECTOR_EN, irq = 0;

	s->done++;
	if ((s->vector & NEURON_SLOT_VECTOR_EN) && vector < s->chip->vectors)
		irq = 1u << vector;
	if (!told)
		irq |= slot_error(s);
	if (!s->job.fault.code)
		return irq;
	s->fault = s->job.fault;
	s->chip->slot_faults |= 1ull << s->index;
	return irq | chip_admin_event(s->chip, NEURON_EXEC_ADMIN_SLOT_FAULT);
}

static uint32_t finish(struct chip_slot *s, bool told)
{
	uint32_t irq = 0;

	release_cores(s);
	s->running = false;
	s->on_cpu = false;
	if (s->inv_pending) {
		chip_vm_flush(s->vm);
		s->inv_pending = false;
	}
	atomic_store(&s->poll, false);
	if (s->reset_pending)
		chip_slot_reset(s);
	else
		irq = account(s, told);
	pthread_cond_broadcast(&s->chip->cond);
	return irq;
}

static void raise_all(struct neuron_chip *chip, uint32_t irq)
{
	unsigned int v;

	for (v = 0; irq; v++, irq >>= 1) {
		if (irq & 1)
			chip_raise(chip, v);
	}
}

/* Lock held, dropped in between. Runs @s, then what is next for this thread. */
static unsigned int run_here(struct neuron_chip *chip, struct chip_slot *s)
{
	unsigned int jobs = 0;
	uint32_t irq;
	bool told;

	while (s) {
		jobs++;
		begin(s);
		pthread_mutex_unlock(&chip->lock);
		told = execute(s);
		pthread_mutex_lock(&chip->lock);
		irq = finish(s, told);
		if (irq) {
			pthread_mutex_unlock(&chip->lock);
			raise_all(chip, irq);
			pthread_mutex_lock(&chip->lock);
		}
		s = arbitrate(chip, (int)s->index);
	}
	return jobs;
}

static void job_work(struct chip_pool_work *work)
{
	struct chip_slot *s = chip_container_of(work, struct chip_slot, work);
	struct neuron_chip *chip = s->chip;
	unsigned int jobs;

	pthread_mutex_lock(&chip->lock);
	jobs = run_here(chip, s);
	pthread_mutex_unlock(&chip->lock);
	while (jobs--)
		chip_busy_put(chip);
}

void chip_schedule(struct neuron_chip *chip, int inline_slot)
{
	struct chip_slot *mine = arbitrate(chip, inline_slot);
	unsigned int jobs = run_here(chip, mine);

	while (jobs--)
		chip_busy_put(chip);
}

void chip_job_poll(struct chip_job *job)
{
	struct chip_slot *s = job->opaque;

	pthread_mutex_lock(&s->chip->lock);
	if (s->inv_pending) {
		chip_vm_flush(s->vm);
		s->inv_pending = false;
	}
	if (chip_inject_watches_jobs(s->chip))
		chip_inject_job(s);
	atomic_store(&s->poll, chip_inject_watches_jobs(s->chip));
	pthread_mutex_unlock(&s->chip->lock);
}
