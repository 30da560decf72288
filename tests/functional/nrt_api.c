// SPDX-License-Identifier: MIT
/* Process state, tensors and sets, through the public library. */
#include <dlfcn.h>
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
#include "kselftest_harness.h"

#define DEV NRT_TENSOR_PLACEMENT_DEVICE
#define HOST NRT_TENSOR_PLACEMENT_HOST

static NRT_STATUS init(void)
{
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
}

static void set_env(const char *visible, const char *count, const char *lnc)
{
	visible ? setenv("NEURON_RT_VISIBLE_CORES", visible, 1) : unsetenv("NEURON_RT_VISIBLE_CORES");
	count ? setenv("NEURON_RT_NUM_CORES", count, 1) : unsetenv("NEURON_RT_NUM_CORES");
	lnc ? setenv("NEURON_LOGICAL_NC_CONFIG", lnc, 1) : unsetenv("NEURON_LOGICAL_NC_CONFIG");
}

static void fill(unsigned char *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = seed >> 24;
	}
}

/* ---- process ------------------------------------------------------------------- */

TEST(before_init)
{
	nrt_tensor_t *tensor = (void *)1;
	nrt_tensor_set_t *set;
	nrt_model_t *model;
	uint32_t count = 0;

	EXPECT_EQ(NRT_UNINITIALIZED, nrt_tensor_allocate(DEV, 0, 64, "t", &tensor));
	EXPECT_EQ(NULL, tensor);
	EXPECT_EQ(NRT_UNINITIALIZED, nrt_tensor_allocate_empty("t", &tensor));
	EXPECT_EQ(NRT_UNINITIALIZED, nrt_allocate_tensor_set(&set));
	EXPECT_EQ(NRT_UNINITIALIZED, nrt_load("x", 1, 0, 1, &model));
	/* libfabric asks this before it does anything else. */
	EXPECT_EQ(NRT_SUCCESS, nrt_get_total_nc_count(&count));
	EXPECT_GT(count, 0);
	EXPECT_EQ(NRT_INVALID, nrt_get_total_nc_count(NULL));
	nrt_close();
	EXPECT_EQ(NRT_UNINITIALIZED, nrt_allocate_tensor_set(&set));
}

TEST(init_close_init)
{
	nrt_tensor_t *tensor;
	uint32_t total, visible;

	set_env("0", NULL, NULL);
	EXPECT_EQ(NRT_INVALID, nrt_init(NRT_FRAMEWORK_TYPE_INVALID, "", ""));
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(NRT_SUCCESS, init());
		EXPECT_EQ(NRT_INVALID, init());
		EXPECT_EQ(NRT_SUCCESS, nrt_get_total_vnc_count(&total));
		EXPECT_EQ(NRT_SUCCESS, nrt_get_visible_vnc_count(&visible));
		EXPECT_EQ(1, visible);
		EXPECT_GE(total, visible);
		EXPECT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 64, NULL, &tensor));
		nrt_close();
		EXPECT_EQ(NRT_CLOSED, nrt_tensor_write(tensor, "x", 0, 1));
		nrt_tensor_free(&tensor);
		EXPECT_EQ(NULL, tensor);
		nrt_close();
	}
}

TEST(counts)
{
	uint32_t one, two, visible, total;

	set_env(NULL, NULL, "1");
	ASSERT_EQ(NRT_SUCCESS, nrt_get_total_nc_count(&one));
	EXPECT_EQ(NRT_SUCCESS, nrt_get_visible_nc_count(&visible));
	EXPECT_EQ(one, visible);
	set_env(NULL, "1", "1");
	EXPECT_EQ(NRT_SUCCESS, nrt_get_visible_nc_count(&visible));
	EXPECT_EQ(1, visible);
	set_env("1", "2", "1");
	EXPECT_EQ(NRT_SUCCESS, nrt_get_visible_nc_count(&visible));
	EXPECT_EQ(1, visible);	/* VISIBLE_CORES wins */
	set_env(NULL, NULL, "2");
	/* Two physical cores per logical core exist from Trainium2 on. */
	if (nrt_get_total_nc_count(&two) == NRT_SUCCESS) {
		EXPECT_EQ(one, 2 * two);
		set_env(NULL, NULL, NULL);
		EXPECT_EQ(NRT_SUCCESS, nrt_get_total_nc_count(&total));
		EXPECT_EQ(two, total);
	} else {
		set_env(NULL, NULL, NULL);
		EXPECT_EQ(NRT_SUCCESS, nrt_get_total_nc_count(&total));
		EXPECT_EQ(one, total);
	}
}

