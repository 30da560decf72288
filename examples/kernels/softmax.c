// SPDX-License-Identifier: MIT
/*
 * Softmax of rows that do not fit into SBUF. The first pass keeps for each row the
 * maximum so far and the sum of exponentials relative to it, corrected whenever the
 * maximum grows; the second pass writes the result.
 */
#include "kernels.h"

struct state {
	struct nki_view max, sum;	/* (128, 1) fp32 */
};

struct buffers {
	struct nki_view x, e, max, grown, part;
};

static struct buffers buffers(struct nki_kernel *k, unsigned int chunk)
{
	return (struct buffers){
		.x = nki_sbuf(k, NKI_FLOAT32, 128, chunk),
		.e = nki_sbuf(k, NKI_FLOAT32, 128, chunk),
		.max = nki_sbuf(k, NKI_FLOAT32, 128, 1),
		.grown = nki_sbuf(k, NKI_FLOAT32, 128, 1),
		.part = nki_sbuf(k, NKI_FLOAT32, 128, 1),
	};
}

/* Columns @i + offset ... of a row */
static struct nki_view part(struct nki_kernel *k, struct nki_view v, struct nki_reg i,
			    unsigned int offset, unsigned int chunk)
{
	return nki_dyn(k, nki_cols(k, v, offset, offset + chunk), 1, i);
}

/* sum = sum * e^(max - new) + sum of e^(x - new) */
static void update(struct nki_kernel *k, struct state *s, struct buffers *b, struct nki_view src)
{
	nki_dma_copy(k, b->x, src);
	nki_tensor_reduce(k, b->max, NKI_MAXIMUM, b->x, 1);
	nki_tensor_tensor(k, b->max, b->max, s->max, NKI_MAXIMUM);
	nki_tensor_tensor(k, b->grown, s->max, b->max, NKI_SUBTRACT);
	nki_activation(k, b->grown, NKI_EXP, b->grown);
	nki_tensor_copy(k, s->max, b->max);
	nki_tensor_scalar(k, b->max, b->max, NKI_MULTIPLY, nki_f32(-1));
	nki_activation_reduce(k, b->e, NKI_EXP, b->x, NKI_ADD, b->part, .bias = nki_vec(b->max));
	nki_scalar_tensor_tensor(k, s->sum, s->sum, NKI_MULTIPLY, nki_vec(b->grown), NKI_ADD,
				 b->part);
}

static void result(struct nki_kernel *k, struct state *s, struct buffers *b, struct nki_view dst,
		   struct nki_view src)
{
	nki_dma_copy(k, b->x, src);
	nki_activation(k, b->e, NKI_EXP, b->x, .bias = nki_vec(s->max));
	nki_tensor_scalar(k, b->e, b->e, NKI_MULTIPLY, nki_vec(s->sum));
	nki_dma_copy(k, dst, b->e);
}

void kernel_softmax(struct nki_kernel *k, unsigned int N, unsigned int chunk)
{
	struct nki_view x = nki_input(k, "x", NKI_FLOAT32, 128, N);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, 128, N);
	struct buffers b[2] = { buffers(k, chunk), buffers(k, chunk) };
	struct state s = {
		.max = nki_sbuf(k, NKI_FLOAT32, 128, 1),
		.sum = nki_sbuf(k, NKI_FLOAT32, 128, 1),
	};

	nki_memset(k, s.max, -3e38);
	nki_memset(k, s.sum, 0);
	nki_for(k, i, 0, N, 2 * chunk) {
		update(k, &s, &b[0], part(k, x, i, 0, chunk));
		update(k, &s, &b[1], part(k, x, i, chunk, chunk));
	}
	nki_tensor_scalar(k, s.max, s.max, NKI_MULTIPLY, nki_f32(-1));
	nki_reciprocal(k, s.sum, s.sum);
	nki_for(k, j, 0, N, 2 * chunk) {
		result(k, &s, &b[0], part(k, y, j, 0, chunk), part(k, x, j, 0, chunk));
		result(k, &s, &b[1], part(k, y, j, chunk, chunk), part(k, x, j, chunk, chunk));
	}
}
