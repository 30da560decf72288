/* SPDX-License-Identifier: MIT */
/*
 * nki - write programs for a NeuronCore in C.
 *
 * The calls carry the names of nki.isa and do what the published documents of
 * that module say. They record; nothing runs here. The library allocates and
 * reuses SBUF and PSUM, places every semaphore from the data dependences of the
 * sequential program that was written, remembers the file and line of each call,
 * and writes a NEFF for libnrt.
 *
 *	struct nki_kernel *k = nki_kernel_new("add", "trn2");
 *	struct nki_view a = nki_input(k, "a", NKI_FLOAT32, 128, 512);
 *	struct nki_view c = nki_output(k, "c", NKI_FLOAT32, 128, 512);
 *	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, 512);
 *
 *	nki_dma_copy(k, t, a);
 *	nki_tensor_scalar(k, t, t, NKI_ADD, nki_f32(1.0f));
 *	nki_dma_copy(k, c, t);
 *	if (nki_save(k, "add.neff"))
 *		fprintf(stderr, "%s\n", nki_error(k));
 *	nki_kernel_free(k);
 *
 * Errors: the first one is kept (nki_error()), with file, line, the rule that was
 * broken, what was given and what is allowed; later calls do nothing, and views
 * made after it are harmless. So only nki_save() or nki_build() must be checked.
 *
 * Threads: a kernel belongs to one thread at a time; different kernels are
 * independent.
 *
 * Sources: "nki.isa", "nki.api.shared" and the architecture guides of the AWS
 * Neuron SDK documentation; the encoding is uapi/neuron/isa.h.
 */
#ifndef NKI_H
#define NKI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron/isa.h"

/* ------------------------------------------------------------------------ */
/* Types and operators							    */

/* NKI_FLOAT32, NKI_BFLOAT16, NKI_UINT8, ...: every type of isa.def. */
enum nki_dtype {
#define NEURON_DTYPE(code, name, text, bytes) NKI_##name = code,
#include "neuron/isa.def"
};

#define NKI_ACT_(name) (0x100 | NEURON_ACTFN_##name)

/*
 * ALU operators, and the activation functions that are not ALU operators too.
 * (square, relu, abs, rsqrt and reciprocal are both, as in nki.language.)
 */
enum nki_op {
#define NEURON_ALU(code, name, text, cls, arity, reduce) NKI_##name = code,
#include "neuron/isa.def"
	NKI_COPY = NKI_ACT_(COPY),
	NKI_SIGMOID = NKI_ACT_(SIGMOID),
	NKI_GELU = NKI_ACT_(GELU),
	NKI_GELU_DX = NKI_ACT_(GELU_DX),
	NKI_GELU_APPRX_TANH = NKI_ACT_(GELU_APPRX_TANH),
	NKI_GELU_APPRX_SIGMOID = NKI_ACT_(GELU_APPRX_SIGMOID),
	NKI_SILU = NKI_ACT_(SILU),
	NKI_SILU_DX = NKI_ACT_(SILU_DX),
	NKI_TANH = NKI_ACT_(TANH),
	NKI_SOFTPLUS = NKI_ACT_(SOFTPLUS),
	NKI_MISH = NKI_ACT_(MISH),
	NKI_ERF = NKI_ACT_(ERF),
	NKI_ERF_DX = NKI_ACT_(ERF_DX),
	NKI_EXP = NKI_ACT_(EXP),
	NKI_SIGN = NKI_ACT_(SIGN),
	NKI_LOG = NKI_ACT_(LOG),
	NKI_SIN = NKI_ACT_(SIN),
	NKI_ARCTAN = NKI_ACT_(ARCTAN),
	NKI_SQRT = NKI_ACT_(SQRT),
};

/* nki.isa.engine; UNKNOWN lets the library choose. */
enum nki_engine {
	NKI_ENGINE_UNKNOWN	= 0,
	NKI_ENGINE_TENSOR	= NEURON_ENGINE_PE,
	NKI_ENGINE_SCALAR	= NEURON_ENGINE_ACT,
	NKI_ENGINE_GPSIMD	= NEURON_ENGINE_POOL,
	NKI_ENGINE_VECTOR	= NEURON_ENGINE_DVE,
	NKI_ENGINE_SYNC		= NEURON_ENGINE_SP,
};

/* nki.isa.oob_mode: what an indirect index outside the tensor does. */
enum nki_oob_mode {
	NKI_OOB_ERROR	= 0,	/* the job faults */
	NKI_OOB_SKIP	= 1,	/* that row is not transferred */
};

