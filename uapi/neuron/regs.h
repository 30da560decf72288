/* SPDX-License-Identifier: MIT */
/*
 * Register map of the chip.
 *
 * Part 1 is public: it is what AWS's GPL driver (aws-neuron-driver 2.24.7.0,
 * 2.25.4.0) reads and writes; the file that shows a fact is named beside it.
 *
 * Part 2, the execution block in BAR2, is this project's own definition. It is
 * not AWS's, and no AWS silicon has it. Documentation/hardware/exec-block.rst
 * describes it in full.
 *
 * All registers and all structures in memory are little-endian.
 */
#ifndef NEURON_REGS_H
#define NEURON_REGS_H

#include <linux/types.h>

/* ------------------------------------------------------------------------ */
/* Part 1: public interface						    */

#define NEURON_PCI_VENDOR_ID		0x1d0f	/* neuron_pci.c */
#define NEURON_PCI_CLASS		0x1200	/* processing accelerator; never read by the driver */
#define NEURON_PCI_REVISION_QEMU	0xff	/* neuron_arch.c: "qemu" platform, registers at BAR2 too */

#define NEURON_BAR_APB			0	/* registers */
#define NEURON_BAR_EXEC			2	/* our execution block (absent at revision 0xff) */
#define NEURON_BAR_HBM			4	/* HBM windows */

/* Misc RAM: firmware mailbox and reset (neuron_fw_io.h). */
#define NEURON_V3_MISC_RAM		0x06c84000	/* BAR0, Trn2 and Trn3 */
#define NEURON_V2_MISC_RAM		0x30fa0000	/* BAR0, Trn1 and Inf2 */
#define NEURON_MISC_API_VERSION		0x000
#define NEURON_MISC_ROUTING_ID		0x024
#define NEURON_MISC_SERIAL_LO		0x038
#define NEURON_MISC_SERIAL_HI		0x03c
#define NEURON_MISC_SRAM_ECC		0x040	/* [31:16] corrected, [15:0] uncorrected */
#define NEURON_MISC_HBM_ECC(n)		(0x044 + 4 * (n))
#define NEURON_MISC_POWER(die)		(0x054 + 4 * (die)) /* [15:0] 1/100 %, [31:16] sample counter */
#define NEURON_MISC_HBM_REPAIR		0x064	/* NEURON_MISC_REPAIR_* */
#define  NEURON_MISC_REPAIR_NONE	0
#define  NEURON_MISC_REPAIR_PENDING	1
#define  NEURON_MISC_REPAIR_FAILED	2
#define NEURON_MISC_SERVER_INFO		0x070	/* bit 15: valid, [14:0] server (2.25) */
#define NEURON_MISC_RUNTIME(n)		(0x0c0 + 4 * (n)) /* 12 words that firmware leaves to user space */
#define NEURON_MISC_MAIL_ACK		0x0f0	/* newer mailbox (2.25) */
#define NEURON_MISC_METRIC		0x100	/* 128 bytes; data of the newer mailbox */
#define NEURON_MISC_METRIC_SIZE		128
#define NEURON_MISC_LEFT_SERIAL_HI	0x180	/* pod election, v3/neuron_pelect.c */
#define NEURON_MISC_LEFT_SERIAL_LO	0x184
#define NEURON_MISC_RIGHT_SERIAL_HI	0x188
#define NEURON_MISC_RIGHT_SERIAL_LO	0x18c
#define NEURON_MISC_POD_STATUS		0x190	/* [7:0] state, [15:8] link mask, [23:16] node, [31:24] nodes */
#define NEURON_MISC_POD_SERIAL_HI	0x194
#define NEURON_MISC_POD_SERIAL_LO	0x198
#define NEURON_MISC_RUNTIME1(n)		(0x1a0 + 4 * (n)) /* 12 words more */
#define NEURON_MISC_TPB_RESET_MAP	0x1d8
#define NEURON_MISC_RESET		0x1ec	/* write type, firmware clears when done */
#define  NEURON_MISC_RESET_DEVICE	1
#define  NEURON_MISC_RESET_TPB		2
#define NEURON_MISC_REQ_HI		0x1f0
#define NEURON_MISC_REQ_LO		0x1f4
#define NEURON_MISC_RESP_HI		0x1f8
#define NEURON_MISC_RESP_LO		0x1fc
#define NEURON_MISC_TRIGGER		0x800
#define NEURON_MISC_STATUS		0x808
#define  NEURON_MISC_STATUS_BUSY	(1u << 3)
#define NEURON_MISC_NOT_READY		0xdeadbeefu
#define NEURON_MISC_SIZE		0x1000

