/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ExecutorOps: the operations that the scheduler calls.
 */

#include "eviction.h"
#include "report.h"
#include "spares.h"
#include "worker.h"

static int worker_ops_start(Workers *workers, Slot *slot, bool is_express,
                            Executor **ret_executor) {
        Worker *worker;
        int r;

        worker = spares_take(workers, slot);
        r = worker ? 0 : worker_new(workers, slot, &worker);
        if (r < 0)
                return r;
        worker->executor.is_express = is_express;
        *ret_executor = &worker->executor;
        return 0;
}

static int worker_ops_probe(Workers *workers, Device *check) {
        Worker *worker;

        return worker_new_probe(workers, check, &worker);
}

static void worker_ops_make_room(Slot *slot) {
        eviction_make_room(slot);
}

static void worker_ops_stop_soon(Executor *executor) {
        worker_stop_soon(worker_of(executor));
}

static void worker_ops_push_job(Executor *executor, Job *job) {
        worker_gave(worker_of(executor));
        outbox_push_job(&worker_of(executor)->outbox, job);
}

static bool worker_ops_pull_job(Executor *executor, Job *job) {
        return outbox_remove_job(&worker_of(executor)->outbox, job);
}

static int worker_ops_push_arena(Executor *executor, Arena *arena, bool make) {
        worker_gave(worker_of(executor));
        return outbox_push_arena(&worker_of(executor)->outbox,
                                 make ? TO_WORKER_ARENA_MAKE : TO_WORKER_ARENA_ADD, arena);
}

static int worker_ops_push_module(Executor *executor, Module *module) {
        worker_gave(worker_of(executor));
        return outbox_push_module(&worker_of(executor)->outbox, module);
}

static void worker_drop(Worker *worker, WorkerMessageKind kind, uint64_t id) {
        if (worker_is_open(worker) && outbox_push_id(&worker->outbox, kind, id) < 0)
                worker_kill(worker);
}

static void worker_ops_drop_arena(Executor *executor, uint64_t id) {
        worker_drop(worker_of(executor), TO_WORKER_ARENA_DROP, id);
}

static void worker_ops_drop_module(Executor *executor, uint64_t id, bool is_loading) {
        Worker *worker = worker_of(executor);

        worker_drop(worker, TO_WORKER_MODULE_DROP, id);
        if (!is_loading || worker->drop.is_awaited)
                return;
        worker->drop = (WorkerDrop){.is_awaited = true};
}

static int worker_ops_lend(Executor *executor, Lease *lease) {
        static const WorkerMessageKind parts[] = {
                TO_WORKER_DIRECT_RING,
                TO_WORKER_DIRECT_BELL,
                TO_WORKER_LEND,
        };
        Worker *worker = worker_of(executor);
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); ++i) {
                worker_gave(worker);
                r = outbox_push_lease(&worker->outbox, parts[i], lease);
        }
        if (r < 0) { /* it may have parts of it */
                outbox_clear(&worker->outbox);
                worker_kill(worker);
        }
        return r;
}

static void worker_ops_recall(Executor *executor, const Lease *lease) {
        worker_drop(worker_of(executor), TO_WORKER_RECALL, lease->submitter->id);
}

const ExecutorOps worker_executor_ops = {
        .start = worker_ops_start,
        .probe = worker_ops_probe,
        .make_room = worker_ops_make_room,
        .report = report_workers,
        .stop_soon = worker_ops_stop_soon,
        .push_job = worker_ops_push_job,
        .pull_job = worker_ops_pull_job,
        .push_arena = worker_ops_push_arena,
        .push_module = worker_ops_push_module,
        .drop_arena = worker_ops_drop_arena,
        .drop_module = worker_ops_drop_module,
        .lend = worker_ops_lend,
        .recall = worker_ops_recall,
};
