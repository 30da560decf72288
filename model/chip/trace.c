// SPDX-License-Identifier: MIT
/*
 * The trace of a job: records in order of start, kept on the host until the job ends,
 * then written to the job's trace buffer, the header last.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exec_state.h"
#include "neuron/trace.h"

#define TRACE_MAX_RECORDS	(1u << 22)	/* whatever room the job names */

void trace_begin(struct exec *x)
{
	uint64_t size = le64toh(x->job->desc.trace_size);

	x->trace_count = 0;
	x->trace_dropped = 0;
	x->trace_max = 0;
	if (!x->job->desc.trace_va || size < sizeof(struct neuron_trace_header))
		return;
	x->trace_max = (size - sizeof(struct neuron_trace_header)) / sizeof(x->trace[0]);
	if (x->trace_max > TRACE_MAX_RECORDS)
		x->trace_max = TRACE_MAX_RECORDS;
}

static bool trace_grow(struct exec *x)
{
	uint64_t want = x->trace_room ? 2 * x->trace_room : 1024;
	struct neuron_trace_record *grown = realloc(x->trace, want * sizeof(*grown));

	if (!grown)
		return false;
	x->trace = grown;
	x->trace_room = want;
	return true;
}

uint64_t trace_add(struct exec *x, const struct neuron_trace_record *rec)
{
	if (!x->job->desc.trace_va)
		return UINT64_MAX;
	if (x->trace_count == x->trace_max ||
	    (x->trace_count == x->trace_room && !trace_grow(x))) {
		x->trace_dropped++;
		return UINT64_MAX;
	}
	x->trace[x->trace_count] = *rec;
	return x->trace_count++;
}

void trace_end(struct exec *x)
{
	struct chip_job *job = x->job;
	uint64_t va = le64toh(job->desc.trace_va), bad = 0;
	struct neuron_trace_header h = {
		.magic = htole32(NEURON_TRACE_MAGIC), .version = htole16(NEURON_TRACE_VERSION),
		.record_size = htole16(sizeof(x->trace[0])), .nc_version = htole32(job->nc_version),
		.cores = htole32(x->cores), .records = htole64(x->trace_count),
		.dropped = htole64(x->trace_dropped), .tick_hz = htole64(NEURON_TICK_HZ),
		.end_ticks = htole64(x->end), .seqno = job->desc.seqno,
	};
	enum neuron_fault code = NEURON_FAULT_NONE;

	if (!va || le64toh(job->desc.trace_size) < sizeof(h))
		return;
	if (x->trace_count)
		code = chip_vm_write(job->vm, va + sizeof(h), x->trace,
				     x->trace_count * sizeof(x->trace[0]), &bad);
	if (code == NEURON_FAULT_NONE)
		code = chip_vm_write(job->vm, va, &h, sizeof(h), &bad);
	if (code != NEURON_FAULT_NONE) {
		/* The job's own fault, if there is one, says more. */
		exec_fault_at(x, code, 0, 0, 0, NULL)->addr = htole64(bad);
		return;
	}
	job->trace_records = x->trace_count;
}

void trace_release(struct exec *x)
{
	if (x->trace_room * sizeof(x->trace[0]) <= KEEP_BYTES)
		return;
	free(x->trace);
	x->trace = NULL;
	x->trace_room = 0;
}
