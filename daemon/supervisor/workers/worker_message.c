/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's messages, one at a time. Everything is checked: the worker's user can stop and change
 * it, and on the CPU driver it runs its user's native code.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/count.h"
#include "util/activity.h"
#include "util/bump.h"
#include "jobs.h"
#include "util/list.h"
#include "pool.h"
#include "spares.h"
#include "worker.h"
#include "util/log.h"

#define WORKER_DEVICES_MAX  1024u /* devices that a probe may report */
#define WORKER_COUNTERS_MAX 1024u /* bytes */

static Failure *worker_failure(const WorkerMessage *message) {
        return failure_from_worker(message->head.code, message->text);
}

static void worker_on_spare(Worker *worker, uint64_t n_free) {
        worker_set_state(worker, WORKER_SPARE);
        spares_ready(worker, n_free);
}

static const char *worker_on_ready(Worker *worker, const WorkerMessage *ready) {
        _cleanup_(failure_freep) Failure *failure = worker_failure(ready);

        if (ready->head.number != WORKER_PROTOCOL)
                return "it is of another version";
        if (worker->state == WORKER_STOPPING)
                return NULL;
        if (worker->state != WORKER_STARTING)
                return "it reported ready twice";

        if (failure)
                worker_lost(worker, ready->head.detail ? FAULT_HARDWARE : FAULT_CRASH, failure,
                            NULL);
        else if (worker->executor.slot)
                worker_ready(worker);
        else
                worker_on_spare(worker, ready->head.id);
        return NULL;
}

static const char *worker_on_arena_added(Worker *worker, const WorkerMessage *added) {
        Mapping *mapping;
        uint64_t id = added->head.id;

        HASH_FIND(hh, worker->executor.mappings, &id, sizeof(id), mapping);
        if (!mapping || !added->head.code)
                return NULL;

        log_warning("worker %d cannot use arena %llu: %s", worker->executor.pid,
                    (unsigned long long)id, added->text);
        mapping_forget(mapping);
        return NULL;
}

/* Device memory is shared as a character device by CUDA, and as a memfd by the CPU driver. Other
 * descriptors from a worker (a socket, a pipe, a file on a network) could block their holder. */
static bool worker_is_device_memory(int fd) {
        struct stat st;

        return (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode)) || fcntl(fd, F_GET_SEALS) >= 0;
}

static const char *worker_on_arena_made(Worker *worker, const WorkerMessage *made) {
        bool has_failed = made->head.code != 0;
        _cleanup_(closep) int fd = has_failed ? -1 : channel_take_fd(worker->channel);
        Arena *arena = arena_find(worker->executor.engine, made->head.id);

        if (!has_failed && fd < 0)
                return "it sent an arena without its descriptor";
        if (fd >= 0 && !worker_is_device_memory(fd))
                return "it sent an arena that is not device memory";
        if (!arena || !worker->executor.slot || arena->slot != worker->executor.slot ||
            arena->asked_worker != worker->executor.id)
                return "it sent an arena that was not requested";

        worker_proved(worker);
        if (has_failed) {
                arena_failed(arena, worker_failure(made));
        } else {
                if (arena_made(arena, &worker->executor, made->head.number, TAKE_FD(fd)) < 0)
                        worker_kill(worker);
        }
        slot_forget_arena(arena);
        return NULL;
}

static const char *worker_on_module_added(Worker *worker, const WorkerMessage *added) {
        Gpuq__V1__ModuleReady *ready;
        uint64_t id = added->head.id;
        Instance *instance;

        HASH_FIND(hh, worker->executor.instances, &id, sizeof(id), instance);
        if (!instance)
                return NULL; /* dropped meanwhile */
        if (instance->state != INSTANCE_ADDING)
                return "it added a module twice";
        if (added->head.code) {
                worker_proved(worker);
                provision_module_failed(instance, worker_failure(added));
                return NULL;
        }

        if (count_parts(&gpuq__v1__module_ready__descriptor, added->items, added->head.n_items,
                        LIMIT_MESSAGE_PARTS) > LIMIT_MESSAGE_PARTS)
                return "it sent a module of too many kernels and parameters";
        ready = gpuq__v1__module_ready__unpack(bump_allocator(worker->workers->bump),
                                               added->head.n_items, added->items);
        if (!ready)
                return "it sent a module whose kernels are not protobuf";
        worker_proved(worker);
        provision_module_loaded(instance, ready);
        return NULL;
}

