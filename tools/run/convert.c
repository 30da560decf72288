// SPDX-License-Identifier: MIT
/* Pictures to tensors, tensor elements to numbers. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* --- element types ---------------------------------------------------------------- */

static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;	/* pictures have no NaN */
}

static double from_half(uint16_t h)
{
	int exponent = h >> 10 & 31, mantissa = h & 1023;
	double v;

	if (exponent == 31)
		v = mantissa ? NAN : INFINITY;
	else if (exponent)
		v = ldexp(1024 + mantissa, exponent - 25);
	else
		v = ldexp(mantissa, -24);
	return h >> 15 ? -v : v;
}

static double from_f32(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

double element_get(const char *dtype, const void *data, size_t index)
{
	const uint8_t *p = (const uint8_t *)data + index * neff_dtype_size(dtype, NULL);
	uint16_t u16;
	uint32_t u32;

	if (!strcmp(dtype, "uint8"))
		return *p;
	if (!strcmp(dtype, "int8"))
		return (int8_t)*p;
	if (neff_dtype_size(dtype, NULL) == 2) {
		memcpy(&u16, p, 2);
		if (!strcmp(dtype, "bfloat16"))
			return from_f32((uint32_t)u16 << 16);
		if (!strcmp(dtype, "float16"))
			return from_half(u16);
		return !strcmp(dtype, "int16") ? (int16_t)u16 : u16;
	}
	if (neff_dtype_size(dtype, NULL) == 4) {
		memcpy(&u32, p, 4);
		if (!strcmp(dtype, "int32"))
			return (int32_t)u32;
		return !strcmp(dtype, "uint32") ? u32 : from_f32(u32);
	}
	return NAN;
}

static void element_put(const char *dtype, void *data, size_t index, float value)
{
	uint16_t half;

	if (!strcmp(dtype, "float32")) {
		memcpy((float *)data + index, &value, 4);
	} else {
		half = to_bf16(value);
		memcpy((uint16_t *)data + index, &half, 2);
	}
}

/* --- shapes ------------------------------------------------------------------------- */

static enum image_layout guess_layout(const struct neff_arg *arg)
{
	const uint32_t *d = arg->shape;
	unsigned int n = arg->ndim;

	if (n >= 3 && (d[n - 1] == 1 || d[n - 1] == 3))
		return LAYOUT_HWC;
	if (n >= 4 && (d[n - 3] == 1 || d[n - 3] == 3))
		return LAYOUT_CHW;
	return LAYOUT_HW;
}

/* Dimensions that one picture takes; 0: the shape is none for pictures. */
static unsigned int plane_dims(const struct neff_arg *arg, struct picture_shape *s)
{
	const uint32_t *d = arg->shape;
	unsigned int n = arg->ndim;

	s->channels = 1;
	if (s->layout != LAYOUT_HW) {
		if (n < 3)
			return 0;
		s->channels = s->layout == LAYOUT_HWC ? d[n - 1] : d[n - 3];
		s->height = s->layout == LAYOUT_HWC ? d[n - 3] : d[n - 2];
		s->width = s->layout == LAYOUT_HWC ? d[n - 2] : d[n - 1];
		return s->channels == 1 || s->channels == 3 ? 3 : 0;
	}
	if (n >= 3 || (n == 2 && d[0] == d[1])) {
		s->height = d[n - 2];
		s->width = d[n - 1];
		return 2;
	}
	/* Rows of flattened square pictures. */
	s->width = s->height = n ? lround(sqrt(d[n - 1])) : 0;
	return n && s->width * s->height == d[n - 1] ? 1 : 0;
}

bool picture_shape(const struct neff_arg *arg, const struct run_info *info,
		   struct picture_shape *s)
{
	unsigned int used, i;

	if (strcmp(arg->dtype, "float32") && strcmp(arg->dtype, "bfloat16"))
		return false;
	s->layout = info->layout == LAYOUT_GUESS ? guess_layout(arg) : info->layout;
	used = plane_dims(arg, s);
	if (!used || !s->width || !s->height)
		return false;
	s->batch = 1;
	for (i = 0; i < arg->ndim - used; i++)
		s->batch *= arg->shape[i];
	return s->batch > 0;
}

/* --- pictures ------------------------------------------------------------------------- */

/* A plane of one channel that is sampled by area. */
struct plane {
	unsigned int width;
	unsigned int height;
	float *value;
};

static int take_channel(const struct image *image, unsigned int channel, bool grey,
			struct plane *p)
{
	size_t i, count = (size_t)image->width * image->height;

	p->width = image->width;
	p->height = image->height;
	p->value = malloc(count * sizeof(*p->value));
	if (!p->value)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		const float *v = image->value + i * image->channels;

		if (image->channels == 1)
			p->value[i] = v[0];
		else if (grey)	/* luma of ITU-R BT.601 */
			p->value[i] = 0.299f * v[0] + 0.587f * v[1] + 0.114f * v[2];
		else
			p->value[i] = v[channel];
	}
	return 0;
}

/* A light border means dark ink on paper. */
static bool is_light(const struct plane *p)
{
	double sum = 0;
	unsigned int x, y, n = 2 * (p->width + p->height);

	for (x = 0; x < p->width; x++)
		sum += p->value[x] + p->value[(size_t)(p->height - 1) * p->width + x];
	for (y = 0; y < p->height; y++)
		sum += p->value[(size_t)y * p->width] + p->value[(size_t)y * p->width + p->width - 1];
	return sum > 0.5 * n;
}

