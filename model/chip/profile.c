// SPDX-License-Identifier: MIT
/*
 * The generations as data: arch.def has the numbers that software needs too;
 * here are the places of the blocks in BAR0 and in the device address space.
 * Source: v2/address_map.h, v3/address_map.h and the dhal files of AWS's public
 * GPL driver 2.24.7.0 and 2.25.4.0.
 */
#include <string.h>

#include "chip.h"

#define GIB(n)		((uint64_t)(n) << 30)
#define DIE1		(1ull << 47)

/* Register layout shared by all chips of a NeuronCore family. */
struct layout {
	uint64_t bar0_size;
	uint64_t misc_ram;
	uint64_t qemu_reset;
	uint64_t tpb_bar0;
	uint64_t tpb_dpa[NEURON_MAX_CORES];
	uint64_t hbm_dpa[CHIP_MAX_STACKS];
	unsigned int udma_groups;
	struct chip_udma_group udma[CHIP_UDMA_GROUPS];
	unsigned int windows;
	struct chip_window window[CHIP_WINDOWS];
	uint64_t link_dpa;
	unsigned int link_shift;
	unsigned int reset_dma_shift;
	bool qemu_reset_any;
};

static const struct layout layout_v2 = {
	.bar0_size = GIB(1),
	.misc_ram = NEURON_V2_MISC_RAM,
	.qemu_reset = NEURON_V2_QEMU_RESET,
	.tpb_bar0 = NEURON_V2_TPB(0),
	.tpb_dpa = { 0xfffc0000000ull, 0xfffc4000000ull },
	.hbm_dpa = { NEURON_V2_HBM_DPA(0), NEURON_V2_HBM_DPA(1) },
	.udma_groups = 4,
	.udma = {
		{ NEURON_V2_SENG_UDMA(0), NEURON_V2_UDMA_STRIDE, 0, 16 },
		{ NEURON_V2_SENG_UDMA(1), NEURON_V2_UDMA_STRIDE, 16, 16 },
		{ NEURON_V2_H2T_UDMA(0), NEURON_V2_UDMA_STRIDE, 32, 1 },
		{ NEURON_V2_H2T_UDMA(1), NEURON_V2_UDMA_STRIDE, 33, 1 },
	},
	.qemu_reset_any = true,
	.windows = 3,
	.window = {
		{ 0x00000000, 0x10000000, 0xfffc0000000ull },	/* TPBs */
		{ 0x10000000, 0x10000000, 0xfffd0000000ull },	/* TOP_SPs */
		{ 0x30000000, 0x01000000, 0xffff0000000ull },	/* APB */
	},
};

#define V3_TOP_SP(bar0, dpa) \
	{ (bar0), 0x400000, (dpa) }, \
	{ (bar0) + 0x400000, 0x400000, (dpa) + 0x40000000ull }, \
	{ (bar0) + 0x800000, 0x400000, (dpa) + 0x80000000ull }, \
	{ (bar0) + 0xc00000, 0x400000, (dpa) + 0xc0000000ull }, \
	{ (bar0) + 0x1000000, 0x400000, (dpa) + 0x100000000ull }, \
	{ (bar0) + 0x1400000, 0x400000, (dpa) + 0x140000000ull }, \
	{ (bar0) + 0x1800000, 0x400000, (dpa) + 0x180000000ull }, \
	{ (bar0) + 0x1c00000, 0x400000, (dpa) + 0x1c0000000ull }, \
	{ (bar0) + 0x2000000, 0x400000, (dpa) + 0x200000000ull }, \
	{ (bar0) + 0x2400000, 0x400000, (dpa) + 0x240000000ull }

