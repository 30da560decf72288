// SPDX-License-Identifier: MIT
/* Models and executions, with programs made by hand. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "neff_make.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_ext.h"
#include "nrt/nrt_profile.h"
#include "profile_file.h"
#include "kselftest_harness.h"

/* What the chip is: NEURON_RT_SIM, or the first chip of the driver. */
static const char *test_arch(void)
{
	static _Thread_local char arch[16];
	const char *sim = getenv("NEURON_RT_SIM");
	nrt_instance_info_t info;

	if (sim && *sim)
		snprintf(arch, sizeof(arch), "%.*s", (int)strcspn(sim, ":"), sim);
	else if (!arch[0] && !nrt_get_instance_info(&info, sizeof(info)))
		snprintf(arch, sizeof(arch), "%s", info.arch_name);
	return arch;
}

#define COUNT	1024
#define BYTES	(4 * COUNT)
#define DEV	NRT_TENSOR_PLACEMENT_DEVICE
#define HOST	NRT_TENSOR_PLACEMENT_HOST

FIXTURE(exec) {
	nrt_model_t *model;
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
	float host[COUNT];
};

static NRT_STATUS init(void)
{
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
}

FIXTURE_SETUP(exec)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "5", 1);
	ASSERT_EQ(NRT_SUCCESS, init());
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, BYTES, "x", &self->x));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, BYTES, "y", &self->y));
	ASSERT_EQ(NRT_SUCCESS, nrt_allocate_tensor_set(&self->in));
	ASSERT_EQ(NRT_SUCCESS, nrt_allocate_tensor_set(&self->out));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->in, "x", self->x));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->out, "y", self->y));
	for (int i = 0; i < COUNT; i++)
		self->host[i] = 3 * i + 0.5f;
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(self->x, self->host, 0, BYTES));
}

FIXTURE_TEARDOWN(exec)
{
	if (self->model)
		nrt_unload(self->model);
	nrt_destroy_tensor_set(&self->in);
	nrt_destroy_tensor_set(&self->out);
	nrt_tensor_free(&self->x);
	nrt_tensor_free(&self->y);
	nrt_close();
}

static NRT_STATUS load(struct neff_blob blob, nrt_model_t **model)
{
	NRT_STATUS status = nrt_load(blob.bytes, blob.size, 0, 1, model);

	free(blob.bytes);
	return status;
}

static bool is(nrt_tensor_t *t, const float *expected)
{
	float got[COUNT];

	return !nrt_tensor_read(t, got, 0, BYTES) && !memcmp(got, expected, BYTES);
}

/* ---- it works ----------------------------------------------------------------------- */

TEST_F(exec, copy)
{
	nrtx_execution_t e;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	EXPECT_EQ(NRT_FAILURE, nrtx_get_last_execution(self->model, &e, sizeof(e)));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_TRUE(is(self->y, self->host));
	ASSERT_EQ(NRT_SUCCESS, nrtx_get_last_execution(self->model, &e, sizeof(e)));
	EXPECT_EQ(NRT_SUCCESS, e.status);
	EXPECT_EQ(0, e.fault);
	EXPECT_GE(e.instructions, 1);
	EXPECT_GT(e.modelled_ns, 0);
	EXPECT_GT(e.wall_ns, 0);
}

/* Modelled time depends on the program only. */
TEST_F(exec, modelled_time_is_constant)
{
	nrtx_execution_t first, e;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	ASSERT_EQ(NRT_SUCCESS, nrtx_get_last_execution(self->model, &first, sizeof(first)));
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
		ASSERT_EQ(NRT_SUCCESS, nrtx_get_last_execution(self->model, &e, sizeof(e)));
		ASSERT_EQ(first.modelled_ns, e.modelled_ns);
	}
}

TEST_F(exec, constants)
{
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_constant(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	for (int i = 0; i < COUNT; i++)
		self->host[i] = i;
	EXPECT_TRUE(is(self->y, self->host));
}

/* Scratch memory is the core's: the second model makes it larger under the first. */
TEST_F(exec, shared_scratch)
{
	nrt_model_t *large;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_scratch(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_TRUE(is(self->y, self->host));
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_scratch(test_arch(), 1 << 20), &large));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_memset(self->y, 0, 0, BYTES));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_TRUE(is(self->y, self->host));
	EXPECT_EQ(NRT_SUCCESS, nrt_unload(large));
}

