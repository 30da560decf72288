/* SPDX-License-Identifier: MIT */
/*
 * Neuron Runtime API. Names, values and layouts are those of the public API
 * reference and ABI; this is an independent implementation.
 *
 * Unless said otherwise a function
 * - returns NRT_UNINITIALIZED before nrt_init() and NRT_CLOSED after nrt_close();
 * - returns NRT_INVALID for a NULL result pointer and NRT_INVALID_HANDLE for an
 *   object that is NULL or not one of this library;
 * - may be called from any thread at any time, on the same objects too; an object
 *   must not be freed while another thread uses it. nrt_init() and nrt_close()
 *   wait for the calls that are running.
 */
#ifndef NRT_NRT_H
#define NRT_NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt_status.h"
#include "nrt/nrt_version.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NRT_MAJOR_VERSION	2
#define NRT_MINOR_VERSION	31

/** nrt_model_t - a loaded program; made by nrt_load(), ended by nrt_unload() */
typedef struct nrt_model nrt_model_t;

/** nrt_tensor_t - a window of device or host memory; ended by nrt_tensor_free() */
typedef struct nrt_tensor nrt_tensor_t;

/** nrt_tensor_set_t - map of names to tensors */
typedef void nrt_tensor_set_t;

/**
 * enum nrt_tensor_placement_t - where a tensor's bytes are
 * @NRT_TENSOR_PLACEMENT_DEVICE: HBM next to a core
 * @NRT_TENSOR_PLACEMENT_HOST: host memory; copied to and from HBM by an execution
 * @NRT_TENSOR_PLACEMENT_VIRTUAL: nowhere until nrt_tensor_attach_buffer()
 */
typedef enum {
	NRT_TENSOR_PLACEMENT_DEVICE = 0,
	NRT_TENSOR_PLACEMENT_HOST = 1,
	NRT_TENSOR_PLACEMENT_VIRTUAL = 2,
} nrt_tensor_placement_t;

/** enum nrt_framework_type_t - who calls; only reported */
typedef enum {
	NRT_FRAMEWORK_TYPE_INVALID = 0,
	NRT_FRAMEWORK_TYPE_NO_FW = 1,
	NRT_FRAMEWORK_TYPE_TENSORFLOW = 2,
	NRT_FRAMEWORK_TYPE_PYTORCH = 3,
	NRT_FRAMEWORK_TYPE_MXNET = 4,
	NRT_FRAMEWORK_TYPE_PRECHECK = 5,
} nrt_framework_type_t;

typedef enum {
	NRT_INSTANCE_UNKNOWN = 0,
	NRT_INSTANCE_INF1 = 1,
	NRT_INSTANCE_TRN1 = 2,
	NRT_INSTANCE_TRN1N = 3,
	NRT_INSTANCE_INF2 = 4,
	NRT_INSTANCE_TRN2 = 5,
	NRT_INSTANCE_TRN2N = 6,
	NRT_INSTANCE_INF2E = 7,
	NRT_INSTANCE_TRN2P = 8,
	NRT_INSTANCE_TRN2U = 9,
	NRT_INSTANCE_TRN2E = 10,
	NRT_INSTANCE_TRN2EU = 11,
	NRT_INSTANCE_TRN2AC = 12,
	NRT_INSTANCE_TRN2UAC = 13,
	NRT_INSTANCE_TRN3 = 14,
	NRT_INSTANCE_TRN3PDS98 = 15,
} nrt_instance_family_t;

typedef enum {
	NRT_INSTANCE_SIZE_1XL = 0,
	NRT_INSTANCE_SIZE_2XL = 1,
	NRT_INSTANCE_SIZE_4XL = 2,
	NRT_INSTANCE_SIZE_6XL = 3,
	NRT_INSTANCE_SIZE_8XL = 4,
	NRT_INSTANCE_SIZE_24XL = 5,
	NRT_INSTANCE_SIZE_32XL = 6,
	NRT_INSTANCE_SIZE_48XL = 7,
	NRT_INSTANCE_SIZE_3XL = 8,
	NRT_INSTANCE_SIZE_UNKNOWN = 9,
} nrt_instance_size_t;

