/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One detached job's way from its client's memory to the disk, from there into
 * memory and through a worker, and back to the disk. What a thread does is a
 * function ..._in_thread(), what follows in the loop is ..._on_done().
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "detached.h"
#include "jobs.h"
#include "util/list.h"
#include "loop.h"
#include "restart.h"
#include "util/log.h"

/* ---- threads --------------------------------------------------------------- */

static void detached_begin(Detached *detached, DiskFunc run, DiskFunc done) {
        detached->is_working = true;
        detached->retry_ns = 0;
        detached->call = (DiskCall){run, done, detached, {}};
        disk_call(detached->table->disk, &detached->call);
}

static uint64_t detached_backoff_ns(Detached *detached) {
        uint64_t ms = (uint64_t)DETACHED_RETRY_MS << MIN(detached->n_retries, 10u);

        detached->n_retries++;
        return MIN(ms, (uint64_t)DETACHED_RETRY_MAX_MS) * 1000000;
}

static bool detached_is_stopped(const Detached *detached) {
        return detached->table->is_stopped;
}

/* ---- store ----------------------------------------------------------------- */

static void store_in_thread(void *userdata) {
        Detached *detached = userdata;

        detached->r = spool_store(detached->table->spool, detached->record, detached->input,
                                  detached->images);
}

void detached_release_sources(Detached *detached) {
        for (size_t i = 0; detached->held && detached->held[i]; ++i)
                arena_unref(detached->held[i]);
        free(detached->held);
        free(detached->input);
        free(detached->images);
        detached->held = NULL;
        detached->input = detached->images = NULL;
}

static void store_on_done(void *userdata) {
        Detached *detached = userdata;
        DetachedOwner *owner = detached->owner;

        detached->is_working = false;
        detached_release_sources(detached);
        if (detached->r < 0) {
                if (limit_log(&detached->table->supervisor->engine.log_limit))
                        log_warning("a detached job of user %s cannot be stored: %s",
                                    owner->user->name, strerror(-detached->r));
                detached_refuse(detached, DETACHED_ASK_DETACH,
                                failure_new(FAILURE_INTERNAL,
                                            "the job cannot be kept on the daemon's disk: %s",
                                            strerror(-detached->r)));
                detached_end_it(detached);
                return;
        }
        detached_enqueue(detached);
        detached_answer(detached);
        if (!detached_is_stopped(detached))
                detached_admit(owner);
}

void detached_store(Detached *detached) {
        detached->state = DETACHED_STORING;
        detached_begin(detached, store_in_thread, store_on_done);
}

/* ---- queue ----------------------------------------------------------------- */

static bool detached_goes_before(const Detached *a, const Detached *b) {
        int x = a->record->job->priority, y = b->record->job->priority;

        return x != y ? x > y : a->number < b->number;
}

void detached_enqueue(Detached *detached) {
        struct DetachedQueue *queue = &detached->owner->queued;
        Detached *other;

        detached->state = DETACHED_QUEUED;
        TAILQ_FOREACH_REVERSE (other, queue, DetachedQueue, link)
                if (detached_goes_before(other, detached)) {
                        TAILQ_INSERT_AFTER(queue, other, detached, link);
                        return;
                }
        TAILQ_INSERT_HEAD(queue, detached, link);
}

static uint64_t detached_memory(const Detached *detached) {
        uint64_t n = detached->record->size;

        for (size_t i = 0; i < detached->record->n_modules; ++i)
                n += detached->record->modules[i]->length;
        return n;
}

static void detached_count_loaded(Detached *detached) {
        detached->loaded_bytes = detached_memory(detached);
        detached->owner->n_loaded++;
        detached->owner->loaded_bytes += detached->loaded_bytes;
}

void detached_release_modules(Detached *detached) {
        for (size_t i = 0; detached->modules && i < detached->record->n_modules; ++i) {
                if (!detached->modules[i])
                        continue;
                module_detach(detached->modules[i]);
                detached->modules[i] = module_unref(detached->modules[i]);
        }
}

static void release_arenas(Detached *detached) {
        detached->arena = arena_unref(detached->arena);
        for (size_t i = 0; detached->image_arenas && i < detached->record->n_modules; ++i)
                detached->image_arenas[i] = arena_unref(detached->image_arenas[i]);
}

void detached_release(Detached *detached) {
        detached_release_modules(detached);
        release_arenas(detached);
        if (!detached->loaded_bytes)
                return;
        detached->owner->n_loaded--;
        detached->owner->loaded_bytes -= detached->loaded_bytes;
        detached->loaded_bytes = 0;
}

