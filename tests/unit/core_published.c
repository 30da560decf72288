// SPDX-License-Identifier: MIT
/*
 * Published figures against modelled ones. Each modelled figure is the span of a
 * program that ran. The table in Documentation/published-table.rst is what this
 * prints: NEURON_PUBLISHED=FILE writes it.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "fake_vm.h"
#include "neuron/trace.h"

#define SBUF	NEURON_SPACE_SBUF
#define PSUM	NEURON_SPACE_PSUM
#define F32	NEURON_DTYPE_FLOAT32
#define BF16	NEURON_DTYPE_BFLOAT16
#define FP8	NEURON_DTYPE_FLOAT8_E4M3
#define MX_FP8	NEURON_DTYPE_FLOAT8_E4M3FN_X4
#define I32	NEURON_DTYPE_INT32
#define PE	NEURON_ENGINE_PE
#define SP	NEURON_ENGINE_SP
#define TRACE_VA (VM_BASE + (48ull << 20))

#define DOCS	"https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
#define DMA_GUIDE DOCS "nki/deep-dives/nki-dma-bandwidth-guide.html"
#define DMA_PAGE DOCS "nki/about/nki-dma-overview.html"
#define CORE2	DOCS "about-neuron/arch/neuron-hardware/neuron-core-v2.html"
#define CORE3	DOCS "about-neuron/arch/neuron-hardware/neuron-core-v3.html"
#define CORE4	DOCS "about-neuron/arch/neuron-hardware/neuron-core-v4.html"
#define TRN1	DOCS "about-neuron/arch/neuron-hardware/trainium.html"
#define TRN2	DOCS "about-neuron/arch/neuron-hardware/trainium2.html"
#define TRN3	DOCS "about-neuron/arch/neuron-hardware/trainium3.html"
#define GUIDE1	DOCS "nki/guides/architecture/trainium_inferentia2_arch.html"
#define GUIDE2	DOCS "nki/guides/architecture/trainium2_arch.html"
#define GUIDE3	DOCS "nki/guides/architecture/trainium3_arch.html"
#define TRN2_PAGE "https://aws.amazon.com/ec2/instance-types/trn2/"
#define TRN3_PAGE "https://aws.amazon.com/ec2/instance-types/trn3/"
#define NKIPY	"https://github.com/aws-neuron/nkipy (branch nkigen-lite, passes/hardware.py)"

#define ANY	1e9	/* tolerance: the difference is stated, not bounded */

typedef struct __test_metadata meta;

static struct prog *p;

static void start(unsigned int nc, unsigned int cores)
{
	if (p)
		prog_free(p);
	p = prog_new(nc, cores);
	p->flags = NEURON_JOB_TIMING_ONLY;
}

static double ns(uint64_t ticks)
{
	return ticks * 1e9 / NEURON_TICK_HZ;
}

/* ns of the whole job, or NaN. */
static double span(void)
{
	return prog_run(p) ? NAN : ns(p->job.modelled_ticks);
}

/* --- tensor engine ---------------------------------------------------------------------- */

struct product {
	unsigned int load, mul, dtype, rows;	/* rows: of the array, in partitions of 128 */
};

static const struct product bf16 = { NEURON_OP_LDWEIGHTS, NEURON_OP_MATMUL, BF16, 1 };
static const struct product fp32 = { NEURON_OP_LDWEIGHTS, NEURON_OP_MATMUL, F32, 1 };
static const struct product fp8 = { NEURON_OP_LDWEIGHTS, NEURON_OP_MATMUL, FP8, 2 };
static const struct product mx = { NEURON_OP_LDWEIGHTS_MX, NEURON_OP_MATMUL_MX, MX_FP8, 4 };
static const struct product sparse = { NEURON_OP_LDWEIGHTS_SPARSE, NEURON_OP_MATMUL_SPARSE, BF16, 4 };

static struct neuron_insn product_insn(const struct product *t, bool load)
{
	struct neuron_insn w = insn_new(load ? t->load : t->mul);
	unsigned int n = load ? 128 : 512, halves = t->rows == 2 ? 2 : 1;

