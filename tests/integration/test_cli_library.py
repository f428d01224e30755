# SPDX-License-Identifier: Apache-2.0
"""gpuq run library:OPERATION, on NumPy files."""

import numpy as np
import pytest

from harness import place

EXIT_USAGE, EXIT_JOB_FAILED = 2, 1


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def run(gpuqd, tmp_path):
    """Runs it in the folder of the files."""
    def run(*arguments):
        return gpuqd.run("run", *arguments, cwd=tmp_path)
    return run


def save(folder, **arrays):
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


@pytest.mark.parametrize("dtype, tolerance", [("float16", 0.05), ("float32", 1e-5), ("float64", 1e-13)])
def test_products_also_of_column_major_matrices_and_batches(run, tmp_path, rng, dtype, tolerance):
    a, b = rng.uniform(-1, 1, (2, 5, 7)).astype(dtype), rng.uniform(-1, 1, (7, 3)).astype(dtype)
    save(tmp_path, a=a, b=np.asfortranarray(b), first=np.asfortranarray(a[0]))
    result = run("library:matmul", "in:a.npy", "in:b.npy", f"out:c.npy:{dtype}:2,5,3")
    assert result.returncode == 0, result.stderr
    assert np.allclose(np.load(tmp_path / "c.npy"), a @ b, rtol=0, atol=tolerance)
    result = run("library:matmul", "in:first.npy", "in:b.npy", f"out:d.npy:{dtype}:5,3")
    assert result.returncode == 0, result.stderr
    assert np.allclose(np.load(tmp_path / "d.npy"), a[0] @ b, rtol=0, atol=tolerance)
    result = run("library:matmul", "in:first.npy", "in:b.npy", "inout:d.npy")
    assert result.returncode == 0, result.stderr
    assert np.allclose(np.load(tmp_path / "d.npy"), 2 * (a[0] @ b), rtol=0, atol=2 * tolerance)


def test_transforms(run, tmp_path, rng):
    a, real = rng.uniform(-1, 1, (4, 6)) + 1j * rng.uniform(-1, 1, (4, 6)), rng.uniform(-1, 1, (4, 7)).astype(np.float32)
    save(tmp_path, a=a, real=real)
    result = run("library:fft2", "in:a.npy", "out:there.npy:complex128:4,6")
    if result.returncode == EXIT_JOB_FAILED and "no library" in result.stderr:
        pytest.skip(result.stderr)
    assert result.returncode == 0, result.stderr
    assert np.allclose(np.load(tmp_path / "there.npy"), np.fft.fft2(a))
    assert run("library:ifft2", "in:there.npy", "out:back.npy:complex128:4,6").returncode == 0
    assert np.allclose(np.load(tmp_path / "back.npy"), a)
    assert run("library:fft", "in:real.npy", "out:half.npy:complex64:4,4").returncode == 0
    assert np.allclose(np.load(tmp_path / "half.npy"), np.fft.rfft(real), atol=1e-5)
    assert run("library:ifft", "in:half.npy", "out:again.npy:float32:4,7").returncode == 0
    assert np.allclose(np.load(tmp_path / "again.npy"), real, atol=1e-5)


def test_scans(run, tmp_path, rng):
    x = rng.integers(0, 2**32, (3, 9000), np.uint32)
    save(tmp_path, x=x, real=rng.uniform(-1, 1, 40))
    for operation, wanted in (("scan", np.cumsum(x, dtype=np.uint32)), ("exclusive_scan", np.cumsum(x, dtype=np.uint32) - x.ravel())):
        result = run(f"library:{operation}", "in:x.npy", "out:y.npy:uint32:3,9000")
        assert result.returncode == 0, result.stderr
        assert np.array_equal(np.load(tmp_path / "y.npy").ravel(), wanted)
    assert run("library:scan", "in:real.npy", "out:y.npy:float64:40").returncode == 0
    assert np.allclose(np.load(tmp_path / "y.npy"), np.cumsum(np.load(tmp_path / "real.npy")))


def test_sorts(run, tmp_path, rng):
    keys, values = rng.integers(-50, 50, (4, 600)), rng.uniform(size=(4, 600)).astype(np.complex64)
    save(tmp_path, keys=keys, values=values)
    order = np.argsort(keys, axis=None, kind="stable")
    result = run("library:sort", "in:keys.npy", "out:sorted.npy:int64:4,600", "in:values.npy", "out:moved.npy:complex64:4,600")
    assert result.returncode == 0, result.stderr
    assert np.array_equal(np.load(tmp_path / "sorted.npy").ravel(), keys.ravel()[order])
    assert np.array_equal(np.load(tmp_path / "moved.npy").ravel(), values.ravel()[order])
    result = run("library:sort_descending", "in:keys.npy", "out:sorted.npy:int64:4,600")
    assert result.returncode == 0, result.stderr
    assert np.array_equal(np.load(tmp_path / "sorted.npy").ravel(), np.sort(keys, axis=None)[::-1])


def test_random_numbers(run, tmp_path):
    for operation, dtype in (("random_bits", "uint64"), ("random_uniform", "float32"), ("random_normal", "float64")):
        result = run(f"library:{operation}", f"out:x.npy:{dtype}:30,100", "u64:7")
        assert result.returncode == 0, result.stderr
        result = run(f"library:{operation}", f"out:y.npy:{dtype}:100", "u64:7", "u64:200")
        assert result.returncode == 0, result.stderr
        x, y = np.load(tmp_path / "x.npy"), np.load(tmp_path / "y.npy")
        assert np.array_equal(x[2], y) and len(np.unique(x)) > 2990
        assert abs(x.mean() - {"random_bits": 2.0**63, "random_uniform": 0.5, "random_normal": 0}[operation]) < 0.1 * max(1, x.std())


