// SPDX-License-Identifier: MIT
/*
 * What a program sees of faults on demand (NEURON_RT_SIM_INJECT): the published
 * status of each, and that the process goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neff_make.h"
#include "nrt/nrt.h"
#include "nrt/nrt_ext.h"
#include "kselftest_harness.h"

#define COUNT	1024
#define BYTES	(4 * COUNT)

static const char *test_arch(void)
{
	const char *sim = getenv("NEURON_RT_SIM");

	return sim && *sim ? sim : "trn2";
}

/* One process: a model that copies x to y, with these faults from the start. */
struct world {
	nrt_model_t *model;
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
	float host[COUNT];
};

static NRT_STATUS begin(const char *faults)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	setenv("NEURON_RT_SIM_INJECT", faults, 1);
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
}

static bool make(struct world *w)
{
	struct neff_blob blob = neff_make_copy(test_arch(), COUNT);
	bool ok;
	int i;

	for (i = 0; i < COUNT; i++)
		w->host[i] = 3 * i + 0.5f;
	ok = !nrt_load(blob.bytes, blob.size, 0, 1, &w->model) &&
	     !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, BYTES, "x", &w->x) &&
	     !nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, BYTES, "y", &w->y) &&
	     !nrt_allocate_tensor_set(&w->in) && !nrt_allocate_tensor_set(&w->out) &&
	     !nrt_add_tensor_to_tensor_set(w->in, "x", w->x) &&
	     !nrt_add_tensor_to_tensor_set(w->out, "y", w->y) &&
	     !nrt_tensor_write(w->x, w->host, 0, BYTES);
	free(blob.bytes);
	return ok;
}

static void end(struct world *w)
{
	if (w->model)
		nrt_unload(w->model);
	if (w->out)
		nrt_destroy_tensor_set(&w->out);
	if (w->in)
		nrt_destroy_tensor_set(&w->in);
	if (w->y)
		nrt_tensor_free(&w->y);
	if (w->x)
		nrt_tensor_free(&w->x);
	nrt_close();
	memset(w, 0, sizeof(*w));
}

static NRT_STATUS execute(struct world *w)
{
	return nrt_execute(w->model, w->in, w->out);
}

static bool right(struct world *w)
{
	float got[COUNT];

	return !nrt_tensor_read(w->y, got, 0, BYTES) && !memcmp(got, w->host, BYTES);
}

TEST(bad_faults_are_refused)
{
	EXPECT_NE(begin("hbm-ue,core=1"), NRT_SUCCESS);
	EXPECT_NE(begin("sram-ue;9:nothing;nothing"), NRT_SUCCESS);
	ASSERT_EQ(begin("7:nothing; ;sram-ce"), NRT_SUCCESS);
	nrt_close();
}

/*
 * 1201: NRT_EXEC_HW_ERR_HBM_UE. The n-th read of HBM fails, for each n until the
 * program is through: instructions, arguments, and the data by whatever way it is read.
 */
TEST(hbm_error)
{
	struct world w = { 0 };
	char faults[64];
	NRT_STATUS status;
	int n, failed = 0;

	for (n = 0; n < 200; n++) {
		snprintf(faults, sizeof(faults), "hbm-ue,after=%d,count=1", n);
		ASSERT_EQ(begin(faults), NRT_SUCCESS);
		ASSERT_TRUE(make(&w));
		status = execute(&w);
		if (status == NRT_SUCCESS)
			break;
		failed++;
		EXPECT_EQ(status, 1201);
		end(&w);
	}
	EXPECT_GE(failed, 2);
	EXPECT_EQ(status, NRT_SUCCESS);
	end(&w);
}

/* 1202: NRT_EXEC_HW_ERR_NC_UE. */
TEST(parity_error)
{
	struct world w = { 0 };

	ASSERT_EQ(begin("sram-ue,core=0"), NRT_SUCCESS);
	ASSERT_TRUE(make(&w));
	EXPECT_EQ(execute(&w), 1202);
	end(&w);
}

/* The watchdog or the time-out ends it: NRT_TIMEOUT. */
TEST(stuck_engine)
{
	struct world w = { 0 };

	ASSERT_EQ(begin("engine-stuck,core=0"), NRT_SUCCESS);
	ASSERT_TRUE(make(&w));
	EXPECT_EQ(execute(&w), NRT_TIMEOUT);
	end(&w);
}

TEST(another_core_does_not_matter)
{
	struct world w = { 0 };

	ASSERT_EQ(begin("engine-stuck,core=1;sram-ue,core=1;1:dma-abort"), NRT_SUCCESS);
	ASSERT_TRUE(make(&w));
	EXPECT_EQ(execute(&w), NRT_SUCCESS);
	EXPECT_TRUE(right(&w));
	end(&w);
}

TEST(firmware_that_does_not_come_up)
{
	EXPECT_NE(begin("fw-not-ready"), NRT_SUCCESS);
	EXPECT_NE(begin("reset-hang,type=device"), NRT_SUCCESS);
	EXPECT_EQ(begin(""), NRT_SUCCESS);
	nrt_close();
}

TEST_HARNESS_MAIN
