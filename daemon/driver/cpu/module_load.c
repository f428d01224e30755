/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a module
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "driver/cpu/api.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/module.h"
#include "driver/cpu/object.h"
#include "driver/cpu/range.h"
#include "driver/cpu/twin.h"
#include "util/macro.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u /* Linux 6.3 */
#endif

static inline void module_freep(Module **module) {
        if (*module)
                module_free(*module);
}

/* A file of this load alone, and its contents, which the caller unmaps. */
static int module_copy(const void *image, size_t size, void **ret_copy) {
        _cleanup_(closep) int fd = -1;
        void *copy;

        fd = memfd_create("gpuq-module", MFD_CLOEXEC | MFD_EXEC);
        if (fd < 0 && errno == EINVAL)
                fd = memfd_create("gpuq-module", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
                return -errno;

        copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (copy == MAP_FAILED)
                return -errno;

        memcpy(copy, image, size);
        *ret_copy = copy;
        return TAKE_FD(fd);
}

/*
 * dlopen() does not load a file again that it knows by name. Descriptors are reused, and an image
 * may stay in memory after dlclose(), so each load spells the same path differently.
 */
static void *module_open(int fd) {
        static _Atomic unsigned n_loads;
        unsigned number = n_loads++;
        char path[128] = "/proc/self/fd/";
        size_t n = strlen(path);

        for (; number; number >>= 1) {
                if (number & 1)
                        path[n++] = '.';
                path[n++] = '/';
        }
        snprintf(path + n, sizeof(path) - n, "%d", fd);
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static CUresult module_bind(Module *module) {
        GpuqCpuImage *image = dlsym(module->handle, GPUQ_CPU_IMAGE_SYMBOL);
        size_t n_functions;

        if (!image || image->version != GPUQ_CPU_IMAGE_VERSION || image->size != sizeof(*image))
                return CUDA_ERROR_INVALID_IMAGE;

        image->runtime = &engine_runtime;
        module->image = image;
        n_functions = (size_t)(image->entries_end - image->entries);
        module->functions = calloc(MAX(n_functions, 1), sizeof(*module->functions));
        if (!module->functions)
                return CUDA_ERROR_OUT_OF_MEMORY;

        module->n_functions = n_functions;
        for (size_t i = 0; i < n_functions; i++)
                module->functions[i] = (Function){
                        .magic = FUNCTION_MAGIC,
                        .module = module,
                        .entry = &image->entries[i],
                        .max_shared = DEVICE_SHARED,
                        .carveout = -1,
                };
        return CUDA_SUCCESS;
}

/* The copy in @image is read, not the user's, which may have changed meanwhile. */
static CUresult module_find_variables(Module *module, const void *image) {
        ModuleVariable *grown;
        size_t address, size;
        struct link_map *map;
        const char *name;

        if (dlinfo(module->handle, RTLD_DI_LINKMAP, &map) < 0)
                return CUDA_ERROR_INVALID_IMAGE;

        while (object_variable(image, module->n_variables, &name, &address, &size) ==
               CUDA_SUCCESS) {
                Range range = {map->l_addr + address, MAX(size, 1), RANGE_VARIABLE, module};
                ModuleVariable variable = {strdup(name), (void *)range.start, size};

                grown = realloc(module->variables,
                                (module->n_variables + 1) * sizeof(*module->variables));
                if (grown)
                        module->variables = grown;
                if (!grown || !variable.name || range_add(&range) < 0) {
                        free(variable.name);
                        return CUDA_ERROR_OUT_OF_MEMORY;
                }
                module->variables[module->n_variables++] = variable;
        }

        return CUDA_SUCCESS;
}

static CUresult module_open_copy(Module *module, const void *copy) {
        CUresult r;

        module->handle = module_open(module->fd);
        if (!module->handle)
                return CUDA_ERROR_INVALID_IMAGE;
        r = module_bind(module);
        if (r)
                return r;

        r = module_find_variables(module, copy);
        if (r)
                return r;

        return twin_add(module, copy);
}

static CUresult module_new(const void *image, Module **ret_module) {
        _cleanup_(module_freep) Module *module = NULL;
        size_t size;
        void *copy = NULL;
        CUresult r;

        r = object_size(image, &size);
        if (r)
                return r;

        module = calloc(1, sizeof(*module));
        if (!module)
                return CUDA_ERROR_OUT_OF_MEMORY;

        module->fd = module_copy(image, size, &copy);
        if (module->fd < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        r = module_open_copy(module, copy);
        munmap(copy, size);
        if (r)
                return r;

        *ret_module = TAKE_PTR(module);
        return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *ret_module, const void *image) {
        Context *context;
        Module *module;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!ret_module || !image)
                return CUDA_ERROR_INVALID_VALUE;

        r = module_new(image, &module);
        if (r)
                return r;

        module_add(module, context);
        *ret_module = module;
        return CUDA_SUCCESS;
}
