/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The chip as the driver sees it, and the objects whose lifetime is the chip's.
 */
#ifndef NEURON_DEVICE_H
#define NEURON_DEVICE_H

#include <linux/hrtimer.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>
#include <drm/drm_file.h>

#include <drm/neuron_accel.h>
#include <neuron/regs.h>

#include "neuron_compat.h"
#include "neuron_sched.h"

#define NEURON_MAX_STACKS	4
#define NEURON_MAX_H2T		4
#define NEURON_QUEUES_PER_H2T	2
#define NEURON_MAX_COPY_QUEUES	(NEURON_MAX_H2T * NEURON_QUEUES_PER_H2T)
#define NEURON_HBM_PAGE		SZ_64K
#define NEURON_VA_START		SZ_64K
#define NEURON_VA_END		BIT_ULL(NEURON_VA_BITS)

#define NEURON_MAX_JOBS		64	/* in one SUBMIT */
#define NEURON_MAX_SYNCS	64	/* of one job */
#define NEURON_MAX_BINDS	1024	/* in one VM_BIND */
#define NEURON_QUEUE_DEPTH	1024	/* jobs in flight in a context */
#define NEURON_RING_ORDER	8	/* log2 entries of a slot's rings */

/* One row of uapi/neuron/arch.def. */
struct neuron_arch {
	const char *name;
	u16 device_id;
	u8 nc_version;
	u8 cores;
	u8 stacks;
	u8 host_bit;
	u8 h2t_engines;
	u8 engines;		/* UDMA engines; those between host and HBM are the last */
	u64 stack_size;
	u64 stack_stride;	/* distance of two stacks in BAR4 */
};

/**
 * struct neuron_hbm - one HBM stack
 * @mm: allocator of offsets in the stack, protected by neuron_device.hbm_lock
 * @size: bytes
 * @used: bytes allocated
 * @ready: @mm was initialised
 */
struct neuron_hbm {
	struct gpu_buddy mm;
	u64 size;
	u64 used;
	bool ready;
};

/**
 * struct neuron_vector - one interrupt, or what the poll timer looks at
 * @ndev: the chip
 * @index: MSI-X vector
 * @slots: slots that signal it
 * @queues: UDMA queues that signal it
 */
struct neuron_vector {
	struct neuron_device *ndev;
	unsigned int index;
	DECLARE_BITMAP(slots, NEURON_MAX_SLOTS);
	DECLARE_BITMAP(queues, NEURON_MAX_COPY_QUEUES);
};

/**
 * struct neuron_udmaq - one UDMA queue that copies
 * @ndev: the chip
 * @sched: feeds it; one credit is one descriptor
 * @regs: engine window
 * @engine: number of the engine among all of the chip
 * @index: queue of the engine
 * @vector: interrupt that says it completed something
 * @m2s: source descriptors
 * @s2m: destination descriptors
 * @marks: words that markers copy to @done_word
 * @done_word: written by the device: number of the last piece that completed
 * @dma: bus address of @m2s; the rest follows
 * @tail: next descriptor; only the scheduler's worker changes it
 * @ring_id: of the next descriptor
 * @lock: protects the members below
 * @issued: number of the last piece given to the device
 * @done: number of the last piece whose fence was signalled
 * @dead: the chip is gone
 * @failures: how often pieces were lost
 * @inflight: fences of the pieces between @done and @issued
 */
struct neuron_udmaq {
	struct neuron_device *ndev;
	struct neuron_sched sched;
	void __iomem *regs;
	unsigned int engine;
	unsigned int index;
	unsigned int vector;
	struct neuron_udma_desc *m2s;
	struct neuron_udma_desc *s2m;
	__le32 *marks;
	__le32 *done_word;
	dma_addr_t dma;
	u32 tail;
	u32 ring_id;
	spinlock_t lock; /* see above */
	u32 issued;
	u32 done;
	bool dead;
	u32 failures;
	struct neuron_fence **inflight;
};

