// SPDX-License-Identifier: MIT
/*
 * Modelled time. Sources, by letter, in Documentation/timing.rst:
 *
 * [arch]  NKI architecture guides (clocks, lanes, rates)
 * [stub]  cost formulas of nki.isa, AWS Neuron SDK 2.26
 * [dma]   NKI DMA bandwidth guide and DMA overview page
 * [lite]  latency constants in aws-neuron/nkipy, Trn2
 * [chain] AWS's example of a dependent chain on the scalar engine: 264 cycles
 *	   between instructions of 64
 * [us]    assumed: no public figure
 */
#include "exec_state.h"

/* PE, ACT, POOL, DMA, DVE, SP, CC in the order of enum neuron_engine. */
#define BY_ENGINE(pe, act, pool, dve, sp, cc) { 0, pe, act, pool, 0, dve, sp, cc }

static const struct timing timings[] = {
	[2] = {
		/* [arch] 2.8, 1.4, 1.4, 1.12 GHz; SP and CC as ACT [us] */
		.tick = BY_ENGINE(12, 24, 24, 30, 24, 24),
		/* Trn2's figures [us] */
		.sem_to_start = BY_ENGINE(NS_TICKS(81), NS_TICKS(200), NS_TICKS(186), NS_TICKS(268),
					  NS_TICKS(100), NS_TICKS(100)),
		.drain = BY_ENGINE(NS_TICKS(150), 200 * 24, NS_TICKS(218), NS_TICKS(161), 0, 0),
		.seq_cycles = 16, .dispatch_cycles = 1, .regmem_cycles = 2 * 60,	/* [us] */
		.hbm_way = NS_TICKS(300), .remote_sem = NS_TICKS(500),			/* [us] */
		.dma_trigger = NS_TICKS(1300),						/* [dma] */
		.dma_issue_cycles = 64,							/* [us] */
		.dma_rate = 1700, .dma_row_overhead = 150, .dma_row_min = 2470,		/* [dma] */
		.swdge_row_cycles = 8,							/* [us] */
		.transpose_hbm = 90, .transpose_sbuf = 50,				/* [dma] */
		.dma_sem = NS_TICKS(50),						/* [us] */
		.hbm_rate = 410, .cores_per_stack = 1,					/* [arch] 0.82 TB/s */
	},
	[3] = {
		/* [arch] 2.4, 1.2, 1.2, 0.96 GHz; SP and CC [us] */
		.tick = BY_ENGINE(14, 28, 28, 35, 28, 28),
		/* [lite] PE, POOL, DVE; others [us] */
		.sem_to_start = BY_ENGINE(NS_TICKS(81), NS_TICKS(200), NS_TICKS(186), NS_TICKS(268),
					  NS_TICKS(100), NS_TICKS(100)),
		/* [lite]; ACT [chain], in cycles */
		.drain = BY_ENGINE(NS_TICKS(150), 200 * 28, NS_TICKS(218), NS_TICKS(161), 0, 0),
		.seq_cycles = 16, .dispatch_cycles = 1, .regmem_cycles = 2 * 60,	/* [us] */
		.hbm_way = NS_TICKS(300), .remote_sem = NS_TICKS(500),			/* [us] */
		.dma_trigger = NS_TICKS(1300), .dge_trigger = NS_TICKS(600),		/* [dma] */
		.dma_issue_cycles = 64,							/* [us] */
		.dma_rate = 2325, .dma_row_overhead = 150, .dma_row_min = 2470,		/* [dma] */
		.swdge_row_cycles = 8,							/* [us] */
		.transpose_hbm = 90, .transpose_sbuf = 50,				/* [dma] */
		.dma_sem = NS_TICKS(50),						/* [us] */
		.hbm_rate = 725, .cores_per_stack = 2,					/* [arch] 2.9 TB/s */
		.throttle = NS_TICKS(3000),						/* [arch] */
		.fast_dve = true,
	},
	[4] = {
		/* [arch] 2.4, 1.2, 1.2, 1.2 GHz; SP and CC [us] */
		.tick = BY_ENGINE(14, 28, 28, 28, 28, 28),
		/* Trn2's figures [us] */
		.sem_to_start = BY_ENGINE(NS_TICKS(81), NS_TICKS(200), NS_TICKS(186), NS_TICKS(268),
					  NS_TICKS(100), NS_TICKS(100)),
		.drain = BY_ENGINE(NS_TICKS(150), 200 * 28, NS_TICKS(218), NS_TICKS(161), 0, 0),
		.seq_cycles = 16, .dispatch_cycles = 1, .regmem_cycles = 2 * 60,	/* [us] */
		.hbm_way = NS_TICKS(300), .remote_sem = NS_TICKS(500),			/* [us] */
		.dma_trigger = NS_TICKS(1300), .dge_trigger = NS_TICKS(600),		/* [dma] */
		.dma_issue_cycles = 64,							/* [us] */
		.dma_rate = 3300, .dma_row_overhead = 150, .dma_row_min = 2470,		/* [dma] */
		.swdge_row_cycles = 8,							/* [us] */
		.transpose_hbm = 90, .transpose_sbuf = 50,				/* [dma] */
		.dma_sem = NS_TICKS(50),						/* [us] */
		.hbm_rate = 1225, .cores_per_stack = 2,					/* [arch] 4.9 TB/s */
		.throttle = NS_TICKS(3000),						/* [arch] */
		.fast_dve = true, .fast_act = true, .dma_priority = true, .sbuf_add_full = true,
	},
};

