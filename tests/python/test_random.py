# SPDX-License-Identifier: Apache-2.0
"""Random numbers: Philox 4x32-10 against the vectors that its authors published, and against numpy with cuRAND's conventions."""

import hashlib

import numpy as np
import pytest

# Random123's kat_vectors: counter, key, result.
PUBLISHED = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]
# The first digits of SHA-256, of 100,000 normal numbers of seed 1, and of their scan.
BITS = {"scan float32": "a5c69691f9e3a64f", "normal float32": "0242238699e17b65", "scan float64": "42ce264e988ae00a", "normal float64": "1cce60bcf9a9c035"}
SIZES = [1, 31, 257, 100_000]
SEED, STREAM = 0x123456789ABCDEF, 5


def philox(n_words, seed=SEED, stream=STREAM):
    """The words from the beginning of a stream on."""
    mask = np.uint64(0xFFFFFFFF)
    a = np.arange(-(-n_words // 4), dtype=np.uint64)
    b, c, d = np.zeros_like(a), np.full_like(a, stream & 0xFFFFFFFF), np.full_like(a, stream >> 32)
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (second >> np.uint64(32)) ^ b ^ np.uint64(key[0]), second & mask, (first >> np.uint64(32)) ^ d ^ np.uint64(key[1]), first & mask
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack([a, b, c, d], 1).astype(np.uint32).ravel()[:n_words]


def uniform(n, dtype):
    if dtype == "float32":
        return philox(n).astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)
    words = philox(2 * n).astype(np.uint64)
    return (words[::2] ^ words[1::2] << np.uint64(21)).astype(np.float64) * 2.0**-53 + 2.0**-54


def normal(n, dtype):
    pairs = uniform(n + n % 4, dtype).astype(np.float64).reshape(-1, 2)
    length, angle = np.sqrt(-2 * np.log(pairs[:, 0])), 2 * np.pi * pairs[:, 1]
    return np.stack([length * np.sin(angle), length * np.cos(angle)], 1).ravel()[:n]


@pytest.mark.parametrize("counter, key, wanted", PUBLISHED)
def test_bits_are_those_that_the_authors_published(gpuq, counter, key, wanted):
    block, stream, seed = (low | high << 32 for low, high in (counter[:2], counter[2:], key))
    out = gpuq.zeros(4, np.uint32)
    gpuq.builtin().get_kernel("random_bits_u32").run((1, 32), gpuq.Out(out), 4, seed, stream, block, 0)
    assert tuple(out) == wanted


def test_the_words_of_a_seed_and_a_stream(gpuq):
    for n in SIZES:
        assert np.array_equal(gpuq.random(n, "uint32", seed=SEED, stream=STREAM), philox(n)), n
    assert np.array_equal(gpuq.random(999, "int32", seed=SEED, stream=STREAM), philox(999).view(np.int32))
    for dtype in ("uint64", "int64"):
        assert np.array_equal(gpuq.random(999, dtype, seed=SEED, stream=STREAM), philox(1998).view(dtype))
    assert np.array_equal(gpuq.random(7, "uint32"), philox(7, 0, 0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers_have_the_bits_of_curand(gpuq, dtype):
    for n in SIZES:
        got = gpuq.random(n, dtype, seed=SEED, stream=STREAM)
        assert got.dtype == dtype and np.array_equal(got, uniform(n, dtype)), n
    assert got.min() > 0 and got.max() <= 1 and abs(got.mean() - 0.5) < 0.01


@pytest.mark.parametrize("dtype, tolerance", [("float32", 3e-6), ("float64", 1e-14)])
def test_normal_numbers_are_those_of_box_and_muller(gpuq, dtype, tolerance):
    for n in SIZES:
        got = np.asarray(gpuq.random(n, dtype, distribution="normal", seed=SEED, stream=STREAM))
        assert got.dtype == dtype and np.allclose(got, normal(n, dtype), rtol=tolerance, atol=tolerance), n
    assert abs(got.mean()) < 0.02 and abs(got.std() - 1) < 0.02 and (got**4).mean() == pytest.approx(3, abs=0.2)


CURAND = r"""
#include <curand_kernel.h>

extern "C" __global__ void draw(unsigned long long seed, unsigned long long stream, uint4 *bits, float4 *uniform, double2 *uniform2,
                                float4 *normal, double2 *normal2, int n)
{
        curandStatePhilox4_32_10_t state;

        for (int i = 0; i < n; i++) {
                curand_init(seed, stream, 4 * i, &state);
                bits[i] = curand4(&state);
                curand_init(seed, stream, 4 * i, &state);
                uniform[i] = curand_uniform4(&state);
                curand_init(seed, stream, 4 * i, &state);
                uniform2[i] = curand_uniform2_double(&state);
                curand_init(seed, stream, 4 * i, &state);
                normal[i] = curand_normal4(&state);
                curand_init(seed, stream, 4 * i, &state);
                normal2[i] = curand_normal2_double(&state);
        }
}
"""


def test_the_numbers_are_those_of_curand(gpuq):
    """Bit by bit but for normal ones, of which cuRAND's depend on the device's logarithm and sine."""
    try:
        draw = gpuq.module(CURAND).get_kernel("draw")
    except gpuq.CompileError as problem:
        pytest.skip(f"no headers of cuRAND here: {str(problem)[:100]}")
    n, shapes = 50, [(4, np.uint32), (4, np.float32), (2, np.float64), (4, np.float32), (2, np.float64)]
    outs = [gpuq.zeros((n, width), dtype) for width, dtype in shapes]
    draw.run((1, 1), np.uint64(SEED), np.uint64(STREAM), *map(gpuq.Out, outs), np.int32(n))
    for i, (out, distribution) in enumerate(zip(outs, ("bits", "uniform", "uniform", "normal", "normal"))):
        ours = np.asarray(gpuq.random(out.shape, out.dtype, distribution=distribution, seed=SEED, stream=STREAM))
        if distribution == "normal":
            assert np.allclose(ours, out, rtol=3e-6, atol=3e-6), i
        else:
            assert ours.tobytes() == out.tobytes(), i


@pytest.mark.parametrize("dtype, distribution", [("uint32", "bits"), ("int64", "bits"), ("float32", "uniform"), ("float64", "uniform"),
                                                 ("float32", "normal"), ("float64", "normal")])
def test_a_number_depends_on_its_index_alone(gpuq, dtype, distribution):
    """Other offsets, memory, geometries: the same bits."""
    options = {"distribution": distribution, "seed": 3}
    whole = np.asarray(gpuq.random(1000, dtype, **options))
    for offset in (1, 2, 3, 4, 127, 999):
        assert np.asarray(gpuq.random(1000 - offset, dtype, offset=offset, **options)).tobytes() == whole[offset:].tobytes(), offset
    assert gpuq.random((10, 100), dtype, device=0, **options).get().tobytes() == whole.tobytes()
    if dtype == "int64":
        return
    kernel = gpuq.builtin().get_kernel(f"random_{distribution}_{dtype.replace('float', 'f').replace('uint', 'u')}")
    for grid, block in ((1, 1), (3, 33), (20, 1024)):
        out = gpuq.zeros(1000, dtype)
        kernel.run((grid, block), gpuq.Out(out), 1000, 3, 0, 0, 0)
        assert out.tobytes() == whole.tobytes(), (grid, block)
    far = gpuq.random(5, dtype, offset=2**61, **options)
    assert np.asarray(far).tobytes() != whole[:5].tobytes()
    assert np.asarray(gpuq.random(4, dtype, offset=2**61 + 1, **options)).tobytes() == np.asarray(far)[1:].tobytes()


def test_random_numbers_in_jobs_and_prepared_jobs(gpuq):
    a, b = gpuq.device_array(1000, np.float32), gpuq.device_array(1000, np.float32)
    job = gpuq.job().random(a, seed=1).sort(a, b).prepare()
    job.run()
    wanted = np.sort(gpuq.random(1000, seed=1))
    assert np.array_equal(b.get(), wanted)
    a.set(np.zeros(1000, np.float32))
    job.run()
    assert np.array_equal(b.get(), wanted)
    part = gpuq.zeros(20, np.float32)
    gpuq.job().random(part[5:10], "normal", seed=1).run()
    assert not part[:5].any() and not part[10:].any() and np.array_equal(part[5:10], gpuq.random(5, distribution="normal", seed=1))


def test_what_is_no_random_number_is_refused_by_name(gpuq):
    for problem, call in (("'cauchy' is none of bits", lambda: gpuq.random(3, distribution="cauchy")),
                          ("'bits' is for int32, uint32, int64 and uint64, not float32", lambda: gpuq.random(3, distribution="bits")),
                          ("'normal' is for float32 and float64, not int64", lambda: gpuq.random(3, "int64", distribution="normal")),
                          ("offset 4611686018427387904 is beyond the end", lambda: gpuq.random(3, "uint64", offset=1 << 62)),
                          ("seed -1 is not from 0", lambda: gpuq.random(3, seed=-1)),
                          ("no elements", lambda: gpuq.job().random(np.zeros(0, np.float32)))):
        with pytest.raises(ValueError, match=problem):
            call()
    for problem, call in (("dtype float16", lambda: gpuq.random(3, "float16")),
                          ("seed must be an integer, not float", lambda: gpuq.random(3, seed=1.5)),
                          ("stream must be an integer, not str", lambda: gpuq.random(3, stream="1"))):
        with pytest.raises(TypeError, match=problem):
            call()


def test_bits_are_the_same_on_every_device_and_by_every_compiler(gpuq):
    """What this is on one machine it is on all."""
    sums = {dtype: gpuq.scan(gpuq.random(100_000, dtype, distribution="normal", seed=1)) for dtype in ("float32", "float64")}
    found = {f"{name} {dtype}": hashlib.sha256(np.asarray(array).tobytes()).hexdigest()[:16] for dtype, array in sums.items()
             for name, array in (("scan", array), ("normal", gpuq.random(100_000, dtype, distribution="normal", seed=1)))}
    assert found == BITS