/**
 * struct neuron_slot - a context slot of the execution block
 * @ndev: the chip
 * @id: number
 * @sched: feeds it; one credit is one entry of the job ring. Lives as long as
 *	the DRM device, so that fences may outlive contexts
 * @sched_ready: @sched was initialised
 * @regs: its registers
 * @ring: job ring
 * @cq: completion ring
 * @dma: bus address of @ring; @cq follows
 * @hw_lock: serialises resets
 * @lock: protects the members below
 * @ctx: context that owns it, NULL while it is stopped
 * @head: jobs given to the device, free running
 * @tail: completions seen, free running
 * @vector: interrupt
 * @retired: instructions retired when the watchdog last looked
 * @inflight: fences of the jobs between @tail and @head
 */
struct neuron_slot {
	struct neuron_device *ndev;
	unsigned int id;
	struct neuron_sched sched;
	bool sched_ready;
	void __iomem *regs;
	struct neuron_job_desc *ring;
	struct neuron_completion *cq;
	dma_addr_t dma;
	struct mutex hw_lock; /* see above */
	spinlock_t lock; /* see above */
	struct neuron_ctx *ctx;
	u32 head;
	u32 tail;
	unsigned int vector;
	u64 retired;
	struct neuron_fence *inflight[1 << NEURON_RING_ORDER];
};

/**
 * struct neuron_device - one chip
 * @drm: DRM device
 * @pdev: PCI device
 * @arch: its generation
 * @misc: firmware's mailbox
 * @h2t: windows of the UDMA engines between host and HBM
 * @exec: execution block; NULL: there is none
 * @hbm_base: CPU physical address of BAR4
 * @resets: firmware resets since probe
 * @fw_api: version of the firmware's interface
 * @routing_id: place in the instance
 * @serial: serial number
 * @exec_version: of @exec
 * @slots_count: number of @slots
 * @exec_vectors: interrupts that @exec offers
 * @sbuf_bytes: of a partition
 * @psum_bytes: of a partition
 * @vectors: interrupts in use, or 0 when completions are polled
 * @vector: what they serve; when polled the first serves all
 * @poll: looks for completions
 * @poll_busy: when it last had something to do
 * @poll_lock: protects @polling
 * @polling: @poll runs
 * @inflight: jobs and pieces given to the device, keeps @poll going
 * @hbm_lock: protects the allocators in @hbm
 * @hbm: stacks
 * @stack_stride: distance of two stacks in BAR4
 * @submit_wq: feeds the hardware
 * @reset_wq: ordered: watchdogs
 * @queues: number of @queue
 * @queue: UDMA queues
 * @next_queue: dealt to contexts in turn
 * @ctx_lock: protects the next four
 * @ctxs: contexts that hold hardware
 * @slot_map: slots in use
 * @claimed: cores held exclusively
 * @sharers: contexts that share a core
 * @slots: context slots
 * @vm_lock: protects @vms
 * @vms: address spaces
 * @kctx: context of the kernel's own fills
 * @dummy: what user mappings show once the chip is gone
 * @zeros: source of fills with zero, NEURON_UDMA_DESC_MAX_LEN bytes
 * @zeros_dma: its bus address
 */
struct neuron_device {
	struct drm_device drm;
	struct pci_dev *pdev;
	const struct neuron_arch *arch;
	void __iomem *misc;
	void __iomem *h2t[NEURON_MAX_H2T];
	void __iomem *exec;
	phys_addr_t hbm_base;
	atomic_t resets;

	u32 fw_api;
	u32 routing_id;
	u64 serial;
	u32 exec_version;
	u32 slots_count;
	u32 exec_vectors;
	u32 sbuf_bytes;
	u32 psum_bytes;

	unsigned int vectors;
	struct neuron_vector vector[NEURON_MAX_VECTORS];
	struct hrtimer poll;
	ktime_t poll_busy;
	spinlock_t poll_lock; /* see above */
	bool polling;
	atomic_t inflight;

	struct mutex hbm_lock; /* see above */
	struct neuron_hbm hbm[NEURON_MAX_STACKS];
	u64 stack_stride;

	struct workqueue_struct *submit_wq;
	struct workqueue_struct *reset_wq;
	unsigned int queues;
	struct neuron_udmaq queue[NEURON_MAX_COPY_QUEUES];
	atomic_t next_queue;

	struct mutex ctx_lock; /* see above */
	struct list_head ctxs;
	DECLARE_BITMAP(slot_map, NEURON_MAX_SLOTS);
	u32 claimed;
	u32 sharers[NEURON_MAX_CORES];
	struct neuron_slot *slots;

