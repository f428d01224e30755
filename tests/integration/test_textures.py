# SPDX-License-Identifier: Apache-2.0
"""Textures over buffers, by kernels in PTX and in CUDA C++. The same on the CPU driver and on a GPU, where the CUDA C++
Programming Guide defines the result; with filtering to 1/256, the unit of its weights."""

import numpy
import pytest

from harness.client import In, Job, Out, Refused, Slice, i32, i64, texture
from harness.messages import pb

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
# Each thread fetches at its two coordinates; what it gets is four words of the output.
PTX = HEAD + "".join(f""".visible .entry {name}(.param .u64 object, .param .u64 at, .param .u64 to)
{{
        .reg .b32 %i, %a, %b, %r<4>;
        .reg .b64 %object, %at, %to;
        ld.param.u64 %object, [object];
        mov.u32 %i, %tid.x;
        ld.param.u64 %at, [at];
        mad.wide.u32 %at, %i, 8, %at;
        ld.param.u64 %to, [to];
        mad.wide.u32 %to, %i, 16, %to;
        ld.global.v2.b32 {{%a, %b}}, [%at];
        {instruction}
        st.global.v4.b32 [%to], {{%r0, %r1, %r2, %r3}};
        ret;
}}
""" for name, instruction in {
    "index_f32": "tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%object, {%a}];",
    "index_u32": "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%object, %a];",
    "index_s32": "tex.1d.v4.s32.s32 {%r0, %r1, %r2, %r3}, [%object, {%a}];",
    "plane_f32": "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%object, {%a, %b}];",
    "plane_u32": "tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%object, {%a, %b}];",
    "plane_s32": "tex.2d.v4.s32.f32 {%r0, %r1, %r2, %r3}, [%object, {%a, %b}];",
    "size": "txq.width.b32 %r0, [%object];\n        txq.height.b32 %r1, [%object];\n"
            "        mov.b32 %r2, 0;\n        mov.b32 %r3, 0;",
}.items())

FORMATS = {"u8": pb.TEXEL_U8, "u16": pb.TEXEL_U16, "u32": pb.TEXEL_U32, "i8": pb.TEXEL_I8, "i16": pb.TEXEL_I16, "i32": pb.TEXEL_I32,
           "f16": pb.TEXEL_F16, "f32": pb.TEXEL_F32}
WORDS = {"u": numpy.uint32, "i": numpy.int32, "f": numpy.float32}
PITCH = 64  # bytes: a multiple of 32


def rows_of(values, pitch=PITCH):
    """An image with this pitch, as bytes; what lies between rows is no part of it."""
    raw = numpy.full((len(values), pitch), 0xa5, numpy.uint8)
    for row, line in zip(raw, values):
        row[:line.nbytes] = numpy.frombuffer(line.tobytes(), numpy.uint8)
    return raw


def plane_of(values, format, channels=1, **fields):
    return dict(format=FORMATS[format], channels=channels, width=values.shape[1], height=values.shape[0], pitch=PITCH, **fields)


def fetch(client, module, kernel, argument, at, n_channels=1, dtype=numpy.float32):
    """What each thread gets for its coordinates."""
    at = numpy.asarray(at, numpy.int32 if "index" in kernel else numpy.float32)
    if at.ndim == 1:
        at = numpy.stack([at, numpy.zeros_like(at)], 1)
    to = client.array(numpy.zeros((len(at), 4), numpy.uint32))
    client.run_well(Job().launch(module, kernel, [argument, In(client.array(at)), Out(to)], block=len(at)))
    return to.array(dtype).reshape(-1, 4)[:, :n_channels]


def load(client):
    return client.load(PTX, format=pb.PTX, name="textures.ptx")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("channels", (1, 2, 4))
