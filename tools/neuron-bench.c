// SPDX-License-Identifier: MIT
/*
 * neuron-bench: how long executions of a NEFF take, by percentile, and how many
 * fit into a second. Every thread has a core, a copy of the model and tensors of
 * its own; all begin together.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/tool.h"
#include "neff.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_ext.h"
#include "nrt/nrt_status.h"

#define NAME		"neuron-bench"
#define MAX_THREADS	128
#define MAX_TIMES	1000000

struct options {
	const char *path;
	unsigned int core, threads, times, warmup;
	bool json;
};

/**
 * struct worker - a thread
 * @us: wall time of each execution
 * @bytes: of all tensors
 */
struct worker {
	const struct bench *b;
	unsigned int core;
	pthread_t thread;
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t **tensor;
	double *us;
	double start, end;
	uint64_t modelled_ns;
	NRT_STATUS status;
	const char *failed;
};

struct bench {
	struct options o;
	struct neff *neff;
	void *bytes;
	size_t size;
	pthread_barrier_t begin;
	struct worker worker[MAX_THREADS];
};

static const char help[] =
	"Usage: neuron-bench [OPTION]... MODEL.neff\n"
	"Measure latency and throughput of a program on zero inputs.\n\n"
	"  -n, --times N       executions of each thread, 1 to 1000000 (default 100)\n"
	"  -w, --warmup N      executions before, not counted (default 10)\n"
	"  -t, --threads N     threads, 1 to 128, each on a core of its own (default 1)\n"
	"  -c, --core N        logical core of the first thread (default 0)\n"
	"  -j, --json          JSON instead of text\n"
	"  -h, --help          this text\n"
	"      --version       version\n\n"
	"Wall time is that of this machine; modelled time is the chip model's. Data stays in\n"
	"device memory: copies of inputs and outputs are not in the figures.\n"
	"Exit status: 0; 1 the program failed; 2 usage.\n";

static int usage(const char *format, const char *what)
{
	tool_error(NAME, format, what);
	fputs("Try 'neuron-bench --help'.\n", stderr);
	return -EINVAL;
}

static int number(const char *option, uint64_t min, uint64_t max, unsigned int *out)
{
	uint64_t n;

	if (!tool_number(optarg, min, max, &n)) {
		tool_error(NAME, "%s needs %llu to %llu, not '%s'", option, (unsigned long long)min,
			   (unsigned long long)max, optarg);
		return -EINVAL;
	}
	*out = n;
	return 0;
}

static int parse_option(struct options *o, int c)
{
	switch (c) {
	case 'n':
		return number("--times", 1, MAX_TIMES, &o->times);
	case 'w':
		return number("--warmup", 0, MAX_TIMES, &o->warmup);
	case 't':
		return number("--threads", 1, MAX_THREADS, &o->threads);
	case 'c':
		return number("--core", 0, 1151, &o->core);
	case 'j':
		o->json = true;
		return 0;
	case 'h':
		fputs(help, stdout);
		exit(tool_finish(NAME));
	case 'V':
		tool_version(NAME);
		exit(tool_finish(NAME));
	}
	return usage("unknown option, or one without its value%s", "");
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "times", required_argument, NULL, 'n' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "threads", required_argument, NULL, 't' },
		{ "core", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c, ret;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "n:w:t:c:jh", longs, NULL)) != -1) {
		ret = parse_option(o, c);
		if (ret)
			return ret;
	}
	if (optind == argc)
		return usage("the NEFF is missing%s", "");
	if (optind + 1 < argc)
		return usage("one NEFF at a time; unexpected '%s'", argv[optind + 1]);
	o->path = argv[optind];
	return 0;
}

/* --- a thread ----------------------------------------------------------------------- */

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

static bool worked(struct worker *w, const char *what, NRT_STATUS status)
{
	if (!status || w->status)
		return !w->status;
	w->status = status;
	w->failed = what;
	return false;
}

static bool make_tensors(struct worker *w)
{
	const struct neff *neff = w->b->neff;
	unsigned int i;

	w->tensor = calloc(neff->arg_count + 1, sizeof(*w->tensor));
	if (!w->tensor)
		return worked(w, "tensors", NRT_RESOURCE);
	for (i = 0; i < neff->arg_count; i++) {
		const struct neff_arg *a = &neff->args[i];

		if (a->type != NEFF_VAR_INPUT && a->type != NEFF_VAR_OUTPUT)
			continue;
		if (!worked(w, a->name, nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, w->core,
							    a->size, a->name, &w->tensor[i])) ||
		    !worked(w, a->name,
			    nrt_add_tensor_to_tensor_set(a->type == NEFF_VAR_INPUT ? w->in : w->out,
							 a->name, w->tensor[i])))
			return false;
	}
	return true;
}

