// SPDX-License-Identifier: MIT
/* Statistics, searches and shuffles of the vector engine. */
#include "core_insn.h"

#define U16	NEURON_DTYPE_UINT16
#define U32	NEURON_DTYPE_UINT32

static struct neuron_insn two(unsigned int opcode, unsigned int parts, unsigned int dst_n,
			      unsigned int src_n)
{
	struct neuron_insn w = insn_new(opcode);

	w.ap[0] = row(F32, parts, C, dst_n);
	w.ap[1] = row(F32, parts, A, src_n);
	return w;
}

/* Count, mean, count * variance of elements first, first + 2, ... */
static void stats(double *out, const double *v, unsigned int n, unsigned int first)
{
	double sum = 0, square = 0;
	unsigned int k, count = 0;

	for (k = first; k < n; k += 2, count++)
		sum += v[k];
	for (k = first; k < n; k += 2)
		square += (v[k] - sum / count) * (v[k] - sum / count);
	out[0] = count;
	out[1] = count ? sum / count : 0;
	out[2] = square;
}

void row_BN_STATS(meta *_metadata)
{
	static const unsigned int sizes[] = { 1, 2, 7, 300, 512 };
	struct neuron_insn w;
	unsigned int i, n;

	for (n = 0; n < 5; n++) {
		start_since(2);
		fill(a, F32, 0, 128, A, sizes[n], -3, 5);
		w = two(NEURON_OP_BN_STATS, 128, 6, sizes[n]);
		prog_add(p, 0, DVE, &w);
		run(_metadata);
		for (i = 0; i < 128; i++) {
			stats(want[i], a[i], sizes[n], 0);
			stats(want[i] + 3, a[i], sizes[n], 1);
		}
		fetch(got, F32, 0, 128, C, 6);
		compare(_metadata, 128, 6, 1e-6);
	}
	prog_reset(p);
	w.ap[1].num[0] = htole16(513);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* The statistics of two pieces give mean and variance of the whole. */
void row_BN_AGGR(meta *_metadata)
{
	struct neuron_insn w;
	unsigned int i, k;

	start_since(2);
	fill(a, F32, 0, 64, A, 700, -3, 5);
	w = two(NEURON_OP_BN_STATS, 64, 6, 400);
	w.ap[0] = row(F32, 64, B, 6);
	prog_add(p, 0, DVE, &w);
	w.ap[0] = row(F32, 64, B + 24, 6);
	w.ap[1] = row(F32, 64, A + 1600, 300);
	prog_add(p, 0, DVE, &w);
	w = two(NEURON_OP_BN_AGGR, 64, 2, 12);
	w.ap[1] = row(F32, 64, B, 12);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 64; i++) {
		double mean = 0, var = 0;

		for (k = 0; k < 700; k++)
			mean += a[i][k] / 700;
		for (k = 0; k < 700; k++)
			var += (a[i][k] - mean) * (a[i][k] - mean) / 700;
		want[i][0] = mean;
		want[i][1] = var;
	}
	fetch(got, F32, 0, 64, C, 2);
	compare(_metadata, 64, 2, 1e-6);
	prog_reset(p);
	w.ap[1].num[0] = htole16(11);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

static int descending(const void *x, const void *y)
{
	double u = *(const double *)x, v = *(const double *)y;

	return (u < v) - (u > v);
}

void row_MAX8(meta *_metadata)
{
	struct neuron_insn w;
	unsigned int i, k;

	start_since(2);
	/* Few different values, so that there are equal ones. */
	fill(a, NEURON_DTYPE_INT8, 0, 64, A, 300, -40, 40);
	w = two(NEURON_OP_MAX8, 64, 8, 300);
	w.ap[1].dtype = NEURON_DTYPE_INT8;
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 64; i++) {
		memcpy(want[i], a[i], sizeof(want[i]));
		qsort(want[i], 300, sizeof(double), descending);
	}
	fetch(got, F32, 0, 64, C, 8);
	compare(_metadata, 64, 8, 0);
	for (k = 0; k < 2; k++) {
		prog_reset(p);
		w.ap[1].num[0] = htole16(k ? 16385 : 7);
		prog_add(p, 0, DVE, &w);
		expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	}
}

static void put_row(uint32_t offset, const float *v, unsigned int n)
{
	sbuf_put(p->core[0], 0, offset, v, n * sizeof(*v));
}

