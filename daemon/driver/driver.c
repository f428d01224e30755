/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver
 *
 * Fills the table by name. If a function is missing that is not optional, loading fails, so callers
 * need not check for NULL.
 */
#include "driver/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/macro.h"

DEFINE_CLEANUP(Driver, driver_close)

static _Thread_local char problem[512];

/* Exported by libgpuq-cpu.so alone. */
#define DRIVER_CPU_MARK "gpuq_cpu_driver"

static int driver_resolve(Driver *driver, const char *symbol, void *ret_pointer) {
        void *pointer = dlsym(driver->handle, symbol);

        if (!pointer) {
                snprintf(problem, sizeof(problem),
                         "the driver has no %s: version R550 (CUDA 12.4) or newer is needed",
                         symbol);
                return -ENOSYS;
        }

        *(void **)ret_pointer = pointer;
        return 0;
}

static void driver_look_up(Driver *driver, const char *symbol, void *ret_pointer) {
        *(void **)ret_pointer = dlsym(driver->handle, symbol);
}

static int driver_fill(Driver *driver) {
        int r;

#define DRIVER_RESOLVE(name, symbol, arguments)                                                    \
        r = driver_resolve(driver, #symbol, &driver->name);                                        \
        if (r < 0)                                                                                 \
                return r;
        DRIVER_FUNCTIONS(DRIVER_RESOLVE)
#undef DRIVER_RESOLVE

#define DRIVER_LOOK_UP(name, symbol, arguments) driver_look_up(driver, #symbol, &driver->name);
        DRIVER_OPTIONAL_FUNCTIONS(DRIVER_LOOK_UP)
        DRIVER_CPU_FUNCTIONS(DRIVER_LOOK_UP)
#undef DRIVER_LOOK_UP

        driver->cpu = dlsym(driver->handle, DRIVER_CPU_MARK) != NULL;
        return 0;
}

int driver_open(const char *path, Driver **ret_driver, const char **ret_problem) {
        _cleanup_(driver_closep) Driver *driver = NULL;
        int r;

        driver = calloc(1, sizeof(*driver));
        if (!driver) {
                *ret_problem = "out of memory";
                return -ENOMEM;
        }

        driver->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!driver->handle) {
                snprintf(problem, sizeof(problem), "%s", dlerror());
                *ret_problem = problem;
                return -ENOENT;
        }

        r = driver_fill(driver);
        if (r < 0) {
                *ret_problem = problem;
                return r;
        }

        *ret_driver = TAKE_PTR(driver);
        return 0;
}

Driver *driver_close(Driver *driver) {
        free(driver);
        return NULL;
}
