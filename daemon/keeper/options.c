/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options
 *
 * See options.h.
 */

#include "keeper/options.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/config-load.h"

#define OPTIONS_NO_CONFIG "/dev/null"

DEFINE_CLEANUP(Options, options_free)

static const char options_help[] =
        "Usage: gpuqd [OPTION]...\n"
        "Share this machine's GPUs between all processes and users.\n"
        "\n"
        "  -c, --config FILE     read FILE and gpuqd.conf.d beside it, not /etc/gpuq/gpuqd.conf\n"
        "  -s, --set KEY=VALUE   set a key of section [gpuqd], overriding all files; repeatable\n"
        "      --socket PATH     the same as --set socket=PATH\n"
        "      --private         serve only you; the default unless started by root\n"
        "      --libexec DIR     directory of the private programs\n"
        "      --check           check the configuration and exit\n"
        "  -h, --help            show this help\n"
        "      --version         show the version\n"
        "\n"
        "See gpuqd(8) and gpuqd.conf(5).\n";

/* ---- paths ----------------------------------------------------------------- */

/* From / on: processes that we start run in another folder. */
static char *path_absolute(const char *path) {
        char folder[PATH_MAX], *absolute;

        if (*path == '/')
                return strdup(path);
        if (!getcwd(folder, sizeof(folder)))
                return NULL;
        return asprintf(&absolute, "%s/%s", folder, path) < 0 ? NULL : absolute;
}

/* An installed tree may be moved as a whole, so our own place comes before the one compiled in. */
static char *path_find_libexec(void) {
        _cleanup_(freep) char *program = NULL, *folder = NULL;
        char self[PATH_MAX], *slash;
        ssize_t n;

        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
                if (asprintf(&folder, "%.*s/../libexec/gpuq", (int)(slash - self), self) < 0)
                        return (folder = NULL);
                if (asprintf(&program, "%s/gpuqd-supervisor", folder) < 0)
                        return (program = NULL);
                if (access(program, X_OK) == 0)
                        return realpath(folder, NULL);
        }
        return strdup(GPUQ_LIBEXEC);
}

/* ---- command line ---------------------------------------------------------- */

static int options_usage(const char *format, const char *word) {
        fprintf(stderr, "gpuqd: ");
        fprintf(stderr, format, word);
        fprintf(stderr, "\nTry 'gpuqd --help'.\n");
        return OPTIONS_E_USAGE;
}

static int options_set_path(char **place, const char *path) {
        free(*place);
        *place = path_absolute(path);
        return *place ? 0 : -ENOMEM;
}

static int options_set_socket(Options *options, const char *path) {
        _cleanup_(freep) char *absolute = path_absolute(path);

        if (!absolute)
                return -ENOMEM;
        words_add(&options->settings, "socket=%s", absolute);
        return 0;
}

enum {
        OPTION_SOCKET = 256,
        OPTION_PRIVATE,
        OPTION_LIBEXEC,
        OPTION_CHECK,
        OPTION_VERSION,
};

static int options_take(Options *options, int option, const char *value) {
        switch (option) {
                case 'c':
                        return options_set_path(&options->config, value);
                case 's':
                        words_add(&options->settings, "%s", value);
                        return 0;
                case OPTION_SOCKET:
                        return options_set_socket(options, value);
                case OPTION_PRIVATE:
                        options->is_private = true;
                        return 0;
                case OPTION_LIBEXEC:
                        return options_set_path(&options->libexec, value);
                case OPTION_CHECK:
                        options->check = true;
                        return 0;
                case 'h':
                        fputs(options_help, stdout);
                        return OPTIONS_E_DONE;
                case OPTION_VERSION:
                        puts("gpuqd " GPUQ_VERSION);
                        return OPTIONS_E_DONE;
                default:
                        fprintf(stderr, "Try 'gpuqd --help'.\n");
                        return OPTIONS_E_USAGE;
        }
}

static int options_complete(Options *options) {
        /* A check by an ordinary user may be of the service's configuration. */
        if (getuid() != 0 && !options->check)
                options->is_private = true;
        if (!options->libexec)
                options->libexec = path_find_libexec();
        return options->libexec && !options->settings.failed ? 0 : -ENOMEM;
}

