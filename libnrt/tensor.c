// SPDX-License-Identifier: MIT
/* Tensors: reference-counted windows of reference-counted memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Bytes up to which the CPU copies itself. */
#define CPU_COPY_MAX	4096

bool tensor_valid(const struct nrt_tensor *tensor)
{
	return tensor && tensor->magic == TENSOR_MAGIC;
}

/* ---- storage ------------------------------------------------------------------- */

static void storage_put(struct storage *st)
{
	if (!st || atomic_fetch_sub(&st->refs, 1) != 1)
		return;
	pthread_mutex_lock(&nrt_state.objects);
	TAILQ_REMOVE(&nrt_state.storages, st, link);
	pthread_mutex_unlock(&nrt_state.objects);
	devmem_free(st->mem);
	free(st);
}

static struct storage *storage_get(struct storage *st)
{
	atomic_fetch_add(&st->refs, 1);
	return st;
}

static struct storage *storage_new(size_t size)
{
	struct storage *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->refs = 1;
	st->size = size;
	pthread_mutex_lock(&nrt_state.objects);
	TAILQ_INSERT_TAIL(&nrt_state.storages, st, link);
	pthread_mutex_unlock(&nrt_state.objects);
	return st;
}

void storages_close(void)
{
	struct storage *st;

	/* state.lock is held for writing: nobody looks at @mem. */
	TAILQ_FOREACH(st, &nrt_state.storages, link) {
		devmem_free(st->mem);
		st->mem = NULL;
	}
}

bool window_get(const struct nrt_tensor *tensor, struct window *w)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&tensor->lock;
	bool ok;

	memset(w, 0, sizeof(*w));
	pthread_mutex_lock(lock);
	ok = tensor->storage && (tensor->storage->mem || tensor->storage->user);
	if (ok) {
		w->storage = storage_get(tensor->storage);
		w->offset = tensor->offset;
		w->size = tensor->size;
		if (w->storage->mem) {
			w->bo = w->storage->mem->bo;
			w->device = w->storage->mem->device;
		} else {
			w->ptr = (char *)w->storage->user + w->offset;
		}
	}
	pthread_mutex_unlock(lock);
	return ok;
}

void window_put(struct window *w)
{
	storage_put(w->storage);
	w->storage = NULL;
}

/* ---- handles ---------------------------------------------------------------------- */

static struct nrt_tensor *tensor_new(const char *name)
{
	struct nrt_tensor *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->name = strdup(name ?: "");
	if (!t->name) {
		free(t);
		return NULL;
	}
	t->magic = TENSOR_MAGIC;
	t->refs = 1;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

struct nrt_tensor *tensor_ref(struct nrt_tensor *t)
{
	atomic_fetch_add(&t->refs, 1);
	return t;
}

void tensor_unref(struct nrt_tensor *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	t->magic = 0;
	storage_put(t->storage);
	pthread_mutex_destroy(&t->lock);
	free(t->name);
	free(t);
}

static NRT_STATUS allocate_memory(struct nrt_tensor *t, struct vcore *v, size_t size)
{
	struct mem_request request = {
		.vcore = v,
		.mem = t->placement == NRT_TENSOR_PLACEMENT_DEVICE ? DEV_MEM_HBM : DEV_MEM_HOST,
		.size = size,
		.category = MEM_TENSORS,
		.owner = t->name,
	};
	struct storage *st = storage_new(size);
	NRT_STATUS status;

	if (!st)
		return NRT_RESOURCE;
	status = devdevmem_alloc(&request, &st->mem);
	if (status)
		storage_put(st);
	else
		t->storage = st;
	return status;
}

static NRT_STATUS allocate(nrt_tensor_placement_t placement, int vnc, size_t size,
			   const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = NRT_SUCCESS;
	struct nrt_tensor *t;
	struct vcore *v;

	v = vcore_get(placement == NRT_TENSOR_PLACEMENT_DEVICE ? vnc : 0, "nrt_tensor_allocate");
	if (!v)
		return NRT_INVALID;
	t = tensor_new(name);
	if (!t)
		return NRT_RESOURCE;
	t->placement = placement;
	t->size = size;
	if (placement == NRT_TENSOR_PLACEMENT_VIRTUAL)
		t->attachable = true;
	else
		status = allocate_memory(t, v, size);
	if (status)
		tensor_unref(t);
	else
		*tensor = t;
	return status;
}

NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t tensor_placement, int vnc,
			       size_t size, const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status;

