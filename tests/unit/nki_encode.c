// SPDX-License-Identifier: MIT
/*
 * What each call becomes: the words are decoded by the disassembler, and compared
 * with text written from the documents. Every opcode must appear.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disasm.h"
#include "neff.h"
#include "nki.h"
#include "kselftest_harness.h"

static bool seen[256];

FIXTURE(encode) {
	struct nki_kernel *k;
	struct nki_view f, g, h, b, u, i, col, ps, ps2, x, y;
};

FIXTURE_SETUP(encode)
{
	struct nki_kernel *k = nki_kernel_new("encode", "trn2");

	self->k = k;
	self->x = nki_input(k, "x", NKI_FLOAT32, 10, 128, 64);
	self->y = nki_output(k, "y", NKI_FLOAT32, 128, 64);
	self->f = nki_sbuf(k, NKI_FLOAT32, 128, 64);	/* at 0x0 */
	self->g = nki_sbuf(k, NKI_FLOAT32, 128, 64);	/* 0x100 */
	self->h = nki_sbuf(k, NKI_BFLOAT16, 128, 64);	/* 0x200 */
	self->b = nki_sbuf(k, NKI_BFLOAT16, 128, 64);	/* 0x280 */
	self->u = nki_sbuf(k, NKI_UINT8, 128, 64);	/* 0x300 */
	self->i = nki_sbuf(k, NKI_INT32, 128, 64);	/* 0x340 */
	self->col = nki_sbuf(k, NKI_FLOAT32, 128, 1);	/* 0x440 */
	self->ps = nki_psum(k, NKI_FLOAT32, 64, 64);	/* bank 0 */
	self->ps2 = nki_psum(k, NKI_FLOAT32, 128, 64);	/* bank 1 */
}

FIXTURE_TEARDOWN(encode)
{
	nki_kernel_free(self->k);
}

/* Waits and updates are another test's matter: cut them out of the text. */
static void strip(char *text)
{
	char *in = text, *out = text;

	while (*in) {
		if (in[0] == ' ' && in[1] == '$') {
			in++;
			while (*in && *in != ' ')
				in++;
			continue;
		}
		*out++ = *in++;
	}
	*out = 0;
}

/* Text of the n-th instruction of an engine that is not a semaphore operation. */
static const char *text_of(struct nki_kernel *k, enum nki_engine engine, unsigned int n)
{
	static char text[1024];
	const unsigned char *words;
	const void *p;
	size_t count, pc = 0;

	if (nki_stream(k, engine, &p, &count))
		return nki_error(k);
	words = p;
	while (pc < count) {
		unsigned int opcode = words[pc * NEURON_WORD_BYTES];

		seen[opcode] = true;
		pc += nki_disasm(words + pc * NEURON_WORD_BYTES, count - pc, text, sizeof(text));
		strip(text);
		if (opcode != NEURON_OP_EVENT_SEMAPHORE && !n--)
			return text;
	}
	return "no such instruction";
}

#define EXPECT_TEXT(engine, n, expected) EXPECT_STREQ(expected, text_of(self->k, engine, n))

TEST_F(encode, dma)
{
	struct nki_kernel *k = self->k;

	nki_dma_copy(k, self->f, nki_index(k, self->x, 0, 2));
	nki_dma_copy(k, nki_cols(k, self->y, 8, 16), nki_cols(k, self->h, 0, 8), .queue = 12,
		     .engine = NKI_ENGINE_SCALAR);
	EXPECT_TEXT(NKI_ENGINE_SYNC, 0,
		    "DMA_DIRECT2D queue=0 src=fp32@arg0+0x10000[4][8192] dst=fp32@0x0[1][64] dst_channels=128");
	EXPECT_TEXT(NKI_ENGINE_SCALAR, 0,
		    "DMA_DIRECT2D queue=11 src=bf16@0x200[1][8] src_channels=128 dst=fp32@arg1+0x20[4,256][8,128]");
}

