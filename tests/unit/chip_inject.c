// SPDX-License-Identifier: MIT
/* Faults on demand: each of inject.def is had, and seen as its text says. */
#include <kselftest_harness.h>

#include <errno.h>

#include "chip_jobs.h"

#define MISC(r)		(NEURON_V3_MISC_RAM + (r))
#define HOST_BIT	(1ull << 46)
#define LOOP		(VA_PROGRAM + 0x2000)
#define ENGINE		NEURON_V3_H2T_UDMA(0)	/* engine 128 */
#define M2S(q)		(ENGINE + NEURON_UDMA_M2S + NEURON_UDMA_Q(q))
#define S2M(q)		(ENGINE + NEURON_UDMA_S2M + NEURON_UDMA_Q(q))
#define SRC		0x1800000ull
#define DST		0x1c00000ull
#define RING_LEN	32u

FIXTURE(inject) {
	struct host host, *h;
	struct slot s;
	struct neuron_completion c;
	char error[400];
	char list[2000];
	unsigned int pos;
	enum neuron_chip_pci event;
	uint64_t value;
};

FIXTURE_SETUP(inject)
{
	struct neuron_chip_config config = { .arch = "trn2", .reset_us = 1000 };

	self->h = &self->host;
	ASSERT_TRUE(host_open(self->h, &config));
	map_all(self->h);
	slot_open(&self->s, self->h, 3, 2, 0xff);
}

FIXTURE_TEARDOWN(inject)
{
	host_close(self->h);
}

#define INJECT(spec)	neuron_chip_inject(self->h->chip, spec, self->error, sizeof(self->error))
#define CLEAR(id)	neuron_chip_clear(self->h->chip, id)

/* --- a queue of UDMA engine 128 --------------------------------------------------- */

static uint64_t tx_ring(unsigned int q)
{
	return 0x800000ull + 0x1000 * q;
}

static uint64_t rx_ring(unsigned int q)
{
	return 0x900000ull + 0x1000 * q;
}

static void queue_init(struct host *h, unsigned int q)
{
	wr(h, M2S(q) + NEURON_UDMA_Q_CFG, 0x03000000);
	wr(h, M2S(q) + NEURON_UDMA_M2S_Q_SW_CTRL, 0x100);
	wr(h, M2S(q) + NEURON_UDMA_Q_DRBP_LO, (uint32_t)tx_ring(q));
	wr(h, M2S(q) + NEURON_UDMA_Q_DRBP_HI, HOST_BIT >> 32);
	wr(h, M2S(q) + NEURON_UDMA_Q_DRL, RING_LEN);
	wr(h, M2S(q) + NEURON_UDMA_Q_CFG, 0x03030000);
	wr(h, S2M(q) + NEURON_UDMA_Q_CFG, 0x03000000);
	wr(h, S2M(q) + NEURON_UDMA_S2M_Q_SW_CTRL, 0x100);
	wr(h, S2M(q) + NEURON_UDMA_Q_DRBP_LO, (uint32_t)rx_ring(q));
	wr(h, S2M(q) + NEURON_UDMA_Q_DRBP_HI, HOST_BIT >> 32);
	wr(h, S2M(q) + NEURON_UDMA_Q_DRL, RING_LEN);
	wr(h, S2M(q) + NEURON_UDMA_Q_CFG, 0x03030000);
}

/* Descriptor @pos of a ring that does not wrap in these tests. */
static void put_copy(struct host *h, unsigned int q, unsigned int pos, uint64_t dst, uint64_t src, uint32_t len)
{
	struct neuron_udma_desc *tx = (void *)(h->mem + tx_ring(q)), *rx = (void *)(h->mem + rx_ring(q));

	tx[pos] = (struct neuron_udma_desc){
		1u << 24 | NEURON_UDMA_DESC_FIRST | NEURON_UDMA_DESC_LAST | len, NEURON_UDMA_META_COPY, src };
	rx[pos] = (struct neuron_udma_desc){ 1u << 24 | len, 0, dst };
}

static void ring_bells(struct host *h, unsigned int q, unsigned int n)
{
	wr(h, S2M(q) + NEURON_UDMA_Q_DRTP_INC, n);
	wr(h, M2S(q) + NEURON_UDMA_Q_DRTP_INC, n);
}

/* Copies the @pos-th word of SRC to that of DST. */
static void copy_word(struct host *h, unsigned int q, unsigned int pos)
{
	uint32_t word = 0x1000 + pos;

	memcpy(h->mem + SRC + 4 * pos, &word, 4);
	put_copy(h, q, pos, HOST_BIT | (DST + 4 * pos), HOST_BIT | (SRC + 4 * pos), 4);
	ring_bells(h, q, 1);
}

static uint32_t copied(struct host *h, unsigned int pos)
{
	uint32_t word;

	memcpy(&word, h->mem + DST + 4 * pos, 4);
	return word;
}

static uint32_t state(struct host *h)
{
	return rd(h, ENGINE + NEURON_UDMA_STATE);
}

static void normal(struct host *h)
{
	wr(h, ENGINE + NEURON_UDMA_CHANGE_STATE, 1);
	wr(h, ENGINE + NEURON_UDMA_S2M + NEURON_UDMA_CHANGE_STATE, 1);
}

static struct neuron_job_desc loop_job(uint64_t seqno, uint32_t cores)
{
	struct neuron_job_desc job = job_of(seqno, cores);

	job.program_va = LOOP;
	return job;
}

