/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/device_runtime.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compiler/backend.h"
#include "compiler/ptx/tokens.h"

#define LIBRARY "libcudadevrt.a"

/* ---- what is called --------------------------------------------------------------- */

/* "Malloc" of "__cudaCDP2Malloc", as CUDA 12 writes it, and "cudaMalloc". Return: no token if it is none of them. */
static PtxToken rest_of_name(PtxToken name) {
        const char *prefix = ptx_token_starts(name, "__cudaCDP2") ? "__cudaCDP2" : "cuda";
        size_t n = strlen(prefix);

        if (!ptx_token_starts(name, prefix) || name.n <= n || !isupper((unsigned char)name.s[n]))
                return (PtxToken){};
        return (PtxToken){name.s + n, name.n - n};
}

/* Behind ".extern .func". Results are in parentheses before the name. */
static PtxToken read_name(PtxTokens *tokens) {
        PtxToken token = ptx_tokens_next(tokens);

        if (ptx_token_is(token, "(")) {
                (void)ptx_tokens_skip(tokens, "(", ")");
                token = ptx_tokens_next(tokens);
        }
        return rest_of_name(token);
}

static bool is_launch(PtxToken rest) {
        return ptx_token_starts(rest, "LaunchDevice") ||
               ptx_token_starts(rest, "GetParameterBuffer");
}

/* A launch if there is one, else the first call. Old compilers define stubs, which call nothing. */
static PtxToken find_call(const char *ptx, size_t n_ptx) {
        PtxTokens tokens = {ptx, ptx + n_ptx};
        PtxToken found = {}, token, rest;

        while ((token = ptx_tokens_next(&tokens)).n > 0 && !is_launch(found)) {
                if (ptx_token_is(token, "{"))
                        (void)ptx_tokens_skip(&tokens, "{", "}");
                if (!ptx_token_is(token, ".extern") ||
                    !ptx_token_is(ptx_tokens_next(&tokens), ".func"))
                        continue;
                rest = read_name(&tokens);
                if (rest.n > 0 && (found.n == 0 || is_launch(rest)))
                        found = rest;
        }
        return found;
}

char *device_runtime_call(const char *ptx, size_t n_ptx) {
        PtxToken call = {};
        char *text;

        /* Most modules have none, and need not be taken apart for that. */
        if (memmem(ptx, n_ptx, "cuda", strlen("cuda")))
                call = find_call(ptx, n_ptx);
        if (call.n == 0)
                return NULL;
        if (is_launch(call))
                return strdup("a kernel launches kernels (dynamic parallelism)");
        return asprintf(&text, "a kernel calls cuda%.*s() of the CUDA device runtime",
                        (int)MIN(call.n, 200), call.s) < 0
                       ? NULL
                       : text;
}

/* ---- what compilers and linkers say ------------------------------------------------- */

bool device_runtime_is_missing(const char *log) {
        return log && (strstr(log, "'__cudaCDP2") || strstr(log, "'cudaLaunchDevice"));
}

bool device_runtime_is_wanted(const char *log) {
        static const char identifier[] = "identifier \"cuda";

        if (!log)
                return false;
        if (strstr(log, "kernel launch "))
                return true;
        while ((log = strstr(log, identifier))) {
                log += strlen(identifier);
                if (isupper((unsigned char)*log) &&
                    strncmp(log + strcspn(log, "\"\n"), "\" is undefined", 14) == 0)
                        return true;
        }
        return false;
}

/* ---- the library ---------------------------------------------------------------------- */

/* With "", the folder of the linker or NVRTC; the second is that of NVIDIA's Python packages. */
static const char *const beside[] = {"", "/../../cuda_runtime/lib"};
static const char *const folders[] = {
        "/usr/local/cuda/lib64",     "/usr/local/cuda/targets/x86_64-linux/lib",
        "/usr/lib/x86_64-linux-gnu", "/usr/lib/cuda/lib64",
        "/opt/cuda/lib64",           "/opt/cuda/targets/x86_64-linux/lib",
};

/* Return: 1 if it was read, 0 if it is not there, or -ENOMEM. */
static int read_in(const char *folder, size_t n_folder, const char *inner, char **ret_library,
                   size_t *ret_n_library) {
        _cleanup_(freep) char *path = NULL;

        if (asprintf(&path, "%.*s%s/" LIBRARY, (int)n_folder, folder, inner) < 0)
                return -ENOMEM;
        return backend_read_file(path, ret_library, ret_n_library) == 0;
}

static int read_beside(const char *file, char **ret_library, size_t *ret_n_library) {
        const char *slash = strrchr(file, '/');
        int r = 0;

        for (size_t i = 0; slash && r == 0 && i < ARRAY_SIZE(beside); i++)
                r = read_in(file, slash - file, beside[i], ret_library, ret_n_library);
        return r;
}

static int read_beside_loaded(char **ret_library, size_t *ret_n_library) {
        static const char *const loaded[][2] = {{"libnvJitLink.so", "nvJitLinkDestroy"},
                                                {"libnvrtc.so", "nvrtcVersion"}};
        int r = 0;

        for (size_t i = 0; r == 0 && i < 2 * 3; i++) {
                void *library, *symbol = NULL;
                char name[32];
                Dl_info info;

                snprintf(name, sizeof(name), "%s.%zu", loaded[i / 3][0], 14 - i % 3);
                library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
                if (library)
                        symbol = dlsym(library, loaded[i / 3][1]);
                if (symbol && dladdr(symbol, &info))
                        r = read_beside(info.dli_fname, ret_library, ret_n_library);
                if (library)
                        (void)dlclose(library);
        }
        return r;
}

int device_runtime_read(const Request *request, Result *result, char **ret_library,
                        size_t *ret_n_library) {
        int r = read_beside_loaded(ret_library, ret_n_library);

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(folders); i++)
                r = read_in(folders[i], strlen(folders[i]), "", ret_library, ret_n_library);
        if (r)
                return MIN(r, 0);

        return result_fail(result, COMPILED_NO_COMPILER,
                           "cannot link %s: it calls functions of the CUDA device runtime, as "
                           "kernels that launch kernels do, and " LIBRARY
                           " is not beside nvJitLink or NVRTC, nor in %s or other usual folders; "
                           "install NVIDIA's package cuda-cudart-dev, or Debian's nvidia-cuda-dev",
                           request->name, folders[0]);
}
