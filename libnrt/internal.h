/* SPDX-License-Identifier: MIT */
/*
 * Inside libnrt: api -> models, tensors, sets -> device interface (device.h).
 *
 * Locks, outermost first: state.lock (read in every call, write in nrt_init and
 * nrt_close), vcore.rw (read while executing, write to change scratch memory or
 * models), model.lock, vcore.submit, nrt_device.copy_lock, memory lock.
 */
#ifndef LIBNRT_INTERNAL_H
#define LIBNRT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "device.h"
#include "env.h"
#include "log.h"
#include "neff.h"
#include "nrt/nrt.h"
#include "nrt/nrt_experimental.h"
#include "nrt/nrt_ext.h"
#include "nrt/nrt_profile.h"


#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define NRT_MAX_STACKS		8
#define NRT_CONSTANT_ALIGN	65536ull
#define NRT_SCRATCH_ALIGN	4096ull
#define NRT_EXEC_SLOTS		8	/* executions of one model in flight */

static inline uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- process ---------------------------------------------------------------- */

/**
 * struct nrt_device - one chip
 * @dev: of the back-end
 * @index: ND number of messages
 * @copy_lock: order of @copies' values
 * @copies: timeline of copies
 * @copy_value: last value used
 */
struct nrt_device {
	struct dev *dev;
	unsigned int index;
	pthread_mutex_t copy_lock;
	struct dev_timeline *copies;
	uint64_t copy_value;
};

/**
 * struct vcore - a logical core of this process
 * @device: its chip
 * @index: number relative to the process, the API's vnc
 * @global: number on the machine
 * @first_core: first physical core
 * @core_mask: physical cores
 * @stack: HBM stack beside it
 * @rw: see the top of the file
 * @scratch: largest scratch memory that a loaded model needs; may be NULL
 * @models: loaded
 * @submit: guards @ctx, @generation, @value, and the order of jobs
 * @ctx: NULL after a recovery that failed
 * @generation: contexts made
 * @timeline: of executions
 * @value: last value used
 */
struct vcore {
	struct nrt_device *device;
	unsigned int index;
	unsigned int global;
	unsigned int first_core;
	uint32_t core_mask;
	unsigned int stack;
	pthread_rwlock_t rw;
	struct mem *scratch;
	unsigned int models;
	pthread_mutex_t submit;
	struct dev_ctx *ctx;
	unsigned int generation;
	struct dev_timeline *timeline;
	uint64_t value;
};

enum nrt_phase {
	NRT_PHASE_NEW,
	NRT_PHASE_OPEN,
	NRT_PHASE_CLOSED,
};

TAILQ_HEAD(model_list, nrt_model);
TAILQ_HEAD(storage_list, storage);

/**
 * struct nrt_state - the process
 * @lock: see the top of the file
 * @phase: -
 * @env: as read by nrt_init()
 * @backend: chosen by nrt_init()
 * @devices: open chips, some NULL: those without a core of this process
 * @device_count: chips of the machine
 * @lnc: physical cores of a logical core
 * @total: logical cores of the machine
 * @vcores: those of this process
 * @vcore_count: -
 * @objects: guards the two lists
 * @models: all handles, also those that outlived nrt_close()
 * @storages: memory of tensors
 */
struct nrt_state {
	pthread_rwlock_t lock;
	enum nrt_phase phase;
	struct env env;
	const struct dev_backend *backend;
	struct nrt_device **devices;
	unsigned int device_count;
	unsigned int lnc;
	unsigned int total;
	struct vcore *vcores;
	unsigned int vcore_count;
	pthread_mutex_t objects;
	struct model_list models;
	struct storage_list storages;
};

extern struct nrt_state nrt_state;

/**
 * api_enter() - begin of every call that needs nrt_init()
 *
 * Return: NRT_SUCCESS with state.lock held for reading, end with api_leave(); or
 * NRT_UNINITIALIZED or NRT_CLOSED without it.
 */
