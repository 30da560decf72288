/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the part above the seam (model/chip/exec.h): an address space that
 * is one buffer, and jobs built by hand.
 */
#ifndef TEST_FAKE_VM_H
#define TEST_FAKE_VM_H

#include "exec.h"
#include "neuron/isa.h"

#define VM_BASE		0x100000000ull
#define VM_SIZE		(64ull << 20)

/**
 * struct chip_vm - the fake address space [VM_BASE, VM_BASE + VM_SIZE)
 * @mem: its bytes
 * @direct: chip_vm_hbm() gives pointers; else it is "host memory"
 * @contiguous: bytes that a pointer covers at most; a power of two
 * @hole: [hole, hole + hole_size) is not mapped
 * @read_only: the same for writes
 * @polls: calls of chip_job_poll()
 * @poll_limit: when not 0, the poll flag stays set and that many polls abort the job
 */
struct chip_vm {
	uint8_t *mem;
	bool direct;
	uint64_t contiguous;
	uint64_t hole, hole_size;
	uint64_t read_only, read_only_size;
	unsigned int polls;
	unsigned int poll_limit;
};

struct chip_vm *vm_new(void);
void vm_free(struct chip_vm *vm);
/* Host address of @va. */
void *vm_at(struct chip_vm *vm, uint64_t va);

/* --- programs ---------------------------------------------------------------------- */

#define PROG_WORDS	4096

/**
 * struct prog - a program and its job under construction
 * @word: by core and engine
 */
struct prog {
	struct chip_vm *vm;
	unsigned int nc_version;
	unsigned int cores;
	struct chip_core *core[NEURON_MAX_CORES];
	struct {
		unsigned int n;
		struct neuron_insn word[PROG_WORDS];
	} *stream[NEURON_MAX_CORES][NEURON_ENGINE_COUNT];
	struct neuron_arg arg[64];
	unsigned int args;
	uint64_t next_va;
	uint32_t flags;
	uint64_t seed;
	uint64_t trace_va, trace_size;
	atomic_bool abort, poll;
	atomic_uint_least64_t retired;
	void (*notify)(struct chip_job *job, const struct chip_notify *n);
	struct chip_job job;
};

struct prog *prog_new(unsigned int nc_version, unsigned int cores);
void prog_free(struct prog *p);
/* An empty program again; memory and cores stay. */
void prog_reset(struct prog *p);
/* A tensor in device memory; returns the argument's number. */
unsigned int prog_arg(struct prog *p, uint64_t size, uint32_t access);
void *prog_arg_mem(struct prog *p, unsigned int arg);
/* Appends one instruction of one word, or with its two DMA words. Returns its pc. */
unsigned int prog_add(struct prog *p, unsigned int core, unsigned int engine,
		      const struct neuron_insn *insn);
unsigned int prog_dma(struct prog *p, unsigned int core, unsigned int engine,
		      const struct neuron_insn *insn, const struct neuron_dma_operand *dst,
		      const struct neuron_dma_operand *src);
/* The same with any number of further words. */
unsigned int prog_words(struct prog *p, unsigned int core, unsigned int engine,
			const struct neuron_insn *insn, const void *words, unsigned int n);
/* Writes the program to memory and runs it. Returns enum neuron_fault. */
unsigned int prog_run(struct prog *p);
/* The n-th trace record of @opcode in the row of a core's engine, or NULL. */
const struct neuron_trace_record *prog_record(struct prog *p, unsigned int core,
					      unsigned int engine, unsigned int opcode,
					      unsigned int n);

/* --- instructions ------------------------------------------------------------------- */

struct neuron_ap ap_none(void);
/* @parts partitions of @n contiguous elements. */
struct neuron_ap ap_row(unsigned int space, unsigned int dtype, unsigned int part,
			unsigned int parts, uint32_t offset, unsigned int n);
struct neuron_insn insn_new(unsigned int opcode);
struct neuron_imm imm_f32(float value);
struct neuron_imm imm_i32(int32_t value);
struct neuron_imm imm_reg(unsigned int reg, unsigned int dtype);
struct neuron_imm imm_vec(unsigned int space, unsigned int dtype, unsigned int part, uint32_t offset);
struct neuron_wait wait_ge(unsigned int sem, unsigned int value);
struct neuron_wait wait_sub(unsigned int sem, unsigned int value);
struct neuron_update update_add(unsigned int sem, unsigned int value);
struct neuron_dma_operand dma_sbuf(void);
/* @rows rows of @n contiguous elements, @row_stride bytes apart. */
struct neuron_dma_operand dma_hbm(unsigned int arg, unsigned int dtype, uint64_t offset,
				  unsigned int n, unsigned int rows, int64_t row_stride);

/* Host access to SBUF of a core through its aperture. */
void sbuf_put(struct chip_core *core, unsigned int part, uint32_t offset, const void *buf, size_t len);
void sbuf_get(struct chip_core *core, unsigned int part, uint32_t offset, void *buf, size_t len);

#endif /* TEST_FAKE_VM_H */
