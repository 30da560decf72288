// SPDX-License-Identifier: MIT
/* Contexts of an in-process chip: slots, job rings, completions, the watchdog. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define RING_ORDER	7
#define RING		(1u << RING_ORDER)
/* Twice the jobs in flight: a late CQ_HEAD write never stalls the chip. */
#define CQ_ORDER	(RING_ORDER + 1)
#define CQ		(1u << CQ_ORDER)

#define NO_PROGRESS_NS		10000000000ull	/* watchdog period */
#define EXEC_TIMEOUT_S		30
#define EXEC_TIMEOUT_MAX_S	86400

struct exec_job {
	struct sim_job job;
	struct dev_exec exec;
};

/**
 * struct dev_ctx - a slot
 * @queue: its jobs
 * @refs: the owner and threads that look at it; under the chip's @slots_lock
 * @tail, @head: job ring, free running
 * @cq_head: completions read, free running
 * @run_since: when the oldest job in the ring could start
 * @retired: instructions at the watchdog's last look, @progress: when they moved
 */
struct dev_ctx {
	struct sim_queue queue;
	struct sim_dev *dev;
	unsigned int refs;
	unsigned int slot;
	unsigned int vector;
	uint32_t core_mask;
	bool shared;
	struct sim_region *ring;
	struct sim_region *cq;
	uint32_t tail;
	uint32_t head;
	uint32_t cq_head;
	uint64_t seqno;
	uint64_t run_since;
	uint64_t retired;
	uint64_t progress;
	bool resetting;
	bool faulted;
	struct neuron_fault_record fault;
};

static struct dev_ctx *to_ctx(struct sim_queue *q)
{
	return (struct dev_ctx *)q;
}

struct sim_queue *sim_ctx_queue(struct dev_ctx *ctx)
{
	return &ctx->queue;
}

static void write_slot(struct dev_ctx *ctx, uint32_t reg, uint32_t value)
{
	neuron_chip_write(ctx->queue.chip->chip, NEURON_BAR_EXEC,
			  NEURON_EXEC_SLOT(ctx->slot) + reg, value, 4);
}

static uint64_t read_slot(struct dev_ctx *ctx, uint32_t reg, unsigned int size)
{
	return neuron_chip_read(ctx->queue.chip->chip, NEURON_BAR_EXEC,
				NEURON_EXEC_SLOT(ctx->slot) + reg, size);
}

static void program_slot(struct dev_ctx *ctx)
{
	uint64_t root = ctx->dev->vm.root->bus;

	write_slot(ctx, NEURON_SLOT_RING_LO, (uint32_t)ctx->ring->bus);
	write_slot(ctx, NEURON_SLOT_RING_HI, ctx->ring->bus >> 32);
	write_slot(ctx, NEURON_SLOT_RING_ORDER, RING_ORDER);
	write_slot(ctx, NEURON_SLOT_CQ_LO, (uint32_t)ctx->cq->bus);
	write_slot(ctx, NEURON_SLOT_CQ_HI, ctx->cq->bus >> 32);
	write_slot(ctx, NEURON_SLOT_CQ_ORDER, CQ_ORDER);
	write_slot(ctx, NEURON_SLOT_CQ_HEAD, 0);
	write_slot(ctx, NEURON_SLOT_PT_LO, (uint32_t)root);
	write_slot(ctx, NEURON_SLOT_PT_HI, root >> 32);
	write_slot(ctx, NEURON_SLOT_CORE_MASK, ctx->core_mask);
	write_slot(ctx, NEURON_SLOT_PRIORITY, 1);
	write_slot(ctx, NEURON_SLOT_VECTOR, ctx->vector | NEURON_SLOT_VECTOR_EN);
	write_slot(ctx, NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_ENABLE);
}

/* --- jobs -------------------------------------------------------------------------- */

static enum sim_push exec_push(struct sim_queue *q, struct sim_job *base, struct sim_bell bell[2])
{
	const struct dev_exec *exec = &((struct exec_job *)base)->exec;
	struct dev_ctx *ctx = to_ctx(q);
	struct neuron_job_desc *desc;