	if (!tensor)
		return NRT_INVALID;
	*tensor = NULL;
	if ((unsigned int)tensor_placement > NRT_TENSOR_PLACEMENT_VIRTUAL) {
		log_err("NRT", "tensor '%s': placement %d, must be 0 (device), 1 (host) or 2 (virtual)",
			name ?: "", tensor_placement);
		return NRT_INVALID;
	}
	if (!size || size > SIZE_MAX / 2) {
		log_err("NRT", "tensor '%s': size %zu, must be 1 to %zu", name ?: "", size,
			SIZE_MAX / 2);
		return NRT_INVALID;
	}
	status = api_enter();
	if (status)
		return status;
	status = allocate(tensor_placement, vnc, size, name, tensor);
	api_leave();
	return status;
}

NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status;

	if (!tensor)
		return NRT_INVALID;
	*tensor = NULL;
	status = api_enter();
	if (status)
		return status;
	*tensor = tensor_new(name);
	if (*tensor) {
		(*tensor)->placement = NRT_TENSOR_PLACEMENT_VIRTUAL;
		(*tensor)->attachable = true;
	}
	api_leave();
	return *tensor ? NRT_SUCCESS : NRT_RESOURCE;
}

NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size)
{
	struct storage *st, *old;
	NRT_STATUS status;

	if (!tensor_valid(tensor))
		return NRT_INVALID_HANDLE;
	if (!buffer || !size || size > SIZE_MAX / 2 || !tensor->attachable) {
		log_err("NRT", "tensor '%s': %s", tensor->name, tensor->attachable ?
			"buffer is NULL or its size is 0" :
			"has memory of its own; only empty and virtual tensors take a buffer");
		return NRT_INVALID;
	}
	status = api_enter();
	if (status)
		return status;
	st = storage_new(size);
	if (st) {
		st->user = buffer;
		pthread_mutex_lock(&tensor->lock);
		old = tensor->storage;
		tensor->storage = st;
		tensor->offset = 0;
		tensor->size = size;
		pthread_mutex_unlock(&tensor->lock);
		storage_put(old);
	}
	api_leave();
	return st ? NRT_SUCCESS : NRT_RESOURCE;
}

static bool range_ok(const char *function, const struct nrt_tensor *t, size_t limit,
		     size_t offset, size_t size)
{
	if (offset <= limit && size <= limit - offset)
		return true;
	log_line(LOG_ERR_, "NRT", function, "tensor '%s': %zu bytes at offset %zu are outside its %zu bytes",
		 t->name, size, offset, limit);
	return false;
}

/* Hold a range of a tensor. */
static NRT_STATUS window_range(const char *function, const struct nrt_tensor *t,
			       size_t offset, size_t size, struct window *w)
{
	if (!window_get(t, w)) {
		log_line(LOG_ERR_, "NRT", function, "tensor '%s' has no memory", t->name);
		return NRT_INVALID;
	}
	if (range_ok(function, t, w->size, offset, size))
		return NRT_SUCCESS;
	window_put(w);
	return NRT_INVALID;
}

NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset,
				     size_t size, const char *name,
				     nrt_tensor_t **tensor_slice)
{
	struct window w = { 0 };
	struct nrt_tensor *t;
	NRT_STATUS status;

	if (!tensor_slice)
		return NRT_INVALID;
	*tensor_slice = NULL;
	if (!tensor_valid(tensor_source))
		return NRT_INVALID_HANDLE;
	status = api_enter();
	if (status)
		return status;
	status = size ? window_range(__func__, tensor_source, offset, size, &w) : NRT_INVALID;
	if (!status) {
		t = tensor_new(name);
		if (t) {
			t->placement = tensor_source->placement;
			t->storage = storage_get(w.storage);
			t->offset = w.offset + offset;
			t->size = size;
			*tensor_slice = t;
		} else {
			status = NRT_RESOURCE;
		}
		window_put(&w);
	}
	api_leave();
	return status;
}

void nrt_tensor_free(nrt_tensor_t **tensor)
{
	if (!tensor || !tensor_valid(*tensor))
		return;
	/* Against nrt_close(), which takes the memory of the same storage. */
	pthread_rwlock_rdlock(&nrt_state.lock);
	tensor_unref(*tensor);
	pthread_rwlock_unlock(&nrt_state.lock);
	*tensor = NULL;
}

