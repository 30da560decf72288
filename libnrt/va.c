// SPDX-License-Identifier: MIT
/* Device virtual addresses: first fit in a sorted list of holes. */
#include <errno.h>
#include <stdlib.h>

#include "va.h"

static struct va_range *range_new(uint64_t start, uint64_t size)
{
	struct va_range *r = malloc(sizeof(*r));

	if (r)
		*r = (struct va_range){ .start = start, .size = size };
	return r;
}

int va_init(struct va_space *space, uint64_t start, uint64_t size)
{
	struct va_range *all = range_new(start, size);

	pthread_mutex_init(&space->lock, NULL);
	TAILQ_INIT(&space->free);
	if (!all)
		return -ENOMEM;
	TAILQ_INSERT_HEAD(&space->free, all, link);
	return 0;
}

void va_fini(struct va_space *space)
{
	struct va_range *r;

	while ((r = TAILQ_FIRST(&space->free))) {
		TAILQ_REMOVE(&space->free, r, link);
		free(r);
	}
	pthread_mutex_destroy(&space->lock);
}

/* Take [@va, @va + @size) out of a hole: up to two holes are left. */
static int cut(struct va_space *space, struct va_range *hole, uint64_t va, uint64_t size)
{
	uint64_t before = va - hole->start, after = hole->size - before - size;
	struct va_range *rest;

	if (before && after) {
		rest = range_new(va + size, after);
		if (!rest)
			return -ENOMEM;
		TAILQ_INSERT_AFTER(&space->free, hole, rest, link);
		hole->size = before;
	} else if (before) {
		hole->size = before;
	} else if (after) {
		hole->start += size;
		hole->size = after;
	} else {
		TAILQ_REMOVE(&space->free, hole, link);
		free(hole);
	}
	return 0;
}

int va_alloc(struct va_space *space, uint64_t size, uint64_t align, uint64_t *va)
{
	struct va_range *hole;
	int ret = -ENOSPC;

	pthread_mutex_lock(&space->lock);
	TAILQ_FOREACH(hole, &space->free, link) {
		uint64_t pad = -hole->start & (align - 1);

		if (pad > hole->size || size > hole->size - pad)
			continue;
		*va = hole->start + pad;
		ret = cut(space, hole, *va, size);
		break;
	}
	pthread_mutex_unlock(&space->lock);
	return ret;
}

/* Join @r with the hole behind it when they touch. */
static void join(struct va_space *space, struct va_range *r)
{
	struct va_range *next = r ? TAILQ_NEXT(r, link) : NULL;

	if (!next || r->start + r->size != next->start)
		return;
	r->size += next->size;
	TAILQ_REMOVE(&space->free, next, link);
	free(next);
}

int va_free(struct va_space *space, uint64_t va, uint64_t size)
{
	struct va_range *r = range_new(va, size), *next;

	if (!r)
		return -ENOMEM;
	pthread_mutex_lock(&space->lock);
	TAILQ_FOREACH(next, &space->free, link)
		if (next->start > va)
			break;
	if (next)
		TAILQ_INSERT_BEFORE(next, r, link);
	else
		TAILQ_INSERT_TAIL(&space->free, r, link);
	join(space, r);
	join(space, TAILQ_PREV(r, va_list_head, link));
	pthread_mutex_unlock(&space->lock);
	return 0;
}
