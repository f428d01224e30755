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
#include "util/list.h"
#include "devices.h"
#include "loop.h"
#include "worker.h"
#include "util/log.h"

#define WORKER_OUTPUT_MAX (64u << 10) /* bytes of kernels' output kept for a job */

static Failure *worker_failure(const WorkerMessage *message) {
        return failure_from_worker(message->head.code, message->text);
}

static const char *worker_on_ready(Worker *worker, const WorkerMessage *ready) {
        _cleanup_(failure_freep) Failure *failure = worker_failure(ready);

        if (ready->head.number != WORKER_PROTOCOL)
                return "ready, but of another build";
        if (worker->state == WORKER_STOPPING)
                return NULL;
        if (worker->state != WORKER_STARTING)
                return "ready out of turn";

        if (failure)
                worker_lost(worker, ready->head.detail ? FAULT_HARDWARE : FAULT_CRASH, failure,
                            NULL);
        else
                worker_ready(worker);
        return NULL;
}

static const char *worker_on_arena_added(Worker *worker, const WorkerMessage *added) {
        Mapping *mapping;
        uint64_t id = added->head.id;

        HASH_FIND(hh, worker->mappings, &id, sizeof(id), mapping);
        if (!mapping || !added->head.code)
                return NULL;

        log_warning("worker %d cannot use arena %llu: %s", worker->pid, (unsigned long long)id,
                    added->text);
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

static const char *worker_on_arena_made(Worker *worker, const WorkerMessage *made) {
        bool has_failed = made->head.code != 0;
        _cleanup_(closep) int fd = has_failed ? -1 : channel_take_fd(worker->channel);
        Arena *arena = engine_find_arena(&worker->supervisor->engine, made->head.id);

        if (!has_failed && fd < 0)
                return "an arena without its descriptor";
        if (fd >= 0 && !worker_is_device_memory(fd))
                return "an arena that is no device memory";
        if (!arena || !worker->slot || arena->slot != worker->slot ||
            arena->asked_worker != worker->id)
                return "an arena that was not asked for";

        worker_proved(worker);
        if (has_failed) {
                arena_failed(arena, worker_failure(made));
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

static void worker_take_module(Instance *instance, Module *module,
                               const Gpuq__V1__ModuleReady *ready) {
        ModuleReport report = {
                .has_variables = ready->has_variables,
                .log = ready->log,
                .kernels = ready->kernels,
                .n_kernels = ready->n_kernels,
        };

        instance->state = INSTANCE_READY;
        worker_unpark(instance);
        module_loaded(module, &report);
}

static const char *worker_on_module_added(Worker *worker, const WorkerMessage *added) {
        Gpuq__V1__ModuleReady *ready = NULL;
        Instance *instance;
        Module *module;
        Failure *failure;
        uint64_t id = added->head.id;

        HASH_FIND(hh, worker->instances, &id, sizeof(id), instance);
        if (!instance)
                return NULL; /* dropped meanwhile */
        if (instance->state != INSTANCE_ADDING)
                return "a module added twice";
        if (!added->head.code) {
                ready = gpuq__v1__module_ready__unpack(bump_allocator(worker->supervisor->bump),
                                                       added->head.n_items, added->items);
                if (!ready)
                        return "a module whose kernels are not protobuf";
        }

        worker_proved(worker);
        module = module_ref(instance->module);
        module->n_tries = 0;
        if (ready) {
                worker_take_module(instance, module, ready);
        } else {
                failure = worker_failure(added);
                worker_fail_instance(instance, failure);
                module_failed(module, failure);
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

/* @told: the message that it came in, whose error and output are its own. */
static const char *worker_on_end(Worker *worker, const WorkerEnd *end, const WorkerMessage *told) {
        Job *job = worker_find_job(worker, end->id);
        uint64_t elapsed_us;

        if (!job)
                return "the end of a job it does not have";

        elapsed_us = (engine_now(&worker->supervisor->engine) - job->started_ns) / 1000;
        job->ran_us = MIN(end->ran_us, elapsed_us);
        job->gpu_ns = job->timed ? end->gpu_ns : 0;
        worker_take_output(job, told->more);
        worker_note_variables(worker, job);
        worker->n_jobs++;
        worker_proved(worker);
        if (told->head.code)
                ending_fail(job, worker_failure(told));
        else
                ending_done(job);
        return NULL;
}

static const char *worker_on_ends(Worker *worker, const WorkerMessage *told) {
        const WorkerEnd *ends = told->items;
        const char *problem;

        if (told->head.n_items != 1 && (told->head.code || *told->more))
                return "an error or output that is of no one job";

        engine_event(&worker->supervisor->engine);
        for (uint32_t i = 0; i < told->head.n_items; ++i) {
                problem = worker_on_end(worker, &ends[i], told);
                if (problem)
                        return problem;
        }
        return NULL;
}

static const char *worker_on_late(Worker *worker, const WorkerMessage *late) {
        Job *job = worker_find_job(worker, late->head.id);

        /* It may have ended in the same moment. */
        if (job && job->timeout_ms)
                worker_late(worker, job);
        return NULL;
}

static const char *worker_on_stopped(Worker *worker, const WorkerMessage *stopped) {
        static const FaultPhase phases[] = {
                [WORKER_PHASE_QUEUED] = FAULT_QUEUED,
                [WORKER_PHASE_ISSUED] = FAULT_ISSUED,
                [WORKER_PHASE_COMMITTING] = FAULT_COMMITTING,
        };
        _cleanup_(failure_freep) Failure *failure = worker_failure(stopped);
        const WorkerInFlight *list = stopped->items;
        FaultCause cause = FAULT_STOPPED;
        Job *job;

        /* What it does not name is still in its ring, unread. */
        TAILQ_FOREACH (job, &worker->inflight, link)
                job->phase = FAULT_QUEUED;
        for (uint32_t i = 0; i < stopped->head.n_items; ++i) {
                job = worker_find_job(worker, list[i].id);
                if (!job)
                        return "stopped with a job it does not have";
                if (list[i].phase >= ARRAY_SIZE(phases))
                        return "stopped with an unknown phase";
                job->phase = phases[list[i].phase];
                if (job->phase != FAULT_QUEUED)
                        worker_note_variables(worker, job);
        }

        if (failure)
                cause = stopped->head.detail ? FAULT_HARDWARE : FAULT_DEVICE;
        worker_dying(worker, cause, failure, stopped->more);
        return NULL;
}

static const char *worker_on_stats(Worker *worker, const WorkerMessage *stats) {
        const Gpuq__V1__WorkerCounters *counters = gpuq__v1__worker_counters__unpack(
                bump_allocator(worker->supervisor->bump), stats->head.n_items, stats->items);

        if (!counters)
                return "counters that are not protobuf";

        worker->memory = stats->head.number;
        worker->counters = *counters;
        /* Without the unknown fields, which go with the message. */
        worker->counters.base =
                (ProtobufCMessage)PROTOBUF_C_MESSAGE_INIT(&gpuq__v1__worker_counters__descriptor);
        free(worker->waiting);
        worker->waiting = *stats->more ? strndup(stats->more, 256) : NULL;
        return NULL;
}

static const char *worker_on_probed(Worker *worker, const WorkerMessage *probed) {
        if (probed->head.kind != FROM_WORKER_PROBED)
                return "not what a probe says";

        worker->state = WORKER_LOST;
        if (worker->look)
                probe_looked(worker, probed);
        else
                probe_done(worker->supervisor, probed);
        return NULL;
}

static const char *worker_on_message(Worker *worker, const WorkerMessage *message) {
        if (!worker->slot)
                return worker_on_probed(worker, message);

        switch (message->head.kind) {
                case FROM_WORKER_READY:
                        return worker_on_ready(worker, message);
                case FROM_WORKER_ARENA_ADDED:
                        return worker_on_arena_added(worker, message);
                case FROM_WORKER_ARENA_MADE:
                        return worker_on_arena_made(worker, message);
                case FROM_WORKER_MODULE_ADDED:
                        return worker_on_module_added(worker, message);
                case FROM_WORKER_ENDS:
                        return worker_on_ends(worker, message);
                case FROM_WORKER_LATE:
                        return worker_on_late(worker, message);
                case FROM_WORKER_STOPPED:
                        return worker_on_stopped(worker, message);
                case FROM_WORKER_STATS:
                        return worker_on_stats(worker, message);
                default:
                        return "an unknown message";
        }
}

const char *worker_message(Worker *worker, const uint8_t *data, size_t n_data) {
        Bump *bump = worker->supervisor->bump;
        WorkerMessage message;
        const char *problem;

        worker->heard_ms = uv_now(&worker->supervisor->loop);
        if (!protocol_read(data, n_data, &message))
                return "a message that is not as long as it says";

        problem = worker_on_message(worker, &message);
        bump_reset(bump);
        return problem;
}
