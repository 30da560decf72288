// SPDX-License-Identifier: MIT
/*
 * mnist - train a digit classifier on a NeuronCore.
 *
 * On the kernel driver, or with NEURON_RT_SIM=trn2 in this process: the same program,
 * the same weights to the last bit.
 */
#include <getopt.h>
#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "run.h"

static const char usage[] =
	"usage: mnist [OPTION...] [COMMAND]\n"
	"\n"
	"Train a digit classifier (784-128-128-10) on a NeuronCore.\n"
	"With NEURON_RT_SIM=trn2 the chip is modelled in this process.\n"
	"\n"
	"  train              train, classify the held-out images, check (default)\n"
	"  verify DIR         check what `mnist train --record DIR` wrote\n"
	"  bug                leave out one semaphore; strict mode must find the race\n"
	"  rate               modelled time of a step\n"
	"  build FILE         only write the training program's NEFF\n"
	"\n"
	"  --data FILE        digits (default: where scripts/get-mnist puts them)\n"
	"  --epochs N         1 to 100 (default 6)\n"
	"  --seed N           of weights and order (default 1)\n"
	"  --arch NAME        for build: trn1, inf2, trn2 or trn3 (default trn2)\n"
	"  --record DIR       write DIR/run.bin, for verify; no check now\n"
	"  --no-check         do not recompute the losses on the host\n"
	"  --save FILE        save the trained net as a NEFF for neuron-run\n"
	"  --profile FILE     trace the last epoch (or that of rate)\n"
	"  --strict           report races and reads of uninitialised memory\n"
	"  --help             this text\n";

int fail(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	fputs("mnist: error: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return -1;
}

/* A number in [lo, hi] and nothing else. */
static int number(const char *option, const char *text, uint64_t lo, uint64_t hi, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 10);
	if (!*text || *text == '-' || *end || *value < lo || *value > hi)
		return fail("--%s %s: a number from %llu to %llu is needed", option, text,
			    (unsigned long long)lo, (unsigned long long)hi);
	return 0;
}

/* Owned by the caller; NULL: not there. */
static char *default_data(void)
{
	const char *cache = getenv("NEURON_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	char pattern[4096], *found = NULL;
	glob_t g;

	if (cache && *cache)
		snprintf(pattern, sizeof(pattern), "%s/mnist/*/digits.bin", cache);
	else if (xdg && *xdg)
		snprintf(pattern, sizeof(pattern), "%s/neuron-accel/mnist/*/digits.bin", xdg);
	else
		snprintf(pattern, sizeof(pattern), "%s/.cache/neuron-accel/mnist/*/digits.bin",
			 home ? home : "");
	if (!glob(pattern, 0, NULL, &g)) {
		found = strdup(g.gl_pathv[g.gl_pathc - 1]);
		globfree(&g);
	}
	return found;
}

static int load_data(struct digits *d, const char *path)
{
	char *own = path ? NULL : default_data();
	int err;

	if (!path && !own)
		return fail("the digits are not in the cache: run scripts/get-mnist, or give --data");
	err = digits_load(d, path ? path : own);
	free(own);
	if (!err && d->train_count + d->test_count != IMAGES) {
		digits_free(d);
		err = fail("%u images, %d expected", d->train_count + d->test_count, IMAGES);
	}
	return err;
}

static int run_verify(const char *folder, const struct digits *d)
{
	struct recording rec;
	struct verifier *v;
	int err = 0;

	if (recording_open(&rec, folder))
		return -1;
	v = verifier_new(d, rec.seed, rec.epochs);
	if (!v) {
		recording_close(&rec);
		return -1;
	}
	for (unsigned int e = 0; e < rec.epochs; e++)
		if (verifier_epoch(v, e, &rec.epoch[e]))
			err = -1;
	if (verifier_end(v, rec.outcome))
		err = -1;
	recording_close(&rec);
	return err;
}

static int run_build(const char *arch, const char *path)
{
	struct nki_kernel *k = build_train(arch, STEPS);
	int err = nki_save(k, path);

	if (err)
		fail("cannot save %s: %s", path,
		     k && nki_error(k) ? nki_error(k) : strerror(abs(err)));
	nki_kernel_free(k);
	return err;
}

static int run_command(const char *arch, struct options *opt, char **argv, int argc)
{
	const char *command = argc ? argv[0] : "train";
	bool needs_path = !strcmp(command, "verify") || !strcmp(command, "build");
	struct digits d;
	int err;

	if (argc != (needs_path ? 2 : argc ? 1 : 0))
		return fail("%s: %s\n%s", command,
			    needs_path ? "one path is needed" : "unexpected argument", usage);
	if (!strcmp(command, "build"))
		return run_build(arch, argv[1]);
	if (load_data(&d, opt->data))
		return -1;
	if (!strcmp(command, "train"))
		err = run_train(opt, &d);
	else if (!strcmp(command, "verify"))
		err = run_verify(argv[1], &d);
	else if (!strcmp(command, "bug"))
		err = run_bug(opt, &d);
	else if (!strcmp(command, "rate"))
		err = run_rate(opt, &d);
	else
		err = fail("unknown command %s\n%s", command, usage);
	digits_free(&d);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "data", required_argument, NULL, 'd' }, { "epochs", required_argument, NULL, 'e' },
		{ "seed", required_argument, NULL, 's' }, { "arch", required_argument, NULL, 'a' },
		{ "record", required_argument, NULL, 'r' }, { "save", required_argument, NULL, 'n' },
		{ "profile", required_argument, NULL, 'p' }, { "strict", no_argument, NULL, 'S' },
		{ "no-check", no_argument, NULL, 'c' }, { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct options opt = { .seed = MNIST_SEED, .epochs = EPOCHS, .check = true };
	const char *arch = "trn2";
	uint64_t n;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'd': opt.data = optarg; break;
		case 'a': arch = optarg; break;
		case 'r': opt.record = optarg; opt.check = false; break;
		case 'n': opt.save = optarg; break;
		case 'p': opt.profile = optarg; break;
		case 'S': opt.strict = true; break;
		case 'c': opt.check = false; break;
		case 'e':
			if (number("epochs", optarg, 1, 100, &n))
				return 2;
			opt.epochs = (unsigned int)n;
			break;
		case 's':
			if (number("seed", optarg, 0, UINT32_MAX, &opt.seed))
				return 2;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return 2;
		}
	}
	return run_command(arch, &opt, argv + optind, argc - optind) ? 1 : 0;
}
