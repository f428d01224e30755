/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_NAMES_H
#define GPUQ_UTIL_NAMES_H

/*
 * Names
 *
 * Looks up users and groups in the name service. "There is none" is an answer. A failed lookup is
 * an error, and may succeed later. A lookup may take long if the name service asks a network.
 */

#include <sys/types.h>

enum {
        _NAMES_E_SUCCESS,
        NAMES_E_NONE, /* no such user or group */
};

/** names_find_user() - Return: 0, NAMES_E_NONE, or a negative errno: the lookup failed. */
int names_find_user(const char *name, uid_t *ret_uid, gid_t *ret_gid);
/** names_find_uid() - @ret_name: the caller's. Return: as names_find_user(). */
int names_find_uid(uid_t uid, char **ret_name, gid_t *ret_gid);
/** names_find_group() - Return: as names_find_user(). */
int names_find_group(const char *name, gid_t *ret_gid);

/**
 * names_find_groups() - the groups of a user, @own among them
 * @ret_groups: the caller's
 *
 * Return: 0 or a negative errno.
 */
int names_find_groups(const char *name, gid_t own, gid_t **ret_groups, size_t *ret_n_groups);

#endif
