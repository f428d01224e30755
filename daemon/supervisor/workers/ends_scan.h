/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ENDS_SCAN_H
#define GPUQ_SUPERVISOR_ENDS_SCAN_H

/*
 * Ends scan
 *
 * Unpacks the one message of a worker that comes with every job, as submit_scan.h does for
 * those of clients: the ends of jobs that ran well and printed nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/worker.pb-c.h"
#include "util/bump.h"

/** ends_scan() - Return: a message in @bump's memory, or NULL with nothing in it: ask protobuf-c. */
Gpuq__Worker__FromWorker *ends_scan(Bump *bump, const uint8_t *data, size_t n_data);

#endif
