// SPDX-License-Identifier: MIT
/*
 * Assembler and disassembler: words that use every field that their row of isa.def
 * has, at random, become text and the same words again; and what is wrong in a text
 * is said with its line.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asm.h"
#include "disasm.h"
#include "neff.h"
#include "neuron/isa.h"
#include "kselftest_harness.h"

#define ROUND_TRIPS 100000

static uint64_t state = 1;

static uint32_t rnd(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 32;
}

static uint32_t below(uint32_t n)
{
	return rnd() % n;
}

struct row {
	unsigned int opcode;
	const char *name;
	unsigned int words;
	const char *aps, *ops;
	unsigned int imms;
	const char *aux;
	const char *cost;
};

#define E(x) 0
static const struct row rows[] = {
#define NEURON_INSN(code, name, text, engines, min_nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	{ code, #name, words, aps, ops, imms, aux, #cost },
#include "neuron/isa.def"
};
#undef E

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const uint8_t dtypes[] = {
#define NEURON_DTYPE(code, name, text, bytes) code,
#include "neuron/isa.def"
};

static uint8_t random_dtype(void)
{
	return dtypes[below(sizeof(dtypes))];
}

static uint32_t random_offset(void)
{
	return below(4) ? below(1 << 18) : rnd();
}

static void no_ap(struct neuron_ap *ap)
{
	memset(ap, 0, sizeof(*ap));
	ap->offset_reg = NEURON_REG_NONE;
	ap->count_reg = NEURON_REG_NONE;
}

static void random_pattern(struct neuron_ap *ap)
{
	ap->dims = 1 + below(NEURON_AP_DIMS);
	for (unsigned int d = 0; d < ap->dims; d++) {
		ap->num[d] = htole16(rnd());
		ap->step[d] = htole16(rnd());
	}
	if (!below(4)) {
		ap->count_reg = below(NEURON_REGS);
		ap->count_dim = below(ap->dims);
	}
}

static void random_ap(struct neuron_ap *ap)
{
	no_ap(ap);
	ap->space = below(2) ? NEURON_SPACE_SBUF : NEURON_SPACE_PSUM;
	ap->dtype = random_dtype();
	ap->part_start = below(2) ? 0 : below(256);
	ap->part_count = rnd();
	ap->offset = htole32(random_offset());
	if (!below(4))
		ap->offset_reg = below(NEURON_REGS);
	random_pattern(ap);
}

static void random_imm(struct neuron_imm *imm)
{
	memset(imm, 0, sizeof(*imm));
	imm->kind = below(5);
	switch (imm->kind) {
	case NEURON_IMM_NONE:
		return;
	case NEURON_IMM_F32:
	case NEURON_IMM_I32:
	case NEURON_IMM_REG:
		imm->dtype = random_dtype();
		imm->value = htole32(rnd());
		return;
	}
	imm->dtype = random_dtype();
	imm->space = below(2) ? NEURON_SPACE_SBUF : NEURON_SPACE_PSUM;
	imm->part = below(128);
	imm->value = htole32(random_offset());
}

static void random_sync(struct neuron_insn *w)
{
	static const uint8_t conds[] = { 0, 1, 2, 3, 4, 5, 0x81, 0x82, 0x83 };

	for (unsigned int i = 0; i < 2; i++) {
		w->wait[i].cond = conds[below(sizeof(conds))];
		if (w->wait[i].cond)
			w->wait[i].sem = rnd();
		if (w->wait[i].cond && w->wait[i].cond != 4 && w->wait[i].cond != 5)
			w->wait[i].value = htole16(rnd());
	}
	w->update.op = below(6);
	if (!w->update.op)
		return;
	if (w->update.op <= 3)
		w->update.value = htole16(below(3) ? rnd() : 1);
	w->update.op |= below(2) << 7;
	w->update.sem = rnd();
}

static void random_hbm(struct neuron_dma_operand *d, bool index)
{
	memset(d, 0, sizeof(*d));
	d->space = NEURON_SPACE_HBM;
	d->dtype = random_dtype();
	d->arg = htole16(rnd());
	d->dims = 1 + below(NEURON_DMA_DIMS);
	d->offset_reg = NEURON_REG_NONE;
	d->count_reg = NEURON_REG_NONE;
	no_ap(&d->index);
	d->offset = htole64((uint64_t)rnd() << 32 | rnd());
	if (!below(3)) {
		d->offset_reg = below(NEURON_REGS);
		d->offset_scale = htole64((uint64_t)rnd() << 32 | rnd());
	}
	for (unsigned int i = 0; i < d->dims; i++) {
		d->count[i] = htole32(rnd());
		d->stride[i] = htole64((uint64_t)rnd() << 32 | rnd());
	}
	if (!below(3)) {
		d->count_reg = below(NEURON_REGS);
		d->count_dim = below(d->dims);
	}
	if (index && !below(2)) {
		random_ap(&d->index);
		d->index_dim = htole32(rnd());
		d->row_bound = htole64((uint64_t)rnd() << 32 | rnd());
	}
}

static void random_dma(const struct row *row, struct neuron_insn *w, unsigned int words)
{
	struct neuron_dma_operand *d = (struct neuron_dma_operand *)(w + 1);
	bool compute = !strcmp(row->name, "DMA_COMPUTE");

	for (unsigned int i = 0; i + 1 < words; i++) {
		if (below(2)) {
			random_hbm(&d[i], true);
			continue;
		}
		memset(&d[i], 0, sizeof(d[i]));
		d[i].space = NEURON_SPACE_SBUF;
		d[i].offset_reg = NEURON_REG_NONE;
		d[i].count_reg = NEURON_REG_NONE;
		d[i].arg = htole16(below(3));
		no_ap(&d[i].index);
		random_ap(i && compute ? &d[i].index : &w->ap[i ? 1 : 0]);
		d[i].dtype = i && compute ? d[i].index.dtype : w->ap[i ? 1 : 0].dtype;
	}
	w->words = words;
}

static void random_ext(const struct row *row, struct neuron_insn_ext *ext)
{
	for (unsigned int i = 0; i < 3; i++) {
		no_ap(&ext->ap[i]);
		if (strlen(row->aps) == 12 && strncmp(row->aps + 6 + 2 * i, "--", 2) && below(4))
			random_ap(&ext->ap[i]);
	}
	if (!strcmp(row->name, "STREAM_SHUFFLE")) {
		for (unsigned int i = 0; i < 32; i++)
			ext->mask[i] = rnd();
	} else {
		for (unsigned int i = 2; i < row->imms; i++)
			random_imm(&ext->imm[i - 2]);
	}
	ext->aux[0] = htole32(rnd());
	ext->aux[1] = htole32(below(2) ? 0 : rnd());
	ext->flags = htole32(below(2) ? 0 : rnd());
}

/* Returns the number of words. */
static unsigned int random_insn(const struct row *row, struct neuron_insn *w)
{
	bool dma = !strcmp(row->cost, "DMA"), hbm = !strcmp(row->name, "READ") || !strcmp(row->name, "WRITE");
	unsigned int words = row->words, flags = rnd() & 0xffff;

	memset(w, 0, NEURON_INSN_MAX_WORDS * sizeof(*w));
	if (dma || hbm)
		flags &= ~NEURON_FLAG_INDIRECT;
	w->opcode = row->opcode;
	w->flags = htole16(flags);
	w->acc = rnd();
	w->debug_id = htole32(below(2) ? 0 : rnd());
	w->aux = htole32(rnd());
	random_sync(w);
	for (unsigned int i = 0; i < 3; i++) {
		w->op[i] = rnd();
		no_ap(&w->ap[i]);
		if (!dma && strncmp(row->aps + 2 * i, "--", 2) && below(8))
			random_ap(&w->ap[i]);
	}
	if (!strcmp(row->name, "IOTA") || !strcmp(row->name, "AFFINE_SELECT")) {
		no_ap(&w->ap[2]);
		w->ap[2].part_count = rnd();
		random_pattern(&w->ap[2]);
	}
	for (unsigned int i = 0; i < 2 && i < row->imms; i++)
		random_imm(&w->imm[i]);
	if (dma) {
		if (!strcmp(row->name, "DMA_COMPUTE"))
			words = 3 + below(16);
		random_dma(row, w, words);
	} else if (hbm) {
		random_hbm((struct neuron_dma_operand *)(w + 1), false);
	} else if (words == 2) {
		random_ext(row, (struct neuron_insn_ext *)(w + 1));
	}
	if (flags & NEURON_FLAG_INDIRECT) {
		struct neuron_insn_ext *ext = (struct neuron_insn_ext *)(w + words++);

		for (unsigned int i = 0; i < 3; i++) {
			no_ap(&ext->ap[i]);
			if (strncmp(row->aps + 2 * i, "--", 2) && below(2))
				random_ap(&ext->ap[i]);
		}
	}
	/* Words of MX instructions name their scales: both are there. */
	if (strstr(row->name, "_MX") && row->opcode < 0x30) {
		random_ap(&w->ap[1]);
		random_ap(&w->ap[2]);
	}
	w->words = words;
	return words;
}

