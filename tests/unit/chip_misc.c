// SPDX-License-Identifier: MIT
/* Identity, firmware reset and mailbox, plain registers. */
#include <kselftest_harness.h>

#include "chip_jobs.h"

#define MISC(r)		(NEURON_V3_MISC_RAM + (r))
#define HOST_BIT	(1ull << 46)
#define REQ		0x1000ull
#define RESP		0x3000ull

/* Written differently from the chip's: by a table of nibbles. */
static uint32_t crc32c(const uint8_t *p, size_t len)
{
	uint32_t table[16], crc = 0xffffffff, i, k;

	for (i = 0; i < 16; i++) {
		table[i] = i;
		for (k = 0; k < 4; k++)
			table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0x82f63b78 : 0);
	}
	while (len--) {
		crc ^= *p++;
		crc = (crc >> 4) ^ table[crc & 15];
		crc = (crc >> 4) ^ table[crc & 15];
	}
	return crc ^ 0xffffffff;
}

/* RFC 3720 B.4 */
TEST(crc_of_the_test_itself)
{
	uint8_t zeros[32] = { 0 }, ones[32];

	memset(ones, 0xff, sizeof(ones));
	EXPECT_EQ(crc32c((const uint8_t *)"123456789", 9), 0xe3069283);
	EXPECT_EQ(crc32c(zeros, 32), 0x8a9136aa);
	EXPECT_EQ(crc32c(ones, 32), 0x62a8ab43);
}

FIXTURE(misc) {
	struct host host, *h;
	uint8_t seq;
};

FIXTURE_SETUP(misc)
{
	struct neuron_chip_config config = {
		.arch = "trn2", .routing_id = 5, .serial = 0x123456789abcdef0ull, .reset_us = 20000,
	};

	self->h = &self->host;
	ASSERT_TRUE(host_open(self->h, &config));
}

FIXTURE_TEARDOWN(misc)
{
	host_close(self->h);
}

TEST_F(misc, identity)
{
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), 5);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_SERIAL_LO)), 0x9abcdef0);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_SERIAL_HI)), 0x12345678);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_API_VERSION)), 3);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_STATUS)) & NEURON_MISC_STATUS_BUSY, 0);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_HBM_ECC(2))), 0);
}

/* Numbers from the public driver and AWS's product pages, not from arch.def. */
TEST(generations)
{
	static const struct {
		const char *name;
		uint16_t id;
		unsigned int cores, stacks, gib;
		uint64_t bar4;
	} want[] = {
		{ "trn1", 0x7164, 2, 2, 16, 32ull << 30 },
		{ "inf2", 0x7264, 2, 2, 16, 32ull << 30 },
		{ "trn2", 0x7364, 8, 4, 24, 256ull << 30 },
		{ "trn3", 0x7564, 8, 4, 36, 256ull << 30 },
	};
	struct neuron_chip_info info;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(neuron_chip_info(want[i].name, 0, &info), 0);
		EXPECT_EQ(info.device_id, want[i].id);
		EXPECT_EQ(info.cores, want[i].cores);
		EXPECT_EQ(info.hbm_stacks, want[i].stacks);
		EXPECT_EQ(info.hbm_stack_size, (uint64_t)want[i].gib << 30);
		EXPECT_EQ(info.bar_size[4], want[i].bar4);
		EXPECT_EQ(info.bar_size[2], NEURON_EXEC_BAR_SIZE);
		ASSERT_EQ(neuron_chip_info(want[i].name, 0xff, &info), 0);
		EXPECT_EQ(info.bar_size[2], info.bar_size[0]);
		EXPECT_EQ(info.hbm_stack_size * info.hbm_stacks, info.bar_size[4]);
	}
	EXPECT_NE(neuron_chip_info("trn9", 0, &info), 0);
}

