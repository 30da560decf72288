/* SPDX-License-Identifier: MIT */
/* ASCII box tables. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_MAX_COLUMNS	16

struct table;

/* @columns titles; a '\n' in a title starts its second line. NULL: out of memory. */
struct table *table_new(const char *const *titles, unsigned int columns);
/* One cell of the current row; cells not set are empty. The text is copied. */
void table_set(struct table *t, unsigned int column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Next row; @rule: with a line above it. */
void table_row(struct table *t, int rule);
void table_print(const struct table *t, FILE *out);
void table_free(struct table *t);

#endif /* TOOLS_TABLE_H */
