// SPDX-License-Identifier: MIT
/* GpSimd. */
#include "core_insn.h"

static void pattern(struct neuron_insn *w)
{
	w->ap[2].dims = 2;
	w->ap[2].num[0] = htole16(10);
	w->ap[2].step[0] = htole16(-3);
	w->ap[2].num[1] = htole16(7);
	w->ap[2].step[1] = htole16(100);
}

static int affine(unsigned int part, unsigned int k, int offset, int mul)
{
	return offset + (int)part * mul + (int)(k % 10) * -3 + (int)(k / 10) * 100;
}

void row_IOTA(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_IOTA);
	unsigned int i, k;

	start_since(3);
	w.ap[0] = ap_row(SBUF, I32, 64, 64, C, 70);
	w.imm[0] = imm_i32(5);
	w.imm[1] = imm_i32(-11);
	pattern(&w);
	prog_add(p, 0, POOL, &w);
	w.ap[0] = ap_row(SBUF, F32, 64, 64, D, 70);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (i = 0; i < 64; i++)
		for (k = 0; k < 70; k++)
			want[i][k] = affine(i, k, 5, -11);
	fetch(got, I32, 64, 64, C, 70);
	compare(_metadata, 64, 70, 0);
	fetch(got, F32, 64, 64, D, 70);
	compare(_metadata, 64, 70, 0);
}

void row_AFFINE_SELECT(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_AFFINE_SELECT);
	unsigned int i, k;

	start_since(3);
	fill(a, F32, 0, 64, A, 70, -1, 1);
	w.op[0] = NEURON_ALU_GREATER_EQUAL;
	w.ap[0] = row(BF16, 64, C, 70);
	w.ap[1] = row(F32, 64, A, 70);
	w.imm[0] = imm_i32(-300);
	w.imm[1] = imm_f32(-9);
	w.aux = htole32(-4);
	pattern(&w);
	prog_add(p, 0, POOL, &w);
	run(_metadata);
	for (i = 0; i < 64; i++)
		for (k = 0; k < 70; k++)
			want[i][k] = affine(i, k, -300, -4) >= 0 ? a[i][k] : -9;
	fetch(got, BF16, 0, 64, C, 70);
	compare(_metadata, 64, 70, 0x1p-8);
}
