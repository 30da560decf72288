// SPDX-License-Identifier: MIT
/* The NEFF reader: good files, and every kind of bad one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "neff_make.h"
#include "kselftest_harness.h"

static char error[1024];

static int read_blob(struct neff_blob *blob, struct neff **neff)
{
	error[0] = 0;
	return neff_read(blob->bytes, blob->size, neff, error, sizeof(error));
}

/* Read, expect @code and @text in the message, free. */
static bool fails(struct neff_blob blob, int code, const char *text)
{
	struct neff *neff = NULL;
	int ret = read_blob(&blob, &neff);
	bool ok = ret == code && !neff && strstr(error, text);

	if (!ok)
		printf("# returned %d, message '%s', wanted %d, '%s'\n", ret, error, code, text);
	neff_free(neff);
	free(blob.bytes);
	return ok;
}

static struct neff_make *good(void)
{
	static const uint8_t stream[NEURON_WORD_BYTES] = { NEURON_OP_HALT, 1 };

	return neff_make_program("good", "trn2", 128, "sp", stream, 1);
}

/* A good file with one JSON file replaced. */
static struct neff_blob with(const char *path, const char *text)
{
	struct neff_make *m = good();

	neff_make_text(m, path, text);
	return neff_make_finish(m);
}

static struct neff_blob without(const char *path)
{
	struct neff_make *m = good();

	neff_make_remove(m, path);
	return neff_make_finish(m);
}

static struct neff_blob extra(const char *path)
{
	struct neff_make *m = good();

	neff_make_text(m, path, "x");
	return neff_make_finish(m);
}

#define DEF(args, engines, vars) \
	"{\"version\": 1, \"isa_version\": 1, \"nc_version\": 3, \"arg_count\": " args \
	", \"semaphore_count\": 1, \"engines\": {" engines "}, \"var\": {" vars "}}"
#define VAR_X "\"x\": {\"type\": \"input\", \"var_id\": 0, \"size\": 512}"
#define VAR_Y "\"y\": {\"type\": \"output\", \"var_id\": 1, \"size\": 512}"
#define SP "\"sp\": \"SP.bin\""

TEST(good_file)
{
	struct neff_blob blob = neff_make_constant("trn2", 128);
	struct neff *neff;
	const struct neff_line *line;

	ASSERT_EQ(0, read_blob(&blob, &neff)) TH_LOG("%s", error);
	/* The reader keeps no pointer into the file. */
	memset(blob.bytes, 0xa5, blob.size);
	free(blob.bytes);
	EXPECT_STREQ("constant", neff->name);
	EXPECT_STREQ("trn2", neff->target);
	EXPECT_EQ(3, neff->nc_version);
	EXPECT_EQ(1, neff->core_count);
	ASSERT_EQ(3, neff->arg_count);
	EXPECT_EQ(NEFF_VAR_INPUT, neff->args[0].type);
	EXPECT_EQ(NEFF_VAR_OUTPUT, neff->args[1].type);
	EXPECT_EQ(NEFF_VAR_FILE, neff->args[2].type);
	EXPECT_STREQ("x", neff->args[0].name);
	EXPECT_STREQ("float32", neff->args[0].dtype);
	EXPECT_EQ(1, neff->args[0].ndim);
	EXPECT_EQ(128, neff->args[0].shape[0]);
	EXPECT_EQ(512, neff->args[2].size);
	EXPECT_EQ(5.0f, ((float *)neff->args[2].data)[5]);
	EXPECT_EQ(3, neff->core[0].words[NEURON_ENGINE_SP]);
	EXPECT_EQ(NEURON_OP_DMA_COPY, *(uint8_t *)neff->core[0].stream[NEURON_ENGINE_SP]);
	EXPECT_EQ(NULL, neff->core[0].stream[NEURON_ENGINE_PE]);
	EXPECT_EQ(NULL, neff_line(neff, 0, 0));
	EXPECT_EQ(NULL, neff_line(neff, 0, 5));
	EXPECT_EQ(NULL, neff_line(neff, 1, 1));
	line = neff_line(neff, 0, 2);
	ASSERT_NE(NULL, line);
	EXPECT_STREQ("prog.c", line->file);
	EXPECT_STREQ("insn2", line->name);
	EXPECT_EQ(12, line->line);
	neff_free(neff);
}

TEST(gzip)
{
	struct neff_blob blob = neff_make_finish_gzip(good());
	struct neff *neff;

	ASSERT_EQ(0, read_blob(&blob, &neff)) TH_LOG("%s", error);
	EXPECT_STREQ("good", neff->name);
	neff_free(neff);
	free(blob.bytes);
}

TEST(gzip_bomb)
{
	size_t size = 256u << 20;
	char *zeros = calloc(1, size);
	struct neff_make *m = good();

	neff_make_file(m, "sg00/zeros.bin", zeros, size);
	free(zeros);
	EXPECT_TRUE(fails(neff_make_finish_gzip(m), -EINVAL, "unpacks to more"));
}

