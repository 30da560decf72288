// SPDX-License-Identifier: MIT
/* The tensor engine. */
#include "core_insn.h"

/* PSUM to SBUF at @offset, by DVE, when the products are done. */
void drain(unsigned int dtype, unsigned int parts, uint32_t from, uint32_t to, unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY);

	w.ap[0] = ap_row(SBUF, dtype, 0, parts, to, n);
	w.ap[1] = ap_row(PSUM, dtype, 0, parts, from, n);
	w.wait[0] = wait_sub(1, 1);
	prog_add(p, 0, DVE, &w);
}

static void ldweights(unsigned int dtype, unsigned int k, unsigned int m)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);

	w.ap[1] = row(dtype, k, A, m);
	prog_add(p, 0, PE, &w);
}

static struct neuron_insn matmul(unsigned int dtype, unsigned int k, unsigned int m, unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_MATMUL);

	w.ap[0] = ap_row(PSUM, F32, 0, m, 0, n);
	w.ap[1] = row(dtype, k, B, n);
	w.update = update_add(1, 1);
	return w;
}

static void product(unsigned int k, unsigned int m, unsigned int n, double scale)
{
	unsigned int i, j, l;

	for (i = 0; i < m; i++) {
		for (j = 0; j < n; j++) {
			double sum = 0;

			for (l = 0; l < k; l++)
				sum += a[l][i] * b[l][j];
			want[i][j] = sum * scale;
		}
	}
}

static void check_matmul(meta *_metadata, unsigned int dtype, unsigned int k, unsigned int m,
			 unsigned int n, unsigned int times)
{
	struct neuron_insn w = matmul(dtype, k, m, n);
	unsigned int i;

	prog_reset(p);
	fill(a, dtype, 0, k, A, m, -2, 2);
	fill(b, dtype, 0, k, B, n, -2, 2);
	ldweights(dtype, k, m);
	for (i = 0; i < times; i++) {
		w.flags = htole16(i ? NEURON_FLAG_ACCUMULATE : 0);
		w.update = i + 1 == times ? update_add(1, 1) : (struct neuron_update){ 0 };
		prog_add(p, 0, PE, &w);
	}
	drain(F32, m, 0, C, n);
	run(_metadata);
	product(k, m, n, times);
	fetch(got, F32, 0, m, C, n);
	/* 128 products of up to 4, each sum rounded to 2^-24. */
	compare(_metadata, m, n, 128 * 4 * 0x1p-24 * times);
	EXPECT_EQ(p->job.counters[0].pe_macs, (uint64_t)k * m * n * times);
}

void row_LDWEIGHTS(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);

	start(3);
	check_matmul(_metadata, BF16, 128, 128, 512, 1);
	check_matmul(_metadata, BF16, 1, 1, 1, 1);
	check_matmul(_metadata, F32, 100, 77, 131, 1);
	/* Weights from strided memory: every other element, rows of 4 and 8. */
	prog_reset(p);
	fill(a, BF16, 0, 32, A, 64, -1, 1);
	fill(b, BF16, 0, 32, B, 8, -1, 1);
	w.ap[1] = row(BF16, 32, A, 4);
	w.ap[1].dims = 2;
	w.ap[1].num[1] = htole16(8);
	w.ap[1].step[0] = htole16(2);
	w.ap[1].step[1] = htole16(8);
	prog_add(p, 0, PE, &w);
	w = matmul(BF16, 32, 32, 8);
	prog_add(p, 0, PE, &w);
	drain(F32, 32, 0, C, 8);
	run(_metadata);
	for (unsigned int i = 0; i < 32; i++)
		for (unsigned int j = 0; j < 32; j++)
			c[i][j] = a[i][(j / 4) * 8 + (j % 4) * 2];
	memcpy(a, c, sizeof(a));
	product(32, 32, 8, 1);
	fetch(got, F32, 0, 32, C, 8);
	compare(_metadata, 32, 8, 1e-5);
	/* More columns than the array has. */
	prog_reset(p);
	ldweights(BF16, 128, 129);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 128);
}

