// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults on demand: the chip's (uapi/neuron/inject.def) as properties that QMP and
 * the command line can set, and what of them only the PCI shell can show.
 *
 *	inject		write: a fault as text; read: the list of faults
 *	inject-clear	write: number of a fault, 0: all
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"

#include "neuron_dev.h"

#define CORRECTABLE	(1ull << 32)

/* ---- a chip that is not there ------------------------------------------------ */

static uint64_t neuron_gone_read(void *opaque, hwaddr addr, unsigned size)
{
	return ~0ull;
}

static void neuron_gone_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
}

static const MemoryRegionOps neuron_gone_ops = {
	.read = neuron_gone_read,
	.write = neuron_gone_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { .min_access_size = 1, .max_access_size = 8 },
	.impl = { .min_access_size = 1, .max_access_size = 8 },
};

static void neuron_overlay(NeuronState *s, MemoryRegion *gone, MemoryRegion *bar)
{
	memory_region_init_io(gone, OBJECT(s), &neuron_gone_ops, s, "neuron-gone",
			      memory_region_size(bar));
	memory_region_set_enabled(gone, false);
	memory_region_add_subregion_overlap(bar, 0, gone, 10);
}

void neuron_inject_init(NeuronState *s, MemoryRegion *exec, MemoryRegion *hbm)
{
	if (exec) {
		neuron_overlay(s, &s->gone[0], exec);
	}
	neuron_overlay(s, &s->gone[1], hbm);
}

/* The registers' own handlers know; this is for RAM and for QEMU's MSI-X table. */
static void neuron_show_gone(NeuronState *s, bool gone)
{
	bool exec = s->revision != NEURON_PCI_REVISION_QEMU;

	memory_region_transaction_begin();
	if (exec) {
		memory_region_set_enabled(&s->gone[0], gone);
	}
	memory_region_set_enabled(&s->gone[1], gone);
	memory_region_transaction_commit();
}

/* The root port above, when it has a slot. */
static PCIDevice *neuron_slot(NeuronState *s)
{
	PCIBus *bus = pci_get_bus(PCI_DEVICE(s));
	PCIDevice *port;

	if (pci_bus_is_root(bus)) {
		return NULL;
	}
	port = pci_bridge_get_device(bus);
	if (!pci_is_express(port) || !(pci_get_word(port->config + port->exp.exp_cap + PCI_EXP_FLAGS) &
				       PCI_EXP_FLAGS_SLOT)) {
		return NULL;
	}
	return port;
}

/*
 * A slot with an attention button, which QEMU's ports have, is run by Linux with the
 * link's change enabled and presence's not; QEMU has presence only. So the interrupt
 * of the former goes with the status bit of the latter.
 */
static void neuron_slot_event(PCIDevice *port)
{
	uint8_t *cap = port->config + port->exp.exp_cap;

	pci_word_test_and_set_mask(cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDC);
	if (!(pci_get_word(cap + PCI_EXP_SLTCTL) & PCI_EXP_SLTCTL_HPIE)) {
		return;
	}
	if (msix_enabled(port)) {
		msix_notify(port, pcie_cap_flags_get_vector(port));
	} else if (msi_enabled(port)) {
		msi_notify(port, pcie_cap_flags_get_vector(port));
	} else {
		port->exp.hpev_notified = true;	/* lowered when the status is cleared */
		pci_set_irq(port, 1);
	}
}

static void neuron_presence(NeuronState *s, bool present)
{
	PCIDevice *port = neuron_slot(s);
	uint8_t *cap;

	if (present) {
		pci_device_reset(PCI_DEVICE(s));
	}
	neuron_show_gone(s, !present);
	if (!port) {
		return;
	}
	cap = port->config + port->exp.exp_cap;
	if (present) {
		pci_word_test_and_set_mask(cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDS);
	} else {
		pci_word_test_and_clear_mask(cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDS);
	}
	if (pci_get_long(cap + PCI_EXP_LNKCAP) & PCI_EXP_LNKCAP_DLLLARC) {
		if (present) {
			pci_word_test_and_set_mask(cap + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_DLLLA);
		} else {
			pci_word_test_and_clear_mask(cap + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_DLLLA);
		}
	}
	neuron_slot_event(port);
}

