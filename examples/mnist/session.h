/* SPDX-License-Identifier: MIT */
/*
 * What the example needs of libnrt: a program on a core, its tensors, executions.
 */
#ifndef MNIST_SESSION_H
#define MNIST_SESSION_H

#include "nki.h"
#include "nrt/nrt.h"
#include "nrt/nrt_ext.h"

enum { MAX_TENSORS = 12 };

struct program {
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *tensor[MAX_TENSORS];
	unsigned int tensors;
};

/* Start the runtime; @arch is set to the chip's name. 0 or -1 (said why). */
int session_open(char arch[16]);
void session_close(void);

/* Build @kernel, free it and load the program. 0 or -1. */
int program_load(struct program *p, struct nki_kernel *kernel);
void program_unload(struct program *p);

/**
 * program_tensor() - device memory, bound to the program
 * @input: name of the input, or NULL
 * @output: name of the output, or NULL; with both, the program's output is its next
 *	input
 * @size: bytes
 * @data: written to it; NULL: it starts as zeros
 *
 * Return: the tensor, freed with the program; NULL: failed (said why).
 */
nrt_tensor_t *program_tensor(struct program *p, const char *input, const char *output,
			     size_t size, const void *data);

int tensor_write(nrt_tensor_t *t, const void *data, size_t size);
int tensor_read(const nrt_tensor_t *t, void *data, size_t size);

/* One execution; a failure is said with the fault's text. 0 or -1. */
int program_execute(struct program *p);
/* Modelled nanoseconds of the last execution. */
uint64_t program_modelled_ns(const struct program *p);

#endif /* MNIST_SESSION_H */
