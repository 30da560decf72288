/* SPDX-License-Identifier: MIT */
/*
 * A digit classifier that trains on a NeuronCore: shared declarations.
 *
 *	data.c		the images, the split, the order of the batches
 *	train.c		the program that trains one epoch on the chip
 *	forward.c	the program that classifies
 *	session.c	libnrt: load a program, bind tensors, execute
 *	host.c		the same mathematics in plain fp32 C, to check against
 *	record.c	a run in a file
 *	verify.c	every step's loss recomputed by host.c
 *	rate.c		modelled time of a step
 *	show.c		what is printed
 *	mnist.c		main()
 */
#ifndef MNIST_H
#define MNIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIDE = 28,
	PIXELS = SIDE * SIDE,	/* 784 = 112 partitions x 7 */
	HIDDEN = 128,
	CLASSES = 10,
	BATCH = 128,
	STEPS = 70,		/* full batches of an epoch */
	IMAGES = 10000,		/* of the file */
	EPOCHS = 6,
};

#define MNIST_LR	0.1
#define MNIST_MOMENTUM	0.9f
#define MNIST_MEAN	0.1307f
#define MNIST_STD	0.3081f
#define MNIST_SEED	1

/*
 * The net, as it lies in memory everywhere: in host.c, in HBM and in the files
 * of a run. Activations are rows: z = x w + b.
 */
struct net {
	float w1[PIXELS][HIDDEN];
	float b1[HIDDEN];
	float w2[HIDDEN][HIDDEN];
	float b2[HIDDEN];
	float w3[HIDDEN][CLASSES];
	float b3[CLASSES];
};

#define NET_FLOATS	(sizeof(struct net) / sizeof(float))

/* What went wrong, said once where it is known; returns -1 for `return fail()`. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- data.c ----------------------------------------------------------------- */

/**
 * struct digits - images of the file that scripts/get-mnist made
 * @train_count: images to train on
 * @test_count: images held out
 * @pixels: PIXELS bytes an image, by index
 * @labels: 0 to 9
 * @train: indices of the images to train on
 * @test: indices of those held out: every index that is 9 modulo 10
 */
struct digits {
	unsigned int train_count;
	unsigned int test_count;
	const uint8_t *pixels;
	const uint8_t *labels;
	uint32_t *train;
	uint32_t *test;
	uint8_t *file;
};

int digits_load(struct digits *d, const char *path);
void digits_free(struct digits *d);

static inline const uint8_t *digits_image(const struct digits *d, uint32_t index)
{
	return d->pixels + (size_t)index * PIXELS;
}

/* The seeded generator; the same sequence on every machine. */
struct rng {
	uint64_t state;
};

void rng_seed(struct rng *r, uint64_t seed);
uint32_t rng_next(struct rng *r);
/* Uniform in 0 to @n - 1. */
uint32_t rng_below(struct rng *r, uint32_t n);

/* He initialisation: weights N(0, 2 / inputs), biases 0. */
void net_init(struct net *net, uint64_t seed);

/**
 * epoch_order() - which images the batches of an epoch hold
 * @d: images
 * @seed: of the run
 * @epoch: from 0
 * @order: STEPS x BATCH indices; what does not fill a batch is left out
 */
int epoch_order(const struct digits *d, uint64_t seed, unsigned int epoch, uint32_t *order);

/* Learning rate of step @step of @steps: 0.1 falling linearly to 0. */
float learning_rate(unsigned int step, unsigned int steps);

/* 64-bit FNV-1a: two runs agree to the last bit exactly when their hashes do. */
uint64_t hash64(const void *data, size_t size);

/* --- host.c ------------------------------------------------------------------ */

/* A batch of up to BATCH images as fp32. */
struct batch {
	unsigned int count;
	uint8_t label[BATCH];
	float x[BATCH][PIXELS];
};

void batch_fill(struct batch *b, const struct digits *d, const uint32_t *order, unsigned int count);
/* Mean cross-entropy; @probs may be NULL. */
double host_loss(const struct net *net, const struct batch *b, float (*probs)[CLASSES]);
/* One step of SGD with momentum; the loss before it. */
double host_step(struct net *net, struct net *velocity, const struct batch *b, float lr);
/* Share of the held-out images that @net classifies correctly. */
double host_accuracy(const struct net *net, const struct digits *d);

#endif /* MNIST_H */
