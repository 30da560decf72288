// SPDX-License-Identifier: MIT
/*
 * Packed MX values: LDWEIGHTS_MX, MATMUL_MX, QUANTIZE_MX. The reference decodes them
 * as the OCP MX text defines the formats, in double.
 */
#include "core_insn.h"

#define E5X4	NEURON_DTYPE_FLOAT8_E5M2_X4
#define E4X4	NEURON_DTYPE_FLOAT8_E4M3FN_X4
#define F4X4	NEURON_DTYPE_FLOAT4_E2M1FN_X4
#define E8	NEURON_DTYPE_FLOAT8_E8M0FNU

#define SCALES	0x10000		/* of the stationary operand; the moving one's + 0x2000 */

static uint8_t bytes[128][4 * 512], scale[16][512];
static double s_val[512][128], m_val[512][512];

/* Sign, exponent of @man mantissa bits less, bias: the formats' definition. */
static double small_float(unsigned int c, unsigned int width, unsigned int man, int bias)
{
	unsigned int m = c & ((1u << man) - 1), e = (c & ((1u << (width - 1)) - 1)) >> man;
	double v = e ? ldexp((1u << man) + m, (int)e - bias - (int)man) : ldexp(m, 1 - bias - (int)man);

	return c >> (width - 1) ? -v : v;
}

static double code_value(unsigned int dtype, unsigned int code)
{
	switch (dtype) {
	case E5X4: return small_float(code, 8, 2, 15);
	case E4X4: return small_float(code, 8, 3, 7);
	default: return small_float(code, 4, 1, 1);
	}
}

/* Any finite value of the type, of moderate size. */
static unsigned int random_code(unsigned int dtype)
{
	unsigned int c = num_random(&rng) >> 40;

	switch (dtype) {
	case E5X4: return (c & 0x83) | (10 + (c >> 8) % 8) << 2;
	case E4X4: return (c & 0xff) % 127 | (c >> 9 & 1) << 7;
	default: return c & 15;
	}
}

/*
 * Operand of @parts partitions and @n columns at @offset, scales at @at in partitions
 * @off of each quadrant; its values to @to, row 4 p + q.
 */
static void mx_fill(unsigned int dtype, unsigned int parts, unsigned int n, uint32_t offset,
		    uint32_t at, unsigned int off, double *to, unsigned int ld)
{
	unsigned int part, f, q, g, size = dtype == F4X4 ? 2 : 4;

	for (g = 0; g < parts / 8; g++) {
		for (f = 0; f < n; f++)
			scale[g][f] = 122 + (num_random(&rng) >> 33) % 10;
		sbuf_put(p->core[0], 32 * (g / 4) + off + g % 4, at, scale[g], n);
	}
	memset(bytes, 0, sizeof(bytes));
	for (part = 0; part < parts; part++) {
		for (f = 0; f < n; f++) {
			for (q = 0; q < 4; q++) {
				unsigned int c = random_code(dtype);
				double v = ldexp(code_value(dtype, c), scale[part / 8][f] - 127);

				/* Element 0 in the low bits. */
				if (size == 4)
					bytes[part][4 * f + q] = c;
				else
					bytes[part][2 * f + q / 2] |= c << (4 * (q % 2));
				to[(4 * part + q) * ld + f] = v;
			}
		}
		sbuf_put(p->core[0], part, offset, bytes[part], n * size);
	}
}

static struct neuron_ap scale_ap(unsigned int dtype, unsigned int parts, uint32_t at,
				 unsigned int off, unsigned int n)
{
	struct neuron_ap ap = row(dtype, parts <= 32 ? parts / 8 : parts - 28, at, n);

	ap.part_start = off;
	return ap;
}

static struct neuron_insn ldweights_mx(unsigned int dtype, unsigned int k, unsigned int m)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS_MX);

	w.ap[1] = row(dtype, k, A, m);
	w.ap[2] = scale_ap(E8, k, SCALES, 4, m);
	return w;
}

static struct neuron_insn matmul_mx(unsigned int dtype, unsigned int k, unsigned int m, unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_MATMUL_MX);

	w.ap[0] = ap_row(PSUM, F32, 0, m, 0, n);
	w.ap[1] = row(dtype, k, B, n);
	w.ap[2] = scale_ap(U8, k, SCALES + 0x2000, 12, n);
	w.update = update_add(1, 1);
	return w;
}