TEST_F(encode, matmul)
{
	struct nki_kernel *k = self->k;

	nki_nc_matmul(k, self->ps, self->h, self->b);
	nki_nc_matmul(k, self->ps, self->h, nki_slice_step(k, self->b, 1, 0, 64, 1), .accumulate = true);
	EXPECT_TEXT(NKI_ENGINE_TENSOR, 0, "LDWEIGHTS src=bf16@0x200[1][64] 64*128");
	EXPECT_TEXT(NKI_ENGINE_TENSOR, 1,
		    "MATMUL src=bf16@0x280[1][64] dst=fp32@0x2000000[1][64] dst_channels=64 64*128 acc_flags=2");
	/* The same weights are not loaded again. */
	EXPECT_TEXT(NKI_ENGINE_TENSOR, 2,
		    "MATMUL src=bf16@0x280[1][64] dst=fp32@0x2000000[1][64] dst_channels=64 64*128 acc_flags=1 accumulate");
	EXPECT_TEXT(NKI_ENGINE_TENSOR, 3, "HALT");
}

TEST_F(encode, weights_written)
{
	struct nki_kernel *k = self->k;

	nki_nc_matmul(k, self->ps, self->h, self->b);
	nki_memset(k, nki_cols(k, self->h, 3, 4), 1);
	nki_nc_matmul(k, self->ps, self->h, self->b, .accumulate = true);
	EXPECT_TEXT(NKI_ENGINE_TENSOR, 2, "LDWEIGHTS src=bf16@0x200[1][64] 64*128");
}

TEST_F(encode, transposes)
{
	struct nki_kernel *k = self->k;
	struct nki_view t = nki_psum(k, NKI_BFLOAT16, 64, 128);

	nki_nc_transpose(k, t, self->h);
	nki_nc_transpose(k, nki_cols(k, nki_rows(k, self->f, 0, 32), 0, 32),
			 nki_cols(k, nki_rows(k, self->g, 32, 64), 32, 64));
	EXPECT_TEXT(NKI_ENGINE_TENSOR, 0, "LDWEIGHTS src=bf16@0x200[1][64] 64*128");
	EXPECT_TEXT(NKI_ENGINE_TENSOR, 1,
		    "MATMUL src=bf16@0x37f00[1][128] dst=bf16@0x2001000[1][128] dst_channels=64 128*128 acc_flags=2 transpose");
	EXPECT_TEXT(NKI_ENGINE_GPSIMD, 0, "MEMSET dst=bf16@0x37f00[1][128] imm0=1.0 channels=128");
	EXPECT_TEXT(NKI_ENGINE_GPSIMD, 1,
		    "AFFINE_SELECT op0=equal src=bf16@0x37f00[1][128] pattern=[-1][128] dst=bf16@0x37f00[1][128] imm0=0 imm1=0.0 channel_multiplier=1 channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 0,
		    "TRANSPOSE src=fp32@0x180+p32[1][32] dst=fp32@0x0[1][32] channels=32");
}

TEST_F(encode, activation)
{
	struct nki_kernel *k = self->k;

	nki_activation(k, self->h, NKI_GELU, self->ps2, .bias = nki_vec(self->col),
		       .scale = nki_f32(0.5f));
	nki_activation_reduce(k, self->f, NKI_SQUARE, self->g, NKI_ADD, self->col);
	EXPECT_TEXT(NKI_ENGINE_SCALAR, 0,
		    "ACTIVATE func=gelu src=fp32@0x2000800[1][64] dst=bf16@0x200[1][64] scale=0.5 bias=fp32@0x440[1][1] channels=128");
	EXPECT_TEXT(NKI_ENGINE_SCALAR, 1,
		    "ACTIVATE func=square acc_op=add src=fp32@0x100[1][64] dst=fp32@0x0[1][64] scale=1.0 acc_cmd=3 channels=128");
	EXPECT_TEXT(NKI_ENGINE_SCALAR, 2, "ACT_READ_ACC dst=fp32@0x440[1][1] channels=128");
}