TEST_F(exec, host_and_attached_tensors)
{
	nrt_tensor_t *x, *y;
	float *buffer = calloc(1, BYTES);

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(HOST, -1, BYTES, "x", &x));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(x, self->host, 0, BYTES));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_empty("y", &y));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_attach_buffer(y, buffer, BYTES));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->in, "x", x));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->out, "y", y));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_EQ(0, memcmp(buffer, self->host, BYTES));
	nrt_tensor_free(&x);
	nrt_tensor_free(&y);
}

TEST_F(exec, slices)
{
	nrt_tensor_t *big, *x, *y;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 4 * BYTES, "big", &big));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(big, 100, BYTES, "x", &x));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(big, 2 * BYTES + 4, BYTES, "y", &y));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(x, self->host, 0, BYTES));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->in, "x", x));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->out, "y", y));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_TRUE(is(y, self->host));
	nrt_tensor_free(&x);
	nrt_tensor_free(&y);
	nrt_tensor_free(&big);
}

/* The same tensor as input and output. */
TEST_F(exec, in_place)
{
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_scratch(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->out, "y", self->x));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_TRUE(is(self->x, self->host));
}

/* A logical core of two: one program runs on both physical cores. */
TEST_F(exec, two_physical_cores)
{
	nrt_model_t *other;
	nrtx_execution_t e;

	nrt_close();
	setenv("NEURON_LOGICAL_NC_CONFIG", "2", 1);
	if (init())
		SKIP(return, "this chip has no logical cores of two");
	nrt_tensor_free(&self->x);
	nrt_tensor_free(&self->y);
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, BYTES, "x", &self->x));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, BYTES, "y", &self->y));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->in, "x", self->x));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->out, "y", self->y));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(self->x, self->host, 0, BYTES));
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_two_cores(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_TRUE(is(self->y, self->host));
	ASSERT_EQ(NRT_SUCCESS, nrtx_get_last_execution(self->model, &e, sizeof(e)));
	EXPECT_GE(e.instructions, 2);
	/* The other way round it does not fit. */
	nrt_close();
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	ASSERT_EQ(NRT_SUCCESS, init());
	EXPECT_EQ(NRT_LOAD_NOT_ENOUGH_NC, load(neff_make_two_cores(test_arch(), COUNT), &other));
}

TEST_F(exec, repeat)
{
	nrtx_execution_t e;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	EXPECT_EQ(NRT_INVALID, nrt_execute_repeat(self->model, self->in, self->out, 0));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute_repeat(self->model, self->in, self->out, 10));
	EXPECT_TRUE(is(self->y, self->host));
	ASSERT_EQ(NRT_SUCCESS, nrtx_get_last_execution(self->model, &e, sizeof(e)));
	EXPECT_EQ(10, e.seqno);
}

TEST_F(exec, tensor_info)
{
	nrt_tensor_info_array_t *info;
	nrt_model_info_t where = { 77 };
	uint32_t count = 0;
	size_t size;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_get_model_tensor_info(self->model, &info));
	ASSERT_EQ(2, info->tensor_count);
	EXPECT_STREQ("x", info->tensor_array[0].name);
	EXPECT_EQ(NRT_TENSOR_USAGE_INPUT, info->tensor_array[0].usage);
	EXPECT_EQ(NRT_TENSOR_USAGE_OUTPUT, info->tensor_array[1].usage);
	EXPECT_EQ(BYTES, info->tensor_array[1].size);
	EXPECT_EQ(NRT_DTYPE_FLOAT32, info->tensor_array[1].dtype);
	EXPECT_EQ(1, info->tensor_array[1].ndim);
	EXPECT_EQ(COUNT, info->tensor_array[1].shape[0]);
	EXPECT_EQ(NRT_SUCCESS, nrt_free_model_tensor_info(info));
	EXPECT_EQ(NRT_SUCCESS, nrt_get_model_vnc_count(self->model, &count));
	EXPECT_EQ(1, count);
	EXPECT_EQ(NRT_SUCCESS, nrt_get_model_info(self->model, &where, sizeof(where), &size));
	EXPECT_EQ(0, where.vnc);
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_get_model_vnc_count(NULL, &count));
}

