// SPDX-License-Identifier: MIT
/* Memory and address spaces of an in-process chip. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

#define TABLES_PER_CHUNK	(SIM_HUGE / SIM_PAGE)
#define VA_START		0x10000ull
#define VA_END			(1ull << (NEURON_VA_BITS - 1))
#define VA_GUARD		0x10000ull	/* unmapped bytes behind every object */
#define MEMSET_MAX		(64ull << 10)	/* larger frees give pages back to the host */

/* --- page tables ---------------------------------------------------------------- */

static unsigned int table_index(uint64_t va, unsigned int level)
{
	return (va >> (NEURON_PAGE_SHIFT + 9 * level)) % NEURON_PT_ENTRIES;
}

/* A zeroed table. Tables live as long as the address space. */
static int new_table(struct sim_dev *dev, uint64_t *bus)
{
	struct sim_vm *vm = &dev->vm;
	struct sim_region **grown, *chunk;
	int ret;

	if (vm->next_table == TABLES_PER_CHUNK) {
		grown = realloc(vm->chunk, (vm->chunks + 1) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		vm->chunk = grown;
		ret = sim_bus_alloc(&dev->chip->bus, SIM_HUGE, &chunk);
		if (ret)
			return ret;
		vm->chunk[vm->chunks++] = chunk;
		vm->next_table = 0;
	}
	*bus = vm->chunk[vm->chunks - 1]->bus + SIM_PAGE * vm->next_table++;
	return 0;
}

static uint64_t get_pte(const uint64_t *pte)
{
	return __atomic_load_n(pte, __ATOMIC_RELAXED);
}

/* The chip walks the tables meanwhile. */
static void set_pte(uint64_t *pte, uint64_t value)
{
	__atomic_store_n(pte, value, __ATOMIC_RELEASE);
}

/* The table at @level that covers @va; NULL and @ret 0: there is none. */
static uint64_t *table_at(struct sim_dev *dev, uint64_t va, unsigned int level, bool make, int *ret)
{
	uint64_t *table = (uint64_t *)dev->vm.root->ptr, *pte, bus;
	unsigned int l;

	*ret = 0;
	for (l = NEURON_PT_LEVELS - 1; l > level; l--) {
		pte = &table[table_index(va, l)];
		if (get_pte(pte) & NEURON_PTE_LEAF)
			return NULL;
		if (!(get_pte(pte) & NEURON_PTE_VALID)) {
			if (!make)
				return NULL;
			*ret = new_table(dev, &bus);
			if (*ret)
				return NULL;
			set_pte(pte, bus | NEURON_PTE_VALID | NEURON_PTE_WRITE);
		}
		table = sim_bus_ptr(&dev->chip->bus, get_pte(pte) & NEURON_PTE_ADDR_MASK);
	}
	return table;
}

/* @va has a table of 4 KiB entries from an earlier mapping; they are all clear. */
static bool has_small_table(struct sim_dev *dev, uint64_t va)
{
	uint64_t *table;
	int ret;

	table = table_at(dev, va, 1, false, &ret);
	return table && (get_pte(&table[table_index(va, 1)]) & NEURON_PTE_VALID);
}

static int map_range(struct sim_dev *dev, uint64_t va, uint64_t addr, uint64_t size,
		     uint64_t target)
{
	uint64_t bits = NEURON_PTE_VALID | NEURON_PTE_WRITE | NEURON_PTE_LEAF |
			target << NEURON_PTE_TARGET_SHIFT;
	uint64_t *table, step;
	unsigned int level;
	int ret;

	while (size) {
		level = 0;
		if (!((va | addr) & (SIM_HUGE - 1)) && size >= SIM_HUGE &&
		    !has_small_table(dev, va))
			level = 1;
		step = level ? SIM_HUGE : SIM_PAGE;
		table = table_at(dev, va, level, true, &ret);
		if (!table)
			return ret;
		set_pte(&table[table_index(va, level)], addr | bits);
		va += step;
		addr += step;
		size -= step;
	}
	return 0;
}

static void invalidate_slot(struct neuron_chip *chip, uint64_t slot, uint64_t va, uint64_t size)
{
	neuron_chip_write(chip, NEURON_BAR_EXEC, slot + NEURON_SLOT_INV_VA, (uint32_t)va, 4);
	neuron_chip_write(chip, NEURON_BAR_EXEC, slot + NEURON_SLOT_INV_VA + 4, va >> 32, 4);
	neuron_chip_write(chip, NEURON_BAR_EXEC, slot + NEURON_SLOT_INV_SIZE, (uint32_t)size, 4);
	neuron_chip_write(chip, NEURON_BAR_EXEC, slot + NEURON_SLOT_INV_SIZE + 4, size >> 32, 4);
	neuron_chip_write(chip, NEURON_BAR_EXEC, slot + NEURON_SLOT_INV, 1, 4);
	while (neuron_chip_read(chip, NEURON_BAR_EXEC, slot + NEURON_SLOT_INV, 4) & 1)
		sched_yield();
}

/* An access that began with the old translation has ended when this returns. */
static void invalidate(struct sim_dev *dev, uint64_t va, uint64_t size)
{
	struct sim_chip *chip = dev->chip;
	uint64_t used = 0;
	unsigned int i;

	pthread_mutex_lock(&chip->slots_lock);
	for (i = 0; i < chip->slots; i++)
		if (chip->slot[i])
			used |= 1ull << i;
	pthread_mutex_unlock(&chip->slots_lock);
	for (; used; used &= used - 1)
		invalidate_slot(chip->chip, NEURON_EXEC_SLOT(__builtin_ctzll(used)), va, size);
}

static void unmap_range(struct sim_dev *dev, uint64_t va, uint64_t size)
{
	uint64_t at = va, end = va + size, *table;
	int ret;

	while (at < end) {
		table = table_at(dev, at, 1, false, &ret);
		if (table && (get_pte(&table[table_index(at, 1)]) & NEURON_PTE_LEAF)) {
			set_pte(&table[table_index(at, 1)], 0);
			at = (at | (SIM_HUGE - 1)) + 1;
			continue;
		}
		table = table ? table_at(dev, at, 0, false, &ret) : NULL;
		if (!table) {
			at = (at | (SIM_HUGE - 1)) + 1;
			continue;
		}
		set_pte(&table[table_index(at, 0)], 0);
		at += SIM_PAGE;
	}
	invalidate(dev, va, size);
}

int sim_vm_init(struct sim_dev *dev)
{
	int ret;

	dev->vm.next_table = TABLES_PER_CHUNK;
	ret = sim_ranges_init(&dev->vm.va, VA_START, VA_END - VA_START);
	if (ret)
		return ret;
	return sim_bus_alloc(&dev->chip->bus, SIM_PAGE, &dev->vm.root);
}

void sim_vm_fini(struct sim_dev *dev)
{
	size_t i;

	for (i = 0; i < dev->vm.chunks; i++)
		sim_bus_free(&dev->chip->bus, dev->vm.chunk[i]);
	free(dev->vm.chunk);
	sim_bus_free(&dev->chip->bus, dev->vm.root);
	sim_ranges_fini(&dev->vm.va);
}

/* --- buffer objects ---------------------------------------------------------------- */

static uint8_t *hbm_ptr(struct sim_chip *chip, unsigned int stack, uint64_t offset)
{
	return (uint8_t *)neuron_chip_hbm(chip->chip, stack) + offset;
}

/* Free HBM is always zero, so that no object shows another's bytes. */
static void give_extent(struct sim_chip *chip, const struct sim_extent *e)
{
	uint8_t *ptr = hbm_ptr(chip, e->stack, e->offset);

	if (e->size <= MEMSET_MAX || madvise(ptr, e->size, MADV_DONTNEED))
		memset(ptr, 0, e->size);
	sim_ranges_give(&chip->stack[e->stack], e->offset, e->size);
}

static int add_extent(struct sim_bo *bo, unsigned int stack, uint64_t offset, uint64_t size)
{
	struct sim_extent *grown = realloc(bo->extent, (bo->extents + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	bo->extent = grown;
	bo->extent[bo->extents++] = (struct sim_extent){ stack, offset, size };
	return 0;
}

/* Pieces, when no hole is large enough: page tables hide it. */
static int take_pieces(struct sim_chip *chip, struct sim_bo *bo, unsigned int stack)
{
	uint64_t left = bo->base.size;
	struct sim_range got;
	int ret;

	while (left) {
		ret = sim_ranges_take_largest(&chip->stack[stack], left, &got);
		if (!ret) {
			ret = add_extent(bo, stack, got.start, got.size);
			if (ret)
				sim_ranges_give(&chip->stack[stack], got.start, got.size);
		}
		if (ret)
			return ret;
		left -= got.size;
	}
	return 0;
}

static int take_from_stack(struct sim_chip *chip, struct sim_bo *bo, unsigned int stack)
{
	uint64_t size = bo->base.size, offset;
	struct sim_ranges *ranges = &chip->stack[stack];
	int ret;

	if (size > ranges->free_bytes)
		return -ENOSPC;
	ret = sim_ranges_take(ranges, size, size >= SIM_HUGE ? SIM_HUGE : SIM_HBM_UNIT, 0, &offset);
	if (ret == -ENOSPC)
		return take_pieces(chip, bo, stack);
	if (ret)
		return ret;
	ret = add_extent(bo, stack, offset, size);
	if (ret)
		sim_ranges_give(ranges, offset, size);
	return ret;
}

/* Stacks of @mask in order of free space. Lock held. */
static int take_hbm(struct sim_chip *chip, struct sim_bo *bo, uint32_t mask)
{
	int ret = -ENOSPC;

	while (mask && ret == -ENOSPC) {
		unsigned int best = __builtin_ctz(mask), i;

		for (i = best + 1; i < chip->arch->hbm_stacks; i++)
			if ((mask >> i & 1) &&
			    chip->stack[i].free_bytes > chip->stack[best].free_bytes)
				best = i;
		mask &= ~(1u << best);
		bo->base.stack = best;
		ret = take_from_stack(chip, bo, best);
	}
	return ret;
}

/* Lock held. The VA has the offset in a huge page that the memory has. */
static int map_bo(struct sim_dev *dev, struct sim_bo *bo)
{
	uint64_t stride = dev->chip->arch->stack_stride, align = SIM_HBM_UNIT, va;
	unsigned int i;
	int ret;

	if (bo->base.size >= SIM_HUGE)
		align = SIM_HUGE;
	bo->va_size = bo->base.size + VA_GUARD;
	ret = sim_ranges_take(&dev->vm.va, bo->va_size, align, 0, &bo->va_start);
	if (ret) {
		bo->va_size = 0;
		return ret;
	}
	bo->base.va = va = bo->va_start;
	if (bo->region)
		return map_range(dev, va, bo->region->bus, bo->base.size, NEURON_PTE_TARGET_HOST);
	for (i = 0; i < bo->extents && !ret; i++) {
		struct sim_extent *e = &bo->extent[i];

		ret = map_range(dev, va, e->stack * stride + e->offset, e->size,
				NEURON_PTE_TARGET_HBM);
		va += e->size;
	}
	return ret;
}

void sim_bo_free(struct dev_bo *base)
{
	struct sim_dev *dev;
	struct sim_bo *bo;
	unsigned int i;

	if (!base)
		return;
	bo = to_sim_bo(base);
	dev = to_sim_dev(base->dev);
	pthread_mutex_lock(&dev->chip->lock);
	if (bo->va_size) {
		unmap_range(dev, bo->va_start, base->size);
		sim_ranges_give(&dev->vm.va, bo->va_start, bo->va_size);
	}
	for (i = 0; i < bo->extents; i++)
		give_extent(dev->chip, &bo->extent[i]);
	pthread_mutex_unlock(&dev->chip->lock);
	sim_bus_free(&dev->chip->bus, bo->region);
	free(bo->extent);
	free(bo);
}

int sim_bo_alloc(struct dev *base, size_t size, enum dev_mem mem, uint32_t stack_mask,
		 struct dev_bo **out)
{
	struct sim_dev *dev = to_sim_dev(base);
	uint32_t all = (1u << dev->chip->arch->hbm_stacks) - 1;
	uint64_t unit = mem == DEV_MEM_HBM ? SIM_HBM_UNIT : SIM_PAGE;
	struct sim_bo *bo;
	int ret;

	if (!size || (mem != DEV_MEM_HBM && mem != DEV_MEM_HOST) || (stack_mask & ~all) ||
	    (mem == DEV_MEM_HOST && stack_mask))
		return -EINVAL;
	if (size > VA_END / 2)
		return mem == DEV_MEM_HBM ? -ENOSPC : -ENOMEM;
	bo = calloc(1, sizeof(*bo));
	if (!bo)
		return -ENOMEM;
	bo->base.dev = base;
	bo->base.mem = mem;
	bo->base.size = (size + unit - 1) & ~(unit - 1);
	if (mem == DEV_MEM_HOST) {
		ret = sim_bus_alloc(&dev->chip->bus, bo->base.size, &bo->region);
		if (ret) {
			free(bo);
			return ret;
		}
	}
	pthread_mutex_lock(&dev->chip->lock);
	ret = mem == DEV_MEM_HBM ? take_hbm(dev->chip, bo, stack_mask ? stack_mask : all) : 0;
	if (!ret)
		ret = map_bo(dev, bo);
	pthread_mutex_unlock(&dev->chip->lock);
	if (ret) {
		sim_bo_free(&bo->base);
		return ret;
	}
	*out = &bo->base;
	return 0;
}

/* HBM in one piece is seen directly, as through BAR4. */
int sim_bo_map(struct dev_bo *base)
{
	struct sim_bo *bo = to_sim_bo(base);
	struct sim_chip *chip = to_sim_dev(base->dev)->chip;

	if (bo->region) {
		base->cpu = bo->region->ptr;
		return 0;
	}
	if (bo->extents != 1)
		return -EOPNOTSUPP;
	base->cpu = hbm_ptr(chip, bo->extent[0].stack, bo->extent[0].offset);
	return 0;
}
