# SPDX-License-Identifier: Apache-2.0
"""Result: how a job ended, and when."""

from __future__ import annotations

from . import _native as native


def id_text(id: int) -> str:
    """ "12.3", as `gpuq queue` shows it."""
    return f"{id >> 32}.{id & 0xFFFFFFFF}"


class Result:
    """`state`: "done", "failed" or "cancelled"; `text`: why it did not end well; `output`: what its kernels printed;
    `waited`, `ran`: seconds by the daemon's clock; `gpu_time`: seconds on the GPU, of a job with timed=True; `device`:
    index of where it ran; `id`: the job's."""

    __slots__ = ("id", "state", "error", "text", "output", "waited", "ran", "gpu_time", "device")

    def __init__(self, id: int, told: native.Result):
        self.id = id
        self.state = native.STATE_NAMES[told.state]
        self.error = told.error
        self.text = native.decode(told.text)
        self.output = native.decode(told.output)
        self.waited = told.waited_us / 1e6
        self.ran = told.ran_us / 1e6
        self.gpu_time = told.gpu_ns / 1e9
        self.device = told.device

    def __repr__(self) -> str:
        return (f"<gpuq.Result of job {id_text(self.id)}: {self.state} on device {self.device}, waited "
                f"{self.waited * 1e3:.3f} ms, ran {self.ran * 1e3:.3f} ms>")
