// SPDX-License-Identifier: MIT
/* EXEC jobs: programs of a few hand-encoded instructions, and how they fail. */
#include "kselftest_harness.h"

#include "drv.h"

#define DATA_VA		0x20000000ull
#define DATA_BYTES	(2 * MIB)

FIXTURE(exec) {
	int fd;
	uint32_t vm;
	uint32_t ctx;
	uint32_t cores;
	uint32_t sync;
	uint32_t data;
	uint8_t *mem;
	struct drv_prog p;
};

FIXTURE_SETUP(exec)
{
	struct drm_neuron_query_device q = {};

	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, &q, sizeof(q)));
	if (!(q.flags & DRM_NEURON_DEVICE_HAS_EXEC))
		SKIP(return, "the chip has no execution block");
	ASSERT_EQ(0, drv_vm(self->fd, &self->vm));
	self->cores = 0;
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &self->cores, 1, &self->ctx));
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &self->sync));
	ASSERT_EQ(0, drv_prog_init(self->fd, self->vm, &self->p));
	ASSERT_EQ(0, drv_bo(self->fd, DATA_BYTES, 0, &self->data));
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, self->data, 0, DATA_VA, DATA_BYTES, 0));
	self->mem = drv_map(self->fd, self->data, DATA_BYTES);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->p.code[0] = drv_insn(NEURON_OP_NOP);
	self->p.code[1] = drv_insn(NEURON_OP_HALT);
	drv_prog_stream(&self->p, 2, 1);
}

FIXTURE_TEARDOWN(exec)
{
	close(self->fd);
}

/* Argument 0 to SBUF, then SBUF to argument 1: @count floats in one partition. */
static void move_program(struct drv_prog *p, uint32_t count, uint32_t src_bytes)
{
	struct neuron_dma_operand *op;
	struct neuron_insn *in;
	int i;

	for (i = 0; i < 2; i++) {
		in = &p->code[3 * i];
		*in = drv_insn(NEURON_OP_DMA_COPY);
		in->words = 3;
		/* The second waits until the first has arrived. */
		if (i) {
			in->wait[0].sem = 5;
			in->wait[0].cond = NEURON_WAIT_GE;
			in->wait[0].value = 1;
		}
		in->update.sem = i ? 6 : 5;
		in->update.op = NEURON_UPDATE_SEM_ADD;
		in->update.value = 1;
		in->ap[i].space = NEURON_SPACE_SBUF;
		in->ap[i].dtype = NEURON_DTYPE_FLOAT32;
		in->ap[i].part_count = 1;
		in->ap[i].dims = 1;
		in->ap[i].num[0] = count;
		in->ap[i].step[0] = 1;
		/* Word 1 is the destination, word 2 the source: one of them is HBM. */
		op = (struct neuron_dma_operand *)&p->code[3 * i + 1];
		memset(op, 0, 2 * sizeof(*op));
		op[i ? 1 : 0].space = NEURON_SPACE_SBUF;
		op += i ? 0 : 1;
		op->space = NEURON_SPACE_HBM;
		op->dtype = NEURON_DTYPE_FLOAT32;
		op->arg = i;
		op->dims = 1;
		op->offset_reg = NEURON_REG_NONE;
		op->count_reg = NEURON_REG_NONE;
		op->count[0] = count;
		op->stride[0] = 4;
		p->args[i].va = DATA_VA + i * MIB;
		p->args[i].size = i ? count * 4 : src_bytes;
		p->args[i].access = i ? NEURON_ARG_WRITE : NEURON_ARG_READ;
	}
	p->code[6] = drv_insn(NEURON_OP_EVENT_SEMAPHORE);
	p->code[6].wait[0].sem = 6;
	p->code[6].wait[0].cond = NEURON_WAIT_GE;
	p->code[6].wait[0].value = 1;
	drv_prog_stream(p, 7, 1);
	p->header->arg_count = 2;
}

static struct drm_neuron_job move_job(void)
{
	struct drm_neuron_job job = drv_exec();

	job.exec.args_va = PROG_VA + PROG_ARGS;
	job.exec.arg_count = 2;
	return job;
}