	w.ap[1] = ap_row(SBUF, t->dtype, 0, 128, load ? 0 : 8192, n * halves);
	if (!load)
		w.ap[0] = ap_row(PSUM, F32, 0, 128, 0, 512);
	if (t->rows == 2)
		w.flags = htole16(1u << NEURON_FLAG_PERF_SHIFT);
	if (t == &sparse) {
		/* 4 of 16: a quarter of the stationary matrix, four times the moving one. */
		if (!load)
			w.ap[1] = ap_row(SBUF, t->dtype, 0, 128, 8192, 4 * n);
		else
			w.ap[2] = ap_row(SBUF, NEURON_DTYPE_UINT16, 0, 128, 32768, 32);
		w.imm[0] = load ? imm_i32(16) : w.imm[0];
	}
	if (t == &mx)
		/* The scales of four quadrants, four rows in each; they span 100 partitions. */
		w.ap[2] = ap_row(SBUF, NEURON_DTYPE_FLOAT8_E8M0FNU, 0, 100, load ? 32768 : 40960, n);
	return w;
}

#define TURNS	100
#define PAIRS	16

/* TURNS times PAIRS of LDWEIGHTS and MATMUL, 128 x 128 x 512 each, on one core. */
static void products(unsigned int core, const struct product *t)
{
	struct neuron_insn w = insn_new(NEURON_OP_REG_MOVE);
	unsigned int i, top;

	w.imm[0] = imm_i32(TURNS);
	w.aux = htole32(1);
	top = prog_add(p, core, PE, &w) + 1;
	for (i = 0; i < 2 * PAIRS; i++) {
		w = product_insn(t, i % 2 == 0);
		prog_add(p, core, PE, &w);
	}
	w = insn_new(NEURON_OP_REG_ALU);
	w.op[0] = NEURON_ALU_SUBTRACT;
	w.imm[0] = imm_reg(1, I32);
	w.imm[1] = imm_i32(1);
	w.aux = htole32(1);
	prog_add(p, core, PE, &w);
	w = insn_new(NEURON_OP_COMPARE_BRANCH);
	w.op[0] = NEURON_ALU_GREATER;
	w.imm[0] = imm_reg(1, I32);
	w.aux = htole32(top);
	prog_add(p, core, PE, &w);
}

/* Operations of one core's stream, as AWS counts them. */
static double product_ops(const struct product *t)
{
	return 2.0 * 128 * t->rows * 128 * 512 * TURNS * PAIRS;
}

/* TFLOPS of @cores cores in one job. */
static double chip_rate(unsigned int nc, unsigned int cores, const struct product *t)
{
	unsigned int c;

	start(nc, cores);
	for (c = 0; c < cores; c++)
		products(c, t);
	return cores * product_ops(t) / span() / 1e3;
}

/* PFLOPS of @chips chips, a job each: all their work over the longest span. */
static double chips_rate(unsigned int nc, unsigned int chips, const struct product *t)
{
	double longest = 0, one;
	unsigned int i, c;

	for (i = 0; i < chips; i++) {
		start(nc, 8);
		for (c = 0; c < 8; c++)
			products(c, t);
		one = span();
		if (!(one <= longest))
			longest = one;
	}
	return chips * 8 * product_ops(t) / longest / 1e6;
}

/* --- DMA -------------------------------------------------------------------------------- */

static const struct neuron_trace_record *transfer(unsigned int n)
{
	const struct neuron_trace_header *h = vm_at(p->vm, TRACE_VA);
	const struct neuron_trace_record *r = (const struct neuron_trace_record *)(h + 1);
	uint64_t i;

	for (i = 0; i < le64toh(h->records); i++)
		if (r[i].engine == NEURON_ENGINE_DMA && !n--)
			return &r[i];
	return NULL;
}

static double transfer_ns(void)
{
	const struct neuron_trace_record *r;

	p->trace_va = TRACE_VA;
	p->trace_size = 1 << 20;
	if (prog_run(p))
		return NAN;
	r = transfer(0);
	return ns(le64toh(r->end) - le64toh(r->start));
}

/* A copy of @rows rows of @bytes from HBM to SBUF. */
static void copy(unsigned int core, unsigned int arg, unsigned int rows, unsigned int bytes,
		 uint32_t aux)
{
	struct neuron_dma_operand sb = dma_sbuf(), hbm = dma_hbm(arg, F32, 0, bytes / 4, rows, bytes);
	struct neuron_insn w = insn_new(NEURON_OP_DMA_COPY);

	w.ap[0] = ap_row(SBUF, F32, 0, rows, 0, bytes / 4);
	w.aux = htole32(aux);
	prog_dma(p, core, SP, &w, &sb, &hbm);
}

