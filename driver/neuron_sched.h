/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs and the queues that feed the hardware. Only neuron_sched.c knows that
 * drm_sched does the work.
 */
#ifndef NEURON_SCHED_H
#define NEURON_SCHED_H

#include <linux/dma-fence.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include <drm/gpu_scheduler.h>

struct neuron_ctx;
struct neuron_device;
struct neuron_job;

/**
 * struct neuron_fence - what the hardware's completion signals
 * @base: fence; first member, freed by RCU
 * @lock: of @base. Its own, so that the fence depends on nothing that may go away
 */
struct neuron_fence {
	struct dma_fence base;
	spinlock_t lock; /* of base */
};

/**
 * struct neuron_sched_ops - what a hardware queue does
 * @hung: a job did not complete in time. True: it makes progress, wait on
 * @recover: no jobs are given to the queue: reset it and signal the fences of all it has
 */
struct neuron_sched_ops {
	bool (*hung)(void *owner, struct neuron_job *job);
	void (*recover)(void *owner, struct neuron_job *job);
};

/**
 * struct neuron_sched - feeder of one hardware queue
 * @base: scheduler
 * @ops: the queue
 * @owner: first argument of @ops
 */
struct neuron_sched {
	struct drm_gpu_scheduler base;
	const struct neuron_sched_ops *ops;
	void *owner;
};

/**
 * struct neuron_job_ops - what a kind of job does
 * @run: give it to the hardware; job->fence is signalled when it is done. An
 *	error becomes the job's error. Called from a worker, must not allocate
 * @free: the job is done, or was never pushed
 */
struct neuron_job_ops {
	int (*run)(struct neuron_job *job);
	void (*free)(struct neuron_job *job);
};

/**
 * struct neuron_job - one entry of a hardware queue
 * @base: scheduler's part
 * @ops: kind
 * @ctx: context it belongs to, referenced
 * @fence: signalled by the hardware
 * @node: for lists of the owner
 * @ready: @base was initialised
 */
struct neuron_job {
	struct drm_sched_job base;
	const struct neuron_job_ops *ops;
	struct neuron_ctx *ctx;
	struct neuron_fence *fence;
	struct list_head node;
	bool ready;
};

/* A context's queue in front of a scheduler. */
struct neuron_entity {
	struct drm_sched_entity base;
	bool ready;
};

int neuron_sched_init(struct neuron_sched *sched, struct neuron_device *ndev,
		      const struct neuron_sched_ops *ops, void *owner, const char *name,
		      u32 credits, bool priorities);
void neuron_sched_fini(struct neuron_sched *sched);

int neuron_entity_init(struct neuron_entity *entity, struct neuron_sched *sched,
		       unsigned int priority);
void neuron_entity_fini(struct neuron_entity *entity);

int neuron_job_init(struct neuron_job *job, const struct neuron_job_ops *ops,
		    struct neuron_ctx *ctx, struct neuron_entity *entity, u32 credits,
		    struct drm_file *file);
void neuron_job_free(struct neuron_job *job);
int neuron_job_wait_for(struct neuron_job *job, struct dma_fence *fence);
int neuron_job_wait_later(struct neuron_job *job, u32 *index);
void neuron_job_wait_set(struct neuron_job *job, u32 index, struct dma_fence *fence);
struct dma_fence *neuron_job_arm(struct neuron_job *job);
void neuron_job_push(struct neuron_job *job);
void neuron_fence_signal(struct neuron_fence *fence, int error);

#endif /* NEURON_SCHED_H */