const struct timing *timing_get(unsigned int nc_version)
{
	if (nc_version < 2 || nc_version >= sizeof(timings) / sizeof(timings[0]))
		return NULL;
	return &timings[nc_version];
}

static bool two_byte(const struct opnd *op)
{
	return op->dtype == NEURON_DTYPE_BFLOAT16 || op->dtype == NEURON_DTYPE_FLOAT16;
}

/* Types that DVE's fast modes take: Trn3 adds fp8. */
static bool fast_type(const struct stream *s, const struct opnd *op)
{
	if (two_byte(op))
		return true;
	return s->x->job->nc_version >= 4 && op->bytes == 1 && num_dtype(op->dtype)->is_float;
}

static bool inner_contiguous(const struct opnd *op)
{
	return op->space == NEURON_SPACE_NONE || op->num[0] == 1 ||
	       (op->step[0] == op->bytes && !op->index);
}

/* Published: 1, 2 or 4 times the base rate for copies and scalar operations. */
static unsigned int copy_speed(const struct stream *s)
{
	const struct timing *t = s->x->timing;
	const struct opnd *dst = &s->op[0], *src = &s->op[1];
	bool sbuf = dst->space == NEURON_SPACE_SBUF && src->space == NEURON_SPACE_SBUF;
	bool contiguous = inner_contiguous(dst) && inner_contiguous(src);

	if (s->engine == NEURON_ENGINE_ACT)
		return t->fast_act && two_byte(dst) && two_byte(src) ? 2 : 1;
	if (s->engine != NEURON_ENGINE_DVE || !t->fast_dve ||
	    !fast_type(s, dst) || !fast_type(s, src))
		return 1;
	if (sbuf)
		return contiguous ? 4 : 2;
	return contiguous && (dst->space == NEURON_SPACE_SBUF || src->space == NEURON_SPACE_SBUF) ? 2 : 1;
}

static uint64_t tensor_tensor(const struct stream *s, uint64_t n)
{
	const struct opnd *a = &s->op[1], *b = &s->op[2], *d = &s->op[0];
	unsigned int op = s->cur->w.op[0];
	bool sbuf = a->space == NEURON_SPACE_SBUF && b->space == NEURON_SPACE_SBUF;
	bool bf16 = a->dtype == NEURON_DTYPE_BFLOAT16 && b->dtype == NEURON_DTYPE_BFLOAT16 &&
		    d->dtype == NEURON_DTYPE_BFLOAT16;
	bool simple = op == NEURON_ALU_ADD || op == NEURON_ALU_SUBTRACT || op == NEURON_ALU_MULTIPLY;
	uint64_t base = 2 * n;

	if (!sbuf || (bf16 && simple && d->space == NEURON_SPACE_SBUF &&
		      inner_contiguous(a) && inner_contiguous(b) && inner_contiguous(d)))
		base = n;
	if (s->engine == NEURON_ENGINE_DVE && s->x->timing->fast_dve && sbuf &&
	    two_byte(a) && two_byte(b) && two_byte(d))
		base /= 2;
	return base;
}

