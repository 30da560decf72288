// SPDX-License-Identifier: MIT
/*
 * The program that trains: one execution is one epoch, the loop over the batches
 * runs on the chip, and the weights stay in SBUF from the first batch to the last.
 *
 * Semaphores do not appear here: the builder places them from the data that the
 * calls name. Which engine works at the same time as which other follows from that.
 */
#include "program.h"

/**
 * struct schedule - what differs from step to step, one column a step, in SBUF
 * @order: [128, steps + 1] int32: images of the batch; the last column is only
 *	fetched ahead
 * @label: [128, steps] uint8
 * @rate: [128, steps] fp32: learning rate, the same in every partition
 * @loss: [1, steps] fp32: result
 */
struct schedule {
	struct nki_view order, label, rate, loss;
};

static struct schedule schedule_load(struct nki_kernel *k, uint32_t steps)
{
	struct nki_view order = nki_input(k, "order", NKI_INT32, BATCH, steps + 1);
	struct nki_view label = nki_input(k, "label", NKI_UINT8, BATCH, steps);
	struct nki_view rate = nki_input(k, "rate", NKI_FLOAT32, 1, steps);
	struct schedule s = {
		.order = nki_sbuf(k, NKI_INT32, BATCH, steps + 1),
		.label = nki_sbuf(k, NKI_UINT8, BATCH, steps),
		.rate = nki_sbuf(k, NKI_FLOAT32, BATCH, steps),
		.loss = nki_sbuf(k, NKI_FLOAT32, 1, steps),
	};

	nki_dma_copy(k, s.order, order);
	nki_dma_copy(k, s.label, label);
	nki_dma_copy(k, s.rate, nki_broadcast(k, rate, 0, BATCH));
	return s;
}

/* Column @first + @step of a tile: the register is added to the address. */
static struct nki_view column(struct nki_kernel *k, struct nki_view tile, struct nki_reg step,
			      int first)
{
	return nki_dyn(k, nki_cols(k, tile, first, first + 1), 1, step);
}

/* Fetch a batch: row n of @raw is image number index[n]. */
static void fetch(struct nki_kernel *k, struct nki_view raw, struct nki_view images,
		  struct nki_view numbers)
{
	struct nki_view index = nki_sbuf(k, NKI_INT32, BATCH, 1);

	nki_tensor_copy(k, index, numbers, .engine = NKI_ENGINE_GPSIMD);
	nki_dma_copy(k, raw, nki_gather(k, images, index), .engine = NKI_ENGINE_GPSIMD);
}

/* (x / 255 - mean) / std, from bytes to bf16. */
static void normalise(struct nki_kernel *k, struct nki_view x, struct nki_view raw)
{
	nki_tensor_scalar(k, x, raw, NKI_MULTIPLY, nki_f32(1.0f / (255.0f * MNIST_STD)),
			  .op1 = NKI_SUBTRACT, .operand1 = nki_f32(MNIST_MEAN / MNIST_STD),
			  .engine = NKI_ENGINE_GPSIMD);
}

/* 1 in the column of the label, else 0. */
static struct nki_view one_hot(struct nki_kernel *k, struct nki_view classes, struct nki_view labels)
{
	struct nki_view label = nki_sbuf(k, NKI_FLOAT32, BATCH, 1);
	struct nki_view hot = nki_sbuf(k, NKI_FLOAT32, BATCH, CLASSES);

	nki_tensor_copy(k, label, labels);
	nki_tensor_scalar(k, hot, classes, NKI_EQUAL, nki_vec(label));
	return hot;
}

/*
 * Mean of log(sum(exp(z))) - z[label] over the batch. The mean over partitions is a
 * product with a column of 1 / 128.
 */
static void loss(struct nki_kernel *k, struct nki_view result, struct nki_view z,
		 struct nki_view neg_max, struct nki_view sum, struct nki_view hot,
		 struct nki_view mean)
{
	struct nki_view picked = nki_sbuf(k, NKI_FLOAT32, BATCH, CLASSES);
	struct nki_view chosen = nki_sbuf(k, NKI_FLOAT32, BATCH, 1);
	struct nki_view each = nki_sbuf(k, NKI_FLOAT32, BATCH, 1);
	struct nki_view total = nki_psum(k, NKI_FLOAT32, 1, 1);

