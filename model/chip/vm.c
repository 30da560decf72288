// SPDX-License-Identifier: MIT
/*
 * Page tables of a slot. Only the thread that runs the slot's job walks them, so
 * the TLB needs no lock; INVALIDATE reaches it at the job's safe points (slot.c).
 */
#include <stdlib.h>
#include <string.h>

#include "chip.h"

#define PAGE_SIZE	(1ull << NEURON_PAGE_SHIFT)
#define HUGE_SIZE	(1ull << NEURON_HUGE_SHIFT)
#define TABLE_SHIFT	9
#define LINE_PTES	8	/* entries of a level 0 table read at once */

void chip_vm_flush(struct chip_vm *vm)
{
	memset(vm->small, 0, sizeof(vm->small));
	memset(vm->huge, 0, sizeof(vm->huge));
	vm->table_tag = 0;
}

static struct chip_tlb_entry *small_slot(struct chip_vm *vm, uint64_t va)
{
	return &vm->small[(va >> NEURON_PAGE_SHIFT) % CHIP_TLB_SMALL];
}

static struct chip_tlb_entry *huge_slot(struct chip_vm *vm, uint64_t va)
{
	return &vm->huge[(va >> NEURON_HUGE_SHIFT) % CHIP_TLB_HUGE];
}

static uint64_t pte_target(uint64_t pte)
{
	return (pte & NEURON_PTE_TARGET_MASK) >> NEURON_PTE_TARGET_SHIFT;
}

/* False: not a leaf that maps anything here. */
static bool fill(struct chip_vm *vm, struct chip_tlb_entry *e, uint64_t tag, uint64_t pte, uint64_t size)
{
	uint64_t addr = pte & NEURON_PTE_ADDR_MASK;
	uint8_t *hbm = NULL;

	if (!(pte & NEURON_PTE_VALID) || !(pte & NEURON_PTE_LEAF) || (addr & (size - 1)))
		return false;
	switch (pte_target(pte)) {
	case NEURON_PTE_TARGET_HBM:
		hbm = chip_hbm_at(vm->chip, addr, size);
		if (!hbm)
			return false;
		break;
	case NEURON_PTE_TARGET_HOST:
		break;
	default:
		return false;
	}
	e->tag = tag + 1;
	e->pte = pte;
	e->hbm = hbm;
	return true;
}

static bool read_entries(struct chip_vm *vm, uint64_t addr, uint64_t *entry, unsigned int n)
{
	unsigned int i;

	if (!chip_dma_read(vm->chip, addr, entry, n * sizeof(*entry)))
		return false;
	for (i = 0; i < n; i++)
		entry[i] = le64toh(entry[i]);
	return true;
}

/* Level 0: a line of entries, since accesses mostly go on to the next page. */
static enum neuron_fault walk_small(struct chip_vm *vm, uint64_t va)
{
	uint64_t page = va >> NEURON_PAGE_SHIFT, line[LINE_PTES];
	unsigned int first = page % NEURON_PT_ENTRIES / LINE_PTES * LINE_PTES, i;
	uint64_t base = page - page % LINE_PTES;

	if (!read_entries(vm, vm->table + 8ull * first, line, LINE_PTES))
		return NEURON_FAULT_BUS_ERROR;
	for (i = 0; i < LINE_PTES; i++)
		fill(vm, small_slot(vm, (base + i) << NEURON_PAGE_SHIFT), base + i, line[i], PAGE_SIZE);
	return small_slot(vm, va)->tag == page + 1 ? NEURON_FAULT_NONE : NEURON_FAULT_PAGE_NOT_MAPPED;
}

static enum neuron_fault walk(struct chip_vm *vm, uint64_t va)
{
	uint64_t table = vm->root, pte = 0, region = va >> NEURON_HUGE_SHIFT;
	unsigned int level, index;

	if (vm->table_tag == region + 1)
		return walk_small(vm, va);
	for (level = NEURON_PT_LEVELS - 1; level >= 1; level--) {
		index = (va >> (NEURON_PAGE_SHIFT + TABLE_SHIFT * level)) % NEURON_PT_ENTRIES;
		if (!read_entries(vm, table + 8ull * index, &pte, 1))
			return NEURON_FAULT_BUS_ERROR;
		if (!(pte & NEURON_PTE_VALID))
			return NEURON_FAULT_PAGE_NOT_MAPPED;
		if (pte & NEURON_PTE_LEAF)
			break;
		table = pte & NEURON_PTE_ADDR_MASK;
	}
	if (level > 1)		/* leaves are 2 MiB or 4 KiB */
		return NEURON_FAULT_PAGE_NOT_MAPPED;
	if (level == 1)
		return fill(vm, huge_slot(vm, va), region, pte, HUGE_SIZE) ?
		       NEURON_FAULT_NONE : NEURON_FAULT_PAGE_NOT_MAPPED;
	vm->table = table;
	vm->table_tag = region + 1;
	return walk_small(vm, va);
}

