/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/headers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compiler/options.h"
#include "util/write_all.h"

#define HEADERS_FOLDER "headers"
#define HEADERS_CLIENT "@/" /* begins a path of the client */
#define HEADERS_MAX    4096u

typedef struct Header {
        const char *name;
        const char *text;
        size_t n_text;
} Header;

enum {
        _HEADER_E_SUCCESS,
        HEADER_E_END,
        HEADER_E_BROKEN,
};

/* The one at *at, which moves behind it. */
static int header_next(const Request *request, size_t *at, Header *ret_header) {
        const char *name = request->headers + *at, *end = request->headers + request->n_headers;
        const char *text, *behind;

        if (name == end)
                return HEADER_E_END;
        text = memchr(name, '\0', end - name);
        behind = text ? memchr(text + 1, '\0', end - text - 1) : NULL;
        if (!behind)
                return HEADER_E_BROKEN;

        *ret_header = (Header){name, text + 1, behind - text - 1};
        *at = behind + 1 - request->headers;
        return 0;
}

/* ---- on the disk --------------------------------------------------------------------- */

static char *headers_path(const Request *request, const char *name) {
        char *path;

        return asprintf(&path, "%s/" HEADERS_FOLDER "/%s", request->work, name) < 0 ? NULL : path;
}

/* Every folder that @path names before its last part. */
static int make_folders(char *path, size_t n_there) {
        for (char *slash = strchr(path + n_there, '/'); slash; slash = strchr(slash + 1, '/')) {
                int r;

                *slash = '\0';
                r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
                *slash = '/';
                if (r < 0)
                        return r;
        }
        return 0;
}

static int write_file(const char *path, const Header *header) {
        FILE *f = fopen(path, "we");
        bool bad;

        if (!f)
                return -errno;
        fwrite(header->text, 1, header->n_text, f);
        bad = ferror(f);
        return fclose(f) != 0 || bad ? -EIO : 0;
}

static int write_one(const Request *request, Result *result, const Header *header) {
        _cleanup_(freep) char *path = NULL;
        int r;

        if (!options_is_path(header->name))
                return result_fail(result, COMPILED_BAD_OPTION,
                                   "the header \"%s\" must have a relative path as its name, "
                                   "without \".\" and \"..\"",
                                   header->name);

        path = headers_path(request, header->name);
        if (!path)
                return -ENOMEM;
        r = make_folders(path, strlen(request->work) + 1);
        if (r == 0)
                r = write_file(path, header);
        if (r == -EISDIR || r == -ENOTDIR)
                return result_fail(result, COMPILED_BAD_OPTION,
                                   "the header \"%s\" has the name of a folder of another header",
                                   header->name);
        return r;
}

/* A path through a folder is found only if that exists, as in "sub/../a.h". */
static int make_option_folders(const Request *request) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < request->n_options; i++) {
                const char *folder = options_folder(request->options[i]);
                _cleanup_(freep) char *path = NULL, *inner = NULL;

                if (!folder)
                        continue;
                path = headers_path(request, folder);
                inner = path ? request_path(path, "") : NULL;
                if (!inner)
                        return -ENOMEM;
                r = make_folders(inner, strlen(request->work) + 1);
        }
        return r == -ENOTDIR ? 0 : r;
}

int headers_write(const Request *request, Result *result) {
        size_t at = 0, n = 0;
        Header header;
        int r = 0, found;

        if (request->n_headers == 0)
                return 0;

        while ((found = header_next(request, &at, &header)) == 0) {
                if (n++ == HEADERS_MAX)
                        return result_fail(result, COMPILED_BAD_OPTION,
                                           "too many headers: the limit is %u", HEADERS_MAX);
                r = write_one(request, result, &header);
                if (r < 0 || result->status != COMPILED_OK)
                        return r;
        }
        if (found == HEADER_E_BROKEN)
                return result_fail(
                        result, COMPILED_BAD_OPTION,
                        "the headers are damaged: one of them ends outside of its bytes");
        return make_option_folders(request);
}

/* ---- for compilers ------------------------------------------------------------------- */

char **headers_free_options(char **options) {
        for (char **option = options; option && *option; option++)
                free(*option);
        free(options);
        return NULL;
}

int headers_options(const Request *request, char ***ret_options) {
        _cleanup_(headers_free_optionsp) char **options = NULL;
        size_t n = 0;

        options = calloc(request->n_options + 2, sizeof(*options));
        if (!options)
                return -ENOMEM;

        for (size_t i = 0; request->n_headers > 0 && i < request->n_options; i++) {
                const char *folder = options_folder(request->options[i]);

                if (folder && asprintf(&options[n++], "-I%s/" HEADERS_FOLDER "/%s", request->work,
                                       folder) < 0) {
                        options[n - 1] = NULL;
                        return -ENOMEM;
                }
        }
        if (request->n_headers > 0 &&
            asprintf(&options[n], "-I%s/" HEADERS_FOLDER, request->work) < 0) {
                options[n] = NULL;
                return -ENOMEM;
        }

        *ret_options = TAKE_PTR(options);
        return 0;
}

void headers_clean_log(const Request *request, char *log) {
        char folder[4096], *from = log, *to = log, *found;
        int n;

        if (!log || request->n_headers == 0)
                return;
        n = snprintf(folder, sizeof(folder), "%s/" HEADERS_FOLDER "/", request->work);
        if (n < 0 || (size_t)n >= sizeof(folder))
                return;

        while ((found = strstr(from, folder))) {
                memmove(to, from, found - from);
                to += found - from;
                from = found + n;
                if (strncmp(from, HEADERS_CLIENT, strlen(HEADERS_CLIENT)) == 0)
                        from += strlen(HEADERS_CLIENT) - 1; /* its slash stays */
        }
        memmove(to, from, strlen(from) + 1);
}

/* ---- for the cache ------------------------------------------------------------------- */

static bool ends_with_path(const char *path, const char *name, size_t n_name) {
        size_t n_path = strlen(path);

        return n_path >= n_name && memcmp(path + n_path - n_name, name, n_name) == 0 &&
               (n_path == n_name || path[n_path - n_name - 1] == '/');
}

bool headers_has(const Request *request, const char *name, size_t n_name) {
        Header header;
        size_t at = 0;

        while (n_name > 2 && (memcmp(name, "./", 2) == 0 || memcmp(name, "..", 2) == 0)) {
                size_t n = strcspn(name, "/") + 1;

                if (n >= n_name)
                        return false;
                name += n;
                n_name -= n;
        }
        while (n_name > 0 && header_next(request, &at, &header) == 0)
                if (ends_with_path(header.name, name, n_name))
                        return true;
        return false;
}
