// SPDX-License-Identifier: MIT
/*
 * Convolution as nine matrix products over the channels: the image stays where it is
 * in SBUF, and each product reads it through an access pattern that starts at
 * another pixel. No copy of shifted images (im2col) is made.
 */
#include "kernels.h"

enum { PIXELS = 512 };

static void rows(struct nki_kernel *k, struct nki_view y, struct nki_view x, struct nki_view w)
{
	unsigned int O = y.num[0], n = y.num[1], width = y.num[2];
	struct nki_view ps = nki_psum(k, NKI_FLOAT32, O, n, width);
	struct nki_view out = nki_sbuf(k, NKI_FLOAT32, O, n, width);

	for (unsigned int i = 0; i < 9; i++) {
		struct nki_view part = nki_slice(k, nki_slice(k, x, 1, i / 3, i / 3 + n), 2, i % 3,
						 i % 3 + width);

		nki_nc_matmul(k, ps, nki_index(k, w, 1, i), part, .accumulate = i > 0);
	}
	nki_tensor_copy(k, out, ps);
	nki_dma_copy(k, y, out);
	nki_free(k, ps);
	nki_free(k, out);
}

void kernel_conv2d(struct nki_kernel *k, unsigned int C, unsigned int H, unsigned int W,
		   unsigned int O)
{
	struct nki_view x = nki_input(k, "x", NKI_BFLOAT16, C, H, W);
	struct nki_view w = nki_input(k, "w", NKI_BFLOAT16, C, 9, O);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, O, H - 2, W - 2);
	struct nki_view tx = nki_sbuf(k, NKI_BFLOAT16, C, H, W);
	struct nki_view tw = nki_sbuf(k, NKI_BFLOAT16, C, 9, O);
	unsigned int step = PIXELS / (W - 2);

	nki_dma_copy(k, tx, x);
	nki_dma_copy(k, tw, w);
	for (unsigned int r = 0; r < H - 2; r += step) {
		unsigned int end = r + step < H - 2 ? r + step : H - 2;

		rows(k, nki_slice(k, y, 1, r, end), nki_slice(k, tx, 1, r, end + 2), tw);
	}
}
