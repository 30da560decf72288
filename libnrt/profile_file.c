// SPDX-License-Identifier: MIT
/* Profile files: a tar archive of profile.json and one binary per execution. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "neff_private.h"
#include "profile_file.h"

/* ---- writing --------------------------------------------------------------------- */

static json_t *lines_json(const struct neff_core *core)
{
	json_t *lines = json_array();

	for (uint32_t i = 0; i < core->line_count; i++)
		json_array_append_new(lines, json_pack("{s:s, s:I, s:s}",
			"file", core->lines[i].file, "line", (json_int_t)core->lines[i].line,
			"name", core->lines[i].name));
	return json_pack("{s:o}", "lines", lines);
}

static json_t *execution_json(const struct profile_execution *e, size_t index)
{
	char name[32];

	snprintf(name, sizeof(name), "exec%zu.bin", index);
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "file", name,
			 "seqno", (json_int_t)e->seqno, "status", (json_int_t)e->status,
			 "modelled_ns", (json_int_t)e->modelled_ns,
			 "wall_ns", (json_int_t)e->wall_ns,
			 "instructions", (json_int_t)e->instructions);
}

static char *profile_json(const struct profile_file *file)
{
	json_t *cores = json_array(), *executions = json_array(), *root;
	char *text;

	for (unsigned int c = 0; c < file->core_count; c++)
		json_array_append_new(cores, lines_json(&file->core[c]));
	for (size_t i = 0; i < file->count; i++)
		json_array_append_new(executions, execution_json(&file->executions[i], i));
	root = json_pack("{s:i, s:s, s:s, s:i, s:i, s:I, s:o, s:o}",
			 "version", PROFILE_FILE_VERSION, "model", file->model,
			 "arch", file->arch, "nd", file->nd, "nc", file->nc,
			 "dropped_executions", (json_int_t)file->dropped_executions,
			 "cores", cores, "executions", executions);
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}

static int put_file(struct archive *a, const char *name, const void *head, size_t head_size,
		    const void *body, size_t body_size)
{
	struct archive_entry *entry = archive_entry_new();
	int ret = -EIO;

	if (!entry)
		return -ENOMEM;
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, head_size + body_size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	if (archive_write_header(a, entry) == ARCHIVE_OK &&
	    archive_write_data(a, head, head_size) == (la_ssize_t)head_size &&
	    archive_write_data(a, body, body_size) == (la_ssize_t)body_size)
		ret = 0;
	archive_entry_free(entry);
	return ret;
}

static int put_all(struct archive *a, const struct profile_file *file)
{
	char *json = profile_json(file);
	char name[32];
	int ret;

	if (!json)
		return -ENOMEM;
	ret = put_file(a, "profile.json", json, strlen(json), "", 0);
	free(json);
	for (size_t i = 0; !ret && i < file->count; i++) {
		const struct profile_execution *e = &file->executions[i];

		snprintf(name, sizeof(name), "exec%zu.bin", i);
		ret = put_file(a, name, &e->header, sizeof(e->header), e->records,
			       e->header.records * sizeof(*e->records));
	}
	return ret;
}

int profile_write(const char *path, const struct profile_file *file,
		  char *error, size_t error_size)
{
	struct neff_reader r = { .error = error, .error_size = error_size };
	struct archive *a = archive_write_new();
	int ret;

	if (!a)
		return neff_fail(&r, -ENOMEM, "out of memory");
	archive_write_set_format_pax_restricted(a);
	if (archive_write_open_filename(a, path) != ARCHIVE_OK) {
		ret = neff_fail(&r, -archive_errno(a) ?: -EIO, "%s: %s", path,
				archive_error_string(a) ?: "cannot be written");
		archive_write_free(a);
		return ret;
	}
	ret = put_all(a, file);
	if (!ret && archive_write_close(a) != ARCHIVE_OK)
		ret = -EIO;
	if (ret) {
		neff_fail(&r, ret, "%s: %s", path, archive_error_string(a) ?: strerror(-ret));
		unlink(path);
	}
	archive_write_free(a);
	return ret;
}

/* ---- reading ---------------------------------------------------------------------- */

static uint64_t get_number(json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n < 0 ? 0 : n;
}

static int read_lines(struct neff_reader *r, json_t *core, struct neff_core *out)
{
	json_t *lines = json_object_get(core, "lines"), *item;
	size_t i;

	if (!json_is_array(lines) || json_array_size(lines) > NEFF_MAX_LINES)
		return neff_fail(r, -EINVAL, "profile.json: a core needs an array 'lines'");
	out->lines = calloc(json_array_size(lines) + 1, sizeof(*out->lines));
	if (!out->lines)
		return neff_fail(r, -ENOMEM, "out of memory");
	out->line_count = json_array_size(lines);
	json_array_foreach(lines, i, item) {
		struct neff_line *line = &out->lines[i];

		line->file = strdup(json_string_value(json_object_get(item, "file")) ?: "");
		line->name = strdup(json_string_value(json_object_get(item, "name")) ?: "");
		line->line = get_number(item, "line");
		if (!line->file || !line->name)
			return neff_fail(r, -ENOMEM, "out of memory");
	}
	return 0;
}

