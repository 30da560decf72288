// SPDX-License-Identifier: MIT
/* NEFF writer: JSON by jansson, tar by libarchive, hash by libcrypto. */
#include <archive.h>
#include <archive_entry.h>
#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neff_write.h"

#define TAR_SLACK	4096	/* of each file: header, padding, long names */

struct tar {
	struct archive *a;
	char *buf;
	size_t used, room;
};

static int add_file(struct tar *tar, const char *path, const void *data, size_t size)
{
	struct archive_entry *e = archive_entry_new();
	int ret = -ENOMEM;

	if (!e)
		return ret;
	archive_entry_set_pathname(e, path);
	archive_entry_set_size(e, size);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_mtime(e, 0, 0);
	if (archive_write_header(tar->a, e) == ARCHIVE_OK &&
	    (!size || archive_write_data(tar->a, data, size) == (la_ssize_t)size))
		ret = 0;
	archive_entry_free(e);
	return ret;
}

/* Takes the reference of @root. */
static int add_json(struct tar *tar, const char *path, json_t *root)
{
	char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	int ret = text ? add_file(tar, path, text, strlen(text)) : -ENOMEM;

	free(text);
	json_decref(root);
	return ret;
}

static int add_info(struct tar *tar, const struct neff *neff, const char *info)
{
	json_t *own = json_pack("{s:s, s:s, s:i, s:s}", "tool_version", neff->tool_version, "name",
				neff->name, "num_tpb", (int)neff->core_count, "target", neff->target);
	json_t *root = info ? json_loads(info, 0, NULL) : json_object();

	if (!own || !root || !json_is_object(root) || json_object_update(root, own)) {
		json_decref(own);
		json_decref(root);
		return -EINVAL;
	}
	json_decref(own);
	return add_json(tar, "info.json", root);
}

static json_t *signature(const struct neff *neff, enum neff_var_type type)
{
	json_t *tensors = json_object();

	for (unsigned int i = 0; i < neff->arg_count; i++) {
		const struct neff_arg *arg = &neff->args[i];
		json_t *shape;

		if (arg->type != type)
			continue;
		shape = json_array();
		for (unsigned int d = 0; d < arg->ndim; d++)
			json_array_append_new(shape, json_integer(arg->shape[d]));
		json_object_set_new(tensors, arg->name,
				    json_pack("{s:i, s:s, s:o}", "id", (int)i, "dtype", arg->dtype,
					      "shape", shape));
	}
	return tensors;
}

static int add_neff(struct tar *tar, const struct neff *neff)
{
	return add_json(tar, "neff.json",
			json_pack("{s:{s:{s:{s:o, s:o}}}}", "metadata", "signatures", "default",
				  "inputs", signature(neff, NEFF_VAR_INPUT), "outputs",
				  signature(neff, NEFF_VAR_OUTPUT)));
}

static json_t *variables(const struct neff *neff)
{
	json_t *vars = json_object();

	for (unsigned int i = 0; i < neff->arg_count; i++) {
		const struct neff_arg *arg = &neff->args[i];
		json_t *var;
		char file[32];

		if (arg->type == NEFF_VAR_NONE)
			continue;
		var = json_pack("{s:s, s:i, s:I}", "type", neff_var_type_name(arg->type), "var_id",
				(int)i, "size", (json_int_t)arg->size);
		if (arg->type == NEFF_VAR_FILE) {
			snprintf(file, sizeof(file), "const%u.bin", i);
			json_object_set_new(var, "file_name", json_string(file));
		}
		json_object_set_new(vars, arg->name, var);
	}
	return vars;
}

static int add_def(struct tar *tar, const struct neff *neff, unsigned int core)
{
	const struct neff_core *c = &neff->core[core];
	json_t *engines = json_object();
	char path[64];

	for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++) {
		if (c->words[e])
			json_object_set_new(engines, neff_engine_key(e), json_string(neff_engine_file(e)));
	}
	snprintf(path, sizeof(path), "sg%02u/def.json", core);
	return add_json(tar, path,
			json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "version", NEFF_DEF_VERSION,
				  "isa_version", (int)neff->isa_version, "nc_version",
				  (int)neff->nc_version, "arg_count", (int)neff->arg_count,
				  "semaphore_count", (int)c->semaphore_count, "engines", engines, "var",
				  core ? json_object() : variables(neff)));
}

static int add_lines(struct tar *tar, const struct neff *neff, unsigned int core)
{
	const struct neff_core *c = &neff->core[core];
	json_t *lines = json_array();
	char path[64];

	for (uint32_t i = 0; i < c->line_count; i++)
		json_array_append_new(lines, json_pack("{s:s, s:i, s:s}", "file", c->lines[i].file, "line",
						       (int)c->lines[i].line, "name", c->lines[i].name));
	snprintf(path, sizeof(path), "sg%02u/debug_info.json", core);
	return add_json(tar, path, json_pack("{s:o}", "lines", lines));
}

