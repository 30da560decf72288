// SPDX-License-Identifier: MIT
/*
 * GpSimd: gathers inside SBUF, and searches that follow more than one partition. An
 * index outside of its tile is undefined in the documents; here it is a fault, in
 * every mode.
 */
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec_state.h"

#define GROUP	16	/* partitions of one GpSimd processor */

static bool same(struct stream *s, unsigned int i, uint32_t value, uint32_t want)
{
	return value == want || exec_bad(s, i, value, want);
}

/* The job ends; what the instruction has written so far stays. */
static void bad_index(struct stream *s, unsigned int part, uint32_t index, uint32_t limit)
{
	struct neuron_fault_record *f = exec_fault(s->x, s, NEURON_FAULT_OOB_INDEX);

	f->space = NEURON_SPACE_SBUF;
	f->partition = s->op[2].part + part;
	f->value = htole64(index);
	f->size = htole64(limit);
}

/* --- reduction over partitions ----------------------------------------------------------- */

bool partition_reduce_prepare(struct stream *s)
{
	unsigned int op = s->cur->w.op[0];
	bool bits = op == NEURON_ALU_BITWISE_OR || op == NEURON_ALU_BITWISE_AND;

	if (!bits && op != NEURON_ALU_ADD && op != NEURON_ALU_AVERAGE && op != NEURON_ALU_MAXIMUM)
		return exec_bad(s, 6, op, NEURON_ALU_ADD);
	if (bits && (num_dtype(s->op[1].dtype)->is_float || s->op[0].dtype != s->op[1].dtype))
		return exec_bad(s, 1, s->op[1].dtype, NEURON_DTYPE_INT32);
	return same(s, 0, s->op[0].parts, 1) && same(s, 0, s->op[0].n, s->op[1].n);
}

static void reduce_bits(struct stream *s)
{
	uint32_t *acc = (uint32_t *)s->x->row[0], *v = (uint32_t *)s->x->row[1], i;
	unsigned int p;

	row_bits_load(&s->op[1], 0, acc);
	for (p = 1; p < s->op[1].parts; p++) {
		row_bits_load(&s->op[1], p, v);
		for (i = 0; i < s->op[0].n; i++)
			acc[i] = num_bits_op(s->cur->w.op[0], acc[i], v[i], s->op[1].bytes);
	}
	row_bits_store(&s->op[0], 0, acc);
}

/* In the order of the partitions. */
void partition_reduce_run(struct stream *s)
{
	unsigned int p, op = s->cur->w.op[0];
	bool average = op == NEURON_ALU_AVERAGE;
	float *acc = s->x->row[0];

	if (num_alu(op)->bits) {
		reduce_bits(s);
		return;
	}
	row_load(s->x, &s->op[1], 0, acc);
	for (p = 1; p < s->op[1].parts; p++)
		s->x->num->vv(average ? NEURON_ALU_ADD : op, acc, acc,
			      row_get(s->x, &s->op[1], p, s->x->row[1]), s->op[0].n);
	if (average)
		s->x->num->vs(NEURON_ALU_MULTIPLY, acc, acc, 1.0f / s->op[1].parts, s->op[0].n);
	row_store(s->x, &s->op[0], 0, acc);
}

/* --- gathers -------------------------------------------------------------------------------- */

bool n_gather_prepare(struct stream *s)
{
	if (s->op[0].dtype != s->op[1].dtype)
		return exec_bad(s, 1, s->op[1].dtype, s->op[0].dtype);
	if (s->op[2].dtype != NEURON_DTYPE_UINT32)
		return exec_bad(s, 2, s->op[2].dtype, NEURON_DTYPE_UINT32);
	return same(s, 1, s->op[1].parts, s->op[0].parts) && same(s, 2, s->op[2].parts, s->op[0].parts) &&
	       same(s, 2, s->op[2].n, s->op[0].n);
}

void n_gather_run(struct stream *s)
{
	uint32_t *data = (uint32_t *)s->x->row[0], *index = (uint32_t *)s->x->row[1];
	uint32_t *out = (uint32_t *)s->x->row[2], i;
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		row_bits_load(&s->op[1], p, data);
		row_bits_load(&s->op[2], p, index);
		for (i = 0; i < s->op[0].n; i++) {
			if (index[i] >= s->op[1].n) {
				bad_index(s, p, index[i], s->op[1].n);
				return;
			}
			out[i] = data[index[i]];
		}
		row_bits_store(&s->op[0], p, out);
	}
}

