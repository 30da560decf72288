// SPDX-License-Identifier: MIT
/*
 * Misc RAM: what firmware shows and takes (neuron_fw_io.h, neuron_power.c of AWS's
 * public driver), and the reset handshake (neuron_reset.c). The mailboxes are in
 * firmware.c. Documentation/hardware/firmware.rst says what is public.
 */
#include <string.h>

#include "chip.h"

#define POWER_PERIOD	20000000ull	/* ns; the public driver looks every 50 ms */
#define POWER_MAX	10000u		/* 1/100 % */
#define ECC_MAX		0xffffu
#define CORES_PER_DIE	4

/* Registers that only firmware writes; all others keep what software writes. */
static const struct {
	uint16_t first, last;
} read_only[] = {
	{ NEURON_MISC_API_VERSION, NEURON_MISC_API_VERSION },
	{ NEURON_MISC_SERIAL_LO, NEURON_MISC_SERIAL_HI },
	{ NEURON_MISC_SRAM_ECC, NEURON_MISC_POWER(1) },
	{ NEURON_MISC_HBM_REPAIR, NEURON_MISC_HBM_REPAIR },
	{ NEURON_MISC_SERVER_INFO, NEURON_MISC_SERVER_INFO },
	{ NEURON_MISC_STATUS, NEURON_MISC_STATUS },
};

void chip_misc_reset(struct neuron_chip *chip, bool power_on)
{
	uint32_t ecc[1 + CHIP_MAX_STACKS], repair = chip->misc[NEURON_MISC_HBM_REPAIR / 4];

	memcpy(ecc, &chip->misc[NEURON_MISC_SRAM_ECC / 4], sizeof(ecc));
	memset(chip->misc, 0, sizeof(chip->misc));
	chip->misc[NEURON_MISC_API_VERSION / 4] = chip->api_version;
	chip->misc[NEURON_MISC_ROUTING_ID / 4] = (uint32_t)chip->routing_id;
	chip->misc[NEURON_MISC_SERIAL_LO / 4] = (uint32_t)chip->serial;
	chip->misc[NEURON_MISC_SERIAL_HI / 4] = (uint32_t)(chip->serial >> 32);
	chip->misc[NEURON_MISC_SERVER_INFO / 4] = chip->server_info;
	chip->misc[NEURON_MISC_HBM_REPAIR / 4] = repair;
	if (!power_on)
		memcpy(&chip->misc[NEURON_MISC_SRAM_ECC / 4], ecc, sizeof(ecc));
	chip_inject_repair(chip);
	chip->mailbox_busy = false;
	chip->fw_reset_type = 0;
	chip->fw_reset_end = 0;
	chip->fw_reset_hung = false;
	chip->qemu_reset_map = 0;
	chip->qemu_reset_busy = false;
}

/* --- error counters -------------------------------------------------------------- */

static uint32_t add_saturating(uint32_t old, uint64_t n)
{
	return n > ECC_MAX - old ? ECC_MAX : old + (uint32_t)n;
}

void chip_misc_ecc(struct neuron_chip *chip, uint32_t reg, bool corrected, uint64_t n)
{
	uint32_t shift = corrected ? 16 : 0, *word = &chip->misc[reg / 4];
	bool irq = false;

	pthread_mutex_lock(&chip->lock);
	*word = (*word & ~(ECC_MAX << shift)) | add_saturating(*word >> shift & ECC_MAX, n) << shift;
	if (!corrected)
		irq = chip_admin_event(chip, NEURON_EXEC_ADMIN_MEM_ERROR);
	pthread_mutex_unlock(&chip->lock);
	if (irq)
		chip_raise_admin(chip);
}

void chip_misc_repair(struct neuron_chip *chip, uint32_t state)
{
	uint32_t *word = &chip->misc[NEURON_MISC_HBM_REPAIR / 4];

	pthread_mutex_lock(&chip->lock);
	if (*word < state)
		*word = state;
	pthread_mutex_unlock(&chip->lock);
}

