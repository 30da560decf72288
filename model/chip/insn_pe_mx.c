// SPDX-License-Identifier: MIT
/*
 * Packed MX operands (v4): an element has four values, and each 8 partitions of a
 * column share a scale, a power of two. Row 4 p + q of a product's matrix is value q
 * of partition p, times its scale, in fp32. The scales of quadrant q of an operand
 * lie in partitions 32 q + 0 to 3 of the scale's access pattern.
 */
#include <math.h>
#include <string.h>

#include "exec_state.h"

#define GROUP	8	/* partitions that share a scale */

/* --- scales ----------------------------------------------------------------------------- */

static unsigned int scale_partition(unsigned int group)
{
	return group / 4 * 32 + group % 4;
}

/* Partitions that the scales of @parts partitions of data span. */
static unsigned int scale_parts(unsigned int parts)
{
	return scale_partition(parts / GROUP - 1) + 1;
}

/* Operand @index: the scale of @data. */
bool mx_scale_ok(struct stream *s, unsigned int index, const struct opnd *data)
{
	const struct opnd *scale = &s->op[index];

	if (data->parts % 32)
		return exec_bad(s, data - s->op, data->parts, 32);
	if (scale->part % 32 > 12)
		return exec_bad(s, index, scale->part % 32, 12);
	if (scale->parts != scale_parts(data->parts))
		return exec_bad(s, index, scale->parts, scale_parts(data->parts));
	if (scale->n != data->n)
		return exec_bad(s, index, scale->n, data->n);
	return true;
}

bool pe_mx_ok(struct stream *s, unsigned int max)
{
	unsigned int flags = NEURON_FLAG_TRANSPOSE | NEURON_FLAG_ONEZERO_STATIONARY |
			     NEURON_FLAG_ONEZERO_MOVING | 3u << NEURON_FLAG_PERF_SHIFT;

	if (s->cur->w.flags & flags)
		return exec_bad(s, 13, s->cur->w.flags & flags, 0);
	if (!s->op[1].n || s->op[1].n > max)
		return exec_bad(s, 1, s->op[1].n, max);
	return mx_scale_ok(s, 2, &s->op[1]);
}

/* --- products --------------------------------------------------------------------------- */

void pe_mx_load(struct stream *s, struct pe_weights *w)
{
	unsigned int g;

	for (g = 0; g < w->parts / GROUP; g++)
		memcpy(w->extra + g * w->m,
		       row_gather(&s->op[2], scale_partition(g), s->x->row[0]), w->m);
}

/*
 * Values of one partition's elements, each times the scale of its column, to four rows
 * @ld floats apart.
 */
static void unpack(struct stream *s, unsigned int dtype, float *to, size_t ld, const void *raw,
		   const float *scale, unsigned int n)
{
	float *const row[4] = { to, to + ld, to + 2 * ld, to + 3 * ld };
	unsigned int q;

	num_unpack(s->x->num, dtype, row, raw, n, (uint8_t *)s->x->row[2]);
	for (q = 0; q < 4; q++)
		s->x->num->vv(NEURON_ALU_MULTIPLY, row[q], row[q], scale, n);
}

static void pack(struct stream *s, struct pe_weights *w)
{
	float *scale = s->x->row[0], *row = s->x->row[1];
	unsigned int p, q;

	for (p = 0; p < w->parts; p++) {
		if (p % GROUP == 0)
			s->x->num->load(NEURON_DTYPE_FLOAT8_E8M0FNU, scale,
					w->extra + p / GROUP * w->m, 1, w->m);
		unpack(s, w->dtype, row, w->m, w->raw + (size_t)p * w->m * w->bytes, scale, w->m);
		for (q = 0; q < 4; q++)
			pe_pack_row(w, 4 * p + q, row + (size_t)q * w->m);
	}
	w->packed = true;
}

void pe_mx_matmul(struct stream *s, struct pe_weights *w)
{
	const struct opnd *src = &s->op[1];
	unsigned int n = src->n, p, q;
	size_t ld = pe_ld(n);
	float *scale = s->x->row[0], *moving = s->x->row[1];
	/* Behind the scales: elements that are not one run. */
	void *buf = scale + 2 * PSUM_ELEMENTS;

	if (!w->packed)
		pack(s, w);
	for (p = 0; p < src->parts; p++) {
		float *to = moving + 4 * p * ld;

		if (p % GROUP == 0)
			s->x->num->load(NEURON_DTYPE_FLOAT8_E8M0FNU, scale,
					row_gather(&s->op[2], scale_partition(p / GROUP), buf), 1, n);
		unpack(s, src->dtype, to, ld, row_gather(src, p, buf), scale, n);
		for (q = 0; q < 4; q++)
			pe_pad(to + q * ld, n);
	}
	pe_product(s, w, moving);
}

