// SPDX-License-Identifier: MIT
/*
 * Messages to the firmware, by both mailboxes: true and false checksums, sizes that
 * lie, buffers at every edge, commands that do not exist, answers to nowhere, resets
 * in between.
 */
#include <string.h>

#include "guest.h"

#define MAX_MESSAGES	32
#define REQUEST		GUEST_DATA
#define RESPONSE	(GUEST_DATA + 0x8000u)

/* CRC-32C, reflected, as the public driver computes it (neuron_fw_io.c). */
static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0u;
	int i;

	while (n--) {
		crc ^= *p++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static uint64_t address(struct fuzz_input *in, uint32_t normal)
{
	switch (fuzz_below(in, 8)) {
	case 0:
		return guest_arch->host_bit | (GUEST_BYTES - fuzz_take(in, 1));
	case 1:
		return guest_hbm_dpa(fuzz_below(in, 4)) + fuzz_take(in, 2);
	case 2:
		return fuzz_number(in);
	default:
		return guest_arch->host_bit | normal;
	}
}

/* u8 sequence, u8 command, u16 size with the header, u32 crc32c, then data. */
static uint32_t message(struct fuzz_input *in, uint8_t *m)
{
	uint32_t data = fuzz_below(in, 2) ? 8 * fuzz_below(in, 128) : (uint32_t)fuzz_take(in, 1);
	uint32_t size = 8 + data, crc, i;
	uint64_t v;

	m[0] = (uint8_t)fuzz_take(in, 1);
	m[1] = (uint8_t)(fuzz_below(in, 8) ? 1 + fuzz_below(in, 3) : fuzz_take(in, 1));
	if (!fuzz_below(in, 6))
		size = (uint32_t)fuzz_take(in, 2);
	memcpy(m + 2, &(uint16_t){ (uint16_t)size }, 2);
	memset(m + 4, 0, 4);
	for (i = 0; i < data; i += 8) {
		v = fuzz_below(in, 4) ? (fuzz_below(in, 2) ? 0x8006c84000ull : 0xffff0fa0000ull) + 4 * fuzz_take(in, 1) :
					fuzz_number(in);
		memcpy(m + 8 + i, &v, 8);
	}
	crc = fuzz_below(in, 8) ? crc32c(m, size < 0x4000 ? size : 8) : (uint32_t)fuzz_take(in, 4);
	memcpy(m + 4, &crc, 4);
	return size;
}

static void by_memory(struct fuzz_input *in)
{
	uint64_t to = address(in, REQUEST), back = address(in, RESPONSE);

	message(in, guest_mem + REQUEST);
	guest_write(guest_arch->misc + NEURON_MISC_REQ_LO, (uint32_t)to);
	guest_write(guest_arch->misc + NEURON_MISC_REQ_HI, (uint32_t)(to >> 32));
	guest_write(guest_arch->misc + NEURON_MISC_RESP_LO, (uint32_t)back);
	guest_write(guest_arch->misc + NEURON_MISC_RESP_HI, (uint32_t)(back >> 32));
	guest_write(guest_arch->misc + NEURON_MISC_TRIGGER, 1);
}

/* The newer one: header, checksum and data in the misc RAM itself. */
static void by_registers(struct fuzz_input *in)
{
	static uint8_t m[0x4000];
	uint32_t i, word;

	memset(m, 0, sizeof(m));
	message(in, m);
	for (i = 0; i < NEURON_MISC_METRIC_SIZE; i += 4) {
		memcpy(&word, m + 8 + i, 4);
		guest_write(guest_arch->misc + NEURON_MISC_METRIC + i, word);
	}
	memcpy(&word, m, 4);
	guest_write(guest_arch->misc + NEURON_MISC_REQ_HI, word);
	memcpy(&word, m + 4, 4);
	guest_write(guest_arch->misc + NEURON_MISC_REQ_LO, word);
	guest_write(guest_arch->misc + NEURON_MISC_RESP_HI, fuzz_below(in, 8) ? 0 : (uint32_t)fuzz_take(in, 4));
	guest_write(guest_arch->misc + NEURON_MISC_RESP_LO, 0);
	guest_write(guest_arch->misc + NEURON_MISC_MAIL_ACK, 1);
	guest_write(guest_arch->misc + NEURON_MISC_TRIGGER, 1);
}

static void other(struct fuzz_input *in)
{
	switch (fuzz_below(in, 4)) {
	case 0:
		guest_write(guest_arch->misc + NEURON_MISC_TPB_RESET_MAP, (uint32_t)fuzz_number(in));
		guest_write(guest_arch->misc + NEURON_MISC_RESET, fuzz_below(in, 4));
		guest_write(guest_arch->misc + NEURON_MISC_TRIGGER, 1);
		break;
	case 1:
		guest_read(guest_arch->misc + 4 * fuzz_below(in, 1024));
		break;
	case 2:
		neuron_chip_bus_master(guest_chip, fuzz_below(in, 4));
		break;
	default:
		guest_write(guest_arch->misc + 4 * fuzz_below(in, 1024), (uint32_t)fuzz_number(in));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ops[])(struct fuzz_input *) = { by_memory, by_memory, by_registers, other };
	struct fuzz_input in = { data, data + size };
	unsigned int i;

	guest_open(&in);
	for (i = 0; i < MAX_MESSAGES && in.p < in.end; i++)
		ops[fuzz_below(&in, 4)](&in);
	guest_check();
	return 0;
}
