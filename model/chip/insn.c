// SPDX-License-Identifier: MIT
/*
 * Operands: from access patterns to checked addresses, and rows of elements in and
 * out. Then the table of what each instruction does.
 */
#include <endian.h>
#include <string.h>

#include "exec_state.h"

/* --- access patterns ------------------------------------------------------------------ */

/* Published rule for the first partition. */
static unsigned int part_align(unsigned int parts)
{
	return parts <= 32 ? 32 : parts <= 64 ? 64 : 128;
}

static bool ap_parts(struct stream *s, const struct neuron_ap *ap, unsigned int index)
{
	unsigned int align = part_align(ap->part_count);

	if (!ap->part_count || ap->part_count > NEURON_PARTITIONS)
		return exec_bad(s, index, ap->part_count, NEURON_PARTITIONS);
	/* The scales of a quadrant lie in four of its partitions. */
	if (index < 3 && s->cur->row->types[index] == 'e')
		align = 4;
	/* DMA and the sequencer reach any partition. */
	if (s->cur->row->cost == NEURON_COST_DMA || s->cur->row->cost == NEURON_COST_REGMEM)
		align = 1;
	if (ap->part_start % align ||
	    ap->part_start + ap->part_count > NEURON_PARTITIONS) {
		struct neuron_fault_record *f = exec_fault(s->x, s, NEURON_FAULT_BAD_OPERAND);

		f->space = ap->space;
		f->partition = ap->part_start;
		f->index = htole32(index);
		f->size = htole64(ap->part_count);
		f->value = htole64(align);
		return false;
	}
	return true;
}

/* Counts by dimension, one of which a register may give. */
static bool ap_counts(struct stream *s, const struct neuron_ap *ap, unsigned int index,
		      struct opnd *op)
{
	uint32_t limit = ap->space == NEURON_SPACE_PSUM ? PSUM_ELEMENTS : SBUF_ELEMENTS;
	/* Trn3 fills all of PSUM with 8192 16-bit results. */
	bool wide = s->x->job->nc_version >= 4 && op->bytes == 2;
	uint64_t n = 1;
	unsigned int i;

	if (ap->space == NEURON_SPACE_PSUM && wide)
		limit = 2 * PSUM_ELEMENTS;
	if (!ap->dims || ap->dims > NEURON_AP_DIMS)
		return exec_bad(s, index, ap->dims, NEURON_AP_DIMS);
	op->dims = ap->dims;
	for (i = 0; i < NEURON_AP_DIMS; i++) {
		op->num[i] = i < ap->dims ? ap->num[i] : 1;
		op->step[i] = i < ap->dims ? (int16_t)ap->step[i] * op->bytes : 0;
	}
	for (i = 0; i < ap->dims; i++)
		if (!op->num[i])
			return exec_bad(s, index, 0, limit);
	if (ap->count_reg != NEURON_REG_NONE) {
		if (ap->count_reg >= NEURON_REGS || ap->count_dim >= ap->dims)
			return exec_bad(s, index, ap->count_reg, NEURON_REGS - 1);
		if (!seq_reg_known(s, ap->count_reg))
			return false;
		op->num[ap->count_dim] = s->reg[ap->count_reg];
	}
	/* Each factor is below 2^32 and the product is checked as it grows. */
	for (i = 0; i < ap->dims; i++) {
		n *= op->num[i];
		if (n > limit)
			return exec_bad(s, index, n, limit);
	}
	op->n = n;
	return true;
}

static bool ap_range(struct stream *s, const struct neuron_ap *ap, unsigned int index,
		     struct opnd *op, const struct core_mem *mem)
{
	int64_t lo = ap->offset, hi;
	unsigned int i;

