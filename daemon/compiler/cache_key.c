/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache key
 *
 * SHA-256 over everything that a result depends on, each part with its length, so
 * that no two rows of parts look alike. Compilers are told apart by their files'
 * size and time, not by asking them: a hit must not start one. Libraries that the
 * loader finds are covered by its cache file, which every installation rewrites.
 */

#include "compiler/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <gcrypt.h>

#include "compiler/backend.h"
#include "compiler/opencl.h"
#include "compiler/process.h"
#include "driver/driver.h"

typedef gcry_md_hd_t Hash;

static void add_bytes(Hash hash, const void *data, size_t n_data) {
        uint64_t n = n_data;

        gcry_md_write(hash, &n, sizeof(n));
        gcry_md_write(hash, data, n_data);
}

static void add_text(Hash hash, const char *text) {
        add_bytes(hash, text, strlen(text));
}

/* A file by what stat() tells; one that is missing counts too. */
static void add_file(Hash hash, const char *path) {
        struct stat st;
        char text[160] = "missing";

        if (stat(path, &st) == 0)
                snprintf(text, sizeof(text), "%lld %lld %lld.%09ld", (long long)st.st_ino,
                         (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        add_text(hash, path);
        add_text(hash, text);
}

static int add_own_file(Hash hash, const Request *request, const char *name) {
        _cleanup_(freep) char *path = request_path(request->libexec, name);

        if (!path)
                return -ENOMEM;

        add_file(hash, path);
        return 0;
}

static int add_program(Hash hash, const char *const *names) {
        _cleanup_(freep) char *path = NULL;
        int r;

        r = process_find(names, &path);
        if (r == -ENOMEM)
                return r;

        add_file(hash, path ? path : "none");
        return 0;
}

/* The files of a folder of ours, two levels deep at most. */
static int add_folder(Hash hash, const Request *request, const char *name, unsigned depth) {
        _cleanup_(freep) char *path = request_path(request->libexec, name);
        struct dirent **entries;
        int n, r = 0;

        if (!path)
                return -ENOMEM;

        n = scandir(path, &entries, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                _cleanup_(freep) char *inner = request_path(name, entries[i]->d_name);

                if (!inner)
                        r = -ENOMEM;
                else if (r == 0 && entries[i]->d_name[0] != '.' && entries[i]->d_type == DT_DIR)
                        r = depth ? add_folder(hash, request, inner, depth - 1) : 0;
                else if (r == 0 && entries[i]->d_name[0] != '.')
                        r = add_own_file(hash, request, inner);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
        return r;
}

static int add_cpu_compiler(Hash hash, const Request *request) {
        static const char *const compilers[] = {"clang", "cc", "gcc", NULL};
        int r;

        r = add_own_file(hash, request, "gpuq_ptx.h");
        if (r == 0)
                r = add_folder(hash, request, "cpu", 1);
        if (r < 0)
                return r;
        add_text(hash, cpu_machine());
        return add_program(hash, compilers);
}

/* Each by its own time, which changes when a library is installed there. */
static int add_library_folders(Hash hash, const char *folders) {
        _cleanup_(freep) char *copy = strdup(folders ? folders : "");

        if (!copy)
                return -ENOMEM;
        for (char *rest = copy; rest;)
                add_file(hash, strsep(&rest, ":"));
        return 0;
}

/* What makes PTX of source, or links it. */
static int add_ptx_compiler(Hash hash, const Request *request) {
        static const char *const compilers[] = {"clang++", "clang", NULL};
        static const char *const libraries[] = {
                "/etc/ld.so.cache",
                "/usr/local/cuda/lib64",
                "/usr/local/cuda/lib64/libnvrtc.so",
                "/usr/local/cuda/lib64/libnvJitLink.so",
                "/usr/lib/cuda/lib64",
                "/opt/cuda/lib64",
        };
        char version[DRIVER_VERSION_TEXT];
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
                add_file(hash, libraries[i]);
        driver_module_version(version);
        add_text(hash, version);
        r = add_library_folders(hash, request->libraries);
        if (r < 0)
                return r;
        add_file(hash, opencl_library() ? opencl_library() : "none");

        r = add_own_file(hash, request, "gpuq_device.h");
        if (r == 0)
                r = add_folder(hash, request, "include", 2);
        if (r < 0)
                return r;
        return add_program(hash, compilers);
}

static int add_request(Hash hash, const Request *request) {
        char text[80];
        int r;

        snprintf(text, sizeof(text), "%s sm_%u %s%s", GPUQ_VERSION, request->sm,
                 format_name(request->format), request->fenced ? " fenced" : "");
        add_text(hash, text);
        add_file(hash, "/proc/self/exe");
        add_text(hash, request->name);
        for (size_t i = 0; i < request->n_options; i++)
                add_text(hash, request->options[i]);
        add_text(hash, "");
        for (size_t i = 0; i < request->n_kernels; i++)
                add_text(hash, request->kernels[i]);
        add_text(hash, "");
        add_bytes(hash, request->image ? request->image : "", request->n_image);

        add_bytes(hash, request->headers ? request->headers : "", request->n_headers);

        /* The built-in kernels are files of ours instead. */
        if (request->format != FORMAT_BUILTIN)
                return 0;
        r = add_own_file(hash, request, "kernels/builtin.ptx");
        if (r < 0)
                return r;
        return add_own_file(hash, request, "kernels/builtin.nvcc.ptx");
}

int cache_key(const Request *request, CacheKey *ret_key) {
        Hash hash;
        int r;

        if (!gcry_check_version(NULL))
                return -ENOSYS;
        (void)gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
        (void)gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
        if (gcry_md_open(&hash, GCRY_MD_SHA256, 0))
                return -ENOMEM;

        r = add_request(hash, request);
        if (r == 0)
                r = add_ptx_compiler(hash, request);
        if (r == 0 && !request->sm)
                r = add_cpu_compiler(hash, request);
        if (r == 0)
                memcpy(ret_key->bytes, gcry_md_read(hash, GCRY_MD_SHA256), CACHE_KEY_BYTES);
        gcry_md_close(hash);
        return r;
}
