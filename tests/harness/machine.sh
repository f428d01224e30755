#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Boots systemd as process 1 of new namespaces, on a copy-on-write view of the files below BASE (/: this
# machine's own), with an installed gpuq as /opt/gpuq. Called by machine.py through unshare; nothing that it mounts or
# writes is seen outside, and all ends with its process 1, but for the control group, which is named as FOLDER.
#
#     machine.sh FOLDER BASE [STAGE]      FOLDER: an empty one, whose root/ becomes the machine's /
#
# Without STAGE there is no gpuq: the machine is for trying its packages.
set -eu

folder=$1 base=$2 stage=${3:-} root=$1/root
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/changes" "$folder/work" "$root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$folder/changes,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
rm -rf "$root/var/lib/gpuqd" "$root/var/cache/gpuq" # of a gpuqd of this machine, or of its uids

# In a control group of its own: two such machines at once would take each other's services for theirs.
mkdir "$folder/groups"
mount -t cgroup2 cgroup2 "$folder/groups"
mkdir "$folder/groups/${folder##*/}"
echo 0 >"$folder/groups/${folder##*/}/cgroup.procs"

if [ -n "$stage" ]; then
        cp -a "$stage" "$root/opt/gpuq"
        for unit in gpuqd.service gpuqd.socket gpuq-metrics.service; do
                sed "s|$stage|/opt/gpuq|g" "$stage/lib/systemd/system/$unit" >"$root/etc/systemd/system/$unit"
        done
        mkdir -p "$root/etc/sysusers.d" "$root/etc/tmpfiles.d" "$root/opt/gpuq/etc/gpuq/gpuqd.conf.d"
        cp "$stage/lib/sysusers.d/gpuq.conf" "$root/etc/sysusers.d/"
        cp "$stage/lib/tmpfiles.d/gpuq.conf" "$root/etc/tmpfiles.d/"
fi
# No journal in here.
for service in gpuqd gpuq-metrics; do
        mkdir -p "$root/etc/systemd/system/$service.service.d"
        printf '[Service]\nStandardOutput=append:/%s.log\nStandardError=append:/%s.log\n' "$service" "$service" \
                >"$root/etc/systemd/system/$service.service.d/log.conf"
        : >"$root/$service.log"
done
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"

exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin NOTIFY_SOCKET="$NOTIFY_SOCKET" \
        unshare --cgroup chroot "$root" sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
                exec /lib/systemd/systemd --system --unit=basic.target --log-target=console --show-status=no'