static void execute(struct worker *w)
{
	const struct options *o = &w->b->o;
	nrtx_execution_t x;
	unsigned int i;

	for (i = 0; i < o->warmup && !w->status; i++)
		worked(w, "nrt_execute", nrt_execute(w->model, w->in, w->out));
	pthread_barrier_wait((pthread_barrier_t *)&w->b->begin);
	w->start = now_us();
	for (i = 0; i < o->times && !w->status; i++) {
		double start = now_us();

		worked(w, "nrt_execute", nrt_execute(w->model, w->in, w->out));
		w->us[i] = now_us() - start;
	}
	w->end = now_us();
	if (w->model && !nrtx_get_last_execution(w->model, &x, sizeof(x)))
		w->modelled_ns = x.modelled_ns;
}

static void *work(void *opaque)
{
	struct worker *w = opaque;
	const struct bench *b = w->b;
	unsigned int i;

	w->us = calloc(b->o.times, sizeof(*w->us));
	if (!w->us)
		worked(w, "memory", NRT_RESOURCE);
	if (worked(w, "nrt_load", nrt_load(b->bytes, b->size, w->core, 1, &w->model)) &&
	    worked(w, "tensor sets", nrt_allocate_tensor_set(&w->in)) &&
	    worked(w, "tensor sets", nrt_allocate_tensor_set(&w->out)))
		make_tensors(w);
	execute(w);
	if (w->in)
		nrt_destroy_tensor_set(&w->in);
	if (w->out)
		nrt_destroy_tensor_set(&w->out);
	for (i = 0; w->tensor && i < b->neff->arg_count; i++)
		if (w->tensor[i])
			nrt_tensor_free(&w->tensor[i]);
	free(w->tensor);
	if (w->model)
		nrt_unload(w->model);
	return NULL;
}

/* --- figures ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Smallest value that at least @percent of all do not exceed. */
static double percentile(const double *us, size_t n, double percent)
{
	size_t i = (size_t)((n * percent + 99.999999) / 100);

	return us[i ? i - 1 : 0];
}

static const struct {
	const char *name;
	double percent;
} rows[] = { { "p0", 0 }, { "p50", 50 }, { "p90", 90 }, { "p99", 99 }, { "p100", 100 } };

#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct figures {
	double *us;
	size_t n;
	double mean, seconds, rate;
	uint64_t modelled_ns;
};

static int count(const struct bench *b, struct figures *f)
{
	double start = b->worker[0].start, end = b->worker[0].end, sum = 0;
	unsigned int t;
	size_t i;

	f->n = (size_t)b->o.threads * b->o.times;
	f->us = malloc(f->n * sizeof(*f->us));
	if (!f->us)
		return -ENOMEM;
	for (t = 0; t < b->o.threads; t++) {
		memcpy(f->us + (size_t)t * b->o.times, b->worker[t].us, b->o.times * sizeof(*f->us));
		start = b->worker[t].start < start ? b->worker[t].start : start;
		end = b->worker[t].end > end ? b->worker[t].end : end;
	}
	for (i = 0; i < f->n; i++)
		sum += f->us[i];
	qsort(f->us, f->n, sizeof(*f->us), compare);
	f->mean = sum / f->n;
	f->seconds = (end - start) / 1e6;
	f->rate = f->n / f->seconds;
	f->modelled_ns = b->worker[0].modelled_ns;
	return 0;
}

static void print_text(const struct bench *b, const struct figures *f)
{
	unsigned int i;

	printf("%s: %zu executions on %u core%s, %.3f s\n", b->neff->name, f->n, b->o.threads,
	       b->o.threads == 1 ? "" : "s", f->seconds);
	printf("throughput  %.1f executions/s\n", f->rate);
	printf("latency     mean %.1f us", f->mean);
	for (i = 0; i < ROWS; i++)
		printf(", %s %.1f us", rows[i].name, percentile(f->us, f->n, rows[i].percent));
	printf("\nmodelled    %.3f us for each execution\n", f->modelled_ns / 1e3);
}

