// SPDX-License-Identifier: MIT
/*
 * NEFF reader: the header, the archive, and the object itself. Everything in a
 * file is untrusted. Nothing is ever written to disk.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "neff_private.h"

/* A file has a few entries per core and one per constant. */
#define MAX_ENTRIES	4096
/* Compressed archives may grow this much: no file can exhaust memory. */
#define MAX_RATIO	64u
#define MAX_SLACK	(64u << 20)

int neff_fail(struct neff_reader *r, int code, const char *format, ...)
{
	va_list args;

	if (r->error && r->error_size) {
		va_start(args, format);
		vsnprintf(r->error, r->error_size, format, args);
		va_end(args);
	}
	return code;
}

struct neff_entry *neff_find(struct neff_reader *r, const char *path)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->entries[i].path, path))
			return &r->entries[i];
	return NULL;
}

/* Names are only keys here, but a file with such names is not an honest one. */
static bool path_is_safe(const char *path)
{
	const char *part = path;

	if (!*path || *path == '/' || strlen(path) >= NEFF_NAME_BYTES)
		return false;
	while (part) {
		if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
			return false;
		part = strchr(part, '/');
		if (part)
			part++;
	}
	return !strchr(path, '\\');
}

/*
 * Sizes in the archive's headers are not believed: the buffer grows with the
 * bytes that really come.
 */
static int read_data(struct neff_reader *r, struct archive *a,
		     struct neff_entry *entry, size_t limit)
{
	size_t space = 0;

	for (;;) {
		ssize_t got;

		if (entry->size == space) {
			size_t bigger = space ? 2 * space : 16384;
			void *data = realloc(entry->data, bigger);

			if (!data)
				return neff_fail(r, -ENOMEM, "out of memory for '%s'", entry->path);
			entry->data = data;
			space = bigger;
		}
		got = archive_read_data(a, (char *)entry->data + entry->size,
					space - entry->size);
		if (got < 0)
			return neff_fail(r, -EINVAL, "archive: '%s': %s", entry->path,
					 archive_error_string(a) ?: "damaged");
		if (!got)
			return 0;
		entry->size += got;
		if (entry->size > limit)
			return neff_fail(r, -EINVAL, "archive: '%s' unpacks to more than %zu bytes",
					 entry->path, limit);
	}
}

static int add_entry(struct neff_reader *r, struct archive *a,
		     struct archive_entry *ae, size_t *left)
{
	const char *path = archive_entry_pathname(ae);
	struct neff_entry *entry;
	int ret;

	if (path && !strncmp(path, "./", 2))
		path += 2;
	if (archive_entry_filetype(ae) == AE_IFDIR)
		return 0;
	if (!path || !path_is_safe(path))
		return neff_fail(r, -EINVAL, "archive: bad file name '%.64s'", path ?: "");
	if (archive_entry_filetype(ae) != AE_IFREG || archive_entry_hardlink(ae))
		return neff_fail(r, -EINVAL, "archive: '%s' is not a regular file", path);
	if (neff_find(r, path))
		return neff_fail(r, -EINVAL, "archive: '%s' is there twice", path);
	if (r->count == MAX_ENTRIES)
		return neff_fail(r, -EINVAL, "archive: more than %d files", MAX_ENTRIES);
	entry = &r->entries[r->count];
	entry->path = strdup(path);
	if (!entry->path)
		return neff_fail(r, -ENOMEM, "out of memory");
	r->count++;
	ret = read_data(r, a, entry, *left);
	if (!ret)
		*left -= entry->size;
	return ret;
}

