// SPDX-License-Identifier: MIT
/* UDMA engines, driven as the public driver drives them. */
#include <kselftest_harness.h>

#include <sys/wait.h>

#include "chip_host.h"

#define HOST_BIT	(1ull << 46)
#define ENGINE		NEURON_V3_H2T_UDMA(0)
#define M2S_Q(e, q)	((e) + NEURON_UDMA_M2S + NEURON_UDMA_Q(q))
#define S2M_Q(e, q)	((e) + NEURON_UDMA_S2M + NEURON_UDMA_Q(q))
#define TX_RING		0x100000ull
#define RX_RING		0x200000ull
#define SRC		0x400000ull
#define DST		0x1400000ull
#define DESC_BOTH	(NEURON_UDMA_DESC_FIRST | NEURON_UDMA_DESC_LAST)

struct ring {
	uint64_t engine;
	unsigned int q, len, pos, tx_pos;
	uint32_t id, tx_id;	/* number of the pass, modulo 4: 4.5 */
};

/* The fifteen writes of a queue's set-up, in the public driver's order. */
static void queue_init(struct host *h, struct ring *r, uint64_t engine, unsigned int q, unsigned int len)
{
	uint64_t m = M2S_Q(engine, q), s = S2M_Q(engine, q);

	*r = (struct ring){ .engine = engine, .q = q, .len = len, .id = 1, .tx_id = 1 };
	wr(h, m + NEURON_UDMA_M2S_Q_RLIMIT, 3);
	wr(h, m + NEURON_UDMA_Q_CFG, 0x03000000);
	wr(h, m + NEURON_UDMA_M2S_Q_SW_CTRL, 0x100);
	wr(h, m + NEURON_UDMA_Q_DRBP_LO, TX_RING);
	wr(h, m + NEURON_UDMA_Q_DRBP_HI, HOST_BIT >> 32);
	wr(h, m + NEURON_UDMA_Q_DRL, len);
	wr(h, m + NEURON_UDMA_M2S_Q_COMP_CFG, 0);
	wr(h, m + NEURON_UDMA_Q_CFG, 0x03030000);
	wr(h, s + NEURON_UDMA_Q_CFG, 0x03000000);
	wr(h, s + NEURON_UDMA_S2M_Q_SW_CTRL, 0x100);
	wr(h, s + NEURON_UDMA_Q_DRBP_LO, RX_RING);
	wr(h, s + NEURON_UDMA_Q_DRBP_HI, HOST_BIT >> 32);
	wr(h, s + NEURON_UDMA_Q_DRL, len);
	wr(h, s + NEURON_UDMA_S2M_Q_COMP_CFG, 0);
	wr(h, s + NEURON_UDMA_Q_CFG, 0x03030000);
}

static void put(struct host *h, uint64_t ring, unsigned int pos, uint32_t flags, uint32_t meta,
		uint64_t addr)
{
	struct neuron_udma_desc d = { .flags = flags, .meta = meta, .addr = addr };

	memcpy(h->mem + ring + 16ull * pos, &d, sizeof(d));
}

static void put_tx(struct host *h, struct ring *r, uint32_t flags, uint64_t addr, uint32_t len)
{
	put(h, TX_RING, r->tx_pos, flags | r->tx_id << 24 | (len & 0xffff), NEURON_UDMA_META_COPY, addr);
	r->tx_pos = (r->tx_pos + 1) % r->len;
	if (!r->tx_pos)
		r->tx_id = (r->tx_id + 1) & 3;
}

static void put_rx(struct host *h, struct ring *r, uint32_t flags, uint64_t addr, uint32_t len)
{
	put(h, RX_RING, r->pos, flags | r->id << 24 | (len & 0xffff), 0, addr);
	r->pos = (r->pos + 1) % r->len;
	if (!r->pos)
		r->id = (r->id + 1) & 3;
}

static void ring_bells(struct host *h, struct ring *r, unsigned int tx, unsigned int rx)
{
	wr(h, S2M_Q(r->engine, r->q) + NEURON_UDMA_Q_DRTP_INC, rx);
	wr(h, M2S_Q(r->engine, r->q) + NEURON_UDMA_Q_DRTP_INC, tx);
}

static void copy(struct host *h, struct ring *r, uint64_t dst, uint64_t src, uint32_t len)
{
	put_tx(h, r, DESC_BOTH, src, len);
	put_rx(h, r, 0, dst, len);
	ring_bells(h, r, 1, 1);
}

/* The driver writes both sides. */
static void set_state(struct host *h, uint64_t engine, uint32_t value)
{
	wr(h, engine + NEURON_UDMA_CHANGE_STATE, value);
	wr(h, engine + NEURON_UDMA_S2M + NEURON_UDMA_CHANGE_STATE, value);
}

static uint32_t state(struct host *h, uint64_t engine)
{
	return rd(h, engine + NEURON_UDMA_STATE);
}

FIXTURE(udma) {
	struct host host, *h;
	struct ring r;
};

FIXTURE_SETUP(udma)
{
	struct neuron_chip_config config = { .arch = "trn2" };

	self->h = &self->host;
	ASSERT_TRUE(host_open(self->h, &config));
	queue_init(self->h, &self->r, ENGINE, 0, 64);
}

FIXTURE_TEARDOWN(udma)
{
	host_close(self->h);
}

/*
 * hw-public-interface 4.4: what the public driver writes into an engine, in order, and
 * what its interrupt masks are then. 18 and 30 of a group take complements.
 */
