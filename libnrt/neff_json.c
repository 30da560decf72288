// SPDX-License-Identifier: MIT
/* NEFF reader: the JSON files of the archive. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neff_private.h"
#include "neuron/isa.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *key;
	const char *file;
} engine_names[NEURON_ENGINE_COUNT] = {
	[NEURON_ENGINE_PE] = { "pe", "PE.bin" },
	[NEURON_ENGINE_ACT] = { "act", "Activation.bin" },
	[NEURON_ENGINE_DVE] = { "dve", "DVE.bin" },
	[NEURON_ENGINE_POOL] = { "pool", "Pool.bin" },
	[NEURON_ENGINE_SP] = { "sp", "SP.bin" },
	[NEURON_ENGINE_CC] = { "cc", "CC.bin" },
};

const char *neff_engine_key(unsigned int engine)
{
	return engine < NEURON_ENGINE_COUNT ? engine_names[engine].key : NULL;
}

const char *neff_engine_file(unsigned int engine)
{
	return engine < NEURON_ENGINE_COUNT ? engine_names[engine].file : NULL;
}

static const char *const var_types[] = {
	[NEFF_VAR_INPUT] = "input",
	[NEFF_VAR_OUTPUT] = "output",
	[NEFF_VAR_FILE] = "file",
	[NEFF_VAR_TMP] = "tmp-buf",
};

const char *neff_var_type_name(enum neff_var_type type)
{
	return type < ARRAY_SIZE(var_types) ? var_types[type] : NULL;
}

static const struct {
	const char *name;
	unsigned int bytes;
} dtypes[] = {
#define NEURON_DTYPE(code, name, text, bytes) { text, bytes },
#include "neuron/isa.def"
	/* Only as tensors of the interface: no engine computes with them. */
	{ "int64", 8 },
	{ "uint64", 8 },
};

unsigned int neff_dtype_size(const char *dtype, const char **canonical)
{
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
		if (strcmp(dtypes[i].name, dtype))
			continue;
		if (canonical)
			*canonical = dtypes[i].name;
		return dtypes[i].bytes;
	}
	return 0;
}

/* ---- small helpers ---------------------------------------------------------- */

static int load_json(struct neff_reader *r, const char *path, json_t **root)
{
	struct neff_entry *entry = neff_find(r, path);
	json_error_t error;

	if (!entry)
		return neff_fail(r, -EINVAL, "'%s' is missing", path);
	*root = json_loadb(entry->data, entry->size, JSON_REJECT_DUPLICATES, &error);
	if (!*root)
		return neff_fail(r, -EINVAL, "%s:%d:%d: %s", path, error.line,
				 error.column, error.text);
	if (!json_is_object(*root)) {
		json_decref(*root);
		return neff_fail(r, -EINVAL, "%s: must be an object", path);
	}
	return 0;
}

static int get_uint(struct neff_reader *r, const char *where, json_t *object,
		    const char *key, uint64_t min, uint64_t max, uint64_t *value)
{
	json_t *item = json_object_get(object, key);

	if (!json_is_integer(item))
		return neff_fail(r, -EINVAL, "%s: '%s' must be an integer", where, key);
	if (json_integer_value(item) < 0 ||
	    (uint64_t)json_integer_value(item) < min ||
	    (uint64_t)json_integer_value(item) > max)
		return neff_fail(r, -EINVAL, "%s: '%s' is %" JSON_INTEGER_FORMAT ", must be %" PRIu64 " to %" PRIu64,
				 where, key, json_integer_value(item), min, max);
	*value = json_integer_value(item);
	return 0;
}

static int get_string(struct neff_reader *r, const char *where, json_t *object,
		      const char *key, size_t max, const char **value)
{
	json_t *item = json_object_get(object, key);

	if (!json_is_string(item))
		return neff_fail(r, -EINVAL, "%s: '%s' must be a string", where, key);
	if (!json_string_length(item) || json_string_length(item) >= max)
		return neff_fail(r, -EINVAL, "%s: '%s' has %zu bytes, must have 1 to %zu",
				 where, key, json_string_length(item), max - 1);
	*value = json_string_value(item);
	return 0;
}

