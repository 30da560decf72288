// SPDX-License-Identifier: MIT
/* Contexts, programs and faults of the device interface. */
#include "kselftest_harness.h"

#include <pthread.h>
#include <time.h>

#include "dev_common.h"

FIXTURE(exec) {
	const struct dev_backend *be;
	struct dev *dev;
	struct dev_ctx *ctx;
	struct dev_timeline *tl;
	struct dev_program p;
};

FIXTURE_SETUP(exec)
{
	self->be = dev_backend_select();
	ASSERT_GT(self->be->count(), 0);
	ASSERT_EQ(0, self->be->open(0, &self->dev));
	if (!self->dev->info.has_exec)
		SKIP(return, "the chip has no execution block");
	ASSERT_EQ(0, self->be->ctx_create(self->dev, 1, false, &self->ctx));
	ASSERT_EQ(0, self->be->timeline_create(self->dev, &self->tl));
	ASSERT_EQ(0, dev_program_init(self->dev, 1, &self->p));
	self->p.code[0].opcode = NEURON_OP_NOP;
	self->p.code[0].words = 1;
	dev_program_stream(&self->p, 1);
}

FIXTURE_TEARDOWN(exec)
{
	self->be->ctx_destroy(self->ctx);
	dev_program_fini(self->dev, &self->p);
	self->be->timeline_destroy(self->tl);
	self->be->close(self->dev);
}

TEST_F(exec, a_program_runs_and_is_counted)
{
	struct dev_exec exec = dev_program_exec(&self->p, 42);
	struct dev_core_stats before, after;

	ASSERT_EQ(0, self->be->core_stats(self->dev, 0, &before));
	ASSERT_EQ(0, dev_program_run(self->dev, self->ctx, &exec, self->tl, 1));
	EXPECT_EQ(42, __atomic_load_n(self->p.fence, __ATOMIC_ACQUIRE));
	EXPECT_EQ(NEURON_FAULT_NONE, self->p.result->status);
	EXPECT_EQ(1, self->p.result->phase);
	EXPECT_EQ(1, self->p.result->instructions);
	EXPECT_EQ(1, self->p.result->core_mask);
	EXPECT_GE(self->p.result->wall_end, self->p.result->wall_start);
	ASSERT_EQ(0, self->be->core_stats(self->dev, 0, &after));
	EXPECT_EQ(before.jobs + 1, after.jobs);
	EXPECT_EQ(before.insns + 1, after.insns);
	EXPECT_EQ(before.faults, after.faults);
	EXPECT_GT(after.wall_busy_ns, before.wall_busy_ns);
	EXPECT_EQ(-EINVAL, self->be->core_stats(self->dev, self->dev->info.cores, &after));
}

/* More jobs than any ring has entries, none waited for. */
TEST_F(exec, jobs_of_a_context_run_in_order)
{
	const unsigned int jobs = 1000;
	unsigned int i;

	for (i = 1; i <= jobs; i++) {
		struct dev_exec exec = dev_program_exec(&self->p, i);
		struct dev_sync sync = { .signal = { self->tl, i } };

		ASSERT_EQ(0, self->be->exec(self->ctx, &exec, &sync));
	}
	ASSERT_EQ(0, self->be->wait((struct dev_point){ self->tl, jobs }, WAIT_NS));
	EXPECT_EQ(jobs, __atomic_load_n(self->p.fence, __ATOMIC_ACQUIRE));
}

TEST_F(exec, a_fault_is_reported_and_the_next_job_runs)
{
	struct dev_exec exec = dev_program_exec(&self->p, 7);
	struct neuron_fault_record fault;

	EXPECT_FALSE(self->be->ctx_fault(self->ctx, &fault));
	self->p.header->magic = 0x12345678;
	EXPECT_EQ(-EIO, dev_program_run(self->dev, self->ctx, &exec, self->tl, 1));
	ASSERT_TRUE(self->be->ctx_fault(self->ctx, &fault));
	EXPECT_EQ(NEURON_FAULT_BAD_PROGRAM, fault.code);
	/* Fence and result are written for a job that faulted too. */
	EXPECT_EQ(7, __atomic_load_n(self->p.fence, __ATOMIC_ACQUIRE));
	EXPECT_EQ(NEURON_FAULT_BAD_PROGRAM, self->p.result->status);
	self->p.header->magic = NEURON_PROGRAM_MAGIC;
	EXPECT_EQ(0, dev_program_run(self->dev, self->ctx, &exec, self->tl, 2));
}