/* @told: the message; its error and output are the message's own. */
static const char *worker_on_end(Worker *worker, const WorkerEnd *end, const WorkerMessage *told) {
        Job *job = inflight_find(&worker->executor, end->id);

        if (!job)
                return "it reported the end of a job that it does not have";

        worker->n_jobs++;
        worker_proved(worker);
        ending_result(job, &(ExecutorResult){
                                   .ran_us = end->ran_us,
                                   .gpu_ns = end->gpu_ns,
                                   .stream = end->stream,
                                   .output = told->more,
                                   .failure = worker_failure(told),
                                   .never_ran = told->head.detail,
                           });
        return NULL;
}

static const char *worker_on_ends(Worker *worker, const WorkerMessage *told) {
        const WorkerEnd *ends = told->items;
        const char *problem;

        if (!told->head.n_items)
                return "it sent an empty list of ended jobs";
        if (told->head.n_items != 1 && (told->head.code || *told->more))
                return "it sent an error or output for several jobs at once";

        engine_event(worker->executor.engine);
        for (uint32_t i = 0; i < told->head.n_items; ++i) {
                problem = worker_on_end(worker, &ends[i], told);
                if (problem)
                        return problem;
        }
        return NULL;
}

static const char *worker_on_late(Worker *worker, const WorkerMessage *late) {
        Job *job = inflight_find(&worker->executor, late->head.id);

        /* It may have ended at the same moment. */
        if (job && job->work.timeout_ms)
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

        /* Jobs that it does not name are still in its ring, unread. */
        TAILQ_FOREACH (job, &worker->executor.inflight, link)
                inflight_set_phase(&worker->executor, job, FAULT_QUEUED);
        for (uint32_t i = 0; i < stopped->head.n_items; ++i) {
                job = inflight_find(&worker->executor, list[i].id);
                if (!job)
                        return "it stopped with a job that it does not have";
                if (list[i].phase >= ARRAY_SIZE(phases))
                        return "it stopped with an unknown phase";
                inflight_set_phase(&worker->executor, job, phases[list[i].phase]);
        }

        if (failure)
                cause = stopped->head.detail ? FAULT_HARDWARE : FAULT_DEVICE;
        worker_dying(worker, cause, failure, stopped->more);
        return NULL;
}

static const char *worker_on_stats(Worker *worker, const WorkerMessage *stats) {
        static const ExecutorWait waits[_WORKER_WAITS_N] = {
                [WORKER_WAITS_NOT] = EXECUTOR_WAITS_NOT,
                [WORKER_WAITS_FOR_QUIET] = EXECUTOR_WAITS_FOR_QUIET,
                [WORKER_WAITS_FOR_BUILTIN] = EXECUTOR_WAITS_FOR_BUILTIN,
                [WORKER_WAITS_FOR_ONE] = EXECUTOR_WAITS_FOR_ONE,
        };
        const Gpuq__V1__WorkerCounters *counters;

        if (stats->head.detail >= _WORKER_WAITS_N)
                return "it waits for something unknown";
        if (stats->head.n_items > WORKER_COUNTERS_MAX)
                return "it sent too many counters";
        if (count_parts(&gpuq__v1__worker_counters__descriptor, stats->items, stats->head.n_items,
                        LIMIT_MESSAGE_PARTS) > LIMIT_MESSAGE_PARTS)
                return "it sent counters of too many parts";
        counters = gpuq__v1__worker_counters__unpack(bump_allocator(worker->workers->bump),
                                                     stats->head.n_items, stats->items);
        if (!counters)
                return "it sent counters that are not protobuf";

        worker->memory = stats->head.number;
        if (worker->executor.device)
                worker->executor.device->used_bytes =
                        MIN(stats->head.id, worker->executor.device->memory_total);
        worker->counters = *counters;
        /* Without the unknown fields, which are freed with the message. */
        worker->counters.base =
                (ProtobufCMessage)PROTOBUF_C_MESSAGE_INIT(&gpuq__v1__worker_counters__descriptor);
        worker->executor.wait = waits[stats->head.detail];
        return NULL;
}

/* Return: false: the text has no terminator. */
static bool worker_take_device(const WorkerDevice *device, DeviceInfo *ret_info) {
        if (!memchr(device->name, '\0', sizeof(device->name)) ||
            !memchr(device->uuid, '\0', sizeof(device->uuid)) ||
            !memchr(device->pci, '\0', sizeof(device->pci)))
                return false;
        *ret_info = (DeviceInfo){
                .name = device->name,
                .uuid = device->uuid,
                .pci = device->pci,
                .memory_total = device->memory_total,
                .peers = device->peers,
                .near = device->near,
        };
        return true;
}

