/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host
 *
 * CUDA C++ to a shared object for the CPU driver: the two steps of daemon/driver/cpu/image.h, with
 * scan.c between them. A line marker sets the name of the source, so messages show it and not our
 * temporary file.
 */

#include <stdio.h>
#include <string.h>

#include "compiler/backend.h"
#include "compiler/batch.h"
#include "compiler/compiled.h"
#include "compiler/cpu_image.h"
#include "compiler/options.h"
#include "compiler/process.h"
#include "compiler/scan.h"
#include "driver/cpu/image.h"

#define ARGUMENTS_MAX 64u

typedef struct Host {
        const Request *request;
        Result *result;
        char *compiler;
        char *source; /* paths, in the work folder */
        char *preprocessed;
        char *rewritten;
        char *image;
        char *include; /* of libexec */
        char *header;
        char *words;
        const char *argv[ARGUMENTS_MAX];
        size_t n_argv;
} Host;

static Host *host_free(Host *host) {
        free(host->compiler);
        free(host->source);
        free(host->preprocessed);
        free(host->rewritten);
        free(host->image);
        free(host->include);
        free(host->header);
        free(host->words);
        return NULL;
}

static void host_finish(Host *host) {
        (void)host_free(host);
}

static int host_init(Host *host, const Request *request, Result *result) {
        *host = (Host){
                .request = request,
                .result = result,
                .source = request_path(request->work, "source.cu"),
                .preprocessed = request_path(request->work, "preprocessed.cpp"),
                .rewritten = request_path(request->work, "rewritten.cpp"),
                .image = request_path(request->work, "image.so"),
                .include = request_path(request->libexec, "cpu/cuda"),
                .header = request_path(request->libexec, "gpuq_cpu.h"),
                .words = request_path(request->libexec, "cpu/compile.h"),
        };
        if (!host->source || !host->preprocessed || !host->rewritten || !host->image ||
            !host->include || !host->header || !host->words)
                return -ENOMEM;
        return 0;
}

static void add(Host *host, const char *argument) {
        if (host->n_argv < ARGUMENTS_MAX - 1)
                host->argv[host->n_argv++] = argument;
}

static void begin(Host *host) {
        memset(host->argv, 0, sizeof(host->argv));
        host->n_argv = 0;
        add(host, host->compiler);
        add(host, options_standard(host->request->options, host->request->n_options, 17) >= 20
                          ? "-std=c++20"
                          : "-std=c++17");
}

/* Of time or memory: another compiler would, too. The assembler and the linker say it in words. */
static bool has_run_out(int status, const char *output) {
        return status >= 128 || strstr(output, "out of memory") ||
               strstr(output, "memory exhausted");
}

static int run(Host *host, bool *ret_ok) {
        _cleanup_(freep) char *output = NULL;
        int status, r;

        status = process_run(host->request, host->argv, &output);
        if (status < 0)
                return status;

        *ret_ok = status == 0;
        if (status == 0)
                return result_add_log(host->result, output);

        r = result_fail(host->result, COMPILED_FAILED, "%s", *output ? output : "");
        host->result->ran_out = has_run_out(status, output);
        if (r == 0 && status >= 128)
                r = result_fail(host->result, COMPILED_FAILED,
                                "%sthe compiler was killed by signal %d: out of time or memory\n",
                                output, status - 128);
        return r;
}

static int preprocess(Host *host, bool *ret_ok) {
        begin(host);
        for (const char *const *a = (const char *const[]){"-E", "-x", "c++", "-isystem", NULL}; *a;
             a++)
                add(host, *a);
        add(host, host->include);
        add(host, "-include");
        add(host, host->header);
        add(host, "-o");
        add(host, host->preprocessed);
        add(host, host->source);

        return run(host, ret_ok);
}

static int rewrite(const Host *host) {
        _cleanup_(freep) char *text = NULL, *rewritten = NULL;
        size_t n_text;
        int r;

        r = backend_read_file(host->preprocessed, &text, &n_text);
        if (r < 0)
                return r;

        r = scan_rewrite(text, n_text, &rewritten);
        if (r < 0)
                return r;

        return backend_write_file(host->rewritten, rewritten, strlen(rewritten));
}

static int compile(Host *host, bool *ret_ok) {
        static const char *const flags[] = {"-O2", GPUQ_CPU_COMPILE_FLAGS};
        const Request *request = host->request;

        begin(host);
        /* No warnings about rewritten code; #warning is shown by the preprocessor. */
        add(host, "-w");
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                add(host, flags[i]);
        if (options_fast_math(request->options, request->n_options)) {
                /* What CUDA's option allows; NaN and infinity keep their meaning there too. */
                add(host, "-ffp-contract=fast");
                add(host, "-fno-math-errno");
                add(host, "-freciprocal-math");
        }
        add(host, "-include");
        add(host, host->words);
        add(host, "-x");
        add(host, "c++");
        add(host, host->rewritten);
        add(host, "-o");
        add(host, host->image);

        return run(host, ret_ok);
}

/* The driver makes them when it loads the image (driver/cpu/twin.h). */
static bool has_twins(const Signature *signature) {
        for (size_t i = 0; i < signature->n_kernels; i++)
                if (batch_is_name(signature->kernels[i].symbol,
                                  strlen(signature->kernels[i].symbol)))
                        return false;
        return true;
}

static int take_image(Host *host) {
        _cleanup_(freep) char *image = NULL;
        size_t n_image;
        int r;

        r = backend_read_file(host->image, &image, &n_image);
        if (r < 0)
                return r;

        r = cpu_image_scan(image, n_image, host->result->signature);
        if (r > 0)
                return result_fail(host->result, COMPILED_INTERNAL,
                                   "the compiler's output is not a valid image");
        if (r < 0)
                return r;

        host->result->image = TAKE_PTR(image);
        host->result->n_image = n_image;
        if (has_twins(host->result->signature))
                host->result->flags |= COMPILED_HAS_TWINS;
        return 0;
}

int host_compile(const Request *request, Result *result) {
        static const char *const compilers[] = {"c++", "g++", "clang++", NULL};
        _cleanup_(host_finish) Host host = {};
        bool ok = false;
        int r;

        r = host_init(&host, request, result);
        if (r < 0)
                return r;

        r = process_find(compilers, &host.compiler);
        if (r == -ENOENT)
                return result_fail(
                        result, COMPILED_NO_COMPILER,
                        "cannot compile source for the CPU: no C++ compiler found; install g++");
        if (r < 0)
                return r;

        r = backend_write_source(request, host.source);
        if (r == 0)
                r = preprocess(&host, &ok);
        if (r < 0 || !ok)
                return r;

        r = rewrite(&host);
        if (r == 0)
                r = compile(&host, &ok);
        if (r < 0 || !ok)
                return r;

        return take_image(&host);
}
