# SPDX-License-Identifier: Apache-2.0
"""`fence = yes`: users share a context, and no kernel reaches another user's memory.

One table of jobs runs fenced and plain: what a kernel may do gives the same. What it may not do gives zeros or nothing,
its user is told, and the others' jobs go on in the same worker.
"""

import struct

import numpy
import pytest

from harness import kernels
from harness.client import In, InOut, Job, Out, Refused, i32, i64, u64
from harness.kernels import assert_failed, copy_job
from harness.messages import pb

pytestmark = pytest.mark.root

ALICE, BOB = 12345, 12346

N = 3000
SECRET = 0x5ECE7A11

REACH = r"""
__device__ int own[8];
typedef int (*Reader)(int *);
__device__ __noinline__ int read_one(int *at) { return *at; }
__device__ Reader readers[1] = {read_one};

extern "C" __global__ void where(int *in, long long *out)
{
        out[0] = (long long)in;
}
extern "C" __global__ void read(unsigned long long at, int *out, int way)
{
        int *p = (int *)at;
        if (way == 0)
                out[0] = *p;
        else if (way == 1)
                out[0] = __ldg(p);
        else if (way == 2)
                asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(out[0]) : "l"(p));
        else if (way == 3) {
                int4 four = *(int4 *)p;
                out[0] = four.x | four.y | four.z | four.w;
        } else if (way == 4)
                out[0] = atomicAdd(p, 0);
        else if (way == 5)
                out[0] = readers[way % 1](p);
        else if (way == 6)
                out[0] = own[p - own];
        else if (way == 7)
                memcpy(out, p, 4);
        else if (way == 8)
                out[0] = *(short *)p;
        else
                out[0] = *(char *)p;
}
extern "C" __global__ void write(unsigned long long at, int *out, int way)
{
        int *p = (int *)at;
        if (way == 0)
                *p = 1;
        else if (way == 1)
                *(int4 *)p = make_int4(1, 1, 1, 1);
        else if (way == 2)
                atomicExch(p, 1);
        else if (way == 3)
                atomicAdd(p, 1);
        else if (way == 4)
                own[p - own] = 1;
        else if (way == 5)
                asm volatile("st.volatile.u32 [%0], 1;" : : "l"(p) : "memory");
        else if (way == 6)
                memset(p, 1, 16);
        else if (way == 7)
                atomicCAS((unsigned long long *)p, *(unsigned long long *)p, 1ull);
        else
                *(char *)p = 1;
        out[0] = 7;
}
extern "C" __global__ void scan(unsigned long long from, long long step, int *out, int n)
{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n)
                return;
        int *p = (int *)(from + i * step);
        out[i] = *p;
        *p = 1;
}
"""
READS, WRITES = 10, 9

FORMS = r"""
#include <stdio.h>
struct Node { float *data; Node *next; };
__device__ int counter;
__device__ float table[16] = {1, 2, 3, 4};
__constant__ float factors[8] = {1, 2, 3, 4, 5, 6, 7, 8};
typedef float (*Op)(const float *, int);
__device__ __noinline__ float first(const float *p, int i) { return p[i]; }
__device__ __noinline__ float twice(const float *p, int i) { return 2 * p[i]; }
__device__ Op ops[2] = {first, twice};
__device__ __noinline__ int fib(int n, int *calls)
{
        ++*calls;
        return n < 2 ? n : fib(n - 1, calls) + fib(n - 2, calls);
}
extern "C" __global__ void forms(const float4 *in, float4 *out, int *bins, unsigned char *bytes, int n)
{
        __shared__ float tile[256];
        extern __shared__ float more[];
        int i = blockIdx.x * blockDim.x + threadIdx.x, calls = 0;
        float local[8];
        float4 v = i < n ? in[i] : make_float4(0, 0, 0, 0);
        tile[threadIdx.x] = v.x;
        more[threadIdx.x] = v.y;
        __syncthreads();
        for (int k = 0; k < 8; ++k)
                local[(k + i) % 8] = v.y * k;
        if (i >= n)
                return;
        const float *any = i % 4 == 0 ? tile : i % 4 == 1 ? local : i % 4 == 2 ? (const float *)in : factors;
        v.x += any[i % 8] + table[i % 16] + factors[i % 8] + more[threadIdx.x ^ 1];
        v.y = ops[i % 2]((const float *)in, i);
        v.z = fib(i % 7, &calls) + calls;
        atomicAdd(&bins[i % 10], 1);
        atomicMax(&bins[10], i);
        atomicAdd(&counter, 1);
        switch (i % 9) {
        case 0: v.w += 1; break;
        case 1: v.w *= 2; break;
        case 2: v.w -= 3; break;
        case 3: v.w /= 3; break;
        case 4: v.w = -v.w; break;
        case 5: v.w *= v.w; break;
        case 6: v.w = 7; break;
        default: v.w += i;
        }
        bytes[i] = (unsigned char)(bytes[i] + i);
        out[i] = v;
}
extern "C" __global__ void chase(Node *node, float *out)
{
        float sum = 0;
        for (; node; node = node->next)
                sum += node->data[0] + node->data[1];
        out[0] = sum;
}
extern "C" __global__ void count(int *out)
{
        out[0] = counter;
        table[3] = 5;
}
extern "C" __global__ void say(int n)
{
        printf("hello %d and %.1f\n", n, 2.5);
        printf("nothing else\n");
}
"""


