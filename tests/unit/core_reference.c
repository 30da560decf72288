// SPDX-License-Identifier: MIT
/*
 * Random legal programs against a reference interpreter that shares nothing with the
 * model: written from the published documents, element by element in double. The rows
 * of isa.def that it does not know yet are counted and printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_vm.h"

#define SBUF	NEURON_SPACE_SBUF
#define TILE	4096u
#define MAX_N	128

static uint64_t state;

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

/* --- reference: bits and values -------------------------------------------------------- */

static float f32_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

static uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

static unsigned int size_of(unsigned int dtype)
{
	switch (dtype) {
	case NEURON_DTYPE_INT8: case NEURON_DTYPE_UINT8:	return 1;
	case NEURON_DTYPE_INT16: case NEURON_DTYPE_UINT16:	return 2;
	case NEURON_DTYPE_BFLOAT16: case NEURON_DTYPE_FLOAT16:	return 2;
	default:						return 4;
	}
}

/* A half-precision value from its definition: sign, exponent of bias 15, ten bits. */
static double f16_value(uint32_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return h >> 15 ? -v : v;
}

static double value(unsigned int dtype, uint32_t bits)
{
	switch (dtype) {
	case NEURON_DTYPE_INT8:		return (int8_t)bits;
	case NEURON_DTYPE_UINT8:	return (uint8_t)bits;
	case NEURON_DTYPE_INT16:	return (int16_t)bits;
	case NEURON_DTYPE_UINT16:	return (uint16_t)bits;
	/* 32-bit integers become fp32 first. */
	case NEURON_DTYPE_INT32:	return (float)(int32_t)bits;
	case NEURON_DTYPE_UINT32:	return (float)bits;
	case NEURON_DTYPE_BFLOAT16:	return f32_of(bits << 16);
	case NEURON_DTYPE_FLOAT16:	return f16_value(bits);
	default:			return f32_of(bits);
	}
}

/* Nearest multiple of 2^@lsb, ties to even. */
static double to_grid(double v, int lsb)
{
	return ldexp(nearbyint(ldexp(v, -lsb)), lsb);
}

static uint32_t round_float(double v, int mant, int emin, int emax, int bits)
{
	int e;
	double r;
	uint32_t sign = signbit(v) ? 1u << (bits - 1) : 0, inf = ((1u << (bits - 1 - mant)) - 1) << mant;

	if (isnan(v))
		return inf | 1u << (mant - 1);
	v = fabs(v);
	if (isinf(v))
		return sign | inf;
	if (v == 0)
		return sign;
	frexp(v, &e);
	e--;
	r = to_grid(v, (e < emin ? emin : e) - mant);
	if (r >= ldexp(1, emax + 1))
		return sign | inf;
	if (r < ldexp(1, emin))
		return sign | (uint32_t)ldexp(r, mant - emin);
	frexp(r, &e);
	e--;
	return sign | (uint32_t)(e - emin + 1) << mant | ((uint32_t)ldexp(r, mant - e) & ((1u << mant) - 1));
}

static uint32_t round_int(double v, double lo, double hi)
{
	if (isnan(v))
		return 0;
	v = nearbyint(v);
	v = v < lo ? lo : v > hi ? hi : v;
	return v < 0 ? (uint32_t)(int64_t)v : (uint32_t)v;
}

/* @v is a value of fp32. */
static uint32_t encode(unsigned int dtype, double v)
{
	switch (dtype) {
	case NEURON_DTYPE_INT8:		return round_int(v, -128, 127) & 0xff;
	case NEURON_DTYPE_UINT8:	return round_int(v, 0, 255);
	case NEURON_DTYPE_INT16:	return round_int(v, -32768, 32767) & 0xffff;
	case NEURON_DTYPE_UINT16:	return round_int(v, 0, 65535);
	case NEURON_DTYPE_INT32:	return round_int(v, -2147483648.0, 2147483647.0);
	case NEURON_DTYPE_UINT32:	return round_int(v, 0, 4294967295.0);
	case NEURON_DTYPE_BFLOAT16:	return round_float(v, 7, -126, 127, 16);
	case NEURON_DTYPE_FLOAT16:	return round_float(v, 10, -14, 15, 16);
	default:			return isnan(v) ? 0x7fc00000 : bits_of((float)v);
	}
}

static double alu(unsigned int op, double a, double b)
{
	switch (op) {
	case NEURON_ALU_ADD:		return (float)(a + b);
	case NEURON_ALU_SUBTRACT:	return (float)(a - b);
	case NEURON_ALU_MULTIPLY:	return (float)(a * b);
	case NEURON_ALU_MAXIMUM:	return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case NEURON_ALU_MINIMUM:	return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case NEURON_ALU_EQUAL:		return a == b;
	case NEURON_ALU_NOT_EQUAL:	return a != b;
	case NEURON_ALU_GREATER_EQUAL:	return a >= b;
	case NEURON_ALU_GREATER:	return a > b;
	case NEURON_ALU_LESS_EQUAL:	return a <= b;
	default:			return a < b;
	}
}

