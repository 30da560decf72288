// SPDX-License-Identifier: MIT
/* neuron-profile view: a profile file as a text timeline. */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/tool.h"
#include "profile/profile_view.h"

#define NAME "neuron-profile"
#define SIDE_COLUMNS 19	/* engine name and share beside a bar */

struct options {
	const char *path;
	struct profile_view view;
	bool all;
	bool window;
	const char *step_file;
	uint32_t step_line;
	unsigned int step;
	bool has_step;
};

static const char help[] =
	"Usage: neuron-profile view [OPTION]... FILE\n"
	"Show a file written by nrt_profile_stop() as a timeline. All times are modelled.\n\n"
	"  -e, --execution N     the N-th execution in the file, from 0 (default: all)\n"
	"  -c, --core N          program core (default 0)\n"
	"      --window A:B      only A to B nanoseconds of the execution\n"
	"      --step FILE:LINE[:N]\n"
	"                        only the time from the N-th run of this source line, from 0,\n"
	"                        to the next\n"
	"      --width N         columns of a bar, 10 to 400\n"
	"      --ascii           no block characters\n"
	"      --color WHEN      always, never or auto\n"
	"  -h, --help            this text\n"
	"      --version         version\n\n"
	"Exit status: 0; 1 when the file cannot be read or has no such part; 2 usage.\n";

static int usage(const char *format, const char *what)
{
	tool_error(NAME, format, what);
	fputs("Try 'neuron-profile --help'.\n", stderr);
	return -EINVAL;
}

/* Nanoseconds to ticks without loss: 33.6 ticks a nanosecond. */
static uint64_t to_ticks(uint64_t ns)
{
	return ns / 5 * 168 + ns % 5 * 168 / 5;
}

static int parse_window(struct options *o, char *text)
{
	uint64_t from, to, max = UINT64_MAX / 34;
	char *colon = strchr(text, ':');

	if (colon)
		*colon = '\0';
	if (!colon || !tool_number(text, 0, max, &from) || !tool_number(colon + 1, 1, max, &to) ||
	    from >= to)
		return usage("--window needs A:B in nanoseconds with A < B%s", "");
	o->view.from = to_ticks(from);
	o->view.to = to_ticks(to);
	o->window = true;
	return 0;
}

static int parse_step(struct options *o, char *text)
{
	uint64_t line, step = 0;
	char *colon = strchr(text, ':'), *second;

	if (!colon)
		return usage("--step needs FILE:LINE[:N], not '%s'", text);
	*colon = '\0';
	second = strchr(colon + 1, ':');
	if (second)
		*second = '\0';
	if (!tool_number(colon + 1, 1, UINT32_MAX, &line) ||
	    (second && !tool_number(second + 1, 0, UINT32_MAX - 1, &step)))
		return usage("--step needs FILE:LINE[:N]%s", "");
	o->step_file = *text ? text : NULL;
	o->step_line = line;
	o->step = step;
	o->has_step = true;
	return 0;
}

static int parse_colour(struct options *o, const char *when)
{
	if (!strcmp(when, "always"))
		o->view.colour = true;
	else if (!strcmp(when, "never"))
		o->view.colour = false;
	else if (strcmp(when, "auto"))
		return usage("--color takes always, never or auto, not '%s'", when);
	return 0;
}

enum { OPT_WINDOW = 256, OPT_STEP, OPT_WIDTH, OPT_ASCII, OPT_COLOUR, OPT_VERSION };

