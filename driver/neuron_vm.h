/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NEURON_VM_H
#define NEURON_VM_H

#include <drm/drm_gpuvm.h>

#include "neuron_device.h"
#include "neuron_gem.h"

/**
 * struct neuron_pt - one page table, 4 KiB in memory the device reads
 * @entries: what the device sees
 * @dma: bus address
 * @child: tables below, by entry; NULL at level 0
 * @node: while it waits for an invalidation
 */
struct neuron_pt {
	__le64 *entries;
	dma_addr_t dma;
	struct neuron_pt **child;
	struct list_head node;
};

/**
 * struct neuron_mmu - page tables of an address space
 * @dev: for the DMA API
 * @root: level 3
 * @dead: tables that are linked no more, but that the device may still walk
 */
struct neuron_mmu {
	struct device *dev;
	struct neuron_pt *root;
	struct list_head dead;
};

int neuron_mmu_init(struct neuron_mmu *mmu, struct device *dev);
void neuron_mmu_fini(struct neuron_mmu *mmu);
int neuron_mmu_split(struct neuron_mmu *mmu, u64 va);
int neuron_mmu_prepare(struct neuron_mmu *mmu, const struct neuron_bo *bo, u64 offset, u64 va,
		       u64 size);
void neuron_mmu_map(struct neuron_mmu *mmu, const struct neuron_bo *bo, u64 offset, u64 va,
		    u64 size, bool write);
void neuron_mmu_unmap(struct neuron_mmu *mmu, u64 va, u64 size, bool prune);
void neuron_mmu_free_dead(struct neuron_mmu *mmu);

/* struct neuron_vma - a mapping */
struct neuron_vma {
	struct drm_gpuva base;
	bool readonly;
	struct list_head node;
};

/**
 * struct neuron_vm - a device address space
 * @base: mappings
 * @users: file, contexts, ioctls; @base is also referenced by the mappings
 * @ndev: chip
 * @node: in neuron_device.vms
 * @lock: protects all that follows, and serialises changes
 * @mmu: page tables
 * @ctxs: contexts with a slot that uses them
 * @dead: no page tables any more
 */
struct neuron_vm {
	struct drm_gpuvm base;
	struct kref users;
	struct neuron_device *ndev;
	struct list_head node;
	struct mutex lock; /* see above */
	struct neuron_mmu mmu;
	struct list_head ctxs;
	bool dead;
};

static inline struct neuron_vm *to_neuron_vm(struct drm_gpuvm *base)
{
	return container_of(base, struct neuron_vm, base);
}

struct neuron_vm *neuron_vm_lookup(struct neuron_file *nf, u32 id);
void neuron_vm_put(struct neuron_vm *vm);
void neuron_vm_kill_all(struct neuron_device *ndev);

int neuron_ioctl_vm_create(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_vm_destroy(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_vm_bind(struct drm_device *dev, void *data, struct drm_file *file);

/* An array from user space, each element copied once (neuron_vm.c). */
void *neuron_copy_array(const struct drm_neuron_obj_array *in, size_t size, size_t min_size,
			u32 max);

#endif /* NEURON_VM_H */
