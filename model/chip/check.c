// SPDX-License-Identifier: MIT
/*
 * Strict mode: the checks at each instruction and transfer. What an instruction reads
 * and writes comes from its row of isa.def; an instruction needs code here only when it
 * touches less than its access patterns say.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

/* How faults number operands: Documentation/isa/index.rst. */
#define AP_OPERAND(i)	((i) < 3 ? (i) : 13 + (i))
#define IMM_OPERAND(i)	((i) < 2 ? 4 + (i) : 18 + (i))

static struct check *check_of(struct exec_core *c)
{
	return c->core->check;
}

void check_free(struct check *k)
{
	if (!k)
		return;
	mem_free(k);
	race_free(k);
	hbm_free(k->hbm);
	free(k);
}

static bool begin_core(struct exec_core *c)
{
	struct check *k = check_of(c);

	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return false;
		c->core->check = k;
	}
	memset(k->bus, 0, sizeof(k->bus));
	race_begin(k);
	return mem_begin(c, k);
}

bool check_begin(struct exec *x)
{
	unsigned int c;

	for (c = 0; c < x->cores; c++) {
		if (!begin_core(x->core[c])) {
			exec_fault_at(x, NEURON_FAULT_INTERNAL, c, 0, 0, NULL);
			return false;
		}
	}
	if (!clock_begin(x) || !hbm_begin(x, check_of(x->core[0]))) {
		exec_fault_at(x, NEURON_FAULT_INTERNAL, 0, 0, 0, NULL);
		return false;
	}
	return true;
}

/* --- messages ------------------------------------------------------------------------- */

/* Updates that take or write: others know of them when they know of this number. */
static bool counts(const struct neuron_update *u)
{
	unsigned int op = u->op & NEURON_UPDATE_OP_MASK;

	return op == NEURON_UPDATE_SEM_SUB || op == NEURON_UPDATE_SEM_WRITE;
}

uint32_t check_message(struct stream *s, unsigned int core, const struct neuron_update *u,
		       bool at_read)
{
	unsigned int thread = THREAD(s->core, s->engine);
	struct check_job *j = s->x->check;
	bool seq = s->cur->row->cost == NEURON_COST_SEQ || s->cur->row->cost == NEURON_COST_DRAIN;
	uint32_t clock[2 * THREADS_MAX];

	/* Earlier instructions have completed; this one has, or has read its inputs. */
	memcpy(clock, clock_of(j, thread), 2 * j->threads * sizeof(*clock));
	clock[j->threads + thread] = j->n[thread] - (at_read && !seq && j->n[thread] ? 1 : 0);
	if (counts(u))
		j->n[thread]++;
	clock[thread] = j->n[thread];
	return msg_send(j, core, u, thread, clock);
}

/* --- accesses --------------------------------------------------------------------------- */

/*
 * Who makes an access, for the fault and for order. @core: whose memory; @home: of the
 * instruction.
 */
struct who {
	struct exec *x;
	struct exec_core *core, *home;
	unsigned int thread;
	unsigned int engine;	/* of the stream */
	uint32_t pc;
	const struct insn *insn;
};

static struct neuron_fault_record *who_fault(const struct who *who, enum neuron_fault code,
					     unsigned int index, unsigned int space,
					     unsigned int part, uint64_t byte, uint64_t size)
{
	struct neuron_fault_record *f;

	f = exec_fault_at(who->x, code, who->home->index, who->engine, who->pc, who->insn);
	f->index = htole32(index);
	f->space = space;
	f->partition = part;
	f->addr = htole64(byte);
	f->size = htole64(size);
	return f;
}

