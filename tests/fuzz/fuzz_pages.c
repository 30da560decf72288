// SPDX-License-Identifier: MIT
/*
 * Page tables: tables that point at each other, at themselves, beyond memory, with
 * leaves of every size, target and alignment, changed while jobs walk them. The jobs
 * read their header and arguments and write result, fence and trace through them.
 */
#include <string.h>

#include "guest.h"
#include "neuron/isa.h"

#define TABLES		16u
#define MAX_ROUNDS	12
#define RING		(GUEST_RINGS + 0x20000u)	/* slot n: one page for jobs, one for completions */
#define PROGRAM		(1u << 21)			/* in HBM stack 0, and mapped by table 3 */

static uint64_t entry(struct fuzz_input *in)
{
	uint64_t flags = NEURON_PTE_VALID | (fuzz_below(in, 4) ? NEURON_PTE_WRITE : 0), addr;

	switch (fuzz_below(in, 8)) {
	case 0:
	case 1:		/* a table */
		return (GUEST_TABLES + 0x1000 * fuzz_below(in, TABLES)) | NEURON_PTE_VALID;
	case 2:		/* a page of the host */
		addr = GUEST_DATA + 0x1000 * (uint64_t)fuzz_below(in, 64);
		return addr | flags | NEURON_PTE_LEAF | NEURON_PTE_TARGET_HOST << NEURON_PTE_TARGET_SHIFT;
	case 3:		/* HBM, often huge */
		addr = fuzz_below(in, 2) ? (uint64_t)fuzz_below(in, 16) << 21 : (uint64_t)fuzz_take(in, 3) << 12;
		return addr | flags | NEURON_PTE_LEAF;
	case 4:		/* the last pages of a stack and what lies behind */
		addr = guest_arch->stack_size - 0x2000 + 0x1000 * (uint64_t)fuzz_below(in, 4);
		return addr | flags | NEURON_PTE_LEAF;
	case 5:		/* a target that does not exist, or a peer */
		return (uint64_t)fuzz_take(in, 2) << 48 | (uint64_t)fuzz_below(in, 16) << NEURON_PTE_TARGET_SHIFT |
		       flags | NEURON_PTE_LEAF;
	case 6:
		return fuzz_number(in);
	default:
		return 0;
	}
}

static void change(struct fuzz_input *in)
{
	unsigned int table = fuzz_below(in, TABLES), index = fuzz_below(in, 4) ? fuzz_below(in, 8) : fuzz_below(in, 512);
	uint64_t e = entry(in);

	memcpy(guest_mem + GUEST_TABLES + 4096 * table + 8 * index, &e, 8);
}

/* A path that works, so that most jobs get far; then anything. */
static void make_tables(struct fuzz_input *in)
{
	uint64_t *t = (uint64_t *)(guest_mem + GUEST_TABLES);
	unsigned int n;

	memset(t, 0, TABLES * 4096);
	t[0] = (GUEST_TABLES + 0x1000) | NEURON_PTE_VALID;
	t[512] = (GUEST_TABLES + 0x2000) | NEURON_PTE_VALID;
	t[1024] = (GUEST_TABLES + 0x3000) | NEURON_PTE_VALID;
	t[1025] = PROGRAM | NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE;
	for (n = 0; n < 8; n++)
		t[1536 + n] = (GUEST_DATA + 0x1000 * n) | NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE |
			      NEURON_PTE_TARGET_HOST << NEURON_PTE_TARGET_SHIFT;
	for (n = fuzz_below(in, 24); n; n--)
		change(in);
}

static uint64_t address(struct fuzz_input *in, unsigned int align)
{
	switch (fuzz_below(in, 8)) {
	case 0:
		return fuzz_number(in);
	case 1:		/* ends a page, a huge page, a table */
		return (1ull << (12 + 9 * fuzz_below(in, 5))) - fuzz_take(in, 1);
	case 2:
		return PROGRAM + 0x1000 + fuzz_take(in, 2) * align;
	default:
		return fuzz_take(in, 2) * align % 0x8000;
	}
}

