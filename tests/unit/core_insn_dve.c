// SPDX-License-Identifier: MIT
/* The vector engine, and what other engines share with it. */
#include "core_insn.h"

void row_TENSOR_COPY(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY);
	unsigned int i, k;

	start_since(3);
	/* Reversed and transposed: [5][60] backwards, columns first. */
	fill(a, F32, 0, 32, A, 300, -1000, 1000);
	w.ap[0] = ap_row(SBUF, NEURON_DTYPE_INT16, 32, 32, C, 300);
	w.ap[1] = row(F32, 32, A + 299 * 4, 5);
	w.ap[1].dims = 2;
	w.ap[1].num[1] = htole16(60);
	w.ap[1].step[0] = htole16(-60);
	w.ap[1].step[1] = htole16(-1);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 32; i++)
		for (k = 0; k < 300; k++)
			want[i][k] = nearbyint(a[i][299 - (k % 5) * 60 - k / 5]);
	fetch(got, NEURON_DTYPE_INT16, 32, 32, C, 300);
	compare(_metadata, 32, 300, 0);
	/* The same type keeps its bits, a register moves the source. */
	prog_reset(p);
	uint32_t nan = 0x7fa00001, back;

	sbuf_put(p->core[0], 3, A + 40, &nan, 4);
	move_reg(POOL, 4, 40);
	w.ap[0] = row(F32, 32, C, 1);
	w.ap[1] = row(F32, 32, A, 1);
	w.ap[1].offset_reg = 4;
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	sbuf_get(p->core[0], 3, C, &back, 4);
	EXPECT_EQ(back, nan);
	/* A register gives the count; 0 is nothing to do. */
	prog_reset(p);
	move_reg(POOL, 4, 0);
	w.ap[0].count_reg = w.ap[1].count_reg = 4;
	w.ap[1].offset_reg = NEURON_REG_NONE;
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	/* POOL has no way to PSUM, and Trn1's ACT no tensor_copy. */
	prog_reset(p);
	w.ap[0] = ap_row(PSUM, F32, 0, 32, 0, 1);
	w.ap[1] = row(F32, 32, A, 1);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	start(2);
	prog_add(p, 0, ACT, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

/* Predicates in @pred's tile: 0 or not. */
static void predicate(uint32_t offset, unsigned int parts, unsigned int n)
{
	fill(c, U8, 0, parts, offset, n, 0, 2.4);
}

void row_COPY_PREDICATED(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_COPY_PREDICATED);
	unsigned int i, k, reverse;

	for (reverse = 0; reverse < 2; reverse++) {
		start_since(3);
		fill(a, BF16, 0, 64, A, 99, -1, 1);
		fill(b, BF16, 0, 64, B, 99, 2, 3);
		predicate(C, 64, 99);
		w.ap[0] = row(BF16, 64, B, 99);
		w.ap[1] = row(BF16, 64, A, 99);
		w.ap[2] = row(U8, 64, C, 99);
		w.flags = htole16(reverse ? NEURON_FLAG_REVERSE_PRED : 0);
		prog_add(p, 0, DVE, &w);
		run(_metadata);
		for (i = 0; i < 64; i++)
			for (k = 0; k < 99; k++)
				want[i][k] = (c[i][k] != 0) != reverse ? a[i][k] : b[i][k];
		fetch(got, BF16, 0, 64, B, 99);
		compare(_metadata, 64, 99, 0);
	}
}

void row_MEMSET(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	unsigned int i, k;

	start_since(3);
	fill(a, BF16, 0, 64, A, 50, -1, 1);
	w.ap[0] = row(BF16, 64, A + 2, 24);
	w.ap[0].step[0] = htole16(2);
	w.imm[0] = imm_f32(0.1f);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 64; i++)
		for (k = 0; k < 50; k++)
			want[i][k] = k % 2 && k < 49 ? 0.10009765625 : a[i][k];
	fetch(got, BF16, 0, 64, A, 50);
	compare(_metadata, 64, 50, 0);
	prog_reset(p);
	w.ap[0] = row(I32, 64, A, 3);
	w.imm[0] = imm_i32(0x12345679);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	EXPECT_EQ(stored(A + 8), 0x12345679);
}

