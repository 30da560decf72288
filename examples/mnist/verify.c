// SPDX-License-Identifier: MIT
/*
 * Is what the chip says true? Recomputed on the host, in plain fp32.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

#define REL_TOLERANCE	0.01
#define ABS_TOLERANCE	0.002
#define MAX_POINTS	1.5

struct verifier {
	const struct digits *digits;
	uint64_t seed;
	unsigned int epochs;
	unsigned int wrong;
	double worst;		/* largest difference, in tolerances */
	struct net net;		/* the host's own */
	struct net velocity;
	struct batch batch;
	uint32_t order[STEPS * BATCH];
};

struct verifier *verifier_new(const struct digits *d, uint64_t seed, unsigned int epochs)
{
	struct verifier *v = calloc(1, sizeof(*v));

	if (!v) {
		fail("out of memory");
		return NULL;
	}
	v->digits = d;
	v->seed = seed;
	v->epochs = epochs;
	net_init(&v->net, seed);
	return v;
}

/* In units of the tolerance: up to 1 is right. */
static double difference(double chip, double host)
{
	double tolerance = fmax(REL_TOLERANCE * fabs(host), ABS_TOLERANCE);

	return isfinite(chip) ? fabs(chip - host) / tolerance : INFINITY;
}

static int verify_start(const struct verifier *v, const struct epoch *e)
{
	struct net *start = malloc(sizeof(*start));
	int err = 0;

	if (!start)
		return fail("out of memory");
	net_init(start, v->seed);
	if (memcmp(start, &e->before[0], sizeof(*start)))
		err = fail("the chip's weights before the first step are not the initial ones");
	free(start);
	return err;
}

int verifier_epoch(struct verifier *v, unsigned int number, const struct epoch *e)
{
	double chip = 0, host = 0, own = 0, worst = 0;

	if (number == 0 && verify_start(v, e))
		v->wrong++;
	if (epoch_order(v->digits, v->seed, number, v->order))
		return -1;
	for (unsigned int s = 0; s < STEPS; s++) {
		double loss, d;

		batch_fill(&v->batch, v->digits, v->order + s * BATCH, BATCH);
		loss = host_loss(&e->before[s], &v->batch, NULL);
		d = difference(e->loss[s], loss);
		if (!(d <= 1) && v->wrong++ < 5)
			fail("epoch %u step %u: loss %.6f on the chip, %.6f recomputed from its weights",
			     number + 1, s, e->loss[s], loss);
		worst = fmax(worst, d);
		chip += e->loss[s];
		host += loss;
		own += host_step(&v->net, &v->velocity, &v->batch,
				 learning_rate(number * STEPS + s, v->epochs * STEPS));
	}
	v->worst = fmax(v->worst, worst);
	printf("  epoch %u   loss on the chip %.5f   recomputed %.5f   largest difference %3.0f %% of the tolerance   fp32 training on the host %.5f\n",
	       number + 1, chip / STEPS, host / STEPS, 100 * worst, own / STEPS);
	return v->wrong ? -1 : 0;
}

int verifier_end(struct verifier *v, const struct outcome *o)
{
	double chip = o->tested ? 100.0 * o->right / o->tested : 0;
	double same = 100 * host_accuracy(&o->net, v->digits);
	double own = 100 * host_accuracy(&v->net, v->digits);
	int err = 0;

	printf("  held out:  chip %.1f %%   the chip's weights in fp32 on the host %.1f %%   fp32 training on the host %.1f %%\n",
	       chip, same, own);
	if (v->wrong)
		err = fail("%u of %u steps differ by more than 1 %% and 0.002", v->wrong,
			   v->epochs * STEPS);
	else if (fabs(chip - own) > MAX_POINTS)
		err = fail("chip and host training end %.1f points apart, more than %.1f",
			   fabs(chip - own), MAX_POINTS);
	free(v);
	return err;
}
