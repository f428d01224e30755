# SPDX-License-Identifier: Apache-2.0
"""The headers of complex numbers that CuPy and PyCUDA bring: `complex<T>`, whose memory is that of numpy's."""

from __future__ import annotations

import re

_TEXT = r"""
#pragma once
extern "C++" {
namespace NAMESPACE {

#define GPUQ_COMPLEX __host__ __device__ inline

using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atanh; using ::atan2; using ::copysign; using ::cos; using ::cosh; using ::exp; using ::fabs; using ::hypot; using ::log;
using ::pow; using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh;

template <typename T>
struct alignas(2 * sizeof(T)) complex {
        typedef T value_type;
        T x, y;

        complex() = default;
        GPUQ_COMPLEX complex(const T &real, const T &imag = T()) : x(real), y(imag) {}
        template <typename U> GPUQ_COMPLEX complex(const complex<U> &z) : x(T(z.x)), y(T(z.y)) {}
        GPUQ_COMPLEX T real() const { return x; }
        GPUQ_COMPLEX T imag() const { return y; }
        GPUQ_COMPLEX T real() const volatile { return x; }
        GPUQ_COMPLEX T imag() const volatile { return y; }
        GPUQ_COMPLEX void real(T value) { x = value; }
        GPUQ_COMPLEX void imag(T value) { y = value; }
        GPUQ_COMPLEX complex &operator=(const T &real) { x = real, y = T(); return *this; }
        template <typename U> GPUQ_COMPLEX complex &operator=(const complex<U> &z) { x = T(z.x), y = T(z.y); return *this; }
        GPUQ_COMPLEX complex &operator+=(const complex &z) { return *this = *this + z; }
        GPUQ_COMPLEX complex &operator-=(const complex &z) { return *this = *this - z; }
        GPUQ_COMPLEX complex &operator*=(const complex &z) { return *this = *this * z; }
        GPUQ_COMPLEX complex &operator/=(const complex &z) { return *this = *this / z; }
        GPUQ_COMPLEX complex &operator+=(const T &r) { return *this = *this + r; }
        GPUQ_COMPLEX complex &operator-=(const T &r) { return *this = *this - r; }
        GPUQ_COMPLEX complex &operator*=(const T &r) { return *this = *this * r; }
        GPUQ_COMPLEX complex &operator/=(const T &r) { return *this = *this / r; }

        // Friends, so that numbers of other types are converted, as in z + 1.
        friend GPUQ_COMPLEX complex operator+(const complex &z) { return z; }
        friend GPUQ_COMPLEX complex operator-(const complex &z) { return complex(-z.x, -z.y); }
        friend GPUQ_COMPLEX complex operator+(const complex &a, const complex &b) { return complex(a.x + b.x, a.y + b.y); }
        friend GPUQ_COMPLEX complex operator+(const complex &a, const T &b) { return complex(a.x + b, a.y); }
        friend GPUQ_COMPLEX complex operator+(const T &a, const complex &b) { return complex(a + b.x, b.y); }
        friend GPUQ_COMPLEX complex operator-(const complex &a, const complex &b) { return complex(a.x - b.x, a.y - b.y); }
        friend GPUQ_COMPLEX complex operator-(const complex &a, const T &b) { return complex(a.x - b, a.y); }
        friend GPUQ_COMPLEX complex operator-(const T &a, const complex &b) { return complex(a - b.x, -b.y); }
        friend GPUQ_COMPLEX complex operator*(const complex &a, const complex &b)
        {
                return complex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
        }
        friend GPUQ_COMPLEX complex operator*(const complex &a, const T &b) { return complex(a.x * b, a.y * b); }
        friend GPUQ_COMPLEX complex operator*(const T &a, const complex &b) { return complex(a * b.x, a * b.y); }
        friend GPUQ_COMPLEX complex operator/(const complex &a, const complex &b)
        {
                T scale = T(1) / (fabs(b.x) + fabs(b.y));  // the square of a large divisor would overflow
                T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale, d = T(1) / (bx * bx + by * by);
                return complex((ax * bx + ay * by) * d, (ay * bx - ax * by) * d);
        }
        friend GPUQ_COMPLEX complex operator/(const complex &a, const T &b) { return complex(a.x / b, a.y / b); }
        friend GPUQ_COMPLEX complex operator/(const T &a, const complex &b) { return complex(a) / b; }
        friend GPUQ_COMPLEX bool operator==(const complex &a, const complex &b) { return a.x == b.x && a.y == b.y; }
        friend GPUQ_COMPLEX bool operator==(const complex &a, const T &b) { return a.x == b && a.y == T(); }
        friend GPUQ_COMPLEX bool operator==(const T &a, const complex &b) { return b == a; }
        friend GPUQ_COMPLEX bool operator!=(const complex &a, const complex &b) { return !(a == b); }
        friend GPUQ_COMPLEX bool operator!=(const complex &a, const T &b) { return !(a == b); }
        friend GPUQ_COMPLEX bool operator!=(const T &a, const complex &b) { return !(b == a); }
};

template <typename T> GPUQ_COMPLEX T real(const complex<T> &z) { return z.x; }
template <typename T> GPUQ_COMPLEX T imag(const complex<T> &z) { return z.y; }
template <typename T> GPUQ_COMPLEX T abs(const complex<T> &z) { return hypot(z.x, z.y); }
template <typename T> GPUQ_COMPLEX T arg(const complex<T> &z) { return atan2(z.y, z.x); }
template <typename T> GPUQ_COMPLEX T norm(const complex<T> &z) { return z.x * z.x + z.y * z.y; }
template <typename T> GPUQ_COMPLEX complex<T> conj(const complex<T> &z) { return complex<T>(z.x, -z.y); }
template <typename T> GPUQ_COMPLEX complex<T> polar(const T &r, const T &angle = T()) { return complex<T>(r * cos(angle), r * sin(angle)); }
template <typename T> GPUQ_COMPLEX complex<T> exp(const complex<T> &z) { return polar(T(exp(z.x)), z.y); }
template <typename T> GPUQ_COMPLEX complex<T> log(const complex<T> &z) { return complex<T>(log(abs(z)), arg(z)); }
template <typename T> GPUQ_COMPLEX complex<T> log10(const complex<T> &z) { return log(z) * T(0.43429448190325182765); }
template <typename T> GPUQ_COMPLEX complex<T> sqrt(const complex<T> &z)
{
        if (z.x == T() && z.y == T())
                return complex<T>(T(), z.y);
        T half = sqrt((fabs(z.x) + abs(z)) / 2), other = z.y / (2 * half);
        return z.x >= T() ? complex<T>(half, other) : complex<T>(fabs(other), copysign(half, z.y));
}
template <typename T> GPUQ_COMPLEX complex<T> pow(const complex<T> &a, const complex<T> &b)
{
        return a == T() ? complex<T>(b == T() ? 1 : 0) : exp(b * log(a));
}
template <typename T> GPUQ_COMPLEX complex<T> pow(const complex<T> &a, const T &b) { return pow(a, complex<T>(b)); }
template <typename T> GPUQ_COMPLEX complex<T> pow(const T &a, const complex<T> &b) { return pow(complex<T>(a), b); }
template <typename T> GPUQ_COMPLEX complex<T> sinh(const complex<T> &z)
{
        return complex<T>(sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y));
}
template <typename T> GPUQ_COMPLEX complex<T> cosh(const complex<T> &z)
{
        return complex<T>(cosh(z.x) * cos(z.y), sinh(z.x) * sin(z.y));
}
template <typename T> GPUQ_COMPLEX complex<T> tanh(const complex<T> &z)
{
        T t = tanh(z.x), tangent = tan(z.y), both = t * tangent;
        return complex<T>(t, tangent) / complex<T>(T(1), both);
}
template <typename T> GPUQ_COMPLEX complex<T> sin(const complex<T> &z)
{
        complex<T> w = sinh(complex<T>(-z.y, z.x));
        return complex<T>(w.y, -w.x);
}
template <typename T> GPUQ_COMPLEX complex<T> cos(const complex<T> &z) { return cosh(complex<T>(-z.y, z.x)); }
template <typename T> GPUQ_COMPLEX complex<T> tan(const complex<T> &z)
{
        complex<T> w = tanh(complex<T>(-z.y, z.x));
        return complex<T>(w.y, -w.x);
}
template <typename T> GPUQ_COMPLEX complex<T> asinh(const complex<T> &z)
{
        return z.x < T() ? -asinh(-z) : log(z + sqrt(z * z + T(1)));
}
template <typename T> GPUQ_COMPLEX complex<T> acosh(const complex<T> &z) { return log(z + sqrt(z + T(1)) * sqrt(z - T(1))); }
template <typename T> GPUQ_COMPLEX complex<T> atanh(const complex<T> &z) { return (log(T(1) + z) - log(T(1) - z)) / T(2); }
template <typename T> GPUQ_COMPLEX complex<T> asin(const complex<T> &z)
{
        complex<T> w = asinh(complex<T>(-z.y, z.x));
        return complex<T>(w.y, -w.x);
}
template <typename T> GPUQ_COMPLEX complex<T> acos(const complex<T> &z) { return T(1.57079632679489661923) - asin(z); }
template <typename T> GPUQ_COMPLEX complex<T> atan(const complex<T> &z)
{
        complex<T> w = atanh(complex<T>(-z.y, z.x));
        return complex<T>(w.y, -w.x);
}

#undef GPUQ_COMPLEX
}  // namespace
USING
}  // extern "C++"
"""