/* Revision 0xff reset registers. */
#define NEURON_V3_QEMU_RESET		0x06300010	/* v3/neuron_dhal_v3.c */
#define NEURON_V2_QEMU_RESET		0x30647010	/* v2/neuron_dhal_v2.c */

/* UDMA engine windows in BAR0 (v3/neuron_dhal_v3.c, v2/address_map.h). */
#define NEURON_V3_SENG_UDMA(s)		(((s) & 1 ? 0x94000000ull : 0x82000000ull) + ((s) >> 1) * 0x20000000ull)
#define NEURON_V3_UDMA_STRIDE		0x100000
#define NEURON_V3_H2T_UDMA(n)		(((n) & 1 ? 0x06900000ull : 0x06800000ull) + ((n) >> 1) * 0x40000000ull)
#define NEURON_V2_SENG_UDMA(s)		((s) ? 0x30700000ull : 0x30000000ull)
#define NEURON_V2_UDMA_STRIDE		0x40000
#define NEURON_V2_H2T_UDMA(n)		((n) ? 0x30d00000ull : 0x30600000ull)
#define NEURON_UDMA_QUEUES		16

/* Inside an engine window (udma_regs.h). */
#define NEURON_UDMA_M2S			0x00000
#define NEURON_UDMA_S2M			0x20000
#define NEURON_UDMA_STATE		0x200	/* + M2S or S2M */
#define NEURON_UDMA_CHANGE_STATE	0x204
#define NEURON_UDMA_ERR_LOG_MASK	0x20c
#define NEURON_UDMA_M2S_CFG_LEN		0x254
#define  NEURON_UDMA_CFG_LEN_MAX	0x000fffffu	/* bytes of a packet */
#define  NEURON_UDMA_CFG_LEN_64K	(1u << 24)	/* length 0 means 65536 */
#define NEURON_UDMA_STREAM_CFG		0x258	/* M2S; bit 0: disable */
#define NEURON_UDMA_S2M_STREAM_CFG	0x250
#define NEURON_UDMA_M2S_PREF_CFG_2	0x304
#define  NEURON_UDMA_PREF_CFG_2_MAX_DESCS 0xffu		/* descriptors of a packet */
#define  NEURON_UDMA_PREF_CFG_2_VALUE	0x10041u	/* what the public driver writes */

/*
 * Interrupt controllers of an engine (udma_iofic.c): four groups each, A to D. A of
 * the second has the errors of the source side, B of the destination side.
 */
