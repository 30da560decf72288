// SPDX-License-Identifier: MIT
/*
 * neuron-run: run a NEFF once, inputs from files, outputs to files; pictures for
 * nets that say how they want them.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/tool.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_ext.h"
#include "nrt/nrt_profile.h"
#include "nrt/nrt_status.h"
#include "run/run.h"

#define NAME "neuron-run"

struct options {
	const char *neff;
	const char *out_dir;
	const char *profile;
	unsigned int core;
	unsigned int times;
	bool strict;
	bool zero;
	bool quiet;
	char **inputs;
	int input_count;
};

/* An argument of the program that the caller sees. */
struct slot {
	const struct neff_arg *arg;
	nrt_tensor_t *tensor;
	uint8_t *data;
	bool given;
};

struct run {
	struct options *o;
	struct neff *neff;
	void *bytes;
	size_t size;
	struct run_info info;
	nrt_model_t *model;
	nrt_tensor_set_t *sets[2];	/* inputs, outputs */
	struct slot *slots;
	unsigned int slot_count;
	bool initialised;
	bool utf8;
	/* Pictures go into one input, several in a batch. */
	struct slot *picture;
	struct picture_shape shape;
	const char **names;
	unsigned int pictures;
};

static const char help[] =
	"Usage: neuron-run [OPTION]... MODEL.neff [[NAME=]FILE]...\n"
	"Run a program on a NeuronCore.\n\n"
	"A FILE is the bytes of an input tensor; without NAME= files are taken in the order\n"
	"of the inputs. A PGM or PPM picture is converted to the shape and normalisation that\n"
	"the NEFF asks for, and the predicted label is printed when the NEFF names its\n"
	"classes; several pictures fill a batch.\n\n"
	"  -o, --output-dir DIR  write every output to DIR/NAME.bin\n"
	"  -c, --core N          first logical core (default 0)\n"
	"  -n, --times N         run N times and print how long it took\n"
	"      --zero            inputs without a file are zero instead of an error\n"
	"      --strict          check races, uninitialised reads and limits\n"
	"      --profile FILE    trace the last run (see neuron-profile)\n"
	"  -q, --quiet           print no output values\n"
	"  -l, --list            only list the inputs and outputs\n"
	"  -h, --help            this text\n"
	"      --version         version\n\n"
	"NEURON_RT_SIM=trn2 runs on the chip model in this process, without a driver.\n"
	"Exit status: 0; 1 the program or a file failed; 2 usage.\n";

static bool list_only;

static int usage(const char *format, const char *what)
{
	tool_error(NAME, format, what);
	fputs("Try 'neuron-run --help'.\n", stderr);
	return -EINVAL;
}

enum { OPT_ZERO = 256, OPT_STRICT, OPT_PROFILE, OPT_VERSION };

static int parse_option(struct options *o, int c)
{
	uint64_t n;

	switch (c) {
	case 'o':
		o->out_dir = optarg;
		return 0;
	case 'c':
		if (!tool_number(optarg, 0, 1151, &n))
			return usage("--core needs 0 to 1151, not '%s'", optarg);
		o->core = n;
		return 0;
	case 'n':
		if (!tool_number(optarg, 1, 1000000, &n))
			return usage("--times needs 1 to 1000000, not '%s'", optarg);
		o->times = n;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'l':
		list_only = true;
		return 0;
	case OPT_ZERO:
		o->zero = true;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_PROFILE:
		o->profile = optarg;
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
		{ "output-dir", required_argument, NULL, 'o' },
		{ "core", required_argument, NULL, 'c' },
		{ "times", required_argument, NULL, 'n' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "list", no_argument, NULL, 'l' },
		{ "zero", no_argument, NULL, OPT_ZERO },
		{ "strict", no_argument, NULL, OPT_STRICT },
		{ "profile", required_argument, NULL, OPT_PROFILE },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int c, ret;

	o->times = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "o:c:n:qlh", longs, NULL)) != -1) {
		ret = parse_option(o, c);
		if (ret)
			return ret;
	}
	if (optind == argc)
		return usage("the NEFF is missing%s", "");
	o->neff = argv[optind];
	o->inputs = argv + optind + 1;
	o->input_count = argc - optind - 1;
	return 0;
}

/* --- files ------------------------------------------------------------------------ */

