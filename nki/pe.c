// SPDX-License-Identifier: MIT
/* Tensor engine: rules checked, then recorded. */
#include <string.h>

#include "rules.h"

/* Part of the array that an instruction uses. */
struct tile {
	unsigned int row, rows, column, columns;
	uint32_t aux;
};

static bool matmul_types_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view s,
			    struct nki_view m)
{
	bool s32 = nki_dtype_size(s.dtype) == 4, m32 = nki_dtype_size(m.dtype) == 4;

	if (nki_dtype_is_int(s.dtype) || nki_dtype_is_int(m.dtype)) {
		nki_fail(k, loc, "stationary %s, moving %s; allowed: floating-point types",
			 nki_dtype_text(s.dtype), nki_dtype_text(m.dtype));
		return false;
	}
	if (s32 != m32) {
		nki_fail(k, loc, "stationary %s, moving %s; float32 and tfloat32 go only with each other",
			 nki_dtype_text(s.dtype), nki_dtype_text(m.dtype));
		return false;
	}
	if ((s.dtype == NKI_FLOAT8_E4M3FN || m.dtype == NKI_FLOAT8_E4M3FN) && k->arch->nc_version < 4) {
		nki_fail(k, loc, "float8_e4m3fn needs NeuronCore-v4 (Trn3)");
		return false;
	}
	if ((s.dtype == NKI_FLOAT8_E4M3FN && m.dtype == NKI_FLOAT8_E4M3) ||
	    (s.dtype == NKI_FLOAT8_E4M3 && m.dtype == NKI_FLOAT8_E4M3FN)) {
		nki_fail(k, loc, "float8_e4m3 and float8_e4m3fn cannot be multiplied with each other");
		return false;
	}
	return true;
}

static bool is_fp8(enum nki_dtype dtype)
{
	return !nki_dtype_is_int(dtype) && nki_dtype_size(dtype) == 1;
}

static bool dst_type_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			struct nki_view stationary, bool transpose)
{
	bool bf16 = k->arch->nc_version >= 4;
	bool ok;

	if (transpose)	/* fp8 comes out in 16 bits */
		ok = is_fp8(stationary.dtype) ? nki_dtype_size(dst.dtype) == 2 :
						dst.dtype == stationary.dtype;
	else
		ok = dst.dtype == NKI_FLOAT32 || (bf16 && dst.dtype == NKI_BFLOAT16);
	if (!ok)
		nki_fail(k, loc, "dst is %s; allowed: %s", nki_dtype_text(dst.dtype),
			 transpose ? "the type of stationary (of fp8: a 16-bit type)" :
			 bf16	   ? "float32, bfloat16" :
				     "float32");
	return ok;
}

static bool bank_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst)
{
	unsigned int size = nki_dtype_size(dst.dtype);
	uint64_t n = nki_free_elements(dst);
	uint64_t byte = dst.buf->base + dst.offset;

	if (k->arch->nc_version >= 4)
		return true;
	if (n <= 512 && byte / NEURON_PSUM_BANK_BYTES ==
				(byte + (dst.reg.id ? 0 : n * size - 1)) / NEURON_PSUM_BANK_BYTES)
		return true;
	nki_fail(k, loc, "dst has %llu elements from byte %llu of a partition; allowed on %s: at most 512, in one bank of %d bytes",
		 (unsigned long long)n, (unsigned long long)byte, k->arch->name, NEURON_PSUM_BANK_BYTES);
	return false;
}

/* @halves: 2 in double_row mode, where a dimension of 2 follows the partition. */
static bool matmul_shape_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			    struct nki_view s, struct nki_view m, unsigned int halves)
{
	uint64_t columns = nki_free_elements(s) / halves, n = nki_free_elements(m) / halves;
	uint64_t limit = k->arch->nc_version < 4 ? 512 : nki_dtype_size(dst.dtype) == 2 ? 8192 : 4096;

	if (s.num[0] != m.num[0]) {
		nki_fail(k, loc, "stationary has K = %u partitions, moving %u; they must be equal",
			 s.num[0], m.num[0]);
		return false;
	}
	if (columns > 128) {
		nki_fail(k, loc, "stationary has M = %llu columns; allowed: at most 128",
			 (unsigned long long)columns);
		return false;
	}
	if (n > limit) {
		nki_fail(k, loc, "moving has N = %llu columns; allowed on %s: at most %llu",
			 (unsigned long long)n, k->arch->name, (unsigned long long)limit);
		return false;
	}
	if (dst.num[0] == columns && nki_free_elements(dst) == n)
		return true;
	nki_fail(k, loc, "dst has %u partitions of %llu elements; wanted: M = %llu of N = %llu", dst.num[0],
		 (unsigned long long)nki_free_elements(dst), (unsigned long long)columns,
		 (unsigned long long)n);
	return false;
}

