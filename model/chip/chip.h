/* SPDX-License-Identifier: MIT */
/*
 * Inside of the chip model above the seam (exec.h). Nothing here is for users
 * of the library.
 *
 * Locks, outermost first: chip->lock (execution block, slots, misc RAM), an
 * engine's lock (UDMA registers), core lock (register access to on-chip
 * memory), sparse RAM, pool, faults. None of them is held while a callback of
 * struct neuron_chip_host runs: a callback may wait for a lock whose holder
 * waits for us (QEMU's big lock).
 */
#ifndef NEURON_CHIP_INTERNAL_H
#define NEURON_CHIP_INTERNAL_H

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec.h"
#include "inject.h"
#include "neuron_chip.h"
#include "neuron/regs.h"

#define CHIP_MAX_STACKS		4
#define CHIP_MAX_ENGINES	132
#define CHIP_UDMA_GROUPS	8
#define CHIP_WINDOWS		40
#define CHIP_FABRIC_MAX		16
#define CHIP_MAX_LINKS		4
#define CHIP_RING_ORDER_MAX	12
#define CHIP_TPB_WINDOW		0x4000000ull
#define CHIP_SBUF_APERTURE	0x2000000ull
#define CHIP_INLINE_BYTES	65536u		/* UDMA work done inside a doorbell write */

#define ARRAY_LEN(a)		(sizeof(a) / sizeof((a)[0]))

struct chip_pool_work {
	void (*fn)(struct chip_pool_work *work);
	struct chip_pool_work *next;
};

#define chip_container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* --- profile.c: what differs between generations ------------------------------ */

enum chip_fabric_shape {
	CHIP_FABRIC_TORUS,	/* 4 x 4 */
	CHIP_FABRIC_RING,
	CHIP_FABRIC_ALL,	/* everybody with everybody */
};

/**
 * struct chip_fabric - links of the chips of a server
 * @shape: who is next to whom, by device number
 * @size: chips that are linked; routing ids n x size and up make a group
 * @user: device number of a routing id in the group, as the public driver counts
 * @rate: bytes per nanosecond of a link, one direction
 * @latency_ns: of a transfer
 */
struct chip_fabric {
	enum chip_fabric_shape shape;
	unsigned int size;
	uint8_t user[CHIP_FABRIC_MAX];
	unsigned int rate;
	unsigned int latency_ns;
};

/**
 * struct chip_profile - one generation at one PCI revision
 * @hbm_size: live bytes of a stack
 * @hbm_stride: distance of two stacks in BAR4
 * @udma: runs of UDMA engines in BAR0
 * @window: BAR0 blocks that DMA and the mailbox reach at a device address
 * @link_dpa: first window of a link; the others follow, 1 << @link_shift apart. 0: none
 * @fabric: where the links lead
 * @reset_dma_shift: in the map of a TPB reset, first bit of the groups of 16 UDMA engines
 * @qemu_reset_any: any value of the revision 0xff register resets the device
 */
struct chip_profile {
	uint64_t link_dpa;
	unsigned int link_shift;
	struct chip_fabric fabric;
	unsigned int reset_dma_shift;
	bool qemu_reset_any;
	const char *name;
	uint16_t device_id;
	unsigned int nc_version;
	unsigned int cores;
	unsigned int hbm_stacks;
	uint64_t hbm_size;
	uint64_t hbm_stride;
	unsigned int sbuf_kib;
	unsigned int host_bit;
	uint64_t bar0_size;
	uint64_t misc_ram;
	uint64_t qemu_reset;
	uint64_t tpb_bar0;
	uint64_t tpb_dpa[NEURON_MAX_CORES];
	uint64_t hbm_dpa[CHIP_MAX_STACKS];
	unsigned int udma_engines;
	unsigned int udma_groups;
	struct chip_udma_group {
		uint64_t base;
		uint64_t stride;
		unsigned int first;
		unsigned int count;
	} udma[CHIP_UDMA_GROUPS];
	unsigned int windows;
	struct chip_window {
		uint64_t bar0;
		uint64_t size;
		uint64_t dpa;
	} window[CHIP_WINDOWS];
};

