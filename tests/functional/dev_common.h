/* SPDX-License-Identifier: MIT */
/*
 * Helpers of the tests of libnrt/device.h. The same programs run on both
 * back-ends: NEURON_RT_SIM selects.
 */
#ifndef DEV_COMMON_H
#define DEV_COMMON_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "neuron/isa.h"
#include "neuron/regs.h"

#define SECOND_NS	1000000000ll
#define WAIT_NS		(60 * SECOND_NS)

/**
 * struct dev_program - program, arguments and results of tests in one host BO
 * @bo: mapped
 * @result, @fence: in it
 */
struct dev_program {
	struct dev_bo *bo;
	struct neuron_program_header *header;
	struct neuron_insn *code;
	struct neuron_completion *result;
	uint64_t *fence;
};

/* Offsets in the BO. */
#define DEV_PROGRAM_CODE	0x1000
#define DEV_PROGRAM_RESULT	0x8000
#define DEV_PROGRAM_FENCE	0x9000
#define DEV_PROGRAM_BYTES	0x10000

static inline int dev_program_init(struct dev *dev, unsigned int cores, struct dev_program *p)
{
	int ret = dev->backend->bo_alloc(dev, DEV_PROGRAM_BYTES, DEV_MEM_HOST, 0, &p->bo);

	if (ret)
		return ret;
	ret = dev->backend->bo_map(p->bo);
	if (ret)
		return ret;
	p->header = p->bo->cpu;
	p->code = (void *)((char *)p->bo->cpu + DEV_PROGRAM_CODE);
	p->result = (void *)((char *)p->bo->cpu + DEV_PROGRAM_RESULT);
	p->fence = (void *)((char *)p->bo->cpu + DEV_PROGRAM_FENCE);
	p->header->magic = NEURON_PROGRAM_MAGIC;
	p->header->isa_version = NEURON_ISA_VERSION;
	p->header->nc_version = dev->info.nc_version;
	p->header->cores = cores;
	p->header->size = DEV_PROGRAM_RESULT;
	return 0;
}

/* The SP engine of core 0 runs @insns words of p->code. */
static inline void dev_program_stream(struct dev_program *p, unsigned int insns)
{
	p->header->stream[0][NEURON_ENGINE_SP].offset = DEV_PROGRAM_CODE;
	p->header->stream[0][NEURON_ENGINE_SP].words = insns;
}

static inline void dev_program_fini(struct dev *dev, struct dev_program *p)
{
	dev->backend->bo_free(p->bo);
}

static inline struct dev_exec dev_program_exec(const struct dev_program *p, uint64_t fence_value)
{
	return (struct dev_exec){
		.program_va = p->bo->va,
		.result_va = p->bo->va + DEV_PROGRAM_RESULT,
		.fence_va = p->bo->va + DEV_PROGRAM_FENCE,
		.fence_value = fence_value,
	};
}

/* Runs a program to its end. */
static inline int dev_program_run(struct dev *dev, struct dev_ctx *ctx,
				  const struct dev_exec *exec, struct dev_timeline *tl,
				  uint64_t value)
{
	struct dev_sync sync = { .signal = { tl, value } };
	int ret = dev->backend->exec(ctx, exec, &sync);

	return ret ? ret : dev->backend->wait(sync.signal, WAIT_NS);
}

/* xorshift64*, so that a failure can be repeated. */
static inline uint64_t dev_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static inline void dev_fill_random(void *buf, size_t size, uint64_t seed)
{
	uint64_t state = seed * 2654435761u + 1;
	uint8_t *p = buf;
	size_t i;

	for (i = 0; i + 8 <= size; i += 8) {
		uint64_t v = dev_random(&state);

		memcpy(p + i, &v, 8);
	}
	for (; i < size; i++)
		p[i] = dev_random(&state);
}

#endif /* DEV_COMMON_H */
