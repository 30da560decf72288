// SPDX-License-Identifier: MIT
/* neuron-as: a program from text to NEFF. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asm.h"
#include "neff.h"
#include "neff_write.h"

static void usage(FILE *f)
{
	fputs("Usage: neuron-as [-o FILE.neff] FILE.s\n"
	      "Assemble a program for NeuronCores. FILE.s may be - for the standard input.\n"
	      "\n"
	      "  -o, --output=FILE   where to write; default: FILE.s with .neff for .s\n"
	      "  -h, --help          this text\n"
	      "  -V, --version       version\n",
	      f);
}

static char *read_all(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
	size_t used = 0, room = 1 << 16;
	char *text = f ? malloc(room) : NULL;

	while (text) {
		char *more;

		used += fread(text + used, 1, room - used - 1, f);
		if (used < room - 1)
			break;
		room *= 2;
		more = realloc(text, room);
		if (!more)
			free(text);
		text = more;
	}
	if (text && !ferror(f))
		text[used] = 0;
	else
		fprintf(stderr, "neuron-as: %s: %s\n", path, strerror(errno ? errno : EIO));
	if (f && f != stdin)
		fclose(f);
	return text;
}

/* FILE.s becomes FILE.neff. */
static char *default_output(const char *path)
{
	size_t n = strlen(path);
	char *out = malloc(n + 6);

	if (!out)
		return NULL;
	strcpy(out, strcmp(path, "-") ? path : "a");
	n = strlen(out);
	if (n > 2 && !strcmp(out + n - 2, ".s"))
		out[n - 2] = 0;
	return strcat(out, ".neff");
}

static int write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "wb");
	int bad = !f || fwrite(bytes, 1, size, f) != size;

	if (f && fclose(f))
		bad = 1;
	if (bad)
		fprintf(stderr, "neuron-as: %s: %s\n", path, strerror(errno));
	return bad;
}

static int assemble(const char *path, const char *output)
{
	char error[512] = "", *text = read_all(path);
	struct neff *neff;
	void *bytes;
	size_t size;
	int ret;

	if (!text)
		return 1;
	ret = nki_asm_file(path, text, &neff, error, sizeof(error));
	free(text);
	if (ret) {
		fprintf(stderr, "%s\n", *error ? error : strerror(-ret));
		return 1;
	}
	ret = neff_write(neff, NULL, &bytes, &size);
	nki_asm_free(neff);
	if (ret) {
		fprintf(stderr, "neuron-as: %s: %s\n", path, strerror(-ret));
		return 1;
	}
	ret = write_file(output, bytes, size);
	free(bytes);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "output", required_argument, NULL, 'o' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' }, { 0 },
	};
	char *output = NULL;
	int c, ret;

	while ((c = getopt_long(argc, argv, "o:hV", longopts, NULL)) != -1) {
		switch (c) {
		case 'o':
			free(output);
			output = strdup(optarg);
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			printf("neuron-as %s\n", NKI_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (argc != optind + 1) {
		usage(stderr);
		return 2;
	}
	if (!output)
		output = default_output(argv[optind]);
	ret = output ? assemble(argv[optind], output) : 1;
	free(output);
	return ret;
}
