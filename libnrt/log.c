// SPDX-License-Identifier: MIT
/*
 * Log lines in the format of the public runtime, which users' scripts parse:
 * "2025-Sep-19 18:57:20.798030  4444:4444  ERROR  TDRV:function<pad to 40>text".
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "env.h"
#include "log.h"

static _Atomic int log_threshold = LOG_ERR_;
static atomic_bool log_to_syslog;

static const struct {
	const char *name;
	enum log_level level;
} level_names[] = {
	{ "QUIET", LOG_QUIET }, { "ERROR", LOG_ERR_ }, { "WARN", LOG_WARN_ },
	{ "WARNING", LOG_WARN_ }, { "INFO", LOG_INFO_ }, { "DEBUG", LOG_DEBUG_ },
	{ "TRACE", LOG_TRACE_ },
};

static const char *const level_text[] = { "QUIET", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

static int bad_value(enum env_id id, const char *value, char *error, size_t size)
{
	snprintf(error, size, "%s=%.64s: must be %s", env_rows[id].name, value,
		 env_rows[id].allowed);
	return -EINVAL;
}

int log_setup(char *error, size_t size)
{
	const char *level = getenv(env_rows[ENV_LOG_LEVEL].name);
	const char *location = getenv(env_rows[ENV_LOG_LOCATION].name);
	enum log_level threshold = LOG_ERR_;
	size_t count = sizeof(level_names) / sizeof(level_names[0]);

	if (level && *level) {
		size_t i;

		for (i = 0; i < count && strcasecmp(level, level_names[i].name); i++)
			;
		if (i == count)
			return bad_value(ENV_LOG_LEVEL, level, error, size);
		threshold = level_names[i].level;
	}
	if (location && *location && strcasecmp(location, "console") &&
	    strcasecmp(location, "syslog"))
		return bad_value(ENV_LOG_LOCATION, location, error, size);
	log_threshold = threshold;
	log_to_syslog = location && !strcasecmp(location, "syslog");
	return 0;
}

static int syslog_priority(enum log_level level)
{
	switch (level) {
	case LOG_ERR_:
		return LOG_ERR;
	case LOG_WARN_:
		return LOG_WARNING;
	case LOG_INFO_:
		return LOG_INFO;
	default:
		return LOG_DEBUG;
	}
}

static void log_console(enum log_level level, const char *component,
			const char *function, const char *text)
{
	/* Month names are part of the format: not the locale's. */
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	/* One call: lines of several threads do not mix. */
	fprintf(stderr, "%04d-%.3s-%02d %02d:%02d:%02d.%06ld  %d:%d  %s  %s:%-40s%s\n",
		tm.tm_year + 1900, months + 3 * tm.tm_mon, tm.tm_mday, tm.tm_hour,
		tm.tm_min, tm.tm_sec, now.tv_nsec / 1000, getpid(), gettid(),
		level_text[level], component, function, text);
}

void log_line(enum log_level level, const char *component, const char *function,
	      const char *format, ...)
{
	int saved = errno;
	char text[2048];
	va_list args;

	if ((int)level > log_threshold)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (log_to_syslog)
		syslog(syslog_priority(level) | LOG_USER, "%s:%-40s%s", component, function, text);
	else
		log_console(level, component, function, text);
	errno = saved;
}