static bool touch(const struct who *who, const struct region *at, unsigned int index, bool write)
{
	struct check_job *j = who->x->check;
	struct check *k = check_of(who->core);
	struct access a = {
		.at = *at, .write = write, .thread = who->thread, .clock = j->n[who->thread],
		.debug_id = who->insn->w.debug_id,
	};
	const struct access *other;
	struct neuron_fault_record *f;
	uint32_t byte = 0, size = 0;
	bool nomem = false;

	other = race_access(k, j, clock_of(j, who->thread), &a, &nomem);
	if (nomem) {
		who_fault(who, NEURON_FAULT_INTERNAL, index, at->space, 0, 0, 0);
		return false;
	}
	if (!other)
		return true;
	region_overlap(k, at, &other->at, &byte, &size);
	f = who_fault(who, NEURON_FAULT_DATA_RACE, index, at->space,
		      at->part > other->at.part ? at->part : other->at.part, byte, size);
	f->other_debug_id = htole32(other->debug_id);
	f->other_engine = thread_engine(other->thread);
	return false;
}

static bool reads_region(const struct who *who, const struct region *r, unsigned int index)
{
	unsigned int part;
	uint32_t byte;

	if (!mem_written(check_of(who->core), r, &part, &byte)) {
		who_fault(who, NEURON_FAULT_UNINITIALIZED, index, r->space, part, byte, r->bytes);
		return false;
	}
	return touch(who, r, index, false);
}

typedef bool access_fn(const struct who *who, const struct opnd *op, unsigned int index);

/* Scales of MX values: four partitions of every quadrant. */
static bool scales(const struct who *who, const struct opnd *op, unsigned int index, access_fn *fn)
{
	struct opnd piece = *op;
	unsigned int p;

	for (p = 0; p < op->parts; p += 32) {
		piece.part = op->part + p;
		piece.base = op->base + p * op->stride;
		piece.parts = op->parts - p < 4 ? op->parts - p : 4;
		if (!fn(who, &piece, index))
			return false;
	}
	return true;
}

static bool reads(const struct who *who, const struct opnd *op, unsigned int index);

/* An indirect operand: its index tile is read, then run for run. */
static bool pieces(const struct who *who, const struct opnd *op, unsigned int index, access_fn *fn)
{
	struct opnd_walk walk = { 0 };
	struct opnd piece;

	if (!reads(who, op->index, 24 + index))
		return false;
	while (indirect_piece(op, &walk, &piece))
		if (!fn(who, &piece, index))
			return false;
	return true;
}

static bool reads(const struct who *who, const struct opnd *op, unsigned int index)
{
	struct region r;

	if (op->space == NEURON_SPACE_NONE || !op->n)
		return true;
	if (op->index)
		return pieces(who, op, index, reads);
	region_of(who->core, op, &r);
	return reads_region(who, &r, index);
}

static bool writes(const struct who *who, const struct opnd *op, unsigned int index)
{
	struct region r;

	if (op->space == NEURON_SPACE_NONE || !op->n)
		return true;
	if (op->index)
		return pieces(who, op, index, writes);
	region_of(who->core, op, &r);
	if (!touch(who, &r, index, true))
		return false;
	mem_write(check_of(who->core), &r, who->thread % CHECK_THREADS == NEURON_ENGINE_PE);
	return true;
}

/*
 * Adding to PSUM: published as undefined where no product was written before, and on
 * v2 and v3 also after anything else wrote there.
 */
static bool accumulates(const struct who *who, const struct opnd *op, unsigned int index)
{
	struct check *k = check_of(who->core);
	struct region r;
	unsigned int part;
	uint32_t byte;

	if (op->index)
		return pieces(who, op, index, accumulates);
	region_of(who->core, op, &r);
	if (!mem_written(k, &r, &part, &byte) ||
	    (who->x->job->nc_version < 4 && !mem_by_pe(k, &r, &part, &byte))) {
		who_fault(who, NEURON_FAULT_ACC_UNDEFINED, index, op->space, part, byte, op->bytes);
		return false;
	}
	return true;
}

