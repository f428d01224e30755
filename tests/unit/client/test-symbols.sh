#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library exports what its list says, and no other: test-symbols.sh LIBRARY LIST
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort > "$work/exported"
sed -n 's/^ *\(gpuq_[a-z0-9_]*\);$/\1/p' "$2" | sort > "$work/listed"
diff -u "$work/listed" "$work/exported"
test -s "$work/listed"
