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
#define NEURON_TRACE_VERSION	2
#define NEURON_TRACE_WAITS	4
#define NEURON_TRACE_OPERANDS	3
#define NEURON_TRACE_NO_RECORD	0xffffffffu

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

/*
 * What an instruction waited for between issue and start, and a transfer also until
 * its end.
 */
enum neuron_trace_wait {
	NEURON_TRACE_WAIT_NONE		= 0,
	NEURON_TRACE_WAIT_SEMAPHORE	= 1,	/* wait_index: semaphore */
	NEURON_TRACE_WAIT_EVENT		= 2,	/* wait_index: event */
	NEURON_TRACE_WAIT_ENGINE	= 3,	/* previous instruction of the engine or queue */
	NEURON_TRACE_WAIT_BANK		= 4,	/* PSUM bank or SBUF bus shared with another engine */
	NEURON_TRACE_WAIT_DMA		= 5,	/* DMA queue full; transfers: engines and HBM shared */
	NEURON_TRACE_WAIT_TRIGGER	= 6,	/* transfers: from the instruction to the queue */
};

/**
 * struct neuron_trace_waits - one wait; they follow each other from @issue on
 * @ticks: its length; a semaphore's includes the latency from update to start
 * @record: index of the record of whoever ended it, or NEURON_TRACE_NO_RECORD
 * @index: semaphore or event
 * @kind: enum neuron_trace_wait; NONE: no more
 * @engine: that ended it
 */
struct neuron_trace_waits {
	__le32 ticks;
	__le32 record;
	__le16 index;
	__u8 kind;
	__u8 engine;
};

/**
 * struct neuron_trace_operand - an operand as it was, registers read
 * @addr: SBUF, PSUM: first byte of the partition; HBM: device virtual address
 * @n: elements of each partition; HBM: all elements
 * @space: enum neuron_space; NONE: absent
 * @part: first partition; HBM: bits 7:0 of the argument's number
 * @parts: partitions; HBM: bits 15:8 of the argument's number
 * @dtype: enum neuron_dtype
 */
struct neuron_trace_operand {
	__le64 addr;
	__le32 n;
	__u8 space;
	__u8 part;
	__u8 parts;
	__u8 dtype;
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
 * @wait: enum neuron_trace_wait of the last wait, which decided the start
 * @wait_engine: engine that ended that wait
 * @wait_index: semaphore or event
 * @wait_debug_id: instruction whose update ended that wait
 * @bytes: read and written (DMA: moved)
 * @macs: multiply-accumulates
 * @waits: every wait in order; more than fit are counted with the last
 * @operand: dst, then sources
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
	struct neuron_trace_waits waits[NEURON_TRACE_WAITS];
	struct neuron_trace_operand operand[NEURON_TRACE_OPERANDS];
};

#endif /* NEURON_TRACE_H */
