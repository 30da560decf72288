// SPDX-License-Identifier: MIT
/* nc_transpose on the tensor and vector engines. */
#include <string.h>

#include "rules.h"

/* ones, then keep the diagonal: p - i == 0 */
static void fill_identity(struct nki_kernel *k, struct nki_loc loc, struct nki_view id)
{
	struct nki_loop *loop = k->loop;
	struct nki_seq seq = k->seq;

	k->loop = NULL;
	k->seq = k->prologue;
	nki_memset_(k, loc, id, 1.0, &(struct nki_engine_args){ .engine = NKI_ENGINE_GPSIMD });
	nki_affine_select_(k, loc, id, NKI_PATTERN({ -1, NEURON_PARTITIONS }), 1, id, 0.0f,
			   &(struct nki_affine_select_args){ .cmp_op = NKI_EQUAL });
	k->prologue = k->seq;
	k->seq = seq;
	k->loop = loop;
}

static struct nki_view identity(struct nki_kernel *k, struct nki_loc loc, enum nki_dtype dtype)
{
	struct nki_view v;

	for (unsigned int i = 0; i < k->identities; i++) {
		if (k->identity[i].dtype == dtype)
			return k->identity[i].view;
	}
	v = nki_top_tile(k, loc, dtype, NEURON_PARTITIONS, NEURON_PARTITIONS);
	if (!nki_ok(k))
		return NKI_NONE;
	fill_identity(k, loc, v);
	if (k->identities < sizeof(k->identity) / sizeof(k->identity[0])) {
		k->identity[k->identities].dtype = dtype;
		k->identity[k->identities++].view = v;
	}
	return v;
}

static void transpose_pe(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			 struct nki_view data)
{
	bool exact = k->arch->nc_version >= 3;
	struct nki_view id;

	if (nki_dtype_is_int(data.dtype)) {
		nki_fail(k, loc, "data is %s; allowed on the tensor engine: floating-point types",
			 nki_dtype_text(data.dtype));
		return;
	}
	id = identity(k, loc, data.dtype);
	if (!nki_ok(k))
		return;
	id = nki_cols(k, nki_rows(k, id, 0, data.num[0]), 0, data.num[0]);
	nki_nc_matmul_(k, loc, dst, data, id, &(struct nki_matmul_args){ .is_transpose = exact });
}

static void transpose_dve(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			  struct nki_view data)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_TRANSPOSE32, NKI_ENGINE_VECTOR, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0))
		return;
	if (data.num[0] > 32 || nki_free_elements(data) > 32) {
		nki_fail(k, loc, "%u x %llu; allowed on the vector engine: at most 32 x 32", data.num[0],
			 (unsigned long long)nki_free_elements(data));
		return;
	}
	nki_emit(k, insn);
}

void nki_nc_transpose_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view data, const struct nki_engine_args *args)
{
	enum nki_engine engine = args->engine;

	if (!nki_ok(k) || !nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "data", data))
		return;
	if (dst.num[0] != nki_free_elements(data) || nki_free_elements(dst) != data.num[0]) {
		nki_fail(k, loc, "dst is %u x %llu, data %u x %llu", dst.num[0],
			 (unsigned long long)nki_free_elements(dst), data.num[0],
			 (unsigned long long)nki_free_elements(data));
		return;
	}
	if (!engine)
		engine = dst.buf->space == NEURON_SPACE_PSUM ? NKI_ENGINE_TENSOR : NKI_ENGINE_VECTOR;
	if (dst.dtype != data.dtype && (engine != NKI_ENGINE_TENSOR || k->arch->nc_version >= 3)) {
		nki_fail(k, loc, "dst is %s, data %s; they must be equal", nki_dtype_text(dst.dtype),
			 nki_dtype_text(data.dtype));
		return;
	}
	if (engine == NKI_ENGINE_TENSOR)
		transpose_pe(k, loc, dst, data);
	else if (engine == NKI_ENGINE_VECTOR)
		transpose_dve(k, loc, dst, data);
	else
		nki_fail(k, loc, "allowed engines: tensor, vector");
}
