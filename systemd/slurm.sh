#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prolog and Epilog of Slurm on a node whose GPUs gpuqd shares (docs/slurm.md):
#
#     Prolog=@libexecdir@/gpuq/slurm
#     Epilog=@libexecdir@/gpuq/slurm
#
# While a user has jobs on the node, the user's weight is the number of their shards. When a job ends, what it left with
# gpuqd, such as detached jobs, is cancelled, and when that was the user's last job there, all that the user left. A
# failure is logged and never fails the job: Slurm would drain the node.
#
# GPUQ_SLURM_STATE: the folder of its files, slurm_dir of gpuqd.conf. gpuqd reads weights.conf and account-N there.
# GPUQ_SLURM_RELOAD: the command that makes gpuqd read the weights.
# GPUQ_SOCKET: of gpuqd.
set -u

export PATH=@bindir@:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
state=${GPUQ_SLURM_STATE:-/run/gpuq-slurm}
conf=$state/weights.conf
reload=${GPUQ_SLURM_RELOAD:-systemctl reload gpuqd.service}

complain() {
        logger -t gpuq-slurm -p daemon.warning -- "job ${SLURM_JOB_ID:-?}: $*" 2>/dev/null || echo "gpuq-slurm: $*" >&2
}

# Those of this job on this node: "Nodes=node[0-1] ... GRES=shard:TYPE:3(3/8)", each; the TYPE may be absent.
count_shards() {
        echo "$job" |
                sed -n 's/.*Nodes=\([^ ]*\) .*GRES=[^ ]*shard:\([^:(,]*:\)\{0,1\}\([0-9][0-9]*\).*/\1 \3/p' |
                while read -r nodes n; do
                        scontrol show hostnames "$nodes" | grep -qxF "$SLURMD_NODENAME" && echo "$n" && break
                done
}

# A weight for each user with jobs here. gpuqd takes weights from 0.001 to 1000; shards may be megabytes.
write_conf() {
        {
                echo "# Written by Slurm's prolog and epilog: the shards of each user's jobs on this node."
                cat "$state"/job-* 2>/dev/null | awk '
                        { n[$1] += $2 }
                        END {
                                for (user in n)
                                        most = n[user] > most ? n[user] : most
                                for (user in n)
                                        if (n[user]) {
                                                weight = most > 1000 ? n[user] * 1000 / most : n[user]
                                                printf "[slurm %s]\nweight = %.6g\n", user, weight < 0.001 ? 0.001 : weight
                                        }
                        }'
        } >"$conf.new" && mv "$conf.new" "$conf"
}

# gpuqd reads it when it writes the job's first line of the history, which may be after the job.
keep_account() {
        account=$(echo "$job" | sed -n 's/.* Account=\([^ ]*\).*/\1/p' | head -n 1)
        case $account in
        '' | '(null)') ;;
        *) echo "$account" >"$state/account-$SLURM_JOB_ID" ;;
        esac
}

forget_accounts() {
        touch -c "$state/account-$SLURM_JOB_ID"
        find "$state" -name 'account-*' -mmin +1440 | while read -r file; do
                [ -e "$state/job-${file##*-}" ] || rm -f "$file"
        done
}

begin() {
        job=$(scontrol -d show job "$SLURM_JOB_ID")
        keep_account
        shards=$(count_shards)
        echo "$SLURM_JOB_UID ${shards:-0}" >"$state/job-$SLURM_JOB_ID"
        [ -n "$shards" ] || return 0
        write_conf && $reload >/dev/null || complain "cannot tell gpuqd of its $shards shards"
}

# As root, who may cancel any user's jobs.
cancel_left() {
        timeout 10 gpuq cancel --slurm-job "$SLURM_JOB_ID" >/dev/null || return 1
        grep -qs "^$SLURM_JOB_UID " "$state"/job-* && return 0
        setpriv --reuid "$SLURM_JOB_UID" --regid "$SLURM_JOB_GID" --init-groups timeout 10 gpuq cancel --all >/dev/null
}

# A job without shards may run on a node without gpuqd, which is nothing to complain about.
end() {
        shards=0
        [ -e "$state/job-$SLURM_JOB_ID" ] && read -r _ shards <"$state/job-$SLURM_JOB_ID"
        rm -f "$state/job-$SLURM_JOB_ID"
        forget_accounts
        if [ "$shards" = 0 ]; then
                cancel_left 2>/dev/null
                return 0
        fi
        write_conf && $reload >/dev/null || complain "cannot take its share back from gpuqd"
        exec 9>&- # gpuqd may be slow
        cancel_left || complain "cannot cancel what it left"
}

umask 022
mkdir -p "$state"
exec 9>"$state/lock"
flock 9 # jobs begin and end at the same time
case ${SLURM_SCRIPT_CONTEXT:-} in
prolog_slurmd) begin ;;
epilog_slurmd) end ;;
*) complain "this is Slurm's Prolog and Epilog on a node, not ${SLURM_SCRIPT_CONTEXT:-a command}" ;;
esac
exit 0