/* Does the instruction read accumulators, which a reset must have defined before? */
static bool acc_read(const struct neuron_insn *w)
{
	switch (w->opcode) {
	case NEURON_OP_ACT_READ_ACC:
	case NEURON_OP_DVE_READ_ACC:
		return true;
	case NEURON_OP_ACTIVATE:
	case NEURON_OP_ACTIVATE2:
	case NEURON_OP_TENSOR_SCALAR_REDUCE:
	case NEURON_OP_TENSOR_SCALAR_CUMULATIVE:
	case NEURON_OP_SELECT:
	case NEURON_OP_RANGE_SELECT:
	case NEURON_OP_EXPONENTIAL:
		return w->acc == NEURON_ACC_REDUCE;
	}
	return false;
}

/* Accumulators of ACT and DVE: of the lanes that the instruction works with. */
static bool acc_defined(struct stream *s, const struct who *who)
{
	const struct exec_core *c = stream_core(s);
	const uint64_t *defined = s->engine == NEURON_ENGINE_ACT ? c->acc_defined : c->dve_acc_defined;
	unsigned int p;

	if (!acc_read(&s->cur->w))
		return true;
	for (p = s->op[0].part; p < s->op[0].part + s->op[0].parts; p++) {
		if (!(defined[p / 64] >> (p % 64) & 1)) {
			who_fault(who, NEURON_FAULT_ACC_UNDEFINED, 0, NEURON_SPACE_NONE, p, 0, 4);
			return false;
		}
	}
	return true;
}

/* --- memories that two engines may not use at a time ---------------------------------------- */

static bool uses(const struct stream *s, unsigned int space)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < NEURON_INSN_APS; i++)
		any |= s->op[i].space == space && s->op[i].n;
	for (i = 0; i < NEURON_INSN_IMMS; i++)
		any |= s->imm[i].vector && s->imm[i].vec.space == space;
	return any;
}

/*
 * Published for v2: DVE and POOL instructions on SBUF must be serialized, and DVE and
 * ACT instructions on PSUM; the compiler has to, not the hardware. Later generations
 * arbitrate, which costs time.
 */
static bool bus_one(struct stream *s, const struct who *who, unsigned int space, unsigned int other)
{
	struct check_job *j = s->x->check;
	struct check *k = check_of(who->core);
	unsigned int at = space == NEURON_SPACE_PSUM, thread = THREAD(s->core, other);
	const uint32_t *clock = clock_of(j, who->thread);
	struct neuron_fault_record *f;

	if (!uses(s, space))
		return true;
	if (clock[j->threads + thread] < k->bus[at][other].clock) {
		f = who_fault(who, space == NEURON_SPACE_PSUM ? NEURON_FAULT_PSUM_CONFLICT :
							      NEURON_FAULT_SBUF_CONFLICT, 0, space, 0, 0, 0);
		f->other_debug_id = htole32(k->bus[at][other].debug_id);
		f->other_engine = other;
		return false;
	}
	k->bus[at][s->engine].clock = j->n[who->thread];
	k->bus[at][s->engine].debug_id = s->cur->w.debug_id;
	return true;
}

static bool bus_check(struct stream *s, const struct who *who)
{
	if (s->x->job->nc_version > 2)
		return true;
	switch (s->engine) {
	case NEURON_ENGINE_DVE:
		return bus_one(s, who, NEURON_SPACE_SBUF, NEURON_ENGINE_POOL) &&
		       bus_one(s, who, NEURON_SPACE_PSUM, NEURON_ENGINE_ACT);
	case NEURON_ENGINE_POOL:
		return bus_one(s, who, NEURON_SPACE_SBUF, NEURON_ENGINE_DVE);
	case NEURON_ENGINE_ACT:
		return bus_one(s, who, NEURON_SPACE_PSUM, NEURON_ENGINE_DVE);
	default:
		return true;
	}
}

/* --- instructions ------------------------------------------------------------------------- */