/* nki.isa.reduce_cmd, commands to the scalar engine's accumulators. */
enum nki_reduce_cmd {
	NKI_REDUCE_IDLE		= NEURON_ACC_IDLE,
	NKI_REDUCE_RESET	= NEURON_ACC_RESET,
	NKI_REDUCE_REDUCE	= NEURON_ACC_REDUCE,
	NKI_REDUCE_RESET_REDUCE	= NEURON_ACC_RESET_REDUCE,
};

/* ------------------------------------------------------------------------ */
/* Kernel								    */

struct nki_kernel;
struct nki_buf;

/* Where a call was written; made by the macros. */
struct nki_loc {
	const char *file;
	int line;
	const char *name;
};

#define NKI_LOC(call) ((struct nki_loc){ __FILE__, __LINE__, #call })

/**
 * nki_kernel_new() - begin a program
 * @name: of the program, at most 255 bytes; copied
 * @arch: "trn1", "inf2", "trn2" or "trn3": what it will run on
 *
 * Return: the kernel, to be freed with nki_kernel_free(). An unknown @arch gives a
 * kernel whose nki_error() says so. NULL when out of memory (all calls accept
 * NULL and do nothing).
 */
struct nki_kernel *nki_kernel_new(const char *name, const char *arch);

/**
 * nki_kernel_free() - free a kernel and everything that belongs to it
 * @k: NULL is allowed. All views of it become invalid
 */
void nki_kernel_free(struct nki_kernel *k);

/**
 * nki_error() - the first thing that was wrong
 *
 * Return: "file:line: call: rule, given, allowed", owned by @k; NULL: no error.
 */
const char *nki_error(const struct nki_kernel *k);

/* NeuronCore version of the kernel: 2, 3 or 4 (nki.isa.get_nc_version). */
unsigned int nki_nc_version(const struct nki_kernel *k);

/* Bytes of an element. 0 for an unknown type. */
unsigned int nki_dtype_size(enum nki_dtype dtype);

/* ------------------------------------------------------------------------ */
/* Views								    */

#define NKI_MAX_DIMS 6

/**
 * struct nki_reg - a 32-bit sequencer register, the same on every engine
 * @id: 0: none
 *
 * Each engine has its own copy and executes every operation on it.
 */
struct nki_reg {
	unsigned int id;
};

/**
 * struct nki_view - a tile in SBUF or PSUM, a tensor in HBM, or a part of one
 * @buf: what it is a view of; NULL: no operand
 * @dtype: of its elements
 * @dims: dimensions, 1 to NKI_MAX_DIMS, outermost first. Dimension 0 of a tile is
 *	the partition
 * @num: elements by dimension
 * @step: distance in elements by dimension; of a tile's dimension 0: 1
 * @part: first partition (tiles)
 * @offset: bytes from the start of the tensor, or of the tile in its partitions
 * @reg: register times @reg_scale bytes is added to @offset
 * @reg_scale: see @reg
 * @count_reg: register that replaces @num[@count_dim]
 * @count_dim: see @count_reg
 * @index: (P, 1) tile of row numbers, owned by the kernel; NULL: no gather
 *
 * A value: pass it, keep it, slice it. Made by the functions below; fields are
 * for reading. A new tile or tensor is a view of all of itself.
 */
struct nki_view {
	struct nki_buf *buf;
	enum nki_dtype dtype;
	unsigned int dims;
	uint32_t num[NKI_MAX_DIMS];
	int64_t step[NKI_MAX_DIMS];
	uint32_t part;
	int64_t offset;
	struct nki_reg reg;
	int64_t reg_scale;
	struct nki_reg count_reg;
	unsigned int count_dim;
	const struct nki_view *index;
};

/* No operand. */
#define NKI_NONE ((struct nki_view){ .buf = NULL })

#define NKI_DIMS_(...) \
	(const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)

/*
 * Tensors in HBM: the program's arguments.
 *
 * struct nki_view nki_input(k, name, dtype, dim...)	read only, set by the caller
 * struct nki_view nki_output(k, name, dtype, dim...)	read and written
 * struct nki_view nki_scratch(k, name, dtype, dim...)	memory of the model, undefined
 *							at the start of a job
 * struct nki_view nki_const(k, name, dtype, data, dim...)
 *			read only, stored in the NEFF; @data is copied
 *
 * 1 to NKI_MAX_DIMS dimensions, outermost first, none 0; names are unique and of
 * 1 to 255 bytes.
 */
