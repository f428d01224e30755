/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of one Submit: each is checked on its own. A job that fails its checks ends with the
 * error, and the others go on.
 */

#include <string.h>

#include "jobs.h"
#include "detached_ops.h"
#include "util/list.h"
#include "policy.h"
#include "session.h"
#include "proto/text.h"

#define SUBMIT_STEP 4u /* buffers, kernels or dependencies of a job that cost one more step */
#define SUBMIT_PART 8u /* jobs of a message that are served at least, whatever a turn allows */

/* Memory for one job's lists, reused from job to job. */
typedef struct SubmitScratch {
        JobBuffer buffers[LIMIT_JOB_BUFFERS];
        JobKernel kernels[LIMIT_JOB_KERNELS];
        Job *after[LIMIT_JOB_AFTER];
} SubmitScratch;

static SubmitScratch *submit_scratch(void) {
        static SubmitScratch scratch;

        return &scratch;
}

/* ---- checks ---------------------------------------------------------------- */

/* Parts that no Fire changes were checked when the job was prepared. */
static bool submit_is_fired(const JobSpec *spec) {
        return spec->texts.n_bytes > 0;
}

static Failure *submit_check_sizes(const Gpuq__V1__Job *job) {
        if (job->n_buffers > LIMIT_JOB_BUFFERS)
                return failure_new(FAILURE_INVALID, "the job has %zu buffers; the limit is %u",
                                   job->n_buffers, LIMIT_JOB_BUFFERS);
        if (job->n_kernels > LIMIT_JOB_KERNELS)
                return failure_new(FAILURE_INVALID, "the job has %zu kernels; the limit is %u",
                                   job->n_kernels, LIMIT_JOB_KERNELS);
        if (job->n_after > LIMIT_JOB_AFTER)
                return failure_new(FAILURE_INVALID, "the job depends on %zu jobs; the limit is %u",
                                   job->n_after, LIMIT_JOB_AFTER);
        if (job->operations.len > LIMIT_JOB_OPERATIONS)
                return failure_new(FAILURE_INVALID,
                                   "the job's operations have %zu bytes; the limit is %u",
                                   job->operations.len, LIMIT_JOB_OPERATIONS);
        if (!text_is_clean(job->label, LIMIT_JOB_LABEL))
                return failure_new(FAILURE_INVALID,
                                   "the label must have at most %u printable bytes",
                                   LIMIT_JOB_LABEL);
        if (job->priority < -100 || job->priority > 100)
                return failure_new(FAILURE_INVALID, "priority %d is out of range: -100 to 100",
                                   job->priority);
        return NULL;
}

/* @before: the arena of the preceding buffer, usually this buffer's too; or NULL. */
static Failure *submit_check_buffer(const Submitter *submitter, size_t index,
                                    const Gpuq__V1__Buffer *buffer, Arena *before,
                                    JobBuffer *ret_buffer) {
        Arena *arena = before && before->id == buffer->arena
                               ? before
                               : arena_find(submitter->engine, buffer->arena);

        if (!arena || arena->fd < 0 || arena->place == ARENA_IMAGE)
                return failure_new(FAILURE_NOT_FOUND, "buffer %zu: no arena %llu", index + 1,
                                   (unsigned long long)buffer->arena);
        if (arena->user != submitter->user)
                return failure_new(FAILURE_DENIED, "buffer %zu: arena %llu belongs to another user",
                                   index + 1, (unsigned long long)buffer->arena);
        if (buffer->offset > arena->size || buffer->length > arena->size - buffer->offset)
                return failure_new(FAILURE_INVALID,
                                   "buffer %zu: bytes %llu to %llu are outside of arena %llu, "
                                   "which has %llu bytes",
                                   index + 1, (unsigned long long)buffer->offset,
                                   (unsigned long long)(buffer->offset + buffer->length),
                                   (unsigned long long)arena->id, (unsigned long long)arena->size);
        if (buffer->direction < GPUQ__V1__DIRECTION__IN ||
            buffer->direction > GPUQ__V1__DIRECTION__OUT_WHOLE)
                return failure_new(FAILURE_INVALID, "buffer %zu: unknown direction %d", index + 1,
                                   buffer->direction);

        *ret_buffer = (JobBuffer){
                .arena = arena,
                .offset = buffer->offset,
                .length = buffer->length,
                .direction = (JobDirection)buffer->direction,
        };
        return NULL;
}

