# SPDX-License-Identifier: Apache-2.0
"""mma, ldmatrix, stmatrix and movmatrix: who holds what, after the figures of the PTX ISA. The same on the CPU driver and on a GPU."""

import numpy
import pytest

from harness.client import In, Job, Out
from harness.messages import pb

LANES = range(32)
HEAD = ".version 7.8\n.target sm_{target}\n.address_size 64\n"


def pack(values, kind):
    """Elements of one lane, as its registers of 32 bits (float64: of 64)."""
    if kind == "f64":
        return numpy.array(values, numpy.float64).view(numpy.uint32)
    if kind == "bf16":
        words = numpy.array(values, numpy.float32).view(numpy.uint32) >> 16
        return words.astype(numpy.uint16).view(numpy.uint32)
    types = {"f16": numpy.float16, "u8": numpy.uint8, "s8": numpy.int8, "s32": numpy.int32}
    return numpy.array(values, types.get(kind, numpy.float32)).view(numpy.uint32)


def unpack(words, kind):
    types = {"f16": numpy.float16, "f64": numpy.float64, "s32": numpy.int32, "f32": numpy.float32}
    return words.view(types[kind])


# ---- "Matrix Fragments for mma.m16n8k16" and its like: (row, column) of element i ----

def a_of(shape, kind, i, lane):
    group, thread = lane // 4, lane % 4
    if kind in ("f16", "bf16"):
        row = group if i % 4 < 2 else group + 8
        return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)
    if kind in ("u8", "s8"):
        row = group if i < 4 or 8 <= i < 12 else group + 8
        return row, thread * 4 + (i & 3) + (16 if i >= 8 else 0)
    if shape == "m8n8k4":
        return group, thread
    return (group, group + 8)[i % 2], thread + 4 * (i // 2)


def b_of(kind, i, lane):
    group, thread = lane // 4, lane % 4
    if kind in ("f16", "bf16"):
        return thread * 2 + (i & 1) + (8 if i >= 2 else 0), group
    if kind in ("u8", "s8"):
        return thread * 4 + (i & 3) + (16 if i >= 4 else 0), group
    return thread + 4 * i, group


def c_of(i, lane):
    return lane // 4 + (0 if i < 2 else 8), lane % 4 * 2 + (i & 1)


MMA = [
    ("m16n8k16", "f32", "f16", "f16", "f32"), ("m16n8k16", "f16", "f16", "f16", "f16"), ("m16n8k8", "f32", "f16", "f16", "f32"),
    ("m16n8k8", "f16", "f16", "f16", "f16"), ("m16n8k16", "f32", "bf16", "bf16", "f32"), ("m16n8k8", "f32", "bf16", "bf16", "f32"),
    ("m16n8k8", "f32", "tf32", "tf32", "f32"), ("m16n8k4", "f32", "tf32", "tf32", "f32"), ("m8n8k4", "f64", "f64", "f64", "f64"),
    ("m16n8k32", "s32", "s8", "s8", "s32"), ("m16n8k32", "s32", "u8", "s8", "s32"), ("m16n8k16", "s32", "s8", "u8", "s32"),
    ("m16n8k16", "s32", "u8", "u8", "s32"), ("m8n8k16", "s32", "s8", "s8", "s32"),
]


def sizes(shape):
    m, rest = shape[1:].split("n")
    return int(m), int(rest.split("k")[1])


def mma_source(opcode, n_a, n_b, n_c, n_d, wide):
    bits, class_ = (64, "d") if wide else (32, "r")

    def names(letter, n):
        return [f"%{class_}{letter}{i}" for i in range(n)]

    def vector(letter, n):
        return "{" + ", ".join(names(letter, n)) + "}"

    lines = [f".reg .b{bits} {', '.join(names(letter, n))};" for letter, n in zip("abcd", (n_a, n_b, n_c, n_d))]
    for letter, n in zip("abcd", (n_a, n_b, n_c, n_d)):
        lines += [f"ld.param.u64 %p{letter}, [{letter}];", f"mad.wide.u32 %p{letter}, %lane, {n * bits // 8}, %p{letter};"]
    for letter, n in zip("abc", (n_a, n_b, n_c)):
        lines += [f"ld.global.b{bits} {name}, [%p{letter}+{i * bits // 8}];" for i, name in enumerate(names(letter, n))]
    lines += [f"{opcode} {vector('d', n_d)}, {vector('a', n_a)}, {vector('b', n_b)}, {vector('c', n_c)};"]
    lines += [f"st.global.b{bits} [%pd+{i * bits // 8}], {name};" for i, name in enumerate(names("d", n_d))]
    parameters = ", ".join(f".param .u64 {letter}" for letter in "abcd")
    return (HEAD.format(target=80) + f".visible .entry f({parameters})\n{{\n.reg .b32 %lane;\n.reg .b64 %pa, %pb, %pc, %pd;\n"
            "mov.u32 %lane, %tid.x;\n" + "\n".join(lines) + "\nret;\n}\n")


def multiply(client, instruction, a, b, c, saturates=False):
    """d = a b + c by one instruction."""
    shape, d_kind, a_kind, b_kind, c_kind = instruction
    m, k = a.shape
    n_a, n_b, n_c = m * k // 32, k * 8 // 32, m * 8 // 32
    parts = [[pack([matrix[at(i, lane)] for i in range(n)], kind) for lane in LANES] for matrix, kind, n, at in (
        (a, a_kind, n_a, lambda i, lane: a_of(shape, a_kind, i, lane)), (b, b_kind, n_b, lambda i, lane: b_of(b_kind, i, lane)),
        (c, c_kind, n_c, c_of))]
    n_d = len(pack([0] * n_c, d_kind))
    wide = a_kind == "f64"
    opcode = f"mma.sync.aligned.{shape}.row.col{'.satfinite' * saturates}.{'.'.join(instruction[1:])}"
    source = mma_source(opcode, *[len(part[0]) // (1 + wide) for part in parts], n_d // (1 + wide), wide)
    module = client.load(source, format=pb.PTX, name="mma.ptx")
    d = client.array(numpy.zeros(32 * n_d, numpy.uint32))
    client.run_well(Job().launch(module, "f", [*(In(client.array(numpy.concatenate(part))) for part in parts), Out(d)], block=32))

    result = numpy.zeros((m, 8))
    lanes = d.array(numpy.uint32).reshape(32, n_d)
    for lane in LANES:
        for i, value in enumerate(unpack(lanes[lane].copy(), d_kind)):
            result[c_of(i, lane)] = value
    return result


@pytest.mark.parametrize("instruction", MMA, ids=".".join)
def test_matrices_are_multiplied(client, instruction):
    (m, k), dice = sizes(instruction[0]), numpy.random.default_rng(1)
    least = [0 if kind == "u8" else -6 for kind in instruction[2:4]]
    a, b = (dice.integers(low, 7, size) for low, size in zip(least, ((m, k), (k, 8))))
    c = dice.integers(-9, 9, (m, 8))
    numpy.testing.assert_array_equal(multiply(client, instruction, a, b, c), a @ b + c)  # all of it is exact


@pytest.mark.parametrize("saturates, end", [(True, 2 ** 31 - 1), (False, -2 ** 31 + 127 * 127 * 32 - 1)])
def test_a_sum_of_integers_wraps_or_saturates(client, saturates, end):
    instruction = ("m16n8k32", "s32", "s8", "s8", "s32")
    a, b, c = numpy.full((16, 32), 127), numpy.full((32, 8), 127), numpy.full((16, 8), 2 ** 31 - 1)
    assert (multiply(client, instruction, a, b, c, saturates) == end).all()


def test_tf32_has_ten_bits(client):
    a, b = numpy.full((16, 8), 1 + 2 ** -11), numpy.eye(8)
    assert (multiply(client, ("m16n8k8", "f32", "tf32", "tf32", "f32"), a, b, numpy.zeros((16, 8))) == 1).all()


# ---- wmma ----

WMMA = [
    ("m16n16k16", "f32", "f16", "f32"), ("m16n16k16", "f16", "f16", "f16"), ("m32n8k16", "f32", "f16", "f32"),
    ("m8n32k16", "f32", "f16", "f16"), ("m16n16k16", "f32", "bf16", "f32"), ("m32n8k16", "f32", "bf16", "f32"),
    ("m16n16k8", "f32", "tf32", "f32"), ("m8n8k4", "f64", "f64", "f64"), ("m16n16k16", "s32", "s8", "s32"),
    ("m32n8k16", "s32", "u8", "s32"), ("m8n32k16", "s32", "s8", "s32"),
]


def n_registers(kind, n, is_factor):
    """The ISA's number of registers for n elements of a warp."""
    if kind == "f16" and is_factor:
        return 8
    return n // 32 // {"f16": 2, "bf16": 2, "u8": 4, "s8": 4}.get(kind, 1)


def wmma_source(instruction, layouts, stride):
    shape, d, a, c = instruction
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    class_, bits = ("d", 64) if a == "f64" else ("r", 32)
    counts = {"a": n_registers(a, m * k, True), "b": n_registers(a, k * n, True), "c": n_registers(c, m * n, False),
              "d": n_registers(d, m * n, False)}
    names = {letter: [f"%{class_}{letter}{i}" for i in range(count)] for letter, count in counts.items()}
    vector = {letter: "{" + ", ".join(registers) + "}" for letter, registers in names.items()}
    factors = "" if a == "f16" else f".{a}.{a}"
    lines = [f".reg .b{bits} {', '.join(registers)};" for registers in names.values()]
    lines += [f"ld.param.u64 %p{letter}, [{letter}];\ncvta.to.global.u64 %p{letter}, %p{letter};" for letter in "abcd"]
    lines += [f"wmma.load.{letter}.sync.aligned.{layout}.{shape}.global.{kind} {vector[letter]}, [%p{letter}]{stride};"
              for letter, layout, kind in zip("abc", layouts, (a, a, c))]
    lines += [f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{d}{factors}.{c} {', '.join(vector[x] for x in 'dabc')};"]
    lines += [f"wmma.store.d.sync.aligned.{layouts[2]}.{shape}.global.{d} [%pd], {vector['d']}{stride};"]
    return (HEAD.format(target=80) + ".visible .entry f(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
            ".reg .b64 %pa, %pb, %pc, %pd;\n" + "\n".join(lines) + "\nret;\n}\n"), (m, n, k)


@pytest.mark.parametrize("layouts", [("row", "col", "row"), ("col", "row", "col")], ids="-".join)
@pytest.mark.parametrize("instruction", WMMA, ids=".".join)
def test_opaque_matrices_are_multiplied(client, instruction, layouts):
    source, (m, n, k) = wmma_source(instruction, layouts, "")
    _, d_kind, a_kind, c_kind = instruction
    dice, low = numpy.random.default_rng(2), 0 if a_kind == "u8" else -6
    a, b, c = dice.integers(low, 7, (m, k)), dice.integers(low, 7, (k, n)), dice.integers(-9, 9, (m, n))

    def stored(matrix, layout, kind):
        return client.array(pack((matrix if layout == "row" else matrix.T).ravel(), kind))

    module = client.load(source, format=pb.PTX, name="wmma.ptx")
    d = stored(numpy.zeros((m, n)), "row", d_kind)
    client.run_well(Job().launch(module, "f", [*(In(stored(*each)) for each in zip((a, b, c), layouts, (a_kind, a_kind, c_kind))), Out(d)],
                                 block=32))
    got = unpack(d.array(numpy.uint32), d_kind).astype(float)
    numpy.testing.assert_array_equal(got.reshape(m, n) if layouts[2] == "row" else got.reshape(n, m).T, a @ b + c)


def test_opaque_matrices_have_a_stride(client):
    source, _ = wmma_source(("m16n16k16", "f32", "f16", "f32"), ("row", "row", "row"), ", 24")
    module = client.load(source, format=pb.PTX, name="wmma.ptx")
    wide = [numpy.random.default_rng(3).integers(-6, 7, (16, 24)) for _ in range(3)]
    d = client.array(numpy.zeros((16, 24), numpy.float32))
    client.run_well(Job().launch(module, "f", [*(In(client.array(pack(matrix.ravel(), kind))) for matrix, kind in zip(
        wide, ("f16", "f16", "f32"))), Out(d)], block=32))
    a, b, c = (matrix[:, :16] for matrix in wide)
    numpy.testing.assert_array_equal(d.array(numpy.float32).reshape(16, 24)[:, :16], a @ b + c)
    assert (d.array(numpy.float32).reshape(16, 24)[:, 16:] == 0).all()


# ---- tiles ----

TILES = HEAD + """
.visible .entry f(.param .u64 from, .param .u64 to)
{{
        .shared .align 16 .b8 tiles[512];
        .reg .b32 %lane, %at, %r0, %r1, %r2, %r3;
        .reg .b64 %from, %to, %base;
        mov.u32 %lane, %tid.x;
        mov.u32 %at, tiles;
        mad.lo.u32 %at, %lane, 16, %at;
        ld.param.u64 %from, [from];
        mad.wide.u32 %from, %lane, 16, %from;
        ld.param.u64 %to, [to];
        mad.wide.u32 %to, %lane, 16, %to;
        ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%from];
        {body}
        st.global.v4.b32 [%to], {{%r0, %r1, %r2, %r3}};
        ret;
}}
"""
STORE, LOAD = "st.shared.v4.b32 [%at], {%r0, %r1, %r2, %r3};\nbar.warp.sync -1;\n", "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%at];"


def run_tiles(client, words, body, target=80):
    """Each lane has four registers before and after."""
    module = client.load(TILES.format(target=target, body=body), format=pb.PTX, name="tiles.ptx")
    to = client.array(numpy.zeros(128, numpy.uint32))
    client.run_well(Job().launch(module, "f", [In(client.array(words)), Out(to)], block=32))
    return to.array(numpy.uint32).reshape(32, 4)


def held(matrices):
    """The registers of lanes that hold these 8 x 8 matrices: row lane / 4, columns 2 (lane % 4) and the next."""
    return numpy.array([[pack_pair(matrix[lane // 4, lane % 4 * 2:lane % 4 * 2 + 2]) for matrix in matrices] for lane in LANES])


def pack_pair(pair):
    return pair.astype(numpy.uint16).view(numpy.uint32)[0]


MATRICES = numpy.arange(256).reshape(4, 8, 8)
ROWS = MATRICES.astype(numpy.uint16).view(numpy.uint32)  # lane l has row l % 8 of matrix l / 8


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrices_are_loaded(client, n, trans):
    registers = ", ".join(f"%r{i}" for i in range(n))
    got = run_tiles(client, ROWS, STORE + f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {{{registers}}}, [%at];")
    matrices = MATRICES.transpose(0, 2, 1) if trans else MATRICES
    numpy.testing.assert_array_equal(got[:, :n], held(matrices)[:, :n])
    numpy.testing.assert_array_equal(got[:, n:], ROWS.reshape(32, 4)[:, n:])


@pytest.mark.cpu  # needs sm_90
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrices_are_stored(client, trans):
    matrices = MATRICES.transpose(0, 2, 1) if trans else MATRICES
    body = f"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%at], {{%r0, %r1, %r2, %r3}};\nbar.warp.sync -1;\n" + LOAD
    numpy.testing.assert_array_equal(run_tiles(client, held(matrices).astype(numpy.uint32), body, 90), ROWS.reshape(32, 4))


def test_a_matrix_is_transposed(client):
    got = run_tiles(client, held(MATRICES).astype(numpy.uint32), "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r0;")
    numpy.testing.assert_array_equal(got, held([MATRICES[0].T, *MATRICES[1:]]))


@pytest.mark.cpu
def test_lanes_at_different_instructions_are_told(client):
    body = STORE + """{ .reg .pred %p;
        setp.lt.u32 %p, %lane, 16;
        @%p bra low;
        movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r0;
        bra done;
        low:
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%at];
        done: }"""
    module = client.load(TILES.format(target=80, body=body), format=pb.PTX, name="tiles.ptx")
    done = client.run(Job().launch(module, "f", [In(client.array(ROWS)), Out(client.array(numpy.zeros(128, numpy.uint32)))], block=32))
    assert done.state == pb.FAILED and "different instructions for matrices" in done.output


@pytest.mark.cpu
@pytest.mark.parametrize("sp", ["sp", "sp::ordered_metadata"])
def test_a_sparse_product_is_refused_as_such(client, sp):
    """Its operands are those that the ISA asks for."""
    instruction = f"mma.{sp}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    operands = "{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1}, {%r0, %r1, %r2, %r3}, %r0, 0x0"
    with pytest.raises(Exception, match=rf"line 18: the CPU driver cannot run {instruction}: sparse products \(mma.sp\) are not available on it"):
        client.load(TILES.format(target=80, body=f"{instruction} {operands};"), format=pb.PTX, name="sparse.ptx")


@pytest.mark.cpu
@pytest.mark.parametrize("instruction", [
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32"])
def test_what_the_cpu_driver_lacks_is_refused_by_name(client, instruction):
    with pytest.raises(Exception, match=f"line 18: the CPU driver cannot run {instruction}"):
        client.load(TILES.format(target=80, body=f"{instruction} {{%r0}}, {{%r0}}, {{%r0}}, {{%r0}};"), format=pb.PTX, name="tiles.ptx")
