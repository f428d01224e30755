/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker says, one message at a time. Everything is checked: its user can
 * stop it, and on the CPU driver it runs its user's native code.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "util/bump.h"
#include "jobs.h"
#include "ends_scan.h"
#include "util/list.h"
#include "devices.h"
#include "loop.h"
#include "worker.h"
#include "util/log.h"

#define WORKER_OUTPUT_MAX (64u << 10) /* bytes of kernels' output kept for a job */

static const char *worker_on_ready(Worker *worker, const Gpuq__Worker__Ready *ready) {
        _cleanup_(failure_freep) Failure *failure = failure_from_proto(ready->error);

        if (worker->state == WORKER_STOPPING)
                return NULL;
        if (worker->state != WORKER_STARTING)
                return "ready out of turn";

        if (failure)
                worker_lost(worker, ready->device_failed ? FAULT_HARDWARE : FAULT_CRASH, failure,
                            NULL);
        else
                worker_ready(worker);
        return NULL;
}

static const char *worker_on_arena_added(Worker *worker, const Gpuq__Worker__ArenaAdded *added) {
        Mapping *mapping;
        uint64_t id = added->id;

        HASH_FIND(hh, worker->mappings, &id, sizeof(id), mapping);
        if (!mapping || !added->error)
                return NULL;

        log_warning("worker %d cannot use arena %llu: %s", worker->pid, (unsigned long long)id,
                    added->error->text);
        LIST_REMOVE(mapping, link);
        HASH_DEL(worker->mappings, mapping);
        free(mapping);
        return NULL;
}

/* Device memory is shared as a character device by CUDA and as a memfd by the CPU driver. What
 * else a worker might hand up (a socket, a pipe, a file of a network) could hold up its holder. */
static bool worker_is_device_memory(int fd) {
        struct stat st;

        return (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode)) || fcntl(fd, F_GET_SEALS) >= 0;
}

static const char *worker_on_arena_made(Worker *worker, const Gpuq__Worker__ArenaMade *made) {
        _cleanup_(closep) int fd = made->error ? -1 : channel_take_fd(worker->channel);
        Arena *arena = engine_find_arena(&worker->supervisor->engine, made->id);

        if (!made->error && fd < 0)
                return "an arena without its descriptor";
        if (fd >= 0 && !worker_is_device_memory(fd))
                return "an arena that is no device memory";
        if (!arena || !worker->slot || arena->slot != worker->slot ||
            arena->asked_worker != worker->id)
                return "an arena that was not asked for";

        worker_proved(worker);
        if (made->error) {
                arena_failed(arena, failure_from_proto(made->error));
        } else {
                arena->device = worker->device;
                worker->device->arena_bytes += arena->size;
                arena_adopt_fd(arena, TAKE_FD(fd));
                if (worker_add_mapping(worker, arena) < 0)
                        worker_kill(worker);
                arena_made(arena);
        }
        slot_forget_arena(worker->slot, arena);
        return NULL;
}

/* In reverse, so that each goes to the front of its session's queue. */
static void worker_unpark(Instance *instance) {
        Job *job;

        while ((job = TAILQ_LAST(&instance->parked, InstanceJobs))) {
                scheduler_withdraw(job);
                scheduler_consider(job);
        }
}

/* It is forgotten, as the worker has done: what was there once loads again when its next job comes. */
static void worker_fail_instance(Instance *instance, const Failure *failure) {
        Job *job;

        instance->state = INSTANCE_FAILED;
        while ((job = TAILQ_FIRST(&instance->parked)))
                ending_fail(job, failure_copy(failure));
        worker_drop_instance(instance);
}

static const char *worker_on_module_added(Worker *worker, const Gpuq__Worker__ModuleAdded *added) {
        ModuleReport report = {
                .has_variables = added->has_variables,
                .log = added->log,
                .kernels = added->kernels,
                .n_kernels = added->n_kernels,
        };
        Failure *failure;
        Instance *instance;
        uint64_t id = added->id;
        Module *module;

        HASH_FIND(hh, worker->instances, &id, sizeof(id), instance);
        if (!instance)
                return NULL; /* dropped meanwhile */
        if (instance->state != INSTANCE_ADDING)
                return "a module added twice";

        worker_proved(worker);
        module = module_ref(instance->module);
        module->n_tries = 0;
        if (added->error) {
                failure = failure_from_proto(added->error);
                worker_fail_instance(instance, failure);
                module_failed(module, TAKE_PTR(failure));
        } else {
                instance->state = INSTANCE_READY;
                worker_unpark(instance);
                module_loaded(module, &report);
        }
        module_unref(module);
        return NULL;
}

/* Most end in the order in which they were given. */
static Job *worker_find_job(Worker *worker, uint64_t id) {
        Job *job = TAILQ_FIRST(&worker->inflight);

        if (!job || job->id != id)
                job = engine_find_job(&worker->supervisor->engine, id);

        return job && job->worker == worker && !job->item.is_queued ? job : NULL;
}

static void worker_note_variables(Worker *worker, const Job *job) {
        for (size_t i = 0; i < job->n_kernels; ++i) {
                Module *module = job->kernels[i].module;
                Instance *instance;

                if (!module->has_variables)
                        continue;
                module_note_use(module);
                instance = worker_instance(worker, module);
                if (instance)
                        instance->is_used = true;
        }
}

static void worker_take_output(Job *job, const char *output) {
        if (!*output)
                return;
        free(job->output);
        job->output = strndup(output, WORKER_OUTPUT_MAX);
}

