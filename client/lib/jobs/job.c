/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: its life, its settings and its end.
 */

#include "job.h"

#include <string.h>

#include "direct.h"
#include "error.h"
#include "wait.h"
#include "util/grow.h"

#define JOB_LABEL_MAX    64 /* bytes, of the protocol */
#define JOB_PRIORITY_MAX 100

int job_create(gpuq_client *client, gpuq_job **ret_job) {
        gpuq_job *job;

        job = calloc(1, sizeof(*job));
        if (!job)
                return error_memory();

        job->refs = 1;
        job->client = client_ref(client);
        job->state = GPUQ_BUILDING;
        job->settings.device = -1;
        *ret_job = job;
        return 0;
}

int gpuq_job_new(gpuq_client *client, gpuq_job **ret_job) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, job_create(client, ret_job));
}

gpuq_job *job_ref(gpuq_job *job) {
        job->refs++;
        return job;
}

static void job_free_memory(gpuq_job *job) {
        free(job->buffers);
        free(job->kernels);
        free(job->apart.pairs);
        free(job->after);
        free(job->operations);
        free(job->settings.label);
        free(job->result.text);
        free(job->result.output);
        free(job);
}

/* Release what the job needed to run. */
static void job_release(gpuq_job *job) {
        for (size_t i = 0; i < job->n_buffers; i++)
                buffer_unref(job->buffers[i].buffer);
        job->n_buffers = 0;

        for (size_t i = 0; i < job->n_kernels; i++) {
                free(job->kernels[i].owned);
                module_unref(job->kernels[i].module);
        }
        job->n_kernels = 0;
        apart_forget(&job->apart, 0);

        free(job->operations);
        free(job->after);
        job->operations = NULL;
        job->after = NULL;
        job->n_operations = job->n_operations_max = job->n_after = 0;
}

void job_unref(gpuq_job *job) {
        gpuq_client *client = job->client;

        if (--job->refs > 0)
                return;

        job_release(job);
        job_free_memory(job);
        client_unref(client);
}

/* In a child: buffers and modules belong to the parent, and the job's references to them stay
 * as they are. */
static void job_free_forked(gpuq_job *job) {
        gpuq_client *client = job->client;

        if (--job->refs > 0)
                return;

        job_free_memory(job);
        client_unref(client);
}

void gpuq_job_free(gpuq_job *job) {
        gpuq_client *client;

        if (!job)
                return;
        if (client_forked(job->client)) {
                job_free_forked(job);
                return;
        }

        client = client_ref(job->client);
        pthread_mutex_lock(&client->lock);
        job->func = NULL; /* its result is lost: no handle is left */
        job_unref(job);
        client_leave(client, 0);
}

/* ---- settings ------------------------------------------------------------------ */

int job_enter_building(gpuq_job *job) {
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;
        if (job->state != GPUQ_BUILDING)
                return client_leave(client,
                                    error_set(GPUQ_E_INVALID, "the job was already submitted"));

        return 0;
}

int gpuq_job_after(gpuq_job *job, uint64_t id) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        if (grow(&job->after, job->n_after, sizeof(*job->after)) < 0)
                return client_leave(job->client, error_memory());

        job->after[job->n_after++] = id;
        return client_leave(job->client, 0);
}

int gpuq_job_set_priority(gpuq_job *job, int priority) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        if (priority < -JOB_PRIORITY_MAX || priority > JOB_PRIORITY_MAX)
                return client_leave(job->client,
                                    error_set(GPUQ_E_INVALID,
                                              "priority %d is out of range: %d to %d", priority,
                                              -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX));

        job->settings.priority = priority;
        return client_leave(job->client, 0);
}

int gpuq_job_set_timeout(gpuq_job *job, unsigned timeout_ms) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        job->settings.timeout_ms = timeout_ms;
        return client_leave(job->client, 0);
}

static int job_set_label(gpuq_job *job, const char *label) {
        char *copy;

        if (strlen(label) > JOB_LABEL_MAX)
                return error_set(GPUQ_E_INVALID, "the label is longer than %d bytes",
                                 JOB_LABEL_MAX);

        copy = strdup(label);
        if (!copy)
                return error_memory();

        free(job->settings.label);
        job->settings.label = copy;
        return 0;
}