NRT_STATUS api_enter(void);
void api_leave(void);

/* The status for an errno of the device interface. */
NRT_STATUS status_of(int error);

/* The logical core @vnc, or NULL and a log line that says what is allowed. */
struct vcore *vcore_get(int64_t vnc, const char *function);

/* Wait until no execution of the core is in flight. */
void vcore_idle(struct vcore *vcore);

/* End the jobs of the core's context and make a new one. submit is held. */
int vcore_renew(struct vcore *vcore);

/* ---- memory ------------------------------------------------------------------ */

enum mem_category {
	MEM_CODE,
	MEM_CONSTANTS,
	MEM_TENSORS,
	MEM_SCRATCH,
	MEM_RUNTIME,
	MEM_PROFILE,
	MEM_CATEGORIES
};

/**
 * struct mem - device memory with an owner, for the out-of-memory report
 * @bo: of the back-end
 * @device: chip
 * @category: use
 * @vnc: logical core, -1: none
 * @owner: model or tensor name, owned
 */
struct mem {
	struct dev_bo *bo;
	struct nrt_device *device;
	enum mem_category category;
	int vnc;
	char *owner;
	LIST_ENTRY(mem) link;
};

/**
 * struct mem_request - what to allocate
 * @vcore: whose HBM is used and who is charged
 * @mem: HBM or host
 * @size: bytes
 * @category: use
 * @owner: model or tensor name
 */
struct mem_request {
	struct vcore *vcore;
	enum dev_mem mem;
	size_t size;
	enum mem_category category;
	const char *owner;
};

/* Host memory is mapped for the CPU. Logs the report when memory is exhausted. */
NRT_STATUS devdevmem_alloc(const struct mem_request *request, struct mem **mem);
void devmem_free(struct mem *mem);

/* After fork(), in the child: the memory is the parent's. */
void memory_forget(void);

/* Copy and wait. */
int device_copy(struct nrt_device *device, struct dev_loc dst, struct dev_loc src, size_t size);
int device_fill(struct nrt_device *device, struct dev_bo *bo, size_t offset, size_t size,
		uint32_t pattern);

/* ---- tensors ------------------------------------------------------------------ */

/**
 * struct storage - memory that tensors share
 * @refs: tensors
 * @mem: device or host memory; NULL after nrt_close(), or with @user
 * @user: memory of the caller
 * @size: bytes
 */
struct storage {
	atomic_uint refs;
	struct mem *mem;
	void *user;
	size_t size;
	TAILQ_ENTRY(storage) link;
};

/**
 * struct nrt_tensor - a window of a storage
 * @magic: TENSOR_MAGIC
 * @refs: the caller and sets
 * @lock: guards @storage, @offset and @size against nrt_tensor_attach_buffer()
 * @storage: NULL: none
 * @offset: first byte
 * @size: bytes
 * @placement: as allocated
 * @attachable: nrt_tensor_attach_buffer() is allowed
 * @name: owned, never NULL
 */
struct nrt_tensor {
	uint32_t magic;
	atomic_uint refs;
	pthread_mutex_t lock;
	struct storage *storage;
	size_t offset;
	size_t size;
	nrt_tensor_placement_t placement;
	bool attachable;
	char *name;
};

#define TENSOR_MAGIC	0x544e5254u
#define SET_MAGIC	0x5445534eu
#define MODEL_MAGIC	0x4c444d4eu

/**
 * struct window - a tensor's bytes, held: nobody can free them
 * @storage: referenced
 * @offset: first byte in it
 * @size: bytes
 * @bo: NULL: @ptr
 * @ptr: memory of the caller, already at @offset
 */
struct window {
	struct storage *storage;
	size_t offset;
	size_t size;
	struct nrt_device *device;
	struct dev_bo *bo;
	void *ptr;
};

