// SPDX-License-Identifier: MIT
/*
 * COPY and FILL of an in-process chip: queue 0 of its first H2T engine, rings of
 * physical addresses as the public driver builds them (udma_m2m.c).
 *
 * A job ends with a descriptor pair that writes the job's last descriptor number
 * into a completion word and raises vector 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

#define RING		16384u		/* descriptors of each side */
/* The chip counts a batch as done a little after its bytes are. */
#define RING_SLACK	256u
#define INLINE_MAX	(1u << 20)	/* up to this a copy runs on the calling thread */
#define INLINE_BELL	65536u		/* what a doorbell does before it returns */
#define FILL_BYTES	65536u
#define CHUNK		NEURON_UDMA_DESC_MAX_LEN

/**
 * struct copy_job - COPY or FILL
 * @dst, @src: places; @dst.region or @src.region: pinned user memory of this job
 * @size: bytes
 * @done: bytes that are in the ring
 * @fill: @src is @src.region's FILL_BYTES again and again
 */
struct copy_place {
	struct sim_bo *bo;
	uint64_t offset;
	struct sim_region *region;
};

struct copy_job {
	struct sim_job job;
	struct copy_place dst;
	struct copy_place src;
	uint64_t size;
	uint64_t done;
	bool fill;
	void *pattern;
};

/* --- the ring ------------------------------------------------------------------- */

static struct neuron_udma_desc *desc(struct sim_region *ring, uint32_t n)
{
	return (struct neuron_udma_desc *)ring->ptr + n % RING;
}

static uint32_t ring_id(uint32_t n)
{
	return (NEURON_UDMA_RING_ID_INIT + n / RING) & 3;
}

static void put_pair(struct sim_udma *u, uint64_t dst, uint64_t src, uint32_t len, bool last)
{
	uint32_t n = u->tail++, bits = (len & NEURON_UDMA_DESC_LEN_MASK) |
				       ring_id(n) << NEURON_UDMA_DESC_RING_ID_SHIFT;
	struct neuron_udma_desc *s = desc(u->src_ring, n), *d = desc(u->dst_ring, n);

	s->flags = bits | NEURON_UDMA_DESC_FIRST | NEURON_UDMA_DESC_LAST;
	s->meta = NEURON_UDMA_META_COPY | (last ? NEURON_UDMA_META_WRITE_BARRIER : 0);
	s->addr = src;
	d->flags = bits | (last ? NEURON_UDMA_DESC_INT_EN : 0);
	d->meta = 0;
	d->addr = dst;
}

/* Lock held. Descriptors that can be written. */
static uint32_t room(struct sim_chip *chip)
{
	struct sim_udma *u = &chip->udma;
	uint32_t head;

	if (u->tail - u->done > RING / 2) {
		head = neuron_chip_read(chip->chip, NEURON_BAR_APB, u->base + NEURON_UDMA_M2S +
					NEURON_UDMA_Q(0) + NEURON_UDMA_Q_DRHP, 4);
		u->done += ((head & NEURON_UDMA_IDX_MASK) - u->done) % RING;
	}
	return RING - RING_SLACK - (u->tail - u->done);
}

/* Address of byte @at of the copy; *@len is cut to what is contiguous there. */
static uint64_t resolve(struct sim_chip *chip, const struct copy_place *place, uint64_t at,
			uint64_t *len)
{
	uint64_t offset = place->offset + at;
	unsigned int i;

	if (place->region)
		return sim_host_dpa(chip, place->region->bus + offset);
	if (place->bo->region)
		return sim_host_dpa(chip, place->bo->region->bus + offset);
	for (i = 0; offset >= place->bo->extent[i].size; i++)
		offset -= place->bo->extent[i].size;
	if (*len > place->bo->extent[i].size - offset)
		*len = place->bo->extent[i].size - offset;
	return sim_hbm_dpa(chip, place->bo->extent[i].stack, place->bo->extent[i].offset + offset);
}

