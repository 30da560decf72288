// SPDX-License-Identifier: MIT
/*
 * Firmware: misc RAM with the reset handshake and the legacy mailbox
 * (neuron_fw_io.h, neuron_fw_io.c, neuron_reset.c of AWS's public driver).
 */
#include <string.h>

#include "chip.h"

#define API_VERSION	3	/* 7 and more would promise the second mailbox */
#define POWER_PERIOD	50000000ull	/* ns; the sample counter must move */

/* Mailbox messages (neuron_fw_io.c). */
enum {
	CMD_READ = 1,
	CMD_POST = 2,
};

enum {
	ERR_OK = 0,
	ERR_FAIL = 1,
	ERR_UNKNOWN = 2,
};

#define MAX_READS	100
#define MAX_POST	128
#define REQ_HEADER	8
#define RESP_HEADER	4

struct mail {
	uint64_t req, resp;
	uint8_t in[REQ_HEADER + 8 * MAX_READS];
	uint8_t out[RESP_HEADER + 4 * MAX_READS];
};

uint32_t chip_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;
	int k;

	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (k = 0; k < 8; k++)
			crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

void chip_misc_reset(struct neuron_chip *chip)
{
	memset(chip->misc, 0, sizeof(chip->misc));
	chip->misc[NEURON_MISC_API_VERSION / 4] = API_VERSION;
	chip->misc[NEURON_MISC_ROUTING_ID / 4] = (uint32_t)chip->routing_id;
	chip->misc[NEURON_MISC_SERIAL_LO / 4] = (uint32_t)chip->serial;
	chip->misc[NEURON_MISC_SERIAL_HI / 4] = (uint32_t)(chip->serial >> 32);
	chip->fw_reset_type = 0;
	chip->fw_reset_end = 0;
	chip->qemu_reset_map = 0;
	chip->qemu_reset_busy = false;
}

/* Lock held. The work is done at the trigger; this is the time firmware takes. */
static bool reset_busy(struct neuron_chip *chip)
{
	return (chip->fw_reset_type || chip->qemu_reset_busy) &&
	       (chip->core_reset_pending || chip_now() < chip->fw_reset_end);
}

static void finish_reset(struct neuron_chip *chip)
{
	if (reset_busy(chip))
		return;
	if (chip->fw_reset_type)
		chip->misc[NEURON_MISC_RESET / 4] = 0;
	chip->fw_reset_type = 0;
	chip->qemu_reset_busy = false;
	chip->qemu_reset_map = 0;
}

static uint32_t power(struct neuron_chip *chip)
{
	unsigned int i, running = 0;

	for (i = 0; i < chip->profile.cores; i++)
		running += chip->core[i].slot >= 0;
	return (uint32_t)(chip_now() / POWER_PERIOD) << 16 | 10000 * running / chip->profile.cores;
}

uint32_t chip_misc_read(struct neuron_chip *chip, uint32_t offset)
{
	uint32_t value;

	pthread_mutex_lock(&chip->lock);
	finish_reset(chip);
	switch (offset) {
	case NEURON_MISC_STATUS:
		value = chip->misc[offset / 4] & ~NEURON_MISC_STATUS_BUSY;
		if (reset_busy(chip))
			value |= NEURON_MISC_STATUS_BUSY;
		break;
	case NEURON_MISC_POWER(0):
	case NEURON_MISC_POWER(1):
		value = power(chip);
		break;
	case NEURON_MISC_TRIGGER:
		value = 0;
		break;
	default:
		value = chip->misc[offset / 4];
	}
	pthread_mutex_unlock(&chip->lock);
	return value;
}

/* Lock held; returns what chip_udma_clear_abort() shall clear once it is dropped. */
static uint32_t start_reset(struct neuron_chip *chip, bool device, uint32_t map)
{
	uint32_t all = (1u << chip->profile.cores) - 1;

	chip->fw_reset_end = chip_now() + chip->reset_ns;
	if (device) {
		chip_slots_reset(chip);
		chip->admin_cause = 0;
		chip->admin_mask = 0;
		chip->slot_faults = 0;
		chip_cores_reset(chip, all);
		return ~0u;
	}
	chip_cores_reset(chip, map & all);
	/* V2 has no DMA groups in the map; there each core owns its 16 engines. */
	return chip->profile.nc_version == 2 ? map & all : (map >> 8) & 0xff;
}

/* --- mailbox ------------------------------------------------------------------- */

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static uint32_t peek(struct neuron_chip *chip, uint64_t dpa)
{
	struct chip_place place = chip_resolve(chip, dpa & ~3ull, 4);
	uint32_t value = 0;

	if (place.target == CHIP_TARGET_REG)
		return chip_bar0_read32(chip, place.addr);
	if (place.target == CHIP_TARGET_HOST || !chip_place_read(chip, &place, &value, 4)) {
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: READ of 0x%llx: no register there",
			 (unsigned long long)dpa);
		return 0;
	}
	return le32toh(value);
}

static uint8_t command(struct neuron_chip *chip, struct mail *m, uint16_t size, uint16_t *out)
{
	unsigned int i, n;
	uint32_t v;

	switch (m->in[1]) {
	case CMD_READ:
		n = (size - REQ_HEADER) / 8;
		if (n > MAX_READS || (size - REQ_HEADER) % 8)
			return ERR_FAIL;
		for (i = 0; i < n; i++) {
			v = htole32(peek(chip, get64(m->in + REQ_HEADER + 8 * i)));
			memcpy(m->out + RESP_HEADER + 4 * i, &v, 4);
		}
		*out = (uint16_t)(RESP_HEADER + 4 * n);
		return ERR_OK;
	case CMD_POST:
		return size - REQ_HEADER > MAX_POST ? ERR_FAIL : ERR_OK;
	default:
		return ERR_UNKNOWN;
	}
}

