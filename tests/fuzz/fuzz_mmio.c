// SPDX-License-Identifier: MIT
/*
 * A guest that does anything: bytes become register accesses, host memory
 * contents, half-right rings, jobs and page tables, resets. Whatever comes, the
 * chip must not crash, must come back by a reset, and must copy afterwards.
 *
 * With clang's libFuzzer (HAVE_LIBFUZZER) it is a fuzz target; else
 *	fuzz_mmio [--runs N] [--seed S] [FILE...]
 * runs N random inputs, or the files.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neuron/isa.h"
#include "neuron/regs.h"
#include "neuron_chip.h"

#define HOST_BYTES	(1u << 20)
#define MAX_OPS		400
#define HOST_BIT	(1ull << 46)
#define TABLES		0x10000u
#define RINGS		0x40000u
#define PROBE		0xf0000u	/* the last 64 KiB: for the check at the end */

static uint8_t *mem;
static struct neuron_chip *chip;

static int dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
	(void)opaque;
	if (addr >= HOST_BYTES || len > HOST_BYTES - addr)
		return -1;
	memcpy(buf, mem + addr, len);
	return 0;
}

static int dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
	(void)opaque;
	if (addr >= HOST_BYTES || len > HOST_BYTES - addr)
		return -1;
	memcpy(mem + addr, buf, len);
	return 0;
}

static void irq(void *opaque, unsigned int vector)
{
	(void)opaque;
	if (vector >= NEURON_MAX_VECTORS)
		abort();
}

static void log_line(void *opaque, enum neuron_chip_log level, const char *line)
{
	(void)opaque;
	if (level == NEURON_CHIP_LOG_ERROR) {
		fprintf(stderr, "fuzz_mmio: the model reports: %s\n", line);
		abort();
	}
}

/* --- input ------------------------------------------------------------------------ */

struct input {
	const uint8_t *p, *end;
};

static uint64_t take(struct input *in, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes-- && in->p < in->end)
		v = v << 8 | *in->p++;
	return v;
}

/* Numbers near edges are more interesting than any. */
static uint64_t number(struct input *in)
{
	uint8_t kind = (uint8_t)take(in, 1);

	switch (kind & 7) {
	case 0:
		return take(in, 1);
	case 1:
		return (uint64_t)-(int64_t)take(in, 1);
	case 2:
		return 1ull << (kind >> 3);
	case 3:
		return (1ull << (kind >> 3)) - 1;
	case 4:
		return take(in, 2) << (kind >> 3);
	case 5:
		return take(in, 8);
	default:
		return take(in, 4);
	}
}

static uint64_t engine(struct input *in)
{
	uint8_t n = (uint8_t)take(in, 1);

	return n & 0x80 ? NEURON_V3_H2T_UDMA(n & 3) :
			  NEURON_V3_SENG_UDMA(n & 3) + (n >> 2 & 31) * (uint64_t)NEURON_V3_UDMA_STRIDE;
}

static uint64_t bar0_offset(struct input *in)
{
	switch (take(in, 1) & 7) {
	case 0:
		return NEURON_V3_MISC_RAM + (take(in, 2) & 0xfff);
	case 1:
	case 2:
	case 3:
		return engine(in) + (take(in, 1) & 1 ? NEURON_UDMA_S2M : 0) +
		       NEURON_UDMA_Q(take(in, 1) & 3) + (take(in, 1) & 0x7f) * 4;
	case 4:
		return engine(in) + (take(in, 3) & 0xfffff);
	case 5:
		return NEURON_V3_TPB(take(in, 1) & 7) + NEURON_TPB_EVENT(0) + (take(in, 2) & 0x3fff);
	case 6:
		return NEURON_V3_TPB(take(in, 1) & 7) + (take(in, 4) & 0x3ffffff);
	default:
		return number(in);
	}
}

static uint64_t bar2_offset(struct input *in)
{
	switch (take(in, 1) & 7) {
	case 0:
		return take(in, 1);
	case 1:
		return NEURON_EXEC_UDMA_IRQ(0, 0) + (take(in, 2) & 0x3fff);
	case 2:
		return NEURON_EXEC_CORE(take(in, 1) & 7) + (take(in, 1) & 0xff);
	case 3:
		return number(in);
	default:
		return NEURON_EXEC_SLOT(take(in, 1) & 3) + (take(in, 1) & 0xff);
	}
}

