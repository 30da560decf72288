// SPDX-License-Identifier: MIT
/*
 * The net in plain fp32 C: nothing of the chip, its program or its number
 * formats is in it. What the chip says is checked against this.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mnist.h"

/* Every element adds in the same order whatever the width, so the result is the same. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

typedef float vec __attribute__((vector_size(64), aligned(4)));

enum { LANES = 16 };

/* c[4][n] = a[4][k] b[k][n] for 16 columns. */
static inline __attribute__((always_inline))
void block(float *c, const float *a, const float *b, int n, int k)
{
	vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};

	for (int i = 0; i < k; i++) {
		vec v = *(const vec *)(b + (size_t)i * n);

		s0 += a[i] * v;
		s1 += a[k + i] * v;
		s2 += a[2 * k + i] * v;
		s3 += a[3 * k + i] * v;
	}
	*(vec *)c = s0;
	*(vec *)(c + n) = s1;
	*(vec *)(c + 2 * n) = s2;
	*(vec *)(c + 3 * n) = s3;
}

/* c[m][n] = a[m][k] b[k][n]; m is a multiple of 4. */
WIDE static void gemm(float *c, const float *a, const float *b, int m, int n, int k)
{
	for (int i = 0; i < m; i += 4) {
		const float *rows = a + (size_t)i * k;
		float *out = c + (size_t)i * n;
		int j = 0;

		for (; j + LANES <= n; j += LANES)
			block(out + j, rows, b + j, n, k);
		for (; j < n; j++) {
			for (int r = 0; r < 4; r++) {
				float sum = 0;

				for (int l = 0; l < k; l++)
					sum += rows[r * k + l] * b[(size_t)l * n + j];
				out[r * n + j] = sum;
			}
		}
	}
}

static void transpose(float *t, const float *a, int m, int n)
{
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++)
			t[(size_t)j * m + i] = a[(size_t)i * n + j];
}

void batch_fill(struct batch *b, const struct digits *d, const uint32_t *order, unsigned int count)
{
	float table[256];

	for (int v = 0; v < 256; v++)
		table[v] = ((float)v / 255.0f - MNIST_MEAN) / MNIST_STD;
	memset(b->x, 0, sizeof(b->x));
	b->count = count;
	for (unsigned int i = 0; i < count; i++) {
		const uint8_t *image = digits_image(d, order[i]);

		b->label[i] = d->labels[order[i]];
		for (int k = 0; k < PIXELS; k++)
			b->x[i][k] = table[image[k]];
	}
}

/* What the backward pass needs from the forward pass. */
struct activations {
	float a1[BATCH][HIDDEN];
	float a2[BATCH][HIDDEN];
	float z3[BATCH][CLASSES];
	float p[BATCH][CLASSES];
};

static void bias_relu(float (*a)[HIDDEN], const float *bias)
{
	for (int i = 0; i < BATCH; i++) {
		for (int j = 0; j < HIDDEN; j++) {
			float z = a[i][j] + bias[j];

			a[i][j] = z > 0 ? z : 0;
		}
	}
}

static double softmax(float *p, const float *z, unsigned int label)
{
	float max = z[0], sum = 0;

	for (int j = 1; j < CLASSES; j++)
		max = z[j] > max ? z[j] : max;
	for (int j = 0; j < CLASSES; j++) {
		p[j] = expf(z[j] - max);
		sum += p[j];
	}
	for (int j = 0; j < CLASSES; j++)
		p[j] /= sum;
	return log((double)sum) - ((double)z[label] - (double)max);
}

static double forward(struct activations *s, const struct net *net, const struct batch *b)
{
	double loss = 0;

	gemm(&s->a1[0][0], &b->x[0][0], &net->w1[0][0], BATCH, HIDDEN, PIXELS);
	bias_relu(s->a1, net->b1);
	gemm(&s->a2[0][0], &s->a1[0][0], &net->w2[0][0], BATCH, HIDDEN, HIDDEN);
	bias_relu(s->a2, net->b2);
	gemm(&s->z3[0][0], &s->a2[0][0], &net->w3[0][0], BATCH, CLASSES, HIDDEN);
	for (unsigned int i = 0; i < b->count; i++) {
		for (int j = 0; j < CLASSES; j++)
			s->z3[i][j] += net->b3[j];
		loss += softmax(s->p[i], s->z3[i], b->label[i]);
	}
	return loss / b->count;
}

