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

static bool settings_warn_sms(const ConfigLimits *limits, const char *kind, const char *name) {
        char text[SMS_TEXT];

        if (sms_are_all(limits->sms))
                return false;
        log_warning("[%s%s%s] sms = %s has no effect: with isolation = shared all users share each "
                    "worker, whose kernels use all SMs",
                    kind, *name ? " " : "", name, sms_text(limits->sms, text));
        return true;
}

/* One line: a section that does not set the key has it from [gpuqd]. */
void settings_warn(const Config *config) {
        const ConfigUser *section;
        bool is_told;

        if (config->isolation.fence && !config->isolation.shared)
                log_warning("fence = yes has no effect without isolation = shared: no other user's "
                            "memory is in the context of a user's kernels");
        if (!config->isolation.shared)
                return;
        is_told = settings_warn_sms(&config->limits, "gpuqd", "");
        for (ConfigKind kind = 0; kind < _CONFIG_KIND_N; kind++)
                for (section = config->sections[kind]; section && !is_told; section = section->next)
                        is_told = settings_warn_sms(&section->limits, config_kinds[kind],
                                                    section->name);
}

int settings_init(Settings *settings, Options *options, Config *config) {
        int r;

        r = config_seal(config, &settings->fd);
        if (r < 0)
                return r;
        settings_warn(config);
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
        settings_warn(config);
        closep(&settings->fd);
        settings->fd = fd;
        config_free(settings->config);
        settings->config = TAKE_PTR(config);
        return 0;
}
