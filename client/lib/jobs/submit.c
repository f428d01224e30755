/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitting jobs
 *
 * All jobs of one call are checked and packed before the first is queued, and queuing does not
 * fail for lack of space. So either all jobs are submitted or none. Without a connection nothing
 * is queued; after reconnecting they are sent with all other unfinished jobs.
 */

#include "submit.h"

#include <assert.h>

#include "proto/pack.h"

#include "checked.h"
#include "direct.h"
#include "error.h"
#include "receive.h"
#include "wait.h"

#define SUBMIT_OVERHEAD 64u /* bytes of a Request with a Submit around its jobs, at most */
#define SUBMIT_ROOM_BYTES                                                                          \
        (4u << 20) /* with more bytes waiting to be sent, the daemon is slow: wait first */
#define SUBMIT_ROOM_MS 10000
#define SUBMIT_FLUSH_MS                                                                            \
        20 /* a program that computes after submitting does not call the library to send the rest */
#define SUBMIT_N_UNREAD 64u /* after this many jobs, received messages are read */

/* ---- packing ---------------------------------------------------------------------- */

/* An upper bound; large fields are counted exactly. */
static size_t submit_measure(const gpuq_job *job) {
        size_t n = (13 + job->n_after) * PACK_FIELD_BYTES + job->n_operations;

        n += job->n_buffers * (PACK_PREFIX_BYTES + 4 * PACK_FIELD_BYTES);
        for (size_t i = 0; i < job->n_kernels; i++)
                n += 2 * PACK_PREFIX_BYTES + PACK_FIELD_BYTES + strlen(job->kernels[i].name);
        return job->settings.label ? n + strlen(job->settings.label) : n;
}

static uint8_t *submit_pack_buffer(uint8_t *p, const BufferUse *used) {
        uint8_t *begin = pack_open(p, 2);

        p = pack_number(begin, 1, used->buffer->arena->id);
        p = pack_number(p, 2, used->buffer->offset);
        p = pack_number(p, 3, used->buffer->size);
        p = pack_number(p, 4, used->direction);
        return pack_close(begin, p);
}

static uint8_t *submit_pack_kernel(uint8_t *p, const JobKernel *kernel) {
        uint8_t *begin = pack_open(p, 3);

        p = pack_number(begin, 1, kernel->module->id);
        p = pack_bytes(p, 2, kernel->name, strlen(kernel->name));
        return pack_close(begin, p);
}

static uint8_t *submit_pack_after(uint8_t *p, const gpuq_job *job) {
        uint8_t *begin;

        if (job->n_after == 0)
                return p;

        begin = p = pack_begin(p, 5);
        for (size_t i = 0; i < job->n_after; i++)
                p = pack_varint(p, job->after[i]);
        pack_end(begin, p);
        return p;
}

/* A gpuq.v1.Job, its fields in the order of their numbers. */
static uint8_t *submit_pack_job(uint8_t *p, const gpuq_job *job, uint32_t tag) {
        uint64_t word_arena, word_offset;

        word_name(&job->client->jobs->words, job->word, &word_arena, &word_offset);
        p = pack_number(p, 1, tag);
        for (size_t i = 0; i < job->n_buffers; i++)
                p = submit_pack_buffer(p, &job->buffers[i]);
        for (size_t i = 0; i < job->n_kernels; i++)
                p = submit_pack_kernel(p, &job->kernels[i]);
        p = pack_bytes(p, 4, job->operations, job->n_operations);
        p = submit_pack_after(p, job);
        p = pack_signed(p, 6, job->settings.priority);
        p = pack_number(p, 7, job->settings.timeout_ms);
        if (job->settings.label)
                p = pack_bytes(p, 8, job->settings.label, strlen(job->settings.label));
        p = pack_number(p, 9, (uint32_t)(job->settings.device + 1));
        p = pack_number(p, 10, job->settings.repeatable);
        p = pack_number(p, 11, job->settings.timed);
        p = pack_number(p, 12, word_arena);
        p = pack_number(p, 13, word_offset);
        return pack_number(p, 14, job->settings.by_address);
}

int submit_pack(const gpuq_job *job, uint32_t tag, Kept **ret_kept) {
        size_t n_max = submit_measure(job);
        Kept *kept;
        int r;

        if (n_max > WIRE_FRAME_MAX - SUBMIT_OVERHEAD)
                return error_set(GPUQ_E_INVALID,
                                 "the job is too large: its message has %zu bytes, the limit is %u",
                                 n_max, WIRE_FRAME_MAX);

        r = kept_new(&job->client->jobs->kept, n_max, &kept);
        if (r < 0)
                return r;

        kept->n_bytes = (uint32_t)(submit_pack_job(kept->bytes, job, tag) - kept->bytes);
        assert(kept->n_bytes <= n_max);
        *ret_kept = kept;
        return 0;
}

