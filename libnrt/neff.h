/* SPDX-License-Identifier: MIT */
/*
 * A NEFF in memory: what the reader (libnrt, tools) fills and the writer (nki)
 * consumes. Documentation/neff.rst describes the container.
 *
 * Threads: no global state; an object belongs to one thread at a time.
 */
#ifndef LIBNRT_NEFF_H
#define LIBNRT_NEFF_H

#include <stddef.h>
#include <stdint.h>

#include "neuron/regs.h"

#define NEFF_HEADER_BYTES	1024
#define NEFF_PKG_VERSION	2
#define NEFF_VERSION_MAJOR	2
#define NEFF_VERSION_MINOR	0
#define NEFF_DEF_VERSION	1
#define NEFF_FEATURE_OPEN_ISA	(1ull << 32)
#define NEFF_MAX_CORES		2	/* lnc_size: 1 or 2 */
#define NEFF_MAX_DIMS		16
#define NEFF_NAME_BYTES		256	/* names, with the final 0 */
#define NEFF_MAX_LINES		(1u << 24)

/**
 * struct neff_header - the first 1,024 bytes of a file, little-endian
 *
 * Field names and offsets as AWS documents them ("Working with NEFF files").
 */
struct neff_header {
	uint64_t pkg_version;
	uint64_t header_size;
	uint64_t data_size;
	uint64_t neff_version_major;
	uint64_t neff_version_minor;
	char neff_build_version[128];
	uint32_t num_tpb;
	uint8_t hash[32];
	uint8_t uuid[16];
	char name[256];
	uint32_t requested_tpb_count;
	uint8_t tpb_per_node[64];
	uint64_t feature_bits;
	uint32_t lnc_size;
	uint8_t pad[468];
};

_Static_assert(sizeof(struct neff_header) == NEFF_HEADER_BYTES, "NEFF header layout");

enum neff_var_type {
	NEFF_VAR_NONE,		/* argument number not used */
	NEFF_VAR_INPUT,		/* "input" */
	NEFF_VAR_OUTPUT,	/* "output" */
	NEFF_VAR_FILE,		/* "file": constant */
	NEFF_VAR_TMP,		/* "tmp-buf": scratch */
};

/**
 * struct neff_arg - one argument of the program
 * @type: kind
 * @name: tensor or variable name, 1 to 255 bytes; owned
 * @size: bytes, > 0
 * @dtype: data type name ("float32"), static string; INPUT and OUTPUT only
 * @ndim: dimensions, 0 to NEFF_MAX_DIMS; INPUT and OUTPUT only
 * @shape: elements by dimension
 * @data: FILE: @size bytes; owned
 */
struct neff_arg {
	enum neff_var_type type;
	char *name;
	uint64_t size;
	const char *dtype;
	unsigned int ndim;
	uint32_t shape[NEFF_MAX_DIMS];
	void *data;
};

/**
 * struct neff_line - source of an instruction
 * @file: source file; owned
 * @line: from 1
 * @name: function of the builder, e.g. "nki_nc_matmul"; owned
 */
struct neff_line {
	char *file;
	char *name;
	uint32_t line;
};

/**
 * struct neff_core - what runs on one physical core
 * @stream: by enum neuron_engine: 128-byte words, or NULL; owned
 * @words: by enum neuron_engine
 * @semaphore_count: semaphores used, 0 to 256
 * @lines: entry i belongs to debug_id i + 1; owned
 * @line_count: entries
 */
struct neff_core {
	void *stream[NEURON_ENGINE_COUNT];
	uint32_t words[NEURON_ENGINE_COUNT];
	unsigned int semaphore_count;
	struct neff_line *lines;
	uint32_t line_count;
};

/**
 * struct neff - the whole file
 * @name: of the model
 * @tool_version: who made it
 * @target: "trn1", "inf2", "trn2" or "trn3"
 * @uuid: first bytes of @hash
 * @hash: SHA-256 of the archive; the writer computes it
 * @isa_version: NEURON_ISA_VERSION it was made for
 * @nc_version: NeuronCore version, 2 to 4
 * @core_count: physical cores, 1 to NEFF_MAX_CORES; also lnc_size
 * @core: them
 * @arg_count: arguments, at most NEURON_MAX_ARGS
 * @args: by argument number; owned
 */
struct neff {
	char name[NEFF_NAME_BYTES];
	char tool_version[128];
	char target[8];
	uint8_t uuid[16];
	uint8_t hash[32];
	unsigned int isa_version;
	unsigned int nc_version;
	unsigned int core_count;
	struct neff_core core[NEFF_MAX_CORES];
	unsigned int arg_count;
	struct neff_arg *args;
};

/**
 * neff_read() - parse a NEFF
 * @bytes: the file; may be freed or changed when the function has returned
 * @size: its bytes
 * @neff: set on success; end with neff_free()
 * @error: on failure, what is wrong and what is allowed; may be NULL
 * @error_size: bytes at @error
 *
 * Return: 0; -EINVAL malformed; -EOPNOTSUPP a version, feature or encoding that
 * is not ours; -ENOMEM.
 */
int neff_read(const void *bytes, size_t size, struct neff **neff,
	      char *error, size_t error_size);

/**
 * neff_read_file() - neff_read() of a file
 * @path: file
 * @neff: set on success
 * @error: as for neff_read()
 * @error_size: bytes at @error
 *
 * Return: as neff_read(), or the errno of open() and read().
 */
int neff_read_file(const char *path, struct neff **neff,
		   char *error, size_t error_size);

/**
 * neff_free() - free a NEFF and everything it owns
 * @neff: NULL is allowed. Owned pointers came from malloc()
 */
void neff_free(struct neff *neff);

/**
 * neff_line() - source of an instruction
 * @neff: file
 * @core: program core
 * @debug_id: of the instruction
 *
 * Return: the line, or NULL when there is none.
 */
const struct neff_line *neff_line(const struct neff *neff, unsigned int core,
				  uint32_t debug_id);

/**
 * neff_dtype_size() - bytes of an element
 * @dtype: name, e.g. "bfloat16"
 * @canonical: set to a static copy of the name; may be NULL
 *
 * Return: bytes, 0 for an unknown name.
 */
unsigned int neff_dtype_size(const char *dtype, const char **canonical);

/**
 * neff_engine_key() - key of an engine in def.json
 * @engine: enum neuron_engine
 *
 * Return: "pe", "act", "dve", "pool", "sp", "cc", or NULL for no stream.
 */
const char *neff_engine_key(unsigned int engine);

/**
 * neff_engine_file() - file name of an engine's stream
 * @engine: enum neuron_engine
 *
 * Return: "PE.bin" and so on, or NULL.
 */
const char *neff_engine_file(unsigned int engine);

/**
 * neff_var_type_name() - text of a variable's type in def.json
 * @type: kind
 */
const char *neff_var_type_name(enum neff_var_type type);

#endif /* LIBNRT_NEFF_H */
