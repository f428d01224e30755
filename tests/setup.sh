#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What every script here starts with: installs the packages that are missing, builds, and installs the
# result into the build folder's own stage/, from where all tests run it. Quick when nothing is to do.
#
#     sh tests/setup.sh [configure|build|test|ci|pack]
#
# configure: only the packages, and a build folder in which nothing is built yet.
# GPUQ_BUILD: the build folder (build); GPUQ_MESON_ARGS: more options for meson setup.
set -eu

# The system's own python and meson, whatever else comes first in PATH: they see the packages below.
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
root=$(cd "$(dirname "$0")/.." && pwd)
build=${GPUQ_BUILD:-$root/build}
level=${1:-build}

packages="build-essential meson ninja-build pkg-config protobuf-c-compiler protobuf-compiler clang
        libprotobuf-c-dev libuv1-dev libsystemd-dev libinih-dev libjson-c-dev libsmartcols-dev uthash-dev
        libboost-context-dev libcmocka-dev libgcrypt20-dev"
test_packages="systemd util-linux python3 python3-pytest python3-pytest-xdist python3-numpy python3-protobuf"
ci_packages="clang-format clang-tidy libclang-rt-dev"
pack_packages="patchelf"

fail() {
        echo "setup: $*" >&2
        exit 1
}

missing_packages() {
        for package in "$@"; do
                case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) in
                installed) ;;
                *) echo "$package" ;;
                esac
        done
}

as_root() {
        if [ "$(id -u)" = 0 ]; then
                env DEBIAN_FRONTEND=noninteractive "$@"
        else
                sudo env DEBIAN_FRONTEND=noninteractive "$@"
        fi
}

install_packages() {
        missing=$(missing_packages "$@")
        [ -n "$missing" ] || return 0
        [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
                fail "these packages are missing, and neither root nor sudo is at hand to install them:" $missing

        echo "setup: installing" $missing >&2
        log=$(mktemp)
        if ! { as_root apt-get install -y --no-install-recommends $missing ||
                { as_root apt-get update && as_root apt-get install -y --no-install-recommends $missing; }; } \
                >"$log" 2>&1 </dev/null; then
                tail -n 20 "$log" >&2
                rm -f "$log"
                fail "could not install:" $missing
        fi
        rm -f "$log"
}

# Runs a step in silence; shows all it said when it fails.
quietly() {
        if ! "$@" >"$build.log" 2>&1 </dev/null; then
                cat "$build.log" >&2
                fail "'$*' failed"
        fi
        rm -f "$build.log"
}

case $level in
configure | build) ;;
test) packages="$packages $test_packages" ;;
ci) packages="$packages $test_packages $ci_packages" ;;
pack) packages="$packages $test_packages $pack_packages" ;;
*) fail "usage: setup.sh [configure|build|test|ci|pack]" ;;
esac

command -v dpkg-query >/dev/null || fail "this needs Debian 12, Ubuntu 24.04 or newer: no dpkg here"
install_packages $packages
# CPython's own tests of executors, of the version that is there.
[ "$level" = build ] || [ "$level" = configure ] ||
        install_packages "libpython$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')-testsuite"

# A build folder remembers where it was made and how; one of another place or kind is made anew.
wanted="$root ${GPUQ_MESON_ARGS:-}"
if [ "$(cat "$build/setup-stamp" 2>/dev/null)" != "$wanted" ]; then
        [ ! -d "$build/meson-private" ] || rm -rf "$build"
        quietly meson setup "$build" "$root" --prefix="$build/stage" --libdir=lib --sysconfdir=etc \
                ${GPUQ_MESON_ARGS:-}
        echo "$wanted" >"$build/setup-stamp"
fi
[ "$level" != configure ] || exit 0
quietly ninja -C "$build"
quietly meson install -C "$build" --no-rebuild --quiet