/* --- power ----------------------------------------------------------------------- */

/* Time with a job, of all cores of a die. */
static uint64_t busy_ns(struct neuron_chip *chip, unsigned int die, uint64_t now)
{
	const struct chip_core_state *c;
	const struct chip_slot *s;
	uint64_t sum = 0;
	unsigned int i;

	for (i = die * CORES_PER_DIE; i < (die + 1) * CORES_PER_DIE && i < chip->profile.cores; i++) {
		c = &chip->core[i];
		sum += c->wall_busy_ns;
		if (c->slot < 0)
			continue;
		s = &chip->slot[c->slot];
		if (s->on_cpu && now > s->wall_start)
			sum += now - s->wall_start;
	}
	return sum;
}

/* A new sample when the last one is old enough: what the cores did in between. */
static uint32_t power(struct neuron_chip *chip, unsigned int die)
{
	struct chip_power *p = &chip->power[die];
	unsigned int cores = chip->profile.cores < CORES_PER_DIE ? chip->profile.cores : CORES_PER_DIE;
	uint64_t now = chip_now(), busy, util = 0;

	if (die * CORES_PER_DIE >= chip->profile.cores)
		return 0;
	if (p->time && now - p->time < POWER_PERIOD)
		return p->sample;
	busy = busy_ns(chip, die, now);
	/* Counters may have been cleared since. */
	if (p->time && busy > p->busy)
		util = (uint64_t)((double)(busy - p->busy) * POWER_MAX / ((double)(now - p->time) * cores));
	p->time = now;
	p->busy = busy;
	p->sample = (uint32_t)(now / POWER_PERIOD) << 16 | (uint32_t)(util < POWER_MAX ? util : POWER_MAX);
	return p->sample;
}

/* --- reset ----------------------------------------------------------------------- */

/* Lock held. The work is done at the trigger; this is the time firmware takes. */
static bool reset_busy(struct neuron_chip *chip)
{
	return (chip->fw_reset_type || chip->qemu_reset_busy) &&
	       (chip->fw_reset_hung || chip->core_reset_pending || chip_now() < chip->fw_reset_end);
}

static void finish_reset(struct neuron_chip *chip)
{
	if (reset_busy(chip))
		return;
	if (chip->fw_reset_type)
		chip->misc[NEURON_MISC_RESET / 4] = 0;
	chip->fw_reset_type = 0;
	chip->qemu_reset_busy = false;
	chip->qemu_reset_map = 0;
}

/* No lock held. @groups as start_reset() has returned it. */
static void reset_udma(struct neuron_chip *chip, uint32_t groups)
{
	if (groups == ~0u && chip->reset_clears_udma)
		chip_udma_reset(chip);
	else if (groups)
		chip_udma_clear_abort(chip, groups);
}

/* Lock held; returns the groups for reset_udma() once it is dropped. */
static uint32_t start_reset(struct neuron_chip *chip, bool device, uint32_t map)
{
	uint32_t all = (1u << chip->profile.cores) - 1;

	chip->fw_reset_end = chip_now() + chip->reset_ns;
	chip->fw_reset_hung = chip_inject_hit(chip, CHIP_INJECT_RESET_HANG,
					      chip_site_reset(device ? NEURON_MISC_RESET_DEVICE :
							      NEURON_MISC_RESET_TPB));
	if (device) {
		chip_slots_reset(chip);
		chip->admin_cause = 0;
		chip->admin_mask = 0;
		chip->slot_faults = 0;
		chip_cores_reset(chip, all);
		chip_inject_repair(chip);
		return ~0u;
	}
	chip_cores_reset(chip, map & all);
	/* Without DMA groups in the map each core owns its 16 engines. */
	return (map >> chip->profile.reset_dma_shift) & all;
}

/*
 * Reset and mailbox share the trigger; a reset type that is set decides. It starts a
 * reset once for each time it is written: a message in between does not start over.
 */
