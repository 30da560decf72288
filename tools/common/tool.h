/* SPDX-License-Identifier: MIT */
/* What all command line tools share. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* "NAME (neuron-accel) VERSION" on standard output. */
void tool_version(const char *name);

/* "NAME: ..." on standard error. */
void tool_error(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * tool_number() - a whole number from the command line
 * @text: digits
 * @min, @max: allowed
 * @value: set on success
 *
 * Return: false when @text is anything else.
 */
bool tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* Decimal fraction, e.g. seconds. */
bool tool_fraction(const char *text, double min, double max, double *value);

/**
 * tool_read_file() - a small text file, e.g. of sysfs
 * @buf: gets at most @size - 1 bytes, final white space is cut
 *
 * Return: bytes, or a negative errno; then @buf is "".
 */
int tool_read_file(const char *path, char *buf, size_t size);

/* "96 GB", "1.5 GiB": as neuron-ls does, and with binary units. */
void tool_bytes(uint64_t bytes, char *buf, size_t size);

/* Bytes of a terminal-safe copy: control characters become '?'. */
void tool_printable(char *dst, size_t size, const char *src);

/* Standard output was written completely; else an error is printed. */
int tool_finish(const char *name);

#endif /* TOOLS_TOOL_H */
