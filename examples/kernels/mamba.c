// SPDX-License-Identifier: MIT
/*
 * The state space model of Mamba. A channel per partition, time along the free
 * axis: the recurrence is one scan instruction for each state, and what it is made of
 * comes from three engines.
 *
 *	h[t] = exp(delta[t] A) h[t - 1] + delta[t] u[t] B[t];	y[t] = sum of h[t] C[t]
 */
#include "kernels.h"

/* A row in every partition. */
static struct nki_view everywhere(struct nki_kernel *k, struct nki_view v, unsigned int row)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, v.num[1]);

	nki_dma_copy(k, t, nki_broadcast(k, nki_rows(k, v, row, row + 1), 0, 128));
	return t;
}

static struct nki_view load(struct nki_kernel *k, struct nki_view v, unsigned int row)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, v.num[1]);

	nki_dma_copy(k, t, nki_rows(k, v, row, row + 128));
	return t;
}

/* y += C h of one state; @decay_rate is its column of A. */
static void state(struct nki_kernel *k, struct nki_view y, struct nki_view delta, struct nki_view du,
		  struct nki_view decay_rate, struct nki_view b, struct nki_view c)
{
	unsigned int L = y.num[1];
	struct nki_view decay = nki_sbuf(k, NKI_FLOAT32, 128, L), in = nki_sbuf(k, NKI_FLOAT32, 128, L);

	nki_activation(k, decay, NKI_EXP, delta, .scale = nki_vec(decay_rate));
	nki_tensor_tensor(k, in, du, b, NKI_MULTIPLY, .engine = NKI_ENGINE_GPSIMD);
	nki_tensor_tensor_scan(k, decay, decay, in, nki_f32(0), NKI_MULTIPLY, NKI_ADD);
	nki_tensor_tensor(k, in, decay, c, NKI_MULTIPLY);
	nki_tensor_tensor(k, y, y, in, NKI_ADD);
	nki_free(k, decay);
	nki_free(k, in);
}

void kernel_mamba(struct nki_kernel *k, unsigned int channels, unsigned int states, unsigned int L)
{
	struct nki_view delta = nki_input(k, "delta", NKI_FLOAT32, channels, L);
	struct nki_view u = nki_input(k, "u", NKI_FLOAT32, channels, L);
	struct nki_view A = nki_input(k, "A", NKI_FLOAT32, channels, states);
	struct nki_view B = nki_input(k, "B", NKI_FLOAT32, states, L);
	struct nki_view C = nki_input(k, "C", NKI_FLOAT32, states, L);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, channels, L);

	for (unsigned int row = 0; row < channels; row += 128) {
		struct nki_view td = load(k, delta, row), tu = load(k, u, row), ta = load(k, A, row);
		struct nki_view ty = nki_sbuf(k, NKI_FLOAT32, 128, L);

		nki_memset(k, ty, 0);
		nki_tensor_tensor(k, tu, td, tu, NKI_MULTIPLY);
		for (unsigned int s = 0; s < states; s++) {
			struct nki_view b = everywhere(k, B, s), c = everywhere(k, C, s);

			state(k, ty, td, tu, nki_cols(k, ta, s, s + 1), b, c);
			nki_free(k, b);
			nki_free(k, c);
		}
		nki_dma_copy(k, nki_rows(k, y, row, row + 128), ty);
		nki_free(k, td);
		nki_free(k, tu);
		nki_free(k, ta);
		nki_free(k, ty);
	}
}
