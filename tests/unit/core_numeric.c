// SPDX-License-Identifier: MIT
/*
 * Arithmetic of the NeuronCore against references written in another way: numbers
 * are decoded with ldexp(), rounded by searching the table of all representable
 * values, functions computed in long double.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "numeric.h"
#include "neuron/isa.h"

static uint64_t rng = 12345;

static uint32_t random32(void)
{
	return num_random(&rng) >> 32;
}

static float from_bits(uint32_t u)
{
	float x;

	memcpy(&x, &u, 4);
	return x;
}

static uint32_t to_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	return u;
}

/* Random numbers of all magnitudes, and the special ones. */
static float random_float(void)
{
	static const uint32_t special[] = {
		0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 1, 0x80000001,
		0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000, 0xbf800000,
	};
	uint32_t r = random32();

	if (r % 16 == 0)
		return from_bits(special[(r >> 8) % (sizeof(special) / 4)]);
	if (r % 16 < 8)
		return from_bits(random32());
	return (int32_t)random32() / (float)(1u << (r % 31));
}

/* --- formats ------------------------------------------------------------------------------ */

struct format {
	unsigned int dtype;
	unsigned int width, man;
	int bias;
	bool ieee;
	double max;		/* published */
};

static const struct format formats[] = {
	{ NEURON_DTYPE_BFLOAT16, 16, 7, 127, true, 3.3895313892515355e38 },
	{ NEURON_DTYPE_FLOAT16, 16, 10, 15, true, 65504 },
	{ NEURON_DTYPE_FLOAT8_E3M4, 8, 4, 3, true, 15.5 },
	{ NEURON_DTYPE_FLOAT8_E4M3, 8, 3, 7, true, 240 },
	{ NEURON_DTYPE_FLOAT8_E5M2, 8, 2, 15, true, 57344 },
	{ NEURON_DTYPE_FLOAT8_E4M3FN, 8, 3, 7, false, 448 },
};

/* The definition of a binary floating-point format. */
static double ref_decode(const struct format *f, uint32_t code)
{
	uint32_t man = code & ((1u << f->man) - 1);
	uint32_t exp = (code >> f->man) & ((1u << (f->width - 1 - f->man)) - 1);
	uint32_t top = (1u << (f->width - 1 - f->man)) - 1;
	double v;

	if (f->ieee && exp == top)
		v = man ? NAN : INFINITY;
	else if (!f->ieee && exp == top && man == (1u << f->man) - 1)
		v = NAN;
	else if (!exp)
		v = ldexp(man, 1 - f->bias - (int)f->man);
	else
		v = ldexp(1.0 + ldexp(man, -(int)f->man), (int)exp - f->bias);
	return code >> (f->width - 1) ? -v : v;
}

/* Largest finite code without sign. */
static uint32_t ref_max(const struct format *f)
{
	uint32_t code = (1u << (f->width - 1)) - 1;

	while (!isfinite(ref_decode(f, code)))
		code--;
	return code;
}

/* Nearest by search in the ordered positive codes, ties to the even code. */
static uint32_t ref_encode(const struct format *f, float x)
{
	uint32_t lo = 0, hi = ref_max(f) + 1, sign = signbit(x) ? 1u << (f->width - 1) : 0;
	double a = fabs(x), below, above;

	if (isnan(x))
		return UINT32_MAX;
	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		if (ref_decode(f, mid) <= a)
			lo = mid;
		else
			hi = mid;
	}
	below = ref_decode(f, lo);
	if (below == a)
		return lo | sign;
	/* Above the largest comes what would be next if the format went on. */
	above = hi > ref_max(f) ? 2 * below - ref_decode(f, lo - 1) : ref_decode(f, hi);
	if (isinf(a) || a - below > above - a || (a - below == above - a && (lo & 1)))
		lo = hi;
	if (lo > ref_max(f) && !f->ieee)
		return UINT32_MAX;
	return lo | sign;
}

static bool encodes(struct __test_metadata *_metadata, const struct format *f, float x)
{
	uint32_t want = ref_encode(f, x), got = 0;

	num_put(f->dtype, &got, x);
	if (want == UINT32_MAX ? isnan(ref_decode(f, got)) : got == want)
		return true;
	TH_LOG("%s: %a gives %#x, expected %#x", num_dtype(f->dtype)->name, x, got, want);
	return false;
}

