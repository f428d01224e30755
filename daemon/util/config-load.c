/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Config loading
 *
 * The files are read into memory and gone through twice, [gpuqd]
 * first, so that a [user NAME] or [class NAME] section starts from the defaults
 * of all files, in whatever order they stand.
 */

#include "util/config-load.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <ini.h>

#include "util/config-keys.h"
#include "util/macro.h"

#define CONFIG_PATH     "/etc/gpuq/gpuqd.conf"
#define CONFIG_FILE_MAX (1u << 20) /* bytes of one file */
#define CONFIG_LINE_MAX 190        /* bytes; inih reads 200 with its line end */
#define CONFIG_NAME_MAX 40         /* bytes of a user's name; inih keeps 49 of a section's */

typedef enum ConfigPass {
        PASS_GPUQD,
        PASS_USERS,
} ConfigPass;

/* One file or --set list while it is read into a Config. */
typedef struct Parser {
        Config *config;
        ConfigPass pass;
        const char *file;
        const char *rest; /* of the text */
        unsigned line;
        char *error; /* the first one */
        unsigned error_line;
} Parser;

DEFINE_CLEANUP(Config, config_free)

/* ---- errors ---------------------------------------------------------------- */

static void parser_fail(Parser *parser, const char *format, ...) _printf_(2, 3);

static void parser_fail(Parser *parser, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        va_list args;
        int r;

        if (parser->error)
                return;

        va_start(args, format);
        r = vasprintf(&text, format, args);
        va_end(args);
        if (r < 0) {
                text = NULL;
                return;
        }

        if (parser->line)
                r = asprintf(&parser->error, "%s:%u: %s", parser->file, parser->line, text);
        else
                r = asprintf(&parser->error, "%s %s", parser->file, text);
        if (r < 0)
                parser->error = NULL;
        parser->error_line = parser->line;
}

/* ---- sections and keys ----------------------------------------------------- */

/* The NAME of "KIND NAME", or NULL. */
static const char *section_name(const char *section, const char *kind) {
        size_t n = strlen(kind);

        if (strncmp(section, kind, n) != 0 || !isblank((unsigned char)section[n]))
                return NULL;
        section += n + strspn(section + n, " \t");
        return *section ? section : NULL;
}

/* Of "KIND NAME". Return: _CONFIG_KIND_N: it is [gpuqd], or wrong. */
static ConfigKind section_kind(const char *section, const char **ret_name) {
        ConfigKind kind = 0;

        while (kind < _CONFIG_KIND_N && !(*ret_name = section_name(section, config_kinds[kind])))
                kind++;
        return kind;
}

static bool section_is_right(const char *section) {
        const char *name;

        if (section_kind(section, &name) < _CONFIG_KIND_N)
                return strlen(name) <= CONFIG_NAME_MAX && !strpbrk(name, " \t");
        return strcmp(section, "gpuqd") == 0;
}

/* Where the key's value goes; NULL: out of memory. */
static void *parser_place(Parser *parser, ConfigKind kind, const char *name, const ConfigKey *key) {
        ConfigUser *place;

        if (kind == _CONFIG_KIND_N)
                return (char *)parser->config + key->offset;

        place = config_add(parser->config, kind, name);
        if (!place)
                return NULL;
        return key == config_key_group() ? (void *)&place->group
                                         : config_key_user_place(key, place);
}

static const ConfigKey *section_find_key(ConfigKind kind, const char *name) {
        if (kind == CONFIG_CLASSES && strcmp(name, config_key_group()->name) == 0)
                return config_key_group();
        if (kind == CONFIG_SLURM && strcmp(name, "weight") != 0)
                return NULL;
        return config_key_find(name, kind < _CONFIG_KIND_N);
}

static void parser_fail_key(Parser *parser, ConfigKind kind, const char *name) {
        _cleanup_(freep) char *names =
                kind == CONFIG_SLURM ? strdup("weight") : config_key_names(kind < _CONFIG_KIND_N);
        char where[48] = "";

        if (kind < _CONFIG_KIND_N)
                snprintf(where, sizeof(where), " in a [%s NAME] section", config_kinds[kind]);
        parser_fail(parser, "unknown key %s%s; allowed: %s%s", name, where,
                    kind == CONFIG_CLASSES ? "group, " : "", names ? names : "");
}

