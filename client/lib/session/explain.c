/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a job's time went.
 */

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "call.h"
#include "error.h"

static const char *const explain_states[] = {
        [GPUQ__V1__STATE__WAITING] = "waiting",     [GPUQ__V1__STATE__RUNNING] = "running",
        [GPUQ__V1__STATE__DONE] = "done",           [GPUQ__V1__STATE__FAILED] = "failed",
        [GPUQ__V1__STATE__CANCELLED] = "cancelled",
};

static const char *const explain_advice[] = {
        [GPUQ__V1__ADVICE__ADVICE_NOTHING] = "nothing",
        [GPUQ__V1__ADVICE__ADVICE_LESS_MEMORY] = "less-memory",
        [GPUQ__V1__ADVICE__ADVICE_PIN] = "pin",
        [GPUQ__V1__ADVICE__ADVICE_KEEP_DATA] = "keep-data",
        [GPUQ__V1__ADVICE__ADVICE_IN_FLIGHT] = "in-flight",
        [GPUQ__V1__ADVICE__ADVICE_PREPARE] = "prepare",
};

static gpuq_job_times explain_times(const Gpuq__V1__JobTimes *from) {
        if (!from)
                return (gpuq_job_times){0};

        return (gpuq_job_times){
                .dependencies_us = from->dependencies_us,
                .module_us = from->module_us,
                .queue_us = from->queue_us,
                .launch_us = from->launch_us,
                .ran_us = from->ran_us,
                .moved_bytes = from->moved_bytes,
                .gpu_ns = from->gpu_ns,
        };
}

static int explain_new(const Gpuq__V1__Explanation *from, gpuq_explanation **ret_explanation) {
        gpuq_explanation *to;
        Block block;
        int r;

        r = block_new(sizeof(*to),
                      strlen(from->label) + strlen(from->kernel) + strlen(from->reason) + 3,
                      &block);
        if (r < 0)
                return r;

        to = (gpuq_explanation *)block.memory;
        to->id = from->id;
        to->uid = from->uid;
        to->state = (size_t)from->state < ARRAY_SIZE(explain_states) ? explain_states[from->state]
                                                                     : "unknown";
        to->label = block_text(&block, from->label);
        to->kernel = block_text(&block, from->kernel);
        to->reason = block_text(&block, from->reason);
        to->device = (int)(from->device - 1);
        to->times = explain_times(from->times);
        to->median = explain_times(from->median);
        to->n_median = from->n_median;
        to->n_beside = from->n_beside;
        /* A newer daemon may know more. */
        to->advice = (size_t)from->advice < ARRAY_SIZE(explain_advice)
                             ? explain_advice[from->advice]
                             : explain_advice[GPUQ__V1__ADVICE__ADVICE_NOTHING];
        *ret_explanation = to;
        return 0;
}

static int explain_get(gpuq_client *client, uint64_t id, gpuq_explanation **ret_explanation) {
        Gpuq__V1__ExplainGet get = GPUQ__V1__EXPLAIN_GET__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        get.id = id;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_EXPLAIN_GET, &get,
                     GPUQ__V1__REPLY__BODY_EXPLANATION, CLIENT_FOREVER, &reply, NULL);
        if (r < 0)
                return r;

        return explain_new(reply->explanation, ret_explanation);
}

int gpuq_explain(gpuq_client *client, uint64_t id, gpuq_explanation **ret_explanation) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, explain_get(client, id, ret_explanation));
}

void gpuq_explanation_free(gpuq_explanation *explanation) {
        free(explanation);
}
