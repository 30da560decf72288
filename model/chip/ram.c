// SPDX-License-Identifier: MIT
/*
 * Registers without a meaning of their own keep what is written to them. There
 * are gigabytes of addresses and few are ever written, so they live in 256-byte
 * blocks that exist from the first write on.
 */
#include <stdlib.h>
#include <string.h>

#include "chip.h"

#define BLOCK_SHIFT	8
#define BLOCK_WORDS	(1u << (BLOCK_SHIFT - 2))
#define MAX_BLOCKS	65536u		/* 16 MiB: what a hostile guest can take */

struct chip_ram_block {
	uint64_t key;
	uint32_t word[BLOCK_WORDS];
};

void chip_ram_init(struct chip_ram *ram)
{
	memset(ram, 0, sizeof(*ram));
	pthread_mutex_init(&ram->lock, NULL);
}

static void drop_blocks(struct chip_ram *ram)
{
	size_t i;

	for (i = 0; i < ram->slots; i++)
		free(ram->table[i]);
	free(ram->table);
	ram->table = NULL;
	ram->slots = 0;
	ram->used = 0;
}

void chip_ram_clear(struct chip_ram *ram)
{
	pthread_mutex_lock(&ram->lock);
	drop_blocks(ram);
	pthread_mutex_unlock(&ram->lock);
}

void chip_ram_free(struct chip_ram *ram)
{
	drop_blocks(ram);
	pthread_mutex_destroy(&ram->lock);
}

static size_t hash(uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 32);
}

static struct chip_ram_block **find(struct chip_ram_block **table, size_t slots, uint64_t key)
{
	size_t i = hash(key) & (slots - 1);

	while (table[i] && table[i]->key != key)
		i = (i + 1) & (slots - 1);
	return &table[i];
}

static bool grow(struct chip_ram *ram)
{
	size_t slots = ram->slots ? ram->slots * 2 : 64;
	struct chip_ram_block **table = calloc(slots, sizeof(*table));
	size_t i;

	if (!table)
		return false;
	for (i = 0; i < ram->slots; i++) {
		if (ram->table[i])
			*find(table, slots, ram->table[i]->key) = ram->table[i];
	}
	free(ram->table);
	ram->table = table;
	ram->slots = slots;
	return true;
}

static struct chip_ram_block *make(struct chip_ram *ram, uint64_t key)
{
	struct chip_ram_block **place;

	if (ram->slots) {
		place = find(ram->table, ram->slots, key);
		if (*place)
			return *place;
	}
	if (ram->used >= MAX_BLOCKS)
		return NULL;
	if (2 * (ram->used + 1) > ram->slots && !grow(ram))
		return NULL;
	place = find(ram->table, ram->slots, key);
	*place = calloc(1, sizeof(**place));
	if (*place) {
		(*place)->key = key;
		ram->used++;
	}
	return *place;
}

uint32_t chip_ram_read(struct chip_ram *ram, uint64_t offset)
{
	struct chip_ram_block *b;
	uint32_t value = 0;

	pthread_mutex_lock(&ram->lock);
	if (ram->slots) {
		b = *find(ram->table, ram->slots, offset >> BLOCK_SHIFT);
		if (b)
			value = b->word[(offset >> 2) & (BLOCK_WORDS - 1)];
	}
	pthread_mutex_unlock(&ram->lock);
	return value;
}

bool chip_ram_write(struct chip_ram *ram, uint64_t offset, uint32_t value)
{
	struct chip_ram_block *b;

	pthread_mutex_lock(&ram->lock);
	b = make(ram, offset >> BLOCK_SHIFT);
	if (b)
		b->word[(offset >> 2) & (BLOCK_WORDS - 1)] = value;
	pthread_mutex_unlock(&ram->lock);
	return b;
}
