// SPDX-License-Identifier: MIT
/*
 * Vector engine: statistics of a row, its largest values, and where values are.
 * Values are compared in fp32; a NaN equals nothing and is below everything.
 */
#include <endian.h>
#include <math.h>
#include <string.h>

#include "exec_state.h"

#define MAX_SEARCH	16384u

static bool parts_like(struct stream *s, unsigned int i)
{
	return s->op[i].parts == s->op[0].parts || exec_bad(s, i, s->op[i].parts, s->op[0].parts);
}

static bool eight(struct stream *s, unsigned int i)
{
	return parts_like(s, i) && (s->op[i].n == 8 || exec_bad(s, i, s->op[i].n, 8));
}

static bool searchable(struct stream *s)
{
	if (!parts_like(s, 1))
		return false;
	if (s->op[1].n < 8 || s->op[1].n > MAX_SEARCH)
		return exec_bad(s, 1, s->op[1].n, MAX_SEARCH);
	return true;
}

/* --- statistics -------------------------------------------------------------------------- */

bool bn_stats_prepare(struct stream *s)
{
	if (!parts_like(s, 1))
		return false;
	if (!s->op[1].n || s->op[1].n > 512)
		return exec_bad(s, 1, s->op[1].n, 512);
	return s->op[0].n == 6 || exec_bad(s, 0, s->op[0].n, 6);
}

/* Count, mean and count * variance of every second element; sums in double, in order. */
static void half_stats(float *out, const float *v, uint32_t n, uint32_t first)
{
	uint32_t count = (n + 1 - first) / 2, i;
	double sum = 0, square = 0, mean;

	for (i = first; i < n; i += 2)
		sum += v[i];
	mean = count ? sum / count : 0;
	for (i = first; i < n; i += 2)
		square += (v[i] - mean) * (v[i] - mean);
	out[0] = count;
	out[1] = mean;
	out[2] = square;
}

void bn_stats_run(struct stream *s)
{
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *v = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float out[6];

		half_stats(out, v, s->op[1].n, 0);
		half_stats(out + 3, v, s->op[1].n, 1);
		row_store(s->x, &s->op[0], p, out);
	}
}

bool bn_aggr_prepare(struct stream *s)
{
	if (!parts_like(s, 1))
		return false;
	if (!s->op[1].n || s->op[1].n % 3)
		return exec_bad(s, 1, s->op[1].n, 3);
	return s->op[0].n == 2 || exec_bad(s, 0, s->op[0].n, 2);
}

/* Mean and population variance of all that (count, mean, count * variance) describe. */
void bn_aggr_run(struct stream *s)
{
	unsigned int p;
	uint32_t i;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *v = row_get(s->x, &s->op[1], p, s->x->row[0]);
		double count = 0, sum = 0, square = 0, mean;
		float out[2];

		for (i = 0; i < s->op[1].n; i += 3) {
			count += v[i];
			sum += (double)v[i] * v[i + 1];
		}
		mean = sum / count;
		for (i = 0; i < s->op[1].n; i += 3)
			square += v[i + 2] + v[i] * (v[i + 1] - mean) * (v[i + 1] - mean);
		out[0] = mean;
		out[1] = square / count;
		row_store(s->x, &s->op[0], p, out);
	}
}

/* --- the eight largest ---------------------------------------------------------------------- */

bool max8_prepare(struct stream *s)
{
	return searchable(s) && eight(s, 0);
}

void max8_run(struct stream *s)
{
	unsigned int p, k;
	uint32_t i;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *v = row_get(s->x, &s->op[1], p, s->x->row[0]);
		float best[8];

		for (k = 0; k < 8; k++)
			best[k] = -INFINITY;
		for (i = 0; i < s->op[1].n; i++) {
			float x = v[i];

			/* Falls through the sorted list to its place. */
			for (k = 0; k < 8; k++) {
				if (x > best[k]) {
					float lower = best[k];

					best[k] = x;
					x = lower;
				}
			}
		}
		row_store(s->x, &s->op[0], p, best);
	}
}

/* --- where values are ------------------------------------------------------------------------- */

bool find_index8_prepare(struct stream *s)
{
	return searchable(s) && eight(s, 0) && eight(s, 2);
}

