/* SPDX-License-Identifier: MIT */
#ifndef LIBNRT_LOG_H
#define LIBNRT_LOG_H

#include <stddef.h>

enum log_level {
	LOG_QUIET,
	LOG_ERR_,	/* LOG_ERR is syslog's */
	LOG_WARN_,
	LOG_INFO_,
	LOG_DEBUG_,
	LOG_TRACE_,
};

/**
 * log_setup() - read NEURON_RT_LOG_LEVEL and NEURON_RT_LOG_LOCATION
 * @error: message for a bad value
 * @size: bytes at @error
 *
 * Return: 0, or -EINVAL and the defaults stay. Any thread.
 */
int log_setup(char *error, size_t size);

/**
 * log_line() - one message in the documented format
 * @level: importance
 * @component: "NRT", "TDRV", "NMGR", "NEFF"
 * @function: name
 */
void log_line(enum log_level level, const char *component, const char *function,
	      const char *format, ...) __attribute__((format(printf, 4, 5)));

#define log_err(component, ...)	 log_line(LOG_ERR_, component, __func__, __VA_ARGS__)
#define log_warn(component, ...) log_line(LOG_WARN_, component, __func__, __VA_ARGS__)
#define log_info(component, ...) log_line(LOG_INFO_, component, __func__, __VA_ARGS__)
#define log_dbg(component, ...)	 log_line(LOG_DEBUG_, component, __func__, __VA_ARGS__)

#endif /* LIBNRT_LOG_H */
