// SPDX-License-Identifier: MIT
/*
 * Tensor indirection of NeuronCore-v4: element i of an operand's partitions lies at
 * an offset that an index tile gives for each group of partitions.
 */
#include <string.h>

#include "rules.h"

struct nki_view nki_indirect_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			      struct nki_view index, uint32_t num)
{
	struct nki_view *copy;

	if (!nki_ok(k) || !nki_live(k, loc, "the tile", v) || !nki_live(k, loc, "the index", index))
		return NKI_NONE;
	if (!nki_generation_ok(k, loc, 4))
		return NKI_NONE;
	if (v.buf->space == NEURON_SPACE_HBM || v.reg.id || v.count_reg.id || v.indirect) {
		nki_fail(k, loc, "allowed: a tile in SBUF or PSUM without registers or another indirection");
		return NKI_NONE;
	}
	if (index.buf->space != NEURON_SPACE_SBUF || index.dims != 2 || index.reg.id ||
	    !nki_dtype_is_int(index.dtype) || index.num[0] != v.num[0] || index.part % 32) {
		nki_fail(k, loc, "the index must be a (%u, K) integer tile in SBUF from partition 0, 32, 64 or 96",
			 v.num[0]);
		return NKI_NONE;
	}
	copy = nki_zalloc(k, sizeof(*copy));
	if (!copy)
		return NKI_NONE;
	*copy = index;
	v.indirect = copy;
	if (!num)
		num = index.num[0] * index.num[1];
	v.dims = 2;
	v.num[1] = num;
	v.step[1] = 1;
	return v;
}

/* Which operands of an instruction may be indirect. */
static bool operand_ok(unsigned int opcode, unsigned int slot)
{
	switch (opcode) {
	case NEURON_OP_LDWEIGHTS:
	case NEURON_OP_LDWEIGHTS_MX:
	case NEURON_OP_MATMUL:
	case NEURON_OP_MATMUL_MX:
	case NEURON_OP_TENSOR_COPY:
	case NEURON_OP_TENSOR_SCALAR:
	case NEURON_OP_TENSOR_REDUCE:
	case NEURON_OP_TENSOR_SCALAR_REDUCE:
	case NEURON_OP_TENSOR_SCALAR_CUMULATIVE:
	case NEURON_OP_ACTIVATE:
	case NEURON_OP_ACTIVATE2:
	case NEURON_OP_EXPONENTIAL:
		return true;
	case NEURON_OP_COPY_PREDICATED:
		return slot != 1;
	case NEURON_OP_TENSOR_TENSOR:
		return slot != 2;
	}
	return false;
}

static bool pe_type_ok(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
		       unsigned int slot)
{
	if (!slot || nki_packed(v.dtype) || (!nki_dtype_is_int(v.dtype) && nki_dtype_size(v.dtype) < 4) ||
	    nki_type_ok(k, loc, what, v.dtype, 'e'))
		return nki_ok(k);
	return false;
}

bool nki_put_indirect(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		      unsigned int slot, const char *what, struct nki_view v, struct neuron_ap *ap)
{
	unsigned int engine = insn->point.engine, group = engine == NEURON_ENGINE_PE ? 32 : 16;
	struct nki_view index = *v.indirect;
	struct neuron_insn_ext *ext;

	if (slot > 2 || !operand_ok(insn->w.opcode, slot)) {
		nki_fail(k, loc, "%s is indirect; this operand must be direct", what);
		return false;
	}
	if (!slot && engine == NEURON_ENGINE_ACT && v.buf->space == NEURON_SPACE_PSUM) {
		nki_fail(k, loc, "%s is indirect and in PSUM, where the scalar engine cannot scatter", what);
		return false;
	}
	if ((uint64_t)v.num[1] > (uint64_t)group * index.num[1]) {
		nki_fail(k, loc, "%s has %u elements; the index has %u columns, for at most %u", what,
			 v.num[1], index.num[1], group * index.num[1]);
		return false;
	}
	if (engine == NEURON_ENGINE_PE && !pe_type_ok(k, loc, what, v, slot))
		return false;
	if (!(le16toh(insn->w.flags) & NEURON_FLAG_INDIRECT)) {
		ext = (struct neuron_insn_ext *)nki_more_words(k, insn, insn->w.words + 1);
		if (!ext)
			return false;
		insn->w.flags |= htole16(NEURON_FLAG_INDIRECT);
		for (unsigned int i = 0; i < 3; i++) {
			ext[insn->w.words - 2].ap[i].offset_reg = NEURON_REG_NONE;
			ext[insn->w.words - 2].ap[i].count_reg = NEURON_REG_NONE;
		}
	}
	ext = (struct neuron_insn_ext *)insn->more + insn->w.words - 2;
	return nki_live(k, loc, "the index", index) &&
	       nki_put_ap(k, loc, what, v, 0, ap, NULL, false) &&
	       nki_put_ap(k, loc, "the index", index, 0, &ext->ap[slot], NULL, false) &&
	       nki_add_access(k, insn, index, false);
}
