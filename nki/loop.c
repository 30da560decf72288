// SPDX-License-Identifier: MIT
/* Registers and device loops. */
#include <string.h>

#include "rules.h"

bool nki_reg_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg)
{
	if (reg.id >= 1 && reg.id <= NKI_PHYS_REGS && k->reg[reg.id].used)
		return true;
	nki_fail(k, loc, "not a register of this kernel, or that of a loop that has ended");
	return false;
}

struct nki_reg nki_register_alloc_(struct nki_kernel *k, struct nki_loc loc)
{
	if (!nki_ok(k))
		return (struct nki_reg){ 0 };
	for (unsigned int id = 1; id <= NKI_PHYS_REGS; id++) {
		if (!k->reg[id].used) {
			k->reg[id] = (struct nki_reg_info){ .used = true, .loop = k->loop };
			return (struct nki_reg){ id };
		}
	}
	nki_fail(k, loc, "no register left; allowed: %d", NKI_PHYS_REGS);
	return (struct nki_reg){ 0 };
}

static struct nki_regop *new_regop(struct nki_kernel *k, struct nki_loc loc, enum neuron_opcode op,
				   struct nki_reg dst)
{
	struct nki_regop *r;
	unsigned int debug_id;

	if (!nki_ok(k) || !nki_reg_ok(k, loc, dst))
		return NULL;
	if (k->reg[dst.id].counter) {
		nki_fail(k, loc, "a loop's register cannot be written");
		return NULL;
	}
	r = nki_zalloc(k, sizeof(*r));
	if (!r)
		return NULL;
	debug_id = nki_debug_id(k, loc);
	r->dst = dst.id - 1;
	r->w.opcode = op;
	r->w.words = 1;
	r->w.debug_id = htole32(debug_id);
	r->w.aux = htole32(r->dst);
	for (unsigned int i = 0; i < 3; i++) {
		r->w.ap[i].offset_reg = NEURON_REG_NONE;
		r->w.ap[i].count_reg = NEURON_REG_NONE;
	}
	for (unsigned int e = 0; e < NKI_ENGINES; e++)
		r->point[e] = (struct nki_point){ .debug_id = debug_id, .engine = e, .queue = NKI_QUEUE_NONE };
	return r;
}

static void add_regop(struct nki_kernel *k, struct nki_regop *r)
{
	struct nki_item *item = nki_add_item(k, nki_current_seq(k), NKI_ITEM_REGOP);

	if (item)
		item->regop = r;
}

static bool put_int(struct nki_kernel *k, struct nki_loc loc, struct nki_regop *r, unsigned int slot,
		    struct nki_scalar s)
{
	struct neuron_imm *imm = &r->w.imm[slot];

	if (s.kind == NEURON_IMM_I32) {
		*imm = (struct neuron_imm){ .kind = NEURON_IMM_I32, .dtype = NEURON_DTYPE_INT32,
					    .value = htole32(s.i) };
		return true;
	}
	if (s.kind != NEURON_IMM_REG) {
		nki_fail(k, loc, "operand %u must be nki_i32() or nki_regval()", slot);
		return false;
	}
	if (!nki_reg_ok(k, loc, s.reg))
		return false;
	*imm = (struct neuron_imm){ .kind = NEURON_IMM_REG, .dtype = NEURON_DTYPE_INT32,
				    .value = htole32(s.reg.id - 1) };
	r->regs |= 1ull << (s.reg.id - 1);
	return true;
}

void nki_register_move_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg,
			struct nki_scalar value)
{
	struct nki_regop *r = new_regop(k, loc, NEURON_OP_REG_MOVE, reg);

	if (r && put_int(k, loc, r, 0, value))
		add_regop(k, r);
}