static const char *worker_on_end(Worker *worker, const Gpuq__Worker__JobEnd *end) {
        Job *job = worker_find_job(worker, end->id);
        uint64_t elapsed_us;

        if (!job)
                return "the end of a job it does not have";

        elapsed_us = (engine_now(&worker->supervisor->engine) - job->started_ns) / 1000;
        job->ran_us = MIN(end->ran_us, elapsed_us);
        job->gpu_ns = job->timed ? end->gpu_ns : 0;
        worker_take_output(job, end->output);
        worker_note_variables(worker, job);
        worker->n_jobs++;
        worker_proved(worker);
        if (end->error)
                ending_fail(job, failure_from_proto(end->error));
        else
                ending_done(job);
        return NULL;
}

static const char *worker_on_ends(Worker *worker, const Gpuq__Worker__JobEnds *ends) {
        const char *problem;

        engine_event(&worker->supervisor->engine);
        for (size_t i = 0; i < ends->n_ends; ++i) {
                problem = worker_on_end(worker, ends->ends[i]);
                if (problem)
                        return problem;
        }
        return NULL;
}

static const char *worker_on_late(Worker *worker, const Gpuq__Worker__JobLate *late) {
        Job *job = worker_find_job(worker, late->id);

        /* It may have ended in the same moment. */
        if (job && job->timeout_ms)
                worker_late(worker, job);
        return NULL;
}

static const char *worker_on_stopped(Worker *worker, const Gpuq__Worker__Stopped *stopped) {
        _cleanup_(failure_freep) Failure *failure = failure_from_proto(stopped->error);
        FaultCause cause = FAULT_STOPPED;
        Job *job;

        /* What it does not name is still in its ring, unread. */
        TAILQ_FOREACH (job, &worker->inflight, link)
                job->phase = FAULT_QUEUED;
        for (size_t i = 0; i < stopped->n_jobs; ++i) {
                job = worker_find_job(worker, stopped->jobs[i]->id);
                if (!job)
                        return "stopped with a job it does not have";
                switch (stopped->jobs[i]->phase) {
                        case GPUQ__WORKER__PHASE__QUEUED:
                                break;
                        case GPUQ__WORKER__PHASE__ISSUED:
                                job->phase = FAULT_ISSUED;
                                break;
                        case GPUQ__WORKER__PHASE__COMMITTING:
                                job->phase = FAULT_COMMITTING;
                                break;
                        default:
                                return "stopped with an unknown phase";
                }
                if (job->phase != FAULT_QUEUED)
                        worker_note_variables(worker, job);
        }

        if (failure)
                cause = stopped->device_failed ? FAULT_HARDWARE : FAULT_DEVICE;
        worker_dying(worker, cause, failure, stopped->output);
        return NULL;
}

static const char *worker_on_stats(Worker *worker, const Gpuq__Worker__Stats *stats) {
        worker->memory = stats->memory;
        free(worker->waiting);
        if (stats->counters) {
                worker->counters = *stats->counters;
                /* Without the unknown fields, which go with the message. */
                worker->counters.base = (ProtobufCMessage)PROTOBUF_C_MESSAGE_INIT(
                        &gpuq__v1__worker_counters__descriptor);
        }
        worker->waiting = *stats->waiting ? strndup(stats->waiting, 256) : NULL;
        return NULL;
}

static const char *worker_on_message(Worker *worker, const Gpuq__Worker__FromWorker *message) {
        if (!worker->slot) {
                if (message->body_case != GPUQ__WORKER__FROM_WORKER__BODY_PROBED)
                        return "not what a probe says";
                worker->state = WORKER_LOST;
                if (worker->look)
                        probe_looked(worker, message->probed);
                else
                        probe_done(worker->supervisor, message->probed);
                return NULL;
        }

        switch (message->body_case) {
                case GPUQ__WORKER__FROM_WORKER__BODY_READY:
                        return worker_on_ready(worker, message->ready);
                case GPUQ__WORKER__FROM_WORKER__BODY_ARENA_ADDED:
                        return worker_on_arena_added(worker, message->arena_added);
                case GPUQ__WORKER__FROM_WORKER__BODY_ARENA_MADE:
                        return worker_on_arena_made(worker, message->arena_made);
                case GPUQ__WORKER__FROM_WORKER__BODY_MODULE_ADDED:
                        return worker_on_module_added(worker, message->module_added);
                case GPUQ__WORKER__FROM_WORKER__BODY_ENDS:
                        return worker_on_ends(worker, message->ends);
                case GPUQ__WORKER__FROM_WORKER__BODY_LATE:
                        return worker_on_late(worker, message->late);
                case GPUQ__WORKER__FROM_WORKER__BODY_STOPPED:
                        return worker_on_stopped(worker, message->stopped);
                case GPUQ__WORKER__FROM_WORKER__BODY_STATS:
                        return worker_on_stats(worker, message->stats);
                default:
                        return "an unknown message";
        }
}

const char *worker_message(Worker *worker, const uint8_t *data, size_t n_data) {
        Bump *bump = worker->supervisor->bump;
        Gpuq__Worker__FromWorker *message;
        const char *problem;

        worker->heard_ms = uv_now(&worker->supervisor->loop);
        message = ends_scan(bump, data, n_data);
        if (!message)
                message = gpuq__worker__from_worker__unpack(bump_allocator(bump), n_data, data);
        problem = message ? worker_on_message(worker, message) : "a message that is not protobuf";
        bump_reset(bump);
        return problem;
}