TEST_F(exec, an_illegal_instruction_is_named)
{
	struct dev_exec exec = dev_program_exec(&self->p, 1);
	struct neuron_fault_record fault;

	self->p.code[1].opcode = 0xee;
	self->p.code[1].words = 1;
	self->p.code[1].debug_id = 77;
	dev_program_stream(&self->p, 2);
	EXPECT_EQ(-EIO, dev_program_run(self->dev, self->ctx, &exec, self->tl, 1));
	ASSERT_TRUE(self->be->ctx_fault(self->ctx, &fault));
	EXPECT_EQ(NEURON_FAULT_ILLEGAL_INSN, fault.code);
	EXPECT_EQ(NEURON_ENGINE_SP, fault.engine);
	EXPECT_EQ(1, fault.pc);
	EXPECT_EQ(77, fault.debug_id);
}

TEST_F(exec, unmapped_memory_is_a_page_fault)
{
	struct dev_exec exec = dev_program_exec(&self->p, 1);
	struct neuron_fault_record fault;
	struct dev_bo *bo;

	ASSERT_EQ(0, self->be->bo_alloc(self->dev, 65536, DEV_MEM_HBM, 0, &bo));
	exec.program_va = bo->va;
	/* Mapped, but all zero. */
	EXPECT_EQ(-EIO, dev_program_run(self->dev, self->ctx, &exec, self->tl, 1));
	ASSERT_TRUE(self->be->ctx_fault(self->ctx, &fault));
	EXPECT_EQ(NEURON_FAULT_BAD_PROGRAM, fault.code);
	self->be->bo_free(bo);
	EXPECT_EQ(-EIO, dev_program_run(self->dev, self->ctx, &exec, self->tl, 2));
	ASSERT_TRUE(self->be->ctx_fault(self->ctx, &fault));
	EXPECT_EQ(NEURON_FAULT_PAGE_NOT_MAPPED, fault.code);
	EXPECT_EQ(exec.program_va, fault.addr);
}

TEST_F(exec, bad_arguments)
{
	struct dev_exec exec = dev_program_exec(&self->p, 1);
	struct dev_sync sync = { .signal = { self->tl, 1 } };
	struct dev_ctx *ctx;

	exec.core_mask = 2;	/* not the context's */
	EXPECT_EQ(-EINVAL, self->be->exec(self->ctx, &exec, &sync));
	exec.core_mask = 0;
	exec.flags = 1u << 31;
	EXPECT_EQ(-EINVAL, self->be->exec(self->ctx, &exec, &sync));
	EXPECT_EQ(-ETIME, self->be->wait(sync.signal, 0));
	EXPECT_EQ(-EINVAL, self->be->ctx_create(self->dev, 1u << self->dev->info.cores, false, &ctx));
}

TEST_F(exec, cores_are_claimed)
{
	struct dev_ctx *a, *b;

	EXPECT_EQ(-EBUSY, self->be->ctx_create(self->dev, 1, false, &a));
	EXPECT_EQ(-EBUSY, self->be->ctx_create(self->dev, 1, true, &a));
	EXPECT_EQ(-EBUSY, self->be->ctx_create(self->dev, 3, false, &a));
	ASSERT_EQ(0, self->be->ctx_create(self->dev, 2, true, &a));
	ASSERT_EQ(0, self->be->ctx_create(self->dev, 2, true, &b));
	self->be->ctx_destroy(a);
	EXPECT_EQ(-EBUSY, self->be->ctx_create(self->dev, 2, false, &a));
	self->be->ctx_destroy(b);
	ASSERT_EQ(0, self->be->ctx_create(self->dev, 2, false, &a));
	self->be->ctx_destroy(a);
}

struct worker {
	struct dev *dev;
	unsigned int core;
	bool shared;
	int result;
};

static int worker_jobs(struct worker *w, struct dev_ctx *ctx, struct dev_timeline *tl)
{
	struct dev_program p;
	unsigned int i;
	int ret = dev_program_init(w->dev, 1, &p);

	for (i = 1; !ret && i <= 200; i++) {
		struct dev_exec exec = dev_program_exec(&p, i);

		ret = dev_program_run(w->dev, ctx, &exec, tl, i);
		if (!ret && __atomic_load_n(p.fence, __ATOMIC_ACQUIRE) != i)
			ret = -EBADMSG;
	}
	dev_program_fini(w->dev, &p);
	return ret;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	const struct dev_backend *be = w->dev->backend;
	struct dev_timeline *tl = NULL;
	struct dev_ctx *ctx = NULL;

	w->result = be->ctx_create(w->dev, 1u << w->core, w->shared, &ctx);
	if (!w->result)
		w->result = be->timeline_create(w->dev, &tl);
	if (!w->result)
		w->result = worker_jobs(w, ctx, tl);
	if (ctx)
		be->ctx_destroy(ctx);
	if (tl)
		be->timeline_destroy(tl);
	return NULL;
}

/* Four threads: two share a core, memory comes and goes meanwhile. */
TEST_F(exec, contexts_in_several_threads)
{
	struct worker w[4] = {
		{ self->dev, 1, true, -1 }, { self->dev, 1, true, -1 },
		{ self->dev, self->dev->info.cores > 2 ? 2 : 1, true, -1 },
		{ self->dev, self->dev->info.cores > 3 ? 3 : 1, true, -1 },
	};
	pthread_t thread[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, worker_main, &w[i]));
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(0, w[i].result);
	}
}

