/* SPDX-License-Identifier: MIT */
/*
 * The chip model: one Trainium-class chip as a plain C11 library. It knows no
 * emulator: QEMU's device (model/qemu), libnrt's in-process back-end and the
 * fuzzers drive it through this header, with register accesses and memory, as
 * software drives the chip.
 *
 * Threads: every function may be called from any thread. After fork() the child may
 * make chips of its own, but not use those that the parent made. The chip never calls
 * back with one of its locks held that a call into the chip would take, except
 * that dma_read, dma_write and irq may be called from within neuron_chip_write().
 */
#ifndef NEURON_CHIP_H
#define NEURON_CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct neuron_chip;

#define NEURON_CHIP_MAX_ROUTING_ID	144	/* routing ids are below it */
#define NEURON_CHIP_LINKS		4

/* What only the PCI shell can show. */
enum neuron_chip_pci {
	NEURON_CHIP_PCI_PRESENCE,	/* value 0: the chip was pulled out; 1: plugged in */
	NEURON_CHIP_PCI_FLR,		/* the function resets itself: do what FLR does */
	NEURON_CHIP_PCI_AER,		/* value: bit 32: correctable; below: the status bit */
};

enum neuron_chip_log {
	NEURON_CHIP_LOG_ERROR,	/* the model or its host failed */
	NEURON_CHIP_LOG_GUEST,	/* software did something the chip does not allow */
	NEURON_CHIP_LOG_DEBUG,
};

/**
 * struct neuron_chip_host - what the chip needs from whoever hosts it
 * @dma_read: copy @len bytes from host memory at bus address @addr to @buf. 0, or
 *	non-zero when any byte is unreachable
 * @dma_write: the other direction
 * @irq: raise MSI-X vector @vector once (edge). May be NULL
 * @log: one line without newline. May be NULL
 * @pci: called from neuron_chip_inject() and neuron_chip_clear() on the thread that
 *	called them. 0, or non-zero when the host cannot. May be NULL
 * @wait: the calling thread begins or ends to wait inside of the chip for a thread of
 *	the chip that may be in dma_read or dma_write. A host that takes a lock in those
 *	gives it up here, if the calling thread holds it. May be NULL
 *
 * Callbacks may run on any thread, several at once.
 */
struct neuron_chip_host {
	int (*dma_read)(void *opaque, uint64_t addr, void *buf, size_t len);
	int (*dma_write)(void *opaque, uint64_t addr, const void *buf, size_t len);
	void (*irq)(void *opaque, unsigned int vector);
	void (*log)(void *opaque, enum neuron_chip_log level, const char *line);
	int (*pci)(void *opaque, enum neuron_chip_pci event, uint64_t value);
	void (*wait)(void *opaque, bool begin);
};

/**
 * struct neuron_chip_config - which chip to make
 * @arch: "trn1", "inf2", "trn2" or "trn3"
 * @revision: PCI revision; 0xff has no execution block and other reset registers
 * @routing_id: 0 to 143, place in the instance
 * @serial: serial number; 0: made from the routing id
 * @hbm: memory for all HBM stacks, hbm_stacks x hbm_stack_size bytes of struct
 *	neuron_chip_info, in BAR4 order (live bytes only, stack after stack without
 *	holes); NULL: the chip maps its own, without reserving host memory
 * @vectors: MSI-X vectors, 1 to 9; 0: 9
 * @inline_exec: run a job on the thread that writes the doorbell when its cores are
 *	free (in-process use); else on the process's pool of worker threads
 * @reset_us: microseconds a firmware reset takes; 0: 1000
 * @api_version: of firmware, 3 to 7; 0: 3. From 6 on there is the newer mailbox, too
 * @reset_clears_udma: a firmware device reset forgets the UDMA rings, too (what hardware
 *	does is not public; AWS's driver needs false after its sysfs reset)
 * @server_info: misc RAM 070: bit 15: valid, below: id of the server
 */
