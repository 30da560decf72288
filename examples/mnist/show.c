// SPDX-License-Identifier: MIT
/*
 * What a person sees.
 */
#include <libgen.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

enum {
	BARS = 35,	/* of an epoch's loss: 2 steps each */
	MAX_DRAWN = 5,
};

static float mean(const float *v, unsigned int n)
{
	float sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += v[i];
	return sum / (float)n;
}

void show_epoch(unsigned int number, const struct epoch *e, double wall_s, uint64_t modelled_ns)
{
	static const char *const bar[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	char graph[BARS * 4] = "";

	for (unsigned int i = 0; i < BARS; i++) {
		float loss = mean(e->loss + i * STEPS / BARS, STEPS / BARS);
		/* Logarithmic: a level is a factor of 1.7, the top one begins at 2. */
		int level = 7;

		for (float limit = 2; level > 0 && loss < limit; limit /= 1.7f)
			level--;
		strcat(graph, bar[level]);
	}
	printf("epoch %u   loss %.4f -> %.4f  %s   %.2f s, modelled %.1f us a step\n", number + 1,
	       mean(e->loss, 5), mean(e->loss + STEPS - 5, 5), graph, wall_s,
	       (double)modelled_ns / 1000 / STEPS);
	fflush(stdout);
}

/* Four pixels a character. */
static const char *quadrant(const uint8_t *image, int row, int col)
{
	static const char *const blocks[16] = {
		" ", "▘", "▝", "▀", "▖", "▌", "▞", "▛", "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█",
	};
	int bits = 0;

	for (int i = 0; i < 4; i++)
		bits |= (image[(2 * row + i / 2) * SIDE + 2 * col + i % 2] > 96) << i;
	return blocks[bits];
}

void show_digits(const struct digits *d, const struct outcome *outcome, uint64_t seed,
		 unsigned int count)
{
	uint32_t chosen[MAX_DRAWN];
	struct rng r;

	if (count > MAX_DRAWN)
		count = MAX_DRAWN;
	rng_seed(&r, seed ^ 0xd161752);
	for (unsigned int i = 0; i < count; i++)
		chosen[i] = rng_below(&r, outcome->tested);
	for (int row = 0; row < SIDE / 2; row++) {
		for (unsigned int i = 0; i < count; i++) {
			const uint8_t *image = digits_image(d, d->test[chosen[i]]);

			for (int col = 0; col < SIDE / 2; col++)
				fputs(quadrant(image, row, col), stdout);
			fputs("  ", stdout);
		}
		putchar('\n');
	}
	for (unsigned int i = 0; i < count; i++) {
		unsigned int said = outcome->predicted[chosen[i]];
		unsigned int is = d->labels[d->test[chosen[i]]];

		char note[16] = "";

		if (said != is)
			snprintf(note, sizeof(note), "(is %u)", is);
		printf("chip: %u %-7s ", said, note);
	}
	putchar('\n');
}

/* As __FILE__ has it: absolute, or from the build folder, two above this program's. */
static FILE *open_source(const char *file)
{
	FILE *f = fopen(file, "r");
	char path[4096], exe[2048];
	ssize_t n;

	if (f || file[0] == '/')
		return f;
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return NULL;
	exe[n] = 0;
	snprintf(path, sizeof(path), "%s/../../%s", dirname(exe), file);
	return fopen(path, "r");
}

void show_source(const char *file, unsigned int line)
{
	FILE *f = open_source(file);
	char text[512] = "";

	for (unsigned int n = 0; f && n < line; n++)
		if (!fgets(text, sizeof(text), f))
			text[0] = 0;
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = 0;
	if (text[0])
		printf("                %s\n", text + strspn(text, "\t "));
}
