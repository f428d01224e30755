/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When and where jobs waited and ran, read while they end.
 */

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "call.h"
#include "error.h"

static const char *const trace_states[] = {
        [GPUQ__V1__STATE__DONE] = "done",
        [GPUQ__V1__STATE__FAILED] = "failed",
        [GPUQ__V1__STATE__CANCELLED] = "cancelled",
};

static const char *trace_state(Gpuq__V1__State state) {
        const char *text = (size_t)state < ARRAY_SIZE(trace_states) ? trace_states[state] : NULL;

        return text ? text : "unknown";
}

static gpuq_trace_job trace_job(const Gpuq__V1__TraceJob *from, Block *block) {
        return (gpuq_trace_job){
                .id = from->id,
                .uid = from->uid,
                .state = trace_state(from->state),
                .code = from->code ? gpuq_error_name(error_from_code(from->code)) : "",
                .label = block_text(block, from->label),
                .kernels = block_text(block, from->kernels),
                .program = block_text(block, from->program),
                .client_pid = (int)from->client,
                .device = (int)(from->device - 1),
                .worker_pid = (int)from->worker,
                .stream = (int)(from->stream - 1),
                .submitted_ns = from->submitted_ns,
                .started_ns = from->started_ns,
                .ended_ns = from->ended_ns,
                .behind_ns = from->behind_ns,
                .parked_ns = from->parked_ns,
                .ran_us = from->ran_us,
                .gpu_ns = from->gpu_ns,
                .moved_bytes = from->moved_bytes,
                .n_beside = from->beside,
                .retries = from->retries,
        };
}

static size_t trace_n_texts(const Gpuq__V1__Trace *from) {
        size_t n = 0;

        for (size_t i = 0; i < from->n_jobs; i++)
                n += strlen(from->jobs[i]->label) + strlen(from->jobs[i]->kernels) +
                     strlen(from->jobs[i]->program) + 3;
        return n;
}

static int trace_new(const Gpuq__V1__Trace *from, gpuq_trace **ret_trace) {
        gpuq_trace *trace;
        Block block;
        int r;

        r = block_new(sizeof(*trace) + from->n_jobs * sizeof(*trace->jobs), trace_n_texts(from),
                      &block);
        if (r < 0)
                return r;

        trace = (gpuq_trace *)block.memory;
        trace->jobs = (gpuq_trace_job *)(trace + 1);
        trace->n_jobs = from->n_jobs;
        trace->lost = from->lost;
        trace->now_ns = from->now_ns;
        trace->unix_ns = from->unix_ns;
        trace->is_last = !from->more;
        trace->all_users = from->all_users;
        for (size_t i = 0; i < from->n_jobs; i++)
                trace->jobs[i] = trace_job(from->jobs[i], &block);
        *ret_trace = trace;
        return 0;
}

static int trace_get(gpuq_client *client, gpuq_trace_cursor *cursor, gpuq_trace **ret_trace) {
        Gpuq__V1__TraceGet get = GPUQ__V1__TRACE_GET__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        get.trace = cursor->trace;
        get.next = cursor->next;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_TRACE_GET, &get, GPUQ__V1__REPLY__BODY_TRACE,
                     CLIENT_FOREVER, &reply, NULL);
        if (r < 0)
                return r;
        r = trace_new(reply->trace, ret_trace);
        if (r < 0)
                return r;
        cursor->trace = reply->trace->trace;
        cursor->next = reply->trace->next;
        return 0;
}

int gpuq_get_trace(gpuq_client *client, gpuq_trace_cursor *cursor, gpuq_trace **ret_trace) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, trace_get(client, cursor, ret_trace));
}

void gpuq_trace_free(gpuq_trace *trace) {
        free(trace);
}
