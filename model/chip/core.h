/* SPDX-License-Identifier: MIT */
/*
 * One NeuronCore's memories. Private to the part below the seam (exec.h).
 */
#ifndef NEURON_CHIP_CORE_H
#define NEURON_CHIP_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec.h"
#include "neuron/isa.h"

/*
 * Distance of two partitions in the SBUF aperture. The public address map says
 * partition-major and no more; assumed: room for the largest generation, so that
 * offsets are the same on all. Bytes above a partition's end are outside.
 */
#define CORE_SBUF_APERTURE_STRIDE	0x40000u
#define CORE_PSUM_BYTES			(NEURON_PSUM_BANKS * NEURON_PSUM_BANK_BYTES)

/* Columns of this many bytes of all partitions are zeroed together. */
#define CORE_COLUMN_SHIFT		10
#define CORE_COLUMNS_MAX		(0x40000 >> CORE_COLUMN_SHIFT)

struct exec;
struct check;

/**
 * struct core_mem - SBUF or PSUM
 * @base: first byte of partition 0
 * @stride: host bytes from a partition to the next. Not a power of two, else all
 *	partitions of a column would meet in the same cache sets
 * @bytes: of a partition
 * @epoch: by column: value of chip_core.epoch when its bytes were last made valid
 */
struct core_mem {
	uint8_t *base;
	size_t stride;
	uint32_t bytes;
	_Atomic uint32_t epoch[CORE_COLUMNS_MAX];
};

/**
 * struct chip_core - see exec.h
 * @nc_version: 2, 3 or 4
 * @mem: by enum neuron_space, SBUF and PSUM in use
 * @epoch: a column with another value reads as zero
 * @lock: held while a column is zeroed and while @epoch changes
 * @sem: semaphores; the executor and register accesses of the host may meet
 * @event: events
 * @exec: executor state, kept from job to job; of the job whose core 0 this is
 * @check: strict-mode state, made by the first strict job
 * @map: the mapping behind @mem
 * @map_bytes: its size
 */
struct chip_core {
	unsigned int nc_version;
	struct core_mem mem[3];
	_Atomic uint32_t epoch;
	pthread_mutex_t lock;
	_Atomic uint32_t sem[NEURON_SEMAPHORES];
	_Atomic uint32_t event[NEURON_EVENTS];
	struct exec *exec;
	struct check *check;
	void *map;
	size_t map_bytes;
};

void core_mem_refresh(struct chip_core *core, struct core_mem *mem, uint32_t lo, uint32_t hi);

/* Makes bytes [lo, hi) of all partitions readable: zero when the owner changed. */
static inline void core_mem_validate(struct chip_core *core, struct core_mem *mem,
				     uint32_t lo, uint32_t hi)
{
	uint32_t epoch = atomic_load_explicit(&core->epoch, memory_order_relaxed);
	uint32_t c, last = (hi - 1) >> CORE_COLUMN_SHIFT;

	for (c = lo >> CORE_COLUMN_SHIFT; c <= last; c++) {
		if (atomic_load_explicit(&mem->epoch[c], memory_order_acquire) != epoch) {
			core_mem_refresh(core, mem, lo, hi);
			return;
		}
	}
}

/* Below the seam; freed with the core. */
void exec_free(struct exec *exec);
void check_free(struct check *check);

#endif /* NEURON_CHIP_CORE_H */