static bool spaces_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		      struct nki_view s, struct nki_view m)
{
	if (!nki_live(k, loc, "dst", dst) || !nki_live(k, loc, "stationary", s) ||
	    !nki_live(k, loc, "moving", m))
		return false;
	if (dst.buf->space == NEURON_SPACE_PSUM && s.buf->space == NEURON_SPACE_SBUF &&
	    m.buf->space == NEURON_SPACE_SBUF)
		return true;
	nki_fail(k, loc, "dst in %s, stationary in %s, moving in %s; allowed: PSUM, SBUF, SBUF",
		 nki_space_text(dst.buf->space), nki_space_text(s.buf->space),
		 nki_space_text(m.buf->space));
	return false;
}

/* ------------------------------------------------------------------------ */
/* Tiles of the array							    */

static bool tile_size_ok(struct nki_kernel *k, unsigned int size)
{
	return size == 64 || size == 128 || (size == 32 && k->arch->nc_version >= 3);
}

/* @size and @position are of nki.isa: (0, 0) of size: the whole array. */
static bool find_tile(struct nki_kernel *k, struct nki_loc loc, const unsigned int *position,
		      const unsigned int *size, struct tile *t)
{
	*t = (struct tile){ 0, 128, 0, 128, 0 };
	if (!size[0] && !size[1] && !position[0] && !position[1])
		return true;
	if (!tile_size_ok(k, size[0]) || !tile_size_ok(k, size[1])) {
		nki_fail(k, loc, "tile_size %u x %u; allowed on %s: %s64, 128", size[0], size[1],
			 k->arch->name, k->arch->nc_version >= 3 ? "32, " : "");
		return false;
	}
	if (position[0] % size[0] || position[1] % size[1] || position[0] >= 128 || position[1] >= 128) {
		nki_fail(k, loc, "tile_position (%u, %u); allowed: multiples of tile_size (%u, %u) below 128",
			 position[0], position[1], size[0], size[1]);
		return false;
	}
	*t = (struct tile){ position[0], size[0], position[1], size[1], 0 };
	if (size[0] != 128 || size[1] != 128)
		t->aux = position[0] / 32 | position[1] / 32 << 4 | size[0] / 32 << 8 | size[1] / 32 << 12;
	return true;
}

static bool fits_tile(struct nki_kernel *k, struct nki_loc loc, const struct tile *t, unsigned int rows,
		      unsigned int columns, struct nki_view s, struct nki_view m)
{
	if (rows > t->rows || columns > t->columns) {
		nki_fail(k, loc, "stationary is %u x %u; allowed: the tile_size, %u x %u", rows, columns,
			 t->rows, t->columns);
		return false;
	}
	if (t->aux && (s.indirect || m.indirect)) {
		nki_fail(k, loc, "an indirect operand with a tile_size; allowed: the whole array");
		return false;
	}
	return true;
}

/* ------------------------------------------------------------------------ */
/* Weights								    */

static bool same_weights(const struct nki_weights *w, const struct neuron_insn *ld)
{
	return w->w.opcode == ld->opcode && w->w.flags == ld->flags && w->w.aux == ld->aux &&
	       !memcmp(w->w.ap, ld->ap, sizeof(ld->ap)) && !memcmp(w->w.imm, ld->imm, sizeof(ld->imm));
}

static bool dynamic(struct nki_view v)
{
	return v.reg.id || v.count_reg.id || v.indirect;
}

/* Forgets what the tile replaces; returns a free slot. */
static struct nki_weights *replace(struct nki_kernel *k, const struct tile *t)
{
	struct nki_weights *slot = &k->weights[0];

