/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NEURON_CTX_H
#define NEURON_CTX_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "neuron_device.h"

struct neuron_vm;

/**
 * struct neuron_ctx - an ordered stream of EXEC jobs and one of copies
 * @ref: one of the file, one of each job
 * @ndev: chip, referenced
 * @file: owner, referenced; NULL: the kernel
 * @vm: address space, referenced; NULL: a context without cores
 * @slot: where its programs run; NULL: a context without cores
 * @queue: where its copies run
 * @exec: its programs
 * @copy: its copies
 * @core_mask: cores it holds
 * @exclusive: nobody else may hold them
 * @priority: DRM_NEURON_PRIORITY_*
 * @jobs: jobs and pieces that exist
 * @idle: woken when @jobs drops
 * @submit_lock: orders arming and pushing; protects @dead against new jobs
 * @dead: no further jobs; those queued end with -ECANCELED
 * @finished: hardware and cores were given back
 * @node: in neuron_device.ctxs
 * @vm_node: in neuron_vm.ctxs
 * @release: frees it from a worker, as the last reference may be a job's
 * @state_lock: protects the members below
 * @state: DRM_NEURON_CTX_*
 * @faults: jobs that faulted
 * @fault: record of the last of them
 */
struct neuron_ctx {
	struct kref ref;
	struct neuron_device *ndev;
	struct neuron_file *file;
	struct neuron_vm *vm;
	struct neuron_slot *slot;
	struct neuron_udmaq *queue;
	struct neuron_entity exec;
	struct neuron_entity copy;
	u32 core_mask;
	bool exclusive;
	u32 priority;
	atomic_t jobs;
	wait_queue_head_t idle;
	struct mutex submit_lock; /* see above */
	bool dead;
	bool finished;
	struct list_head node;
	struct list_head vm_node;
	struct work_struct release;
	spinlock_t state_lock; /* see above */
	u32 state;
	u32 faults;
	struct neuron_fault_record fault;
};

static inline struct neuron_ctx *neuron_ctx_get(struct neuron_ctx *ctx)
{
	kref_get(&ctx->ref);
	return ctx;
}

int neuron_ctx_module_init(void);
void neuron_ctx_module_exit(void);
void neuron_ctx_flush(void);
void neuron_ctx_put(struct neuron_ctx *ctx);
struct neuron_ctx *neuron_ctx_lookup(struct neuron_file *nf, u32 id);
struct neuron_ctx *neuron_ctx_create_kernel(struct neuron_device *ndev);
void neuron_ctx_stop_file(struct neuron_file *nf);
void neuron_ctx_stop_all(struct neuron_device *ndev);
void neuron_ctx_set_state(struct neuron_ctx *ctx, u32 state);
void neuron_ctx_completed(struct neuron_ctx *ctx, const struct neuron_completion *c);
u32 neuron_ctx_file_cores(struct neuron_file *nf);

int neuron_ioctl_ctx_create(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_ctx_destroy(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_ctx_get_state(struct drm_device *dev, void *data, struct drm_file *file);
int neuron_ioctl_submit(struct drm_device *dev, void *data, struct drm_file *file);

#endif /* NEURON_CTX_H */