/* The entry of @va; @left: bytes from @va to its end. */
static enum neuron_fault lookup(struct chip_vm *vm, uint64_t va, bool write,
				struct chip_tlb_entry **entry, uint64_t *offset, uint64_t *left)
{
	struct chip_tlb_entry *huge = huge_slot(vm, va), *small = small_slot(vm, va);
	uint64_t size = HUGE_SIZE;
	enum neuron_fault fault;

	if (va >> NEURON_VA_BITS)
		return NEURON_FAULT_PAGE_NOT_MAPPED;
	if (huge->tag != (va >> NEURON_HUGE_SHIFT) + 1 && small->tag != (va >> NEURON_PAGE_SHIFT) + 1) {
		fault = walk(vm, va);
		if (fault)
			return fault;
	}
	*entry = huge;
	if (huge->tag != (va >> NEURON_HUGE_SHIFT) + 1) {
		*entry = small;
		size = PAGE_SIZE;
	}
	if (write && !((*entry)->pte & NEURON_PTE_WRITE))
		return NEURON_FAULT_PAGE_READ_ONLY;
	*offset = va & (size - 1);
	*left = size - *offset;
	return NEURON_FAULT_NONE;
}

static enum neuron_fault access_page(struct chip_vm *vm, const struct chip_tlb_entry *e, uint64_t offset,
				     void *buf, size_t len, bool write, uint64_t *good)
{
	uint64_t bus = (e->pte & NEURON_PTE_ADDR_MASK) + offset;
	bool ok;

	*good = 0;
	if (e->hbm) {
		if (!write) {
			*good = chip_inject_hbm_read(vm->chip, e->hbm + offset, len);
			if (*good < len)
				return NEURON_FAULT_HBM_UE;
		}
		if (write)
			memcpy(e->hbm + offset, buf, len);
		else
			memcpy(buf, e->hbm + offset, len);
		return NEURON_FAULT_NONE;
	}
	ok = write ? chip_dma_write(vm->chip, bus, buf, len) : chip_dma_read(vm->chip, bus, buf, len);
	return ok ? NEURON_FAULT_NONE : NEURON_FAULT_BUS_ERROR;
}

static enum neuron_fault access_all(struct chip_vm *vm, uint64_t va, uint8_t *buf, size_t len,
				    bool write, uint64_t *bad_va)
{
	struct chip_tlb_entry *e;
	enum neuron_fault fault;
	uint64_t offset, left, good = 0;

	while (len) {
		fault = lookup(vm, va, write, &e, &offset, &left);
		if (!fault) {
			if (left > len)
				left = len;
			fault = access_page(vm, e, offset, buf, left, write, &good);
		}
		if (fault) {
			if (bad_va)
				*bad_va = va + good;
			return fault;
		}
		va += left;
		buf += left;
		len -= left;
	}
	return NEURON_FAULT_NONE;
}

enum neuron_fault chip_vm_read(struct chip_vm *vm, uint64_t va, void *buf, size_t len, uint64_t *bad_va)
{
	return access_all(vm, va, buf, len, false, bad_va);
}

enum neuron_fault chip_vm_write(struct chip_vm *vm, uint64_t va, const void *buf, size_t len, uint64_t *bad_va)
{
	return access_all(vm, va, (uint8_t *)buf, len, true, bad_va);
}

void *chip_vm_hbm(struct chip_vm *vm, uint64_t va, bool write, size_t *len)
{
	struct chip_tlb_entry *e;
	uint64_t offset, left, got;
	uint8_t *start;

	if (lookup(vm, va, write, &e, &offset, &left) || !e->hbm)
		return NULL;
	start = e->hbm + offset;
	got = left;
	/* Go on as long as the next page follows in HBM, too. */
	while (got < *len && !lookup(vm, va + got, write, &e, &offset, &left) &&
	       e->hbm && e->hbm + offset == start + got)
		got += left;
	if (*len > got)
		*len = got;
	/* Reads of bad cells go the long way, which reports them. */
	if (!write)
		*len = chip_inject_hbm_clear(vm->chip, start, *len);
	return *len ? start : NULL;
}
