// SPDX-License-Identifier: MIT
/*
 * Each kernel of examples/kernels, in strict mode: right at a small and a realistic
 * size; each of its semaphores is needed, or strict mode proves that others imply
 * it; and it gives the same bytes whatever the latencies are.
 *
 * KERNELS_SMALL=1 leaves the realistic sizes out (a reference in an emulated CPU
 * takes minutes).
 */
#include <stdlib.h>
#include <string.h>

#include "neuron/regs.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_ext.h"
#include "case_data.h"
#include "kselftest_harness.h"

enum { SEEDS = 100 };

/**
 * struct run - a loaded program with its tensors
 * @raw: by tensor: its bytes before and after
 */
struct run {
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *tensor[CASE_TENSORS];
	void *raw[CASE_TENSORS];
	nrtx_execution_t exec;
};

static size_t bytes_of(const struct case_tensor *t)
{
	return t->n * nki_dtype_size(t->dtype);
}

/* The architecture of the chip the test runs on. */
static const char *kernel_arch(void)
{
	static char arch[32];
	const char *sim = getenv("NEURON_RT_SIM"), *other = getenv("NKI_TEST_ARCH");

	snprintf(arch, sizeof(arch), "%s", sim && *sim ? sim : other ? other : "trn2");
	arch[strcspn(arch, ":")] = '\0';
	return arch;
}

static void run_end(struct run *r)
{
	for (unsigned int i = 0; i < CASE_TENSORS; i++) {
		if (r->tensor[i])
			nrt_tensor_free(&r->tensor[i]);
		free(r->raw[i]);
	}
	if (r->in)
		nrt_destroy_tensor_set(&r->in);
	if (r->out)
		nrt_destroy_tensor_set(&r->out);
	if (r->model)
		nrt_unload(r->model);
	memset(r, 0, sizeof(*r));
}

static NRT_STATUS tensor_begin(struct run *r, unsigned int i, const struct case_tensor *t)
{
	NRT_STATUS status;

	r->raw[i] = case_pack(t);
	status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, bytes_of(t), t->name,
				     &r->tensor[i]);
	if (!status)
		status = nrt_add_tensor_to_tensor_set(t->output ? r->out : r->in, t->name,
						      r->tensor[i]);
	if (!status && !t->output)
		status = nrt_tensor_write(r->tensor[i], r->raw[i], 0, bytes_of(t));
	return status;
}

static NRT_STATUS run_begin(struct run *r, struct nki_kernel *k, const struct case_data *d)
{
	NRT_STATUS status;
	size_t size;
	void *neff;

	memset(r, 0, sizeof(*r));
	if (nki_build(k, &neff, &size)) {
		ksft_print_msg("%s\n", nki_error(k));
		return NRT_FAILURE;
	}
	status = nrt_load(neff, size, 0, 1, &r->model);
	free(neff);
	if (!status)
		status = nrt_allocate_tensor_set(&r->in);
	if (!status)
		status = nrt_allocate_tensor_set(&r->out);
	for (unsigned int i = 0; i < d->count && !status; i++)
		status = tensor_begin(r, i, &d->tensor[i]);
	return status;
}

/* Outputs start as zeros in every run. */
static NRT_STATUS run_once(struct run *r, const struct case_data *d, uint32_t flags, uint64_t seed)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (unsigned int i = 0; i < d->count && !status; i++)
		if (d->tensor[i].output) {
			memset(r->raw[i], 0, bytes_of(&d->tensor[i]));
			status = nrt_tensor_write(r->tensor[i], r->raw[i], 0, bytes_of(&d->tensor[i]));
		}
	nrtx_model_set_flags(r->model, flags, seed);
	if (!status)
		status = nrt_execute(r->model, r->in, r->out);
	nrtx_get_last_execution(r->model, &r->exec, sizeof(r->exec));
	for (unsigned int i = 0; i < d->count && !status; i++)
		if (d->tensor[i].output)
			status = nrt_tensor_read(r->tensor[i], r->raw[i], 0, bytes_of(&d->tensor[i]));
	return status;
}

