/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/module.h"

#include <dlfcn.h>
#include <string.h>

#include "driver/cpu/api.h"
#include "driver/cpu/print.h"
#include "driver/cpu/range.h"
#include "driver/cpu/stream.h"
#include "util/macro.h"

#define MODULE_MAGIC 0x6d6f6475u

static void module_forget_variables(Module *module) {
        Range range;

        for (size_t i = 0; i < module->n_variables; i++) {
                range_remove((uintptr_t)module->variables[i].address, RANGE_VARIABLE, &range);
                free(module->variables[i].name);
        }
        free(module->variables);
}

void module_free(Module *module) {
        if (module->context)
                LIST_REMOVE(module, link);
        module_forget_variables(module);
        if (module->handle)
                dlclose(module->handle);
        closep(&module->fd);
        for (size_t i = 0; i < module->n_functions; i++)
                if (module->functions[i].kernel)
                        free((void *)module->functions[i].entry); /* a twin's own */
        free(module->functions);
        module->magic = 0;
        free(module);
}

void module_add(Module *module, Context *context) {
        module->magic = MODULE_MAGIC;
        pthread_mutex_lock(&context->lock);
        module->context = context;
        LIST_INSERT_HEAD(&context->modules, module, link);
        pthread_mutex_unlock(&context->lock);
}

/* ---- using it -------------------------------------------------------------------- */

static CUresult module_enter(Module *module, Context **ret_context) {
        CUresult r;

        r = context_enter(ret_context);
        if (r)
                return r;

        return module && module->magic == MODULE_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleUnload(CUmodule module) {
        Context *context;
        CUresult r;

        r = module_enter(module, &context);
        if (r)
                return r;
        r = stream_drain(module->context);
        if (r)
                return r;

        print_flush(module->context->print);
        pthread_mutex_lock(&context->lock);
        LIST_REMOVE(module, link);
        module->context = NULL;
        pthread_mutex_unlock(&context->lock);
        module_free(module);
        return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *ret_function, CUmodule module, const char *name) {
        Context *context;
        CUresult r;

        r = module_enter(module, &context);
        if (r)
                return r;
        if (!ret_function || !name)
                return CUDA_ERROR_INVALID_VALUE;

        for (size_t i = 0; i < module->n_functions; i++)
                if (strcmp(module->functions[i].entry->name, name) == 0) {
                        *ret_function = &module->functions[i];
                        return CUDA_SUCCESS;
                }

        return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *ret_pointer, size_t *ret_bytes, CUmodule module,
                              const char *name) {
        Context *context;
        CUresult r;

        r = module_enter(module, &context);
        if (r)
                return r;
        if (!name || (!ret_pointer && !ret_bytes))
                return CUDA_ERROR_INVALID_VALUE;

        for (size_t i = 0; i < module->n_variables; i++) {
                if (strcmp(module->variables[i].name, name) != 0)
                        continue;
                if (ret_pointer)
                        *ret_pointer = (CUdeviceptr)module->variables[i].address;
                if (ret_bytes)
                        *ret_bytes = module->variables[i].size;
                return CUDA_SUCCESS;
        }

        return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned int *ret_count, CUmodule module) {
        Context *context;
        CUresult r;

        r = module_enter(module, &context);
        if (r)
                return r;
        if (!ret_count)
                return CUDA_ERROR_INVALID_VALUE;

        *ret_count = (unsigned)module->n_functions;
        return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int n_functions,
                                    CUmodule module) {
        Context *context;
        CUresult r;

        r = module_enter(module, &context);
        if (r)
                return r;
        if (!functions || !n_functions)
                return CUDA_ERROR_INVALID_VALUE;

        for (size_t i = 0; i < MIN(n_functions, module->n_functions); i++)
                functions[i] = &module->functions[i];
        return CUDA_SUCCESS;
}
