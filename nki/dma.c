// SPDX-License-Identifier: MIT
/* DMA: copies, transposes and sums between HBM and SBUF. */
#include <string.h>

#include "rules.h"

#define AUX_PRIORITY	8
#define AUX_DGE		16

/* Queues by engine and direction, so that loads do not stand behind stores. */
enum { DMA_LOAD, DMA_STORE, DMA_LOCAL, DMA_HBM, DMA_ROLES };

static unsigned int role(struct nki_view dst, struct nki_view src)
{
	bool to_hbm = dst.buf->space == NEURON_SPACE_HBM, from_hbm = src.buf->space == NEURON_SPACE_HBM;

	if (to_hbm)
		return from_hbm ? DMA_HBM : DMA_STORE;
	return from_hbm ? DMA_LOAD : DMA_LOCAL;
}

static int choose_queue(struct nki_kernel *k, struct nki_loc loc, unsigned int engine,
			unsigned int wanted, unsigned int dma_role)
{
	unsigned int queue;

	if (wanted > NEURON_DMA_QUEUES) {
		nki_fail(k, loc, "queue %u; allowed: 1 to %d, 0 for the library's choice", wanted,
			 NEURON_DMA_QUEUES);
		return -1;
	}
	if (wanted)
		queue = wanted - 1;
	else
		queue = DMA_ROLES * (engine == NEURON_ENGINE_SP ? 0 : engine == NEURON_ENGINE_ACT ? 1 : 2) +
			dma_role;
	if (k->queue_owner[queue] && k->queue_owner[queue] != engine) {
		nki_fail(k, loc, "queue %u is used by another engine already; allowed: one engine for each queue",
			 queue + 1);
		return -1;
	}
	k->queue_owner[queue] = engine;
	return queue;
}

static uint64_t elements(struct nki_view v)
{
	uint64_t n = 1;

	for (unsigned int d = 0; d < v.dims; d++)
		n *= v.num[d];
	return n;
}

/* @exact: dimensions stay as they are, for a transpose */
static bool put_hbm_dims(struct nki_kernel *k, struct nki_loc loc, const char *what,
			 struct nki_view v, bool exact, struct neuron_dma_operand *op)
{
	unsigned int size = nki_dtype_size(v.dtype), count = 0;

	for (unsigned int d = v.dims; d-- > 0;) {
		bool dynamic = v.count_reg.id && v.count_dim == d;
		bool fixed = dynamic || exact || (v.index && d == 0);
		bool after_fixed = count && op->count_reg != NEURON_REG_NONE && op->count_dim == count - 1;
		int64_t step = v.step[d] * size;

		if (v.num[d] == 1 && !fixed)
			continue;
		if (count && !fixed && !after_fixed &&
		    step == (int64_t)le64toh(op->stride[count - 1]) * le32toh(op->count[count - 1]) &&
		    (uint64_t)le32toh(op->count[count - 1]) * v.num[d] <= UINT32_MAX) {
			op->count[count - 1] = htole32(le32toh(op->count[count - 1]) * v.num[d]);
			continue;
		}
		if (count == NEURON_DMA_DIMS) {
			nki_fail(k, loc, "%s: more than %d dimensions that cannot be merged", what,
				 NEURON_DMA_DIMS);
			return false;
		}
		if (dynamic) {
			op->count_reg = v.count_reg.id - 1;
			op->count_dim = count;
		}
		if (v.index && d == 0)
			op->index_dim = htole32(count);
		op->count[count] = htole32(v.num[d]);
		op->stride[count++] = htole64(step);
	}
	if (!count) {
		op->count[0] = htole32(1);
		op->stride[0] = htole64(size);
		count = 1;
	}
	op->dims = count;
	return true;
}

static bool put_index(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		      struct nki_view v, struct neuron_dma_operand *op)
{
	if (!v.index)
		return true;
	op->row_bound = htole64(v.buf->num[0]);
	return nki_live(k, loc, "the index", *v.index) &&
	       nki_put_ap(k, loc, "the index", *v.index, 0, &op->index, NULL, true) &&
	       nki_add_access(k, insn, *v.index, false);
}

static bool hbm_range_ok(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v)
{
	struct nki_access a;

	nki_view_access(v, false, &a);
	if (v.index || (a.lo >= 0 && a.hi <= (int64_t)v.buf->bytes))
		return true;
	nki_fail(k, loc, "%s reaches bytes %lld to %lld of tensor \"%s\" of %llu bytes", what,
		 (long long)a.lo, (long long)a.hi, v.buf->name, (unsigned long long)v.buf->bytes);
	return false;
}

