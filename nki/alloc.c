// SPDX-License-Identifier: MIT
/*
 * Tensors, and tiles in SBUF and PSUM. A freed tile's bytes are given out again at
 * once; that the new user waits for the old ones follows from sync.c, which
 * looks at bytes, not at tiles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "priv.h"

struct nki_view nki_whole(struct nki_buf *buf)
{
	struct nki_view v = {
		.buf = buf,
		.dtype = buf->dtype,
		.dims = buf->dims,
		.part = buf->part,
	};
	int64_t step = 1;
	unsigned int first = buf->space == NEURON_SPACE_HBM ? 0 : 1;

	for (unsigned int d = buf->dims; d-- > 0;) {
		v.num[d] = buf->num[d];
		v.step[d] = d >= first ? step : 1;
		if (d >= first)
			step *= buf->num[d];
	}
	return v;
}

static bool check_shape(struct nki_kernel *k, struct nki_loc loc, enum nki_dtype dtype,
			const uint32_t *num, size_t dims, uint64_t *elements)
{
	uint64_t n = 1;

	if (!nki_dtype_size(dtype)) {
		nki_fail(k, loc, "unknown data type %d", dtype);
		return false;
	}
	if (dims < 1 || dims > NKI_MAX_DIMS) {
		nki_fail(k, loc, "%zu dimensions; allowed: 1 to %d", dims, NKI_MAX_DIMS);
		return false;
	}
	for (size_t d = 0; d < dims; d++) {
		if (!num[d]) {
			nki_fail(k, loc, "dimension %zu has 0 elements", d);
			return false;
		}
		if (n > (1ull << 40) / num[d]) {
			nki_fail(k, loc, "more than 2^40 elements");
			return false;
		}
		n *= num[d];
	}
	*elements = n;
	return true;
}

struct nki_buf *nki_new_buf(struct nki_kernel *k, struct nki_loc loc, enum neuron_space space,
			    enum nki_dtype dtype, const uint32_t *num, size_t dims)
{
	struct nki_buf *buf = nki_zalloc(k, sizeof(*buf));

	if (!buf)
		return NULL;
	buf->k = k;
	buf->space = space;
	buf->dtype = dtype;
	buf->dims = dims;
	memcpy(buf->num, num, dims * sizeof(*num));
	buf->loc = loc;
	buf->live = true;
	buf->loop = k->loop;
	return buf;
}

static void link_buf(struct nki_kernel *k, struct nki_buf *buf)
{
	*k->bufs_tail = buf;
	k->bufs_tail = &buf->next;
	if (buf->space == NEURON_SPACE_HBM)
		return;
	buf->live_next = k->live;
	buf->live_prev = &k->live;
	if (k->live)
		k->live->live_prev = &buf->live_next;
	k->live = buf;
}

static struct nki_buf *find_tensor(struct nki_kernel *k, const char *name)
{
	for (struct nki_buf *b = k->bufs; b; b = b->next) {
		if (b->name && !strcmp(b->name, name))
			return b;
	}
	return NULL;
}

/* The other core has it: the same argument. */
static struct nki_view share_tensor(struct nki_kernel *k, struct nki_loc loc,
				    const struct nki_buf *other, enum nki_tensor_kind kind,
				    enum nki_dtype dtype, const uint32_t *num, size_t dims)
{
	struct nki_buf *buf;

	if (other->kind != kind || other->dtype != dtype || other->dims != dims ||
	    memcmp(other->num, num, dims * sizeof(*num))) {
		nki_fail(k, loc, "tensor \"%s\" has another kind, type or shape on the other core (%s:%d)",
			 other->name, other->loc.file, other->loc.line);
		return NKI_NONE;
	}
	buf = nki_new_buf(k, loc, NEURON_SPACE_HBM, dtype, num, dims);
	if (!buf)
		return NKI_NONE;
	buf->bytes = other->bytes;
	buf->kind = kind;
	buf->name = other->name;
	buf->data = other->data;
	buf->arg = other->arg;
	link_buf(k, buf);
	k->built = false;
	return nki_whole(buf);
}

static bool check_name(struct nki_kernel *k, struct nki_loc loc, const char *name)
{
	struct nki_buf *b;

	if (!name || !*name || strlen(name) > 255) {
		nki_fail(k, loc, "a tensor's name must have 1 to 255 bytes");
		return false;
	}
	b = find_tensor(k, name);
	if (b) {
		nki_fail(k, loc, "tensor \"%s\" exists already (%s:%d)", name, b->loc.file, b->loc.line);
		return false;
	}
	return true;
}