TEST_F(udma, golden_engine_init)
{
	static const struct { uint32_t offset, value; } trace[] = {
		{ 0x310, 0x010008f8 }, { 0x124, 0x20808080 }, { 0x3a300, 100000000 }, { 0x408, 0 },
		{ 0x254, 0x010fffff }, { 0x258, 0x102 }, { 0x118, 0x10008 }, { 0x2038c, 0 },
		{ 0x20124, 0x400080 }, { 0x20128, 0x40804080 },
	}, iofic[] = {
		{ 0x3a028, 0x28 }, { 0x380e8, 0x28 }, { 0x3a030, 0xf0000000 }, { 0x3a0b0, 0xffffffc0 },
		{ 0x3a018, 0xf0000000 }, { 0x3a098, 0xffffffc0 }, { 0x380d8, 0xfffffaff },
		{ 0x3a068, 0x28 }, { 0x380e8, 0x28 }, { 0x3a070, 0x10f8 }, { 0x3a0b0, 0xfffff03f },
		{ 0x3a058, 0x10f8 }, { 0x3a098, 0xfffff03f }, { 0x380d8, 0xfffff9ff },
	}, after[] = {
		{ 0x20380, 0x1004 }, { 0x304, 0x10041 }, { 0x308, 0x4181 }, { 0x20308, 0x4181 },
		{ 0x11c, 0x10008 }, { 0x2011c, 0x10008 }, { 0x4001c, 1 }, { 0x40020, 1 },
		{ 0x40000, 1 }, { 0x40800, 0x26 },
	}, masks[] = {
		{ 0x3a010, 0xf0000000 }, { 0x3a030, 0xf0000000 }, { 0x3a050, 0x10f8 }, { 0x3a070, 0x10f8 },
		{ 0x3a090, 0xfffff000 }, { 0x380d0, 0xfffff8ff }, { 0x3a000, 0 }, { 0x3a040, 0 },
	};
	uint64_t e = NEURON_V3_SENG_UDMA(3) + 31 * NEURON_V3_UDMA_STRIDE;
	unsigned int i;

	for (i = 0; i < 16; i++) {
		wr(self->h, M2S_Q(e, i) + NEURON_UDMA_Q_CFG, 0x30000);
		wr(self->h, S2M_Q(e, i) + NEURON_UDMA_Q_CFG, 0x30000);
	}
	for (i = 0; i < sizeof(trace) / sizeof(trace[0]); i++)
		wr(self->h, e + trace[i].offset, trace[i].value);
	for (i = 0; i < 16 * 4; i++)
		wr(self->h, e + 0x3c400 + 0x40 * (i / 4) + 4 * (i % 4), 0xffffffff);
	EXPECT_EQ(rd(self->h, e + 0x3b460), 0);
	wr(self->h, e + 0x3b460, 0);
	for (i = 0; i < sizeof(iofic) / sizeof(iofic[0]); i++)
		wr(self->h, e + iofic[i].offset, iofic[i].value);
	for (i = 0; i < sizeof(after) / sizeof(after[0]); i++)
		wr(self->h, e + after[i].offset, after[i].value);
	for (i = 0; i < sizeof(trace) / sizeof(trace[0]); i++)
		EXPECT_EQ(rd(self->h, e + trace[i].offset), trace[i].value);
	for (i = 0; i < sizeof(after) / sizeof(after[0]); i++)
		EXPECT_EQ(rd(self->h, e + after[i].offset), after[i].value);
	for (i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		EXPECT_EQ(rd(self->h, e + masks[i].offset), masks[i].value);
	EXPECT_EQ(state(self->h, e), 0);
	/* Enabled with length 0: harmless. */
	EXPECT_EQ(atomic_load(&self->h->log_lines), 0);
}

TEST_F(udma, queue_registers)
{
	uint64_t m = M2S_Q(ENGINE, 0), s = S2M_Q(ENGINE, 0);

	EXPECT_EQ(rd(self->h, m + NEURON_UDMA_Q_DRL), 64);
	EXPECT_EQ(rd(self->h, s + NEURON_UDMA_Q_DRBP_LO), RX_RING);
	EXPECT_EQ(rd(self->h, m + NEURON_UDMA_Q_CFG), 0x03030000);
	EXPECT_EQ(rd(self->h, m + NEURON_UDMA_Q_DRHP), 1u << 30);
	copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 4);
	EXPECT_EQ(rd(self->h, m + NEURON_UDMA_Q_DRHP), 1u << 30 | 1);
	EXPECT_EQ(rd(self->h, m + NEURON_UDMA_Q_DRTP), 1u << 30 | 1);
	EXPECT_EQ(rd(self->h, s + NEURON_UDMA_Q_CRHP), 1u << 30 | 1);
	wr(self->h, m + NEURON_UDMA_M2S_Q_SW_CTRL, 0x100);
	EXPECT_EQ(rd(self->h, m + NEURON_UDMA_Q_DRHP), 1u << 30);
	EXPECT_EQ(rd(self->h, s + NEURON_UDMA_Q_DRHP), 1u << 30 | 1);
}

TEST_F(udma, sizes_and_alignments)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 63, 64, 65, 511, 4095, 4096, 4097, 65535, 65536 };
	uint8_t *hbm = neuron_chip_hbm(self->h->chip, 1);
	unsigned int i, a;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (a = 0; a < 9; a += 3) {
			uint64_t s = SRC + a, d = DST + 7 * a, m = 0x4000000000ull + 5 * a;
			uint32_t n = sizes[i];

			fill_pattern(self->h->mem + s, n, i + a);
			memset(self->h->mem + d - 1, 0xee, n + 2);
			hbm[5 * a + n] = 0x77;
			copy(self->h, &self->r, m, HOST_BIT | s, n);
			ASSERT_EQ(memcmp(hbm + 5 * a, self->h->mem + s, n), 0);
			EXPECT_EQ(hbm[5 * a + n], 0x77);
			copy(self->h, &self->r, HOST_BIT | d, m, n);
			neuron_chip_idle(self->h->chip);
			ASSERT_EQ(memcmp(self->h->mem + d, self->h->mem + s, n), 0);
			EXPECT_EQ(self->h->mem[d - 1], 0xee);
			EXPECT_EQ(self->h->mem[d + n], 0xee);
		}
	}
}

