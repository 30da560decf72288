// SPDX-License-Identifier: MIT
/*
 * Structured sparsity: of every group of 16 (12, 8) rows of the stationary matrix, 4
 * are kept for each column. Partitions 4 g to 4 g + 3 hold what was kept of group g,
 * and a tag of 4 bits for each says which of the group's rows it is. Row t of group g
 * multiplies row t mod CR of the moving operand's partition 4 g + t / CR, CR = ratio / 4.
 */
#include <endian.h>
#include <string.h>

#include "exec_state.h"

bool pe_sparse_load_ok(struct stream *s)
{
	uint32_t ratio = s->imm[0].bits;

	if (s->cur->w.imm[0].kind != NEURON_IMM_I32)
		return exec_bad(s, 4, s->cur->w.imm[0].kind, NEURON_IMM_I32);
	if (ratio != 16 && ratio != 12 && ratio != 8)
		return exec_bad(s, 4, ratio, 16);
	if (s->op[1].parts != 128 || s->op[1].n != 128)
		return exec_bad(s, 1, s->op[1].parts != 128 ? s->op[1].parts : s->op[1].n, 128);
	if (s->op[2].dtype != NEURON_DTYPE_UINT16)
		return exec_bad(s, 2, s->op[2].dtype, NEURON_DTYPE_UINT16);
	if (s->op[2].parts != 128 || s->op[2].n != 32)
		return exec_bad(s, 2, s->op[2].n, 32);
	return true;
}

/* Positions are data: one that the group does not have is a fault. */
void pe_sparse_load(struct stream *s, struct pe_weights *w)
{
	const uint8_t *tags;
	unsigned int p, m;
	uint16_t tag;

	for (p = 0; p < 128; p++) {
		tags = row_gather(&s->op[2], p, s->x->row[0]);
		for (m = 0; m < 128; m++) {
			uint8_t *at = &w->extra[p * 128 + m];

			memcpy(&tag, tags + m / 4 * 2, 2);
			*at = le16toh(tag) >> (4 * (m % 4)) & 15;
			if (*at >= w->ratio) {
				exec_bad(s, 2, *at, w->ratio - 1);
				w->opcode = 0;
				return;
			}
		}
	}
}

/*
 * Each result adds in increasing partition of what was kept. Rows that were not kept are
 * not multiplied by 0: their infinities and NaNs do not matter.
 */
void pe_sparse_matmul(struct stream *s, struct pe_weights *w)
{
	unsigned int n = s->op[0].n, cr = w->ratio / 4, p, m;
	float *moving = s->x->row[1], *out = s->x->row[2];

	for (p = 0; p < 128 && !w->packed; p++)
		s->x->num->load(w->dtype, w->panel + (size_t)p * 128,
				w->raw + (size_t)p * 128 * w->bytes, w->bytes, 128);
	w->packed = true;
	for (p = 0; p < 128; p++)
		row_load(s->x, &s->op[1], p, moving + (size_t)p * cr * n);
	memset(out, 0, (size_t)128 * n * sizeof(*out));
	for (m = 0; m < 128; m++) {
		for (p = 0; p < 128; p++) {
			unsigned int k = (p & ~3u) * cr + w->extra[p * 128 + m];

			s->x->num->fma(out + (size_t)m * n, w->panel[p * 128 + m],
				       moving + (size_t)k * n, n);
		}
	}
	pe_put_rows(s, out, 128);
}
