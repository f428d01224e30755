/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVRTC
 *
 * NVIDIA's runtime compiler, loaded if it is installed. Compiling for a real architecture gives
 * the cubin and, from the same run, the PTX that describes the kernels' parameters. A device newer
 * than NVRTC gets PTX for the linker.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "compiler/backend.h"
#include "compiler/bound.h"
#include "compiler/device_runtime.h"
#include "compiler/headers.h"
#include "compiler/named.h"
#include "compiler/options.h"
#include "compiler/remedy.h"
#include "util/open_library.h"

#define ARCHITECTURES_MAX 64
#define OPTIONS_MAX       600u /* twice those of a client, for folders and macros, and ours */
#define CPU_ARCHITECTURE  90u  /* whose features the CPU driver has */

typedef void *Program;

/* Every function gives 0 on success. */
typedef struct Nvrtc {
        int (*create)(Program *, const char *source, const char *name, int n_headers,
                      const char *const *headers, const char *const *names);
        int (*compile)(Program, int n_options, const char *const *options);
        int (*destroy)(Program *);
        int (*log_size)(Program, size_t *);
        int (*log)(Program, char *);
        int (*ptx_size)(Program, size_t *);
        int (*ptx)(Program, char *);
        int (*cubin_size)(Program, size_t *);
        int (*cubin)(Program, char *);
        int (*add_name)(Program, const char *expression);
        int (*lowered)(Program, const char *expression, const char **symbol);
        int (*n_architectures)(int *);
        int (*architectures)(int *);
        const char *(*error)(int);
} Nvrtc;

static int nvrtc_open(const Request *request, Nvrtc *ret_nvrtc) {
        static const char *const names[] = {"libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12",
                                            NULL};
        void *library = open_library(request->libraries, names);
        Nvrtc nvrtc;
        const struct {
                const char *name;
                void *to;
        } symbols[] = {
                {"nvrtcCreateProgram", &nvrtc.create},
                {"nvrtcCompileProgram", &nvrtc.compile},
                {"nvrtcDestroyProgram", &nvrtc.destroy},
                {"nvrtcGetProgramLogSize", &nvrtc.log_size},
                {"nvrtcGetProgramLog", &nvrtc.log},
                {"nvrtcGetPTXSize", &nvrtc.ptx_size},
                {"nvrtcGetPTX", &nvrtc.ptx},
                {"nvrtcGetCUBINSize", &nvrtc.cubin_size},
                {"nvrtcGetCUBIN", &nvrtc.cubin},
                {"nvrtcAddNameExpression", &nvrtc.add_name},
                {"nvrtcGetLoweredName", &nvrtc.lowered},
                {"nvrtcGetNumSupportedArchs", &nvrtc.n_architectures},
                {"nvrtcGetSupportedArchs", &nvrtc.architectures},
                {"nvrtcGetErrorString", &nvrtc.error},
        };

        if (!library)
                return BACKEND_E_MISSING;

        for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
                void *symbol = dlsym(library, symbols[i].name);

                if (!symbol)
                        return BACKEND_E_MISSING;
                memcpy(symbols[i].to, &symbol, sizeof(symbol));
        }

        *ret_nvrtc = nvrtc;
        return 0;
}

/* The newest architecture that it knows and the device can run; 0 if there is none. */
static int best_architecture(const Nvrtc *nvrtc, unsigned sm) {
        int known[ARCHITECTURES_MAX], n = 0, best = 0;

        if (nvrtc->n_architectures(&n) || n > ARCHITECTURES_MAX || nvrtc->architectures(known))
                return 0;

        for (int i = 0; i < n; i++)
                if (known[i] <= (int)sm && known[i] > best)
                        best = known[i];

        return best;
}