/* A whole file. Pipes are allowed. */
static int read_file(const char *path, void **bytes, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	size_t room = 0, n = 0;
	char *buf = NULL, *grown;
	ssize_t got = 1;

	if (fd < 0) {
		tool_error(NAME, "%s: %s", path, strerror(errno));
		return -errno;
	}
	while (got > 0 && !err) {
		if (n == room) {
			room = room ? 2 * room : 1 << 16;
			grown = realloc(buf, room);
			if (!grown) {
				err = ENOMEM;
				break;
			}
			buf = grown;
		}
		got = read(fd, buf + n, room - n);
		if (got < 0)
			err = errno;
		else
			n += got;
	}
	close(fd);
	if (err) {
		tool_error(NAME, "%s: %s", path, strerror(err));
		free(buf);
		return -err;
	}
	*bytes = buf;
	*size = n;
	return 0;
}

static int write_output(const struct run *r, const struct slot *s)
{
	char path[4096], name[NEFF_NAME_BYTES];
	FILE *file;
	size_t i, n;

	/* A tensor's name is not a path. */
	snprintf(name, sizeof(name), "%s", s->arg->name);
	for (i = 0; name[i]; i++)
		if (name[i] == '/')
			name[i] = '_';
	n = snprintf(path, sizeof(path), "%s/%s.bin", r->o->out_dir, name);
	file = n < sizeof(path) ? fopen(path, "wbe") : NULL;
	if (!file || fwrite(s->data, 1, s->arg->size, file) != s->arg->size) {
		tool_error(NAME, "%s: %s", path, n < sizeof(path) ? strerror(errno) : "name too long");
		if (file)
			fclose(file);
		return -EIO;
	}
	if (fclose(file)) {
		tool_error(NAME, "%s: %s", path, strerror(errno));
		return -EIO;
	}
	if (!r->o->quiet)
		printf("wrote %s (%llu bytes)\n", path, (unsigned long long)s->arg->size);
	return 0;
}

/* --- program ------------------------------------------------------------------------ */

static int failed(const char *what, NRT_STATUS status)
{
	tool_error(NAME, "%s: %s (%d)", what, nrt_get_status_as_str(status), (int)status);
	return -EIO;
}

static bool is_input(const struct slot *s)
{
	return s->arg->type == NEFF_VAR_INPUT;
}

static int load_neff(struct run *r)
{
	char error[512] = "";
	unsigned int i;
	int ret = read_file(r->o->neff, &r->bytes, &r->size);

	if (ret)
		return ret;
	ret = neff_read(r->bytes, r->size, &r->neff, error, sizeof(error));
	if (!ret)
		ret = run_info_read(r->bytes, r->size, &r->info, error, sizeof(error));
	if (ret) {
		tool_error(NAME, "%s: %s", r->o->neff, *error ? error : strerror(-ret));
		return ret;
	}
	r->slots = calloc(r->neff->arg_count + 1, sizeof(*r->slots));
	if (!r->slots)
		return -ENOMEM;
	for (i = 0; i < r->neff->arg_count; i++) {
		const struct neff_arg *arg = &r->neff->args[i];

		if (arg->type == NEFF_VAR_INPUT || arg->type == NEFF_VAR_OUTPUT)
			r->slots[r->slot_count++].arg = arg;
	}
	for (i = 0; i < r->slot_count; i++) {
		r->slots[i].data = calloc(1, r->slots[i].arg->size);
		if (!r->slots[i].data)
			return -ENOMEM;
	}
	return 0;
}

static void list_slots(const struct run *r, FILE *out)
{
	unsigned int i, d;

	for (i = 0; i < r->slot_count; i++) {
		const struct neff_arg *arg = r->slots[i].arg;

		fprintf(out, "  %-6s %s: %s [", is_input(&r->slots[i]) ? "input" : "output", arg->name,
			arg->dtype);
		for (d = 0; d < arg->ndim; d++)
			fprintf(out, "%s%u", d ? ", " : "", arg->shape[d]);
		fprintf(out, "], %llu bytes\n", (unsigned long long)arg->size);
	}
}

/* Only the core that is needed: another process may hold the rest. */
static void choose_cores(const struct run *r)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", r->neff->core_count);
	if (!getenv("NEURON_RT_VIRTUAL_CORE_SIZE"))
		setenv("NEURON_LOGICAL_NC_CONFIG", text, 0);
	if (getenv("NEURON_RT_VISIBLE_CORES") || getenv("NEURON_RT_NUM_CORES"))
		return;
	snprintf(text, sizeof(text), "%u", r->o->core);
	setenv("NEURON_RT_VISIBLE_CORES", text, 1);
	r->o->core = 0;		/* libnrt counts the visible ones */
}

