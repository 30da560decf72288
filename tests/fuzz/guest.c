// SPDX-License-Identifier: MIT
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

#define GIB		(1ull << 30)
#define MAX_USES	2000	/* then a new chip: HBM that was touched stays touched */

static const struct guest_arch archs[] = {
	{ "trn2", 1, 8, 4, NEURON_V3_MISC_RAM, 1ull << 46, 24 * GIB },
	{ "trn1", 0, 2, 2, NEURON_V2_MISC_RAM, 1ull << 44, 16 * GIB },
	{ "trn3", 1, 8, 4, NEURON_V3_MISC_RAM, 1ull << 46, 36 * GIB },
};

#define ARCHS	(sizeof(archs) / sizeof(archs[0]))

const struct guest_arch *guest_arch;
struct neuron_chip *guest_chip;
uint8_t *guest_mem;

static struct neuron_chip *chips[ARCHS];
static unsigned int uses[ARCHS];

static int dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
	if (addr >= GUEST_BYTES || len > GUEST_BYTES - addr)
		return -1;
	memcpy(buf, guest_mem + addr, len);
	return 0;
}

static int dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
	if (addr >= GUEST_BYTES || len > GUEST_BYTES - addr)
		return -1;
	memcpy(guest_mem + addr, buf, len);
	return 0;
}

static void irq(void *opaque, unsigned int vector)
{
	if (vector >= NEURON_MAX_VECTORS)
		abort();
}

static void log_line(void *opaque, enum neuron_chip_log level, const char *line)
{
	if (level == NEURON_CHIP_LOG_ERROR) {
		fprintf(stderr, "fuzz: the model reports: %s\n", line);
		abort();
	}
}

static void free_all(void)
{
	unsigned int i;

	for (i = 0; i < ARCHS; i++)
		neuron_chip_free(chips[i]);
	free(guest_mem);
}

static void make_chip(unsigned int n)
{
	static const struct neuron_chip_host ops = {
		.dma_read = dma_read, .dma_write = dma_write, .irq = irq, .log = log_line,
	};
	struct neuron_chip_config config = { .arch = archs[n].name, .reset_us = 1, .api_version = 7 };
	const char *error = NULL;

	if (!guest_mem) {
		guest_mem = calloc(1, GUEST_BYTES);
		atexit(free_all);
	}
	neuron_chip_free(chips[n]);
	chips[n] = neuron_chip_new(&config, &ops, NULL, &error);
	if (!chips[n] || !guest_mem) {
		fprintf(stderr, "fuzz: %s\n", error ? error : "out of memory");
		exit(1);
	}
	uses[n] = 0;
}

void guest_open(struct fuzz_input *in)
{
	unsigned int n = fuzz_below(in, ARCHS);

	if (!chips[n] || uses[n]++ > MAX_USES)
		make_chip(n);
	guest_arch = &archs[n];
	guest_chip = chips[n];
	memset(guest_mem, 0, GUEST_BYTES);
	neuron_chip_reset(guest_chip, NEURON_CHIP_RESET_BUS);
	neuron_chip_bus_master(guest_chip, true);
}

/* --- registers -------------------------------------------------------------- */

void guest_write(uint64_t offset, uint32_t value)
{
	neuron_chip_write(guest_chip, NEURON_BAR_APB, offset, value, 4);
}

uint32_t guest_read(uint64_t offset)
{
	return (uint32_t)neuron_chip_read(guest_chip, NEURON_BAR_APB, offset, 4);
}

void guest_exec_write(uint64_t offset, uint32_t value)
{
	neuron_chip_write(guest_chip, NEURON_BAR_EXEC, offset, value, 4);
}

uint32_t guest_exec_read(uint64_t offset)
{
	return (uint32_t)neuron_chip_read(guest_chip, NEURON_BAR_EXEC, offset, 4);
}

uint64_t guest_h2t(unsigned int n)
{
	return guest_arch->v3 ? NEURON_V3_H2T_UDMA(n & 3) : NEURON_V2_H2T_UDMA(n & 1);
}

