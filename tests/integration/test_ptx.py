# SPDX-License-Identifier: Apache-2.0
"""PTX: instructions one by one, and whole kernels as compilers write them. The same on the CPU driver and on a GPU."""

import math
import pathlib

import numpy
import pytest

from harness import ptx_table
from harness.client import In, InOut, Job, Out, Refused, Scalar, i32
from harness.kernels import assert_failed
from harness.messages import pb

WHOLE = pathlib.Path(ptx_table.__file__).with_name("whole.ptx")
HEAD = ".version 6.3\n.target sm_60\n.address_size 64\n"


@pytest.fixture
def whole(client):
    return client.load(WHOLE.read_text(), format=pb.PTX, name="whole.ptx")


def out(client, n, dtype=numpy.int32):
    return client.array(numpy.zeros(n, dtype))


# ---- one instruction after the other ----

def check_table(client, name, rows, version, target):
    module = client.load(ptx_table.module(rows, version, target), format=pb.PTX, name=f"{name}.ptx")
    values = numpy.zeros((len(rows), 4), numpy.uint64)
    for i, row in enumerate(rows):
        values[i, :len(row[3])] = row[3]
    source, results = client.array(values), out(client, len(rows), numpy.uint64)
    client.run_well(Job().launch(module, "table", [In(source), Out(results)]))

    wrong = [f"{row[0]} {[hex(x) for x in row[3]]}: {int(result):#x}, not {row[4]:#x}"
             for row, result in zip(rows, results.array(numpy.uint64)) if int(result) != row[4]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ptx_table.TABLES)
def test_instructions_give_the_bits_of_the_isa(client, name):
    check_table(client, name, *ptx_table.TABLES[name])


@pytest.mark.cpu
@pytest.mark.parametrize("name", ptx_table.TABLES_APART)
def test_instructions_give_the_bits_of_the_isa_where_gpus_do_not(client, name):
    check_table(client, name, *ptx_table.TABLES_APART[name])


# ---- the size of a block ----

BLOCKS = HEAD + """
.visible .entry small() .maxntid 64, 1, 1
{ ret; }
.visible .entry exact() .reqntid 32, 2, 1
{ ret; }
"""


def test_a_kernel_runs_in_blocks_of_the_sizes_that_it_allows(client):
    module = client.load(BLOCKS, format=pb.PTX, name="blocks.ptx")
    client.run_well(Job().launch(module, "small", [], block=64))
    client.run_well(Job().launch(module, "small", [], block=(8, 8, 1)))
    client.run_well(Job().launch(module, "exact", [], block=(32, 2, 1)))
    assert "the block has 65 threads; this kernel's limit is 64" in client.run(Job().launch(module, "small", [], block=65)).error.text
    for block in (32, 64):
        assert "INVALID_VALUE" in client.run(Job().launch(module, "exact", [], block=block)).error.text
    client.run_well(Job().launch(module, "exact", [], block=(32, 2, 1)))


# ---- whole kernels ----

def test_a_vector_is_added(client, whole):
    a, b = (numpy.random.rand(1000).astype(numpy.float32) for _ in range(2))
    c = out(client, 1000, numpy.float32)
    client.run_well(Job().launch(whole, "vadd", [In(client.array(a)), In(client.array(b)), Out(c), i32(1000)], grid=8, block=128))
    numpy.testing.assert_array_equal(c.array(numpy.float32), a + b)


def test_matrices_are_multiplied_in_tiles(client, whole):
    a, b = (numpy.random.randint(0, 9, (64, 64)).astype(numpy.float32) for _ in range(2))
    c = out(client, 64 * 64, numpy.float32)
    client.run_well(Job().launch(whole, "gemm", [In(client.array(a)), In(client.array(b)), Out(c), i32(64)], grid=(4, 4, 1),
                                 block=(16, 16, 1)))
    numpy.testing.assert_array_equal(c.array(numpy.float32).reshape(64, 64), a @ b)


def test_warps_reduce_with_shuffles(client, whole):
    numbers, total = numpy.arange(1000, dtype=numpy.float32), out(client, 1, numpy.float32)
    client.run_well(Job().launch(whole, "reduce", [In(client.array(numbers)), Out(total), i32(1000)], block=128))
    assert total.array(numpy.float32)[0] == numbers.sum()


def test_a_histogram_counts_with_atomics(client, whole):
    numbers, bins = numpy.random.randint(0, 16, 5000).astype(numpy.int32), out(client, 16, numpy.uint32)
    client.run_well(Job().launch(whole, "hist", [In(client.array(numbers)), InOut(bins), i32(5000)], grid=20, block=256))
    numpy.testing.assert_array_equal(bins.array(numpy.uint32), numpy.bincount(numbers, minlength=16))


def test_a_function_calls_itself(client, whole):
    results = out(client, 16)
    client.run_well(Job().launch(whole, "fibs", [Out(results)], block=16))
    assert list(results.array(numpy.int32)[:8]) == [0, 1, 1, 2, 3, 5, 8, 13]


def test_shared_memory_of_the_launch(client, whole):
    numbers, results = numpy.arange(64, dtype=numpy.int32), out(client, 64)
    client.run_well(Job().launch(whole, "dyn", [In(client.array(numbers)), Out(results)], block=64, shared=256))
    numpy.testing.assert_array_equal(results.array(numpy.int32), numbers[::-1])


def test_a_kernel_prints(client, whole):
    job = client.run_well(Job().launch(whole, "hello", [i32(7)], block=2))
    assert job.output == "hello 7 text 1.500000 1099511627776\nhello 8 text 1.500000 1099511627776\n"


