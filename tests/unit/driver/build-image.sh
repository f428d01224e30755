#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes an image of the CPU driver from kernels that are extern "C", as
# daemon/driver/cpu/image.h tells: build-image.sh C++ DRIVER-FOLDER IN.cu OUT.so
set -eu
cxx=$1 driver=$2 in=$3 out=$4

"$cxx" -std=c++17 -E -x c++ -isystem "$driver/cpu/cuda" -include "$driver/gpuq_cpu.h" "$in" |
        sed -E 's/extern __shared__ (__attribute__\(\(aligned\([^)]*\)\)\) )?([^;]*) ([a-z_]+)(\[\]);/GPUQ_CPU_DYNAMIC(\3, \4, \2);/' >"$out.ii"
grep -E '^extern "C" __global__' "$in" | sed -E 's/.* ([a-z_]+)\(.*/GPUQ_CPU_KERNEL(\1, "\1")/' >"$out.kernels"
cat "$out.kernels" >>"$out.ii"
"$cxx" -std=c++17 -O2 -g -x c++ -include "$driver/cpu/compile.h" -fPIC -shared -fno-exceptions \
        -fno-semantic-interposition -fno-strict-aliasing -pthread -Wl,-Bsymbolic -Wl,-z,defs \
        -o "$out" "$out.ii"
