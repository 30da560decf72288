/* SPDX-License-Identifier: MIT */
/*
 * Jobs for unit tests of the chip: page tables, rings, and programs that need no
 * more than to be found: an empty one, and one that never ends.
 */
#ifndef TESTS_CHIP_JOBS_H
#define TESTS_CHIP_JOBS_H

#include "chip_host.h"
#include "neuron/isa.h"

#define TABLES		0x100000ull	/* page tables */
#define RINGS		0x200000ull
#define PAGES		0x400000ull	/* host pages that the job sees */
#define VA_PROGRAM	0x10000000ull	/* HBM */
#define VA_ARGS		0x20000000ull	/* host */
#define VA_RESULT	0x20001000ull
#define VA_FENCE	0x20002000ull
#define VA_READ_ONLY	0x20003000ull
#define VA_UNREACHABLE	0x20004000ull
#define VA_HUGE		0x7f0000000000ull

struct slot {
	struct host *h;
	unsigned int nr, order, cq_order;
	uint32_t producer, consumer;
	uint64_t ring, cq, reg;
};

static uint64_t next_table;

/* Level 3 down to the leaf's level; tables are made as needed. */
static inline void map(struct host *h, uint64_t va, uint64_t pte, unsigned int leaf_level)
{
	uint64_t *table = (uint64_t *)(h->mem + TABLES), *e;
	unsigned int level;

	for (level = 3; level > leaf_level; level--) {
		e = &table[va >> (12 + 9 * level) & 511];
		if (!*e) {
			next_table += 4096;
			*e = (TABLES + next_table) | NEURON_PTE_VALID;
		}
		table = (uint64_t *)(h->mem + (*e & NEURON_PTE_ADDR_MASK));
	}
	table[va >> (12 + 9 * leaf_level) & 511] = pte;
}

static inline uint64_t pte_of(uint64_t target, uint64_t addr, bool write)
{
	return addr | target << NEURON_PTE_TARGET_SHIFT | NEURON_PTE_VALID | NEURON_PTE_LEAF |
	       (write ? NEURON_PTE_WRITE : 0);
}

/* One instruction that branches to itself for ever. */
static inline void put_loop(struct host *h)
{
	struct neuron_program_header p = {
		.magic = NEURON_PROGRAM_MAGIC,
		.isa_version = NEURON_ISA_VERSION,
		.nc_version = 3,
		.cores = 1,
		.size = sizeof(p) + sizeof(struct neuron_insn),
	};
	struct neuron_insn loop = {
		.opcode = NEURON_OP_COMPARE_BRANCH,
		.words = 1,
		.op = { NEURON_ALU_EQUAL },
		.imm = { { .kind = NEURON_IMM_I32 }, { .kind = NEURON_IMM_I32 } },
	};
	uint8_t *hbm = (uint8_t *)neuron_chip_hbm(h->chip, 1) + 0x2000;

	p.stream[0][NEURON_ENGINE_SP] = (struct neuron_program_stream){ sizeof(p), 1, 0 };
	memcpy(hbm, &p, sizeof(p));
	memcpy(hbm + sizeof(p), &loop, sizeof(loop));
}

static inline void put_program(struct host *h)
{
	struct neuron_program_header p = {
		.magic = NEURON_PROGRAM_MAGIC,
		.isa_version = NEURON_ISA_VERSION,
		.nc_version = 3,
		.cores = 1,
		.size = sizeof(p),
	};
	uint8_t *hbm = neuron_chip_hbm(h->chip, 1);

	memcpy(hbm, &p, sizeof(p));
	p.cores = 2;
	memcpy(hbm + 0x1000, &p, sizeof(p));
}

