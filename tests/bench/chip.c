// SPDX-License-Identifier: MIT
/*
 * UDMA of the chip model in this process, and memcpy beside it, in turn on one core:
 * medians of 64 MiB copies three ways, and of a 64-byte copy from doorbell to marker.
 */
#include <sched.h>
#include <string.h>

#include "bench.h"
#include "neuron/regs.h"
#include "neuron_chip.h"

#define HOST_BIT	(1ull << 46)
#define ENGINE		NEURON_V3_H2T_UDMA(0)
#define M2S		(ENGINE + NEURON_UDMA_M2S + NEURON_UDMA_Q(0))
#define S2M		(ENGINE + NEURON_UDMA_S2M + NEURON_UDMA_Q(0))

enum { SIZE = 64 << 20, RUNS = 15, SMALL = 2000, RING = 2048, TX = 0, RX = 1 << 16, SRC = 1 << 20,
       DST = SRC + SIZE, MEM = DST + SIZE };

static uint8_t *mem;
static struct neuron_chip *chip;
static uint32_t pos, id = 1;

static int dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
	(void)opaque;
	if (addr >= MEM || len > MEM - addr)
		return -1;
	memcpy(buf, mem + addr, len);
	return 0;
}

static int dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
	(void)opaque;
	if (addr >= MEM || len > MEM - addr)
		return -1;
	memcpy(mem + addr, buf, len);
	return 0;
}

static void wr(uint64_t offset, uint32_t value)
{
	neuron_chip_write(chip, NEURON_BAR_APB, offset, value, 4);
}

static void set_up(uint64_t q, uint32_t ring, uint32_t reset)
{
	wr(q + NEURON_UDMA_Q_CFG, 0x03000000);
	wr(q + reset, NEURON_UDMA_Q_SW_CTRL_RST);
	wr(q + NEURON_UDMA_Q_DRBP_LO, ring);
	wr(q + NEURON_UDMA_Q_DRBP_HI, HOST_BIT >> 32);
	wr(q + NEURON_UDMA_Q_DRL, RING);
	wr(q + NEURON_UDMA_Q_CFG, 0x03030000);
}

static void put(uint64_t dst, uint64_t src, uint32_t len)
{
	struct neuron_udma_desc *tx = (void *)(mem + TX), *rx = (void *)(mem + RX);

	tx[pos] = (struct neuron_udma_desc){ 0x0c000000 | id << 24 | (len & 0xffff), NEURON_UDMA_META_COPY, src };
	rx[pos] = (struct neuron_udma_desc){ id << 24 | (len & 0xffff), 0, dst };
	pos = (pos + 1) % RING;
	if (!pos)
		id = (id + 1) & 3;
}

/* Nanoseconds from the first descriptor to the end of the copy. */
static uint64_t copy(uint64_t dst, uint64_t src, uint32_t size)
{
	uint64_t start = bench_ns();
	uint32_t n = 0, at;

	for (at = 0; at < size; at += 65536, n++)
		put(dst + at, src + at, size - at < 65536 ? size - at : 65536);
	wr(S2M + NEURON_UDMA_Q_DRTP_INC, n);
	wr(M2S + NEURON_UDMA_Q_DRTP_INC, n);
	neuron_chip_idle(chip);
	return bench_ns() - start;
}

static void pin(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		bench_die("cannot stay on one core");
}

static void fill(void)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		mem[SRC + i] = (uint8_t)(i * 167 + (i >> 16));
}

int main(void)
{
	const struct neuron_chip_host host = { .dma_read = dma_read, .dma_write = dma_write };
	const struct neuron_chip_config config = { .arch = "trn2" };
	uint64_t ns[4][RUNS], small[SMALL];
	const char *error;
	int i;

	pin();
	if (posix_memalign((void **)&mem, 4096, MEM))
		bench_die("out of memory");
	memset(mem, 0, MEM);
	chip = neuron_chip_new(&config, &host, NULL, &error);
	if (!chip)
		bench_die("%s", error);
	neuron_chip_bus_master(chip, true);
	set_up(M2S, TX, NEURON_UDMA_M2S_Q_SW_CTRL);
	set_up(S2M, RX, NEURON_UDMA_S2M_Q_SW_CTRL);
	fill();
	for (i = -1; i < RUNS; i++) {
		uint64_t start = bench_ns(), t[4];

		memcpy(mem + DST, mem + SRC, SIZE);
		__asm__ volatile("" : : "r"(mem) : "memory");
		t[0] = bench_ns() - start;
		t[1] = copy(0, HOST_BIT | SRC, SIZE);
		t[2] = copy(0x4000000000ull, 0, SIZE);
		memset(mem + DST, 0, SIZE);
		t[3] = copy(HOST_BIT | DST, 0x4000000000ull, SIZE);
		if (memcmp(mem + SRC, mem + DST, SIZE))
			bench_die("what came back is not what was written");
		for (int k = 0; i >= 0 && k < 4; k++)
			ns[k][i] = t[k];
	}
	for (i = 0; i < SMALL; i++)
		small[i] = copy(0, HOST_BIT | SRC, 64);
	printf("memcpy_ns %llu\nto_ns %llu\nwithin_ns %llu\nfrom_ns %llu\nsmall_ns %llu\n",
	       (unsigned long long)bench_median(ns[0], RUNS), (unsigned long long)bench_median(ns[1], RUNS),
	       (unsigned long long)bench_median(ns[2], RUNS), (unsigned long long)bench_median(ns[3], RUNS),
	       (unsigned long long)bench_median(small, SMALL));
	neuron_chip_free(chip);
	free(mem);
	return 0;
}
