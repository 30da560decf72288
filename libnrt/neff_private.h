/* SPDX-License-Identifier: MIT */
/* Shared by the files of the NEFF reader. */
#ifndef LIBNRT_NEFF_PRIVATE_H
#define LIBNRT_NEFF_PRIVATE_H

#include <jansson.h>
#include <stdbool.h>

#include "neff.h"

/* One file of the archive. */
struct neff_entry {
	char *path;
	void *data;
	size_t size;
};

/* State of one neff_read(): the unpacked archive and where to say what is wrong. */
struct neff_reader {
	struct neff_entry *entries;
	size_t count;
	struct neff *neff;
	char *error;
	size_t error_size;
};

/* Write the error text; returns @code so that callers can return it. */
int neff_fail(struct neff_reader *r, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int neff_unpack(struct neff_reader *r, const void *data, size_t size);
void neff_reader_end(struct neff_reader *r);
int neff_slurp(struct neff_reader *r, const char *path, void **bytes, size_t *size);
void neff_free_core(struct neff_core *core);
struct neff_entry *neff_find(struct neff_reader *r, const char *path);

/* Parse the JSON files into r->neff. */
int neff_parse(struct neff_reader *r);

#endif /* LIBNRT_NEFF_PRIVATE_H */
