// SPDX-License-Identifier: MIT
/* The analysis of traces, on a trace whose shares can be counted by hand. */
#include "kselftest_harness.h"

#include <errno.h>
#include <string.h>

#include "profile_view.h"

/*
 * ticks   0    100   200   300   400
 * PE      [busy)......wait [busy)		wait for DMA from 100 to 300
 * DVE           wait [busy )			wait for PE from 0 to 150
 * DMA     [      busy     )			two transfers that overlap, to 300
 */
static struct neuron_trace_record records[] = {
	{ .issue = 0, .start = 0, .end = 120, .busy = 100, .engine = NEURON_ENGINE_PE, .debug_id = 1,
	  .queue = 0xff, .macs = 16384 },
	{ .issue = 0, .start = 0, .end = 200, .engine = NEURON_ENGINE_DMA, .debug_id = 2, .queue = 0,
	  .bytes = 1000 },
	{ .issue = 0, .start = 100, .end = 300, .engine = NEURON_ENGINE_DMA, .debug_id = 2, .queue = 1,
	  .bytes = 1000 },
	{ .issue = 0, .start = 150, .end = 260, .busy = 100, .engine = NEURON_ENGINE_DVE, .debug_id = 3,
	  .queue = 0xff, .wait = NEURON_TRACE_WAIT_SEMAPHORE, .wait_engine = NEURON_ENGINE_PE,
	  .wait_index = 7, .wait_debug_id = 1 },
	{ .issue = 80, .start = 300, .end = 420, .busy = 100, .engine = NEURON_ENGINE_PE, .debug_id = 1,
	  .queue = 0xff, .wait = NEURON_TRACE_WAIT_SEMAPHORE, .wait_engine = NEURON_ENGINE_DMA,
	  .wait_index = 8, .wait_debug_id = 2, .macs = 16384 },
};

static struct neff_line lines[] = {
	{ "src/net.c", "nki_nc_matmul", 10 },
	{ "src/net.c", "nki_dma_copy", 20 },
	{ "src/net.c", "nki_tensor_tensor", 30 },
};

static struct profile_execution execution = {
	.header = { .nc_version = 3, .cores = 1, .records = 5, .tick_hz = NEURON_TICK_HZ,
		    .end_ticks = 400 },
	.records = records,
};

static struct profile_file file = {
	.model = "net", .arch = "trn2", .core_count = 1,
	.core = { { .lines = lines, .line_count = 3 } },
	.count = 1, .executions = &execution,
};

TEST(shares)
{
	struct profile_view view = { 0 };
	struct profile_summary s;

	ASSERT_EQ(0, profile_summarize(&file, &view, &s));
	EXPECT_EQ(400, s.to - s.from);
	EXPECT_EQ(200, s.use[NEURON_ENGINE_PE].busy);
	EXPECT_EQ(200, s.use[NEURON_ENGINE_PE].waiting);
	EXPECT_EQ(200, s.use[NEURON_ENGINE_PE].wait_on[NEURON_ENGINE_DMA]);
	EXPECT_EQ(0, s.use[NEURON_ENGINE_PE].idle);
	EXPECT_EQ(2, s.use[NEURON_ENGINE_PE].instructions);
	EXPECT_EQ(100, s.use[NEURON_ENGINE_DVE].busy);
	EXPECT_EQ(150, s.use[NEURON_ENGINE_DVE].wait_on[NEURON_ENGINE_PE]);
	EXPECT_EQ(150, s.use[NEURON_ENGINE_DVE].idle);
	EXPECT_EQ(300, s.use[NEURON_ENGINE_DMA].busy);
	EXPECT_EQ(0, s.use[NEURON_ENGINE_DMA].waiting);
	EXPECT_STREQ("DMA", profile_bound(&s));
}