#define NEURON_UDMA_IOFIC(g)		(0x38000 + 0x40 * (g))
#define NEURON_UDMA_IOFIC2(g)		(0x3a000 + 0x40 * (g))
#define NEURON_UDMA_IOFIC_CAUSE		0x00	/* writing 0 clears */
#define NEURON_UDMA_IOFIC_CAUSE_SET	0x08
#define NEURON_UDMA_IOFIC_MASK		0x10
#define NEURON_UDMA_IOFIC_MASK_CLEAR	0x18	/* writing 0 clears the bit of the mask */
#define NEURON_UDMA_IOFIC_STATUS	0x20
#define NEURON_UDMA_IOFIC_CONTROL	0x28
#define NEURON_UDMA_IOFIC_ABORT_MASK	0x30	/* 1: the event does not abort the engine */
#define NEURON_UDMA_IOFIC_D_SECONDARY(g) (1u << (8 + (g)))
#define NEURON_UDMA_CAUSE_M2S_RING_ID	(1u << 17)
#define NEURON_UDMA_CAUSE_M2S_LAST	(1u << 16)
#define NEURON_UDMA_CAUSE_M2S_FIRST	(1u << 15)
#define NEURON_UDMA_CAUSE_M2S_MAX_DESC	(1u << 14)
#define NEURON_UDMA_CAUSE_M2S_PKT_LEN	(1u << 13)
#define NEURON_UDMA_CAUSE_M2S_PREF_RESP	(1u << 11)
#define NEURON_UDMA_CAUSE_M2S_DATA_RESP	(1u << 8)
#define NEURON_UDMA_CAUSE_M2S_STRM_RESP	(1u << 2)
#define NEURON_UDMA_CAUSE_S2M_PKT_LEN	(1u << 24)
#define NEURON_UDMA_CAUSE_S2M_RING_ID	(1u << 11)
#define NEURON_UDMA_CAUSE_S2M_PREF_RESP	(1u << 9)
#define NEURON_UDMA_CAUSE_S2M_DATA_RESP	(1u << 1)

#define NEURON_UDMA_Q(q)		(0x1000 + 0x1000 * (q))
/* Inside a queue. */
#define NEURON_UDMA_Q_CFG		0x20
#define  NEURON_UDMA_Q_CFG_EN_PREF	(1u << 16)
#define  NEURON_UDMA_Q_CFG_EN_SCHED	(1u << 17)
#define  NEURON_UDMA_Q_CFG_RESET_VALUE	(3u << 24)
#define NEURON_UDMA_Q_STATUS		0x24	/* bits are ours: [23:0] announced and not done */
#define  NEURON_UDMA_Q_STATUS_PREF	(1u << 28)
#define  NEURON_UDMA_Q_STATUS_SCHED	(1u << 29)
#define  NEURON_UDMA_Q_STATUS_FULL	(1u << 31)
#define NEURON_UDMA_Q_DRBP_LO		0x28	/* ring base, full device address; the driver aligns it to 256 */
#define  NEURON_UDMA_Q_DRBP_LO_MASK	0xffffffc0u
#define NEURON_UDMA_Q_DRBP_HI		0x2c
#define NEURON_UDMA_Q_DRL		0x30	/* number of descriptors */
#define NEURON_UDMA_Q_DRHP		0x34
#define NEURON_UDMA_Q_DRTP_INC		0x38	/* doorbell */
#define NEURON_UDMA_Q_DRTP		0x3c
#define NEURON_UDMA_Q_DCP		0x40
#define NEURON_UDMA_Q_CRHP		0x4c
#define NEURON_UDMA_M2S_Q_RLIMIT	0x74
#define NEURON_UDMA_M2S_Q_COMP_CFG	0xa0
#define NEURON_UDMA_M2S_Q_SW_CTRL	0xb0
#define NEURON_UDMA_S2M_Q_COMP_CFG	0x54
#define NEURON_UDMA_S2M_Q_SW_CTRL	0x64
#define  NEURON_UDMA_Q_SW_CTRL_RST	(1u << 8)
#define NEURON_UDMA_IDX_MASK		0x00ffffffu
#define NEURON_UDMA_RING_ID_SHIFT	30
#define NEURON_UDMA_RING_ID_INIT	1
#define NEURON_UDMA_MIN_DESCS		32
#define NEURON_UDMA_DESC_ALIGN		16	/* ring length is a multiple of it */
#define NEURON_UDMA_MAX_PACKET_DESCS	64

/**
 * struct neuron_udma_desc - one 16-byte UDMA descriptor (udma.h)
 * @flags: word 0; NEURON_UDMA_DESC_*
 * @meta: word 1; NEURON_UDMA_META_* for a source (M2S), 0 for a destination
 * @addr: device physical address
 */
struct neuron_udma_desc {
	__le32 flags;
	__le32 meta;
	__le64 addr;
};

