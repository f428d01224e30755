/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image of the CPU driver (daemon/driver/cpu/image.h) whose kernels end the worker
 *
 * test_fault_kinds.py puts it into the cache of compiled modules (tests/harness/forged.py), as no
 * source and no PTX can express what it does.
 */

#include <unistd.h>

#include "driver/cpu/image.h"
#include "util/macro.h"

#define N_HUNG 5 /* bytes of the file */

static __thread GpuqCpuPlace here;

static GpuqCpuPlace *place(void) {
        return &here;
}

/* exits(int *out, int *what) */
static void run_exits(void *const *params) {
        _exit(3);
}

/* aborts(int *out, int *what) */
static void run_aborts(void *const *params) {
        __builtin_trap();
}

/* The test writes a path here. As the image is loaded, it sets that file's length, and never returns. */
static const volatile char hang_path[256] = "@hang-path";

static void __attribute__((constructor)) hang(void) {
        if (hang_path[0] == '@' || truncate((const char *)hang_path, N_HUNG) < 0)
                return;
        for (volatile int i = 0; i >= 0; i = 0)
                ;
}

static const uint32_t sizes[] = {8, 8}, offsets[] = {0, 8};
static const GpuqCpuEntry entries[] = {
        {"exits", run_exits, sizes, offsets, 2, 8},
        {"aborts", run_aborts, sizes, offsets, 2, 8},
};

extern GpuqCpuImage gpuq_cpu_image;
__attribute__((visibility("default"))) GpuqCpuImage gpuq_cpu_image = {
        .version = GPUQ_CPU_IMAGE_VERSION,
        .size = sizeof(GpuqCpuImage),
        .entries = entries,
        .entries_end = entries + ARRAY_SIZE(entries),
        .place = place,
};
