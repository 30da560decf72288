// SPDX-License-Identifier: MIT
#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neff_make.h"

#define MAX_FILES 64

struct neff_make {
	struct neff_header header;
	struct {
		char path[300];
		void *data;
		size_t size;
	} file[MAX_FILES];
	int count;
};

static void *copy_of(const void *data, size_t size)
{
	void *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	return copy;
}

struct neff_make *neff_make_new(const char *name, unsigned int cores)
{
	struct neff_make *m = calloc(1, sizeof(*m));
	struct neff_header *h;

	if (!m)
		abort();
	h = &m->header;
	h->pkg_version = NEFF_PKG_VERSION;
	h->header_size = NEFF_HEADER_BYTES;
	h->neff_version_major = NEFF_VERSION_MAJOR;
	snprintf(h->neff_build_version, sizeof(h->neff_build_version), "test");
	h->num_tpb = h->requested_tpb_count = h->lnc_size = cores;
	h->tpb_per_node[0] = cores;
	h->feature_bits = NEFF_FEATURE_OPEN_ISA;
	snprintf(h->name, sizeof(h->name), "%s", name);
	return m;
}

struct neff_header *neff_make_header(struct neff_make *m)
{
	return &m->header;
}

static int find(const struct neff_make *m, const char *path)
{
	int i;

	for (i = 0; i < m->count && strcmp(m->file[i].path, path); i++)
		;
	return i;
}

void neff_make_file(struct neff_make *m, const char *path, const void *data, size_t size)
{
	int i = find(m, path);

	if (i == MAX_FILES)
		abort();
	if (i == m->count)
		m->count++;
	else
		free(m->file[i].data);
	snprintf(m->file[i].path, sizeof(m->file[i].path), "%s", path);
	m->file[i].data = copy_of(data, size);
	m->file[i].size = size;
}

void neff_make_text(struct neff_make *m, const char *path, const char *text)
{
	neff_make_file(m, path, text, strlen(text));
}

void neff_make_remove(struct neff_make *m, const char *path)
{
	int i = find(m, path);

	if (i == m->count)
		abort();
	free(m->file[i].data);
	memmove(&m->file[i], &m->file[i + 1], (m->count - i - 1) * sizeof(m->file[0]));
	m->count--;
}

static struct neff_blob finish(struct neff_make *m, int gzip)
{
	size_t space = 1 << 20, used;
	struct neff_blob blob;
	struct archive *a = archive_write_new();
	char *bytes;

	for (int i = 0; i < m->count; i++)
		space += m->file[i].size + 4096;
	bytes = malloc(space);
	if (!a || !bytes)
		abort();
	archive_write_set_format_ustar(a);
	if (gzip)
		archive_write_add_filter_gzip(a);
	archive_write_open_memory(a, bytes + NEFF_HEADER_BYTES, space - NEFF_HEADER_BYTES, &used);
	for (int i = 0; i < m->count; i++) {
		struct archive_entry *entry = archive_entry_new();

		archive_entry_set_pathname(entry, m->file[i].path);
		archive_entry_set_size(entry, m->file[i].size);
		archive_entry_set_filetype(entry, AE_IFREG);
		archive_entry_set_perm(entry, 0644);
		if (archive_write_header(a, entry) != ARCHIVE_OK)
			abort();
		archive_write_data(a, m->file[i].data, m->file[i].size);
		archive_entry_free(entry);
		free(m->file[i].data);
	}
	archive_write_close(a);
	archive_write_free(a);
	m->header.data_size = used;
	memcpy(bytes, &m->header, sizeof(m->header));
	blob = (struct neff_blob){ bytes, used + NEFF_HEADER_BYTES };
	free(m);
	return blob;
}

struct neff_blob neff_make_finish(struct neff_make *m)
{
	return finish(m, 0);
}

struct neff_blob neff_make_finish_gzip(struct neff_make *m)
{
	return finish(m, 1);
}

/* ---- programs --------------------------------------------------------------------- */

unsigned int test_nc_version(const char *arch)
{
#define NEURON_ARCH(id, name, product, device, nc, ...) \
	if (!strcmp(arch, name)) \
		return nc;
#include "neuron/arch.def"
#undef NEURON_ARCH
	return 0;
}