TEST_F(encode, elementwise)
{
	struct nki_kernel *k = self->k;

	nki_tensor_tensor(k, self->f, self->g, self->ps2, NKI_SUBTRACT);
	nki_tensor_tensor(k, self->i, self->i, self->i, NKI_ADD);
	nki_tensor_scalar(k, self->f, self->g, NKI_SUBTRACT, nki_f32(1), .reverse0 = true,
			  .op1 = NKI_MULTIPLY, .operand1 = nki_vec(self->col));
	nki_tensor_scalar(k, self->i, self->i, NKI_LEFT_SHIFT, nki_i32(3));
	nki_tensor_scalar(k, self->f, self->g, NKI_MULTIPLY, nki_f32(2), .op1 = NKI_ADD,
			  .operand1 = nki_f32(-1), .engine = NKI_ENGINE_SCALAR);
	nki_scalar_tensor_tensor(k, self->f, self->g, NKI_MULTIPLY, nki_f32(0.25f), NKI_ADD, self->h,
				 .reverse1 = true);
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 0,
		    "TENSOR_TENSOR op0=subtract src=fp32@0x100[1][64] src1=fp32@0x2000800[1][64] dst=fp32@0x0[1][64] channels=128");
	EXPECT_TEXT(NKI_ENGINE_GPSIMD, 0,
		    "TENSOR_TENSOR op0=add src=int32@0x340[1][64] src1=int32@0x340[1][64] dst=int32@0x340[1][64] channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 1,
		    "SCALAR op0=subtract op1=multiply src=fp32@0x100[1][64] dst=fp32@0x0[1][64] imm0=1.0 imm1=fp32@0x440[1][1] channels=128 reverse0");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 2,
		    "SCALAR op0=left_shift src=int32@0x340[1][64] dst=int32@0x340[1][64] imm0=3 channels=128");
	EXPECT_TEXT(NKI_ENGINE_SCALAR, 0,
		    "SCALAR op0=multiply op1=add src=fp32@0x100[1][64] dst=fp32@0x0[1][64] imm0=2.0 imm1=-1.0 channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 3,
		    "SCALAR_TENSOR_TENSOR op0=multiply op1=add src=fp32@0x100[1][64] src1=bf16@0x200[1][64] dst=fp32@0x0[1][64] imm0=0.25 channels=128 reverse1");
}

TEST_F(encode, copies)
{
	struct nki_kernel *k = self->k;

	nki_tensor_copy(k, self->f, self->ps2);
	nki_tensor_copy_predicated(k, self->f, self->g, self->u, .reverse_pred = true);
	nki_tensor_copy_predicated(k, self->f, NKI_NONE, self->u, .scalar = nki_f32(7));
	nki_select(k, self->f, self->u, self->g, nki_f32(-2));
	nki_memset(k, self->u, 200);
	nki_reciprocal(k, self->f, self->g);
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 0,
		    "TENSOR_COPY src=fp32@0x2000800[1][64] dst=fp32@0x0[1][64] channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 1,
		    "COPY_PREDICATED src=fp32@0x100[1][64] predicate=uint8@0x300[1][64] dst=fp32@0x0[1][64] channels=128 reverse_pred");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 2,
		    "COPY_PREDICATED predicate=uint8@0x300[1][64] dst=fp32@0x0[1][64] imm0=7.0 channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 3,
		    "SELECT src=fp32@0x100[1][64] predicate=uint8@0x300[1][64] dst=fp32@0x0[1][64] imm0=-2.0 channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 4, "MEMSET dst=uint8@0x300[1][64] imm0=200 channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 5,
		    "RECIPROCAL src=fp32@0x100[1][64] dst=fp32@0x0[1][64] channels=128");
}

TEST_F(encode, reduce)
{
	struct nki_kernel *k = self->k;
	struct nki_view t = nki_reshape(k, self->f, 128, 4, 2, 8);

	nki_tensor_reduce(k, self->col, NKI_MAXIMUM, self->f, 1, .negate = true);
	nki_tensor_reduce(k, nki_reshape(k, nki_cols(k, self->g, 0, 4), 128, 4), NKI_ADD, t, 2);
	nki_tensor_reduce(k, nki_cols(k, self->g, 0, 32), NKI_ADD,
			  nki_permute(k, nki_reshape(k, self->f, 128, 2, 32), 0, 2, 1), 2);
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 0,
		    "REDUCE op0=maximum src=fp32@0x0[1][64] dst=fp32@0x440[1][1] dims=1 channels=128 negate");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 1,
		    "REDUCE op0=add src=fp32@0x0[1,16][16,4] dst=fp32@0x100[1][4] dims=1 channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 2,
		    "REDUCE op0=add src=fp32@0x0[32,1][2,32] dst=fp32@0x100[1][32] dims=1 channels=128");
}

