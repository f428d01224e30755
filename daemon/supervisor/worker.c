/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/worker.h"

#include <assert.h>
#include <stdio.h>
#include <sys/wait.h>

#include "supervisor/dependency.h"
#include "supervisor/drain.h"
#include "supervisor/ending.h"
#include "supervisor/keeper_link.h"
#include "supervisor/list.h"
#include "supervisor/probe.h"
#include "supervisor/recovery.h"
#include "supervisor/scheduler.h"
#include "supervisor/slot.h"
#include "supervisor/supervisor.h"
#include "util/log.h"

static void worker_on_timer(uv_timer_t *timer);

/* ---- start ----------------------------------------------------------------- */

static void worker_on_bell(uv_poll_t *poll, int status, int events) {
        Worker *worker = poll->data;

        channel_wake(worker->channel);
        worker->is_awake = true;
        worker_read(worker);
}

static void worker_on_hangup(uv_poll_t *poll, int status, int events) {
        Worker *worker = poll->data;

        /* Its last words are in the ring. The rest is up to the keeper, which sees its exit;
         * should it only have closed the socket, it does not live on. */
        uv_poll_stop(poll);
        worker_read(worker);
        keeper_link_kill(worker->supervisor->keeper, worker->id);
}

static int worker_start_handles(Worker *worker) {
        uv_loop_t *loop = &worker->supervisor->loop;
        int r;

        worker->bell.data = worker->hangup.data = worker->timer.data = worker;
        r = uv_timer_init(loop, &worker->timer);
        if (r < 0)
                return r;
        worker->n_handles++;
        r = uv_poll_init(loop, &worker->bell, channel_bell_fd(worker->channel));
        if (r < 0)
                return r;
        worker->n_handles++;
        r = uv_poll_init(loop, &worker->hangup, channel_socket_fd(worker->channel));
        if (r < 0)
                return r;
        worker->n_handles++;

        r = uv_poll_start(&worker->bell, UV_READABLE, worker_on_bell);
        if (r < 0)
                return r;
        return uv_poll_start(&worker->hangup, UV_DISCONNECT, worker_on_hangup);
}

static void worker_on_close(uv_handle_t *handle) {
        Worker *worker = handle->data;

        if (--worker->n_handles)
                return;
        channel_free(worker->channel);
        free(worker->waiting);
        free(worker);
}

static void worker_close_handles(Worker *worker) {
        uv_handle_t *handles[] = {
                (uv_handle_t *)&worker->timer,
                (uv_handle_t *)&worker->bell,
                (uv_handle_t *)&worker->hangup,
        };
        unsigned n_handles = worker->n_handles;

        if (!n_handles) {
                worker->n_handles = 1;
                worker_on_close(&(uv_handle_t){.data = worker});
                return;
        }
        for (unsigned i = 0; i < n_handles; ++i)
                uv_close(handles[i], worker_on_close);
}

static int worker_spawn(Worker *worker, int fds[static CHANNEL_N_FDS]) {
        KeeperMessage message = {
                .kind = KEEPER_SPAWN,
                .id = worker->id,
                .uid = worker->domain,
                .gid = worker->slot ? worker->slot->gid : 0,
                .device = worker->device ? worker->device->index : 0,
                .probe = !worker->slot,
        };
        const Device *device = worker->look ? worker->look : worker->device;
        int r;

        if (device)
                snprintf(message.text, sizeof(message.text), "%s", device->uuid);
        r = keeper_link_send(worker->supervisor->keeper, &message, fds, CHANNEL_N_FDS);
        for (size_t i = 0; i < CHANNEL_N_FDS; ++i)
                close(fds[i]);
        return r;
}