@pytest.fixture
def fenced(lend_gpuqd):
    return lend_gpuqd(private=False, isolation="shared", fence="yes")


@pytest.fixture
def plain(lend_gpuqd):
    return lend_gpuqd(private=False, isolation="shared")


@pytest.fixture
def alice(fenced):
    return fenced.connect(uid=ALICE)


@pytest.fixture
def bob(fenced):
    return fenced.connect(uid=BOB)


def where(client, module, arena):
    """The address of device memory: kernels see it, so its owner may know it."""
    out = client.arena(8)
    client.run_well(Job().launch(module, "where", [In(arena), Out(out)]))
    return int(out.array(numpy.int64)[0])


def on_device(client, values):
    arena = client.device_arena(values.nbytes)
    client.run_well(Job().copy(arena, client.array(values), values.nbytes))
    return arena


def from_device(client, arena, n):
    host = client.arena(4 * n)
    client.run_well(Job().copy(host, arena, 4 * n))
    return host.array(numpy.uint32)[:n].tolist()


def secrets(n=64):
    return numpy.full(n, SECRET, numpy.uint32)


@pytest.fixture
def secret(bob):
    """Bob's memory, and where it is."""
    arena = on_device(bob, secrets())
    return arena, where(bob, bob.load(REACH), arena)


# ---- what is kept apart ------------------------------------------------------------------------


@pytest.mark.parametrize("way", range(READS))
def test_no_load_gets_anothers_data(fenced, alice, bob, secret, way):
    workers = fenced.workers()
    out = alice.arena(64)
    out.array(numpy.int32)[:] = 9
    completion = alice.run(Job().launch(alice.load(REACH), "read", [u64(secret[1]), InOut(out), i32(way)]))
    assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
    assert from_device(bob, secret[0], 64) == [SECRET] * 64
    assert SECRET not in out.array(numpy.uint32).tolist()
    assert fenced.workers() == workers


@pytest.mark.parametrize("way", range(WRITES))
def test_no_store_changes_anothers_data(fenced, alice, bob, secret, way):
    workers = fenced.workers()
    out = alice.arena(64)
    completion = alice.run(Job().launch(alice.load(REACH), "write", [u64(secret[1]), Out(out), i32(way)]))
    assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
    assert from_device(bob, secret[0], 64) == [SECRET] * 64
    assert fenced.workers() == workers


SILENT = """.version 7.0
.target sm_70
.address_size 64
.func ends()
{
exit;
}
.visible .global .u32 turns;
.visible .entry branches_back(.param .u64 at)
{
.reg .pred %q; .reg .b32 %r; .reg .b64 %rd;
again:
atom.global.add.u32 %r, [turns], 1;
setp.ne.u32 %q, %r, 0;
@%q ret;
ld.param.u64 %rd, [at];
st.global.u32 [%rd], 1;
bra again;
}
.visible .entry has_no_ret(.param .u64 at)
{
.reg .b64 %rd;
ld.param.u64 %rd, [at];
st.global.u32 [%rd], 1;
}
.visible .entry calls_what_ends(.param .u64 at)
{
.reg .b64 %rd;
ld.param.u64 %rd, [at];
st.global.u32 [%rd], 1;
call ends, ();
ret;
}
"""


