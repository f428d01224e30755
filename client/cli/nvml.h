/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_NVML_H
#define GPUQ_CLI_NVML_H

/*
 * NVML
 *
 * What NVIDIA's management library reports about a GPU, without a CUDA context. The library comes with
 * the driver and is opened at run time, as far as it is used here (nvml.h of CUDA 12.4).
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/macro.h"

typedef struct Nvml Nvml;

#define NVML_UNKNOWN (-1)

typedef struct NvmlReading {
        int utilization;       /* per cent of the last sample's time in which a kernel ran */
        int temperature;       /* degrees Celsius */
        int power, power_max;  /* watts */
        uint64_t memory_used;  /* bytes, by all programs; 0: unknown */
        uint64_t memory_total; /* bytes */
} NvmlReading;

/** nvml_new() - Return: NULL: this machine has no such library, or it does not start. */
Nvml *nvml_new(void);
Nvml *nvml_free(Nvml *nvml);
static inline void nvml_freep(Nvml **nvml) {
        nvml_free(*nvml);
}

/** nvml_read() - a GPU by its uuid, as gpuqd reports it. What is unknown is so in @ret_reading. @nvml: NULL: all. */
void nvml_read(const Nvml *nvml, const char *uuid, NvmlReading *ret_reading);
/** nvml_count() - how many GPUs the machine has. */
unsigned nvml_count(const Nvml *nvml);
/** nvml_mode() - the compute mode of a GPU by its index. Return: NVML_UNKNOWN, or an nvmlComputeMode_t. */
int nvml_mode(const Nvml *nvml, unsigned index);

#endif
