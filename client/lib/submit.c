/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitting jobs.
 *
 * All jobs of one call are checked and measured before the first is queued, and
 * queuing them cannot fail for want of room, so either all are submitted or none.
 */

#include "submit.h"

#include "buffer.h"
#include "error.h"
#include "module.h"
#include "word.h"

#define SUBMIT_OVERHEAD  64u /* bytes of a Request with a Submit around its jobs, at most */
#define SUBMIT_JOB_EXTRA 8u  /* tag and length before each job, at most */
#define SUBMIT_ROOM_BYTES                                                                          \
        (4u << 20) /* with more waiting to be sent the daemon is slow: wait first */
#define SUBMIT_ROOM_MS 10000
#define SUBMIT_FLUSH_MS                                                                            \
        20 /* a program that computes on after submitting sends nothing more itself */
#define SUBMIT_N_UNREAD 64u /* jobs after which what came back is read */

/* One job as a message; one block of memory. */
typedef struct Packed {
        Gpuq__V1__Job job;
        size_t n_bytes;
} Packed;

static size_t packed_bytes(const gpuq_job *job) {
        return sizeof(Packed) +
               job->n_buffers * (sizeof(Gpuq__V1__Buffer) + sizeof(Gpuq__V1__Buffer *)) +
               job->n_kernels * (sizeof(Gpuq__V1__Kernel) + sizeof(Gpuq__V1__Kernel *));
}

static void packed_fill_buffers(Packed *packed, const gpuq_job *job, void *memory) {
        Gpuq__V1__Buffer *buffers = memory;

        packed->job.n_buffers = job->n_buffers;
        packed->job.buffers = (Gpuq__V1__Buffer **)(buffers + job->n_buffers);
        for (size_t i = 0; i < job->n_buffers; i++) {
                const gpuq_buffer *buffer = job->buffers[i].buffer;

                buffers[i] = (Gpuq__V1__Buffer)GPUQ__V1__BUFFER__INIT;
                buffers[i].arena = buffer->arena->id;
                buffers[i].offset = buffer->offset;
                buffers[i].length = buffer->size;
                buffers[i].direction = (Gpuq__V1__Direction)job->buffers[i].direction;
                packed->job.buffers[i] = &buffers[i];
        }
}

static void packed_fill_kernels(Packed *packed, const gpuq_job *job, void *memory) {
        Gpuq__V1__Kernel *kernels = memory;

        packed->job.n_kernels = job->n_kernels;
        packed->job.kernels = (Gpuq__V1__Kernel **)(kernels + job->n_kernels);
        for (size_t i = 0; i < job->n_kernels; i++) {
                kernels[i] = (Gpuq__V1__Kernel)GPUQ__V1__KERNEL__INIT;
                kernels[i].module = job->kernels[i].module->id;
                kernels[i].name = (char *)job->kernels[i].name;
                packed->job.kernels[i] = &kernels[i];
        }
}

static int packed_new(const gpuq_job *job, uint32_t tag, Packed **ret_packed) {
        Packed *packed;

        packed = malloc(packed_bytes(job));
        if (!packed)
                return error_memory();

        packed->job = (Gpuq__V1__Job)GPUQ__V1__JOB__INIT;
        packed_fill_buffers(packed, job, packed + 1);
        packed_fill_kernels(packed, job, packed->job.buffers + job->n_buffers);

        packed->job.tag = tag;
        packed->job.operations.data = job->operations;
        packed->job.operations.len = job->n_operations;
        packed->job.n_after = job->n_after;
        packed->job.after = job->after;
        packed->job.priority = job->priority;
        packed->job.timeout_ms = job->timeout_ms;
        packed->job.device = (uint32_t)(job->device + 1);
        packed->job.repeatable = job->repeatable;
        packed->job.timed = job->timed;
        word_name(job, &packed->job.word_arena, &packed->job.word_offset);
        if (job->label)
                packed->job.label = job->label;

        packed->n_bytes = gpuq__v1__job__get_packed_size(&packed->job) + SUBMIT_JOB_EXTRA;
        if (packed->n_bytes > WIRE_FRAME_MAX - SUBMIT_OVERHEAD) {
                size_t n_bytes = packed->n_bytes;

                free(packed);
                return error_set(GPUQ_E_INVALID,
                                 "the job is too large: %zu bytes, and a message has at most %u",
                                 n_bytes, WIRE_FRAME_MAX);
        }

        *ret_packed = packed;
        return 0;
}

int submit_pack(const gpuq_job *job, uint32_t tag, Gpuq__V1__Job **ret_packed) {
        Packed *packed;
        int r;

        r = packed_new(job, tag, &packed);
        if (r < 0)
                return r;

        *ret_packed = &packed->job;
        return 0;
}

/* ---- one job ---------------------------------------------------------------------- */

int submit_check(const gpuq_client *client, const gpuq_job *job, size_t n_jobs) {
        if (!job || job->client != client)
                return error_set(GPUQ_E_INVALID,
                                 "a submission with a job that is NULL or another connection's");
        if (job->state != GPUQ_BUILDING)
                return error_set(GPUQ_E_INVALID, "the job is submitted already");
        if (job->n_operations == 0)
                return error_set(GPUQ_E_INVALID, "the job has no operation");
        if (client->tag > UINT32_MAX - n_jobs)
                return error_set(GPUQ_E_INVALID, "this session has used up its job numbers");
        return 0;
}