	if (ctx->tail - ctx->head >= RING)
		return SIM_PUSH_FULL;
	desc = (struct neuron_job_desc *)ctx->ring->ptr + ctx->tail % RING;
	base->seqno = ++ctx->seqno;
	*desc = (struct neuron_job_desc){
		.seqno = base->seqno,
		.flags = exec->flags,
		.core_mask = exec->core_mask ? exec->core_mask : ctx->core_mask,
		.program_va = exec->program_va,
		.args_va = exec->args_va,
		.arg_count = exec->arg_count,
		.result_va = exec->result_va,
		.fence_va = exec->fence_va,
		.fence_value = exec->fence_value,
		.trace_va = exec->trace_va,
		.trace_size = exec->trace_size,
		.seed = exec->seed,
	};
	if (ctx->tail == ctx->head) {
		ctx->run_since = sim_now();
		ctx->progress = ctx->run_since;
	}
	ctx->tail++;
	sim_service_watch();
	bell[0] = (struct sim_bell){ NEURON_BAR_EXEC, NEURON_EXEC_SLOT(ctx->slot) +
				     NEURON_SLOT_DOORBELL, ctx->tail };
	return SIM_PUSH_DONE;
}

static int status_error(uint32_t status)
{
	if (status == NEURON_FAULT_NONE)
		return 0;
	return status == NEURON_FAULT_ABORTED ? -ECANCELED : -EIO;
}

/* Lock held. The oldest completion that was not read yet. */
static bool take_completion(struct dev_ctx *ctx, struct neuron_completion *c)
{
	struct neuron_completion *entry = (struct neuron_completion *)ctx->cq->ptr +
					  ctx->cq_head % CQ;
	uint32_t phase = ~(ctx->cq_head >> CQ_ORDER) & 1;

	if ((__atomic_load_n(&entry->phase, __ATOMIC_ACQUIRE) & 1) != phase)
		return false;
	*c = *entry;
	ctx->cq_head++;
	return true;
}

static void end_one(struct dev_ctx *ctx, const struct neuron_completion *c,
		    struct sim_job **job)
{
	*job = sim_job_list_pop(&ctx->queue.pushed);
	if (!*job)
		return;
	if ((*job)->seqno != c->seqno)
		sim_log(NEURON_CHIP_LOG_ERROR, "slot %u completed job %llu, %llu was next", ctx->slot,
			(unsigned long long)c->seqno, (unsigned long long)(*job)->seqno);
	ctx->head++;
	ctx->run_since = sim_now();
	ctx->progress = ctx->run_since;
	if (c->status) {
		ctx->faulted = true;
		ctx->fault = c->fault;
		ctx->fault.code = c->status;
	}
}

static void exec_drain(struct sim_queue *q)
{
	struct dev_ctx *ctx = to_ctx(q);
	struct neuron_completion c;
	struct sim_job *job;
	uint32_t told, now;

	pthread_mutex_lock(&q->lock);
	now = told = ctx->cq_head;
	while (!ctx->resetting && take_completion(ctx, &c)) {
		end_one(ctx, &c, &job);
		now = ctx->cq_head;
		pthread_mutex_unlock(&q->lock);
		if (job)
			sim_job_end(q, job, status_error(c.status));
		pthread_mutex_lock(&q->lock);
	}
	/* Two threads may drain: the last write must be the newest index. */
	while (told != now && !ctx->resetting) {
		pthread_mutex_unlock(&q->lock);
		write_slot(ctx, NEURON_SLOT_CQ_HEAD, now);
		pthread_mutex_lock(&q->lock);
		told = now;
		now = ctx->cq_head;
	}
	pthread_mutex_unlock(&q->lock);
	if (atomic_load(&sim_waiting))
		sim_service_kick();
}

static void exec_release(struct sim_queue *q, struct sim_job *job)
{
}

static const struct sim_queue_ops exec_ops = { exec_push, exec_drain, exec_release };

int sim_exec(struct dev_ctx *ctx, const struct dev_exec *exec, const struct dev_sync *sync)
{
	struct exec_job *job;

	if (exec->core_mask & ~ctx->core_mask || exec->flags & ~NEURON_JOB_FLAGS ||
	    exec->arg_count > NEURON_MAX_ARGS)
		return -EINVAL;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->exec = *exec;
	return sim_queue_submit(&ctx->queue, &job->job, sync);
}

bool sim_ctx_fault(struct dev_ctx *ctx, struct neuron_fault_record *fault)
{
	bool faulted;

	pthread_mutex_lock(&ctx->queue.lock);
	faulted = ctx->faulted;
	if (faulted)
		*fault = ctx->fault;
	pthread_mutex_unlock(&ctx->queue.lock);
	return faulted;
}

