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

	start_since(3);
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

	start_since(3);
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

	start_since(3);
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

	start_since(3);
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

/* --- adding ----------------------------------------------------------------------------- */

static void expect_bad(meta *_metadata, unsigned int operand)
{
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), operand);
}

/* dst += src, in HBM and in SBUF, with types that differ. */
static void dma_accumulate(meta *_metadata)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm;
	struct neuron_insn w = dma();
	unsigned int i, k;
	uint16_t *x;

	start_since(3);
	prog_arg(p, 32 * 40 * 2, NEURON_ARG_READ | NEURON_ARG_WRITE);
	x = prog_arg_mem(p, 0);
	for (i = 0; i < 32 * 40; i++) {
		num_put(BF16, x + i, uniform(-9, 9));
		a[i / 40][i % 40] = num_get(BF16, x + i);
	}
	fill(b, F32, 64, 32, A, 40, -9, 9);
	hbm = dma_hbm(0, BF16, 0, 40, 32, 80);
	w.flags = htole16(NEURON_FLAG_ACCUMULATE);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[1] = ap_row(SBUF, F32, 64, 32, A, 40);
	prog_dma(p, 0, SP, &w, &hbm, &sb);
	run(_metadata);
	for (i = 0; i < 32; i++) {
		for (k = 0; k < 40; k++) {
			got[i][k] = num_get(BF16, x + i * 40 + k);
			want[i][k] = a[i][k] + b[i][k];
		}
	}
	compare(_metadata, 32, 40, 0x1p-8);
	/* SBUF += HBM: fp32, so exact to an ulp. */
	prog_reset(p);
	prog_arg(p, 32 * 40 * 2, NEURON_ARG_READ);
	w.ap[0] = w.ap[1];
	w.ap[1] = ap_none();
	prog_dma(p, 0, SP, &w, &sb, &hbm);
	run(_metadata);
	fetch(b, F32, 64, 32, A, 40);
	for (i = 0; i < 32; i++)
		for (k = 0; k < 40; k++)
			want[i][k] = want[i][k] - a[i][k] + got[i][k];
	memcpy(got, b, sizeof(got));
	compare(_metadata, 32, 40, 0x1p-22);
	/* Only add, and what is added to is read. */
	prog_reset(p);
	prog_arg(p, 32 * 40 * 2, NEURON_ARG_READ);
	w.op[0] = NEURON_ALU_MAXIMUM;
	prog_dma(p, 0, SP, &w, &sb, &hbm);
	expect_bad(_metadata, 6);
	prog_reset(p);
	prog_arg(p, 32 * 40 * 2, NEURON_ARG_WRITE);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[1] = w.ap[0];
	w.ap[0] = ap_none();
	prog_dma(p, 0, SP, &w, &hbm, &sb);
	expect_fault(_metadata, NEURON_FAULT_ARG_ACCESS);
}

static void put_index(unsigned int part, uint32_t offset, uint32_t value)
{
	sbuf_put(p->core[0], part, offset, &value, 4);
}

