# SPDX-License-Identifier: Apache-2.0
"""Users beside each other, with real uids: nobody sees, touches or disturbs what is somebody else's."""

import grp
import os
import pwd
import subprocess
import sys

import numpy
import pytest

from harness import kernels, processes
from harness.client import InOut, Job, Out, Refused, u64
from harness.kernels import Gate, GateJob, assert_failed, copy_job, held_job, note_job
from harness.messages import pb
from harness.patience import until

pytestmark = pytest.mark.root

ALICE, BOB = 12345, 12346  # no passwd entry, like a container's user


@pytest.fixture
def alice(service):
    return service.connect(uid=ALICE)


@pytest.fixture
def bob(service):
    return service.connect(uid=BOB)


def arange(n):
    return numpy.arange(n, dtype=numpy.int32)


def test_each_is_who_the_kernel_says(alice, bob):
    assert (alice.welcome.uid, bob.welcome.uid) == (ALICE, BOB)


def test_both_get_right_results_from_workers_of_their_own(service, alice, bob):
    for client in (alice, bob):
        module = client.load(kernels.BASIC)
        source, target = client.array(arange(100)), client.arena(400)
        client.run_well(copy_job(module, source, target, 100))
        assert target.array(numpy.int32).tolist() == list(range(100))
    assert processes.uids(service.workers()) >= {ALICE, BOB}


def test_anothers_checked_job_that_fails_disturbs_nobody(alice, bob):
    gate = Gate(bob)
    out = bob.arena(400)
    job_id = bob.submit(held_job(bob.load(kernels.BASIC), bob.array(arange(100)), out, 100, gate))
    gate.wait_for()
    module = alice.load(kernels.BASIC, options=["--check"])
    source, target = alice.array(arange(100)), alice.arena(400)
    for _ in range(2):
        assert_failed(alice.run(copy_job(module, source, target, 101)), pb.E_FAULT,
                      "kernel copy: a ", "of 4 bytes at element 100 of argument ", "which has 100 elements, by thread (100,0,0)")
        alice.run_well(copy_job(module, source, target, 100))
    gate.open()
    assert bob.wait(job_id).state == pb.DONE
    assert out.array(numpy.int32).tolist() == [3 * i for i in range(100)]


def test_roots_kernels_do_not_run_as_root(service):
    root = service.connect()
    module = root.load(kernels.BASIC)
    root.run_well(Job().launch(module, "nothing"))
    assert 0 not in processes.uids(service.workers())


def test_the_log_names_the_worker_that_is_ready(service, alice):
    alice.run_well(Job().launch(alice.load(kernels.BASIC), "nothing"))
    pids = service.workers()
    until(lambda: all(f"worker {pid} is ready" in service.log() for pid in pids), "each worker to be told of")
    assert pids and "worker 0 " not in service.log()


def test_no_process_of_the_daemon_but_the_keeper_is_root(service, alice):
    alice.run_well(Job().launch(alice.load(kernels.BASIC), "nothing"))
    uids = processes.uids(processes.descendants(service.process.pid))
    assert uids and 0 not in uids


@pytest.mark.parametrize("place", [pb.HOST, pb.DEVICE])
def test_another_users_arena_is_denied(alice, bob, place):
    arena = alice.arena(4096, place)
    with pytest.raises(Refused) as refused:
        bob.open_arena(arena.id)
    assert refused.value.code == pb.E_DENIED


@pytest.mark.parametrize("place", [pb.HOST, pb.DEVICE])
def test_another_users_buffer_in_a_job_is_denied(alice, bob, place):
    arena = alice.arena(4096, place)
    module = bob.load(kernels.BASIC)
    assert_failed(bob.run(copy_job(module, arena, bob.arena(4096), 1)), pb.E_DENIED)
    assert_failed(bob.run(copy_job(module, bob.arena(4096), arena, 1)), pb.E_DENIED)


def test_another_users_module_is_not_there(alice, bob):
    module = alice.load(kernels.BASIC)
    completion = bob.run(Job().launch(module, "nothing"))
    assert completion.state == pb.FAILED and completion.error.code in (pb.E_DENIED, pb.E_NOT_FOUND)