/* --- reset ----------------------------------------------------------------------- */

/* Ends the running job with @error and the queued ones with -ECANCELED. */
static void reset_slot(struct dev_ctx *ctx, int error, bool enable)
{
	struct sim_queue *q = &ctx->queue;
	struct sim_job_list ended;
	struct sim_job *first;

	sim_job_list_init(&ended);
	pthread_mutex_lock(&q->lock);
	if (ctx->resetting) {
		pthread_mutex_unlock(&q->lock);
		return;
	}
	ctx->resetting = true;
	q->paused = true;
	pthread_mutex_unlock(&q->lock);

	write_slot(ctx, NEURON_SLOT_CTRL, NEURON_SLOT_CTRL_RESET);
	while (read_slot(ctx, NEURON_SLOT_STATUS, 4) & NEURON_SLOT_STATUS_RESETTING)
		sched_yield();

	pthread_mutex_lock(&q->lock);
	while (q->running)	/* the thread that was in the doorbell */
		pthread_cond_wait(&q->idle, &q->lock);
	first = sim_job_list_pop(&q->pushed);
	while (q->pushed.head)
		sim_job_list_add(&ended, sim_job_list_pop(&q->pushed));
	memset(ctx->cq->ptr, 0, ctx->cq->size);
	ctx->tail = ctx->head = ctx->cq_head = 0;
	pthread_mutex_unlock(&q->lock);
	if (enable)
		program_slot(ctx);
	pthread_mutex_lock(&q->lock);
	ctx->resetting = false;
	q->paused = !enable;
	pthread_mutex_unlock(&q->lock);
	if (first)
		sim_job_end(q, first, error);
	sim_job_list_end(q, &ended, -ECANCELED);
	if (enable)
		sim_service_kick();
}

static uint64_t exec_timeout_ns(void)
{
	const char *text = getenv("NEURON_RT_EXEC_TIMEOUT");
	unsigned long value = text ? strtoul(text, NULL, 10) : 0;

	if (!value || value > EXEC_TIMEOUT_MAX_S)
		value = EXEC_TIMEOUT_S;
	return value * 1000000000ull;
}

/*
 * A job is ended when it retires nothing for the watchdog period, as by the
 * kernel; and when it outlives the execution timeout, because the thread that
 * should count that may be the one that is inside the job.
 */
bool sim_ctx_watchdog(struct dev_ctx *ctx, uint64_t now)
{
	uint64_t retired = read_slot(ctx, NEURON_SLOT_RETIRED, 8), since = 0, progress = 0;
	bool running = read_slot(ctx, NEURON_SLOT_STATUS, 4) & NEURON_SLOT_STATUS_RUNNING;
	bool busy, hung;

	pthread_mutex_lock(&ctx->queue.lock);
	busy = ctx->queue.pushed.head && !ctx->resetting;
	if (busy && (retired != ctx->retired || !running)) {
		ctx->retired = retired;
		ctx->progress = now;
	}
	if (!running)	/* it waits for a core that others share */
		ctx->run_since = now;
	since = ctx->run_since;
	progress = ctx->progress;
	pthread_mutex_unlock(&ctx->queue.lock);
	if (!busy || !running)
		return busy;
	hung = now > progress && now - progress > NO_PROGRESS_NS;
	if (!hung && (now < since || now - since <= exec_timeout_ns()))
		return true;
	sim_log(NEURON_CHIP_LOG_ERROR, "[ND %u] slot %u: job ended after %llu ms: %s",
		ctx->queue.chip->index, ctx->slot, (unsigned long long)(now - since) / 1000000,
		hung ? "no instruction retired in the watchdog period" :
		       "execution timeout, instructions were still retiring");
	reset_slot(ctx, -ETIMEDOUT, true);
	return true;
}

/* --- life ------------------------------------------------------------------------ */

/* Slots lock held. */
static int claim(struct sim_chip *chip, struct dev_ctx *ctx)
{
	unsigned int i;

	for (i = 0; i < chip->arch->cores; i++) {
		if (!(ctx->core_mask >> i & 1))
			continue;
		if ((chip->exclusive >> i & 1) || (!ctx->shared && chip->users[i]))
			return -EBUSY;
	}
	for (i = 0; i < chip->slots && chip->slot[i]; i++)
		;
	if (i == chip->slots)
		return -ENOSPC;
	ctx->slot = i;
	chip->slot[i] = ctx;
	if (!ctx->shared)
		chip->exclusive |= ctx->core_mask;
	for (i = 0; i < chip->arch->cores; i++)
		chip->users[i] += ctx->core_mask >> i & 1;
	return 0;
}

