// SPDX-License-Identifier: Apache-2.0

// Functions of libm that have a variant for each processor, in all parts of their domains.

#include <complex.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>

typedef double (*one)(double);
typedef float (*single)(float);

static one ones[] = {sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, exp, exp2, expm1, log, log2, log10, log1p, sqrt, cbrt, floor, ceil, rint, nearbyint, trunc, round, lgamma, tgamma, erf, erfc, j0, y0, fabs, logb};
static single singles[] = {sinf, cosf, tanf, asinf, acosf, atanf, sinhf, coshf, expf, exp2f, logf, log2f, log10f, sqrtf, floorf, ceilf, rintf, lgammaf, tgammaf, erff, j1f};
static const double values[] = {0, -0.0, 1e-310, 1e-20, 0.01, 0.3, 0.7, 0.9999, 1, 1.5, 2, 2.7, 3.2, 10, 33.3, 100, 700, 1e5, 1e10, 1e22, 1e300, -0.5, -1, -7.25, -1e6, INFINITY, NAN};

int main(void) {
	volatile double sum = 0;
	for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
		double x = values[i], s, c;
		int n;
		for (unsigned f = 0; f < sizeof ones / sizeof ones[0]; f++)
			sum += ones[f](x);
		for (unsigned f = 0; f < sizeof singles / sizeof singles[0]; f++)
			sum += singles[f]((float)x);
		sincos(x, &s, &c);
		sum += s + c + pow(x, 1.3) + pow(2.5, x) + powf((float)x, 3) + atan2(x, 0.3) + hypot(x, 2) + fmod(x, 0.7) + remainder(x, 0.7) + fma(x, 2, 3) + frexp(x, &n) + ldexp(x, 3) + nextafter(x, 5) + jn(3, x);
		sum += creal(csqrt(x + 2 * I)) + cimag(clog(x + 2 * I)) + creal(cpow(x + I, 1.5)) + (double)sinl(x) + (double)expl(x / 100);
		sum += (double)lround(x / 1e8) + (double)llrint(0.3 * n);
	}
	fesetround(FE_UPWARD);
	sum += sin(0.5) + exp(0.5) + rint(0.5);
	printf("%g\n", sum);
	return 0;
}