/* One descriptor pair of the job. */
static uint32_t put_chunk(struct sim_chip *chip, struct copy_job *job)
{
	uint64_t len = job->size - job->done, dst, src;

	if (len > CHUNK)
		len = CHUNK;
	dst = resolve(chip, &job->dst, job->done, &len);
	src = resolve(chip, &job->src, job->fill ? 0 : job->done, &len);
	put_pair(&chip->udma, dst, src, len, false);
	job->done += len;
	return len;
}

static uint64_t word_bus(const struct sim_udma *u, uint32_t index)
{
	return u->words->bus + 8ull * index;
}

/* Word 0 receives the number; the source words follow by ring entry. */
static void put_marker(struct sim_chip *chip, struct copy_job *job)
{
	struct sim_udma *u = &chip->udma;
	uint32_t index = 1 + u->tail % RING;

	job->job.seqno = ++u->seqno;
	__atomic_store_n((uint64_t *)u->words->ptr + index, job->job.seqno, __ATOMIC_RELEASE);
	put_pair(u, sim_host_dpa(chip, word_bus(u, 0)), sim_host_dpa(chip, word_bus(u, index)),
		 8, true);
}

static struct sim_bell doorbell(const struct sim_udma *u, uint32_t side, uint32_t count)
{
	return (struct sim_bell){ NEURON_BAR_APB,
				  u->base + side + NEURON_UDMA_Q(0) + NEURON_UDMA_Q_DRTP_INC, count };
}

static enum sim_push copy_push(struct sim_queue *q, struct sim_job *base, struct sim_bell bell[2])
{
	struct copy_job *job = (struct copy_job *)base;
	struct sim_udma *u = &q->chip->udma;
	uint64_t bytes = 0, limit = job->size <= INLINE_MAX ? INLINE_BELL : UINT64_MAX;
	uint32_t first = u->tail, left = room(q->chip);
	enum sim_push ret = SIM_PUSH_MORE;

	if (left < 2)
		return SIM_PUSH_FULL;
	for (; job->done < job->size && bytes < limit && left >= 2; left--)
		bytes += put_chunk(q->chip, job);
	if (job->done == job->size) {
		put_marker(q->chip, job);
		ret = SIM_PUSH_DONE;
	} else {
		/* The rest is pushed when this raises the interrupt. */
		desc(u->dst_ring, u->tail - 1)->flags |= NEURON_UDMA_DESC_INT_EN;
	}
	bell[0] = doorbell(u, NEURON_UDMA_S2M, u->tail - first);
	bell[1] = doorbell(u, NEURON_UDMA_M2S, u->tail - first);
	return ret;
}

static void copy_drain(struct sim_queue *q)
{
	struct sim_udma *u = &q->chip->udma;
	struct sim_job_list ended;
	uint64_t seqno;

	sim_job_list_init(&ended);
	pthread_mutex_lock(&q->lock);
	seqno = __atomic_load_n((uint64_t *)u->words->ptr, __ATOMIC_ACQUIRE);
	while (q->pushed.head && q->pushed.head->seqno <= seqno)
		sim_job_list_add(&ended, sim_job_list_pop(&q->pushed));
	pthread_mutex_unlock(&q->lock);
	sim_job_list_end(q, &ended, 0);
	/* A copy larger than the ring goes on. */
	if (atomic_load(&sim_waiting))
		sim_service_kick();
}

static void copy_release(struct sim_queue *q, struct sim_job *base)
{
	struct copy_job *job = (struct copy_job *)base;

	sim_bus_remove(&q->chip->bus, job->dst.region);
	if (job->src.region != q->chip->udma.zero)
		sim_bus_remove(&q->chip->bus, job->src.region);
	free(job->pattern);
}

static const struct sim_queue_ops copy_ops = { copy_push, copy_drain, copy_release };