def test_texels_are_fetched_by_index(client, format, channels):
    """Each format, as integers of 32 bits or floats, with 0 outside."""
    dtype = numpy.dtype(format[0] + str(int(format[1:]) // 8))
    values = numpy.array([0, 1, 3, 100, 127, 33, 90, 2, 5, 9, 11, 17], dtype).reshape(-1, channels)
    if format[0] == "i":
        values = -values
    words = WORDS[format[0]]
    got = fetch(client, load(client), f"index_{'f32' if format[0] == 'f' else 'u32' if format[0] == 'u' else 's32'}",
                texture(client.array(values), format=FORMATS[format], channels=channels, width=len(values)),
                [*range(len(values)), -1, len(values), -2147483648], channels, words)
    assert (got[:len(values)] == values.astype(words)).all()
    assert (got[len(values):] == 0).all()


@pytest.mark.parametrize("format, values, wanted", [
    ("u8", [0, 255, 51], [0, 1, .2]), ("i8", [0, 127, -127, -128], [0, 1, -1, -1]),
    ("u16", [0, 65535, 13107], [0, 1, .2]), ("i16", [0, 32767, -32767, -32768], [0, 1, -1, -1])])
def test_integers_are_read_as_fractions_of_the_largest(client, format, values, wanted):
    dtype = numpy.dtype(format[0] + str(int(format[1:]) // 8))
    got = fetch(client, load(client), "index_f32",
                texture(client.array(numpy.array(values, dtype)), format=FORMATS[format], channels=1, width=len(values), to_float=True),
                range(len(values)))
    assert got[:, 0] == pytest.approx(wanted, abs=1e-6)
    assert (got[:2, 0] == wanted[:2]).all()


IMAGE = numpy.arange(12, dtype=numpy.float32).reshape(3, 4) * 8


def test_the_nearest_texel_and_its_row(client):
    got = fetch(client, load(client), "plane_f32", texture(client.array(rows_of(IMAGE)), **plane_of(IMAGE, "f32")),
                [(x + .5, y + .5) for y in range(3) for x in range(4)])
    assert (got[:, 0].reshape(3, 4) == IMAGE).all()


@pytest.mark.parametrize("kernel, format", [("plane_u32", "u8"), ("plane_s32", "i16"), ("plane_u32", "u32")])
def test_integers_in_rows(client, kernel, format):
    dtype = numpy.dtype(format[0] + str(int(format[1:]) // 8))
    values = (numpy.arange(24).reshape(3, 4, 2) * 3 - 20 * (format[0] == "i")).astype(dtype)
    got = fetch(client, load(client), kernel, texture(client.array(rows_of(values)), **plane_of(values, format, 2)),
                [(x + .25, y + .75) for y in range(3) for x in range(4)], 2, WORDS[format[0]])
    assert (got.reshape(3, 4, 2) == values).all()


# What index is fetched for texel centres -5 to 8 of a row of 4.
OUTSIDE = range(-5, 9)
MODES = {
    "CLAMP": [min(max(i, 0), 3) for i in OUTSIDE],
    "BORDER": [i if 0 <= i < 4 else None for i in OUTSIDE],
    "WRAP": [i % 4 for i in OUTSIDE],
    "MIRROR": [i % 4 if i // 4 % 2 == 0 else 3 - i % 4 for i in OUTSIDE],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("linear", (False, True))
def test_address_modes_outside(client, mode, linear):
    """At the centres of texels filtering has no effect."""
    number = getattr(pb, "ADDRESS_" + mode)
    got = fetch(client, load(client), "plane_f32",
                texture(client.array(rows_of(IMAGE)),
                        **plane_of(IMAGE, "f32", address_x=number, address_y=number, normalized=True, linear=linear)),
                [((x + .5) / 4, .5) for x in OUTSIDE])
    assert got[:, 0].tolist() == [0 if i is None else IMAGE[1, i] for i in MODES[mode]]


@pytest.mark.parametrize("mode", ("CLAMP", "BORDER"))
def test_coordinates_in_texels_outside(client, mode):
    number = getattr(pb, "ADDRESS_" + mode)
    got = fetch(client, load(client), "plane_f32",
                texture(client.array(rows_of(IMAGE)), **plane_of(IMAGE, "f32", address_x=number, address_y=number)),
                [(x + .5, 2.5) for x in OUTSIDE] + [(.5, -3), (.5, 3.5)])
    rows = [IMAGE[0, 0], IMAGE[2, 0]] if mode == "CLAMP" else [0, 0]
    assert got[:, 0].tolist() == [0 if i is None else IMAGE[2, i] for i in MODES[mode]] + rows


def bilinear(image, x, y):
    """By the formula of the guide, with weights of 8 bits, clamped."""
    def split(at):
        whole = numpy.floor(at - .5)
        return int(whole), numpy.round((at - .5 - whole) * 256) / 256

    (i, a), (k, b) = split(x), split(y)
    def texel(i, k):
        return float(image[min(max(k, 0), image.shape[0] - 1), min(max(i, 0), image.shape[1] - 1)])
    return ((1 - a) * (1 - b) * texel(i, k) + a * (1 - b) * texel(i + 1, k) + (1 - a) * b * texel(i, k + 1) + a * b * texel(i + 1, k + 1))


@pytest.mark.parametrize("normalized", (False, True))
def test_neighbours_are_weighted(client, normalized):
    at = [(x / 8, y / 4) for y in range(14) for x in range(-4, 36)][:512]
    given = [(x / 4, y / 3) for x, y in at] if normalized else at
    got = fetch(client, load(client), "plane_f32",
                texture(client.array(rows_of(IMAGE)), **plane_of(IMAGE, "f32", linear=True, normalized=normalized)), given)
    assert got[:, 0] == pytest.approx([bilinear(IMAGE, x, y) for x, y in at], abs=IMAGE.max() / 256)
    if not normalized:  # where both weights are a half, the guide's arithmetic is exact
        halves = [i for i, (x, y) in enumerate(at) if x % 1 in (0, .5) and y % 1 in (0, .5)]
        assert [got[i, 0] for i in halves] == [bilinear(IMAGE, *at[i]) for i in halves]


def test_bytes_are_filtered_as_fractions(client):
    values = numpy.array([[0, 255, 0, 255], [255, 0, 255, 0]], numpy.uint8)
    got = fetch(client, load(client), "plane_f32",
                texture(client.array(rows_of(values)), **plane_of(values, "u8", linear=True, to_float=True)),
                [(1, .5), (1.5, .5), (1, 1), (1.25, .5)])
    assert got[:, 0] == pytest.approx([.5, 1, .5, .75], abs=1 / 256)


def test_a_kernel_asks_for_the_size(client):
    got = fetch(client, load(client), "size", texture(client.array(rows_of(IMAGE)), **plane_of(IMAGE, "f32")), [(0, 0)], 2, numpy.uint32)
    assert got.tolist() == [[4, 3]]


# ---- jobs with textures ----

def test_textures_over_several_buffers_and_steps(client):
    """The second launch reads what the first wrote, in one job, which is a graph; and again with other buffers."""
    module = load(client)
    at = client.array(numpy.array([(0, 0), (1, 0), (2, 0), (3, 0)], numpy.int32))
    for base in (10, 20, 30):
        values = numpy.arange(4, dtype=numpy.uint32) + base
        middle, last = client.arena(64), client.arena(64)
        client.run_well(Job().launch(module, "index_u32", [texture(client.array(values), format=pb.TEXEL_U32, channels=1, width=4),
                                                           In(at), Out(middle)], block=4)
                        .launch(module, "index_u32", [texture(middle, format=pb.TEXEL_U32, channels=4, width=4), In(at), Out(last)], block=4))
        assert (last.array(numpy.uint32).reshape(4, 4)[:, 0] == values).all()


def test_textures_over_device_memory(client):
    module = load(client)
    values = numpy.arange(100, dtype=numpy.float32)
    held, at, to = client.device_arena(4096), client.array(numpy.array([(7, 0), (99, 0)], numpy.int32)), client.arena(32)
    client.run_well(Job().copy(held, client.array(values), 400))
    for offset in (0, 512):
        there = Slice(held.id, offset, 400)
        client.run_well(Job().copy(there, client.array(values + offset), 400))
        client.run_well(Job().launch(module, "index_f32", [texture(there, format=pb.TEXEL_F32, channels=1, width=100), In(at), Out(to)], block=2))
        assert (to.array(numpy.float32)[::4] == numpy.array([7, 99]) + offset).all()


def test_many_textures_one_after_the_other(client):
    """More than a worker keeps."""
    module = load(client)
    at = client.array(numpy.array([(0, 0)], numpy.int32))
    held = client.device_arena(512 * 200)
    whole = numpy.arange(128 * 200, dtype=numpy.uint32)
    client.run_well(Job().copy(held, client.array(whole), whole.nbytes))
    tos = [client.arena(16) for _ in range(200)]
    jobs = [Job().launch(module, "index_u32", [texture(Slice(held.id, 512 * i, 512), format=pb.TEXEL_U32, channels=1, width=128),
                                               In(at), Out(to)]) for i, to in enumerate(tos)]
    for job_id in client.submit(*jobs):
        assert client.wait(job_id).state == pb.DONE
    assert [int(to.array(numpy.uint32)[0]) for to in tos] == [128 * i for i in range(200)]


@pytest.mark.cpu
def test_a_handle_that_is_none_ends_the_job_only(client):
    """A GPU leaves open what a kernel gets for it."""
    module = load(client)
    at, to = client.array(numpy.zeros((1, 2), numpy.int32)), client.arena(16)
    for handle in (0, 3, 4096):
        ended = client.run(Job().launch(module, "index_u32", [i64(handle), In(at), Out(to)]))
        assert ended.state == pb.FAILED and ended.error.code == pb.E_FAULT
    values = client.array(numpy.array([5], numpy.uint32))
    client.run_well(Job().launch(module, "index_u32", [texture(values, format=pb.TEXEL_U32, channels=1, width=1), In(at), Out(to)]))
    assert to.array(numpy.uint32)[0] == 5


@pytest.mark.parametrize("fields, wanted", [
    (dict(format=pb.TEXEL_NONE, channels=1, width=4), "unknown format"),
    (dict(format=99, channels=1, width=4), "unknown format"),
    (dict(format=pb.TEXEL_F32, channels=3, width=4), "3 channels"),
    (dict(format=pb.TEXEL_F32, channels=1), "which no device has"),
    (dict(format=pb.TEXEL_F32, channels=1, width=17), "a texture of 68 bytes, but its buffer has 64"),
    (dict(format=pb.TEXEL_F32, channels=1, width=4, height=2, pitch=12), "pitch of 12 bytes; a row has 16"),
    (dict(format=pb.TEXEL_F32, channels=1, width=4, height=3, pitch=32), "a texture of 80 bytes, but"),
    (dict(format=pb.TEXEL_F32, channels=1, width=4, height=2, pitch=48), "a multiple of 32 bytes"),
    (dict(format=pb.TEXEL_F32, channels=1, width=1 << 63, height=1 << 63, pitch=1 << 63), "which no device has"),
    (dict(format=pb.TEXEL_F32, channels=1, width=4, linear=True), "one dimension"),
    (dict(format=pb.TEXEL_U8, channels=1, width=4, height=1, pitch=32, linear=True), "linear filtering, which needs floats"),
    (dict(format=pb.TEXEL_U32, channels=1, width=4, to_float=True), "read as normalized floats"),
    (dict(format=pb.TEXEL_F32, channels=1, width=4, height=1, pitch=32, address_x=pb.ADDRESS_WRAP), "wrap, which needs normalized"),
    (dict(format=pb.TEXEL_F32, channels=1, width=4, height=1, pitch=32, address_y=7), "unknown address mode, 7"),
])
def test_a_wrong_texture_is_refused(client, fields, wanted):
    at, to = client.array(numpy.zeros((1, 2), numpy.int32)), client.arena(16)
    ended = client.run(Job().launch(load(client), "index_f32", [texture(client.arena(64), **fields), In(at), Out(to)]))
    assert ended.state == pb.FAILED and ended.error.code == pb.E_INVALID
    assert "argument 1 of index_f32" in ended.error.text and wanted in ended.error.text


def test_a_texture_begins_where_the_device_takes_one(client):
    held, at, to = client.device_arena(4096), client.array(numpy.zeros((1, 2), numpy.int32)), client.arena(16)
    ended = client.run(Job().launch(load(client), "index_f32", [texture(Slice(held.id, 256, 64), format=pb.TEXEL_F32, channels=1, width=4),
                                                                In(at), Out(to)]))
    assert ended.state == pb.FAILED and ended.error.code == pb.E_INVALID
    assert "256 bytes behind a multiple of 512 bytes" in ended.error.text


def test_a_texture_is_no_pointer_or_float(client):
    module = client.load("__global__ void k(float *x, float y) { }", name="k.cu")
    for args in ([texture(client.arena(64), format=pb.TEXEL_F32, channels=1, width=4), i32(0)],
                 [In(client.arena(64)), texture(client.arena(64), format=pb.TEXEL_F32, channels=1, width=4)]):
        ended = client.run(Job().launch(module, "k", args))
        assert ended.state == pb.FAILED and ended.error.code == pb.E_INVALID


# ---- from source ----

SOURCE = """
__global__ void all(cudaTextureObject_t line, cudaTextureObject_t plane, cudaTextureObject_t bytes, float *out) {
        float x = threadIdx.x + .5f;
        out[4 * threadIdx.x] = tex1Dfetch<float>(line, threadIdx.x);
        out[4 * threadIdx.x + 1] = tex2D<float>(plane, x, 1.5f);
        uchar4 v = tex2D<uchar4>(bytes, x, .5f);
        out[4 * threadIdx.x + 2] = v.x + 1000 * v.w;
        float2 pair;
        tex1Dfetch(&pair, line, 1);
        out[4 * threadIdx.x + 3] = pair.x;
}
"""


def test_source_with_textures(client):
    module = client.load(SOURCE, name="k.cu")
    quads = numpy.arange(32, dtype=numpy.uint8).reshape(2, 4, 4)
    to = client.arena(64)
    client.run_well(Job().launch(module, "all", [
        texture(client.array(IMAGE[0]), format=pb.TEXEL_F32, channels=1, width=4),
        texture(client.array(rows_of(IMAGE)), **plane_of(IMAGE, "f32")),
        texture(client.array(rows_of(quads)), **plane_of(quads, "u8", 4)), Out(to)], block=4))
    got = to.array(numpy.float32).reshape(4, 4)
    assert (got[:, 0] == IMAGE[0]).all() and (got[:, 1] == IMAGE[1]).all()
    assert (got[:, 2] == quads[0, :, 0] + 1000. * quads[0, :, 3]).all()
    assert (got[:, 3] == IMAGE[0, 1]).all()


@pytest.mark.cpu
@pytest.mark.parametrize("call, wanted", [
    ("tex1D<float>(t, 1.f)", "tex1D() needs a CUDA array"), ("tex3D<float>(t, 1.f, 1.f, 1.f)", "one dimension, and of rows with a pitch"),
    ("tex2DLod<float>(t, 1.f, 1.f, 0.f)", "no level, sampler, offset or depth"),
    ("tex2Dgather<float4>(t, 1.f, 1.f).x", "the CPU driver cannot run tld4"),
    ("surf2Dread<float>(t, 0, 0)", "no surfaces, which CUDA makes of its arrays only; write to a buffer")])
def test_other_fetches_are_refused_by_the_cpu_driver(client, call, wanted):
    with pytest.raises(Refused) as refused:
        client.load("__global__ void k(cudaTextureObject_t t, float *out) { *out = %s; }" % call, name="k.cu")
    assert refused.value.code == pb.E_COMPILE and wanted in refused.value.text
