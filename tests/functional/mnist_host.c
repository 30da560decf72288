// SPDX-License-Identifier: MIT
/*
 * The reference that the demo is checked against must itself be right: gradients by
 * finite differences, the split and the order by their definition, and a verifier
 * that objects to a wrong loss.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mnist.h"
#include "run.h"
#include "kselftest_harness.h"

int fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("# ", stdout);
	vfprintf(stdout, format, args);
	fputc('\n', stdout);
	va_end(args);
	return -1;
}

/* A file as scripts/get-mnist makes it, with noise for images. */
static void make_file(char *path, uint32_t count)
{
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "wb");
	uint8_t size[4] = { count & 0xff, count >> 8 & 0xff, count >> 16 & 0xff, count >> 24 };
	struct rng r;

	rng_seed(&r, 7);
	fwrite("NMNIST01", 1, 8, f);
	fwrite(size, 1, 4, f);
	for (uint32_t i = 0; i < count; i++)
		fputc((int)(i * CLASSES / count), f);
	for (size_t i = 0; i < (size_t)count * PIXELS; i++)
		fputc((int)rng_below(&r, 256), f);
	fclose(f);
}

FIXTURE(host)
{
	char path[32];
	struct digits d;
	struct batch *batch;
	struct net *net, *grad, *velocity;
};

FIXTURE_SETUP(host)
{
	strcpy(self->path, "/tmp/mnist-test.XXXXXX");
	make_file(self->path, IMAGES);
	ASSERT_EQ(0, digits_load(&self->d, self->path));
	self->batch = calloc(1, sizeof(*self->batch));
	self->net = calloc(1, sizeof(*self->net));
	self->grad = calloc(1, sizeof(*self->grad));
	self->velocity = calloc(1, sizeof(*self->velocity));
	ASSERT_NE(NULL, self->velocity);
	net_init(self->net, 3);
	batch_fill(self->batch, &self->d, self->d.train + 4000, BATCH);
}

FIXTURE_TEARDOWN(host)
{
	digits_free(&self->d);
	unlink(self->path);
	free(self->batch);
	free(self->net);
	free(self->grad);
	free(self->velocity);
}

TEST_F(host, split)
{
	EXPECT_EQ(1000, self->d.test_count);
	EXPECT_EQ(9000, self->d.train_count);
	for (uint32_t i = 0; i < 1000; i++)
		ASSERT_EQ(10 * i + 9, self->d.test[i]);
	for (uint32_t i = 0; i < 9000; i++)
		ASSERT_NE(9, self->d.train[i] % 10);
}

TEST_F(host, damaged_files_are_refused)
{
	char path[] = "/tmp/mnist-test.XXXXXX";
	struct digits d;

	make_file(path, IMAGES);
	ASSERT_EQ(0, truncate(path, 1000));
	EXPECT_EQ(-1, digits_load(&d, path));
	ASSERT_EQ(0, truncate(path, 4));
	EXPECT_EQ(-1, digits_load(&d, path));
	unlink(path);
	EXPECT_EQ(-1, digits_load(&d, path));
}

TEST_F(host, order_has_no_image_twice)
{
	static uint32_t order[STEPS * BATCH], again[STEPS * BATCH];
	static uint8_t seen[IMAGES];

	ASSERT_EQ(0, epoch_order(&self->d, 1, 0, order));
	for (int i = 0; i < STEPS * BATCH; i++) {
		ASSERT_LT(order[i], IMAGES);
		ASSERT_NE(9, order[i] % 10);
		ASSERT_EQ(0, seen[order[i]]++);
	}
	ASSERT_EQ(0, epoch_order(&self->d, 1, 0, again));
	EXPECT_EQ(0, memcmp(order, again, sizeof(order)));
	ASSERT_EQ(0, epoch_order(&self->d, 1, 1, again));
	EXPECT_NE(0, memcmp(order, again, sizeof(order)));
}

TEST_F(host, rate_falls_to_zero)
{
	EXPECT_EQ(0.1f, learning_rate(0, 420));
	EXPECT_EQ(0.05f, learning_rate(210, 420));
	EXPECT_EQ((float)(0.1 / 420), learning_rate(419, 420));
}

