/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_WHO_H
#define GPUQ_CLI_WHO_H

/*
 * Who
 *
 * Users and groups by name, from the system.
 */

#include <stdint.h>

#include "verb.h"

typedef struct Who {
        char name[40];
} Who;

#define WHO_USERS_MAX 100u /* that gpuqd accepts in a query of the history */

typedef struct WhoUsers {
        uint32_t uids[WHO_USERS_MAX];
        size_t n;
} WhoUsers;

/** who_user() - the name of a user, or the uid in decimal. Asking for the same one again is quick. */
Who who_user(uint32_t uid);
/** who_group() - the same for a group. */
Who who_group(uint32_t gid);
/** who_find_user() - a name or number. Return: 0 or -ENOENT. */
int who_find_user(const char *text, int64_t *ret_uid);
/** who_read_user() - the value of --user, in optarg: a name or number. Return: 0 or EXIT_USAGE. */
int who_read_user(Cli *cli, int64_t *ret_uid);
/** who_read_users() - the same for several, separated by commas, added to @users. */
int who_read_users(Cli *cli, WhoUsers *users);

#endif
