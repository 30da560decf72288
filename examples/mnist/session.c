// SPDX-License-Identifier: MIT
/*
 * libnrt: from a kernel to a program on a core, and back with results.
 */
#include <stdlib.h>
#include <string.h>

#include "mnist.h"
#include "session.h"

static int check(NRT_STATUS status, const char *call, const char *what)
{
	if (status == NRT_SUCCESS)
		return 0;
	return fail("%s%s%s failed: %s", call, what ? " of " : "", what ? what : "",
		    nrt_get_status_as_str(status));
}

int session_open(char arch[16])
{
	nrt_instance_info_t info;

	/* The programs are for one physical core. */
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 0);
	setenv("NEURON_RT_NUM_CORES", "1", 0);
	if (check(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "nrt_init", NULL))
		return -1;
	if (check(nrt_get_instance_info(&info, sizeof(info)), "nrt_get_instance_info", NULL)) {
		nrt_close();
		return -1;
	}
	memcpy(arch, info.arch_name, 16);
	arch[15] = 0;
	return 0;
}

void session_close(void)
{
	nrt_close();
}

int program_load(struct program *p, struct nki_kernel *kernel)
{
	void *neff = NULL;
	size_t size = 0;
	int err = -1;

	memset(p, 0, sizeof(*p));
	if (nki_build(kernel, &neff, &size))
		fail("%s", kernel && nki_error(kernel) ? nki_error(kernel) : "out of memory");
	else if (!check(nrt_load(neff, size, -1, -1, &p->model), "nrt_load", NULL) &&
		 !check(nrt_allocate_tensor_set(&p->in), "nrt_allocate_tensor_set", "inputs") &&
		 !check(nrt_allocate_tensor_set(&p->out), "nrt_allocate_tensor_set", "outputs"))
		err = 0;
	free(neff);
	nki_kernel_free(kernel);
	if (err)
		program_unload(p);
	return err;
}

void program_unload(struct program *p)
{
	if (p->in)
		nrt_destroy_tensor_set(&p->in);
	if (p->out)
		nrt_destroy_tensor_set(&p->out);
	while (p->tensors)
		nrt_tensor_free(&p->tensor[--p->tensors]);
	if (p->model)
		nrt_unload(p->model);
	memset(p, 0, sizeof(*p));
}

int tensor_write(nrt_tensor_t *t, const void *data, size_t size)
{
	return check(nrt_tensor_write(t, data, 0, size), "nrt_tensor_write", NULL);
}

int tensor_read(const nrt_tensor_t *t, void *data, size_t size)
{
	return check(nrt_tensor_read(t, data, 0, size), "nrt_tensor_read", NULL);
}

nrt_tensor_t *program_tensor(struct program *p, const char *input, const char *output,
			     size_t size, const void *data)
{
	const char *name = input ? input : output;
	nrt_tensor_t *t = NULL;

	if (p->tensors == MAX_TENSORS) {
		fail("more than %d tensors", MAX_TENSORS);
		return NULL;
	}
	if (check(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, size, name, &t),
		  "nrt_tensor_allocate", name))
		return NULL;
	p->tensor[p->tensors++] = t;
	if (data ? tensor_write(t, data, size) :
	    check(nrt_tensor_memset(t, 0, 0, size), "nrt_tensor_memset", name))
		return NULL;
	if (input && check(nrt_add_tensor_to_tensor_set(p->in, input, t),
			   "nrt_add_tensor_to_tensor_set", input))
		return NULL;
	if (output && check(nrt_add_tensor_to_tensor_set(p->out, output, t),
			    "nrt_add_tensor_to_tensor_set", output))
		return NULL;
	return t;
}

int program_execute(struct program *p)
{
	NRT_STATUS status = nrt_execute(p->model, p->in, p->out);
	nrtx_execution_t e;

	if (status == NRT_SUCCESS)
		return 0;
	if (nrtx_get_last_execution(p->model, &e, sizeof(e)) == NRT_SUCCESS && e.fault_text[0])
		return fail("nrt_execute failed: %s: %s", nrt_get_status_as_str(status), e.fault_text);
	return check(status, "nrt_execute", NULL);
}

uint64_t program_modelled_ns(const struct program *p)
{
	nrtx_execution_t e;

	if (nrtx_get_last_execution(p->model, &e, sizeof(e)) != NRT_SUCCESS)
		return 0;
	return e.modelled_ns;
}