def test_another_users_job_cannot_be_cancelled_waited_for_or_depended_on(service, alice, bob):
    module = alice.load(kernels.BASIC)
    gate = GateJob(alice, module)
    until(lambda: gate.id in alice.queue(), "the gate")
    cancelled = bob.cancel(gate.id)
    assert list(cancelled.denied) == [gate.id] and not cancelled.ids
    assert not bob.cancel(all=True).ids
    with pytest.raises(Refused) as refused:
        bob.call(wait=pb.Wait(id=gate.id))
    assert refused.value.code == pb.E_DENIED
    completion = bob.run(Job(after=[gate.id]).launch(bob.load(kernels.BASIC), "nothing"))
    assert completion.error.code in (pb.E_DENIED, pb.E_DEPENDENCY)
    gate.open()
    assert alice.wait(gate.id).state == pb.DONE


def test_root_may_cancel_anybodys_job(service, alice):
    endless = alice.submit(Job().launch(alice.load(kernels.BASIC), "forever", [Out(alice.arena(4))]))
    root = service.connect()
    until(lambda: endless in root.queue(all_users=True), "root to see it")
    assert list(root.cancel(endless).ids) == [endless]
    assert_failed(alice.wait(endless), pb.E_CANCELLED, "cancelled by user root")


def test_the_queue_shows_ones_own_and_hides_others_labels(service, alice, bob):
    gate = GateJob(alice, alice.load(kernels.BASIC), label="secret plan")
    until(lambda: gate.id in alice.queue(), "the gate")
    assert gate.id not in bob.queue()
    assert alice.queue()[gate.id].label == "secret plan"
    seen = bob.queue(all_users=True).get(gate.id)
    assert seen is None or seen.label != "secret plan"
    assert service.connect().queue(all_users=True)[gate.id].label == "secret plan"
    gate.open()


def test_a_fault_of_one_user_is_not_noticed_by_another(service, alice, bob):
    theirs = bob.load(kernels.BASIC)
    source, target = bob.array(arange(64)), bob.arena(256)
    gate, jobs = Gate(bob), []
    for out in [bob.arena(256), bob.arena(256), bob.arena(256), target]:
        jobs.append(bob.submit(held_job(theirs, source, out, 64, gate)))
        gate.wait_for(len(jobs))
    workers = [pid for pid in service.workers() if processes.uid(pid) == BOB]
    module = alice.load(kernels.BASIC)
    bad = alice.run(Job().launch(module, "wild", [InOut(alice.arena(4)), u64(kernels.FAR)]))
    assert_failed(bad, pb.E_FAULT, "wild")
    assert [(entry.state, entry.retries) for entry in bob.queue().values()] == [(pb.RUNNING, 0)] * 4
    assert workers and set(workers) <= set(service.workers())
    gate.open()
    for job in jobs:
        completion = bob.wait(job)
        assert completion.state == pb.DONE
    assert target.array(numpy.int32).tolist() == list(range(0, 192, 3))
    alice.run_well(Job().launch(module, "nothing"))


def test_an_endless_kernel_of_one_user_does_not_stop_another(service, alice, bob):
    endless = alice.submit(Job().launch(alice.load(kernels.BASIC), "forever", [Out(alice.arena(4))]))
    until(lambda: alice.queue()[endless].state == pb.RUNNING, "it to run")
    module = bob.load(kernels.BASIC)
    target = bob.arena(256)
    bob.run_well(copy_job(module, bob.array(arange(64)), target, 64))
    assert target.array(numpy.int32).tolist() == list(range(64))
    alice.cancel(endless)
    assert alice.wait(endless).state == pb.CANCELLED


def test_a_greedy_user_does_not_starve_another(start_gpuqd):
    service = start_gpuqd(private=False, inflight_jobs=2)
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    greedy, modest = alice.load(kernels.BASIC), bob.load(kernels.BASIC)
    targets = [alice.arena(4) for _ in range(8)]
    jobs = alice.submit(*[Job().launch(greedy, "forever", [Out(targets[i % 8])]) for i in range(400)])
    log = bob.arena(64)
    assert bob.run(note_job(modest, log, 1)).state == pb.DONE
    assert set(jobs) == set(alice.queue())
    alice.cancel(all=True)
    for job in jobs:
        alice.wait(job)