static void open_slot(struct fuzz_input *in, unsigned int n)
{
	uint64_t s = NEURON_EXEC_SLOT(n);

	guest_exec_write(s + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	guest_exec_write(s + NEURON_SLOT_RING_LO, RING + 0x2000 * n);
	guest_exec_write(s + NEURON_SLOT_RING_ORDER, 3);
	guest_exec_write(s + NEURON_SLOT_CQ_LO, RING + 0x2000 * n + 0x1000);
	guest_exec_write(s + NEURON_SLOT_CQ_ORDER, 3);
	guest_exec_write(s + NEURON_SLOT_PT_LO, GUEST_TABLES + (fuzz_below(in, 8) ? 0 : (uint32_t)fuzz_take(in, 2)));
	guest_exec_write(s + NEURON_SLOT_CORE_MASK, 3);
	guest_exec_write(s + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
}

static void push(struct fuzz_input *in, unsigned int n)
{
	uint64_t s = NEURON_EXEC_SLOT(n);
	uint32_t head = guest_exec_read(s + NEURON_SLOT_HEAD);
	struct neuron_job_desc job = {
		.seqno = 1,
		.core_mask = 1 + fuzz_below(in, 2),
		.program_va = fuzz_below(in, 4) ? PROGRAM : address(in, 128),
		.args_va = address(in, 8),
		.arg_count = fuzz_below(in, 4) ? fuzz_below(in, 4) : (uint32_t)fuzz_take(in, 2),
		.result_va = address(in, 128),
		.fence_va = address(in, 8),
		.fence_value = 7,
		.trace_va = fuzz_below(in, 4) ? 0 : address(in, 64),
		.trace_size = fuzz_number(in),
	};

	memcpy(guest_mem + RING + 0x2000 * n + sizeof(job) * (head & 7), &job, sizeof(job));
	guest_exec_write(s + NEURON_SLOT_DOORBELL, head + 1);
	guest_exec_write(s + NEURON_SLOT_CQ_HEAD, head);
}

static void invalidate(struct fuzz_input *in, unsigned int n)
{
	uint64_t s = NEURON_EXEC_SLOT(n), va = fuzz_number(in), size = fuzz_below(in, 2) ? ~0ull : fuzz_number(in);

	guest_exec_write(s + NEURON_SLOT_INV_VA, (uint32_t)va);
	guest_exec_write(s + NEURON_SLOT_INV_VA + 4, (uint32_t)(va >> 32));
	guest_exec_write(s + NEURON_SLOT_INV_SIZE, (uint32_t)size);
	guest_exec_write(s + NEURON_SLOT_INV_SIZE + 4, (uint32_t)(size >> 32));
	guest_exec_write(s + NEURON_SLOT_INV, 1);
}

static void make_program(void)
{
	struct neuron_program_header p = {
		.magic = NEURON_PROGRAM_MAGIC, .isa_version = NEURON_ISA_VERSION,
		.nc_version = guest_arch->v3 ? 3 : 2, .cores = 1, .size = sizeof(p),
	};

	memcpy((uint8_t *)neuron_chip_hbm(guest_chip, 0) + PROGRAM, &p, sizeof(p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, data + size };
	unsigned int round, slot;

	guest_open(&in);
	make_program();
	make_tables(&in);
	for (slot = 0; slot < 2; slot++)
		open_slot(&in, slot);
	for (round = 0; round < MAX_ROUNDS && in.p < in.end; round++) {
		slot = fuzz_below(&in, 2);
		push(&in, slot);
		if (fuzz_below(&in, 2))
			change(&in);
		if (fuzz_below(&in, 3))
			invalidate(&in, slot);
		neuron_chip_idle(guest_chip);
		if (!fuzz_below(&in, 6))
			open_slot(&in, slot);
	}
	guest_check();
	return 0;
}
