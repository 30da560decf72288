// SPDX-License-Identifier: MIT
/* Random numbers: the published generator, the states, and their statistics. */
#include "core_insn.h"

#define U32	NEURON_DTYPE_UINT32

/* XORWOW as in Marsaglia's paper: x, y, z, w, v, d. */
static uint32_t marsaglia(uint32_t s[6])
{
	uint32_t t = s[0] ^ s[0] >> 2;

	memmove(s, s + 1, 4 * sizeof(*s));
	s[4] = (s[4] ^ s[4] << 4) ^ (t ^ t << 1);
	s[5] += 362437;
	return s[5] + s[4];
}

static struct neuron_insn random_bits(unsigned int dtype, unsigned int parts, uint32_t offset,
				      unsigned int n)
{
	struct neuron_insn w = insn_new(NEURON_OP_RNG);

	w.ap[0] = row(dtype, parts, offset, n);
	return w;
}

/* Bits of many numbers: each is set about half of the time. */
static void balanced(meta *_metadata, uint32_t offset, unsigned int parts, unsigned int n)
{
	unsigned int ones[32] = { 0 }, i, k, bit;
	uint32_t v[MAX_N];
	double sigma = sqrt(parts * n) / 2;

	for (i = 0; i < parts; i++) {
		sbuf_get(p->core[0], i, offset, v, n * 4);
		for (k = 0; k < n; k++)
			for (bit = 0; bit < 32; bit++)
				ones[bit] += v[k] >> bit & 1;
	}
	for (bit = 0; bit < 32; bit++)
		EXPECT_TRUE(fabs(ones[bit] - parts * n / 2.0) < 6 * sigma);
}

