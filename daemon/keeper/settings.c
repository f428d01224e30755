/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings
 *
 * See settings.h. A reload reads and checks the whole configuration before anything changes.
 */

#include "keeper/settings.h"

#include "keeper/identity.h"
#include "util/config-change.h"
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

/*
 * What is bound, and what a supervisor has told others or leaves to the next one, which may
 * come at any time and takes it over: its devices, who shares a worker, and where the detached
 * jobs are and whose.
 */
static int settings_hold_fixed(const Settings *settings, Config *config) {
        _cleanup_(freep) char *text = NULL;
        int r;

        r = config_keep_fixed(settings->config, config, &text);
        if (r >= 0 && *text)
                log_warning("changes that take effect when gpuqd is restarted: %s", text);
        return r;
}

int settings_reload(Settings *settings, char **ret_error) {
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(freep) char *changes = NULL;
        int fd, r;

        *ret_error = NULL;
        r = options_load_config(settings->options, &config, ret_error);
        if (r < 0)
                return r;
        if (!settings->options->is_private) {
                r = identity_check(config, settings->config, ret_error);
                if (r < 0)
                        return r;
        }
        r = settings_hold_fixed(settings, config);
        if (r < 0)
                return r;
        r = config_describe_changes(settings->config, config, &changes);
        if (r < 0)
                return r;
        r = config_seal(config, &fd);
        if (r < 0)
                return r;

        log_info("configuration reloaded: %s", *changes ? changes : "nothing changed");
        closep(&settings->fd);
        settings->fd = fd;
        config_free(settings->config);
        settings->config = TAKE_PTR(config);
        return 0;
}
