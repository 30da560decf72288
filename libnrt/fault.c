// SPDX-License-Identifier: MIT
/* What a fault record means, in words: status, source lines, operands. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "neuron/isa.h"

static const struct {
	NRT_STATUS status;
	const char *text;
} faults[] = {
#define NEURON_FAULT(code, name, status, text) [code] = { (NRT_STATUS)(status), text },
#include "neuron/fault.def"
#undef NEURON_FAULT
};

static const char *const opcodes[256] = {
#define NEURON_INSN(code, name, text, engines, min_nc, words, aps, types, ops, imms, aux, limit, cost, summary) \
	[code] = text,
#include "neuron/isa.def"
};

static const char *const engines[NEURON_ENGINE_COUNT] = {
	[NEURON_ENGINE_PE] = "PE", [NEURON_ENGINE_ACT] = "ACT", [NEURON_ENGINE_POOL] = "POOL",
	[NEURON_ENGINE_DMA] = "DMA", [NEURON_ENGINE_DVE] = "DVE", [NEURON_ENGINE_SP] = "SP",
	[NEURON_ENGINE_CC] = "CC",
};

static const char *const spaces[] = {
	[NEURON_SPACE_NONE] = "", [NEURON_SPACE_SBUF] = "SBUF", [NEURON_SPACE_PSUM] = "PSUM",
	[NEURON_SPACE_HBM] = "HBM", [NEURON_SPACE_REG] = "register",
};

NRT_STATUS fault_status(uint32_t code)
{
	return code < ARRAY_SIZE(faults) ? faults[code].status : NRT_HW_ERROR;
}

static const char *engine_name(unsigned int engine)
{
	return engine < ARRAY_SIZE(engines) && engines[engine] ? engines[engine] : "?";
}

struct text {
	char *at;
	size_t left;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->at, t->left, format, args);
	va_end(args);
	if (n < 0)
		return;
	n = min_size(n, t->left ? t->left - 1 : 0);
	t->at += n;
	t->left -= n;
}

static void locate(const struct nrt_model *m, unsigned int core, uint32_t debug_id,
		   nrtx_source_t *source)
{
	const struct neff_line *line = neff_line(m->neff, core, debug_id);

	source->core = core;
	if (!line)
		return;
	snprintf(source->file, sizeof(source->file), "%s", line->file);
	snprintf(source->function, sizeof(source->function), "%s", line->name);
	source->line = line->line;
}

static void put_source(struct text *t, const nrtx_source_t *s)
{
	if (s->line)
		put(t, " at %s:%u (%s)", s->file, s->line, s->function);
}

static void put_argument(struct text *t, const struct nrt_model *m,
			 const struct neuron_fault_record *f)
{
	const struct neff_arg *arg;

	if (f->index >= m->neff->arg_count) {
		put(t, ", argument %u of %u", f->index, m->neff->arg_count);
		return;
	}
	arg = &m->neff->args[f->index];
	put(t, ", tensor '%s' of %" PRIu64 " bytes: %llu bytes at offset %lld", arg->name,
	    arg->size, f->size, (long long)f->addr);
}

/* Streams that wait, 8 * core + engine. */
static void put_waiting(struct text *t, uint64_t mask)
{
	for (unsigned int i = 0; i < 64; i++) {
		if (mask >> i & 1)
			put(t, "%s core %u %s", mask & ((1ull << i) - 1) ? "," : "; waiting:", i / 8,
			    engine_name(i % 8));
	}
}

static void put_bytes(struct text *t, const struct neuron_fault_record *f)
{
	const char *space = f->space < ARRAY_SIZE(spaces) ? spaces[f->space] : "?";

	if (!f->space)
		return;
	put(t, ", %s", space);
	if (f->space == NEURON_SPACE_SBUF || f->space == NEURON_SPACE_PSUM)
		put(t, " partition %u", f->partition);
	put(t, " bytes %llu to %llu", f->addr, f->addr + (f->size ? f->size - 1 : 0));
}

/* What @index, @value and so on mean depends on the code. */
static void put_details(struct text *t, const struct nrt_model *m,
			const struct neuron_fault_record *f)
{
	switch (f->code) {
	case NEURON_FAULT_PAGE_NOT_MAPPED:
	case NEURON_FAULT_PAGE_READ_ONLY:
	case NEURON_FAULT_BUS_ERROR:
		put(t, ", device address 0x%llx, %llu bytes", f->addr, f->size);
		break;
	case NEURON_FAULT_ARG_BOUNDS:
	case NEURON_FAULT_ARG_ACCESS:
		put_argument(t, m, f);
		break;
	case NEURON_FAULT_OOB_INDEX:
		put(t, ", index %d in partition %u, must be below %llu", (int32_t)f->index,
		    f->partition, f->value);
		break;
	case NEURON_FAULT_SEM_UNDERFLOW:
	case NEURON_FAULT_SEM_OVERFLOW:
		put(t, ", semaphore %u", f->index);
		break;
	case NEURON_FAULT_EVENT_DOUBLE:
		put(t, ", event %u", f->index);
		break;
	case NEURON_FAULT_DEADLOCK:
		put(t, ", waits for semaphore %u to be %llu; last update by %s", f->index,
		    f->value, engine_name(f->other_engine));
		put_waiting(t, f->waiting);
		break;
	case NEURON_FAULT_BAD_OPERAND:
		put(t, ", operand %u, limit %llu", f->index, f->value);
		put_bytes(t, f);
		break;
	default:
		put_bytes(t, f);
	}
}

void fault_describe(const struct nrt_model *m, const struct neuron_fault_record *f,
		    nrtx_execution_t *e)
{
	struct text t = { e->fault_text, sizeof(e->fault_text) };
	const char *opcode = opcodes[f->opcode];

	memcpy(e->fault_record, f, sizeof(*f));
	e->fault = f->code;
	locate(m, f->core, f->debug_id, &e->fault_at);
	e->fault_at.engine = f->engine;
	e->fault_at.pc = f->pc;
	if (f->code == NEURON_FAULT_OOB_INDEX)
		put(&t, "Received notification generated at runtime: failed to run scatter/gather (indirect memory copy), due to out-of-bound access. isa instruction line number = %u. model name = %s: ",
		    f->pc, m->neff->name);
	put(&t, "%s", f->code < ARRAY_SIZE(faults) ? faults[f->code].text : "unknown fault");
	if (f->engine) {
		put(&t, ": engine %s pc %u %s", engine_name(f->engine), f->pc, opcode ?: "?");
		put_source(&t, &e->fault_at);
	}
	if (f->other_debug_id || f->code == NEURON_FAULT_DATA_RACE) {
		locate(m, f->core, f->other_debug_id, &e->fault_other);
		e->fault_other.engine = f->other_engine;
		put(&t, " and engine %s", engine_name(f->other_engine));
		put_source(&t, &e->fault_other);
	}
	put_details(&t, m, f);
	put(&t, ", modelled time %.3f us", (double)f->ticks / (NEURON_TICK_HZ / 1e6));
}