/* ---- what is wrong is said ------------------------------------------------------------ */

TEST_F(exec, bad_load)
{
	struct neff_blob blob = neff_make_copy(test_arch(), COUNT);
	nrt_model_t *m = (void *)1;
	const char *other = test_nc_version(test_arch()) == 3 ? "trn1" : "trn2";

	EXPECT_EQ(NRT_INVALID, nrt_load(NULL, 10, 0, 1, &m));
	EXPECT_EQ(NRT_INVALID, nrt_load(blob.bytes, blob.size, 0, 1, NULL));
	EXPECT_EQ(NRT_INVALID, nrt_load(blob.bytes, blob.size, 1, 1, &m));
	EXPECT_EQ(NRT_INVALID, nrt_load(blob.bytes, blob.size, -2, 1, &m));
	EXPECT_EQ(NRT_INVALID, nrt_load(blob.bytes, blob.size, 0, 2, &m));
	EXPECT_EQ(NRT_INVALID, nrt_load(blob.bytes, blob.size - 1, 0, 1, &m));
	EXPECT_EQ(NULL, m);
	EXPECT_EQ(NRT_SUCCESS, nrt_load(blob.bytes, blob.size, -1, -1, &m));
	EXPECT_EQ(NRT_SUCCESS, nrt_unload(m));
	((struct neff_header *)blob.bytes)->feature_bits = 0x201c00;
	EXPECT_EQ(NRT_UNSUPPORTED_NEFF_VERSION, nrt_load(blob.bytes, blob.size, 0, 1, &m));
	free(blob.bytes);
	EXPECT_EQ(NRT_UNSUPPORTED_NEFF_VERSION, load(neff_make_copy(other, COUNT), &m));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_unload(NULL));
}

TEST_F(exec, wrong_logical_core_size)
{
	nrt_model_t *m;

	nrt_destroy_tensor_set(&self->in);
	nrt_destroy_tensor_set(&self->out);
	nrt_close();
	setenv("NEURON_LOGICAL_NC_CONFIG", "2", 1);
	if (init())
		SKIP(return, "this chip has no logical cores of two");
	EXPECT_EQ(NRT_INVALID, load(neff_make_copy(test_arch(), COUNT), &m));
}

TEST_F(exec, bad_inputs)
{
	nrt_tensor_set_t *empty = NULL;
	nrt_tensor_t *small;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_allocate_tensor_set(&empty));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, BYTES - 4, "small", &small));
	EXPECT_EQ(NRT_EXEC_BAD_INPUT, nrt_execute(self->model, empty, self->out));
	EXPECT_EQ(NRT_FAILURE, nrt_execute(self->model, self->in, empty));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(empty, "x", small));
	EXPECT_EQ(NRT_EXEC_BAD_INPUT, nrt_execute(self->model, empty, self->out));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_execute(NULL, self->in, self->out));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_execute(self->model, NULL, self->out));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_execute(self->model, self->in, NULL));
	nrt_destroy_tensor_set(&empty);
	nrt_tensor_free(&small);
	EXPECT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
}

TEST_F(exec, out_of_bounds_names_tensor_and_line)
{
	nrtx_execution_t e;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_bounds(test_arch(), COUNT), &self->model));
	/* fault.def: ARG_BOUNDS is NRT_INVALID. */
	EXPECT_EQ(NRT_INVALID, nrt_execute(self->model, self->in, self->out));
	ASSERT_EQ(NRT_SUCCESS, nrtx_get_last_execution(self->model, &e, sizeof(e)));
	EXPECT_EQ(NEURON_FAULT_ARG_BOUNDS, e.fault);
	EXPECT_STREQ("prog.c", e.fault_at.file);
	EXPECT_STREQ("insn2", e.fault_at.function);
	EXPECT_EQ(12, e.fault_at.line);
	EXPECT_NE(NULL, strstr(e.fault_text, "tensor 'x'"));
	EXPECT_NE(NULL, strstr(e.fault_text, "prog.c:12")) TH_LOG("%s", e.fault_text);
}

