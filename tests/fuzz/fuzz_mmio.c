// SPDX-License-Identifier: MIT
/*
 * A guest that does anything: bytes become register accesses, host memory
 * contents, half-right rings, jobs and page tables, faults, resets. Whatever comes, the
 * chip must not crash, must come back by a reset, and must copy afterwards.
 */
#include <stdio.h>
#include <string.h>

#include "guest.h"
#include "neuron/isa.h"

#define MAX_OPS		400


static uint64_t bar0_offset(struct fuzz_input *in)
{
	switch (fuzz_take(in, 1) & 7) {
	case 0:
		return guest_arch->misc + (fuzz_take(in, 2) & 0xfff);
	case 1:
	case 2:
	case 3:
		return guest_engine(in) + (fuzz_take(in, 1) & 1 ? NEURON_UDMA_S2M : 0) +
		       NEURON_UDMA_Q(fuzz_take(in, 1) & 3) + (fuzz_take(in, 1) & 0x7f) * 4;
	case 4:
		return guest_engine(in) + (fuzz_take(in, 3) & 0xfffff);
	case 5:
		return guest_tpb(fuzz_take(in, 1) & 7) + NEURON_TPB_EVENT(0) + (fuzz_take(in, 2) & 0x3fff);
	case 6:
		return guest_tpb(fuzz_take(in, 1) & 7) + (fuzz_take(in, 4) & 0x3ffffff);
	default:
		return fuzz_number(in);
	}
}

static uint64_t bar2_offset(struct fuzz_input *in)
{
	switch (fuzz_take(in, 1) & 7) {
	case 0:
		return fuzz_take(in, 1);
	case 1:
		return NEURON_EXEC_UDMA_IRQ(0, 0) + (fuzz_take(in, 2) & 0x3fff);
	case 2:
		return NEURON_EXEC_CORE(fuzz_take(in, 1) & 7) + (fuzz_take(in, 1) & 0xff);
	case 3:
		return fuzz_number(in);
	default:
		return NEURON_EXEC_SLOT(fuzz_take(in, 1) & 3) + (fuzz_take(in, 1) & 0xff);
	}
}

/* --- operations ----------------------------------------------------------------------- */

static void access_any(struct fuzz_input *in)
{
	uint8_t how = (uint8_t)fuzz_take(in, 1);
	unsigned int size = 1u << (how & 3), bar = how & 4 ? NEURON_BAR_EXEC : NEURON_BAR_APB;
	uint64_t offset = how & 4 ? bar2_offset(in) : bar0_offset(in);

	if (!(how & 8))
		offset &= ~(uint64_t)(size - 1);
	if (how & 16)
		neuron_chip_read(guest_chip, bar, offset, size);
	else
		neuron_chip_write(guest_chip, bar, offset, fuzz_number(in), size);
}

static void poke(struct fuzz_input *in)
{
	uint32_t at = (uint32_t)fuzz_take(in, 2) * 8 % GUEST_PROBE;
	uint64_t v = fuzz_number(in);

	memcpy(guest_mem + at, &v, 8);
}

static void init_queue(struct fuzz_input *in)
{
	uint64_t e = guest_engine(in);
	unsigned int queue = fuzz_take(in, 1) & 3;

	guest_write(e + NEURON_UDMA_CHANGE_STATE, 1);
	guest_queue(e, queue, GUEST_RINGS, GUEST_RINGS + 0x4000, 16 + (uint32_t)fuzz_take(in, 1));
}

static uint64_t dpa(struct fuzz_input *in)
{
	switch (fuzz_take(in, 1) & 7) {
	case 0:
	case 1:
	case 2:
		return guest_arch->host_bit | (fuzz_take(in, 3) & 0x1fffff);
	case 3:
		return guest_hbm_dpa(fuzz_take(in, 1) & 3) + (fuzz_take(in, 3) & 0xfffff);
	case 4:
		return guest_tpb_dpa(fuzz_take(in, 1) & 7) + (fuzz_take(in, 4) & 0x3ffffff);
	case 5:
		return guest_hbm_dpa(fuzz_take(in, 1) & 3) + guest_arch->stack_size - fuzz_take(in, 2);
	default:
		return fuzz_number(in);
	}
}

