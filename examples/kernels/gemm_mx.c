// SPDX-License-Identifier: MIT
/*
 * Products in microscaling formats (Trn3): four values of 8 or 4 bits in one element, a
 * scale for every 32 of them. The weights come quantised; the activations of the first
 * kernel are quantised on the chip.
 *
 * Element [p, f] of packed data has the values k = 4 p to 4 p + 3 of column f.
 */
#include "kernels.h"

enum { PARTS = 128, COLUMNS = 512 };

/*
 * Scales of 128 partitions are 16 rows in memory; on the chip those of a quadrant are
 * in its first four partitions.
 */
static struct nki_view load_scales(struct nki_kernel *k, struct nki_view scale, unsigned int row)
{
	struct nki_view t = nki_sbuf(k, NKI_UINT8, PARTS, scale.num[1]);

	for (unsigned int q = 0; q < 4; q++)
		nki_dma_copy(k, nki_rows(k, t, 32 * q, 32 * q + 4),
			     nki_rows(k, scale, row + 4 * q, row + 4 * q + 4));
	return t;
}

static struct nki_view load(struct nki_kernel *k, struct nki_view v, unsigned int row)
{
	struct nki_view t = nki_sbuf(k, v.dtype, PARTS, v.num[1]);

	nki_dma_copy(k, t, nki_rows(k, v, row, row + PARTS));
	return t;
}

static void store(struct nki_kernel *k, struct nki_view c, struct nki_view sum)
{
	struct nki_view out = nki_sbuf(k, NKI_FLOAT32, c.num[0], c.num[1]);

	nki_tensor_copy(k, out, sum);
	nki_dma_copy(k, c, out);
	nki_free(k, out);
}

void kernel_gemm_mxfp8(struct nki_kernel *k, unsigned int M, unsigned int N, unsigned int K)
{
	struct nki_view a = nki_input(k, "a", NKI_FLOAT8_E4M3FN_X4, K / 4, M);
	struct nki_view a_scale = nki_input(k, "a_scale", NKI_UINT8, K / 32, M);
	struct nki_view b = nki_input(k, "b", NKI_BFLOAT16, K / 4, 4 * N);
	struct nki_view c = nki_output(k, "c", NKI_FLOAT32, M, N);
	struct nki_view sum = nki_psum(k, NKI_FLOAT32, M, N);

	for (unsigned int row = 0; row < K / 4; row += PARTS) {
		struct nki_view ta = load(k, a, row), sa = load_scales(k, a_scale, row / 8);
		struct nki_view tb = load(k, b, row), sb = nki_sbuf(k, NKI_UINT8, PARTS, N);
		struct nki_view qb = nki_sbuf(k, NKI_FLOAT8_E4M3FN_X4, PARTS, N);

		nki_quantize_mx(k, qb, tb, sb);
		nki_nc_matmul_mx(k, sum, ta, qb, sa, sb, .accumulate = row > 0);
		nki_free(k, ta);
		nki_free(k, sa);
		nki_free(k, tb);
		nki_free(k, sb);
		nki_free(k, qb);
	}
	store(k, c, sum);
}

void kernel_gemm_mxfp4(struct nki_kernel *k, unsigned int M, unsigned int N, unsigned int K)
{
	struct nki_view a = nki_input(k, "a", NKI_FLOAT4_E2M1FN_X4, K / 4, M);
	struct nki_view a_scale = nki_input(k, "a_scale", NKI_UINT8, K / 32, M);
	struct nki_view b = nki_input(k, "b", NKI_FLOAT4_E2M1FN_X4, K / 4, N);
	struct nki_view b_scale = nki_input(k, "b_scale", NKI_UINT8, K / 32, N);
	struct nki_view c = nki_output(k, "c", NKI_FLOAT32, M, N);
	struct nki_view sum = nki_psum(k, NKI_FLOAT32, M, N);

	for (unsigned int row = 0; row < K / 4; row += PARTS) {
		struct nki_view ta = load(k, a, row), sa = load_scales(k, a_scale, row / 8);
		struct nki_view tb = load(k, b, row), sb = load_scales(k, b_scale, row / 8);

		nki_nc_matmul_mx(k, sum, ta, tb, sa, sb, .accumulate = row > 0);
		nki_free(k, ta);
		nki_free(k, sa);
		nki_free(k, tb);
		nki_free(k, sb);
	}
	store(k, c, sum);
}
