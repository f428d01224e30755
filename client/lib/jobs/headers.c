/* SPDX-License-Identifier: Apache-2.0 */
#include "headers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "spelling.h"
#include "util/grow.h"

#define HEADERS_FILES_MAX 4096u
#define HEADERS_BYTES_MAX (64u << 20)
#define HEADERS_NAME_MAX  1024u /* of the daemon */
#define HEADERS_CLIENT    "@"   /* begins the name of a file that was read here; its path follows */

typedef struct HeaderFolder {
        char *path; /* absolute, without a slash at its end */
} HeaderFolder;

/* A header whose text is in the bytes, at an offset, as they may move. */
typedef struct HeaderText {
        char *folder; /* its own, for "name.h"; NULL for a text of the caller */
        size_t at, n;
} HeaderText;

typedef struct Collection {
        Headers *headers;
        HeaderFolder *folders;
        size_t n_folders;
        HeaderText *texts; /* those before n_scanned were searched for includes */
        size_t n_texts, n_scanned;
} Collection;

static void collection_finish(Collection *collection) {
        for (size_t i = 0; i < collection->n_folders; i++)
                free(collection->folders[i].path);
        for (size_t i = 0; i < collection->n_texts; i++)
                free(collection->texts[i].folder);
        free(collection->folders);
        free(collection->texts);
}

void headers_clear(Headers *headers) {
        for (size_t i = 0; i < headers->n_options; i++)
                free(headers->options[i]);
        free(headers->options);
        free(headers->bytes);
        free(headers->notes);
        *headers = (Headers){0};
}

/* ---- paths --------------------------------------------------------------------------- */

/* Takes out "." and "..", which a name may not have, in place. */
static void path_normalize(char *path) {
        char *to = path, *part = path;

        while (*part) {
                size_t n;

                part += strspn(part, "/");
                n = strcspn(part, "/");
                if (n == 2 && memcmp(part, "..", 2) == 0) {
                        while (to > path && *--to != '/')
                                ;
                } else if (n > 0 && !(n == 1 && *part == '.')) {
                        *to++ = '/';
                        memmove(to, part, n);
                        to += n;
                }
                part += n;
        }
        *to = '\0';
}

/* Absolute and normal. Return: NULL: no memory, or no working folder. */
static char *path_of(const char *folder, const char *name) {
        _cleanup_(freep) char *here = NULL;
        char *path;

        if (*name == '/') {
                path = strdup(name);
        } else {
                here = folder ? NULL : getcwd(NULL, 0);
                if ((!folder && !here) || asprintf(&path, "%s/%s", folder ?: here, name) < 0)
                        return NULL;
        }
        if (path)
                path_normalize(path);
        return path;
}

/* ---- options ------------------------------------------------------------------------- */

static int headers_add_option(Headers *headers, char *option) {
        if (!option || grow(&headers->options, headers->n_options + 1, sizeof(char *)) < 0 ||
            (headers->n_options == 0 && grow(&headers->options, 0, sizeof(char *)) < 0)) {
                free(option);
                return error_memory();
        }
        headers->options[headers->n_options++] = option;
        headers->options[headers->n_options] = NULL;
        return 0;
}

/* The daemon's compilers have headers of the toolkit that fit them. */
static bool folder_is_toolkit(const char *folder) {
        _cleanup_(freep) char *path = path_of(folder, "cuda_runtime.h");

        return path && access(path, R_OK) == 0;
}

/* Many programs name folders that only some machines have: so this is no error, but is said. */
static int headers_note_folder(Headers *headers, const char *folder) {
        char *notes;

        if (asprintf(&notes, "%s%swarning: the include folder %s %s",
                     headers->notes ? headers->notes : "", headers->notes ? "\n" : "", folder,
                     access(folder, F_OK) < 0 ? "does not exist" : "is not a folder") < 0)
                return error_memory();
        free(headers->notes);
        headers->notes = notes;
        return 0;
}

