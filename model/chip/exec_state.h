/* SPDX-License-Identifier: MIT */
/*
 * State of a running job, shared by the files below the seam (exec.h).
 *
 * The executor is a discrete-event simulation on one thread. Every core has eight
 * event slots, numbered as enum neuron_engine: six instruction streams, the DMA
 * queues together, and slot 0 for updates of semaphores. The loop always takes
 * the earliest slot; at equal times the lowest core, then the lowest number. An
 * instruction's effects on data happen as a whole when it starts.
 */
#ifndef NEURON_CHIP_EXEC_STATE_H
#define NEURON_CHIP_EXEC_STATE_H

#include <endian.h>
#include <string.h>

#include "core.h"
#include "numeric.h"
#include "timing.h"
#include "neuron/trace.h"

#define KEEP_BYTES	(16u << 20)	/* buffers kept from job to job */
#define TICKS_NEVER	UINT64_MAX
#define SLOT_UPDATE	0
#define SLOTS		NEURON_ENGINE_COUNT
#define STREAMS		NEURON_ENGINE_COUNT
#define ENGINE_BIT(e)	(1u << (e))
#define SPACE_BIT(s)	(1u << (s))

/* Elements of a row that an instruction may touch, per operand. */
#define SBUF_ELEMENTS	65536u
#define PSUM_ELEMENTS	4096u
#define SCRATCH_ELEMENTS (4u * 128 * (2 * PSUM_ELEMENTS + 64))

/**
 * struct isa_row - a row of isa.def
 * @name: profiler text; NULL: no such instruction
 * @engines: mask of ENGINE_BIT()
 * @min_nc: first NeuronCore version
 * @words: of the instruction
 * @space: mask of SPACE_BIT() by access pattern
 * @written: mask of access patterns that are results
 * @types: letter by access pattern, see isa.def
 * @imms: immediates in use
 * @limit: elements of access pattern 0; 0: what the memory allows
 * @cost: enum neuron_cost
 */
struct isa_row {
	const char *name;
	uint8_t engines;
	uint8_t min_nc;
	uint8_t words;
	uint8_t space[NEURON_INSN_APS];
	uint8_t written;
	const char *types;
	uint8_t imms;
	uint8_t cost;
	uint32_t limit;
};

extern const struct isa_row isa_rows[256];

union insn_word {
	struct neuron_dma_operand dma;
	struct neuron_insn_ext ext;
};

/**
 * struct insn - a decoded instruction
 * @w: first word, in host byte order
 * @dma: words of a DMA instruction from the second on, in host byte order
 * @ext: second word of others, in host byte order; NULL: it has none
 * @index: index word (NEURON_FLAG_INDIRECT), in host byte order, or NULL
 * @row: NULL: not decoded yet
 */
struct insn {
	struct neuron_insn w;
	const struct isa_row *row;
	struct neuron_dma_operand *dma;
	const struct neuron_insn_ext *ext;
	const struct neuron_insn_ext *index;
};

/**
 * struct opnd - an access pattern with its registers read and its limits checked
 * @n: elements of each partition
 * @rows: runs of the innermost dimension, n / num[0]
 * @lo, @hi: bytes of the partition that it may touch, [lo, hi)
 * @num: elements by dimension, innermost first
 * @step: bytes by dimension
 * @base: host address of the first element of the first partition
 * @stride: host bytes from a partition to the next
 * @dense: the elements are one run without gaps, in order
 * @index: tile of offsets of an indirect operand, or NULL; then @n is @num[0] and
 *	@lo, @hi are the range of the offsets
 * @group: partitions that share offsets
 * @lo_direct: first byte that offset 0 means
 * @places: offsets must be below it
 */
