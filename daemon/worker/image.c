/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image
 */
#include "worker/image.h"

#include <stdio.h>
#include <string.h>

#include "compiler/batch.h"
#include "compiler/check.h"
#include "compiler/fence.h"
#include "util/kernel-name.h"
#include "util/symbol.h"

/* Bytes of names in a message. */
#define IMAGE_NAMES_MAX 2000

/* Kernels of one module. */
#define IMAGE_FUNCTIONS_MAX 65536

/* Parameters of one kernel: 4 KiB of them at most, 32 KiB on newer devices. */
#define IMAGE_PARAMETERS_MAX 32768

DEFINE_CLEANUP(Image, image_unload)

static int image_check(const Image *image, CUresult result, const char *what, Failure *failure) {
        return result_check(image->cu, result,
                            result == CUDA_ERROR_OUT_OF_MEMORY ? GPUQ__V1__CODE__E_MEMORY
                                                               : GPUQ__V1__CODE__E_IMAGE,
                            what, failure);
}

static const CompiledKernel *image_described(const Image *image, const char *symbol) {
        for (size_t i = 0; i < image->compiled->n_kernels; ++i)
                if (strcmp(image->compiled->kernels[i].symbol, symbol) == 0)
                        return &image->compiled->kernels[i];
        return NULL;
}

static size_t image_count_parameters(const Image *image, CUfunction function) {
        size_t n = 0, offset, size;

        while (n < IMAGE_PARAMETERS_MAX &&
               image->cu->cuFuncGetParamInfo(function, n, &offset, &size) == CUDA_SUCCESS)
                ++n;
        return n;
}

/* Bytes a value of a kind has, 0: any. */
static size_t image_kind_size(unsigned kind) {
        static const size_t sizes[] = {0, 8, 4, 8, 4, 8, 1, 2, 8};

        return kind < ARRAY_SIZE(sizes) ? sizes[kind] : 0;
}

/*
 * The kinds count only where they match what the driver reports about the kernel: they came from a child
 * that read a client's file.
 */
static void image_read_parameters(Image *image, Function *function, const CompiledKernel *kernel) {
        bool known = kernel && kernel->kinds_known && kernel->n_kinds == function->n_parameters;

        for (size_t i = 0; i < function->n_parameters; ++i) {
                FunctionParameter *parameter = &function->parameters[i];
                size_t kind_size;

                image->cu->cuFuncGetParamInfo(function->function, i, &parameter->offset,
                                              &parameter->size);
                function->n_parameter_bytes =
                        MAX(function->n_parameter_bytes, parameter->offset + parameter->size);
                parameter->kind = GPUQ__V1__KIND__BYTES;
                if (!known)
                        continue;
                kind_size = image_kind_size(kernel->kinds[i]);
                if (kind_size == 0 || kind_size == parameter->size)
                        parameter->kind = (Gpuq__V1__Kind)kernel->kinds[i];
                else
                        known = false;
        }

        if (!known)
                for (size_t i = 0; i < function->n_parameters; ++i)
                        function->parameters[i].kind = GPUQ__V1__KIND__BYTES;
        function->kinds_known = known || function->n_parameters == 0;
}

/* The last parameter, which users do not pass. */
static int image_take_fence(const Image *image, Function *function, Failure *failure) {
        FunctionParameter *fence = function->parameters + function->n_parameters - 1;

        if (!image->is_fenced)
                return 0;
        if (function->n_parameters > 0)
                image->cu->cuFuncGetParamInfo(function->function, function->n_parameters - 1,
                                              &fence->offset, &fence->size);
        if (function->n_parameters == 0 || fence->size != sizeof(Fence))
                return failure_set(failure, GPUQ__V1__CODE__E_IMAGE, "kernel %s has no fence",
                                   function->name);

        --function->n_parameters;
        function->is_fenced = true;
        function->n_parameter_bytes = fence->offset + fence->size;
        return 0;
}

static bool parameter_is_length(const FunctionParameter *parameter) {
        return parameter->kind == GPUQ__V1__KIND__I64;
}