static int print_json(const struct bench *b, const struct figures *f)
{
	json_t *latency = json_object(), *root;
	unsigned int i;
	int ret;

	json_object_set_new(latency, "mean", json_real(f->mean));
	for (i = 0; i < ROWS; i++)
		json_object_set_new(latency, rows[i].name,
				    json_real(percentile(f->us, f->n, rows[i].percent)));
	root = json_pack("{s:s, s:I, s:i, s:f, s:f, s:o, s:f}", "model", b->neff->name, "executions",
			 (json_int_t)f->n, "threads", (int)b->o.threads, "seconds", f->seconds,
			 "executions_per_second", f->rate, "latency_us", latency, "modelled_us",
			 f->modelled_ns / 1e3);
	if (!root)
		return -ENOMEM;
	ret = json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
	return ret ? -EIO : 0;
}

/* --- the program ----------------------------------------------------------------------- */

static int read_neff(struct bench *b)
{
	FILE *file = fopen(b->o.path, "rbe");
	char error[512] = "";
	long size = -1;
	int ret;

	if (file && !fseek(file, 0, SEEK_END))
		size = ftell(file);
	if (size >= 0)
		b->bytes = malloc(size + 1);
	if (!file || size < 0 || !b->bytes || fseek(file, 0, SEEK_SET) ||
	    fread(b->bytes, 1, size, file) != (size_t)size) {
		tool_error(NAME, "%s: %s", b->o.path, strerror(errno));
		if (file)
			fclose(file);
		return -EIO;
	}
	fclose(file);
	b->size = size;
	ret = neff_read(b->bytes, b->size, &b->neff, error, sizeof(error));
	if (ret)
		tool_error(NAME, "%s: %s", b->o.path, *error ? error : strerror(-ret));
	return ret;
}

/* Only the cores that are needed, as many physical ones as the program has. */
static void choose_cores(struct bench *b)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", b->neff->core_count);
	if (!getenv("NEURON_RT_VIRTUAL_CORE_SIZE"))
		setenv("NEURON_LOGICAL_NC_CONFIG", text, 0);
	if (getenv("NEURON_RT_VISIBLE_CORES") || getenv("NEURON_RT_NUM_CORES"))
		return;
	snprintf(text, sizeof(text), "%u-%u", b->o.core, b->o.core + b->o.threads - 1);
	setenv("NEURON_RT_VISIBLE_CORES", text, 1);
	b->o.core = 0;
}

static int run_threads(struct bench *b)
{
	unsigned int t;

	if (pthread_barrier_init(&b->begin, NULL, b->o.threads))
		return -ENOMEM;
	for (t = 0; t < b->o.threads; t++) {
		b->worker[t] = (struct worker){ .b = b, .core = b->o.core + t };
		/* A thread that is missing would leave the others at the barrier. */
		if (pthread_create(&b->worker[t].thread, NULL, work, &b->worker[t])) {
			tool_error(NAME, "thread %u cannot be started", t);
			exit(1);
		}
	}
	for (t = 0; t < b->o.threads; t++)
		pthread_join(b->worker[t].thread, NULL);
	pthread_barrier_destroy(&b->begin);
	for (t = 0; t < b->o.threads; t++) {
		const struct worker *w = &b->worker[t];

		if (!w->status)
			continue;
		tool_error(NAME, "core %u: %s: %s (%d)", w->core, w->failed,
			   nrt_get_status_as_str(w->status), (int)w->status);
		return -EIO;
	}
	return 0;
}

static int bench(struct bench *b)
{
	struct figures f = { 0 };
	NRT_STATUS status;
	int ret;

	choose_cores(b);
	status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
	if (status) {
		tool_error(NAME, "the runtime cannot be initialised: %s (%d)",
			   nrt_get_status_as_str(status), (int)status);
		return -EIO;
	}
	ret = run_threads(b);
	nrt_close();
	if (!ret)
		ret = count(b, &f);
	if (!ret && b->o.json)
		ret = print_json(b, &f);
	else if (!ret)
		print_text(b, &f);
	free(f.us);
	return ret;
}

int main(int argc, char **argv)
{
	static struct bench b = { .o = { .threads = 1, .times = 100, .warmup = 10 } };
	unsigned int t;
	int ret;

	if (parse(argc, argv, &b.o))
		return 2;
	ret = read_neff(&b);
	if (!ret)
		ret = bench(&b);
	for (t = 0; t < b.o.threads; t++)
		free(b.worker[t].us);
	neff_free(b.neff);
	free(b.bytes);
	return ret ? 1 : tool_finish(NAME);
}
