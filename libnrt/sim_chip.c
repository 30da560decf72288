// SPDX-License-Identifier: MIT
/* Chips of this process: power on, callbacks, interrupts. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "log.h"
#include "sim.h"

static const struct sim_arch archs[] = {
#define NEURON_ARCH(id, name, product, device_id, nc, cores, stacks, gib, stride, sbuf, host_bit, lnc, \
		    engines, h2t) \
	{ name, nc, cores, stacks, (uint64_t)(gib) << 30, (uint64_t)(stride) << 30, host_bit, \
	  engines, h2t },
#include "neuron/arch.def"
#undef NEURON_ARCH
};

static struct sim_chip *chips;
static pthread_mutex_t chips_lock = PTHREAD_MUTEX_INITIALIZER;

void sim_log(enum neuron_chip_log level, const char *format, ...)
{
	static const enum log_level levels[] = {
		[NEURON_CHIP_LOG_ERROR] = LOG_ERR_,
		[NEURON_CHIP_LOG_GUEST] = LOG_INFO_,
		[NEURON_CHIP_LOG_DEBUG] = LOG_DEBUG_,
	};
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_line(levels[level], "TDRV", "sim", "%s", line);
}

/* --- what the chip calls ------------------------------------------------------ */

static int on_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
	struct sim_chip *chip = opaque;

	return sim_bus_read(&chip->bus, addr, buf, len);
}

static int on_write(void *opaque, uint64_t addr, const void *buf, size_t len)
{
	struct sim_chip *chip = opaque;

	return sim_bus_write(&chip->bus, addr, buf, len);
}

static void admin_irq(struct sim_chip *chip)
{
	uint64_t cause = neuron_chip_read(chip->chip, NEURON_BAR_EXEC, NEURON_EXEC_ADMIN_CAUSE, 4);

	neuron_chip_write(chip->chip, NEURON_BAR_EXEC, NEURON_EXEC_ADMIN_CAUSE, cause, 4);
	if (cause & NEURON_EXEC_ADMIN_UDMA_ABORT)
		sim_udma_abort(chip);
	if (cause & NEURON_EXEC_ADMIN_MEM_ERROR)
		sim_log(NEURON_CHIP_LOG_ERROR, "[ND %u] memory error reported by the chip", chip->index);
}

static void on_irq(void *opaque, unsigned int vector)
{
	struct dev_ctx *ctxs[NEURON_MAX_SLOTS];
	struct sim_chip *chip = opaque;
	unsigned int count, i;

	if (!vector) {
		admin_irq(chip);
		chip->udma.queue.ops->drain(&chip->udma.queue);
	}
	count = sim_ctxs_get(chip, vector, ctxs);
	for (i = 0; i < count; i++) {
		struct sim_queue *q = sim_ctx_queue(ctxs[i]);

		q->ops->drain(q);
		sim_ctx_put(ctxs[i]);
	}
}

static void on_log(void *opaque, enum neuron_chip_log level, const char *line)
{
	struct sim_chip *chip = opaque;

	sim_log(level, "[ND %u] %s", chip->index, line);
}

/* --- addresses ------------------------------------------------------------------ */

uint64_t sim_hbm_dpa(const struct sim_chip *chip, unsigned int stack, uint64_t offset)
{
	if (chip->arch->nc_version == 2)
		return NEURON_V2_HBM_DPA(stack) + offset;
	return NEURON_V3_HBM_DPA(stack) + offset;
}

uint64_t sim_host_dpa(const struct sim_chip *chip, uint64_t bus)
{
	return bus | 1ull << chip->arch->host_bit;
}

/* --- life ------------------------------------------------------------------------ */

