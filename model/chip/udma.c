// SPDX-License-Identifier: MIT
/*
 * UDMA engines (udma/udma_regs.h, udma.h, udma_m2m.c of AWS's public driver).
 * A queue has a source ring (M2S) and a destination ring (S2M). Packets of the
 * source are written into destination descriptors in order; a packet's end closes
 * the destination descriptor it is in.
 *
 * A doorbell does the first CHIP_INLINE_BYTES on the thread that rings it, the
 * pool does the rest. One thread at a time runs a queue (@busy). While it touches
 * memory (@in_batch) it holds no lock, and everything that takes a ring away
 * waits for the end of the batch, which stops at the next packet when @gen moves.
 */
#include <stdlib.h>
#include <string.h>

#include "chip.h"

#define MAX_PACKET	(NEURON_UDMA_MAX_PACKET_DESCS + 1)
#define BATCH		128
#define BATCH_BYTES	(1u << 20)

#define STATE_ABORT	0x2222u
#define STATE_NORMAL	0x1111u
#define STATE_IDLE	0u
#define CHANGE_NORMAL	(1u << 0)
#define CHANGE_DISABLE	(1u << 1)
#define CHANGE_ABORT	(1u << 2)

/* Secondary interrupt groups A (source) and B (destination): cause registers. */
#define IOFIC_CAUSE_M2S	0x3a000
#define IOFIC_CAUSE_S2M	0x3a040
#define IOFIC_ABORT	(1u << 0)

enum { M2S, S2M, SIDES };

struct ring {
	uint64_t base;
	uint32_t len;		/* descriptors */
	uint32_t cfg;
	uint32_t head, head_id;
	uint32_t tail, tail_id;
	uint32_t pending;	/* announced, not yet done */
};

struct queue {
	struct engine_link {
		struct neuron_chip *chip;
		struct chip_udma_engine *engine;
		unsigned int engine_nr, nr;
	} at;
	struct ring ring[SIDES];
	atomic_uint gen;
	bool busy;
	bool in_batch;
	bool stuck;		/* stands still because it was told to (inject.def) */
	unsigned int stoppers;	/* register writes that wait for the end of the batch */
	struct chip_pool_work work;
};

struct chip_udma_engine {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool aborted;
	bool disabled;
	uint32_t state;
	struct queue queue[NEURON_UDMA_QUEUES];
};

/* One run over announced descriptors: copied from the rings once. */
struct batch {
	struct neuron_chip *chip;
	struct queue *q;
	struct ring ring[SIDES];
	unsigned int gen;
	struct neuron_udma_desc desc[SIDES][BATCH];
	unsigned int count[SIDES];
	unsigned int used[SIDES];
	uint64_t bytes;
	bool irq;
	bool stuck;
	const char *error;
	unsigned int error_side;
	uint64_t error_addr;
};

bool chip_udma_find(const struct chip_profile *profile, uint64_t offset,
		    unsigned int *engine, uint32_t *rel)
{
	const struct chip_udma_group *g;
	unsigned int i;

	for (i = 0; i < profile->udma_groups; i++) {
		g = &profile->udma[i];
		if (offset >= g->base && offset - g->base < g->stride * g->count) {
			*engine = g->first + (unsigned int)((offset - g->base) / g->stride);
			*rel = (uint32_t)((offset - g->base) % g->stride);
			return true;
		}
	}
	return false;
}

static struct chip_udma_engine *make_engine(struct neuron_chip *chip, unsigned int nr)
{
	struct chip_udma_engine *e = calloc(1, sizeof(*e)), *old = NULL;
	unsigned int i;

