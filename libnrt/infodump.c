// SPDX-License-Identifier: MIT
/* The block that the public runtime prints when an execution fails badly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "internal.h"
#include "libnrt_version.h"

#define CUT "------------->8------------[ cut here ]------------>8-------------"

extern char **environ;

static void dump(const char *name, const char *text)
{
	log_line(LOG_ERR_, "NRT", "nrt_infodump", "%s: %s", name, text);
}

static void dump_cores(void)
{
	char text[256] = "";
	size_t at = 0;

	for (unsigned int i = 0; i < nrt_state.vcore_count && at < sizeof(text) - 8; i++)
		at += snprintf(text + at, sizeof(text) - at, "%s%u", i ? "," : "",
			       nrt_state.vcores[i].global);
	dump("Visible cores", text);
}

void nrt_infodump(NRT_STATUS status, const char *function)
{
	const struct dev_info *info = &nrt_state.devices[0]->dev->info;
	struct utsname kernel;
	char text[256];

	log_line(LOG_ERR_, "NRT", "nrt_infodump",
		 "Neuron runtime information - please include in any support request:");
	log_line(LOG_ERR_, "NRT", "nrt_infodump", "%s", CUT);
	snprintf(text, sizeof(text), "%d.%d (neuron-accel %s %s)", NRT_MAJOR_VERSION,
		 NRT_MINOR_VERSION, LIBNRT_VERSION, LIBNRT_GIT_HASH);
	dump("NRT version", text);
	if (!uname(&kernel)) {
		snprintf(text, sizeof(text), "%.60s %.60s %.100s", kernel.sysname, kernel.release,
			 kernel.version);
		dump("Kernel", text);
		dump("Nodename", kernel.nodename);
	}
	snprintf(text, sizeof(text), "%s, %s at %s, %u chip(s)", nrt_state.backend->name, info->arch,
		 info->bdf, nrt_state.device_count);
	dump("Driver", text);
	snprintf(text, sizeof(text), "%s in %s()", nrt_get_status_as_str(status), function);
	dump("Failure", text);
	snprintf(text, sizeof(text), "%u", nrt_state.lnc);
	dump("LNC", text);
	dump_cores();
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "NEURON_", 7))
			dump("Environment", *e);
	log_line(LOG_ERR_, "NRT", "nrt_infodump", "%s", CUT);
}
