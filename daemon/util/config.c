/* SPDX-License-Identifier: Apache-2.0 */
#include "util/config.h"

#include <stdio.h>
#include <string.h>

#include "util/macro.h"

ConfigUser *config_add_user(Config *config, const char *name) {
        ConfigUser *user, **end = &config->users;

        for (; *end; end = &(*end)->next)
                if (strcmp((*end)->name, name) == 0)
                        return *end;

        user = calloc(1, sizeof(*user));
        if (!user)
                return NULL;
        user->name = strdup(name);
        if (!user->name) {
                free(user);
                return NULL;
        }

        user->limits = config->limits;
        *end = user;
        return user;
}

Config *config_free(Config *config) {
        if (!config)
                return NULL;

        while (config->users) {
                ConfigUser *user = config->users;

                config->users = user->next;
                free(user->name);
                free(user);
        }
        free(config->cpu_broken);
        free(config->cache_dir);
        free(config->state_dir);
        free(config->kernel_log);
        free(config->worker_user);
        free(config->supervisor_user);
        free(config->admin_group);
        free(config->allow_groups);
        free(config->socket);
        free(config);
        return NULL;
}

const ConfigLimits *config_limits(const Config *config, const char *name, uid_t uid) {
        char number[16];

        snprintf(number, sizeof(number), "%u", (unsigned)uid);
        for (const ConfigUser *user = config->users; user; user = user->next)
                if ((name && strcmp(user->name, name) == 0) || strcmp(user->name, number) == 0)
                        return &user->limits;
        return &config->limits;
}
