// SPDX-License-Identifier: MIT
/*
 * neuron-packager: what is in a NEFF, out of it into a folder, and back. The layout
 * of the folder is that of AWS's tool: the archive's files under the NEFF's name;
 * the header is one more file there, so that it can be packed again.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <getopt.h>
#include <jansson.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"
#include "neff.h"

#define NAME		"neuron-packager"
#define HEADER_FILE	"neff-header.bin"
#define MAX_BYTES	(16ull << 30)

struct options {
	const char *command;
	const char *path;
	const char *output;
	bool json;
	bool force;
};

struct bytes {
	void *data;
	size_t size;
};

static const char help[] =
	"Usage: neuron-packager [OPTION]... COMMAND PATH\n"
	"Look into NEFF files, unpack and pack them.\n\n"
	"  info FILE             name, target, arguments, instructions\n"
	"  verify FILE           check everything that the runtime would check\n"
	"  unpack FILE           into a folder with the file's name, without its suffix\n"
	"  create DIR            the other way: a NEFF from a folder that unpack made\n\n"
	"  -o, --output PATH     folder of unpack, file of create (default DIR.neff)\n"
	"  -f, --force           write over what is there\n"
	"  -j, --json            info as JSON\n"
	"  -h, --help            this text\n"
	"      --version         version\n\n"
	"create computes size and hash anew and refuses what the runtime would refuse.\n"
	"Exit status: 0; 1 a file cannot be read, or is not right; 2 usage.\n";

static int usage(const char *format, const char *what)
{
	tool_error(NAME, format, what);
	fputs("Try 'neuron-packager --help'.\n", stderr);
	return -EINVAL;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "force", no_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "o:fjh", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			o->output = optarg;
			break;
		case 'f':
			o->force = true;
			break;
		case 'j':
			o->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			exit(tool_finish(NAME));
		case 'V':
			tool_version(NAME);
			exit(tool_finish(NAME));
		default:
			return usage("unknown option, or one without its value%s", "");
		}
	}
	if (argc - optind != 2)
		return usage("a command and one path are needed%s", "");
	o->command = argv[optind];
	o->path = argv[optind + 1];
	return 0;
}

/* --- files ------------------------------------------------------------------------ */

static int failed(const char *path)
{
	int err = errno ? errno : EIO;

	tool_error(NAME, "%s: %s", path, strerror(err));
	return -err;
}

static int read_bytes(int dir, const char *path, struct bytes *b)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = 1;

	*b = (struct bytes){ 0 };
	if (fd < 0)
		return failed(path);
	if (fstat(fd, &st) || st.st_size < 0 || (uint64_t)st.st_size > MAX_BYTES) {
		errno = errno ? errno : EFBIG;
		close(fd);
		return failed(path);
	}
	b->data = malloc(st.st_size + 1);
	while (b->data && n > 0 && b->size < (size_t)st.st_size) {
		n = read(fd, (char *)b->data + b->size, st.st_size - b->size);
		b->size += n > 0 ? n : 0;
	}
	close(fd);
	if (!b->data || n < 0) {
		free(b->data);
		return failed(path);
	}
	return 0;
}

static int write_bytes(int dir, const char *path, const void *data, size_t size)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t done = 0;
	ssize_t n = 1;

	if (fd < 0)
		return failed(path);
	while (n > 0 && done < size) {
		n = write(fd, (const char *)data + done, size - done);
		done += n > 0 ? n : 0;
	}
	if (close(fd) || done < size)
		return failed(path);
	return 0;
}

static int read_neff(const char *path, struct bytes *b, struct neff **neff)
{
	char error[512] = "";
	int ret = read_bytes(AT_FDCWD, path, b);

	if (ret)
		return ret;
	ret = neff_read(b->data, b->size, neff, error, sizeof(error));
	if (ret)
		tool_error(NAME, "%s: %s", path, *error ? error : strerror(-ret));
	return ret;
}

/* --- info -------------------------------------------------------------------------- */

