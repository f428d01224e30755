#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The numbers of the system calls that gpuqd.service allows, one a line: the sets by systemd-analyze, the
# numbers by the compiler. For machines that have neither.
#
#     sh tests/gpu/unit-calls.sh UNIT
set -eu

members() {
        case $1 in
        @*)
                systemd-analyze syscall-filter "$1" 2>/dev/null </dev/null | sed -n 's/^    \([@a-z0-9_-]*\)$/\1/p' |
                        while read -r name; do members "$name"; done
                ;;
        *) echo "$1" ;;
        esac
}

for name in $(sed -n 's/^SystemCallFilter=//p' "$1"); do members "$name"; done | sort -u |
        { echo '#include <asm/unistd.h>'; while read -r name; do printf '#ifdef __NR_%s\n_ __NR_%s\n#endif\n' "$name" "$name"; done; } |
        cc -E -P -x c - | sed -n 's/^_ \([0-9]*\)$/\1/p'
