/* SPDX-License-Identifier: MIT */
/*
 * Checks that many instructions share, and the rows of isa.def. Every function that
 * returns bool has reported the error when it returns false.
 */
#ifndef NKI_RULES_H
#define NKI_RULES_H

#include "priv.h"

/* An ALU operator: see NEURON_ALU in isa.def. */
struct nki_alu {
	const char *text;
	char cls;
	unsigned int arity;
	bool reduce;
};

/* A row of isa.def; engines 0: there is none. */
struct nki_row {
	const char *text;
	unsigned int engines, min_nc, words, cost;
	const char *aps, *types;
};

bool nki_find_alu(enum nki_op op, struct nki_alu *alu);
bool nki_alu_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_op op, struct nki_alu *alu);
int nki_act_fn(enum nki_op op);
struct nki_row nki_find_row(unsigned int opcode);

/* A new instruction on @wanted, or on @otherwise; NULL after an error. */
struct nki_insn *nki_begin(struct nki_kernel *k, struct nki_loc loc, unsigned int opcode,
			   enum nki_engine wanted, enum nki_engine otherwise);
bool nki_generation_ok(struct nki_kernel *k, struct nki_loc loc, unsigned int min_nc);
bool nki_same_shape(struct nki_kernel *k, struct nki_loc loc, const char *a_name, struct nki_view a,
		    const char *b_name, struct nki_view b);
bool nki_shape_is(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_view v,
		  unsigned int parts, uint64_t elements);
bool nki_same_type(struct nki_kernel *k, struct nki_loc loc, const char *a_name, struct nki_view a,
		   const char *b_name, struct nki_view b);
bool nki_not_both_psum(struct nki_kernel *k, struct nki_loc loc, struct nki_view a,
		       struct nki_view b);
bool nki_bits_ok(struct nki_kernel *k, struct nki_loc loc, const struct nki_view *v, unsigned int n,
		 const char *op);
bool nki_type_fits(enum nki_dtype dtype, char rule);
const char *nki_type_allowed(char rule);
bool nki_type_ok(struct nki_kernel *k, struct nki_loc loc, const char *what, enum nki_dtype dtype,
		 char rule);
bool nki_put_stage(struct nki_kernel *k, struct nki_loc loc, struct nki_insn *insn,
		   unsigned int stage, enum nki_op op, struct nki_scalar operand, bool reverse,
		   unsigned int parts, struct nki_alu *alu);
bool nki_f32_or_vec(struct nki_kernel *k, struct nki_loc loc, const char *what, struct nki_scalar s);

/* reduce_cmd, reduce_res of the vector engine's accumulators. */
bool nki_reduce_ok(struct nki_kernel *k, struct nki_loc loc, enum nki_reduce_cmd cmd,
		   struct nki_view res, unsigned int parts, bool load);
void nki_read_acc(struct nki_kernel *k, struct nki_loc loc, struct nki_view res, bool negate);

/* MX types: four values in one element. */
bool nki_packed(enum nki_dtype dtype);

#endif /* NKI_RULES_H */
