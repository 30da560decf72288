// SPDX-License-Identifier: MIT
/* Random numbers. The state is the engine's own, so order on it is program order. */
#include "rules.h"

void nki_dropout_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_view data,
		  struct nki_scalar prob)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_DROPOUT, NKI_ENGINE_VECTOR, 0);

	if (!insn || !nki_put_view(k, loc, insn, 0, "dst", dst, 0) ||
	    !nki_put_view(k, loc, insn, 1, "data", data, 0) ||
	    !nki_same_shape(k, loc, "dst", dst, "data", data) ||
	    !nki_same_type(k, loc, "dst", dst, "data", data) || !nki_f32_or_vec(k, loc, "prob", prob))
		return;
	if ((prob.kind == NEURON_IMM_F32 && !(prob.f >= 0 && prob.f <= 1)) ||
	    (prob.kind == NEURON_IMM_VEC && nki_dtype_is_int(data.dtype) && prob.vec.dtype != NKI_FLOAT32)) {
		nki_fail(k, loc, "prob %g of type %s; allowed: 0 to 1, float32 for integer data",
			 prob.kind == NEURON_IMM_F32 ? (double)prob.f : 0.0,
			 nki_dtype_text(prob.kind == NEURON_IMM_F32 ? NKI_FLOAT32 : prob.vec.dtype));
		return;
	}
	if (nki_put_scalar(k, loc, insn, 0, "prob", prob, data.num[0]))
		nki_emit(k, insn);
}

void nki_rng_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
	      const struct nki_engine_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_RNG, args->engine, NKI_ENGINE_VECTOR);

	if (!insn || (insn->point.engine == NEURON_ENGINE_POOL && !nki_generation_ok(k, loc, 3)))
		return;
	if (nki_put_view(k, loc, insn, 0, "dst", dst, 0))
		nki_emit(k, insn);
}

void nki_set_rng_seed_(struct nki_kernel *k, struct nki_loc loc, struct nki_view src_seeds)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_SET_RNG_SEED, NKI_ENGINE_VECTOR, 0);

	if (insn && nki_put_view(k, loc, insn, 1, "src_seeds", src_seeds, 0) &&
	    nki_shape_is(k, loc, "src_seeds", src_seeds, 1, 1))
		nki_emit(k, insn);
}

/* Words of state in each partition: XORWOW, four generators on the vector engine. */
static bool state_ok(struct nki_kernel *k, struct nki_loc loc, const struct nki_insn *insn,
		     const char *what, struct nki_view v)
{
	bool vector = insn->point.engine == NEURON_ENGINE_DVE;

	if (vector && !nki_generation_ok(k, loc, 4))
		return false;
	return nki_shape_is(k, loc, what, v, v.num[0], vector ? 24 : 6);
}

void nki_rand_set_state_(struct nki_kernel *k, struct nki_loc loc, struct nki_view src_seeds,
			 const struct nki_engine_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_RAND_SET_STATE, args->engine, NKI_ENGINE_GPSIMD);

	if (insn && nki_put_view(k, loc, insn, 1, "src_seeds", src_seeds, 0) &&
	    state_ok(k, loc, insn, "src_seeds", src_seeds))
		nki_emit(k, insn);
}

void nki_rand_get_state_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst,
			 const struct nki_engine_args *args)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_RAND_GET_STATE, args->engine, NKI_ENGINE_GPSIMD);

	if (insn && nki_put_view(k, loc, insn, 0, "dst", dst, 0) && state_ok(k, loc, insn, "dst", dst))
		nki_emit(k, insn);
}

void nki_rand2_(struct nki_kernel *k, struct nki_loc loc, struct nki_view dst, struct nki_scalar min,
		struct nki_scalar max)
{
	struct nki_insn *insn = nki_begin(k, loc, NEURON_OP_RAND2, NKI_ENGINE_VECTOR, 0);

	if (insn && nki_put_view(k, loc, insn, 0, "dst", dst, 0) && nki_f32_or_vec(k, loc, "min", min) &&
	    nki_f32_or_vec(k, loc, "max", max) && nki_put_scalar(k, loc, insn, 0, "min", min, dst.num[0]) &&
	    nki_put_scalar(k, loc, insn, 1, "max", max, dst.num[0]))
		nki_emit(k, insn);
}
