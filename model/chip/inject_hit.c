// SPDX-License-Identifier: MIT
/* Faults on demand: the places of the chip that ask whether they shall fail. */
#include <inttypes.h>

#include "chip.h"

bool chip_inject_armed(struct neuron_chip *chip, enum chip_inject_kind kind)
{
	return atomic_load_explicit(&chip->faults.armed, memory_order_relaxed) >> kind & 1;
}

/* @value of the site against a parameter that was given. */
static bool agrees(const struct chip_fault *f, enum chip_inject_param param, int value)
{
	return !(f->given >> param & 1) || (value >= 0 && f->param[param] == (uint64_t)value);
}

static bool matches(const struct chip_fault *f, const struct chip_site *s)
{
	/* A word, whose "any" is 0. */
	bool type = !f->param[NEURON_INJECT_PARAM_TYPE] || s->type == (int)f->param[NEURON_INJECT_PARAM_TYPE];

	return type && agrees(f, NEURON_INJECT_PARAM_UDMA, s->udma) &&
	       agrees(f, NEURON_INJECT_PARAM_QUEUE, s->queue) &&
	       agrees(f, NEURON_INJECT_PARAM_SLOT, s->slot) &&
	       agrees(f, NEURON_INJECT_PARAM_VECTOR, s->vector) &&
	       agrees(f, NEURON_INJECT_PARAM_LINK, s->link) &&
	       agrees(f, NEURON_INJECT_PARAM_CORE, s->core);
}

/* Faults' lock held. An event that matches: does it fail? */
static bool take(struct chip_faults *all, struct chip_fault *f)
{
	unsigned int i, armed = 0;

	if (f->skip) {
		f->skip--;
		return false;
	}
	f->hits++;
	if (!f->param[NEURON_INJECT_PARAM_COUNT] || --f->left)
		return true;
	f->spent = true;
	for (i = 0; i < CHIP_INJECT_MAX; i++) {
		if (all->item[i].id && !all->item[i].spent)
			armed |= 1u << all->item[i].kind;
	}
	atomic_store(&all->armed, armed);
	return true;
}

/* The faults are looked at from the oldest on; each that matches sees the event. */
bool chip_inject_hit_slow(struct neuron_chip *chip, enum chip_inject_kind kind,
			  struct chip_site site, uint64_t *seed)
{
	struct chip_faults *all = &chip->faults;
	struct chip_fault *f;
	bool hit = false;

	pthread_mutex_lock(&all->lock);
	for (f = all->item; f < all->item + CHIP_INJECT_MAX && !hit; f++) {
		if (!f->id || f->spent || f->kind != kind || !matches(f, &site))
			continue;
		hit = take(all, f);
		if (hit && seed)
			*seed = f->param[NEURON_INJECT_PARAM_SEED];
	}
	pthread_mutex_unlock(&all->lock);
	return hit;
}

/* --- HBM ------------------------------------------------------------------------------- */

/* Faults' lock held. The fault with the first bad byte of [@lo, @lo + @len). */
static struct chip_fault *first_bad(struct chip_faults *all, uint64_t lo, uint64_t len, uint64_t *good)
{
	struct chip_fault *best = NULL, *f;
	uint64_t at;

	*good = len;
	for (f = all->item; f < all->item + CHIP_INJECT_MAX; f++) {
		if (!f->id || f->spent || f->kind != CHIP_INJECT_HBM_UE || f->lo >= lo + len || f->hi <= lo)
			continue;
		at = f->lo > lo ? f->lo - lo : 0;
		if (best && at >= *good)
			continue;
		*good = at;
		best = f;
	}
	return best;
}

uint64_t chip_inject_hbm_clear(struct neuron_chip *chip, const uint8_t *hbm, uint64_t len)
{
	struct chip_faults *all = &chip->faults;
	uint64_t good;

	if (!chip_inject_armed(chip, CHIP_INJECT_HBM_UE))
		return len;
	pthread_mutex_lock(&all->lock);
	first_bad(all, (uint64_t)(hbm - chip->hbm), len, &good);
	pthread_mutex_unlock(&all->lock);
	return good;
}

static void report_hbm(struct neuron_chip *chip, uint64_t at, bool repairable)
{
	unsigned int stack = (unsigned int)(at / chip->profile.hbm_size);

	chip_log(chip, NEURON_CHIP_LOG_GUEST, "HBM %u offset 0x%" PRIx64 ": uncorrectable error (injected)",
		 stack, at % chip->profile.hbm_size);
	chip_misc_ecc(chip, NEURON_MISC_HBM_ECC(stack), false, 1);
	chip_misc_repair(chip, repairable ? NEURON_MISC_REPAIR_PENDING : NEURON_MISC_REPAIR_FAILED);
}

