/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/request.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "compiler/bound.h"
#include "compiler/compiler.h"
#include "compiler/options.h"

#define SM_MIN 50
#define SM_MAX 999

#define WORK_PREFIX "compile-"
#define WORK_ROOM   (64u << 20) /* bytes that a compile may need */
#define STALE_S     (24 * 3600)

#define FOLDERS_OPEN 16 /* at once, while a tree is removed */

static int parse_number(const char *text, unsigned long max, unsigned long *ret_number) {
        unsigned long number;
        char *end;

        errno = 0;
        number = strtoul(text, &end, 10);
        if (errno || *text < '0' || *text > '9' || *end || number > max)
                return -EINVAL;

        *ret_number = number;
        return 0;
}

static int parse_target(const char *text, unsigned *ret_sm) {
        unsigned long sm = 0;

        if (strcmp(text, "cpu") == 0) {
                *ret_sm = 0;
                return 0;
        }
        if (strncmp(text, "sm_", 3) != 0 || parse_number(text + 3, SM_MAX, &sm) < 0 || sm < SM_MIN)
                return -EINVAL;

        *ret_sm = sm;
        return 0;
}

enum {
        OPTION_TARGET,
        OPTION_FORMAT,
        OPTION_IN,
        OPTION_OUT,
        OPTION_LIBEXEC,
        OPTION_LENGTH,
        OPTION_NAME,
        OPTION_CACHE,
        OPTION_BUILTIN_CACHE,
        OPTION_CACHE_BYTES,
        OPTION_TIMEOUT,
        OPTION_MEMORY,
        OPTION_CUDA_DRIVER,
        OPTION_DEVICE,
        OPTION_KERNEL,
        OPTION_HEADERS,
        OPTION_FENCE,
        OPTION_LIBRARIES,
};

static const struct option options[] = {
        {"target", required_argument, NULL, OPTION_TARGET},
        {"format", required_argument, NULL, OPTION_FORMAT},
        {"in", required_argument, NULL, OPTION_IN},
        {"out", required_argument, NULL, OPTION_OUT},
        {"libexec", required_argument, NULL, OPTION_LIBEXEC},
        {"length", required_argument, NULL, OPTION_LENGTH},
        {"name", required_argument, NULL, OPTION_NAME},
        {"cache", required_argument, NULL, OPTION_CACHE},
        {"builtin-cache", required_argument, NULL, OPTION_BUILTIN_CACHE},
        {"cache-bytes", required_argument, NULL, OPTION_CACHE_BYTES},
        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
        {"memory", required_argument, NULL, OPTION_MEMORY},
        {"cuda-driver", no_argument, NULL, OPTION_CUDA_DRIVER},
        {"device", required_argument, NULL, OPTION_DEVICE},
        {"kernel", required_argument, NULL, OPTION_KERNEL},
        {"headers", required_argument, NULL, OPTION_HEADERS},
        {"fence", no_argument, NULL, OPTION_FENCE},
        {"libraries", required_argument, NULL, OPTION_LIBRARIES},
        {},
};

static unsigned long number_max(int option) {
        if (option == OPTION_CACHE_BYTES)
                return ULONG_MAX;
        return option == OPTION_LENGTH || option == OPTION_HEADERS ? COMPILER_IMAGE_MAX : 1 << 20;
}

static int set_number(Request *request, int option, const char *value) {
        unsigned long number;
        int r;

        r = parse_number(value, number_max(option), &number);
        if (r < 0)
                return r;

        switch (option) {
                case OPTION_IN:
                        request->in_fd = number;
                        return 0;
                case OPTION_OUT:
                        request->out_fd = number;
                        return 0;
                case OPTION_LENGTH:
                        request->length = number;
                        return 0;
                case OPTION_HEADERS:
                        request->n_headers = number;
                        return 0;
                case OPTION_CACHE_BYTES:
                        request->cache_bytes = number;
                        return 0;
                case OPTION_TIMEOUT:
                        request->timeout_s = number;
                        return 0;
                case OPTION_MEMORY:
                        request->memory_mib = number;
                        return 0;
                default:
                        request->device = number;
                        return 0;
        }
}