void row_TENSOR_TENSOR(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_TENSOR);
	unsigned int i, k;
	int32_t x = 0x7fffff01, y = 2;

	start_since(3);
	fill(a, BF16, 0, 128, A, 300, -2, 2);
	fill(b, F32, 0, 128, B, 300, -2, 2);
	w.op[0] = NEURON_ALU_SUBTRACT;
	w.ap[0] = row(F32, 128, C, 300);
	w.ap[1] = row(BF16, 128, A, 300);
	w.ap[2] = row(F32, 128, B, 300);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 300; k++)
			want[i][k] = (float)(a[i][k] - b[i][k]);
	fetch(got, F32, 0, 128, C, 300);
	compare(_metadata, 128, 300, 0);
	/* Broadcast: step 0 over the inner dimension. */
	prog_reset(p);
	w.op[0] = NEURON_ALU_MULTIPLY;
	w.ap[2].step[0] = 0;
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 300; k++)
			want[i][k] = (float)(a[i][k] * b[i][0]);
	fetch(got, F32, 0, 128, C, 300);
	compare(_metadata, 128, 300, 0);
	/* 32-bit integers are exact on POOL, in fp32 on DVE. */
	for (i = 0; i < 2; i++) {
		start_since(3);
		sbuf_put(p->core[0], 0, A, &x, 4);
		sbuf_put(p->core[0], 0, B, &y, 4);
		w.op[0] = NEURON_ALU_SUBTRACT;
		w.ap[0] = row(I32, 1, C, 1);
		w.ap[1] = row(I32, 1, A, 1);
		w.ap[2] = row(I32, 1, B, 1);
		prog_add(p, 0, i ? POOL : DVE, &w);
		run(_metadata);
		EXPECT_EQ(stored(C), i ? 0x7ffffeff : 0x7fffff00);
	}
	prog_reset(p);
	w.op[0] = NEURON_ALU_BITWISE_XOR;
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	EXPECT_EQ(stored(C), 0x7fffff03);
	/* Never both in PSUM; no bit operators on floats; power is POOL's. */
	prog_reset(p);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[1].space = w.ap[2].space = PSUM;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.op[0] = NEURON_ALU_BITWISE_AND;
	w.ap[1] = row(F32, 1, A, 1);
	w.ap[2] = row(F32, 1, B, 1);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.op[0] = NEURON_ALU_POWER;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_TENSOR_SCALAR(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_SCALAR);
	unsigned int i, k;

	start_since(3);
	fill(a, BF16, 0, 128, A, 200, -2, 2);
	fill(b, F32, 0, 128, B, 1, -2, 2);
	w.op[0] = NEURON_ALU_MULTIPLY;
	w.op[1] = NEURON_ALU_SUBTRACT;
	w.imm[0] = imm_vec(SBUF, F32, 0, B);
	w.imm[1] = imm_f32(3);
	w.flags = htole16(NEURON_FLAG_REVERSE1);
	w.ap[0] = row(F32, 128, C, 200);
	w.ap[1] = row(BF16, 128, A, 200);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 200; k++)
			want[i][k] = (float)(3 - (double)(float)(a[i][k] * b[i][0]));
	fetch(got, F32, 0, 128, C, 200);
	compare(_metadata, 128, 200, 0);
	/* In place, one operator, on ACT. */
	prog_reset(p);
	w.op[0] = NEURON_ALU_ADD;
	w.op[1] = NEURON_ALU_BYPASS;
	w.imm[0] = imm_f32(1);
	w.imm[1] = (struct neuron_imm){ 0 };
	w.flags = 0;
	w.ap[1] = w.ap[0];
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 200; k++)
			want[i][k] = (float)(got[i][k] + 1);
	fetch(got, F32, 0, 128, C, 200);
	compare(_metadata, 128, 200, 0);
	/* Bits. */
	prog_reset(p);
	w.op[0] = NEURON_ALU_RIGHT_SHIFT;
	w.op[1] = NEURON_ALU_BITWISE_AND;
	w.imm[0] = imm_i32(4);
	w.imm[1] = imm_i32(3);
	w.ap[0] = row(U8, 128, D, 200);
	w.ap[1] = row(U8, 128, A, 200);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	uint8_t raw[2];

	sbuf_get(p->core[0], 7, A, &raw[0], 1);
	sbuf_get(p->core[0], 7, D, &raw[1], 1);
	EXPECT_EQ(raw[1], raw[0] >> 4 & 3);
	/* Both operators of one kind. */
	prog_reset(p);
	w.op[1] = NEURON_ALU_ADD;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_SCALAR_TENSOR_TENSOR(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_SCALAR_TENSOR_TENSOR);
	unsigned int i, k;

	start_since(3);
	fill(a, F32, 0, 128, A, 200, -2, 2);
	fill(b, F32, 0, 128, B, 200, -2, 2);
	w.op[0] = NEURON_ALU_MULTIPLY;
	w.op[1] = NEURON_ALU_ADD;
	w.imm[0] = imm_f32(0.9f);
	w.ap[0] = row(F32, 128, B, 200);
	w.ap[1] = row(F32, 128, B, 200);
	w.ap[2] = row(F32, 128, A, 200);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 200; k++)
			want[i][k] = (float)((double)(float)(b[i][k] * (double)0.9f) + a[i][k]);
	fetch(got, F32, 0, 128, B, 200);
	compare(_metadata, 128, 200, 0);
}

