// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "libnrt_version.h"

NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size)
{
	nrt_version_t version = {
		.rt_major = NRT_MAJOR_VERSION,
		.rt_minor = NRT_MINOR_VERSION,
	};

	if (!ver || !size)
		return NRT_INVALID;
	snprintf(version.rt_detail, sizeof(version.rt_detail), "neuron-accel %s", LIBNRT_VERSION);
	snprintf(version.git_hash, sizeof(version.git_hash), "%s", LIBNRT_GIT_HASH);
	memcpy(ver, &version, size < sizeof(version) ? size : sizeof(version));
	return NRT_SUCCESS;
}