/* Copy in, program, copy out: ordered by points only, none waited for between. */
TEST_F(exec, copies_and_programs_are_ordered_by_points)
{
	struct dev_exec exec = dev_program_exec(&self->p, 3);
	const size_t size = 16 << 20;
	struct dev_point wait = { self->tl, 1 };
	struct dev_sync sync = { .signal = { self->tl, 1 } };
	uint8_t *data = malloc(size);
	uint64_t back = 0;
	struct dev_bo *bo;

	ASSERT_NE(NULL, data);
	dev_fill_random(data, size, 3);
	ASSERT_EQ(0, self->be->bo_alloc(self->dev, size, DEV_MEM_HBM, 0, &bo));
	ASSERT_EQ(0, self->be->copy(self->dev, (struct dev_loc){ .bo = bo },
				    (struct dev_loc){ .ptr = data }, size, &sync));
	exec.fence_va = bo->va + size - 8;
	exec.fence_value = 0x1122334455667788ull;
	sync = (struct dev_sync){ .wait = &wait, .wait_count = 1, .signal = { self->tl, 2 } };
	ASSERT_EQ(0, self->be->exec(self->ctx, &exec, &sync));
	wait.value = 2;
	sync.signal.value = 3;
	ASSERT_EQ(0, self->be->copy(self->dev, (struct dev_loc){ .ptr = &back },
				    (struct dev_loc){ .bo = bo, .offset = size - 8 }, 8, &sync));
	ASSERT_EQ(0, self->be->wait((struct dev_point){ self->tl, 3 }, WAIT_NS));
	EXPECT_EQ(exec.fence_value, back);
	self->be->bo_free(bo);
	free(data);
}

struct runner {
	struct dev *dev;
	struct dev_ctx *ctx;
	struct dev_timeline *tl;
	struct dev_exec exec;
	int result;
};

static void *runner_main(void *arg)
{
	struct runner *r = arg;

	r->result = dev_program_run(r->dev, r->ctx, &r->exec, r->tl, 1);
	return NULL;
}

/* A loop without end is ended by destroying its context, also from another thread. */
TEST_F(exec, an_endless_program_is_ended_with_its_context)
{
	struct timespec nap = { 0, 50000000 };
	struct runner r = { self->dev, self->ctx, self->tl, dev_program_exec(&self->p, 9), 1 };
	struct dev_core_stats stats;
	struct dev_ctx *ctx;
	uint64_t insns = 0;
	pthread_t thread;

	self->p.code[0].opcode = NEURON_OP_COMPARE_BRANCH;
	self->p.code[0].op[0] = NEURON_ALU_EQUAL;
	self->p.code[0].imm[0].kind = NEURON_IMM_I32;
	self->p.code[0].imm[1].kind = NEURON_IMM_I32;
	ASSERT_EQ(0, pthread_create(&thread, NULL, runner_main, &r));
	do {
		nanosleep(&nap, NULL);
		ASSERT_EQ(0, self->be->core_stats(self->dev, 0, &stats));
		insns = stats.insns;
	} while (!insns);
	nanosleep(&nap, NULL);
	ASSERT_EQ(0, self->be->core_stats(self->dev, 0, &stats));
	EXPECT_GT(stats.insns, insns);
	self->be->ctx_destroy(self->ctx);
	pthread_join(thread, NULL);
	EXPECT_EQ(-ECANCELED, r.result);
	/* The core is free and works. */
	self->p.code[0].opcode = NEURON_OP_NOP;
	ASSERT_EQ(0, self->be->ctx_create(self->dev, 1, false, &ctx));
	self->ctx = ctx;
	EXPECT_EQ(0, dev_program_run(self->dev, self->ctx, &r.exec, self->tl, 2));
}

/* Freeing memory that a running program uses is a fault of that program only. */
TEST_F(exec, a_program_that_loses_its_memory_faults_or_ends)
{
	struct dev_program other;
	struct dev_exec exec;
	unsigned int i;

	for (i = 1; i <= 50; i++) {
		struct dev_sync sync = { .signal = { self->tl, 2 * i - 1 } };
		int ret;

		ASSERT_EQ(0, dev_program_init(self->dev, 1, &other));
		exec = dev_program_exec(&other, i);
		ASSERT_EQ(0, self->be->exec(self->ctx, &exec, &sync));
		dev_program_fini(self->dev, &other);
		ret = self->be->wait(sync.signal, WAIT_NS);
		EXPECT_TRUE(ret == 0 || ret == -EIO);
		exec = dev_program_exec(&self->p, i);
		EXPECT_EQ(0, dev_program_run(self->dev, self->ctx, &exec, self->tl, 2 * i));
	}
}

TEST_HARNESS_MAIN