/* Rows by index += rows in order; the same index twice is refused. */
static void dma_scatter_add(meta *_metadata, bool duplicate)
{
	struct neuron_dma_operand sb = dma_sbuf(), d;
	struct neuron_insn w = dma();
	unsigned int i, k, at[32];
	float *x;

	start_since(3);
	prog_arg(p, 50 * 24, NEURON_ARG_READ | NEURON_ARG_WRITE);
	x = prog_arg_mem(p, 0);
	for (i = 0; i < 50 * 6; i++) {
		x[i] = i;
		want[i / 6][i % 6] = i;
	}
	fill(a, F32, 0, 32, C, 6, 1, 9);
	for (i = 0; i < 32; i++) {
		at[i] = duplicate && i == 20 ? 33 : i * 11 % 50 + (i == 9 ? 50 : 0);
		put_index(i, A, at[i]);
		for (k = 0; k < 6; k++)
			if (at[i] < 50)
				want[at[i]][k] = (float)(want[at[i]][k] + a[i][k]);
	}
	d = dma_hbm(0, F32, 0, 6, 32, 24);
	d.index = ap_row(SBUF, NEURON_DTYPE_UINT32, 0, 32, A, 1);
	d.index_dim = htole32(1);
	w.flags = htole16(NEURON_FLAG_ACCUMULATE | NEURON_FLAG_OOB_SKIP);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[1] = row(F32, 32, C, 6);
	w.aux = htole32(NEURON_DGE_SWDGE << NEURON_DMA_DGE_SHIFT);
	prog_dma(p, 0, POOL, &w, &d, &sb);
	if (duplicate) {
		expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
		EXPECT_EQ(p->job.fault.partition, 20);
		return;
	}
	run(_metadata);
	for (i = 0; i < 50; i++)
		for (k = 0; k < 6; k++)
			ASSERT_EQ(x[i * 6 + k], (float)want[i][k]);
	/* Index 59 in error mode. */
	prog_reset(p);
	prog_arg(p, 50 * 24, NEURON_ARG_READ | NEURON_ARG_WRITE);
	w.flags = htole16(NEURON_FLAG_ACCUMULATE);
	prog_dma(p, 0, POOL, &w, &d, &sb);
	expect_fault(_metadata, NEURON_FAULT_OOB_INDEX);
	EXPECT_EQ(p->job.fault.partition, 9);
}

/* Who may write descriptors: isa-semantics of dge_mode. */
static unsigned int dge_fault(unsigned int nc, unsigned int engine, unsigned int mode,
			      bool indexed, unsigned int dtype)
{
	struct neuron_dma_operand sb = dma_sbuf(), s;
	struct neuron_insn w = dma();
	unsigned int i;

	start(nc);
	prog_arg(p, 4096, NEURON_ARG_READ);
	for (i = 0; i < 32; i++)
		put_index(i, A, i);
	s = dma_hbm(0, F32, 0, 4, 32, 16);
	if (indexed) {
		s.index = ap_row(SBUF, I32, 0, 32, A, 1);
		s.index_dim = htole32(1);
	}
	w.ap[0] = row(dtype, 32, C, 4);
	w.aux = htole32(mode << NEURON_DMA_DGE_SHIFT);
	prog_dma(p, 0, engine, &w, &sb, &s);
	return prog_run(p);
}

static void dma_modes(meta *_metadata)
{
	const unsigned int bad = NEURON_FAULT_BAD_OPERAND;

	EXPECT_EQ(dge_fault(3, POOL, NEURON_DGE_SWDGE, true, F32), 0);
	EXPECT_EQ(dge_fault(3, SP, NEURON_DGE_SWDGE, false, F32), bad);
	EXPECT_EQ(dge_fault(3, SP, NEURON_DGE_HWDGE, false, F32), 0);
	EXPECT_EQ(dge_fault(3, ACT, NEURON_DGE_HWDGE, false, F32), 0);
	EXPECT_EQ(dge_fault(3, POOL, NEURON_DGE_HWDGE, false, F32), bad);
	EXPECT_EQ(dge_fault(2, SP, NEURON_DGE_HWDGE, false, F32), bad);
	EXPECT_EQ(dge_fault(3, SP, NEURON_DGE_HWDGE, true, F32), bad);
	EXPECT_EQ(dge_fault(3, SP, NEURON_DGE_HWDGE, false, BF16), bad);
	EXPECT_EQ(dge_fault(3, SP, NEURON_DGE_NONE, false, BF16), 0);
	EXPECT_EQ(dge_fault(3, POOL, NEURON_DGE_NONE, true, F32), bad);
	EXPECT_EQ(dge_fault(2, POOL, NEURON_DGE_SWDGE, true, BF16), 0);
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
	dma_accumulate(_metadata);
	dma_scatter_add(_metadata, false);
	dma_scatter_add(_metadata, true);
	dma_modes(_metadata);
}

/* --- transposes ---------------------------------------------------------------------------- */

/* Axes of @rank dimensions from the outermost, contiguous. */
static struct neuron_dma_operand hbm_shape(unsigned int arg, unsigned int dtype,
					   const unsigned int *shape, unsigned int rank)
{
	struct neuron_dma_operand d = dma_hbm(arg, dtype, 0, 1, 1, 1);
	uint64_t stride = num_dtype(dtype)->bytes;
	unsigned int i;

	d.dims = rank;
	for (i = 0; i < rank; i++) {
		d.count[i] = htole32(shape[rank - 1 - i]);
		d.stride[i] = htole64(stride);
		stride *= shape[rank - 1 - i];
	}
	return d;
}