int gpuq_job_set_label(gpuq_job *job, const char *label) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        return client_leave(job->client, job_set_label(job, label ? label : ""));
}

int gpuq_job_set_device(gpuq_job *job, int device) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        job->settings.device = device < 0 ? -1 : device;
        return client_leave(job->client, 0);
}

int gpuq_job_set_repeatable(gpuq_job *job, bool repeatable) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        job->settings.repeatable = repeatable;
        return client_leave(job->client, 0);
}

int gpuq_job_set_timed(gpuq_job *job, bool timed) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        job->settings.timed = timed;
        return client_leave(job->client, 0);
}

int gpuq_job_set_checked(gpuq_job *job, bool checked) {
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        job->settings.is_checked = checked;
        return client_leave(job->client, 0);
}

int gpuq_job_set_callback(gpuq_job *job, gpuq_job_func func, void *userdata) {
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;
        if (job->state > GPUQ_PENDING)
                return client_leave(client, error_set(GPUQ_E_INVALID, "the job has already ended"));

        job->func = func;
        job->userdata = userdata;
        return client_leave(client, 0);
}

/* ---- the end ---------------------------------------------------------------------- */

static void job_queue_callback(gpuq_job *job) {
        gpuq_client *client = job->client;

        job->callback = JOB_CALLBACK_QUEUED;
        job_ref(job);
        TAILQ_INSERT_TAIL(&client->jobs->callbacks, job, callbacks);
        loop_notify(&client->loop);
}

void job_is_seen(gpuq_job *job) {
        job->client->jobs->n_open -= job->is_open;
        job->is_open = false;
        job_release(job);
}

void job_forget(gpuq_job *job) {
        job->kept = kept_free(job->kept);
        prepared_unref(TAKE_PTR(job->prepared));
}

void job_leave_ring(gpuq_job *job) {
        if (job->is_direct)
                direct_forget(job->client, job->entry);
        job->is_direct = false;
}

static void job_end(gpuq_job *job, gpuq_state state, int error, const char *text) {
        gpuq_client *client = job->client;

        HASH_DEL(client->jobs->submitted, job);
        client->jobs->n_ended++;
        job_is_seen(job);
        job_forget(job);
        job_leave_ring(job);
        word_give(&client->jobs->words, job->word);
        job->word = 0;

        job->state = state;
        job->result.error = error;
        if (text[0] != '\0')
                job->result.text = strdup(text);
        if (job->func)
                job_queue_callback(job);
        job_unref(job);
}

const uint32_t *job_word(const gpuq_job *job) {
        return job->is_direct ? &direct_entry(job->client, job->entry)->done
                              : word_at(&job->client->jobs->words, job->word);
}

bool job_is_done(const gpuq_job *job) {
        const uint32_t *word = job_word(job);

        return word && __atomic_load_n(word, __ATOMIC_ACQUIRE) == job->tag;
}

static bool job_is_end(const Gpuq__V1__Completion *completion) {
        const Gpuq__V1__Error *error = completion->error;

        if (completion->state == GPUQ__V1__STATE__DONE)
                return !error || error->code == GPUQ__V1__CODE__OK;

        return (completion->state == GPUQ__V1__STATE__FAILED ||
                completion->state == GPUQ__V1__STATE__CANCELLED) &&
               error && error->code != GPUQ__V1__CODE__OK;
}

bool job_complete(gpuq_job *job, const Gpuq__V1__Completion *completion) {
        const Gpuq__V1__Error *error = completion->error;
        /* A completion word is final: a restarted daemon may not find memory that was released
         * meanwhile. */
        bool done = completion->state == GPUQ__V1__STATE__DONE || job_is_done(job);

        if (!job_is_end(completion))
                return false;

        if (completion->output[0] != '\0')
                job->result.output = strdup(completion->output);
        job->result.waited_us = completion->waited_us;
        job->result.ran_us = completion->ran_us;
        job->result.gpu_ns = completion->gpu_ns;
        job->result.ran_on = (int)completion->device;
        job_end(job, done ? GPUQ_DONE : (gpuq_state)completion->state,
                done ? 0 : error_from_code(error->code), done ? "" : error->text);
        return true;
}

