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
	NKI_PRELU = 0x118,	/* nki_activate2() only */
	NKI_GELU_APPRX_SIGMOID_DX = 0x119,
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

/* nki.isa.reduce_cmd, commands to the accumulators of the scalar and vector engines. */
enum nki_reduce_cmd {
	NKI_REDUCE_IDLE		= NEURON_ACC_IDLE,
	NKI_REDUCE_RESET	= NEURON_ACC_RESET,
	NKI_REDUCE_REDUCE	= NEURON_ACC_REDUCE,
	NKI_REDUCE_RESET_REDUCE	= NEURON_ACC_RESET_REDUCE,
	NKI_REDUCE_LOAD_REDUCE	= NEURON_ACC_LOAD_REDUCE,	/* vector engine */
};

/* nki.isa.dge_mode: who writes a transfer's descriptors. */
enum nki_dge_mode {
	NKI_DGE_UNKNOWN	= 0,
	NKI_DGE_SWDGE	= 1,	/* gpsimd; gather and scatter need it */
	NKI_DGE_HWDGE	= 2,	/* hardware, from Trn2 on: sync or scalar, equal types */
	NKI_DGE_NONE	= 3,	/* the host, when the program is loaded */
};

/* nki.isa.matmul_perf_mode */
enum nki_perf_mode {
	NKI_PERF_NONE		= 0,
	NKI_PERF_DOUBLE_ROW	= 1,	/* fp8, K = 256, from Trn2 on */
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

/*
 * Programs for the two physical cores of a logical one (LNC=2), from Trn2 on.
 *
 *	struct nki_kernel *k = nki_kernel_new("both", "trn2");
 *
 *	nki_set_lnc(k, 2);
 *	for (unsigned int core = 0; core < 2; core++)
 *		body(nki_core(k, core));	// nki_program_id() tells them apart
 *	nki_save(k, "both.neff");
 *
 * Each core has its own tiles, registers and streams; tensors of one name are one
 * tensor, which must be asked for with the same kind, type and shape. The two may do
 * different things, and must meet in the same nki_sendrecv() and nki_core_barrier()
 * calls in the same order. What else one of them writes and the other reads has to be
 * ordered by a barrier: the library orders only within a core.
 */

/**
 * nki_set_lnc() - physical cores of the program
 * @cores: 1 or 2; before anything is recorded
 */
void nki_set_lnc(struct nki_kernel *k, unsigned int cores);

/**
 * nki_core() - the part of the program that runs on one core
 * @core: 0 to nki_num_programs() - 1
 *
 * Return: a kernel for all recording calls and questions, owned by @k; core 0 is @k
 * itself. nki_build(), nki_save() and nki_kernel_free() take @k. NULL: no such core
 * (an error of @k).
 */
struct nki_kernel *nki_core(struct nki_kernel *k, unsigned int core);

/* nki.language.program_id(0): 0 or 1; nki.language.num_programs(0): 1 or 2. */
unsigned int nki_program_id(const struct nki_kernel *k);
unsigned int nki_num_programs(const struct nki_kernel *k);

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
 * @indirect: tile of offsets of nki_indirect(), owned by the kernel; NULL: none
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
	const struct nki_view *indirect;
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
 * nki_indirect(k, v, index, num)	tiles, Trn3 (tensor indirection): element i of each
 *					partition is at the offset, in elements, that
 *					index[i mod G, i / G] gives, for each group of G
 *					partitions (32 on the tensor engine, else 16). num 0:
 *					all that the index has
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
#define nki_indirect(k, v, index, num) nki_indirect_(k, NKI_LOC(nki_indirect), v, index, num)

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
/* Registers and loops							    */

/*
 * struct nki_reg nki_register_alloc(k)			a new register, undefined
 * nki_register_move(k, reg, value)			nki_i32() or nki_regval()
 * nki_register_alu(k, reg, op, a, b)			reg = a op b, 32-bit integers
 * nki_register_load(k, reg, view)			one 32-bit element of SBUF or HBM
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

/*
 * The same loop with its body recorded @n times, so that tiles can take turns; hi - lo
 * must be a multiple of n * step:
 *
 *	nki_for_unrolled(k, i, 0, 64, 1, 2) {
 *		struct nki_view x = nki_ring_next(&ring);	// one tile for each of the two
 *		nki_dma_copy(k, x, nki_dyn(k, nki_slice(k, xs, 0, 0, 1), 0, i));
 *		...
 *	}
 */
#define nki_for_unrolled(k, i, lo, hi, step, n) \
	for (struct nki_unroll i##_unroll_ = nki_unroll_begin_(k, NKI_LOC(nki_for_unrolled), lo, hi, \
							       step, n); \
	     i##_unroll_.base.id; i##_unroll_ = nki_unroll_end_(k, NKI_LOC(nki_for_unrolled), i##_unroll_)) \
		for (struct nki_reg i = nki_unroll_step_(k, NKI_LOC(nki_for_unrolled), &i##_unroll_); \
		     i.id; i = nki_unroll_step_(k, NKI_LOC(nki_for_unrolled), &i##_unroll_))

/* State of nki_for_unrolled(). */
struct nki_unroll {
	struct nki_reg base;
	int32_t step;
	unsigned int n, next;
};

/*
 * while the register is not zero (nki.language.while_loop): it is tested before each
 * pass, and the body must change it:
 *
 *	nki_register_load(k, more, flag);
 *	nki_while(k, more) {
 *		...
 *		nki_register_load(k, more, flag);
 *	}
 *
 * With a word of HBM that another core or the host writes this is a poll.
 */
#define nki_while(k, reg) \
	for (bool nki_again_ = nki_while_begin_(k, NKI_LOC(nki_while), reg); nki_again_; \
	     nki_again_ = nki_while_end_(k, NKI_LOC(nki_while)))

#define NKI_RING_MAX 8

/**
 * struct nki_ring - tiles that take turns (rotating, double buffering)
 * @n: how many
 * @next: whose turn it is
 * @tile: all of the same type and shape
 */
struct nki_ring {
	unsigned int n, next;
	struct nki_view tile[NKI_RING_MAX];
};

/*
 * struct nki_ring nki_ring_sbuf(k, n, dtype, partitions, dim...)
 * struct nki_ring nki_ring_psum(k, n, dtype, partitions, dim...)
 * struct nki_view nki_ring_next(&ring)		the next tile
 * nki_ring_free(k, ring)			nki_free() of all of them
 */
#define nki_ring_sbuf(k, n, dtype, ...) \
	nki_ring_(k, NKI_LOC(nki_ring_sbuf), n, NEURON_SPACE_SBUF, dtype, NKI_DIMS_(__VA_ARGS__))
#define nki_ring_psum(k, n, dtype, ...) \
	nki_ring_(k, NKI_LOC(nki_ring_psum), n, NEURON_SPACE_PSUM, dtype, NKI_DIMS_(__VA_ARGS__))
#define nki_ring_free(k, ring) nki_ring_free_(k, NKI_LOC(nki_ring_free), ring)

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

struct nki_engine_args;

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
struct nki_view nki_indirect_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			      struct nki_view index, uint32_t num);

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
struct nki_unroll nki_unroll_begin_(struct nki_kernel *k, struct nki_loc loc, int32_t lo, int32_t hi,
				    int32_t step, unsigned int n);
struct nki_reg nki_unroll_step_(struct nki_kernel *k, struct nki_loc loc, struct nki_unroll *u);
struct nki_unroll nki_unroll_end_(struct nki_kernel *k, struct nki_loc loc, struct nki_unroll u);
bool nki_while_begin_(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg);
bool nki_while_end_(struct nki_kernel *k, struct nki_loc loc);
struct nki_ring nki_ring_(struct nki_kernel *k, struct nki_loc loc, unsigned int n,
			  enum neuron_space space, enum nki_dtype dtype, const uint32_t *num,
			  size_t dims);
struct nki_view nki_ring_next(struct nki_ring *ring);
void nki_ring_free_(struct nki_kernel *k, struct nki_loc loc, struct nki_ring ring);

#include "nki_insn.h"

#endif /* NKI_H */