#define NEURON_UDMA_DESC_LEN_MASK	0x0000ffffu	/* 0 means 65536 */
#define NEURON_UDMA_DESC_MAX_LEN	65536u
#define NEURON_UDMA_DESC_RING_ID_SHIFT	24
#define NEURON_UDMA_DESC_FIRST		(1u << 26)
#define NEURON_UDMA_DESC_LAST		(1u << 27)
#define NEURON_UDMA_DESC_INT_EN		(1u << 28)
#define NEURON_UDMA_DESC_STRONG_ORDER	(1u << 29)	/* destination (2.25) */
#define NEURON_UDMA_DESC_DMB		(1u << 30)
#define NEURON_UDMA_META_COPY		0x01080003u	/* what the public driver writes */
#define NEURON_UDMA_META_SWAP		0x00003fc0u	/* byte and bit swaps */
#define NEURON_UDMA_META_CRC		0x0007c000u	/* validate, stored iv, send, store, store source */
#define NEURON_UDMA_META_COPY_SOURCE	(1u << 19)
#define NEURON_UDMA_META_OP_TYPE	0x00700000u
#define NEURON_UDMA_META_OP		0x03800000u
#define NEURON_UDMA_META_OP_COPY	0x01000000u	/* ssmae_op 2 */
#define NEURON_UDMA_META_WRITE_BARRIER	(1u << 26)

/* Per core, relative to the core's TPB window in BAR0 (v3/address_map.h). */
#define NEURON_V3_TPB(n)		(0xd0000000ull + 0x4000000ull * (n))
#define NEURON_V2_TPB(n)		(0x4000000ull * (n))
#define NEURON_TPB_SBUF			0x0000000
#define NEURON_TPB_EVENT(n)		(0x2700000 + 4 * (n))
#define NEURON_TPB_SEM_READ(n)		(0x2701000 + 4 * (n))
#define NEURON_TPB_SEM_SET(n)		(0x2701400 + 4 * (n))
#define NEURON_TPB_SEM_INC(n)		(0x2701800 + 4 * (n))
#define NEURON_TPB_SEM_DEC(n)		(0x2701c00 + 4 * (n))
#define NEURON_SEMAPHORES		256
#define NEURON_EVENTS			256

/* Windows onto other chips (V3_PCIE_B0_n_BASE in v3/address_map.h). */
#define NEURON_V3_LINK_DPA(n)		(0x10000000000000ull + 0x4000000000000ull * (n))
#define NEURON_V3_LINK_SHIFT		50

/* Device physical addresses of HBM stack n (v3/address_map.h, v2/address_map.h). */
#define NEURON_V3_HBM_DPA(n)		(((n) & 1 ? 0x4000000000ull : 0ull) | ((n) >> 1 ? 1ull << 47 : 0ull))
#define NEURON_V2_HBM_DPA(n)		((n) ? 0x1000000000ull : 0ull)

/* ------------------------------------------------------------------------ */
/* Part 2: execution block (ours)					    */

/**
 * struct neuron_exec_cap - vendor-specific PCI capability that announces it
 * @id: 0x09 (PCI_CAP_ID_VNDR)
 * @next: next capability
 * @len: 16
 * @version: NEURON_EXEC_CAP_VERSION
 * @magic: NEURON_EXEC_MAGIC
 * @bar: BAR that holds the block
 * @reserved: 0
 * @offset: first byte of the block in that BAR
 */
struct neuron_exec_cap {
	__u8 id;
	__u8 next;
	__u8 len;
	__u8 version;
	__le32 magic;
	__u8 bar;
	__u8 reserved[3];
	__le32 offset;
};

#define NEURON_EXEC_CAP_VERSION		1
#define NEURON_EXEC_MAGIC		0x4358454eu	/* "NEXC" */
#define NEURON_EXEC_BAR_SIZE		0x100000
#define NEURON_EXEC_VERSION		0x00010000	/* major << 16 | minor */
#define NEURON_MAX_CORES		8
#define NEURON_MAX_SLOTS		64
#define NEURON_MAX_VECTORS		(1 + NEURON_MAX_CORES)