struct opnd {
	uint8_t space;
	uint8_t dtype;
	uint8_t bytes;
	uint8_t part;
	uint8_t parts;
	uint8_t dims;
	bool dense;
	uint32_t n;
	uint32_t lo, hi;
	uint32_t num[NEURON_AP_DIMS];
	int32_t step[NEURON_AP_DIMS];
	uint8_t *base;
	size_t stride;
	const struct opnd *index;
	uint32_t group, lo_direct, places;
};

/* A scalar operand: one value, or one value per partition. */
struct scalar {
	bool present;
	bool vector;
	float value;
	uint32_t bits;
	struct opnd vec;
};

/* Who did the update that ended a wait, and when. */
struct cause {
	uint64_t time;
	uint32_t debug_id;
	uint32_t record;	/* of the trace, that did it */
	uint16_t index;
	uint8_t engine;
	uint8_t kind;		/* enum neuron_trace_wait */
};

#define SEM_HISTORY	8

/**
 * struct sem - a semaphore's past in this job
 * @job: exec.serial; another value: not used in this job, value 0
 * @added, @taken: totals; the value is the difference
 * @count: updates so far
 * @hist: the last updates: total after each
 */
struct sem {
	uint64_t job;
	uint64_t added;
	uint64_t taken;
	uint32_t count;
	struct sem_update {
		uint64_t added;
		struct cause cause;
	} hist[SEM_HISTORY];
};

/* An update that has been sent and has not arrived. */
struct update {
	uint64_t time;
	uint64_t seq;
	uint32_t pc;
	uint32_t debug_id;
	struct neuron_update u;
	uint8_t engine;		/* whose stream it was in */
	uint8_t opcode;
	uint8_t from;		/* engine that did it: may be DMA */
	uint32_t record;	/* of the trace */
	uint32_t msg;		/* strict: clock that it carries */
};

enum phase {
	PHASE_IDLE,		/* no stream, or ended */
	PHASE_ISSUE,		/* the sequencer reaches the instruction at issue */
	PHASE_BLOCKED,		/* waits for a semaphore or event */
	PHASE_READY,		/* operands known, starts at the slot's time */
};

/* An HBM operand of a DMA instruction, registers read. */
struct hbm_opnd {
	uint32_t arg;
	uint64_t va;		/* of the argument */
	uint64_t size;
	int64_t offset;
	uint8_t dtype;
	uint8_t bytes;
	uint8_t dims;
	bool indexed;
	uint64_t count[NEURON_DMA_DIMS];
	int64_t stride[NEURON_DMA_DIMS];
	struct opnd index;
	uint64_t row_bound;
};

/**
 * struct dma_side - an operand of a transfer
 * @core: SBUF: program core whose SBUF it is
 * @remote: that is not the core of the stream
 */
struct dma_side {
	bool is_hbm;
	bool remote;
	uint8_t core;
	uint8_t dtype;
	uint8_t bytes;
	uint64_t elements;
	struct opnd sb;
	struct hbm_opnd hbm;
};

/**
 * struct dma_cost - what a transfer takes
 * @work: ticks that it takes alone, << 8
 * @bytes: moved
 * @rows: descriptors
 * @width: DMA engines it uses
 * @hbm: times that its bytes cross HBM
 */
struct dma_cost {
	uint64_t work;
	uint64_t bytes;
	uint64_t rows;
	unsigned int width;
	unsigned int hbm;
};

#define RECENT	4

/**
 * struct trace_waits - waits of an instruction, for its record
 * @from: ticks up to which they are accounted
 */
struct trace_waits {
	uint64_t from;
	unsigned int n;
	struct neuron_trace_waits w[NEURON_TRACE_WAITS];
};

