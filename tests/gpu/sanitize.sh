#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs what a worker does under compute-sanitizer on a machine with a GPU, from a packed tree (pack.sh), as root. Bad and
# racing accesses count, refused calls do not; one test has a bad access of its own, in wild. Ends with what was found.
#
#     sh sanitize.sh [PART...]        (all)
#
#     twins      twins beside their kernels
#     coalesce   a worker that puts jobs together, works in place, moves and clears data (tests/unit/worker/test-coalesce.c)
#     programs   random programs of several users through a daemon whose workers are watched, by every capability and
#                with copies in place of kernels that work in place (tests/integration/test_serial.py); SEEDS: (1)
#     races      twins beside their kernels, under racecheck
#
# OUT: where to leave the reports (the packed folder). PATIENCE: seconds for each run (240).
set -u

pack=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$pack}/sanitizer
patience=${PATIENCE:-240}
checker=$(command -v compute-sanitizer) || { echo "there is no compute-sanitizer in PATH" >&2; exit 77; }
status=0

export GPUQ_STAGE="$pack/stage" GPUQ_BUILD="$pack" GPUQ_TEST_DEVICE=gpu GPUQ_DESCRIPTORS="$pack/gpuq.descriptors"
export PYTHONDONTWRITEBYTECODE=1
mkdir -p "$out"
reports=$(mktemp -d) # where workers of several users can write, whoever's $out is
chmod 1777 "$reports"

# told TOOL WHAT RESULT
told() {
        printf '%-10s %-26s %s\n' "$1" "$2" "$3"
}

# unit TOOL TEST
unit() {
        report=$out/$2-$1
        timeout "$patience" "$checker" --tool "$1" --target-processes all --report-api-errors no --log-file "$report-%p.txt" \
                "$pack/stage/libexec/gpuq-unit/$2" >"$report.log" 2>&1 || status=1
        told "$1" "$2" "$(tail -n 1 "$report.log")"
        cat "$report"-*.txt >"$report.txt" 2>/dev/null || status=1 # none: nobody was watched
        found "$report.txt"
}

# What is wrong, each with how often, and how often nothing was.
found() {
        grep -h -e 'Invalid ' -e 'Race reported' -e 'SUMMARY' "$1" | sed 's/=* *//' | sort | uniq -c | sort -rn | head -n 20
        grep -h -A 1 -e 'Invalid ' "$1" | grep ' at ' | grep -v wild && status=1
        grep -q 'Race reported' "$1" && status=1
}

# A tree of its own, the packed one stays as it is. In it the checker does not get at the compiler (unwatched.py).
watched=$pack/watched
rm -rf "$watched"
trap 'rm -rf "$watched" "$reports"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
cp -al "$pack/stage" "$watched"
mv "$watched/libexec/gpuq/gpuqd-compiler" "$watched/libexec/gpuq/gpuqd-compiler.real"
cp "$pack/tests/gpu/unwatched.py" "$watched/libexec/gpuq/gpuqd-compiler"

# The checker starts its workers.
watch() {
        worker=$watched/libexec/gpuq/gpuqd-worker
        mv "$worker" "$worker.real"
        cat >"$worker" <<WRAPPER
#!/bin/sh
exec "$checker" --tool memcheck --report-api-errors no --log-file "$reports/worker-%p.txt" "$worker.real" "\$@"
WRAPPER
        chmod 755 "$worker"
}

programs() {
        property=$pack/tests/integration/test_serial.py::test_all_ends_as_in_serial_order
        watch
        for seed in ${SEEDS:-1}; do
                GPUQ_STAGE=$watched GPUQ_PROPERTY_SEED=$seed timeout "$patience" python3 -m pytest -q -p no:cacheprovider \
                        "${property}[all]" "${property}[not-in-place]" >"$out/programs-$seed.log" 2>&1 || status=1
                told memcheck "random program $seed" "$(tail -n 1 "$out/programs-$seed.log")"
        done
        cat "$reports"/worker-*.txt >"$out/programs.txt" || status=1
        found "$out/programs.txt"
}

# As of run.sh: what a worker looks for beside itself.
export GPUQ_TEST_WORKER="$pack/stage/libexec/gpuq/gpuqd-worker"
GPUQ_TEST_LIBEXEC=$(find "$watched/libexec/gpuq" "$watched/lib" -mindepth 1 -maxdepth 1 ! -name gpuqd-worker ! -name '*.real' | paste -sd :)
export GPUQ_TEST_LIBEXEC

[ $# -gt 0 ] || set -- twins coalesce programs races
for one in "$@"; do
        case $one in
        twins) unit memcheck test-twins ;;
        coalesce) unit memcheck test-coalesce ;;
        programs) programs ;;
        races) unit racecheck test-twins ;;
        *) echo "$one: twins, coalesce, programs or races" >&2; exit 2 ;;
        esac
done
exit $status