	if (!e)
		return NULL;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->cond, NULL);
	for (i = 0; i < NEURON_UDMA_QUEUES; i++) {
		e->queue[i].at = (struct engine_link){ chip, e, nr, i };
		e->queue[i].ring[M2S].cfg = NEURON_UDMA_Q_CFG_RESET_VALUE;
		e->queue[i].ring[S2M].cfg = NEURON_UDMA_Q_CFG_RESET_VALUE;
		e->queue[i].ring[M2S].tail_id = NEURON_UDMA_RING_ID_INIT;
		e->queue[i].ring[M2S].head_id = NEURON_UDMA_RING_ID_INIT;
		e->queue[i].ring[S2M].tail_id = NEURON_UDMA_RING_ID_INIT;
		e->queue[i].ring[S2M].head_id = NEURON_UDMA_RING_ID_INIT;
	}
	if (!atomic_compare_exchange_strong(&chip->engine[nr], &old, e)) {
		pthread_cond_destroy(&e->cond);
		pthread_mutex_destroy(&e->lock);
		free(e);
		e = old;
	}
	return e;
}

/* --- moving data ----------------------------------------------------------------- */

static uint32_t desc_len(const struct neuron_udma_desc *d)
{
	uint32_t len = le32toh(d->flags) & NEURON_UDMA_DESC_LEN_MASK;

	return len ? len : NEURON_UDMA_DESC_MAX_LEN;
}

static bool fail(struct batch *b, unsigned int side, uint64_t addr, const char *why)
{
	b->error = why;
	b->error_side = side;
	b->error_addr = addr;
	return false;
}

static bool fetch_side(struct batch *b, unsigned int side)
{
	struct ring *r = &b->ring[side];
	uint32_t want = r->pending < BATCH ? r->pending : BATCH;
	uint32_t pos = r->head, n;
	struct chip_place place;

	b->count[side] = 0;
	while (b->count[side] < want) {
		n = want - b->count[side];
		if (n > r->len - pos)
			n = r->len - pos;
		place = chip_resolve(b->chip, r->base + 16ull * pos, 16ull * n);
		if ((place.target != CHIP_TARGET_HOST && place.target != CHIP_TARGET_HBM) ||
		    !chip_place_read(b->chip, &place, &b->desc[side][b->count[side]], 16ull * n))
			return fail(b, side, r->base + 16ull * pos, "ring memory is unreachable");
		b->count[side] += n;
		pos = 0;
	}
	return true;
}

/* Sources of the next packet; 0: it is not complete (or bad). */
static unsigned int packet_sources(struct batch *b, uint64_t *bytes)
{
	unsigned int first = b->used[M2S], i;
	uint32_t flags;

	*bytes = 0;
	for (i = first; i < b->count[M2S]; i++) {
		flags = le32toh(b->desc[M2S][i].flags);
		if (!(flags & NEURON_UDMA_DESC_FIRST) == (i == first)) {
			fail(b, M2S, le64toh(b->desc[M2S][i].addr),
			     "FIRST is set inside a packet or missing at its start");
			return 0;
		}
		*bytes += desc_len(&b->desc[M2S][i]);
		if (flags & NEURON_UDMA_DESC_LAST)
			return i - first + 1;
		if (i - first + 1 >= MAX_PACKET) {
			fail(b, M2S, le64toh(b->desc[M2S][i].addr),
			     "packet of more than 65 descriptors");
			return 0;
		}
	}
	return 0;
}

/* Destinations that @bytes need; 0: not there yet (or bad). */
static unsigned int packet_destinations(struct batch *b, uint64_t bytes)
{
	unsigned int first = b->used[S2M], i;
	uint64_t room = 0;

	for (i = first; i < b->count[S2M]; i++) {
		room += desc_len(&b->desc[S2M][i]);
		if (room >= bytes)
			return i - first + 1;
	}
	if (i - first >= BATCH)
		fail(b, S2M, 0, "packet needs more than 128 destination descriptors");
	return 0;
}

