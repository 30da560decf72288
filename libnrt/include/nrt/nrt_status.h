/* SPDX-License-Identifier: MIT */
/*
 * Status codes of libnrt. Names and values are those of the public Neuron
 * Runtime documentation (troubleshooting guide, API reference) and ABI.
 */
#ifndef NRT_NRT_STATUS_H
#define NRT_NRT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum NRT_STATUS - what a function returns
 * @NRT_SUCCESS: done
 * @NRT_FAILURE: no more specific code: name not in a set, cores not available
 * @NRT_INVALID: bad argument, NEFF or program
 * @NRT_INVALID_HANDLE: NULL or not an object of this library
 * @NRT_RESOURCE: memory, device memory or another resource is exhausted
 * @NRT_TIMEOUT: execution did not end in NEURON_RT_EXEC_TIMEOUT, or hangs
 * @NRT_HW_ERROR: the device failed
 * @NRT_QUEUE_FULL: asynchronous queue is full
 * @NRT_LOAD_NOT_ENOUGH_NC: the model needs more cores than there are
 * @NRT_UNSUPPORTED_NEFF_VERSION: version, feature, encoding or target of a NEFF
 * @NRT_FAIL_HOST_MEM_ALLOC: not returned (NRT_RESOURCE is)
 * @NRT_UNINITIALIZED: before nrt_init()
 * @NRT_CLOSED: after nrt_close()
 * @NRT_QUEUE_EMPTY: nothing to read
 * @NRT_EXEC_UNIT_UNRECOVERABLE: the core could not be recovered
 * @NRT_EXEC_BAD_INPUT: a tensor is missing or has the wrong size
 * @NRT_EXEC_COMPLETED_WITH_NUM_ERR: a NaN was produced
 * @NRT_EXEC_COMPLETED_WITH_ERR: logical error, e.g. semaphore misuse, data race
 * @NRT_EXEC_NC_BUSY: the core belongs to another process
 * @NRT_EXEC_OOB: indirect access out of bounds
 * @NRT_COLL_PENDING: a collective is pending
 * @NRT_EXEC_HW_ERR_COLLECTIVES: stuck in a collective
 * @NRT_EXEC_HW_ERR_HBM_UE: uncorrectable HBM error
 * @NRT_EXEC_HW_ERR_NC_UE: uncorrectable SRAM error
 * @NRT_EXEC_HW_ERR_DMA_ABORT: a DMA engine aborted
 * @NRT_EXEC_SW_NQ_OVERFLOW: notification queue overflow
 * @NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE: uncorrectable HBM error that can be repaired
 * @NRT_NETWORK_PROXY_FAILURE: network proxy failed
 */
typedef enum {
	NRT_SUCCESS = 0,
	NRT_FAILURE = 1,
	NRT_INVALID = 2,
	NRT_INVALID_HANDLE = 3,
	NRT_RESOURCE = 4,
	NRT_TIMEOUT = 5,
	NRT_HW_ERROR = 6,
	NRT_QUEUE_FULL = 7,
	NRT_LOAD_NOT_ENOUGH_NC = 9,
	NRT_UNSUPPORTED_NEFF_VERSION = 10,
	NRT_FAIL_HOST_MEM_ALLOC = 11,
	NRT_UNINITIALIZED = 13,
	NRT_CLOSED = 14,
	NRT_QUEUE_EMPTY = 15,
	NRT_EXEC_UNIT_UNRECOVERABLE = 101,
	NRT_EXEC_BAD_INPUT = 1002,
	NRT_EXEC_COMPLETED_WITH_NUM_ERR = 1003,
	NRT_EXEC_COMPLETED_WITH_ERR = 1004,
	NRT_EXEC_NC_BUSY = 1005,
	NRT_EXEC_OOB = 1006,
	NRT_COLL_PENDING = 1100,
	NRT_EXEC_HW_ERR_COLLECTIVES = 1200,
	NRT_EXEC_HW_ERR_HBM_UE = 1201,
	NRT_EXEC_HW_ERR_NC_UE = 1202,
	NRT_EXEC_HW_ERR_DMA_ABORT = 1203,
	NRT_EXEC_SW_NQ_OVERFLOW = 1204,
	NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE = 1205,
	NRT_NETWORK_PROXY_FAILURE = 1206,
} NRT_STATUS;

/**
 * nrt_get_status_as_str() - name of a status
 * @status: any value
 *
 * Needs no initialisation; any thread.
 *
 * Return: static string, the enumerator's name, or "NRT_STATUS_UNKNOWN".
 */
const char *nrt_get_status_as_str(NRT_STATUS status);

#ifdef __cplusplus
}
#endif

#endif /* NRT_NRT_STATUS_H */
