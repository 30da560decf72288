// SPDX-License-Identifier: MIT
/* neuron-objdump: what is in a NEFF, its streams as text. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asm.h"
#include "disasm.h"
#include "neff.h"
#include "neuron/isa.h"

#define MAX_TEXT 8192

struct options {
	const char *engine;	/* NULL: all */
	bool headers;
	bool raw;
	bool sources;
	bool assembly;
};

static const char *const engine_text[NEURON_ENGINE_COUNT] = {
	[NEURON_ENGINE_PE] = "Tensor (pe)",	[NEURON_ENGINE_ACT] = "Scalar (act)",
	[NEURON_ENGINE_POOL] = "GpSimd (pool)", [NEURON_ENGINE_DVE] = "Vector (dve)",
	[NEURON_ENGINE_SP] = "Sync (sp)",	[NEURON_ENGINE_CC] = "Collectives (cc)",
};

static void usage(FILE *f)
{
	fputs("Usage: neuron-objdump [options] FILE.neff\n"
	      "Print the instruction streams of a program as text.\n"
	      "\n"
	      "  -e, --engine=NAME   only one stream: pe, act, dve, pool, sp or cc\n"
	      "  -p, --headers       name, target, tensors; no instructions\n"
	      "  -x, --raw           also the words as hexadecimal bytes\n"
	      "  -S, --no-source     without file, line and call\n"
	      "  -a, --assembly      all of it as a source of neuron-as\n"
	      "  -h, --help          this text\n"
	      "  -V, --version       version\n",
	      f);
}

static void print_arg(const struct neff_arg *arg, unsigned int number)
{
	printf("  arg%-4u %-8s %-24s %12" PRIu64 " bytes", number, neff_var_type_name(arg->type),
	       arg->name, arg->size);
	if (arg->dtype) {
		printf("  %s[", arg->dtype);
		for (unsigned int d = 0; d < arg->ndim; d++)
			printf("%s%u", d ? ", " : "", arg->shape[d]);
		printf("]");
	}
	putchar('\n');
}

static void print_headers(const struct neff *neff)
{
	printf("name     %s\ntarget   %s (NeuronCore-v%u), %u core%s\ntool     %s\nuuid     ", neff->name,
	       neff->target, neff->nc_version, neff->core_count, neff->core_count == 1 ? "" : "s",
	       neff->tool_version);
	for (size_t i = 0; i < sizeof(neff->uuid); i++)
		printf("%02x", neff->uuid[i]);
	printf("\ntensors\n");
	for (unsigned int i = 0; i < neff->arg_count; i++) {
		if (neff->args[i].type != NEFF_VAR_NONE)
			print_arg(&neff->args[i], i);
	}
	for (unsigned int c = 0; c < neff->core_count; c++) {
		printf("core %u   %u semaphores, words:", c, neff->core[c].semaphore_count);
		for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++) {
			if (neff->core[c].words[e])
				printf(" %s %u", neff_engine_key(e), neff->core[c].words[e]);
		}
		putchar('\n');
	}
}

static void print_raw(const unsigned char *word, size_t words)
{
	for (size_t i = 0; i < words * NEURON_WORD_BYTES; i += 32) {
		printf("        ");
		for (size_t j = 0; j < 32; j++)
			printf("%02x%s", word[i + j], j % 4 == 3 ? " " : "");
		putchar('\n');
	}
}

static void print_stream(const struct neff *neff, unsigned int core, unsigned int engine,
			 const struct options *opt)
{
	const unsigned char *stream = neff->core[core].stream[engine];
	size_t words = neff->core[core].words[engine];
	size_t pc = 0;

	printf("\ncore %u, %s: %zu words\n", core, engine_text[engine] ? engine_text[engine] : "?", words);
	while (pc < words) {
		const struct neff_line *line;
		struct neuron_insn w;
		char text[MAX_TEXT];
		size_t used;

		memcpy(&w, stream + pc * NEURON_WORD_BYTES, sizeof(w));
		used = nki_disasm(stream + pc * NEURON_WORD_BYTES, words - pc, text, sizeof(text));
		line = neff_line(neff, core, w.debug_id);
		printf("%6zu: %s", pc, text);
		if (opt->sources && line)
			printf("  # %s:%u %s", line->file, line->line, line->name);
		putchar('\n');
		if (opt->raw)
			print_raw(stream + pc * NEURON_WORD_BYTES, used);
		pc += used;
	}
}