static uint64_t scalar_tt(const struct stream *s, uint64_t n)
{
	const struct neuron_insn *w = &s->cur->w;

	if (s->op[1].dtype == NEURON_DTYPE_BFLOAT16 && s->op[2].dtype == NEURON_DTYPE_BFLOAT16 &&
	    w->op[0] == NEURON_ALU_SUBTRACT && w->op[1] == NEURON_ALU_MULTIPLY && n % 2 == 0)
		return n;
	return 2 * n;
}

static uint64_t reduce(const struct stream *s, uint64_t n)
{
	unsigned int op = s->cur->w.op[0];

	if (s->op[0].dtype == NEURON_DTYPE_BFLOAT16 && s->op[1].dtype == NEURON_DTYPE_BFLOAT16 &&
	    (op == NEURON_ALU_ADD || op == NEURON_ALU_MAXIMUM))
		return n / 2;
	return n;
}

static uint64_t copy_pred(const struct stream *s, uint64_t n)
{
	bool psum = s->op[1].space == NEURON_SPACE_PSUM || s->op[2].space == NEURON_SPACE_PSUM;

	return psum ? n : 2 * n;
}

static uint64_t memset_cycles(const struct stream *s, uint64_t n)
{
	return two_byte(&s->op[0]) && s->imm[0].bits == 0 ? n / 2 : n;
}

/*
 * [stub] 150 + valid * e / C with C = ((28 + 4 e) / (4 e)) / min(4 / size, e), which
 * divides although C grows with the overhead: taken as a factor.
 */
static uint64_t local_gather(const struct stream *s)
{
	uint64_t each = s->cur->w.aux & 0xffff, valid = s->cur->w.aux >> 16;
	uint64_t packed = 4 / s->op[0].bytes < each ? 4 / s->op[0].bytes : each;

	return 150 + valid * each * (28 + 4 * each) / (4 * each) / packed;
}

/* An inner stride of 16 bytes or more halves the bandwidth of SBUF and PSUM. */
static bool strided(const struct stream *s)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		const struct opnd *op = &s->op[i];

		if (op->space != NEURON_SPACE_NONE && op->num[0] > 1 &&
		    (op->step[0] >= 16 || op->step[0] <= -16))
			return true;
	}
	return false;
}

/*
 * Passes of the array that a product takes. [stub] fp32 makes four; with a hint that
 * an operand is all 0 and 1, and in a transpose (v3), two.
 */
static unsigned int pe_passes(const struct stream *s)
{
	unsigned int flags = s->cur->w.flags;

	if (s->op[1].dtype != NEURON_DTYPE_FLOAT32)
		return 1;
	if (flags & (NEURON_FLAG_ONEZERO_STATIONARY | NEURON_FLAG_ONEZERO_MOVING) ||
	    (flags & NEURON_FLAG_TRANSPOSE && s->x->job->nc_version >= 3))
		return 2;
	return 4;
}

/*
 * PE: a pass takes N moving columns, be they of two rows (double row), of four (MX) or
 * of up to four that one in CR is kept of (sparse). Nstat/4 cycles load the weights,
 * fp32 Nstat.
 */
static uint32_t pe_cycles(const struct stream *s)
{
	uint32_t m, n;

	if (s->cur->row->cost == NEURON_COST_LDWEIGHTS) {
		m = pe_columns(s);
		return s->op[1].dtype == NEURON_DTYPE_FLOAT32 ? m : (m + 3) / 4;
	}
	m = pe_weights_of(s)->m;
	n = s->op[0].n;
	if (m > 64)
		m = 64;
	return (m > n ? m : n) * pe_passes(s);
}

