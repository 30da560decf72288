// SPDX-License-Identifier: MIT
/*
 * Calls of the builder that other tests do not make, run in strict mode. Expected
 * values are the examples of the documents ("nki.isa"), or arithmetic on small
 * integers that can be done by hand.
 */
#include <endian.h>

#include "neuron/debug.h"
#include "neuron/regs.h"
#include "kernel_common.h"

static float x[128 * 64], y[128 * 64], z[128 * 64];
static int32_t ix[128 * 64], iy[128 * 64];

FIXTURE(insn) {
	struct nki_kernel *k;
	unsigned int nc;
};

FIXTURE_SETUP(insn)
{
	ASSERT_EQ(NRT_SUCCESS, kernel_init());
	self->k = nki_kernel_new("insn", kernel_arch());
	self->nc = nki_nc_version(self->k);
	for (unsigned int i = 0; i < 128 * 64; i++) {
		x[i] = i % 64;
		ix[i] = i % 64;
		y[i] = -1;
		iy[i] = -1;
	}
}

FIXTURE_TEARDOWN(insn)
{
	nki_kernel_free(self->k);
	nrt_close();
}

/* A tile with the first @columns of x in @parts partitions. */
static struct nki_view load(struct nki_kernel *k, const char *name, enum nki_dtype dtype, uint32_t parts,
			    uint32_t columns)
{
	struct nki_view in = nki_input(k, name, dtype, 128, 64);
	struct nki_view t = nki_sbuf(k, dtype, parts, columns);

	nki_dma_copy(k, t, nki_cols(k, nki_rows(k, in, 0, parts), 0, columns));
	return t;
}

static void store(struct nki_kernel *k, const char *name, struct nki_view t)
{
	struct nki_view out = nki_output(k, name, t.dtype, 128, 64);

	nki_dma_copy(k, nki_cols(k, nki_rows(k, out, 0, t.num[0]), 0, nki_dtype_size(t.dtype) ? t.num[1] : 0), t);
}

TEST_F(insn, reduce_and_scans)
{
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("x", x), OUT("y", y) };
	struct nki_view t = load(k, "x", NKI_FLOAT32, 128, 16);
	struct nki_view r = nki_sbuf(k, NKI_FLOAT32, 128, 64);

	nki_tensor_scalar_reduce(k, nki_cols(k, r, 0, 16), t, NKI_MULTIPLY, nki_f32(2), NKI_ADD,
				 nki_cols(k, r, 16, 17), .reduce_res_negate = true);
	nki_tensor_scalar_cumulative(k, nki_cols(k, r, 17, 33), t, NKI_ADD, NKI_ADD, nki_f32(1));
	nki_tensor_tensor_scan(k, nki_cols(k, r, 33, 49), t, t, nki_f32(1), NKI_ADD, NKI_MAXIMUM);
	nki_bn_stats(k, nki_cols(k, r, 49, 55), t);
	nki_bn_aggr(k, nki_cols(k, r, 55, 57), nki_cols(k, r, 49, 55));
	nki_memset(k, nki_cols(k, r, 57, 64), 0);
	store(k, "y", r);
	ASSERT_TRUE(RUN(k, b));
	for (unsigned int p = 0; p < 128; p += 127) {
		const float *row = y + 64 * p;
		float scan = 1;

		for (unsigned int i = 0; i < 16; i++) {
			EXPECT_EQ(2 * i, row[i]);
			EXPECT_EQ((i + 1) * (i + 2) / 2, row[17 + i]);
			scan = fmaxf(i + scan, i);
			EXPECT_EQ(scan, row[33 + i]);
		}
		EXPECT_EQ(-240, row[16]);
		EXPECT_EQ(8, row[49]);		/* even: 0, 2, ... 14 */
		EXPECT_EQ(7, row[50]);
		EXPECT_EQ(8 * 21, row[51]);
		EXPECT_EQ(8, row[53 + 1] / 21);
		EXPECT_EQ(7.5f, row[55]);
		EXPECT_EQ(21.25f, row[56]);	/* (16^2 - 1) / 12 */
	}
}

