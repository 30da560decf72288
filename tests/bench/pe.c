// SPDX-License-Identifier: MIT
/*
 * A stream of 128 x 128 x 512 matmuls on the modelled tensor engine: wall time of an
 * execution less that of the same program with few of them; the result is checked
 * against products in double. Argument: bf16, fp8, or mx (Trn3): MXFP8, whose products
 * have K = 512.
 */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "nki.h"
#include "nrt/nrt.h"

enum { K = 128, M = 128, N = 512, UNROLL = 8, FEW = 10, MANY = 410, RUNS = 7 };

static float a[4 * K][M], b[4 * K][N], c[M][N];
static bool fp8, mx;
static int rows = K;

/* Small integers over 16: exact in bf16 and fp8, and with a scale. Rows 4 p + q of mx
 * operands are column 4 m + q of partition p. */
static void operands(void)
{
	uint32_t state = 1;

	for (int k = 0; k < rows; k++) {
		for (int m = 0; m < M; m++)
			a[k][m] = (float)((int)((state = state * 1664525 + 1013904223) >> 27) - 16) / 16;
		for (int n = 0; n < N; n++)
			b[k][n] = (float)((int)((state = state * 1664525 + 1013904223) >> 27) - 16) / 16;
	}
}

/* As it lies in partitions: [K][4 * columns]. */
static float *packed(const float *from, int columns)
{
	float *to = malloc(sizeof(*to) * 4 * K * (size_t)columns);

	for (int k = 0; to && k < 4 * K; k++)
		for (int i = 0; i < columns; i++)
			to[(k / 4 * columns + i) * 4 + k % 4] = from[k * columns + i];
	return to;
}

/* A packed operand and its scale. */
static struct nki_view quantized(struct nki_kernel *k, const char *name, const float *from, unsigned int columns,
				 struct nki_view *scale)
{
	float *values = packed(from, (int)columns);
	struct nki_view t = nki_const(k, name, NKI_FLOAT32, values, K, 4 * columns);
	struct nki_view f = nki_sbuf(k, NKI_FLOAT32, K, 4 * columns);
	struct nki_view h = nki_sbuf(k, NKI_BFLOAT16, K, 4 * columns);
	struct nki_view q = nki_sbuf(k, NKI_FLOAT8_E4M3FN_X4, K, columns);

	*scale = nki_sbuf(k, NKI_UINT8, K, columns);
	nki_dma_copy(k, f, t);
	nki_tensor_copy(k, h, f);
	nki_quantize_mx(k, q, h, *scale);
	free(values);
	return q;
}

static struct nki_kernel *kernel_mx(const char *arch, int32_t trips)
{
	struct nki_kernel *k = nki_kernel_new("pe", arch);
	struct nki_view ct = nki_output(k, "c", NKI_FLOAT32, M, N), scale[3];
	struct nki_view as[2] = { quantized(k, "a0", a[0], M, &scale[0]), quantized(k, "a1", a[0], M, &scale[1]) };
	struct nki_view bs = quantized(k, "b", b[0], N, &scale[2]);
	struct nki_view z = nki_psum(k, NKI_FLOAT32, M, N), cs = nki_sbuf(k, NKI_FLOAT32, M, N);

	nki_for(k, i, 0, trips, 1) {
		for (int u = 0; u < UNROLL; u++)
			nki_nc_matmul_mx(k, z, as[u % 2], bs, scale[u % 2], scale[2]);
	}
	nki_tensor_copy(k, cs, z);
	nki_dma_copy(k, ct, cs);
	return k;
}

