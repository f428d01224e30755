#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages of what is committed and puts them into a folder. Installs what that needs.
#
#     sh systemd/package.sh [FOLDER]     (build-packages)
set -eu

PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
root=$(cd "$(dirname "$0")/.." && pwd)
to=${1:-$root/build-packages}

sh "$root/tests/setup.sh" package

# Outside the tree, in which dpkg would write beside it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/gpuq" "$to"
git -C "$root" archive HEAD | tar -x -C "$work/gpuq"
mv "$work/gpuq/systemd/debian" "$work/gpuq/debian"

echo "package: building" >&2
if ! (cd "$work/gpuq" && dpkg-buildpackage --build=binary --unsigned-changes --no-sign) >"$to/log" 2>&1 </dev/null; then
        tail -n 50 "$to/log" >&2
        exit 1
fi
rm -f "$to"/*.deb
mv "$work"/*.deb "$to"
echo "package: lintian" >&2
lintian --allow-root --fail-on error "$to"/*.deb
ls "$to"/*.deb
