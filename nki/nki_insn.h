/* SPDX-License-Identifier: MIT */
/* The instructions of the builder: part of nki.h, which includes this file. */
#ifndef NKI_INSN_H
#define NKI_INSN_H

/* ------------------------------------------------------------------------ */
/* Instructions								    */

/*
 * Names and argument order of nki.isa; what is optional there is a named
 * argument here:
 *
 *	nki_activation(k, dst, NKI_EXP, src, .bias = nki_vec(b), .scale = nki_f32(0.5f));
 *
 * Common rules, checked in the call: operands have the same number of
 * partitions and the same number of elements per partition (the dimensions may
 * differ; elements go in order); partitions start at 0, 32, 64, 96 (up to 32
 * partitions), 0, 64 (up to 64), else 0; at most 4 free dimensions after merging;
 * arithmetic is in fp32 with a cast to dst's type; bit-vector operators take
 * integers of one type; two tensor inputs are never both in PSUM; GpSimd has no
 * PSUM. dst may be one of the inputs.
 */

/**
 * struct nki_dma_args - options of nki_dma_copy() and nki_dma_transpose()
 * @engine: who starts it: sync (default), scalar or gpsimd (default with an index or
 *	swdge)
 * @queue: 1 to 16: DMA queue 0 to 15; 0: chosen by engine and direction. Transfers
 *	of one queue run in order; a queue belongs to one engine
 * @priority: 0 (high) to 3, Trn3; elsewhere 0
 * @oob_mode: of nki_gather views
 * @dge_mode: who writes the descriptors
 * @accumulate: dst += src in fp32, cast to dst's type; with an index indices are unique
 */
struct nki_dma_args {
	enum nki_engine engine;
	unsigned int queue;
	unsigned int priority;
	enum nki_oob_mode oob_mode;
	enum nki_dge_mode dge_mode;
	bool accumulate;
};

/*
 * nki_dma_copy(k, dst, src, ...): dst = src, with cast. HBM and SBUF in any pair, not
 * PSUM; any first partition; as many elements on both sides, taken in order (a tile's partition is its
 * outermost dimension). HBM views have at most 5 dimensions after merging.
 */
#define nki_dma_copy(k, dst, src, ...) \
	nki_dma_copy_(k, NKI_LOC(nki_dma_copy), dst, src, &(struct nki_dma_args){ __VA_ARGS__ })

/*
 * nki_dma_transpose(k, dst, src, ...): axes (1, 0) of 2 dimensions, (2, 1, 0) of 3,
 * (3, 1, 2, 0) of 4; one type of 2 or 4 bytes; src in HBM or SBUF. With hwdge: 2 bytes,
 * src's last dimension at most 128, its first 16, or 1, 2, 4, 8, 16 with 3 or 4. With
 * nki_gather (Trn2): rows index^T of src, see nki.isa
 */
#define nki_dma_transpose(k, dst, src, ...) \
	nki_dma_transpose_(k, NKI_LOC(nki_dma_transpose), dst, src, \
			   &(struct nki_dma_args){ __VA_ARGS__ })

/**
 * struct nki_dma_compute_args - options of nki_dma_compute()
 * @scales: NULL, or one for each source, all 1
 * @duplicate_indices: nki.isa's unique_indices reversed; must be false
 * @oob_mode, @engine, @queue: as in struct nki_dma_args
 */
struct nki_dma_compute_args {
	const float *scales;
	bool duplicate_indices;
	enum nki_oob_mode oob_mode;
	enum nki_engine engine;
	unsigned int queue;
};

/*
 * nki_dma_compute(k, dst, srcs, count, reduce_op, ...): dst = sum of 1 to 16 sources in
 * fp32, in order, with one cast; reduce_op is NKI_ADD. With a nki_gather view: two
 * sources, one of them dst: dst += the other
 */
#define nki_dma_compute(k, dst, srcs, count, reduce_op, ...) \
	nki_dma_compute_(k, NKI_LOC(nki_dma_compute), dst, srcs, count, reduce_op, \
			 &(struct nki_dma_compute_args){ __VA_ARGS__ })

/**
 * struct nki_matmul_args - options of nki_nc_matmul()
 * @accumulate: add to what earlier matmuls left in @dst; default: overwrite
 * @is_transpose: Trn2 and later: bit-exact transpose, @moving is an identity; fp8 comes
 *	out in 16 bits
 * @is_stationary_onezero, @is_moving_onezero: an fp32 operand has only 0 and 1: faster
 * @tile_position: row and column where the part of the array begins
 * @tile_size: rows and columns of it: 32 (Trn2), 64, 128; both 0: the whole array
 * @perf_mode: double_row: fp8, (K, 2, M) and (K, 2, N)
 */