static void say_fault(const struct run *r)
{
	ksft_print_msg("%s (%s:%u, other %s:%u)\n", r->exec.fault_text, r->exec.fault_at.file,
		       r->exec.fault_at.line, r->exec.fault_other.file, r->exec.fault_other.line);
}

static bool same_bytes(const struct run *a, const struct run *b, const struct case_data *d)
{
	for (unsigned int i = 0; i < d->count; i++)
		if (d->tensor[i].output && memcmp(a->raw[i], b->raw[i], bytes_of(&d->tensor[i])))
			return false;
	return true;
}

FIXTURE(kernel) {
	const struct kernel_case *c;
	struct nki_kernel *k;
	struct case_data data;
	struct run run;
};

FIXTURE_VARIANT(kernel) {
	const struct kernel_case *c;
};

#define ADD_CASE(name) FIXTURE_VARIANT_ADD(kernel, name) { .c = &case_##name };
KERNEL_CASES(ADD_CASE)

FIXTURE_SETUP(kernel)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "120", 1);
	self->c = variant->c;
	self->k = nki_kernel_new(variant->c->name, kernel_arch());
	ASSERT_NE(NULL, self->k);
	if (nki_nc_version(self->k) < self->c->min_nc)
		SKIP(return, "not on NeuronCore-v%u", nki_nc_version(self->k));
	ASSERT_EQ(NRT_SUCCESS, nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
}

FIXTURE_TEARDOWN(kernel)
{
	run_end(&self->run);
	case_free(&self->data);
	nki_kernel_free(self->k);
	nrt_close();
}

static double worst(const double *got, const struct case_tensor *t, double rtol, double atol)
{
	double most = 0;

	for (size_t i = 0; i < t->n; i++) {
		double d = fabs(got[i] - t->value[i]) / (rtol * fabs(t->value[i]) + atol);

		if (isnan(t->value[i]) || got[i] == t->value[i])
			continue;
		if (!(d <= most))	/* also when it is NaN */
			most = isnan(d) ? INFINITY : d;
	}
	return most;
}

static bool outputs_right(const struct kernel_case *c, const struct case_data *d,
			  const struct run *r)
{
	double *got[CASE_TENSORS] = { NULL };
	bool right = true;

	for (unsigned int i = 0; i < d->count; i++) {
		const struct case_tensor *t = &d->tensor[i];
		double most;

		if (!t->output)
			continue;
		got[i] = case_unpack(t, r->raw[i]);
		if (c->check)
			continue;
		most = worst(got[i], t, c->rtol, c->atol);
		if (most > 1) {
			ksft_print_msg("%s: %g times the tolerance\n", t->name, most);
			right = false;
		}
	}
	if (c->check)
		right = c->check(d, got);
	for (unsigned int i = 0; i < d->count; i++)
		free(got[i]);
	return right;
}

static void right_at(struct __test_metadata *_metadata, FIXTURE_DATA(kernel) *self,
		     const unsigned int *shape)
{
	NRT_STATUS status;

	self->c->build(self->k, shape);
	self->c->data(&self->data, shape);
	ASSERT_EQ(NRT_SUCCESS, run_begin(&self->run, self->k, &self->data));
	status = run_once(&self->run, &self->data, NRTX_STRICT | self->c->flags, 0);
	if (status)
		say_fault(&self->run);
	ASSERT_EQ(NRT_SUCCESS, status);
	EXPECT_TRUE(outputs_right(self->c, &self->data, &self->run));
	ksft_print_msg("%s: %llu instructions, modelled %llu ns\n", self->c->name,
		       (unsigned long long)self->run.exec.instructions,
		       (unsigned long long)self->run.exec.modelled_ns);
}

