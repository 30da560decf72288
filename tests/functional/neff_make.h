/* SPDX-License-Identifier: MIT */
/*
 * Hand-made NEFFs for tests: an archive of any files behind any header, so that
 * wrong ones can be made too, and a few tiny programs. Independent of the writer
 * in nki/, which is tested elsewhere.
 */
#ifndef TESTS_NEFF_MAKE_H
#define TESTS_NEFF_MAKE_H

#include <stddef.h>
#include <stdint.h>

#include "neff.h"
#include "neuron/isa.h"

struct neff_blob {
	void *bytes;
	size_t size;
};

struct neff_make;

/* A header for @cores physical cores and an empty archive. */
struct neff_make *neff_make_new(const char *name, unsigned int cores);
/* Add a file, or replace the one of that path. */
void neff_make_file(struct neff_make *m, const char *path, const void *data, size_t size);
void neff_make_text(struct neff_make *m, const char *path, const char *text);
/* Leave a file out. */
void neff_make_remove(struct neff_make *m, const char *path);
/* The header, to be changed before neff_make_finish(). data_size is set there. */
struct neff_header *neff_make_header(struct neff_make *m);
/* The file. Frees @m; the caller frees bytes. */
struct neff_blob neff_make_finish(struct neff_make *m);
/* The same with the archive compressed by gzip. */
struct neff_blob neff_make_finish_gzip(struct neff_make *m);

/*
 * Complete NEFF with input "x" and output "y" of @count fp32 each, for the chip
 * @arch. sg00 has one stream, @engine (key of def.json), of @words words; the line
 * table has 4 lines of "prog.c": 11, 12, 13, 14, names "insn1" to "insn4".
 */
struct neff_make *neff_make_program(const char *name, const char *arch, unsigned int count,
				    const char *engine, const void *stream, unsigned int words);

/* y = x by one DMA. */
struct neff_blob neff_make_copy(const char *arch, unsigned int count);
/* The same on two physical cores (lnc_size 2): each copies one half. */
struct neff_blob neff_make_two_cores(const char *arch, unsigned int count);
/* Never ends: branches to itself. */
struct neff_blob neff_make_spin(const char *arch);
/* Waits for a semaphore that nobody signals. */
struct neff_blob neff_make_deadlock(const char *arch);
/* Reads 4 bytes past the end of x. */
struct neff_blob neff_make_bounds(const char *arch, unsigned int count);
/* y = constant; y has @count fp32 values 0, 1, 2, ... */
struct neff_blob neff_make_constant(const char *arch, unsigned int count);
/* y = x through scratch memory of @count fp32 */
struct neff_blob neff_make_scratch(const char *arch, unsigned int count);

/* NeuronCore version of an arch. */
unsigned int test_nc_version(const char *arch);

#endif /* TESTS_NEFF_MAKE_H */