	if (ap->offset_reg != NEURON_REG_NONE) {
		if (ap->offset_reg >= NEURON_REGS)
			return exec_bad(s, index, ap->offset_reg, NEURON_REGS - 1);
		lo += (int32_t)s->reg[ap->offset_reg];
	}
	op->base = mem->base + lo;
	hi = lo;
	if (!op->n) {
		op->lo = op->hi = 0;
		return true;
	}
	/* 65536 elements of steps below 2^18: no overflow in 64 bits. */
	for (i = 0; i < op->dims; i++) {
		int64_t span = (int64_t)(op->num[i] - 1) * op->step[i];

		if (span < 0)
			lo += span;
		else
			hi += span;
	}
	hi += op->bytes;
	if (lo < 0 || hi > mem->bytes) {
		struct neuron_fault_record *f = exec_fault(s->x, s, NEURON_FAULT_BAD_OPERAND);

		f->space = op->space;
		f->partition = op->part;
		f->index = htole32(index);
		f->addr = htole64(lo);
		f->size = htole64(hi - lo);
		f->value = htole64(mem->bytes);
		return false;
	}
	op->lo = lo;
	op->hi = hi;
	return true;
}

/* One run in memory order without gaps? Dimensions of one element do not matter. */
static bool ap_dense(const struct opnd *op)
{
	int64_t expect = op->bytes;
	unsigned int i;

	for (i = 0; i < op->dims; i++) {
		if (op->num[i] == 1)
			continue;
		if (op->step[i] != expect)
			return false;
		expect *= op->num[i];
	}
	return true;
}

bool opnd_resolve(struct stream *s, const struct neuron_ap *ap, unsigned int index,
		  unsigned int spaces, struct opnd *op)
{
	struct chip_core *core = stream_core(s)->core;
	struct core_mem *mem;

	op->space = ap->space;
	op->index = NULL;
	if (ap->space != NEURON_SPACE_SBUF && ap->space != NEURON_SPACE_PSUM)
		return exec_bad(s, index, ap->space, spaces);
	if (!(spaces & SPACE_BIT(ap->space)))
		return exec_bad(s, index, ap->space, spaces);
	if (!num_dtype(ap->dtype)->bytes)
		return exec_bad(s, index, ap->dtype, NEURON_DTYPE_FLOAT4_E2M1FN_X4);
	mem = &core->mem[ap->space];
	op->dtype = ap->dtype;
	op->bytes = num_dtype(ap->dtype)->bytes;
	op->part = ap->part_start;
	op->parts = ap->part_count;
	op->stride = mem->stride;
	if (!ap_parts(s, ap, index) || !ap_counts(s, ap, index, op) ||
	    !ap_range(s, ap, index, op, mem))
		return false;
	op->base += (size_t)op->part * mem->stride;
	op->dense = ap_dense(op);
	if (op->n)
		core_mem_validate(core, mem, op->lo, op->hi);
	return true;
}

/* --- scalars -------------------------------------------------------------------------- */

uint32_t insn_imm(const struct stream *s, const struct neuron_imm *imm)
{
	return imm->kind == NEURON_IMM_REG ? s->reg[imm->value % NEURON_REGS] : imm->value;
}

static bool scalar_vector(struct stream *s, const struct neuron_imm *imm, unsigned int index,
			  unsigned int parts, struct scalar *out)
{
	struct neuron_ap ap = {
		.space = imm->space, .dtype = imm->dtype, .part_start = imm->part,
		.part_count = parts, .offset = imm->value, .offset_reg = NEURON_REG_NONE,
		.count_reg = NEURON_REG_NONE, .dims = 1, .num = { 1 }, .step = { 1 },
	};
	unsigned int spaces = SPACE_BIT(NEURON_SPACE_SBUF) | SPACE_BIT(NEURON_SPACE_PSUM);

	if (s->engine == NEURON_ENGINE_POOL)
		spaces = SPACE_BIT(NEURON_SPACE_SBUF);
	out->vector = true;
	if (num_packed(imm->dtype))
		return exec_bad(s, index, imm->dtype, NEURON_DTYPE_FLOAT8_E4M3FN);
	return opnd_resolve(s, &ap, index, spaces, &out->vec);
}

