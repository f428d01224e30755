/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SESSION_COMPLETIONS_SCAN_H
#define GPUQ_SESSION_COMPLETIONS_SCAN_H

/*
 * Completions scan
 *
 * Decodes the one message that comes with every job: completions of jobs that succeeded
 * and printed nothing. It takes a tenth of the time of protobuf-c, which decodes
 * everything else.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"
#include "util/bump.h"

/** completions_scan() - Return: a message in @bump's memory, or NULL with nothing in it: ask protobuf-c. */
Gpuq__V1__Reply *completions_scan(Bump *bump, const uint8_t *data, size_t n_data);

#endif