/* HBM to HBM: @axes of @shape, by brute force. */
static void transpose(meta *_metadata, unsigned int op, const unsigned int *axes, unsigned int rank,
		      const unsigned int *shape, unsigned int dtype)
{
	unsigned int n = 1, i, k, bytes = num_dtype(dtype)->bytes, dst[4], at[4], to;
	struct neuron_dma_operand d, s;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_TRANSPOSE);
	uint8_t *x, *y;

	for (i = 0; i < rank; i++)
		n *= shape[i];
	start_since(3);
	prog_arg(p, n * bytes, NEURON_ARG_READ);
	prog_arg(p, n * bytes, NEURON_ARG_WRITE);
	x = prog_arg_mem(p, 0);
	y = prog_arg_mem(p, 1);
	for (i = 0; i < n * bytes; i++)
		x[i] = num_random(&rng);
	for (i = 0; i < rank; i++)
		dst[i] = shape[axes[i]];
	s = hbm_shape(0, dtype, shape, rank);
	d = hbm_shape(1, dtype, dst, rank);
	w.op[0] = op;
	prog_dma(p, 0, SP, &w, &d, &s);
	run(_metadata);
	for (i = 0; i < n; i++) {
		unsigned int rest = i;

		for (k = rank; k--; rest /= shape[k])
			at[k] = rest % shape[k];
		for (to = 0, k = 0; k < rank; k++)
			to = to * dst[k] + at[axes[k]];
		ASSERT_EQ(memcmp(y + to * bytes, x + i * bytes, bytes), 0);
	}
}

/* HBM [rows, 48] to SBUF [48, rows]. */
static void transpose_to_sbuf(meta *_metadata, unsigned int mode, unsigned int fault)
{
	const unsigned int shape[] = { 16, 48 };
	struct neuron_dma_operand sb = dma_sbuf(), s = hbm_shape(0, BF16, shape, 2);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_TRANSPOSE);
	unsigned int i, k;
	uint16_t *x, v;

	start_since(3);
	prog_arg(p, 16 * 48 * 2, NEURON_ARG_READ);
	x = prog_arg_mem(p, 0);
	for (i = 0; i < 16 * 48; i++)
		x[i] = i;
	w.ap[0] = ap_row(SBUF, BF16, 16, 48, C, 16);
	w.aux = htole32(mode << NEURON_DMA_DGE_SHIFT);
	prog_dma(p, 0, SP, &w, &sb, &s);
	if (fault) {
		expect_fault(_metadata, fault);
		return;
	}
	run(_metadata);
	for (i = 0; i < 48; i++) {
		for (k = 0; k < 16; k++) {
			sbuf_get(p->core[0], 16 + i, C + 2 * k, &v, 2);
			ASSERT_EQ(v, k * 48 + i);
		}
	}
}