/* Global page. 64-bit registers may be read as 8 bytes or as lo then hi. */
#define NEURON_EXEC_MAGIC_REG		0x000	/* RO NEURON_EXEC_MAGIC */
#define NEURON_EXEC_VERSION_REG		0x004	/* RO */
#define NEURON_EXEC_NC_VERSION		0x008	/* RO 2, 3 or 4 */
#define NEURON_EXEC_CORES		0x00c	/* RO */
#define NEURON_EXEC_SLOTS		0x010	/* RO */
#define NEURON_EXEC_VECTORS		0x014	/* RO MSI-X table size */
#define NEURON_EXEC_FEATURES		0x018	/* RO NEURON_EXEC_FEATURE_* */
#define  NEURON_EXEC_FEATURE_STRICT	(1u << 0)
#define  NEURON_EXEC_FEATURE_TRACE	(1u << 1)
#define  NEURON_EXEC_FEATURE_FENCE	(1u << 2)
#define NEURON_EXEC_RING_ORDER_MAX	0x01c	/* RO log2 of the largest ring */
#define NEURON_EXEC_CLOCK		0x020	/* RO 64-bit, nanoseconds, monotonic */
#define NEURON_EXEC_HBM_STACKS		0x028	/* RO */
#define NEURON_EXEC_HBM_STACK_MIB	0x02c	/* RO live MiB of a stack */
#define NEURON_EXEC_SBUF_BYTES		0x030	/* RO bytes of a partition */
#define NEURON_EXEC_PSUM_BYTES		0x034	/* RO bytes of a partition */
#define NEURON_EXEC_ADMIN_CAUSE		0x040	/* RW1C NEURON_EXEC_ADMIN_* ; raises vector 0 */
#define NEURON_EXEC_ADMIN_MASK		0x044	/* RW 1 = cause may raise vector 0; reset 0 */
#define  NEURON_EXEC_ADMIN_SLOT_FAULT	(1u << 0)
#define  NEURON_EXEC_ADMIN_UDMA_ABORT	(1u << 1)
#define  NEURON_EXEC_ADMIN_MEM_ERROR	(1u << 2)
#define NEURON_EXEC_SLOT_FAULTS		0x048	/* RW1C 64-bit, slots whose last job faulted */
#define NEURON_EXEC_CORE_RESET		0x050	/* WO core mask: ends the jobs on them; reads cores still resetting */

/*
 * MSI-X vector of a UDMA queue, raised by a completed destination descriptor
 * that has INT_EN. Value: vector | NEURON_EXEC_UDMA_IRQ_EN; reset value 0.
 */
#define NEURON_EXEC_UDMA_IRQ(engine, q)	(0x8000 + 4 * ((engine) * NEURON_UDMA_QUEUES + (q)))
#define  NEURON_EXEC_UDMA_IRQ_EN	(1u << 31)

/* Per-core counters, 64-bit, read only. */
#define NEURON_EXEC_CORE(c)		(0x20000 + 0x1000 * (c))
#define NEURON_CORE_WALL_BUSY_NS	0x000	/* wall time with a job on the core */
#define NEURON_CORE_MODELLED_NS		0x008	/* modelled length of the jobs that ran */
#define NEURON_CORE_JOBS		0x010	/* jobs ended */
#define NEURON_CORE_INSNS		0x018	/* instructions retired, moves while a job runs */
#define NEURON_CORE_FAULTS		0x020	/* jobs that faulted */
#define NEURON_CORE_OWNER		0x028	/* slot of the job on the core; all ones: none */
#define NEURON_CORE_PE_MACS		0x030	/* multiply-accumulates done by the tensor engine */
#define NEURON_CORE_DMA_BYTES		0x038	/* bytes moved by engine DMA */
#define NEURON_CORE_ENGINE_NS(e)	(0x080 + 8 * (e)) /* modelled busy ns; e = enum neuron_engine */

