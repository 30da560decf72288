/* SPDX-License-Identifier: MIT */
/*
 * Kernels of the builder, run through libnrt: bind, run in strict mode, read back.
 * Data is fp32 in the tests' arrays, and what the tensor's type can hold of it on
 * the chip.
 */
#ifndef KERNEL_COMMON_H
#define KERNEL_COMMON_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nki.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_ext.h"
#include "kselftest_harness.h"

#define MAX_BINDINGS 8

/**
 * struct binding - a tensor of the program
 * @data: host memory: contents of an input, room for an output
 * @output: which of them
 */
struct binding {
	const char *name;
	void *data;
	size_t size;
	bool output;
	nrt_tensor_t *tensor;
};

#define IN(tensor_name, array)	{ .name = tensor_name, .data = array, .size = sizeof(array) }
#define OUT(tensor_name, array) \
	{ .name = tensor_name, .data = array, .size = sizeof(array), .output = true }

/* The architecture of the chip the test runs on. */
static inline const char *kernel_arch(void)
{
	static char arch[8];
	const char *sim = getenv("NEURON_RT_SIM");

	if (sim && *sim)
		snprintf(arch, sizeof(arch), "%.4s", sim);
	else if (getenv("NKI_TEST_ARCH"))
		snprintf(arch, sizeof(arch), "%.4s", getenv("NKI_TEST_ARCH"));
	else
		strcpy(arch, "trn2");
	return arch;
}

static inline NRT_STATUS kernel_init(void)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "20", 1);
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
}

static inline NRT_STATUS bind(struct binding *b, nrt_tensor_set_t *in, nrt_tensor_set_t *out)
{
	NRT_STATUS status;

	status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, b->size, b->name, &b->tensor);
	if (!status)
		status = nrt_tensor_write(b->tensor, b->data, 0, b->size);
	if (!status)
		status = nrt_add_tensor_to_tensor_set(b->output ? out : in, b->name, b->tensor);
	return status;
}

static inline NRT_STATUS run_bound(nrt_model_t *model, struct binding *b, unsigned int n,
				   nrt_tensor_set_t *in, nrt_tensor_set_t *out)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (unsigned int i = 0; i < n && !status; i++)
		status = bind(&b[i], in, out);
	if (!status)
		status = nrt_execute(model, in, out);
	for (unsigned int i = 0; i < n; i++) {
		if (b[i].output && !status)
			status = nrt_tensor_read(b[i].tensor, b[i].data, 0, b[i].size);
		if (b[i].tensor)
			nrt_tensor_free(&b[i].tensor);
	}
	return status;
}

/* Run a NEFF once. @exec tells how it went; its status is also returned. */
static inline NRT_STATUS run_neff(const void *bytes, size_t size, struct binding *b, unsigned int n,
				  uint32_t flags, uint64_t seed, nrtx_execution_t *exec)
{
	nrt_tensor_set_t *in = NULL, *out = NULL;
	nrt_model_t *model = NULL;
	NRT_STATUS status;

	memset(exec, 0, sizeof(*exec));
	status = nrt_load(bytes, size, 0, 1, &model);
	if (status)
		return status;
	nrt_allocate_tensor_set(&in);
	nrt_allocate_tensor_set(&out);
	nrtx_model_set_flags(model, flags, seed);
	status = run_bound(model, b, n, in, out);
	nrtx_get_last_execution(model, exec, sizeof(*exec));
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_unload(model);
	return status;
}

/* Build and run in strict mode; true when nothing was wrong. Says what was. */
static inline bool run_kernel(struct nki_kernel *k, struct binding *b, unsigned int n,
			      uint32_t flags, uint64_t seed)
{
	nrtx_execution_t exec;
	NRT_STATUS status;
	size_t size;
	void *bytes;

	if (nki_build(k, &bytes, &size)) {
		printf("# %s\n", nki_error(k));
		return false;
	}
	status = run_neff(bytes, size, b, n, flags, seed, &exec);
	free(bytes);
	if (status)
		printf("# status %d: %s (%s:%u, other %s:%u)\n", status, exec.fault_text,
		       exec.fault_at.file, exec.fault_at.line, exec.fault_other.file,
		       exec.fault_other.line);
	return status == NRT_SUCCESS;
}

#define RUN(k, b)	run_kernel(k, b, sizeof(b) / sizeof((b)[0]), NRTX_STRICT, 0)

/* Values that differ, in [-1, 1), the same on every host. */
static inline float pseudo(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (int32_t)*state / 2147483648.0f;
}

static inline void fill(float *data, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		data[i] = pseudo(&seed);
}

/* What bf16 keeps of a number: nearest, ties to even. */
static inline float as_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	bits += 0x7fff + (bits >> 16 & 1);
	bits &= 0xffff0000;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Largest difference, as a multiple of @rtol * |expected| + @atol: up to 1 is good. */
static inline double worst(const float *got, const double *expected, size_t n, double rtol,
			   double atol)
{
	double most = 0;

	for (size_t i = 0; i < n; i++) {
		double d = fabs(got[i] - expected[i]) / (rtol * fabs(expected[i]) + atol);

		if (!(d <= most))	/* also when it is NaN */
			most = isnan(d) ? INFINITY : d;
	}
	return most;
}

#endif /* KERNEL_COMMON_H */
