// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PCI shell around the chip model: BARs, capabilities, interrupts and DMA. What
 * the chip does is in model/chip, which knows nothing of QEMU.
 *
 * Lock order: big lock, then the chip's. The chip calls dma and irq with none of
 * its locks held. DMA is restricted to RAM (MemTxAttrs.memory): it needs no big
 * lock on the chip's threads and cannot come back as a register access.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/range.h"
#include "qemu/rcu.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pci_device.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "hw/qdev-properties.h"
#include "hw/resettable.h"
#include "migration/blocker.h"

#include "neuron_dev.h"

static QLIST_HEAD(, NeuronState) neuron_chips = QLIST_HEAD_INITIALIZER(neuron_chips);

/* ---- callbacks of the chip ------------------------------------------------- */

static pthread_key_t rcu_key;

static void neuron_thread_exit(void *unused)
{
	rcu_unregister_thread();
}

static void neuron_make_key(void)
{
	pthread_key_create(&rcu_key, neuron_thread_exit);
}

/*
 * The chip's threads are not QEMU's, but reading guest memory is an RCU
 * critical section, which only registered threads may have.
 */
static void neuron_register_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static __thread bool known;

	if (likely(known)) {
		return;
	}
	known = true;
	if (bql_locked()) {
		return;		/* a thread of QEMU, which is registered */
	}
	pthread_once(&once, neuron_make_key);
	rcu_register_thread();
	pthread_setspecific(rcu_key, &known);
}

static bool neuron_has_iommu(NeuronState *s)
{
	return pci_device_iommu_address_space(PCI_DEVICE(s)) != &address_space_memory;
}

/*
 * A vCPU that resets a queue waits, with the big lock, for a thread of the chip that
 * may want it for its DMA.
 */
static void neuron_wait(void *opaque, bool begin)
{
	static __thread bool dropped;

	if (!begin) {
		if (dropped) {
			dropped = false;
			bql_lock();
		}
	} else if (neuron_has_iommu(opaque) && bql_locked()) {
		dropped = true;
		bql_unlock();
	}
}

static int neuron_dma(NeuronState *s, uint64_t addr, void *buf, size_t len,
		      bool is_write)
{
	PCIDevice *pci = PCI_DEVICE(s);
	MemTxAttrs attrs = {
		.memory = 1,
		.requester_id = pci_requester_id(pci),
	};

	neuron_register_thread();
	/* An IOMMU reports a fault by an interrupt, and that needs the big lock. */
	if (neuron_has_iommu(s) && !bql_locked()) {
		BQL_LOCK_GUARD();
		return address_space_rw(pci_get_address_space(pci), addr, attrs, buf,
					len, is_write) == MEMTX_OK ? 0 : -1;
	}
	return address_space_rw(pci_get_address_space(pci), addr, attrs, buf,
				len, is_write) == MEMTX_OK ? 0 : -1;
}

static int neuron_dma_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
	return neuron_dma(opaque, addr, buf, len, false);
}

static int neuron_dma_write(void *opaque, uint64_t addr, const void *buf,
			    size_t len)
{
	return neuron_dma(opaque, addr, (void *)buf, len, true);
}

/*
 * Taking the big lock here costs less than waking the main loop: no thread
 * holds it for long, and the vCPU that waits for us does not hold it.
 */
static void neuron_irq(void *opaque, unsigned int vector)
{
	PCIDevice *pci = PCI_DEVICE(opaque);

	neuron_register_thread();
	BQL_LOCK_GUARD();
	if (msix_enabled(pci) && vector < msix_nr_vectors_allocated(pci)) {
		msix_notify(pci, vector);
	}
}

static void neuron_log(void *opaque, enum neuron_chip_log level, const char *line)
{
	if (level == NEURON_CHIP_LOG_ERROR) {
		error_report("neuron: %s", line);
	} else if (level == NEURON_CHIP_LOG_GUEST) {
		qemu_log_mask(LOG_GUEST_ERROR, "neuron: %s\n", line);
	}
}

static const struct neuron_chip_host neuron_host = {
	.dma_read = neuron_dma_read,
	.dma_write = neuron_dma_write,
	.irq = neuron_irq,
	.wait = neuron_wait,
	.log = neuron_log,
	.pci = neuron_pci_event,
};

/* ---- registers ------------------------------------------------------------- */

static uint64_t neuron_apb_read(void *opaque, hwaddr addr, unsigned size)
{
	NeuronState *s = opaque;

	return neuron_chip_read(s->chip, NEURON_BAR_APB, addr, size);
}

static void neuron_apb_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
	NeuronState *s = opaque;

	neuron_chip_write(s->chip, NEURON_BAR_APB, addr, val, size);
}