def test_allow_groups_narrows_who_may_connect(start_gpuqd):
    service = start_gpuqd(private=False, allow_groups="adm")
    with pytest.raises(Refused) as refused:
        service.connect(uid=ALICE)
    assert refused.value.code == pb.E_DENIED
    assert service.connect().welcome.uid == 0


def test_quota_is_each_users_own(start_gpuqd):
    service = start_gpuqd(private=False, arena_bytes=1 << 20)
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    alice.arena(1 << 20)
    with pytest.raises(Refused):
        alice.arena(4096)
    bob.arena(1 << 20)


def test_a_users_section_may_name_a_uid(start_gpuqd):
    service = start_gpuqd(private=False, modules=1, config=f"[user {BOB}]\nmodules = 2\n")
    bob = service.connect(uid=BOB)
    bob.load(kernels.BASIC)
    bob.load(kernels.BASIC)
    alice = service.connect(uid=ALICE)
    alice.load(kernels.BASIC)
    with pytest.raises(Refused):
        alice.load(kernels.BASIC)


def test_a_class_limits_the_members_of_its_group(start_gpuqd):
    nobody = pwd.getpwnam("nobody")
    group = grp.getgrgid(nobody.pw_gid).gr_name
    config = f"[class many]\ngroup = {group}\nmodules = 3\n[class few]\ngroup = {group}\nmodules = 1\n"
    service = start_gpuqd(private=False, modules=1, config=config)
    member = service.connect(uid=nobody.pw_uid)
    for _ in range(3):
        member.load(kernels.BASIC)
    bob = service.connect(uid=BOB)
    bob.load(kernels.BASIC)
    for client in (member, bob):
        with pytest.raises(Refused):
            client.load(kernels.BASIC)


def test_a_users_own_section_comes_before_its_class(start_gpuqd):
    nobody = pwd.getpwnam("nobody")
    group = grp.getgrgid(nobody.pw_gid).gr_name
    config = f"[class many]\ngroup = {group}\nmodules = 3\n[user nobody]\nweight = 1\n"
    service = start_gpuqd(private=False, modules=1, config=config)
    member = service.connect(uid=nobody.pw_uid)
    member.load(kernels.BASIC)
    with pytest.raises(Refused):
        member.load(kernels.BASIC)


def test_shared_isolation_puts_all_in_one_worker(start_gpuqd):
    service = start_gpuqd(private=False, isolation="shared")
    for uid in (ALICE, BOB):
        client = service.connect(uid=uid)
        client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    assert len(service.workers()) == 1
    assert processes.uid(service.workers()[0]) not in (0, ALICE, BOB)


def test_a_private_daemon_serves_nobody_else(start_gpuqd):
    daemon = start_gpuqd()
    os.chmod(daemon.folder, 0o755)
    with pytest.raises((Refused, OSError)):
        daemon.connect(uid=ALICE)


def test_only_administrators_see_the_limits_of_others(service, alice):
    assert {limit.uid for limit in alice.status().limits} == {ALICE}
    root = service.connect().status()
    assert {limit.uid for limit in root.limits} >= {0, ALICE}
    assert (alice.status().uid, root.uid) == (ALICE, 0)


def test_the_cli_of_an_ordinary_user(service):
    result = service.run("status", uid=ALICE)
    assert result.returncode == 0, result.stderr


def test_an_ordinary_user_can_run_a_daemon_of_their_own(tmp_path):
    import shutil
    import tempfile
    from harness.daemon import Daemon, as_user
    daemon = Daemon(private=False, supervisor_user=None, worker_user=None)
    daemon.settings.pop("cache_dir")
    daemon.settings["cache_dir"] = daemon.folder / "cache"
    daemon.write_config()
    os.chown(daemon.folder, ALICE, ALICE)
    assert tempfile and shutil and tmp_path
    daemon.launch(**as_user(ALICE))

    def serves():
        assert daemon.process.poll() is None, daemon.log()
        try:
            return daemon.connect(uid=ALICE)
        except OSError:
            return None

    client = until(serves, "it to serve")
    until(lambda: client.status().state == "ready", "it to be ready")
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    assert processes.uids(processes.descendants(daemon.process.pid)) == {ALICE}
    assert daemon.stop() == 0


def shares(service):
    """Quanta and overruns of the only device, and the jobs that each user's worker has done."""
    status = service.connect().status()
    (device,) = status.devices
    return device.quanta, device.overruns, {worker.uid: worker.jobs for worker in status.workers}


