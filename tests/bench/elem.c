// SPDX-License-Identifier: MIT
/*
 * Elementwise work of the modelled vector and scalar engines on 128 x 2048 elements,
 * in turn with plain loops over the same data; what an instruction without work costs;
 * and how two cores on two threads scale, in turn with loops that only spin. Processor
 * time of an execution (for scaling: wall time) less that of the same program with few of
 * its instructions; the best of the rounds counts. Results are compared with the loops'.
 *
 *	elem [ops|empty|scale]
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "bench.h"
#include "nki.h"
#include "nrt/nrt.h"
#include "plain.h"

enum { P = 128, N = 2048, UNROLL = 4, FEW = 1, MANY = 7, ROUNDS = 9, EMPTY = 3000 };

static const char *const op_name[PLAIN_OPS] = { "copy", "add", "exp", "reduce" };

static float a32[P][N], b32[P][N], c32[P][N], d32[P][N];
static uint16_t a16[P][N], b16[P][N], c16[P][N], d16[P][N];

static float from_bf16(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static void operands(void)
{
	uint32_t state = 1;

	for (int p = 0; p < P; p++) {
		for (int i = 0; i < N; i++) {
			a32[p][i] = (float)((state = state * 1664525 + 1013904223) >> 8) * 0x1p-22f - 2;
			b32[p][i] = (float)((state = state * 1664525 + 1013904223) >> 8) * 0x1p-22f - 2;
			memcpy(&a16[p][i], (char *)&a32[p][i] + 2, 2);
			memcpy(&b16[p][i], (char *)&b32[p][i] + 2, 2);
		}
	}
}

static void instruction(struct nki_kernel *k, enum plain_op op, struct nki_view d, struct nki_view a,
			struct nki_view b)
{
	switch (op) {
	case PLAIN_COPY:
		nki_tensor_copy(k, d, a);
		break;
	case PLAIN_ADD:
		nki_tensor_tensor(k, d, a, b, NKI_ADD);
		break;
	case PLAIN_EXP:
		nki_activation(k, d, NKI_EXP, a);
		break;
	default:
		nki_tensor_reduce(k, d, NKI_ADD, a, 1);
		break;
	}
}

/* Of this process: a job runs on the thread that waits for it. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* A model on one core, with what it needs to run. */
struct job {
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *t;
	struct nki_kernel *k;
	void *neff;
};

static void job_load(struct job *j, struct nki_kernel *k, int core, size_t out_bytes)
{
	size_t size;

	j->k = k;
	if (nki_build(k, &j->neff, &size))
		bench_die("%s", k ? nki_error(k) : "out of memory");
	BENCH_CHECK(nrt_load(j->neff, size, core, core < 0 ? -1 : 1, &j->model));
	BENCH_CHECK(nrt_allocate_tensor_set(&j->in));
	BENCH_CHECK(nrt_allocate_tensor_set(&j->out));
	j->t = NULL;
	if (out_bytes) {
		BENCH_CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, core < 0 ? 0 : core, out_bytes, "c", &j->t));
		BENCH_CHECK(nrt_add_tensor_to_tensor_set(j->out, "c", j->t));
	}
	BENCH_CHECK(nrt_execute(j->model, j->in, j->out));
}

static void job_free(struct job *j)
{
	BENCH_CHECK(nrt_unload(j->model));
	nrt_destroy_tensor_set(&j->in);
	nrt_destroy_tensor_set(&j->out);
	if (j->t)
		nrt_tensor_free(&j->t);
	free(j->neff);
	nki_kernel_free(j->k);
}

static uint64_t job_ns(struct job *j)
{
	uint64_t start = cpu_ns();

	BENCH_CHECK(nrt_execute(j->model, j->in, j->out));
	return cpu_ns() - start;
}

static struct nki_kernel *kernel(const char *arch, enum plain_op op, bool bf16, int32_t trips)
{
	struct nki_kernel *k = nki_kernel_new("elem", arch);
	enum nki_dtype type = bf16 ? NKI_BFLOAT16 : NKI_FLOAT32;
	int cols = op == PLAIN_REDUCE ? 1 : N;
	struct nki_view at = nki_const(k, "a", type, bf16 ? (void *)a16 : (void *)a32, P, N);
	struct nki_view bt = nki_const(k, "b", type, bf16 ? (void *)b16 : (void *)b32, P, N);
	struct nki_view ct = nki_output(k, "c", type, P, cols);
	struct nki_view a = nki_sbuf(k, type, P, N), b = nki_sbuf(k, type, P, N);
	struct nki_view c = nki_sbuf(k, type, P, cols);