static bool scalar_resolve(struct stream *s, const struct neuron_imm *imm, unsigned int index,
			   unsigned int parts, struct scalar *out)
{
	uint32_t bits;

	out->present = imm->kind != NEURON_IMM_NONE;
	out->vector = false;
	out->bits = 0;
	out->value = 0.0f;
	out->vec.space = NEURON_SPACE_NONE;
	switch (imm->kind) {
	case NEURON_IMM_NONE:
		return true;
	case NEURON_IMM_F32:
		out->bits = imm->value;
		memcpy(&out->value, &imm->value, 4);
		return true;
	case NEURON_IMM_I32:
		out->bits = imm->value;
		out->value = (int32_t)imm->value;
		return true;
	case NEURON_IMM_REG:
		if (imm->value >= NEURON_REGS)
			return exec_bad(s, index, imm->value, NEURON_REGS - 1);
		if (!num_dtype(imm->dtype)->bytes || num_packed(imm->dtype))
			return exec_bad(s, index, imm->dtype, NEURON_DTYPE_FLOAT8_E4M3FN);
		bits = htole32(s->reg[imm->value]);
		out->bits = s->reg[imm->value];
		out->value = num_get(imm->dtype, &bits);
		return true;
	case NEURON_IMM_VEC:
		return scalar_vector(s, imm, index, parts, out);
	}
	return exec_bad(s, index, imm->kind, NEURON_IMM_VEC);
}

float scalar_get(const struct scalar *sc, unsigned int part)
{
	if (sc->vector)
		return num_get(sc->vec.dtype, sc->vec.base + part * sc->vec.stride);
	return sc->value;
}

/* --- rows ----------------------------------------------------------------------------- */

/* Calls for each run of the innermost dimension: address and index of its first element. */
#define FOR_RUNS(op, part, ptr, at)						\
	for (uint32_t i3_ = 0, at = 0; i3_ < (op)->num[3]; i3_++)		\
		for (uint32_t i2_ = 0; i2_ < (op)->num[2]; i2_++)		\
			for (uint32_t i1_ = 0; i1_ < (op)->num[1]; i1_++, at += (op)->num[0]) \
				for (uint8_t *ptr = (op)->base + (size_t)(part) * (op)->stride + \
					(int64_t)i3_ * (op)->step[3] + (int64_t)i2_ * (op)->step[2] + \
					(int64_t)i1_ * (op)->step[1]; ptr; ptr = NULL)

#define CHUNK	256	/* elements of an indirect row that are moved at a time */

static void indirect_load(const struct exec *x, const struct opnd *op, unsigned int part, float *dst)
{
	uint8_t buf[CHUNK * 4];
	uint32_t at, i, n;

	for (at = 0; at < op->n; at += n) {
		n = op->n - at < CHUNK ? op->n - at : CHUNK;
		for (i = 0; i < n; i++)
			memcpy(buf + i * op->bytes, indirect_at(op, part, at + i), op->bytes);
		x->num->load(op->dtype, dst + at, buf, op->bytes, n);
	}
}

void row_load(const struct exec *x, const struct opnd *op, unsigned int part, float *dst)
{
	if (op->dense) {
		x->num->load(op->dtype, dst, op->base + part * op->stride, op->bytes, op->n);
		return;
	}
	if (op->index) {
		indirect_load(x, op, part, dst);
		return;
	}
	FOR_RUNS(op, part, src, at)
		x->num->load(op->dtype, dst + at, src, op->step[0], op->num[0]);
}

static void store_run(struct exec *x, const struct opnd *op, uint8_t *dst, ptrdiff_t step,
		      const float *src, uint32_t n)
{
	if (x->stochastic)
		num_store_sr(op->dtype, dst, step, src, n, &x->prng_sr);
	else
		x->num->store(op->dtype, dst, step, src, n);
}

static void indirect_store(struct exec *x, const struct opnd *op, unsigned int part, const float *src)
{
	uint8_t buf[CHUNK * 4];
	uint32_t at, i, n;

	for (at = 0; at < op->n; at += n) {
		n = op->n - at < CHUNK ? op->n - at : CHUNK;
		store_run(x, op, buf, op->bytes, src + at, n);
		for (i = 0; i < n; i++)
			memcpy(indirect_at(op, part, at + i), buf + i * op->bytes, op->bytes);
	}
}

void row_store(struct exec *x, const struct opnd *op, unsigned int part, const float *src)
{
	if (op->dense) {
		uint8_t *dst = op->base + part * op->stride;

		/* In place already, see row_target(): arithmetic left no other NaN. */
		if ((const void *)dst != (const void *)src)
			store_run(x, op, dst, op->bytes, src, op->n);
		return;
	}
	if (op->index) {
		indirect_store(x, op, part, src);
		return;
	}
	FOR_RUNS(op, part, dst, at)
		store_run(x, op, dst, op->step[0], src + at, op->num[0]);
}

