/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_PROTOCOL_H
#define GPUQ_KEEPER_PROTOCOL_H

/*
 * The messages between the keeper and its supervisor: fixed structs over a SOCK_SEQPACKET pair,
 * one struct per packet, with descriptors. They contain nothing of a client but its uid, which the
 * kernel told the supervisor.
 *
 * The keeper does not trust the supervisor. It kills one that breaks these rules, and limits how
 * fast it reads from one that sends much.
 *
 * The supervisor finds its end of the pair as descriptor 3, and the configuration in force as
 * descriptor 4: a memfd, see util/config-seal.h. It never reads the files. Descriptor 5 is a page in
 * which it says what it is doing, see util/activity.h.
 */

#include <stdint.h>

#include "util/sms.h"

#define KEEPER_FD          3
#define KEEPER_CONFIG_FD   4
#define KEEPER_ACTIVITY_FD 5
#define KEEPER_KEY_MAX     64
#define KEEPER_KEY_LEDGER  "ledger" /* without it what else is kept means nothing to a supervisor */
#define KEEPER_HANDOVER_S                                                                          \
        5 /* HANDOVER: what is in flight is waited for so long; well below TimeoutStopSec= */
#define KEEPER_N_FDS                                                                               \
        3 /* at most, beside one packet; SPAWN has all of them, equal to CHANNEL_N_FDS */
/*
 * How many descriptors the keeper can hold with a limit of @n_files. Half of them: a new supervisor
 * gets a duplicate of each, which waits here until it reads. Some are left for everything else.
 */
#define KEEPER_HELD_SPARE 256u
#define KEEPER_HELD_MAX(n_files)                                                                   \
        ((n_files) > KEEPER_HELD_SPARE ? ((n_files)-KEEPER_HELD_SPARE) / 2 : 0u)
#define KEEPER_WORKERS_MAX 1024u /* processes at once, those that are ending included */
#define KEEPER_STATUS_S    5     /* the supervisor sends STATUS at least this often */
#define KEEPER_SILENCE_S   30 /* … and is killed and started again when nothing came for so long */

typedef enum KeeperKind {
        /* supervisor to keeper */
        KEEPER_READY = 1, /* up: tell systemd; once */
        KEEPER_STATUS,    /* alive, with text for systemd's STATUS= */
        KEEPER_KEEP,      /* hold this memory or device under key; replaces one of that key */
        KEEPER_DROP,      /* forget key */
        KEEPER_SPAWN,     /* start a worker: id, uid, device, probe; KEEPER_N_FDS descriptors */
        KEEPER_ASSIGN,    /* the spare worker id becomes the worker of uid */
        KEEPER_KILL,      /* SIGKILL worker id */

        /* keeper to supervisor */
        KEEPER_LISTENER,   /* the listening socket, one descriptor; first, once */
        KEEPER_KERNEL_LOG, /* the kernel's log, one descriptor, if it may be read; before HELD_END */
        KEEPER_HELD,       /* at a restart: one descriptor that was kept, with its key */
        KEEPER_HELD_END,   /* no more of them */
        KEEPER_SPAWNED,    /* worker id runs as pid */
        KEEPER_EXITED, /* worker id ended, or could not be started; status as of waitpid(), or 127 << 8 */
        KEEPER_RELOAD,   /* SIGHUP came: another configuration holds, one descriptor */
        KEEPER_QUIT,     /* SIGTERM came: end clients and workers, then exit 0 */
        KEEPER_HANDOVER, /* SIGTERM came of a restart: dispatch no more, let what is in flight end, then exit 0 without a word to anybody */
} KeeperKind;

typedef struct KeeperMessage {
        uint32_t kind;
        uint32_t id; /* of a worker, chosen by the supervisor, never used twice */
        uint32_t
                uid; /* SPAWN, ASSIGN: run as; the keeper replaces 0 by worker_user, and knows the groups */
        uint32_t device; /* SPAWN: index, unless text is its uuid */
        uint32_t probe;  /* SPAWN: 1: gpuqd-worker --probe, as worker_user */
        uint32_t spare;  /* SPAWN: 1: gpuqd-worker --spare; ASSIGN says whose it becomes */
        Sms sms;         /* SPAWN: that kernels may use; not of a probe or a spare */
        int32_t pid;     /* SPAWNED */
        int32_t status;  /* EXITED */
        char text
                [256]; /* KEEP, DROP, HELD: the key: letters, digits, "-", "_" and ".", at most KEEPER_KEY_MAX; STATUS: the text; SPAWN: the device's uuid, empty for a probe of all; EXITED: why it could not start */
} KeeperMessage;

#endif
