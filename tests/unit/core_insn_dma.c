// SPDX-License-Identifier: MIT
/* DMA. */
#include "core_insn.h"

static struct neuron_insn dma(void)
{
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);

	w.update = update_add(1, 16);
	return w;
}

/* HBM to SBUF with a cast, SBUF to HBM with a stride, both through @direct memory or not. */
static void dma_round_trip(meta *_metadata, bool direct, uint64_t contiguous)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	struct neuron_insn w = dma();
	unsigned int in, out, i, k;
	uint16_t *src;
	float *dst;

	start(3);
	p->vm->direct = direct;
	p->vm->contiguous = contiguous;
	in = prog_arg(p, 128 * 70 * 2 + 6, NEURON_ARG_READ);
	out = prog_arg(p, 128 * 80 * 4, NEURON_ARG_READ | NEURON_ARG_WRITE);
	src = prog_arg_mem(p, in);
	dst = prog_arg_mem(p, out);
	for (i = 0; i < 128 * 70; i++) {
		num_put(BF16, src + i + 3, uniform(-9, 9));
		a[i / 70][i % 70] = num_get(BF16, src + i + 3);
	}
	w.ap[0] = row(F32, 128, C, 70);
	hbm = dma_hbm(in, BF16, 6, 70, 128, 140);
	prog_dma(p, 0, SP, &w, &sb, &hbm);
	w.ap[0] = ap_none();
	w.ap[1] = row(F32, 128, C, 70);
	w.wait[0] = wait_sub(1, 16);
	hbm = dma_hbm(out, F32, 8, 70, 128, 320);
	prog_dma(p, 0, SP, &w, &hbm, &sb);
	run(_metadata);
	for (i = 0; i < 128; i++)
		for (k = 0; k < 70; k++)
			ASSERT_EQ(dst[2 + i * 80 + k], (float)a[i][k]);
	ASSERT_EQ(dst[0], 0);
	ASSERT_EQ(dst[2 + 70], 0);
}

static void dma_hbm_to_hbm(meta *_metadata)
{
	struct neuron_dma_operand d, s;
	struct neuron_insn w = dma();
	unsigned int in, out, i;
	uint32_t *x, *y;

	start(3);
	in = prog_arg(p, 3000 * 4, NEURON_ARG_READ);
	out = prog_arg(p, 3000 * 4, NEURON_ARG_WRITE);
	x = prog_arg_mem(p, in);
	y = prog_arg_mem(p, out);
	for (i = 0; i < 3000; i++)
		x[i] = num_random(&rng);
	/* A transpose of [30][100] by strides, offset by a register. */
	move_reg(SP, 7, 3);
	s = dma_hbm(in, I32, 0, 100, 30, 400);
	d = dma_hbm(out, I32, 0, 100, 30, 4);
	d.stride[0] = htole64(120);
	s.offset_reg = 7;
	s.offset_scale = htole64(4);
	s.count[1] = d.count[1] = htole32(29);
	prog_dma(p, 0, SP, &w, &d, &s);
	run(_metadata);
	for (i = 0; i < 2900; i++)
		ASSERT_EQ(y[i % 100 * 30 + i / 100], x[3 + i]);
}