struct nki_matmul_args {
	bool accumulate;
	bool is_transpose;
	bool is_stationary_onezero;
	bool is_moving_onezero;
	unsigned int tile_position[2];
	unsigned int tile_size[2];
	enum nki_perf_mode perf_mode;
};

/*
 * nki_nc_matmul(k, dst, stationary, moving, ...):
 *	dst[M, N] (+)= stationary[K, M]^T @ moving[K, N]
 *
 * K, M <= 128; N <= 512 (Trn3: 4096, bf16 8192); inputs in SBUF, fp32/tf32 only with each other;
 * dst in PSUM, fp32 (Trn3 also bf16; with is_transpose the input's type), in one bank
 * before Trn3. When the same stationary view is used again and nothing wrote to it, it
 * is not loaded again.
 */
#define nki_nc_matmul(k, dst, stationary, moving, ...) \
	nki_nc_matmul_(k, NKI_LOC(nki_nc_matmul), dst, stationary, moving, \
		       &(struct nki_matmul_args){ __VA_ARGS__ })

/* Options of nki_nc_matmul_mx(): as in struct nki_matmul_args; tiles of rows only. */
struct nki_matmul_mx_args {
	bool accumulate;
	unsigned int tile_position[2];
	unsigned int tile_size[2];
};

/*
 * nki_nc_matmul_mx(k, dst, stationary, moving, stationary_scale, moving_scale, ...): Trn3;
 * operands of packed MX types, a multiple of 32 partitions, an even M; a scale (e8m0 or
 * uint8) for each 8 partitions and column, in partitions 0, 4, 8 or 12 to + 3 of every
 * quadrant: P / 8 partitions for P = 32, else the quadrants of the data
 */
#define nki_nc_matmul_mx(k, dst, stationary, moving, stationary_scale, moving_scale, ...) \
	nki_nc_matmul_mx_(k, NKI_LOC(nki_nc_matmul_mx), dst, stationary, moving, stationary_scale, \
			  moving_scale, &(struct nki_matmul_mx_args){ __VA_ARGS__ })

/* Options of nki_nc_matmul_sparse(). */
struct nki_matmul_sparse_args {
	bool accumulate;
};

/*
 * nki_nc_matmul_sparse(k, dst, moving, stationary, tag, ratio, .accumulate): Trn2; moving
 * (128, ratio / 4, N), stationary (128, 128) with 4 of each ratio (16, 12, 8) rows kept,
 * tag (128, 32) uint16: their four positions of 4 bits
 */
#define nki_nc_matmul_sparse(k, dst, moving, stationary, tag, ratio, ...) \
	nki_nc_matmul_sparse_(k, NKI_LOC(nki_nc_matmul_sparse), dst, moving, stationary, tag, ratio, \
			      &(struct nki_matmul_sparse_args){ __VA_ARGS__ })

/* Options of instructions that only have a choice of engine. */
struct nki_engine_args {
	enum nki_engine engine;
};

/*
 * nki_nc_transpose(k, dst, data, .engine): dst[F, P] = data[P, F]^T, dst has data's type
 *
 * Tensor engine (default when dst is in PSUM): up to 128 x 128, SBUF to PSUM; an
 * identity matrix is made once per type at the start of the program. On Trn1 and Inf2
 * dst is fp32. Vector engine: up to 32 x 32, SBUF or PSUM.
 */
#define nki_nc_transpose(k, dst, data, ...) \
	nki_nc_transpose_(k, NKI_LOC(nki_nc_transpose), dst, data, \
			  &(struct nki_engine_args){ __VA_ARGS__ })

/**
 * struct nki_activation_args - options of nki_activation()
 * @bias: (P, 1) tile; from Trn2 also fp32; default 0
 * @scale: fp32 or (P, 1) tile; default 1
 * @reduce_op: NKI_ADD or left out
 * @reduce_res: (P, 1): the accumulators are read out to it
 * @reduce_cmd: command to the accumulators
 */
struct nki_activation_args {
	struct nki_scalar bias;
	struct nki_scalar scale;
	enum nki_op reduce_op;
	struct nki_view reduce_res;
	enum nki_reduce_cmd reduce_cmd;
};

/* nki_activation(k, dst, op, data, ...): dst = op(data * scale + bias), scalar engine */
#define nki_activation(k, dst, op, data, ...) \
	nki_activation_(k, NKI_LOC(nki_activation), dst, op, data, \
			&(struct nki_activation_args){ __VA_ARGS__ })

/*
 * nki_activation_reduce(k, dst, op, data, reduce_op, reduce_res, .bias, .scale):
 * the same, and reduce_res (P, 1) = sum of the results; reduce_op is NKI_ADD
 */
#define nki_activation_reduce(k, dst, op, data, reduce_op, reduce_res, ...) \
	nki_activation_reduce_(k, NKI_LOC(nki_activation_reduce), dst, op, data, reduce_op, \
			       reduce_res, &(struct nki_activation_args){ __VA_ARGS__ })