/* dst = src[flat].T with flat = index^T flattened; two columns of 128. */
static void transpose_indirect(meta *_metadata)
{
	const unsigned int table[] = { 256, 40 };
	struct neuron_dma_operand sb = dma_sbuf(), s = hbm_shape(0, BF16, table, 2);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_TRANSPOSE);
	unsigned int i, k, flat[256];
	uint16_t *x, v;

	start_since(3);
	prog_arg(p, 300 * 40 * 2, NEURON_ARG_READ);
	x = prog_arg_mem(p, 0);
	for (i = 0; i < 300 * 40; i++)
		x[i] = i;
	for (i = 0; i < 256; i++) {
		flat[i] = i == 77 ? 300 : i * 101 % 300;
		put_index(i % 128, A + i / 128 * 4, flat[i]);
	}
	s.index = ap_row(SBUF, NEURON_DTYPE_UINT32, 0, 128, A, 2);
	s.index_dim = htole32(1);
	w.ap[0] = ap_row(SBUF, BF16, 0, 40, C, 256);
	w.aux = htole32(NEURON_DGE_SWDGE << NEURON_DMA_DGE_SHIFT);
	prog_dma(p, 0, POOL, &w, &sb, &s);
	expect_fault(_metadata, NEURON_FAULT_OOB_INDEX);
	EXPECT_EQ(le32toh(p->job.fault.index), 300);
	EXPECT_EQ(p->job.fault.partition, 77);
	prog_reset(p);
	prog_arg(p, 300 * 40 * 2, NEURON_ARG_READ);
	v = 0xdead;
	for (i = 0; i < 40; i++)
		sbuf_put(p->core[0], i, C + 2 * 77, &v, 2);
	w.flags = htole16(NEURON_FLAG_OOB_SKIP);
	prog_dma(p, 0, POOL, &w, &sb, &s);
	run(_metadata);
	for (i = 0; i < 40; i++) {
		for (k = 0; k < 256; k++) {
			sbuf_get(p->core[0], i, C + 2 * k, &v, 2);
			ASSERT_EQ(v, k == 77 ? 0xdead : (uint16_t)(flat[k] * 40 + i));
		}
	}
}

static void transpose_limits(meta *_metadata)
{
	const unsigned int shape[] = { 12, 20 }, wide[] = { 20, 12 };
	struct neuron_dma_operand d = hbm_shape(1, BF16, wide, 2), s = hbm_shape(0, BF16, shape, 2);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_TRANSPOSE);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		start_since(3);
		prog_arg(p, 4096, NEURON_ARG_READ | NEURON_ARG_WRITE);
		prog_arg(p, 4096, NEURON_ARG_READ | NEURON_ARG_WRITE);
		w.op[0] = i == 0 ? 3 : i == 1 ? NEURON_AXES_210 : NEURON_AXES_10;
		w.aux = htole32(i == 3 ? NEURON_DGE_HWDGE << NEURON_DMA_DGE_SHIFT : 0);
		d.count[0] = htole32(i == 2 ? 20 : 12);
		d.count[1] = htole32(i == 2 ? 12 : 20);
		d.dtype = s.dtype = i == 4 ? U8 : BF16;
		prog_dma(p, 0, SP, &w, &d, &s);
		/* axes, rank, shape, hardware's 16 rows, type. */
		expect_bad(_metadata, i == 0 ? 6 : i == 2 ? 0 : 1);
	}
}

void row_DMA_TRANSPOSE(meta *_metadata)
{
	static const unsigned int a10[] = { 1, 0 }, a210[] = { 2, 1, 0 }, a3120[] = { 3, 1, 2, 0 };
	static const unsigned int shape[] = { 5, 3, 7, 4 };

	transpose(_metadata, NEURON_AXES_10, a10, 2, shape, BF16);
	transpose(_metadata, NEURON_AXES_10, a10, 2, shape + 1, F32);
	transpose(_metadata, NEURON_AXES_210, a210, 3, shape, F32);
	transpose(_metadata, NEURON_AXES_3120, a3120, 4, shape, BF16);
	transpose_to_sbuf(_metadata, NEURON_DGE_UNKNOWN, 0);
	transpose_to_sbuf(_metadata, NEURON_DGE_HWDGE, 0);
	transpose_to_sbuf(_metadata, NEURON_DGE_SWDGE, NEURON_FAULT_BAD_OPERAND);
	transpose_indirect(_metadata);
	transpose_limits(_metadata);
}

/* --- sums ------------------------------------------------------------------------------------ */

static struct neuron_dma_operand sb_source(unsigned int dtype, unsigned int parts, uint32_t offset,
					   unsigned int n)
{
	struct neuron_dma_operand d = dma_sbuf();

	d.index = ap_row(SBUF, dtype, 0, parts, offset, n);
	return d;
}