static int add_core(struct tar *tar, const struct neff *neff, unsigned int core)
{
	const struct neff_core *c = &neff->core[core];
	char path[64];
	int ret = add_def(tar, neff, core);

	for (unsigned int e = 0; e < NEURON_ENGINE_COUNT && !ret; e++) {
		if (!c->words[e])
			continue;
		snprintf(path, sizeof(path), "sg%02u/%s", core, neff_engine_file(e));
		ret = add_file(tar, path, c->stream[e], (size_t)c->words[e] * 128);
	}
	for (unsigned int i = 0; i < neff->arg_count && !core && !ret; i++) {
		if (neff->args[i].type != NEFF_VAR_FILE)
			continue;
		snprintf(path, sizeof(path), "sg00/const%u.bin", i);
		ret = add_file(tar, path, neff->args[i].data, neff->args[i].size);
	}
	return ret ? ret : add_lines(tar, neff, core);
}

/* More than the archive can have: libarchive writes into memory of a fixed size. */
static size_t bound(const struct neff *neff, const char *info)
{
	size_t size = (1 << 16) + (info ? 2 * strlen(info) : 0);

	for (unsigned int i = 0; i < neff->arg_count; i++) {
		const struct neff_arg *arg = &neff->args[i];

		size += TAR_SLACK + 12 * strlen(arg->name) + 32 * (arg->ndim + 8);
		size += arg->type == NEFF_VAR_FILE ? arg->size : 0;
	}
	for (unsigned int c = 0; c < neff->core_count; c++) {
		for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++)
			size += TAR_SLACK + (size_t)neff->core[c].words[e] * 128;
		for (uint32_t i = 0; i < neff->core[c].line_count; i++)
			size += 128 + 6 * (strlen(neff->core[c].lines[i].file) +
					   strlen(neff->core[c].lines[i].name));
	}
	return size;
}

static int write_tar(struct tar *tar, const struct neff *neff, const char *info)
{
	int ret = -ENOMEM;

	tar->a = archive_write_new();
	if (!tar->a)
		return ret;
	if (archive_write_set_format_pax_restricted(tar->a) == ARCHIVE_OK &&
	    archive_write_open_memory(tar->a, tar->buf, tar->room, &tar->used) == ARCHIVE_OK)
		ret = 0;
	ret = ret ? ret : add_info(tar, neff, info);
	ret = ret ? ret : add_neff(tar, neff);
	for (unsigned int c = 0; c < neff->core_count && !ret; c++)
		ret = add_core(tar, neff, c);
	if (archive_write_close(tar->a) != ARCHIVE_OK && !ret)
		ret = -ENOMEM;
	archive_write_free(tar->a);
	return ret;
}

static void fill_header(struct neff_header *h, const struct neff *neff, const void *data, size_t size)
{
	memset(h, 0, sizeof(*h));
	h->pkg_version = htole64(NEFF_PKG_VERSION);
	h->header_size = htole64(NEFF_HEADER_BYTES);
	h->data_size = htole64(size);
	h->neff_version_major = htole64(NEFF_VERSION_MAJOR);
	h->neff_version_minor = htole64(NEFF_VERSION_MINOR);
	snprintf(h->neff_build_version, sizeof(h->neff_build_version), "%s", neff->tool_version);
	h->num_tpb = htole32(neff->core_count);
	SHA256(data, size, h->hash);
	memcpy(h->uuid, h->hash, sizeof(h->uuid));
	snprintf(h->name, sizeof(h->name), "%s", neff->name);
	h->requested_tpb_count = htole32(neff->core_count);
	h->tpb_per_node[0] = neff->core_count;
	h->feature_bits = htole64(NEFF_FEATURE_OPEN_ISA);
	h->lnc_size = htole32(neff->core_count);
}

int neff_write(const struct neff *neff, const char *info, void **bytes, size_t *size)
{
	size_t room = bound(neff, info);
	char *out = malloc(NEFF_HEADER_BYTES + room);
	struct tar tar = { .buf = out + NEFF_HEADER_BYTES, .room = room };
	int ret = out ? write_tar(&tar, neff, info) : -ENOMEM;

	if (ret) {
		free(out);
		return ret;
	}
	fill_header((struct neff_header *)out, neff, tar.buf, tar.used);
	*bytes = out;
	*size = NEFF_HEADER_BYTES + tar.used;
	return 0;
}
