/* SPDX-License-Identifier: MIT */
/*
 * Debug buffer: the argument that DEBUG_PRINT appends to (nl.device_print). Ours.
 */
#ifndef NEURON_DEBUG_H
#define NEURON_DEBUG_H

#include <linux/types.h>

#define NEURON_DEBUG_ALIGN	16	/* of entries, bytes */

/**
 * struct neuron_debug_header - start of the buffer
 * @offset: bytes from the buffer's start where the next entry goes; 0, as whoever
 *	makes the buffer leaves it: behind this header
 * @dropped: entries that did not fit
 */
struct neuron_debug_header {
	__le64 offset;
	__le64 dropped;
};

/**
 * struct neuron_debug_entry - one print; the elements follow, partition by partition
 * @size: bytes of the entry with its data, a multiple of NEURON_DEBUG_ALIGN
 * @prefix: imm0 of the instruction
 * @core: the program's core number
 * @engine: enum neuron_engine
 * @dtype: enum neuron_dtype
 * @parts: partitions
 * @n: elements of each partition
 */
struct neuron_debug_entry {
	__le32 size;
	__le32 prefix;
	__u8 core;
	__u8 engine;
	__u8 dtype;
	__u8 parts;
	__le32 n;
};

#endif /* NEURON_DEBUG_H */
