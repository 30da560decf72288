// SPDX-License-Identifier: MIT
/* Device physical addresses: what a UDMA descriptor or the mailbox may name. */
#include <string.h>

#include "chip.h"

#define BOUNCE	4096

static bool in_host(const struct chip_profile *p, uint64_t dpa, uint64_t len)
{
	uint64_t bit = 1ull << p->host_bit;

	/* Exactly this bit: the ones above select dies and other chips. */
	return (dpa >> p->host_bit) == 1 && len <= bit - (dpa & (bit - 1));
}

/* A window of a link shows the device address space of the chip at its other end. */
static bool in_link(const struct chip_profile *p, uint64_t dpa, uint64_t len, struct chip_place *place)
{
	const uint64_t size = 1ull << p->link_shift;
	uint64_t offset = dpa - p->link_dpa;

	if (!p->link_dpa || dpa < p->link_dpa || offset >> p->link_shift >= CHIP_MAX_LINKS)
		return false;
	if (len > size - offset % size)
		return false;
	place->target = CHIP_TARGET_LINK;
	place->link = (unsigned int)(offset >> p->link_shift);
	place->addr = offset % size;
	return true;
}

static bool in_hbm(struct neuron_chip *chip, uint64_t dpa, uint64_t len, struct chip_place *place)
{
	const struct chip_profile *p = &chip->profile;
	unsigned int i;

	for (i = 0; i < p->hbm_stacks; i++) {
		if (dpa < p->hbm_dpa[i] || dpa - p->hbm_dpa[i] >= p->hbm_size)
			continue;
		if (len <= p->hbm_size - (dpa - p->hbm_dpa[i])) {
			place->target = CHIP_TARGET_HBM;
			place->hbm = chip->hbm + i * p->hbm_size + (dpa - p->hbm_dpa[i]);
		}
		return true;
	}
	return false;
}

static void in_windows(const struct chip_profile *p, uint64_t dpa, uint64_t len, struct chip_place *place)
{
	const struct chip_window *w;
	uint64_t offset, tpb;
	unsigned int i;

	for (i = 0; i < p->windows; i++) {
		w = &p->window[i];
		if (dpa < w->dpa || dpa - w->dpa >= w->size || len > w->size - (dpa - w->dpa))
			continue;
		offset = w->bar0 + (dpa - w->dpa);
		place->target = CHIP_TARGET_REG;
		place->addr = offset;
		tpb = offset - p->tpb_bar0;
		if (offset >= p->tpb_bar0 && tpb / CHIP_TPB_WINDOW < p->cores) {
			place->target = CHIP_TARGET_TPB;
			place->core = (unsigned int)(tpb / CHIP_TPB_WINDOW);
			place->addr = tpb % CHIP_TPB_WINDOW;
			if (len > CHIP_TPB_WINDOW - place->addr)
				place->target = CHIP_TARGET_NONE;
		}
		return;
	}
}

struct chip_place chip_resolve(struct neuron_chip *chip, uint64_t dpa, uint64_t len)
{
	const struct chip_profile *p = &chip->profile;
	struct chip_place place = { .target = CHIP_TARGET_NONE };

	if (in_host(p, dpa, len)) {
		place.target = CHIP_TARGET_HOST;
		place.addr = dpa & ((1ull << p->host_bit) - 1);
	} else if (!in_hbm(chip, dpa, len, &place) && !in_link(p, dpa, len, &place)) {
		in_windows(p, dpa, len, &place);
	}
	return place;
}

/* --- registers ------------------------------------------------------------------------- */

static bool reg_read(struct neuron_chip *chip, uint64_t offset, uint8_t *buf, size_t len)
{
	uint32_t v;
	size_t i;

	if ((offset | len) & 3)
		return false;
	for (i = 0; i < len; i += 4) {
		v = htole32(chip_bar0_read32(chip, offset + i));
		memcpy(buf + i, &v, 4);
	}
	return true;
}

static bool reg_write(struct neuron_chip *chip, uint64_t offset, const uint8_t *buf, size_t len)
{
	uint32_t v;
	size_t i;

	if ((offset | len) & 3)
		return false;
	for (i = 0; i < len; i += 4) {
		memcpy(&v, buf + i, 4);
		chip_bar0_write32(chip, offset + i, le32toh(v));
	}
	return true;
}

/* --- one place ---------------------------------------------------------------------------- */

