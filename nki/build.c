// SPDX-License-Identifier: MIT
/* Finishing a program, and asking about the finished program. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neff_write.h"
#include "priv.h"

static const struct nki_loc here = { "nki", 0, "nki_build" };

static int finish_core(struct nki_kernel *k)
{
	int ret;

	if (!nki_ok(k))
		return -EINVAL;
	if (k->loop) {
		nki_fail(k, here, "a loop body was left with break, goto or return");
		return -EINVAL;
	}
	if (k->built)
		return 0;
	nki_find_streams(k);
	ret = nki_place_semaphores(k);
	if (!ret)
		ret = nki_lower(k);
	if (ret == -ENOMEM)
		nki_fail(k, here, "the host is out of memory");
	k->built = !ret;
	return ret;
}

/* Of a two-core program the other core is finished too: they meet in sendrecv. */
int nki_finish(struct nki_kernel *k)
{
	int ret;

	if (!k)
		return -ENOMEM;
	if (k->peer && nki_ok(k) && nki_ok(k->peer) && (!k->built || !k->peer->built))
		nki_meet(k->root);
	ret = finish_core(k);
	if (!ret && k->peer)
		ret = finish_core(k->peer);
	return ret;
}

void nki_info_json(struct nki_kernel *k, const char *json)
{
	json_t *old, *more;
	json_error_t error;

	if (!nki_ok(k))
		return;
	k = k->root;
	more = json_loads(json ? json : "", 0, &error);
	if (!json_is_object(more)) {
		nki_fail(k, (struct nki_loc){ "nki", 0, "nki_info_json" }, "not a JSON object: %s",
			 more ? "another type" : error.text);
		json_decref(more);
		return;
	}
	old = k->info_json ? json_loads(k->info_json, 0, NULL) : json_object();
	if (old)
		json_object_update(old, more);
	free(k->info_json);
	k->info_json = old ? json_dumps(old, JSON_COMPACT) : NULL;
	if (!k->info_json)
		nki_fail(k, here, "the host is out of memory");
	json_decref(old);
	json_decref(more);
}

/* ------------------------------------------------------------------------ */
/* NEFF									    */

static enum neff_var_type var_type(enum nki_tensor_kind kind)
{
	switch (kind) {
	case NKI_TENSOR_INPUT:
		return NEFF_VAR_INPUT;
	case NKI_TENSOR_OUTPUT:
		return NEFF_VAR_OUTPUT;
	case NKI_TENSOR_CONST:
		return NEFF_VAR_FILE;
	case NKI_TENSOR_SCRATCH:
		break;
	}
	return NEFF_VAR_TMP;
}

static void fill_args(struct nki_kernel *k, struct neff_arg *args)
{
	for (struct nki_buf *b = k->bufs; b; b = b->next) {
		struct neff_arg *arg;

		if (b->space != NEURON_SPACE_HBM)
			continue;
		arg = &args[b->arg];
		arg->type = var_type(b->kind);
		arg->name = b->name;
		arg->size = b->bytes;
		arg->dtype = nki_dtype_text(b->dtype);
		arg->ndim = b->dims;
		memcpy(arg->shape, b->num, b->dims * sizeof(*b->num));
		arg->data = b->data;
	}
}

static int fill_core(struct nki_kernel *k, struct neff_core *core)
{
	core->lines = calloc(k->line_count + 1, sizeof(*core->lines));
	if (!core->lines)
		return -ENOMEM;
	core->semaphore_count = k->peer ? NEURON_SEMAPHORES : k->semaphores;
	core->line_count = k->line_count;
	for (size_t i = 0; i < k->line_count; i++)
		core->lines[i] = (struct neff_line){ (char *)k->lines[i].file, (char *)k->lines[i].name,
						     k->lines[i].line };
	for (unsigned int e = 0; e < NKI_ENGINES; e++) {
		core->stream[e] = k->stream[e].word;
		core->words[e] = k->stream[e].count;
	}
	return 0;
}

/* Everything in the structure is borrowed from the kernel, but args and lines. */
static int fill_neff(struct nki_kernel *k, struct neff *neff)
{
	int ret;

	memset(neff, 0, sizeof(*neff));
	strcpy(neff->name, k->name);
	snprintf(neff->tool_version, sizeof(neff->tool_version), "neuron-accel %s", NKI_VERSION);
	strcpy(neff->target, k->arch->name);
	neff->isa_version = NEURON_ISA_VERSION;
	neff->nc_version = k->arch->nc_version;
	neff->core_count = k->cores;
	neff->arg_count = k->arg_count;
	neff->args = calloc(k->arg_count + 1, sizeof(*neff->args));
	if (!neff->args)
		return -ENOMEM;
	fill_args(k, neff->args);
	ret = fill_core(k, &neff->core[0]);
	if (!ret && k->peer) {
		fill_args(k->peer, neff->args);
		ret = fill_core(k->peer, &neff->core[1]);
	}
	return ret;
}