int neff_unpack(struct neff_reader *r, const void *data, size_t size)
{
	struct archive *a = archive_read_new();
	size_t left = size > SIZE_MAX / MAX_RATIO - MAX_SLACK ?
		SIZE_MAX : size * MAX_RATIO + MAX_SLACK;
	struct archive_entry *ae;
	int ret;

	r->entries = calloc(MAX_ENTRIES, sizeof(*r->entries));
	if (!a || !r->entries) {
		archive_read_free(a);
		return neff_fail(r, -ENOMEM, "out of memory");
	}
	archive_read_support_format_tar(a);
	archive_read_support_filter_gzip(a);
	if (archive_read_open_memory(a, data, size) != ARCHIVE_OK) {
		ret = neff_fail(r, -EINVAL, "data is not a tar archive: %s",
				archive_error_string(a) ?: "damaged");
		archive_read_free(a);
		return ret;
	}
	for (ret = 0; !ret;) {
		int got = archive_read_next_header(a, &ae);

		if (got == ARCHIVE_EOF)
			break;
		if (got < ARCHIVE_WARN)
			ret = neff_fail(r, -EINVAL, "archive: %s",
					archive_error_string(a) ?: "damaged");
		else
			ret = add_entry(r, a, ae, &left);
	}
	archive_read_free(a);
	return ret;
}

/* The text of a fixed-size field, or NULL when it does not end in it. */
static const char *field_text(const char *field, size_t size)
{
	return memchr(field, 0, size) ? field : NULL;
}

static int check_version(struct neff_reader *r, const struct neff_header *h)
{
	if (h->pkg_version != NEFF_PKG_VERSION)
		return neff_fail(r, -EOPNOTSUPP, "NEFF package version mismatch supported: %d received: %" PRIu64,
				 NEFF_PKG_VERSION, h->pkg_version);
	if (h->neff_version_major != NEFF_VERSION_MAJOR)
		return neff_fail(r, -EOPNOTSUPP, "NEFF version mismatch supported: %d.%d received: %" PRIu64 ".%" PRIu64,
				 NEFF_VERSION_MAJOR, NEFF_VERSION_MINOR,
				 h->neff_version_major, h->neff_version_minor);
	if (!(h->feature_bits & NEFF_FEATURE_OPEN_ISA))
		return neff_fail(r, -EOPNOTSUPP,
				 "features: 0x%" PRIx64 ": the file has AWS's private instruction encoding, which is not public; this runtime runs the open encoding only (feature bit 32, 0x%llx)",
				 h->feature_bits, NEFF_FEATURE_OPEN_ISA);
	if (h->feature_bits & ~NEFF_FEATURE_OPEN_ISA)
		return neff_fail(r, -EOPNOTSUPP,
				 "features: 0x%" PRIx64 " are not supported. Currently supporting: 0x%llx",
				 (uint64_t)(h->feature_bits & ~NEFF_FEATURE_OPEN_ISA),
				 NEFF_FEATURE_OPEN_ISA);
	return 0;
}

static int check_header(struct neff_reader *r, const struct neff_header *h, size_t size)
{
	struct neff *neff = r->neff;
	int ret = check_version(r, h);

	if (ret)
		return ret;
	if (h->header_size != NEFF_HEADER_BYTES)
		return neff_fail(r, -EINVAL, "header_size is %" PRIu64 ", must be %d",
				 h->header_size, NEFF_HEADER_BYTES);
	if (h->data_size != size - NEFF_HEADER_BYTES)
		return neff_fail(r, -EINVAL, "data_size is %" PRIu64 ", but %zu bytes follow the header",
				 h->data_size, size - NEFF_HEADER_BYTES);
	if (h->lnc_size < 1 || h->lnc_size > NEFF_MAX_CORES)
		return neff_fail(r, -EINVAL, "lnc_size is %u, must be 1 to %d",
				 h->lnc_size, NEFF_MAX_CORES);
	if (h->num_tpb != h->lnc_size)
		return neff_fail(r, -EINVAL, "num_tpb is %u, must be lnc_size (%u)",
				 h->num_tpb, h->lnc_size);
	if (!field_text(h->name, sizeof(h->name)) || !h->name[0])
		return neff_fail(r, -EINVAL, "name is empty or does not end within %zu bytes",
				 sizeof(h->name));
	memcpy(neff->name, h->name, sizeof(neff->name));
	memcpy(neff->uuid, h->uuid, sizeof(neff->uuid));
	memcpy(neff->hash, h->hash, sizeof(neff->hash));
	neff->core_count = h->num_tpb;
	return 0;
}

