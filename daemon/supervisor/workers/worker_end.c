/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker ends: asked to, killed, or by itself. Its jobs are judged once
 * (recovery.h), what it had is forgotten, and its slot is told.
 */

#include "worker.h"

#include <string.h>
#include <sys/wait.h>

#include "jobs.h"
#include "devices.h"
#include "base.h"
#include "util/list.h"
#include "eviction.h"
#include "loop.h"
#include "util/log.h"

static void worker_on_timer(uv_timer_t *timer);

/* The fault that it told was one of a job's: it named some that ran. */
static bool worker_has_suspects(const Worker *worker, FaultCause cause) {
        const Job *job;

        if (cause != FAULT_DEVICE)
                return false;
        TAILQ_FOREACH (job, &worker->inflight, link)
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

/* What the kernel's log says of it. Return: the caller's, NULL: nothing. */
static Failure *worker_explain(const Worker *worker, FaultCause *cause, const Failure *failure) {
        if (*cause == FAULT_STOPPED || !worker->slot)
                return NULL;
        xid_log_read(worker->supervisor);
        return xid_log_explain(worker, cause, failure);
}

/* One that dies before it was of any use counts as one that did not start. */
static bool worker_is_useless(const Worker *worker) {
        if (worker->state == WORKER_DYING)
                return worker->was_useless;
        return worker->state == WORKER_STARTING ||
               (worker->state == WORKER_READY && !worker->is_proved &&
                TAILQ_EMPTY(&worker->inflight));
}

/*
 * The kernels that it had on the device run on until its process has ended, and its
 * results may still be on their way into arenas: nobody is told an end, and nothing
 * runs again, before. Not so of a device that failed: a process may never get rid of it.
 */
void worker_dying(Worker *worker, FaultCause cause, const Failure *failure, const char *output) {
        if (worker_is_gone(worker))
                return;
        if (cause == FAULT_HARDWARE || !worker->slot) {
                worker_lost(worker, cause, failure, output);
                return;
        }

        worker->was_useless = worker_is_useless(worker);
        worker->cause = worker->state == WORKER_STOPPING ? FAULT_STOPPED : cause;
        worker->verdict = failure_copy(failure);
        worker->last_output = output ? strdup(output) : NULL;
        worker->state = WORKER_DYING;
        worker->idle_ns = engine_now(&worker->supervisor->engine);
        outbox_clear(&worker->outbox);
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_STOP_MS, 0);
}

void worker_lost(Worker *worker, FaultCause cause, const Failure *failure, const char *output) {
        _cleanup_(failure_freep) Failure *explained = NULL;
        bool was_useless = worker_is_useless(worker);
        Slot *slot = worker->slot;

        if (worker->state == WORKER_LOST)
                return;

        if (worker->state == WORKER_STOPPING)
                cause = FAULT_STOPPED;
        worker->lacked_memory =
                worker->state == WORKER_STARTING && failure && failure->code == FAILURE_MEMORY;
        explained = worker_explain(worker, &cause, failure);
        worker->cause = cause;
        worker->state = WORKER_LOST;
        worker->slot = NULL;
        worker->has_suspects = worker_has_suspects(worker, worker->cause);
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_STOP_MS, 0); /* if it stays */
        outbox_clear(&worker->outbox);
        recovery_run(worker, explained ? explained : failure, output);
        worker_forget_instances(worker);
        worker_forget_mappings(worker);
        if (worker->cause == FAULT_HARDWARE)
                drain_sign(worker->device, was_useless ? HEALTH_NO_START : HEALTH_FAULT,
                           worker->domain, failure ? failure->text : "no word");
        if (worker->look)
                probe_look_failed(worker, failure ? failure->text : "it said nothing");
        else if (!slot)
                probe_failed(worker->supervisor, failure ? failure->text : "it said nothing");
        else if (slot->worker != worker) /* another is in its place */
                return;
        else if (worker->lacked_memory)
                eviction_begin(slot, failure->text);
        else if (was_useless)
                slot_worker_failed(slot, failure ? failure->text : "the worker died as it started");
        else
                slot_worker_lost(slot, fault_has_culprit(worker->cause));
}

void worker_break(Worker *worker, const char *why) {
        log_warning("worker %d broke the rules, killed: %s", worker->pid, why);
        keeper_link_kill(worker->supervisor->engine.keeper, worker->id);
        worker_dying(worker, FAULT_CRASH, NULL, NULL);
}

/* What was not written to it yet did not reach it: those jobs go back untouched. */
static void worker_recall(Worker *worker) {
        Job *job, *next;

        TAILQ_FOREACH_SAFE (job, &worker->inflight, link, next)
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
        if (outbox_push_id(&worker->outbox, TO_WORKER_STOP, 0) < 0) {
                worker_kill(worker);
                return;
        }
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_STOP_MS, 0);
}

void worker_kill(Worker *worker) {
        if (worker_is_open(worker))
                worker->state = WORKER_STOPPING;
        keeper_link_kill(worker->supervisor->engine.keeper, worker->id);
}

void worker_stop_soon(Worker *worker) {
        if (worker->state != WORKER_READY || uv_is_active((uv_handle_t *)&worker->timer))
                return;
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_CANCEL_MS, 0);
}

/* One that waits behind others in the worker is no reason to stop those. */
static bool worker_has_doomed(const Worker *worker) {
        const Job *job;

        TAILQ_FOREACH (job, &worker->inflight, link)
                if (job->doom && !dependency_is_behind(job))
                        return true;
        return false;
}

static void worker_on_timer(uv_timer_t *timer) {
        Worker *worker = timer->data;

        if (worker->state >= WORKER_STOPPING)
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

void worker_tick(Worker *worker, uint64_t now_ns) {
        if (worker->state != WORKER_DYING ||
            now_ns - worker->idle_ns <= WORKER_DYING_MS * 1000000ull)
                return;
        log_warning("worker %d was killed and does not end: the driver holds it", worker->pid);
        worker_lost(worker, worker->cause, worker->verdict, worker->last_output);
}

void worker_exited(Worker *worker, int status, const char *text) {
        _cleanup_(failure_freep) Failure *failure = NULL;

        /* Its last words first, all of them: the ring is finite and nobody writes it any more. */
        for (unsigned i = 0; i < CHANNEL_CAPACITY / WORKER_READ_MAX / 8; ++i)
                worker_read(worker);

        failure = worker_describe_exit(status, text);
        if (worker->state == WORKER_DYING)
                worker_lost(worker, worker->cause, worker->verdict, worker->last_output);
        worker_lost(worker, FAULT_CRASH, failure, NULL);
        if (worker->device)
                log_info("worker %d ended: %s", worker->pid, failure->text);
        if (worker->device && !worker->lacked_memory)
                eviction_freed(worker->device);
        worker_close(worker);
}
