// SPDX-License-Identifier: MIT
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_vm.h"
#include "neuron/trace.h"

#define APERTURE_STRIDE	0x40000u

/* --- address space -------------------------------------------------------------------- */

struct chip_vm *vm_new(void)
{
	struct chip_vm *vm = calloc(1, sizeof(*vm));

	vm->mem = mmap(NULL, VM_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (vm->mem == MAP_FAILED)
		abort();
	vm->direct = true;
	vm->contiguous = 2ull << 20;
	return vm;
}

void vm_free(struct chip_vm *vm)
{
	munmap(vm->mem, VM_SIZE);
	free(vm);
}

void *vm_at(struct chip_vm *vm, uint64_t va)
{
	return vm->mem + (va - VM_BASE);
}

/* First byte of [va, va + len) inside [at, at + size), or ~0. */
static uint64_t first_inside(uint64_t va, uint64_t len, uint64_t at, uint64_t size)
{
	uint64_t lo = va > at ? va : at;

	return size && lo < va + len && lo < at + size ? lo : UINT64_MAX;
}

static enum neuron_fault vm_check(struct chip_vm *vm, uint64_t va, size_t len, bool write,
				  uint64_t *bad)
{
	uint64_t at;

	if (va < VM_BASE || va >= VM_BASE + VM_SIZE) {
		*bad = va;
		return NEURON_FAULT_PAGE_NOT_MAPPED;
	}
	if (len > VM_BASE + VM_SIZE - va) {
		*bad = VM_BASE + VM_SIZE;
		return NEURON_FAULT_PAGE_NOT_MAPPED;
	}
	at = first_inside(va, len, vm->hole, vm->hole_size);
	if (at != UINT64_MAX) {
		*bad = at;
		return NEURON_FAULT_PAGE_NOT_MAPPED;
	}
	at = write ? first_inside(va, len, vm->read_only, vm->read_only_size) : UINT64_MAX;
	if (at != UINT64_MAX) {
		*bad = at;
		return NEURON_FAULT_PAGE_READ_ONLY;
	}
	return NEURON_FAULT_NONE;
}

enum neuron_fault chip_vm_read(struct chip_vm *vm, uint64_t va, void *buf, size_t len,
			       uint64_t *bad_va)
{
	enum neuron_fault code = vm_check(vm, va, len, false, bad_va);

	if (code == NEURON_FAULT_NONE)
		memcpy(buf, vm_at(vm, va), len);
	return code;
}

enum neuron_fault chip_vm_write(struct chip_vm *vm, uint64_t va, const void *buf, size_t len,
				uint64_t *bad_va)
{
	enum neuron_fault code = vm_check(vm, va, len, true, bad_va);

	if (code == NEURON_FAULT_NONE)
		memcpy(vm_at(vm, va), buf, len);
	return code;
}

void *chip_vm_hbm(struct chip_vm *vm, uint64_t va, bool write, size_t *len)
{
	uint64_t bad, room = vm->contiguous - va % vm->contiguous;

	if (!vm->direct || vm_check(vm, va, 1, write, &bad) != NEURON_FAULT_NONE)
		return NULL;
	if (*len > room)
		*len = room;
	if (vm_check(vm, va, *len, write, &bad) != NEURON_FAULT_NONE)
		*len = bad - va;
	return vm_at(vm, va);
}

void chip_job_poll(struct chip_job *job)
{
	struct chip_vm *vm = job->vm;

	vm->polls++;
	if (!vm->poll_limit)
		atomic_store(job->poll, false);
	else if (vm->polls >= vm->poll_limit)
		atomic_store(job->abort, true);
}

/* --- programs ---------------------------------------------------------------------------- */

struct prog *prog_new(unsigned int nc_version, unsigned int cores)
{
	struct prog *p = calloc(1, sizeof(*p));
	unsigned int i;

