// SPDX-License-Identifier: MIT
/*
 * Programs for two cores, and what goes to the other core or to the host.
 *
 * Each core is a kernel of its own; the first one owns the second, and the numbers of
 * the arguments. Semaphores from NKI_CORE_SEMAPHORES on belong to barriers and pipes:
 * they are the same on both cores.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define BARRIER_SEM(engine)	(NEURON_SEMAPHORES - 1 - (engine))
/* Of a pipe: 0: the other's src is there, 1: data is here, 2: the other has our data. */
#define PIPE_SEM(pipe, n)	(NKI_CORE_SEMAPHORES + 3 * (pipe) + (n))
#define DEBUG_BYTES		(1u << 20)

void nki_set_lnc(struct nki_kernel *k, unsigned int cores)
{
	const struct nki_loc loc = { "nki", 0, "nki_set_lnc" };
	struct nki_kernel *peer;

	if (!nki_ok(k) || cores == k->root->cores)
		return;
	if (cores != 2 || k->root != k || k->seq.first || k->bufs) {
		nki_fail(k, loc, "%u cores; allowed: 1 or 2, before anything is recorded", cores);
		return;
	}
	if (!nki_generation_ok(k, loc, 3))
		return;
	peer = nki_kernel_new(k->name, k->arch->name);
	if (!peer) {
		nki_fail(k, loc, "the host is out of memory");
		return;
	}
	peer->drop = -1;
	peer->root = k;
	peer->core = 1;
	k->peer = peer;
	peer->peer = k;
	k->cores = 2;
}

struct nki_kernel *nki_core(struct nki_kernel *k, unsigned int core)
{
	if (!k)
		return NULL;
	if (core == k->core)
		return k;
	if (core < k->root->cores)
		return k->peer;
	nki_fail(k, (struct nki_loc){ "nki", 0, "nki_core" }, "core %u; the program has %u (nki_set_lnc)",
		 core, k->root->cores);
	return NULL;
}

unsigned int nki_program_id(const struct nki_kernel *k)
{
	return k ? k->core : 0;
}

unsigned int nki_num_programs(const struct nki_kernel *k)
{
	return k ? k->root->cores : 0;
}

static bool two_cores(struct nki_kernel *k, struct nki_loc loc)
{
	if (k->peer)
		return true;
	nki_fail(k, loc, "the program has one core; allowed: after nki_set_lnc(k, 2)");
	return false;
}

/* ------------------------------------------------------------------------ */
/* Words								    */

static struct neuron_insn word(unsigned int opcode, const struct nki_insn *of)
{
	struct neuron_insn w = { .opcode = opcode, .words = 1, .debug_id = of->w.debug_id };

	for (unsigned int i = 0; i < 3; i++) {
		w.ap[i].offset_reg = NEURON_REG_NONE;
		w.ap[i].count_reg = NEURON_REG_NONE;
	}
	return w;
}

static struct neuron_imm number(int32_t value)
{
	return (struct neuron_imm){ .kind = NEURON_IMM_I32, .dtype = NEURON_DTYPE_INT32,
				    .value = htole32(value) };
}

/* Adds 1 to a semaphore of the other core. */
static void put_remote(struct nki_kernel *k, struct neuron_insn *w, unsigned int sem)
{
	w->opcode = NEURON_OP_REMOTE_SEMAPHORE;
	w->imm[0] = number(sem);
	w->imm[1] = number(1);
	w->aux = htole32(1 - k->core);
}

static void put_wait(struct neuron_insn *w, unsigned int sem, unsigned int value)
{
	w->wait[0] = (struct neuron_wait){ .sem = sem, .cond = NEURON_WAIT_GE_SUB, .value = htole16(value) };
}

/* ------------------------------------------------------------------------ */
/* core_barrier								    */

void nki_core_barrier_(struct nki_kernel *k, struct nki_loc loc, struct nki_view data,
		       const struct nki_engine_args *args)
{
	struct nki_insn *insn;

	if (!nki_ok(k) || !two_cores(k, loc) || !nki_live(k, loc, "data", data))
		return;
	if (data.buf->space != NEURON_SPACE_HBM) {
		nki_fail(k, loc, "data is in %s; allowed: HBM, which the cores share",
			 nki_space_text(data.buf->space));
		return;
	}
	insn = nki_begin(k, loc, NEURON_OP_REMOTE_SEMAPHORE, args->engine, NKI_ENGINE_GPSIMD);
	if (!insn)
		return;
	put_remote(k, &insn->w, BARRIER_SEM(insn->point.engine));
	insn->after = nki_zalloc(k, sizeof(*insn->after));
	if (!insn->after)
		return;
	insn->afters = 1;
	insn->after[0] = word(NEURON_OP_EVENT_SEMAPHORE, insn);
	put_wait(&insn->after[0], BARRIER_SEM(insn->point.engine), 1);
	nki_add_access(k, insn, data, false);
	nki_add_access(k, insn, data, true);
	nki_emit(k, insn);
}

