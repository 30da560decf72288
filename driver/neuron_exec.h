/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NEURON_EXEC_H
#define NEURON_EXEC_H

#include "neuron_device.h"

#define NEURON_PROGRAM_ALIGN	128

/**
 * struct neuron_exec_job - one program run
 * @job: for the slot's scheduler
 * @desc: as the device reads it
 */
struct neuron_exec_job {
	struct neuron_job job;
	struct neuron_job_desc desc;
};

struct neuron_job *neuron_exec_create(struct neuron_ctx *ctx, struct drm_file *file,
				      const struct drm_neuron_exec *args);
int neuron_slot_post(struct neuron_slot *slot, struct neuron_job_desc *desc,
		     struct neuron_fence *fence);

#endif /* NEURON_EXEC_H */
