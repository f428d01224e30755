/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A detached job's way from its client's memory to the disk, from there through memory and a worker,
 * and back to the disk. A function ..._in_thread() runs in a thread, and ..._on_done() follows in the
 * loop.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "detached_state.h"
#include "util/human.h"
#include "util/list.h"
#include "util/log.h"

/* ---- threads --------------------------------------------------------------- */

static void detached_call(Detached *detached, DiskFunc run, DiskFunc done) {
        detached->retry_ns = 0;
        detached->call = (DiskCall){.run = run, .done = done, .userdata = detached};
        disk_call(detached->table->disk, &detached->owner->line->disk, &detached->call);
}

static uint64_t detached_later_ns(Detached *detached) {
        uint64_t ms = (uint64_t)DETACHED_RETRY_MS << MIN(detached->n_retries, 10u);

        detached->n_retries++;
        return uv_hrtime() + MIN(ms, (uint64_t)DETACHED_RETRY_MAX_MS) * 1000000;
}

/* ---- memory ---------------------------------------------------------------- */

static uint64_t detached_size(const Detached *detached) {
        return extents_size(detached->stored.extents, detached->stored.n_extents);
}

static uint64_t detached_memory(const Detached *detached) {
        const Gpuq__Detached__Record *record = detached->stored.record;
        uint64_t n = detached_size(detached);

        for (size_t i = 0; i < record->n_modules; ++i)
                n += load_bytes(record->modules[i]);
        return n;
}

void detached_release_modules(Detached *detached) {
        for (size_t i = 0; detached->modules && i < detached->stored.record->n_modules; ++i) {
                if (!detached->modules[i])
                        continue;
                module_detach(detached->modules[i]);
                detached->modules[i] = module_unref(detached->modules[i]);
        }
}

void detached_release(Detached *detached) {
        detached_release_modules(detached);
        for (size_t i = 0; i < detached->n_arenas; ++i)
                arena_unref(detached->arenas[i]);
        free(detached->modules);
        free(detached->arenas);
        free(detached->parts);
        detached->modules = NULL;
        detached->arenas = NULL;
        detached->parts = NULL;
        detached->n_arenas = detached->n_parts = 0;
        if (!detached->loaded_bytes)
                return;
        detached->owner->n_loaded--;
        detached->owner->loaded_bytes -= detached->loaded_bytes;
        detached->loaded_bytes = 0;
}

/* ---- store ----------------------------------------------------------------- */

static void store_in_thread(void *userdata) {
        Detached *detached = userdata;

        detached->r = store_check_share(detached->table->store, detached->n_held,
                                        detached->bytes_charge.amount);
        if (detached->r == 0)
                detached->r = store_add(detached->table->store, &detached->stored, detached->parts,
                                        detached->n_parts);
}

static Failure *store_failure(const Detached *detached) {
        const User *user = detached->owner->user;

        if (detached->r != STORE_E_SHARE)
                return failure_new(FAILURE_INTERNAL, "gpuqd cannot store the job on disk: %s",
                                   strerror(-detached->r));
        return failure_new(FAILURE_QUOTA,
                           "too little is free on the disk for detached jobs: with this job user "
                           "%s would have %s there, more than half of it; fetch or discard "
                           "results, or try again later",
                           user->person->name, human_bytes(detached->n_held).text);
}

static void store_failed(Detached *detached) {
        Failure *failure = store_failure(detached);

        if (limit_log(&detached->table->engine->log_limit))
                log_warning("cannot store a detached job of user %s: %s",
                            detached->owner->user->name, failure->text);
        detached_refuse(detached, DETACHED_ASK_DETACH, failure);
        detached_destroy(detached);
}

static void store_on_done(void *userdata) {
        Detached *detached = userdata;
        DetachedOwner *owner = detached->owner;

        if (detached->r) {
                store_failed(detached);
                return;
        }
        detached_release(detached);
        detached_enqueue(detached);
        detached_answer(detached);
        detached_admit(owner);
}

void detached_store(Detached *detached) {
        detached->state = DETACHED_STORING;
        detached->n_held = user_used(detached->owner->user, USER_DETACHED_BYTES);
        detached_call(detached, store_in_thread, store_on_done);
}