TEST(decode_every_code)
{
	unsigned int i;
	uint32_t code;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const struct format *f = &formats[i];

		ASSERT_EQ(ref_decode(f, ref_max(f)), f->max);
		for (code = 0; code < 1u << f->width; code++) {
			double want = ref_decode(f, code);
			float got = num_get(f->dtype, &code);

			if (isnan(want)) {
				ASSERT_TRUE(isnan(got));
			} else {
				ASSERT_EQ(to_bits(got), to_bits((float)want));
			}
		}
	}
}

/*
 * Rounding is monotonic, so it is right everywhere when it is right on both sides of
 * every boundary: at each value, at each midpoint, and one fp32 step around them.
 */
TEST(encode_every_boundary)
{
	unsigned int i;
	uint32_t code;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const struct format *f = &formats[i];

		for (code = 0; code <= ref_max(f); code++) {
			float v = ref_decode(f, code);
			float next = code < ref_max(f) ? ref_decode(f, code + 1) :
				     2 * ref_decode(f, code) - ref_decode(f, code - 1);
			float mid = ((double)v + next) / 2;
			float try[] = {
				v, nextafterf(v, INFINITY), nextafterf(v, -INFINITY), mid,
				nextafterf(mid, INFINITY), nextafterf(mid, -INFINITY),
			};
			unsigned int k;

			for (k = 0; k < 6; k++) {
				ASSERT_TRUE(encodes(_metadata, f, try[k]));
				ASSERT_TRUE(encodes(_metadata, f, -try[k]));
			}
		}
	}
}

TEST(encode_random_and_special)
{
	unsigned int i, k;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		for (k = 0; k < 100000; k++)
			ASSERT_TRUE(encodes(_metadata, &formats[i], random_float()));
		ASSERT_TRUE(encodes(_metadata, &formats[i], INFINITY));
		ASSERT_TRUE(encodes(_metadata, &formats[i], -INFINITY));
		ASSERT_TRUE(encodes(_metadata, &formats[i], FLT_MAX));
		ASSERT_TRUE(encodes(_metadata, &formats[i], NAN));
	}
}

/* --- MX types ------------------------------------------------------------------------------ */

/* OCP MX 1.0: E8M0 is 2^(code - 127), 255 is NaN. */
TEST(e8m0)
{
	unsigned int code, k, i;
	uint8_t got;

	for (code = 0; code < 255; code++) {
		uint8_t c = code;
		float v = ldexp(1, (int)code - 127), mid = 1.5 * v;
		float next = nextafterf(mid, INFINITY), prev = nextafterf(mid, 0);

		ASSERT_EQ(num_get(NEURON_DTYPE_FLOAT8_E8M0FNU, &c), v);
		num_put(NEURON_DTYPE_FLOAT8_E8M0FNU, &got, v);
		ASSERT_EQ(got, code);
		num_put(NEURON_DTYPE_FLOAT8_E8M0FNU, &got, prev);
		ASSERT_EQ(got, code);
		num_put(NEURON_DTYPE_FLOAT8_E8M0FNU, &got, next);
		ASSERT_EQ(got, code + 1);
		num_put(NEURON_DTYPE_FLOAT8_E8M0FNU, &got, mid);
		ASSERT_EQ(got, code + code % 2);
	}
	got = 255;
	ASSERT_TRUE(isnan(num_get(NEURON_DTYPE_FLOAT8_E8M0FNU, &got)));
	/* Nearest of all by search. */
	for (k = 0; k < 100000; k++) {
		float x = random_float();
		double best = INFINITY;
		unsigned int want = 255;

		num_put(NEURON_DTYPE_FLOAT8_E8M0FNU, &got, x);
		for (i = 0; i < 255 && x >= 0 && x < 0x1.8p127f; i++) {
			double d = fabs(ldexp(1, (int)i - 127) - x);

			if (d < best || (d == best && i % 2 == 0)) {
				best = d;
				want = i;
			}
		}
		if (x == 0x1.8p127f)
			want = 254;
		ASSERT_EQ(got, want) {
			TH_LOG("%a gives %u, expected %u", x, got, want);
		}
	}
}