TEST_F(exec, deadlock)
{
	nrt_tensor_t *x, *y;
	nrtx_execution_t e;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_deadlock(test_arch()), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(self->x, 0, 64, "x", &x));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(self->y, 0, 64, "y", &y));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->in, "x", x));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(self->out, "y", y));
	EXPECT_EQ(NRT_TIMEOUT, nrt_execute(self->model, self->in, self->out));
	ASSERT_EQ(NRT_SUCCESS, nrtx_get_last_execution(self->model, &e, sizeof(e)));
	EXPECT_EQ(NEURON_FAULT_DEADLOCK, e.fault);
	EXPECT_EQ(14, e.fault_at.line);
	EXPECT_NE(NULL, strstr(e.fault_text, "semaphore 7 to be 3")) TH_LOG("%s", e.fault_text);
	nrt_tensor_free(&x);
	nrt_tensor_free(&y);
}

/* A program that never ends is ended, and the core runs the next one. */
TEST_F(exec, timeout)
{
	nrt_model_t *spin;
	nrt_tensor_t *x, *y;
	nrt_tensor_set_t *in, *out;
	struct timespec begin, end;

	nrt_close();
	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	ASSERT_EQ(NRT_SUCCESS, init());
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_spin(test_arch()), &spin));
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), 16), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 64, "x", &x));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 64, "y", &y));
	ASSERT_EQ(NRT_SUCCESS, nrt_allocate_tensor_set(&in));
	ASSERT_EQ(NRT_SUCCESS, nrt_allocate_tensor_set(&out));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(in, "x", x));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(out, "y", y));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	EXPECT_EQ(NRT_TIMEOUT, nrt_execute(spin, in, out));
	clock_gettime(CLOCK_MONOTONIC, &end);
	EXPECT_GE(end.tv_sec - begin.tv_sec + 1, 1);
	EXPECT_LE(end.tv_sec - begin.tv_sec, 10);
	EXPECT_EQ(NRT_SUCCESS, nrt_execute(self->model, in, out));
	EXPECT_EQ(NRT_SUCCESS, nrt_unload(spin));
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&x);
	nrt_tensor_free(&y);
}

/* After every kind of failure the next job runs. */
TEST_F(exec, recovers)
{
	nrt_model_t *bad;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_bounds(test_arch(), COUNT), &bad));
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(NRT_INVALID, nrt_execute(bad, self->in, self->out));
		ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	}
	EXPECT_EQ(NRT_SUCCESS, nrt_unload(bad));
}

TEST_F(exec, garbage_programs)
{
	unsigned char stream[8 * NEURON_WORD_BYTES];

	srand(11);
	for (int i = 0; i < 200; i++) {
		struct neff_make *m;
		nrt_model_t *bad;

		for (size_t b = 0; b < sizeof(stream); b++)
			stream[b] = rand() % 3 ? 0 : rand();
		stream[1] = 1 + rand() % 4;
		m = neff_make_program("garbage", test_arch(), COUNT, i % 2 ? "sp" : "act", stream, 8);
		ASSERT_EQ(NRT_SUCCESS, load(neff_make_finish(m), &bad));
		nrt_execute(bad, self->in, self->out);
		ASSERT_EQ(NRT_SUCCESS, nrt_unload(bad));
	}
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	EXPECT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
}

TEST_F(exec, models_outlive_close)
{
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	nrt_close();
	EXPECT_EQ(NRT_CLOSED, nrt_execute(self->model, self->in, self->out));
	ASSERT_EQ(NRT_SUCCESS, init());
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_execute(self->model, self->in, self->out));
	EXPECT_EQ(NRT_SUCCESS, nrt_unload(self->model));
	self->model = NULL;
}

