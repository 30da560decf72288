// SPDX-License-Identifier: MIT
/*
 * Indirect operands of v4, and rows on engines and generations that do not have them.
 */
#include "core_insn.h"

#define U16	NEURON_DTYPE_UINT16
#define U32	NEURON_DTYPE_UINT32

static uint32_t index_of[128][64];

/* Random offsets below @limit at @offset: @cols columns of @parts partitions. */
static void indices(unsigned int dtype, unsigned int part, unsigned int parts, uint32_t offset,
		    unsigned int cols, unsigned int limit)
{
	unsigned int bytes = num_dtype(dtype)->bytes, i, k;

	for (i = 0; i < parts; i++) {
		for (k = 0; k < cols; k++) {
			uint32_t v = num_random(&rng) % limit, le = htole32(v);

			index_of[i][k] = v;
			sbuf_put(p->core[0], part + i, offset + k * bytes, &le, bytes);
		}
	}
}

/* Published: offset i of a group of G partitions is index[i mod G, i / G]. */
static uint32_t offset_of(unsigned int part, unsigned int i, unsigned int group)
{
	return index_of[part / group * group + i % group][i / group];
}

static struct neuron_insn_ext index_word(void)
{
	struct neuron_insn_ext e = { 0 };
	unsigned int i;

	for (i = 0; i < 3; i++)
		e.ap[i] = ap_none();
	return e;
}

static void add(unsigned int engine, struct neuron_insn *w, const struct neuron_insn_ext *e)
{
	w->flags |= htole16(NEURON_FLAG_INDIRECT);
	w->words = 2;
	prog_words(p, 0, engine, w, e, 1);
}

/* A gather and a scatter by an engine, of uint16 and uint32 indices. */
static void gather_scatter(meta *_metadata, unsigned int engine)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY);
	struct neuron_insn_ext e = index_word();
	unsigned int i, k;

	start_since(4);
	fill(a, F32, 32, 32, A, 200, -1000, 1000);
	indices(U16, 32, 32, B, 9, 200);
	/* 141 elements end in the ninth column of 16. */
	w.ap[0] = ap_row(SBUF, BF16, 32, 32, C, 141);
	w.ap[1] = ap_row(SBUF, F32, 32, 32, A, 141);
	e.ap[1] = ap_row(SBUF, U16, 32, 32, B, 9);
	add(engine, &w, &e);
	run(_metadata);
	for (i = 0; i < 32; i++) {
		for (k = 0; k < 141; k++) {
			uint16_t h;

			num_put(BF16, &h, a[i][offset_of(i, k, 16)]);
			want[i][k] = num_get(BF16, &h);
		}
	}
	fetch(got, BF16, 32, 32, C, 141);
	compare(_metadata, 32, 141, 0);
	/* The other way: distinct places, the rest stays. */
	start_since(4);
	fill(a, F32, 0, 16, A, 48, -1, 1);
	fill(b, F32, 0, 16, C, 100, 5, 6);
	for (i = 0; i < 16; i++) {
		for (k = 0; k < 3; k++) {
			uint32_t le = htole32(index_of[i][k] = (7 * (k * 16 + i)) % 97);

			sbuf_put(p->core[0], i, B + 4 * k, &le, 4);
		}
	}
	w.ap[0] = row(F32, 16, C, 48);
	w.ap[1] = row(F32, 16, A, 48);
	e = index_word();
	e.ap[0] = row(U32, 16, B, 3);
	w.flags = 0;
	add(engine, &w, &e);
	run(_metadata);
	for (i = 0; i < 16; i++) {
		for (k = 0; k < 100; k++)
			want[i][k] = b[i][k];
		for (k = 0; k < 48; k++)
			want[i][offset_of(i, k, 16)] = a[i][k];
	}
	fetch(got, F32, 0, 16, C, 100);
	compare(_metadata, 16, 100, 0);
}

/* Adds to PSUM where an index says, rows of 32 partitions to a group. */
static void matmul_scatter(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_LDWEIGHTS);
	struct neuron_insn_ext e = index_word();
	unsigned int m, n, k;

	start_since(4);
	fill(a, BF16, 0, 64, A, 32, -1, 1);
	fill(b, BF16, 0, 64, B, 90, -1, 1);
	indices(U16, 0, 64, D, 2, 90);
	w.ap[1] = row(BF16, 64, A, 32);
	prog_add(p, 0, PE, &w);
	w = insn_new(NEURON_OP_MATMUL);
	w.ap[0] = ap_row(PSUM, F32, 0, 32, 0, 40);
	w.ap[1] = row(BF16, 64, B, 40);
	e.ap[1] = row(U16, 64, D, 2);
	w.update = update_add(1, 1);
	add(PE, &w, &e);
	w = insn_new(NEURON_OP_TENSOR_COPY);
	w.wait[0] = wait_ge(1, 1);
	w.ap[0] = row(F32, 32, C, 40);
	w.ap[1] = ap_row(PSUM, F32, 0, 32, 0, 40);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	for (m = 0; m < 32; m++) {
		for (n = 0; n < 40; n++) {
			want[m][n] = 0;
			for (k = 0; k < 64; k++)
				want[m][n] += a[k][m] * b[k][offset_of(k, n, 32)];
		}
	}
	fetch(got, F32, 0, 32, C, 40);
	compare(_metadata, 32, 40, 1e-5);
}

