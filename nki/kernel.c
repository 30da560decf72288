// SPDX-License-Identifier: MIT
/* Kernel object, errors, memory, line table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "priv.h"

static const struct nki_arch archs[] = {
#define NEURON_ARCH(id, name, product, device_id, nc_version, cores, stacks, stack_gib, stride, \
		    sbuf_kib, host_bit, lnc, udma, h2t) \
	{ name, nc_version, (sbuf_kib) * 1024u },
#include "neuron/arch.def"
#undef NEURON_ARCH
};

struct nki_kernel *nki_kernel_new(const char *name, const char *arch)
{
	struct nki_loc loc = { __FILE__, 0, "nki_kernel_new" };
	struct nki_kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->bufs_tail = &k->bufs;
	k->edges_tail = &k->edges;
	k->exchanges_tail = &k->exchanges;
	k->root = k;
	k->cores = 1;
	k->drop = -1;
	k->arch = &archs[0];
	if (getenv("NKI_DROP_SEMAPHORE"))
		k->drop = atoi(getenv("NKI_DROP_SEMAPHORE"));
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (arch && !strcmp(arch, archs[i].name)) {
			k->arch = &archs[i];
			arch = NULL;
			break;
		}
	}
	k->sbuf_top = k->arch->sbuf_bytes;
	if (arch)
		nki_fail(k, loc, "unknown architecture \"%s\"; allowed: trn1, inf2, trn2, trn3", arch);
	if (!name || !*name || strlen(name) >= sizeof(k->name))
		nki_fail(k, loc, "the name must have 1 to %zu bytes", sizeof(k->name) - 1);
	else
		strcpy(k->name, name);
	return k;
}

void nki_free_chunks(struct nki_chunk **list)
{
	while (*list) {
		struct nki_chunk *next = (*list)->next;

		free(*list);
		*list = next;
	}
}

void nki_kernel_free(struct nki_kernel *k)
{
	if (!k || k->root != k)
		return;
	if (k->peer) {
		k->peer->root = k->peer;
		k->peer->peer = NULL;
		nki_kernel_free(k->peer);
	}
	for (unsigned int e = 0; e < NKI_ENGINES; e++)
		free(k->stream[e].word);
	nki_free_chunks(&k->chunks);
	nki_free_chunks(&k->build_chunks);
	free(k->lines);
	free(k->line_hash);
	free(k->edge_list);
	free(k->info_json);
	free(k);
}

const char *nki_error(const struct nki_kernel *k)
{
	if (!k)
		return "out of memory";
	return !k->error && k->root == k && k->peer ? k->peer->error : k->error;
}

bool nki_ok(const struct nki_kernel *k)
{
	return k && !k->error;
}

unsigned int nki_nc_version(const struct nki_kernel *k)
{
	return k ? k->arch->nc_version : 0;
}

void nki_fail(struct nki_kernel *k, struct nki_loc loc, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (!k || k->error)
		return;
	len = snprintf(k->error_text, sizeof(k->error_text), "%s:%d: %s: ", loc.file, loc.line, loc.name);
	if (len < 0 || (size_t)len >= sizeof(k->error_text))
		len = 0;
	va_start(ap, fmt);
	vsnprintf(k->error_text + len, sizeof(k->error_text) - len, fmt, ap);
	va_end(ap);
	k->error = k->error_text;
}

static void *chunk_alloc(struct nki_kernel *k, struct nki_chunk **list, size_t size)
{
	struct nki_chunk *c = NULL;

	if (size < SIZE_MAX - sizeof(*c) - 16)
		c = calloc(1, sizeof(*c) + 16 + size);
	if (!c) {
		nki_fail(k, (struct nki_loc){ "nki", 0, "memory" }, "the host is out of memory");
		return NULL;
	}
	c->next = *list;
	*list = c;
	return (char *)c + 16;
}

void *nki_zalloc(struct nki_kernel *k, size_t size)
{
	return chunk_alloc(k, &k->chunks, size);
}

void *nki_build_zalloc(struct nki_kernel *k, size_t size)
{
	return chunk_alloc(k, &k->build_chunks, size);
}

static size_t line_hash(struct nki_loc loc)
{
	size_t h = loc.line * 2654435761u;

	for (const char *c = loc.file; *c; c++)
		h = h * 31 + (unsigned char)*c;
	for (const char *c = loc.name; *c; c++)
		h = h * 31 + (unsigned char)*c;
	return h ^ h >> 16;
}

/* Makes the table of line numbers by place larger; entries are numbers from 1. */
static bool grow_lines(struct nki_kernel *k)
{
	size_t room = k->line_room ? 2 * k->line_room : 64;
	struct nki_line *lines = realloc(k->lines, room * sizeof(*lines));
	uint32_t *hash = calloc(2 * room, sizeof(*hash));

	if (lines)
		k->lines = lines;
	if (!lines || !hash) {
		free(hash);
		return false;
	}
	free(k->line_hash);
	k->line_hash = hash;
	k->line_room = room;
	for (size_t i = 0; i < k->line_count; i++) {
		struct nki_line *l = &k->lines[i];
		size_t h = line_hash((struct nki_loc){ l->file, l->line, l->name });

		while (hash[h % (2 * room)])
			h++;
		hash[h % (2 * room)] = i + 1;
	}
	return true;
}