static inline void map_all(struct host *h)
{
	next_table = 0;
	put_program(h);
	map(h, VA_PROGRAM, pte_of(NEURON_PTE_TARGET_HBM, 64ull << 30, false), 0);
	map(h, VA_PROGRAM + 0x1000, pte_of(NEURON_PTE_TARGET_HBM, (64ull << 30) + 0x1000, false), 0);
	put_loop(h);
	map(h, VA_PROGRAM + 0x2000, pte_of(NEURON_PTE_TARGET_HBM, (64ull << 30) + 0x2000, false), 0);
	map(h, VA_ARGS, pte_of(NEURON_PTE_TARGET_HOST, PAGES, false), 0);
	map(h, VA_RESULT, pte_of(NEURON_PTE_TARGET_HOST, PAGES + 0x1000, true), 0);
	map(h, VA_FENCE, pte_of(NEURON_PTE_TARGET_HOST, PAGES + 0x2000, true), 0);
	map(h, VA_READ_ONLY, pte_of(NEURON_PTE_TARGET_HOST, PAGES + 0x3000, false), 0);
	map(h, VA_UNREACHABLE, pte_of(NEURON_PTE_TARGET_HOST, HOST_BYTES, true), 0);
	map(h, VA_HUGE, pte_of(NEURON_PTE_TARGET_HBM, 4ull << 21, true), 1);
}

static inline void slot_open(struct slot *s, struct host *h, unsigned int nr, unsigned int order, uint32_t cores)
{
	*s = (struct slot){ .h = h, .nr = nr, .order = order, .cq_order = order };
	s->ring = RINGS + nr * 0x4000;
	s->cq = s->ring + 0x2000;
	s->reg = NEURON_EXEC_SLOT(nr);
	memset(h->mem + s->ring, 0, 0x4000);
	xwr64(h, s->reg + NEURON_SLOT_RING_LO, s->ring);
	xwr(h, s->reg + NEURON_SLOT_RING_ORDER, order);
	xwr(h, s->reg + NEURON_SLOT_CQ_LO, (uint32_t)s->cq);
	xwr(h, s->reg + NEURON_SLOT_CQ_HI, 0);
	xwr(h, s->reg + NEURON_SLOT_CQ_ORDER, order);
	xwr64(h, s->reg + NEURON_SLOT_PT_LO, TABLES);
	xwr(h, s->reg + NEURON_SLOT_CORE_MASK, cores);
	xwr(h, s->reg + NEURON_SLOT_VECTOR, NEURON_SLOT_VECTOR_EN | 1);
	xwr(h, s->reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
}

static inline struct neuron_job_desc job_of(uint64_t seqno, uint32_t cores)
{
	return (struct neuron_job_desc){
		.seqno = seqno, .core_mask = cores, .program_va = VA_PROGRAM,
	};
}

static inline void push(struct slot *s, const struct neuron_job_desc *job)
{
	memcpy(s->h->mem + s->ring + sizeof(*job) * (s->producer & ((1u << s->order) - 1)), job, sizeof(*job));
	s->producer++;
}

static inline void bell(struct slot *s)
{
	xwr(s->h, s->reg + NEURON_SLOT_DOORBELL, s->producer);
}

static inline bool ready(struct slot *s)
{
	struct neuron_completion *c = (void *)(s->h->mem + s->cq);
	uint32_t mask = (1u << s->cq_order) - 1, want = (s->consumer >> s->cq_order & 1) ^ 1;

	return (__atomic_load_n(&c[s->consumer & mask].phase, __ATOMIC_ACQUIRE) & 1) == want;
}

static inline bool pop(struct slot *s, struct neuron_completion *c)
{
	if (!WAIT_FOR(ready(s)))
		return false;
	memcpy(c, s->h->mem + s->cq + sizeof(*c) * (s->consumer & ((1u << s->cq_order) - 1)), sizeof(*c));
	s->consumer++;
	xwr(s->h, s->reg + NEURON_SLOT_CQ_HEAD, s->consumer);
	return true;
}

static inline uint32_t status(struct slot *s)
{
	return xrd(s->h, s->reg + NEURON_SLOT_STATUS);
}

static inline uint32_t run(struct slot *s, const struct neuron_job_desc *job, struct neuron_completion *c)
{
	push(s, job);
	bell(s);
	return pop(s, c) ? c->status : ~0u;
}

#endif /* TESTS_CHIP_JOBS_H */
