// SPDX-License-Identifier: GPL-2.0
/*
 * UDMA: the engines that move memory between host and HBM. Rings hold physical
 * addresses, hence they are the kernel's alone.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "neuron_copy.h"
#include "neuron_ctx.h"
#include "neuron_device.h"

#define RING_DESCS	2048
#define MAX_PIECES	(RING_DESCS / 2)	/* a piece has a marker and something else */
#define RING_SLACK	16

#define RING_BYTES	(RING_DESCS * sizeof(struct neuron_udma_desc))
#define MARKS_OFFSET	(2 * RING_BYTES)
#define DONE_OFFSET	(MARKS_OFFSET + MAX_PIECES * sizeof(__le32))
#define COHERENT_BYTES	(DONE_OFFSET + 64)

/*
 * Set-up of an engine as the public driver does it. The offsets that have no
 * name in regs.h are written once, here, and are explained there.
 */
struct neuron_udma_write {
	u32 offset;
	u32 value;
};

static const struct neuron_udma_write engine_setup[] = {
	{ 0x00310, 0x010008f8 },	/* M2S data FIFO, packets in flight */
	{ 0x00124, 0x20808080 },	/* M2S outstanding reads */
	{ 0x3a300, 100000000 },		/* AXI time-out */
	{ 0x00408, 0 },			/* M2S completion acknowledge */
	{ NEURON_UDMA_M2S_CFG_LEN, 0x010fffff },	/* length 0 means 64 KiB */
	{ NEURON_UDMA_STREAM_CFG, 0x00000102 },
};

static const struct neuron_udma_write engine_bursts[] = {
	{ 0x00118, 0x00010008 },	/* M2S data read burst */
	{ 0x2038c, 0 },			/* S2M completion acknowledge */
};

static const struct neuron_udma_write engine_s2m[] = {
	{ 0x20124, 0x00400080 },	/* S2M outstanding reads */
	{ 0x20128, 0x40804080 },	/* S2M outstanding writes */
};

static const struct neuron_udma_write engine_errors[] = {
	{ 0x3a028, 0x28 }, { 0x380e8, 0x28 }, { 0x3a030, 0xf0000000 }, { 0x3a0b0, 0xffffffc0 },
	{ 0x3a018, 0xf0000000 }, { 0x3a098, 0xffffffc0 }, { 0x380d8, 0xfffffaff },
	{ 0x3a068, 0x28 }, { 0x380e8, 0x28 }, { 0x3a070, 0x10f8 }, { 0x3a0b0, 0xfffff03f },
	{ 0x3a058, 0x10f8 }, { 0x3a098, 0xfffff03f }, { 0x380d8, 0xfffff9ff },
	{ 0x20380, 0x1004 },		/* S2M completion */
	{ 0x00304, 0x10041 },		/* descriptors in a packet, round robin */
	{ 0x00308, 0x4181 }, { 0x20308, 0x4181 },
	{ 0x0011c, 0x10008 }, { 0x2011c, 0x10008 },
	{ 0x4001c, 1 }, { 0x40020, 1 }, { 0x40000, 1 }, { 0x40800, 0x26 },	/* SDMA wrapper */
};

#define UDMA_SPARE		0x3b460
#define UDMA_SPARE_NO_HEADS	BIT(0)
#define UDMA_VMPR(q)		(0x3c400 + 0x40 * (q))

static void engine_write(void __iomem *regs, const struct neuron_udma_write *w, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		writel(w[i].value, regs + w[i].offset);
}

static void neuron_udma_engine_init(void __iomem *regs)
{
	u32 enabled = NEURON_UDMA_Q_CFG_EN_PREF | NEURON_UDMA_Q_CFG_EN_SCHED;
	unsigned int q, i;

	for (q = 0; q < NEURON_UDMA_QUEUES; q++) {
		writel(enabled, regs + NEURON_UDMA_M2S + NEURON_UDMA_Q(q) + NEURON_UDMA_Q_CFG);
		writel(enabled, regs + NEURON_UDMA_S2M + NEURON_UDMA_Q(q) + NEURON_UDMA_Q_CFG);
	}
	engine_write(regs, engine_setup, ARRAY_SIZE(engine_setup));
	for (q = 0; q < NEURON_UDMA_QUEUES; q++)
		writel(~0u, regs + UDMA_VMPR(q));
	engine_write(regs, engine_bursts, ARRAY_SIZE(engine_bursts));
	for (q = 0; q < NEURON_UDMA_QUEUES; q++)
		for (i = 4; i <= 12; i += 4)
			writel(~0u, regs + UDMA_VMPR(q) + i);
	engine_write(regs, engine_s2m, ARRAY_SIZE(engine_s2m));
	writel(readl(regs + UDMA_SPARE) & ~UDMA_SPARE_NO_HEADS, regs + UDMA_SPARE);
	engine_write(regs, engine_errors, ARRAY_SIZE(engine_errors));
}