uint64_t chip_inject_hbm_read(struct neuron_chip *chip, const uint8_t *hbm, uint64_t len)
{
	struct chip_faults *all = &chip->faults;
	bool hit = false, repairable = false;
	uint64_t at, good = len;
	struct chip_fault *f;

	if (!chip_inject_armed(chip, CHIP_INJECT_HBM_UE))
		return len;
	at = (uint64_t)(hbm - chip->hbm);
	pthread_mutex_lock(&all->lock);
	f = first_bad(all, at, len, &good);
	if (f) {
		repairable = f->param[NEURON_INJECT_PARAM_REPAIR];
		hit = take(all, f);
	}
	pthread_mutex_unlock(&all->lock);
	if (!hit)
		return len;
	report_hbm(chip, at + good, repairable);
	return good;
}

void chip_inject_scrub(struct neuron_chip *chip, unsigned int id)
{
	struct chip_faults *all = &chip->faults;
	struct chip_fault *f, found = { .id = 0 };

	pthread_mutex_lock(&all->lock);
	for (f = all->item; f < all->item + CHIP_INJECT_MAX; f++) {
		if (f->id != id)
			continue;
		f->hits++;	/* so that a reset repairs it */
		found = *f;
	}
	pthread_mutex_unlock(&all->lock);
	if (!found.id)
		return;
	if (found.kind == CHIP_INJECT_HBM_UE)
		report_hbm(chip, found.lo, found.param[NEURON_INJECT_PARAM_REPAIR]);
	else
		chip_misc_ecc(chip, NEURON_MISC_SRAM_ECC, false, 1);
}

void chip_inject_repair(struct neuron_chip *chip)
{
	struct chip_faults *all = &chip->faults;
	bool failed = chip->misc[NEURON_MISC_HBM_REPAIR / 4] == NEURON_MISC_REPAIR_FAILED;
	struct chip_fault *f;

	pthread_mutex_lock(&all->lock);
	for (f = all->item; f < all->item + CHIP_INJECT_MAX; f++) {
		/* Cells that nobody has found yet are not replaced. */
		if (f->id && f->kind == CHIP_INJECT_HBM_UE && f->hits && f->param[NEURON_INJECT_PARAM_REPAIR])
			f->spent = true;
	}
	pthread_mutex_unlock(&all->lock);
	if (!failed)
		chip->misc[NEURON_MISC_HBM_REPAIR / 4] = NEURON_MISC_REPAIR_NONE;
}

/* --- running jobs ------------------------------------------------------------------------ */

bool chip_inject_watches_jobs(struct neuron_chip *chip)
{
	return chip_inject_armed(chip, CHIP_INJECT_SRAM_UE) ||
	       chip_inject_armed(chip, CHIP_INJECT_ENGINE_STUCK);
}

/* The first core of the job that a fault of this kind hits; -1: none. */
static int hit_core(struct chip_slot *s, enum chip_inject_kind kind)
{
	unsigned int i;

	for (i = 0; i < s->chip->profile.cores; i++) {
		if ((s->job_mask >> i & 1) && chip_inject_hit(s->chip, kind, chip_site_core(i)))
			return (int)i;
	}
	return -1;
}

static void sram_error(struct chip_slot *s, int core)
{
	struct neuron_chip *chip = s->chip;

	s->inject_fault = NEURON_FAULT_MEM_PARITY;
	s->inject_core = chip->core[core].job_core;
	atomic_store(&s->abort, true);
	pthread_mutex_unlock(&chip->lock);
	chip_log(chip, NEURON_CHIP_LOG_GUEST, "core %d: uncorrectable SRAM error (injected)", core);
	chip_misc_ecc(chip, NEURON_MISC_SRAM_ECC, false, 1);
	pthread_mutex_lock(&chip->lock);
}

/* A reset, or clearing the fault, ends the wait. */
static void stand_still(struct chip_slot *s, int core)
{
	struct neuron_chip *chip = s->chip;

	s->stuck = true;
	pthread_mutex_unlock(&chip->lock);
	chip_log(chip, NEURON_CHIP_LOG_GUEST, "core %d: engine stuck (injected)", core);
	pthread_mutex_lock(&chip->lock);
	while (s->stuck && !atomic_load(&s->abort))
		pthread_cond_wait(&chip->cond, &chip->lock);
	s->stuck = false;
}

void chip_inject_job(struct chip_slot *s)
{
	int core = hit_core(s, CHIP_INJECT_ENGINE_STUCK);

	if (core >= 0)
		stand_still(s, core);
	core = hit_core(s, CHIP_INJECT_SRAM_UE);
	if (core >= 0)
		sram_error(s, core);
}
