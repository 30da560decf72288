// SPDX-License-Identifier: MIT
/* From items and edges to the words of five streams. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

struct lower {
	struct nki_kernel *k;
	unsigned int engine;
	struct nki_words *out;
	int error;
};

static struct neuron_insn *put(struct lower *l, const void *word)
{
	struct nki_words *out = l->out;

	_Static_assert(sizeof(struct neuron_insn) == NEURON_WORD_BYTES, "word");
	_Static_assert(sizeof(struct neuron_dma_operand) == NEURON_WORD_BYTES, "word");
	if (out->count == out->room) {
		size_t room = out->room ? 2 * out->room : 64;
		struct neuron_insn *w = realloc(out->word, room * sizeof(*w));

		if (!w) {
			l->error = -ENOMEM;
			return NULL;
		}
		out->word = w;
		out->room = room;
	}
	memcpy(&out->word[out->count], word, sizeof(*out->word));
	return &out->word[out->count++];
}

static struct neuron_insn sequencer(enum neuron_opcode op, unsigned int debug_id)
{
	struct neuron_insn w = { .opcode = op, .words = 1, .debug_id = htole32(debug_id) };

	for (unsigned int i = 0; i < 3; i++) {
		w.ap[i].offset_reg = NEURON_REG_NONE;
		w.ap[i].count_reg = NEURON_REG_NONE;
	}
	return w;
}

static struct neuron_imm int_imm(int32_t value)
{
	return (struct neuron_imm){ .kind = NEURON_IMM_I32, .dtype = NEURON_DTYPE_INT32,
				    .value = htole32(value) };
}

static struct neuron_imm reg_imm(unsigned int reg)
{
	return (struct neuron_imm){ .kind = NEURON_IMM_REG, .dtype = NEURON_DTYPE_INT32,
				    .value = htole32(reg) };
}

/* ------------------------------------------------------------------------ */
/* Waits and signals							    */

static unsigned int edge_value(const struct nki_edge_priv *e)
{
	return !e->relay && e->from->queue != NKI_QUEUE_NONE ? NKI_DMA_SEM : 1;
}

static struct neuron_wait wait_for(unsigned int sem, unsigned int value)
{
	return (struct neuron_wait){ .sem = sem, .cond = NEURON_WAIT_GE_SUB, .value = htole16(value) };
}

static struct neuron_update signal_to(unsigned int sem, unsigned int value)
{
	return (struct neuron_update){ .sem = sem, .op = NEURON_UPDATE_SEM_ADD,
				       .value = htole16(value) };
}

/* The stream waits for @e, then tells the others that it did. */
static void put_relay(struct lower *l, const struct nki_point *p, const struct nki_edge_priv *e)
{
	struct neuron_insn w = sequencer(NEURON_OP_EVENT_SEMAPHORE, p->debug_id);
	bool pending = !e->dropped;

	if (pending)
		w.wait[0] = wait_for(e->sem, edge_value(e));
	for (const struct nki_edge_priv *r = e->relays; r; r = r->next_signal) {
		if (r->dropped)
			continue;
		w.update = signal_to(r->sem, edge_value(r));
		put(l, &w);
		w = sequencer(NEURON_OP_EVENT_SEMAPHORE, p->debug_id);
		pending = false;
	}
	if (pending)
		put(l, &w);
}

/* Waits of a point; the last two can be made by the instruction @insn itself. */
static void put_waits(struct lower *l, const struct nki_point *p, struct neuron_insn *insn)
{
	struct neuron_insn w = sequencer(NEURON_OP_EVENT_SEMAPHORE, p->debug_id);
	unsigned int left = 0, slot = 0;

	for (const struct nki_edge_priv *e = p->waits; e; e = e->next_wait) {
		if (e->relays)
			put_relay(l, p, e);
		else if (!e->dropped)
			left++;
	}
	for (const struct nki_edge_priv *e = p->waits; e; e = e->next_wait) {
		if (e->relays || e->dropped)
			continue;
		if (insn && left <= 2) {
			insn->wait[left-- - 1] = wait_for(e->sem, edge_value(e));
			continue;
		}
		left--;
		w.wait[slot++] = wait_for(e->sem, edge_value(e));
		if (slot == 2 || !left || (insn && left == 2)) {
			put(l, &w);
			w = sequencer(NEURON_OP_EVENT_SEMAPHORE, p->debug_id);
			slot = 0;
		}
	}
}