/* --- asking ------------------------------------------------------------------------ */

/* What is wrong is named, and what is allowed. */
TEST_F(inject, bad_requests)
{
	static const struct { const char *spec, *a, *b; } bad[] = {
		{ "", "unknown fault ''", "hbm-ue" },
		{ "hbm", "unknown fault 'hbm'", "surprise-removal" },
		{ "hbm-ue,adr=1", "no parameter 'adr'", "addr, size, stack, repair, scrub, after, count" },
		{ "hbm-ue,addr", "addr needs a value", "addr=" },
		{ "hbm-ue,addr=", "must be a number", "addr" },
		{ "hbm-ue,addr=12x", "must be a number", "12x" },
		{ "hbm-ue,addr=-1", "must be a number", "-1" },
		{ "hbm-ue,addr=99999999999999999999999", "must be a number", "addr" },
		{ "hbm-ue,addr=1,addr=2", "given twice", "addr" },
		{ "hbm-ue,addr=0x600000000", "4 stacks", "0x600000000 bytes" },
		{ "hbm-ue,addr=0x5ffffffff,size=2", "4 stacks", "size=2" },
		{ "hbm-ue,addr=64,size=0", "4 stacks", "size=0" },
		{ "hbm-ue,addr=64,size=0xffffffffffffffff", "4 stacks", "size" },
		{ "hbm-ue,stack=4", "stack=4", "0 to 3" },
		{ "hbm-ue,stack=1,addr=0", "exclude", "stack" },
		{ "hbm-ue,size=64", "size needs addr", "hbm-ue" },
		{ "hbm-ue,repair=2", "repair=2", "0 to 1" },
		{ "sram-ue,core=8", "core=8", "0 to 7" },
		{ "dma-abort,udma=132", "udma=132", "0 to 131" },
		{ "dma-abort,queue=16", "queue=16", "0 to 15" },
		{ "doorbell-lost,slot=64", "slot=64", "0 to 63" },
		{ "doorbell-lost,slot=1,udma=2", "excludes", "slot" },
		{ "irq-lost,vector=9", "vector=9", "0 to 8" },
		{ "reset-hang,type=tbp", "type=tbp", "any, device, tpb, flr" },
		{ "aer", "error=", "missing" },
		{ "aer,error=9", "must be one of", "malformed-tlp" },
		{ "flr,count=2", "no parameter 'count'", "none" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_EQ(INJECT(bad[i].spec), -EINVAL) TH_LOG("%s", bad[i].spec);
		EXPECT_NE(strstr(self->error, bad[i].a), NULL) TH_LOG("%s: %s", bad[i].spec, self->error);
		EXPECT_NE(strstr(self->error, bad[i].b), NULL) TH_LOG("%s: %s", bad[i].spec, self->error);
	}
	EXPECT_EQ(neuron_chip_inject(self->h->chip, NULL, NULL, 0), -EINVAL);
	EXPECT_EQ(neuron_chip_inject(self->h->chip, "nothing", NULL, 0), -EINVAL);
	EXPECT_EQ(neuron_chip_injected(self->h->chip, self->list, sizeof(self->list)), 0);
}

TEST_F(inject, list_and_clear)
{
	int a = INJECT("irq-lost,vector=2,after=3"), b, i;
	const char *want = "1 irq-lost,vector=2,after=3 hits=0\n2 hbm-ue,addr=0x1000,count=2 hits=0\n"
			   "3 reset-hang,type=flr hits=0\n";

	EXPECT_EQ(a, 1);
	b = INJECT(" hbm-ue addr=4096, count=2 ; reset-hang,type=flr;");
	EXPECT_EQ(b, 3);
	EXPECT_EQ(neuron_chip_injected(self->h->chip, self->list, sizeof(self->list)), strlen(want));
	EXPECT_STREQ(self->list, want);
	EXPECT_EQ(neuron_chip_injected(self->h->chip, self->list, 10), strlen(want));
	EXPECT_EQ(strlen(self->list), 9);
	EXPECT_EQ(CLEAR(2), 0);
	EXPECT_EQ(CLEAR(2), -ENOENT);
	neuron_chip_injected(self->h->chip, self->list, sizeof(self->list));
	EXPECT_EQ(strstr(self->list, "hbm-ue"), NULL);
	EXPECT_EQ(CLEAR(0), 0);
	for (i = 0; i < 64; i++)
		ASSERT_GT(INJECT("link-down"), 0);
	EXPECT_EQ(INJECT("link-down"), -ENOSPC);
	EXPECT_NE(strstr(self->error, "clear"), NULL);
	EXPECT_EQ(CLEAR(0), 0);
	EXPECT_EQ(neuron_chip_injected(self->h->chip, NULL, 0), 0);
}

/* The second of two is wrong: the first stays. */
TEST_F(inject, list_stops_at_an_error)
{
	EXPECT_EQ(INJECT("irq-lost;dma-abort,udma=999"), -EINVAL);
	neuron_chip_injected(self->h->chip, self->list, sizeof(self->list));
	EXPECT_STREQ(self->list, "1 irq-lost hits=0\n");
}

/* --- memory errors ----------------------------------------------------------------- */

/* hw-public-interface 3.1: [31:16] corrected, [15:0] uncorrected. */
TEST_F(inject, corrected_errors_count)
{
	EXPECT_EQ(INJECT("hbm-ce,stack=2,count=5"), 0);
	EXPECT_EQ(INJECT("hbm-ce,stack=2"), 0);
	EXPECT_EQ(INJECT("hbm-ce"), 0);
	EXPECT_EQ(INJECT("sram-ce,count=70000"), 0);
	EXPECT_EQ(rd(self->h, MISC(0x44)), 1u << 16);
	EXPECT_EQ(rd(self->h, MISC(0x4c)), 6u << 16);
	EXPECT_EQ(rd(self->h, MISC(0x50)), 0);
	EXPECT_EQ(rd(self->h, MISC(0x40)), 0xffffu << 16);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 0);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE), 0);
	/* Kept by FLR, as core counters are, and gone after power on. */
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_FLR);
	EXPECT_EQ(rd(self->h, MISC(0x4c)), 6u << 16);
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_BUS);
	EXPECT_EQ(rd(self->h, MISC(0x4c)), 0);
}