/* Context slots. */
#define NEURON_EXEC_SLOT(s)		(0x40000 + 0x1000 * (s))
#define NEURON_SLOT_CTRL		0x000	/* RW */
#define  NEURON_SLOT_CTRL_ENABLE	(1u << 0)
#define  NEURON_SLOT_CTRL_RESET		(1u << 1) /* WO: end the running job, drop the queued, indices to 0, disable */
#define NEURON_SLOT_STATUS		0x004	/* RO */
#define  NEURON_SLOT_STATUS_RUNNING	(1u << 0)
#define  NEURON_SLOT_STATUS_RESETTING	(1u << 1)
#define  NEURON_SLOT_STATUS_ERROR	(1u << 2) /* ring memory unreachable or doorbell out of range; cleared by reset */
#define NEURON_SLOT_RING_LO		0x008	/* job ring bus address, 128-byte aligned */
#define NEURON_SLOT_RING_HI		0x00c
#define NEURON_SLOT_RING_ORDER		0x010	/* log2 entries */
#define NEURON_SLOT_DOORBELL		0x014	/* WO producer index, free running 32 bits */
#define NEURON_SLOT_HEAD		0x018	/* RO jobs taken from the ring, free running */
#define NEURON_SLOT_CQ_LO		0x020	/* completion ring bus address, 128-byte aligned, zeroed by the driver */
#define NEURON_SLOT_CQ_HI		0x024
#define NEURON_SLOT_CQ_ORDER		0x028
#define NEURON_SLOT_CQ_HEAD		0x02c	/* WO consumer index, free running: the chip never overwrites unread entries */
#define NEURON_SLOT_PT_LO		0x030	/* page-table root bus address, 4 KiB aligned */
#define NEURON_SLOT_PT_HI		0x034
#define NEURON_SLOT_CORE_MASK		0x038	/* cores that jobs of the slot may use */
#define NEURON_SLOT_PRIORITY		0x03c	/* 0 low .. 3 high; the arbiter ages waiting slots */
#define NEURON_SLOT_VECTOR		0x040	/* MSI-X vector of completions | NEURON_SLOT_VECTOR_EN */
#define  NEURON_SLOT_VECTOR_EN		(1u << 31)
#define NEURON_SLOT_RETIRED		0x048	/* RO 64-bit, instructions retired by the slot */
#define NEURON_SLOT_INV_VA		0x050	/* 64-bit */
#define NEURON_SLOT_INV_SIZE		0x058	/* 64-bit; ~0 = everything */
#define NEURON_SLOT_INV			0x060	/* write 1: invalidate; reads 1 until every access with the old translation ended */
#define NEURON_SLOT_FAULT		0x080	/* RO struct neuron_fault_record of the last faulting job, 64 bytes */

#define NEURON_EXEC_MSIX_TABLE		0x0e0000
#define NEURON_EXEC_MSIX_PBA		0x0f0000

/* Page tables: 4 levels of 512 entries, 48-bit addresses, 4 KiB tables. */
#define NEURON_PTE_VALID		(1ull << 0)
#define NEURON_PTE_WRITE		(1ull << 1)
#define NEURON_PTE_LEAF			(1ull << 2)	/* level 1 (2 MiB) or level 0 (4 KiB, always set) */
#define NEURON_PTE_TARGET_SHIFT		4
#define NEURON_PTE_TARGET_MASK		(0xfull << NEURON_PTE_TARGET_SHIFT)
#define  NEURON_PTE_TARGET_HBM		0ull	/* address: BAR4 offset of the local chip */
#define  NEURON_PTE_TARGET_HOST		1ull	/* address: bus address */
#define  NEURON_PTE_TARGET_PEER		2ull	/* reserved until links exist */
#define  NEURON_PTE_TARGET_SBUF		3ull	/* reserved: SBUF of another core of the same job */
#define  NEURON_PTE_TARGET_SEM		4ull	/* reserved: semaphore page */
#define NEURON_PTE_ADDR_MASK		0x000ffffffffff000ull
#define NEURON_PTE_PEER_SHIFT		52
#define NEURON_VA_BITS			48
#define NEURON_PAGE_SHIFT		12
#define NEURON_HUGE_SHIFT		21
#define NEURON_PT_LEVELS		4
#define NEURON_PT_ENTRIES		512

