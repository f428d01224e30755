/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_SETTINGS_H
#define GPUQ_KEEPER_SETTINGS_H

/*
 * Settings
 *
 * The configuration in force, which is the last valid one: as a struct for the keeper
 * and as a sealed memfd for its supervisors.
 */

#include "keeper/options.h"

typedef struct Settings {
        Options *options; /* borrowed */
        Config *config;
        int fd; /* the same, sealed */
} Settings;

#define SETTINGS_NULL                                                                              \
        { .fd = -1 }

/** settings_init() - @config: consumed on success. Return: 0 or a negative errno. */
int settings_init(Settings *settings, Options *options, Config *config);
/** settings_warn() - log what a valid configuration says that has no effect. */
void settings_warn(const Config *config);
/** settings_finish() - the struct itself is the caller's memory. */
void settings_finish(Settings *settings);

/**
 * settings_reload() - read the files again, and log what changes; on failure the old configuration stays in force
 * @ret_error: on failure why, the caller's; NULL if out of memory
 *
 * Return: 0 or a negative errno.
 */
int settings_reload(Settings *settings, char **ret_error);

#endif