uint64_t guest_engine(struct fuzz_input *in)
{
	unsigned int n = fuzz_below(in, 256);

	if (n & 0x80)
		return guest_h2t(n);
	if (guest_arch->v3)
		return NEURON_V3_SENG_UDMA(n & 3) + (n >> 2) * (uint64_t)NEURON_V3_UDMA_STRIDE;
	return NEURON_V2_SENG_UDMA(n & 1) + (n >> 1 & 15) * (uint64_t)NEURON_V2_UDMA_STRIDE;
}

uint64_t guest_tpb(unsigned int n)
{
	return guest_arch->v3 ? NEURON_V3_TPB(n & 7) : NEURON_V2_TPB(n & 1);
}

uint64_t guest_hbm_dpa(unsigned int stack)
{
	return guest_arch->v3 ? NEURON_V3_HBM_DPA(stack & 3) : NEURON_V2_HBM_DPA(stack & 1);
}

/* hw: section 5.1, v2/address_map.h and v3/address_map.h of the public driver. */
uint64_t guest_tpb_dpa(unsigned int n)
{
	static const uint64_t v3[] = { 0x2000000000ull, 0x3000000000ull, 0x6000000000ull, 0x7000000000ull };

	if (!guest_arch->v3)
		return 0xfffc0000000ull + (n & 1) * 0x4000000ull;
	return v3[n & 3] | (n & 4 ? 1ull << 47 : 0);
}

static void init_side(uint64_t q, uint32_t base, uint32_t len, uint32_t sw_ctrl)
{
	guest_write(q + NEURON_UDMA_Q_CFG, NEURON_UDMA_Q_CFG_RESET_VALUE);
	guest_write(q + sw_ctrl, NEURON_UDMA_Q_SW_CTRL_RST);
	guest_write(q + NEURON_UDMA_Q_DRBP_LO, base);
	guest_write(q + NEURON_UDMA_Q_DRBP_HI, (uint32_t)(guest_arch->host_bit >> 32));
	guest_write(q + NEURON_UDMA_Q_DRL, len);
	guest_write(q + NEURON_UDMA_Q_CFG, 0x03030000);
}

void guest_queue(uint64_t engine, unsigned int queue, uint32_t tx, uint32_t rx, uint32_t len)
{
	init_side(engine + NEURON_UDMA_M2S + NEURON_UDMA_Q(queue), tx, len, NEURON_UDMA_M2S_Q_SW_CTRL);
	init_side(engine + NEURON_UDMA_S2M + NEURON_UDMA_Q(queue), rx, len, NEURON_UDMA_S2M_Q_SW_CTRL);
}

void guest_doorbell(uint64_t engine, unsigned int queue, uint32_t tx, uint32_t rx)
{
	guest_write(engine + NEURON_UDMA_S2M + NEURON_UDMA_Q(queue) + NEURON_UDMA_Q_DRTP_INC, rx);
	guest_write(engine + NEURON_UDMA_M2S + NEURON_UDMA_Q(queue) + NEURON_UDMA_Q_DRTP_INC, tx);
}

/* --- after it ---------------------------------------------------------------- */

void guest_check(void)
{
	struct neuron_udma_desc tx = { 0x0d000040, NEURON_UDMA_META_COPY, guest_arch->host_bit | (GUEST_PROBE + 0x1000) };
	struct neuron_udma_desc rx = { 0x01000040, 0, guest_arch->host_bit | (GUEST_PROBE + 0x2000) };

	neuron_chip_clear(guest_chip, 0);
	neuron_chip_reset(guest_chip, NEURON_CHIP_RESET_BUS);
	neuron_chip_bus_master(guest_chip, true);
	neuron_chip_idle(guest_chip);
	memset(guest_mem + GUEST_PROBE + 0x1000, 0x5a, 64);
	memset(guest_mem + GUEST_PROBE + 0x2000, 0, 64);
	memcpy(guest_mem + GUEST_PROBE, &tx, sizeof(tx));
	memcpy(guest_mem + GUEST_PROBE + 0x800, &rx, sizeof(rx));
	guest_queue(guest_h2t(0), 0, GUEST_PROBE, GUEST_PROBE + 0x800, 32);
	guest_doorbell(guest_h2t(0), 0, 1, 1);
	if (guest_mem[GUEST_PROBE + 0x203f] != 0x5a) {
		fprintf(stderr, "fuzz: no copy after a reset\n");
		abort();
	}
	neuron_chip_reset(guest_chip, NEURON_CHIP_RESET_BUS);
}