static bool row_direct(const struct opnd *op, const uint8_t *row)
{
	return op->dense && op->dtype == NEURON_DTYPE_FLOAT32 && (uintptr_t)row % 4 == 0;
}

/* The row as fp32: where it is, when it is fp32 already, else converted in @buf. */
const float *row_get(const struct exec *x, const struct opnd *op, unsigned int part, float *buf)
{
	const uint8_t *row = op->base + part * op->stride;

	if (row_direct(op, row))
		return (const float *)row;
	row_load(x, op, part, buf);
	return buf;
}

/* Where to compute a result that row_store() then stores. */
float *row_target(const struct stream *s, unsigned int part, float *buf)
{
	const struct opnd *op = &s->op[0];
	uint8_t *row = op->base + part * op->stride;

	return s->direct && row_direct(op, row) ? (float *)row : buf;
}

static uint32_t bits_get(const uint8_t *p, unsigned int bytes)
{
	uint32_t v = 0;

	memcpy(&v, p, bytes);
	return le32toh(v);
}

static void bits_put(uint8_t *p, unsigned int bytes, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, bytes);
}

/* Elements of constant size, so that each copy is one move. */
static void copy_run(uint8_t *dst, ptrdiff_t dstep, const uint8_t *src, ptrdiff_t sstep,
		     unsigned int bytes, uint32_t n)
{
	uint32_t i;

	if (dstep == (ptrdiff_t)bytes && sstep == (ptrdiff_t)bytes) {
		memmove(dst, src, (size_t)n * bytes);
		return;
	}
	for (i = 0; i < n; i++, dst += dstep, src += sstep) {
		switch (bytes) {
		case 1:	*dst = *src; break;
		case 2:	memcpy(dst, src, 2); break;
		default: memcpy(dst, src, 4); break;
		}
	}
}

/* The row's elements, unchanged, one after the other. */
const uint8_t *row_gather(const struct opnd *op, unsigned int part, void *buf)
{
	uint8_t *dst = buf;

	if (op->dense)
		return op->base + part * op->stride;
	if (op->index) {
		for (uint32_t i = 0; i < op->n; i++)
			memcpy(dst + (size_t)i * op->bytes, indirect_at(op, part, i), op->bytes);
		return buf;
	}
	FOR_RUNS(op, part, src, at)
		copy_run(dst + (size_t)at * op->bytes, op->bytes, src, op->step[0], op->bytes,
			 op->num[0]);
	return buf;
}

void row_scatter(const struct opnd *op, unsigned int part, const void *buf)
{
	const uint8_t *src = buf;

	if (op->dense) {
		memmove(op->base + part * op->stride, src, (size_t)op->n * op->bytes);
		return;
	}
	if (op->index) {
		for (uint32_t i = 0; i < op->n; i++)
			memcpy(indirect_at(op, part, i), src + (size_t)i * op->bytes, op->bytes);
		return;
	}
	FOR_RUNS(op, part, dst, at)
		copy_run(dst, op->step[0], src + (size_t)at * op->bytes, op->bytes, op->bytes,
			 op->num[0]);
}

/* Bits of the elements, zero-extended to 32. */
void row_bits_load(const struct opnd *op, unsigned int part, uint32_t *dst)
{
	for (uint32_t i = 0; op->index && i < op->n; i++)
		dst[i] = bits_get(indirect_at(op, part, i), op->bytes);
	if (op->index)
		return;
	FOR_RUNS(op, part, src, at)
		for (uint32_t i = 0; i < op->num[0]; i++)
			dst[at + i] = bits_get(src + (int64_t)i * op->step[0], op->bytes);
}

void row_bits_store(const struct opnd *op, unsigned int part, const uint32_t *src)
{
	for (uint32_t i = 0; op->index && i < op->n; i++)
		bits_put(indirect_at(op, part, i), op->bytes, src[i]);
	if (op->index)
		return;
	FOR_RUNS(op, part, dst, at)
		for (uint32_t i = 0; i < op->num[0]; i++)
			bits_put(dst + (int64_t)i * op->step[0], op->bytes, src[at + i]);
}

/* --- the table ------------------------------------------------------------------------ */

