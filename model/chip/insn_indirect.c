// SPDX-License-Identifier: MIT
/*
 * Indirect operands of v4: element i of a partition lies at an offset, in elements,
 * that an index tile gives for each group of partitions: 32 on PE, 16 elsewhere.
 * Offset i of a group is row i mod group, column i / group of its part of the tile.
 */
#include <endian.h>
#include <string.h>

#include "exec_state.h"

/* Element @i of the group of @part: the offset that the index tile has, or -1. */
static int64_t index_value(const struct opnd *op, unsigned int part, uint32_t i)
{
	const struct opnd *idx = op->index;
	const uint8_t *at = idx->base + (part / op->group * op->group + i % op->group) * idx->stride +
			    (int64_t)(i / op->group) * idx->step[0];
	uint32_t bits = 0;

	memcpy(&bits, at, idx->bytes);
	bits = le32toh(bits);
	if (num_dtype(idx->dtype)->is_signed && bits >> (8 * idx->bytes - 1))
		return -1;
	return bits;
}

uint8_t *indirect_at(const struct opnd *op, unsigned int part, uint32_t i)
{
	int64_t v = index_value(op, part, i);

	/* The instruction itself may have changed what was checked before. */
	if (v < 0 || v >= op->places)
		v = 0;
	return op->base + part * op->stride + v * op->bytes;
}

/* Which operands the documents let be indirect. */
static bool allowed(const struct stream *s, unsigned int i)
{
	switch (s->cur->w.opcode) {
	case NEURON_OP_LDWEIGHTS:
	case NEURON_OP_TENSOR_COPY:
	case NEURON_OP_TENSOR_SCALAR:
	case NEURON_OP_TENSOR_REDUCE:
	case NEURON_OP_TENSOR_SCALAR_REDUCE:
	case NEURON_OP_TENSOR_SCALAR_CUMULATIVE:
	case NEURON_OP_ACTIVATE:
	case NEURON_OP_ACTIVATE2:
	case NEURON_OP_EXPONENTIAL:
		return true;
	case NEURON_OP_MATMUL:
		return i != 1 || !(s->cur->w.flags & NEURON_FLAG_TRANSPOSE);
	case NEURON_OP_MATMUL_MX:
		return !i;
	case NEURON_OP_COPY_PREDICATED:
		return i != 1;
	case NEURON_OP_TENSOR_TENSOR:
		return i != 2;
	}
	return false;
}

/* Where an index tile lies: with its operand, or for a result with the data. */
static bool placed(struct stream *s, unsigned int i)
{
	const struct opnd *op = &s->op[i], *idx = &s->index[i];
	const struct neuron_ap *data = &s->cur->w.ap[1], *from = &s->cur->index->ap[1];
	unsigned int part = op->part;

	if (!i && data->space == NEURON_SPACE_PSUM && from->space != NEURON_SPACE_NONE)
		part = from->part_start;
	else if (!i && data->space != NEURON_SPACE_NONE)
		part = data->part_start;
	if (idx->part % 32 || (idx->part != part && s->engine != NEURON_ENGINE_PE))
		return exec_bad(s, 24 + i, idx->part, part);
	if (!i && s->engine == NEURON_ENGINE_ACT && op->space == NEURON_SPACE_PSUM)
		return exec_bad(s, 0, NEURON_SPACE_PSUM, NEURON_SPACE_SBUF);
	return true;
}

static bool tile_ok(struct stream *s, unsigned int i)
{
	const struct opnd *op = &s->op[i], *idx = &s->index[i];

	if (num_dtype(idx->dtype)->is_float)
		return exec_bad(s, 24 + i, idx->dtype, NEURON_DTYPE_UINT32);
	if (idx->dims != 1)
		return exec_bad(s, 24 + i, idx->dims, 1);
	if (op->parts % op->group)
		return exec_bad(s, i, op->parts, op->group);
	if (idx->parts != op->parts)
		return exec_bad(s, 24 + i, idx->parts, op->parts);
	if (op->n > (uint64_t)op->group * idx->n)
		return exec_bad(s, i, op->n, (uint64_t)op->group * idx->n);
	if (s->engine == NEURON_ENGINE_PE && !num_dtype(op->dtype)->is_float)
		return exec_bad(s, i, op->dtype, NEURON_DTYPE_BFLOAT16);
	return placed(s, i);
}