TEST(bad_environment)
{
	uint32_t count;

	set_env("0-", NULL, NULL);
	EXPECT_EQ(NRT_INVALID, init());
	EXPECT_EQ(NRT_INVALID, nrt_get_visible_nc_count(&count));
	set_env("1000", NULL, NULL);
	EXPECT_EQ(NRT_INVALID, init());
	set_env(NULL, "1000", NULL);
	EXPECT_EQ(NRT_FAILURE, init());
	set_env(NULL, NULL, "4");
	EXPECT_EQ(NRT_INVALID, init());
	/* A failed nrt_init() leaves nothing behind. */
	nrt_close();
	set_env("0", NULL, NULL);
	EXPECT_EQ(NRT_SUCCESS, init());
	nrt_close();
}

TEST(at_exit)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		nrt_tensor_t *tensor;

		set_env("0", NULL, NULL);
		atexit(nrt_close);
		if (init() || nrt_tensor_allocate(DEV, 0, 64, "t", &tensor))
			_exit(1);
		exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST(instance_info)
{
	nrt_instance_info_t info = { 0 };

	set_env("0", NULL, NULL);
	EXPECT_EQ(NRT_UNINITIALIZED, nrt_get_instance_info(&info, sizeof(info)));
	ASSERT_EQ(NRT_SUCCESS, init());
	EXPECT_EQ(NRT_SUCCESS, nrt_get_instance_info(&info, sizeof(info)));
	if (!strcmp(info.arch_name, "trn2"))
		EXPECT_EQ(NRT_INSTANCE_TRN2, info.family);
	if (!strcmp(info.arch_name, "trn1"))
		EXPECT_EQ(NRT_INSTANCE_TRN1, info.family);
	EXPECT_NE(0, info.arch_name[0]);
	nrt_close();
}

/* The node's name and the SONAME are part of the ABI; nothing else is exported. */
TEST(exported_symbols)
{
	void *lib = dlopen("libnrt.so.1", RTLD_NOW);

	ASSERT_NE(NULL, lib) TH_LOG("%s", dlerror());
	EXPECT_NE(NULL, dlvsym(lib, "nrt_init", "NRT_2.0.0"));
	EXPECT_NE(NULL, dlvsym(lib, "nrt_tensor_copy", "NRT_2.0.0"));
	EXPECT_NE(NULL, dlvsym(lib, "nrt_get_status_as_str", "NRT_2.0.0"));
	EXPECT_NE(NULL, dlsym(lib, "nrt_memcpy_to_device"));
	EXPECT_EQ(NULL, dlsym(lib, "neff_read"));
	EXPECT_EQ(NULL, dlsym(lib, "devmem_alloc"));
	dlclose(lib);
}

/* ---- tensors ---------------------------------------------------------------------- */

FIXTURE(tensor) {
	nrt_tensor_t *t;
};

FIXTURE_SETUP(tensor)
{
	set_env("0", NULL, NULL);
	ASSERT_EQ(NRT_SUCCESS, init());
}

FIXTURE_TEARDOWN(tensor)
{
	nrt_tensor_free(&self->t);
	nrt_close();
}

/* Round trips at odd offsets and sizes, against a copy on the host. */
static bool round_trips(nrt_tensor_t *t, size_t size)
{
	unsigned char *model = malloc(size), *in = malloc(size), *out = malloc(size);
	bool ok = true;

	fill(model, size, 1);
	ok &= !nrt_tensor_write(t, model, 0, size);
	srand(7);
	for (int i = 0; i < 40 && ok; i++) {
		size_t offset = rand() % size, n = 1 + rand() % (size - offset);

		fill(in, n, i);
		memcpy(model + offset, in, n);
		ok &= !nrt_tensor_write(t, in, offset, n);
		offset = rand() % size;
		n = 1 + rand() % (size - offset);
		ok &= !nrt_tensor_read(t, out, offset, n);
		ok &= !memcmp(out, model + offset, n);
	}
	ok &= !nrt_tensor_read(t, out, 0, size) && !memcmp(out, model, size);
	free(model);
	free(in);
	free(out);
	return ok;
}

TEST_F(tensor, device_round_trips)
{
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 300001, "device", &self->t));
	EXPECT_EQ(300001, nrt_tensor_get_size(self->t));
	EXPECT_TRUE(round_trips(self->t, 300001));
}

