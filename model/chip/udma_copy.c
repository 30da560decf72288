// SPDX-License-Identifier: MIT
/*
 * UDMA packets: from descriptors to moved bytes. A packet is the source descriptors
 * from FIRST to LAST; its bytes fill destination descriptors in order, and its end
 * closes the destination it is in. Runs without a lock.
 */
#include <string.h>

#include "udma.h"

static uint32_t desc_flags(const struct neuron_udma_desc *d)
{
	return le32toh(d->flags);
}

static uint32_t desc_len(const struct batch *b, const struct neuron_udma_desc *d)
{
	uint32_t len = desc_flags(d) & NEURON_UDMA_DESC_LEN_MASK;

	return len || !(b->cfg_len & NEURON_UDMA_CFG_LEN_64K) ? len : NEURON_UDMA_DESC_MAX_LEN;
}

static bool fail(struct batch *b, unsigned int side, uint32_t cause, uint64_t addr, const char *why)
{
	b->error = (struct udma_error){ why, side, cause, addr };
	return false;
}

/* --- reading descriptors ----------------------------------------------------------- */

static bool fetch_side(struct batch *b, unsigned int side)
{
	struct ring *r = &b->ring[side];
	uint32_t want = r->pending < UDMA_BATCH ? r->pending : UDMA_BATCH;
	uint32_t pos = r->head, n;
	struct chip_place place;

	b->count[side] = 0;
	while (b->count[side] < want) {
		n = want - b->count[side];
		if (n > r->len - pos)
			n = r->len - pos;
		place = chip_resolve(b->chip, r->base + 16ull * pos, 16ull * n);
		if ((place.target != CHIP_TARGET_HOST && place.target != CHIP_TARGET_HBM) ||
		    !chip_place_read(b->chip, &place, &b->desc[side][b->count[side]], 16ull * n))
			return fail(b, side, side == M2S ? NEURON_UDMA_CAUSE_M2S_PREF_RESP :
							   NEURON_UDMA_CAUSE_S2M_PREF_RESP,
				    r->base + 16ull * pos, "ring memory is unreachable");
		b->count[side] += n;
		pos = 0;
	}
	return true;
}

/*
 * A descriptor carries the number of the ring's pass, modulo 4: with another one it
 * is left over from an earlier pass. Software may have masked that error.
 */
static bool ring_ids_ok(struct batch *b, unsigned int side, unsigned int n)
{
	const struct ring *r = &b->ring[side];
	uint32_t cause = side == M2S ? NEURON_UDMA_CAUSE_M2S_RING_ID : NEURON_UDMA_CAUSE_S2M_RING_ID;
	unsigned int i = b->used[side], end = i + n;
	uint32_t id;

	for (; i < end; i++) {
		id = (r->head_id + (r->head + i) / r->len) & 3;
		if ((desc_flags(&b->desc[side][i]) >> NEURON_UDMA_DESC_RING_ID_SHIFT & 3) == id)
			continue;
		if (!(b->abort_mask[side] & cause))
			return fail(b, side, cause, r->base + 16ull * ((r->head + i) % r->len),
				    "descriptor has the ring id of another pass");
		b->tolerated[side] |= cause;
	}
	return true;
}

/* Sources of the next packet; 0: it is not complete (or bad). */
static unsigned int packet_sources(struct batch *b, uint64_t *bytes)
{
	unsigned int first = b->used[M2S], i;
	const struct neuron_udma_desc *d;
	uint32_t flags;

	*bytes = 0;
	for (i = first; i < b->count[M2S]; i++) {
		d = &b->desc[M2S][i];
		flags = desc_flags(d);
		if (!(flags & NEURON_UDMA_DESC_FIRST) == (i == first)) {
			fail(b, M2S, i == first ? NEURON_UDMA_CAUSE_M2S_FIRST : NEURON_UDMA_CAUSE_M2S_LAST,
			     le64toh(d->addr), i == first ? "packet does not start with FIRST" :
			     "FIRST inside a packet, LAST is missing");
			return 0;
		}
		*bytes += desc_len(b, d);
		if (*bytes > (b->cfg_len & NEURON_UDMA_CFG_LEN_MAX)) {
			fail(b, M2S, NEURON_UDMA_CAUSE_M2S_PKT_LEN, le64toh(d->addr),
			     "packet is longer than the limit in cfg_len");
			return 0;
		}
		if (i - first + 1 > b->max_descs) {
			fail(b, M2S, NEURON_UDMA_CAUSE_M2S_MAX_DESC, le64toh(d->addr),
			     "packet has more descriptors than desc_pref_cfg_2 allows");
			return 0;
		}
		if (flags & NEURON_UDMA_DESC_LAST)
			return i - first + 1;
	}
	return 0;
}

/* Destinations that @bytes need; 0: not there yet (or bad). */
static unsigned int packet_destinations(struct batch *b, uint64_t bytes)
{
	unsigned int first = b->used[S2M], i;
	uint64_t room = 0;

	for (i = first; i < b->count[S2M]; i++) {
		room += desc_len(b, &b->desc[S2M][i]);
		if (room >= bytes)
			return i - first + 1;
	}
	if (i - first >= UDMA_BATCH)
		fail(b, S2M, NEURON_UDMA_CAUSE_S2M_PKT_LEN, 0, "packet needs more than 256 destination descriptors");
	return 0;
}

/*
 * Word 1 of a source: of what it can ask for only the plain copy is publicly
 * described. The rest is refused, not done wrongly.
 */
