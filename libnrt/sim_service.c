// SPDX-License-Identifier: MIT
/*
 * Two threads per process for what no caller can do. The runner starts jobs whose
 * points are reached by a thread of a chip. The watchdog ends jobs that hang: the
 * thread that submitted one may be inside it, because the chip runs jobs on the
 * thread that rings. Both sleep without a time limit when nothing runs.
 */
#include <errno.h>
#include <time.h>

#include "sim.h"

#define WATCH_PERIOD_NS		250000000ull
#define WATCH_LINGER_NS		2000000000ull

static struct {
	pthread_mutex_t lock;
	pthread_cond_t run_cond;
	pthread_cond_t watch_cond;
	pthread_t runner;
	pthread_t watchdog;
	bool started;
	bool stop;
	bool kicked;
	bool watched;		/* a job was started while the watchdog slept */
	atomic_bool asleep;	/* the watchdog, without a time limit */
} service = { .lock = PTHREAD_MUTEX_INITIALIZER };

atomic_uint sim_waiting;

static void run_chip(struct sim_chip *chip)
{
	struct dev_ctx *ctxs[NEURON_MAX_SLOTS];
	unsigned int count, i;

	sim_queue_run(&chip->udma.queue, NULL);
	count = sim_ctxs_get(chip, ~0u, ctxs);
	for (i = 0; i < count; i++) {
		sim_queue_run(sim_ctx_queue(ctxs[i]), NULL);
		sim_ctx_put(ctxs[i]);
	}
}

static bool watch_chip(struct sim_chip *chip)
{
	struct dev_ctx *ctxs[NEURON_MAX_SLOTS];
	unsigned int count = sim_ctxs_get(chip, ~0u, ctxs), i;
	bool busy = false;

	for (i = 0; i < count; i++) {
		busy |= sim_ctx_watchdog(ctxs[i], sim_now());
		sim_ctx_put(ctxs[i]);
	}
	return busy;
}

static void run_all(void)
{
	struct sim_chip *chips[SIM_MAX_CHIPS];
	unsigned int count = sim_chips_get(chips, SIM_MAX_CHIPS), i;

	for (i = 0; i < count; i++) {
		run_chip(chips[i]);
		sim_chip_put(chips[i]);
	}
}

static bool watch_all(void)
{
	struct sim_chip *chips[SIM_MAX_CHIPS];
	unsigned int count = sim_chips_get(chips, SIM_MAX_CHIPS), i;
	bool busy = false;

	for (i = 0; i < count; i++) {
		busy |= watch_chip(chips[i]);
		sim_chip_put(chips[i]);
	}
	return busy;
}

static void *runner_main(void *arg)
{
	pthread_mutex_lock(&service.lock);
	while (!service.stop) {
		if (!service.kicked) {
			pthread_cond_wait(&service.run_cond, &service.lock);
			continue;
		}
		service.kicked = false;
		pthread_mutex_unlock(&service.lock);
		run_all();
		pthread_mutex_lock(&service.lock);
	}
	pthread_mutex_unlock(&service.lock);
	return NULL;
}

/* Lock held on entry and exit. */
static void watchdog_wait(uint64_t idle_ns)
{
	struct timespec until;
	uint64_t end = sim_now() + WATCH_PERIOD_NS;
	bool busy;

	if (idle_ns < WATCH_LINGER_NS) {
		until = (struct timespec){ end / 1000000000u, end % 1000000000u };
		pthread_cond_timedwait(&service.watch_cond, &service.lock, &until);
		return;
	}
	/* A job that was pushed before @asleep was set is seen by this look. */
	service.watched = false;
	atomic_store(&service.asleep, true);
	pthread_mutex_unlock(&service.lock);
	busy = watch_all();
	pthread_mutex_lock(&service.lock);
	while (!busy && !service.watched && !service.stop)
		pthread_cond_wait(&service.watch_cond, &service.lock);
	atomic_store(&service.asleep, false);
}

static void *watchdog_main(void *arg)
{
	uint64_t last_busy = sim_now();
	bool slept;

	pthread_mutex_lock(&service.lock);
	while (!service.stop) {
		slept = sim_now() - last_busy >= WATCH_LINGER_NS;
		watchdog_wait(sim_now() - last_busy);
		if (service.stop)
			break;
		pthread_mutex_unlock(&service.lock);
		if (watch_all() || slept)
			last_busy = sim_now();
		pthread_mutex_lock(&service.lock);
	}
	pthread_mutex_unlock(&service.lock);
	return NULL;
}

/* Lock held. */
static int start_threads(void)
{
	pthread_condattr_t attr;
	int ret;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&service.watch_cond, &attr);
	pthread_cond_init(&service.run_cond, &attr);
	pthread_condattr_destroy(&attr);
	service.stop = false;
	ret = pthread_create(&service.runner, NULL, runner_main, NULL);
	if (ret)
		return -ret;
	ret = pthread_create(&service.watchdog, NULL, watchdog_main, NULL);
	if (!ret) {
		service.started = true;
		return 0;
	}
	service.stop = true;
	pthread_cond_signal(&service.run_cond);
	pthread_mutex_unlock(&service.lock);
	pthread_join(service.runner, NULL);
	pthread_mutex_lock(&service.lock);
	return -ret;
}

int sim_service_start(void)
{
	int ret = 0;

	pthread_mutex_lock(&service.lock);
	if (!service.started)
		ret = start_threads();
	pthread_mutex_unlock(&service.lock);
	return ret;
}

void sim_service_stop(void)
{
	pthread_mutex_lock(&service.lock);
	if (!service.started) {
		pthread_mutex_unlock(&service.lock);
		return;
	}
	service.stop = true;
	service.started = false;
	pthread_cond_signal(&service.run_cond);
	pthread_cond_signal(&service.watch_cond);
	pthread_mutex_unlock(&service.lock);
	pthread_join(service.runner, NULL);
	pthread_join(service.watchdog, NULL);
	pthread_cond_destroy(&service.run_cond);
	pthread_cond_destroy(&service.watch_cond);
}

void sim_service_kick(void)
{
	pthread_mutex_lock(&service.lock);
	service.kicked = true;
	if (service.started)
		pthread_cond_signal(&service.run_cond);
	pthread_mutex_unlock(&service.lock);
}

/* Called for every job: cheap while the watchdog wakes by itself. */
void sim_service_watch(void)
{
	if (!atomic_load(&service.asleep))
		return;
	pthread_mutex_lock(&service.lock);
	service.watched = true;
	if (service.started)
		pthread_cond_signal(&service.watch_cond);
	pthread_mutex_unlock(&service.lock);
}