/* An instruction has one update; more consumers are told right after it. */
static struct nki_edge_priv *first_signal(const struct nki_point *p)
{
	struct nki_edge_priv *e = p->signals;

	while (e && (e->dropped || e->relay))
		e = e->next_signal;
	return e;
}

static void put_signals(struct lower *l, const struct nki_point *p, const struct nki_edge_priv *done)
{
	for (const struct nki_edge_priv *e = p->signals; e; e = e->next_signal) {
		struct neuron_insn w = sequencer(NEURON_OP_EVENT_SEMAPHORE, p->debug_id);

		if (e == done || e->dropped)
			continue;
		w.update = signal_to(e->sem, edge_value(e));
		put(l, &w);
	}
}

/* ------------------------------------------------------------------------ */
/* Instructions								    */

static void put_fix(struct lower *l, const struct nki_fix *fix, unsigned int debug_id)
{
	struct neuron_insn w = sequencer(NEURON_OP_REG_ALU, debug_id);

	w.op[0] = NEURON_ALU_MULTIPLY;
	w.imm[0] = reg_imm(fix->reg);
	w.imm[1] = int_imm(fix->scale);
	w.aux = htole32(fix->temp);
	put(l, &w);
}

static void put_insn(struct lower *l, struct nki_insn *insn)
{
	const struct nki_point *p = &insn->point;
	struct nki_edge_priv *signal = first_signal(p);
	struct neuron_insn w = insn->w;

	if (p->engine != l->engine)
		return;
	for (unsigned int i = 0; i < insn->fixes; i++)
		put_fix(l, &insn->fix[i], p->debug_id);
	put_waits(l, p, insn->befores ? NULL : &w);
	for (unsigned int i = 0; i < insn->befores; i++)
		put(l, &insn->before[i]);
	if (insn->afters)
		signal = NULL;
	else if (signal)
		w.update = signal_to(signal->sem, edge_value(signal));
	put(l, &w);
	for (unsigned int i = 1; i < w.words; i++)
		put(l, &insn->more[i - 1]);
	for (unsigned int i = 0; i < insn->afters; i++)
		put(l, &insn->after[i]);
	put_signals(l, p, signal);
}

static void put_regop(struct lower *l, struct nki_regop *r)
{
	const struct nki_point *p = &r->point[l->engine];
	struct nki_edge_priv *signal = first_signal(p);
	struct neuron_insn w = r->w;

	if (!(l->k->reg_used[l->engine] & 1ull << r->dst))
		return;
	if (r->has_fix)
		put_fix(l, &r->fix, p->debug_id);
	put_waits(l, p, &w);
	if (signal)
		w.update = signal_to(signal->sem, edge_value(signal));
	put(l, &w);
	for (unsigned int i = 1; i < w.words; i++)
		put(l, &r->more[i - 1]);
	put_signals(l, p, signal);
}

/* ------------------------------------------------------------------------ */
/* Loops								    */

static void count_carried(struct lower *l, const struct nki_loop *loop, unsigned int *sum)
{
	memset(sum, 0, NEURON_SEMAPHORES * sizeof(*sum));
	for (const struct nki_edge_priv *e = l->k->edges; e; e = e->next) {
		if (e->loop == loop && e->carried && !e->dropped && e->to->engine == l->engine)
			sum[e->sem] += edge_value(e);
	}
	for (unsigned int s = 0; s < NEURON_SEMAPHORES; s++) {
		if (sum[s] > UINT16_MAX)
			l->error = -EOVERFLOW;
	}
}

static void put_credits(struct lower *l, const struct nki_loop *loop, const unsigned int *sum,
			bool give)
{
	for (unsigned int s = 0; s < NEURON_SEMAPHORES; s++) {
		struct neuron_insn w = sequencer(NEURON_OP_EVENT_SEMAPHORE, loop->debug_id);

		if (!sum[s])
			continue;
		if (give)
			w.update = signal_to(s, sum[s]);
		else
			w.wait[0] = wait_for(s, sum[s]);
		put(l, &w);
	}
}

static struct neuron_imm loop_end(const struct nki_loop *loop)
{
	return loop->hi.kind == NEURON_IMM_REG ? reg_imm(loop->hi.reg.id - 1) : int_imm(loop->hi.i);
}

