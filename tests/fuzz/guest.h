/* SPDX-License-Identifier: MIT */
/*
 * The guest of the targets that fuzz the chip: its memory, the chip of one of the
 * generations, the registers that all targets use, and the check that the chip
 * still works after whatever was done to it.
 */
#ifndef TESTS_FUZZ_GUEST_H
#define TESTS_FUZZ_GUEST_H

#include "fuzz.h"
#include "neuron/regs.h"
#include "neuron_chip.h"

#define GUEST_BYTES	(1u << 20)
#define GUEST_TABLES	0x10000u	/* page tables */
#define GUEST_RINGS	0x40000u	/* UDMA rings, then slots' rings */
#define GUEST_DATA	0x80000u
#define GUEST_PROBE	0xf0000u	/* the last 64 KiB are guest_check()'s */

struct guest_arch {
	const char *name;
	unsigned int v3;		/* register layout of Trn2 and Trn3 */
	unsigned int cores, stacks;
	uint64_t misc, host_bit, stack_size;
};

extern const struct guest_arch *guest_arch;
extern struct neuron_chip *guest_chip;
extern uint8_t *guest_mem;

/* The chip that the first byte names, as a bus reset leaves it. */
void guest_open(struct fuzz_input *in);

/* Resets the chip and copies; a chip that cannot aborts the program. */
void guest_check(void);

void guest_write(uint64_t offset, uint32_t value);		/* BAR0 */
uint32_t guest_read(uint64_t offset);
void guest_exec_write(uint64_t offset, uint32_t value);		/* BAR2 */
uint32_t guest_exec_read(uint64_t offset);

uint64_t guest_engine(struct fuzz_input *in);			/* BAR0 offset */
uint64_t guest_h2t(unsigned int n);
uint64_t guest_tpb(unsigned int n);
uint64_t guest_hbm_dpa(unsigned int stack);
uint64_t guest_tpb_dpa(unsigned int n);

/* One side of a queue, as the public driver sets it up. */
void guest_queue(uint64_t engine, unsigned int queue, uint32_t tx, uint32_t rx, uint32_t len);
void guest_doorbell(uint64_t engine, unsigned int queue, uint32_t tx, uint32_t rx);

#endif