/* Byte of the partition where element @i lies. */
static uint32_t element(const struct region *r, uint32_t i)
{
	int32_t at = r->first;
	unsigned int d;

	for (d = 0; d < NEURON_AP_DIMS; d++) {
		at += (int32_t)(i % r->num[d]) * r->step[d];
		i /= r->num[d];
	}
	return at;
}

/* COPY_PREDICATED leaves the other elements as they are, written or not. */
static bool writes_predicated(struct stream *s, const struct who *who)
{
	const struct opnd *op = &s->op[0], *pred = &s->op[2];
	bool reverse = s->cur->w.flags & NEURON_FLAG_REVERSE_PRED;
	struct check *k = check_of(who->core);
	unsigned int p, part;
	struct region d, r;
	uint32_t i, byte;

	if (!op->n)
		return true;
	region_of(who->core, op, &d);
	region_of(who->core, pred, &r);
	if (!touch(who, &d, 0, true))
		return false;
	if (d.space == NEURON_SPACE_PSUM || mem_written(k, &d, &part, &byte)) {
		/* PSUM: whose write was the last must be noted too. */
		if (mem_written(k, &d, &part, &byte)) {
			mem_write(k, &d, false);
			return true;
		}
	}
	for (p = 0; p < op->parts; p++) {
		const uint8_t *row = pred->base + (size_t)p * pred->stride - r.first;

		for (i = 0; i < op->n; i++) {
			uint32_t v = 0, at = element(&d, i);

			memcpy(&v, row + element(&r, i), pred->bytes);
			if (!v == reverse)
				mem_write_bytes(k, d.space, d.part + p, at, at + d.bytes, false);
		}
	}
	return true;
}

/* Partitions of an operand that @touched says are. */
static bool lanes(const struct who *who, const struct opnd *op, unsigned int index, access_fn *fn,
		  const bool *touched)
{
	struct opnd piece = *op;
	unsigned int p = 0, end;

	while (p < op->parts) {
		for (end = p; end < op->parts && touched[end] == touched[p]; end++)
			;
		piece.part = op->part + p;
		piece.base = op->base + p * op->stride;
		piece.parts = end - p;
		if (touched[p] && !fn(who, &piece, index))
			return false;
		p = end;
	}
	return true;
}

/* Which partitions of operand @i are touched; false: all, or it is no matter of lanes. */
static bool some_lanes(const struct stream *s, unsigned int i, bool *touched)
{
	const uint8_t *mask;
	unsigned int p;

	switch (s->cur->w.opcode) {
	case NEURON_OP_STREAM_SHUFFLE:
		mask = s->cur->ext->mask;
		for (p = 0; p < NEURON_PARTITIONS; p++)
			touched[p] = i && i != 1;
		for (p = 0; p < s->op[0].parts; p++) {
			if (!i)
				touched[p] = mask[p % 32] != 255;
			else if (mask[p % 32] < 32)
				touched[p / 32 * 32 + mask[p % 32]] = true;
		}
		return true;
	case NEURON_OP_NONZERO_WITH_COUNT:
		for (p = 0; p < NEURON_PARTITIONS; p++)
			touched[p] = !((s->op[i].part + p) % 16);
		return true;
	}
	return false;
}

static bool operand(struct stream *s, const struct who *who, unsigned int i, access_fn *fn)
{
	bool touched[NEURON_PARTITIONS];

	if (s->op[i].space == NEURON_SPACE_NONE || !s->op[i].n)
		return true;
	if (s->cur->row->types[i] == 'e')
		return scales(who, &s->op[i], AP_OPERAND(i), fn);
	if (some_lanes(s, i, touched))
		return lanes(who, &s->op[i], AP_OPERAND(i), fn, touched);
	return fn(who, &s->op[i], AP_OPERAND(i));
}

static bool check_written(struct stream *s, const struct who *who, unsigned int i)
{
	if (s->cur->w.opcode == NEURON_OP_COPY_PREDICATED && !s->op[0].index && !s->op[2].index)
		return writes_predicated(s, who);
	return operand(s, who, i, writes);
}

