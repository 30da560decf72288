// SPDX-License-Identifier: MIT
/*
 * A core's window: SBUF, events and semaphores are the core's, the rest keeps
 * what is written to it. Reached by BAR0 and, at the core's device address, by
 * UDMA.
 */
#include <string.h>

#include "chip.h"

enum sem_block {
	BLOCK_NONE,
	BLOCK_EVENT,
	BLOCK_READ,
	BLOCK_SET,
	BLOCK_INC,
	BLOCK_DEC,
};

static enum sem_block find_block(uint64_t offset, unsigned int *n)
{
	static const struct {
		uint32_t base;
		enum sem_block block;
	} blocks[] = {
		{ NEURON_TPB_EVENT(0), BLOCK_EVENT },
		{ NEURON_TPB_SEM_READ(0), BLOCK_READ },
		{ NEURON_TPB_SEM_SET(0), BLOCK_SET },
		{ NEURON_TPB_SEM_INC(0), BLOCK_INC },
		{ NEURON_TPB_SEM_DEC(0), BLOCK_DEC },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(blocks); i++) {
		if (offset >= blocks[i].base && offset < blocks[i].base + 4 * NEURON_SEMAPHORES) {
			*n = (offset - blocks[i].base) / 4;
			return blocks[i].block;
		}
	}
	return BLOCK_NONE;
}

static uint32_t read32(struct neuron_chip *chip, struct chip_core_state *c, uint64_t bar0, uint64_t offset)
{
	unsigned int n;

	switch (find_block(offset, &n)) {
	case BLOCK_EVENT:
		return chip_core_event_get(c->core, n);
	case BLOCK_READ:
	case BLOCK_SET:
	case BLOCK_INC:
	case BLOCK_DEC:
		return chip_core_sem_get(c->core, n);
	default:
		return chip_ram_read(&chip->ram, bar0 + offset);
	}
}

static void write32(struct neuron_chip *chip, struct chip_core_state *c, uint64_t bar0, uint64_t offset,
		    uint32_t value)
{
	unsigned int n;

	switch (find_block(offset, &n)) {
	case BLOCK_EVENT:
		chip_core_event_set(c->core, n, value);
		break;
	case BLOCK_READ:
		break;		/* read only */
	case BLOCK_SET:
		chip_core_sem_set(c->core, n, value);
		break;
	case BLOCK_INC:
		chip_core_sem_add(c->core, n, value);
		break;
	case BLOCK_DEC:
		chip_core_sem_add(c->core, n, -(int64_t)value);
		break;
	default:
		chip_ram_write(&chip->ram, bar0 + offset, value);
	}
}

/* False: part of it is outside of on-chip memory, or not whole registers. */
bool chip_tpb_read(struct neuron_chip *chip, unsigned int core, uint64_t offset, void *buf, size_t len)
{
	struct chip_core_state *c = &chip->core[core];
	uint64_t bar0 = chip->profile.tpb_bar0 + core * CHIP_TPB_WINDOW;
	bool ok = true;
	uint32_t v;
	size_t i;

	if (offset >= CHIP_TPB_WINDOW || len > CHIP_TPB_WINDOW - offset)
		return false;
	pthread_mutex_lock(&c->lock);
	if (offset < CHIP_SBUF_APERTURE) {
		ok = len <= CHIP_SBUF_APERTURE - offset &&
		     chip_core_sbuf_read(c->core, offset, buf, len);
	} else if ((offset | len) & 3) {
		ok = false;
	} else {
		for (i = 0; i < len; i += 4) {
			v = htole32(read32(chip, c, bar0, offset + i));
			memcpy((char *)buf + i, &v, 4);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return ok;
}

bool chip_tpb_write(struct neuron_chip *chip, unsigned int core, uint64_t offset, const void *buf, size_t len)
{
	struct chip_core_state *c = &chip->core[core];
	uint64_t bar0 = chip->profile.tpb_bar0 + core * CHIP_TPB_WINDOW;
	bool ok = true;
	uint32_t v;
	size_t i;

	if (offset >= CHIP_TPB_WINDOW || len > CHIP_TPB_WINDOW - offset)
		return false;
	pthread_mutex_lock(&c->lock);
	if (offset < CHIP_SBUF_APERTURE) {
		ok = len <= CHIP_SBUF_APERTURE - offset &&
		     chip_core_sbuf_write(c->core, offset, buf, len);
	} else if ((offset | len) & 3) {
		ok = false;
	} else {
		for (i = 0; i < len; i += 4) {
			memcpy(&v, (const char *)buf + i, 4);
			write32(chip, c, bar0, offset + i, le32toh(v));
		}
	}
	pthread_mutex_unlock(&c->lock);
	return ok;
}
