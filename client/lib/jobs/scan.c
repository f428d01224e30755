/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan
 *
 * Prefix sums: one launch sums up each part of the numbers, and another one scans the parts, each from the sum of
 * those before it. Few numbers are one part, and one launch.
 */

#include <stdio.h>

#include "compose.h"
#include "error.h"
#include "parts.h"

#define SCAN_ONE_PART 16384u /* so many numbers are one part */
#define SCAN_SUM      8u     /* bytes of a part's sum */

static int scan_check(const Composition *composition, const gpuq_scan *scan) {
        unsigned element;
        int r;

        if (!scan)
                return error_set(GPUQ_E_INVALID, "gpuq_job_scan(): the scan is NULL");
        element = compose_element(scan->type);
        if (element == 0)
                return error_set(GPUQ_E_INVALID,
                                 "scan: type %d is none of f32, f64, i32, u32, i64 and u64",
                                 (int)scan->type);
        r = compose_check(composition, "from", scan->from, scan->n, element, element);
        if (r == 0)
                r = compose_check(composition, "to", scan->to, scan->n, element, element);
        return r;
}

static int scan_keep_apart(Composition *composition, const gpuq_scan *scan) {
        uint64_t n_bytes = scan->n * compose_element(scan->type);

        return compose_apart(composition, compose_side("from", scan->from, n_bytes),
                             compose_side("to", scan->to, n_bytes), true);
}

static int scan_launch(Composition *composition, const gpuq_scan *scan, gpuq_buffer *sums,
                       uint64_t parts, gpuq_arg to) {
        gpuq_arg args[] = {
                gpuq_in(scan->from), gpuq_in(sums),   to,
                gpuq_u64(scan->n),   gpuq_u64(parts), gpuq_u64(scan->exclusive),
        };
        char kernel[32];

        snprintf(kernel, sizeof(kernel), "scan_%s", compose_suffix(scan->type));
        return compose_launch(composition, kernel, parts ? parts : 1, args, ARRAY_SIZE(args));
}

static int scan_launch_parts(Composition *composition, const gpuq_scan *scan, gpuq_buffer *sums,
                             uint64_t parts) {
        gpuq_arg args[] = {
                gpuq_in(scan->from),
                gpuq_out_whole(sums),
                gpuq_u64(scan->n),
                gpuq_u64(parts),
        };
        char kernel[32];

        snprintf(kernel, sizeof(kernel), "scan_parts_%s", compose_suffix(scan->type));
        return compose_launch(composition, kernel, parts, args, ARRAY_SIZE(args));
}

static int scan_append(Composition *composition, const gpuq_scan *scan) {
        gpuq_buffer *sums;
        uint64_t parts;
        gpuq_arg to;
        int r;

        r = scan_check(composition, scan);
        if (r < 0)
                return r;
        to = compose_result(scan->to, scan->n * compose_element(scan->type));
        if (scan->n <= SCAN_ONE_PART) {
                r = scan_keep_apart(composition, scan);
                return r < 0 ? r : scan_launch(composition, scan, scan->from, 0, to);
        }

        parts = parts_number(scan->n);
        r = compose_workspace(composition, scan->to, parts * SCAN_SUM, &sums);
        if (r == 0)
                r = scan_keep_apart(composition, scan);
        if (r == 0)
                r = compose_name(composition, gpuq_in(scan->from));
        if (r == 0)
                r = compose_name(composition, to);
        if (r == 0)
                r = scan_launch_parts(composition, scan, sums, parts);
        if (r == 0)
                r = scan_launch(composition, scan, sums, parts, to);
        return r;
}

int gpuq_job_scan(gpuq_job *job, const gpuq_scan *scan) {
        Composition composition;
        int r;

        r = compose_begin(&composition, "scan", job);
        if (r < 0)
                return r;
        return compose_end(&composition, scan_append(&composition, scan));
}
