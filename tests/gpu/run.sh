#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a packed tree (pack.sh) on a machine with a GPU, as root: the worker's unit tests, then the
# system tests with device=gpu. Ends with a table of all.
#
#     sh run.sh [PYTEST-ARGUMENT...]        such as -n 6 --timeout 60, where pytest has these plugins
#
# ONLY: as of tests/system.sh. OUT: where to leave the results (the packed folder), among them progress.txt, a line for
# each system test as it ends.
set -u

pack=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$pack}
status=0

export GPUQ_STAGE="$pack/stage" GPUQ_BUILD="$pack" GPUQ_TEST_DEVICE=gpu GPUQ_DESCRIPTORS="$pack/gpuq.descriptors"
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export PATH="$pack/stage/bin:$PATH"

# The driver lets a GPU go when nobody has it open: one worker holds it while the tests start theirs.
hold=$(mktemp -d)
gpuqd --private --socket "$hold/socket" --set device=gpu --set cache_dir="$hold/cache" --set state_dir= \
        --set worker_idle_s=86400 2>"$hold/log" &
holder=$!
trap 'kill $holder; wait $holder; rm -rf "$hold"' EXIT
trap 'exit 143' TERM # of itself dash ends without the above
trap 'exit 130' INT
tries=0
echo '__global__ void nothing() {}' >"$hold/nothing.cu"
until GPUQ_SOCKET=$hold/socket gpuq run "$hold/nothing.cu:nothing" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { cat "$hold/log"; break; }
        sleep 0.1
done

# What a worker looks for beside itself.
export GPUQ_TEST_WORKER="$pack/stage/libexec/gpuq/gpuqd-worker"
GPUQ_TEST_LIBEXEC=$(find "$pack/stage/libexec/gpuq" "$pack/stage/lib" -mindepth 1 -maxdepth 1 ! -name gpuqd-worker | paste -sd :)
export GPUQ_TEST_LIBEXEC
for test in "$pack"/stage/libexec/gpuq-unit/test-*; do
        [ -x "$test" ] || continue
        name=$(basename "$test")
        if GPUQ_TEST_LIBRARIES="$pack/stage/libexec/gpuq-unit/libraries" timeout 120 "$test" >"$out/$name.log" 2>&1; then
                verdict=passed
        else
                verdict=FAILED
                tail -n 30 "$out/$name.log"
                status=1
        fi
        units="${units:-}$(printf '%-32s %s' "$name" "$verdict")
"
done

rm -f "$out/shared.xml" "$out/whole.xml" "$out/progress.txt"
export GPUQ_TEST_PROGRESS="$out/progress.txt"
AT_ONCE=${AT_ONCE:-0} sh "$pack/tests/system.sh" "$out" --tb=short "$@" || status=1
results=$(ls "$out/shared.xml" "$out/whole.xml" 2>/dev/null)

printf '\n%s' "${units:-}"
# shellcheck disable=SC2086 # a list
python3 - $results <<'TABLE'
import collections
import sys
import xml.etree.ElementTree as ElementTree

rows = collections.defaultdict(collections.Counter)
cases = [case for path in sys.argv[1:] for case in ElementTree.parse(path).iter("testcase")]
for case in cases:
    kinds = {child.tag for child in case}
    verdict = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    row = rows[case.get("classname").rsplit(".", 1)[-1]]
    row[verdict] += 1
    row["seconds"] += float(case.get("time"))
print(f"{'':32} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>9}")
for name, row in sorted(rows.items()):
    print(f"{name:32} {row['passed']:7} {row['failed']:7} {row['skipped']:7} {row['seconds']:9.1f}")
TABLE
# shellcheck disable=SC2086
python3 "$pack/tests/summary.py" $results || status=1
exit $status
