// SPDX-License-Identifier: MIT
/*
 * Which streams run what: an engine without work in a loop does not run the
 * loop, and a register is only computed where something needs it.
 */
#include "priv.h"

static bool regop_wanted(struct nki_kernel *k, const struct nki_regop *r, unsigned int engine)
{
	return k->reg_used[engine] & 1ull << r->dst;
}

/* Returns the mask of engines with something to do in the sequence. */
static unsigned int scan(struct nki_kernel *k, const struct nki_seq *seq)
{
	unsigned int engines = 0;

	for (struct nki_item *i = seq->first; i; i = i->next) {
		if (i->kind == NKI_ITEM_INSN) {
			engines |= 1u << i->insn->point.engine;
			k->reg_used[i->insn->point.engine] |= i->insn->regs;
			continue;
		}
		if (i->kind == NKI_ITEM_LOOP)
			i->loop->engines = scan(k, &i->loop->body);
		for (unsigned int e = 0; e < NKI_ENGINES; e++) {
			if (i->kind == NKI_ITEM_REGOP && regop_wanted(k, i->regop, e)) {
				engines |= 1u << e;
				k->reg_used[e] |= i->regop->regs;
			} else if (i->kind == NKI_ITEM_LOOP && i->loop->engines & 1u << e) {
				engines |= 1u << e;
				k->reg_used[e] |= i->loop->hi_regs;
			}
		}
	}
	return engines;
}

void nki_find_streams(struct nki_kernel *k)
{
	uint64_t before, after = 0;

	for (unsigned int e = 0; e < NKI_ENGINES; e++)
		k->reg_used[e] = 0;
	/* Uses can precede definitions (in loops), so until nothing changes. */
	do {
		before = after;
		scan(k, &k->prologue);
		scan(k, &k->seq);
		after = 0;
		for (unsigned int e = 0; e < NKI_ENGINES; e++)
			after += __builtin_popcountll(k->reg_used[e]);
	} while (after != before);
}