static int map_hbm(struct sim_chip *chip)
{
	size_t size = chip->arch->stack_size * chip->arch->hbm_stacks;
	unsigned int i;
	void *hbm;
	int ret;

	hbm = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (hbm == MAP_FAILED)
		return -ENOMEM;
	/* 96 GiB that a core dump would otherwise walk through. */
	madvise(hbm, size, MADV_DONTDUMP);
	chip->hbm = hbm;
	for (i = 0; i < chip->arch->hbm_stacks; i++) {
		ret = sim_ranges_init(&chip->stack[i], 0, chip->arch->stack_size);
		if (ret)
			return ret;
	}
	return 0;
}

static void unmap_hbm(struct sim_chip *chip)
{
	unsigned int i;

	for (i = 0; i < SIM_MAX_STACKS; i++)
		sim_ranges_fini(&chip->stack[i]);
	if (chip->hbm)
		munmap(chip->hbm, chip->arch->stack_size * chip->arch->hbm_stacks);
}

static uint64_t misc_ram(const struct sim_chip *chip)
{
	return chip->arch->nc_version == 2 ? NEURON_V2_MISC_RAM : NEURON_V3_MISC_RAM;
}

/* As the driver's probe: firmware is up, a device reset, then the block's facts. */
static int start_chip(struct sim_chip *chip)
{
	struct timespec nap = { 0, 20000 };
	uint64_t misc = misc_ram(chip), end = sim_now() + 1000000000u;
	uint32_t value;

	value = neuron_chip_read(chip->chip, NEURON_BAR_APB, misc + NEURON_MISC_API_VERSION, 4);
	if (value == NEURON_MISC_NOT_READY)
		return -EIO;
	neuron_chip_write(chip->chip, NEURON_BAR_APB, misc + NEURON_MISC_RESET,
			  NEURON_MISC_RESET_DEVICE, 4);
	neuron_chip_write(chip->chip, NEURON_BAR_APB, misc + NEURON_MISC_TRIGGER, 1, 4);
	while (neuron_chip_read(chip->chip, NEURON_BAR_APB, misc + NEURON_MISC_RESET, 4)) {
		if (sim_now() > end)
			return -EIO;
		nanosleep(&nap, NULL);
	}
	value = neuron_chip_read(chip->chip, NEURON_BAR_EXEC, NEURON_EXEC_MAGIC_REG, 4);
	if (value != NEURON_EXEC_MAGIC)
		return -EIO;
	chip->slots = neuron_chip_read(chip->chip, NEURON_BAR_EXEC, NEURON_EXEC_SLOTS, 4);
	if (chip->slots > NEURON_MAX_SLOTS)
		chip->slots = NEURON_MAX_SLOTS;
	chip->vectors = neuron_chip_read(chip->chip, NEURON_BAR_EXEC, NEURON_EXEC_VECTORS, 4);
	neuron_chip_write(chip->chip, NEURON_BAR_EXEC, NEURON_EXEC_ADMIN_MASK,
			  NEURON_EXEC_ADMIN_UDMA_ABORT | NEURON_EXEC_ADMIN_MEM_ERROR, 4);
	return sim_udma_init(chip);
}

static void destroy_chip(struct sim_chip *chip)
{
	if (chip->chip)
		neuron_chip_idle(chip->chip);
	sim_udma_fini(chip);
	neuron_chip_free(chip->chip);
	unmap_hbm(chip);
	if (chip->bus.slot)
		sim_bus_fini(&chip->bus);
	pthread_mutex_destroy(&chip->lock);
	pthread_mutex_destroy(&chip->slots_lock);
	free(chip);
}

/*
 * NEURON_RT_SIM_INJECT: faults that the chips have from the start, separated by
 * semicolons (Documentation/hardware/faults.rst); "2:..." is for chip 2 only.
 */