/* --- operations ----------------------------------------------------------------------- */

static void access_any(struct input *in)
{
	uint8_t how = (uint8_t)take(in, 1);
	unsigned int size = 1u << (how & 3), bar = how & 4 ? NEURON_BAR_EXEC : NEURON_BAR_APB;
	uint64_t offset = how & 4 ? bar2_offset(in) : bar0_offset(in);

	if (!(how & 8))
		offset &= ~(uint64_t)(size - 1);
	if (how & 16)
		neuron_chip_read(chip, bar, offset, size);
	else
		neuron_chip_write(chip, bar, offset, number(in), size);
}

static void poke(struct input *in)
{
	uint32_t at = (uint32_t)take(in, 2) * 8 % PROBE;
	uint64_t v = number(in);

	memcpy(mem + at, &v, 8);
}

static void wr(uint64_t offset, uint32_t value)
{
	neuron_chip_write(chip, NEURON_BAR_APB, offset, value, 4);
}

static void xwr(uint64_t offset, uint32_t value)
{
	neuron_chip_write(chip, NEURON_BAR_EXEC, offset, value, 4);
}

static void init_side(uint64_t q, uint32_t base, uint32_t len, uint32_t sw_ctrl)
{
	wr(q + NEURON_UDMA_Q_CFG, NEURON_UDMA_Q_CFG_RESET_VALUE);
	wr(q + sw_ctrl, NEURON_UDMA_Q_SW_CTRL_RST);
	wr(q + NEURON_UDMA_Q_DRBP_LO, base);
	wr(q + NEURON_UDMA_Q_DRBP_HI, (uint32_t)(HOST_BIT >> 32));
	wr(q + NEURON_UDMA_Q_DRL, len);
	wr(q + NEURON_UDMA_Q_CFG, 0x03030000);
}

static void init_queue(struct input *in)
{
	uint64_t e = engine(in), q = NEURON_UDMA_Q(take(in, 1) & 3);
	uint32_t len = 16 + (uint32_t)take(in, 1);

	wr(e + NEURON_UDMA_CHANGE_STATE, 1);
	init_side(e + NEURON_UDMA_M2S + q, RINGS, len, NEURON_UDMA_M2S_Q_SW_CTRL);
	init_side(e + NEURON_UDMA_S2M + q, RINGS + 0x4000, len, NEURON_UDMA_S2M_Q_SW_CTRL);
}

static uint64_t dpa(struct input *in)
{
	switch (take(in, 1) & 7) {
	case 0:
	case 1:
	case 2:
		return HOST_BIT | (take(in, 3) & 0x1fffff);
	case 3:
		return NEURON_V3_HBM_DPA(take(in, 1) & 3) + (take(in, 3) & 0xfffff);
	case 4:
		return 0x2000000000ull + (take(in, 1) & 1) * 0x1000000000ull + (take(in, 4) & 0x3ffffff);
	case 5:
		return NEURON_V3_HBM_DPA(take(in, 1) & 3) + (24ull << 30) - take(in, 2);
	default:
		return number(in);
	}
}

static void fill_rings(struct input *in)
{
	unsigned int n = 1 + (take(in, 1) & 15), i;
	struct neuron_udma_desc d;

	for (i = 0; i < n; i++) {
		d.flags = (uint32_t)take(in, 2) | (take(in, 1) & 1 ? 0x0d000000 : (uint32_t)take(in, 1) << 24);
		d.meta = NEURON_UDMA_META_COPY;
		d.addr = dpa(in);
		memcpy(mem + RINGS + (take(in, 1) & 1 ? 0x4000 : 0) + 16 * (take(in, 1) & 0x7f), &d, sizeof(d));
	}
}

static void ring(struct input *in)
{
	uint64_t e = engine(in), q = NEURON_UDMA_Q(take(in, 1) & 3);

	wr(e + NEURON_UDMA_S2M + q + NEURON_UDMA_Q_DRTP_INC, (uint32_t)take(in, 1) & 31);
	wr(e + NEURON_UDMA_M2S + q + NEURON_UDMA_Q_DRTP_INC, (uint32_t)take(in, 1) & 31);
}