/*
 * Device memory determines the device of a job that names none: its first buffer there that the job
 * writes, else the first that it reads.
 */
static bool submit_is_home(const JobBuffer *buffer, const JobBuffer *home) {
        return !home || (home->direction == JOB_IN && buffer->direction != JOB_IN);
}

/* Memory of other devices is used where it is. */
static Failure *submit_check_reach(const Engine *engine, const JobSpec *spec) {
        const Device *device = &engine->devices[spec->device];

        for (size_t i = 0; i < spec->n_buffers; ++i) {
                const Arena *arena = spec->buffers[i].arena;

                if (arena->place != ARENA_DEVICE || device_reaches(device, arena->device->index))
                        continue;
                return failure_new(FAILURE_INVALID,
                                   "buffer %zu: arena %llu is on device %u, whose memory device %u "
                                   "cannot access; copy it through host memory",
                                   i + 1, (unsigned long long)arena->id, arena->device->index,
                                   device->index);
        }
        return NULL;
}

/* Host memory is copied, for an INOUT buffer there and back. */
static Failure *submit_check_buffers(const Submitter *submitter, const Gpuq__V1__Job *job,
                                     JobBuffer *buffers, JobSpec *spec) {
        const JobBuffer *home = NULL;
        Arena *before = NULL;
        Failure *failure;

        for (size_t i = 0; i < job->n_buffers; ++i, before = buffers[i - 1].arena) {
                JobBuffer *buffer = &buffers[i];

                failure = submit_check_buffer(submitter, i, job->buffers[i], before, buffer);
                if (failure)
                        return failure;
                if (buffer->arena->place != ARENA_DEVICE)
                        spec->n_moved += buffer->length << (buffer->direction == JOB_INOUT);
                else if (submit_is_home(buffer, home))
                        home = buffer;
        }
        spec->buffers = buffers;
        spec->n_buffers = job->n_buffers;
        if (!home)
                return NULL;
        spec->may_move = spec->device < 0;
        if (spec->may_move)
                spec->device = (int)home->arena->device->index;
        return submit_check_reach(submitter->engine, spec);
}

/* The worker writes there, so it is checked like a buffer. */
static Failure *submit_check_word(const Submitter *submitter, const Gpuq__V1__Job *job,
                                  JobSpec *spec) {
        Arena *arena;

        if (!job->word_arena)
                return NULL;

        arena = arena_find(submitter->engine, job->word_arena);
        if (!arena || arena->place != ARENA_HOST)
                return failure_new(FAILURE_NOT_FOUND, "completion word: no host arena %llu",
                                   (unsigned long long)job->word_arena);
        if (arena->user != submitter->user)
                return failure_new(FAILURE_DENIED,
                                   "completion word: arena %llu belongs to another user",
                                   (unsigned long long)job->word_arena);
        if (job->word_offset % JOB_WORD_BYTES || arena->size < JOB_WORD_BYTES ||
            job->word_offset > arena->size - JOB_WORD_BYTES)
                return failure_new(
                        FAILURE_INVALID,
                        "completion word: byte %llu is outside of arena %llu, which has %llu bytes",
                        (unsigned long long)job->word_offset, (unsigned long long)arena->id,
                        (unsigned long long)arena->size);

        spec->word = arena;
        spec->word_offset = job->word_offset;
        return NULL;
}

