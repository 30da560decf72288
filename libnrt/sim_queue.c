// SPDX-License-Identifier: MIT
/*
 * Jobs on their way to a ring: in order, each after the points it waits for.
 *
 * One thread at a time feeds a ring. A doorbell may run a whole job before it
 * returns, so it is rung without locks, and whoever comes meanwhile leaves the
 * job in the list.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

void sim_job_list_init(struct sim_job_list *list)
{
	list->head = NULL;
	list->tail = &list->head;
}

void sim_job_list_add(struct sim_job_list *list, struct sim_job *job)
{
	job->next = NULL;
	*list->tail = job;
	list->tail = &job->next;
}

struct sim_job *sim_job_list_pop(struct sim_job_list *list)
{
	struct sim_job *job = list->head;

	if (!job)
		return NULL;
	list->head = job->next;
	if (!list->head)
		list->tail = &list->head;
	return job;
}

int sim_queue_init(struct sim_queue *q, struct sim_chip *chip, const struct sim_queue_ops *ops)
{
	memset(q, 0, sizeof(*q));
	q->ops = ops;
	q->chip = chip;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->idle, NULL);
	sim_job_list_init(&q->waiting);
	sim_job_list_init(&q->pushed);
	return 0;
}

void sim_queue_fini(struct sim_queue *q)
{
	struct sim_job_list left;

	sim_job_list_init(&left);
	pthread_mutex_lock(&q->lock);
	while (q->waiting.head) {
		sim_job_list_add(&left, sim_job_list_pop(&q->waiting));
		atomic_fetch_sub(&sim_waiting, 1);
	}
	pthread_mutex_unlock(&q->lock);
	sim_job_list_end(q, &left, -ECANCELED);
	pthread_cond_destroy(&q->idle);
	pthread_mutex_destroy(&q->lock);
}

static void job_free(struct sim_queue *q, struct sim_job *job)
{
	q->ops->release(q, job);
	free(job->wait);
	free(job);
}

/* What the job holds is released before its point is signalled: the waiter may
 * unmap the memory at once. */
void sim_job_end(struct sim_queue *q, struct sim_job *job, int error)
{
	struct dev_point signal = job->signal;

	job_free(q, job);
	sim_point_complete(signal, error);
	if (atomic_load(&sim_waiting))
		sim_service_kick();
}

void sim_job_list_end(struct sim_queue *q, struct sim_job_list *list, int error)
{
	struct sim_job *job;

	while ((job = sim_job_list_pop(list)))
		sim_job_end(q, job, error);
}

static bool ready(const struct sim_job *job)
{
	unsigned int i;

	for (i = 0; i < job->wait_count; i++)
		if (!sim_point_reached(job->wait[i]))
			return false;
	return true;
}

static void ring(struct sim_queue *q, const struct sim_bell bell[2])
{
	unsigned int i;

	for (i = 0; i < 2 && bell[i].offset; i++)
		neuron_chip_write(q->chip->chip, bell[i].bar, bell[i].offset, bell[i].value, 4);
}

void sim_queue_run(struct sim_queue *q, const struct sim_job *mine)
{
	bool stop = false;

	pthread_mutex_lock(&q->lock);
	if (q->running) {
		pthread_mutex_unlock(&q->lock);
		return;
	}
	q->running = true;
	while (!stop && !q->paused && q->waiting.head && ready(q->waiting.head)) {
		struct sim_bell bell[2] = { 0 };
		struct sim_job *job = q->waiting.head;
		enum sim_push pushed = q->ops->push(q, job, bell);

		if (pushed == SIM_PUSH_FULL)
			break;
		if (pushed == SIM_PUSH_DONE) {
			sim_job_list_add(&q->pushed, sim_job_list_pop(&q->waiting));
			atomic_fetch_sub(&sim_waiting, 1);
			stop = job == mine;
		}
		pthread_mutex_unlock(&q->lock);
		ring(q, bell);
		q->ops->drain(q);
		pthread_mutex_lock(&q->lock);
	}
	q->running = false;
	/* The service thread goes on with what others left here meanwhile. */
	if (stop && q->waiting.head)
		sim_service_kick();
	pthread_cond_broadcast(&q->idle);
	pthread_mutex_unlock(&q->lock);
}

static int adopt_sync(struct sim_job *job, const struct dev_sync *sync)
{
	unsigned int i;

	if (!sync)
		return 0;
	for (i = 0; i < sync->wait_count; i++)
		if (!sim_point_submitted(sync->wait[i]))
			return -EINVAL;
	/* Points that are reached already need not be remembered. */
	for (i = 0; i < sync->wait_count; i++) {
		if (sim_point_reached(sync->wait[i]))
			continue;
		if (!job->wait) {
			job->wait = calloc(sync->wait_count, sizeof(*job->wait));
			if (!job->wait)
				return -ENOMEM;
		}
		job->wait[job->wait_count++] = sync->wait[i];
	}
	job->signal = sync->signal;
	return sim_point_submit(job->signal);
}

int sim_queue_submit(struct sim_queue *q, struct sim_job *job, const struct dev_sync *sync)
{
	int ret = adopt_sync(job, sync);

	if (ret) {
		job_free(q, job);
		return ret;
	}
	pthread_mutex_lock(&q->lock);
	ret = q->error;
	if (!ret) {
		/* Before the list is looked at: see sim_job_end(). */
		atomic_fetch_add(&sim_waiting, 1);
		sim_job_list_add(&q->waiting, job);
	}
	pthread_mutex_unlock(&q->lock);
	if (ret) {
		sim_point_cancel(job->signal);
		job_free(q, job);
		return ret;
	}
	sim_queue_run(q, job);
	return 0;
}
