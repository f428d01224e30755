#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Where supervisor and worker spend their time under a load of gpuq-bench, by `perf`: of each the share of a core it used, then
# of that time the shares of its own code, the kernel, the driver and libc, and the functions with most. At the end what
# `gpuq status` counted: jobs in place, coalesced, by which way.
#
#     sh tests/bench/profile.sh PREFIX [GPUQ-BENCH ARGUMENT...]        such as --processes 16 copies/32/2 device/32/2
#
# PERF: the program (perf). DEVICE: gpu or cpu (gpu). TOP: so many functions (12).
set -eu

prefix=$1
shift
folder=$(mktemp -d)
"$prefix/bin/gpuqd" --private --socket "$folder/socket" --set device="${DEVICE:-gpu}" --set cache_dir="$folder/cache" \
        --set state_dir= 2>"$folder/log" &
daemon=$!
trap 'kill $daemon; wait $daemon || true; rm -rf "$folder"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
bench() {
        "$prefix/libexec/gpuq/gpuq-bench" --socket "$folder/socket" --kernels "$prefix/libexec/gpuq/kernels" "$@"
}
tries=0
until bench "$@" >"$folder/warm" 2>&1; do
        tries=$((tries + 1))
        kill -0 $daemon && [ $tries -lt 100 ] || { cat "$folder/log" "$folder/warm"; exit 1; }
        sleep 0.1
done

bench "$@" >"$folder/result" &
load=$!
sleep 0.5 # its clients connect and run a round first
for name in supervisor worker; do
        pid=$(pgrep -P "$daemon" "$(printf 'gpuqd-%.8s' $name)" | head -n 1) # a name as the kernel cuts it
        "${PERF:-perf}" record -q -F 2000 -o "$folder/$name" -p "$pid" -- sleep 1 >"$folder/$name.log" 2>&1 &
        recorders="${recorders:-} $!"
done
for each in $load ${recorders:-}; do
        wait "$each" || { cat "$folder/log" "$folder"/*.log; exit 1; }
done

grep -h jobs_per_s "$folder/result"
for name in supervisor worker; do
        report() {
                "${PERF:-perf}" report -q -i "$folder/$name" --no-children --stdio "$@" 2>>"$folder/$name.log" | grep -v '^$'
        }
        printf '== %s: %s samples of 2000 in a second\n' "$name" "$("${PERF:-perf}" script -i "$folder/$name" -F comm 2>/dev/null | wc -l)"
        report --sort dso | head -n 8 || cat "$folder/$name.log"
        report --sort symbol | head -n "${TOP:-12}" || true
done
GPUQ_SOCKET=$folder/socket "$prefix/bin/gpuq" status --json | tr -d ' \n' | grep -o '"counters":{[^}]*}'