	nki_scalar_tensor_tensor(k, picked, z, NKI_ADD, nki_vec(neg_max), NKI_MULTIPLY, hot);
	nki_tensor_reduce(k, chosen, NKI_ADD, picked, 1);
	nki_activation(k, each, NKI_LOG, sum);
	nki_tensor_tensor(k, each, each, chosen, NKI_SUBTRACT);
	nki_nc_matmul(k, total, each, mean);
	nki_tensor_copy(k, result, total);
	nki_free(k, total);
}

/* dz3 = (softmax - one_hot) / batch, as bf16. */
static struct nki_view loss_gradient(struct nki_kernel *k, struct nki_view e, struct nki_view sum,
				     struct nki_view hot)
{
	struct nki_view inverse = nki_sbuf(k, NKI_FLOAT32, BATCH, 1);
	struct nki_view d = nki_sbuf(k, NKI_FLOAT32, BATCH, CLASSES);
	struct nki_view dz = nki_sbuf(k, NKI_BFLOAT16, BATCH, CLASSES);

	nki_reciprocal(k, inverse, sum);
	nki_scalar_tensor_tensor(k, d, e, NKI_MULTIPLY, nki_vec(inverse), NKI_SUBTRACT, hot);
	nki_tensor_scalar(k, dz, d, NKI_MULTIPLY, nki_f32(1.0f / BATCH));
	return dz;
}

/*
 * Through one layer backwards: dz [hidden, batch] of the layer below, where w is
 * [below, above] and dz_above is [above, batch]. Where relu gave 0, nothing passes.
 */
static struct nki_view back(struct nki_kernel *k, struct nki_view w, struct nki_view dz_above,
			    struct nki_view a)
{
	struct nki_view da = nki_psum(k, NKI_FLOAT32, HIDDEN, BATCH);
	struct nki_view dz = nki_sbuf(k, NKI_BFLOAT16, HIDDEN, BATCH);

	nki_nc_matmul(k, da, transposed(k, w), dz_above);
	nki_scalar_tensor_tensor(k, dz, a, NKI_GREATER, nki_f32(0), NKI_MULTIPLY, da);
	nki_free(k, da);
	return dz;
}

static struct tiles gradients_alloc(struct nki_kernel *k)
{
	return (struct tiles){
		.w1 = nki_psum(k, NKI_FLOAT32, CHUNK, CHUNKS, HIDDEN),
		.b1 = nki_sbuf(k, NKI_FLOAT32, HIDDEN, 1),
		.w2 = nki_psum(k, NKI_FLOAT32, HIDDEN, HIDDEN),
		.b2 = nki_sbuf(k, NKI_FLOAT32, HIDDEN, 1),
		.w3 = nki_psum(k, NKI_FLOAT32, HIDDEN, CLASSES),
		.b3 = nki_psum(k, NKI_FLOAT32, 1, CLASSES),
	};
}

static void backward(struct nki_kernel *k, const struct tiles *grad, const struct operands *o,
		     const struct hidden *h, struct nki_view x, struct nki_view dz3)
{
	struct nki_view dz2, dz1, dz1_rows;

	/* Weight gradients sum over the batch, which must then lie across partitions. */
	nki_nc_matmul(k, grad->w3, transposed(k, h->a2), dz3);
	nki_nc_matmul(k, grad->b3, o->ones, dz3);

	dz2 = back(k, o->w3, transposed(k, dz3), h->a2);
	nki_nc_matmul(k, grad->w2, transposed(k, h->a1), transposed(k, dz2));
	nki_tensor_reduce(k, grad->b2, NKI_ADD, dz2, 1);

	dz1 = back(k, o->w2, dz2, h->a1);
	dz1_rows = transposed(k, dz1);
	nki_tensor_reduce(k, grad->b1, NKI_ADD, dz1, 1);
	for (int c = 0; c < CHUNKS; c++)
		nki_nc_matmul(k, nki_index(k, grad->w1, 1, c),
			      nki_slice_step(k, x, 1, c, PIXELS, CHUNKS), dz1_rows);
}

/* v = 0.9 v + g; w = w - rate v. @neg_rate: [128, 1] */
static void update(struct nki_kernel *k, struct nki_view w, struct nki_view v, struct nki_view g,
		   struct nki_view neg_rate)
{
	struct nki_view rate = nki_rows(k, neg_rate, 0, w.num[0]);

	nki_scalar_tensor_tensor(k, v, v, NKI_MULTIPLY, nki_f32(MNIST_MOMENTUM), NKI_ADD, g);
	nki_scalar_tensor_tensor(k, w, v, NKI_MULTIPLY, nki_vec(rate), NKI_ADD, w);
}