	struct mutex vm_lock; /* see above */
	struct list_head vms;

	struct neuron_ctx *kctx;
	struct page *dummy;
	void *zeros;
	dma_addr_t zeros_dma;
};

#define to_neuron(dev)	container_of(dev, struct neuron_device, drm)

/**
 * struct neuron_file - what an open file owns
 * @ref: one of the file, one of each context
 * @ndev: the chip
 * @vms: address spaces by id
 * @ctxs: contexts by id
 * @core_ns: wall time by core, for fdinfo
 */
struct neuron_file {
	struct kref ref;
	struct neuron_device *ndev;
	struct xarray vms;
	struct xarray ctxs;
	atomic64_t core_ns[NEURON_MAX_CORES];
};

static inline bool neuron_has_exec(const struct neuron_device *ndev)
{
	return ndev->exec;
}

static inline bool neuron_is_v2(const struct neuron_device *ndev)
{
	return ndev->arch->nc_version == 2;
}

static inline u32 neuron_cores_mask(const struct neuron_device *ndev)
{
	return BIT(ndev->arch->cores) - 1;
}

static inline bool neuron_is_qemu(const struct neuron_device *ndev)
{
	return ndev->pdev->revision == NEURON_PCI_REVISION_QEMU;
}

/* Descriptors name host memory by a bit of the address. */
static inline u64 neuron_host_dpa(const struct neuron_device *ndev, dma_addr_t dma)
{
	return dma | BIT_ULL(ndev->arch->host_bit);
}

static inline u64 neuron_exec_counter(struct neuron_device *ndev, u32 reg)
{
	return ndev->exec ? readq(ndev->exec + reg) : 0;
}

extern unsigned int neuron_timeout_ms;
extern bool neuron_force_polling;

/* neuron_hw.c */
const struct neuron_arch *neuron_hw_arch(u16 device_id);
int neuron_hw_map(struct neuron_device *ndev);
int neuron_hw_start(struct neuron_device *ndev);

/* neuron_irq.c */
void neuron_irq_init(struct neuron_device *ndev);
void neuron_irq_fini(struct neuron_device *ndev);
void neuron_irq_busy(struct neuron_device *ndev);
unsigned int neuron_irq_pick(struct neuron_device *ndev, unsigned int n);
void neuron_irq_sync(struct neuron_device *ndev, unsigned int vector);

/* neuron_udma.c */
int neuron_udma_init(struct neuron_device *ndev);
void neuron_udma_stop(struct neuron_device *ndev);
void neuron_udma_release(struct neuron_device *ndev);
unsigned int neuron_udmaq_complete(struct neuron_udmaq *q);

/* neuron_hbm.c */
int neuron_hbm_init(struct neuron_device *ndev);
void neuron_hbm_fini(struct neuron_device *ndev);
int neuron_hbm_alloc(struct neuron_device *ndev, u64 size, u32 mask, bool contiguous,
		     struct list_head *blocks, unsigned int *stack);
void neuron_hbm_free(struct neuron_device *ndev, struct list_head *blocks, u64 size,
		     unsigned int stack);
u64 neuron_hbm_dpa(const struct neuron_device *ndev, u64 offset);
void neuron_hbm_usage(struct neuron_device *ndev, u64 *total, u64 *used);

/* neuron_slot.c */
int neuron_slots_init(struct neuron_device *ndev);
void neuron_slots_release(struct neuron_device *ndev);
unsigned int neuron_slot_complete(struct neuron_slot *slot);
int neuron_slot_start(struct neuron_slot *slot, struct neuron_ctx *ctx);
void neuron_slot_stop(struct neuron_slot *slot);
void neuron_slot_free(struct neuron_slot *slot);
int neuron_slot_invalidate(struct neuron_slot *slot, u64 va, u64 size);

/* neuron_query.c */
int neuron_ioctl_dev_query(struct drm_device *dev, void *data, struct drm_file *file);
void neuron_show_fdinfo(struct drm_printer *p, struct drm_file *file);

/* neuron_drv.c */
struct neuron_file *neuron_file_get(struct neuron_file *nf);
void neuron_file_put(struct neuron_file *nf);

extern const struct attribute_group *neuron_dev_groups[];

#endif /* NEURON_DEVICE_H */
