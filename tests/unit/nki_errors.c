// SPDX-License-Identifier: MIT
/* What the documents forbid is an error that names the place, the rule and what is allowed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nki.h"
#include "kselftest_harness.h"

FIXTURE(errors) {
	struct nki_kernel *k;
	struct nki_view f, g, h, i, u, ps, ps2, x, y;
};

FIXTURE_VARIANT(errors) {
	const char *arch;
};

FIXTURE_VARIANT_ADD(errors, trn1) {
	.arch = "trn1",
};

FIXTURE_VARIANT_ADD(errors, trn2) {
	.arch = "trn2",
};

FIXTURE_VARIANT_ADD(errors, trn3) {
	.arch = "trn3",
};

FIXTURE_SETUP(errors)
{
	struct nki_kernel *k = nki_kernel_new("errors", variant->arch);

	self->k = k;
	self->x = nki_input(k, "x", NKI_FLOAT32, 128, 64);
	self->y = nki_output(k, "y", NKI_FLOAT32, 128, 64);
	self->f = nki_sbuf(k, NKI_FLOAT32, 128, 64);
	self->g = nki_sbuf(k, NKI_FLOAT32, 128, 64);
	self->h = nki_sbuf(k, NKI_BFLOAT16, 128, 64);
	self->i = nki_sbuf(k, NKI_INT32, 128, 64);
	self->u = nki_sbuf(k, NKI_UINT8, 128, 64);
	self->ps = nki_psum(k, NKI_FLOAT32, 128, 64);
	self->ps2 = nki_psum(k, NKI_FLOAT32, 128, 64);
	ASSERT_EQ(NULL, nki_error(k));
}

FIXTURE_TEARDOWN(errors)
{
	nki_kernel_free(self->k);
}

/* @call: name, or the text of the whole call */
static bool says(struct nki_kernel *k, int line, const char *call, const char *text)
{
	const char *error = nki_error(k);
	char where[160];
	size_t size;
	void *bytes;

	snprintf(where, sizeof(where), "nki_errors.c:%d: %.*s: ", line, (int)strcspn(call, "("), call);
	if (!error || !strstr(error, where) || !strstr(error, text)) {
		printf("# wanted \"%s...%s\", got \"%s\"\n", where, text, error ? error : "nothing");
		return false;
	}
	/* It stays, and there is no program. */
	return nki_build(k, &bytes, &size) < 0 && nki_error(k) == error;
}