/* False: no memory, or it went with nrt_close(). */
bool window_get(const struct nrt_tensor *tensor, struct window *window);
void window_put(struct window *window);
static inline struct dev_loc window_loc(const struct window *w, size_t offset)
{
	return w->bo ? (struct dev_loc){ .bo = w->bo, .offset = w->offset + offset } :
		       (struct dev_loc){ .ptr = (char *)w->ptr + offset };
}

struct nrt_tensor *tensor_ref(struct nrt_tensor *tensor);
void tensor_unref(struct nrt_tensor *tensor);
bool tensor_valid(const struct nrt_tensor *tensor);

/* Free the memory of all tensors; their handles stay. */
void storages_close(void);

/* A new reference to a set's tensor, or NULL. */
bool set_valid(const nrt_tensor_set_t *set);
struct nrt_tensor *set_lookup(const nrt_tensor_set_t *set, const char *name);

/* ---- models ---------------------------------------------------------------------- */

/**
 * struct exec_slot - one execution in flight: in host memory of the model
 * @busy: in use
 * @args: argument table
 * @result: written by the chip
 * @fence: user fence, written last
 * @args_va, @result_va, @fence_va: their device addresses
 * @staging: HBM for tensors in host memory; may be NULL
 */
struct exec_slot {
	bool busy;
	struct neuron_arg *args;
	struct neuron_completion *result;
	volatile uint64_t *fence;
	uint64_t args_va;
	uint64_t result_va;
	uint64_t fence_va;
	struct mem *staging;
};

/**
 * struct nrt_model - a loaded program
 * @magic: MODEL_MAGIC
 * @dead: nrt_close() took its memory
 * @link: in state.models
 * @vcore: where it is
 * @neff: names, shapes, line table; streams and constants are gone
 * @program: header and streams
 * @constants: all of them; may be NULL
 * @scratch_size: bytes in the core's scratch memory
 * @arg_offset: FILE: in @constants; TMP: in the scratch memory
 * @queue: host memory of @slots
 * @lock: guards what follows
 * @slot_free: a slot became free
 * @slots: executions in flight
 * @flags: NEURON_JOB_*
 * @seed: -
 * @executed: @last is valid
 * @last: last execution
 * @profile: trace in progress, or NULL
 */
struct nrt_model {
	uint32_t magic;
	bool dead;
	TAILQ_ENTRY(nrt_model) link;
	struct vcore *vcore;
	struct neff *neff;
	struct mem *program;
	struct mem *constants;
	uint64_t scratch_size;
	uint64_t *arg_offset;
	struct mem *queue;
	pthread_mutex_t lock;
	pthread_cond_t slot_free;
	struct exec_slot slots[NRT_EXEC_SLOTS];
	uint32_t flags;
	uint64_t seed;
	bool executed;
	nrtx_execution_t last;
	struct profile *profile;
};

/* A model that can be used, or NULL and @status. Between api_enter() and _leave(). */
struct nrt_model *model_get(const nrt_model_t *model, NRT_STATUS *status);

/* Free the device memory of all models; their handles stay. */
void models_close(void);

/* ---- faults (fault.c) --------------------------------------------------------------- */

/* Fill @e from a fault record and the model's line table. */
void fault_describe(const struct nrt_model *model, const struct neuron_fault_record *fault,
		    nrtx_execution_t *e);

/* The status of an enum neuron_fault; NRT_HW_ERROR for unknown codes. */
NRT_STATUS fault_status(uint32_t code);

/* Log what a support request needs. Between api_enter() and api_leave(). */
void nrt_infodump(NRT_STATUS status, const char *function);

/* ---- profiles (profile.c) ------------------------------------------------------------ */

/* The trace buffer for one execution; locked until profile_end(). NULL: none. */
struct mem *profile_begin(struct nrt_model *model, struct profile **profile);
/* Keep the records of an execution. */
void profile_end(struct profile *profile, const nrtx_execution_t *e);
void profile_free(struct profile *profile);

#endif /* LIBNRT_INTERNAL_H */
