// SPDX-License-Identifier: MIT
/* Timelines: what a DRM timeline syncobj is for the kernel driver. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

#define MAX_ERRORS	64

struct pending {
	uint64_t value;
	int error;
	bool done;
};

/* The points (from, to] ended with error. */
struct point_error {
	uint64_t from;
	uint64_t to;
	int error;
};

/**
 * struct dev_timeline - counter that jobs signal
 * @reached: every point up to it is signalled; read without the lock
 * @submitted: largest point that a job signals
 * @pending: submitted and not reached, sorted by value
 * @errors: the last MAX_ERRORS points that failed
 */
struct dev_timeline {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	_Atomic uint64_t reached;
	uint64_t submitted;
	unsigned int waiters;
	struct pending *pending;
	size_t count;
	size_t cap;
	struct point_error errors[MAX_ERRORS];
	unsigned int error_count;
};

int sim_timeline_create(struct dev *dev, struct dev_timeline **out)
{
	struct dev_timeline *tl = calloc(1, sizeof(*tl));
	pthread_condattr_t attr;

	if (!tl)
		return -ENOMEM;
	pthread_mutex_init(&tl->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&tl->cond, &attr);
	pthread_condattr_destroy(&attr);
	*out = tl;
	return 0;
}

void sim_timeline_destroy(struct dev_timeline *tl)
{
	if (!tl)
		return;
	/* A completing thread may still be leaving the critical section. */
	pthread_mutex_lock(&tl->lock);
	pthread_mutex_unlock(&tl->lock);
	pthread_cond_destroy(&tl->cond);
	pthread_mutex_destroy(&tl->lock);
	free(tl->pending);
	free(tl);
}

int sim_point_submit(struct dev_point point)
{
	struct dev_timeline *tl = point.timeline;
	size_t i;

	if (!tl)
		return 0;
	if (!point.value)
		return -EINVAL;
	pthread_mutex_lock(&tl->lock);
	if (tl->count == tl->cap) {
		size_t cap = tl->cap ? 2 * tl->cap : 8;
		struct pending *grown = realloc(tl->pending, cap * sizeof(*grown));

		if (!grown) {
			pthread_mutex_unlock(&tl->lock);
			return -ENOMEM;
		}
		tl->pending = grown;
		tl->cap = cap;
	}
	for (i = tl->count; i > 0 && tl->pending[i - 1].value > point.value; i--)
		tl->pending[i] = tl->pending[i - 1];
	tl->pending[i] = (struct pending){ .value = point.value };
	tl->count++;
	if (tl->submitted < point.value)
		tl->submitted = point.value;
	pthread_mutex_unlock(&tl->lock);
	return 0;
}

static void note_error(struct dev_timeline *tl, uint64_t from, uint64_t to, int error)
{
	if (tl->error_count == MAX_ERRORS) {
		memmove(tl->errors, tl->errors + 1, (MAX_ERRORS - 1) * sizeof(*tl->errors));
		tl->error_count--;
	}
	tl->errors[tl->error_count++] = (struct point_error){ from, to, error };
}

/* Points are reached in order, whatever the order in which their jobs end. */
static bool retire(struct dev_timeline *tl)
{
	uint64_t reached = tl->reached;
	size_t n;

	for (n = 0; n < tl->count && tl->pending[n].done; n++) {
		struct pending *p = &tl->pending[n];

		if (p->error)
			note_error(tl, p->value > reached ? reached : p->value - 1, p->value,
				   p->error);
		if (p->value > reached)
			reached = p->value;
	}
	if (!n)
		return false;
	tl->count -= n;
	memmove(tl->pending, tl->pending + n, tl->count * sizeof(*tl->pending));
	atomic_store(&tl->reached, reached);
	return true;
}

void sim_point_complete(struct dev_point point, int error)
{
	struct dev_timeline *tl = point.timeline;
	bool wake = false;
	size_t i;

	if (!tl)
		return;
	pthread_mutex_lock(&tl->lock);
	for (i = 0; i < tl->count; i++) {
		if (tl->pending[i].value != point.value || tl->pending[i].done)
			continue;
		tl->pending[i].done = true;
		tl->pending[i].error = error;
		wake = retire(tl);
		break;
	}
	if (wake && tl->waiters)
		pthread_cond_broadcast(&tl->cond);
	pthread_mutex_unlock(&tl->lock);
}

void sim_point_cancel(struct dev_point point)
{
	struct dev_timeline *tl = point.timeline;
	size_t i;

	if (!tl)
		return;
	pthread_mutex_lock(&tl->lock);
	for (i = tl->count; i > 0; i--)
		if (tl->pending[i - 1].value == point.value && !tl->pending[i - 1].done)
			break;
	if (i) {
		memmove(&tl->pending[i - 1], &tl->pending[i],
			(tl->count - i) * sizeof(*tl->pending));
		tl->count--;
	}
	tl->submitted = tl->count ? tl->pending[tl->count - 1].value : tl->reached;
	if (retire(tl))
		pthread_cond_broadcast(&tl->cond);
	pthread_mutex_unlock(&tl->lock);
}

bool sim_point_submitted(struct dev_point point)
{
	struct dev_timeline *tl = point.timeline;
	bool submitted;

	if (!tl || sim_point_reached(point))
		return true;
	pthread_mutex_lock(&tl->lock);
	submitted = tl->submitted >= point.value;
	pthread_mutex_unlock(&tl->lock);
	return submitted;
}

bool sim_point_reached(struct dev_point point)
{
	return !point.timeline || atomic_load(&point.timeline->reached) >= point.value;
}

static int error_of(struct dev_timeline *tl, uint64_t value)
{
	unsigned int i;

	for (i = tl->error_count; i > 0; i--)
		if (tl->errors[i - 1].from < value && value <= tl->errors[i - 1].to)
			return tl->errors[i - 1].error;
	return 0;
}

uint64_t sim_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

int sim_wait(struct dev_point point, int64_t timeout_ns)
{
	struct dev_timeline *tl = point.timeline;
	struct timespec until = { 0 };
	int ret = 0;

	if (!tl)
		return 0;
	if (timeout_ns > 0) {
		uint64_t end = sim_now() + (uint64_t)timeout_ns;

		until.tv_sec = end / 1000000000u;
		until.tv_nsec = end % 1000000000u;
	}
	pthread_mutex_lock(&tl->lock);
	tl->waiters++;
	while (tl->reached < point.value && !ret) {
		if (timeout_ns < 0)
			pthread_cond_wait(&tl->cond, &tl->lock);
		else if (!timeout_ns)
			ret = ETIMEDOUT;
		else
			ret = pthread_cond_timedwait(&tl->cond, &tl->lock, &until);
	}
	tl->waiters--;
	if (tl->reached >= point.value)
		ret = error_of(tl, point.value);
	else
		ret = -ETIME;
	pthread_mutex_unlock(&tl->lock);
	return ret;
}
