/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity
 *
 * See identity.h. The name service may be slow, so a forked child looks up what its process needs
 * before it becomes that process.
 */

#include "keeper/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "keeper/driver.h"
#include "util/config-keys.h"
#include "util/log.h"
#include "util/macro.h"
#include "util/names.h"

#define IDENTITY_SYSTEM_MAX                                                                        \
        999 /* uids of the system's own services: SYS_UID_MAX of login.defs(5) */

DEFINE_CLEANUP(Identity, identity_free)

static bool identity_is_allowed(uid_t uid, gid_t gid) {
        return uid != 0 && uid != (uid_t)-1 && gid != 0 && gid != (gid_t)-1;
}

static int identity_new(uid_t uid, gid_t gid, Identity **ret_identity) {
        Identity *identity;

        if (!identity_is_allowed(uid, gid))
                return IDENTITY_E_ROOT;
        identity = calloc(1, sizeof(*identity));
        if (!identity)
                return -ENOMEM;

        identity->uid = uid;
        identity->gid = gid;
        *ret_identity = identity;
        return 0;
}

int identity_by_name(const char *name, Identity **ret_identity) {
        uid_t uid;
        gid_t gid;
        int r;

        r = names_find_user(name, &uid, &gid);
        if (r == NAMES_E_NONE)
                return IDENTITY_E_UNKNOWN;
        return r < 0 ? r : identity_new(uid, gid, ret_identity);
}

/* ---- a worker's -------------------------------------------------------------- */

static _printf_(3, 4) int identity_fail(int error, char **ret_error, const char *format, ...) {
        va_list args;

        va_start(args, format);
        if (vasprintf(ret_error, format, args) < 0)
                *ret_error = NULL;
        va_end(args);
        return error;
}

static int identity_of_worker_user(const Config *config, Identity **ret_identity,
                                   char **ret_error) {
        const char *name = config->worker_user;
        int r = identity_by_name(name, ret_identity);

        if (r == IDENTITY_E_UNKNOWN)
                return identity_fail(-ENOENT, ret_error,
                                     "worker_user = %s: no such user; run systemd-sysusers, or set "
                                     "worker_user",
                                     name);
        if (r == IDENTITY_E_ROOT)
                return identity_fail(-EPERM, ret_error,
                                     "worker_user = %s: the user must not have uid or gid 0", name);
        if (r < 0)
                return identity_fail(r, ret_error, "worker_user = %s: %s", name, strerror(-r));
        return 0;
}

/*
 * The supervisor's uid: code in such a process could kill the supervisor. And those of the system's
 * services: their rights are worth more than a GPU, so the administrator says which of them use it.
 */
static int identity_check_uid(const Config *config, uid_t uid, const char *name, char **ret_error) {
        uid_t supervisor;
        gid_t gid;
        int r;

        r = names_find_user(config->supervisor_user, &supervisor, &gid);
        if (r < 0)
                return identity_fail(r, ret_error, "supervisor_user = %s: %s",
                                     config->supervisor_user, strerror(-r));
        if (r == 0 && uid == supervisor)
                return identity_fail(-EPERM, ret_error,
                                     "uid %u is supervisor_user, which may not run jobs", uid);
        if (uid <= IDENTITY_SYSTEM_MAX && config_limits(config, name, uid) == &config->limits)
                return identity_fail(-EPERM, ret_error,
                                     "%s (uid %u) is a system user: to let it run jobs, add a "
                                     "section [user %s] to gpuqd.conf",
                                     name ? name : "this", uid, name ? name : "UID");
        return 0;
}

static bool identity_is_among(gid_t gid, const gid_t *groups, int n_groups) {
        for (int i = 0; i < n_groups; i++)
                if (groups[i] == gid)
                        return true;
        return false;
}

