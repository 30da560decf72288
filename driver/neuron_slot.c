// SPDX-License-Identifier: GPL-2.0
/*
 * Context slots of the execution block: rings, completions, reset.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "neuron_ctx.h"
#include "neuron_device.h"
#include "neuron_exec.h"
#include "neuron_vm.h"

#define RING_ENTRIES	BIT(NEURON_RING_ORDER)
#define RING_MASK	(RING_ENTRIES - 1)
#define RING_BYTES	(RING_ENTRIES * sizeof(struct neuron_job_desc))
#define CQ_BYTES	(RING_ENTRIES * sizeof(struct neuron_completion))

#define RESET_TIMEOUT_US	(10 * USEC_PER_SEC)
#define INV_TIMEOUT_US		(5 * USEC_PER_SEC)

static void slot_write64(struct neuron_slot *slot, u32 lo, u64 val)
{
	writel(lower_32_bits(val), slot->regs + lo);
	writel(upper_32_bits(val), slot->regs + lo + 4);
}

/* The next completion, copied, and the fence of its job; NULL: there is none. */
static struct neuron_fence *neuron_slot_pop(struct neuron_slot *slot,
					    struct neuron_completion *c, bool *broken)
{
	struct neuron_completion *cqe = &slot->cq[slot->tail & RING_MASK];
	u32 phase = ~(slot->tail >> NEURON_RING_ORDER) & 1;
	struct neuron_fence *fence;

	*broken = false;
	if (slot->tail == slot->head || (le32_to_cpu(READ_ONCE(cqe->phase)) & 1) != phase)
		return NULL;
	/* The phase was written last. */
	dma_rmb();
	memcpy(c, cqe, sizeof(*c));
	if (le64_to_cpu(c->seqno) != slot->tail) {
		*broken = true;
		return NULL;
	}
	fence = slot->inflight[slot->tail & RING_MASK];
	slot->inflight[slot->tail & RING_MASK] = NULL;
	slot->tail++;
	return fence;
}

static int neuron_status_error(u32 status)
{
	switch (status) {
	case NEURON_FAULT_NONE:
		return 0;
	case NEURON_FAULT_ABORTED:
		return -ECANCELED;
	default:
		return -EIO;
	}
}

/**
 * neuron_slot_complete() - signal the jobs that have ended
 * @slot: slot
 *
 * Context: any, also hard interrupts.
 * Return: number of jobs.
 */
unsigned int neuron_slot_complete(struct neuron_slot *slot)
{
	struct neuron_completion c;
	struct neuron_fence *fence;
	unsigned int n = 0;
	unsigned long flags;
	bool broken;

	for (;;) {
		spin_lock_irqsave(&slot->lock, flags);
		fence = NULL;
		broken = false;
		if (slot->ctx)
			fence = neuron_slot_pop(slot, &c, &broken);
		if (fence) {
			writel(slot->tail, slot->regs + NEURON_SLOT_CQ_HEAD);
			neuron_ctx_completed(slot->ctx, &c);
		}
		spin_unlock_irqrestore(&slot->lock, flags);
		if (broken)
			drm_err_ratelimited(&slot->ndev->drm,
					    "slot %u: completion of job %llu, %u was next\n",
					    slot->id, le64_to_cpu(c.seqno), slot->tail);
		if (!fence)
			return n;
		atomic_dec(&slot->ndev->inflight);
		neuron_fence_signal(fence, neuron_status_error(le32_to_cpu(c.status)));
		n++;
	}
}

/**
 * neuron_slot_post() - give a job to the device
 * @slot: slot
 * @desc: seqno is filled in
 * @fence: signalled when the job has ended
 *
 * Called from the scheduler's worker; its credits say that there is room.
 *
 * Return: 0, or -ECANCELED when the slot was stopped.
 */
int neuron_slot_post(struct neuron_slot *slot, struct neuron_job_desc *desc,
		     struct neuron_fence *fence)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&slot->lock, flags);
	if (!slot->ctx) {
		spin_unlock_irqrestore(&slot->lock, flags);
		return -ECANCELED;
	}
	i = slot->head & RING_MASK;
	desc->seqno = cpu_to_le64(slot->head);
	slot->ring[i] = *desc;
	slot->inflight[i] = fence;
	dma_fence_get(&fence->base);
	slot->head++;
	neuron_irq_busy(slot->ndev);
	/* writel() orders the entry before the doorbell. */
	writel(slot->head, slot->regs + NEURON_SLOT_DOORBELL);
	spin_unlock_irqrestore(&slot->lock, flags);
	return 0;
}