void sim_udma_abort(struct sim_chip *chip)
{
	struct sim_queue *q = &chip->udma.queue;
	struct sim_job_list ended;

	sim_log(NEURON_CHIP_LOG_ERROR, "[ND %u] DMA engine %u is in an abort state", chip->index,
		chip->udma.engine);
	sim_job_list_init(&ended);
	pthread_mutex_lock(&q->lock);
	q->error = -EIO;
	q->paused = true;
	while (q->pushed.head)
		sim_job_list_add(&ended, sim_job_list_pop(&q->pushed));
	while (q->waiting.head) {
		sim_job_list_add(&ended, sim_job_list_pop(&q->waiting));
		atomic_fetch_sub(&sim_waiting, 1);
	}
	pthread_mutex_unlock(&q->lock);
	sim_job_list_end(q, &ended, -EIO);
}

/* --- set-up ------------------------------------------------------------------------ */

static void write_reg(struct sim_chip *chip, uint32_t offset, uint32_t value)
{
	neuron_chip_write(chip->chip, NEURON_BAR_APB, chip->udma.base + offset, value, 4);
}

/* The public driver's order of writes. */
static void init_side(struct sim_chip *chip, uint32_t side, struct sim_region *ring)
{
	uint64_t base = sim_host_dpa(chip, ring->bus);
	uint32_t q = side + NEURON_UDMA_Q(0);
	bool m2s = side == NEURON_UDMA_M2S;

	if (m2s)
		write_reg(chip, q + NEURON_UDMA_M2S_Q_RLIMIT, 3);
	write_reg(chip, q + NEURON_UDMA_Q_CFG, NEURON_UDMA_Q_CFG_RESET_VALUE);
	write_reg(chip, q + (m2s ? NEURON_UDMA_M2S_Q_SW_CTRL : NEURON_UDMA_S2M_Q_SW_CTRL),
		  NEURON_UDMA_Q_SW_CTRL_RST);
	write_reg(chip, q + NEURON_UDMA_Q_DRBP_LO, (uint32_t)base);
	write_reg(chip, q + NEURON_UDMA_Q_DRBP_HI, base >> 32);
	write_reg(chip, q + NEURON_UDMA_Q_DRL, RING);
	write_reg(chip, q + (m2s ? NEURON_UDMA_M2S_Q_COMP_CFG : NEURON_UDMA_S2M_Q_COMP_CFG), 0);
	write_reg(chip, q + NEURON_UDMA_Q_CFG, NEURON_UDMA_Q_CFG_RESET_VALUE |
		  NEURON_UDMA_Q_CFG_EN_PREF | NEURON_UDMA_Q_CFG_EN_SCHED);
}

int sim_udma_init(struct sim_chip *chip)
{
	struct sim_udma *u = &chip->udma;
	int ret;

	u->engine = chip->arch->udma_engines - chip->arch->h2t_engines;
	u->base = chip->arch->nc_version == 2 ? NEURON_V2_H2T_UDMA(0) : NEURON_V3_H2T_UDMA(0);
	ret = sim_queue_init(&u->queue, chip, &copy_ops);
	if (!ret)
		ret = sim_bus_alloc(&chip->bus, RING * sizeof(struct neuron_udma_desc), &u->src_ring);
	if (!ret)
		ret = sim_bus_alloc(&chip->bus, RING * sizeof(struct neuron_udma_desc), &u->dst_ring);
	if (!ret)
		ret = sim_bus_alloc(&chip->bus, 8 * (RING + 1), &u->words);
	if (!ret)
		ret = sim_bus_alloc(&chip->bus, FILL_BYTES, &u->zero);
	if (ret)
		return ret;
	chip->can_populate = !madvise(u->zero->ptr, FILL_BYTES, MADV_POPULATE_READ);
	write_reg(chip, NEURON_UDMA_M2S_CFG_LEN, 0x010fffff);
	write_reg(chip, NEURON_UDMA_STREAM_CFG, 0x102);
	init_side(chip, NEURON_UDMA_M2S, u->src_ring);
	init_side(chip, NEURON_UDMA_S2M, u->dst_ring);
	neuron_chip_write(chip->chip, NEURON_BAR_EXEC, NEURON_EXEC_UDMA_IRQ(u->engine, 0),
			  NEURON_EXEC_UDMA_IRQ_EN, 4);
	return 0;
}