#define nki_input(k, name, dtype, ...) \
	nki_tensor_(k, NKI_LOC(nki_input), NKI_TENSOR_INPUT, name, dtype, NULL, NKI_DIMS_(__VA_ARGS__))
#define nki_output(k, name, dtype, ...) \
	nki_tensor_(k, NKI_LOC(nki_output), NKI_TENSOR_OUTPUT, name, dtype, NULL, NKI_DIMS_(__VA_ARGS__))
#define nki_scratch(k, name, dtype, ...) \
	nki_tensor_(k, NKI_LOC(nki_scratch), NKI_TENSOR_SCRATCH, name, dtype, NULL, NKI_DIMS_(__VA_ARGS__))
#define nki_const(k, name, dtype, data, ...) \
	nki_tensor_(k, NKI_LOC(nki_const), NKI_TENSOR_CONST, name, dtype, data, NKI_DIMS_(__VA_ARGS__))

/*
 * Tiles: memory on the core.
 *
 * struct nki_view nki_sbuf(k, dtype, partitions, dim...)
 * struct nki_view nki_psum(k, dtype, partitions, dim...)
 *
 * 1 to 128 partitions, then 1 to 4 free dimensions (left out: one element). The
 * address is chosen so that nothing alive is overlapped; a PSUM tile of up to
 * 2 KiB per partition lies in one bank (2 KiB: 512 fp32), a larger one starts at a
 * bank. When memory is exhausted the error lists what is alive and where it was
 * allocated. The bytes are undefined until written.
 */
#define nki_sbuf(k, dtype, ...) \
	nki_tile_(k, NKI_LOC(nki_sbuf), NEURON_SPACE_SBUF, dtype, NKI_DIMS_(__VA_ARGS__))
#define nki_psum(k, dtype, ...) \
	nki_tile_(k, NKI_LOC(nki_psum), NEURON_SPACE_PSUM, dtype, NKI_DIMS_(__VA_ARGS__))

/*
 * void nki_free(k, view) - end of the life of the tile that @view is a view of
 *
 * Its bytes may be given to a later tile; the library makes the new user wait for
 * the old ones. Using a freed tile is an error. In a loop only tiles allocated in
 * the same loop body can be freed; they may also be left alive.
 */
#define nki_free(k, view) nki_free_(k, NKI_LOC(nki_free), view)

/*
 * Parts of views. Every one returns a new view of the same bytes.
 *
 * nki_slice(k, v, dim, lo, hi)		elements lo to hi - 1 of a dimension
 * nki_slice_step(k, v, dim, lo, hi, step)	every step-th of them
 * nki_rows(k, v, lo, hi)		nki_slice of dimension 0 (of a tile: partitions,
 *					which must start at 0, 32, 64 or 96)
 * nki_cols(k, v, lo, hi)		nki_slice of the last dimension
 * nki_index(k, v, dim, i)		element i; the dimension is gone (not dim 0 of tiles)
 * nki_expand(k, v, dim)		a new dimension of 1 element before @dim
 * nki_broadcast(k, v, dim, n)		a dimension of 1 element is read n times (step 0)
 * nki_reshape(k, v, dim...)		same elements in order, other dimensions; of a tile
 *					dimension 0 stays
 * nki_permute(k, v, dim...)		dimensions in another order; of a tile 0 stays first
 * nki_bitcast(k, v, dtype)		same bytes as another type of the same size
 * nki_dyn(k, v, dim, reg)		start at element reg of @dim (scalar_offset): use it
 *					on a slice, e.g. one row of nki_slice(k, t, 0, 0, 1).
 *					One per view; not dimension 0 of tiles. The range of
 *					a loop's register is checked here, others when the
 *					program runs
 * nki_dyn_num(k, v, dim, reg)		the dimension has reg elements (dynamic shape); one
 *					per view; num stays the upper bound
 * nki_gather(k, v, index)		HBM tensors: row n is row index[n] of dimension 0
 *					(vector_offset). index: (P, 1) uint32 or int32 in SBUF;
 *					dimension 0 of the result has P rows
 */
#define nki_slice(k, v, dim, lo, hi) nki_slice_(k, NKI_LOC(nki_slice), v, dim, lo, hi, 1)
#define nki_slice_step(k, v, dim, lo, hi, step) \
	nki_slice_(k, NKI_LOC(nki_slice_step), v, dim, lo, hi, step)
