/* SPDX-License-Identifier: MIT */
/* Between fp64 and what is in the chip's memory. */
#ifndef CASE_DATA_H
#define CASE_DATA_H

#include "kernel_case.h"

void case_free(struct case_data *d);
/* Bytes of an input, zeros for an output; the caller frees them. */
void *case_pack(const struct case_tensor *t);
/* What @raw holds; the caller frees it. */
double *case_unpack(const struct case_tensor *t, const void *raw);

#endif /* CASE_DATA_H */
