/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONFIG_LOAD_H
#define GPUQ_UTIL_CONFIG_LOAD_H

/*
 * Config loading
 *
 * Reads the files and the command line into a Config, and checks all of it.
 */

#include "util/config.h"

/**
 * config_load() - read a file, then conf.d beside it (FILE's folder/gpuqd.conf.d, *.conf by name)
 *
 * @path:      NULL: the installed /etc/gpuq/gpuqd.conf, which may be missing; a named file may
 *             not
 * @settings:  "key=value" from the command line, which override the files; NULL-terminated,
 *             may be NULL
 * @ret_error: on -EINVAL or a failed open, the caller's text: "FILE:LINE: …, allowed: …"
 *
 * Return: 0, or a negative errno.
 */
int config_load(const char *path, char *const *settings, Config **ret_config, char **ret_error);

#endif