/* Back on disk only, and later once more. */
static void detached_postpone(Detached *detached, const char *why) {
        snprintf(detached->reason, sizeof(detached->reason), "%s", why);
        detached_release(detached);
        detached->owner->retry_ns = uv_hrtime() + detached_backoff_ns(detached);
        detached_enqueue(detached);
}

/* ---- the end --------------------------------------------------------------- */

static void end_in_thread(void *userdata) {
        Detached *detached = userdata;
        bool is_done = detached->end->completion->state == GPUQ__V1__STATE__DONE;

        detached->r = spool_end(detached->table->spool, detached->record, detached->end,
                                is_done && detached->arena ? detached->arena->fd : -1);
}

static void end_failed(Detached *detached) {
        if (detached->r == -ENOENT || detached->r == -ENOTDIR) {
                detached_damage(detached, "its folder is gone");
                return;
        }
        snprintf(detached->reason, sizeof(detached->reason),
                 "it has ended, which cannot be written to the disk: %s", strerror(-detached->r));
        if (limit_log(&detached->table->supervisor->engine.log_limit))
                log_warning("how job " JOB_ID_FORMAT " ended cannot be written, and is tried "
                            "again: %s",
                            JOB_ID_PARTS(detached_id(detached)), strerror(-detached->r));
        detached->retry_ns = uv_hrtime() + detached_backoff_ns(detached);
}

static void end_on_done(void *userdata) {
        Detached *detached = userdata;

        detached->is_working = false;
        if (detached->r < 0) {
                if (!detached_is_stopped(detached))
                        end_failed(detached);
                return;
        }
        detached->state = DETACHED_ENDED;
        detached_release(detached);
        detached_answer(detached);
        if (!detached_is_stopped(detached))
                detached_admit(detached->owner);
}

/* A copy of its own, which the disk's format gives for nothing. */
static Gpuq__Spool__End *end_new(const Gpuq__V1__Completion *completion) {
        Gpuq__Spool__End end = GPUQ__SPOOL__END__INIT, *copy;
        uint8_t *data;
        size_t n;

        end.completion = (Gpuq__V1__Completion *)completion;
        end.ended_s = (uint64_t)time(NULL);
        data = malloc(gpuq__spool__end__get_packed_size(&end) + 1);
        if (!data)
                return NULL;
        n = gpuq__spool__end__pack(&end, data);
        copy = gpuq__spool__end__unpack(NULL, n, data);
        free(data);
        return copy;
}

static void detached_rerun(Detached *detached) {
        detached->state = DETACHED_ENDING;
        detached->is_rerun = true;
        detached->retry_ns = uv_hrtime() + detached_backoff_ns(detached);
}

static void detached_finish(Detached *detached, const Gpuq__V1__Completion *completion) {
        detached->end = end_new(completion);
        if (!detached->end) {
                detached_rerun(detached); /* without memory even for that: as if it had not run */
                return;
        }
        detached->state = DETACHED_ENDING;
        detached_begin(detached, end_in_thread, end_on_done);
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
        _cleanup_(failure_freep) Failure *failure = failure_new(
                FAILURE_CANCELLED, "cancelled by uid %u", (unsigned)detached->cancelled_by);

        detached_fail(detached, JOB_CANCELLED, failure);
}

void detached_retry(Detached *detached) {
        if (!detached->is_rerun) {
                detached_begin(detached, end_in_thread, end_on_done);
                return;
        }
        detached->is_rerun = false;
        detached->retry_ns = 0;
        if (detached->is_cancelled) {
                detached_finish_cancelled(detached);
                return;
        }
        detached_release(detached);
        detached_enqueue(detached);
        detached_admit(detached->owner);
}

/* ---- submit ---------------------------------------------------------------- */

static void detached_submit(Detached *detached) {
        Gpuq__Spool__Record *record = detached->record;
        Gpuq__V1__Job *job = record->job;

        job->tag = detached->number;
        for (size_t i = 0; i < job->n_buffers; ++i)
                job->buffers[i]->arena = detached->arena->id;
        for (size_t i = 0; i < job->n_kernels; ++i)
                job->kernels[i]->module = detached->modules[record->kernel_modules[i]]->id;
        detached->state = DETACHED_SUBMITTED;
        *detached->reason = '\0';
        session_submit_own(detached->owner->session, job);
}

/* Another's fault took it along, and it cannot go on with what it half wrote: but from the start. */
static bool detached_may_rerun(Detached *detached, const Job *job) {
        int code = job->failure ? job->failure->code : 0;

        return (code == FAILURE_HALF_WRITTEN || code == FAILURE_VARIABLES_LOST) &&
               detached->n_reruns++ < DETACHED_RERUNS_MAX;
}

