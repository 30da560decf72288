// SPDX-License-Identifier: MIT
/*
 * Execution block: slots, rings, page tables, arbiter, interrupts. Programs are
 * empty here; what instructions do is tested in core_*.c.
 */
#include <kselftest_harness.h>

#include "chip_jobs.h"

FIXTURE(slot) {
	struct host host, *h;
	struct slot s;
	struct neuron_completion c;
};

FIXTURE_VARIANT(slot) {
	bool inline_exec;
};

FIXTURE_VARIANT_ADD(slot, pool) {
	.inline_exec = false,
};

FIXTURE_VARIANT_ADD(slot, same_thread) {
	.inline_exec = true,
};

FIXTURE_SETUP(slot)
{
	struct neuron_chip_config config = { .arch = "trn2", .inline_exec = variant->inline_exec };

	self->h = &self->host;
	ASSERT_TRUE(host_open(self->h, &config));
	map_all(self->h);
	slot_open(&self->s, self->h, 0, 2, 0xff);
}

FIXTURE_TEARDOWN(slot)
{
	host_close(self->h);
}

TEST_F(slot, identification)
{
	uint64_t a, b;

	EXPECT_EQ(xrd(self->h, NEURON_EXEC_MAGIC_REG), 0x4358454e);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_NC_VERSION), 3);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_CORES), 8);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_SLOTS), 64);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_VECTORS), 9);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_HBM_STACKS), 4);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_HBM_STACK_MIB), 24576);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_SBUF_BYTES), 196608 + 32768);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_PSUM_BYTES), 16384);
	a = xrd64(self->h, NEURON_EXEC_CLOCK);
	b = xrd(self->h, NEURON_EXEC_CLOCK);
	b |= (uint64_t)xrd(self->h, NEURON_EXEC_CLOCK + 4) << 32;
	EXPECT_GE(b, a);
	EXPECT_LT(b - a, 1000000000);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(7) + NEURON_CORE_OWNER), ~0ull);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(8) + NEURON_CORE_OWNER), 0);
	EXPECT_EQ(xrd(self->h, 0xdffff0), 0);
}

TEST_F(slot, empty_job)
{
	struct neuron_job_desc job = job_of(0x1234567890ull, 1u << 3);
	struct neuron_completion *result = (void *)(self->h->mem + PAGES + 0x1080);
	uint64_t *fence = (uint64_t *)(self->h->mem + PAGES + 0x2008);

	job.result_va = VA_RESULT + 0x80;
	job.fence_va = VA_FENCE + 8;
	job.fence_value = 0xfeedfacecafebeefull;
	ASSERT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_NONE);
	EXPECT_EQ(self->c.seqno, 0x1234567890ull);
	EXPECT_EQ(self->c.core_mask, 1u << 3);
	EXPECT_GE(self->c.wall_end, self->c.wall_start);
	EXPECT_EQ(self->c.fault.code, 0);
	EXPECT_EQ(*fence, 0xfeedfacecafebeefull);
	EXPECT_EQ(result->seqno, 0x1234567890ull);
	EXPECT_EQ(result->phase, 1);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(atomic_load(&self->h->irq[1]), 1);
	EXPECT_EQ(atomic_load(&self->h->irq[0]), 0);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(3) + NEURON_CORE_JOBS), 1);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(2) + NEURON_CORE_JOBS), 0);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(3) + NEURON_CORE_WALL_BUSY_NS),
		  self->c.wall_end - self->c.wall_start);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_HEAD), 1);
}

/* Rings of four entries, many passes, the phase changing with each. */
TEST_F(slot, rings_wrap)
{
	struct neuron_job_desc job;
	uint64_t seqno = 0, seen = 0;
	unsigned int i, n;

	for (i = 0; i < 101; i++) {
		for (n = 0; n < 1 + i % 4; n++) {
			job = job_of(++seqno, 1u << i % 8);
			push(&self->s, &job);
		}
		bell(&self->s);
		while (n--) {
			ASSERT_TRUE(pop(&self->s, &self->c));
			ASSERT_EQ(self->c.seqno, ++seen);
			ASSERT_EQ(self->c.status, 0);
		}
	}
	EXPECT_EQ(seen, seqno);
}

