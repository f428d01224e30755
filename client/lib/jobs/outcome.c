/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a job: waiting for its end, asking, cancelling.
 */

#include "call.h"
#include "error.h"
#include "job.h"
#include "wait.h"

/* A callback runs after the completion has arrived, so a waiter for a job with a callback waits
 * for the completion. */
static bool wait_job_done(gpuq_client *client, void *userdata) {
        const gpuq_job *job = userdata;

        jobs_run_callbacks(client);
        return job_has_ended(job) || (!job->func && job_is_done(job));
}

/* Return: as client_wait(), with a text. */
static int wait_job(gpuq_client *client, gpuq_job *job, int timeout_ms) {
        char id[24];
        int r;

        if (job->state == GPUQ_BUILDING)
                return error_set(GPUQ_E_INVALID,
                                 "the job was not submitted; call gpuq_submit() first");

        client_flush(client);
        r = client_wait_word(client, wait_job_done, job, client_deadline_us(timeout_ms), false,
                             job->func ? NULL : job_word(job), job->tag);
        if (r == GPUQ_E_AGAIN)
                return error_set(r, "job %s has not ended within %d ms and goes on",
                                 gpuq_id_format(job->id, id), timeout_ms);

        job_is_seen(job);
        return 0;
}

int gpuq_wait(gpuq_job *job, int timeout_ms) {
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;

        job_ref(job); /* its callback may free it */
        r = wait_job(client, job, timeout_ms);
        if (r == 0 && job->result.error != 0)
                r = error_set(job->result.error, "%s", job->result.text ? job->result.text : "");
        words_consider(&client->jobs->words, client);
        job_unref(job);
        return client_leave(client, r);
}

int gpuq_run(gpuq_job *job) {
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;
        job_ref(job); /* another thread may run its callback before this one waits */
        pthread_mutex_unlock(&client->lock);

        r = gpuq_submit(job);
        if (r == 0)
                r = gpuq_wait(job, -1);

        pthread_mutex_lock(&client->lock);
        job_unref(job);
        return client_leave(client, r);
}

int gpuq_poll(gpuq_job *job) {
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;

        job_ref(job);
        r = wait_job(client, job, 0);
        job_unref(job);
        if (r == GPUQ_E_AGAIN)
                return client_leave(client, 0);

        return client_leave(client, r < 0 ? r : 1);
}

static int wait_id(gpuq_client *client, uint64_t id, int timeout_ms, gpuq_result *ret_result) {
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        const Gpuq__V1__Completion *completion;
        gpuq_result result;
        char text[24];
        int r;

        r = call_wait_id(client, id, client_deadline_us(timeout_ms), &reply);
        if (r == GPUQ_E_AGAIN)
                return error_set(r, "job %s has not ended within %d ms and goes on",
                                 gpuq_id_format(id, text), timeout_ms);
        if (r < 0)
                return r;

        if (reply->completions->n_completions != 1 ||
            reply->completions->completions[0]->id != id) {
                client_fail(
                        client, GPUQ_E_PROTOCOL,
                        "protocol error: gpuqd answered for another job than the requested one");
                return client_error(client);
        }

        completion = reply->completions->completions[0];
        result = (gpuq_result){
                .state = (gpuq_state)completion->state,
                .error = completion->state == GPUQ__V1__STATE__DONE ? 0 : GPUQ_E_INTERNAL,
                .waited_us = completion->waited_us,
                .ran_us = completion->ran_us,
                .gpu_ns = completion->gpu_ns,
                .device = (int)completion->device,
        };
        if (result.error != 0 && completion->error)
                result.error = error_from_code(completion->error->code);

        r = error_lend_texts(completion->error ? completion->error->text : "", completion->output,
                             &result.text, &result.output);
        if (r < 0)
                return r;

        if (ret_result)
                *ret_result = result;
        return result.error == 0 ? 0 : error_set(result.error, "%s", result.text);
}

int gpuq_wait_id(gpuq_client *client, uint64_t id, int timeout_ms, gpuq_result *ret_result) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, wait_id(client, id, timeout_ms, ret_result));
}

/* ---- cancelling ------------------------------------------------------------------ */

int gpuq_cancel(gpuq_job *job) {
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;
        if (job->state == GPUQ_BUILDING)
                return client_leave(
                        client, error_set(GPUQ_E_INVALID,
                                          "the job was not submitted; call gpuq_submit() first"));
        if (job->state != GPUQ_PENDING)
                return client_leave(client, 0);

        /* Do not wait for the reply: the end of the job shows whether it was cancelled. */
        job->cancelled = true;
        cancel.n_ids = 1;
        cancel.ids = &job->id;
        r = client_send(client, GPUQ__V1__REQUEST__BODY_CANCEL, &cancel, NULL);
        if (r == 0)
                client_flush(client);
        return client_leave(client, r);
}

/* Adds to @cancelled. */
static int cancel_ask(gpuq_client *client, const Gpuq__V1__Cancel *cancel,
                      gpuq_cancelled *cancelled) {
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        r = call_run(client, GPUQ__V1__REQUEST__BODY_CANCEL, (void *)cancel,
                     GPUQ__V1__REPLY__BODY_CANCELLED, CLIENT_FOREVER, &reply, NULL);
        if (r < 0)
                return r;

        cancelled->n_ended += reply->cancelled->n_ids;
        cancelled->n_unknown += reply->cancelled->n_unknown;
        cancelled->n_denied += reply->cancelled->n_denied;
        return 0;
}

/* Adds to @cancelled. @n_ids 0: all jobs of the user. */
static int cancel_some(gpuq_client *client, const uint64_t *ids, size_t n_ids,
                       gpuq_cancelled *cancelled) {
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;

        cancel.all = n_ids == 0;
        cancel.n_ids = n_ids;
        cancel.ids = (uint64_t *)ids;
        return cancel_ask(client, &cancel, cancelled);
}

static int cancel_ids(gpuq_client *client, const uint64_t *ids, size_t n_ids,
                      gpuq_cancelled *ret_cancelled) {
        gpuq_cancelled cancelled = {};
        size_t n_part;
        int r;

        do {
                n_part = MIN(n_ids, (size_t)WIRE_CANCEL_MAX);
                r = cancel_some(client, ids, n_part, &cancelled);
                if (r < 0)
                        return r;
                ids += n_part;
                n_ids -= n_part;
        } while (n_ids > 0);

        if (ret_cancelled)
                *ret_cancelled = cancelled;
        return 0;
}

int gpuq_cancel_ids(gpuq_client *client, const uint64_t *ids, size_t n_ids,
                    gpuq_cancelled *ret_cancelled) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, cancel_ids(client, ids, n_ids, ret_cancelled));
}

static int cancel_slurm_job(gpuq_client *client, uint32_t slurm_job,
                            gpuq_cancelled *ret_cancelled) {
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        gpuq_cancelled cancelled = {};
        int r;

        if (!slurm_job) /* with it gpuqd would cancel nothing */
                return error_set(GPUQ_E_INVALID, "0 is no job of Slurm");
        cancel.slurm_job = slurm_job;
        r = cancel_ask(client, &cancel, &cancelled);
        if (r == 0 && ret_cancelled)
                *ret_cancelled = cancelled;
        return r;
}

int gpuq_cancel_slurm_job(gpuq_client *client, uint32_t slurm_job, gpuq_cancelled *ret_cancelled) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, cancel_slurm_job(client, slurm_job, ret_cancelled));
}
