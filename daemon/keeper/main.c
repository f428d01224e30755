/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuqd, the keeper
 *
 * The only process of the service that may change its uid and start processes. It reads no input
 * of clients, and of workers only what they print, which it logs. It loads no driver, and leaves every
 * decision to the supervisor that it starts.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/identity.h"
#include "keeper/keeper.h"
#include "keeper/settings.h"
#include "util/config-names.h"
#include "util/footprint.h"
#include "util/human.h"
#include "util/log.h"

DEFINE_CLEANUP(Options, options_free)
DEFINE_CLEANUP(Config, config_free)
DEFINE_CLEANUP(Listener, listener_free)
DEFINE_CLEANUP(Keeper, keeper_free)

/* Descriptors 0 to 2 must be taken, or a socket becomes somebody's stderr. */
static int main_open_standard_fds(void) {
        int fd;

        do {
                fd = open("/dev/null", O_RDWR);
                if (fd < 0) {
                        log_error("/dev/null: %s", strerror(errno));
                        return -1;
                }
        } while (fd <= STDERR_FILENO);
        close(fd);
        return 0;
}

static int main_fail(int error, const char *text) {
        log_error("%s", text ? text : strerror(-error));
        return EXIT_FAILURE;
}

static Human main_bytes(uint64_t n_bytes) {
        return n_bytes == UINT64_MAX ? (Human){"unlimited"} : human_bytes(n_bytes);
}

static void main_print_footprint(const Config *config) {
        FootprintLine lines[FOOTPRINT_LINES];

        printf("memory of gpuqd that one user can take: %s\n",
               main_bytes(footprint_sum(&config->limits)).text);
        footprint_lines(&config->limits, lines);
        for (size_t i = 0; i < FOOTPRINT_LINES; i++)
                printf("  %10s  %s%s%s%s\n", main_bytes(lines[i].n_bytes).text, lines[i].what,
                       lines[i].key ? " (" : "", lines[i].key ? lines[i].key : "",
                       lines[i].key ? ")" : "");
        for (ConfigKind kind = 0; kind < CONFIG_SLURM; kind++) /* whose sections have no limits */
                for (const ConfigUser *user = config->sections[kind]; user; user = user->next)
                        printf("  [%s %s]: %s\n", config_kinds[kind], user->name,
                               main_bytes(footprint_sum(&user->limits)).text);
}

static bool main_check_names(const Config *config) {
        _cleanup_(config_names_freep) ConfigNames *names = NULL;
        int r;

        r = config_names_new(config, &names);
        if (r < 0) {
                main_fail(r, NULL);
                return false;
        }
        config_names_find(names);
        return config_names_log(names, LOG_ERR) == 0;
}

static int main_check(const Options *options, const Config *config) {
        if (!main_check_names(config))
                return EXIT_FAILURE;
        settings_warn(config);
        if (options->config)
                printf("%s: ok\n", options->config);
        else
                printf("configuration: ok\n");
        printf("cache_dir: %s\nstate_dir: %s\n", config->cache_dir,
               config->state_dir ? config->state_dir : "");
        if (config->libraries)
                printf("libraries: %s\n", config->libraries);
        main_print_footprint(config);
        return EXIT_SUCCESS;
}

static int main_serve(Options *options, Config **config) {
        _cleanup_(listener_freep) Listener *listener = NULL;
        _cleanup_(keeper_freep) Keeper *keeper = NULL;
        _cleanup_(freep) char *error = NULL;
        int r;

        if (!options->is_private) {
                r = identity_check(*config, NULL, &error);
                if (r < 0)
                        return main_fail(r, error);
        }
        r = listener_new((*config)->socket, options->is_private, &listener, &error);
        if (r < 0)
                return main_fail(r, error);
        r = keeper_new(options, *config, listener, &keeper);
        if (r < 0)
                return main_fail(r, NULL);

        *config = NULL; /* the keeper's now */
        r = keeper_run(keeper);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        _cleanup_(options_freep) Options *options = NULL;
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(freep) char *error = NULL;
        int r;

        log_open("gpuqd", LOG_INFO);
        if (main_open_standard_fds() < 0)
                return EXIT_FAILURE;
        umask(022);

        r = options_parse(argc, argv, &options);
        if (r == OPTIONS_E_DONE)
                return EXIT_SUCCESS;
        if (r == OPTIONS_E_USAGE)
                return 2;
        if (r < 0)
                return main_fail(r, NULL);

        r = options_load_config(options, &config, &error);
        if (r < 0)
                return main_fail(r, error);
        if (options->check)
                return main_check(options, config);
        return main_serve(options, &config);
}
