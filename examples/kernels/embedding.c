// SPDX-License-Identifier: MIT
/* Embedding lookup: the DMA gathers rows by numbers that it finds in SBUF. */
#include "kernels.h"

void kernel_embedding(struct nki_kernel *k, unsigned int T, unsigned int V, unsigned int D)
{
	struct nki_view ids = nki_input(k, "ids", NKI_INT32, T, 1);
	struct nki_view table = nki_input(k, "table", NKI_FLOAT32, V, D);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, T, D);

	for (unsigned int t = 0; t < T; t += 128) {
		struct nki_view index = nki_sbuf(k, NKI_INT32, 128, 1);
		struct nki_view rows = nki_sbuf(k, NKI_FLOAT32, 128, D);

		nki_dma_copy(k, index, nki_rows(k, ids, t, t + 128));
		nki_dma_copy(k, rows, nki_gather(k, table, index), .engine = NKI_ENGINE_GPSIMD);
		nki_dma_copy(k, nki_rows(k, y, t, t + 128), rows);
		nki_free(k, index);
		nki_free(k, rows);
	}
}
