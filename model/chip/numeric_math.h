/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions in double with fixed polynomials: every host computes the
 * same bits, which libm does not promise. Only + - * / and sqrt of IEEE 754 are
 * used, without contraction. Meant for arguments that were fp32: errors are far
 * below an fp32 ulp. Written without branches so that loops over them vectorise.
 */
#ifndef NEURON_CHIP_NUMERIC_MATH_H
#define NEURON_CHIP_NUMERIC_MATH_H

#include <stdint.h>
#include <string.h>

#define MATH_FN static inline __attribute__((always_inline))

MATH_FN uint64_t d_bits(double x)
{
	uint64_t u;

	memcpy(&u, &x, 8);
	return u;
}

MATH_FN double d_from(uint64_t u)
{
	double x;

	memcpy(&x, &u, 8);
	return x;
}

#define D_INF	d_from(0x7ff0000000000000ull)
#define D_NAN	d_from(0x7ff8000000000000ull)

MATH_FN double d_abs(double x)
{
	return d_from(d_bits(x) & 0x7fffffffffffffffull);
}

MATH_FN double d_copysign(double x, double sign)
{
	return d_from((d_bits(x) & 0x7fffffffffffffffull) |
		      (d_bits(sign) & 0x8000000000000000ull));
}

/* Round to nearest even for |x| < 2^51. */
MATH_FN double d_rint(double x)
{
	const double magic = 0x1.8p52;

	return (x + magic) - magic;
}

/* Horner; @c lowest degree first. */
#define D_POLY(c, u) d_poly(c, sizeof(c) / sizeof((c)[0]), u)
MATH_FN double d_poly(const double *c, int n, double u)
{
	double r = c[n - 1];
	int i;

#pragma GCC unroll 32
	for (i = n - 2; i >= 0; i--)
		r = r * u + c[i];
	return r;
}

/*
 * e^x: x = n ln 2 + r with |r| <= ln 2 / 2, Taylor to degree 11 (2e-15). Arguments
 * are clamped to where the result is 0 or infinite in fp32 anyway.
 */
MATH_FN double d_exp(double x)
{
	static const double c[] = {
		1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
		1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
	};
	const double magic = 0x1.8p52;
	double y, n, r;
	uint64_t scale;

	y = x > 700.0 ? 700.0 : x;
	y = y < -700.0 ? -700.0 : y;
	n = y * 0x1.71547652b82fep0 + magic;
	scale = (d_bits(n) + 1023) << 52;
	n -= magic;
	r = (y - n * 0x1.62e42fefa0000p-1) - n * 0x1.cf79abc9e3b3ap-40;
	return x != x ? x : D_POLY(c, r) * d_from(scale);
}

/* ln x for x > 0 normal: x = 2^e m, s = (m - 1) / (m + 1), 2 atanh(s). */
MATH_FN double d_log(double x)
{
	static const double c[] = {
		2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
	};
	uint64_t u = d_bits(x);
	uint64_t t = u - 0x3fe6a09e667f3bcdull;		/* sqrt(1/2) */
	uint64_t e = (t >> 52) + ((t >> 63) ? 0xfffffffffffff000ull : 0);
	double m = d_from(u - (e << 52));
	/* The signed exponent as a double, without a conversion of 64-bit integers. */
	double ed = d_from((e + 0x800) | 0x4330000000000000ull) - (0x1p52 + 0x800);
	double s = (m - 1.0) / (m + 1.0);
	double r;

	r = s * D_POLY(c, s * s) + ed * 0x1.62e42fefa39efp-1;
	r = x == D_INF ? x : r;
	r = x == 0.0 ? -D_INF : r;
	return x < 0.0 || x != x ? D_NAN : r;
}

/* ln(1 + x) for x >= 0. */
MATH_FN double d_log1p(double x)
{
	double big = d_log(1.0 + x);
	double small = x * (1.0 - x * (0.5 - x * (1.0 / 3 - x * 0.25)));

	return x < 1e-3 ? small : big;
}

MATH_FN double d_tanh(double x)
{
	double x2 = x * x;
	double a = d_abs(x) > 40.0 ? 40.0 : d_abs(x);
	double big = 1.0 - 2.0 / (d_exp(2.0 * a) + 1.0);
	double small = x - x * x2 * (1.0 / 3 - x2 * (2.0 / 15 - x2 * (17.0 / 315)));
	double r = d_abs(x) < 0.02 ? small : d_copysign(big, x);

	return x != x ? x : r;
}

MATH_FN double d_sigmoid(double x)
{
	return 1.0 / (1.0 + d_exp(-x));
}

