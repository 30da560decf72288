// SPDX-License-Identifier: MIT
/* From views and scalars to access patterns, immediates and touched bytes. */
#include <string.h>

#include "rules.h"

#define SBUF_FREE_LIMIT	65536	/* elements per partition and instruction */
#define PSUM_FREE_LIMIT	4096

static void no_registers(struct neuron_ap *ap, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		ap[i].offset_reg = NEURON_REG_NONE;
		ap[i].count_reg = NEURON_REG_NONE;
	}
}

struct nki_insn *nki_new_insn(struct nki_kernel *k, struct nki_loc loc, unsigned int op,
			      unsigned int engine)
{
	struct nki_insn *insn = nki_zalloc(k, sizeof(*insn));

	if (!insn)
		return NULL;
	insn->w.opcode = op;
	insn->w.words = 1;
	insn->w.debug_id = htole32(nki_debug_id(k, loc));
	no_registers(insn->w.ap, 3);
	insn->point.debug_id = le32toh(insn->w.debug_id);
	insn->point.engine = engine;
	insn->point.queue = NKI_QUEUE_NONE;
	return insn;
}

/* Room for @words words in all; the new ones are 0. */
struct neuron_insn *nki_more_words(struct nki_kernel *k, struct nki_insn *insn, unsigned int words)
{
	struct neuron_insn *more = nki_zalloc(k, (words - 1) * sizeof(*more));

	if (!more)
		return NULL;
	if (insn->more)
		memcpy(more, insn->more, (insn->w.words - 1) * sizeof(*more));
	insn->more = more;
	insn->w.words = words;
	return more;
}

/* The second word. */
struct neuron_insn_ext *nki_ext(struct nki_kernel *k, struct nki_insn *insn)
{
	struct neuron_insn_ext *ext;

	if (insn->more)
		return (struct neuron_insn_ext *)insn->more;
	ext = (struct neuron_insn_ext *)nki_more_words(k, insn, 2);
	if (ext)
		no_registers(ext->ap, 3);
	return ext;
}

void nki_forget_weights(struct nki_kernel *k)
{
	for (unsigned int i = 0; i < NKI_PE_TILES; i++)
		k->weights[i].valid = false;
}

static void weights_written(struct nki_kernel *k, const struct nki_access *a)
{
	for (unsigned int i = 0; i < NKI_PE_TILES; i++) {
		struct nki_weights *w = &k->weights[i];

		if (w->valid && (nki_overlap(a, &w->bytes) || (w->has_scales && nki_overlap(a, &w->scales))))
			w->valid = false;
	}
}

static struct nki_access *access_next(struct nki_kernel *k, struct nki_insn *insn)
{
	if (insn->accesses == insn->access_room) {
		unsigned int room = insn->access_room ? 2 * insn->access_room : 3;
		struct nki_access *more = nki_zalloc(k, room * sizeof(*more));

		if (!more)
			return NULL;
		if (insn->accesses)
			memcpy(more, insn->access, insn->accesses * sizeof(*more));
		insn->access = more;
		insn->access_room = room;
	}
	return &insn->access[insn->accesses++];
}

/*
 * Published for NeuronCore-v2: DVE and POOL may not be in SBUF at a time, nor DVE and
 * ACT in PSUM, and it is the compiler that sees to it. To the order of instructions
 * each such memory is a byte that all of them write.
 */
static void add_bus(struct nki_kernel *k, struct nki_insn *insn, enum neuron_space space,
		    unsigned int other)
{
	unsigned int engine = insn->point.engine;
	struct nki_access *a;
	bool uses = false;

	if (engine != NEURON_ENGINE_DVE && engine != other)
		return;
	for (unsigned int i = 0; i < insn->accesses; i++)
		uses |= insn->access[i].space == space;
	a = uses ? access_next(k, insn) : NULL;
	if (a)
		*a = (struct nki_access){
			.space = NEURON_SPACE_NONE, .arg = space, .write = true, .parts = 1,
			.hi = 1, .run = 1,
		};
}

void nki_emit(struct nki_kernel *k, struct nki_insn *insn)
{
	struct nki_item *item = nki_add_item(k, nki_current_seq(k), NKI_ITEM_INSN);

	if (k->arch->nc_version < 3 && insn->point.queue == NKI_QUEUE_NONE) {
		add_bus(k, insn, NEURON_SPACE_SBUF, NEURON_ENGINE_POOL);
		add_bus(k, insn, NEURON_SPACE_PSUM, NEURON_ENGINE_ACT);
	}
	if (item)
		item->insn = insn;
	for (unsigned int i = 0; i < insn->accesses; i++) {
		if (insn->access[i].write)
			weights_written(k, &insn->access[i]);
	}
}