void sim_udma_fini(struct sim_chip *chip)
{
	struct sim_udma *u = &chip->udma;

	if (u->queue.ops) {
		copy_drain(&u->queue);
		sim_queue_fini(&u->queue);
	}
	sim_bus_free(&chip->bus, u->src_ring);
	sim_bus_free(&chip->bus, u->dst_ring);
	sim_bus_free(&chip->bus, u->words);
	sim_bus_free(&chip->bus, u->zero);
}

/* --- operations ------------------------------------------------------------------- */

/* What pinning does for the kernel: bad pointers are found before the chip runs. */
static int check_user(struct sim_chip *chip, void *ptr, size_t size, bool write)
{
	uintptr_t start = (uintptr_t)ptr & ~(SIM_PAGE - 1), end;

	if (!ptr || __builtin_add_overflow((uintptr_t)ptr, size, &end) || end > (1ull << 47))
		return -EFAULT;
	end = (end + SIM_PAGE - 1) & ~(SIM_PAGE - 1);
	/* Kernels before 5.14 do not know it: then bad pointers are not found. */
	if (chip->can_populate &&
	    madvise((void *)start, end - start, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return -EFAULT;
	return 0;
}

static int pin(struct sim_chip *chip, struct copy_place *place, const struct dev_loc *loc,
	       size_t size, bool write)
{
	int ret;

	if (loc->bo) {
		if (loc->offset > loc->bo->size || size > loc->bo->size - loc->offset)
			return -EINVAL;
		place->bo = to_sim_bo(loc->bo);
		place->offset = loc->offset;
		return 0;
	}
	ret = check_user(chip, loc->ptr, size, write);
	if (ret)
		return ret;
	return sim_bus_add(&chip->bus, loc->ptr, size, write, &place->region);
}

int sim_copy(struct dev *dev, struct dev_loc dst, struct dev_loc src, size_t size,
	     const struct dev_sync *sync)
{
	struct sim_chip *chip = to_sim_dev(dev)->chip;
	struct copy_job *job;
	int ret;

	if (!size || (!dst.bo && !src.bo))
		return -EINVAL;
	if ((dst.bo && dst.bo->dev != dev) || (src.bo && src.bo->dev != dev))
		return -EINVAL;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->size = size;
	ret = pin(chip, &job->dst, &dst, size, true);
	if (!ret)
		ret = pin(chip, &job->src, &src, size, false);
	if (ret) {
		copy_release(&chip->udma.queue, &job->job);
		free(job);
		return ret;
	}
	return sim_queue_submit(&chip->udma.queue, &job->job, sync);
}

static int make_pattern(struct sim_chip *chip, struct copy_job *job, uint32_t pattern)
{
	size_t bytes = job->size < FILL_BYTES ? job->size : FILL_BYTES, i;
	uint32_t *word;

	if (!pattern) {
		job->src.region = chip->udma.zero;
		return 0;
	}
	word = malloc(bytes);
	if (!word)
		return -ENOMEM;
	for (i = 0; i < bytes / 4; i++)
		word[i] = pattern;
	job->pattern = word;
	return sim_bus_add(&chip->bus, word, bytes, false, &job->src.region);
}

int sim_fill(struct dev *dev, struct dev_bo *bo, size_t offset, size_t size,
	     uint32_t pattern, const struct dev_sync *sync)
{
	struct sim_chip *chip = to_sim_dev(dev)->chip;
	struct copy_job *job;
	int ret;

	if (!bo || bo->dev != dev || !size || size % 4)
		return -EINVAL;
	if (offset > bo->size || size > bo->size - offset)
		return -EINVAL;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->size = size;
	job->fill = true;
	job->dst.bo = to_sim_bo(bo);
	job->dst.offset = offset;
	ret = make_pattern(chip, job, pattern);
	if (ret) {
		copy_release(&chip->udma.queue, &job->job);
		free(job);
		return ret;
	}
	return sim_queue_submit(&chip->udma.queue, &job->job, sync);
}