static void neuron_udmaq_setup_side(struct neuron_udmaq *q, u32 side, dma_addr_t ring)
{
	bool m2s = side == NEURON_UDMA_M2S;
	void __iomem *regs = q->regs + side + NEURON_UDMA_Q(q->index);
	u64 base = neuron_host_dpa(q->ndev, ring);

	if (m2s)
		writel(3, regs + NEURON_UDMA_M2S_Q_RLIMIT);
	writel(NEURON_UDMA_Q_CFG_RESET_VALUE, regs + NEURON_UDMA_Q_CFG);
	writel(NEURON_UDMA_Q_SW_CTRL_RST,
	       regs + (m2s ? NEURON_UDMA_M2S_Q_SW_CTRL : NEURON_UDMA_S2M_Q_SW_CTRL));
	writel(lower_32_bits(base), regs + NEURON_UDMA_Q_DRBP_LO);
	writel(upper_32_bits(base), regs + NEURON_UDMA_Q_DRBP_HI);
	writel(RING_DESCS, regs + NEURON_UDMA_Q_DRL);
	writel(0, regs + (m2s ? NEURON_UDMA_M2S_Q_COMP_CFG : NEURON_UDMA_S2M_Q_COMP_CFG));
	writel(NEURON_UDMA_Q_CFG_RESET_VALUE | NEURON_UDMA_Q_CFG_EN_PREF |
	       NEURON_UDMA_Q_CFG_EN_SCHED, regs + NEURON_UDMA_Q_CFG);
}

/* Empty rings on an enabled queue; nothing is in flight. */
static void neuron_udmaq_setup(struct neuron_udmaq *q)
{
	u32 irq = 0;

	memset(q->m2s, 0, 2 * RING_BYTES);
	*q->done_word = cpu_to_le32(q->done);
	q->tail = 0;
	q->ring_id = NEURON_UDMA_RING_ID_INIT;
	neuron_udmaq_setup_side(q, NEURON_UDMA_M2S, q->dma);
	neuron_udmaq_setup_side(q, NEURON_UDMA_S2M, q->dma + RING_BYTES);
	if (!neuron_has_exec(q->ndev))
		return;
	if (q->ndev->vectors)
		irq = q->vector | NEURON_EXEC_UDMA_IRQ_EN;
	writel(irq, q->ndev->exec + NEURON_EXEC_UDMA_IRQ(q->engine, q->index));
}

static void neuron_udmaq_disable(struct neuron_udmaq *q)
{
	void __iomem *m2s = q->regs + NEURON_UDMA_M2S + NEURON_UDMA_Q(q->index);
	void __iomem *s2m = q->regs + NEURON_UDMA_S2M + NEURON_UDMA_Q(q->index);

	writel(NEURON_UDMA_Q_CFG_RESET_VALUE, m2s + NEURON_UDMA_Q_CFG);
	writel(NEURON_UDMA_Q_CFG_RESET_VALUE, s2m + NEURON_UDMA_Q_CFG);
	writel(NEURON_UDMA_Q_SW_CTRL_RST, m2s + NEURON_UDMA_M2S_Q_SW_CTRL);
	writel(NEURON_UDMA_Q_SW_CTRL_RST, s2m + NEURON_UDMA_S2M_Q_SW_CTRL);
}

/* Takes the fence of the next piece that is done, or of any; NULL: there is none. */
static struct neuron_fence *neuron_udmaq_pop(struct neuron_udmaq *q, bool all)
{
	struct neuron_fence *fence = NULL;
	unsigned long flags;
	u32 seen;