/* --- one instruction --------------------------------------------------------------------- */

static const uint8_t dtypes[] = {
	NEURON_DTYPE_INT8, NEURON_DTYPE_UINT8, NEURON_DTYPE_INT16, NEURON_DTYPE_UINT16,
	NEURON_DTYPE_INT32, NEURON_DTYPE_UINT32, NEURON_DTYPE_BFLOAT16, NEURON_DTYPE_FLOAT16,
	NEURON_DTYPE_FLOAT32,
};

static const uint8_t opcodes[] = {
	NEURON_OP_TENSOR_COPY, NEURON_OP_MEMSET, NEURON_OP_TENSOR_TENSOR, NEURON_OP_TENSOR_SCALAR,
	NEURON_OP_SCALAR_TENSOR_TENSOR, NEURON_OP_SELECT, NEURON_OP_COPY_PREDICATED,
};

struct tile {
	struct neuron_ap ap;
	unsigned int dtype, bytes, part, n, step;
	uint32_t offset;
	uint8_t data[32][TILE];
};

static struct tile tile[3];

static void make_tile(struct tile *t, struct chip_core *core, unsigned int at, unsigned int dtype,
		      unsigned int part, unsigned int n)
{
	unsigned int p, i, k;

	t->dtype = dtype;
	t->bytes = size_of(dtype);
	t->part = part;
	t->n = n;
	t->step = 1 + rnd(4) * rnd(2);
	t->offset = at * TILE + 4 * rnd(16);
	t->ap = ap_row(SBUF, dtype, part, 32, t->offset, n);
	t->ap.step[0] = htole16(t->step);
	for (p = 0; p < 32; p++) {
		for (i = 0; i < TILE; i++)
			t->data[p][i] = rnd(256);
		for (i = 0; i < n && rnd(8); i++) {
			uint32_t v = encode(dtype, (double)(float)((int)rnd(2000) - 1000) / 8);

			for (k = 0; k < t->bytes; k++)
				t->data[p][t->offset - at * TILE + i * t->step * t->bytes + k] = v >> 8 * k;
		}
		sbuf_put(core, part + p, at * TILE, t->data[p], TILE);
	}
}

static uint32_t at(const struct tile *t, unsigned int p, unsigned int i)
{
	uint32_t v = 0;

	memcpy(&v, &t->data[p][t->offset % TILE + i * t->step * t->bytes], t->bytes);
	return le32toh(v);
}

/* What the documents say element @i becomes. */
static uint32_t reference(const struct neuron_insn *w, unsigned int p, unsigned int i)
{
	const struct tile *d = &tile[0], *a = &tile[1], *b = &tile[2];
	double x = value(a->dtype, at(a, p, i)), y = value(b->dtype, at(b, p, i));
	double s = f32_of(le32toh(w->imm[0].value)), s1 = f32_of(le32toh(w->imm[1].value));
	bool r0 = le16toh(w->flags) & NEURON_FLAG_REVERSE0, r1 = le16toh(w->flags) & NEURON_FLAG_REVERSE1;

	switch (w->opcode) {
	case NEURON_OP_TENSOR_COPY:
		return a->dtype == d->dtype ? at(a, p, i) : encode(d->dtype, x);
	case NEURON_OP_MEMSET:
		return encode(d->dtype, s);
	case NEURON_OP_TENSOR_TENSOR:
		return encode(d->dtype, alu(w->op[0], x, y));
	case NEURON_OP_TENSOR_SCALAR:
		x = r0 ? alu(w->op[0], s, x) : alu(w->op[0], x, s);
		return encode(d->dtype, r1 ? alu(w->op[1], s1, x) : alu(w->op[1], x, s1));
	case NEURON_OP_SCALAR_TENSOR_TENSOR:
		x = r0 ? alu(w->op[0], s, x) : alu(w->op[0], x, s);
		return encode(d->dtype, r1 ? alu(w->op[1], y, x) : alu(w->op[1], x, y));
	case NEURON_OP_SELECT:
		/* No copy: a NaN loses its bits in fp32. */
		return encode(d->dtype, at(b, p, i) ? x : s);
	default:
		return at(b, p, i) ? at(a, p, i) : at(d, p, i);
	}
}

