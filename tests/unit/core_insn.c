// SPDX-License-Identifier: MIT
/*
 * What each instruction of isa.def does, against references in double: the table, and
 * what its tests share. They are in core_insn_*.c, by engine; a row without a function
 * row_NAME() there does not link.
 */
#include "core_insn.h"

tile a, b, c, want, got;
struct prog *p;
uint64_t rng = 99;

/* Each row's test runs as if on a chip of this version or later: see start_since(). */
static unsigned int generation;
#define LAST_GENERATION	4

double uniform(double lo, double hi)
{
	return lo + (hi - lo) * (num_random(&rng) >> 11) * 0x1p-53;
}

/* Random values in SBUF, as @t has them after rounding. */
void fill(tile t, unsigned int dtype, unsigned int part, unsigned int parts,
		 uint32_t offset, unsigned int n, double lo, double hi)
{
	unsigned int i, k, bytes = num_dtype(dtype)->bytes;
	uint8_t row[MAX_N * 4];

	for (i = 0; i < parts; i++) {
		for (k = 0; k < n; k++) {
			num_put(dtype, row + k * bytes, uniform(lo, hi));
			t[i][k] = num_get(dtype, row + k * bytes);
		}
		sbuf_put(p->core[0], part + i, offset, row, n * bytes);
	}
}

void fetch(tile t, unsigned int dtype, unsigned int part, unsigned int parts,
		  uint32_t offset, unsigned int n)
{
	unsigned int i, k, bytes = num_dtype(dtype)->bytes;
	uint8_t row[MAX_N * 4];

	for (i = 0; i < parts; i++) {
		sbuf_get(p->core[0], part + i, offset, row, n * bytes);
		for (k = 0; k < n; k++)
			t[i][k] = num_get(dtype, row + k * bytes);
	}
}

/* |got - want| <= tol * max(1, |want|) for every element. */
void compare(meta *_metadata, unsigned int parts, unsigned int n, double tol)
{
	unsigned int i, k;

	for (i = 0; i < parts; i++) {
		for (k = 0; k < n; k++) {
			double scale = fabs(want[i][k]) > 1 ? fabs(want[i][k]) : 1;

			ASSERT_TRUE(fabs(got[i][k] - want[i][k]) <= tol * scale) {
				TH_LOG("[%u][%u]: %.9g, expected %.9g", i, k, got[i][k], want[i][k]);
			}
		}
	}
}

void run(meta *_metadata)
{
	unsigned int fault = prog_run(p);

	ASSERT_EQ(fault, NEURON_FAULT_NONE) {
		TH_LOG("opcode %#x operand %u: %llu given, %llu allowed", p->job.fault.opcode,
		       le32toh(p->job.fault.index), (unsigned long long)le64toh(p->job.fault.addr),
		       (unsigned long long)le64toh(p->job.fault.value));
	}
}

void expect_fault(meta *_metadata, unsigned int code)
{
	ASSERT_EQ(prog_run(p), code);
}

void start(unsigned int nc_version)
{
	if (p)
		prog_free(p);
	p = prog_new(nc_version, 1);
}

void start_since(unsigned int nc_version)
{
	start(nc_version > generation ? nc_version : generation);
}

struct neuron_ap row(unsigned int dtype, unsigned int parts, uint32_t offset, unsigned int n)
{
	return ap_row(SBUF, dtype, 0, parts, offset, n);
}

#define OTHER(name) TEST(name) { insn_##name(_metadata); prog_free(p); p = NULL; }
OTHER(indirect)
OTHER(absent)

#define NEURON_INSN(code, name, text, eng, nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	TEST(name)								\
	{									\
		for (generation = 2; generation <= LAST_GENERATION; generation++) { \
			row_##name(_metadata);					\
			prog_free(p);						\
			p = NULL;						\
		}								\
	}
#include "neuron/isa.def"

TEST_HARNESS_MAIN
