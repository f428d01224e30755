/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_API_H
#define GPUQ_CPU_API_H

/*
 * What libgpuq-cpu.so exports: every symbol of the driver table. Defining one
 * with other arguments than the table's does not compile.
 */

#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define API_DECLARE(name, symbol, arguments)                                                       \
        __attribute__((visibility("default"))) CUresult symbol arguments;
DRIVER_FUNCTIONS(API_DECLARE)
DRIVER_OPTIONAL_FUNCTIONS(API_DECLARE)
DRIVER_CPU_FUNCTIONS(API_DECLARE)
#undef API_DECLARE

/* Tells driver_open() which library this is. */
extern __attribute__((visibility("default"))) const char gpuq_cpu_driver[];

#ifdef __cplusplus
}
#endif

#endif
