// SPDX-License-Identifier: MIT
/*
 * What each instruction of isa.def does, against references in double. A row without
 * a function row_NAME() here does not compile.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "fake_vm.h"
#include "numeric.h"

#define SBUF	NEURON_SPACE_SBUF
#define PSUM	NEURON_SPACE_PSUM
#define F32	NEURON_DTYPE_FLOAT32
#define BF16	NEURON_DTYPE_BFLOAT16
#define I32	NEURON_DTYPE_INT32
#define U8	NEURON_DTYPE_UINT8
#define DVE	NEURON_ENGINE_DVE
#define ACT	NEURON_ENGINE_ACT
#define POOL	NEURON_ENGINE_POOL
#define SP	NEURON_ENGINE_SP
#define PE	NEURON_ENGINE_PE

/* Offsets of three tiles in every partition, far enough apart. */
#define A	0x0000
#define B	0x4000
#define C	0x8000
#define D	0xc000

#define MAX_N	1024

typedef double tile[128][MAX_N];

static tile a, b, c, want, got;
static struct prog *p;
static uint64_t rng = 99;

typedef struct __test_metadata meta;

static double uniform(double lo, double hi)
{
	return lo + (hi - lo) * (num_random(&rng) >> 11) * 0x1p-53;
}

/* Random values in SBUF, as @t has them after rounding. */
static void fill(tile t, unsigned int dtype, unsigned int part, unsigned int parts,
		 uint32_t offset, unsigned int n, double lo, double hi)
{
	unsigned int i, k, bytes = num_dtype(dtype)->bytes;
	uint8_t row[MAX_N * 4];

	for (i = 0; i < parts; i++) {
		for (k = 0; k < n; k++) {
			num_put(dtype, row + k * bytes, uniform(lo, hi));
			t[i][k] = num_get(dtype, row + k * bytes);
		}
		sbuf_put(p->core[0], part + i, offset, row, n * bytes);
	}
}

static void fetch(tile t, unsigned int dtype, unsigned int part, unsigned int parts,
		  uint32_t offset, unsigned int n)
{
	unsigned int i, k, bytes = num_dtype(dtype)->bytes;
	uint8_t row[MAX_N * 4];

	for (i = 0; i < parts; i++) {
		sbuf_get(p->core[0], part + i, offset, row, n * bytes);
		for (k = 0; k < n; k++)
			t[i][k] = num_get(dtype, row + k * bytes);
	}
}

/* |got - want| <= tol * max(1, |want|) for every element. */
static void compare(meta *_metadata, unsigned int parts, unsigned int n, double tol)
{
	unsigned int i, k;

	for (i = 0; i < parts; i++) {
		for (k = 0; k < n; k++) {
			double scale = fabs(want[i][k]) > 1 ? fabs(want[i][k]) : 1;

			ASSERT_TRUE(fabs(got[i][k] - want[i][k]) <= tol * scale) {
				TH_LOG("[%u][%u]: %.9g, expected %.9g", i, k, got[i][k], want[i][k]);
			}
		}
	}
}

static void run(meta *_metadata)
{
	unsigned int fault = prog_run(p);

	ASSERT_EQ(fault, NEURON_FAULT_NONE) {
		TH_LOG("opcode %#x operand %u: %llu given, %llu allowed", p->job.fault.opcode,
		       le32toh(p->job.fault.index), (unsigned long long)le64toh(p->job.fault.addr),
		       (unsigned long long)le64toh(p->job.fault.value));
	}
}

static void expect_fault(meta *_metadata, unsigned int code)
{
	ASSERT_EQ(prog_run(p), code);
}

static void start(unsigned int nc_version)
{
	if (p)
		prog_free(p);
	p = prog_new(nc_version, 1);
}

static struct neuron_ap row(unsigned int dtype, unsigned int parts, uint32_t offset, unsigned int n)
{
	return ap_row(SBUF, dtype, 0, parts, offset, n);
}

/* --- sequencer ------------------------------------------------------------------------- */

static void row_NOP(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_NOP);

	start(3);
	prog_add(p, 0, SP, &w);
	run(_metadata);
	EXPECT_EQ(p->job.counters[0].insns, 1);
}