uint64_t nki_free_elements(struct nki_view v)
{
	uint64_t n = 1;

	for (unsigned int d = 1; d < v.dims; d++)
		n *= v.num[d];
	return n;
}

bool nki_live(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v)
{
	if (!v.buf || v.buf->k != k) {
		nki_fail(k, loc, "%s is missing, or of another kernel", what);
		return false;
	}
	if (!v.buf->live) {
		nki_fail(k, loc, "%s is a tile that was freed (allocated at %s:%d)", what,
			 v.buf->loc.file, v.buf->loc.line);
		return false;
	}
	return true;
}

static unsigned int first_dim(struct nki_view v)
{
	return v.buf->space == NEURON_SPACE_HBM ? 0 : 1;
}

static int64_t view_extent(struct nki_view v)
{
	int64_t bytes = nki_dtype_size(v.dtype);

	for (unsigned int d = first_dim(v); d < v.dims; d++)
		bytes += (int64_t)(v.num[d] - 1) * v.step[d] * nki_dtype_size(v.dtype);
	return bytes;
}

/* Range of bytes that the register adds to the offset. False: not known. */
static bool reg_range(struct nki_view v, int64_t *lo, int64_t *hi)
{
	struct nki_reg_info *info;

	*lo = 0;
	*hi = 0;
	if (!v.reg.id)
		return true;
	info = &v.buf->k->reg[v.reg.id];
	if (!info->ranged)
		return false;
	*lo = info->lo * v.reg_scale;
	*hi = info->hi * v.reg_scale;
	return true;
}

static bool range_ok(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v)
{
	int64_t lo, hi;

	if (v.index || v.indirect || !reg_range(v, &lo, &hi))
		return true;	/* checked when it runs */
	if (v.offset + lo < 0 || v.offset + hi + view_extent(v) > (int64_t)v.buf->bytes) {
		nki_fail(k, loc, "%s reaches bytes %lld to %lld of a %s of %llu bytes (%s:%d)", what,
			 (long long)(v.offset + lo), (long long)(v.offset + hi + view_extent(v)),
			 first_dim(v) ? "tile row" : "tensor", (unsigned long long)v.buf->bytes,
			 v.buf->loc.file, v.buf->loc.line);
		return false;
	}
	return true;
}

/* @any: DMA and the sequencer reach any partition. */
static bool partitions_ok(struct nki_kernel *k, struct nki_loc loc, const char *what,
			  struct nki_view v, bool any)
{
	unsigned int n = v.num[0];
	unsigned int align = n <= 32 ? 32 : n <= 64 ? 64 : 128;

	if ((any || v.part % align == 0) && v.part + n <= NEURON_PARTITIONS)
		return true;
	nki_fail(k, loc, "%s: %u partitions from %u; allowed starts: 0, 32, 64, 96 for up to 32 partitions, 0, 64 for up to 64, else 0",
		 what, n, v.part);
	return false;
}

static bool free_size_ok(struct nki_kernel *k, struct nki_loc loc, const char *what,
			 struct nki_view v)
{
	uint64_t limit = v.buf->space == NEURON_SPACE_PSUM ? PSUM_FREE_LIMIT : SBUF_FREE_LIMIT;

	/* Trn3 fills all of PSUM with 8192 16-bit results. */
	if (v.buf->space == NEURON_SPACE_PSUM && k->arch->nc_version >= 4 && nki_dtype_size(v.dtype) == 2)
		limit = 2 * PSUM_FREE_LIMIT;
	if (nki_free_elements(v) <= limit)
		return true;
	nki_fail(k, loc, "%s: %llu elements per partition; allowed in %s: %llu", what,
		 (unsigned long long)nki_free_elements(v), nki_space_text(v.buf->space),
		 (unsigned long long)limit);
	return false;
}

/**
 * struct pattern - hardware dimensions, innermost first
 * @count: how many
 * @count_dim: the one whose number a register gives, or -1
 */
struct pattern {
	int64_t num[NEURON_AP_DIMS], step[NEURON_AP_DIMS];
	unsigned int count;
	int count_dim;
};