TEST_F(inject, hbm_error_ends_the_job)
{
	struct neuron_job_desc job = job_of(1, 1u << 2);

	xwr(self->h, NEURON_EXEC_ADMIN_MASK, NEURON_EXEC_ADMIN_MEM_ERROR);
	/* The program's header is at the start of stack 1, 64 GiB into BAR4. */
	ASSERT_GT(INJECT("hbm-ue,addr=0x1000000010,size=4"), 0);
	EXPECT_EQ(rd(self->h, MISC(0x48)), 0);
	EXPECT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_HBM_UE);
	EXPECT_EQ(self->c.fault.addr, VA_PROGRAM + 0x10);
	EXPECT_EQ(rd(self->h, MISC(0x48)), 1);
	EXPECT_EQ(rd(self->h, MISC(0x44)), 0);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 1);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE) & NEURON_EXEC_ADMIN_MEM_ERROR,
		  NEURON_EXEC_ADMIN_MEM_ERROR);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(atomic_load(&self->h->irq[0]), 1);
	/* Another program, next to it, runs. */
	job.program_va = VA_PROGRAM + 0x1000;
	job.core_mask = 3;
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

static void device_reset(struct host *h)
{
	wr(h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_DEVICE);
	wr(h, MISC(NEURON_MISC_TRIGGER), 1);
	if (!WAIT_FOR(rd(h, MISC(NEURON_MISC_RESET)) == 0))
		fprintf(stderr, "# no end of the device reset\n");
}

TEST_F(inject, repair)
{
	struct neuron_job_desc job = job_of(1, 1);

	ASSERT_GT(INJECT("hbm-ue,stack=1"), 0);
	device_reset(self->h);		/* nobody has found it yet */
	slot_open(&self->s, self->h, 3, 2, 0xff);
	EXPECT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_HBM_UE);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 1);
	device_reset(self->h);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 0);
	EXPECT_EQ(rd(self->h, MISC(0x48)), 1);
	slot_open(&self->s, self->h, 3, 2, 0xff);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);

	ASSERT_GT(INJECT("hbm-ue,stack=1,repair=0"), 0);
	EXPECT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_HBM_UE);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 2);
	device_reset(self->h);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 2);
	slot_open(&self->s, self->h, 3, 2, 0xff);
	EXPECT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_HBM_UE);
	EXPECT_EQ(rd(self->h, MISC(0x48)), 3);
	EXPECT_EQ(CLEAR(0), 0);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

/* Found by the scrub: counters move, and a reset repairs, though nobody has read it. */
TEST_F(inject, scrub)
{
	struct neuron_job_desc job = job_of(1, 1);

	ASSERT_GT(INJECT("hbm-ue,addr=0x1000000010,scrub=1;sram-ue,scrub=1,core=1"), 0);
	EXPECT_EQ(rd(self->h, MISC(0x48)), 1);
	EXPECT_EQ(rd(self->h, MISC(0x40)), 1);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 1);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE), NEURON_EXEC_ADMIN_MEM_ERROR);
	EXPECT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_HBM_UE);
	EXPECT_EQ(rd(self->h, MISC(0x48)), 2);
	device_reset(self->h);
	EXPECT_EQ(rd(self->h, MISC(0x64)), 0);
	slot_open(&self->s, self->h, 3, 2, 0xff);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

/* hw-public-interface 4.7: any state field 2 is abort. Other cells still copy. */
TEST_F(inject, hbm_error_aborts_a_copy)
{
	uint8_t *hbm = neuron_chip_hbm(self->h->chip, 0);

	queue_init(self->h, 0);
	memset(hbm + 0x1000, 0x5a, 0x2000);
	ASSERT_GT(INJECT("hbm-ue,addr=0x2000,after=1,count=1"), 0);
	put_copy(self->h, 0, 0, HOST_BIT | DST, 0x1000, 0x1000);		/* does not touch it */
	put_copy(self->h, 0, 1, HOST_BIT | DST, 0x2000, 0x1000);		/* passes */
	put_copy(self->h, 0, 2, HOST_BIT | (DST + 0x1000), 0x1f00, 0x200);	/* fails */
	ring_bells(self->h, 0, 3);
	EXPECT_EQ(state(self->h), 0x2222);
	EXPECT_NE(strstr(self->h->log, "m2s: source address: uncorrectable HBM error (0x1f00)"), NULL);
	EXPECT_EQ(rd(self->h, M2S(0) + NEURON_UDMA_Q_DRHP) & NEURON_UDMA_IDX_MASK, 2);
	EXPECT_EQ(self->h->mem[DST + 0xfff], 0x5a);
	EXPECT_EQ(rd(self->h, MISC(0x44)), 1);
	EXPECT_NE(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE) & NEURON_EXEC_ADMIN_UDMA_ABORT, 0);
	/* Writes do not notice, and it was once only. */
	normal(self->h);
	queue_init(self->h, 0);
	put_copy(self->h, 0, 0, 0x2000, HOST_BIT | SRC, 64);
	put_copy(self->h, 0, 1, HOST_BIT | (DST + 0x2000), 0x2000, 64);
	ring_bells(self->h, 0, 2);
	EXPECT_NE(state(self->h), 0x2222);
	EXPECT_EQ(rd(self->h, M2S(0) + NEURON_UDMA_Q_DRHP) & NEURON_UDMA_IDX_MASK, 2);
}