static void update_all(struct nki_kernel *k, const struct tiles *w, const struct tiles *v,
		       const struct tiles *g, struct nki_view rate)
{
	struct nki_view neg_rate = nki_sbuf(k, NKI_FLOAT32, BATCH, 1);

	nki_tensor_scalar(k, neg_rate, rate, NKI_MULTIPLY, nki_f32(-1));
	update(k, w->w3, v->w3, g->w3, neg_rate);
	update(k, w->b3, v->b3, g->b3, neg_rate);
	update(k, w->w2, v->w2, g->w2, neg_rate);
	update(k, w->b2, v->b2, g->b2, neg_rate);
	update(k, w->w1, v->w1, g->w1, neg_rate);
	update(k, w->b1, v->b1, g->b1, neg_rate);
}

/* Constants of every step. */
static struct nki_view class_numbers(struct nki_kernel *k)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, BATCH, CLASSES);

	nki_iota(k, t, NKI_PATTERN({1, CLASSES}));
	return t;
}

static struct nki_view column_of(struct nki_kernel *k, float value)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, BATCH, 1);

	nki_memset(k, t, value);
	return t;
}

struct nki_kernel *build_train(const char *arch, unsigned int steps)
{
	struct nki_kernel *k = nki_kernel_new("mnist-train", arch);
	struct nki_view net_in = nki_input(k, "net_in", NKI_FLOAT32, 1, NET_FLOATS);
	struct nki_view velocity_in = nki_input(k, "velocity_in", NKI_FLOAT32, 1, NET_FLOATS);
	struct nki_view images = nki_input(k, "images", NKI_UINT8, IMAGES, PIXELS);
	struct nki_view net_out = nki_output(k, "net", NKI_FLOAT32, 1, NET_FLOATS);
	struct nki_view velocity_out = nki_output(k, "velocity", NKI_FLOAT32, 1, NET_FLOATS);
	struct nki_view loss_out = nki_output(k, "loss", NKI_FLOAT32, 1, steps);
	struct nki_view history = nki_output(k, "history", NKI_FLOAT32, steps, NET_FLOATS);

	struct tiles net = net_alloc(k), velocity = net_alloc(k);
	struct operands o = operands_alloc(k);
	struct schedule s = schedule_load(k, steps);
	struct nki_view classes = class_numbers(k), mean = column_of(k, 1.0f / BATCH);
	struct nki_view raw = nki_sbuf(k, NKI_UINT8, BATCH, PIXELS);
	struct nki_view x = nki_sbuf(k, NKI_BFLOAT16, BATCH, PIXELS), xt = pixels_alloc(k, BATCH);

	fetch(k, raw, images, nki_cols(k, s.order, 0, 1));
	net_copy(k, net, net_views(k, net_in));
	net_copy(k, velocity, net_views(k, velocity_in));
	operands_update(k, &o, &net);
	normalise(k, x, raw);
	pixels_to_partitions(k, xt, x);

	nki_for(k, i, 0, (int32_t)steps, 1) {
		struct nki_view hot, e, sum, neg_max, dz3;
		struct tiles grad = gradients_alloc(k);
		struct hidden h;

		/* The bytes are free since they are normalised: fetch the next batch. */
		fetch(k, raw, images, column(k, s.order, i, 1));
		hot = one_hot(k, classes, column(k, s.label, i, 0));

		/* The weights as they are before this step, for the host to check. */
		net_copy(k, net_views(k, nki_dyn(k, nki_rows(k, history, 0, 1), 0, i)), net);

		h = forward(k, &o, &net, xt);
		softmax_parts(k, h.z3, &e, &sum, &neg_max);
		dz3 = loss_gradient(k, e, sum, hot);
		loss(k, column(k, s.loss, i, 0), h.z3, neg_max, sum, hot, mean);
		nki_free(k, h.z3);

		backward(k, &grad, &o, &h, x, dz3);

		/*
		 * An engine takes its instructions in the order in which they are written
		 * here. GpSimd, tensor and scalar engine prepare the next batch while the
		 * vector engine, the busiest, updates the weights: so this comes first.
		 */
		normalise(k, x, raw);
		pixels_to_partitions(k, xt, x);
		update_all(k, &net, &velocity, &grad, column(k, s.rate, i, 0));
		operands_update(k, &o, &net);
	}

	nki_dma_copy(k, loss_out, s.loss);
	net_copy(k, net_views(k, net_out), net);
	net_copy(k, net_views(k, velocity_out), velocity);
	return k;
}
