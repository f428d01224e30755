/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submit scan
 *
 * A field that is out of order, repeated, unknown or out of its type's range leaves bytes over, which
 * makes the caller use protobuf-c. So does a job that names other jobs.
 */

#include "submit_scan.h"

#include <string.h>

#include "proto/scan.h"
#include "proto/wire.h"

/* ---- fields ---------------------------------------------------------------- */

static bool scan_flag(Scan *scan, unsigned field, protobuf_c_boolean *ret) {
        uint64_t value = 0;
        bool good = scan_u64(scan, field, 1, &value);

        *ret = (protobuf_c_boolean)value;
        return good;
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
        text = bump_take(bump, n + 1);
        if (!text)
                return false;
        memcpy(text, inner.p, n);
        text[n] = '\0';
        *ret_text = text;
        return true;
}

/* Points to the bytes in the input. */
static bool scan_data(Scan *scan, unsigned field, ProtobufCBinaryData *ret_data) {
        Scan inner = {0};

        if (!scan_bytes(scan, field, &inner))
                return false;
        *ret_data = (ProtobufCBinaryData){
                .len = (size_t)(inner.end - inner.p),
                .data = inner.p < inner.end ? (uint8_t *)inner.p : NULL,
        };
        return true;
}

/* A list whose tag was just read. Return: false: broken, or a number is above @max. */
static bool scan_numbers(Scan *scan, uint64_t max, Bump *bump, uint64_t **ret_list, size_t *ret_n) {
        Scan inner;
        size_t n;

        if (!scan_inner(scan, &inner))
                return false;

        n = scan_count_numbers(inner);
        *ret_list = n ? bump_take(bump, n * sizeof(**ret_list)) : NULL;
        if (n && !*ret_list)
                return false;
        for (*ret_n = 0; *ret_n < n; ++*ret_n)
                if (!scan_varint(&inner, *ret_list + *ret_n) || (*ret_list)[*ret_n] > max)
                        return false;
        return inner.p == inner.end;
}

/* ---- messages -------------------------------------------------------------- */