TEST_F(insn, searches)
{
	/* The documents' example of nc_match_replace8, and where max8 finds things. */
	static const float data[11] = { 1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8 }, vals[8] = { 3, 8, 8, 8, 8, 8, 8, 8 };
	static const int32_t where[8] = { 2, 10, 9, 8, 7, 6, 5, 4 }, found[8] = { 2, 4, 5, 6, 7, 8, 9, 10 };
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("x", x), OUT("y", y), OUT("iy", iy) };
	struct nki_view t = load(k, "x", NKI_FLOAT32, 32, 19);
	struct nki_view d = nki_cols(k, t, 0, 11), v = nki_cols(k, t, 11, 19);
	struct nki_view r = nki_sbuf(k, NKI_FLOAT32, 32, 19), i = nki_sbuf(k, NKI_UINT32, 32, 16);

	for (unsigned int p = 0; p < 32; p++) {
		memcpy(x + 64 * p, data, sizeof(data));
		memcpy(x + 64 * p + 11, vals, sizeof(vals));
	}
	nki_memset(k, i, 7);
	nki_max8(k, nki_cols(k, r, 11, 19), d);
	nki_nc_find_index8(k, nki_cols(k, i, 0, 8), d, v);
	nki_nc_match_replace8(k, nki_cols(k, r, 0, 11), d, v, -5, .dst_idx = nki_cols(k, i, 8, 16));
	store(k, "y", r);
	store(k, "iy", nki_bitcast(k, i, NKI_INT32));
	ASSERT_TRUE(RUN(k, b));
	for (unsigned int n = 0; n < 8; n++) {
		EXPECT_EQ(n < 7 ? 8 : 4, y[64 * 31 + 11 + n]);
		EXPECT_EQ(found[n], iy[64 * 31 + n]);
		EXPECT_EQ(where[n], iy[64 * 31 + 8 + n]);
	}
	for (unsigned int n = 0; n < 11; n++)
		EXPECT_EQ(n == 2 || n > 3 ? -5 : data[n], y[64 * 31 + n]);
}

TEST_F(insn, shuffle_and_select)
{
	uint8_t mask[32];
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("x", x), OUT("y", y) };
	struct nki_view t = load(k, "x", NKI_FLOAT32, 64, 8);
	struct nki_view r = nki_sbuf(k, NKI_FLOAT32, 64, 17), u = nki_sbuf(k, NKI_UINT8, 64, 8);

	for (unsigned int p = 0; p < 64; p++)
		x[64 * p] = p;
	for (unsigned int n = 0; n < 32; n++)
		mask[n] = n == 5 ? 255 : 31 - n;
	nki_memset(k, r, 9);
	nki_nc_stream_shuffle(k, nki_cols(k, r, 0, 8), t, mask);
	nki_iota(k, u, NKI_PATTERN({ 1, 8 }));
	nki_select_reduce(k, nki_cols(k, r, 8, 16), u, t, nki_f32(-3), .reverse_pred = true,
			  .reduce_cmd = NKI_REDUCE_RESET_REDUCE, .reduce_res = nki_cols(k, r, 16, 17));
	store(k, "y", r);
	ASSERT_TRUE(RUN(k, b));
	for (unsigned int p = 0; p < 64; p++) {
		EXPECT_EQ(p % 32 == 5 ? 9 : p / 32 * 32 + 31 - p % 32, y[64 * p]);
		EXPECT_EQ(p, y[64 * p + 8]);
		EXPECT_EQ(-3, y[64 * p + 9]);
		EXPECT_EQ(p, y[64 * p + 16]);
	}
}

TEST_F(insn, range_select)
{
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("x", x), OUT("y", y) };
	struct nki_view t = load(k, "x", NKI_FLOAT32, 32, 16);
	struct nki_view r = nki_sbuf(k, NKI_FLOAT32, 32, 17), lo = nki_sbuf(k, NKI_FLOAT32, 32, 1);
	struct nki_view hi = nki_sbuf(k, NKI_FLOAT32, 32, 1);

	nki_memset(k, lo, 103);
	nki_memset(k, hi, 110);
	nki_range_select(k, nki_cols(k, r, 0, 16), t, NKI_GREATER_EQUAL, NKI_LESS, lo, hi,
			 .range_start = 100, .reduce_res = nki_cols(k, r, 16, 17));
	if (self->nc < 3) {
		ASSERT_NE(NULL, nki_error(k));
		EXPECT_NE(NULL, strstr(nki_error(k), "NeuronCore-v3"));
		return;
	}
	store(k, "y", r);
	ASSERT_TRUE(RUN(k, b));
	for (unsigned int i = 0; i < 16; i++)
		EXPECT_EQ(i >= 3 && i < 10 ? i : -3.4028235e38f, y[64 * 31 + i]);
	EXPECT_EQ(9, y[64 * 31 + 16]);
}

