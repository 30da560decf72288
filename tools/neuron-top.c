// SPDX-License-Identifier: MIT
/* neuron-top: what the NeuronCores do now. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/tool.h"
#include "top/top.h"

#define NAME "neuron-top"

struct options {
	bool batch;
	bool json;
	uint64_t count;		/* 0: without end */
	double delay;
	const char *replay;
};

static const char help[] =
	"Usage: neuron-top [OPTION]...\n"
	"Show utilization of NeuronCores, memory and processes.\n\n"
	"  -b, --batch           plain text, for scripts\n"
	"  -j, --json            one JSON object a line\n"
	"  -n, --count N         stop after N samples (with -b and -j)\n"
	"  -d, --delay SECONDS   between samples, 0.1 to 3600 (default 1)\n"
	"      --replay FILE     show a recording made with -j; - is standard input\n"
	"  -h, --help            this text; h in the full screen lists the keys\n"
	"      --version         version\n\n"
	"WALL is the share of real time with a job on the core. Engine shares and TFLOP/s are\n"
	"modelled, of the jobs that ended last.\n"
	"Exit status: 0; 1 no device, or it went away; 2 usage.\n";

static int usage(const char *format, const char *what)
{
	tool_error(NAME, format, what);
	fputs("Try 'neuron-top --help'.\n", stderr);
	return -EINVAL;
}

enum { OPT_REPLAY = 256, OPT_VERSION };

static int parse_option(struct options *o, int c)
{
	switch (c) {
	case 'b':
		o->batch = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'n':
		if (!tool_number(optarg, 1, 1000000000, &o->count))
			return usage("--count needs 1 to 1000000000, not '%s'", optarg);
		return 0;
	case 'd':
		if (!tool_fraction(optarg, 0.1, 3600, &o->delay))
			return usage("--delay needs 0.1 to 3600 seconds, not '%s'", optarg);
		return 0;
	case OPT_REPLAY:
		o->replay = optarg;
		return 0;
	case OPT_VERSION:
		tool_version(NAME);
		exit(tool_finish(NAME));
	case 'h':
		fputs(help, stdout);
		exit(tool_finish(NAME));
	default:
		return usage("unknown option, or one without its value%s", "");
	}
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "batch", no_argument, NULL, 'b' },
		{ "json", no_argument, NULL, 'j' },
		{ "count", required_argument, NULL, 'n' },
		{ "delay", required_argument, NULL, 'd' },
		{ "replay", required_argument, NULL, OPT_REPLAY },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int c, ret;

	o->delay = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "bjn:d:h", longs, NULL)) != -1) {
		ret = parse_option(o, c);
		if (ret)
			return ret;
	}
	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	if (o->count && !o->batch && !o->json)
		return usage("--count goes with --batch or --json%s", "");
	return 0;
}

static void sleep_for(double seconds)
{
	struct timespec ts = { seconds, (seconds - (long)seconds) * 1e9 };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static int print_one(const struct options *o, const struct top_state *state, bool first)
{
	json_t *line;

	if (!o->json) {
		if (!first)
			putchar('\n');
		top_print(state, stdout);
	} else {
		line = top_to_json(state);
		if (!line || json_dumpf(line, stdout, JSON_COMPACT))
			return -EIO;
		json_decref(line);
		putchar('\n');
	}
	return fflush(stdout) ? -errno : 0;
}

/* A rate needs two samples, so the first line comes after one delay. */
static int batch(const struct options *o, struct top_source *source)
{
	struct top_state state = { 0 };
	uint64_t n = 0;
	int ret = top_sample(source, &state);

	while (!ret && (!o->count || n < o->count)) {
		if (!o->replay)
			sleep_for(o->delay);
		ret = top_sample(source, &state);
		if (!ret)
			ret = print_one(o, &state, !n++);
	}
	top_state_free(&state);
	if (ret == -ENODATA && o->replay)
		return 0;
	if (ret)
		tool_error(NAME, "%s", strerror(-ret));
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct top_source *source;
	char error[512] = "";
	int ret;

	if (parse(argc, argv, &o))
		return 2;
	source = o.replay ? top_source_replay(o.replay, error, sizeof(error)) :
			    top_source_open(error, sizeof(error));
	if (!source) {
		tool_error(NAME, "%s", error);
		if (!o.replay && getenv("NEURON_RT_SIM"))
			fputs("NEURON_RT_SIM is set: chips of the in-process model belong to their process "
			      "and cannot be watched.\n", stderr);
		return 1;
	}
	if (o.batch || o.json) {
		ret = batch(&o, source);
	} else {
		ret = top_screen(source, o.delay, error, sizeof(error)) ? 1 : 0;
		if (ret)
			tool_error(NAME, "%s", error);
	}
	top_source_close(source);
	return ret;
}
