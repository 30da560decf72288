// SPDX-License-Identifier: MIT
/*
 * A mixture-of-experts router: each token picks the best two of E experts by a
 * softmax over its scores, and gets the sum of what the two have for it, weighted
 * with their probabilities divided by their sum. Which rows of the experts' table are read
 * is known on the chip only: the DMA gathers them by the numbers that the search found.
 */
#include "kernels.h"

enum { TOKENS = 128, TOP = 2, STEP = 128 };

/* scores[tokens, E] = x wr */
static struct nki_view scores(struct nki_kernel *k, struct nki_view xt, struct nki_view wr)
{
	unsigned int D = xt.num[0], E = wr.num[1];
	struct nki_view ps = nki_psum(k, NKI_FLOAT32, TOKENS, E), s = nki_sbuf(k, NKI_FLOAT32, TOKENS, E);

	for (unsigned int d = 0; d < D; d += STEP) {
		struct nki_view a = nki_sbuf(k, NKI_BFLOAT16, STEP, TOKENS);
		struct nki_view b = nki_sbuf(k, NKI_BFLOAT16, STEP, E);

		nki_dma_copy(k, a, nki_rows(k, xt, d, d + STEP));
		nki_dma_copy(k, b, nki_rows(k, wr, d, d + STEP));
		nki_nc_matmul(k, ps, a, b, .accumulate = d > 0);
		nki_free(k, a);
		nki_free(k, b);
	}
	nki_tensor_copy(k, s, ps);
	nki_free(k, ps);
	return s;
}

/*
 * gate[tokens, 2]: of exponentials the common factor falls out, so that the softmax of all
 * experts need not be finished: e^(best - best), e^(second - best), divided by their sum.
 */
static void gates(struct nki_kernel *k, struct nki_view gate, struct nki_view best)
{
	struct nki_view high = nki_sbuf(k, NKI_FLOAT32, TOKENS, 1);
	struct nki_view sum = nki_sbuf(k, NKI_FLOAT32, TOKENS, 1);

	nki_tensor_scalar(k, high, nki_cols(k, best, 0, 1), NKI_MULTIPLY, nki_f32(-1));
	nki_activation_reduce(k, gate, NKI_EXP, nki_cols(k, best, 0, TOP), NKI_ADD, sum,
			      .bias = nki_vec(high));
	nki_reciprocal(k, sum, sum);
	nki_tensor_scalar(k, gate, gate, NKI_MULTIPLY, nki_vec(sum));
	nki_free(k, high);
	nki_free(k, sum);
}

void kernel_moe_router(struct nki_kernel *k, unsigned int D, unsigned int E, unsigned int H)
{
	struct nki_view xt = nki_input(k, "xt", NKI_BFLOAT16, D, TOKENS);
	struct nki_view wr = nki_input(k, "wr", NKI_BFLOAT16, D, E);
	struct nki_view experts = nki_input(k, "experts", NKI_FLOAT32, E, H);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, TOKENS, H);
	struct nki_view chosen = nki_output(k, "chosen", NKI_UINT32, TOKENS, TOP);
	struct nki_view s = scores(k, xt, wr);
	struct nki_view best = nki_sbuf(k, NKI_FLOAT32, TOKENS, 8);
	struct nki_view at = nki_sbuf(k, NKI_UINT32, TOKENS, 8);
	struct nki_view gate = nki_sbuf(k, NKI_FLOAT32, TOKENS, TOP);
	struct nki_view sum = nki_sbuf(k, NKI_FLOAT32, TOKENS, H);

	nki_max8(k, best, s);
	nki_nc_find_index8(k, at, s, best);
	gates(k, gate, best);
	nki_memset(k, sum, 0);
	for (unsigned int i = 0; i < TOP; i++) {
		struct nki_view rows = nki_sbuf(k, NKI_FLOAT32, TOKENS, H);

		nki_dma_copy(k, rows, nki_gather(k, experts, nki_cols(k, at, i, i + 1)),
			     .engine = NKI_ENGINE_GPSIMD);
		nki_scalar_tensor_tensor(k, sum, rows, NKI_MULTIPLY, nki_vec(nki_cols(k, gate, i, i + 1)),
					 NKI_ADD, sum);
		nki_free(k, rows);
	}
	nki_dma_copy(k, y, sum);
	nki_dma_copy(k, chosen, nki_cols(k, at, 0, TOP));
}
