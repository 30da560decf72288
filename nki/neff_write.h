/* SPDX-License-Identifier: MIT */
/* Writer of the container that Documentation/neff.rst describes. */
#ifndef NKI_NEFF_WRITE_H
#define NKI_NEFF_WRITE_H

#include "neff.h"

/**
 * neff_write() - make a NEFF
 * @neff: what is in it; hash and uuid are computed. Only read
 * @info: text of a JSON object whose keys are added to info.json, or NULL
 * @bytes: set to the file, which the caller frees
 * @size: set to its bytes
 *
 * The same program gives the same bytes: no time, user or host name is in them.
 *
 * Return: 0, -EINVAL (@info is not an object, or the values do not fit), -ENOMEM.
 */
int neff_write(const struct neff *neff, const char *info, void **bytes, size_t *size);

#endif /* NKI_NEFF_WRITE_H */