static double copy_ns(unsigned int nc, unsigned int rows, unsigned int bytes)
{
	start(nc, 1);
	prog_arg(p, (uint64_t)rows * bytes, NEURON_ARG_READ);
	copy(0, 0, rows, bytes, 0);
	return transfer_ns();
}

static double core_dma(unsigned int nc)
{
	return 128.0 * 32768 / copy_ns(nc, 128, 32768);
}

static double curve(unsigned int bytes)
{
	return 100.0 * 128 * bytes / copy_ns(3, 128, bytes) / core_dma(3);
}

static double trigger_ns(unsigned int mode)
{
	const struct neuron_trace_record *r;

	start(3, 1);
	prog_arg(p, 128 * 512, NEURON_ARG_READ);
	copy(0, 0, 128, 512, mode << NEURON_DMA_DGE_SHIFT);
	transfer_ns();
	r = transfer(0);
	return ns(le64toh(r->start) - le64toh(r->issue));
}

/* Bytes a nanosecond of a transpose of 128 x 4096 16-bit elements. */
static double transpose_rate(bool hbm)
{
	struct neuron_dma_operand src = dma_hbm(0, BF16, 0, 128, 4096, 256), dst = dma_sbuf();
	struct neuron_insn w = insn_new(NEURON_OP_DMA_TRANSPOSE);

	start(3, 1);
	prog_arg(p, 128 * 4096 * 2, NEURON_ARG_READ);
	w.ap[0] = ap_row(SBUF, BF16, 0, 128, 0, 4096);
	if (!hbm) {
		/* 128 partitions, 32, 128: axes (2, 1, 0). */
		src = dma_sbuf();
		w.op[0] = NEURON_AXES_210;
		w.ap[0].dims = 2;
		w.ap[0].num[0] = htole16(128);
		w.ap[0].num[1] = htole16(32);
		w.ap[0].step[1] = htole16(128);
		w.ap[1] = w.ap[0];
		w.ap[1].offset = htole32(16384);
	}
	prog_dma(p, 0, SP, &w, &dst, &src);
	return 128.0 * 4096 * 2 / transfer_ns();
}

static double transpose_share(bool hbm)
{
	return 100 * transpose_rate(hbm) / (128.0 * 8192 / copy_ns(3, 16, 65536));
}

/* Per cent of the copy rate of adding two tensors. */
static double compute_share(unsigned int nc, bool accumulate)
{
	double alone = copy_ns(nc, 128, 32768);
	struct neuron_dma_operand sb = dma_sbuf(), hbm = dma_hbm(0, F32, 0, 8192, 128, 32768), d[3];
	struct neuron_insn w = insn_new(accumulate ? NEURON_OP_DMA_COPY : NEURON_OP_DMA_COMPUTE);

	start(nc, 1);
	prog_arg(p, 128 * 32768, NEURON_ARG_READ);
	w.op[0] = NEURON_ALU_ADD;
	w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 8192);
	d[0] = sb;
	d[1] = d[2] = hbm;
	w.words = accumulate ? 3 : 4;
	w.flags = htole16(accumulate ? NEURON_FLAG_ACCUMULATE : 0);
	prog_words(p, 0, SP, &w, d, accumulate ? 2 : 3);
	return 100 * alone / transfer_ns();
}

/* TB/s of HBM when all cores of a chip read it. */
static double chip_hbm(unsigned int nc, unsigned int cores)
{
	double bytes = 0;
	unsigned int c, i;

	start(nc, cores);
	prog_arg(p, 128 * 32768, NEURON_ARG_READ);
	for (c = 0; c < cores; c++) {
		for (i = 0; i < 64; i++) {
			copy(c, 0, 128, 32768, 0);
			bytes += 128 * 32768;
		}
	}
	return bytes / span() / 1e3;
}

/* --- latencies ----------------------------------------------------------------------------- */

