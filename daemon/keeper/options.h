/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_OPTIONS_H
#define GPUQ_KEEPER_OPTIONS_H

/*
 * Options
 *
 * gpuqd's command line, and the configuration that follows from it.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "keeper/words.h"
#include "util/config.h"

enum {
        _OPTIONS_E_SUCCESS,
        OPTIONS_E_DONE,  /* --help or --version: told, exit 0 */
        OPTIONS_E_USAGE, /* wrong use: told, exit 2 */
};

typedef struct Options {
        char *config;    /* path; NULL: the installed one */
        Words settings;  /* "key=value" */
        char *libexec;   /* folder of the private programs */
        bool is_private; /* serves our uid alone */
        bool check;
} Options;

/** options_parse() - Return: 0, OPTIONS_E_DONE, OPTIONS_E_USAGE or a negative errno. */
int options_parse(int argc, char **argv, Options **ret_options);
/** options_free() - NULL is fine. Return: NULL. */
Options *options_free(Options *options);

/**
 * options_load_config() - the configuration, with the paths of a private gpuqd
 *
 * In private mode the machine's own file is not read unless it is named, and
 * socket and cache_dir lie in the user's folders unless they are set; what was
 * chosen becomes part of @options->settings, and holds for every reload.
 *
 * Return: 0, or a negative errno with @ret_error, the caller's.
 */
int options_load_config(Options *options, Config **ret_config, char **ret_error);

#endif
