/* SPDX-License-Identifier: MIT */
/* Version of libnrt; layout of the public ABI (224 bytes). */
#ifndef NRT_NRT_VERSION_H
#define NRT_NRT_VERSION_H

#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RT_VERSION_DETAIL_LEN	128
#define GIT_HASH_LEN		64

/**
 * struct nrt_version - version
 * @rt_major: 2: of the API that is implemented
 * @rt_minor: of the API
 * @rt_patch: of the API
 * @rt_maintenance: of the API
 * @rt_detail: name and version of this implementation
 * @git_hash: commit it was built from, or ""
 */
typedef struct nrt_version {
	uint64_t rt_major;
	uint64_t rt_minor;
	uint64_t rt_patch;
	uint64_t rt_maintenance;
	char rt_detail[RT_VERSION_DETAIL_LEN];
	char git_hash[GIT_HASH_LEN];
} nrt_version_t;

/**
 * nrt_get_version() - version of the library
 * @ver: filled, at most @size bytes
 * @size: sizeof(*ver) as the caller knows it
 *
 * Needs no initialisation; any thread.
 *
 * Return: NRT_SUCCESS, or NRT_INVALID for NULL or a size of 0.
 */
NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* NRT_NRT_VERSION_H */