	nki_dma_copy(k, a, at);
	nki_dma_copy(k, b, bt);
	nki_for(k, i, 0, trips, 1) {
		for (int u = 0; u < UNROLL; u++)
			instruction(k, op, c, a, b);
	}
	nki_dma_copy(k, ct, c);
	return k;
}

static void plain(enum plain_op op, bool bf16)
{
	if (bf16)
		plain_bf16(op, d16[0], a16[0], b16[0], P, N);
	else
		plain_f32(op, d32[0], a32[0], b32[0], P, N);
}

static uint64_t plain_ns(enum plain_op op, bool bf16)
{
	uint64_t start = cpu_ns();

	for (int i = 0; i < UNROLL * (MANY - FEW); i++)
		plain(op, bf16);
	return cpu_ns() - start;
}

/* The loops add in another order and their expf() is not exact: not the same bits. */
static void check(struct job *j, enum plain_op op, bool bf16)
{
	size_t n = op == PLAIN_REDUCE ? P : (size_t)P * N;
	double tol = bf16 ? 1e-2 : op == PLAIN_REDUCE ? 1e-3 : 1e-6;

	BENCH_CHECK(nrt_tensor_read(j->t, bf16 ? (void *)c16 : (void *)c32, 0, n * (bf16 ? 2 : 4)));
	for (size_t i = 0; i < n; i++) {
		double got = bf16 ? from_bf16(c16[0][i]) : c32[0][i];
		double want = bf16 ? from_bf16(d16[0][i]) : d32[0][i];

		if (!(fabs(got - want) <= tol * (1 + fabs(want))))
			bench_die("%s: element %zu is %g, not %g", op_name[op], i, got, want);
	}
}

static void bench_op(const char *arch, enum plain_op op, bool bf16)
{
	uint64_t few = UINT64_MAX, many = UINT64_MAX, loop = UINT64_MAX, ns;
	size_t bytes = (size_t)P * (op == PLAIN_REDUCE ? 1 : N) * (bf16 ? 2 : 4);
	struct job one, all;

	job_load(&one, kernel(arch, op, bf16, FEW), -1, bytes);
	job_load(&all, kernel(arch, op, bf16, MANY), -1, bytes);
	for (int i = 0; i < ROUNDS; i++) {
		ns = job_ns(&one);
		few = ns < few ? ns : few;
		ns = job_ns(&all);
		many = ns < many ? ns : many;
		ns = plain_ns(op, bf16);
		loop = ns < loop ? ns : loop;
	}
	check(&all, op, bf16);
	job_free(&one);
	job_free(&all);
	if (many <= few)
		bench_die("%s: many took no longer than few", op_name[op]);
	printf("%s_%s_ns %llu\n", op_name[op], bf16 ? "bf16" : "fp32",
	       (unsigned long long)(many - few) / (UNROLL * (MANY - FEW)));
	printf("%s_%s_plain_ns %llu\n", op_name[op], bf16 ? "bf16" : "fp32",
	       (unsigned long long)loop / (UNROLL * (MANY - FEW)));
}

/* --- without work --------------------------------------------------------------------- */

/* One element of one partition. */
static struct nki_kernel *tiny_kernel(const char *arch, unsigned int n)
{
	struct nki_kernel *k = nki_kernel_new("tiny", arch);
	struct nki_view a = nki_sbuf(k, NKI_FLOAT32, 1, 1), b = nki_sbuf(k, NKI_FLOAT32, 1, 1);

	nki_memset(k, a, 1);
	for (unsigned int i = 0; i < n; i++)
		nki_tensor_copy(k, b, a);
	return k;
}

