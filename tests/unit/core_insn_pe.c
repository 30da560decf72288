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
	matmul_double_row(_metadata);
	start(4);
	check_matmul(_metadata, NEURON_DTYPE_FLOAT8_E4M3FN, 128, 128, 512, 1);
	/* Over more than one bank. */
	check_matmul(_metadata, BF16, 128, 128, 1000, 2);
}
