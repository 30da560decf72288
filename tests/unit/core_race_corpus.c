// SPDX-License-Identifier: MIT
/*
 * A corpus of racy programs, each with its repaired twin: strict mode must find every
 * race and report none that is not there, whatever the latencies.
 *
 * A program is text, instructions separated by ';', words by blanks:
 *
 *	engine[core] operation operands [?wait] [!update]
 *
 * Engines: D DVE, A ACT, P POOL, S SP, E PE. Operations: w X (write tile X), c X Y (X =
 * copy of Y), l Q X (load tile X by queue Q), s Q H X (store tile X to rows H of HBM by
 * queue Q), g Q H X (load X from rows H), n (nothing), m C S V (add V to semaphore S of
 * core C), q C Q X Y (copy Y to X of core C by queue Q, update there). Tiles a to p: 64
 * fp32 of 32 partitions; ab: the second half of a and the first of b; a1 to a3: tile a of
 * partitions 32, 64, 96. Waits: 5>=1, 5-1 (and subtract), 5=0, e3 (event, clear it).
 * Updates: 5+1, 5-1, 5:1 (write), e3 (set); with r at the end: at read.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "fake_vm.h"

#define SBUF	NEURON_SPACE_SBUF
#define F32	NEURON_DTYPE_FLOAT32
#define TILE	256u

static const struct race_case {
	const char *name, *correct, *racy;
} cases[] = {
	{ "raw", "D w a !5+1; A c b a ?5>=1", "D w a; A c b a" },
	{ "raw_by_luck", "D w a !5+1; P w c ?5>=1 !6+1; A c b a ?6>=1", "D w a; P w c; P w d !6+1; A c b a ?6>=1" },
	{ "war", "D w a !5+1; A c b a ?5>=1 !6+1; D w a ?6>=1", "D w a !5+1; A c b a ?5>=1; D w a" },
	{ "waw", "D w a !5+1; P w a ?5>=1", "D w a; P w a" },
	{ "halves", "D w ab; P w c; D w d !5+1; A c e ab ?5>=1", "D w ab; P w b !5+1; A c e d" },
	{ "partitions", "D w a; P w a1; P w a2", "D w a1; P w a1" },
	{ "transitive", "D w a !5+1; S n ?5>=1 !6+1; A c b a ?6>=1", "D w a !5+1; S n !6+1; A c b a ?6>=1" },
	{ "four_hops", "D w a !5+1; S n ?5>=1 !6+1; P w c ?6>=1 !7+1; E n ?7>=1 !8+1; A c b a ?8>=1",
	  "D w a !5+1; S n ?5>=1 !6+1; P w c !7+1; E n ?7>=1 !8+1; A c b a ?8>=1" },
	{ "two_producers", "D w a !5+1; P w b !5+1; A c c a ?5>=2", "D w a !5+1; P w b !5+1; P n !6+1; A n ?6>=1; A c c a ?5>=1" },
	{ "two_semaphores", "D w a !5+1; P w b !6+1; A n ?6>=1; A c c a ?5>=1", "D w a !5+1; P w b !6+1; A c c a ?6>=1" },
	{ "second_of_one", "D w a !5+1; D w b !5+1; A c c b ?5>=2", "D w a !5+1; D w b !5+1; A c c b ?5>=1" },
	{ "own_credit", "A n !5+1; A n ?5-1; D w a !5+1; A c b a ?5-1", "A n !5+1; D w a !5+1; P w d !6+1; A n ?6>=1; A c b a ?5-1" },
	{ "chained_adds", "D w a !5+1; P w b ?5>=1 !5+1; A c c a ?5>=1", "D w a; P w b !5+1; A c c a ?5>=1" },
	{ "two_takers", "D w a !5+1; P w b !6+1; A c c a ?5-1; E n ?6-1",
	  "D w a !5+1; P w b !5+1; P n !6+1; A n ?5-1; S n ?6>=1; S n ?5-1 !7+1; P c c a ?7>=1" },
	{ "at_read_write", "D w a !5+1; A c b a ?5>=1 !6+1r; P w a ?6>=1", "D w a !5+1; A c b a ?5>=1 !6+1r; P w b ?6>=1" },
	{ "at_read_read", "D w a !5+1; A c b a ?5>=1 !6+1; P c c b ?6>=1", "D w a !5+1; A c b a ?5>=1 !6+1r; P c c b ?6>=1" },
	{ "at_read_then_done", "D w a !5+1r; D n !6+1; A c b a ?6>=1", "D w a !5+1r; D n !6+1; A c b a ?5>=1" },
	{ "event", "D w a !e3; A c b a ?e3", "D w a; P w c !e3; A c b a ?e3" },
	{ "event_twice", "D w a !e3; A c b a ?e3 !e4; D w a ?e4 !e3; A c b a ?e3",
	  "D w a !e3; A c b a ?e3 !e4; D n ?e4 !e3; D w a; A c b a ?e3" },
	{ "load", "S l 0 a !5+16; D c b a ?5>=16", "S l 0 a; D w c !5+16; D n ?5>=16; A c b a" },
	{ "load_half_count", "S l 0 a !5+16; S l 1 b !5+16; D c c a ?5>=32", "S l 0 a !5+16; S l 1 b !5+16; S l 1 d !6+16; D n ?6>=16; D c c a ?5>=16" },
	{ "store", "D w a !5+1; S s 0 0 a ?5>=1", "D w a; S s 0 0 a" },
	{ "store_reuse", "D w a !5+1; S s 0 0 a ?5>=1 !6+16; D w a ?6>=16", "D w a !5+1; S s 0 0 a ?5>=1; D w a" },
	{ "own_trigger", "A w a !5+1; A s 0 0 a ?5>=1", "A w a; A s 0 0 a" },
	{ "same_queue", "S l 0 a; S s 0 0 a", "S l 0 a; S s 1 0 a" },
	{ "queue_order", "S l 0 a; S l 0 b !5+16; D c c a ?5>=16", "S l 0 a; S l 1 b !5+16; D c c a ?5>=16" },
	{ "hbm_write_read", "D w a !5+1; S s 0 0 a ?5>=1 !6+16; S g 1 0 b ?6>=16", "D w a !5+1; S s 0 0 a ?5>=1; S g 1 0 b" },
	{ "hbm_rows", "D w a !5+1; S n ?5>=1; S s 0 0 a; S s 1 1 a", "D w a !5+1; S n ?5>=1; S s 0 0 a; S s 1 0 a" },
	{ "hbm_read_write", "D w b !5+1; S g 0 0 a !6+16; S n ?5>=1; S s 1 0 b ?6>=16", "D w b !5+1; S g 0 0 a; S n ?5>=1; S s 1 0 b" },
	{ "countdown", "D w a !5+2; A n ?5>=2 !6+1; P w b ?6>=1 !5-1; D w c ?6>=1 !5-1; A c d b ?5=0",
	  "D w a !5+2; A n ?5>=2 !6+1; P w b ?6>=1 !5-1; D w c ?6>=1 !5-1; A c d b ?6>=1" },
	{ "written_value", "D w a !5:1; A c b a ?5>=1", "D w a !5:1; D w c !5:2; A c b c ?5>=1" },
	{ "ring", "D w a !5+1; A c b a ?5-1 !6+1; P c c b ?6-1 !7+1; D w a ?7-1 !5+1; A c b a ?5-1",
	  "D w a !5+1; A c b a ?5-1 !6+1; P c c b ?6-1 !7+1; D w a ?7-1 !5+1; A c d a ?5-1; D w d" },
	{ "reset_then_add", "S n !5:0; S n !6+3; D w a ?6-1 !5+1; A n ?6-1; A c b a ?5>=1", "S n !5:0; S n !6+3; D w a; P w c ?6-1 !5+1; A c b a ?5>=1" },
	{ "other_core", "D0 w a !5+1; S0 m 1 6 1 ?5>=1; S0 s 0 0 a ?5>=1 !7+16; S0 m 1 8 1 ?7>=16; S1 g 0 0 a ?8>=1",
	  "D0 w a !5+1; S0 s 0 0 a ?5>=1 !7+16; S0 m 1 8 1 ?5>=1; S1 g 0 0 a ?8>=1" },
	{ "other_core_rows", "D0 w a !5+1; D1 w a !5+1; S0 s 0 0 a ?5>=1; S1 s 0 1 a ?5>=1",
	  "D0 w a !5+1; D1 w a !5+1; S0 s 0 0 a ?5>=1; S1 s 0 0 a ?5>=1" },
	{ "peer_sbuf", "S1 m 0 10 1; D0 w a !5+1; S0 n ?10>=1; S0 q 1 0 b a ?5>=1 !9+16; D1 c c b ?9>=16",
	  "S1 m 0 10 1; D0 w a !5+1; S0 n ?10>=1; S0 q 1 0 b a ?5>=1 !9+16; D1 c c b" },
};

/* --- from text to programs ------------------------------------------------------------- */

