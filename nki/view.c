// SPDX-License-Identifier: MIT
/* Views: arithmetic on shapes and steps; nothing is recorded. */
#include <string.h>

#include "priv.h"

static bool is_tile(struct nki_view v)
{
	return v.buf->space != NEURON_SPACE_HBM;
}

/* First dimension with a step of its own: a tile's partitions have none. */
static unsigned int first_dim(struct nki_view v)
{
	return is_tile(v) ? 1 : 0;
}

static bool view_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view v)
{
	if (!nki_ok(k))
		return false;
	if (!v.buf || v.buf->k != k) {
		nki_fail(k, loc, "the view is not one of this kernel");
		return false;
	}
	return true;
}

static bool dim_ok(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim)
{
	if (dim >= 0 && (unsigned int)dim < v.dims)
		return true;
	nki_fail(k, loc, "dimension %d; the view has dimensions 0 to %u", dim, v.dims - 1);
	return false;
}

static bool not_indirect(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim)
{
	if (v.count_reg.id && v.count_dim == (unsigned int)dim) {
		nki_fail(k, loc, "dimension %d has a dynamic number of elements", dim);
		return false;
	}
	if (v.index && dim == 0) {
		nki_fail(k, loc, "dimension 0 is gathered");
		return false;
	}
	return true;
}

static int64_t element_bytes(struct nki_view v)
{
	return nki_dtype_size(v.dtype);
}

struct nki_view nki_slice_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			   int64_t lo, int64_t hi, int64_t step)
{
	if (!view_ok(k, loc, v))
		return NKI_NONE;
	if (dim == -1)
		dim = v.dims - 1;
	if (!dim_ok(k, loc, v, dim) || !not_indirect(k, loc, v, dim))
		return NKI_NONE;
	if (lo < 0 || lo >= hi || hi > v.num[dim] || step < 1) {
		nki_fail(k, loc, "elements %lld to %lld, step %lld; dimension %d has %u", (long long)lo,
			 (long long)hi, (long long)step, dim, v.num[dim]);
		return NKI_NONE;
	}
	if ((unsigned int)dim < first_dim(v)) {
		if (step != 1) {
			nki_fail(k, loc, "partitions are contiguous: step %lld", (long long)step);
			return NKI_NONE;
		}
		v.part += lo;
	} else {
		v.offset += lo * v.step[dim] * element_bytes(v);
		v.step[dim] *= step;
	}
	v.num[dim] = (hi - lo + step - 1) / step;
	return v;
}

static struct nki_view remove_dim(struct nki_view v, unsigned int dim)
{
	for (unsigned int d = dim; d + 1 < v.dims; d++) {
		v.num[d] = v.num[d + 1];
		v.step[d] = v.step[d + 1];
	}
	if (v.count_reg.id && v.count_dim > dim)
		v.count_dim--;
	v.dims--;
	return v;
}

struct nki_view nki_index_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			   int64_t i)
{
	v = nki_slice_(k, loc, v, dim, i, i + 1, 1);
	if (!v.buf)
		return v;
	if (dim == -1)
		dim = v.dims - 1;
	if ((unsigned int)dim < first_dim(v)) {
		nki_fail(k, loc, "the partition dimension cannot be removed");
		return NKI_NONE;
	}
	if (v.dims == 1)	/* a scalar stays a dimension of one element */
		return v;
	return remove_dim(v, dim);
}

struct nki_view nki_expand_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim)
{
	if (!view_ok(k, loc, v))
		return NKI_NONE;
	if (dim < (int)first_dim(v) || dim > (int)v.dims || v.dims == NKI_MAX_DIMS) {
		nki_fail(k, loc, "a new dimension before %d; allowed: %u to %u, and %d dimensions in all",
			 dim, first_dim(v), v.dims, NKI_MAX_DIMS);
		return NKI_NONE;
	}
	for (int d = v.dims; d > dim; d--) {
		v.num[d] = v.num[d - 1];
		v.step[d] = v.step[d - 1];
	}
	v.num[dim] = 1;
	v.step[dim] = 0;
	if (v.count_reg.id && v.count_dim >= (unsigned int)dim)
		v.count_dim++;
	v.dims++;
	return v;
}

struct nki_view nki_broadcast_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			       uint32_t n)
{
	if (!view_ok(k, loc, v) || !dim_ok(k, loc, v, dim))
		return NKI_NONE;
	if ((unsigned int)dim < first_dim(v) || v.num[dim] != 1 || !n) {
		nki_fail(k, loc, "dimension %d of %u elements to %u; allowed: a free dimension of 1 element",
			 dim, v.num[dim], n);
		return NKI_NONE;
	}
	v.num[dim] = n;
	v.step[dim] = 0;
	return v;
}

/* Steps for new dimensions [n0, n1) over old ones [o0, o1) of the same product. */
static bool reshape_group(const struct nki_view *v, unsigned int o0, unsigned int o1,
			  struct nki_view *out, unsigned int n0, unsigned int n1)
{
	int64_t step = 1;
	bool have = false;

	for (unsigned int d = o1; d-- > o0;) {
		if (v->num[d] == 1)
			continue;
		if (have && v->step[d] != step)
			return false;
		step = v->step[d] * v->num[d];
		have = true;
	}
	step = 1;
	for (unsigned int d = o1; d-- > o0;) {
		if (v->num[d] != 1) {
			step = v->step[d];
			break;
		}
	}
	for (unsigned int d = n1; d-- > n0;) {
		out->step[d] = step;
		step *= out->num[d];
	}
	return true;
}

