/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_RESULT_H
#define GPUQ_CLI_RESULT_H

/*
 * How a job ended, in JSON.
 */

#include <gpuq.h>

#include "json.h"

/** result_json() - add the members that `gpuq run' and `gpuq wait' share. */
void result_json(struct json_object *document, uint64_t id, const gpuq_result *result);

#endif
