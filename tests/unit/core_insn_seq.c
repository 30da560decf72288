// SPDX-License-Identifier: MIT
/* The sequencer. */
#include "core_insn.h"
#include "neuron/debug.h"
#include "neuron/trace.h"

void row_NOP(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_NOP);

	start_since(3);
	prog_add(p, 0, SP, &w);
	run(_metadata);
	EXPECT_EQ(p->job.counters[0].insns, 1);
}

/* What a stream stores, seen from outside. */
void store_reg(unsigned int engine, unsigned int reg, uint32_t offset)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_STORE);

	w.ap[0] = ap_row(SBUF, I32, 0, 1, offset, 1);
	w.imm[0] = imm_reg(reg, I32);
	prog_add(p, 0, engine, &w);
}

int32_t stored(uint32_t offset)
{
	int32_t v;

	sbuf_get(p->core[0], 0, offset, &v, 4);
	return v;
}

void move_reg(unsigned int engine, unsigned int reg, int32_t value)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_MOVE);

	w.imm[0] = imm_i32(value);
	w.aux = htole32(reg);
	prog_add(p, 0, engine, &w);
}

void row_HALT(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_HALT);

	start_since(3);
	move_reg(ACT, 1, 5);
	store_reg(ACT, 1, 0);
	prog_add(p, 0, ACT, &w);
	move_reg(ACT, 1, 6);
	store_reg(ACT, 1, 0);
	run(_metadata);
	EXPECT_EQ(stored(0), 5);
}

void row_EVENT_SEMAPHORE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_EVENT_SEMAPHORE);

	start_since(3);
	w.update = update_add(7, 3);
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 7, NEURON_UPDATE_SEM_SUB, htole16(1) };
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 8, NEURON_UPDATE_SEM_WRITE, htole16(9) };
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 3, NEURON_UPDATE_EVENT_SET, 0 };
	prog_add(p, 0, SP, &w);
	w.update = (struct neuron_update){ 0 };
	w.wait[0] = (struct neuron_wait){ 7, NEURON_WAIT_EQ, htole16(2) };
	w.wait[1] = (struct neuron_wait){ 3, NEURON_WAIT_EVENT_CLEAR, 0 };
	prog_add(p, 0, ACT, &w);
	w.wait[0] = wait_sub(8, 4);
	w.wait[1] = wait_sub(8, 5);
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 7), 2);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 8), 0);
	EXPECT_EQ(chip_core_event_get(p->core[0], 3), 0);
}

void row_REG_MOVE(meta *_metadata)
{
	start_since(3);
	move_reg(DVE, 63, -7);
	store_reg(DVE, 63, 16);
	run(_metadata);
	EXPECT_EQ(stored(16), -7);
	prog_reset(p);
	move_reg(DVE, 64, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 63);
}

static int32_t alu(meta *_metadata, unsigned int op, int32_t x, int32_t y)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_ALU);

	prog_reset(p);
	move_reg(POOL, 2, x);
	w.op[0] = op;
	w.imm[0] = imm_reg(2, I32);
	w.imm[1] = imm_i32(y);
	w.aux = htole32(3);
	prog_add(p, 0, POOL, &w);
	store_reg(POOL, 3, 0);
	run(_metadata);
	return stored(0);
}