/* Completions nobody took are never overwritten: the slot waits. */
TEST_F(slot, full_completion_ring)
{
	struct neuron_job_desc job;
	uint64_t i;

	for (i = 1; i <= 4; i++) {
		job = job_of(i, 1);
		push(&self->s, &job);
	}
	bell(&self->s);
	neuron_chip_idle(self->h->chip);
	for (; i <= 7; i++) {
		job = job_of(i, 1);
		push(&self->s, &job);
	}
	bell(&self->s);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_HEAD), 4);
	for (i = 1; i <= 7; i++) {
		ASSERT_TRUE(pop(&self->s, &self->c));
		ASSERT_EQ(self->c.seqno, i);
	}
	neuron_chip_idle(self->h->chip);
	EXPECT_FALSE(ready(&self->s));
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_HEAD), 7);
}

/* Each field that breaks a rule is named by its offset; the next job runs. */
TEST_F(slot, bad_descriptors)
{
	const struct neuron_job_desc good = job_of(5, 1);
	struct neuron_job_desc bad[12];
	const size_t at[12] = {
		offsetof(struct neuron_job_desc, flags), offsetof(struct neuron_job_desc, flags),
		offsetof(struct neuron_job_desc, core_mask), offsetof(struct neuron_job_desc, core_mask),
		offsetof(struct neuron_job_desc, program_va), offsetof(struct neuron_job_desc, program_va),
		offsetof(struct neuron_job_desc, args_va), offsetof(struct neuron_job_desc, arg_count),
		offsetof(struct neuron_job_desc, fence_va), offsetof(struct neuron_job_desc, result_va),
		offsetof(struct neuron_job_desc, reserved[3]), offsetof(struct neuron_job_desc, gang_members),
	};
	unsigned int i;

	for (i = 0; i < 12; i++)
		bad[i] = good;
	bad[0].flags = 1u << 31;
	bad[1].flags = NEURON_JOB_TIMING_ONLY | NEURON_JOB_STRICT;
	bad[2].core_mask = 0;
	bad[3].core_mask = 0x101;
	bad[4].program_va = VA_PROGRAM + 64;
	bad[5].program_va = 1ull << 48;
	bad[6].args_va = 4;
	bad[7].arg_count = NEURON_MAX_ARGS + 1;
	bad[8].fence_va = VA_FENCE + 4;
	bad[9].result_va = ~7ull;
	bad[10].reserved[3] = 1;
	bad[11].gang_members = 2;
	xwr(self->h, NEURON_EXEC_ADMIN_MASK, NEURON_EXEC_ADMIN_SLOT_FAULT);
	for (i = 0; i < 12; i++) {
		ASSERT_EQ(run(&self->s, &bad[i], &self->c), NEURON_FAULT_BAD_JOB);
		EXPECT_EQ(self->c.seqno, 5);
		EXPECT_EQ(self->c.fault.index, at[i]);
		neuron_chip_idle(self->h->chip);
		EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_FAULT) & 0xffff, NEURON_FAULT_BAD_JOB);
		EXPECT_EQ(xrd64(self->h, NEURON_EXEC_SLOT_FAULTS), 1);
		EXPECT_EQ(atomic_load(&self->h->irq[0]), i + 1);
		/* The cause stays until the slot was looked at. */
		xwr(self->h, NEURON_EXEC_ADMIN_CAUSE, NEURON_EXEC_ADMIN_SLOT_FAULT);
		EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE), NEURON_EXEC_ADMIN_SLOT_FAULT);
		xwr64(self->h, NEURON_EXEC_SLOT_FAULTS, 1);
		xwr(self->h, NEURON_EXEC_ADMIN_CAUSE, NEURON_EXEC_ADMIN_SLOT_FAULT);
		EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE), 0);
		ASSERT_EQ(run(&self->s, &good, &self->c), NEURON_FAULT_NONE);
	}
	EXPECT_EQ(status(&self->s) & NEURON_SLOT_STATUS_ERROR, 0);
}

