/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Module
 *
 *     COMPILING -> LOADING -> READY
 *          \-----------\----> FAILED
 *
 * A dropped module leaves the table at once. Its memory is freed when it has reached an end state, nothing
 * uses it and, if it has an image, at a quiesce point.
 */
#include "worker/module.h"

#include <string.h>

#include "worker/wide.h"

void modules_init(Modules *modules, Context *context, Compilers *compilers, Quiesce *quiesce,
                  ModuleFunc func, ModuleBuiltinFunc builtin_func, ModuleUnloadFunc unload_func,
                  void *userdata) {
        modules->context = context;
        modules->compilers = compilers;
        modules->quiesce = quiesce;
        modules->func = func;
        modules->builtin_func = builtin_func;
        modules->unload_func = unload_func;
        modules->userdata = userdata;
}

Module *modules_find(Modules *modules, uint64_t id) {
        Module *module;

        HASH_FIND(hh, modules->by_id, &id, sizeof(id), module);
        return module;
}

/* ---- images ------------------------------------------------------------------- */

static Image *modules_find_image(Modules *modules, const Compiled *compiled) {
        for (Image *image = modules->images; image; image = image->next)
                if (!image->has_variables && image_is_like(image, compiled))
                        return image;
        return NULL;
}

static void modules_release_image(Modules *modules, Image *image) {
        Image **link = &modules->images;

        if (--image->n_refs > 0)
                return;
        while (*link != image)
                link = &(*link)->next;
        *link = image->next;

        modules->unload_func(modules->userdata);
        image_unload(image);
}

/* ---- the end ------------------------------------------------------------------- */

static void module_free(Module *module) {
        if (module->image)
                modules_release_image(module->modules, module->image);
        compile_cancel(module->compile);
        compiled_free(module->compiled);
        free(module->data);
        free(module->log);
        for (char **symbol = module->named; symbol && *symbol; ++symbol)
                free(*symbol);
        free(module->named);
        failure_clear(&module->failure);
        free(module);
}

static int module_on_unload(QuiesceTask *task, void *userdata) {
        module_free(userdata);
        return 0;
}

static void module_maybe_free(Module *module) {
        if (!module->dropped || module->n_uses > 0)
                return;

        quiesce_remove(module->modules->quiesce, &module->task);
        if (!module->image || module->image->n_refs > 1) {
                module_free(module);
                return;
        }
        module->task.func = module_on_unload;
        quiesce_add(module->modules->quiesce, &module->task);
}

void module_drop(Module *module) {
        HASH_DELETE(hh, module->modules->by_id, module);
        module->dropped = true;
        module_maybe_free(module);
}

void module_use(Module *module) {
        ++module->n_uses;
}

void module_unuse(Module *module) {
        --module->n_uses;
        module_maybe_free(module);
}

/* ---- the way to an image ---------------------------------------------------------- */

static void module_follow_builtin(Module *module);

static void module_finish(Module *module, ModuleState state) {
        Modules *modules = module->modules;
        Module *follower, *next;

        module->state = state;
        if (module != modules->builtin) {
                modules->func(module, modules->userdata);
                /* Reported as failed and not needed any more: the supervisor drops only modules
                 * that were loaded. */
                if (state == MODULE_FAILED && !module->dropped)
                        module_drop(module);
                return;
        }

        if (module->image)
                wide_find(module->image);
        modules->builtin_func(module->image, modules->userdata);
        HASH_ITER (hh, modules->by_id, follower, next) {
                if (follower->is_builtin && follower->state == MODULE_COMPILING)
                        module_follow_builtin(follower);
        }
}

static void module_fail(Module *module) {
        compiled_free(module->compiled);
        free(module->data);
        module->compiled = NULL;
        module->data = NULL;
        module_finish(module, MODULE_FAILED);
}

static void module_share(Module *module, Image *image) {
        module->compiled = compiled_free(module->compiled);
        free(module->data);
        module->data = NULL;
        module->image = image;
        ++image->n_refs;
        module_finish(module, MODULE_READY);
}

static int module_on_load(QuiesceTask *task, void *userdata) {
        Module *module = userdata;
        Modules *modules = module->modules;
        Image *image;
        int r;

        /* An equal module may have been loaded meanwhile. */
        image = modules_find_image(modules, module->compiled);
        if (image) {
                module_share(module, image);
                return 0;
        }

        r = image_load(modules->context, module->compiled, module->data, &image, &module->failure);
        if (r == -ENOMEM)
                r = failure_set(&module->failure, GPUQ__V1__CODE__E_MEMORY,
                                "the worker is out of memory");
        if (r == FAILURE_E_SET) {
                module_fail(module);
                return 0;
        }
        if (r)
                return r;

        module->compiled = NULL;
        module->data = NULL;
        module->image = image;
        image->next = modules->images;
        modules->images = image;
        module_finish(module, MODULE_READY);
        return 0;
}