/* The toolkit's headers, beside its library; the last is that of NVIDIA's Python packages. */
static char *find_include(const Nvrtc *nvrtc) {
        static const char *const relative[] = {"../include", "../../include",
                                               "../targets/x86_64-linux/include",
                                               "../../cuda_runtime/include"};
        Dl_info info;
        int n;

        if (!dladdr((void *)nvrtc->create, &info) || !strrchr(info.dli_fname, '/'))
                return NULL;

        n = strrchr(info.dli_fname, '/') - info.dli_fname;
        for (size_t i = 0; i < ARRAY_SIZE(relative); i++) {
                _cleanup_(freep) char *header = NULL, *option = NULL;

                if (asprintf(&option, "-I%.*s/%s", n, info.dli_fname, relative[i]) < 0 ||
                    asprintf(&header, "%s/cuda_runtime.h", option + 2) < 0)
                        return NULL;
                if (access(header, R_OK) == 0)
                        return TAKE_PTR(option);
        }
        return NULL;
}

/* CUB, libcu++ and Thrust, which lie in a folder of their own: from CUDA 13 on below the toolkit's, of the Python packages
 * for CUDA 12 beside it. */
static int find_cccl(const char *toolkit, char **ret_option) {
        _cleanup_(freep) char *beside = NULL;

        if (asprintf(&beside, "%s/../../cuda_cccl/include", toolkit) < 0)
                return -ENOMEM;
        if (access(beside + strlen("-I"), R_OK) == 0) {
                *ret_option = TAKE_PTR(beside);
                return 0;
        }
        return asprintf(ret_option, "%s/cccl", toolkit) < 0 ? -ENOMEM : 0;
}

/* How a program is compiled at first, and again for some errors. */
typedef struct Attempt {
        const char *first_header;
        int best;        /* architecture */
        bool is_known;   /* the device's, so that there is a cubin */
        bool calls;      /* the device runtime, which a linker adds */
        bool all_device; /* functions of the host are the device's */
        char *errors;    /* before what may not have been lacking was added; NULL: it was not */
} Attempt;

static void attempt_finish(Attempt *attempt) {
        free(attempt->errors);
}

static int compile(const Nvrtc *nvrtc, Program program, const Request *request,
                   const Attempt *attempt) {
        _cleanup_(freep) char *toolkit = find_include(nvrtc), *cccl = NULL, *include = NULL,
                              *before_toolkit = NULL;
        _cleanup_(headers_free_optionsp) char **folders = NULL;
        unsigned registers = options_registers(request->options, request->n_options);
        const char *options[OPTIONS_MAX];
        char architecture[40], standard[32], most[40];
        struct rlimit before;
        size_t n = 0;
        int r;

        if (asprintf(&include, "-I%s/include", request->libexec) < 0 ||
            asprintf(&before_toolkit, "-I%s/include/nvrtc", request->libexec) < 0)
                return -ENOMEM;
        r = toolkit ? find_cccl(toolkit, &cccl) : 0;
        if (r == 0)
                r = headers_options(request, &folders);
        if (r < 0)
                return r;

        snprintf(standard, sizeof(standard), "-std=c++%u",
                 options_standard(request->options, request->n_options, 0) ?: 17);
        snprintf(architecture, sizeof(architecture), "--gpu-architecture=%s_%d",
                 attempt->is_known && !attempt->calls ? "sm" : "compute", attempt->best);
        options[n++] = architecture;
        options[n++] = standard;
        if (attempt->calls)
                options[n++] = "--extensible-whole-program";
        for (char **folder = folders; *folder; folder++)
                options[n++] = *folder;
        if (toolkit) {
                options[n++] = before_toolkit;
                options[n++] = toolkit;
                options[n++] = cccl;
        }
        options[n++] = include;
        options[n++] = attempt->first_header;
        if (attempt->all_device) {
                options[n++] = "-default-device";
                options[n++] = "--pre-include=gpuq_all_device.h";
        }
        if (!request->sm)
                options[n++] = "-D__GPUQ_CPU__=1";
        if (options_fast_math(request->options, request->n_options))
                options[n++] = "--use_fast_math";
        if (request->sm && registers) {
                snprintf(most, sizeof(most), "--maxrregcount=%u", registers);
                options[n++] = most;
        }
        if (request->checked ||
            (request->sm && options_line_info(request->options, request->n_options)))
                options[n++] = "-lineinfo";
        if (request->sm && options_debug(request->options, request->n_options))
                options[n++] = "-G";
        for (size_t i = 0; i < request->n_options && n < OPTIONS_MAX; i++)
                if (options_is_macro(request->options[i]) ||
                    options_is_switch(request->options[i]) ||
                    options_is_int128(request->options[i]))
                        options[n++] = request->options[i];

        before = bound_begin(request->memory_mib);
        r = nvrtc->compile(program, n, options);
        bound_end(&before);
        return r;
}