static void owner_on_job_ended(Session *session, Job *job) {
        Supervisor *supervisor = session->clients->supervisor;
        Detached *detached = detached_find(supervisor, (uint32_t)job->id);
        Gpuq__V1__Completion completion;
        Gpuq__V1__Error error;
        bool counts = !supervisor->engine.is_closing || job->state == JOB_DONE;

        /* A daemon that ends ends its jobs, but not for good: the next one runs them. */
        if (detached && detached->state == DETACHED_SUBMITTED && counts) {
                completion_fill(&completion, &error, job);
                completion.id = detached_id(detached);
                if (detached_may_rerun(detached, job))
                        detached_rerun(detached);
                else
                        detached_finish(detached, &completion);
        }
        job_free(job);
}

/* ---- link ------------------------------------------------------------------ */

static Detached *owner_find_linking(Session *session, const Module *module) {
        Detached *detached = detached_find(session->clients->supervisor, module->serial);

        return detached && detached->state == DETACHED_LINKING ? detached : NULL;
}

static void owner_on_module_ready(Session *session, const Module *module) {
        Detached *detached = owner_find_linking(session, module);

        if (detached && --detached->n_linking == 0)
                detached_submit(detached);
}

/* The modules go when that is written, not from within the one that failed. */
static void owner_on_module_failed(Session *session, const Module *module, const Failure *failure) {
        Detached *detached = owner_find_linking(session, module);

        if (detached && !session->engine->is_closing)
                detached_fail(detached, JOB_FAILED, failure);
}

const SessionOwner detached_owner_hooks = {
        .job_ended = owner_on_job_ended,
        .module_ready = owner_on_module_ready,
        .module_failed = owner_on_module_failed,
};