TEST_F(exec, a_program_runs)
{
	struct drm_neuron_job job = drv_exec();

	job.exec.fence_va = PROG_VA + PROG_FENCE;
	job.exec.fence_value = 0x1122334455667788;
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_NONE, self->p.result->status);
	EXPECT_EQ(1, self->p.result->phase);
	EXPECT_EQ(2, self->p.result->instructions);
	EXPECT_EQ(self->cores, self->p.result->core_mask);
	EXPECT_LE(self->p.result->wall_start, self->p.result->wall_end);
	EXPECT_EQ(0x1122334455667788, *self->p.fence);
}

TEST_F(exec, data_moves)
{
	struct drm_neuron_job job = move_job();

	drv_pattern(self->mem, 4096, 1);
	move_program(&self->p, 1024, 4096);
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(0, memcmp(self->mem, self->mem + MIB, 4096));
	EXPECT_EQ(0, self->mem[MIB + 4096]);
}

TEST_F(exec, jobs_run_in_order_and_many_at_once)
{
	struct drm_neuron_job jobs[60];
	struct drm_neuron_sync_op op;
	uint32_t sync[10];
	uint64_t i;
	int round;

	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync[round]));
		for (i = 0; i < 60; i++) {
			jobs[i] = drv_exec();
			jobs[i].exec.fence_va = PROG_VA + PROG_FENCE;
			jobs[i].exec.fence_value = round * 60 + i + 1;
		}
		op = (struct drm_neuron_sync_op) {
			.flags = DRM_NEURON_SYNC_SIGNAL, .handle = sync[round],
		};
		drv_syncs(&jobs[59], &op, 1);
		ASSERT_EQ(0, drv_submit(self->fd, self->ctx, jobs, 60));
	}
	EXPECT_EQ(0, drv_bo_wait(self->fd, self->p.bo, INT64_MAX));
	for (round = 0; round < 10; round++)
		EXPECT_EQ(0, drv_fence_error(self->fd, sync[round]));
	EXPECT_EQ(600, *self->p.fence);
}

static int fault_code(int fd, uint32_t ctx, uint32_t *faults)
{
	struct neuron_fault_record rec;
	struct drm_neuron_ctx_state st;

	if (drv_ctx_state(fd, ctx, &st))
		return -1;
	memcpy(&rec, st.fault, sizeof(rec));
	*faults = st.faults;
	return rec.code;
}

TEST_F(exec, a_fault_says_what_and_where)
{
	struct drm_neuron_job job = drv_exec();
	struct drm_neuron_ctx_state st;
	struct neuron_fault_record rec;

	self->p.code[1].opcode = 0xff;
	self->p.code[1].debug_id = 77;
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	ASSERT_EQ(0, drv_ctx_state(self->fd, self->ctx, &st));
	EXPECT_EQ(1, st.faults);
	EXPECT_EQ(0, st.state);
	memcpy(&rec, st.fault, sizeof(rec));
	EXPECT_EQ(NEURON_FAULT_ILLEGAL_INSN, rec.code);
	EXPECT_EQ(NEURON_ENGINE_SP, rec.engine);
	EXPECT_EQ(1, rec.pc);
	EXPECT_EQ(77, rec.debug_id);
	EXPECT_EQ(0xff, rec.opcode);
	EXPECT_EQ(NEURON_FAULT_ILLEGAL_INSN, self->p.result->status);
	/* The context goes on. */
	self->p.code[1] = drv_insn(NEURON_OP_HALT);
	EXPECT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
}

TEST_F(exec, faults_of_all_kinds)
{
	struct drm_neuron_job job = drv_exec();
	uint32_t n;

	job.exec.program_va = 0x7000000000;
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_PAGE_NOT_MAPPED, fault_code(self->fd, self->ctx, &n));

	job = drv_exec();
	self->p.header->magic++;
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_BAD_PROGRAM, fault_code(self->fd, self->ctx, &n));
	self->p.header->magic--;

	/* Without data there is nothing to check: refused by the device, not by the kernel. */
	job.exec.flags = NEURON_JOB_TIMING_ONLY | NEURON_JOB_STRICT;
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_BAD_JOB, fault_code(self->fd, self->ctx, &n));

	/* Four bytes less than the program reads. */
	job = move_job();
	move_program(&self->p, 1024, 4092);
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_ARG_BOUNDS, fault_code(self->fd, self->ctx, &n));

	move_program(&self->p, 1024, 4096);
	self->p.args[1].access = NEURON_ARG_READ;
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_ARG_ACCESS, fault_code(self->fd, self->ctx, &n));
	EXPECT_EQ(5, n);

	move_program(&self->p, 1024, 4096);
	EXPECT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
}