struct insn_ops {
	bool (*prepare)(struct stream *s);
	void (*run)(struct stream *s);
};

static bool reg_prepare(struct stream *s)
{
	const struct neuron_insn *w = &s->cur->w;
	const struct opnd *op = &s->op[w->opcode == NEURON_OP_TENSOR_LOAD ? 1 : 0];

	if (op->parts != 1 || op->n != 1 || op->bytes != 4)
		return exec_bad(s, w->opcode == NEURON_OP_TENSOR_LOAD, op->n * op->parts, 1);
	if (w->opcode == NEURON_OP_TENSOR_LOAD && w->aux >= NEURON_REGS)
		return exec_bad(s, 7, w->aux, NEURON_REGS - 1);
	if (s->imm[0].vector)
		return exec_bad(s, 4, NEURON_IMM_VEC, NEURON_IMM_REG);
	return true;
}

static void tensor_load(struct stream *s)
{
	seq_reg_load(s, s->cur->w.aux, bits_get(s->op[1].base, 4));
}

static void tensor_store(struct stream *s)
{
	bits_put(s->op[0].base, 4, s->imm[0].bits);
}

static const struct insn_ops insn_ops[256] = {
	[NEURON_OP_TENSOR_LOAD] = { reg_prepare, tensor_load },
	[NEURON_OP_TENSOR_STORE] = { reg_prepare, tensor_store },
	[NEURON_OP_LDWEIGHTS] = { pe_prepare, pe_ldweights },
	[NEURON_OP_MATMUL] = { pe_prepare, pe_matmul },
	[NEURON_OP_LDWEIGHTS_MX] = { pe_prepare, pe_ldweights },
	[NEURON_OP_MATMUL_MX] = { pe_prepare, pe_matmul },
	[NEURON_OP_LDWEIGHTS_SPARSE] = { pe_prepare, pe_ldweights },
	[NEURON_OP_MATMUL_SPARSE] = { pe_prepare, pe_matmul },
	[NEURON_OP_QUANTIZE_MX] = { quantize_mx_prepare, quantize_mx_run },
	[NEURON_OP_ACTIVATE] = { act_prepare, act_activate },
	[NEURON_OP_ACT_READ_ACC] = { act_prepare, act_read_acc },
	[NEURON_OP_TENSOR_COPY] = { dve_prepare, dve_run },
	[NEURON_OP_COPY_PREDICATED] = { dve_prepare, dve_run },
	[NEURON_OP_MEMSET] = { dve_prepare, dve_run },
	[NEURON_OP_TENSOR_TENSOR] = { dve_prepare, dve_run },
	[NEURON_OP_TENSOR_SCALAR] = { dve_prepare, dve_run },
	[NEURON_OP_SCALAR_TENSOR_TENSOR] = { dve_prepare, dve_run },
	[NEURON_OP_TENSOR_REDUCE] = { dve_prepare, dve_run },
	[NEURON_OP_RECIPROCAL] = { dve_prepare, dve_run },
	[NEURON_OP_SELECT] = { dve_prepare, dve_run },
	[NEURON_OP_TRANSPOSE32] = { dve_prepare, dve_run },
	[NEURON_OP_IOTA] = { pool_prepare, pool_run },
	[NEURON_OP_AFFINE_SELECT] = { pool_prepare, pool_run },
	[NEURON_OP_DEBUG_PRINT] = { debug_prepare, debug_run },
	[NEURON_OP_TENSOR_SCALAR_REDUCE] = { scalar_reduce_prepare, scalar_reduce_run },
	[NEURON_OP_TENSOR_SCALAR_CUMULATIVE] = { cumulative_prepare, cumulative_run },
	[NEURON_OP_TENSOR_TENSOR_SCAN] = { scan_prepare, scan_run },
	[NEURON_OP_RANGE_SELECT] = { range_select_prepare, range_select_run },
	[NEURON_OP_EXPONENTIAL] = { exponential_prepare, exponential_run },
	[NEURON_OP_DVE_READ_ACC] = { dve_acc_prepare, dve_acc_run },
	[NEURON_OP_BN_STATS] = { bn_stats_prepare, bn_stats_run },
	[NEURON_OP_BN_AGGR] = { bn_aggr_prepare, bn_aggr_run },
	[NEURON_OP_MAX8] = { max8_prepare, max8_run },
	[NEURON_OP_FIND_INDEX8] = { find_index8_prepare, find_index8_run },
	[NEURON_OP_MATCH_REPLACE8] = { match_replace8_prepare, match_replace8_run },
	[NEURON_OP_STREAM_SHUFFLE] = { shuffle_prepare, shuffle_run },
	[NEURON_OP_DROPOUT] = { rng_prepare, rng_run },
	[NEURON_OP_RNG] = { rng_prepare, rng_run },
	[NEURON_OP_SET_RNG_SEED] = { rng_prepare, rng_run },
	[NEURON_OP_RAND_SET_STATE] = { rng_prepare, rng_run },
	[NEURON_OP_RAND_GET_STATE] = { rng_prepare, rng_run },
	[NEURON_OP_RAND2] = { rng_prepare, rng_run },
	[NEURON_OP_PARTITION_REDUCE] = { partition_reduce_prepare, partition_reduce_run },
	[NEURON_OP_N_GATHER] = { n_gather_prepare, n_gather_run },
	[NEURON_OP_LOCAL_GATHER] = { local_gather_prepare, local_gather_run },
	[NEURON_OP_SEQUENCE_BOUNDS] = { sequence_bounds_prepare, sequence_bounds_run },
	[NEURON_OP_NONZERO_WITH_COUNT] = { nonzero_prepare, nonzero_run },
	[NEURON_OP_TOPK] = { topk_prepare, topk_run },
	[NEURON_OP_ACTIVATE2] = { activate2_prepare, activate2_run },
};