/* A file name in def.json names an entry of the same folder, nothing else. */
static int get_file(struct neff_reader *r, const char *folder, const char *name,
		    struct neff_entry **entry)
{
	char path[2 * NEFF_NAME_BYTES];

	if (strchr(name, '/'))
		return neff_fail(r, -EINVAL, "%s/def.json: file name '%.64s' must not name a folder",
				 folder, name);
	snprintf(path, sizeof(path), "%s/%.*s", folder, NEFF_NAME_BYTES, name);
	*entry = neff_find(r, path);
	if (!*entry)
		return neff_fail(r, -EINVAL, "'%.300s' is missing", path);
	return 0;
}

/* Move the bytes out of the entry. */
static void *take(struct neff_entry *entry)
{
	void *data = entry->data;

	entry->data = NULL;
	entry->size = 0;
	return data;
}

/* ---- info.json ---------------------------------------------------------------- */

static int parse_info(struct neff_reader *r)
{
	struct neff *neff = r->neff;
	const char *text;
	json_t *root;
	uint64_t n;
	int ret;

	ret = load_json(r, "info.json", &root);
	if (ret)
		return ret;
	ret = get_string(r, "info.json", root, "target", sizeof(neff->target), &text);
	if (!ret)
		strcpy(neff->target, text);
	if (!ret)
		ret = get_string(r, "info.json", root, "tool_version",
				 sizeof(neff->tool_version), &text);
	if (!ret)
		strcpy(neff->tool_version, text);
	if (!ret)
		ret = get_uint(r, "info.json", root, "num_tpb", neff->core_count,
			       neff->core_count, &n);
	json_decref(root);
	return ret;
}

/* ---- sgNN/def.json: variables --------------------------------------------------- */

static int parse_constant(struct neff_reader *r, const char *folder, json_t *item,
			  struct neff_arg *arg)
{
	struct neff_entry *entry;
	const char *file;
	int ret;

	ret = get_string(r, arg->name, item, "file_name", NEFF_NAME_BYTES, &file);
	if (ret)
		return ret;
	ret = get_file(r, folder, file, &entry);
	if (ret)
		return ret;
	if (!entry->data)
		return neff_fail(r, -EINVAL, "%s/%s: used twice", folder, file);
	if (entry->size != arg->size)
		return neff_fail(r, -EINVAL, "%s/%s has %zu bytes, variable '%s' says %" PRIu64,
				 folder, file, entry->size, arg->name, arg->size);
	arg->data = take(entry);
	return 0;
}

static int parse_var(struct neff_reader *r, const char *folder, const char *name,
		     json_t *item)
{
	struct neff *neff = r->neff;
	struct neff_arg *arg;
	const char *type;
	uint64_t id, size;
	int ret;

	if (!*name || strlen(name) >= NEFF_NAME_BYTES)
		return neff_fail(r, -EINVAL, "%s/def.json: variable name has %zu bytes, must have 1 to %d",
				 folder, strlen(name), NEFF_NAME_BYTES - 1);
	if (!neff->arg_count)
		return neff_fail(r, -EINVAL, "%s/def.json: variable '%s', but arg_count is 0",
				 folder, name);
	ret = get_uint(r, name, item, "var_id", 0, neff->arg_count - 1, &id) ?:
	      get_uint(r, name, item, "size", 1, 1ull << NEURON_VA_BITS, &size) ?:
	      get_string(r, name, item, "type", NEFF_NAME_BYTES, &type);
	if (ret)
		return ret;
	arg = &neff->args[id];
	if (arg->type != NEFF_VAR_NONE)
		return neff_fail(r, -EINVAL, "%s/def.json: variables '%s' and '%s' both have var_id %" PRIu64,
				 folder, arg->name, name, id);
	for (size_t i = NEFF_VAR_INPUT; i < ARRAY_SIZE(var_types); i++)
		if (!strcmp(var_types[i], type))
			arg->type = i;
	if (arg->type == NEFF_VAR_NONE)
		return neff_fail(r, -EINVAL, "%s/def.json: variable '%s' has type '%.32s', must be input, output, file or tmp-buf",
				 folder, name, type);
	arg->size = size;
	arg->name = strdup(name);
	if (!arg->name)
		return neff_fail(r, -ENOMEM, "out of memory");
	return arg->type == NEFF_VAR_FILE ? parse_constant(r, folder, item, arg) : 0;
}