static bool folder_is_there(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int collection_add_folder(Collection *collection, const char *folder) {
        char *path = path_of(NULL, folder);

        if (!path)
                return error_system("cannot resolve an include folder");
        if (folder_is_toolkit(path) || !*path) {
                free(path);
                return 0;
        }
        if (!folder_is_there(path)) {
                free(path);
                return headers_note_folder(collection->headers, folder);
        }
        if (strlen(path) >= HEADERS_NAME_MAX) {
                free(path);
                return error_set(GPUQ_E_INVALID, "the path of an include folder is too long: %s",
                                 folder);
        }
        if (grow(&collection->folders, collection->n_folders, sizeof(*collection->folders)) < 0) {
                free(path);
                return error_memory();
        }
        collection->folders[collection->n_folders++].path = path;
        return 0;
}

/* Only where there is something in them: a cached result does not depend on folders without headers. */
static int collection_add_folder_options(Collection *collection) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < collection->n_folders; i++) {
                char *option;

                if (asprintf(&option, "-I" HEADERS_CLIENT "%s", collection->folders[i].path) < 0)
                        option = NULL;
                r = headers_add_option(collection->headers, option);
        }
        return r;
}

static int collection_read_options(Collection *collection, const char *const *options) {
        int r = 0;

        while (r == 0 && options && *options) {
                _cleanup_(freep) char *option = NULL;

                r = spelling_take(&options, &option);
                if (r < 0)
                        return r;
                if (strncmp(option, "-I", 2) == 0)
                        r = collection_add_folder(collection, option + 2);
                else
                        r = headers_add_option(collection->headers, TAKE_PTR(option));
        }
        return r;
}

/* ---- texts --------------------------------------------------------------------------- */

static bool headers_have(const Headers *headers, const char *name) {
        const char *p = headers->bytes, *end = p + headers->n_bytes;

        while (p < end) {
                if (strcmp(p, name) == 0)
                        return true;
                p += strlen(p) + 1;
                p += strlen(p) + 1;
        }
        return false;
}

/* @text has @n bytes and no NUL among them. @folder is consumed on success. */
static int collection_add_text(Collection *collection, const char *name, const char *text, size_t n,
                               char *folder) {
        Headers *headers = collection->headers;
        size_t n_name = strlen(name) + 1;
        char *bytes;

        if (collection->n_texts == HEADERS_FILES_MAX)
                return error_set(GPUQ_E_INVALID, "the source includes more than %u files",
                                 HEADERS_FILES_MAX);
        if (headers->n_bytes + n_name + n > HEADERS_BYTES_MAX)
                return error_set(GPUQ_E_INVALID, "what the source includes has more than %u MiB",
                                 HEADERS_BYTES_MAX >> 20);
        bytes = realloc(headers->bytes, headers->n_bytes + n_name + n + 1);
        if (!bytes)
                return error_memory();
        headers->bytes = bytes;
        if (grow(&collection->texts, collection->n_texts, sizeof(*collection->texts)) < 0)
                return error_memory();

        memcpy(bytes + headers->n_bytes, name, n_name);
        memcpy(bytes + headers->n_bytes + n_name, text, n);
        bytes[headers->n_bytes + n_name + n] = '\0';
        collection->texts[collection->n_texts++] =
                (HeaderText){.folder = folder, .at = headers->n_bytes + n_name, .n = n};
        headers->n_bytes += n_name + n + 1;
        return 0;
}

static int collection_add_given(Collection *collection, const gpuq_code *code) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < code->n_headers; i++) {
                const gpuq_header *header = &code->headers[i];

                if (!header->name || !*header->name || !header->text)
                        return error_set(GPUQ_E_INVALID, "header %zu has no name or no text", i);
                r = collection_add_text(collection, header->name, header->text,
                                        strlen(header->text), NULL);
        }
        return r;
}

/* A whole regular file. Return: 0, -ENOENT if it is none that can be read, or another negative errno. */
static int file_read(const char *path, char **ret_text, size_t *ret_n) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        _cleanup_(freep) char *text = NULL;
        struct stat st;
        size_t n = 0;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -ENOENT;
        if (st.st_size > HEADERS_BYTES_MAX)
                return -EFBIG;
        text = malloc((size_t)st.st_size + 1);
        if (!text)
                return -ENOMEM;

        while (n < (size_t)st.st_size) {
                ssize_t got = read(fd, text + n, (size_t)st.st_size - n);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                n += (size_t)got;
        }
        *ret_n = strnlen(text, n);
        *ret_text = TAKE_PTR(text);
        return 0;
}