struct nki_view nki_tensor_(struct nki_kernel *k, struct nki_loc loc, enum nki_tensor_kind kind,
			    const char *name, enum nki_dtype dtype, const void *data,
			    const uint32_t *num, size_t dims)
{
	struct nki_buf *buf, *other;
	uint64_t elements;

	if (!nki_ok(k) || !check_shape(k, loc, dtype, num, dims, &elements) ||
	    !check_name(k, loc, name))
		return NKI_NONE;
	other = k->peer ? find_tensor(k->peer, name) : NULL;
	if (other)
		return share_tensor(k, loc, other, kind, dtype, num, dims);
	if (k->root->arg_count == NEURON_MAX_ARGS) {
		nki_fail(k, loc, "more than %d tensors", NEURON_MAX_ARGS);
		return NKI_NONE;
	}
	buf = nki_new_buf(k, loc, NEURON_SPACE_HBM, dtype, num, dims);
	if (!buf)
		return NKI_NONE;
	buf->bytes = elements * nki_dtype_size(dtype);
	buf->kind = kind;
	buf->name = nki_zalloc(k, strlen(name) + 1);
	if (!buf->name)
		return NKI_NONE;
	strcpy(buf->name, name);
	if (kind == NKI_TENSOR_CONST) {
		if (!data) {
			nki_fail(k, loc, "constant \"%s\" has no data", name);
			return NKI_NONE;
		}
		buf->data = nki_zalloc(k, buf->bytes);
		if (!buf->data)
			return NKI_NONE;
		memcpy(buf->data, data, buf->bytes);
	}
	buf->arg = k->root->arg_count++;
	link_buf(k, buf);
	k->built = false;
	return nki_whole(buf);
}

/* First live tile that [base, base + bytes) in these partitions would overlap. */
static struct nki_buf *occupant(struct nki_kernel *k, const struct nki_buf *want, uint64_t base)
{
	for (struct nki_buf *b = k->live; b; b = b->live_next) {
		if (b->space == want->space && base < b->base + b->bytes &&
		    b->base < base + want->bytes && want->part < b->part + b->parts &&
		    b->part < want->part + want->parts)
			return b;
	}
	return NULL;
}

static uint64_t round_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) / align * align;
}

static bool place_sbuf(struct nki_kernel *k, struct nki_buf *buf)
{
	uint64_t base = 0;

	while (base + buf->bytes <= k->sbuf_top) {
		struct nki_buf *b = occupant(k, buf, base);

		if (!b) {
			buf->base = base;
			if (base + buf->bytes > k->sbuf_high)
				k->sbuf_high = base + buf->bytes;
			return true;
		}
		base = round_up(b->base + b->bytes, NKI_TILE_ALIGN);
	}
	return false;
}

/*
 * Banks are used in turn, so that a new tile seldom has to wait for the readers of
 * the one that was there before. Small tiles share a bank only when none is empty.
 */
static bool place_psum(struct nki_kernel *k, struct nki_buf *buf)
{
	unsigned int banks = (buf->bytes + NEURON_PSUM_BANK_BYTES - 1) / NEURON_PSUM_BANK_BYTES;
	struct nki_buf whole = *buf;

	whole.bytes = (uint64_t)banks * NEURON_PSUM_BANK_BYTES;
	for (unsigned int i = 0; i < NEURON_PSUM_BANKS; i++) {
		unsigned int bank = (k->psum_next + i) % NEURON_PSUM_BANKS;
		uint64_t base = (uint64_t)bank * NEURON_PSUM_BANK_BYTES;

		if (bank + banks <= NEURON_PSUM_BANKS && !occupant(k, &whole, base)) {
			buf->base = base;
			k->psum_next = (bank + banks) % NEURON_PSUM_BANKS;
			return true;
		}
	}
	if (banks > 1)
		return false;
	for (uint64_t base = 0; base < NEURON_PSUM_BANKS * NEURON_PSUM_BANK_BYTES;
	     base += NKI_TILE_ALIGN) {
		uint64_t end = base + buf->bytes - 1;

		if (base / NEURON_PSUM_BANK_BYTES == end / NEURON_PSUM_BANK_BYTES &&
		    !occupant(k, buf, base)) {
			buf->base = base;
			return true;
		}
	}
	return false;
}