static char *get_log(const Nvrtc *nvrtc, Program program) {
        size_t n = 0;
        char *log;

        if (nvrtc->log_size(program, &n) || n == 0)
                return strdup("");

        log = calloc(1, n + 1);
        if (log && nvrtc->log(program, log))
                *log = '\0';
        return log;
}

typedef int (*GetSize)(Program, size_t *);
typedef int (*GetData)(Program, char *);

/* @ret_n is 0 when there is none. */
static int get_output(Program program, GetSize get_size, GetData get_data, char **ret,
                      size_t *ret_n) {
        _cleanup_(freep) char *data = NULL;
        size_t n = 0;

        if (get_size(program, &n))
                n = 0;
        data = calloc(1, n + 1);
        if (!data)
                return -ENOMEM;
        if (n > 0 && get_data(program, data))
                n = 0;

        *ret = TAKE_PTR(data);
        *ret_n = n;
        return 0;
}

static int take_output(const Nvrtc *nvrtc, Program program, Result *result, Ptx *ret_ptx) {
        _cleanup_(freep) char *cubin = NULL;
        size_t n_cubin;
        int r;

        r = get_output(program, nvrtc->cubin_size, nvrtc->cubin, &cubin, &n_cubin);
        if (r < 0)
                return r;

        r = get_output(program, nvrtc->ptx_size, nvrtc->ptx, &ret_ptx->text, &ret_ptx->n_text);
        if (r < 0)
                return r;

        ret_ptx->n_text = strnlen(ret_ptx->text, ret_ptx->n_text);
        if (n_cubin > 0) {
                result->image = TAKE_PTR(cubin);
                result->n_image = n_cubin;
        }
        return 0;
}

static int add_names(const Nvrtc *nvrtc, Program program, const Request *request) {
        for (size_t i = 0; i < request->n_kernels; i++)
                if (named_is_expression(request->kernels[i]) &&
                    nvrtc->add_name(program, request->kernels[i]))
                        return -ENOMEM;
        return 0;
}

/* The program keeps the symbols only until it is destroyed. */
static int take_names(const Nvrtc *nvrtc, Program program, const Request *request, Result *result) {
        const char *symbol;
        int r = 0;

        for (size_t i = 0; r == 0 && i < request->n_kernels; i++)
                if (named_is_expression(request->kernels[i]) &&
                    nvrtc->lowered(program, request->kernels[i], &symbol) == 0)
                        r = result_name(result, request->n_kernels, i, symbol, strlen(symbol));
        return r;
}

/* Whether the first error is in a name, which NVRTC compiles in a text of its own and shows. */
static bool is_name_error(const Request *request, char *log, const char **ret_name,
                          const char **ret_why) {
        static const char place[] = "__nv_name_map(", pragma[] = "#pragma nv_mangled_name ";
        char *error = strstr(log, ": error: "), *line = error, *name, *end;

        while (line && line > log && line[-1] != '\n')
                line--;
        if (!line || strncmp(line, place, strlen(place)) != 0)
                return false;
        name = strstr(error, pragma);
        if (!name)
                return false;
        name += strlen(pragma);
        end = name + strcspn(name, "\n");
        error += strlen(": error: ");
        *end = error[strcspn(error, "\n")] = '\0';

        for (size_t i = 0; i < request->n_kernels; i++)
                if (strcmp(request->kernels[i], name) == 0) {
                        *ret_name = request->kernels[i];
                        *ret_why = error;
                        return true;
                }
        return false;
}

/* The line of the first error. */
static int first_error(const char *log, const char **ret_line) {
        const char *line = strstr(log, ": error: ");

        while (line && line > log && line[-1] != '\n')
                line--;
        *ret_line = line ?: "";
        return (int)strcspn(*ret_line, "\n");
}