/* What a stream stores, seen from outside. */
static void store_reg(unsigned int engine, unsigned int reg, uint32_t offset)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_STORE);

	w.ap[0] = ap_row(SBUF, I32, 0, 1, offset, 1);
	w.imm[0] = imm_reg(reg, I32);
	prog_add(p, 0, engine, &w);
}

static int32_t stored(uint32_t offset)
{
	int32_t v;

	sbuf_get(p->core[0], 0, offset, &v, 4);
	return v;
}

static void move_reg(unsigned int engine, unsigned int reg, int32_t value)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_MOVE);

	w.imm[0] = imm_i32(value);
	w.aux = htole32(reg);
	prog_add(p, 0, engine, &w);
}

static void row_HALT(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_HALT);

	start(3);
	move_reg(ACT, 1, 5);
	store_reg(ACT, 1, 0);
	prog_add(p, 0, ACT, &w);
	move_reg(ACT, 1, 6);
	store_reg(ACT, 1, 0);
	run(_metadata);
	EXPECT_EQ(stored(0), 5);
}

static void row_EVENT_SEMAPHORE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_EVENT_SEMAPHORE);

	start(3);
	w.update = update_add(7, 3);
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 7, NEURON_UPDATE_SEM_SUB, htole16(1) };
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 8, NEURON_UPDATE_SEM_WRITE, htole16(9) };
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 3, NEURON_UPDATE_EVENT_SET, 0 };
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 0 };
	w.wait[0] = (struct neuron_wait){ 7, NEURON_WAIT_EQ, htole16(2) };
	w.wait[1] = (struct neuron_wait){ 3, NEURON_WAIT_EVENT_CLEAR, 0 };
	prog_add(p, 0, ACT, &w);
	w.wait[0] = wait_sub(8, 4);
	w.wait[1] = wait_sub(8, 5);
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 7), 2);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 8), 0);
	EXPECT_EQ(chip_core_event_get(p->core[0], 3), 0);
}

static void row_REG_MOVE(meta *_metadata)
{
	start(3);
	move_reg(DVE, 63, -7);
	store_reg(DVE, 63, 16);
	run(_metadata);
	EXPECT_EQ(stored(16), -7);
	prog_reset(p);
	move_reg(DVE, 64, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 63);
}

static int32_t alu(meta *_metadata, unsigned int op, int32_t x, int32_t y)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_ALU);

	prog_reset(p);
	move_reg(POOL, 2, x);
	w.op[0] = op;
	w.imm[0] = imm_reg(2, I32);
	w.imm[1] = imm_i32(y);
	w.aux = htole32(3);
	prog_add(p, 0, POOL, &w);
	store_reg(POOL, 3, 0);
	run(_metadata);
	return stored(0);
}

static void row_REG_ALU(meta *_metadata)
{
	start(3);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_ADD, INT32_MAX, 1), INT32_MIN);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_SUBTRACT, 3, 10), -7);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_MULTIPLY, -3, 1000), -3000);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_MAXIMUM, -3, 2), 2);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_MINIMUM, -3, 2), -3);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_LESS, -3, 2), 1);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_GREATER_EQUAL, -3, 2), 0);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_EQUAL, 2, 2), 1);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_LEFT_SHIFT, 3, 4), 48);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_RIGHT_SHIFT, -1, 28), 15);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_BITWISE_XOR, 0xff, 0x0f), 0xf0);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_LOGICAL_AND, 4, 2), 1);
	prog_reset(p);
	struct neuron_insn w = insn_new(NEURON_OP_REG_ALU);

	w.op[0] = NEURON_ALU_POWER;
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