/* Sources of 5, 1000, 65536 and 3 bytes into destinations of other sizes. */
TEST_F(udma, packet_of_many_descriptors)
{
	static const uint32_t tx[] = { 5, 1000, 65536, 3 }, rx[] = { 600, 65536, 408 };
	uint8_t want[66544];
	uint64_t at = 0;
	unsigned int i;

	fill_pattern(want, sizeof(want), 9);
	for (i = 0; i < 4; i++) {
		memcpy(self->h->mem + SRC + 0x20000 * i, want + at, tx[i]);
		put_tx(self->h, &self->r, i == 0 ? NEURON_UDMA_DESC_FIRST : i == 3 ? NEURON_UDMA_DESC_LAST : 0,
		       HOST_BIT | (SRC + 0x20000 * i), tx[i]);
		at += tx[i];
	}
	ASSERT_EQ(at, sizeof(want));
	for (i = 0; i < 3; i++)
		put_rx(self->h, &self->r, 0, HOST_BIT | (DST + 0x20000 * i), rx[i]);
	ring_bells(self->h, &self->r, 4, 3);
	neuron_chip_idle(self->h->chip);
	for (i = 0, at = 0; i < 3; i++) {
		EXPECT_EQ(memcmp(self->h->mem + DST + 0x20000 * i, want + at, rx[i]), 0);
		at += rx[i];
	}
	EXPECT_EQ(state(self->h, ENGINE), 0);
	EXPECT_EQ(rd(self->h, S2M_Q(ENGINE, 0) + NEURON_UDMA_Q_DRHP) & 0xffffff, 3);
}

/* Nothing moves before the whole packet and its destinations are announced. */
TEST_F(udma, packet_in_parts)
{
	fill_pattern(self->h->mem + SRC, 64, 1);
	put_tx(self->h, &self->r, NEURON_UDMA_DESC_FIRST, HOST_BIT | SRC, 32);
	put_tx(self->h, &self->r, NEURON_UDMA_DESC_LAST, HOST_BIT | (SRC + 32), 32);
	put_rx(self->h, &self->r, 0, HOST_BIT | DST, 40);
	put_rx(self->h, &self->r, 0, HOST_BIT | (DST + 40), 24);
	ring_bells(self->h, &self->r, 1, 1);
	EXPECT_EQ(self->h->mem[DST + 1], 0);
	wr(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRTP_INC, 1);
	EXPECT_EQ(self->h->mem[DST + 1], 0);
	wr(self->h, S2M_Q(ENGINE, 0) + NEURON_UDMA_Q_DRTP_INC, 1);
	EXPECT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, 64), 0);
}

TEST_F(udma, ring_that_is_no_power_of_two)
{
	uint64_t tail = M2S_Q(ENGINE, 1) + NEURON_UDMA_Q_DRTP;
	struct ring r;
	unsigned int i;

	queue_init(self->h, &r, ENGINE, 1, 48);
	for (i = 0; i < 48 * 5 + 7; i++) {
		fill_pattern(self->h->mem + SRC, 100, i);
		copy(self->h, &r, HOST_BIT | DST, HOST_BIT | SRC, 100);
		ASSERT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, 100), 0);
	}
	/* Five wraps from ring id 1. */
	EXPECT_EQ(rd(self->h, tail), ((1u + 5) & 3) << 30 | 7u);
}

/* More than a doorbell does itself; the marker comes after all data. */
TEST_F(udma, long_copy_and_marker)
{
	const uint32_t n = 63;
	uint32_t marker = 0xabcdef01;
	unsigned int i, round;

	memcpy(self->h->mem + 0x10000, &marker, 4);
	for (round = 0; round < 20; round++) {
		fill_pattern(self->h->mem + SRC, n << 16, round);
		memset(self->h->mem + 0x10004, 0, 4);
		for (i = 0; i < n; i++) {
			put_tx(self->h, &self->r, DESC_BOTH, HOST_BIT | (SRC + (i << 16)), 65536);
			put_rx(self->h, &self->r, 0, HOST_BIT | (DST + (i << 16)), 65536);
		}
		put_tx(self->h, &self->r, DESC_BOTH, HOST_BIT | 0x10000, 4);
		put_rx(self->h, &self->r, 0, HOST_BIT | 0x10004, 4);
		ring_bells(self->h, &self->r, n + 1, n + 1);
		ASSERT_TRUE(WAIT_FOR(__atomic_load_n((uint32_t *)(self->h->mem + 0x10004),
						     __ATOMIC_ACQUIRE) == marker));
		ASSERT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, n << 16), 0);
		neuron_chip_idle(self->h->chip);
	}
}

TEST_F(udma, every_engine)
{
	struct ring r;
	unsigned int i;

	for (i = 0; i < 132; i++) {
		uint64_t e = i < 128 ? NEURON_V3_SENG_UDMA(i / 32) + i % 32 * NEURON_V3_UDMA_STRIDE :
				       NEURON_V3_H2T_UDMA(i - 128);

		queue_init(self->h, &r, e, 15, 32);
		fill_pattern(self->h->mem + SRC, 64, i);
		copy(self->h, &r, 0x804000001000ull, HOST_BIT | SRC, 64);
		ASSERT_EQ(memcmp((char *)neuron_chip_hbm(self->h->chip, 3) + 0x1000,
				 self->h->mem + SRC, 64), 0);
	}
}

TEST_F(udma, hbm_to_hbm_and_edges)
{
	struct neuron_chip_info info;
	uint8_t *last;

	ASSERT_EQ(neuron_chip_info("trn2", 0, &info), 0);
	last = (uint8_t *)neuron_chip_hbm(self->h->chip, 2) + info.hbm_stack_size - 64;
	fill_pattern(last, 64, 3);
	copy(self->h, &self->r, 0x100, (1ull << 47) + info.hbm_stack_size - 64, 64);
	EXPECT_EQ(memcmp(neuron_chip_hbm(self->h->chip, 0) + 0x100, last, 64), 0);
	copy(self->h, &self->r, 0x100, (1ull << 47) + info.hbm_stack_size - 63, 64);
	EXPECT_EQ(state(self->h, ENGINE), 0x2222);
}