/* A malformed job still tells its waiter. */
TEST_F(slot, fence_of_a_bad_job)
{
	struct neuron_job_desc job = job_of(1, 0);

	job.fence_va = VA_FENCE;
	job.fence_value = 3;
	EXPECT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_BAD_JOB);
	EXPECT_EQ(*(uint64_t *)(self->h->mem + PAGES + 0x2000), 3);
}

TEST_F(slot, page_faults)
{
	static const struct {
		uint64_t va;
		uint32_t status;
	} want[] = {
		{ 0x30000000, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ VA_READ_ONLY, NEURON_FAULT_PAGE_READ_ONLY },
		{ VA_UNREACHABLE, NEURON_FAULT_BUS_ERROR },
		{ VA_FENCE + 0xff8, NEURON_FAULT_NONE },
		{ VA_HUGE + 0x1ffff8, NEURON_FAULT_NONE },
		{ VA_HUGE + 0x200000, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ (1ull << 48) - 8, NEURON_FAULT_PAGE_NOT_MAPPED },
	};
	struct neuron_job_desc job = job_of(1, 1);
	unsigned int i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		job.fence_va = want[i].va;
		job.fence_value = 100 + i;
		ASSERT_EQ(run(&self->s, &job, &self->c), want[i].status);
		if (want[i].status)
			EXPECT_EQ(self->c.fault.addr, want[i].va);
	}
	EXPECT_EQ(*(uint64_t *)(self->h->mem + PAGES + 0x2ff8), 103);
	EXPECT_EQ(*(uint64_t *)((char *)neuron_chip_hbm(self->h->chip, 0) + (4ull << 21) + 0x1ffff8), 104);
}

/* Entries that no driver should write. */
TEST_F(slot, malformed_page_tables)
{
	static const struct {
		uint64_t pte;
		unsigned int level;
		uint32_t status;
	} want[] = {
		{ 0x2000 | NEURON_PTE_VALID | NEURON_PTE_WRITE | 1ull << 4, 0, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | NEURON_PTE_WRITE | NEURON_PTE_LEAF, 2, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | NEURON_PTE_WRITE | NEURON_PTE_LEAF, 3, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ 0x1000 | NEURON_PTE_VALID | NEURON_PTE_WRITE | NEURON_PTE_LEAF, 1, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE | 2ull << 4, 0, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE | 3ull << 4, 0, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE | 15ull << 4, 0, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE | 24ull << 30, 0, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | NEURON_PTE_LEAF | NEURON_PTE_WRITE | 1ull << 50, 0, NEURON_FAULT_PAGE_NOT_MAPPED },
		{ NEURON_PTE_VALID | HOST_BYTES, 1, NEURON_FAULT_BUS_ERROR },
	};
	struct neuron_job_desc job = job_of(1, 1);
	unsigned int i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint64_t va = 0x400000000000ull + ((uint64_t)i << 39);

		map(self->h, va, want[i].pte, want[i].level);
		job.fence_va = va + 0x1000 * (want[i].level == 3);
		ASSERT_EQ(run(&self->s, &job, &self->c), want[i].status);
	}
	/* The root itself unreachable. */
	xwr64(self->h, self->s.reg + NEURON_SLOT_PT_LO, ~0xfffull & ((1ull << 48) - 1));
	job.fence_va = 0;
	job.result_va = VA_RESULT;
	ASSERT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_BUS_ERROR);
	xwr64(self->h, self->s.reg + NEURON_SLOT_PT_LO, TABLES);
	ASSERT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_NONE);
}

