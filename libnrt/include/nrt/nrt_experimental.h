/* SPDX-License-Identifier: MIT */
/*
 * Neuron Runtime API, second part: what the public API keeps in this header.
 * The rules at the top of nrt/nrt.h hold.
 */
#ifndef NRT_NRT_EXPERIMENTAL_H
#define NRT_NRT_EXPERIMENTAL_H

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NRT_TENSOR_NAME_MAX	256

typedef enum nrt_tensor_usage {
	NRT_TENSOR_USAGE_INPUT = 0,
	NRT_TENSOR_USAGE_OUTPUT = 1,
} nrt_tensor_usage_t;

typedef enum nrt_dtype {
	NRT_DTYPE_UNKNOWN = 0x0,
	NRT_DTYPE_UINT64 = 0x1,
	NRT_DTYPE_INT8 = 0x2,
	NRT_DTYPE_UINT8 = 0x3,
	NRT_DTYPE_INT16 = 0x4,
	NRT_DTYPE_UINT16 = 0x5,
	NRT_DTYPE_BFLOAT16 = 0x6,
	NRT_DTYPE_FLOAT16 = 0x7,
	NRT_DTYPE_INT32 = 0x8,
	NRT_DTYPE_UINT32 = 0x9,
	NRT_DTYPE_FLOAT32 = 0xA,
	NRT_DTYPE_FP32R = 0xB,
	NRT_DTYPE_INT64 = 0xC,
	NRT_DTYPE_FP8_E3 = 0xD,
	NRT_DTYPE_FP8_E4 = 0xE,
	NRT_DTYPE_FP8_E5 = 0xF,
} nrt_dtype_t;

/**
 * struct nrt_tensor_info - an input or output of a model
 * @name: key for tensor sets
 * @usage: input or output
 * @size: bytes
 * @dtype: 8-bit floats are reported as NRT_DTYPE_INT8, as the public runtime does
 * @shape: elements by dimension, outermost first
 * @ndim: dimensions
 */
typedef struct nrt_tensor_info {
	char name[NRT_TENSOR_NAME_MAX];
	nrt_tensor_usage_t usage;
	size_t size;
	nrt_dtype_t dtype;
	uint32_t *shape;
	uint32_t ndim;
} nrt_tensor_info_t;

/**
 * struct nrt_tensor_info_array - inputs, then outputs, each by argument number
 * @tensor_count: entries
 * @tensor_array: them
 */
typedef struct nrt_tensor_info_array {
	uint64_t tensor_count;
#ifdef __cplusplus
	nrt_tensor_info_t tensor_array[1];	/* C++ has no flexible arrays */
#else
	nrt_tensor_info_t tensor_array[];
#endif
} nrt_tensor_info_array_t;

/**
 * struct nrt_model_info - where a model is
 * @vnc: logical core
 */
typedef struct nrt_model_info {
	uint32_t vnc;
} nrt_model_info_t;

/**
 * nrt_get_model_tensor_info() - inputs and outputs of a model
 * @model: model
 * @tensor_info: set; free with nrt_free_model_tensor_info()
 */
NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model, nrt_tensor_info_array_t **tensor_info);

/**
 * nrt_free_model_tensor_info() - free what nrt_get_model_tensor_info() gave
 * @tensor_info: NULL is allowed; may be called after nrt_close()
 */
NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info);

/**
 * nrt_get_model_instance_count() - instances of a model
 * @model: model
 * @instance_count: set; 1
 */
NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count);

/**
 * nrt_get_model_info() - where a model is
 * @model: model
 * @info: filled, at most @info_size_in bytes
 * @info_size_in: sizeof(*info) as the caller knows it
 * @info_size_out: bytes written; may be NULL
 */
NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info,
			      size_t info_size_in, size_t *info_size_out);

/**
 * nrt_memcpy_to_device() - CPU copy to memory that nrt_tensor_get_va() gave
 * @dest: in a mapped tensor
 * @src: host memory
 * @size: bytes
 */
NRT_STATUS nrt_memcpy_to_device(void *dest, const void *src, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* NRT_NRT_EXPERIMENTAL_H */