static bool put_hbm(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn, const char *what,
		    struct nki_view v, bool exact, struct neuron_dma_operand *op)
{
	op->arg = htole16(v.buf->arg);
	op->offset = htole64(v.offset);
	if (v.reg.id) {
		op->offset_reg = v.reg.id - 1;
		op->offset_scale = htole64(v.reg_scale);
		insn->regs |= 1ull << (v.reg.id - 1);
	}
	if (v.count_reg.id)
		insn->regs |= 1ull << (v.count_reg.id - 1);
	return hbm_range_ok(k, loc, what, v) && put_hbm_dims(k, loc, what, v, exact, op) &&
	       put_index(k, loc, insn, v, op);
}

/* One hardware dimension for each of the view's free ones. */
static bool exact_ap(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
		     struct neuron_ap *ap)
{
	unsigned int dims = v.dims - 1;

	for (unsigned int d = 0; d < dims; d++) {
		unsigned int from = v.dims - 1 - d;

		if (v.num[from] > UINT16_MAX || v.step[from] > INT16_MAX || v.step[from] < INT16_MIN) {
			nki_fail(k, loc, "%s: dimension %u does not fit an access pattern", what, from);
			return false;
		}
		ap->num[d] = htole16(v.num[from]);
		ap->step[d] = htole16(v.step[from]);
	}
	ap->dims = dims;
	return true;
}

/*
 * Operand @word of the transfer (0: dst), whose access pattern in SBUF is @ap; NULL:
 * that of the first word, by number.
 */
static bool put_operand(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
			unsigned int word, const char *what, struct nki_view v, bool exact)
{
	struct neuron_dma_operand *op = (struct neuron_dma_operand *)insn->more + word;
	bool own_ap = word && insn->w.opcode == NEURON_OP_DMA_COMPUTE;

	if (nki_packed(v.dtype))	/* same bytes; types were compared */
		v.dtype = nki_dtype_size(v.dtype) == 2 ? NKI_UINT16 : NKI_UINT32;
	op->space = v.buf->space;
	op->dtype = v.dtype;
	op->offset_reg = NEURON_REG_NONE;
	op->count_reg = NEURON_REG_NONE;
	op->index.offset_reg = NEURON_REG_NONE;
	op->index.count_reg = NEURON_REG_NONE;
	switch (v.buf->space) {
	case NEURON_SPACE_HBM:
		return put_hbm(k, loc, insn, what, v, exact, op) && nki_add_access(k, insn, v, !word);
	case NEURON_SPACE_SBUF:
		break;
	default:
		nki_fail(k, loc, "%s is in PSUM; allowed: HBM, SBUF (nki_tensor_copy first)", what);
		return false;
	}
	if (own_ap)
		return nki_put_ap(k, loc, what, v, 0, &op->index, NULL, true) &&
		       nki_put_fix(k, loc, insn, v, &op->index.offset_reg) &&
		       nki_add_access(k, insn, v, false);
	return nki_put_view(k, loc, insn, word, what, v, 0) &&
	       (!exact || exact_ap(k, loc, what, v, &insn->w.ap[word]));
}

/* ------------------------------------------------------------------------ */
/* Who starts it, and how						    */

static bool writable(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst)
{
	if (dst.buf->space != NEURON_SPACE_HBM || dst.buf->kind == NKI_TENSOR_OUTPUT ||
	    dst.buf->kind == NKI_TENSOR_SCRATCH)
		return true;
	nki_fail(k, loc, "tensor \"%s\" is read-only", dst.buf->name);
	return false;
}

static bool same_elements(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			  struct nki_view src)
{
	if (elements(dst) != elements(src)) {
		nki_fail(k, loc, "dst has %llu elements, src %llu; they must be equal",
			 (unsigned long long)elements(dst), (unsigned long long)elements(src));
		return false;
	}
	if (dst.dtype == src.dtype || (!nki_packed(dst.dtype) && !nki_packed(src.dtype)))
		return true;
	nki_fail(k, loc, "dst is %s, src %s; packed MX types are only copied", nki_dtype_text(dst.dtype),
		 nki_dtype_text(src.dtype));
	return false;
}

