// SPDX-License-Identifier: GPL-2.0
/*
 * What is found at probe: generation, BARs, firmware, execution block.
 */
#include <linux/delay.h>
#include <linux/iopoll.h>
#include <linux/sizes.h>

#include <drm/drm_print.h>

#include "neuron_device.h"

#define NEURON_FW_READY_MS	30000
#define NEURON_FW_RESET_MS	30000
#define NEURON_FW_POLL_MS	2

#define NEURON_EXEC_MAJOR	(NEURON_EXEC_VERSION >> 16)

static const struct neuron_arch neuron_archs[] = {
#define NEURON_ARCH(id, text, product, devid, nc, ncores, nstacks, gib, stride, sbuf, bit, \
		    lnc, nengines, h2t)							\
	{									\
		.name = text,							\
		.device_id = devid,						\
		.nc_version = nc,						\
		.cores = ncores,						\
		.stacks = nstacks,						\
		.host_bit = bit,						\
		.h2t_engines = h2t,						\
		.engines = nengines,						\
		.stack_size = (gib) * (u64)SZ_1G,				\
		.stack_stride = (stride) * (u64)SZ_1G,				\
	},
#include <neuron/arch.def>
#undef NEURON_ARCH
};

/**
 * neuron_hw_arch() - facts of a generation
 * @device_id: PCI device id
 *
 * Return: the row, or NULL.
 */
const struct neuron_arch *neuron_hw_arch(u16 device_id)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(neuron_archs); i++)
		if (neuron_archs[i].device_id == device_id)
			return &neuron_archs[i];
	return NULL;
}

/* A window of BAR0; the whole of it is 4 GiB, most of which is never touched. */
static void __iomem *neuron_hw_window(struct neuron_device *ndev, u64 offset, size_t size)
{
	struct pci_dev *pdev = ndev->pdev;

	if (offset + size > pci_resource_len(pdev, NEURON_BAR_APB))
		return NULL;
	return devm_ioremap(&pdev->dev, pci_resource_start(pdev, NEURON_BAR_APB) + offset, size);
}

static int neuron_hw_map_apb(struct neuron_device *ndev)
{
	bool v2 = neuron_is_v2(ndev);
	unsigned int i;
	int ret;

	ret = pcim_request_region(ndev->pdev, NEURON_BAR_APB, "neuron");
	if (ret)
		return ret;
	ndev->misc = neuron_hw_window(ndev, v2 ? NEURON_V2_MISC_RAM : NEURON_V3_MISC_RAM,
				      NEURON_MISC_SIZE);
	if (!ndev->misc)
		return -ENXIO;
	for (i = 0; i < ndev->arch->h2t_engines; i++) {
		u64 base = v2 ? NEURON_V2_H2T_UDMA(i) : NEURON_V3_H2T_UDMA(i);

		ndev->h2t[i] = neuron_hw_window(ndev, base, SZ_512K);
		if (!ndev->h2t[i])
			return -ENXIO;
	}
	return 0;
}

/*
 * The execution block is announced by a capability. Without one BAR2 is somebody
 * else's and is not read.
 */
static int neuron_hw_find_exec(struct pci_dev *pdev, u8 *bar, u32 *offset)
{
	u8 pos, len, version;
	u32 magic;

	for (pos = pci_find_capability(pdev, PCI_CAP_ID_VNDR); pos;
	     pos = pci_find_next_capability(pdev, pos, PCI_CAP_ID_VNDR)) {
		pci_read_config_byte(pdev, pos + offsetof(struct neuron_exec_cap, len), &len);
		if (len < sizeof(struct neuron_exec_cap))
			continue;
		pci_read_config_dword(pdev, pos + offsetof(struct neuron_exec_cap, magic),
				      &magic);
		if (magic != NEURON_EXEC_MAGIC)
			continue;
		pci_read_config_byte(pdev, pos + offsetof(struct neuron_exec_cap, version),
				     &version);
		pci_read_config_byte(pdev, pos + offsetof(struct neuron_exec_cap, bar), bar);
		pci_read_config_dword(pdev, pos + offsetof(struct neuron_exec_cap, offset),
				      offset);
		if (version == NEURON_EXEC_CAP_VERSION && *bar < PCI_STD_NUM_BARS)
			return 0;
		pci_info(pdev, "execution block version %u in BAR %u is not supported\n",
			 version, *bar);
	}
	return -ENODEV;
}