def test_a_detached_operation_leaves_its_workspace(run, gpuqd, tmp_path, rng):
    """The workspace is one more output of the job, without a file."""
    x = rng.integers(-2**31, 2**31, 20_000).astype(np.int32)
    save(tmp_path, x=x)
    result = run("--detach", "library:scan", "in:x.npy", "out:y.npy:int32:20000")
    assert result.returncode == 0, result.stderr
    fetched = gpuqd.run("fetch", result.stdout.strip(), cwd=tmp_path)
    assert fetched.returncode == 0, fetched.stderr
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.cumsum(x, dtype=np.int32))


@pytest.mark.parametrize("arguments, words", [
    (["library:scan", "in:a.npy"], "library:scan takes the arguments IN OUT, not 1 of them"),
    (["library:scan", "in:a.npy", "f64:1"], "argument 2 `f64:1': expected an array"),
    (["library:scan", "in:a.npy", "in:a.npy"], "argument 2 `in:a.npy': it is written"),
    (["library:scan", "inout:a.npy", "out:c.npy:f64:4,6"], "argument 1 `inout:a.npy': it is only read"),
    (["library:scan", "in:a.npy", "out:c.npy:f64:24"], "its type or shape is not that of argument 1"),
    (["library:scan", "in:small.npy", "out:c.npy:f16:4"], "argument 1 `in:small.npy': expected an array of float32"),
    (["library:sort", "in:a.npy", "out:c.npy:f64:4,6", "in:b.npy"], "takes the arguments KEYS SORTED [VALUES MOVED], not 3 of them"),
    (["library:sort", "in:a.npy", "out:c.npy:f64:4,6", "in:small.npy", "out:d.npy:f16:4"], "argument 3 `in:small.npy': expected as many values"),
    (["library:sort", "in:small4.npy", "out:c.npy:f32:4", "in:small.npy", "out:d.npy:f16:4"], "values of a multiple of 4 bytes"),
    (["library:sort", "in:a.npy", "out:c.npy:f64:4,6", "in:b.npy", "out:d.npy:f64:4,6"], "argument 4 `out:d.npy:f64:4,6': its type or shape"),
    (["library:random_bits", "out:c.npy:f64:4", "u64:1"], "argument 1 `out:c.npy:f64:4': random bits are for int32"),
    (["library:random_normal", "out:c.npy:u64:4", "u64:1"], "argument 1 `out:c.npy:u64:4': these random numbers are for float32"),
    (["library:random_uniform", "out:c.npy:f64:4", "f64:1"], "argument 2 `f64:1': expected u64:NUMBER"),
    (["library:random_uniform", "out:c.npy:f64:4"], "takes the arguments OUT SEED [OFFSET], not 1 of them"),
    (["library:matmult", "in:a.npy"], "no operation `matmult'; it has: matmul, fft, fft2, fft3, ifft"),
    (["library:matmul", "in:a.npy", "in:a.npy"], "takes 3 arguments (A B C), not 2"),
    (["library:matmul", "in:a.npy", "in:a.npy", "f64:1"], "argument 3 `f64:1': expected an array"),
    (["library:matmul", "in:a.npy", "inout:a.npy", "out:c.npy:f64:4,4"], "argument 2 `inout:a.npy': it is only read"),
    (["library:matmul", "in:a.npy", "in:a.npy", "in:a.npy"], "argument 3 `in:a.npy': it is written"),
    (["library:matmul", "in:a.npy", "in:a.npy", "out:c.npy:f32:4,4"], "argument 3 `out:c.npy:f32:4,4': a product is of three"),
    (["library:matmul", "in:a.npy", "in:a.npy", "out:c.npy:f64:4,4"], "argument 2 `in:a.npy': expected as many rows as A has columns"),
    (["library:matmul", "in:a.npy", "in:b.npy", "out:c.npy:f64:4,5"], "argument 3 `out:c.npy:f64:4,5': expected the rows of A"),
    (["library:fft", "in:a.npy", "out:c.npy:complex128:4,6"], "argument 2 `out:c.npy:complex128:4,6': its shape"),
    (["library:fft", "in:a.npy", "out:c.npy:complex64:4,4"], "argument 2 `out:c.npy:complex64:4,4': its type"),
    (["library:ifft", "in:a.npy", "out:c.npy:complex128:4,4"], "its type"),
    (["library:fft3", "in:a.npy", "out:c.npy:complex128:4,4"], "argument 1 `in:a.npy': it has too few axes"),
    (["-DX=1", "library:matmul", "in:a.npy", "in:b.npy", "out:c.npy:f64:4,4"], "applies to source files"),
])
def test_mistakes_are_named(run, tmp_path, arguments, words):
    save(tmp_path, a=np.zeros((4, 6)), b=np.zeros((6, 4)), small=np.zeros(4, np.float16), small4=np.zeros(4, np.float32))
    result = run(*arguments)
    assert result.returncode == EXIT_USAGE and words in result.stderr, result.stderr
    assert not (tmp_path / "c.npy").exists()


@pytest.mark.skipif(place.SANITIZED, reason="one way is enough")
def test_a_detached_product(gpuqd, run, tmp_path, rng):
    a = rng.integers(-9, 9, (3, 3)).astype(np.float64)
    save(tmp_path, a=a)
    result = run("--detach", "library:matmul", "in:a.npy", "in:a.npy", "out:c.npy:f64:3,3")
    assert result.returncode == 0, result.stderr
    result = gpuqd.run("fetch", result.stdout.strip(), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (np.load(tmp_path / "c.npy") == a @ a).all()