TEST_F(tensor, host_round_trips)
{
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(HOST, -1, 300001, NULL, &self->t));
	EXPECT_TRUE(round_trips(self->t, 300001));
}

TEST_F(tensor, attached_round_trips)
{
	unsigned char *buffer = calloc(1, 70000);

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_empty(NULL, &self->t));
	EXPECT_EQ(0, nrt_tensor_get_size(self->t));
	EXPECT_EQ(NULL, nrt_tensor_get_va(self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_write(self->t, "x", 0, 1));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_attach_buffer(self->t, NULL, 1));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_attach_buffer(self->t, buffer, 0));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_attach_buffer(self->t, buffer, 70000));
	EXPECT_EQ((void *)buffer, nrt_tensor_get_va(self->t));
	EXPECT_TRUE(round_trips(self->t, 70000));
	nrt_tensor_free(&self->t);
	free(buffer);
}

TEST_F(tensor, zeroed)
{
	unsigned char *bytes = malloc(1 << 20);

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 1 << 20, "z", &self->t));
	fill(bytes, 1 << 20, 3);
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(self->t, bytes, 0, 1 << 20));
	nrt_tensor_free(&self->t);
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 1 << 20, "z", &self->t));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_read(self->t, bytes, 0, 1 << 20));
	for (int i = 0; i < 1 << 20; i++)
		ASSERT_EQ(0, bytes[i]);
	free(bytes);
}

TEST_F(tensor, small)
{
	nrt_tensor_t *slice = NULL;
	uint16_t half = 0xbeef;
	uint32_t word = 0;

	/* 4-byte tensors and 2-byte slices are used by public clients. */
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 4, NULL, &self->t));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(self->t, 2, 2, NULL, &slice));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_write(slice, &half, 0, 2));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(self->t, &word, 0, 4));
	EXPECT_EQ(0xbeef0000, word);
	nrt_tensor_free(&slice);
}

TEST_F(tensor, slices_outlive_their_source)
{
	nrt_tensor_t *slice = NULL, *inner = NULL;
	char text[4] = "";

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 4096, "t", &self->t));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(self->t, "abc", 2003, 3));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(self->t, 1000, 2000, "s", &slice));
	nrt_tensor_free(&self->t);
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(slice, 1000, 10, "i", &inner));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(inner, text, 3, 3));
	EXPECT_STREQ("abc", text);
	EXPECT_EQ(NRT_INVALID, nrt_tensor_read(inner, text, 9, 2));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate_slice(slice, 1000, 1001, "x", &self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate_slice(slice, 0, 0, "x", &self->t));
	nrt_tensor_free(&slice);
	nrt_tensor_free(&inner);
}

TEST_F(tensor, bad_arguments)
{
	nrt_tensor_t *other = NULL;
	char byte;

	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate(DEV, 0, 0, "t", &self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate(DEV, 7777, 1, "t", &self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate(DEV, -1, 1, "t", &self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate(3, 0, 1, "t", &self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate(DEV, 0, SIZE_MAX, "t", &self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_allocate(DEV, 0, 1, "t", NULL));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 100, "t", &self->t));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_read(self->t, &byte, 100, 1));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_read(self->t, &byte, SIZE_MAX, 2));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_write(self->t, &byte, 99, 2));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_write(self->t, NULL, 0, 1));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_write(self->t, NULL, 100, 0));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_memset(self->t, 1, 0, 100));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_tensor_read(NULL, &byte, 0, 1));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_tensor_copy(self->t, 0, NULL, 0, 1));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_copy(self->t, 0, self->t, 1, 2));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_attach_buffer(self->t, &byte, 1));
	EXPECT_EQ(0, nrt_tensor_get_size(NULL));
	EXPECT_EQ(NULL, nrt_tensor_get_va(NULL));
	nrt_tensor_free(NULL);
	nrt_tensor_free(&other);
}

TEST_F(tensor, copies)
{
	static const nrt_tensor_placement_t places[] = { DEV, HOST };
	unsigned char in[5000], out[5000];

	fill(in, sizeof(in), 9);
	for (int a = 0; a < 2; a++) {
		for (int b = 0; b < 2; b++) {
			nrt_tensor_t *x, *y;

			ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(places[a], 0, 5000, "x", &x));
			ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(places[b], 0, 6000, "y", &y));
			ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(x, in, 0, 5000));
			EXPECT_EQ(NRT_SUCCESS, nrt_tensor_copy(x, 3, y, 1001, 4096));
			EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(y, out, 1001, 4096));
			EXPECT_EQ(0, memcmp(in + 3, out, 4096));
			EXPECT_EQ(NRT_INVALID, nrt_tensor_copy(x, 0, y, 2000, 4097));
			nrt_tensor_free(&x);
			nrt_tensor_free(&y);
		}
	}
}