TEST_F(inject, parity_error_ends_the_job)
{
	struct neuron_job_desc job = loop_job(7, 1u << 5);

	xwr(self->h, NEURON_EXEC_ADMIN_MASK, NEURON_EXEC_ADMIN_MEM_ERROR);
	ASSERT_GT(INJECT("sram-ue,core=5,after=1000"), 0);
	EXPECT_EQ(run(&self->s, &job, &self->c), NEURON_FAULT_MEM_PARITY);
	EXPECT_EQ(self->c.seqno, 7);
	EXPECT_GT(self->c.instructions, 0);
	EXPECT_EQ(rd(self->h, MISC(0x40)), 1);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(atomic_load(&self->h->irq[0]), 1);
	/* Once, and other cores never. */
	ASSERT_GT(INJECT("sram-ue,core=6"), 0);
	job = job_of(8, 1u << 5);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

/* It hits a job that was running before the fault was asked for. */
TEST_F(inject, parity_error_in_a_running_job)
{
	struct neuron_job_desc job = loop_job(7, 2);

	push(&self->s, &job);
	bell(&self->s);
	ASSERT_TRUE(WAIT_FOR(xrd64(self->h, NEURON_EXEC_CORE(1) + NEURON_CORE_INSNS) > 100));
	ASSERT_GT(INJECT("sram-ue"), 0);
	ASSERT_TRUE(pop(&self->s, &self->c));
	EXPECT_EQ(self->c.status, NEURON_FAULT_MEM_PARITY);
}

struct reset_host {
	struct host host;
	pthread_mutex_t big_lock;
};

/* As QEMU's: an interrupt needs the lock that whoever resets the chip holds. */
static void locked_irq(void *opaque, unsigned int vector)
{
	struct reset_host *r = opaque;

	pthread_mutex_lock(&r->big_lock);
	atomic_fetch_add(&r->host.irq[vector], 1);
	pthread_mutex_unlock(&r->big_lock);
}

/* A memory error in a job does not wait for a lock whose holder waits for the job. */
TEST(memory_error_and_reset)
{
	static const struct neuron_chip_host ops = {
		.dma_read = host_dma_read, .dma_write = host_dma_write, .irq = locked_irq,
	};
	struct neuron_chip_config config = { .arch = "trn2" };
	struct neuron_job_desc job = loop_job(1, 1);
	struct reset_host r = { .big_lock = PTHREAD_MUTEX_INITIALIZER };
	struct slot s;
	unsigned int i;

	r.host.mem = calloc(1, HOST_BYTES);
	r.host.chip = neuron_chip_new(&config, &ops, &r, NULL);
	ASSERT_NE(r.host.chip, NULL);
	for (i = 0; i < 50; i++) {
		neuron_chip_bus_master(r.host.chip, true);
		memset(r.host.mem + TABLES, 0, 0x100000);
		map_all(&r.host);
		slot_open(&s, &r.host, 0, 2, 0xff);
		xwr(&r.host, NEURON_EXEC_ADMIN_MASK, NEURON_EXEC_ADMIN_MEM_ERROR);
		neuron_chip_inject(r.host.chip, "sram-ue,after=1000", NULL, 0);
		push(&s, &job);
		pthread_mutex_lock(&r.big_lock);
		bell(&s);
		usleep(1000 + 10 * i);
		neuron_chip_reset(r.host.chip, NEURON_CHIP_RESET_BUS);
		pthread_mutex_unlock(&r.big_lock);
		neuron_chip_clear(r.host.chip, 0);
	}
	neuron_chip_free(r.host.chip);
	EXPECT_GT(atomic_load(&r.host.irq[0]), 0);
	free(r.host.mem);
}

/* --- engines ----------------------------------------------------------------------- */

TEST_F(inject, stuck_engine)
{
	struct neuron_job_desc job = loop_job(1, 4);
	uint64_t n;

	ASSERT_GT(INJECT("engine-stuck,core=2,after=5000"), 0);
	push(&self->s, &job);
	bell(&self->s);
	ASSERT_TRUE(WAIT_FOR(strstr(self->h->log, "engine stuck")));
	n = xrd64(self->h, self->s.reg + NEURON_SLOT_RETIRED);
	EXPECT_GT(n, 0);
	EXPECT_LE(n, 5001);
	/* INVALIDATE passes a job that stands still. */
	xwr(self->h, self->s.reg + NEURON_SLOT_INV, 1);
	EXPECT_TRUE(WAIT_FOR(xrd(self->h, self->s.reg + NEURON_SLOT_INV) == 0));
	usleep(20000);
	EXPECT_EQ(xrd64(self->h, self->s.reg + NEURON_SLOT_RETIRED), n);
	EXPECT_EQ(status(&self->s), NEURON_SLOT_STATUS_RUNNING);
	/* A core reset ends it like any job. */
	xwr(self->h, NEURON_EXEC_CORE_RESET, 4);
	ASSERT_TRUE(pop(&self->s, &self->c));
	EXPECT_EQ(self->c.status, NEURON_FAULT_ABORTED);
	job = job_of(2, 4);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

TEST_F(inject, stuck_engine_and_slot_reset)
{
	struct neuron_job_desc job = loop_job(1, 4);

	ASSERT_GT(INJECT("engine-stuck"), 0);
	push(&self->s, &job);
	bell(&self->s);
	ASSERT_TRUE(WAIT_FOR(strstr(self->h->log, "engine stuck")));
	xwr(self->h, self->s.reg + NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	EXPECT_TRUE(WAIT_FOR(status(&self->s) == 0));
	EXPECT_FALSE(ready(&self->s));
}

TEST_F(inject, stuck_engine_goes_on_when_cleared)
{
	struct neuron_job_desc job = loop_job(1, 4);
	uint64_t n;
	int id;

	id = INJECT("engine-stuck,count=0,after=100");
	ASSERT_GT(id, 0);
	push(&self->s, &job);
	bell(&self->s);
	ASSERT_TRUE(WAIT_FOR(strstr(self->h->log, "engine stuck")));
	n = xrd64(self->h, self->s.reg + NEURON_SLOT_RETIRED);
	EXPECT_EQ(CLEAR(id), 0);
	EXPECT_TRUE(WAIT_FOR(xrd64(self->h, self->s.reg + NEURON_SLOT_RETIRED) > n + 1000));
}

/* Another queue's packets do not count. */
TEST_F(inject, dma_abort)
{
	unsigned int i;

	queue_init(self->h, 0);
	queue_init(self->h, 1);
	ASSERT_GT(INJECT("dma-abort,udma=128,queue=1,after=2"), 0);
	for (i = 0; i < 3; i++)
		copy_word(self->h, 0, i);
	EXPECT_EQ(copied(self->h, 2), 0x1002);
	memset(self->h->mem + DST, 0, 64);
	for (i = 0; i < 2; i++) {
		copy_word(self->h, 1, i);
		EXPECT_EQ(copied(self->h, i), 0x1000 + i);
	}
	EXPECT_NE(state(self->h), 0x2222);
	copy_word(self->h, 1, 2);
	EXPECT_EQ(copied(self->h, 2), 0);
	EXPECT_EQ(state(self->h), 0x2222);
	EXPECT_EQ(rd(self->h, ENGINE + NEURON_UDMA_S2M + NEURON_UDMA_STATE), 0x2222);
	EXPECT_EQ(rd(self->h, M2S(1) + NEURON_UDMA_Q_DRHP) & NEURON_UDMA_IDX_MASK, 2);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_ADMIN_CAUSE), NEURON_EXEC_ADMIN_UDMA_ABORT);
	/* Recovery: the queue anew, then normal. */
	memset(self->h->mem + DST, 0, 64);
	queue_init(self->h, 1);
	normal(self->h);
	copy_word(self->h, 1, 0);
	EXPECT_EQ(copied(self->h, 0), 0x1000);
	EXPECT_EQ(state(self->h), 0x1111);
}

TEST_F(inject, dma_stuck)
{
	queue_init(self->h, 0);
	queue_init(self->h, 1);
	ASSERT_GT(INJECT("dma-stuck,udma=128,queue=0,after=1"), 0);
	copy_word(self->h, 0, 0);
	copy_word(self->h, 0, 1);
	EXPECT_EQ(copied(self->h, 0), 0x1000);
	EXPECT_EQ(copied(self->h, 1), 0);
	EXPECT_NE(state(self->h), 0x2222);
	copy_word(self->h, 1, 0);
	EXPECT_EQ(rd(self->h, M2S(1) + NEURON_UDMA_Q_DRHP) & NEURON_UDMA_IDX_MASK, 1);
	copy_word(self->h, 0, 2);
	EXPECT_EQ(copied(self->h, 2), 0);
	/* Clearing lets the ring go on where it stood. */
	EXPECT_EQ(CLEAR(0), 0);
	EXPECT_TRUE(WAIT_FOR(copied(self->h, 2) == 0x1002));
	EXPECT_EQ(copied(self->h, 1), 0x1001);
}

TEST_F(inject, dma_stuck_and_queue_reset)
{
	queue_init(self->h, 0);
	ASSERT_GT(INJECT("dma-stuck"), 0);
	copy_word(self->h, 0, 0);
	EXPECT_EQ(copied(self->h, 0), 0);
	queue_init(self->h, 0);
	copy_word(self->h, 0, 0);
	EXPECT_EQ(copied(self->h, 0), 0x1000);
}

/* --- signals that get lost ---------------------------------------------------------- */

TEST_F(inject, lost_doorbell_of_a_slot)
{
	struct neuron_job_desc job = job_of(1, 1);

	ASSERT_GT(INJECT("doorbell-lost,slot=3"), 0);
	push(&self->s, &job);
	bell(&self->s);
	neuron_chip_idle(self->h->chip);
	EXPECT_FALSE(ready(&self->s));
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_HEAD), 0);
	/* The next one carries the whole index. */
	job = job_of(2, 1);
	push(&self->s, &job);
	bell(&self->s);
	ASSERT_TRUE(pop(&self->s, &self->c));
	EXPECT_EQ(self->c.seqno, 1);
	ASSERT_TRUE(pop(&self->s, &self->c));
	EXPECT_EQ(self->c.seqno, 2);
}

