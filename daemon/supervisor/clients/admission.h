/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ADMISSION_H
#define GPUQ_SUPERVISOR_ADMISSION_H

/*
 * Admission
 *
 * Decides whether a peer may connect and whether it is an administrator, by the groups that the
 * kernel reports for it. The configured groups are looked up when the configuration is read. A
 * failed lookup is repeated when a client connects, at most once in ADMISSION_LOOK_UP_NS.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base.h"
#include "session.h"
#include "util/config.h"

#define ADMISSION_LOOK_UP_NS 10000000000ull
/* Groups of a peer: the kernel takes microseconds for each hundred, and a user with subordinate gids can have 65,536. */
#define ADMISSION_GROUPS_MAX 4096u

typedef struct Admission {
        gid_t *allowed; /* the groups of allow_groups that exist */
        size_t n_allowed;
        gid_t admins;       /* (gid_t)-1: there is no such group */
        bool is_incomplete; /* without memory: look again after look_up_ns */
        bool has_failed;    /* a lookup failed: the same */
        uint64_t look_up_ns;
} Admission;

/** admission_configure() - look up the groups of a configuration. */
void admission_configure(Admission *admission, const Config *config, uint64_t now_ns);
/** admission_finish() - frees the members; the struct is the caller's memory. */
void admission_finish(Admission *admission);
/**
 * admission_check() - decide by the groups of a socket's peer
 * @peer: becomes an administrator if a group makes it one; its n_groups is set
 *
 * Return: NULL, or the caller's reason why the peer may not connect.
 */
Failure *admission_check(Admission *admission, const Config *config, int fd, Peer *peer,
                         uint64_t now_ns);

#endif