/* As with the kinds: a text that does not fit the kernel is ignored. */
static void image_read_needs(Function *function, Need *needs) {
        if (need_parse(function->text, needs, function->n_parameters) == 0)
                return;
        for (size_t i = 0; i < function->n_parameters; ++i)
                for (size_t k = 0; k < needs[i].n_lengths; ++k)
                        if (!parameter_is_length(&function->parameters[needs[i].lengths[k]]))
                                return;
        function->needs = needs;
}

/* Loaded now, because at its first launch it would wait for running kernels. */
static void image_find_beside(const Function *function, const char *suffix, const Driver *cu,
                              CUmodule module, CUfunction *ret_beside, unsigned *ret_max_threads) {
        size_t n_name = strlen(function->symbol) + strlen(suffix) + 1;
        _cleanup_(freep) char *name = malloc(n_name);
        CUfunction beside;
        int max_threads;

        if (!name || function->n_parameter_bytes == 0)
                return;

        snprintf(name, n_name, "%s%s", function->symbol, suffix);
        if (cu->cuModuleGetFunction(&beside, module, name) != CUDA_SUCCESS ||
            cu->cuFuncLoad(beside) != CUDA_SUCCESS ||
            cu->cuFuncGetAttribute(&max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, beside) !=
                    CUDA_SUCCESS)
                return;

        *ret_beside = beside;
        *ret_max_threads = (unsigned)max_threads;
}

/* What some driver does not tell is 0. */
static unsigned image_attribute(const Image *image, CUfunction function,
                                CUfunction_attribute attribute) {
        int value;

        if (image->cu->cuFuncGetAttribute(&value, attribute, function) != CUDA_SUCCESS || value < 0)
                return 0;
        return (unsigned)value;
}

