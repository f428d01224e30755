/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker ends: on request, by a kill, or by itself. Its jobs are settled once (recovery.h),
 * the record of what it was given is cleared, and its slot is notified.
 */

#include "worker.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "jobs.h"
#include "base.h"
#include "util/list.h"
#include "eviction.h"
#include "spares.h"
#include "util/log.h"

static void worker_on_timer(uv_timer_t *timer);

/* What the kernel's log says about the worker's death. Return: the caller's; NULL: nothing. */
static Failure *worker_explain(const Worker *worker, FaultCause cause, const Failure *failure,
                               bool *ret_is_hardware) {
        const Executor *executor = &worker->executor;

        if (cause == FAULT_STOPPED || !executor->slot)
                return NULL;
        return executor->engine->device_ops->explain(executor->engine->monitor, executor->device,
                                                     worker->executor.pid, failure,
                                                     ret_is_hardware);
}

/* A worker that dies before it did anything useful counts as one that did not start. */
static bool worker_is_useless(const Worker *worker) {
        if (worker->state == WORKER_DYING)
                return worker->was_useless;
        return worker->state == WORKER_STARTING ||
               (worker->state == WORKER_READY && !worker->is_proved &&
                TAILQ_EMPTY(&worker->executor.inflight));
}

/*
 * The worker's kernels run on the device until its process has ended, and results may still be on
 * their way into arenas. Until then no end is reported and no job is retried. A failed device is
 * different: its process may never end.
 */
void worker_dying(Worker *worker, FaultCause cause, const Failure *failure, const char *output) {
        if (worker_is_gone(worker))
                return;
        if (cause == FAULT_HARDWARE || !worker->executor.slot) {
                worker_lost(worker, cause, failure, output);
                return;
        }

        worker->was_useless = worker_is_useless(worker);
        worker->cause = worker->state == WORKER_STOPPING ? FAULT_STOPPED : cause;
        worker->verdict = failure_copy(failure);
        worker->last_output = output ? strdup(output) : NULL;
        worker_set_state(worker, WORKER_DYING);
        worker->executor.idle_ns = engine_now(worker->executor.engine);
        outbox_clear(&worker->outbox);
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_STOP_MS, 0);
}

/* Its slot starts the next worker, unless another one is in this worker's place already. @by_user: its
 * users brought its end about, or may have. */
static void worker_release_slot(Worker *worker, Slot *slot, const Failure *failure,
                                bool was_useless, bool by_user) {
        if (slot->express == &worker->executor) {
                provision_express_lost(slot, was_useless, by_user);
                return;
        }
        if (slot->executor != &worker->executor)
                return;

        if (worker->lacked_memory)
                eviction_begin(slot, failure->text);
        else if (was_useless)
                provision_worker_failed(slot, failure ? failure->text
                                                      : "the worker process died while it started");
        else
                provision_worker_lost(slot, by_user);
}

/* Of a hardware fault the kernel's log is the witness; a worker's word alone is a claim. */
static void worker_blame_device(Worker *worker, Slot *slot, const Failure *failure,
                                bool is_confirmed) {
        if (worker->cause != FAULT_HARDWARE)
                return;
        if (is_confirmed)
                worker->executor.engine->device_ops->fault(worker->executor.device);
        else if (slot && slot->executor == &worker->executor)
                (void)claim_make(slot, CLAIM_BROKEN, failure ? failure->text : "unknown reason");
}

static void worker_report_probe(const Worker *worker, const Failure *failure) {
        const Engine *engine = worker->executor.engine;

        /* The end of a worker that was killed shows nothing about the device. */
        engine->device_ops->probe_failed(engine->monitor, worker->check,
                                         worker->executor.pid && !worker->was_killed,
                                         failure ? failure->text : "it ended without a message");
}

/* What happens to its jobs, arenas and modules. */
static void worker_judge_jobs(Worker *worker, const Failure *failure, const char *output) {
        FaultCause cause = worker->cause;
        /* If the worker reported a fault and named jobs that had begun, one of these jobs
         * caused it. */
        bool blames_modules = fault_has_culprit(cause) &&
                              !(cause == FAULT_DEVICE && inflight_has_begun(&worker->executor));

        leases_lost(&worker->executor);
        recovery_run(&worker->executor, cause, failure, output);
        provision_forget(&worker->executor, blames_modules);
}

void worker_lost(Worker *worker, FaultCause cause, const Failure *failure, const char *output) {
        bool was_useless = worker_is_useless(worker), is_confirmed = false, by_user;
        _cleanup_(failure_freep) Failure *explained = NULL;
        Slot *slot = worker->executor.slot;

        if (worker->state == WORKER_LOST)
                return;

        if (worker->state == WORKER_STOPPING)
                cause = FAULT_STOPPED;
        worker->lacked_memory =
                worker->state == WORKER_STARTING && failure && failure->code == FAILURE_MEMORY;
        explained = worker_explain(worker, cause, failure, &is_confirmed);
        if (is_confirmed)
                cause = FAULT_HARDWARE;
        by_user = fault_has_culprit(cause) || (cause == FAULT_HARDWARE && !is_confirmed) ||
                  inflight_waits_for_stop(&worker->executor);
        worker->cause = cause;
        worker_set_state(worker, WORKER_LOST);
        worker->executor.slot = NULL;
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_STOP_MS,
                       0); /* in case it does not end */
        outbox_clear(&worker->outbox);

        worker_judge_jobs(worker, explained ? explained : failure, output);
        worker_blame_device(worker, slot, failure, is_confirmed);
        if (slot)
                worker_release_slot(worker, slot, failure, was_useless, by_user);
        else if (worker_is_probe(worker))
                worker_report_probe(worker, failure);
        else
                spares_lost(worker, failure);
}