TEST_F(exec, flags)
{
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	EXPECT_EQ(NRT_INVALID, nrtx_model_set_flags(self->model, 8, 0));
	EXPECT_EQ(NRT_SUCCESS, nrtx_model_set_flags(self->model, NRTX_STRICT, 0));
	EXPECT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_TRUE(is(self->y, self->host));
	/* A race-free program gives the same bytes for every seed. */
	for (int seed = 0; seed < 10; seed++) {
		EXPECT_EQ(NRT_SUCCESS, nrtx_model_set_flags(self->model, NRTX_JITTER | NRTX_STRICT, seed));
		EXPECT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
		EXPECT_TRUE(is(self->y, self->host));
	}
}

/* ---- threads and processes ---------------------------------------------------------------- */

struct runner {
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
};

static void *run(void *arg)
{
	struct runner *r = arg;
	long failed = 0;

	for (int i = 0; i < 50; i++)
		failed += !!nrt_execute(r->model, r->in, r->out);
	return (void *)failed;
}

TEST_F(exec, threads_on_one_model)
{
	struct runner r;
	pthread_t thread[12];
	void *failed;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	r = (struct runner){ self->model, self->in, self->out };
	for (int i = 0; i < 12; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, run, &r));
	for (int i = 0; i < 12; i++) {
		pthread_join(thread[i], &failed);
		EXPECT_EQ(NULL, failed);
	}
	EXPECT_TRUE(is(self->y, self->host));
}

/* Models come and go on one core, traced and not, while others run. */
static void *come_and_go(void *arg)
{
	struct runner *r = arg;
	char path[] = "/tmp/nrt_thread_XXXXXX";
	int fd = mkstemp(path);
	long failed = 0;

	close(fd);
	for (int i = 0; i < 20; i++) {
		unsigned int size = 1 << (10 + i % 5);
		nrt_tensor_info_array_t *info;
		nrt_model_t *m;

		failed += !!load(neff_make_scratch(test_arch(), COUNT), &m);
		failed += !!nrt_profile_start(m, path);
		failed += !!nrt_execute(m, r->in, r->out);
		failed += !!nrt_get_model_tensor_info(m, &info);
		nrt_free_model_tensor_info(info);
		failed += !!nrt_profile_stop(path);
		failed += !!nrt_execute(r->model, r->in, r->out);
		failed += !!nrt_unload(m);
		/* One whose scratch memory is larger. */
		failed += !!load(neff_make_scratch(test_arch(), size), &m);
		failed += !!nrt_unload(m);
	}
	unlink(path);
	return (void *)failed;
}

TEST_F(exec, models_come_and_go)
{
	struct runner r;
	pthread_t thread[4];
	void *failed;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	r = (struct runner){ self->model, self->in, self->out };
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, come_and_go, &r));
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &failed);
		EXPECT_EQ(NULL, failed);
	}
}

static void *run_until_closed(void *arg)
{
	struct runner *r = arg;
	NRT_STATUS status;

	do {
		status = nrt_execute(r->model, r->in, r->out);
	} while (!status);
	return (void *)(long)status;
}

TEST_F(exec, close_under_load)
{
	struct runner r;
	pthread_t thread[4];
	void *status;

	ASSERT_EQ(NRT_SUCCESS, load(neff_make_copy(test_arch(), COUNT), &self->model));
	r = (struct runner){ self->model, self->in, self->out };
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, run_until_closed, &r));
	usleep(100000);
	nrt_close();
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &status);
		EXPECT_EQ((void *)NRT_CLOSED, status);
	}
	EXPECT_EQ(NRT_CLOSED, nrt_unload(self->model));
	self->model = NULL;
}

/* A core belongs to one process until it exits; another chip in-process is another
 * machine, so this is only for the driver.
 */
TEST_F(exec, busy_core)
{
	int status;
	pid_t pid;

	if (getenv("NEURON_RT_SIM"))
		SKIP(return, "the chip is in this process");
	/* When its owner is killed, the core is free. */
	nrt_close();
	pid = fork();
	if (!pid) {
		char *argv[] = { "/proc/self/exe", "--hold", NULL };

		execv(argv[0], argv);
		_exit(99);
	}
	sleep(2);
	EXPECT_EQ(NRT_FAILURE, init());
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	for (int i = 0; i < 50 && init(); i++)
		usleep(100000);
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 64, "t", &self->x));
}