/* One table of each level, the leaves as the input says. */
static void make_tables(struct input *in)
{
	uint64_t *t = (uint64_t *)(mem + TABLES);
	unsigned int i, n = 1 + (take(in, 1) & 15);

	t[0] = (TABLES + 0x1000) | NEURON_PTE_VALID;
	t[512] = (TABLES + 0x2000) | NEURON_PTE_VALID;
	t[1024] = (TABLES + 0x3000) | NEURON_PTE_VALID;
	t[1025] = (1ull << 21) | NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE;
	for (i = 0; i < n; i++) {
		uint64_t addr = take(in, 1) & 1 ? RINGS + 0x10000 + 0x1000 * (take(in, 1) & 15) : number(in) << 12;

		t[1536 + (take(in, 1) & 31)] = (addr & NEURON_PTE_ADDR_MASK) | NEURON_PTE_VALID | NEURON_PTE_LEAF |
					      (take(in, 1) & 3 ? NEURON_PTE_WRITE : 0) | (take(in, 1) & 1) << 4;
	}
}

static void make_program(struct input *in)
{
	struct neuron_program_header p = {
		.magic = NEURON_PROGRAM_MAGIC, .isa_version = NEURON_ISA_VERSION, .nc_version = 3, .cores = 1,
		.size = sizeof(p) + 512,
	};
	uint8_t *hbm = (uint8_t *)neuron_chip_hbm(chip, 0) + (1u << 21);
	unsigned int i;

	if (take(in, 1) & 1)
		p.stream[0][take(in, 1) & 7] = (struct neuron_program_stream){ sizeof(p), 4, 0 };
	memcpy(hbm, &p, sizeof(p));
	for (i = 0; i < 512; i++)
		hbm[sizeof(p) + i] = (uint8_t)take(in, 1);
}

