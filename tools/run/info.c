// SPDX-License-Identifier: MIT
/* Optional keys of a NEFF's info.json: "image" and "labels" (Documentation/neff.rst). */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

#define MAX_INFO	(16u << 20)

static char *read_entry(struct archive *a, struct archive_entry *entry, size_t *size)
{
	int64_t bytes = archive_entry_size(entry);
	char *text;

	if (bytes < 0 || bytes > MAX_INFO)
		return NULL;
	text = malloc(bytes + 1);
	if (!text)
		return NULL;
	if (archive_read_data(a, text, bytes) != bytes) {
		free(text);
		return NULL;
	}
	*size = bytes;
	return text;
}

/* The text of info.json; NULL: the archive has none that can be read. */
static char *find_info(const void *neff, size_t size, size_t *text_size)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	char *text = NULL;

	if (!a || size < NEFF_HEADER_BYTES)
		goto out;
	archive_read_support_format_tar(a);
	archive_read_support_filter_gzip(a);
	if (archive_read_open_memory(a, (const char *)neff + NEFF_HEADER_BYTES,
				     size - NEFF_HEADER_BYTES))
		goto out;
	while (!text && archive_read_next_header(a, &entry) == ARCHIVE_OK) {
		const char *name = archive_entry_pathname(entry);

		if (name && !strncmp(name, "./", 2))
			name += 2;
		if (name && !strcmp(name, "info.json"))
			text = read_entry(a, entry, text_size);
	}
out:
	archive_read_free(a);
	return text;
}

/* A number, or an array with one for each channel. */
static int read_channels(json_t *j, const char *key, struct run_info *info, float *value,
			 char *error, size_t error_size)
{
	json_t *v = json_object_get(j, key);
	size_t i, n = json_is_array(v) ? json_array_size(v) : 1;

	if (!v)
		return 0;
	if (!n || n > RUN_MAX_CHANNELS)
		goto bad;
	for (i = 0; i < RUN_MAX_CHANNELS; i++) {
		json_t *e = json_is_array(v) ? json_array_get(v, i < n ? i : n - 1) : v;

		if (!json_is_number(e))
			goto bad;
		value[i] = json_number_value(e);
	}
	return 0;
bad:
	snprintf(error, error_size, "info.json: image.%s must be a number, or an array of 1 to %d",
		 key, RUN_MAX_CHANNELS);
	return -EINVAL;
}

static int bad(char *error, size_t error_size, const char *what)
{
	snprintf(error, error_size, "info.json: image.%s", what);
	return -EINVAL;
}

static int read_invert(json_t *j, struct run_info *info, char *error, size_t error_size)
{
	if (json_is_boolean(j))
		info->invert = json_is_true(j) ? INVERT_YES : INVERT_NO;
	else if (json_is_string(j) && !strcmp(json_string_value(j), "auto"))
		info->invert = INVERT_AUTO;
	else if (j)
		return bad(error, error_size, "invert must be true, false or \"auto\"");
	return 0;
}

static int read_layout(json_t *j, struct run_info *info, char *error, size_t error_size)
{
	static const char *const names[] = { "", "hw", "hwc", "chw" };
	unsigned int i;

	if (!j)
		return 0;
	for (i = LAYOUT_HW; i <= LAYOUT_CHW; i++)
		if (json_is_string(j) && !strcmp(json_string_value(j), names[i]))
			info->layout = i;
	if (info->layout == LAYOUT_GUESS)
		return bad(error, error_size, "layout must be \"hw\", \"hwc\" or \"chw\"");
	return 0;
}

static int read_image(json_t *image, struct run_info *info, char *error, size_t error_size)
{
	json_t *box = json_object_get(image, "box");
	unsigned int i;

	if (!json_is_object(image)) {
		snprintf(error, error_size, "info.json: \"image\" must be an object");
		return -EINVAL;
	}
	info->has_image = true;
	if (read_channels(image, "mean", info, info->mean, error, error_size) ||
	    read_channels(image, "std", info, info->std, error, error_size) ||
	    read_invert(json_object_get(image, "invert"), info, error, error_size) ||
	    read_layout(json_object_get(image, "layout"), info, error, error_size))
		return -EINVAL;
	for (i = 0; i < RUN_MAX_CHANNELS; i++)
		if (!(info->std[i] > 0))
			return bad(error, error_size, "std must be above 0");
	if (box && (!json_is_integer(box) || json_integer_value(box) < 0 ||
		    json_integer_value(box) > 16384))
		return bad(error, error_size, "box must be 0 to 16384 pixels");
	info->box = json_integer_value(box);
	return 0;
}

static int read_labels(json_t *labels, struct run_info *info, char *error, size_t error_size)
{
	size_t n = json_array_size(labels), i;

	if (!json_is_array(labels) || !n || n > RUN_MAX_LABELS) {
		snprintf(error, error_size, "info.json: \"labels\" must be an array of 1 to %d names",
			 RUN_MAX_LABELS);
		return -EINVAL;
	}
	info->labels = calloc(n, sizeof(*info->labels));
	if (!info->labels)
		return -ENOMEM;
	info->label_count = n;
	for (i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(labels, i));

		if (!text) {
			snprintf(error, error_size, "info.json: label %zu is no text", i);
			return -EINVAL;
		}
		info->labels[i] = strdup(text);
		if (!info->labels[i])
			return -ENOMEM;
	}
	return 0;
}

int run_info_read(const void *neff, size_t size, struct run_info *info, char *error,
		  size_t error_size)
{
	json_t *root, *part;
	size_t text_size;
	unsigned int i;
	int ret = 0;
	char *text;

	memset(info, 0, sizeof(*info));
	for (i = 0; i < RUN_MAX_CHANNELS; i++)
		info->std[i] = 1;
	text = find_info(neff, size, &text_size);
	if (!text)
		return 0;	/* the runtime judges the container */
	root = json_loadb(text, text_size, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	if (!root) {
		snprintf(error, error_size, "info.json is not JSON");
		return -EINVAL;
	}
	part = json_object_get(root, "image");
	if (part)
		ret = read_image(part, info, error, error_size);
	part = json_object_get(root, "labels");
	if (!ret && part)
		ret = read_labels(part, info, error, error_size);
	json_decref(root);
	if (ret)
		run_info_free(info);
	return ret;
}

void run_info_free(struct run_info *info)
{
	size_t i;

	for (i = 0; i < info->label_count; i++)
		free(info->labels[i]);
	free(info->labels);
	info->labels = NULL;
	info->label_count = 0;
}
