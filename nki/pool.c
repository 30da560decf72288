// SPDX-License-Identifier: MIT
/* GpSimd. */
#include <string.h>

#include "rules.h"

static bool put_pattern(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
			struct nki_pattern pattern, struct nki_view dst)
{
	struct neuron_ap *ap = &insn->w.ap[2];
	unsigned int dims = 0;
	uint64_t n = 1;

	while (dims < NEURON_AP_DIMS && pattern.dim[dims].num)
		dims++;
	for (unsigned int d = 0; d < dims; d++) {
		unsigned int from = dims - 1 - d;

		if (pattern.dim[from].num > UINT16_MAX || pattern.dim[from].step > INT16_MAX ||
		    pattern.dim[from].step < INT16_MIN) {
			nki_fail(k, loc, "pattern of %u elements with step %d; allowed: 65535, and -32768 to 32767",
				 pattern.dim[from].num, pattern.dim[from].step);
			return false;
		}
		ap->num[d] = htole16(pattern.dim[from].num);
		ap->step[d] = htole16(pattern.dim[from].step);
		n *= pattern.dim[from].num;
	}
	if (!dims || n != nki_free_elements(dst)) {
		nki_fail(k, loc, "the pattern has %llu elements, dst %llu per partition",
			 dims ? (unsigned long long)n : 0ull, (unsigned long long)nki_free_elements(dst));
		return false;
	}
	ap->dims = dims;
	ap->part_count = dst.num[0];
	return true;
}

void nki_iota_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
	       struct nki_pattern pattern, const struct nki_iota_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_IOTA, NKI_ENGINE_GPSIMD, 0);

	if (insn && nki_put_view(k, loc, insn, 0, "dst", dst, 0) &&
	    put_pattern(k, loc, insn, pattern, dst) &&
	    nki_put_scalar(k, loc, insn, 0, "offset", nki_i32(args->offset), 0) &&
	    nki_put_scalar(k, loc, insn, 1, "channel_multiplier", nki_i32(args->channel_multiplier), 0))
		nki_emit(k, insn);
}

void nki_affine_select_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_pattern pattern, int32_t channel_multiplier,
			struct nki_view on_true, float on_false,
			const struct nki_affine_select_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_AFFINE_SELECT, NKI_ENGINE_GPSIMD, 0);
	enum nki_op cmp = args->cmp_op ? args->cmp_op : NKI_EQUAL;

	if (!insn)
		return;
	if (cmp < NKI_EQUAL || cmp > NKI_LESS) {
		nki_fail(k, loc, "cmp_op must be a comparison");
		return;
	}
	if (!nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "on_true", on_true, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "on_true", on_true) ||
	    !put_pattern(k, loc, insn, pattern, dst) ||
	    !nki_put_scalar(k, loc, insn, 0, "offset", nki_i32(args->offset), 0) ||
	    !nki_put_scalar(k, loc, insn, 1, "on_false", nki_f32(on_false), 0))
		return;
	insn->w.op[0] = cmp;
	insn->w.aux = htole32(channel_multiplier);
	nki_emit(k, insn);
}

/* ------------------------------------------------------------------------ */
/* Across partitions, gathers, searches					    */

void nki_tensor_partition_reduce_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				  enum nki_op op, struct nki_view data)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_PARTITION_REDUCE, NKI_ENGINE_GPSIMD, 0);
	struct nki_view v[2] = { dst, data };

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_shape_is(k, loc, "dst", dst, 1, nki_free_elements(data)))
		return;
	if (op != NKI_ADD && op != NKI_MAXIMUM && op != NKI_BITWISE_OR && op != NKI_BITWISE_AND &&
	    (unsigned int)op != NEURON_ALU_AVERAGE) {
		nki_fail(k, loc, "operator 0x%x; allowed: add, average, maximum, bitwise_or, bitwise_and (minimum: negate before and after)",
			 op);
		return;
	}
	if ((op == NKI_BITWISE_OR || op == NKI_BITWISE_AND) && !nki_bits_ok(k, loc, v, 2, "bitwise"))
		return;
	insn->w.op[0] = op;
	nki_emit(k, insn);
}

static bool gather_numbers_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			      struct nki_view index, unsigned int e, unsigned int valid)
{
	uint64_t all = nki_free_elements(index) * 16;

	if (index.num[0] % 16 || e > 32 || !e || e & (e - 1)) {
		nki_fail(k, loc, "%u partitions, num_elem_per_idx %u; allowed: a multiple of 16; 1, 2, 4, 8, 16, 32",
			 index.num[0], e);
		return false;
	}
	if (all > 4096 || !valid || valid > all) {
		nki_fail(k, loc, "%llu indices of each 16 partitions, num_valid_indices %u; allowed: at most 4096, 1 to the number of indices",
			 (unsigned long long)all, valid);
		return false;
	}
	return nki_shape_is(k, loc, "dst", dst, index.num[0], (uint64_t)valid * e);
}