/* Run this program with @what and return its status. */
static int spawn(char *what)
{
	char *argv[] = { "/proc/self/exe", what, NULL };
	int status;
	pid_t pid = fork();

	if (!pid) {
		execv(argv[0], argv);
		_exit(99);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* While core 0 is taken another process gets a free one, but not all of them. */
TEST_F(exec, free_cores)
{
	if (getenv("NEURON_RT_SIM"))
		SKIP(return, "the chip is in this process");
	EXPECT_EQ(NRT_SUCCESS, spawn("--one"));
	EXPECT_EQ(NRT_FAILURE, spawn("--all"));
	EXPECT_EQ(NRT_FAILURE, spawn("--busy"));
	nrt_close();
	EXPECT_EQ(NRT_SUCCESS, spawn("--all"));
	EXPECT_EQ(NRT_SUCCESS, spawn("--busy"));
}

/* ---- profiles -------------------------------------------------------------------------------- */

TEST_F(exec, profile)
{
	char path[] = "/tmp/nrt_profile_XXXXXX", error[256] = "";
	struct profile_file *file;
	const struct neff_line *line;
	const struct neuron_trace_record *r;
	bool found = false;
	int fd = mkstemp(path);

	ASSERT_GE(fd, 0);
	close(fd);
	ASSERT_EQ(NRT_SUCCESS, load(neff_make_scratch(test_arch(), COUNT), &self->model));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	EXPECT_EQ(NRT_INVALID, nrt_profile_stop(path));
	ASSERT_EQ(NRT_SUCCESS, nrt_profile_start(self->model, path));
	EXPECT_EQ(NRT_INVALID, nrt_profile_start(self->model, path));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	ASSERT_EQ(NRT_SUCCESS, nrt_profile_stop(path));
	ASSERT_EQ(NRT_SUCCESS, nrt_execute(self->model, self->in, self->out));
	ASSERT_EQ(0, profile_read(path, &file, error, sizeof(error))) TH_LOG("%s", error);
	unlink(path);
	EXPECT_STREQ("scratch", file->model);
	EXPECT_STREQ(test_arch(), file->arch);
	EXPECT_EQ(0, file->dropped_executions);
	ASSERT_EQ(3, file->count);
	EXPECT_EQ(2, file->executions[0].seqno);
	EXPECT_EQ(file->executions[0].modelled_ns, file->executions[2].modelled_ns);
	EXPECT_EQ(0, file->executions[0].header.dropped);
	ASSERT_GE(file->executions[0].header.records, 2);
	for (uint64_t i = 0; i < file->executions[0].header.records; i++) {
		r = &file->executions[0].records[i];
		EXPECT_LE(r->issue, r->start);
		EXPECT_LE(r->start, r->end);
		EXPECT_LE(r->end, file->executions[0].header.end_ticks);
		line = profile_line(file, r->core, r->debug_id);
		ASSERT_NE(NULL, line);
		EXPECT_STREQ("prog.c", line->file);
		/* The second DMA waits for the first. */
		found |= r->debug_id == 2 && r->wait == NEURON_TRACE_WAIT_SEMAPHORE && r->wait_debug_id == 1;
	}
	EXPECT_TRUE(found);
	profile_close(file);
}

static int child(const char *what)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	if (!strcmp(what, "--one") || !strcmp(what, "--all")) {
		unsetenv("NEURON_RT_VISIBLE_CORES");
		setenv("NEURON_RT_NUM_CORES", strcmp(what, "--one") ? "0" : "1", 1);
		return init();
	}
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	if (!strcmp(what, "--busy"))
		return init();
	if (init())
		return 1;
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const children[] = { "--busy", "--hold", "--one", "--all" };

	for (size_t i = 0; argc == 2 && i < sizeof(children) / sizeof(children[0]); i++)
		if (!strcmp(argv[1], children[i]))
			return child(argv[1]);
	return test_harness_run(argc, argv);
}