/*
 * nki_tensor_tensor(k, dst, data1, data2, op, .engine): dst = data1 op data2
 *
 * Vector engine, or GpSimd: default for power and for 32-bit integers that are not
 * in PSUM (exact there).
 */
#define nki_tensor_tensor(k, dst, data1, data2, op, ...) \
	nki_tensor_tensor_(k, NKI_LOC(nki_tensor_tensor), dst, data1, data2, op, \
			   &(struct nki_engine_args){ __VA_ARGS__ })

/**
 * struct nki_tensor_scalar_args - options of nki_tensor_scalar()
 * @reverse0: operand0 op0 data instead of data op0 operand0
 * @op1: second operator; left out: none
 * @operand1: second operand
 * @reverse1: as @reverse0
 * @engine: vector (default), scalar (from Trn2; multiply, add or multiply then
 *	add), gpsimd (default for rsqrt)
 */
struct nki_tensor_scalar_args {
	bool reverse0;
	enum nki_op op1;
	struct nki_scalar operand1;
	bool reverse1;
	enum nki_engine engine;
};

/* nki_tensor_scalar(k, dst, data, op0, operand0, ...): dst = (data op0 operand0) op1 operand1 */
#define nki_tensor_scalar(k, dst, data, op0, operand0, ...) \
	nki_tensor_scalar_(k, NKI_LOC(nki_tensor_scalar), dst, data, op0, operand0, \
			   &(struct nki_tensor_scalar_args){ __VA_ARGS__ })

/* Options of nki_scalar_tensor_tensor(): see struct nki_tensor_scalar_args. */
struct nki_scalar_tensor_tensor_args {
	bool reverse0;
	bool reverse1;
};

/*
 * nki_scalar_tensor_tensor(k, dst, data, op0, operand0, op1, operand1, ...):
 * dst = (data op0 operand0) op1 operand1, where operand1 is a tile; vector engine,
 * arithmetic operators only
 */
#define nki_scalar_tensor_tensor(k, dst, data, op0, operand0, op1, operand1, ...) \
	nki_scalar_tensor_tensor_(k, NKI_LOC(nki_scalar_tensor_tensor), dst, data, op0, operand0, \
				  op1, operand1, \
				  &(struct nki_scalar_tensor_tensor_args){ __VA_ARGS__ })

/* Options of nki_tensor_reduce(): @negate multiplies the result by -1. */
struct nki_tensor_reduce_args {
	bool negate;
};

/*
 * nki_tensor_reduce(k, dst, op, data, axis, .negate): reduce dimensions axis to the last
 * (axis >= 1); dst has one element for each remaining one; vector engine
 */
#define nki_tensor_reduce(k, dst, op, data, axis, ...) \
	nki_tensor_reduce_(k, NKI_LOC(nki_tensor_reduce), dst, op, data, axis, \
			   &(struct nki_tensor_reduce_args){ __VA_ARGS__ })

/* nki_tensor_copy(k, dst, src, .engine): with cast; vector (default), scalar (from Trn2), gpsimd */
#define nki_tensor_copy(k, dst, src, ...) \
	nki_tensor_copy_(k, NKI_LOC(nki_tensor_copy), dst, src, \
			 &(struct nki_engine_args){ __VA_ARGS__ })

/**
 * struct nki_predicated_args - options of nki_tensor_copy_predicated()
 * @scalar: value instead of @src, which is then NKI_NONE
 * @reverse_pred: where the predicate is zero
 */
struct nki_predicated_args {
	struct nki_scalar scalar;
	bool reverse_pred;
};

/*
 * nki_tensor_copy_predicated(k, dst, src, predicate, ...): dst = src where the predicate
 * (an unsigned integer tile) is not zero; other elements keep their value
 */
#define nki_tensor_copy_predicated(k, dst, src, predicate, ...) \
	nki_tensor_copy_predicated_(k, NKI_LOC(nki_tensor_copy_predicated), dst, src, predicate, \
				    &(struct nki_predicated_args){ __VA_ARGS__ })

/* nki_select(k, dst, predicate, on_true, on_false): nki_select_reduce() without the reduce */
#define nki_select(k, dst, predicate, on_true, on_false) \
	nki_select_(k, NKI_LOC(nki_select), dst, predicate, on_true, on_false)

/* nki_memset(k, dst, value, .engine): value (a C number) in every element; vector or gpsimd */
#define nki_memset(k, dst, value, ...) \
	nki_memset_(k, NKI_LOC(nki_memset), dst, value, &(struct nki_engine_args){ __VA_ARGS__ })

/* nki_reciprocal(k, dst, data): dst = 1 / data, vector engine */
#define nki_reciprocal(k, dst, data) nki_reciprocal_(k, NKI_LOC(nki_reciprocal), dst, data)