static bool operation_ok(struct batch *b, const struct neuron_udma_desc *d)
{
	static const struct {
		uint32_t mask, value;
		const char *why;
	} rules[] = {
		{ NEURON_UDMA_META_SWAP, 0, "byte and bit swaps are not modelled" },
		{ NEURON_UDMA_META_CRC, 0, "CRC operations are not modelled" },
		{ NEURON_UDMA_META_COPY_SOURCE, NEURON_UDMA_META_COPY_SOURCE,
		  "source without copy_source_data: not modelled" },
		{ NEURON_UDMA_META_OP_TYPE, 0, "operation type other than 0 is not modelled" },
		{ NEURON_UDMA_META_OP, NEURON_UDMA_META_OP_COPY, "operation other than 2 (copy) is not modelled" },
	};
	uint32_t meta = le32toh(d->meta);
	size_t i;

	for (i = 0; i < ARRAY_LEN(rules); i++) {
		if ((meta & rules[i].mask) != rules[i].value)
			return fail(b, M2S, NEURON_UDMA_CAUSE_M2S_STRM_RESP, le64toh(d->addr), rules[i].why);
	}
	return true;
}

static bool packet_ok(struct batch *b, unsigned int sources, unsigned int dests)
{
	unsigned int i;

	for (i = 0; i < sources; i++) {
		if (!operation_ok(b, &b->desc[M2S][b->used[M2S] + i]))
			return false;
	}
	return ring_ids_ok(b, M2S, sources) && ring_ids_ok(b, S2M, dests);
}

/* --- moving bytes -------------------------------------------------------------------- */

static bool copy_part(struct batch *b, uint64_t dst, uint64_t src, uint32_t len)
{
	struct chip_place to = chip_resolve(b->chip, dst, len);
	struct chip_place from = chip_resolve(b->chip, src, len);

	if (from.target == CHIP_TARGET_NONE)
		return fail(b, M2S, NEURON_UDMA_CAUSE_M2S_DATA_RESP, src, "source address: nothing is there");
	if (to.target == CHIP_TARGET_NONE)
		return fail(b, S2M, NEURON_UDMA_CAUSE_S2M_DATA_RESP, dst, "destination address: nothing is there");
	switch (chip_place_copy(b->chip, &to, &from, len)) {
	case CHIP_COPY_OK:
		return true;
	case CHIP_COPY_SOURCE:
		return fail(b, M2S, NEURON_UDMA_CAUSE_M2S_DATA_RESP, src, "source address: bus error");
	case CHIP_COPY_MEMORY_ERROR:
		return fail(b, M2S, NEURON_UDMA_CAUSE_M2S_DATA_RESP, src, "source address: uncorrectable HBM error");
	default:
		return fail(b, S2M, NEURON_UDMA_CAUSE_S2M_DATA_RESP, dst, "destination address: bus error");
	}
}

static bool copy_packet(struct batch *b, unsigned int sources)
{
	const struct neuron_udma_desc *s = &b->desc[M2S][b->used[M2S]];
	const struct neuron_udma_desc *d = &b->desc[S2M][b->used[S2M]];
	const struct neuron_udma_desc *end = s + sources;
	uint32_t soff = 0, doff = 0, n;

	while (s < end) {
		n = desc_len(b, s) - soff;
		/* A length of 0 that is not 64 KiB: nothing to do for it. */
		if (!n) {
			s++;
			soff = 0;
			continue;
		}
		if (doff == desc_len(b, d)) {
			d++;
			doff = 0;
			continue;
		}
		if (n > desc_len(b, d) - doff)
			n = desc_len(b, d) - doff;
		if (!copy_part(b, le64toh(d->addr) + doff, le64toh(s->addr) + soff, n))
			return false;
		soff += n;
		doff += n;
	}
	return true;
}

/* The public driver's barriers; the next packet may tell software that this is done. */
static void order(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

static bool wants_irq(const struct batch *b, unsigned int side, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (desc_flags(&b->desc[side][b->used[side] + i]) & NEURON_UDMA_DESC_INT_EN)
			return true;
	}
	return false;
}

/* Faults on demand, before a packet is copied. */
static bool injected(struct batch *b)
{
	const struct engine_link *at = &b->q->at;
	struct chip_site site = chip_site_udma(at->engine_nr, at->nr);

	if (chip_inject_hit(b->chip, CHIP_INJECT_DMA_ABORT, site)) {
		fail(b, M2S, NEURON_UDMA_CAUSE_M2S_DATA_RESP, le64toh(b->desc[M2S][b->used[M2S]].addr),
		     "injected abort");
		return true;
	}
	b->stuck = chip_inject_hit(b->chip, CHIP_INJECT_DMA_STUCK, site);
	if (b->stuck)
		chip_log(b->chip, NEURON_CHIP_LOG_GUEST, "udma %u queue %u: stuck (injected)",
			 at->engine_nr, at->nr);
	return b->stuck;
}

void udma_run_batch(struct batch *b)
{
	unsigned int sources, dests;
	uint64_t bytes;

	if (!fetch_side(b, M2S) || !fetch_side(b, S2M))
		return;
	while (b->used[M2S] < b->count[M2S] && b->bytes < UDMA_BATCH_BYTES && !b->irq) {
		if (atomic_load_explicit(&b->q->gen, memory_order_relaxed) != b->gen)
			return;
		sources = packet_sources(b, &bytes);
		dests = sources ? packet_destinations(b, bytes) : 0;
		if (!dests || injected(b) || !packet_ok(b, sources, dests) || !copy_packet(b, sources))
			return;
		order();
		b->irq = wants_irq(b, M2S, sources) || wants_irq(b, S2M, dests);
		b->used[M2S] += sources;
		b->used[S2M] += dests;
		b->bytes += bytes;
	}
}
