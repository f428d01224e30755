#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzz targets with libFuzzer, ASan and UBSan, and runs each from its corpus.
#
#     sh tests/fuzz/run.sh [--seconds N] [TARGET...]
#
# Without --seconds a run is short and the same each time. With it each target is run for N seconds,
# on from what earlier long runs found. What goes wrong is left in the build folder, found/TARGET/bad-*:
# mend it, and keep the file in corpus/TARGET. GPUQ_FUZZ_BUILD: the build folder (build-fuzz).
set -eu

PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${GPUQ_FUZZ_BUILD:-$root/build-fuzz}
seconds=

while [ $# -gt 0 ]; do
        case $1 in
        --seconds) seconds=$2; shift ;;
        --help) sed -n '3,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) break ;;
        esac
        shift
done

[ -d "$build/meson-private" ] ||
        CC=clang CXX=clang++ meson setup "$build" "$root" -Dtests=true -Dfuzz=true -Dnvcc=disabled -Doptimization=1 \
                -Db_sanitize=address,undefined -Db_lundef=false
ninja -C "$build" fuzz

# So many that a run takes a few seconds: a whole supervisor is made for each of one target's.
runs() {
        case $1 in
        session) echo 400 ;;
        channel | keeper) echo 600 ;;
        client | direct | history | reports) echo 1000 ;;
        *) echo 10000 ;;
        esac
}

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=quarantine_size_mb=32:malloc_context_size=10
export LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0
[ $# -gt 0 ] || set -- $(cd "$root/tests/fuzz/corpus" && ls)
failed=
for target; do
        found=$build/found/$target
        [ -n "$seconds" ] || found=$build/found/short/$target
        [ -n "$seconds" ] || rm -rf "$found"
        mkdir -p "$found/corpus"
        echo "== $target"
        "$build/tests/fuzz/fuzz-$target" -seed=1 -entropic=0 -len_control=0 -max_len=2048 -timeout=60 \
                -print_final_stats=1 -verbosity=0 -artifact_prefix="$found/bad-" \
                ${seconds:+-max_total_time="$seconds"} $([ -n "$seconds" ] || echo "-runs=$(runs "$target")") \
                "$found/corpus" "$root/tests/fuzz/corpus/$target" 2>&1 | tee "$found/log"
        # A target that ends in the middle of a run, with whatever status, has not done its work.
        if grep -q '^SUMMARY' "$found/log" || ! grep -q '^stat::number_of_executed_units' "$found/log"; then
                failed="$failed $target"
        fi
done
# What went wrong stands last, where a reader of a long log looks for it.
for target in $failed; do
        echo "== $target failed"
        sed -n '/ERROR: \|runtime error: /,$p' "${found%/*}/$target/log" | head -n 60
done
[ -z "$failed" ]