static unsigned int engine_of(char c)
{
	switch (c) {
	case 'D': return NEURON_ENGINE_DVE;
	case 'A': return NEURON_ENGINE_ACT;
	case 'P': return NEURON_ENGINE_POOL;
	case 'S': return NEURON_ENGINE_SP;
	case 'E': return NEURON_ENGINE_PE;
	}
	abort();
}

static struct neuron_ap tile(const char *word)
{
	uint32_t offset = (word[0] - 'a') * TILE;
	unsigned int part = 0;

	if (islower(word[1]))
		offset += TILE / 2;
	else if (isdigit(word[1]))
		part = 32 * (word[1] - '0');
	return ap_row(SBUF, F32, part, 32, offset, TILE / 4);
}

static void parse_wait(const char *word, struct neuron_wait *w)
{
	char *end;

	if (*word == 'e') {
		w->sem = atoi(word + 1);
		w->cond = NEURON_WAIT_EVENT_CLEAR;
		return;
	}
	w->sem = strtoul(word, &end, 10);
	w->cond = *end == '>' ? NEURON_WAIT_GE : *end == '-' ? NEURON_WAIT_GE_SUB : NEURON_WAIT_EQ;
	w->value = htole16(atoi(end + (*end == '>' ? 2 : 1)));
}