int worker_new(Supervisor *supervisor, Slot *slot, Device *look, Worker **ret_worker) {
        int fds[CHANNEL_N_FDS], r;
        Worker *worker;

        worker = calloc(1, sizeof(*worker));
        if (!worker)
                return -ENOMEM;

        worker->id = ++supervisor->last_worker;
        worker->supervisor = supervisor;
        worker->slot = slot;
        worker->device = slot ? slot->device : NULL;
        worker->look = look;
        worker->domain = slot ? slot->key.domain : 0;
        worker->cause = FAULT_CRASH;
        worker->is_awake = true;
        worker->idle_ns = uv_hrtime();
        TAILQ_INIT(&worker->inflight);
        outbox_init(&worker->outbox);

        r = channel_new(&worker->channel, fds);
        if (r < 0) {
                free(worker);
                return r;
        }
        r = worker_start_handles(worker);
        if (r >= 0)
                r = worker_spawn(worker, fds);
        if (r < 0) {
                worker_close_handles(worker);
                return r;
        }

        HASH_ADD(hh, supervisor->workers, id, sizeof(worker->id), worker);
        *ret_worker = worker;
        return 0;
}

static void worker_log_ready(const Worker *worker) {
        log_info("worker %d is ready on device %u for uid %u", worker->pid, worker->device->index,
                 worker->domain);
}

/* The keeper may tell after the worker itself: these are two sockets. */
void worker_spawned(Worker *worker, int32_t pid) {
        worker->pid = pid;
        if (worker->state == WORKER_READY)
                worker_log_ready(worker);
}

void worker_ready(Worker *worker) {
        worker->state = WORKER_READY;
        worker->idle_ns = uv_hrtime();
        if (worker->pid)
                worker_log_ready(worker);
        slot_worker_ready(worker->slot);
}

/* ---- channel --------------------------------------------------------------- */

void worker_flush(Worker *worker) {
        int r;

        if (worker->state == WORKER_LOST || TAILQ_EMPTY(&worker->outbox.items))
                return;

        /* With no room left the worker rings once it has made some. */
        r = outbox_flush(&worker->outbox, worker->channel);
        if (r == CHANNEL_E_CORRUPT)
                worker_break(worker, "its ring is corrupt");
        else if (r < 0)
                worker_break(worker, strerror(-r));
}

bool worker_sleep(Worker *worker) {
        if (!worker->is_awake || worker->state == WORKER_LOST)
                return true;

        worker->is_awake = !channel_sleep(worker->channel);
        return !worker->is_awake;
}

void worker_wake(Worker *worker) {
        if (worker->is_awake || worker->state == WORKER_LOST)
                return;
        channel_wake(worker->channel);
        worker->is_awake = true;
}

void worker_read(Worker *worker) {
        const char *problem;
        const uint8_t *data;
        size_t n_data;
        int r;

        for (unsigned i = 0; i < WORKER_READ_MAX && worker->state != WORKER_LOST; ++i) {
                r = channel_receive(worker->channel, &data, &n_data);
                if (r == CHANNEL_E_AGAIN)
                        return;
                if (r) {
                        worker_break(worker, "its ring is corrupt");
                        return;
                }
                problem = worker_message(worker, data, n_data);
                if (problem) {
                        worker_break(worker, problem);
                        return;
                }
        }
}

/* ---- end ------------------------------------------------------------------- */

/* The fault that it told was one of a job's: it named some that ran. */
static bool worker_has_suspects(const Worker *worker, FaultCause cause) {
        const Job *job;

        if (cause != FAULT_DEVICE)
                return false;
        TAILQ_FOREACH(job, &worker->inflight, link)
        if (job->phase != FAULT_QUEUED)
                return true;
        return false;
}

/* A module that kills its compiler's parent again and again is given up. */
static void worker_blame_module(Worker *worker, Instance *instance) {
        Module *module = instance->module;
        Job *job;

        if (instance->state != INSTANCE_ADDING || !fault_has_culprit(worker->cause) ||
            worker->has_suspects || ++module->n_tries < MODULE_TRIES_MAX)
                return;

        module->n_tries = 0;
        while ((job = TAILQ_FIRST(&instance->parked)))
                ending_fail(job, failure_new(FAILURE_INTERNAL, "the worker died while it loaded %s",
                                             module->name));
        module_failed(module, failure_new(FAILURE_INTERNAL, "the worker died while it loaded %s",
                                          module->name));
}