/**
 * struct stream - an engine's instruction stream
 * @code: copy of the program's words
 * @insn: decoded, by word
 * @pc: word of the current instruction
 * @cur: current instruction
 * @issue: ticks when the sequencer reached it
 * @engine_free: ticks when the engine takes the next
 * @complete: ticks when all effects so far are visible
 * @last_update: ticks of the stream's latest update; they stay in order
 * @weights_free: PE: the weight buffer can be loaded again
 * @weights_done: PE: weights are loaded
 * @cause: what the current instruction waited for last
 * @waits: all that it waited for
 * @last_record: trace index of the latest instruction
 * @op: operands of the current instruction
 * @index: index tiles of the first three
 * @imm: its scalars
 * @cycles: its cost, engine cycles
 * @direct: results may be computed where they go: the destination is exactly a
 *	source or apart from all of them
 * @reg_unknown: timing-only: registers whose value comes from memory, by bit
 * @recent: destinations of the last instructions, for dependences inside the engine
 */
struct stream {
	struct exec *x;
	uint8_t core;
	uint8_t engine;
	uint8_t phase;
	uint8_t recent_next;
	bool direct;
	uint32_t words;
	const uint8_t *code;
	struct insn *insn;
	uint32_t pc;
	const struct insn *cur;
	uint64_t issue;
	uint64_t engine_free;
	uint64_t complete;
	uint64_t last_update;
	uint64_t weights_free;
	uint64_t weights_done;
	struct cause cause;
	struct trace_waits waits;
	uint32_t last_record;
	struct opnd op[NEURON_INSN_APS], index[3];
	struct scalar imm[NEURON_INSN_IMMS];
	struct dma_side dma_dst, dma_src[NEURON_DMA_SOURCES];
	struct dma_cost dma_cost;
	uint32_t cycles;
	uint64_t macs;
	struct recent {
		uint64_t visible;
		uint32_t lo, hi;
		uint8_t space, part, parts;
	} recent[RECENT];
	uint64_t retired;
	uint64_t reg_unknown;
	uint32_t reg[NEURON_REGS];
};

/**
 * struct xfer - a DMA transfer on its way
 * @arrive: ticks when its trigger has reached the queue
 * @left: of cost.work
 * @sem_core: program core of its semaphore
 * @sources: operands that are read; @more has all but the first
 * @trace: index of its record
 */
struct xfer {
	struct xfer *next;
	const struct insn *insn;
	uint32_t pc;
	uint8_t engine;
	uint8_t queue;
	uint8_t priority;
	bool running;
	uint64_t issue;
	uint64_t arrive;
	uint64_t start;
	uint64_t left;
	struct dma_cost cost;
	uint64_t trace;
	uint32_t issuer;	/* trace index of the instruction */
	uint32_t msg;		/* strict: clock of the stream when it was issued */
	uint8_t sem_core;
	uint8_t sources;
	struct dma_side *more;
	struct dma_side dst, src;
};

static inline const struct dma_side *xfer_source(const struct xfer *t, unsigned int i)
{
	return i ? &t->more[i - 1] : &t->src;
}

struct dma_queue {
	struct xfer *head, *tail;
	unsigned int depth;
	uint64_t last_update;
	uint64_t free_at;
	uint32_t last_record;
};

#define THROTTLE_SLICES	32	/* twice a window of them */

/**
 * struct throttle - how busy the tensor engine was lately
 * @until: ticks until which it runs at half speed
 * @slice: number of the slice of time, by its remainder
 * @busy: ticks in it
 */
struct throttle {
	uint64_t until;
	uint64_t slice[THROTTLE_SLICES];
	uint64_t busy[THROTTLE_SLICES];
};

#define PE_MAX_K	512	/* rows of a product: MX and sparse have four per partition */
#define PE_RAW_BYTES	(128 * 128 * 4)
#define PE_CELLS	16	/* parts of 32 x 32 that tiles are made of */