static int set(Request *request, int option, const char *value) {
        switch (option) {
                case OPTION_TARGET:
                        return parse_target(value, &request->sm);
                case OPTION_FORMAT:
                        return format_parse(value, &request->format);
                case OPTION_LIBEXEC:
                        request->libexec = value;
                        return 0;
                case OPTION_NAME:
                        request->name = value;
                        return 0;
                case OPTION_CACHE:
                        request->cache = value;
                        return 0;
                case OPTION_BUILTIN_CACHE:
                        request->builtin_cache = value;
                        return 0;
                case OPTION_LIBRARIES:
                        request->libraries = value;
                        return 0;
                case OPTION_CUDA_DRIVER:
                        request->cuda_driver = true;
                        return 0;
                case OPTION_FENCE:
                        request->fenced = true;
                        return 0;
                case OPTION_KERNEL:
                        request->kernels[request->n_kernels++] = value;
                        return *value ? 0 : -EINVAL;
                case '?':
                        return -EINVAL;
                default:
                        return set_number(request, option, value);
        }
}

static int parse(Request *request, int argc, char **argv) {
        bool seen[ARRAY_SIZE(options)] = {};
        int option;

        request->kernels = calloc(argc, sizeof(*request->kernels));
        if (!request->kernels)
                return -ENOMEM;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
                if (set(request, option, optarg) < 0) {
                        if (option != '?')
                                fprintf(stderr, "%s: --%s %s: invalid value\n", COMPILER_PROGRAM,
                                        options[option].name, optarg);
                        return -EINVAL;
                }
                seen[option] = true;
        }
        if (!seen[OPTION_TARGET] || !seen[OPTION_FORMAT] || !seen[OPTION_OUT] ||
            !seen[OPTION_LIBEXEC] || seen[OPTION_IN] == (request->format == FORMAT_BUILTIN)) {
                fprintf(stderr,
                        "usage: %s --target sm_NN|cpu --format FORMAT [--in FD] --out FD "
                        "--libexec DIR ... [--kernel NAME]... [-- OPTION...]\n"
                        "       %s --words FD\n",
                        COMPILER_PROGRAM, COMPILER_PROGRAM);
                return -EINVAL;
        }

        request->options = (const char *const *)argv + optind;
        request->n_options = argc - optind;
        request->checked = options_checked(request->options, request->n_options);
        return 0;
}

static int read_all(int fd, char *to, size_t n) {
        for (size_t at = 0; at < n;) {
                ssize_t got = pread(fd, to + at, n - at, at);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        return -ENODATA;
                at += got;
        }
        return 0;
}

static int read_words(Request *request, int fd, size_t *ret_n_words) {
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size > COMPILER_WORDS_MAX)
                return -EFBIG;
        request->words = malloc(st.st_size + 1);
        if (!request->words)
                return -ENOMEM;

        r = read_all(fd, request->words, st.st_size);
        if (r < 0)
                return r;
        request->words[st.st_size] = '\0';
        *ret_n_words = st.st_size;
        return 0;
}

/* An argv like that of main(). */
static int split_words(Request *request, size_t n_words, int *ret_argc) {
        char *end = request->words + n_words;
        size_t n = 1;

        for (char *p = request->words; p < end; p += strlen(p) + 1)
                n++;
        request->argv = calloc(n + 1, sizeof(*request->argv));
        if (!request->argv)
                return -ENOMEM;

        n = 0;
        request->argv[n++] = (char *)COMPILER_PROGRAM;
        for (char *p = request->words; p < end; p += strlen(p) + 1)
                request->argv[n++] = p;
        *ret_argc = n;
        return 0;
}

static int parse_words(Request *request, const char *fd_text) {
        unsigned long fd;
        size_t n_words = 0;
        int argc, r;

        r = parse_number(fd_text, 1 << 20, &fd);
        if (r == 0)
                r = read_words(request, fd, &n_words);
        if (r < 0) {
                fprintf(stderr, "%s: --words %s: %s\n", COMPILER_PROGRAM, fd_text, strerror(-r));
                return r;
        }
        (void)close(fd);

        r = split_words(request, n_words, &argc);
        return r < 0 ? r : parse(request, argc, request->argv);
}