bool local_gather_prepare(struct stream *s)
{
	uint32_t each = s->cur->w.aux & 0xffff, valid = s->cur->w.aux >> 16;

	if (!each || each > 32 || each & (each - 1))
		return exec_bad(s, 7, each, 32);
	if (!valid || valid > 4096 || valid > GROUP * s->op[2].n)
		return exec_bad(s, 7, valid, GROUP * s->op[2].n < 4096 ? GROUP * s->op[2].n : 4096);
	if (s->op[2].dtype != NEURON_DTYPE_UINT16)
		return exec_bad(s, 2, s->op[2].dtype, NEURON_DTYPE_UINT16);
	if (s->op[0].dtype != s->op[1].dtype)
		return exec_bad(s, 1, s->op[1].dtype, s->op[0].dtype);
	if (s->op[0].parts % GROUP)
		return exec_bad(s, 0, s->op[0].parts, GROUP);
	return same(s, 1, s->op[1].parts, s->op[0].parts) && same(s, 2, s->op[2].parts, s->op[0].parts) &&
	       same(s, 0, s->op[0].n, valid * each);
}

/* Indices of a group of 16 partitions, partition first, used by all 16. */
static bool group_indices(struct stream *s, unsigned int group, uint32_t *flat)
{
	uint32_t *row = (uint32_t *)s->x->row[1], valid = s->cur->w.aux >> 16, i, k;
	uint32_t each = s->cur->w.aux & 0xffff;
	unsigned int p;

	for (p = 0; p < GROUP; p++) {
		row_bits_load(&s->op[2], group + p, row);
		for (i = 0; i < s->op[2].n; i++) {
			k = i * GROUP + p;
			if (k >= valid)
				continue;
			if (row[i] + each > s->op[1].n) {
				bad_index(s, group + p, row[i], s->op[1].n);
				return false;
			}
			flat[k] = row[i];
		}
	}
	return true;
}

void local_gather_run(struct stream *s)
{
	uint32_t *data = (uint32_t *)s->x->row[0], *out = (uint32_t *)s->x->row[1], k, i;
	uint32_t *flat = (uint32_t *)s->x->row[2];
	uint32_t each = s->cur->w.aux & 0xffff, valid = s->cur->w.aux >> 16;
	unsigned int group, p;

	for (group = 0; group < s->op[0].parts; group += GROUP) {
		if (!group_indices(s, group, flat))
			return;
		for (p = group; p < group + GROUP; p++) {
			row_bits_load(&s->op[1], p, data);
			for (k = 0; k < valid; k++)
				for (i = 0; i < each; i++)
					out[k * each + i] = data[flat[k] + i];
			row_bits_store(&s->op[0], p, out);
		}
	}
}

/* --- segments and non-zeros ------------------------------------------------------------------ */

bool sequence_bounds_prepare(struct stream *s)
{
	if (s->op[0].dtype != s->op[1].dtype)
		return exec_bad(s, 0, s->op[0].dtype, s->op[1].dtype);
	if (s->op[1].dtype != NEURON_DTYPE_FLOAT32 && s->op[1].dtype != NEURON_DTYPE_INT32)
		return exec_bad(s, 1, s->op[1].dtype, NEURON_DTYPE_INT32);
	return same(s, 1, s->op[1].parts, 1) && same(s, 0, s->op[0].parts, 1) &&
	       same(s, 0, s->op[0].n, 2 * s->op[1].n);
}

/* Of each element the run it is in, [start, end); padding (0) has (n, -1). */
void sequence_bounds_run(struct stream *s)
{
	uint32_t n = s->op[1].n, first = 0, i, k;
	float *id = s->x->row[0], *out = s->x->row[1];

	row_load(s->x, &s->op[1], 0, id);
	for (i = 1; i <= n; i++) {
		if (i < n && id[i] == id[first])
			continue;
		for (k = first; k < i; k++) {
			out[k] = id[first] != 0 ? first : n;
			out[n + k] = id[first] != 0 ? (float)i : -1.0f;
		}
		first = i;
	}
	row_store(s->x, &s->op[0], 0, out);
}