/* Adds dimensions [lo, hi) of a view as as few hardware dimensions as possible. */
static bool merge_dims(const struct nki_view *v, unsigned int lo, unsigned int hi, struct pattern *p)
{
	unsigned int start = p->count;

	for (unsigned int d = hi; d-- > lo;) {
		bool dynamic = v->count_reg.id && v->count_dim == d;
		bool fixed = dynamic || (v->index && d == 0);

		if (v->num[d] == 1 && !fixed)
			continue;
		if (p->count > start && !fixed) {
			unsigned int last = p->count - 1;

			if (p->count_dim != (int)last && v->step[d] == p->step[last] * p->num[last] &&
			    p->num[last] * v->num[d] <= UINT16_MAX) {
				p->num[last] *= v->num[d];
				continue;
			}
		}
		if (p->count == NEURON_AP_DIMS)
			return false;
		if (dynamic)
			p->count_dim = p->count;
		p->num[p->count] = v->num[d];
		p->step[p->count++] = v->step[d];
	}
	return true;
}

static bool ap_limits_ok(struct nki_kernel *k, struct nki_loc loc, const char *what,
			 const struct pattern *p)
{
	for (unsigned int d = 0; d < p->count; d++) {
		if (p->num[d] > UINT16_MAX || p->step[d] > INT16_MAX || p->step[d] < INT16_MIN) {
			nki_fail(k, loc, "%s: %lld elements at a distance of %lld; allowed: 65535, and -32768 to 32767",
				 what, (long long)p->num[d], (long long)p->step[d]);
			return false;
		}
	}
	return true;
}

static void fill_ap(struct nki_view v, const struct pattern *p, struct neuron_ap *ap)
{
	memset(ap, 0, sizeof(*ap));
	ap->space = v.buf->space;
	ap->dtype = v.dtype;
	ap->part_start = v.part;
	ap->part_count = v.num[0];
	ap->offset = htole32(v.buf->base + v.offset);
	ap->offset_reg = NEURON_REG_NONE;
	ap->count_reg = p->count_dim < 0 ? NEURON_REG_NONE : v.count_reg.id - 1;
	ap->count_dim = p->count_dim < 0 ? 0 : p->count_dim;
	ap->dims = p->count;
	for (unsigned int d = 0; d < p->count; d++) {
		ap->num[d] = htole16(p->num[d]);
		ap->step[d] = htole16(p->step[d]);
	}
}

static void one_element(struct pattern *p)
{
	p->num[0] = 1;
	p->step[0] = 1;
	p->count = 1;
}

/*
 * @split: dimensions from it on stay apart from the ones before (0: none); @inner:
 * how many hardware dimensions they became.
 */
static bool put_pattern(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
			unsigned int split, struct neuron_ap *ap, unsigned int *inner)
{
	struct pattern p = { .count = 0, .count_dim = -1 };
	unsigned int middle = split ? split : 1;
	bool ok = merge_dims(&v, middle, v.dims, &p);

	if (ok && inner && split && !p.count)
		one_element(&p);	/* a reduction over dimensions of one element */
	if (inner)
		*inner = p.count;
	if (!ok || !merge_dims(&v, 1, middle, &p)) {
		nki_fail(k, loc, "%s: more than %d free dimensions that cannot be merged", what,
			 NEURON_AP_DIMS);
		return false;
	}
	if (!p.count)
		one_element(&p);
	if (!ap_limits_ok(k, loc, what, &p))
		return false;
	fill_ap(v, &p, ap);
	return true;
}

bool nki_put_ap(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
		unsigned int split, struct neuron_ap *ap, unsigned int *inner, bool any_partition)
{
	return partitions_ok(k, loc, what, v, any_partition) && free_size_ok(k, loc, what, v) &&
	       range_ok(k, loc, what, v) && put_pattern(k, loc, what, v, split, ap, inner);
}

/* An access pattern's register counts bytes; a view's, elements. */
bool nki_put_fix(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn, struct nki_view v,
		 uint8_t *offset_reg)
{
	struct nki_fix *fix = &insn->fix[insn->fixes];

	if (!v.reg.id)
		return true;
	insn->regs |= 1ull << (v.reg.id - 1);
	if (v.reg_scale == 1) {
		*offset_reg = v.reg.id - 1;
		return true;
	}
	if (v.reg_scale > INT32_MAX || v.reg_scale < INT32_MIN || insn->fixes == NKI_MAX_FIXES) {
		nki_fail(k, loc, "a step of %lld bytes in operand %u with a register offset; allowed: 32 bits, %d operands",
			 (long long)v.reg_scale, insn->fixes + 1, NKI_MAX_FIXES);
		return false;
	}
	fix->reg = v.reg.id - 1;
	fix->scale = v.reg_scale;
	fix->temp = NKI_TEMP_REG + insn->fixes;
	*offset_reg = fix->temp;
	insn->fixes++;
	return true;
}