/* @from's instruction signals @to's, which only waits for it. */
static double latency_ns(unsigned int from, unsigned int to, bool drain)
{
	const struct neuron_trace_header *h;
	const struct neuron_trace_record *r, *first = NULL, *second = NULL;
	struct neuron_insn w = insn_new(NEURON_OP_MEMSET);
	uint64_t i;

	start(3, 1);
	p->trace_va = TRACE_VA;
	p->trace_size = 1 << 20;
	if (from == PE) {
		w = product_insn(&bf16, true);
		prog_add(p, 0, PE, &w);
		w = product_insn(&bf16, false);
	} else {
		w.imm[0] = imm_f32(0);
		w.ap[0] = ap_row(SBUF, F32, 0, 128, 0, 64);
	}
	w.update = update_add(1, 1);
	prog_add(p, 0, from, &w);
	if (to == PE) {
		w = product_insn(&bf16, true);
	} else {
		w = insn_new(NEURON_OP_MEMSET);
		w.imm[0] = imm_f32(0);
		w.ap[0] = ap_row(SBUF, F32, 0, 128, 4096, 64);
	}
	w.wait[0] = wait_sub(1, 1);
	prog_add(p, 0, to, &w);
	if (prog_run(p))
		return NAN;
	h = vm_at(p->vm, TRACE_VA);
	r = (const struct neuron_trace_record *)(h + 1);
	for (i = 0; i < le64toh(h->records); i++) {
		if (r[i].engine == from && r[i].opcode != NEURON_OP_LDWEIGHTS)
			first = &r[i];
		if (r[i].engine == to)
			second = &r[i];
	}
	if (drain)
		return ns(le64toh(first->end) - le64toh(first->start) - le32toh(first->busy));
	return ns(le64toh(second->start) - le64toh(first->end));
}

static double chain_cycles(void)
{
	const struct neuron_trace_record *r;
	struct neuron_insn w = insn_new(NEURON_OP_ACTIVATE);
	unsigned int i;

	start(2, 1);
	p->trace_va = TRACE_VA;
	p->trace_size = 1 << 20;
	w.op[0] = NEURON_ACTFN_COPY;
	w.ap[0] = w.ap[1] = ap_row(SBUF, F32, 0, 128, 0, 1);
	for (i = 0; i < 4; i++)
		prog_add(p, 0, NEURON_ENGINE_ACT, &w);
	if (prog_run(p))
		return NAN;
	r = (const struct neuron_trace_record *)((const struct neuron_trace_header *)
						 vm_at(p->vm, TRACE_VA) + 1);
	return ns(le64toh(r[3].start) - le64toh(r[2].start)) * 1.4;
}

static double matmul_ns(void)
{
	start(3, 1);
	products(0, &bf16);
	return span() / (TURNS * PAIRS);
}

/* --- the table -------------------------------------------------------------------------------- */

/*
 * ROW(what, unit, published, mark, per cent or points that are allowed, modelled, source)
 * POINTS(...): the same, the difference is in points
 */