static void bench_empty(const char *arch)
{
	uint64_t few = UINT64_MAX, many = UINT64_MAX, ns;
	struct job one, all;

	job_load(&one, tiny_kernel(arch, EMPTY / 10), -1, 0);
	job_load(&all, tiny_kernel(arch, EMPTY), -1, 0);
	for (int i = 0; i < 10 * ROUNDS; i++) {
		ns = job_ns(&one);
		few = ns < few ? ns : few;
		ns = job_ns(&all);
		many = ns < many ? ns : many;
	}
	job_free(&one);
	job_free(&all);
	if (many <= few)
		bench_die("%d instructions took no longer than %d", EMPTY, EMPTY / 10);
	printf("empty_ns %.1f\n", (double)(many - few) / (EMPTY - EMPTY / 10));
}

/* --- two cores ------------------------------------------------------------------------- */

struct half {
	pthread_barrier_t *start;
	struct job *job;	/* NULL: spin */
	uint64_t spins;
};

static uint64_t spin(uint64_t n)
{
	volatile uint64_t x = 1;

	while (n--)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

static void work(struct half *h)
{
	if (h->job)
		BENCH_CHECK(nrt_execute(h->job->model, h->job->in, h->job->out));
	else
		spin(h->spins);
}

static void *thread(void *arg)
{
	struct half *h = arg;

	pthread_barrier_wait(h->start);
	work(h);
	pthread_barrier_wait(h->start);
	return NULL;
}

static uint64_t alone(struct half *h)
{
	uint64_t start = bench_ns();

	work(h);
	return bench_ns() - start;
}

static uint64_t together(struct half *h)
{
	pthread_barrier_t barrier;
	pthread_t t[2];
	uint64_t start;

	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < 2; i++) {
		h[i].start = &barrier;
		if (pthread_create(&t[i], NULL, thread, &h[i]))
			bench_die("no thread");
	}
	pthread_barrier_wait(&barrier);
	start = bench_ns();
	pthread_barrier_wait(&barrier);
	start = bench_ns() - start;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&barrier);
	return start;
}

/* How much faster two are than one after the other, in thousandths. */
static uint64_t scaling(struct half *h)
{
	uint64_t one = alone(&h[0]), two = together(h);

	return 2000 * one / two;
}

/* Each round measures both, so that what else runs here disturbs both: medians. */
static void bench_scale(const char *arch)
{
	enum { SPIN, MODEL, RATIO, SCALE_ROUNDS = 41 };
	static uint64_t s[3][SCALE_ROUNDS];
	struct half h[2][2] = { 0 };
	struct job job[2];
	uint64_t ns;

	for (int i = 0; i < 2; i++) {
		job_load(&job[i], kernel(arch, PLAIN_ADD, false, 8 * MANY), i, sizeof(c32));
		h[MODEL][i].job = &job[i];
	}
	/* As long as a job. */
	ns = alone(&h[MODEL][0]);
	h[SPIN][0].spins = 1000000;
	h[SPIN][0].spins = ns * 1000000 / alone(&h[SPIN][0]);
	h[SPIN][1] = h[SPIN][0];
	for (int r = 0; r < SCALE_ROUNDS; r++) {
		s[SPIN][r] = scaling(h[SPIN]);
		s[MODEL][r] = scaling(h[MODEL]);
		s[RATIO][r] = 1000 * s[MODEL][r] / s[SPIN][r];
	}
	for (int i = 0; i < 2; i++)
		job_free(&job[i]);
	printf("scale_model %.3f\n", (double)bench_median(s[MODEL], SCALE_ROUNDS) / 1000);
	printf("scale_spin %.3f\n", (double)bench_median(s[SPIN], SCALE_ROUNDS) / 1000);
	printf("scale_ratio %.3f\n", (double)bench_median(s[RATIO], SCALE_ROUNDS) / 1000);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	nrt_instance_info_t info;

	operands();
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 0);
	BENCH_CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
	BENCH_CHECK(nrt_get_instance_info(&info, sizeof(info)));
	for (int op = 0; (!*what || !strcmp(what, "ops")) && op < PLAIN_OPS; op++) {
		bench_op(info.arch_name, op, false);
		bench_op(info.arch_name, op, true);
	}
	if (!*what || !strcmp(what, "empty"))
		bench_empty(info.arch_name);
	if (!*what || !strcmp(what, "scale"))
		bench_scale(info.arch_name);
	nrt_close();
	return 0;
}
