// SPDX-License-Identifier: GPL-2.0
/*
 * Page tables: 4 levels of 512 entries, 4 KiB and 2 MiB leaves, in memory that
 * the device reads. Whatever may fail is done by _split and _prepare, which
 * change no translation; the rest cannot fail.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "neuron_vm.h"

#define PTE_PAGE	BIT_ULL(NEURON_PAGE_SHIFT)
#define PTE_HUGE	BIT_ULL(NEURON_HUGE_SHIFT)
#define LEVEL_SHIFT(l)	(NEURON_PAGE_SHIFT + 9 * (l))
#define LEVEL_INDEX(va, l) (((va) >> LEVEL_SHIFT(l)) & (NEURON_PT_ENTRIES - 1))

static struct neuron_pt *neuron_pt_alloc(struct device *dev, unsigned int level)
{
	struct neuron_pt *pt = kzalloc(sizeof(*pt), GFP_KERNEL_ACCOUNT);

	if (!pt)
		return NULL;
	if (level) {
		pt->child = kcalloc(NEURON_PT_ENTRIES, sizeof(*pt->child), GFP_KERNEL_ACCOUNT);
		if (!pt->child)
			goto err;
	}
	pt->entries = dma_alloc_coherent(dev, PAGE_SIZE, &pt->dma, GFP_KERNEL_ACCOUNT);
	if (pt->entries)
		return pt;
	kfree(pt->child);
err:
	kfree(pt);
	return NULL;
}

static void neuron_pt_free(struct device *dev, struct neuron_pt *pt)
{
	dma_free_coherent(dev, PAGE_SIZE, pt->entries, pt->dma);
	kfree(pt->child);
	kfree(pt);
}

/* Depth is bounded by the number of levels. */
static void neuron_pt_free_tree(struct device *dev, struct neuron_pt *pt)
{
	unsigned int i;

	if (pt->child)
		for (i = 0; i < NEURON_PT_ENTRIES; i++)
			if (pt->child[i])
				neuron_pt_free_tree(dev, pt->child[i]);
	neuron_pt_free(dev, pt);
}

int neuron_mmu_init(struct neuron_mmu *mmu, struct device *dev)
{
	INIT_LIST_HEAD(&mmu->dead);
	mmu->dev = dev;
	mmu->root = neuron_pt_alloc(dev, NEURON_PT_LEVELS - 1);
	return mmu->root ? 0 : -ENOMEM;
}

void neuron_mmu_fini(struct neuron_mmu *mmu)
{
	neuron_mmu_free_dead(mmu);
	if (mmu->root)
		neuron_pt_free_tree(mmu->dev, mmu->root);
	mmu->root = NULL;
}

/* Tables that were unlinked before the last invalidation. */
void neuron_mmu_free_dead(struct neuron_mmu *mmu)
{
	struct neuron_pt *pt, *next;

	list_for_each_entry_safe(pt, next, &mmu->dead, node)
		neuron_pt_free(mmu->dev, pt);
	INIT_LIST_HEAD(&mmu->dead);
}

static void neuron_pt_set(struct neuron_pt *pt, unsigned int i, u64 pte)
{
	WRITE_ONCE(pt->entries[i], cpu_to_le64(pte));
}

static struct neuron_pt *neuron_pt_add(struct neuron_mmu *mmu, struct neuron_pt *pt,
				       unsigned int i, unsigned int level)
{
	u64 old = le64_to_cpu(pt->entries[i]);
	struct neuron_pt *child = neuron_pt_alloc(mmu->dev, level);
	unsigned int k;

	if (!child)
		return NULL;
	/* A 2 MiB leaf becomes a table that says the same. */
	if (old & NEURON_PTE_VALID)
		for (k = 0; k < NEURON_PT_ENTRIES; k++)
			neuron_pt_set(child, k, old + k * PTE_PAGE);
	pt->child[i] = child;
	/* The table is filled before the device can find it. */
	dma_wmb();
	neuron_pt_set(pt, i, child->dma | NEURON_PTE_VALID | NEURON_PTE_WRITE);
	return child;
}

/* The table of a level that translates @va; NULL: there is none, or no memory. */
static struct neuron_pt *neuron_mmu_table(struct neuron_mmu *mmu, u64 va, unsigned int level,
					  bool alloc)
{
	struct neuron_pt *pt = mmu->root;
	unsigned int l, i;

	for (l = NEURON_PT_LEVELS - 1; l > level; l--) {
		i = LEVEL_INDEX(va, l);
		if (!pt->child[i] && !(alloc && neuron_pt_add(mmu, pt, i, l - 1)))
			return NULL;
		pt = pt->child[i];
	}
	return pt;
}

/**
 * neuron_mmu_split() - make @va a boundary
 * @mmu: page tables
 * @va: page aligned
 *
 * If a 2 MiB leaf spans it, pages take its place, with the same translation.
 *
 * Return: 0 or -ENOMEM.
 */
int neuron_mmu_split(struct neuron_mmu *mmu, u64 va)
{
	struct neuron_pt *pt = neuron_mmu_table(mmu, va, 1, false);
	unsigned int i = LEVEL_INDEX(va, 1);

	if (IS_ALIGNED(va, PTE_HUGE) || !pt || pt->child[i] ||
	    !(le64_to_cpu(pt->entries[i]) & NEURON_PTE_VALID))
		return 0;
	return neuron_pt_add(mmu, pt, i, 0) ? 0 : -ENOMEM;
}

