/* SPDX-License-Identifier: MIT */
/* Parts of neuron-top. */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/accel.h"
#include "neuron/regs.h"

#define TOP_HISTORY	256	/* samples of utilization that are remembered */

/**
 * struct top_core - counters of one core and what they say since the last sample
 * @raw: as the driver gave them
 * @wall: per cent of wall time with a job
 * @jobs: a second
 * @errors: jobs that faulted, ever
 * @busy: modelled busy per cent by enum neuron_engine, of the jobs that ended last;
 *	< 0 unknown
 * @tflops: modelled, of the same jobs; < 0 unknown
 * @history: @wall of earlier samples, a ring that @at points into
 */
struct top_core {
	struct drm_neuron_query_core raw;
	double wall;
	double jobs;
	uint64_t errors;
	double busy[NEURON_ENGINE_COUNT];
	double tflops;
	float history[TOP_HISTORY];
	unsigned int at;
};

struct top_dev {
	char bdf[16];
	char arch[8];
	unsigned int core_count;
	uint64_t hbm_size;
	uint64_t hbm_used;
	struct top_core core[ACCEL_MAX_CORES];
};

/**
 * struct top_process - one process on one chip
 * @wall: per cent of one core
 */
struct top_process {
	struct accel_client client;
	double wall;
};

/**
 * struct top_state - the latest sample and what is remembered
 * @ns: CLOCK_MONOTONIC of the sample
 * @seconds: since the one before; 0: there was none
 */
struct top_state {
	struct top_dev *devs;
	unsigned int dev_count;
	struct top_process *processes;
	size_t process_count;
	uint64_t ns;
	double seconds;
};

/* sample.c: where samples come from */
struct top_source;

/* The driver. @error says why not. */
struct top_source *top_source_open(char *error, size_t size);
/* A file of JSON lines that neuron-top -j wrote; "-": standard input. */
struct top_source *top_source_replay(const char *path, char *error, size_t size);
void top_source_close(struct top_source *source);
/* Next sample. 0; -ENODATA: the recording ended; another errno: the chip is gone. */
int top_sample(struct top_source *source, struct top_state *state);
void top_state_free(struct top_state *state);

/* json.c */
json_t *top_to_json(const struct top_state *state);
/* Counters of a recorded line into @devs and @processes of an empty @state. */
int top_from_json(const json_t *line, struct top_state *state);

/* Engines in the order in which they are shown. */
#define TOP_ENGINES 6
extern const unsigned int top_engine[TOP_ENGINES];
extern const char *const top_engine_name[TOP_ENGINES];

/* batch.c */
void top_print(const struct top_state *state, FILE *out);
/* "0-3,6": cores of a mask. */
void top_mask_text(uint32_t mask, char *buf, size_t size);

/* screen.c: until the user quits or the source ends */
int top_screen(struct top_source *source, double delay, char *error, size_t size);

#endif /* TOOLS_TOP_H */