static void image_read_attributes(const Image *image, Function *function) {
        const CUfunction handle = function->function;

        function->static_shared =
                image_attribute(image, handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        function->dynamic_shared =
                image_attribute(image, handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        function->n_registers = image_attribute(image, handle, CU_FUNC_ATTRIBUTE_NUM_REGS);
        function->n_const = image_attribute(image, handle, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
        function->n_local = image_attribute(image, handle, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
        function->ptx_version = image_attribute(image, handle, CU_FUNC_ATTRIBUTE_PTX_VERSION);
        function->binary_version = image_attribute(image, handle, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
}

static int image_read_function(Image *image, Function *function, Failure *failure) {
        const Driver *cu = image->cu;
        const CompiledKernel *kernel;
        int max_threads, r;

        /* Loaded now, because at its first launch it would wait for running kernels. */
        r = image_check(image, cu->cuFuncLoad(function->function), "cuFuncLoad", failure);
        if (r)
                return r;
        r = image_check(image, cu->cuFuncGetName(&function->symbol, function->function),
                        "cuFuncGetName", failure);
        if (r)
                return r;
        r = image_check(image,
                        cu->cuFuncGetAttribute(&max_threads,
                                               CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                               function->function),
                        "cuFuncGetAttribute", failure);
        if (r)
                return r;

        function->checkable = image->checkable.address ? &image->checkable : NULL;
        function->may_launch = image->compiled->flags & COMPILED_HAS_LAUNCHES;
        kernel = image_described(image, function->symbol);
        function->name = kernel ? kernel->name : function->symbol;
        function->text = kernel ? kernel->text : "";
        function->max_threads = (unsigned)max_threads;
        image_read_attributes(image, function);
        r = image_take_fence(image, function, failure);
        if (r)
                return r;
        image_read_parameters(image, function, kernel);
        image_read_needs(function, image->needs + (function->parameters - image->parameters));
        if (image->has_twins)
                image_find_beside(function, BATCH_SUFFIX, cu, image->module, &function->twin,
                                  &function->twin_max_threads);
        if (image->is_fenced)
                image_find_beside(function, FENCE_ONE_RANGE, cu, image->module,
                                  &function->one_range, &function->one_range_max_threads);
        return 0;
}

static int image_make_functions(Image *image, CUfunction *handles, size_t n_handles) {
        FunctionParameter *parameters;
        size_t n_parameters = 0;

        image->functions = calloc(n_handles ? n_handles : 1, sizeof(*image->functions));
        if (!image->functions)
                return -ENOMEM;

        for (size_t i = 0; i < n_handles; ++i) {
                image->functions[i].function = handles[i];
                image->functions[i].n_parameters = image_count_parameters(image, handles[i]);
                n_parameters += image->functions[i].n_parameters;
        }

        parameters = calloc(n_parameters ? n_parameters : 1, sizeof(*parameters));
        if (!parameters)
                return -ENOMEM;
        image->parameters = parameters;
        image->needs = calloc(n_parameters ? n_parameters : 1, sizeof(*image->needs));
        if (!image->needs)
                return -ENOMEM;
        for (size_t i = 0; i < n_handles; ++i) {
                image->functions[i].parameters = parameters;
                parameters += image->functions[i].n_parameters;
        }

        image->n_functions = n_handles;
        return 0;
}

/* The kernels that users see, at the front of @handles. */
static int image_keep_public(const Image *image, CUfunction *handles, unsigned *n_handles,
                             Failure *failure) {
        unsigned n = 0;
        int r;

        for (unsigned i = 0; i < *n_handles; ++i) {
                const char *symbol;

                r = image_check(image, image->cu->cuFuncGetName(&symbol, handles[i]),
                                "cuFuncGetName", failure);
                if (r)
                        return r;
                if (!(image->has_twins && batch_is_name(symbol, strlen(symbol))) &&
                    !(image->is_fenced && fence_is_name(symbol, strlen(symbol))) &&
                    !symbol_is_internal(symbol))
                        handles[n++] = handles[i];
        }

        *n_handles = n;
        return 0;
}

static int image_read_functions(Image *image, Failure *failure) {
        _cleanup_(freep) CUfunction *handles = NULL;
        unsigned n_handles;
        int r;

        r = image_check(image, image->cu->cuModuleGetFunctionCount(&n_handles, image->module),
                        "cuModuleGetFunctionCount", failure);
        if (r)
                return r;
        if (n_handles > IMAGE_FUNCTIONS_MAX)
                return failure_set(failure, GPUQ__V1__CODE__E_IMAGE,
                                   "the module has %u kernels; the limit is %u", n_handles,
                                   IMAGE_FUNCTIONS_MAX);

        handles = calloc(n_handles + 1, sizeof(*handles));
        if (!handles)
                return -ENOMEM;
        if (n_handles > 0) {
                r = image_check(
                        image,
                        image->cu->cuModuleEnumerateFunctions(handles, n_handles, image->module),
                        "cuModuleEnumerateFunctions", failure);
                if (r)
                        return r;
        }
        r = image_keep_public(image, handles, &n_handles, failure);
        if (r)
                return r;

        r = image_make_functions(image, handles, n_handles);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_handles; ++i) {
                r = image_read_function(image, &image->functions[i], failure);
                if (r)
                        return r;
        }
        return 0;
}

static int image_read_variables(Image *image) {
        const Compiled *compiled = image->compiled;

        image->variables = calloc(compiled->n_variables + 1, sizeof(*image->variables));
        if (!image->variables)
                return -ENOMEM;

        for (size_t i = 0; i < compiled->n_variables; ++i) {
                Variable variable = {.name = compiled->variables[i]};

                if (image->cu->cuModuleGetGlobal(&variable.address, &variable.size, image->module,
                                                 variable.name) == CUDA_SUCCESS)
                        image->variables[image->n_variables++] = variable;
        }
        return 0;
}

static int image_find_checkable(Image *image, Failure *failure) {
        CUdeviceptr address;
        size_t size;
        int r;

        if (!(image->compiled->flags & COMPILED_IS_CHECKED))
                return 0;
        r = image_check(image,
                        image->cu->cuModuleGetGlobal(&address, &size, image->module, CHECK_NAME),
                        "cuModuleGetGlobal", failure);
        if (r)
                return r;
        if (size < sizeof(CheckVariable))
                return failure_set(failure, GPUQ__V1__CODE__E_IMAGE,
                                   "the module's variable " CHECK_NAME " is not of gpuq");

        image->checkable = (Checkable){.address = address, .sites = image->compiled->sites};
        return 0;
}

static int image_fill(Image *image, const Compiled *compiled, Failure *failure) {
        int r;

        r = image_check(image, image->cu->cuModuleLoadData(&image->module, compiled->image),
                        "cuModuleLoadData", failure);
        if (r)
                return r;
        r = image_find_checkable(image, failure);
        if (r)
                return r;
        r = image_read_functions(image, failure);
        if (r)
                return r;
        return image_read_variables(image);
}

int image_load(Context *context, Compiled *compiled, void *data, Image **ret_image,
               Failure *failure) {
        _cleanup_(image_unloadp) Image *image = NULL;
        int r;

        image = calloc(1, sizeof(*image));
        if (!image)
                return -ENOMEM;

        image->n_refs = 1;
        image->cu = context->cu;
        image->compiled = compiled;
        image->has_variables = compiled->flags & COMPILED_HAS_VARIABLES;
        image->has_printf = compiled->flags & COMPILED_HAS_PRINTF;
        image->has_twins = compiled->flags & COMPILED_HAS_TWINS;
        image->is_fenced = compiled->flags & COMPILED_IS_FENCED;

        r = image_fill(image, compiled, failure);
        if (r) {
                image->compiled = NULL; /* the caller's again */
                return r;
        }

        image->data = data;
        *ret_image = TAKE_PTR(image);
        return 0;
}

static void image_free_function(Function *function) {
        if (function->wide)
                free(function->wide->in_place);
        free(function->wide);
        free(function->in_place);
}

Image *image_unload(Image *image) {
        if (!image)
                return NULL;

        if (image->module)
                image->cu->cuModuleUnload(image->module);
        free(image->variables);
        free(image->parameters);
        free(image->needs);
        for (size_t i = 0; i < image->n_functions; ++i)
                image_free_function(&image->functions[i]);
        free(image->functions);
        compiled_free(image->compiled);
        free(image->data);
        free(image);
        return NULL;
}

static bool kernel_is_like(const CompiledKernel *a, const CompiledKernel *b) {
        return strcmp(a->symbol, b->symbol) == 0 && strcmp(a->name, b->name) == 0 &&
               strcmp(a->text, b->text) == 0 && a->kinds_known == b->kinds_known &&
               a->n_kinds == b->n_kinds && memcmp(a->kinds, b->kinds, a->n_kinds) == 0;
}

bool image_is_like(const Image *image, const Compiled *compiled) {
        const Compiled *own = image->compiled;
        const uint32_t flags = COMPILED_HAS_VARIABLES | COMPILED_HAS_PRINTF | COMPILED_HAS_TWINS |
                               COMPILED_IS_CHECKED;

        if (own->n_image != compiled->n_image || own->n_kernels != compiled->n_kernels ||
            own->n_variables != compiled->n_variables || ((own->flags ^ compiled->flags) & flags))
                return false;
        for (size_t i = 0; i < own->n_kernels; ++i)
                if (!kernel_is_like(&own->kernels[i], &compiled->kernels[i]))
                        return false;
        for (size_t i = 0; i < own->n_variables; ++i)
                if (strcmp(own->variables[i], compiled->variables[i]) != 0)
                        return false;
        return memcmp(own->image, compiled->image, own->n_image) == 0;
}

/* Names with commas between them, as many as fit. */
typedef struct NameList {
        char text[IMAGE_NAMES_MAX];
        size_t n;
        bool full;
} NameList;

static void name_list_add(NameList *list, const char *name) {
        size_t n = strlen(name);

        if (list->full)
                return;
        if (list->n + n + 8 > sizeof(list->text)) {
                strcpy(list->text + list->n, ", …");
                list->full = true;
                return;
        }
        list->n += (size_t)sprintf(list->text + list->n, "%s%s", list->n ? ", " : "", name);
}

static const char *image_function_name(const void *functions, size_t i) {
        return ((const Function *)functions)[i].name;
}

static const char *image_function_symbol(const void *functions, size_t i) {
        return ((const Function *)functions)[i].symbol;
}

static KernelNames image_names(const Image *image) {
        return (KernelNames){image->functions, image->n_functions, image_function_name,
                             image_function_symbol};
}

static int image_no_function(const Image *image, const char *name, bool ambiguous,
                             Failure *failure) {
        const KernelNames names = image_names(image);
        NameList list = {0};

        for (size_t i = 0; i < image->n_functions; ++i) {
                const Function *function = &image->functions[i];

                if (!ambiguous || kernel_name_may_be(&names, i, name))
                        name_list_add(&list, function->name);
        }

        if (ambiguous)
                return failure_set(failure, GPUQ__V1__CODE__E_NOT_FOUND,
                                   "kernel name %s is ambiguous; it may be one of %s", name,
                                   list.text);
        if (image->n_functions == 0)
                return failure_set(failure, GPUQ__V1__CODE__E_NOT_FOUND,
                                   "no kernel %s: the module has no kernels", name);
        return failure_set(failure, GPUQ__V1__CODE__E_NOT_FOUND,
                           "the module has no kernel %s; it has: %s", name, list.text);
}

int image_function(Image *image, const char *name, Function **ret_function, Failure *failure) {
        const KernelNames names = image_names(image);
        size_t i;
        int r;

        r = kernel_name_find(&names, name, &i);
        if (r)
                return image_no_function(image, name, r == KERNEL_NAME_E_AMBIGUOUS, failure);

        *ret_function = &image->functions[i];
        return 0;
}

CUfunction image_internal(const Image *image, const char *symbol) {
        CUfunction function;

        /* Loaded now, because at its first launch it would wait for running kernels. */
        if (image->cu->cuModuleGetFunction(&function, image->module, symbol) != CUDA_SUCCESS ||
            image->cu->cuFuncLoad(function) != CUDA_SUCCESS)
                return NULL;
        return function;
}

static const Variable *image_listed(const Image *image, const char *name) {
        for (size_t i = 0; i < image->n_variables; ++i)
                if (strcmp(image->variables[i].name, name) == 0 ||
                    symbol_matches(image->variables[i].name, name))
                        return &image->variables[i];
        return NULL;
}

static int image_no_variable(const Image *image, const char *name, Failure *failure) {
        NameList list = {0};

        for (size_t i = 0; i < image->n_variables; ++i)
                name_list_add(&list, image->variables[i].name);
        if (image->n_variables == 0)
                return failure_set(failure, GPUQ__V1__CODE__E_NOT_FOUND,
                                   "no variable %s: the module has no variables", name);
        return failure_set(failure, GPUQ__V1__CODE__E_NOT_FOUND,
                           "the module has no variable %s; it has: %s", name, list.text);
}

int image_variable(const Image *image, const char *name, bool write, Variable *ret_variable,
                   Failure *failure) {
        const Variable *listed = image_listed(image, name);
        Variable variable = {.name = name};

        if (listed && (!write || image->has_variables)) {
                *ret_variable = *listed;
                return 0;
        }

        /* Only writable ones are listed; the driver knows the others by symbol. */
        if (image->cu->cuModuleGetGlobal(&variable.address, &variable.size, image->module, name) !=
            CUDA_SUCCESS)
                return image_no_variable(image, name, failure);
        /* Other modules may have the same image. */
        if (write)
                return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                                   "variable %s is a constant and cannot be written", name);
        *ret_variable = variable;
        return 0;
}

int function_resident_blocks(Function *function, const Driver *cu, unsigned n_multiprocessors,
                             unsigned n_threads, unsigned n_shared, unsigned *ret_blocks,
                             Failure *failure) {
        int n_blocks, r;

        if (function->resident_threads != n_threads || function->resident_shared != n_shared) {
                r = result_check(cu,
                                 cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(
                                         &n_blocks, function->function, (int)n_threads, n_shared),
                                 GPUQ__V1__CODE__E_LAUNCH,
                                 "cuOccupancyMaxActiveBlocksPerMultiprocessor", failure);
                if (r)
                        return r;
                function->resident_threads = n_threads;
                function->resident_shared = n_shared;
                function->resident_blocks = (unsigned)n_blocks;
        }

        *ret_blocks = function->resident_blocks * n_multiprocessors;
        return 0;
}