/* Every truncation ends with an error and no crash; so does every single byte. */
TEST(truncated)
{
	struct neff_blob blob = neff_make_finish(good());
	struct neff *neff;

	for (size_t size = 0; size < blob.size; size += size < 1100 ? 1 : 97) {
		char *copy = malloc(size + 1);

		/* With a header that agrees, so that the archive is what is short. */
		memcpy(copy, blob.bytes, size);
		if (size > NEFF_HEADER_BYTES)
			((struct neff_header *)copy)->data_size = size - NEFF_HEADER_BYTES;
		if (!neff_read(copy, size, &neff, error, sizeof(error)))
			neff_free(neff);	/* only padding of the archive was cut */
		else
			EXPECT_NE(0, error[0]);
		free(copy);
	}
	EXPECT_EQ(-EINVAL, neff_read(NULL, 5000, &neff, error, sizeof(error)));
	EXPECT_EQ(-EINVAL, neff_read(blob.bytes, 0, &neff, NULL, 0));
	free(blob.bytes);
}

TEST(flipped_bytes)
{
	struct neff_blob blob = neff_make_finish(good());
	unsigned char *bytes = blob.bytes;
	struct neff *neff;

	for (size_t i = 0; i < blob.size; i += 3) {
		bytes[i] ^= 0x41;
		if (!neff_read(bytes, blob.size, &neff, error, sizeof(error)))
			neff_free(neff);
		bytes[i] ^= 0x41;
	}
	free(blob.bytes);
}

#define HEADER_CASE(field, value, code, text) do { \
		struct neff_make *m_ = good(); \
		neff_make_header(m_)->field = value; \
		EXPECT_TRUE(fails(neff_make_finish(m_), code, text)); \
	} while (0)

TEST(bad_header)
{
	struct neff_make *m;
	struct neff_blob blob;

	HEADER_CASE(pkg_version, 1, -EOPNOTSUPP, "received: 1");
	HEADER_CASE(header_size, 1023, -EINVAL, "header_size");
	HEADER_CASE(neff_version_major, 1, -EOPNOTSUPP,
		    "NEFF version mismatch supported: 2.0 received: 1.0");
	/* The feature bits of AWS's published files. */
	HEADER_CASE(feature_bits, 0x209c00, -EOPNOTSUPP, "private instruction encoding");
	HEADER_CASE(feature_bits, 0, -EOPNOTSUPP, "private instruction encoding");
	HEADER_CASE(feature_bits, NEFF_FEATURE_OPEN_ISA | 0x100, -EOPNOTSUPP,
		    "features: 0x100 are not supported. Currently supporting: 0x100000000");
	HEADER_CASE(lnc_size, 0, -EINVAL, "lnc_size is 0");
	HEADER_CASE(lnc_size, 3, -EINVAL, "lnc_size is 3, must be 1 to 2");
	HEADER_CASE(num_tpb, 2, -EINVAL, "num_tpb is 2");
	HEADER_CASE(name[0], 0, -EINVAL, "name is empty");
	m = good();
	memset(neff_make_header(m)->name, 'n', sizeof(neff_make_header(m)->name));
	EXPECT_TRUE(fails(neff_make_finish(m), -EINVAL, "name is empty or does not end"));
	blob = neff_make_finish(good());
	((struct neff_header *)blob.bytes)->data_size++;
	EXPECT_TRUE(fails(blob, -EINVAL, "data_size"));
	blob = neff_make_finish(good());
	((struct neff_header *)blob.bytes)->data_size = UINT64_MAX;
	EXPECT_TRUE(fails(blob, -EINVAL, "data_size"));
}

TEST(bad_paths)
{
	EXPECT_TRUE(fails(extra("/etc/passwd"), -EINVAL, "bad file name '/etc/passwd'"));
	EXPECT_TRUE(fails(extra("../x"), -EINVAL, "bad file name"));
	EXPECT_TRUE(fails(extra("sg00/../../x"), -EINVAL, "bad file name"));
	EXPECT_TRUE(fails(extra("sg00/.."), -EINVAL, "bad file name"));
	EXPECT_TRUE(fails(extra("sg00\\x"), -EINVAL, "bad file name"));
	/* Twice under two spellings. */
	EXPECT_TRUE(fails(extra("./neff.json"), -EINVAL, "twice"));
}

TEST(unknown_files_are_ignored)
{
	struct neff_blob blob = extra("hlo_stats.json");
	struct neff *neff;

	ASSERT_EQ(0, read_blob(&blob, &neff)) TH_LOG("%s", error);
	neff_free(neff);
	free(blob.bytes);
}