static int inject_faults(struct sim_chip *chip)
{
	const char *text = getenv("NEURON_RT_SIM_INJECT");
	char one[256], error[512];
	unsigned long index;
	size_t len;
	char *end;

	for (; text && *text; text += len + (text[len] == ';')) {
		len = strcspn(text, ";");
		index = strtoul(text, &end, 10);
		end = end > text && *end == ':' ? end + 1 : (char *)text;
		if (end != text && index != chip->index)
			continue;
		snprintf(one, sizeof(one), "%.*s", (int)(text + len - end), end);
		if (!one[strspn(one, " \t,")] ||
		    neuron_chip_inject(chip->chip, one, error, sizeof(error)) >= 0)
			continue;
		sim_log(NEURON_CHIP_LOG_ERROR, "NEURON_RT_SIM_INJECT: %s", error);
		return -EINVAL;
	}
	return 0;
}

static int power_on(struct sim_chip *chip)
{
	static const struct neuron_chip_host host = {
		.dma_read = on_read, .dma_write = on_write, .irq = on_irq, .log = on_log,
	};
	struct neuron_chip_config config = {
		.arch = chip->arch->name,
		.routing_id = chip->index,
		.inline_exec = true,
		.reset_us = 1,
	};
	const char *error = "";
	int ret;

	ret = sim_bus_init(&chip->bus);
	if (!ret)
		ret = map_hbm(chip);
	if (ret)
		return ret;
	config.hbm = chip->hbm;
	chip->chip = neuron_chip_new(&config, &host, chip, &error);
	if (!chip->chip) {
		sim_log(NEURON_CHIP_LOG_ERROR, "chip model %s: %s", chip->arch->name, error);
		return -ENOMEM;
	}
	neuron_chip_bus_master(chip->chip, true);
	ret = inject_faults(chip);
	if (ret)
		return ret;
	ret = start_chip(chip);
	if (ret)
		sim_log(NEURON_CHIP_LOG_ERROR, "chip model %s does not start (%d)",
			chip->arch->name, ret);
	return ret;
}

static struct sim_chip *new_chip(const char *arch, unsigned int index, int *error)
{
	struct sim_chip *chip = calloc(1, sizeof(*chip));
	size_t i;

	*error = -ENOMEM;
	if (!chip)
		return NULL;
	pthread_mutex_init(&chip->lock, NULL);
	pthread_mutex_init(&chip->slots_lock, NULL);
	chip->index = index;
	chip->refs = 1;
	for (i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		if (!strcmp(archs[i].name, arch))
			chip->arch = &archs[i];
	if (!chip->arch) {
		destroy_chip(chip);
		*error = -ENODEV;
		return NULL;
	}
	*error = power_on(chip);
	if (*error) {
		destroy_chip(chip);
		return NULL;
	}
	return chip;
}

struct sim_chip *sim_chip_get(const char *arch, unsigned int index, int *error)
{
	struct sim_chip *chip;

	*error = 0;
	pthread_mutex_lock(&chips_lock);
	for (chip = chips; chip; chip = chip->next)
		if (chip->index == index && !strcmp(chip->arch->name, arch))
			break;
	if (chip) {
		chip->refs++;
	} else {
		chip = new_chip(arch, index, error);
		if (chip) {
			chip->next = chips;
			chips = chip;
		}
	}
	pthread_mutex_unlock(&chips_lock);
	return chip;
}

void sim_chip_put(struct sim_chip *chip)
{
	struct sim_chip **link;

	pthread_mutex_lock(&chips_lock);
	if (--chip->refs) {
		pthread_mutex_unlock(&chips_lock);
		return;
	}
	for (link = &chips; *link != chip; link = &(*link)->next)
		;
	*link = chip->next;
	pthread_mutex_unlock(&chips_lock);
	destroy_chip(chip);
}

unsigned int sim_chips_get(struct sim_chip **out, unsigned int max)
{
	struct sim_chip *chip;
	unsigned int n = 0;

	pthread_mutex_lock(&chips_lock);
	for (chip = chips; chip && n < max; chip = chip->next) {
		chip->refs++;
		out[n++] = chip;
	}
	pthread_mutex_unlock(&chips_lock);
	return n;
}