static void invert(struct plane *p)
{
	size_t i;

	for (i = 0; i < (size_t)p->width * p->height; i++)
		p->value[i] = 1 - p->value[i];
}

/* A photograph of a drawing is grey on grey. */
static void stretch(struct plane *p)
{
	size_t count = (size_t)p->width * p->height, i;
	float lo = 1, hi = 0;

	for (i = 0; i < count; i++) {
		lo = p->value[i] < lo ? p->value[i] : lo;
		hi = p->value[i] > hi ? p->value[i] : hi;
	}
	for (i = 0; i < count && hi > lo; i++)
		p->value[i] = (p->value[i] - lo) / (hi - lo);
}

/* Part of the plane, in its pixels; may reach outside, which is black. */
struct window {
	double x, y, width, height;
};

static double overlap(double a0, double a1, double b0, double b1)
{
	double lo = a0 > b0 ? a0 : b0, hi = a1 < b1 ? a1 : b1;

	return hi > lo ? hi - lo : 0;
}

/* Mean of the plane over a rectangle. */
static double area(const struct plane *p, double x0, double y0, double x1, double y1)
{
	long left = floor(x0), right = ceil(x1), top = floor(y0), bottom = ceil(y1), x, y;
	double sum = 0;

	if (left < 0)
		left = 0;
	if (top < 0)
		top = 0;
	if (right > (long)p->width)
		right = p->width;
	if (bottom > (long)p->height)
		bottom = p->height;
	for (y = top; y < bottom; y++)
		for (x = left; x < right; x++)
			sum += p->value[y * p->width + x] * overlap(x0, x1, x, x + 1) *
			       overlap(y0, y1, y, y + 1);
	return sum / ((x1 - x0) * (y1 - y0));
}

/* Ink: clearly brighter than the darkest tenth of the range. False: none. */
static bool content(const struct plane *p, struct window *w, double *cx, double *cy)
{
	unsigned int x0 = p->width, x1 = 0, y0 = p->height, y1 = 0, x, y;
	double sum = 0, sx = 0, sy = 0;

	for (y = 0; y < p->height; y++) {
		for (x = 0; x < p->width; x++) {
			double v = p->value[(size_t)y * p->width + x];

			if (v < 0.2)
				continue;
			x0 = x < x0 ? x : x0;
			x1 = x > x1 ? x : x1;
			y0 = y < y0 ? y : y0;
			y1 = y > y1 ? y : y1;
			sum += v;
			sx += v * (x + 0.5);
			sy += v * (y + 0.5);
		}
	}
	if (sum <= 0)
		return false;
	*w = (struct window){ x0, y0, x1 - x0 + 1, y1 - y0 + 1 };
	*cx = sx / sum;
	*cy = sy / sum;
	return true;
}

/* The window of the plane that becomes the whole picture. */
static struct window choose_window(const struct plane *p, const struct picture_shape *s,
				   unsigned int box)
{
	struct window w = { 0, 0, p->width, p->height }, ink;
	double cx, cy, scale;

	if (p->width == s->width && p->height == s->height)
		return w;
	if (box && content(p, &ink, &cx, &cy)) {
		scale = (ink.width > ink.height ? ink.width : ink.height) / box;
		return (struct window){ cx - scale * s->width / 2, cy - scale * s->height / 2,
					scale * s->width, scale * s->height };
	}
	/* The whole picture, its sides in proportion. */
	scale = w.width / s->width > w.height / s->height ? w.width / s->width :
							     w.height / s->height;
	return (struct window){ (w.width - scale * s->width) / 2,
				(w.height - scale * s->height) / 2,
				scale * s->width, scale * s->height };
}

static size_t place(const struct picture_shape *s, unsigned int index, unsigned int channel,
		    unsigned int x, unsigned int y)
{
	size_t plane = (size_t)s->width * s->height, base = index * plane * s->channels;

	if (s->layout == LAYOUT_HWC)
		return base + ((size_t)y * s->width + x) * s->channels + channel;
	return base + channel * plane + (size_t)y * s->width + x;
}

static void put_plane(const struct neff_arg *arg, const struct picture_shape *s,
		      const struct run_info *info, const struct plane *p, unsigned int index,
		      unsigned int channel, void *tensor)
{
	struct window w = choose_window(p, s, info->box);
	double dx = w.width / s->width, dy = w.height / s->height;
	unsigned int x, y;

	for (y = 0; y < s->height; y++) {
		for (x = 0; x < s->width; x++) {
			double v = area(p, w.x + x * dx, w.y + y * dy, w.x + (x + 1) * dx,
					w.y + (y + 1) * dy);

			element_put(arg->dtype, tensor, place(s, index, channel, x, y),
				    ((float)v - info->mean[channel]) / info->std[channel]);
		}
	}
}

int picture_put(const struct neff_arg *arg, const struct picture_shape *s,
		const struct run_info *info, const struct image *image, unsigned int index,
		void *tensor)
{
	unsigned int c;

	for (c = 0; c < s->channels; c++) {
		struct plane p;

		if (take_channel(image, c, s->channels == 1, &p))
			return -ENOMEM;
		if (info->invert == INVERT_YES || (info->invert == INVERT_AUTO && is_light(&p)))
			invert(&p);
		if (info->box && (p.width != s->width || p.height != s->height))
			stretch(&p);
		put_plane(arg, s, info, &p, index, c, tensor);
		free(p.value);
	}
	return 0;
}
