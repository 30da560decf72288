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

static struct chip_place in_windows(const struct chip_profile *p, uint64_t dpa, uint64_t len)
{
	struct chip_place place = { .target = CHIP_TARGET_NONE };
	const struct chip_window *w;
	uint64_t offset, tpb;
	unsigned int i;

	for (i = 0; i < p->windows; i++) {
		w = &p->window[i];
		if (dpa < w->dpa || dpa - w->dpa >= w->size || len > w->size - (dpa - w->dpa))
			continue;
		offset = w->bar0 + (dpa - w->dpa);
		place.target = CHIP_TARGET_REG;
		place.addr = offset;
		tpb = offset - p->tpb_bar0;
		if (offset >= p->tpb_bar0 && tpb / CHIP_TPB_WINDOW < p->cores) {
			place.target = CHIP_TARGET_TPB;
			place.core = tpb / CHIP_TPB_WINDOW;
			place.addr = tpb % CHIP_TPB_WINDOW;
			if (len > CHIP_TPB_WINDOW - place.addr)
				place.target = CHIP_TARGET_NONE;
		}
		break;
	}
	return place;
}

struct chip_place chip_resolve(struct neuron_chip *chip, uint64_t dpa, uint64_t len)
{
	const struct chip_profile *p = &chip->profile;
	struct chip_place place = { .target = CHIP_TARGET_NONE };
	unsigned int i;

	if (in_host(p, dpa, len)) {
		place.target = CHIP_TARGET_HOST;
		place.addr = dpa & ((1ull << p->host_bit) - 1);
		return place;
	}
	for (i = 0; i < p->hbm_stacks; i++) {
		if (dpa >= p->hbm_dpa[i] && dpa - p->hbm_dpa[i] < p->hbm_size) {
			if (len > p->hbm_size - (dpa - p->hbm_dpa[i]))
				return place;
			place.target = CHIP_TARGET_HBM;
			place.hbm = chip->hbm + i * p->hbm_size + (dpa - p->hbm_dpa[i]);
			return place;
		}
	}
	return in_windows(p, dpa, len);
}

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
	default:
		return false;
	}
}

static bool bounce(struct neuron_chip *chip, struct chip_place dst, struct chip_place src, size_t len)
{
	uint8_t buf[BOUNCE];
	size_t n;

	while (len) {
		n = len < BOUNCE ? len : BOUNCE;
		if (!chip_place_read(chip, &src, buf, n) || !chip_place_write(chip, &dst, buf, n))
			return false;
		src.addr += n;
		dst.addr += n;
		len -= n;
	}
	return true;
}

/* With HBM on one side the bytes move once, straight between the two. */
bool chip_place_copy(struct neuron_chip *chip, const struct chip_place *dst,
		     const struct chip_place *src, size_t len)
{
	if (src->target == CHIP_TARGET_HBM && dst->target == CHIP_TARGET_HBM) {
		memmove(dst->hbm, src->hbm, len);
		return true;
	}
	if (src->target == CHIP_TARGET_HBM)
		return chip_place_write(chip, dst, src->hbm, len);
	if (dst->target == CHIP_TARGET_HBM)
		return chip_place_read(chip, src, dst->hbm, len);
	return bounce(chip, *dst, *src, len);
}
