/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clang
 *
 * CUDA C++ to PTX without any part of the CUDA Toolkit: gpuq_device.h replaces its headers. PTX
 * for an older architecture runs on every later one, so the architectures that clang 14 knows are
 * enough.
 */

#include <stdio.h>
#include <string.h>

#include "compiler/backend.h"
#include "compiler/headers.h"
#include "compiler/instance.h"
#include "compiler/named.h"
#include "compiler/options.h"
#include "compiler/process.h"
#include "compiler/remedy.h"
#include "util/macro.h"

#define ARGUMENTS_MAX 320u /* with a folder for each option of a client */

typedef struct Clang {
        char *program;
        char *header;
        char *include;
        char *source;
        char *ptx;
} Clang;

static void clang_finish(Clang *clang) {
        free(clang->program);
        free(clang->header);
        free(clang->include);
        free(clang->source);
        free(clang->ptx);
}

static int clang_init(Clang *clang, const Request *request) {
        static const char *const programs[] = {"clang++", "clang", NULL};
        int r;

        r = process_find(programs, &clang->program);
        if (r < 0)
                return r == -ENOENT ? BACKEND_E_MISSING : r;

        clang->header = request_path(request->libexec, "gpuq_device.h");
        clang->include = request_path(request->libexec, "include");
        clang->source = request_path(request->work, "source.cu");
        clang->ptx = request_path(request->work, "module.ptx");
        if (!clang->header || !clang->include || !clang->source || !clang->ptx)
                return -ENOMEM;
        return 0;
}

/* As CUDA's: NaN and infinities are still numbers to ask for, and sums stay in their order. */
static size_t add_fast_math(const char **argv, size_t n) {
        static const char *const flags[] = {"-ffast-math", "-fno-finite-math-only",
                                            "-fno-associative-math", "-fsigned-zeros"};

        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                argv[n++] = flags[i];
        return n;
}

/* --use_fast_math sets those that are not given. Square roots are always exact. */
static size_t add_arithmetic(const Request *request, const char **argv, size_t n) {
        bool is_fast = options_fast_math(request->options, request->n_options);
        OptionsValue values[] = {
                [OPTIONS_FMAD] = is_fast ? OPTIONS_TRUE : OPTIONS_NOT_GIVEN,
                [OPTIONS_FTZ] = is_fast ? OPTIONS_TRUE : OPTIONS_NOT_GIVEN,
                [OPTIONS_PREC_DIV] = is_fast ? OPTIONS_FALSE : OPTIONS_NOT_GIVEN,
        };

        for (size_t i = 0; i < ARRAY_SIZE(values); i++)
                values[i] = options_switch(request->options, request->n_options, i) ?: values[i];

        if (is_fast)
                n = add_fast_math(argv, n);
        if (values[OPTIONS_FMAD] == OPTIONS_FALSE)
                argv[n++] = "-ffp-contract=off";
        if (values[OPTIONS_FTZ] == OPTIONS_TRUE)
                argv[n++] = "-fgpu-flush-denormals-to-zero";
        if (values[OPTIONS_PREC_DIV] != OPTIONS_NOT_GIVEN) {
                argv[n++] = "-mllvm"; /* takes each of these options once */
                argv[n++] = values[OPTIONS_PREC_DIV] == OPTIONS_TRUE ? "-nvptx-prec-divf32=2"
                                                                     : "-nvptx-prec-divf32=0";
        }
        return n;
}

/* @has_standard: the names that nvcc has without an include. */
static int run(const Clang *clang, const Request *request, bool has_standard, char **ret_output) {
        const char *argv[ARGUMENTS_MAX] = {
                clang->program,
                "-x",
                "cuda",
                "--cuda-device-only",
                "-nocudainc",
                "-nocudalib",
                "-nostdlibinc",
                "-S",
                "-O3",
                "-Wno-unknown-cuda-version",
                "-Wno-register", /* as nvcc takes it */
                /* shuffles and votes with a mask need PTX 6.0, __activemask() 6.2, which R550 takes as any later driver */
                "-Xclang",
                "-target-feature",
                "-Xclang",
                request->sm ? "+ptx63" : "+ptx70",
                request->sm ? "--cuda-gpu-arch=sm_60" : "--cuda-gpu-arch=sm_80",
                "-isystem",
                clang->include,
                "-include",
                clang->header,
                "-o",
                clang->ptx,
                clang->source,
        };
        _cleanup_(headers_free_optionsp) char **folders = NULL;
        char standard[32];
        size_t n = 0;
        int r;

        r = headers_options(request, &folders);
        if (r < 0)
                return r;

        while (argv[n])
                n++;
        snprintf(standard, sizeof(standard), "-std=c++%u",
                 options_standard(request->options, request->n_options, 17));
        argv[n++] = standard;
        for (char **folder = folders; *folder; folder++)
                argv[n++] = *folder;
        if (!request->sm)
                argv[n++] = "-D__GPUQ_CPU__=1";
        if (request->checked)
                argv[n++] = "-gline-directives-only";
        if (has_standard) {
                argv[n++] = "-include";
                argv[n++] = "gpuq_standard.h";
        }
        n = add_arithmetic(request, argv, n);

        return process_run(request, argv, ret_output);
}

static bool lacks_names(const char *output) {
        return strstr(output, "undeclared identifier") || strstr(output, "in namespace 'std'");
}

static int fail(const Request *request, Result *result, char *output) {
        const char *name, *why;

        if (instance_blame(request, output, &name, &why))
                return named_fail(request, result, name, why);
        if (strstr(output, "reference to __global__ function"))
                return result_fail(
                        result, COMPILED_FAILED,
                        "%s\n(kernels that launch kernels need a GPU and NVRTC; this was "
                        "compiled by clang)",
                        output);
        return result_fail(result, COMPILED_FAILED,
                           "%s%s\n(compiled by clang without the CUDA Toolkit; install NVRTC "
                           "for full CUDA C++ support)",
                           output, remedy(output));
}

int clang_compile(const Request *request, Result *result, Ptx *ret_ptx) {
        _cleanup_(clang_finish) Clang clang = {};
        _cleanup_(freep) char *output = NULL, *again = NULL;
        int r;

        r = clang_init(&clang, request);
        if (r)
                return r;

        r = backend_write_source(request, clang.source);
        if (r < 0)
                return r;

        r = run(&clang, request, false, &output);
        if (r > 0 && lacks_names(output))
                r = run(&clang, request, true, &again);
        if (r < 0)
                return r;
        if (r > 0)
                return fail(request, result, output);

        r = result_add_log(result, again ?: output);
        if (r < 0)
                return r;
        r = backend_read_file(clang.ptx, &ret_ptx->text, &ret_ptx->n_text);
        return r < 0 ? r : instance_take(request, result, ret_ptx->text);
}