static json_t *argument_json(const struct neff_arg *a, unsigned int number)
{
	json_t *shape = json_array(), *out;
	unsigned int d;

	for (d = 0; d < a->ndim; d++)
		json_array_append_new(shape, json_integer(a->shape[d]));
	out = json_pack("{s:i, s:s, s:s, s:I}", "number", (int)number, "type",
			neff_var_type_name(a->type), "name", a->name, "size", (json_int_t)a->size);
	if (a->dtype)
		json_object_set_new(out, "dtype", json_string(a->dtype));
	json_object_set_new(out, "shape", shape);
	return out;
}

static json_t *core_json(const struct neff_core *core)
{
	json_t *words = json_object();
	unsigned int e;

	for (e = 0; e < NEURON_ENGINE_COUNT; e++)
		if (core->words[e])
			json_object_set_new(words, neff_engine_key(e), json_integer(core->words[e]));
	return json_pack("{s:o, s:i, s:i}", "words", words, "semaphores", (int)core->semaphore_count,
			 "lines", (int)core->line_count);
}

static void hex(const uint8_t *data, size_t n, char *text)
{
	size_t i;

	for (i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", data[i]);
}

static json_t *neff_json(const struct neff *neff)
{
	json_t *args = json_array(), *cores = json_array();
	char uuid[33], hash[65];
	unsigned int i;

	hex(neff->uuid, 16, uuid);
	hex(neff->hash, 32, hash);
	for (i = 0; i < neff->arg_count; i++)
		if (neff->args[i].type != NEFF_VAR_NONE)
			json_array_append_new(args, argument_json(&neff->args[i], i));
	for (i = 0; i < neff->core_count; i++)
		json_array_append_new(cores, core_json(&neff->core[i]));
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:o, s:o}", "name", neff->name, "target",
			 neff->target, "made_by", neff->tool_version, "isa_version",
			 (int)neff->isa_version, "nc_version", (int)neff->nc_version, "uuid", uuid,
			 "sha256", hash, "arguments", args, "cores", cores);
}

static void print_argument(const struct neff_arg *a, unsigned int number)
{
	char name[NEFF_NAME_BYTES];
	unsigned int d;

	tool_printable(name, sizeof(name), a->name);
	printf("  %4u %-8s %s", number, neff_var_type_name(a->type), name);
	if (a->dtype)
		printf(": %s", a->dtype);
	for (d = 0; d < a->ndim; d++)
		printf("%s%u%s", d ? ", " : " [", a->shape[d], d + 1 == a->ndim ? "]" : "");
	printf(", %llu bytes\n", (unsigned long long)a->size);
}

static void print_info(const struct neff *neff)
{
	char name[NEFF_NAME_BYTES], made[128], hash[65];
	unsigned int i, e;

	tool_printable(name, sizeof(name), neff->name);
	tool_printable(made, sizeof(made), neff->tool_version);
	hex(neff->hash, 32, hash);
	printf("%s for %s (NeuronCore-v%u, %u core%s), ISA version %u, made by %s\nSHA-256 %s\n", name,
	       neff->target, neff->nc_version, neff->core_count, neff->core_count == 1 ? "" : "s",
	       neff->isa_version, made, hash);
	puts("arguments:");
	for (i = 0; i < neff->arg_count; i++)
		if (neff->args[i].type != NEFF_VAR_NONE)
			print_argument(&neff->args[i], i);
	for (i = 0; i < neff->core_count; i++) {
		printf("core %u: %u semaphores, %u source lines, 128-byte words:", i,
		       neff->core[i].semaphore_count, neff->core[i].line_count);
		for (e = 0; e < NEURON_ENGINE_COUNT; e++)
			if (neff->core[i].words[e])
				printf(" %s %u", neff_engine_key(e), neff->core[i].words[e]);
		putchar('\n');
	}
}

/* The runtime looks at the hash only when it is asked to. */
static int check_hash(const char *path, const struct bytes *b, const struct neff *neff)
{
	uint8_t hash[SHA256_DIGEST_LENGTH];

	SHA256((const uint8_t *)b->data + NEFF_HEADER_BYTES, b->size - NEFF_HEADER_BYTES, hash);
	if (!memcmp(hash, neff->hash, sizeof(hash)))
		return 0;
	tool_error(NAME, "%s: the archive is not the one whose SHA-256 is in the header", path);
	return -EINVAL;
}