static void parse_update(const char *word, struct neuron_update *u)
{
	char *end;

	if (*word == 'e') {
		u->sem = atoi(word + 1);
		u->op = NEURON_UPDATE_EVENT_SET;
		return;
	}
	u->sem = strtoul(word, &end, 10);
	u->op = *end == '+' ? NEURON_UPDATE_SEM_ADD : *end == '-' ? NEURON_UPDATE_SEM_SUB :
		NEURON_UPDATE_SEM_WRITE;
	u->value = htole16(strtoul(end + 1, &end, 10));
	if (*end == 'r')
		u->op |= NEURON_UPDATE_AT_READ;
}

/* Rows @h of 32 rows each of argument 0. */
static struct neuron_dma_operand rows(const char *h)
{
	return dma_hbm(0, F32, (uint64_t)atoi(h) * 32 * TILE, TILE / 4, 32, TILE);
}

static void add_dma(struct prog *p, unsigned int core, unsigned int engine, struct neuron_insn *w,
		    char **word)
{
	struct neuron_dma_operand dst = dma_sbuf(), src = dma_sbuf();

	switch (word[0][0]) {
	case 'l':
		w->ap[0] = tile(word[2]);
		src = dma_hbm(1, F32, 0, TILE / 4, 32, TILE);
		break;
	case 'g':
		w->ap[0] = tile(word[3]);
		src = rows(word[2]);
		break;
	case 's':
		w->ap[1] = tile(word[3]);
		dst = rows(word[2]);
		break;
	case 'q':
		w->ap[0] = tile(word[3]);
		w->ap[1] = tile(word[4]);
		dst.arg = htole16(1 + atoi(word[1]));
		w->aux = htole32(atoi(word[2]) | (1 + (uint32_t)atoi(word[1])) << 24);
		break;
	}
	if (word[0][0] != 'q')
		w->aux = htole32(atoi(word[1]));
	prog_dma(p, core, engine, w, &dst, &src);
}

