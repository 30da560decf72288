// SPDX-License-Identifier: MIT
/*
 * UDMA engines (udma/udma_regs.h, udma.h, udma_iofic.c of AWS's public driver):
 * registers, rings, states. A queue has a source ring (M2S) and a destination ring
 * (S2M); what is in them is done in udma_copy.c.
 *
 * A doorbell does the first CHIP_INLINE_BYTES on the thread that rings it, the
 * pool does the rest. One thread at a time runs a queue (@busy). While it touches
 * memory (@in_batch) it holds no lock, and everything that takes a ring away
 * waits for the end of the batch, which stops at the next packet when @gen moves.
 *
 * A copy may write registers, also an engine's own (chip_in_dma()). Such a write
 * never waits for a batch: it could be its own, or one that waits for it.
 */
#include <stdlib.h>
#include <string.h>

#include "udma.h"

#define STATE_ABORT	0x2222u
#define STATE_NORMAL	0x1111u
#define STATE_IDLE	0u
#define CHANGE_NORMAL	(1u << 0)
#define CHANGE_DISABLE	(1u << 1)
#define CHANGE_ABORT	(1u << 2)
#define STREAM_DISABLE	(1u << 0)

#define GEN		0x38000u	/* registers of both directions */
#define IOFIC_STRIDE	0x40u
#define MAX_DESCS	128u		/* what desc_pref_cfg_2 may allow */

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

static void reset_ring(struct ring *r)
{
	r->head = 0;
	r->tail = 0;
	r->pending = 0;
	r->head_id = NEURON_UDMA_RING_ID_INIT;
	r->tail_id = NEURON_UDMA_RING_ID_INIT;
}

/*
 * Values at reset. The public driver writes the limits and never relies on what
 * they were; these are what it writes. Nothing is masked in the abort masks, so that
 * an engine that nobody has set up stops at an error.
 */
static void power_on(struct chip_udma_engine *e)
{
	unsigned int i, side;

	for (i = 0; i < NEURON_UDMA_QUEUES; i++) {
		for (side = 0; side < SIDES; side++) {
			memset(&e->queue[i].ring[side], 0, sizeof(e->queue[i].ring[side]));
			e->queue[i].ring[side].cfg = NEURON_UDMA_Q_CFG_RESET_VALUE;
			reset_ring(&e->queue[i].ring[side]);
		}
		e->queue[i].stuck = false;
	}
	memset(e->side, 0, sizeof(e->side));
	memset(e->primary, 0, sizeof(e->primary));
	memset(e->secondary, 0, sizeof(e->secondary));
	for (i = 0; i < UDMA_IOFIC_GROUPS; i++) {
		e->primary[i].mask = ~0u;
		e->secondary[i].mask = ~0u;
	}
	e->cfg_len = NEURON_UDMA_CFG_LEN_64K | NEURON_UDMA_CFG_LEN_MAX;
	e->pref_cfg = NEURON_UDMA_PREF_CFG_2_VALUE;
}

static struct chip_udma_engine *make_engine(struct neuron_chip *chip, unsigned int nr)
{
	struct chip_udma_engine *e = calloc(1, sizeof(*e)), *old = NULL;
	unsigned int i;

	if (!e)
		return NULL;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->cond, NULL);
	for (i = 0; i < NEURON_UDMA_QUEUES; i++)
		e->queue[i].at = (struct engine_link){ chip, e, nr, i };
	power_on(e);
	if (!atomic_compare_exchange_strong(&chip->engine[nr], &old, e)) {
		pthread_cond_destroy(&e->cond);
		pthread_mutex_destroy(&e->lock);
		free(e);
		e = old;
	}
	return e;
}

/* --- interrupt controller ------------------------------------------------------------- */

static struct iofic_group *find_group(struct chip_udma_engine *e, uint32_t rel)
{
	if (rel >= NEURON_UDMA_IOFIC(0) && rel < NEURON_UDMA_IOFIC(UDMA_IOFIC_GROUPS))
		return &e->primary[(rel - NEURON_UDMA_IOFIC(0)) / IOFIC_STRIDE];
	if (rel >= NEURON_UDMA_IOFIC2(0) && rel < NEURON_UDMA_IOFIC2(UDMA_IOFIC_GROUPS))
		return &e->secondary[(rel - NEURON_UDMA_IOFIC2(0)) / IOFIC_STRIDE];
	return NULL;
}

