// SPDX-License-Identifier: MIT
/* Netpbm grey and colour pictures: the formats that every tool can write. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "run.h"

#define MAX_SIDE	16384u

struct reader {
	const uint8_t *at;
	const uint8_t *end;
};

bool image_detect(const uint8_t *bytes, size_t size)
{
	return size > 2 && bytes[0] == 'P' &&
	       (bytes[1] == '2' || bytes[1] == '3' || bytes[1] == '5' || bytes[1] == '6') &&
	       (isspace(bytes[2]) || bytes[2] == '#');
}

static void skip_blank(struct reader *r)
{
	while (r->at < r->end && (isspace(*r->at) || *r->at == '#')) {
		if (*r->at == '#')
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		else
			r->at++;
	}
}

static bool number(struct reader *r, unsigned int max, unsigned int *value)
{
	unsigned int v = 0;

	skip_blank(r);
	if (r->at == r->end || !isdigit(*r->at))
		return false;
	for (; r->at < r->end && isdigit(*r->at); r->at++) {
		v = 10 * v + (*r->at - '0');
		if (v > max)
			return false;
	}
	*value = v;
	return true;
}

static bool sample(struct reader *r, bool text, unsigned int maxval, unsigned int *value)
{
	if (text)
		return number(r, maxval, value);
	if ((size_t)(r->end - r->at) < (maxval > 255 ? 2u : 1u))
		return false;
	*value = *r->at++;
	if (maxval > 255)
		*value = *value << 8 | *r->at++;
	return *value <= maxval;
}

int image_parse(const uint8_t *bytes, size_t size, struct image *image, char *error,
		size_t error_size)
{
	struct reader r = { bytes + 2, bytes + size };
	bool text = bytes[1] == '2' || bytes[1] == '3';
	unsigned int maxval, v;
	size_t count, i;

	image->channels = bytes[1] == '3' || bytes[1] == '6' ? 3 : 1;
	if (!number(&r, MAX_SIDE, &image->width) || !number(&r, MAX_SIDE, &image->height) ||
	    !image->width || !image->height || !number(&r, 65535, &maxval) || !maxval) {
		snprintf(error, error_size,
			 "bad picture header: width and height are 1 to %u, the maximum 1 to 65535",
			 MAX_SIDE);
		return -EINVAL;
	}
	if (!text && r.at < r.end)
		r.at++;		/* the one white space before the samples */
	count = (size_t)image->width * image->height * image->channels;
	if ((size_t)(r.end - r.at) < (text ? count : count * (maxval > 255 ? 2 : 1))) {
		snprintf(error, error_size, "the picture ends before its last row");
		return -EINVAL;
	}
	image->value = malloc(count * sizeof(*image->value));
	if (!image->value)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (!sample(&r, text, maxval, &v)) {
			snprintf(error, error_size, "sample %zu is missing or above the maximum %u", i,
				 maxval);
			image_free(image);
			return -EINVAL;
		}
		image->value[i] = (float)v / maxval;
	}
	return 0;
}

void image_free(struct image *image)
{
	free(image->value);
	image->value = NULL;
}
