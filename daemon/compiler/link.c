/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link
 *
 * PTX or a fatbin to a cubin: by nvJitLink, which needs no GPU, or by the driver's own linker in a
 * context of this short-lived process.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "compiler/backend.h"
#include "compiler/batch_rewrite.h"
#include "compiler/bound.h"
#include "compiler/device_runtime.h"
#include "compiler/options.h"
#include "driver/driver.h"
#include "util/open_library.h"

#define LOG_BYTES (64u << 10)

typedef struct Input {
        Format format; /* FORMAT_PTX, FORMAT_FATBIN or FORMAT_CUBIN */
        const void *image;
        size_t n_image;
        char *library; /* the device runtime (device_runtime.h), or NULL */
        size_t n_library;
} Input;

static void input_finish(Input *input) {
        free(input->library);
}

/* ---- nvJitLink ---------------------------------------------------------------- */

enum {
        NVJITLINK_CUBIN = 1,
        NVJITLINK_PTX = 2,
        NVJITLINK_FATBIN = 4,
        NVJITLINK_LIBRARY = 6,
};

typedef void *Linker;

/* Every function gives 0 on success. */
typedef struct NvJitLink {
        int (*create)(Linker *, uint32_t n_options, const char **options);
        int (*destroy)(Linker *);
        int (*add)(Linker, int type, const void *data, size_t n_data, const char *name);
        int (*complete)(Linker);
        int (*cubin_size)(Linker, size_t *);
        int (*cubin)(Linker, void *);
        int (*log_size)(Linker, size_t *);
        int (*log)(Linker, char *);
} NvJitLink;

static int nvjitlink_open(const Request *request, NvJitLink *ret_link) {
        static const char *const names[] = {"libnvJitLink.so.14", "libnvJitLink.so.13",
                                            "libnvJitLink.so.12", NULL};
        void *library = open_library(request->libraries, names);
        NvJitLink link;
        const struct {
                const char *name;
                void *to;
        } symbols[] = {
                {"nvJitLinkCreate", &link.create},
                {"nvJitLinkDestroy", &link.destroy},
                {"nvJitLinkAddData", &link.add},
                {"nvJitLinkComplete", &link.complete},
                {"nvJitLinkGetLinkedCubinSize", &link.cubin_size},
                {"nvJitLinkGetLinkedCubin", &link.cubin},
                {"nvJitLinkGetErrorLogSize", &link.log_size},
                {"nvJitLinkGetErrorLog", &link.log},
        };

        if (!library)
                return BACKEND_E_MISSING;

        for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
                void *symbol = dlsym(library, symbols[i].name);

                if (!symbol)
                        return BACKEND_E_MISSING;
                memcpy(symbols[i].to, &symbol, sizeof(symbol));
        }

        *ret_link = link;
        return 0;
}

static int nvjitlink_failed(const NvJitLink *link, Linker linker, Result *result, int error) {
        _cleanup_(freep) char *log = NULL;
        size_t n = 0;

        if (link->log_size(linker, &n))
                n = 0;
        log = calloc(1, n + 1);
        if (!log)
                return -ENOMEM;
        if (n > 0 && link->log(linker, log))
                *log = '\0';
        if (!*log)
                return result_fail(result, COMPILED_FAILED, "nvJitLink failed with error %d",
                                   error);
        return result_fail(result, COMPILED_FAILED, "%s", log);
}

static int nvjitlink_take(const NvJitLink *link, Linker linker, Result *result) {
        _cleanup_(freep) void *cubin = NULL;
        size_t n = 0;

        if (link->cubin_size(linker, &n) || n == 0)
                return result_fail(result, COMPILED_INTERNAL, "nvJitLink produced no cubin");

        cubin = malloc(n);
        if (!cubin)
                return -ENOMEM;
        if (link->cubin(linker, cubin))
                return result_fail(result, COMPILED_INTERNAL, "nvJitLink returned no cubin");

        free(result->image);
        result->image = TAKE_PTR(cubin);
        result->n_image = n;
        return 0;
}

/*
 * A letter in its target (".target sm_90a") marks PTX that uses instructions of one architecture;
 * it links only for that one. For PTX of another architecture the linker reports the error.
 */
static char ptx_letter(const char *ptx, size_t n_ptx, unsigned sm) {
        const char *target = memmem(ptx, n_ptx, ".target", strlen(".target"));
        char wanted[16];
        size_t n;

        if (!target)
                return '\0';

        target += strlen(".target");
        n = n_ptx - (target - ptx);
        while (n > 0 && (*target == ' ' || *target == '\t')) {
                ++target;
                --n;
        }
        snprintf(wanted, sizeof(wanted), "sm_%u", sm);
        if (n <= strlen(wanted) || strncmp(target, wanted, strlen(wanted)))
                return '\0';

        target += strlen(wanted);
        return *target == 'a' || *target == 'f' ? *target : '\0';
}

