# SPDX-License-Identifier: Apache-2.0
"""Textures as arguments of kernels, on the CPU driver and on a GPU alike."""

import numpy as np
import pytest

SOURCE = r"""
extern "C" __global__ void line(cudaTextureObject_t t, float *out)
{
        out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
}

extern "C" __global__ void plane(cudaTextureObject_t image, const float *x, const float *y, float *out)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = tex2D<float>(image, x[i], y[i]);
}

extern "C" __global__ void quads(cudaTextureObject_t image, int *out)
{
        uchar4 v = tex2D<uchar4>(image, threadIdx.x + .5f, threadIdx.y + .5f);
        out[threadIdx.y * blockDim.x + threadIdx.x] = v.x | v.y << 8 | v.z << 16 | v.w << 24;
}

extern "C" __global__ void integers(cudaTextureObject_t t, int *out)
{
        out[threadIdx.x] = tex1Dfetch<short>(t, threadIdx.x);
}

extern "C" __global__ void surface(cudaSurfaceObject_t s)
{
}

extern "C" __global__ void number(float t, float *out)
{
        *out = t;
}
"""
IMAGE = np.arange(35, dtype=np.float32).reshape(5, 7)


@pytest.fixture
def kernels(gpuq):
    return gpuq.module(SOURCE)


def sampled(gpuq, kernels, texture, at):
    x, y = (np.ascontiguousarray(part, np.float32) for part in zip(*at))
    out = np.zeros(len(at), np.float32)
    kernels["plane"].run((1, len(at)), texture, gpuq.In(x), gpuq.In(y), gpuq.Out(out))
    return out


CENTRES = [(x + .5, y + .5) for y in range(5) for x in range(7)]


def test_one_axis_is_fetched_by_index(gpuq, kernels):
    out = np.zeros(9, np.float32)
    kernels["line"].run((1, 9), gpuq.Texture(np.arange(7, dtype=np.float32)), gpuq.Out(out))
    assert out.tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 0]


def test_a_numpy_array_gets_padded_rows(gpuq, kernels):
    """A row has 28 bytes, which no GPU takes; the array itself and its transpose are as they were."""
    assert (sampled(gpuq, kernels, gpuq.Texture(IMAGE), CENTRES) == IMAGE.ravel()).all()
    turned = np.ascontiguousarray(IMAGE.T).T
    assert (sampled(gpuq, kernels, gpuq.Texture(turned), CENTRES) == IMAGE.ravel()).all()


@pytest.mark.parametrize("where", ("array", "to_device"))
def test_padded_arrays_in_shared_and_in_gpu_memory(gpuq, kernels, where):
    padded = np.pad(IMAGE, ((0, 0), (0, 1)), constant_values=99)
    held = getattr(gpuq, where)(padded)
    assert (sampled(gpuq, kernels, gpuq.Texture(held, width=7), CENTRES) == IMAGE.ravel()).all()
    # Right of the last column is the last column, not the padding.
    assert sampled(gpuq, kernels, gpuq.Texture(held, width=7), [(7.5, .5)]).tolist() == [6]


def test_rows_that_the_device_does_not_take_are_told(gpuq, kernels):
    with pytest.raises(gpuq.InvalidError, match="a multiple of 32 bytes"):
        sampled(gpuq, kernels, gpuq.Texture(gpuq.array(IMAGE)), CENTRES)


@pytest.mark.parametrize("dtype", ("float16", "float32"))
def test_filtering_and_modes(gpuq, kernels, dtype):
    texture = gpuq.Texture(IMAGE.astype(dtype), filter_mode="linear", address_mode=("wrap", "clamp"), normalized=True)
    at = [(1 / 7, .1), (1.5 / 7 + 1, .3), (-.5 / 7, .5), (0, .9), (.5, -1)]
    assert sampled(gpuq, kernels, texture, at) == pytest.approx([.5, 8, 20, 31, 3], abs=35 / 256)
    border = gpuq.Texture(IMAGE.astype(dtype), address_mode="border")
    assert sampled(gpuq, kernels, border, [(-.5, 1.5), (6.5, 4.5), (7.5, 4.5)]).tolist() == [0, 34, 0]


def test_channels_are_the_last_axis(gpuq, kernels):
    quads = np.arange(3 * 5 * 4, dtype=np.uint8).reshape(3, 5, 4)
    out = np.zeros((3, 5), np.int32)
    kernels["quads"].run((1, (5, 3)), gpuq.Texture(quads), gpuq.Out(out))
    assert (out == quads.view(np.int32)[:, :, 0]).all()
    with pytest.raises(ValueError, match="1, 2 or 4 channels, not 3"):
        gpuq.Texture(quads[:, :, :3])


def test_integers_as_they_are_and_as_fractions(gpuq, kernels):
    shorts, out = np.array([-32767, 0, 32767], np.int16), np.zeros(3, np.int32)
    kernels["integers"].run((1, 3), gpuq.Texture(shorts), gpuq.Out(out))
    assert (out == shorts).all()
    fractions = np.zeros(3, np.float32)
    kernels["line"].run((1, 3), gpuq.Texture(shorts, read_mode="normalized"), gpuq.Out(fractions))
    assert fractions.tolist() == [-1, 0, 1]