/* The product of any two packed types, once and accumulated. */
static void check_mx(meta *_metadata, unsigned int st, unsigned int mt, unsigned int k, unsigned int m,
		     unsigned int n)
{
	struct neuron_insn w = ldweights_mx(st, k, m);
	unsigned int i, j, l;

	prog_reset(p);
	mx_fill(st, k, m, A, SCALES, 4, s_val[0], 128);
	mx_fill(mt, k, n, B, SCALES + 0x2000, 12, m_val[0], 512);
	prog_add(p, 0, PE, &w);
	w = matmul_mx(mt, k, m, n);
	w.update = (struct neuron_update){ 0 };
	prog_add(p, 0, PE, &w);
	w.flags = htole16(NEURON_FLAG_ACCUMULATE);
	w.update = update_add(1, 1);
	prog_add(p, 0, PE, &w);
	drain(F32, m, 0, C, n);
	run(_metadata);
	fetch(got, F32, 0, m, C, n);
	for (i = 0; i < m; i++) {
		for (j = 0; j < n; j++) {
			double sum = 0, size = 0;

			for (l = 0; l < 4 * k; l++) {
				sum += s_val[l][i] * m_val[l][j];
				size += fabs(s_val[l][i] * m_val[l][j]);
			}
			/* 4 k sums, each rounded to 2^-24 of what there is so far. */
			ASSERT_LE(fabs(got[i][j] - 2 * sum), 2 * size * 4 * k * 0x1p-24) {
				TH_LOG("[%u][%u]: %.9g, expected %.9g", i, j, got[i][j], 2 * sum);
			}
		}
	}
	EXPECT_EQ(p->job.counters[0].pe_macs, 2ull * 4 * k * m * n);
}

static void mx_fault(meta *_metadata, const struct neuron_insn *w, unsigned int operand,
		     uint64_t allowed)
{
	prog_reset(p);
	prog_add(p, 0, PE, w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), operand);
	EXPECT_EQ(le64toh(p->job.fault.value), allowed);
}

void row_LDWEIGHTS_MX(meta *_metadata)
{
	struct neuron_insn w;

	start(4);
	check_mx(_metadata, E4X4, E4X4, 128, 128, 64);
	check_mx(_metadata, F4X4, E4X4, 32, 2, 1);
	w = ldweights_mx(E4X4, 128, 127);
	mx_fault(_metadata, &w, 1, 128);
	w = ldweights_mx(E4X4, 64, 130);
	mx_fault(_metadata, &w, 1, 128);
	w = ldweights_mx(E4X4, 128, 128);
	w.ap[1].part_count = 24;
	mx_fault(_metadata, &w, 1, 32);
	w = ldweights_mx(E4X4, 128, 128);
	w.ap[2].part_start = 16;
	w.ap[2].part_count = 100;
	mx_fault(_metadata, &w, 2, 12);
	w = ldweights_mx(E4X4, 128, 128);
	w.ap[2].part_count = 96;
	mx_fault(_metadata, &w, 2, 100);
	w = ldweights_mx(E4X4, 128, 128);
	w.ap[2].num[0] = htole16(64);
	mx_fault(_metadata, &w, 2, 128);
	w = ldweights_mx(E4X4, 128, 128);
	w.ap[1].dtype = NEURON_DTYPE_FLOAT8_E4M3FN;
	mx_fault(_metadata, &w, 1, NEURON_DTYPE_FLOAT32);
	w = ldweights_mx(E4X4, 128, 128);
	w.ap[2].dtype = BF16;
	mx_fault(_metadata, &w, 2, NEURON_DTYPE_FLOAT32);
	/* Tiles divide rows only. */
	w = ldweights_mx(E4X4, 32, 32);
	w.aux = htole32(1 << NEURON_TILE_ROWS_SHIFT | 1 << NEURON_TILE_COLUMNS_SHIFT);
	mx_fault(_metadata, &w, 7, 128);
	start(3);
	w = ldweights_mx(E4X4, 128, 128);
	prog_add(p, 0, PE, &w);
	EXPECT_NE(prog_run(p), NEURON_FAULT_NONE);
}

