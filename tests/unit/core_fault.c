// SPDX-License-Identifier: MIT
/*
 * What must not go wrong: malformed jobs and programs, deadlocks, endless loops,
 * owners that change, several cores.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "fake_vm.h"

#define SBUF	NEURON_SPACE_SBUF
#define F32	NEURON_DTYPE_FLOAT32
#define DVE	NEURON_ENGINE_DVE
#define ACT	NEURON_ENGINE_ACT
#define SP	NEURON_ENGINE_SP

#define FAULT(p)	(&(p)->job.fault)

FIXTURE(core)
{
	struct prog *p;
};

FIXTURE_SETUP(core)
{
	self->p = prog_new(3, 1);
}

FIXTURE_TEARDOWN(core)
{
	prog_free(self->p);
}

static struct neuron_insn memset_insn(uint32_t offset)
{
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);

	w.ap[0] = ap_row(SBUF, F32, 0, 32, offset, 64);
	w.imm[0] = imm_f32(1);
	return w;
}

/* Runs a job again with the header as a test has changed it. */
static unsigned int rerun(struct prog *p)
{
	chip_job_run(&p->job);
	return le16toh(FAULT(p)->code);
}

TEST_F(core, malformed_headers)
{
	struct neuron_program_header *h, good;
	struct neuron_insn w = memset_insn(0);
	struct prog *p = self->p;

	prog_add(p, 0, DVE, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	h = vm_at(p->vm, VM_BASE);
	good = *h;

#define BAD(field, value)							\
	do {									\
		*h = good;							\
		h->field = value;						\
		EXPECT_EQ(rerun(p), NEURON_FAULT_BAD_PROGRAM) {			\
			TH_LOG(#field " = " #value);				\
		}								\
	} while (0)

	BAD(magic, 0);
	BAD(isa_version, 99);
	BAD(nc_version, 2);
	BAD(cores, 2);
	BAD(size, 100);
	BAD(size, htole64(~0ull));
	BAD(arg_count, 1);
	BAD(flags, 1);
	BAD(stream[0][DVE].offset, htole64(sizeof(*h) - NEURON_WORD_BYTES));
	BAD(stream[0][DVE].offset, htole64(~0ull - 127));
	BAD(stream[0][DVE].offset, good.stream[0][DVE].offset + 1);
	BAD(stream[0][DVE].words, htole32(2));
	BAD(stream[0][DVE].words, htole32(0x02000000));
	BAD(stream[0][DVE].reserved, 1);
	BAD(stream[0][NEURON_ENGINE_DMA].words, htole32(1));
	BAD(stream[0][0].words, htole32(1));
	*h = good;
	EXPECT_EQ(rerun(p), NEURON_FAULT_NONE);
}

TEST_F(core, malformed_jobs)
{
	struct neuron_insn w = memset_insn(0);
	struct prog *p = self->p;

	prog_add(p, 0, DVE, &w);
	prog_arg(p, 100, NEURON_ARG_READ);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	p->job.desc.program_va = htole64(VM_BASE + 64);
	EXPECT_EQ(rerun(p), NEURON_FAULT_BAD_JOB);
	p->job.desc.program_va = htole64(VM_BASE + VM_SIZE);
	EXPECT_EQ(rerun(p), NEURON_FAULT_PAGE_NOT_MAPPED);
	p->job.desc.program_va = htole64(~127ull);
	EXPECT_EQ(rerun(p), NEURON_FAULT_PAGE_NOT_MAPPED);
	p->job.desc.program_va = htole64(VM_BASE);
	p->job.desc.args_va = htole64(VM_BASE + VM_SIZE);
	EXPECT_EQ(rerun(p), NEURON_FAULT_PAGE_NOT_MAPPED);
	p->job.desc.arg_count = htole32(NEURON_MAX_ARGS + 1);
	EXPECT_NE(rerun(p), NEURON_FAULT_NONE);
	prog_run(p);
	p->job.desc.flags = htole32(NEURON_JOB_TIMING_ONLY | NEURON_JOB_STRICT);
	EXPECT_EQ(rerun(p), NEURON_FAULT_BAD_JOB);
	/* An argument that wraps around. */
	p->arg[0].size = htole64(~0ull);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_BAD_JOB);
}

TEST_F(core, illegal_instructions)
{
	struct neuron_insn w = memset_insn(0);
	struct prog *p = self->p;

	w.opcode = 0xee;
	w.debug_id = htole32(42);
	prog_add(p, 0, SP, &(struct neuron_insn){ .opcode = NEURON_OP_NOP, .words = 1 });
	prog_add(p, 0, SP, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_ILLEGAL_INSN);
	EXPECT_EQ(le32toh(FAULT(p)->pc), 1);
	EXPECT_EQ(le32toh(FAULT(p)->debug_id), 42);
	EXPECT_EQ(FAULT(p)->engine, SP);
	EXPECT_EQ(FAULT(p)->opcode, 0xee);
	/* Wrong engine, wrong length, unknown flag, a stream that ends inside. */
	prog_reset(p);
	w = memset_insn(0);
	prog_add(p, 0, ACT, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_ILLEGAL_INSN);
	prog_reset(p);
	w.words = 2;
	prog_add(p, 0, DVE, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_ILLEGAL_INSN);
	prog_reset(p);
	w = memset_insn(0);
	w.flags = htole16(0x8000);
	prog_add(p, 0, DVE, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_ILLEGAL_INSN);
	prog_reset(p);
	w = insn_new(NEURON_OP_DMA_COPY);
	prog_add(p, 0, SP, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_ILLEGAL_INSN);
}

TEST_F(core, operand_limits)
{
	static const struct {
		unsigned int part, parts;
		uint32_t offset;
		unsigned int n, legal;
	} row[] = {
		{ 0, 128, 0, 64, 1 }, { 32, 32, 0, 64, 1 }, { 64, 64, 0, 64, 1 },
		{ 96, 32, 224 * 1024 - 256, 64, 1 }, { 16, 16, 0, 64, 0 }, { 32, 64, 0, 64, 0 },
		{ 64, 65, 0, 64, 0 }, { 0, 0, 0, 64, 0 }, { 0, 129, 0, 64, 0 },
		{ 0, 32, 224 * 1024 - 252, 64, 0 }, { 0, 32, 0xfffffffc, 64, 0 },
		{ 0, 32, 0, 0, 0 }, { 96, 33, 0, 64, 0 },
	};
	struct prog *p = self->p;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct neuron_insn w = memset_insn(0);

		prog_reset(p);
		w.ap[0] = ap_row(SBUF, F32, row[i].part, row[i].parts, row[i].offset, row[i].n);
		prog_add(p, 0, DVE, &w);
		EXPECT_EQ(prog_run(p), row[i].legal ? NEURON_FAULT_NONE : NEURON_FAULT_BAD_OPERAND) {
			TH_LOG("row %u", i);
		}
	}
	/* 65536 elements at most, however the dimensions multiply. */
	for (i = 0; i < 2; i++) {
		struct neuron_insn w = memset_insn(0);

		prog_reset(p);
		w.ap[0].dims = 4;
		w.ap[0].num[0] = htole16(i ? 65535 : 256);
		w.ap[0].num[1] = htole16(i ? 65535 : 256);
		w.ap[0].num[2] = htole16(i ? 65535 : 1);
		w.ap[0].num[3] = htole16(i ? 65535 : 1);
		w.ap[0].step[0] = 0;
		prog_add(p, 0, DVE, &w);
		EXPECT_EQ(prog_run(p), i ? NEURON_FAULT_BAD_OPERAND : NEURON_FAULT_NONE);
	}
}