TEST_F(encode, gpsimd)
{
	struct nki_kernel *k = self->k;

	nki_iota(k, self->i, NKI_PATTERN({0, 4}, {2, 16}), .offset = 7, .channel_multiplier = -3);
	EXPECT_TEXT(NKI_ENGINE_GPSIMD, 0,
		    "IOTA pattern=[2,0][16,4] dst=int32@0x340[1][64] imm0=7 imm1=-3 channels=128");
}

TEST_F(encode, views)
{
	struct nki_kernel *k = self->k;
	struct nki_view row = nki_broadcast(k, nki_reshape(k, self->col, 128, 1, 1), 1, 8);

	/* Every second element of columns 3 to 62, and one value read eight times. */
	nki_tensor_copy(k, nki_cols(k, self->g, 0, 30), nki_slice_step(k, self->f, 1, 3, 63, 2));
	nki_tensor_copy(k, nki_cols(k, self->g, 0, 8), row);
	nki_tensor_copy(k, nki_rows(k, self->f, 64, 96), nki_rows(k, self->g, 64, 96));
	nki_tensor_copy(k, nki_bitcast(k, self->i, NKI_UINT32), nki_bitcast(k, self->f, NKI_UINT32));
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 0,
		    "TENSOR_COPY src=fp32@0xc[2][30] dst=fp32@0x100[1][30] channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 1,
		    "TENSOR_COPY src=fp32@0x440[0][8] dst=fp32@0x100[1][8] channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 2,
		    "TENSOR_COPY src=fp32@0x100+p64[1][64] dst=fp32@0x0+p64[1][64] channels=32");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 3,
		    "TENSOR_COPY src=uint32@0x0[1][64] dst=uint32@0x340[1][64] channels=128");
}

TEST_F(encode, registers)
{
	struct nki_kernel *k = self->k;
	struct nki_reg n = nki_register_alloc(k), m = nki_register_alloc(k);
	struct nki_view word = nki_cols(k, nki_rows(k, self->i, 0, 1), 5, 6);

	nki_register_load(k, n, word);
	nki_register_move(k, m, nki_i32(3));
	nki_register_alu(k, n, NKI_ADD, nki_regval(n), nki_regval(m));
	nki_for_reg(k, i, 2, n, 4) {
		nki_tensor_copy(k, nki_dyn(k, nki_cols(k, self->f, 0, 1), 1, i), self->col);
	}
	nki_register_store(k, word, n, .engine = NKI_ENGINE_VECTOR);
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 0, "TENSOR_LOAD r0 src=int32@0x354[1][1]");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 1, "REG_MOVE r1 src=3");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 2, "REG_ALU r0 op=add a=r0 b=r1");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 3, "REG_MOVE r2 src=2");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 4, "COMPARE_BRANCH cmp=greater_equal a=r2 b=r0 target=9");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 5, "REG_ALU r60 op=multiply a=r2 b=4");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 6,
		    "TENSOR_COPY src=fp32@0x440[1][1] dst=fp32@0x0+r60[1][1] channels=128");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 7, "REG_ALU r2 op=add a=r2 b=4");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 8, "COMPARE_BRANCH cmp=less a=r2 b=r0 target=5");
	EXPECT_TEXT(NKI_ENGINE_VECTOR, 9, "TENSOR_STORE dst=int32@0x354[1][1] src=r0");
	/* No other engine needs the registers, so none computes them. */
	EXPECT_TEXT(NKI_ENGINE_SCALAR, 0, "no such instruction");
	EXPECT_TEXT(NKI_ENGINE_SYNC, 0, "no such instruction");
}

