// SPDX-License-Identifier: MIT
/* The vector engine's scans and accumulators, and activate2. */
#include "core_insn.h"

/* The accumulators of @parts lanes to @offset. */
static void read_acc(unsigned int engine, unsigned int parts, uint32_t offset)
{
	struct neuron_insn w = insn_new(engine == ACT ? NEURON_OP_ACT_READ_ACC : NEURON_OP_DVE_READ_ACC);

	w.ap[0] = row(F32, parts, offset, 1);
	prog_add(p, 0, engine, &w);
}

static struct neuron_insn unary(unsigned int opcode, unsigned int parts, unsigned int n)
{
	struct neuron_insn w = insn_new(opcode);

	w.ap[0] = row(F32, parts, C, n);
	w.ap[1] = row(F32, parts, A, n);
	return w;
}

/* Sums of n values have an error of n roundings at most; this many here. */
#define SUM_TOL	1e-5

void row_TENSOR_SCALAR_REDUCE(meta *_metadata)
{
	struct neuron_insn w;
	unsigned int i, k;

	start_since(2);
	fill(a, F32, 0, 64, A, 150, -1, 1);
	fill(b, F32, 0, 64, B, 2, -2, 2);
	w = unary(NEURON_OP_TENSOR_SCALAR_REDUCE, 64, 150);
	w.op[0] = NEURON_ALU_MULTIPLY;
	w.op[2] = NEURON_ALU_ADD;
	w.acc = NEURON_ACC_RESET_REDUCE;
	w.imm[0] = imm_vec(SBUF, F32, 0, B);
	prog_add(p, 0, DVE, &w);
	read_acc(DVE, 64, D);
	/* Goes on from there, then from a value that is given. */
	w.acc = NEURON_ACC_REDUCE;
	w.op[2] = NEURON_ALU_MINIMUM;
	prog_add(p, 0, DVE, &w);
	read_acc(DVE, 64, D + 4);
	w.acc = NEURON_ACC_LOAD_REDUCE;
	w.op[2] = NEURON_ALU_ADD;
	w.imm[1] = imm_f32(100);
	prog_add(p, 0, DVE, &w);
	read_acc(DVE, 64, D + 8);
	run(_metadata);
	for (i = 0; i < 64; i++) {
		double sum = 0, min = INFINITY;

		for (k = 0; k < 150; k++) {
			double v = (float)(a[i][k] * b[i][0]);

			want[i][k] = v;
			sum += v;
			min = fmin(min, v);
		}
		c[i][0] = sum;
		c[i][1] = fmin(min, sum);
		c[i][2] = 100 + sum;
	}
	fetch(got, F32, 0, 64, C, 150);
	compare(_metadata, 64, 150, 0);
	memcpy(want, c, sizeof(want));
	fetch(got, F32, 0, 64, D, 3);
	compare(_metadata, 64, 3, SUM_TOL);
	/* The documents: no reverse0, and only four reductions. */
	prog_reset(p);
	w.flags = htole16(NEURON_FLAG_REVERSE0);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.flags = 0;
	w.op[2] = NEURON_ALU_SUBTRACT;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_DVE_READ_ACC(meta *_metadata)
{
	struct neuron_insn w;
	uint32_t bits;

	start_since(3);
	fill(a, F32, 0, 32, A, 8, -1, 1);
	w = unary(NEURON_OP_TENSOR_SCALAR_REDUCE, 32, 8);
	w.op[0] = NEURON_ALU_ADD;
	w.op[2] = NEURON_ALU_MAXIMUM;
	w.acc = NEURON_ACC_RESET_REDUCE;
	w.imm[0] = imm_f32(0);
	prog_add(p, 0, DVE, &w);
	w = insn_new(NEURON_OP_DVE_READ_ACC);
	w.ap[0] = row(F32, 32, D, 1);
	w.flags = htole16(NEURON_FLAG_NEGATE);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (unsigned int i = 0; i < 32; i++) {
		want[i][0] = -INFINITY;
		for (unsigned int k = 0; k < 8; k++)
			want[i][0] = fmax(want[i][0], a[i][k]);
		want[i][0] = -want[i][0];
	}
	fetch(got, F32, 0, 32, D, 1);
	compare(_metadata, 32, 1, 0);
	/* Idle leaves them undefined: NaN, and in strict mode a fault. */
	for (int strict = 0; strict < 2; strict++) {
		prog_reset(p);
		p->flags = strict ? NEURON_JOB_STRICT : 0;
		w = insn_new(NEURON_OP_MEMSET);
		w.ap[0] = row(F32, 32, A, 8);
		w.imm[0] = imm_f32(1);
		prog_add(p, 0, DVE, &w);
		w = unary(NEURON_OP_TENSOR_SCALAR_REDUCE, 32, 8);
		w.op[0] = NEURON_ALU_ADD;
		w.op[2] = NEURON_ALU_ADD;
		w.imm[0] = imm_f32(0);
		prog_add(p, 0, DVE, &w);
		read_acc(DVE, 32, D);
		if (strict)
			expect_fault(_metadata, NEURON_FAULT_ACC_UNDEFINED);
		else
			run(_metadata);
	}
	sbuf_get(p->core[0], 0, D, &bits, 4);
	p->flags = 0;
}

void row_TENSOR_SCALAR_CUMULATIVE(meta *_metadata)
{
	static const struct {
		unsigned int op1;
		double start;
	} cases[] = { { NEURON_ALU_ADD, 0 }, { NEURON_ALU_MULTIPLY, 1 }, { NEURON_ALU_SUBTRACT, 0 },
		      { NEURON_ALU_MAXIMUM, -INFINITY } };
	struct neuron_insn w;
	unsigned int i, k, n;

	for (n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		start_since(2);
		fill(a, F32, 0, 32, A, 60, 0.8, 1.2);
		w = unary(NEURON_OP_TENSOR_SCALAR_CUMULATIVE, 32, 60);
		w.op[0] = NEURON_ALU_MULTIPLY;
		w.op[1] = cases[n].op1;
		w.imm[0] = imm_f32(1.0625f);
		w.acc = NEURON_ACC_RESET_REDUCE;
		prog_add(p, 0, DVE, &w);
		run(_metadata);
		for (i = 0; i < 32; i++) {
			double acc = cases[n].start;

			for (k = 0; k < 60; k++) {
				double v = (float)(a[i][k] * 1.0625);

				acc = n == 0 ? v + acc : n == 1 ? v * acc : n == 2 ? v - acc : fmax(v, acc);
				want[i][k] = acc;
			}
		}
		fetch(got, F32, 0, 32, C, 60);
		compare(_metadata, 32, 60, SUM_TOL);
	}
	/* A second instruction goes on; another starts from a value. */
	prog_reset(p);
	w.op[1] = NEURON_ALU_ADD;
	prog_add(p, 0, DVE, &w);
	w.acc = NEURON_ACC_REDUCE;
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	fetch(got, F32, 0, 32, C + 59 * 4, 1);
	for (i = 0; i < 32; i++) {
		want[i][0] = 0;
		for (k = 0; k < 60; k++)
			want[i][0] += 2 * 1.0625 * a[i][k];
	}
	compare(_metadata, 32, 1, SUM_TOL);
	prog_reset(p);
	w.acc = NEURON_ACC_LOAD_REDUCE;
	w.imm[1] = imm_f32(-50);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	fetch(got, F32, 0, 32, C + 59 * 4, 1);
	for (i = 0; i < 32; i++)
		want[i][0] = want[i][0] / 2 - 50;
	compare(_metadata, 32, 1, SUM_TOL);
	/* No 32-bit integers, no other operator. */
	prog_reset(p);
	w.ap[0].dtype = I32;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.ap[0].dtype = F32;
	w.op[1] = NEURON_ALU_EQUAL;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_TENSOR_TENSOR_SCAN(meta *_metadata)
{
	struct neuron_insn w;
	unsigned int i, k, reverse;

	for (reverse = 0; reverse < 2; reverse++) {
		start_since(2);
		fill(a, F32, 0, 128, A, 90, 0.2, 0.9);
		fill(b, BF16, 0, 128, B, 90, -1, 1);
		w = unary(NEURON_OP_TENSOR_TENSOR_SCAN, 128, 90);
		w.ap[2] = row(BF16, 128, B, 90);
		w.op[0] = NEURON_ALU_MULTIPLY;
		w.op[1] = reverse ? NEURON_ALU_SUBTRACT : NEURON_ALU_ADD;
		w.flags = htole16(reverse ? NEURON_FLAG_REVERSE1 : 0);
		w.imm[0] = imm_f32(3);
		prog_add(p, 0, DVE, &w);
		run(_metadata);
		for (i = 0; i < 128; i++) {
			double r = 3;

			for (k = 0; k < 90; k++)
				want[i][k] = r = reverse ? b[i][k] - a[i][k] * r : a[i][k] * r + b[i][k];
		}
		fetch(got, F32, 0, 128, C, 90);
		compare(_metadata, 128, 90, 1e-6);
	}
	/* data0 - r, and not both in PSUM. */
	prog_reset(p);
	w.op[0] = NEURON_ALU_SUBTRACT;
	w.op[1] = NEURON_ALU_ADD;
	w.flags = 0;
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < 128; i++) {
		double r = 3;

		for (k = 0; k < 90; k++)
			want[i][k] = r = a[i][k] - r + b[i][k];
	}
	fetch(got, F32, 0, 128, C, 90);
	compare(_metadata, 128, 90, 2e-5);
	prog_reset(p);
	w.ap[1].space = w.ap[2].space = PSUM;
	w.ap[2].offset = 0;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* Both bounds from SBUF; the start is in the second word. */
static struct neuron_insn range(struct neuron_insn_ext *ext, float first)
{
	struct neuron_insn w = insn_new(NEURON_OP_RANGE_SELECT);

	memset(ext, 0, sizeof(*ext));
	for (unsigned int i = 0; i < 3; i++)
		ext->ap[i] = ap_none();
	ext->imm[0] = imm_f32(first);
	ext->imm[1] = imm_f32(-3.4028234663852886e38f);
	w.ap[0] = row(F32, 32, C, 40);
	w.ap[1] = row(F32, 32, A, 40);
	w.imm[0] = imm_vec(SBUF, F32, 0, B);
	w.imm[1] = imm_vec(SBUF, F32, 0, B + 4);
	w.op[0] = NEURON_ALU_GREATER_EQUAL;
	w.op[1] = NEURON_ALU_LESS;
	w.op[2] = NEURON_ALU_MAXIMUM;
	w.acc = NEURON_ACC_RESET_REDUCE;
	return w;
}

void row_RANGE_SELECT(meta *_metadata)
{
	struct neuron_insn_ext ext;
	struct neuron_insn w;
	unsigned int i, k;
	uint16_t half[40];
	float acc;

	start_since(3);
	fill(a, F32, 0, 32, A, 40, -5, 5);
	fill(b, F32, 0, 32, B, 2, 100, 145);
	w = range(&ext, 100);
	prog_words(p, 0, DVE, &w, &ext, 1);
	read_acc(DVE, 32, D);
	run(_metadata);
	for (i = 0; i < 32; i++) {
		want[i][40] = -3.4028234663852886e38;
		for (k = 0; k < 40; k++) {
			want[i][k] = 100 + k >= b[i][0] && 100 + k < b[i][1] ? a[i][k] : -3.4028234663852886e38;
			want[i][40] = fmax(want[i][40], want[i][k]);
		}
	}
	fetch(got, F32, 0, 32, C, 40);
	for (i = 0; i < 32; i++)
		sbuf_get(p->core[0], i, D, &acc, 4), got[i][40] = acc;
	compare(_metadata, 32, 41, 0);
	/*
	 * A row with nothing in it, in bf16: -inf there and the smallest number in fp32, so
	 * that exp(row - maximum) is 0 and not NaN.
	 */
	prog_reset(p);
	fill(b, F32, 0, 32, B, 2, 1000, 1001);
	w.ap[0].dtype = BF16;
	prog_words(p, 0, DVE, &w, &ext, 1);
	read_acc(DVE, 32, D);
	run(_metadata);
	sbuf_get(p->core[0], 5, C, half, sizeof(half));
	sbuf_get(p->core[0], 5, D, &acc, 4);
	for (k = 0; k < 40; k++)
		EXPECT_EQ(0xff80, half[k]);
	EXPECT_EQ(-3.4028234663852886e38f, acc);
	/* Only that value for what is not selected; indices below 2^24; not on v2. */
	prog_reset(p);
	ext.imm[1] = imm_f32(0);
	prog_words(p, 0, DVE, &w, &ext, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w = range(&ext, 16777216);
	prog_words(p, 0, DVE, &w, &ext, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	start(2);
	prog_words(p, 0, DVE, &w, &ext, 1);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

void row_EXPONENTIAL(meta *_metadata)
{
	struct neuron_insn w;
	unsigned int i, k;

	start_since(4);
	fill(a, F32, 0, 64, A, 120, -8, 8);
	fill(b, F32, 0, 64, B, 1, 7, 9);
	w = unary(NEURON_OP_EXPONENTIAL, 64, 120);
	w.imm[0] = imm_vec(SBUF, F32, 0, B);
	w.imm[1] = imm_f32(2);
	w.op[2] = NEURON_ALU_ADD;
	w.acc = NEURON_ACC_LOAD_REDUCE;
	prog_add(p, 0, DVE, &w);
	read_acc(DVE, 64, D);
	run(_metadata);
	for (i = 0; i < 64; i++) {
		want[i][120] = 2;
		for (k = 0; k < 120; k++)
			want[i][120] += want[i][k] = exp((float)(a[i][k] - b[i][0]));
	}
	fetch(got, F32, 0, 64, C, 120);
	for (i = 0; i < 64; i++) {
		float sum;

		sbuf_get(p->core[0], i, D, &sum, 4);
		got[i][120] = sum;
	}
	compare(_metadata, 64, 121, 2e-6);
	start(3);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

static double fn(unsigned int which, double x)
{
	double s = 1 / (1 + exp(-1.702 * x));

	return which == NEURON_ACTFN_TANH ? tanh(x) : which == NEURON_ACTFN_PRELU ? (x < 0 ? x / 4 : x) :
	       s + 1.702 * x * s * (1 - s);
}

void row_ACTIVATE2(meta *_metadata)
{
	static const uint8_t fns[] = { NEURON_ACTFN_TANH, NEURON_ACTFN_PRELU,
				       NEURON_ACTFN_GELU_APPRX_SIGMOID_DX };
	struct neuron_insn_ext ext = { .ap = { ap_none(), ap_none(), ap_none() }, .imm[0] = imm_f32(0.25f) };
	struct neuron_insn w;
	unsigned int i, k, n;

	for (n = 0; n < 3; n++) {
		start_since(4);
		fill(a, F32, 0, 64, A, 100, -2, 2);
		fill(b, F32, 0, 64, B, 1, -1, 1);
		w = unary(NEURON_OP_ACTIVATE2, 64, 100);
		w.op[0] = NEURON_ALU_MULTIPLY;
		w.op[1] = NEURON_ALU_SUBTRACT;
		w.op[2] = fns[n];
		w.imm[0] = imm_f32(1.5f);
		w.imm[1] = imm_vec(SBUF, F32, 0, B);
		w.flags = htole16(NEURON_FLAG_REVERSE1);
		w.acc = NEURON_ACC_RESET_REDUCE;
		ext.aux[0] = htole32(NEURON_ALU_ABS_MAX);
		prog_words(p, 0, ACT, &w, &ext, 1);
		read_acc(ACT, 64, D);
		run(_metadata);
		for (i = 0; i < 64; i++) {
			want[i][100] = 0;
			for (k = 0; k < 100; k++) {
				want[i][k] = fn(fns[n], (float)(b[i][0] - (double)(float)(a[i][k] * 1.5)));
				want[i][100] = fmax(want[i][100], fabs(want[i][k]));
			}
		}
		fetch(got, F32, 0, 64, C, 100);
		for (i = 0; i < 64; i++) {
			float acc;

			sbuf_get(p->core[0], i, D, &acc, 4);
			got[i][100] = acc;
		}
		compare(_metadata, 64, 101, 2e-7);
	}
	/* Strict: adding to what no instruction has reset. */
	start_since(4);
	p->flags = NEURON_JOB_STRICT;
	w.acc = NEURON_ACC_REDUCE;
	prog_words(p, 0, ACT, &w, &ext, 1);
	expect_fault(_metadata, NEURON_FAULT_ACC_UNDEFINED);
	/* Other pairs of operators do not exist, nor does the instruction before v4. */
	prog_reset(p);
	w.op[0] = NEURON_ALU_MAXIMUM;
	prog_words(p, 0, ACT, &w, &ext, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	start(3);
	prog_words(p, 0, ACT, &w, &ext, 1);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}