static Failure *submit_check_kernels(const Submitter *submitter, const Gpuq__V1__Job *job,
                                     JobKernel *kernels, JobSpec *spec) {
        for (size_t i = 0; i < job->n_kernels; ++i) {
                const Gpuq__V1__Kernel *kernel = job->kernels[i];
                Module *module = module_find(submitter->engine, kernel->module);

                if (!module || module->submitter != submitter ||
                    !(module->state == MODULE_READY || module->is_resumed))
                        return failure_new(FAILURE_NOT_FOUND,
                                           "kernel %zu: this session has no module %llu", i + 1,
                                           (unsigned long long)kernel->module);
                if (!submit_is_fired(spec) &&
                    (!*kernel->name || !text_is_clean(kernel->name, LIMIT_KERNEL_NAME)))
                        return failure_new(FAILURE_INVALID,
                                           "kernel %zu: a name must have 1 to %u printable bytes",
                                           i + 1, LIMIT_KERNEL_NAME);
                kernels[i] = (JobKernel){.module = module, .name = kernel->name};
        }
        spec->kernels = kernels;
        spec->n_kernels = job->n_kernels;
        return NULL;
}

/* Done by a lease, which the history does not have one by one. */
static bool submit_was_leased(const Submitter *submitter, uint64_t id) {
        return history_was_leased(submitter->user->history, id);
}

static Failure *submit_check_ended(const Submitter *submitter, uint64_t id) {
        const HistoryEntry *entry = history_find(submitter->user->history, id);

        if (!entry && submit_was_leased(submitter, id))
                return NULL;
        if (!entry)
                return failure_new(FAILURE_DEPENDENCY,
                                   "the job depends on job " JOB_ID_FORMAT ", which does not exist",
                                   JOB_ID_PARTS(id));
        if (entry->state == JOB_DONE)
                return NULL;
        return failure_depends(id, entry->state == JOB_CANCELLED, entry->code, entry->root,
                               entry->text ? entry->text : "");
}

/* Jobs that are named one after the other were mostly submitted so. */
static Job *submit_find_job(const Submitter *submitter, const Job *previous, uint64_t id) {
        Job *next = previous ? TAILQ_NEXT(previous, user_link) : NULL;

        return next && next->id == id ? next : job_find(submitter->engine, id);
}

/* @previous: the job that was named before this one, or NULL. */
static Failure *submit_check_dependency(const Submitter *submitter, uint64_t own, uint64_t id,
                                        const Job *previous, Job **ret_job) {
        Job *job;

        *ret_job = NULL;
        if (id >> 32 == submitter->id && id >= own)
                return failure_new(FAILURE_CYCLE,
                                   "job " JOB_ID_FORMAT " depends on %s" JOB_ID_FORMAT,
                                   JOB_ID_PARTS(own), id == own ? "itself, " : "the later job ",
                                   JOB_ID_PARTS(id));

        if (detached_is_id(id)) /* a detached job may wait on disk and have no job in memory now */
                return failure_new(FAILURE_INVALID,
                                   "the job depends on job " JOB_ID_FORMAT
                                   ", which is detached; jobs cannot depend on detached jobs",
                                   JOB_ID_PARTS(id));
        job = submit_find_job(submitter, previous, id);
        if (!job)
                return submit_check_ended(submitter, id);
        if (job->user != submitter->user)
                return failure_new(FAILURE_DENIED,
                                   "the job depends on job " JOB_ID_FORMAT
                                   ", which belongs to another user",
                                   JOB_ID_PARTS(id));
        *ret_job = job;
        return NULL;
}

static Failure *submit_check_after(const Submitter *submitter, const Gpuq__V1__Job *job,
                                   Job **after, JobSpec *spec) {
        Job *before = NULL;
        Failure *failure;

        for (size_t i = 0; i < job->n_after; ++i) {
                failure = submit_check_dependency(submitter, spec->id, job->after[i], before,
                                                  &before);
                if (failure)
                        return failure;
                if (before)
                        after[spec->n_after++] = before;
        }
        spec->after = after;
        return NULL;
}

static Failure *submit_check_device(const Submitter *submitter, const Gpuq__V1__Job *job) {
        size_t n_devices = submitter->engine->n_devices;

        /* Devices are unknown: the check is repeated when they are known. */
        if (job->device <= (n_devices ? n_devices : LIMIT_JOB_DEVICE))
                return NULL;
        if (!n_devices)
                return failure_new(FAILURE_NOT_FOUND,
                                   "no device %u: the highest device number is %u", job->device - 1,
                                   LIMIT_JOB_DEVICE - 1);
        return engine_no_device(submitter->engine, job->device - 1);
}