static bool copy_part(struct batch *b, uint64_t dst, uint64_t src, uint32_t len)
{
	struct chip_place to = chip_resolve(b->chip, dst, len);
	struct chip_place from = chip_resolve(b->chip, src, len);

	if (from.target == CHIP_TARGET_NONE || from.target == CHIP_TARGET_REG)
		return fail(b, M2S, src, "source address: no memory there");
	if (to.target == CHIP_TARGET_NONE || to.target == CHIP_TARGET_REG)
		return fail(b, S2M, dst, "destination address: no memory there");
	if (from.target == CHIP_TARGET_HBM && chip_inject_hbm_read(b->chip, from.hbm, len) < len)
		return fail(b, M2S, src, "source address: uncorrectable HBM error");
	if (chip_place_copy(b->chip, &to, &from, len))
		return true;
	if (from.target == CHIP_TARGET_HOST && to.target != CHIP_TARGET_HOST)
		return fail(b, M2S, src, "source address: bus error");
	return fail(b, S2M, dst, "destination or source address: bus error");
}

static bool copy_packet(struct batch *b, unsigned int sources)
{
	const struct neuron_udma_desc *s = &b->desc[M2S][b->used[M2S]];
	const struct neuron_udma_desc *d = &b->desc[S2M][b->used[S2M]];
	const struct neuron_udma_desc *end = s + sources;
	uint32_t soff = 0, doff = 0, n;

	while (s < end) {
		n = desc_len(s) - soff;
		if (n > desc_len(d) - doff)
			n = desc_len(d) - doff;
		if (!copy_part(b, le64toh(d->addr) + doff, le64toh(s->addr) + soff, n))
			return false;
		soff += n;
		doff += n;
		if (soff == desc_len(s)) {
			s++;
			soff = 0;
		}
		if (doff == desc_len(d)) {
			d++;
			doff = 0;
		}
	}
	return true;
}

/* Faults on demand, before a packet is copied. */
static bool injected(struct batch *b)
{
	const struct engine_link *at = &b->q->at;
	struct chip_site site = chip_site_udma(at->engine_nr, at->nr);

	if (chip_inject_hit(b->chip, CHIP_INJECT_DMA_ABORT, site)) {
		fail(b, M2S, le64toh(b->desc[M2S][b->used[M2S]].addr), "injected abort");
		return true;
	}
	b->stuck = chip_inject_hit(b->chip, CHIP_INJECT_DMA_STUCK, site);
	if (b->stuck)
		chip_log(b->chip, NEURON_CHIP_LOG_GUEST, "udma %u queue %u: stuck (injected)",
			 at->engine_nr, at->nr);
	return b->stuck;
}

/* Returns when nothing more can be done at once; @b says what was. */
static void run_batch(struct batch *b)
{
	unsigned int sources, dests, i;
	uint64_t bytes;

	if (!fetch_side(b, M2S) || !fetch_side(b, S2M))
		return;
	while (b->used[M2S] < b->count[M2S] && b->bytes < BATCH_BYTES && !b->irq) {
		if (atomic_load_explicit(&b->q->gen, memory_order_relaxed) != b->gen)
			return;
		sources = packet_sources(b, &bytes);
		dests = sources ? packet_destinations(b, bytes) : 0;
		if (!dests || injected(b) || !copy_packet(b, sources))
			return;
		/* The next packet may be the one that tells software that this is done. */
		atomic_thread_fence(memory_order_release);
		for (i = 0; i < dests; i++) {
			if (le32toh(b->desc[S2M][b->used[S2M] + i].flags) & NEURON_UDMA_DESC_INT_EN)
				b->irq = true;
		}
		b->used[M2S] += sources;
		b->used[S2M] += dests;
		b->bytes += bytes;
	}
}

/* --- running a queue ---------------------------------------------------------------- */

static bool ring_ready(const struct ring *r)
{
	const uint32_t on = NEURON_UDMA_Q_CFG_EN_PREF | NEURON_UDMA_Q_CFG_EN_SCHED;

	return (r->cfg & on) == on && r->len && r->pending;
}

