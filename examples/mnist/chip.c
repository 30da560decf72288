// SPDX-License-Identifier: MIT
/*
 * Training and classifying on the chip.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nrt/nrt_profile.h"
#include "program.h"
#include "run.h"
#include "session.h"

enum { CLASSIFY_BATCH = 100 };

/* The training program with its tensors, and a place for an epoch's results. */
struct trainer {
	const struct options *opt;
	const struct digits *digits;
	struct program program;
	nrt_tensor_t *net, *order, *label, *rate, *loss, *history;
	struct epoch *epoch;
	uint32_t chosen[(STEPS + 1) * BATCH];
	int32_t columns[BATCH][STEPS + 1];
	uint8_t labels[BATCH][STEPS];
	float rates[STEPS];
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int trainer_tensors(struct trainer *t, const struct net *net)
{
	struct program *p = &t->program;

	t->net = program_tensor(p, "net_in", "net", sizeof(*net), net);
	t->order = program_tensor(p, "order", NULL, sizeof(t->columns), NULL);
	t->label = program_tensor(p, "label", NULL, sizeof(t->labels), NULL);
	t->rate = program_tensor(p, "rate", NULL, sizeof(t->rates), NULL);
	t->loss = program_tensor(p, NULL, "loss", sizeof(t->epoch->loss), NULL);
	t->history = program_tensor(p, NULL, "history", sizeof(t->epoch->before), NULL);
	if (!t->net || !t->order || !t->label || !t->rate || !t->loss || !t->history ||
	    !program_tensor(p, "velocity_in", "velocity", sizeof(*net), NULL) ||
	    !program_tensor(p, "images", NULL, (size_t)IMAGES * PIXELS, t->digits->pixels))
		return -1;
	return 0;
}

static void trainer_free(struct trainer *t)
{
	if (!t)
		return;
	program_unload(&t->program);
	free(t->epoch);
	free(t);
}

/* Takes @kernel. NULL: failed (said why). */
static struct trainer *trainer_new(const struct options *opt, const struct digits *d,
				   struct nki_kernel *kernel)
{
	struct trainer *t = calloc(1, sizeof(*t));
	struct net *net = malloc(sizeof(*net));