static void matmul_limits(meta *_metadata)
{
	struct neuron_insn w;

	/* No weights. */
	prog_reset(p);
	w = matmul(BF16, 128, 128, 512);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	/* A result that crosses a PSUM bank. */
	prog_reset(p);
	ldweights(BF16, 128, 128);
	w.ap[0].offset = htole32(4);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), NEURON_PSUM_BANK_BYTES);
	/* fp32 pairs only with fp32. */
	prog_reset(p);
	ldweights(F32, 128, 128);
	w = matmul(BF16, 128, 128, 512);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	/* The OCP type came with Trn3. */
	prog_reset(p);
	ldweights(NEURON_DTYPE_FLOAT8_E4M3FN, 128, 128);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	/* PE does not read PSUM. */
	prog_reset(p);
	ldweights(BF16, 128, 128);
	w = matmul(BF16, 128, 128, 64);
	w.ap[1].space = PSUM;
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* Bits pass unchanged: signs of zero and NaN payloads too. */
static void matmul_transpose(meta *_metadata)
{
	static uint32_t in[64][48], out[48][64];
	struct neuron_insn w;
	unsigned int i, k;
	float one = 1;

	prog_reset(p);
	for (i = 0; i < 64; i++) {
		for (k = 0; k < 48; k++)
			in[i][k] = num_random(&rng);
		in[i][0] = 0xff812345;
		in[i][1] = 0x80000000;
		sbuf_put(p->core[0], i, A, in[i], sizeof(in[i]));
		memset(out, 0, sizeof(out));
		sbuf_put(p->core[0], i, B, out, 64 * 4);
		sbuf_put(p->core[0], i, B + i * 4, &one, 4);
	}
	ldweights(F32, 64, 48);
	w = matmul(F32, 64, 48, 64);
	w.flags = htole16(NEURON_FLAG_TRANSPOSE);
	prog_add(p, 0, PE, &w);
	drain(F32, 48, 0, C, 64);
	run(_metadata);
	for (k = 0; k < 48; k++) {
		sbuf_get(p->core[0], k, C, out[k], sizeof(out[k]));
		for (i = 0; i < 64; i++)
			ASSERT_EQ(out[k][i], in[i][k]);
	}
}

/* K = 256: the second half of each partition's elements are rows 128 to 255. */
static void matmul_double_row(meta *_metadata)
{
	const unsigned int fp8 = NEURON_DTYPE_FLOAT8_E4M3;
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);
	unsigned int i, j, l;

	prog_reset(p);
	fill(a, fp8, 0, 128, A, 2 * 64, -1, 1);
	fill(b, fp8, 0, 128, B, 2 * 96, -1, 1);
	w.ap[1] = row(fp8, 128, A, 2 * 64);
	w.flags = htole16(1 << NEURON_FLAG_PERF_SHIFT);
	prog_add(p, 0, PE, &w);
	w = matmul(fp8, 128, 64, 2 * 96);
	w.ap[0] = ap_row(PSUM, F32, 0, 64, 0, 96);
	w.flags = htole16(1 << NEURON_FLAG_PERF_SHIFT);
	prog_add(p, 0, PE, &w);
	drain(F32, 64, 0, C, 96);
	run(_metadata);
	for (i = 0; i < 64; i++) {
		for (j = 0; j < 96; j++) {
			want[i][j] = 0;
			for (l = 0; l < 128; l++)
				want[i][j] += a[l][i] * b[l][j] + a[l][64 + i] * b[l][96 + j];
		}
	}
	fetch(got, F32, 0, 64, C, 96);
	compare(_metadata, 64, 96, 1e-5);
}

/* --- tiles ------------------------------------------------------------------------------ */

static uint32_t tile_aux(unsigned int row, unsigned int column, unsigned int rows, unsigned int columns)
{
	return row / 32 << NEURON_TILE_ROW_SHIFT | column / 32 << NEURON_TILE_COLUMN_SHIFT |
	       rows / 32 << NEURON_TILE_ROWS_SHIFT | columns / 32 << NEURON_TILE_COLUMNS_SHIFT;
}

/*
 * Weights for every tile first, then the products, last tile first: each tile has its
 * own. Tile (r, c) multiplies partitions from r on with columns from c on.
 */