/* Of the user's groups, @own among them, those that open the devices. */
static int identity_set_groups(Identity *identity, const char *name, gid_t own,
                               const gid_t *devices, int n_devices) {
        gid_t *groups;
        size_t n_groups;
        int n = 0, r;

        r = names_find_groups(name, own, &groups, &n_groups);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_groups; i++)
                if (groups[i] && identity_is_among(groups[i], devices, n_devices))
                        groups[n++] = groups[i];
        identity->groups = groups;
        identity->n_groups = n;
        return 0;
}

/* Without an answer the user's jobs still run, if the devices are open to everybody. */
static void identity_add_groups(Identity *identity, const char *name, gid_t own,
                                const gid_t *devices, int n_devices) {
        int r;

        if (!name || !n_devices)
                return;
        r = identity_set_groups(identity, name, own, devices, n_devices);
        if (r < 0)
                log_warning("the worker of uid %u runs without the groups of %s: %s",
                            (unsigned)identity->uid, name, strerror(-r));
}

static int identity_of_user(const Config *config, uid_t uid, const gid_t *devices, int n_devices,
                            Identity **identity, char **ret_error) {
        _cleanup_(freep) char *name = NULL;
        gid_t own = 0;
        int r;

        r = names_find_uid(uid, &name, &own);
        if (r < 0)
                log_warning("cannot look up uid %u: %s; its worker runs without its groups",
                            (unsigned)uid, strerror(-r));
        r = identity_check_uid(config, uid, name, ret_error);
        if (r < 0)
                return r;
        (*identity)->uid = uid;
        identity_add_groups(*identity, name, own, devices, n_devices);
        return 0;
}

int identity_of_worker(const Config *config, uid_t uid, Identity **ret_identity, char **ret_error) {
        _cleanup_(identity_freep) Identity *identity = NULL;
        gid_t devices[DRIVER_GROUPS_MAX];
        int n_devices, r;

        if (uid == (uid_t)-1)
                return identity_fail(-EPERM, ret_error, "a worker must not run as uid %u", uid);
        r = identity_of_worker_user(config, &identity, ret_error);
        if (r < 0)
                return r;
        n_devices = driver_groups("/dev", driver_choose(config->device), devices);
        if (uid == 0 || uid == identity->uid)
                identity_add_groups(identity, config->worker_user, identity->gid, devices,
                                    n_devices);
        else
                r = identity_of_user(config, uid, devices, n_devices, &identity, ret_error);
        if (r < 0)
                return r;

        *ret_identity = TAKE_PTR(identity);
        return 0;
}

/* ---- the service's users ------------------------------------------------------ */

static int identity_check_name(const char *key, const char *name, char **ret_error) {
        Identity *identity = NULL;
        int r;

        r = identity_by_name(name, &identity);
        identity_free(identity);
        if (r == 0)
                return 0;

        if (r == IDENTITY_E_UNKNOWN)
                r = asprintf(ret_error,
                             "%s = %s: no such user; run systemd-sysusers, set %s, or serve only "
                             "yourself with --private",
                             key, name, key);
        else if (r == IDENTITY_E_ROOT)
                r = asprintf(ret_error, "%s = %s: the user must not have uid or gid 0", key, name);
        else
                r = asprintf(ret_error, "%s = %s: %s", key, name, strerror(-r));
        if (r < 0)
                *ret_error = NULL;
        return -EINVAL;
}

/* A name that was looked up before is not again: while clients are served the keeper does not wait. */
static int identity_check_change(const char *key, const char *name, const char *before,
                                 char **ret_error) {
        return before && !strcmp(name, before) ? 0 : identity_check_name(key, name, ret_error);
}

int identity_check(const Config *config, const Config *before, char **ret_error) {
        int r;

        r = identity_check_change("supervisor_user", config->supervisor_user,
                                  before ? before->supervisor_user : NULL, ret_error);
        if (r < 0)
                return r;
        return identity_check_change("worker_user", config->worker_user,
                                     before ? before->worker_user : NULL, ret_error);
}

Identity *identity_free(Identity *identity) {
        if (!identity)
                return NULL;

        free(identity->groups);
        free(identity);
        return NULL;
}
