# SPDX-License-Identifier: Apache-2.0
"""What an attack is. Each is a function that gets an Attacker (harness/attackers.py) and is called again and again."""

import collections
import itertools

from harness.client import HEADER, JOBS_BYTES, JOBS_MAX, Job
from harness.messages import pb

Attack = collections.namedtuple("Attack", "name function options")
ALL = {}  # by name, in the order of the table

# Options: cpu: needs code of its own in the worker, which only the CPU driver runs. prepares: says ready() once it is in place.
# settings: of the daemon. small_disk, few_descriptors: what the daemon has of them. kills: the supervisor is killed meanwhile.
# subordinate: the attackers are subordinate uids of one user. control: no attack, but what plain load does.
# processes: that a uid may have, threads counted. groups: that the attackers are in.
DEFAULTS = {"cpu": False, "prepares": False, "settings": {}, "small_disk": False, "few_descriptors": False, "kills": False,
            "subordinate": False, "control": False, "processes": 64, "groups": 0}


def attack(name, **options):
    def add(function):
        assert name not in ALL and not set(options) - set(DEFAULTS)
        ALL[name] = Attack(name, function, {**DEFAULTS, **options})
        return function
    return add


def frame(serial=1, **body):
    payload = pb.Request(serial=serial, **body).SerializeToString()
    return HEADER.pack(len(payload), 0, b"\0\0\0") + payload


HELLO = frame(hello=pb.Hello(version_min=1, version_max=1, client="attack"))


def submit_frames(job, n, first=1):
    """Frames that submit the same job so often, as many in each as there may be, with the tags from `first` on."""
    message = job.message if isinstance(job, Job) else job
    tags = iter(range(first, first + n))
    at_once = max(1, min(JOBS_MAX, JOBS_BYTES // (message.ByteSize() + 16)))
    while chunk := list(itertools.islice(tags, at_once)):
        jobs = []
        for tag in chunk:
            message.tag = tag
            jobs.append(message.SerializeToString())
        yield submit_frame(jobs)


def submit_frame(jobs):
    """Of jobs that are packed: much faster than to build the message from them."""
    body = b"".join(b"\x0a" + varint(len(job)) + job for job in jobs)
    payload = b"\x08\x01" + b"\x42" + varint(len(body)) + body  # Request: serial = 1, submit = 8
    return HEADER.pack(len(payload), 0, b"\0\0\0") + payload


def load(me, client, source, **words):
    """A module; the time of the attack begins when it is there."""
    module = client.load(source, **words)
    me.ready()
    return module


def varint(value):
    found = bytearray()
    while value > 0x7f:
        found.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(found + bytes([value]))


def read_ends(client, n):
    """Reads until so many more jobs have ended, without a thought for how."""
    goal = client.seen + n
    while client.seen < goal:
        reply, _fds = client.receive()
        client.seen += len(reply.completions.completions)