int request_new(int argc, char **argv, Request **ret_request) {
        _cleanup_(request_freep) Request *request = NULL;
        int r;

        request = calloc(1, sizeof(*request));
        if (!request)
                return -ENOMEM;

        request->memory_mib = BOUND_DEFAULT_MIB;
        request->cache_bytes = UINT64_MAX;
        request->name = "kernel.cu";
        request->in_fd = request->out_fd = -1;
        if (argc == 3 && strcmp(argv[1], "--words") == 0)
                r = parse_words(request, argv[2]);
        else
                r = parse(request, argc, argv);
        if (r < 0)
                return r;

        *ret_request = TAKE_PTR(request);
        return 0;
}

Request *request_free(Request *request) {
        if (!request)
                return NULL;

        free(request->work);
        free(request->image);
        free(request->kernels);
        free(request->argv);
        free(request->words);
        free(request);
        return NULL;
}

int request_read(Request *request) {
        struct stat st;
        size_t n;
        int r;

        if (request->format == FORMAT_BUILTIN)
                return 0;
        if (fstat(request->in_fd, &st) < 0)
                return -errno;

        n = request->length ? request->length : (size_t)st.st_size;
        if (n > COMPILER_IMAGE_MAX || n + request->n_headers > COMPILER_IMAGE_MAX)
                return -EFBIG;

        request->image = malloc(n + request->n_headers + 2);
        if (!request->image)
                return -ENOMEM;

        r = read_all(request->in_fd, request->image, n + request->n_headers);
        if (r < 0)
                return r;

        request->headers = request->image + n + 1;
        memmove(request->headers, request->image + n, request->n_headers);
        request->headers[request->n_headers] = '\0';
        request->image[n] = '\0';
        request->n_image = n;
        return 0;
}

char *request_path(const char *dir, const char *name) {
        char *path;

        return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *place) {
        (void)st;
        (void)type;
        (void)place;
        (void)remove(path);
        return 0;
}

/* With the folders of the client's headers. */
static void remove_folder(const char *path) {
        (void)nftw(path, remove_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* Removes the work folders of compilers that were killed. */
static void remove_stale(const char *cache) {
        DIR *dir = opendir(cache);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                _cleanup_(freep) char *path = request_path(cache, entry->d_name);
                struct stat st;

                if (strncmp(entry->d_name, WORK_PREFIX, strlen(WORK_PREFIX)) == 0 && path &&
                    lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
                    st.st_mtime < time(NULL) - STALE_S)
                        remove_folder(path);
        }
        if (dir)
                closedir(dir);
}

static bool has_room(const char *dir) {
        struct statvfs st;

        return statvfs(dir, &st) == 0 && (uint64_t)st.f_bavail * st.f_frsize >= WORK_ROOM;
}

static int make_work_in(Request *request, const char *dir) {
        char *work = request_path(dir, WORK_PREFIX "XXXXXX");

        if (!work)
                return -ENOMEM;
        if (!mkdtemp(work)) {
                free(work);
                return -errno;
        }

        request->work = work;
        return 0;
}

/* In the first with room, else in the first that takes it. */
static int make_work_in_one(Request *request, const char *const *dirs, size_t n_dirs) {
        int r = -ENOENT;

        for (size_t i = 0; i < n_dirs; i++)
                if (dirs[i] && has_room(dirs[i]) && make_work_in(request, dirs[i]) == 0)
                        return 0;
        for (size_t i = 0; i < n_dirs; i++) {
                if (!dirs[i])
                        continue;
                r = make_work_in(request, dirs[i]);
                if (r == 0)
                        return 0;
        }
        return r;
}

/*
 * Beside the cache, which is the user's own and on a disk. Where another user has filled that disk,
 * it goes where temporary files go, or into memory: a full disk costs time alone.
 */
int request_make_work(Request *request) {
        const char *const dirs[] = {request->cache, getenv("TMPDIR"), "/tmp", "/dev/shm"};

        if (request->cache)
                remove_stale(request->cache);
        return make_work_in_one(request, dirs, ARRAY_SIZE(dirs));
}

void request_clean(Request *request) {
        if (request->work)
                remove_folder(request->work);
}