#define nki_rows(k, v, lo, hi) nki_slice_(k, NKI_LOC(nki_rows), v, 0, lo, hi, 1)
#define nki_cols(k, v, lo, hi) nki_slice_(k, NKI_LOC(nki_cols), v, -1, lo, hi, 1)
#define nki_index(k, v, dim, i) nki_index_(k, NKI_LOC(nki_index), v, dim, i)
#define nki_expand(k, v, dim) nki_expand_(k, NKI_LOC(nki_expand), v, dim)
#define nki_broadcast(k, v, dim, n) nki_broadcast_(k, NKI_LOC(nki_broadcast), v, dim, n)
#define nki_reshape(k, v, ...) nki_reshape_(k, NKI_LOC(nki_reshape), v, NKI_DIMS_(__VA_ARGS__))
#define nki_permute(k, v, ...) nki_permute_(k, NKI_LOC(nki_permute), v, NKI_DIMS_(__VA_ARGS__))
#define nki_bitcast(k, v, dtype) nki_bitcast_(k, NKI_LOC(nki_bitcast), v, dtype)
#define nki_dyn(k, v, dim, reg) nki_dyn_(k, NKI_LOC(nki_dyn), v, dim, reg)
#define nki_dyn_num(k, v, dim, reg) nki_dyn_num_(k, NKI_LOC(nki_dyn_num), v, dim, reg)
#define nki_gather(k, v, index) nki_gather_(k, NKI_LOC(nki_gather), v, index)

/* ------------------------------------------------------------------------ */
/* Scalar operands							    */

/**
 * struct nki_scalar - an operand that is one value, or one value per partition
 * @kind: enum neuron_imm_kind; 0: left out
 * @f: F32
 * @i: I32
 * @reg: REG
 * @dtype: how a REG is read: NKI_FLOAT32, NKI_INT32 or NKI_UINT32
 * @vec: VEC: (P, 1) tile
 */
struct nki_scalar {
	enum neuron_imm_kind kind;
	float f;
	int32_t i;
	struct nki_reg reg;
	enum nki_dtype dtype;
	struct nki_view vec;
};

static inline struct nki_scalar nki_f32(float value)
{
	return (struct nki_scalar){ .kind = NEURON_IMM_F32, .f = value };
}

static inline struct nki_scalar nki_i32(int32_t value)
{
	return (struct nki_scalar){ .kind = NEURON_IMM_I32, .i = value };
}

/* The partition's own value: @v has one element per partition. */
static inline struct nki_scalar nki_vec(struct nki_view v)
{
	return (struct nki_scalar){ .kind = NEURON_IMM_VEC, .vec = v };
}

/* The register's bits as @dtype. */
static inline struct nki_scalar nki_reg_as(struct nki_reg reg, enum nki_dtype dtype)
{
	return (struct nki_scalar){ .kind = NEURON_IMM_REG, .reg = reg, .dtype = dtype };
}

static inline struct nki_scalar nki_regval(struct nki_reg reg)
{
	return nki_reg_as(reg, NKI_INT32);
}

/**
 * struct nki_pattern - affine pattern of iota and affine_select, outermost first
 * @dim: [step, num] pairs; a pair with num 0 ends the list
 */
struct nki_pattern {
	struct {
		int32_t step;
		uint32_t num;
	} dim[NEURON_AP_DIMS];
};

/* NKI_PATTERN({1, 128}) or NKI_PATTERN({0, 4}, {1, 32}) */
#define NKI_PATTERN(...) ((struct nki_pattern){ .dim = { __VA_ARGS__ } })

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
 * struct nki_dma_args - options of nki_dma_copy()
 * @engine: who starts it: sync (default), scalar or gpsimd
 * @queue: 1 to 16: DMA queue 0 to 15; 0: chosen by engine and direction. Transfers
 *	of one queue run in order; a queue belongs to one engine
 * @priority: 0 (high) to 3, Trn3; elsewhere 0
 * @oob_mode: of nki_gather views
 */
struct nki_dma_args {
	enum nki_engine engine;
	unsigned int queue;
	unsigned int priority;
	enum nki_oob_mode oob_mode;
};

/*
 * nki_dma_copy(k, dst, src, ...): dst = src, with cast. HBM and SBUF in any pair, not
 * PSUM; as many elements on both sides, taken in order (a tile's partition is its
 * outermost dimension). HBM views have at most 5 dimensions after merging.
 */
#define nki_dma_copy(k, dst, src, ...) \
	nki_dma_copy_(k, NKI_LOC(nki_dma_copy), dst, src, &(struct nki_dma_args){ __VA_ARGS__ })

