/* SPDX-License-Identifier: MIT */
/* Shared by the two halves of a UDMA engine: registers and rings (udma.c), data (udma_copy.c). */
#ifndef NEURON_CHIP_UDMA_H
#define NEURON_CHIP_UDMA_H

#include "chip.h"

#define UDMA_BATCH		256u	/* descriptors that are read from a ring at once */
#define UDMA_BATCH_BYTES	(1u << 20)
#define UDMA_IOFIC_GROUPS	4

enum { M2S, S2M, SIDES };

struct ring {
	uint64_t base;
	uint32_t len;		/* descriptors */
	uint32_t cfg;
	uint32_t head, head_id;
	uint32_t tail, tail_id;
	uint32_t pending;	/* announced, not yet done */
};

/**
 * struct queue - a pair of rings; under the engine's lock
 * @gen: moves when a batch has to stop
 * @busy: a thread runs the queue
 * @in_batch: it touches memory now, without the lock
 * @forget: the rings were changed under the batch, by the batch's own write: its
 *	progress counts nothing
 * @stuck: stands still because it was told to (inject.def)
 * @stoppers: register writes that wait for the end of the batch
 */
struct queue {
	struct engine_link {
		struct neuron_chip *chip;
		struct chip_udma_engine *engine;
		unsigned int engine_nr, nr;
	} at;
	struct ring ring[SIDES];
	atomic_uint gen;
	bool busy;
	bool in_batch;
	bool forget;
	bool stuck;
	unsigned int stoppers;
	struct chip_pool_work work;
};

/* A group of an engine's interrupt controller (udma_iofic.c of the public driver). */
struct iofic_group {
	uint32_t cause, mask, control;
	uint32_t abort_mask;		/* events that do not abort the engine */
};

/**
 * struct side - one direction of an engine
 * @state: as in the state register, without abort
 * @aborted: until it is told to be normal again
 * @disabled: by change_state
 * @stream_cfg: bit 0: no packet starts
 */
struct side {
	uint32_t state;
	bool aborted;
	bool disabled;
	uint32_t stream_cfg;
};

struct chip_udma_engine {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct side side[SIDES];
	uint32_t cfg_len;		/* packet limit, and what length 0 means */
	uint32_t pref_cfg;		/* descriptor limit of a packet */
	struct iofic_group primary[UDMA_IOFIC_GROUPS];
	struct iofic_group secondary[UDMA_IOFIC_GROUPS];
	struct queue queue[NEURON_UDMA_QUEUES];
};

/* What went wrong: @cause is the bit of group A (M2S) or B (S2M). */
struct udma_error {
	const char *why;	/* NULL: nothing */
	unsigned int side;
	uint32_t cause;
	uint64_t addr;
};

/**
 * struct batch - one run over announced descriptors, copied from the rings once
 * @ring: as they were at the start
 * @tolerated: causes that were seen and are masked, by side
 * @gen: of the queue at the start
 */
struct batch {
	struct neuron_chip *chip;
	struct queue *q;
	struct ring ring[SIDES];
	uint32_t cfg_len, max_descs;
	uint32_t abort_mask[SIDES], tolerated[SIDES];
	unsigned int gen;
	struct neuron_udma_desc desc[SIDES][UDMA_BATCH];
	unsigned int count[SIDES];
	unsigned int used[SIDES];
	uint64_t bytes;
	bool irq;
	bool stuck;
	struct udma_error error;
};

/* udma_copy.c. Returns when nothing more can be done at once; @b says what was. */
void udma_run_batch(struct batch *b);

#endif /* NEURON_CHIP_UDMA_H */