static Failure *submit_check_gpu_time(const Submitter *submitter) {
        const User *user = submitter->user->person;
        uint64_t now_ns;

        if (!user->limits.gpu_seconds)
                return NULL;
        now_ns = engine_now(submitter->engine);
        if (user_over_seconds(user, now_ns) <= 0)
                return NULL;
        return failure_new(
                FAILURE_QUOTA,
                "over the limit gpu_seconds of user %s: %.0f s used of %llu s in the last "
                "%.0f s; submit again later, or see gpu_seconds in gpuqd.conf",
                user->name, user_window_seconds(user, now_ns),
                (unsigned long long)user->limits.gpu_seconds, (double)user->window_ns / 1e9);
}

static Failure *submit_check(const Submitter *submitter, const Gpuq__V1__Job *job, JobSpec *spec) {
        SubmitScratch *scratch = submit_scratch();
        Failure *failure;

        failure = submit_is_fired(spec) ? NULL : submit_check_sizes(job);
        if (!failure)
                failure = submit_check_device(submitter, job);
        if (!failure)
                failure = submit_check_gpu_time(submitter);
        if (!failure)
                failure = submit_check_buffers(submitter, job, scratch->buffers, spec);
        if (!failure)
                failure = submit_check_word(submitter, job, spec);
        if (!failure)
                failure = submit_check_kernels(submitter, job, scratch->kernels, spec);
        if (!failure)
                failure = submit_check_after(submitter, job, scratch->after, spec);
        return failure;
}

/* ---- submit ---------------------------------------------------------------- */

/* A job over the limit is not counted here; it is refused. */
static int submit_device(const Gpuq__V1__Job *job) {
        return job->device <= LIMIT_JOB_DEVICE ? (int)job->device - 1 : -1;
}

static JobSpec submit_spec(const Submitter *submitter, const Gpuq__V1__Job *job) {
        uint64_t default_ms = submitter->engine->config->job_timeout_s * 1000ull;

        return (JobSpec){
                .id = (uint64_t)submitter->id << 32 | job->tag,
                .priority = job->priority,
                .timeout_ms = job->timeout_ms ? job->timeout_ms : default_ms,
                .label = job->label,
                .device = submit_device(job),
                .repeatable = job->repeatable,
                .timed = job->timed,
                .by_address = job->by_address,
                .operations = job->operations.data,
                .n_operations = job->operations.len,
        };
}

/* If memory is short even for the error, the session is closed: a job that never ends is worse. */
static void submit_fail(Session *session, uint64_t id, Failure *failure) {
        if (submission_refuse(&session->submitter, id, failure) < 0)
                session->is_broken = true;
}

/* The job ended under an earlier supervisor, and its client may not have received the end. */
static void submit_tell_end(Session *session, const LedgerJob *known) {
        ledger_job_told(session->engine->ledger, known->slot,
                        &session->ends.told); /* the record is not reused */
        if (submission_recall(&session->submitter, known) < 0)
                session->is_broken = true;
}

/*
 * A worker stores a job's completion word after the end is in the ring. That worker and the supervisor
 * that should have read the ring are gone, but what the client read in its memory stays true.
 */
static bool submit_has_word(const Session *session, const Gpuq__V1__Job *job) {
        _cleanup_(failure_freep) Failure *failure = NULL;
        JobSpec spec = {};
        uint32_t word;

        failure = submit_check_word(&session->submitter, job, &spec);
        return !failure && spec.word && spec.word->fd >= 0 &&
               pread(spec.word->fd, &word, sizeof(word), (off_t)spec.word_offset) == sizeof(word) &&
               word == job->tag;
}