static void neuron_slot_program(struct neuron_slot *slot, struct neuron_ctx *ctx)
{
	void __iomem *regs = slot->regs;
	u32 vector = 0;

	memset(slot->cq, 0, CQ_BYTES);
	slot->head = 0;
	slot->tail = 0;
	slot->retired = 0;
	if (slot->ndev->vectors)
		vector = slot->vector | NEURON_SLOT_VECTOR_EN;
	slot_write64(slot, NEURON_SLOT_RING_LO, slot->dma);
	writel(NEURON_RING_ORDER, regs + NEURON_SLOT_RING_ORDER);
	slot_write64(slot, NEURON_SLOT_CQ_LO, slot->dma + RING_BYTES);
	writel(NEURON_RING_ORDER, regs + NEURON_SLOT_CQ_ORDER);
	slot_write64(slot, NEURON_SLOT_PT_LO, ctx->vm->mmu.root->dma);
	writel(ctx->core_mask, regs + NEURON_SLOT_CORE_MASK);
	writel(ctx->priority, regs + NEURON_SLOT_PRIORITY);
	writel(vector, regs + NEURON_SLOT_VECTOR);
	writel(NEURON_SLOT_CTRL_ENABLE, regs + NEURON_SLOT_CTRL);
}

static int neuron_slot_hw_reset(struct neuron_slot *slot)
{
	u32 status;

	writel(NEURON_SLOT_CTRL_RESET, slot->regs + NEURON_SLOT_CTRL);
	return read_poll_timeout(readl, status, !(status & NEURON_SLOT_STATUS_RESETTING), 20,
				 RESET_TIMEOUT_US, false, slot->regs + NEURON_SLOT_STATUS);
}

/* The device has forgotten the jobs in flight: the first one is to blame. */
static void neuron_slot_signal_all(struct neuron_slot *slot, int first, int rest)
{
	struct neuron_fence *fence;
	unsigned long flags;
	int error = first;

	for (;;) {
		fence = NULL;
		spin_lock_irqsave(&slot->lock, flags);
		if (slot->tail != slot->head) {
			fence = slot->inflight[slot->tail & RING_MASK];
			slot->inflight[slot->tail & RING_MASK] = NULL;
			slot->tail++;
		}
		spin_unlock_irqrestore(&slot->lock, flags);
		if (!fence)
			return;
		atomic_dec(&slot->ndev->inflight);
		neuron_fence_signal(fence, error);
		error = rest;
	}
}

/* True while a core that the slot waits for is busy with somebody else's job. */
static bool neuron_slot_waits(struct neuron_slot *slot, u32 core_mask)
{
	struct neuron_device *ndev = slot->ndev;
	unsigned long mask = core_mask;
	unsigned int c;

	for_each_set_bit(c, &mask, ndev->arch->cores) {
		u64 owner = neuron_exec_counter(ndev, NEURON_EXEC_CORE(c) + NEURON_CORE_OWNER);

		if (owner != ~0ull && owner != slot->id)
			return true;
	}
	return false;
}

static bool neuron_slot_hung(void *owner, struct neuron_job *job)
{
	struct neuron_slot *slot = owner;
	bool progress = false;
	u64 retired;
	u32 status;
	int idx;

	if (neuron_slot_complete(slot))
		drm_warn(&slot->ndev->drm, "slot %u: an interrupt was lost\n", slot->id);
	if (dma_fence_is_signaled(&job->fence->base))
		return true;
	if (!drm_dev_enter(&slot->ndev->drm, &idx))
		return false;
	mutex_lock(&slot->hw_lock);
	if (slot->ctx) {
		retired = readq(slot->regs + NEURON_SLOT_RETIRED);
		status = readl(slot->regs + NEURON_SLOT_STATUS);
		progress = !(status & NEURON_SLOT_STATUS_ERROR) &&
			   (retired != slot->retired ||
			    (!(status & NEURON_SLOT_STATUS_RUNNING) &&
			     neuron_slot_waits(slot, slot->ctx->core_mask)));
		slot->retired = retired;
	}
	mutex_unlock(&slot->hw_lock);
	drm_dev_exit(idx);
	return progress;
}

static void neuron_slot_recover(void *owner, struct neuron_job *job)
{
	struct neuron_slot *slot = owner;
	struct neuron_device *ndev = slot->ndev;
	struct neuron_ctx *ctx = job->ctx;
	int idx, ret;

	/* Who takes the chip away, or stops the slot, signals its jobs, too. */
	if (!drm_dev_enter(&ndev->drm, &idx))
		return;
	mutex_lock(&slot->hw_lock);
	if (slot->ctx == ctx) {
		drm_err(&ndev->drm, "slot %u: job %u made no progress, status %#x\n",
			slot->id, slot->tail, readl(slot->regs + NEURON_SLOT_STATUS));
		ret = neuron_slot_hw_reset(slot);
		neuron_ctx_set_state(ctx, DRM_NEURON_CTX_TIMEDOUT |
				     (ret ? DRM_NEURON_CTX_FATAL : 0));
		neuron_slot_signal_all(slot, -ETIME, -ECANCELED);
		if (!ret)
			neuron_slot_program(slot, ctx);
	}
	mutex_unlock(&slot->hw_lock);
	drm_dev_exit(idx);
}

static const struct neuron_sched_ops neuron_slot_ops = {
	.hung = neuron_slot_hung,
	.recover = neuron_slot_recover,
};