static bool runnable(struct chip_udma_engine *e, struct queue *q)
{
	return !e->aborted && !e->disabled && !q->stoppers && !q->stuck &&
	       ring_ready(&q->ring[M2S]) && ring_ready(&q->ring[S2M]);
}

static void advance(struct ring *r, uint32_t n)
{
	r->pending -= n;
	r->head += n;
	if (r->head >= r->len) {
		r->head -= r->len;
		r->head_id = (r->head_id + 1) & 3;
	}
}

/* Engine lock held. */
static void abort_engine(struct chip_udma_engine *e, struct queue *q, unsigned int side)
{
	struct neuron_chip *chip = q->at.chip;
	const struct chip_udma_group *g = chip->profile.udma;
	uint64_t cause;

	e->aborted = true;
	while (q->at.engine_nr - g->first >= g->count)
		g++;
	cause = g->base + (q->at.engine_nr - g->first) * g->stride +
		(side == M2S ? IOFIC_CAUSE_M2S : IOFIC_CAUSE_S2M);
	chip_ram_write(&chip->ram, cause, chip_ram_read(&chip->ram, cause) | IOFIC_ABORT);
}

static void report_abort(struct neuron_chip *chip, struct queue *q, unsigned int side,
			 uint64_t addr, const char *why)
{
	bool irq;

	chip_log(chip, NEURON_CHIP_LOG_GUEST, "udma %u queue %u %s: %s (0x%llx); engine aborted",
		 q->at.engine_nr, q->at.nr, side == M2S ? "m2s" : "s2m", why, (unsigned long long)addr);
	pthread_mutex_lock(&chip->lock);
	irq = chip_admin_event(chip, NEURON_EXEC_ADMIN_UDMA_ABORT);
	pthread_mutex_unlock(&chip->lock);
	if (irq)
		chip_raise(chip, 0);
}

static void raise_queue(struct queue *q)
{
	struct neuron_chip *chip = q->at.chip;
	uint32_t v = atomic_load(&chip->udma_irq[q->at.engine_nr * NEURON_UDMA_QUEUES + q->at.nr]);

	if (v & NEURON_EXEC_UDMA_IRQ_EN)
		chip_raise(chip, v & ~NEURON_EXEC_UDMA_IRQ_EN);
}

/*
 * Engine lock held on entry and exit, dropped in between. False: nothing happened,
 * the queue waits for a doorbell.
 */
static bool run_once(struct chip_udma_engine *e, struct queue *q, uint64_t *bytes)
{
	struct batch b;
	bool aborted = false;

	b.chip = q->at.chip;
	b.q = q;
	memcpy(b.ring, q->ring, sizeof(b.ring));
	b.gen = atomic_load(&q->gen);
	memset(b.used, 0, sizeof(b.used));
	b.bytes = 0;
	b.irq = false;
	b.stuck = false;
	b.error = NULL;
	q->in_batch = true;
	pthread_mutex_unlock(&e->lock);
	run_batch(&b);
	pthread_mutex_lock(&e->lock);
	q->in_batch = false;
	pthread_cond_broadcast(&e->cond);
	/* Even when stopped: whoever waits for it changes the ring after this. */
	advance(&q->ring[M2S], b.used[M2S]);
	advance(&q->ring[S2M], b.used[S2M]);
	*bytes += b.bytes;
	/* A reset in the meantime has freed it already. */
	if (b.stuck && atomic_load(&q->gen) == b.gen)
		q->stuck = true;
	if (b.error) {
		abort_engine(e, q, b.error_side);
		aborted = true;
	}
	pthread_mutex_unlock(&e->lock);
	if (b.irq)
		raise_queue(q);
	if (aborted)
		report_abort(b.chip, q, b.error_side, b.error_addr, b.error);
	pthread_mutex_lock(&e->lock);
	return b.used[M2S] || q->ring[M2S].pending != b.ring[M2S].pending ||
	       q->ring[S2M].pending != b.ring[S2M].pending;
}

