/* SPDX-License-Identifier: MIT */
/*
 * The file that nrt_profile_stop() writes; Documentation/profile-file.rst.
 * libnrt writes it, tools and examples read it.
 */
#ifndef LIBNRT_PROFILE_FILE_H
#define LIBNRT_PROFILE_FILE_H

#include "neff.h"
#include "neuron/trace.h"

#define PROFILE_FILE_VERSION	1

/**
 * struct profile_execution - one traced execution
 * @seqno: number of the execution on its logical core
 * @status: NRT_STATUS
 * @modelled_ns: modelled length
 * @wall_ns: wall time on the core
 * @instructions: retired
 * @header: as the chip wrote it
 * @records: header.records entries, in order of modelled start; owned
 */
struct profile_execution {
	uint64_t seqno;
	uint32_t status;
	uint64_t modelled_ns;
	uint64_t wall_ns;
	uint64_t instructions;
	struct neuron_trace_header header;
	struct neuron_trace_record *records;
};

/**
 * struct profile_file - the whole file
 * @model: name
 * @arch: "trn2"
 * @nd: chip
 * @nc: first physical core
 * @core_count: program cores
 * @core: line tables (only lines and line_count are set)
 * @dropped_executions: executions that did not fit the buffer
 * @count: executions
 * @executions: in order; owned
 */
struct profile_file {
	char model[NEFF_NAME_BYTES];
	char arch[8];
	unsigned int nd;
	unsigned int nc;
	unsigned int core_count;
	struct neff_core core[NEFF_MAX_CORES];
	uint64_t dropped_executions;
	size_t count;
	struct profile_execution *executions;
};

/**
 * profile_write() - write a file
 * @path: created or replaced
 * @file: content
 * @error: on failure, why; may be NULL
 * @error_size: bytes at @error
 *
 * Return: 0, or a negative errno; then no file is left behind.
 */
int profile_write(const char *path, const struct profile_file *file,
		  char *error, size_t error_size);

/**
 * profile_read() - read a file
 * @path: file
 * @file: set on success; end with profile_close()
 * @error: on failure, what is wrong; may be NULL
 * @error_size: bytes at @error
 *
 * Return: 0, -EINVAL malformed, -EOPNOTSUPP another version, -ENOMEM, or the errno
 * of reading.
 */
int profile_read(const char *path, struct profile_file **file,
		 char *error, size_t error_size);

/**
 * profile_close() - free what profile_read() gave
 * @file: NULL is allowed
 */
void profile_close(struct profile_file *file);

/**
 * profile_line() - source of a record
 * @file: file
 * @core: of the record
 * @debug_id: of the record
 *
 * Return: the line, or NULL when there is none.
 */
const struct neff_line *profile_line(const struct profile_file *file, unsigned int core,
				     uint32_t debug_id);

#endif /* LIBNRT_PROFILE_FILE_H */