/**
 * struct nki_iota_args - options of nki_iota()
 * @offset: added to every element
 * @channel_multiplier: times the partition's number in the tile, added
 */
struct nki_iota_args {
	int32_t offset;
	int32_t channel_multiplier;
};

/*
 * nki_iota(k, dst, pattern, ...): dst[p, i...] = offset + p * channel_multiplier +
 * sum(i * step), in int32, then cast; gpsimd, SBUF
 */
#define nki_iota(k, dst, pattern, ...) \
	nki_iota_(k, NKI_LOC(nki_iota), dst, pattern, &(struct nki_iota_args){ __VA_ARGS__ })

/**
 * struct nki_affine_select_args - options of nki_affine_select()
 * @cmp_op: comparison of the affine value with 0; default NKI_EQUAL
 * @offset: added to the affine value
 */
struct nki_affine_select_args {
	enum nki_op cmp_op;
	int32_t offset;
};

/*
 * nki_affine_select(k, dst, pattern, channel_multiplier, on_true, on_false, ...):
 * dst = (affine cmp_op 0) ? on_true : on_false, where affine is as in nki_iota(), on_true
 * is a tile and on_false a float; gpsimd, SBUF
 */
#define nki_affine_select(k, dst, pattern, channel_multiplier, on_true, on_false, ...) \
	nki_affine_select_(k, NKI_LOC(nki_affine_select), dst, pattern, channel_multiplier, \
			   on_true, on_false, &(struct nki_affine_select_args){ __VA_ARGS__ })

/* ------------------------------------------------------------------------ */
/* Scalar engine: activate2						    */

/**
 * struct nki_activate2_args - options of nki_activate2()
 * @relu_param: slope of prelu: fp32 or (P, 1); default 0
 * @reverse0, @reverse1: imm op data instead of data op imm
 * @reduce_op: add (default), maximum, minimum, abs_max, abs_min
 * @reduce_res, @reduce_cmd: see struct nki_activation_args
 */
struct nki_activate2_args {
	struct nki_scalar relu_param;
	bool reverse0, reverse1;
	enum nki_op reduce_op;
	struct nki_view reduce_res;
	enum nki_reduce_cmd reduce_cmd;
};

/*
 * nki_activate2(k, dst, op, data, imm0, imm1, op0, op1, ...): Trn3;
 * dst = op((data op0 imm0) op1 imm1). op0, op1: multiply and add, subtract or bypass; add,
 * subtract or bypass and bypass
 */
#define nki_activate2(k, dst, op, data, imm0, imm1, op0, op1, ...) \
	nki_activate2_(k, NKI_LOC(nki_activate2), dst, op, data, imm0, imm1, op0, op1, \
		       &(struct nki_activate2_args){ __VA_ARGS__ })

/* ------------------------------------------------------------------------ */
/* Vector engine							    */

/**
 * struct nki_tensor_scalar_reduce_args - options of nki_tensor_scalar_reduce()
 * @reverse0: not supported yet, as in nki.isa
 * @reduce_cmd: default reset_reduce
 * @reduce_init: with load_reduce: fp32 or (P, 1)
 * @reduce_res_negate: reduce_res is the accumulator times -1
 */
struct nki_tensor_scalar_reduce_args {
	bool reverse0;
	enum nki_reduce_cmd reduce_cmd;
	struct nki_scalar reduce_init;
	bool reduce_res_negate;
};

/*
 * nki_tensor_scalar_reduce(k, dst, data, op0, operand0, reduce_op, reduce_res, ...):
 * dst = data op0 operand0; reduce_res (P, 1; NKI_NONE: not read out) = all of it by add,
 * multiply, maximum or minimum
 */
#define nki_tensor_scalar_reduce(k, dst, data, op0, operand0, reduce_op, reduce_res, ...) \
	nki_tensor_scalar_reduce_(k, NKI_LOC(nki_tensor_scalar_reduce), dst, data, op0, operand0, \
				  reduce_op, reduce_res, \
				  &(struct nki_tensor_scalar_reduce_args){ __VA_ARGS__ })

/* Options of nki_tensor_scalar_cumulative(): @imm1 is the start with load_reduce. */
struct nki_cumulative_args {
	struct nki_scalar imm1;
	enum nki_reduce_cmd reduce_cmd;
};

/*
 * nki_tensor_scalar_cumulative(k, dst, src, op0, op1, imm0, ...): dst[i] = (src[i] op0 imm0) op1
 * dst[i - 1]; op1 add, subtract, multiply, maximum, minimum; no 32-bit integers
 */
#define nki_tensor_scalar_cumulative(k, dst, src, op0, op1, imm0, ...) \
	nki_tensor_scalar_cumulative_(k, NKI_LOC(nki_tensor_scalar_cumulative), dst, src, op0, op1, \
				      imm0, &(struct nki_cumulative_args){ __VA_ARGS__ })