/* Return: 1: it is there, 0: it is not, or a negative GPUQ_E_. */
static int collection_add_file(Collection *collection, const char *folder, const char *name) {
        _cleanup_(freep) char *path = path_of(folder, name), *text = NULL, *own = NULL;
        char header[HEADERS_NAME_MAX + 1];
        size_t n = 0;
        int r;

        if (!path)
                return error_memory();
        if (strlen(path) + strlen(HEADERS_CLIENT) > HEADERS_NAME_MAX)
                return 0;
        snprintf(header, sizeof(header), HEADERS_CLIENT "%s", path);
        if (headers_have(collection->headers, header))
                return 1;

        r = file_read(path, &text, &n);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return error_set(GPUQ_E_SYSTEM, "cannot read %s: %s", path, strerror(-r));
        own = strndup(path, (size_t)(strrchr(path, '/') - path));
        if (!own)
                return error_memory();
        r = collection_add_text(collection, header, text, n, own);
        if (r < 0)
                return r;
        own = NULL;
        return 1;
}

/* ---- includes ------------------------------------------------------------------------ */

/* Finds "#include" at the start of a line. Return: behind the word, or NULL. */
static const char *next_include(const char *p, const char *end) {
        const char *word = "include";
        size_t n = strlen(word);

        while ((p = memmem(p, (size_t)(end - p), word, n))) {
                const char *before = p;

                p += n;
                while (before[-1] == ' ' || before[-1] == '\t')
                        before--;
                if (before[-1] == '#')
                        return p;
        }
        return NULL;
}

/* As the compilers search: beside the including file first, for a name in quotes. */
static int collection_include(Collection *collection, const char *folder, const char *name,
                              bool in_quotes) {
        int r = 0;

        if (in_quotes && folder)
                r = collection_add_file(collection, folder, name);
        for (size_t i = 0; r == 0 && i < collection->n_folders; i++)
                r = collection_add_file(collection, collection->folders[i].path, name);
        return MIN(r, 0);
}

/* @text: behind a byte that is not part of it, and with a NUL behind it. */
static int collection_scan(Collection *collection, const char *text, size_t n, const char *folder) {
        const char *p = text, *end = text + n;
        char name[HEADERS_NAME_MAX + 1];
        int r = 0;

        while (r == 0 && (p = next_include(p, end))) {
                size_t n_name;
                bool in_quotes;

                p += strspn(p, " \t");
                in_quotes = *p == '"';
                if (!in_quotes && *p != '<')
                        continue;
                n_name = strcspn(++p, in_quotes ? "\"\n" : ">\n");
                if (n_name == 0 || n_name > HEADERS_NAME_MAX || *p == '/')
                        continue;
                memcpy(name, p, n_name);
                name[n_name] = '\0';
                r = collection_include(collection, folder, name, in_quotes);
        }
        return r;
}

/* A copy, as the bytes move while files are added to them. */
static int collection_scan_copy(Collection *collection, const char *text, size_t n,
                                const char *folder) {
        _cleanup_(freep) char *copy = malloc(n + 2);

        if (!copy)
                return error_memory();
        copy[0] = '\n';
        memcpy(copy + 1, text, n);
        copy[n + 1] = '\0';
        return collection_scan(collection, copy + 1, n, folder);
}

static int collection_scan_all(Collection *collection, const gpuq_code *code) {
        int r;

        r = collection_scan_copy(collection, code->image, code->n_image, NULL);
        while (r == 0 && collection->n_scanned < collection->n_texts) {
                size_t i = collection->n_scanned++;
                HeaderText text = collection->texts[i];

                r = collection_scan_copy(collection, collection->headers->bytes + text.at, text.n,
                                         text.folder);
        }
        return r;
}

int headers_collect(const gpuq_code *code, Headers *ret_headers) {
        _cleanup_(collection_finish) Collection collection = {.headers = ret_headers};
        int r;

        *ret_headers = (Headers){0};
        if (code->n_headers > 0 && !code->headers)
                return error_set(GPUQ_E_INVALID, "headers is NULL");

        r = collection_read_options(&collection, code->options);
        if (r == 0)
                r = collection_add_given(&collection, code);
        if (r == 0 && collection.n_folders > 0 &&
            (code->format == GPUQ_FORMAT_SOURCE || code->format == GPUQ_FORMAT_AUTO))
                r = collection_scan_all(&collection, code);
        if (r == 0 && ret_headers->n_bytes > 0)
                r = collection_add_folder_options(&collection);
        return r;
}