/* ------------------------------------------------------------------------ */
/* sendrecv								    */

static bool ranks_ok(struct nki_kernel *k, struct nki_loc loc, unsigned int to, unsigned int from,
		     unsigned int pipe)
{
	if (to == 1 - k->core && from == 1 - k->core && pipe < NKI_PIPES)
		return true;
	nki_fail(k, loc, "send_to_rank %u, recv_from_rank %u, pipe_id %u on core %u; allowed: %u, %u, 0 to %d",
		 to, from, pipe, k->core, 1 - k->core, 1 - k->core, NKI_PIPES - 1);
	return false;
}

static bool exchange_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view src, struct nki_view dst,
			enum nki_dma_engine dma)
{
	uint64_t limit = 256 * nki_dtype_size(dst.dtype);

	if (!nki_live(k, loc, "src", src) || !nki_live(k, loc, "dst", dst) ||
	    !nki_same_type(k, loc, "dst", dst, "src", src) ||
	    !nki_same_shape(k, loc, "dst", dst, "src", src))
		return false;
	if (dst.buf->space != NEURON_SPACE_SBUF || src.buf->space != NEURON_SPACE_SBUF || src.reg.id ||
	    src.count_reg.id) {
		nki_fail(k, loc, "src in %s, dst in %s; allowed: SBUF, src at an address known here",
			 nki_space_text(src.buf->space), nki_space_text(dst.buf->space));
		return false;
	}
	if (dma != NKI_DMA_ENGINE_GPSIMD || nki_free_elements(dst) * nki_dtype_size(dst.dtype) <= limit)
		return true;
	nki_fail(k, loc, "%llu bytes per partition; allowed with gpsimd_dma: %llu",
		 (unsigned long long)(nki_free_elements(dst) * nki_dtype_size(dst.dtype)),
		 (unsigned long long)limit);
	return false;
}

/* Our src is there; wait until the other core's is. */
static bool put_before(struct nki_kernel *k, struct nki_insn *insn, unsigned int pipe)
{
	struct neuron_insn *w = nki_zalloc(k, 3 * sizeof(*w));

	if (!w)
		return false;
	w[0] = word(NEURON_OP_DRAIN, insn);
	w[1] = word(NEURON_OP_REMOTE_SEMAPHORE, insn);
	put_remote(k, &w[1], PIPE_SEM(pipe, 0));
	w[2] = word(NEURON_OP_EVENT_SEMAPHORE, insn);
	put_wait(&w[2], PIPE_SEM(pipe, 0), 1);
	insn->before = w;
	insn->befores = 3;
	return true;
}

/* Wait for the data; say so; wait until the other core has ours. */
static bool put_after(struct nki_kernel *k, struct nki_insn *insn, unsigned int pipe)
{
	struct neuron_insn *w = nki_zalloc(k, 3 * sizeof(*w));

	if (!w)
		return false;
	w[0] = word(NEURON_OP_EVENT_SEMAPHORE, insn);
	put_wait(&w[0], PIPE_SEM(pipe, 1), NKI_DMA_SEM);
	w[1] = word(NEURON_OP_REMOTE_SEMAPHORE, insn);
	put_remote(k, &w[1], PIPE_SEM(pipe, 2));
	w[2] = word(NEURON_OP_EVENT_SEMAPHORE, insn);
	put_wait(&w[2], PIPE_SEM(pipe, 2), 1);
	insn->after = w;
	insn->afters = 3;
	return true;
}

/*
 * Each core fetches: the transfer then signals the core that waits for it, and both
 * know by a semaphore when the other has read.
 */
void nki_sendrecv_(struct nki_kernel *k, struct nki_loc loc, struct nki_view src, struct nki_view dst,
		   unsigned int send_to_rank, unsigned int recv_from_rank, unsigned int pipe_id,
		   const struct nki_sendrecv_args *args)
{
	unsigned int engine = args->dma_engine == NKI_DMA_ENGINE_GPSIMD ? NEURON_ENGINE_POOL :
									  NEURON_ENGINE_SP;
	struct nki_exchange *x;
	struct nki_insn *insn;

	if (!nki_ok(k) || !two_cores(k, loc) || !ranks_ok(k, loc, send_to_rank, recv_from_rank, pipe_id) ||
	    !exchange_ok(k, loc, src, dst, args->dma_engine))
		return;
	insn = nki_begin_fetch(k, loc, dst, engine);
	x = insn ? nki_zalloc(k, sizeof(*x)) : NULL;
	if (!x || !put_before(k, insn, pipe_id) || !put_after(k, insn, pipe_id) ||
	    !nki_put_ap(k, loc, "src", src, 0, &x->src, NULL, true) || !nki_add_access(k, insn, src, false))
		return;
	insn->w.update = (struct neuron_update){ .sem = PIPE_SEM(pipe_id, 1), .op = NEURON_UPDATE_SEM_ADD,
						 .value = htole16(NKI_DMA_SEM) };
	x->insn = insn;
	x->loc = loc;
	x->pipe = pipe_id;
	x->depth = k->loop ? k->loop->depth : 0;
	*k->exchanges_tail = x;
	k->exchanges_tail = &x->next;
	nki_emit(k, insn);
}