void row_RNG(meta *_metadata)
{
	static const unsigned int nc[] = { 2, 3, 4, 3, 4 };
	struct neuron_insn w = random_bits(U32, 64, C, 256);
	uint32_t first[2], again[2];
	uint8_t low[2];
	unsigned int k;

	for (k = 0; k < 5; k++) {
		start(nc[k]);
		prog_add(p, 0, k < 3 ? DVE : POOL, &w);
		run(_metadata);
		balanced(_metadata, C, 64, 256);
		sbuf_get(p->core[0], 7, C, first, 8);
		/* The next job of the same seed draws the same, and a narrow type the low bits. */
		prog_reset(p);
		w.ap[0] = row(U32, 64, D, 1);
		prog_add(p, 0, k < 3 ? DVE : POOL, &w);
		w.ap[0] = row(U8, 64, D + 4, 1);
		prog_add(p, 0, k < 3 ? DVE : POOL, &w);
		run(_metadata);
		sbuf_get(p->core[0], 7, D, again, 8);
		EXPECT_EQ(first[0], again[0]);
		low[0] = again[1];
		if (nc[k] < 4 || k > 2)
			EXPECT_EQ((uint8_t)first[1], low[0]);
		EXPECT_NE(first[0], first[1]);
		w.ap[0] = row(U32, 64, C, 256);
	}
	start(2);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
	prog_reset(p);
	w.ap[0].dtype = F32;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_SET_RNG_SEED(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_SET_RNG_SEED), draw;
	uint32_t seed[2] = { 1234, 1235 }, v[3][4];
	unsigned int k;

	start_since(3);
	sbuf_put(p->core[0], 0, A, seed, 8);
	/* Twice the same seed, then another. */
	for (k = 0; k < 3; k++) {
		w.ap[1] = row(U32, 1, A + (k == 2 ? 4 : 0), 1);
		prog_add(p, 0, DVE, &w);
		draw = random_bits(U32, 32, C + 16 * k, 4);
		prog_add(p, 0, DVE, &draw);
	}
	run(_metadata);
	for (k = 0; k < 3; k++)
		sbuf_get(p->core[0], 11, C + 16 * k, v[k], 16);
	EXPECT_EQ(0, memcmp(v[0], v[1], 16));
	EXPECT_NE(0, memcmp(v[0], v[2], 16));
	prog_reset(p);
	w.ap[1] = row(U32, 2, A, 1);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* A state that is set gives the generator's published sequence. */
static void published(meta *_metadata, unsigned int engine, unsigned int nc, unsigned int generators)
{
	struct neuron_insn w = insn_new(NEURON_OP_RAND_SET_STATE);
	uint32_t state[32][24], got_state[24], v[40], words = 6 * generators;
	unsigned int i, k;

	start_since(nc);
	for (i = 0; i < 32; i++) {
		for (k = 0; k < words; k++)
			state[i][k] = num_random(&rng);
		sbuf_put(p->core[0], i, A, state[i], words * 4);
	}
	w.ap[1] = row(U32, 32, A, words);
	prog_add(p, 0, engine, &w);
	w = random_bits(U32, 32, C, 40);
	prog_add(p, 0, engine, &w);
	w = insn_new(NEURON_OP_RAND_GET_STATE);
	w.ap[0] = row(U32, 32, D, words);
	prog_add(p, 0, engine, &w);
	run(_metadata);
	for (i = 0; i < 32; i++) {
		sbuf_get(p->core[0], i, C, v, sizeof(v));
		for (k = 0; k < 40; k++)
			ASSERT_EQ(marsaglia(state[i] + k % generators * 6), v[k]);
		sbuf_get(p->core[0], i, D, got_state, words * 4);
		EXPECT_EQ(0, memcmp(state[i], got_state, words * 4));
	}
}

void row_RAND_SET_STATE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_RAND_SET_STATE);

	published(_metadata, POOL, 3, 1);
	published(_metadata, DVE, 4, 4);
	start(3);
	w.ap[1] = row(U32, 32, A, 24);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
	prog_reset(p);
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* What is read and set again goes on in the same way. */
void row_RAND_GET_STATE(meta *_metadata)
{
	struct neuron_insn get = insn_new(NEURON_OP_RAND_GET_STATE), set, draw;
	uint32_t v[2][4];

	start_since(3);
	set = insn_new(NEURON_OP_RAND_SET_STATE);
	get.ap[0] = row(U32, 32, A, 6);
	set.ap[1] = row(U32, 32, A, 6);
	prog_add(p, 0, POOL, &get);
	draw = random_bits(U32, 32, C, 4);
	prog_add(p, 0, POOL, &draw);
	prog_add(p, 0, POOL, &set);
	draw = random_bits(U32, 32, C + 16, 4);
	prog_add(p, 0, POOL, &draw);
	run(_metadata);
	sbuf_get(p->core[0], 20, C, v, 32);
	EXPECT_EQ(0, memcmp(v[0], v[1], 16));
	start(2);
	prog_add(p, 0, POOL, &get);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

void row_RAND2(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_RAND2);
	double sum = 0, square = 0, n = 64 * 500;
	unsigned int i, k;

	start_since(4);
	w.ap[0] = row(F32, 64, C, 500);
	w.imm[0] = imm_f32(-1);
	w.imm[1] = imm_f32(3);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	fetch(got, F32, 0, 64, C, 500);
	for (i = 0; i < 64; i++) {
		for (k = 0; k < 500; k++) {
			ASSERT_TRUE(got[i][k] >= -1 && got[i][k] <= 3);
			sum += got[i][k];
			square += (got[i][k] - 1) * (got[i][k] - 1);
		}
	}
	/* Uniform on an interval of 4: mean 1, variance 16 / 12. */
	EXPECT_TRUE(fabs(sum / n - 1) < 6 * sqrt(16 / 12.0 / n));
	EXPECT_TRUE(fabs(square / n - 16 / 12.0) < 0.05);
	start(3);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

void row_DROPOUT(meta *_metadata)
{
	static const float probs[] = { 0, 0.25f, 1 };
	struct neuron_insn w = insn_new(NEURON_OP_DROPOUT);
	unsigned int i, k, n, dropped;

	for (n = 0; n < 3; n++) {
		start_since(2);
		fill(a, BF16, 0, 64, A, 500, 1, 2);
		w.ap[0] = row(BF16, 64, C, 500);
		w.ap[1] = row(BF16, 64, A, 500);
		w.imm[0] = imm_f32(probs[n]);
		prog_add(p, 0, DVE, &w);
		run(_metadata);
		fetch(got, BF16, 0, 64, C, 500);
		for (i = 0, dropped = 0; i < 64; i++) {
			for (k = 0; k < 500; k++) {
				ASSERT_TRUE(got[i][k] == 0 || got[i][k] == a[i][k]);
				dropped += got[i][k] == 0;
			}
		}
		EXPECT_TRUE(fabs(dropped - 32000 * probs[n]) <= 6 * sqrt(32000 * probs[n] * (1 - probs[n])));
	}
	prog_reset(p);
	w.ap[0].dtype = F32;
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	/* Integers: a probability in fp32. */
	prog_reset(p);
	w.ap[0].dtype = w.ap[1].dtype = NEURON_DTYPE_UINT16;
	w.imm[0] = imm_vec(SBUF, BF16, 0, B);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	w.imm[0].dtype = F32;
	prog_add(p, 0, DVE, &w);
	run(_metadata);
}