void row_REG_ALU(meta *_metadata)
{
	start_since(3);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_ADD, INT32_MAX, 1), INT32_MIN);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_SUBTRACT, 3, 10), -7);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_MULTIPLY, -3, 1000), -3000);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_MAXIMUM, -3, 2), 2);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_MINIMUM, -3, 2), -3);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_LESS, -3, 2), 1);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_GREATER_EQUAL, -3, 2), 0);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_EQUAL, 2, 2), 1);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_LEFT_SHIFT, 3, 4), 48);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_RIGHT_SHIFT, -1, 28), 15);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_BITWISE_XOR, 0xff, 0x0f), 0xf0);
	EXPECT_EQ(alu(_metadata, NEURON_ALU_LOGICAL_AND, 4, 2), 1);
	prog_reset(p);
	struct neuron_insn w = insn_new(NEURON_OP_REG_ALU);

	w.op[0] = NEURON_ALU_POWER;
	prog_add(p, 0, POOL, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_COMPARE_BRANCH(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_ALU);

	start_since(3);
	/* Sum of 1 to 100. */
	move_reg(SP, 0, 0);
	move_reg(SP, 1, 0);
	w.op[0] = NEURON_ALU_ADD;
	w.imm[0] = imm_reg(0, I32);
	w.imm[1] = imm_i32(1);
	prog_add(p, 0, SP, &w);
	w.imm[0] = imm_reg(1, I32);
	w.imm[1] = imm_reg(0, I32);
	w.aux = htole32(1);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_COMPARE_BRANCH);
	w.op[0] = NEURON_ALU_LESS;
	w.imm[0] = imm_reg(0, I32);
	w.imm[1] = imm_i32(100);
	w.aux = htole32(2);
	prog_add(p, 0, SP, &w);
	store_reg(SP, 1, 0);
	run(_metadata);
	EXPECT_EQ(stored(0), 5050);
	/* A target outside the stream. */
	prog_reset(p);
	w.aux = htole32(2);
	prog_add(p, 0, SP, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

void row_TENSOR_LOAD(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_LOAD);
	int32_t v = -123456;

	start_since(3);
	sbuf_put(p->core[0], 5, 64, &v, 4);
	w.ap[1] = ap_row(SBUF, I32, 5, 1, 64, 1);
	w.aux = htole32(9);
	prog_add(p, 0, ACT, &w);
	store_reg(ACT, 9, 0);
	run(_metadata);
	EXPECT_EQ(stored(0), v);
}

void row_TENSOR_STORE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_TENSOR_STORE);

	start_since(3);
	w.ap[0] = ap_row(SBUF, F32, 0, 1, 4, 1);
	w.imm[0] = imm_f32(1.5f);
	prog_add(p, 0, SP, &w);
	run(_metadata);
	fetch(got, F32, 0, 1, 4, 1);
	EXPECT_EQ(got[0][0], 1.5);
}

/* --- semaphores, notifications, HBM, prints --------------------------------------------- */

/* DRAIN starts when DVE's write is visible; a NOP does not wait for it. */
static uint64_t start_after_memset(unsigned int opcode)
{
	const struct neuron_trace_header *h;
	const struct neuron_trace_record *r;
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	uint64_t end = 0, i;

	start_since(3);
	p->trace_va = VM_BASE + (48ull << 20);
	p->trace_size = 1 << 20;
	w.ap[0] = row(F32, 128, A, 960);
	w.imm[0] = imm_f32(1);
	prog_add(p, 0, DVE, &w);
	w = insn_new(opcode);
	prog_add(p, 0, DVE, &w);
	if (prog_run(p))
		return 0;
	h = vm_at(p->vm, p->trace_va);
	r = (const struct neuron_trace_record *)(h + 1);
	for (i = 0; i < le64toh(h->records); i++) {
		if (r[i].opcode == NEURON_OP_MEMSET)
			end = le64toh(r[i].end);
		if (r[i].opcode == opcode)
			return le64toh(r[i].start) < end ? 1 : 2 + le64toh(r[i].start) - end;
	}
	return 0;
}

void row_DRAIN(meta *_metadata)
{
	EXPECT_EQ(start_after_memset(NEURON_OP_NOP), 1);
	EXPECT_EQ(start_after_memset(NEURON_OP_DRAIN), 2);
}

