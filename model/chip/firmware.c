// SPDX-License-Identifier: MIT
/*
 * Firmware's mailboxes (neuron_fw_io.c of AWS's public driver). Both start with the
 * trigger in misc RAM. The legacy one has its messages in memory and is told where;
 * the newer one, from API version 6 on, has them in misc RAM, and response address 0.
 */
#include <string.h>

#include "chip.h"

#define NEW_MAILBOX_API	6

enum {
	CMD_READ = 1,
	CMD_POST = 2,
	CMD_POWER_PROFILE = 3,	/* newer mailbox only */
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

/**
 * struct mail - a request and its response, as bytes
 * @in: header (sequence, command, size with header, crc32c) and data
 * @out: header (sequence, error, size with header) and data
 * @size: of @in
 * @out_size: of @out
 * @registers: the newer mailbox
 */
struct mail {
	uint64_t req, resp;
	bool registers;
	uint16_t size, out_size;
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

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, 4);
}

/* --- commands -------------------------------------------------------------------- */

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

static uint8_t read_registers(struct neuron_chip *chip, struct mail *m)
{
	unsigned int len = m->size - REQ_HEADER, n = len / 8, i;

	/* The newer mailbox has room for as many addresses as fit into its 128 bytes. */
	if (n > MAX_READS || len % 8)
		return ERR_FAIL;
	for (i = 0; i < n; i++)
		put32(m->out + RESP_HEADER + 4 * i, peek(chip, get64(m->in + REQ_HEADER + 8 * i)));
	m->out_size = (uint16_t)(RESP_HEADER + 4 * n);
	return ERR_OK;
}

static uint8_t command(struct neuron_chip *chip, struct mail *m)
{
	switch (m->in[1]) {
	case CMD_READ:
		return read_registers(chip, m);
	case CMD_POST:
		return m->size - REQ_HEADER > MAX_POST ? ERR_FAIL : ERR_OK;
	case CMD_POWER_PROFILE:
		if (!m->registers)
			return ERR_UNKNOWN;
		return m->size > REQ_HEADER ? ERR_OK : ERR_FAIL;
	default:
		return ERR_UNKNOWN;
	}
}

static bool checksum_ok(const struct mail *m)
{
	static const uint8_t zero[4];
	uint32_t crc = chip_crc32c(0, m->in, 4);

	crc = chip_crc32c(crc, zero, 4);
	return chip_crc32c(crc, m->in + REQ_HEADER, m->size - REQ_HEADER) == get32(m->in + 4);
}

static void answer(struct neuron_chip *chip, struct mail *m)
{
	m->out_size = RESP_HEADER;
	m->out[0] = m->in[0];
	m->out[1] = checksum_ok(m) ? command(chip, m) : ERR_FAIL;
	if (m->out[1])
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: command %u of %u bytes failed (%u)",
			 m->in[1], m->size, m->out[1]);
	m->out[2] = (uint8_t)m->out_size;
	m->out[3] = (uint8_t)(m->out_size >> 8);
}

/* --- legacy ------------------------------------------------------------------------ */

static bool fetch(struct neuron_chip *chip, struct mail *m)
{
	struct chip_place place = chip_resolve(chip, m->req, REQ_HEADER);

	if (!chip_place_read(chip, &place, m->in, REQ_HEADER))
		return false;
	m->size = get16(m->in + 2);
	if (m->size < REQ_HEADER || m->size > sizeof(m->in))
		m->size = REQ_HEADER;	/* the checksum will not match */
	place = chip_resolve(chip, m->req, m->size);
	return chip_place_read(chip, &place, m->in, m->size);
}

/* The host polls only the first byte: it goes last. */
static bool respond(struct neuron_chip *chip, const struct mail *m)
{
	struct chip_place place = chip_resolve(chip, m->resp + 1, m->out_size - 1u);

	if (!chip_place_write(chip, &place, m->out + 1, m->out_size - 1u))
		return false;
	atomic_thread_fence(memory_order_release);
	place = chip_resolve(chip, m->resp, 1);
	return chip_place_write(chip, &place, m->out, 1);
}

static void legacy(struct neuron_chip *chip, struct mail *m)
{
	if (!fetch(chip, m)) {
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: request at 0x%llx is unreachable",
			 (unsigned long long)m->req);
		return;
	}
	answer(chip, m);
	if (!respond(chip, m))
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: response at 0x%llx is unreachable",
			 (unsigned long long)m->resp);
}

/* --- newer ------------------------------------------------------------------------- */

static void take_registers(struct neuron_chip *chip, struct mail *m)
{
	unsigned int i;

	pthread_mutex_lock(&chip->lock);
	put32(m->in, chip->misc[NEURON_MISC_REQ_HI / 4]);
	put32(m->in + 4, chip->misc[NEURON_MISC_REQ_LO / 4]);
	for (i = 0; i < NEURON_MISC_METRIC_SIZE / 4; i++)
		put32(m->in + REQ_HEADER + 4 * i, chip->misc[NEURON_MISC_METRIC / 4 + i]);
	pthread_mutex_unlock(&chip->lock);
	m->size = get16(m->in + 2);
	if (m->size < REQ_HEADER || m->size > REQ_HEADER + NEURON_MISC_METRIC_SIZE)
		m->size = REQ_HEADER;
}

static void give_registers(struct neuron_chip *chip, const struct mail *m)
{
	unsigned int i;

	pthread_mutex_lock(&chip->lock);
	for (i = RESP_HEADER; i < m->out_size; i += 4)
		chip->misc[(NEURON_MISC_METRIC + i - RESP_HEADER) / 4] = get32(m->out + i);
	chip->misc[NEURON_MISC_REQ_HI / 4] = get32(m->out);
	chip->misc[NEURON_MISC_MAIL_ACK / 4] = 0;
	chip->mailbox_busy = false;
	pthread_mutex_unlock(&chip->lock);
}

/* Returns whether the message is in misc RAM; the trigger then reads 1 until done. */
static bool begin(struct neuron_chip *chip, struct mail *m)
{
	const uint32_t *misc = chip->misc;

	pthread_mutex_lock(&chip->lock);
	m->req = (uint64_t)misc[NEURON_MISC_REQ_HI / 4] << 32 | misc[NEURON_MISC_REQ_LO / 4];
	m->resp = (uint64_t)misc[NEURON_MISC_RESP_HI / 4] << 32 | misc[NEURON_MISC_RESP_LO / 4];
	m->registers = chip->api_version >= NEW_MAILBOX_API && !m->resp;
	chip->mailbox_busy = m->registers;
	pthread_mutex_unlock(&chip->lock);
	return m->registers;
}

void chip_mailbox(struct neuron_chip *chip)
{
	struct mail m = { .size = 0 };
	bool registers = begin(chip, &m);

	if (chip_inject_hit(chip, CHIP_INJECT_MAILBOX_TIMEOUT, chip_site_none())) {
		chip_log(chip, NEURON_CHIP_LOG_GUEST, "mailbox: request is not answered (injected)");
		return;
	}
	if (!registers) {
		legacy(chip, &m);
		return;
	}
	take_registers(chip, &m);
	answer(chip, &m);
	give_registers(chip, &m);
}