static const struct layout layout_v3 = {
	.bar0_size = GIB(4),
	.misc_ram = NEURON_V3_MISC_RAM,
	.qemu_reset = NEURON_V3_QEMU_RESET,
	.tpb_bar0 = NEURON_V3_TPB(0),
	.tpb_dpa = {
		0x2000000000ull, 0x3000000000ull, 0x6000000000ull, 0x7000000000ull,
		DIE1 | 0x2000000000ull, DIE1 | 0x3000000000ull,
		DIE1 | 0x6000000000ull, DIE1 | 0x7000000000ull,
	},
	.hbm_dpa = {
		NEURON_V3_HBM_DPA(0), NEURON_V3_HBM_DPA(1),
		NEURON_V3_HBM_DPA(2), NEURON_V3_HBM_DPA(3),
	},
	.udma_groups = 8,
	.udma = {
		{ NEURON_V3_SENG_UDMA(0), NEURON_V3_UDMA_STRIDE, 0, 32 },
		{ NEURON_V3_SENG_UDMA(1), NEURON_V3_UDMA_STRIDE, 32, 32 },
		{ NEURON_V3_SENG_UDMA(2), NEURON_V3_UDMA_STRIDE, 64, 32 },
		{ NEURON_V3_SENG_UDMA(3), NEURON_V3_UDMA_STRIDE, 96, 32 },
		{ NEURON_V3_H2T_UDMA(0), NEURON_V3_UDMA_STRIDE, 128, 1 },
		{ NEURON_V3_H2T_UDMA(1), NEURON_V3_UDMA_STRIDE, 129, 1 },
		{ NEURON_V3_H2T_UDMA(2), NEURON_V3_UDMA_STRIDE, 130, 1 },
		{ NEURON_V3_H2T_UDMA(3), NEURON_V3_UDMA_STRIDE, 131, 1 },
	},
	.link_dpa = NEURON_V3_LINK_DPA(0),
	.link_shift = NEURON_V3_LINK_SHIFT,
	.reset_dma_shift = 8,
	.windows = 38,
	.window = {
		{ 0x00000000, 0x20000000, 0x8000000000ull },		/* APB_IO_0 */
		{ 0x40000000, 0x20000000, DIE1 | 0x8000000000ull },	/* APB_IO_1 */
		{ 0x80000000, 0x10000000, 0x1000000000ull },		/* APB_SE_0 */
		{ 0x90000000, 0x10000000, 0x5000000000ull },
		{ 0xa0000000, 0x10000000, DIE1 | 0x1000000000ull },
		{ 0xb0000000, 0x10000000, DIE1 | 0x5000000000ull },
		{ NEURON_V3_TPB(0), CHIP_TPB_WINDOW, 0x2000000000ull },
		{ NEURON_V3_TPB(1), CHIP_TPB_WINDOW, 0x3000000000ull },
		{ NEURON_V3_TPB(2), CHIP_TPB_WINDOW, 0x6000000000ull },
		{ NEURON_V3_TPB(3), CHIP_TPB_WINDOW, 0x7000000000ull },
		{ NEURON_V3_TPB(4), CHIP_TPB_WINDOW, DIE1 | 0x2000000000ull },
		{ NEURON_V3_TPB(5), CHIP_TPB_WINDOW, DIE1 | 0x3000000000ull },
		{ NEURON_V3_TPB(6), CHIP_TPB_WINDOW, DIE1 | 0x6000000000ull },
		{ NEURON_V3_TPB(7), CHIP_TPB_WINDOW, DIE1 | 0x7000000000ull },
		V3_TOP_SP(0xf0000000, 0x8280000000ull),
		V3_TOP_SP(0xf2800000, DIE1 | 0x8280000000ull),
		/* PREPROC has no place in BAR0: what is written there is kept behind its end. */
		{ GIB(4), 0x34c0000, 0x1200000000ull },
		{ GIB(4) + 0x4000000, 0x34c0000, 0x5200000000ull },
		{ GIB(4) + 0x8000000, 0x34c0000, DIE1 | 0x1200000000ull },
		{ GIB(4) + 0xc000000, 0x34c0000, DIE1 | 0x5200000000ull },
	},
};

/*
 * Links. Shapes and device numbers: fw_io_topology_v2() and _v3(),
 * neuron_pci_device_id_to_rid_map() of the public driver. Rates: NeuronLink-v3 has
 * 1024 GB/s per chip inside a server, four links, both directions; v4 256 GB/s for the
 * three links of a group (Trn3 Gen2). Trn1 and Inf2: assumed. Latency: AWS gives 1 to
 * 2 us per hop of a ring; assumed 1 us.
 */
