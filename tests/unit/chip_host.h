/* SPDX-License-Identifier: MIT */
/*
 * A host for unit tests of the chip: memory from bus address 0 on, counted
 * interrupts, the last log line. Plays the part of a driver with a few helpers.
 */
#ifndef TESTS_CHIP_HOST_H
#define TESTS_CHIP_HOST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "neuron/regs.h"
#include "neuron_chip.h"

#define HOST_BYTES	(64ull << 20)

struct host {
	uint8_t *mem;
	struct neuron_chip *chip;
	atomic_uint irq[NEURON_MAX_VECTORS];
	atomic_uint log_lines;
	pthread_mutex_t log_lock;
	char log[256];
};

static inline bool host_in(uint64_t addr, size_t len)
{
	return addr < HOST_BYTES && len <= HOST_BYTES - addr;
}

static inline int host_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
	struct host *h = opaque;

	if (!host_in(addr, len))
		return -1;
	memcpy(buf, h->mem + addr, len);
	return 0;
}

static inline int host_dma_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
	struct host *h = opaque;

	if (!host_in(addr, len))
		return -1;
	memcpy(h->mem + addr, buf, len);
	return 0;
}

static inline void host_irq(void *opaque, unsigned int vector)
{
	struct host *h = opaque;

	atomic_fetch_add(&h->irq[vector], 1);
}

static inline void host_log(void *opaque, enum neuron_chip_log level, const char *line)
{
	struct host *h = opaque;

	(void)level;
	pthread_mutex_lock(&h->log_lock);
	snprintf(h->log, sizeof(h->log), "%s", line);
	pthread_mutex_unlock(&h->log_lock);
	atomic_fetch_add(&h->log_lines, 1);
	if (getenv("CHIP_LOG"))
		fprintf(stderr, "# %s\n", line);
}

static inline bool host_open(struct host *h, const struct neuron_chip_config *config)
{
	static const struct neuron_chip_host ops = {
		.dma_read = host_dma_read,
		.dma_write = host_dma_write,
		.irq = host_irq,
		.log = host_log,
	};
	const char *error = NULL;

	memset(h, 0, sizeof(*h));
	pthread_mutex_init(&h->log_lock, NULL);
	h->mem = calloc(1, HOST_BYTES);
	h->chip = neuron_chip_new(config, &ops, h, &error);
	if (!h->chip) {
		fprintf(stderr, "# neuron_chip_new: %s\n", error);
		return false;
	}
	neuron_chip_bus_master(h->chip, true);
	return true;
}

static inline void host_close(struct host *h)
{
	neuron_chip_free(h->chip);
	free(h->mem);
	pthread_mutex_destroy(&h->log_lock);
}

static inline uint32_t rd(struct host *h, uint64_t offset)
{
	return (uint32_t)neuron_chip_read(h->chip, NEURON_BAR_APB, offset, 4);
}

static inline void wr(struct host *h, uint64_t offset, uint32_t value)
{
	neuron_chip_write(h->chip, NEURON_BAR_APB, offset, value, 4);
}

static inline uint32_t xrd(struct host *h, uint64_t offset)
{
	return (uint32_t)neuron_chip_read(h->chip, NEURON_BAR_EXEC, offset, 4);
}

static inline uint64_t xrd64(struct host *h, uint64_t offset)
{
	return neuron_chip_read(h->chip, NEURON_BAR_EXEC, offset, 8);
}

static inline void xwr(struct host *h, uint64_t offset, uint32_t value)
{
	neuron_chip_write(h->chip, NEURON_BAR_EXEC, offset, value, 4);
}

static inline void xwr64(struct host *h, uint64_t offset, uint64_t value)
{
	neuron_chip_write(h->chip, NEURON_BAR_EXEC, offset, value, 8);
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Waits up to two seconds for a condition. */
#define WAIT_FOR(cond) ({						\
	uint64_t end_ = now_ns() + 2000000000ull;			\
	while (!(cond) && now_ns() < end_)				\
		usleep(100);						\
	(cond); })

/* Bytes that show a wrong place as well as a wrong value. */
static inline uint8_t pattern(uint64_t i)
{
	return (uint8_t)(i * 167 + (i >> 8) * 59 + (i >> 16) * 11);
}

static inline void fill_pattern(uint8_t *p, size_t len, uint64_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = pattern(i + seed);
}

#endif /* TESTS_CHIP_HOST_H */