TEST_F(encode, gather_and_dynamic)
{
	struct nki_kernel *k = self->k;
	struct nki_view rows = nki_input(k, "rows", NKI_FLOAT32, 1000, 64);
	struct nki_reg n = nki_register_alloc(k);

	nki_register_move(k, n, nki_i32(5));
	nki_dma_copy(k, self->f, nki_gather(k, rows, nki_cols(k, self->i, 1, 2)),
		     .engine = NKI_ENGINE_GPSIMD, .oob_mode = NKI_OOB_SKIP);
	nki_dma_copy(k, nki_dyn_num(k, nki_rows(k, self->f, 0, 1), 1, n),
		     nki_dyn_num(k, nki_rows(k, rows, 9, 10), 1, n));
	EXPECT_TEXT(NKI_ENGINE_GPSIMD, 0,
		    "DMA_DIRECT2D queue=8 src=fp32@arg2+0x0[4,256][64,128] src_index=int32@0x344[1][1] src_index_channels=128 src_index_dim=1 src_rows=1000 dst=fp32@0x0[1][64] dst_channels=128 oob_skip");
	EXPECT_TEXT(NKI_ENGINE_SYNC, 1,
		    "DMA_DIRECT2D queue=0 src=fp32@arg2+0x900[4][r0<=64] dst=fp32@0x0[1][r0<=64] dst_channels=1");
}

/* Read back what was saved. */
TEST_F(encode, neff)
{
	struct nki_kernel *k = self->k;
	const float data[3] = { 1, 2, 3 };
	const struct neff_line *line;
	struct neuron_insn w;
	char error[256] = "";
	struct neff *neff;
	void *bytes, *more;
	size_t size, again;
	unsigned int at;

	nki_const(k, "c", NKI_FLOAT32, data, 3);
	nki_scratch(k, "tmp", NKI_UINT8, 100);
	nki_info_json(k, "{\"labels\": [\"a\"], \"target\": \"other\"}");
	at = __LINE__ + 1;
	nki_dma_copy(k, self->f, nki_index(k, self->x, 0, 0));
	ASSERT_EQ(0, nki_build(k, &bytes, &size));
	ASSERT_EQ(0, nki_build(k, &more, &again));
	ASSERT_EQ(size, again);
	EXPECT_EQ(0, memcmp(bytes, more, size));
	ASSERT_EQ(0, neff_read(bytes, size, &neff, error, sizeof(error)));
	EXPECT_STREQ("encode", neff->name);
	EXPECT_STREQ("trn2", neff->target);
	ASSERT_EQ(4, neff->arg_count);
	EXPECT_STREQ("x", neff->args[0].name);
	EXPECT_EQ(NEFF_VAR_OUTPUT, neff->args[1].type);
	EXPECT_EQ(3, neff->args[0].ndim);
	EXPECT_EQ(NEFF_VAR_FILE, neff->args[2].type);
	EXPECT_EQ(0, memcmp(neff->args[2].data, data, sizeof(data)));
	EXPECT_EQ(100, neff->args[3].size);
	ASSERT_EQ(4, neff->core[0].words[NEURON_ENGINE_SP]);
	memcpy(&w, neff->core[0].stream[NEURON_ENGINE_SP], sizeof(w));
	line = neff_line(neff, 0, w.debug_id);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(at, line->line);
	EXPECT_STREQ("nki_dma_copy", line->name);
	neff_free(neff);
	free(bytes);
	free(more);
}

static void look(struct nki_kernel *k)
{
	if (nki_edge_count(k) < 0)
		printf("# %s\n", nki_error(k));
	for (unsigned int e = 1; e < NEURON_ENGINE_COUNT; e++)
		text_of(k, e, 1000);
}

/* Rows of other parts of the tree may be missing while they are made. */
static void mx_calls(struct nki_kernel *k)
{
	enum nki_dtype x4 = (enum nki_dtype)0x13;	/* float8_e4m3fn_x4 */
	struct nki_view src = nki_sbuf(k, NKI_BFLOAT16, 32, 512), data = nki_sbuf(k, x4, 32, 128);
	struct nki_view scale = nki_sbuf(k, NKI_UINT8, 4, 128), ps = nki_psum(k, NKI_FLOAT32, 128, 128);
	struct nki_view f8 = nki_sbuf(k, NKI_BFLOAT16, 128, 128), tag = nki_sbuf(k, NKI_UINT16, 128, 32);

	nki_quantize_mx(k, data, src, scale);
	nki_nc_matmul_mx(k, ps, data, data, scale, scale);
	nki_nc_matmul_sparse(k, ps, nki_sbuf(k, NKI_BFLOAT16, 128, 2, 128), f8, tag, 8);
}