TEST(bad_configuration)
{
	static const struct neuron_chip_host none;
	struct neuron_chip_config config = { .arch = "trn2", .vectors = 10 };
	const char *error = NULL;

	EXPECT_EQ(neuron_chip_new(&config, &none, NULL, &error), NULL);
	EXPECT_NE(strstr(error, "1 to 9"), NULL);
	config = (struct neuron_chip_config){ .arch = "trn2", .routing_id = 144 };
	EXPECT_EQ(neuron_chip_new(&config, &none, NULL, &error), NULL);
	EXPECT_NE(strstr(error, "143"), NULL);
	config = (struct neuron_chip_config){ .arch = "trn2", .api_version = 8 };
	EXPECT_EQ(neuron_chip_new(&config, &none, NULL, &error), NULL);
	EXPECT_NE(strstr(error, "3 to 7"), NULL);
	config = (struct neuron_chip_config){ .arch = "trn2", .server_info = 0x10000 };
	EXPECT_EQ(neuron_chip_new(&config, &none, NULL, &error), NULL);
	EXPECT_NE(strstr(error, "0xffff"), NULL);
	config = (struct neuron_chip_config){ .arch = "gpu" };
	EXPECT_EQ(neuron_chip_new(&config, &none, NULL, &error), NULL);
	EXPECT_NE(strstr(error, "trn1"), NULL);
	neuron_chip_free(NULL);
}

/* hw-public-interface 2.1: type, trigger, poll until 0, then bit 3 of the status. */
TEST_F(misc, device_reset_handshake)
{
	uint64_t sem = NEURON_V3_TPB(7) + NEURON_TPB_SEM_SET(9), start = now_ns();

	wr(self->h, sem, 1234);
	wr(self->h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_DEVICE);
	EXPECT_EQ(rd(self->h, sem), 1234);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_RESET)), NEURON_MISC_RESET_DEVICE);
	EXPECT_NE(rd(self->h, MISC(NEURON_MISC_STATUS)) & NEURON_MISC_STATUS_BUSY, 0);
	EXPECT_TRUE(WAIT_FOR(rd(self->h, MISC(NEURON_MISC_RESET)) == 0));
	EXPECT_GE(now_ns() - start, 20000000);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_STATUS)) & NEURON_MISC_STATUS_BUSY, 0);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_TRIGGER)), 0);
	EXPECT_EQ(rd(self->h, sem), 0);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), 5);
}

TEST_F(misc, tpb_reset_leaves_the_others)
{
	uint64_t s0 = NEURON_V3_TPB(0) + NEURON_TPB_SEM_SET(1), s1 = NEURON_V3_TPB(1) + NEURON_TPB_SEM_SET(1);

	wr(self->h, s0, 10);
	wr(self->h, s1, 11);
	wr(self->h, MISC(NEURON_MISC_TPB_RESET_MAP), 1u << 1 | 1u << 9);
	wr(self->h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_TPB);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_TRUE(WAIT_FOR(rd(self->h, MISC(NEURON_MISC_RESET)) == 0));
	EXPECT_EQ(rd(self->h, s0), 10);
	EXPECT_EQ(rd(self->h, s1), 0);
	/* A device reset does not look at the map that is still there. */
	wr(self->h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_DEVICE);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_EQ(rd(self->h, s0), 0);
}

/* UDMA rings survive: the public driver's sysfs reset relies on it. */
TEST_F(misc, device_reset_keeps_rings)
{
	uint64_t q = NEURON_V3_H2T_UDMA(1) + NEURON_UDMA_Q(2);

	wr(self->h, q + NEURON_UDMA_Q_DRL, 32);
	wr(self->h, q + NEURON_UDMA_Q_DRBP_LO, 0x4000);
	wr(self->h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_DEVICE);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_EQ(rd(self->h, q + NEURON_UDMA_Q_DRL), 32);
	EXPECT_EQ(rd(self->h, q + NEURON_UDMA_Q_DRBP_LO), 0x4000);
}

