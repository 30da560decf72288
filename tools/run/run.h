/* SPDX-License-Identifier: MIT */
/* Parts of neuron-run. */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "neff.h"

#define RUN_MAX_LABELS		10000
#define RUN_MAX_CHANNELS	4

/* --- image.c: PGM and PPM --------------------------------------------------------- */

/**
 * struct image - picture, row after row, channels together
 * @value: 0 black to 1 white; owned
 */
struct image {
	unsigned int width;
	unsigned int height;
	unsigned int channels;	/* 1 or 3 */
	float *value;
};

/* The bytes begin like a PNM picture that image_parse() knows. */
bool image_detect(const uint8_t *bytes, size_t size);
/* P2, P3, P5, P6. Return: 0, -EINVAL and @error says what is wrong, -ENOMEM. */
int image_parse(const uint8_t *bytes, size_t size, struct image *image, char *error,
		size_t error_size);
void image_free(struct image *image);

/* --- info.c: optional keys of info.json ------------------------------------------- */

enum image_invert { INVERT_NO, INVERT_YES, INVERT_AUTO };
enum image_layout { LAYOUT_GUESS, LAYOUT_HW, LAYOUT_HWC, LAYOUT_CHW };

/**
 * struct run_info - what info.json says about pictures and classes
 * @has_image: there is an "image" object
 * @mean, @std: by channel: input = (value - mean) / std
 * @invert: white on black is what the net wants
 * @layout: of the tensor's last dimensions
 * @box: the picture's content is scaled to this many pixels and its centre of mass
 *	put into the middle; 0: the picture is only scaled
 * @labels: names of classes; owned
 */
struct run_info {
	bool has_image;
	enum image_layout layout;
	float mean[RUN_MAX_CHANNELS];
	float std[RUN_MAX_CHANNELS];
	enum image_invert invert;
	unsigned int box;
	char **labels;
	size_t label_count;
};

/* From the bytes of a NEFF. Keys that are absent leave defaults. */
int run_info_read(const void *neff, size_t size, struct run_info *info, char *error,
		  size_t error_size);
void run_info_free(struct run_info *info);

/* --- convert.c -------------------------------------------------------------------- */

/**
 * struct picture_shape - a tensor that takes pictures
 * @batch: pictures in it
 */
struct picture_shape {
	unsigned int batch;
	unsigned int width;
	unsigned int height;
	unsigned int channels;
	enum image_layout layout;
};

/* False: the tensor's type or shape is none for pictures. */
bool picture_shape(const struct neff_arg *arg, const struct run_info *info,
		   struct picture_shape *shape);
/* Picture @index of the tensor at @tensor from @image. 0 or -ENOMEM. */
int picture_put(const struct neff_arg *arg, const struct picture_shape *shape,
		const struct run_info *info, const struct image *image, unsigned int index,
		void *tensor);
/* An element as a number; types: all of NEURON_DTYPE except fp8 formats, which give NaN. */
double element_get(const char *dtype, const void *data, size_t index);

/* --- show.c ----------------------------------------------------------------------- */

/* One line with the label, and a bar for each of the ten likeliest. */
void show_label(FILE *out, const char *name, const struct run_info *info, const double *value,
		bool utf8);
/* Shape and first values. */
void show_tensor(FILE *out, const struct neff_arg *arg, const void *data);

#endif /* TOOLS_RUN_H */