/* A translation may be kept until INVALIDATE, not longer. */
TEST_F(slot, invalidate)
{
	struct neuron_job_desc job = job_of(1, 1);

	job.fence_va = VA_FENCE;
	job.fence_value = 1;
	ASSERT_EQ(run(&self->s, &job, &self->c), 0);
	map(self->h, VA_FENCE, pte_of(NEURON_PTE_TARGET_HOST, PAGES + 0x5000, true), 0);
	xwr64(self->h, self->s.reg + NEURON_SLOT_INV_VA, VA_FENCE);
	xwr64(self->h, self->s.reg + NEURON_SLOT_INV_SIZE, 4096);
	xwr(self->h, self->s.reg + NEURON_SLOT_INV, 1);
	EXPECT_TRUE(WAIT_FOR(xrd(self->h, self->s.reg + NEURON_SLOT_INV) == 0));
	job.fence_value = 2;
	ASSERT_EQ(run(&self->s, &job, &self->c), 0);
	EXPECT_EQ(*(uint64_t *)(self->h->mem + PAGES + 0x2000), 1);
	EXPECT_EQ(*(uint64_t *)(self->h->mem + PAGES + 0x5000), 2);
	map(self->h, VA_FENCE, 0, 0);
	xwr64(self->h, self->s.reg + NEURON_SLOT_INV_SIZE, ~0ull);
	xwr(self->h, self->s.reg + NEURON_SLOT_INV, 1);
	EXPECT_TRUE(WAIT_FOR(xrd(self->h, self->s.reg + NEURON_SLOT_INV) == 0));
	ASSERT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_PAGE_NOT_MAPPED);
}

TEST_F(slot, doorbell_out_of_range)
{
	struct neuron_job_desc job = job_of(1, 1);

	xwr(self->h, NEURON_EXEC_ADMIN_MASK, ~0u);
	xwr(self->h, self->s.reg + NEURON_SLOT_DOORBELL, 5);
	EXPECT_NE(status(&self->s) & NEURON_SLOT_STATUS_ERROR, 0);
	EXPECT_EQ(atomic_load(&self->h->irq[0]), 1);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_SLOT_FAULTS), 1);
	xwr(self->h, self->s.reg + NEURON_SLOT_DOORBELL, 1);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_HEAD), 0);
	xwr(self->h, self->s.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	EXPECT_EQ(status(&self->s), 0);
	slot_open(&self->s, self->h, 0, 2, 0xff);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	/* Backwards. */
	xwr(self->h, self->s.reg + NEURON_SLOT_DOORBELL, 0);
	EXPECT_NE(status(&self->s) & NEURON_SLOT_STATUS_ERROR, 0);
}

TEST_F(slot, unreachable_rings)
{
	struct neuron_job_desc job = job_of(1, 1);
	struct slot t;

	slot_open(&t, self->h, 7, 1, 1);
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, 0);
	xwr64(self->h, t.reg + NEURON_SLOT_RING_LO, HOST_BYTES);
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
	xwr(self->h, t.reg + NEURON_SLOT_DOORBELL, 1);
	EXPECT_TRUE(WAIT_FOR(status(&t) & NEURON_SLOT_STATUS_ERROR));
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	slot_open(&t, self->h, 7, 1, 1);
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, 0);
	xwr(self->h, t.reg + NEURON_SLOT_CQ_LO, HOST_BYTES);
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
	push(&t, &job);
	bell(&t);
	EXPECT_TRUE(WAIT_FOR(status(&t) & NEURON_SLOT_STATUS_ERROR));
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

TEST_F(slot, refused_setup)
{
	struct slot t;

	/* Nothing that describes the rings changes while enabled. */
	xwr(self->h, self->s.reg + NEURON_SLOT_RING_ORDER, 9);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_RING_ORDER), 2);
	xwr(self->h, self->s.reg + NEURON_SLOT_CORE_MASK, 1);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_CORE_MASK), 0xff);
	t = (struct slot){ .h = self->h, .reg = NEURON_EXEC_SLOT(63) };
	xwr(self->h, t.reg + NEURON_SLOT_RING_ORDER, xrd(self->h, NEURON_EXEC_RING_ORDER_MAX) + 1);
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
	EXPECT_EQ(xrd(self->h, t.reg + NEURON_SLOT_CTRL), 0);
	EXPECT_EQ(status(&t), NEURON_SLOT_STATUS_ERROR);
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	xwr(self->h, t.reg + NEURON_SLOT_RING_ORDER, 0);
	xwr(self->h, t.reg + NEURON_SLOT_RING_LO, 64);
	xwr(self->h, t.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
	EXPECT_EQ(status(&t), NEURON_SLOT_STATUS_ERROR);
}