static void put_def(struct neff_make *m, const char *arch, unsigned int count,
		    const char *engine, const char *file, const char *vars, unsigned int args)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{\"version\": 1, \"isa_version\": %d, \"nc_version\": %u, \"arg_count\": %u,"
		 " \"engines\": {\"%s\": \"%s\"}, \"semaphore_count\": 1, \"var\": {"
		 "\"x\": {\"type\": \"input\", \"var_id\": 0, \"size\": %u},"
		 "\"y\": {\"type\": \"output\", \"var_id\": 1, \"size\": %u}%s}}",
		 NEURON_ISA_VERSION, test_nc_version(arch), args, engine, file,
		 4 * count, 4 * count, vars);
	neff_make_text(m, "sg00/def.json", text);
}

static struct neff_make *program(const char *name, const char *arch, unsigned int count,
				 const char *engine, const void *stream, unsigned int words,
				 const char *vars, unsigned int args)
{
	struct neff_make *m = neff_make_new(name, 1);
	const char *file = NULL;
	char text[1024], path[64];

	for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++)
		if (neff_engine_key(e) && !strcmp(neff_engine_key(e), engine))
			file = neff_engine_file(e);
	snprintf(text, sizeof(text),
		 "{\"tool_version\": \"test\", \"name\": \"%s\", \"num_tpb\": 1, \"target\": \"%s\"}",
		 name, arch);
	neff_make_text(m, "info.json", text);
	snprintf(text, sizeof(text),
		 "{\"metadata\": {\"signatures\": {\"default\": {"
		 "\"inputs\": {\"x\": {\"id\": 0, \"dtype\": \"float32\", \"shape\": [%u]}},"
		 "\"outputs\": {\"y\": {\"id\": 1, \"dtype\": \"float32\", \"shape\": [%u]}}}}}}",
		 count, count);
	neff_make_text(m, "neff.json", text);
	put_def(m, arch, count, engine, file, vars, args);
	snprintf(path, sizeof(path), "sg00/%s", file);
	neff_make_file(m, path, stream, (size_t)words * NEURON_WORD_BYTES);
	neff_make_text(m, "sg00/debug_info.json",
		       "{\"lines\": [{\"file\": \"prog.c\", \"line\": 11, \"name\": \"insn1\"},"
		       "{\"file\": \"prog.c\", \"line\": 12, \"name\": \"insn2\"},"
		       "{\"file\": \"prog.c\", \"line\": 13, \"name\": \"insn3\"},"
		       "{\"file\": \"prog.c\", \"line\": 14, \"name\": \"insn4\"}]}");
	return m;
}

struct neff_make *neff_make_program(const char *name, const char *arch, unsigned int count,
				    const char *engine, const void *stream, unsigned int words)
{
	return program(name, arch, count, engine, stream, words, "", 2);
}

/* One 128-byte word that has any of the layouts. */
union word {
	struct neuron_insn insn;
	struct neuron_dma_operand dma;
	uint8_t bytes[NEURON_WORD_BYTES];
};

static struct neuron_dma_operand operand(unsigned int arg, unsigned int count)
{
	struct neuron_dma_operand op = {
		.space = NEURON_SPACE_HBM, .dtype = NEURON_DTYPE_FLOAT32, .arg = arg,
		.dims = 1, .offset_reg = NEURON_REG_NONE, .count_reg = NEURON_REG_NONE,
	};

	op.count[0] = count;
	op.stride[0] = 4;
	op.index.offset_reg = op.index.count_reg = NEURON_REG_NONE;
	return op;
}

/* Three words: argument @dst = argument @src. */
static void dma(union word *w, unsigned int dst, unsigned int src, unsigned int count,
		unsigned int debug_id)
{
	memset(w, 0, 3 * sizeof(*w));
	w[0].insn.opcode = NEURON_OP_DMA_COPY;
	w[0].insn.words = 3;
	w[0].insn.debug_id = debug_id;
	w[1].dma = operand(dst, count);
	w[2].dma = operand(src, count);
}

struct neff_blob neff_make_copy(const char *arch, unsigned int count)
{
	union word w[3];

	dma(w, 1, 0, count, 1);
	return neff_make_finish(neff_make_program("copy", arch, count, "sp", w, 3));
}

struct neff_blob neff_make_two_cores(const char *arch, unsigned int count)
{
	struct neff_make *m;
	struct neff_header *h;
	union word w[3];
	char text[512];