/* Options of nki_tensor_tensor_scan(). */
struct nki_scan_args {
	bool reverse0, reverse1;
};

/*
 * nki_tensor_tensor_scan(k, dst, data0, data1, initial, op0, op1, ...):
 * dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i], dst[-1] = initial (fp32 or (P, 1))
 */
#define nki_tensor_tensor_scan(k, dst, data0, data1, initial, op0, op1, ...) \
	nki_tensor_tensor_scan_(k, NKI_LOC(nki_tensor_tensor_scan), dst, data0, data1, initial, op0, \
				op1, &(struct nki_scan_args){ __VA_ARGS__ })

/**
 * struct nki_select_reduce_args - options of nki_select_reduce()
 * @reduce_res: (P, 1): maximum of the results
 * @reduce_op: maximum, or left out
 * @reverse_pred: on_true where the predicate is zero
 */
struct nki_select_reduce_args {
	struct nki_view reduce_res;
	enum nki_reduce_cmd reduce_cmd;
	enum nki_op reduce_op;
	bool reverse_pred;
};

/*
 * nki_select_reduce(k, dst, predicate, on_true, on_false, ...): dst = predicate ? on_true :
 * on_false; predicate of 8- or 16-bit integers, on_true not tf32 or 32-bit integers,
 * on_false fp32 or (P, 1)
 */
#define nki_select_reduce(k, dst, predicate, on_true, on_false, ...) \
	nki_select_reduce_(k, NKI_LOC(nki_select_reduce), dst, predicate, on_true, on_false, \
			   &(struct nki_select_reduce_args){ __VA_ARGS__ })

/**
 * struct nki_range_select_args - options of nki_range_select()
 * @reduce_cmd: default reset_reduce
 * @reduce_res: (P, 1): maximum of the results
 * @reduce_op: maximum, or left out
 * @range_start: number of the first element
 * @on_false: left out, or -3.4028235e38
 */
struct nki_range_select_args {
	enum nki_reduce_cmd reduce_cmd;
	struct nki_view reduce_res;
	enum nki_op reduce_op;
	int32_t range_start;
	struct nki_scalar on_false;
};

/*
 * nki_range_select(k, dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, ...): Trn2;
 * element i stays where range_start + i comp_op0 bound0 and range_start + i comp_op1
 * bound1, elsewhere the lowest fp32; bounds (P, 1) fp32
 */
#define nki_range_select(k, dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, ...) \
	nki_range_select_(k, NKI_LOC(nki_range_select), dst, on_true_tile, comp_op0, comp_op1, bound0, \
			  bound1, &(struct nki_range_select_args){ __VA_ARGS__ })

/**
 * struct nki_exponential_args - options of nki_exponential()
 * @max_value: subtracted before: fp32 or (P, 1); default 0
 * @reduce_res: (P, 1): sum of the results
 * @reduce_init: with load_reduce
 */
struct nki_exponential_args {
	struct nki_scalar max_value;
	struct nki_view reduce_res;
	enum nki_reduce_cmd reduce_cmd;
	struct nki_scalar reduce_init;
};

/* nki_exponential(k, dst, src, ...): Trn3; dst = exp(src - max_value) */
#define nki_exponential(k, dst, src, ...) \
	nki_exponential_(k, NKI_LOC(nki_exponential), dst, src, \
			 &(struct nki_exponential_args){ __VA_ARGS__ })

/* nki_bn_stats(k, dst, data): dst (P, 6): count, mean, variance * count of even elements, of odd; data at most 512 */
#define nki_bn_stats(k, dst, data) nki_bn_stats_(k, NKI_LOC(nki_bn_stats), dst, data)
/* nki_bn_aggr(k, dst, data): dst (P, 2): mean and variance of data's triples */
#define nki_bn_aggr(k, dst, data) nki_bn_aggr_(k, NKI_LOC(nki_bn_aggr), dst, data)

/* nki_max8(k, dst, src): dst (P, 8): the largest of 8 to 16384 elements, descending */
#define nki_max8(k, dst, src) nki_max8_(k, NKI_LOC(nki_max8), dst, src)
/* nki_nc_find_index8(k, dst, data, vals): dst (P, 8) uint16 or uint32: where vals are; all ones: nowhere */
#define nki_nc_find_index8(k, dst, data, vals) \
	nki_nc_find_index8_(k, NKI_LOC(nki_nc_find_index8), dst, data, vals)

/* Options of nki_nc_match_replace8(): @dst_idx (P, 8) gets where they were. */
struct nki_match_replace8_args {
	struct nki_view dst_idx;
};

/* nki_nc_match_replace8(k, dst, data, vals, imm, .dst_idx): dst = data, vals' first places = imm */
#define nki_nc_match_replace8(k, dst, data, vals, imm, ...) \
	nki_nc_match_replace8_(k, NKI_LOC(nki_nc_match_replace8), dst, data, vals, imm, \
			       &(struct nki_match_replace8_args){ __VA_ARGS__ })

