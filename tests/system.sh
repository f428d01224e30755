#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the system tests on an installed tree: several at once, where pytest has xdist, then those that load the
# whole machine (whole_machine) one by one.
#
#     sh tests/system.sh RESULTS [PYTEST-ARGUMENT...]
#
# RESULTS: the folder for shared.xml and whole.xml. AT_ONCE: how many (as many as there are processors); so does -n N
# among the arguments. ONLY: shared, for the tests that may run beside each other, or whole, for the others (both).
set -u

tests=$(cd "$(dirname "$0")" && pwd)
results=$1
shift
status=0
at_once= one_by_one=

if python3 -c 'import xdist' 2>/dev/null; then
        at_once="-n ${AT_ONCE:-$(nproc)} --dist loadgroup" one_by_one="-n 0"
fi

# 5 is pytest's word for no test that was asked for.
part() {
        name=$1
        shift
        rm -f "$results/$name.xml"
        python3 -m pytest -q -rsfE -p no:cacheprovider --junitxml="$results/$name.xml" --part="$name" "$@" \
                "$tests/fault" "$tests/hostile" "$tests/gpu" "$tests/python" "$tests/integration" || [ $? = 5 ] || status=1
}

[ "${ONLY:-}" = whole ] || part shared $at_once "$@"
[ "${ONLY:-}" = shared ] || part whole "$@" $one_by_one
exit $status
