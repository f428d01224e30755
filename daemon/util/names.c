/* SPDX-License-Identifier: Apache-2.0 */
#include "util/names.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "util/macro.h"

#define NAMES_ENTRY_MIN  4096u
#define NAMES_ENTRY_MAX  (16u << 20) /* bytes of one entry: a group with all its members */
#define NAMES_GROUPS_MAX 65536       /* NGROUPS_MAX of the kernel */

/* Makes room for a larger entry. Return: 0 or a negative errno. */
static int names_grow(char **buffer, size_t *n_buffer) {
        *n_buffer = *n_buffer ? *n_buffer * 4 : NAMES_ENTRY_MIN;
        if (*n_buffer > NAMES_ENTRY_MAX)
                return -E2BIG;
        free(*buffer);
        *buffer = malloc(*n_buffer);
        return *buffer ? 0 : -ENOMEM;
}

/* getpwnam_r(3) lists the errors that say that there is no such entry. */
static int names_error(int error) {
        return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM
                       ? NAMES_E_NONE
                       : -error;
}

int names_find_user(const char *name, uid_t *ret_uid, gid_t *ret_gid) {
        _cleanup_(freep) char *buffer = NULL;
        struct passwd passwd, *found = NULL;
        size_t n_buffer = 0;
        int r;

        do {
                r = names_grow(&buffer, &n_buffer);
                if (r < 0)
                        return r;
                r = getpwnam_r(name, &passwd, buffer, n_buffer, &found);
        } while (r == ERANGE);
        if (!found)
                return names_error(r);

        *ret_uid = found->pw_uid;
        *ret_gid = found->pw_gid;
        return 0;
}

int names_find_uid(uid_t uid, char **ret_name, gid_t *ret_gid) {
        _cleanup_(freep) char *buffer = NULL;
        struct passwd passwd, *found = NULL;
        size_t n_buffer = 0;
        char *name;
        int r;

        do {
                r = names_grow(&buffer, &n_buffer);
                if (r < 0)
                        return r;
                r = getpwuid_r(uid, &passwd, buffer, n_buffer, &found);
        } while (r == ERANGE);
        if (!found)
                return names_error(r);

        name = strdup(found->pw_name);
        if (!name)
                return -ENOMEM;
        *ret_name = name;
        *ret_gid = found->pw_gid;
        return 0;
}

int names_find_group(const char *name, gid_t *ret_gid) {
        _cleanup_(freep) char *buffer = NULL;
        struct group group, *found = NULL;
        size_t n_buffer = 0;
        int r;

        do {
                r = names_grow(&buffer, &n_buffer);
                if (r < 0)
                        return r;
                r = getgrnam_r(name, &group, buffer, n_buffer, &found);
        } while (r == ERANGE);
        if (!found)
                return names_error(r);

        *ret_gid = found->gr_gid;
        return 0;
}

int names_find_groups(const char *name, gid_t own, gid_t **ret_groups, size_t *ret_n_groups) {
        _cleanup_(freep) gid_t *groups = NULL;
        int n_groups = 0;

        (void)getgrouplist(name, own, NULL, &n_groups);
        if (n_groups <= 0 || n_groups > NAMES_GROUPS_MAX)
                return -EINVAL;
        groups = calloc((size_t)n_groups, sizeof(*groups));
        if (!groups)
                return -ENOMEM;
        if (getgrouplist(name, own, groups, &n_groups) < 0)
                return -EAGAIN; /* changed meanwhile */

        *ret_groups = TAKE_PTR(groups);
        *ret_n_groups = (size_t)n_groups;
        return 0;
}