/* Engines. Values 1 to 6 are those of the public nki.isa engine enum. */
enum neuron_engine {
	NEURON_ENGINE_PE	= 1,	/* tensor */
	NEURON_ENGINE_ACT	= 2,	/* scalar */
	NEURON_ENGINE_POOL	= 3,	/* gpsimd */
	NEURON_ENGINE_DMA	= 4,	/* the core's 16 DMA engines together */
	NEURON_ENGINE_DVE	= 5,	/* vector */
	NEURON_ENGINE_SP	= 6,	/* sync */
	NEURON_ENGINE_CC	= 7,	/* collectives stream */
	NEURON_ENGINE_COUNT	= 8,
};

/**
 * struct neuron_job_desc - one entry of a slot's job ring
 * @seqno: returned in the completion
 * @flags: NEURON_JOB_*; unknown bits are a BAD_JOB fault
 * @core_mask: physical cores, a non-empty subset of the slot's mask. The n-th
 *	set bit runs the program's core n; the count must equal the program's
 * @program_va: struct neuron_program_header, 128-byte aligned
 * @args_va: @arg_count entries of struct neuron_arg, 8-byte aligned; read once
 *	at job start
 * @arg_count: at most NEURON_MAX_ARGS
 * @gang_members: chips of the gang; 0 or 1: none
 * @result_va: struct neuron_completion written before the fence; 0: none
 * @fence_va: 64-bit @fence_value is written there after all outputs and the
 *	result, also when the job faults; 0: none
 * @fence_value: see @fence_va
 * @trace_va: struct neuron_trace_header and records; 0: none
 * @trace_size: bytes at @trace_va
 * @seed: of the random number generators and of jitter
 * @gang_id: same in all members
 * @reserved: 0
 */
struct neuron_job_desc {
	__le64 seqno;
	__le32 flags;
	__le32 core_mask;
	__le64 program_va;
	__le64 args_va;
	__le32 arg_count;
	__le32 gang_members;
	__le64 result_va;
	__le64 fence_va;
	__le64 fence_value;
	__le64 trace_va;
	__le64 trace_size;
	__le64 seed;
	__le64 gang_id;
	__le64 reserved[4];
};

#define NEURON_JOB_STRICT		(1u << 0)	/* check races, uninitialised reads, limits */
#define NEURON_JOB_TIMING_ONLY		(1u << 1)	/* modelled time without data; not with STRICT */
#define NEURON_JOB_JITTER		(1u << 2)	/* vary every latency by @seed */
#define NEURON_JOB_STOCHASTIC_ROUNDING	(1u << 3)
#define NEURON_JOB_THROTTLE		(1u << 4)	/* dI/dt: the tensor engine starts at half speed (Trn2 on) */
#define NEURON_JOB_FLAGS		0x1fu
#define NEURON_MAX_ARGS			1024

/**
 * struct neuron_arg - one entry of a job's argument table
 * @va: device virtual address of the tensor
 * @size: bytes; accesses outside are an ARG_BOUNDS fault
 * @access: NEURON_ARG_READ, NEURON_ARG_WRITE, NEURON_ARG_SCRATCH
 * @reserved: 0
 */
struct neuron_arg {
	__le64 va;
	__le64 size;
	__le32 access;
	__le32 reserved;
};

#define NEURON_ARG_READ			(1u << 0)
#define NEURON_ARG_WRITE		(1u << 1)
#define NEURON_ARG_SCRATCH		(1u << 2)	/* undefined at job start: strict mode looks */
#define NEURON_ARG_FLAGS		0x7u

/**
 * struct neuron_program_stream - instructions of one engine of one core
 * @offset: bytes from the program header, 128-byte aligned
 * @words: 128-byte words; 0: the engine is idle
 * @reserved: 0
 */
struct neuron_program_stream {
	__le64 offset;
	__le32 words;
	__le32 reserved;
};

