// SPDX-License-Identifier: MIT
/*
 * The forward pass, and the program that classifies with it.
 */
#include "program.h"

/* Part of a flat tensor [..., NET_FLOATS], seen as [rows, ...]. */
#define PART(member) nki_cols(k, flat, NET_AT(member), NET_END(member))

struct tiles net_views(struct nki_kernel *k, struct nki_view flat)
{
	return (struct tiles){
		.w1 = nki_reshape(k, PART(w1), CHUNK, CHUNKS, HIDDEN),
		.b1 = nki_reshape(k, PART(b1), HIDDEN, 1),
		.w2 = nki_reshape(k, PART(w2), HIDDEN, HIDDEN),
		.b2 = nki_reshape(k, PART(b2), HIDDEN, 1),
		.w3 = nki_reshape(k, PART(w3), HIDDEN, CLASSES),
		.b3 = nki_reshape(k, PART(b3), 1, CLASSES),
	};
}

struct tiles net_alloc(struct nki_kernel *k)
{
	return (struct tiles){
		.w1 = nki_sbuf(k, NKI_FLOAT32, CHUNK, CHUNKS, HIDDEN),
		.b1 = nki_sbuf(k, NKI_FLOAT32, HIDDEN, 1),
		.w2 = nki_sbuf(k, NKI_FLOAT32, HIDDEN, HIDDEN),
		.b2 = nki_sbuf(k, NKI_FLOAT32, HIDDEN, 1),
		.w3 = nki_sbuf(k, NKI_FLOAT32, HIDDEN, CLASSES),
		.b3 = nki_sbuf(k, NKI_FLOAT32, 1, CLASSES),
	};
}

void net_copy(struct nki_kernel *k, struct tiles dst, struct tiles src)
{
	nki_dma_copy(k, dst.w1, src.w1);
	nki_dma_copy(k, dst.b1, src.b1);
	nki_dma_copy(k, dst.w2, src.w2);
	nki_dma_copy(k, dst.b2, src.b2);
	nki_dma_copy(k, dst.w3, src.w3);
	nki_dma_copy(k, dst.b3, src.b3);
}

struct operands operands_alloc(struct nki_kernel *k)
{
	struct operands o = {
		.w1 = nki_sbuf(k, NKI_BFLOAT16, CHUNK, CHUNKS, HIDDEN),
		.w2 = nki_sbuf(k, NKI_BFLOAT16, HIDDEN, HIDDEN),
		.w3 = nki_sbuf(k, NKI_BFLOAT16, HIDDEN, CLASSES),
		.b3 = nki_sbuf(k, NKI_BFLOAT16, 1, CLASSES),
		.ones = nki_sbuf(k, NKI_BFLOAT16, BATCH, 1),
		.one_row = nki_sbuf(k, NKI_BFLOAT16, 1, BATCH),
	};

	nki_memset(k, o.ones, 1);
	nki_memset(k, o.one_row, 1);
	return o;
}

/* The scalar engine casts the large one, the vector engine the others. */
void operands_update(struct nki_kernel *k, const struct operands *o, const struct tiles *net)
{
	nki_activation(k, o->w1, NKI_COPY, net->w1);
	nki_tensor_copy(k, o->w2, net->w2);
	nki_tensor_copy(k, o->w3, net->w3);
	nki_tensor_copy(k, o->b3, net->b3);
}

/* The tensor engine transposes into PSUM: in the data's type, before Trn2 in fp32. */
static enum nki_dtype transpose_type(struct nki_kernel *k)
{
	return nki_nc_version(k) == 2 ? NKI_FLOAT32 : NKI_BFLOAT16;
}

struct nki_view transposed(struct nki_kernel *k, struct nki_view src)
{
	struct nki_view psum = nki_psum(k, transpose_type(k), src.num[1], src.num[0]);
	struct nki_view dst = nki_sbuf(k, NKI_BFLOAT16, src.num[1], src.num[0]);

	nki_nc_transpose(k, psum, src);
	nki_tensor_copy(k, dst, psum);
	nki_free(k, psum);
	return dst;
}

struct nki_view pixels_alloc(struct nki_kernel *k, uint32_t batch)
{
	return nki_sbuf(k, NKI_BFLOAT16, CHUNK, CHUNKS, batch);
}

void pixels_to_partitions(struct nki_kernel *k, struct nki_view xt, struct nki_view x)
{
	uint32_t batch = x.num[0];
	/* For a full batch, whatever it is: a transpose must not straddle two banks. */
	struct nki_view whole = nki_psum(k, transpose_type(k), CHUNK, CHUNKS, BATCH);
	struct nki_view psum = nki_cols(k, whole, 0, batch);

	for (int c = 0; c < CHUNKS; c++)
		nki_nc_transpose(k, nki_index(k, psum, 1, c),
				 nki_slice_step(k, x, 1, c, PIXELS, CHUNKS));
	nki_activation(k, xt, NKI_COPY, psum);
	nki_free(k, whole);
}

