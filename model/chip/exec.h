/* SPDX-License-Identifier: MIT */
/*
 * The seam inside the chip model. Above it (slot.c, arbiter.c, vm.c, ...):
 * registers, rings, page tables, who runs where. Below it (core*.c, exec*.c,
 * insn_*.c, timing.c, check.c): what a job does once it has its cores.
 */
#ifndef NEURON_CHIP_EXEC_H
#define NEURON_CHIP_EXEC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron/regs.h"

struct chip_core;	/* SBUF, PSUM, semaphores, events of one core; below the seam */
struct chip_vm;		/* one slot's address space; above the seam */

/* --- below the seam, called from above ------------------------------------ */

/* NULL when out of memory. nc_version 2, 3 or 4. */
struct chip_core *chip_core_new(unsigned int nc_version);
void chip_core_free(struct chip_core *core);
/* Reset of the core: semaphores, events, registers; on-chip memory is unreadable. */
void chip_core_reset(struct chip_core *core);
/* Another owner gets the core: drop the validity map, all memory reads zero. */
void chip_core_new_owner(struct chip_core *core);
/*
 * Register-side access (BAR0 aperture, UDMA) to SBUF at partition-major byte
 * offsets of the SBUF aperture, and to semaphores and events. False: outside.
 */
bool chip_core_sbuf_read(struct chip_core *core, uint64_t offset, void *buf, size_t len);
bool chip_core_sbuf_write(struct chip_core *core, uint64_t offset, const void *buf, size_t len);
uint32_t chip_core_sem_get(struct chip_core *core, unsigned int n);
void chip_core_sem_set(struct chip_core *core, unsigned int n, uint32_t value);
/* Saturating at 0 and 2^32 - 1 when software does it (unspecified publicly). */
void chip_core_sem_add(struct chip_core *core, unsigned int n, int64_t delta);
uint32_t chip_core_event_get(struct chip_core *core, unsigned int n);
void chip_core_event_set(struct chip_core *core, unsigned int n, uint32_t value);

struct chip_job;

/**
 * struct chip_notify - what a NOTIFY instruction posts
 * @core: program core number
 * @engine: enum neuron_engine
 * @queue: notification queue, below NEURON_NOTIFY_QUEUES
 * @value: the user's
 * @pc: word index in the stream
 * @debug_id: line table index
 * @ticks: modelled time
 */
struct chip_notify {
	uint8_t core;
	uint8_t engine;
	uint8_t queue;
	uint32_t value;
	uint32_t pc;
	uint32_t debug_id;
	uint64_t ticks;
};

/**
 * struct chip_job - a job that has its cores
 * @desc: the ring entry, copied once, fields checked for reserved bits only
 * @vm: address space of the slot
 * @core: cores by program core number
 * @core_count: entries of @core
 * @nc_version: of the chip
 * @abort: set by the slot when the job must end; look at it between instructions
 * @poll: set when chip_job_poll() must be called between instructions
 * @opaque: for chip_job_poll()
 * @retired: incremented by the executor, shown in counters while the job runs
 * @counters: filled by the executor at the end
 * @modelled_ticks: result
 * @trace_records: result
 * @fault: result; code NEURON_FAULT_NONE when the job completed
 * @notify: a NOTIFY instruction ran; NULL: nobody listens
 */
struct chip_job {
	struct neuron_job_desc desc;
	struct chip_vm *vm;
	struct chip_core *core[NEURON_MAX_CORES];
	unsigned int core_count;
	unsigned int nc_version;
	atomic_bool *abort;
	atomic_bool *poll;
	void *opaque;
	atomic_uint_least64_t *retired;
	struct chip_job_counters {
		uint64_t insns;
		uint64_t pe_macs;
		uint64_t dma_bytes;
		uint64_t engine_ticks[NEURON_ENGINE_COUNT];
	} counters[NEURON_MAX_CORES];
	uint64_t modelled_ticks;
	uint32_t trace_records;
	struct neuron_fault_record fault;
	void (*notify)(struct chip_job *job, const struct chip_notify *n);
};

/* Runs the whole job on the calling thread; never fails, faults are in @job. */
void chip_job_run(struct chip_job *job);

/* --- above the seam, called from below ------------------------------------ */

/**
 * chip_vm_read(), chip_vm_write() - device virtual memory
 *
 * Return: NEURON_FAULT_NONE, PAGE_NOT_MAPPED, PAGE_READ_ONLY, BUS_ERROR or HBM_UE; then
 * @bad_va is the first address that failed. Pages before it may have been written.
 */
enum neuron_fault chip_vm_read(struct chip_vm *vm, uint64_t va, void *buf, size_t len, uint64_t *bad_va);
enum neuron_fault chip_vm_write(struct chip_vm *vm, uint64_t va, const void *buf, size_t len, uint64_t *bad_va);

/**
 * chip_vm_hbm() - direct pointer to local HBM
 * @len: in: bytes wanted; out: bytes that are contiguous from the pointer on
 *
 * Return: pointer, valid until the next chip_job_poll() of the job; NULL when @va is
 * not mapped to local HBM (or not writable when @write), or has an error to report:
 * use chip_vm_read/write.
 */
void *chip_vm_hbm(struct chip_vm *vm, uint64_t va, bool write, size_t *len);

/* Safe point: all pointers from chip_vm_hbm() are given up; lets an INVALIDATE pass. */
void chip_job_poll(struct chip_job *job);

#endif /* NEURON_CHIP_EXEC_H */