TEST_F(host, he_initialisation)
{
	double sum = 0, squares = 0;
	const float *w = &self->net->w1[0][0];
	int n = PIXELS * HIDDEN;

	for (int i = 0; i < n; i++) {
		sum += w[i];
		squares += (double)w[i] * w[i];
	}
	/* Five standard errors of the mean and of the variance. */
	EXPECT_LT(fabs(sum / n), 5 * sqrt(2.0 / PIXELS / n));
	EXPECT_LT(fabs(squares / n * PIXELS / 2 - 1), 5 * sqrt(2.0 / n));
	EXPECT_EQ(0, self->net->b1[5]);
}

/* The slope of the loss along one weight, from both sides. */
static double slope(struct net *net, const struct batch *b, float *w, float h)
{
	float saved = *w;
	double up, down;

	*w = saved + h;
	up = host_loss(net, b, NULL);
	*w = saved - h;
	down = host_loss(net, b, NULL);
	*w = saved;
	return (up - down) / (2.0 * h);
}

TEST_F(host, gradients)
{
	struct net *start = malloc(sizeof(*start));
	float *w, *g = (float *)self->velocity;
	struct rng r;

	ASSERT_NE(NULL, start);
	*start = *self->net;
	/* With rate 0 and no history the velocity is the gradient. */
	host_step(self->net, self->velocity, self->batch, 0);
	EXPECT_EQ(0, memcmp(start, self->net, sizeof(*start)));
	rng_seed(&r, 11);
	w = (float *)self->net;
	for (int i = 0; i < 60; i++) {
		/* Half of them among the few weights of the upper layers. */
		uint32_t first = i % 2 ? PIXELS * HIDDEN : 0;
		uint32_t at = first + rng_below(&r, (uint32_t)NET_FLOATS - first);
		double s = slope(self->net, self->batch, &w[at], 2e-3f);

		EXPECT_LT(fabs(s - g[at]), 0.02 * fabs(s) + 5e-4)
			TH_LOG("weight %u: slope %g, gradient %g", at, s, g[at]);
	}
	free(start);
}

TEST_F(host, momentum)
{
	struct net *w0 = malloc(sizeof(*w0)), *v0 = malloc(sizeof(*v0));
	float *v = (float *)self->velocity, *w = (float *)self->net;

	ASSERT_NE(NULL, w0);
	ASSERT_NE(NULL, v0);
	host_step(self->net, self->velocity, self->batch, 0);
	*w0 = *self->net;
	*v0 = *self->velocity;
	/* The same batch and weights: the gradient is v0 again. */
	host_step(self->net, self->velocity, self->batch, 0.1f);
	for (size_t i = 0; i < NET_FLOATS; i += 97) {
		float old = ((float *)v0)[i];

		ASSERT_EQ(0.9f * old + old, v[i]);
		ASSERT_EQ(((float *)w0)[i] - 0.1f * v[i], w[i]);
	}
	free(w0);
	free(v0);
}

TEST_F(host, verifier_objects)
{
	struct epoch *e = malloc(sizeof(*e));
	struct verifier *v;
	static uint32_t order[STEPS * BATCH];

	ASSERT_NE(NULL, e);
	ASSERT_EQ(0, epoch_order(&self->d, 3, 0, order));
	memset(self->velocity, 0, sizeof(*self->velocity));
	for (int s = 0; s < STEPS; s++) {
		batch_fill(self->batch, &self->d, order + s * BATCH, BATCH);
		e->before[s] = *self->net;
		e->loss[s] = (float)host_loss(self->net, self->batch, NULL);
	}
	v = verifier_new(&self->d, 3, 1);
	EXPECT_EQ(0, verifier_epoch(v, 0, e));
	free(v);
	e->loss[40] *= 1.015f;
	v = verifier_new(&self->d, 3, 1);
	EXPECT_EQ(-1, verifier_epoch(v, 0, e));
	free(v);
	e->loss[40] = NAN;
	v = verifier_new(&self->d, 3, 1);
	EXPECT_EQ(-1, verifier_epoch(v, 0, e));
	free(v);
	free(e);
}

TEST_HARNESS_MAIN
