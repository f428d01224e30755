# SPDX-License-Identifier: Apache-2.0
"""Prepared jobs: sent once, fired by number with other slices and scalars."""

import struct

import numpy
import pytest

from harness import kernels
from harness.client import In, Job, Out, Refused, u64
from harness.kernels import assert_failed
from harness.messages import pb
from harness.patience import until

N = 64


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def next_tag(client):
    client.tag += 1
    return client.tag


class Prepared:
    """`copy` of N ints, prepared, with its buffers; and how it is fired."""

    def __init__(self, client, module):
        self.client, self.module = client, module
        self.source, self.target = client.array(numpy.arange(N, dtype=numpy.int32)), client.arena(4 * N)
        self.job = Job().launch(module, "copy", [In(self.source), Out(self.target), u64(N)], block=N).message
        self.number = client.call(prepare=pb.Prepare(job=self.job)).prepared.prepared

    def fire(self, *fires):
        """Fires of these fields, in one message; their completions."""
        fires = [pb.Fire(**{"prepared": self.number, "tag": next_tag(self.client), **fire}) for fire in fires]
        self.client.tell(fires=pb.Fires(fires=fires))
        return [self.client.wait(self.client.session << 32 | fire.tag) for fire in fires]

    def fire_one(self, **fields):
        return self.fire(fields)[0]

    def patch(self, n):
        """The count of the launch, changed where it stands."""
        return {"patches": [self.job.operations.index(struct.pack("<Q", N)), 8], "values": struct.pack("<Q", n)}


@pytest.fixture
def prepared(client, module):
    return Prepared(client, module)


def test_it_is_fired_again_and_again(prepared):
    for _ in range(3):
        prepared.target.array(numpy.int32)[:] = -1
        assert prepared.fire_one().state == pb.DONE
        numpy.testing.assert_array_equal(prepared.target.array(numpy.int32), numpy.arange(N))


def test_with_other_slices_and_scalars(client, prepared):
    other, target = client.array(7 * numpy.arange(N, dtype=numpy.int32)), client.arena(1 << 16)
    completion = prepared.fire_one(
        slices=[0, other.id, 0, 4 * N, 1, target.id, 4096, 4 * N], **prepared.patch(10))
    assert completion.state == pb.DONE
    values = target.array(numpy.int32)
    numpy.testing.assert_array_equal(values[1024:1034], 7 * numpy.arange(10))
    assert not values[:1024].any() and not values[1034:].any()
    assert prepared.fire_one().state == pb.DONE
    numpy.testing.assert_array_equal(prepared.target.array(numpy.int32), numpy.arange(N))


def test_many_in_one_message_keep_their_order(client, prepared):
    target = client.arena(4 * N)
    chain = [{}, {"slices": [0, prepared.target.id, 0, 4 * N, 1, target.id, 0, 4 * N]}]
    assert [end.state for end in prepared.fire(*chain)] == [pb.DONE] * 2
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))


def test_a_fired_job_has_a_word(client, prepared):
    arena = kernels.mapped_arena(client, prepared.module, 16)
    completion = prepared.fire_one(word_arena=arena.id, word_offset=4)
    assert completion.state == pb.DONE
    until(lambda: arena.array(numpy.uint32)[1] == completion.id & 0xffffffff, "the word")


@pytest.mark.parametrize("fields, words", [
    ({"slices": [0, 1, 0]}, ["multiple of 4", 3]),
    ({"slices": [2, 1, 0, 4]}, ["buffer", "has 2"]),
    ({"slices": [1 << 63, 1, 0, 4]}, ["buffer", "has 2"]),
    ({"patches": [1]}, ["multiple of 2", 1]),
    ({"patches": [0, 8]}, ["longer than their values"]),
    ({"patches": [0, 8], "values": b"1234567"}, ["longer than their values"]),
    ({"patches": [0xffffffff, 8], "values": bytes(8)}, ["patch", 0xffffffff]),
    ({"patches": [0, 0xffffffff], "values": bytes(8)}, ["patch", 0xffffffff]),
])
def test_a_wrong_fire_fails_alone(prepared, fields, words):
    assert_failed(prepared.fire_one(**fields), pb.E_INVALID, *words)
    assert prepared.fire_one().state == pb.DONE


