/* SPDX-License-Identifier: MIT */
/*
 * Instruction encoding of the NeuronCore model: ours, not AWS's. Semantics and
 * operand rules come from the published NKI documents. The rows are in isa.def.
 *
 * A stream is a sequence of 128-byte little-endian words; an instruction takes
 * one or more of them, the count is in its first word.
 */
#ifndef NEURON_ISA_H
#define NEURON_ISA_H

#include <linux/types.h>
#include "regs.h"

#define NEURON_ISA_VERSION	1
#define NEURON_WORD_BYTES	128
#define NEURON_INSN_MAX_WORDS	18	/* DMA_COMPUTE of 16 sources; all others 4 at most */
#define NEURON_INSN_APS		6	/* access patterns: three in the first word, three in the second */
#define NEURON_INSN_IMMS	6	/* immediates: two and four */
#define NEURON_PARTITIONS	128
#define NEURON_REGS		64	/* 32-bit registers of each engine's sequencer */
#define NEURON_REG_NONE		0xff
#define NEURON_PSUM_BANK_BYTES	2048
#define NEURON_PSUM_BANKS	8
#define NEURON_DMA_SOURCES	16	/* of DMA_COMPUTE */
#define NEURON_NOTIFY_QUEUES	16	/* notification queues that NOTIFY names */
#define NEURON_DMA_QUEUES	16	/* DMA queues of a core that instructions name */
#define NEURON_AP_DIMS		4
#define NEURON_DMA_DIMS		5

enum neuron_dtype {
#define NEURON_DTYPE(code, name, text, bytes) NEURON_DTYPE_##name = code,
#include "isa.def"
};

enum neuron_alu_op {
#define NEURON_ALU(code, name, text, cls, arity, reduce) NEURON_ALU_##name = code,
#include "isa.def"
};

enum neuron_act_fn {
#define NEURON_ACTFN(code, name, text) NEURON_ACTFN_##name = code,
#include "isa.def"
};

enum neuron_opcode {
#define NEURON_INSN(code, name, text, engines, min_nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	NEURON_OP_##name = code,
#include "isa.def"
};

/* Cost classes of isa.def; the model's timing table gives each its formula. */
enum neuron_cost {
	NEURON_COST_SEQ,	/* sequencer only */
	NEURON_COST_REGMEM,	/* memory round trip of one element */
	NEURON_COST_LDWEIGHTS,
	NEURON_COST_MATMUL,
	NEURON_COST_MII,	/* minimum initiation interval: 64 */
	NEURON_COST_N,		/* max(MII, N) */
	NEURON_COST_COPY,
	NEURON_COST_COPY_PRED,
	NEURON_COST_MEMSET,
	NEURON_COST_TENSOR_TENSOR,
	NEURON_COST_TENSOR_SCALAR,
	NEURON_COST_SCALAR_TT,
	NEURON_COST_REDUCE,
	NEURON_COST_RECIP,	/* max(MII, 8 N) */
	NEURON_COST_POOL150,	/* 150 + N */
	NEURON_COST_SCAN,	/* max(MII, 2 N) */
	NEURON_COST_SRC_N,	/* max(MII, N of the source) */
	NEURON_COST_EXP4,	/* max(MII, N / 4) */
	NEURON_COST_BN_AGGR,	/* max(MII, 13 N / 3) of the source */
	NEURON_COST_LOCAL_GATHER,
	NEURON_COST_TOPK,	/* 4 n + K */
	NEURON_COST_DMA,
	NEURON_COST_DRAIN,	/* sequencer, when earlier instructions are complete */
	NEURON_COST_HBMREG,	/* memory round trip of one word of HBM; word 1 is a DMA operand */
	NEURON_COST_DEBUG,	/* max(MII, N), when earlier instructions are complete */
};

/* struct neuron_wait.cond */
enum neuron_wait_cond {
	NEURON_WAIT_NONE	= 0,
	NEURON_WAIT_GE		= 1,	/* semaphore >= value */
	NEURON_WAIT_EQ		= 2,	/* semaphore == value */
	NEURON_WAIT_GE_SUB	= 3,	/* semaphore >= value, then subtract value */
	NEURON_WAIT_EVENT	= 4,	/* event set */
	NEURON_WAIT_EVENT_CLEAR	= 5,	/* event set, then clear it */
	NEURON_WAIT_COND_MASK	= 0x7f,
	NEURON_WAIT_REG		= 0x80,	/* value is a register number */
};

/* struct neuron_update.op; names of the public profile schema */
enum neuron_update_op {
	NEURON_UPDATE_NONE	= 0,
	NEURON_UPDATE_SEM_ADD	= 1,	/* sem_inc, sem_add_imm */
	NEURON_UPDATE_SEM_SUB	= 2,	/* sem_dec, sem_sub_imm */
	NEURON_UPDATE_SEM_WRITE	= 3,	/* sem_wr_imm */
	NEURON_UPDATE_EVENT_SET	= 4,	/* evt_set */
	NEURON_UPDATE_EVENT_CLEAR = 5,	/* evt_clr */
	NEURON_UPDATE_OP_MASK	= 0x7f,
	NEURON_UPDATE_AT_READ	= 0x80,	/* when the inputs have been read; default: complete */
};