TEST_F(slot, reset_drops_everything)
{
	struct neuron_job_desc job = job_of(9, 1);

	ASSERT_EQ(run(&self->s, &job, &self->c), 0);
	xwr(self->h, self->s.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	EXPECT_TRUE(WAIT_FOR(!(status(&self->s) & NEURON_SLOT_STATUS_RESETTING)));
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_CTRL), 0);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_HEAD), 0);
	xwr(self->h, self->s.reg + NEURON_SLOT_DOORBELL, 1);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_HEAD), 0);
	slot_open(&self->s, self->h, 0, 3, 0xff);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

/* A core's memory does not go from one owner to the next. */
TEST_F(slot, owner_change_hides_sbuf)
{
	struct neuron_job_desc job = job_of(1, 1);
	uint64_t sbuf = NEURON_V3_TPB(0) + 0x1000;
	struct slot other;

	slot_open(&other, self->h, 12, 2, 0xff);
	ASSERT_EQ(run(&self->s, &job, &self->c), 0);
	neuron_chip_idle(self->h->chip);
	wr(self->h, sbuf, 0x5ec2e7);
	EXPECT_EQ(rd(self->h, sbuf), 0x5ec2e7);
	ASSERT_EQ(run(&other, &job, &self->c), 0);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(rd(self->h, sbuf), 0);
	wr(self->h, sbuf, 0x5ec2e7);
	/* The same slot, enabled again for somebody else. */
	xwr(self->h, other.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	slot_open(&other, self->h, 12, 2, 0xff);
	ASSERT_EQ(run(&other, &job, &self->c), 0);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(rd(self->h, sbuf), 0);
}

TEST_F(slot, many_slots_share_cores)
{
	struct neuron_job_desc job;
	struct slot s[16];
	unsigned int i, n;

	for (i = 0; i < 16; i++) {
		slot_open(&s[i], self->h, 8 + i, 4, 0xff);
		xwr(self->h, s[i].reg + NEURON_SLOT_PRIORITY, i % 4);
	}
	for (n = 0; n < 16; n++) {
		for (i = 0; i < 16; i++) {
			job = job_of(1000 * i + n, i % 3 ? 1u << n % 8 : 3u << n % 7);
			job.program_va = VA_PROGRAM + (i % 3 ? 0 : 0x1000);
			push(&s[i], &job);
			bell(&s[i]);
		}
	}
	for (i = 0; i < 16; i++) {
		for (n = 0; n < 16; n++) {
			ASSERT_TRUE(pop(&s[i], &self->c));
			ASSERT_EQ(self->c.seqno, 1000 * i + n);
			ASSERT_EQ(self->c.status, 0);
		}
	}
	neuron_chip_idle(self->h->chip);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(i) + NEURON_CORE_OWNER), ~0ull);
}

TEST_F(slot, resets_of_the_chip)
{
	struct neuron_job_desc job = job_of(1, 1);

	ASSERT_EQ(run(&self->s, &job, &self->c), 0);
	wr(self->h, NEURON_V3_MISC_RAM + NEURON_MISC_RESET, 1);
	wr(self->h, NEURON_V3_MISC_RAM + NEURON_MISC_TRIGGER, 1);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_CTRL), 0);
	EXPECT_TRUE(WAIT_FOR(rd(self->h, NEURON_V3_MISC_RAM + NEURON_MISC_RESET) == 0));
	slot_open(&self->s, self->h, 0, 2, 0xff);
	ASSERT_EQ(run(&self->s, &job, &self->c), 0);
	xwr(self->h, NEURON_EXEC_CORE_RESET, 0xff);
	EXPECT_TRUE(WAIT_FOR(xrd(self->h, NEURON_EXEC_CORE_RESET) == 0));
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(0) + NEURON_CORE_JOBS), 2);
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_FLR);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_RING_ORDER), 0);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(0) + NEURON_CORE_JOBS), 2);
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_BUS);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(0) + NEURON_CORE_JOBS), 0);
}

