// SPDX-License-Identifier: MIT
/* The chip as a whole: power on and off, reset, and the way to its host. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "chip.h"

#define DEFAULT_RESET_US	1000
#define DEFAULT_API_VERSION	3
#define RESET_TYPE_FLR		3	/* inject.def */
#define LOG_PER_SECOND		100	/* what software can make us print */

uint64_t chip_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool log_allowed(struct neuron_chip *chip)
{
	uint64_t second = chip_now() / 1000000000u;

	if (atomic_exchange(&chip->log_second, second) != second)
		atomic_store(&chip->log_budget, 0);
	return atomic_fetch_add(&chip->log_budget, 1) < LOG_PER_SECOND;
}

void chip_log(struct neuron_chip *chip, enum neuron_chip_log level, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	if (!chip->host.log || !log_allowed(chip))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	chip->host.log(chip->opaque, level, line);
}

bool neuron_chip_online(struct neuron_chip *chip)
{
	return !atomic_load_explicit(&chip->removed, memory_order_relaxed) &&
	       !atomic_load_explicit(&chip->dead, memory_order_relaxed);
}

static bool can_master(struct neuron_chip *chip)
{
	return atomic_load_explicit(&chip->bus_master, memory_order_relaxed) && neuron_chip_online(chip);
}

bool chip_dma_read(struct neuron_chip *chip, uint64_t addr, void *buf, size_t len)
{
	if (!can_master(chip) || addr + len < addr || !chip->host.dma_read)
		return false;
	return chip->host.dma_read(chip->opaque, addr, buf, len) == 0;
}

bool chip_dma_write(struct neuron_chip *chip, uint64_t addr, const void *buf, size_t len)
{
	if (!can_master(chip) || addr + len < addr || !chip->host.dma_write)
		return false;
	return chip->host.dma_write(chip->opaque, addr, buf, len) == 0;
}

void chip_wait_begin(struct neuron_chip *chip)
{
	if (chip->host.wait)
		chip->host.wait(chip->opaque, true);
}

void chip_wait_end(struct neuron_chip *chip)
{
	if (chip->host.wait)
		chip->host.wait(chip->opaque, false);
}

/* The copy that this thread is in. */
static _Thread_local struct {
	struct neuron_chip *chip;
	unsigned int depth;
	uint32_t vectors;	/* to raise when it is over */
} in_dma;

bool chip_in_dma(void)
{
	return in_dma.depth;
}

void chip_dma_enter(struct neuron_chip *chip)
{
	if (!in_dma.depth++)
		in_dma.chip = chip;
}

void chip_dma_leave(void)
{
	struct neuron_chip *chip = in_dma.chip;
	uint32_t vectors = in_dma.vectors;
	unsigned int i;

	if (--in_dma.depth)
		return;
	in_dma.chip = NULL;
	in_dma.vectors = 0;
	for (i = 0; vectors; i++, vectors >>= 1) {
		if (vectors & 1)
			chip_raise(chip, i);
	}
}

/*
 * A host may block in its callback on a lock whose holder resets the chip, so
 * reset does not wait for these; neuron_chip_idle() and neuron_chip_free() do.
 */
void chip_raise(struct neuron_chip *chip, unsigned int vector)
{
	if (chip == in_dma.chip && vector < NEURON_MAX_VECTORS) {
		in_dma.vectors |= 1u << vector;
		return;
	}
	if (!chip->host.irq || vector >= chip->vectors || !can_master(chip) ||
	    chip_inject_hit(chip, CHIP_INJECT_IRQ_LOST, chip_site_vector(vector)))
		return;
	pthread_mutex_lock(&chip->idle_lock);
	chip->irqs++;
	pthread_mutex_unlock(&chip->idle_lock);
	chip->host.irq(chip->opaque, vector);
	pthread_mutex_lock(&chip->idle_lock);
	chip->irqs--;
	pthread_cond_broadcast(&chip->idle_cond);
	pthread_mutex_unlock(&chip->idle_lock);
}

static void raise_admin(struct chip_pool_work *work)
{
	struct neuron_chip *chip = chip_container_of(work, struct neuron_chip, admin_work);

	atomic_store(&chip->admin_raising, false);
	chip_raise(chip, 0);
	chip_busy_put(chip);
}

void chip_raise_admin(struct neuron_chip *chip)
{
	/* One that is on its way will find this cause, too. */
	if (atomic_exchange(&chip->admin_raising, true))
		return;
	chip_busy_get(chip);
	chip->admin_work.fn = raise_admin;
	chip_pool_submit(CHIP_POOL_UDMA, &chip->admin_work);
}

void chip_busy_get(struct neuron_chip *chip)
{
	pthread_mutex_lock(&chip->idle_lock);
	chip->busy++;
	pthread_mutex_unlock(&chip->idle_lock);
}

void chip_busy_put(struct neuron_chip *chip)
{
	pthread_mutex_lock(&chip->idle_lock);
	if (!--chip->busy)
		pthread_cond_broadcast(&chip->idle_cond);
	pthread_mutex_unlock(&chip->idle_lock);
}