void neff_reader_end(struct neff_reader *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->entries[i].path);
		free(r->entries[i].data);
	}
	free(r->entries);
}

int neff_read(const void *bytes, size_t size, struct neff **neff,
	      char *error, size_t error_size)
{
	struct neff_reader r = { .error = error, .error_size = error_size };
	struct neff_header header;
	int ret;

	*neff = NULL;
	if (!bytes || size <= NEFF_HEADER_BYTES)
		return neff_fail(&r, -EINVAL, "%zu bytes are too few for a NEFF: the header alone has %d",
				 size, NEFF_HEADER_BYTES);
	/* Once: the caller's memory may change meanwhile. */
	memcpy(&header, bytes, sizeof(header));
	r.neff = calloc(1, sizeof(*r.neff));
	if (!r.neff)
		return neff_fail(&r, -ENOMEM, "out of memory");
	ret = check_header(&r, &header, size);
	if (!ret)
		ret = neff_unpack(&r, (const char *)bytes + NEFF_HEADER_BYTES,
				  size - NEFF_HEADER_BYTES);
	if (!ret)
		ret = neff_parse(&r);
	neff_reader_end(&r);
	if (ret)
		neff_free(r.neff);
	else
		*neff = r.neff;
	return ret;
}

/* Read, not mapped: a file that shrinks meanwhile must not raise SIGBUS here. */
int neff_slurp(struct neff_reader *r, const char *path, void **bytes, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t got = 0;
	int ret = 0;

	*bytes = NULL;
	*size = 0;
	if (fd < 0 || fstat(fd, &st)) {
		ret = neff_fail(r, -errno, "%s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		ret = neff_fail(r, -EINVAL, "%s: not a regular file", path);
	} else {
		*bytes = malloc(st.st_size + 1);
		if (!*bytes)
			ret = neff_fail(r, -ENOMEM, "out of memory for %s", path);
	}
	while (!ret && *size < (size_t)st.st_size) {
		got = read(fd, (char *)*bytes + *size, st.st_size - *size);
		if (got < 0)
			ret = neff_fail(r, -errno, "%s: %s", path, strerror(errno));
		if (got <= 0)
			break;
		*size += got;
	}
	if (fd >= 0)
		close(fd);
	if (ret) {
		free(*bytes);
		*bytes = NULL;
	}
	return ret;
}

int neff_read_file(const char *path, struct neff **neff, char *error, size_t error_size)
{
	struct neff_reader r = { .error = error, .error_size = error_size };
	void *bytes;
	size_t size;
	int ret;

	*neff = NULL;
	ret = neff_slurp(&r, path, &bytes, &size);
	if (ret)
		return ret;
	ret = neff_read(bytes, size, neff, error, error_size);
	free(bytes);
	return ret;
}

void neff_free_core(struct neff_core *core)
{
	for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++)
		free(core->stream[e]);
	for (uint32_t i = 0; core->lines && i < core->line_count; i++) {
		free(core->lines[i].file);
		free(core->lines[i].name);
	}
	free(core->lines);
}

void neff_free(struct neff *neff)
{
	if (!neff)
		return;
	for (unsigned int c = 0; c < NEFF_MAX_CORES; c++)
		neff_free_core(&neff->core[c]);
	for (unsigned int i = 0; neff->args && i < neff->arg_count; i++) {
		free(neff->args[i].name);
		free(neff->args[i].data);
	}
	free(neff->args);
	free(neff);
}

const struct neff_line *neff_line(const struct neff *neff, unsigned int core,
				  uint32_t debug_id)
{
	if (core >= neff->core_count || !debug_id || debug_id > neff->core[core].line_count)
		return NULL;
	return &neff->core[core].lines[debug_id - 1];
}