/* 2 x 16,384 MACs are two of the array's cycles: 400 ticks are 28.57 of them at 2.4 GHz. */
TEST(rates)
{
	struct profile_view view = { 0 };
	struct profile_summary s;
	double ns = 400 / 33.6;

	ASSERT_EQ(0, profile_summarize(&file, &view, &s));
	EXPECT_TRUE(s.macs > 32767.9 && s.macs < 32768.1);
	EXPECT_TRUE(s.mac_peak > 0.999 * 16384 * 2.4 * ns && s.mac_peak < 1.001 * 16384 * 2.4 * ns);
	EXPECT_TRUE(s.dma_bytes > 1999.9 && s.dma_bytes < 2000.1);
	EXPECT_TRUE(s.dma_peak > 0.999 * 368 * ns && s.dma_peak < 1.001 * 368 * ns);
}

/* 200 ticks x 200 busy of PE come before 150 x 100 of DVE. */
TEST(stalls)
{
	struct profile_view view = { 0 };
	struct profile_summary s;

	ASSERT_EQ(0, profile_summarize(&file, &view, &s));
	ASSERT_EQ(2, s.stalls);
	EXPECT_EQ(200, s.stall[0].ticks);
	EXPECT_EQ(&records[4], s.stall[0].record);
	EXPECT_EQ(150, s.stall[1].ticks);
	EXPECT_EQ(&records[3], s.stall[1].record);
}

/*
 * Back from PE's second product (300 to 420, 100 of work) over the transfer that it
 * waited for (100 to 300) and its trigger (0 to 100) to the instruction that issued it.
 */
TEST(critical_path)
{
	struct neuron_trace_record r[5];
	struct profile_execution x = execution;
	struct profile_file f = file;
	struct profile_path path;

	memcpy(r, records, sizeof(r));
	x.records = r;
	f.executions = &x;
	r[2].waits[0] = (struct neuron_trace_waits){
		.kind = NEURON_TRACE_WAIT_TRIGGER, .ticks = 100, .record = 0, .engine = NEURON_ENGINE_PE,
	};
	r[4].waits[0] = (struct neuron_trace_waits){
		.kind = NEURON_TRACE_WAIT_SEMAPHORE, .ticks = 220, .record = 2, .index = 8,
		.engine = NEURON_ENGINE_DMA,
	};
	ASSERT_EQ(0, profile_critical_path(&f, 0, &path));
	EXPECT_EQ(3, path.steps);
	EXPECT_EQ(420, path.ticks);
	EXPECT_EQ(100, path.work[NEURON_ENGINE_PE]);
	EXPECT_EQ(200, path.work[NEURON_ENGINE_DMA]);
	EXPECT_EQ(0, path.work[NEURON_ENGINE_DVE]);
	EXPECT_EQ(120, path.latency);
	EXPECT_EQ(&r[2], path.top[0].record);
	EXPECT_EQ(200, path.top[0].ticks);
	EXPECT_EQ(1, path.top[1].record->debug_id);
	EXPECT_EQ(100, path.top[1].ticks);
	EXPECT_EQ(-ENOENT, profile_critical_path(&f, 1, &path));
}

/* Each of several waits goes to its cause. */
TEST(wait_causes)
{
	struct neuron_trace_record r[5];
	struct profile_execution x = execution;
	struct profile_file f = file;
	struct profile_view view = { 0 };
	struct profile_summary s;

	memcpy(r, records, sizeof(r));
	x.records = r;
	f.executions = &x;
	/* Of its 150: 90 for PE, 40 for a bank that ACT had, 20 for itself. */
	r[3].waits[0] = (struct neuron_trace_waits){ .kind = NEURON_TRACE_WAIT_SEMAPHORE, .ticks = 90,
						     .engine = NEURON_ENGINE_PE };
	r[3].waits[1] = (struct neuron_trace_waits){ .kind = NEURON_TRACE_WAIT_BANK, .ticks = 40,
						     .engine = NEURON_ENGINE_ACT };
	r[3].waits[2] = (struct neuron_trace_waits){ .kind = NEURON_TRACE_WAIT_ENGINE, .ticks = 20,
						     .engine = NEURON_ENGINE_DVE };
	ASSERT_EQ(0, profile_summarize(&f, &view, &s));
	EXPECT_EQ(90, s.use[NEURON_ENGINE_DVE].wait_on[NEURON_ENGINE_PE]);
	EXPECT_EQ(40, s.use[NEURON_ENGINE_DVE].wait_on[NEURON_ENGINE_COUNT]);
	EXPECT_EQ(20, s.use[NEURON_ENGINE_DVE].wait_on[0]);
	EXPECT_EQ(150, s.use[NEURON_ENGINE_DVE].waiting);
}