/* --- semaphores ------------------------------------------------------------------------- */

TEST_F(core, deadlock_names_the_waiter)
{
	struct neuron_insn w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	struct prog *p = self->p;

	w.update = update_add(3, 2);
	prog_add(p, 0, SP, &w);
	w = memset_insn(0);
	prog_add(p, 0, DVE, &w);
	w.wait[0] = wait_ge(3, 3);
	w.debug_id = htole32(11);
	prog_add(p, 0, DVE, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_DEADLOCK);
	EXPECT_EQ(FAULT(p)->engine, DVE);
	EXPECT_EQ(le32toh(FAULT(p)->pc), 1);
	EXPECT_EQ(le32toh(FAULT(p)->debug_id), 11);
	EXPECT_EQ(le32toh(FAULT(p)->index), 3);
	EXPECT_EQ(le64toh(FAULT(p)->value), 3);
	EXPECT_EQ(le64toh(FAULT(p)->addr), 2);
	EXPECT_EQ(FAULT(p)->other_engine, SP);
}

TEST_F(core, semaphore_and_event_faults)
{
	struct neuron_insn w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	struct prog *p = self->p;
	unsigned int i;

	w.update = (struct neuron_update){ 3, NEURON_UPDATE_SEM_SUB, htole16(1) };
	prog_add(p, 0, SP, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_SEM_UNDERFLOW);
	EXPECT_EQ(le32toh(FAULT(p)->index), 3);

	prog_reset(p);
	w.update = (struct neuron_update){ 5, NEURON_UPDATE_EVENT_SET, 0 };
	prog_add(p, 0, SP, &w);
	prog_add(p, 0, SP, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_EVENT_DOUBLE);
	EXPECT_EQ(le32toh(FAULT(p)->pc), 1);

	/* 65538 additions of 65535 pass 2^32. */
	prog_reset(p);
	w.update = update_add(7, 65535);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_REG_ALU);
	w.op[0] = NEURON_ALU_ADD;
	w.imm[0] = imm_reg(0, NEURON_DTYPE_INT32);
	w.imm[1] = imm_i32(1);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_COMPARE_BRANCH);
	w.op[0] = NEURON_ALU_LESS;
	w.imm[0] = imm_reg(0, NEURON_DTYPE_INT32);
	w.imm[1] = imm_i32(65538);
	prog_add(p, 0, SP, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_SEM_OVERFLOW);
	for (i = 0; i < 3; i++) {
		prog_reset(p);
		w = insn_new(NEURON_OP_NOP);
		w.wait[0].cond = i == 0 ? 6 : i == 1 ? NEURON_WAIT_GE | NEURON_WAIT_REG : 0;
		w.wait[0].value = htole16(64);
		w.update.op = i == 2 ? 6 : 0;
		prog_add(p, 0, SP, &w);
		EXPECT_EQ(prog_run(p), NEURON_FAULT_BAD_OPERAND);
	}
}