/**
 * struct pe_weights - a stationary matrix in a tile of the array
 * @opcode: of the instruction that loaded it; 0: none
 * @pending: no MATMUL has taken it yet: the tile still works with what it had
 * @cells: mask of the parts of the array that it has, by row of four
 * @rows: 1, or 2 in double row mode: halves of a partition's elements that are rows of
 *	their own
 * @ratio: sparse: the group that four were kept of
 * @parts: partitions
 * @k, @m: rows and columns of the product's matrix; sparse: rows that were kept
 * @packed: @panel is made; a MATMUL that needs it makes it
 * @panel: weights as fp32, NUM_MR columns at a time: [m / NUM_MR][k][NUM_MR]; sparse
 *	[k][m]
 * @raw: partitions as they were stored, @bytes an element; for bit-exact transposes
 * @extra: MX: scales, [8 partitions][m]; sparse: positions, [k][m]
 */
struct pe_weights {
	uint8_t opcode;
	bool pending;
	bool packed;
	uint8_t dtype;
	uint8_t bytes;
	uint8_t perf;
	uint8_t rows;
	uint8_t ratio;
	uint16_t cells;
	unsigned int parts, k, m;
	float panel[PE_MAX_K * 128];
	uint8_t raw[PE_RAW_BYTES + 128 * 4];
	uint8_t extra[128 * 128];
};

/* At work and pending ones of all tiles. */
struct pe {
	struct pe_weights slot[2 * PE_CELLS];
	uint64_t cell_free[PE_CELLS];
};

/**
 * struct rng - generators by lane
 * @job: exec.serial of the job that seeded them
 * @lfsr: vector engine up to v3
 * @dve: vector engine from v4 on, four of six words
 * @pool: GpSimd
 */
struct rng {
	uint64_t job;
	uint32_t lfsr[NEURON_PARTITIONS];
	uint32_t dve[NEURON_PARTITIONS][24];
	uint32_t pool[NEURON_PARTITIONS][6];
};

/**
 * struct exec_core - one core of the job
 * @due: by slot: ticks of the next event
 * @updates: heap of updates under way
 * @blocked: mask of engines that wait
 * @stalled: mask of engines that wait for room in a DMA queue
 * @acc: ACT's accumulators; a bit of @acc_defined for each that holds something
 * @dve_acc: the vector engine's
 * @busy: until when an engine uses a memory, for the exclusion rules
 */
struct exec_core {
	struct chip_core *core;
	unsigned int index;
	struct stream stream[STREAMS];
	struct sem sem[NEURON_SEMAPHORES];
	uint64_t event_job[NEURON_EVENTS];
	struct cause event_cause[NEURON_EVENTS];
	uint8_t blocked;
	uint8_t stalled;
	struct update *update;
	unsigned int updates, updates_max;
	struct dma_queue queue[NEURON_DMA_QUEUES];
	uint64_t dma_time;
	uint64_t dma_busy;
	uint64_t dma_rate;	/* share of full rate, 16 bits after the point */
	bool stochastic;	/* rounding mode */
	float acc[NEURON_PARTITIONS];
	uint64_t acc_defined[2];
	float dve_acc[NEURON_PARTITIONS];
	uint64_t dve_acc_defined[2];
	struct rng rng;
	struct {
		uint64_t sbuf_bus;
		uint64_t psum_bank[NEURON_PSUM_BANKS];
	} busy[STREAMS];
	struct throttle throttle;
	struct pe *pe;
};

/**
 * struct exec - a job's execution; kept with core 0 for the next job
 * @due: event slots of all cores, SLOTS each
 * @serial: of the job in this structure
 * @end: ticks when the last effect so far is visible
 * @stochastic: rounding mode of the core whose instruction or transfer runs
 * @throttle: dI/dt throttling is modelled
 * @timing_only: no arithmetic, no data is moved
 * @row: scratch rows of SCRATCH_ELEMENTS, enough for a moving operand
 */