static void row_COMPARE_BRANCH(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_ALU);

	start(3);
	/* Sum of 1 to 100. */
	move_reg(SP, 0, 0);
	move_reg(SP, 1, 0);
	w.op[0] = NEURON_ALU_ADD;
	w.imm[0] = imm_reg(0, I32);
	w.imm[1] = imm_i32(1);
	prog_add(p, 0, SP, &w);
	w.imm[0] = imm_reg(1, I32);
	w.imm[1] = imm_reg(0, I32);
	w.aux = htole32(1);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_COMPARE_BRANCH);
	w.op[0] = NEURON_ALU_LESS;
	w.imm[0] = imm_reg(0, I32);
	w.imm[1] = imm_i32(100);
	w.aux = htole32(2);
	prog_add(p, 0, SP, &w);
	store_reg(SP, 1, 0);
	run(_metadata);
	EXPECT_EQ(stored(0), 5050);
	/* A target outside the stream. */
	prog_reset(p);
	w.aux = htole32(2);
	prog_add(p, 0, SP, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

static void row_TENSOR_LOAD(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_LOAD);
	int32_t v = -123456;

	start(3);
	sbuf_put(p->core[0], 5, 64, &v, 4);
	w.ap[1] = ap_row(SBUF, I32, 5, 1, 64, 1);
	w.aux = htole32(9);
	prog_add(p, 0, ACT, &w);
	store_reg(ACT, 9, 0);
	run(_metadata);
	EXPECT_EQ(stored(0), v);
}

static void row_TENSOR_STORE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_STORE);

	start(3);
	w.ap[0] = ap_row(SBUF, F32, 0, 1, 4, 1);
	w.imm[0] = imm_f32(1.5f);
	prog_add(p, 0, SP, &w);
	run(_metadata);
	fetch(got, F32, 0, 1, 4, 1);
	EXPECT_EQ(got[0][0], 1.5);
}

/* --- tensor engine ----------------------------------------------------------------------- */

/* PSUM to SBUF at @offset, by DVE, when the products are done. */
static void drain(unsigned int dtype, unsigned int parts, uint32_t from, uint32_t to, unsigned int n)
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

static void row_LDWEIGHTS(meta *_metadata)
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

static void row_MATMUL(meta *_metadata)
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

/* --- scalar engine --------------------------------------------------------------------------- */

static void row_ACTIVATE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_ACTIVATE);
	unsigned int i, k;

	start(3);
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

static void row_ACT_READ_ACC(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_ACTIVATE);
	unsigned int i, k;

	start(3);
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

/* --- vector engine ----------------------------------------------------------------------------- */

static void row_TENSOR_COPY(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY);
	unsigned int i, k;

	start(3);
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

static void row_COPY_PREDICATED(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_COPY_PREDICATED);
	unsigned int i, k, reverse;

	for (reverse = 0; reverse < 2; reverse++) {
		start(3);
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

static void row_MEMSET(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	unsigned int i, k;

	start(3);
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

static void row_TENSOR_TENSOR(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_TENSOR);
	unsigned int i, k;
	int32_t x = 0x7fffff01, y = 2;

	start(3);
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
		start(3);
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

static void row_TENSOR_SCALAR(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_SCALAR);
	unsigned int i, k;

	start(3);
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

static void row_SCALAR_TENSOR_TENSOR(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_SCALAR_TENSOR_TENSOR);
	unsigned int i, k;

	start(3);
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

static void row_TENSOR_REDUCE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_REDUCE);
	unsigned int i, k, j;

	start(3);
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

static void row_RECIPROCAL(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_RECIPROCAL);
	unsigned int i, k;

	start(3);
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

static void row_SELECT(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_SELECT);
	unsigned int i, k;

	start(3);
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
}

static void row_TRANSPOSE32(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TRANSPOSE32);
	unsigned int i, k;

	start(3);
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

/* --- GpSimd ------------------------------------------------------------------------------------- */

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

static void row_IOTA(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_IOTA);
	unsigned int i, k;

	start(3);
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

static void row_AFFINE_SELECT(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_AFFINE_SELECT);
	unsigned int i, k;

	start(3);
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

/* --- DMA ------------------------------------------------------------------------------------------ */

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

static void row_DMA_COPY(meta *_metadata)
{
	dma_round_trip(_metadata, true, 2 << 20);
	dma_round_trip(_metadata, true, 4096);
	dma_round_trip(_metadata, true, 64);
	dma_round_trip(_metadata, false, 4096);
	dma_hbm_to_hbm(_metadata);
	dma_gather(_metadata);
	dma_faults(_metadata);
}

#define NEURON_INSN(code, name, text, eng, nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	TEST(name) { row_##name(_metadata); prog_free(p); }
#include "neuron/isa.def"

TEST_HARNESS_MAIN
