// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

struct row {
	char *cell[TABLE_MAX_COLUMNS];
	int rule;
};

struct table {
	unsigned int columns;
	const char *const *titles;
	struct row *rows;
	size_t count;
};

struct table *table_new(const char *const *titles, unsigned int columns)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t || columns > TABLE_MAX_COLUMNS) {
		free(t);
		return NULL;
	}
	t->columns = columns;
	t->titles = titles;
	return t;
}

void table_row(struct table *t, int rule)
{
	struct row *grown = realloc(t->rows, (t->count + 1) * sizeof(*grown));

	if (!grown)
		abort();	/* a few hundred bytes */
	t->rows = grown;
	memset(&t->rows[t->count], 0, sizeof(*grown));
	t->rows[t->count++].rule = rule;
}

void table_set(struct table *t, unsigned int column, const char *format, ...)
{
	va_list args;

	if (!t->count || column >= t->columns)
		return;
	free(t->rows[t->count - 1].cell[column]);
	va_start(args, format);
	if (vasprintf(&t->rows[t->count - 1].cell[column], format, args) < 0)
		abort();
	va_end(args);
}

/* Line @line of a title; its length. */
static size_t title_line(const char *title, unsigned int line, const char **start)
{
	const char *end;

	for (; line; line--) {
		title = strchr(title, '\n');
		if (!title) {
			*start = "";
			return 0;
		}
		title++;
	}
	*start = title;
	end = strchrnul(title, '\n');
	return end - title;
}

static size_t column_width(const struct table *t, unsigned int c)
{
	size_t width = 0, n, r;
	const char *start;
	unsigned int l;

	for (l = 0; l < 2; l++) {
		n = title_line(t->titles[c], l, &start);
		width = n > width ? n : width;
	}
	for (r = 0; r < t->count; r++) {
		n = t->rows[r].cell[c] ? strlen(t->rows[r].cell[c]) : 0;
		width = n > width ? n : width;
	}
	return width;
}

static void print_rule(const struct table *t, const size_t *width, FILE *out)
{
	unsigned int c;
	size_t i;

	for (c = 0; c < t->columns; c++) {
		fputc('+', out);
		for (i = 0; i < width[c] + 2; i++)
			fputc('-', out);
	}
	fputs("+\n", out);
}

static void print_titles(const struct table *t, const size_t *width, FILE *out)
{
	const char *start;
	unsigned int l, c;
	size_t n, left;

	for (l = 0; l < 2; l++) {
		for (c = 0; c < t->columns; c++) {
			n = title_line(t->titles[c], l, &start);
			left = (width[c] - n) / 2;
			fprintf(out, "| %*s%.*s%*s ", (int)left, "", (int)n, start,
				(int)(width[c] - n - left), "");
		}
		fputs("|\n", out);
	}
}

void table_print(const struct table *t, FILE *out)
{
	size_t width[TABLE_MAX_COLUMNS], r;
	unsigned int c;

	for (c = 0; c < t->columns; c++)
		width[c] = column_width(t, c);
	print_rule(t, width, out);
	print_titles(t, width, out);
	for (r = 0; r < t->count; r++) {
		if (!r || t->rows[r].rule)
			print_rule(t, width, out);
		for (c = 0; c < t->columns; c++)
			fprintf(out, "| %-*s ", (int)width[c],
				t->rows[r].cell[c] ? t->rows[r].cell[c] : "");
		fputs("|\n", out);
	}
	print_rule(t, width, out);
}

void table_free(struct table *t)
{
	unsigned int c;
	size_t r;

	if (!t)
		return;
	for (r = 0; r < t->count; r++)
		for (c = 0; c < t->columns; c++)
			free(t->rows[r].cell[c]);
	free(t->rows);
	free(t);
}