def test_a_variable_keeps_its_value_and_has_an_address(client):
    module = client.load(HEAD + """
.visible .global .align 4 .u32 counter = 5;
.visible .global .align 8 .u64 where = counter;
.visible .entry count(.param .u64 out)
{
        .reg .b32 %r<3>;
        .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [out];
        ld.global.u64 %rd2, [where];
        ld.global.u32 %r1, [counter];
        add.s32 %r1, %r1, 1;
        st.global.u32 [%rd2], %r1;
        ld.global.u32 %r2, [counter];
        st.global.u32 [%rd1], %r2;
        ret;
}
""", format=pb.PTX)
    results = out(client, 1)
    for wanted in (6, 7):
        client.run_well(Job().launch(module, "count", [Out(results)]))
        assert results.array(numpy.int32)[0] == wanted


def test_pointers_into_an_array_as_values_of_variables(client):
    module = client.load(r"""
__device__ int numbers[4] = {1, 2, 3, 4};
__device__ int *second = numbers + 1;
__device__ int *others[2] = {&numbers[3], numbers};
extern "C" __global__ void read(int *out)
{
        out[0] = second[0];
        out[1] = *others[0];
        out[2] = *others[1];
}
""", name="pointers.cu")
    results = out(client, 3)
    client.run_well(Job().launch(module, "read", [Out(results)]))
    assert list(results.array(numpy.int32)) == [2, 4, 1]


def test_branches_by_a_table_and_calls_by_pointer(client):
    module = client.load(HEAD + """
.func (.param .b32 r) twice(.param .b32 x)
{
        .reg .b32 %r<2>;
        ld.param.u32 %r1, [x];
        shl.b32 %r1, %r1, 1;
        st.param.b32 [r], %r1;
        ret;
}
.func (.reg .b32 r) square(.reg .b32 x)
{
        mul.lo.u32 r, x, x;
        ret;
}
.visible .entry choose(.param .u64 out)
{
        .reg .b32 %r<4>;
        .reg .b64 %rd<4>;
        mov.u32 %r1, %tid.x;
        ld.param.u64 %rd1, [out];
        mad.wide.u32 %rd1, %r1, 4, %rd1;
        table: .branchtargets L0, L1, L2;
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        brx.idx %r1, table;
L0:     mov.u32 %r2, 100;
        bra.uni L3;
L1:     mov.u64 %rd2, twice;
        { .param .b32 a; .param .b32 b;
        st.param.b32 [a], 21;
        call (b), %rd2, (a), proto;
        ld.param.b32 %r2, [b]; }
        bra L3;
L2:     mov.u32 %r3, 9;
        call (%r2), square, (%r3);
L3:     st.global.u32 [%rd1], %r2;
        exit;
}
""", format=pb.PTX)
    results = out(client, 3)
    client.run_well(Job().launch(module, "choose", [Out(results)], block=3))
    assert list(results.array(numpy.int32)) == [100, 42, 81]


def test_addresses_of_each_space(client):
    """32-bit addresses of shared memory, as Triton writes them; a struct as parameter; constants; local memory."""
    module = client.load(HEAD + """
.const .align 4 .u32 constants[4] = {10, 20, 30, 40};
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .u32 fixed[4];
.func leave(.param .b32 x)
{
        .reg .b32 %r1;
        .reg .pred %p1;
        ld.param.u32 %r1, [x];
        setp.eq.u32 %p1, %r1, 1;
        @%p1 exit;
        ret;
}
.visible .entry spaces(.param .u64 out, .param .align 4 .b8 both[8])
{
        .local .align 8 .b8 depot[16];
        .reg .b32 %r<9>;
        .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x;
        mad.wide.u32 %rd1, %r1, 4, %rd1;
        mov.u32 %r2, dynamic;
        shl.b32 %r3, %r1, 2;
        add.u32 %r2, %r2, %r3;
        st.shared.b32 [%r2+8], %r1;
        cvt.u64.u32 %rd2, %r2;
        cvta.shared.u64 %rd2, %rd2;
        ld.u32 %r4, [%rd2+8];
        st.shared.u32 [fixed+4], 1000;
        ld.shared.u32 %r5, [fixed+4];
        add.u32 %r4, %r4, %r5;
        ld.const.u32 %r5, [constants+8];
        add.u32 %r4, %r4, %r5;
        ld.param.u32 %r5, [both+4];
        add.u32 %r4, %r4, %r5;
        mov.u64 %rd3, depot;
        cvta.local.u64 %rd4, %rd3;
        st.local.u32 [%rd3+4], 5;
        ld.u32 %r5, [%rd4+4];
        add.u32 %r4, %r4, %r5;
        { .param .b32 x;
        st.param.b32 [x], %r1;
        call leave, (x); }
        st.global.u32 [%rd1], %r4;
        ret;
}
""", format=pb.PTX)
    results = out(client, 3)
    pair = bytes(numpy.array([300, 50000], numpy.int32))
    client.run_well(Job().launch(module, "spaces", [Out(results), Scalar(pair, pb.BYTES)], block=3, shared=64))
    assert list(results.array(numpy.int32)) == [51035, 0, 51037]