TEST_F(exec, memory_that_is_not_mapped_is_out_of_reach)
{
	struct drm_neuron_job job = move_job();
	uint32_t n;

	move_program(&self->p, 1024, 4096);
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	/* The translation was used a moment ago: it must not be remembered. */
	ASSERT_EQ(0, drv_unbind(self->fd, self->vm, DATA_VA + MIB, PAGE));
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_PAGE_NOT_MAPPED, fault_code(self->fd, self->ctx, &n));
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, self->data, MIB, DATA_VA + MIB, PAGE,
			      DRM_NEURON_BIND_READONLY));
	EXPECT_EQ(-EIO, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(NEURON_FAULT_PAGE_READ_ONLY, fault_code(self->fd, self->ctx, &n));
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, self->data, MIB, DATA_VA + MIB, PAGE, 0));
	EXPECT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
}

TEST_F(exec, addresses_go_where_they_were_bound)
{
	struct drm_neuron_job job = move_job();
	uint32_t other;
	uint8_t *mem;

	/* Replace a page in the middle of a 2 MiB mapping by one of host memory. */
	ASSERT_EQ(0, drv_bo(self->fd, PAGE, DRM_NEURON_BO_HOST, &other));
	mem = drv_map(self->fd, other, PAGE);
	ASSERT_NE(MAP_FAILED, mem);
	drv_pattern(self->mem, 4096, 3);
	move_program(&self->p, 1024, 4096);
	ASSERT_EQ(0, drv_bind(self->fd, self->vm, other, 0, DATA_VA + MIB, PAGE, 0));
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(0, memcmp(mem, self->mem, 4096));
	EXPECT_EQ(0, self->mem[MIB]);
	/* The neighbours are still what they were. */
	self->p.args[1].va = DATA_VA + MIB + PAGE;
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(0, memcmp(self->mem + MIB + PAGE, self->mem, 4096));
	self->p.args[1].va = DATA_VA + MIB - PAGE;
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(0, memcmp(self->mem + MIB - PAGE, self->mem, 4096));
}

TEST_F(exec, bad_arguments)
{
	struct drm_neuron_job job;

#define BAD(err, change) do {							\
		job = drv_exec();						\
		change;								\
		EXPECT_EQ(err, drv_submit(self->fd, self->ctx, &job, 1))	\
			TH_LOG(#change);					\
	} while (0)
	BAD(-EINVAL, job.exec.pad = 1);
	BAD(-EINVAL, job.exec.flags = 1u << 31);
	BAD(-EINVAL, job.exec.flags = NEURON_JOB_FLAGS + 1);
	BAD(-EINVAL, job.exec.core_mask = ~self->cores);
	BAD(-EINVAL, job.exec.arg_count = NEURON_MAX_ARGS + 1);
	BAD(-EINVAL, job.exec.program_va++);
	BAD(-EINVAL, job.exec.args_va = 4);
	BAD(-EINVAL, job.exec.fence_va = 4);
	BAD(-EINVAL, job.flags = 1);
	BAD(-EINVAL, job.reserved[10] = 1);
	BAD(-EINVAL, job.reserved[15] = 1ull << 63);
#undef BAD
	job = drv_exec();
	EXPECT_EQ(-ENOENT, drv_submit(self->fd, 0x7fffffff, &job, 1));
	EXPECT_EQ(-ENOENT, drv_submit(self->fd, 0, &job, 1));
}

TEST_F(exec, a_context_without_cores_runs_nothing)
{
	struct drm_neuron_job job = drv_exec();
	uint32_t ctx;

	ASSERT_EQ(0, drv_ctx(self->fd, 0, 0, NULL, 0, &ctx));
	EXPECT_EQ(-EINVAL, drv_submit(self->fd, ctx, &job, 1));
}