static bool engine_ok(struct nki_kernel *k, struct nki_loc loc, unsigned int engine)
{
	if (engine == NEURON_ENGINE_SP || engine == NEURON_ENGINE_ACT || engine == NEURON_ENGINE_POOL)
		return true;
	nki_fail(k, loc, "allowed engines for DMA: sync, scalar, gpsimd");
	return false;
}

/* What each way to write descriptors can do. */
static bool dge_ok(struct nki_kernel *k, struct nki_loc loc, const struct nki_dma_args *args,
		   unsigned int engine, bool indexed, bool same_types)
{
	switch (args->dge_mode) {
	case NKI_DGE_UNKNOWN:
		return true;
	case NKI_DGE_SWDGE:
		if (engine == NEURON_ENGINE_POOL)
			return true;
		nki_fail(k, loc, "swdge on another engine; allowed: gpsimd, which writes the descriptors");
		return false;
	case NKI_DGE_HWDGE:
		if (!nki_generation_ok(k, loc, 3))
			return false;
		if (engine != NEURON_ENGINE_POOL && !indexed && same_types)
			return true;
		nki_fail(k, loc, "hwdge: allowed engines sync, scalar; dst and src of one type; no gather or scatter");
		return false;
	case NKI_DGE_NONE:
		if (!indexed && !args->priority)
			return true;
		nki_fail(k, loc, "dge_mode none with gather, scatter or priority; allowed: neither");
		return false;
	}
	nki_fail(k, loc, "dge_mode %d; allowed: unknown, swdge, hwdge, none", args->dge_mode);
	return false;
}

static bool priority_ok(struct nki_kernel *k, struct nki_loc loc, unsigned int priority)
{
	if (priority <= 3 && (!priority || k->arch->nc_version >= 4))
		return true;
	nki_fail(k, loc, "priority %u; allowed: 0, on Trn3 0 to 3", priority);
	return false;
}

/* A DMA instruction of @words words on its queue; NULL after an error. */
static struct nki_insn *begin_dma(struct nki_kernel *k, struct nki_loc loc, unsigned int opcode,
				  struct nki_view dst, struct nki_view src, unsigned int words,
				  const struct nki_dma_args *args)
{
	bool indexed = dst.index || src.index, swdge = indexed || args->dge_mode == NKI_DGE_SWDGE;
	unsigned int engine = args->engine ? (unsigned int)args->engine :
			      swdge ? NEURON_ENGINE_POOL : NEURON_ENGINE_SP;
	struct nki_insn *insn;
	int queue;

	if (!engine_ok(k, loc, engine) || !priority_ok(k, loc, args->priority) ||
	    !dge_ok(k, loc, args, engine, indexed, dst.dtype == src.dtype) || !writable(k, loc, dst))
		return NULL;
	insn = nki_begin(k, loc, opcode, (enum nki_engine)engine, 0);
	queue = insn ? choose_queue(k, loc, engine, args->queue, role(dst, src)) : -1;
	if (queue < 0 || !nki_more_words(k, insn, words))
		return NULL;
	insn->w.aux = htole32(queue | args->priority << AUX_PRIORITY | args->dge_mode << AUX_DGE);
	insn->point.queue = queue;
	if (args->oob_mode == NKI_OOB_SKIP)
		insn->w.flags = htole16(NEURON_FLAG_OOB_SKIP);
	return insn;
}

void nki_dma_copy_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		   struct nki_view src, const struct nki_dma_args *args)
{
	struct nki_insn *insn;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "src", src) ||
	    !same_elements(k, loc, dst, src))
		return;
	insn = begin_dma(k, loc, NEURON_OP_DMA_COPY, dst, src, 3, args);
	if (!insn || !put_operand(k, loc, insn, 0, "dst", dst, false) ||
	    !put_operand(k, loc, insn, 1, "src", src, false))
		return;
	if (args->accumulate) {
		insn->w.op[0] = NEURON_ALU_ADD;
		insn->w.flags |= htole16(NEURON_FLAG_ACCUMULATE);
		nki_add_access(k, insn, dst, false);
	}
	/* Rows that are skipped keep what they have: bytes that must be there. */
	if (args->oob_mode == NKI_OOB_SKIP && !args->accumulate)
		nki_add_access(k, insn, dst, false);
	nki_emit(k, insn);
}

/* ------------------------------------------------------------------------ */
/* dma_transpose							    */