	dma(w, 1, 0, count / 2, 1);
	m = neff_make_program("two", arch, count, "sp", w, 3);
	h = neff_make_header(m);
	h->num_tpb = h->requested_tpb_count = h->lnc_size = h->tpb_per_node[0] = 2;
	snprintf(text, sizeof(text),
		 "{\"tool_version\": \"test\", \"name\": \"two\", \"num_tpb\": 2, \"target\": \"%s\"}",
		 arch);
	neff_make_text(m, "info.json", text);
	snprintf(text, sizeof(text),
		 "{\"version\": 1, \"isa_version\": %d, \"nc_version\": %u, \"arg_count\": 2,"
		 " \"engines\": {\"act\": \"Activation.bin\"}, \"semaphore_count\": 0, \"var\": {}}",
		 NEURON_ISA_VERSION, test_nc_version(arch));
	neff_make_text(m, "sg01/def.json", text);
	dma(w, 1, 0, count - count / 2, 1);
	w[1].dma.offset = w[2].dma.offset = 4 * (count / 2);
	neff_make_file(m, "sg01/Activation.bin", w, sizeof(w));
	return neff_make_finish(m);
}

struct neff_blob neff_make_bounds(const char *arch, unsigned int count)
{
	union word w[3];

	dma(w, 1, 0, count, 2);
	w[2].dma.offset = 4;
	return neff_make_finish(neff_make_program("bounds", arch, count, "sp", w, 3));
}

struct neff_blob neff_make_spin(const char *arch)
{
	union word w[1];

	memset(w, 0, sizeof(w));
	w[0].insn.opcode = NEURON_OP_COMPARE_BRANCH;
	w[0].insn.words = 1;
	w[0].insn.debug_id = 3;
	w[0].insn.op[0] = NEURON_ALU_EQUAL;
	w[0].insn.imm[0] = (struct neuron_imm){ .kind = NEURON_IMM_I32, .dtype = NEURON_DTYPE_INT32 };
	w[0].insn.imm[1] = w[0].insn.imm[0];
	return neff_make_finish(neff_make_program("spin", arch, 16, "sp", w, 1));
}

struct neff_blob neff_make_deadlock(const char *arch)
{
	union word w[1];

	memset(w, 0, sizeof(w));
	w[0].insn.opcode = NEURON_OP_EVENT_SEMAPHORE;
	w[0].insn.words = 1;
	w[0].insn.debug_id = 4;
	w[0].insn.wait[0] = (struct neuron_wait){ .sem = 7, .cond = NEURON_WAIT_GE, .value = 3 };
	return neff_make_finish(neff_make_program("deadlock", arch, 16, "sp", w, 1));
}

struct neff_blob neff_make_constant(const char *arch, unsigned int count)
{
	float *values = malloc(4 * count);
	struct neff_make *m;
	union word w[3];
	char vars[128];

	dma(w, 1, 2, count, 1);
	snprintf(vars, sizeof(vars),
		 ", \"w\": {\"type\": \"file\", \"var_id\": 2, \"size\": %u, \"file_name\": \"w.bin\"}",
		 4 * count);
	m = program("constant", arch, count, "sp", w, 3, vars, 3);
	for (unsigned int i = 0; i < count; i++)
		values[i] = i;
	neff_make_file(m, "sg00/w.bin", values, 4 * count);
	free(values);
	return neff_make_finish(m);
}

struct neff_blob neff_make_scratch(const char *arch, unsigned int count)
{
	union word w[7];
	char vars[128];

	/* scratch = x, then semaphore 0 += 1; wait for it; y = scratch */
	dma(w, 2, 0, count, 1);
	w[0].insn.update = (struct neuron_update){ .sem = 0, .op = NEURON_UPDATE_SEM_ADD, .value = 1 };
	dma(w + 3, 1, 2, count, 2);
	w[3].insn.wait[0] = (struct neuron_wait){ .sem = 0, .cond = NEURON_WAIT_GE, .value = 1 };
	snprintf(vars, sizeof(vars), ", \"tmp\": {\"type\": \"tmp-buf\", \"var_id\": 2, \"size\": %u}",
		 4 * count);
	return neff_make_finish(program("scratch", arch, count, "sp", w, 6, vars, 3));
}