bool chip_place_read(struct neuron_chip *chip, const struct chip_place *place, void *buf, size_t len)
{
	switch (place->target) {
	case CHIP_TARGET_HBM:
		if (chip_inject_hbm_read(chip, place->hbm, len) < len)
			return false;
		memcpy(buf, place->hbm, len);
		return true;
	case CHIP_TARGET_HOST:
		return chip_dma_read(chip, place->addr, buf, len);
	case CHIP_TARGET_TPB:
		return chip_tpb_read(chip, place->core, place->addr, buf, len);
	case CHIP_TARGET_REG:
		return reg_read(chip, place->addr, buf, len);
	default:
		return false;
	}
}

bool chip_place_write(struct neuron_chip *chip, const struct chip_place *place, const void *buf, size_t len)
{
	switch (place->target) {
	case CHIP_TARGET_HBM:
		memcpy(place->hbm, buf, len);
		return true;
	case CHIP_TARGET_HOST:
		return chip_dma_write(chip, place->addr, buf, len);
	case CHIP_TARGET_TPB:
		return chip_tpb_write(chip, place->core, place->addr, buf, len);
	case CHIP_TARGET_REG:
		return reg_write(chip, place->addr, buf, len);
	default:
		return false;
	}
}

/* --- from one place to another --------------------------------------------------------------- */

/**
 * struct end - one end of a copy
 * @chip: that the place is in
 * @peer: @chip, when it is behind @link, and has to be given back
 */
struct end {
	struct neuron_chip *chip;
	struct neuron_chip *peer;
	unsigned int link;
	struct chip_place place;
};

/*
 * Behind a link there are the other chip's HBM and cores. Its registers can be read,
 * as the public driver's pod election does, and no more; its host is not reachable.
 */
static bool open_end(struct neuron_chip *chip, struct end *end, const struct chip_place *place,
		     size_t len, bool write)
{
	*end = (struct end){ .chip = chip, .place = *place };
	if (place->target != CHIP_TARGET_LINK)
		return true;
	end->peer = chip_link_get(chip, place->link);
	if (!end->peer)
		return false;
	end->chip = end->peer;
	end->link = place->link;
	end->place = chip_resolve(end->peer, place->addr, len);
	switch (end->place.target) {
	case CHIP_TARGET_HBM:
	case CHIP_TARGET_TPB:
		return true;
	case CHIP_TARGET_REG:
		return !write;
	default:
		return false;
	}
}

static void close_end(struct neuron_chip *chip, struct end *end, size_t bytes)
{
	if (end->peer)
		chip_link_put(chip, end->link, end->peer, bytes);
}

/* TPB, registers and host on both sides. */
static enum chip_copy bounce(const struct end *dst, const struct end *src, size_t len)
{
	struct chip_place from = src->place, to = dst->place;
	uint8_t buf[BOUNCE];
	size_t n;

	while (len) {
		n = len < BOUNCE ? len : BOUNCE;
		if (!chip_place_read(src->chip, &from, buf, n))
			return CHIP_COPY_SOURCE;
		if (!chip_place_write(dst->chip, &to, buf, n))
			return CHIP_COPY_DESTINATION;
		from.addr += n;
		to.addr += n;
		len -= n;
	}
	return CHIP_COPY_OK;
}

/* With HBM on one side the bytes move once, straight between the two. */
static enum chip_copy copy_ends(const struct end *dst, const struct end *src, size_t len)
{
	if (src->place.target == CHIP_TARGET_HBM) {
		if (chip_inject_hbm_read(src->chip, src->place.hbm, len) < len)
			return CHIP_COPY_MEMORY_ERROR;
		if (dst->place.target == CHIP_TARGET_HBM) {
			memmove(dst->place.hbm, src->place.hbm, len);
			return CHIP_COPY_OK;
		}
		return chip_place_write(dst->chip, &dst->place, src->place.hbm, len) ?
		       CHIP_COPY_OK : CHIP_COPY_DESTINATION;
	}
	if (dst->place.target == CHIP_TARGET_HBM)
		return chip_place_read(src->chip, &src->place, dst->place.hbm, len) ? CHIP_COPY_OK : CHIP_COPY_SOURCE;
	return bounce(dst, src, len);
}

enum chip_copy chip_place_copy(struct neuron_chip *chip, const struct chip_place *dst,
			       const struct chip_place *src, size_t len)
{
	enum chip_copy ret = CHIP_COPY_SOURCE;
	struct end from, to = { .peer = NULL };

	if (open_end(chip, &from, src, len, false)) {
		ret = CHIP_COPY_DESTINATION;
		if (open_end(chip, &to, dst, len, true))
			ret = copy_ends(&to, &from, len);
	}
	close_end(chip, &from, ret ? 0 : len);
	close_end(chip, &to, ret ? 0 : len);
	return ret;
}