static void submit_end_by_word(const Session *session, LedgerJob *known) {
        known->state = LEDGER_ENDED;
        known->end = (LedgerEnd){.state = JOB_DONE};
        known->slot = ledger_job_ended(session->engine->ledger, known->slot, &known->owner,
                                       &known->end, NULL);
        history_add(session->submitter.user->history,
                    &(HistoryEntry){.id = known->owner.id, .state = JOB_DONE});
}

/* @prepared: the prepared job it was fired from, or NULL. @is_taken: a worker that is gone has taken it. */
static void submit_job(Session *session, const Gpuq__V1__Job *job, const Prepared *prepared,
                       bool is_taken) {
        JobSpec spec = submit_spec(&session->submitter, job);
        LedgerJob known = {.slot = LEDGER_NONE};
        Failure *failure;

        if (prepared)
                spec.texts = prepared->texts;
        if (session->is_resuming)
                (void)ledger_find_job(session->engine->ledger, spec.id, &known);
        if (session->is_resuming && is_taken && known.slot == LEDGER_NONE)
                known.state = LEDGER_SENT;
        if (known.state == LEDGER_SENT && submit_has_word(session, job))
                submit_end_by_word(session, &known);
        if (known.state == LEDGER_ENDED) {
                submit_tell_end(session, &known);
                return;
        }
        failure = submit_check(&session->submitter, job, &spec);
        serving_pay(&session->serving,
                    (job->n_buffers + job->n_kernels + job->n_after) / SUBMIT_STEP);
        if (!failure)
                failure = submission_accept(&session->submitter, &spec, &known);
        if (failure)
                submit_fail(session, spec.id, failure);
}

Failure *submit_check_job(const Submitter *submitter, const Gpuq__V1__Job *job, JobSpec *spec) {
        *spec = submit_spec(submitter, job);
        return submit_check(submitter, job, spec);
}

/* Return: NULL, or the protocol error. */
static const char *submit_take_tag(Session *session, uint32_t tag) {
        if (tag <= session->last_tag)
                return "the client sent a job whose tag is not above the previous one";
        session->last_tag = tag;
        serving_pay(&session->serving, 1);
        return NULL;
}

/* Return: the first job of the message that no earlier turn has served. */
static size_t submit_begin(Session *session) {
        size_t first = session->unfinished.n_served;

        session->unfinished.n_served = 0;
        return first;
}

/* Return: the session has had its part of this turn; later ones serve the other jobs. */
static bool submit_leaves_off(Session *session, size_t n_part, size_t n_served, size_t n_jobs) {
        if (n_served == n_jobs || n_part < SUBMIT_PART || !session->unfinished.may_leave_off ||
            serving_goes_on(&session->serving))
                return false;
        session->unfinished.n_served = n_served;
        return true;
}

const char *session_submit(Session *session, const Gpuq__V1__Submit *submit) {
        size_t first = submit_begin(session);
        const char *problem;

        engine_event(session->engine);
        session_seen(session, submit->seen);
        for (size_t i = first; i < submit->n_jobs && !session->is_broken; ++i) {
                problem = submit_take_tag(session, submit->jobs[i]->tag);
                if (problem)
                        return problem;
                submit_job(session, submit->jobs[i], NULL, false);
                if (submit_leaves_off(session, i + 1 - first, i + 1, submit->n_jobs))
                        return NULL;
        }
        return NULL;
}

/* ---- prepared jobs --------------------------------------------------------- */

static Prepared *submit_find_prepared(const Session *session, uint32_t id) {
        Prepared *prepared;

        HASH_FIND(hh, session->prepared, &id, sizeof(id), prepared);
        return prepared;
}

/* Errors that would fail every job of it are reported at once; its buffers are checked at each
 * Fire. */
static Failure *submit_check_prepared(const Session *session, const Gpuq__V1__Job *job,
                                      JobTexts *ret_texts) {
        JobSpec spec = submit_spec(&session->submitter, job);
        Failure *failure;

        if (HASH_COUNT(session->prepared) >= PREPARED_MAX)
                return failure_new(FAILURE_QUOTA,
                                   "this session already has %u prepared jobs, which is the limit",
                                   PREPARED_MAX);
        failure = submit_check_sizes(job);
        if (!failure)
                failure = submit_check_kernels(&session->submitter, job, submit_scratch()->kernels,
                                               &spec);
        if (!failure)
                *ret_texts = job_texts(&spec);
        return failure;
}

