/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WORKERS_REPORT_H
#define GPUQ_SUPERVISOR_WORKERS_REPORT_H

#include "pool.h"
#include "proto/gpuq.pb-c.h"

/** report_workers() - implements ExecutorOps.report(); @status has its devices, and all memory is the allocator's. */
int report_workers(const Workers *workers, ProtobufCAllocator *allocator, Gpuq__V1__Status *status);

#endif