static const struct chip_fabric fabric_trn1 = {
	CHIP_FABRIC_TORUS, 16, { 0, 4, 1, 5, 3, 7, 2, 6, 12, 8, 13, 9, 15, 11, 14, 10 }, 48, 1000
};
static const struct chip_fabric fabric_inf2 = {
	CHIP_FABRIC_RING, 12, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 48, 1000
};
static const struct chip_fabric fabric_trn2 = {
	CHIP_FABRIC_TORUS, 16, { 0, 3, 4, 7, 12, 15, 8, 11, 1, 2, 5, 6, 13, 14, 9, 10 }, 128, 1000
};
static const struct chip_fabric fabric_trn3 = { CHIP_FABRIC_ALL, 4, { 0, 1, 2, 3 }, 64, 1000 };

/* What arch.def does not have, by name. */
static const struct {
	const char *name;
	const struct layout *layout;
	const struct chip_fabric *fabric;
} places[] = {
	{ "trn1", &layout_v2, &fabric_trn1 },
	{ "inf2", &layout_v2, &fabric_inf2 },
	{ "trn2", &layout_v3, &fabric_trn2 },
	{ "trn3", &layout_v3, &fabric_trn3 },
	{ "trn3b", &layout_v3, &fabric_trn3 },
};

static const struct row {
	const char *name;
	uint16_t device_id;
	unsigned int nc_version, cores, hbm_stacks, hbm_gib, stride_gib;
	unsigned int sbuf_kib, host_bit, engines;
} rows[] = {
#define NEURON_ARCH(ID, name, product, device_id, nc_version, cores, stacks, gib, \
		    stride, sbuf_kib, host_bit, lnc, engines, h2t) \
	{ name, device_id, nc_version, cores, stacks, gib, stride, sbuf_kib, host_bit, engines },
#include "neuron/arch.def"
#undef NEURON_ARCH
};

static void fill(struct chip_profile *p, const struct row *r, const struct layout *l,
		 const struct chip_fabric *fabric)
{
	p->fabric = *fabric;
	p->link_dpa = l->link_dpa;
	p->link_shift = l->link_shift;
	p->reset_dma_shift = l->reset_dma_shift;
	p->qemu_reset_any = l->qemu_reset_any;
	p->name = r->name;
	p->device_id = r->device_id;
	p->nc_version = r->nc_version;
	p->cores = r->cores;
	p->hbm_stacks = r->hbm_stacks;
	p->hbm_size = GIB(r->hbm_gib);
	p->hbm_stride = GIB(r->stride_gib);
	p->sbuf_kib = r->sbuf_kib;
	p->host_bit = r->host_bit;
	p->udma_engines = r->engines;
	p->bar0_size = l->bar0_size;
	p->misc_ram = l->misc_ram;
	p->qemu_reset = l->qemu_reset;
	p->tpb_bar0 = l->tpb_bar0;
	memcpy(p->tpb_dpa, l->tpb_dpa, sizeof(p->tpb_dpa));
	memcpy(p->hbm_dpa, l->hbm_dpa, sizeof(p->hbm_dpa));
	p->udma_groups = l->udma_groups;
	memcpy(p->udma, l->udma, sizeof(p->udma));
	p->windows = l->windows;
	memcpy(p->window, l->window, sizeof(p->window));
}

bool chip_profile_get(const char *arch, uint8_t revision, struct chip_profile *profile)
{
	size_t i, k;

	for (i = 0; arch && i < ARRAY_LEN(rows); i++) {
		if (strcmp(arch, rows[i].name))
			continue;
		for (k = 0; strcmp(arch, places[k].name); k++)
			;
		fill(profile, &rows[i], places[k].layout, places[k].fabric);
		/*
		 * At this revision the public driver takes BAR4 divided by the
		 * stacks for both live size and stride, so both are the largest
		 * power of two that is all live.
		 */
		if (revision == NEURON_PCI_REVISION_QEMU) {
			while (profile->hbm_stride > profile->hbm_size)
				profile->hbm_stride >>= 1;
			profile->hbm_size = profile->hbm_stride;
		}
		return true;
	}
	return false;
}