static void newer_calls(struct nki_kernel *k)
{
	struct nki_view f = nki_sbuf(k, NKI_FLOAT32, 32, 32), g = nki_sbuf(k, NKI_FLOAT32, 32, 32);
	struct nki_view u = nki_sbuf(k, NKI_UINT8, 32, 32), i = nki_sbuf(k, NKI_INT32, 32, 33);
	struct nki_view w = nki_bitcast(k, i, NKI_UINT32), col = nki_cols(k, g, 0, 1), h = nki_sbuf(k, NKI_BFLOAT16, 32, 32);
	struct nki_view short_index = nki_sbuf(k, NKI_UINT16, 32, 2), word = nki_cols(k, nki_rows(k, i, 0, 1), 0, 1);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, 32, 32), n = nki_output(k, "n", NKI_INT32, 1, 1);
	struct nki_reg r;
	const uint8_t mask[32] = { 0 };

	nki_set_rounding_mode(k, true);
	r = nki_register_alloc(k);
	nki_register_load(k, r, n);
	nki_register_store(k, n, r);
	nki_activate2(k, f, NKI_PRELU, f, nki_f32(1), nki_f32(2), NKI_MULTIPLY, NKI_ADD, .relu_param = nki_f32(0.1f));
	nki_tensor_scalar_reduce(k, f, f, NKI_ADD, nki_f32(1), NKI_ADD, col);
	nki_tensor_scalar_cumulative(k, f, f, NKI_ADD, NKI_ADD, nki_f32(1));
	nki_tensor_tensor_scan(k, f, f, f, nki_f32(1), NKI_ADD, NKI_ADD);
	nki_select_reduce(k, f, u, f, nki_f32(0));
	nki_range_select(k, f, f, NKI_LESS, NKI_LESS, col, col);
	nki_exponential(k, f, f);
	nki_bn_stats(k, nki_cols(k, g, 0, 6), f);
	nki_bn_aggr(k, nki_cols(k, g, 0, 2), nki_cols(k, g, 0, 6));
	nki_max8(k, nki_cols(k, g, 0, 8), f);
	nki_nc_find_index8(k, nki_cols(k, w, 0, 8), f, nki_cols(k, g, 0, 8));
	nki_nc_match_replace8(k, f, f, nki_cols(k, g, 0, 8), 0);
	nki_nc_stream_shuffle(k, f, f, mask);
	nki_dropout(k, f, f, nki_f32(0.5f));
	nki_rng(k, i);
	nki_set_rng_seed(k, word);
	nki_rand_set_state(k, nki_cols(k, w, 0, 6));
	nki_rand_get_state(k, nki_cols(k, w, 0, 24), .engine = NKI_ENGINE_VECTOR);
	nki_rand2(k, f, nki_f32(0), nki_f32(1));
	nki_tensor_partition_reduce(k, nki_rows(k, g, 0, 1), NKI_ADD, f);
	nki_local_gather(k, f, f, short_index);
	nki_nc_n_gather(k, f, f, nki_cols(k, w, 0, 32));
	nki_sequence_bounds(k, nki_cols(k, nki_rows(k, g, 0, 1), 0, 16), nki_cols(k, nki_rows(k, f, 0, 1), 0, 8));
	nki_nonzero_with_count(k, i, f);
	nki_topk(k, nki_cols(k, h, 0, 8), nki_cols(k, w, 0, 8), h, 100);
	nki_tensor_copy(k, nki_indirect(k, f, i, 32), g);
	nki_dma_transpose(k, f, y);
	nki_dma_compute(k, f, &g, 1, NKI_ADD);
	nki_device_print(k, "f", f);
	nki_notify(k, 7);
	if (nki_disasm_opcode(0x22) && nki_disasm_opcode(0x24) && nki_disasm_opcode(0x5c))
		mx_calls(k);
	look(k);
	nki_kernel_free(k);
}

