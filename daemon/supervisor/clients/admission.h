/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ADMISSION_H
#define GPUQ_SUPERVISOR_ADMISSION_H

/*
 * Admission
 *
 * Decides whether a peer may connect and whether it is an administrator, by the groups that the
 * kernel reports for it, and those that were found for the configuration (util/config-names.h).
 */

#include "base.h"
#include "session.h"
#include "util/config.h"

/* Groups of a peer: the kernel takes microseconds for each hundred, and a user with subordinate gids can have 65,536. */
#define ADMISSION_GROUPS_MAX 4096u

/**
 * admission_check() - decide by the groups of a socket's peer
 * @peer: becomes an administrator if a group makes it one; its n_groups is set
 *
 * Return: NULL, or the caller's reason why the peer may not connect.
 */
Failure *admission_check(const ConfigAdmission *admission, int fd, Peer *peer);

#endif