bool check_insn(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	const struct neuron_insn *w = &s->cur->w;
	const struct isa_row *row = s->cur->row;
	struct who who = { s->x, c, c, THREAD(s->core, s->engine), s->engine, s->pc, s->cur };
	unsigned int i;

	s->x->check->n[who.thread]++;
	/* A count register of 0: nothing happens. */
	if (row->space[0] && !s->op[0].n)
		return true;
	if (!acc_defined(s, &who) || !bus_check(s, &who))
		return false;
	for (i = 0; i < NEURON_INSN_APS; i++)
		if (!(row->written >> i & 1) && !operand(s, &who, i, reads))
			return false;
	for (i = 0; i < row->imms; i++)
		if (s->imm[i].vector && !reads(&who, &s->imm[i].vec, IMM_OPERAND(i)))
			return false;
	if (row->cost == NEURON_COST_MATMUL && w->flags & NEURON_FLAG_ACCUMULATE &&
	    !accumulates(&who, &s->op[0], 0))
		return false;
	for (i = 0; i < NEURON_INSN_APS; i++)
		if (row->written >> i & 1 && !check_written(s, &who, i))
			return false;
	return true;
}

/* --- transfers -------------------------------------------------------------------------- */

uint32_t check_xfer_issue(struct stream *s)
{
	struct check_job *j = s->x->check;

	/*
	 * The queue knows what the stream knows, but not that the stream's own earlier
	 * instructions have completed: a trigger does not wait for them.
	 */
	return msg_new(j, clock_of(j, THREAD(s->core, s->engine)));
}

/* An operand in HBM against the other transfers of the job. */
static bool touch_hbm(const struct who *who, const struct hbm_opnd *h, bool write)
{
	struct check *k = check_of(who->x->core[0]);
	struct check_job *j = who->x->check;
	struct hbm_access a = {
		.write = write, .thread = who->thread, .clock = j->n[who->thread],
		.debug_id = who->insn->w.debug_id,
	};
	const struct hbm_access *other;
	struct neuron_fault_record *f;
	bool nomem = false;
	uint64_t lo, hi;

	other = hbm_touch(k, j, clock_of(j, who->thread), h, &a, &nomem);
	if (nomem) {
		who_fault(who, NEURON_FAULT_INTERNAL, h->arg, NEURON_SPACE_HBM, 0, 0, 0);
		return false;
	}
	if (!other)
		return true;
	lo = a.at.lo > other->at.lo ? a.at.lo : other->at.lo;
	hi = a.at.hi < other->at.hi ? a.at.hi : other->at.hi;
	f = who_fault(who, NEURON_FAULT_DATA_RACE, h->arg, NEURON_SPACE_HBM, 0, lo, hi - lo);
	f->other_debug_id = htole32(other->debug_id);
	f->other_engine = thread_engine(other->thread);
	return false;
}

static bool reads_hbm(const struct who *who, const struct hbm_opnd *h)
{
	uint64_t at;

	if (!hbm_scratch_read(check_of(who->x->core[0]), h, &at)) {
		who_fault(who, NEURON_FAULT_UNINITIALIZED, h->arg, NEURON_SPACE_HBM, 0, h->va + at,
			  h->bytes);
		return false;
	}
	return touch_hbm(who, h, false);
}

static bool writes_hbm(const struct who *who, const struct hbm_opnd *h)
{
	if (!touch_hbm(who, h, true))
		return false;
	if (hbm_scratch_write(check_of(who->x->core[0]), h))
		return true;
	who_fault(who, NEURON_FAULT_INTERNAL, h->arg, NEURON_SPACE_HBM, 0, 0, 0);
	return false;
}