struct neuron_chip_config {
	const char *arch;
	uint8_t revision;
	unsigned int routing_id;
	uint64_t serial;
	void *hbm;
	unsigned int vectors;
	bool inline_exec;
	unsigned int reset_us;
	unsigned int api_version;
	unsigned int server_info;
	bool reset_clears_udma;
};

/**
 * struct neuron_chip_info - facts of a generation, for the PCI shell
 * @device_id: PCI device id
 * @bar_size: bytes of BAR 0, 2 and 4 (index 0, 2, 4); 0: no such BAR
 * @cores: physical NeuronCores
 * @hbm_stacks: number of stacks
 * @hbm_stack_size: live bytes of a stack
 * @hbm_stack_stride: distance of stacks in BAR4
 */
struct neuron_chip_info {
	uint16_t device_id;
	uint64_t bar_size[6];
	unsigned int cores;
	unsigned int hbm_stacks;
	uint64_t hbm_stack_size;
	uint64_t hbm_stack_stride;
};

/**
 * neuron_chip_info() - facts of a generation
 * @arch: name as in struct neuron_chip_config
 * @revision: PCI revision
 * @info: filled
 *
 * Return: 0, or -EINVAL for an unknown name.
 */
int neuron_chip_info(const char *arch, uint8_t revision, struct neuron_chip_info *info);

/**
 * neuron_chip_new() - power a chip on
 * @config: copied
 * @host: copied
 * @opaque: first argument of the callbacks
 * @error: set to a static or thread-local text when it fails; may be NULL
 *
 * Return: the chip, or NULL.
 */
struct neuron_chip *neuron_chip_new(const struct neuron_chip_config *config,
				    const struct neuron_chip_host *host,
				    void *opaque, const char **error);

/**
 * neuron_chip_free() - power it off; ends jobs, joins what runs for it
 * @chip: NULL is allowed
 */
void neuron_chip_free(struct neuron_chip *chip);

/**
 * neuron_chip_read() - register read
 * @chip: chip
 * @bar: 0 or 2
 * @offset: any; unknown registers read 0
 * @size: 1, 2, 4 or 8
 */
uint64_t neuron_chip_read(struct neuron_chip *chip, unsigned int bar,
			  uint64_t offset, unsigned int size);

/**
 * neuron_chip_write() - register write
 *
 * UDMA of up to 64 KiB and, with inline_exec, whole jobs run before it returns.
 */
void neuron_chip_write(struct neuron_chip *chip, unsigned int bar,
		       uint64_t offset, uint64_t value, unsigned int size);

/**
 * neuron_chip_hbm() - host pointer to an HBM stack, for mapping BAR4
 * @chip: chip
 * @stack: 0 to hbm_stacks - 1
 *
 * Return: hbm_stack_size bytes, valid until neuron_chip_free().
 */
void *neuron_chip_hbm(struct neuron_chip *chip, unsigned int stack);

enum neuron_chip_reset {
	NEURON_CHIP_RESET_BUS,	/* power-on values; HBM keeps its bytes */
	NEURON_CHIP_RESET_FLR,	/* function level reset */
};

/**
 * neuron_chip_reset() - reset from the PCI side
 *
 * Documentation/hardware/reset.rst has the table of what survives. Returns when no
 * job and no DMA of the chip runs any more.
 */
void neuron_chip_reset(struct neuron_chip *chip, enum neuron_chip_reset kind);

/**
 * neuron_chip_bus_master() - PCI command register's bus master bit
 * @chip: chip
 * @enable: false: DMA to host memory fails and no interrupt is raised
 */
void neuron_chip_bus_master(struct neuron_chip *chip, bool enable);

/**
 * neuron_chip_online() - does the chip answer on its bus?
 * @chip: chip
 *
 * Return: false while it is pulled out, or does not come back from a reset (faults
 * surprise-removal and reset-hang). Then registers read all ones and writes are lost;
 * config space and BAR4 are the host's to treat likewise.
 */
bool neuron_chip_online(struct neuron_chip *chip);