TEST(window)
{
	struct profile_view view = { .from = 200, .to = 320 };
	struct profile_summary s;

	ASSERT_EQ(0, profile_summarize(&file, &view, &s));
	EXPECT_EQ(20, s.use[NEURON_ENGINE_PE].busy);
	EXPECT_EQ(100, s.use[NEURON_ENGINE_PE].waiting);
	EXPECT_EQ(50, s.use[NEURON_ENGINE_DVE].busy);
	EXPECT_EQ(100, s.use[NEURON_ENGINE_DMA].busy);
	/* A fifth of the second matmul; half of the second transfer. */
	EXPECT_TRUE(s.macs > 3276 && s.macs < 3277);
	EXPECT_TRUE(s.dma_bytes > 499 && s.dma_bytes < 501);
}

TEST(steps)
{
	struct profile_view view = { 0 };

	ASSERT_EQ(0, profile_find_step(&file, "net.c", 10, 0, &view));
	EXPECT_EQ(0, view.from);
	EXPECT_EQ(300, view.to);
	ASSERT_EQ(0, profile_find_step(&file, "net.c", 10, 1, &view));
	EXPECT_EQ(300, view.from);
	EXPECT_EQ(400, view.to);
	EXPECT_EQ(-ENOENT, profile_find_step(&file, "net.c", 10, 2, &view));
	EXPECT_EQ(-ENOENT, profile_find_step(&file, "t.c", 10, 0, &view));
	EXPECT_EQ(-ENOENT, profile_find_step(&file, "net.c", 11, 0, &view));
}

TEST(bad_views)
{
	struct profile_view none = { .execution = 1 }, core = { .core = 1 };
	struct profile_view empty = { .from = 300, .to = 300 }, late = { .from = 400 };
	struct profile_summary s;

	EXPECT_EQ(-ENOENT, profile_summarize(&file, &none, &s));
	EXPECT_EQ(-ENOENT, profile_summarize(&file, &core, &s));
	EXPECT_EQ(-ENOENT, profile_summarize(&file, &empty, &s));
	EXPECT_EQ(-ENOENT, profile_summarize(&file, &late, &s));
}

/* Numbers in a file are not trusted. */
TEST(wild_records)
{
	struct neuron_trace_record wild[] = {
		{ .issue = UINT64_MAX, .start = UINT64_MAX - 5, .end = 3, .busy = UINT32_MAX, .engine = 1 },
		{ .issue = 5, .start = 0, .end = UINT64_MAX, .busy = UINT32_MAX, .engine = NEURON_ENGINE_DMA },
		{ .engine = 0xee }, { .core = 200 },
		{ .issue = 0, .start = 10, .end = 20, .busy = 5, .engine = 2, .wait = 0xff,
		  .wait_engine = 0xff, .debug_id = UINT32_MAX },
		{ .issue = UINT64_MAX - 2, .start = UINT64_MAX, .end = 1, .engine = 9, .core = 77,
		  .waits = { { UINT32_MAX, 1, 0, 1, 0xff }, { UINT32_MAX, UINT32_MAX, 0, 0xee, 0xee },
			     { 1, 2, 3, 4, 5 }, { 5, 5, 5, 5, 5 } } },
	};
	struct profile_execution x = execution;
	struct profile_file f = file;
	struct profile_view view = { .width = 400 };
	FILE *out = fopen("/dev/null", "w");

	ASSERT_NE(NULL, out);
	x.records = wild;
	x.header.end_ticks = UINT64_MAX;
	f.executions = &x;
	EXPECT_EQ(0, profile_print(&f, &view, out));
	fclose(out);
}

TEST_HARNESS_MAIN
