/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_IDENTITY_H
#define GPUQ_KEEPER_IDENTITY_H

/*
 * Identity
 *
 * The identity of a process to start: uid, gid and supplementary groups, looked up
 * before fork(). Never uid 0, never gid 0, never the "unchanged" of setresuid().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "util/config.h"

enum {
        _IDENTITY_E_SUCCESS,
        IDENTITY_E_UNKNOWN, /* no such user */
        IDENTITY_E_ROOT,    /* uid or gid 0, or an invalid one */
};

typedef struct Identity {
        uid_t uid;
        gid_t gid;
        gid_t *groups;
        int n_groups;
} Identity;

/** identity_by_name() - a user of the system. @with_groups: its supplementary groups too. */
int identity_by_name(const char *name, bool with_groups, Identity **ret_identity);
/**
 * identity_check() - check the users that the service runs as
 * @ret_error: on failure, the key, its user and what to do; the caller's; NULL if out of memory
 *
 * Return: 0 or a negative errno.
 */
int identity_check(const Config *config, char **ret_error);
/**
 * identity_check_names() - logs each user with a section and each allowed group that the machine does not have
 * @level: of these lines. A lookup that fails is a warning, and no name after it is looked up.
 *
 * Return: how many there are.
 */
unsigned identity_check_names(const Config *config, int level);
/** identity_by_uid() - with its groups; a uid without a name, or whose lookup fails, gets @gid and no groups. */
int identity_by_uid(uid_t uid, gid_t gid, Identity **ret_identity);
/** identity_free() - NULL is fine. Return: NULL. */
Identity *identity_free(Identity *identity);

#endif