static bool neuron_hw_exec_sane(struct neuron_device *ndev)
{
	u32 cores = readl(ndev->exec + NEURON_EXEC_CORES);

	u32 magic = readl(ndev->exec + NEURON_EXEC_MAGIC_REG);
	u32 major = ndev->exec_version >> 16;

	if (magic != NEURON_EXEC_MAGIC || major != NEURON_EXEC_MAJOR) {
		drm_err(&ndev->drm, "execution block has version %#x, %#x is supported\n",
			ndev->exec_version, NEURON_EXEC_VERSION);
		return false;
	}
	if (cores != ndev->arch->cores || !ndev->slots_count ||
	    readl(ndev->exec + NEURON_EXEC_RING_ORDER_MAX) < NEURON_RING_ORDER) {
		drm_err(&ndev->drm, "execution block has %u cores and %u slots\n", cores,
			ndev->slots_count);
		return false;
	}
	return true;
}

static int neuron_hw_map_exec(struct neuron_device *ndev)
{
	struct pci_dev *pdev = ndev->pdev;
	u32 offset;
	u8 bar;
	int ret;

	if (neuron_hw_find_exec(pdev, &bar, &offset)) {
		drm_info(&ndev->drm, "no execution block: memory and copies only\n");
		return 0;
	}
	if (offset + (u64)NEURON_EXEC_BAR_SIZE > pci_resource_len(pdev, bar) ||
	    bar == NEURON_BAR_APB || bar == NEURON_BAR_HBM)
		return -ENXIO;
	ret = pcim_request_region(pdev, bar, "neuron-exec");
	if (ret)
		return ret;
	ndev->exec = devm_ioremap(&pdev->dev, pci_resource_start(pdev, bar) + offset,
				  NEURON_EXEC_BAR_SIZE);
	if (!ndev->exec)
		return -ENOMEM;
	ndev->exec_version = readl(ndev->exec + NEURON_EXEC_VERSION_REG);
	ndev->slots_count = min_t(u32, readl(ndev->exec + NEURON_EXEC_SLOTS),
				  NEURON_MAX_SLOTS);
	ndev->exec_vectors = clamp_t(u32, readl(ndev->exec + NEURON_EXEC_VECTORS), 1,
				     NEURON_MAX_VECTORS);
	ndev->sbuf_bytes = readl(ndev->exec + NEURON_EXEC_SBUF_BYTES);
	ndev->psum_bytes = readl(ndev->exec + NEURON_EXEC_PSUM_BYTES);
	return neuron_hw_exec_sane(ndev) ? 0 : -ENXIO;
}

static int neuron_hw_map_hbm(struct neuron_device *ndev)
{
	const struct neuron_arch *arch = ndev->arch;
	u64 len = pci_resource_len(ndev->pdev, NEURON_BAR_HBM);
	u64 size = arch->stack_size;
	unsigned int i;
	int ret;

	ret = pcim_request_region(ndev->pdev, NEURON_BAR_HBM, "neuron-hbm");
	if (ret)
		return ret;
	ndev->hbm_base = pci_resource_start(ndev->pdev, NEURON_BAR_HBM);
	ndev->stack_stride = arch->stack_stride;
	if (neuron_is_qemu(ndev)) {
		ndev->stack_stride = len / arch->stacks;
		size = min(size, ndev->stack_stride);
	}
	if (ndev->exec)
		size = min(size, (u64)readl(ndev->exec + NEURON_EXEC_HBM_STACK_MIB) * SZ_1M);
	size = round_down(size, NEURON_HBM_PAGE);
	if (!size || (arch->stacks - 1) * ndev->stack_stride + size > len) {
		drm_err(&ndev->drm, "BAR4 of %#llx bytes cannot hold %u stacks of %#llx\n",
			len, arch->stacks, size);
		return -ENXIO;
	}
	for (i = 0; i < arch->stacks; i++)
		ndev->hbm[i].size = size;
	return 0;
}

