/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings
 *
 * See settings.h. A reload reads and checks the whole before anything changes.
 */

#include "keeper/settings.h"

#include <string.h>

#include "keeper/identity.h"
#include "util/config-seal.h"
#include "util/log.h"
#include "util/macro.h"

DEFINE_CLEANUP(Config, config_free)

int settings_init(Settings *settings, Options *options, Config *config) {
        int r;

        r = config_seal(config, &settings->fd);
        if (r < 0)
                return r;
        settings->options = options;
        settings->config = config;
        return 0;
}

void settings_finish(Settings *settings) {
        closep(&settings->fd);
        settings->config = config_free(settings->config);
}

/* What the supervisor has been told, or what is bound, holds until the next start. */
static void settings_hold_fixed(const Settings *settings, Config *config) {
        const Config *old = settings->config;

        if (strcmp(config->socket, old->socket) != 0 || config->device != old->device ||
            config->cpu_devices != old->cpu_devices)
                log_warning("socket, device and cpu_devices stay as they were until a restart");
        config->device = old->device;
        config->cpu_devices = old->cpu_devices;
}

int settings_reload(Settings *settings, char **ret_error) {
        _cleanup_(config_freep) Config *config = NULL;
        int fd, r;

        *ret_error = NULL;
        r = options_load_config(settings->options, &config, ret_error);
        if (r < 0)
                return r;
        if (!settings->options->is_private) {
                r = identity_check(config, ret_error);
                if (r < 0)
                        return r;
        }
        settings_hold_fixed(settings, config);
        r = config_seal(config, &fd);
        if (r < 0)
                return r;

        closep(&settings->fd);
        settings->fd = fd;
        config_free(settings->config);
        settings->config = TAKE_PTR(config);
        return 0;
}
