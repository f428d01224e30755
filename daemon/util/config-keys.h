/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONFIG_KEYS_H
#define GPUQ_UTIL_CONFIG_KEYS_H

/*
 * Config keys
 *
 * The table of all keys of gpuqd.conf, and how their values are parsed. Private to Config; the
 * tests and the example file are checked against it too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/config.h"

typedef struct ConfigKey ConfigKey;

struct ConfigKey {
        const char *name;
        const char *what;    /* completes "not …" */
        const char *allowed; /* completes "allowed: …" */
        const char *initial; /* default, as it would be written; NULL: computed */
        bool (*parse)(const ConfigKey *key, const char *value, void *place);
        char *(*format)(const void *place); /* what parse() reads as the same value again */
        size_t offset;                      /* in Config */
        uint64_t min;
        uint64_t max;
        bool user;  /* may stand in a [user NAME] section */
        bool fixed; /* a reload does not change it, only a restart of gpuqd */
};

/** config_key_at() - the table's entries in turn; NULL behind the last. */
const ConfigKey *config_key_at(size_t i);
/** config_key_group() - the group of a class, which only its section has; its place is a char *. */
const ConfigKey *config_key_group(void);
/** config_key_find() - by name, and fit for a user's section if @user. Return: NULL if there is none. */
const ConfigKey *config_key_find(const char *name, bool user);
/** config_key_names() - of all, or of those for users: "a, b, c", the caller's; NULL if out of memory. */
char *config_key_names(bool user);
/** config_key_parse() - read a value into its place. Return: false if it is none of those allowed. */
bool config_key_parse(const ConfigKey *key, const char *value, void *place);
/** config_key_format() - a value as it would be written, the caller's; NULL if out of memory. */
char *config_key_format(const ConfigKey *key, const void *place);
/** config_key_user_place() - where a user's own value of it is. */
void *config_key_user_place(const ConfigKey *key, ConfigUser *user);
/** config_key_set_defaults() - of all keys. Return: 0 or -ENOMEM. */
int config_key_set_defaults(Config *config);
/** config_trim() - take the blanks off both ends, in place. */
char *config_trim(char *text);

#endif