/* Order and values of packed elements: every code in every place. */
TEST(packed)
{
	/* OCP MX 1.0, table of E2M1. */
	static const float e2m1[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
	float out[4][256];
	float *const to[4] = { out[0], out[1], out[2], out[3] };
	uint8_t scratch[256], in[1024];
	const struct num_ops *o;
	unsigned int i, q, v;

	for (v = 0; (o = num_ops_variant(v)); v++) {
		for (i = 0; i < 1024; i++)
			in[i] = i / 4 + i % 4 * 64;
		num_unpack(o, NEURON_DTYPE_FLOAT8_E4M3FN_X4, to, in, 256, scratch);
		for (i = 0; i < 1024; i++) {
			double want = ref_decode(&formats[5], in[i]);

			ASSERT_TRUE(isnan(want) ? isnan(out[i % 4][i / 4]) : out[i % 4][i / 4] == want);
		}
		num_unpack(o, NEURON_DTYPE_FLOAT8_E5M2_X4, to, in, 256, scratch);
		for (i = 0; i < 1024; i++) {
			double want = ref_decode(&formats[4], in[i]);

			ASSERT_TRUE(isnan(want) ? isnan(out[i % 4][i / 4]) : out[i % 4][i / 4] == want);
		}
		for (i = 0; i < 16; i++) {
			in[2 * i] = i | (15 - i) << 4;
			in[2 * i + 1] = ((i + 5) & 15) | ((i + 9) & 15) << 4;
		}
		num_unpack(o, NEURON_DTYPE_FLOAT4_E2M1FN_X4, to, in, 16, scratch);
		for (i = 0; i < 16; i++) {
			unsigned int code[4] = { i, 15 - i, (i + 5) & 15, (i + 9) & 15 };

			for (q = 0; q < 4; q++) {
				float want = code[q] & 8 ? -e2m1[code[q] & 7] : e2m1[code[q] & 7];

				ASSERT_EQ(to_bits(out[q][i]), to_bits(want));
			}
		}
	}
}

/* Every value of every 8 and 16 bit type to every other type, by way of fp32. */
TEST(every_conversion)
{
	static const unsigned int ints[] = { NEURON_DTYPE_INT8, NEURON_DTYPE_UINT8, NEURON_DTYPE_INT16,
					     NEURON_DTYPE_UINT16, NEURON_DTYPE_INT32, NEURON_DTYPE_UINT32 };
	static const double lo[] = { -128, 0, -32768, 0, -2147483648.0, 0 };
	static const double hi[] = { 127, 255, 32767, 65535, 2147483647.0, 4294967295.0 };
	unsigned int i, k;
	uint32_t code, v;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		for (code = 0; code < 1u << formats[i].width; code++) {
			double x = ref_decode(&formats[i], code);

			for (k = 0; k < sizeof(formats) / sizeof(formats[0]); k++)
				ASSERT_TRUE(encodes(_metadata, &formats[k], x));
			for (k = 0; k < 6; k++) {
				double r = isnan(x) ? 0 : fmin(fmax(nearbyint(x), lo[k]), hi[k]);

				v = 0;
				num_put(ints[k], &v, x);
				ASSERT_EQ(v, (uint32_t)(int64_t)r & (k / 2 == 0 ? 0xff : k / 2 == 1 ? 0xffff : ~0u));
			}
		}
	}
	/* All values of the 8 and 16 bit integers. */
	for (code = 0; code < 65536 + 32768; code++)
		for (k = 0; k < sizeof(formats) / sizeof(formats[0]); k++)
			ASSERT_TRUE(encodes(_metadata, &formats[k], (int)code - 32768));
}

/* The published trap: 240 is the largest E4M3 of Trn1 and Trn2, 448 of E4M3FN. */
TEST(the_two_e4m3)
{
	uint8_t v;

	num_put(NEURON_DTYPE_FLOAT8_E4M3, &v, 240.0f);
	ASSERT_EQ(num_get(NEURON_DTYPE_FLOAT8_E4M3, &v), 240.0f);
	num_put(NEURON_DTYPE_FLOAT8_E4M3, &v, 256.0f);
	ASSERT_TRUE(isinf(num_get(NEURON_DTYPE_FLOAT8_E4M3, &v)));
	num_put(NEURON_DTYPE_FLOAT8_E4M3FN, &v, 256.0f);
	ASSERT_EQ(num_get(NEURON_DTYPE_FLOAT8_E4M3FN, &v), 256.0f);
	num_put(NEURON_DTYPE_FLOAT8_E4M3FN, &v, 448.0f);
	ASSERT_EQ(num_get(NEURON_DTYPE_FLOAT8_E4M3FN, &v), 448.0f);
	num_put(NEURON_DTYPE_FLOAT8_E4M3FN, &v, 1000.0f);
	ASSERT_TRUE(isnan(num_get(NEURON_DTYPE_FLOAT8_E4M3FN, &v)));
}