/*
 * nki_nc_stream_shuffle(k, dst, src, shuffle_mask): in each 32 partitions dst[i] =
 * src[shuffle_mask[i]]; 255 keeps dst; shuffle_mask: 32 uint8_t
 */
#define nki_nc_stream_shuffle(k, dst, src, shuffle_mask) \
	nki_nc_stream_shuffle_(k, NKI_LOC(nki_nc_stream_shuffle), dst, src, shuffle_mask)

/* Options of nki_quantize_mx(): @old_scale: the scale rule before SDK 2.31. */
struct nki_quantize_mx_args {
	bool old_scale;
};

/*
 * nki_quantize_mx(k, dst, src, dst_scale, ...): Trn3; src bf16 or fp16 (32 n, 4 F), dst
 * float8_e5m2_x4 or float8_e4m3fn_x4 (32 n, F), dst_scale as in nki_nc_matmul_mx()
 */
#define nki_quantize_mx(k, dst, src, dst_scale, ...) \
	nki_quantize_mx_(k, NKI_LOC(nki_quantize_mx), dst, src, dst_scale, \
			 &(struct nki_quantize_mx_args){ __VA_ARGS__ })

/* ------------------------------------------------------------------------ */
/* Random numbers							    */

/* nki_dropout(k, dst, data, prob): zero with probability prob: fp32 or (P, 1) */
#define nki_dropout(k, dst, data, prob) nki_dropout_(k, NKI_LOC(nki_dropout), dst, data, prob)
/* nki_rng(k, dst, .engine): random bits; vector (default), from Trn2 gpsimd; integer types */
#define nki_rng(k, dst, ...) nki_rng_(k, NKI_LOC(nki_rng), dst, &(struct nki_engine_args){ __VA_ARGS__ })
/* nki_set_rng_seed(k, src_seeds): (1, 1) of 32 bits; vector engine */
#define nki_set_rng_seed(k, src_seeds) nki_set_rng_seed_(k, NKI_LOC(nki_set_rng_seed), src_seeds)
/* State of each partition's generators: gpsimd (P, 6), from Trn3 vector (P, 24); 32 bits */
#define nki_rand_set_state(k, src_seeds, ...) \
	nki_rand_set_state_(k, NKI_LOC(nki_rand_set_state), src_seeds, \
			    &(struct nki_engine_args){ __VA_ARGS__ })
#define nki_rand_get_state(k, dst, ...) \
	nki_rand_get_state_(k, NKI_LOC(nki_rand_get_state), dst, \
			    &(struct nki_engine_args){ __VA_ARGS__ })
/* nki_rand2(k, dst, min, max): Trn3; uniform in fp32 from min to max: fp32 or (P, 1) */
#define nki_rand2(k, dst, min, max) nki_rand2_(k, NKI_LOC(nki_rand2), dst, min, max)

/* ------------------------------------------------------------------------ */
/* GpSimd								    */

/* nki_tensor_partition_reduce(k, dst, op, data): dst has 1 partition; add, average, maximum, bitwise_or, _and */
#define nki_tensor_partition_reduce(k, dst, op, data) \
	nki_tensor_partition_reduce_(k, NKI_LOC(nki_tensor_partition_reduce), dst, op, data)

/**
 * struct nki_local_gather_args - options of nki_local_gather()
 * @num_elem_per_idx: 1 (default), 2, 4, 8, 16, 32
 * @num_valid_indices: default: all
 */
struct nki_local_gather_args {
	unsigned int num_elem_per_idx;
	unsigned int num_valid_indices;
};

/*
 * nki_local_gather(k, dst, src_buffer, index, ...): the uint16 indices of 16 partitions, taken
 * partition first, choose elements for all 16; at most 4096 of them
 */
#define nki_local_gather(k, dst, src_buffer, index, ...) \
	nki_local_gather_(k, NKI_LOC(nki_local_gather), dst, src_buffer, index, \
			  &(struct nki_local_gather_args){ __VA_ARGS__ })
/* nki_nc_n_gather(k, dst, data, indices): dst[p, i] = data[p, indices[p, i]]; uint32 */
#define nki_nc_n_gather(k, dst, data, indices) \
	nki_nc_n_gather_(k, NKI_LOC(nki_nc_n_gather), dst, data, indices)
/* nki_sequence_bounds(k, dst, segment_ids): (1, n) to (1, 2, n); fp32 or int32 */
#define nki_sequence_bounds(k, dst, segment_ids) \
	nki_sequence_bounds_(k, NKI_LOC(nki_sequence_bounds), dst, segment_ids)

/* Options of nki_nonzero_with_count(): @padding_val nki_i32(), default -1. */
struct nki_nonzero_args {
	int32_t index_offset;
	struct nki_scalar padding_val;
};

