/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings
 *
 * See settings.h. A reload reads and checks the whole configuration before anything changes.
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

static int hold_text(char **text, const char *old, bool *is_held) {
        char *copy = NULL;

        if (*text && old ? strcmp(*text, old) == 0 : *text == old)
                return 0;
        if (old) {
                copy = strdup(old);
                if (!copy)
                        return -ENOMEM;
        }
        free(*text);
        *text = copy;
        *is_held = true;
        return 0;
}

/*
 * What is bound, and what a supervisor has told others or leaves to the next one, which may
 * come at any time and takes it over: its devices, who shares a worker, and where the detached
 * jobs are and whose.
 */
static int settings_hold_fixed(const Settings *settings, Config *config) {
        const Config *old = settings->config;
        bool is_held = config->device != old->device || config->cpu.devices != old->cpu.devices ||
                       config->isolation_shared != old->isolation_shared;
        int r;

        r = hold_text(&config->socket, old->socket, &is_held);
        if (r >= 0)
                r = hold_text(&config->state_dir, old->state_dir, &is_held);
        if (r >= 0)
                r = hold_text(&config->supervisor_user, old->supervisor_user, &is_held);
        if (r < 0)
                return r;
        if (is_held)
                log_warning("changes of socket, device, cpu_devices, isolation, state_dir and "
                            "supervisor_user take effect when gpuqd is restarted");
        config->device = old->device;
        config->cpu.devices = old->cpu.devices;
        config->isolation_shared = old->isolation_shared;
        return 0;
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
        identity_check_names(config, LOG_WARNING);
        r = settings_hold_fixed(settings, config);
        if (r < 0)
                return r;
        r = config_seal(config, &fd);
        if (r < 0)
                return r;

        closep(&settings->fd);
        settings->fd = fd;
        config_free(settings->config);
        settings->config = TAKE_PTR(config);
        return 0;
}