/**
 * struct nrt_instance_info - the machine
 * @family: nrt_instance_family_t; of the first chip
 * @size: nrt_instance_size_t; NRT_INSTANCE_SIZE_UNKNOWN here
 * @arch_name: "trn2"
 * @device_revision: PCI revision or ""
 */
typedef struct nrt_instance_info {
	uint32_t family;
	uint32_t size;
	char arch_name[16];
	char device_revision[8];
} nrt_instance_info_t;

/**
 * struct nrt_vnc_memory_stats - device memory next to a logical core
 * @bytes_used: in use, by all processes
 * @bytes_limit: of its HBM stack
 */
typedef struct nrt_vnc_memory_stats {
	size_t bytes_used;
	size_t bytes_limit;
} nrt_vnc_memory_stats_t;

/**
 * struct nrt_tensor_batch_op - one transfer of a batch
 * @offset: in the tensor
 * @size: bytes
 * @buffer: host memory
 */
typedef struct nrt_tensor_batch_op {
	uint64_t offset;
	uint64_t size;
	void *buffer;
} nrt_tensor_batch_op_t;

/**
 * struct nrt_tensor_batch - transfers of one tensor
 * @tensor: tensor
 * @ops: @num_ops transfers
 * @num_ops: count
 */
typedef struct nrt_tensor_batch {
	const nrt_tensor_t *tensor;
	const nrt_tensor_batch_op_t *ops;
	uint32_t num_ops;
} nrt_tensor_batch_t;

/* ---- process ------------------------------------------------------------------ */

/**
 * nrt_init() - find the chips and claim cores for this process
 * @framework: who calls
 * @fw_version: version of the framework; not read
 * @fal_version: version of the framework's adapter; not read
 *
 * Claims the cores of NEURON_RT_VISIBLE_CORES, or the first NEURON_RT_NUM_CORES
 * free ones, or all of them. Afterwards logical cores are numbered from 0 in that
 * order. May be called again after nrt_close().
 *
 * Return: NRT_SUCCESS; NRT_INVALID: no chip, a bad environment variable, or called
 * twice; NRT_FAILURE: a core belongs to another process; NRT_RESOURCE.
 */
NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
		    const char *fal_version);

/**
 * nrt_close() - release everything
 *
 * Models are unloaded and the memory of tensors is freed. Tensors, sets and models
 * that the caller still holds stay valid handles, to be freed as usual; every other
 * use of them fails. Waits for running executions. May be called when nrt_init()
 * failed, more than once, and from atexit().
 */
void nrt_close(void);

/**
 * nrt_get_total_nc_count() - logical cores of the machine
 * @vnc_count: set
 *
 * Needs no initialisation. Physical cores divided by NEURON_LOGICAL_NC_CONFIG.
 *
 * Return: NRT_SUCCESS; NRT_INVALID: no chip or a bad environment variable.
 */
NRT_STATUS nrt_get_total_nc_count(uint32_t *vnc_count);
/** nrt_get_total_vnc_count() - the same as nrt_get_total_nc_count() */
NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count);

/**
 * nrt_get_visible_nc_count() - logical cores this process may use
 * @vnc_count: set
 *
 * Needs no initialisation: then it is what nrt_init() would claim.
 *
 * Return: as nrt_get_total_nc_count().
 */
NRT_STATUS nrt_get_visible_nc_count(uint32_t *vnc_count);
/** nrt_get_visible_vnc_count() - the same as nrt_get_visible_nc_count() */
NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count);

/**
 * nrt_get_instance_info() - the machine
 * @info: filled, at most @instance_info_len bytes
 * @instance_info_len: sizeof(*info) as the caller knows it
 */
NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t instance_info_len);

/**
 * nrt_get_vnc_memory_stats() - device memory next to a logical core
 * @vnc: logical core, 0 to visible count - 1
 * @stats: filled, at most @stats_size_in bytes
 * @stats_size_in: sizeof(*stats) as the caller knows it
 * @stats_size_out: bytes written; may be NULL
 */
NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t *stats,
				    size_t stats_size_in, size_t *stats_size_out);

/* ---- models -------------------------------------------------------------------- */

/**
 * nrt_load() - load a program on a logical core
 * @neff_bytes: NEFF (Documentation/neff.rst); may be freed afterwards
 * @size: its bytes
 * @vnc: logical core, or -1: the one with the fewest models
 * @vnc_count: deprecated: -1 or 1
 * @model: set; end with nrt_unload()
 *
 * Return: NRT_SUCCESS; NRT_INVALID: malformed NEFF or no such core;
 * NRT_UNSUPPORTED_NEFF_VERSION: version, encoding or target; NRT_LOAD_NOT_ENOUGH_NC:
 * the NEFF wants more physical cores than a logical core has (NRT_INVALID: fewer);
 * NRT_RESOURCE: out of device memory; NRT_FAILURE: the chip cannot run programs.
 */
NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
		    nrt_model_t **model);

/**
 * nrt_unload() - free a model
 * @model: no longer valid afterwards. Waits for its executions
 */
NRT_STATUS nrt_unload(nrt_model_t *model);

/**
 * nrt_get_model_nc_count() - deprecated name of nrt_get_model_vnc_count()
 * @model: model
 * @vnc_count: set
 */
NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *vnc_count);

/**
 * nrt_get_model_vnc_count() - logical cores of a model
 * @model: model
 * @vnc_count: set; 1
 */
NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count);

/**
 * nrt_execute() - run a model once, and wait
 * @model: model
 * @input_set: a tensor of the right size for every input name; others are ignored
 * @output_set: the same for outputs. A tensor may be bound to an input and an output
 *
 * Executions of one logical core run in the order of the calls.
 *
 * Return: NRT_SUCCESS; NRT_EXEC_BAD_INPUT: input missing, or a tensor of the wrong
 * size; NRT_FAILURE: output missing; NRT_TIMEOUT: longer than
 * NEURON_RT_EXEC_TIMEOUT, or the program hangs; for faults the status in
 * uapi/neuron/fault.def. The core can be used again after every failure.
 */
NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *input_set,
		       nrt_tensor_set_t *output_set);

/**
 * nrt_execute_repeat() - run a model several times
 * @model: model
 * @input_set: as for nrt_execute()
 * @output_set: as for nrt_execute()
 * @repeat_count: runs, > 0; stops at the first that fails
 */
NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
			      nrt_tensor_set_t *output_set, int repeat_count);

/* ---- tensors --------------------------------------------------------------------- */

/**
 * nrt_tensor_allocate() - new tensor, zeroed
 * @tensor_placement: where
 * @vnc: logical core whose HBM is used; ignored for host and virtual tensors
 * @size: bytes, > 0
 * @name: for messages; copied; may be NULL
 * @tensor: set; end with nrt_tensor_free()
 *
 * Return: NRT_SUCCESS; NRT_INVALID; NRT_RESOURCE: out of memory (the log has a table
 * of what uses it).
 */
NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t tensor_placement, int vnc,
			       size_t size, const char *name, nrt_tensor_t **tensor);

/**
 * nrt_tensor_allocate_empty() - tensor without memory
 * @name: for messages; copied; may be NULL
 * @tensor: set; end with nrt_tensor_free()
 */
NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor);

/**
 * nrt_tensor_attach_buffer() - make host memory of the caller a tensor's memory
 * @tensor: from nrt_tensor_allocate_empty(), or virtual, or attached before
 * @buffer: must stay until the tensor is freed or attached elsewhere
 * @size: bytes, > 0; becomes the tensor's size
 */
NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size);

/**
 * nrt_tensor_allocate_slice() - window of a tensor; shares its memory
 * @tensor_source: may be freed before the slice
 * @offset: first byte
 * @size: bytes, > 0
 * @name: for messages; copied; may be NULL
 * @tensor_slice: set; end with nrt_tensor_free()
 */
NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset,
				     size_t size, const char *name,
				     nrt_tensor_t **tensor_slice);