void neuron_chip_idle(struct neuron_chip *chip)
{
	pthread_mutex_lock(&chip->idle_lock);
	while (chip->busy || chip->irqs)
		pthread_cond_wait(&chip->idle_cond, &chip->idle_lock);
	pthread_mutex_unlock(&chip->idle_lock);
}

int neuron_chip_info(const char *arch, uint8_t revision, struct neuron_chip_info *info)
{
	struct chip_profile p;

	if (!chip_profile_get(arch, revision, &p))
		return -EINVAL;
	memset(info, 0, sizeof(*info));
	info->device_id = p.device_id;
	info->bar_size[NEURON_BAR_APB] = p.bar0_size;
	info->bar_size[NEURON_BAR_EXEC] = revision == NEURON_PCI_REVISION_QEMU ?
					  p.bar0_size : NEURON_EXEC_BAR_SIZE;
	info->bar_size[NEURON_BAR_HBM] = p.hbm_stride * p.hbm_stacks;
	info->cores = p.cores;
	info->hbm_stacks = p.hbm_stacks;
	info->hbm_stack_size = p.hbm_size;
	info->hbm_stack_stride = p.hbm_stride;
	return 0;
}

static bool map_hbm(struct neuron_chip *chip, void *given)
{
	void *p;

	if (given) {
		chip->hbm = given;
		return true;
	}
	p = mmap(NULL, chip->profile.hbm_size * chip->profile.hbm_stacks,
		 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	/* A core dump of the host shall not be the size of HBM. */
	madvise(p, chip->profile.hbm_size * chip->profile.hbm_stacks, MADV_DONTDUMP);
	chip->hbm = p;
	chip->hbm_owned = true;
	return true;
}

static bool make_cores(struct neuron_chip *chip)
{
	unsigned int i;

	for (i = 0; i < NEURON_MAX_CORES; i++) {
		pthread_mutex_init(&chip->core[i].lock, NULL);
		chip->core[i].slot = -1;
	}
	for (i = 0; i < chip->profile.cores; i++) {
		chip->core[i].core = chip_core_new(chip->profile.nc_version);
		if (!chip->core[i].core)
			return false;
	}
	return true;
}

static void init_slots(struct neuron_chip *chip)
{
	unsigned int i;

	for (i = 0; i < NEURON_MAX_SLOTS; i++) {
		chip->slot[i].chip = chip;
		chip->slot[i].index = i;
	}
}

static void init_locks(struct neuron_chip *chip)
{
	pthread_mutex_init(&chip->lock, NULL);
	pthread_cond_init(&chip->cond, NULL);
	pthread_mutex_init(&chip->idle_lock, NULL);
	pthread_cond_init(&chip->idle_cond, NULL);
	chip_ram_init(&chip->ram);
	chip_inject_init(&chip->faults);
}

static void destroy(struct neuron_chip *chip)
{
	unsigned int i;

	chip_udma_free(chip);
	for (i = 0; i < NEURON_MAX_CORES; i++) {
		chip_core_free(chip->core[i].core);
		pthread_mutex_destroy(&chip->core[i].lock);
	}
	for (i = 0; i < NEURON_MAX_SLOTS; i++)
		free(chip->slot[i].vm);
	if (chip->hbm_owned)
		munmap(chip->hbm, chip->profile.hbm_size * chip->profile.hbm_stacks);
	chip_ram_free(&chip->ram);
	chip_inject_free(&chip->faults);
	pthread_cond_destroy(&chip->idle_cond);
	pthread_mutex_destroy(&chip->idle_lock);
	pthread_cond_destroy(&chip->cond);
	pthread_mutex_destroy(&chip->lock);
	chip_pool_put();
	free(chip);
}

static const char *check_config(const struct neuron_chip_config *config)
{
	struct chip_profile p;

	if (!chip_profile_get(config->arch, config->revision, &p))
		return "unknown chip: must be trn1, inf2, trn2, trn3 or trn3b";
	if (config->routing_id >= NEURON_CHIP_MAX_ROUTING_ID)
		return "routing id out of range: must be 0 to 143";
	if (config->vectors > NEURON_MAX_VECTORS)
		return "too many interrupt vectors: must be 1 to 9 (0: 9)";
	if (config->api_version && (config->api_version < 3 || config->api_version > 7))
		return "unknown firmware API version: must be 3 to 7 (0: 3)";
	if (config->server_info > 0xffff)
		return "server information out of range: must be 0 to 0xffff (bit 15: valid)";
	return NULL;
}

struct neuron_chip *neuron_chip_new(const struct neuron_chip_config *config,
				    const struct neuron_chip_host *host,
				    void *opaque, const char **error)
{
	const char *bad = check_config(config);
	struct neuron_chip *chip = NULL;

	if (!bad) {
		chip = calloc(1, sizeof(*chip));
		if (!chip)
			bad = "out of memory";
	}
	if (error)
		*error = bad;
	if (bad)
		return NULL;
	chip_profile_get(config->arch, config->revision, &chip->profile);
	chip->host = *host;
	chip->opaque = opaque;
	chip->vectors = config->vectors ? config->vectors : NEURON_MAX_VECTORS;
	chip->inline_exec = config->inline_exec;
	chip->revision = config->revision;
	chip->reset_ns = 1000ull * (config->reset_us ? config->reset_us : DEFAULT_RESET_US);
	chip->routing_id = config->routing_id;
	chip->serial = config->serial ? config->serial : 0x4e41000000ull + config->routing_id;
	chip->api_version = config->api_version ? config->api_version : DEFAULT_API_VERSION;
	chip->server_info = config->server_info;
	chip->reset_clears_udma = config->reset_clears_udma;
	init_locks(chip);
	init_slots(chip);
	chip_pool_get();
	if (!make_cores(chip) || !map_hbm(chip, config->hbm)) {
		destroy(chip);
		if (error)
			*error = "out of memory or address space";
		return NULL;
	}
	chip_misc_reset(chip, true);
	return chip;
}

void neuron_chip_free(struct neuron_chip *chip)
{
	if (!chip)
		return;
	neuron_chip_bus_master(chip, false);
	neuron_chip_disconnect(chip);
	neuron_chip_reset(chip, NEURON_CHIP_RESET_BUS);
	pthread_mutex_lock(&chip->idle_lock);
	while (chip->busy || chip->irqs)
		pthread_cond_wait(&chip->idle_cond, &chip->idle_lock);
	pthread_mutex_unlock(&chip->idle_lock);
	destroy(chip);
}

void *neuron_chip_hbm(struct neuron_chip *chip, unsigned int stack)
{
	if (stack >= chip->profile.hbm_stacks)
		return NULL;
	return chip->hbm + stack * chip->profile.hbm_size;
}

uint8_t *chip_hbm_at(struct neuron_chip *chip, uint64_t bar4, uint64_t len)
{
	uint64_t stack = bar4 / chip->profile.hbm_stride;
	uint64_t offset = bar4 % chip->profile.hbm_stride;

	if (stack >= chip->profile.hbm_stacks || offset >= chip->profile.hbm_size ||
	    len > chip->profile.hbm_size - offset)
		return NULL;
	return chip->hbm + stack * chip->profile.hbm_size + offset;
}

static void clear_counters(struct chip_core_state *c)
{
	c->wall_busy_ns = 0;
	c->modelled_ticks = 0;
	c->jobs = 0;
	c->insns = 0;
	c->insns_shown = 0;
	c->faults = 0;
	c->pe_macs = 0;
	c->dma_bytes = 0;
	memset(c->engine_ticks, 0, sizeof(c->engine_ticks));
}

void neuron_chip_reset(struct neuron_chip *chip, enum neuron_chip_reset kind)
{
	unsigned int i;

	chip_udma_reset(chip);
	pthread_mutex_lock(&chip->lock);
	chip->stopping = true;
	chip_slots_reset(chip);
	chip_slots_wait(chip);
	chip_slots_power_on(chip);
	chip_cores_reset(chip, (1u << chip->profile.cores) - 1);
	for (i = 0; i < chip->profile.cores; i++) {
		if (kind == NEURON_CHIP_RESET_BUS)
			clear_counters(&chip->core[i]);
	}
	chip->admin_cause = 0;
	chip->admin_mask = 0;
	chip->slot_faults = 0;
	chip_misc_reset(chip, kind == NEURON_CHIP_RESET_BUS);
	chip->stopping = false;
	atomic_store(&chip->dead, kind == NEURON_CHIP_RESET_FLR &&
		     chip_inject_hit(chip, CHIP_INJECT_RESET_HANG, chip_site_reset(RESET_TYPE_FLR)));
	pthread_mutex_unlock(&chip->lock);
	for (i = 0; i < ARRAY_LEN(chip->udma_irq); i++)
		atomic_store(&chip->udma_irq[i], 0);
	chip_ram_clear(&chip->ram);
}

void neuron_chip_bus_master(struct neuron_chip *chip, bool enable)
{
	atomic_store(&chip->bus_master, enable);
}

uint64_t neuron_chip_read(struct neuron_chip *chip, unsigned int bar,
			  uint64_t offset, unsigned int size)
{
	if (!neuron_chip_online(chip))
		return size < 8 ? (1ull << (8 * size)) - 1 : ~0ull;
	if (bar == NEURON_BAR_EXEC && chip->revision != NEURON_PCI_REVISION_QEMU)
		return chip_exec_read(chip, offset, size);
	if (bar == NEURON_BAR_APB || bar == NEURON_BAR_EXEC)
		return chip_bar0_read(chip, offset, size);
	return 0;
}

void neuron_chip_write(struct neuron_chip *chip, unsigned int bar,
		       uint64_t offset, uint64_t value, unsigned int size)
{
	if (!neuron_chip_online(chip))
		return;
	if (bar == NEURON_BAR_EXEC && chip->revision != NEURON_PCI_REVISION_QEMU)
		chip_exec_write(chip, offset, value, size);
	else if (bar == NEURON_BAR_APB || bar == NEURON_BAR_EXEC)
		chip_bar0_write(chip, offset, value, size);
}