int submit_enter(gpuq_job *job, uint32_t tag, bool alone) {
        gpuq_client *client = job->client;

        job->tag = tag;
        HASH_ADD(hh, client->jobs, tag, sizeof(job->tag), job);
        if (!job->hh.tbl)
                return error_memory();

        if (alone)
                word_take(job);
        job->state = GPUQ_PENDING;
        job_ref(job); /* the table's */
        return 0;
}

void submit_undo(gpuq_job *job) {
        HASH_DEL(job->client->jobs, job);
        word_give(job);
        job->state = GPUQ_BUILDING;
        job_unref(job);
}

void submit_commit(gpuq_job *job) {
        gpuq_client *client = job->client;

        __atomic_store_n(&job->id, (uint64_t)client->session << 32 | job->tag, __ATOMIC_RELAXED);
        job->is_open = true;
        client->n_open++;
        client->tag = job->tag;
}

/* ---- a submission --------------------------------------------------------------- */

typedef struct Submission {
        gpuq_client *client;
        gpuq_job *const *jobs;
        Packed **packed;
        size_t n_jobs;
} Submission;

/* Into the table of submitted jobs, which also finds one that is given twice. */
static int submission_add(Submission *submission, size_t i) {
        uint32_t tag = submission->client->tag + 1 + (uint32_t)i;
        gpuq_job *job = submission->jobs[i];
        int r;

        r = submit_check(submission->client, job, submission->n_jobs);
        if (r < 0)
                return r;
        r = submit_enter(job, tag, submission->n_jobs <= WORD_FEW_JOBS);
        if (r < 0)
                return r;

        r = packed_new(job, tag, &submission->packed[i]);
        if (r < 0)
                submit_undo(job);
        return r;
}

static void submission_undo(Submission *submission, size_t n_added) {
        for (size_t i = 0; i < n_added; i++)
                submit_undo(submission->jobs[i]);
}

/* Jobs from @first on, as many as fit in a message. */
static int submission_send(Submission *submission, size_t first, size_t *ret_n) {
        Gpuq__V1__Submit submit = GPUQ__V1__SUBMIT__INIT;
        size_t n_bytes = SUBMIT_OVERHEAD, n;
        int r;

        for (n = 0; first + n < submission->n_jobs; n++) {
                if (n_bytes + submission->packed[first + n]->n_bytes > WIRE_FRAME_MAX)
                        break;
                n_bytes += submission->packed[first + n]->n_bytes;
        }

        submit.n_jobs = n;
        submit.jobs =
                (Gpuq__V1__Job **)&submission->packed[first]; /* a Packed begins with its Job */
        r = client_send(submission->client, GPUQ__V1__REQUEST__BODY_SUBMIT, &submit, NULL);
        if (r < 0)
                return r;

        *ret_n = n;
        return 0;
}

/*
 * Memory may end between two messages. The first jobs are with the daemon then,
 * and to keep the promise of all or nothing the session ends.
 */
static int submission_send_all(Submission *submission) {
        size_t n;
        int r;

        for (size_t first = 0; first < submission->n_jobs; first += n) {
                r = submission_send(submission, first, &n);
                if (r < 0 && first > 0)
                        client_fail(submission->client, GPUQ_E_CLOSED,
                                    "out of memory in the midst of a submission");
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

/* They are with the daemon now, or will be: their ids are used up. */
static void submission_commit(Submission *submission) {
        for (size_t i = 0; i < submission->n_jobs; i++)
                submit_commit(submission->jobs[i]);
}

/* ---- sending --------------------------------------------------------------------- */

static bool submit_all_sent(gpuq_client *client, void *userdata) {
        return client->deaf || wire_pending(client->wire) == 0;
}

/* What the daemon says while a program only submits must not pile up there. */
void submit_flush(gpuq_client *client, size_t n_jobs) {
        client_flush(client);
        if (!submit_all_sent(client, NULL))
                client_wait(client, submit_all_sent, NULL, client_deadline_us(SUBMIT_FLUSH_MS), 0);

        client->n_unread += (unsigned)n_jobs;
        if (client->n_unread >= SUBMIT_N_UNREAD && !client->leading && client->error == 0)
                client_receive(client);
}

int submit_make_room(gpuq_client *client) {
        return client_make_room(client, SUBMIT_ROOM_BYTES, SUBMIT_ROOM_MS);
}

static int submit_many(gpuq_client *client, gpuq_job *const *jobs, size_t n_jobs) {
        Packed *one = NULL;
        Submission submission = {.client = client, .jobs = jobs, .packed = &one, .n_jobs = n_jobs};
        int r;

        r = submit_make_room(client);
        if (r < 0)
                return r;

        if (n_jobs > 1) {
                submission.packed = calloc(n_jobs, sizeof(*submission.packed));
                if (!submission.packed)
                        return error_memory();
        }

        r = submission_queue(&submission);
        if (r == 0) {
                submission_commit(&submission);
                submit_flush(client, n_jobs);
        }

        for (size_t i = 0; i < n_jobs; i++)
                free(submission.packed[i]);
        if (submission.packed != &one)
                free(submission.packed);
        return r;
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
