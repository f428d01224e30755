/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends scan
 *
 * A field that is not next, comes twice, is unknown or is no number leaves bytes
 * over, and those make the caller ask protobuf-c.
 */

#include "ends_scan.h"

#include "proto/scan.h"

static void *ends_alloc(Bump *bump, size_t n_bytes) {
        ProtobufCAllocator *allocator = bump_allocator(bump);

        return allocator->alloc(allocator->allocator_data, n_bytes);
}

static bool ends_scan_end(Scan scan, Gpuq__Worker__JobEnd *end) {
        gpuq__worker__job_end__init(end);
        return scan_u64(&scan, 1, UINT64_MAX, &end->id) &&
               scan_u64(&scan, 4, UINT64_MAX, &end->gpu_ns) &&
               scan_u64(&scan, 5, UINT64_MAX, &end->ran_us) && scan.p == scan.end;
}

static bool ends_scan_list(Scan scan, Bump *bump, Gpuq__Worker__JobEnds *ends) {
        size_t n = scan_count(scan, 1);
        Gpuq__Worker__JobEnd *list;
        Scan inner;

        gpuq__worker__job_ends__init(ends);
        if (n == 0)
                return false;
        list = ends_alloc(bump, n * (sizeof(*list) + sizeof(list)));
        if (!list)
                return false;

        ends->ends = (Gpuq__Worker__JobEnd **)(list + n);
        for (; ends->n_ends < n; ++ends->n_ends) {
                ends->ends[ends->n_ends] = &list[ends->n_ends];
                if (!scan_is(&scan, 1, 2) || !scan_inner(&scan, &inner) ||
                    !ends_scan_end(inner, &list[ends->n_ends]))
                        return false;
        }
        return scan.p == scan.end;
}

static Gpuq__Worker__FromWorker *ends_scan_message(Bump *bump, Scan scan) {
        Gpuq__Worker__FromWorker *message;
        Scan inner;

        if (!scan_is(&scan, GPUQ__WORKER__FROM_WORKER__BODY_ENDS, 2) ||
            !scan_inner(&scan, &inner) || scan.p != scan.end)
                return NULL;
        message = ends_alloc(bump, sizeof(*message));
        if (!message)
                return NULL;

        gpuq__worker__from_worker__init(message);
        message->body_case = GPUQ__WORKER__FROM_WORKER__BODY_ENDS;
        message->ends = ends_alloc(bump, sizeof(*message->ends));
        if (!message->ends || !ends_scan_list(inner, bump, message->ends))
                return NULL;
        return message;
}

Gpuq__Worker__FromWorker *ends_scan(Bump *bump, const uint8_t *data, size_t n_data) {
        Scan scan = {.p = data, .end = data + n_data};
        Gpuq__Worker__FromWorker *message = ends_scan_message(bump, scan);

        if (!message)
                bump_reset(bump);
        return message;
}
