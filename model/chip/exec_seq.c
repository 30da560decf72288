// SPDX-License-Identifier: MIT
/*
 * What the sequencers do themselves: registers, branches, semaphores other than by
 * wait and update, single words of HBM, notifications, debug prints.
 */
#include <endian.h>
#include <string.h>

#include "check.h"
#include "exec_state.h"
#include "neuron/debug.h"

/* --- registers ---------------------------------------------------------------------- */

static int32_t reg_alu(unsigned int op, uint32_t a, uint32_t b)
{
	int32_t sa = a, sb = b;

	switch (op) {
	case NEURON_ALU_BYPASS:		return a;
	case NEURON_ALU_ADD:		return a + b;
	case NEURON_ALU_SUBTRACT:	return a - b;
	case NEURON_ALU_MULTIPLY:	return a * b;
	case NEURON_ALU_MAXIMUM:	return sa > sb ? a : b;
	case NEURON_ALU_MINIMUM:	return sa < sb ? a : b;
	case NEURON_ALU_EQUAL:		return a == b;
	case NEURON_ALU_NOT_EQUAL:	return a != b;
	case NEURON_ALU_GREATER_EQUAL:	return sa >= sb;
	case NEURON_ALU_GREATER:	return sa > sb;
	case NEURON_ALU_LESS_EQUAL:	return sa <= sb;
	case NEURON_ALU_LESS:		return sa < sb;
	case NEURON_ALU_LOGICAL_AND:	return a && b;
	case NEURON_ALU_LOGICAL_OR:	return a || b;
	case NEURON_ALU_LOGICAL_XOR:	return !a != !b;
	case NEURON_ALU_ABS:		return sa < 0 ? 0 - a : a;
	case NEURON_ALU_SQUARE:		return a * a;
	case NEURON_ALU_RELU:		return sa < 0 ? 0 : a;
	default:			return num_bits_op(op, a, b, 4);
	}
}

/* Operators that 32-bit integer registers have. */
static bool reg_alu_valid(unsigned int op)
{
	return num_alu(op)->name && op != NEURON_ALU_POWER && op != NEURON_ALU_RSQRT &&
	       op != NEURON_ALU_RECIPROCAL;
}

static bool is_compare(unsigned int op)
{
	return op >= NEURON_ALU_EQUAL && op <= NEURON_ALU_LESS;
}

static bool imm_valid(struct stream *s, unsigned int i)
{
	const struct neuron_imm *imm = &s->cur->w.imm[i];

	if (imm->kind == NEURON_IMM_NONE || imm->kind == NEURON_IMM_F32 ||
	    imm->kind == NEURON_IMM_I32)
		return true;
	if (imm->kind == NEURON_IMM_REG && imm->value < NEURON_REGS)
		return true;
	return exec_bad(s, 4 + i, imm->kind == NEURON_IMM_REG ? imm->value : imm->kind,
			imm->kind == NEURON_IMM_REG ? NEURON_REGS - 1 : NEURON_IMM_REG);
}

/*
 * A register that was loaded from memory: in a job that skips arithmetic its value is
 * not known, so nothing that decides what runs may depend on it.
 */
bool seq_reg_known(struct stream *s, unsigned int reg)
{
	if (!(s->reg_unknown >> (reg % NEURON_REGS) & 1))
		return true;
	exec_fault(s->x, s, NEURON_FAULT_DATA_DEPENDENT)->index = htole32(reg);
	return false;
}

static bool imm_unknown(const struct stream *s, unsigned int i)
{
	const struct neuron_imm *imm = &s->cur->w.imm[i];

	return imm->kind == NEURON_IMM_REG && s->reg_unknown >> (imm->value % NEURON_REGS) & 1;
}

static void reg_set(struct stream *s, unsigned int reg, uint32_t value, bool unknown)
{
	s->reg[reg] = unknown ? 0 : value;
	s->reg_unknown &= ~(1ull << reg);
	s->reg_unknown |= (uint64_t)unknown << reg;
}

void seq_reg_load(struct stream *s, unsigned int reg, uint32_t value)
{
	reg_set(s, reg, value, s->x->timing_only);
}

/* --- checks --------------------------------------------------------------------------- */

/* An immediate that must be below @limit; a register's value counts. */
static bool imm_below(struct stream *s, unsigned int i, uint64_t limit)
{
	uint32_t value = insn_imm(s, &s->cur->w.imm[i]);

	return value < limit || exec_bad(s, 4 + i, value, limit - 1);
}

static bool known_operands(struct stream *s)
{
	unsigned int i;

	for (i = 0; i < s->cur->row->imms; i++)
		if (imm_unknown(s, i) && !seq_reg_known(s, s->cur->w.imm[i].value))
			return false;
	return true;
}