@pytest.mark.parametrize("kernel", ["branches_back", "has_no_ret", "calls_what_ends"])
def test_no_kernel_keeps_silent_about_an_access_outside(alice, bob, secret, kernel):
    module = alice.load(SILENT, format=pb.PTX, name="silent.ptx")
    completion = alice.run(Job().launch(module, kernel, [u64(secret[1])]))
    assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
    assert from_device(bob, secret[0], 64) == [SECRET] * 64


NAMED = """.version 7.0
.target sm_70
.address_size 64
.visible .global .b8 %gpuq_a[1024];
.visible .entry k(.param .u64 at)
{
.reg .b64 %rd;
ld.param.u64 %rd, [at];
st.global.u32 [%rd], 1;
ret;
}
"""


def test_no_name_of_a_module_takes_the_place_of_one_of_the_fence(alice, bob, secret):
    completion = alice.run(Job().launch(alice.load(NAMED, format=pb.PTX), "k", [u64(secret[1])]))
    assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
    assert from_device(bob, secret[0], 64) == [SECRET] * 64


# Accesses of one address plus constants are compared once: %rd1 is the user's own memory, in which the address of the
# secret is, %rd2 the secret, and %q true.
TOGETHER = {
    "by_the_load": "ld.global.u64 %rd1, [%rd1]; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1+4], 1;",
    "by_a_vector": "ld.global.u32 %r1, [%rd1]; ld.global.v2.u64 {%rd4, %rd1}, [%rd1]; ld.global.u32 %r1, [%rd1+4];",
    "by_mov": "ld.global.u32 %r1, [%rd1]; mov.u64 %rd1, %rd2; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1+4], 1;",
    "by_mov_under_a_predicate": "ld.global.u32 %r1, [%rd1]; @%q mov.u64 %rd1, %rd2; ld.global.u32 %r1, [%rd1+4];",
    "by_sum": "sub.s64 %rd4, %rd2, %rd1; ld.global.u32 %r1, [%rd1]; add.s64 %rd1, %rd1, %rd4; ld.global.u32 %r1, [%rd1];",
    "by_parts": "mov.b64 {%r2, %r3}, %rd2; ld.global.u32 %r1, [%rd1]; mov.b64 %rd1, {%r2, %r3}; ld.global.u32 %r1, [%rd1];",
    "by_a_number_that_is_not": "add.s64 %rd4, %rd1, !268435456; ld.global.u32 %r1, [%rd1]; ld.global.u32 %r1, [%rd4+-268435456];",
    "by_a_copy": "mov.u64 %rd4, %rd1; ld.global.u32 %r1, [%rd4]; @%q mov.u64 %rd4, %rd2; ld.global.u32 %r1, [%rd4];",
    "by_a_branch": "bra M; N: mov.u64 %rd1, %rd2; bra O; M: ld.global.u32 %r1, [%rd1]; bra N; O: ld.global.u32 %r1, [%rd1+4];",
    "by_a_loop": "N: ld.global.u32 %r1, [%rd1]; @!%q ret; ld.global.u32 %r1, [%rd1+4]; setp.eq.u64 %q, %rd1, %rd2; not.pred %q, %q; "
                 "mov.u64 %rd1, %rd2; @%q bra N;",
    "by_a_name": "ld.global.u32 %r1, [%rd1]; { .reg .b64 %rd1; mov.u64 %rd1, %rd2; ld.global.u32 %r1, [%rd1+4]; }",
    "by_another_predicate": "not.pred %q, %q; @%q ld.global.u32 %r1, [%rd1]; not.pred %q, %q; mov.u64 %rd1, %rd2; "
                            "@%q ld.global.u32 %r1, [%rd1]; @%q st.global.u32 [%rd1+4], 1;",
    "before_exit": "ld.global.u32 %r2, [%rd1]; @%q ld.global.u32 %r1, [%rd2]; @%q ld.global.u32 %r1, [%rd1]; exit;",
    "beside_a_false_predicate": "ld.global.u32 %r1, [%rd2]; @!%q ld.global.u32 %r2, [%rd1]; @!%q exit; @!%q st.global.u32 [%rd1], 1;",
    "by_one_of_others": "ld.global.u32 %r1, [%rd2]; ld.global.u32 %r2, [%rd1]; ld.global.u32 %r1, [%rd2+4]; st.global.u32 [%rd2], %r2;",
}