/* @log has the errors to show, and @last those with functions of the host as the device's; NULL: there are none. */
static int fail(const Request *request, Result *result, char *log, const char *last) {
        const char *name, *why, *line = "";
        _cleanup_(freep) char *copy = strdup(log);
        int n = last ? first_error(last, &line) : 0;

        if (!copy)
                return -ENOMEM;
        if (is_name_error(request, copy, &name, &why))
                return named_fail(request, result, name, why);
        return result_fail(result, COMPILED_FAILED, "%s%s%s%.*s", log, remedy(log),
                           n > 0 ? "\nAs the device's: " : "", n, line);
}

/* Not at first: a source may define these names itself, and as another type. */
static bool lacks_integers(const char *log) {
        static const char *const names[] = {"int8_t\" is undefined", "int16_t\" is undefined",
                                            "int32_t\" is undefined", "int64_t\" is undefined"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strstr(log, names[i]))
                        return true;
        return false;
}

/* Last of all: these headers have variables, too, and more names that a source may have of its own. */
static bool lacks_names(const char *log) {
        return strstr(log, "\" is undefined") || strstr(log, "namespace \"std\" has no member");
}

static const char header_types[] = "--pre-include=gpuq_types.h",
                  header_integers[] = "--pre-include=gpuq_integers.h",
                  header_standard[] = "--pre-include=gpuq_standard.h";

/* Return: whether what the errors say is lacking for sure has been added. */
static bool add_what_lacks(Attempt *attempt, const char *log) {
        if (attempt->first_header == header_types && lacks_integers(log)) {
                attempt->first_header = header_integers;
                return true;
        }
        /* Launches by functions of the host are not the device's. */
        if (!attempt->calls && !attempt->all_device && !remedy_is_of_host(log) &&
            device_runtime_is_wanted(log)) {
                attempt->calls = true;
                return true;
        }
        return false;
}

/* Return: whether something has been added that may help. */
static bool add_what_may_help(Attempt *attempt, const char *log) {
        if (attempt->first_header != header_standard && lacks_names(log)) {
                attempt->first_header = header_standard;
                return true;
        }
        if (!attempt->all_device && remedy_is_of_host(log)) {
                attempt->all_device = true;
                return true;
        }
        return false;
}

/* @log is taken if the next one may tell less. */
static bool try_again(Attempt *attempt, char **log) {
        if (!*log)
                return false;
        if (add_what_lacks(attempt, *log))
                return true;
        if (!add_what_may_help(attempt, *log))
                return false;
        if (!attempt->errors)
                attempt->errors = TAKE_PTR(*log);
        return true;
}

static int run(const Nvrtc *nvrtc, Program program, const Request *request, Result *result,
               int best, Ptx *ret_ptx) {
        _cleanup_(attempt_finish) Attempt attempt = {
                .first_header = header_types, .best = best, .is_known = best == (int)request->sm};
        _cleanup_(freep) char *log = NULL;
        int error, r;

        do {
                free(log);
                error = compile(nvrtc, program, request, &attempt);
                log = get_log(nvrtc, program);
        } while (error > 0 && try_again(&attempt, &log));
        if (!log || error < 0)
                return -ENOMEM;
        if (error && !*log)
                return result_fail(result, COMPILED_FAILED, "%s", nvrtc->error(error));
        if (error)
                return fail(request, result, attempt.errors ?: log,
                            attempt.all_device ? log : NULL);

        r = result_add_log(result, log);
        if (r == 0)
                r = take_names(nvrtc, program, request, result);
        if (r < 0)
                return r;
        return take_output(nvrtc, program, result, ret_ptx);
}

int nvrtc_compile(const Request *request, Result *result, Ptx *ret_ptx) {
        Program program = NULL;
        Nvrtc nvrtc;
        int r, best;

        r = nvrtc_open(request, &nvrtc);
        if (r)
                return r;

        best = best_architecture(&nvrtc, request->sm ?: CPU_ARCHITECTURE);
        if (!best)
                return BACKEND_E_MISSING;

        if (nvrtc.create(&program, request->image, request->name, 0, NULL, NULL))
                return -ENOMEM;

        r = add_names(&nvrtc, program, request);
        if (r == 0)
                r = run(&nvrtc, program, request, result, best, ret_ptx);
        (void)nvrtc.destroy(&program);
        return r;
}
