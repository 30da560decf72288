// SPDX-License-Identifier: MIT
/*
 * Strict mode finds each semaphore that is missing: kernels are run once as they
 * are, then once for every edge without it. An edge that is not missed must be shown
 * to be implied by others, with strict mode satisfied and the same bytes whatever the
 * latencies; of these programs none is.
 */
#include "neuron/regs.h"
#include "kernel_common.h"

#define F 64

static float x[128 * F], y[128 * F], z[128 * F];

/* A pipeline over four engines, in a loop with one set of tiles. */
static void pipeline(struct nki_kernel *k)
{
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, 128, F);
	struct nki_view out = nki_output(k, "y", NKI_FLOAT32, 128, F);
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, F), b = nki_sbuf(k, NKI_FLOAT32, 128, F);
	struct nki_view ps = nki_psum(k, NKI_FLOAT32, F, F), c = nki_sbuf(k, NKI_FLOAT32, F, F);

	nki_for(k, i, 0, 4, 1) {
		nki_dma_copy(k, a, in);
		nki_activation(k, b, NKI_TANH, a);
		nki_nc_matmul(k, ps, a, b);
		nki_tensor_copy(k, c, ps);
		nki_tensor_scalar(k, c, c, NKI_ADD, nki_f32(1), .engine = NKI_ENGINE_GPSIMD);
		nki_dma_copy(k, nki_rows(k, out, 0, F), c);
	}
}

/* Tiles that are freed and taken again, without a loop. */
static void reuse(struct nki_kernel *k)
{
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, 128, F);
	struct nki_view out = nki_output(k, "y", NKI_FLOAT32, 128, F);

	for (int i = 0; i < 3; i++) {
		struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, F), b = nki_sbuf(k, NKI_FLOAT32, 128, F);

		nki_dma_copy(k, a, in);
		nki_activation(k, b, NKI_SIGMOID, a);
		nki_tensor_tensor(k, b, b, a, NKI_MULTIPLY, .engine = i == 1 ? NKI_ENGINE_GPSIMD :
									       NKI_ENGINE_VECTOR);
		nki_dma_copy(k, out, b, .engine = NKI_ENGINE_SCALAR);
		nki_free(k, a);
		nki_free(k, b);
	}
}

/* A transfer with three consumers, an inner loop, and a result used after it. */
static void nest(struct nki_kernel *k)
{
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, 128, F);
	struct nki_view out = nki_output(k, "y", NKI_FLOAT32, 128, F);
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 128, F), s = nki_sbuf(k, NKI_FLOAT32, 128, F);
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, F), u = nki_sbuf(k, NKI_FLOAT32, 128, F);

	nki_memset(k, s, 0);
	nki_for(k, i, 0, 3, 1) {
		nki_dma_copy(k, a, in);
		nki_activation(k, t, NKI_EXP, a);
		nki_tensor_copy(k, u, a, .engine = NKI_ENGINE_GPSIMD);
		nki_for(k, j, 0, 2, 1) {
			nki_tensor_tensor(k, s, s, t, NKI_ADD);
			nki_tensor_tensor(k, u, u, s, NKI_ADD, .engine = NKI_ENGINE_GPSIMD);
		}
		nki_tensor_tensor(k, s, s, a, NKI_ADD);
	}
	nki_tensor_tensor(k, s, s, u, NKI_ADD);
	nki_dma_copy(k, out, s);
}

FIXTURE(edges) {
	nrtx_execution_t exec;
};

FIXTURE_VARIANT(edges) {
	void (*make)(struct nki_kernel *k);
	int redundant;	/* at most */
};

FIXTURE_VARIANT_ADD(edges, pipeline) {
	.make = pipeline,
};

FIXTURE_VARIANT_ADD(edges, reuse) {
	.make = reuse,
};

FIXTURE_VARIANT_ADD(edges, nest) {
	.make = nest,
};

FIXTURE_SETUP(edges)
{
	ASSERT_EQ(NRT_SUCCESS, kernel_init());
	fill(x, 128 * F, 1);
}

FIXTURE_TEARDOWN(edges)
{
	nrt_close();
}

static NRT_STATUS run_without(struct nki_kernel *k, int edge, uint64_t seed, float *out,
			      nrtx_execution_t *exec)
{
	struct binding io[] = { IN("x", x), { .name = "y", .data = out, .size = sizeof(y), .output = true } };
	NRT_STATUS status;
	size_t size;
	void *bytes;

	nki_drop_semaphore(k, edge);
	if (nki_build(k, &bytes, &size))
		return NRT_FAILURE;
	status = run_neff(bytes, size, io, 2, NRTX_STRICT | (seed ? NRTX_JITTER : 0), seed, exec);
	free(bytes);
	return status;
}

/* A missing order shows as a race, or as a read of what is not there yet. */
static bool found(const nrtx_execution_t *exec)
{
	return exec->fault == NEURON_FAULT_DATA_RACE || exec->fault == NEURON_FAULT_UNINITIALIZED ||
	       exec->fault == NEURON_FAULT_SBUF_CONFLICT || exec->fault == NEURON_FAULT_PSUM_CONFLICT;
}

/* Without the edge nothing changes, for any latency. */
static bool implied(struct nki_kernel *k, int edge, nrtx_execution_t *exec)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		memset(z, 0, sizeof(z));
		if (run_without(k, edge, seed, z, exec) || memcmp(y, z, sizeof(y)))
			return false;
	}
	return true;
}

TEST_F(edges, each_is_needed)
{
	struct nki_kernel *k = nki_kernel_new("edges", kernel_arch());
	int edges, races = 0, redundant = 0;

	variant->make(k);
	edges = nki_edge_count(k);
	ASSERT_LT(3, edges);
	ASSERT_EQ(NRT_SUCCESS, run_without(k, -1, 0, y, &self->exec));
	for (int n = 0; n < edges; n++) {
		struct nki_edge e;

		ASSERT_EQ(0, nki_edge(k, n, &e));
		run_without(k, n, 0, z, &self->exec);
		races += self->exec.fault == NEURON_FAULT_DATA_RACE;
		if (found(&self->exec))
			continue;
		TH_LOG("edge %d, %s line %d -> %s line %d (%s%s): fault %u", n, e.producer.name,
		       e.producer.line, e.consumer.name, e.consumer.line, e.reason,
		       e.carried ? ", carried" : "", self->exec.fault);
		EXPECT_TRUE(implied(k, n, &self->exec));
		redundant++;
	}
	EXPECT_GE(variant->redundant, redundant);
	EXPECT_LT(0, races);
	/* And as it was, it is right again. */
	ASSERT_EQ(NRT_SUCCESS, run_without(k, -1, 0, z, &self->exec));
	EXPECT_EQ(0, memcmp(y, z, sizeof(y)));
	nki_kernel_free(k);
}

TEST_HARNESS_MAIN