@pytest.mark.parametrize("way", TOGETHER)
def test_no_base_changes_behind_the_comparison(alice, bob, secret, way):
    text = (".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 own, .param .u64 at, .param .u64 out)\n{\n"
            ".reg .pred %q; .reg .b32 %r<4>; .reg .b64 %rd<5>;\nld.param.u64 %rd1, [own]; ld.param.u64 %rd2, [at]; "
            f"ld.param.u64 %rd3, [out]; setp.eq.u64 %q, %rd1, %rd1; mov.u32 %r1, 9;\n{TOGETHER[way]}\n"
            "membar.gl; st.global.u32 [%rd3], %r1; ret;\n}\n")
    own = on_device(alice, numpy.full(8, secret[1], numpy.uint64))
    out = alice.arena(4)
    completion = alice.run(Job().launch(alice.load(text, format=pb.PTX), "k", [InOut(own), u64(secret[1]), Out(out)]))
    assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
    assert out.array(numpy.uint32)[0] != SECRET
    assert from_device(bob, secret[0], 64) == [SECRET] * 64


def test_a_lock_is_released_if_what_it_protects_is_outside(alice, secret):
    """So that other threads do not wait forever."""
    module = alice.load("""
extern "C" __global__ void k(int *lock, int *far, int *out)
{
        while (atomicCAS(lock, 0, 1) != 0)
                ;
        out[0] += 1 + far[0];
        far[1] = 1;
        atomicExch(lock, 0);
}
""")
    lock = on_device(alice, numpy.zeros(1, numpy.uint32))
    out = on_device(alice, numpy.zeros(1, numpy.uint32))
    completion = alice.run(Job().launch(module, "k", [InOut(lock), u64(secret[1]), InOut(out)], grid=64))
    assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
    assert from_device(alice, lock, 1) == [0]


def test_all_of_what_is_compared_together_is_inside_or_nothing_is_done(alice):
    module = alice.load("""
extern "C" __global__ void k(const int *in, int *out, long long at)
{
        out[0] = in[at] + in[at + 1] + in[at + 2];
}
""")
    data, out = on_device(alice, numpy.arange(1, 65, dtype=numpy.uint32)), alice.arena(4)
    for at, total in ((0, 6), (61, 189)):
        alice.run_well(Job().launch(module, "k", [In(data), Out(out), i64(at)]))
        assert out.array(numpy.int32)[0] == total
    completion = alice.run(Job().launch(module, "k", [In(data), Out(out), i64(-1)]))
    assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")