static uint64_t neuron_exec_read(void *opaque, hwaddr addr, unsigned size)
{
	NeuronState *s = opaque;

	return neuron_chip_read(s->chip, NEURON_BAR_EXEC, addr, size);
}

static void neuron_exec_write(void *opaque, hwaddr addr, uint64_t val, unsigned size)
{
	NeuronState *s = opaque;

	neuron_chip_write(s->chip, NEURON_BAR_EXEC, addr, val, size);
}

static const MemoryRegionOps neuron_apb_ops = {
	.read = neuron_apb_read,
	.write = neuron_apb_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { .min_access_size = 1, .max_access_size = 8 },
	.impl = { .min_access_size = 1, .max_access_size = 8 },
};

static const MemoryRegionOps neuron_exec_ops = {
	.read = neuron_exec_read,
	.write = neuron_exec_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { .min_access_size = 1, .max_access_size = 8 },
	.impl = { .min_access_size = 1, .max_access_size = 8 },
};

/* A chip that is not there answers with all ones. */
static uint32_t neuron_read_config(PCIDevice *pci, uint32_t addr, int len)
{
	NeuronState *s = NEURON(pci);

	if (!neuron_chip_online(s->chip)) {
		return len < 4 ? (1u << 8 * len) - 1 : ~0u;
	}
	return pci_default_read_config(pci, addr, len);
}

/*
 * One update of the memory map for the three BARs: a kernel that sizes them turns
 * decoding off and on again for each, and an update costs 30 ms with 144 chips.
 */
static void neuron_write_config(PCIDevice *pci, uint32_t addr, uint32_t val, int len)
{
	NeuronState *s = NEURON(pci);

	if (!neuron_chip_online(s->chip)) {
		return;
	}
	memory_region_transaction_begin();
	pci_default_write_config(pci, addr, val, len);
	memory_region_transaction_commit();
	if (range_covers_byte(addr, len, PCI_COMMAND)) {
		neuron_chip_bus_master(s->chip, pci_get_word(pci->config + PCI_COMMAND) &
				       PCI_COMMAND_MASTER);
	}
	pcie_cap_flr_write_config(pci, addr, val, len);
	if (s->has_aer) {
		pcie_aer_write_config(pci, addr, val, len);
	}
}

/* ---- making the device ----------------------------------------------------- */

/*
 * All BARs are prefetchable: a bridge has no window above 4 GiB for others, and
 * 4 GiB of registers do not fit below.
 */
static void neuron_register_bar(PCIDevice *pci, int nr, MemoryRegion *mr)
{
	pci_register_bar(pci, nr, PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 |
			 PCI_BASE_ADDRESS_MEM_PREFETCH, mr);
}

static bool neuron_make_chip(NeuronState *s, Error **errp)
{
	struct neuron_chip_config config = {
		.arch = s->arch,
		.revision = s->revision,
		.routing_id = s->routing_id,
		.serial = s->serial,
		.vectors = s->vectors,
		.reset_us = s->reset_us,
		.api_version = s->api_version,
		.server_info = s->server_info,
		.reset_clears_udma = s->reset_clears_udma,
	};
	const char *error = NULL;

	s->chip = neuron_chip_new(&config, &neuron_host, s, &error);
	if (!s->chip) {
		error_setg(errp, "neuron: %s (chip=%s, routing-id=%u, vectors=%u, api-version=%u, "
			   "server-info=0x%x)", error, s->arch ? s->arch : "", s->routing_id,
			   s->vectors, s->api_version, s->server_info);
		return false;
	}
	neuron_chip_info(s->arch, s->revision, &s->info);
	return true;
}

/* Live bytes are RAM to the guest's CPUs; between the stacks there is nothing. */
static void neuron_make_hbm(NeuronState *s)
{
	unsigned int i;

	memory_region_init(&s->hbm, OBJECT(s), "neuron-hbm", s->info.bar_size[NEURON_BAR_HBM]);
	for (i = 0; i < s->info.hbm_stacks; i++) {
		g_autofree char *name = g_strdup_printf("neuron-hbm%u", i);

		memory_region_init_ram_ptr(&s->stack[i], OBJECT(s), name,
					   s->info.hbm_stack_size, neuron_chip_hbm(s->chip, i));
		memory_region_add_subregion(&s->hbm, i * s->info.hbm_stack_stride, &s->stack[i]);
	}
}