static bool transpose_shape_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			       struct nki_view src)
{
	static const unsigned int axes[3][4] = { { 1, 0 }, { 2, 1, 0 }, { 3, 1, 2, 0 } };
	bool ok = src.dims >= 2 && src.dims <= 4 && dst.dims == src.dims;

	for (unsigned int d = 0; ok && d < dst.dims; d++)
		ok = dst.num[d] == src.num[axes[src.dims - 2][d]];
	if (!ok)
		nki_fail(k, loc, "src has %u dimensions, dst %u, or dst not their sizes; allowed: axes (1, 0), (2, 1, 0), (3, 1, 2, 0)",
			 src.dims, dst.dims);
	return ok;
}

static bool transpose_indexed_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view src)
{
	struct nki_view i = *src.index;
	uint32_t columns = nki_free_elements(i);

	if (!nki_generation_ok(k, loc, 3))
		return false;
	if (nki_dtype_size(src.dtype) != 2 || src.num[src.dims - 1] > 128 || src.num[0] % 16 ||
	    (src.dims == 4 && src.num[1] != 1 && src.num[2] != 1)) {
		nki_fail(k, loc, "src of %u rows, %u last, of %s; allowed with an index: 2-byte types, rows a multiple of 16, last at most 128, in 4 dimensions one of the middle ones 1",
			 src.num[0], src.num[src.dims - 1], nki_dtype_text(src.dtype));
		return false;
	}
	if (i.dtype != NKI_UINT32 || i.num[0] % 16 || (columns > 1 && i.num[0] != 128)) {
		nki_fail(k, loc, "index of %u x %u, %s; allowed: uint32, 16 to 128 rows in steps of 16, with more than one column 128",
			 i.num[0], columns, nki_dtype_text(i.dtype));
		return false;
	}
	return true;
}

static bool transpose_hwdge_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view src)
{
	uint32_t first = src.num[0];
	bool ok = nki_dtype_size(src.dtype) == 2 && src.num[src.dims - 1] <= 128;

	if (src.dims == 2)
		ok = ok && first == 16;
	else
		ok = ok && first <= 16 && !(first & (first - 1)) && first * src.num[src.dims - 2] % 16 == 0;
	if (!ok)
		nki_fail(k, loc, "src of %u first, %u last, of %s; allowed with hwdge: 2-byte types, last at most 128, first 16 (2 dimensions) or 1, 2, 4, 8, 16 with first times last but one a multiple of 16",
			 first, src.num[src.dims - 1], nki_dtype_text(src.dtype));
	return ok;
}

void nki_dma_transpose_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view src, const struct nki_dma_args *args)
{
	struct nki_insn *insn;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "src", src) ||
	    !nki_same_type(k, loc, "dst", dst, "src", src) || !transpose_shape_ok(k, loc, dst, src))
		return;
	if (nki_dtype_size(src.dtype) != 2 && nki_dtype_size(src.dtype) != 4) {
		nki_fail(k, loc, "src is %s; allowed: types of 2 or 4 bytes", nki_dtype_text(src.dtype));
		return;
	}
	if ((src.index ? args->dge_mode == NKI_DGE_HWDGE || args->dge_mode == NKI_DGE_NONE :
			 args->dge_mode == NKI_DGE_SWDGE) || args->accumulate) {
		nki_fail(k, loc, "dge_mode allowed: unknown, %s; no accumulate", src.index ? "swdge" : "hwdge, none");
		return;
	}
	if ((src.index && !transpose_indexed_ok(k, loc, src)) ||
	    (args->dge_mode == NKI_DGE_HWDGE && !transpose_hwdge_ok(k, loc, src)))
		return;
	insn = begin_dma(k, loc, NEURON_OP_DMA_TRANSPOSE, dst, src, 3, args);
	if (!insn || !put_operand(k, loc, insn, 0, "dst", dst, true) ||
	    !put_operand(k, loc, insn, 1, "src", src, true))
		return;
	insn->w.op[0] = src.dims - 2;
	nki_emit(k, insn);
}

/* ------------------------------------------------------------------------ */
/* dma_compute								    */

static bool same_view(struct nki_view a, struct nki_view b)
{
	return a.buf == b.buf && a.offset == b.offset && a.part == b.part && a.dims == b.dims &&
	       !memcmp(a.num, b.num, a.dims * sizeof(a.num[0])) && a.index == b.index;
}

