/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_DEVICE_H
#define GPUQ_CPU_DEVICE_H

/*
 * Device
 *
 * A simulated GPU: some host threads and a limited amount of memory. cuInit() reads the number of
 * devices and their sizes from the environment once: GPUQ_CPU_DEVICES (1), GPUQ_CPU_THREADS of
 * each (one per core), and GPUQ_CPU_MEMORY of each, in bytes (a quarter of the machine's).
 *
 * A device reports compute capability 9.0, because clusters and cooperative launches work. It
 * accepts no code for that or any other GPU.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/cuda_types.h"

#define DEVICE_MAX 64

enum {
        DEVICE_MAX_THREADS = 1024, /* of a block */
        DEVICE_WARP = 32,
        DEVICE_MAX_BLOCKS = 32,      /* at once on a multiprocessor, which is a host thread */
        DEVICE_MULTI_THREADS = 2048, /* the same in threads */
        DEVICE_SHARED = 48 << 10,    /* bytes a block gets without asking */
        DEVICE_SHARED_OPTIN = 227 << 10,
        DEVICE_MULTI_SHARED = 228 << 10,
        DEVICE_CLUSTER = 8, /* blocks, any kernel */
        DEVICE_CLUSTER_MAX = 16,
        DEVICE_TEXTURE_ALIGNMENT = 512, /* bytes: where a texture may begin */
        DEVICE_PITCH_ALIGNMENT = 32,    /* bytes: of its rows */
};
#define DEVICE_GRANULARITY (2u << 20) /* bytes, of memory that can be shared */

typedef struct Device {
        int ordinal;
        int number; /* fixed; the ordinal changes if an earlier device is gone */
        unsigned n_threads;
        size_t total;
        _Atomic size_t used; /* bytes */
} Device;

/** device_find() - NULL if there is no such device or cuInit() was not called. */
Device *device_find(CUdevice ordinal);
/** device_ready() - whether cuInit() was called. */
bool device_ready(void);
/** device_charge() - take memory. Return: CUDA_ERROR_OUT_OF_MEMORY if there is not as much. */
CUresult device_charge(Device *device, size_t n_bytes);
/** device_uncharge() - give it back. */
void device_uncharge(Device *device, size_t n_bytes);

#endif