def test_two_users_take_turns_in_exclusive_quanta(start_gpuqd):
    service = start_gpuqd(private=False, quantum_ms=5)
    users = [service.connect(uid=uid) for uid in (ALICE, BOB)]
    submitted = []
    for client in users:
        module = client.load(kernels.BASIC)
        source, target = client.array(arange(64)), client.arena(256)
        client.run_well(copy_job(module, source, target, 64))
        submitted.append((client, target, [copy_job(module, source, target, 64) for _ in range(300)]))
    before, _, _ = shares(service)
    waiting = [(client, target, client.submit(*jobs)) for client, target, jobs in submitted]
    for client, target, jobs in waiting:
        assert all(client.wait(job).state == pb.DONE for job in jobs)
        assert target.array(numpy.int32).tolist() == list(range(64))
    quanta, _, done = shares(service)
    assert quanta > before and done[ALICE] >= 301 and done[BOB] >= 301


def test_a_kernel_that_overruns_its_quantum_stops_nobody(start_gpuqd):
    service = start_gpuqd(private=False, quantum_ms=5)
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    endless = alice.submit(Job().launch(alice.load(kernels.BASIC), "forever", [Out(alice.arena(4))]))
    until(lambda: alice.queue()[endless].state == pb.RUNNING, "it to run")
    module = bob.load(kernels.BASIC)
    for _ in range(5):
        bob.run_well(Job().launch(module, "nothing"))
    quanta, overruns, _ = shares(service)
    assert quanta >= 2 and overruns >= 1
    alice.cancel(endless)
    assert alice.wait(endless).state == pb.CANCELLED


def test_a_waiting_job_says_whose_quantum_it_is_and_a_reload_ends_that(start_gpuqd):
    service = start_gpuqd(private=False, quantum_ms=60000)
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    module = bob.load(kernels.BASIC)
    bob.run_well(Job().launch(module, "nothing"))
    gate = GateJob(alice, alice.load(kernels.BASIC))
    until(lambda: alice.queue()[gate.id].state == pb.RUNNING, "the gate to run")
    job = bob.submit(Job().launch(module, "nothing"))
    assert "another user's time slice" in bob.queue()[job].reason
    service.write_config(quantum_ms=0)
    service.reload()
    assert bob.wait(job).state == pb.DONE
    gate.open()


def test_without_quanta_users_run_beside_each_other(start_gpuqd):
    service = start_gpuqd(private=False, quantum_ms=0)
    alice, bob = service.connect(uid=ALICE), service.connect(uid=BOB)
    gate = GateJob(alice, alice.load(kernels.BASIC))
    until(lambda: alice.queue()[gate.id].state == pb.RUNNING, "the gate to run")
    bob.run_well(Job().launch(bob.load(kernels.BASIC), "nothing"))
    assert shares(service)[0] == 0
    gate.open()


def test_a_user_can_neither_trace_nor_read_a_worker_and_is_not_in_its_group(service, alice):
    alice.run_well(Job().launch(alice.load(kernels.BASIC), "nothing"))
    worker = next(pid for pid in service.workers() if processes.uid(pid) == ALICE)
    program = (
        "import ctypes, sys\n"
        f"libc = ctypes.CDLL(None, use_errno=True)\n"
        f"assert libc.ptrace(0x4206, {worker}, None, None) == -1 and ctypes.get_errno() == 1\n"
        f"try:\n    open('/proc/{worker}/environ').read()\nexcept PermissionError:\n    sys.exit(0)\nsys.exit(1)\n")
    assert subprocess.run([sys.executable, "-c", program], user=ALICE, group=ALICE, extra_groups=[]).returncode == 0
    groups = [line for line in open(f"/proc/{worker}/status") if line.startswith(("Gid:", "Groups:"))]
    assert groups[0].split()[1:] == [str(pwd.getpwnam("nobody").pw_gid)] * 4 and not groups[1].split()[1:]


def test_a_system_user_is_told_what_it_needs(service):
    uid = pwd.getpwnam("sys").pw_uid
    client = service.connect(uid=uid)
    with pytest.raises(Refused, match="add a section"):
        client.load(kernels.BASIC)