/* @of: the section's name */
static int parser_assign(Parser *parser, ConfigKind kind, const char *of, const char *name,
                         const char *value) {
        const ConfigKey *key = section_find_key(kind, name);
        void *place;

        if (!key) {
                parser_fail_key(parser, kind, name);
                return -EINVAL;
        }

        place = parser_place(parser, kind, of, key);
        if (!place)
                return -ENOMEM;
        if (!config_key_parse(key, value, place)) {
                parser_fail(parser, "%s = %s: not %s; allowed: %s", name, value, key->what,
                            key->allowed);
                return -EINVAL;
        }
        return 0;
}

/* ---- one file -------------------------------------------------------------- */

static void parser_check_section(Parser *parser, const char *line) {
        char section[CONFIG_LINE_MAX + 1];
        size_t n = strcspn(line + 1, "]");

        if (line[1 + n] != ']') {
                parser_fail(parser, "missing ] at the end of the section: %s", line);
                return;
        }
        snprintf(section, sizeof(section), "%.*s", (int)n, line + 1);
        if (!section_is_right(section))
                parser_fail(parser,
                            "unknown section [%s]; allowed: [gpuqd], [user NAME], [class NAME]",
                            section);
}

/*
 * inih's reader, in place of fgets(). It counts lines, which inih does not report, and removes
 * blanks at their beginning, which inih would take for a continuation of the previous value.
 */
static char *parser_read_line(char *buffer, int n_buffer, void *stream) {
        Parser *parser = stream;
        const char *line = parser->rest;
        size_t n_line = strcspn(line, "\n");

        if (!*line)
                return NULL;
        parser->rest += n_line + (line[n_line] == '\n');
        parser->line++;

        for (; n_line && isspace((unsigned char)*line); line++)
                n_line--;
        while (n_line && isspace((unsigned char)line[n_line - 1]))
                n_line--;
        if (n_line && strchr("#;", *line))
                n_line = 0;
        if (n_line > CONFIG_LINE_MAX || (int)n_line + 2 > n_buffer) {
                parser_fail(parser, "the line is too long; allowed: %u bytes", CONFIG_LINE_MAX);
                n_line = 0;
        }

        memcpy(buffer, line, n_line);
        buffer[n_line] = '\0';
        if (*buffer == '[')
                parser_check_section(parser, buffer);
        memcpy(buffer + n_line, "\n", 2);
        return buffer;
}

static int parser_on_value(void *userdata, const char *section, const char *name,
                           const char *value) {
        Parser *parser = userdata;
        ConfigKind kind;
        const char *of;

        if (parser->error)
                return 0;
        if (!*section) {
                parser_fail(parser,
                            "%s is before any section; allowed: [gpuqd], [user NAME], [class NAME]",
                            name);
                return 0;
        }
        kind = section_kind(section, &of);
        if ((kind < _CONFIG_KIND_N ? PASS_USERS : PASS_GPUQD) != parser->pass)
                return 1;
        return parser_assign(parser, kind, of, name, value) == 0;
}

/* The whole text; the caller's. */
static int config_read_file(const char *path, char **ret_text) {
        _cleanup_(closep) int fd = -1;
        _cleanup_(freep) char *text = NULL;
        size_t n_text = 0;
        ssize_t n;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        text = malloc(CONFIG_FILE_MAX + 1);
        if (!text)
                return -ENOMEM;

        while ((n = read(fd, text + n_text, CONFIG_FILE_MAX + 1 - n_text)) > 0) {
                n_text += (size_t)n;
                if (n_text > CONFIG_FILE_MAX)
                        return -EFBIG;
        }
        if (n < 0)
                return -errno;

        text[n_text] = '\0';
        if (strlen(text) != n_text)
                return -EILSEQ;
        *ret_text = TAKE_PTR(text);
        return 0;
}

static int config_parse_text(Config *config, ConfigPass pass, const char *file, const char *text,
                             char **ret_error) {
        Parser parser = {.config = config, .pass = pass, .file = file, .rest = text};
        int r;

        r = ini_parse_stream(parser_read_line, &parser, parser_on_value, &parser);
        if (r < 0)
                return -ENOMEM;
        if (r > 0 && (!parser.error || (unsigned)r < parser.error_line)) {
                free(TAKE_PTR(parser.error));
                parser.line = (unsigned)r;
                parser_fail(&parser, "syntax error; allowed: [SECTION], KEY = VALUE, # COMMENT");
        }
        if (parser.error) {
                *ret_error = parser.error;
                return -EINVAL;
        }
        return r ? -ENOMEM : 0;
}

