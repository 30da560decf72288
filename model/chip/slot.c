// SPDX-License-Identifier: MIT
/* Context slots: registers, resets, INVALIDATE. */
#include <stdlib.h>
#include <string.h>

#include "chip.h"

#define RING_ALIGN	128u
#define MAX_PRIORITY	3u

/* --- reset ---------------------------------------------------------------------------- */

static void reset_now(struct chip_slot *s)
{
	s->enabled = false;
	s->error = false;
	s->loaded = false;
	s->reset_pending = false;
	s->inv_pending = false;
	s->producer = 0;
	s->taken = 0;
	s->done = 0;
	s->cq_head = 0;
	s->age = 0;
	atomic_store(&s->retired, 0);
	atomic_store(&s->poll, false);
	if (s->vm)
		chip_vm_flush(s->vm);
}

void chip_slot_reset(struct chip_slot *s)
{
	s->gen++;
	if (s->running || s->fetching) {
		s->reset_pending = true;
		s->loaded = false;
		atomic_store(&s->abort, true);
		pthread_cond_broadcast(&s->chip->cond);
		return;
	}
	reset_now(s);
}

void chip_slots_reset(struct neuron_chip *chip)
{
	unsigned int i;

	for (i = 0; i < NEURON_MAX_SLOTS; i++)
		chip_slot_reset(&chip->slot[i]);
}

void chip_slots_wait(struct neuron_chip *chip)
{
	unsigned int i = 0;

	while (i < NEURON_MAX_SLOTS) {
		if (!chip->slot[i].running && !chip->slot[i].fetching) {
			i++;
			continue;
		}
		/* The job may need a lock of the host that this thread holds. */
		pthread_mutex_unlock(&chip->lock);
		chip_wait_begin(chip);
		pthread_mutex_lock(&chip->lock);
		while (chip->slot[i].running || chip->slot[i].fetching)
			pthread_cond_wait(&chip->cond, &chip->lock);
		pthread_mutex_unlock(&chip->lock);
		chip_wait_end(chip);
		pthread_mutex_lock(&chip->lock);
		i = 0;
	}
}

void chip_slots_power_on(struct neuron_chip *chip)
{
	struct chip_slot *s;
	unsigned int i;

	for (i = 0; i < NEURON_MAX_SLOTS; i++) {
		s = &chip->slot[i];
		reset_now(s);
		s->ring = 0;
		s->cq = 0;
		s->pt = 0;
		s->pt_dirty = true;
		s->ring_order = 0;
		s->cq_order = 0;
		s->core_mask = 0;
		s->priority = 0;
		s->vector = 0;
		s->inv_va = 0;
		s->inv_size = 0;
		memset(&s->fault, 0, sizeof(s->fault));
	}
}

void chip_cores_reset(struct neuron_chip *chip, uint32_t mask)
{
	struct chip_core_state *c;
	unsigned int i;

	for (i = 0; i < chip->profile.cores; i++) {
		if (!(mask >> i & 1))
			continue;
		c = &chip->core[i];
		if (c->slot >= 0) {
			chip->core_reset_pending |= 1u << i;
			atomic_store(&chip->slot[c->slot].abort, true);
			pthread_cond_broadcast(&chip->cond);
			continue;
		}
		pthread_mutex_lock(&c->lock);
		chip_core_reset(c->core);
		pthread_mutex_unlock(&c->lock);
	}
}

/* --- writes --------------------------------------------------------------------------- */

static const char *enable(struct chip_slot *s)
{
	if (s->enabled)
		return NULL;
	if (s->reset_pending)
		return "enabled before its reset has ended";
	if (s->ring_order > CHIP_RING_ORDER_MAX || s->cq_order > CHIP_RING_ORDER_MAX)
		return "ring order above RING_ORDER_MAX";
	if ((s->ring | s->cq) & (RING_ALIGN - 1))
		return "ring address is not aligned to 128 bytes";
	if (!s->vm) {
		s->vm = calloc(1, sizeof(*s->vm));
		if (!s->vm)
			return "the host is out of memory";
		s->vm->chip = s->chip;
	}
	s->enabled = true;
	s->error = false;
	s->pt_dirty = true;
	s->era = ++s->chip->next_era;
	return NULL;
}