/* The state of a job before does not reach the next. */
TEST_F(core, semaphores_start_at_zero)
{
	struct neuron_insn w = insn_new(NEURON_OP_EVENT_SEMAPHORE);
	struct prog *p = self->p;

	w.update = update_add(3, 2);
	prog_add(p, 0, SP, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	EXPECT_EQ(chip_core_sem_get(p->core[0], 3), 2);
	prog_reset(p);
	w.update = (struct neuron_update){ 0 };
	w.wait[0] = wait_ge(3, 1);
	prog_add(p, 0, SP, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_DEADLOCK);
}

/* --- a fault is precise ------------------------------------------------------------------- */

TEST_F(core, effects_before_a_fault_and_none_after)
{
	struct neuron_insn w = memset_insn(0);
	struct prog *p = self->p;
	float v;

	prog_add(p, 0, DVE, &w);
	w.ap[0].dtype = 0x7f;
	prog_add(p, 0, DVE, &w);
	w = memset_insn(4096);
	prog_add(p, 0, DVE, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_BAD_OPERAND);
	sbuf_get(p->core[0], 0, 0, &v, 4);
	EXPECT_EQ(v, 1.0f);
	sbuf_get(p->core[0], 0, 4096, &v, 4);
	EXPECT_EQ(v, 0.0f);
}

/* --- endless programs ----------------------------------------------------------------------- */

static void endless(struct prog *p)
{
	struct neuron_insn w = insn_new(NEURON_OP_COMPARE_BRANCH);

	w.op[0] = NEURON_ALU_EQUAL;
	w.imm[0] = imm_i32(0);
	w.imm[1] = imm_i32(0);
	prog_add(p, 0, SP, &w);
}

static void *stopper(void *arg)
{
	struct prog *p = arg;
	uint64_t before;

	/* It retires all the time, and passes poll requests. */
	while (!(before = atomic_load(&p->retired)))
		usleep(1000);
	while (atomic_load(&p->retired) <= before)
		usleep(1000);
	atomic_store(&p->poll, true);
	while (atomic_load(&p->poll))
		usleep(1000);
	atomic_store(&p->abort, true);
	return NULL;
}

TEST_F(core, endless_loop_can_be_ended)
{
	struct prog *p = self->p;
	pthread_t thread;

	endless(p);
	ASSERT_EQ(pthread_create(&thread, NULL, stopper, p), 0);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_ABORTED);
	pthread_join(thread, NULL);
	EXPECT_GE(p->vm->polls, 1);
	EXPECT_GT(p->job.counters[0].insns, 0);
}