static void matmul_tiles(meta *_metadata, unsigned int rows, unsigned int columns)
{
	const unsigned int n = 40;
	unsigned int r, c, i, j, l, left = 128 / rows * (128 / columns);
	struct neuron_insn w;

	prog_reset(p);
	fill(a, BF16, 0, 128, A, 128, -2, 2);
	fill(b, BF16, 0, 128, B, n, -2, 2);
	for (r = 0; r < 128; r += rows) {
		for (c = 0; c < 128; c += columns) {
			w = insn_new(NEURON_OP_LDWEIGHTS);
			w.ap[1] = ap_row(SBUF, BF16, r, rows, A + 2 * c, columns);
			w.aux = htole32(tile_aux(r, c, rows, columns));
			prog_add(p, 0, PE, &w);
		}
	}
	for (r = 128; r; r -= rows) {
		for (c = 128; c; c -= columns) {
			w = matmul(BF16, rows, columns, n);
			w.ap[0] = ap_row(PSUM, F32, c - columns, columns, r / rows * n * 4 - n * 4, n);
			w.ap[1] = ap_row(SBUF, BF16, r - rows, rows, B, n);
			w.aux = htole32(tile_aux(r - rows, c - columns, rows, columns));
			if (--left)
				w.update = (struct neuron_update){ 0 };
			prog_add(p, 0, PE, &w);
		}
	}
	drain(F32, 128, 0, C, 128 / rows * n);
	run(_metadata);
	for (i = 0; i < 128; i++) {
		for (j = 0; j < 128 / rows * n; j++) {
			want[i][j] = 0;
			for (l = j / n * rows; l < (j / n + 1) * rows; l++)
				want[i][j] += a[l][i] * b[l][j % n];
		}
	}
	fetch(got, F32, 0, 128, C, 128 / rows * n);
	compare(_metadata, 128, 128 / rows * n, 128 * 4 * 0x1p-24);
}

static void tile_fault(meta *_metadata, uint32_t aux, unsigned int perf, uint64_t allowed)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);

	prog_reset(p);
	w.ap[1] = row(perf ? NEURON_DTYPE_FLOAT8_E4M3 : BF16, 32, A, 32);
	w.aux = htole32(aux);
	w.flags = htole16(perf << NEURON_FLAG_PERF_SHIFT);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), 7);
	EXPECT_EQ(le64toh(p->job.fault.value), allowed);
}

static void matmul_tile_limits(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);

	tile_fault(_metadata, tile_aux(32, 0, 64, 128), 0, 64);
	tile_fault(_metadata, tile_aux(0, 0, 96, 128), 0, 32);
	tile_fault(_metadata, tile_aux(0, 0, 32, 64) | 1 << 16, 0, 0xffff);
	/* Double row mode has no column tiles. */
	tile_fault(_metadata, tile_aux(0, 0, 32, 64), 1, 128);
	/* More columns than the tile has. */
	prog_reset(p);
	w.ap[1] = row(BF16, 32, A, 65);
	w.aux = htole32(tile_aux(0, 0, 32, 64));
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 64);
	/* More rows. */
	prog_reset(p);
	w.ap[1] = row(BF16, 64, A, 64);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 32);
	/* A tile that was loaded, and one that was not. */
	prog_reset(p);
	w.ap[1] = row(BF16, 32, A, 32);
	w.aux = htole32(tile_aux(0, 0, 32, 32));
	prog_add(p, 0, PE, &w);
	w = matmul(BF16, 32, 32, 8);
	w.aux = htole32(tile_aux(32, 0, 32, 32));
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), 14);
}

/* Weights of the whole array end what its tiles had, when a product takes them. */
static void matmul_tile_lost(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);

	prog_reset(p);
	w.ap[1] = row(BF16, 32, A, 32);
	w.aux = htole32(tile_aux(0, 0, 32, 32));
	prog_add(p, 0, PE, &w);
	w = matmul(BF16, 32, 32, 8);
	w.aux = htole32(tile_aux(0, 0, 32, 32));
	prog_add(p, 0, PE, &w);
	ldweights(BF16, 128, 128);
	prog_add(p, 0, PE, &w);		/* still there */
	w = matmul(BF16, 128, 128, 8);
	prog_add(p, 0, PE, &w);
	run(_metadata);
	w = matmul(BF16, 32, 32, 8);
	w.aux = htole32(tile_aux(0, 0, 32, 32));
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), 14);
}