TEST_F(slot, without_bus_mastering)
{
	struct neuron_job_desc job = job_of(1, 1);

	neuron_chip_bus_master(self->h->chip, false);
	push(&self->s, &job);
	bell(&self->s);
	EXPECT_TRUE(WAIT_FOR(status(&self->s) & NEURON_SLOT_STATUS_ERROR));
	EXPECT_EQ(atomic_load(&self->h->irq[1]), 0);
	EXPECT_FALSE(ready(&self->s));
}

/* --- jobs that do not end by themselves (pool only: they would keep the doorbell) -- */

FIXTURE(loop) {
	struct host host, *h;
	struct slot s;
	struct neuron_completion c;
};

FIXTURE_SETUP(loop)
{
	struct neuron_chip_config config = { .arch = "trn2" };
	struct neuron_job_desc job = job_of(77, 1u << 2);

	self->h = &self->host;
	ASSERT_TRUE(host_open(self->h, &config));
	map_all(self->h);
	slot_open(&self->s, self->h, 5, 2, 0xff);
	job.program_va = VA_PROGRAM + 0x2000;
	job.fence_va = VA_FENCE;
	job.fence_value = 1;
	push(&self->s, &job);
	push(&self->s, &job);
	bell(&self->s);
	ASSERT_TRUE(WAIT_FOR(xrd64(self->h, self->s.reg + NEURON_SLOT_RETIRED) > 1000));
}

FIXTURE_TEARDOWN(loop)
{
	/* With the job still running in some tests. */
	host_close(self->h);
}

TEST_F(loop, counters_move)
{
	uint64_t core = NEURON_EXEC_CORE(2), wall = xrd64(self->h, core + NEURON_CORE_WALL_BUSY_NS);
	uint64_t insns = xrd64(self->h, core + NEURON_CORE_INSNS);

	EXPECT_EQ(status(&self->s), NEURON_SLOT_STATUS_RUNNING);
	EXPECT_EQ(xrd64(self->h, core + NEURON_CORE_OWNER), 5);
	EXPECT_TRUE(WAIT_FOR(xrd64(self->h, core + NEURON_CORE_WALL_BUSY_NS) > wall + 1000000));
	EXPECT_TRUE(WAIT_FOR(xrd64(self->h, core + NEURON_CORE_INSNS) > insns));
	EXPECT_EQ(xrd64(self->h, core + NEURON_CORE_JOBS), 0);
}

/* No completion, no fence after a slot reset; the second job is dropped, too. */
TEST_F(loop, slot_reset)
{
	struct neuron_job_desc job = job_of(3, 1u << 2);

	xwr(self->h, self->s.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	ASSERT_TRUE(WAIT_FOR(status(&self->s) == 0));
	EXPECT_FALSE(ready(&self->s));
	EXPECT_EQ(*(uint64_t *)(self->h->mem + PAGES + 0x2000), 0);
	EXPECT_EQ(xrd64(self->h, self->s.reg + NEURON_SLOT_RETIRED), 0);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(2) + NEURON_CORE_OWNER), ~0ull);
	slot_open(&self->s, self->h, 5, 2, 0xff);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	EXPECT_EQ(self->c.seqno, 3);
}

/* A core reset ends its job with a completion; the next one of the slot runs. */
TEST_F(loop, core_reset)
{
	xwr(self->h, NEURON_EXEC_CORE_RESET, 1u << 1);
	EXPECT_EQ(status(&self->s), NEURON_SLOT_STATUS_RUNNING);
	xwr(self->h, NEURON_EXEC_CORE_RESET, 1u << 2);
	ASSERT_TRUE(pop(&self->s, &self->c));
	EXPECT_EQ(self->c.status, NEURON_FAULT_ABORTED);
	EXPECT_EQ(self->c.seqno, 77);
	EXPECT_GT(self->c.instructions, 1000);
	EXPECT_EQ(*(uint64_t *)(self->h->mem + PAGES + 0x2000), 1);
	EXPECT_TRUE(WAIT_FOR(status(&self->s) == NEURON_SLOT_STATUS_RUNNING));
}