/* Runs until there is nothing to do, or @budget bytes are done and the pool takes over. */
static void run_queue(struct queue *q, uint64_t budget)
{
	struct chip_udma_engine *e = q->at.engine;
	struct neuron_chip *chip = q->at.chip;
	uint64_t bytes = 0;

	pthread_mutex_lock(&e->lock);
	while (runnable(e, q)) {
		if (bytes >= budget) {
			pthread_mutex_unlock(&e->lock);
			chip_pool_submit(CHIP_POOL_UDMA, &q->work);
			return;
		}
		if (!run_once(e, q, &bytes))
			break;
	}
	q->busy = false;
	pthread_mutex_unlock(&e->lock);
	chip_busy_put(chip);
}

static void queue_work(struct chip_pool_work *work)
{
	struct queue *q = chip_container_of(work, struct queue, work);

	run_queue(q, 16ull << 20);	/* then others get the thread */
}

/* Engine lock held; true: the caller runs it after unlocking. */
static bool claim(struct chip_udma_engine *e, struct queue *q)
{
	if (q->busy || !runnable(e, q))
		return false;
	q->busy = true;
	q->work.fn = queue_work;
	chip_busy_get(q->at.chip);
	return true;
}

/* Engine lock held. After it no byte is moved for what was announced before. */
static void stop_batch(struct chip_udma_engine *e, struct queue *q)
{
	atomic_fetch_add(&q->gen, 1);
	q->stoppers++;
	while (q->in_batch)
		pthread_cond_wait(&e->cond, &e->lock);
	q->stoppers--;
}

/* --- registers ---------------------------------------------------------------------- */

static void reset_ring(struct ring *r)
{
	r->head = 0;
	r->tail = 0;
	r->pending = 0;
	r->head_id = NEURON_UDMA_RING_ID_INIT;
	r->tail_id = NEURON_UDMA_RING_ID_INIT;
}

static const char *doorbell(struct ring *r, uint32_t value)
{
	uint64_t n = value & NEURON_UDMA_IDX_MASK;

	if (!r->len)
		return "doorbell of a ring without length";
	if (n > r->len - r->pending)
		return "doorbell announces more descriptors than the ring holds";
	r->pending += n;
	r->tail += n;
	if (r->tail >= r->len) {
		r->tail -= r->len;
		r->tail_id = (r->tail_id + 1) & 3;
	}
	return NULL;
}

static void set_len(struct queue *q, struct ring *r, uint32_t value)
{
	value &= NEURON_UDMA_IDX_MASK;
	if (value == r->len)
		return;
	stop_batch(q->at.engine, q);
	r->len = value;
	/* Indices of the old length mean nothing in the new one. */
	if (r->head >= value || r->tail >= value || r->pending > value)
		reset_ring(r);
}

/* Engine lock held. What is wrong with the write, or NULL. */
static const char *write_queue(struct queue *q, unsigned int side, uint32_t reg, uint32_t value)
{
	struct ring *r = &q->ring[side];
	uint32_t sw_ctrl = side == M2S ? NEURON_UDMA_M2S_Q_SW_CTRL : NEURON_UDMA_S2M_Q_SW_CTRL;
	uint32_t on = NEURON_UDMA_Q_CFG_EN_PREF | NEURON_UDMA_Q_CFG_EN_SCHED;

	switch (reg) {
	case NEURON_UDMA_Q_CFG:
		if ((r->cfg & on) && (value & on) != on)
			stop_batch(q->at.engine, q);
		r->cfg = value;
		return NULL;
	case NEURON_UDMA_Q_DRBP_LO:
		stop_batch(q->at.engine, q);
		r->base = (r->base & ~0xffffffffull) | (value & ~0xffu);
		return NULL;
	case NEURON_UDMA_Q_DRBP_HI:
		stop_batch(q->at.engine, q);
		r->base = (r->base & 0xffffffffull) | (uint64_t)value << 32;
		return NULL;
	case NEURON_UDMA_Q_DRL:
		set_len(q, r, value);
		return NULL;
	case NEURON_UDMA_Q_DRTP_INC:
		if (chip_inject_hit(q->at.chip, CHIP_INJECT_DOORBELL_LOST,
				    chip_site_udma(q->at.engine_nr, q->at.nr)))
			return NULL;
		return doorbell(r, value);
	default:
		if (reg == sw_ctrl && (value & NEURON_UDMA_Q_SW_CTRL_RST)) {
			stop_batch(q->at.engine, q);
			reset_ring(r);
			q->stuck = false;
		}
		return NULL;
	}
}

