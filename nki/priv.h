/* SPDX-License-Identifier: MIT */
/*
 * Inside of the builder. A kernel is a tree of items in program order: the user
 * writes a sequential program, and its meaning is that of running the items one
 * after the other. sync.c finds out which orders the hardware does not give by
 * itself and makes edges of them; lower.c writes five streams.
 */
#ifndef NKI_PRIV_H
#define NKI_PRIV_H

#include <endian.h>
#include <stdarg.h>

#include "nki.h"

#define NKI_ERROR_BYTES		2048
#define NKI_PHYS_REGS		60	/* 60 to 63: scaled offsets, see lower.c */
#define NKI_TEMP_REG		60
#define NKI_QUEUE_NONE		0xff
#define NKI_PIPES		8
#define NKI_CORE_SEMAPHORES	224	/* of two-core programs: from here on not the library's choice */
#define NKI_MAX_PREFIXES	1024
#define NKI_DEBUG_TENSOR	"nki_device_print"
#define NKI_PE_TILES		16
#define NKI_MAX_FIXES		4
#define NKI_TILE_ALIGN		64	/* bytes; keeps rows on the host's cache lines */

/* Streams: engines by their number, then DMA queues. */
#define NKI_ENGINES		NEURON_ENGINE_COUNT
#define NKI_STREAMS		(NKI_ENGINES + NEURON_DMA_QUEUES)
#define NKI_DMA_SEM		16	/* what a transfer adds to its semaphore, as on AWS's chips */

struct nki_arch {
	const char *name;
	unsigned int nc_version;
	uint32_t sbuf_bytes;	/* of a partition */
};

/**
 * struct nki_buf - a tile or tensor
 * @space: SBUF, PSUM or HBM
 * @base: tiles: byte in the partition
 * @bytes: of a partition (tiles) or of the tensor
 * @part, @parts: partitions of a tile
 * @live: tile not freed
 * @loop: loop body that it was allocated in
 * @kind, @name, @arg, @data: tensors
 */
struct nki_buf {
	struct nki_kernel *k;
	struct nki_buf *next;
	struct nki_buf *live_next, **live_prev;
	enum neuron_space space;
	enum nki_dtype dtype;
	unsigned int dims;
	uint32_t num[NKI_MAX_DIMS];
	struct nki_loc loc;
	uint64_t base;
	uint64_t bytes;
	unsigned int part, parts;
	bool live;
	struct nki_loop *loop;
	enum nki_tensor_kind kind;
	char *name;
	unsigned int arg;
	void *data;
};

/**
 * struct nki_access - bytes that an instruction reads or writes
 * @arg: HBM: argument number
 * @lo, @hi: first byte, and one past the last
 * @dims, @num, @step: runs of @run bytes at multiples of positive steps from @lo,
 *	outermost first; 0 dimensions: one run
 */
struct nki_access {
	enum neuron_space space;
	bool write;
	unsigned int arg;
	unsigned int part, parts;
	int64_t lo, hi;
	int64_t run;
	unsigned int dims;
	int64_t num[NKI_MAX_DIMS];
	int64_t step[NKI_MAX_DIMS];
};

struct nki_edge_priv;

/**
 * struct nki_point - a place in a stream that can wait and signal
 * @debug_id: line of it
 * @engine: stream that executes it
 * @queue: DMA queue that does the work, or NKI_QUEUE_NONE
 * @pos, @idx: position in its sequence, and number in its stream, see sync.c
 * @waits, @signals: edges, linked by next_wait and next_signal
 */
struct nki_point {
	unsigned int debug_id;
	uint8_t engine;
	uint8_t queue;
	int pos;
	int idx;
	struct nki_edge_priv *waits;
	struct nki_edge_priv *signals;
};

/**
 * struct nki_edge_priv - one semaphore edge
 * @from, @to: points
 * @relay: when set, the signal is not made by @from but by the stream of @relay->to
 *	when it has waited for @relay
 * @loop: sequence that the edge belongs to, NULL: the outermost
 * @carried: @to waits for the previous iteration
 * @signal_pos, @wait_pos: order in the two streams
 * @relays: edges whose @relay this is
 */
struct nki_edge_priv {
	struct nki_edge_priv *next;
	struct nki_edge_priv *next_wait;
	struct nki_edge_priv *next_signal;	/* of @from, or of @relay */
	struct nki_edge_priv *relays;
	struct nki_point *from, *to;
	struct nki_edge_priv *relay;
	struct nki_loop *loop;
	unsigned int depth;
	bool carried;
	bool dropped;
	const char *reason;
	int signal_pos, wait_pos;
	unsigned int sem;
	unsigned int number;
};