/* False: no such chip. */
bool chip_profile_get(const char *arch, uint8_t revision, struct chip_profile *profile);

/* --- ram.c: registers that are only memory ------------------------------------- */

struct chip_ram {
	pthread_mutex_t lock;
	struct chip_ram_block **table;
	size_t slots;
	size_t used;
};

void chip_ram_init(struct chip_ram *ram);
void chip_ram_clear(struct chip_ram *ram);
void chip_ram_free(struct chip_ram *ram);
uint32_t chip_ram_read(struct chip_ram *ram, uint64_t offset);
/* False: the limit on written registers is reached and the value is lost. */
bool chip_ram_write(struct chip_ram *ram, uint64_t offset, uint32_t value);

/* --- pool.c: the process's worker threads -------------------------------------- */

enum chip_pool_class {
	CHIP_POOL_JOB,		/* may run for minutes */
	CHIP_POOL_UDMA,		/* milliseconds */
	CHIP_POOL_CLASSES
};

void chip_pool_get(void);
void chip_pool_put(void);
/* Runs @work on a pool thread, or on this one when no thread can be made. */
void chip_pool_submit(enum chip_pool_class cls, struct chip_pool_work *work);

/* --- vm.c: page tables ---------------------------------------------------------- */

#define CHIP_TLB_SMALL		512
#define CHIP_TLB_HUGE		128

struct chip_tlb_entry {
	uint64_t tag;		/* page number + 1; 0: empty */
	uint64_t pte;
	uint8_t *hbm;		/* local HBM, else NULL */
};

struct chip_vm {
	struct neuron_chip *chip;
	uint64_t root;
	uint64_t table_tag;	/* 2 MiB region + 1 whose level 0 table is @table */
	uint64_t table;
	struct chip_tlb_entry small[CHIP_TLB_SMALL];
	struct chip_tlb_entry huge[CHIP_TLB_HUGE];
};

void chip_vm_flush(struct chip_vm *vm);

/* --- slots and arbiter ---------------------------------------------------------- */

/**
 * struct chip_slot - one context slot; fields are under chip->lock
 * @era: of this enabling; the owner of a core is known by it
 * @gen: changes when the slot is reset, so that a fetch under way is dropped
 * @taken: jobs taken from the ring (HEAD)
 * @done: completions written
 * @loaded: @job holds the next descriptor, checked
 * @fetching: a descriptor is being read without the lock
 * @running: the job has its cores
 * @on_cpu: a thread executes it (translations may be in use)
 * @reset_pending: reset as soon as the job has ended
 * @inv_pending: INVALIDATE waits for the job's next safe point
 * @pt_dirty: the page-table root was written; used from the next job on
 * @stuck: the job waits at a safe point, because it was told to (inject.def)
 * @inject_fault: the job was ended to show this fault in place of ABORTED
 * @inject_core: the program's core that had it
 */
struct chip_slot {
	struct neuron_chip *chip;
	unsigned int index;
	bool enabled;
	bool error;
	bool loaded;
	bool fetching;
	bool running;
	bool on_cpu;
	bool reset_pending;
	bool inv_pending;
	bool pt_dirty;
	bool stuck;
	uint64_t ring, cq, pt;
	uint32_t ring_order, cq_order;
	uint32_t producer, taken;
	uint32_t done, cq_head;
	uint32_t core_mask, priority, vector;
	uint64_t inv_va, inv_size;
	uint64_t era;
	uint32_t gen;
	unsigned int age;
	uint64_t ready_seq;
	uint32_t job_mask;
	uint32_t new_owner;	/* cores of the job that had another owner */
	uint64_t wall_start, wall_end;
	uint64_t retired_start;
	enum neuron_fault inject_fault;
	unsigned int inject_core;
	atomic_bool abort;
	atomic_bool poll;
	atomic_uint_least64_t retired;
	struct neuron_fault_record fault;
	struct chip_job job;
	struct chip_vm *vm;
	struct chip_pool_work work;
};