static void fail_exhausted(struct nki_kernel *k, struct nki_loc loc, const struct nki_buf *want,
			   uint64_t limit)
{
	char text[1400];
	size_t len = 0;
	unsigned int more = 0;

	text[0] = 0;
	for (struct nki_buf *b = k->bufs; b; b = b->next) {
		if (b->space != want->space || !b->live)
			continue;
		if (len > sizeof(text) - 200) {
			more++;
			continue;
		}
		len += snprintf(text + len, sizeof(text) - len, "\n  %llu bytes at %llu: %s:%d",
				(unsigned long long)b->bytes, (unsigned long long)b->base,
				b->loc.file, b->loc.line);
	}
	if (more)
		snprintf(text + len, sizeof(text) - len, "\n  and %u more", more);
	nki_fail(k, loc, "no %s left: %llu bytes per partition asked for, %llu exist on %s; alive (use nki_free):%s",
		 nki_space_text(want->space), (unsigned long long)want->bytes,
		 (unsigned long long)limit, k->arch->name, *text ? text : " nothing");
}

static bool check_tile(struct nki_kernel *k, struct nki_loc loc, enum nki_dtype dtype,
		       const uint32_t *num, size_t dims, uint64_t *bytes)
{
	uint64_t elements;

	if (!nki_ok(k) || !check_shape(k, loc, dtype, num, dims, &elements))
		return false;
	if (num[0] > NEURON_PARTITIONS) {
		nki_fail(k, loc, "%u partitions; allowed: 1 to %d", num[0], NEURON_PARTITIONS);
		return false;
	}
	if (dims > 1 + NEURON_AP_DIMS) {
		nki_fail(k, loc, "%zu free dimensions; allowed: at most %d", dims - 1, NEURON_AP_DIMS);
		return false;
	}
	*bytes = elements / num[0] * nki_dtype_size(dtype);
	return true;
}

struct nki_view nki_tile_(struct nki_kernel *k, struct nki_loc loc, enum neuron_space space,
			  enum nki_dtype dtype, const uint32_t *num, size_t dims)
{
	uint32_t column[2];
	struct nki_buf *buf;
	uint64_t bytes, limit;

	if (!check_tile(k, loc, dtype, num, dims, &bytes))
		return NKI_NONE;
	if (dims == 1) {
		column[0] = num[0];
		column[1] = 1;
		num = column;
		dims = 2;
	}
	buf = nki_new_buf(k, loc, space, dtype, num, dims);
	if (!buf)
		return NKI_NONE;
	buf->bytes = bytes;
	buf->parts = num[0];
	limit = space == NEURON_SPACE_SBUF ? k->sbuf_top : NEURON_PSUM_BANKS * NEURON_PSUM_BANK_BYTES;
	if (!(space == NEURON_SPACE_SBUF ? place_sbuf(k, buf) : place_psum(k, buf))) {
		fail_exhausted(k, loc, buf, limit);
		return NKI_NONE;
	}
	link_buf(k, buf);
	return nki_whole(buf);
}

/*
 * A tile that is written in the prologue, before anything else runs: it must lie
 * where no tile has been so far, and none will be.
 */
struct nki_view nki_top_tile(struct nki_kernel *k, struct nki_loc loc, enum nki_dtype dtype,
			     uint32_t parts, uint32_t columns)
{
	uint32_t num[2] = { parts, columns };
	struct nki_buf *buf;
	uint64_t bytes;

	if (!check_tile(k, loc, dtype, num, 2, &bytes))
		return NKI_NONE;
	buf = nki_new_buf(k, loc, NEURON_SPACE_SBUF, dtype, num, 2);
	if (!buf)
		return NKI_NONE;
	buf->bytes = bytes;
	buf->parts = parts;
	if (bytes > k->sbuf_top || (k->sbuf_top - bytes) / NKI_TILE_ALIGN * NKI_TILE_ALIGN < k->sbuf_high) {
		fail_exhausted(k, loc, buf, k->sbuf_top);
		return NKI_NONE;
	}
	buf->base = (k->sbuf_top - bytes) / NKI_TILE_ALIGN * NKI_TILE_ALIGN;
	buf->loop = NULL;
	k->sbuf_top = buf->base;
	link_buf(k, buf);
	return nki_whole(buf);
}

void nki_free_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v)
{
	struct nki_buf *buf = v.buf;

	if (!nki_ok(k))
		return;
	if (!buf || buf->k != k || buf->space == NEURON_SPACE_HBM) {
		nki_fail(k, loc, "not a tile of this kernel");
		return;
	}
	if (!buf->live) {
		nki_fail(k, loc, "the tile of %s:%d is freed already", buf->loc.file, buf->loc.line);
		return;
	}
	if (buf->loop != k->loop) {
		nki_fail(k, loc, "the tile of %s:%d was not allocated in this loop body", buf->loc.file,
			 buf->loc.line);
		return;
	}
	buf->live = false;
	*buf->live_prev = buf->live_next;
	if (buf->live_next)
		buf->live_next->live_prev = buf->live_prev;
}
