#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs what a worker does under compute-sanitizer on a machine with a GPU, from a packed tree (pack.sh), as root: random
# programs of several users through a daemon whose workers are watched (tests/integration/test_serial.py), by every capability
# and with copies in place of kernels that work in place; and twins beside their kernels. Bad and racing accesses
# count, refused calls do not. Ends with what was found.
#
#     sh sanitize.sh [SEED...]        random programs (1)
#
# OUT: where to leave the reports (the packed folder).
set -u

pack=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$pack}/sanitizer
checker=$(command -v compute-sanitizer) || { echo "there is no compute-sanitizer in PATH" >&2; exit 77; }
status=0

export GPUQ_STAGE="$pack/stage" GPUQ_BUILD="$pack" GPUQ_TEST_DEVICE=gpu GPUQ_DESCRIPTORS="$pack/gpuq.descriptors"
export PYTHONDONTWRITEBYTECODE=1
mkdir -p "$out"
chmod 1777 "$out" # workers of several users write there

twins() {
        timeout 240 "$checker" --tool "$1" --report-api-errors no --error-exitcode 99 --log-file "$out/twins-$1.txt" \
                "$pack/stage/libexec/gpuq-unit/test-twins" >"$out/twins-$1.log" 2>&1 || status=1
        printf '%-10s twins                  %s\n' "$1" "$(grep -h SUMMARY "$out/twins-$1.txt" | sed 's/=* *//')"
}

twins memcheck

# In a tree of its own, whose worker is started by the checker: the packed one stays as it is.
watched=$pack/watched
rm -rf "$watched"
trap 'rm -rf "$watched"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
cp -al "$pack/stage" "$watched"
worker=$watched/libexec/gpuq/gpuqd-worker
mv "$worker" "$worker.real"
cat >"$worker" <<WRAPPER
#!/bin/sh
exec "$checker" --tool memcheck --report-api-errors no --log-file "$out/worker-%p.txt" "$worker.real" "\$@"
WRAPPER
chmod 755 "$worker"
property=$pack/tests/integration/test_serial.py::test_all_ends_as_in_serial_order
rm -f "$out"/worker-*.txt
for seed in "${@:-1}"; do
        GPUQ_STAGE=$watched GPUQ_PROPERTY_SEED=$seed timeout 300 python3 -m pytest -q -p no:cacheprovider \
                "${property}[all]" "${property}[not-in-place]" >"$out/serial-$seed.log" 2>&1 || status=1
        printf '%-10s random program %-9s %s\n' memcheck "$seed" "$(tail -n 1 "$out/serial-$seed.log")"
done
cat "$out"/worker-*.txt >"$out/workers.txt" || status=1 # none: nobody was watched
sort "$out/workers.txt" | uniq -c | sort -rn | head -n 20
grep -q -e 'Invalid ' -e 'SUMMARY: [1-9]' "$out/workers.txt" && status=1

twins racecheck
exit $status