static void put_branch(struct lower *l, const struct nki_loop *loop, enum neuron_alu_op op,
		       struct neuron_imm value, struct neuron_imm other, size_t target)
{
	struct neuron_insn w = sequencer(NEURON_OP_COMPARE_BRANCH, loop->debug_id);

	w.op[0] = op;
	w.imm[0] = value;
	w.imm[1] = other;
	w.aux = htole32(target);
	put(l, &w);
}

static void put_seq(struct lower *l, struct nki_seq *seq);

/* Returns the number of the branch that leaves a loop without iterations, or SIZE_MAX. */
static size_t put_loop_begin(struct lower *l, const struct nki_loop *loop)
{
	struct neuron_insn move = sequencer(NEURON_OP_REG_MOVE, loop->debug_id);
	size_t skip;

	if (!loop->conditional) {
		move.imm[0] = int_imm(loop->lo);
		move.aux = htole32(loop->reg);
		put(l, &move);
	}
	skip = l->out->count;
	if (loop->conditional)
		put_branch(l, loop, NEURON_ALU_EQUAL, loop_end(loop), int_imm(0), 0);
	else if (loop->hi.kind == NEURON_IMM_REG)
		put_branch(l, loop, NEURON_ALU_GREATER_EQUAL, reg_imm(loop->reg), loop_end(loop), 0);
	else
		return SIZE_MAX;
	return skip;
}

static void put_loop_end(struct lower *l, const struct nki_loop *loop, size_t top)
{
	struct neuron_insn add = sequencer(NEURON_OP_REG_ALU, loop->debug_id);

	if (loop->conditional) {
		put_branch(l, loop, NEURON_ALU_NOT_EQUAL, loop_end(loop), int_imm(0), top);
		return;
	}
	add.op[0] = NEURON_ALU_ADD;
	add.imm[0] = reg_imm(loop->reg);
	add.imm[1] = int_imm(loop->step);
	add.aux = htole32(loop->reg);
	put(l, &add);
	put_branch(l, loop, NEURON_ALU_LESS, reg_imm(loop->reg), loop_end(loop), top);
}

static void put_loop(struct lower *l, struct nki_loop *loop)
{
	unsigned int sum[NEURON_SEMAPHORES];
	size_t skip, top;

	if (!(loop->engines & 1u << l->engine))
		return;
	put_waits(l, &loop->pre[l->engine], NULL);
	count_carried(l, loop, sum);
	put_credits(l, loop, sum, true);
	skip = put_loop_begin(l, loop);
	top = l->out->count;
	put_seq(l, &loop->body);
	put_loop_end(l, loop, top);
	if (skip != SIZE_MAX && !l->error)
		l->out->word[skip].aux = htole32(l->out->count);
	put_credits(l, loop, sum, false);
	put_signals(l, &loop->post[l->engine], NULL);
}

static void put_seq(struct lower *l, struct nki_seq *seq)
{
	for (struct nki_item *i = seq->first; i && !l->error; i = i->next) {
		switch (i->kind) {
		case NKI_ITEM_INSN:
			put_insn(l, i->insn);
			break;
		case NKI_ITEM_REGOP:
			put_regop(l, i->regop);
			break;
		case NKI_ITEM_LOOP:
			put_loop(l, i->loop);
			break;
		}
	}
}

/* The mode is the core's: every stream sets it before anything of its own can round. */
static size_t put_rounding(struct lower *l)
{
	struct neuron_insn w = sequencer(NEURON_OP_SET_ROUNDING_MODE, l->k->rounding_id);

	if (!l->k->rounding)
		return 0;
	w.imm[0] = int_imm(l->k->rounding - 1);
	put(l, &w);
	return 1;
}

int nki_lower(struct nki_kernel *k)
{
	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		struct lower l = { .k = k, .engine = e, .out = &k->stream[e] };
		struct neuron_insn halt = sequencer(NEURON_OP_HALT, 0);
		size_t begin;

		l.out->count = 0;
		begin = put_rounding(&l);
		put_seq(&l, &k->prologue);
		put_seq(&l, &k->seq);
		if (l.out->count > begin)
			put(&l, &halt);
		else
			l.out->count = 0;
		if (l.error == -EOVERFLOW)
			nki_fail(k, (struct nki_loc){ "nki", 0, "semaphores" },
				 "a loop body has more than %d orders between two streams", UINT16_MAX / 16);
		if (l.error)
			return l.error == -EOVERFLOW ? -EINVAL : l.error;
	}
	return 0;
}
