// SPDX-License-Identifier: MIT
/* The scalar engine. */
#include "core_insn.h"

void row_ACTIVATE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_ACTIVATE);
	unsigned int i, k;

	start_since(3);
	fill(a, BF16, 0, 64, A, 300, -3, 3);
	fill(b, F32, 0, 64, B, 2, -1, 1);
	w.op[0] = NEURON_ACTFN_EXP;
	w.op[2] = NEURON_ALU_ADD;
	w.acc = NEURON_ACC_RESET_REDUCE;
	w.ap[0] = row(F32, 64, C, 300);
	w.ap[1] = row(BF16, 64, A, 300);
	w.imm[0] = imm_vec(SBUF, F32, 0, B);
	w.imm[1] = imm_vec(SBUF, F32, 0, B + 4);
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	for (i = 0; i < 64; i++)
		for (k = 0; k < 300; k++)
			want[i][k] = exp(a[i][k] * b[i][0] + b[i][1]);
	fetch(got, F32, 0, 64, C, 300);
	/* Product and sum are rounded to fp32 before the function. */
	compare(_metadata, 64, 300, 4e-7);
	/* Scale and bias as immediates, copy and cast. */
	prog_reset(p);
	w.op[0] = NEURON_ACTFN_COPY;
	w.acc = NEURON_ACC_IDLE;
	w.imm[0] = imm_f32(0.5f);
	w.imm[1] = imm_f32(-4.0f);
	w.ap[0] = row(NEURON_DTYPE_INT8, 64, C, 300);
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	for (i = 0; i < 64; i++)
		for (k = 0; k < 300; k++)
			want[i][k] = nearbyint(a[i][k] * 0.5 - 4);
	fetch(got, NEURON_DTYPE_INT8, 0, 64, C, 300);
	compare(_metadata, 64, 300, 0);
	/* No such function; a reduction other than addition. */
	prog_reset(p);
	w.op[0] = 200;
	prog_add(p, 0, ACT, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.op[0] = 0;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

void row_ACT_READ_ACC(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_ACTIVATE);
	unsigned int i, k;

	start_since(3);
	fill(a, F32, 0, 128, A, 100, -3, 3);
	w.op[0] = NEURON_ACTFN_SQUARE;
	w.op[2] = NEURON_ALU_ADD;
	w.acc = NEURON_ACC_RESET_REDUCE;
	w.ap[0] = row(F32, 128, C, 100);
	w.ap[1] = row(F32, 128, A, 100);
	prog_add(p, 0, ACT, &w);
	w.acc = NEURON_ACC_REDUCE;
	prog_add(p, 0, ACT, &w);
	w.acc = NEURON_ACC_IDLE;
	prog_add(p, 0, ACT, &w);
	w = insn_new(NEURON_OP_ACT_READ_ACC);
	w.ap[0] = row(F32, 128, D, 1);
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	for (i = 0; i < 128; i++) {
		want[i][0] = 0;
		for (k = 0; k < 100; k++)
			want[i][0] += 2 * a[i][k] * a[i][k];
	}
	fetch(got, F32, 0, 128, D, 1);
	compare(_metadata, 128, 1, 1e-6);
}