TEST_F(udma, sbuf_semaphores_events)
{
	uint64_t tpb = NEURON_V3_TPB(5), dpa = 1ull << 47 | 0x3000000000ull;
	uint32_t v = 7;

	fill_pattern(self->h->mem + SRC, 256, 2);
	copy(self->h, &self->r, dpa + 0x40, HOST_BIT | SRC, 256);
	copy(self->h, &self->r, HOST_BIT | DST, dpa + 0x40, 256);
	EXPECT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, 256), 0);
	EXPECT_EQ(rd(self->h, tpb + 0x44), *(uint32_t *)(self->h->mem + SRC + 4));
	EXPECT_EQ(neuron_chip_read(self->h->chip, 0, tpb + 0x41, 1), self->h->mem[SRC + 1]);

	wr(self->h, tpb + NEURON_TPB_SEM_SET(3), 100);
	wr(self->h, tpb + NEURON_TPB_SEM_INC(3), 5);
	wr(self->h, tpb + NEURON_TPB_SEM_DEC(3), 2);
	EXPECT_EQ(rd(self->h, tpb + NEURON_TPB_SEM_READ(3)), 103);
	wr(self->h, tpb + NEURON_TPB_SEM_DEC(3), 1000);
	EXPECT_EQ(rd(self->h, tpb + NEURON_TPB_SEM_READ(3)), 0);
	wr(self->h, tpb + NEURON_TPB_SEM_READ(3), 9);
	EXPECT_EQ(rd(self->h, tpb + NEURON_TPB_SEM_READ(3)), 0);
	memcpy(self->h->mem + SRC, &v, 4);
	copy(self->h, &self->r, dpa + NEURON_TPB_SEM_INC(255), HOST_BIT | SRC, 4);
	copy(self->h, &self->r, dpa + NEURON_TPB_SEM_INC(255), HOST_BIT | SRC, 4);
	EXPECT_EQ(rd(self->h, tpb + NEURON_TPB_SEM_READ(255)), 14);
	wr(self->h, tpb + NEURON_TPB_EVENT(255), 1);
	EXPECT_EQ(rd(self->h, tpb + NEURON_TPB_EVENT(255)), 1);
	EXPECT_EQ(rd(self->h, NEURON_V3_TPB(4) + NEURON_TPB_EVENT(255)), 0);
	/* Beyond the last partition of SBUF there is nothing. */
	EXPECT_EQ(state(self->h, ENGINE), 0);
	copy(self->h, &self->r, dpa + 0x1fffffe, HOST_BIT | SRC, 4);
	EXPECT_EQ(state(self->h, ENGINE), 0x2222);
}

TEST_F(udma, interrupt)
{
	uint32_t irq = NEURON_EXEC_UDMA_IRQ(128, 0);

	put_tx(self->h, &self->r, DESC_BOTH, HOST_BIT | SRC, 64);
	put_rx(self->h, &self->r, NEURON_UDMA_DESC_INT_EN, HOST_BIT | DST, 64);
	ring_bells(self->h, &self->r, 1, 1);
	EXPECT_EQ(atomic_load(&self->h->irq[3]), 0);
	xwr(self->h, irq, NEURON_EXEC_UDMA_IRQ_EN | 3);
	EXPECT_EQ(xrd(self->h, irq), NEURON_EXEC_UDMA_IRQ_EN | 3);
	copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 64);
	EXPECT_EQ(atomic_load(&self->h->irq[3]), 0);
	put_tx(self->h, &self->r, DESC_BOTH, HOST_BIT | SRC, 64);
	put_rx(self->h, &self->r, NEURON_UDMA_DESC_INT_EN, HOST_BIT | DST, 64);
	ring_bells(self->h, &self->r, 1, 1);
	EXPECT_EQ(atomic_load(&self->h->irq[3]), 1);
	neuron_chip_bus_master(self->h->chip, false);
	copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 64);
	EXPECT_EQ(state(self->h, ENGINE), 0x2222);
	EXPECT_EQ(atomic_load(&self->h->irq[0]), 0);
}

/* Abort: latched, told, the engine stands still, and a reset of the queue brings it back. */
TEST_F(udma, abort_and_recovery)
{
	static const uint64_t bad[] = {
		0x600000000ull,			/* 24 GiB: beyond live HBM */
		HOST_BIT | HOST_BYTES,		/* no host memory */
		1ull << 52,			/* another chip */
		HOST_BIT | 1ull << 47,		/* host and die bit together */
		NEURON_V3_LINK_DPA(1),		/* another chip, which is not there */
		~0ull,
	};
	unsigned int i, side;

	xwr(self->h, NEURON_EXEC_ADMIN_MASK, NEURON_EXEC_ADMIN_UDMA_ABORT);
	for (i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
		side = i & 1;
		fill_pattern(self->h->mem + SRC, 64, i);
		copy(self->h, &self->r, side ? bad[i / 2] : HOST_BIT | DST, side ? HOST_BIT | SRC : bad[i / 2], 64);
		ASSERT_EQ(state(self->h, ENGINE), 0x2222);
		EXPECT_EQ(rd(self->h, ENGINE + NEURON_UDMA_S2M + NEURON_UDMA_STATE), 0x2222);
		EXPECT_EQ(atomic_load(&self->h->irq[0]), i + 1);
		EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE), NEURON_EXEC_ADMIN_UDMA_ABORT);
		EXPECT_NE(strstr(self->h->log, "udma 128 queue 0"), NULL);
		xwr(self->h, NEURON_EXEC_ADMIN_CAUSE, ~0u);
		EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE), 0);
		set_state(self->h, ENGINE, 1);
		/* It would fail again: the bad descriptor is still the next one. */
		EXPECT_EQ(state(self->h, ENGINE), 0x2222);
		EXPECT_GE(atomic_load(&self->h->irq[0]), i + 1);
		queue_init(self->h, &self->r, ENGINE, 0, 64);
		set_state(self->h, ENGINE, 1);
		atomic_store(&self->h->irq[0], i + 1);
		xwr(self->h, NEURON_EXEC_ADMIN_CAUSE, ~0u);
		copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 64);
		ASSERT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, 64), 0);
		EXPECT_EQ(state(self->h, ENGINE), 0x1111);
	}
}

