// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <libudev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xf86drm.h>

#include "accel.h"
#include "tool.h"

static const struct arch {
	const char *name;
	uint16_t device_id;
	unsigned int lnc;
} archs[] = {
#define NEURON_ARCH(id, name, product, device, nc, cores, stacks, gib, stride, sbuf, bit, lnc, udma, h2t) \
	{ name, device, lnc },
#include "neuron/arch.def"
#undef NEURON_ARCH
};

static int query(const struct accel_dev *dev, uint32_t type, void *data, uint32_t size)
{
	struct drm_neuron_dev_query q = { .type = type, .size = size, .pointer = (uintptr_t)data };

	memset(data, 0, size);
	return drmIoctl(dev->fd, DRM_IOCTL_NEURON_DEV_QUERY, &q) ? -errno : 0;
}

/* Arrays come in the kernel's element size; larger elements of a newer kernel do
 * not fit these structures. */
int accel_refresh(struct accel_dev *dev)
{
	unsigned int cores = dev->device.core_count, stacks = dev->device.hbm_stacks;
	int ret;

	if (cores > ACCEL_MAX_CORES)
		cores = ACCEL_MAX_CORES;
	if (stacks > ACCEL_MAX_STACKS)
		stacks = ACCEL_MAX_STACKS;
	ret = query(dev, DRM_NEURON_QUERY_CORES, dev->cores, cores * sizeof(dev->cores[0]));
	if (ret)
		return ret;
	return query(dev, DRM_NEURON_QUERY_REGIONS, dev->regions, stacks * sizeof(dev->regions[0]));
}

static bool is_neuron(int fd)
{
	drmVersionPtr version = drmGetVersion(fd);
	bool ours = version && !strcmp(version->name, "neuron");

	drmFreeVersion(version);
	return ours;
}

static void read_sysfs(struct accel_dev *dev)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/local_cpulist", dev->bdf);
	tool_read_file(path, dev->cpu_affinity, sizeof(dev->cpu_affinity));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", dev->bdf);
	if (tool_read_file(path, dev->numa_node, sizeof(dev->numa_node)) <= 0)
		strcpy(dev->numa_node, "-1");
}

static int open_dev(struct accel_dev *dev, const char *node, const char *bdf)
{
	size_t i;
	int ret;

	memset(dev, 0, sizeof(*dev));
	snprintf(dev->node, sizeof(dev->node), "%s", node);
	snprintf(dev->bdf, sizeof(dev->bdf), "%s", bdf);
	dev->fd = open(node, O_RDWR | O_CLOEXEC);
	if (dev->fd < 0)
		return -errno;
	ret = is_neuron(dev->fd) ? 0 : -ENODEV;
	if (!ret)
		ret = query(dev, DRM_NEURON_QUERY_DEVICE, &dev->device, sizeof(dev->device));
	if (!ret)
		ret = accel_refresh(dev);
	if (ret) {
		close(dev->fd);
		return ret;
	}
	dev->arch = "unknown";
	dev->lnc = 1;
	for (i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (archs[i].device_id == dev->device.pci_id) {
			dev->arch = archs[i].name;
			dev->lnc = archs[i].lnc;
		}
	}
	if (dev->device.core_count > ACCEL_MAX_CORES)
		dev->device.core_count = ACCEL_MAX_CORES;
	if (dev->device.hbm_stacks > ACCEL_MAX_STACKS)
		dev->device.hbm_stacks = ACCEL_MAX_STACKS;
	read_sysfs(dev);
	return 0;
}

static int add_dev(struct accel_list *list, const char *node, const char *bdf)
{
	struct accel_dev *grown, dev;
	int ret = open_dev(&dev, node, bdf);

	if (ret) {
		snprintf(list->error, sizeof(list->error), "%s (%s): %s", node, bdf, strerror(-ret));
		return ret;
	}
	grown = realloc(list->devs, (list->count + 1) * sizeof(dev));
	if (!grown) {
		close(dev.fd);
		return -ENOMEM;
	}
	list->devs = grown;
	list->devs[list->count++] = dev;
	return 0;
}

static int add_udev(struct accel_list *list, struct udev *udev, const char *syspath)
{
	struct udev_device *dev = udev_device_new_from_syspath(udev, syspath), *pci;
	const char *node, *driver, *address;
	int ret = 0;

	if (!dev)
		return 0;
	node = udev_device_get_devnode(dev);
	pci = udev_device_get_parent_with_subsystem_devtype(dev, "pci", NULL);
	driver = pci ? udev_device_get_driver(pci) : NULL;
	address = pci ? udev_device_get_sysname(pci) : NULL;
	if (node && address && driver && !strcmp(driver, "neuron") && list->count < ACCEL_MAX_DEVS)
		ret = add_dev(list, node, address);
	udev_device_unref(dev);
	return ret;
}

static int in_instance(const void *a, const void *b)
{
	const struct accel_dev *x = a, *y = b;

	if (x->device.routing_id != y->device.routing_id)
		return x->device.routing_id < y->device.routing_id ? -1 : 1;
	return strcmp(x->bdf, y->bdf);
}

int accel_open(struct accel_list *list)
{
	struct udev *udev = udev_new();
	struct udev_enumerate *e = udev ? udev_enumerate_new(udev) : NULL;
	struct udev_list_entry *entry;
	int ret = -ENODEV, err;

	memset(list, 0, sizeof(*list));
	snprintf(list->error, sizeof(list->error),
		 "no accelerator node of the kernel driver neuron exists");
	if (!e || udev_enumerate_add_match_subsystem(e, "accel") < 0 ||
	    udev_enumerate_scan_devices(e) < 0)
		goto out;
	udev_list_entry_foreach(entry, udev_enumerate_get_list_entry(e)) {
		err = add_udev(list, udev, udev_list_entry_get_name(entry));
		if (err)
			ret = err;
	}
out:
	udev_enumerate_unref(e);
	udev_unref(udev);
	if (!list->count)
		return ret;
	qsort(list->devs, list->count, sizeof(list->devs[0]), in_instance);
	return 0;
}

void accel_close(struct accel_list *list)
{
	unsigned int i;

	for (i = 0; i < list->count; i++)
		close(list->devs[i].fd);
	free(list->devs);
	list->devs = NULL;
	list->count = 0;
}
