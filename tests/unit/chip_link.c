// SPDX-License-Identifier: MIT
/* Chips that are linked: who is next to whom, and copies through the windows. */
#include <kselftest_harness.h>

#include <errno.h>

#include "chip_host.h"

#define HOST_BIT	(1ull << 46)
#define ENGINE		NEURON_V3_H2T_UDMA(0)
#define M2S		(ENGINE + NEURON_UDMA_M2S + NEURON_UDMA_Q(0))
#define S2M		(ENGINE + NEURON_UDMA_S2M + NEURON_UDMA_Q(0))
#define TX_RING		0x100000ull
#define RX_RING		0x200000ull

/* A copy of 64 bytes or so by a ring that is made for it. */
static void copy(struct host *h, uint64_t dst, uint64_t src, uint32_t len)
{
	struct neuron_udma_desc tx = { 0x0d000000 | len, NEURON_UDMA_META_COPY, src };
	struct neuron_udma_desc rx = { 0x01000000 | len, 0, dst };
	const uint64_t side[] = { M2S, S2M }, ring[] = { TX_RING, RX_RING };
	const uint32_t reset[] = { NEURON_UDMA_M2S_Q_SW_CTRL, NEURON_UDMA_S2M_Q_SW_CTRL };
	int i;

	for (i = 0; i < 2; i++) {
		wr(h, side[i] + reset[i], 0x100);
		wr(h, side[i] + NEURON_UDMA_Q_DRBP_LO, (uint32_t)ring[i]);
		wr(h, side[i] + NEURON_UDMA_Q_DRBP_HI, HOST_BIT >> 32);
		wr(h, side[i] + NEURON_UDMA_Q_DRL, 32);
		wr(h, side[i] + NEURON_UDMA_Q_CFG, 0x03030000);
		wr(h, ENGINE + 0x20000 * i + NEURON_UDMA_CHANGE_STATE, 1);
	}
	memcpy(h->mem + TX_RING, &tx, 16);
	memcpy(h->mem + RX_RING, &rx, 16);
	wr(h, S2M + NEURON_UDMA_Q_DRTP_INC, 1);
	wr(h, M2S + NEURON_UDMA_Q_DRTP_INC, 1);
	neuron_chip_idle(h->chip);
}

static bool aborted(struct host *h)
{
	return rd(h, ENGINE + NEURON_UDMA_STATE) == 0x2222;
}

/* fw_io_topology of the public driver: neighbours of devices 0, 5 and 15 of 16. */
TEST(link_neighbours)
{
	static const int v3[] = { 0, 3, 4, 7, 12, 15, 8, 11, 1, 2, 5, 6, 13, 14, 9, 10 };
	static const struct { int device, next[4]; } table[] = {
		{ 0, { 12, 3, 4, 1 } }, { 5, { 1, 4, 9, 6 } }, { 15, { 11, 14, 3, 12 } },
	};
	int rid[16], i, k, n;

	for (i = 0; i < 16; i++)
		rid[v3[i]] = i;
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 4; k++) {
			n = neuron_chip_neighbour("trn2", (unsigned int)rid[table[i].device], (unsigned int)k);
			EXPECT_EQ(n, rid[table[i].next[k]]);
			n = neuron_chip_neighbour("trn2", 32 + (unsigned int)rid[table[i].device], (unsigned int)k);
			EXPECT_EQ(n, 32 + rid[table[i].next[k]]);
		}
	}
	EXPECT_EQ(neuron_chip_neighbour("inf2", 0, 0), 11);
	EXPECT_EQ(neuron_chip_neighbour("inf2", 11, 1), 0);
	EXPECT_EQ(neuron_chip_neighbour("inf2", 3, 2), -1);
	EXPECT_EQ(neuron_chip_neighbour("trn3", 5, 2), 6);
	EXPECT_EQ(neuron_chip_neighbour("trn3", 5, 1), -1);
	EXPECT_EQ(neuron_chip_neighbour("trn2", 144, 0), -EINVAL);
	EXPECT_EQ(neuron_chip_neighbour("trn2", 0, 4), -EINVAL);
}

/* In both directions a neighbour is one's neighbour. */
TEST(link_symmetry)
{
	static const struct { const char *arch; unsigned int chips; } all[] = {
		{ "trn1", 16 }, { "inf2", 12 }, { "trn2", 64 }, { "trn3", 144 }, { "trn3b", 144 },
	};
	unsigned int a, r, l, back;
	int n, found;

	for (a = 0; a < 5; a++) {
		for (r = 0; r < all[a].chips; r++) {
			for (l = 0; l < 4; l++) {
				n = neuron_chip_neighbour(all[a].arch, r, l);
				if (n < 0)
					continue;
				ASSERT_LT(n, (int)all[a].chips);
				for (back = 0, found = 0; back < 4; back++)
					found |= neuron_chip_neighbour(all[a].arch, (unsigned int)n, back) == (int)r;
				ASSERT_TRUE(found);
			}
		}
	}
}

FIXTURE(link) {
	struct host a, b;
	uint64_t window;
};

