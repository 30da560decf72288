/* SPDX-License-Identifier: MIT */
/*
 * A run: what training leaves behind, how it is checked and shown.
 */
#ifndef MNIST_RUN_H
#define MNIST_RUN_H

#include <stdio.h>

#include "mnist.h"

/**
 * struct epoch - what one execution of the training program gives
 * @loss: of each step, as the chip computed it
 * @before: the chip's fp32 weights before each step
 */
struct epoch {
	float loss[STEPS];
	struct net before[STEPS];
};

/**
 * struct outcome - the end of a run
 * @net: trained weights
 * @tested: held-out images
 * @right: how many the chip classified correctly
 * @predicted: what the chip said about each
 */
struct outcome {
	struct net net;
	uint32_t tested;
	uint32_t right;
	uint8_t predicted[IMAGES / 10];
};

struct options {
	const char *data;
	const char *record;
	const char *save;
	const char *profile;
	uint64_t seed;
	unsigned int epochs;
	bool strict;
	bool check;
};

/* --- record.c: a run in a file, for a check on another machine -------------------- */

struct recorder;	/* NULL works and does nothing */

int recorder_open(struct recorder **r, const char *folder, uint64_t seed, unsigned int epochs);
int recorder_epoch(struct recorder *r, const struct epoch *e);
/* Ends and frees it. */
int recorder_close(struct recorder *r, const struct outcome *outcome);

/* The whole file, mapped. */
struct recording {
	uint64_t seed;
	unsigned int epochs;
	const struct epoch *epoch;
	const struct outcome *outcome;
	void *map;
	size_t size;
};

int recording_open(struct recording *rec, const char *folder);
void recording_close(struct recording *rec);

/* --- verify.c ----------------------------------------------------------------------- */

struct verifier;

/**
 * verifier_new() - check a run step by step
 *
 * For every step the loss is recomputed in fp32 from the chip's own weights and
 * batch; beside it, the host trains a net of its own from the same start on the same
 * batches.
 */
struct verifier *verifier_new(const struct digits *d, uint64_t seed, unsigned int epochs);
/* Prints a line. -1: a step differs by more than 1 % and 0.002 (said which). */
int verifier_epoch(struct verifier *v, unsigned int number, const struct epoch *e);
/* Prints the comparison, frees @v. -1: more than 1.5 points apart, or a step was wrong. */
int verifier_end(struct verifier *v, const struct outcome *outcome);

/* --- chip.c --------------------------------------------------------------------------- */

/* Train on the chip, classify the held-out images with it, check and record. */
int run_train(const struct options *opt, const struct digits *d);
/* Train a few steps without one of the program's semaphores; strict mode must object. */
int run_bug(const struct options *opt, const struct digits *d);
/* Modelled time of a step on this chip, a row of a table. */
int run_rate(const struct options *opt, const struct digits *d);

/* --- rate.c: the row, from the trace of an epoch ------------------------------------ */

int show_rate(const char *path);

/* --- show.c ---------------------------------------------------------------------------- */

void show_epoch(unsigned int number, const struct epoch *e, double wall_s, uint64_t modelled_ns);
/* Draws @count held-out images, chosen at random, with what the chip said. */
void show_digits(const struct digits *d, const struct outcome *outcome, uint64_t seed,
		 unsigned int count);
/* The line of a source file; "" when it cannot be read. */
void show_source(const char *file, unsigned int line);

#endif /* MNIST_RUN_H */