/* Memories that the row of isa.def allows: 's', 'p' or both. */
static bool space_ok(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
		     const char *allowed, unsigned int engine)
{
	bool sbuf = (allowed[0] | 0x20) == 's' || (allowed[1] | 0x20) == 's';
	bool psum = (allowed[0] | 0x20) == 'p' || (allowed[1] | 0x20) == 'p';

	if (v.buf->space == NEURON_SPACE_HBM) {
		nki_fail(k, loc, "%s is in HBM; allowed: %s (nki_dma_copy first)", what,
			 !psum ? "SBUF" : !sbuf ? "PSUM" : "SBUF or PSUM");
		return false;
	}
	if (v.buf->space == NEURON_SPACE_PSUM && engine == NEURON_ENGINE_POOL) {
		nki_fail(k, loc, "%s is in PSUM, which the gpsimd engine cannot reach; allowed: SBUF, or another engine",
			 what);
		return false;
	}
	if (v.buf->space == NEURON_SPACE_PSUM ? psum : sbuf)
		return true;
	nki_fail(k, loc, "%s is in %s; allowed: %s", what, nki_space_text(v.buf->space),
		 psum ? "PSUM" : "SBUF");
	return false;
}

/* Same bytes: MX types are moved as integers of their size. */
static bool moves_bits(unsigned int opcode)
{
	switch (opcode) {
	case NEURON_OP_DMA_COPY:
	case NEURON_OP_DMA_TRANSPOSE:
	case NEURON_OP_TENSOR_COPY:
	case NEURON_OP_STREAM_SHUFFLE:
	case NEURON_OP_MEMSET:
		return true;
	}
	return false;
}

bool nki_put_view(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn, unsigned int slot,
		  const char *what, struct nki_view v, unsigned int split)
{
	struct nki_row row;
	struct neuron_ap *ap;
	unsigned int inner = 0;
	bool any, write;

	if (!insn || !nki_live(k, loc, what, v))
		return false;
	row = nki_find_row(insn->w.opcode);
	if (strlen(row.aps) < 2 * slot + 2)
		return false;
	any = row.cost == NEURON_COST_DMA || row.cost == NEURON_COST_REGMEM;
	write = row.aps[2 * slot] & 0x20 && row.aps[2 * slot] != '-';
	write |= row.aps[2 * slot + 1] & 0x20 && row.aps[2 * slot + 1] != '-';
	if (nki_packed(v.dtype) && moves_bits(insn->w.opcode))
		v.dtype = nki_dtype_size(v.dtype) == 2 ? NKI_UINT16 : NKI_UINT32;
	if (!space_ok(k, loc, what, v, row.aps + 2 * slot, insn->point.engine) ||
	    (slot < 3 && !nki_type_ok(k, loc, what, v.dtype, row.types[slot])))
		return false;
	if (slot >= 3 && !nki_ext(k, insn))
		return false;
	ap = slot < 3 ? &insn->w.ap[slot] : &nki_ext(k, insn)->ap[slot - 3];
	if (v.indirect ? !nki_put_indirect(k, loc, insn, slot, what, v, ap) :
			 !nki_put_ap(k, loc, what, v, split, ap, &inner, any))
		return false;
	if (!nki_put_fix(k, loc, insn, v, &ap->offset_reg))
		return false;
	if (v.count_reg.id)
		insn->regs |= 1ull << (v.count_reg.id - 1);
	if (split)
		insn->w.aux = htole32(inner);
	return nki_add_access(k, insn, v, write);
}

/* Immediates from the third on are in the second word. */
static struct neuron_imm *imm_at(struct nki_kernel *k, struct nki_insn *insn, unsigned int slot)
{
	struct neuron_insn_ext *ext = slot < 2 ? NULL : nki_ext(k, insn);

	if (slot < 2)
		return &insn->w.imm[slot];
	return ext ? &ext->imm[slot - 2] : NULL;
}