static void change_state(struct chip_udma_engine *e, uint32_t value)
{
	if (value & CHANGE_ABORT) {
		e->aborted = true;
	} else if (value & CHANGE_DISABLE) {
		e->disabled = true;
		e->state = STATE_IDLE;
	} else if (value & CHANGE_NORMAL) {
		e->aborted = false;
		e->disabled = false;
		e->state = STATE_NORMAL;
	}
}

/* Side and register in it of an offset below the GEN block. */
static bool split(uint32_t rel, unsigned int *side, uint32_t *reg)
{
	if (rel >= 0x38000)
		return false;
	*side = rel >= NEURON_UDMA_S2M ? S2M : M2S;
	*reg = rel - (*side == S2M ? NEURON_UDMA_S2M : NEURON_UDMA_M2S);
	return true;
}

static bool is_queue(uint32_t reg)
{
	return reg >= NEURON_UDMA_Q(0) && reg < NEURON_UDMA_Q(NEURON_UDMA_QUEUES);
}

static uint32_t read_queue(struct queue *q, struct ring *r, uint32_t reg, uint32_t ram)
{
	switch (reg) {
	case NEURON_UDMA_Q_CFG:
		return r->cfg;
	case NEURON_UDMA_Q_DRHP:
	case NEURON_UDMA_Q_DCP:
	case NEURON_UDMA_Q_CRHP:
		return r->head | r->head_id << NEURON_UDMA_RING_ID_SHIFT;
	case NEURON_UDMA_Q_DRTP:
		return r->tail | r->tail_id << NEURON_UDMA_RING_ID_SHIFT;
	case NEURON_UDMA_Q_DRTP_INC:
		return 0;
	default:
		return ram;
	}
}

uint32_t chip_udma_read(struct neuron_chip *chip, unsigned int engine, uint32_t rel, uint64_t offset)
{
	struct chip_udma_engine *e = atomic_load(&chip->engine[engine]);
	uint32_t ram = chip_ram_read(&chip->ram, offset), reg;
	unsigned int side, nr;

	if (!e || !split(rel, &side, &reg))
		return ram;
	pthread_mutex_lock(&e->lock);
	if (is_queue(reg)) {
		nr = (reg - NEURON_UDMA_Q(0)) / 0x1000;
		ram = read_queue(&e->queue[nr], &e->queue[nr].ring[side], reg & 0xfff, ram);
	} else if (reg == NEURON_UDMA_STATE) {
		ram = e->aborted ? STATE_ABORT : e->state;
	}
	pthread_mutex_unlock(&e->lock);
	return ram;
}

static void run_all(struct chip_udma_engine *e)
{
	struct queue *q;
	unsigned int i;
	bool run;

	for (i = 0; i < NEURON_UDMA_QUEUES; i++) {
		q = &e->queue[i];
		pthread_mutex_lock(&e->lock);
		run = claim(e, q);
		pthread_mutex_unlock(&e->lock);
		if (run)
			run_queue(q, CHIP_INLINE_BYTES);
	}
}