unsigned int nki_debug_id(struct nki_kernel *k, struct nki_loc loc)
{
	size_t h = line_hash(loc);
	uint32_t n;

	if (k->line_count == k->line_room && !grow_lines(k)) {
		nki_fail(k, loc, "the host is out of memory");
		return 0;
	}
	while ((n = k->line_hash[h % (2 * k->line_room)])) {
		struct nki_line *l = &k->lines[n - 1];

		if (l->line == loc.line && !strcmp(l->file, loc.file) && !strcmp(l->name, loc.name))
			return n;
		h++;
	}
	k->lines[k->line_count] = (struct nki_line){ loc.file, loc.line, loc.name };
	k->line_hash[h % (2 * k->line_room)] = ++k->line_count;
	return k->line_count;
}

const struct nki_line *nki_line(struct nki_kernel *k, unsigned int debug_id)
{
	if (!k || !debug_id || debug_id > k->line_count)
		return NULL;
	return &k->lines[debug_id - 1];
}

struct nki_seq *nki_current_seq(struct nki_kernel *k)
{
	return k->loop ? &k->loop->body : &k->seq;
}

struct nki_item *nki_add_item(struct nki_kernel *k, struct nki_seq *seq, enum nki_item_kind kind)
{
	struct nki_item *item = nki_zalloc(k, sizeof(*item));

	if (!item)
		return NULL;
	item->kind = kind;
	if (seq->last)
		seq->last->next = item;
	else
		seq->first = item;
	seq->last = item;
	k->built = false;
	return item;
}

unsigned int nki_dtype_size(enum nki_dtype dtype)
{
	switch ((unsigned int)dtype) {
#define NEURON_DTYPE(code, name, text, bytes) \
	case code: \
		return bytes;
#include "neuron/isa.def"
	}
	return 0;
}

const char *nki_dtype_text(enum nki_dtype dtype)
{
	switch ((unsigned int)dtype) {
#define NEURON_DTYPE(code, name, text, bytes) \
	case code: \
		return text;
#include "neuron/isa.def"
	}
	return "unknown type";
}

bool nki_dtype_is_int(enum nki_dtype dtype)
{
	switch (dtype) {
	case NKI_INT8:
	case NKI_UINT8:
	case NKI_INT16:
	case NKI_UINT16:
	case NKI_INT32:
	case NKI_UINT32:
		return true;
	default:
		return false;
	}
}

const char *nki_space_text(enum neuron_space space)
{
	switch (space) {
	case NEURON_SPACE_SBUF:
		return "SBUF";
	case NEURON_SPACE_PSUM:
		return "PSUM";
	case NEURON_SPACE_HBM:
		return "HBM";
	default:
		return "nothing";
	}
}

void nki_drop_semaphore(struct nki_kernel *k, int n)
{
	if (!k)
		return;
	k->drop = n;
	k->built = false;
}