/* ---- what the chip asks for -------------------------------------------------- */

static void neuron_flr(PCIDevice *pci)
{
	uint8_t *devctl = pci->config + pci->exp.exp_cap + PCI_EXP_DEVCTL;

	/* The reset handler tells the kinds apart by this bit. */
	if (pci->exp.exp_cap) {
		pci_word_test_and_set_mask(devctl, PCI_EXP_DEVCTL_BCR_FLR);
	}
	pci_device_reset(pci);
	if (pci->exp.exp_cap) {
		pci_word_test_and_clear_mask(devctl, PCI_EXP_DEVCTL_BCR_FLR);
	}
}

static int neuron_aer(NeuronState *s, uint64_t error)
{
	PCIDevice *pci = PCI_DEVICE(s);
	PCIEAERErr err = {
		.status = (uint32_t)error,
		.source_id = pci_requester_id(pci),
		.flags = error & CORRECTABLE ? PCIE_AER_ERR_IS_CORRECTABLE : 0,
	};

	return s->has_aer ? pcie_aer_inject_error(pci, &err) : -ENOSYS;
}

int neuron_pci_event(void *opaque, enum neuron_chip_pci event, uint64_t value)
{
	NeuronState *s = opaque;

	switch (event) {
	case NEURON_CHIP_PCI_PRESENCE:
		neuron_presence(s, value);
		return 0;
	case NEURON_CHIP_PCI_FLR:
		neuron_flr(PCI_DEVICE(s));
		return 0;
	case NEURON_CHIP_PCI_AER:
		return neuron_aer(s, value);
	}
	return -ENOSYS;
}

/* ---- properties -------------------------------------------------------------- */

static void neuron_do_inject(NeuronState *s, const char *spec, Error **errp)
{
	char why[512];

	if (neuron_chip_inject(s->chip, spec, why, sizeof(why)) < 0) {
		error_setg(errp, "inject: %s", why);
	}
}

bool neuron_inject_early(NeuronState *s, Error **errp)
{
	ERRP_GUARD();

	if (s->inject) {
		neuron_do_inject(s, s->inject, errp);
	}
	return !*errp;
}

static void neuron_set_inject(Object *obj, const char *value, Error **errp)
{
	NeuronState *s = NEURON(obj);

	if (s->chip) {
		neuron_do_inject(s, value, errp);
		return;
	}
	g_free(s->inject);
	s->inject = g_strdup(value);
}

static char *neuron_get_inject(Object *obj, Error **errp)
{
	NeuronState *s = NEURON(obj);
	size_t size;
	char *text;

	if (!s->chip) {
		return g_strdup(s->inject ? s->inject : "");
	}
	size = neuron_chip_injected(s->chip, NULL, 0) + 1;
	text = g_malloc(size);
	neuron_chip_injected(s->chip, text, size);
	return text;
}

static void neuron_set_clear(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	NeuronState *s = NEURON(obj);
	uint32_t id;

	if (!visit_type_uint32(v, name, &id, errp)) {
		return;
	}
	if (!s->chip || neuron_chip_clear(s->chip, id)) {
		error_setg(errp, "inject-clear: there is no fault %u", id);
	}
}

void neuron_inject_class_init(ObjectClass *klass)
{
	object_class_property_add_str(klass, "inject", neuron_get_inject, neuron_set_inject);
	object_class_property_set_description(klass, "inject",
					      "write: have this fault; read: the list of faults");
	object_class_property_add(klass, "inject-clear", "uint32", NULL, neuron_set_clear, NULL, NULL);
	object_class_property_set_description(klass, "inject-clear", "number of a fault, 0: all");
}
