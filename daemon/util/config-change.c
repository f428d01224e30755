/* SPDX-License-Identifier: Apache-2.0 */
#include "util/config-change.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/config-keys.h"
#include "util/macro.h"

#define CHANGES_MAX 10u /* in a list */
#define VALUE_MAX   60u /* bytes of a value in a list; longer ones are cut */

/* A list that is being written. */
typedef struct Changes {
        FILE *stream;
        size_t n;
        bool failed;
} Changes;

static void changes_add(Changes *changes, const char *kind, const char *name, const char *format,
                        ...) _printf_(4, 5);

/* @kind, @name: of a section; NULL: [gpuqd]. */
static void changes_add(Changes *changes, const char *kind, const char *name, const char *format,
                        ...) {
        va_list args;

        if (++changes->n > CHANGES_MAX)
                return;
        if (changes->n > 1)
                fputs(", ", changes->stream);
        if (kind)
                fprintf(changes->stream, "[%s %s] ", kind, name);
        va_start(args, format);
        vfprintf(changes->stream, format, args);
        va_end(args);
}

static void changes_add_key(Changes *changes, const char *kind, const char *name, const char *key,
                            const char *from, const char *to) {
        changes_add(changes, kind, name, "%s %.*s%s -> %.*s%s", key, VALUE_MAX,
                    *from ? from : "(empty)", strlen(from) > VALUE_MAX ? "..." : "", VALUE_MAX,
                    *to ? to : "(empty)", strlen(to) > VALUE_MAX ? "..." : "");
}

/* Return: whether the two differ. */
static bool key_differs(Changes *changes, const ConfigKey *key, const void *from, const void *to,
                        char **ret_from, char **ret_to) {
        *ret_from = config_key_format(key, from);
        *ret_to = config_key_format(key, to);
        if (!*ret_from || !*ret_to) {
                changes->failed = true;
                return false;
        }
        return strcmp(*ret_from, *ret_to) != 0;
}

/* ---- sections -------------------------------------------------------------- */

static ConfigUser *section_find(ConfigUser *sections, const char *name) {
        while (sections && strcmp(sections->name, name) != 0)
                sections = sections->next;
        return sections;
}

/* Whether a section's value is that of [gpuqd]. */
static bool section_inherits(Changes *changes, const ConfigKey *key, const Config *config,
                             const char *value) {
        _cleanup_(freep) char *common = config_key_format(key, (const char *)config + key->offset);

        changes->failed |= !common;
        return common && strcmp(common, value) == 0;
}

static void section_compare_key(Changes *changes, const char *kind, const ConfigKey *key,
                                const Config *old, ConfigUser *from, const Config *config,
                                ConfigUser *to) {
        _cleanup_(freep) char *before = NULL, *after = NULL;

        if (key_differs(changes, key, config_key_user_place(key, from),
                        config_key_user_place(key, to), &before, &after) &&
            !(section_inherits(changes, key, old, before) &&
              section_inherits(changes, key, config, after)))
                changes_add_key(changes, kind, to->name, key->name, before, after);
}

/* The first class that matches applies. */
static void classes_compare_order(Changes *changes, const ConfigUser *olds,
                                  const ConfigUser *classes) {
        for (; olds && classes; olds = olds->next, classes = classes->next)
                if (strcmp(olds->name, classes->name) != 0) {
                        changes_add(changes, NULL, NULL, "order of the classes");
                        return;
                }
}

static void sections_compare(Changes *changes, ConfigKind number, const Config *old,
                             const Config *config) {
        ConfigUser *olds = old->sections[number], *sections = config->sections[number];
        const char *kind = config_kinds[number];
        size_t n_before = changes->n;
        const ConfigKey *key;

        for (ConfigUser *to = sections; to; to = to->next) {
                ConfigUser *from = section_find(olds, to->name);
                ConfigUser common = {.limits = old->limits};

                if (!from)
                        changes_add(changes, kind, to->name, "added");
                else if (to->group && strcmp(from->group, to->group) != 0)
                        changes_add_key(changes, kind, to->name, "group", from->group, to->group);
                for (size_t i = 0; (key = config_key_at(i)); i++)
                        if (key->user)
                                section_compare_key(changes, kind, key, old, from ? from : &common,
                                                    config, to);
        }
        for (ConfigUser *from = olds; from; from = from->next)
                if (!section_find(sections, from->name))
                        changes_add(changes, kind, from->name, "removed");
        if (number == CONFIG_CLASSES && changes->n == n_before)
                classes_compare_order(changes, olds, sections);
}

/* ---- the whole ------------------------------------------------------------- */

static int changes_open(Changes *changes, char **text, size_t *n_text) {
        *changes = (Changes){.stream = open_memstream(text, n_text)};
        return changes->stream ? 0 : -ENOMEM;
}

/* Return: 0 or -ENOMEM, with @text freed. */
static int changes_close(Changes *changes, char **text, char **ret_text) {
        if (changes->n > CHANGES_MAX)
                fprintf(changes->stream, " and %zu more", changes->n - CHANGES_MAX);
        if (fclose(changes->stream) != 0 || changes->failed) {
                free(*text);
                return -ENOMEM;
        }
        *ret_text = *text;
        return 0;
}

int config_describe_changes(const Config *old, const Config *config, char **ret_text) {
        const ConfigKey *key;
        Changes changes;
        char *text = NULL;
        size_t n_text;
        int r;

        r = changes_open(&changes, &text, &n_text);
        if (r < 0)
                return r;
        for (size_t i = 0; (key = config_key_at(i)); i++) {
                _cleanup_(freep) char *before = NULL, *after = NULL;

                if (key_differs(&changes, key, (const char *)old + key->offset,
                                (const char *)config + key->offset, &before, &after))
                        changes_add_key(&changes, NULL, NULL, key->name, before, after);
        }
        for (ConfigKind kind = 0; kind < _CONFIG_KIND_N; kind++)
                sections_compare(&changes, kind, old, config);
        return changes_close(&changes, &text, ret_text);
}

int config_keep_fixed(const Config *old, Config *config, char **ret_text) {
        const ConfigKey *key;
        Changes changes;
        char *text = NULL;
        size_t n_text;
        int r;

        r = changes_open(&changes, &text, &n_text);
        if (r < 0)
                return r;
        for (size_t i = 0; (key = config_key_at(i)); i++) {
                _cleanup_(freep) char *before = NULL, *after = NULL;
                void *place = (char *)config + key->offset;

                if (!key->fixed || !key_differs(&changes, key, (const char *)old + key->offset,
                                                place, &before, &after))
                        continue;
                changes_add_key(&changes, NULL, NULL, key->name, before, after);
                if (!config_key_parse(key, before, place))
                        changes.failed = true; /* only memory can lack: it was read before */
        }
        return changes_close(&changes, &text, ret_text);
}
