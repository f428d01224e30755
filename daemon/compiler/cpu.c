/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source and PTX for the CPU driver
 *
 * Source becomes PTX as for a GPU. The translator makes C of PTX, and the host's C compiler makes a
 * shared object of that (driver/cpu/image.h). The signature is read from the PTX, as for a GPU.
 */

#include <string.h>

#include "compiler/backend.h"
#include "compiler/batch.h"
#include "compiler/device_runtime.h"
#include "compiler/process.h"
#include "compiler/ptx.h"
#include "compiler/ptx/translate.h"
#include "driver/cpu/image.h"

typedef struct Cpu {
        char *compiler;
        char *source; /* paths, in the work folder */
        char *image;
} Cpu;

static void cpu_finish(Cpu *cpu) {
        free(cpu->compiler);
        free(cpu->source);
        free(cpu->image);
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
static int translate(const Request *request, Result *result, const Ptx *ptx, char **ret_source) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *error = NULL;
        int r;

        r = ptx_module_read(ptx->text, ptx->n_text, &module, &error);
        if (r == 0)
                r = ptx_translate(module, is_visible, ret_source, &error);
        if (r > 0)
                return result_fail(result, COMPILED_FAILED, "%s: %s%s", request->name,
                                   format_is_source(request->format) ? "in its PTX, " : "", error);
        return r;
}

/* Without the instruction, each fma calls a function. Results are the same. */
const char *cpu_machine(void) {
#ifdef __x86_64__
        if (__builtin_cpu_supports("fma"))
                return "-mfma";
#endif
        return "-w";
}

static int compile(const Request *request, const Cpu *cpu, Result *result) {
        const char *const argv[] = {
                cpu->compiler,
                "-std=gnu11",
                request->checked
                        ? "-O1"
                        : "-O2", /* checks are many, and then the compiler's time counts more */
                "-w",
                "-ffp-contract=off",
                cpu_machine(),
                GPUQ_CPU_COMPILE_FLAGS,
                "-I",
                request->libexec,
                "-x",
                "c",
                cpu->source,
                "-o",
                cpu->image,
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

static int take_image(const Cpu *cpu, const Ptx *ptx, Result *result) {
        _cleanup_(freep) char *image = NULL;
        size_t n_image;
        int r;

        r = backend_read_file(cpu->image, &image, &n_image);
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

/* @described: the PTX that the signature is read from. */
static int compile_ptx(const Request *request, const Ptx *ptx, const Ptx *described,
                       Result *result) {
        static const char *const compilers[] = {"clang", "cc", "gcc", NULL};
        _cleanup_(cpu_finish) Cpu cpu = {};
        _cleanup_(freep) char *source = NULL;
        int r;

        r = translate(request, result, ptx, &source);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        r = process_find(compilers, &cpu.compiler);
        if (r == -ENOENT)
                return result_fail(
                        result, COMPILED_NO_COMPILER,
                        "cannot compile for the CPU: no C compiler found; install clang");
        if (r < 0)
                return r;

        cpu.source = request_path(request->work, "module.c");
        cpu.image = request_path(request->work, "image.so");
        if (!cpu.source || !cpu.image)
                return -ENOMEM;
        r = backend_write_file(cpu.source, source, strlen(source));
        if (r == 0)
                r = compile(request, &cpu, result);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        return take_image(&cpu, described, result);
}

/* What the driver cannot run is found first, as only the text without checks has the user's lines. */
static int compile_checked(const Request *request, const Ptx *ptx, Result *result) {
        _cleanup_(checked_finish) Checked checked = {};
        _cleanup_(freep) char *source = NULL;
        int r;

        r = translate(request, result, ptx, &source);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        r = check_ptx(request, result, ptx->text, ptx->n_text, &checked);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        r = compile_ptx(request, &(Ptx){checked.text, checked.n_text}, ptx, result);
        if (r == 0 && result->status == COMPILED_OK)
                check_take_sites(result, &checked);
        return r;
}

/* What the driver cannot run is found first, as for a checked image. */
static int compile_fenced(const Request *request, const Ptx *ptx, Result *result) {
        _cleanup_(fenced_finish) Fenced fenced = {};
        _cleanup_(freep) char *source = NULL;
        int r;

        r = translate(request, result, ptx, &source);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        r = fence_ptx(request, result, ptx->text, ptx->n_text, &fenced);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        r = compile_ptx(request, &(Ptx){fenced.text, fenced.n_text}, ptx, result);
        if (r == 0 && result->status == COMPILED_OK)
                result->flags |= COMPILED_IS_FENCED;
        return r;
}

int cpu_compile_ptx(const Request *request, const Ptx *ptx, Result *result) {
        _cleanup_(freep) char *call = device_runtime_call(ptx->text, ptx->n_text);

        if (call)
                return result_fail(result, COMPILED_FAILED,
                                   "%s: %s, which works on GPUs, but not on the CPU driver",
                                   request->name, call);
        if (request->checked)
                return compile_checked(request, ptx, result);
        return request->fenced ? compile_fenced(request, ptx, result)
                               : compile_ptx(request, ptx, ptx, result);
}

static void ptx_finish(Ptx *ptx) {
        free(ptx->text);
}

int cpu_compile(const Request *request, Result *result) {
        const Ptx given = {request->image, strnlen(request->image, request->n_image)};
        _cleanup_(ptx_finish) Ptx made = {};
        int r;

        if (request->format == FORMAT_PTX)
                return cpu_compile_ptx(request, &given, result);

        r = source_compile(request, result, &made);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        return cpu_compile_ptx(request, &made, result);
}