static bool reg_alu_ok(enum nki_op op)
{
	switch (op) {
	case NKI_BYPASS:
	case NKI_POWER:
	case NKI_SQUARE:
	case NKI_RELU:
	case NKI_RSQRT:
	case NKI_RECIPROCAL:
	case NKI_ABS:
	case NKI_INVERT:
		return false;
	default:
		return op < 0x100;
	}
}

void nki_register_alu_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg, enum nki_op op,
		       struct nki_scalar a, struct nki_scalar b)
{
	struct nki_regop *r = new_regop(k, loc, NEURON_OP_REG_ALU, reg);

	if (!r)
		return;
	if (!reg_alu_ok(op)) {
		nki_fail(k, loc, "operator 0x%x; allowed: two-operand ALU operators without power", op);
		return;
	}
	r->w.op[0] = op;
	if (put_int(k, loc, r, 0, a) && put_int(k, loc, r, 1, b))
		add_regop(k, r);
}

static bool one_word(struct nki_kernel *k, struct nki_loc loc, struct nki_view v)
{
	bool hbm = v.buf->space == NEURON_SPACE_HBM;
	uint64_t n = hbm ? v.num[0] * nki_free_elements(v) : nki_free_elements(v);

	if (v.buf->space == NEURON_SPACE_PSUM || (!hbm && v.num[0] != 1) || n != 1 ||
	    nki_dtype_size(v.dtype) != 4 || v.count_reg.id || v.index || v.indirect) {
		nki_fail(k, loc, "the view must be one 32-bit element of SBUF or HBM");
		return false;
	}
	return true;
}

/* READ: the operand is in a second word. */
static bool put_hbm_source(struct nki_kernel *k, struct nki_loc loc, struct nki_regop *r,
			   struct nki_insn *tmp, struct nki_view v)
{
	if (!nki_put_hbm_word(k, loc, tmp, v, false))
		return false;
	r->w.words = 2;
	r->more = tmp->more;
	r->regs |= tmp->regs;
	r->has_access = tmp->accesses;
	if (tmp->accesses)
		r->access = tmp->access[0];
	return true;
}

void nki_register_load_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg,
			struct nki_view v)
{
	struct nki_insn tmp = { .w.words = 1 };
	struct nki_regop *r;
	bool hbm;

	if (!nki_ok(k) || !nki_live(k, loc, "the source", v) || !one_word(k, loc, v))
		return;
	hbm = v.buf->space == NEURON_SPACE_HBM;
	if (hbm && !nki_find_row(NEURON_OP_READ).engines) {
		nki_fail(k, loc, "the instruction set has no opcode 0x%02x", NEURON_OP_READ);
		return;
	}
	r = new_regop(k, loc, hbm ? NEURON_OP_READ : NEURON_OP_TENSOR_LOAD, reg);
	if (!r)
		return;
	if (hbm) {
		if (put_hbm_source(k, loc, r, &tmp, v))
			add_regop(k, r);
		return;
	}
	if (!nki_put_ap(k, loc, "the source", v, 0, &r->w.ap[1], NULL, true) ||
	    !nki_put_fix(k, loc, &tmp, v, &r->w.ap[1].offset_reg))
		return;
	nki_view_access(v, false, &r->access);
	r->has_access = true;
	r->has_fix = tmp.fixes;
	r->fix = tmp.fix[0];
	r->regs |= tmp.regs;
	add_regop(k, r);
}

void nki_register_store_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			 struct nki_reg reg, const struct nki_engine_args *args)
{
	struct nki_insn *insn;
	bool hbm;

	if (!nki_ok(k) || !nki_live(k, loc, "the destination", v) || !one_word(k, loc, v))
		return;
	hbm = v.buf->space == NEURON_SPACE_HBM;
	insn = nki_begin(k, loc, hbm ? NEURON_OP_WRITE : NEURON_OP_TENSOR_STORE, args->engine, NKI_ENGINE_SYNC);
	if (!insn)
		return;
	if (hbm) {
		insn->w.words = 1;
		insn->more = NULL;
		if (!nki_put_hbm_word(k, loc, insn, v, true))
			return;
	} else if (!nki_put_view(k, loc, insn, 0, "the destination", v, 0)) {
		return;
	}
	if (nki_put_scalar(k, loc, insn, 0, "the register", nki_reg_as(reg, v.dtype), 1))
		nki_emit(k, insn);
}

