// SPDX-License-Identifier: MIT
/* Environment variables. An empty value counts as not set. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

const struct env_row env_rows[ENV_COUNT] = {
#define NRT_ENV(id, name, allowed, fallback, meaning) \
	[ENV_##id] = { name, allowed, fallback, meaning },
#include "env.def"
#undef NRT_ENV
};

struct env_error {
	char *text;
	size_t size;
};

static const char *get(enum env_id id)
{
	const char *value = getenv(env_rows[id].name);

	return value && *value ? value : NULL;
}

static int bad(const struct env_error *error, enum env_id id, const char *value)
{
	snprintf(error->text, error->size, "%s=%.64s: must be %s", env_rows[id].name,
		 value, env_rows[id].allowed);
	return -EINVAL;
}

/* Digits only: strtoull() alone would take signs and blanks. */
static bool parse_number(const char **text, uint64_t max, uint64_t *value)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *value <= max;
}

static int get_number(const struct env_error *error, enum env_id id, uint64_t min,
		      uint64_t max, uint64_t *value)
{
	const char *text = get(id), *at = text;

	if (!text)
		return 0;
	if (!parse_number(&at, max, value) || *at || *value < min)
		return bad(error, id, text);
	return 0;
}

static int get_uint(const struct env_error *error, enum env_id id, unsigned int min,
		    unsigned int max, unsigned int *value)
{
	uint64_t number = *value;
	int ret = get_number(error, id, min, max, &number);

	*value = number;
	return ret;
}

static int get_bool(const struct env_error *error, enum env_id id, bool *value)
{
	uint64_t number = *value;
	int ret = get_number(error, id, 0, 1, &number);

	*value = number;
	return ret;
}

/* "3-5,6": the cores must increase, so none can come twice. */
static int parse_visible(const struct env_error *error, struct env *env)
{
	const char *text = get(ENV_VISIBLE_CORES), *at = text;
	uint64_t first, last, next = 0;

	if (!text)
		return 0;
	for (;;) {
		if (!parse_number(&at, ENV_MAX_VCORES - 1, &first) || first < next)
			break;
		last = first;
		if (*at == '-') {
			at++;
			if (!parse_number(&at, ENV_MAX_VCORES - 1, &last) || last < first)
				break;
		}
		for (next = first; next <= last; next++)
			env->visible[env->visible_count++] = next;
		if (!*at)
			return 0;
		if (*at++ != ',')
			break;
	}
	return bad(error, ENV_VISIBLE_CORES, text);
}

static int parse_lnc(const struct env_error *error, struct env *env)
{
	unsigned int old = 0;
	int ret = get_uint(error, ENV_LNC, 1, 2, &env->lnc) ?:
		  get_uint(error, ENV_VIRTUAL_CORE_SIZE, 1, 2, &old);

	if (ret)
		return ret;
	if (old && env->lnc && old != env->lnc) {
		snprintf(error->text, error->size, "%s=%u and %s=%u: must agree",
			 env_rows[ENV_LNC].name, env->lnc,
			 env_rows[ENV_VIRTUAL_CORE_SIZE].name, old);
		return -EINVAL;
	}
	env->lnc = env->lnc ?: old;
	return 0;
}

int env_parse(struct env *env, char *text, size_t size)
{
	const struct env_error error = { text, size };

	memset(env, 0, sizeof(*env));
	env->exec_timeout_s = 30;
	env->profile_mb = 64;
	return parse_visible(&error, env) ?:
	       get_uint(&error, ENV_NUM_CORES, 0, ENV_MAX_VCORES, &env->num_cores) ?:
	       parse_lnc(&error, env) ?:
	       get_uint(&error, ENV_EXEC_TIMEOUT, 1, 86400, &env->exec_timeout_s) ?:
	       get_uint(&error, ENV_PROFILE_MB, 1, 1024, &env->profile_mb) ?:
	       get_bool(&error, ENV_STRICT, &env->strict) ?:
	       get_bool(&error, ENV_SR_EN, &env->stochastic_rounding) ?:
	       get_number(&error, ENV_SR_SEED, 0, UINT64_MAX, &env->seed);
}