static bool scan_buffer(Scan scan, Gpuq__V1__Buffer *buffer) {
        uint64_t direction = 0;

        gpuq__v1__buffer__init(buffer);
        if (!scan_u64(&scan, 1, UINT64_MAX, &buffer->arena) ||
            !scan_u64(&scan, 2, UINT64_MAX, &buffer->offset) ||
            !scan_u64(&scan, 3, UINT64_MAX, &buffer->length) ||
            !scan_u64(&scan, 4, GPUQ__V1__DIRECTION__OUT_WHOLE, &direction))
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
        buffers = bump_take(bump, n * (sizeof(*buffers) + sizeof(buffers)));
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
        kernels = bump_take(bump, n * (sizeof(*kernels) + sizeof(kernels)));
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

static bool scan_options(Scan scan, Bump *bump, Gpuq__V1__Job *job) {
        return scan_s32(&scan, 6, &job->priority) && scan_u32(&scan, 7, &job->timeout_ms) &&
               scan_text(&scan, 8, bump, &job->label) && scan_u32(&scan, 9, &job->device) &&
               scan_flag(&scan, 10, &job->repeatable) && scan_flag(&scan, 11, &job->timed) &&
               scan_u64(&scan, 12, UINT64_MAX, &job->word_arena) &&
               scan_u64(&scan, 13, UINT64_MAX, &job->word_offset) &&
               scan_flag(&scan, 14, &job->by_address) && scan.p == scan.end;
}

static bool scan_job(Scan scan, Bump *bump, Gpuq__V1__Job *job) {
        gpuq__v1__job__init(job);
        return scan_u32(&scan, 1, &job->tag) && scan_buffers(&scan, bump, job) &&
               scan_kernels(&scan, bump, job) && scan_data(&scan, 4, &job->operations) &&
               (scan.p == scan.end || scan_options(scan, bump, job)); /* most have none */
}

static bool scan_submit(Scan scan, Bump *bump, Gpuq__V1__Submit *submit) {
        size_t n = scan_count(scan, 1);
        Gpuq__V1__Job *jobs;
        Scan inner;

        gpuq__v1__submit__init(submit);
        if (n == 0 || n > WIRE_JOBS_MAX)
                return false;
        jobs = bump_take(bump, n * (sizeof(*jobs) + sizeof(jobs)));
        if (!jobs)
                return false;

        submit->jobs = (Gpuq__V1__Job **)(jobs + n);
        for (; submit->n_jobs < n; ++submit->n_jobs) {
                submit->jobs[submit->n_jobs] = &jobs[submit->n_jobs];
                if (!scan_is(&scan, 1, 2) || !scan_inner(&scan, &inner) ||
                    !scan_job(inner, bump, &jobs[submit->n_jobs]))
                        return false;
        }
        if (!scan_u32(&scan, 2, &submit->seen))
                return false;
        return scan.p == scan.end;
}

static bool scan_slices(Scan *scan, Bump *bump, Gpuq__V1__Fire *fire) {
        return !scan_is(scan, 3, 2) ||
               scan_numbers(scan, UINT64_MAX, bump, &fire->slices, &fire->n_slices);
}

static bool scan_patches(Scan *scan, Bump *bump, Gpuq__V1__Fire *fire) {
        uint64_t *numbers;
        size_t n;

        if (!scan_is(scan, 4, 2))
                return true;
        if (!scan_numbers(scan, UINT32_MAX, bump, &numbers, &n))
                return false;
        if (n == 0)
                return true;
        fire->patches = bump_take(bump, n * sizeof(*fire->patches));
        if (!fire->patches)
                return false;
        for (; fire->n_patches < n; ++fire->n_patches)
                fire->patches[fire->n_patches] = (uint32_t)numbers[fire->n_patches];
        return true;
}

static bool scan_fire(Scan scan, Bump *bump, Gpuq__V1__Fire *fire) {
        gpuq__v1__fire__init(fire);
        return scan_u32(&scan, 1, &fire->prepared) && scan_u32(&scan, 2, &fire->tag) &&
               scan_slices(&scan, bump, fire) && scan_patches(&scan, bump, fire) &&
               scan_data(&scan, 5, &fire->values) &&
               scan_u64(&scan, 6, UINT64_MAX, &fire->word_arena) &&
               scan_u64(&scan, 7, UINT64_MAX, &fire->word_offset) && scan.p == scan.end;
}

static bool scan_fires(Scan scan, Bump *bump, Gpuq__V1__Fires *fires) {
        size_t n = scan_count(scan, 1);
        Gpuq__V1__Fire *list;
        Scan inner;

        gpuq__v1__fires__init(fires);
        if (n == 0 || n > WIRE_JOBS_MAX)
                return false;
        list = bump_take(bump, n * (sizeof(*list) + sizeof(list)));
        if (!list)
                return false;

        fires->fires = (Gpuq__V1__Fire **)(list + n);
        for (; fires->n_fires < n; ++fires->n_fires) {
                fires->fires[fires->n_fires] = &list[fires->n_fires];
                if (!scan_is(&scan, 1, 2) || !scan_inner(&scan, &inner) ||
                    !scan_fire(inner, bump, &list[fires->n_fires]))
                        return false;
        }
        return scan_u32(&scan, 2, &fires->seen) && scan.p == scan.end;
}

typedef struct ScanRequest {
        Gpuq__V1__Request request;
        union {
                Gpuq__V1__Submit submit;
                Gpuq__V1__Fires fires;
        };
} ScanRequest;

static bool scan_body(Scan *scan, Bump *bump, ScanRequest *whole) {
        Gpuq__V1__Request *request = &whole->request;
        Scan inner;

        if (scan_is(scan, GPUQ__V1__REQUEST__BODY_SUBMIT, 2)) {
                request->body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
                request->submit = &whole->submit;
                return scan_inner(scan, &inner) && scan_submit(inner, bump, request->submit);
        }
        if (scan_is(scan, GPUQ__V1__REQUEST__BODY_FIRES, 2)) {
                request->body_case = GPUQ__V1__REQUEST__BODY_FIRES;
                request->fires = &whole->fires;
                return scan_inner(scan, &inner) && scan_fires(inner, bump, request->fires);
        }
        return false;
}

static Gpuq__V1__Request *scan_request(Bump *bump, const uint8_t *data, size_t n_data) {
        ScanRequest *whole = bump_take(bump, sizeof(*whole));
        Scan scan = {.p = data, .end = data + n_data};

        if (!whole)
                return NULL;
        gpuq__v1__request__init(&whole->request);
        if (!scan_u32(&scan, 1, &whole->request.serial) || !scan_body(&scan, bump, whole))
                return NULL;
        return scan.p == scan.end ? &whole->request : NULL;
}

Gpuq__V1__Request *submit_scan(Bump *bump, const uint8_t *data, size_t n_data) {
        Gpuq__V1__Request *request = scan_request(bump, data, n_data);

        if (!request)
                bump_reset(bump);
        return request;
}