static void trigger(struct neuron_chip *chip)
{
	uint32_t type, clear = 0;

	pthread_mutex_lock(&chip->lock);
	finish_reset(chip);
	type = chip->misc[NEURON_MISC_RESET / 4];
	if (type && type == chip->fw_reset_type) {
		pthread_mutex_unlock(&chip->lock);
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: a message in the middle of a reset is not seen");
		return;
	}
	if (type == NEURON_MISC_RESET_DEVICE || type == NEURON_MISC_RESET_TPB) {
		chip->fw_reset_type = type;
		clear = start_reset(chip, type == NEURON_MISC_RESET_DEVICE,
				    chip->misc[NEURON_MISC_TPB_RESET_MAP / 4]);
		chip_schedule(chip, -1);
	}
	pthread_mutex_unlock(&chip->lock);
	reset_udma(chip, clear);
	if (!type)
		chip_mailbox(chip);
	else if (type > NEURON_MISC_RESET_TPB)
		chip_log(chip, NEURON_CHIP_LOG_GUEST,
			 "misc RAM: reset type %u: must be 1 (device) or 2 (TPB)", type);
}

uint32_t chip_qemu_reset_read(struct neuron_chip *chip)
{
	uint32_t value;

	pthread_mutex_lock(&chip->lock);
	finish_reset(chip);
	value = chip->qemu_reset_map;
	pthread_mutex_unlock(&chip->lock);
	return value;
}

/* V3: the TPB map, 0 for the whole device. V2: any value, the device. */
void chip_qemu_reset_write(struct neuron_chip *chip, uint32_t value)
{
	bool device = !value || chip->profile.qemu_reset_any;
	uint32_t clear;

	pthread_mutex_lock(&chip->lock);
	chip->qemu_reset_map = value;
	chip->qemu_reset_busy = true;
	clear = start_reset(chip, device, value);
	chip_schedule(chip, -1);
	pthread_mutex_unlock(&chip->lock);
	reset_udma(chip, clear);
}

/* --- access ---------------------------------------------------------------------- */

uint32_t chip_misc_read(struct neuron_chip *chip, uint32_t offset)
{
	uint32_t value;

	if (chip_inject_hit(chip, CHIP_INJECT_FW_NOT_READY, chip_site_none()))
		return NEURON_MISC_NOT_READY;
	pthread_mutex_lock(&chip->lock);
	finish_reset(chip);
	switch (offset) {
	case NEURON_MISC_STATUS:
		value = reset_busy(chip) ? NEURON_MISC_STATUS_BUSY : 0;
		break;
	case NEURON_MISC_POWER(0):
	case NEURON_MISC_POWER(1):
		value = power(chip, (offset - NEURON_MISC_POWER(0)) / 4);
		break;
	case NEURON_MISC_TRIGGER:
		value = chip->mailbox_busy;
		break;
	default:
		value = chip->misc[offset / 4];
	}
	pthread_mutex_unlock(&chip->lock);
	return value;
}

static bool is_read_only(uint32_t offset)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(read_only); i++) {
		if (offset >= read_only[i].first && offset <= read_only[i].last)
			return true;
	}
	return false;
}

void chip_misc_write(struct neuron_chip *chip, uint32_t offset, uint32_t value)
{
	if (offset == NEURON_MISC_TRIGGER) {
		if (value)
			trigger(chip);
		return;
	}
	if (is_read_only(offset)) {
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "misc RAM 0x%x = 0x%x: only firmware writes it",
			 offset, value);
		return;
	}
	pthread_mutex_lock(&chip->lock);
	/* Taking the type back ends the wait for it. */
	if (offset == NEURON_MISC_RESET) {
		chip->fw_reset_type = 0;
		chip->fw_reset_hung = false;
	}
	chip->misc[offset / 4] = value;
	pthread_mutex_unlock(&chip->lock);
}