TEST_F(tensor, memset_at_any_edge)
{
	unsigned char out[64];

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 64, "t", &self->t));
	for (size_t offset = 0; offset < 9; offset++) {
		for (size_t size = 0; size < 20; size++) {
			ASSERT_EQ(NRT_SUCCESS, nrt_tensor_memset(self->t, 0, 0x11, 64));
			ASSERT_EQ(NRT_SUCCESS, nrt_tensor_memset(self->t, offset, 0x1a5, size));
			ASSERT_EQ(NRT_SUCCESS, nrt_tensor_read(self->t, out, 0, 64));
			for (size_t i = 0; i < 64; i++)
				ASSERT_EQ(i >= offset && i < offset + size ? 0xa5 : 0x11, out[i]);
		}
	}
}

TEST_F(tensor, cpu_mapping)
{
	unsigned char in[100], *va;

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 10000, "t", &self->t));
	fill(in, sizeof(in), 4);
	va = nrt_tensor_get_va(self->t);
	ASSERT_NE(NULL, va);
	EXPECT_EQ(NRT_SUCCESS, nrt_memcpy_to_device(va + 77, in, sizeof(in)));
	memset(in, 0, sizeof(in));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(self->t, in, 77, sizeof(in)));
	EXPECT_EQ(0, memcmp(in, va + 77, sizeof(in)));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_write(self->t, "hello", 5000, 6));
	EXPECT_EQ(0, memcmp(va + 5000, "hello", 6));
}

TEST_F(tensor, batches)
{
	unsigned char in[256], out[256] = { 0 };
	nrt_tensor_batch_op_t ops[4];
	nrt_tensor_batch_t batch = { .ops = ops, .num_ops = 4 };

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 1000, "t", &self->t));
	batch.tensor = self->t;
	fill(in, sizeof(in), 2);
	for (int i = 0; i < 4; i++)
		ops[i] = (nrt_tensor_batch_op_t){ 200 * i, 64, in + 64 * i };
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_write_batch(&batch, 1, false));
	for (int i = 0; i < 4; i++)
		ops[i].buffer = out + 64 * i;
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read_batch(&batch, 1, false));
	EXPECT_EQ(0, memcmp(in, out, sizeof(in)));
	/* Checked before the first byte moves, also with "unsafe". */
	memset(out, 0, sizeof(out));
	ops[3].offset = 1000;
	EXPECT_EQ(NRT_INVALID, nrt_tensor_read_batch(&batch, 1, true));
	EXPECT_EQ(0, out[0] | out[1] | out[2] | out[3]);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Sizes are 64-bit: the upper end of a tensor larger than 4 GiB. */
TEST_F(tensor, larger_than_4_gib)
{
	size_t size = (5ull << 30) + 3;
	double begin = seconds();
	char text[4] = "";

	/* Memory comes zeroed; where that takes time, it would take all of it. */
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 256 << 20, "some", &self->t));
	nrt_tensor_free(&self->t);
	if (seconds() - begin > 1)
		SKIP(return, "clearing 256 MiB took %.1f s", seconds() - begin);

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, size, "big", &self->t));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_write(self->t, "end", size - 3, 3));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(self->t, text, size - 3, 3));
	EXPECT_STREQ("end", text);
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(self->t, text, (size - 3) & 0xffffffff, 3));
	EXPECT_STREQ("", text);
}

TEST_F(tensor, out_of_memory)
{
	nrt_vnc_memory_stats_t before = { 0 }, after = { 0 };
	size_t size;

	ASSERT_EQ(NRT_SUCCESS, nrt_get_vnc_memory_stats(0, &before, sizeof(before), &size));
	EXPECT_EQ(sizeof(before), size);
	EXPECT_GT(before.bytes_limit, 1ull << 30);
	EXPECT_EQ(NRT_RESOURCE, nrt_tensor_allocate(DEV, 0, before.bytes_limit + 1, "huge", &self->t));
	EXPECT_EQ(NULL, self->t);
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 1 << 20, "t", &self->t));
	ASSERT_EQ(NRT_SUCCESS, nrt_get_vnc_memory_stats(0, &after, sizeof(after), NULL));
	EXPECT_EQ(before.bytes_used + (1 << 20), after.bytes_used);
	nrt_tensor_free(&self->t);
	ASSERT_EQ(NRT_SUCCESS, nrt_get_vnc_memory_stats(0, &after, sizeof(after), NULL));
	EXPECT_EQ(before.bytes_used, after.bytes_used);
	EXPECT_EQ(NRT_INVALID, nrt_get_vnc_memory_stats(9999, &after, sizeof(after), NULL));
}