/**
 * neuron_hw_map() - map the registers and find out what there is
 * @ndev: chip, its PCI device enabled
 *
 * Return: 0 or an error.
 */
int neuron_hw_map(struct neuron_device *ndev)
{
	int ret;

	ret = neuron_hw_map_apb(ndev);
	if (ret)
		return ret;
	ret = neuron_hw_map_exec(ndev);
	if (ret)
		return ret;
	return neuron_hw_map_hbm(ndev);
}

static int neuron_hw_wait_ready(struct neuron_device *ndev)
{
	u32 val;

	/* Firmware writes its place in the instance once it has booted. */
	if (read_poll_timeout(readl, val, val != NEURON_MISC_NOT_READY,
			      NEURON_FW_POLL_MS * 1000, NEURON_FW_READY_MS * 1000, false,
			      ndev->misc + NEURON_MISC_ROUTING_ID)) {
		drm_err(&ndev->drm, "firmware is not ready\n");
		return -ETIMEDOUT;
	}
	if (val == ~0u)
		return -ENODEV;
	ndev->routing_id = val;
	return 0;
}

static int neuron_hw_reset_fw(struct neuron_device *ndev)
{
	u32 val;

	/* writel() orders the request before the trigger. */
	writel(NEURON_MISC_RESET_DEVICE, ndev->misc + NEURON_MISC_RESET);
	writel(1, ndev->misc + NEURON_MISC_TRIGGER);
	if (read_poll_timeout(readl, val, !val, NEURON_FW_POLL_MS * 1000,
			      NEURON_FW_RESET_MS * 1000, true, ndev->misc + NEURON_MISC_RESET))
		goto timeout;
	if (read_poll_timeout(readl, val, !(val & NEURON_MISC_STATUS_BUSY),
			      NEURON_FW_POLL_MS * 1000, NEURON_FW_RESET_MS * 1000, false,
			      ndev->misc + NEURON_MISC_STATUS))
		goto timeout;
	return 0;

timeout:
	drm_err(&ndev->drm, "device reset timed out (%#x)\n", val);
	return -ETIMEDOUT;
}

/* Platform revision 0xff has a register of its own for resets. */
static int neuron_hw_reset_qemu(struct neuron_device *ndev)
{
	bool v2 = neuron_is_v2(ndev);
	void __iomem *reg;
	int ret = 0;
	u32 val;

	reg = neuron_hw_window(ndev, v2 ? NEURON_V2_QEMU_RESET : NEURON_V3_QEMU_RESET, 4);
	if (!reg)
		return -ENXIO;
	writel(v2 ? 1 : 0, reg);
	if (v2)
		ret = neuron_hw_reset_fw(ndev);
	if (!ret && read_poll_timeout(readl, val, !val, NEURON_FW_POLL_MS * 1000,
				      NEURON_FW_RESET_MS * 1000, true, reg))
		ret = -ETIMEDOUT;
	devm_iounmap(&ndev->pdev->dev, reg);
	return ret;
}

/**
 * neuron_hw_start() - wait for the firmware and reset the chip
 * @ndev: mapped
 *
 * Return: 0 or an error.
 */
int neuron_hw_start(struct neuron_device *ndev)
{
	int ret;

	ret = neuron_hw_wait_ready(ndev);
	if (ret)
		return ret;
	ret = neuron_is_qemu(ndev) ? neuron_hw_reset_qemu(ndev) : neuron_hw_reset_fw(ndev);
	if (ret)
		return ret;
	atomic_inc(&ndev->resets);
	ndev->fw_api = readl(ndev->misc + NEURON_MISC_API_VERSION);
	ndev->serial = readl(ndev->misc + NEURON_MISC_SERIAL_LO) |
		       (u64)readl(ndev->misc + NEURON_MISC_SERIAL_HI) << 32;
	return 0;
}
