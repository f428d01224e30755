/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX for the CPU driver
 *
 * The translator makes C of it, and the host's C compiler makes a shared object of that, as of
 * source (driver/cpu/image.h). The signature is read from the PTX, as for a GPU.
 *
 * Source that the host's C++ compiler refuses takes this way too, after what makes PTX of it for
 * GPUs: it may include the toolkit's headers, or contain PTX.
 */

#include <string.h>

#include "compiler/backend.h"
#include "compiler/batch.h"
#include "compiler/process.h"
#include "compiler/ptx.h"
#include "compiler/ptx/translate.h"
#include "driver/cpu/image.h"

typedef struct CpuPtx {
        char *compiler;
        char *source; /* paths, in the work folder */
        char *image;
} CpuPtx;

static void cpu_ptx_finish(CpuPtx *files) {
        free(files->compiler);
        free(files->source);
        free(files->image);
}

/* What the signature lists is what the image shows by its name. */
static bool is_visible(const PtxVariable *variable) {
        return signature_is_variable(&(SignatureVariable){
                .name = variable->name.s,
                .n_name = variable->name.n,
                .has_value = variable->n_initials > 0,
                .is_byte = variable->type == PTX_B8 && variable->n_dimensions == 1 &&
                           variable->n_elements == 1,
        });
}

/* Return: 0, also where the result is that the text is wrong, or a negative errno. */
static int translate(const Request *request, const Ptx *ptx, Result *result, char **ret_source) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *error = NULL;
        int r;

        r = ptx_module_read(ptx->text, ptx->n_text, &module, &error);
        if (r == 0)
                r = ptx_translate(module, is_visible, ret_source, &error);
        if (r > 0)
                return result_fail(result, COMPILED_FAILED, "%s: %s%s", request->name,
                                   request->format == FORMAT_SOURCE ? "in its PTX, " : "", error);
        return r;
}

/* Without the instruction, each fma calls a function. Results are the same. */
const char *cpu_ptx_machine(void) {
#ifdef __x86_64__
        if (__builtin_cpu_supports("fma"))
                return "-mfma";
#endif
        return "-w";
}

static int compile(const Request *request, const CpuPtx *files, Result *result) {
        const char *const argv[] = {
                files->compiler,
                "-std=gnu11",
                "-O2",
                "-w",
                "-ffp-contract=off",
                cpu_ptx_machine(),
                GPUQ_CPU_COMPILE_FLAGS,
                "-I",
                request->libexec,
                "-x",
                "c",
                files->source,
                "-o",
                files->image,
                "-lm",
                NULL,
        };
        _cleanup_(freep) char *output = NULL;
        int status;

        status = process_run(request, argv, &output);
        if (status < 0)
                return status;
        if (status >= 128)
                return result_fail(result, COMPILED_FAILED,
                                   "%sthe compiler was killed by signal %d: out of time or memory",
                                   output, status - 128);
        if (status)
                return result_fail(result, COMPILED_INTERNAL,
                                   "the compiler does not take the C code made of %s:\n%s",
                                   request->name, output);
        return 0;
}

/* The driver makes twins when it loads the image, unless a kernel has the name of one. */
static void add_flags(Result *result) {
        for (size_t i = 0; i < result->signature->n_kernels; i++) {
                const char *symbol = result->signature->kernels[i].symbol;

                if (batch_is_name(symbol, strlen(symbol)))
                        return;
        }
        result->flags |= COMPILED_HAS_TWINS;
}

static int take_image(const CpuPtx *files, const Ptx *ptx, Result *result) {
        _cleanup_(freep) char *image = NULL;
        size_t n_image;
        int r;

        r = backend_read_file(files->image, &image, &n_image);
        if (r < 0)
                return r;
        r = ptx_scan(ptx->text, ptx->n_text, result->signature);
        if (r < 0)
                return r;

        result->image = TAKE_PTR(image);
        result->n_image = n_image;
        add_flags(result);
        return 0;
}

static int make_image(const Request *request, const Ptx *ptx, Result *result) {
        static const char *const compilers[] = {"clang", "cc", "gcc", NULL};
        _cleanup_(cpu_ptx_finish) CpuPtx files = {};
        _cleanup_(freep) char *source = NULL;
        int r;

        r = translate(request, ptx, result, &source);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        r = process_find(compilers, &files.compiler);
        if (r == -ENOENT)
                return result_fail(
                        result, COMPILED_NO_COMPILER,
                        "cannot compile PTX for the CPU: no C compiler found; install clang");
        if (r < 0)
                return r;

        files.source = request_path(request->work, "module.c");
        files.image = request_path(request->work, "image.so");
        if (!files.source || !files.image)
                return -ENOMEM;
        r = backend_write_file(files.source, source, strlen(source));
        if (r == 0)
                r = compile(request, &files, result);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        return take_image(&files, ptx, result);
}

int cpu_ptx_compile(const Request *request, Result *result) {
        const Ptx ptx = {request->image, strnlen(request->image, request->n_image)};

        return make_image(request, &ptx, result);
}

static void ptx_finish(Ptx *ptx) {
        free(ptx->text);
}

static int compile_source(const Request *request, Result *result) {
        _cleanup_(ptx_finish) Ptx ptx = {};
        int r;

        r = source_compile(request, result, &ptx);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        return make_image(request, &ptx, result);
}

int cpu_source_compile(const Request *request, Result *result) {
        _cleanup_(result_freep) Result *by_ptx = NULL;
        int r;

        r = host_compile(request, result);
        if (r < 0 || result->ran_out ||
            (result->status != COMPILED_FAILED && result->status != COMPILED_NO_COMPILER))
                return r;

        r = result_new(&by_ptx);
        if (r == 0)
                r = compile_source(request, by_ptx);
        if (r < 0)
                return r;
        if (by_ptx->status == COMPILED_OK) {
                result_exchange(result, by_ptx);
                return 0;
        }
        if (by_ptx->status == COMPILED_NO_COMPILER)
                return 0;
        return result_add_log(result, "\nNor does it compile as for a GPU:\n")
                       ?: result_add_log(result, by_ptx->log ? by_ptx->log : "");
}
