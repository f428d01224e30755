#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh checkout: builds gpuq, starts a private gpuqd in a temporary folder, and has 100 processes ask
# it for the sum of squares of their own 10,000 numbers each.
#
#     sh client/demo.sh [PROCESSES]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
processes=${1:-100}

step() {
        echo "demo: $*" >&2
}

step "installing what is missing and building gpuq"
sh "$root/tests/setup.sh" build
stage=${GPUQ_BUILD:-$root/build}/stage

dir=$(mktemp -d)
daemon=

clean_up() {
        if [ -n "$daemon" ]; then
                kill "$daemon" 2>/dev/null || :
                wait "$daemon" 2>/dev/null || :
        fi
        rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

GPUQ_SOCKET=$dir/gpuqd.sock
export GPUQ_SOCKET
step "starting a private gpuqd"
"$stage/bin/gpuqd" --private --socket "$GPUQ_SOCKET" --set cache_dir="$dir/cache" --set state_dir= 2>"$dir/log" &
daemon=$!

# The daemon answers as soon as it serves; until then, or its end, asking again is cheap.
tries=0
until "$stage/bin/gpuq" status >"$dir/status" 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 600 ] || ! kill -0 "$daemon" 2>/dev/null; then
                cat "$dir/log" "$dir/status" >&2
                echo "demo: gpuqd did not start" >&2
                exit 1
        fi
        sleep 0.05
done

step "running $processes processes; the first job waits until the worker has its device"
if ! "$stage/libexec/gpuq/gpuq-demo" "$processes"; then
        cat "$dir/log" >&2
        exit 1
fi