# In CuPy, functions of cuComplex.h become operators of complex<T>, so those for double also take floats.
_TRANSLATED = r"""
#pragma once
#include <cuComplex.h>
extern "C++" {
#define GPUQ_COMPLEX static __host__ __device__ inline
#define GPUQ_UNARY(result, name) GPUQ_COMPLEX result name(cuFloatComplex z) { return name##f(z); }
#define GPUQ_BINARY(name) GPUQ_COMPLEX cuFloatComplex name(cuFloatComplex a, cuFloatComplex b) { return name##f(a, b); }
GPUQ_UNARY(float, cuCreal)
GPUQ_UNARY(float, cuCimag)
GPUQ_UNARY(float, cuCabs)
GPUQ_UNARY(cuFloatComplex, cuConj)
GPUQ_BINARY(cuCadd)
GPUQ_BINARY(cuCsub)
GPUQ_BINARY(cuCmul)
GPUQ_BINARY(cuCdiv)
GPUQ_COMPLEX cuFloatComplex cuCfma(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) { return cuCfmaf(a, b, c); }
#undef GPUQ_COMPLEX
#undef GPUQ_UNARY
#undef GPUQ_BINARY
}  // extern "C++"
"""
_TRANSLATED_NAME = "gpuq/cuComplex.h"
_INCLUDED = re.compile(r"(#[ \t]*include[ \t]*)(<cuComplex\.h>|\"cuComplex\.h\")")


def _header(namespace: str, using: str = "") -> str:
    return _TEXT.replace("NAMESPACE", namespace).replace("USING", using)


_HEADERS = {
    "cupy/complex.cuh": lambda: _header("thrust", "using thrust::complex;"),
    "pycuda-complex.hpp": lambda: _header("pycuda"),
    _TRANSLATED_NAME: lambda: _TRANSLATED,
}


def headers_for(code) -> dict[str, str]:
    """{name: text} of those headers that a source text includes."""
    if not isinstance(code, str):
        return {}
    return {name: make() for name, make in _HEADERS.items() if name in code}


def translated(code: str) -> str:
    """The source, whose functions of cuComplex.h for double also take floats."""
    return _INCLUDED.sub(rf'\1"{_TRANSLATED_NAME}"', code)