/* A stream that starts transfers faster than they go: its queue fills, and it waits. */
TEST_F(core, full_queue_stalls_its_stream)
{
	struct neuron_dma_operand d = dma_sbuf(), s;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
	struct prog *p = self->p;

	prog_arg(p, 128 * 8192, NEURON_ARG_READ);
	s = dma_hbm(0, F32, 0, 2048, 128, 8192);
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 2048);
	prog_dma(p, 0, SP, &w, &d, &s);
	w = insn_new(NEURON_OP_REG_ALU);
	w.op[0] = NEURON_ALU_ADD;
	w.imm[0] = imm_reg(0, NEURON_DTYPE_INT32);
	w.imm[1] = imm_i32(1);
	prog_add(p, 0, SP, &w);
	w = insn_new(NEURON_OP_COMPARE_BRANCH);
	w.op[0] = NEURON_ALU_LESS;
	w.imm[0] = imm_reg(0, NEURON_DTYPE_INT32);
	w.imm[1] = imm_i32(1000);
	prog_add(p, 0, SP, &w);
	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	EXPECT_EQ(p->job.counters[0].dma_bytes, 1000ull * 128 * 8192);
	EXPECT_EQ(p->job.counters[0].insns, 3000);
}

/* A single instruction may move 2^40 elements; that too ends when it is told to. */
static void *late_stopper(void *arg)
{
	struct prog *p = arg;

	usleep(50000);
	atomic_store(&p->abort, true);
	return NULL;
}

TEST_F(core, endless_copy_can_be_ended)
{
	struct neuron_dma_operand d, s;
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
	struct prog *p = self->p;
	pthread_t thread;

	endless(p);
	prog_arg(p, 4096, NEURON_ARG_READ | NEURON_ARG_WRITE);
	d = dma_hbm(0, NEURON_DTYPE_UINT8, 0, 1u << 30, 1024, 0);
	d.stride[0] = 0;
	s = d;
	w.aux = htole32(3);
	prog_dma(p, 0, ACT, &w, &d, &s);
	ASSERT_EQ(pthread_create(&thread, NULL, late_stopper, p), 0);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_ABORTED);
	pthread_join(thread, NULL);
}

/* --- the core itself --------------------------------------------------------------------------- */