int submit_message(const gpuq_job *job, Gpuq__V1__Job **ret_message) {
        Gpuq__V1__Job *message;
        Kept *kept;
        int r;

        r = submit_pack(job, 0, &kept);
        if (r < 0)
                return r;

        message = gpuq__v1__job__unpack(NULL, kept->n_bytes, kept->bytes);
        kept_free(kept);
        if (!message)
                return error_memory();

        *ret_message = message;
        return 0;
}

/* ---- saying -------------------------------------------------------------------------- */

/* How many of the first jobs are of one kind and fit in a message; at least one. */
static size_t submit_count(gpuq_job *const *jobs, size_t n_jobs, size_t *ret_n_bytes) {
        size_t n_bytes = SUBMIT_OVERHEAD, n, more;

        n_jobs = n_jobs < WIRE_JOBS_MAX ? n_jobs : WIRE_JOBS_MAX;
        for (n = 0; n < n_jobs && jobs[n]->kept->is_fire == jobs[0]->kept->is_fire; n++) {
                more = jobs[n]->kept->n_bytes + PACK_PREFIX_BYTES;
                if (n > 0 && n_bytes + more > WIRE_JOBS_BYTES)
                        break;
                n_bytes += more;
        }

        *ret_n_bytes = n_bytes;
        return n;
}

/* A Request with a Submit or with Fires, whose fields have the same numbers. */
static size_t submit_pack_request(gpuq_client *client, uint8_t *payload, gpuq_job *const *jobs,
                                  size_t n_jobs) {
        Gpuq__V1__Request request;
        uint8_t *begin, *p;

        client_fill_request(client,
                            jobs[0]->kept->is_fire ? GPUQ__V1__REQUEST__BODY_FIRES
                                                   : GPUQ__V1__REQUEST__BODY_SUBMIT,
                            NULL, &request);
        client->serial = request.serial;

        p = pack_number(payload, 1, request.serial);
        begin = p = pack_begin(p, request.body_case);
        for (size_t i = 0; i < n_jobs; i++)
                p = pack_bytes(p, 1, jobs[i]->kept->bytes, jobs[i]->kept->n_bytes);
        p = pack_number(p, 2, client->jobs->n_seen);
        pack_end(begin, p);
        return (size_t)(p - payload);
}

int submit_say(gpuq_client *client, gpuq_job *const *jobs, size_t n_jobs, size_t *ret_n) {
        size_t n_bytes, n = submit_count(jobs, n_jobs, &n_bytes);
        uint8_t *payload;
        int r;

        if (client->error != 0)
                return client_error(client);
        if (!client_is_connected(client)) {
                client->resume.n_pending += n_bytes;
                *ret_n = n;
                return 0;
        }

        direct_leave(client);
        r = wire_begin(client->wire, n_bytes, &payload);
        if (r != 0)
                return client_not_queued(r);

        wire_end(client->wire, submit_pack_request(client, payload, jobs, n));
        *ret_n = n;
        return 0;
}

/* ---- one job ---------------------------------------------------------------------- */

int submit_check(const gpuq_client *client, const gpuq_job *job, size_t n_jobs) {
        if (!job || job->client != client)
                return error_set(GPUQ_E_INVALID,
                                 "a job to submit is NULL or belongs to another connection");
        if (job->state != GPUQ_BUILDING)
                return error_set(GPUQ_E_INVALID, "the job was already submitted");
        if (job->n_operations == 0)
                return error_set(GPUQ_E_INVALID, "the job has no operation; add a launch, copy or "
                                                 "fill before submitting it");
        if (client->jobs->tag > UINT32_MAX - n_jobs)
                return error_set(GPUQ_E_INVALID,
                                 "this session has no job numbers left; connect again");
        return 0;
}

int submit_enter(gpuq_job *job, uint32_t tag, bool alone) {
        gpuq_client *client = job->client;

        job->tag = tag;
        HASH_ADD(hh, client->jobs->submitted, tag, sizeof(job->tag), job);
        if (!job->hh.tbl)
                return error_memory();

        if (alone)
                job->word = word_take(&client->jobs->words, client->jobs->n_open);
        job->state = GPUQ_PENDING;
        job_ref(job); /* the table's */
        return 0;
}

void submit_undo(gpuq_job *job) {
        HASH_DEL(job->client->jobs->submitted, job);
        job_forget(job);
        word_give(&job->client->jobs->words, job->word);
        job->word = 0;
        job->state = GPUQ_BUILDING;
        job_unref(job);
}