struct exec {
	struct chip_job *job;
	const struct timing *timing;
	const struct num_ops *num;
	bool strict, jitter, stochastic, faulted, timing_only, throttle;
	uint64_t serial;
	uint64_t now;
	uint64_t end;
	uint64_t seq;
	uint64_t prng_jitter, prng_sr;
	unsigned int cores;
	unsigned int ops_since_poll;
	uint64_t due[NEURON_MAX_CORES * SLOTS];
	struct exec_core *core[NEURON_MAX_CORES];
	struct neuron_arg arg[NEURON_MAX_ARGS];
	uint32_t args;
	struct neuron_program_header header;
	uint8_t *code;
	size_t code_bytes;
	struct insn *insn;
	size_t insns;
	union insn_word *word;	/* all words but the first of each instruction */
	size_t words;
	struct xfer *free_xfer;
	float *row[3];
	struct copy *copy;	/* exec_copy.c */
	struct check_job *check;	/* strict: made by the first strict job */
	struct neuron_trace_record *trace;	/* neuron/trace.h */
	uint64_t trace_count, trace_room, trace_max;
	uint64_t trace_dropped;
};

static inline uint64_t *exec_due(struct exec *x, unsigned int core, unsigned int slot)
{
	return &x->due[core * SLOTS + slot];
}

static inline struct exec_core *stream_core(struct stream *s)
{
	return s->x->core[s->core];
}

/* --- exec.c ---------------------------------------------------------------------- */

/*
 * Ends the job at the instruction of @s. The first fault stays. Returns the record
 * for the fields that say more, or a scratch one.
 */
struct neuron_fault_record *exec_fault(struct exec *x, const struct stream *s,
				       enum neuron_fault code);
/* The same for an instruction that the stream has left behind. */
struct neuron_fault_record *exec_fault_at(struct exec *x, enum neuron_fault code,
					  unsigned int core, unsigned int engine,
					  uint32_t pc, const struct insn *insn);
/* BAD_OPERAND of operand @index: @value was given where @limit is allowed. */
bool exec_bad(struct stream *s, unsigned int index, uint64_t value, uint64_t limit);
/* A latency, varied when the job asks for jitter. */
uint64_t exec_latency(struct exec *x, uint64_t ticks);
void exec_end_at(struct exec *x, uint64_t ticks);
/* Looks at the host's abort and poll flags; pointers into HBM end here. False: abort. */
bool exec_poll(struct exec *x);

/* --- exec_program.c ---------------------------------------------------------------- */

bool program_load(struct exec *x);
/* Buffers are kept for the next job unless they are large. */
void program_release(struct exec *x);
/* The stream's current instruction, decoded and checked; NULL: faulted. */
const struct insn *program_fetch(struct exec *x, struct stream *s);

/* --- exec_sync.c --------------------------------------------------------------------- */

void sync_reset(struct exec *x, struct exec_core *c);
/* True: the waits of the current instruction hold, and were consumed. */
bool sync_try(struct stream *s, uint64_t *when);
/* Wait @i of the current instruction holds by itself. */
bool sync_wait_holds(struct stream *s, unsigned int i);
void sync_send(struct exec *x, unsigned int core, const struct update *update);
void sync_arrive(struct exec *x, struct exec_core *c);
void sync_update_from_stream(struct stream *s, uint64_t read, uint64_t complete);
/* Another update of the current instruction: @u at a core of the job, not before @ticks. */
void sync_send_from_stream(struct stream *s, unsigned int core, const struct neuron_update *u,
			   uint64_t ticks);
uint32_t sync_value(struct exec *x, struct exec_core *c, unsigned int sem);

/* --- exec_seq.c ---------------------------------------------------------------------- */

bool seq_prepare(struct stream *s);
/* The instruction ends at @end. Returns the word that comes next. */
uint32_t seq_run(struct stream *s, uint64_t end);
/* Timing-only jobs: false, faulted: the register's value is not known. */
bool seq_reg_known(struct stream *s, unsigned int reg);
/* A register gets what memory holds. */
void seq_reg_load(struct stream *s, unsigned int reg, uint32_t value);
bool hbmreg_prepare(struct stream *s);
bool hbmreg_run(struct stream *s);
bool debug_prepare(struct stream *s);
void debug_run(struct stream *s);

