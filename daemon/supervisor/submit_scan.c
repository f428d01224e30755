/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submit scan
 *
 * A field that is not next, comes twice, is unknown or has a value out of its
 * type's range leaves bytes over, and those make the caller ask protobuf-c. So
 * does a job that names other jobs.
 */

#include "supervisor/submit_scan.h"

#include <string.h>

#include "proto/scan.h"

/* ---- fields ---------------------------------------------------------------- */

/* Return: false: it is broken, or over @max; @ret stays as it is when the field is not there. */
static bool scan_u64(Scan *scan, unsigned field, uint64_t max, uint64_t *ret) {
        if (!scan_is(scan, field, 0))
                return true;
        return scan_varint(scan, ret) && *ret <= max;
}

static bool scan_u32(Scan *scan, unsigned field, uint32_t *ret) {
        uint64_t value = *ret;
        bool good = scan_u64(scan, field, UINT32_MAX, &value);

        *ret = (uint32_t)value;
        return good;
}

static bool scan_s32(Scan *scan, unsigned field, int32_t *ret) {
        uint32_t value = 0;
        bool good = scan_u32(scan, field, &value);

        *ret = (int32_t)(value >> 1 ^ -(value & 1));
        return good;
}

static bool scan_flag(Scan *scan, unsigned field, protobuf_c_boolean *ret) {
        uint64_t value = 0;
        bool good = scan_u64(scan, field, 1, &value);

        *ret = (protobuf_c_boolean)value;
        return good;
}

static void *scan_alloc(Bump *bump, size_t n_bytes) {
        ProtobufCAllocator *allocator = bump_allocator(bump);

        return allocator->alloc(allocator->allocator_data, n_bytes);
}

static bool scan_text(Scan *scan, unsigned field, Bump *bump, char **ret_text) {
        Scan inner;
        size_t n;
        char *text;

        if (!scan_is(scan, field, 2))
                return true;
        if (!scan_inner(scan, &inner))
                return false;

        n = (size_t)(inner.end - inner.p);
        text = scan_alloc(bump, n + 1);
        if (!text)
                return false;
        memcpy(text, inner.p, n);
        text[n] = '\0';
        *ret_text = text;
        return true;
}

static bool scan_bytes(Scan *scan, unsigned field, Bump *bump, ProtobufCBinaryData *ret_bytes) {
        Scan inner;
        size_t n;

        if (!scan_is(scan, field, 2))
                return true;
        if (!scan_inner(scan, &inner))
                return false;

        n = (size_t)(inner.end - inner.p);
        *ret_bytes = (ProtobufCBinaryData){.len = n};
        if (n == 0)
                return true;
        ret_bytes->data = scan_alloc(bump, n);
        if (!ret_bytes->data)
                return false;
        memcpy(ret_bytes->data, inner.p, n);
        return true;
}

/* How many of this field come next, as messages; leaves @scan where it is. */
static size_t scan_count(Scan scan, unsigned field) {
        size_t n = 0;
        Scan inner;

        while (scan_is(&scan, field, 2) && scan_inner(&scan, &inner))
                n++;
        return n;
}

/* ---- messages -------------------------------------------------------------- */

static bool scan_buffer(Scan scan, Gpuq__V1__Buffer *buffer) {
        uint64_t direction = 0;

        gpuq__v1__buffer__init(buffer);
        if (!scan_u64(&scan, 1, UINT64_MAX, &buffer->arena) ||
            !scan_u64(&scan, 2, UINT64_MAX, &buffer->offset) ||
            !scan_u64(&scan, 3, UINT64_MAX, &buffer->length) ||
            !scan_u64(&scan, 4, GPUQ__V1__DIRECTION__INOUT, &direction))
                return false;
        buffer->direction = (Gpuq__V1__Direction)direction;
        return scan.p == scan.end;
}

static bool scan_kernel(Scan scan, Bump *bump, Gpuq__V1__Kernel *kernel) {
        gpuq__v1__kernel__init(kernel);
        return scan_u64(&scan, 1, UINT64_MAX, &kernel->module) &&
               scan_text(&scan, 2, bump, &kernel->name) && scan.p == scan.end;
}