TEST_F(kernel, small)
{
	right_at(_metadata, self, self->c->small);
}

TEST_F_TIMEOUT(kernel, large, 120)
{
	if (getenv("KERNELS_SMALL"))
		SKIP(return, "KERNELS_SMALL is set");
	right_at(_metadata, self, self->c->large);
}

TEST_F_TIMEOUT(kernel, any_latency, 120)
{
	struct run first = { 0 };

	self->c->build(self->k, self->c->small);
	self->c->data(&self->data, self->c->small);
	ASSERT_EQ(NRT_SUCCESS, run_begin(&first, self->k, &self->data));
	ASSERT_EQ(NRT_SUCCESS, run_begin(&self->run, self->k, &self->data));
	ASSERT_EQ(NRT_SUCCESS, run_once(&first, &self->data, NRTX_STRICT | self->c->flags, 1));
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		/* Rounding at random has its seed too: the job's, so the first run's bytes differ. */
		if (self->c->flags)
			ASSERT_EQ(NRT_SUCCESS, run_once(&first, &self->data,
							NRTX_STRICT | self->c->flags, seed));
		ASSERT_EQ(NRT_SUCCESS, run_once(&self->run, &self->data,
						NRTX_STRICT | NRTX_JITTER | self->c->flags, seed)) {
			say_fault(&self->run);
		}
		ASSERT_TRUE(same_bytes(&first, &self->run, &self->data));
	}
	run_end(&first);
}

/* What a missing order shows as: also a count that no longer fits. */
static bool found(const struct run *r)
{
	return r->exec.fault == NEURON_FAULT_DATA_RACE || r->exec.fault == NEURON_FAULT_UNINITIALIZED ||
	       r->exec.fault == NEURON_FAULT_PSUM_CONFLICT || r->exec.fault == NEURON_FAULT_SBUF_CONFLICT;
}

static void say_edge(struct nki_kernel *k, int n, unsigned int fault)
{
	struct nki_edge e;

	if (nki_edge(k, n, &e))
		return;
	ksft_print_msg("edge %d, %s:%d %s -> %s:%d %s (%s%s): fault %u\n", n, e.producer.file,
		       e.producer.line, e.producer.name, e.consumer.file, e.consumer.line,
		       e.consumer.name, e.reason, e.carried ? ", carried" : "", fault);
}

/*
 * Strict mode orders two accesses only if no arrival of updates could reverse them: a
 * run without a fault proves that the other edges imply this one.
 */
TEST_F_TIMEOUT(kernel, each_semaphore, 240)
{
	struct run without;
	int edges, needed = 0, implied = 0;

	self->c->build(self->k, self->c->small);
	self->c->data(&self->data, self->c->small);
	edges = nki_edge_count(self->k);
	ASSERT_LT(0, edges);
	ASSERT_EQ(NRT_SUCCESS, run_begin(&self->run, self->k, &self->data));
	ASSERT_EQ(NRT_SUCCESS, run_once(&self->run, &self->data, NRTX_STRICT | self->c->flags, 1));
	for (int n = 0; n < edges; n++) {
		NRT_STATUS status;

		nki_drop_semaphore(self->k, n);
		ASSERT_EQ(NRT_SUCCESS, run_begin(&without, self->k, &self->data));
		status = run_once(&without, &self->data, NRTX_STRICT | self->c->flags, 1);
		if (status && !found(&without)) {
			say_edge(self->k, n, without.exec.fault);
			EXPECT_TRUE(false);
		} else if (!status) {
			say_edge(self->k, n, 0);
			EXPECT_TRUE(same_bytes(&self->run, &without, &self->data));
			implied++;
		} else {
			needed++;
		}
		run_end(&without);
	}
	EXPECT_LT(0, needed);
	ksft_print_msg("%s: %d semaphores, %d implied by others\n", self->c->name, edges, implied);
}

TEST_HARNESS_MAIN
