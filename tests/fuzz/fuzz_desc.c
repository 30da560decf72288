// SPDX-License-Identifier: MIT
/*
 * Descriptors: queues that are set up as a driver does, with rings full of packets
 * whose every field may be wrong, that copy from and to every kind of address: host,
 * HBM and its edges, SBUF, semaphores, registers (the doorbells and the ring itself
 * among them), peers.
 */
#include <string.h>

#include "guest.h"

#define MAX_ROUNDS	24
#define RING_BYTES	0x4000u		/* tx; the rx ring follows */
#define MAX_DESC	0x400u

static uint64_t register_dpa(struct fuzz_input *in)
{
	/* APB of the SENGs, of IO and V2's: hw section 5.1. */
	static const uint64_t v3[] = { 0x1002000000ull, 0x5004000000ull, 0x8006800000ull, 0x8280000000ull };
	static const uint64_t v2[] = { 0xffff0000000ull, 0xffff0700000ull, 0xffff0600000ull, 0xfffd0000000ull };
	unsigned int n = fuzz_below(in, 4);

	return (guest_arch->v3 ? v3[n] : v2[n]) + (fuzz_take(in, 3) & 0x3fffff);
}

static uint64_t address(struct fuzz_input *in)
{
	switch (fuzz_below(in, 12)) {
	case 0:
	case 1:
	case 2:
		return guest_arch->host_bit | (GUEST_DATA + (fuzz_take(in, 3) & 0x7ffff));
	case 3:
	case 4:
		return guest_hbm_dpa(fuzz_below(in, 4)) + (fuzz_take(in, 3) & 0xfffff);
	case 5:
		return guest_hbm_dpa(fuzz_below(in, 4)) + guest_arch->stack_size - fuzz_take(in, 3) % 0x20000;
	case 6:
		return guest_tpb_dpa(fuzz_below(in, 8)) + (fuzz_take(in, 4) & 0x1ffffff);
	case 7:
		return guest_tpb_dpa(fuzz_below(in, 8)) + NEURON_TPB_EVENT(0) + (fuzz_take(in, 2) & 0x3fff);
	case 8:
		return register_dpa(in);
	case 9:
		return guest_arch->host_bit | (GUEST_RINGS + (fuzz_take(in, 2) & 0x7fff));
	case 10:
		return (uint64_t)fuzz_below(in, 8) << 50 | guest_hbm_dpa(fuzz_below(in, 4));
	default:
		return fuzz_number(in);
	}
}

static uint32_t length(struct fuzz_input *in)
{
	static const uint16_t some[] = { 0, 1, 4, 63, 64, 4096, 65535, 2 };
	unsigned int n = fuzz_below(in, 16);

	return n < 8 ? some[n] : (uint32_t)fuzz_take(in, n & 1 ? 1 : 2);
}

/* One packet on each side; mostly the same bytes, mostly well-formed. */
static void packet(struct fuzz_input *in, unsigned int *tx, unsigned int *rx)
{
	unsigned int n = 1 + (fuzz_below(in, 4) ? 0 : fuzz_below(in, 70)), i;
	struct neuron_udma_desc d;

	for (i = 0; i < n; i++) {
		d.flags = length(in) | 1u << 24 | (i ? 0 : 1u << 26) | (i == n - 1 ? 1u << 27 : 0);
		d.meta = NEURON_UDMA_META_COPY;
		if (!fuzz_below(in, 6))
			d.flags ^= 1u << fuzz_below(in, 32);
		if (!fuzz_below(in, 6))
			d.meta ^= 1u << fuzz_below(in, 32);
		d.addr = address(in);
		memcpy(guest_mem + GUEST_RINGS + 16 * ((*tx)++ % MAX_DESC), &d, sizeof(d));
		d.meta = 0;
		d.flags &= 0xffff;
		d.flags |= 1u << 24;
		d.addr = address(in);
		if (!fuzz_below(in, 8))
			d.flags = (uint32_t)fuzz_take(in, 4);
		if (!i || fuzz_below(in, 2))
			memcpy(guest_mem + GUEST_RINGS + RING_BYTES + 16 * ((*rx)++ % MAX_DESC), &d, sizeof(d));
	}
}

/* Limits, states, enables, masks: what software may set while rings run. */
static void disturb(struct fuzz_input *in, uint64_t e, unsigned int queue)
{
	static const uint16_t regs[] = { 0x204, 0x20c, 0x254, 0x258, 0x300, 0x304, 0x308, 0x310, 0x408 };
	uint64_t side = fuzz_below(in, 2) ? NEURON_UDMA_S2M : NEURON_UDMA_M2S;

	if (fuzz_below(in, 2))
		guest_write(e + side + regs[fuzz_below(in, sizeof(regs) / sizeof(regs[0]))],
			    (uint32_t)fuzz_number(in));
	else
		guest_write(e + side + NEURON_UDMA_Q(queue) + 4 * fuzz_below(in, 64), (uint32_t)fuzz_number(in));
}

static uint32_t ring_length(struct fuzz_input *in)
{
	static const uint32_t some[] = { 32, 48, 64, 80, 1024, 16, 1, 0xffffff };

	return some[fuzz_below(in, 8)];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, data + size };
	unsigned int round, n, tx, rx, queue;
	uint64_t e;

	guest_open(&in);
	for (round = 0; round < MAX_ROUNDS && in.p < in.end; round++) {
		e = guest_engine(&in);
		queue = fuzz_below(&in, 16);
		guest_queue(e, queue, GUEST_RINGS, GUEST_RINGS + RING_BYTES, ring_length(&in));
		guest_write(e + NEURON_UDMA_CHANGE_STATE, 1);
		for (n = 1 + fuzz_below(&in, 6), tx = rx = 0; n; n--)
			packet(&in, &tx, &rx);
		if (!fuzz_below(&in, 3))
			disturb(&in, e, queue);
		if (!fuzz_below(&in, 8))
			tx += fuzz_below(&in, 64);
		guest_doorbell(e, queue, tx, rx);
		if (!fuzz_below(&in, 3))
			disturb(&in, e, queue);
		guest_read(e + NEURON_UDMA_Q(queue) + 4 * fuzz_below(&in, 64));
	}
	guest_check();
	return 0;
}