/* @sources tiles of 32 x 24: even ones bf16 in HBM, odd ones fp32 in SBUF. */
static void compute_sum(meta *_metadata, unsigned int sources)
{
	struct neuron_dma_operand d[17];
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COMPUTE);
	unsigned int i, k, s;
	uint16_t *x;
	float sum;

	start_since(3);
	prog_arg(p, 16 * 32 * 24 * 2, NEURON_ARG_READ);
	x = prog_arg_mem(p, 0);
	memset(want, 0, sizeof(want));
	d[0] = dma_sbuf();
	w.ap[0] = ap_row(SBUF, F32, 64, 32, D, 24);
	for (s = 0; s < sources; s++) {
		if (s % 2)
			fill(a, F32, 0, 32, s * 256, 24, -9, 9);
		for (i = 0; i < 32 * 24 && s % 2 == 0; i++) {
			num_put(BF16, x + s * 768 + i, uniform(-9, 9));
			a[i / 24][i % 24] = num_get(BF16, x + s * 768 + i);
		}
		d[1 + s] = s % 2 ? sb_source(F32, 32, s * 256, 24) :
				   dma_hbm(0, BF16, s * 768 * 2, 24, 32, 48);
		for (i = 0; i < 32; i++) {
			for (k = 0; k < 24; k++) {
				sum = (float)want[i][k] + (float)a[i][k];
				want[i][k] = sum;
			}
		}
	}
	w.words = 2 + sources;
	w.op[0] = NEURON_ALU_ADD;
	prog_words(p, 0, SP, &w, d, 1 + sources);
	run(_metadata);
	fetch(got, F32, 64, 32, D, 24);
	compare(_metadata, 32, 24, 0);
}

static void compute_limits(meta *_metadata)
{
	struct neuron_dma_operand d[18];
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COMPUTE);
	unsigned int i;

	for (i = 0; i < 18; i++)
		d[i] = sb_source(F32, 32, 0, 24);
	d[0] = dma_sbuf();
	w.ap[0] = row(F32, 32, D, 24);
	start_since(3);
	w.op[0] = NEURON_ALU_ADD;
	w.words = 19;
	prog_words(p, 0, SP, &w, d, 18);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
	start_since(3);
	w.words = 2;
	prog_words(p, 0, SP, &w, d, 1);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
	start_since(3);
	w.words = 4;
	w.op[0] = NEURON_ALU_MULTIPLY;
	prog_words(p, 0, SP, &w, d, 3);
	expect_bad(_metadata, 6);
	/* The second source is smaller. */
	start_since(3);
	w.op[0] = NEURON_ALU_ADD;
	d[2].index.num[0] = htole16(23);
	prog_words(p, 0, SP, &w, d, 3);
	expect_bad(_metadata, 2);
}

/* Gather-add: SBUF += rows of HBM by index. */
static void compute_gather(meta *_metadata)
{
	struct neuron_dma_operand d[3];
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COMPUTE);
	unsigned int i, k;
	float *x;

	start_since(3);
	prog_arg(p, 100 * 5 * 4, NEURON_ARG_READ);
	x = prog_arg_mem(p, 0);
	for (i = 0; i < 500; i++)
		x[i] = i;
	fill(a, F32, 0, 16, C, 5, -9, 9);
	for (i = 0; i < 16; i++) {
		put_index(i, A, 99 - i * 3);
		for (k = 0; k < 5; k++)
			want[i][k] = (float)(a[i][k] + (99 - i * 3) * 5 + k);
	}
	d[0] = dma_sbuf();
	d[1] = sb_source(F32, 16, C, 5);
	d[2] = dma_hbm(0, F32, 0, 5, 16, 20);
	d[2].index = ap_row(SBUF, NEURON_DTYPE_UINT32, 0, 16, A, 1);
	d[2].index_dim = htole32(1);
	w.words = 4;
	w.op[0] = NEURON_ALU_ADD;
	w.ap[0] = row(F32, 16, C, 5);
	w.aux = htole32(NEURON_DGE_SWDGE << NEURON_DMA_DGE_SHIFT);
	prog_words(p, 0, POOL, &w, d, 3);
	run(_metadata);
	fetch(got, F32, 0, 16, C, 5);
	compare(_metadata, 16, 5, 0);
}

void row_DMA_COMPUTE(meta *_metadata)
{
	compute_sum(_metadata, 1);
	compute_sum(_metadata, 2);
	compute_sum(_metadata, 16);
	compute_gather(_metadata);
	compute_limits(_metadata);
}
