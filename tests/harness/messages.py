# SPDX-License-Identifier: Apache-2.0
"""The messages of proto/gpuq.proto, from a serialized FileDescriptorSet: no generated code, so any
protobuf runtime will do. The set is made by protoc, or found in $GPUQ_DESCRIPTORS where there is none."""

import os
import subprocess
import tempfile
import types

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from . import place


def _descriptor_set():
    ready = os.environ.get("GPUQ_DESCRIPTORS")
    if ready:
        with open(ready, "rb") as file:
            return file.read()
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(
            ["protoc", f"--proto_path={place.ROOT / 'proto'}", "--include_imports",
             f"--descriptor_set_out={file.name}", "gpuq.proto"], check=True)
        return file.read()


def _load():
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(_descriptor_set()).file
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    if hasattr(message_factory, "GetMessageClass"):
        make = message_factory.GetMessageClass
    else:
        make = message_factory.MessageFactory(pool).GetPrototype

    names = types.SimpleNamespace()
    for file in files:
        for message in file.message_type:
            descriptor = pool.FindMessageTypeByName(f"{file.package}.{message.name}")
            setattr(names, message.name, make(descriptor))
        for enum in file.enum_type:
            for value in enum.value:
                setattr(names, value.name, value.number)
    return names


pb = _load()
