// SPDX-License-Identifier: MIT
/*
 * Attention in the way of flash attention: the scores of 128 queries with 512 keys at
 * a time live in one PSUM bank and are never stored. Keys after the query are
 * masked; chunks that are all masked are not computed.
 */
#include <math.h>

#include "kernels.h"

enum { QUERIES = 128, KEYS = 512, TILE = 128 };

/**
 * struct query - 128 queries on their way through the keys
 * @max, @sum: running maximum and sum of exponentials (128, 1)
 * @acc: running result [128, D], relative to @max
 */
struct query {
	struct nki_view qt, max, sum, acc;
	unsigned int first;
};

/* p[128, KEYS] = e^(score - new maximum) in bf16; grown (128, 1): e^(old - new maximum) */
static void exponentials(struct nki_kernel *k, struct query *q, struct nki_view p,
			 struct nki_view s, struct nki_view grown)
{
	struct nki_view max = nki_sbuf(k, NKI_FLOAT32, 128, 1);
	struct nki_view part = nki_sbuf(k, NKI_FLOAT32, 128, 1);

	nki_tensor_reduce(k, max, NKI_MAXIMUM, s, 1);
	nki_tensor_tensor(k, max, max, q->max, NKI_MAXIMUM);
	nki_tensor_tensor(k, grown, q->max, max, NKI_SUBTRACT);
	nki_activation(k, grown, NKI_EXP, grown);
	nki_tensor_copy(k, q->max, max);
	nki_tensor_scalar(k, max, max, NKI_MULTIPLY, nki_f32(-1));
	nki_activation_reduce(k, p, NKI_EXP, s, NKI_ADD, part, .bias = nki_vec(max));
	nki_scalar_tensor_tensor(k, q->sum, q->sum, NKI_MULTIPLY, nki_vec(grown), NKI_ADD, part);
	nki_free(k, max);
	nki_free(k, part);
}

/* s[128, KEYS] = scores, -1e30 where the key comes after the query */
static void scores(struct nki_kernel *k, struct query *q, struct nki_view s, struct nki_view kt,
		   unsigned int first_key)
{
	struct nki_view ps = nki_psum(k, NKI_FLOAT32, QUERIES, KEYS);
	unsigned int D = kt.num[0];

	nki_nc_matmul(k, ps, q->qt, kt);
	nki_activation(k, s, NKI_COPY, ps, .scale = nki_f32(1 / sqrtf(D)));
	nki_free(k, ps);
	/* query number - key number >= 0 */
	if (first_key + KEYS > q->first)
		nki_affine_select(k, s, NKI_PATTERN({ -1, KEYS }), 1, s, -1e30f,
				  .cmp_op = NKI_GREATER_EQUAL,
				  .offset = (int)q->first - (int)first_key);
}

/* acc = acc * grown + p v. The product's contraction is over keys, so p is transposed. */
static void values(struct nki_kernel *k, struct query *q, struct nki_view p, struct nki_view v,
		   struct nki_view grown)
{
	unsigned int D = v.num[2];
	struct nki_view o = nki_psum(k, NKI_FLOAT32, QUERIES, D);
	enum nki_dtype type = nki_nc_version(k) == 2 ? NKI_FLOAT32 : NKI_BFLOAT16;

	for (unsigned int t = 0; t < KEYS / TILE; t++) {
		struct nki_view tp = nki_psum(k, type, TILE, QUERIES);
		struct nki_view pt = nki_sbuf(k, NKI_BFLOAT16, TILE, QUERIES);

		nki_nc_transpose(k, tp, nki_cols(k, p, t * TILE, (t + 1) * TILE));
		nki_tensor_copy(k, pt, tp);
		nki_nc_matmul(k, o, pt, nki_index(k, v, 1, t), .accumulate = t > 0);
		nki_free(k, tp);
		nki_free(k, pt);
	}
	nki_scalar_tensor_tensor(k, q->acc, q->acc, NKI_MULTIPLY, nki_vec(grown), NKI_ADD, o);
	nki_free(k, o);
}

