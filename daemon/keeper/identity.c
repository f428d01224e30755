/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity
 *
 * See identity.h. The name service may take its time; it is asked only when a
 * process is about to start.
 */

#include "keeper/identity.h"

#include <grp.h>
#include <string.h>
#include <stdio.h>

#include "util/config-keys.h"
#include "util/log.h"
#include "util/macro.h"
#include "util/names.h"

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

int identity_by_name(const char *name, bool with_groups, Identity **ret_identity) {
        uid_t uid;
        gid_t gid;
        int r;

        r = names_find_user(name, &uid, &gid);
        if (r == NAMES_E_NONE)
                return IDENTITY_E_UNKNOWN;
        if (r < 0)
                return r;
        return identity_new(uid, gid, with_groups ? name : NULL, ret_identity);
}

int identity_by_uid(uid_t uid, gid_t gid, Identity **ret_identity) {
        _cleanup_(freep) char *name = NULL;
        int r;

        /* Without an answer the user's jobs still run, with the group of its session alone. */
        r = names_find_uid(uid, &name, &gid);
        if (r < 0)
                log_warning("the worker of uid %u has no supplementary groups: %s", (unsigned)uid,
                            strerror(-r));
        return identity_new(uid, gid, name, ret_identity);
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

int identity_check(const Config *config, char **ret_error) {
        int r;

        r = identity_check_name("supervisor_user", config->supervisor_user, ret_error);
        if (r < 0)
                return r;
        return identity_check_name("worker_user", config->worker_user, ret_error);
}

/* ---- names in the configuration --------------------------------------------- */

/* Return: whether to go on: where a lookup failed, each further one may take as long. */
static bool name_check(int r, int level, const char *where, const char *what, unsigned *n_unknown) {
        if (r == NAMES_E_NONE) {
                log_full(level, NULL, "%s: this machine has no such %s", where, what);
                ++*n_unknown;
        } else if (r < 0) {
                log_warning("%s: cannot look up the %s: %s; further names were not checked", where,
                            what, strerror(-r));
        }
        return r >= 0;
}

static bool identity_check_sections(const Config *config, int level, unsigned *n_unknown) {
        bool go_on = true;
        char where[64];
        uid_t uid;
        gid_t gid;

        for (const ConfigUser *user = config->users; user && go_on; user = user->next) {
                if (user->name[strspn(user->name, "0123456789")] == '\0')
                        continue; /* a uid */
                snprintf(where, sizeof(where), "[user %s]", user->name);
                go_on = name_check(names_find_user(user->name, &uid, &gid), level, where, "user",
                                   n_unknown);
        }
        return go_on;
}

unsigned identity_check_names(const Config *config, int level) {
        _cleanup_(freep) char *groups = config->allow_groups ? strdup(config->allow_groups) : NULL;
        const char *own_admins =
                config_key_find("admin_group", false)->initial; /* may be missing */
        char where[280], *name, *rest = NULL;
        unsigned n_unknown = 0;
        bool go_on;
        gid_t gid;

        go_on = identity_check_sections(config, level, &n_unknown);
        for (name = groups ? strtok_r(groups, " \t", &rest) : NULL; name && go_on;
             name = strtok_r(NULL, " \t", &rest)) {
                snprintf(where, sizeof(where), "allow_groups = %s", name);
                go_on = name_check(names_find_group(name, &gid), level, where, "group", &n_unknown);
        }
        if (go_on && config->admin_group && strcmp(config->admin_group, own_admins) != 0) {
                snprintf(where, sizeof(where), "admin_group = %s", config->admin_group);
                name_check(names_find_group(config->admin_group, &gid), level, where, "group",
                           &n_unknown);
        }
        return n_unknown;
}

Identity *identity_free(Identity *identity) {
        if (!identity)
                return NULL;

        free(identity->groups);
        free(identity);
        return NULL;
}
