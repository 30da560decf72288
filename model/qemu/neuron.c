// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Placeholder for the PCI device: identity and three empty BARs.
 * It proves the build and the guest; the model takes its place.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/pci_device.h"
#include "hw/qdev-properties.h"

#define TYPE_NEURON "neuron"
OBJECT_DECLARE_SIMPLE_TYPE(NeuronState, NEURON)

struct NeuronState {
	PCIDevice parent_obj;
	MemoryRegion bar[3];
	char *chip;
	uint32_t revision;
	uint32_t routing_id;
};

static uint64_t neuron_read(void *opaque, hwaddr addr, unsigned size)
{
	return 0;
}

static void neuron_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
}

static const MemoryRegionOps neuron_ops = {
	.read = neuron_read,
	.write = neuron_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
};

static void neuron_realize(PCIDevice *pci, Error **errp)
{
	static const uint64_t size[3] = { 4 * GiB, 1 * MiB, 256 * GiB };
	NeuronState *s = NEURON(pci);
	int i;

	pci_config_set_revision(pci->config, s->revision);
	for (i = 0; i < 3; i++) {
		g_autofree char *name = g_strdup_printf("neuron-bar%d", 2 * i);

		memory_region_init_io(&s->bar[i], OBJECT(s), &neuron_ops, s,
				      name, size[i]);
		pci_register_bar(pci, 2 * i, PCI_BASE_ADDRESS_SPACE_MEMORY |
				 PCI_BASE_ADDRESS_MEM_TYPE_64 |
				 PCI_BASE_ADDRESS_MEM_PREFETCH, &s->bar[i]);
	}
}

static const Property neuron_properties[] = {
	DEFINE_PROP_STRING("chip", NeuronState, chip),
	DEFINE_PROP_UINT32("revision", NeuronState, revision, 0),
	DEFINE_PROP_UINT32("routing-id", NeuronState, routing_id, 0),
};

static void neuron_class_init(ObjectClass *klass, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(klass);
	PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);

	k->realize = neuron_realize;
	k->vendor_id = 0x1d0f;
	k->device_id = 0x7364;
	k->class_id = PCI_CLASS_OTHERS;
	dc->desc = "Trainium-class accelerator";
	set_bit(DEVICE_CATEGORY_MISC, dc->categories);
	device_class_set_props(dc, neuron_properties);
}

static const TypeInfo neuron_info = {
	.name = TYPE_NEURON,
	.parent = TYPE_PCI_DEVICE,
	.instance_size = sizeof(NeuronState),
	.class_init = neuron_class_init,
	.interfaces = (InterfaceInfo[]) {
		{ INTERFACE_PCIE_DEVICE },
		{ },
	},
};

static void neuron_register_types(void)
{
	type_register_static(&neuron_info);
}

type_init(neuron_register_types)
