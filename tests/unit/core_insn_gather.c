// SPDX-License-Identifier: MIT
/* GpSimd: gathers and searches. */
#include "core_insn.h"

#define U16	NEURON_DTYPE_UINT16
#define U32	NEURON_DTYPE_UINT32

void row_PARTITION_REDUCE(meta *_metadata)
{
	static const uint8_t ops[] = { NEURON_ALU_ADD, NEURON_ALU_AVERAGE, NEURON_ALU_MAXIMUM };
	struct neuron_insn w = insn_new(NEURON_OP_PARTITION_REDUCE);
	unsigned int i, k, n;

	for (n = 0; n < 3; n++) {
		start_since(2);
		fill(a, BF16, 0, 100, A, 70, -1, 1);
		w.op[0] = ops[n];
		w.ap[0] = row(F32, 1, C, 70);
		w.ap[1] = row(BF16, 100, A, 70);
		prog_add(p, 0, POOL, &w);
		run(_metadata);
		for (k = 0; k < 70; k++) {
			want[0][k] = n == 2 ? -INFINITY : 0;
			for (i = 0; i < 100; i++)
				want[0][k] = n == 2 ? fmax(want[0][k], a[i][k]) : want[0][k] + a[i][k];
			want[0][k] /= n == 1 ? 100 : 1;
		}
		fetch(got, F32, 0, 1, C, 70);
		compare(_metadata, 1, 70, 2e-6);
	}
	/* Bits, and no minimum. */
	prog_reset(p);
	fill(a, U8, 0, 64, A, 10, 0, 255);
	w.op[0] = NEURON_ALU_BITWISE_OR;
	w.ap[0] = row(U8, 1, C, 10);
	w.ap[1] = row(U8, 64, A, 10);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (k = 0; k < 10; k++) {
		unsigned int bits = 0;

		for (i = 0; i < 64; i++)
			bits |= (unsigned int)a[i][k];
		want[0][k] = bits;
	}
	fetch(got, U8, 0, 1, C, 10);
	compare(_metadata, 1, 10, 0);
	prog_reset(p);
	w.op[0] = NEURON_ALU_MINIMUM;
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_N_GATHER(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_N_GATHER);
	unsigned int i, k;
	uint32_t big = 200;

	start_since(2);
	fill(a, BF16, 0, 64, A, 200, -1, 1);
	fill(b, U32, 0, 64, B, 90, 0, 199);
	w.ap[0] = row(BF16, 64, C, 90);
	w.ap[1] = row(BF16, 64, A, 200);
	w.ap[2] = row(U32, 64, B, 90);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (i = 0; i < 64; i++)
		for (k = 0; k < 90; k++)
			want[i][k] = a[i][(int)b[i][k]];
	fetch(got, BF16, 0, 64, C, 90);
	compare(_metadata, 64, 90, 0);
	/* Past the end: a fault that names partition and index. */
	sbuf_put(p->core[0], 33, B + 40, &big, 4);
	expect_fault(_metadata, NEURON_FAULT_OOB_INDEX);
	EXPECT_EQ(33, p->job.fault.partition);
	EXPECT_EQ(200, le64toh(p->job.fault.value));
}

void row_LOCAL_GATHER(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_LOCAL_GATHER);
	unsigned int i, k, e;

	start_since(2);
	fill(a, F32, 0, 32, A, 200, -1, 1);
	fill(b, U16, 0, 32, B, 3, 0, 190);
	w.aux = htole32(4 | 40 << 16);
	w.ap[0] = row(F32, 32, C, 160);
	w.ap[1] = row(F32, 32, A, 200);
	w.ap[2] = row(U16, 32, B, 3);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	/* Index k of a group is in partition k mod 16, column k / 16. */
	for (i = 0; i < 32; i++)
		for (k = 0; k < 40; k++)
			for (e = 0; e < 4; e++)
				want[i][k * 4 + e] = a[i][(int)b[i / 16 * 16 + k % 16][k / 16] + e];
	fetch(got, F32, 0, 32, C, 160);
	compare(_metadata, 32, 160, 0);
	/* 3 elements an index do not exist; more indices than there are. */
	prog_reset(p);
	w.aux = htole32(3 | 40 << 16);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.aux = htole32(4 | 49 << 16);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.aux = htole32(32 | 5 << 16);
	fill(b, U16, 0, 32, B, 3, 169, 199);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_OOB_INDEX);
}