static bool range_valid(struct stream *s)
{
	uint32_t first = insn_imm(s, &s->cur->w.imm[0]), count = insn_imm(s, &s->cur->w.imm[1]);

	if (first >= NEURON_SEMAPHORES)
		return exec_bad(s, 4, first, NEURON_SEMAPHORES - 1);
	if (!count || count > NEURON_SEMAPHORES - first)
		return exec_bad(s, 5, count, NEURON_SEMAPHORES - first);
	return true;
}

static bool remote_valid(struct stream *s)
{
	if (s->cur->w.aux >= s->x->cores)
		return exec_bad(s, 7, s->cur->w.aux, s->x->cores - 1);
	return imm_below(s, 0, NEURON_SEMAPHORES) && imm_below(s, 1, UINT16_MAX + 1ull);
}

bool seq_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	unsigned int i;

	for (i = 0; i < s->cur->row->imms; i++)
		if (!imm_valid(s, i))
			return false;
	switch (w->opcode) {
	case NEURON_OP_REG_ALU:
		if (!reg_alu_valid(w->op[0]))
			return exec_bad(s, 6, w->op[0], NEURON_ALU_RIGHT_SHIFT);
		/* fall through */
	case NEURON_OP_REG_MOVE:
		if (w->aux >= NEURON_REGS)
			return exec_bad(s, 7, w->aux, NEURON_REGS - 1);
		return true;
	case NEURON_OP_COMPARE_BRANCH:
		if (!is_compare(w->op[0]))
			return exec_bad(s, 6, w->op[0], NEURON_ALU_LESS);
		if (w->aux > s->words)
			return exec_bad(s, 7, w->aux, s->words);
		return known_operands(s);
	case NEURON_OP_EVENT_SEMAPHORE_RANGE_CLEAR:
		return known_operands(s) && range_valid(s);
	case NEURON_OP_REMOTE_SEMAPHORE:
		return known_operands(s) && remote_valid(s);
	case NEURON_OP_SET_ROUNDING_MODE:
		return imm_below(s, 0, 2);
	case NEURON_OP_NOTIFY:
		return w->aux < NEURON_NOTIFY_QUEUES ||
		       exec_bad(s, 7, w->aux, NEURON_NOTIFY_QUEUES - 1);
	}
	return true;
}

/* --- effects ---------------------------------------------------------------------------- */

static void range_clear(struct stream *s, uint64_t end)
{
	uint32_t first = insn_imm(s, &s->cur->w.imm[0]), count = insn_imm(s, &s->cur->w.imm[1]), i;
	struct neuron_update u = { .op = NEURON_UPDATE_SEM_WRITE };

	for (i = first; i < first + count; i++) {
		u.sem = i;
		sync_send_from_stream(s, s->core, &u, end);
	}
}

static void remote_semaphore(struct stream *s, uint64_t end)
{
	struct neuron_update u = {
		.sem = insn_imm(s, &s->cur->w.imm[0]), .op = NEURON_UPDATE_SEM_ADD,
		.value = insn_imm(s, &s->cur->w.imm[1]),
	};

	sync_send_from_stream(s, s->cur->w.aux, &u,
			      end + exec_latency(s->x, s->x->timing->remote_sem));
}

static void notify(struct stream *s, uint64_t end)
{
	struct chip_job *job = s->x->job;
	struct chip_notify n = {
		.core = s->core, .engine = s->engine, .queue = s->cur->w.aux,
		.value = insn_imm(s, &s->cur->w.imm[0]), .pc = s->pc,
		.debug_id = s->cur->w.debug_id, .ticks = end,
	};

	if (job->notify)
		job->notify(job, &n);
}

uint32_t seq_run(struct stream *s, uint64_t end)
{
	const struct neuron_insn *w = &s->cur->w;
	uint32_t next = s->pc + w->words;
	uint32_t a = insn_imm(s, &w->imm[0]), b = insn_imm(s, &w->imm[1]);

	switch (w->opcode) {
	case NEURON_OP_HALT:
		return s->words;
	case NEURON_OP_REG_MOVE:
		reg_set(s, w->aux, a, imm_unknown(s, 0));
		break;
	case NEURON_OP_REG_ALU:
		reg_set(s, w->aux, reg_alu(w->op[0], a, b), imm_unknown(s, 0) || imm_unknown(s, 1));
		break;
	case NEURON_OP_COMPARE_BRANCH:
		return reg_alu(w->op[0], a, b) ? w->aux : next;
	case NEURON_OP_EVENT_SEMAPHORE_RANGE_CLEAR:
		range_clear(s, end);
		break;
	case NEURON_OP_REMOTE_SEMAPHORE:
		remote_semaphore(s, end);
		break;
	case NEURON_OP_SET_ROUNDING_MODE:
		stream_core(s)->stochastic = a;
		break;
	case NEURON_OP_NOTIFY:
		notify(s, end);
		break;
	}
	return next;
}

/* --- single words of HBM ---------------------------------------------------------------- */