static void job_collect(gpuq_job *job) {
        const DirectEntry *entry = direct_entry(job->client, job->entry);
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT;

        completion.state = GPUQ__V1__STATE__DONE;
        completion.waited_us = entry->waited_us;
        completion.ran_us = entry->ran_us;
        completion.device = job->client->direct.device;
        (void)job_complete(job, &completion);
}

void jobs_collect(gpuq_client *client) {
        uint32_t entry = client->direct.first, end = client->direct.ring.position;
        bool any = false;
        gpuq_job *job;

        for (; entry != end; entry++) {
                job = direct_job(client, entry);
                if (!job || !job_is_done(job))
                        continue;
                job_collect(job);
                any = true;
        }
        if (!any)
                return;
        client->lead.n_turns++;
        client_wake(client); /* a leader may wait for one of them */
}

void jobs_end(gpuq_client *client, int error, const char *text) {
        gpuq_job *job, *next;

        HASH_ITER (hh, client->jobs->submitted, job, next) {
                if (job_is_done(job)) /* gpuq_wait() may have reported it already */
                        job_end(job, GPUQ_DONE, 0, "");
                else
                        job_end(job, GPUQ_FAILED, error, text);
        }
}

static void job_run_callback(gpuq_client *client, gpuq_job *job) {
        gpuq_job_func func = job->func;
        void *userdata = job->userdata;

        if (func) { /* the user has not freed the job meanwhile */
                job->callback = JOB_CALLBACK_RUNNING;
                job->callback_thread = pthread_self();
                pthread_mutex_unlock(&client->lock);
                func(job, userdata);
                pthread_mutex_lock(&client->lock);
        }

        job->callback = JOB_CALLBACK_NONE;
        job_unref(job);
        client_wake(client); /* another thread may wait for this callback to return */
}

void jobs_run_callbacks(gpuq_client *client) {
        Jobs *jobs = client->jobs;
        gpuq_job *job;

        jobs_collect(client);
        if (TAILQ_EMPTY(&jobs->callbacks) && !client->loop.is_notified)
                return;

        client_let_others(client); /* another thread may lead meanwhile, see wait.c */
        while ((job = TAILQ_FIRST(&jobs->callbacks))) {
                TAILQ_REMOVE(&jobs->callbacks, job, callbacks);
                job_run_callback(client, job);
        }
        loop_notified(&client->loop);
}

bool job_has_ended(const gpuq_job *job) {
        if (job->state <= GPUQ_PENDING || job->callback == JOB_CALLBACK_QUEUED)
                return false;

        return job->callback == JOB_CALLBACK_NONE ||
               pthread_equal(job->callback_thread, pthread_self());
}

static bool job_is_told(gpuq_client *client, void *userdata) {
        const gpuq_job *job = userdata;

        return job->state > GPUQ_PENDING;
}

int gpuq_job_get_result(const gpuq_job *job, gpuq_result *ret_result) {
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;
        if (job->state == GPUQ_PENDING &&
            job_is_done(job)) /* done by its word, but the completion has not arrived yet */
                client_wait(client, job_is_told, (void *)job, CLIENT_FOREVER, false);
        if (job->state <= GPUQ_PENDING)
                return client_leave(client, error_set(GPUQ_E_AGAIN, "the job has not ended yet"));

        *ret_result = (gpuq_result){
                .state = job->state,
                .error = job->result.error,
                .text = job->result.text ? job->result.text : "",
                .output = job->result.output ? job->result.output : "",
                .waited_us = job->result.waited_us,
                .ran_us = job->result.ran_us,
                .gpu_ns = job->result.gpu_ns,
                .device = job->result.ran_on,
        };
        return client_leave(client, 0);
}

uint64_t gpuq_job_id(const gpuq_job *job) {
        return job ? __atomic_load_n(&job->id, __ATOMIC_RELAXED) : 0;
}
