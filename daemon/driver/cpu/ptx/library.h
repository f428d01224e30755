/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_LIBRARY_H
#define GPUQ_CPU_PTX_LIBRARY_H

/*
 * Mathematical functions that CUDA has in addition to <math.h>. Those of float are computed in double.
 */

#ifdef PTX_LIBRARY

#define PTX_OF_FLOAT(name)                                                                         \
        PTX_CALL float ptx_##name##f(float x) {                                                    \
                return (float)ptx_##name(x);                                                       \
        }
#define PTX_UNARY(name, expression)                                                                \
        PTX_CALL double ptx_##name(double x) {                                                     \
                return expression;                                                                 \
        }                                                                                          \
        PTX_OF_FLOAT(name)

PTX_UNARY(rsqrt, 1 / sqrt(x))
PTX_UNARY(rcbrt, 1 / cbrt(x))
PTX_UNARY(normcdf, 0.5 * erfc(-x * M_SQRT1_2))
/* Exact at multiples of a half, where sin(x * pi) is not. */
PTX_UNARY(sinpi, trunc(x) == x ? 0 * x : sin(remainder(x, 2.0) * M_PI))
PTX_UNARY(cospi, trunc(x - 0.5) == x - 0.5 ? 0 : cos(remainder(x, 2.0) * M_PI))

PTX_CALL void ptx_sincospi(double x, double *sine, double *cosine) {
        *sine = ptx_sinpi(x);
        *cosine = ptx_cospi(x);
}
PTX_CALL void ptx_sincospif(float x, float *sine, float *cosine) {
        *sine = ptx_sinpif(x);
        *cosine = ptx_cospif(x);
}

/* exp(x²) erfc(x): where erfc underflows, by its continued fraction. */
PTX_CALL double ptx_erfcx(double x) {
        double fraction = x;

        if (x < 10)
                return exp(x * x) * erfc(x);
        for (int i = 30; i > 0; i--)
                fraction = x + 0.5 * i / fraction;
        return 0.5 * M_2_SQRTPI / fraction;
}
PTX_OF_FLOAT(erfcx)

/* The inverse of erf, by Winitzki's guess and Newton's steps. */
PTX_CALL double ptx_erfinv(double y) {
        double l, a = 0.147, b, x;

        if (!(fabs(y) < 1))
                return fabs(y) == 1 ? copysign(INFINITY, y) : NAN;
        l = log1p(-y * y);
        b = 2 / (M_PI * a) + l / 2;
        x = copysign(sqrt(sqrt(b * b - l / a) - b), y);
        for (int i = 0; i < 4; i++) {
                double error = y < 0.5 && y > -0.5 ? erf(x) - y
                                                   : copysign((1 - fabs(y)) - erfc(fabs(x)), y);
                double step = error / (M_2_SQRTPI * exp(-x * x));

                x -= step / (1 + x * step);
        }
        return x;
}
PTX_OF_FLOAT(erfinv)
PTX_UNARY(erfcinv, x > 0.5 ? ptx_erfinv(1 - x) : -ptx_erfinv(x - 1))
PTX_UNARY(normcdfinv, -M_SQRT2 *ptx_erfcinv(2 * x))

/* Their power series, where its terms have not grown too large; else the asymptotic one. */
PTX_CALL double ptx_bessel_i(double x, int order) {
        double magnitude = fabs(x), sum = 0, term;

        if (magnitude < 30) {
                term = order ? x / 2 : 1;
                for (int k = 1; k < 200; k++) {
                        sum += term;
                        term *= x * x / 4 / ((double)k * (k + order));
                }
                return sum;
        }
        term = exp(magnitude / 2) / sqrt(2 * M_PI * magnitude) * exp(magnitude / 2);
        for (int k = 1; k < 30; k++) {
                sum += term;
                term *= -(4.0 * order * order - (2.0 * k - 1) * (2.0 * k - 1)) /
                        (8 * k * magnitude);
        }
        return order && x < 0 ? -sum : sum;
}
PTX_UNARY(cyl_bessel_i0, ptx_bessel_i(x, 0))
PTX_UNARY(cyl_bessel_i1, ptx_bessel_i(x, 1))

PTX_CALL double ptx_norm4d(double x, double y, double z, double w) {
        return hypot(hypot(x, y), hypot(z, w));
}
PTX_CALL double ptx_norm3d(double x, double y, double z) {
        return hypot(hypot(x, y), z);
}
PTX_CALL double ptx_rnorm4d(double x, double y, double z, double w) {
        return 1 / ptx_norm4d(x, y, z, w);
}
PTX_CALL double ptx_rnorm3d(double x, double y, double z) {
        return 1 / ptx_norm3d(x, y, z);
}
PTX_CALL double ptx_rhypot(double x, double y) {
        return 1 / hypot(x, y);
}
PTX_CALL float ptx_norm4df(float x, float y, float z, float w) {
        return (float)ptx_norm4d(x, y, z, w);
}
PTX_CALL float ptx_norm3df(float x, float y, float z) {
        return (float)ptx_norm3d(x, y, z);
}
PTX_CALL float ptx_rnorm4df(float x, float y, float z, float w) {
        return (float)ptx_rnorm4d(x, y, z, w);
}
PTX_CALL float ptx_rnorm3df(float x, float y, float z) {
        return (float)ptx_rnorm3d(x, y, z);
}
PTX_CALL float ptx_rhypotf(float x, float y) {
        return (float)ptx_rhypot(x, y);
}
PTX_CALL double ptx_powi(double x, int n) {
        return pow(x, n);
}
PTX_CALL float ptx_powif(float x, int n) {
        return (float)pow(x, n);
}

#undef PTX_UNARY
#undef PTX_OF_FLOAT

#endif

#endif