static void worker_forget_instance(Worker *worker, Instance *instance) {
        _cleanup_(module_unrefp) Module *module = module_ref(instance->module);
        Job *job;

        worker_blame_module(worker, instance);
        while ((job = TAILQ_LAST(&instance->parked, InstanceJobs))) {
                scheduler_withdraw(job);
                scheduler_consider(job);
        }
        if (instance->is_used)
                module->variables_lost = true;
        if (module->home == worker->device)
                module->home = NULL;
        worker_drop_instance(instance);
}

static void worker_forget_instances(Worker *worker) {
        while (worker->instances)
                worker_forget_instance(worker, worker->instances);
}

static void worker_forget_mappings(Worker *worker) {
        while (worker->mappings)
                worker_drop_mapping(worker->mappings);
}

void worker_lost(Worker *worker, FaultCause cause, const Failure *failure, const char *output) {
        /* One that dies before it was of any use counts as one that did not start. */
        bool was_useless = worker->state == WORKER_STARTING ||
                           (worker->state == WORKER_READY && !worker->is_proved &&
                            TAILQ_EMPTY(&worker->inflight));
        Slot *slot = worker->slot;

        if (worker->state == WORKER_LOST)
                return;

        worker->cause = worker->state == WORKER_STOPPING ? FAULT_STOPPED : cause;
        worker->state = WORKER_LOST;
        worker->slot = NULL;
        worker->has_suspects = worker_has_suspects(worker, worker->cause);
        outbox_clear(&worker->outbox);
        recovery_run(worker, failure, output);
        worker_forget_instances(worker);
        worker_forget_mappings(worker);
        if (worker->cause == FAULT_HARDWARE)
                drain_sign(worker->device, was_useless ? HEALTH_NO_START : HEALTH_FAULT,
                           failure ? failure->text : "no word");
        if (worker->look)
                probe_look_failed(worker, failure ? failure->text : "it said nothing");
        else if (!slot)
                probe_failed(worker->supervisor, failure ? failure->text : "it said nothing");
        else if (was_useless)
                slot_worker_failed(slot, failure ? failure->text : "the worker died as it started");
        else
                slot_worker_lost(slot, fault_has_culprit(worker->cause));
}

void worker_break(Worker *worker, const char *why) {
        log_warning("worker %d broke the rules, killed: %s", worker->pid, why);
        keeper_link_kill(worker->supervisor->keeper, worker->id);
        worker_lost(worker, FAULT_CRASH, NULL, NULL);
}

/* What was not written to it yet did not reach it: those jobs go back untouched. */
static void worker_recall(Worker *worker) {
        Job *job, *next;

        TAILQ_FOREACH_SAFE(job, &worker->inflight, link, next)
        if (!job->doom && outbox_remove_job(&worker->outbox, job))
                scheduler_return(job, job->is_alone);
        outbox_clear(&worker->outbox);
}

void worker_stop(Worker *worker) {
        if (worker->state >= WORKER_STOPPING)
                return;
        if (worker->state == WORKER_STARTING) {
                worker_kill(worker);
                return;
        }

        worker->state = WORKER_STOPPING;
        worker_recall(worker);
        if (outbox_push_id(&worker->outbox, OUTBOX_STOP, 0) < 0) {
                worker_kill(worker);
                return;
        }
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_STOP_MS, 0);
}

void worker_kill(Worker *worker) {
        if (worker->state == WORKER_READY)
                worker->state = WORKER_STOPPING;
        keeper_link_kill(worker->supervisor->keeper, worker->id);
}

void worker_stop_soon(Worker *worker) {
        if (worker->state != WORKER_READY || uv_is_active((uv_handle_t *)&worker->timer))
                return;
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_CANCEL_MS, 0);
}

/* One that waits behind others in the worker is no reason to stop those. */
static bool worker_has_doomed(const Worker *worker) {
        const Job *job;

        TAILQ_FOREACH(job, &worker->inflight, link)
        if (job->doom && !dependency_is_behind(job))
                return true;
        return false;
}