/* ---- queue ----------------------------------------------------------------- */

static struct DetachedQueue *detached_queue(const Detached *detached) {
        int priority = detached_job(detached)->priority;

        priority = MAX(MIN(priority, DETACHED_PRIORITY_MAX), DETACHED_PRIORITY_MIN);
        return &detached->owner->queued[DETACHED_PRIORITY_MAX - priority];
}

/* A new job has the highest number. A job that comes back was among the first, so it is there again
 * after a few steps. */
void detached_enqueue(Detached *detached) {
        struct DetachedQueue *queue = detached_queue(detached);
        Detached *other = TAILQ_LAST(queue, DetachedQueue);

        detached->state = DETACHED_QUEUED;
        if (!other || other->stored.number < detached->stored.number) {
                TAILQ_INSERT_TAIL(queue, detached, link);
                return;
        }
        other = TAILQ_FIRST(queue);
        while (other->stored.number < detached->stored.number)
                other = TAILQ_NEXT(other, link);
        TAILQ_INSERT_BEFORE(other, detached, link);
}

void detached_unqueue(Detached *detached) {
        TAILQ_REMOVE(detached_queue(detached), detached, link);
}

static Detached *owner_first(DetachedOwner *owner) {
        for (size_t i = 0; i < ARRAY_SIZE(owner->queued); ++i)
                if (!TAILQ_EMPTY(&owner->queued[i]))
                        return TAILQ_FIRST(&owner->queued[i]);
        return NULL;
}

/* Stays on disk, to be loaded again later. */
static void detached_postpone(Detached *detached, const char *why) {
        snprintf(detached->reason, sizeof(detached->reason), "%s", why);
        detached_release(detached);
        detached->owner->retry_ns = detached_later_ns(detached);
        detached_enqueue(detached);
}

/* ---- the end --------------------------------------------------------------- */

bool detached_is_ending(const Detached *detached) {
        return detached->state == DETACHED_ENDING && detached->stored.end && !detached->retry_ns;
}

static void end_in_thread(void *userdata) {
        Detached *detached = userdata;

        detached->r = store_end(detached->table->store, &detached->stored, detached->parts,
                                detached->n_parts);
}

static void end_on_done(void *userdata) {
        Detached *detached = userdata;

        if (detached->r < 0) {
                snprintf(detached->reason, sizeof(detached->reason),
                         "it has ended, but gpuqd cannot write its result to disk: %s",
                         strerror(-detached->r));
                if (limit_log(&detached->table->engine->log_limit))
                        log_warning("cannot write the result of job " JOB_ID_FORMAT
                                    " to disk, trying again: %s",
                                    JOB_ID_PARTS(detached_id(detached)), strerror(-detached->r));
                detached->retry_ns = detached_later_ns(detached);
                return;
        }
        detached->state = DETACHED_ENDED;
        detached_release(detached);
        detached_answer(detached);
        detached_admit(detached->owner);
}

/* A copy of its own, which packing gives. */
static Gpuq__Detached__End *end_new(const Gpuq__V1__Completion *completion) {
        Gpuq__Detached__End end = GPUQ__DETACHED__END__INIT, *copy;
        uint8_t *data;
        size_t n;

        end.completion = (Gpuq__V1__Completion *)completion;
        end.ended_s = (uint64_t)time(NULL);
        data = malloc(gpuq__detached__end__get_packed_size(&end) + 1);
        if (!data)
                return NULL;
        n = gpuq__detached__end__pack(&end, data);
        copy = gpuq__detached__end__unpack(NULL, n, data);
        free(data);
        return copy;
}

/* NULL: the job runs again from the start. Not from within a failing module's callback: at the next
 * tick. */
static void detached_finish(Detached *detached, const Gpuq__V1__Completion *completion) {
        bool has_output = completion && completion->state == GPUQ__V1__STATE__DONE;

        detached->state = DETACHED_ENDING;
        detached->stored.end = completion ? end_new(completion) : NULL;
        if (!detached->stored.end) { /* without memory even for that, as if it had not run */
                detached->retry_ns = detached_later_ns(detached);
                return;
        }
        detached->n_parts = has_output ? stored_job_parts(&detached->stored, true,
                                                          detached->arenas[0]->fd, detached->parts)
                                       : 0;
        detached_call(detached, end_in_thread, end_on_done);
}