static void chunk(struct nki_kernel *k, struct query *q, struct nki_view kt, struct nki_view v,
		  unsigned int first_key)
{
	struct nki_view s = nki_sbuf(k, NKI_FLOAT32, QUERIES, KEYS);
	struct nki_view p = nki_sbuf(k, NKI_BFLOAT16, QUERIES, KEYS);
	struct nki_view grown = nki_sbuf(k, NKI_FLOAT32, QUERIES, 1);

	scores(k, q, s, kt, first_key);
	exponentials(k, q, p, s, grown);
	values(k, q, p, v, grown);
	nki_free(k, s);
	nki_free(k, p);
	nki_free(k, grown);
}

/* Keys and values of a chunk: kt[D, KEYS], v[128, KEYS / 128, D] */
static void load_chunk(struct nki_kernel *k, struct nki_view kt, struct nki_view v,
		       struct nki_view tile_kt, struct nki_view tile_v, unsigned int first)
{
	unsigned int D = v.num[1];

	nki_dma_copy(k, tile_kt, nki_cols(k, kt, first, first + KEYS));
	nki_dma_copy(k, tile_v, nki_permute(k, nki_reshape(k, nki_rows(k, v, first, first + KEYS),
							   KEYS / TILE, TILE, D), 1, 0, 2));
}

static void queries(struct nki_kernel *k, struct nki_view o, struct nki_view qt,
		    struct nki_view kt, struct nki_view v, unsigned int first)
{
	unsigned int D = qt.num[0], turn = 0;
	struct nki_view tile_kt[2], tile_v[2];
	struct query q = {
		.qt = nki_sbuf(k, NKI_BFLOAT16, D, QUERIES),
		.max = nki_sbuf(k, NKI_FLOAT32, QUERIES, 1),
		.sum = nki_sbuf(k, NKI_FLOAT32, QUERIES, 1),
		.acc = nki_sbuf(k, NKI_FLOAT32, QUERIES, D),
		.first = first,
	};

	for (int i = 0; i < 2; i++) {
		tile_kt[i] = nki_sbuf(k, NKI_BFLOAT16, D, KEYS);
		tile_v[i] = nki_sbuf(k, NKI_BFLOAT16, TILE, KEYS / TILE, D);
	}
	nki_dma_copy(k, q.qt, nki_cols(k, qt, first, first + QUERIES));
	nki_memset(k, q.max, -1e30);
	nki_memset(k, q.sum, 0);
	nki_memset(k, q.acc, 0);
	for (unsigned int key = 0; key < first + QUERIES; key += KEYS, turn ^= 1) {
		load_chunk(k, kt, v, tile_kt[turn], tile_v[turn], key);
		chunk(k, &q, tile_kt[turn], tile_v[turn], key);
	}
	nki_reciprocal(k, q.sum, q.sum);
	nki_tensor_scalar(k, q.acc, q.acc, NKI_MULTIPLY, nki_vec(q.sum));
	nki_dma_copy(k, nki_rows(k, o, first, first + QUERIES), q.acc);
	for (int i = 0; i < 2; i++) {
		nki_free(k, tile_kt[i]);
		nki_free(k, tile_v[i]);
	}
	nki_free(k, q.qt);
	nki_free(k, q.max);
	nki_free(k, q.sum);
	nki_free(k, q.acc);
}

void kernel_attention(struct nki_kernel *k, unsigned int S, unsigned int D)
{
	struct nki_view qt = nki_input(k, "qt", NKI_BFLOAT16, D, S);
	struct nki_view kt = nki_input(k, "kt", NKI_BFLOAT16, D, S);
	struct nki_view v = nki_input(k, "v", NKI_BFLOAT16, S, D);
	struct nki_view o = nki_output(k, "o", NKI_FLOAT32, S, D);

	for (unsigned int first = 0; first < S; first += QUERIES)
		queries(k, o, qt, kt, v, first);
}
