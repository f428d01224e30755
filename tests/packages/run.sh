#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages of what is committed, and tries them as an administrator would: installs them with apt in a
# machine of its own, which has a fresh minimal Debian and a systemd of its own.
#
#     sudo sh tests/packages/run.sh [--from REVISION] [PYTEST-ARGUMENT...]
#
# --from: instead, installs the packages of this earlier revision, made by its own script, and upgrades them to those of
# what is committed, under load (test_upgrade.py).
#
# What it makes is in build-packages/; the second time it takes the minimal Debian and the packages of an earlier
# revision from there. JUNIT_DIR: where to leave packages.xml. Needs root, to boot.
set -eu

PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
root=$(cd "$(dirname "$0")/../.." && pwd)
made=$root/build-packages
build=${GPUQ_BUILD:-$root/build}
results=${JUNIT_DIR:-$made/results}

from=
tests=test_packages.py
if [ "${1:-}" = --from ]; then
        from=$(git -C "$root" rev-parse --verify "${2:?packages: --from needs a revision}^{commit}")
        tests=test_upgrade.py
        shift 2
fi

[ "$(id -u)" = 0 ] || {
        echo "packages: this needs root, to boot a machine" >&2
        exit 1
}
sh "$root/tests/setup.sh" test # what the tests' own tools need
sh "$root/systemd/package.sh" "$made"

# In a clone, because the script makes packages of what is committed.
package_earlier() {
        clone=$(mktemp -d)
        trap 'rm -rf "$clone"' EXIT
        git clone --quiet --shared --no-checkout "$root" "$clone/gpuq"
        git -C "$clone/gpuq" checkout --quiet --detach "$from"
        sh "$clone/gpuq/systemd/package.sh" "$earlier"
        touch "$earlier/complete"
        rm -rf "$clone"
        trap - EXIT
}

earlier=$made/from-$from
[ -z "$from" ] || [ -e "$earlier/complete" ] || package_earlier

# Of the release that runs here, from where apt takes its packages.
if [ ! -e "$made/debian-complete" ]; then
        rm -rf "$made/debian"
        release=$(. /etc/os-release && echo "$VERSION_CODENAME")
        archive=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | awk -v release="$release" '$2 == release { print $1; exit }')
        echo "packages: making a minimal $release in $made/debian" >&2
        if ! debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,python3-minimal "$release" "$made/debian" "$archive" \
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
GPUQ_STAGE=$build/stage GPUQ_BUILD=$build GPUQ_PACKAGES=$made GPUQ_PACKAGES_FROM=${from:+$earlier} exec /usr/bin/python3 -m pytest -q -rsfE -p no:cacheprovider \
        --junitxml="$results/packages.xml" "$@" "$root/tests/packages/$tests"