static void fill_rings(struct fuzz_input *in)
{
	unsigned int n = 1 + (fuzz_take(in, 1) & 15), i;
	struct neuron_udma_desc d;

	for (i = 0; i < n; i++) {
		d.flags = (uint32_t)fuzz_take(in, 2) | (fuzz_take(in, 1) & 1 ? 0x0d000000 : (uint32_t)fuzz_take(in, 1) << 24);
		d.meta = NEURON_UDMA_META_COPY;
		d.addr = dpa(in);
		memcpy(guest_mem + GUEST_RINGS + (fuzz_take(in, 1) & 1 ? 0x4000 : 0) + 16 * (fuzz_take(in, 1) & 0x7f), &d, sizeof(d));
	}
}

static void ring(struct fuzz_input *in)
{
	uint64_t e = guest_engine(in);
	unsigned int queue = fuzz_take(in, 1) & 3, rx = fuzz_take(in, 1) & 31;

	guest_doorbell(e, queue, fuzz_take(in, 1) & 31, rx);
}

/* One table of each level, the leaves as the input says. */
static void make_tables(struct fuzz_input *in)
{
	uint64_t *t = (uint64_t *)(guest_mem + GUEST_TABLES);
	unsigned int i, n = 1 + (fuzz_take(in, 1) & 15);

	t[0] = (GUEST_TABLES + 0x1000) | NEURON_PTE_VALID;
	t[512] = (GUEST_TABLES + 0x2000) | NEURON_PTE_VALID;
	t[1024] = (GUEST_TABLES + 0x3000) | NEURON_PTE_VALID;
	t[1025] = (1ull << 21) | NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE;
	for (i = 0; i < n; i++) {
		uint64_t addr = fuzz_take(in, 1) & 1 ? GUEST_RINGS + 0x10000 + 0x1000 * (fuzz_take(in, 1) & 15) : fuzz_number(in) << 12;

		t[1536 + (fuzz_take(in, 1) & 31)] = (addr & NEURON_PTE_ADDR_MASK) | NEURON_PTE_VALID | NEURON_PTE_LEAF |
					      (fuzz_take(in, 1) & 3 ? NEURON_PTE_WRITE : 0) | (fuzz_take(in, 1) & 1) << 4;
	}
}

static void make_program(struct fuzz_input *in)
{
	struct neuron_program_header p = {
		.magic = NEURON_PROGRAM_MAGIC, .isa_version = NEURON_ISA_VERSION, .nc_version = 3, .cores = 1,
		.size = sizeof(p) + 512,
	};
	uint8_t *hbm = (uint8_t *)neuron_chip_hbm(guest_chip, 0) + (1u << 21);
	unsigned int i;

	if (fuzz_take(in, 1) & 1)
		p.stream[0][fuzz_take(in, 1) & 7] = (struct neuron_program_stream){ sizeof(p), 4, 0 };
	memcpy(hbm, &p, sizeof(p));
	for (i = 0; i < 512; i++)
		hbm[sizeof(p) + i] = (uint8_t)fuzz_take(in, 1);
}

