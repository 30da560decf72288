// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of the PCI device, Documentation/ABI/sysfs-driver-neuron.
 */
#include <linux/sysfs.h>

#include "neuron_device.h"

/* Attributes appear after probe and go before remove has returned. */
static struct neuron_device *dev_to_neuron(struct device *dev)
{
	return to_neuron((struct drm_device *)dev_get_drvdata(dev));
}

#define NEURON_ATTR(_name, fmt, expr)							\
static ssize_t _name##_show(struct device *dev, struct device_attribute *attr, char *buf) \
{											\
	struct neuron_device *ndev = dev_to_neuron(dev);				\
											\
	return sysfs_emit(buf, fmt "\n", expr);						\
}											\
static DEVICE_ATTR_RO(_name)

NEURON_ATTR(serial_number, "%016llx", ndev->serial);
NEURON_ATTR(core_count, "%u", ndev->arch->cores);
NEURON_ATTR(reset_count, "%d", atomic_read(&ndev->resets));
NEURON_ATTR(routing_id, "%u", ndev->routing_id);
NEURON_ATTR(fw_api_version, "%u", ndev->fw_api);

static ssize_t exec_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u32 version = dev_to_neuron(dev)->exec_version;

	return sysfs_emit(buf, "%u.%u\n", version >> 16, version & 0xffff);
}
static DEVICE_ATTR_RO(exec_version);

static ssize_t hbm_total_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u64 total, used;

	neuron_hbm_usage(dev_to_neuron(dev), &total, &used);
	return sysfs_emit(buf, "%llu\n", total);
}
static DEVICE_ATTR_RO(hbm_total);

static ssize_t hbm_used_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u64 total, used;

	neuron_hbm_usage(dev_to_neuron(dev), &total, &used);
	return sysfs_emit(buf, "%llu\n", used);
}
static DEVICE_ATTR_RO(hbm_used);

static struct attribute *neuron_dev_attrs[] = {
	&dev_attr_serial_number.attr,
	&dev_attr_core_count.attr,
	&dev_attr_reset_count.attr,
	&dev_attr_routing_id.attr,
	&dev_attr_fw_api_version.attr,
	&dev_attr_exec_version.attr,
	&dev_attr_hbm_total.attr,
	&dev_attr_hbm_used.attr,
	NULL,
};

static const struct attribute_group neuron_dev_group = {
	.attrs = neuron_dev_attrs,
};

const struct attribute_group *neuron_dev_groups[] = {
	&neuron_dev_group,
	NULL,
};