#define ROWS									\
	ROW("DMA engine of Trn2 busy, 32 KiB", "ns", 1416, "measured", 2, copy_ns(3, 16, 32768), DMA_PAGE) \
	ROW("DMA of a Trn1 core", "GB/s", 272, "measured", 3, core_dma(2), DMA_GUIDE) \
	ROW("DMA of a Trn2 core", "GB/s", 368, "measured", 3, core_dma(3), DMA_GUIDE) \
	ROW("DMA of a Trn3 core", "GB/s", 528, "measured", 3, core_dma(4), DMA_GUIDE) \
	POINTS("DMA, 32 bytes of a partition", "% of plateau", 1.2, "measured", 5, curve(32), DMA_GUIDE) \
	POINTS("DMA, 64 bytes", "% of plateau", 2.6, "measured", 5, curve(64), DMA_GUIDE) \
	POINTS("DMA, 128 bytes", "% of plateau", 5, "measured", 5, curve(128), DMA_GUIDE) \
	POINTS("DMA, 256 bytes", "% of plateau", 10, "measured", 5, curve(256), DMA_GUIDE) \
	POINTS("DMA, 512 bytes", "% of plateau", 21, "measured", 5, curve(512), DMA_GUIDE) \
	POINTS("DMA, 1024 bytes", "% of plateau", 42, "measured", 5, curve(1024), DMA_GUIDE) \
	POINTS("DMA, 2048 bytes", "% of plateau", 81, "measured", 5, curve(2048), DMA_GUIDE) \
	POINTS("DMA, 4096 bytes", "% of plateau", 97, "measured", 5, curve(4096), DMA_GUIDE) \
	POINTS("DMA, 8192 bytes", "% of plateau", 98, "measured", 5, curve(8192), DMA_GUIDE) \
	POINTS("DMA, 16384 bytes", "% of plateau", 99, "measured", 5, curve(16384), DMA_GUIDE) \
	ROW("DMA trigger, Trn2", "ns", 1300, "measured", 1, trigger_ns(NEURON_DGE_NONE), DMA_GUIDE) \
	ROW("DMA trigger, hardware descriptors", "ns", 600, "measured", 1, trigger_ns(NEURON_DGE_HWDGE), DMA_PAGE) \
	POINTS("DMA transpose HBM to SBUF, upper bound", "% of copy", 90, "peak", 5, transpose_share(true), DMA_PAGE) \
	POINTS("DMA transpose in SBUF, upper bound", "% of copy", 50, "peak", 5, transpose_share(false), DMA_PAGE) \
	ROW("DMA transpose HBM to SBUF, Trn2", "GB/s", 335, "measured", ANY, transpose_rate(true), NKIPY) \
	ROW("DMA transpose in SBUF, Trn2", "GB/s", 215, "measured", ANY, transpose_rate(false), NKIPY) \
	POINTS("DMA sum of two tensors", "% of copy", 50, "peak", 1, compute_share(3, false), GUIDE3) \
	POINTS("DMA adding to SBUF, Trn3", "% of copy", 100, "peak", 1, compute_share(4, true), GUIDE3) \
	ROW("HBM of a Trn1 chip, 2 cores", "TB/s", 0.82, "peak", ANY, chip_hbm(2, 2), TRN1) \
	ROW("HBM of a Trn2 chip, 8 cores", "TB/s", 2.9, "peak", 2, chip_hbm(3, 8), TRN2) \
	ROW("HBM of a Trn3 chip, 8 cores", "TB/s", 4.9, "peak", ANY, chip_hbm(4, 8), TRN3) \
	ROW("semaphore to start, PE", "ns", 81, "measured", 1, latency_ns(NEURON_ENGINE_DVE, PE, false), NKIPY) \
	ROW("semaphore to start, DVE", "ns", 268, "measured", 1, latency_ns(PE, NEURON_ENGINE_DVE, false), NKIPY) \
	ROW("semaphore to start, POOL", "ns", 186, "measured", 1, latency_ns(PE, NEURON_ENGINE_POOL, false), NKIPY) \
	ROW("write drain, PE", "ns", 150, "measured", 1, latency_ns(PE, NEURON_ENGINE_DVE, true), NKIPY) \
	ROW("write drain, DVE", "ns", 161, "measured", 1, latency_ns(NEURON_ENGINE_DVE, PE, true), NKIPY) \
	ROW("write drain, POOL", "ns", 218, "measured", 1, latency_ns(NEURON_ENGINE_POOL, PE, true), NKIPY) \
	ROW("dependent chain on ACT, Trn1", "cycles", 264, "measured", 1, chain_cycles(), GUIDE1) \
	ROW("128 x 128 x 512 product, bf16, Trn2", "ns", 213.3, "derived", 1, matmul_ns(), GUIDE2) \
	ROW("Trn1 core, bf16", "TFLOPS", 92, "peak", 2, chip_rate(2, 1, &bf16), CORE2) \
	ROW("Trn1 core, fp32", "TFLOPS", 23, "peak", 2, chip_rate(2, 1, &fp32), CORE2) \
	ROW("Trn2 core, bf16", "TFLOPS", 79, "peak", 2, chip_rate(3, 1, &bf16), CORE3) \
	ROW("Trn2 core, fp8", "TFLOPS", 158, "peak", 2, chip_rate(3, 1, &fp8), CORE3) \
	ROW("Trn2 core, fp32", "TFLOPS", 20, "peak", 2, chip_rate(3, 1, &fp32), CORE3) \
	ROW("Trn3 core, bf16", "TFLOPS", 79, "peak", 2, chip_rate(4, 1, &bf16), CORE4) \
	ROW("Trn3 core, fp32", "TFLOPS", 20, "peak", 2, chip_rate(4, 1, &fp32), CORE4) \
	ROW("Trn2 core, sparse 4 of 16", "TFLOPS", 316, "peak", 2, chip_rate(3, 1, &sparse), CORE3) \
	ROW("Trn2 chip, sparse 4 of 16", "TFLOPS", 2563, "peak", ANY, chip_rate(3, 8, &sparse), TRN2) \
	ROW("Trn3 core, MXFP8", "TFLOPS", 315, "peak", 2, chip_rate(4, 1, &mx), CORE4) \
	ROW("Trn1 chip, bf16", "TFLOPS", 190, "peak", ANY, chip_rate(2, 2, &bf16), TRN1) \
	ROW("Trn1 chip, fp32", "TFLOPS", 47.5, "peak", ANY, chip_rate(2, 2, &fp32), TRN1) \
	ROW("Trn2 chip, bf16", "TFLOPS", 667, "peak", ANY, chip_rate(3, 8, &bf16), TRN2) \
	ROW("Trn2 chip, fp8", "TFLOPS", 1299, "peak", ANY, chip_rate(3, 8, &fp8), TRN2) \
	ROW("Trn2 chip, fp32", "TFLOPS", 181, "peak", ANY, chip_rate(3, 8, &fp32), TRN2) \
	ROW("Trn3 chip, bf16", "TFLOPS", 671, "peak", ANY, chip_rate(4, 8, &bf16), TRN3) \
	ROW("Trn3 chip, fp32", "TFLOPS", 183, "peak", ANY, chip_rate(4, 8, &fp32), TRN3) \
	ROW("Trn3 chip, plain fp8 (see below)", "TFLOPS", 2517, "disputed", ANY, chip_rate(4, 8, &fp8), TRN3) \
	ROW("Trn3 chip, MXFP8", "TFLOPS", 2517, "peak", ANY, chip_rate(4, 8, &mx), TRN3) \
	ROW("16 Trn2 chips, dense fp8", "PFLOPS", 20.8, "peak", ANY, chips_rate(3, 16, &fp8), TRN2_PAGE) \
	ROW("64 Trn2 chips, dense fp8", "PFLOPS", 83.2, "peak", ANY, chips_rate(3, 64, &fp8), TRN2_PAGE) \
	ROW("144 Trn3 chips, MXFP8", "PFLOPS", 362, "peak", ANY, chips_rate(4, 144, &mx), TRN3_PAGE)