void worker_break(Worker *worker, const char *why) {
        log_warning("worker %d killed: protocol error: %s", worker->executor.pid, why);
        keeper_link_kill(worker->executor.engine->keeper, worker->executor.id);
        worker_dying(worker, FAULT_CRASH, NULL, NULL);
}

void worker_stop(Worker *worker) {
        if (worker->state >= WORKER_STOPPING)
                return;
        if (worker->state < WORKER_READY) { /* it has nothing to report */
                worker_kill(worker);
                return;
        }

        worker_set_state(worker, WORKER_STOPPING);
        place_recall(&worker->executor); /* messages not written yet did not reach it */
        outbox_clear(&worker->outbox);
        if (outbox_push_id(&worker->outbox, TO_WORKER_STOP, 0) < 0) {
                worker_kill(worker);
                return;
        }
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_STOP_MS, 0);
}

void worker_kill(Worker *worker) {
        if (worker_is_open(worker))
                worker_set_state(worker, WORKER_STOPPING);
        if (worker->state == WORKER_STOPPING && !worker->is_unwanted)
                worker->executor.idle_ns = engine_now(worker->executor.engine);
        worker->is_unwanted = true;
        keeper_link_kill(worker->executor.engine->keeper, worker->executor.id);
}

void worker_stop_soon(Worker *worker) {
        if (worker->state != WORKER_READY || uv_is_active((uv_handle_t *)&worker->timer))
                return;
        uv_timer_start(&worker->timer, worker_on_timer, WORKER_CANCEL_MS, 0);
}

static void worker_on_timer(uv_timer_t *timer) {
        Worker *worker = timer->data;

        if (worker->state >= WORKER_STOPPING)
                worker_kill(worker);
        else if (worker->state == WORKER_READY && inflight_waits_for_stop(&worker->executor))
                worker_stop(worker);
}

void worker_late(Worker *worker, Job *job) {
        if (job_time_out(job))
                worker_stop(worker);
}

void worker_overdue(Worker *worker, Job *job) {
        if (worker->state != WORKER_READY)
                return;
        log_warning("worker %d killed: it did not answer in time", worker->executor.pid);
        job_time_out(job);
        worker_kill(worker);
}

static Failure *worker_describe_exit(int status, const char *text) {
        if (*text)
                return failure_new(FAILURE_INTERNAL, "%s", text);
        if (WIFSIGNALED(status))
                return failure_new(FAILURE_INTERNAL, "the worker process was killed by signal %d",
                                   WTERMSIG(status));
        return failure_new(FAILURE_INTERNAL, "the worker process exited with status %d",
                           WEXITSTATUS(status));
}

static void worker_check_start(Worker *worker, uint64_t now_ns) {
        Executor *executor = &worker->executor;
        _cleanup_(failure_freep) Failure *late = NULL;

        if (now_ns - executor->idle_ns <= WORKER_START_MS * 1000000ull)
                return;

        executor->idle_ns = now_ns; /* once is enough */
        late = failure_new(FAILURE_NO_DEVICE, "the GPU driver did not answer within %u s",
                           WORKER_START_MS / 1000);
        worker_kill(worker);
        if (executor->is_express) /* the main worker shows whether the device is to blame */
                return;
        if (executor->slot)
                (void)claim_make(executor->slot, CLAIM_BROKEN, late->text);
        else /* a driver that hangs may keep it from ending, too */
                worker_lost(worker, FAULT_CRASH, late, NULL);
}

static void worker_check_death(Worker *worker, uint64_t now_ns) {
        if (now_ns - worker->executor.idle_ns <= WORKER_DYING_MS * 1000000ull)
                return;
        log_warning("worker %d was killed but has not ended: it hangs in the GPU driver",
                    worker->executor.pid);
        worker_lost(worker, worker->cause, worker->verdict, worker->last_output);
}

void worker_tick(Worker *worker, uint64_t now_ns) {
        worker_earn(worker);
        if (worker->state == WORKER_STARTING)
                worker_check_start(worker, now_ns);
        else if (worker->state == WORKER_DYING ||
                 (worker->state == WORKER_STOPPING && worker->is_unwanted))
                worker_check_death(worker, now_ns);
}

void worker_exited(Worker *worker, int status, const char *text) {
        _cleanup_(failure_freep) Failure *failure = NULL;

        worker_read_rest(worker);
        failure = worker_describe_exit(status, text);
        worker->was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (worker->state == WORKER_DYING)
                worker_lost(worker, worker->cause, worker->verdict, worker->last_output);
        else
                worker_lost(worker, FAULT_CRASH, failure, NULL);
        if (worker->executor.device)
                log_info("worker %d ended: %s", worker->executor.pid,
                         worker->was_killed && worker->is_unwanted ? "gpuqd ended it"
                                                                   : failure->text);
        if (worker->executor.device && !worker->lacked_memory)
                eviction_freed(worker->executor.device);
        worker_close(worker);
}