/* erf(x) / x in x^2 on [0, 1]: Chebyshev interpolation, 1e-12. */
static const double d_erf_c[] = {
	0x1.ee51eb23cb7eep-1, -0x1.1fd16291d5f84p-3, 0x1.4543680162de6p-6,
	-0x1.2b902c4dbd2bcp-9, 0x1.c82aa2e5c071cp-13, -0x1.263816ca236f0p-16,
	0x1.48652408e38e4p-20, -0x1.44977019dfb9bp-24, 0x1.1c43a38e38e39p-28,
};

/* erfc(x) e^(x^2) in (x - 3) / (x + 3) on [1, 27]: Chebyshev, 2e-12. */
static const double d_erfc_c[] = {
	0x1.14b9d0ba44280p-3, -0x1.5c7a6c668f19bp-3, 0x1.43814b767c03fp-4,
	-0x1.f951794436bf4p-6, 0x1.40fb57922a474p-7, -0x1.3519da9c67cb8p-9,
	0x1.7025ac8755888p-12, 0x1.51a9d0d3fdf9dp-19, -0x1.009e9defe2222p-16,
	0x1.4e5b163df868ep-19, 0x1.e568815aaaaaap-22, -0x1.98259d9258d19p-23,
	-0x1.75e34aaaaaaaap-27, 0x1.6505d04c94bf0p-27, 0x1.8404ccccccccdp-33,
};

/* erfc(x): 1 - erf(x) below 1, mirrored for negative x. */
MATH_FN double d_erfc(double x)
{
	double a = d_abs(x) > 27.0 ? 27.0 : d_abs(x);
	double x2 = a * a;
	double t = (a - 3.0) / (a + 3.0);
	double tail = D_POLY(d_erfc_c, (2.0 * t - 0.3) / 1.3) * d_exp(-x2);
	double mid = 1.0 - x * D_POLY(d_erf_c, 2.0 * x2 - 1.0);
	double r = x < 0.0 ? 2.0 - tail : tail;

	r = a < 1.0 ? mid : r;
	return x != x ? x : r;
}

MATH_FN double d_erf(double x)
{
	double small = x * D_POLY(d_erf_c, 2.0 * x * x - 1.0);
	double big = 1.0 - d_erfc(d_abs(x));
	double r = d_abs(x) < 1.0 ? small : d_copysign(big, x);

	return x != x ? x : r;
}

/* atan(x) / x in x^2 on [0, tan(pi / 8)^2]: Chebyshev, 1e-12. */
static const double d_atan_c[] = {
	0x1.f2113b7df92b4p-1, -0x1.a868d4df9b9dap-6, 0x1.4378e81731780p-10,
	-0x1.24e492bd67800p-14, 0x1.207f24f640000p-18, -0x1.2ac8322600000p-22,
	0x1.4301118000000p-26, -0x1.6246980000000p-30,
};

MATH_FN double d_atan(double x)
{
	double a = d_abs(x);
	double hi = -1.0 / a, mid = (a - 1.0) / (a + 1.0);
	double t = a > 2.4142135623730950 ? hi : a > 0.41421356237309503 ? mid : a;
	double base = a > 2.4142135623730950 ? 0x1.921fb54442d18p0 :
		      a > 0.41421356237309503 ? 0x1.921fb54442d18p-1 : 0.0;
	double r = base + t * D_POLY(d_atan_c, 2.0 * t * t / 0.1716 - 1.0);

	r = a == D_INF ? 0x1.921fb54442d18p0 : r;
	return x != x ? x : d_copysign(r, x);
}

/*
 * sin x. Documented range [-pi, pi]; here up to 2^20, NaN beyond: the documents
 * leave that undefined and the reduction below would lose its accuracy.
 */
MATH_FN double d_sin(double x)
{
	static const double c[] = {
		1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
		1.0 / 6227020800.0, -1.0 / 1307674368000.0, 1.0 / 355687428096000.0,
	};
	const double magic = 0x1.8p52;
	double y = d_abs(x) > 0x1p20 ? 0.0 : x;
	double n = y * 0x1.45f306dc9c883p-2 + magic;
	uint64_t odd = d_bits(n) << 63;
	double r, s;

	n -= magic;
	r = ((y - n * 0x1.921fb54400000p1) - n * 0x1.0b46118000000p-33) -
	    n * 0x1.313198a2e0370p-60;
	s = r * D_POLY(c, r * r);
	s = d_from(d_bits(s) ^ odd);
	s = d_abs(x) > 0x1p20 ? D_NAN : s;
	return x != x ? x : s;
}

#endif /* NEURON_CHIP_NUMERIC_MATH_H */
