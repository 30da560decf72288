// SPDX-License-Identifier: MIT
/*
 * The bus of an in-process chip. Only memory registered here can be reached:
 * rings, page tables, host BOs and the user memory of copies under way. All
 * other addresses are a bus error, so that no program of a guest can touch
 * anything else in this process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

/* 2^42 bytes: below the host bit of every generation. */
#define BUS_BITS	42
#define BUS_SLOTS	(1ull << (BUS_BITS - NEURON_HUGE_SHIFT))

int sim_bus_init(struct sim_bus *bus)
{
	int ret;

	bus->slot = mmap(NULL, BUS_SLOTS * sizeof(*bus->slot), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bus->slot == MAP_FAILED)
		return -ENOMEM;
	/* Address 0 stays invalid. */
	ret = sim_ranges_init(&bus->ranges, SIM_HUGE, (1ull << BUS_BITS) - SIM_HUGE);
	if (ret) {
		munmap(bus->slot, BUS_SLOTS * sizeof(*bus->slot));
		return ret;
	}
	pthread_rwlock_init(&bus->lock, NULL);
	return 0;
}

void sim_bus_fini(struct sim_bus *bus)
{
	pthread_rwlock_destroy(&bus->lock);
	sim_ranges_fini(&bus->ranges);
	munmap(bus->slot, BUS_SLOTS * sizeof(*bus->slot));
}

static uint64_t slots_of(const struct sim_region *region)
{
	uint64_t in_slot = region->bus & (SIM_HUGE - 1);

	return (in_slot + region->size + SIM_HUGE - 1) >> NEURON_HUGE_SHIFT;
}

int sim_bus_add(struct sim_bus *bus, void *ptr, size_t size, bool writable,
		struct sim_region **out)
{
	struct sim_region *region = malloc(sizeof(*region));
	uint64_t start, slots, i;
	int ret;

	if (!region)
		return -ENOMEM;
	*region = (struct sim_region){ (uintptr_t)ptr & (SIM_PAGE - 1), ptr, size, writable };
	if (size > (1ull << BUS_BITS)) {
		free(region);
		return -ENOSPC;
	}
	slots = slots_of(region);
	pthread_rwlock_wrlock(&bus->lock);
	ret = sim_ranges_take(&bus->ranges, slots << NEURON_HUGE_SHIFT, SIM_HUGE, 0, &start);
	if (!ret) {
		region->bus += start;
		for (i = 0; i < slots; i++)
			bus->slot[(start >> NEURON_HUGE_SHIFT) + i] = region;
	}
	pthread_rwlock_unlock(&bus->lock);
	if (ret) {
		free(region);
		return ret;
	}
	*out = region;
	return 0;
}

void sim_bus_remove(struct sim_bus *bus, struct sim_region *region)
{
	uint64_t first, slots, i;

	if (!region)
		return;
	first = region->bus >> NEURON_HUGE_SHIFT;
	slots = slots_of(region);
	pthread_rwlock_wrlock(&bus->lock);
	for (i = 0; i < slots; i++)
		bus->slot[first + i] = NULL;
	sim_ranges_give(&bus->ranges, first << NEURON_HUGE_SHIFT, slots << NEURON_HUGE_SHIFT);
	pthread_rwlock_unlock(&bus->lock);
	free(region);
}

/* Lock held. NULL unless all of [addr, addr + len) is one region's. */
static uint8_t *find(struct sim_bus *bus, uint64_t addr, size_t len, bool write)
{
	struct sim_region *region;
	uint64_t offset;

	if (addr >> BUS_BITS)
		return NULL;
	region = bus->slot[addr >> NEURON_HUGE_SHIFT];
	if (!region || addr < region->bus || (write && !region->writable))
		return NULL;
	offset = addr - region->bus;
	if (offset > region->size || len > region->size - offset)
		return NULL;
	return region->ptr + offset;
}

/*
 * Short accesses go by aligned words and each word is atomic, as on a bus:
 * page-table entries, phase words and fences are shared with running CPUs.
 */
#define WORD_BYTES	128

static void copy_in(void *buf, const uint8_t *src, size_t len)
{
	uint8_t *dst = buf;
	uint64_t v64;
	uint32_t v32;

	if (len > WORD_BYTES || ((uintptr_t)src | len) & 3) {
		memcpy(buf, src, len);
		return;
	}
	while (len) {
		if (len >= 8 && !((uintptr_t)src & 7)) {
			v64 = __atomic_load_n((const uint64_t *)src, __ATOMIC_ACQUIRE);
			memcpy(dst, &v64, 8);
			src += 8, dst += 8, len -= 8;
		} else {
			v32 = __atomic_load_n((const uint32_t *)src, __ATOMIC_ACQUIRE);
			memcpy(dst, &v32, 4);
			src += 4, dst += 4, len -= 4;
		}
	}
}

static void copy_out(uint8_t *dst, const void *buf, size_t len)
{
	const uint8_t *src = buf;
	uint64_t v64;
	uint32_t v32;

	if (len > WORD_BYTES || ((uintptr_t)dst | len) & 3) {
		memcpy(dst, buf, len);
		return;
	}
	while (len) {
		if (len >= 8 && !((uintptr_t)dst & 7)) {
			memcpy(&v64, src, 8);
			__atomic_store_n((uint64_t *)dst, v64, __ATOMIC_RELEASE);
			src += 8, dst += 8, len -= 8;
		} else {
			memcpy(&v32, src, 4);
			__atomic_store_n((uint32_t *)dst, v32, __ATOMIC_RELEASE);
			src += 4, dst += 4, len -= 4;
		}
	}
}

int sim_bus_read(struct sim_bus *bus, uint64_t addr, void *buf, size_t len)
{
	const uint8_t *src;

	pthread_rwlock_rdlock(&bus->lock);
	src = find(bus, addr, len, false);
	if (src)
		copy_in(buf, src, len);
	pthread_rwlock_unlock(&bus->lock);
	return src ? 0 : -1;
}

int sim_bus_write(struct sim_bus *bus, uint64_t addr, const void *buf, size_t len)
{
	uint8_t *dst;

	pthread_rwlock_rdlock(&bus->lock);
	dst = find(bus, addr, len, true);
	if (dst)
		copy_out(dst, buf, len);
	pthread_rwlock_unlock(&bus->lock);
	return dst ? 0 : -1;
}

void *sim_bus_ptr(struct sim_bus *bus, uint64_t addr)
{
	void *ptr;

	pthread_rwlock_rdlock(&bus->lock);
	ptr = find(bus, addr, 1, false);
	pthread_rwlock_unlock(&bus->lock);
	return ptr;
}

int sim_bus_alloc(struct sim_bus *bus, size_t size, struct sim_region **region)
{
	void *ptr;
	int ret;

	size = (size + SIM_PAGE - 1) & ~(SIM_PAGE - 1);
	ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ptr == MAP_FAILED)
		return -ENOMEM;
	ret = sim_bus_add(bus, ptr, size, true, region);
	if (ret)
		munmap(ptr, size);
	return ret;
}

void sim_bus_free(struct sim_bus *bus, struct sim_region *region)
{
	uint8_t *ptr;
	size_t size;

	if (!region)
		return;
	ptr = region->ptr;
	size = region->size;
	sim_bus_remove(bus, region);
	munmap(ptr, size);
}