/* What hardware does is not public: the other way is to be had, too. */
TEST(device_reset_that_clears_rings)
{
	struct neuron_chip_config config = { .arch = "trn2", .reset_clears_udma = true };
	uint64_t q = NEURON_V3_H2T_UDMA(1) + NEURON_UDMA_Q(2);
	struct host host, *h = &host;

	ASSERT_TRUE(host_open(h, &config));
	wr(h, q + NEURON_UDMA_Q_CFG, 0x03030000);
	wr(h, MISC(NEURON_MISC_TPB_RESET_MAP), 0xffff);
	wr(h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_TPB);
	wr(h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_EQ(rd(h, q + NEURON_UDMA_Q_CFG), 0x03030000);
	wr(h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_DEVICE);
	wr(h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_EQ(rd(h, q + NEURON_UDMA_Q_CFG), NEURON_UDMA_Q_CFG_RESET_VALUE);
	host_close(h);
}

TEST_F(misc, unknown_reset_type)
{
	wr(self->h, MISC(NEURON_MISC_RESET), 3);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_NE(strstr(self->h->log, "reset type 3"), NULL);
}

/* Revision 0xff: BAR2 is BAR0, the reset register holds the map while busy. */
TEST(qemu_revision)
{
	struct neuron_chip_config config = { .arch = "trn2", .revision = 0xff, .reset_us = 20000 };
	struct host host, *h = &host;

	ASSERT_TRUE(host_open(h, &config));
	xwr(h, NEURON_V3_TPB(1) + NEURON_TPB_SEM_SET(0), 77);
	EXPECT_EQ(rd(h, NEURON_V3_TPB(1) + NEURON_TPB_SEM_READ(0)), 77);
	xwr(h, NEURON_V3_QEMU_RESET, 1u << 1);
	EXPECT_EQ(xrd(h, NEURON_V3_QEMU_RESET), 1u << 1);
	EXPECT_TRUE(WAIT_FOR(xrd(h, NEURON_V3_QEMU_RESET) == 0));
	EXPECT_EQ(rd(h, NEURON_V3_TPB(1) + NEURON_TPB_SEM_READ(0)), 0);
	wr(h, NEURON_V3_TPB(7) + NEURON_TPB_SEM_SET(0), 78);
	xwr(h, NEURON_V3_QEMU_RESET, 0);
	EXPECT_EQ(rd(h, NEURON_V3_TPB(7) + NEURON_TPB_SEM_READ(0)), 0);
	EXPECT_EQ(neuron_chip_read(h->chip, 2, 0, 4), 0);
	host_close(h);

	config = (struct neuron_chip_config){ .arch = "trn1", .revision = 0xff, .reset_us = 20000 };
	ASSERT_TRUE(host_open(h, &config));
	xwr(h, NEURON_V2_QEMU_RESET, 1);
	wr(h, NEURON_V2_MISC_RAM + NEURON_MISC_RESET, 1);
	wr(h, NEURON_V2_MISC_RAM + NEURON_MISC_TRIGGER, 1);
	EXPECT_EQ(xrd(h, NEURON_V2_QEMU_RESET), 1);
	EXPECT_TRUE(WAIT_FOR(xrd(h, NEURON_V2_QEMU_RESET) == 0));
	EXPECT_TRUE(WAIT_FOR(rd(h, NEURON_V2_MISC_RAM + NEURON_MISC_RESET) == 0));
	host_close(h);
}

/* Returns the response's error byte, or -1 when none came. */
static int mail(struct host *h, uint8_t seq, uint8_t cmd, const void *data, uint16_t len, bool good)
{
	uint8_t *m = h->mem + REQ, *r = h->mem + RESP;
	uint16_t size = len + 8;
	uint32_t crc;

	memset(m, 0, 8);
	m[0] = seq;
	m[1] = cmd;
	memcpy(m + 2, &size, 2);
	memcpy(m + 8, data, len);
	crc = crc32c(m, size) ^ (good ? 0 : 1);
	memcpy(m + 4, &crc, 4);
	r[0] = 0;
	r[1] = 0xaa;
	wr(h, MISC(NEURON_MISC_REQ_LO), (uint32_t)REQ);
	wr(h, MISC(NEURON_MISC_REQ_HI), HOST_BIT >> 32);
	wr(h, MISC(NEURON_MISC_RESP_LO), (uint32_t)RESP);
	wr(h, MISC(NEURON_MISC_RESP_HI), HOST_BIT >> 32);
	wr(h, MISC(NEURON_MISC_TRIGGER), 1);
	return WAIT_FOR(r[0] == seq) ? r[1] : -1;
}

TEST_F(misc, mailbox_read)
{
	uint64_t addr[4] = {
		0x8000000000ull + MISC(NEURON_MISC_ROUTING_ID),
		0x8000000000ull + MISC(NEURON_MISC_SERIAL_LO),
		1ull << 47 | 0x2000000000ull | NEURON_TPB_SEM_READ(2),
		0x4000000010ull,
	};
	uint32_t *value = (uint32_t *)(self->h->mem + RESP + 4), magic = 0x600df00d;

	wr(self->h, NEURON_V3_TPB(4) + NEURON_TPB_SEM_SET(2), 4711);
	memcpy((char *)neuron_chip_hbm(self->h->chip, 1) + 0x10, &magic, 4);
	EXPECT_EQ(mail(self->h, 9, 1, addr, sizeof(addr), true), 0);
	EXPECT_EQ(self->h->mem[RESP + 2], 4 + 16);
	EXPECT_EQ(value[0], 5);
	EXPECT_EQ(value[1], 0x9abcdef0);
	EXPECT_EQ(value[2], 4711);
	EXPECT_EQ(value[3], magic);
}

TEST_F(misc, mailbox_errors)
{
	uint8_t data[900] = { 1 };

	EXPECT_EQ(mail(self->h, 1, 2, data, 128, true), 0);
	EXPECT_EQ(mail(self->h, 2, 2, data, 128, false), 1);
	EXPECT_EQ(mail(self->h, 3, 2, data, 129, true), 1);
	EXPECT_EQ(mail(self->h, 4, 77, data, 8, true), 2);
	EXPECT_EQ(mail(self->h, 5, 1, data, 7, true), 1);
	EXPECT_EQ(mail(self->h, 6, 1, data, 900, true), 1);
	EXPECT_EQ(mail(self->h, 7, 1, data, 800, true), 0);
	neuron_chip_bus_master(self->h->chip, false);
	self->h->mem[RESP] = 0;
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_EQ(self->h->mem[RESP], 0);
	EXPECT_NE(strstr(self->h->log, "unreachable"), NULL);
}

/* --- the newer mailbox: hw-public-interface 3.4 ------------------------------------ */

/* The message is in misc RAM; returns the response's header. */
static uint32_t register_mail(struct host *h, uint8_t seq, uint8_t cmd, const void *data, uint16_t len, bool good)
{
	uint8_t m[8 + 128] = { seq, cmd, (uint8_t)(len + 8), (uint8_t)((len + 8) >> 8) };
	uint32_t word, crc, i;

	memcpy(m + 8, data, len);
	crc = crc32c(m, len + 8u) ^ (good ? 0 : 1);
	for (i = 0; i < len; i += 4) {
		memcpy(&word, m + 8 + i, 4);
		wr(h, MISC(0x100 + i), word);
	}
	memcpy(&word, m, 4);
	wr(h, MISC(0x1f0), word);
	wr(h, MISC(0x1f4), crc);
	wr(h, MISC(0x1f8), 0);
	wr(h, MISC(0x1fc), 0);
	wr(h, MISC(0xf0), 1);
	wr(h, MISC(0x800), 1);
	return WAIT_FOR(rd(h, MISC(0x800)) == 0) ? rd(h, MISC(0x1f0)) : ~0u;
}

static bool open_with_api(struct host *h, unsigned int version)
{
	struct neuron_chip_config config = { .arch = "trn2", .routing_id = 5, .api_version = version };

	return host_open(h, &config);
}

TEST(newer_mailbox)
{
	uint64_t addr[2] = { 0x8000000000ull + MISC(NEURON_MISC_ROUTING_ID), 0x8000000000ull + MISC(0) };
	uint32_t profile = 2;
	struct host host, *h = &host;
	uint8_t data[128] = { 1 };

	ASSERT_TRUE(open_with_api(h, 7));
	EXPECT_EQ(rd(h, MISC(0)), 7);
	EXPECT_EQ(register_mail(h, 11, 3, &profile, 4, true), 11 | 0 << 8 | 4 << 16);
	EXPECT_EQ(rd(h, MISC(0xf0)), 0);
	EXPECT_EQ(register_mail(h, 12, 3, &profile, 4, false), 12 | 1 << 8 | 4 << 16);
	EXPECT_EQ(register_mail(h, 13, 3, &profile, 0, true), 13 | 1 << 8 | 4 << 16);
	EXPECT_EQ(register_mail(h, 14, 77, &profile, 4, true), 14 | 2 << 8 | 4 << 16);
	EXPECT_EQ(register_mail(h, 15, 2, data, 128, true), 15 | 0 << 8 | 4 << 16);
	EXPECT_EQ(register_mail(h, 16, 1, addr, 16, true), 16 | 0 << 8 | 12 << 16);
	EXPECT_EQ(rd(h, MISC(0x100)), 5);
	EXPECT_EQ(rd(h, MISC(0x104)), 7);
	/* The legacy one goes on working. */
	EXPECT_EQ(mail(h, 9, 1, addr, sizeof(addr), true), 0);
	EXPECT_EQ(mail(h, 10, 3, &profile, 4, true), 2);
	host_close(h);
}

/* Sizes that cannot be are a failure, not a read beyond the buffer. */
TEST(newer_mailbox_sizes)
{
	struct host host, *h = &host;
	uint32_t i;

	ASSERT_TRUE(open_with_api(h, 6));
	for (i = 0; i < 0x10000; i += i < 300 ? 1 : 4099) {
		wr(h, MISC(0x1f0), 5 | 1 << 8 | i << 16);
		wr(h, MISC(0x800), 1);
		ASSERT_EQ(rd(h, MISC(0x1f0)), 5 | 1 << 8 | 4 << 16);
	}
	host_close(h);
}

/* Without the version there is no such thing: 0 is taken for an address. */
TEST(newer_mailbox_needs_its_version)
{
	struct host host, *h = &host;
	uint32_t profile = 2;

	ASSERT_TRUE(open_with_api(h, 5));
	EXPECT_EQ(rd(h, MISC(0)), 5);
	EXPECT_EQ(register_mail(h, 11, 3, &profile, 4, true), 11 | 3 << 8 | 12 << 16);
	EXPECT_NE(strstr(h->log, "unreachable"), NULL);
	host_close(h);
}

TEST(mailbox_that_does_not_answer)
{
	struct host host, *h = &host;
	uint32_t profile = 2;
	uint8_t data[8] = { 1 };

	ASSERT_TRUE(open_with_api(h, 7));
	ASSERT_GT(neuron_chip_inject(h->chip, "mailbox-timeout,count=1", NULL, 0), 0);
	EXPECT_EQ(mail(h, 9, 2, data, 8, true), -1);
	EXPECT_EQ(mail(h, 10, 2, data, 8, true), 0);
	ASSERT_GT(neuron_chip_inject(h->chip, "mailbox-timeout,count=1", NULL, 0), 0);
	EXPECT_EQ(register_mail(h, 11, 3, &profile, 4, true), ~0u);
	EXPECT_EQ(rd(h, MISC(0x800)), 1);
	EXPECT_EQ(register_mail(h, 12, 3, &profile, 4, true), 12 | 4 << 16);
	host_close(h);
}

/* --- the rest of misc RAM ------------------------------------------------------------- */

static void firmware_reset(struct host *h, uint32_t type)
{
	wr(h, MISC(NEURON_MISC_RESET), type);
	wr(h, MISC(NEURON_MISC_TRIGGER), 1);
	if (!WAIT_FOR(rd(h, MISC(NEURON_MISC_RESET)) == 0))
		fprintf(stderr, "# no end of reset type %u\n", type);
}

static void abort_engine(struct host *h, uint64_t engine)
{
	wr(h, engine + NEURON_UDMA_CHANGE_STATE, 4);
}

static bool is_aborted(struct host *h, uint64_t engine)
{
	return rd(h, engine + NEURON_UDMA_STATE) == 0x2222;
}

/*
 * hw-public-interface 2.1: bit i core i, 8 + i the 16 engines of group i. The H2T
 * engines are left alone: the driver sets them up again only when both cores go.
 */
TEST_F(misc, tpb_map_of_v3)
{
	static const unsigned int group[4] = { 0, 1, 2, 7 };
	uint64_t engine[4], h2t = NEURON_V3_H2T_UDMA(0);
	unsigned int i;

	for (i = 0; i < 4; i++) {
		engine[i] = NEURON_V3_SENG_UDMA(group[i] / 2) + (group[i] % 2) * 16 * NEURON_V3_UDMA_STRIDE +
			    3 * NEURON_V3_UDMA_STRIDE;
		abort_engine(self->h, engine[i]);
	}
	abort_engine(self->h, h2t);
	wr(self->h, NEURON_V3_TPB(1) + NEURON_TPB_SEM_SET(0), 5);
	wr(self->h, MISC(NEURON_MISC_TPB_RESET_MAP), 1u << 9 | 1u << 15 | 1u << 17);
	firmware_reset(self->h, NEURON_MISC_RESET_TPB);
	EXPECT_TRUE(is_aborted(self->h, engine[0]));
	EXPECT_FALSE(is_aborted(self->h, engine[1]));
	EXPECT_TRUE(is_aborted(self->h, engine[2]));
	EXPECT_FALSE(is_aborted(self->h, engine[3]));
	EXPECT_TRUE(is_aborted(self->h, h2t));
	EXPECT_EQ(rd(self->h, NEURON_V3_TPB(1) + NEURON_TPB_SEM_READ(0)), 5);
	firmware_reset(self->h, NEURON_MISC_RESET_DEVICE);
	EXPECT_FALSE(is_aborted(self->h, engine[0]));
	EXPECT_FALSE(is_aborted(self->h, h2t));
}

/* The same on V2: bits 0 and 1, each core with its engines; 0x701 is what the public
 * driver writes for core 0. */
TEST(tpb_map_of_v2)
{
	struct neuron_chip_config config = { .arch = "trn1" };
	uint64_t e0 = NEURON_V2_SENG_UDMA(0), e1 = NEURON_V2_SENG_UDMA(1), misc = NEURON_V2_MISC_RAM;
	struct host host, *h = &host;

	ASSERT_TRUE(host_open(h, &config));
	abort_engine(h, e0);
	abort_engine(h, e1);
	wr(h, NEURON_V2_TPB(0) + NEURON_TPB_SEM_SET(3), 30);
	wr(h, NEURON_V2_TPB(1) + NEURON_TPB_SEM_SET(3), 31);
	wr(h, misc + NEURON_MISC_TPB_RESET_MAP, 0x701);
	wr(h, misc + NEURON_MISC_RESET, NEURON_MISC_RESET_TPB);
	wr(h, misc + NEURON_MISC_TRIGGER, 1);
	EXPECT_TRUE(WAIT_FOR(rd(h, misc + NEURON_MISC_RESET) == 0));
	EXPECT_EQ(rd(h, misc + NEURON_MISC_STATUS) & NEURON_MISC_STATUS_BUSY, 0);
	EXPECT_FALSE(is_aborted(h, e0));
	EXPECT_TRUE(is_aborted(h, e1));
	EXPECT_EQ(rd(h, NEURON_V2_TPB(0) + NEURON_TPB_SEM_READ(3)), 0);
	EXPECT_EQ(rd(h, NEURON_V2_TPB(1) + NEURON_TPB_SEM_READ(3)), 31);
	host_close(h);
}

/* Offsets as in hw-public-interface 3.1; what the driver leaves there outlives it. */
TEST_F(misc, kept_registers)
{
	static const uint16_t kept[] = {
		0x0c0, 0x0ec, 0x0f0, 0x100, 0x17c, 0x180, 0x184, 0x188, 0x18c, 0x190, 0x194, 0x198,
		0x1a0, 0x1cc, 0x1d8, 0x1f0, 0x1fc,
	};
	unsigned int i;

	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		EXPECT_EQ(rd(self->h, MISC(kept[i])), 0);
		wr(self->h, MISC(kept[i]), 0x10000 + kept[i]);
	}
	firmware_reset(self->h, NEURON_MISC_RESET_TPB);
	firmware_reset(self->h, NEURON_MISC_RESET_DEVICE);
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		EXPECT_EQ(rd(self->h, MISC(kept[i])), 0x10000 + kept[i]);
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_FLR);
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		EXPECT_EQ(rd(self->h, MISC(kept[i])), 0);
}

