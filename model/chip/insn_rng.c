// SPDX-License-Identifier: MIT
/*
 * Random numbers. Published: GpSimd has an XORWOW generator in every lane, of six
 * 32-bit words; the vector engine four of them from v4 on, and a linear feedback
 * shift register before. Ours: the order of the words (x, y, z, w, v, d, as in
 * Marsaglia's "Xorshift RNGs"), the register's polynomial (x^32 + x^22 + x^2 + x + 1,
 * 32 steps a number), and how seeds become states. At job start all are
 * seeded from the job.
 */
#include <endian.h>
#include <string.h>

#include "exec_state.h"

#define XORWOW_WORDS	6
#define DVE_GENERATORS	4

static uint32_t xorwow(uint32_t *st)
{
	uint32_t t = st[0] ^ (st[0] >> 2);

	st[0] = st[1];
	st[1] = st[2];
	st[2] = st[3];
	st[3] = st[4];
	st[4] = (st[4] ^ (st[4] << 4)) ^ (t ^ (t << 1));
	st[5] += 362437;
	return st[5] + st[4];
}

static uint32_t lfsr(uint32_t *st)
{
	unsigned int i;

	for (i = 0; i < 32; i++)
		*st = (*st >> 1) ^ ((0u - (*st & 1)) & 0x80200003u);
	return *st;
}

/* All zero would stay so: both kinds need one bit at least. */
static void seed_words(uint32_t *st, unsigned int n, uint64_t *seed)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		st[i] = (uint32_t)num_random(seed) | !i;
}

static void seed_dve(struct rng *r, uint64_t seed)
{
	unsigned int lane;

	for (lane = 0; lane < NEURON_PARTITIONS; lane++) {
		seed_words(&r->lfsr[lane], 1, &seed);
		for (unsigned int g = 0; g < DVE_GENERATORS; g++)
			seed_words(r->dve[lane] + g * XORWOW_WORDS, XORWOW_WORDS, &seed);
	}
}

/* The core's generators; seeded when a job first uses them. */
static struct rng *rng_of(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	struct rng *r = &c->rng;
	unsigned int lane;

	if (r->job != s->x->serial) {
		uint64_t seed = le64toh(s->x->job->desc.seed) ^ 0x9e3779b97f4a7c15ull * (c->index + 1);

		seed_dve(r, seed);
		for (lane = 0; lane < NEURON_PARTITIONS; lane++)
			seed_words(r->pool[lane], XORWOW_WORDS, &seed);
		r->job = s->x->serial;
	}
	return r;
}

/* The i-th number of an instruction in a lane. */
static uint32_t next(struct stream *s, struct rng *r, unsigned int lane, uint32_t i)
{
	if (s->engine == NEURON_ENGINE_POOL)
		return xorwow(r->pool[lane]);
	if (s->x->job->nc_version < 4)
		return lfsr(&r->lfsr[lane]);
	return xorwow(r->dve[lane] + i % DVE_GENERATORS * XORWOW_WORDS);
}

static unsigned int state_words(const struct stream *s)
{
	return s->engine == NEURON_ENGINE_POOL ? XORWOW_WORDS : DVE_GENERATORS * XORWOW_WORDS;
}

static bool illegal(struct stream *s)
{
	exec_fault(s->x, s, NEURON_FAULT_ILLEGAL_INSN);
	return false;
}