#define NVJITLINK_OPTIONS_MAX 4u

typedef struct NvJitLinkOptions {
        char architecture[24], registers[32];
        const char *options[NVJITLINK_OPTIONS_MAX];
        uint32_t n_options;
} NvJitLinkOptions;

static void nvjitlink_options(const Request *request, char letter, NvJitLinkOptions *ret) {
        unsigned registers = options_registers(request->options, request->n_options);

        snprintf(ret->architecture, sizeof(ret->architecture), "-arch=sm_%u%.1s", request->sm,
                 &letter);
        ret->options[0] = ret->architecture;
        ret->n_options = 1;
        if (registers) {
                snprintf(ret->registers, sizeof(ret->registers), "-maxrregcount=%u", registers);
                ret->options[ret->n_options++] = ret->registers;
        }
        if (options_line_info(request->options, request->n_options))
                ret->options[ret->n_options++] = "-lineinfo";
        if (options_debug(request->options, request->n_options))
                ret->options[ret->n_options++] = "-g";
}

static int nvjitlink_type(Format format) {
        if (format == FORMAT_PTX)
                return NVJITLINK_PTX;
        return format == FORMAT_CUBIN ? NVJITLINK_CUBIN : NVJITLINK_FATBIN;
}

static int nvjitlink_run(const NvJitLink *link, const Request *request, Result *result,
                         const Input *input) {
        NvJitLinkOptions options;
        char letter = '\0';
        Linker linker = NULL;
        struct rlimit before;
        int r;

        /* A device that this version does not know is left to the driver. */
        if (input->format == FORMAT_PTX)
                letter = ptx_letter(input->image, input->n_image, request->sm);
        nvjitlink_options(request, letter, &options);
        if (link->create(&linker, options.n_options, options.options))
                return BACKEND_E_MISSING;

        before = bound_begin(request->memory_mib);
        r = link->add(linker, nvjitlink_type(input->format), input->image, input->n_image,
                      request->name);
        if (!r && input->library)
                r = link->add(linker, NVJITLINK_LIBRARY, input->library, input->n_library,
                              "libcudadevrt.a");
        if (!r)
                r = link->complete(linker);
        bound_end(&before);
        r = r ? nvjitlink_failed(link, linker, result, r) : nvjitlink_take(link, linker, result);
        (void)link->destroy(&linker);
        return r;
}

/* ---- the driver ---------------------------------------------------------------- */

typedef struct DriverLink {
        Driver *driver;
        CUcontext context;
        CUlinkState state;
        char log[LOG_BYTES];
} DriverLink;

static int driver_failed(const DriverLink *link, Result *result, const char *what, CUresult error) {
        const char *name = NULL, *text = NULL;

        if (*link->log)
                return result_fail(result, COMPILED_FAILED, "%s", link->log);

        (void)link->driver->cuGetErrorName(error, &name);
        (void)link->driver->cuGetErrorString(error, &text);
        return result_fail(result, COMPILED_INTERNAL, "%s: %s: %s", what, name ? name : "?",
                           text ? text : "?");
}

static CUresult driver_context(DriverLink *link, int ordinal) {
        CUdevice device;
        CUresult error;

        error = link->driver->cuInit(0);
        if (!error)
                error = link->driver->cuDeviceGet(&device, ordinal);
        if (!error)
                error = link->driver->cuCtxCreate(&link->context, 0, device);
        return error;
}

static CUjitInputType driver_type(Format format) {
        if (format == FORMAT_PTX)
                return CU_JIT_INPUT_PTX;
        return format == FORMAT_CUBIN ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_FATBINARY;
}

/* The driver wants the zero byte behind PTX counted. */
static CUresult driver_add(DriverLink *link, const Request *request, const Input *input) {
        size_t n_image = input->n_image + (input->format == FORMAT_PTX);
        CUresult error;

        error = link->driver->cuLinkAddData(link->state, driver_type(input->format),
                                            (void *)input->image, n_image, request->name, 0, NULL,
                                            NULL);
        if (error || !input->library)
                return error;
        return link->driver->cuLinkAddData(link->state, CU_JIT_INPUT_LIBRARY, input->library,
                                           input->n_library, "libcudadevrt.a", 0, NULL, NULL);
}