static void open_slot(struct input *in)
{
	unsigned int n = take(in, 1) & 3;
	uint64_t s = NEURON_EXEC_SLOT(n);

	xwr(s + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	xwr(s + NEURON_SLOT_RING_LO, RINGS + 0x20000 + 0x1000 * n);
	xwr(s + NEURON_SLOT_RING_ORDER, (uint32_t)take(in, 1) & 3);
	xwr(s + NEURON_SLOT_CQ_LO, RINGS + 0x24000 + 0x1000 * n);
	xwr(s + NEURON_SLOT_CQ_ORDER, (uint32_t)take(in, 1) & 3);
	xwr(s + NEURON_SLOT_PT_LO, TABLES);
	xwr(s + NEURON_SLOT_CORE_MASK, (uint32_t)take(in, 1));
	xwr(s + NEURON_SLOT_VECTOR, NEURON_SLOT_VECTOR_EN | (uint32_t)(take(in, 1) & 31));
	xwr(s + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
}

static void push_job(struct input *in)
{
	unsigned int n = take(in, 1) & 3;
	uint64_t s = NEURON_EXEC_SLOT(n);
	struct neuron_job_desc job = {
		.seqno = take(in, 1),
		.core_mask = (uint32_t)take(in, 1),
		.program_va = take(in, 1) & 7 ? 1u << 21 : number(in),
		.result_va = take(in, 1) * 128,
		.fence_va = take(in, 1) & 1 ? take(in, 2) * 8 : number(in),
		.flags = (uint32_t)take(in, 1) & 1,
	};
	unsigned int i;

	for (i = 0; i < 8; i++)
		memcpy(mem + RINGS + 0x20000 + 0x1000 * n + sizeof(job) * i, &job, sizeof(job));
	xwr(s + NEURON_SLOT_DOORBELL, (uint32_t)neuron_chip_read(chip, 2, s + NEURON_SLOT_DOORBELL, 4) +
	    (uint32_t)(take(in, 1) & 3));
	xwr(s + NEURON_SLOT_CQ_HEAD, (uint32_t)neuron_chip_read(chip, 2, s + NEURON_SLOT_HEAD, 4));
}

static void step(struct input *in)
{
	static void (* const ops[])(struct input *) = {
		access_any, access_any, access_any, poke, poke, init_queue, fill_rings, ring,
		ring, make_tables, make_program, open_slot, push_job, push_job,
	};
	uint8_t op = (uint8_t)take(in, 1);

	if (op < 0xf8)
		ops[op % (sizeof(ops) / sizeof(ops[0]))](in);
	else if (op < 0xfc)
		neuron_chip_bus_master(chip, op & 1);
	else
		neuron_chip_reset(chip, op & 1 ? NEURON_CHIP_RESET_FLR : NEURON_CHIP_RESET_BUS);
}

/* --- after it ---------------------------------------------------------------------------- */

static void check_alive(void)
{
	struct neuron_udma_desc tx = { 0x0d000040, NEURON_UDMA_META_COPY, HOST_BIT | (PROBE + 0x1000) };
	struct neuron_udma_desc rx = { 0x01000040, 0, HOST_BIT | (PROBE + 0x2000) };
	uint64_t e = NEURON_V3_H2T_UDMA(2);

	neuron_chip_reset(chip, NEURON_CHIP_RESET_BUS);
	neuron_chip_bus_master(chip, true);
	neuron_chip_idle(chip);
	memset(mem + PROBE + 0x1000, 0x5a, 64);
	memset(mem + PROBE + 0x2000, 0, 64);
	memcpy(mem + PROBE, &tx, sizeof(tx));
	memcpy(mem + PROBE + 0x800, &rx, sizeof(rx));
	init_side(e + NEURON_UDMA_M2S + NEURON_UDMA_Q(0), PROBE, 32, NEURON_UDMA_M2S_Q_SW_CTRL);
	init_side(e + NEURON_UDMA_S2M + NEURON_UDMA_Q(0), PROBE + 0x800, 32, NEURON_UDMA_S2M_Q_SW_CTRL);
	wr(e + NEURON_UDMA_S2M + NEURON_UDMA_Q(0) + NEURON_UDMA_Q_DRTP_INC, 1);
	wr(e + NEURON_UDMA_M2S + NEURON_UDMA_Q(0) + NEURON_UDMA_Q_DRTP_INC, 1);
	if (mem[PROBE + 0x203f] != 0x5a) {
		fprintf(stderr, "fuzz_mmio: no copy after a reset\n");
		abort();
	}
	neuron_chip_reset(chip, NEURON_CHIP_RESET_BUS);
	neuron_chip_bus_master(chip, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct neuron_chip_host ops = { dma_read, dma_write, irq, log_line, NULL };
	struct neuron_chip_config config = { .arch = "trn2", .reset_us = 1 };
	struct input in = { data, data + size };
	const char *error = NULL;
	unsigned int n;

	if (!chip) {
		mem = calloc(1, HOST_BYTES);
		chip = neuron_chip_new(&config, &ops, NULL, &error);
		if (!chip || !mem) {
			fprintf(stderr, "fuzz_mmio: %s\n", error ? error : "out of memory");
			exit(1);
		}
		neuron_chip_bus_master(chip, true);
	}
	for (n = 0; n < MAX_OPS && in.p < in.end; n++)
		step(&in);
	check_alive();
	return 0;
}

#ifndef HAVE_LIBFUZZER
static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void run_random(uint64_t seed, uint64_t runs)
{
	static uint8_t buf[8192];
	uint64_t i, k, s;

	for (i = 0; i < runs; i++) {
		s = seed + i * 0x9e3779b97f4a7c15ull;
		for (k = 0; k < sizeof(buf); k += 8) {
			uint64_t v = next_random(&s);

			memcpy(buf + k, &v, 8);
		}
		LLVMFuzzerTestOneInput(buf, sizeof(buf));
		memset(mem, 0, PROBE);
	}
}

static int run_file(const char *name)
{
	static uint8_t buf[1 << 16];
	FILE *f = fopen(name, "rb");
	size_t n;

	if (!f) {
		perror(name);
		return 1;
	}
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	LLVMFuzzerTestOneInput(buf, n);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t runs = 2000, seed = 1;
	int i, files = 0;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--runs") && i + 1 < argc) {
			runs = strtoull(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			seed = strtoull(argv[++i], NULL, 0);
		} else if (argv[i][0] == '-') {
			fprintf(stderr, "usage: fuzz_mmio [--runs N] [--seed S] [FILE...]\n");
			return 2;
		} else {
			files++;
			if (run_file(argv[i]))
				return 1;
		}
	}
	if (!files) {
		printf("fuzz_mmio: %llu inputs from seed %llu\n", (unsigned long long)runs, (unsigned long long)seed);
		run_random(seed, runs);
	}
	neuron_chip_free(chip);
	free(mem);
	return 0;
}
#endif