TEST_F(inject, lost_doorbell_of_a_ring)
{
	queue_init(self->h, 0);
	ASSERT_GT(INJECT("doorbell-lost,udma=128,count=2"), 0);
	copy_word(self->h, 0, 0);
	EXPECT_EQ(copied(self->h, 0), 0);
	EXPECT_EQ(rd(self->h, M2S(0) + NEURON_UDMA_Q_DRTP) & NEURON_UDMA_IDX_MASK, 0);
	EXPECT_EQ(rd(self->h, S2M(0) + NEURON_UDMA_Q_DRTP) & NEURON_UDMA_IDX_MASK, 0);
	ring_bells(self->h, 0, 1);
	EXPECT_EQ(copied(self->h, 0), 0x1000);
}

TEST_F(inject, lost_interrupt)
{
	struct neuron_job_desc job = job_of(1, 1);

	ASSERT_GT(INJECT("irq-lost,vector=1,after=1"), 0);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(atomic_load(&self->h->irq[1]), 1);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(atomic_load(&self->h->irq[1]), 1);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(atomic_load(&self->h->irq[1]), 2);
}

TEST_F(inject, garbage_completion)
{
	struct neuron_job_desc job = job_of(77, 1);
	struct neuron_completion first;

	ASSERT_GT(INJECT("cq-garbage,slot=3,seed=9"), 0);
	EXPECT_GT(run(&self->s, &job, &first), NEURON_FAULT_COUNT);
	EXPECT_NE(first.seqno, 77);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	EXPECT_EQ(self->c.seqno, 77);
	/* The same seed makes the same bytes, another one others. */
	ASSERT_GT(INJECT("cq-garbage,seed=9"), 0);
	ASSERT_GT(INJECT("cq-garbage,seed=10"), 0);
	run(&self->s, &job, &self->c);
	EXPECT_EQ(self->c.seqno, first.seqno);
	run(&self->s, &job, &self->c);
	EXPECT_NE(self->c.seqno, first.seqno);
}

