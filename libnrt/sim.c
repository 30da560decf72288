// SPDX-License-Identifier: MIT
/* The in-process back-end: the table of operations. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int open_devs;

/* NEURON_RT_SIM: "trn2" or "trn2:4". False: not one of the chips. */
static bool parse_env(char arch[8], unsigned int *count)
{
	const char *text = getenv("NEURON_RT_SIM"), *colon;
	static const char *const names[] = {
#define NEURON_ARCH(id, name, ...) name,
#include "neuron/arch.def"
#undef NEURON_ARCH
	};
	size_t len, i;
	char *end;

	if (!text)
		return false;
	colon = strchr(text, ':');
	len = colon ? (size_t)(colon - text) : strlen(text);
	*count = 1;
	if (colon) {
		unsigned long value = strtoul(colon + 1, &end, 10);

		if (colon[1] < '0' || colon[1] > '9' || *end || !value || value > SIM_MAX_CHIPS)
			return false;
		*count = value;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == len && !strncmp(names[i], text, len)) {
			strcpy(arch, names[i]);
			return true;
		}
	}
	return false;
}

static int sim_count(void)
{
	unsigned int count;
	char arch[8];

	if (parse_env(arch, &count))
		return count;
	sim_log(NEURON_CHIP_LOG_ERROR,
		"NEURON_RT_SIM=\"%s\" is not trn1, inf2, trn2 or trn3, or one of them and :1 to :%u",
		getenv("NEURON_RT_SIM") ? getenv("NEURON_RT_SIM") : "", SIM_MAX_CHIPS);
	return -EINVAL;
}

static void fill_info(struct sim_dev *dev, unsigned int index)
{
	struct neuron_chip *chip = dev->chip->chip;
	struct dev_info *info = &dev->base.info;
	uint64_t mib = neuron_chip_read(chip, NEURON_BAR_EXEC, NEURON_EXEC_HBM_STACK_MIB, 4);

	snprintf(info->arch, sizeof(info->arch), "%s", dev->chip->arch->name);
	snprintf(info->bdf, sizeof(info->bdf), "sim:%u", index);
	info->nc_version = neuron_chip_read(chip, NEURON_BAR_EXEC, NEURON_EXEC_NC_VERSION, 4);
	info->cores = neuron_chip_read(chip, NEURON_BAR_EXEC, NEURON_EXEC_CORES, 4);
	info->hbm_stacks = neuron_chip_read(chip, NEURON_BAR_EXEC, NEURON_EXEC_HBM_STACKS, 4);
	info->hbm_stack_size = mib << 20;
	info->routing_id = index;
	info->has_exec = true;
}

static void put_service(void)
{
	if (!--open_devs)
		sim_service_stop();
}

/* Open lock held. */
static int open_chip(const char *arch, unsigned int index, struct dev **out)
{
	struct sim_dev *dev = calloc(1, sizeof(*dev));
	int ret;

	if (!dev)
		return -ENOMEM;
	dev->base.backend = &dev_backend_sim;
	dev->chip = sim_chip_get(arch, index, &ret);
	if (!dev->chip) {
		free(dev);
		return ret;
	}
	ret = sim_vm_init(dev);
	if (ret) {
		sim_vm_fini(dev);
		sim_chip_put(dev->chip);
		free(dev);
		return ret;
	}
	fill_info(dev, index);
	*out = &dev->base;
	return 0;
}

static int sim_open(unsigned int index, struct dev **dev)
{
	unsigned int count;
	char arch[8];
	int ret;

	if (!parse_env(arch, &count))
		return -EINVAL;
	if (index >= count)
		return -ENODEV;
	pthread_mutex_lock(&open_lock);
	ret = sim_service_start();
	if (!ret) {
		open_devs++;
		ret = open_chip(arch, index, dev);
		if (ret)
			put_service();
	}
	pthread_mutex_unlock(&open_lock);
	return ret;
}

static void sim_close(struct dev *base)
{
	struct sim_dev *dev = to_sim_dev(base);

	if (!base)
		return;
	pthread_mutex_lock(&open_lock);
	put_service();
	pthread_mutex_unlock(&open_lock);
	sim_vm_fini(dev);
	sim_chip_put(dev->chip);
	free(dev);
}

static int sim_mem_used(struct dev *base, unsigned int stack, uint64_t *used)
{
	struct sim_chip *chip = to_sim_dev(base)->chip;

	if (stack >= chip->arch->hbm_stacks)
		return -EINVAL;
	pthread_mutex_lock(&chip->lock);
	*used = chip->arch->stack_size - chip->stack[stack].free_bytes;
	pthread_mutex_unlock(&chip->lock);
	return 0;
}

static int sim_core_stats(struct dev *base, unsigned int core, struct dev_core_stats *stats)
{
	struct sim_chip *chip = to_sim_dev(base)->chip;
	uint64_t regs = NEURON_EXEC_CORE(core);
	unsigned int e;

	if (core >= chip->arch->cores)
		return -EINVAL;
#define READ(reg) neuron_chip_read(chip->chip, NEURON_BAR_EXEC, regs + (reg), 8)
	stats->wall_busy_ns = READ(NEURON_CORE_WALL_BUSY_NS);
	stats->modelled_ns = READ(NEURON_CORE_MODELLED_NS);
	stats->jobs = READ(NEURON_CORE_JOBS);
	stats->insns = READ(NEURON_CORE_INSNS);
	stats->faults = READ(NEURON_CORE_FAULTS);
	stats->pe_macs = READ(NEURON_CORE_PE_MACS);
	stats->dma_bytes = READ(NEURON_CORE_DMA_BYTES);
	for (e = 0; e < NEURON_ENGINE_COUNT; e++)
		stats->engine_ns[e] = READ(NEURON_CORE_ENGINE_NS(e));
#undef READ
	return 0;
}

const struct dev_backend dev_backend_sim = {
	.name = "sim",
	.count = sim_count,
	.open = sim_open,
	.close = sim_close,
	.bo_alloc = sim_bo_alloc,
	.bo_free = sim_bo_free,
	.bo_map = sim_bo_map,
	.copy = sim_copy,
	.fill = sim_fill,
	.timeline_create = sim_timeline_create,
	.timeline_destroy = sim_timeline_destroy,
	.wait = sim_wait,
	.ctx_create = sim_ctx_create,
	.ctx_destroy = sim_ctx_destroy,
	.ctx_fault = sim_ctx_fault,
	.exec = sim_exec,
	.mem_used = sim_mem_used,
	.core_stats = sim_core_stats,
};
