#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Packs what was built, the libraries it needs beside libc's own, and the tests into one folder, to be
# carried to a machine with a GPU that has neither compiler packages nor network. There: sh FOLDER/run.sh
#
#     sh tests/gpu/pack.sh [FOLDER]        (build/gpu-pack)
set -eu

PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
root=$(cd "$(dirname "$0")/../.." && pwd)
sh "$root/tests/setup.sh" pack
build=${GPUQ_BUILD:-$root/build}
pack=${1:-$build/gpu-pack}

rm -rf "$pack"
mkdir -p "$pack/stage/lib" "$pack/stage/libexec/gpuq-tests" "$pack/stage/libexec/gpuq-unit"
for folder in bin lib libexec share; do
        cp -a "$build/stage/$folder/." "$pack/stage/$folder"
done
cp "$build/tests/integration/gpuq-test-client" "$build/tests/integration/gpuq-test-serial" \
        "$build/tests/fault/gpuq-test-load" "$build/tests/hostile/gpuq-test-victim" "$build/tests/hostile/gpuq-test-liar.so" "$pack/stage/libexec/gpuq-tests/"
unit=$(find "$build/stage" -name gpuqd.service)
sh "$root/tests/gpu/unit-calls.sh" "$unit" >"$pack/stage/libexec/gpuq-tests/unit-calls"

# The worker's unit tests, and twins against their kernels; those of the CPU driver have nothing to say there.
for test in "$build"/tests/unit/worker/test-* "$build/tests/unit/compiler/test-twins"; do
        [ -f "$test" ] && [ -x "$test" ] && cp "$test" "$pack/stage/libexec/gpuq-unit/"
done
mkdir "$pack/stage/libexec/gpuq-unit/libraries" # stand-ins that compute on the host
cp "$build"/tests/unit/worker/lib*.so.?? "$pack/stage/libexec/gpuq-unit/libraries/"

mkdir "$pack/tests"
cp -a "$root/tests/conftest.py" "$root/tests/pytest.ini" "$root/tests/summary.py" "$root/tests/system.sh" "$root/tests/rooms.py" "$root/tests/harness" \
        "$root/tests/integration" "$root/tests/fault" "$root/tests/hostile" "$root/tests/gpu" "$root/tests/python" "$pack/tests/"
mkdir "$pack/client" "$pack/docs"
cp "$root/docs/grafana-dashboard.json" "$pack/docs/"
cp -a "$root/client/python" "$pack/client/"
[ ! -d "$root/tests/bench" ] || cp -a "$root/tests/bench" "$pack/tests/"
cp "$root/tests/gpu/run.sh" "$root/tests/gpu/sanitize.sh" "$pack/"
find "$pack" -name __pycache__ -prune -exec rm -rf {} +
protoc --proto_path="$root/proto" --include_imports --descriptor_set_out="$pack/gpuq.descriptors" gpuq.proto

# gpuqd clears its children's environment, so each file finds its libraries by its own place.
is_elf() {
        [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]
}

each_elf() {
        find "$pack/stage" -type f | while read -r file; do
                if is_elf "$file"; then "$@" "$file"; fi
        done
}

needed() {
        LD_LIBRARY_PATH="$build/stage/lib" ldd "$1" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
}

# What every glibc machine has, in the version that its programs expect.
is_of_the_system() {
        case ${1##*/} in
        libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux* | libresolv.so.* | \
                libgcc_s.so.* | libstdc++.so.* | libgpuq.so.* | libgpuq-cpu.so*) true ;;
        *) false ;;
        esac
}

each_elf needed | sort -u | while read -r library; do
        is_of_the_system "$library" || cp -L "$library" "$pack/stage/lib/"
done

set_path() {
        case $1 in
        */stage/lib/*) path='$ORIGIN' ;;
        */stage/bin/*) path='$ORIGIN/../lib' ;;
        *) path='$ORIGIN/../../lib:$ORIGIN/../gpuq:$ORIGIN' ;;
        esac
        chmod u+w "$1"
        case $1 in
        *.cubin | *.fatbin | *.cpu.so | *builtin*) ;; # a module, not a program
        *) patchelf --force-rpath --set-rpath "$path" "$1" ;;
        esac
}

each_elf set_path
du -sh "$pack"
