/* SPDX-License-Identifier: MIT */
/*
 * Kernels that people write for this chip, in the C builder: each is one function
 * that adds a whole program to a kernel, tensors included. Written to be read and
 * copied; tests/kernels checks them against fp64 code.
 *
 * Names of tensors are those of the parameters in the comments. Shapes are
 * outermost first. Sizes must be multiples of what is said, so that the code shows
 * the idea and not the edges.
 */
#ifndef KERNELS_H
#define KERNELS_H

#include "nki.h"

/*
 * c[M, N] = at[K, M]^T b[K, N]: bf16 in, fp32 out. Blocked: 4 x 128 rows by 512
 * columns of c stay in PSUM while K is walked in chunks that are loaded ahead.
 * M and K multiples of 128, N of 512.
 */
void kernel_gemm(struct nki_kernel *k, unsigned int M, unsigned int N, unsigned int K);

/*
 * y[128, N] = softmax of the rows of x, fp32. Two passes over HBM: running maximum
 * and sum, then the result; a row need not fit into SBUF. N multiple of 2 * chunk.
 */
void kernel_softmax(struct nki_kernel *k, unsigned int N, unsigned int chunk);

/* y[R, D] = (x - mean) / sqrt(var + 1e-5) * gamma[1, D] + beta[1, D], fp32; R multiple of 128 */
void kernel_layernorm(struct nki_kernel *k, unsigned int R, unsigned int D);

/* y[R, D] = x / sqrt(mean(x^2) + 1e-5) * gamma[1, D], fp32; R multiple of 128 */
void kernel_rmsnorm(struct nki_kernel *k, unsigned int R, unsigned int D);

/*
 * o[S, D] = softmax(q k^T / sqrt(D)) v, causal: the way of flash attention, with
 * running maximum and sum. qt[D, S], kt[D, S], v[S, D] bf16, o fp32; D <= 128,
 * S multiple of 512.
 */
void kernel_attention(struct nki_kernel *k, unsigned int S, unsigned int D);

/*
 * y[S, D]: rotary embedding of x[S, D]. Halves are rotated by cos[S, D / 2], sin: fp32;
 * S multiple of 128.
 */
void kernel_rope(struct nki_kernel *k, unsigned int S, unsigned int D);

/*
 * y[128, D] = act(x w1) w2 for 128 tokens: xt[D, 128], w1[D, F], w2[F, D] bf16, y fp32.
 * gated: act is silu(x w1) * (x w3) (SwiGLU), else gelu. D multiple of 512, F of 128.
 */
void kernel_mlp(struct nki_kernel *k, unsigned int D, unsigned int F, bool gated);

/* y[T, D] = table[ids[T, 1], D]: fp32 rows by int32 number; T multiple of 128 */
void kernel_embedding(struct nki_kernel *k, unsigned int T, unsigned int V, unsigned int D);

/*
 * y[O, H - 2, W - 2]: 3 x 3 convolution of x[C, H, W] with w[C, 9, O], bf16 in, fp32 out: one
 * product for each of the nine positions, on a shifted view. C, O <= 128.
 */
void kernel_conv2d(struct nki_kernel *k, unsigned int C, unsigned int H, unsigned int W,
		   unsigned int O);

/* Step of the Adam optimiser; all in fp32. */
struct adam {
	float lr, beta1, beta2, eps;
	unsigned int step;	/* from 1 */
};

/* p, m, v[R, F] (outputs: p_new, m_new, v_new) by gradient g[R, F]; R multiple of 128 */
void kernel_adam(struct nki_kernel *k, unsigned int R, unsigned int F, struct adam opt);

/* w_new[R, F] bf16 = w[R, F] bf16 + u[R, F] fp32; R multiple of 128 */
void kernel_sr_update(struct nki_kernel *k, unsigned int R, unsigned int F);

/*
 * y[channels, L]: state space model of Mamba on delta, u[channels, L], A[channels, states],
 * B, C[states, L]; fp32; channels multiple of 128.
 */
void kernel_mamba(struct nki_kernel *k, unsigned int channels, unsigned int states, unsigned int L);

/*
 * y[128, H] fp32: for 128 tokens xt[D, 128] the two best of E experts by the scores
 * x wr[D, E] (bf16), rows of experts[E, H] fp32 weighted with their softmax; chosen[128, 2]:
 * their numbers. D multiple of 128; 8 <= E <= 512.
 */
void kernel_moe_router(struct nki_kernel *k, unsigned int D, unsigned int E, unsigned int H);

/* token[128, 1] uint32: place of the largest of logits[128, V] fp32; 8 <= V < 2^24 */
void kernel_argmax(struct nki_kernel *k, unsigned int V);

/*
 * c[M, N] fp32 = a b, contracted over K, in MXFP8 (Trn3): a[K / 4, M] packed E4M3 with
 * a_scale[K / 32, M] E8M0; b[K / 4, N, 4] bf16, quantised on the chip. M <= 128, even;
 * N <= 512; K multiple of 512.
 */
void kernel_gemm_mxfp8(struct nki_kernel *k, unsigned int M, unsigned int N, unsigned int K);

/* The same in MXFP4: a, b packed E2M1 with a_scale, b_scale. */
void kernel_gemm_mxfp4(struct nki_kernel *k, unsigned int M, unsigned int N, unsigned int K);

#endif /* KERNELS_H */
