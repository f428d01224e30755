/* SPDX-License-Identifier: Apache-2.0 */
#include "util/config.h"

#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/macro.h"
#include "util/names.h"

const char *const config_kinds[_CONFIG_KIND_N] = {
        [CONFIG_USERS] = "user",
        [CONFIG_CLASSES] = "class",
        [CONFIG_SLURM] = "slurm",
};

static ConfigUser *config_free_section(ConfigUser *section) {
        if (!section)
                return NULL;

        free(section->name);
        free(section->group);
        free(section);
        return NULL;
}

ConfigUser *config_add(Config *config, ConfigKind kind, const char *name) {
        ConfigUser *section, **end = &config->sections[kind];

        for (; *end; end = &(*end)->next)
                if (strcmp((*end)->name, name) == 0)
                        return *end;

        section = calloc(1, sizeof(*section));
        if (!section)
                return NULL;
        section->name = strdup(name);
        if (!section->name)
                return config_free_section(section);

        section->gid = (gid_t)-1;
        section->limits = config->limits;
        *end = section;
        return section;
}

const char *config_devices_text(uint64_t devices, char text[static CONFIG_DEVICES_TEXT]) {
        size_t n = 0;

        if (devices == UINT64_MAX)
                return strcpy(text, "all");
        *text = '\0';
        for (unsigned i = 0; i < CONFIG_DEVICES_MAX; ++i)
                if (devices >> i & 1)
                        n += (size_t)snprintf(text + n, CONFIG_DEVICES_TEXT - n, "%s%u",
                                              n ? "," : "", i);
        return text;
}

static void config_free_sections(ConfigUser *section) {
        while (section) {
                ConfigUser *next = section->next;

                config_free_section(section);
                section = next;
        }
}

Config *config_free(Config *config) {
        if (!config)
                return NULL;

        for (ConfigKind kind = 0; kind < _CONFIG_KIND_N; kind++)
                config_free_sections(config->sections[kind]);
        free(config->cpu.broken);
        free(config->cache_dir);
        free(config->state_dir);
        free(config->slurm_dir);
        free(config->kernel_log);
        free(config->libraries);
        free(config->worker_user);
        free(config->supervisor_user);
        free(config->admission.allow_groups);
        free(config->admission.admin_group);
        free(config->admission.allowed);
        free(config->socket);
        free(config);
        return NULL;
}

static const ConfigUser *config_find_user(const ConfigUser *sections, const char *name, uid_t uid) {
        char number[16];

        snprintf(number, sizeof(number), "%u", (unsigned)uid);
        for (const ConfigUser *user = sections; user; user = user->next)
                if ((name && strcmp(user->name, name) == 0) || strcmp(user->name, number) == 0)
                        return user;
        return NULL;
}

static bool config_class_has(const ConfigUser *class, const gid_t *groups, size_t n_groups) {
        for (size_t i = 0; i < n_groups; ++i)
                if (class->gid != (gid_t)-1 && groups[i] == class->gid)
                        return true;
        return false;
}

const ConfigLimits *config_limits(const Config *config, const char *name, uid_t uid) {
        return config_limits_in(config, name, uid, NULL, 0);
}

const ConfigLimits *config_limits_in(const Config *config, const char *name, uid_t uid,
                                     const gid_t *groups, size_t n_groups) {
        const ConfigUser *user = config_find_user(config->sections[CONFIG_USERS], name, uid);

        if (user)
                return &user->limits;
        for (const ConfigUser *class = config->sections[CONFIG_CLASSES]; class; class = class->next)
                if (config_class_has(class, groups, n_groups))
                        return &class->limits;
        return &config->limits;
}

double config_weight(const Config *config, const ConfigLimits *limits, const char *name,
                     uid_t uid) {
        const ConfigUser *user = config_find_user(config->sections[CONFIG_SLURM], name, uid);

        return user ? user->limits.weight : limits->weight;
}
