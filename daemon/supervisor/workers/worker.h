/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WORKER_H
#define GPUQ_SUPERVISOR_WORKER_H

/*
 * Worker
 *
 * The supervisor's view of one worker process: its channel, what it was given, and what is in
 * flight in it. Its messages are checked like a client's, and a worker that breaks the protocol is
 * killed. Its end is reported once, to recovery and to its slot.
 *
 *     STARTING ----------> READY --> STOPPING --> DYING --> LOST --> freed, when the
 *      |    ^ |              |                     |                 keeper reports its exit
 *      v    | +--------------+---------------------+
 *      SPARE
 *
 * SPARE: it has a context and no user (spares.h). It is STARTING again while it becomes a user's.
 * STOPPING: it was asked to stop and still reports what was in flight. DYING: it has reported that.
 * Its jobs are settled when its process has ended, because until then its kernels may write where
 * the next worker's kernels write. LOST: its jobs are settled. A worker whose device failed goes to
 * LOST without DYING, because its process may never end. So do a spare and a probe, which have no
 * jobs and no slot; a probe reports to the device monitor.
 *
 * Workers end with their supervisor: the keeper kills them, and starts the next supervisor after
 * they have ended.
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
        60000u /* limit of the start: a context may take long on a machine with many GPUs */
#define WORKER_DYING_MS  30000u /* a driver may hold a process for as long as it likes */
#define WORKER_CANCEL_MS 50u    /* for a cancelled job to end by itself */

/* What is read of one worker in a turn; a short message counts as WORKER_TURN_LEAST. A longer message is
 * read whole and paid for in the next turns. */
#define WORKER_TURN_BYTES (256 << 10)
#define WORKER_TURN_LEAST 1024

/* Messages that a worker may send: some, more for what it was given, and a few as time goes by. */
#define WORKER_CREDIT_START 1000
#define WORKER_CREDIT_GIVEN 4
#define WORKER_CREDIT_TICK  10
#define WORKER_CREDIT_MAX   (1 << 20)

typedef struct Slot Slot;

typedef enum WorkerState {
        WORKER_STARTING,
        WORKER_SPARE,
        WORKER_READY,
        WORKER_STOPPING,
        WORKER_DYING,
        WORKER_LOST,
        _WORKER_STATE_N,
} WorkerState;

/* It was told that a module which it loads is not wanted any more. Unless it hangs in the load, it reads
 * that soon. */
typedef struct WorkerDrop {
        bool is_awaited;
        bool is_written;
        uint32_t position; /* of the ring behind that message, once it is written */
        unsigned n_ticks;  /* that found it unread */
} WorkerDrop;

struct Worker {
        Executor
                executor; /* the scheduler's view; its slot is NULL for a spare, a probe, and once LOST */
        Workers *workers;
        Device *check; /* of a probe: the one device it checks */
        uint32_t domain;
        Sms sms;           /* that its kernels may use, since its start */
        UT_hash_handle hh; /* workers->table */

        WorkerState state;
        bool is_spare;       /* the keeper was not told yet whose it is */
        FaultCause cause;    /* the cause if it ends from now on */
        bool lacked_memory;  /* no memory for its context: it never had one */
        uint64_t evicted_ns; /* when it was asked to end for another domain; 0: it was not */
        bool was_useless;    /* DYING: it died before it did anything useful */
        bool was_killed;     /* by SIGKILL */
        bool is_unwanted;    /* gpuqd kills it */
        Failure *verdict;    /* DYING: its report of the end; may be NULL */
        char *last_output;   /* DYING: its kernels' output; may be NULL */
        Channel *channel;
        Outbox outbox;
        uv_poll_t bell;
        uv_poll_t hangup;
        uv_timer_t timer; /* READY: of a cancelled job; STOPPING: until SIGKILL */
        unsigned n_handles;
        bool is_awake;  /* the loop reads it without waiting for its bell */
        bool is_proved; /* it has done something useful */

        WorkerDrop drop;
        uint64_t heard_ms; /* its latest message, by the loop's clock */
        int budget;        /* bytes to read of it in this turn; below 0: from the next ones */
        int credit;        /* messages that it may still send */

        uint64_t memory;                   /* bytes */
        Gpuq__V1__WorkerCounters counters; /* as reported last */
        uint64_t n_jobs;
};