bool rng_prepare(struct stream *s)
{
	unsigned int nc = s->x->job->nc_version;
	const struct opnd *state;

	switch (s->cur->w.opcode) {
	case NEURON_OP_RNG:
		return nc >= 3 || s->engine != NEURON_ENGINE_POOL || illegal(s);
	case NEURON_OP_SET_RNG_SEED:
		if (s->op[1].parts != 1 || s->op[1].n != 1)
			return exec_bad(s, 1, s->op[1].n, 1);
		return true;
	case NEURON_OP_RAND_SET_STATE:
	case NEURON_OP_RAND_GET_STATE:
		if (nc < 4 && s->engine == NEURON_ENGINE_DVE)
			return illegal(s);
		state = &s->op[s->cur->w.opcode == NEURON_OP_RAND_SET_STATE];
		return state->n == state_words(s) ||
		       exec_bad(s, s->cur->w.opcode == NEURON_OP_RAND_SET_STATE, state->n, state_words(s));
	case NEURON_OP_RAND2:
		if (!s->imm[0].present || !s->imm[1].present)
			return exec_bad(s, s->imm[0].present ? 5 : 4, NEURON_IMM_NONE, NEURON_IMM_F32);
		return true;
	}
	/* DROPOUT: published: the type stays, and integers take an fp32 probability. */
	if (s->op[1].parts != s->op[0].parts || s->op[1].n != s->op[0].n)
		return exec_bad(s, 1, s->op[1].n, s->op[0].n);
	if (s->op[1].dtype != s->op[0].dtype)
		return exec_bad(s, 1, s->op[1].dtype, s->op[0].dtype);
	if (!num_dtype(s->op[0].dtype)->is_float && s->imm[0].vector &&
	    s->imm[0].vec.dtype != NEURON_DTYPE_FLOAT32)
		return exec_bad(s, 4, s->imm[0].vec.dtype, NEURON_DTYPE_FLOAT32);
	return s->imm[0].present || exec_bad(s, 4, NEURON_IMM_NONE, NEURON_IMM_F32);
}

static void random_bits(struct stream *s, struct rng *r)
{
	uint32_t *v = (uint32_t *)s->x->row[0], i;
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		for (i = 0; i < s->op[0].n; i++)
			v[i] = next(s, r, s->op[0].part + p, i);
		row_bits_store(&s->op[0], p, v);
	}
}

/* min + u * (max - min), where u has the 24 upper bits. */
static void uniform(struct stream *s, struct rng *r)
{
	float *v = s->x->row[0];
	unsigned int p;
	uint32_t i;

	for (p = 0; p < s->op[0].parts; p++) {
		float min = scalar_get(&s->imm[0], p), span = scalar_get(&s->imm[1], p) - min;

		for (i = 0; i < s->op[0].n; i++)
			v[i] = min + (next(s, r, s->op[0].part + p, i) >> 8) * 0x1p-24f * span;
		row_store(s->x, &s->op[0], p, v);
	}
}

static void dropout(struct stream *s, struct rng *r)
{
	uint32_t *v = (uint32_t *)s->x->row[0], i;
	unsigned int p;

	for (p = 0; p < s->op[0].parts; p++) {
		double drop = (double)scalar_get(&s->imm[0], p) * 0x1p32;

		row_bits_load(&s->op[1], p, v);
		for (i = 0; i < s->op[0].n; i++)
			if (next(s, r, s->op[0].part + p, i) < drop)
				v[i] = 0;
		row_bits_store(&s->op[0], p, v);
	}
}

static void state_move(struct stream *s, struct rng *r, bool set)
{
	const struct opnd *op = &s->op[set];
	unsigned int p;

	for (p = 0; p < op->parts; p++) {
		uint32_t *st = s->engine == NEURON_ENGINE_POOL ? r->pool[op->part + p] :
								 r->dve[op->part + p];

		if (set)
			row_bits_load(op, p, st);
		else
			row_bits_store(op, p, st);
	}
}

void rng_run(struct stream *s)
{
	struct rng *r = rng_of(s);
	uint32_t seed;

	switch (s->cur->w.opcode) {
	case NEURON_OP_RNG:
		random_bits(s, r);
		break;
	case NEURON_OP_SET_RNG_SEED:
		row_bits_load(&s->op[1], 0, &seed);
		seed_dve(r, seed);
		break;
	case NEURON_OP_RAND_SET_STATE:
	case NEURON_OP_RAND_GET_STATE:
		state_move(s, r, s->cur->w.opcode == NEURON_OP_RAND_SET_STATE);
		break;
	case NEURON_OP_RAND2:
		uniform(s, r);
		break;
	default:
		dropout(s, r);
		break;
	}
}