def test_an_address_of_shared_memory_has_32_bits_in_a_register_of_64(client):
    """As where an unsigned index wraps around: -1 as 0xffffffff, times four, is four bytes back."""
    module = client.load(HEAD + """
.visible .entry back(.param .u64 to)
{
        .reg .b32 %r<2>;
        .reg .b64 %at<5>;
        .shared .align 4 .u32 place[4];
        ld.param.u64 %at1, [to];
        cvta.to.global.u64 %at1, %at1;
        st.shared.u32 [place+4], 1234;
        mov.u64 %at2, place;
        add.s64 %at2, %at2, 8;
        mov.u32 %r1, 0xffffffff;
        mul.wide.u32 %at3, %r1, 4;
        add.s64 %at4, %at2, %at3;
        ld.shared.u32 %r1, [%at4];
        st.global.u32 [%at1], %r1;
        st.shared.u32 [%at4], 4321;
        ld.shared.u32 %r1, [place+4];
        st.global.u32 [%at1+4], %r1;
        ret;
}
""", format=pb.PTX, name="back.ptx")
    results = out(client, 2)
    client.run_well(Job().launch(module, "back", [Out(results)]))
    assert list(results.array(numpy.int32)) == [1234, 4321]


def test_a_function_writes_to_its_callers_local_memory(client):
    """By the generic address, which the caller has computed; and declarations without a blank before the type."""
    module = client.load(HEAD + """
.visible .func (.param .b32 result) compare(.param .b64 to, .param .b64 a, .param .b64 b)
{
        .reg .b64 %rd<4>;
        .reg.b16 %rs<5>;
        ld.param.u64 %rd1, [to];
        ld.param.u64 %rd2, [a];
        ld.param.u64 %rd3, [b];
        ld.u16 %rs1, [%rd2];
        ld.u16 %rs2, [%rd3];
        {.reg.pred same;
        setp.eq.u16 same, %rs1, %rs2;
        selp.u16 %rs3, 1, 0, same;}
        st.u8 [%rd1], %rs3;
        st.param.b32 [result+0], 0;
        ret;
}
.visible .entry equal(.param .u64 out, .param .u32 x, .param .u32 y)
{
        .local .align 2 .b8 depot[6];
        .reg .b64 %SP, %SPL;
        .reg .b16 %rs<5>;
        .reg .b32 %r<5>;
        .reg .b64 %rd<9>;
        mov.u64 %SPL, depot;
        cvta.local.u64 %SP, %SPL;
        ld.param.u64 %rd1, [out];
        ld.param.u32 %r1, [x];
        ld.param.u32 %r2, [y];
        cvt.u16.u32 %rs1, %r1;
        cvt.u16.u32 %rs2, %r2;
        add.u64 %rd2, %SP, 2;
        add.u64 %rd3, %SPL, 2;
        add.u64 %rd4, %SP, 4;
        add.u64 %rd5, %SPL, 4;
        st.local.u16 [%rd3], %rs1;
        st.local.u16 [%rd5], %rs2;
        mov.u16 %rs3, 0;
        st.local.u8 [%SPL], %rs3;
        {.param.b64 p; .param.b64 q; .param.b64 r; .param .b32 s;
        st.param.b64 [p], %SP;
        st.param.b64 [q], %rd2;
        st.param.b64 [r], %rd4;
        call.uni (s), compare, (p, q, r);
        ld.param.b32 %r3, [s]; }
        ld.local.u8 %rs4, [%SPL];
        cvt.u32.u16 %r4, %rs4;
        add.u32 %r4, %r4, %r3;
        st.global.u32 [%rd1], %r4;
        ret;
}
""", format=pb.PTX)
    results = out(client, 1)
    for x, y, wanted in ((7, 7, 1), (7, 8, 0), (0, 0, 1)):
        client.run_well(Job().launch(module, "equal", [Out(results), i32(x), i32(y)]))
        assert results.array(numpy.int32)[0] == wanted


def test_what_kind_of_address_it_is(client):
    """Bits: global, shared, local, const. Of a constant's address, of shared memory's, of local memory's and of a buffer's."""
    module = client.load(HEAD + """
.const .align 4 .u32 constants[4] = {10, 20, 30, 40};
.shared .align 4 .u32 fixed[4];
.visible .entry kinds(.param .u64 out)
{
        .local .align 8 .b8 depot[16];
        .reg .b32 %r<9>;
        .reg .b64 %rd<9>;
        .reg .pred %p<5>;
        .reg .b64 %at;
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x;
        mad.wide.u32 %rd5, %r1, 4, %rd1;
        mov.u64 %rd2, constants;
        cvta.const.u64 %at, %rd2;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra ask;
        mov.u64 %rd2, fixed;
        cvta.shared.u64 %at, %rd2;
        setp.eq.u32 %p1, %r1, 1;
        @%p1 bra ask;
        mov.u64 %rd2, depot;
        cvta.local.u64 %at, %rd2;
        setp.eq.u32 %p1, %r1, 2;
        @%p1 bra ask;
        mov.u64 %at, %rd1;
ask:
        isspacep.global %p1, %at;
        isspacep.shared %p2, %at;
        isspacep.local %p3, %at;
        isspacep.const %p4, %at;
        selp.u32 %r2, 1, 0, %p1;
        @%p2 or.b32 %r2, %r2, 2;
        @%p3 or.b32 %r2, %r2, 4;
        @%p4 or.b32 %r2, %r2, 8;
        st.global.u32 [%rd5], %r2;
        ret;
}
""", format=pb.PTX)
    results = out(client, 4)
    client.run_well(Job().launch(module, "kinds", [Out(results)], block=4))
    assert list(results.array(numpy.int32)) == [8, 2, 4, 1]


