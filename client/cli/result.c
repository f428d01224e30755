/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

static const char *result_state(gpuq_state state) {
        switch (state) {
                case GPUQ_DONE:
                        return "done";
                case GPUQ_FAILED:
                        return "failed";
                case GPUQ_CANCELLED:
                        return "cancelled";
                default:
                        return "pending";
        }
}

void result_json(struct json_object *document, uint64_t id, const gpuq_result *result) {
        json_id(document, "id", id);
        json_text(document, "state", result_state(result->state));
        json_text(document, "error", result->error ? gpuq_error_name(result->error) : NULL);
        json_text(document, "text", result->text);
        json_text(document, "output", result->output);
        json_signed(document, "device", result->device);
        json_number(document, "waited_us", result->waited_us);
        json_number(document, "ran_us", result->ran_us);
        json_number(document, "gpu_ns", result->gpu_ns);
}