static const char *control(struct chip_slot *s, uint32_t value)
{
	if (value & NEURON_SLOT_CTRL_RESET) {
		chip_slot_reset(s);
		return NULL;
	}
	if (value & NEURON_SLOT_CTRL_ENABLE)
		return enable(s);
	/* A running job goes on; nothing new is taken. */
	s->enabled = false;
	return NULL;
}

static const char *ring_doorbell(struct chip_slot *s, uint32_t value)
{
	uint32_t size;

	if (!s->enabled)
		return "doorbell while disabled";
	if (s->error || s->reset_pending)
		return NULL;
	size = 1u << s->ring_order;
	if (value - s->taken > size || value - s->producer > size)
		return "doorbell out of range";
	if (chip_inject_hit(s->chip, CHIP_INJECT_DOORBELL_LOST, chip_site_slot(s->index)))
		return NULL;
	s->producer = value;
	return NULL;
}

static const char *cq_consumed(struct chip_slot *s, uint32_t value)
{
	if (!s->enabled)
		return "completion head while disabled";
	/* The completion of a running job is visible a moment before it is counted. */
	if (s->done + s->running - value > 1u << s->cq_order)
		return "completion head out of range";
	s->cq_head = value;
	return NULL;
}

static void invalidate(struct chip_slot *s)
{
	if (s->on_cpu && !s->stuck) {
		s->inv_pending = true;
		atomic_store(&s->poll, true);
	} else if (s->vm) {
		chip_vm_flush(s->vm);
	}
}

static uint64_t set_half(uint64_t old, uint32_t reg, uint32_t value)
{
	return reg & 4 ? (old & 0xffffffffull) | (uint64_t)value << 32 :
			 (old & ~0xffffffffull) | value;
}

/* Registers that describe rings and cores hold still while jobs are taken. */
static const char *write_setup(struct chip_slot *s, uint32_t reg, uint32_t value)
{
	if (s->enabled || s->running)
		return "set-up register written while enabled";
	switch (reg) {
	case NEURON_SLOT_RING_LO:
	case NEURON_SLOT_RING_HI:
		s->ring = set_half(s->ring, reg - NEURON_SLOT_RING_LO, value);
		break;
	case NEURON_SLOT_RING_ORDER:
		s->ring_order = value;
		break;
	case NEURON_SLOT_CQ_LO:
	case NEURON_SLOT_CQ_HI:
		s->cq = set_half(s->cq, reg - NEURON_SLOT_CQ_LO, value);
		break;
	case NEURON_SLOT_CQ_ORDER:
		s->cq_order = value;
		break;
	case NEURON_SLOT_CORE_MASK:
		s->core_mask = value & ((1u << s->chip->profile.cores) - 1);
		break;
	case NEURON_SLOT_VECTOR:
		s->vector = value;
		break;
	}
	return NULL;
}

static const char *write_reg(struct chip_slot *s, uint32_t reg, uint32_t value)
{
	switch (reg) {
	case NEURON_SLOT_CTRL:
		return control(s, value);
	case NEURON_SLOT_DOORBELL:
		return ring_doorbell(s, value);
	case NEURON_SLOT_CQ_HEAD:
		return cq_consumed(s, value);
	case NEURON_SLOT_PT_LO:
	case NEURON_SLOT_PT_HI:
		s->pt = set_half(s->pt, reg, value);
		s->pt_dirty = true;
		return NULL;
	case NEURON_SLOT_PRIORITY:
		s->priority = value > MAX_PRIORITY ? MAX_PRIORITY : value;
		return NULL;
	case NEURON_SLOT_INV_VA:
	case NEURON_SLOT_INV_VA + 4:
		s->inv_va = set_half(s->inv_va, reg, value);
		return NULL;
	case NEURON_SLOT_INV_SIZE:
	case NEURON_SLOT_INV_SIZE + 4:
		s->inv_size = set_half(s->inv_size, reg, value);
		return NULL;
	case NEURON_SLOT_INV:
		if (value & 1)
			invalidate(s);
		return NULL;
	default:
		return write_setup(s, reg, value);
	}
}