BULK = HEAD.replace("6.3", "8.1").replace("sm_60", "sm_90") + """
.shared .align 128 .b8 tile[256];
.shared .align 8 .b64 barrier;
.visible .entry bulk(.param .u64 in, .param .u64 out, .param .u64 sums)
{
        .reg .b32 %r<9>;
        .reg .b64 %rd<9>;
        .reg .f32 %f<5>;
        .reg .pred %p<5>;
        ld.param.u64 %rd1, [in];
        ld.param.u64 %rd2, [out];
        ld.param.u64 %rd3, [sums];
        mov.u32 %r1, tile;
        mov.u32 %r2, barrier;
        mov.u32 %r3, %tid.x;
        elect.sync %r4|%p1, 0xffffffff;
        @!%p1 bra ready;
        mbarrier.init.shared.b64 [%r2], 1;
        fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r2], 256;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 256, [%r2];
ready:
        bar.sync 0;
again:
        mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
        @!%p2 bra again;
        mad.lo.u32 %r5, %r3, 8, %r1;
        ld.shared.v2.f32 {%f1, %f2}, [%r5];
        atom.global.add.v2.f32 {%f3, %f4}, [%rd3], {%f1, %f2};
        add.f32 %f1, %f1, %f1;
        add.f32 %f2, %f2, %f2;
        st.shared.v2.f32 [%r5], {%f1, %f2};
        fence.proxy.async;
        bar.sync 0;
        @!%p1 bra done;
        cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 256;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd2], [%r1], 128;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
done:
        ret;
}
"""


def test_bulk_copies_and_their_barrier(client):
    module = client.load(BULK, format=pb.PTX, name="bulk.ptx")
    values = numpy.arange(64, dtype=numpy.float32)
    results, sums = out(client, 64, numpy.float32), client.array(numpy.zeros(2, numpy.float32))
    client.run_well(Job().launch(module, "bulk", [In(client.array(values)), Out(results), InOut(sums)], block=32))
    numpy.testing.assert_array_equal(results.array(numpy.float32), values * ([4] * 32 + [2] * 32))
    assert list(sums.array(numpy.float32)) == [values[0::2].sum(), values[1::2].sum()]


def test_asynchronous_copies_and_cache_hints(client):
    module = client.load(HEAD.replace("6.3", "7.4").replace("sm_60", "sm_80") + """
.shared .align 16 .b8 tile[16];
.visible .entry copy(.param .u64 in, .param .u64 out)
{
        .reg .b32 %r<9>;
        .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [in];
        ld.param.u64 %rd2, [out];
        mov.u32 %r1, tile;
        createpolicy.fractional.L2::evict_first.b64 %rd3, 1.0;
        cp.async.cg.shared.global [%r1], [%rd1], 16;
        cp.async.wait_all;
        cp.async.ca.shared.global [%r1+8], [%rd1], 8, 4;
        cp.async.commit_group;
        cp.async.wait_group 0;
        ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
        st.global.L2::cache_hint.v4.b32 [%rd2], {%r2, %r3, %r4, %r5}, %rd3;
        ret;
}
""", format=pb.PTX)
    results = out(client, 4)
    client.run_well(Job().launch(module, "copy", [In(client.array(numpy.arange(1, 5, dtype=numpy.int32))), Out(results)]))
    assert list(results.array(numpy.int32)) == [1, 2, 1, 0]


def test_a_division_by_zero_gives_a_number(client):
    module = client.load(HEAD + """
.visible .entry divide(.param .u64 out, .param .u32 zero)
{
        .reg .b32 %r<9>;
        .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [out];
        ld.param.u32 %r1, [zero];
        div.s32 %r2, 5, %r1;
        rem.u32 %r3, 5, %r1;
        st.global.u32 [%rd1], 1;
        ret;
}
""", format=pb.PTX)
    results = out(client, 1)
    client.run_well(Job().launch(module, "divide", [Out(results), i32(0)]))
    assert results.array(numpy.int32)[0] == 1


@pytest.mark.cpu
def test_a_store_to_address_0_that_a_condition_guards_is_made(client):
    """A compiler of C may take the condition for never true."""
    module = client.load(HEAD + """
.visible .entry store(.param .u32 bad)
{
        .reg .pred %p;
        .reg .b32 %r;
        .reg .b64 %rd;
        ld.param.u32 %r, [bad];
        setp.eq.s32 %p, %r, 0;
        @%p bra END;
        mov.u64 %rd, 0;
        st.volatile.u32 [%rd], 1;
END:
        ret;
}
""", format=pb.PTX)
    client.run_well(Job().launch(module, "store", [i32(0)]))
    assert client.run(Job().launch(module, "store", [i32(1)])).error.code == pb.E_FAULT


def test_a_thread_may_wait_for_a_later_one_by_any_atomic(client):
    """Threads of a block run one after the other there, so one that changes nothing gives way."""
    module = client.load(HEAD + """
.visible .entry wait(.param .u64 flag)
{
        .reg .pred %p<3>;
        .reg .b32 %r<5>;
        .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [flag];
        mov.u32 %r1, %tid.x;
        setp.eq.u32 %p1, %r1, 32;
        @%p1 bra last;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 exit;
again:
        atom.global.add.u32 %r2, [%rd1], 0;
        atom.global.or.b32 %r3, [%rd1], 0;
        setp.eq.u32 %p2, %r3, 0;
        @%p2 bra again;
        atom.global.exch.b32 %r4, [%rd1+4], %r3;
        exit;
last:
        atom.global.exch.b32 %r2, [%rd1], 7;
        exit;
}
""", format=pb.PTX)
    flags = out(client, 2)
    client.run_well(Job().launch(module, "wait", [Out(flags)], block=33))
    assert list(flags.array(numpy.int32)) == [7, 7]