/**
 * neuron_chip_inject() - have a fault
 * @chip: chip
 * @spec: "name,parameter=value,...", blanks are as good as commas; several joined by
 *	semicolons, done in order. Names and parameters are in uapi/neuron/inject.def and
 *	Documentation/hardware/faults.rst
 * @error: what is wrong and what is allowed, when it fails; may be NULL
 * @size: bytes at @error
 *
 * Some faults happen before it returns, others stay armed until they have struck as
 * often as asked for, or are cleared. No reset clears them. May wait for running
 * jobs to end (surprise-removal, flr), so not for use inside a callback.
 *
 * Return: number of the (last) armed fault, 0 when it has happened, -EINVAL,
 * -ENOSPC (64 are armed), -EOPNOTSUPP (this host cannot show it).
 */
int neuron_chip_inject(struct neuron_chip *chip, const char *spec, char *error, size_t size);

/**
 * neuron_chip_clear() - take a fault back
 * @chip: chip
 * @id: from neuron_chip_inject(); 0: all
 *
 * Also ends what it has left behind: a stuck job or queue goes on, a hung reset
 * completes, a chip that was pulled out is plugged in. Counters and causes stay.
 *
 * Return: 0, or -ENOENT.
 */
int neuron_chip_clear(struct neuron_chip *chip, unsigned int id);

/**
 * neuron_chip_injected() - list of faults, one a line
 * @chip: chip
 * @text: "number name,parameter=value,... hits=n", and "spent" when it will not strike
 *	again; always terminated, unless @size is 0
 * @size: bytes at @text
 *
 * Return: length of the whole list, without the terminator.
 */
size_t neuron_chip_injected(struct neuron_chip *chip, char *text, size_t size);

/**
 * neuron_chip_neighbour() - who is at the other end of a link
 * @arch: name as in struct neuron_chip_config
 * @routing_id: of the chip
 * @link: 0 to NEURON_CHIP_LINKS - 1
 *
 * In servers as AWS sells them: a 4 x 4 torus of trn1 and trn2 (links up, left, down,
 * right), a ring of 12 inf2 (previous, next), groups of four trn3 (link n: member n).
 *
 * Return: routing id, -1: nobody, -EINVAL.
 */
int neuron_chip_neighbour(const char *arch, unsigned int routing_id, unsigned int link);

/**
 * neuron_chip_connect() - plug in the links of two chips of one process
 * @a: chip
 * @b: chip of the same generation
 *
 * Connects the links that lead from one to the other by their routing ids. They stay
 * until one of them is freed.
 *
 * Return: number of links, -ENOTCONN (no neighbours), -EEXIST (another chip with that
 * routing id is connected), -EINVAL (same chip, or different generations).
 */
int neuron_chip_connect(struct neuron_chip *a, struct neuron_chip *b);

/**
 * neuron_chip_disconnect() - pull all link cables of a chip
 * @chip: chip
 *
 * Returns when no chip touches its memory any more. neuron_chip_free() does it, too.
 */
void neuron_chip_disconnect(struct neuron_chip *chip);

/**
 * struct neuron_chip_link - state of a link
 * @neighbour: routing id of the chip that belongs there; -1: nobody
 * @connected: it is
 * @bytes: moved from here through the link's window, both directions
 * @transfers: number of transfers
 * @modelled_ns: modelled time that they took on the link
 */
struct neuron_chip_link {
	int neighbour;
	bool connected;
	uint64_t bytes;
	uint64_t transfers;
	uint64_t modelled_ns;
};

/**
 * neuron_chip_link_info() - state of a link
 *
 * Return: 0, or -EINVAL.
 */
int neuron_chip_link_info(struct neuron_chip *chip, unsigned int link, struct neuron_chip_link *info);

/**
 * neuron_chip_idle() - wait until no job runs, no UDMA is pending and the interrupts
 *	of what ended have been raised
 */
void neuron_chip_idle(struct neuron_chip *chip);

#endif /* NEURON_CHIP_H */
