// SPDX-License-Identifier: MIT
/*
 * Memories, semaphores and events of one NeuronCore, and the register side's
 * access to them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core.h"

/* KiB of a partition by NeuronCore version (NKI architecture guides). */
static uint32_t sbuf_kib(unsigned int nc_version)
{
	static const struct {
		unsigned int nc_version;
		uint32_t kib;
	} row[] = {
#define NEURON_ARCH(id, name, product, device, nc, cores, stacks, gib, stride,	\
		    sbuf, bit, lnc, udma, h2t)					\
		{ nc, sbuf },
#include "neuron/arch.def"
#undef NEURON_ARCH
	};
	size_t i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (row[i].nc_version == nc_version)
			return row[i].kib;
	return 0;
}

struct chip_core *chip_core_new(unsigned int nc_version)
{
	struct core_mem *sbuf, *psum;
	struct chip_core *core;
	uint32_t kib = sbuf_kib(nc_version);

	if (!kib)
		return NULL;
	core = calloc(1, sizeof(*core));
	if (!core)
		return NULL;
	core->nc_version = nc_version;
	sbuf = &core->mem[NEURON_SPACE_SBUF];
	psum = &core->mem[NEURON_SPACE_PSUM];
	sbuf->bytes = kib * 1024;
	psum->bytes = CORE_PSUM_BYTES;
	sbuf->stride = sbuf->bytes + 5 * 64;
	psum->stride = psum->bytes + 5 * 64;
	core->map_bytes = (sbuf->stride + psum->stride) * NEURON_PARTITIONS;
	core->map = mmap(NULL, core->map_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (core->map == MAP_FAILED) {
		free(core);
		return NULL;
	}
	sbuf->base = core->map;
	psum->base = sbuf->base + sbuf->stride * NEURON_PARTITIONS;
	pthread_mutex_init(&core->lock, NULL);
	return core;
}

void chip_core_free(struct chip_core *core)
{
	if (!core)
		return;
	exec_free(core->exec);
	check_free(core->check);
	munmap(core->map, core->map_bytes);
	pthread_mutex_destroy(&core->lock);
	free(core);
}

static void clear_sync(struct chip_core *core)
{
	unsigned int i;

	for (i = 0; i < NEURON_SEMAPHORES; i++)
		atomic_store_explicit(&core->sem[i], 0, memory_order_relaxed);
	for (i = 0; i < NEURON_EVENTS; i++)
		atomic_store_explicit(&core->event[i], 0, memory_order_relaxed);
}

void chip_core_reset(struct chip_core *core)
{
	clear_sync(core);
	chip_core_new_owner(core);
}

void chip_core_new_owner(struct chip_core *core)
{
	struct core_mem *sbuf = &core->mem[NEURON_SPACE_SBUF];
	struct core_mem *psum = &core->mem[NEURON_SPACE_PSUM];
	unsigned int c;

	pthread_mutex_lock(&core->lock);
	if (atomic_load(&core->epoch) == UINT32_MAX) {
		/* Start again at 1, which no column may still carry. */
		memset(core->map, 0, core->map_bytes);
		for (c = 0; c < CORE_COLUMNS_MAX; c++) {
			atomic_store(&sbuf->epoch[c], 0);
			atomic_store(&psum->epoch[c], 0);
		}
		atomic_store(&core->epoch, 0);
	}
	atomic_fetch_add(&core->epoch, 1);
	pthread_mutex_unlock(&core->lock);
}

void core_mem_refresh(struct chip_core *core, struct core_mem *mem, uint32_t lo, uint32_t hi)
{
	uint32_t c, last = (hi - 1) >> CORE_COLUMN_SHIFT;
	uint32_t epoch;
	unsigned int p;

	pthread_mutex_lock(&core->lock);
	epoch = atomic_load(&core->epoch);
	for (c = lo >> CORE_COLUMN_SHIFT; c <= last; c++) {
		if (atomic_load(&mem->epoch[c]) == epoch)
			continue;
		for (p = 0; p < NEURON_PARTITIONS; p++)
			memset(mem->base + p * mem->stride + ((size_t)c << CORE_COLUMN_SHIFT),
			       0, 1u << CORE_COLUMN_SHIFT);
		atomic_store_explicit(&mem->epoch[c], epoch, memory_order_release);
	}
	pthread_mutex_unlock(&core->lock);
}

/*
 * One piece of an aperture access that stays in one partition. False: @offset is
 * outside.
 */
static uint8_t *aperture(struct chip_core *core, uint64_t offset, size_t *len)
{
	struct core_mem *sbuf = &core->mem[NEURON_SPACE_SBUF];
	uint64_t part = offset / CORE_SBUF_APERTURE_STRIDE;
	uint32_t byte = offset % CORE_SBUF_APERTURE_STRIDE;

	if (part >= NEURON_PARTITIONS || byte >= sbuf->bytes)
		return NULL;
	if (*len > sbuf->bytes - byte)
		*len = sbuf->bytes - byte;
	core_mem_validate(core, sbuf, byte, byte + *len);
	return sbuf->base + part * sbuf->stride + byte;
}

bool chip_core_sbuf_read(struct chip_core *core, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	while (len) {
		size_t n = len;
		uint8_t *from = aperture(core, offset, &n);

		if (!from)
			return false;
		memcpy(to, from, n);
		to += n;
		offset += n;
		len -= n;
	}
	return true;
}

bool chip_core_sbuf_write(struct chip_core *core, uint64_t offset, const void *buf, size_t len)
{
	const uint8_t *from = buf;

	while (len) {
		size_t n = len;
		uint8_t *to = aperture(core, offset, &n);

		if (!to)
			return false;
		memcpy(to, from, n);
		from += n;
		offset += n;
		len -= n;
	}
	return true;
}

uint32_t chip_core_sem_get(struct chip_core *core, unsigned int n)
{
	return n < NEURON_SEMAPHORES ? atomic_load(&core->sem[n]) : 0;
}

void chip_core_sem_set(struct chip_core *core, unsigned int n, uint32_t value)
{
	if (n < NEURON_SEMAPHORES)
		atomic_store(&core->sem[n], value);
}

void chip_core_sem_add(struct chip_core *core, unsigned int n, int64_t delta)
{
	uint32_t old, value;

	if (n >= NEURON_SEMAPHORES)
		return;
	/* 32-bit steps are what the registers can say; more saturates anyway. */
	if (delta > UINT32_MAX)
		delta = UINT32_MAX;
	if (delta < -(int64_t)UINT32_MAX)
		delta = -(int64_t)UINT32_MAX;
	old = atomic_load(&core->sem[n]);
	do {
		int64_t sum = (int64_t)old + delta;

		value = sum < 0 ? 0 : sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
	} while (!atomic_compare_exchange_weak(&core->sem[n], &old, value));
}

uint32_t chip_core_event_get(struct chip_core *core, unsigned int n)
{
	return n < NEURON_EVENTS ? atomic_load(&core->event[n]) : 0;
}

void chip_core_event_set(struct chip_core *core, unsigned int n, uint32_t value)
{
	if (n < NEURON_EVENTS)
		atomic_store(&core->event[n], value);
}