def test_so_may_a_thread_of_a_kernel_from_source(client):
    module = client.load(r"""extern "C" __global__ void wait(int *flags)
    {
            if (threadIdx.x == 32)
                    atomicExch(&flags[0], 7);
            if (threadIdx.x != 0)
                    return;
            while (!atomicAdd(&flags[0], 0) || !atomicOr(&flags[0], 0))
                    ;
            atomicExch(&flags[1], flags[0]);
    }""")
    flags = out(client, 2)
    client.run_well(Job().launch(module, "wait", [Out(flags)], block=33))
    assert list(flags.array(numpy.int32)) == [7, 7]


def test_barrier_0_with_and_without_the_number_of_all_threads(client):
    module = client.load(HEAD + """
.visible .entry meet(.param .u64 out)
{
        .reg .b32 %r<6>;
        .reg .b64 %rd<3>;
        .shared .align 4 .u32 note[64];
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, note;
        mad.lo.u32 %r2, %r1, 4, %r2;
        st.shared.u32 [%r2], %r1;
        bar.sync 0;
        xor.b32 %r3, %r1, 63;
        mov.u32 %r4, note;
        mad.lo.u32 %r4, %r3, 4, %r4;
        ld.shared.u32 %r5, [%r4];
        bar.sync 0, 64;
        st.shared.u32 [%r2], %r5;
        bar.sync 0, 64;
        ld.shared.u32 %r5, [%r4];
        mad.wide.u32 %rd2, %r1, 4, %rd1;
        st.global.u32 [%rd2], %r5;
        ret;
}
""", format=pb.PTX)
    results = out(client, 64)
    client.run_well(Job().launch(module, "meet", [Out(results)], block=64))
    assert list(results.array(numpy.int32)) == list(range(64))


def test_named_barriers_and_their_reductions(client):
    module = client.load(HEAD + """
.visible .entry meet(.param .u64 out)
{
        .reg .b32 %r<9>;
        .reg .b64 %rd<3>;
        .reg .pred %p<5>;
        .shared .align 4 .u32 note[2];
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x;
        mad.wide.u32 %rd1, %r1, 4, %rd1;
        setp.ge.u32 %p1, %r1, 32;
        setp.eq.u32 %p2, %r1, 40;
        bar.red.popc.u32 %r2, 1, %p1;
        bar.red.or.pred %p3, 2, 64, %p2;
        bar.red.and.pred %p4, 2, 64, %p2;
        selp.u32 %r3, 100, 0, %p3;
        selp.u32 %r4, 1000, 0, %p4;
        @%p1 bra WRITE;
        bar.sync 5, 64;
        ld.shared.u32 %r5, [note+4];
        bra DONE;
WRITE:  st.shared.u32 [note+4], 7000;
        bar.arrive 5, 64;
        mov.u32 %r5, 0;
DONE:   add.u32 %r2, %r2, %r3;
        add.u32 %r2, %r2, %r4;
        add.u32 %r2, %r2, %r5;
        st.global.u32 [%rd1], %r2;
        ret;
}
""", format=pb.PTX)
    results = out(client, 64)
    client.run_well(Job().launch(module, "meet", [Out(results)], block=64))
    assert list(results.array(numpy.int32)) == [7132] * 32 + [132] * 32


# What the first warp of a block and the others do, and what the job's error says.
APART = [
    (64, "bar.sync 1;", "bar.sync 2;", ["32 threads wait at barrier 1, to which 32 of 64 have come", "32 threads wait at barrier 2, to which 32 of 64"]),
    (64, "bar.sync 0;", "bar.sync 1, 64;", ["32 threads wait at __syncthreads(), to which 32 of 64", "32 threads wait at barrier 1, to which 32 of 64"]),
    (96, "bar.arrive 3, 96; bar.sync 2, 64;", "@%p3 bar.sync 4; bar.sync 3, 96;",
     ["32 threads wait at barrier 2, to which 32 of 64", "32 threads wait at barrier 3, to which 64 of 96",
      "32 threads wait at barrier 4, to which 32 of 96"]),
    (33, "bar.sync 1;", "bar.sync 2;", ["32 threads wait at barrier 1, to which 32 of 33", "1 thread waits at barrier 2, to which 1 of 33"]),
    (64, "bar.sync 4;", "@%p2 bar.sync 5; @!%p2 bar.warp.sync 0xffffffff;",
     ["lanes 0xfffffffe wait in __syncwarp() with mask 0xffffffff for lanes 0x00000001, but lane 0 waits at barrier 5"]),
]


@pytest.mark.cpu  # a GPU waits for ever
@pytest.mark.parametrize("n, first, second, words", APART)
def test_threads_that_wait_at_different_barriers_are_told_of(client, n, first, second, words):
    module = client.load(HEAD + f"""
.visible .entry apart()
{{
        .reg .b32 %r<2>;
        .reg .pred %p<4>;
        mov.u32 %r1, %tid.x;
        setp.ge.u32 %p1, %r1, 32;
        setp.eq.u32 %p2, %r1, 32;
        setp.ge.u32 %p3, %r1, 64;
        @%p1 bra SECOND;
        {first}
        ret;
SECOND: {second}
        ret;
}}
""", format=pb.PTX)
    completion = client.run(Job().launch(module, "apart", [], block=n))
    assert_failed(completion, pb.E_FAULT, "apart: CUDA_ERROR_LAUNCH_FAILED", "block: [0,0,0]", "none of them can go on", *words)


