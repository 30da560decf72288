// SPDX-License-Identifier: MIT
/* Structured sparsity: LDWEIGHTS_SPARSE, MATMUL_SPARSE; the reference expands the matrix. */
#include "core_insn.h"

#define TAGS	0x10000

static double dense[512][128];
static uint16_t tag[128][32];

/* Four different positions below @ratio for each group of four partitions and column. */
static void random_tags(unsigned int ratio)
{
	unsigned int g, m, i, j;

	memset(tag, 0, sizeof(tag));
	for (g = 0; g < 32; g++) {
		for (m = 0; m < 128; m++) {
			unsigned int at[16];

			for (i = 0; i < ratio; i++)
				at[i] = i;
			for (i = 0; i < 4; i++) {
				unsigned int swap;

				j = i + (num_random(&rng) >> 33) % (ratio - i);
				swap = at[i];
				at[i] = at[j];
				at[j] = swap;
				tag[4 * g + i][m / 4] |= at[i] << (4 * (m % 4));
			}
		}
	}
	for (i = 0; i < 128; i++)
		sbuf_put(p->core[0], i, TAGS, tag[i], sizeof(tag[i]));
}

static struct neuron_insn ldweights_sparse(unsigned int dtype, unsigned int ratio)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS_SPARSE);

	w.ap[1] = row(dtype, 128, A, 128);
	w.ap[2] = row(NEURON_DTYPE_UINT16, 128, TAGS, 32);
	w.imm[0] = imm_i32(ratio);
	return w;
}

static struct neuron_insn matmul_sparse(unsigned int dtype, unsigned int ratio, unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_MATMUL_SPARSE);

	w.ap[0] = ap_row(PSUM, F32, 0, 128, 0, n);
	w.ap[1] = row(dtype, 128, B, ratio / 4 * n);
	w.update = update_add(1, 1);
	return w;
}

static void check_sparse(meta *_metadata, unsigned int dtype, unsigned int ratio, unsigned int n)
{
	unsigned int cr = ratio / 4, i, j, k;
	struct neuron_insn w;

	prog_reset(p);
	fill(a, dtype, 0, 128, A, 128, -2, 2);
	fill(b, dtype, 0, 128, B, cr * n, -2, 2);
	random_tags(ratio);
	memset(dense, 0, sizeof(dense));
	for (k = 0; k < 128; k++)
		for (i = 0; i < 128; i++)
			dense[k / 4 * ratio + (tag[k][i / 4] >> (4 * (i % 4)) & 15)][i] = a[k][i];
	w = ldweights_sparse(dtype, ratio);
	prog_add(p, 0, PE, &w);
	w = matmul_sparse(dtype, ratio, n);
	w.update = (struct neuron_update){ 0 };
	prog_add(p, 0, PE, &w);
	w.flags = htole16(NEURON_FLAG_ACCUMULATE);
	w.update = update_add(1, 1);
	prog_add(p, 0, PE, &w);
	drain(F32, 128, 0, C, n);
	run(_metadata);
	/* Partition q holds rows q CR to q CR + CR - 1 of the dense operand. */
	for (i = 0; i < 128; i++) {
		for (j = 0; j < n; j++) {
			want[i][j] = 0;
			for (k = 0; k < 128 * cr; k++)
				want[i][j] += 2 * dense[k][i] * b[k / cr][k % cr * n + j];
		}
	}
	fetch(got, F32, 0, 128, C, n);
	compare(_metadata, 128, n, 2 * 128 * 4 * 0x1p-24);
}