TEST(tfloat32)
{
	unsigned int k;

	for (k = 0; k < 200000; k++) {
		float x = random_float(), got;
		double want;
		int e;

		num_put(NEURON_DTYPE_TFLOAT32, &got, x);
		if (isnan(x)) {
			ASSERT_TRUE(isnan(got));
			continue;
		}
		/* 10 mantissa bits: a multiple of 2^(e - 10), e at least -126. */
		frexp(x, &e);
		e = e - 1 < -126 ? -126 : e - 1;
		want = isinf(x) || x == 0 ? x : ldexp(nearbyint(ldexp(x, 10 - e)), e - 10);
		ASSERT_EQ(got, (float)want);
	}
}

/* --- integers -------------------------------------------------------------------------------- */

static double ref_int(double x, double lo, double hi)
{
	double r = nearbyint(x);

	return isnan(x) ? 0 : r < lo ? lo : r > hi ? hi : r;
}

static double int_get(unsigned int dtype, const void *p)
{
	int8_t a;
	uint8_t b;
	int16_t c;
	uint16_t d;
	int32_t e;
	uint32_t f;

	memcpy(&a, p, 1);
	memcpy(&b, p, 1);
	memcpy(&c, p, 2);
	memcpy(&d, p, 2);
	memcpy(&e, p, 4);
	memcpy(&f, p, 4);
	switch (dtype) {
	case NEURON_DTYPE_INT8: return a;
	case NEURON_DTYPE_UINT8: return b;
	case NEURON_DTYPE_INT16: return c;
	case NEURON_DTYPE_UINT16: return d;
	case NEURON_DTYPE_INT32: return e;
	default: return f;
	}
}

TEST(integers_round_to_even_and_saturate)
{
	static const struct {
		unsigned int dtype;
		double lo, hi;
	} row[] = {
		{ NEURON_DTYPE_INT8, -128, 127 }, { NEURON_DTYPE_UINT8, 0, 255 },
		{ NEURON_DTYPE_INT16, -32768, 32767 }, { NEURON_DTYPE_UINT16, 0, 65535 },
		{ NEURON_DTYPE_INT32, -2147483648.0, 2147483647.0 },
		{ NEURON_DTYPE_UINT32, 0, 4294967295.0 },
	};
	static const float exact[] = { 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 127.5f, 255.5f, 1e10f, -1e10f,
				       2147483648.0f, 4294967296.0f, 2147483520.0f, 3e9f, -0.0f };
	unsigned int i, k;

	for (i = 0; i < 6; i++) {
		for (k = 0; k < 100000 + 14; k++) {
			float x = k < 14 ? exact[k] : random_float();
			uint32_t v = 0;

			num_put(row[i].dtype, &v, x);
			ASSERT_EQ(int_get(row[i].dtype, &v), ref_int(x, row[i].lo, row[i].hi)) {
				TH_LOG("type %#x: %a gives %#x", row[i].dtype, x, v);
			}
			v = random32();
			ASSERT_EQ(num_get(row[i].dtype, &v), (float)int_get(row[i].dtype, &v));
		}
	}
}

/* --- activation functions -------------------------------------------------------------------- */

static long double gate(float x, long double y)
{
	return isinf(x) && x < 0 ? 0 : y;
}

static long double sigmoid(long double x)
{
	return 1 / (1 + expl(-x));
}