/**
 * struct nki_matmul_args - options of nki_nc_matmul()
 * @accumulate: add to what earlier matmuls left in @dst; default: overwrite
 * @is_transpose: Trn2 and later: bit-exact transpose, @moving is an identity
 */
struct nki_matmul_args {
	bool accumulate;
	bool is_transpose;
};

/*
 * nki_nc_matmul(k, dst, stationary, moving, ...):
 *	dst[M, N] (+)= stationary[K, M]^T @ moving[K, N]
 *
 * K, M <= 128; N <= 512 (Trn3: 4096); inputs in SBUF, fp32/tf32 only with each other;
 * dst in PSUM, fp32 (Trn3 also bf16; with is_transpose the input's type), in one bank
 * before Trn3. When the same stationary view is used again and nothing wrote to it, it
 * is not loaded again.
 */
#define nki_nc_matmul(k, dst, stationary, moving, ...) \
	nki_nc_matmul_(k, NKI_LOC(nki_nc_matmul), dst, stationary, moving, \
		       &(struct nki_matmul_args){ __VA_ARGS__ })

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

/* nki_select(k, dst, predicate, on_true, on_false): nki.isa.select_reduce without the reduce */
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
/* Registers and loops							    */

/*
 * struct nki_reg nki_register_alloc(k)			a new register, undefined
 * nki_register_move(k, reg, value)			nki_i32() or nki_regval()
 * nki_register_alu(k, reg, op, a, b)			reg = a op b, 32-bit integers
 * nki_register_load(k, reg, view)			one 32-bit element of SBUF
 * nki_register_store(k, view, reg, .engine)		the other way; default sync
 */
#define nki_register_alloc(k) nki_register_alloc_(k, NKI_LOC(nki_register_alloc))
#define nki_register_move(k, reg, value) \
	nki_register_move_(k, NKI_LOC(nki_register_move), reg, value)
#define nki_register_alu(k, reg, op, a, b) \
	nki_register_alu_(k, NKI_LOC(nki_register_alu), reg, op, a, b)
#define nki_register_load(k, reg, view) nki_register_load_(k, NKI_LOC(nki_register_load), reg, view)
#define nki_register_store(k, view, reg, ...) \
	nki_register_store_(k, NKI_LOC(nki_register_store), view, reg, \
			    &(struct nki_engine_args){ __VA_ARGS__ })

/*
 * A loop that runs on the device. The body is recorded once:
 *
 *	nki_for(k, i, 0, 70, 1) {
 *		nki_dma_copy(k, x, nki_dyn(k, nki_slice(k, xs, 0, 0, 1), 0, i));
 *		...
 *	}
 *
 * declares struct nki_reg i, which counts lo, lo + step, ... while it is below hi
 * (int32). nki_for_reg() takes hi from a register. Do not leave the body with break,
 * goto or return. Loops nest. Iterations overlap as far as their data allow: to load
 * the next batch while this one is worked on, use two tiles and a body of two steps.
 */
#define nki_for(k, i, lo, hi, step) \
	nki_for_(k, i, lo, nki_i32(hi), step)
#define nki_for_reg(k, i, lo, hi, step) \
	nki_for_(k, i, lo, nki_regval(hi), step)
#define nki_for_(k, i, lo, hi, step) \
	for (struct nki_reg i = nki_for_begin_(k, NKI_LOC(nki_for), lo, hi, step); \
	     i.id; i = nki_for_end_(k, NKI_LOC(nki_for), i))

/* ------------------------------------------------------------------------ */
/* The result								    */

/**
 * nki_info_json() - add keys to info.json of the NEFF
 * @json: text of one JSON object; its keys replace those of earlier calls. The keys
 *	that Documentation/neff.rst reserves cannot be replaced
 */
void nki_info_json(struct nki_kernel *k, const char *json);

/**
 * nki_build() - finish the program and make a NEFF
 * @bytes: set to memory that the caller frees with free()
 * @size: set to its size
 *
 * May be called more than once, with instructions added in between.
 *
 * Return: 0, -EINVAL (nki_error() says why) or -ENOMEM.
 */
int nki_build(struct nki_kernel *k, void **bytes, size_t *size);

/**
 * nki_save() - nki_build() into a file
 *
 * Return: 0, -EINVAL (nki_error() says why), -ENOMEM or the errno of writing.
 */
int nki_save(struct nki_kernel *k, const char *path);