void row_TENSOR_REDUCE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_REDUCE);
	unsigned int i, k, j;

	start_since(3);
	/* [4][3][50]: over the inner two, negated; then the maximum of the inner one. */
	fill(a, F32, 0, 128, A, 600, -2, 2);
	w.ap[0] = row(F32, 128, C, 4);
	w.ap[1] = row(F32, 128, A, 50);
	w.ap[1].dims = 3;
	w.ap[1].num[1] = htole16(3);
	w.ap[1].step[1] = htole16(50);
	w.ap[1].num[2] = htole16(4);
	w.ap[1].step[2] = htole16(150);
	w.op[0] = NEURON_ALU_ADD;
	w.aux = htole32(2);
	w.flags = htole16(NEURON_FLAG_NEGATE);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 128; i++) {
		for (k = 0; k < 4; k++) {
			want[i][k] = 0;
			for (j = 0; j < 150; j++)
				want[i][k] -= a[i][k * 150 + j];
		}
	}
	fetch(got, F32, 0, 128, C, 4);
	compare(_metadata, 128, 4, 1e-5);
	prog_reset(p);
	w.ap[0] = row(BF16, 128, C, 12);
	w.op[0] = NEURON_ALU_MAXIMUM;
	w.aux = htole32(1);
	w.flags = 0;
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 128; i++) {
		for (k = 0; k < 12; k++) {
			want[i][k] = a[i][k * 50];
			for (j = 1; j < 50; j++)
				want[i][k] = fmax(want[i][k], a[i][k * 50 + j]);
		}
	}
	fetch(got, BF16, 0, 128, C, 12);
	compare(_metadata, 128, 12, 0x1p-8);
	/* No reduction by comparing, none over more dimensions than there are. */
	prog_reset(p);
	w.op[0] = NEURON_ALU_LESS;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.op[0] = NEURON_ALU_ADD;
	w.aux = htole32(4);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_RECIPROCAL(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_RECIPROCAL);
	unsigned int i, k;

	start_since(3);
	fill(a, F32, 0, 96 + 32, A, 100, 0.1, 9);
	w.ap[0] = row(F32, 128, C, 100);
	w.ap[1] = row(F32, 128, A, 100);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 100; k++)
			want[i][k] = 1 / a[i][k];
	fetch(got, F32, 0, 128, C, 100);
	compare(_metadata, 128, 100, 0x1p-24);
}

void row_SELECT(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_SELECT);
	unsigned int i, k;

	start_since(3);
	fill(a, BF16, 0, 64, A, 99, -1, 1);
	predicate(C, 64, 99);
	w.ap[0] = row(F32, 64, B, 99);
	w.ap[1] = row(BF16, 64, A, 99);
	w.ap[2] = row(U8, 64, C, 99);
	w.imm[0] = imm_f32(-7);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 64; i++)
		for (k = 0; k < 99; k++)
			want[i][k] = c[i][k] != 0 ? a[i][k] : -7;
	fetch(got, F32, 0, 64, B, 99);
	compare(_metadata, 64, 99, 0);
	/* select_reduce: the largest of what was selected, where the predicate is zero too. */
	prog_reset(p);
	w.flags = htole16(NEURON_FLAG_REVERSE_PRED);
	w.imm[0] = imm_f32(0.75f);
	w.acc = NEURON_ACC_RESET_REDUCE;
	w.op[2] = NEURON_ALU_MAXIMUM;
	prog_add(p, 0, DVE, &w);
	struct neuron_insn out = insn_new(NEURON_OP_DVE_READ_ACC);

	out.ap[0] = row(F32, 64, D, 1);
	prog_add(p, 0, DVE, &out);
	run(_metadata);
	for (i = 0; i < 64; i++) {
		want[i][0] = -INFINITY;
		for (k = 0; k < 99; k++)
			want[i][0] = fmax(want[i][0], c[i][k] == 0 ? a[i][k] : 0.75);
	}
	fetch(got, F32, 0, 64, D, 1);
	compare(_metadata, 64, 1, 0);
	/* Published limits of its types. */
	prog_reset(p);
	w.ap[1].dtype = I32;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.ap[1].dtype = BF16;
	w.ap[2].dtype = NEURON_DTYPE_UINT32;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_TRANSPOSE32(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TRANSPOSE32);
	unsigned int i, k;

	start_since(3);
	fill(a, BF16, 0, 20, A, 31, -1, 1);
	w.ap[0] = row(BF16, 31, C, 20);
	w.ap[1] = row(BF16, 20, A, 31);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 31; i++)
		for (k = 0; k < 20; k++)
			want[i][k] = a[k][i];
	fetch(got, BF16, 0, 31, C, 20);
	compare(_metadata, 31, 20, 0);
	prog_reset(p);
	w.ap[0] = row(BF16, 33, C, 20);
	w.ap[1] = row(BF16, 20, A, 33);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}