/* Counters of a core; under chip->lock. */
struct chip_core_state {
	struct chip_core *core;
	pthread_mutex_t lock;	/* register side access against owner change and reset */
	uint64_t owner_era;	/* of the last job */
	int slot;		/* of the running job; -1 */
	unsigned int job_core;	/* program core number in that job */
	uint64_t wall_busy_ns;
	uint64_t modelled_ticks;
	uint64_t jobs;
	uint64_t insns;
	uint64_t insns_shown;
	uint64_t faults;
	uint64_t pe_macs;
	uint64_t dma_bytes;
	uint64_t engine_ticks[NEURON_ENGINE_COUNT];
};

struct chip_udma_engine;

/* One end of a link; under the lock of link.c. */
struct chip_link {
	struct neuron_chip *peer;	/* NULL: not connected */
	unsigned int peer_link;
	uint64_t bytes, transfers, ticks;
};

struct neuron_chip {
	struct chip_profile profile;
	struct neuron_chip_host host;
	void *opaque;
	unsigned int vectors;
	bool inline_exec;
	uint8_t revision;
	uint64_t reset_ns;
	uint64_t routing_id;
	uint64_t serial;
	uint32_t api_version;
	uint32_t server_info;
	bool reset_clears_udma;
	atomic_bool bus_master;
	atomic_bool removed;		/* pulled out */
	atomic_bool dead;		/* does not come back from FLR */

	uint8_t *hbm;
	bool hbm_owned;

	pthread_mutex_t lock;
	pthread_cond_t cond;		/* a job, a fetch or an interrupt ended; idle */

	/* misc RAM */
	uint32_t misc[NEURON_MISC_SIZE / 4];
	uint32_t fw_reset_type;		/* 0: none */
	uint64_t fw_reset_end;
	bool fw_reset_hung;
	bool mailbox_busy;
	struct chip_power {
		uint64_t time, busy;	/* of the last sample; ns */
		uint32_t sample;
	} power[2];			/* by die */
	uint32_t qemu_reset_map;
	bool qemu_reset_busy;

	/* execution block */
	uint32_t admin_cause, admin_mask;
	uint64_t slot_faults;
	uint32_t core_reset_pending;
	uint64_t latch_offset;
	uint32_t latch_high;
	uint64_t next_era, next_ready;
	bool scheduling, resched;
	bool stopping;
	struct chip_slot slot[NEURON_MAX_SLOTS];
	struct chip_core_state core[NEURON_MAX_CORES];

	/* UDMA */
	struct chip_udma_engine *_Atomic engine[CHIP_MAX_ENGINES];
	atomic_uint udma_irq[CHIP_MAX_ENGINES * NEURON_UDMA_QUEUES];

	struct chip_link link[CHIP_MAX_LINKS];
	unsigned int link_users;	/* copies of peers that are in this chip's memory */

	struct chip_ram ram;
	struct chip_faults faults;

	/* what keeps the chip busy; under idle_lock */
	pthread_mutex_t idle_lock;
	pthread_cond_t idle_cond;
	unsigned int busy;
	unsigned int irqs;

	struct chip_pool_work admin_work;
	atomic_bool admin_raising;

	atomic_uint log_budget;
	atomic_uint_least64_t log_second;
};

/* --- chip.c --------------------------------------------------------------------- */