/**
 * nki_stream() - the finished instructions of one engine
 * @words: set to 128-byte words, owned by @k until the next nki_build(), nki_stream()
 *	after a change, or nki_kernel_free()
 * @count: set to their number
 *
 * Return: 0, or -EINVAL (nki_error() says why).
 */
int nki_stream(struct nki_kernel *k, enum nki_engine engine, const void **words, size_t *count);

/**
 * struct nki_line - an entry of the line table
 * @file: as given by __FILE__
 * @line: line number
 * @name: call
 */
struct nki_line {
	const char *file;
	int line;
	const char *name;
};

/* Line of an instruction's debug_id (1 to n); NULL outside. Owned by @k. */
const struct nki_line *nki_line(struct nki_kernel *k, unsigned int debug_id);

/**
 * struct nki_edge - one ordering that a semaphore enforces
 * @producer, @consumer: calls
 * @producer_engine: NEURON_ENGINE_DMA: a transfer on @queue
 * @consumer_engine: stream that waits
 * @queue: see @producer_engine
 * @sem: semaphore
 * @carried: the consumer waits for the previous iteration of the loop
 * @dropped: see nki_drop_semaphore()
 * @reason: "RAW", "WAR", "WAW", or "loop" (completion of a loop's transfers)
 */
struct nki_edge {
	struct nki_line producer;
	struct nki_line consumer;
	enum neuron_engine producer_engine;
	enum neuron_engine consumer_engine;
	unsigned int queue;
	unsigned int sem;
	bool carried;
	bool dropped;
	const char *reason;
};

/**
 * nki_edge_count() - finish the program and count its semaphore edges
 *
 * Return: the number, or -EINVAL (nki_error() says why).
 */
int nki_edge_count(struct nki_kernel *k);

/**
 * nki_edge() - describe an edge
 * @n: 0 to nki_edge_count() - 1; the numbers are stable for one program
 *
 * Return: 0, or -EINVAL.
 */
int nki_edge(struct nki_kernel *k, unsigned int n, struct nki_edge *edge);

/**
 * nki_drop_semaphore() - leave one edge out: a bug on purpose
 * @n: edge, or -1: none. The environment variable NKI_DROP_SEMAPHORE does the same
 *
 * The signal and its wait go together, so the program still ends; what they
 * ordered is now a race, which strict mode reports.
 */
void nki_drop_semaphore(struct nki_kernel *k, int n);

/* ------------------------------------------------------------------------ */
/* What the macros call							    */

enum nki_tensor_kind {
	NKI_TENSOR_INPUT,
	NKI_TENSOR_OUTPUT,
	NKI_TENSOR_CONST,
	NKI_TENSOR_SCRATCH,
};

struct nki_view nki_tensor_(struct nki_kernel *k, struct nki_loc loc, enum nki_tensor_kind kind,
			    const char *name, enum nki_dtype dtype, const void *data,
			    const uint32_t *num, size_t dims);
struct nki_view nki_tile_(struct nki_kernel *k, struct nki_loc loc, enum neuron_space space,
			  enum nki_dtype dtype, const uint32_t *num, size_t dims);
void nki_free_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v);
struct nki_view nki_slice_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			   int64_t lo, int64_t hi, int64_t step);
struct nki_view nki_index_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			   int64_t i);
struct nki_view nki_expand_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim);
struct nki_view nki_broadcast_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			       uint32_t n);
struct nki_view nki_reshape_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			     const uint32_t *num, size_t dims);
struct nki_view nki_permute_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			     const uint32_t *order, size_t dims);
struct nki_view nki_bitcast_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			     enum nki_dtype dtype);
struct nki_view nki_dyn_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			 struct nki_reg reg);
struct nki_view nki_dyn_num_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			     struct nki_reg reg);
struct nki_view nki_gather_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			    struct nki_view index);

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

struct nki_reg nki_register_alloc_(struct nki_kernel *k, struct nki_loc loc);
void nki_register_move_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg,
			struct nki_scalar value);
void nki_register_alu_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg, enum nki_op op,
		       struct nki_scalar a, struct nki_scalar b);
void nki_register_load_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg,
			struct nki_view v);
void nki_register_store_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			 struct nki_reg reg, const struct nki_engine_args *args);
struct nki_reg nki_for_begin_(struct nki_kernel *k, struct nki_loc loc, int32_t lo,
			      struct nki_scalar hi, int32_t step);
struct nki_reg nki_for_end_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg i);

#endif /* NKI_H */