/* Every offset inside its partition; the range of all of them. */
static bool offsets_ok(struct stream *s, unsigned int i)
{
	struct opnd *op = &s->op[i];
	uint32_t first = op->lo_direct, lo = UINT32_MAX, hi = 0, k;
	unsigned int g;

	for (g = 0; g < op->parts; g += op->group) {
		for (k = 0; k < op->n; k++) {
			int64_t v = index_value(op, g, k);

			if (v < 0 || v >= op->places) {
				struct neuron_fault_record *f = exec_fault(s->x, s, NEURON_FAULT_OOB_INDEX);

				f->space = op->space;
				f->index = htole32(24 + i);
				f->partition = op->index->part + g + k % op->group;
				f->value = htole64(v);
				f->size = htole64(op->places);
				return false;
			}
			lo = v < lo ? v : lo;
			hi = v > hi ? v : hi;
		}
	}
	op->lo = first + lo * op->bytes;
	op->hi = first + (hi + 1) * op->bytes;
	return true;
}

bool indirect_resolve(struct stream *s, const struct neuron_ap *ap, unsigned int i,
		      unsigned int spaces)
{
	struct chip_core *core = stream_core(s)->core;
	const struct neuron_ap *tile = &s->cur->index->ap[i];
	struct opnd *op = &s->op[i];
	struct neuron_ap one = *ap;
	uint32_t n = ap->num[0], limit;

	if (s->x->job->nc_version < 4 || !allowed(s, i))
		return exec_bad(s, 24 + i, tile->space, NEURON_SPACE_NONE);
	if (ap->dims != 1 || ap->count_reg != NEURON_REG_NONE)
		return exec_bad(s, i, ap->dims, 1);
	one.num[0] = 1;
	if (!opnd_resolve(s, &one, i, spaces, op))
		return false;
	limit = op->space == NEURON_SPACE_PSUM ? PSUM_ELEMENTS * (op->bytes == 2 ? 2 : 1) : SBUF_ELEMENTS;
	if (!n || n > limit)
		return exec_bad(s, i, n, limit);
	if (!opnd_resolve(s, tile, 24 + i, SPACE_BIT(NEURON_SPACE_SBUF), &s->index[i]))
		return false;
	op->index = &s->index[i];
	op->group = s->engine == NEURON_ENGINE_PE ? 32 : 16;
	op->n = op->num[0] = n;
	op->step[0] = op->bytes;
	op->dense = false;
	op->lo_direct = op->lo;
	op->places = (core->mem[op->space].bytes - op->lo) / op->bytes;
	if (!tile_ok(s, i))
		return false;
	/* Without data there are no offsets; they do not change the time. */
	if (s->x->timing_only)
		return true;
	if (!offsets_ok(s, i))
		return false;
	core_mem_validate(core, &core->mem[op->space], op->lo, op->hi);
	return true;
}

bool indirect_piece(const struct opnd *op, struct opnd_walk *walk, struct opnd *piece)
{
	const uint8_t *first;
	uint32_t n = 1;

	if (walk->i == op->n) {
		walk->i = 0;
		walk->part += op->group;
	}
	if (walk->part >= op->parts)
		return false;
	first = indirect_at(op, walk->part, walk->i);
	while (walk->i + n < op->n && indirect_at(op, walk->part, walk->i + n) == first + n * op->bytes)
		n++;
	*piece = *op;
	piece->index = NULL;
	piece->base = (uint8_t *)first;
	piece->part = op->part + walk->part;
	piece->parts = op->group;
	piece->n = piece->num[0] = n;
	piece->dense = true;
	piece->lo = op->lo_direct + (first - (op->base + walk->part * op->stride));
	piece->hi = piece->lo + n * op->bytes;
	walk->i += n;
	return true;
}