TEST_F(misc, read_only_registers)
{
	static const uint16_t fixed[] = { 0x00, 0x38, 0x3c, 0x40, 0x44, 0x50, 0x64, 0x70, 0x808 };
	uint32_t old;
	unsigned int i;

	for (i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		old = rd(self->h, MISC(fixed[i]));
		wr(self->h, MISC(fixed[i]), ~old);
		EXPECT_EQ(rd(self->h, MISC(fixed[i])), old);
	}
	EXPECT_NE(strstr(self->h->log, "only firmware writes"), NULL);
}

TEST(server)
{
	struct neuron_chip_config config = { .arch = "trn3", .server_info = 0x8123 };
	struct host host, *h = &host;

	ASSERT_TRUE(host_open(h, &config));
	EXPECT_EQ(rd(h, MISC(0x70)), 0x8123);
	host_close(h);
}

/* The sample number moves, or the public driver drops the sample; 1/100 %, by die. */
TEST_F(misc, power_samples)
{
	struct neuron_job_desc job = job_of(1, 3);
	uint32_t first = rd(self->h, MISC(0x54)), now;
	struct slot s;

	EXPECT_EQ(first & 0xffff, 0);
	EXPECT_TRUE(WAIT_FOR(rd(self->h, MISC(0x54)) >> 16 != first >> 16));
	map_all(self->h);
	slot_open(&s, self->h, 0, 2, 0xff);
	job.program_va = VA_PROGRAM + 0x2000;	/* never ends */
	job.core_mask = 1;
	push(&s, &job);
	bell(&s);
	ASSERT_TRUE(WAIT_FOR(status(&s) == NEURON_SLOT_STATUS_RUNNING));
	rd(self->h, MISC(0x54));
	rd(self->h, MISC(0x58));
	usleep(25000);
	rd(self->h, MISC(0x54));
	rd(self->h, MISC(0x58));
	usleep(25000);
	/* One core of the four of die 0, all the time since the last sample. */
	now = rd(self->h, MISC(0x54)) & 0xffff;
	EXPECT_GE(now, 2400);
	EXPECT_LE(now, 2500);
	EXPECT_EQ(rd(self->h, MISC(0x58)) & 0xffff, 0);
	xwr(self->h, s.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	ASSERT_TRUE(WAIT_FOR(status(&s) == 0));
	rd(self->h, MISC(0x54));
	usleep(25000);
	rd(self->h, MISC(0x54));
	usleep(25000);
	EXPECT_EQ(rd(self->h, MISC(0x54)) & 0xffff, 0);
}

TEST_F(misc, plain_registers)
{
	uint64_t nq = 0x06181000 + 0x100;	/* notification queue 0 of core 0 */

	EXPECT_EQ(rd(self->h, nq), 0);
	wr(self->h, nq + 4, 0x11223344);
	EXPECT_EQ(rd(self->h, nq + 4), 0x11223344);
	EXPECT_EQ(neuron_chip_read(self->h->chip, 0, nq + 5, 1), 0x33);
	EXPECT_EQ(neuron_chip_read(self->h->chip, 0, nq + 6, 2), 0x1122);
	neuron_chip_write(self->h->chip, 0, nq + 6, 0xbeef, 2);
	EXPECT_EQ(rd(self->h, nq + 4), 0xbeef3344);
	neuron_chip_write(self->h->chip, 0, nq, 0x0102030405060708ull, 8);
	EXPECT_EQ(neuron_chip_read(self->h->chip, 0, nq, 8), 0x0102030405060708ull);
	EXPECT_EQ(rd(self->h, 0x06141100), 0);	/* tensor-engine counter */
	EXPECT_EQ(neuron_chip_read(self->h->chip, 0, ~0ull, 8), 0);
	EXPECT_EQ(neuron_chip_read(self->h->chip, 7, 0, 4), 0);
	neuron_chip_write(self->h->chip, 0, ~0ull, 1, 8);
}

/* A guest that writes everywhere does not make the host's memory grow without end. */
TEST_F(misc, bounded_registers)
{
	uint64_t offset;

	for (offset = 0x10000000; offset < 0x20000000; offset += 2048)
		wr(self->h, offset, 1);
	EXPECT_NE(strstr(self->h->log, "too many registers"), NULL);
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_BUS);
	EXPECT_EQ(rd(self->h, 0x10000000), 0);
	wr(self->h, 0x10000000, 6);
	EXPECT_EQ(rd(self->h, 0x10000000), 6);
}

TEST_HARNESS_MAIN
