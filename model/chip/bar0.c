// SPDX-License-Identifier: MIT
/* BAR0: finds the block that an offset belongs to. */
#include <string.h>

#include "chip.h"

static bool in_tpb(const struct chip_profile *p, uint64_t offset)
{
	return offset >= p->tpb_bar0 && (offset - p->tpb_bar0) / CHIP_TPB_WINDOW < p->cores;
}

static bool in_misc(const struct chip_profile *p, uint64_t offset)
{
	return offset >= p->misc_ram && offset - p->misc_ram < NEURON_MISC_SIZE;
}

uint32_t chip_bar0_read32(struct neuron_chip *chip, uint64_t offset)
{
	const struct chip_profile *p = &chip->profile;
	unsigned int engine;
	uint32_t rel;

	if (in_misc(p, offset))
		return chip_misc_read(chip, offset - p->misc_ram);
	if (chip_udma_find(p, offset, &engine, &rel))
		return chip_udma_read(chip, engine, rel, offset);
	if (offset == p->qemu_reset && chip->revision == NEURON_PCI_REVISION_QEMU)
		return chip_qemu_reset_read(chip);
	return chip_ram_read(&chip->ram, offset);
}

void chip_bar0_write32(struct neuron_chip *chip, uint64_t offset, uint32_t value)
{
	const struct chip_profile *p = &chip->profile;
	unsigned int engine;
	uint32_t rel;

	if (in_misc(p, offset))
		chip_misc_write(chip, offset - p->misc_ram, value);
	else if (chip_udma_find(p, offset, &engine, &rel))
		chip_udma_write(chip, engine, rel, offset, value);
	else if (offset == p->qemu_reset && chip->revision == NEURON_PCI_REVISION_QEMU)
		chip_qemu_reset_write(chip, value);
	else if (!chip_ram_write(&chip->ram, offset, value))
		chip_log(chip, NEURON_CHIP_LOG_GUEST,
			 "BAR0 0x%llx: write lost, too many registers without a function are written",
			 (unsigned long long)offset);
}

static uint64_t tpb_read(struct neuron_chip *chip, uint64_t offset, unsigned int size)
{
	uint64_t tpb = offset - chip->profile.tpb_bar0;
	unsigned int core = tpb / CHIP_TPB_WINDOW;
	uint64_t value = 0;
	uint32_t word = 0;

	tpb %= CHIP_TPB_WINDOW;
	if (tpb < CHIP_SBUF_APERTURE || size >= 4) {
		if (!chip_tpb_read(chip, core, tpb, &value, size))
			return 0;
		return le64toh(value);
	}
	chip_tpb_read(chip, core, tpb & ~3ull, &word, 4);
	return le32toh(word) >> (8 * (tpb & 3));
}

static void tpb_write(struct neuron_chip *chip, uint64_t offset, uint64_t value, unsigned int size)
{
	uint64_t tpb = offset - chip->profile.tpb_bar0;
	uint64_t le = htole64(value);

	/* Parts of a register cannot be written. */
	if (!chip_tpb_write(chip, tpb / CHIP_TPB_WINDOW, tpb % CHIP_TPB_WINDOW, &le, size))
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "BAR0 0x%llx: %u-byte write has no effect",
			 (unsigned long long)offset, size);
}

static uint64_t size_mask(unsigned int size)
{
	return size >= 8 ? ~0ull : (1ull << (8 * size)) - 1;
}

uint64_t chip_bar0_read(struct neuron_chip *chip, uint64_t offset, unsigned int size)
{
	uint64_t value;

	if (offset >= chip->profile.bar0_size)
		return 0;
	if (in_tpb(&chip->profile, offset))
		return tpb_read(chip, offset, size) & size_mask(size);
	if (size == 8) {
		offset &= ~7ull;
		value = chip_bar0_read32(chip, offset);
		return value | (uint64_t)chip_bar0_read32(chip, offset + 4) << 32;
	}
	value = chip_bar0_read32(chip, offset & ~3ull);
	return (value >> (8 * (offset & 3))) & size_mask(size);
}

void chip_bar0_write(struct neuron_chip *chip, uint64_t offset, uint64_t value, unsigned int size)
{
	uint32_t old, mask, shift;

	if (offset >= chip->profile.bar0_size)
		return;
	if (in_tpb(&chip->profile, offset)) {
		tpb_write(chip, offset, value, size);
	} else if (size == 8) {
		offset &= ~7ull;
		chip_bar0_write32(chip, offset, (uint32_t)value);
		chip_bar0_write32(chip, offset + 4, (uint32_t)(value >> 32));
	} else if (size == 4) {
		chip_bar0_write32(chip, offset & ~3ull, (uint32_t)value);
	} else {
		/* Merge with what is there: only meaningful for plain registers. */
		shift = 8 * (offset & 3);
		mask = (uint32_t)size_mask(size) << shift;
		offset &= ~3ull;
		old = chip_bar0_read32(chip, offset);
		chip_bar0_write32(chip, offset, (old & ~mask) | (((uint32_t)value << shift) & mask));
	}
}