void chip_udma_write(struct neuron_chip *chip, unsigned int engine, uint32_t rel,
		     uint64_t offset, uint32_t value)
{
	struct chip_udma_engine *e = atomic_load(&chip->engine[engine]);
	const char *bad = NULL;
	struct queue *q = NULL;
	unsigned int side;
	uint32_t reg;
	bool run = false;

	chip_ram_write(&chip->ram, offset, value);
	if (!split(rel, &side, &reg))
		return;
	if (!e)
		e = make_engine(chip, engine);
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	if (is_queue(reg)) {
		q = &e->queue[(reg - NEURON_UDMA_Q(0)) / 0x1000];
		bad = write_queue(q, side, reg & 0xfff, value);
		if (bad && !e->aborted)
			abort_engine(e, q, side);
		run = !bad && claim(e, q);
	} else if (reg == NEURON_UDMA_CHANGE_STATE) {
		change_state(e, value);
	}
	pthread_mutex_unlock(&e->lock);
	if (bad)
		report_abort(chip, q, side, value, bad);
	if (run)
		run_queue(q, CHIP_INLINE_BYTES);
	else if (!q && reg == NEURON_UDMA_CHANGE_STATE)
		run_all(e);
}

/* --- resets -------------------------------------------------------------------------- */

static void reset_engine(struct chip_udma_engine *e)
{
	struct queue *q;
	unsigned int i, side;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < NEURON_UDMA_QUEUES; i++) {
		q = &e->queue[i];
		stop_batch(e, q);
		q->stuck = false;
		for (side = 0; side < SIDES; side++) {
			memset(&q->ring[side], 0, sizeof(q->ring[side]));
			q->ring[side].cfg = NEURON_UDMA_Q_CFG_RESET_VALUE;
			reset_ring(&q->ring[side]);
		}
	}
	e->aborted = false;
	e->disabled = false;
	e->state = STATE_IDLE;
	pthread_mutex_unlock(&e->lock);
}

void chip_udma_reset(struct neuron_chip *chip)
{
	struct chip_udma_engine *e;
	unsigned int i;

	for (i = 0; i < CHIP_MAX_ENGINES; i++) {
		e = atomic_load(&chip->engine[i]);
		if (e)
			reset_engine(e);
	}
}

/* Engine lock held. */
static void free_stuck(struct chip_udma_engine *e)
{
	unsigned int i;

	for (i = 0; i < NEURON_UDMA_QUEUES; i++)
		e->queue[i].stuck = false;
}

void chip_udma_unstick(struct neuron_chip *chip)
{
	struct chip_udma_engine *e;
	unsigned int i;

	for (i = 0; i < CHIP_MAX_ENGINES; i++) {
		e = atomic_load(&chip->engine[i]);
		if (!e)
			continue;
		pthread_mutex_lock(&e->lock);
		free_stuck(e);
		pthread_mutex_unlock(&e->lock);
		run_all(e);
	}
}

/* The ring that failed has to be set up again by software; the others go on. */
void chip_udma_clear_abort(struct neuron_chip *chip, uint32_t groups)
{
	struct chip_udma_engine *e;
	unsigned int i;

	for (i = 0; i < CHIP_MAX_ENGINES; i++) {
		e = atomic_load(&chip->engine[i]);
		if (!e || (groups != ~0u && (i / 16 >= 32 || !(groups >> (i / 16) & 1))))
			continue;
		pthread_mutex_lock(&e->lock);
		e->aborted = false;
		free_stuck(e);
		pthread_mutex_unlock(&e->lock);
		/* Left-overs of before the reset must not start by themselves. */
	}
}

void chip_udma_free(struct neuron_chip *chip)
{
	struct chip_udma_engine *e;
	unsigned int i;

	for (i = 0; i < CHIP_MAX_ENGINES; i++) {
		e = atomic_load(&chip->engine[i]);
		if (!e)
			continue;
		pthread_cond_destroy(&e->cond);
		pthread_mutex_destroy(&e->lock);
		free(e);
	}
}