/* A doorbell that cannot be right stops the slot; other mistakes have no effect. */
static bool is_fatal(uint32_t reg)
{
	return reg == NEURON_SLOT_CTRL || reg == NEURON_SLOT_CQ_HEAD || reg == NEURON_SLOT_DOORBELL;
}

void chip_slot_write(struct neuron_chip *chip, unsigned int slot, uint32_t reg, uint32_t value)
{
	struct chip_slot *s = &chip->slot[slot];
	const char *bad;
	bool irq = false;

	pthread_mutex_lock(&chip->lock);
	bad = write_reg(s, reg, value);
	if (bad && is_fatal(reg) && (s->enabled || reg == NEURON_SLOT_CTRL)) {
		s->error = true;
		chip->slot_faults |= 1ull << slot;
		irq = chip_admin_event(chip, NEURON_EXEC_ADMIN_SLOT_FAULT);
	}
	if (!bad && (reg == NEURON_SLOT_DOORBELL || reg == NEURON_SLOT_CQ_HEAD || reg == NEURON_SLOT_CTRL))
		chip_schedule(chip, chip->inline_exec ? (int)slot : -1);
	pthread_mutex_unlock(&chip->lock);
	if (bad)
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "slot %u register 0x%x = 0x%x: %s",
			 slot, reg, value, bad);
	if (irq)
		chip_raise(chip, 0);
}

/* --- reads ---------------------------------------------------------------------------- */

static uint32_t status(const struct chip_slot *s)
{
	return (s->running ? NEURON_SLOT_STATUS_RUNNING : 0) |
	       (s->reset_pending ? NEURON_SLOT_STATUS_RESETTING : 0) |
	       (s->error ? NEURON_SLOT_STATUS_ERROR : 0);
}

static uint32_t fault_word(const struct chip_slot *s, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)&s->fault + offset, sizeof(value));
	return le32toh(value);
}

uint32_t chip_slot_read(struct neuron_chip *chip, unsigned int slot, uint32_t reg)
{
	const struct chip_slot *s = &chip->slot[slot];

	if (reg >= NEURON_SLOT_FAULT && reg < NEURON_SLOT_FAULT + sizeof(s->fault))
		return fault_word(s, reg - NEURON_SLOT_FAULT);
	switch (reg) {
	case NEURON_SLOT_CTRL:
		return s->enabled ? NEURON_SLOT_CTRL_ENABLE : 0;
	case NEURON_SLOT_STATUS:
		return status(s);
	case NEURON_SLOT_RING_LO:
		return (uint32_t)s->ring;
	case NEURON_SLOT_RING_HI:
		return (uint32_t)(s->ring >> 32);
	case NEURON_SLOT_RING_ORDER:
		return s->ring_order;
	case NEURON_SLOT_DOORBELL:
		return s->producer;
	case NEURON_SLOT_HEAD:
		return s->taken;
	case NEURON_SLOT_CQ_LO:
		return (uint32_t)s->cq;
	case NEURON_SLOT_CQ_HI:
		return (uint32_t)(s->cq >> 32);
	case NEURON_SLOT_CQ_ORDER:
		return s->cq_order;
	case NEURON_SLOT_CQ_HEAD:
		return s->cq_head;
	case NEURON_SLOT_PT_LO:
		return (uint32_t)s->pt;
	case NEURON_SLOT_PT_HI:
		return (uint32_t)(s->pt >> 32);
	case NEURON_SLOT_CORE_MASK:
		return s->core_mask;
	case NEURON_SLOT_PRIORITY:
		return s->priority;
	case NEURON_SLOT_VECTOR:
		return s->vector;
	case NEURON_SLOT_INV_VA:
		return (uint32_t)s->inv_va;
	case NEURON_SLOT_INV_VA + 4:
		return (uint32_t)(s->inv_va >> 32);
	case NEURON_SLOT_INV_SIZE:
		return (uint32_t)s->inv_size;
	case NEURON_SLOT_INV_SIZE + 4:
		return (uint32_t)(s->inv_size >> 32);
	case NEURON_SLOT_INV:
		return s->inv_pending;
	default:
		return 0;
	}
}
