// SPDX-License-Identifier: MIT
/* Rotary position embedding: (a, b) -> (a cos - b sin, b cos + a sin), a and b the halves of a row. */
#include "kernels.h"

static void rotate(struct nki_kernel *k, struct nki_view y, struct nki_view x, struct nki_view cos,
		   struct nki_view sin, enum nki_op op)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, cos.num[1]);
	unsigned int half = cos.num[1];
	bool second = op == NKI_ADD;
	struct nki_view a = nki_cols(k, x, 0, half), b = nki_cols(k, x, half, 2 * half);

	y = second ? nki_cols(k, y, half, 2 * half) : nki_cols(k, y, 0, half);
	nki_tensor_tensor(k, y, second ? b : a, cos, NKI_MULTIPLY);
	nki_tensor_tensor(k, t, second ? a : b, sin, NKI_MULTIPLY, .engine = NKI_ENGINE_GPSIMD);
	nki_tensor_tensor(k, y, y, t, op);
	nki_free(k, t);
}

static struct nki_view load(struct nki_kernel *k, struct nki_view v, unsigned int row)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, v.num[1]);

	nki_dma_copy(k, t, nki_rows(k, v, row, row + 128));
	return t;
}

void kernel_rope(struct nki_kernel *k, unsigned int S, unsigned int D)
{
	struct nki_view x = nki_input(k, "x", NKI_FLOAT32, S, D);
	struct nki_view cos = nki_input(k, "cos", NKI_FLOAT32, S, D / 2);
	struct nki_view sin = nki_input(k, "sin", NKI_FLOAT32, S, D / 2);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, S, D);

	for (unsigned int row = 0; row < S; row += 128) {
		struct nki_view tx = load(k, x, row), tc = load(k, cos, row), ts = load(k, sin, row);
		struct nki_view ty = nki_sbuf(k, NKI_FLOAT32, 128, D);

		rotate(k, ty, tx, tc, ts, NKI_SUBTRACT);
		rotate(k, ty, tx, tc, ts, NKI_ADD);
		nki_dma_copy(k, nki_rows(k, y, row, row + 128), ty);
		nki_free(k, tx);
		nki_free(k, tc);
		nki_free(k, ts);
		nki_free(k, ty);
	}
}