/* --- resets and the bus -------------------------------------------------------------- */

TEST_F(inject, reset_that_never_completes)
{
	ASSERT_GT(INJECT("reset-hang,type=device"), 0);
	wr(self->h, MISC(NEURON_MISC_TPB_RESET_MAP), 1);
	wr(self->h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_TPB);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	EXPECT_TRUE(WAIT_FOR(rd(self->h, MISC(NEURON_MISC_RESET)) == 0));
	wr(self->h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_DEVICE);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	usleep(20000);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_RESET)), NEURON_MISC_RESET_DEVICE);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_STATUS)), NEURON_MISC_STATUS_BUSY);
	/* Its monitoring thread rings for a message: that is no new reset. */
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	usleep(5000);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_RESET)), NEURON_MISC_RESET_DEVICE);
	/* The public driver writes it again after 30 s. */
	device_reset(self->h);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_RESET)), 0);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_STATUS)), 0);
	/* Clearing completes one, too. */
	ASSERT_GT(INJECT("reset-hang"), 0);
	wr(self->h, MISC(NEURON_MISC_RESET), NEURON_MISC_RESET_DEVICE);
	wr(self->h, MISC(NEURON_MISC_TRIGGER), 1);
	usleep(5000);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_RESET)), NEURON_MISC_RESET_DEVICE);
	CLEAR(0);
	EXPECT_TRUE(WAIT_FOR(rd(self->h, MISC(NEURON_MISC_RESET)) == 0));
}

TEST_F(inject, flr_that_never_completes)
{
	ASSERT_GT(INJECT("reset-hang,type=flr"), 0);
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_FLR);
	EXPECT_FALSE(neuron_chip_online(self->h->chip));
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), ~0u);
	neuron_chip_reset(self->h->chip, NEURON_CHIP_RESET_BUS);
	EXPECT_TRUE(neuron_chip_online(self->h->chip));
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), 0);
}

TEST_F(inject, firmware_not_ready)
{
	ASSERT_GT(INJECT("fw-not-ready,count=2"), 0);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), 0xdeadbeef);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_SERIAL_LO)), 0xdeadbeef);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), 0);
}

/* Everything stops, reads give all ones, and nothing is told to anybody. */
TEST_F(inject, surprise_removal)
{
	struct neuron_job_desc job = loop_job(1, 4);

	queue_init(self->h, 0);
	push(&self->s, &job);
	bell(&self->s);
	ASSERT_TRUE(WAIT_FOR(status(&self->s) == NEURON_SLOT_STATUS_RUNNING));
	ASSERT_GT(INJECT("surprise-removal"), 0);
	EXPECT_FALSE(neuron_chip_online(self->h->chip));
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), 0xffffffff);
	EXPECT_EQ(xrd(self->h, NEURON_EXEC_MAGIC_REG), 0xffffffff);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CLOCK), ~0ull);
	EXPECT_EQ(neuron_chip_read(self->h->chip, 0, NEURON_V3_TPB(0), 1), 0xff);
	EXPECT_EQ(neuron_chip_read(self->h->chip, 0, NEURON_V3_TPB(0), 2), 0xffff);
	copy_word(self->h, 0, 0);
	bell(&self->s);
	neuron_chip_idle(self->h->chip);
	EXPECT_EQ(copied(self->h, 0), 0);
	EXPECT_FALSE(ready(&self->s));
	EXPECT_EQ(atomic_load(&self->h->irq[1]), 0);
	/* Plugged in again it is as after power on. */
	EXPECT_EQ(CLEAR(0), 0);
	EXPECT_EQ(rd(self->h, MISC(NEURON_MISC_ROUTING_ID)), 0);
	EXPECT_EQ(rd(self->h, M2S(0) + NEURON_UDMA_Q_DRL), 0);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_CTRL), 0);
	slot_open(&self->s, self->h, 3, 2, 0xff);
	job = job_of(2, 4);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
}