/* A scale of 255 is NaN, for its block alone; one of 0 is 2^-127. */
static void mx_special_scales(meta *_metadata)
{
	struct neuron_insn w = ldweights_mx(E4X4, 32, 2);
	uint32_t ones = 0x38383838;	/* four times 1.0 */
	uint8_t one = 127, code[4] = { 255, 0, 254, 127 };
	unsigned int i, f;
	float out[4];

	prog_reset(p);
	for (i = 0; i < 32; i++) {
		for (f = 0; f < 4; f++) {
			sbuf_put(p->core[0], i, A + 4 * f, &ones, 4);
			sbuf_put(p->core[0], i, B + 4 * f, &ones, 4);
		}
	}
	for (i = 0; i < 4; i++) {
		for (f = 0; f < 4; f++) {
			sbuf_put(p->core[0], 4 + i, SCALES + f, &one, 1);
			sbuf_put(p->core[0], 12 + i, SCALES + 0x2000 + f, &code[f], 1);
		}
	}
	prog_add(p, 0, PE, &w);
	w = matmul_mx(E4X4, 32, 2, 4);
	prog_add(p, 0, PE, &w);
	drain(F32, 2, 0, C, 4);
	run(_metadata);
	sbuf_get(p->core[0], 0, C, out, sizeof(out));
	EXPECT_TRUE(isnan(out[0]));
	EXPECT_EQ(out[1], 128 * 0x1p-127f);
	EXPECT_TRUE(isinf(out[2]));
	EXPECT_EQ(out[3], 128.0f);
}

void row_MATMUL_MX(meta *_metadata)
{
	static const unsigned int types[] = { E5X4, E4X4, F4X4 };
	struct neuron_insn w;
	unsigned int i, j;

	start(4);
	for (i = 0; i < 3; i++)
		for (j = 0; j < 3; j++)
			check_mx(_metadata, types[i], types[j], 32 << (i + j) / 2, 64, 33);
	check_mx(_metadata, E4X4, F4X4, 96, 128, 512);
	mx_special_scales(_metadata);
	/* Plain weights are not MX weights. */
	prog_reset(p);
	w = insn_new(NEURON_OP_LDWEIGHTS);
	w.ap[1] = row(BF16, 128, A, 128);
	prog_add(p, 0, PE, &w);
	w = matmul_mx(E4X4, 128, 128, 64);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), 14);
	/* Trn3: up to 4096 fp32 columns. */
	prog_reset(p);
	w = ldweights_mx(E4X4, 32, 32);
	prog_add(p, 0, PE, &w);
	w = matmul_mx(E4X4, 32, 32, 4097);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 4096);
}

/* --- QUANTIZE_MX ------------------------------------------------------------------------ */

/* Nearest finite code of the type, ties to even, by trying all. */
static unsigned int nearest(unsigned int dtype, double v)
{
	unsigned int limit = dtype == E5X4 ? 0x7b : 0x7e, best = 0, c;
	double a = fabs(v);

	for (c = 1; c <= limit; c++) {
		double d = fabs(code_value(dtype, c) - a), b = fabs(code_value(dtype, best) - a);

		if (d < b || (d == b && c % 2 == 0))
			best = c;
	}
	return best | (signbit(v) ? 0x80 : 0);
}

static struct neuron_insn quantize(unsigned int dtype, unsigned int src, unsigned int parts, unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_QUANTIZE_MX);

	w.ap[0] = row(dtype, parts, B, n);
	w.ap[1] = row(src, parts, A, 4 * n);
	w.ap[2] = scale_ap(U8, parts, SCALES, 8, n);
	return w;
}

/* Groups of magnitudes from 2^-20 to 2^15, one of zeros. */
static void quantize_input(unsigned int src, unsigned int parts, unsigned int n)
{
	unsigned int i, k;
	uint16_t h[256];

	for (i = 0; i < parts; i++) {
		for (k = 0; k < 4 * n; k++) {
			double v = k / 4 == 3 ? 0 : ldexp(uniform(-1, 1), (int)(i / 8 + k / 4) % 36 - 20);

			num_put(src, &h[k], v);
			a[i][k] = num_get(src, &h[k]);
		}
		sbuf_put(p->core[0], i, A, h, 8 * n);
	}
}

