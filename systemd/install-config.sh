#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs gpuqd.conf unless there is one: an administrator's changes stay.
set -e
from=$1
to=${DESTDIR:-}$2
mkdir -p "$to/gpuqd.conf.d"
test -e "$to/gpuqd.conf" || install -m 644 "$from" "$to/gpuqd.conf"