/* --- accumulation ------------------------------------------------------------------------- */

/* Two products whose results overlap by half, and one whose own elements do. */
static void matmul_overlap(meta *_metadata)
{
	struct neuron_insn w;
	unsigned int i, j;

	prog_reset(p);
	fill(a, BF16, 0, 64, A, 48, -2, 2);
	fill(b, BF16, 0, 64, B, 64, -2, 2);
	w = insn_new(NEURON_OP_MEMSET);
	w.ap[0] = ap_row(PSUM, F32, 0, 48, 0, 128);
	w.imm[0] = imm_f32(0);
	w.update = update_add(2, 1);
	prog_add(p, 0, DVE, &w);
	ldweights(BF16, 64, 48);
	w = matmul(BF16, 64, 48, 64);
	w.flags = htole16(NEURON_FLAG_ACCUMULATE);
	w.wait[0] = wait_ge(2, 1);
	w.update = (struct neuron_update){ 0 };
	prog_add(p, 0, PE, &w);
	w.ap[0].offset = htole32(32 * 4);
	prog_add(p, 0, PE, &w);
	/* 8 rows of 8, each a column behind the last: a convolution's result. */
	w.ap[0] = ap_row(PSUM, F32, 0, 48, 100 * 4, 8);
	w.ap[0].dims = 2;
	w.ap[0].num[1] = htole16(8);
	w.ap[0].step[1] = htole16(1);
	w.update = update_add(1, 1);
	prog_add(p, 0, PE, &w);
	drain(F32, 48, 0, C, 128);
	run(_metadata);
	product(64, 48, 64, 1);
	memcpy(c, want, sizeof(c));
	memset(want, 0, sizeof(want));
	for (i = 0; i < 48; i++) {
		for (j = 0; j < 64; j++) {
			want[i][j] += c[i][j];
			want[i][32 + j] += c[i][j];
			want[i][100 + j / 8 + j % 8] += c[i][j];
		}
	}
	fetch(got, F32, 0, 48, C, 128);
	compare(_metadata, 48, 128, 1e-4);
}

/* Nearest bf16, ties to even: 8 significant bits. */
static double to_bf16(double x)
{
	int e;

	frexp(x, &e);
	return ldexp(nearbyint(ldexp(x, 8 - e)), e - 8);
}

/* Integers, so that sums in fp32 are exact. */
static void fill_integers(tile t, unsigned int parts, uint32_t offset, unsigned int n)
{
	unsigned int i, j;
	uint16_t h;

	for (i = 0; i < parts; i++) {
		for (j = 0; j < n; j++) {
			t[i][j] = floor(uniform(-8, 9));
			num_put(BF16, &h, t[i][j]);
			sbuf_put(p->core[0], i, offset + 2 * j, &h, 2);
		}
	}
}

/* Trn3: PSUM of bf16 is read, added in fp32 and rounded each time. */
static void matmul_bf16_psum(meta *_metadata)
{
	const unsigned int k = 128, m = 64, n = 96;
	struct neuron_insn w;
	unsigned int i, j, t;

	prog_reset(p);
	fill_integers(a, k, A, m);
	fill_integers(b, k, B, n);
	ldweights(BF16, k, m);
	for (t = 0; t < 4; t++) {
		w = matmul(BF16, k, m, n);
		w.ap[0].dtype = BF16;
		w.flags = htole16(t ? NEURON_FLAG_ACCUMULATE : 0);
		if (t < 3)
			w.update = (struct neuron_update){ 0 };
		prog_add(p, 0, PE, &w);
	}
	drain(BF16, m, 0, C, n);
	run(_metadata);
	product(k, m, n, 1);
	fetch(got, BF16, 0, m, C, n);
	for (i = 0; i < m; i++) {
		for (j = 0; j < n; j++) {
			double sum = 0;

			for (t = 0; t < 4; t++)
				sum = to_bf16(sum + want[i][j]);
			ASSERT_EQ(got[i][j], sum);
		}
	}
	/* fp32 is the only other type; Trn2 has it alone. */
	start(3);
	ldweights(BF16, k, m);
	w = matmul(BF16, k, m, n);
	w.ap[0].dtype = BF16;
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), F32);
}