static void check_quantize(meta *_metadata, unsigned int dtype, unsigned int src, unsigned int old)
{
	const unsigned int parts = 128, n = 36;
	struct neuron_insn w = quantize(dtype, src, parts, n);
	unsigned int g, f, i, k;

	prog_reset(p);
	quantize_input(src, parts, n);
	w.aux = htole32(old);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (i = 0; i < parts; i++)
		sbuf_get(p->core[0], i, B, bytes[i], 4 * n);
	for (g = 0; g < parts / 8; g++) {
		sbuf_get(p->core[0], 32 * (g / 4) + 8 + g % 4, SCALES, scale[g], n);
		for (f = 0; f < n; f++) {
			double max = 0;
			int e;

			for (i = 8 * g; i < 8 * g + 8; i++)
				for (k = 4 * f; k < 4 * f + 4; k++)
					max = fmax(max, fabs(a[i][k]));
			e = max ? (int)floor(log2(max)) - (dtype == E5X4 ? 15 : 8) + !old : -127;
			ASSERT_EQ(scale[g][f], 127 + e);
			for (i = 8 * g; i < 8 * g + 8; i++)
				for (k = 4 * f; k < 4 * f + 4; k++)
					ASSERT_EQ(bytes[i][k], nearest(dtype, ldexp(a[i][k], -e)));
		}
	}
}

static void quantize_limits(meta *_metadata)
{
	struct neuron_insn w = quantize(F4X4, BF16, 32, 8);

	prog_reset(p);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), 0);
	w = quantize(E4X4, F32, 32, 8);
	prog_reset(p);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), 1);
	w = quantize(E4X4, BF16, 32, 8);
	w.ap[1].num[0] = htole16(30);
	prog_reset(p);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 32);
	w = quantize(E4X4, BF16, 32, 8);
	w.aux = htole32(2);
	prog_reset(p);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le32toh(p->job.fault.index), 7);
}

/* A group with an infinity or a NaN has the NaN scale. */
static void quantize_special(meta *_metadata)
{
	struct neuron_insn w = quantize(E4X4, BF16, 32, 2);
	uint16_t h[8] = { 0x3f80, 0x7f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80 };
	unsigned int i;
	uint8_t code[2];

	prog_reset(p);
	for (i = 0; i < 32; i++)
		sbuf_put(p->core[0], i, A, h, sizeof(h));
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	sbuf_get(p->core[0], 8, SCALES, code, 2);
	EXPECT_EQ(code[0], 255);
	EXPECT_EQ(code[1], 127 - 7);
}

/* Strict: what was quantized is all that a product reads; four scales of a quadrant. */
static void quantize_strict(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	w.ap[0] = row(BF16, 128, A, 4 * 64);
	w.imm[0] = imm_f32(3);
	prog_add(p, 0, DVE, &w);
	w = quantize(E4X4, BF16, 128, 64);
	w.update = update_add(2, 1);
	prog_add(p, 0, DVE, &w);
	w = ldweights_mx(E4X4, 128, 64);
	w.ap[1] = row(E4X4, 128, B, 64);
	w.ap[2] = scale_ap(U8, 128, SCALES, 8, 64);
	w.wait[0] = wait_ge(2, 1);
	prog_add(p, 0, PE, &w);
	w = matmul_mx(E4X4, 128, 64, 64);
	w.ap[2] = scale_ap(U8, 128, SCALES, 8, 64);
	prog_add(p, 0, PE, &w);
	drain(F32, 64, 0, C, 64);
	run(_metadata);
	fetch(got, F32, 0, 64, C, 64);
	EXPECT_EQ(got[63][63], 512 * 9.0);
	/* The scales of another operand were never written. */
	prog_reset(p);
	p->flags = NEURON_JOB_STRICT;
	w = insn_new(NEURON_OP_MEMSET);
	w.ap[0] = row(BF16, 128, B, 2 * 64);
	w.imm[0] = imm_f32(3);
	w.update = update_add(2, 1);
	prog_add(p, 0, DVE, &w);
	w = ldweights_mx(E4X4, 128, 64);
	w.ap[1] = row(E4X4, 128, B, 64);
	w.ap[2] = scale_ap(U8, 128, SCALES, 12, 64);
	w.wait[0] = wait_ge(2, 1);
	prog_add(p, 0, PE, &w);
	expect_fault(_metadata, NEURON_FAULT_UNINITIALIZED);
	EXPECT_EQ(le32toh(p->job.fault.index), 2);
}

void row_QUANTIZE_MX(meta *_metadata)
{
	unsigned int old;

	start(4);
	for (old = 0; old < 2; old++) {
		check_quantize(_metadata, E4X4, BF16, old);
		check_quantize(_metadata, E5X4, BF16, old);
		check_quantize(_metadata, E4X4, NEURON_DTYPE_FLOAT16, old);
	}
	quantize_limits(_metadata);
	quantize_special(_metadata);
	quantize_strict(_metadata);
}