static int load_model(struct run *r)
{
	NRT_STATUS status;

	choose_cores(r);
	status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
	if (status)
		return failed("the runtime cannot be initialised", status);
	r->initialised = true;
	status = nrt_load(r->bytes, r->size, r->o->core, 1, &r->model);
	if (status)
		return failed(r->o->neff, status);
	if (r->o->strict) {
		status = nrtx_model_set_flags(r->model, NRTX_STRICT, 0);
		if (status)
			return failed("--strict", status);
	}
	return 0;
}

static int make_tensors(struct run *r)
{
	NRT_STATUS status = nrt_allocate_tensor_set(&r->sets[0]);
	unsigned int i;

	if (!status)
		status = nrt_allocate_tensor_set(&r->sets[1]);
	for (i = 0; i < r->slot_count && !status; i++) {
		struct slot *s = &r->slots[i];

		status = nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, r->o->core, s->arg->size,
					     s->arg->name, &s->tensor);
		if (!status)
			status = nrt_add_tensor_to_tensor_set(r->sets[!is_input(s)], s->arg->name,
							      s->tensor);
	}
	return status ? failed("tensors", status) : 0;
}

/* --- inputs --------------------------------------------------------------------------- */

/* "NAME=FILE" when NAME is an input, else the next input that has no file. */
static struct slot *choose_slot(struct run *r, const char *text, const char **path)
{
	const char *equals = strchr(text, '=');
	unsigned int i;

	*path = text;
	for (i = 0; equals && i < r->slot_count; i++) {
		if (is_input(&r->slots[i]) && strlen(r->slots[i].arg->name) == (size_t)(equals - text) &&
		    !strncmp(r->slots[i].arg->name, text, equals - text)) {
			*path = equals + 1;
			return &r->slots[i];
		}
	}
	for (i = 0; i < r->slot_count; i++)
		if (is_input(&r->slots[i]) && !r->slots[i].given)
			return &r->slots[i];
	return r->picture;
}

static int add_picture(struct run *r, struct slot *s, const char *path, const uint8_t *bytes,
		       size_t size)
{
	char error[256] = "out of memory";
	struct image image = { 0 };
	int ret;

	if (!picture_shape(s->arg, &r->info, &r->shape)) {
		tool_error(NAME, "%s is a picture, but input '%s' takes none: that needs float32 or bfloat16 "
			   "and a shape of [batch,] height, width", path, s->arg->name);
		return -EINVAL;
	}
	if (r->pictures == r->shape.batch) {
		tool_error(NAME, "%s: input '%s' takes %u pictures", path, s->arg->name, r->shape.batch);
		return -EINVAL;
	}
	ret = image_parse(bytes, size, &image, error, sizeof(error));
	if (!ret)
		ret = picture_put(s->arg, &r->shape, &r->info, &image, r->pictures, s->data);
	image_free(&image);
	if (ret) {
		tool_error(NAME, "%s: %s", path, error);
		return ret;
	}
	r->names[r->pictures++] = path;
	r->picture = s;
	s->given = true;
	return 0;
}

static int add_input(struct run *r, const char *text)
{
	const char *path;
	struct slot *s = choose_slot(r, text, &path);
	void *bytes;
	size_t size;
	int ret;

	if (!s) {
		tool_error(NAME, "%s: more files than inputs. The program has:", text);
		list_slots(r, stderr);
		return -EINVAL;
	}
	ret = read_file(path, &bytes, &size);
	if (ret)
		return ret;
	if (size != s->arg->size && image_detect(bytes, size)) {
		ret = add_picture(r, s, path, bytes, size);
	} else if (size != s->arg->size) {
		tool_error(NAME, "%s has %zu bytes, input '%s' needs %llu", path, size, s->arg->name,
			   (unsigned long long)s->arg->size);
		ret = -EINVAL;
	} else {
		memcpy(s->data, bytes, size);
		s->given = true;
	}
	free(bytes);
	return ret;
}

static int read_inputs(struct run *r)
{
	int i, ret;
	unsigned int n;

	r->names = calloc(r->o->input_count + 1, sizeof(*r->names));
	if (!r->names)
		return -ENOMEM;
	for (i = 0; i < r->o->input_count; i++) {
		ret = add_input(r, r->o->inputs[i]);
		if (ret)
			return ret;
	}
	for (n = 0; n < r->slot_count && !r->o->zero; n++) {
		if (is_input(&r->slots[n]) && !r->slots[n].given) {
			tool_error(NAME, "no file for input '%s' (--zero would make it zero). The program has:",
				   r->slots[n].arg->name);
			list_slots(r, stderr);
			return -EINVAL;
		}
	}
	return 0;
}