size_t nrt_tensor_get_size(const nrt_tensor_t *tensor)
{
	return tensor_valid(tensor) ? tensor->size : 0;
}

void *nrt_tensor_get_va(const nrt_tensor_t *tensor)
{
	struct window w;
	void *va = NULL;

	if (!tensor_valid(tensor) || api_enter())
		return NULL;
	if (window_get(tensor, &w)) {
		if (!w.bo)
			va = w.ptr;
		else if (!nrt_state.backend->bo_map(w.bo))
			va = (char *)w.bo->cpu + w.offset;
		window_put(&w);
	}
	api_leave();
	return va;
}

/* ---- transfers ---------------------------------------------------------------------- */

enum direction {
	TENSOR_READ,
	TENSOR_WRITE,
};

/*
 * Where the CPU reaches a range itself, or NULL: host memory, and a few bytes of
 * HBM, for which a job would take longer than loads and stores through the BAR.
 */
static void *cpu_range(const struct window *w, const struct dev_loc *loc, size_t size)
{
	if (!w->bo)
		return loc->ptr;
	if (w->bo->mem == DEV_MEM_HBM &&
	    (size > CPU_COPY_MAX || nrt_state.backend->bo_map(w->bo)))
		return NULL;
	return (char *)w->bo->cpu + loc->offset;
}

static NRT_STATUS transfer(const char *function, const struct nrt_tensor *t,
			   enum direction direction, void *buf, size_t offset, size_t size)
{
	struct dev_loc host = { .ptr = buf }, loc;
	struct window w;
	NRT_STATUS status;
	char *cpu;
	int ret;

	status = window_range(function, t, offset, size, &w);
	if (status)
		return status;
	loc = window_loc(&w, offset);
	cpu = size ? cpu_range(&w, &loc, size) : NULL;
	if (!size) {
		status = NRT_SUCCESS;
	} else if (cpu) {
		memmove(direction == TENSOR_READ ? buf : cpu,
			direction == TENSOR_READ ? cpu : buf, size);
	} else {
		ret = direction == TENSOR_READ ? device_copy(w.device, host, loc, size) :
						 device_copy(w.device, loc, host, size);
		if (ret)
			log_line(LOG_ERR_, "TDRV", function, "tensor '%s': copy of %zu bytes failed: %s",
				 t->name, size, strerror(-ret));
		status = status_of(ret);
	}
	window_put(&w);
	return status;
}

static NRT_STATUS tensor_transfer(const char *function, const struct nrt_tensor *t,
				  enum direction direction, void *buf, size_t offset, size_t size)
{
	NRT_STATUS status;

	if (!tensor_valid(t))
		return NRT_INVALID_HANDLE;
	if (!buf && size)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	status = transfer(function, t, direction, buf, offset, size);
	api_leave();
	return status;
}

NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size)
{
	return tensor_transfer(__func__, tensor, TENSOR_READ, buf, offset, size);
}

NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size)
{
	return tensor_transfer(__func__, tensor, TENSOR_WRITE, (void *)buf, offset, size);
}

static NRT_STATUS check_batch(const char *function, const nrt_tensor_batch_t *b)
{
	struct window w;
	NRT_STATUS status;

	if (!tensor_valid(b->tensor))
		return NRT_INVALID_HANDLE;
	if (!b->ops && b->num_ops)
		return NRT_INVALID;
	for (uint32_t i = 0; i < b->num_ops; i++) {
		if (!b->ops[i].buffer && b->ops[i].size)
			return NRT_INVALID;
		status = window_range(function, b->tensor, b->ops[i].offset, b->ops[i].size, &w);
		if (status)
			return status;
		window_put(&w);
	}
	return NRT_SUCCESS;
}

static NRT_STATUS batch(const char *function, const nrt_tensor_batch_t *batches,
			uint64_t count, enum direction direction)
{
	NRT_STATUS status;

	if (!batches && count)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	for (uint64_t i = 0; !status && i < count; i++)
		status = check_batch(function, &batches[i]);
	for (uint64_t i = 0; !status && i < count; i++)
		for (uint32_t op = 0; !status && op < batches[i].num_ops; op++)
			status = transfer(function, batches[i].tensor, direction,
					  batches[i].ops[op].buffer, batches[i].ops[op].offset,
					  batches[i].ops[op].size);
	api_leave();
	return status;
}

NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches,
				 bool unsafe)
{
	(void)unsafe;
	return batch(__func__, batches, num_batches, TENSOR_READ);
}

NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches,
				  bool unsafe)
{
	(void)unsafe;
	return batch(__func__, batches, num_batches, TENSOR_WRITE);
}

/* Two chips share no address space here: through host memory, piece by piece. */
static int bounce(const struct window *src, size_t src_offset, const struct window *dst,
		  size_t dst_offset, size_t size)
{
	size_t piece = min_size(size, 1u << 20);
	char *buffer = malloc(piece);
	int ret = buffer ? 0 : -ENOMEM;

	for (size_t done = 0; !ret && done < size; done += piece) {
		struct dev_loc host = { .ptr = buffer };
		size_t now = min_size(piece, size - done);

		ret = device_copy(src->device, host, window_loc(src, src_offset + done), now) ?:
		      device_copy(dst->device, window_loc(dst, dst_offset + done), host, now);
	}
	free(buffer);
	return ret;
}

static NRT_STATUS copy_windows(const struct window *src, size_t src_offset,
			       const struct window *dst, size_t dst_offset, size_t size)
{
	size_t a = src->offset + src_offset, b = dst->offset + dst_offset;
	int ret;

	if (!size)
		return NRT_SUCCESS;
	if (src->storage == dst->storage && a < b + size && b < a + size) {
		log_err("NRT", "source and destination overlap");
		return NRT_INVALID;
	}
	if (!src->bo && !dst->bo) {
		memmove((char *)dst->ptr + dst_offset, (char *)src->ptr + src_offset, size);
		return NRT_SUCCESS;
	}
	if (src->bo && dst->bo && src->device != dst->device)
		ret = bounce(src, src_offset, dst, dst_offset, size);
	else
		ret = device_copy(src->device ?: dst->device, window_loc(dst, dst_offset),
				  window_loc(src, src_offset), size);
	return status_of(ret);
}

NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst,
			   size_t dst_offset, size_t size)
{
	struct window from, to;
	NRT_STATUS status;

	if (!tensor_valid(src) || !tensor_valid(dst))
		return NRT_INVALID_HANDLE;
	status = api_enter();
	if (status)
		return status;
	status = window_range(__func__, src, src_offset, size, &from);
	if (!status) {
		status = window_range(__func__, dst, dst_offset, size, &to);
		if (!status) {
			status = copy_windows(&from, src_offset, &to, dst_offset, size);
			window_put(&to);
		}
		window_put(&from);
	}
	api_leave();
	return status;
}

/* FILL takes whole 32-bit words at a 4-byte offset: the edges are copies. */
static int fill_window(const struct window *w, size_t offset, uint8_t value, size_t size)
{
	uint8_t edge[4] = { value, value, value, value };
	size_t head = min_size(-(w->offset + offset) & 3, size);
	size_t words = (size - head) & ~(size_t)3, tail = size - head - words;
	struct dev_loc host = { .ptr = edge };
	int ret = 0;

	if (head)
		ret = device_copy(w->device, window_loc(w, offset), host, head);
	if (!ret && words)
		ret = device_fill(w->device, w->bo, w->offset + offset + head, words,
				  value * 0x01010101u);
	if (!ret && tail)
		ret = device_copy(w->device, window_loc(w, offset + head + words), host, tail);
	return ret;
}

NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size)
{
	struct window w;
	NRT_STATUS status;

	if (!tensor_valid(tensor))
		return NRT_INVALID_HANDLE;
	status = api_enter();
	if (status)
		return status;
	status = window_range(__func__, tensor, offset, size, &w);
	if (!status) {
		if (!w.bo)
			memset((char *)w.ptr + offset, value, size);
		else
			status = status_of(fill_window(&w, offset, value, size));
		window_put(&w);
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_memcpy_to_device(void *dest, const void *src, size_t size)
{
	NRT_STATUS status;

	if ((!dest || !src) && size)
		return NRT_INVALID;
	status = api_enter();
	if (status)
		return status;
	memcpy(dest, src, size);
	api_leave();
	return NRT_SUCCESS;
}