def test_a_slice_outside_its_arena_or_of_none(prepared):
    arena = prepared.target.id
    assert_failed(prepared.fire_one(slices=[1, arena, 4, 4 * N]), pb.E_INVALID, "buffer 2", arena)
    assert_failed(prepared.fire_one(slices=[1, arena, (1 << 64) - 4, 8]), pb.E_INVALID, "buffer 2")
    assert_failed(prepared.fire_one(slices=[1, 999999, 0, 4]), pb.E_NOT_FOUND, "buffer 2", 999999)
    assert prepared.fire_one().state == pb.DONE


def test_patches_that_make_nonsense_of_the_operations(prepared):
    for at in range(0, len(prepared.job.operations), 5):
        prepared.fire_one(patches=[at, 1], values=b"\xff")
    assert prepared.fire_one().state == pb.DONE


def test_an_unknown_number(client, prepared):
    assert_failed(prepared.fire_one(prepared=prepared.number + 1), pb.E_NOT_FOUND, "prepared job", prepared.number + 1)
    client.tell(unprepare=pb.Unprepare(prepared=prepared.number))
    client.tell(unprepare=pb.Unprepare(prepared=prepared.number))
    assert_failed(prepared.fire_one(), pb.E_NOT_FOUND, "prepared job", prepared.number)


def test_it_belongs_to_its_session(gpuqd, prepared):
    other = gpuqd.connect()
    tag = next_tag(other)
    other.tell(fires=pb.Fires(fires=[pb.Fire(prepared=prepared.number, tag=tag)]))
    assert_failed(other.wait(other.session << 32 | tag), pb.E_NOT_FOUND, "prepared job")


def test_an_arena_that_was_closed_and_a_module_that_was_unloaded(client, module):
    prepared = Prepared(client, module)
    prepared.source.close()
    assert_failed(prepared.fire_one(), pb.E_NOT_FOUND, "buffer 1", prepared.source.id)

    prepared = Prepared(client, module)
    client.tell(module_unload=pb.ModuleUnload(module=module.module))
    assert_failed(prepared.fire_one(), pb.E_NOT_FOUND, "module", module.module)


def test_it_goes_on_after_its_workers_death(client, module, prepared):
    wild = Job().launch(module, "wild", [Out(prepared.target), u64(1 << 40)])
    assert client.run(wild).state == pb.FAILED
    assert prepared.fire_one().state == pb.DONE


@pytest.mark.parametrize("fields, code, words", [
    ({"tag": 5}, pb.E_INVALID, ["tag"]),
    ({"after": [1]}, pb.E_INVALID, ["dependencies"]),
    ({"word_arena": 1}, pb.E_INVALID, ["completion word"]),
    ({"operations": bytes(16385)}, pb.E_INVALID, [16384]),
    ({"buffers": [pb.Buffer(length=1)] * 257}, pb.E_INVALID, [256]),
    ({"label": "\n"}, pb.E_INVALID, ["label"]),
    ({"priority": 101}, pb.E_INVALID, ["priority"]),
    ({"kernels": [pb.Kernel(module=999999, name="x")]}, pb.E_NOT_FOUND, [999999]),
])
def test_what_cannot_be_prepared(client, fields, code, words):
    with pytest.raises(Refused) as refused:
        client.call(prepare=pb.Prepare(job=pb.Job(**fields)))
    assert refused.value.code == code
    for word in words:
        assert str(word) in refused.value.text


def test_a_kernel_without_a_good_name_cannot_be_prepared(client, module):
    for name in "", "add\n", 1025 * "a":
        with pytest.raises(Refused) as refused:
            client.call(prepare=pb.Prepare(job=pb.Job(kernels=[pb.Kernel(module=module.module, name=name)])))
        assert refused.value.code == pb.E_INVALID and "a name must have" in refused.value.text


def test_there_is_an_end_to_what_a_session_and_a_user_may_prepare(gpuqd, client, module):
    small, large = Prepared(client, module).job, pb.Job(operations=bytes(16384))
    with pytest.raises(Refused) as refused:
        for _ in range(2000):
            client.call(prepare=pb.Prepare(job=small))
    assert refused.value.code == pb.E_QUOTA and "1024" in refused.value.text

    with pytest.raises(Refused) as refused:
        for _ in range(3):
            other = gpuqd.connect()
            for _ in range(1024):
                other.call(prepare=pb.Prepare(job=large))
    assert refused.value.code == pb.E_QUOTA
    other.close()
    client.run_well(Job().launch(module, "nothing"))


def test_a_tag_that_goes_back_ends_the_connection(client, prepared):
    prepared.fire_one()
    client.tell(fires=pb.Fires(fires=[pb.Fire(prepared=prepared.number, tag=1)]))
    client.assert_closed()