/* --- quantize_mx ------------------------------------------------------------------------ */

bool quantize_mx_prepare(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];

	if (s->cur->w.aux & ~NEURON_MX_OLD_SCALE)
		return exec_bad(s, 7, s->cur->w.aux, NEURON_MX_OLD_SCALE);
	if (dst->dtype == NEURON_DTYPE_FLOAT4_E2M1FN_X4)
		return exec_bad(s, 0, dst->dtype, NEURON_DTYPE_FLOAT8_E4M3FN_X4);
	if (src->parts != dst->parts)
		return exec_bad(s, 1, src->parts, dst->parts);
	if (src->n != 4 * dst->n)
		return exec_bad(s, 1, src->n, 4 * dst->n);
	return mx_scale_ok(s, 2, dst);
}

/* Largest magnitude of a group's column; a NaN stays. */
static float group_max(float *const row[GROUP], unsigned int f)
{
	float max = 0.0f;
	unsigned int p, q;

	for (p = 0; p < GROUP; p++) {
		for (q = 0; q < 4; q++) {
			float x = fabsf(row[p][4 * f + q]);

			max = x > max || isnan(x) ? x : max;
			if (isnan(max))
				return max;
		}
	}
	return max;
}

/*
 * Code of a group's scale: floor(log2 max) - (Emax - 1), before SDK 2.31 - Emax; 2^-127
 * for zeros. NaN and infinity have no scale: NaN.
 */
static uint8_t scale_code(float max, bool e5m2, bool old)
{
	int emax = e5m2 ? 15 : 8, e;

	if (!isfinite(max))
		return 0xff;
	if (max == 0.0f)
		return 0;
	frexpf(max, &e);
	e += 127 - 1 - emax + (old ? 0 : 1);
	return e < 0 ? 0 : e;
}

/* Values of one partition, divided by the scale and clipped to the largest value. */
static void quantize_row(struct stream *s, float *row, const uint8_t *code, unsigned int part)
{
	struct opnd *dst = &s->op[0];
	bool e5m2 = dst->dtype == NEURON_DTYPE_FLOAT8_E5M2_X4;
	unsigned int to = e5m2 ? NEURON_DTYPE_FLOAT8_E5M2 : NEURON_DTYPE_FLOAT8_E4M3FN;
	float max = e5m2 ? 57344.0f : 448.0f;
	uint8_t *out = (uint8_t *)s->x->row[2];
	unsigned int f, i, n = 4 * dst->n;

	for (f = 0; f < dst->n; f++) {
		/* 2^(127 - code): also NaN for NaN. */
		uint8_t inverse = code[f] == 0xff ? 0xff : 254 - code[f];
		double scale = num_get(NEURON_DTYPE_FLOAT8_E8M0FNU, &inverse);

		/* Exact in double: a bf16 or fp16 value times a power of two. */
		for (i = 4 * f; i < 4 * f + 4; i++) {
			double x = row[i] * scale;

			row[i] = x > max ? max : x < -max ? -max : x;
		}
	}
	if (s->x->stochastic)
		num_store_sr(to, out, 1, row, n, &s->x->prng_sr);
	else
		s->x->num->store(to, out, 1, row, n);
	row_scatter(dst, part, out);
}

void quantize_mx_run(struct stream *s)
{
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	bool e5m2 = dst->dtype == NEURON_DTYPE_FLOAT8_E5M2_X4;
	bool old = s->cur->w.aux & NEURON_MX_OLD_SCALE;
	uint8_t *code = (uint8_t *)s->x->row[0];
	float *row[GROUP];
	unsigned int g, p, f;

	for (p = 0; p < GROUP; p++)
		row[p] = s->x->row[1] + (size_t)p * src->n;
	for (g = 0; g < src->parts / GROUP; g++) {
		for (p = 0; p < GROUP; p++)
			row_load(s->x, src, g * GROUP + p, row[p]);
		for (f = 0; f < dst->n; f++)
			code[f] = scale_code(group_max(row, f), e5m2, old);
		for (p = 0; p < GROUP; p++)
			quantize_row(s, row[p], code, g * GROUP + p);
		row_scatter(&s->op[2], scale_partition(g), code);
	}
}
