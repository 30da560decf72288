// SPDX-License-Identifier: MIT
/*
 * Worker threads, shared by all chips of the process and started when there is
 * work. Jobs and UDMA have threads of their own: a job may loop for ever, and a
 * copy must not wait for it. For the same reason a job that has its cores always
 * gets a thread (up to a limit): on the real chip it would run, too, and the
 * host's scheduler shares the CPUs out.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chip.h"

#define MAX_THREADS	64

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct chip_pool_work *head, **tail;
	unsigned int queued;
	unsigned int idle;
	unsigned int threads;
	unsigned int limit;
	bool stop;
	pthread_t thread[MAX_THREADS];
};

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static struct pool pools[CHIP_POOL_CLASSES] = {
	[CHIP_POOL_JOB] = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
	},
	[CHIP_POOL_UDMA] = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
	},
};

static void *worker(void *arg)
{
	struct pool *p = arg;
	struct chip_pool_work *w;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->head && !p->stop) {
			p->idle++;
			pthread_cond_wait(&p->wake, &p->lock);
			p->idle--;
		}
		w = p->head;
		if (!w)
			break;
		p->head = w->next;
		if (!p->head)
			p->tail = &p->head;
		p->queued--;
		pthread_mutex_unlock(&p->lock);
		w->fn(w);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals belong to the threads of whoever hosts the chip. */
static bool start_thread(struct pool *p)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&p->thread[p->threads], NULL, worker, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return false;
	p->threads++;
	return true;
}

/* --- fork: the child has none of the threads ------------------------------------- */

static void before_fork(void)
{
	unsigned int i;

	pthread_mutex_lock(&users_lock);
	for (i = 0; i < CHIP_POOL_CLASSES; i++)
		pthread_mutex_lock(&pools[i].lock);
}

static void after_fork(void)
{
	unsigned int i;

	for (i = 0; i < CHIP_POOL_CLASSES; i++)
		pthread_mutex_unlock(&pools[i].lock);
	pthread_mutex_unlock(&users_lock);
}

/* Chips made before belong to the parent; new ones start new threads. */
static void in_child(void)
{
	unsigned int i;

	for (i = 0; i < CHIP_POOL_CLASSES; i++) {
		pthread_cond_init(&pools[i].wake, NULL);
		pools[i].idle = 0;
		pools[i].threads = 0;
	}
	users = 0;
	after_fork();
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

void chip_pool_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int i;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&users_lock);
	if (!users++) {
		for (i = 0; i < CHIP_POOL_CLASSES; i++) {
			pools[i].head = NULL;
			pools[i].tail = &pools[i].head;
			pools[i].queued = 0;
			pools[i].stop = false;
		}
		pools[CHIP_POOL_JOB].limit = MAX_THREADS;
		pools[CHIP_POOL_UDMA].limit = cpus < 2 ? 2 : cpus > 4 ? 4 : (unsigned int)cpus;
	}
	pthread_mutex_unlock(&users_lock);
}

static void stop_pool(struct pool *p)
{
	unsigned int i;

	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (i = 0; i < p->threads; i++)
		pthread_join(p->thread[i], NULL);
	p->threads = 0;
}

void chip_pool_put(void)
{
	unsigned int i;

	pthread_mutex_lock(&users_lock);
	if (!--users) {
		for (i = 0; i < CHIP_POOL_CLASSES; i++)
			stop_pool(&pools[i]);
	}
	pthread_mutex_unlock(&users_lock);
}

void chip_pool_submit(enum chip_pool_class cls, struct chip_pool_work *work)
{
	struct pool *p = &pools[cls];

	pthread_mutex_lock(&p->lock);
	if (p->idle <= p->queued && p->threads < p->limit && !start_thread(p) && !p->threads) {
		pthread_mutex_unlock(&p->lock);
		work->fn(work);
		return;
	}
	work->next = NULL;
	*p->tail = work;
	p->tail = &work->next;
	p->queued++;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}