/* Group D of the primary controller shows which secondary group has an unmasked cause. */
static uint32_t group_cause(struct chip_udma_engine *e, const struct iofic_group *g)
{
	uint32_t cause = g->cause;
	unsigned int i;

	if (g == &e->primary[UDMA_IOFIC_GROUPS - 1]) {
		for (i = 0; i < UDMA_IOFIC_GROUPS; i++) {
			if (e->secondary[i].cause & ~e->secondary[i].mask)
				cause |= NEURON_UDMA_IOFIC_D_SECONDARY(i);
		}
	}
	return cause;
}

static uint32_t read_group(struct chip_udma_engine *e, const struct iofic_group *g, uint32_t reg)
{
	switch (reg) {
	case NEURON_UDMA_IOFIC_CAUSE:
		return group_cause(e, g);
	case NEURON_UDMA_IOFIC_STATUS:
		return group_cause(e, g) & ~g->mask;
	case NEURON_UDMA_IOFIC_MASK:
		return g->mask;
	case NEURON_UDMA_IOFIC_CONTROL:
		return g->control;
	case NEURON_UDMA_IOFIC_ABORT_MASK:
		return g->abort_mask;
	default:
		return 0;
	}
}

static void write_group(struct iofic_group *g, uint32_t reg, uint32_t value)
{
	switch (reg) {
	case NEURON_UDMA_IOFIC_CAUSE:		/* 0 clears */
		g->cause &= value;
		break;
	case NEURON_UDMA_IOFIC_CAUSE_SET:
		g->cause |= value;
		break;
	case NEURON_UDMA_IOFIC_MASK:
		g->mask = value;
		break;
	case NEURON_UDMA_IOFIC_MASK_CLEAR:	/* 0 clears: the driver writes the complement */
		g->mask &= value;
		break;
	case NEURON_UDMA_IOFIC_CONTROL:
		g->control = value;
		break;
	case NEURON_UDMA_IOFIC_ABORT_MASK:
		g->abort_mask = value;
		break;
	default:
		break;
	}
}

/* --- running a queue ---------------------------------------------------------------- */

static bool ring_ready(const struct ring *r)
{
	const uint32_t on = NEURON_UDMA_Q_CFG_EN_PREF | NEURON_UDMA_Q_CFG_EN_SCHED;

	return (r->cfg & on) == on && r->len && r->pending;
}

static bool side_ready(const struct side *s)
{
	return !s->aborted && !s->disabled && !(s->stream_cfg & STREAM_DISABLE);
}

