/* SPDX-License-Identifier: MIT */
/*
 * Modelled time: the figures of each generation and the cost of each
 * instruction. Documentation/timing.rst lists every number with its source.
 */
#ifndef NEURON_CHIP_TIMING_H
#define NEURON_CHIP_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "neuron/isa.h"

#define TICKS_PER_NS_X10	336	/* NEURON_TICK_HZ in tenths of GHz */
#define NS_TICKS(ns)		((uint64_t)(ns) * TICKS_PER_NS_X10 / 10)
#define TIMING_MII		64	/* minimum initiation interval, engine cycles */
#define DMA_ENGINES		16	/* of a core */
#define DMA_QUEUE_DEPTH		256	/* transfers that a queue holds; assumed */

/**
 * struct timing - one generation
 * @tick: ticks of one clock cycle, by engine
 * @sem_to_start: ticks from a semaphore's update to the start of who waited for it
 * @drain: ticks from the end of an instruction's work until its writes are visible
 * @seq_cycles: a sequencer instruction
 * @dispatch_cycles: from an instruction's start until the sequencer has the next
 * @regmem_cycles: TENSOR_LOAD's round trip
 * @hbm_way: ticks from a sequencer to HBM, or back (WRITE, READ)
 * @remote_sem: ticks from an update until a semaphore of another core has it
 * @dma_trigger: ticks from a DMA instruction's start to its transfer's first byte
 * @dge_trigger: the same through a hardware descriptor generator; 0: none
 * @dma_issue_cycles: issuing engine's time for a DMA instruction
 * @dma_rate: bytes per 100 ns of one DMA engine
 * @dma_row_overhead: bytes worth of time that every row adds
 * @dma_row_min: bytes worth of time that a row takes at least
 * @swdge_row_cycles: POOL's time to write one descriptor
 * @transpose_hbm, @transpose_sbuf: per cent of the copy rate, with and without HBM
 * @sbuf_add_full: adding to SBUF goes at the copy rate
 * @dma_sem: ticks from a transfer's last byte until its semaphore update
 * @hbm_rate: bytes per ns of one HBM stack
 * @cores_per_stack: cores that share a stack
 * @throttle: dI/dt: ticks of the window that is looked at and of half speed after it;
 *	0: none
 * @fast_dve: DVE has the 2x and 4x modes
 * @fast_act: ACT has a 2x mode for 16-bit copies
 * @dma_priority: queues share DMA engines by priority, not round robin
 */
struct timing {
	uint8_t tick[NEURON_ENGINE_COUNT];
	uint64_t sem_to_start[NEURON_ENGINE_COUNT];
	uint64_t drain[NEURON_ENGINE_COUNT];
	uint32_t seq_cycles;
	uint32_t dispatch_cycles;
	uint32_t regmem_cycles;
	uint64_t hbm_way;
	uint64_t remote_sem;
	uint64_t dma_trigger;
	uint64_t dge_trigger;
	uint32_t dma_issue_cycles;
	uint32_t dma_rate;
	uint32_t dma_row_overhead;
	uint32_t dma_row_min;
	uint32_t swdge_row_cycles;
	uint32_t transpose_hbm, transpose_sbuf;
	bool sbuf_add_full;
	uint64_t dma_sem;
	uint32_t hbm_rate;
	uint32_t cores_per_stack;
	uint64_t throttle;
	bool fast_dve;
	bool fast_act;
	bool dma_priority;
};

/* NULL: no such version. */
const struct timing *timing_get(unsigned int nc_version);

struct stream;

/* Cycles that the current instruction of @s occupies its engine. */
uint32_t timing_cycles(const struct stream *s);
/* Ticks that an instruction of @ticks occupies its engine, throttled if the job asks. */
uint64_t timing_busy(struct stream *s, uint64_t ticks);
/* Ticks << 8 that a DMA engine needs for @rows rows of @bytes. */
uint64_t timing_dma_rows(const struct timing *t, uint64_t rows, uint64_t bytes);

#endif /* NEURON_CHIP_TIMING_H */