TEST_F(udma, bad_packets)
{
	unsigned int i;

	put_tx(self->h, &self->r, NEURON_UDMA_DESC_LAST, HOST_BIT | SRC, 64);
	put_rx(self->h, &self->r, 0, HOST_BIT | DST, 64);
	ring_bells(self->h, &self->r, 1, 1);
	EXPECT_EQ(state(self->h, ENGINE), 0x2222);
	EXPECT_NE(strstr(self->h->log, "FIRST"), NULL);

	queue_init(self->h, &self->r, ENGINE, 0, 128);
	set_state(self->h, ENGINE, 1);
	for (i = 0; i < 66; i++)
		put_tx(self->h, &self->r, i ? 0 : NEURON_UDMA_DESC_FIRST, HOST_BIT | SRC, 1);
	put_rx(self->h, &self->r, 0, HOST_BIT | DST, 64);
	ring_bells(self->h, &self->r, 65, 1);
	EXPECT_EQ(state(self->h, ENGINE), 0x1111);
	wr(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRTP_INC, 1);
	EXPECT_EQ(state(self->h, ENGINE), 0x2222);
	EXPECT_NE(strstr(self->h->log, "more descriptors"), NULL);
}

/* What a source or destination can get wrong, with the bit that 4.7's groups name. */
TEST_F(udma, every_abort_has_its_cause)
{
	static const struct {
		uint32_t tx_flags, tx_meta, rx_flags;
		uint64_t src, dst;
		unsigned int group;
		uint32_t cause;
	} bad[] = {
		{ DESC_BOTH | 2u << 24, NEURON_UDMA_META_COPY, 1u << 24, HOST_BIT | SRC, HOST_BIT | DST, 0, 1u << 17 },
		{ DESC_BOTH | 1u << 24, NEURON_UDMA_META_COPY, 0, HOST_BIT | SRC, HOST_BIT | DST, 1, 1u << 11 },
		{ NEURON_UDMA_DESC_LAST | 1u << 24, NEURON_UDMA_META_COPY, 1u << 24, HOST_BIT | SRC, HOST_BIT | DST,
		  0, 1u << 15 },
		{ DESC_BOTH | 1u << 24, NEURON_UDMA_META_COPY, 1u << 24, HOST_BIT | HOST_BYTES, HOST_BIT | DST,
		  0, 1u << 8 },
		{ DESC_BOTH | 1u << 24, NEURON_UDMA_META_COPY, 1u << 24, HOST_BIT | SRC, HOST_BIT | HOST_BYTES,
		  1, 1u << 1 },
		/* Byte swap, CRC, no copy_source_data, another operation. */
		{ DESC_BOTH | 1u << 24, NEURON_UDMA_META_COPY | 1u << 6, 1u << 24, HOST_BIT | SRC, HOST_BIT | DST,
		  0, 1u << 2 },
		{ DESC_BOTH | 1u << 24, NEURON_UDMA_META_COPY | 1u << 14, 1u << 24, HOST_BIT | SRC, HOST_BIT | DST,
		  0, 1u << 2 },
		{ DESC_BOTH | 1u << 24, 0x01000003, 1u << 24, HOST_BIT | SRC, HOST_BIT | DST, 0, 1u << 2 },
		{ DESC_BOTH | 1u << 24, 0x01980003, 1u << 24, HOST_BIT | SRC, HOST_BIT | DST, 0, 1u << 2 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		queue_init(self->h, &self->r, ENGINE, 0, 64);
		set_state(self->h, ENGINE, 1);
		self->h->mem[DST] = 0x11;
		self->h->mem[SRC] = 0x22;
		put(self->h, TX_RING, 0, bad[i].tx_flags | 64, bad[i].tx_meta, bad[i].src);
		put(self->h, RX_RING, 0, bad[i].rx_flags | 64, 0, bad[i].dst);
		ring_bells(self->h, &self->r, 1, 1);
		EXPECT_EQ(state(self->h, ENGINE), 0x2222);
		EXPECT_EQ(self->h->mem[DST], 0x11);
		EXPECT_EQ(rd(self->h, ENGINE + NEURON_UDMA_IOFIC2(0)), bad[i].group ? 0 : bad[i].cause);
		EXPECT_EQ(rd(self->h, ENGINE + NEURON_UDMA_IOFIC2(1)), bad[i].group ? bad[i].cause : 0);
		EXPECT_EQ(rd(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRHP), 1u << 30);
		wr(self->h, ENGINE + NEURON_UDMA_IOFIC2(0), 0);
		wr(self->h, ENGINE + NEURON_UDMA_IOFIC2(1), 0);
		EXPECT_EQ(rd(self->h, ENGINE + NEURON_UDMA_IOFIC2(bad[i].group)), 0);
	}
}

/* What init does on engines below 128: a wrong ring id is latched, and no more. */
TEST_F(udma, masked_ring_id)
{
	uint64_t e = NEURON_V3_SENG_UDMA(0);

	queue_init(self->h, &self->r, e, 3, 64);
	wr(self->h, e + 0x3a030, 0xf0000000 | 1u << 17);
	wr(self->h, e + 0x3a070, 0x10f8 | 1u << 11);
	fill_pattern(self->h->mem + SRC, 64, 1);
	put(self->h, TX_RING, 0, DESC_BOTH | 64, NEURON_UDMA_META_COPY, HOST_BIT | SRC);
	put(self->h, RX_RING, 0, 64, 0, HOST_BIT | DST);
	ring_bells(self->h, &self->r, 1, 1);
	EXPECT_EQ(state(self->h, e), 0);
	EXPECT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, 64), 0);
	EXPECT_EQ(rd(self->h, e + 0x3a000), 1u << 17);
	EXPECT_EQ(rd(self->h, e + 0x3a040), 1u << 11);
}