/* What was not kept does not matter, not even infinity. */
static void sparse_infinity(meta *_metadata)
{
	const float inf = INFINITY;
	struct neuron_insn w;
	unsigned int i, j;

	prog_reset(p);
	fill(a, F32, 0, 128, A, 128, -2, 2);
	fill(b, F32, 0, 128, B, 4 * 8, -2, 2);
	/* Everywhere position 4 i: row 0 of each partition. */
	for (i = 0; i < 128; i++) {
		for (j = 0; j < 32; j++)
			tag[i][j] = 0x1111 * (4 * (i % 4));
		sbuf_put(p->core[0], i, TAGS, tag[i], sizeof(tag[i]));
		sbuf_put(p->core[0], i, B + 8 * 4, &inf, 4);
	}
	w = ldweights_sparse(F32, 16);
	prog_add(p, 0, PE, &w);
	w = matmul_sparse(F32, 16, 8);
	prog_add(p, 0, PE, &w);
	drain(F32, 128, 0, C, 8);
	run(_metadata);
	for (i = 0; i < 128; i++) {
		for (j = 0; j < 8; j++) {
			want[i][j] = 0;
			for (unsigned int k = 0; k < 128; k++)
				want[i][j] += a[k][i] * b[k][j];
		}
	}
	fetch(got, F32, 0, 128, C, 8);
	compare(_metadata, 128, 8, 128 * 4 * 0x1p-24);
}

static void sparse_fault(meta *_metadata, const struct neuron_insn *w, unsigned int operand,
			 uint64_t allowed)
{
	prog_reset(p);
	prog_add(p, 0, PE, w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), operand);
	EXPECT_EQ(le64toh(p->job.fault.value), allowed);
}

void row_LDWEIGHTS_SPARSE(meta *_metadata)
{
	struct neuron_insn w;

	start(3);
	check_sparse(_metadata, BF16, 16, 64);
	w = ldweights_sparse(BF16, 10);
	sparse_fault(_metadata, &w, 4, 16);
	w = ldweights_sparse(BF16, 16);
	w.ap[1].num[0] = htole16(64);
	sparse_fault(_metadata, &w, 1, 128);
	w = ldweights_sparse(BF16, 16);
	w.ap[2].dtype = NEURON_DTYPE_UINT32;
	w.ap[2].num[0] = htole16(16);
	sparse_fault(_metadata, &w, 2, NEURON_DTYPE_UINT16);
	w = ldweights_sparse(BF16, 16);
	w.aux = htole32(4 << NEURON_TILE_ROWS_SHIFT | 4 << NEURON_TILE_COLUMNS_SHIFT);
	sparse_fault(_metadata, &w, 7, 0);
	/* A position that a group of 8 does not have. */
	tag[127][31] = 0x8000;
	sbuf_put(p->core[0], 127, TAGS, tag[127], sizeof(tag[127]));
	for (unsigned int i = 0; i < 127; i++)
		sbuf_put(p->core[0], i, TAGS, (const uint16_t[32]){ 0 }, 64);
	w = ldweights_sparse(BF16, 8);
	sparse_fault(_metadata, &w, 2, 7);
	start(2);
	w = ldweights_sparse(BF16, 16);
	prog_add(p, 0, PE, &w);
	EXPECT_NE(prog_run(p), NEURON_FAULT_NONE);
}

void row_MATMUL_SPARSE(meta *_metadata)
{
	struct neuron_insn w;

	start(3);
	check_sparse(_metadata, BF16, 16, 256);
	check_sparse(_metadata, NEURON_DTYPE_FLOAT16, 12, 33);
	check_sparse(_metadata, NEURON_DTYPE_FLOAT8_E4M3, 8, 512);
	sparse_infinity(_metadata);
	prog_reset(p);
	w = ldweights_sparse(BF16, 16);
	prog_add(p, 0, PE, &w);
	w = matmul_sparse(BF16, 12, 64);
	prog_add(p, 0, PE, &w);
	for (unsigned int i = 0; i < 128; i++)
		sbuf_put(p->core[0], i, TAGS, (const uint16_t[32]){ 0 }, 64);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 4 * 64);
	start(4);
	check_sparse(_metadata, NEURON_DTYPE_FLOAT8_E4M3FN, 16, 100);
}
