/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_MODULE_H
#define GPUQ_JOBS_MODULE_H

/*
 * Module
 *
 * What the daemon reported about a loaded module, in the form in which it arrived. The user's
 * handle and jobs that have not ended each hold a reference. When the last reference is gone, the
 * daemon is asked to unload the module.
 */

#include "client.h"
#include "util/need.h"

/* An image that is being written, or whose module is being loaded. */
typedef struct Upload {
        uint64_t id;                 /* of its arena */
        TAILQ_ENTRY(Upload) uploads; /* modules->uploads */
} Upload;

/* Of one client. */
typedef struct Modules {
        TAILQ_HEAD(, gpuq_module) loaded;
        TAILQ_HEAD(, Upload) uploads; /* images that no module has yet */
        gpuq_module *builtin; /* of library operations, a reference; NULL: not needed so far */
} Modules;

struct gpuq_module {
        unsigned refs;
        gpuq_client *client;              /* a reference */
        TAILQ_ENTRY(gpuq_module) modules; /* modules->loaded */
        Gpuq__V1__ModuleLoad
                *load; /* the request, which is sent again after a restart of the daemon */
        uint64_t id;
        Gpuq__V1__Reply *reply; /* owns every text and the next */
        const Gpuq__V1__ModuleReady *ready;
        char *log;                  /* with notes of this process; NULL: the daemon's alone */
        gpuq_parameter *parameters; /* of all kernels, one after the other */
        Need *needs;                /* likewise */
        size_t *first;              /* of each kernel's parameters */
        size_t last_found;          /* the last kernel launched: most launches use the same one */
        gpuq_module *checked; /* the same with --check, a reference; NULL: not needed so far */
};

/** module_ref() - Return: @module. */
gpuq_module *module_ref(gpuq_module *module);
/** module_unref() - with the lock, and a reference to the client beside the module's own. */
void module_unref(gpuq_module *module);
/**
 * module_find_builtin() - the built-in module, which is loaded if no library operation needed it so far
 * @ret_builtin: borrowed, until the connection ends
 *
 * Gives up the lock while it waits. Return: 0, or as gpuq_module_builtin().
 */
int module_find_builtin(gpuq_client *client, gpuq_module **ret_builtin);
/** module_drop_builtin() - the connection ended. */
void module_drop_builtin(gpuq_client *client);
/**
 * module_find_checked() - the same module with --check, which is loaded if it was not needed so far
 * @ret_checked: borrowed, as long as @module exists; @module itself if it has the option
 *
 * Gives up the lock while it waits. Return: 0, or as gpuq_module_load().
 */
int module_find_checked(gpuq_module *module, gpuq_module **ret_checked);
/**
 * module_find() - a kernel by a name that was given when the module was loaded, or as util/kernel-name.h says
 * @ret_needs: of its parameters
 *
 * Return: 0, or GPUQ_E_NOT_FOUND with the names that are there.
 */
int module_find(gpuq_module *module, const char *name, const Gpuq__V1__KernelInfo **ret_kernel,
                const Need **ret_needs);

#endif
