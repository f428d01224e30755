/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_FAULT_H
#define GPUQ_CPU_FAULT_H

/*
 * Fault
 *
 * If a kernel causes a signal such as SIGSEGV, ends the kernel instead of the process. Only while
 * a thread runs a kernel (@is_kernels of fault_install()) does a signal belong to the kernel; any
 * other goes to the previous handler, so that a bug in this library still crashes the process.
 */

#include <pthread.h>
#include <stdbool.h>

#include "driver/cuda_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * fault_install() - install the signal handlers, also if another library replaced them since the last call
 * @is_kernels: whether a signal now is the kernel's doing
 * @leave: then ends the kernel with an error, 0 for an interrupt. Both run in a signal handler.
 */
void fault_install(bool (*is_kernels)(void), void (*leave)(CUresult error));
/** fault_thread_open() - give the calling thread a stack for signals, and no signals but ours. Return: 0 or -ENOMEM. */
int fault_thread_open(void);
/** fault_thread_close() - undo fault_thread_open(), before the thread ends. */
void fault_thread_close(void);
/** fault_interrupt() - end the kernel that a thread runs, if it runs one. */
void fault_interrupt(pthread_t thread);

#ifdef __cplusplus
}
#endif

#endif