TEST(round_trips)
{
	static struct nki_asm_insn insn;
	struct neuron_insn w[NEURON_INSN_MAX_WORDS];
	char text[8192], error[256];

	for (unsigned int n = 0; n < ROUND_TRIPS; n++) {
		const struct row *row = &rows[n % ROWS];
		unsigned int words = random_insn(row, w);

		ASSERT_EQ(words, nki_disasm_line(w, words, true, text, sizeof(text)));
		ASSERT_GT(4096, strlen(text));
		if (nki_asm(text, &insn, error, sizeof(error)) || insn.words != words ||
		    memcmp(insn.word, w, words * sizeof(w[0]))) {
			char again[8192] = "";

			if (insn.words)
				nki_disasm_line(insn.word, insn.words, true, again, sizeof(again));
			TH_LOG("%s\n  %s\n  %s\n  %s", row->name, text, again, error);
			ASSERT_TRUE(false);
		}
	}
}

static bool says(const char *text, const char *expected)
{
	struct nki_asm_insn insn;
	char error[256];

	if (!nki_asm(text, &insn, error, sizeof(error)) || !strstr(error, expected)) {
		printf("# \"%s\": wanted \"%s\", got \"%s\"\n", text, expected, error);
		return false;
	}
	return true;
}

TEST(errors_of_an_instruction)
{
	EXPECT_TRUE(says("", "not an opcode"));
	EXPECT_TRUE(says("FROB", "\"FROB\": not an opcode"));
	EXPECT_TRUE(says("NOP $S[256]>=1", "too large; allowed: up to 255"));
	EXPECT_TRUE(says("NOP $S[1]>=1 $S[2]>=1 $S[3]>=1", "at most two waits"));
	EXPECT_TRUE(says("NOP $S[1]++@complete $S[1]++@complete", "at most one update"));
	EXPECT_TRUE(says("NOP $S[1]++@never", "allowed: @read, @complete"));
	EXPECT_TRUE(says("NOP $S[1]==3-", "does not take"));
	EXPECT_TRUE(says("NOP src=fp32@0x0[1][1]", "NOP has no \"src\""));
	EXPECT_TRUE(says("MEMSET dst=fp31@0x0[1][1]", "not a data type"));
	EXPECT_TRUE(says("MEMSET dst=fp32@0x0[1,2][1]", "2 steps, 1 numbers"));
	EXPECT_TRUE(says("MEMSET dst=fp32@0x0[1,1,1,1,1][1,1,1,1,1]", "0 to 4 steps"));
	EXPECT_TRUE(says("MEMSET dst=fp32@0x0[40000][1]", "too large"));
	EXPECT_TRUE(says("MEMSET dst=fp32@0x0[1][1] imm0=abc", "is not a value"));
	EXPECT_TRUE(says("ACTIVATE func=frob", "not an activation function"));
	EXPECT_TRUE(says("TENSOR_TENSOR op0=frob", "not an ALU operator"));
	EXPECT_TRUE(says("TENSOR_TENSOR frob", "not a flag"));
	EXPECT_TRUE(says("DMA_DIRECT2D src=fp32@arg0[1][1]", "type@argN+0xOFFSET"));
	EXPECT_TRUE(says("DMA_DIRECT2D src7=fp32@arg0+0x0[1][1]", "one source"));
}