/* dst += the other one, rows by index: a read-modify-write. */
static void compute_indexed(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    const struct nki_view *srcs, unsigned int count,
			    const struct nki_dma_compute_args *args)
{
	struct nki_dma_args copy = { .engine = args->engine, .queue = args->queue,
				     .oob_mode = args->oob_mode, .dge_mode = NKI_DGE_SWDGE,
				     .accumulate = true };

	if (count != 2 || (!same_view(dst, srcs[0]) && !same_view(dst, srcs[1]))) {
		nki_fail(k, loc, "%u sources with an index; allowed: two, one of them dst itself", count);
		return;
	}
	if (!copy.engine)
		copy.engine = NKI_ENGINE_GPSIMD;
	nki_dma_copy_(k, loc, dst, srcs[same_view(dst, srcs[0])], &copy);
}

static bool compute_args_ok(struct nki_kernel *k, struct nki_loc loc, unsigned int count,
			    enum nki_op reduce_op, const struct nki_dma_compute_args *args)
{
	if (count < 1 || count > 16) {
		nki_fail(k, loc, "%u sources; allowed: 1 to 16", count);
		return false;
	}
	if (reduce_op != NKI_ADD || args->duplicate_indices) {
		nki_fail(k, loc, "reduce_op must be NKI_ADD, and indices unique");
		return false;
	}
	for (unsigned int i = 0; args->scales && i < count; i++) {
		if (args->scales[i] != 1.0f) {
			nki_fail(k, loc, "scale %u is %g; allowed: 1", i, (double)args->scales[i]);
			return false;
		}
	}
	return true;
}

void nki_dma_compute_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		      const struct nki_view *srcs, unsigned int count, enum nki_op reduce_op,
		      const struct nki_dma_compute_args *args)
{
	struct nki_dma_args dma = { .engine = args->engine, .queue = args->queue,
				    .oob_mode = args->oob_mode };
	struct nki_insn *insn;
	bool indexed;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !compute_args_ok(k, loc, count, reduce_op, args))
		return;
	indexed = dst.index;
	for (unsigned int i = 0; i < count; i++) {
		if (!nki_live(k, loc, "a source", srcs[i]) || !same_elements(k, loc, dst, srcs[i]))
			return;
		if (nki_packed(srcs[i].dtype)) {
			nki_fail(k, loc, "source %u is %s, a packed type, which has no sum", i,
				 nki_dtype_text(srcs[i].dtype));
			return;
		}
		indexed |= srcs[i].index != NULL;
	}
	if (indexed) {
		compute_indexed(k, loc, dst, srcs, count, args);
		return;
	}
	insn = begin_dma(k, loc, NEURON_OP_DMA_COMPUTE, dst, srcs[0], count + 2, &dma);
	if (!insn || !put_operand(k, loc, insn, 0, "dst", dst, false))
		return;
	for (unsigned int i = 0; i < count; i++) {
		if (!put_operand(k, loc, insn, i + 1, "a source", srcs[i], false))
			return;
	}
	insn->w.op[0] = NKI_ADD;
	nki_emit(k, insn);
}

/* ------------------------------------------------------------------------ */
/* One word of HBM, by a sequencer; and the other core's SBUF		    */

/* The operand of READ and WRITE. */
bool nki_put_hbm_word(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		      struct nki_view v, bool write)
{
	struct neuron_dma_operand *op = (struct neuron_dma_operand *)nki_more_words(k, insn, 2);

	if (!op || (write && !writable(k, loc, v)))
		return false;
	op->space = NEURON_SPACE_HBM;
	op->dtype = v.dtype;
	op->offset_reg = NEURON_REG_NONE;
	op->count_reg = NEURON_REG_NONE;
	op->index.offset_reg = NEURON_REG_NONE;
	op->index.count_reg = NEURON_REG_NONE;
	return put_hbm(k, loc, insn, "the word", v, false, op) && nki_add_access(k, insn, v, write);
}

/* A copy to @dst from the other core's SBUF; its source is filled in later. */
struct nki_insn *nki_begin_fetch(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				 unsigned int engine)
{
	struct nki_dma_args args = { .engine = (enum nki_engine)engine };
	struct nki_insn *insn = begin_dma(k, loc, NEURON_OP_DMA_COPY, dst, dst, 3, &args);

	if (!insn || !put_operand(k, loc, insn, 0, "dst", dst, false))
		return NULL;
	insn->point.queue = NKI_QUEUE_NONE;	/* complete when the engine has waited for it */
	return insn;
}