	spin_lock_irqsave(&q->lock, flags);
	if (all)
		seen = q->issued;
	else
		seen = q->dead ? q->done : le32_to_cpu(READ_ONCE(*q->done_word));
	/* The word comes from the device: it may only name what is in flight. */
	if (seen != q->done && seen - q->done <= q->issued - q->done) {
		q->done++;
		fence = q->inflight[q->done % MAX_PIECES];
		q->inflight[q->done % MAX_PIECES] = NULL;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	/* The data was written before the marker. */
	dma_rmb();
	return fence;
}

static unsigned int neuron_udmaq_signal(struct neuron_udmaq *q, bool all, int error)
{
	struct neuron_fence *fence;
	unsigned int n = 0;

	while ((fence = neuron_udmaq_pop(q, all))) {
		neuron_fence_signal(fence, error);
		atomic_dec(&q->ndev->inflight);
		n++;
	}
	return n;
}

/**
 * neuron_udmaq_complete() - signal what the device has completed
 * @q: queue
 *
 * Context: any, also hard interrupts.
 * Return: number of pieces.
 */
unsigned int neuron_udmaq_complete(struct neuron_udmaq *q)
{
	return neuron_udmaq_signal(q, false, 0);
}

static void neuron_udmaq_put_desc(struct neuron_udmaq *q, u64 src, u64 dst, u32 len,
				  u32 meta, u32 dst_flags)
{
	u32 flags = (len & NEURON_UDMA_DESC_LEN_MASK) |
		    q->ring_id << NEURON_UDMA_DESC_RING_ID_SHIFT;
	struct neuron_udma_desc *m2s = &q->m2s[q->tail];
	struct neuron_udma_desc *s2m = &q->s2m[q->tail];

	m2s->flags = cpu_to_le32(flags | NEURON_UDMA_DESC_FIRST | NEURON_UDMA_DESC_LAST);
	m2s->meta = cpu_to_le32(meta);
	m2s->addr = cpu_to_le64(src);
	s2m->flags = cpu_to_le32(flags | dst_flags);
	s2m->meta = 0;
	s2m->addr = cpu_to_le64(dst);
	if (++q->tail == RING_DESCS) {
		q->tail = 0;
		q->ring_id = (q->ring_id + 1) & 3;
	}
}

static bool neuron_udmaq_issue(struct neuron_udmaq *q, struct neuron_fence *fence, u32 *seq)
{
	unsigned long flags;
	bool alive;

	spin_lock_irqsave(&q->lock, flags);
	alive = !q->dead;
	if (alive) {
		*seq = ++q->issued;
		dma_fence_get(&fence->base);
		q->inflight[*seq % MAX_PIECES] = fence;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return alive;
}

/**
 * neuron_udmaq_post() - give a piece to the device
 * @q: queue
 * @piece: at most NEURON_PIECE_XFERS transfers
 * @fence: signalled when it is done
 *
 * Called from the scheduler's worker only, which alone changes the rings; the
 * scheduler's credits say that there is room.
 *
 * Return: 0 or -ENODEV.
 */
int neuron_udmaq_post(struct neuron_udmaq *q, const struct neuron_piece *piece,
		      struct neuron_fence *fence)
{
	struct neuron_device *ndev = q->ndev;
	u64 host = neuron_host_dpa(ndev, q->dma);
	void __iomem *m2s = q->regs + NEURON_UDMA_M2S + NEURON_UDMA_Q(q->index);
	void __iomem *s2m = q->regs + NEURON_UDMA_S2M + NEURON_UDMA_Q(q->index);
	u32 mark, meta, i;

	for (i = 0; i < piece->count; i++) {
		const struct neuron_xfer *x = &piece->xfer[i];

		meta = NEURON_UDMA_META_COPY;
		if (i + 1 == piece->count)
			meta |= NEURON_UDMA_META_WRITE_BARRIER;
		neuron_udmaq_put_desc(q, x->src, x->dst, x->len, meta, 0);
	}
	neuron_irq_busy(ndev);
	if (!neuron_udmaq_issue(q, fence, &mark)) {
		atomic_dec(&ndev->inflight);
		return -ENODEV;
	}
	i = mark % MAX_PIECES;
	q->marks[i] = cpu_to_le32(mark);
	neuron_udmaq_put_desc(q, host + MARKS_OFFSET + i * sizeof(__le32), host + DONE_OFFSET,
			      sizeof(__le32), NEURON_UDMA_META_COPY,
			      ndev->vectors ? NEURON_UDMA_DESC_INT_EN : 0);
	/* The destination side first, as data may flow as soon as the source has work. */
	wmb();
	writel(piece->count + 1, s2m + NEURON_UDMA_Q_DRTP_INC);
	writel(piece->count + 1, m2s + NEURON_UDMA_Q_DRTP_INC);
	/* What the device did meanwhile need not wait for its interrupt. */
	neuron_udmaq_complete(q);
	return 0;
}

static bool neuron_udmaq_hung(void *owner, struct neuron_job *job)
{
	struct neuron_udmaq *q = owner;

	if (neuron_udmaq_complete(q)) {
		drm_warn(&q->ndev->drm, "UDMA %u.%u: an interrupt was lost\n", q->engine,
			 q->index);
		return true;
	}
	return dma_fence_is_signaled(&job->fence->base);
}

static void neuron_udmaq_recover(void *owner, struct neuron_job *job)
{
	struct neuron_udmaq *q = owner;
	struct neuron_device *ndev = q->ndev;
	int idx;

	/* Who takes the chip away signals what is in flight, too. */
	if (!drm_dev_enter(&ndev->drm, &idx))
		return;
	drm_err(&ndev->drm, "UDMA %u.%u: timed out after piece %u of %u, state %#x\n",
		q->engine, q->index, q->done, q->issued, readl(q->regs + NEURON_UDMA_STATE));
	/* Pieces that follow a lost one of the same copy must not run. */
	WRITE_ONCE(q->failures, q->failures + 1);
	neuron_udmaq_disable(q);
	neuron_udmaq_signal(q, true, -ETIME);
	/* A bad descriptor stops the engine: let it run again. */
	writel(1, q->regs + NEURON_UDMA_M2S + NEURON_UDMA_CHANGE_STATE);
	writel(1, q->regs + NEURON_UDMA_S2M + NEURON_UDMA_CHANGE_STATE);
	neuron_udmaq_setup(q);
	drm_dev_exit(idx);
}

static const struct neuron_sched_ops neuron_udmaq_ops = {
	.hung = neuron_udmaq_hung,
	.recover = neuron_udmaq_recover,
};

static int neuron_udmaq_init(struct neuron_device *ndev, unsigned int n)
{
	unsigned int engine = n % ndev->arch->h2t_engines;
	struct neuron_udmaq *q = &ndev->queue[n];
	void *mem;
	int ret;

	spin_lock_init(&q->lock);
	q->ndev = ndev;
	q->regs = ndev->h2t[engine];
	q->engine = ndev->arch->engines - ndev->arch->h2t_engines + engine;
	q->index = n / ndev->arch->h2t_engines;
	q->vector = neuron_irq_pick(ndev, n);
	q->inflight = kcalloc(MAX_PIECES, sizeof(*q->inflight), GFP_KERNEL);
	if (!q->inflight)
		return -ENOMEM;
	mem = dma_alloc_coherent(&ndev->pdev->dev, COHERENT_BYTES, &q->dma, GFP_KERNEL);
	if (!mem)
		goto err_inflight;
	q->m2s = mem;
	q->s2m = mem + RING_BYTES;
	q->marks = mem + MARKS_OFFSET;
	q->done_word = mem + DONE_OFFSET;
	ret = neuron_sched_init(&q->sched, ndev, &neuron_udmaq_ops, q, "neuron-copy",
				RING_DESCS - RING_SLACK, true);
	if (ret)
		goto err_mem;
	set_bit(n, ndev->vector[q->vector].queues);
	neuron_udmaq_setup(q);
	ndev->queues++;
	return 0;

err_mem:
	dma_free_coherent(&ndev->pdev->dev, COHERENT_BYTES, mem, q->dma);
	q->m2s = NULL;
err_inflight:
	kfree(q->inflight);
	q->inflight = NULL;
	return -ENOMEM;
}

/**
 * neuron_udma_init() - bring up the engines between host and HBM
 * @ndev: after its reset, with interrupts
 *
 * Return: 0 or an error; neuron_udma_stop() and neuron_udma_release() undo what
 * was done in either case.
 */
int neuron_udma_init(struct neuron_device *ndev)
{
	struct device *dev = &ndev->pdev->dev;
	unsigned int i, n = ndev->arch->h2t_engines * NEURON_QUEUES_PER_H2T;
	int ret = 0;

	ndev->zeros = dmam_alloc_coherent(dev, NEURON_UDMA_DESC_MAX_LEN, &ndev->zeros_dma,
					  GFP_KERNEL | __GFP_ZERO);
	if (!ndev->zeros)
		return -ENOMEM;
	for (i = 0; i < ndev->arch->h2t_engines; i++)
		neuron_udma_engine_init(ndev->h2t[i]);
	for (i = 0; i < n && !ret; i++)
		ret = neuron_udmaq_init(ndev, i);
	return ret;
}

/* The chip goes: no new pieces, and none stays in flight. */
void neuron_udma_stop(struct neuron_device *ndev)
{
	unsigned int i;

	for (i = 0; i < ndev->queues; i++) {
		struct neuron_udmaq *q = &ndev->queue[i];

		spin_lock_irq(&q->lock);
		q->dead = true;
		spin_unlock_irq(&q->lock);
		neuron_udmaq_disable(q);
		if (neuron_has_exec(ndev))
			writel(0, ndev->exec + NEURON_EXEC_UDMA_IRQ(q->engine, q->index));
		clear_bit(i, ndev->vector[q->vector].queues);
		neuron_irq_sync(ndev, q->vector);
		neuron_udmaq_signal(q, true, -ENODEV);
		dma_free_coherent(&ndev->pdev->dev, COHERENT_BYTES, q->m2s, q->dma);
		q->m2s = NULL;
	}
}

/* The last user of the DRM device is gone. */
void neuron_udma_release(struct neuron_device *ndev)
{
	unsigned int i;

	for (i = 0; i < ndev->queues; i++) {
		neuron_sched_fini(&ndev->queue[i].sched);
		kfree(ndev->queue[i].inflight);
	}
	ndev->queues = 0;
}
