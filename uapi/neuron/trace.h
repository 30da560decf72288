/* SPDX-License-Identifier: MIT */
/*
 * Execution trace that the chip writes at a job's trace_va: a header, then
 * records in order of modelled start. Ours. Times are modelled, not measured on
 * hardware.
 */
#ifndef NEURON_TRACE_H
#define NEURON_TRACE_H

#include <linux/types.h>
#include "regs.h"

#define NEURON_TRACE_MAGIC	0x4352544eu	/* "NTRC" */
#define NEURON_TRACE_VERSION	1

/**
 * struct neuron_trace_header - first 64 bytes
 * @magic: NEURON_TRACE_MAGIC
 * @version: NEURON_TRACE_VERSION
 * @record_size: sizeof(struct neuron_trace_record)
 * @nc_version: of the chip
 * @cores: of the program
 * @records: written
 * @dropped: did not fit
 * @tick_hz: NEURON_TICK_HZ
 * @end_ticks: modelled length of the job
 * @seqno: of the job
 */
struct neuron_trace_header {
	__le32 magic;
	__le16 version;
	__le16 record_size;
	__le32 nc_version;
	__le32 cores;
	__le64 records;
	__le64 dropped;
	__le64 tick_hz;
	__le64 end_ticks;
	__le64 seqno;
	__le64 reserved;
};

/* What an instruction waited for between issue and start. */
enum neuron_trace_wait {
	NEURON_TRACE_WAIT_NONE		= 0,
	NEURON_TRACE_WAIT_SEMAPHORE	= 1,	/* wait_index: semaphore */
	NEURON_TRACE_WAIT_EVENT		= 2,	/* wait_index: event */
	NEURON_TRACE_WAIT_ENGINE	= 3,	/* previous instruction of the engine or queue */
	NEURON_TRACE_WAIT_BANK		= 4,	/* PSUM bank or SBUF bus shared with another engine */
	NEURON_TRACE_WAIT_DMA		= 5,	/* DMA engines busy with other queues */
};

/**
 * struct neuron_trace_record - one instruction or DMA transfer
 * @issue: ticks when the sequencer reached it
 * @start: ticks when it began to work
 * @end: ticks when its effects are visible
 * @busy: ticks that the engine was occupied (a pipelined engine takes the next
 *	instruction at start + busy)
 * @debug_id: line table index
 * @pc: word index in the stream
 * @opcode: enum neuron_opcode
 * @core: the program's core number
 * @engine: enum neuron_engine; NEURON_ENGINE_DMA for the transfer itself
 * @queue: DMA queue; 0xff: not a transfer
 * @wait: enum neuron_trace_wait of the longest part of (start - issue)
 * @wait_engine: engine that ended that wait
 * @wait_index: semaphore or event
 * @wait_debug_id: instruction whose update ended that wait
 * @bytes: read and written (DMA: moved)
 * @macs: multiply-accumulates
 */
struct neuron_trace_record {
	__le64 issue;
	__le64 start;
	__le64 end;
	__le32 busy;
	__le32 debug_id;
	__le32 pc;
	__u8 opcode;
	__u8 core;
	__u8 engine;
	__u8 queue;
	__u8 wait;
	__u8 wait_engine;
	__le16 wait_index;
	__le32 wait_debug_id;
	__le32 bytes;
	__le32 macs;
};

#endif /* NEURON_TRACE_H */
