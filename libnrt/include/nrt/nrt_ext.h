/* SPDX-License-Identifier: MIT */
/*
 * Extensions of this implementation, prefix nrtx_: nothing here exists in AWS's
 * runtime. The rules at the top of nrt/nrt.h hold.
 *
 * Modelled times are what the chip model computes; they are no measurement of
 * hardware.
 */
#ifndef NRT_NRT_EXT_H
#define NRT_NRT_EXT_H

#include "nrt/nrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of nrtx_model_set_flags(). */
#define NRTX_STRICT		(1u << 0) /* check races, uninitialised reads, limits */
#define NRTX_JITTER		(1u << 1) /* vary every modelled latency by the seed */
#define NRTX_STOCHASTIC_ROUNDING (1u << 2)
#define NRTX_FLAGS		0x7u

#define NRTX_PATH_MAX		256

/**
 * struct nrtx_source - an instruction in the program's source
 * @file: "" when unknown
 * @function: builder function that emitted it, e.g. "nki_nc_matmul"
 * @line: 0 when unknown
 * @pc: 128-byte word in the engine's stream; only of the faulting instruction
 * @core: program core
 * @engine: enum neuron_engine (uapi/neuron/regs.h)
 */
typedef struct nrtx_source {
	char file[NRTX_PATH_MAX];
	char function[NRTX_PATH_MAX];
	uint32_t line;
	uint32_t pc;
	uint32_t core;
	uint32_t engine;
} nrtx_source_t;

/**
 * struct nrtx_execution - how an execution went
 * @status: what nrt_execute() returned
 * @fault: enum neuron_fault (uapi/neuron/regs.h), 0: none
 * @modelled_ns: modelled length
 * @wall_ns: wall time on the core
 * @instructions: retired
 * @seqno: number of the execution on its logical core
 * @fault_at: instruction that faulted, when @fault
 * @fault_other: data race: the other access
 * @fault_record: struct neuron_fault_record
 * @fault_text: one line that describes the fault
 */
typedef struct nrtx_execution {
	NRT_STATUS status;
	uint32_t fault;
	uint64_t modelled_ns;
	uint64_t wall_ns;
	uint64_t instructions;
	uint64_t seqno;
	nrtx_source_t fault_at;
	nrtx_source_t fault_other;
	uint8_t fault_record[64];
	char fault_text[1024];
} nrtx_execution_t;

/**
 * nrtx_get_last_execution() - how a model's last execution went
 * @model: model
 * @execution: filled, at most @size bytes
 * @size: sizeof(*execution) as the caller knows it
 *
 * With several threads on one model: the one that ended last.
 *
 * Return: NRT_SUCCESS; NRT_FAILURE: it has not been executed.
 */
NRT_STATUS nrtx_get_last_execution(nrt_model_t *model, nrtx_execution_t *execution, size_t size);

/**
 * nrtx_model_set_flags() - how a model's next executions run
 * @model: model
 * @flags: NRTX_*; replaces what the environment set. Others are NRT_INVALID
 * @seed: of random numbers and jitter
 */
NRT_STATUS nrtx_model_set_flags(nrt_model_t *model, uint32_t flags, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif /* NRT_NRT_EXT_H */
