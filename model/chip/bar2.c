// SPDX-License-Identifier: MIT
/* Execution block: the global page, counters, and the way to the slots. */
#include <string.h>

#include "chip.h"

#define SLOT_BASE	NEURON_EXEC_SLOT(0)
#define SLOT_SIZE	0x1000u
#define CORE_BASE	NEURON_EXEC_CORE(0)
#define CORE_SIZE	0x1000u
#define IRQ_BASE	NEURON_EXEC_UDMA_IRQ(0, 0)

bool chip_admin_event(struct neuron_chip *chip, uint32_t cause)
{
	chip->admin_cause |= cause;
	return chip->admin_mask & cause;
}

static uint64_t to_ns(uint64_t ticks)
{
	/* 33.6 ticks are a nanosecond: 5 / 168. */
	return ticks / 168 * 5 + ticks % 168 * 5 / 168;
}

/* --- counters: what ended, and what the running job has done so far -------------- */

static const struct chip_slot *running(struct neuron_chip *chip, const struct chip_core_state *c)
{
	return c->slot >= 0 && chip->slot[c->slot].on_cpu ? &chip->slot[c->slot] : NULL;
}

static uint64_t live(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static uint64_t insns(struct neuron_chip *chip, struct chip_core_state *c)
{
	const struct chip_slot *s = running(chip, c);
	uint64_t now = c->insns, moving;

	if (s) {
		moving = live(&s->job.counters[c->job_core].insns);
		if (!moving && s->job.core_count == 1)
			moving = atomic_load(&s->retired) - s->retired_start;
		now += moving;
	}
	if (now > c->insns_shown)
		c->insns_shown = now;
	return c->insns_shown;
}

static uint64_t core_counter(struct neuron_chip *chip, struct chip_core_state *c, uint32_t reg)
{
	const struct chip_slot *s = running(chip, c);
	unsigned int e;

	switch (reg) {
	case NEURON_CORE_WALL_BUSY_NS:
		return c->wall_busy_ns + (s ? chip_now() - s->wall_start : 0);
	case NEURON_CORE_MODELLED_NS:
		return to_ns(c->modelled_ticks);
	case NEURON_CORE_JOBS:
		return c->jobs;
	case NEURON_CORE_INSNS:
		return insns(chip, c);
	case NEURON_CORE_FAULTS:
		return c->faults;
	case NEURON_CORE_OWNER:
		return c->slot < 0 ? ~0ull : (uint64_t)c->slot;
	case NEURON_CORE_PE_MACS:
		return c->pe_macs + (s ? live(&s->job.counters[c->job_core].pe_macs) : 0);
	case NEURON_CORE_DMA_BYTES:
		return c->dma_bytes + (s ? live(&s->job.counters[c->job_core].dma_bytes) : 0);
	}
	if (reg < NEURON_CORE_ENGINE_NS(0) || reg >= NEURON_CORE_ENGINE_NS(NEURON_ENGINE_COUNT))
		return 0;
	e = (reg - NEURON_CORE_ENGINE_NS(0)) / 8;
	return to_ns(c->engine_ticks[e] + (s ? live(&s->job.counters[c->job_core].engine_ticks[e]) : 0));
}

/* --- global page ------------------------------------------------------------------- */

static uint64_t global64(struct neuron_chip *chip, uint32_t reg)
{
	switch (reg) {
	case NEURON_EXEC_CLOCK:
		return chip_now();
	case NEURON_EXEC_SLOT_FAULTS:
		return chip->slot_faults;
	default:
		return 0;
	}
}

static uint32_t global32(struct neuron_chip *chip, uint32_t reg)
{
	const struct chip_profile *p = &chip->profile;

	switch (reg) {
	case NEURON_EXEC_MAGIC_REG:
		return NEURON_EXEC_MAGIC;
	case NEURON_EXEC_VERSION_REG:
		return NEURON_EXEC_VERSION;
	case NEURON_EXEC_NC_VERSION:
		return p->nc_version;
	case NEURON_EXEC_CORES:
		return p->cores;
	case NEURON_EXEC_SLOTS:
		return NEURON_MAX_SLOTS;
	case NEURON_EXEC_VECTORS:
		return chip->vectors;
	case NEURON_EXEC_FEATURES:
		return NEURON_EXEC_FEATURE_STRICT | NEURON_EXEC_FEATURE_TRACE | NEURON_EXEC_FEATURE_FENCE;
	case NEURON_EXEC_RING_ORDER_MAX:
		return CHIP_RING_ORDER_MAX;
	case NEURON_EXEC_HBM_STACKS:
		return p->hbm_stacks;
	case NEURON_EXEC_HBM_STACK_MIB:
		return (uint32_t)(p->hbm_size >> 20);
	case NEURON_EXEC_SBUF_BYTES:
		return p->sbuf_kib * 1024;
	case NEURON_EXEC_PSUM_BYTES:
		return 16384;
	case NEURON_EXEC_ADMIN_CAUSE:
		return chip->admin_cause;
	case NEURON_EXEC_ADMIN_MASK:
		return chip->admin_mask;
	case NEURON_EXEC_CORE_RESET:
		return chip->core_reset_pending;
	default:
		return 0;
	}
}

/* Lock held; true: raise vector 0. */
static bool write_global(struct neuron_chip *chip, uint32_t reg, uint32_t value)
{
	uint32_t fresh;

	switch (reg) {
	case NEURON_EXEC_ADMIN_CAUSE:
		chip->admin_cause &= ~value;
		/* A fault that was not looked at yet shall not get lost. */
		if (chip->slot_faults)
			chip->admin_cause |= NEURON_EXEC_ADMIN_SLOT_FAULT;
		return false;
	case NEURON_EXEC_ADMIN_MASK:
		fresh = value & ~chip->admin_mask & chip->admin_cause;
		chip->admin_mask = value;
		return fresh;
	case NEURON_EXEC_SLOT_FAULTS:
		chip->slot_faults &= ~(uint64_t)value;
		return false;
	case NEURON_EXEC_SLOT_FAULTS + 4:
		chip->slot_faults &= ~((uint64_t)value << 32);
		return false;
	case NEURON_EXEC_CORE_RESET:
		chip_cores_reset(chip, value & ((1u << chip->profile.cores) - 1));
		chip_schedule(chip, -1);
		return false;
	default:
		return false;
	}
}

/* --- dispatch ------------------------------------------------------------------------ */

static bool is_64(uint64_t offset)
{
	uint64_t reg = offset & ~7ull;

	if (reg < 0x1000)
		return reg == NEURON_EXEC_CLOCK || reg == NEURON_EXEC_SLOT_FAULTS;
	if (reg >= SLOT_BASE && reg < SLOT_BASE + SLOT_SIZE * NEURON_MAX_SLOTS)
		return (reg - SLOT_BASE) % SLOT_SIZE == NEURON_SLOT_RETIRED;
	return reg >= CORE_BASE && reg < CORE_BASE + CORE_SIZE * NEURON_MAX_CORES;
}

static uint64_t value64(struct neuron_chip *chip, uint64_t reg)
{
	unsigned int core;

	if (reg < 0x1000)
		return global64(chip, (uint32_t)reg);
	if (reg >= SLOT_BASE)
		return atomic_load(&chip->slot[(reg - SLOT_BASE) / SLOT_SIZE].retired);
	core = (unsigned int)((reg - CORE_BASE) / CORE_SIZE);
	if (core >= chip->profile.cores)
		return 0;
	return core_counter(chip, &chip->core[core], (reg - CORE_BASE) % CORE_SIZE);
}

/* Reading the low half keeps the high half that belongs to it. */
static uint32_t half(struct neuron_chip *chip, uint64_t offset)
{
	uint64_t reg = offset & ~7ull, value;

	if ((offset & 4) && chip->latch_offset == reg + 1) {
		chip->latch_offset = 0;
		return chip->latch_high;
	}
	value = value64(chip, reg);
	if (offset & 4)
		return (uint32_t)(value >> 32);
	chip->latch_offset = reg + 1;
	chip->latch_high = (uint32_t)(value >> 32);
	return (uint32_t)value;
}

static uint32_t read32(struct neuron_chip *chip, uint64_t offset)
{
	const struct chip_profile *p = &chip->profile;

	if (is_64(offset))
		return half(chip, offset);
	if (offset < 0x1000)
		return global32(chip, (uint32_t)offset);
	if (offset >= IRQ_BASE && offset < IRQ_BASE + 4ull * p->udma_engines * NEURON_UDMA_QUEUES)
		return atomic_load(&chip->udma_irq[(offset - IRQ_BASE) / 4]);
	if (offset >= SLOT_BASE && offset < SLOT_BASE + SLOT_SIZE * NEURON_MAX_SLOTS)
		return chip_slot_read(chip, (offset - SLOT_BASE) / SLOT_SIZE, (offset - SLOT_BASE) % SLOT_SIZE);
	return 0;
}

uint64_t chip_exec_read(struct neuron_chip *chip, uint64_t offset, unsigned int size)
{
	uint64_t value;

	if (offset >= NEURON_EXEC_BAR_SIZE)
		return 0;
	pthread_mutex_lock(&chip->lock);
	if (size == 8 && is_64(offset)) {
		value = value64(chip, offset & ~7ull);
	} else if (size == 8) {
		value = read32(chip, offset & ~7ull);
		value |= (uint64_t)read32(chip, (offset & ~7ull) + 4) << 32;
	} else {
		value = read32(chip, offset & ~3ull) >> (8 * (offset & 3));
		if (size < 4)
			value &= (1u << (8 * size)) - 1;
	}
	pthread_mutex_unlock(&chip->lock);
	return value;
}

static void write32(struct neuron_chip *chip, uint64_t offset, uint32_t value)
{
	const struct chip_profile *p = &chip->profile;
	bool irq;

	if (offset >= SLOT_BASE && offset < SLOT_BASE + SLOT_SIZE * NEURON_MAX_SLOTS) {
		chip_slot_write(chip, (offset - SLOT_BASE) / SLOT_SIZE, (offset - SLOT_BASE) % SLOT_SIZE, value);
		return;
	}
	if (offset >= IRQ_BASE && offset < IRQ_BASE + 4ull * p->udma_engines * NEURON_UDMA_QUEUES) {
		if ((value & NEURON_EXEC_UDMA_IRQ_EN) && (value & ~NEURON_EXEC_UDMA_IRQ_EN) >= chip->vectors)
			chip_log(chip, NEURON_CHIP_LOG_GUEST,
				 "UDMA interrupt vector %u: this chip has %u", value & ~NEURON_EXEC_UDMA_IRQ_EN,
				 chip->vectors);
		atomic_store(&chip->udma_irq[(offset - IRQ_BASE) / 4], value);
		return;
	}
	if (offset >= 0x1000)
		return;
	pthread_mutex_lock(&chip->lock);
	irq = write_global(chip, (uint32_t)offset, value);
	pthread_mutex_unlock(&chip->lock);
	if (irq)
		chip_raise(chip, 0);
}

void chip_exec_write(struct neuron_chip *chip, uint64_t offset, uint64_t value, unsigned int size)
{
	if (offset >= NEURON_EXEC_BAR_SIZE)
		return;
	if (size < 4 || (offset & 3)) {
		chip_log(chip, NEURON_CHIP_LOG_GUEST,
			 "BAR2 0x%llx: %u-byte write: registers take 4 or 8 bytes, aligned",
			 (unsigned long long)offset, size);
		return;
	}
	write32(chip, offset, (uint32_t)value);
	if (size == 8 && offset + 4 < NEURON_EXEC_BAR_SIZE)
		write32(chip, offset + 4, (uint32_t)(value >> 32));
}
