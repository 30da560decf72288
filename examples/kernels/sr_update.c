// SPDX-License-Identifier: MIT
/*
 * Weights kept in bf16 and updated by amounts below their precision: rounded to
 * nearest most updates would be lost, rounded at random they count on average. The
 * rounding mode is the job's (NEURON_RT_STOCHASTIC_ROUNDING_EN).
 */
#include "kernels.h"

void kernel_sr_update(struct nki_kernel *k, unsigned int R, unsigned int F)
{
	struct nki_view w = nki_input(k, "w", NKI_BFLOAT16, R, F);
	struct nki_view u = nki_input(k, "u", NKI_FLOAT32, R, F);
	struct nki_view w_new = nki_output(k, "w_new", NKI_BFLOAT16, R, F);

	for (unsigned int row = 0; row < R; row += 128) {
		struct nki_view tw = nki_sbuf(k, NKI_BFLOAT16, 128, F);
		struct nki_view tu = nki_sbuf(k, NKI_FLOAT32, 128, F);

		nki_dma_copy(k, tw, nki_rows(k, w, row, row + 128));
		nki_dma_copy(k, tu, nki_rows(k, u, row, row + 128));
		nki_tensor_tensor(k, tw, tw, tu, NKI_ADD);
		nki_dma_copy(k, nki_rows(k, w_new, row, row + 128), tw);
		nki_free(k, tw);
		nki_free(k, tu);
	}
}