static struct nki_loop *new_loop(struct nki_kernel *k, struct nki_loc loc)
{
	struct nki_loop *loop = nki_zalloc(k, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->parent = k->loop;
	loop->depth = k->loop ? k->loop->depth + 1 : 1;
	loop->number = ++k->loops;
	loop->debug_id = nki_debug_id(k, loc);
	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		struct nki_point p = { .debug_id = loop->debug_id, .engine = e, .queue = NKI_QUEUE_NONE };

		loop->pre[e] = p;
		loop->post[e] = p;
	}
	return loop;
}

static void set_range(struct nki_kernel *k, struct nki_reg reg, int32_t lo, struct nki_scalar hi,
		      int32_t step)
{
	struct nki_reg_info *info = &k->reg[reg.id];

	info->counter = true;
	if (hi.kind != NEURON_IMM_I32)
		return;
	info->ranged = true;
	info->lo = lo;
	info->hi = lo + ((int64_t)hi.i - 1 - lo) / step * step;
}

struct nki_reg nki_for_begin_(struct nki_kernel *k, struct nki_loc loc, int32_t lo,
			      struct nki_scalar hi, int32_t step)
{
	struct nki_reg none = { 0 }, reg;
	struct nki_item *item;
	struct nki_loop *loop;

	if (!nki_ok(k))
		return none;
	if (step < 1 || (hi.kind == NEURON_IMM_I32 && (int64_t)hi.i + step > INT32_MAX)) {
		nki_fail(k, loc, "step %d to %d; allowed: a positive step, and an end that fits 31 bits",
			 step, hi.i);
		return none;
	}
	if (hi.kind == NEURON_IMM_REG && !nki_reg_ok(k, loc, hi.reg))
		return none;
	if (hi.kind == NEURON_IMM_I32 && lo >= hi.i)
		return none;	/* no iteration: nothing to record */
	reg = nki_register_alloc_(k, loc);
	loop = reg.id ? new_loop(k, loc) : NULL;
	item = loop ? nki_add_item(k, nki_current_seq(k), NKI_ITEM_LOOP) : NULL;
	if (!item)
		return none;
	item->loop = loop;
	loop->reg = reg.id - 1;
	loop->lo = lo;
	loop->hi = hi;
	loop->step = step;
	if (hi.kind == NEURON_IMM_REG)
		loop->hi_regs = 1ull << (hi.reg.id - 1);
	set_range(k, reg, lo, hi, step);
	k->loop = loop;
	nki_forget_weights(k);
	return reg;
}

/* The body is over, and so are its registers. */
static void leave(struct nki_kernel *k)
{
	for (unsigned int id = 1; id <= NKI_PHYS_REGS; id++) {
		if (k->reg[id].used && k->reg[id].loop == k->loop)
			k->reg[id].used = false;
	}
	k->loop = k->loop->parent;
	nki_forget_weights(k);
}

struct nki_reg nki_for_end_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg i)
{
	struct nki_reg none = { 0 };

	if (!k || !k->loop)
		return none;
	if (k->loop->conditional || k->loop->reg != i.id - 1) {
		nki_fail(k, loc, "an inner loop was left with break, goto or return");
		return none;
	}
	leave(k);
	k->reg[i.id] = (struct nki_reg_info){ 0 };
	return none;
}

/* ------------------------------------------------------------------------ */
/* while								    */