static int info(const struct options *o)
{
	struct neff *neff = NULL;
	struct bytes b = { 0 };
	int ret = read_neff(o->path, &b, &neff);

	if (!ret && !strcmp(o->command, "verify")) {
		ret = check_hash(o->path, &b, neff);
		if (!ret)
			printf("%s: right\n", o->path);
	} else if (!ret && o->json) {
		json_t *root = neff_json(neff);

		ret = !root || json_dumpf(root, stdout, JSON_INDENT(2)) ? -ENOMEM : 0;
		putchar('\n');
		json_decref(root);
	} else if (!ret) {
		print_info(neff);
	}
	neff_free(neff);
	free(b.data);
	return ret;
}

/* --- unpack -------------------------------------------------------------------------- */

/* The folder: -o, or the file's name without its suffix. */
static char *folder_name(const struct options *o)
{
	const char *slash = strrchr(o->path, '/'), *base = slash ? slash + 1 : o->path;
	const char *dot = strrchr(base, '.');

	if (o->output)
		return strdup(o->output);
	if (!dot || dot == base)
		return NULL;
	return strndup(base, dot - base);
}

static int extract(struct archive *in, int dir)
{
	struct archive *out = archive_write_disk_new();
	struct archive_entry *e;
	int ret = 0, got;

	if (!out || fchdir(dir)) {
		archive_write_free(out);
		return failed("unpack");
	}
	/* neff_read() has refused such names already; this holds for races on the disk too. */
	archive_write_disk_set_options(out, ARCHIVE_EXTRACT_SECURE_NODOTDOT |
				       ARCHIVE_EXTRACT_SECURE_SYMLINKS |
				       ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
	while (!ret && (got = archive_read_next_header(in, &e)) != ARCHIVE_EOF) {
		if (got == ARCHIVE_OK)
			got = archive_read_extract2(in, e, out);
		if (got != ARCHIVE_OK) {
			tool_error(NAME, "%s", archive_error_string(in) ?: archive_error_string(out));
			ret = -EIO;
		}
	}
	archive_write_free(out);
	return ret;
}

static int unpack_into(const struct bytes *b, int dir)
{
	const struct neff_header *h = b->data;
	struct archive *in = archive_read_new();
	int ret = -ENOMEM;

	if (in) {
		archive_read_support_format_tar(in);
		archive_read_support_filter_gzip(in);
		ret = archive_read_open_memory(in, (char *)b->data + sizeof(*h), b->size - sizeof(*h));
		ret = ret == ARCHIVE_OK ? extract(in, dir) : -EIO;
		archive_read_free(in);
	}
	return ret ? ret : write_bytes(dir, HEADER_FILE, h, sizeof(*h));
}

static int unpack(const struct options *o)
{
	struct neff *neff = NULL;
	struct bytes b = { 0 };
	char *folder = folder_name(o);
	int ret, dir = -1;

	if (!folder)
		return usage("%s has no suffix: name the folder with --output", o->path);
	ret = read_neff(o->path, &b, &neff);
	if (!ret && mkdir(folder, 0755) && (errno != EEXIST || !o->force))
		ret = failed(folder);
	if (!ret) {
		dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ret = dir < 0 ? failed(folder) : unpack_into(&b, dir);
	}
	if (!ret)
		printf("%s/\n", folder);
	if (dir >= 0)
		close(dir);
	neff_free(neff);
	free(b.data);
	free(folder);
	return ret;
}

/* --- create ---------------------------------------------------------------------------- */

static int add_file(struct archive *a, const char *path, const char *name)
{
	struct archive_entry *e = archive_entry_new();
	struct bytes b;
	int ret = read_bytes(AT_FDCWD, path, &b);

	if (ret || !e) {
		archive_entry_free(e);
		return ret ? ret : -ENOMEM;
	}
	archive_entry_set_pathname(e, name);
	archive_entry_set_size(e, b.size);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_mtime(e, 0, 0);
	if (archive_write_header(a, e) != ARCHIVE_OK ||
	    (b.size && archive_write_data(a, b.data, b.size) != (la_ssize_t)b.size)) {
		tool_error(NAME, "%s: %s", path, archive_error_string(a));
		ret = -EIO;
	}
	archive_entry_free(e);
	free(b.data);
	return ret;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Regular files in the order of their names, so that the same folder gives the same bytes. */
static int add_folder(struct archive *a, const char *folder)
{
	char *roots[] = { (char *)folder, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	size_t skip = strlen(folder) + 1;
	FTSENT *f;
	int ret = walk ? 0 : failed(folder);

	while (!ret && (f = fts_read(walk))) {
		if (f->fts_info == FTS_D || f->fts_info == FTS_DP ||
		    (f->fts_level == 1 && !strcmp(f->fts_name, HEADER_FILE)))
			continue;
		if (f->fts_info != FTS_F) {
			tool_error(NAME, "%s: only regular files can be packed", f->fts_path);
			ret = -EINVAL;
		} else {
			ret = add_file(a, f->fts_path, f->fts_path + skip);
		}
	}
	if (walk)
		fts_close(walk);
	return ret;
}

static int pack(const char *folder, FILE *out)
{
	struct archive *a = archive_write_new();
	int ret = -ENOMEM;

	if (!a)
		return ret;
	if (archive_write_set_format_pax_restricted(a) == ARCHIVE_OK &&
	    archive_write_open_FILE(a, out) == ARCHIVE_OK)
		ret = add_folder(a, folder);
	if (archive_write_close(a) != ARCHIVE_OK && !ret)
		ret = -EIO;
	archive_write_free(a);
	return ret;
}

/* Size and hash of the archive, and the identity that follows from it. */
static void seal(struct bytes *b)
{
	struct neff_header *h = b->data;

	h->data_size = b->size - sizeof(*h);
	SHA256((uint8_t *)b->data + sizeof(*h), h->data_size, h->hash);
	memcpy(h->uuid, h->hash, sizeof(h->uuid));
}

static int make(const char *folder, struct bytes *b)
{
	int ret, dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct neff *neff = NULL;
	char error[512] = "";
	struct bytes header;
	FILE *out;

	if (dir < 0)
		return failed(folder);
	ret = read_bytes(dir, HEADER_FILE, &header);
	close(dir);
	if (ret)
		return ret;
	out = header.size == NEFF_HEADER_BYTES ? open_memstream((char **)&b->data, &b->size) : NULL;
	if (!out) {
		tool_error(NAME, "%s/" HEADER_FILE " has %zu bytes; a NEFF header has %d", folder,
			   header.size, NEFF_HEADER_BYTES);
		free(header.data);
		return -EINVAL;
	}
	fwrite(header.data, 1, header.size, out);
	free(header.data);
	ret = pack(folder, out);
	if (fclose(out) && !ret)
		ret = -ENOMEM;
	if (ret)
		return ret;
	seal(b);
	ret = neff_read(b->data, b->size, &neff, error, sizeof(error));
	if (ret)
		tool_error(NAME, "%s: %s", folder, *error ? error : strerror(-ret));
	neff_free(neff);
	return ret;
}

static int create(const struct options *o)
{
	char *folder = strdup(o->path), *name = NULL;
	struct bytes b = { 0 };
	size_t n = strlen(o->path);
	int ret = -ENOMEM;

	while (folder && n > 1 && folder[n - 1] == '/')
		folder[--n] = '\0';
	if (folder && asprintf(&name, "%s%s", o->output ?: folder, o->output ? "" : ".neff") >= 0) {
		if (!o->force && !access(name, F_OK)) {
			tool_error(NAME, "%s is there; --force writes over it", name);
			ret = -EEXIST;
		} else {
			ret = make(folder, &b);
		}
	}
	if (!ret)
		ret = write_bytes(AT_FDCWD, name, b.data, b.size);
	if (!ret)
		printf("%s\n", name);
	free(b.data);
	free(folder);
	free(name);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct options *o);
	} commands[] = { { "info", info }, { "verify", info }, { "unpack", unpack }, { "create", create } };
	struct options o = { 0 };
	size_t i;

	if (parse(argc, argv, &o))
		return 2;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(o.command, commands[i].name))
			return commands[i].run(&o) ? 1 : tool_finish(NAME);
	usage("'%s' is not one of info, verify, unpack and create", o.command);
	return 2;
}