static bool scan_buffers(Scan *scan, Bump *bump, Gpuq__V1__Job *job) {
        size_t n = scan_count(*scan, 2);
        Gpuq__V1__Buffer *buffers;
        Scan inner;

        if (n == 0)
                return true;
        buffers = scan_alloc(bump, n * (sizeof(*buffers) + sizeof(buffers)));
        if (!buffers)
                return false;

        job->buffers = (Gpuq__V1__Buffer **)(buffers + n);
        for (; job->n_buffers < n; ++job->n_buffers) {
                job->buffers[job->n_buffers] = &buffers[job->n_buffers];
                if (!scan_is(scan, 2, 2) || !scan_inner(scan, &inner) ||
                    !scan_buffer(inner, &buffers[job->n_buffers]))
                        return false;
        }
        return true;
}

static bool scan_kernels(Scan *scan, Bump *bump, Gpuq__V1__Job *job) {
        size_t n = scan_count(*scan, 3);
        Gpuq__V1__Kernel *kernels;
        Scan inner;

        if (n == 0)
                return true;
        kernels = scan_alloc(bump, n * (sizeof(*kernels) + sizeof(kernels)));
        if (!kernels)
                return false;

        job->kernels = (Gpuq__V1__Kernel **)(kernels + n);
        for (; job->n_kernels < n; ++job->n_kernels) {
                job->kernels[job->n_kernels] = &kernels[job->n_kernels];
                if (!scan_is(scan, 3, 2) || !scan_inner(scan, &inner) ||
                    !scan_kernel(inner, bump, &kernels[job->n_kernels]))
                        return false;
        }
        return true;
}

static bool scan_job(Scan scan, Bump *bump, Gpuq__V1__Job *job) {
        gpuq__v1__job__init(job);
        return scan_u32(&scan, 1, &job->tag) && scan_buffers(&scan, bump, job) &&
               scan_kernels(&scan, bump, job) && scan_bytes(&scan, 4, bump, &job->operations) &&
               scan_s32(&scan, 6, &job->priority) && scan_u32(&scan, 7, &job->timeout_ms) &&
               scan_text(&scan, 8, bump, &job->label) && scan_u32(&scan, 9, &job->device) &&
               scan_flag(&scan, 10, &job->repeatable) && scan_flag(&scan, 11, &job->timed) &&
               scan_u64(&scan, 12, UINT64_MAX, &job->word_arena) &&
               scan_u64(&scan, 13, UINT64_MAX, &job->word_offset) && scan.p == scan.end;
}

static bool scan_submit(Scan scan, Bump *bump, Gpuq__V1__Submit *submit) {
        size_t n = scan_count(scan, 1);
        Gpuq__V1__Job *jobs;
        Scan inner;

        gpuq__v1__submit__init(submit);
        if (n == 0)
                return false;
        jobs = scan_alloc(bump, n * (sizeof(*jobs) + sizeof(jobs)));
        if (!jobs)
                return false;

        submit->jobs = (Gpuq__V1__Job **)(jobs + n);
        for (; submit->n_jobs < n; ++submit->n_jobs) {
                submit->jobs[submit->n_jobs] = &jobs[submit->n_jobs];
                if (!scan_is(&scan, 1, 2) || !scan_inner(&scan, &inner) ||
                    !scan_job(inner, bump, &jobs[submit->n_jobs]))
                        return false;
        }
        return scan.p == scan.end;
}

static Gpuq__V1__Request *scan_request(Bump *bump, const uint8_t *data, size_t n_data) {
        Scan scan = {.p = data, .end = data + n_data}, inner;
        Gpuq__V1__Request *request;
        uint32_t serial = 0;

        if (!scan_u32(&scan, 1, &serial) || !scan_is(&scan, GPUQ__V1__REQUEST__BODY_SUBMIT, 2) ||
            !scan_inner(&scan, &inner) || scan.p != scan.end)
                return NULL;
        request = scan_alloc(bump, sizeof(*request));
        if (!request)
                return NULL;

        gpuq__v1__request__init(request);
        request->serial = serial;
        request->body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        request->submit = scan_alloc(bump, sizeof(*request->submit));
        if (!request->submit || !scan_submit(inner, bump, request->submit))
                return NULL;
        return request;
}

Gpuq__V1__Request *submit_scan(Bump *bump, const uint8_t *data, size_t n_data) {
        Gpuq__V1__Request *request = scan_request(bump, data, n_data);

        if (!request)
                bump_reset(bump);
        return request;
}