bool check_hbmreg(struct stream *s)
{
	struct exec_core *c = stream_core(s);
	struct who who = { s->x, c, c, THREAD(s->core, s->engine), s->engine, s->pc, s->cur };

	s->x->check->n[who.thread]++;
	return s->cur->w.opcode == NEURON_OP_WRITE ? writes_hbm(&who, &s->dma_dst.hbm) :
						     reads_hbm(&who, &s->dma_dst.hbm);
}

/* The same transfer at the memory of the core whose operand it is. */
static struct who at_core(const struct who *who, const struct dma_side *side)
{
	struct who there = *who;

	if (side->remote)
		there.core = who->x->core[side->core];
	return there;
}

static bool check_read_side(const struct who *who, const struct dma_side *side, unsigned int index)
{
	struct who there = at_core(who, side);

	return side->is_hbm ? reads_hbm(who, &side->hbm) : reads(&there, &side->sb, index);
}

/* Rows of a gather that are left out leave their partitions as they are. */
static bool writes_gathered(const struct who *who, const struct opnd *op, const struct hbm_opnd *from)
{
	uint64_t rows = (uint64_t)from->index.parts * from->index.n;
	uint64_t each = (uint64_t)op->n * op->parts / rows, i;
	struct region r;
	unsigned int p;

	region_of(who->core, op, &r);
	if (!touch(who, &r, 0, true))
		return false;
	r.parts = 1;
	for (p = 0; p < op->parts; p++) {
		/* A partition counts when all rows that fill it were there. */
		bool all = true;

		for (i = (uint64_t)p * op->n / each; i <= ((uint64_t)(p + 1) * op->n - 1) / each; i++)
			all &= i < rows && hbm_row_taken(from, i);
		r.part = op->part + p;
		if (all)
			mem_write(check_of(who->core), &r, false);
	}
	return true;
}

static bool check_write_side(const struct who *who, const struct xfer *t)
{
	const struct dma_side *side = &t->dst;
	struct who there = at_core(who, side);

	if (side->is_hbm)
		return writes_hbm(who, &side->hbm);
	if (t->src.is_hbm && t->src.hbm.indexed && side->sb.n &&
	    t->insn->w.flags & NEURON_FLAG_OOB_SKIP && t->insn->w.opcode == NEURON_OP_DMA_COPY)
		return writes_gathered(&there, &side->sb, &t->src.hbm);
	return writes(&there, &side->sb, 0);
}

bool check_xfer_start(struct exec *x, struct exec_core *c, struct xfer *t)
{
	unsigned int thread = THREAD(c->index, THREAD_QUEUE(t->queue)), i;
	struct who who = { x, c, c, thread, t->engine, t->pc, t->insn };
	struct check_job *j = x->check;

	msg_take(j, t->msg, clock_of(j, thread));
	t->msg = 0;
	j->n[thread]++;
	for (i = 0; i < t->sources; i++) {
		const struct dma_side *src = xfer_source(t, i);

		if (src->is_hbm && src->hbm.indexed && !reads(&who, &src->hbm.index, i + 1))
			return false;
		if (!check_read_side(&who, src, i + 1))
			return false;
	}
	if (t->dst.is_hbm && t->dst.hbm.indexed && !reads(&who, &t->dst.hbm.index, 0))
		return false;
	/* What is added to is read. */
	if (t->insn->w.flags & NEURON_FLAG_ACCUMULATE && !check_read_side(&who, &t->dst, 0))
		return false;
	return check_write_side(&who, t);
}

uint32_t check_xfer_message(struct exec *x, struct exec_core *c, struct xfer *t)
{
	unsigned int thread = THREAD(c->index, THREAD_QUEUE(t->queue));
	struct check_job *j = x->check;
	uint32_t clock[2 * THREADS_MAX];

	memcpy(clock, clock_of(j, thread), 2 * j->threads * sizeof(*clock));
	clock[j->threads + thread] = j->n[thread];
	if (counts(&t->insn->w.update))
		j->n[thread]++;
	clock[thread] = j->n[thread];
	return msg_send(j, t->sem_core, &t->insn->w.update, thread, clock);
}