void row_EVENT_SEMAPHORE_RANGE_CLEAR(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	unsigned int i;

	start_since(3);
	for (i = 10; i < 16; i++) {
		w.update = update_add(i, i);
		prog_add(p, 0, SP, &w);
	}
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE_RANGE_CLEAR);
	w.imm[0] = imm_i32(11);
	w.imm[1] = imm_i32(4);
	prog_add(p, 0, SP, &w);
	/* Wakes who waits for 0. */
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.wait[0] = wait_ge(15, 15);
	w.wait[1] = (struct neuron_wait){ 14, NEURON_WAIT_EQ, 0 };
	w.update = update_add(20, 7);
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	for (i = 10; i < 16; i++)
		EXPECT_EQ(chip_core_sem_get(p->core[0], i), i > 10 && i < 15 ? 0 : i);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 20), 7);
	prog_reset(p);
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE_RANGE_CLEAR);
	w.imm[0] = imm_i32(250);
	w.imm[1] = imm_i32(7);
	prog_add(p, 0, SP, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 6);
}

static struct chip_notify notified[4];
static unsigned int notifications;

static void on_notify(struct chip_job *job, const struct chip_notify *n)
{
	(void)job;
	if (notifications < 4)
		notified[notifications] = *n;
	notifications++;
}

