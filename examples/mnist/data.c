// SPDX-License-Identifier: MIT
/*
 * The images, who is held out, in which order they come, and the first weights.
 *
 * Everything here is integer arithmetic or single IEEE operations: the C
 * library's log() and cos() differ in the last bit between machines (and between
 * this machine and the guest), and two runs must be able to agree exactly.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mnist.h"

#define MAGIC		"NMNIST01"
#define HEADER		12u
#define MAX_IMAGES	1000000u

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long end;

	if (!f)
		goto error;
	if (fseek(f, 0, SEEK_END) || (end = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
		goto error;
	data = malloc((size_t)end + 1);
	if (!data || fread(data, 1, (size_t)end, f) != (size_t)end)
		goto error;
	fclose(f);
	*size = (size_t)end;
	return data;
error:
	fail("cannot read %s: %s", path, strerror(errno));
	free(data);
	if (f)
		fclose(f);
	return NULL;
}

static uint32_t le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int split(struct digits *d, uint32_t count)
{
	d->train = malloc(count * sizeof(*d->train));
	d->test = malloc(count * sizeof(*d->test));
	if (!d->train || !d->test)
		return fail("out of memory");
	for (uint32_t i = 0; i < count; i++) {
		if (d->labels[i] >= CLASSES)
			return fail("image %u has the label %u", i, d->labels[i]);
		if (i % 10 == 9)
			d->test[d->test_count++] = i;
		else
			d->train[d->train_count++] = i;
	}
	if (d->train_count < STEPS * BATCH)
		return fail("%u images to train on, %d needed", d->train_count, STEPS * BATCH);
	return 0;
}

int digits_load(struct digits *d, const char *path)
{
	uint32_t count;
	size_t size;

	memset(d, 0, sizeof(*d));
	d->file = read_file(path, &size);
	if (!d->file)
		return -1;
	if (size < HEADER || memcmp(d->file, MAGIC, 8)) {
		digits_free(d);
		return fail("%s was not made by scripts/get-mnist", path);
	}
	count = le32(d->file + 8);
	if (count > MAX_IMAGES || size != HEADER + (size_t)count * (1 + PIXELS)) {
		digits_free(d);
		return fail("%s is damaged: %zu bytes do not fit %u images", path, size, count);
	}
	d->labels = d->file + HEADER;
	d->pixels = d->labels + count;
	if (split(d, count)) {
		digits_free(d);
		return -1;
	}
	return 0;
}

void digits_free(struct digits *d)
{
	free(d->file);
	free(d->train);
	free(d->test);
	memset(d, 0, sizeof(*d));
}

/* SplitMix64: any seed is a good one. */
void rng_seed(struct rng *r, uint64_t seed)
{
	r->state = seed;
}

uint32_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) >> 32);
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
	uint32_t limit = UINT32_MAX - UINT32_MAX % n, v;

	do
		v = rng_next(r);
	while (v >= limit);
	return v % n;
}

/*
 * Twelve uniform numbers add up to nearly a normal one of variance 1; the sum is
 * one of integers, so it is exact.
 */
static float rng_normal(struct rng *r)
{
	int64_t sum = 0;

	for (int i = 0; i < 12; i++)
		sum += rng_next(r);
	return (float)((double)(sum - 6 * (int64_t)UINT32_MAX) / 4294967296.0);
}

static void init_layer(struct rng *r, float *w, unsigned int inputs, unsigned int outputs)
{
	float sigma = sqrtf(2.0f / (float)inputs);

	for (unsigned int i = 0; i < inputs * outputs; i++)
		w[i] = sigma * rng_normal(r);
}

void net_init(struct net *net, uint64_t seed)
{
	struct rng r;

	memset(net, 0, sizeof(*net));
	rng_seed(&r, seed);
	init_layer(&r, &net->w1[0][0], PIXELS, HIDDEN);
	init_layer(&r, &net->w2[0][0], HIDDEN, HIDDEN);
	init_layer(&r, &net->w3[0][0], HIDDEN, CLASSES);
}

int epoch_order(const struct digits *d, uint64_t seed, unsigned int epoch, uint32_t *order)
{
	uint32_t *all = malloc(d->train_count * sizeof(*all));
	struct rng r;

	if (!all)
		return fail("out of memory");
	memcpy(all, d->train, d->train_count * sizeof(*all));
	rng_seed(&r, (seed << 20) + 1 + epoch);
	for (uint32_t i = d->train_count - 1; i > 0; i--) {
		uint32_t j = rng_below(&r, i + 1), t = all[i];

		all[i] = all[j];
		all[j] = t;
	}
	memcpy(order, all, STEPS * BATCH * sizeof(*order));
	free(all);
	return 0;
}

float learning_rate(unsigned int step, unsigned int steps)
{
	return (float)(MNIST_LR * (double)(steps - step) / (double)steps);
}

uint64_t hash64(const void *data, size_t size)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325ull;

	while (size--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}