static int parse_vars(struct neff_reader *r, const char *folder, json_t *root)
{
	struct neff *neff = r->neff;
	uint64_t count;
	const char *name;
	json_t *vars, *item;
	int ret;

	ret = get_uint(r, "sg00/def.json", root, "arg_count", 0, NEURON_MAX_ARGS, &count);
	if (ret)
		return ret;
	neff->args = calloc(count + 1, sizeof(*neff->args));
	if (!neff->args)
		return neff_fail(r, -ENOMEM, "out of memory");
	neff->arg_count = count;
	vars = json_object_get(root, "var");
	if (!json_is_object(vars) || json_object_size(vars) != count)
		return neff_fail(r, -EINVAL, "%s/def.json: 'var' must be an object with %" PRIu64 " members (arg_count), it has %zu",
				 folder, count, json_object_size(vars));
	json_object_foreach(vars, name, item) {
		ret = parse_var(r, folder, name, item);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- sgNN/def.json: engines ------------------------------------------------------ */

static int parse_engine(struct neff_reader *r, const char *folder,
			struct neff_core *core, const char *key, json_t *item)
{
	struct neff_entry *entry;
	unsigned int e;
	int ret;

	for (e = 0; e < NEURON_ENGINE_COUNT; e++)
		if (engine_names[e].key && !strcmp(engine_names[e].key, key))
			break;
	if (e == NEURON_ENGINE_COUNT)
		return neff_fail(r, -EINVAL, "%s/def.json: unknown engine '%.32s', must be pe, act, dve, pool, sp or cc",
				 folder, key);
	if (!json_is_string(item))
		return neff_fail(r, -EINVAL, "%s/def.json: engine '%s' must be a file name",
				 folder, key);
	ret = get_file(r, folder, json_string_value(item), &entry);
	if (ret)
		return ret;
	if (!entry->data || !entry->size || entry->size % NEURON_WORD_BYTES ||
	    entry->size / NEURON_WORD_BYTES > UINT32_MAX)
		return neff_fail(r, -EINVAL, "%s has %zu bytes, must be a positive multiple of %d, used once",
				 entry->path, entry->size, NEURON_WORD_BYTES);
	core->words[e] = entry->size / NEURON_WORD_BYTES;
	core->stream[e] = take(entry);
	return 0;
}

static int parse_versions(struct neff_reader *r, const char *where, unsigned int core,
			  json_t *root)
{
	struct neff *neff = r->neff;
	uint64_t version, isa, nc, args, semaphores;
	int ret;

	ret = get_uint(r, where, root, "version", 0, UINT32_MAX, &version) ?:
	      get_uint(r, where, root, "isa_version", 0, UINT32_MAX, &isa) ?:
	      get_uint(r, where, root, "nc_version", 0, UINT8_MAX, &nc) ?:
	      get_uint(r, where, root, "arg_count", 0, NEURON_MAX_ARGS, &args) ?:
	      get_uint(r, where, root, "semaphore_count", 0, NEURON_SEMAPHORES, &semaphores);
	if (ret)
		return ret;
	if (version != NEFF_DEF_VERSION)
		return neff_fail(r, -EOPNOTSUPP, "%s: version mismatch supported: %d received: %" PRIu64,
				 where, NEFF_DEF_VERSION, version);
	if (isa != NEURON_ISA_VERSION)
		return neff_fail(r, -EOPNOTSUPP, "%s: ISA version mismatch supported: %d received: %" PRIu64,
				 where, NEURON_ISA_VERSION, isa);
	if (core && (nc != neff->nc_version || args != neff->arg_count))
		return neff_fail(r, -EINVAL, "%s: nc_version and arg_count differ from sg00", where);
	neff->isa_version = isa;
	neff->nc_version = nc;
	neff->core[core].semaphore_count = semaphores;
	return 0;
}

static int parse_def(struct neff_reader *r, unsigned int core)
{
	char folder[16], path[32];
	const char *key;
	json_t *root, *engines, *item;
	int ret;

	snprintf(folder, sizeof(folder), "sg%02u", core);
	snprintf(path, sizeof(path), "%s/def.json", folder);
	ret = load_json(r, path, &root);
	if (ret)
		return ret;
	ret = parse_versions(r, path, core, root);
	if (!ret && !core)
		ret = parse_vars(r, folder, root);
	engines = json_object_get(root, "engines");
	if (!ret && !json_is_object(engines))
		ret = neff_fail(r, -EINVAL, "%s: 'engines' must be an object", path);
	if (!ret) {
		json_object_foreach(engines, key, item) {
			ret = parse_engine(r, folder, &r->neff->core[core], key, item);
			if (ret)
				break;
		}
	}
	json_decref(root);
	return ret;
}

/* ---- sgNN/debug_info.json ---------------------------------------------------------- */

static int parse_line(struct neff_reader *r, const char *path, json_t *item,
		      struct neff_line *line)
{
	const char *file, *name;
	uint64_t number;
	int ret;

	ret = get_string(r, path, item, "file", 4096, &file) ?:
	      get_string(r, path, item, "name", 4096, &name) ?:
	      get_uint(r, path, item, "line", 0, UINT32_MAX, &number);
	if (ret)
		return ret;
	line->file = strdup(file);
	line->name = strdup(name);
	line->line = number;
	return line->file && line->name ? 0 : neff_fail(r, -ENOMEM, "out of memory");
}

static int parse_lines(struct neff_reader *r, unsigned int core)
{
	struct neff_core *c = &r->neff->core[core];
	json_t *root, *lines, *item;
	char path[32];
	size_t i;
	int ret;

	snprintf(path, sizeof(path), "sg%02u/debug_info.json", core);
	if (!neff_find(r, path))
		return 0;
	ret = load_json(r, path, &root);
	if (ret)
		return ret;
	lines = json_object_get(root, "lines");
	if (!json_is_array(lines) || json_array_size(lines) > NEFF_MAX_LINES) {
		ret = neff_fail(r, -EINVAL, "%s: 'lines' must be an array of at most %u entries",
				path, NEFF_MAX_LINES);
		goto out;
	}
	c->lines = calloc(json_array_size(lines) + 1, sizeof(*c->lines));
	if (!c->lines) {
		ret = neff_fail(r, -ENOMEM, "out of memory");
		goto out;
	}
	c->line_count = json_array_size(lines);
	json_array_foreach(lines, i, item) {
		ret = parse_line(r, path, item, &c->lines[i]);
		if (ret)
			break;
	}
out:
	json_decref(root);
	return ret;
}

/* ---- neff.json: tensors -------------------------------------------------------------- */

/* Shape and type must give the size that def.json says. */
static int parse_shape(struct neff_reader *r, const char *name, json_t *item,
		       struct neff_arg *arg)
{
	json_t *shape = json_object_get(item, "shape"), *dim;
	const char *dtype;
	uint64_t bytes;
	size_t i;
	int ret;

	ret = get_string(r, name, item, "dtype", 32, &dtype);
	if (ret)
		return ret;
	bytes = neff_dtype_size(dtype, &arg->dtype);
	if (!bytes)
		return neff_fail(r, -EINVAL, "neff.json: tensor '%s' has unknown dtype '%s'", name, dtype);
	if (!json_is_array(shape) || json_array_size(shape) > NEFF_MAX_DIMS)
		return neff_fail(r, -EINVAL, "neff.json: tensor '%s': shape must be an array of at most %d numbers",
				 name, NEFF_MAX_DIMS);
	json_array_foreach(shape, i, dim) {
		json_int_t n = json_integer_value(dim);

		if (!json_is_integer(dim) || n < 1 || n > UINT32_MAX ||
		    __builtin_mul_overflow(bytes, (uint64_t)n, &bytes))
			return neff_fail(r, -EINVAL, "neff.json: tensor '%s': dimension %zu is out of range",
					 name, i);
		arg->shape[i] = n;
	}
	arg->ndim = json_array_size(shape);
	if (bytes != arg->size)
		return neff_fail(r, -EINVAL, "neff.json: tensor '%s' has %" PRIu64 " bytes by shape, %" PRIu64 " by def.json",
				 name, bytes, arg->size);
	return 0;
}

static int parse_tensors(struct neff_reader *r, json_t *sig, const char *key,
			 enum neff_var_type type)
{
	json_t *tensors = json_object_get(sig, key), *item;
	struct neff *neff = r->neff;
	const char *name;
	uint64_t id;
	int ret;

	if (!json_is_object(tensors))
		return neff_fail(r, -EINVAL, "neff.json: signature needs an object '%s'", key);
	json_object_foreach(tensors, name, item) {
		if (!neff->arg_count)
			return neff_fail(r, -EINVAL, "neff.json: tensor '%.64s', but the program has no arguments", name);
		ret = get_uint(r, "neff.json", item, "id", 0, neff->arg_count - 1, &id);
		if (ret)
			return ret;
		if (neff->args[id].type != type || strcmp(neff->args[id].name, name))
			return neff_fail(r, -EINVAL, "neff.json: %s tensor '%.64s' has id %" PRIu64 ", which def.json gives to %s '%s'",
					 var_types[type], name, id,
					 neff_var_type_name(neff->args[id].type),
					 neff->args[id].name);
		ret = parse_shape(r, name, item, &neff->args[id]);
		if (ret)
			return ret;
	}
	return 0;
}

static int parse_graph(struct neff_reader *r)
{
	struct neff *neff = r->neff;
	json_t *root, *sig;
	int ret;

	ret = load_json(r, "neff.json", &root);
	if (ret)
		return ret;
	sig = json_object_get(json_object_get(json_object_get(root, "metadata"),
					      "signatures"), "default");
	if (!json_is_object(sig))
		ret = neff_fail(r, -EINVAL, "neff.json: metadata.signatures.default is missing");
	if (!ret)
		ret = parse_tensors(r, sig, "inputs", NEFF_VAR_INPUT);
	if (!ret)
		ret = parse_tensors(r, sig, "outputs", NEFF_VAR_OUTPUT);
	json_decref(root);
	for (unsigned int i = 0; !ret && i < neff->arg_count; i++) {
		bool tensor = neff->args[i].type == NEFF_VAR_INPUT ||
			neff->args[i].type == NEFF_VAR_OUTPUT;

		if (tensor && !neff->args[i].dtype)
			ret = neff_fail(r, -EINVAL, "neff.json: tensor '%s' has no signature",
					neff->args[i].name);
	}
	return ret;
}

int neff_parse(struct neff_reader *r)
{
	int ret = parse_info(r);

	for (unsigned int c = 0; !ret && c < r->neff->core_count; c++) {
		ret = parse_def(r, c);
		if (!ret)
			ret = parse_lines(r, c);
	}
	return ret ?: parse_graph(r);
}
