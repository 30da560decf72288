/* SPDX-License-Identifier: MIT */
#ifndef LIBNRT_VA_H
#define LIBNRT_VA_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

struct va_range {
	uint64_t start;
	uint64_t size;
	TAILQ_ENTRY(va_range) link;
};

TAILQ_HEAD(va_list_head, va_range);

/**
 * struct va_space - allocator of device virtual addresses
 * @lock: guards @free
 * @free: holes, sorted, never adjacent
 */
struct va_space {
	pthread_mutex_t lock;
	struct va_list_head free;
};

/* 0 or -ENOMEM */
int va_init(struct va_space *space, uint64_t start, uint64_t size);
void va_fini(struct va_space *space);

/**
 * va_alloc() - lowest hole that fits
 * @space: space
 * @size: bytes, > 0
 * @align: power of two
 * @va: set
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int va_alloc(struct va_space *space, uint64_t size, uint64_t align, uint64_t *va);

/* Give a range back that va_alloc() gave. 0 or -ENOMEM (the range is lost). */
int va_free(struct va_space *space, uint64_t va, uint64_t size);

#endif /* LIBNRT_VA_H */