	p->vm = vm_new();
	p->nc_version = nc_version;
	p->cores = cores;
	for (i = 0; i < cores; i++)
		p->core[i] = chip_core_new(nc_version);
	prog_reset(p);
	return p;
}

void prog_reset(struct prog *p)
{
	unsigned int c, e;

	for (c = 0; c < NEURON_MAX_CORES; c++) {
		for (e = 0; e < NEURON_ENGINE_COUNT; e++) {
			free(p->stream[c][e]);
			p->stream[c][e] = NULL;
		}
	}
	p->args = 0;
	p->next_va = VM_BASE + (4ull << 20);
	p->flags = 0;
	p->trace_va = p->trace_size = 0;
	atomic_store(&p->abort, false);
}

void prog_free(struct prog *p)
{
	unsigned int i;

	prog_reset(p);
	for (i = 0; i < p->cores; i++)
		chip_core_free(p->core[i]);
	vm_free(p->vm);
	free(p);
}

unsigned int prog_arg(struct prog *p, uint64_t size, uint32_t access)
{
	struct neuron_arg *a = &p->arg[p->args];

	a->va = htole64(p->next_va);
	a->size = htole64(size);
	a->access = htole32(access);
	a->reserved = 0;
	p->next_va += (size + 0xffff) & ~0xffffull;
	if (p->next_va > VM_BASE + VM_SIZE)
		abort();
	return p->args++;
}

void *prog_arg_mem(struct prog *p, unsigned int arg)
{
	return vm_at(p->vm, le64toh(p->arg[arg].va));
}

static struct neuron_insn *word_next(struct prog *p, unsigned int core, unsigned int engine)
{
	if (!p->stream[core][engine])
		p->stream[core][engine] = calloc(1, sizeof(*p->stream[core][engine]));
	if (p->stream[core][engine]->n == PROG_WORDS)
		abort();
	return &p->stream[core][engine]->word[p->stream[core][engine]->n++];
}

unsigned int prog_add(struct prog *p, unsigned int core, unsigned int engine,
		      const struct neuron_insn *insn)
{
	struct neuron_insn *w = word_next(p, core, engine);

	*w = *insn;
	return w - p->stream[core][engine]->word;
}

unsigned int prog_dma(struct prog *p, unsigned int core, unsigned int engine,
		      const struct neuron_insn *insn, const struct neuron_dma_operand *dst,
		      const struct neuron_dma_operand *src)
{
	unsigned int pc = prog_add(p, core, engine, insn);

	memcpy(word_next(p, core, engine), dst, NEURON_WORD_BYTES);
	memcpy(word_next(p, core, engine), src, NEURON_WORD_BYTES);
	return pc;
}

unsigned int prog_words(struct prog *p, unsigned int core, unsigned int engine,
			const struct neuron_insn *insn, const void *words, unsigned int n)
{
	unsigned int pc = prog_add(p, core, engine, insn), i;

	for (i = 0; i < n; i++)
		memcpy(word_next(p, core, engine), (const uint8_t *)words + i * NEURON_WORD_BYTES,
		       NEURON_WORD_BYTES);
	return pc;
}

unsigned int prog_run(struct prog *p)
{
	struct neuron_program_header *h = vm_at(p->vm, VM_BASE);
	uint64_t at = sizeof(*h), args_va = VM_BASE + (3ull << 20);
	unsigned int c, e;

	memset(h, 0, sizeof(*h));
	at = (at + NEURON_WORD_BYTES - 1) / NEURON_WORD_BYTES * NEURON_WORD_BYTES;
	for (c = 0; c < p->cores; c++) {
		for (e = 0; e < NEURON_ENGINE_COUNT; e++) {
			if (!p->stream[c][e])
				continue;
			h->stream[c][e].offset = htole64(at);
			h->stream[c][e].words = htole32(p->stream[c][e]->n);
			memcpy((uint8_t *)h + at, p->stream[c][e]->word,
			       p->stream[c][e]->n * NEURON_WORD_BYTES);
			at += p->stream[c][e]->n * NEURON_WORD_BYTES;
		}
	}
	h->magic = htole32(NEURON_PROGRAM_MAGIC);
	h->isa_version = htole16(NEURON_ISA_VERSION);
	h->nc_version = p->nc_version;
	h->cores = p->cores;
	h->size = htole64(at);
	h->arg_count = htole32(p->args);
	memcpy(vm_at(p->vm, args_va), p->arg, p->args * sizeof(p->arg[0]));
	memset(&p->job, 0, sizeof(p->job));
	p->job.desc.flags = htole32(p->flags);
	p->job.desc.core_mask = htole32((1u << p->cores) - 1);
	p->job.desc.program_va = htole64(VM_BASE);
	p->job.desc.args_va = htole64(args_va);
	p->job.desc.arg_count = htole32(p->args);
	p->job.desc.seed = htole64(p->seed);
	p->job.desc.trace_va = htole64(p->trace_va);
	p->job.desc.trace_size = htole64(p->trace_size);
	p->job.vm = p->vm;
	memcpy(p->job.core, p->core, sizeof(p->core));
	p->job.core_count = p->cores;
	p->job.nc_version = p->nc_version;
	p->job.abort = &p->abort;
	p->job.poll = &p->poll;
	p->job.retired = &p->retired;
	p->job.notify = p->notify;
	chip_job_run(&p->job);
	return le16toh(p->job.fault.code);
}

const struct neuron_trace_record *prog_record(struct prog *p, unsigned int core,
					      unsigned int engine, unsigned int opcode,
					      unsigned int n)
{
	const struct neuron_trace_header *h = vm_at(p->vm, p->trace_va);
	const struct neuron_trace_record *r = (const struct neuron_trace_record *)(h + 1);
	uint64_t i;

	for (i = 0; i < le64toh(h->records); i++)
		if (r[i].core == core && r[i].engine == engine && r[i].opcode == opcode && !n--)
			return &r[i];
	return NULL;
}

/* --- instructions ---------------------------------------------------------------------------- */

struct neuron_ap ap_none(void)
{
	return (struct neuron_ap){ .offset_reg = NEURON_REG_NONE, .count_reg = NEURON_REG_NONE };
}

struct neuron_ap ap_row(unsigned int space, unsigned int dtype, unsigned int part,
			unsigned int parts, uint32_t offset, unsigned int n)
{
	return (struct neuron_ap){
		.space = space, .dtype = dtype, .part_start = part, .part_count = parts,
		.offset = htole32(offset), .offset_reg = NEURON_REG_NONE,
		.count_reg = NEURON_REG_NONE, .dims = 1, .num = { htole16(n) },
		.step = { htole16(1) },
	};
}

struct neuron_insn insn_new(unsigned int opcode)
{
	static const uint8_t words[256] = {
#define NEURON_INSN(code, name, text, eng, nc, n, aps, types, ops, imms, aux, limit, cost, summary) [code] = n,
#include "neuron/isa.def"
	};
	struct neuron_insn w = { .opcode = opcode, .words = words[opcode] };

