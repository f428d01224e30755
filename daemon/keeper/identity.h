/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_IDENTITY_H
#define GPUQ_KEEPER_IDENTITY_H

/*
 * Identity
 *
 * The identity of a process to start. It is never uid 0, gid 0, or the "unchanged" of setresuid().
 *
 * A worker has its user's uid, but the gid of worker_user, which no user of the machine has. The
 * kernel lets a process be traced and its memory be read only by processes whose uid and gid both
 * match. So the worker's own user cannot do either, from the first instruction on. Of its user's
 * groups the worker gets only those that open the devices. The supervisor provides only the uid.
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

/** identity_by_name() - a user of the system, without groups. Return: 0, an IDENTITY_E_ code or a negative errno. */
int identity_by_name(const char *name, Identity **ret_identity);
/**
 * identity_of_worker() - may take as long as a lookup of names takes
 * @uid: whose jobs it runs; 0: worker_user's, as probes do
 * @ret_error: on failure why, the caller's; NULL if out of memory
 *
 * Return: 0 or a negative errno.
 */
int identity_of_worker(const Config *config, uid_t uid, Identity **ret_identity, char **ret_error);
/**
 * identity_check() - check the users that the service runs as
 * @before: the configuration in force, whose users are not looked up again; NULL: none
 * @ret_error: on failure, the key, its user and what to do; the caller's; NULL if out of memory
 *
 * Return: 0 or a negative errno.
 */
int identity_check(const Config *config, const Config *before, char **ret_error);
/** identity_free() - NULL is fine. Return: NULL. */
Identity *identity_free(Identity *identity);

#endif