TEST_F(udma, limits_of_a_packet)
{
	unsigned int i;

	/* Two descriptors, then more bytes than allowed. */
	wr(self->h, ENGINE + 0x304, 0x10002);
	for (i = 0; i < 3; i++)
		put_tx(self->h, &self->r, i == 0 ? NEURON_UDMA_DESC_FIRST : i == 2 ? NEURON_UDMA_DESC_LAST : 0,
		       HOST_BIT | SRC, 8);
	put_rx(self->h, &self->r, 0, HOST_BIT | DST, 64);
	ring_bells(self->h, &self->r, 3, 1);
	EXPECT_EQ(rd(self->h, ENGINE + 0x3a000), 1u << 14);
	wr(self->h, ENGINE + 0x3a000, 0);
	queue_init(self->h, &self->r, ENGINE, 0, 64);
	set_state(self->h, ENGINE, 1);
	wr(self->h, ENGINE + 0x254, 1u << 24 | 63);
	copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 63);
	EXPECT_EQ(state(self->h, ENGINE), 0x1111);
	copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 64);
	EXPECT_EQ(rd(self->h, ENGINE + 0x3a000), 1u << 13);
	/* Without bit 24 length 0 is 0 bytes. */
	queue_init(self->h, &self->r, ENGINE, 0, 64);
	set_state(self->h, ENGINE, 1);
	wr(self->h, ENGINE + 0x254, 0xfffff);
	self->h->mem[DST] = 0x33;
	self->h->mem[SRC] = 0x44;
	copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 65536);
	EXPECT_EQ(self->h->mem[DST], 0x33);
	EXPECT_EQ(state(self->h, ENGINE), 0x1111);
	EXPECT_EQ(rd(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRHP), 1u << 30 | 1);
}

/* 4.7: each side has a state; both have to let a packet through. */
TEST_F(udma, states_of_the_sides)
{
	const uint64_t side[] = { ENGINE, ENGINE + NEURON_UDMA_S2M };
	const uint32_t stream[] = { 0x258, 0x250 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		set_state(self->h, ENGINE, 1);
		wr(self->h, side[i] + NEURON_UDMA_CHANGE_STATE, 2);
		EXPECT_EQ(rd(self->h, side[i] + NEURON_UDMA_STATE), 0);
		EXPECT_EQ(rd(self->h, side[!i] + NEURON_UDMA_STATE), 0x1111);
		fill_pattern(self->h->mem + SRC, 64, 7 * i + 1);
		copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 64);
		EXPECT_NE(memcmp(self->h->mem + DST, self->h->mem + SRC, 64), 0);
		EXPECT_EQ(rd(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_STATUS) & 0xffffff, 1);
		wr(self->h, side[i] + stream[i], 0x103);
		wr(self->h, side[i] + NEURON_UDMA_CHANGE_STATE, 1);
		EXPECT_NE(memcmp(self->h->mem + DST, self->h->mem + SRC, 64), 0);
		wr(self->h, side[i] + stream[i], 0x102);
		EXPECT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, 64), 0);
		wr(self->h, side[i] + NEURON_UDMA_CHANGE_STATE, 4);
		EXPECT_EQ(rd(self->h, side[i] + NEURON_UDMA_STATE), 0x2222);
	}
}

/* Registers are memory to a descriptor: also doorbells, and the reset of the own queue. */
TEST_F(udma, registers_at_their_addresses)
{
	const uint64_t apb_se0 = 0x1000000000ull, other = NEURON_V3_SENG_UDMA(0);
	const uint64_t bell = apb_se0 + 0x2000000 + NEURON_UDMA_Q(0) + NEURON_UDMA_Q_DRTP_INC;
	const uint64_t own = 0x8006800000ull + NEURON_UDMA_Q(0) + NEURON_UDMA_M2S_Q_SW_CTRL;
	uint32_t one = 1, reset = 0x100;
	struct ring far;

	/* Misc RAM's serial number, and the user's words of it. */
	memset(self->h->mem + DST, 0, 8);
	copy(self->h, &self->r, HOST_BIT | DST, 0x8006c84038ull, 8);
	EXPECT_EQ(*(uint32_t *)(self->h->mem + DST), rd(self->h, NEURON_V3_MISC_RAM + 0x38));
	EXPECT_NE(*(uint32_t *)(self->h->mem + DST), 0);
	fill_pattern(self->h->mem + SRC, 48, 3);
	copy(self->h, &self->r, 0x8006c840c0ull, HOST_BIT | SRC, 48);
	EXPECT_EQ(rd(self->h, NEURON_V3_MISC_RAM + 0xec), *(uint32_t *)(self->h->mem + SRC + 44));
	/* Another engine's rings lie in the same memory; its doorbells are rung by a copy. */
	queue_init(self->h, &far, other, 0, 64);
	wr(self->h, S2M_Q(other, 0) + NEURON_UDMA_Q_DRBP_LO, RX_RING + 0x1000);
	wr(self->h, M2S_Q(other, 0) + NEURON_UDMA_Q_DRBP_LO, TX_RING + 0x1000);
	put(self->h, TX_RING + 0x1000, 0, DESC_BOTH | 1u << 24 | 32, NEURON_UDMA_META_COPY, HOST_BIT | SRC);
	put(self->h, RX_RING + 0x1000, 0, 1u << 24 | 32, 0, HOST_BIT | (DST + 0x1000));
	memcpy(self->h->mem + SRC + 0x100, &one, 4);
	copy(self->h, &self->r, bell + NEURON_UDMA_S2M, HOST_BIT | (SRC + 0x100), 4);
	copy(self->h, &self->r, bell, HOST_BIT | (SRC + 0x100), 4);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(memcmp(self->h->mem + DST + 0x1000, self->h->mem + SRC, 32), 0);
	EXPECT_EQ(state(self->h, ENGINE), 0);
	/* A queue that resets itself does not wait for itself. */
	memcpy(self->h->mem + SRC + 0x100, &reset, 4);
	copy(self->h, &self->r, own, HOST_BIT | (SRC + 0x100), 4);
	EXPECT_EQ(rd(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRHP), 1u << 30);
	/* Half a register. */
	copy(self->h, &self->r, 0x8006c840c2ull, HOST_BIT | SRC, 4);
	queue_init(self->h, &self->r, ENGINE, 0, 64);
	copy(self->h, &self->r, 0x8006c840c2ull, HOST_BIT | SRC, 4);
	EXPECT_EQ(state(self->h, ENGINE), 0x2222);
}