/* Per module: another with an equal image may have named other kernels. */
static int module_copy_named(Module *module, const Compiled *compiled) {
        module->named = calloc(compiled->n_named + 1, sizeof(*module->named));
        if (!module->named)
                return -ENOMEM;

        for (size_t i = 0; i < compiled->n_named; ++i) {
                module->named[i] = strdup(compiled->named[i]);
                if (!module->named[i])
                        return -ENOMEM;
        }
        return 0;
}

/* Kernels of gpuq's own access what was checked before their launch. */
static bool module_lacks_fence(const Module *module, const Compiled *compiled) {
        return module->modules->compilers->settings.fence && !module->is_ours &&
               !(compiled->flags & COMPILED_IS_FENCED);
}

static void module_on_compiled(void *userdata, Compiled *compiled, void *data,
                               const Failure *failure) {
        Module *module = userdata;
        Image *image;

        module->compile = NULL;
        if (!compiled) {
                failure_copy(&module->failure, failure);
                module_finish(module, MODULE_FAILED);
                return;
        }

        module->compiled = compiled;
        module->data = data;
        if (module_lacks_fence(module, compiled)) {
                failure_set(&module->failure, GPUQ__V1__CODE__E_INTERNAL,
                            "gpuqd-compiler made an image without a fence");
                module_fail(module);
                return;
        }
        if (module_copy_named(module, compiled) < 0) {
                failure_set(&module->failure, GPUQ__V1__CODE__E_MEMORY,
                            "the worker is out of memory");
                module_fail(module);
                return;
        }
        if (compiled->log[0])
                module->log = strdup(compiled->log);
        if (module->log)
                text_clean(module->log);

        image = modules_find_image(module->modules, compiled);
        if (image) {
                module_share(module, image);
                return;
        }
        module->state = MODULE_LOADING;
        module->task.func = module_on_load;
        quiesce_add(module->modules->quiesce, &module->task);
}

static int module_new(Modules *modules, uint64_t id, Module **ret_module) {
        Module *module = calloc(1, sizeof(*module));

        if (!module)
                return -ENOMEM;

        module->id = id;
        module->modules = modules;
        module->task.userdata = module;
        *ret_module = module;
        return 0;
}

static void module_start(Module *module, const CompileRequest *request) {
        int r;

        r = compile_start(module->modules->compilers, request, module_on_compiled, module,
                          &module->compile);
        if (r >= 0)
                return;

        if (request->fd >= 0)
                close(request->fd);
        failure_set(&module->failure, GPUQ__V1__CODE__E_INTERNAL, "cannot start gpuqd-compiler: %s",
                    strerror(-r));
        module_finish(module, MODULE_FAILED);
}

/* ---- built-in kernels ---------------------------------------------------------------- */

static void module_follow_builtin(Module *module) {
        Module *builtin = module->modules->builtin;

        if (builtin->state == MODULE_READY) {
                module_share(module, builtin->image);
        } else if (builtin->state == MODULE_FAILED) {
                failure_copy(&module->failure, &builtin->failure);
                module_finish(module, MODULE_FAILED);
        }
}

/* The first request starts the load; after a failure the next request tries again. */
static int modules_want_builtin(Modules *modules, const CompileRequest *request) {
        int r;

        if (modules->builtin && modules->builtin->state != MODULE_FAILED)
                return 0;
        if (modules->builtin)
                module_free(modules->builtin);
        modules->builtin = NULL;

        r = module_new(modules, 0, &modules->builtin);
        if (r < 0)
                return r;
        modules->builtin->is_ours = true;
        module_start(modules->builtin, request);
        return 0;
}

int modules_load_builtin(Modules *modules) {
        const CompileRequest request = {
                .format = GPUQ__V1__FORMAT__BUILTIN,
                .fd = -1,
                .name = "builtin",
        };

        return modules_want_builtin(modules, &request);
}

/* With options it is another image: the checked built-in kernels. */
static bool request_is_builtin(const CompileRequest *request) {
        return request->format == GPUQ__V1__FORMAT__BUILTIN && request->n_options == 0;
}

int module_add(Modules *modules, uint64_t id, const CompileRequest *request) {
        bool is_builtin = request_is_builtin(request);
        Module *module;
        int r;

        r = is_builtin ? modules_want_builtin(modules, request) : 0;
        if (r >= 0)
                r = module_new(modules, id, &module);
        if (r < 0) {
                if (request->fd >= 0)
                        close(request->fd);
                return r;
        }

        module->is_builtin = is_builtin;
        module->is_ours = request->format == GPUQ__V1__FORMAT__BUILTIN;
        HASH_ADD(hh, modules->by_id, id, sizeof(module->id), module);
        if (!module->hh.tbl) {
                module_free(module);
                if (request->fd >= 0)
                        close(request->fd);
                return -ENOMEM;
        }
        if (is_builtin)
                module_follow_builtin(module);
        else
                module_start(module, request);
        return 0;
}