static void unclaim(struct sim_chip *chip, struct dev_ctx *ctx)
{
	unsigned int i;

	chip->slot[ctx->slot] = NULL;
	if (!ctx->shared)
		chip->exclusive &= ~ctx->core_mask;
	for (i = 0; i < chip->arch->cores; i++)
		chip->users[i] -= ctx->core_mask >> i & 1;
}

static void free_ctx(struct dev_ctx *ctx)
{
	struct sim_chip *chip = ctx->queue.chip;

	sim_queue_fini(&ctx->queue);
	sim_bus_free(&chip->bus, ctx->ring);
	sim_bus_free(&chip->bus, ctx->cq);
	free(ctx);
}

int sim_ctx_create(struct dev *base, uint32_t core_mask, bool shared, struct dev_ctx **out)
{
	struct sim_dev *dev = to_sim_dev(base);
	struct sim_chip *chip = dev->chip;
	struct dev_ctx *ctx;
	int ret;

	if (!core_mask || core_mask >> chip->arch->cores)
		return -EINVAL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	sim_queue_init(&ctx->queue, chip, &exec_ops);
	ctx->dev = dev;
	ctx->refs = 1;
	ctx->core_mask = core_mask;
	ctx->shared = shared;
	ctx->vector = chip->vectors > 1 ? 1 + __builtin_ctz(core_mask) % (chip->vectors - 1) : 0;
	ret = sim_bus_alloc(&chip->bus, RING * sizeof(struct neuron_job_desc), &ctx->ring);
	if (!ret)
		ret = sim_bus_alloc(&chip->bus, CQ * sizeof(struct neuron_completion), &ctx->cq);
	if (!ret) {
		pthread_mutex_lock(&chip->slots_lock);
		ret = claim(chip, ctx);
		pthread_mutex_unlock(&chip->slots_lock);
	}
	if (ret) {
		free_ctx(ctx);
		return ret;
	}
	program_slot(ctx);
	*out = ctx;
	return 0;
}

void sim_ctx_put(struct dev_ctx *ctx)
{
	struct sim_chip *chip = ctx->queue.chip;
	bool last;

	pthread_mutex_lock(&chip->slots_lock);
	last = !--ctx->refs;
	pthread_mutex_unlock(&chip->slots_lock);
	if (last)
		free_ctx(ctx);
}

unsigned int sim_ctxs_get(struct sim_chip *chip, unsigned int vector,
			  struct dev_ctx *ctxs[NEURON_MAX_SLOTS])
{
	unsigned int n = 0, i;

	pthread_mutex_lock(&chip->slots_lock);
	for (i = 0; i < chip->slots; i++) {
		struct dev_ctx *ctx = chip->slot[i];

		if (!ctx || (vector != ~0u && ctx->vector != vector))
			continue;
		ctx->refs++;
		ctxs[n++] = ctx;
	}
	pthread_mutex_unlock(&chip->slots_lock);
	return n;
}

void sim_ctx_destroy(struct dev_ctx *ctx)
{
	struct sim_queue *q;
	struct sim_job_list left;

	if (!ctx)
		return;
	q = &ctx->queue;
	sim_job_list_init(&left);
	pthread_mutex_lock(&q->lock);
	q->error = -ECANCELED;
	while (ctx->resetting) {	/* by the watchdog */
		pthread_mutex_unlock(&q->lock);
		sched_yield();
		pthread_mutex_lock(&q->lock);
	}
	while (q->waiting.head) {
		sim_job_list_add(&left, sim_job_list_pop(&q->waiting));
		atomic_fetch_sub(&sim_waiting, 1);
	}
	pthread_mutex_unlock(&q->lock);
	reset_slot(ctx, -ECANCELED, false);
	sim_job_list_end(q, &left, -ECANCELED);
	/* The slot may have another owner as soon as it is off the list. */
	pthread_mutex_lock(&q->chip->slots_lock);
	unclaim(q->chip, ctx);
	pthread_mutex_unlock(&q->chip->slots_lock);
	sim_ctx_put(ctx);
}
