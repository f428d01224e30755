/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed configuration
 *
 * The format is not that of the files, because a value from the command line may be longer than
 * their lines, and may contain characters that begin a comment there.
 */

#include "util/config-seal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/config-keys.h"
#include "util/macro.h"
#include "util/write_all.h"

DEFINE_CLEANUP(Config, config_free)

/* ---- write ----------------------------------------------------------------- */

static void seal_put(FILE *stream, const char *text) {
        fwrite(text, 1, strlen(text) + 1, stream);
}

static int seal_put_key(FILE *stream, const ConfigKey *key, const void *place) {
        _cleanup_(freep) char *value = config_key_format(key, place);

        if (!value)
                return -ENOMEM;
        seal_put(stream, key->name);
        seal_put(stream, value);
        return 0;
}

static int seal_put_section(FILE *stream, const char *kind, const ConfigUser *user) {
        const ConfigKey *key;
        int r;

        seal_put(stream, kind);
        seal_put(stream, user->name);
        if (user->group) {
                r = seal_put_key(stream, config_key_group(), &user->group);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; (key = config_key_at(i)); i++) {
                if (!key->user)
                        continue;
                r = seal_put_key(stream, key, config_key_user_place(key, (ConfigUser *)user));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int seal_put_sections(FILE *stream, const char *kind, const ConfigUser *sections) {
        int r;

        for (; sections; sections = sections->next) {
                r = seal_put_section(stream, kind, sections);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int seal_put_config(FILE *stream, const Config *config) {
        const ConfigKey *key;
        int r;

        for (size_t i = 0; (key = config_key_at(i)); i++) {
                r = seal_put_key(stream, key, (const char *)config + key->offset);
                if (r < 0)
                        return r;
        }
        for (ConfigKind kind = 0; kind < _CONFIG_KIND_N; kind++) {
                r = seal_put_sections(stream, config_kinds[kind], config->sections[kind]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int config_seal(const Config *config, int *ret_fd) {
        const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
        _cleanup_(freep) char *text = NULL;
        _cleanup_(closep) int fd = -1;
        size_t n_text = 0;
        FILE *stream;
        int r;

        stream = open_memstream(&text, &n_text);
        if (!stream)
                return -ENOMEM;
        r = seal_put_config(stream, config);
        if (fclose(stream) != 0 && r == 0)
                r = -ENOMEM;
        if (r < 0)
                return r;

        fd = memfd_create("gpuqd.conf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, n_text, 0);
        if (r < 0)
                return r;
        if (fcntl(fd, F_ADD_SEALS, seals) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* ---- read ------------------------------------------------------------------ */

static int unseal_read(int fd, char **ret_text, size_t *ret_n_text) {
        _cleanup_(freep) char *text = NULL;
        size_t n_text = 0, n_max;
        struct stat st;
        ssize_t n;

        if (fstat(fd, &st) < 0)
                return -errno;
        n_max = (size_t)st.st_size;
        text = malloc(n_max + 1);
        if (!text)
                return -ENOMEM;

        /* All supervisors read the same memfd, so its offset must not change. */
        while (n_text < n_max && (n = pread(fd, text + n_text, n_max - n_text, (off_t)n_text))) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                n_text += (size_t)n;
        }
        if (n_text && text[n_text - 1])
                return -EINVAL;

        text[n_text] = '\0';
        *ret_text = TAKE_PTR(text);
        *ret_n_text = n_text;
        return 0;
}

static int unseal_key(Config *config, ConfigUser *user, const char *name, const char *value) {
        const ConfigKey *key = config_key_find(name, user);
        void *place;

        if (user && strcmp(name, config_key_group()->name) == 0)
                return config_key_parse(config_key_group(), value, &user->group) ? 0 : -EINVAL;
        if (!key)
                return -EINVAL;
        place = user ? config_key_user_place(key, user) : (char *)config + key->offset;
        return config_key_parse(key, value, place) ? 0 : -EINVAL;
}

/* Return: whether the name begins a section: no key has that of a kind. */
static bool unseal_section(Config *config, const char *name, const char *value,
                           ConfigUser **ret_section) {
        for (ConfigKind kind = 0; kind < _CONFIG_KIND_N; kind++)
                if (strcmp(name, config_kinds[kind]) == 0) {
                        *ret_section = config_add(config, kind, value);
                        return true;
                }
        return false;
}

static int unseal_pairs(Config *config, const char *text, const char *end) {
        ConfigUser *user = NULL;
        int r;

        while (text < end) {
                const char *name = text, *value = name + strlen(name) + 1;

                if (value >= end)
                        return -EINVAL;
                text = value + strlen(value) + 1;
                if (unseal_section(config, name, value, &user)) {
                        if (!user)
                                return -ENOMEM;
                        continue;
                }
                r = unseal_key(config, user, name, value);
                if (r < 0)
                        return r;
        }
        return 0;
}

int config_unseal(int fd, Config **ret_config) {
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t n_text = 0;
        int r;

        r = unseal_read(fd, &text, &n_text);
        if (r < 0)
                return r;
        if (n_text == 0)
                return -EINVAL;
        config = calloc(1, sizeof(*config));
        if (!config)
                return -ENOMEM;
        r = config_key_set_defaults(config);
        if (r < 0)
                return r;
        r = unseal_pairs(config, text, text + n_text);
        if (r < 0)
                return r;

        *ret_config = TAKE_PTR(config);
        return 0;
}
