/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_JOB_SCAN_H
#define GPUQ_WORKER_JOB_SCAN_H

/*
 * Job scan
 *
 * Reads a job where it stands in its message, in the shape in which the supervisor and
 * protobuf libraries write it: each field once, in the order of the numbers. Both ends
 * are of one build, so whatever else there is, but for fields that are not known, is broken.
 */

#include "proto/scan.h"

/* One job: what stands in it once, and where its lists are. */
typedef struct JobScan {
        uint64_t id;
        int32_t priority;
        Scan buffers; /* for job_scan_buffer(), until it is empty */
        size_t n_buffers;
        Scan kernels; /* for job_scan_kernel(), likewise */
        size_t n_kernels;
        Scan operations;
        Scan after; /* for scan_varint(), likewise */
        size_t n_after;
        bool timed;
        uint32_t timeout_ms;
        uint64_t word_arena; /* 0: none */
        uint64_t word_offset;
        bool alone;
} JobScan;

typedef struct JobScanBuffer {
        uint64_t arena, offset, length;
        uint32_t direction;
} JobScanBuffer;

typedef struct JobScanKernel {
        uint64_t module;
        Scan name;
} JobScanKernel;

/** job_scan() - @message: a WorkerJob's bytes. Return: false: broken; what its lists hold is looked at as it is read. */
bool job_scan(Scan message, JobScan *ret_job);
/** job_scan_buffer() - the next one of @buffers, which has one. Return: false: broken. */
bool job_scan_buffer(Scan *buffers, JobScanBuffer *ret_buffer);
/** job_scan_kernel() - likewise. */
bool job_scan_kernel(Scan *kernels, JobScanKernel *ret_kernel);

#endif
