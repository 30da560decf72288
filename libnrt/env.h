/* SPDX-License-Identifier: MIT */
#ifndef LIBNRT_ENV_H
#define LIBNRT_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENV_MAX_VCORES	1152	/* 144 chips of 8 */

enum env_id {
#define NRT_ENV(id, name, allowed, fallback, meaning) ENV_##id,
#include "env.def"
#undef NRT_ENV
	ENV_COUNT
};

struct env_row {
	const char *name;
	const char *allowed;
	const char *fallback;
	const char *meaning;
};

extern const struct env_row env_rows[ENV_COUNT];

/**
 * struct env - the environment, parsed
 * @visible: logical cores, increasing
 * @visible_count: 0: variable not set
 * @num_cores: 0: all
 * @lnc: 0: default of the chip
 * @exec_timeout_s: seconds
 * @profile_mb: MiB
 * @strict: extension
 * @stochastic_rounding: -
 * @seed: of random numbers
 */
struct env {
	uint16_t visible[ENV_MAX_VCORES];
	unsigned int visible_count;
	unsigned int num_cores;
	unsigned int lnc;
	unsigned int exec_timeout_s;
	unsigned int profile_mb;
	bool strict;
	bool stochastic_rounding;
	uint64_t seed;
};

/**
 * env_parse() - read the environment
 * @env: filled
 * @error: message that names the variable, its value and what is allowed
 * @size: bytes at @error
 *
 * Return: 0, or -EINVAL. Variables of the log are log.c's.
 */
int env_parse(struct env *env, char *error, size_t size);

#endif /* LIBNRT_ENV_H */