/* A scaled register: the sequencer computes reg * scale just before the instruction. */
struct nki_fix {
	unsigned int reg;	/* physical */
	int32_t scale;
	unsigned int temp;	/* physical */
};

/**
 * struct nki_insn - an instruction, with what must be done just before and after it
 * @w: first word
 * @more: words after the first, w.words - 1 of them; NULL: one word
 * @before, @after: words of the same engine that belong to it (sendrecv)
 * @fix: scaled registers
 * @regs: physical registers that it reads
 */
struct nki_insn {
	struct neuron_insn w;
	struct neuron_insn *more;
	struct neuron_insn *before, *after;
	unsigned int befores, afters;
	struct nki_access *access;
	unsigned int accesses, access_room;
	struct nki_fix fix[NKI_MAX_FIXES];
	unsigned int fixes;
	uint64_t regs;
	struct nki_point point;
};

/* A register operation: every engine that needs the register executes it. */
struct nki_regop {
	struct neuron_insn w;
	struct neuron_insn *more;
	struct nki_access access;
	bool has_access;
	struct nki_fix fix;
	bool has_fix;
	unsigned int dst;
	uint64_t regs;
	struct nki_point point[NKI_ENGINES];
};

struct nki_seq {
	struct nki_item *first, *last;
};

/**
 * struct nki_loop - a device loop
 * @engines: mask of streams that execute it
 * @pre, @post: before the first and after the last iteration, by engine
 * @records: what the body touches, for the sequence around it
 * @met: engines of which an engine knows, when it leaves, that they have worked in the
 *	last iteration
 */
struct nki_loop {
	struct nki_loop *parent;
	unsigned int depth;		/* 1: outermost loop */
	unsigned int number;		/* 1 to n, in program order */
	unsigned int reg;		/* physical */
	bool conditional;		/* while @hi.reg is not 0; no counter */
	int32_t lo, step;
	struct nki_scalar hi;
	uint64_t hi_regs;
	unsigned int debug_id;
	struct nki_seq body;
	unsigned int engines;
	struct nki_point pre[NKI_ENGINES], post[NKI_ENGINES];
	struct nki_record *records;
	size_t record_count;
	unsigned int met[NKI_ENGINES];
};

enum nki_item_kind {
	NKI_ITEM_INSN,
	NKI_ITEM_REGOP,
	NKI_ITEM_LOOP,
};

struct nki_item {
	enum nki_item_kind kind;
	struct nki_item *next;
	union {
		struct nki_insn *insn;
		struct nki_regop *regop;
		struct nki_loop *loop;
	};
};

/* What the builder knows of a register. */
struct nki_reg_info {
	bool used;
	bool counter;		/* of a loop */
	bool ranged;		/* lo <= value <= hi */
	int64_t lo, hi;
	struct nki_loop *loop;
};

/**
 * struct nki_weights - what a tile of the PE holds, to leave out LDWEIGHTS
 * @w: the instruction that loaded it, without waits and line
 * @row, @rows, @column, @columns: part of the array
 * @bytes, @scales: memory that it was loaded from
 */
struct nki_weights {
	bool valid, has_scales;
	struct neuron_insn w;
	unsigned int row, rows, column, columns;
	struct nki_access bytes, scales;
};

/**
 * struct nki_exchange - a sendrecv of one core
 * @insn: the transfer from the other core, whose address is not known yet
 * @src: what the other core fetches
 */
struct nki_exchange {
	struct nki_exchange *next;
	struct nki_insn *insn;
	struct neuron_ap src;
	struct nki_loc loc;
	unsigned int pipe, depth;
};

struct nki_words {
	struct neuron_insn *word;	/* any of the 128-byte words */
	size_t count, room;
};

struct nki_chunk {
	struct nki_chunk *next;
};

struct nki_kernel {
	char name[256];
	const struct nki_arch *arch;
	char *error;
	char error_text[NKI_ERROR_BYTES];
	struct nki_chunk *chunks;	/* memory that lives as long as the kernel */
	struct nki_chunk *build_chunks;	/* until the next build */

	struct nki_buf *bufs, **bufs_tail;
	struct nki_buf *live;		/* tiles that are not freed */
	unsigned int arg_count;
	uint64_t sbuf_high;		/* one past the highest byte ever given to a tile */
	uint64_t sbuf_top;		/* tiles of the library lie above */
	unsigned int psum_next;		/* bank to try first */

	struct nki_line *lines;
	uint32_t *line_hash;		/* numbers of lines, 2 * line_room places */
	size_t line_count, line_room;