/* A host whose DMA takes the lock that the thread which resets the queue holds. */
struct locked {
	struct host host;
	pthread_mutex_t big;
	pthread_t holder;
	atomic_bool held, block, entered;
};

static int locked_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
	struct locked *l = opaque;
	bool mine = atomic_load(&l->held) && pthread_equal(l->holder, pthread_self());

	if (!mine) {
		if (atomic_load(&l->block))
			atomic_store(&l->entered, true);
		pthread_mutex_lock(&l->big);
		pthread_mutex_unlock(&l->big);
	}
	return host_dma_read(&l->host, addr, buf, len);
}

static void locked_wait(void *opaque, bool begin)
{
	struct locked *l = opaque;

	if (begin)
		pthread_mutex_unlock(&l->big);
	else
		pthread_mutex_lock(&l->big);
}

TEST(udma_host_lock)
{
	const struct neuron_chip_host ops = {
		.dma_read = locked_read, .dma_write = host_dma_write, .log = host_log, .wait = locked_wait,
	};
	struct neuron_chip_config config = { .arch = "trn2" };
	struct locked l = { .big = PTHREAD_MUTEX_INITIALIZER };
	struct ring r;
	unsigned int i;

	alarm(20);
	pthread_mutex_init(&l.host.log_lock, NULL);
	l.host.mem = calloc(1, HOST_BYTES);
	l.host.chip = neuron_chip_new(&config, &ops, &l, NULL);
	ASSERT_NE(l.host.chip, NULL);
	neuron_chip_bus_master(l.host.chip, true);
	pthread_mutex_lock(&l.big);
	l.holder = pthread_self();
	atomic_store(&l.held, true);
	queue_init(&l.host, &r, ENGINE, 0, 64);
	for (i = 0; i < 32; i++) {
		put_tx(&l.host, &r, DESC_BOTH, HOST_BIT | SRC, 65536);
		put_rx(&l.host, &r, 0, HOST_BIT | DST, 65536);
	}
	atomic_store(&l.block, true);
	/* The first 64 KiB on this thread, then a worker runs into the lock. */
	ring_bells(&l.host, &r, 32, 32);
	ASSERT_TRUE(WAIT_FOR(atomic_load(&l.entered)));
	wr(&l.host, M2S_Q(ENGINE, 0) + NEURON_UDMA_M2S_Q_SW_CTRL, 0x100);
	EXPECT_EQ(rd(&l.host, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRHP), 1u << 30);
	neuron_chip_reset(l.host.chip, NEURON_CHIP_RESET_FLR);
	atomic_store(&l.held, false);
	pthread_mutex_unlock(&l.big);
	neuron_chip_idle(l.host.chip);
	pthread_mutex_lock(&l.big);
	neuron_chip_free(l.host.chip);
	pthread_mutex_unlock(&l.big);
	free(l.host.mem);
	alarm(0);
}

TEST_F(udma, garbage_doorbells)
{
	uint64_t e = NEURON_V3_SENG_UDMA(0);

	wr(self->h, M2S_Q(e, 2) + NEURON_UDMA_Q_CFG, 0x30000);
	wr(self->h, S2M_Q(e, 2) + NEURON_UDMA_Q_CFG, 0x30000);
	wr(self->h, S2M_Q(e, 2) + NEURON_UDMA_Q_DRTP_INC, 1);
	EXPECT_EQ(state(self->h, e), 0x2222);
	wr(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRTP_INC, 65);
	EXPECT_EQ(state(self->h, ENGINE), 0x2222);
	wr(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRTP_INC, 0xffffffff);
	set_state(self->h, ENGINE, 1);
	EXPECT_EQ(state(self->h, ENGINE), 0x1111);
	EXPECT_EQ(rd(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRTP), 1u << 30);
}

TEST_F(udma, disabled_queue_waits)
{
	fill_pattern(self->h->mem + SRC, 64, 1);
	wr(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_CFG, 0x03000000);
	copy(self->h, &self->r, HOST_BIT | DST, HOST_BIT | SRC, 64);
	EXPECT_EQ(self->h->mem[DST], 0);
	EXPECT_EQ(self->h->mem[DST + 1], 0);
	wr(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_CFG, 0x03030000);
	EXPECT_EQ(memcmp(self->h->mem + DST, self->h->mem + SRC, 64), 0);
}