void submit_commit(gpuq_job *job) {
        gpuq_client *client = job->client;

        __atomic_store_n(&job->id, (uint64_t)client->session << 32 | job->tag, __ATOMIC_RELAXED);
        job->is_open = true;
        client->jobs->n_open++;
        client->jobs->tag = job->tag;
}

/* ---- a submission --------------------------------------------------------------- */

typedef struct Submission {
        gpuq_client *client;
        gpuq_job *const *jobs;
        size_t n_jobs;
} Submission;

/* Add to the table of submitted jobs, which also detects a job that is passed twice. */
static int submission_add(Submission *submission, size_t i) {
        uint32_t tag = submission->client->jobs->tag + 1 + (uint32_t)i;
        gpuq_job *job = submission->jobs[i];
        int r;

        r = submit_check(submission->client, job, submission->n_jobs);
        if (r < 0)
                return r;
        r = submit_enter(job, tag, submission->n_jobs <= WORD_FEW_JOBS);
        if (r < 0)
                return r;

        r = submit_pack(job, tag, &job->kept);
        if (r < 0)
                submit_undo(job);
        return r;
}

static void submission_undo(Submission *submission, size_t n_added) {
        for (size_t i = 0; i < n_added; i++)
                submit_undo(submission->jobs[i]);
}

/*
 * Memory may run out between two messages. Then the daemon already has the first jobs. To keep the
 * promise of all or nothing, the session ends.
 */
static int submission_send_all(Submission *submission) {
        size_t n;
        int r;

        for (size_t first = 0; first < submission->n_jobs; first += n) {
                r = submit_say(submission->client, submission->jobs + first,
                               submission->n_jobs - first, &n);
                if (r < 0 && first > 0)
                        client_fail(submission->client, GPUQ_E_CLOSED,
                                    "this process ran out of memory while it submitted jobs");
                if (r < 0)
                        return r;
        }
        return 0;
}

static int submission_queue(Submission *submission) {
        int r;

        for (size_t i = 0; i < submission->n_jobs; i++) {
                r = submission_add(submission, i);
                if (r < 0) {
                        submission_undo(submission, i);
                        return r;
                }
        }

        r = submission_send_all(submission);
        if (r < 0) {
                if (submission->client->error == 0)
                        submission_undo(submission, submission->n_jobs);
                return r;
        }
        return 0;
}

/* The daemon has the jobs, or will receive them: their ids are used up. */
static void submission_commit(Submission *submission) {
        for (size_t i = 0; i < submission->n_jobs; i++)
                submit_commit(submission->jobs[i]);
}

/* ---- sending --------------------------------------------------------------------- */

static bool submit_all_sent(gpuq_client *client, void *userdata) {
        return client->deaf || client_pending(client) == 0;
}

/* Messages of the daemon must not pile up while a program only submits. */
void submit_flush(gpuq_client *client, size_t n_jobs) {
        client_flush(client);
        if (!submit_all_sent(client, NULL))
                client_wait(client, submit_all_sent, NULL, client_deadline_us(SUBMIT_FLUSH_MS),
                            false);

        client->n_unread += (unsigned)n_jobs;
        if ((client->n_unread >= SUBMIT_N_UNREAD || client->deaf) && !client->lead.is_taken &&
            client->error == 0)
                client_receive(client);
}

int submit_make_room(gpuq_client *client) {
        return client_make_room(client, SUBMIT_ROOM_BYTES, SUBMIT_ROOM_MS);
}

static int submit_many(gpuq_client *client, gpuq_job *const *jobs, size_t n_jobs) {
        Submission submission = {.client = client, .jobs = jobs, .n_jobs = n_jobs};
        int r;

        for (size_t i = 0; i < n_jobs; i++)
                if (jobs[i] && jobs[i]->client == client) {
                        r = checked_prepare(jobs[i]);
                        if (r < 0)
                                return r;
                }
        r = submit_make_room(client);
        if (r < 0)
                return r;

        r = submission_queue(&submission);
        if (r < 0)
                return r;

        submission_commit(&submission);
        submit_flush(client, n_jobs);
        return 0;
}

int gpuq_submit_many(gpuq_job *const *jobs, size_t n_jobs) {
        gpuq_client *client;
        int r;

        if (n_jobs == 0)
                return 0;

        client = jobs[0] ? jobs[0]->client : NULL;
        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, submit_many(client, jobs, n_jobs));
}

int gpuq_submit(gpuq_job *job) {
        return gpuq_submit_many(&job, 1);
}