static void worker_on_timer(uv_timer_t *timer) {
        Worker *worker = timer->data;

        if (worker->state == WORKER_STOPPING)
                worker_kill(worker);
        else if (worker->state == WORKER_READY && worker_has_doomed(worker))
                worker_stop(worker);
}

static void worker_doom_late(Job *job) {
        char names[256];

        job_kernel_names(job, names, sizeof(names));
        job->doom_state = JOB_FAILED;
        job->doom = failure_new(FAILURE_TIMEOUT, "%s ran longer than its timeout of %.3f s", names,
                                (double)job->timeout_ms / 1000);
}

void worker_late(Worker *worker, Job *job) {
        if (job->doom)
                return;
        worker_doom_late(job);
        worker_stop(worker);
}

void worker_overdue(Worker *worker, Job *job) {
        if (worker->state != WORKER_READY)
                return;
        log_warning("worker %d does not keep time, killed", worker->pid);
        if (!job->doom)
                worker_doom_late(job);
        worker_kill(worker);
}

static Failure *worker_describe_exit(int status, const char *text) {
        if (*text)
                return failure_new(FAILURE_INTERNAL, "%s", text);
        if (WIFSIGNALED(status))
                return failure_new(FAILURE_INTERNAL, "the worker was killed by signal %d",
                                   WTERMSIG(status));
        return failure_new(FAILURE_INTERNAL, "the worker exited with status %d",
                           WEXITSTATUS(status));
}

void worker_exited(Worker *worker, int status, const char *text) {
        _cleanup_(failure_freep) Failure *failure = worker_describe_exit(status, text);
        bool was_told;

        /* Its last words first, all of them: the ring is finite and nobody writes it any more. */
        for (unsigned i = 0; i < CHANNEL_CAPACITY / WORKER_READ_MAX / 8; ++i)
                worker_read(worker);

        was_told = worker->state == WORKER_LOST;
        if (!was_told)
                worker_lost(worker, FAULT_CRASH, failure, NULL);
        if (worker->device)
                log_info("worker %d ended: %s", worker->pid, failure->text);
        worker_close(worker);
}

void worker_close(Worker *worker) {
        assert(TAILQ_EMPTY(&worker->inflight));
        HASH_DEL(worker->supervisor->workers, worker);
        worker_close_handles(worker);
}

/* ---- jobs ------------------------------------------------------------------ */

static int worker_give_arena(Worker *worker, Arena *arena) {
        Mapping *mapping;
        int r;

        HASH_FIND(hh, worker->mappings, &arena->id, sizeof(arena->id), mapping);
        if (mapping)
                return 0;

        r = outbox_push_arena(&worker->outbox, OUTBOX_ARENA_ADD, arena);
        if (r < 0)
                return r;
        return worker_add_mapping(worker, arena);
}

static int worker_give_arenas(Worker *worker, const Job *job) {
        Arena *last = NULL; /* the same one as a rule */
        int r;

        for (size_t i = 0; i < job->n_buffers; ++i) {
                if (job->buffers[i].arena == last)
                        continue;
                last = job->buffers[i].arena;
                r = worker_give_arena(worker, last);
                if (r < 0)
                        return r;
        }
        return job->word && job->word != last ? worker_give_arena(worker, job->word) : 0;
}

int worker_run(Worker *worker, Job *job) {
        int r;

        r = worker_give_arenas(worker, job);
        if (r < 0)
                return r;

        outbox_push_job(&worker->outbox, job);
        TAILQ_INSERT_TAIL(&worker->inflight, job, link);
        worker->n_inflight++;
        if (job->is_long)
                worker->n_long++;
        else
                worker->short_ns += job->expected_ns;
        job->is_bounding = true;
        return 0;
}

void worker_unbound(Worker *worker, Job *job) {
        if (job->is_long || !job->is_bounding)
                return;
        job->is_bounding = false;
        worker->short_ns -= job->expected_ns;
}