/**
 * nrt_tensor_free() - drop a tensor
 * @tensor: set to NULL. The memory goes when no slice and no set uses it. NULL, and
 *	a pointer to NULL, are allowed; may be called after nrt_close()
 */
void nrt_tensor_free(nrt_tensor_t **tensor);

/**
 * nrt_tensor_read() - copy a tensor's bytes to host memory
 * @tensor: tensor
 * @buf: destination
 * @offset: first byte in the tensor
 * @size: bytes; 0 does nothing
 *
 * Return: NRT_SUCCESS; NRT_INVALID: outside the tensor.
 */
NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size);

/**
 * nrt_tensor_write() - copy host memory to a tensor
 * @tensor: tensor
 * @buf: source
 * @offset: first byte in the tensor
 * @size: bytes; 0 does nothing
 *
 * Return: NRT_SUCCESS; NRT_INVALID: outside the tensor.
 */
NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size);

/**
 * nrt_tensor_read_batch() - many nrt_tensor_read()
 * @batches: tensors and transfers
 * @num_batches: count
 * @unsafe: ignored: checks are always made, before the first transfer
 */
NRT_STATUS nrt_tensor_read_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches,
				 bool unsafe);

/**
 * nrt_tensor_write_batch() - many nrt_tensor_write()
 * @batches: tensors and transfers
 * @num_batches: count
 * @unsafe: ignored: checks are always made, before the first transfer
 */
NRT_STATUS nrt_tensor_write_batch(const nrt_tensor_batch_t *batches, uint64_t num_batches,
				  bool unsafe);

/**
 * nrt_tensor_copy() - copy between tensors, any placement
 * @src: source
 * @src_offset: first byte in @src
 * @dst: destination; ranges in the same memory must not overlap (NRT_INVALID)
 * @dst_offset: first byte in @dst
 * @size: bytes; 0 does nothing
 */
NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst,
			   size_t dst_offset, size_t size);

/**
 * nrt_tensor_memset() - fill with a byte
 * @tensor: tensor
 * @offset: first byte
 * @value: low 8 bits are used
 * @size: bytes; 0 does nothing
 */
NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size);

/**
 * nrt_tensor_get_size() - bytes of a tensor
 * @tensor: tensor
 *
 * Needs no initialisation.
 *
 * Return: bytes; 0 for an invalid handle or a tensor without memory.
 */
size_t nrt_tensor_get_size(const nrt_tensor_t *tensor);

/**
 * nrt_tensor_get_va() - address at which the CPU can read and write a tensor
 * @tensor: tensor
 *
 * Return: address, valid until the memory is freed or nrt_close(); NULL when there
 * is none.
 */
void *nrt_tensor_get_va(const nrt_tensor_t *tensor);

/* ---- tensor sets ------------------------------------------------------------------- */

/**
 * nrt_allocate_tensor_set() - new, empty set
 * @result: set; end with nrt_destroy_tensor_set()
 */
NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result);

/**
 * nrt_destroy_tensor_set() - free a set, not its tensors
 * @tensor_set: set to NULL. NULL and a pointer to NULL are allowed; may be called
 *	after nrt_close()
 */
void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set);

/**
 * nrt_add_tensor_to_tensor_set() - add or replace
 * @tensor_set: set
 * @tensor_name: 1 to 255 bytes; copied
 * @tensor: its memory stays as long as it is in the set
 */
NRT_STATUS nrt_add_tensor_to_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					nrt_tensor_t *tensor);

/**
 * nrt_get_tensor_from_tensor_set() - look up
 * @tensor_set: set
 * @tensor_name: name
 * @tensor: set to the tensor that was added; no new reference
 *
 * Return: NRT_SUCCESS; NRT_FAILURE: no such name.
 */
NRT_STATUS nrt_get_tensor_from_tensor_set(nrt_tensor_set_t *tensor_set, const char *tensor_name,
					  nrt_tensor_t **tensor);

#ifdef __cplusplus
}
#endif

#endif /* NRT_NRT_H */