/* --- run --------------------------------------------------------------------------------- */

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

static int execute(struct run *r)
{
	nrtx_execution_t x;
	double start = now_us();
	NRT_STATUS status = NRT_SUCCESS;
	unsigned int i;

	for (i = 0; i < r->o->times && !status; i++) {
		if (r->o->profile && i + 1 == r->o->times)
			status = nrt_profile_start(r->model, r->o->profile);
		if (!status)
			status = nrt_execute(r->model, r->sets[0], r->sets[1]);
	}
	if (status) {
		if (!nrtx_get_last_execution(r->model, &x, sizeof(x)) && x.fault)
			tool_error(NAME, "%s", x.fault_text);
		return failed("the program failed", status);
	}
	start = now_us() - start;
	if (r->o->profile) {
		status = nrt_profile_stop(r->o->profile);
		if (status)
			return failed(r->o->profile, status);
	}
	if (r->o->times > 1 && !nrtx_get_last_execution(r->model, &x, sizeof(x)))
		printf("%u runs: %.1f us of wall time each, %.2f us modelled\n", r->o->times,
		       start / r->o->times, x.modelled_ns / 1e3);
	return 0;
}

/* The output holds one value a class for each picture. */
static bool show_labels(const struct run *r, const struct slot *s)
{
	size_t classes = r->info.label_count, i, k;
	double *value;

	if (!classes || !r->picture || !s->arg->ndim ||
	    s->arg->shape[s->arg->ndim - 1] != classes ||
	    s->arg->size / neff_dtype_size(s->arg->dtype, NULL) != r->shape.batch * classes)
		return false;
	value = calloc(classes, sizeof(*value));
	if (!value)
		return false;
	for (i = 0; i < r->pictures; i++) {
		for (k = 0; k < classes; k++)
			value[k] = element_get(s->arg->dtype, s->data, i * classes + k);
		show_label(stdout, r->names[i], &r->info, value, r->utf8);
	}
	free(value);
	return true;
}

static int transfer(struct run *r, bool inputs)
{
	NRT_STATUS status = NRT_SUCCESS;
	unsigned int i;

	for (i = 0; i < r->slot_count && !status; i++) {
		struct slot *s = &r->slots[i];

		if (is_input(s) != inputs)
			continue;
		if (inputs)
			status = nrt_tensor_write(s->tensor, s->data, 0, s->arg->size);
		else
			status = nrt_tensor_read(s->tensor, s->data, 0, s->arg->size);
	}
	return status ? failed(inputs ? "writing inputs" : "reading outputs", status) : 0;
}

static int show_outputs(struct run *r)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < r->slot_count && !ret; i++) {
		struct slot *s = &r->slots[i];

		if (is_input(s))
			continue;
		if (!r->o->quiet && !show_labels(r, s))
			show_tensor(stdout, s->arg, s->data);
		if (r->o->out_dir)
			ret = write_output(r, s);
	}
	return ret;
}

static int run(struct run *r)
{
	int ret = load_neff(r);

	if (!ret && list_only) {
		list_slots(r, stdout);
		return 0;
	}
	if (!ret)
		ret = read_inputs(r);
	if (!ret)
		ret = load_model(r);
	if (!ret)
		ret = make_tensors(r);
	if (!ret)
		ret = transfer(r, true);
	if (!ret)
		ret = execute(r);
	if (!ret)
		ret = transfer(r, false);
	if (!ret)
		ret = show_outputs(r);
	if (ret == -ENOMEM)
		tool_error(NAME, "out of memory");
	return ret;
}

static void end(struct run *r)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		if (r->sets[i])
			nrt_destroy_tensor_set(&r->sets[i]);
	for (i = 0; i < r->slot_count; i++) {
		if (r->slots[i].tensor)
			nrt_tensor_free(&r->slots[i].tensor);
		free(r->slots[i].data);
	}
	if (r->model)
		nrt_unload(r->model);
	if (r->initialised)
		nrt_close();
	free(r->slots);
	free(r->names);
	run_info_free(&r->info);
	neff_free(r->neff);
	free(r->bytes);
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct run r = { .o = &o };
	int ret;

	setlocale(LC_CTYPE, "");
	r.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (parse(argc, argv, &o))
		return 2;
	ret = run(&r);
	end(&r);
	if (ret)
		return 1;
	return tool_finish(NAME);
}