static struct nki_exchange *next_of(struct nki_exchange *x, unsigned int pipe)
{
	while (x && x->pipe != pipe)
		x = x->next;
	return x;
}

static void meet(struct nki_kernel *k, struct nki_exchange *mine, const struct nki_exchange *other)
{
	struct neuron_dma_operand *op = (struct neuron_dma_operand *)mine->insn->more + 1;

	if (mine->src.part_count != other->src.part_count || mine->src.dtype != other->src.dtype ||
	    mine->depth != other->depth) {
		nki_fail(k, mine->loc, "meets %s:%d of the other core, which has another shape, type or loop depth",
			 other->loc.file, other->loc.line);
		return;
	}
	mine->insn->w.ap[1] = other->src;
	op->space = NEURON_SPACE_SBUF;
	op->dtype = other->src.dtype;
	op->arg = htole16(2 - k->core);
	op->offset_reg = NEURON_REG_NONE;
	op->count_reg = NEURON_REG_NONE;
	op->index.offset_reg = NEURON_REG_NONE;
	op->index.count_reg = NEURON_REG_NONE;
}

/* Now that both cores are recorded: where each one's data come from. */
void nki_meet(struct nki_kernel *k)
{
	for (unsigned int pipe = 0; k->peer && pipe < NKI_PIPES; pipe++) {
		struct nki_exchange *a = next_of(k->exchanges, pipe);
		struct nki_exchange *b = next_of(k->peer->exchanges, pipe);

		while (a && b) {
			meet(k, a, b);
			meet(k->peer, b, a);
			a = next_of(a->next, pipe);
			b = next_of(b->next, pipe);
		}
		if (a || b)
			nki_fail(a ? k : k->peer, (a ? a : b)->loc, "the other core has no such call on pipe %u",
				 pipe);
	}
}

/* ------------------------------------------------------------------------ */
/* Host									    */

void nki_notify_(struct nki_kernel *k, struct nki_loc loc, uint32_t value,
		 const struct nki_engine_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_NOTIFY, args->engine, NKI_ENGINE_SYNC);

	if (!insn || !nki_put_scalar(k, loc, insn, 0, "value", nki_i32((int32_t)value), 0))
		return;
	nki_emit(k, insn);
}

void nki_set_rounding_mode_(struct nki_kernel *k, struct nki_loc loc, bool stochastic)
{
	if (!nki_ok(k))
		return;
	if (!nki_find_row(NEURON_OP_SET_ROUNDING_MODE).engines) {
		nki_fail(k, loc, "the instruction set has no opcode 0x%02x", NEURON_OP_SET_ROUNDING_MODE);
		return;
	}
	if (k->seq.first || k->prologue.first || k->rounding) {
		nki_fail(k, loc, "the program has instructions; allowed: once, before the first of them");
		return;
	}
	k->rounding = stochastic ? 2 : 1;
	k->rounding_id = nki_debug_id(k, loc);
}

static int prefix_id(struct nki_kernel *k, struct nki_loc loc, const char *prefix)
{
	struct nki_kernel *root = k->root;
	char *copy;

	for (unsigned int i = 0; i < root->prefixes; i++) {
		if (!strcmp(root->prefix[i], prefix))
			return i;
	}
	if (root->prefixes == NKI_MAX_PREFIXES) {
		nki_fail(k, loc, "more than %d prefixes", NKI_MAX_PREFIXES);
		return -1;
	}
	copy = nki_zalloc(root, strlen(prefix) + 1);
	if (!copy)
		return -1;
	strcpy(copy, prefix);
	root->prefix[root->prefixes] = copy;
	return root->prefixes++;
}

void nki_device_print_(struct nki_kernel *k, struct nki_loc loc, const char *prefix,
		       struct nki_view tensor, const struct nki_engine_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_DEBUG_PRINT, args->engine, NKI_ENGINE_VECTOR);
	int id;

	if (!insn || !nki_put_view(k, loc, insn, 1, "tensor", tensor, 0))
		return;
	if (!prefix || !*prefix || strlen(prefix) > 255 || strchr(prefix, '/')) {
		nki_fail(k, loc, "the prefix must have 1 to 255 bytes and no slash");
		return;
	}
	if (!k->debug.buf)
		k->debug = nki_tensor_(k, loc, NKI_TENSOR_OUTPUT, NKI_DEBUG_TENSOR, NKI_UINT8, NULL,
				       (const uint32_t[]){ DEBUG_BYTES }, 1);
	id = nki_ok(k) ? prefix_id(k, loc, prefix) : -1;
	if (id < 0 || !nki_put_scalar(k, loc, insn, 0, "prefix", nki_i32(id), 0))
		return;
	insn->w.aux = htole32(k->debug.buf->arg);
	nki_emit(k, insn);
}