/* The numbers that DEBUG_PRINT leaves in its buffer, as names. */
static void tell_prefixes(struct nki_kernel *k)
{
	json_t *names, *top;
	char *text;

	if (!k->prefixes)
		return;
	names = json_array();
	for (unsigned int i = 0; i < k->prefixes; i++)
		json_array_append_new(names, json_string(k->prefix[i]));
	top = json_pack("{s:{s:s, s:o}}", "device_print", "tensor", NKI_DEBUG_TENSOR, "prefixes", names);
	text = top ? json_dumps(top, JSON_COMPACT) : NULL;
	if (text)
		nki_info_json(k, text);
	else
		nki_fail(k, here, "a prefix is not UTF-8, or the host is out of memory");
	free(text);
	json_decref(top);
}

int nki_build(struct nki_kernel *k, void **bytes, size_t *size)
{
	struct neff neff;
	int ret;

	if (k)
		k = k->root;
	ret = nki_finish(k);
	if (ret)
		return ret;
	tell_prefixes(k);
	if (!nki_ok(k))
		return -EINVAL;
	ret = fill_neff(k, &neff);
	if (!ret)
		ret = neff_write(&neff, k->info_json, bytes, size);
	free(neff.args);
	free(neff.core[0].lines);
	free(neff.core[1].lines);
	if (ret)
		nki_fail(k, here, "the NEFF could not be written: %s", strerror(-ret));
	return ret;
}

int nki_save(struct nki_kernel *k, const char *path)
{
	size_t size;
	void *bytes;
	FILE *f;
	int ret = nki_build(k, &bytes, &size);

	if (ret)
		return ret;
	f = fopen(path, "wb");
	if (!f)
		ret = -errno;
	if (f && fwrite(bytes, 1, size, f) != size)
		ret = -EIO;
	if (f && fclose(f) && !ret)
		ret = -errno;
	free(bytes);
	if (ret)
		nki_fail(k, (struct nki_loc){ "nki", 0, "nki_save" }, "%s: %s", path, strerror(-ret));
	return ret;
}

/* ------------------------------------------------------------------------ */
/* Questions								    */

int nki_stream(struct nki_kernel *k, enum nki_engine engine, const void **words, size_t *count)
{
	int ret = nki_finish(k);

	if (ret || (unsigned int)engine >= NKI_ENGINES)
		return -EINVAL;
	*words = k->stream[engine].word;
	*count = k->stream[engine].count;
	return 0;
}

int nki_edge_count(struct nki_kernel *k)
{
	return nki_finish(k) ? -EINVAL : (int)k->edge_count;
}

static bool list_edges(struct nki_kernel *k)
{
	unsigned int n = 0;

	if (k->edge_list)
		return true;
	k->edge_list = calloc(k->edge_count, sizeof(*k->edge_list));
	for (struct nki_edge_priv *e = k->edges; k->edge_list && e; e = e->next)
		k->edge_list[n++] = e;
	return k->edge_list;
}

int nki_edge(struct nki_kernel *k, unsigned int n, struct nki_edge *edge)
{
	const struct nki_edge_priv *e;

	if (nki_finish(k) || n >= k->edge_count || !list_edges(k))
		return -EINVAL;
	e = k->edge_list[n];
	memset(edge, 0, sizeof(*edge));
	if (e->from->debug_id)
		edge->producer = *nki_line(k, e->from->debug_id);
	if (e->to->debug_id)
		edge->consumer = *nki_line(k, e->to->debug_id);
	edge->producer_engine = e->from->queue == NKI_QUEUE_NONE ? e->from->engine : NEURON_ENGINE_DMA;
	edge->consumer_engine = e->to->engine;
	edge->queue = e->from->queue == NKI_QUEUE_NONE ? 0 : e->from->queue + 1;
	edge->sem = e->sem;
	edge->carried = e->carried || (e->relay && e->relay->carried);
	edge->dropped = e->dropped;
	edge->reason = e->reason;
	return 0;
}
