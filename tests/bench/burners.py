# SPDX-License-Identifier: Apache-2.0
"""Programs that keep the cores busy with something else, and count how much of it they get done."""

import mmap
import os
import pathlib
import struct
import subprocess
import sys
import time

STEPS = 1000  # of arithmetic, each counted as one piece of work
COUNTER = struct.Struct("q")
PAGE = mmap.PAGESIZE


class Burners:
    """@n of them run from the beginning to end()."""

    def __init__(self, n, folder):
        path = pathlib.Path(folder, "burners")
        path.write_bytes(bytes(PAGE * max(n, 1)))
        with path.open("r+b") as file:
            self.counters = mmap.mmap(file.fileno(), 0)
        self.processes = [subprocess.Popen([sys.executable, __file__, str(path), str(i)], stdin=subprocess.PIPE)
                          for i in range(n)]

    def wait(self):
        """Until all of them compute."""
        while not all(COUNTER.unpack_from(self.counters, PAGE * i)[0] for i in range(len(self.processes))):
            if any(process.poll() is not None for process in self.processes):
                sys.exit("bench: a busy program ended at its start")
            time.sleep(0.01)

    def work(self):
        """Pieces of work that are done by now."""
        return sum(COUNTER.unpack_from(self.counters, PAGE * i)[0] for i in range(len(self.processes)))

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def burn(path, number):
    """Until the starter ends it, or is gone."""
    starter, n = os.getppid(), 0
    with open(path, "r+b") as file:
        counters = mmap.mmap(file.fileno(), 0)
    while n % 100 or os.getppid() == starter:
        x = 1
        for _ in range(STEPS):
            x = x * 5 % 2147483647
        n += 1
        COUNTER.pack_into(counters, PAGE * number, n)


if __name__ == "__main__":
    burn(sys.argv[1], int(sys.argv[2]))
