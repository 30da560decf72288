/* SPDX-License-Identifier: MIT */
/* The other direction of disasm.h: from text to words, and whole programs. */
#ifndef NKI_ASM_H
#define NKI_ASM_H

#include <stdbool.h>
#include <stddef.h>

#include "neuron/isa.h"

struct neff;

/**
 * struct nki_asm_insn - an assembled instruction
 * @word: its words, little-endian
 * @words: how many
 * @label: name given as target, "" if none: aux is to be set by the caller
 * @has_line: "line=" was given
 */
struct nki_asm_insn {
	struct neuron_insn word[NEURON_INSN_MAX_WORDS];
	unsigned int words;
	char label[64];
	bool has_line;
};

/**
 * nki_asm() - assemble one instruction
 * @text: syntax of nki_disasm_line(); ends with 0
 * @insn: written
 * @error: on failure, what is wrong and what is allowed
 * @size: bytes at @error
 *
 * Fields that the text does not name are 0, registers of access patterns none.
 *
 * Return: 0 or -EINVAL.
 */
int nki_asm(const char *text, struct nki_asm_insn *insn, char *error, size_t size);

/**
 * nki_asm_file() - assemble a program
 * @path: of the source, for messages, the line table and .incbin
 * @text: its bytes; ends with 0
 * @neff: set on success; end with nki_asm_free()
 * @error: on failure "file:line: rule"
 * @size: bytes at @error
 *
 * Documentation/tools/neuron-as.rst describes the directives.
 *
 * Return: 0, -EINVAL, -ENOMEM, or the errno of reading an .incbin file.
 */
int nki_asm_file(const char *path, const char *text, struct neff **neff, char *error, size_t size);
void nki_asm_free(struct neff *neff);

#endif /* NKI_ASM_H */