TEST_F(tensor, sets)
{
	nrt_tensor_set_t *set = NULL;
	nrt_tensor_t *found, *other;
	char name[300];

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 16, "t", &self->t));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(HOST, 0, 16, "o", &other));
	ASSERT_EQ(NRT_SUCCESS, nrt_allocate_tensor_set(&set));
	EXPECT_EQ(NRT_FAILURE, nrt_get_tensor_from_tensor_set(set, "a", &found));
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "tensor%d", i);
		ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(set, name, self->t));
	}
	EXPECT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(set, "tensor500", other));
	EXPECT_EQ(NRT_SUCCESS, nrt_get_tensor_from_tensor_set(set, "tensor500", &found));
	EXPECT_EQ(other, found);
	EXPECT_EQ(NRT_SUCCESS, nrt_get_tensor_from_tensor_set(set, "tensor999", &found));
	EXPECT_EQ(self->t, found);
	memset(name, 'n', sizeof(name));
	name[256] = 0;
	EXPECT_EQ(NRT_INVALID, nrt_add_tensor_to_tensor_set(set, name, other));
	name[255] = 0;
	EXPECT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(set, name, other));
	EXPECT_EQ(NRT_INVALID, nrt_add_tensor_to_tensor_set(set, "", other));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_add_tensor_to_tensor_set(set, "x", NULL));
	EXPECT_EQ(NRT_INVALID_HANDLE, nrt_add_tensor_to_tensor_set(NULL, "x", other));
	/* The set keeps the memory. */
	nrt_tensor_free(&other);
	EXPECT_EQ(NRT_SUCCESS, nrt_get_tensor_from_tensor_set(set, "tensor500", &found));
	EXPECT_EQ(16, nrt_tensor_get_size(found));
	nrt_destroy_tensor_set(&set);
	EXPECT_EQ(NULL, set);
	nrt_destroy_tensor_set(&set);
	nrt_destroy_tensor_set(NULL);
}

/* Handles that outlive nrt_close() are harmless, also after the next nrt_init(). */
TEST_F(tensor, outlive_close)
{
	nrt_tensor_set_t *set;
	nrt_tensor_t *slice;
	char byte;

	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 100, "t", &self->t));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate_slice(self->t, 10, 10, "s", &slice));
	ASSERT_EQ(NRT_SUCCESS, nrt_allocate_tensor_set(&set));
	ASSERT_EQ(NRT_SUCCESS, nrt_add_tensor_to_tensor_set(set, "t", self->t));
	nrt_close();
	EXPECT_EQ(NRT_CLOSED, nrt_tensor_read(self->t, &byte, 0, 1));
	EXPECT_EQ(100, nrt_tensor_get_size(self->t));
	EXPECT_EQ(NULL, nrt_tensor_get_va(self->t));
	ASSERT_EQ(NRT_SUCCESS, init());
	EXPECT_EQ(NRT_INVALID, nrt_tensor_read(self->t, &byte, 0, 1));
	EXPECT_EQ(NRT_INVALID, nrt_tensor_read(slice, &byte, 0, 1));
	EXPECT_EQ(NULL, nrt_tensor_get_va(slice));
	nrt_close();
	nrt_destroy_tensor_set(&set);
	nrt_tensor_free(&slice);
	nrt_tensor_free(&self->t);
}

/* A child is not initialised, and what it does leaves the parent's cores alone. */
static int in_child(nrt_tensor_t *t)
{
	uint32_t count;
	char byte;

	if (nrt_tensor_read(t, &byte, 0, 1) != NRT_UNINITIALIZED)
		return 1;
	nrt_tensor_free(&t);
	nrt_close();
	if (nrt_get_total_nc_count(&count))
		return 2;
	/* Core 0 is the parent's. */
	if (init() != NRT_FAILURE)
		return 3;
	nrt_close();
	return 0;
}