@pytest.mark.parametrize("step", [4, 64, 4096, 1 << 20, 1 << 30, -4, -4096, -(1 << 20), -(1 << 30)])
def test_a_scan_of_addresses_finds_nothing_and_faults_nowhere(fenced, alice, bob, secret, step):
    workers = fenced.workers()
    module, n = alice.load(REACH), 4096
    own = on_device(alice, numpy.arange(64, dtype=numpy.uint32))
    out = alice.device_arena(4 * n)
    inside = where(alice, module, out)
    for begin in (where(alice, module, own), secret[1], inside, 0):
        job = Job().launch(module, "scan", [u64(begin % (1 << 64)), u64(step % (1 << 64)), InOut(out), i32(n)],
                           grid=n // 256, block=256)
        completion = alice.run(job)
        if begin == inside and step == 4:
            assert completion.state == pb.DONE, completion
        elif begin != inside or not 0 < step < 4096:  # the memory of `out` may be larger
            assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
        assert SECRET not in from_device(alice, out, n)
    assert from_device(bob, secret[0], 64) == [SECRET] * 64
    assert fenced.workers() == workers


def test_staged_memory_of_jobs_beside_each_other_is_apart(alice, bob):
    """Jobs of both users, with host buffers that are staged in one block of scratch."""
    theirs = bob.load(kernels.BASIC)
    pairs = [(bob.array(secrets()), bob.arena(256)) for _ in range(50)]
    jobs = bob.submit(*[copy_job(theirs, *pair, 64) for pair in pairs])
    module, n = alice.load(REACH), 4096
    out = alice.arena(4 * n)
    seen = []
    for begin in range(-8, 9):
        completion = alice.run(Job().launch(module, "scan", [u64(0), u64(4), InOut(out), i32(n)], grid=n // 256,
                                            block=256))
        assert_failed(completion, pb.E_FAULT, "outside of the job's", "fence = yes")
        own = where(alice, module, out)
        alice.run(Job().launch(module, "scan", [u64(own + 4 * n * begin), u64(4), InOut(out), i32(n)], grid=n // 256,
                               block=256))
        seen += out.array(numpy.uint32).tolist()
    assert SECRET not in seen
    for job, (_source, target) in zip(jobs, pairs):
        assert bob.wait(job).state == pb.DONE
        assert target.array(numpy.uint32).tolist() == [SECRET] * 64


def test_scratch_shows_nothing_that_was_staged_before(alice, bob):
    theirs, source, target = bob.load(kernels.BASIC), bob.array(secrets(4096)), bob.arena(4 * 4096)
    for _ in range(20):
        bob.run_well(copy_job(theirs, source, target, 4096))
    module = alice.load(REACH)
    buffers = [alice.arena(4) for _ in range(8)]
    job = Job().launch(module, "where", [In(buffers[0]), Out(alice.arena(8))])
    alice.run_well(job)
    out = alice.arena(4 * 64)
    for _ in range(20):
        own = where(alice, module, buffers[0])
        alice.run(Job().launch(module, "scan", [u64(own), u64(4), InOut(out), i32(64)], block=64))
        assert SECRET not in out.array(numpy.uint32).tolist()


def test_jobs_that_run_as_one_launch_have_fences_of_their_own(alice):
    module, n = alice.load(kernels.BASIC), 64
    sources = [alice.array(numpy.full(n, i, numpy.int32)) for i in range(40)]
    targets = [alice.arena(4 * n) for _ in sources]
    jobs = [copy_job(module, source, target, n) for source, target in zip(sources, targets)]
    bad = alice.arena(4 * n)
    jobs.insert(20, copy_job(module, sources[0], bad, n + (1 << 20)))
    completions = [alice.wait(job_id) for job_id in alice.submit(*jobs)]
    assert_failed(completions.pop(20), pb.E_FAULT, "fence = yes")
    assert all(completion.state == pb.DONE for completion in completions)
    for i, target in enumerate(targets):
        assert target.array(numpy.int32).tolist() == [i] * n


def test_memory_of_each_user_is_in_a_range_of_its_own(alice, bob):
    ranges = {}
    for client in (alice, bob, alice, bob, bob, alice):
        module = client.load(REACH)
        ranges.setdefault(client.uid, []).append(where(client, module, client.device_arena(4096)) >> 40)
    assert all(len(set(regions)) == 1 for regions in ranges.values())
    assert ranges[ALICE][0] != ranges[BOB][0]


def test_without_a_fence_all_of_this_is_in_reach(plain):
    """So the tests above look where there is something."""
    alice, bob = plain.connect(uid=ALICE), plain.connect(uid=BOB)
    arena = on_device(bob, secrets())
    out, module, at = alice.arena(64), alice.load(REACH), where(bob, bob.load(REACH), arena)
    alice.run_well(Job().launch(module, "read", [u64(at), InOut(out), i32(0)]))
    assert out.array(numpy.uint32)[0] == SECRET
    alice.run_well(Job().launch(module, "write", [u64(at), Out(out), i32(0)]))
    assert from_device(bob, arena, 2) == [1, SECRET]


# ---- what stays the same -----------------------------------------------------------------------------


def run_forms(client):
    module = client.load(FORMS)
    source = numpy.random.default_rng(1).random(4 * N).astype(numpy.float32)
    arenas = [client.array(source), client.arena(16 * N), client.arena(64), client.array(numpy.arange(N, dtype=numpy.uint8))]
    results = []
    for buffers in (arenas, [on_device(client, source), client.device_arena(16 * N), arenas[2], arenas[3]]):
        job = Job().launch(module, "forms", [In(buffers[0]), Out(buffers[1]), InOut(buffers[2]), InOut(buffers[3]), i32(N)],
                           grid=(N + 255) // 256, block=256, shared=1024)
        client.run_well(job)
        results.append(from_device(client, buffers[1], 4 * N))
        results.append([arena.array(numpy.uint8).tolist() for arena in arenas[2:]])
    count = client.arena(4)
    client.run_well(Job().launch(module, "count", [Out(count)]))
    results.append(count.array(numpy.int32).tolist())
    results.append(client.run_well(Job().launch(module, "say", [i32(3)])).output)
    return results


def test_kernels_of_many_forms_give_the_same(plain, fenced):
    expected, results = run_forms(plain.connect(uid=ALICE)), run_forms(fenced.connect(uid=ALICE))
    assert expected[-1]
    assert results == expected


def test_pointers_in_memory_lead_to_what_the_job_uses(alice):
    module, out = alice.load(FORMS), alice.arena(4)
    reach = alice.load(REACH)
    data = on_device(alice, numpy.array([1, 2], numpy.float32))
    nodes = alice.device_arena(64)
    at, first = where(alice, reach, nodes), where(alice, reach, data)
    words = struct.pack("<QQQQ", first, at + 16, first, 0)
    alice.run_well(Job().copy(nodes, alice.array(numpy.frombuffer(words, numpy.uint8)), len(words)))
    job = Job().launch(module, "chase", [In(nodes), Out(out)])
    job.buffer(In(data))
    alice.run_well(job)
    assert out.array(numpy.float32).tolist() == [6.0]


# ---- what is refused ------------------------------------------------------------------------------------


def refusal(client, source, **options):
    with pytest.raises(Refused) as refused:
        client.load(source, **options)
    return refused.value.text


@pytest.mark.parametrize("source, words", [
    ('extern "C" __global__ void k() { int *p = (int *)malloc(4); *p = 1; free(p); }', "calls malloc()"),
    ('extern "C" __global__ void k(float *x) { asm volatile("discard.global.L2 [%0], 128;" : : "l"(x)); }', "discard"),
])
def test_what_cannot_be_fenced_is_refused(alice, source, words):
    text = refusal(alice, source)
    assert "fence = yes" in text and words in text


def test_a_checked_job_is_refused(alice):
    assert "fence = yes" in refusal(alice, 'extern "C" __global__ void k() {}', options=["--check"])


def test_strings_that_a_kernel_gives_to_printf_are_not_printed(alice):
    source = r"""
#include <stdio.h>
__device__ char format[8] = "%d\n";
extern "C" __global__ void k(int way)
{
        if (way == 0)
                printf("%s\n", "text");
        else if (way == 1)
                printf(format, 3);
        printf("end %d\n", way);
}
"""
    module = alice.load(source)
    for way in range(3):
        completion = alice.run(Job().launch(module, "k", [i32(way)]))
        assert "text" not in completion.output
        assert f"end {way}\n" in completion.output


# ---- the rest ---------------------------------------------------------------------------------------------


def test_builtin_kernels_and_copies_work(alice):
    a, b, c = (alice.array(numpy.arange(8, dtype=numpy.float32)) for _ in range(3))
    module = alice.builtin()
    names = [kernel.name for kernel in module.kernels]
    assert "add_f32" in names
    alice.run_well(Job().launch(module, "add_f32", [In(a), In(b), Out(c), i64(8)]))


def test_a_job_of_several_operations(alice):
    module, n = alice.load(kernels.BASIC), 100
    source, middle, target = alice.array(numpy.arange(n, dtype=numpy.int32)), alice.device_arena(4 * n), alice.arena(4 * n)
    job = Job().launch(module, "copy", [In(source), Out(middle), u64(n)], block=128)
    job.launch(module, "copy", [In(middle), Out(target), u64(n)], block=128)
    for _ in range(3):
        alice.run_well(job)
        assert target.array(numpy.int32).tolist() == list(range(n))


def test_status_tells_that_there_is_a_fence(fenced, alice):
    alice.run_well(Job().launch(alice.load(kernels.BASIC), "nothing"))
    assert "fence" in fenced.run("status", "--verbose").stdout


def test_without_shared_isolation_it_has_no_effect_and_is_warned_of(start_gpuqd):
    daemon = start_gpuqd(private=False, fence="yes")
    client = daemon.connect(uid=ALICE)
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    assert "fence = yes has no effect without isolation = shared" in daemon.log()