static void detached_fail(Detached *detached, JobState state, const Failure *failure) {
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT;
        Gpuq__V1__Error error = failure_to_proto(failure);

        completion.id = detached_id(detached);
        completion.state = (Gpuq__V1__State)state;
        completion.error = &error;
        detached_finish(detached, &completion);
}

static void detached_finish_cancelled(Detached *detached) {
        _cleanup_(failure_freep) Failure *failure =
                ending_cancelled(detached->owner->user, detached->cancelled_by);

        detached_fail(detached, JOB_CANCELLED, failure);
}

void detached_retry(Detached *detached) {
        if (detached->stored.end) {
                detached_call(detached, end_in_thread, end_on_done);
                return;
        }
        detached->retry_ns = 0;
        if (detached->cancelled_by) {
                detached_finish_cancelled(detached);
                return;
        }
        detached_release(detached);
        detached_enqueue(detached);
        detached_admit(detached->owner);
}

/* ---- submit ---------------------------------------------------------------- */

/* In the record, buffers have no arena and a kernel's module is an index; the running job has their
 * ids. */
static void submit_name(Detached *detached, bool by_id) {
        Gpuq__V1__Job *job = detached_job(detached);
        Module **modules = detached->modules;

        for (size_t i = 0; i < job->n_buffers; ++i)
                job->buffers[i]->arena = by_id ? detached->arenas[0]->id : 0;
        for (size_t i = 0; i < job->n_kernels; ++i) {
                uint64_t *module = &job->kernels[i]->module, index = 0;

                while (!by_id && modules[index]->id != *module)
                        index++;
                *module = by_id ? modules[*module]->id : index;
        }
}

static void detached_submit(Detached *detached) {
        Submitter *submitter = &detached->owner->submitter;
        _cleanup_(failure_freep) Failure *failure = NULL;
        LedgerJob known = {.slot = LEDGER_NONE};
        JobSpec spec;

        engine_event(submitter->engine);
        detached->state = DETACHED_SUBMITTED;
        *detached->reason = '\0';
        submit_name(detached, true);
        detached_job(detached)->tag = detached->stored.number;
        failure = submit_check_job(submitter, detached_job(detached), &spec);
        submit_name(detached, false);
        spec.slurm_job = detached->stored.record->slurm_job;
        if (!failure)
                failure = submission_accept(submitter, &spec, &known);
        if (failure)
                detached_fail(detached, JOB_FAILED, failure);
}

/* Another job's fault ended it half-written: it can only run again from the start. */
static bool detached_may_rerun(Detached *detached, const Job *job) {
        int code = job->outcome.failure ? job->outcome.failure->code : 0;

        return (code == FAILURE_HALF_WRITTEN || code == FAILURE_VARIABLES_LOST) &&
               detached->n_reruns++ < DETACHED_RERUNS_MAX;
}

static DetachedTable *owner_table(Submitter *submitter) {
        return container_of(submitter, DetachedOwner, submitter)->table;
}

static void owner_on_job_ended(Submitter *submitter, Job *job) {
        DetachedTable *table = owner_table(submitter);
        Detached *detached = detached_find(table, (uint32_t)job->id);
        Gpuq__V1__Completion completion;
        Gpuq__V1__Error error;
        bool counts = !table->engine->is_closing || job->state == JOB_DONE;

        ledger_job_forgone(table->engine->ledger, job->record);
        /* A daemon that ends also ends its jobs, but not finally: the next daemon runs them again. */
        if (detached && detached->state == DETACHED_SUBMITTED && counts) {
                completion_fill(&completion, &error, job);
                completion.id = detached_id(detached);
                detached_finish(detached, detached_may_rerun(detached, job) ? NULL : &completion);
        }
        job_free(job);
}

/* ---- link ------------------------------------------------------------------ */

static Detached *owner_find_linking(Submitter *submitter, const Module *module) {
        Detached *detached = detached_find(owner_table(submitter), module->serial);

        return detached && detached->state == DETACHED_LINKING ? detached : NULL;
}

