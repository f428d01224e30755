/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_MODULE_H
#define GPUQ_WORKER_MODULE_H

/*
 * Module
 *
 * A session's module in this worker: compiled in a child, then loaded at a quiesce point. Modules with
 * equal results share an image, unless it has variables; then each module has its own. The built-in
 * kernels are compiled and loaded once per worker, however many sessions use them.
 */

#include "util/table.h"
#include "worker/compile.h"
#include "worker/quiesce.h"
#include "worker/image.h"

typedef struct Modules Modules;
typedef struct Module Module;

typedef enum ModuleState {
        MODULE_COMPILING,
        MODULE_LOADING, /* compiled, waits for a quiesce point */
        MODULE_READY,
        MODULE_FAILED, /* failure says why */
} ModuleState;

struct Module {
        uint64_t id;
        UT_hash_handle hh; /* modules->by_id */
        Modules *modules;
        ModuleState state;
        Failure failure;
        char *log;       /* warnings, or NULL */
        char **named;    /* symbols of the kernels that its client names, then NULL; or NULL */
        unsigned n_uses; /* jobs, waiting and in flight */
        bool dropped;    /* freed when it has no users */
        bool is_builtin; /* takes its image from modules->builtin */
        bool is_ours;    /* gpuq's own kernels, checked or not */
        Compile *compile;
        Compiled *compiled; /* while it waits to be loaded */
        void *data;
        Image *image;
        QuiesceTask task; /* loads or unloads */
};

/* Called when a module is ready or has failed. */
typedef void (*ModuleFunc)(Module *module, void *userdata);
/* Called when the built-in kernels are loaded; with NULL if they cannot be. */
typedef void (*ModuleBuiltinFunc)(const Image *image, void *userdata);
/* Called before an image is unloaded: no object may keep its functions. */
typedef void (*ModuleUnloadFunc)(void *userdata);

struct Modules {
        Context *context;
        Compilers *compilers;
        Quiesce *quiesce;
        ModuleFunc func;
        ModuleBuiltinFunc builtin_func;
        ModuleUnloadFunc unload_func;
        void *userdata;
        Module *by_id;
        Module *builtin; /* nobody's, never dropped: holds the image that builtin modules share; or NULL */
        Image *images; /* every loaded one */
};

/** modules_init() - into zeroed @modules. */
void modules_init(Modules *modules, Context *context, Compilers *compilers, Quiesce *quiesce,
                  ModuleFunc func, ModuleBuiltinFunc builtin_func, ModuleUnloadFunc unload_func,
                  void *userdata);
/** modules_load_builtin() - load them for the worker's own use; calls builtin_func. Return: 0 or -ENOMEM. */
int modules_load_builtin(Modules *modules);
/** modules_find() - find by id. Return: NULL: unknown or dropped. */
Module *modules_find(Modules *modules, uint64_t id);
/**
 * module_add() - start compiling a module
 * @request: its descriptor is consumed in any case
 *
 * Ends in one call of the modules' func, which may come before this returns.
 * Return: 0 or -ENOMEM.
 */
int module_add(Modules *modules, uint64_t id, const CompileRequest *request);
/** module_drop() - drop the module; jobs that use it still run. */
void module_drop(Module *module);
/** module_use() - a job uses the module. */
void module_use(Module *module);
/** module_unuse() - a job has ended; a dropped module is freed when no job uses it. */
void module_unuse(Module *module);

#endif