static int read_records(struct neff_reader *r, const char *name, struct profile_execution *e)
{
	struct neff_entry *entry = neff_find(r, name);
	struct neuron_trace_header *h = &e->header;
	size_t bytes;

	if (!entry || entry->size < sizeof(*h))
		return neff_fail(r, -EINVAL, "'%.64s' is missing or too short", name);
	memcpy(h, entry->data, sizeof(*h));
	bytes = entry->size - sizeof(*h);
	if (h->magic != NEURON_TRACE_MAGIC || h->version != NEURON_TRACE_VERSION ||
	    h->record_size != sizeof(*e->records))
		return neff_fail(r, -EOPNOTSUPP, "'%s': trace version mismatch supported: %d received: %u",
				 name, NEURON_TRACE_VERSION, h->version);
	if (bytes % sizeof(*e->records) || h->records != bytes / sizeof(*e->records))
		return neff_fail(r, -EINVAL, "'%s': %llu records are said, %zu bytes are there",
				 name, (unsigned long long)h->records, bytes);
	e->records = malloc(bytes + 1);
	if (!e->records)
		return neff_fail(r, -ENOMEM, "out of memory");
	memcpy(e->records, (char *)entry->data + sizeof(*h), bytes);
	return 0;
}

static int read_execution(struct neff_reader *r, json_t *item, struct profile_execution *e)
{
	const char *name = json_string_value(json_object_get(item, "file"));

	if (!name)
		return neff_fail(r, -EINVAL, "profile.json: an execution needs a string 'file'");
	e->seqno = get_number(item, "seqno");
	e->status = get_number(item, "status");
	e->modelled_ns = get_number(item, "modelled_ns");
	e->wall_ns = get_number(item, "wall_ns");
	e->instructions = get_number(item, "instructions");
	return read_records(r, name, e);
}

static int read_arrays(struct neff_reader *r, json_t *root, struct profile_file *file)
{
	json_t *cores = json_object_get(root, "cores");
	json_t *executions = json_object_get(root, "executions"), *item;
	size_t i;
	int ret;

	if (!json_is_array(cores) || json_array_size(cores) > NEFF_MAX_CORES ||
	    !json_is_array(executions))
		return neff_fail(r, -EINVAL, "profile.json: 'cores' (at most %d) and 'executions' must be arrays",
				 NEFF_MAX_CORES);
	file->core_count = json_array_size(cores);
	json_array_foreach(cores, i, item) {
		ret = read_lines(r, item, &file->core[i]);
		if (ret)
			return ret;
	}
	file->executions = calloc(json_array_size(executions) + 1, sizeof(*file->executions));
	if (!file->executions)
		return neff_fail(r, -ENOMEM, "out of memory");
	json_array_foreach(executions, i, item) {
		file->count = i + 1;
		ret = read_execution(r, item, &file->executions[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static int parse(struct neff_reader *r, struct profile_file *file)
{
	struct neff_entry *entry = neff_find(r, "profile.json");
	json_error_t error;
	json_t *root;
	int ret;

	if (!entry)
		return neff_fail(r, -EINVAL, "not a profile: 'profile.json' is missing");
	root = json_loadb(entry->data, entry->size, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return neff_fail(r, -EINVAL, "profile.json:%d: %s", error.line, error.text);
	if (get_number(root, "version") != PROFILE_FILE_VERSION) {
		ret = neff_fail(r, -EOPNOTSUPP, "profile version mismatch supported: %d received: %" PRIu64,
				PROFILE_FILE_VERSION, get_number(root, "version"));
	} else {
		snprintf(file->model, sizeof(file->model), "%s",
			 json_string_value(json_object_get(root, "model")) ?: "");
		snprintf(file->arch, sizeof(file->arch), "%s",
			 json_string_value(json_object_get(root, "arch")) ?: "");
		file->nd = get_number(root, "nd");
		file->nc = get_number(root, "nc");
		file->dropped_executions = get_number(root, "dropped_executions");
		ret = read_arrays(r, root, file);
	}
	json_decref(root);
	return ret;
}

int profile_read(const char *path, struct profile_file **out, char *error, size_t error_size)
{
	struct neff_reader r = { .error = error, .error_size = error_size };
	struct profile_file *file;
	void *bytes;
	size_t size;
	int ret;

	*out = NULL;
	ret = neff_slurp(&r, path, &bytes, &size);
	if (ret)
		return ret;
	file = calloc(1, sizeof(*file));
	ret = file ? neff_unpack(&r, bytes, size) : neff_fail(&r, -ENOMEM, "out of memory");
	if (!ret)
		ret = parse(&r, file);
	free(bytes);
	neff_reader_end(&r);
	if (ret)
		profile_close(file);
	else
		*out = file;
	return ret;
}

void profile_close(struct profile_file *file)
{
	if (!file)
		return;
	for (unsigned int c = 0; c < NEFF_MAX_CORES; c++)
		neff_free_core(&file->core[c]);
	for (size_t i = 0; i < file->count; i++)
		free(file->executions[i].records);
	free(file->executions);
	free(file);
}

const struct neff_line *profile_line(const struct profile_file *file, unsigned int core,
				     uint32_t debug_id)
{
	if (core >= file->core_count || !debug_id || debug_id > file->core[core].line_count)
		return NULL;
	return &file->core[core].lines[debug_id - 1];
}