TEST_F(insn, gpsimd)
{
	/* Examples of the documents: sequence_bounds and nonzero_with_count. */
	static const int32_t ids[9] = { 0, 1, 1, 2, 2, 2, 0, 3, 3 };
	static const int32_t bounds[18] = { 9, 1, 1, 3, 3, 3, 9, 7, 7, -1, 3, 3, 6, 6, 6, -1, 9, 9 };
	static const int32_t bits[8] = { 0, 1, 1, 0, 0, 1, 0, 0 }, nonzero[9] = { 17, 18, 21, -1, -1, -1, -1, -1, 3 };
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("ix", ix), OUT("iy", iy), IN("x", x), OUT("y", y) };
	struct nki_view t = load(k, "ix", NKI_INT32, 32, 32), f = load(k, "x", NKI_FLOAT32, 32, 8);
	struct nki_view r = nki_sbuf(k, NKI_INT32, 32, 40), g = nki_sbuf(k, NKI_FLOAT32, 32, 16);
	struct nki_view i = nki_sbuf(k, NKI_UINT32, 32, 4);

	memcpy(ix, ids, sizeof(ids));
	for (unsigned int p = 0; p < 32; p++)
		memcpy(ix + 64 * p + 16, bits, sizeof(bits));
	nki_memset(k, r, 0);
	nki_memset(k, g, 0);
	nki_sequence_bounds(k, nki_cols(k, nki_rows(k, r, 0, 1), 0, 18), nki_cols(k, nki_rows(k, t, 0, 1), 0, 9));
	if (self->nc >= 3)
		nki_nonzero_with_count(k, nki_cols(k, r, 20, 29), nki_cols(k, t, 16, 24), .index_offset = 16);
	nki_iota(k, i, NKI_PATTERN({ -2, 4 }), .offset = 7);
	nki_nc_n_gather(k, nki_cols(k, g, 0, 4), f, i);
	nki_tensor_partition_reduce(k, nki_cols(k, nki_rows(k, g, 0, 1), 4, 12), NKI_ADD, f);
	store(k, "iy", r);
	store(k, "y", g);
	ASSERT_TRUE(RUN(k, b));
	EXPECT_EQ(0, memcmp(iy, bounds, sizeof(bounds)));
	if (self->nc >= 3)
		EXPECT_EQ(0, memcmp(iy + 64 * 16 + 20, nonzero, sizeof(nonzero)));
	for (unsigned int n = 0; n < 4; n++)
		EXPECT_EQ(7 - 2 * n, y[64 * 9 + n]);
	for (unsigned int n = 0; n < 8; n++)
		EXPECT_EQ(32 * n, y[4 + n]);
}

TEST_F(insn, dma)
{
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("x", x), OUT("y", y), OUT("z", z) };
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, 128, 64);
	struct nki_view out = nki_output(k, "y", NKI_FLOAT32, 128, 64), add = nki_output(k, "z", NKI_FLOAT32, 128, 64);
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 64, 128), s = nki_sbuf(k, NKI_FLOAT32, 64, 64);
	struct nki_view i = nki_sbuf(k, NKI_INT32, 64, 1);
	struct nki_view sources[3] = { nki_rows(k, in, 0, 64), nki_rows(k, in, 64, 128), NKI_NONE };

	for (unsigned int n = 0; n < 128 * 64; n++) {
		x[n] = n;
		z[n] = 1000;
	}
	nki_dma_transpose(k, t, in);
	nki_dma_copy(k, nki_reshape(k, out, 64, 128), t);
	nki_dma_copy(k, s, nki_rows(k, in, 0, 64));
	sources[2] = s;
	nki_dma_compute(k, s, sources, 3, NKI_ADD);
	/* Partition p to row 127 - p. */
	nki_iota(k, i, NKI_PATTERN({ 0, 1 }), .offset = 127, .channel_multiplier = -1);
	nki_dma_copy(k, nki_gather(k, add, i), s, .accumulate = true);
	ASSERT_TRUE(RUN(k, b));
	for (unsigned int r = 0; r < 128; r++) {
		for (unsigned int c = 0; c < 64; c++) {
			ASSERT_EQ(64 * r + c, y[128 * c + r]);
			/* Rows p and 64 + p, and p again. */
			ASSERT_EQ(1000 + (r < 64 ? 0 : 3 * (64 * (127 - r) + c) + 64 * 64), z[64 * r + c]);
		}
	}
}

