/* SPDX-License-Identifier: MIT */
/* Instructions as text, in the operand syntax of the published profiler. */
#ifndef NKI_DISASM_H
#define NKI_DISASM_H

#include <stdbool.h>
#include <stddef.h>

/**
 * nki_disasm() - describe one instruction
 * @words: 128-byte words of a stream, from the instruction on; any bytes
 * @count: words there, at least 1
 * @text: written, always ended with 0 and without newline
 * @size: bytes at @text; 4096 hold every instruction
 *
 * Syntax: opcode, operator, waits ("$S[4]>=16" and, when the wait takes what it
 * waited for, "$S[4]>=16-"), update ("$S[8]++@complete", "$S[8]+=16@complete"),
 * operands "name=type@address[steps][nums]" with the innermost dimension first,
 * "channels=" partitions. Addresses are bytes in a partition, those of PSUM from
 * 0x2000000 on; "+p32" names a first partition that is not 0; "r5" is a register.
 *
 * Return: words of the instruction, 1 for an unknown one; never more than @count.
 */
size_t nki_disasm(const void *words, size_t count, char *text, size_t size);

/* The same; with @line and a debug_id that is not 0, "line=" shows it. */
size_t nki_disasm_line(const void *words, size_t count, bool line, char *text, size_t size);

/**
 * nki_disasm_opcode() - name of an opcode
 *
 * Return: as in isa.def, or NULL.
 */
const char *nki_disasm_opcode(unsigned int opcode);

#endif /* NKI_DISASM_H */