#define BAD(name, call, text) TEST_F(errors, name) \
{ \
	struct nki_kernel *k = self->k; \
	call; \
	EXPECT_TRUE(says(k, __LINE__, #call, text)); \
}

BAD(start_32, nki_tensor_copy(k, nki_rows(k, self->f, 16, 32), nki_rows(k, self->g, 16, 32)),
    "16 partitions from 16; allowed starts: 0, 32, 64, 96")
BAD(start_64, nki_tensor_copy(k, nki_rows(k, self->f, 32, 96), nki_rows(k, self->g, 32, 96)),
    "64 partitions from 32")
BAD(sizes, nki_tensor_tensor(k, self->f, self->f, nki_cols(k, self->g, 0, 63), NKI_ADD),
    "data1 has 128 partitions of 64 elements, data2 128 of 63")
BAD(both_psum, nki_tensor_tensor(k, self->f, self->ps, self->ps2, NKI_ADD), "both tensor inputs are in PSUM")
BAD(gpsimd_psum, nki_tensor_copy(k, self->f, self->ps, .engine = NKI_ENGINE_GPSIMD),
    "src is in PSUM, which the gpsimd engine cannot reach")
BAD(engine, nki_reciprocal(k, self->f, self->x), "data is in HBM; allowed: SBUF or PSUM")
BAD(copy_engine, nki_tensor_copy(k, self->f, self->g, .engine = NKI_ENGINE_TENSOR),
    "engine tensor; allowed: scalar gpsimd vector")
BAD(bits_float, nki_tensor_tensor(k, self->f, self->f, self->g, NKI_BITWISE_AND),
    "bit-vector operator bitwise_and on float32; allowed: integers")
BAD(bits_engine, nki_tensor_scalar(k, self->i, self->i, NKI_BITWISE_AND, nki_i32(1), .engine = NKI_ENGINE_GPSIMD),
    "vector engine only")
BAD(mixed, nki_tensor_scalar(k, self->i, self->i, NKI_BITWISE_AND, nki_i32(1), .op1 = NKI_ADD, .operand1 = nki_i32(1)),
    "allowed: both arithmetic or both bit-vector")
BAD(operand, nki_tensor_scalar(k, self->f, self->f, NKI_ADD, (struct nki_scalar){ 0 }), "operator add needs operand0")
BAD(vector_shape, nki_tensor_scalar(k, self->f, self->f, NKI_ADD, nki_vec(self->g)),
    "allowed: a (128, 1) tile in SBUF or PSUM")
BAD(axis, nki_tensor_reduce(k, nki_cols(k, self->g, 0, 1), NKI_ADD, self->f, 0), "axis 0; allowed: 1 to 1")
BAD(reduction, nki_tensor_reduce(k, nki_cols(k, self->g, 0, 1), NKI_POWER, self->f, 1), "not a reduction")
BAD(function, nki_activation(k, self->f, NKI_ADD, self->f), "not an activation function")
BAD(alu, nki_tensor_tensor(k, self->f, self->f, self->f, NKI_EXP), "not one of the ALU")
BAD(matmul_k, nki_nc_matmul(k, self->ps, self->h, nki_rows(k, self->h, 0, 64)), "stationary has K = 128 partitions, moving 64")
BAD(matmul_space, nki_nc_matmul(k, self->f, self->h, self->h), "dst in SBUF, stationary in SBUF, moving in SBUF; allowed: PSUM, SBUF, SBUF")
BAD(matmul_pair, nki_nc_matmul(k, nki_rows(k, self->ps, 0, 64), self->f, self->h), "float32 and tfloat32 go only with each other")
BAD(matmul_int, nki_nc_matmul(k, nki_rows(k, self->ps, 0, 64), self->u, self->u), "allowed: floating-point types")
BAD(matmul_shape, nki_nc_matmul(k, self->ps, self->h, self->h), "wanted: M = 64 of N = 64")
BAD(dma_psum, nki_dma_copy(k, self->y, self->ps), "src is in PSUM; allowed: HBM, SBUF")
BAD(dma_count, nki_dma_copy(k, self->f, nki_rows(k, self->x, 0, 64)), "dst has 8192 elements, src 4096")
BAD(dma_readonly, nki_dma_copy(k, self->x, self->f), "tensor \"x\" is read-only")
BAD(dma_engine, nki_dma_copy(k, self->y, self->f, .engine = NKI_ENGINE_VECTOR), "allowed engines for DMA: sync, scalar, gpsimd")
BAD(dma_queue, nki_dma_copy(k, self->y, self->f, .queue = 17), "queue 17; allowed: 1 to 16")
BAD(dma_priority, nki_dma_copy(k, self->y, self->f, .priority = 4), "priority 4; allowed: 0")
BAD(predicate, nki_select(k, self->f, self->i, self->g, nki_f32(0)), "predicate is int32; allowed: uint8, uint16, uint32")
BAD(pattern, nki_iota(k, self->i, NKI_PATTERN({1, 63})), "the pattern has 63 elements, dst 64")
BAD(memset_value, nki_memset(k, self->i, 0.5), "value 0.5 in a int32 tile")
BAD(slice, nki_slice(k, self->f, 1, 60, 65), "elements 60 to 65, step 1; dimension 1 has 64")
BAD(dimension, nki_slice(k, self->f, 2, 0, 1), "dimension 2; the view has dimensions 0 to 1")
BAD(reshape, nki_reshape(k, self->f, 128, 63), "their number differs")
BAD(name_twice, nki_input(k, "x", NKI_FLOAT32, 1), "tensor \"x\" exists already")
BAD(partitions, nki_sbuf(k, NKI_FLOAT32, 129, 1), "129 partitions; allowed: 1 to 128")
BAD(free_twice, nki_free(k, self->x), "not a tile")

BAD(hwdge_gather, nki_dma_copy(k, self->y, self->f, .dge_mode = NKI_DGE_SWDGE, .engine = NKI_ENGINE_SYNC), "swdge on another engine; allowed: gpsimd")
BAD(dge_unknown, nki_dma_copy(k, self->y, self->f, .dge_mode = 9), "dge_mode 9; allowed")
BAD(transpose_shape, nki_dma_transpose(k, nki_sbuf(k, NKI_FLOAT32, 64, 64), self->x), "allowed: axes (1, 0)")
BAD(transpose_type, nki_dma_transpose(k, nki_sbuf(k, NKI_UINT8, 64, 128), self->u), "src is uint8; allowed: types of 2 or 4 bytes")
BAD(compute_op, nki_dma_compute(k, self->f, &self->g, 1, NKI_MAXIMUM), "reduce_op must be NKI_ADD")
BAD(compute_many, nki_dma_compute(k, self->f, &self->g, 17, NKI_ADD), "17 sources; allowed: 1 to 16")
BAD(compute_scale, nki_dma_compute(k, self->f, &self->g, 1, NKI_ADD, .scales = (const float[]){ 2 }), "scale 0 is 2; allowed: 1")
BAD(tile_size, nki_nc_matmul(k, nki_rows(k, self->ps, 0, 64), self->h, self->h, .tile_size = { 16, 128 }), "tile_size 16 x 128; allowed on")
BAD(tile_position, nki_nc_matmul(k, nki_rows(k, self->ps, 0, 64), self->h, self->h, .tile_size = { 128, 64 }, .tile_position = { 0, 32 }), "allowed: multiples of tile_size")
BAD(tile_small, nki_nc_matmul(k, nki_rows(k, self->ps, 0, 64), self->h, self->h, .tile_size = { 64, 64 }), "stationary is 128 x 64; allowed: the tile_size, 64 x 64")
BAD(perf_mode, nki_nc_matmul(k, self->ps, self->h, self->h, .perf_mode = 2), "perf_mode 2; allowed: none, double_row")
BAD(reduce_operator, nki_tensor_scalar_reduce(k, self->f, self->f, NKI_ADD, nki_f32(1), NKI_SUBTRACT, NKI_NONE), "allowed: add, multiply, maximum, minimum")
BAD(reduce_reverse, nki_tensor_scalar_reduce(k, self->f, self->f, NKI_ADD, nki_f32(1), NKI_ADD, NKI_NONE, .reverse0 = true), "reverse0 is not supported yet")
BAD(reduce_result, nki_tensor_scalar_reduce(k, self->f, self->f, NKI_ADD, nki_f32(1), NKI_ADD, self->g), "reduce_res has 128 partitions of 64 elements; wanted: 128 of 1")
BAD(cumulative_int, nki_tensor_scalar_cumulative(k, self->f, self->i, NKI_ADD, NKI_ADD, nki_f32(1)), "no 32-bit integers")
BAD(scan_psum, nki_tensor_tensor_scan(k, self->f, self->ps, self->ps2, nki_f32(0), NKI_ADD, NKI_ADD), "both tensor inputs are in PSUM")
BAD(scan_operator, nki_tensor_tensor_scan(k, self->f, self->f, self->g, nki_f32(0), NKI_BITWISE_AND, NKI_ADD), "op0 is bitwise_and; allowed: arithmetic operators")
BAD(select_type, nki_select_reduce(k, self->f, self->u, self->i, nki_f32(0)), "on_true is int32; allowed: any but tfloat32, int32, uint32")
BAD(select_idle, nki_select_reduce(k, self->f, self->u, self->g, nki_f32(0), .reduce_res = nki_cols(k, self->f, 0, 1)), "reduce_cmd idle")
BAD(bn_stats, nki_bn_stats(k, nki_cols(k, self->f, 0, 5), self->g), "dst has 128 partitions of 5 elements; wanted: 128 of 6")
BAD(bn_aggr, nki_bn_aggr(k, nki_cols(k, self->f, 0, 2), self->g), "allowed: a multiple of 3")
BAD(max8_size, nki_max8(k, nki_cols(k, self->f, 0, 8), nki_cols(k, self->g, 0, 7)), "7 elements per partition; allowed: 8 to 16384")
BAD(find_type, nki_nc_find_index8(k, nki_cols(k, self->f, 0, 8), self->g, nki_cols(k, self->g, 0, 8)), "dst is float32; allowed: uint16, uint32")
BAD(shuffle_mask, nki_nc_stream_shuffle(k, self->f, self->g, ((const uint8_t[32]){ 32 })), "shuffle_mask[0] is 32; allowed: 0 to 31, 255")
BAD(shuffle_type, nki_nc_stream_shuffle(k, self->f, self->i, ((const uint8_t[32]){ 0 })), "dst is float32, src int32; they must be equal")
BAD(dropout, nki_dropout(k, self->f, self->g, nki_f32(1.5f)), "prob 1.5")
BAD(rng_type, nki_rng(k, self->f), "dst is float32; allowed: integers")
BAD(seed_shape, nki_set_rng_seed(k, self->i), "src_seeds has 128 partitions of 64 elements; wanted: 1 of 1")
BAD(partition_op, nki_tensor_partition_reduce(k, nki_rows(k, self->f, 0, 1), NKI_MINIMUM, self->g), "allowed: add, average, maximum")
BAD(partition_dst, nki_tensor_partition_reduce(k, self->f, NKI_ADD, self->g), "dst has 128 partitions of 64 elements; wanted: 1 of 64")
BAD(local_index, nki_local_gather(k, self->f, self->g, self->i), "index is int32")
BAD(n_gather, nki_nc_n_gather(k, self->f, self->g, self->i), "indices are int32")
BAD(bounds, nki_sequence_bounds(k, self->f, self->g), "segment_ids has 128 partitions of 64 elements; wanted: 1 of 64")
BAD(topk_type, nki_topk(k, nki_cols(k, self->f, 0, 8), nki_cols(k, self->i, 0, 8), self->h, 64), "val_dst is float32; allowed: bfloat16")
BAD(one_core, nki_core_barrier(k, self->y), "the program has one core")
BAD(one_core_send, nki_sendrecv(k, self->f, self->g, 1, 1, 0), "the program has one core")
BAD(prefix, nki_device_print(k, "a/b", self->f), "no slash")
BAD(unroll, nki_for_unrolled(k, n, 0, 10, 1, 4) { }, "a multiple of n * step")

/* Calls that a generation does not have; errors' variants are of three generations. */
#define SINCE(name, nc, call) TEST_F(errors, name) \
{ \
	struct nki_kernel *k = self->k; \
	call; \
	if (nki_nc_version(k) < (nc)) { \
		EXPECT_TRUE(says(k, __LINE__, #call, "needs NeuronCore-v" #nc)); \
	} else { \
		EXPECT_EQ(NULL, nki_error(k)); \
	} \
}

SINCE(v3_hwdge, 3, nki_dma_copy(k, self->y, self->f, .dge_mode = NKI_DGE_HWDGE))
SINCE(v3_nonzero, 3, nki_nonzero_with_count(k, nki_cols(k, self->i, 0, 9), nki_cols(k, self->f, 0, 8)))
SINCE(v3_rng, 3, nki_rng(k, self->i, .engine = NKI_ENGINE_GPSIMD))
SINCE(v3_state, 3, nki_rand_get_state(k, nki_cols(k, nki_bitcast(k, self->i, NKI_UINT32), 0, 6)))
SINCE(v4_exponential, 4, nki_exponential(k, self->f, self->g))
SINCE(v4_rand2, 4, nki_rand2(k, self->f, nki_f32(0), nki_f32(1)))
SINCE(v4_activate2, 4, nki_activate2(k, self->f, NKI_EXP, self->g, nki_f32(1), nki_f32(0), NKI_MULTIPLY, NKI_ADD))
SINCE(v4_indirect, 4, nki_indirect(k, self->f, self->i, 0))

TEST_F(errors, freed)
{
	struct nki_kernel *k = self->k;

	nki_free(k, self->g);
	nki_reciprocal(k, self->f, self->g);
	EXPECT_TRUE(says(k, __LINE__ - 1, "nki_reciprocal", "data is a tile that was freed"));
}

TEST_F(errors, rounding_late)
{
	struct nki_kernel *k = self->k;

	nki_memset(k, self->f, 0);
	nki_set_rounding_mode(k, true);
	EXPECT_TRUE(says(k, __LINE__ - 1, "nki_set_rounding_mode", "before the first of them"));
}

TEST_F(errors, generation)
{
	struct nki_kernel *k = self->k;
	bool v2 = nki_nc_version(k) == 2;

	nki_activation(k, self->f, NKI_EXP, self->f, .bias = nki_f32(1));
	EXPECT_EQ(v2, nki_error(k) != NULL);
	if (v2)
		EXPECT_TRUE(says(k, __LINE__ - 3, "nki_activation", "a scalar bias needs NeuronCore-v3"));
}

TEST_F(errors, scalar_engine_copy)
{
	struct nki_kernel *k = self->k;

	nki_tensor_copy(k, self->f, self->g, .engine = NKI_ENGINE_SCALAR);
	EXPECT_EQ(nki_nc_version(k) == 2, nki_error(k) != NULL);
}

TEST_F(errors, loop_range)
{
	struct nki_kernel *k = self->k;

	nki_for(k, i, 0, 65, 1)
		nki_memset(k, nki_dyn(k, nki_cols(k, self->f, 0, 1), 1, i), 0);
	EXPECT_TRUE(says(k, __LINE__ - 1, "nki_memset", "dst reaches bytes 0 to 260 of a tile row of 256"));
}

TEST_F(errors, matmul_bank)
{
	struct nki_kernel *k = self->k;
	struct nki_view wide = nki_psum(k, NKI_FLOAT32, 64, 1024);
	struct nki_view moving = nki_sbuf(k, NKI_BFLOAT16, 128, 512);

	nki_nc_matmul(k, nki_cols(k, wide, 256, 768), self->h, moving);
	if (nki_nc_version(k) < 4) {
		EXPECT_TRUE(says(k, __LINE__ - 2, "nki_nc_matmul", "in one bank of 2048 bytes"));
	} else {
		EXPECT_EQ(NULL, nki_error(k));
	}
}

TEST_F(errors, first_stays)
{
	struct nki_kernel *k = self->k;

	nki_reciprocal(k, self->f, self->x);
	nki_sbuf(k, NKI_FLOAT32, 1000, 1);
	EXPECT_TRUE(says(k, __LINE__ - 2, "nki_reciprocal", "data is in HBM"));
}

TEST_F(errors, left_loop)
{
	struct nki_kernel *k = self->k;
	size_t size;
	void *bytes;

	nki_for(k, i, 0, 4, 1)
		break;
	EXPECT_GT(0, nki_build(k, &bytes, &size));
	EXPECT_NE(NULL, strstr(nki_error(k), "left with break"));
}

TEST(architecture)
{
	struct nki_kernel *k = nki_kernel_new("x", "trn9");
	struct nki_view v = nki_sbuf(k, NKI_FLOAT32, 128, 1);

	ASSERT_NE(NULL, nki_error(k));
	EXPECT_NE(NULL, strstr(nki_error(k), "unknown architecture \"trn9\"; allowed: trn1, inf2, trn2, trn3"));
	EXPECT_EQ(NULL, v.buf);
	nki_kernel_free(k);
}

TEST(info_json)
{
	struct nki_kernel *k = nki_kernel_new("x", "trn2");

	nki_info_json(k, "{\"a\": 1}");
	EXPECT_EQ(NULL, nki_error(k));
	nki_info_json(k, "[1]");
	ASSERT_NE(NULL, nki_error(k));
	EXPECT_NE(NULL, strstr(nki_error(k), "nki_info_json: not a JSON object"));
	nki_kernel_free(k);
}

/* No kernel at all: nothing happens. */
TEST(no_kernel)
{
	struct nki_kernel *k = NULL;
	struct nki_view v = nki_sbuf(k, NKI_FLOAT32, 128, 1);

	nki_memset(k, v, 0);
	nki_for(k, i, 0, 4, 1)
		nki_memset(k, v, 0);
	EXPECT_NE(NULL, nki_error(k));
	nki_kernel_free(k);
}

TEST_HARNESS_MAIN
