/* SPDX-License-Identifier: MIT */
/* Names of isa.def, both ways: what the assembler and the disassembler share. */
#ifndef NKI_ISA_TEXT_H
#define NKI_ISA_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "neuron/isa.h"

#define ISA_PSUM_TEXT_BASE	0x2000000u	/* where the profiler shows PSUM */

enum {
	ISA_PE = 1 << NEURON_ENGINE_PE,
	ISA_ACT = 1 << NEURON_ENGINE_ACT,
	ISA_POOL = 1 << NEURON_ENGINE_POOL,
	ISA_DVE = 1 << NEURON_ENGINE_DVE,
	ISA_SP = 1 << NEURON_ENGINE_SP,
	ISA_ALL = ISA_PE | ISA_ACT | ISA_POOL | ISA_DVE | ISA_SP | 1 << NEURON_ENGINE_CC,
};

/* A row of isa.def. */
struct isa_text_row {
	unsigned int opcode;
	const char *name, *text;
	unsigned int engines, min_nc, words;
	const char *aps, *types, *ops;
	unsigned int imms;
	const char *aux;
};

/* What the words after the first are. */
enum isa_second {
	ISA_SECOND_NONE,
	ISA_SECOND_EXT,		/* struct neuron_insn_ext */
	ISA_SECOND_DMA,		/* struct neuron_dma_operand, dst first */
	ISA_SECOND_HBM,		/* one struct neuron_dma_operand, a word of HBM */
};

const struct isa_text_row *isa_text_row(unsigned int opcode);
const struct isa_text_row *isa_text_find(const char *text, size_t len);
enum isa_second isa_text_second(unsigned int opcode);

/* NULL, or a negative number: there is none. */
const char *isa_text_dtype(unsigned int dtype, char *buf, size_t size);	/* short: fp32, bf16 */
int isa_text_find_dtype(const char *text, size_t len);	/* short or as in isa.def */
const char *isa_text_alu(unsigned int op);
int isa_text_find_alu(const char *text, size_t len);
const char *isa_text_act(unsigned int op);
int isa_text_find_act(const char *text, size_t len);

/* Bit of a flag by number, 0 after the last; perf_mode's two bits are not among them. */
unsigned int isa_text_flag(unsigned int n, const char **text);

/*
 * Name of access pattern (kind 'a'), immediate 'i' or operator 'o' number slot.
 */
const char *isa_text_key(unsigned int opcode, char kind, unsigned int slot);

/* Is the operator printed as an activation function, an ALU operator or a number? */
char isa_text_op_kind(const struct isa_text_row *row, unsigned int slot);

/* MX operands are shown with their scales. */
bool isa_text_is_mx(unsigned int opcode);

/* Does access pattern @slot describe numbers, without memory? */
bool isa_text_is_pattern(unsigned int opcode, unsigned int slot);

#endif /* NKI_ISA_TEXT_H */