uint64_t chip_now(void);
void chip_log(struct neuron_chip *chip, enum neuron_chip_log level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Host memory at a bus address; false when unreachable or bus mastering is off. */
bool chip_dma_read(struct neuron_chip *chip, uint64_t addr, void *buf, size_t len);
bool chip_dma_write(struct neuron_chip *chip, uint64_t addr, const void *buf, size_t len);
/* No lock may be held. */
void chip_raise(struct neuron_chip *chip, unsigned int vector);
/*
 * No lock may be held. Vector 0 from a thread of the pool: for the middle of a job or of
 * a copy, which a reset waits for, perhaps with a lock that the host's irq() needs.
 */
void chip_raise_admin(struct neuron_chip *chip);
/*
 * Around waiting for threads of the chip, no lock held: the host may have to give up a
 * lock that its callbacks take.
 */
void chip_wait_begin(struct neuron_chip *chip);
void chip_wait_end(struct neuron_chip *chip);
/*
 * Around a copy of @chip on this thread. What the copy writes to registers must not
 * wait for copies, and its interrupts are raised at the end. No lock may be held when
 * it leaves.
 */
void chip_dma_enter(struct neuron_chip *chip);
void chip_dma_leave(void);
bool chip_in_dma(void);
void chip_busy_get(struct neuron_chip *chip);
/* The caller must not touch the chip afterwards. */
void chip_busy_put(struct neuron_chip *chip);

/* --- addr.c: device physical addresses ------------------------------------------ */

enum chip_target {
	CHIP_TARGET_NONE,
	CHIP_TARGET_HBM,
	CHIP_TARGET_HOST,
	CHIP_TARGET_TPB,
	CHIP_TARGET_REG,	/* whole registers */
	CHIP_TARGET_LINK,	/* another chip; only for chip_place_copy() */
};

enum chip_copy {
	CHIP_COPY_OK,
	CHIP_COPY_SOURCE,	/* cannot be read */
	CHIP_COPY_MEMORY_ERROR,	/* the source has an uncorrectable error */
	CHIP_COPY_DESTINATION,	/* cannot be written */
};

struct chip_place {
	enum chip_target target;
	uint8_t *hbm;
	/* HOST: bus address; TPB: offset in the window; REG: BAR0 offset; LINK: the peer's address */
	uint64_t addr;
	unsigned int core;
	unsigned int link;
};

/* Where @len bytes at @dpa live; all of them in one place, else NONE. */
struct chip_place chip_resolve(struct neuron_chip *chip, uint64_t dpa, uint64_t len);
bool chip_place_read(struct neuron_chip *chip, const struct chip_place *place, void *buf, size_t len);
bool chip_place_write(struct neuron_chip *chip, const struct chip_place *place, const void *buf, size_t len);
enum chip_copy chip_place_copy(struct neuron_chip *chip, const struct chip_place *dst,
			       const struct chip_place *src, size_t len);
/* HBM by BAR4 offset; NULL unless all @len bytes are live. */
uint8_t *chip_hbm_at(struct neuron_chip *chip, uint64_t bar4, uint64_t len);

/* --- link.c: other chips ------------------------------------------------------------ */

/* Routing id of the chip at the end of a link; -1: none. */
int chip_link_neighbour(const struct chip_profile *p, unsigned int routing_id, unsigned int link);
/* Modelled time of a transfer over a link, in ticks. */
uint64_t chip_link_ticks(const struct chip_profile *p, uint64_t bytes);
/*
 * The chip at the other end, which stays until it is put, with the bytes that were
 * moved; NULL: not connected, or down.
 */
struct neuron_chip *chip_link_get(struct neuron_chip *chip, unsigned int link);
void chip_link_put(struct neuron_chip *chip, unsigned int link, struct neuron_chip *peer, uint64_t bytes);

/* --- tpb.c: semaphores, events and SBUF seen as registers ------------------------ */

bool chip_tpb_read(struct neuron_chip *chip, unsigned int core, uint64_t offset, void *buf, size_t len);
bool chip_tpb_write(struct neuron_chip *chip, unsigned int core, uint64_t offset, const void *buf, size_t len);

/* --- bar0.c ---------------------------------------------------------------------- */

uint32_t chip_bar0_read32(struct neuron_chip *chip, uint64_t offset);
void chip_bar0_write32(struct neuron_chip *chip, uint64_t offset, uint32_t value);
uint64_t chip_bar0_read(struct neuron_chip *chip, uint64_t offset, unsigned int size);
void chip_bar0_write(struct neuron_chip *chip, uint64_t offset, uint64_t value, unsigned int size);

/* --- misc.c ---------------------------------------------------------------------- */

/* Lock held. Not @power_on: error counters are kept. */
void chip_misc_reset(struct neuron_chip *chip, bool power_on);
uint32_t chip_misc_read(struct neuron_chip *chip, uint32_t offset);
void chip_misc_write(struct neuron_chip *chip, uint32_t offset, uint32_t value);
uint32_t chip_qemu_reset_read(struct neuron_chip *chip);
void chip_qemu_reset_write(struct neuron_chip *chip, uint32_t value);
/*
 * No lock may be held. Count @n errors in an ECC register; an uncorrected one is a
 * MEM_ERROR.
 */
void chip_misc_ecc(struct neuron_chip *chip, uint32_t reg, bool corrected, uint64_t n);
void chip_misc_repair(struct neuron_chip *chip, uint32_t state);
/* --- firmware.c ------------------------------------------------------------------ */

/* No lock may be held. The trigger was written, and no reset asked for. */
void chip_mailbox(struct neuron_chip *chip);
uint32_t chip_crc32c(uint32_t crc, const void *data, size_t len);

/* --- udma.c ---------------------------------------------------------------------- */

/* True when @offset of BAR0 is in an engine's window. */
bool chip_udma_find(const struct chip_profile *profile, uint64_t offset,
		    unsigned int *engine, uint32_t *rel);
uint32_t chip_udma_read(struct neuron_chip *chip, unsigned int engine, uint32_t rel, uint64_t offset);
void chip_udma_write(struct neuron_chip *chip, unsigned int engine, uint32_t rel,
		     uint64_t offset, uint32_t value);
/* Stops all queues and forgets them; returns when no copy runs. */
void chip_udma_reset(struct neuron_chip *chip);
/* Engines of @mask groups (16 each; all ones: every engine) leave the abort state. */
void chip_udma_clear_abort(struct neuron_chip *chip, uint32_t groups);
/* Queues that were told to stand still go on. */
void chip_udma_unstick(struct neuron_chip *chip);
void chip_udma_free(struct neuron_chip *chip);

/* --- bar2.c, slot.c: execution block --------------------------------------------- */

uint64_t chip_exec_read(struct neuron_chip *chip, uint64_t offset, unsigned int size);
void chip_exec_write(struct neuron_chip *chip, uint64_t offset, uint64_t value, unsigned int size);

/* Lock held: latch an administration cause; true: raise vector 0 after unlocking. */
bool chip_admin_event(struct neuron_chip *chip, uint32_t cause);

uint32_t chip_slot_read(struct neuron_chip *chip, unsigned int slot, uint32_t reg);
void chip_slot_write(struct neuron_chip *chip, unsigned int slot, uint32_t reg, uint32_t value);
/* Lock held. End the jobs on these cores with ABORTED and reset the cores. */
void chip_cores_reset(struct neuron_chip *chip, uint32_t mask);
/* Lock held. Reset every slot; jobs may still be ending afterwards. */
void chip_slots_reset(struct neuron_chip *chip);
/* Lock held, no job running. All slot registers to their values at power on. */
void chip_slots_power_on(struct neuron_chip *chip);
/* Lock held. Wait until no job, no fetch runs. */
void chip_slots_wait(struct neuron_chip *chip);

/* --- run.c: arbiter, and a job from its descriptor to its completion -------------- */

/*
 * Lock held, dropped in between. Start what can start; jobs of @inline_slot run on
 * this thread, all others (-1: all) on the pool.
 */
void chip_schedule(struct neuron_chip *chip, int inline_slot);
/* Lock held. Reset, or mark for it when a job or a fetch has to end first. */
void chip_slot_reset(struct chip_slot *slot);

#endif /* NEURON_CHIP_INTERNAL_H */
