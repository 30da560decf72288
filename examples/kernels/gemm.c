// SPDX-License-Identifier: MIT
/*
 * A blocked matrix product. What limits a product is how often its inputs are
 * loaded: here each chunk of b is used for 512 rows of c, and each of a for 512
 * columns. Two sets of tiles take turns, so that one is loaded while the other is
 * multiplied.
 */
#include "kernels.h"

enum { TILE = 128, COLUMNS = 512, ROWS = 4, STEPS = 8 };

struct chunk {
	struct nki_view a, b;
};

/* Rows k0 ... of a matrix [K, n] as [128, steps, n]: row s * 128 + p at partition p. */
static void load(struct nki_kernel *k, struct nki_view tile, struct nki_view src)
{
	unsigned int steps = src.num[0] / TILE;

	nki_dma_copy(k, nki_slice(k, tile, 1, 0, steps),
		     nki_permute(k, nki_reshape(k, src, steps, TILE, src.num[1]), 1, 0, 2));
}

static void multiply(struct nki_kernel *k, const struct nki_view *sum, unsigned int rows,
		     const struct chunk *c, unsigned int steps, bool first)
{
	for (unsigned int s = 0; s < steps; s++) {
		struct nki_view b = nki_index(k, c->b, 1, s);

		for (unsigned int r = 0; r < rows; r++)
			nki_nc_matmul(k, sum[r], nki_cols(k, nki_index(k, c->a, 1, s), r * TILE,
							  (r + 1) * TILE),
				      b, .accumulate = !first || s);
	}
}

static void store(struct nki_kernel *k, struct nki_view c, const struct nki_view *sum,
		  unsigned int rows)
{
	for (unsigned int r = 0; r < rows; r++) {
		struct nki_view out = nki_sbuf(k, NKI_FLOAT32, TILE, COLUMNS);

		nki_tensor_copy(k, out, sum[r]);
		nki_dma_copy(k, nki_rows(k, c, r * TILE, (r + 1) * TILE), out);
		nki_free(k, out);
	}
}

/* 512 columns of up to 512 rows; @at and @b have the block's columns only. */
static void block(struct nki_kernel *k, struct nki_view c, struct nki_view at, struct nki_view b,
		  struct chunk *chunk)
{
	unsigned int K = b.num[0], rows = at.num[1] / TILE, turn = 0;
	struct nki_view sum[ROWS];

	for (unsigned int r = 0; r < rows; r++)
		sum[r] = nki_psum(k, NKI_FLOAT32, TILE, COLUMNS);
	for (unsigned int k0 = 0; k0 < K; k0 += STEPS * TILE, turn ^= 1) {
		unsigned int end = k0 + STEPS * TILE < K ? k0 + STEPS * TILE : K;

		load(k, nki_cols(k, chunk[turn].a, 0, rows * TILE), nki_rows(k, at, k0, end));
		load(k, chunk[turn].b, nki_rows(k, b, k0, end));
		multiply(k, sum, rows, &chunk[turn], (end - k0) / TILE, k0 == 0);
	}
	store(k, c, sum, rows);
	for (unsigned int r = 0; r < rows; r++)
		nki_free(k, sum[r]);
}

void kernel_gemm(struct nki_kernel *k, unsigned int M, unsigned int N, unsigned int K)
{
	struct nki_view at = nki_input(k, "at", NKI_BFLOAT16, K, M);
	struct nki_view b = nki_input(k, "b", NKI_BFLOAT16, K, N);
	struct nki_view c = nki_output(k, "c", NKI_FLOAT32, M, N);
	struct chunk chunk[2];

	for (int i = 0; i < 2; i++) {
		chunk[i].a = nki_sbuf(k, NKI_BFLOAT16, TILE, STEPS, ROWS * TILE);
		chunk[i].b = nki_sbuf(k, NKI_BFLOAT16, TILE, STEPS, COLUMNS);
	}
	for (unsigned int n = 0; n < N; n += COLUMNS) {
		for (unsigned int m = 0; m < M; m += ROWS * TILE) {
			unsigned int end = m + ROWS * TILE < M ? m + ROWS * TILE : M;

			block(k, nki_cols(k, nki_rows(k, c, m, end), n, n + COLUMNS),
			      nki_cols(k, at, m, end), nki_cols(k, b, n, n + COLUMNS), chunk);
		}
	}
}
