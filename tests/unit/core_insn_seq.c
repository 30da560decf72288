// SPDX-License-Identifier: MIT
/* The sequencer. */
#include "core_insn.h"

void row_NOP(meta *_metadata)
{
	struct neuron_insn w = insn_new(NEURON_OP_NOP);

	start(3);
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

	start(3);
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

	start(3);
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
	start(3);
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
	start(3);
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

	start(3);
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

	start(3);
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

	start(3);
	w.ap[0] = ap_row(SBUF, F32, 0, 1, 4, 1);
	w.imm[0] = imm_f32(1.5f);
	prog_add(p, 0, SP, &w);
	run(_metadata);
	fetch(got, F32, 0, 1, 4, 1);
	EXPECT_EQ(got[0][0], 1.5);
}