def test_a_job_fetches_what_the_job_before_wrote(gpuq, kernels):
    held, out = gpuq.to_device(np.zeros(8, np.float32)), np.zeros(8, np.float32)
    for value in range(1, 20):
        gpuq.job().fill(held, value).submit()
        kernels["line"].run((1, 8), gpuq.Texture(held), gpuq.Out(out))
        assert (out == value).all()


def test_a_prepared_job_takes_another_array(gpuq, kernels):
    first, second = (np.arange(8, dtype=np.float32) + base for base in (0, 100))
    for make in (gpuq.to_device, gpuq.array, np.array):
        out = gpuq.zeros(8, np.float32)
        prepared = kernels["line"].prepare((1, 8), gpuq.Texture(make(first)), gpuq.Out(out))
        prepared.run()
        assert (out == first).all()
        prepared.run(t=make(second))
        assert (out == second).all()
        prepared.run()
        assert (out == first).all()
        with pytest.raises(ValueError, match="shape"):
            prepared.fire(t=make(first[:4]))


def test_many_prepared_jobs_in_flight_with_two_launches_each(gpuq, kernels):
    """Each is a graph, patched with another texture object."""
    arrays = [gpuq.to_device(np.full(8, i, np.float32)) for i in range(30)]
    outs = [gpuq.zeros((2, 8), np.float32) for _ in arrays]
    first, second = outs[0][0], outs[0][1]
    prepared = (gpuq.job().launch(kernels["line"], (1, 8), gpuq.Texture(arrays[0]), gpuq.Out(first))
                .launch(kernels["line"], (1, 8), gpuq.Texture(arrays[0]), gpuq.Out(second)).prepare())
    jobs = [prepared.fire((arrays[0], array), (first, out[0]), (second, out[1])) for array, out in zip(arrays, outs)]
    for job in jobs:
        job.wait()
    assert [out[0, 0] for out in outs] == list(range(30)) and [out[1, 7] for out in outs] == list(range(30))


def test_wrong_textures_and_wrong_arguments(gpuq, kernels):
    out = np.zeros(8, np.float32)
    with pytest.raises(TypeError, match="float64"):
        gpuq.Texture(np.zeros(8))
    with pytest.raises(ValueError, match="need normalized=True"):
        gpuq.Texture(IMAGE, address_mode="wrap")
    with pytest.raises(ValueError, match="needs floats"):
        gpuq.Texture(IMAGE.astype(np.int32), filter_mode="linear")
    with pytest.raises(ValueError, match="integers of 8 or 16 bits"):
        gpuq.Texture(IMAGE, read_mode="normalized")
    with pytest.raises(ValueError, match="fetched by index"):
        gpuq.Texture(np.zeros(8, np.float32), filter_mode="linear")
    with pytest.raises(ValueError, match="address_mode must be"):
        gpuq.Texture(IMAGE, address_mode="repeat")
    with pytest.raises(ValueError, match="width must be from 1 to 7"):
        gpuq.Texture(IMAGE, width=8)
    with pytest.raises(ValueError, match="one axis or two"):
        gpuq.Texture(np.zeros((2, 2, 2, 2), np.float32))
    with pytest.raises(TypeError, match="must be a gpuq.Texture, not ndarray"):
        kernels["line"].run((1, 8), gpuq.In(np.zeros(8, np.float32)), gpuq.Out(out))
    with pytest.raises(TypeError, match="array, not a Texture"):
        kernels["line"].run((1, 8), gpuq.Texture(IMAGE), gpuq.Texture(IMAGE))
    with pytest.raises(TypeError, match="a surface, which gpuq does not have"):
        kernels["surface"].run((1, 1), gpuq.Texture(IMAGE))
    with pytest.raises(TypeError, match="cannot be a Texture"):
        kernels["number"].run((1, 1), gpuq.Texture(IMAGE), gpuq.Out(out))


def test_a_texture_job_does_not_wait_for_a_running_kernel(gpuq, kernels, module, gate):
    """Of the same client, on other memory: making a texture object waits for nobody."""
    running = module["gated"].submit((1, 1), gate.flag, gpuq.In(np.array([7], np.int32)), gpuq.Out(np.zeros(1, np.int32)))
    for n in range(1, 5):
        out = np.zeros(n, np.float32)
        kernels["line"].run((1, n), gpuq.Texture(np.ones(n, np.float32)), gpuq.Out(out))
        assert (out == 1).all()
    assert not running.done()
    gate.open()
    running.wait()


def test_a_raw_kernel_takes_textures(gpuq):
    """As CuPy has kernels."""
    out = gpuq.zeros(4, np.float32)
    gpuq.RawKernel(SOURCE, "line")((1,), (4,), (gpuq.Texture(np.arange(4, dtype=np.float32)), gpuq.Out(out)))
    assert out.tolist() == [0, 1, 2, 3]


def test_a_checked_job_may_have_textures(gpuq, kernels):
    out = np.zeros(7, np.float32)
    gpuq.job(check=True).launch(kernels["line"], (1, 7), gpuq.Texture(np.arange(7, dtype=np.float32)), gpuq.Out(out)).run()
    assert out.tolist() == list(range(7))
