// SPDX-License-Identifier: MIT
/* What neuron-run prints about outputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

#define BARS		10
#define BAR_WIDTH	40
#define VALUES		8

/* Outputs that already are shares stay as they are. */
static bool are_shares(const double *v, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!(v[i] >= 0 && v[i] <= 1.0001))
			return false;
		sum += v[i];
	}
	return fabs(sum - 1) < 0.01;
}

static void softmax(const double *v, size_t n, double *share)
{
	double max = -INFINITY, sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		max = v[i] > max ? v[i] : max;
	for (i = 0; i < n; i++)
		sum += share[i] = exp(v[i] - max);
	for (i = 0; i < n; i++)
		share[i] /= sum;
}

static void print_bar(FILE *out, double share, bool utf8)
{
	unsigned int full = lround(share * BAR_WIDTH), i;

	for (i = 0; i < BAR_WIDTH; i++)
		fputs(i < full ? utf8 ? "█" : "#" : " ", out);
}

/* All classes in order when they are few, else the likeliest. */
static void print_bars(FILE *out, const struct run_info *info, const double *share, bool utf8)
{
	bool *done = calloc(info->label_count, sizeof(*done));
	size_t n = info->label_count, i, k, best;
	int width = 0;

	if (!done)
		return;
	for (i = 0; i < n; i++)
		width = (int)strlen(info->labels[i]) > width ? (int)strlen(info->labels[i]) : width;
	for (k = 0; k < n && k < BARS; k++) {
		for (best = 0; best < n && done[best]; best++)
			;
		for (i = best; n > BARS && i < n; i++)
			if (!done[i] && share[i] > share[best])
				best = i;
		done[best] = true;
		fprintf(out, "  %-*s |", width, info->labels[best]);
		print_bar(out, share[best], utf8);
		fprintf(out, "| %5.1f %%\n", 100 * share[best]);
	}
	free(done);
}

void show_label(FILE *out, const char *name, const struct run_info *info, const double *value,
		bool utf8)
{
	double *share = calloc(info->label_count, sizeof(*share));
	size_t best = 0, i;

	if (!share)
		return;
	if (are_shares(value, info->label_count))
		memcpy(share, value, info->label_count * sizeof(*share));
	else
		softmax(value, info->label_count, share);
	for (i = 1; i < info->label_count; i++)
		if (share[i] > share[best])
			best = i;
	if (isnan(share[best]))
		fprintf(out, "%s: no answer, the output is not a number\n", name);
	else
		fprintf(out, "%s: %s (%.1f %%)\n", name, info->labels[best], 100 * share[best]);
	print_bars(out, info, share, utf8);
	free(share);
}

void show_tensor(FILE *out, const struct neff_arg *arg, const void *data)
{
	size_t count = arg->size / neff_dtype_size(arg->dtype, NULL), i;
	unsigned int d;

	fprintf(out, "%s: %s [", arg->name, arg->dtype);
	for (d = 0; d < arg->ndim; d++)
		fprintf(out, "%s%u", d ? ", " : "", arg->shape[d]);
	fputs("]:", out);
	for (i = 0; i < count && i < VALUES; i++)
		fprintf(out, " %g", element_get(arg->dtype, data, i));
	fputs(count > VALUES ? " ...\n" : "\n", out);
}
