/* SPDX-License-Identifier: Apache-2.0 */
#include "util/config-names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "util/config-keys.h"
#include "util/log.h"
#include "util/list.h"
#include "util/names.h"

typedef struct ConfigName {
        bool is_user;
        bool may_miss; /* nobody chose it */
        char *name;
        char *where; /* in the configuration */
        int r;       /* of the lookup; -EAGAIN: not made */
        gid_t gid;
        struct ConfigName *next;
} ConfigName;

struct ConfigNames {
        ConfigName *first;
        ConfigName **end;
};

/* ---- which names ------------------------------------------------------------- */

static void config_name_free(ConfigName *name) {
        free(name->name);
        free(name->where);
        free(name);
}

ConfigNames *config_names_free(ConfigNames *names) {
        ConfigName *name, *next;

        for (name = names ? names->first : NULL; name; name = next) {
                next = name->next;
                config_name_free(name);
        }
        free(names);
        return NULL;
}

_printf_(4, 5) static int names_add(ConfigNames *names, bool is_user, const char *text,
                                    const char *where, ...) {
        ConfigName *name;
        va_list args;
        int r;

        name = calloc(1, sizeof(*name));
        if (!name)
                return -ENOMEM;
        va_start(args, where);
        r = vasprintf(&name->where, where, args);
        va_end(args);
        if (r < 0)
                name->where = NULL;
        name->name = strdup(text);
        if (!name->where || !name->name) {
                config_name_free(name);
                return -ENOMEM;
        }
        name->is_user = is_user;
        name->r = -EAGAIN;
        name->gid = (gid_t)-1;
        *names->end = name;
        names->end = &name->next;
        return 0;
}

/* Users last: who they are matters to the log alone. */
static int names_add_sections(ConfigNames *names, const Config *config) {
        int r = 0;

        for (const ConfigUser *class = config->sections[CONFIG_CLASSES]; class && r == 0;
             class = class->next)
                r = names_add(names, false, class->group, "[class %s], group = %s", class->name,
                              class->group);
        for (const ConfigUser *user = config->sections[CONFIG_USERS]; user && r == 0;
             user = user->next)
                if (user->name[strspn(user->name, "0123456789")] != '\0') /* not a uid */
                        r = names_add(names, true, user->name, "[user %s]", user->name);
        return r;
}

static int names_add_allowed(ConfigNames *names, const char *list) {
        _cleanup_(freep) char *groups = strdup(list);
        char *name, *rest = NULL;
        int r = groups ? 0 : -ENOMEM;

        for (name = groups ? strtok_r(groups, " \t", &rest) : NULL; name && r == 0;
             name = strtok_r(NULL, " \t", &rest))
                r = names_add(names, false, name, "allow_groups = %s", name);
        return r;
}

static int names_add_admins(ConfigNames *names, const char *group) {
        const char *own = config_key_find("admin_group", false)->initial;
        int r;

        r = names_add(names, false, group, "admin_group = %s", group);
        if (r == 0)
                container_of(names->end, ConfigName, next)->may_miss = strcmp(group, own) == 0;
        return r;
}

int config_names_new(const Config *config, ConfigNames **ret_names) {
        _cleanup_(config_names_freep) ConfigNames *names = NULL;
        int r;

        names = calloc(1, sizeof(*names));
        if (!names)
                return -ENOMEM;
        names->end = &names->first;
        r = config->admission.admin_group ? names_add_admins(names, config->admission.admin_group)
                                          : 0;
        if (r == 0 && config->admission.allow_groups)
                r = names_add_allowed(names, config->admission.allow_groups);
        if (r == 0)
                r = names_add_sections(names, config);
        if (r < 0)
                return r;
        *ret_names = TAKE_PTR(names);
        return 0;
}

/* ---- the system's answers ------------------------------------------------------ */

void config_names_find(ConfigNames *names) {
        ConfigName *name;
        uid_t uid;

        for (name = names->first; name; name = name->next) {
                name->r = name->is_user ? names_find_user(name->name, &uid, &name->gid)
                                        : names_find_group(name->name, &name->gid);
                if (name->r != 0)
                        name->gid = (gid_t)-1;
                if (name->r < 0)
                        return;
        }
}

static const ConfigName *names_group(const ConfigNames *names, const char *group, size_t n_group) {
        const ConfigName *name;

        for (name = names->first; name; name = name->next)
                if (!name->is_user && strncmp(name->name, group, n_group) == 0 &&
                    name->name[n_group] == '\0')
                        return name;
        return NULL;
}

void config_names_inherit(ConfigNames *names, const ConfigNames *earlier) {
        const ConfigName *old;

        for (ConfigName *name = names->first; name; name = name->next) {
                old = name->is_user ? NULL : names_group(earlier, name->name, strlen(name->name));
                if (name->r < 0 && old && old->r >= 0) {
                        name->r = old->r;
                        name->gid = old->gid;
                }
        }
}

bool config_names_have_failed(const ConfigNames *names) {
        for (const ConfigName *name = names->first; name; name = name->next)
                if (name->r < 0)
                        return true;
        return false;
}

unsigned config_names_log(const ConfigNames *names, int level) {
        unsigned n_missing = 0;

        for (const ConfigName *name = names->first; name; name = name->next) {
                const char *what = name->is_user ? "user" : "group";

                if (name->r < 0) {
                        log_warning("%s: cannot look up the %s: %s; further names were not checked",
                                    name->where, what, strerror(-name->r));
                        break;
                }
                if (name->r == NAMES_E_NONE && !name->may_miss) {
                        log_full(level, NULL, "%s: this machine has no such %s", name->where, what);
                        n_missing++;
                }
        }
        return n_missing;
}

/* ---- to a configuration, which may be another one ------------------------------ */

static gid_t names_gid(const ConfigNames *names, const char *group, size_t n_group,
                       bool *is_unknown) {
        const ConfigName *name = names_group(names, group, n_group);

        *is_unknown = *is_unknown || !name || name->r < 0;
        return name ? name->gid : (gid_t)-1;
}

static int names_apply_allowed(const ConfigNames *names, ConfigAdmission *admission) {
        const char *list = admission->allow_groups;
        gid_t *allowed, gid;
        size_t n_text;

        allowed = calloc(strlen(list) + 1, sizeof(*allowed)); /* more than it has names */
        if (!allowed)
                return -ENOMEM;
        free(admission->allowed);
        admission->allowed = allowed;
        admission->n_allowed = 0;
        for (list += strspn(list, " \t"); *list; list += n_text, list += strspn(list, " \t")) {
                n_text = strcspn(list, " \t");
                gid = names_gid(names, list, n_text, &admission->is_unknown);
                if (gid != (gid_t)-1)
                        allowed[admission->n_allowed++] = gid;
        }
        return 0;
}

int config_names_apply(const ConfigNames *names, Config *config) {
        ConfigAdmission *admission = &config->admission;
        bool is_unknown = false;

        for (ConfigUser *class = config->sections[CONFIG_CLASSES]; class; class = class->next)
                class->gid = names_gid(names, class->group, strlen(class->group), &is_unknown);
        admission->is_unknown = false;
        admission->admins = (gid_t)-1;
        if (admission->admin_group)
                admission->admins =
                        names_gid(names, admission->admin_group, strlen(admission->admin_group),
                                  &admission->is_unknown);
        return admission->allow_groups ? names_apply_allowed(names, admission) : 0;
}