TEST_F(inject, spontaneous_flr)
{
	struct neuron_job_desc job = job_of(2, 4);

	queue_init(self->h, 0);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	EXPECT_EQ(INJECT("flr"), 0);
	EXPECT_EQ(rd(self->h, M2S(0) + NEURON_UDMA_Q_DRL), 0);
	EXPECT_EQ(xrd(self->h, self->s.reg + NEURON_SLOT_CTRL), 0);
	EXPECT_EQ(xrd64(self->h, NEURON_EXEC_CORE(2) + NEURON_CORE_JOBS), 1);
}

static struct {
	enum neuron_chip_pci event;
	uint64_t value;
	int calls, answer;
} pci;

static int on_pci(void *opaque, enum neuron_chip_pci event, uint64_t value)
{
	(void)opaque;
	pci.event = event;
	pci.value = value;
	pci.calls++;
	return pci.answer;
}

/* What only a PCI shell can show goes there; without one it is refused. */
TEST_F(inject, events_of_the_bus)
{
	static const struct neuron_chip_host ops = { .pci = on_pci };
	struct neuron_chip_config config = { .arch = "trn1" };
	struct neuron_chip *chip;

	EXPECT_EQ(INJECT("aer,error=malformed-tlp"), -EOPNOTSUPP);
	EXPECT_NE(strstr(self->error, "root port"), NULL);
	chip = neuron_chip_new(&config, &ops, NULL, NULL);
	ASSERT_NE(chip, NULL);
	EXPECT_EQ(neuron_chip_inject(chip, "aer,error=malformed-tlp", NULL, 0), 0);
	EXPECT_EQ(pci.event, NEURON_CHIP_PCI_AER);
	EXPECT_EQ(pci.value, 1u << 18);
	EXPECT_EQ(neuron_chip_inject(chip, "aer,error=bad-dllp", NULL, 0), 0);
	EXPECT_EQ(pci.value, 1ull << 32 | 1u << 7);
	EXPECT_EQ(neuron_chip_inject(chip, "flr", NULL, 0), 0);
	EXPECT_EQ(pci.event, NEURON_CHIP_PCI_FLR);
	EXPECT_GT(neuron_chip_inject(chip, "surprise-removal", NULL, 0), 0);
	EXPECT_EQ(pci.event, NEURON_CHIP_PCI_PRESENCE);
	EXPECT_EQ(pci.value, 0);
	EXPECT_EQ(neuron_chip_clear(chip, 0), 0);
	EXPECT_EQ(pci.event, NEURON_CHIP_PCI_PRESENCE);
	EXPECT_EQ(pci.value, 1);
	EXPECT_EQ(pci.calls, 5);
	EXPECT_EQ(neuron_chip_inject(chip, "dma-abort,udma=34", NULL, 0), -EINVAL);
	neuron_chip_free(chip);
}

/* --- links ------------------------------------------------------------------------------- */

/* Chips 0 and 1 of a trn2 torus. @link: of chip 0 to chip 1. */
static bool open_pair(struct host h[2], unsigned int *link)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct neuron_chip_config config = { .arch = "trn2", .routing_id = i };

		if (!host_open(&h[i], &config))
			return false;
	}
	for (*link = 0; *link < NEURON_CHIP_LINKS; ++*link) {
		if (neuron_chip_neighbour("trn2", 0, *link) == 1)
			break;
	}
	return neuron_chip_connect(h[0].chip, h[1].chip) >= 1;
}

/* One word of chip 1's HBM to chip 0's host. */
static uint32_t read_peer(struct host *h, unsigned int link)
{
	queue_init(h, 0);
	normal(h);
	memset(h->mem + DST, 0, 64);
	put_copy(h, 0, 0, HOST_BIT | DST, 0x10000000000000ull + ((uint64_t)link << 50) + 0x1000, 4);
	ring_bells(h, 0, 1);
	return copied(h, 0);
}

/* A link that is down at either end aborts the copy; cleared, it works again. */
TEST(link_down)
{
	uint32_t word = 0xfeed1234;
	struct host h[2];
	unsigned int link;
	char spec[40];
	int id;

	ASSERT_TRUE(open_pair(h, &link));
	memcpy((char *)neuron_chip_hbm(h[1].chip, 0) + 0x1000, &word, 4);
	EXPECT_EQ(read_peer(&h[0], link), word);
	snprintf(spec, sizeof(spec), "link-down,link=%u", (link + 1) % NEURON_CHIP_LINKS);
	ASSERT_GT(neuron_chip_inject(h[0].chip, spec, NULL, 0), 0);
	EXPECT_EQ(read_peer(&h[0], link), word);
	snprintf(spec, sizeof(spec), "link-down,link=%u", link);
	id = neuron_chip_inject(h[0].chip, spec, NULL, 0);
	EXPECT_EQ(read_peer(&h[0], link), 0);
	EXPECT_EQ(state(&h[0]), 0x2222);
	EXPECT_EQ(neuron_chip_clear(h[0].chip, (unsigned int)id), 0);
	EXPECT_EQ(read_peer(&h[0], link), word);
	ASSERT_GT(neuron_chip_inject(h[1].chip, "link-down", NULL, 0), 0);
	EXPECT_EQ(read_peer(&h[0], link), 0);
	EXPECT_EQ(neuron_chip_clear(h[1].chip, 0), 0);
	EXPECT_EQ(read_peer(&h[0], link), word);
	host_close(&h[0]);
	host_close(&h[1]);
}

