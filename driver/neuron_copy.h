/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NEURON_COPY_H
#define NEURON_COPY_H

#include <linux/scatterlist.h>

#include "neuron_device.h"
#include "neuron_gem.h"

#define NEURON_PIECE_XFERS	511

/**
 * struct neuron_xfer - one descriptor
 * @src: device physical address
 * @dst: device physical address
 * @len: 1 to NEURON_UDMA_DESC_MAX_LEN
 */
struct neuron_xfer {
	u64 src;
	u64 dst;
	u32 len;
};

/**
 * struct neuron_piece - part of a copy that a queue takes at once
 * @job: for the queue's scheduler
 * @dst: referenced, or NULL
 * @src: referenced, or NULL
 * @pages: user memory, pinned
 * @npages: number of @pages
 * @sgt: @pages, mapped for DMA
 * @dir: how @sgt and @pattern are mapped
 * @mapped: @sgt is
 * @pattern: what a fill copies; NULL: zeros
 * @pattern_dma: its bus address
 * @pattern_size: its bytes
 * @failures: of the queue when the copy began
 * @follows: not the first piece of its copy
 * @count: number of transfers
 * @room: of @xfer
 * @xfer: transfers
 */
struct neuron_piece {
	struct neuron_job job;
	struct drm_gem_object *dst;
	struct drm_gem_object *src;
	struct page **pages;
	unsigned int npages;
	struct sg_table sgt;
	enum dma_data_direction dir;
	bool mapped;
	void *pattern;
	dma_addr_t pattern_dma;
	size_t pattern_size;
	u32 failures;
	bool follows;
	unsigned int count;
	unsigned int room;
	struct neuron_xfer *xfer;
};

/**
 * struct neuron_copy - a COPY or FILL on its way into pieces
 * @ctx: context
 * @file: who submits it; NULL: the kernel
 * @dst: NULL: user memory
 * @src: NULL: user memory, or the pattern of a fill
 * @dst_addr: offset in @dst, or user address
 * @src_addr: offset in @src, or user address
 * @left: bytes that are in no piece yet
 * @failures: of the queue when the first piece was made
 * @started: there is a first piece
 * @fill: src is @pattern
 * @pattern: 32 bits
 */
struct neuron_copy {
	struct neuron_ctx *ctx;
	struct drm_file *file;
	struct drm_gem_object *dst;
	struct drm_gem_object *src;
	u64 dst_addr;
	u64 src_addr;
	u64 left;
	u32 failures;
	bool started;
	bool fill;
	u32 pattern;
};

int neuron_copy_parse(struct neuron_copy *copy, struct neuron_ctx *ctx, struct drm_file *file,
		      const struct drm_neuron_copy *args, bool fill);
void neuron_copy_put(struct neuron_copy *copy);
struct neuron_job *neuron_copy_next(struct neuron_copy *copy);
int neuron_copy_clear(struct neuron_device *ndev, struct neuron_bo *bo);
int neuron_udmaq_post(struct neuron_udmaq *q, const struct neuron_piece *piece,
		      struct neuron_fence *fence);

#endif /* NEURON_COPY_H */
