// SPDX-License-Identifier: GPL-2.0
/*
 * Completions: by MSI-X, or by a timer that runs while anything is in flight.
 */
#include <linux/interrupt.h>

#include <drm/drm_print.h>

#include "neuron_device.h"

#define NEURON_POLL_FAST_US	50
#define NEURON_POLL_SLOW_US	1000
#define NEURON_POLL_PATIENCE_US	5000

static unsigned int neuron_vector_service(struct neuron_vector *vec)
{
	struct neuron_device *ndev = vec->ndev;
	unsigned int i, done = 0;

	for_each_set_bit(i, vec->slots, NEURON_MAX_SLOTS)
		done += neuron_slot_complete(&ndev->slots[i]);
	for_each_set_bit(i, vec->queues, NEURON_MAX_COPY_QUEUES)
		done += neuron_udmaq_complete(&ndev->queue[i]);
	return done;
}

static irqreturn_t neuron_irq(int irq, void *data)
{
	/* MSI-X is never shared: an interrupt that brings nothing is an echo. */
	neuron_vector_service(data);
	return IRQ_HANDLED;
}

static irqreturn_t neuron_irq_admin(int irq, void *data)
{
	struct neuron_vector *vec = data;
	struct neuron_device *ndev = vec->ndev;
	u32 cause = readl(ndev->exec + NEURON_EXEC_ADMIN_CAUSE);

	if (cause) {
		writel(cause, ndev->exec + NEURON_EXEC_ADMIN_CAUSE);
		if (cause & (NEURON_EXEC_ADMIN_UDMA_ABORT | NEURON_EXEC_ADMIN_MEM_ERROR))
			drm_err_ratelimited(&ndev->drm, "device error, cause %#x\n", cause);
	}
	neuron_vector_service(vec);
	return IRQ_HANDLED;
}

static enum hrtimer_restart neuron_poll(struct hrtimer *timer)
{
	struct neuron_device *ndev = container_of(timer, struct neuron_device, poll);
	enum hrtimer_restart restart = HRTIMER_RESTART;
	u64 period = NEURON_POLL_FAST_US;
	ktime_t now = ktime_get();
	unsigned long flags;

	if (neuron_vector_service(&ndev->vector[0]))
		ndev->poll_busy = now;
	else if (ktime_us_delta(now, ndev->poll_busy) > NEURON_POLL_PATIENCE_US)
		period = NEURON_POLL_SLOW_US;

	spin_lock_irqsave(&ndev->poll_lock, flags);
	if (atomic_read(&ndev->inflight)) {
		hrtimer_forward_now(timer, ns_to_ktime(period * NSEC_PER_USEC));
	} else {
		ndev->polling = false;
		restart = HRTIMER_NORESTART;
	}
	spin_unlock_irqrestore(&ndev->poll_lock, flags);
	return restart;
}

/**
 * neuron_irq_busy() - something was given to the device
 * @ndev: chip
 *
 * Every call is paired with a decrement of ndev->inflight on completion.
 */
void neuron_irq_busy(struct neuron_device *ndev)
{
	unsigned long flags;

	atomic_inc(&ndev->inflight);
	if (ndev->vectors)
		return;
	spin_lock_irqsave(&ndev->poll_lock, flags);
	ndev->poll_busy = ktime_get();
	if (!ndev->polling) {
		ndev->polling = true;
		hrtimer_start(&ndev->poll, ns_to_ktime(NEURON_POLL_FAST_US * NSEC_PER_USEC),
			      HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&ndev->poll_lock, flags);
}

/* Vectors 1 and up are dealt out; one vector alone serves everything. */
unsigned int neuron_irq_pick(struct neuron_device *ndev, unsigned int n)
{
	return ndev->vectors > 1 ? 1 + n % (ndev->vectors - 1) : 0;
}

/* No handler that saw the old slots and queues of a vector runs any more. */
void neuron_irq_sync(struct neuron_device *ndev, unsigned int vector)
{
	if (ndev->vectors)
		synchronize_irq(pci_irq_vector(ndev->pdev, vector));
}

static void neuron_irq_free(struct neuron_device *ndev, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		free_irq(pci_irq_vector(ndev->pdev, i), &ndev->vector[i]);
	pci_free_irq_vectors(ndev->pdev);
}

static int neuron_irq_request(struct neuron_device *ndev)
{
	int i, n, ret;

	n = pci_alloc_irq_vectors(ndev->pdev, 1, ndev->exec_vectors, PCI_IRQ_MSIX);
	if (n < 0)
		return n;
	for (i = 0; i < n; i++) {
		ret = request_irq(pci_irq_vector(ndev->pdev, i),
				  i ? neuron_irq : neuron_irq_admin, 0, "neuron",
				  &ndev->vector[i]);
		if (ret) {
			neuron_irq_free(ndev, i);
			return ret;
		}
	}
	return n;
}

/**
 * neuron_irq_init() - get interrupts, or fall back to polling
 * @ndev: mapped
 */
void neuron_irq_init(struct neuron_device *ndev)
{
	unsigned int i;
	int ret = -EOPNOTSUPP;

	spin_lock_init(&ndev->poll_lock);
	hrtimer_setup(&ndev->poll, neuron_poll, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	for (i = 0; i < NEURON_MAX_VECTORS; i++) {
		ndev->vector[i].ndev = ndev;
		ndev->vector[i].index = i;
	}
	if (neuron_has_exec(ndev) && !neuron_force_polling)
		ret = neuron_irq_request(ndev);
	if (ret > 0) {
		ndev->vectors = ret;
		writel(NEURON_EXEC_ADMIN_UDMA_ABORT | NEURON_EXEC_ADMIN_MEM_ERROR,
		       ndev->exec + NEURON_EXEC_ADMIN_MASK);
	} else {
		drm_info(&ndev->drm, "no interrupts (%d): completions are polled\n", ret);
	}
}

void neuron_irq_fini(struct neuron_device *ndev)
{
	if (ndev->vectors) {
		writel(0, ndev->exec + NEURON_EXEC_ADMIN_MASK);
		neuron_irq_free(ndev, ndev->vectors);
		ndev->vectors = 0;
	}
	hrtimer_cancel(&ndev->poll);
}