	for (unsigned int i = 0; i < NKI_PE_TILES; i++) {
		struct nki_weights *w = &k->weights[i];

		if (w->valid && w->row < t->row + t->rows && t->row < w->row + w->rows &&
		    w->column < t->column + t->columns && t->column < w->column + w->columns)
			w->valid = false;
		if (!w->valid)
			slot = w;
	}
	return slot;
}

/* The array keeps its weights, so the same ones need not be loaded twice. */
static void load(struct nki_kernel *k, struct nki_insn *ld, const struct tile *t, struct nki_view s,
		 struct nki_view second)
{
	struct nki_weights *slot;

	for (unsigned int i = 0; i < NKI_PE_TILES; i++) {
		if (k->weights[i].valid && !dynamic(s) && same_weights(&k->weights[i], &ld->w))
			return;
	}
	nki_emit(k, ld);
	slot = replace(k, t);
	slot->valid = !dynamic(s);
	slot->w = ld->w;
	slot->row = t->row;
	slot->rows = t->rows;
	slot->column = t->column;
	slot->columns = t->columns;
	nki_view_access(s, false, &slot->bytes);
	slot->has_scales = second.buf;
	if (second.buf)
		nki_view_access(second, false, &slot->scales);
}

/* ------------------------------------------------------------------------ */
/* nc_matmul								    */

static unsigned int matmul_flags(const struct nki_matmul_args *args)
{
	unsigned int flags = args->perf_mode << NEURON_FLAG_PERF_SHIFT;

	if (args->is_transpose)
		flags |= NEURON_FLAG_TRANSPOSE;
	return flags;
}

static bool double_row_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view s,
			  struct nki_view m, const struct nki_matmul_args *args)
{
	if (args->perf_mode == NKI_PERF_NONE)
		return true;
	if (args->perf_mode != NKI_PERF_DOUBLE_ROW) {
		nki_fail(k, loc, "perf_mode %d; allowed: none, double_row", args->perf_mode);
		return false;
	}
	if (!nki_generation_ok(k, loc, 3))
		return false;
	if (!is_fp8(s.dtype) || !is_fp8(m.dtype) || s.dtype == NKI_FLOAT8_E3M4 || m.dtype == NKI_FLOAT8_E3M4) {
		nki_fail(k, loc, "double_row with stationary %s, moving %s; allowed: float8_e4m3, float8_e5m2, on Trn3 float8_e4m3fn",
			 nki_dtype_text(s.dtype), nki_dtype_text(m.dtype));
		return false;
	}
	if (s.dims < 3 || m.dims < 3 || s.num[1] != 2 || m.num[1] != 2) {
		nki_fail(k, loc, "double_row takes (K, 2, M) and (K, 2, N): the first free dimension of both must have 2 elements");
		return false;
	}
	if (args->is_transpose || (args->tile_size[1] && args->tile_size[1] != 128)) {
		nki_fail(k, loc, "double_row with is_transpose or a tile of less than 128 columns; allowed: neither");
		return false;
	}
	return true;
}

static bool matmul_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view s,
		      struct nki_view m, const struct nki_matmul_args *args, struct tile *t)
{
	unsigned int halves = args->perf_mode ? 2 : 1;

	if (!nki_ok(k) || !spaces_ok(k, loc, dst, s, m) || !double_row_ok(k, loc, s, m, args) ||
	    !matmul_shape_ok(k, loc, dst, s, m, halves) || !matmul_types_ok(k, loc, s, m) ||
	    !find_tile(k, loc, args->tile_position, args->tile_size, t) ||
	    !fits_tile(k, loc, t, s.num[0], nki_free_elements(s) / halves, s, m))
		return false;
	if (args->is_transpose && !nki_generation_ok(k, loc, 3))
		return false;
	if (args->is_transpose && (m.indirect || args->accumulate)) {
		nki_fail(k, loc, "is_transpose with an indirect moving operand or accumulate; allowed: neither");
		return false;
	}
	return dst_type_ok(k, loc, dst, s, args->is_transpose) && bank_ok(k, loc, dst);
}

