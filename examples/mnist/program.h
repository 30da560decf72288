/* SPDX-License-Identifier: MIT */
/*
 * The two programs for the chip. The forward pass is the same in both.
 *
 * How things lie in the core:
 *
 * - The tensor engine multiplies stationary[K, M]^T by moving[K, N] with K, the
 *   dimension that is summed over, across the partitions. So hidden activations
 *   are kept transposed, [hidden, batch]: then they are the next layer's moving
 *   operand as they are, and a bias is one value per partition, which the scalar
 *   engine adds for free.
 * - 784 pixels do not fit 128 partitions; they are 112 x 7. Pixel p * 7 + c goes to
 *   partition p of chunk c (and not c * 112 + p), because then the 7 rows of w1 that
 *   a partition holds are neighbours in memory: one long DMA row instead of seven
 *   short ones.
 */
#ifndef MNIST_PROGRAM_H
#define MNIST_PROGRAM_H

#include "mnist.h"
#include "nki.h"

enum {
	CHUNKS = 7,
	CHUNK = PIXELS / CHUNKS,	/* 112 */
};

/* Where the members of struct net begin, in floats. */
#define NET_AT(member)	((uint32_t)(offsetof(struct net, member) / sizeof(float)))
#define NET_END(member)	(NET_AT(member) + (uint32_t)(sizeof(((struct net *)0)->member) / sizeof(float)))

/**
 * struct tiles - the net in SBUF, fp32
 * @w1: [112, 7, 128]
 * @b1: [128, 1]
 * @w2: [128, 128]
 * @b2: [128, 1]
 * @w3: [128, 10]
 * @b3: [1, 10]
 */
struct tiles {
	struct nki_view w1, b1, w2, b2, w3, b3;
};

/**
 * struct operands - what the tensor engine multiplies with: bf16 copies
 * @ones: [128, 1]
 * @one_row: [1, 128]
 */
struct operands {
	struct nki_view w1, w2, w3, b3;
	struct nki_view ones, one_row;
};

/**
 * struct hidden - what the backward pass needs of the forward pass
 * @a1: [128 hidden, batch] bf16, after relu
 * @a2: the same of the second layer
 * @z3: [batch, 10] fp32 in PSUM
 */
struct hidden {
	struct nki_view a1, a2, z3;
};

/* A tensor of NET_FLOATS in HBM, or one row of many, as views shaped like the tiles. */
struct tiles net_views(struct nki_kernel *k, struct nki_view flat);
struct tiles net_alloc(struct nki_kernel *k);
void net_copy(struct nki_kernel *k, struct tiles dst, struct tiles src);

struct operands operands_alloc(struct nki_kernel *k);
/* bf16 copies of the weights, again after each change. */
void operands_update(struct nki_kernel *k, const struct operands *o, const struct tiles *net);

/* Rows to columns: src [P, F] bf16 in SBUF becomes [F, P] bf16 in SBUF. */
struct nki_view transposed(struct nki_kernel *k, struct nki_view src);

/* x [batch, 784] to xt [112, 7, batch]: pixel p * 7 + c to partition p of chunk c; bf16. */
struct nki_view pixels_alloc(struct nki_kernel *k, uint32_t batch);
void pixels_to_partitions(struct nki_kernel *k, struct nki_view xt, struct nki_view x);

/* @xt: normalised pixels, by partitions. */
struct hidden forward(struct nki_kernel *k, const struct operands *o, const struct tiles *net,
		      struct nki_view xt);

/**
 * softmax() - e = exp(z - max), and its sum, by rows
 * @e: set to [batch, 10] fp32
 * @sum: set to [batch, 1]
 * @neg_max: set to [batch, 1]: -max
 */
void softmax_parts(struct nki_kernel *k, struct nki_view z, struct nki_view *e,
		   struct nki_view *sum, struct nki_view *neg_max);

/**
 * build_train() - the program that trains @steps steps
 * @arch: "trn1", "trn2", ...
 *
 * Arguments: inputs net_in, velocity_in, images, order, label, rate; outputs net,
 * velocity, loss, history (see train.c).
 *
 * Return: kernel, checked by the caller's nki_build().
 */
struct nki_kernel *build_train(const char *arch, unsigned int steps);

/**
 * build_forward() - the program that classifies
 * @net: weights, stored in the NEFF
 * @batch: images at once, 1 to 128
 *
 * Input "image" [batch, 28, 28] fp32, normalised; output "probability" [batch, 10].
 */
struct nki_kernel *build_forward(const char *arch, const struct net *net, unsigned int batch);

#endif /* MNIST_PROGRAM_H */