static long double ref_act(unsigned int fn, float xf)
{
	long double x = xf, s;

	switch (fn) {
	case NEURON_ACTFN_COPY: return x;
	case NEURON_ACTFN_SQUARE: return x * x;
	case NEURON_ACTFN_SIGMOID: return sigmoid(x);
	case NEURON_ACTFN_RELU: return isnan(xf) ? x : fmaxl(x, 0);
	case NEURON_ACTFN_GELU: return gate(xf, x / 2 * erfcl(-x * M_SQRT1_2l));
	case NEURON_ACTFN_GELU_DX:
		return erfcl(-x * M_SQRT1_2l) / 2 +
		       (isinf(xf) ? 0 : x * expl(-x * x / 2) / sqrtl(2 * M_PIl));
	case NEURON_ACTFN_GELU_APPRX_TANH:
		/* x sigmoid(2 u) is x (1 + tanh u) / 2 without its cancellation. */
		return gate(xf, x * sigmoid(2 * sqrtl(2 / M_PIl) * (x + 0.044715l * x * x * x)));
	case NEURON_ACTFN_GELU_APPRX_SIGMOID: return gate(xf, x * sigmoid(1.702l * x));
	case NEURON_ACTFN_GELU_APPRX_SIGMOID_DX:
		s = sigmoid(1.702l * x);
		return s + (isinf(xf) ? 0 : 1.702l * x * s * sigmoid(-1.702l * x));
	case NEURON_ACTFN_SILU: return gate(xf, x * sigmoid(x));
	case NEURON_ACTFN_SILU_DX:
		s = sigmoid(x);
		return s + (isinf(xf) ? 0 : x * s * sigmoid(-x));
	case NEURON_ACTFN_TANH: return tanhl(x);
	case NEURON_ACTFN_SOFTPLUS: return fmaxl(x, 0) + log1pl(expl(-fabsl(x)));
	case NEURON_ACTFN_MISH: return gate(xf, x * tanhl(log1pl(expl(x))));
	case NEURON_ACTFN_ERF: return erfl(x);
	case NEURON_ACTFN_ERF_DX: return 2 / sqrtl(M_PIl) * expl(-x * x);
	case NEURON_ACTFN_EXP: return expl(x);
	case NEURON_ACTFN_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
	case NEURON_ACTFN_ABS: return fabsl(x);
	case NEURON_ACTFN_LOG: return logl(x);
	case NEURON_ACTFN_SIN:
		/* Outside of [-pi, pi] the hardware's cubic goes on. */
		s = fabsl(x) - M_PIl;
		return s <= 0 ? sinl(x) : copysignl(1, x) * s * (s * s / 6 - 1);
	case NEURON_ACTFN_ARCTAN: return atanl(x);
	case NEURON_ACTFN_SQRT: return sqrtl(x);
	case NEURON_ACTFN_RSQRT: return 1 / sqrtl(x);
	default: return 1 / x;
	}
}

/* Error in units of the last place of the result. */
static double ulps(float got, long double want)
{
	float w = want;
	int e;

	if (isnan(got) || isnan(w))
		return isnan(got) && isnan(w) ? 0 : INFINITY;
	if (isinf(got) || isinf(w))
		return got == w ? 0 : INFINITY;
	frexp(w, &e);
	e = e < -125 ? -125 : e;
	return fabsl(got - want) / ldexpl(1, e - 24);
}

static const char *const act_names[] = {
#define NEURON_ACTFN(code, name, text) [code] = text,
#include "neuron/isa.def"
};

TEST(activation_functions_within_one_ulp)
{
	unsigned int fn, k;

	for (fn = 0; fn < sizeof(act_names) / sizeof(act_names[0]); fn++) {
		double worst = 0;
		float at = 0;

		/* Has a parameter, and with it a function of its own. */
		if (fn == NEURON_ACTFN_PRELU)
			continue;
		for (k = 0; k < 20000; k++) {
			float x = k % 2 ? random_float() : ((int32_t)random32()) * 0x1p-31f * (1 << (k % 8));
			float y;
			double err;

			num_ops()->act(fn, &y, &x, 1);
			err = ulps(y, ref_act(fn, x));
			if (!(err <= worst)) {
				worst = err;
				at = x;
			}
		}
		EXPECT_LE(worst, 1.0) {
			TH_LOG("%s: %g ulp at %a", act_names[fn], worst, at);
		}
	}
}