int options_parse(int argc, char **argv, Options **ret_options) {
        static const struct option table[] = {
                {"config", required_argument, NULL, 'c'},
                {"set", required_argument, NULL, 's'},
                {"socket", required_argument, NULL, OPTION_SOCKET},
                {"private", no_argument, NULL, OPTION_PRIVATE},
                {"libexec", required_argument, NULL, OPTION_LIBEXEC},
                {"check", no_argument, NULL, OPTION_CHECK},
                {"help", no_argument, NULL, 'h'},
                {"version", no_argument, NULL, OPTION_VERSION},
                {},
        };
        _cleanup_(options_freep) Options *options = NULL;
        int option, r;

        options = calloc(1, sizeof(*options));
        if (!options)
                return -ENOMEM;

        while ((option = getopt_long(argc, argv, "c:s:h", table, NULL)) >= 0) {
                r = options_take(options, option, optarg);
                if (r)
                        return r;
        }
        if (optind < argc)
                return options_usage("unexpected argument '%s'", argv[optind]);
        r = options_complete(options);
        if (r < 0)
                return r;

        *ret_options = TAKE_PTR(options);
        return 0;
}

Options *options_free(Options *options) {
        if (!options)
                return NULL;

        free(options->libexec);
        words_finish(&options->settings);
        free(options->config);
        free(options);
        return NULL;
}

/* ---- configuration --------------------------------------------------------- */

static int options_fail(char **ret_error, const char *text) {
        *ret_error = strdup(text);
        return -EINVAL;
}

static int options_set_private_socket(Options *options, char **ret_error) {
        const char *folder = getenv("XDG_RUNTIME_DIR");

        if (!folder || *folder != '/')
                return options_fail(ret_error, "no path for the socket: XDG_RUNTIME_DIR is not "
                                               "set; choose one with --socket PATH");
        words_add(&options->settings, "socket=%s/gpuq.sock", folder);
        return 0;
}

static int options_set_private_cache(Options *options, char **ret_error) {
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

        if (cache && *cache == '/')
                words_add(&options->settings, "cache_dir=%s/gpuq", cache);
        else if (home && *home == '/')
                words_add(&options->settings, "cache_dir=%s/.cache/gpuq", home);
        else
                return options_fail(ret_error, "no folder for the compile cache: HOME is not set; "
                                               "choose one with --set cache_dir=PATH");
        return 0;
}

/* A place that is not there costs detached jobs alone. */
static void options_set_private_state(Options *options) {
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

        if (state && *state == '/')
                words_add(&options->settings, "state_dir=%s/gpuqd", state);
        else if (home && *home == '/')
                words_add(&options->settings, "state_dir=%s/.local/state/gpuqd", home);
        else
                words_add(&options->settings, "state_dir=");
}

/* The service's own paths are no good in private mode: they stand for "not set". */
static int options_set_private_paths(Options *options, const Config *config, char **ret_error) {
        int r;

        if (strcmp(config->socket, "/run/gpuq/gpuqd.sock") == 0) {
                r = options_set_private_socket(options, ret_error);
                if (r < 0)
                        return r;
        }
        if (strcmp(config->cache_dir, "/var/cache/gpuq") == 0) {
                r = options_set_private_cache(options, ret_error);
                if (r < 0)
                        return r;
        }
        if (config->state_dir && strcmp(config->state_dir, "/var/lib/gpuqd") == 0)
                options_set_private_state(options);
        return options->settings.failed ? -ENOMEM : 0;
}

static const char *options_config_path(const Options *options) {
        if (!options->config && options->is_private)
                return OPTIONS_NO_CONFIG;
        return options->config;
}

int options_load_config(Options *options, Config **ret_config, char **ret_error) {
        Config *config = NULL;
        size_t n_before = options->settings.n_items;
        int r;

        r = config_load(options_config_path(options), options->settings.items, &config, ret_error);
        if (r < 0)
                return r;

        if (options->is_private) {
                r = options_set_private_paths(options, config, ret_error);
                /* A check starts nothing, so it needs no place for anything. */
                if (r == -EINVAL && options->check) {
                        free(TAKE_PTR(*ret_error));
                        r = 0;
                }
                if (r == 0 && options->settings.n_items > n_before) {
                        config = config_free(config);
                        r = config_load(options_config_path(options), options->settings.items,
                                        &config, ret_error);
                }
                if (r < 0) {
                        config_free(config);
                        return r;
                }
        }

        *ret_config = config;
        return 0;
}