TEST_F(insn, while_and_hbm_words)
{
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("ix", ix), OUT("iy", iy) };
	struct nki_view in = nki_input(k, "ix", NKI_INT32, 128, 64), out = nki_output(k, "iy", NKI_INT32, 128, 64);
	struct nki_view t = nki_sbuf(k, NKI_INT32, 1, 2);
	struct nki_reg n = nki_register_alloc(k), m = nki_register_alloc(k);

	ix[3] = 5;
	nki_memset(k, t, 0);
	nki_register_load(k, n, nki_cols(k, nki_rows(k, in, 0, 1), 3, 4));
	nki_register_move(k, m, nki_i32(0));
	nki_while(k, n) {
		nki_tensor_scalar(k, t, t, NKI_ADD, nki_f32(3));
		nki_register_alu(k, m, NKI_ADD, nki_regval(m), nki_regval(n));
		nki_register_alu(k, n, NKI_SUBTRACT, nki_regval(n), nki_i32(1));
	}
	nki_dma_copy(k, nki_cols(k, nki_rows(k, out, 0, 1), 0, 2), t);
	nki_register_store(k, nki_cols(k, nki_rows(k, out, 0, 1), 2, 3), m);
	ASSERT_TRUE(RUN(k, b));
	EXPECT_EQ(15, iy[0]);
	EXPECT_EQ(15, iy[1]);
	EXPECT_EQ(15, iy[2]);
	EXPECT_EQ(-1, iy[3]);
}

TEST_F(insn, unrolled_ring)
{
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("x", x), OUT("y", y) };
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, 128, 64), out = nki_output(k, "y", NKI_FLOAT32, 128, 64);
	struct nki_ring ring = nki_ring_sbuf(k, 2, NKI_FLOAT32, 128, 8);

	nki_for_unrolled(k, i, 0, 64, 8, 2) {
		struct nki_view t = nki_ring_next(&ring);

		nki_dma_copy(k, t, nki_dyn(k, nki_cols(k, in, 0, 8), 1, i));
		nki_tensor_scalar(k, t, t, NKI_ADD, nki_f32(1));
		nki_dma_copy(k, nki_dyn(k, nki_cols(k, out, 0, 8), 1, i), t);
	}
	ASSERT_TRUE(RUN(k, b));
	for (unsigned int n = 0; n < 128 * 64; n++)
		ASSERT_EQ(x[n] + 1, y[n]);
}

static uint8_t print[1 << 20];

TEST_F(insn, device_print)
{
	struct nki_kernel *k = self->k;
	struct binding b[] = { IN("x", x), OUT("nki_device_print", print) };
	struct nki_view t = load(k, "x", NKI_FLOAT32, 2, 4);
	struct neuron_debug_entry e;
	float got[8];

	nki_device_print(k, "before", nki_cols(k, t, 0, 1));
	nki_tensor_scalar(k, t, t, NKI_ADD, nki_f32(1));
	nki_device_print(k, "after", t);
	ASSERT_TRUE(RUN(k, b));
	memcpy(&e, print + sizeof(struct neuron_debug_header), sizeof(e));
	EXPECT_EQ(0, le32toh(e.prefix));
	EXPECT_EQ(1, le32toh(e.n));
	memcpy(&e, print + sizeof(struct neuron_debug_header) + le32toh(e.size), sizeof(e));
	EXPECT_EQ(1, le32toh(e.prefix));
	EXPECT_EQ(2, e.parts);
	EXPECT_EQ(4, le32toh(e.n));
	memcpy(&e, print + sizeof(struct neuron_debug_header), sizeof(e));
	memcpy(got, print + sizeof(struct neuron_debug_header) + le32toh(e.size) + sizeof(e), sizeof(got));
	for (unsigned int n = 0; n < 8; n++)
		EXPECT_EQ(1 + n % 4, got[n]);
}