bool hbmreg_prepare(struct stream *s)
{
	bool read = s->cur->w.opcode == NEURON_OP_READ;
	struct dma_side *side = &s->dma_dst;

	if (read && s->cur->w.aux >= NEURON_REGS)
		return exec_bad(s, 7, s->cur->w.aux, NEURON_REGS - 1);
	if (!read && !imm_valid(s, 0))
		return false;
	if (!dma_hbm_side(s, 0, read ? NEURON_ARG_READ : NEURON_ARG_WRITE, side))
		return false;
	if (side->elements != 1 || side->bytes != 4 || side->hbm.indexed)
		return exec_bad(s, 0, side->elements * side->bytes, 4);
	return true;
}

bool hbmreg_run(struct stream *s)
{
	uint64_t va = s->dma_dst.hbm.va + (uint64_t)s->dma_dst.hbm.offset, bad = va;
	uint32_t bits = htole32(insn_imm(s, &s->cur->w.imm[0]));
	bool read = s->cur->w.opcode == NEURON_OP_READ;
	struct neuron_fault_record *f;
	enum neuron_fault code = NEURON_FAULT_NONE;

	if (s->x->timing_only)
		bits = 0;
	else if (read)
		code = chip_vm_read(s->x->job->vm, va, &bits, 4, &bad);
	else
		code = chip_vm_write(s->x->job->vm, va, &bits, 4, &bad);
	if (code != NEURON_FAULT_NONE) {
		f = exec_fault(s->x, s, code);
		f->space = NEURON_SPACE_HBM;
		f->index = htole32(s->dma_dst.hbm.arg);
		f->addr = htole64(bad);
		f->size = htole64(4);
		return false;
	}
	if (read)
		seq_reg_load(s, s->cur->w.aux, le32toh(bits));
	return true;
}

/* --- debug prints ------------------------------------------------------------------------ */

bool debug_prepare(struct stream *s)
{
	struct neuron_fault_record *f;
	const struct neuron_arg *arg;

	if (s->cur->w.aux >= s->x->args)
		return exec_bad(s, 7, s->cur->w.aux, s->x->args);
	arg = &s->x->arg[s->cur->w.aux];
	if ((arg->access & (NEURON_ARG_READ | NEURON_ARG_WRITE)) !=
	    (NEURON_ARG_READ | NEURON_ARG_WRITE)) {
		f = exec_fault(s->x, s, NEURON_FAULT_ARG_ACCESS);
		f->space = NEURON_SPACE_HBM;
		f->index = htole32(s->cur->w.aux);
		return false;
	}
	if (arg->size < sizeof(struct neuron_debug_header))
		return exec_bad(s, 7, arg->size, sizeof(struct neuron_debug_header));
	return true;
}

static bool debug_vm(struct stream *s, uint64_t va, void *buf, size_t len, bool write)
{
	uint64_t bad = va;
	enum neuron_fault code = write ? chip_vm_write(s->x->job->vm, va, buf, len, &bad) :
					 chip_vm_read(s->x->job->vm, va, buf, len, &bad);

	if (code == NEURON_FAULT_NONE)
		return true;
	exec_fault(s->x, s, code)->addr = htole64(bad);
	return false;
}

static bool debug_data(struct stream *s, uint64_t va)
{
	const struct opnd *op = &s->op[1];
	size_t row = (size_t)op->n * op->bytes;
	unsigned int p;

	for (p = 0; p < op->parts; p++) {
		const uint8_t *from = row_gather(op, p, s->x->row[0]);

		if (!debug_vm(s, va + p * row, (void *)(uintptr_t)from, row, true))
			return false;
	}
	return true;
}

void debug_run(struct stream *s)
{
	const struct neuron_arg *arg = &s->x->arg[s->cur->w.aux];
	const struct opnd *op = &s->op[1];
	struct neuron_debug_header h;
	struct neuron_debug_entry e = {
		.prefix = htole32(insn_imm(s, &s->cur->w.imm[0])), .core = s->core,
		.engine = s->engine, .dtype = op->dtype, .parts = op->parts, .n = htole32(op->n),
	};
	uint64_t at, size = sizeof(e) + (uint64_t)op->n * op->bytes * op->parts;

	size = (size + NEURON_DEBUG_ALIGN - 1) / NEURON_DEBUG_ALIGN * NEURON_DEBUG_ALIGN;
	e.size = htole32(size);
	if (!debug_vm(s, arg->va, &h, sizeof(h), false))
		return;
	at = le64toh(h.offset);
	if (at < sizeof(h))
		at = sizeof(h);
	if (at > arg->size || size > arg->size - at) {
		h.dropped = htole64(le64toh(h.dropped) + 1);
		debug_vm(s, arg->va, &h, sizeof(h), true);
		return;
	}
	h.offset = htole64(at + size);
	if (debug_vm(s, arg->va + at, &e, sizeof(e), true) &&
	    debug_data(s, arg->va + at + sizeof(e)))
		debug_vm(s, arg->va, &h, sizeof(h), true);
}
