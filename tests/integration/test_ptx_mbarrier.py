# SPDX-License-Identifier: Apache-2.0
"""mbarrier, by kernels in PTX. The same on the CPU driver and on a GPU."""

import numpy
import pytest

from harness.client import In, Job, Out
from harness.messages import pb

# A barrier in shared memory for %n threads; what the kernel stores is in %value.
KERNEL = """.version 7.8
.target sm_{target}
.address_size 64
.visible .entry f(.param .u64 from, .param .u64 to)
{{
        .shared .align 8 .b64 barrier;
        .shared .align 4 .b32 values[64];
        .reg .b32 %i, %n, %value, %at, %other, %k;
        .reg .b64 %from, %to, %state, %old;
        .reg .pred %p;
        mov.u32 %i, %tid.x;
        mov.u32 %n, %ntid.x;
        ld.param.u64 %from, [from];
        mad.wide.u32 %from, %i, 4, %from;
        ld.param.u64 %to, [to];
        mad.wide.u32 %to, %i, 4, %to;
        ld.global.u32 %value, [%from];
        mov.u32 %at, values;
        mad.lo.u32 %at, %i, 4, %at;
        setp.ne.u32 %p, %i, 0;
        @%p bra ready;
        mbarrier.init.shared.b64 [barrier], {count};
ready:
        bar.sync 0;
{body}
        st.global.u32 [%to], %value;
        ret;
}}
"""
MIRRORED = """
        sub.u32 %other, %n, %i;
        sub.u32 %other, %other, 1;
        mov.u32 %at, values;
        mad.lo.u32 %at, %other, 4, %at;
        ld.shared.u32 %value, [%at];
"""


def run(client, body, count="%n", target=80, n=64):
    module = client.load(KERNEL.format(body=body, count=count, target=target), format=pb.PTX, name="mbarrier.ptx")
    to = client.array(numpy.zeros(n, numpy.uint32))
    client.run_well(Job().launch(module, "f", [In(client.array(numpy.arange(n, dtype=numpy.uint32))), Out(to)], block=n))
    return to.array(numpy.uint32)


def test_all_threads_arrive_and_wait(client):
    got = run(client, """
        st.shared.u32 [%at], %value;
        mbarrier.arrive.shared.b64 %state, [barrier];
wait:   mbarrier.test_wait.shared.b64 %p, [barrier], %state;
        @!%p bra wait;
""" + MIRRORED)
    assert (got == numpy.arange(64)[::-1]).all()


def test_phases_follow_each_other(client):
    """In each of ten phases a value goes to the mirrored thread, and comes back."""
    got = run(client, """
        mov.u32 %k, 0;
again:  st.shared.u32 [%at], %value;
        mbarrier.arrive.shared.b64 %state, [barrier];
wait:   mbarrier.test_wait.shared.b64 %p, [barrier], %state;
        @!%p bra wait;""" + MIRRORED + """
        mov.u32 %at, values;
        mad.lo.u32 %at, %i, 4, %at;
        add.u32 %value, %value, 1;
        mbarrier.arrive.shared.b64 %state, [barrier];
wait2:  mbarrier.test_wait.shared.b64 %p, [barrier], %state;
        @!%p bra wait2;
        add.u32 %k, %k, 1;
        setp.lt.u32 %p, %k, 10;
        @%p bra again;
""")
    assert (got == numpy.arange(64) + 10).all()


def test_one_thread_waits_for_the_parity_of_a_phase(client):
    """Thread 0 consumes what the others have produced."""
    got = run(client, """
        st.shared.u32 [%at], %value;
        setp.ne.u32 %p, %i, 0;
        @%p bra produce;
wait:   mbarrier.test_wait.parity.shared.b64 %p, [barrier], 0;
        @!%p bra wait;
        ld.shared.u32 %value, [values+252];
        bra done;
produce:
        mbarrier.arrive.shared.b64 _, [barrier];
done:
""", count=63)
    assert got[0] == 63 and (got[1:] == numpy.arange(1, 64)).all()


def test_who_drops_out_is_not_expected_again(client):
    """Half of the threads leave in the first phase; the second is over without them."""
    got = run(client, """
        setp.lt.u32 %p, %i, 32;
        @%p bra stay;
        mbarrier.arrive_drop.shared.b64 %state, [barrier];
        bra done;
stay:   mbarrier.arrive.shared.b64 %state, [barrier];
wait:   mbarrier.test_wait.shared.b64 %p, [barrier], %state;
        @!%p bra wait;
        mbarrier.arrive.shared.b64 %state, [barrier];
wait2:  mbarrier.test_wait.shared.b64 %p, [barrier], %state;
        @!%p bra wait2;
        add.u32 %value, %value, 100;
done:
""")
    assert (got == numpy.arange(64) + 100 * (numpy.arange(64) < 32)).all()


def test_pending_arrivals_are_counted_in_a_state(client):
    got = run(client, """
        setp.ne.u32 %p, %i, 0;
        @%p bra done;
        mbarrier.arrive.noComplete.shared.b64 %state, [barrier], 3;
        mbarrier.arrive.shared.b64 %state, [barrier];
        mbarrier.pending_count.b64 %value, %state;
done:
""", count=9)
    assert got[0] == 6


@pytest.mark.parametrize("noinc, count", [(".noinc", "128"), ("", "%n")])
def test_asynchronous_copies_arrive(client, noinc, count):
    got = run(client, f"""
        cvta.to.global.u64 %from, %from;
        cp.async.ca.shared.global [%at], [%from], 4;
        cp.async.mbarrier.arrive{noinc}.shared.b64 [barrier];
        mbarrier.arrive.shared.b64 %state, [barrier];
wait:   mbarrier.test_wait.shared.b64 %p, [barrier], %state;
        @!%p bra wait;
""" + MIRRORED, count=count)
    assert (got == numpy.arange(64)[::-1]).all()