static bool reshape_dims(const struct nki_view *v, struct nki_view *out, unsigned int first)
{
	unsigned int o = first, n = first;

	while (o < v->dims || n < out->dims) {
		unsigned int o0 = o, n0 = n;
		uint64_t po = o < v->dims ? v->num[o++] : 1;
		uint64_t pn = n < out->dims ? out->num[n++] : 1;

		while (po != pn) {
			if (po < pn && o < v->dims)
				po *= v->num[o++];
			else if (pn < po && n < out->dims)
				pn *= out->num[n++];
			else
				return false;
		}
		if (!reshape_group(v, o0, o, out, n0, n))
			return false;
	}
	return true;
}

struct nki_view nki_reshape_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			     const uint32_t *num, size_t dims)
{
	struct nki_view out = v;
	unsigned int first;

	if (!view_ok(k, loc, v))
		return NKI_NONE;
	first = first_dim(v);
	if (!dims || dims > NKI_MAX_DIMS || v.count_reg.id || v.index || (first && num[0] != v.num[0])) {
		nki_fail(k, loc, "allowed: 1 to %d dimensions, a tile's partitions as before (%u), no dynamic or gathered dimension",
			 NKI_MAX_DIMS, v.num[0]);
		return NKI_NONE;
	}
	memcpy(out.num, num, dims * sizeof(*num));
	out.dims = dims;
	if (!reshape_dims(&v, &out, first)) {
		nki_fail(k, loc, "the elements cannot be described with these dimensions: their number differs, or they are not at one distance");
		return NKI_NONE;
	}
	return out;
}

struct nki_view nki_permute_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			     const uint32_t *order, size_t dims)
{
	struct nki_view out = v;
	unsigned int seen = 0;

	if (!view_ok(k, loc, v))
		return NKI_NONE;
	for (size_t d = 0; d < dims && d < v.dims; d++) {
		if (order[d] < v.dims)
			seen |= 1u << order[d];
		else
			seen = 0;
	}
	if (dims != v.dims || seen != (1u << dims) - 1 || (first_dim(v) && order[0])) {
		nki_fail(k, loc, "allowed: each of the %u dimensions once, a tile's dimension 0 first",
			 v.dims);
		return NKI_NONE;
	}
	if (v.index && order[0]) {
		nki_fail(k, loc, "dimension 0 is gathered and must stay first");
		return NKI_NONE;
	}
	for (size_t d = 0; d < dims; d++) {
		out.num[d] = v.num[order[d]];
		out.step[d] = v.step[order[d]];
		if (v.count_reg.id && v.count_dim == order[d])
			out.count_dim = d;
	}
	return out;
}

struct nki_view nki_bitcast_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			     enum nki_dtype dtype)
{
	if (!view_ok(k, loc, v))
		return NKI_NONE;
	if (nki_dtype_size(dtype) != nki_dtype_size(v.dtype)) {
		nki_fail(k, loc, "%s has not the size of %s", nki_dtype_text(dtype),
			 nki_dtype_text(v.dtype));
		return NKI_NONE;
	}
	v.dtype = dtype;
	return v;
}

struct nki_view nki_dyn_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			 struct nki_reg reg)
{
	if (!view_ok(k, loc, v) || !dim_ok(k, loc, v, dim) || !nki_reg_ok(k, loc, reg) ||
	    !not_indirect(k, loc, v, dim))
		return NKI_NONE;
	if ((unsigned int)dim < first_dim(v)) {
		nki_fail(k, loc, "the partition cannot come from a register");
		return NKI_NONE;
	}
	if (v.reg.id) {
		nki_fail(k, loc, "the view has a register offset already; allowed: one");
		return NKI_NONE;
	}
	v.reg = reg;
	v.reg_scale = v.step[dim] * element_bytes(v);
	return v;
}

struct nki_view nki_dyn_num_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v, int dim,
			     struct nki_reg reg)
{
	if (!view_ok(k, loc, v) || !dim_ok(k, loc, v, dim) || !nki_reg_ok(k, loc, reg) ||
	    !not_indirect(k, loc, v, dim))
		return NKI_NONE;
	if ((unsigned int)dim < first_dim(v) || v.count_reg.id) {
		nki_fail(k, loc, "allowed: one dynamic number, not that of partitions");
		return NKI_NONE;
	}
	v.count_reg = reg;
	v.count_dim = dim;
	return v;
}

struct nki_view nki_gather_(struct nki_kernel *k, struct nki_loc loc, struct nki_view v,
			    struct nki_view index)
{
	struct nki_view *copy;

	if (!view_ok(k, loc, v) || !view_ok(k, loc, index))
		return NKI_NONE;
	if (is_tile(v) || v.index || v.dims < 2 || v.reg.id || v.offset ||
	    v.num[0] != v.buf->num[0] || v.step[0] * element_bytes(v) * v.num[0] != (int64_t)v.buf->bytes) {
		nki_fail(k, loc, "the tensor must be in HBM, with all rows of dimension 0 from the first on, and no other indirection");
		return NKI_NONE;
	}
	if (index.buf->space != NEURON_SPACE_SBUF || nki_free_elements(index) != 1 ||
	    (index.dtype != NKI_UINT32 && index.dtype != NKI_INT32) || index.reg.id) {
		nki_fail(k, loc, "the index must be a (P, 1) tile of uint32 or int32 in SBUF");
		return NKI_NONE;
	}
	copy = nki_zalloc(k, sizeof(*copy));
	if (!copy)
		return NKI_NONE;
	*copy = index;
	v.index = copy;
	v.num[0] = index.num[0];
	return v;
}
