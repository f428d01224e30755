/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker was given: jobs, and the arenas and modules that they need.
 */

#include "worker.h"

#include <assert.h>

#include "jobs.h"
#include "loop.h"

/* ---- jobs ------------------------------------------------------------------ */

static int worker_give_arena(Worker *worker, Arena *arena) {
        Mapping *mapping = LIST_FIRST(&arena->mappings);
        int r;

        /* As a rule it is in one worker alone. */
        if (mapping && mapping->worker == worker)
                return 0;
        HASH_FIND(hh, worker->mappings, &arena->id, sizeof(arena->id), mapping);
        if (mapping)
                return 0;

        r = outbox_push_arena(&worker->outbox, TO_WORKER_ARENA_ADD, arena);
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
        LedgerSent sent = {.is_sent = true, .retries = job->retries};
        LedgerOwner owner;
        int r;

        r = worker_give_arenas(worker, job);
        if (r < 0)
                return r;

        owner = job_owner(job);
        job->record =
                ledger_job_sent(worker->supervisor->engine.ledger, job->record, &owner, &sent);
        outbox_push_job(&worker->outbox, job);
        worker_enter(worker, job);
        return 0;
}

void worker_enter(Worker *worker, Job *job) {
        TAILQ_INSERT_TAIL(&worker->inflight, job, link);
        worker->n_inflight++;
        if (job->is_long)
                worker->n_long++;
        else
                worker->short_ns += job->expected_ns;
        job->is_bounding = true;
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
                worker->idle_ns = engine_now(&worker->supervisor->engine);
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
        if (!mapping->hh.tbl) {
                free(mapping);
                return -ENOMEM;
        }
        LIST_INSERT_HEAD(&arena->mappings, mapping, link);
        return 0;
}

void worker_drop_mapping(Mapping *mapping) {
        Worker *worker = mapping->worker;

        if (worker_is_open(worker) &&
            outbox_push_id(&worker->outbox, TO_WORKER_ARENA_DROP, mapping->id) < 0)
                worker_kill(worker);
        LIST_REMOVE(mapping, link);
        HASH_DEL(worker->mappings, mapping);
        free(mapping);
}

int worker_make_arena(Worker *worker, Arena *arena) {
        int r;

        if (arena->asked_worker == worker->id)
                return 0;
        r = outbox_push_arena(&worker->outbox, TO_WORKER_ARENA_MAKE, arena);
        if (r == 0)
                arena->asked_worker = worker->id;
        return r;
}

Instance *worker_instance(const Worker *worker, const Module *module) {
        Instance *instance = LIST_FIRST(&module->instances); /* the only one as a rule */

        if (instance && instance->worker == worker)
                return instance;
        HASH_FIND(hh, worker->instances, &module->id, sizeof(module->id), instance);
        return instance;
}

static Instance *worker_know_instance(Worker *worker, Module *module) {
        Instance *instance;

        instance = calloc(1, sizeof(*instance));
        if (!instance)
                return NULL;

        instance->id = module->id;
        instance->module = module;
        instance->worker = worker;
        TAILQ_INIT(&instance->parked);
        HASH_ADD(hh, worker->instances, id, sizeof(instance->id), instance);
        if (!instance->hh.tbl) {
                free(instance);
                return NULL;
        }
        LIST_INSERT_HEAD(&module->instances, instance, link);
        return instance;
}

Instance *worker_add_instance(Worker *worker, Module *module) {
        Instance *instance = worker_know_instance(worker, module);

        if (!instance)
                return NULL;
        if (outbox_push_module(&worker->outbox, module) == 0)
                return instance;

        instance->state = INSTANCE_FAILED; /* nothing of it is there to drop */
        worker_drop_instance(instance);
        return NULL;
}

void worker_drop_instance(Instance *instance) {
        Worker *worker = instance->worker;

        assert(TAILQ_EMPTY(&instance->parked));
        if (worker_is_open(worker) && instance->state != INSTANCE_FAILED &&
            outbox_push_id(&worker->outbox, TO_WORKER_MODULE_DROP, instance->id) < 0)
                worker_kill(worker);
        LIST_REMOVE(instance, link);
        HASH_DEL(worker->instances, instance);
        free(instance);
}

void worker_proved(Worker *worker) {
        worker->is_proved = true;
        worker->slot->n_failures = 0;
}

bool worker_holds_variables(const Worker *worker) {
        const Instance *instance;

        for (instance = worker->instances; instance; instance = instance->hh.next)
                if (instance->is_used && instance->module->submitter)
                        return true;
        return false;
}

/* A module or an arena was asked for and is not there yet. */
static bool worker_is_loading(const Worker *worker) {
        const Instance *instance;

        if (!TAILQ_EMPTY(&worker->slot->making))
                return true;
        for (instance = worker->instances; instance; instance = instance->hh.next)
                if (instance->state == INSTANCE_ADDING)
                        return true;
        return false;
}

bool worker_is_spare(const Worker *worker) {
        return worker->state == WORKER_READY && !worker->n_inflight && !worker_is_loading(worker) &&
               !worker_holds_variables(worker);
}