TEST_F(core, memory_of_another_owner_reads_zero)
{
	struct chip_core *c = self->p->core[0];
	uint32_t v = 0x12345678;
	unsigned int i;

	sbuf_put(c, 0, 0, &v, 4);
	sbuf_put(c, 127, 200000, &v, 4);
	chip_core_new_owner(c);
	sbuf_get(c, 127, 200000, &v, 4);
	EXPECT_EQ(v, 0);
	for (i = 0; i < 1000; i++)
		chip_core_new_owner(c);
	v = 5;
	sbuf_put(c, 0, 4, &v, 4);
	sbuf_get(c, 0, 0, &v, 4);
	EXPECT_EQ(v, 0);
	sbuf_get(c, 0, 4, &v, 4);
	EXPECT_EQ(v, 5);
	/* Outside: above a partition's bytes, above the last partition. */
	EXPECT_FALSE(chip_core_sbuf_read(c, 224 * 1024, &v, 4));
	EXPECT_FALSE(chip_core_sbuf_read(c, 224 * 1024 - 2, &v, 4));
	EXPECT_FALSE(chip_core_sbuf_write(c, 128ull * 0x40000, &v, 4));
}

TEST_F(core, software_semaphores_saturate)
{
	struct chip_core *c = self->p->core[0];

	chip_core_sem_set(c, 9, 5);
	chip_core_sem_add(c, 9, -7);
	EXPECT_EQ(chip_core_sem_get(c, 9), 0);
	chip_core_sem_set(c, 9, UINT32_MAX - 1);
	chip_core_sem_add(c, 9, 7);
	EXPECT_EQ(chip_core_sem_get(c, 9), UINT32_MAX);
	EXPECT_EQ(chip_core_sem_get(c, 256), 0);
	chip_core_sem_set(c, 256, 1);
	chip_core_reset(c);
	EXPECT_EQ(chip_core_sem_get(c, 9), 0);
}

TEST_F(core, empty_job)
{
	struct prog *p = self->p;
	struct timespec a, b;
	unsigned int i;

	ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
	EXPECT_EQ(p->job.modelled_ticks, 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (i = 0; i < 1000; i++)
		chip_job_run(&p->job);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	/* Meant: below 3 us. Checked with room for sanitizers and a busy host. */
	EXPECT_LT(((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / 1000, 30000);
}

/* --- several cores ------------------------------------------------------------------------------- */

TEST(cores_run_in_one_time)
{
	struct prog *p = prog_new(4, 8);
	struct neuron_insn w;
	unsigned int c;
	float v;

	for (c = 0; c < 8; c++) {
		w = memset_insn(64 * c);
		w.imm[0] = imm_f32(c);
		prog_add(p, c, DVE, &w);
	}
	w.wait[0] = wait_ge(1, 1);
	prog_add(p, 5, DVE, &w);
	EXPECT_EQ(prog_run(p), NEURON_FAULT_DEADLOCK);
	EXPECT_EQ(FAULT(p)->core, 5);
	for (c = 0; c < 8; c++) {
		sbuf_get(p->core[c], 0, 64 * c, &v, 4);
		EXPECT_EQ(v, (float)c);
		EXPECT_EQ(p->job.counters[c].insns, 1);
	}
	prog_free(p);
}

/* Two cores of a Trn2 share one HBM stack: 725 bytes per ns for two times 736. */
TEST(cores_share_hbm)
{
	uint64_t alone = 0;
	unsigned int cores, c;

	for (cores = 1; cores <= 2; cores++) {
		struct prog *p = prog_new(3, cores);
		struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);
		struct neuron_dma_operand d, s;

		for (c = 0; c < cores; c++) {
			prog_arg(p, 4 << 20, NEURON_ARG_READ);
			prog_arg(p, 4 << 20, NEURON_ARG_WRITE);
			s = dma_hbm(2 * c, F32, 0, 16384, 64, 65536);
			d = dma_hbm(2 * c + 1, F32, 0, 16384, 64, 65536);
			prog_dma(p, c, SP, &w, &d, &s);
		}
		ASSERT_EQ(prog_run(p), NEURON_FAULT_NONE);
		EXPECT_GT(p->job.modelled_ticks, alone * 18 / 10);
		alone = p->job.modelled_ticks;
		prog_free(p);
	}
}

TEST_HARNESS_MAIN
