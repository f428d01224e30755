/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WORKER_H
#define GPUQ_SUPERVISOR_WORKER_H

/*
 * Worker
 *
 * One worker process as seen from here: its channel, what it has been given, what
 * it has in flight. What it says is checked like a client's word; one that breaks
 * the rules is killed. Its end is told once, to recovery and to its slot.
 *
 *     STARTING ----------> READY --> STOPPING --> DYING --> LOST --> freed, when the
 *         |                  |                     |                 keeper tells its exit
 *         +------------------+---------------------+
 *
 * STOPPING: asked to, still to say what was in flight. DYING: has said it; judged
 * when its process has ended, for until then its kernels may write where the next
 * one's shall. LOST: judged. The worker of a probe has no slot and tells the devices.
 *
 * Workers end with their supervisor: the keeper kills them, and lets the next one begin
 * once they have ended.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "proto/gpuq.pb-c.h"
#include "jobs.h"
#include "policy.h"
#include "base.h"
#include "outbox.h"
#include "pool.h"
#include "util/channel.h"
#include "util/list.h"
#include "util/table.h"
#include "worker/protocol.h"

#define WORKER_STOP_MS 200u /* from Stop to SIGKILL */
#define WORKER_START_MS                                                                            \
        60000u /* a context may take long on a machine with many GPUs, but not for ever */
#define WORKER_DYING_MS  30000u /* a driver may hold a process for as long as it likes */
#define WORKER_CANCEL_MS 50u    /* a cancelled job may end by itself so long */
#define WORKER_READ_MAX  256u   /* messages read in one go */

typedef struct Slot Slot;

typedef enum WorkerState {
        WORKER_STARTING,
        WORKER_READY,
        WORKER_STOPPING,
        WORKER_DYING,
        WORKER_LOST,
        _WORKER_STATE_N,
} WorkerState;

struct Worker {
        Executor
                executor; /* what the scheduler knows of it; its slot is NULL for a probe, and once LOST */
        Workers *workers;
        Device *check; /* of a probe: at this device alone */
        uint32_t domain;
        int32_t pid;
        UT_hash_handle hh; /* workers->table */

        WorkerState state;
        FaultCause cause;    /* when it ends from now on */
        bool lacked_memory;  /* for its context: it never had one */
        uint64_t evicted_ns; /* when it was asked to end for another domain; 0: it was not */
        bool was_useless;    /* DYING: it died before it was of any use */
        Failure *verdict;    /* DYING: what it said of its end; may be NULL */
        char *last_output;   /* DYING: of its kernels; may be NULL */
        Channel *channel;
        Outbox outbox;
        uv_poll_t bell;
        uv_poll_t hangup;
        uv_timer_t timer; /* READY: a cancelled job's; STOPPING: until SIGKILL */
        unsigned n_handles;
        bool is_awake;  /* does not sleep on its bell: to be read again */
        bool is_proved; /* it did something useful */

        uint64_t heard_ms; /* its last word, by the loop's clock */

        uint64_t memory;                   /* bytes */
        Gpuq__V1__WorkerCounters counters; /* as it told last */
        uint64_t n_jobs;
};

/** worker_may_move() - is it a legal move? */
bool worker_may_move(WorkerState from, WorkerState to);
/** worker_set_state() - asserts the move, and tells the scheduler whether it takes jobs. */
void worker_set_state(Worker *worker, WorkerState next);
/** worker_is_open() - it takes what it is told. */
static inline bool worker_is_open(const Worker *worker) {
        return worker->state == WORKER_READY;
}
/** worker_is_gone() - it has said all: nothing is read of it, nothing new is sent to it. */
static inline bool worker_is_gone(const Worker *worker) {
        return worker->state >= WORKER_DYING;
}
/** worker_executor_ops - how the scheduler reaches workers. */
extern const ExecutorOps worker_executor_ops;
/** worker_of() - whose executor it is. */
static inline Worker *worker_of(Executor *executor) {
        return container_of(executor, Worker, executor);
}
/** worker_new() - have the keeper start one; @slot NULL: a probe, @check: at one device alone. Return: 0, or a negative errno. */
int worker_new(Workers *workers, Slot *slot, Device *check, Worker **ret_worker);
/** worker_tick() - now and then: does it not start, or was it killed and does not end? */
void worker_tick(Worker *worker, uint64_t now_ns);
/** worker_flush() - write what waits for it. */
void worker_flush(Worker *worker);
/** worker_sleep() - before the loop blocks. Return: false: it has more to read. */
bool worker_sleep(Worker *worker);
/** worker_wake() - the loop does not block for a while: it is read without its bell. */
void worker_wake(Worker *worker);
/** worker_read() - take what it said. */
void worker_read(Worker *worker);

/** worker_stop() - issue nothing more, tell, exit; killed when it takes too long. */
void worker_stop(Worker *worker);
/** worker_kill() - at once. */
void worker_kill(Worker *worker);
/** worker_stop_soon() - a job in it is to end: stop after a moment, unless that ends by itself. */
void worker_stop_soon(Worker *worker);
/** worker_overdue() - a job of it is far beyond its timeout and it did not say so: kill it. */
void worker_overdue(Worker *worker, Job *job);
/** worker_spawned() - the keeper started it. */
void worker_spawned(Worker *worker, int32_t pid);
/** worker_exited() - the keeper saw it end; frees it. @text: why it could not start, or "". */
void worker_exited(Worker *worker, int status, const char *text);
/** worker_close() - end of the program: forget it. */
void worker_close(Worker *worker);

/** worker_state_name() - for people. */
const char *worker_state_name(const Worker *worker);

/* for worker_message.c, which reads what it says */

/** worker_break() - it broke the rules: kill it, its jobs are judged as after a crash. */
void worker_break(Worker *worker, const char *why);
/** worker_ready() - its context is there. */
void worker_ready(Worker *worker);
/** worker_proved() - it did something useful. */
void worker_proved(Worker *worker);
/** worker_late() - a job ran past its timeout: it is to end, and the worker stops for it. */
void worker_late(Worker *worker, Job *job);
/** worker_dying() - it has nothing more to say; worker_lost() with this once its process has ended. */
void worker_dying(Worker *worker, FaultCause cause, const Failure *failure, const char *output);
/** worker_lost() - judge its jobs, start the next. @failure, @output: what it said of it, may be NULL. */
void worker_lost(Worker *worker, FaultCause cause, const Failure *failure, const char *output);
/** worker_message() - one message. Return: 0, or what is wrong with it, a constant. */
const char *worker_message(Worker *worker, const uint8_t *data, size_t n_data);

#endif
