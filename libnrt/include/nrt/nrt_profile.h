/* SPDX-License-Identifier: MIT */
/*
 * Traces of executions. The file is this project's own container
 * (Documentation/profile-file.rst), not NTFF, whose format is not public.
 * The rules at the top of nrt/nrt.h hold.
 */
#ifndef NRT_NRT_PROFILE_H
#define NRT_NRT_PROFILE_H

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * nrt_profile_start() - trace a model's next executions
 * @model: model
 * @filename: where nrt_profile_stop() will write. At most
 *	NEURON_RT_PROFILE_BUF_EVENT_MB of records are kept; what is dropped is counted
 *
 * Return: NRT_SUCCESS; NRT_INVALID: already traced; NRT_RESOURCE.
 */
NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename);

/**
 * nrt_profile_stop() - write the trace and stop
 * @filename: as given to nrt_profile_start()
 *
 * Return: NRT_SUCCESS; NRT_INVALID: no trace of that name; NRT_FAILURE: the file
 * could not be written (the log says why).
 */
NRT_STATUS nrt_profile_stop(const char *filename);

#ifdef __cplusplus
}
#endif

#endif /* NRT_NRT_PROFILE_H */
