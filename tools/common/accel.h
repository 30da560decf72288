/* SPDX-License-Identifier: MIT */
/* Chips of the machine and the processes that use them, as the driver shows them. */
#ifndef TOOLS_ACCEL_H
#define TOOLS_ACCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "drm/neuron_accel.h"

#define ACCEL_MAX_CORES		8
#define ACCEL_MAX_STACKS	8
#define ACCEL_MAX_DEVS		144

/**
 * struct accel_dev - one chip
 * @node: "/dev/accel/accel0"
 * @bdf: PCI address
 * @fd: open node
 * @arch: "trn2"
 * @lnc: default of NEURON_LOGICAL_NC_CONFIG of this chip
 * @cpu_affinity: CPUs near it, as a list; "" unknown
 * @numa_node: text of sysfs, "-1" when there is none
 * @device, @cores, @regions: from DEV_QUERY
 */
struct accel_dev {
	char node[64];
	char bdf[16];
	int fd;
	const char *arch;
	unsigned int lnc;
	char cpu_affinity[256];
	char numa_node[16];
	struct drm_neuron_query_device device;
	struct drm_neuron_query_core cores[ACCEL_MAX_CORES];
	struct drm_neuron_query_region regions[ACCEL_MAX_STACKS];
};

struct accel_list {
	struct accel_dev *devs;
	unsigned int count;
	char error[256];	/* why @count is 0, or a chip is missing */
};

/**
 * accel_open() - find and open the chips, in the order of the instance
 * @list: filled; end with accel_close() in every case
 *
 * Return: 0 when there is at least one; -ENODEV, -EACCES or another errno.
 */
int accel_open(struct accel_list *list);
void accel_close(struct accel_list *list);
/* Read the counters again; a negative errno when the chip is gone. */
int accel_refresh(struct accel_dev *dev);

#define ACCEL_COMMAND	512

/**
 * struct accel_client - one process on one chip
 * @pid: process
 * @dev: index in the list
 * @core_mask: cores its contexts hold
 * @hbm: bytes of HBM
 * @host: bytes of host memory that the chip can reach
 * @core_ns: wall nanoseconds on each core
 * @command: command line, printable
 * @comm: short name
 * @runtime: version of libnrt that it has mapped; "" none
 */
struct accel_client {
	pid_t pid;
	unsigned int dev;
	uint32_t core_mask;
	uint64_t hbm;
	uint64_t host;
	uint64_t core_ns[ACCEL_MAX_CORES];
	char command[ACCEL_COMMAND];
	char comm[32];
	char runtime[32];
};

/**
 * accel_clients() - processes with an open node, without the calling one
 * @list: chips
 * @clients: set to an array for free(), ordered by chip and pid
 * @count: entries
 *
 * Processes that may not be looked at (other users') are left out.
 * Return: 0 or -ENOMEM.
 */
int accel_clients(const struct accel_list *list, struct accel_client **clients, size_t *count);

/* Parsers, for the unit tests: one line of fdinfo into @client; a NEURON core mask. */
struct accel_fdinfo {
	bool neuron;
	char pdev[16];
	uint64_t client_id;
	bool has_client_id;
	struct accel_client client;
};
void accel_parse_fdinfo(struct accel_fdinfo *info, const char *text);
/* Version of a libnrt in the text of /proc/PID/maps; "" none. */
void accel_parse_maps(const char *line, char *version, size_t size);

#endif /* TOOLS_ACCEL_H */