/*
 * nki_nonzero_with_count(k, dst, src, ...): Trn2; in partitions 0, 16, .. 112: numbers of
 * src's elements that are not 0, padding, and their count last; dst int32, one longer
 */
#define nki_nonzero_with_count(k, dst, src, ...) \
	nki_nonzero_with_count_(k, NKI_LOC(nki_nonzero_with_count), dst, src, \
				&(struct nki_nonzero_args){ __VA_ARGS__ })
/* nki_topk(k, val_dst, idx_dst, src, n): top of the n bf16 of each 16 partitions, ascending; idx_dst uint32 */
#define nki_topk(k, val_dst, idx_dst, src, n) nki_topk_(k, NKI_LOC(nki_topk), val_dst, idx_dst, src, n)

/* ------------------------------------------------------------------------ */
/* Two cores, host							    */

/* nki.isa.dma_engine */
enum nki_dma_engine {
	NKI_DMA_ENGINE_DMA = 0,
	NKI_DMA_ENGINE_GPSIMD = 1,
};

/* Options of nki_sendrecv(). */
struct nki_sendrecv_args {
	enum nki_dma_engine dma_engine;
};

/*
 * nki_sendrecv(k, src, dst, send_to_rank, recv_from_rank, pipe_id, .dma_engine): LNC=2; both
 * cores call it; each one's src goes to the other's dst. SBUF, one type and shape.
 * pipe_id 0 to 7: the n-th call of one core meets the n-th of the other. gpsimd_dma: at
 * most 1024, 512, 256 bytes per partition of 4, 2, 1-byte types
 */
#define nki_sendrecv(k, src, dst, send_to_rank, recv_from_rank, pipe_id, ...) \
	nki_sendrecv_(k, NKI_LOC(nki_sendrecv), src, dst, send_to_rank, recv_from_rank, pipe_id, \
		      &(struct nki_sendrecv_args){ __VA_ARGS__ })

/*
 * nki_core_barrier(k, data, .engine): LNC=2; what either core did to data, a tensor in
 * HBM, before it has happened when the other's call is over; default gpsimd
 */
#define nki_core_barrier(k, data, ...) \
	nki_core_barrier_(k, NKI_LOC(nki_core_barrier), data, &(struct nki_engine_args){ __VA_ARGS__ })

/*
 * nki_device_print(k, prefix, tensor, .engine): the tile to the runtime's debug stream;
 * prefix is copied; vector (default), scalar, gpsimd
 */
#define nki_device_print(k, prefix, tensor, ...) \
	nki_device_print_(k, NKI_LOC(nki_device_print), prefix, tensor, \
			  &(struct nki_engine_args){ __VA_ARGS__ })

/* nki_notify(k, value, .engine): value in the notification queue of the engine; default sync */
#define nki_notify(k, value, ...) \
	nki_notify_(k, NKI_LOC(nki_notify), value, &(struct nki_engine_args){ __VA_ARGS__ })

/*
 * nki_set_rounding_mode(k, stochastic): how casts round, for the whole program; before its
 * first instruction
 */
#define nki_set_rounding_mode(k, stochastic) \
	nki_set_rounding_mode_(k, NKI_LOC(nki_set_rounding_mode), stochastic)

/* ------------------------------------------------------------------------ */
/* What the macros call							    */

void nki_dma_copy_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		   struct nki_view src, const struct nki_dma_args *args);
void nki_nc_matmul_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		    struct nki_view stationary, struct nki_view moving,
		    const struct nki_matmul_args *args);
void nki_nc_transpose_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view data, const struct nki_engine_args *args);
void nki_activation_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, enum nki_op op,
		     struct nki_view data, const struct nki_activation_args *args);
void nki_activation_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    enum nki_op op, struct nki_view data, enum nki_op reduce_op,
			    struct nki_view reduce_res, const struct nki_activation_args *args);
void nki_tensor_tensor_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view data1, struct nki_view data2, enum nki_op op,
			const struct nki_engine_args *args);
void nki_tensor_scalar_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view data, enum nki_op op0, struct nki_scalar operand0,
			const struct nki_tensor_scalar_args *args);
void nki_scalar_tensor_tensor_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			       struct nki_view data, enum nki_op op0, struct nki_scalar operand0,
			       enum nki_op op1, struct nki_view operand1,
			       const struct nki_scalar_tensor_tensor_args *args);
void nki_tensor_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			enum nki_op op, struct nki_view data, unsigned int axis,
			const struct nki_tensor_reduce_args *args);
void nki_tensor_copy_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		      struct nki_view src, const struct nki_engine_args *args);
void nki_tensor_copy_predicated_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				 struct nki_view src, struct nki_view predicate,
				 const struct nki_predicated_args *args);
void nki_select_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		 struct nki_view predicate, struct nki_view on_true, struct nki_scalar on_false);
void nki_memset_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, double value,
		 const struct nki_engine_args *args);
