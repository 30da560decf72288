// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

void tool_version(const char *name)
{
	printf("%s (neuron-accel) %s\n", name, TOOL_VERSION);
}

void tool_error(const char *name, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

bool tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || v < min || v > max)
		return false;
	*value = v;
	return true;
}

bool tool_fraction(const char *text, double min, double max, double *value)
{
	char *end;
	double v;

	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	v = strtod(text, &end);
	if (*end || !isfinite(v) || v < min || v > max)
		return false;
	*value = v;
	return true;
}

int tool_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;
	ssize_t n;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	ret = n < 0 ? -errno : 0;
	close(fd);
	if (ret)
		return ret;
	while (n > 0 && isspace((unsigned char)buf[n - 1]))
		n--;
	buf[n] = '\0';
	return n;
}

void tool_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = bytes;
	unsigned int i = 0;

	while (v >= 1024 && i < 4) {
		v /= 1024;
		i++;
	}
	snprintf(buf, size, i && v < 100 ? "%.1f %s" : "%.0f %s", v, unit[i]);
}

void tool_printable(char *dst, size_t size, const char *src)
{
	size_t i;

	for (i = 0; i + 1 < size && src[i]; i++)
		dst[i] = (unsigned char)src[i] < ' ' || src[i] == 127 ? '?' : src[i];
	dst[i] = '\0';
}

int tool_finish(const char *name)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	tool_error(name, "standard output: %s", strerror(errno));
	return 1;
}
