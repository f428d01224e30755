# SPDX-License-Identifier: Apache-2.0
"""Completion words: a job that is done stores its tag where its client asked for it."""

import numpy
import pytest

from harness import kernels
from harness.client import In, Job, Out, u64
from harness.kernels import assert_failed
from harness.messages import pb
from harness.patience import until

N = 64


@pytest.fixture
def module(client):
    return client.load(kernels.BASIC)


def copy_job(client, module, **fields):
    source, target = client.array(numpy.arange(N, dtype=numpy.int32)), client.arena(4 * N)
    return Job(**fields).launch(module, "copy", [In(source), Out(target), u64(N)], block=N), target


def words_of(client):
    arena = client.arena(64)
    return arena, arena.array(numpy.uint32)


def mapped_words_of(client, module):
    arena = kernels.mapped_arena(client, module, 16)
    return arena, arena.array(numpy.uint32)


def tag_of(job_id):
    return job_id & 0xffffffff


def test_a_done_job_stores_its_tag(client, module):
    arena, words = mapped_words_of(client, module)
    job, target = copy_job(client, module, word_arena=arena.id, word_offset=8)
    job_id = client.submit(job)
    assert client.wait(job_id).state == pb.DONE
    until(lambda: words[2] == tag_of(job_id), "the word")
    assert list(numpy.flatnonzero(words)) == [2]
    numpy.testing.assert_array_equal(target.array(numpy.int32), numpy.arange(N))


def test_a_failed_job_stores_nothing(client, module):
    arena, words = words_of(client)
    completion = client.run(Job(word_arena=arena.id).launch(module, "no_such_kernel"))
    assert_failed(completion, pb.E_NOT_FOUND, "no_such_kernel")
    client.run_well(copy_job(client, module)[0])
    assert not words.any()


def test_a_word_among_the_jobs_own_buffers_breaks_nothing_else(client, module):
    source, target = client.array(numpy.arange(N, dtype=numpy.int32)), client.arena(4 * N)
    job = Job(word_arena=target.id).launch(module, "copy", [In(source), Out(target), u64(N)], block=N)
    client.run_well(job)
    numpy.testing.assert_array_equal(target.array(numpy.int32)[1:], numpy.arange(1, N))
    client.run_well(copy_job(client, module)[0])


@pytest.mark.parametrize("offset", [1, 2, 61, 62, 64, 1 << 40, (1 << 64) - 4])
def test_a_word_that_is_not_in_its_arena(client, module, offset):
    arena, words = words_of(client)
    job, _ = copy_job(client, module, word_arena=arena.id, word_offset=offset)
    assert_failed(client.run(job), pb.E_INVALID, "word", arena.id)
    client.run_well(copy_job(client, module)[0])
    assert not words.any()


def test_a_word_in_no_arena_or_in_device_memory(client, module):
    job, _ = copy_job(client, module, word_arena=999999)
    assert_failed(client.run(job), pb.E_NOT_FOUND, "word", 999999)
    device = client.device_arena(1 << 16)
    job, _ = copy_job(client, module, word_arena=device.id)
    assert_failed(client.run(job), pb.E_NOT_FOUND, "word", device.id)


def test_a_word_in_an_arena_of_another_session_of_the_user(gpuqd, client, module):
    other = gpuqd.connect()
    arena, words = mapped_words_of(other, other.load(kernels.BASIC))
    job, _ = copy_job(client, module, word_arena=arena.id)
    job_id = client.submit(job)
    assert client.wait(job_id).state == pb.DONE
    until(lambda: words[0] == tag_of(job_id), "the word")


def test_an_arena_that_was_closed_takes_the_word_of_a_job_before(client, module):
    arena, words = mapped_words_of(client, module)
    job, _ = copy_job(client, module, word_arena=arena.id)
    job_id = client.submit(job)
    arena.close()
    assert client.wait(job_id).state == pb.DONE
    until(lambda: words[0] == tag_of(job_id), "the word")


def test_a_word_in_somebody_elses_arena(service):
    alice, bob = service.connect(uid=4001), service.connect(uid=4002)
    arena, words = words_of(alice)
    job, _ = copy_job(bob, bob.load(kernels.BASIC), word_arena=arena.id)
    assert_failed(bob.run(job), pb.E_DENIED, "word", arena.id)
    assert not words.any()