static bool runnable(struct chip_udma_engine *e, struct queue *q)
{
	return side_ready(&e->side[M2S]) && side_ready(&e->side[S2M]) && !q->stoppers && !q->stuck &&
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

static bool is_aborted(const struct chip_udma_engine *e)
{
	return e->side[M2S].aborted || e->side[S2M].aborted;
}

/* Engine lock held. An error of one side stops both. */
static void abort_engine(struct chip_udma_engine *e, const struct udma_error *error)
{
	e->side[M2S].aborted = true;
	e->side[S2M].aborted = true;
	e->secondary[error->side].cause |= error->cause;
}

static void report_abort(struct neuron_chip *chip, struct queue *q, const struct udma_error *error)
{
	bool irq;

	chip_log(chip, NEURON_CHIP_LOG_GUEST, "udma %u queue %u %s: %s (0x%llx); engine aborted",
		 q->at.engine_nr, q->at.nr, error->side == M2S ? "m2s" : "s2m", error->why,
		 (unsigned long long)error->addr);
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

static void prepare(struct batch *b, struct chip_udma_engine *e, struct queue *q)
{
	uint32_t max = e->pref_cfg & NEURON_UDMA_PREF_CFG_2_MAX_DESCS;
	unsigned int side;

	b->chip = q->at.chip;
	b->q = q;
	memcpy(b->ring, q->ring, sizeof(b->ring));
	b->cfg_len = e->cfg_len;
	b->max_descs = max < MAX_DESCS ? max : MAX_DESCS;
	for (side = 0; side < SIDES; side++) {
		b->abort_mask[side] = e->secondary[side].abort_mask;
		b->tolerated[side] = 0;
		b->used[side] = 0;
	}
	b->gen = atomic_load(&q->gen);
	b->bytes = 0;
	b->irq = false;
	b->stuck = false;
	b->error.why = NULL;
}

/* Engine lock held. */
static void account(struct chip_udma_engine *e, struct queue *q, struct batch *b)
{
	unsigned int side;

	for (side = 0; side < SIDES; side++) {
		/* Even when stopped: whoever waits for it changes the ring after this. */
		if (!q->forget)
			advance(&q->ring[side], b->used[side]);
		e->secondary[side].cause |= b->tolerated[side];
	}
	q->forget = false;
	/* A reset in the meantime has freed it already. */
	if (b->stuck && atomic_load(&q->gen) == b->gen)
		q->stuck = true;
	if (b->error.why)
		abort_engine(e, &b->error);
}

/*
 * Engine lock held on entry and exit, dropped in between. False: nothing happened,
 * the queue waits for a doorbell.
 */
static bool run_once(struct chip_udma_engine *e, struct queue *q, uint64_t *bytes)
{
	struct batch b;

	prepare(&b, e, q);
	q->in_batch = true;
	pthread_mutex_unlock(&e->lock);
	chip_dma_enter(b.chip);
	udma_run_batch(&b);
	pthread_mutex_lock(&e->lock);
	q->in_batch = false;
	pthread_cond_broadcast(&e->cond);
	account(e, q, &b);
	*bytes += b.bytes;
	pthread_mutex_unlock(&e->lock);
	chip_dma_leave();
	if (b.irq)
		raise_queue(q);
	if (b.error.why)
		report_abort(b.chip, q, &b.error);
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

/*
 * Engine lock held, dropped while waiting. After it no byte is moved for what was
 * announced before. A write that a copy does itself cannot wait for that: then the
 * packet under way ends first.
 */
static void stop_batch(struct chip_udma_engine *e, struct queue *q)
{
	struct neuron_chip *chip = q->at.chip;

	atomic_fetch_add(&q->gen, 1);
	if (chip_in_dma())
		return;
	q->stoppers++;
	while (q->in_batch) {
		/* The batch may need a lock of the host that this thread holds. */
		pthread_mutex_unlock(&e->lock);
		chip_wait_begin(chip);
		pthread_mutex_lock(&e->lock);
		while (q->in_batch)
			pthread_cond_wait(&e->cond, &e->lock);
		pthread_mutex_unlock(&e->lock);
		chip_wait_end(chip);
		pthread_mutex_lock(&e->lock);
	}
	q->stoppers--;
}

/* --- registers ---------------------------------------------------------------------- */

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

/* Engine lock held, the batch stopped. */
static void restart_ring(struct queue *q, struct ring *r)
{
	q->forget = q->in_batch;
	reset_ring(r);
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
		restart_ring(q, r);
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
		r->base = (r->base & ~0xffffffffull) | (value & NEURON_UDMA_Q_DRBP_LO_MASK);
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
			restart_ring(q, r);
			q->stuck = false;
		}
		return NULL;
	}
}

static void change_state(struct side *s, uint32_t value)
{
	if (value & CHANGE_ABORT) {
		s->aborted = true;
	} else if (value & CHANGE_DISABLE) {
		s->disabled = true;
		s->state = STATE_IDLE;
	} else if (value & CHANGE_NORMAL) {
		s->aborted = false;
		s->disabled = false;
		s->state = STATE_NORMAL;
	}
}

/* Side and register in it of an offset below the GEN block. */
static bool split(uint32_t rel, unsigned int *side, uint32_t *reg)
{
	if (rel >= GEN)
		return false;
	*side = rel >= NEURON_UDMA_S2M ? S2M : M2S;
	*reg = rel - (*side == S2M ? NEURON_UDMA_S2M : NEURON_UDMA_M2S);
	return true;
}

static bool is_queue(uint32_t reg)
{
	return reg >= NEURON_UDMA_Q(0) && reg < NEURON_UDMA_Q(NEURON_UDMA_QUEUES);
}

static uint32_t queue_status(const struct ring *r)
{
	uint32_t on = 0;

	if (r->cfg & NEURON_UDMA_Q_CFG_EN_PREF)
		on |= NEURON_UDMA_Q_STATUS_PREF;
	if (r->cfg & NEURON_UDMA_Q_CFG_EN_SCHED)
		on |= NEURON_UDMA_Q_STATUS_SCHED;
	if (r->len && r->pending == r->len)
		on |= NEURON_UDMA_Q_STATUS_FULL;
	return on | r->pending;
}

static uint32_t read_queue(const struct ring *r, uint32_t reg, uint32_t ram)
{
	switch (reg) {
	case NEURON_UDMA_Q_CFG:
		return r->cfg;
	case NEURON_UDMA_Q_STATUS:
		return queue_status(r);
	case NEURON_UDMA_Q_DRBP_LO:
		return (uint32_t)r->base;
	case NEURON_UDMA_Q_DRBP_HI:
		return (uint32_t)(r->base >> 32);
	case NEURON_UDMA_Q_DRL:
		return r->len;
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

/* Engine lock held. */
static uint32_t read_engine(struct chip_udma_engine *e, uint32_t rel, uint32_t ram)
{
	struct iofic_group *g = find_group(e, rel);
	unsigned int side;
	uint32_t reg;

	if (g)
		return read_group(e, g, rel % IOFIC_STRIDE);
	if (!split(rel, &side, &reg))
		return ram;
	if (is_queue(reg))
		return read_queue(&e->queue[(reg - NEURON_UDMA_Q(0)) / 0x1000].ring[side], reg & 0xfff, ram);
	if (reg == NEURON_UDMA_STATE)
		return e->side[side].aborted ? STATE_ABORT : e->side[side].state;
	if (side == M2S && reg == NEURON_UDMA_M2S_CFG_LEN)
		return e->cfg_len;
	if (side == M2S && reg == NEURON_UDMA_M2S_PREF_CFG_2)
		return e->pref_cfg;
	return ram;
}

uint32_t chip_udma_read(struct neuron_chip *chip, unsigned int engine, uint32_t rel, uint64_t offset)
{
	struct chip_udma_engine *e = atomic_load(&chip->engine[engine]);
	uint32_t value = chip_ram_read(&chip->ram, offset);

	if (!e)
		e = make_engine(chip, engine);
	if (!e)
		return value;
	pthread_mutex_lock(&e->lock);
	value = read_engine(e, rel, value);
	pthread_mutex_unlock(&e->lock);
	return value;
}

/* A copy's own doorbell must not start another copy inside of it. */
static void start(struct queue *q)
{
	if (chip_in_dma())
		chip_pool_submit(CHIP_POOL_UDMA, &q->work);
	else
		run_queue(q, CHIP_INLINE_BYTES);
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
			start(q);
	}
}

/* Engine lock held. True: queues may have become runnable. */
static bool write_side(struct chip_udma_engine *e, unsigned int side, uint32_t reg, uint32_t value)
{
	const uint32_t stream = side == M2S ? NEURON_UDMA_STREAM_CFG : NEURON_UDMA_S2M_STREAM_CFG;

	if (reg == NEURON_UDMA_CHANGE_STATE) {
		change_state(&e->side[side], value);
		return true;
	}
	if (reg == stream) {
		e->side[side].stream_cfg = value;
		return true;
	}
	if (side == M2S && reg == NEURON_UDMA_M2S_CFG_LEN)
		e->cfg_len = value;
	if (side == M2S && reg == NEURON_UDMA_M2S_PREF_CFG_2)
		e->pref_cfg = value;
	return false;
}

static void write_ring(struct chip_udma_engine *e, struct queue *q, unsigned int side, uint32_t reg,
		       uint32_t value)
{
	struct udma_error error = {
		.side = side,
		.cause = side == M2S ? NEURON_UDMA_CAUSE_M2S_MAX_DESC : NEURON_UDMA_CAUSE_S2M_PKT_LEN,
		.addr = value,
	};
	bool run;

	pthread_mutex_lock(&e->lock);
	error.why = write_queue(q, side, reg, value);
	if (error.why && !is_aborted(e))
		abort_engine(e, &error);
	run = !error.why && claim(e, q);
	pthread_mutex_unlock(&e->lock);
	if (error.why)
		report_abort(q->at.chip, q, &error);
	if (run)
		start(q);
}

void chip_udma_write(struct neuron_chip *chip, unsigned int engine, uint32_t rel,
		     uint64_t offset, uint32_t value)
{
	struct chip_udma_engine *e = atomic_load(&chip->engine[engine]);
	struct iofic_group *g;
	unsigned int side;
	uint32_t reg;
	bool run;

	chip_ram_write(&chip->ram, offset, value);
	if (!e)
		e = make_engine(chip, engine);
	if (!e)
		return;
	g = find_group(e, rel);
	if (g) {
		pthread_mutex_lock(&e->lock);
		write_group(g, rel % IOFIC_STRIDE, value);
		pthread_mutex_unlock(&e->lock);
		return;
	}
	if (!split(rel, &side, &reg))
		return;
	if (is_queue(reg)) {
		write_ring(e, &e->queue[(reg - NEURON_UDMA_Q(0)) / 0x1000], side, reg & 0xfff, value);
		return;
	}
	pthread_mutex_lock(&e->lock);
	run = write_side(e, side, reg, value);
	pthread_mutex_unlock(&e->lock);
	if (run)
		run_all(e);
}

/* --- resets -------------------------------------------------------------------------- */

static void reset_engine(struct chip_udma_engine *e)
{
	unsigned int i;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < NEURON_UDMA_QUEUES; i++)
		stop_batch(e, &e->queue[i]);
	power_on(e);
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
		e->side[M2S].aborted = false;
		e->side[S2M].aborted = false;
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