/* N: 512 columns up to Trn2, then 4096 of fp32 and 8192 of bf16. */
static void matmul_columns(meta *_metadata, unsigned int dtype, unsigned int n, bool legal)
{
	struct neuron_insn w;

	prog_reset(p);
	ldweights(BF16, 32, 32);
	w = matmul(BF16, 32, 32, n);
	w.ap[0].dtype = dtype;
	prog_add(p, 0, PE, &w);
	EXPECT_EQ(prog_run(p), legal ? NEURON_FAULT_NONE : NEURON_FAULT_BAD_OPERAND);
}

/* fp8 comes out of a transpose in 16 bits, the upper byte 0. */
static void matmul_transpose_fp8(meta *_metadata)
{
	const unsigned int fp8 = NEURON_DTYPE_FLOAT8_E4M3;
	uint8_t in[32][32], one[32];
	uint16_t out[32];
	struct neuron_insn w;
	unsigned int i, k;

	prog_reset(p);
	for (i = 0; i < 32; i++) {
		for (k = 0; k < 32; k++)
			in[i][k] = num_random(&rng) >> 30;
		memset(one, 0, sizeof(one));
		num_put(fp8, &one[i], 1);
		sbuf_put(p->core[0], i, A, in[i], 32);
		sbuf_put(p->core[0], i, B, one, 32);
	}
	ldweights(fp8, 32, 32);
	w = matmul(fp8, 32, 32, 32);
	w.ap[0].dtype = NEURON_DTYPE_UINT16;
	w.flags = htole16(NEURON_FLAG_TRANSPOSE);
	prog_add(p, 0, PE, &w);
	drain(NEURON_DTYPE_UINT16, 32, 0, C, 32);
	run(_metadata);
	for (k = 0; k < 32; k++) {
		sbuf_get(p->core[0], k, C, out, sizeof(out));
		for (i = 0; i < 32; i++)
			ASSERT_EQ(out[i], in[i][k]);
	}
}

void row_MATMUL(meta *_metadata)
{
	start(3);
	check_matmul(_metadata, BF16, 128, 128, 512, 3);
	check_matmul(_metadata, NEURON_DTYPE_FLOAT16, 96, 128, 33, 2);
	check_matmul(_metadata, NEURON_DTYPE_FLOAT8_E4M3, 128, 64, 64, 1);
	check_matmul(_metadata, NEURON_DTYPE_FLOAT8_E5M2, 32, 7, 64, 1);
	check_matmul(_metadata, NEURON_DTYPE_TFLOAT32, 128, 128, 100, 1);
	check_matmul(_metadata, F32, 128, 128, 512, 2);
	matmul_limits(_metadata);
	matmul_transpose(_metadata);
	matmul_transpose_fp8(_metadata);
	matmul_double_row(_metadata);
	matmul_tiles(_metadata, 32, 32);
	matmul_tiles(_metadata, 64, 128);
	matmul_tiles(_metadata, 128, 32);
	matmul_tile_limits(_metadata);
	matmul_tile_lost(_metadata);
	matmul_overlap(_metadata);
	matmul_columns(_metadata, F32, 513, false);
	start(2);
	tile_fault(_metadata, tile_aux(0, 0, 32, 64), 0, 64);
	matmul_tiles(_metadata, 64, 64);
	start(4);
	matmul_columns(_metadata, F32, 4096, true);
	matmul_columns(_metadata, F32, 4097, false);
	matmul_columns(_metadata, BF16, 8192, true);
	matmul_columns(_metadata, BF16, 8193, false);
	check_matmul(_metadata, NEURON_DTYPE_FLOAT8_E4M3FN, 128, 128, 512, 1);
	/* Over more than one bank. */
	check_matmul(_metadata, BF16, 128, 128, 1000, 2);
	matmul_bf16_psum(_metadata);
}