static bool neuron_make_exec_cap(PCIDevice *pci, Error **errp)
{
	struct neuron_exec_cap cap = {
		.len = sizeof(cap),
		.version = NEURON_EXEC_CAP_VERSION,
		.magic = cpu_to_le32(NEURON_EXEC_MAGIC),
		.bar = NEURON_BAR_EXEC,
	};
	const size_t head = offsetof(struct neuron_exec_cap, len);
	int at = pci_add_capability(pci, PCI_CAP_ID_VNDR, 0, sizeof(cap), errp);

	if (at < 0) {
		return false;
	}
	memcpy(pci->config + at + head, (uint8_t *)&cap + head, sizeof(cap) - head);
	return true;
}

/* The MSI-X table lies over the registers of the same BAR. */
static bool neuron_make_exec(NeuronState *s, Error **errp)
{
	PCIDevice *pci = PCI_DEVICE(s);
	unsigned int vectors = s->vectors ? s->vectors : NEURON_MAX_VECTORS, i;

	memory_region_init(&s->exec, OBJECT(s), "neuron-bar2", NEURON_EXEC_BAR_SIZE);
	memory_region_init_io(&s->exec_regs, OBJECT(s), &neuron_exec_ops, s, "neuron-exec",
			      NEURON_EXEC_BAR_SIZE);
	s->exec_regs.disable_reentrancy_guard = true;
	memory_region_add_subregion_overlap(&s->exec, 0, &s->exec_regs, -1);
	if (msix_init(pci, vectors, &s->exec, NEURON_BAR_EXEC, NEURON_EXEC_MSIX_TABLE,
		      &s->exec, NEURON_BAR_EXEC, NEURON_EXEC_MSIX_PBA, 0, errp)) {
		return false;
	}
	for (i = 0; i < vectors; i++) {
		msix_vector_use(pci, i);
	}
	return neuron_make_exec_cap(pci, errp);
}

static bool neuron_make_bar2(NeuronState *s, Error **errp)
{
	if (s->revision != NEURON_PCI_REVISION_QEMU) {
		return neuron_make_exec(s, errp);
	}
	memory_region_init_alias(&s->exec, OBJECT(s), "neuron-bar2", &s->apb, 0,
				 s->info.bar_size[NEURON_BAR_APB]);
	return true;
}

static bool neuron_make_express(NeuronState *s, Error **errp)
{
	PCIDevice *pci = PCI_DEVICE(s);

	if (!pci_is_express(pci)) {
		return true;
	}
	if (pcie_endpoint_cap_init(pci, 0) < 0) {
		error_setg(errp, "neuron: no room for the PCI Express capability");
		return false;
	}
	pcie_cap_flr_init(pci);
	pcie_cap_deverr_init(pci);
	/* Error reporting needs a root port to report to. */
	if (pci_bus_is_root(pci_get_bus(pci))) {
		return true;
	}
	if (pcie_aer_init(pci, PCI_ERR_VER, NEURON_AER_OFFSET, NEURON_AER_SIZE, errp) < 0) {
		return false;
	}
	s->has_aer = true;
	return true;
}

/* Jobs, rings in the guest and gigabytes of HBM: refused, not done wrongly. */
static bool neuron_block_migration(NeuronState *s, Error **errp)
{
	error_setg(&s->migration_blocker, "neuron: a guest with this device cannot be migrated or "
		   "saved: the state of its chip and its HBM would be lost");
	return migrate_add_blocker(&s->migration_blocker, errp) == 0;
}

/*
 * Links between the chips of this machine, by their routing ids. Of two with the same
 * one only one gets the cables; that it is wrong is for the driver to find.
 */
static void neuron_connect(NeuronState *s)
{
	NeuronState *other;

	QLIST_FOREACH(other, &neuron_chips, next) {
		neuron_chip_connect(s->chip, other->chip);
	}
	QLIST_INSERT_HEAD(&neuron_chips, s, next);
}

/* A region in another of the same device is a reference to the device. */
static void neuron_take_apart(NeuronState *s)
{
	MemoryRegion *parts[] = {
		&s->exec_regs, &s->gone[0], &s->gone[1],
		&s->stack[0], &s->stack[1], &s->stack[2], &s->stack[3],
	};
	size_t i;

	QEMU_BUILD_BUG_ON(NEURON_MAX_STACKS != 4);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		if (parts[i]->container) {
			memory_region_del_subregion(parts[i]->container, parts[i]);
		}
	}
}

/*
 * The chip itself stays until neuron_finalize(): a vCPU may still be on its way to
 * its registers or its HBM by the map of memory of a moment ago.
 */