TEST(missing_files)
{
	EXPECT_TRUE(fails(without("info.json"), -EINVAL, "'info.json' is missing"));
	EXPECT_TRUE(fails(without("neff.json"), -EINVAL, "'neff.json' is missing"));
	EXPECT_TRUE(fails(without("sg00/def.json"), -EINVAL, "'sg00/def.json' is missing"));
	EXPECT_TRUE(fails(without("sg00/SP.bin"), -EINVAL, "'sg00/SP.bin' is missing"));
}

TEST(no_line_table)
{
	struct neff_blob blob = without("sg00/debug_info.json");
	struct neff *neff;

	ASSERT_EQ(0, read_blob(&blob, &neff)) TH_LOG("%s", error);
	EXPECT_EQ(NULL, neff_line(neff, 0, 1));
	neff_free(neff);
	free(blob.bytes);
}

TEST(bad_json)
{
	static const char *const files[] = {
		"info.json", "neff.json", "sg00/def.json", "sg00/debug_info.json",
	};
	static const char *const texts[] = {
		"", "{", "[]", "null", "{}", "{\"a\": 1, \"a\": 2}", "\xff\xfe", "{\"lines\": 3}",
	};

	for (size_t f = 0; f < 4; f++)
		for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
			EXPECT_TRUE(fails(with(files[f], texts[t]), -EINVAL, ""));
}

TEST(deep_json)
{
	size_t depth = 200000;
	char *text = malloc(depth + 1);

	memset(text, '[', depth);
	text[depth] = 0;
	EXPECT_TRUE(fails(with("neff.json", text), -EINVAL, "neff.json"));
	free(text);
}

TEST(bad_variables)
{
	const char *def = "sg00/def.json";

	EXPECT_TRUE(fails(with(def, DEF("1", SP, VAR_X "," VAR_Y)), -EINVAL, "arg_count"));
	EXPECT_TRUE(fails(with(def, DEF("1025", SP, VAR_X "," VAR_Y)), -EINVAL,
			  "'arg_count' is 1025, must be 0 to 1024"));
	EXPECT_TRUE(fails(with(def, DEF("-1", SP, VAR_X "," VAR_Y)), -EINVAL, "arg_count"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"y\": {\"type\": \"output\", \"var_id\": 0, \"size\": 512}")),
			  -EINVAL, "both have var_id 0"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 512}")),
			  -EINVAL, "'var_id' is 2, must be 0 to 1"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"y\": {\"type\": \"pointer\", \"var_id\": 1, \"size\": 512}")),
			  -EINVAL, "must be input, output, file or tmp-buf"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"y\": {\"type\": \"output\", \"var_id\": 1, \"size\": 0}")),
			  -EINVAL, "'size' is 0"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"y\": {\"type\": \"output\", \"var_id\": 1, \"size\": 9223372036854775807}")),
			  -EINVAL, "'size' is 9223372036854775807"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"y\": {\"type\": \"output\", \"var_id\": 1, \"size\": 516}")),
			  -EINVAL, "has 512 bytes by shape, 516 by def.json"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"y\": 7")), -EINVAL, "integer"));
	EXPECT_TRUE(fails(with(def, DEF("2", SP, VAR_X ", \"z\": {\"type\": \"output\", \"var_id\": 1, \"size\": 512}")),
			  -EINVAL, "'y' has id 1"));
}

TEST(bad_constants)
{
	const char *def = "sg00/def.json";

#define WITH_W(w) DEF("3", SP, VAR_X "," VAR_Y ", \"w\": {\"type\": \"file\", \"var_id\": 2, \"size\": 16" w "}")
	EXPECT_TRUE(fails(with(def, WITH_W("")), -EINVAL, "'file_name' must be a string"));
	EXPECT_TRUE(fails(with(def, WITH_W(", \"file_name\": \"w.bin\"")), -EINVAL,
			  "'sg00/w.bin' is missing"));
	EXPECT_TRUE(fails(with(def, WITH_W(", \"file_name\": \"../info.json\"")), -EINVAL,
			  "must not name a folder"));
	EXPECT_TRUE(fails(with(def, WITH_W(", \"file_name\": \"SP.bin\"")), -EINVAL,
			  "has 128 bytes, variable 'w' says 16"));
#undef WITH_W
}

