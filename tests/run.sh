#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sets up, builds and runs all the tests; ends with one line "N passed, N failed, N skipped".
#
#     sh tests/run.sh [--gpu] [--sanitize] [--build] [--unit] [PYTEST-ARGUMENT...]
#
# --gpu: the system tests on the GPU; --sanitize: everything under ASan and UBSan, in a build folder of its
# own; --build: only the build; --unit: only the unit tests. JUNIT_DIR: where to leave the results.
set -eu

PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
root=$(cd "$(dirname "$0")/.." && pwd)
build_only= unit_only=

while [ $# -gt 0 ]; do
        case $1 in
        --gpu) GPUQ_TEST_DEVICE=gpu; export GPUQ_TEST_DEVICE ;;
        --sanitize)
                GPUQ_BUILD=${GPUQ_BUILD:-$root/build-sanitize}
                GPUQ_MESON_ARGS="-Db_sanitize=address,undefined -Db_lundef=false"
                # The bounds of what a sanitizer finds: every finding ends its process.
                UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
                LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0
                GPUQ_TEST_SANITIZE=1
                export GPUQ_BUILD GPUQ_MESON_ARGS UBSAN_OPTIONS LSAN_OPTIONS GPUQ_TEST_SANITIZE
                ;;
        --build) build_only=1 ;;
        --unit) unit_only=1 ;;
        --help) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) break ;;
        esac
        shift
done

step() {
        echo "run: $*" >&2
}

build=${GPUQ_BUILD:-$root/build}
sh "$root/tests/setup.sh" test
[ -z "$build_only" ] || exit 0
results=${JUNIT_DIR:-$build/results}
rm -rf "$results"
mkdir -p "$results"
status=0

step "running the unit tests"
meson test -C "$build" --suite unit --no-rebuild --print-errorlogs --timeout-multiplier 4 || status=1
cp "$build/meson-logs/testlog.json" "$results/unit.json" || status=1
files=$results/unit.json

if [ -z "$unit_only" ]; then
        step "running the system tests"
        GPUQ_STAGE=$build/stage GPUQ_BUILD=$build sh "$root/tests/system.sh" "$results" "$@" || status=1
        files="$files $results/shared.xml $results/whole.xml"
fi

/usr/bin/python3 "$root/tests/summary.py" $files || status=1
exit $status