static bool fetch(struct neuron_chip *chip, struct mail *m, uint16_t *size)
{
	struct chip_place place = chip_resolve(chip, m->req, REQ_HEADER);

	if (!chip_place_read(chip, &place, m->in, REQ_HEADER))
		return false;
	*size = get16(m->in + 2);
	if (*size < REQ_HEADER || *size > sizeof(m->in))
		*size = REQ_HEADER;	/* the checksum will not match */
	place = chip_resolve(chip, m->req, *size);
	return chip_place_read(chip, &place, m->in, *size);
}

static bool checksum_ok(struct mail *m, uint16_t size)
{
	static const uint8_t zero[4];
	uint32_t crc = chip_crc32c(0, m->in, 4);

	crc = chip_crc32c(crc, zero, 4);
	return chip_crc32c(crc, m->in + REQ_HEADER, size - REQ_HEADER) == get32(m->in + 4);
}

/* The host polls only the first byte: it goes last. */
static bool respond(struct neuron_chip *chip, struct mail *m, uint16_t size)
{
	struct chip_place place = chip_resolve(chip, m->resp + 1, size - 1);

	if (!chip_place_write(chip, &place, m->out + 1, size - 1))
		return false;
	atomic_thread_fence(memory_order_release);
	place = chip_resolve(chip, m->resp, 1);
	return chip_place_write(chip, &place, m->out, 1);
}

static void mailbox(struct neuron_chip *chip, uint64_t req, uint64_t resp)
{
	struct mail m = { .req = req, .resp = resp };
	uint16_t size, out = RESP_HEADER;

	if (!fetch(chip, &m, &size)) {
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: request at 0x%llx is unreachable",
			 (unsigned long long)req);
		return;
	}
	m.out[0] = m.in[0];
	m.out[1] = checksum_ok(&m, size) ? command(chip, &m, size, &out) : ERR_FAIL;
	if (m.out[1])
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: command %u of %u bytes failed (%u)",
			 m.in[1], size, m.out[1]);
	m.out[2] = (uint8_t)out;
	m.out[3] = (uint8_t)(out >> 8);
	if (!respond(chip, &m, out))
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: response at 0x%llx is unreachable",
			 (unsigned long long)resp);
}

static uint64_t base(struct neuron_chip *chip, uint32_t hi, uint32_t lo)
{
	return (uint64_t)chip->misc[hi / 4] << 32 | chip->misc[lo / 4];
}

/* Reset and mailbox share the trigger; a reset type that is set decides. */
static void trigger(struct neuron_chip *chip)
{
	uint32_t type, clear = 0;
	uint64_t req, resp;

	pthread_mutex_lock(&chip->lock);
	finish_reset(chip);
	type = chip->misc[NEURON_MISC_RESET / 4];
	req = base(chip, NEURON_MISC_REQ_HI, NEURON_MISC_REQ_LO);
	resp = base(chip, NEURON_MISC_RESP_HI, NEURON_MISC_RESP_LO);
	if (type == NEURON_MISC_RESET_DEVICE || type == NEURON_MISC_RESET_TPB) {
		chip->fw_reset_type = type;
		clear = start_reset(chip, type == NEURON_MISC_RESET_DEVICE,
				    chip->misc[NEURON_MISC_TPB_RESET_MAP / 4]);
		chip_schedule(chip, -1);
	}
	pthread_mutex_unlock(&chip->lock);
	if (clear)
		chip_udma_clear_abort(chip, clear);
	if (!type)
		mailbox(chip, req, resp);
	else if (type > NEURON_MISC_RESET_TPB)
		chip_log(chip, NEURON_CHIP_LOG_GUEST,
			 "misc RAM: reset type %u: must be 1 (device) or 2 (TPB)", type);
}

void chip_misc_write(struct neuron_chip *chip, uint32_t offset, uint32_t value)
{
	if (offset == NEURON_MISC_TRIGGER) {
		if (value)
			trigger(chip);
		return;
	}
	pthread_mutex_lock(&chip->lock);
	if (offset == NEURON_MISC_RESET)
		chip->fw_reset_type = 0;
	chip->misc[offset / 4] = value;
	pthread_mutex_unlock(&chip->lock);
}

uint32_t chip_qemu_reset_read(struct neuron_chip *chip)
{
	uint32_t value;

	pthread_mutex_lock(&chip->lock);
	finish_reset(chip);
	value = chip->qemu_reset_map;
	pthread_mutex_unlock(&chip->lock);
	return value;
}

/* V3: the TPB map, 0 for the whole device. V2: any value, the device. */
void chip_qemu_reset_write(struct neuron_chip *chip, uint32_t value)
{
	bool device = !value || chip->profile.nc_version == 2;
	uint32_t clear;

	pthread_mutex_lock(&chip->lock);
	chip->qemu_reset_map = value;
	chip->qemu_reset_busy = true;
	clear = start_reset(chip, device, value);
	chip_schedule(chip, -1);
	pthread_mutex_unlock(&chip->lock);
	chip_udma_clear_abort(chip, clear);
}
