/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity
 *
 * See identity.h. The name service may take its time; it is asked only when a
 * process is about to start.
 */

#include "keeper/identity.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <stdio.h>

#include "util/macro.h"

#define IDENTITY_GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */

DEFINE_CLEANUP(Identity, identity_free)

static bool identity_is_allowed(const Identity *identity) {
        return identity->uid != 0 && identity->uid != (uid_t)-1 && identity->gid != 0 &&
               identity->gid != (gid_t)-1;
}

static int identity_set_groups(Identity *identity, const char *name) {
        int n_groups = 0;

        (void)getgrouplist(name, identity->gid, NULL, &n_groups);
        if (n_groups <= 0 || n_groups > IDENTITY_GROUPS_MAX)
                return -EINVAL;

        identity->groups = calloc((size_t)n_groups, sizeof(gid_t));
        if (!identity->groups)
                return -ENOMEM;
        if (getgrouplist(name, identity->gid, identity->groups, &n_groups) < 0)
                return -EAGAIN; /* changed meanwhile */

        identity->n_groups = n_groups;
        return 0;
}

/* @name: NULL: no groups */
static int identity_new(uid_t uid, gid_t gid, const char *name, Identity **ret_identity) {
        _cleanup_(identity_freep) Identity *identity = NULL;
        int r;

        identity = calloc(1, sizeof(*identity));
        if (!identity)
                return -ENOMEM;

        identity->uid = uid;
        identity->gid = gid;
        if (!identity_is_allowed(identity))
                return IDENTITY_E_ROOT;
        if (name) {
                r = identity_set_groups(identity, name);
                if (r < 0)
                        return r;
        }

        *ret_identity = TAKE_PTR(identity);
        return 0;
}

/* getpwnam() and getpwuid() tell "none" in several ways; these are the real failures. */
static int identity_lookup_failed(int error) {
        return error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM
                       ? -error
                       : IDENTITY_E_UNKNOWN;
}

int identity_by_name(const char *name, bool with_groups, Identity **ret_identity) {
        const struct passwd *passwd;

        errno = 0;
        passwd = getpwnam(name);
        if (!passwd)
                return identity_lookup_failed(errno);
        return identity_new(passwd->pw_uid, passwd->pw_gid, with_groups ? passwd->pw_name : NULL,
                            ret_identity);
}

int identity_by_uid(uid_t uid, gid_t gid, Identity **ret_identity) {
        const struct passwd *passwd;
        int r;

        errno = 0;
        passwd = getpwuid(uid);
        if (passwd)
                return identity_new(uid, passwd->pw_gid, passwd->pw_name, ret_identity);

        r = identity_lookup_failed(errno);
        if (r < 0)
                return r;
        return identity_new(uid, gid, NULL, ret_identity);
}

static int identity_check_name(const char *key, const char *name, char **ret_error) {
        Identity *identity = NULL;
        int r;

        r = identity_by_name(name, false, &identity);
        identity_free(identity);
        if (r == 0)
                return 0;

        if (r == IDENTITY_E_UNKNOWN)
                r = asprintf(ret_error,
                             "%s = %s: no such user; run systemd-sysusers, set %s, or serve "
                             "yourself alone with --private",
                             key, name, key);
        else if (r == IDENTITY_E_ROOT)
                r = asprintf(ret_error, "%s = %s: has uid or gid 0, which it may not have", key,
                             name);
        else
                r = asprintf(ret_error, "%s = %s: %s", key, name, strerror(-r));
        if (r < 0)
                *ret_error = NULL;
        return -EINVAL;
}

int identity_check(const Config *config, char **ret_error) {
        int r;

        r = identity_check_name("supervisor_user", config->supervisor_user, ret_error);
        if (r < 0)
                return r;
        return identity_check_name("worker_user", config->worker_user, ret_error);
}

Identity *identity_free(Identity *identity) {
        if (!identity)
                return NULL;

        free(identity->groups);
        free(identity);
        return NULL;
}
