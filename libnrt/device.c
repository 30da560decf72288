// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "device.h"

const struct dev_backend *dev_backend_select(void)
{
	const char *sim = getenv("NEURON_RT_SIM");

	if (!sim || !*sim)
		return &dev_backend_drm;
#ifdef NRT_HAVE_SIM
	return &dev_backend_sim;
#else
	return NULL;
#endif
}