void row_NOTIFY(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_NOTIFY);

	start_since(3);
	notifications = 0;
	p->notify = on_notify;
	w.imm[0] = imm_i32(1234);
	w.aux = htole32(5);
	w.debug_id = htole32(9);
	prog_add(p, 0, SP, &w);
	move_reg(ACT, 3, 77);
	w.imm[0] = imm_reg(3, I32);
	w.aux = htole32(0);
	w.wait[0] = wait_sub(1, 1);
	prog_add(p, 0, ACT, &w);
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.update = update_add(1, 1);
	prog_add(p, 0, SP, &w);
	run(_metadata);
	ASSERT_EQ(notifications, 2);
	EXPECT_EQ(notified[0].value, 1234);
	EXPECT_EQ(notified[0].queue, 5);
	EXPECT_EQ(notified[0].engine, SP);
	EXPECT_EQ(notified[0].debug_id, 9);
	EXPECT_EQ(notified[1].value, 77);
	EXPECT_EQ(notified[1].engine, ACT);
	EXPECT_LT(notified[0].ticks, notified[1].ticks);
	/* Nobody listens. */
	p->notify = NULL;
	run(_metadata);
	prog_reset(p);
	w = insn_new(NEURON_OP_NOTIFY);
	w.aux = htole32(NEURON_NOTIFY_QUEUES);
	prog_add(p, 0, SP, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

/* One 32-bit element of an argument. */
static struct neuron_dma_operand hbm_word(unsigned int arg, uint64_t offset)
{
	struct neuron_dma_operand d = dma_hbm(arg, I32, offset, 1, 1, 4);

	d.dims = 1;
	return d;
}

static void hbmreg_limits(meta *_metadata, unsigned int opcode)
{
	struct neuron_dma_operand d = hbm_word(0, 16);
	struct neuron_insn w = insn_new(opcode);

	start_since(3);
	prog_arg(p, 16, NEURON_ARG_READ | NEURON_ARG_WRITE);
	prog_words(p, 0, SP, &w, &d, 1);
	expect_fault(_metadata, NEURON_FAULT_ARG_BOUNDS);
	prog_reset(p);
	prog_arg(p, 16, opcode == NEURON_OP_READ ? NEURON_ARG_WRITE : NEURON_ARG_READ);
	d = hbm_word(0, 0);
	prog_words(p, 0, SP, &w, &d, 1);
	expect_fault(_metadata, NEURON_FAULT_ARG_ACCESS);
	prog_reset(p);
	prog_arg(p, 16, NEURON_ARG_READ | NEURON_ARG_WRITE);
	d.count[0] = htole32(2);
	prog_words(p, 0, SP, &w, &d, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	prog_reset(p);
	prog_arg(p, 16, NEURON_ARG_READ | NEURON_ARG_WRITE);
	d = hbm_word(0, 0);
	d.space = SBUF;
	prog_words(p, 0, SP, &w, &d, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	/* A page that is missing. */
	prog_reset(p);
	prog_arg(p, 16, NEURON_ARG_READ | NEURON_ARG_WRITE);
	d = hbm_word(0, 0);
	p->vm->hole = le64toh(p->arg[0].va);
	p->vm->hole_size = 16;
	prog_words(p, 0, SP, &w, &d, 1);
	expect_fault(_metadata, NEURON_FAULT_PAGE_NOT_MAPPED);
	EXPECT_EQ(le64toh(p->job.fault.addr), p->vm->hole);
}

void row_WRITE(meta *_metadata)
{
	struct neuron_dma_operand d;
	struct neuron_insn w = insn_new(NEURON_OP_WRITE);
	int32_t *mem;

	start_since(3);
	prog_arg(p, 64, NEURON_ARG_WRITE);
	mem = prog_arg_mem(p, 0);
	memset(mem, 0, 64);
	move_reg(SP, 2, -5);
	w.imm[0] = imm_reg(2, I32);
	d = hbm_word(0, 8);
	prog_words(p, 0, SP, &w, &d, 1);
	/* The address from a register: 2 * -5 * 4 + 56. */
	w.imm[0] = imm_i32(99);
	d = hbm_word(0, 56);
	d.offset_reg = 2;
	d.offset_scale = htole64(8);
	prog_words(p, 0, SP, &w, &d, 1);
	run(_metadata);
	EXPECT_EQ(mem[2], -5);
	EXPECT_EQ(mem[4], 99);
	EXPECT_EQ(mem[3], 0);
	hbmreg_limits(_metadata, NEURON_OP_WRITE);
}

void row_READ(meta *_metadata)
{
	struct neuron_dma_operand d;
	struct neuron_insn w = insn_new(NEURON_OP_READ);
	int32_t *mem;

	start_since(3);
	prog_arg(p, 64, NEURON_ARG_READ);
	mem = prog_arg_mem(p, 0);
	mem[3] = -123456789;
	w.aux = htole32(17);
	d = hbm_word(0, 12);
	prog_words(p, 0, ACT, &w, &d, 1);
	store_reg(ACT, 17, 0);
	run(_metadata);
	EXPECT_EQ(stored(0), -123456789);
	prog_reset(p);
	prog_arg(p, 64, NEURON_ARG_READ);
	w.aux = htole32(64);
	prog_words(p, 0, ACT, &w, &d, 1);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	hbmreg_limits(_metadata, NEURON_OP_READ);
}

/* 1 + 2^-9 lies a quarter of the way between two bf16 values. */
static unsigned int rounded_up(meta *_metadata, int32_t mode, bool job)
{
	struct neuron_insn w = insn_new(NEURON_OP_SET_ROUNDING_MODE);
	unsigned int i, up = 0;
	float v = 1.0f + 0x1p-9f;

	start_since(3);
	p->flags = job ? NEURON_JOB_STOCHASTIC_ROUNDING : 0;
	for (i = 0; i < 1024; i++)
		sbuf_put(p->core[0], i % 128, A + i / 128 * 4, &v, 4);
	w.imm[0] = imm_i32(mode);
	prog_add(p, 0, DVE, &w);
	w = insn_new(NEURON_OP_TENSOR_COPY);
	w.ap[0] = row(BF16, 128, B, 8);
	w.ap[1] = row(F32, 128, A, 8);
	prog_add(p, 0, DVE, &w);
	run(_metadata);
	fetch(got, BF16, 0, 128, B, 8);
	for (i = 0; i < 1024; i++)
		up += got[i % 128][i / 128] > 1;
	return up;
}

void row_SET_ROUNDING_MODE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_SET_ROUNDING_MODE);
	unsigned int up;

	EXPECT_EQ(rounded_up(_metadata, 0, true), 0);
	up = rounded_up(_metadata, 1, false);
	/* 256 expected of 1024; five standard deviations are 69. */
	EXPECT_GT(up, 256 - 69);
	EXPECT_LT(up, 256 + 69);
	start_since(3);
	w.imm[0] = imm_i32(2);
	prog_add(p, 0, DVE, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}

static void pair(unsigned int nc_version)
{
	if (p)
		prog_free(p);
	p = prog_new(nc_version, 2);
}

void row_REMOTE_SEMAPHORE(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_REMOTE_SEMAPHORE);

	pair(3);
	w.imm[0] = imm_i32(40);
	w.imm[1] = imm_i32(3);
	w.aux = htole32(1);
	prog_add(p, 0, SP, &w);
	w.imm[0] = imm_i32(41);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	w.wait[0] = wait_sub(40, 2);
	prog_add(p, 1, ACT, &w);
	run(_metadata);
	EXPECT_EQ(chip_core_sem_get(p->core[1], 40), 1);
	EXPECT_EQ(chip_core_sem_get(p->core[1], 41), 3);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 40), 0);
	/* No such core; not on Trn1. */
	pair(3);
	w = insn_new(NEURON_OP_REMOTE_SEMAPHORE);
	w.aux = htole32(2);
	prog_add(p, 0, SP, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	EXPECT_EQ(le64toh(p->job.fault.value), 1);
	pair(2);
	w.aux = htole32(1);
	prog_add(p, 0, SP, &w);
	expect_fault(_metadata, NEURON_FAULT_ILLEGAL_INSN);
}