static int parse_option(struct options *o, int c)
{
	uint64_t n;

	switch (c) {
	case 'e':
		if (!tool_number(optarg, 0, 1u << 30, &n))
			return usage("--execution needs a number, not '%s'", optarg);
		o->view.execution = n;
		o->all = false;
		return 0;
	case 'c':
		if (!tool_number(optarg, 0, NEURON_MAX_CORES - 1, &n))
			return usage("--core needs 0 to 7, not '%s'", optarg);
		o->view.core = n;
		return 0;
	case OPT_WINDOW:
		return parse_window(o, optarg);
	case OPT_STEP:
		return parse_step(o, optarg);
	case OPT_WIDTH:
		if (!tool_number(optarg, 10, 400, &n))
			return usage("--width needs 10 to 400, not '%s'", optarg);
		o->view.width = n;
		return 0;
	case OPT_ASCII:
		o->view.utf8 = false;
		return 0;
	case OPT_COLOUR:
		return parse_colour(o, optarg);
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
		{ "execution", required_argument, NULL, 'e' },
		{ "core", required_argument, NULL, 'c' },
		{ "window", required_argument, NULL, OPT_WINDOW },
		{ "step", required_argument, NULL, OPT_STEP },
		{ "width", required_argument, NULL, OPT_WIDTH },
		{ "ascii", no_argument, NULL, OPT_ASCII },
		{ "color", required_argument, NULL, OPT_COLOUR },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int c, ret;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "e:c:h", longs, NULL)) != -1) {
		ret = parse_option(o, c);
		if (ret)
			return ret;
	}
	if (optind == argc)
		return usage("a command is missing; there is: view%s", "");
	if (strcmp(argv[optind], "view"))
		return usage("unknown command '%s'; there is: view", argv[optind]);
	if (argc - optind != 2)
		return usage("view needs one file%s", "");
	if (o->window && o->has_step)
		return usage("--window and --step exclude each other%s", "");
	o->path = argv[optind + 1];
	return 0;
}

static void read_terminal(struct options *o)
{
	struct winsize size;

	setlocale(LC_CTYPE, "");
	o->view.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	o->view.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col > SIDE_COLUMNS + 10)
		o->view.width = size.ws_col - SIDE_COLUMNS > 400 ? 400 : size.ws_col - SIDE_COLUMNS;
}

static int show_one(const struct profile_file *file, struct options *o, size_t execution)
{
	int ret = 0;

	if (execution >= file->count) {
		tool_error(NAME, "%s: execution %zu of %zu does not exist; they count from 0", o->path,
			   execution, file->count);
		return 1;
	}
	o->view.execution = execution;
	if (o->has_step)
		ret = profile_find_step(file, o->step_file, o->step_line, o->step, &o->view);
	if (ret) {
		tool_error(NAME, "%s: execution %zu: line %u did not run %u times", o->path, execution,
			   o->step_line, o->step + 1);
		return 1;
	}
	printf("%sExecution %zu of %zu: ", execution && o->all ? "\n" : "", execution, file->count);
	ret = profile_print(file, &o->view, stdout);
	if (ret)
		tool_error(NAME, "%s: execution %zu, core %u: %s", o->path, execution, o->view.core,
			   ret == -ENOMEM ? "out of memory" : "not in the file, or the window is empty");
	return ret ? 1 : 0;
}

static int show(const struct profile_file *file, struct options *o)
{
	size_t i;

	if (!file->count) {
		tool_error(NAME, "%s: no execution was traced", o->path);
		return 1;
	}
	if (!o->all)
		return show_one(file, o, o->view.execution);
	for (i = 0; i < file->count; i++)
		if (show_one(file, o, i))
			return 1;
	if (file->dropped_executions)
		printf("\n%llu further executions did not fit the file\n",
		       (unsigned long long)file->dropped_executions);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .all = true };
	struct profile_file *file;
	char error[512] = "";
	int ret;

	read_terminal(&o);
	if (parse(argc, argv, &o))
		return 2;
	ret = profile_read(o.path, &file, error, sizeof(error));
	if (ret) {
		tool_error(NAME, "%s: %s", o.path, *error ? error : strerror(-ret));
		return 1;
	}
	ret = show(file, &o);
	profile_close(file);
	return ret ? ret : tool_finish(NAME);
}