static struct nki_kernel *kernel(const char *arch, int32_t trips)
{
	enum nki_dtype type = fp8 ? NKI_FLOAT8_E4M3 : NKI_BFLOAT16;
	struct nki_kernel *k = nki_kernel_new("pe", arch);
	struct nki_view at = nki_const(k, "a", NKI_FLOAT32, a, K, M);
	struct nki_view bt = nki_const(k, "b", NKI_FLOAT32, b, K, N);
	struct nki_view ct = nki_output(k, "c", NKI_FLOAT32, M, N);
	struct nki_view af = nki_sbuf(k, NKI_FLOAT32, K, M), bf = nki_sbuf(k, NKI_FLOAT32, K, N);
	struct nki_view as[2] = { nki_sbuf(k, type, K, M), nki_sbuf(k, type, K, M) };
	struct nki_view bs = nki_sbuf(k, type, K, N);
	struct nki_view z = nki_psum(k, NKI_FLOAT32, M, N), cs = nki_sbuf(k, NKI_FLOAT32, M, N);

	nki_dma_copy(k, af, at);
	nki_dma_copy(k, bf, bt);
	nki_tensor_copy(k, as[0], af);
	nki_tensor_copy(k, as[1], af);
	nki_tensor_copy(k, bs, bf);
	nki_for(k, i, 0, trips, 1) {
		/* Two stationary tiles in turn: each product loads its weights. */
		for (int u = 0; u < UNROLL; u++)
			nki_nc_matmul(k, z, as[u % 2], bs);
	}
	nki_tensor_copy(k, cs, z);
	nki_dma_copy(k, ct, cs);
	return k;
}

static uint64_t run(const char *arch, int32_t trips)
{
	struct nki_kernel *k = mx ? kernel_mx(arch, trips) : kernel(arch, trips);
	nrt_tensor_set_t *in, *out;
	uint64_t ns[RUNS];
	nrt_model_t *model;
	nrt_tensor_t *t;
	void *neff;
	size_t size;

	if (nki_build(k, &neff, &size))
		bench_die("%s", k ? nki_error(k) : "out of memory");
	BENCH_CHECK(nrt_load(neff, size, -1, -1, &model));
	BENCH_CHECK(nrt_allocate_tensor_set(&in));
	BENCH_CHECK(nrt_allocate_tensor_set(&out));
	BENCH_CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, sizeof(c), "c", &t));
	BENCH_CHECK(nrt_add_tensor_to_tensor_set(out, "c", t));
	BENCH_CHECK(nrt_execute(model, in, out));
	for (int i = 0; i < RUNS; i++) {
		uint64_t start = bench_ns();

		BENCH_CHECK(nrt_execute(model, in, out));
		ns[i] = bench_ns() - start;
	}
	BENCH_CHECK(nrt_tensor_read(t, c, 0, sizeof(c)));
	BENCH_CHECK(nrt_unload(model));
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&t);
	free(neff);
	nki_kernel_free(k);
	return bench_median(ns, RUNS);
}

static void check(void)
{
	for (int m = 0; m < M; m++) {
		for (int n = 0; n < N; n++) {
			double sum = 0;

			for (int k = 0; k < rows; k++)
				sum += (double)a[k][m] * b[k][n];
			/* Multiples of 1 / 256 below 2^7: every partial sum is exact. */
			if (c[m][n] != (float)sum)
				bench_die("c[%d][%d] is %g, not %g", m, n, c[m][n], sum);
		}
	}
}

int main(int argc, char **argv)
{
	nrt_instance_info_t info;
	uint64_t few, many;
	double flop;

	fp8 = argc > 1 && !strcmp(argv[1], "fp8");
	mx = argc > 1 && !strcmp(argv[1], "mx");
	rows = mx ? 4 * K : K;
	flop = 2.0 * rows * M * N * UNROLL * (MANY - FEW);

	operands();
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 0);
	BENCH_CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
	BENCH_CHECK(nrt_get_instance_info(&info, sizeof(info)));
	few = run(info.arch_name, FEW);
	many = run(info.arch_name, MANY);
	check();
	nrt_close();
	if (many <= few)
		bench_die("%d matmuls took no longer than %d", MANY * UNROLL, FEW * UNROLL);
	printf("pe_gflops %.2f\n", flop / (double)(many - few));
	return 0;
}