	if (t)
		t->epoch = malloc(sizeof(*t->epoch));
	if (!t || !net || !t->epoch) {
		fail("out of memory");
		nki_kernel_free(kernel);
		goto error;
	}
	t->opt = opt;
	t->digits = d;
	net_init(net, opt->seed);
	if (program_load(&t->program, kernel) || trainer_tensors(t, net))
		goto error;
	if (opt->strict)
		nrtx_model_set_flags(t->program.model, NRTX_STRICT, opt->seed);
	free(net);
	return t;
error:
	free(net);
	trainer_free(t);
	return NULL;
}

/* Which images, labels and rates the epoch has: all that the host sends for it. */
static int send_schedule(struct trainer *t, unsigned int number)
{
	if (epoch_order(t->digits, t->opt->seed, number, t->chosen))
		return -1;
	/* Fetched ahead by the last step, not used. */
	memcpy(t->chosen + STEPS * BATCH, t->chosen, BATCH * sizeof(*t->chosen));
	for (unsigned int s = 0; s <= STEPS; s++) {
		for (unsigned int i = 0; i < BATCH; i++) {
			uint32_t image = t->chosen[s * BATCH + i];

			t->columns[i][s] = (int32_t)image;
			if (s < STEPS)
				t->labels[i][s] = t->digits->labels[image];
		}
		if (s < STEPS)
			t->rates[s] = learning_rate(number * STEPS + s, t->opt->epochs * STEPS);
	}
	if (tensor_write(t->order, t->columns, sizeof(t->columns)) ||
	    tensor_write(t->label, t->labels, sizeof(t->labels)) ||
	    tensor_write(t->rate, t->rates, sizeof(t->rates)))
		return -1;
	return 0;
}

static int execute_traced(struct trainer *t)
{
	const char *file = t->opt->profile;
	int err;

	if (nrt_profile_start(t->program.model, file) != NRT_SUCCESS)
		return fail("nrt_profile_start failed");
	err = program_execute(&t->program);
	if (nrt_profile_stop(file) != NRT_SUCCESS && !err)
		err = fail("nrt_profile_stop failed: cannot write %s", file);
	return err;
}

/* One epoch: one execution. @number: which; the last one is traced when asked for. */
static int trainer_epoch(struct trainer *t, unsigned int number)
{
	bool traced = t->opt->profile && number + 1 == t->opt->epochs;
	double start = now(), wall;

	if (send_schedule(t, number))
		return -1;
	if (traced ? execute_traced(t) : program_execute(&t->program))
		return -1;
	wall = now() - start;
	if (tensor_read(t->loss, t->epoch->loss, sizeof(t->epoch->loss)) ||
	    tensor_read(t->history, t->epoch->before, sizeof(t->epoch->before)))
		return -1;
	show_epoch(number, t->epoch, wall, program_modelled_ns(&t->program));
	return 0;
}

static void load_images(float (*x)[PIXELS], const struct digits *d, unsigned int first)
{
	for (unsigned int i = 0; i < CLASSIFY_BATCH; i++) {
		/* The last batch may be short: it repeats the last image. */
		unsigned int n = first + i < d->test_count ? first + i : d->test_count - 1;
		const uint8_t *image = digits_image(d, d->test[n]);

		for (unsigned int k = 0; k < PIXELS; k++)
			x[i][k] = ((float)image[k] / 255.0f - MNIST_MEAN) / MNIST_STD;
	}
}

static void take_answers(struct outcome *o, const struct digits *d, float (*p)[CLASSES],
			 unsigned int first)
{
	for (unsigned int i = 0; i < CLASSIFY_BATCH && first + i < d->test_count; i++) {
		uint8_t best = 0;

		for (uint8_t c = 1; c < CLASSES; c++)
			best = p[i][c] > p[i][best] ? c : best;
		o->predicted[first + i] = best;
		o->right += best == d->labels[d->test[first + i]];
		o->tested++;
	}
}

/* Classify the held-out images on the chip. */
static int classify(struct outcome *o, const struct digits *d, const char *arch)
{
	float (*x)[PIXELS] = malloc(CLASSIFY_BATCH * sizeof(*x));
	float p[CLASSIFY_BATCH][CLASSES];
	nrt_tensor_t *image, *result;
	struct program program;
	int err = -1;

	o->tested = o->right = 0;
	if (!x)
		return fail("out of memory");
	if (program_load(&program, build_forward(arch, &o->net, CLASSIFY_BATCH))) {
		free(x);
		return -1;
	}
	image = program_tensor(&program, "image", NULL, CLASSIFY_BATCH * sizeof(*x), NULL);
	result = program_tensor(&program, NULL, "probability", sizeof(p), NULL);
	if (!image || !result)
		goto out;
	for (unsigned int n = 0; n < d->test_count; n += CLASSIFY_BATCH) {
		load_images(x, d, n);
		if (tensor_write(image, x, CLASSIFY_BATCH * sizeof(*x)) ||
		    program_execute(&program) || tensor_read(result, p, sizeof(p)))
			goto out;
		take_answers(o, d, p, n);
	}
	err = 0;
out:
	program_unload(&program);
	free(x);
	return err;
}

static int save_net(const char *path, const char *arch, const struct net *net)
{
	struct nki_kernel *k = build_forward(arch, net, 1);
	int err = nki_save(k, path);

	if (err)
		fail("cannot save %s: %s", path,
		     k && nki_error(k) ? nki_error(k) : strerror(abs(err)));
	else
		printf("saved %s: neuron-run classifies pictures with it\n", path);
	nki_kernel_free(k);
	return err ? -1 : 0;
}

static int train_epochs(struct trainer *t, struct recorder *rec, struct verifier *v)
{
	int wrong = 0;

	for (unsigned int e = 0; e < t->opt->epochs; e++) {
		if (trainer_epoch(t, e) || recorder_epoch(rec, t->epoch))
			return -1;
		if (v && verifier_epoch(v, e, t->epoch))
			wrong = -1;
	}
	return wrong;
}

static int finish(struct trainer *t, struct outcome *o, const char *arch, double wall)
{
	const struct options *opt = t->opt;

	if (tensor_read(t->net, &o->net, sizeof(o->net)) || classify(o, t->digits, arch))
		return -1;
	printf("trained %u epochs in %.2f s\n", opt->epochs, wall);
	printf("weights %016llx (FNV-1a of the %zu trained fp32 values)\n",
	       (unsigned long long)hash64(&o->net, sizeof(o->net)), NET_FLOATS);
	printf("held-out accuracy on the chip: %.1f %% (%u of %u)\n",
	       100.0 * o->right / o->tested, o->right, o->tested);
	show_digits(t->digits, o, opt->seed, 5);
	return opt->save ? save_net(opt->save, arch, &o->net) : 0;
}

int run_train(const struct options *opt, const struct digits *d)
{
	struct outcome *o = calloc(1, sizeof(*o));
	struct verifier *v = NULL;
	struct trainer *t = NULL;
	struct recorder *rec = NULL;
	char arch[16];
	double start;
	int err = -1;

	if (!o)
		return fail("out of memory");
	if (session_open(arch)) {
		free(o);
		return -1;
	}
	if ((opt->check && !(v = verifier_new(d, opt->seed, opt->epochs))) ||
	    recorder_open(&rec, opt->record, opt->seed, opt->epochs) ||
	    !(t = trainer_new(opt, d, build_train(arch, STEPS))))
		goto out;
	start = now();
	err = train_epochs(t, rec, v);
	if (finish(t, o, arch, now() - start))
		err = -1;
	if (v && verifier_end(v, o))
		err = -1;
	v = NULL;
	if (!err && opt->epochs >= EPOCHS && o->right * 100 < o->tested * 95)
		err = fail("accuracy is below 95 %%");
out:
	if (recorder_close(rec, err ? NULL : o))
		err = -1;
	free(v);
	trainer_free(t);
	session_close();
	free(o);
	return err;
}

int run_rate(const struct options *opt, const struct digits *d)
{
	struct options traced = *opt;
	char path[] = "/tmp/mnist-rate.XXXXXX", arch[16];
	struct trainer *t;
	int fd, err = -1;

	traced.epochs = 1;
	traced.profile = path;
	if (session_open(arch))
		return -1;
	fd = mkstemp(path);
	if (fd < 0) {
		session_close();
		return fail("cannot create a file in /tmp: %s", strerror(errno));
	}
	close(fd);
	t = trainer_new(&traced, d, build_train(arch, STEPS));
	if (t && !send_schedule(t, 0) && !execute_traced(t))
		err = show_rate(path);
	trainer_free(t);
	session_close();
	unlink(path);
	return err;
}

/* --- a bug on purpose ------------------------------------------------------------ */

/*
 * The semaphore to leave out: GpSimd must not write the next batch into x before the
 * tensor engine has read this one for the last time.
 */
static int choose_edge(struct nki_kernel *k, struct nki_edge *edge)
{
	int count = nki_edge_count(k);

	for (int n = 0; n < count; n++) {
		if (nki_edge(k, (unsigned int)n, edge))
			break;
		if (!strcmp(edge->producer.name, "nki_nc_matmul") &&
		    !strcmp(edge->consumer.name, "nki_tensor_scalar") &&
		    edge->consumer_engine == NEURON_ENGINE_POOL)
			return n;
	}
	return fail("%s", nki_error(k) ? nki_error(k) : "the program has no such semaphore");
}

static void show_call(const char *what, const char *function, const char *file, unsigned int line)
{
	const char *base = strrchr(file, '/');

	printf("  %-12s  %s:%u  %s\n", what, base ? base + 1 : file, line, function);
	show_source(file, line);
}

static const char *engine_name(unsigned int engine)
{
	static const char *const names[NEURON_ENGINE_COUNT] = {
		[NEURON_ENGINE_PE] = "tensor", [NEURON_ENGINE_ACT] = "scalar",
		[NEURON_ENGINE_POOL] = "gpsimd", [NEURON_ENGINE_DMA] = "DMA",
		[NEURON_ENGINE_DVE] = "vector", [NEURON_ENGINE_SP] = "sync",
	};

	return engine < NEURON_ENGINE_COUNT && names[engine] ? names[engine] : "?";
}

static const char *hazard(const char *reason)
{
	return !strcmp(reason, "RAW") ? "read after write" :
	       !strcmp(reason, "WAR") ? "write after read" :
	       !strcmp(reason, "WAW") ? "write after write" : reason;
}

struct access {
	unsigned int engine;
	int line;
};

/*
 * The edge orders its producer, and what the producer's engine did before, before its
 * consumer. Either side may come first in modelled time: nothing orders them now.
 */
static bool edge_orders(const struct nki_edge *edge, struct access a, struct access b)
{
	if (a.engine == edge->consumer_engine) {
		struct access swap = a;

		a = b;
		b = swap;
	}
	return a.engine == edge->producer_engine && b.engine == edge->consumer_engine &&
	       b.line == edge->consumer.line;
}

static int show_race(const nrtx_execution_t *e, const struct nki_edge *edge)
{
	const struct neuron_fault_record *f = (const void *)e->fault_record;

	if (e->fault != NEURON_FAULT_DATA_RACE)
		return fail("strict mode reports something else: %s", e->fault_text);
	printf("\nstrict mode stopped the program at %.3f us of modelled time: %s\n\n",
	       (double)f->ticks / (NEURON_TICK_HZ / 1000000.0), "two accesses that nothing orders");
	show_call(engine_name(e->fault_other.engine), e->fault_other.function,
		  e->fault_other.file, e->fault_other.line);
	show_call(engine_name(e->fault_at.engine), e->fault_at.function, e->fault_at.file,
		  e->fault_at.line);
	printf("  bytes         %s, partition %u and on, %llu to %llu of each\n",
	       f->space == NEURON_SPACE_PSUM ? "PSUM" : "SBUF", f->partition,
	       (unsigned long long)f->addr, (unsigned long long)(f->addr + f->size - 1));
	printf("  missing edge  %s engine, line %d  ->  %s engine, line %d (%s)\n",
	       engine_name(edge->producer_engine), edge->producer.line,
	       engine_name(edge->consumer_engine), edge->consumer.line, hazard(edge->reason));
	if (!edge_orders(edge, (struct access){ e->fault_at.engine, (int)e->fault_at.line },
			 (struct access){ e->fault_other.engine, (int)e->fault_other.line }))
		return fail("the race found is not the one that was made");
	return 0;
}

int run_bug(const struct options *opt, const struct digits *d)
{
	struct options strict = *opt;
	struct nki_edge edge;
	nrtx_execution_t e;
	struct nki_kernel *k;
	struct trainer *t;
	char arch[16];
	int n, err = -1;

	strict.strict = true;
	/* The fault is expected, and shown below. */
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 0);
	if (session_open(arch))
		return -1;
	k = build_train(arch, STEPS);
	n = choose_edge(k, &edge);
	if (n < 0) {
		nki_kernel_free(k);
		session_close();
		return -1;
	}
	printf("left out: semaphore edge %d, %s engine %s (line %d) -> %s engine %s (line %d)\n", n,
	       engine_name(edge.producer_engine), edge.producer.name, edge.producer.line,
	       engine_name(edge.consumer_engine), edge.consumer.name, edge.consumer.line);
	nki_drop_semaphore(k, n);
	t = trainer_new(&strict, d, k);
	if (t && !send_schedule(t, 0)) {
		NRT_STATUS status = nrt_execute(t->program.model, t->program.in, t->program.out);

		if (status == NRT_SUCCESS)
			fail("the race was not found");
		else if (nrtx_get_last_execution(t->program.model, &e, sizeof(e)) != NRT_SUCCESS)
			fail("nrt_execute failed: %s", nrt_get_status_as_str(status));
		else
			err = show_race(&e, &edge);
	}
	trainer_free(t);
	session_close();
	return err;
}