static const char *worker_on_probed(Worker *worker, const WorkerMessage *probed) {
        const Engine *engine = worker->executor.engine;
        const WorkerDevice *devices = probed->items;
        DeviceInfo info[WORKER_DEVICES_MAX];
        ProbeResult result = {
                .error = probed->head.code ? probed->text : NULL,
                .device_failed = probed->head.detail,
                .lacks_memory = probed->head.code == FAILURE_MEMORY,
                .driver_version = probed->more,
                .devices = info,
                .n_devices = probed->head.n_items,
        };

        if (probed->head.kind != FROM_WORKER_PROBED)
                return "it sent a message that a probe does not send";
        if (result.n_devices > WORKER_DEVICES_MAX)
                return "it reported too many devices";
        for (size_t i = 0; i < result.n_devices; ++i)
                if (!worker_take_device(&devices[i], &info[i]))
                        return "it reported a device whose strings are not terminated";

        worker_set_state(worker, WORKER_LOST);
        engine->device_ops->probed(engine->monitor, worker->check, &result);
        return NULL;
}

static const char *worker_on_returned(Worker *worker, const WorkerMessage *returned) {
        Lease *lease = lease_find(&worker->executor, (uint32_t)returned->head.id);
        const WorkerTaken *jobs = returned->items;
        LeaseTaken taken[WORKER_DIRECT_JOBS];
        size_t n = returned->head.n_items;

        if (!lease)
                return "it returned a direct ring that it does not have";
        if (n > WORKER_DIRECT_JOBS)
                return "it returned a direct ring with too many jobs";
        for (size_t i = 0; i < n; ++i)
                taken[i] = (LeaseTaken){jobs[i].tag, jobs[i].prepared};
        lease->n_taken = (uint32_t)returned->head.number;
        lease->last_tag = (uint32_t)(returned->head.number >> 32);
        lease_returned(lease, taken, n);
        return NULL;
}

/* As of an end, whose time has so many bits: what counts times takes any of these. */
static bool worker_are_times(const WorkerLent *lent) {
        return lent->waited_us >> 48 == 0 && lent->ran_us >> 48 == 0;
}

static const char *worker_on_lent(Worker *worker, const WorkerMessage *message) {
        const WorkerLent *lent = message->items;
        size_t n = message->head.n_items / sizeof(*lent);
        Lease *lease;

        if (message->head.n_items % sizeof(*lent))
                return "it sent counts of a wrong length";
        worker_proved(worker);
        leases_pay(&worker->executor, message->head.number);
        for (size_t i = 0; i < n; ++i) {
                if (!worker_are_times(&lent[i]))
                        return "it counted jobs that took longer than there has been time";
                lease = lease_find(&worker->executor, lent[i].session);
                if (!lease || !lent[i].n_done || lent[i].n_done > UINT32_MAX ||
                    !lease_count(lease, lent[i].prepared, lent[i].n_done, lent[i].waited_us,
                                 lent[i].ran_us, lent[i].busy_ns / lent[i].n_done))
                        return "it counted jobs of a direct ring that it does not have";
                worker->n_jobs += lent[i].n_done;
        }
        return NULL;
}

_Static_assert(LEASE_TEMPLATES_MAX == WORKER_TEMPLATES_MAX, "a worker takes every lease");

static const char *worker_on_message(Worker *worker, const WorkerMessage *message) {
        if (worker_is_probe(worker))
                return worker_on_probed(worker, message);
        if (worker->is_spare && message->head.kind != FROM_WORKER_READY)
                return "it sent a message that a spare worker does not send";

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
                case FROM_WORKER_RETURNED:
                        return worker_on_returned(worker, message);
                case FROM_WORKER_LENT:
                        return worker_on_lent(worker, message);
                case FROM_WORKER_STATS:
                        return worker_on_stats(worker, message);
                default:
                        return "it sent an unknown message";
        }
}

const char *worker_message(Worker *worker, const uint8_t *data, size_t n_data) {
        Bump *bump = worker->workers->bump;
        WorkerMessage message;
        const char *problem;

        worker->heard_ms = uv_now(worker->executor.engine->loop);
        if (!protocol_read(data, n_data, &message))
                return "it sent a message of the wrong length";
        activity_begin(ACTIVITY_WORKER, message.head.kind, worker->domain, worker->executor.id);

        problem = worker_on_message(worker, &message);
        bump_reset(bump);
        return problem;
}
