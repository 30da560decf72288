/* SPDX-License-Identifier: MIT */
/*
 * Analysis of a profile file (Documentation/profile-file.rst) and its text
 * timeline. Used by neuron-profile and by examples. All times are modelled.
 *
 * Threads: no global state.
 */
#ifndef TOOLS_PROFILE_VIEW_H
#define TOOLS_PROFILE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile_file.h"

#define PROFILE_STALLS	3

/**
 * struct profile_use - what an engine did in the window, in ticks
 * @busy: it worked
 * @waiting: its next instruction was there and waited
 * @wait_on: @waiting by the engine that ended the wait; [0]: its own pipeline and
 *	fixed latencies; [NEURON_ENGINE_COUNT]: memory shared with another engine
 * @idle: nothing to do
 * @instructions: started in the window
 */
struct profile_use {
	uint64_t busy;
	uint64_t waiting;
	uint64_t wait_on[NEURON_ENGINE_COUNT + 1];
	uint64_t idle;
	uint64_t instructions;
};

/**
 * struct profile_stall - waits of one instruction of the source
 * @ticks: their sum in the window
 * @times: how many
 * @record: the longest of them
 */
struct profile_stall {
	uint64_t ticks;
	uint64_t times;
	const struct neuron_trace_record *record;
};

/**
 * struct profile_summary - one window of one core
 * @from, @to: ticks
 * @use: by enum neuron_engine; NEURON_ENGINE_DMA: any transfer under way
 * @stall: the costliest first: waits times the share of the window that their engine
 *	works; waits for the own pipeline are none
 * @stalls: entries
 * @macs: multiply-accumulates
 * @mac_peak: what the systolic array can do in the window at one bf16 row a cycle
 * @dma_bytes: moved
 * @dma_peak: what the 16 DMA engines can move in the window
 */
struct profile_summary {
	uint64_t from;
	uint64_t to;
	struct profile_use use[NEURON_ENGINE_COUNT];
	struct profile_stall stall[PROFILE_STALLS];
	unsigned int stalls;
	double macs;
	double mac_peak;
	double dma_bytes;
	double dma_peak;
};

/**
 * struct profile_path - the critical path of an execution: back from what ended last,
 *	each time to whoever decided when it could start
 * @steps: records on it
 * @ticks: its length
 * @work: by enum neuron_engine: ticks of work on it
 * @latency: ticks of fixed latencies on it: triggers, semaphores, write drains
 * @top: source instructions that take most of it, the longest first
 */
struct profile_path {
	uint64_t steps;
	uint64_t ticks;
	uint64_t work[NEURON_ENGINE_COUNT];
	uint64_t latency;
	struct {
		const struct neuron_trace_record *record;
		uint64_t ticks;
		uint64_t times;
	} top[PROFILE_STALLS];
};

/**
 * struct profile_view - what to look at and how to print it
 * @execution: index in the file
 * @core: program core
 * @from, @to: window in ticks; @to 0: the end
 * @width: columns of a bar, 10 to 400; 0: 60
 * @utf8: block characters, else ASCII
 * @colour: ANSI colours
 */
struct profile_view {
	size_t execution;
	unsigned int core;
	uint64_t from;
	uint64_t to;
	unsigned int width;
	bool utf8;
	bool colour;
};

/**
 * profile_summarize() - analyse a window
 *
 * Return: 0; -ENOENT: no such execution, core or window; -ENOMEM.
 */
int profile_summarize(const struct profile_file *file, const struct profile_view *view,
		      struct profile_summary *summary);

/**
 * profile_print() - timeline, shares and stalls of a window as text
 *
 * Return: as profile_summarize().
 */
int profile_print(const struct profile_file *file, const struct profile_view *view, FILE *out);

/**
 * profile_critical_path() - of a whole execution, over all its cores
 *
 * Return: 0; -ENOENT: no such execution, or it has no records; -ENOMEM.
 */
int profile_critical_path(const struct profile_file *file, size_t execution,
			  struct profile_path *path);

/**
 * profile_find_step() - window between two runs of a source line
 * @file_name: as in the line table, or its end ("mnist.c"); NULL: any
 * @line: line of an instruction that runs once a step
 * @step: 0 is from its first start to its second
 * @view: execution and core in; @from and @to out
 *
 * The last step ends with the execution.
 * Return: 0, or -ENOENT: the line did not run that often.
 */
int profile_find_step(const struct profile_file *file, const char *file_name, uint32_t line,
		      unsigned int step, struct profile_view *view);

/**
 * profile_bound() - what limits the window: the engine that is busy longest
 *
 * Return: static text such as "PE" or "DMA".
 */
const char *profile_bound(const struct profile_summary *summary);

/* "PE", "ACT", ... of enum neuron_engine, or "?". */
const char *profile_engine_name(unsigned int engine);

double profile_ticks_to_us(uint64_t ticks);

#endif /* TOOLS_PROFILE_VIEW_H */
