// SPDX-License-Identifier: MIT
/*
 * Greedy sampling: the most likely of V tokens for each of 128 sequences. The
 * search takes 16,384 elements at most, so a vocabulary is searched in parts; the first
 * of equal values wins, as in the reference everybody compares with.
 */
#include "kernels.h"

enum { ROWS = 128, PART = 8192 };

struct winner {
	struct nki_view value, at;	/* (128, 1): fp32, and the index as fp32 */
};

/* Largest value and its place in a part; indices below 2^24 are exact in fp32. */
static void part(struct nki_kernel *k, struct winner *w, struct nki_view logits, unsigned int first)
{
	unsigned int n = logits.num[1];
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, ROWS, n), top = nki_sbuf(k, NKI_FLOAT32, ROWS, 8);
	struct nki_view found = nki_sbuf(k, NKI_UINT32, ROWS, 8), at = nki_sbuf(k, NKI_FLOAT32, ROWS, 1);
	struct nki_view better = nki_sbuf(k, NKI_UINT8, ROWS, 1);

	nki_dma_copy(k, t, logits);
	nki_max8(k, top, t);
	nki_nc_find_index8(k, found, t, top);
	nki_tensor_copy(k, at, nki_cols(k, found, 0, 1));
	nki_tensor_scalar(k, at, at, NKI_ADD, nki_f32(first));
	nki_tensor_tensor(k, better, nki_cols(k, top, 0, 1), w->value, NKI_GREATER);
	nki_tensor_copy_predicated(k, w->value, nki_cols(k, top, 0, 1), better);
	nki_tensor_copy_predicated(k, w->at, at, better);
	nki_free(k, t);
	nki_free(k, top);
	nki_free(k, found);
	nki_free(k, at);
	nki_free(k, better);
}

void kernel_argmax(struct nki_kernel *k, unsigned int V)
{
	struct nki_view logits = nki_input(k, "logits", NKI_FLOAT32, ROWS, V);
	struct nki_view token = nki_output(k, "token", NKI_UINT32, ROWS, 1);
	struct nki_view out = nki_sbuf(k, NKI_UINT32, ROWS, 1);
	struct winner w = {
		.value = nki_sbuf(k, NKI_FLOAT32, ROWS, 1), .at = nki_sbuf(k, NKI_FLOAT32, ROWS, 1),
	};

	nki_memset(k, w.value, -3e38);
	nki_memset(k, w.at, 0);
	for (unsigned int first = 0; first < V; first += PART) {
		unsigned int end = first + PART < V ? first + PART : V;

		part(k, &w, nki_cols(k, logits, first, end), first);
	}
	nki_tensor_copy(k, out, w.at);
	nki_dma_copy(k, token, out);
}
