/* SPDX-License-Identifier: MIT */
/*
 * Strict mode: what real hardware does not check. The executor calls these only
 * when the job asked for it. Each ends the job with a fault when it finds a
 * violation.
 */
#ifndef NEURON_CHIP_CHECK_H
#define NEURON_CHIP_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "exec.h"
#include "neuron/isa.h"

struct check_job;
struct exec;
struct exec_core;
struct opnd;
struct stream;
struct update;
struct xfer;

/* Job start: everything on chip is unwritten, no thread knows of another. */
bool check_begin(struct exec *x);
void check_job_free(struct check_job *j);
/* A wait that holds, before its value is taken: @s learns what the updates carried. */
void check_wait(struct stream *s, const struct neuron_wait *w, uint32_t value);
/* An update has arrived. */
void check_arrive(struct exec *x, struct exec_core *c, const struct update *u);
/* What update @u of the current instruction of @s carries to program core @core. */
uint32_t check_message(struct stream *s, unsigned int core, const struct neuron_update *u,
		       bool at_read);
/* READ and WRITE: a word of HBM. False: faulted. */
bool check_hbmreg(struct stream *s);
/* The current instruction of @s starts: its operands. False: faulted. */
bool check_insn(struct stream *s);
/* A transfer is issued, starts (false: faulted), and sends its update. */
uint32_t check_xfer_issue(struct stream *s);
bool check_xfer_start(struct exec *x, struct exec_core *c, struct xfer *t);
uint32_t check_xfer_message(struct exec *x, struct exec_core *c, struct xfer *t);

#endif /* NEURON_CHIP_CHECK_H */