static void two_cores(struct nki_kernel *k)
{
	nki_set_lnc(k, 2);
	for (unsigned int core = 0; core < 2; core++) {
		struct nki_kernel *c = nki_core(k, core);
		struct nki_view s = nki_scratch(c, "s", NKI_FLOAT32, 32, 8), f = nki_sbuf(c, NKI_FLOAT32, 32, 8);

		nki_sendrecv(c, f, f, 1 - core, 1 - core, 0);
		nki_core_barrier(c, s);
	}
	look(k);
	nki_kernel_free(k);
}

/* Tests of one program run one after the other, each in a process of its own. */
TEST(every_opcode)
{
	struct nki_kernel *k = nki_kernel_new("all", "trn2");
	struct nki_view f = nki_sbuf(k, NKI_FLOAT32, 32, 32), col = nki_sbuf(k, NKI_FLOAT32, 32, 1);
	struct nki_view u = nki_sbuf(k, NKI_UINT8, 32, 32), ps = nki_psum(k, NKI_FLOAT32, 32, 32);
	struct nki_view word = nki_sbuf(k, NKI_INT32, 1, 1);
	struct nki_view y = nki_output(k, "y", NKI_FLOAT32, 32, 32);
	struct nki_reg r = nki_register_alloc(k);

	nki_register_load(k, r, word);
	nki_for_reg(k, i, 0, r, 1) {
		nki_iota(k, u, NKI_PATTERN({1, 32}));
		nki_dma_copy(k, f, y);
		nki_nc_transpose(k, ps, f);
		nki_activation_reduce(k, f, NKI_EXP, ps, NKI_ADD, col);
		nki_nc_transpose(k, f, f);
		nki_tensor_copy(k, f, ps);
		nki_tensor_copy_predicated(k, f, ps, u);
		nki_select(k, f, u, ps, nki_f32(0));
		nki_tensor_tensor(k, f, f, ps, NKI_ADD);
		nki_tensor_scalar(k, f, f, NKI_ADD, nki_f32(1));
		nki_scalar_tensor_tensor(k, f, f, NKI_ADD, nki_f32(1), NKI_ADD, ps);
		nki_tensor_reduce(k, col, NKI_ADD, f, 1);
		nki_reciprocal(k, col, col);
		nki_tensor_copy(k, nki_dyn(k, nki_cols(k, f, 0, 1), 1, i), col);
		nki_dma_copy(k, y, f);
	}
	nki_register_store(k, word, r);
	ASSERT_LT(0, nki_edge_count(k));
	for (unsigned int e = 1; e < NEURON_ENGINE_COUNT; e++)
		text_of(k, e, 1000);
	nki_kernel_free(k);
	newer_calls(nki_kernel_new("newer", "trn3"));
	two_cores(nki_kernel_new("pair", "trn3"));
	for (unsigned int op = 0; op < 256; op++) {
		if (nki_disasm_opcode(op) && op != NEURON_OP_NOP && op != NEURON_OP_EVENT_SEMAPHORE_RANGE_CLEAR &&
		    !seen[op]) {
			TH_LOG("%s is not made by any call", nki_disasm_opcode(op));
			ASSERT_TRUE(seen[op]);
		}
	}
}

/* Any bytes: no crash, and it gets to the end. */
TEST(garbage)
{
	unsigned char words[8 * NEURON_WORD_BYTES];
	char text[64];
	uint32_t state = 1;

	for (int n = 0; n < 20000; n++) {
		size_t pc = 0;

		for (size_t i = 0; i < sizeof(words); i++) {
			state = state * 1664525u + 1013904223u;
			words[i] = state >> 24;
		}
		if (n & 1)
			words[1] = words[0] == NEURON_OP_DMA_COPY ? 3 : 1;
		while (pc < 8) {
			size_t used = nki_disasm(words + pc * NEURON_WORD_BYTES, 8 - pc, text, sizeof(text));

			ASSERT_LE(1, used);
			ASSERT_LE(used, 8 - pc);
			ASSERT_GT(sizeof(text), strlen(text));
			pc += used;
		}
	}
}

TEST_HARNESS_MAIN
