// SPDX-License-Identifier: MIT
/*
 * Two products with a non-linear function between. The hidden layer is computed
 * transposed, [F, tokens], so that it is the stationary matrix of the second
 * product as it comes out of the first, and it never leaves SBUF.
 */
#include "kernels.h"

enum { TOKENS = 128, TILE = 128, COLUMNS = 512 };

/* [n, columns] as [128, n / 128, columns] */
static struct nki_view load(struct nki_kernel *k, struct nki_view v)
{
	unsigned int steps = v.num[0] / TILE, n = v.num[1];
	struct nki_view t = nki_sbuf(k, NKI_BFLOAT16, TILE, steps, n);

	nki_dma_copy(k, t, nki_permute(k, nki_reshape(k, v, steps, TILE, n), 1, 0, 2));
	return t;
}

/* ps[128 of F, tokens] = w[D, 128 of F]^T xt[D, tokens] */
static struct nki_view project(struct nki_kernel *k, struct nki_view w, struct nki_view xt,
			       unsigned int f)
{
	struct nki_view ps = nki_psum(k, NKI_FLOAT32, TILE, TOKENS);
	struct nki_view t = load(k, nki_cols(k, w, f, f + TILE));

	for (unsigned int s = 0; s < t.num[1]; s++)
		nki_nc_matmul(k, ps, nki_index(k, t, 1, s), nki_index(k, xt, 1, s), .accumulate = s > 0);
	nki_free(k, t);
	return ps;
}

/* h[128 of F, tokens] in bf16 */
static void hidden(struct nki_kernel *k, struct nki_view h, struct nki_view xt, struct nki_view w1,
		   struct nki_view w3, unsigned int f)
{
	struct nki_view a = project(k, w1, xt, f), g;

	if (!w3.buf) {
		nki_activation(k, h, NKI_GELU, a);
	} else {
		struct nki_view s = nki_sbuf(k, NKI_FLOAT32, TILE, TOKENS);

		g = project(k, w3, xt, f);
		nki_activation(k, s, NKI_SILU, a);
		nki_tensor_tensor(k, h, s, g, NKI_MULTIPLY);
		nki_free(k, s);
		nki_free(k, g);
	}
	nki_free(k, a);
}

void kernel_mlp(struct nki_kernel *k, unsigned int D, unsigned int F, bool gated)
{
	struct nki_view xt = load(k, nki_input(k, "xt", NKI_BFLOAT16, D, TOKENS));
	struct nki_view w1 = nki_input(k, "w1", NKI_BFLOAT16, D, F);
	struct nki_view w3 = gated ? nki_input(k, "w3", NKI_BFLOAT16, D, F) : NKI_NONE;
	struct nki_view w2 = nki_input(k, "w2", NKI_BFLOAT16, F, D);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, TOKENS, D);
	struct nki_view h = nki_sbuf(k, NKI_BFLOAT16, TILE, F / TILE, TOKENS);

	for (unsigned int f = 0; f < F; f += TILE)
		hidden(k, nki_index(k, h, 1, f / TILE), xt, w1, w3, f);
	for (unsigned int n = 0; n < D; n += COLUMNS) {
		struct nki_view ps = nki_psum(k, NKI_FLOAT32, TOKENS, COLUMNS);
		struct nki_view out = nki_sbuf(k, NKI_FLOAT32, TOKENS, COLUMNS);
		struct nki_view w = load(k, nki_cols(k, w2, n, n + COLUMNS));

		for (unsigned int s = 0; s < F / TILE; s++)
			nki_nc_matmul(k, ps, nki_index(k, h, 1, s), nki_index(k, w, 1, s),
				      .accumulate = s > 0);
		nki_tensor_copy(k, out, ps);
		nki_dma_copy(k, nki_cols(k, y, n, n + COLUMNS), out);
		nki_free(k, ps);
		nki_free(k, out);
		nki_free(k, w);
	}
}