/* One leaf, or the pages of one table. */
struct neuron_span {
	u64 addr;
	u64 size;
	bool huge;
};

static void neuron_mmu_span(struct neuron_mmu *mmu, const struct neuron_bo *bo, u64 offset,
			    u64 va, u64 size, struct neuron_span *span)
{
	u64 len = min(neuron_bo_seg(bo, offset, &span->addr), size);
	struct neuron_pt *pt;

	span->huge = len >= PTE_HUGE && IS_ALIGNED(va | span->addr, PTE_HUGE);
	if (span->huge) {
		/* A table that is already there stays until somebody unmaps it. */
		pt = neuron_mmu_table(mmu, va, 1, false);
		if (pt && pt->child[LEVEL_INDEX(va, 1)])
			span->huge = false;
	}
	span->size = span->huge ? PTE_HUGE : min(len, PTE_HUGE - (va & (PTE_HUGE - 1)));
}

/**
 * neuron_mmu_prepare() - allocate what neuron_mmu_map() will need
 * @mmu: page tables
 * @bo: pinned
 * @offset: in @bo
 * @va: device virtual address
 * @size: bytes
 *
 * Return: 0 or -ENOMEM; tables that were added stay.
 */
int neuron_mmu_prepare(struct neuron_mmu *mmu, const struct neuron_bo *bo, u64 offset, u64 va,
		       u64 size)
{
	struct neuron_span span;

	while (size) {
		neuron_mmu_span(mmu, bo, offset, va, size, &span);
		if (!neuron_mmu_table(mmu, va, span.huge ? 1 : 0, true))
			return -ENOMEM;
		offset += span.size;
		va += span.size;
		size -= span.size;
	}
	return 0;
}

void neuron_mmu_map(struct neuron_mmu *mmu, const struct neuron_bo *bo, u64 offset, u64 va,
		    u64 size, bool write)
{
	u64 bits = NEURON_PTE_VALID | NEURON_PTE_LEAF | (write ? NEURON_PTE_WRITE : 0);
	struct neuron_span span;
	struct neuron_pt *pt;
	u64 done, i;

	bits |= (neuron_bo_is_host(bo) ? NEURON_PTE_TARGET_HOST : NEURON_PTE_TARGET_HBM) <<
		NEURON_PTE_TARGET_SHIFT;
	while (size) {
		neuron_mmu_span(mmu, bo, offset, va, size, &span);
		pt = neuron_mmu_table(mmu, va, span.huge ? 1 : 0, false);
		if (WARN_ON(!pt))
			return;
		i = LEVEL_INDEX(va, span.huge ? 1 : 0);
		if (span.huge)
			neuron_pt_set(pt, i, span.addr | bits);
		else
			for (done = 0; done < span.size; done += PTE_PAGE)
				neuron_pt_set(pt, i++, (span.addr + done) | bits);
		offset += span.size;
		va += span.size;
		size -= span.size;
	}
}

static void neuron_mmu_unmap_huge(struct neuron_mmu *mmu, struct neuron_pt *pt, u64 va, u64 size,
				  bool prune)
{
	unsigned int i = LEVEL_INDEX(va, 1), k;
	struct neuron_pt *child = pt->child[i];
	bool whole = size == PTE_HUGE;

	if (!child) {
		if (WARN_ON(!whole && le64_to_cpu(pt->entries[i]) & NEURON_PTE_VALID))
			return;
		if (whole)
			neuron_pt_set(pt, i, 0);
		return;
	}
	if (whole && prune) {
		pt->child[i] = NULL;
		neuron_pt_set(pt, i, 0);
		list_add(&child->node, &mmu->dead);
		return;
	}
	k = LEVEL_INDEX(va, 0);
	for (; size; size -= PTE_PAGE)
		neuron_pt_set(child, k++, 0);
}

/**
 * neuron_mmu_unmap() - remove translations
 * @mmu: page tables
 * @va: first byte; neuron_mmu_split() was called for it
 * @size: bytes; and for the end
 * @prune: unlink tables that become empty. Not when something is to be mapped
 *	there, for which neuron_mmu_prepare() counts on them
 *
 * The caller invalidates what the device knows, then calls neuron_mmu_free_dead().
 */
void neuron_mmu_unmap(struct neuron_mmu *mmu, u64 va, u64 size, bool prune)
{
	u64 end = va + size, step, covers;
	struct neuron_pt *pt;
	unsigned int l;

	for (; va < end; va += step) {
		step = min(end - va, PTE_HUGE - (va & (PTE_HUGE - 1)));
		pt = neuron_mmu_table(mmu, va, 1, false);
		if (pt) {
			neuron_mmu_unmap_huge(mmu, pt, va, step, prune);
			continue;
		}
		/* Skip what the absent table would cover. */
		l = neuron_mmu_table(mmu, va, 2, false) ? 2 : 3;
		covers = BIT_ULL(LEVEL_SHIFT(l));
		step = min(end - va, covers - (va & (covers - 1)));
	}
}