/* relu(w^T x + b), w and x by chunks of partitions, as [M, batch] in bf16. */
static struct nki_view layer(struct nki_kernel *k, uint32_t batch, struct nki_view w,
			     struct nki_view x, struct nki_view bias, int chunks)
{
	struct nki_view z = nki_psum(k, NKI_FLOAT32, HIDDEN, batch);
	struct nki_view a = nki_sbuf(k, NKI_BFLOAT16, HIDDEN, batch);

	for (int c = 0; c < chunks; c++) {
		struct nki_view wc = chunks > 1 ? nki_index(k, w, 1, c) : w;
		struct nki_view xc = chunks > 1 ? nki_index(k, x, 1, c) : x;

		nki_nc_matmul(k, z, wc, xc, .accumulate = c > 0);
	}
	nki_activation(k, a, NKI_RELU, z, .bias = nki_vec(bias));
	nki_free(k, z);
	return a;
}

struct hidden forward(struct nki_kernel *k, const struct operands *o, const struct tiles *net,
		      struct nki_view xt)
{
	uint32_t batch = xt.num[2];
	struct hidden h;

	h.a1 = layer(k, batch, o->w1, xt, net->b1, CHUNKS);
	h.a2 = layer(k, batch, o->w2, h.a1, net->b2, 1);

	/*
	 * The last layer has the batch across the partitions: softmax works on rows.
	 * There the bias differs along the row, so it is one more product: 1 * b3.
	 */
	h.z3 = nki_psum(k, NKI_FLOAT32, batch, CLASSES);
	nki_nc_matmul(k, h.z3, h.a2, o->w3);
	nki_nc_matmul(k, h.z3, nki_cols(k, o->one_row, 0, batch), o->b3, .accumulate = true);
	return h;
}

void softmax_parts(struct nki_kernel *k, struct nki_view z, struct nki_view *e,
		   struct nki_view *sum, struct nki_view *neg_max)
{
	uint32_t batch = z.num[0];

	*e = nki_sbuf(k, NKI_FLOAT32, batch, CLASSES);
	*sum = nki_sbuf(k, NKI_FLOAT32, batch, 1);
	*neg_max = nki_sbuf(k, NKI_FLOAT32, batch, 1);
	nki_tensor_reduce(k, *neg_max, NKI_MAXIMUM, z, 1, .negate = true);
	nki_activation_reduce(k, *e, NKI_EXP, z, NKI_ADD, *sum, .bias = nki_vec(*neg_max));
}

struct nki_kernel *build_forward(const char *arch, const struct net *net, unsigned int batch)
{
	struct nki_kernel *k = nki_kernel_new("digits", arch);
	struct nki_view image = nki_input(k, "image", NKI_FLOAT32, batch, SIDE, SIDE);
	struct nki_view result = nki_output(k, "probability", NKI_FLOAT32, batch, CLASSES);
	struct nki_view weights = nki_const(k, "net", NKI_FLOAT32, net, 1, NET_FLOATS);
	struct nki_view pixels = nki_sbuf(k, NKI_FLOAT32, batch, PIXELS);
	struct nki_view x = nki_sbuf(k, NKI_BFLOAT16, batch, PIXELS);
	struct nki_view xt = pixels_alloc(k, batch);
	struct nki_view e, sum, neg_max, inverse = nki_sbuf(k, NKI_FLOAT32, batch, 1);
	struct tiles tiles = net_alloc(k);
	struct operands o = operands_alloc(k);
	struct hidden h;

	nki_dma_copy(k, pixels, nki_reshape(k, image, batch, PIXELS));
	net_copy(k, tiles, net_views(k, weights));
	operands_update(k, &o, &tiles);
	nki_tensor_copy(k, x, pixels);

	pixels_to_partitions(k, xt, x);
	h = forward(k, &o, &tiles, xt);
	softmax_parts(k, h.z3, &e, &sum, &neg_max);
	nki_reciprocal(k, inverse, sum);
	nki_tensor_scalar(k, e, e, NKI_MULTIPLY, nki_vec(inverse));
	nki_dma_copy(k, result, e);

	nki_info_json(k, "{\"image\": {\"mean\": 0.1307, \"std\": 0.3081, \"invert\": \"auto\", \"box\": 20},"
		      " \"labels\": [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"]}");
	return k;
}