static const char program[] =
	".program \"add one\"\n"
	".target trn2\n"
	".arg 0 input x float32[128, 64]	# what to add to\n"
	".arg 1 output y float32[128, 64]\n"
	".arg 2 file c 4\n"
	".data 2 0000803f\n"
	".arg 3 tmp-buf s 100\n"
	".core 0\n"
	".engine sp\n"
	"	DMA_DIRECT2D $S[0]+=16@complete queue=0 src=fp32@arg0+0x0[4][8192] dst=fp32@0x0[1][64] dst_channels=128\n"
	"	DMA_DIRECT2D $S[1]>=1- queue=1 src=fp32@0x0[1][64] src_channels=128 dst=fp32@arg1+0x0[4][8192]\n"
	".engine dve\n"
	"	REG_MOVE r0 src=0\n"
	"top:	SCALAR $S[0]>=16 op0=add src=fp32@0x0[1][64] dst=fp32@0x0[1][64] imm0=1.0 channels=128\n"
	"	REG_ALU r0 op=add a=r0 b=1\n"
	"	COMPARE_BRANCH cmp=less a=r0 b=4 target=top\n"
	"	COMPARE_BRANCH cmp=equal a=r0 b=9 target=out\n"
	"	EVENT_SEMAPHORE $S[1]++@complete\n"
	"out:	HALT\n";

