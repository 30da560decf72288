/* SPDX-License-Identifier: MIT */
/*
 * What the tests of instructions share: one program at a time, tiles in SBUF, and
 * references in double. core_insn_*.c are linked into core_insn.
 */
#ifndef TESTS_CORE_INSN_H
#define TESTS_CORE_INSN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The harness is made for one file: each that includes it defines these. */
#pragma weak __active_test
#pragma weak __wait_for_test
#pragma weak __run_test
#pragma weak _fixture_global
#include <kselftest_harness.h>

#include "fake_vm.h"
#include "numeric.h"

#define SBUF	NEURON_SPACE_SBUF
#define PSUM	NEURON_SPACE_PSUM
#define F32	NEURON_DTYPE_FLOAT32
#define BF16	NEURON_DTYPE_BFLOAT16
#define I32	NEURON_DTYPE_INT32
#define U8	NEURON_DTYPE_UINT8
#define DVE	NEURON_ENGINE_DVE
#define ACT	NEURON_ENGINE_ACT
#define POOL	NEURON_ENGINE_POOL
#define SP	NEURON_ENGINE_SP
#define PE	NEURON_ENGINE_PE

/* Offsets of tiles in every partition, far enough apart. */
#define A	0x0000
#define B	0x4000
#define C	0x8000
#define D	0xc000

#define MAX_N	1024

typedef double tile[128][MAX_N];
typedef struct __test_metadata meta;

extern tile a, b, c, want, got;
extern struct prog *p;
extern uint64_t rng;

double uniform(double lo, double hi);
/* Random values in SBUF, as @t has them after rounding. */
void fill(tile t, unsigned int dtype, unsigned int part, unsigned int parts, uint32_t offset,
	  unsigned int n, double lo, double hi);
void fetch(tile t, unsigned int dtype, unsigned int part, unsigned int parts, uint32_t offset,
	   unsigned int n);
/* |got - want| <= tol * max(1, |want|) for every element. */
void compare(meta *_metadata, unsigned int parts, unsigned int n, double tol);
void run(meta *_metadata);
void expect_fault(meta *_metadata, unsigned int code);
/* An empty program for a core of this version; the same on that or the later one that is
 * tested now: each row's test runs once for every generation. */
void start(unsigned int nc_version);
void start_since(unsigned int nc_version);
struct neuron_ap row(unsigned int dtype, unsigned int parts, uint32_t offset, unsigned int n);
/* A register's value, where stored() finds it. */
void store_reg(unsigned int engine, unsigned int reg, uint32_t offset);
int32_t stored(uint32_t offset);
void move_reg(unsigned int engine, unsigned int reg, int32_t value);
/* PSUM at @from to SBUF at @to, for fetch(). */
void drain(unsigned int dtype, unsigned int parts, uint32_t from, uint32_t to, unsigned int n);

/* Not of one row: indirect operands; rows where they do not exist. */
void insn_indirect(meta *_metadata);
void insn_absent(meta *_metadata);

#define NEURON_INSN(code, name, text, eng, nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	void row_##name(meta *_metadata);
#include "neuron/isa.def"

#endif /* TESTS_CORE_INSN_H */