static void dma_gather(meta *_metadata)
{
	struct neuron_dma_operand sb = dma_sbuf(), s, d;
	struct neuron_insn w = dma();
	unsigned int in, i;
	int32_t index[32];
	uint32_t *x, v;

	start(3);
	in = prog_arg(p, 50 * 16, NEURON_ARG_READ | NEURON_ARG_WRITE);
	x = prog_arg_mem(p, in);
	for (i = 0; i < 200; i++)
		x[i] = 1000 + i;
	for (i = 0; i < 32; i++) {
		index[i] = (i * 7) % 50;
		sbuf_put(p->core[0], i, A, &index[i], 4);
	}
	w.ap[0] = row(I32, 32, C, 4);
	s = dma_hbm(in, I32, 0, 4, 32, 16);
	s.index = ap_row(SBUF, I32, 0, 32, A, 1);
	s.index_dim = htole32(1);
	prog_dma(p, 0, POOL, &w, &sb, &s);
	run(_metadata);
	for (i = 0; i < 32; i++) {
		sbuf_get(p->core[0], i, C + 8, &v, 4);
		ASSERT_EQ(v, 1000 + index[i] * 4 + 2);
	}
	/* Out of bounds: a fault that names index and partition, or nothing happens. */
	index[9] = 50;
	sbuf_put(p->core[0], 9, A, &index[9], 4);
	v = 77;
	sbuf_put(p->core[0], 9, C + 8, &v, 4);
	expect_fault(_metadata, NEURON_FAULT_OOB_INDEX);
	EXPECT_EQ(le32toh(p->job.fault.index), 50);
	EXPECT_EQ(p->job.fault.partition, 9);
	prog_reset(p);
	in = prog_arg(p, 50 * 16, NEURON_ARG_READ | NEURON_ARG_WRITE);
	w.flags = htole16(NEURON_FLAG_OOB_SKIP);
	prog_dma(p, 0, POOL, &w, &sb, &s);
	run(_metadata);
	sbuf_get(p->core[0], 9, C + 8, &v, 4);
	EXPECT_EQ(v, 77);
	/* Scatter: row_bound is smaller than the tensor. */
	prog_reset(p);
	in = prog_arg(p, 50 * 16, NEURON_ARG_READ | NEURON_ARG_WRITE);
	d = s;
	d.row_bound = htole64(20);
	w.ap[1] = w.ap[0];
	w.ap[0] = ap_none();
	memset(x, 0, 800);
	prog_dma(p, 0, POOL, &w, &d, &sb);
	run(_metadata);
	for (i = 0; i < 50; i++)
		ASSERT_EQ(x[i * 4] != 0, i < 20 && i != 13 && (i * 43) % 50 < 32) {
			TH_LOG("row %u: %u", i, x[i * 4]);
		}
}

static void dma_faults(meta *_metadata)
{
	struct neuron_dma_operand sb = dma_sbuf(), s;
	struct neuron_insn w = dma();

	start(3);
	prog_arg(p, 4096, NEURON_ARG_READ);
	w.ap[0] = row(F32, 32, C, 32);
	s = dma_hbm(0, F32, 4, 32, 32, 128);
	prog_dma(p, 0, SP, &w, &sb, &s);
	expect_fault(_metadata, NEURON_FAULT_ARG_BOUNDS);
	EXPECT_EQ(le64toh(p->job.fault.value), 4096);
	EXPECT_EQ(le32toh(p->job.fault.index), 0);
	prog_reset(p);
	prog_arg(p, 4096, NEURON_ARG_READ);
	w.ap[1] = w.ap[0];
	w.ap[0] = ap_none();
	s = dma_hbm(0, F32, 0, 32, 32, 128);
	prog_dma(p, 0, SP, &w, &s, &sb);
	expect_fault(_metadata, NEURON_FAULT_ARG_ACCESS);
	/* Strides whose product overflows 64 bits are outside, not inside. */
	prog_reset(p);
	prog_arg(p, 4096, NEURON_ARG_READ | NEURON_ARG_WRITE);
	s.stride[1] = htole64(1ull << 62);
	prog_dma(p, 0, SP, &w, &s, &sb);
	expect_fault(_metadata, NEURON_FAULT_ARG_BOUNDS);
	/* A page that is missing in the middle. */
	prog_reset(p);
	prog_arg(p, 3 * 4096, NEURON_ARG_WRITE);
	p->vm->hole = le64toh(p->arg[0].va) + 4096;
	p->vm->hole_size = 4096;
	w.ap[1] = row(F32, 32, C, 96);
	s = dma_hbm(0, F32, 0, 96, 32, 384);
	prog_dma(p, 0, SP, &w, &s, &sb);
	expect_fault(_metadata, NEURON_FAULT_PAGE_NOT_MAPPED);
	EXPECT_EQ(le64toh(p->job.fault.addr), p->vm->hole);
	/* DMA does not reach PSUM. */
	prog_reset(p);
	prog_arg(p, 4096, NEURON_ARG_READ | NEURON_ARG_WRITE);
	w.ap[1] = ap_row(PSUM, F32, 0, 32, 0, 32);
	s = dma_hbm(0, F32, 0, 32, 32, 128);
	prog_dma(p, 0, SP, &w, &s, &sb);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_DMA_COPY(meta *_metadata)
{
	dma_round_trip(_metadata, true, 2 << 20);
	dma_round_trip(_metadata, true, 4096);
	dma_round_trip(_metadata, true, 64);
	dma_round_trip(_metadata, false, 4096);
	dma_hbm_to_hbm(_metadata);
	dma_gather(_metadata);
	dma_faults(_metadata);
}
