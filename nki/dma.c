// SPDX-License-Identifier: MIT
/* DMA: copies between HBM and SBUF. */
#include <string.h>

#include "priv.h"

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

static bool put_hbm_dims(struct nki_kernel *k, struct nki_loc loc, const char *what,
			 struct nki_view v, struct neuron_dma_operand *op)
{
	unsigned int size = nki_dtype_size(v.dtype), count = 0;

	for (unsigned int d = v.dims; d-- > 0;) {
		bool dynamic = v.count_reg.id && v.count_dim == d;
		bool fixed = dynamic || (v.index && d == 0);
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

static bool put_hbm(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		    unsigned int slot, const char *what, struct nki_view v)
{
	struct neuron_dma_operand *op = &insn->dma[slot];
	struct nki_access a;

	op->arg = htole16(v.buf->arg);
	op->offset = htole64(v.offset);
	if (v.reg.id) {
		op->offset_reg = v.reg.id - 1;
		op->offset_scale = htole64(v.reg_scale);
		insn->regs |= 1ull << (v.reg.id - 1);
	}
	if (v.count_reg.id)
		insn->regs |= 1ull << (v.count_reg.id - 1);
	nki_view_access(v, slot == 0, &a);
	if (!v.index && (a.lo < 0 || a.hi > (int64_t)v.buf->bytes)) {
		nki_fail(k, loc, "%s reaches bytes %lld to %lld of tensor \"%s\" of %llu bytes", what,
			 (long long)a.lo, (long long)a.hi, v.buf->name, (unsigned long long)v.buf->bytes);
		return false;
	}
	if (!put_hbm_dims(k, loc, what, v, op))
		return false;
	if (v.index) {
		op->row_bound = htole64(v.buf->num[0]);
		if (!nki_live(k, loc, "the index", *v.index) ||
		    !nki_put_ap(k, loc, "the index", *v.index, 0, &op->index, NULL))
			return false;
		nki_add_access(k, insn, *v.index, false);
	}
	return nki_add_access(k, insn, v, slot == 0);
}

static bool put_operand(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
			unsigned int slot, const char *what, struct nki_view v)
{
	struct neuron_dma_operand *op = &insn->dma[slot];

	op->space = v.buf->space;
	op->dtype = v.dtype;
	op->offset_reg = NEURON_REG_NONE;
	op->count_reg = NEURON_REG_NONE;
	op->index.offset_reg = NEURON_REG_NONE;
	op->index.count_reg = NEURON_REG_NONE;
	if (v.buf->space == NEURON_SPACE_HBM)
		return put_hbm(k, loc, insn, slot, what, v);
	if (v.buf->space == NEURON_SPACE_SBUF)
		return nki_put_view(k, loc, insn, slot, what, v, 0);
	nki_fail(k, loc, "%s is in PSUM; allowed: HBM, SBUF (nki_tensor_copy first)", what);
	return false;
}

void nki_dma_copy_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		   struct nki_view src, const struct nki_dma_args *args)
{
	unsigned int engine = args->engine ? (unsigned int)args->engine : NEURON_ENGINE_SP;
	struct nki_insn *insn;
	int queue;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "src", src))
		return;
	if (engine != NEURON_ENGINE_SP && engine != NEURON_ENGINE_ACT && engine != NEURON_ENGINE_POOL) {
		nki_fail(k, loc, "allowed engines for DMA: sync, scalar, gpsimd");
		return;
	}
	if (args->priority > 3 || (args->priority && k->arch->nc_version < 4)) {
		nki_fail(k, loc, "priority %u; allowed: 0, on Trn3 0 to 3", args->priority);
		return;
	}
	if (elements(dst) != elements(src)) {
		nki_fail(k, loc, "dst has %llu elements, src %llu; they must be equal",
			 (unsigned long long)elements(dst), (unsigned long long)elements(src));
		return;
	}
	if (dst.buf->space == NEURON_SPACE_HBM && dst.buf->kind != NKI_TENSOR_OUTPUT &&
	    dst.buf->kind != NKI_TENSOR_SCRATCH) {
		nki_fail(k, loc, "tensor \"%s\" is read-only", dst.buf->name);
		return;
	}
	queue = choose_queue(k, loc, engine, args->queue, role(dst, src));
	insn = queue < 0 ? NULL : nki_new_insn(k, loc, NEURON_OP_DMA_COPY, engine);
	if (!insn)
		return;
	insn->w.words = 3;
	insn->w.aux = htole32(queue | args->priority << 8);
	insn->point.queue = queue;
	if (args->oob_mode == NKI_OOB_SKIP)
		insn->w.flags = htole16(NEURON_FLAG_OOB_SKIP);
	if (put_operand(k, loc, insn, 0, "dst", dst) && put_operand(k, loc, insn, 1, "src", src))
		nki_emit(k, insn);
}
