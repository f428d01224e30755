# SPDX-License-Identifier: Apache-2.0
"""Result: how a job ended, and when."""

from __future__ import annotations

import struct

from . import _native as native

_NUMBERS = struct.Struct("=ii16x3Qi4x")  # of a gpuq_result, which is ten times as quick as its fields one by one


def id_text(id: int) -> str:
    """ "12.3", as `gpuq queue` shows it."""
    return f"{id >> 32}.{id & 0xFFFFFFFF}"


class Result:
    """`state`: "done", "failed" or "cancelled"; `text`: why it did not end well; `output`: what its kernels printed;
    `waited`, `ran`: seconds by the daemon's clock; `gpu_time`: seconds on the GPU, of a job with timed=True; `device`:
    index of where it ran; `id`: the job's."""

    __slots__ = ("id", "state", "error", "text", "output", "waited", "ran", "gpu_time", "device")

    def __init__(self, id: int, told: native.Result):
        state, self.error, waited_us, ran_us, gpu_ns, self.device = _NUMBERS.unpack_from(told)
        self.id = id
        self.state = native.STATE_NAMES[state]
        self.text = native.decode(told.text) if self.error else ""
        output = told.output
        self.output = native.decode(output) if output else ""
        self.waited = waited_us / 1e6
        self.ran = ran_us / 1e6
        self.gpu_time = gpu_ns / 1e9

    def __repr__(self) -> str:
        return (f"<gpuq.Result of job {id_text(self.id)}: {self.state} on device {self.device}, waited "
                f"{self.waited * 1e3:.3f} ms, ran {self.ran * 1e3:.3f} ms>")
