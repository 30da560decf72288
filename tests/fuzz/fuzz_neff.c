// SPDX-License-Identifier: MIT
/*
 * NEFFs that are almost right: one file of the archive, its name or the header is
 * damaged, then the reader sees it. Whatever comes it must not crash, and an error
 * must come with a text.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "neff_make.h"

static struct fuzz_input input;
static unsigned long good, bad;

static uint32_t rnd(uint32_t below)
{
	return fuzz_below(&input, below);
}

/* Texts that parsers stumble over. */
static const char *const tokens[] = {
	"0", "-1", "1025", "18446744073709551615", "9223372036854775807", "4294967296", "1e400",
	"null", "true", "[]", "{}", "\"\"", "\"x\"", "\"..\"", "\"/\"", "\"SP.bin\"", "\"w.bin\"",
	"\"file\"", "\"tmp-buf\"", "\"\\u0000\"", "\"\\ud800\"", ",", ":", "[", "}", "//",
};

static const char *const paths[] = {
	"info.json", "neff.json", "sg00/def.json", "sg00/debug_info.json",
};

static const char info[] =
	"{\"tool_version\": \"test\", \"name\": \"fuzz\", \"num_tpb\": 1, \"target\": \"trn2\"}";
static const char graph[] =
	"{\"metadata\": {\"signatures\": {\"default\": {\"inputs\": {\"x\": {\"id\": 0, \"dtype\": \"float32\","
	" \"shape\": [128]}}, \"outputs\": {\"y\": {\"id\": 1, \"dtype\": \"float32\", \"shape\": [128]}}}}}}";
static const char def[] =
	"{\"version\": 1, \"isa_version\": 1, \"nc_version\": 3, \"arg_count\": 3, \"engines\":"
	" {\"sp\": \"SP.bin\"}, \"semaphore_count\": 1, \"var\": {\"x\": {\"type\": \"input\", \"var_id\": 0,"
	" \"size\": 512}, \"y\": {\"type\": \"output\", \"var_id\": 1, \"size\": 512}, \"w\": {\"type\": \"file\","
	" \"var_id\": 2, \"size\": 16, \"file_name\": \"w.bin\"}}}";
static const char lines[] =
	"{\"lines\": [{\"file\": \"prog.c\", \"line\": 11, \"name\": \"insn1\"},"
	" {\"file\": \"prog.c\", \"line\": 12, \"name\": \"insn2\"}]}";
static const char *const texts[] = { info, graph, def, lines };

static bool is_value(char c)
{
	return c == '"' || (c >= '0' && c <= '9') || c == '{' || c == '[';
}

/* Replace a value, delete a piece, double a piece, or change bytes. */
static size_t damage(const char *in, char *out)
{
	size_t size = strlen(in), at = rnd(size), cut = rnd(12);
	const char *token = tokens[rnd(sizeof(tokens) / sizeof(tokens[0]))];

	memcpy(out, in, size);
	switch (rnd(4)) {
	case 0:
		while (at < size && !is_value(in[at]))
			at++;
		cut = strcspn(in + at, ",}]");
		memcpy(out + at, token, strlen(token));
		memcpy(out + at + strlen(token), in + at + cut, size - at - cut);
		return size + strlen(token) - cut;
	case 1:
		cut = cut < size - at ? cut : size - at;
		memmove(out + at, out + at + cut, size - at - cut);
		return size - cut;
	case 2:
		cut = rnd(size - at + 1);
		memcpy(out + at + cut, in + at, size - at);
		return size + cut;
	default:
		for (int i = rnd(4); i >= 0; i--)
			out[rnd(size)] = rnd(256);
		return size;
	}
}

static struct neff_blob make(void)
{
	static const uint8_t stream[NEURON_WORD_BYTES] = { NEURON_OP_HALT, 1 };
	static char text[8192];
	struct neff_make *m = neff_make_new("fuzz", 1);
	unsigned int hurt = rnd(5);
	struct neff_blob blob;

	for (unsigned int i = 0; i < 4; i++) {
		size_t size = strlen(texts[i]);

		memcpy(text, texts[i], size);
		if (i == hurt || !rnd(20))
			size = damage(texts[i], text);
		neff_make_file(m, paths[i], text, size);
	}
	neff_make_file(m, "sg00/SP.bin", stream, sizeof(stream) - (rnd(30) ? 0 : rnd(100)));
	neff_make_file(m, "sg00/w.bin", "0123456789abcdef", rnd(30) ? 16 : rnd(16));
	if (!rnd(4))
		((uint8_t *)neff_make_header(m))[rnd(NEFF_HEADER_BYTES)] = rnd(256);
	blob = rnd(4) ? neff_make_finish(m) : neff_make_finish_gzip(m);
	for (int i = rnd(3) ? 0 : rnd(8); i > 0; i--)
		((uint8_t *)blob.bytes)[NEFF_HEADER_BYTES + rnd(blob.size - NEFF_HEADER_BYTES)] = rnd(256);
	return blob;
}

/* Everything that a loaded file offers is looked at. */
static uint64_t look(const struct neff *neff)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < neff->arg_count; i++) {
		const struct neff_arg *a = &neff->args[i];

		sum += strlen(a->name) + (a->dtype ? strlen(a->dtype) : 0);
		for (uint64_t b = 0; a->data && b < a->size; b++)
			sum += ((uint8_t *)a->data)[b];
	}
	for (unsigned int c = 0; c < neff->core_count; c++) {
		for (unsigned int e = 0; e < NEURON_ENGINE_COUNT; e++)
			for (uint64_t b = 0; b < neff->core[c].words[e] * 128ull; b++)
				sum += ((uint8_t *)neff->core[c].stream[e])[b];
		for (uint32_t i = 1; i <= neff->core[c].line_count; i++)
			sum += strlen(neff_line(neff, c, i)->file) + neff_line(neff, c, i)->line;
	}
	return sum;
}

static void try_one(const void *bytes, size_t size)
{
	char error[1024] = "";
	struct neff *neff = NULL;
	int ret = neff_read(bytes, size, &neff, error, sizeof(error));
	volatile uint64_t sink;

	if (!ret) {
		sink = look(neff);
		(void)sink;
		neff_free(neff);
		good++;
		return;
	}
	if (neff || !error[0]) {
		fprintf(stderr, "fuzz_neff: an error without a text\n");
		abort();
	}
	bad++;
}

/* A first byte of 255: the rest is a file as it is; else choices for damage. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neff_blob blob;

	if (size && data[0] == 255) {
		try_one(data + 1, size - 1);
		return 0;
	}
	input = (struct fuzz_input){ data, data + size };
	fuzz_take(&input, 1);
	blob = make();
	try_one(blob.bytes, blob.size);
	free(blob.bytes);
	return 0;
}

/* Files that all fail, or none, would not be almost right. */
void fuzz_report(void)
{
	printf("%lu good files, %lu bad ones\n", good, bad);
	if (good + bad >= 1000 && (!good || !bad))
		abort();
}