/* The documents' own example. */
TEST(sine_of_nine)
{
	float x = 9.0f, y;

	num_ops()->act(NEURON_ACTFN_SIN, &y, &x, 1);
	EXPECT_LE(fabs(y - 27.65), 0.01);
	x = -x;
	num_ops()->act(NEURON_ACTFN_SIN, &y, &x, 1);
	EXPECT_LE(fabs(y + 27.65), 0.01);
}

/* --- ALU --------------------------------------------------------------------------------------- */

static float ref_alu(unsigned int op, float a, float b)
{
	switch (op) {
	case NEURON_ALU_BYPASS: return a;
	case NEURON_ALU_ADD: return (float)((long double)a + b);
	case NEURON_ALU_SUBTRACT: return (float)((long double)a - b);
	case NEURON_ALU_MULTIPLY: return (float)((double)a * b);
	case NEURON_ALU_MAXIMUM: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case NEURON_ALU_MINIMUM: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case NEURON_ALU_ABS_MAX: return isnan(a) || isnan(b) ? NAN : fmaxf(fabsf(a), fabsf(b));
	case NEURON_ALU_ABS_MIN: return isnan(a) || isnan(b) ? NAN : fminf(fabsf(a), fabsf(b));
	case NEURON_ALU_EQUAL: return a == b;
	case NEURON_ALU_NOT_EQUAL: return !(a == b);
	case NEURON_ALU_GREATER_EQUAL: return isgreaterequal(a, b);
	case NEURON_ALU_GREATER: return isgreater(a, b);
	case NEURON_ALU_LESS_EQUAL: return islessequal(a, b);
	case NEURON_ALU_LESS: return isless(a, b);
	case NEURON_ALU_LOGICAL_AND: return a && b;
	case NEURON_ALU_LOGICAL_OR: return a || b;
	case NEURON_ALU_LOGICAL_XOR: return !a != !b;
	case NEURON_ALU_ABS: return fabsf(a);
	case NEURON_ALU_SQUARE: return (float)((double)a * a);
	case NEURON_ALU_RELU: return isnan(a) ? NAN : a > 0 ? a : 0;
	case NEURON_ALU_RECIPROCAL: return (float)(1 / (double)a);
	}
	return NAN;
}

static bool same(float a, float b)
{
	return isnan(a) ? isnan(b) : to_bits(a) == to_bits(b);
}

TEST(alu_operators)
{
	unsigned int op, k;
	float r;

	for (op = 0; op < 64; op++) {
		/* An average is of all partitions: partition_reduce makes it. */
		if (!num_alu(op)->name || num_alu(op)->bits || op == NEURON_ALU_AVERAGE)
			continue;
		for (k = 0; k < 20000; k++) {
			float a = random_float(), b = k % 5 ? random_float() : a;

			num_ops()->vv(op, &r, &a, &b, 1);
			if (op == NEURON_ALU_POWER) {
				EXPECT_LE(ulps(r, powl(a, b)), 1.0) {
					TH_LOG("power(%a, %a) = %a", a, b, r);
				}
			} else if (op == NEURON_ALU_RSQRT) {
				ASSERT_LE(ulps(r, 1 / sqrtl(a)), 1.0);
			} else {
				ASSERT_TRUE(same(r, ref_alu(op, a, b))) {
					TH_LOG("%s(%a, %a) = %a", num_alu(op)->name, a, b, r);
				}
			}
			/* Every NaN that comes out is the same one. */
			ASSERT_TRUE(!isnan(r) || to_bits(r) == 0x7fc00000);
		}
	}
}

TEST(bit_operators)
{
	ASSERT_EQ(num_bits_op(NEURON_ALU_INVERT, 0x5a, 0, 1), 0xa5);
	ASSERT_EQ(num_bits_op(NEURON_ALU_BITWISE_XOR, 0xff00, 0x0ff0, 2), 0xf0f0);
	ASSERT_EQ(num_bits_op(NEURON_ALU_LEFT_SHIFT, 0x81, 1, 1), 0x02);
	ASSERT_EQ(num_bits_op(NEURON_ALU_LEFT_SHIFT, 1, 31, 4), 0x80000000u);
	ASSERT_EQ(num_bits_op(NEURON_ALU_LEFT_SHIFT, 1, 32, 4), 0);
	/* Logical: no sign comes in. */
	ASSERT_EQ(num_bits_op(NEURON_ALU_RIGHT_SHIFT, 0x80000000u, 31, 4), 1);
	ASSERT_EQ(num_bits_op(NEURON_ALU_RIGHT_SHIFT, 0x80, 8, 1), 0);
}

