/* SPDX-License-Identifier: MIT */
/* Parts of exec_copy.c that other kinds of transfer use. */
#ifndef NEURON_CHIP_EXEC_COPY_H
#define NEURON_CHIP_EXEC_COPY_H

#include "exec_state.h"

#define CURSOR_DIMS	6
#define BOUNCE_BYTES	4096u
#define COPY_SOURCES	(NEURON_DMA_SOURCES + 1)

/**
 * struct cursor - position in one side of a transfer
 * @count, @stride, @at: by dimension, innermost first; neighbours that continue
 *	each other are merged
 * @pos: byte position of the current element: host address, or offset in the argument
 * @arg: HBM: argument number
 * @host: SBUF: pos is relative to it
 * @va: HBM: address of the argument
 * @window, @lo, @hi: last part of the argument that was found in HBM
 */
struct cursor {
	bool hbm;
	bool write;
	unsigned int dims;
	unsigned int dtype;
	unsigned int bytes;
	unsigned int arg;
	uint64_t count[CURSOR_DIMS];
	int64_t stride[CURSOR_DIMS];
	uint64_t at[CURSOR_DIMS];
	int64_t pos;
	uint8_t *host;
	uint64_t va;
	uint64_t size;
	uint8_t *window;
	uint64_t lo, hi;
	uint8_t bounce[BOUNCE_BYTES];
};

/**
 * struct copy - a transfer that runs
 * @side: what its sources are
 * @sources: how many; the destination may be one of them
 */
struct copy {
	struct exec *x;
	struct exec_core *c;
	struct xfer *t;
	uint64_t since_poll;
	unsigned int sources;
	const struct dma_side *side[COPY_SOURCES];
	struct cursor dst, src[COPY_SOURCES];
};

/* A cursor without dimensions. */
void cursor_begin(struct cursor *c, const struct dma_side *side, bool write);
/* The next dimension, from inside out. */
void cursor_add(struct cursor *c, uint64_t count, int64_t stride);
/* To element @n from @start. */
void cursor_seek(struct cursor *c, int64_t start, uint64_t n);
/* False: faulted. */
bool copy_elements(struct copy *m, uint64_t n);
bool copy_fault(struct copy *m, enum neuron_fault code, uint32_t index, uint64_t addr,
		uint64_t size, unsigned int part);
int copy_row_start(struct copy *m, const struct hbm_opnd *h, unsigned int r, int64_t *start);

/* exec_transpose.c */
void copy_transpose(struct copy *m);

#endif /* NEURON_CHIP_EXEC_COPY_H */