/**
 * struct neuron_wait - condition an instruction waits for before it starts
 * @sem: semaphore or event, 0 to 255, of the same core
 * @cond: enum neuron_wait_cond
 * @value: immediate, or register with NEURON_WAIT_REG
 */
struct neuron_wait {
	__u8 sem;
	__u8 cond;
	__le16 value;
};

/**
 * struct neuron_update - what an instruction does to a semaphore or event
 * @sem: semaphore or event of the same core
 * @op: enum neuron_update_op
 * @value: immediate
 */
struct neuron_update {
	__u8 sem;
	__u8 op;
	__le16 value;
};

/**
 * struct neuron_ap - access pattern in SBUF or PSUM
 * @space: enum neuron_space; NONE: operand absent
 * @dtype: enum neuron_dtype
 * @part_start: first partition
 * @part_count: 1 to 128
 * @offset: first byte in the partition
 * @offset_reg: register whose value (bytes) is added to @offset, or NEURON_REG_NONE
 * @count_reg: register that replaces num[@count_dim], or NEURON_REG_NONE
 * @count_dim: see @count_reg
 * @dims: dimensions in use, 1 to 4
 * @num: elements by dimension, innermost first
 * @step: distance in elements by dimension, signed
 *
 * Every partition uses the same pattern. Legal start partitions: 0, 32, 64, 96
 * for up to 32 partitions; 0, 64 for up to 64; else 0.
 */
struct neuron_ap {
	__u8 space;
	__u8 dtype;
	__u8 part_start;
	__u8 part_count;
	__le32 offset;
	__u8 offset_reg;
	__u8 count_reg;
	__u8 count_dim;
	__u8 dims;
	__le16 num[NEURON_AP_DIMS];
	__le16 step[NEURON_AP_DIMS];
};

enum neuron_imm_kind {
	NEURON_IMM_NONE	= 0,
	NEURON_IMM_F32	= 1,	/* value: fp32 bits */
	NEURON_IMM_I32	= 2,	/* value: 32-bit integer */
	NEURON_IMM_REG	= 3,	/* value: register number; its 32 bits read as @dtype */
	NEURON_IMM_VEC	= 4,	/* one value per partition: (P, 1) at @space, @part, value = byte offset */
};

/**
 * struct neuron_imm - scalar operand
 * @kind: enum neuron_imm_kind
 * @dtype: of VEC and REG
 * @space: of VEC
 * @part: first partition of VEC
 * @value: see enum neuron_imm_kind
 */
struct neuron_imm {
	__u8 kind;
	__u8 dtype;
	__u8 space;
	__u8 part;
	__le32 value;
};

#define NEURON_FLAG_REVERSE0	(1u << 0)	/* imm0 op0 data instead of data op0 imm0 */
#define NEURON_FLAG_REVERSE1	(1u << 1)
#define NEURON_FLAG_NEGATE	(1u << 2)	/* multiply the result by -1 */
#define NEURON_FLAG_ACCUMULATE	(1u << 3)	/* MATMUL: add to PSUM instead of overwriting */
#define NEURON_FLAG_TRANSPOSE	(1u << 4)	/* PE: bit-exact transpose (is_transpose) */
#define NEURON_FLAG_PERF_SHIFT	5		/* two bits: perf_mode; 0 none, 1 double_row */
#define NEURON_FLAG_OOB_SKIP	(1u << 7)	/* oob_mode.skip */
#define NEURON_FLAG_REVERSE_PRED (1u << 8)
#define NEURON_FLAG_ONEZERO_STATIONARY (1u << 9)	/* PE, fp32: all values are 0 or 1 */
#define NEURON_FLAG_ONEZERO_MOVING (1u << 10)
#define NEURON_FLAG_INDIRECT	(1u << 11)	/* v4: a last word gives index tiles */
#define NEURON_FLAGS		0xfffu

/*
 * aux of LDWEIGHTS and MATMUL: the part of the array that they use, in units of 32
 * rows or columns; sizes 1 (v3), 2 and 4, positions multiples of them. 0: all of it.
 */
#define NEURON_TILE_ROW_SHIFT	0	/* four bits each */
#define NEURON_TILE_COLUMN_SHIFT 4
#define NEURON_TILE_ROWS_SHIFT	8
#define NEURON_TILE_COLUMNS_SHIFT 12

/* aux of QUANTIZE_MX: the scale rule that nki.isa had before SDK 2.31. */
#define NEURON_MX_OLD_SCALE	1u

/* aux of a DMA instruction. */
#define NEURON_DMA_QUEUE_MASK	0xffu		/* queue */
#define NEURON_DMA_PRIORITY_SHIFT 8		/* two bits: 0 high to 3 */
#define NEURON_DMA_DGE_SHIFT	16		/* two bits: enum neuron_dge */
#define NEURON_DMA_CORE_SHIFT	24		/* semaphore's core: 0 own, else program core + 1 */