struct text {
	char *at;
	size_t room;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->room)
		abort();
	t->at += n;
	t->room -= n;
}

static const char *number(double v, char *buf, size_t size)
{
	snprintf(buf, size, v < 10 ? "%.2f" : v < 1000 ? "%.1f" : "%.0f", v);
	return buf;
}

static char doc[1 << 16];

static void row(meta *_metadata, struct text *t, const char *what, const char *unit, double published,
		const char *mark, double allowed, double modelled, bool points, const char *source)
{
	double diff = points ? modelled - published : 100 * (modelled / published - 1);
	const char *from = t->at;
	char num[32];

	EXPECT_TRUE(fabs(diff) <= allowed) {
		TH_LOG("%s: published %g, modelled %g %s", what, published, modelled, unit);
	}
	put(t, "   * - %s\n     - %g %s\n     - %s\n", what, published, unit, mark);
	put(t, "     - %s\n     - %+.1f%s\n     - %s\n", number(modelled, num, sizeof(num)), diff,
	    points ? " points" : " %", source);
	EXPECT_TRUE(!*doc || strstr(doc, from)) {
		TH_LOG("%s is not in %s: NEURON_PUBLISHED=FILE writes the table", what,
		       DOC_PUBLISHED);
	}
}

static char table[1 << 16];

static void make_table(meta *_metadata)
{
	struct text t = { table, sizeof(table) };

	put(&t, ".. SPDX-License-Identifier: MIT\n"
		".. Made by tests/unit/core_published: do not edit.\n\n"
		".. list-table::\n   :header-rows: 1\n\n"
		"   * - what\n     - published\n     - mark\n     - modelled\n     - difference\n     - source\n");
#define ROW(what, unit, published, mark, allowed, modelled, source) \
	row(_metadata, &t, what, unit, published, mark, allowed, modelled, false, source);
#define POINTS(what, unit, published, mark, allowed, modelled, source) \
	row(_metadata, &t, what, unit, published, mark, allowed, modelled, true, source);
	ROWS
}

/* Every figure within what is allowed, and in the documented table. */
TEST(published)
{
	const char *path = getenv("NEURON_PUBLISHED");
	FILE *f;

	if (!path) {
		f = fopen(DOC_PUBLISHED, "r");
		ASSERT_NE(f, NULL);
		ASSERT_LT(0, fread(doc, 1, sizeof(doc) - 1, f));
		fclose(f);
	}
	make_table(_metadata);
	if (!path)
		return;
	f = fopen(path, "w");
	ASSERT_NE(f, NULL);
	fputs(table, f);
	fclose(f);
}

TEST_HARNESS_MAIN