void row_FIND_INDEX8(meta *_metadata)
{
	static const float data[] = { 5, 1, 7, 7, 3, 7, 1, 2, 9, 1 };
	static const float vals[] = { 7, 1, 7, 8, 1, 7, 7, 9 };
	/* Equal values take one match after the other; 8 is not there, nor a fourth 7. */
	static const uint32_t at[] = { 2, 1, 3, ~0u, 6, 5, ~0u, 8 };
	struct neuron_insn w;
	uint32_t wide[8];
	uint16_t narrow[8];
	unsigned int k;

	start_since(3);
	put_row(A, data, 10);
	put_row(B, vals, 8);
	w = two(NEURON_OP_FIND_INDEX8, 1, 8, 10);
	w.ap[2] = row(F32, 1, B, 8);
	w.ap[0].dtype = U32;
	prog_add(p, 0, DVE, &w);
	w.ap[0] = row(U16, 1, D, 8);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	sbuf_get(p->core[0], 0, C, wide, sizeof(wide));
	sbuf_get(p->core[0], 0, D, narrow, sizeof(narrow));
	for (k = 0; k < 8; k++) {
		EXPECT_EQ(at[k], wide[k]);
		EXPECT_EQ((uint16_t)at[k], narrow[k]);
	}
	prog_reset(p);
	w.ap[0].dtype = I32;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* The documents' example: seven eights take the places from the first on, last first. */
void row_MATCH_REPLACE8(meta *_metadata)
{
	static const float data[] = { 1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8 };
	static const float vals[] = { 3, 8, 8, 8, 8, 8, 8, 8 };
	static const uint32_t at[] = { 2, 10, 9, 8, 7, 6, 5, 4 };
	static const float after[] = { 1, 2, -5, 4, -5, -5, -5, -5, -5, -5, -5 };
	struct neuron_insn_ext ext = { .ap = { ap_none(), ap_none(), ap_none() } };
	struct neuron_insn w;
	uint32_t index[8];
	float out[11];
	unsigned int k;

	start_since(2);
	put_row(A, data, 11);
	put_row(B, vals, 8);
	w = two(NEURON_OP_MATCH_REPLACE8, 1, 11, 11);
	w.ap[2] = row(F32, 1, B, 8);
	w.imm[0] = imm_f32(-5);
	ext.ap[0] = row(U32, 1, D, 8);
	prog_words(p, 0, DVE, &w, &ext, 1);
	run(_metadata);
	sbuf_get(p->core[0], 0, C, out, sizeof(out));
	sbuf_get(p->core[0], 0, D, index, sizeof(index));
	for (k = 0; k < 11; k++)
		EXPECT_EQ(after[k], out[k]);
	for (k = 0; k < 8; k++)
		EXPECT_EQ(at[k], index[k]);
	/* Without positions, and in place. */
	prog_reset(p);
	ext.ap[0] = ap_none();
	w.ap[0] = row(F32, 1, A, 11);
	prog_words(p, 0, DVE, &w, &ext, 1);
	run(_metadata);
	sbuf_get(p->core[0], 0, A, out, sizeof(out));
	for (k = 0; k < 11; k++)
		EXPECT_EQ(after[k], out[k]);
}

void row_STREAM_SHUFFLE(meta *_metadata)
{
	struct neuron_insn_ext ext = { .ap = { ap_none(), ap_none(), ap_none() } };
	struct neuron_insn w;
	unsigned int i, k;

	start_since(2);
	fill(a, BF16, 0, 128, A, 33, -1, 1);
	fill(b, BF16, 0, 128, C, 33, 2, 3);
	w = two(NEURON_OP_STREAM_SHUFFLE, 128, 33, 33);
	w.ap[0].dtype = w.ap[1].dtype = BF16;
	for (i = 0; i < 32; i++)
		ext.mask[i] = i == 3 || i == 17 ? 255 : (i * 7 + 5) % 32;
	prog_words(p, 0, DVE, &w, &ext, 1);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 33; k++)
			want[i][k] = ext.mask[i % 32] == 255 ? b[i][k] : a[i / 32 * 32 + ext.mask[i % 32]][k];
	fetch(got, BF16, 0, 128, C, 33);
	compare(_metadata, 128, 33, 0);
	/* In place. */
	prog_reset(p);
	w.ap[0] = w.ap[1];
	prog_words(p, 0, DVE, &w, &ext, 1);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 33; k++)
			want[i][k] = ext.mask[i % 32] == 255 ? a[i][k] : a[i / 32 * 32 + ext.mask[i % 32]][k];
	fetch(got, BF16, 0, 128, A, 33);
	compare(_metadata, 128, 33, 0);
	prog_reset(p);
	ext.mask[9] = 32;
	prog_words(p, 0, DVE, &w, &ext, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}