void nki_nc_matmul_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		    struct nki_view stationary, struct nki_view moving,
		    const struct nki_matmul_args *args)
{
	struct nki_insn *ld, *mm;
	struct tile t;

	if (!matmul_ok(k, loc, dst, stationary, moving, args, &t))
		return;
	ld = nki_begin(k, loc, NEURON_OP_LDWEIGHTS, NKI_ENGINE_TENSOR, 0);
	mm = nki_begin(k, loc, NEURON_OP_MATMUL, NKI_ENGINE_TENSOR, 0);
	if (!ld || !mm || !nki_put_view(k, loc, ld, 1, "stationary", stationary, 0) ||
	    !nki_put_view(k, loc, mm, 0, "dst", dst, 0) || !nki_put_view(k, loc, mm, 1, "moving", moving, 0))
		return;
	ld->w.flags |= htole16(args->perf_mode << NEURON_FLAG_PERF_SHIFT);
	mm->w.flags |= htole16(matmul_flags(args));
	if (args->is_stationary_onezero) {
		ld->w.flags |= htole16(NEURON_FLAG_ONEZERO_STATIONARY);
		mm->w.flags |= htole16(NEURON_FLAG_ONEZERO_STATIONARY);
	}
	if (args->is_moving_onezero)
		mm->w.flags |= htole16(NEURON_FLAG_ONEZERO_MOVING);
	ld->w.aux = htole32(t.aux);
	mm->w.aux = htole32(t.aux);
	if (args->accumulate) {
		mm->w.flags |= htole16(NEURON_FLAG_ACCUMULATE);
		nki_add_access(k, mm, dst, false);
	}
	load(k, ld, &t, stationary, NKI_NONE);
	nki_emit(k, mm);
}

/* ------------------------------------------------------------------------ */
/* nc_matmul_mx								    */

/* The scales of a quadrant lie in four partitions from 0, 4, 8 or 12 of it on. */
static bool put_scale(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn, const char *what,
		      struct nki_view v, struct nki_view data)
{
	unsigned int parts = data.num[0] <= 32 ? data.num[0] / 8 : data.num[0] - 28;

	if (!nki_live(k, loc, what, v) || !nki_type_ok(k, loc, what, v.dtype, 'e'))
		return false;
	if (v.buf->space != NEURON_SPACE_SBUF || v.part % 32 > 12 || v.part % 4 || v.num[0] < parts ||
	    nki_free_elements(v) != nki_free_elements(data)) {
		nki_fail(k, loc, "%s has %u partitions from %u of %llu elements in %s; wanted: at least %u, from 0, 4, 8 or 12 of a quadrant, of %llu in SBUF",
			 what, v.num[0], v.part, (unsigned long long)nki_free_elements(v),
			 nki_space_text(v.buf->space), parts,
			 (unsigned long long)nki_free_elements(data));
		return false;
	}
	if (!v.indirect != !data.indirect) {
		nki_fail(k, loc, "%s and its data: one is indirect, one is not", what);
		return false;
	}
	v.num[0] = parts;
	if (v.indirect ? !nki_put_indirect(k, loc, insn, 2, what, v, &insn->w.ap[2]) :
			 !nki_put_ap(k, loc, what, v, 0, &insn->w.ap[2], NULL, true))
		return false;
	return nki_put_fix(k, loc, insn, v, &insn->w.ap[2].offset_reg) && nki_add_access(k, insn, v, false);
}

static bool mx_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view s,
		  struct nki_view m, const struct nki_matmul_mx_args *args, struct tile *t)
{
	const unsigned int size[2] = { args->tile_size[0],
				       args->tile_size[0] && !args->tile_size[1] ? 128 : args->tile_size[1] };

	if (!nki_ok(k) || !nki_generation_ok(k, loc, 4) || !spaces_ok(k, loc, dst, s, m) ||
	    !matmul_shape_ok(k, loc, dst, s, m, 1) || !dst_type_ok(k, loc, dst, s, false) ||
	    !find_tile(k, loc, args->tile_position, size, t) ||
	    !fits_tile(k, loc, t, s.num[0], nki_free_elements(s), s, m))
		return false;
	if (t->columns != 128) {
		nki_fail(k, loc, "tile_size %u x %u; allowed: rows only", size[0], size[1]);
		return false;
	}
	if (s.num[0] % 32 || nki_free_elements(s) % 2) {
		nki_fail(k, loc, "stationary is %u x %llu; allowed: a multiple of 32 partitions, an even number of columns",
			 s.num[0], (unsigned long long)nki_free_elements(s));
		return false;
	}
	return true;
}

