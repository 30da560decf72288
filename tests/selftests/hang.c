// SPDX-License-Identifier: MIT
/*
 * The watchdog. A program that makes progress is left alone; a slot that has
 * stopped is reset. The second is provoked behind the driver's back, through the
 * execution block's registers: needs root and iomem=relaxed, and the module
 * parameter timeout_ms set to 300.
 */
#include "kselftest_harness.h"

#include "drv.h"

#define RESOURCE	"/sys/class/accel/accel0/device/resource2"
#define TIMEOUT		"/sys/module/neuron/parameters/timeout_ms"

FIXTURE(hang) {
	int fd;
	uint32_t vm, ctx, sync, mask;
	struct drv_prog p;
};

FIXTURE_SETUP(hang)
{
	char text[16] = "";
	FILE *f = fopen(TIMEOUT, "r");

	if (!f || !fgets(text, sizeof(text), f) || atoi(text) != 300)
		SKIP(return, "the module was not loaded with timeout_ms=300");
	fclose(f);
	self->fd = drv_open();
	ASSERT_GE(self->fd, 0);
	self->mask = 1;
	ASSERT_EQ(0, drv_vm(self->fd, &self->vm));
	ASSERT_EQ(0, drv_ctx(self->fd, self->vm, 0, &self->mask, 0, &self->ctx));
	ASSERT_EQ(0, drv_prog_init(self->fd, self->vm, &self->p));
	ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &self->sync));
}

FIXTURE_TEARDOWN(hang)
{
	close(self->fd);
}

TEST_F(hang, progress_is_no_hang)
{
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL, .handle = self->sync };
	struct drm_neuron_job job = drv_exec();
	struct drm_neuron_ctx_state st;

	drv_prog_loop(&self->p);
	drv_syncs(&job, &op, 1);
	ASSERT_EQ(0, drv_submit(self->fd, self->ctx, &job, 1));
	/* Five times the watchdog's period. */
	EXPECT_EQ(-ETIME, drv_wait(self->fd, self->sync, 1500));
	ASSERT_EQ(0, drv_ctx_state(self->fd, self->ctx, &st));
	EXPECT_EQ(0, st.state);
	/* Let it end. */
	self->p.code[0] = drv_insn(NEURON_OP_NOP);
	ASSERT_EQ(0, drv_ctx_destroy(self->fd, self->ctx));
	EXPECT_EQ(0, drv_wait(self->fd, self->sync, 1000));
	EXPECT_EQ(-ECANCELED, drv_fence_error(self->fd, self->sync));
}

TEST_F(hang, a_stopped_slot_is_reset)
{
	struct drm_neuron_sync_op op = { .flags = DRM_NEURON_SYNC_SIGNAL };
	struct drm_neuron_job job = drv_exec();
	struct drm_neuron_ctx_state st;
	volatile uint32_t *slot;
	uint32_t sync[3], i;
	int64_t start;
	char *bar;
	int res;

	self->p.code[0] = drv_insn(NEURON_OP_HALT);
	drv_prog_stream(&self->p, 1, 1);
	ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	res = open(RESOURCE, O_RDWR);
	if (res < 0)
		SKIP(return, "no access to the registers");
	bar = mmap(NULL, NEURON_EXEC_BAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, res, 0);
	if (bar == MAP_FAILED)
		SKIP(return, "no access to the registers: iomem=relaxed is needed");
	/* A doorbell that cannot be right stops the slot. */
	for (i = 0; i < NEURON_MAX_SLOTS; i++) {
		slot = (volatile uint32_t *)(bar + NEURON_EXEC_SLOT(i));
		if (slot[NEURON_SLOT_CTRL / 4] & NEURON_SLOT_CTRL_ENABLE)
			slot[NEURON_SLOT_DOORBELL / 4] = 0x40000000;
	}
	start = drv_now();
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, drmSyncobjCreate(self->fd, 0, &sync[i]));
		op.handle = sync[i];
		drv_syncs(&job, &op, 1);
		ASSERT_EQ(0, drv_submit(self->fd, self->ctx, &job, 1));
	}
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, drv_wait(self->fd, sync[i], 5000));
	EXPECT_GE(drv_now() - start, 250000000);
	/* The first one is to blame, the others went with it. */
	EXPECT_EQ(-ETIME, drv_fence_error(self->fd, sync[0]));
	EXPECT_EQ(-ECANCELED, drv_fence_error(self->fd, sync[1]));
	EXPECT_EQ(-ECANCELED, drv_fence_error(self->fd, sync[2]));
	ASSERT_EQ(0, drv_ctx_state(self->fd, self->ctx, &st));
	EXPECT_EQ(DRM_NEURON_CTX_TIMEDOUT, st.state);
	/* And the context goes on. */
	for (i = 0; i < 300; i++)
		ASSERT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
}

/* Switches the queues that the driver uses off or on. */
static int set_queues(uint32_t on)
{
	const char *path = "/sys/class/accel/accel0/device/resource0";
	int fd = open(path, O_RDWR), engine, q;
	volatile uint32_t *reg;
	char *page;

	if (fd < 0)
		return -1;
	for (engine = 0; engine < 4; engine++) {
		for (q = 0; q < 2; q++) {
			page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    NEURON_V3_H2T_UDMA(engine) + NEURON_UDMA_Q(q));
			if (page == MAP_FAILED)
				return -1;
			reg = (volatile uint32_t *)(page + NEURON_UDMA_Q_CFG);
			*reg = NEURON_UDMA_Q_CFG_RESET_VALUE | on;
			munmap(page, PAGE);
		}
	}
	return close(fd);
}

TEST_F(hang, a_stopped_dma_queue_is_reset)
{
	struct drm_neuron_query_device q = {};
	struct drm_neuron_job job;
	uint32_t bo, *p;

	ASSERT_EQ(0, drv_query(self->fd, DRM_NEURON_QUERY_DEVICE, &q, sizeof(q)));
	if (q.nc_version < 3)
		SKIP(return, "another register map");
	ASSERT_EQ(0, drv_bo(self->fd, 40 * MIB, 0, &bo));
	p = drv_map(self->fd, bo, 40 * MIB);
	ASSERT_NE(MAP_FAILED, p);
	if (set_queues(0))
		SKIP(return, "no access to the registers: iomem=relaxed is needed");
	/* Two pieces: the second one must not run, either. */
	job = drv_fill(bo, 0, 40 * MIB, 5);
	EXPECT_NE(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(0, p[0]);
	EXPECT_EQ(0, p[10 * MIB - 1]);
	/* The driver has switched this queue on again, but knows nothing of the others. */
	job = drv_fill(bo, 0, 40 * MIB, 6);
	EXPECT_EQ(0, drv_run(self->fd, self->ctx, &job, self->sync));
	EXPECT_EQ(6, p[0]);
	EXPECT_EQ(6, p[10 * MIB - 1]);
	EXPECT_EQ(0, set_queues(NEURON_UDMA_Q_CFG_EN_PREF | NEURON_UDMA_Q_CFG_EN_SCHED));
}

TEST_HARNESS_MAIN