uint32_t timing_cycles(const struct stream *s)
{
	uint64_t n = s->op[0].n, cycles;

	switch (s->cur->row->cost) {
	case NEURON_COST_SEQ:
	case NEURON_COST_DRAIN:
	case NEURON_COST_HBMREG:
		return s->x->timing->seq_cycles;
	case NEURON_COST_REGMEM:
		return s->x->timing->regmem_cycles;
	case NEURON_COST_LDWEIGHTS:
	case NEURON_COST_MATMUL:
		return pe_cycles(s);
	case NEURON_COST_DMA:
		return s->x->timing->dma_issue_cycles;
	case NEURON_COST_COPY:
	case NEURON_COST_TENSOR_SCALAR:
		cycles = n / copy_speed(s);
		break;
	case NEURON_COST_COPY_PRED:	cycles = copy_pred(s, n); break;
	case NEURON_COST_MEMSET:	cycles = memset_cycles(s, n); break;
	case NEURON_COST_TENSOR_TENSOR:	cycles = tensor_tensor(s, n); break;
	case NEURON_COST_SCALAR_TT:	cycles = scalar_tt(s, n); break;
	case NEURON_COST_REDUCE:	cycles = reduce(s, s->op[1].n); break;
	case NEURON_COST_RECIP:		cycles = 8 * n; break;
	case NEURON_COST_POOL150:	cycles = 150 + n; break;
	case NEURON_COST_SCAN:		cycles = 2 * n; break;
	case NEURON_COST_SRC_N:		cycles = s->op[1].n; break;
	case NEURON_COST_EXP4:		cycles = n / 4; break;
	case NEURON_COST_BN_AGGR:	cycles = 13 * (uint64_t)s->op[1].n / 3; break;
	case NEURON_COST_LOCAL_GATHER:	cycles = local_gather(s); break;
	case NEURON_COST_TOPK:		cycles = 4 * (uint64_t)s->imm[0].bits + 16 * n; break;
	case NEURON_COST_N:		cycles = n; break;
	case NEURON_COST_DEBUG:		cycles = s->op[1].n; break;
	default:			cycles = TIMING_MII; break;
	}
	if (cycles < TIMING_MII)
		cycles = TIMING_MII;
	if (strided(s))
		cycles *= 2;
	return cycles;
}

/* --- dI/dt throttling ----------------------------------------------------------------- */

/* Ticks of the window before @now that the tensor engine worked. */
static uint64_t used(const struct throttle *t, uint64_t now, uint64_t width)
{
	uint64_t slice = now / width, sum = 0;
	unsigned int i;

	for (i = 0; i < THROTTLE_SLICES / 2 && i <= slice; i++)
		if (t->slice[(slice - i) % THROTTLE_SLICES] == slice - i)
			sum += t->busy[(slice - i) % THROTTLE_SLICES];
	return sum;
}

static void use(struct throttle *t, uint64_t now, uint64_t ticks, uint64_t width)
{
	while (ticks) {
		uint64_t slice = now / width, part = width - now % width;
		unsigned int at = slice % THROTTLE_SLICES;

		if (part > ticks)
			part = ticks;
		if (t->slice[at] != slice) {
			t->slice[at] = slice;
			t->busy[at] = 0;
		}
		t->busy[at] += part;
		now += part;
		ticks -= part;
	}
}

/*
 * Published: the tensor engine runs at about half speed for the first 3 us after a
 * window in which it was used less than half. How long that window is is not said:
 * taken as 3 us too.
 */
uint64_t timing_busy(struct stream *s, uint64_t ticks)
{
	struct throttle *t = &stream_core(s)->throttle;
	uint64_t window = s->x->timing->throttle, now = s->x->now;
	uint64_t width = window / (THROTTLE_SLICES / 2);

	if (!s->x->throttle || !window || s->cur->row->cost != NEURON_COST_MATMUL)
		return ticks;
	if (now >= t->until && 2 * used(t, now, width) < window)
		t->until = now + window;
	if (now < t->until)
		ticks *= 2;
	use(t, now, ticks, width);
	return ticks;
}

uint64_t timing_dma_rows(const struct timing *t, uint64_t rows, uint64_t bytes)
{
	uint64_t cost = bytes + t->dma_row_overhead;

	if (cost < t->dma_row_min)
		cost = t->dma_row_min;
	/* Rows and bytes are below 2^40 and 2^38: the caller bounds their product. */
	return (uint64_t)((unsigned __int128)rows * cost * TICKS_PER_NS_X10 * 2560 / t->dma_rate);
}