/* data1 of tensor_tensor by an index, in strict mode: only what is read must be there. */
static void strict_gather(meta *_metadata, bool written)
{
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	struct neuron_insn_ext e = index_word();

	start_since(4);
	p->flags = NEURON_JOB_STRICT;
	w.ap[0] = row(F32, 16, A, 32);
	w.imm[0] = imm_f32(3);
	prog_add(p, 0, DVE, &w);
	w.ap[0] = row(U16, 16, B, 2);
	w.imm[0] = imm_i32(written ? 31 : 32);
	prog_add(p, 0, DVE, &w);
	w = insn_new(NEURON_OP_TENSOR_TENSOR);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[0] = row(F32, 16, C, 32);
	w.ap[1] = row(F32, 16, A, 32);
	w.ap[2] = row(F32, 16, A, 32);
	e.ap[1] = row(U16, 16, B, 2);
	add(DVE, &w, &e);
	if (!written) {
		expect_fault(_metadata, NEURON_FAULT_UNINITIALIZED);
		return;
	}
	run(_metadata);
	fetch(got, F32, 0, 16, C, 32);
	want[0][0] = 6;
	compare(_metadata, 1, 1, 0);
}

/* Each rule of the placement, and an index that leaves its partition. */
static void refused(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_COPY), x;
	struct neuron_insn_ext e = index_word(), f;
	uint32_t big = htole32(0x10000000);

	start_since(4);
	w.ap[0] = row(F32, 32, C, 32);
	w.ap[1] = row(F32, 32, A, 32);
	e.ap[1] = row(U32, 32, B, 2);
	for (int i = 0; i < 9; i++) {
		unsigned int nc = 4, engine = DVE, code = NEURON_FAULT_BAD_OPERAND;

		x = w;
		f = e;
		switch (i) {
		case 0: f.ap[1].dtype = F32; break;
		case 1: f.ap[1].part_start = 32; break;
		case 2: f.ap[1].num[0] = htole16(1); break;
		case 3: f.ap[1].part_count = 16; break;
		case 4: f.ap[2] = e.ap[1]; break;
		case 5: x.opcode = NEURON_OP_RECIPROCAL; break;
		case 6: nc = 3; break;
		case 7: x.ap[0].space = PSUM; f.ap[0] = e.ap[1]; engine = ACT; break;
		case 8: code = NEURON_FAULT_OOB_INDEX; break;
		}
		start(nc);
		if (i == 8)
			sbuf_put(p->core[0], 5, B, &big, 4);
		add(engine, &x, &f);
		ASSERT_EQ(prog_run(p), code) {
			TH_LOG("case %d", i);
		}
	}
}

void insn_indirect(meta *_metadata)
{
	gather_scatter(_metadata, DVE);
	gather_scatter(_metadata, ACT);
	gather_scatter(_metadata, POOL);
	matmul_scatter(_metadata);
	strict_gather(_metadata, true);
	strict_gather(_metadata, false);
	refused(_metadata);
}

#define E(x)	ENGINES_##x
#define ENGINES_PE	(1u << PE)
#define ENGINES_ACT	(1u << ACT)
#define ENGINES_DVE	(1u << DVE)
#define ENGINES_POOL	(1u << POOL)
#define ENGINES_ALL	0xfeu

static const struct {
	const char *name;
	uint8_t code, words, nc, engines;
} rows[] = {
#define NEURON_INSN(code, name, text, eng, nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	{ #name, code, words, nc, eng },
#include "neuron/isa.def"
};

/* A row's instruction where the table does not have it. */
void insn_absent(meta *_metadata)
{
	static const struct neuron_insn_ext more[20];
	unsigned int i, nc, engine;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (nc = 2; nc <= 4; nc++) {
			start(nc);
			for (engine = PE; engine < NEURON_ENGINE_COUNT; engine++) {
				struct neuron_insn w = insn_new(rows[i].code);

				if (engine == NEURON_ENGINE_DMA ||
				    (rows[i].engines >> engine & 1 && nc >= rows[i].nc))
					continue;
				prog_reset(p);
				w.words = rows[i].words;
				prog_words(p, 0, engine, &w, more, rows[i].words - 1);
				ASSERT_EQ(prog_run(p), NEURON_FAULT_ILLEGAL_INSN) {
					TH_LOG("%s on engine %u of v%u", rows[i].name, engine, nc);
				}
			}
		}
	}
}
