#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages of what is committed, and tries them as an administrator would: installs them with apt in a
# machine of its own, which has a fresh minimal Debian and a systemd of its own.
#
#     sudo sh tests/packages/run.sh [PYTEST-ARGUMENT...]
#
# What it makes is in build-packages/; the second time it takes the minimal Debian from there. JUNIT_DIR: where to leave
# packages.xml. Needs root, to boot.
set -eu

PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
root=$(cd "$(dirname "$0")/../.." && pwd)
made=$root/build-packages
build=${GPUQ_BUILD:-$root/build}
results=${JUNIT_DIR:-$made/results}

[ "$(id -u)" = 0 ] || {
        echo "packages: this needs root, to boot a machine" >&2
        exit 1
}
sh "$root/tests/setup.sh" test # what the tests' own tools need
sh "$root/systemd/package.sh" "$made"

# Of the release that runs here, from where apt takes its packages.
if [ ! -e "$made/debian-complete" ]; then
        rm -rf "$made/debian"
        release=$(. /etc/os-release && echo "$VERSION_CODENAME")
        from=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | awk -v release="$release" '$2 == release { print $1; exit }')
        echo "packages: making a minimal $release in $made/debian" >&2
        if ! debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,python3-minimal "$release" "$made/debian" "$from" \
                >"$made/log" 2>&1 </dev/null; then
                tail -n 20 "$made/log" >&2
                exit 1
        fi
        # What tells apt here how it reaches the archive.
        cp -rL /etc/apt/apt.conf.d/. "$made/debian/etc/apt/apt.conf.d/"
        touch "$made/debian-complete"
fi
cp -L /etc/resolv.conf "$made/debian/etc/resolv.conf"

mkdir -p "$results"
GPUQ_STAGE=$build/stage GPUQ_BUILD=$build GPUQ_PACKAGES=$made exec /usr/bin/python3 -m pytest -q -rsfE -p no:cacheprovider \
        --junitxml="$results/packages.xml" "$@" "$root/tests/packages"