static void make_insn(struct prog *p, struct neuron_insn *w)
{
	static const uint8_t preds[] = { NEURON_DTYPE_UINT8, NEURON_DTYPE_UINT16, NEURON_DTYPE_UINT32 };
	unsigned int n = 1 + rnd(MAX_N), part = 32 * rnd(4), i, dt[3];

	*w = insn_new(opcodes[rnd(sizeof(opcodes))]);
	for (i = 0; i < 3; i++)
		dt[i] = dtypes[rnd(sizeof(dtypes))];
	if (w->opcode == NEURON_OP_COPY_PREDICATED)
		dt[1] = dt[0];
	if (w->opcode == NEURON_OP_SELECT)
		dt[1] = NEURON_DTYPE_BFLOAT16;
	if (w->opcode == NEURON_OP_SELECT || w->opcode == NEURON_OP_COPY_PREDICATED)
		dt[2] = preds[rnd(w->opcode == NEURON_OP_SELECT ? 2 : 3)];
	for (i = 0; i < 3; i++)
		make_tile(&tile[i], p->core[0], i, dt[i], part, n);
	w->op[0] = NEURON_ALU_ADD + rnd(11);
	w->ap[0] = tile[0].ap;
	w->imm[0] = imm_f32((float)((int)rnd(4000) - 2000) / 16);
	if (w->opcode != NEURON_OP_MEMSET)
		w->ap[1] = tile[1].ap;
	if (strchr("\x41\x43\x45\x48", w->opcode))
		w->ap[2] = tile[2].ap;
	if (w->opcode == NEURON_OP_TENSOR_SCALAR || w->opcode == NEURON_OP_SCALAR_TENSOR_TENSOR) {
		w->op[1] = NEURON_ALU_ADD + rnd(11);
		w->flags = htole16(rnd(4));
	}
	if (w->opcode == NEURON_OP_TENSOR_SCALAR)
		w->imm[1] = imm_f32((float)((int)rnd(4000) - 2000) / 16);
	if (strchr("\x40\x41\x43", w->opcode))
		memset(w->imm, 0, sizeof(w->imm));
	if (!strchr("\x43\x44\x45", w->opcode))
		w->op[0] = 0;
}

static bool check(struct prog *p, const struct neuron_insn *w, uint64_t seed)
{
	unsigned int part, i;
	uint8_t row[TILE];
	uint32_t want, got;

	for (part = 0; part < 32; part++) {
		sbuf_get(p->core[0], tile[0].part + part, 0, row, TILE);
		for (i = 0; i < tile[0].n; i++) {
			want = reference(w, part, i);
			got = 0;
			memcpy(&got, row + tile[0].offset + i * tile[0].step * tile[0].bytes, tile[0].bytes);
			if (le32toh(got) == want)
				continue;
			fprintf(stderr, "core_reference: seed %llu opcode %#x op %u %u types %#x %#x %#x partition %u element %u: %#x, reference %#x (sources %#x %#x)\n",
				(unsigned long long)seed, w->opcode, w->op[0], w->op[1], tile[0].dtype,
				tile[1].dtype, tile[2].dtype, part, i, le32toh(got), want,
				at(&tile[1], part, i), at(&tile[2], part, i));
			return false;
		}
	}
	return true;
}

static void print_coverage(void)
{
	static const struct {
		uint8_t code;
		const char *name;
	} rows[] = {
#define NEURON_INSN(code, name, text, eng, nc, words, aps, types, ops, imms, aux, limit, cost, summary) { code, #name },
#include "neuron/isa.def"
	};
	unsigned int i, missing = 0;

	printf("no reference yet:");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (memchr(opcodes, rows[i].code, sizeof(opcodes)))
			continue;
		missing++;
		printf(" %s", rows[i].name);
	}
	printf("\n%u of %zu rows have a reference\n", (unsigned int)(i - missing), sizeof(rows) / sizeof(rows[0]));
}

int main(int argc, char **argv)
{
	uint64_t runs = 20000, seed = 1, i;
	unsigned int bad = 0, refused = 0;
	struct prog *p[3];
	int a;

	for (a = 1; a + 1 < argc; a += 2) {
		if (!strcmp(argv[a], "--runs"))
			runs = strtoull(argv[a + 1], NULL, 0);
		else if (!strcmp(argv[a], "--seed"))
			seed = strtoull(argv[a + 1], NULL, 0);
	}
	for (a = 0; a < 3; a++)
		p[a] = prog_new(2 + a, 1);
	for (i = 0; i < runs && bad < 20; i++) {
		struct neuron_insn w;
		struct prog *q = p[i % 3];

		state = (seed + i) * 0x9e3779b97f4a7c15ull | 1;
		rnd(2);
		prog_reset(q);
		make_insn(q, &w);
		prog_add(q, 0, NEURON_ENGINE_DVE, &w);
		if (prog_run(q)) {
			if (!refused++)
				fprintf(stderr, "core_reference: seed %llu opcode %#x: fault %u operand %u\n",
					(unsigned long long)(seed + i), w.opcode,
					le16toh(q->job.fault.code), le32toh(q->job.fault.index));
			continue;
		}
		bad += !check(q, &w, seed + i);
	}
	printf("%llu instructions, %u differ, %u refused\n", (unsigned long long)i, bad, refused);
	print_coverage();
	for (a = 0; a < 3; a++)
		prog_free(p[a]);
	return bad || refused > runs / 10;
}