/* COPY_PREDICATED's source may be a scalar instead. */
static bool optional(const struct stream *s, unsigned int i)
{
	return (i == 1 && s->cur->w.opcode == NEURON_OP_COPY_PREDICATED) ||
	       (i == 3 && s->cur->w.opcode == NEURON_OP_MATCH_REPLACE8);
}

/* How faults number operands: Documentation/isa/index.rst. */
#define AP_OPERAND(i)	((i) < 3 ? (i) : 13 + (i))
#define IMM_OPERAND(i)	((i) < 2 ? 4 + (i) : 18 + (i))

static const struct neuron_ap *insn_ap(const struct stream *s, unsigned int i)
{
	if (i < 3)
		return &s->cur->w.ap[i];
	return s->cur->ext ? &s->cur->ext->ap[i - 3] : NULL;
}

/* NULL: the instruction has no such place. */
static const struct neuron_imm *insn_scalar(const struct stream *s, unsigned int i)
{
	if (i < 2)
		return &s->cur->w.imm[i];
	/* The mask of a shuffle lies where immediates would. */
	return s->cur->ext && s->cur->row->imms > 2 ? &s->cur->ext->imm[i - 2] : NULL;
}

/* Column types of isa.def; letters that say nothing here are the function's affair. */
static bool opnd_type_ok(struct stream *s, unsigned int i)
{
	const struct opnd *op = &s->op[i];
	const struct num_dtype *t = num_dtype(op->dtype);
	bool ok = true;

	switch (s->cur->row->types[i]) {
	case 'a':
		ok = !num_packed(op->dtype);
		break;
	case 'f':
	case 'p':
		ok = t->is_float && !num_packed(op->dtype) && op->dtype != NEURON_DTYPE_FLOAT8_E8M0FNU;
		break;
	case 'm':
		ok = num_packed(op->dtype);
		break;
	case 'e':
		ok = op->dtype == NEURON_DTYPE_FLOAT8_E8M0FNU || op->dtype == NEURON_DTYPE_UINT8;
		break;
	case 'h':
		ok = op->dtype == NEURON_DTYPE_BFLOAT16 || op->dtype == NEURON_DTYPE_FLOAT16;
		break;
	case 'b':
		ok = op->dtype == NEURON_DTYPE_BFLOAT16;
		break;
	case 'i':
		ok = !t->is_float;
		break;
	case 'd':
		ok = t->bytes == 4 && !num_packed(op->dtype);
		break;
	case 'w':
		ok = op->dtype == NEURON_DTYPE_INT32 || op->dtype == NEURON_DTYPE_UINT32;
		break;
	case 'o':
		ok = op->dtype == NEURON_DTYPE_UINT16 || op->dtype == NEURON_DTYPE_UINT32;
		break;
	case '4':
		ok = op->dtype == NEURON_DTYPE_FLOAT32 || op->dtype == NEURON_DTYPE_INT32 ||
		     op->dtype == NEURON_DTYPE_UINT32;
		break;
	}
	return ok || exec_bad(s, AP_OPERAND(i), op->dtype, NEURON_DTYPE_FLOAT32);
}