/** worker_may_move() - whether the move is legal. */
bool worker_may_move(WorkerState from, WorkerState to);
/** worker_set_state() - assert that the move is legal, and tell the scheduler whether the worker takes jobs. */
void worker_set_state(Worker *worker, WorkerState next);
/** worker_is_open() - it accepts messages. */
static inline bool worker_is_open(const Worker *worker) {
        return worker->state == WORKER_READY;
}
/** worker_is_gone() - its last message was read: nothing is sent to it or read from it any more. */
static inline bool worker_is_gone(const Worker *worker) {
        return worker->state >= WORKER_DYING;
}
/** worker_executor_ops - the operations that the scheduler calls. */
extern const ExecutorOps worker_executor_ops;
/** worker_of() - the worker of an executor. */
static inline Worker *worker_of(Executor *executor) {
        return container_of(executor, Worker, executor);
}
/** worker_is_probe() - it checks devices and runs no jobs. */
static inline bool worker_is_probe(const Worker *worker) {
        return !worker->executor.device;
}
/** worker_new() - have the keeper start one for a slot. Return: 0, or a negative errno. */
int worker_new(Workers *workers, Slot *slot, Worker **ret_worker);
/** worker_new_probe() - of @check alone, or of all devices if that is NULL. Return: 0, or a negative errno. */
int worker_new_probe(Workers *workers, Device *check, Worker **ret_worker);
/** worker_new_spare() - that has no user yet. Return: 0, or a negative errno. */
int worker_new_spare(Workers *workers, Device *device, Worker **ret_worker);
/** worker_adopt() - a spare becomes the worker of a slot, as soon as it has its context. */
void worker_adopt(Worker *worker, Slot *slot);
/** worker_tick() - called periodically: kills a worker that does not start, or that does not end. */
void worker_tick(Worker *worker, uint64_t now_ns);
/** worker_flush() - write its queued messages. */
void worker_flush(Worker *worker);
/** worker_sleep() - call it before the loop blocks. Return: false: the worker has more to read. */
bool worker_sleep(Worker *worker);
/** worker_wake() - the loop does not block for a while and reads the worker without its bell. */
void worker_wake(Worker *worker);
/** worker_begin_turn() - its share of one more turn. */
void worker_begin_turn(Worker *worker);
/** worker_earn() - called periodically: it may send a few messages more. */
void worker_earn(Worker *worker);
/** worker_gave() - it was given a job, an arena, a module, or an end of one, and may answer. */
void worker_gave(Worker *worker);
/** worker_read() - read its messages, up to its share of this turn. */
void worker_read(Worker *worker);
/** worker_read_rest() - its process has ended: read all that it left. */
void worker_read_rest(Worker *worker);

/** worker_stop() - ask it to start nothing more, report, and exit; it is killed when it takes too long. */
void worker_stop(Worker *worker);
/** worker_kill() - kill it at once. */
void worker_kill(Worker *worker);
/** worker_stop_soon() - a job in it must end: stop the worker after a moment, unless that job ends by itself. */
void worker_stop_soon(Worker *worker);
/** worker_overdue() - one of its jobs is far beyond its timeout and the worker did not report it: kill the worker. */
void worker_overdue(Worker *worker, Job *job);
/** worker_spawned() - the keeper started its process. */
void worker_spawned(Worker *worker, int32_t pid);
/** worker_exited() - the keeper saw its process end; frees the worker. @text: why it could not start, or "". */
void worker_exited(Worker *worker, int status, const char *text);
/** worker_close() - at the end of the program: free it. */
void worker_close(Worker *worker);

/** worker_state_name() - for display. */
const char *worker_state_name(const Worker *worker);

/* for worker_message.c, which reads its messages */

/** worker_break() - it broke the protocol: kill it, and settle its jobs as after a crash. */
void worker_break(Worker *worker, const char *why);
/** worker_ready() - its context exists, and its slot waits for it. */
void worker_ready(Worker *worker);
/** worker_proved() - it has done something useful. */
void worker_proved(Worker *worker);
/** worker_late() - a job exceeded its timeout: the job must end, and the worker stops for it. */
void worker_late(Worker *worker, Job *job);
/** worker_dying() - it sends nothing more; its process's end calls worker_lost() with these. */
void worker_dying(Worker *worker, FaultCause cause, const Failure *failure, const char *output);
/** worker_lost() - settle its jobs, and start the next worker. @failure, @output: from its report, may be NULL. */
void worker_lost(Worker *worker, FaultCause cause, const Failure *failure, const char *output);
/** worker_message() - handle one message. Return: 0, or the protocol error, a constant. */
const char *worker_message(Worker *worker, const uint8_t *data, size_t n_data);

#endif