	struct nki_seq prologue, seq;
	struct nki_loop *loop;		/* being recorded */
	unsigned int loops;
	struct nki_reg_info reg[NKI_PHYS_REGS + 1];
	uint8_t queue_owner[NEURON_DMA_QUEUES];

	struct nki_weights weights[NKI_PE_TILES];
	struct {
		enum nki_dtype dtype;
		struct nki_view view;
	} identity[8];
	unsigned int identities;

	char *info_json;

	/* Two cores: the first is the root, and counts arguments. */
	struct nki_kernel *root, *peer;
	unsigned int core, cores;
	struct nki_exchange *exchanges, **exchanges_tail;

	unsigned int rounding;		/* 0: as it is, 1: nearest, 2: stochastic */
	unsigned int rounding_id;
	struct nki_view debug;
	unsigned int prefixes;
	char *prefix[NKI_MAX_PREFIXES];

	/* Result of the last build. */
	bool built;
	int drop;
	struct nki_edge_priv *edges, **edges_tail;
	struct nki_edge_priv **edge_list;	/* by number, for questions */
	unsigned int edge_count;
	unsigned int semaphores;
	uint64_t reg_used[NKI_ENGINES];	/* registers that the engine's stream needs */
	struct nki_words stream[NKI_ENGINES];
};

/* kernel.c */
void nki_fail(struct nki_kernel *k, struct nki_loc loc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void *nki_zalloc(struct nki_kernel *k, size_t size);
void *nki_build_zalloc(struct nki_kernel *k, size_t size);
void nki_free_chunks(struct nki_chunk **list);
unsigned int nki_debug_id(struct nki_kernel *k, struct nki_loc loc);
struct nki_item *nki_add_item(struct nki_kernel *k, struct nki_seq *seq, enum nki_item_kind kind);
struct nki_seq *nki_current_seq(struct nki_kernel *k);
bool nki_ok(const struct nki_kernel *k);
bool nki_reg_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_reg reg);
const char *nki_dtype_text(enum nki_dtype dtype);
const char *nki_space_text(enum neuron_space space);
bool nki_dtype_is_int(enum nki_dtype dtype);

/* alloc.c */
struct nki_buf *nki_new_buf(struct nki_kernel *k, struct nki_loc loc, enum neuron_space space,
			    enum nki_dtype dtype, const uint32_t *num, size_t dims);
struct nki_view nki_whole(struct nki_buf *buf);
struct nki_view nki_top_tile(struct nki_kernel *k, struct nki_loc loc, enum nki_dtype dtype,
			     uint32_t parts, uint32_t columns);

/* operand.c */
struct nki_insn *nki_new_insn(struct nki_kernel *k, struct nki_loc loc, unsigned int op,
			      unsigned int engine);
struct neuron_insn *nki_more_words(struct nki_kernel *k, struct nki_insn *insn, unsigned int words);
struct neuron_insn_ext *nki_ext(struct nki_kernel *k, struct nki_insn *insn);
void nki_emit(struct nki_kernel *k, struct nki_insn *insn);
bool nki_put_view(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn, unsigned int slot,
		  const char *what, struct nki_view v, unsigned int split);
bool nki_put_scalar(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		    unsigned int slot, const char *what, struct nki_scalar s, unsigned int parts);
bool nki_add_access(struct nki_kernel *k, struct nki_insn *insn, struct nki_view v, bool write);
void nki_view_access(struct nki_view v, bool write, struct nki_access *a);
void nki_forget_weights(struct nki_kernel *k);
bool nki_live(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v);
uint64_t nki_free_elements(struct nki_view v);
bool nki_put_ap(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
		unsigned int split, struct neuron_ap *ap, unsigned int *inner, bool any_partition);
bool nki_put_fix(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn, struct nki_view v,
		 uint8_t *offset_reg);

/* indirect.c */
bool nki_put_indirect(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		      unsigned int slot, const char *what, struct nki_view v, struct neuron_ap *ap);

/* depend.c */
bool nki_overlap(const struct nki_access *a, const struct nki_access *b);
bool nki_covers(const struct nki_access *a, const struct nki_access *b);

/* dma.c */
bool nki_put_hbm_word(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		      struct nki_view v, bool write);
struct nki_insn *nki_begin_fetch(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
				 unsigned int engine);

/* cores.c */
void nki_meet(struct nki_kernel *k);

/* regs.c */
void nki_find_streams(struct nki_kernel *k);

/* sync.c */
int nki_place_semaphores(struct nki_kernel *k);

/* lower.c */
int nki_lower(struct nki_kernel *k);

/* build.c */
int nki_finish(struct nki_kernel *k);

#endif /* NKI_PRIV_H */