void nki_reciprocal_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		     struct nki_view data);
void nki_iota_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
	       struct nki_pattern pattern, const struct nki_iota_args *args);
void nki_affine_select_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_pattern pattern, int32_t channel_multiplier,
			struct nki_view on_true, float on_false,
			const struct nki_affine_select_args *args);
void nki_dma_transpose_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view src, const struct nki_dma_args *args);
void nki_dma_compute_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		      const struct nki_view *srcs, unsigned int count, enum nki_op reduce_op,
		      const struct nki_dma_compute_args *args);
void nki_nc_matmul_mx_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view stationary, struct nki_view moving,
		       struct nki_view stationary_scale, struct nki_view moving_scale,
		       const struct nki_matmul_mx_args *args);
void nki_nc_matmul_sparse_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			   struct nki_view moving, struct nki_view stationary, struct nki_view tag,
			   unsigned int ratio, const struct nki_matmul_sparse_args *args);
void nki_activate2_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, enum nki_op op,
		    struct nki_view data, struct nki_scalar imm0, struct nki_scalar imm1,
		    enum nki_op op0, enum nki_op op1, const struct nki_activate2_args *args);
void nki_tensor_scalar_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			       struct nki_view data, enum nki_op op0, struct nki_scalar operand0,
			       enum nki_op reduce_op, struct nki_view reduce_res,
			       const struct nki_tensor_scalar_reduce_args *args);
void nki_tensor_scalar_cumulative_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				   struct nki_view src, enum nki_op op0, enum nki_op op1,
				   struct nki_scalar imm0, const struct nki_cumulative_args *args);
void nki_tensor_tensor_scan_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			     struct nki_view data0, struct nki_view data1, struct nki_scalar initial,
			     enum nki_op op0, enum nki_op op1, const struct nki_scan_args *args);
void nki_select_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view predicate, struct nki_view on_true, struct nki_scalar on_false,
			const struct nki_select_reduce_args *args);
void nki_range_select_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view on_true_tile, enum nki_op comp_op0, enum nki_op comp_op1,
		       struct nki_view bound0, struct nki_view bound1,
		       const struct nki_range_select_args *args);
void nki_exponential_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view src,
		      const struct nki_exponential_args *args);
void nki_bn_stats_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data);
void nki_bn_aggr_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data);
void nki_max8_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view src);
void nki_nc_find_index8_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			 struct nki_view data, struct nki_view vals);
void nki_nc_match_replace8_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    struct nki_view data, struct nki_view vals, float imm,
			    const struct nki_match_replace8_args *args);
void nki_nc_stream_shuffle_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    struct nki_view src, const uint8_t *shuffle_mask);
void nki_quantize_mx_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view src,
		      struct nki_view dst_scale, const struct nki_quantize_mx_args *args);
void nki_dropout_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data,
		  struct nki_scalar prob);
void nki_rng_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
	      const struct nki_engine_args *args);
void nki_set_rng_seed_(struct nki_kernel *k, struct nki_loc loc, struct nki_view src_seeds);
void nki_rand_set_state_(struct nki_kernel *k, struct nki_loc loc, struct nki_view src_seeds,
			 const struct nki_engine_args *args);
void nki_rand_get_state_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			 const struct nki_engine_args *args);
void nki_rand2_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_scalar min,
		struct nki_scalar max);
void nki_tensor_partition_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				  enum nki_op op, struct nki_view data);
void nki_local_gather_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view src_buffer, struct nki_view index,
		       const struct nki_local_gather_args *args);
void nki_nc_n_gather_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data,
		      struct nki_view indices);
void nki_sequence_bounds_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			  struct nki_view segment_ids);
void nki_nonzero_with_count_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			     struct nki_view src, const struct nki_nonzero_args *args);
void nki_topk_(struct nki_kernel *k, struct nki_loc loc, struct nki_view val_dst, struct nki_view idx_dst,
	       struct nki_view src, uint32_t n);
void nki_sendrecv_(struct nki_kernel *k, struct nki_loc loc, struct nki_view src, struct nki_view dst,
		   unsigned int send_to_rank, unsigned int recv_from_rank, unsigned int pipe_id,
		   const struct nki_sendrecv_args *args);
void nki_core_barrier_(struct nki_kernel *k, struct nki_loc loc, struct nki_view data,
		       const struct nki_engine_args *args);
void nki_device_print_(struct nki_kernel *k, struct nki_loc loc, const char *prefix,
		       struct nki_view tensor, const struct nki_engine_args *args);
void nki_notify_(struct nki_kernel *k, struct nki_loc loc, uint32_t value,
		 const struct nki_engine_args *args);
void nki_set_rounding_mode_(struct nki_kernel *k, struct nki_loc loc, bool stochastic);

#endif /* NKI_INSN_H */
