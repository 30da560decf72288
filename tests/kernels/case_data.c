// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_data.h"

double case_random(struct case_data *d)
{
	d->seed = d->seed * 1664525u + 1013904223u;
	return d->seed / 4294967296.0;
}

static struct case_tensor *add(struct case_data *d, const char *name, enum nki_dtype dtype, size_t n,
			       bool output)
{
	struct case_tensor *t = &d->tensor[d->count++];

	if (d->count > CASE_TENSORS) {
		fprintf(stderr, "more than %d tensors\n", CASE_TENSORS);
		abort();
	}
	*t = (struct case_tensor){ .name = name, .dtype = dtype, .n = n, .output = output };
	t->value = malloc(n * sizeof(*t->value));
	if (!t->value)
		abort();
	return t;
}

/* Nearest, ties to even; no infinities here. */
static float to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	bits += 0x7fff + (bits >> 16 & 1);
	bits &= 0xffff0000;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

static double rounded(enum nki_dtype dtype, double v)
{
	switch (dtype) {
	case NKI_FLOAT32:
		return (float)v;
	case NKI_BFLOAT16:
		return to_bf16((float)v);
	default:
		return floor(v);
	}
}

double *case_input(struct case_data *d, const char *name, enum nki_dtype dtype, size_t n,
		   double lo, double hi)
{
	struct case_tensor *t = add(d, name, dtype, n, false);

	for (size_t i = 0; i < n; i++)
		t->value[i] = rounded(dtype, lo + (hi - lo) * case_random(d));
	return t->value;
}

double *case_output(struct case_data *d, const char *name, enum nki_dtype dtype, size_t n)
{
	struct case_tensor *t = add(d, name, dtype, n, true);

	for (size_t i = 0; i < n; i++)
		t->value[i] = NAN;
	return t->value;
}

void case_free(struct case_data *d)
{
	for (unsigned int i = 0; i < d->count; i++)
		free(d->tensor[i].value);
	memset(d, 0, sizeof(*d));
}

static void put(enum nki_dtype dtype, void *at, double v)
{
	float f = v;
	int32_t i = (int32_t)(int64_t)v;
	uint32_t bits;

	switch (nki_dtype_size(dtype)) {
	case 4:
		memcpy(at, dtype == NKI_FLOAT32 ? (void *)&f : (void *)&i, 4);
		break;
	case 2:
		memcpy(&bits, &f, 4);
		bits = dtype == NKI_BFLOAT16 ? bits >> 16 : (uint32_t)i;
		*(uint16_t *)at = bits;
		break;
	default:
		*(uint8_t *)at = i;
	}
}

static double get(enum nki_dtype dtype, const void *at)
{
	uint32_t bits = 0;
	float f;

	memcpy(&bits, at, nki_dtype_size(dtype));
	switch (dtype) {
	case NKI_BFLOAT16:
		bits <<= 16;
		/* fall through */
	case NKI_FLOAT32:
		memcpy(&f, &bits, 4);
		return f;
	case NKI_INT32:
		return (int32_t)bits;
	default:
		return bits;
	}
}

void *case_pack(const struct case_tensor *t)
{
	size_t bytes = nki_dtype_size(t->dtype);
	uint8_t *raw = calloc(t->n, bytes);

	for (size_t i = 0; raw && i < t->n && !t->output; i++)
		put(t->dtype, raw + i * bytes, t->value[i]);
	return raw;
}

double *case_unpack(const struct case_tensor *t, const void *raw)
{
	size_t bytes = nki_dtype_size(t->dtype);
	double *v = malloc(t->n * sizeof(*v));

	for (size_t i = 0; v && i < t->n; i++)
		v[i] = get(t->dtype, (const uint8_t *)raw + i * bytes);
	return v;
}