static int print_streams(const struct neff *neff, const struct options *opt)
{
	bool known = !opt->engine;

	for (unsigned int c = 0; c < neff->core_count; c++) {
		for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++) {
			const char *key = neff_engine_key(e);

			if (!key || (opt->engine && strcmp(opt->engine, key)))
				continue;
			known = true;
			if (neff->core[c].words[e])
				print_stream(neff, c, e, opt);
		}
	}
	if (known)
		return 0;
	fprintf(stderr, "neuron-objdump: unknown engine \"%s\"; allowed: pe, act, dve, pool, sp, cc\n",
		opt->engine);
	return 2;
}

/* ------------------------------------------------------------------------ */
/* A source that neuron-as makes the same streams of			    */

static void asm_arg(const struct neff_arg *arg, unsigned int number)
{
	const unsigned char *data = arg->data;

	printf(".arg %u %s \"%s\" ", number, neff_var_type_name(arg->type), arg->name);
	if (arg->dtype) {
		printf("%s[", arg->dtype);
		for (unsigned int d = 0; d < arg->ndim; d++)
			printf("%s%u", d ? ", " : "", arg->shape[d]);
		printf("]\n");
		return;
	}
	printf("%" PRIu64, arg->size);
	for (uint64_t i = 0; data && i < arg->size; i++) {
		if (i % 32 == 0)
			printf("\n.data %u ", number);
		printf("%02x", data[i]);
	}
	putchar('\n');
}

/* Text that does not become the same words again is not shown: the bytes are. */
static size_t asm_insn(const unsigned char *word, size_t left)
{
	static struct nki_asm_insn insn;
	char text[MAX_TEXT], error[256];
	size_t used = nki_disasm_line(word, left, true, text, sizeof(text));

	if (!nki_asm(text, &insn, error, sizeof(error)) && insn.words == used &&
	    !memcmp(insn.word, word, used * NEURON_WORD_BYTES)) {
		printf("\t%s\n", text);
		return used;
	}
	printf(".word ");
	for (size_t i = 0; i < NEURON_WORD_BYTES; i++)
		printf("%02x", word[i]);
	putchar('\n');
	return 1;
}

static void asm_core(const struct neff *neff, unsigned int c)
{
	const struct neff_core *core = &neff->core[c];

	printf("\n.core %u\n.semaphores %u\n", c, core->semaphore_count);
	for (uint32_t i = 0; i < core->line_count; i++)
		printf(".line %u \"%s\" %u \"%s\"\n", i + 1, core->lines[i].file, core->lines[i].line,
		       core->lines[i].name);
	for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++) {
		const unsigned char *stream = core->stream[e];
		size_t pc = 0;

		if (!core->words[e])
			continue;
		printf("\n.engine %s\n", neff_engine_key(e));
		while (pc < core->words[e])
			pc += asm_insn(stream + pc * NEURON_WORD_BYTES, core->words[e] - pc);
	}
}

static void print_assembly(const struct neff *neff)
{
	printf(".program \"%s\"\n.target %s\n.unchecked\n", neff->name, neff->target);
	for (unsigned int i = 0; i < neff->arg_count; i++) {
		if (neff->args[i].type != NEFF_VAR_NONE)
			asm_arg(&neff->args[i], i);
	}
	for (unsigned int c = 0; c < neff->core_count; c++)
		asm_core(neff, c);
}

static int dump(const char *path, const struct options *opt)
{
	char error[512] = "";
	struct neff *neff;
	int ret = neff_read_file(path, &neff, error, sizeof(error));

	if (ret) {
		fprintf(stderr, "neuron-objdump: %s: %s\n", path, *error ? error : strerror(-ret));
		return 1;
	}
	if (opt->assembly) {
		print_assembly(neff);
	} else {
		print_headers(neff);
		ret = opt->headers ? 0 : print_streams(neff, opt);
	}
	neff_free(neff);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "neuron-objdump: writing the output failed: %s\n", strerror(errno));
		return 1;
	}
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "engine", required_argument, NULL, 'e' }, { "headers", no_argument, NULL, 'p' },
		{ "raw", no_argument, NULL, 'x' },	    { "no-source", no_argument, NULL, 'S' },
		{ "assembly", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },	    { "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	struct options opt = { .sources = true };
	int c;

	while ((c = getopt_long(argc, argv, "e:pxSahV", longopts, NULL)) != -1) {
		switch (c) {
		case 'e':
			opt.engine = optarg;
			break;
		case 'p':
			opt.headers = true;
			break;
		case 'x':
			opt.raw = true;
			break;
		case 'S':
			opt.sources = false;
			break;
		case 'a':
			opt.assembly = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			printf("neuron-objdump %s\n", NKI_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (argc != optind + 1) {
		usage(stderr);
		return 2;
	}
	return dump(argv[optind], &opt);
}