/* The defined order, written from its description. */
static float ref_sum(const float *a, unsigned int n)
{
	float lane[16] = { 0 };
	unsigned int i, w, used = n < 16 ? n : 16;

	for (i = 0; i < n; i++)
		lane[i % 16] = i < 16 ? a[i] : lane[i % 16] + a[i];
	for (w = 8; w; w /= 2)
		for (i = 0; i < w; i++)
			if (i + w < used)
				lane[i] += lane[i + w];
	return lane[0];
}

TEST(reduction_order)
{
	float a[1000], got;
	unsigned int n, k;

	for (n = 1; n <= 1000; n += n < 70 ? 1 : 37) {
		for (k = 0; k < n; k++)
			a[k] = (int32_t)random32() * 0x1p-20f;
		got = num_ops()->reduce(NEURON_ALU_ADD, a, n);
		ASSERT_EQ(to_bits(got), to_bits(ref_sum(a, n)));
		got = num_ops()->reduce(NEURON_ALU_MAXIMUM, a, n);
		for (k = 0; k < n; k++)
			ASSERT_LE(a[k], got);
	}
}

/* --- the same bits on every host --------------------------------------------------------------- */

#define N 777

static float va[N], vb[N], r0[N + 1024], r1[N + 1024];

static bool equal(const void *a, const void *b, size_t n)
{
	return !memcmp(a, b, n);
}

TEST(variants_agree_bit_for_bit)
{
	const struct num_ops *base, *o;
	unsigned int i, v, op, count = 0;

	while (num_ops_variant(count))
		count++;
	base = num_ops_variant(count - 1);
	ASSERT_STREQ(base->name, "base");
	for (i = 0; i < N; i++) {
		va[i] = random_float();
		vb[i] = random_float();
	}
	for (v = 0; v + 1 < count; v++) {
		o = num_ops_variant(v);
		for (op = 0; op < 32; op++) {
			if (!num_dtype(op)->bytes)
				continue;
			memset(r0, 0, sizeof(r0));
			memset(r1, 0, sizeof(r1));
			base->store(op, r0, num_dtype(op)->bytes, va, N);
			o->store(op, r1, num_dtype(op)->bytes, va, N);
			ASSERT_TRUE(equal(r0, r1, sizeof(r0)));
			base->load(op, r0, vb, num_dtype(op)->bytes, N);
			o->load(op, r1, vb, num_dtype(op)->bytes, N);
			ASSERT_TRUE(equal(r0, r1, N * 4));
		}
		for (op = 0; op < 64; op++) {
			if (!num_alu(op)->name || num_alu(op)->bits)
				continue;
			base->vv(op, r0, va, vb, N);
			o->vv(op, r1, va, vb, N);
			ASSERT_TRUE(equal(r0, r1, N * 4));
			base->sv(op, r0, 1.7f, vb, N);
			o->sv(op, r1, 1.7f, vb, N);
			ASSERT_TRUE(equal(r0, r1, N * 4));
			base->vs(op, r0, va, -0.3f, N);
			o->vs(op, r1, va, -0.3f, N);
			ASSERT_TRUE(equal(r0, r1, N * 4));
			if (!num_alu(op)->reduce)
				continue;
			r0[0] = base->reduce(op, va, N);
			r1[0] = o->reduce(op, va, N);
			ASSERT_TRUE(equal(r0, r1, 4));
		}
		for (op = 0; op < sizeof(act_names) / sizeof(act_names[0]); op++) {
			base->act(op, r0, va, N);
			o->act(op, r1, va, N);
			ASSERT_TRUE(equal(r0, r1, N * 4)) {
				TH_LOG("%s: %s differs", act_names[op], o->name);
			}
		}
	}
}

