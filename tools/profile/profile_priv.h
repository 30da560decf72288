/* SPDX-License-Identifier: MIT */
#ifndef TOOLS_PROFILE_PRIV_H
#define TOOLS_PROFILE_PRIV_H

#include "profile_view.h"

/* A window that exists. */
struct profile_span {
	const struct profile_execution *execution;
	uint64_t from;
	uint64_t to;
};

int profile_resolve(const struct profile_file *file, const struct profile_view *view,
		    struct profile_span *span);
uint64_t profile_overlap(uint64_t start, uint64_t end, uint64_t from, uint64_t to);

/* Turns the records of each engine into pieces of time that do not overlap. */
struct profile_walk {
	uint64_t covered[NEURON_ENGINE_COUNT];
};

struct profile_piece {
	uint64_t busy_from;
	uint64_t busy_to;
	uint64_t wait_from;
	uint64_t wait_to;
};

void profile_walk_init(struct profile_walk *w);
void profile_walk(struct profile_walk *w, const struct neuron_trace_record *r,
		  struct profile_piece *p);

#endif /* TOOLS_PROFILE_PRIV_H */