TEST(a_program)
{
	char error[256] = "";
	const struct neff_line *line;
	struct neuron_insn *w;
	struct neff *neff;

	ASSERT_EQ(0, nki_asm_file("one.s", program, &neff, error, sizeof(error)));
	EXPECT_STREQ("add one", neff->name);
	EXPECT_STREQ("trn2", neff->target);
	EXPECT_EQ(1, neff->core_count);
	ASSERT_EQ(4, neff->arg_count);
	EXPECT_STREQ("y", neff->args[1].name);
	EXPECT_EQ(128 * 64 * 4, neff->args[1].size);
	EXPECT_EQ(NEFF_VAR_FILE, neff->args[2].type);
	EXPECT_EQ(0, memcmp("\0\0\x80\x3f", neff->args[2].data, 4));
	EXPECT_EQ(100, neff->args[3].size);
	EXPECT_EQ(6, neff->core[0].words[NEURON_ENGINE_SP]);
	EXPECT_EQ(2, neff->core[0].semaphore_count);
	ASSERT_EQ(7, neff->core[0].words[NEURON_ENGINE_DVE]);
	w = neff->core[0].stream[NEURON_ENGINE_DVE];
	EXPECT_EQ(1, le32toh(w[3].aux));
	EXPECT_EQ(6, le32toh(w[4].aux));
	line = neff_line(neff, 0, le32toh(w[1].debug_id));
	ASSERT_NE(NULL, line);
	EXPECT_STREQ("one.s", line->file);
	EXPECT_EQ(14, line->line);
	EXPECT_STREQ("SCALAR", line->name);
	nki_asm_free(neff);
}

static bool file_says(const char *text, const char *expected)
{
	char error[256] = "";
	struct neff *neff;

	if (!nki_asm_file("bad.s", text, &neff, error, sizeof(error)) || !strstr(error, expected)) {
		printf("# wanted \"%s\", got \"%s\"\n", expected, error);
		return false;
	}
	return true;
}

#define HEAD ".program p\n.target trn2\n.core 0\n.engine dve\n"

TEST(errors_of_a_program)
{
	EXPECT_TRUE(file_says("NOP\n", "bad.s:1: an instruction before .engine"));
	EXPECT_TRUE(file_says(".target trn9\n", "bad.s:1: unknown target \"trn9\"; allowed: trn1"));
	EXPECT_TRUE(file_says(HEAD "NOP\n\nFROB\n", "bad.s:7: \"FROB\": not an opcode"));
	EXPECT_TRUE(file_says(HEAD "ACTIVATE func=exp\n", "bad.s:5: ACTIVATE does not run on dve; allowed: act"));
	EXPECT_TRUE(file_says(HEAD "COMPARE_BRANCH target=nowhere\n", "bad.s:5: label \"nowhere\" is not in this stream"));
	EXPECT_TRUE(file_says(HEAD "a: NOP\na: NOP\n", "bad.s:6: label \"a\" exists already (line 5)"));
	EXPECT_TRUE(file_says(HEAD ".frob\n", "bad.s:5: unknown directive \".frob\""));
	EXPECT_TRUE(file_says(HEAD ".engine xyz\n", "bad.s:5: unknown engine \"xyz\"; allowed: pe, act, pool, dve, sp"));
	EXPECT_TRUE(file_says(HEAD "MEMSET dst=fp32@0x0[1][1] channels=300\n", "bad.s:5: \"channels\""));
	EXPECT_TRUE(file_says(HEAD ".core 2\n", "bad.s:5: core 2; allowed: 0, 1"));
	EXPECT_TRUE(file_says(".arg 0 input x\n", "bad.s:1: allowed: .arg N KIND NAME"));
	EXPECT_TRUE(file_says(HEAD "IOTA dst=int32@0x0[1][1]\n", "bad.s:5: IOTA does not run on dve; allowed: pool"));
	EXPECT_TRUE(file_says(HEAD "TENSOR_TENSOR op0=add src=fp32@0x0[1][1] src1=fp32@0x0[1][1] dst=fp32@space3:0x0[1][1]\n",
			      "bad.s:5: dst is in space 3; allowed: SBUF, PSUM"));
	EXPECT_TRUE(file_says(HEAD "COPY_PREDICATED src=fp32@0x0[1][1] predicate=fp32@0x0[1][1] dst=fp32@0x0[1][1]\n",
			      "bad.s:5: predicate is float32; allowed: uint8, uint16, uint32"));
	EXPECT_TRUE(file_says("", "no .target"));
}

/* Any text: an error or a program, and nothing else. */
TEST(garbage)
{
	static const char chars[] = "$S[]>=+-0123456789,@ .:\n\t#abcdefprxENOPDMA_\"";
	char text[256], error[128];
	struct neff *neff;

	for (int n = 0; n < 20000; n++) {
		size_t len = below(sizeof(text) - 1), from = 0;

		if (n & 1) {
			from = below(sizeof(program) - sizeof(text));
			memcpy(text, program + from, len);
			for (int i = 0; i < 4 && len; i++)
				text[below(len)] = chars[below(sizeof(chars) - 1)];
		} else {
			for (size_t i = 0; i < len; i++)
				text[i] = chars[below(sizeof(chars) - 1)];
		}
		text[len] = 0;
		if (!nki_asm_file("x.s", text, &neff, error, sizeof(error)))
			nki_asm_free(neff);
	}
}

TEST_HARNESS_MAIN