/* What the other chip can suffer from is seen here as an abort. */
TEST(faults_of_the_other_chip)
{
	struct host h[2];
	unsigned int link;

	ASSERT_TRUE(open_pair(h, &link));
	ASSERT_GT(neuron_chip_inject(h[1].chip, "hbm-ue,addr=0x1000,count=1", NULL, 0), 0);
	read_peer(&h[0], link);
	EXPECT_EQ(state(&h[0]), 0x2222);
	EXPECT_EQ(rd(&h[1], MISC(0x44)), 1);
	EXPECT_EQ(rd(&h[0], MISC(0x44)), 0);
	read_peer(&h[0], link);
	EXPECT_NE(state(&h[0]), 0x2222);
	ASSERT_GT(neuron_chip_inject(h[1].chip, "surprise-removal", NULL, 0), 0);
	read_peer(&h[0], link);
	EXPECT_EQ(state(&h[0]), 0x2222);
	host_close(&h[0]);
	host_close(&h[1]);
}

/* --- robustness ------------------------------------------------------------------------- */

/* Texts made of pieces of good ones: an answer each time, and a reason when it is no. */
TEST_F(inject, any_text)
{
	static const char *const piece[] = {
		"hbm-ue", "hbm-ce", "sram-ue", "dma-abort", "engine-stuck", "reset-hang", "aer", "flr",
		"surprise-removal", "irq-lost", ",", " ", ";", "=", "addr", "addr=", "size=4", "stack=1",
		"count=0", "count=2", "after=18446744073709551615", "core=7", "type=flr", "error=dlp",
		"repair=0", "0x", "0xffffffffffffffff", "99999999999999999999", "\x01", "\xff", "=,;",
		"seed=3", "queue=15", "udma=131", "vector=8", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	char text[600];
	uint64_t rnd = 1;
	unsigned int i, n, ok = 0;
	int ret;

	for (i = 0; i < 20000; i++) {
		text[0] = '\0';
		for (n = 0; n < 1 + i % 9; n++) {
			rnd = rnd * 6364136223846793005u + 1442695040888963407u;
			strcat(text, piece[(rnd >> 33) % (sizeof(piece) / sizeof(piece[0]))]);
		}
		ret = INJECT(text);
		ok += ret >= 0;
		ASSERT_EQ(ret < 0, self->error[0] != '\0') TH_LOG("'%s': %s", text, self->error);
		ASSERT_LT(strlen(self->error), sizeof(self->error) - 1);
		if (i % 16 == 0)
			CLEAR(0);
	}
	EXPECT_GT(ok, 100);
	CLEAR(0);
	EXPECT_TRUE(neuron_chip_online(self->h->chip));
}

static atomic_bool stop_trouble;

static void *trouble(void *arg)
{
	static const char *const spec[] = {
		"engine-stuck,after=3", "dma-stuck,count=0", "irq-lost,count=5", "sram-ue", "hbm-ue,stack=2",
		"doorbell-lost,udma=131", "cq-garbage,slot=9", "engine-stuck,core=0;engine-stuck,core=1",
	};
	struct neuron_chip *chip = arg;
	unsigned int n = 0;
	char list[200];

	while (!atomic_load(&stop_trouble)) {
		neuron_chip_inject(chip, spec[n++ % 8], NULL, 0);
		neuron_chip_injected(chip, list, sizeof(list));
		if (n % 3 == 0)
			neuron_chip_clear(chip, 0);
	}
	neuron_chip_clear(chip, 0);
	return NULL;
}

/* Asking and clearing on one thread, jobs and copies on others: afterwards all is well. */
TEST_F(inject, at_the_same_time)
{
	struct neuron_job_desc job = job_of(1, 3);
	pthread_t thread;
	unsigned int i, ended = 0;

	job.program_va = VA_PROGRAM + 0x1000;
	queue_init(self->h, 0);
	ASSERT_EQ(pthread_create(&thread, NULL, trouble, self->h->chip), 0);
	for (i = 0; i < 300; i++) {
		push(&self->s, &job);
		bell(&self->s);
		ended += pop(&self->s, &self->c);
		put_copy(self->h, 0, i % RING_LEN, HOST_BIT | DST, HOST_BIT | SRC, 64);
		ring_bells(self->h, 0, 1);
	}
	atomic_store(&stop_trouble, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(ended, 300);
	queue_init(self->h, 0);
	normal(self->h);
	memset(self->h->mem + DST, 0, 64);
	copy_word(self->h, 0, 0);
	EXPECT_EQ(copied(self->h, 0), 0x1000);
	EXPECT_EQ(run(&self->s, &job, &self->c), 0);
	neuron_chip_idle(self->h->chip);
}

TEST_HARNESS_MAIN