static void open_slot(struct fuzz_input *in)
{
	unsigned int n = fuzz_take(in, 1) & 3;
	uint64_t s = NEURON_EXEC_SLOT(n);

	guest_exec_write(s + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	guest_exec_write(s + NEURON_SLOT_RING_LO, GUEST_RINGS + 0x20000 + 0x1000 * n);
	guest_exec_write(s + NEURON_SLOT_RING_ORDER, (uint32_t)fuzz_take(in, 1) & 3);
	guest_exec_write(s + NEURON_SLOT_CQ_LO, GUEST_RINGS + 0x24000 + 0x1000 * n);
	guest_exec_write(s + NEURON_SLOT_CQ_ORDER, (uint32_t)fuzz_take(in, 1) & 3);
	guest_exec_write(s + NEURON_SLOT_PT_LO, GUEST_TABLES);
	guest_exec_write(s + NEURON_SLOT_CORE_MASK, (uint32_t)fuzz_take(in, 1));
	guest_exec_write(s + NEURON_SLOT_VECTOR, NEURON_SLOT_VECTOR_EN | (uint32_t)(fuzz_take(in, 1) & 31));
	guest_exec_write(s + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
}

static void push_job(struct fuzz_input *in)
{
	unsigned int n = fuzz_take(in, 1) & 3;
	uint64_t s = NEURON_EXEC_SLOT(n);
	struct neuron_job_desc job = {
		.seqno = fuzz_take(in, 1),
		.core_mask = (uint32_t)fuzz_take(in, 1),
		.program_va = fuzz_take(in, 1) & 7 ? 1u << 21 : fuzz_number(in),
		.result_va = fuzz_take(in, 1) * 128,
		.fence_va = fuzz_take(in, 1) & 1 ? fuzz_take(in, 2) * 8 : fuzz_number(in),
		.flags = (uint32_t)fuzz_take(in, 1) & 1,
	};
	unsigned int i;

	for (i = 0; i < 8; i++)
		memcpy(guest_mem + GUEST_RINGS + 0x20000 + 0x1000 * n + sizeof(job) * i, &job, sizeof(job));
	guest_exec_write(s + NEURON_SLOT_DOORBELL, guest_exec_read(s + NEURON_SLOT_DOORBELL) +
	    (uint32_t)(fuzz_take(in, 1) & 3));
	guest_exec_write(s + NEURON_SLOT_CQ_HEAD, guest_exec_read(s + NEURON_SLOT_HEAD));
}

/* A fault on demand: any name, mostly good parameters. */
static void fault(struct fuzz_input *in)
{
	static const char *const names[] = {
#define NEURON_INJECT(id, name, when, params, count, what, seen) name,
#include "neuron/inject.def"
	};
	static const char *const params[] = {
#define NEURON_INJECT_PARAM(id, name, text) name,
#include "neuron/inject.def"
	};
	const unsigned int kinds = sizeof(names) / sizeof(names[0]), all = sizeof(params) / sizeof(params[0]);
	char spec[200];
	size_t n;
	uint8_t how = (uint8_t)fuzz_take(in, 1);

	if (how >= 0xe0) {
		neuron_chip_clear(guest_chip, how & 15);
		return;
	}
	n = (size_t)snprintf(spec, sizeof(spec), "%s", names[how % kinds]);
	for (how = fuzz_take(in, 1) & 3; how; how--)
		n += (size_t)snprintf(spec + n, sizeof(spec) - n, ",%s=%llu", params[fuzz_take(in, 1) % all],
				      (unsigned long long)(fuzz_take(in, 1) & 7 ? fuzz_take(in, 1) & 7 : fuzz_number(in)));
	neuron_chip_inject(guest_chip, spec, NULL, 0);
}

static void step(struct fuzz_input *in)
{
	static void (* const ops[])(struct fuzz_input *) = {
		access_any, access_any, access_any, poke, poke, init_queue, fill_rings, ring,
		ring, make_tables, make_program, open_slot, push_job, push_job, fault,
	};
	uint8_t op = (uint8_t)fuzz_take(in, 1);

	if (op < 0xf8)
		ops[op % (sizeof(ops) / sizeof(ops[0]))](in);
	else if (op < 0xfc)
		neuron_chip_bus_master(guest_chip, op & 1);
	else
		neuron_chip_reset(guest_chip, op & 1 ? NEURON_CHIP_RESET_FLR : NEURON_CHIP_RESET_BUS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, data + size };
	unsigned int n;

	guest_open(&in);
	for (n = 0; n < MAX_OPS && in.p < in.end; n++)
		step(&in);
	guest_check();
	return 0;
}