bool nki_while_begin_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg)
{
	struct nki_item *item;
	struct nki_loop *loop;

	if (!nki_ok(k) || !nki_reg_ok(k, loc, reg))
		return false;
	loop = new_loop(k, loc);
	item = loop ? nki_add_item(k, nki_current_seq(k), NKI_ITEM_LOOP) : NULL;
	if (!item)
		return false;
	item->loop = loop;
	loop->conditional = true;
	loop->hi = nki_regval(reg);
	loop->hi_regs = 1ull << (reg.id - 1);
	loop->reg = NKI_PHYS_REGS;
	k->loop = loop;
	nki_forget_weights(k);
	return true;
}

bool nki_while_end_(struct nki_kernel *k, struct nki_loc loc)
{
	if (!k || !k->loop)
		return false;
	if (!k->loop->conditional)
		nki_fail(k, loc, "an inner loop was left with break, goto or return");
	else
		leave(k);
	return false;
}

/* ------------------------------------------------------------------------ */
/* Unrolled loops and rings						    */

struct nki_unroll nki_unroll_begin_(struct nki_kernel *k, struct nki_loc loc, int32_t lo, int32_t hi,
				    int32_t step, unsigned int n)
{
	struct nki_unroll u = { .step = step, .n = n };

	if (!nki_ok(k))
		return u;
	if (step < 1 || n < 1 || n > 64 || lo >= hi || ((int64_t)hi - lo) % ((int64_t)step * n) ||
	    (int64_t)step * n > INT32_MAX) {
		nki_fail(k, loc, "%d to %d, step %d, %u times; allowed: 1 to 64 times, and a multiple of n * step from lo to hi",
			 lo, hi, step, n);
		return u;
	}
	u.base = nki_for_begin_(k, loc, lo, nki_i32(hi), step * n);
	return u;
}

/* The register of the next copy of the body; none: all are recorded. */
struct nki_reg nki_unroll_step_(struct nki_kernel *k, struct nki_loc loc, struct nki_unroll *u)
{
	int32_t add = u->step * (int32_t)u->next;
	struct nki_reg reg = u->base;

	if (!nki_ok(k) || u->next == u->n)
		return (struct nki_reg){ 0 };
	if (u->next++) {
		reg = nki_register_alloc_(k, loc);
		nki_register_alu_(k, loc, reg, NKI_ADD, nki_regval(u->base), nki_i32(add));
	}
	if (nki_ok(k) && reg.id != u->base.id) {
		k->reg[reg.id].ranged = true;
		k->reg[reg.id].lo = k->reg[u->base.id].lo + add;
		k->reg[reg.id].hi = k->reg[u->base.id].hi + add;
	}
	return nki_ok(k) ? reg : (struct nki_reg){ 0 };
}

struct nki_unroll nki_unroll_end_(struct nki_kernel *k, struct nki_loc loc, struct nki_unroll u)
{
	u.base = nki_for_end_(k, loc, u.base);
	return u;
}

struct nki_ring nki_ring_(struct nki_kernel *k, struct nki_loc loc, unsigned int n,
			  enum neuron_space space, enum nki_dtype dtype, const uint32_t *num,
			  size_t dims)
{
	struct nki_ring ring = { .n = n };

	if (nki_ok(k) && (!n || n > NKI_RING_MAX)) {
		nki_fail(k, loc, "%u tiles; allowed: 1 to %d", n, NKI_RING_MAX);
		ring.n = 1;
	}
	for (unsigned int i = 0; i < ring.n; i++)
		ring.tile[i] = nki_tile_(k, loc, space, dtype, num, dims);
	return ring;
}

struct nki_view nki_ring_next(struct nki_ring *ring)
{
	struct nki_view v = ring->tile[ring->next];

	ring->next = (ring->next + 1) % (ring->n ? ring->n : 1);
	return v;
}

void nki_ring_free_(struct nki_kernel *k, struct nki_loc loc, struct nki_ring ring)
{
	for (unsigned int i = 0; i < ring.n; i++)
		nki_free_(k, loc, ring.tile[i]);
}