/* --- exec_dma.c ---------------------------------------------------------------------- */

bool dma_prepare(struct stream *s);
/* Word @index of the current instruction as an operand in HBM; @need: NEURON_ARG_*. */
bool dma_hbm_side(struct stream *s, unsigned int index, unsigned int need, struct dma_side *side);
/* Ticks that the issuing sequencer, and with software descriptors POOL, is busy. */
uint64_t dma_issue_ticks(const struct stream *s);
bool dma_is_swdge(const struct stream *s);
/* The current instruction's queue takes no more. */
bool dma_full(const struct stream *s);
/* @written: ticks when the descriptors are there. */
void dma_issue(struct stream *s, uint64_t written);
void dma_event(struct exec *x, struct exec_core *c);
void dma_reset(struct exec *x, struct exec_core *c);

/* --- insn*.c -------------------------------------------------------------------------- */

/* Reads registers, checks limits, finds addresses. @index: operand number for faults. */
bool opnd_resolve(struct stream *s, const struct neuron_ap *ap, unsigned int index,
		  unsigned int spaces, struct opnd *op);
bool insn_prepare(struct stream *s);
void insn_run(struct stream *s);
uint32_t insn_imm(const struct stream *s, const struct neuron_imm *imm);

void row_load(const struct exec *x, const struct opnd *op, unsigned int part, float *dst);
void row_store(struct exec *x, const struct opnd *op, unsigned int part, const float *src);
const float *row_get(const struct exec *x, const struct opnd *op, unsigned int part, float *buf);
float *row_target(const struct stream *s, unsigned int part, float *buf);
void row_bits_load(const struct opnd *op, unsigned int part, uint32_t *dst);
void row_bits_store(const struct opnd *op, unsigned int part, const uint32_t *src);
const uint8_t *row_gather(const struct opnd *op, unsigned int part, void *buf);
void row_scatter(const struct opnd *op, unsigned int part, const void *buf);
float scalar_get(const struct scalar *s, unsigned int part);

bool pe_prepare(struct stream *s);
void pe_ldweights(struct stream *s);
void pe_matmul(struct stream *s);
/* Weights that the current MATMUL works with; NULL: none are loaded in its tile. */
struct pe_weights *pe_weights_of(const struct stream *s);
/* Columns that LDWEIGHTS brings. */
unsigned int pe_columns(const struct stream *s);
/* Ticks when the tile of the current MATMUL is free. */
uint64_t pe_tile_free(struct stream *s);
void pe_tile_busy(struct stream *s, uint64_t until);
void pe_reset(struct exec_core *c);
/* Row length of the moving operand's copy: off powers of two, for the host's cache. */
size_t pe_ld(unsigned int n);
void pe_pad(float *row, unsigned int n);
void pe_pack_row(struct pe_weights *w, unsigned int k, const float *row);
/* The product of @w and the moving operand's copy [k][pe_ld(n)] to PSUM. */
void pe_product(struct stream *s, const struct pe_weights *w, const float *moving);
/* Rows of the product, [m][n], to PSUM through buffers. */
void pe_put_rows(struct stream *s, const float *rows, unsigned int m_all);

/* insn_pe_mx.c */
bool mx_scale_ok(struct stream *s, unsigned int index, const struct opnd *data);
bool pe_mx_ok(struct stream *s, unsigned int max);
void pe_mx_load(struct stream *s, struct pe_weights *w);
void pe_mx_matmul(struct stream *s, struct pe_weights *w);
bool quantize_mx_prepare(struct stream *s);
void quantize_mx_run(struct stream *s);

/* insn_pe_sparse.c */
bool pe_sparse_load_ok(struct stream *s);
bool pe_sparse_ok(struct stream *s, const struct pe_weights *w);
void pe_sparse_load(struct stream *s, struct pe_weights *w);
void pe_sparse_matmul(struct stream *s, struct pe_weights *w);