/* Position of @value from @from on; @taken (may be NULL) ones do not count. ~0: none. */
static uint32_t find(const float *v, uint32_t n, float value, uint32_t from, const uint8_t *taken)
{
	uint32_t i;

	for (i = from; i < n; i++)
		if (v[i] == value && !(taken && taken[i]))
			return i;
	return ~0u;
}

/* A value that is there several times in the list takes one match after the other. */
void find_index8_run(struct stream *s)
{
	unsigned int p, k, j;

	for (p = 0; p < s->op[0].parts; p++) {
		const float *v = row_get(s->x, &s->op[1], p, s->x->row[0]);
		const float *vals = row_get(s->x, &s->op[2], p, s->x->row[1]);
		uint32_t at[8], from;

		for (k = 0; k < 8; k++) {
			for (from = 0, j = 0; j < k; j++)
				if (vals[j] == vals[k])
					from = at[j] == ~0u ? s->op[1].n : at[j] + 1;
			at[k] = find(v, s->op[1].n, vals[k], from, NULL);
		}
		row_bits_store(&s->op[0], p, at);
	}
}

bool match_replace8_prepare(struct stream *s)
{
	if (!searchable(s) || !eight(s, 2))
		return false;
	if (s->op[0].n != s->op[1].n)
		return exec_bad(s, 0, s->op[0].n, s->op[1].n);
	if (!s->imm[0].present)
		return exec_bad(s, 4, NEURON_IMM_NONE, NEURON_IMM_F32);
	return s->op[3].space == NEURON_SPACE_NONE || (parts_like(s, 3) &&
	       (s->op[3].n == 8 || exec_bad(s, 16, s->op[3].n, 8)));
}

/* From the last value to the first, each replaces the first match that is left. */
void match_replace8_run(struct stream *s)
{
	uint8_t *taken = (uint8_t *)s->x->row[2];
	uint32_t n = s->op[1].n, at[8];
	unsigned int p, k;

	for (p = 0; p < s->op[0].parts; p++) {
		float vals[8], *v = s->x->row[0];

		row_load(s->x, &s->op[2], p, vals);
		row_load(s->x, &s->op[1], p, v);
		memset(taken, 0, n);
		for (k = 8; k-- > 0;) {
			at[k] = find(v, n, vals[k], 0, taken);
			if (at[k] != ~0u)
				taken[at[k]] = 1;
		}
		for (k = 0; k < 8; k++)
			if (at[k] != ~0u)
				v[at[k]] = scalar_get(&s->imm[0], p);
		row_store(s->x, &s->op[0], p, v);
		if (s->op[3].space != NEURON_SPACE_NONE)
			row_bits_store(&s->op[3], p, at);
	}
}

/* --- shuffle ------------------------------------------------------------------------------------- */

bool shuffle_prepare(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	unsigned int i, lanes = src->parts < 32 ? src->parts : 32;

	if (!parts_like(s, 1))
		return false;
	if (dst->n != src->n || dst->dtype != src->dtype)
		return exec_bad(s, 1, dst->n != src->n ? src->n : src->dtype,
				dst->n != src->n ? dst->n : dst->dtype);
	for (i = 0; i < lanes; i++)
		if (s->cur->ext->mask[i] >= lanes && s->cur->ext->mask[i] != 255)
			return exec_bad(s, 20, s->cur->ext->mask[i], lanes - 1);
	return true;
}

/* In every quadrant of 32 partitions, lane i gets lane mask[i]; 255 keeps what is there. */
void shuffle_run(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	size_t bytes = (size_t)src->n * src->bytes;
	uint8_t *copy = (uint8_t *)s->x->row[0];
	unsigned int p, i, quadrant, lanes;

	for (quadrant = 0; quadrant < dst->parts; quadrant += 32) {
		lanes = dst->parts - quadrant < 32 ? dst->parts - quadrant : 32;
		for (i = 0; i < lanes; i++)
			memcpy(copy + i * bytes, row_gather(src, quadrant + i, s->x->row[1]), bytes);
		for (i = 0; i < lanes; i++) {
			p = s->cur->ext->mask[i];
			if (p < lanes)
				row_scatter(dst, quadrant + i, copy + p * bytes);
		}
	}
}