static void add_one(struct prog *p, char *text, uint32_t id)
{
	char *word[8] = { 0 }, *save = NULL, *t;
	struct neuron_wait wait = { 0 };
	struct neuron_update update = { 0 };
	unsigned int n = 0, engine, core;
	struct neuron_insn w;

	for (t = strtok_r(text, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
		if (*t == '?')
			parse_wait(t + 1, &wait);
		else if (*t == '!')
			parse_update(t + 1, &update);
		else if (n < 8)
			word[n++] = t;
	}
	if (n < 2)
		abort();
	engine = engine_of(word[0][0]);
	core = word[0][1] ? word[0][1] - '0' : 0;
	w = insn_new(strchr("lgsq", word[1][0]) ? NEURON_OP_DMA_COPY : word[1][0] == 'w' ?
		     (engine == NEURON_ENGINE_ACT ? NEURON_OP_ACTIVATE : NEURON_OP_MEMSET) :
		     word[1][0] == 'c' ? NEURON_OP_TENSOR_COPY :
		     word[1][0] == 'm' ? NEURON_OP_REMOTE_SEMAPHORE : NEURON_OP_EVENT_SEMAPHORE);
	w.debug_id = htole32(id);
	w.wait[0] = wait;
	w.update = update;
	if (w.opcode == NEURON_OP_DMA_COPY) {
		add_dma(p, core, engine, &w, word + 1);
		return;
	}
	if (word[1][0] == 'm') {
		w.aux = htole32(atoi(word[2]));
		w.imm[0] = imm_i32(atoi(word[3]));
		w.imm[1] = imm_i32(atoi(word[4]));
	} else if (word[1][0] == 'w' || word[1][0] == 'c') {
		w.ap[0] = tile(word[2]);
		if (w.opcode == NEURON_OP_MEMSET)
			w.imm[0] = imm_f32(id);
		/* ACT has no memset: it copies tile p. */
		if (w.opcode == NEURON_OP_ACTIVATE) {
			w.op[0] = NEURON_ACTFN_COPY;
			w.ap[1] = tile("p");
		}
		if (word[1][0] == 'c')
			w.ap[1] = tile(word[3]);
	}
	prog_add(p, core, engine, &w);
}

/* All tiles are written before, and every stream knows it. */
static void prologue(struct prog *p)
{
	static const char engines[] = "APSE";
	struct neuron_insn w;
	unsigned int core, i;

	for (core = 0; core < 2; core++) {
		w = insn_new(NEURON_OP_MEMSET);
		w.debug_id = htole32(99);
		w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 16 * TILE / 4);
		w.imm[0] = imm_f32(99);
		w.update = update_add(99, 1);
		prog_add(p, core, NEURON_ENGINE_DVE, &w);
		w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
		w.wait[0] = wait_ge(99, 1);
		for (i = 0; engines[i]; i++)
			prog_add(p, core, engine_of(engines[i]), &w);
	}
}

static unsigned int run_text(struct prog *p, const char *text, uint64_t seed)
{
	char copy[512], *save = NULL, *t;
	uint32_t id = 1;

	prog_reset(p);
	p->flags = NEURON_JOB_STRICT | (seed ? NEURON_JOB_JITTER : 0);
	p->seed = seed;
	prog_arg(p, 4 * 32 * TILE, NEURON_ARG_READ | NEURON_ARG_WRITE);
	prog_arg(p, 32 * TILE, NEURON_ARG_READ);
	if (strlen(text) >= sizeof(copy))
		abort();
	strcpy(copy, text);
	prologue(p);
	for (t = strtok_r(copy, ";", &save); t; t = strtok_r(NULL, ";", &save))
		add_one(p, t, id++);
	return prog_run(p);
}

/* --- the test -------------------------------------------------------------------------- */

#define CASES	(sizeof(cases) / sizeof(cases[0]))
#define SEEDS	20

TEST(correct)
{
	struct prog *p = prog_new(3, 2);
	unsigned int i, code;
	uint64_t seed;

	EXPECT_LE(30, CASES);
	for (i = 0; i < CASES; i++) {
		for (seed = 0; seed < SEEDS; seed++) {
			code = run_text(p, cases[i].correct, seed);
			EXPECT_EQ(code, NEURON_FAULT_NONE) {
				TH_LOG("%s, seed %llu: id %u and id %u", cases[i].name,
				       (unsigned long long)seed, le32toh(p->job.fault.debug_id),
				       le32toh(p->job.fault.other_debug_id));
				seed = SEEDS;
			}
		}
	}
	prog_free(p);
}

TEST(racy)
{
	struct prog *p = prog_new(3, 2);
	unsigned int i, code;
	uint64_t seed;

	for (i = 0; i < CASES; i++) {
		for (seed = 0; seed < SEEDS; seed++) {
			code = run_text(p, cases[i].racy, seed);
			EXPECT_EQ(code, NEURON_FAULT_DATA_RACE) {
				TH_LOG("%s, seed %llu: code %u id %u", cases[i].name,
				       (unsigned long long)seed, code, le32toh(p->job.fault.debug_id));
				seed = SEEDS;
				continue;
			}
			EXPECT_NE(le32toh(p->job.fault.debug_id), 0);
			EXPECT_NE(le32toh(p->job.fault.other_debug_id), 0);
		}
	}
	prog_free(p);
}

TEST_HARNESS_MAIN