double host_loss(const struct net *net, const struct batch *b, float (*probs)[CLASSES])
{
	struct activations *s = calloc(1, sizeof(*s));
	double loss;

	if (!s)
		return NAN;
	loss = forward(s, net, b);
	if (probs)
		memcpy(probs, s->p, sizeof(s->p));
	free(s);
	return loss;
}

static void sum_rows(float *sum, const float *a, int n)
{
	memset(sum, 0, n * sizeof(*sum));
	for (int i = 0; i < BATCH; i++)
		for (int j = 0; j < n; j++)
			sum[j] += a[i * n + j];
}

/* dz of the layer below, from dz of this one: (dz w^T) where the activation was > 0. */
static void back_layer(float (*below)[HIDDEN], const float *dz, const float *w, int n,
		       const float (*a)[HIDDEN])
{
	static _Thread_local float wt[HIDDEN * HIDDEN];

	transpose(wt, w, HIDDEN, n);
	gemm(&below[0][0], dz, wt, BATCH, HIDDEN, n);
	for (int i = 0; i < BATCH; i++)
		for (int j = 0; j < HIDDEN; j++)
			below[i][j] = a[i][j] > 0 ? below[i][j] : 0;
}

/* dw = a^T dz */
static void weight_grad(float *dw, const float *a, const float *dz, int m, int n)
{
	static _Thread_local float at[PIXELS * BATCH];

	transpose(at, a, BATCH, m);
	gemm(dw, at, dz, m, n, BATCH);
}

static void backward(struct net *grad, struct activations *s, const struct net *net,
		     const struct batch *b)
{
	static _Thread_local float dz1[BATCH][HIDDEN], dz2[BATCH][HIDDEN], dz3[BATCH][CLASSES];

	for (int i = 0; i < BATCH; i++)
		for (int j = 0; j < CLASSES; j++)
			dz3[i][j] = (s->p[i][j] - (b->label[i] == j)) / BATCH;
	back_layer(dz2, &dz3[0][0], &net->w3[0][0], CLASSES, s->a2);
	back_layer(dz1, &dz2[0][0], &net->w2[0][0], HIDDEN, s->a1);
	weight_grad(&grad->w3[0][0], &s->a2[0][0], &dz3[0][0], HIDDEN, CLASSES);
	weight_grad(&grad->w2[0][0], &s->a1[0][0], &dz2[0][0], HIDDEN, HIDDEN);
	weight_grad(&grad->w1[0][0], &b->x[0][0], &dz1[0][0], PIXELS, HIDDEN);
	sum_rows(grad->b3, &dz3[0][0], CLASSES);
	sum_rows(grad->b2, &dz2[0][0], HIDDEN);
	sum_rows(grad->b1, &dz1[0][0], HIDDEN);
}

double host_step(struct net *net, struct net *velocity, const struct batch *b, float lr)
{
	struct activations *s = calloc(1, sizeof(*s));
	struct net *grad = calloc(1, sizeof(*grad));
	double loss = NAN;

	if (s && grad) {
		float *w = (float *)net, *v = (float *)velocity;
		const float *g = (const float *)grad;

		loss = forward(s, net, b);
		backward(grad, s, net, b);
		for (size_t i = 0; i < NET_FLOATS; i++) {
			v[i] = MNIST_MOMENTUM * v[i] + g[i];
			w[i] -= lr * v[i];
		}
	}
	free(grad);
	free(s);
	return loss;
}

double host_accuracy(const struct net *net, const struct digits *d)
{
	struct batch *b = malloc(sizeof(*b));
	float (*p)[CLASSES] = malloc(BATCH * sizeof(*p));
	unsigned int right = 0;

	for (unsigned int at = 0; b && p && at < d->test_count; at += b->count) {
		unsigned int left = d->test_count - at;

		batch_fill(b, d, d->test + at, left < BATCH ? left : BATCH);
		host_loss(net, b, p);
		for (unsigned int i = 0; i < b->count; i++) {
			int best = 0;

			for (int j = 1; j < CLASSES; j++)
				best = p[i][j] > p[i][best] ? j : best;
			right += best == b->label[i];
		}
	}
	free(p);
	free(b);
	return (double)right / d->test_count;
}