static bool put_vec(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		    unsigned int slot, const char *what, struct nki_view v, unsigned int parts)
{
	struct neuron_imm *imm = imm_at(k, insn, slot);

	if (!imm || !nki_live(k, loc, what, v) || !partitions_ok(k, loc, what, v, false) ||
	    !range_ok(k, loc, what, v))
		return false;
	if (v.buf->space == NEURON_SPACE_HBM || nki_free_elements(v) != 1 || v.num[0] != parts ||
	    v.reg.id) {
		nki_fail(k, loc, "%s: %u partitions of %llu elements in %s; allowed: a (%u, 1) tile in SBUF or PSUM without register offset",
			 what, v.num[0], (unsigned long long)nki_free_elements(v),
			 nki_space_text(v.buf->space), parts);
		return false;
	}
	if (v.buf->space == NEURON_SPACE_PSUM && insn->point.engine == NEURON_ENGINE_POOL) {
		nki_fail(k, loc, "%s is in PSUM, which the gpsimd engine cannot reach", what);
		return false;
	}
	imm->kind = NEURON_IMM_VEC;
	imm->dtype = v.dtype;
	imm->space = v.buf->space;
	imm->part = v.part;
	imm->value = htole32(v.buf->base + v.offset);
	return nki_add_access(k, insn, v, false);
}

bool nki_put_scalar(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		    unsigned int slot, const char *what, struct nki_scalar s, unsigned int parts)
{
	struct neuron_imm *imm = imm_at(k, insn, slot);
	uint32_t bits;

	if (!imm)
		return false;
	switch (s.kind) {
	case NEURON_IMM_NONE:
		return true;
	case NEURON_IMM_F32:
		memcpy(&bits, &s.f, sizeof(bits));
		imm->dtype = NEURON_DTYPE_FLOAT32;
		break;
	case NEURON_IMM_I32:
		bits = s.i;
		imm->dtype = NEURON_DTYPE_INT32;
		break;
	case NEURON_IMM_REG:
		if (!nki_reg_ok(k, loc, s.reg))
			return false;
		bits = s.reg.id - 1;
		imm->dtype = s.dtype;
		insn->regs |= 1ull << bits;
		break;
	case NEURON_IMM_VEC:
		return put_vec(k, loc, insn, slot, what, s.vec, parts);
	default:
		nki_fail(k, loc, "%s is not a scalar operand", what);
		return false;
	}
	imm->kind = s.kind;
	imm->value = htole32(bits);
	return true;
}

/* ------------------------------------------------------------------------ */
/* Touched bytes							    */

static void sort_dims(struct nki_access *a)
{
	for (unsigned int i = 1; i < a->dims; i++) {
		for (unsigned int j = i; j > 0 && a->step[j] > a->step[j - 1]; j--) {
			int64_t n = a->num[j], s = a->step[j];

			a->num[j] = a->num[j - 1];
			a->step[j] = a->step[j - 1];
			a->num[j - 1] = n;
			a->step[j - 1] = s;
		}
	}
}

static void add_dims(struct nki_view v, struct nki_access *a)
{
	int64_t size = nki_dtype_size(v.dtype);

	a->run = size;
	for (unsigned int d = first_dim(v); d < v.dims; d++) {
		if (v.num[d] == 1 || !v.step[d])
			continue;
		a->num[a->dims] = v.num[d];
		a->step[a->dims++] = v.step[d] * size;
	}
	sort_dims(a);
	while (a->dims && a->step[a->dims - 1] <= a->run) {
		a->run += (a->num[a->dims - 1] - 1) * a->step[a->dims - 1];
		a->dims--;
	}
}

void nki_view_access(struct nki_view v, bool write, struct nki_access *a)
{
	bool hbm = v.buf->space == NEURON_SPACE_HBM;
	int64_t base = hbm ? 0 : (int64_t)v.buf->base;
	int64_t lo, hi;

	memset(a, 0, sizeof(*a));
	a->space = v.buf->space;
	a->write = write;
	a->arg = hbm ? v.buf->arg : 0;
	a->part = hbm ? 0 : v.part;
	a->parts = hbm ? 1 : v.num[0];
	if (v.index || v.indirect || !reg_range(v, &lo, &hi)) {
		a->lo = base;
		a->hi = base + v.buf->bytes;
		a->run = v.buf->bytes;
		return;
	}
	a->lo = base + v.offset + lo;
	a->hi = base + v.offset + hi + view_extent(v);
	a->run = a->hi - a->lo;
	if (lo == hi)
		add_dims(v, a);
}

bool nki_add_access(struct nki_kernel *k, struct nki_insn *insn, struct nki_view v, bool write)
{
	struct nki_access *a;

	/* The caller's arguments that nobody writes need no order. */
	if (v.buf->space == NEURON_SPACE_HBM && v.buf->kind != NKI_TENSOR_OUTPUT &&
	    v.buf->kind != NKI_TENSOR_SCRATCH)
		return true;
	a = access_next(k, insn);
	if (a)
		nki_view_access(v, write, a);
	return a;
}