FIXTURE_SETUP(link)
{
	struct neuron_chip_config config = { .arch = "trn2" };

	ASSERT_TRUE(host_open(&self->a, &config));
	/* Device 1 is at routing id 8, to the right of device 0: link 3. */
	config.routing_id = 8;
	ASSERT_TRUE(host_open(&self->b, &config));
	self->window = NEURON_V3_LINK_DPA(3);
	ASSERT_EQ(neuron_chip_connect(self->a.chip, self->b.chip), 1);
}

FIXTURE_TEARDOWN(link)
{
	host_close(&self->a);
	if (self->b.chip)
		host_close(&self->b);
}

TEST_F(link, copies)
{
	struct neuron_chip_link info;
	uint8_t *far = (uint8_t *)neuron_chip_hbm(self->b.chip, 3) + 0x1000;
	uint32_t five = 5;

	fill_pattern(self->a.mem, 4096, 1);
	copy(&self->a, self->window | 0x804000001000ull, HOST_BIT, 4096);
	EXPECT_EQ(memcmp(far, self->a.mem, 4096), 0);
	copy(&self->a, 0x5000, self->window | 0x804000001000ull, 4096);
	EXPECT_EQ(memcmp((uint8_t *)neuron_chip_hbm(self->a.chip, 0) + 0x5000, far, 4096), 0);
	/* A semaphore of a core over there, and what pod election reads. */
	memcpy(self->a.mem, &five, 4);
	copy(&self->a, self->window | (0x2000000000ull + NEURON_TPB_SEM_INC(9)), HOST_BIT, 4);
	EXPECT_EQ(rd(&self->b, NEURON_V3_TPB(0) + NEURON_TPB_SEM_READ(9)), 5);
	EXPECT_EQ(rd(&self->a, NEURON_V3_TPB(0) + NEURON_TPB_SEM_READ(9)), 0);
	copy(&self->a, HOST_BIT | 0x8000, self->window | 0x8006c84038ull, 8);
	EXPECT_EQ(*(uint32_t *)(self->a.mem + 0x8000), rd(&self->b, NEURON_V3_MISC_RAM + 0x38));
	EXPECT_FALSE(aborted(&self->a));
	ASSERT_EQ(neuron_chip_link_info(self->a.chip, 3, &info), 0);
	EXPECT_EQ(info.neighbour, 8);
	EXPECT_TRUE(info.connected);
	EXPECT_EQ(info.bytes, 2 * 4096 + 4 + 8);
	EXPECT_EQ(info.transfers, 4);
	/* 1 us each, and 128 bytes in a nanosecond. */
	EXPECT_EQ(info.modelled_ns, 4 * 1000 + 2 * 4096 / 128);
	ASSERT_EQ(neuron_chip_link_info(self->a.chip, 0, &info), 0);
	EXPECT_FALSE(info.connected);
}

TEST_F(link, what_is_not_there)
{
	const uint64_t bad[] = {
		self->window | HOST_BIT | 0x1000,		/* its host's memory */
		self->window | 0x8006c840c0ull,			/* its registers, to write */
		self->window | 0x600000000ull,			/* beyond live HBM */
		NEURON_V3_LINK_DPA(0) | 0x1000,			/* nobody is connected */
		1ull << 54,					/* no window */
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		copy(&self->a, bad[i], HOST_BIT, 64);
		EXPECT_TRUE(aborted(&self->a));
	}
	copy(&self->a, self->window | 0x1000, HOST_BIT, 64);
	EXPECT_FALSE(aborted(&self->a));
}

TEST_F(link, down_and_up)
{
	int id = neuron_chip_inject(self->b.chip, "link-down,link=1", NULL, 0);

	ASSERT_GT(id, 0);
	copy(&self->a, self->window, HOST_BIT, 64);
	EXPECT_TRUE(aborted(&self->a));
	ASSERT_EQ(neuron_chip_clear(self->b.chip, (unsigned int)id), 0);
	copy(&self->a, self->window, HOST_BIT, 64);
	EXPECT_FALSE(aborted(&self->a));
	host_close(&self->b);
	self->b.chip = NULL;
	copy(&self->a, self->window, HOST_BIT, 64);
	EXPECT_TRUE(aborted(&self->a));
}

TEST_F(link, connecting)
{
	struct neuron_chip_config config = { .arch = "trn2", .routing_id = 8 };
	struct host c;

	EXPECT_EQ(neuron_chip_connect(self->a.chip, self->a.chip), -EINVAL);
	ASSERT_TRUE(host_open(&c, &config));
	EXPECT_EQ(neuron_chip_connect(self->a.chip, c.chip), -EEXIST);
	EXPECT_EQ(neuron_chip_connect(self->b.chip, c.chip), -ENOTCONN);
	host_close(&c);
	config.arch = "trn3";
	ASSERT_TRUE(host_open(&c, &config));
	EXPECT_EQ(neuron_chip_connect(self->a.chip, c.chip), -EINVAL);
	host_close(&c);
}

TEST_HARNESS_MAIN