TEST(matmul_kernels_agree_bit_for_bit)
{
	static float w[256 * NUM_MR], x[256 * 48], a[NUM_MR * NUM_NR], b[NUM_MR * NUM_NR];
	const struct num_ops *o;
	unsigned int i, k, v, m, n;

	for (i = 0; i < 256 * NUM_MR; i++)
		w[i] = (int32_t)random32() * 0x1p-31f;
	for (i = 0; i < 256 * 48; i++)
		x[i] = (int32_t)random32() * 0x1p-29f;
	for (k = 0; k <= 256; k += k < 4 ? 1 : 63) {
		/* From the description: fused multiply-add in increasing k. */
		for (m = 0; m < NUM_MR; m++) {
			for (n = 0; n < NUM_NR; n++) {
				float sum = 0;

				for (i = 0; i < k; i++)
					sum = fmaf(w[i * NUM_MR + m], x[i * 48 + n], sum);
				b[m * NUM_NR + n] = sum;
			}
		}
		for (v = 0; (o = num_ops_variant(v)); v++) {
			o->matmul(a, w, x, 48, k);
			ASSERT_TRUE(equal(a, b, sizeof(a))) {
				TH_LOG("%s, k = %u", o->name, k);
			}
		}
	}
}

/* FNV-1a of results of all activation functions: no host may give another. */
TEST(same_bits_as_everywhere)
{
	uint64_t hash = 0xcbf29ce484222325ull, seed = 1;
	unsigned int fn, k, i;

	for (fn = 0; fn <= NEURON_ACTFN_RECIPROCAL; fn++) {
		for (k = 0; k < 1000; k++) {
			float x = (int32_t)(num_random(&seed) >> 32) * 0x1p-28f, y;
			uint32_t u;

			num_ops()->act(fn, &y, &x, 1);
			u = to_bits(y);
			for (i = 0; i < 4; i++)
				hash = (hash ^ (u >> (8 * i) & 0xff)) * 0x100000001b3ull;
		}
	}
	EXPECT_EQ(hash, 0x6a47739af5652747ull) {
		TH_LOG("hash %#llx", (unsigned long long)hash);
	}
}

/* Stochastic rounding: right on average, exact values stay. */
TEST(stochastic_rounding)
{
	uint64_t seed = 7;
	double sum = 0;
	unsigned int k;
	float x = 1.0f + 0x1p-9f, v;
	uint16_t h;

	for (k = 0; k < 20000; k++) {
		num_store_sr(NEURON_DTYPE_BFLOAT16, &h, 2, &x, 1, &seed);
		v = num_get(NEURON_DTYPE_BFLOAT16, &h);
		ASSERT_TRUE(v == 1.0f || v == 1.0078125f);
		sum += v;
	}
	/* A quarter of a step up; the deviation of the mean is 0.0031 steps. */
	ASSERT_LT(fabs((sum / 20000 - 1.0) / 0.0078125 - 0.25), 0.0155);
	x = -1.0078125f;
	num_store_sr(NEURON_DTYPE_BFLOAT16, &h, 2, &x, 1, &seed);
	ASSERT_EQ(num_get(NEURON_DTYPE_BFLOAT16, &h), x);
}

/* Every type: the share that goes up is what the lost bits say, and the bits are defined. */
TEST(stochastic_rounding_of_every_type)
{
	const unsigned int n = 20000;
	unsigned int i, k, f;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const struct format *t = &formats[i];

		for (f = 1; f < 8; f++) {
			uint64_t seed = 1000 * i + f, state = seed;
			double step = ldexp(1, -(int)t->man), p = f / 8.0;
			float x = (f % 2 ? -1 : 1) * (1 + p * step);
			unsigned int up = 0;

			for (k = 0; k < n; k++) {
				uint64_t z = state += 0x9e3779b97f4a7c15ull;
				uint32_t got = 0;
				double r, y;

				num_store_sr(t->dtype, &got, 4, &x, 1, &seed);
				y = ref_decode(t, got);
				/* splitmix64, as published; then the rule of arithmetic.rst. */
				z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
				z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
				r = ((z ^ (z >> 31)) >> 11) * 0x1p-53;
				ASSERT_EQ(y, floor(x / step + r) * step);
				up += y > x;
			}
			/* Of a negative one up is the near side. Five deviations of a binomial. */
			p = x < 0 ? 1 - p : p;
			ASSERT_LT(fabs((double)up / n - p), 5 * sqrt(p * (1 - p) / n)) {
				TH_LOG("%s: %u of %u up, expected %g", num_dtype(t->dtype)->name, up, n, p);
			}
		}
	}
}

TEST_HARNESS_MAIN