static void neuron_exit(PCIDevice *pci)
{
	NeuronState *s = NEURON(pci);

	QLIST_SAFE_REMOVE(s, next);
	migrate_del_blocker(&s->migration_blocker);
	if (msix_present(pci)) {
		msix_uninit(pci, &s->exec, &s->exec);
	}
	if (s->has_aer) {
		pcie_aer_exit(pci);
	}
	if (!s->chip) {
		return;
	}
	neuron_take_apart(s);
	neuron_chip_disconnect(s->chip);
	/*
	 * First no job and no DMA; then a thread of the chip may still wait for
	 * the big lock to raise its last interrupt.
	 */
	neuron_chip_bus_master(s->chip, false);
	neuron_chip_reset(s->chip, NEURON_CHIP_RESET_BUS);
	bql_unlock();
	neuron_chip_idle(s->chip);
	bql_lock();
}

static void neuron_realize(PCIDevice *pci, Error **errp)
{
	NeuronState *s = NEURON(pci);

	if (!neuron_make_chip(s, errp)) {
		return;
	}
	pci_config_set_device_id(pci->config, s->info.device_id);
	pci_config_set_revision(pci->config, s->revision);
	memory_region_init_io(&s->apb, OBJECT(s), &neuron_apb_ops, s, "neuron-apb",
			      s->info.bar_size[NEURON_BAR_APB]);
	/* The chip locks for itself, and other vCPUs come in while neuron_wait() waits. */
	s->apb.disable_reentrancy_guard = true;
	neuron_make_hbm(s);
	if (!neuron_make_express(s, errp) || !neuron_make_bar2(s, errp) ||
	    !neuron_block_migration(s, errp)) {
		neuron_exit(pci);
		return;
	}
	neuron_connect(s);
	neuron_inject_init(s, s->revision == NEURON_PCI_REVISION_QEMU ? NULL : &s->exec, &s->hbm);
	neuron_register_bar(pci, NEURON_BAR_APB, &s->apb);
	neuron_register_bar(pci, NEURON_BAR_EXEC, &s->exec);
	neuron_register_bar(pci, NEURON_BAR_HBM, &s->hbm);
	if (!neuron_inject_early(s, errp)) {
		neuron_exit(pci);
	}
}

static void neuron_reset_hold(Object *obj, ResetType type)
{
	NeuronState *s = NEURON(obj);
	PCIDevice *pci = PCI_DEVICE(obj);
	bool flr = pci->exp.exp_cap &&
		   (pci_get_word(pci->config + pci->exp.exp_cap + PCI_EXP_DEVCTL) &
		    PCI_EXP_DEVCTL_BCR_FLR);

	neuron_chip_bus_master(s->chip, false);
	neuron_chip_reset(s->chip, flr ? NEURON_CHIP_RESET_FLR : NEURON_CHIP_RESET_BUS);
	if (pci->exp.exp_cap) {
		pcie_cap_deverr_reset(pci);
	}
}

static const Property neuron_properties[] = {
	DEFINE_PROP_STRING("chip", NeuronState, arch),
	DEFINE_PROP_UINT8("revision", NeuronState, revision, 0),
	DEFINE_PROP_UINT32("routing-id", NeuronState, routing_id, 0),
	DEFINE_PROP_UINT64("serial", NeuronState, serial, 0),
	DEFINE_PROP_UINT32("vectors", NeuronState, vectors, 0),
	DEFINE_PROP_UINT32("reset-us", NeuronState, reset_us, 0),
	DEFINE_PROP_UINT32("api-version", NeuronState, api_version, 0),
	DEFINE_PROP_UINT32("server-info", NeuronState, server_info, 0),
	DEFINE_PROP_BOOL("reset-clears-udma", NeuronState, reset_clears_udma, false),
};

static void neuron_init(Object *obj)
{
	NEURON(obj)->arch = g_strdup("trn2");
}

static void neuron_finalize(Object *obj)
{
	NeuronState *s = NEURON(obj);

	neuron_chip_free(s->chip);	/* at rest since neuron_exit() */
	g_free(s->inject);
}

static void neuron_class_init(ObjectClass *klass, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(klass);
	PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);
	ResettableClass *rc = RESETTABLE_CLASS(klass);

	k->realize = neuron_realize;
	k->exit = neuron_exit;
	k->config_read = neuron_read_config;
	k->config_write = neuron_write_config;
	k->vendor_id = NEURON_PCI_VENDOR_ID;
	k->device_id = 0x7364;		/* by chip, set when realized */
	k->class_id = NEURON_PCI_CLASS;
	rc->phases.hold = neuron_reset_hold;
	dc->desc = "Trainium-class accelerator";
	set_bit(DEVICE_CATEGORY_MISC, dc->categories);
	device_class_set_props(dc, neuron_properties);
	neuron_inject_class_init(klass);
}

static const TypeInfo neuron_info = {
	.name = TYPE_NEURON,
	.parent = TYPE_PCI_DEVICE,
	.instance_size = sizeof(NeuronState),
	.instance_init = neuron_init,
	.instance_finalize = neuron_finalize,
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