/* The documents' example. */
void row_SEQUENCE_BOUNDS(meta *_metadata)
{
	static const double start_of[] = { 9, 1, 1, 3, 3, 3, 9, 7, 7 };
	static const double end_of[] = { -1, 3, 3, 6, 6, 6, -1, 9, 9 };
	static const float ids[] = { 0, 1, 1, 2, 2, 2, 0, 3, 3 };
	struct neuron_insn w = insn_new(NEURON_OP_SEQUENCE_BOUNDS);
	unsigned int k;
	int32_t whole[9];

	start_since(2);
	sbuf_put(p->core[0], 0, A, ids, sizeof(ids));
	w.ap[0] = row(F32, 1, C, 18);
	w.ap[1] = row(F32, 1, A, 9);
	prog_add(p, 0, POOL, &w);
	for (k = 0; k < 9; k++)
		whole[k] = ids[k];
	sbuf_put(p->core[0], 0, B, whole, sizeof(whole));
	w.ap[0] = row(I32, 1, D, 18);
	w.ap[1] = row(I32, 1, B, 9);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (k = 0; k < 9; k++) {
		want[0][k] = start_of[k];
		want[0][9 + k] = end_of[k];
	}
	fetch(got, F32, 0, 1, C, 18);
	compare(_metadata, 1, 18, 0);
	fetch(got, I32, 0, 1, D, 18);
	compare(_metadata, 1, 18, 0);
	prog_reset(p);
	w.ap[1].dtype = w.ap[0].dtype = BF16;
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* The documents' example, in the first partition of two groups; the others keep theirs. */
void row_NONZERO_WITH_COUNT(meta *_metadata)
{
	static const double expect[] = { 17, 18, 21, -1, -1, -1, -1, -1, 3 };
	static const float data[] = { 0, 1, 1, 0, 0, 1, 0, 0 };
	struct neuron_insn w = insn_new(NEURON_OP_NONZERO_WITH_COUNT);
	unsigned int i, k;

	start_since(3);
	fill(want, I32, 0, 32, C, 9, 100, 200);
	for (i = 0; i < 32; i++)
		sbuf_put(p->core[0], i, A, data, sizeof(data));
	w.ap[0] = row(I32, 32, C, 9);
	w.ap[1] = row(F32, 32, A, 8);
	w.imm[0] = imm_i32(16);
	w.imm[1] = imm_i32(-1);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (i = 0; i < 32; i += 16)
		for (k = 0; k < 9; k++)
			want[i][k] = expect[k];
	fetch(got, I32, 0, 32, C, 9);
	compare(_metadata, 32, 9, 0);
	start(2);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

struct numbered {
	double value;
	unsigned int index;
};

static int ascending(const void *x, const void *y)
{
	const struct numbered *u = x, *v = y;

	if (u->value != v->value)
		return u->value < v->value ? -1 : 1;
	return u->index > v->index ? -1 : 1;
}

/* Partition of element j of a snake through 16 partitions. */
static unsigned int lane(unsigned int j)
{
	return j / 16 % 2 ? 15 - j % 16 : j % 16;
}

void row_TOPK(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TOPK);
	static struct numbered list[2][320];
	unsigned int g, j, n = 300, k = 64;

	start_since(3);
	fill(a, BF16, 0, 32, A, 20, -2, 2);
	w.ap[0] = row(BF16, 32, C, k / 16);
	w.ap[1] = row(BF16, 32, A, 20);
	w.ap[2] = row(U32, 32, D, k / 16);
	w.imm[0] = imm_i32(n);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (g = 0; g < 2; g++) {
		for (j = 0; j < n; j++)
			list[g][j] = (struct numbered){ a[g * 16 + lane(j)][j / 16], j };
		qsort(list[g], n, sizeof(list[g][0]), ascending);
		for (j = 0; j < k; j++)
			want[g * 16 + lane(j)][j / 16] = list[g][n - k + j].value;
	}
	fetch(got, BF16, 0, 32, C, k / 16);
	compare(_metadata, 32, k / 16, 0);
	for (g = 0; g < 2; g++)
		for (j = 0; j < k; j++)
			want[g * 16 + lane(j)][j / 16] = list[g][n - k + j].index;
	fetch(got, U32, 0, 32, D, k / 16);
	compare(_metadata, 32, k / 16, 0);
	/* More than there are. */
	prog_reset(p);
	w.imm[0] = imm_i32(63);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.imm[0] = imm_i32(321);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}
