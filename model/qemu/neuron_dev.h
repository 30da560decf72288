/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PCI shell's state, for the files of this folder. */
#ifndef NEURON_DEV_H
#define NEURON_DEV_H

#include "hw/pci/pci_device.h"
#include "qom/object.h"

#include "neuron_chip.h"
#include "neuron/regs.h"

#define TYPE_NEURON "neuron"
OBJECT_DECLARE_SIMPLE_TYPE(NeuronState, NEURON)

#define NEURON_MAX_STACKS	4
#define NEURON_AER_OFFSET	0x100
#define NEURON_AER_SIZE		0x48

struct NeuronState {
	PCIDevice parent_obj;

	MemoryRegion apb;		/* BAR 0 */
	MemoryRegion exec;		/* BAR 2: container of registers and MSI-X, or alias of BAR 0 */
	MemoryRegion exec_regs;
	MemoryRegion hbm;		/* BAR 4: container of the stacks */
	MemoryRegion stack[NEURON_MAX_STACKS];

	struct neuron_chip *chip;
	struct neuron_chip_info info;
	bool has_aer;
	QLIST_ENTRY(NeuronState) next;	/* of the chips of this machine */
	Error *migration_blocker;

	/* faults on demand, inject.c */
	MemoryRegion gone[2];		/* over BAR 2 and BAR 4 while the chip is not there */
	char *inject;			/* asked for before there was a chip */

	char *arch;
	uint8_t revision;
	uint32_t routing_id;
	uint64_t serial;
	uint32_t vectors;
	uint32_t reset_us;
	uint32_t api_version;
	uint32_t server_info;
	bool reset_clears_udma;
};

/* --- inject.c --- */

/* Properties of the class: inject, inject-clear. */
void neuron_inject_class_init(ObjectClass *klass);
/* The overlays of BARs @exec (NULL: none) and @hbm. */
void neuron_inject_init(NeuronState *s, MemoryRegion *exec, MemoryRegion *hbm);
/* What was asked for on the command line. */
bool neuron_inject_early(NeuronState *s, Error **errp);
/* Callback of the chip. */
int neuron_pci_event(void *opaque, enum neuron_chip_pci event, uint64_t value);

#endif /* NEURON_DEV_H */