/**
 * struct neuron_program_header - what a job's program_va points at
 * @magic: NEURON_PROGRAM_MAGIC
 * @isa_version: NEURON_ISA_VERSION of uapi/neuron/isa.h
 * @nc_version: NeuronCore version the program was made for; must be the chip's
 * @cores: 1 to NEURON_MAX_CORES
 * @size: bytes of header and streams together
 * @arg_count: arguments the program names; a job must bring as many
 * @flags: 0
 * @stream: by core and enum neuron_engine; indices 0 and NEURON_ENGINE_DMA are
 *	unused and 0
 */
struct neuron_program_header {
	__le32 magic;
	__le16 isa_version;
	__u8 nc_version;
	__u8 cores;
	__le64 size;
	__le32 arg_count;
	__le32 flags;
	__le64 reserved[13];
	struct neuron_program_stream stream[NEURON_MAX_CORES][NEURON_ENGINE_COUNT];
};

#define NEURON_PROGRAM_MAGIC		0x4752504eu	/* "NPRG" */

/* Codes of struct neuron_fault_record and struct neuron_completion. */
enum neuron_fault {
#define NEURON_FAULT(code, name, status, text) NEURON_FAULT_##name = code,
#include "fault.def"
#undef NEURON_FAULT
	NEURON_FAULT_COUNT
};

/* Memory spaces, also used by instruction operands. */
enum neuron_space {
	NEURON_SPACE_NONE	= 0,
	NEURON_SPACE_SBUF	= 1,
	NEURON_SPACE_PSUM	= 2,
	NEURON_SPACE_HBM	= 3,	/* an argument: HBM or host memory */
	NEURON_SPACE_REG	= 4,	/* sequencer register */
};

/**
 * struct neuron_fault_record - why and where a job faulted
 * @code: enum neuron_fault
 * @core: the program's core number
 * @engine: enum neuron_engine
 * @opcode: of the instruction
 * @pc: word index in the engine's stream
 * @debug_id: of the instruction (line table)
 * @other_debug_id: DATA_RACE: of the other access
 * @other_engine: DATA_RACE: its engine; DEADLOCK: last engine to update
 * @space: enum neuron_space of @addr
 * @partition: SBUF and PSUM: first partition
 * @index: argument, semaphore, index value or operand number, by @code
 * @addr: byte offset in the space, or device virtual address
 * @size: bytes
 * @value: expected semaphore value, or the limit that was broken
 * @ticks: modelled time of the fault
 * @waiting: DEADLOCK: streams that wait, bit 8 * core + engine
 */
struct neuron_fault_record {
	__le16 code;
	__u8 core;
	__u8 engine;
	__u8 opcode;
	__u8 other_engine;
	__u8 space;
	__u8 partition;
	__le32 pc;
	__le32 debug_id;
	__le32 other_debug_id;
	__le32 index;
	__le64 addr;
	__le64 size;
	__le64 value;
	__le64 ticks;
	__le64 waiting;
};

/**
 * struct neuron_completion - one entry of a slot's completion ring, also
 *	written at a job's result_va
 * @seqno: of the job
 * @status: enum neuron_fault
 * @phase: bit 0 flips with every pass of the ring, first pass 1; written last.
 *	1 at result_va
 * @wall_start: NEURON_EXEC_CLOCK when the job got its cores
 * @wall_end: NEURON_EXEC_CLOCK when it ended
 * @modelled_ticks: modelled length in 1 / NEURON_TICK_HZ seconds
 * @instructions: retired
 * @core_mask: cores it ran on
 * @trace_records: written at trace_va
 * @fault: valid when @status is not NEURON_FAULT_NONE
 */
struct neuron_completion {
	__le64 seqno;
	__le32 status;
	__le32 phase;
	__le64 wall_start;
	__le64 wall_end;
	__le64 modelled_ticks;
	__le64 instructions;
	__le32 core_mask;
	__le32 trace_records;
	__le64 reserved;
	struct neuron_fault_record fault;
};

/* Modelled time: every published engine clock is a whole number of ticks. */
#define NEURON_TICK_HZ			33600000000ull

#endif /* NEURON_REGS_H */