def test_what_the_threads_of_a_warp_do_together(client):
    module = client.load(HEAD.replace("6.3", "7.0").replace("sm_60", "sm_80") + """
.visible .entry warp(.param .u64 out)
{
        .reg .b32 %r<20>;
        .reg .b64 %rd<3>;
        .reg .pred %p<5>;
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %laneid;
        mad.wide.u32 %rd1, %r1, 32, %rd1;
        and.b32 %r2, %r1, 3;
        setp.eq.u32 %p1, %r2, 1;
        vote.sync.ballot.b32 %r3, %p1, 0xffffffff;
        vote.sync.any.pred %p2, %p1, -1;
        selp.u32 %r4, 1, 0, %p2;
        match.any.sync.b32 %r5, %r2, 0xffffffff;
        redux.sync.add.u32 %r6, %r1, 0xffffffff;
        redux.sync.max.s32 %r7, %r1, 0xffffffff;
        shfl.sync.idx.b32 %r8|%p3, %r1, 5, 0x181f, 0xffffffff;
        shfl.sync.up.b32 %r9|%p4, %r1, 1, 0, 0xffffffff;
        selp.u32 %r10, 1, 0, %p4;
        st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
        st.global.v4.u32 [%rd1+16], {%r7, %r8, %r9, %r10};
        bar.warp.sync 0xffffffff;
        ret;
}
""", format=pb.PTX)
    results = out(client, 8 * 32, numpy.uint32)
    client.run_well(Job().launch(module, "warp", [Out(results)], block=32))
    wanted = [[0x22222222, 1, 0x11111111 << lane % 4, 496, 31, lane // 8 * 8 + 5, max(lane - 1, 0), lane > 0]
              for lane in range(32)]
    assert results.array(numpy.uint32).reshape(32, 8).tolist() == wanted


ATOMICS = [("add.u32", 5, 3, 8), ("min.s32", 5, 0xffffffff, 0xffffffff), ("max.u32", 5, 7, 7), ("and.b32", 6, 3, 2), ("or.b32", 6, 1, 7),
           ("xor.b32", 6, 3, 5), ("exch.b32", 6, 9, 9), ("inc.u32", 6, 6, 0), ("inc.u32", 5, 6, 6), ("dec.u32", 0, 6, 6),
           ("dec.u32", 7, 6, 6), ("add.f32", 0x3f800000, 0x3f800000, 0x40000000)]


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
def test_atomics_give_the_old_value_and_store_the_new_one(client, space):
    lines = [HEAD, ".visible .entry atomics(.param .u64 out)\n{", ".shared .align 4 .u32 place[4];",
             ".reg .b64 %to, %at; .reg .b32 %r, %old;", "ld.param.u64 %to, [out];",
             "mov.u64 %at, place;" if space == "shared" else "add.u64 %at, %to, 0;"]
    word = "" if space == "generic" else "." + space
    for i, (name, before, operand, _) in enumerate(ATOMICS):
        lines += [f"st{word}.u32 [%at], {before};", f"atom{word}.{name} %old, [%at], {operand:#x};" if "f32" not in name
                  else f"atom{word}.{name} %old, [%at], 0f{operand:08x};",
                  f"ld{word}.u32 %r, [%at];", f"st.global.v2.u32 [%to+{8 * i + 8}], {{%old, %r}};"]
    lines += [f"st{word}.u32 [%at], 3;", f"atom{word}.cas.b32 %old, [%at], 3, 4;", f"red{word}.add.u32 [%at], 10;",
              f"ld{word}.u32 %r, [%at];", f"st.global.v2.u32 [%to+{8 * len(ATOMICS) + 8}], {{%old, %r}};", "ret;\n}"]
    module, results = client.load("\n".join(lines), format=pb.PTX), out(client, 2 * len(ATOMICS) + 4, numpy.uint32)
    client.run_well(Job().launch(module, "atomics", [Out(results)]))
    wanted = [[before, after] for _, before, _, after in ATOMICS] + [[3, 14]]
    assert results.array(numpy.uint32).reshape(-1, 2)[1:].tolist() == wanted


# ---- source ----

def test_source_with_ptx_in_it_runs(client):
    module = client.load(r"""
__device__ int counter = 5;
__constant__ float factors[2] = {2, 3};
template <class T> __device__ T twice(T x) { return 2 * x; }
template <int N> __global__ void lanes(float *out, int n)
{
        extern __shared__ float room[];
        unsigned lane;

        asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
        room[threadIdx.x] = twice(factors[lane & 1]) * N;
        __syncthreads();
        float sum = room[threadIdx.x ^ 1];
        for (int step = 16; step; step /= 2)
                sum += __shfl_xor_sync(~0u, sum, step);
        atomicAdd(&counter, 1);
        __syncthreads();
        if ((int)threadIdx.x < n)
                out[threadIdx.x] = sum + counter + sqrtf(16.0f);
        if (threadIdx.x == 3)
                printf("lane %u of %s\n", lane, "four");
}
template __global__ void lanes<10>(float *, int);
""", name="lanes.cu")
    results = out(client, 64, numpy.float32)
    completion = client.run_well(Job().launch(module, "lanes<10>", [Out(results), i32(64)], block=64, shared=256))
    assert list(results.array(numpy.float32)) == [32 * 50 + 69 + 4] * 64
    assert "lane 3 of four" in completion.output


# ---- names and libraries ----

def test_variables_may_have_any_name(client):
    """Also those that the code made of PTX has itself, and those of the host's libraries."""
    names = ["entries", "f0", "v0", "main", "sin", "memcpy", "ptx_place", "gpuq_cpu_image"]
    module = client.load(HEAD + "".join(f".visible .global .align 4 .u32 {name} = {i + 1};\n" for i, name in enumerate(names))
                         + """
.visible .entry read(.param .u64 out)
{
        .reg .b32 %r<4>;
        .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [out];
        mov.u32 %r2, 0;
""" + "".join(f"        ld.global.u32 %r1, [{name}];\n        add.u32 %r2, %r2, %r1;\n" for name in names) + """
        st.global.u32 [%rd1], %r2;
        ret;
}
""", format=pb.PTX)
    results = out(client, 1)
    client.run_well(Job().launch(module, "read", [Out(results)]))
    assert results.array(numpy.int32)[0] == sum(range(1, len(names) + 1))


# Functions that clang calls for the CPU driver. Of double; of float they have an f behind their names.
LIBRARY = {
    "acos": math.acos(0.7), "asin": math.asin(0.7), "asinh": math.asinh(0.7), "atan": math.atan(0.7),
    "atanh": math.atanh(0.7), "cbrt": 0.7 ** (1 / 3), "cos": math.cos(0.7), "cosh": math.cosh(0.7), "cospi": math.cos(0.7 * math.pi),
    "cyl_bessel_i0": 1.126303018306809, "cyl_bessel_i1": 0.37187967777700864, "erf": math.erf(0.7), "erfc": math.erfc(0.7),
    "erfcinv": 0.2724627147267544, "erfcx": math.erfc(0.7) * math.exp(0.49), "erfinv": 0.7328690779592167, "exp": math.exp(0.7),
    "exp10": 10 ** 0.7, "exp2": 2 ** 0.7, "expm1": math.expm1(0.7), "fabs": 0.7, "lgamma": math.lgamma(0.7), "log": math.log(0.7),
    "log10": math.log10(0.7), "log1p": math.log1p(0.7), "log2": math.log2(0.7), "normcdf": (1 + math.erf(0.7 / 2 ** 0.5)) / 2,
    "normcdfinv": 0.5244005127080407, "rcbrt": 0.7 ** (-1 / 3), "round": 1.0, "rsqrt": 0.7 ** -0.5, "sin": math.sin(0.7),
    "sinh": math.sinh(0.7), "sinpi": math.sin(0.7 * math.pi), "tan": math.tan(0.7), "tanh": math.tanh(0.7), "tgamma": math.gamma(0.7),
    "j0": 0.8812008886074053, "y0": -0.19066492933739507,
}
# With a second argument of 0.3.
LIBRARY_OF_TWO = {"atan2": math.atan2(0.7, 0.3), "copysign": 0.7, "fdim": 0.4, "fmod": math.fmod(0.7, 0.3), "hypot": math.hypot(0.7, 0.3),
                  "pow": 0.7 ** 0.3, "remainder": math.remainder(0.7, 0.3), "rhypot": 1 / math.hypot(0.7, 0.3)}


@pytest.mark.cpu
@pytest.mark.parametrize("suffix, bits, dtype", [("", 64, numpy.float64), ("f", 32, numpy.float32)])
def test_functions_of_the_library_are_the_hosts(client, suffix, bits, dtype):
    functions = [(name, 1, value) for name, value in LIBRARY.items()] + [(name, 2, value) for name, value in LIBRARY_OF_TWO.items()]
    params = [f".param .b{bits} a", f".param .b{bits} b"]
    text = HEAD + "".join(f".extern .func (.param .b{bits} r) __nv_{name}{suffix}({', '.join(params[:n])});\n" for name, n, _ in functions)
    text += f""".visible .entry k(.param .u64 in, .param .u64 out)
{{
        .reg .f{bits} %f<4>;
        .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [in];
        ld.param.u64 %rd2, [out];
        ld.f{bits} %f1, [%rd1];
        ld.f{bits} %f2, [%rd1+{bits // 8}];
"""
    for i, (name, n, _) in enumerate(functions):
        text += f"        {{ .param .b{bits} p0; .param .b{bits} p1; .param .b{bits} q;\n        st.param.f{bits} [p0], %f1; st.param.f{bits} [p1], %f2;\n"
        text += f"        call.uni (q), __nv_{name}{suffix}, ({', '.join(['p0', 'p1'][:n])});\n"
        text += f"        ld.param.f{bits} %f3, [q]; }}\n        st.f{bits} [%rd2+{i * bits // 8}], %f3;\n"
    module = client.load(text + "        ret;\n}\n", format=pb.PTX)
    results = out(client, len(functions), dtype)
    client.run_well(Job().launch(module, "k", [In(client.array(numpy.array([0.7, 0.3], dtype))), Out(results)]))
    found = {name: value for (name, _, _), value in zip(functions, results.array(dtype))}
    wanted = {name: value for name, _, value in functions}
    assert found == pytest.approx(wanted, rel=1e-12 if bits == 64 else 3e-6)


# ---- what does not run ----

def refusal(client, body, head=HEAD):
    with pytest.raises(Refused) as refused:
        client.load(head + ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n"
                    + body + "\nret;\n}\n", format=pb.PTX, name="k.ptx")
    assert refused.value.code == pb.E_COMPILE
    return refused.value.text


@pytest.mark.cpu
@pytest.mark.parametrize("body, wanted", [
    ("wgmma.fence.sync.aligned;", "line 7: the CPU driver cannot run wgmma.fence.sync"),
    ("tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [t, {%r1, %r2}];", "line 7: the CPU driver cannot run tex.2d"),
    ("add.strange.s32 %r1, %r2, %r3;", "cannot run add.strange.s32: it does not know .strange"),
    ("mov.u32 %r1, %no_such;", "it does not have \"%no_such\""),
    ("mov.u32 %r1, %pm0;", "it does not have \"%pm0\""),
    ("mov.u32 %r1, %envreg3;", "it does not have \"%envreg3\""),
    ("frobnicate %r1;", "cannot run frobnicate"),
    ("add.u33 %r1, %r2, %r3;", "cannot run add.u33"),
    ("add.s32 %r1, %r2, %rd1;", "register %rd1 is .b64, which does not fit .s32"),
    ("bar.sync 3, 64, 5;", "it has 3 operands"),
    ("add.u32 %r1, %r2.b0, %r3;", "it takes neither a part of a register nor"),
    ("add.u32 %r1.h1, %r2, %r3;", "\"%r1.h1\" is not a register"),
    ("add.s32 %r1, -%r2, %r3;", "it takes neither a part of a register nor"),
    ("vadd.s32.s32.s32 %r1, -%r2, %r3;", "it takes neither a part of a register nor"),
    ("vadd.s32.s32.s32.add %r1.h0, %r2, %r3, %r4;", "it takes a third source for .add, .min or .max, or for a part of the result"),
    ("vadd.s32.s32.s32 %r1, %r2, %r3, %r4;", "it takes a third source for .add"),
    ("vshl.s32.s32.s32.clamp %r1, %r2, %r3;", "cannot run vshl.s32.s32.s32.clamp"),
    ("vset.s32.s32 %r1, %r2, %r3;", "cannot run vset.s32.s32"),
    ("vset.s32.s32.eq.sat %r1, %r2, %r3;", "it does not know .sat"),
    ("vmad.s32.s32.s32.po %r1, %r2, %r3, -%r4;", "cannot run vmad.s32.s32.s32.po"),
    ("vmad.s32.s32.s32 %r1, -%r2, %r3, -%r4;", "cannot run vmad.s32.s32.s32"),
    ("vmad.s32.s32.s32 %r1, %r2.b4, %r3, %r4;", "it does not have \"%r2.b4\""),
    ("vadd4.s32.s32.s32 %r1.b0, %r2, %r3, %r4;", "\"%r1.b0\" is not a register"),
    ("mov.b64 %rd1, %rd2+8;", "register %rd2 is neither an address nor a predicate"),
    ("add.s32 %r1, %r2, !%r3;", "register %r3 is neither an address nor a predicate"),
    ("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
     "bulk copies of tensors"),
])
def test_an_instruction_that_the_cpu_driver_lacks_is_named(client, body, wanted):
    text = refusal(client, body)
    assert wanted in text and text.endswith("; a GPU may run it")


@pytest.mark.cpu
@pytest.mark.parametrize("body, wanted", [
    ("bra nowhere;", "bra: there is no label \"nowhere\""),
    ("call nothing;", "call: there is no function \"nothing\""),
    ("call never;", "call: there is no function \"never\""),
    ("mov.u64 %rd1, never;", "mov.u64: there is no function \"never\""),
    ("add.u32 %r1, %r2, %r10;", "add.u32: \"%r10\" is not declared"),
    ("add.u32 %r10, %r2, %r3;", "add.u32: \"%r10\" is not declared"),
    ("mov.u32 %r1, x;", "mov.u32: \"x\" is not declared"),
    ("ld.u32 %r1, [%rx7];", "ld.u32: \"%rx7\" is not declared"),
])
def test_what_is_wrong_on_gpus_too_is_not_said_to_run_there(client, body, wanted):
    text = refusal(client, body, HEAD + ".extern .func never();")
    assert text == f"k.ptx: line 7: the CPU driver cannot run {wanted}"


@pytest.mark.cpu
def test_such_an_instruction_in_source_is_named_too(client):
    with pytest.raises(Refused) as refused:
        client.load('__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }', name="k.cu")
    assert refused.value.text.startswith("k.cu: in its PTX, line ")
    assert "the CPU driver cannot run wgmma.fence.sync.aligned" in refused.value.text


@pytest.mark.cpu
@pytest.mark.parametrize("declaration, wanted", [
    (".global .u32 x[2][2] = {{1, 2, 3}, {4}};", "x has more values in a row than elements"),
    (".extern .func later();\n.global .u64 table[1] = {later};", "there is no function \"later\""),
    (".extern .func later();\n.func f() { .reg .b64 %x; mov.u64 %x, later; ret; }", "there is no function \"later\""),
    (".visible .entry c()\n.reqnctapercluster 2, 1, 1\n{ ret; }", "at the launch only, not from the kernel (__cluster_dims__)")])
def test_a_declaration_that_the_cpu_driver_lacks_is_refused(client, declaration, wanted):
    assert wanted in refusal(client, "", head=HEAD + declaration + "\n")


@pytest.mark.cpu
@pytest.mark.parametrize("body, wanted", [
    ("add.s32 %r1, %r2", "line 8"),
    ("@5 ret;", "line 7: \"5\" is no predicate register"),
    (".reg .nothing %x;", "line 7: type \".nothing\" is not supported"),
    ("L: L: ret;", "line 7: label L is there twice"),
    (".shared .b64 x[1073741824][1073741824];", "x is larger than 1 GiB"),
])
def test_text_that_is_wrong_is_told_with_its_line(client, body, wanted):
    assert wanted in refusal(client, body)