void worker_remove(Worker *worker, Job *job) {
        outbox_remove_job(&worker->outbox, job);
        TAILQ_REMOVE(&worker->inflight, job, link);
        worker->n_inflight--;
        if (job->is_long)
                worker->n_long--;
        else
                worker_unbound(worker, job);
        if (!worker->n_inflight)
                worker->idle_ns = uv_hrtime();
}

/* ---- arenas and modules ---------------------------------------------------- */

int worker_add_mapping(Worker *worker, Arena *arena) {
        Mapping *mapping;

        mapping = calloc(1, sizeof(*mapping));
        if (!mapping)
                return -ENOMEM;

        mapping->id = arena->id;
        mapping->arena = arena;
        mapping->worker = worker;
        HASH_ADD(hh, worker->mappings, id, sizeof(mapping->id), mapping);
        LIST_INSERT_HEAD(&arena->mappings, mapping, link);
        return 0;
}

void worker_drop_mapping(Mapping *mapping) {
        Worker *worker = mapping->worker;

        if (worker->state == WORKER_READY &&
            outbox_push_id(&worker->outbox, OUTBOX_ARENA_DROP, mapping->id) < 0)
                worker_kill(worker);
        LIST_REMOVE(mapping, link);
        HASH_DEL(worker->mappings, mapping);
        free(mapping);
}

int worker_make_arena(Worker *worker, Arena *arena) {
        int r;

        if (arena->asked_worker == worker->id)
                return 0;
        r = outbox_push_arena(&worker->outbox, OUTBOX_ARENA_MAKE, arena);
        if (r == 0)
                arena->asked_worker = worker->id;
        return r;
}

Instance *worker_instance(const Worker *worker, const Module *module) {
        Instance *instance;

        HASH_FIND(hh, worker->instances, &module->id, sizeof(module->id), instance);
        return instance;
}

Instance *worker_add_instance(Worker *worker, Module *module) {
        Instance *instance;

        instance = calloc(1, sizeof(*instance));
        if (!instance)
                return NULL;
        if (outbox_push_module(&worker->outbox, module) < 0) {
                free(instance);
                return NULL;
        }

        instance->id = module->id;
        instance->module = module;
        instance->worker = worker;
        TAILQ_INIT(&instance->parked);
        HASH_ADD(hh, worker->instances, id, sizeof(instance->id), instance);
        LIST_INSERT_HEAD(&module->instances, instance, link);
        return instance;
}

void worker_drop_instance(Instance *instance) {
        Worker *worker = instance->worker;

        assert(TAILQ_EMPTY(&instance->parked));
        if (worker->state == WORKER_READY && instance->state != INSTANCE_FAILED &&
            outbox_push_id(&worker->outbox, OUTBOX_MODULE_DROP, instance->id) < 0)
                worker_kill(worker);
        LIST_REMOVE(instance, link);
        HASH_DEL(worker->instances, instance);
        failure_free(instance->failure);
        free(instance);
}

void worker_proved(Worker *worker) {
        worker->is_proved = true;
        worker->slot->n_failures = 0;
}

bool worker_holds_variables(const Worker *worker) {
        const Instance *instance;

        for (instance = worker->instances; instance; instance = instance->hh.next)
                if (instance->is_used && instance->module->session)
                        return true;
        return false;
}

bool worker_is_loading(const Worker *worker) {
        const Instance *instance;

        if (!TAILQ_EMPTY(&worker->slot->making))
                return true;
        for (instance = worker->instances; instance; instance = instance->hh.next)
                if (instance->state == INSTANCE_ADDING)
                        return true;
        return false;
}

const char *worker_state_name(const Worker *worker) {
        switch (worker->state) {
                case WORKER_STARTING:
                        return "starting";
                case WORKER_READY:
                        if (worker->waiting)
                                return "draining";
                        return worker->n_inflight ? "busy" : "idle";
                case WORKER_STOPPING:
                case WORKER_LOST:
                        break;
        }
        return "stopping";
}