static int config_parse_file(Config *config, ConfigPass pass, const char *path, bool optional,
                             char **ret_error) {
        _cleanup_(freep) char *text = NULL;
        int r;

        r = config_read_file(path, &text);
        if (r == -ENOENT && optional)
                return 0;
        if (r < 0) {
                if (asprintf(ret_error, "%s: %s", path, strerror(-r)) < 0)
                        return -ENOMEM;
                return r;
        }
        return config_parse_text(config, pass, path, text, ret_error);
}

/* ---- conf.d ---------------------------------------------------------------- */

static int config_is_fragment(const struct dirent *entry) {
        const char *dot = strrchr(entry->d_name, '.');

        return entry->d_name[0] != '.' && dot && strcmp(dot, ".conf") == 0;
}

static int config_parse_folder(Config *config, ConfigPass pass, const char *folder,
                               char **ret_error) {
        struct dirent **entries = NULL;
        int n, r = 0;

        n = scandir(folder, &entries, config_is_fragment, alphasort);
        if (n < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;

        for (int i = 0; i < n; i++) {
                _cleanup_(freep) char *path = NULL;

                if (r == 0)
                        r = asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0 ? -ENOMEM : 0;
                if (r == 0)
                        r = config_parse_file(config, pass, path, false, ret_error);
                free(entries[i]);
        }
        free(entries);
        return r;
}

/* ---- the whole ------------------------------------------------------------- */

static int config_parse_settings(Config *config, char *const *settings, char **ret_error) {
        Parser parser = {.config = config, .file = "--set"};
        int r = 0;

        for (; r == 0 && settings && *settings; settings++) {
                _cleanup_(freep) char *name = strdup(*settings);
                char *value = name ? strchr(name, '=') : NULL;

                if (!name)
                        return -ENOMEM;
                if (!value) {
                        parser_fail(&parser, "%s has no value; allowed: KEY=VALUE", name);
                        r = -EINVAL;
                        break;
                }
                *value = '\0';
                r = parser_assign(&parser, _CONFIG_KIND_N, NULL, config_trim(name),
                                  config_trim(value + 1));
        }

        if (parser.error)
                *ret_error = parser.error;
        return r;
}

static int config_parse_pass(Config *config, ConfigPass pass, const char *path, bool optional,
                             char **ret_error) {
        _cleanup_(freep) char *folder = NULL;
        const char *slash = strrchr(path, '/');
        int r;

        r = config_parse_file(config, pass, path, optional, ret_error);
        if (r < 0)
                return r;
        if (asprintf(&folder, "%.*sgpuqd.conf.d", slash ? (int)(slash + 1 - path) : 0, path) < 0)
                return -ENOMEM;
        return config_parse_folder(config, pass, folder, ret_error);
}

/* What Slurm's prolog and epilog write. */
static int config_parse_slurm(Config *config, char **ret_error) {
        _cleanup_(freep) char *path = NULL;

        if (!config->slurm_dir || !*config->slurm_dir)
                return 0;
        if (asprintf(&path, "%s/weights.conf", config->slurm_dir) < 0)
                return -ENOMEM;
        return config_parse_file(config, PASS_USERS, path, true, ret_error);
}

static int config_check_classes(const Config *config, const char *path, char **ret_error) {
        const ConfigUser *class = config->sections[CONFIG_CLASSES];

        while (class && class->group)
                class = class->next;
        if (!class)
                return 0;
        if (asprintf(ret_error, "%s: [class %s] has no group; add group = NAME", path,
                     class->name) < 0)
                return -ENOMEM;
        return -EINVAL;
}

int config_load(const char *path, char *const *settings, Config **ret_config, char **ret_error) {
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(freep) char *error = NULL;
        bool optional = !path;
        int r;

        config = calloc(1, sizeof(*config));
        if (!config)
                return -ENOMEM;
        r = config_key_set_defaults(config);
        if (r < 0)
                return r;

        r = config_parse_pass(config, PASS_GPUQD, path ? path : CONFIG_PATH, optional, &error);
        if (r == 0)
                r = config_parse_settings(config, settings, &error);
        if (r == 0)
                r = config_parse_pass(config, PASS_USERS, path ? path : CONFIG_PATH, optional,
                                      &error);
        if (r == 0)
                r = config_parse_slurm(config, &error);
        if (r == 0)
                r = config_check_classes(config, path ? path : CONFIG_PATH, &error);
        if (r < 0) {
                if (!error)
                        error = strdup(strerror(-r));
                *ret_error = TAKE_PTR(error);
                return r;
        }

        *ret_config = TAKE_PTR(config);
        return 0;
}