	w.ap[0] = w.ap[1] = w.ap[2] = ap_none();
	return w;
}

struct neuron_imm imm_f32(float value)
{
	struct neuron_imm imm = { .kind = NEURON_IMM_F32 };
	uint32_t bits;

	memcpy(&bits, &value, 4);
	imm.value = htole32(bits);
	return imm;
}

struct neuron_imm imm_i32(int32_t value)
{
	return (struct neuron_imm){ .kind = NEURON_IMM_I32, .value = htole32(value) };
}

struct neuron_imm imm_reg(unsigned int reg, unsigned int dtype)
{
	return (struct neuron_imm){ .kind = NEURON_IMM_REG, .dtype = dtype, .value = htole32(reg) };
}

struct neuron_imm imm_vec(unsigned int space, unsigned int dtype, unsigned int part, uint32_t offset)
{
	return (struct neuron_imm){
		.kind = NEURON_IMM_VEC, .dtype = dtype, .space = space, .part = part,
		.value = htole32(offset),
	};
}

struct neuron_wait wait_ge(unsigned int sem, unsigned int value)
{
	return (struct neuron_wait){ .sem = sem, .cond = NEURON_WAIT_GE, .value = htole16(value) };
}

struct neuron_wait wait_sub(unsigned int sem, unsigned int value)
{
	return (struct neuron_wait){ .sem = sem, .cond = NEURON_WAIT_GE_SUB, .value = htole16(value) };
}

struct neuron_update update_add(unsigned int sem, unsigned int value)
{
	return (struct neuron_update){ .sem = sem, .op = NEURON_UPDATE_SEM_ADD, .value = htole16(value) };
}

struct neuron_dma_operand dma_sbuf(void)
{
	return (struct neuron_dma_operand){ .space = NEURON_SPACE_SBUF };
}

struct neuron_dma_operand dma_hbm(unsigned int arg, unsigned int dtype, uint64_t offset,
				  unsigned int n, unsigned int rows, int64_t row_stride)
{
	static const uint8_t bytes[256] = {
#define NEURON_DTYPE(code, name, text, size) [code] = size,
#include "neuron/isa.def"
	};

	return (struct neuron_dma_operand){
		.space = NEURON_SPACE_HBM, .dtype = dtype, .arg = htole16(arg), .dims = 2,
		.offset_reg = NEURON_REG_NONE, .count_reg = NEURON_REG_NONE,
		.offset = htole64(offset), .count = { htole32(n), htole32(rows) },
		.stride = { htole64(bytes[dtype]), htole64(row_stride) },
	};
}

void sbuf_put(struct chip_core *core, unsigned int part, uint32_t offset, const void *buf, size_t len)
{
	if (!chip_core_sbuf_write(core, (uint64_t)part * APERTURE_STRIDE + offset, buf, len))
		abort();
}

void sbuf_get(struct chip_core *core, unsigned int part, uint32_t offset, void *buf, size_t len)
{
	if (!chip_core_sbuf_read(core, (uint64_t)part * APERTURE_STRIDE + offset, buf, len))
		abort();
}
