/* SPDX-License-Identifier: Apache-2.0 */
#include "executor.h"

#include <assert.h>
#include <string.h>

#include "arena.h"
#include "dependency.h"
#include "ending.h"
#include "engine.h"
#include "module.h"
#include "scheduler.h"
#include "slot.h"
#include "util/list.h"

#define EXECUTOR_OUTPUT_MAX (64u << 10) /* bytes of kernels' output kept for a job */

void executor_init(Executor *executor, Engine *engine, uint32_t id, Slot *slot) {
        executor->id = id;
        executor->engine = engine;
        executor->slot = slot;
        executor->device = slot ? slot->device : NULL;
        executor->idle_ns = engine_now(engine);
        TAILQ_INIT(&executor->inflight);
}

/* ---- jobs ------------------------------------------------------------------ */

static int executor_add_mapping(Executor *executor, Arena *arena) {
        Mapping *mapping;

        mapping = calloc(1, sizeof(*mapping));
        if (!mapping)
                return -ENOMEM;

        mapping->id = arena->id;
        mapping->arena = arena;
        mapping->executor = executor;
        HASH_ADD(hh, executor->mappings, id, sizeof(mapping->id), mapping);
        if (!mapping->hh.tbl) {
                free(mapping);
                return -ENOMEM;
        }
        LIST_INSERT_HEAD(&arena->mappings, mapping, link);
        return 0;
}

static int executor_give_arena(Executor *executor, Arena *arena) {
        Mapping *mapping = LIST_FIRST(&arena->mappings);
        int r;

        /* Most arenas are in one executor alone. */
        if (mapping && mapping->executor == executor)
                return 0;
        HASH_FIND(hh, executor->mappings, &arena->id, sizeof(arena->id), mapping);
        if (mapping)
                return 0;

        r = executor->engine->executor_ops->push_arena(executor, arena, false);
        if (r < 0)
                return r;
        return executor_add_mapping(executor, arena);
}

static int executor_give_arenas(Executor *executor, const Job *job) {
        Arena *last = NULL; /* most buffers of a job are in one arena */
        int r;

        for (size_t i = 0; i < job->n_buffers; ++i) {
                if (job->buffers[i].arena == last)
                        continue;
                last = job->buffers[i].arena;
                r = executor_give_arena(executor, last);
                if (r < 0)
                        return r;
        }
        return job->word && job->word != last ? executor_give_arena(executor, job->word) : 0;
}

int executor_run(Executor *executor, Job *job) {
        LedgerSent sent = {.is_sent = true, .retries = job->retries};
        LedgerOwner owner;
        int r;

        r = executor_give_arenas(executor, job);
        if (r < 0)
                return r;

        owner = job_owner(job);
        job->record = ledger_job_sent(executor->engine->ledger, job->record, &owner, &sent);
        executor->engine->executor_ops->push_job(executor, job);
        executor_enter(executor, job);
        return 0;
}

void executor_enter(Executor *executor, Job *job) {
        TAILQ_INSERT_TAIL(&executor->inflight, job, link);
        executor->n_inflight++;
        if (job->is_long) {
                executor->n_long++;
                return;
        }
        job->is_bounding = true;
        executor->short_ns += job->expected_ns;
}

void executor_unbound(Executor *executor, Job *job) {
        if (!job->is_bounding)
                return;
        job->is_bounding = false;
        executor->short_ns -= job->expected_ns;
}

void executor_remove(Executor *executor, Job *job) {
        executor->engine->executor_ops->pull_job(executor, job);
        TAILQ_REMOVE(&executor->inflight, job, link);
        executor->n_inflight--;
        if (job->is_long)
                executor->n_long--;
        else
                executor_unbound(executor, job);
        if (!executor->n_inflight)
                executor->idle_ns = engine_now(executor->engine);
}

void executor_recall(Executor *executor) {
        Job *job, *next;

        TAILQ_FOREACH_SAFE (job, &executor->inflight, link, next)
                if (!job->doom && executor->engine->executor_ops->pull_job(executor, job))
                        scheduler_return(job, job->is_alone);
}