void row_DEBUG_PRINT(meta *_metadata)
{
	const struct neuron_debug_header *h;
	const struct neuron_debug_entry *e;
	struct neuron_insn w = insn_new(NEURON_OP_DEBUG_PRINT);
	const uint8_t *mem;
	unsigned int i, k;

	start_since(3);
	prog_arg(p, 16 + 2 * (16 + 4 * 5 * 2 + 8) + 8, NEURON_ARG_READ | NEURON_ARG_WRITE);
	mem = prog_arg_mem(p, 0);
	fill(a, BF16, 32, 4, A, 10, -9, 9);
	w.imm[0] = imm_i32(42);
	w.ap[1] = ap_row(SBUF, BF16, 32, 4, A, 5);
	w.ap[1].step[0] = htole16(2);
	prog_add(p, 0, ACT, &w);
	w.imm[0] = imm_i32(43);
	prog_add(p, 0, ACT, &w);
	/* No room for a third. */
	prog_add(p, 0, ACT, &w);
	run(_metadata);
	h = (const struct neuron_debug_header *)mem;
	EXPECT_EQ(le64toh(h->offset), 16 + 2 * 64);
	EXPECT_EQ(le64toh(h->dropped), 1);
	e = (const struct neuron_debug_entry *)(mem + 16);
	EXPECT_EQ(le32toh(e->size), 64);
	EXPECT_EQ(le32toh(e->prefix), 42);
	EXPECT_EQ(e->engine, ACT);
	EXPECT_EQ(e->dtype, BF16);
	EXPECT_EQ(e->parts, 4);
	EXPECT_EQ(le32toh(e->n), 5);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 5; k++)
			EXPECT_EQ(num_get(BF16, mem + 32 + (i * 5 + k) * 2), a[i][2 * k]);
	e = (const struct neuron_debug_entry *)(mem + 16 + 64);
	EXPECT_EQ(le32toh(e->prefix), 43);
	/* Buffers that are none. */
	start_since(3);
	prog_arg(p, 15, NEURON_ARG_READ | NEURON_ARG_WRITE);
	prog_add(p, 0, ACT, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
	start_since(3);
	prog_arg(p, 64, NEURON_ARG_WRITE);
	prog_add(p, 0, ACT, &w);
	expect_fault(_metadata, NEURON_FAULT_ARG_ACCESS);
	w.aux = htole32(1);
	start_since(3);
	prog_add(p, 0, ACT, &w);
	expect_fault(_metadata, NEURON_FAULT_BAD_OPERAND);
}