TEST_F(tensor, fork)
{
	char text[4] = "";
	int status;
	pid_t pid;

	if (getenv("NRT_TEST_NO_EXEC"))
		SKIP(return, "no cores to claim");
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, 100, "t", &self->t));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(self->t, "abc", 0, 4));
	pid = fork();
	if (!pid)
		_exit(in_child(self->t));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(self->t, text, 0, 4));
	EXPECT_STREQ("abc", text);
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_memset(self->t, 0, 0, 100));
}

/* NRT_TEST_NO_EXEC says that the chip has no execution block: memory works, nothing else. */
TEST_F(tensor, no_execution_block)
{
	struct neff_blob blob;
	nrt_model_t *model;

	if (!getenv("NRT_TEST_NO_EXEC"))
		SKIP(return, "the chip runs programs");
	blob = neff_make_copy("trn2", 64);
	EXPECT_EQ(NRT_FAILURE, nrt_load(blob.bytes, blob.size, 0, 1, &model));
	EXPECT_EQ(NULL, model);
	free(blob.bytes);
}

TEST(no_chip)
{
	uint32_t count;

	unsetenv("NEURON_RT_SIM");
	if (!access("/dev/accel", F_OK))
		SKIP(return, "there is one");
	EXPECT_EQ(NRT_INVALID, init());
	EXPECT_EQ(NRT_INVALID, nrt_get_total_nc_count(&count));
	nrt_close();
	setenv("NEURON_RT_SIM", "trn9", 1);
	EXPECT_EQ(NRT_INVALID, init());
	setenv("NEURON_RT_SIM", "trn2:", 1);
	EXPECT_EQ(NRT_INVALID, init());
	setenv("NEURON_RT_SIM", "trn2:0", 1);
	EXPECT_EQ(NRT_INVALID, init());
}

/* Two chips: logical cores go on, and copies cross. */
TEST(two_chips)
{
	const char *sim = getenv("NEURON_RT_SIM");
	static unsigned char in[3 << 20];
	unsigned char *out;
	nrt_tensor_t *a, *b, *c;
	char two[32];
	uint32_t one, both;

	if (!sim)
		SKIP(return, "one chip in this guest");
	set_env(NULL, NULL, NULL);
	ASSERT_EQ(NRT_SUCCESS, nrt_get_total_nc_count(&one));
	snprintf(two, sizeof(two), "%.*s:2", (int)strcspn(sim, ":"), sim);
	setenv("NEURON_RT_SIM", two, 1);
	ASSERT_EQ(NRT_SUCCESS, nrt_get_total_nc_count(&both));
	ASSERT_EQ(2 * one, both);
	ASSERT_EQ(NRT_SUCCESS, init());
	fill(in, sizeof(in), 8);
	out = calloc(1, sizeof(in));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, 0, sizeof(in), "a", &a));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, one, sizeof(in), "b", &b));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_allocate(DEV, one - 1, sizeof(in), "c", &c));
	ASSERT_EQ(NRT_SUCCESS, nrt_tensor_write(a, in, 0, sizeof(in)));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_copy(a, 0, b, 0, sizeof(in)));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_copy(b, 5, c, 5, sizeof(in) - 5));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_copy(a, 0, c, 0, 5));
	EXPECT_EQ(NRT_SUCCESS, nrt_tensor_read(c, out, 0, sizeof(in)));
	EXPECT_EQ(0, memcmp(in, out, sizeof(in)));
	nrt_close();
	nrt_tensor_free(&a);
	nrt_tensor_free(&b);
	nrt_tensor_free(&c);
	free(out);
}

static void *hammer(void *arg)
{
	unsigned char in[3000], out[3000];
	long failed = 0;

	for (int i = 0; i < 50; i++) {
		nrt_tensor_t *t;

		fill(in, sizeof(in), (uintptr_t)arg * 100 + i);
		if (nrt_tensor_allocate(i % 2 ? DEV : HOST, 0, 3000, "t", &t)) {
			failed++;
			continue;
		}
		failed += !!nrt_tensor_write(t, in, 0, 3000);
		failed += !!nrt_tensor_read(t, out, 0, 3000);
		failed += !!memcmp(in, out, 3000);
		nrt_tensor_free(&t);
	}
	return (void *)failed;
}

TEST_F(tensor, threads)
{
	pthread_t thread[4];
	void *failed;

	for (uintptr_t i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, hammer, (void *)i));
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &failed);
		EXPECT_EQ(NULL, failed);
	}
}

TEST_HARNESS_MAIN
