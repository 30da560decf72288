// SPDX-License-Identifier: MIT
/* Adam: elementwise work over three engines, in strips. */
#include <math.h>

#include "kernels.h"

struct strip {
	struct nki_view p, g, m, v;
};

static struct nki_view load(struct nki_kernel *k, struct nki_view v, unsigned int row)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, v.num[1]);

	nki_dma_copy(k, t, nki_rows(k, v, row, row + 128));
	return t;
}

static void save(struct nki_kernel *k, struct nki_view dst, struct nki_view t, unsigned int row)
{
	nki_dma_copy(k, nki_rows(k, dst, row, row + 128), t);
	nki_free(k, t);
}

static void step(struct nki_kernel *k, struct strip *s, const struct adam *o)
{
	struct nki_view t = nki_sbuf(k, NKI_FLOAT32, 128, s->p.num[1]);
	float m_scale = o->lr / (1 - powf(o->beta1, o->step));
	float v_scale = 1 / (1 - powf(o->beta2, o->step));

	/* m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2 */
	nki_activation(k, t, NKI_SQUARE, s->g, .scale = nki_f32(sqrtf(1 - o->beta2)));
	nki_scalar_tensor_tensor(k, s->v, s->v, NKI_MULTIPLY, nki_f32(o->beta2), NKI_ADD, t);
	nki_tensor_scalar(k, s->g, s->g, NKI_MULTIPLY, nki_f32(1 - o->beta1));
	nki_scalar_tensor_tensor(k, s->m, s->m, NKI_MULTIPLY, nki_f32(o->beta1), NKI_ADD, s->g);
	/* p -= lr m' / (sqrt(v') + eps) */
	nki_activation(k, t, NKI_SQRT, s->v, .scale = nki_f32(v_scale));
	nki_tensor_scalar(k, t, t, NKI_ADD, nki_f32(o->eps));
	nki_reciprocal(k, t, t);
	nki_scalar_tensor_tensor(k, t, s->m, NKI_MULTIPLY, nki_f32(m_scale), NKI_MULTIPLY, t);
	nki_tensor_tensor(k, s->p, s->p, t, NKI_SUBTRACT);
	nki_free(k, t);
	nki_free(k, s->g);
}

void kernel_adam(struct nki_kernel *k, unsigned int R, unsigned int F, struct adam opt)
{
	struct nki_view p = nki_input(k, "p", NKI_FLOAT32, R, F);
	struct nki_view g = nki_input(k, "g", NKI_FLOAT32, R, F);
	struct nki_view m = nki_input(k, "m", NKI_FLOAT32, R, F);
	struct nki_view v = nki_input(k, "v", NKI_FLOAT32, R, F);
	struct nki_view p_new = nki_output(k, "p_new", NKI_FLOAT32, R, F);
	struct nki_view m_new = nki_output(k, "m_new", NKI_FLOAT32, R, F);
	struct nki_view v_new = nki_output(k, "v_new", NKI_FLOAT32, R, F);

	for (unsigned int row = 0; row < R; row += 128) {
		struct strip s = {
			.p = load(k, p, row), .g = load(k, g, row),
			.m = load(k, m, row), .v = load(k, v, row),
		};

		step(k, &s, &opt);
		save(k, p_new, s.p, row);
		save(k, m_new, s.m, row);
		save(k, v_new, s.v, row);
	}
}