/* When the reset write has returned, not one more byte moves. */
TEST_F(udma, reset_of_a_running_queue)
{
	unsigned int i, round;

	for (round = 0; round < 50; round++) {
		memset(self->h->mem + SRC, round + 1, 63 << 16);
		queue_init(self->h, &self->r, ENGINE, 0, 64);
		for (i = 0; i < 63; i++) {
			put_tx(self->h, &self->r, DESC_BOTH, HOST_BIT | (SRC + (i << 16)), 65536);
			put_rx(self->h, &self->r, 0, HOST_BIT | (DST + (i << 16)), 65536);
		}
		ring_bells(self->h, &self->r, 63, 63);
		usleep(round * 7);
		wr(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_M2S_Q_SW_CTRL, 0x100);
		memset(self->h->mem + DST, 0, 63 << 16);
		usleep(200);
		for (i = 0; i < 63u << 16; i += 4096)
			ASSERT_EQ(self->h->mem[DST + i], 0);
		neuron_chip_idle(self->h->chip);
	}
}

TEST_F(udma, two_chips_two_queues_at_once)
{
	struct neuron_chip_config config = { .arch = "trn3", .routing_id = 1 };
	struct host other;
	struct ring q1, far;
	unsigned int i;

	ASSERT_TRUE(host_open(&other, &config));
	queue_init(&other, &far, NEURON_V3_H2T_UDMA(3), 1, 64);
	for (i = 0; i < 40; i++) {
		fill_pattern(other.mem + SRC, 4096, i);
		copy(&other, &far, 0x4000000000ull + 4096 * i, HOST_BIT | SRC, 4096);
		fill_pattern(self->h->mem + SRC, 65536, i);
		copy(self->h, &self->r, 65536ull * i, HOST_BIT | SRC, 0);
	}
	queue_init(self->h, &q1, ENGINE, 1, 32);
	EXPECT_EQ(memcmp((char *)neuron_chip_hbm(other.chip, 1) + 4096 * 39, other.mem + SRC, 4096), 0);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(memcmp((char *)neuron_chip_hbm(self->h->chip, 0) + 65536 * 39, self->h->mem + SRC, 65536), 0);
	host_close(&other);
}

TEST_F(udma, reset_from_pci)
{
	copy(self->h, &self->r, 0x1000, HOST_BIT | SRC, 64);
	((uint8_t *)neuron_chip_hbm(self->h->chip, 0))[0x2000] = 0x5a;
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_FLR);
	EXPECT_EQ(rd(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_DRL), 0);
	EXPECT_EQ(rd(self->h, M2S_Q(ENGINE, 0) + NEURON_UDMA_Q_CFG), NEURON_UDMA_Q_CFG_RESET_VALUE);
	EXPECT_EQ(((uint8_t *)neuron_chip_hbm(self->h->chip, 0))[0x2000], 0x5a);
	queue_init(self->h, &self->r, ENGINE, 0, 64);
	fill_pattern(self->h->mem + SRC, 64, 77);
	copy(self->h, &self->r, 0x1000, HOST_BIT | SRC, 64);
	EXPECT_EQ(memcmp((char *)neuron_chip_hbm(self->h->chip, 0) + 0x1000, self->h->mem + SRC, 64), 0);
}

/* A child has none of the parent's threads, and makes its own. */
TEST_F(udma, after_fork)
{
	struct neuron_chip_config config = { .arch = "trn2" };
	struct host child;
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < 8; i++) {
		put_tx(self->h, &self->r, DESC_BOTH, HOST_BIT | SRC, 65536);
		put_rx(self->h, &self->r, 0, HOST_BIT | DST, 65536);
	}
	ring_bells(self->h, &self->r, 8, 8);
	neuron_chip_idle(self->h->chip);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		alarm(20);
		if (!host_open(&child, &config))
			_exit(1);
		queue_init(&child, &self->r, ENGINE, 0, 64);
		fill_pattern(child.mem + SRC, 65536, 5);
		for (i = 0; i < 8; i++) {
			put_tx(&child, &self->r, DESC_BOTH, HOST_BIT | SRC, 65536);
			put_rx(&child, &self->r, 0, HOST_BIT | (DST + 65536 * i), 65536);
		}
		ring_bells(&child, &self->r, 8, 8);
		neuron_chip_idle(child.chip);
		i = memcmp(child.mem + DST + 7 * 65536, child.mem + SRC, 65536);
		host_close(&child);
		_exit(i ? 2 : 0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

/* The older generation: other places, other host bit. */
TEST(udma_v2)
{
	static const char * const archs[] = { "trn1", "inf2" };
	const uint64_t bit = 1ull << 44;
	unsigned int i, n;

	for (n = 0; n < 2; n++) {
		struct neuron_chip_config config = { .arch = archs[n] };
		struct host host, *h = &host;
		struct ring r;

		ASSERT_TRUE(host_open(h, &config));
		for (i = 0; i < 34; i++) {
			uint64_t e = i < 32 ? NEURON_V2_SENG_UDMA(i / 16) + i % 16 * NEURON_V2_UDMA_STRIDE :
					      NEURON_V2_H2T_UDMA(i - 32);

			queue_init(h, &r, e, 1, 32);
			wr(h, M2S_Q(e, 1) + NEURON_UDMA_Q_DRBP_HI, bit >> 32);
			wr(h, S2M_Q(e, 1) + NEURON_UDMA_Q_DRBP_HI, bit >> 32);
			fill_pattern(h->mem + SRC, 64, i);
			copy(h, &r, 0x1000002000ull, bit | SRC, 64);
			ASSERT_EQ(memcmp((char *)neuron_chip_hbm(h->chip, 1) + 0x2000, h->mem + SRC, 64), 0);
			copy(h, &r, 0xfffc4000000ull + 0x80, bit | SRC, 64);
			EXPECT_EQ(rd(h, NEURON_V2_TPB(1) + 0x84), *(uint32_t *)(h->mem + SRC + 4));
		}
		host_close(h);
	}
}

TEST_HARNESS_MAIN