static void owner_on_module_ready(Submitter *submitter, const Module *module,
                                  Gpuq__V1__ModuleReady *report) {
        Detached *detached = owner_find_linking(submitter, module);

        if (detached && --detached->n_linking == 0)
                detached_submit(detached);
}

/* The modules are released after the write, not within a failing module's callback. */
static void owner_on_module_failed(Submitter *submitter, const Module *module,
                                   const Failure *failure) {
        Detached *detached = owner_find_linking(submitter, module);

        if (detached && !detached->table->engine->is_closing)
                detached_fail(detached, JOB_FAILED, failure);
}

const SubmitterOps detached_submitter_ops = {
        .job_ended = owner_on_job_ended,
        .module_ready = owner_on_module_ready,
        .module_failed = owner_on_module_failed,
};

static int link_module(Detached *detached, size_t i) {
        const Gpuq__V1__ModuleLoad *load = detached->stored.record->modules[i];
        ModuleSpec spec = {
                .format = (int)load->format,
                .image = detached->arenas[1 + i],
                .length = load->length,
                .texts =
                        {
                                .options = load->options,
                                .n_options = load->n_options,
                                .names = load->names,
                                .n_names = load->n_names,
                                .n_header_bytes = load->header_bytes,
                        },
                .name = load->name,
                .device = -1,
                .serial = detached->stored.number,
        };
        int r;

        if (spec.image && fcntl(spec.image->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                return -errno;
        r = module_new(&detached->owner->submitter, &spec, &detached->modules[i]);
        if (r == 0)
                module_ref(detached->modules[i]);
        return r;
}

static void detached_link(Detached *detached) {
        size_t n = detached->stored.record->n_modules;
        int r = 0;

        for (size_t i = 0; i < n && r == 0; ++i)
                r = link_module(detached, i);
        if (r) {
                detached_postpone(detached, r == MODULE_E_QUOTA
                                                    ? "its user has reached the limit modules"
                                                    : "gpuqd has no memory for its modules");
                return;
        }

        detached->state = DETACHED_LINKING;
        detached->n_linking = (unsigned)n;
        if (n == 0)
                detached_submit(detached);
        for (size_t i = 0; i < n && detached->state == DETACHED_LINKING; ++i)
                provision_module(detached->modules[i]);
}

/* ---- load ------------------------------------------------------------------ */

static void load_in_thread(void *userdata) {
        Detached *detached = userdata;

        detached->r = store_load(detached->table->store, &detached->stored, false, detached->parts,
                                 detached->n_parts, detached->damage);
}

static void load_on_done(void *userdata) {
        Detached *detached = userdata;
        DetachedOwner *owner = detached->owner;

        if (detached->table->is_stopped)
                detached_release(detached);
        else if (detached->r == STORE_E_DAMAGED)
                detached_damaged(detached, detached->damage);
        else if (detached->cancelled_by)
                detached_finish_cancelled(detached);
        else if (detached->r < 0)
                detached_postpone(detached, "gpuqd has no memory for its data");
        else
                detached_link(detached);
        detached_admit(owner);
}

/* The arenas, and which of their bytes are in the input file. */
static int load_make_room(Detached *detached) {
        const Gpuq__Detached__Record *record = detached->stored.record;
        size_t n_modules = record->n_modules;
        Engine *engine = detached->table->engine;
        User *user = detached->owner->user;
        int r;

        detached->arenas = calloc(1 + n_modules, sizeof(Arena *));
        detached->modules = calloc(1 + n_modules, sizeof(Module *));
        detached->parts = calloc(detached->stored.n_extents + n_modules + 1, sizeof(PayloadPart));
        if (!detached->arenas || !detached->modules || !detached->parts)
                return -ENOMEM;

        detached->n_arenas = 1 + n_modules;
        r = arena_new(engine, user, ARENA_HOST, detached_size(detached), &detached->arenas[0]);
        if (r)
                return r;
        detached->n_parts = stored_job_parts(&detached->stored, false, detached->arenas[0]->fd,
                                             detached->parts);
        for (size_t i = 0; i < n_modules && r == 0; ++i) {
                uint64_t length = load_bytes(record->modules[i]);

                if (!record->modules[i]->image)
                        continue;
                r = arena_new(engine, user, ARENA_IMAGE, length, &detached->arenas[1 + i]);
                if (r == 0)
                        detached->parts[detached->n_parts++] =
                                (PayloadPart){detached->arenas[1 + i]->fd, 0, length};
        }
        return r;
}

static void detached_load(Detached *detached) {
        DetachedOwner *owner = detached->owner;
        int r;

        detached_unqueue(detached);
        detached->state = DETACHED_LOADING;
        detached->loaded_bytes = detached_memory(detached);
        owner->n_loaded++;
        owner->loaded_bytes += detached->loaded_bytes;
        r = load_make_room(detached);
        if (r)
                detached_postpone(detached, r == ARENA_E_QUOTA
                                                    ? "its user has reached the limit arena_bytes"
                                                    : "gpuqd has no memory for its data");
        else
                detached_call(detached, load_in_thread, load_on_done);
}

static bool owner_has_room(const DetachedOwner *owner, const Detached *detached) {
        uint64_t n_bytes = detached_memory(detached);

        if (owner->n_loaded == 0)
                return true;
        return owner->n_loaded < DETACHED_LOADED_JOBS && n_bytes <= DETACHED_LOADED_BYTES &&
               owner->loaded_bytes <= DETACHED_LOADED_BYTES - n_bytes;
}

/* An arena made before the takeover is complete would be mistaken for one of the previous
 * supervisor. */
void detached_admit(DetachedOwner *owner) {
        const DetachedTable *table = owner->table;
        Detached *detached;

        if (table->is_stopped || table->engine->is_closing ||
            !table->host.clients->resume_ops->serves(table->host.clients->takeover))
                return;
        while ((detached = owner_first(owner)) && uv_hrtime() >= owner->retry_ns &&
               owner_has_room(owner, detached))
                detached_load(detached);
}

/* ---- cancel, remove, damage ------------------------------------------------ */

bool detached_cancel(Detached *detached, User *by) {
        uint64_t id;
        Job *job;

        if (detached->state > DETACHED_ENDING || detached->stored.end)
                return false;

        user_release(detached->cancelled_by);
        detached->cancelled_by = user_hold(by);
        switch (detached->state) {
                case DETACHED_QUEUED:
                        detached_unqueue(detached);
                        detached_finish_cancelled(detached);
                        break;
                case DETACHED_LINKING:
                        detached_finish_cancelled(detached);
                        break;
                case DETACHED_SUBMITTED:
                        id = (uint64_t)detached->owner->submitter.id << 32 |
                             detached->stored.number;
                        job = job_find(detached->table->engine, id);
                        if (job)
                                place_end_soon(job, JOB_CANCELLED, ending_cancelled(job->user, by));
                        break;
                default: /* a thread or a timer continues */
                        break;
        }
        return true;
}

static void remove_in_thread(void *userdata) {
        Detached *detached = userdata;

        detached->r = store_remove(detached->table->store, &detached->stored);
}

static void remove_on_done(void *userdata) {
        Detached *detached = userdata;

        if (detached->r == 0) {
                detached_answer(detached);
                detached_destroy(detached);
                return;
        }
        detached->state = DETACHED_ENDED;
        detached_refuse(detached, DETACHED_ASK_DISCARD,
                        failure_new(FAILURE_INTERNAL, "cannot remove the job from disk: %s",
                                    strerror(-detached->r)));
        detached_answer(detached);
}

void detached_remove(Detached *detached) {
        detached->state = DETACHED_REMOVING;
        detached_call(detached, remove_in_thread, remove_on_done);
}

void detached_damaged(Detached *detached, const char *what) {
        log_error("job " JOB_ID_FORMAT
                  " of uid %u set aside: its files are damaged: %s; they stay in %s",
                  JOB_ID_PARTS(detached_id(detached)), detached->stored.uid, what,
                  detached->table->folder);
        detached->state = DETACHED_DAMAGED;
        detached->retry_ns = 0;
        if (what != detached->damage)
                snprintf(detached->damage, sizeof(detached->damage), "%s", what);
        detached_release(detached);
        user_uncharge(&detached->jobs_charge);
        user_uncharge(&detached->bytes_charge);
        user_uncharge(&detached->record_charge);
        detached_answer(detached);
}