/**
 * neuron_slot_start() - let a context's jobs run
 * @slot: slot of the context, not in use
 * @ctx: with an address space and cores
 *
 * Return: 0 or an error; neuron_slot_free() also after an error.
 */
int neuron_slot_start(struct neuron_slot *slot, struct neuron_ctx *ctx)
{
	struct neuron_device *ndev = slot->ndev;
	int ret;

	slot->ring = dma_alloc_coherent(&ndev->pdev->dev, RING_BYTES + CQ_BYTES, &slot->dma,
					GFP_KERNEL_ACCOUNT);
	if (!slot->ring)
		return -ENOMEM;
	slot->cq = (void *)slot->ring + RING_BYTES;
	slot->vector = neuron_irq_pick(ndev, __ffs(ctx->core_mask));
	mutex_lock(&slot->hw_lock);
	ret = neuron_slot_hw_reset(slot);
	if (!ret) {
		neuron_slot_program(slot, ctx);
		spin_lock_irq(&slot->lock);
		slot->ctx = ctx;
		spin_unlock_irq(&slot->lock);
		set_bit(slot->id, ndev->vector[slot->vector].slots);
	}
	mutex_unlock(&slot->hw_lock);
	return ret;
}

/**
 * neuron_slot_stop() - end a context's jobs, with -ECANCELED
 * @slot: slot; may be stopped already
 *
 * Afterwards the device uses neither the rings nor the page tables.
 */
void neuron_slot_stop(struct neuron_slot *slot)
{
	struct neuron_device *ndev = slot->ndev;
	struct neuron_ctx *ctx;
	int ret;

	mutex_lock(&slot->hw_lock);
	spin_lock_irq(&slot->lock);
	ctx = slot->ctx;
	slot->ctx = NULL;
	spin_unlock_irq(&slot->lock);
	if (ctx) {
		ret = neuron_slot_hw_reset(slot);
		if (ret) {
			/* It may still read its rings: they are not given back. */
			drm_err(&ndev->drm, "slot %u: reset timed out\n", slot->id);
			slot->ring = NULL;
		}
		clear_bit(slot->id, ndev->vector[slot->vector].slots);
		neuron_irq_sync(ndev, slot->vector);
		neuron_slot_signal_all(slot, -ECANCELED, -ECANCELED);
	}
	mutex_unlock(&slot->hw_lock);
}

void neuron_slot_free(struct neuron_slot *slot)
{
	if (slot->ring)
		dma_free_coherent(&slot->ndev->pdev->dev, RING_BYTES + CQ_BYTES, slot->ring,
				  slot->dma);
	slot->ring = NULL;
	slot->cq = NULL;
}

/**
 * neuron_slot_invalidate() - make the device forget translations
 * @slot: slot
 * @va: first byte
 * @size: bytes
 *
 * Return: 0 once every access by the old translations has ended, or -ETIMEDOUT.
 */
int neuron_slot_invalidate(struct neuron_slot *slot, u64 va, u64 size)
{
	int ret = 0;
	u32 val;

	mutex_lock(&slot->hw_lock);
	if (slot->ctx) {
		slot_write64(slot, NEURON_SLOT_INV_VA, va);
		slot_write64(slot, NEURON_SLOT_INV_SIZE, size);
		/* writel() orders the page tables before the command. */
		writel(1, slot->regs + NEURON_SLOT_INV);
		val = readl(slot->regs + NEURON_SLOT_INV);
		if (val)
			ret = read_poll_timeout(readl, val, !val, 10, INV_TIMEOUT_US, false,
						slot->regs + NEURON_SLOT_INV);
	}
	mutex_unlock(&slot->hw_lock);
	return ret;
}

/**
 * neuron_slots_init() - prepare the slots
 * @ndev: with an execution block
 *
 * Schedulers are made here and live as long as the DRM device: fences that
 * outlive a context name them.
 *
 * Return: 0 or an error; neuron_slots_release() undoes it in either case.
 */
int neuron_slots_init(struct neuron_device *ndev)
{
	unsigned int i;
	int ret = 0;

	ndev->slots = kvcalloc(ndev->slots_count, sizeof(*ndev->slots), GFP_KERNEL);
	if (!ndev->slots)
		return -ENOMEM;
	for (i = 0; i < ndev->slots_count; i++) {
		struct neuron_slot *slot = &ndev->slots[i];

		slot->ndev = ndev;
		slot->id = i;
		slot->regs = ndev->exec + NEURON_EXEC_SLOT(i);
		mutex_init(&slot->hw_lock);
		spin_lock_init(&slot->lock);
		ret = neuron_sched_init(&slot->sched, ndev, &neuron_slot_ops, slot,
					"neuron-exec", RING_ENTRIES, false);
		if (ret)
			break;
		slot->sched_ready = true;
	}
	return ret;
}

void neuron_slots_release(struct neuron_device *ndev)
{
	unsigned int i;

	for (i = 0; ndev->slots && i < ndev->slots_count; i++)
		if (ndev->slots[i].sched_ready)
			neuron_sched_fini(&ndev->slots[i].sched);
	kvfree(ndev->slots);
	ndev->slots = NULL;
}