bool act_prepare(struct stream *s);
void act_activate(struct stream *s);
void act_read_acc(struct stream *s);
bool act_fn_exists(unsigned int fn);

bool dve_prepare(struct stream *s);
void dve_run(struct stream *s);

bool pool_prepare(struct stream *s);
void pool_run(struct stream *s);

/* --- insn_indirect.c ------------------------------------------------------------------ */

struct opnd_walk {
	unsigned int part;
	uint32_t i;
};

/* Operand @i of the current instruction, whose index word has a tile for it. */
bool indirect_resolve(struct stream *s, const struct neuron_ap *ap, unsigned int i,
		      unsigned int spaces);
/* Element @i of partition @part. */
uint8_t *indirect_at(const struct opnd *op, unsigned int part, uint32_t i);
/* The next run of the operand, as a direct one; @walk starts as zeros. False: no more. */
bool indirect_piece(const struct opnd *op, struct opnd_walk *walk, struct opnd *piece);

/* --- dma_operand.c -------------------------------------------------------------------- */

/* Elements of the longest run without gaps at the operand's inner end. */
uint64_t side_run(const struct dma_side *side);
/* op0 of DMA_TRANSPOSE: rank, then axes; NULL: none. */
const uint8_t *dma_axes(unsigned int op);

/* Value @r of an index tile, column by column. */
static inline uint32_t hbm_index_bits(const struct hbm_opnd *h, unsigned int r)
{
	const uint8_t *at = h->index.base + r % h->index.parts * h->index.stride;
	unsigned int d, n = r / h->index.parts;
	uint32_t bits;

	for (d = 0; d < h->index.dims; d++) {
		at += (int64_t)(n % h->index.num[d]) * h->index.step[d];
		n /= h->index.num[d];
	}
	memcpy(&bits, at, 4);
	return le32toh(bits);
}

/* An instruction's own checks, and what it does, of the files that they are in. */
#define INSN(name) bool name##_prepare(struct stream *s); void name##_run(struct stream *s);
/* insn_act2.c */
INSN(activate2)
/* insn_acc.c */
INSN(scalar_reduce) INSN(cumulative) INSN(scan) INSN(range_select) INSN(exponential) INSN(dve_acc)
bool select_acc_prepare(struct stream *s);
void select_acc(struct stream *s, unsigned int part, const float *row);
/* insn_search.c */
INSN(bn_stats) INSN(bn_aggr) INSN(max8) INSN(find_index8) INSN(match_replace8) INSN(shuffle)
/* insn_rng.c */
INSN(rng)
/* insn_gather.c */
INSN(partition_reduce) INSN(n_gather) INSN(local_gather) INSN(sequence_bounds) INSN(nonzero) INSN(topk)
#undef INSN

/* --- exec_copy.c ---------------------------------------------------------------------- */

/* Moves the bytes of a transfer. */
void copy_run_xfer(struct exec *x, struct exec_core *c, struct xfer *t);

/* --- trace.c ------------------------------------------------------------------------- */

void trace_begin(struct exec *x);
static inline bool trace_on(const struct exec *x)
{
	return x->trace_max;
}

/* Appends a record; its index, or UINT64_MAX. */
uint64_t trace_add(struct exec *x, const struct neuron_trace_record *rec);
/* Index that the next record gets. */
uint32_t trace_next(const struct exec *x);
/* The instruction of @s waited until @until; earlier waits are accounted. */
void trace_wait(struct stream *s, const struct cause *cause, uint64_t until);
void trace_insn(struct stream *s, uint64_t busy, uint64_t end, uint64_t bytes);
/* A transfer starts, and ends. */
void trace_xfer(struct exec *x, struct exec_core *c, struct dma_queue *q, struct xfer *t);
void trace_xfer_end(struct exec *x, const struct xfer *t);
void trace_end(struct exec *x);
void trace_release(struct exec *x);

#endif /* NEURON_CHIP_EXEC_STATE_H */