static int link_module(Detached *detached, size_t i) {
        const Gpuq__Spool__Module *module = detached->record->modules[i];
        ModuleSpec spec = {
                .format = (int)module->format,
                .image = detached->image_arenas[i],
                .length = module->length,
                .options = module->options,
                .n_options = module->n_options,
                .name = module->name,
                .device = -1,
                .serial = detached->number,
        };
        int r;

        if (spec.image && fcntl(spec.image->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                return -errno;
        r = module_new(&detached->owner->session->submitter, &spec, &detached->modules[i]);
        if (r == 0)
                module_ref(detached->modules[i]);
        return r;
}

static void detached_link(Detached *detached) {
        size_t n = detached->record->n_modules;
        int r = 0;

        for (size_t i = 0; i < n && r == 0; ++i)
                r = link_module(detached, i);
        if (r) {
                detached_postpone(detached, r == MODULE_E_QUOTA
                                                    ? "its user is at the limit modules"
                                                    : "there is no memory for its modules");
                return;
        }

        detached->state = DETACHED_LINKING;
        detached->n_linking = (unsigned)n;
        if (n == 0)
                detached_submit(detached);
        for (size_t i = 0; i < n && detached->state == DETACHED_LINKING; ++i)
                module_load(detached->modules[i]);
}

/* ---- load ------------------------------------------------------------------ */

static void load_in_thread(void *userdata) {
        Detached *detached = userdata;
        Spool *spool = detached->table->spool;
        size_t n = detached->record->n_modules;
        int *images = calloc(n + 1, sizeof(*images));

        detached->r = -ENOMEM;
        for (size_t i = 0; images && i < n; ++i)
                images[i] = detached->image_arenas[i] ? detached->image_arenas[i]->fd : -1;
        if (images)
                detached->r = spool_load(spool, detached->record, detached->arena->fd, images,
                                         &detached->problem);
        free(images);
        if (detached->r == SPOOL_E_DAMAGED)
                (void)spool_set_aside(spool, detached->number, detached->uid);
}

static void load_on_done(void *userdata) {
        Detached *detached = userdata;
        DetachedOwner *owner = detached->owner;

        detached->is_working = false;
        if (detached_is_stopped(detached)) {
                detached_release(detached);
                return;
        }
        if (detached->r == SPOOL_E_DAMAGED)
                detached_damage(detached, detached->problem.text);
        else if (detached->is_cancelled)
                detached_finish_cancelled(detached);
        else if (detached->r < 0)
                detached_postpone(detached, "there is no memory for its data");
        else
                detached_link(detached);
        detached_admit(owner);
}

static int load_make_room(Detached *detached) {
        Supervisor *supervisor = detached->table->supervisor;
        const Gpuq__Spool__Record *record = detached->record;
        User *user = detached->owner->user;
        int r;

        if (!detached->image_arenas)
                detached->image_arenas = calloc(record->n_modules + 1, sizeof(Arena *));
        if (!detached->modules)
                detached->modules = calloc(record->n_modules + 1, sizeof(Module *));
        if (!detached->image_arenas || !detached->modules)
                return -ENOMEM;

        r = arena_new(&supervisor->engine, user, ARENA_HOST, record->size, &detached->arena);
        for (size_t i = 0; i < record->n_modules && r == 0; ++i)
                if (record->modules[i]->length)
                        r = arena_new(&supervisor->engine, user, ARENA_IMAGE,
                                      record->modules[i]->length, &detached->image_arenas[i]);
        return r;
}

static void detached_load(Detached *detached) {
        int r;

        TAILQ_REMOVE(&detached->owner->queued, detached, link);
        detached->state = DETACHED_LOADING;
        detached_count_loaded(detached);
        r = load_make_room(detached);
        if (r)
                detached_postpone(detached, r == ARENA_E_QUOTA
                                                    ? "its user is at the limit arena_bytes"
                                                    : "there is no memory for its data");
        else
                detached_begin(detached, load_in_thread, load_on_done);
}

static bool owner_has_room(const DetachedOwner *owner, const Detached *detached) {
        uint64_t n_bytes = detached_memory(detached);

        if (owner->n_loaded == 0)
                return true;
        return owner->n_loaded < DETACHED_LOADED_JOBS && n_bytes <= DETACHED_LOADED_BYTES &&
               owner->loaded_bytes <= DETACHED_LOADED_BYTES - n_bytes;
}

void detached_admit(DetachedOwner *owner) {
        Supervisor *supervisor = owner->table->supervisor;
        Detached *detached;

        /* An arena that is made sooner would be taken for one of the supervisor before us. */
        if (!takeover_serves(supervisor))
                return;
        while ((detached = TAILQ_FIRST(&owner->queued)) && !supervisor->engine.is_closing &&
               uv_hrtime() >= owner->retry_ns && owner_has_room(owner, detached))
                detached_load(detached);
}

/* ---- cancel, remove, damage ------------------------------------------------ */

/* Of the job that it is now: another one each time it is run, so that nobody takes an end of
 * one that a worker still has from before for this one's. */
static uint64_t detached_job_id(const Detached *detached) {
        return (uint64_t)detached->owner->session->submitter.id << 32 | detached->number;
}

bool detached_cancel(Detached *detached, uid_t by) {
        Job *job;

        if (detached->state >= DETACHED_ENDING && !detached->is_rerun)
                return false;

        detached->is_cancelled = true;
        detached->cancelled_by = by;
        switch (detached->state) {
                case DETACHED_QUEUED:
                        TAILQ_REMOVE(&detached->owner->queued, detached, link);
                        detached_finish_cancelled(detached);
                        break;
                case DETACHED_LINKING:
                        detached_finish_cancelled(detached);
                        break;
                case DETACHED_SUBMITTED:
                        job = engine_find_job(&detached->table->supervisor->engine,
                                              detached_job_id(detached));
                        if (job)
                                ending_doom(job, JOB_CANCELLED,
                                            failure_new(FAILURE_CANCELLED, "cancelled by uid %u",
                                                        (unsigned)by));
                        break;
                default: /* the thread's or the clock's next step sees it */
                        break;
        }
        return true;
}

static void remove_in_thread(void *userdata) {
        Detached *detached = userdata;

        detached->r = spool_remove(detached->table->spool, detached->record);
}

static void remove_on_done(void *userdata) {
        Detached *detached = userdata;

        detached->is_working = false;
        if (detached->r == 0 || detached->r == -ENOENT) {
                detached_answer(detached);
                detached_end_it(detached);
                return;
        }
        detached->state = DETACHED_ENDED;
        detached_refuse(detached, DETACHED_ASK_DISCARD,
                        failure_new(FAILURE_INTERNAL, "it cannot be removed from the disk: %s",
                                    strerror(-detached->r)));
        detached_answer(detached);
}

void detached_remove(Detached *detached) {
        detached->state = DETACHED_REMOVING;
        detached_begin(detached, remove_in_thread, remove_on_done);
}

void detached_damage(Detached *detached, const char *what) {
        log_error("job " JOB_ID_FORMAT " of uid %u: its state on disk is damaged: %s; its folder "
                  "is %s/damaged/%u.%u",
                  JOB_ID_PARTS(detached_id(detached)), detached->uid, what, detached->table->folder,
                  detached->number, detached->uid);
        detached->state = DETACHED_DAMAGED;
        detached->retry_ns = 0;
        free(detached->damage);
        detached->damage = strdup(what);
        if (detached->owner)
                detached_release(detached);
        user_uncharge(&detached->jobs_charge);
        user_uncharge(&detached->bytes_charge);
        detached_answer(detached);
}
