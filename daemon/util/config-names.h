/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONFIG_NAMES_H
#define GPUQ_UTIL_CONFIG_NAMES_H

/*
 * Config names
 *
 * The users and groups that a configuration names, and what the system says of them. It is an object
 * of its own, so that a thread can ask while the configuration is in use or replaced: a name service on
 * the network may be slow or never answer.
 */

#include <stdbool.h>

#include "util/config.h"
#include "util/macro.h"

typedef struct ConfigNames ConfigNames;

/** config_names_new() - of this configuration; none is looked up yet. Return: 0, or -ENOMEM. */
int config_names_new(const Config *config, ConfigNames **ret_names);
/** config_names_free() - NULL is fine. Return: NULL. */
ConfigNames *config_names_free(ConfigNames *names);
DEFINE_CLEANUP(ConfigNames, config_names_free)
/** config_names_find() - look them up, in any thread. After a lookup that failed no further name is: each might take as long. */
void config_names_find(ConfigNames *names);
/** config_names_inherit() - of groups whose lookup failed, what the system said of them @earlier holds. */
void config_names_inherit(ConfigNames *names, const ConfigNames *earlier);
/** config_names_have_failed() - a lookup failed, or was not made. */
bool config_names_have_failed(const ConfigNames *names);
/** config_names_log() - those that the machine does not have. Return: how many there are. */
unsigned config_names_log(const ConfigNames *names, int level);
/**
 * config_names_apply() - to classes and admission; a group that is not among @names is unknown
 *
 * Return: 0, or -ENOMEM.
 */
int config_names_apply(const ConfigNames *names, Config *config);

#endif