bool nonzero_prepare(struct stream *s)
{
	unsigned int i;

	if (s->op[0].dtype != NEURON_DTYPE_INT32)
		return exec_bad(s, 0, s->op[0].dtype, NEURON_DTYPE_INT32);
	if (s->op[1].dtype != NEURON_DTYPE_FLOAT32 && s->op[1].dtype != NEURON_DTYPE_INT32)
		return exec_bad(s, 1, s->op[1].dtype, NEURON_DTYPE_INT32);
	for (i = 0; i < 2; i++)
		if (s->imm[i].vector)
			return exec_bad(s, 4 + i, NEURON_IMM_VEC, NEURON_IMM_I32);
	return same(s, 1, s->op[1].parts, s->op[0].parts) && same(s, 0, s->op[0].n, s->op[1].n + 1);
}

/* Published: only the first partition of each group of 16 takes part. */
void nonzero_run(struct stream *s)
{
	uint32_t *out = (uint32_t *)s->x->row[1], n = s->op[1].n, i, count;
	float *v = s->x->row[0];
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		if ((s->op[0].part + p) % GROUP)
			continue;
		row_load(s->x, &s->op[1], p, v);
		for (i = 0, count = 0; i < n; i++)
			if (v[i] != 0)
				out[count++] = i + s->imm[0].bits;
		out[n] = count;
		for (i = count; i < n; i++)
			out[i] = s->imm[1].bits;
		row_bits_store(&s->op[0], p, out);
	}
}

/* --- the K largest ------------------------------------------------------------------------------ */

bool topk_prepare(struct stream *s)
{
	const struct opnd *val = &s->op[0], *src = &s->op[1], *idx = &s->op[2];
	uint32_t n = s->imm[0].bits, k = GROUP * val->n;

	if (!s->imm[0].present || s->imm[0].vector || n < 8 || n > 65535 || n > GROUP * src->n)
		return exec_bad(s, 4, n, GROUP * src->n < 65535 ? GROUP * src->n : 65535);
	if (k > n || k >= 32768)
		return exec_bad(s, 0, k, n < 32767 ? n : 32767);
	if (idx->dtype != NEURON_DTYPE_UINT32)
		return exec_bad(s, 2, idx->dtype, NEURON_DTYPE_UINT32);
	if (val->parts % GROUP)
		return exec_bad(s, 0, val->parts, GROUP);
	return same(s, 1, src->parts, val->parts) && same(s, 2, idx->parts, val->parts) &&
	       same(s, 2, idx->n, val->n);
}

/*
 * Element j of a group's snake: down the 16 partitions in even columns, up in odd
 * ones. (The documents name the snake and do not draw it.)
 */
static uint32_t snake(unsigned int part, uint32_t column)
{
	return column * GROUP + (column % 2 ? GROUP - 1 - part : part);
}

struct ranked {
	float value;
	uint32_t index;
};

static float order(float v)
{
	return v != v ? -INFINITY : v;
}

/* Ascending; of equal values the one with the lower index counts as larger. */
static int rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	float vx = order(x->value), vy = order(y->value);

	if (vx != vy)
		return vx < vy ? -1 : 1;
	return x->index > y->index ? -1 : 1;
}

static void topk_group(struct stream *s, unsigned int group, struct ranked *list)
{
	uint32_t n = s->imm[0].bits, k = GROUP * s->op[0].n, cols = s->op[0].n, i, j;
	float *row = s->x->row[0], *val = row;
	uint32_t *idx = (uint32_t *)s->x->row[1];
	unsigned int p;

	for (p = 0; p < GROUP; p++) {
		row_load(s->x, &s->op[1], group + p, row);
		for (i = 0; i < s->op[1].n; i++) {
			j = snake(p, i);
			if (j < n)
				list[j] = (struct ranked){ row[i], j };
		}
	}
	qsort(list, n, sizeof(*list), rank);
	list += n - k;
	for (p = 0; p < GROUP; p++) {
		for (i = 0; i < cols; i++) {
			j = snake(p, i);
			val[i] = list[j].value;
			idx[i] = list[j].index;
		}
		row_store(s->x, &s->op[0], group + p, val);
		row_bits_store(&s->op[2], group + p, idx);
	}
}

void topk_run(struct stream *s)
{
	unsigned int group;

	for (group = 0; group < s->op[0].parts; group += GROUP)
		topk_group(s, group, (struct ranked *)s->x->row[2]);
}