TEST_F(exec, destroy_ends_a_program_that_never_ends)
{
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL };
	struct drm_neuron_job jobs[3];
	uint32_t sync[3], i;
	int64_t start;

	drv_prog_loop(&self->p);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync[i]));
		jobs[i] = drv_exec();
		op.handle = sync[i];
		drv_syncs(&jobs[i], &op, 1);
		ASSERT_EQ(0, drv_submit(self->fd, self->ctx, &jobs[i], 1));
	}
	EXPECT_EQ(-ETIME, drv_wait(self->fd, sync[0], 100));
	EXPECT_EQ(-ETIME, drv_bo_wait(self->fd, self->p.bo, drv_now() + 10000000));
	start = drv_now();
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, self->ctx));
	EXPECT_LT(drv_now() - start, 5000000000ll);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, drv_wait(self->fd, sync[i], 1000));
		EXPECT_EQ(-ECANCELED, drv_fence_error(self->fd, sync[i]));
	}
	EXPECT_EQ(-ENOENT, drv_submit(self->fd, self->ctx, jobs, 1));
	/* The core is free and works. */
	self->p.code[0] = drv_insn(NEURON_OP_NOP);
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &self->cores, 0, &self->ctx));
	jobs[0] = drv_exec();
	EXPECT_EQ(0, drv_run(self->fd, self->ctx, &jobs[0], self->sync));
}

TEST_F(exec, unmapping_what_a_program_uses_ends_it)
{
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL };
	struct drm_neuron_job job = move_job();
	uint32_t n;

	/* Moves data for ever; the last instruction goes back to the first. */
	move_program(&self->p, 1024, 4096);
	self->p.code[3].wait[0].cond = NEURON_WAIT_GE_SUB;
	self->p.code[6].wait[0].cond = NEURON_WAIT_GE_SUB;
	self->p.code[7] = drv_insn(NEURON_OP_COMPARE_BRANCH);
	self->p.code[7].op[0] = NEURON_ALU_EQUAL;
	self->p.code[7].imm[0].kind = NEURON_IMM_I32;
	self->p.code[7].imm[0].dtype = NEURON_DTYPE_INT32;
	self->p.code[7].imm[1].kind = NEURON_IMM_I32;
	self->p.code[7].imm[1].dtype = NEURON_DTYPE_INT32;
	drv_prog_stream(&self->p, 8, 1);
	op.handle = self->sync;
	drv_syncs(&job, &op, 1);
	ASSERT_EQ(0, drv_submit(self->fd, self->ctx, &job, 1));
	EXPECT_EQ(-ETIME, drv_wait(self->fd, self->sync, 50));
	ASSERT_EQ(0, drv_unbind(self->fd, self->vm, DATA_VA + MIB, PAGE));
	ASSERT_EQ(0, drv_wait(self->fd, self->sync, 5000));
	EXPECT_EQ(-EIO, drv_fence_error(self->fd, self->sync));
	EXPECT_EQ(NEURON_FAULT_PAGE_NOT_MAPPED, fault_code(self->fd, self->ctx, &n));
}

TEST_F(exec, counters_and_fdinfo_move)
{
	struct drm_neuron_query_core before[8] = {}, after[8] = {};
	struct drm_neuron_job job = drv_exec();
	uint32_t c = __builtin_ctz(self->cores);
	uint64_t ns = 0;
	char path[64], line[128], key[32];
	FILE *f;

	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_CORES, before, sizeof(before)));
	EXPECT_EQ(DRM_NEURON_CORE_CLAIMED, before[c].flags);
	EXPECT_EQ(1, before[c].contexts);
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_CORES, after, sizeof(after)));
	EXPECT_EQ(before[c].jobs + 1, after[c].jobs);
	EXPECT_EQ(before[c].insns + 2, after[c].insns);
	EXPECT_GT(after[c].wall_busy_ns, before[c].wall_busy_ns);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	snprintf(key, sizeof(key), "drm-engine-nc%u:", c);
	f = fopen(path, "r");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)))
			ns = strtoull(line + strlen(key), NULL, 10);
		if (!strncmp(line, "neuron-cores:", 13))
			EXPECT_EQ(self->cores, strtoul(line + 13, NULL, 0));
	}
	fclose(f);
	EXPECT_EQ(self->p.result->wall_end - self->p.result->wall_start, ns);
}

TEST_HARNESS_MAIN
