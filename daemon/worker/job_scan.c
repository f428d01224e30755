/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job scan
 *
 * The numbers are worker.proto's and gpuq.proto's.
 */
#include "worker/job_scan.h"

enum { JOB_BUFFERS = 3, JOB_KERNELS = 4, JOB_AFTER = 6, JOB_LAST = 11 };

static bool scan_flag(Scan *scan, unsigned field, bool *ret) {
        uint64_t value = *ret;
        bool good = scan_u64(scan, field, 1, &value);

        *ret = value;
        return good;
}

/* Messages that stand one after the other. */
static bool scan_list(Scan *scan, unsigned field, Scan *ret_list, size_t *ret_n) {
        Scan inner;

        ret_list->p = scan->p;
        for (*ret_n = 0; scan_is(scan, field, 2); ++*ret_n)
                if (!scan_inner(scan, &inner))
                        return false;
        ret_list->end = scan->p;
        return true;
}

bool job_scan(Scan message, JobScan *ret_job) {
        JobScan job = {0};

        if (!scan_u64(&message, 1, UINT64_MAX, &job.id) || !scan_s32(&message, 2, &job.priority) ||
            !scan_list(&message, JOB_BUFFERS, &job.buffers, &job.n_buffers) ||
            !scan_list(&message, JOB_KERNELS, &job.kernels, &job.n_kernels) ||
            !scan_bytes(&message, 5, &job.operations) ||
            !scan_bytes(&message, JOB_AFTER, &job.after) || !scan_flag(&message, 7, &job.timed) ||
            !scan_u32(&message, 8, &job.timeout_ms) ||
            !scan_u64(&message, 9, UINT64_MAX, &job.word_arena) ||
            !scan_u64(&message, 10, UINT64_MAX, &job.word_offset) ||
            !scan_flag(&message, JOB_LAST, &job.alone) || !scan_is_over(message, JOB_LAST))
                return false;

        job.n_after = scan_count_numbers(job.after);
        *ret_job = job;
        return true;
}

bool job_scan_buffer(Scan *buffers, JobScanBuffer *ret_buffer) {
        Scan inner;

        *ret_buffer = (JobScanBuffer){0};
        return scan_is(buffers, JOB_BUFFERS, 2) && scan_inner(buffers, &inner) &&
               scan_u64(&inner, 1, UINT64_MAX, &ret_buffer->arena) &&
               scan_u64(&inner, 2, UINT64_MAX, &ret_buffer->offset) &&
               scan_u64(&inner, 3, UINT64_MAX, &ret_buffer->length) &&
               scan_u32(&inner, 4, &ret_buffer->direction) && scan_is_over(inner, 4);
}

bool job_scan_kernel(Scan *kernels, JobScanKernel *ret_kernel) {
        Scan inner;

        *ret_kernel = (JobScanKernel){0};
        return scan_is(kernels, JOB_KERNELS, 2) && scan_inner(kernels, &inner) &&
               scan_u64(&inner, 1, UINT64_MAX, &ret_kernel->module) &&
               scan_bytes(&inner, 2, &ret_kernel->name) && scan_is_over(inner, 2);
}