TEST(bad_engines)
{
	const char *def = "sg00/def.json";
	struct neff_make *m;

	EXPECT_TRUE(fails(with(def, DEF("2", "\"gpu\": \"SP.bin\"", VAR_X "," VAR_Y)), -EINVAL,
			  "unknown engine 'gpu'"));
	EXPECT_TRUE(fails(with(def, DEF("2", "\"sp\": 1", VAR_X "," VAR_Y)), -EINVAL, "file name"));
	EXPECT_TRUE(fails(with(def, DEF("2", "\"sp\": \"SP.bin\", \"pe\": \"SP.bin\"", VAR_X "," VAR_Y)),
			  -EINVAL, "used once"));
	EXPECT_TRUE(fails(with(def, DEF("2", "\"sp\": \"../neff.json\"", VAR_X "," VAR_Y)), -EINVAL,
			  "must not name a folder"));
	EXPECT_TRUE(fails(with("sg00/SP.bin", "short"), -EINVAL, "positive multiple of 128"));
	m = good();
	neff_make_file(m, "sg00/SP.bin", "", 0);
	EXPECT_TRUE(fails(neff_make_finish(m), -EINVAL, "positive multiple of 128"));
}

TEST(bad_tensors)
{
#define GRAPH(x, y) "{\"metadata\": {\"signatures\": {\"default\": {\"inputs\": {" x "}, \"outputs\": {" y "}}}}}"
#define X(shape) "\"x\": {\"id\": 0, \"dtype\": \"float32\", \"shape\": " shape "}"
#define Y "\"y\": {\"id\": 1, \"dtype\": \"float32\", \"shape\": [128]}"
	const char *path = "neff.json";

	EXPECT_TRUE(fails(with(path, GRAPH(X("[0]"), Y)), -EINVAL, "dimension 0"));
	EXPECT_TRUE(fails(with(path, GRAPH(X("[-1]"), Y)), -EINVAL, "dimension 0"));
	EXPECT_TRUE(fails(with(path, GRAPH(X("[4294967295, 4294967295, 4294967295]"), Y)), -EINVAL,
			  "out of range"));
	EXPECT_TRUE(fails(with(path, GRAPH(X("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,128]"), Y)), -EINVAL,
			  "at most 16"));
	EXPECT_TRUE(fails(with(path, GRAPH(X("\"128\""), Y)), -EINVAL, "shape must be an array"));
	EXPECT_TRUE(fails(with(path, GRAPH(X("[64]"), Y)), -EINVAL, "256 bytes by shape"));
	EXPECT_TRUE(fails(with(path, GRAPH("", Y)), -EINVAL, "'x' has no signature"));
	EXPECT_TRUE(fails(with(path, GRAPH("\"x\": {\"id\": 1, \"dtype\": \"float32\", \"shape\": [128]}", Y)),
			  -EINVAL, "has id 1"));
	EXPECT_TRUE(fails(with(path, GRAPH("\"x\": {\"id\": 0, \"dtype\": \"float33\", \"shape\": [128]}", Y)),
			  -EINVAL, "unknown dtype 'float33'"));
	EXPECT_TRUE(fails(with(path, GRAPH(X("[128]") ", \"z\": {\"id\": 7}", Y)), -EINVAL,
			  "'id' is 7, must be 0 to 1"));
#undef GRAPH
#undef X
#undef Y
}

TEST(versions)
{
	static const char *const format =
		"{\"version\": %d, \"isa_version\": %d, \"nc_version\": 3, \"arg_count\": 0, \"semaphore_count\": %d, \"engines\": {}, \"var\": {}}";
	char text[512];

	snprintf(text, sizeof(text), format, 2, 1, 0);
	EXPECT_TRUE(fails(with("sg00/def.json", text), -EOPNOTSUPP, "version mismatch supported: 1 received: 2"));
	snprintf(text, sizeof(text), format, 1, 9, 0);
	EXPECT_TRUE(fails(with("sg00/def.json", text), -EOPNOTSUPP, "ISA version mismatch"));
	snprintf(text, sizeof(text), format, 1, 1, 257);
	EXPECT_TRUE(fails(with("sg00/def.json", text), -EINVAL, "'semaphore_count' is 257, must be 0 to 256"));
}

TEST(not_an_archive)
{
	struct neff_blob blob = neff_make_finish(good());

	memset((char *)blob.bytes + NEFF_HEADER_BYTES, 'z', blob.size - NEFF_HEADER_BYTES);
	EXPECT_TRUE(fails(blob, -EINVAL, ""));
}

TEST(files)
{
	char path[] = "/tmp/nrt_neff_XXXXXX";
	struct neff_blob blob = neff_make_finish(good());
	int fd = mkstemp(path);
	struct neff *neff;

	ASSERT_GE(fd, 0);
	ASSERT_EQ((ssize_t)blob.size, write(fd, blob.bytes, blob.size));
	close(fd);
	EXPECT_EQ(0, neff_read_file(path, &neff, error, sizeof(error)));
	neff_free(neff);
	unlink(path);
	EXPECT_EQ(-ENOENT, neff_read_file(path, &neff, error, sizeof(error)));
	EXPECT_NE(NULL, strstr(error, path));
	EXPECT_EQ(-EINVAL, neff_read_file("/tmp", &neff, error, sizeof(error)));
	free(blob.bytes);
}

TEST_HARNESS_MAIN