TEST_F(loop, firmware_device_reset)
{
	uint64_t misc = NEURON_V3_MISC_RAM;

	wr(self->h, misc + NEURON_MISC_RESET, NEURON_MISC_RESET_DEVICE);
	wr(self->h, misc + NEURON_MISC_TRIGGER, 1);
	ASSERT_TRUE(WAIT_FOR(rd(self->h, misc + NEURON_MISC_RESET) == 0));
	EXPECT_EQ(status(&self->s), 0);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_CTRL), 0);
	EXPECT_FALSE(ready(&self->s));
}

TEST_F(loop, reset_from_pci)
{
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_FLR);
	EXPECT_EQ(status(&self->s), 0);
	neuron_chip_idle(self->h->chip);
}

/* INVALIDATE passes a job that never ends. */
TEST_F(loop, invalidate)
{
	unsigned int i;

	for (i = 0; i < 200; i++) {
		xwr64(self->h, self->s.reg + NEURON_SLOT_INV_SIZE, ~0ull);
		xwr(self->h, self->s.reg + NEURON_SLOT_INV, 1);
		ASSERT_TRUE(WAIT_FOR(xrd(self->h, self->s.reg + NEURON_SLOT_INV) == 0));
	}
	EXPECT_EQ(status(&self->s), NEURON_SLOT_STATUS_RUNNING);
}

/* More endless jobs than the host has CPUs do not keep a short one from running. */
TEST_F(loop, others_run_beside)
{
	struct neuron_job_desc job = job_of(1, 0);
	struct slot t;
	unsigned int i;

	job.program_va = VA_PROGRAM + 0x2000;
	for (i = 3; i < 8; i++) {
		slot_open(&t, self->h, 8 + i, 2, 0xff);
		job.core_mask = 1u << i;
		push(&t, &job);
		bell(&t);
		ASSERT_TRUE(WAIT_FOR(xrd64(self->h, t.reg + NEURON_SLOT_RETIRED) > 0));
	}
	slot_open(&t, self->h, 20, 2, 0xff);
	job = job_of(2, 1);
	for (i = 0; i < 20; i++)
		ASSERT_EQ(run(&t, &job, &self->c), 0);
}

/* A job for two cores, one of them busy: jobs for the other stop to get in between. */
TEST_F(loop, gang_is_not_starved)
{
	struct neuron_job_desc one = job_of(1, 1u << 3), two = job_of(9, 3u << 2);
	struct slot b, gang;
	unsigned int i;

	slot_open(&b, self->h, 2, 6, 0xff);
	slot_open(&gang, self->h, 3, 2, 0xff);
	two.program_va += 0x1000;
	push(&gang, &two);
	bell(&gang);
	for (i = 0; i < 64; i++)
		push(&b, &one);
	bell(&b);
	EXPECT_TRUE(WAIT_FOR(xrd(self->h, b.reg + NEURON_SLOT_HEAD) > 1));
	usleep(50000);
	i = xrd(self->h, b.reg + NEURON_SLOT_HEAD);
	EXPECT_GT(i, 1);
	EXPECT_LT(i, 64);
	EXPECT_FALSE(ready(&gang));
	/* Core 2 is freed: first the slot's second endless job would want it. */
	xwr(self->h, self->s.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	ASSERT_TRUE(pop(&gang, &self->c));
	EXPECT_EQ(self->c.status, 0);
	EXPECT_EQ(self->c.core_mask, 3u << 2);
	for (i = 0; i < 64; i++)
		ASSERT_TRUE(pop(&b, &self->c));
}

TEST_HARNESS_MAIN