/* Most jobs end in the order in which they were given. */
Job *executor_find_job(const Executor *executor, uint64_t id) {
        Job *job = TAILQ_FIRST(&executor->inflight);

        if (!job || job->id != id)
                job = engine_find_job(executor->engine, id);
        return job && job->executor == executor && !job->delivery.is_queued ? job : NULL;
}

/* What the job may have changed of its modules' variables lives in this executor alone. */
static void executor_note_variables(Executor *executor, const Job *job) {
        for (size_t i = 0; i < job->n_kernels; ++i) {
                Module *module = job->kernels[i].module;
                Instance *instance;

                if (!module->has_variables)
                        continue;
                module_note_use(module);
                instance = executor_find_instance(executor, module);
                if (instance)
                        instance->is_used = true;
        }
}

void executor_set_phase(Executor *executor, Job *job, FaultPhase phase) {
        job->phase = phase;
        if (phase != FAULT_QUEUED)
                executor_note_variables(executor, job);
}

void executor_ended(Executor *executor, Job *job, const ExecutorResult *result) {
        uint64_t elapsed_us = (engine_now(executor->engine) - job->started_ns) / 1000;

        job->ran_us = MIN(result->ran_us, elapsed_us);
        job->gpu_ns = job->timed ? result->gpu_ns : 0;
        if (*result->output)
                job_set_output(job, result->output, EXECUTOR_OUTPUT_MAX);
        executor_note_variables(executor, job);
        if (result->failure)
                ending_fail(job, result->failure);
        else
                ending_done(job);
}

/* ---- arenas ---------------------------------------------------------------- */

int executor_make_arena(Executor *executor, Arena *arena) {
        int r;

        if (arena->asked_worker == executor->id)
                return 0;
        r = executor->engine->executor_ops->push_arena(executor, arena, true);
        if (r == 0)
                arena->asked_worker = executor->id;
        return r;
}

int executor_made_arena(Executor *executor, Arena *arena, int fd) {
        int r;

        arena->device = executor->device;
        executor->device->arena_bytes += arena->size;
        arena_adopt_fd(arena, fd);
        r = executor_add_mapping(executor, arena);
        arena_made(arena);
        return r;
}

void mapping_forget(Mapping *mapping) {
        LIST_REMOVE(mapping, link);
        HASH_DEL(mapping->executor->mappings, mapping);
        free(mapping);
}

void mapping_drop(Mapping *mapping) {
        mapping->executor->engine->executor_ops->drop_arena(mapping->executor, mapping->id);
        mapping_forget(mapping);
}

/* ---- modules --------------------------------------------------------------- */

Instance *executor_find_instance(const Executor *executor, const Module *module) {
        Instance *instance = LIST_FIRST(&module->instances); /* most modules have but one */

        if (instance && instance->executor == executor)
                return instance;
        HASH_FIND(hh, executor->instances, &module->id, sizeof(module->id), instance);
        return instance;
}

static void instance_free(Instance *instance) {
        assert(TAILQ_EMPTY(&instance->parked));
        LIST_REMOVE(instance, link);
        HASH_DEL(instance->executor->instances, instance);
        free(instance);
}

Instance *executor_add_instance(Executor *executor, Module *module) {
        Instance *instance;

        instance = calloc(1, sizeof(*instance));
        if (!instance)
                return NULL;

        instance->id = module->id;
        instance->module = module;
        instance->executor = executor;
        TAILQ_INIT(&instance->parked);
        HASH_ADD(hh, executor->instances, id, sizeof(instance->id), instance);
        if (!instance->hh.tbl) {
                free(instance);
                return NULL;
        }
        LIST_INSERT_HEAD(&module->instances, instance, link);
        if (executor->engine->executor_ops->push_module(executor, module) == 0)
                return instance;
        instance_free(instance);
        return NULL;
}