static void submit_welcome_prepared(Session *session, uint32_t serial, Prepared *prepared) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Prepared message = GPUQ__V1__PREPARED__INIT;

        HASH_ADD(hh, session->prepared, id, sizeof(prepared->id), prepared);
        if (!prepared->hh.tbl) {
                prepared_free(prepared);
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_MEMORY, "gpuqd has no memory for a prepared job"));
                return;
        }
        message.prepared = prepared->id;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_PREPARED;
        reply.prepared = &message;
        session_reply(session, &reply, -1);
}

/* In a resumed session it gets its earlier number. */
static uint32_t submit_prepared_id(Session *session, uint32_t wanted) {
        if (!wanted || !session->is_resuming || submit_find_prepared(session, wanted))
                return ++session->last_prepared;
        session->last_prepared = MAX(session->last_prepared, wanted);
        return wanted;
}

void session_prepare(Session *session, uint32_t serial, const Gpuq__V1__Prepare *prepare) {
        uint32_t id = submit_prepared_id(session, prepare->prepared);
        const Gpuq__V1__Job *job = prepare->job;
        Prepared *prepared;
        Failure *failure;
        JobTexts texts;

        failure = submit_check_prepared(session, job, &texts);
        if (!failure)
                failure = prepared_new(session->submitter.user, id, job, &texts, &prepared);
        if (failure)
                session_fail_request(session, serial, failure);
        else
                submit_welcome_prepared(session, serial, prepared);
}

void session_unprepare(Session *session, uint32_t id) {
        Prepared *prepared = submit_find_prepared(session, id);

        if (!prepared)
                return;
        HASH_DEL(session->prepared, prepared);
        prepared_free(prepared);
}

static void submit_fire(Session *session, const Gpuq__V1__Fire *fire) {
        Prepared *prepared = submit_find_prepared(session, fire->prepared);
        Gpuq__V1__Job job;
        Failure *failure;

        if (prepared) {
                prepared->last_tag = fire->tag;
                failure = prepared_job(prepared, fire, &job);
        } else
                failure = failure_new(FAILURE_NOT_FOUND, "this session has no prepared job %u",
                                      fire->prepared);
        if (failure)
                submit_fail(session, (uint64_t)session->submitter.id << 32 | fire->tag, failure);
        else
                submit_job(session, &job, prepared, fire->is_taken);
}

const char *session_fire_one(Session *session, uint32_t prepared, uint32_t tag) {
        Gpuq__V1__Fire fire = GPUQ__V1__FIRE__INIT;
        const char *problem = submit_take_tag(session, tag);

        if (problem)
                return problem;
        engine_event(session->engine);
        fire.prepared = prepared;
        fire.tag = tag;
        submit_fire(session, &fire);
        return NULL;
}

bool session_lease_prepared(const Session *session, const Prepared *prepared, Lease *lease) {
        JobSpec spec = submit_spec(&session->submitter, prepared->job);
        _cleanup_(failure_freep) Failure *failure = NULL;

        spec.texts = prepared->texts;
        failure = submit_check(&session->submitter, prepared->job, &spec);
        return !failure && lease_add(lease, prepared->id, &spec);
}

const char *session_fire(Session *session, const Gpuq__V1__Fires *fires) {
        size_t first = submit_begin(session);
        const char *problem;

        engine_event(session->engine);
        session_seen(session, fires->seen);
        for (size_t i = first; i < fires->n_fires && !session->is_broken; ++i) {
                problem = submit_take_tag(session, fires->fires[i]->tag);
                if (problem)
                        return problem;
                submit_fire(session, fires->fires[i]);
                if (submit_leaves_off(session, i + 1 - first, i + 1, fires->n_fires))
                        return NULL;
        }
        return NULL;
}
