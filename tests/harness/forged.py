# SPDX-License-Identifier: Apache-2.0
"""Code of the host in a worker of the CPU driver, which source and PTX cannot express.

The CPU driver runs kernels in the worker's own process. The cache of compiled modules belongs to the user, who may
replace what the compiler made by any image (daemon/driver/cpu/image.h)."""

import hashlib
import os
import pathlib
import shutil
import struct

from .messages import pb

ENTRY = struct.Struct("<8sQ32s32s")  # of daemon/compiler/cache.c
RESULT = struct.Struct("<8sII7Q")  # of daemon/compiler/compiled.c
NAME = "forged.ptx"  # of the module; the key of its entry contains it


def forge(path, kernel, image):
    """Returns whether it is an entry of a module with this kernel; it has this image from now on, if it had another."""
    entry = path.read_bytes()
    magic, _, key, _ = ENTRY.unpack_from(entry)
    head, status, flags, _, n_image, *rest = RESULT.unpack_from(entry, ENTRY.size)
    found, behind = entry[ENTRY.size + RESULT.size:][:n_image], entry[ENTRY.size + RESULT.size + n_image:]
    if kernel.encode() not in behind or found == image:
        return kernel.encode() in behind
    result = RESULT.pack(head, status, flags, RESULT.size + len(image) + len(behind), len(image), *rest) + image + behind
    # At once: a compiler takes half an entry for none, and writes the true one.
    new = path.with_name(f".new-forged-{os.getpid()}")
    new.write_bytes(ENTRY.pack(magic, len(result), key, hashlib.sha256(result).digest()) + result)
    shutil.copymode(path, new)
    if os.geteuid() == 0:  # else it is the user's own
        os.chown(new, path.stat().st_uid, path.stat().st_gid)
    new.rename(path)
    return True


def plant(client, cache, image, *kernels):
    """Returns PTX; who loads it from now on gets this image, whose kernels have the parameters (out, what).
    cache: the folder of all users' caches."""
    # No other process has this text: a compiler that it started would write the true entry over the forged one.
    ptx = f"// {os.getpid()}\n.version 6.3\n.target sm_60\n.address_size 64\n"
    ptx += "".join(f".visible .entry {name}(.param .u64 out, .param .u64 what) {{ ret; }}\n" for name in kernels)
    client.load(ptx, format=pb.PTX, name=NAME)
    folder = pathlib.Path(cache) / str(os.getuid() if client.uid is None else client.uid)
    if not any([forge(path, kernels[0], image) for path in folder.glob("*.gpuq")]):
        raise OSError(f"{folder} has no entry of {kernels[0]} to forge")
    return ptx
