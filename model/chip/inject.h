/* SPDX-License-Identifier: MIT */
/*
 * Faults on demand (uapi/neuron/inject.def): what the rest of the chip asks.
 * While nothing is armed a question costs one relaxed load.
 */
#ifndef NEURON_CHIP_INJECT_H
#define NEURON_CHIP_INJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct neuron_chip;
struct chip_slot;

enum chip_inject_param {
#define NEURON_INJECT_PARAM(id, name, text) NEURON_INJECT_PARAM_##id,
#include "neuron/inject.def"
	CHIP_INJECT_PARAMS
};

enum chip_inject_kind {
#define NEURON_INJECT(id, name, when, params, count, what, seen) CHIP_INJECT_##id,
#include "neuron/inject.def"
	CHIP_INJECT_KINDS
};

#define CHIP_INJECT_MAX		64	/* armed or used up, at a time */

/**
 * struct chip_fault - one that was asked for
 * @id: 1 and up; 0: the entry is free
 * @kind: of inject.def
 * @given: parameters that were named, a bit each
 * @param: values, defaults filled in
 * @lo, @hi: HBM_UE: range in the stacks laid end to end
 * @skip: matching events still to pass
 * @left: events still to fail, when @param has a count
 * @hits: events that failed
 * @spent: @left came to 0; kept for the list and so that its after-effects can be cleared
 */
struct chip_fault {
	unsigned int id;
	enum chip_inject_kind kind;
	uint32_t given;
	uint64_t param[CHIP_INJECT_PARAMS];
	uint64_t lo, hi;
	uint64_t skip, left, hits;
	bool spent;
};

struct chip_faults {
	pthread_mutex_t lock;		/* innermost */
	atomic_uint armed;		/* kinds that may hit, a bit each */
	unsigned int last_id;
	struct chip_fault item[CHIP_INJECT_MAX];
};

/* What is going on at the place that asks; -1: no such thing there. */
struct chip_site {
	int core, udma, queue, slot, vector, link, type;
};

static inline struct chip_site chip_site_none(void)
{
	return (struct chip_site){ -1, -1, -1, -1, -1, -1, -1 };
}

static inline struct chip_site chip_site_core(unsigned int core)
{
	struct chip_site s = chip_site_none();

	s.core = (int)core;
	return s;
}

static inline struct chip_site chip_site_udma(unsigned int engine, unsigned int queue)
{
	struct chip_site s = chip_site_none();

	s.udma = (int)engine;
	s.queue = (int)queue;
	return s;
}

static inline struct chip_site chip_site_slot(unsigned int slot)
{
	struct chip_site s = chip_site_none();

	s.slot = (int)slot;
	return s;
}

static inline struct chip_site chip_site_vector(unsigned int vector)
{
	struct chip_site s = chip_site_none();

	s.vector = (int)vector;
	return s;
}

static inline struct chip_site chip_site_link(unsigned int link)
{
	struct chip_site s = chip_site_none();

	s.link = (int)link;
	return s;
}

/* @type as in misc RAM's reset register, 3 for FLR. */
static inline struct chip_site chip_site_reset(unsigned int type)
{
	struct chip_site s = chip_site_none();

	s.type = (int)type;
	return s;
}

void chip_inject_init(struct chip_faults *faults);
void chip_inject_free(struct chip_faults *faults);

/* Any lock may be held. True: this event fails. */
bool chip_inject_hit_slow(struct neuron_chip *chip, enum chip_inject_kind kind,
			  struct chip_site site, uint64_t *seed);
bool chip_inject_armed(struct neuron_chip *chip, enum chip_inject_kind kind);

static inline bool chip_inject_hit(struct neuron_chip *chip, enum chip_inject_kind kind,
				   struct chip_site site)
{
	return chip_inject_armed(chip, kind) && chip_inject_hit_slow(chip, kind, site, NULL);
}

/* Whoever moves data over a link asks; a transfer under way may end. */
static inline bool chip_link_up(struct neuron_chip *chip, unsigned int link)
{
	return !chip_inject_hit(chip, CHIP_INJECT_LINK_DOWN, chip_site_link(link));
}

/*
 * Reading @len bytes of HBM. Returns the bytes before the first bad one; when it is
 * not @len the error has been counted and reported. No lock may be held.
 */
uint64_t chip_inject_hbm_read(struct neuron_chip *chip, const uint8_t *hbm, uint64_t len);
/* The same without consequences: how much of it may be read by pointer. */
uint64_t chip_inject_hbm_clear(struct neuron_chip *chip, const uint8_t *hbm, uint64_t len);
/* No lock may be held. The patrol scrub finds a fault of a memory before it is read. */
void chip_inject_scrub(struct neuron_chip *chip, unsigned int id);
/* Lock held. A reset puts spare rows in the place of repairable cells. */
void chip_inject_repair(struct neuron_chip *chip);

/* Lock held, dropped while the job is stuck. At a safe point of a running job. */
void chip_inject_job(struct chip_slot *s);
/* True: jobs have to come by at their safe points. */
bool chip_inject_watches_jobs(struct neuron_chip *chip);

#endif /* NEURON_CHIP_INJECT_H */