static bool apart(const struct opnd *a, const struct opnd *b)
{
	return a->space != b->space || a->hi <= b->lo || b->hi <= a->lo;
}

static bool can_compute_in_place(const struct stream *s)
{
	const struct opnd *d = &s->op[0];
	unsigned int i;

	for (i = 1; i < 3; i++) {
		const struct opnd *op = &s->op[i];

		if (op->space != NEURON_SPACE_NONE && !apart(d, op) &&
		    !(op->base == d->base && op->dense && op->bytes == d->bytes))
			return false;
	}
	for (i = 0; i < 2; i++)
		if (s->imm[i].vector && !apart(d, &s->imm[i].vec))
			return false;
	return true;
}

static bool indirect(const struct stream *s, unsigned int i)
{
	return s->cur->index && i < 3 && s->cur->index->ap[i].space != NEURON_SPACE_NONE;
}

static bool insn_opnd(struct stream *s, const struct neuron_ap *ap, unsigned int i, unsigned int spaces)
{
	if (indirect(s, i))
		return indirect_resolve(s, ap, i, spaces);
	return opnd_resolve(s, ap, AP_OPERAND(i), spaces, &s->op[i]);
}

bool insn_prepare(struct stream *s)
{
	const struct isa_row *row = s->cur->row;
	const struct neuron_insn *w = &s->cur->w;
	const struct insn_ops *ops = &insn_ops[w->opcode];
	unsigned int i, parts = 0, spaces;

	for (i = 0; i < NEURON_INSN_APS; i++) {
		const struct neuron_ap *ap = insn_ap(s, i);

		spaces = row->space[i];
		s->op[i].space = NEURON_SPACE_NONE;
		s->op[i].n = 0;
		if (!ap)
			continue;
		if (!spaces || (optional(s, i) && ap->space == NEURON_SPACE_NONE)) {
			/* Access pattern 2 of an iota is numbers, not memory. */
			if (ap->space != NEURON_SPACE_NONE)
				return exec_bad(s, AP_OPERAND(i), ap->space, NEURON_SPACE_NONE);
			if (indirect(s, i))
				return exec_bad(s, 24 + i, s->cur->index->ap[i].space, NEURON_SPACE_NONE);
			continue;
		}
		/* POOL has no path to PSUM. */
		if (s->engine == NEURON_ENGINE_POOL)
			spaces &= SPACE_BIT(NEURON_SPACE_SBUF);
		if (!insn_opnd(s, ap, i, spaces) || !opnd_type_ok(s, i))
			return false;
		if (!parts || i == 1)
			parts = s->op[i].parts;
	}
	if (row->limit && s->op[row->space[0] ? 0 : 1].n > row->limit)
		return exec_bad(s, row->space[0] ? 0 : 1, s->op[row->space[0] ? 0 : 1].n, row->limit);
	for (i = 0; i < NEURON_INSN_IMMS; i++) {
		const struct neuron_imm *imm = insn_scalar(s, i);

		if (i >= row->imms) {
			s->imm[i].present = s->imm[i].vector = false;
			s->imm[i].vec.space = NEURON_SPACE_NONE;
			if (imm && imm->kind != NEURON_IMM_NONE)
				return exec_bad(s, IMM_OPERAND(i), imm->kind, NEURON_IMM_NONE);
			continue;
		}
		if (!scalar_resolve(s, imm, IMM_OPERAND(i), parts, &s->imm[i]))
			return false;
	}
	s->direct = can_compute_in_place(s);
	return ops->prepare(s);
}

void insn_run(struct stream *s)
{
	const struct opnd *dst = &s->op[0];

	/* A count register of 0: nothing to do. */
	if (s->cur->row->space[0] && !dst->n)
		return;
	insn_ops[s->cur->w.opcode].run(s);
}