/* ------------------------------------------------------------------------ */
/* Two cores								    */

static bool init_pair(void)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", "2", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "20", 1);
	for (unsigned int n = 0; n < 128 * 64; n++)
		x[n] = n / (64 * 64) ? 100 : 1;
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS;
}

static void exchange(struct nki_kernel *k)
{
	unsigned int me = nki_program_id(k);
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, 128, 64), out = nki_output(k, "y", NKI_FLOAT32, 128, 64);
	struct nki_view a, c;

	if (me)		/* the two need not have the same addresses */
		nki_sbuf(k, NKI_FLOAT32, 1, 100);
	a = nki_sbuf(k, NKI_FLOAT32, 64, 64);
	c = nki_sbuf(k, NKI_FLOAT32, 64, 64);
	nki_dma_copy(k, a, nki_rows(k, in, 64 * me, 64 * me + 64));
	nki_for(k, i, 0, 3, 1) {
		nki_tensor_scalar(k, a, a, NKI_ADD, nki_f32(1));
		nki_sendrecv(k, a, c, 1 - me, 1 - me, 0);
		nki_tensor_tensor(k, a, a, c, NKI_ADD);
	}
	nki_dma_copy(k, nki_rows(k, out, 64 * me, 64 * me + 64), a);
}

TEST(sendrecv)
{
	struct nki_kernel *k = nki_kernel_new("two", kernel_arch());
	struct binding b[] = { IN("x", x), OUT("y", y) };

	nki_set_lnc(k, 2);
	if (nki_nc_version(k) < 3) {
		ASSERT_NE(NULL, nki_error(k));
		nki_kernel_free(k);
		return;
	}
	ASSERT_TRUE(init_pair());
	for (unsigned int core = 0; core < 2; core++)
		exchange(nki_core(k, core));
	ASSERT_TRUE(RUN(k, b));
	/* s = a0 + a1 + 2 is what both have after a pass; then twice as much and 2. */
	for (unsigned int n = 0; n < 128 * 64; n++)
		ASSERT_EQ(4 * (1 + 100 + 2) + 4 + 2, y[n]);
	nki_kernel_free(k);
	nrt_close();
}

static void through_hbm(struct nki_kernel *k)
{
	unsigned int me = nki_program_id(k), other = 1 - me;
	struct nki_view in = nki_input(k, "x", NKI_FLOAT32, 128, 64), out = nki_output(k, "y", NKI_FLOAT32, 128, 64);
	struct nki_view shared = nki_scratch(k, "shared", NKI_FLOAT32, 128, 64);
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 64, 64);

	nki_dma_copy(k, a, nki_rows(k, in, 64 * me, 64 * me + 64));
	for (int i = 0; !me && i < 20; i++)	/* one core is late */
		nki_tensor_scalar(k, a, a, NKI_ADD, nki_f32(1));
	nki_dma_copy(k, nki_rows(k, shared, 64 * me, 64 * me + 64), a);
	nki_core_barrier(k, shared);
	nki_dma_copy(k, a, nki_rows(k, shared, 64 * other, 64 * other + 64));
	nki_dma_copy(k, nki_rows(k, out, 64 * me, 64 * me + 64), a);
}

/* Not strict: a race of two cores is looked for within each core only. */
TEST(core_barrier)
{
	struct nki_kernel *k = nki_kernel_new("barrier", kernel_arch());

	nki_set_lnc(k, 2);
	if (nki_nc_version(k) < 3) {
		nki_kernel_free(k);
		return;
	}
	ASSERT_TRUE(init_pair());
	for (unsigned int core = 0; core < 2; core++)
		through_hbm(nki_core(k, core));
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct binding b[] = { IN("x", x), OUT("y", y) };

		ASSERT_TRUE(run_kernel(k, b, 2, NRTX_JITTER, seed));
		for (unsigned int n = 0; n < 128 * 64; n++)
			ASSERT_EQ(n / (64 * 64) ? 21 : 100, y[n]);
	}
	nki_kernel_free(k);
	nrt_close();
}

TEST_HARNESS_MAIN