void nki_nc_matmul_mx_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
		       struct nki_view stationary, struct nki_view moving,
		       struct nki_view stationary_scale, struct nki_view moving_scale,
		       const struct nki_matmul_mx_args *args)
{
	struct nki_insn *ld, *mm;
	struct tile t;

	if (!mx_ok(k, loc, dst, stationary, moving, args, &t))
		return;
	ld = nki_begin(k, loc, NEURON_OP_LDWEIGHTS_MX, NKI_ENGINE_TENSOR, 0);
	mm = ld ? nki_begin(k, loc, NEURON_OP_MATMUL_MX, NKI_ENGINE_TENSOR, 0) : NULL;
	if (!mm || !nki_put_view(k, loc, ld, 1, "stationary", stationary, 0) ||
	    !put_scale(k, loc, ld, "stationary_scale", stationary_scale, stationary) ||
	    !nki_put_view(k, loc, mm, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, mm, 1, "moving", moving, 0) ||
	    !put_scale(k, loc, mm, "moving_scale", moving_scale, moving))
		return;
	ld->w.aux = htole32(t.aux);
	mm->w.aux = htole32(t.aux);
	if (args->accumulate) {
		mm->w.flags |= htole16(NEURON_FLAG_ACCUMULATE);
		nki_add_access(k, mm, dst, false);
	}
	load(k, ld, &t, stationary, stationary_scale);
	nki_emit(k, mm);
}

/* ------------------------------------------------------------------------ */
/* nc_matmul_sparse							    */

static bool sparse_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view m,
		      struct nki_view s, struct nki_view tag, unsigned int ratio)
{
	if (!nki_ok(k) || !nki_generation_ok(k, loc, 3) || !spaces_ok(k, loc, dst, s, m) ||
	    !nki_live(k, loc, "tag", tag) || !matmul_types_ok(k, loc, s, m) ||
	    !dst_type_ok(k, loc, dst, s, false) || !bank_ok(k, loc, dst))
		return false;
	if (ratio != 16 && ratio != 12 && ratio != 8) {
		nki_fail(k, loc, "ratio 4 of %u; allowed: 16, 12, 8", ratio);
		return false;
	}
	if (!nki_shape_is(k, loc, "stationary", s, 128, 128) || !nki_shape_is(k, loc, "tag", tag, 128, 32))
		return false;
	if (m.num[0] != 128 || m.dims != 3 || m.num[1] != ratio / 4 || m.num[2] > 512) {
		nki_fail(k, loc, "moving has %u partitions and %u dimensions; wanted: (128, %u, N), N at most 512",
			 m.num[0], m.dims, ratio / 4);
		return false;
	}
	return nki_shape_is(k, loc, "dst", dst, 128, m.num[2]);
}

void nki_nc_matmul_sparse_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			   struct nki_view moving, struct nki_view stationary, struct nki_view tag,
			   unsigned int ratio, const struct nki_matmul_sparse_args *args)
{
	const struct tile whole = { 0, 128, 0, 128, 0 };
	struct nki_insn *ld, *mm;

	if (!sparse_ok(k, loc, dst, moving, stationary, tag, ratio))
		return;
	ld = nki_begin(k, loc, NEURON_OP_LDWEIGHTS_SPARSE, NKI_ENGINE_TENSOR, 0);
	mm = ld ? nki_begin(k, loc, NEURON_OP_MATMUL_SPARSE, NKI_ENGINE_TENSOR, 0) : NULL;
	if (!mm || !nki_put_view(k, loc, ld, 1, "stationary", stationary, 0) ||
	    !nki_type_ok(k, loc, "tag", tag.dtype, 'o') || !nki_put_view(k, loc, ld, 2, "tag", tag, 0) ||
	    !nki_put_scalar(k, loc, ld, 0, "ratio", nki_i32(ratio), 0) ||
	    !nki_put_view(k, loc, mm, 0, "dst", dst, 0) || !nki_put_view(k, loc, mm, 1, "moving", moving, 0))
		return;
	if (args->accumulate) {
		mm->w.flags |= htole16(NEURON_FLAG_ACCUMULATE);
		nki_add_access(k, mm, dst, false);
	}
	load(k, ld, &whole, stationary, tag);
	nki_emit(k, mm);
}
