// SPDX-License-Identifier: MIT
/* Normalisation of rows: a row per partition, so a row's sums are free-axis reductions. */
#include "kernels.h"

#define EPS 1e-5f

/* A row vector in every partition: the DMA reads it 128 times. */
static struct nki_view everywhere(struct nki_kernel *k, const char *name, unsigned int D)
{
	struct nki_view v = nki_input(k, name, NKI_FLOAT32, 1, D);
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, D);

	nki_dma_copy(k, t, nki_broadcast(k, v, 0, 128));
	return t;
}

/* scale (128, 1) = 1 / sqrt(sum / D + eps) */
static void inverse_root(struct nki_kernel *k, struct nki_view sum, unsigned int D)
{
	nki_tensor_scalar(k, sum, sum, NKI_MULTIPLY, nki_f32(1.0f / D), .op1 = NKI_ADD,
			  .operand1 = nki_f32(EPS));
	nki_activation(k, sum, NKI_RSQRT, sum);
}

static void rms_rows(struct nki_kernel *k, struct nki_view y, struct nki_view x,
		     struct nki_view gamma)
{
	unsigned int D = x.num[1];
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, D), sq = nki_sbuf(k, NKI_FLOAT32, 128, D);
	struct nki_view sum = nki_sbuf(k, NKI_FLOAT32, 128, 1);

	nki_dma_copy(k, t, x);
	nki_activation_reduce(k, sq, NKI_SQUARE, t, NKI_ADD, sum);
	inverse_root(k, sum, D);
	nki_scalar_tensor_tensor(k, t, t, NKI_MULTIPLY, nki_vec(sum), NKI_MULTIPLY, gamma);
	nki_dma_copy(k, y, t);
	nki_free(k, t);
	nki_free(k, sq);
	nki_free(k, sum);
}

void kernel_rmsnorm(struct nki_kernel *k, unsigned int R, unsigned int D)
{
	struct nki_view x = nki_input(k, "x", NKI_FLOAT32, R, D);
	struct nki_view gamma = everywhere(k, "gamma", D);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, R, D);

	for (unsigned int r = 0; r < R; r += 128)
		rms_rows(k, nki_rows(k, y, r, r + 128), nki_rows(k, x, r, r + 128), gamma);
}

static void layer_rows(struct nki_kernel *k, struct nki_view y, struct nki_view x,
		       struct nki_view gamma, struct nki_view beta)
{
	unsigned int D = x.num[1];
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, D), sq = nki_sbuf(k, NKI_FLOAT32, 128, D);
	struct nki_view mean = nki_sbuf(k, NKI_FLOAT32, 128, 1);
	struct nki_view sum = nki_sbuf(k, NKI_FLOAT32, 128, 1);

	nki_dma_copy(k, t, x);
	nki_tensor_reduce(k, mean, NKI_ADD, t, 1);
	nki_tensor_scalar(k, mean, mean, NKI_MULTIPLY, nki_f32(1.0f / D));
	nki_tensor_scalar(k, t, t, NKI_SUBTRACT, nki_vec(mean));
	nki_activation_reduce(k, sq, NKI_SQUARE, t, NKI_ADD, sum);
	inverse_root(k, sum, D);
	nki_scalar_tensor_tensor(k, t, t, NKI_MULTIPLY, nki_vec(sum), NKI_MULTIPLY, gamma);
	nki_tensor_tensor(k, t, t, beta, NKI_ADD);
	nki_dma_copy(k, y, t);
	nki_free(k, t);
	nki_free(k, sq);
	nki_free(k, mean);
	nki_free(k, sum);
}

void kernel_layernorm(struct nki_kernel *k, unsigned int R, unsigned int D)
{
	struct nki_view x = nki_input(k, "x", NKI_FLOAT32, R, D);
	struct nki_view gamma = everywhere(k, "gamma", D), beta = everywhere(k, "beta", D);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, R, D);

	for (unsigned int r = 0; r < R; r += 128)
		layer_rows(k, nki_rows(k, y, r, r + 128), nki_rows(k, x, r, r + 128), gamma, beta);
}