/* Who writes a transfer's descriptors: values of the public nki.isa.dge_mode. */
enum neuron_dge {
	NEURON_DGE_UNKNOWN	= 0,
	NEURON_DGE_SWDGE	= 1,	/* POOL, in its stream and its time */
	NEURON_DGE_HWDGE	= 2,	/* hardware, from Trn2 on in SP's and ACT's streams */
	NEURON_DGE_NONE		= 3,	/* the host, at load */
};

/* op0 of DMA_TRANSPOSE: dst's axis k is src's axis axes[k]. */
enum neuron_axes {
	NEURON_AXES_10		= 0,
	NEURON_AXES_210		= 1,
	NEURON_AXES_3120	= 2,
};

/* Accumulator commands, published values. */
enum neuron_acc_cmd {
	NEURON_ACC_IDLE		= 0,
	NEURON_ACC_RESET	= 1,
	NEURON_ACC_REDUCE	= 2,
	NEURON_ACC_RESET_REDUCE	= 3,
	NEURON_ACC_LOAD_REDUCE	= 4,
};

/**
 * struct neuron_insn - first word of every instruction
 * @opcode: enum neuron_opcode
 * @words: 128-byte words: as in isa.def, one more with NEURON_FLAG_INDIRECT
 * @flags: NEURON_FLAG_*; unknown bits are an ILLEGAL_INSN fault
 * @op: op0, op1, op2: ALU operator, activation function, comparison, reduction
 * @acc: enum neuron_acc_cmd
 * @debug_id: index in the line table; 0: none
 * @wait: both hold before the instruction starts
 * @update: done when it completes (or has read its inputs). Updates of one stream
 *	are made in its order, never before its earlier instructions have completed:
 *	an EVENT_SEMAPHORE signals for all of them. DMA transfers that the stream
 *	started are not among those; each queue has its own order
 * @ap: access pattern 0 (dst), 1, 2
 * @imm: scalar operands
 * @aux: register, branch target, dimension count, or for DMA: NEURON_DMA_*
 */
struct neuron_insn {
	__u8 opcode;
	__u8 words;
	__le16 flags;
	__u8 op[3];
	__u8 acc;
	__le32 debug_id;
	struct neuron_wait wait[2];
	struct neuron_update update;
	struct neuron_ap ap[3];
	struct neuron_imm imm[2];
	__le32 aux;
};

/**
 * struct neuron_insn_ext - second word of an instruction with more operands, and
 *	last word of one with NEURON_FLAG_INDIRECT
 * @ap: access patterns 3, 4, 5. In an index word: index tile of access pattern 0,
 *	1, 2; space NONE: that one is direct
 * @imm: immediates 2 to 5
 * @mask: STREAM_SHUFFLE: source lane by lane of a quadrant; 255 keeps the destination
 * @aux: by instruction, else 0
 * @flags: 0
 */
struct neuron_insn_ext {
	struct neuron_ap ap[3];
	union {
		struct neuron_imm imm[4];
		__u8 mask[32];
	};
	__le32 aux[2];
	__le32 flags;
};

/**
 * struct neuron_dma_operand - words of a DMA instruction behind the first: dst, sources
 * @space: NEURON_SPACE_HBM: this operand; NEURON_SPACE_SBUF: the access pattern
 *	in the first word (0 dst, 1 src; for a source of DMA_COMPUTE it is @index of
 *	this word), @arg, and the rest of this word is 0
 * @dtype: enum neuron_dtype
 * @arg: argument number. SBUF: 0 this core's, else that of program core @arg - 1
 * @dims: dimensions in use, 1 to 5
 * @offset_reg: register times @offset_scale is added to @offset, or NEURON_REG_NONE
 * @count_reg: register that replaces count[@count_dim], or NEURON_REG_NONE
 * @count_dim: see @count_reg
 * @offset: bytes from the argument's start
 * @offset_scale: bytes per unit of the register, signed
 * @count: elements by dimension, innermost first
 * @flags: 0
 * @stride: bytes by dimension, signed
 * @index: (P, 1) index tile (DMA_TRANSPOSE: (P, C), taken column by column) in SBUF, uint32 or int32; space NONE: no gather
 * @index_dim: dimension of @stride that an index is multiplied with
 * @row_bound: indices must be below it; 0: the argument's size decides
 *
 * Elements are taken in order, innermost dimension first, and the n-th of the
 * source goes to the n-th of the destination; an SBUF operand counts partitions
 * as its outermost dimension.
 */
struct neuron_dma_operand {
	__u8 space;
	__u8 dtype;
	__le16 arg;
	__u8 dims;
	__u8 offset_reg;
	__u8 count_reg;
	__u8 count_dim;
	__le64 offset;
	__le64 offset_scale;
	__le32 count[NEURON_DMA_DIMS];
	__le32 flags;
	__le64 stride[NEURON_DMA_DIMS];
	struct neuron_ap index;
	__le32 index_dim;
	__le64 row_bound;
};

#endif /* NEURON_ISA_H */