void instance_drop(Instance *instance) {
        if (instance->state != INSTANCE_FAILED)
                instance->executor->engine->executor_ops->drop_module(instance->executor,
                                                                      instance->id);
        instance_free(instance);
}

/* In reverse, so that each goes to the front of its session's queue. */
static void instance_unpark(Instance *instance) {
        Job *job;

        while ((job = TAILQ_LAST(&instance->parked, InstanceJobs))) {
                scheduler_withdraw(job);
                scheduler_consider(job);
        }
}

static void instance_fail_parked(Instance *instance, const Failure *failure) {
        Job *job;

        while ((job = TAILQ_FIRST(&instance->parked)))
                ending_fail(job, failure_copy(failure));
}

void instance_loaded(Instance *instance, const ModuleReport *report) {
        _cleanup_(module_unrefp) Module *module = module_ref(instance->module);

        module->n_tries = 0;
        instance->state = INSTANCE_READY;
        instance_unpark(instance);
        module_loaded(module, report);
}

/* It is forgotten, as the worker has done: a module that loaded once loads again with its next job. */
void instance_failed(Instance *instance, Failure *failure) {
        _cleanup_(module_unrefp) Module *module = module_ref(instance->module);

        module->n_tries = 0;
        instance->state = INSTANCE_FAILED;
        instance_fail_parked(instance, failure);
        instance_drop(instance);
        module_failed(module, failure);
}

/* ---- end ------------------------------------------------------------------- */

static bool executor_holds_variables(const Executor *executor) {
        const Instance *instance;

        for (instance = executor->instances; instance; instance = instance->hh.next)
                if (instance->is_used && instance->module->submitter)
                        return true;
        return false;
}

/* A module or an arena was asked for and is not there yet. */
static bool executor_is_loading(const Executor *executor) {
        const Instance *instance;

        if (!TAILQ_EMPTY(&executor->slot->making))
                return true;
        for (instance = executor->instances; instance; instance = instance->hh.next)
                if (instance->state == INSTANCE_ADDING)
                        return true;
        return false;
}

void executor_drop_orphans(Executor *executor, uint64_t now_ns) {
        Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                if (job->orphan_ns && now_ns - job->orphan_ns > EXECUTOR_ORPHAN_MS * 1000000ull)
                        ending_doom(job, JOB_CANCELLED,
                                    failure_new(FAILURE_CANCELLED, "its client is gone"));
}

bool executor_has_begun(const Executor *executor) {
        const Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                if (job->phase != FAULT_QUEUED)
                        return true;
        return false;
}

/* A job that waits behind others in the worker is no reason to stop those. */
bool executor_has_doomed(const Executor *executor) {
        const Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                if (job->doom && !dependency_is_behind(job))
                        return true;
        return false;
}

bool executor_is_spare(const Executor *executor) {
        return executor->is_ready && !executor->n_inflight && !executor_is_loading(executor) &&
               !executor_holds_variables(executor);
}

/* A module that kills the worker that loads it again and again is given up. */
static void instance_blame(Instance *instance) {
        Module *module = instance->module;
        Failure *failure;

        if (instance->state != INSTANCE_ADDING || ++module->n_tries < MODULE_TRIES_MAX)
                return;

        module->n_tries = 0;
        failure = failure_new(FAILURE_INTERNAL, "the worker died while it loaded %s", module->name);
        instance_fail_parked(instance, failure);
        module_failed(module, failure);
}

static void instance_forget(Instance *instance, bool is_blamed) {
        _cleanup_(module_unrefp) Module *module = module_ref(instance->module);

        if (is_blamed)
                instance_blame(instance);
        instance_unpark(instance);
        if (instance->is_used)
                module->variables_lost = true;
        if (module->home == instance->executor->device)
                module->home = NULL;
        instance_free(instance);
}

void executor_forget(Executor *executor, bool blames_modules) {
        while (executor->instances)
                instance_forget(executor->instances, blames_modules);
        while (executor->mappings)
                mapping_forget(executor->mappings);
}