static int driver_link(DriverLink *link, const Request *request, Result *result,
                       const Input *input) {
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void *values[] = {link->log, (void *)(uintptr_t)(sizeof(link->log) - 1)};
        size_t n_cubin;
        CUresult error;
        void *cubin;

        error = link->driver->cuLinkCreate(ARRAY_SIZE(options), options, values, &link->state);
        if (error)
                return driver_failed(link, result, "cuLinkCreate", error);

        error = driver_add(link, request, input);
        if (!error)
                error = link->driver->cuLinkComplete(link->state, &cubin, &n_cubin);
        if (error)
                return driver_failed(link, result, "linking", error);

        return result_set_image(result, cubin, n_cubin);
}

static int driver_run(const Request *request, Result *result, const Input *input) {
        _cleanup_(freep) DriverLink *link = calloc(1, sizeof(*link));
        const char *problem = NULL;
        CUresult error;
        int r;

        if (!link)
                return -ENOMEM;

        r = driver_open("libcuda.so.1", &link->driver, &problem);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return result_fail(result, COMPILED_NO_COMPILER,
                                   "cannot link PTX: nvJitLink is not installed, and the GPU "
                                   "driver cannot be used: %s",
                                   problem);

        error = driver_context(link, request->device);
        if (error)
                r = driver_failed(link, result, "creating a context to link in", error);
        else
                r = driver_link(link, request, result, input);

        if (link->state)
                (void)link->driver->cuLinkDestroy(link->state);
        if (link->context)
                (void)link->driver->cuCtxDestroy(link->context);
        link->driver = driver_close(link->driver);
        return r;
}

/* @nvjitlink: NULL: it is not installed. */
static int link_input(const NvJitLink *nvjitlink, const Request *request, Result *result,
                      const Input *input) {
        int r;

        r = nvjitlink ? nvjitlink_run(nvjitlink, request, result, input) : BACKEND_E_MISSING;
        if (r != BACKEND_E_MISSING)
                return r;
        if (!request->cuda_driver)
                return result_fail(result, COMPILED_NO_COMPILER,
                                   "cannot link PTX: libnvJitLink.so is not installed or does not "
                                   "support sm_%u; install a newer CUDA Toolkit",
                                   request->sm);

        return driver_run(request, result, input);
}

/* What a fatbin calls is told by the linker only. */
static int link_fatbin(const NvJitLink *nvjitlink, const Request *request, Result *result,
                       Input *input) {
        int r;

        r = link_input(nvjitlink, request, result, input);
        if (r < 0 || result->status != COMPILED_FAILED || !device_runtime_is_missing(result->log))
                return r;

        result_retry(result);
        r = device_runtime_read(request, result, &input->library, &input->n_library);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        return link_input(nvjitlink, request, result, input);
}

int link_image(const Request *request, Result *result, Format format, const void *image,
               size_t n_image) {
        _cleanup_(input_finish)
                Input input = {.format = format, .image = image, .n_image = n_image};
        _cleanup_(freep) char *call = NULL;
        NvJitLink link, *nvjitlink;
        int r = 0;

        nvjitlink = nvjitlink_open(request, &link) ? NULL : &link;
        if (format == FORMAT_FATBIN)
                return link_fatbin(nvjitlink, request, result, &input);

        if (format == FORMAT_PTX)
                call = device_runtime_call(image, n_image);
        if (call || format == FORMAT_CUBIN)
                r = device_runtime_read(request, result, &input.library, &input.n_library);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        return link_input(nvjitlink, request, result, &input);
}

/* ---- twins ------------------------------------------------------------------------ */

/* A failure that the text did not cause may not happen again. */
static void take_twins(Result *result, Result *twins) {
        if (twins->status != COMPILED_OK) {
                result->uncacheable = twins->status == COMPILED_INTERNAL;
                return;
        }

        free(result->image);
        result->image = TAKE_PTR(twins->image);
        result->n_image = twins->n_image;
        result->flags |= COMPILED_HAS_TWINS;
}

int link_twins(const Request *request, Result *result, const char *ptx, size_t n_ptx) {
        _cleanup_(result_freep) Result *twins = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t n_text;
        int r;

        if (request->plain)
                return 0;
        r = batch_rewrite(ptx, n_ptx, &text, &n_text);
        if (r <= 0)
                return r;

        r = result_new(&twins);
        if (r == 0)
                r = link_image(request, twins, FORMAT_PTX, text, n_text);
        if (r < 0)
                return r;

        take_twins(result, twins);
        return twins->status == COMPILED_OK;
}

int link_ptx(const Request *request, Result *result, const char *ptx, size_t n_ptx) {
        int r = link_twins(request, result, ptx, n_ptx);

        if (r)
                return MIN(r, 0);
        return link_image(request, result, FORMAT_PTX, ptx, n_ptx);
}