void nki_local_gather_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view src_buffer, struct nki_view index,
		       const struct nki_local_gather_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_LOCAL_GATHER, NKI_ENGINE_GPSIMD, 0);
	unsigned int e = args->num_elem_per_idx ? args->num_elem_per_idx : 1;
	unsigned int valid;

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "src_buffer", src_buffer, 0) ||
	    !nki_put_view(k, loc, insn, 2, "index", index, 0) ||
	    !nki_same_type(k, loc, "dst", dst, "src_buffer", src_buffer))
		return;
	if (index.dtype != NKI_UINT16 || src_buffer.num[0] != index.num[0]) {
		nki_fail(k, loc, "index is %s of %u partitions, src_buffer has %u; wanted: uint16, as many",
			 nki_dtype_text(index.dtype), index.num[0], src_buffer.num[0]);
		return;
	}
	valid = args->num_valid_indices ? args->num_valid_indices : nki_free_elements(index) * 16;
	if (!gather_numbers_ok(k, loc, dst, index, e, valid))
		return;
	insn->w.aux = htole32(e | valid << 16);
	nki_emit(k, insn);
}

void nki_nc_n_gather_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data,
		      struct nki_view indices)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_N_GATHER, NKI_ENGINE_GPSIMD, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_put_view(k, loc, insn, 2, "indices", indices, 0) ||
	    !nki_same_type(k, loc, "dst", dst, "data", data) ||
	    !nki_same_shape(k, loc, "dst", dst, "indices", indices))
		return;
	if (indices.dtype != NKI_UINT32 || data.num[0] != dst.num[0]) {
		nki_fail(k, loc, "indices are %s, data has %u partitions; wanted: uint32, %u",
			 nki_dtype_text(indices.dtype), data.num[0], dst.num[0]);
		return;
	}
	nki_emit(k, insn);
}

void nki_sequence_bounds_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			  struct nki_view segment_ids)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_SEQUENCE_BOUNDS, NKI_ENGINE_GPSIMD, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "segment_ids", segment_ids, 0))
		return;
	if ((dst.dtype != NKI_FLOAT32 && dst.dtype != NKI_INT32) ||
	    (segment_ids.dtype != NKI_FLOAT32 && segment_ids.dtype != NKI_INT32)) {
		nki_fail(k, loc, "dst is %s, segment_ids %s; allowed: float32, int32",
			 nki_dtype_text(dst.dtype), nki_dtype_text(segment_ids.dtype));
		return;
	}
	if (nki_shape_is(k, loc, "segment_ids", segment_ids, 1, nki_free_elements(segment_ids)) &&
	    nki_shape_is(k, loc, "dst", dst, 1, 2 * nki_free_elements(segment_ids)))
		nki_emit(k, insn);
}

void nki_nonzero_with_count_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			     struct nki_view src, const struct nki_nonzero_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_NONZERO_WITH_COUNT, NKI_ENGINE_GPSIMD, 0);
	struct nki_scalar padding = args->padding_val.kind ? args->padding_val : nki_i32(-1);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "src", src, 0) ||
	    !nki_shape_is(k, loc, "dst", dst, src.num[0], nki_free_elements(src) + 1))
		return;
	if (dst.dtype != NKI_INT32 || (src.dtype != NKI_FLOAT32 && src.dtype != NKI_INT32)) {
		nki_fail(k, loc, "dst is %s, src %s; allowed: int32; float32, int32",
			 nki_dtype_text(dst.dtype), nki_dtype_text(src.dtype));
		return;
	}
	if (padding.kind != NEURON_IMM_I32) {
		nki_fail(k, loc, "padding_val must be nki_i32()");
		return;
	}
	/* Partitions that are not a multiple of 16 keep what they have. */
	if (nki_put_scalar(k, loc, insn, 0, "index_offset", nki_i32(args->index_offset), 0) &&
	    nki_put_scalar(k, loc, insn, 1, "padding_val", padding, 0))
		nki_emit(k, insn);
}

void nki_topk_(struct nki_kernel *k, struct nki_loc loc, struct nki_view val_dst, struct nki_view idx_dst,
	       struct nki_view src, uint32_t n)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_TOPK, NKI_ENGINE_GPSIMD, 0);
	uint64_t top;

	if (!insn || !nki_put_view(k, loc, insn, 0, "val_dst", val_dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "src", src, 0) ||
	    !nki_put_view(k, loc, insn, 2, "idx_dst", idx_dst, 0) ||
	    !nki_same_shape(k, loc, "val_dst", val_dst, "idx_dst", idx_dst))
		return;
	if (idx_dst.dtype != NKI_UINT32) {
		nki_fail(k, loc, "idx_dst is %s; allowed: uint32", nki_dtype_text(idx_dst.dtype));
		return;
	}
	top = nki_free_elements(val_dst);
	if (val_dst.num[0] != src.num[0] || src.num[0] % 16) {
		nki_fail(k, loc, "src has %u partitions, val_dst %u; allowed: the same multiple of 16",
			 src.num[0], val_dst.num[0]);
		return;
	}
	if (n < 8 || n >= 65536 || n > 16 * nki_free_elements(src) || top >= 32768 || top > n) {
		nki_fail(k, loc, "the top %llu of n = %u of %llu elements in 16 partitions; allowed: n 8 to 65535 and there, 1 to 32767 of them",
			 (unsigned long long)top, n, 16 * (unsigned long long)nki_free_elements(src));
		return;
	}
	if (nki_put_scalar(k, loc, insn, 0, "n", nki_i32(n), 0))
		nki_emit(k, insn);
}
