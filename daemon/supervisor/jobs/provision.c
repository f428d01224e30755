/* SPDX-License-Identifier: Apache-2.0 */
#include "provision.h"

#include <string.h>

#include "arena.h"
#include "choice.h"
#include "ending.h"
#include "engine.h"
#include "express.h"
#include "place.h"
#include "util/list.h"
#include "util/log.h"

#define PROVISION_RETRY_MS     250u /* before the second try; doubles */
#define PROVISION_RETRY_MAX_MS 30000u
#define PROVISION_SHARE_NS     1000000000u /* while its person has too many workers */

/* ---- slots ----------------------------------------------------------------- */

static void provision_serve_arenas(Slot *slot) {
        Arena *arena, *next;
        int r;

        TAILQ_FOREACH_SAFE (arena, &slot->making, wait_link, next) {
                r = arena_ask(arena, slot->executor);
                if (r == 0)
                        continue;
                arena_failed(arena, arena_ask_failure(arena, r));
                slot_forget_arena(arena);
        }
}

/* Where modules load now. Return: NULL: in the express executor, once that is ready. */
static Executor *provision_loader(Slot *slot) {
        express_start(slot);
        if (!express_is_used(slot))
                return slot->executor;
        return slot->express->is_ready ? slot->express : NULL;
}

/* The main executor does not load beside the express one what that has begun to load. */
static bool provision_has_instance(const Module *module, const Slot *slot,
                                   const Executor *executor) {
        return module_find_instance(module, executor) ||
               (slot->express && module_find_instance(module, slot->express));
}

static void provision_serve_modules(Slot *slot) {
        Module *module, *next;
        Executor *executor;

        if (TAILQ_EMPTY(&slot->loading))
                return;
        executor = provision_loader(slot);
        if (!executor)
                return;
        TAILQ_FOREACH_SAFE (module, &slot->loading, wait_link, next)
                if (!provision_has_instance(module, slot, executor) &&
                    !module_add_instance(module, executor))
                        module_failed(module,
                                      failure_new(FAILURE_MEMORY, "gpuqd has no memory to load %s",
                                                  module->name));
}

/* In reverse, so that each goes to the front of its session's queue. */
static void provision_unpark(Instance *instance) {
        Job *job;

        while ((job = TAILQ_LAST(&instance->parked, InstanceJobs))) {
                place_withdraw(job);
                place_consider(job);
        }
}

/* Modules that do not load before the long job has ended keep no other from loading, and their jobs
 * look for another executor. */
static void provision_relieve(Slot *slot) {
        Instance *instance, *next;

        if (!express_is_worth(slot) || !express_is_used(slot) || !slot->express->is_ready)
                return;
        HASH_ITER (hh, slot->executor->instances, instance, next) {
                if (instance->state == INSTANCE_READY)
                        continue;
                provision_unpark(instance);
                if (instance->state == INSTANCE_QUEUED)
                        instance_free(instance);
                else
                        instance_end_load(instance);
        }
}

static void provision_on_retry(uv_timer_t *timer) {
        provision_relieve(timer->data);
        provision_slot(timer->data);
}

static void provision_ask_again(Slot *slot, uint64_t wait_ns) {
        uv_timer_start(&slot->retry, provision_on_retry, wait_ns / 1000000 + 1, 0);
}

static bool provision_asks_soon(const Slot *slot) {
        return uv_is_active((const uv_handle_t *)&slot->retry) &&
               uv_timer_get_due_in(&slot->retry) <= EXPRESS_LOOK_NS / 1000000 + 1;
}

void provision_watch(Slot *slot) {
        uint64_t wait_ns = EXPRESS_LOOK_NS, now_ns;

        if (!slot->engine->config->express || !slot->executor || provision_asks_soon(slot))
                return;
        if (express_is_worth(slot)) { /* its work was looked at with that known */
                now_ns = engine_now(slot->engine);
                if (slot->express || slot->express_ns <= now_ns)
                        return;
                wait_ns = slot->express_ns - now_ns;
        }
        provision_ask_again(slot, wait_ns);
}

/* Jobs that wait for its worker away from their data need not. */
static void provision_send_home(Slot *slot) {
        const Lane *lane;
        Job *job, *next;

        LIST_FOREACH (lane, &slot->lanes, slot_link)
                TAILQ_FOREACH_SAFE (job, &lane->user->jobs, user_link, next)
                        if (job->device == slot->device && job->place == JOB_QUEUED)
                                (void)place_go_home(job);
}

/* After its worker blamed the device, only once a check has settled that. */
static bool provision_may_start(const Slot *slot) {
        return !slot->engine->is_closing && !slot->engine->is_paused && !slot->claim &&
               !slot->n_giving_up && slot_has_work(slot);
}

static void provision_start(Slot *slot) {
        uint64_t now_ns = uv_hrtime(), from_ns;
        _cleanup_(failure_freep) Failure *failure = NULL;
        int r;

        if (!provision_may_start(slot))
                return;
        from_ns = MAX(slot->retry_ns, slot_restart_ns(slot, now_ns));
        if (now_ns < from_ns) {
                provision_ask_again(slot, from_ns - now_ns);
                return;
        }

        failure = slot_charge_worker(slot, &slot->worker);
        if (failure) { /* until another worker of this person has ended */
                slot_set_problem(slot, failure->text);
                provision_send_home(slot);
                provision_ask_again(slot, PROVISION_SHARE_NS);
                return;
        }
        r = slot->engine->executor_ops->start(slot->engine->workers, slot, false, &slot->executor);
        if (r < 0)
                provision_worker_failed(slot, strerror(-r));
}

void provision_slot(Slot *slot) {
        if (!health_takes_jobs(&slot->device->health))
                return;
        if (!slot->executor) {
                provision_start(slot);
                return;
        }
        if (!slot->executor->is_ready)
                return;

        provision_serve_arenas(slot);
        provision_serve_modules(slot);
        if (!TAILQ_EMPTY(&slot->loading) || slot->executor->n_parked)
                provision_watch(slot);
        slot_wake(slot);
}

/* ---- arenas ---------------------------------------------------------------- */

static Failure *provision_slot_of_user(User *user, Device *device, Slot **ret_slot) {
        *ret_slot = slot_get(device->engine, user, device);
        return *ret_slot ? NULL : failure_new(FAILURE_MEMORY, "gpuqd has no memory for a worker");
}

static Failure *provision_choose_arena_slot(Arena *arena, Slot **ret_slot) {
        Engine *engine = arena->engine;
        int wanted = arena->wanted_device;
        Failure *failure = choice_check(engine, arena->user, wanted);
        Device *device;

        if (failure)
                return failure;

        if (wanted >= 0)
                device = &engine->devices[wanted];
        else
                device = arena->maker ? choice_home(arena->maker)
                                      : choice_device(engine, arena->user);
        return provision_slot_of_user(arena->user, device, ret_slot);
}

static void provision_arena_without_device(Arena *arena) {
        if (engine_lacks_devices(arena->engine) && !arena->maker->waits_for_device)
                arena_failed(arena, engine_lack(arena->engine));
        else
                slot_add_arena(NULL, arena);
}

/* Return: its slot; NULL: it failed, or no device is known. */
static Slot *provision_place_arena(Arena *arena) {
        _cleanup_(arena_unrefp) Arena *kept = arena_ref(arena);
        _cleanup_(failure_freep) Failure *failure = NULL;
        Slot *slot = NULL;

        if (!kept->engine->n_devices) {
                slot_forget_arena(kept);
                provision_arena_without_device(kept);
                return NULL;
        }

        failure = provision_choose_arena_slot(kept, &slot);
        if (failure && kept->slot) /* it stays there */
                return kept->slot;
        slot_forget_arena(kept);
        if (failure) {
                arena_failed(kept, TAKE_PTR(failure));
                return NULL;
        }
        slot_add_arena(slot, kept);
        return slot;
}

void provision_arena(Arena *arena) {
        Slot *slot = provision_place_arena(arena);

        if (slot)
                provision_slot(slot);
}

/* ---- modules --------------------------------------------------------------- */

/* A slot in which the module can still be loaded. */
static Device *provision_find_home(const Module *module) {
        Engine *engine = module->engine;

        if (module->home)
                return module->home;
        for (size_t i = 0; i < engine->n_devices; ++i) {
                const Slot *slot = slot_find(engine, module->user, &engine->devices[i]);

                if (slot && slot->executor)
                        return &engine->devices[i];
        }
        return NULL;
}

static Failure *provision_choose_slot(Module *module, Slot **ret_slot) {
        Engine *engine = module->engine;
        int wanted = module->wanted_device;
        Failure *failure = choice_check(engine, module->user, wanted);
        Device *device;

        if (failure)
                return failure;

        /* Where it is loaded first matters only for the compiler's report: jobs can use any device. */
        device = wanted >= 0 ? &engine->devices[wanted] : NULL;
        if (!device && module->is_resumed)
                device = provision_find_home(module);
        if (!device || !health_takes_jobs(&device->health))
                device = choice_device(engine, module->user);
        return provision_slot_of_user(module->user, device, ret_slot);
}

static void provision_wait_for_device(Module *module) {
        if (engine_lacks_devices(module->engine) && !module->submitter->waits_for_device)
                module_failed(module, engine_lack(module->engine));
        else
                module_wait(module, NULL);
}

/* What goes on waiting comes behind the last one. There may be thousands of few users. */
static void provision_unplaced_arenas(Engine *engine) {
        Arena *last = TAILQ_LAST(&engine->unplaced.arenas, EngineUnplacedArenas), *arena = NULL;
        Slot *slot;

        while (arena != last) {
                arena = TAILQ_FIRST(&engine->unplaced.arenas);
                (void)provision_place_arena(arena);
        }
        for (slot = engine->slots; slot; slot = slot->hh.next)
                provision_slot(slot);
}

void provision_unplaced(Engine *engine) {
        Module *last = TAILQ_LAST(&engine->unplaced.modules, EngineModules);
        Module *module = NULL;

        provision_unplaced_arenas(engine);
        while (module != last) {
                module = TAILQ_FIRST(&engine->unplaced.modules);
                provision_module(module);
        }
}

void provision_module(Module *module) {
        Failure *failure;
        Slot *slot = NULL;

        module_stop_waiting(module);
        if (!module->engine->n_devices) {
                provision_wait_for_device(module);
                return;
        }

        failure = provision_choose_slot(module, &slot);
        if (failure) {
                module_failed(module, failure);
                return;
        }
        module_wait(module, slot);
        provision_slot(slot);
}

/* There may be as many as their user has jobs, and the failure a compiler's log: the first one gets all
 * of it, and they end in parts. */
static void provision_fail_parked(Instance *instance, const Failure *failure) {
        Job *job, *next;

        TAILQ_FOREACH_SAFE (job, &instance->parked, link, next)
                (void)place_go_home(job);
        job = TAILQ_FIRST(&instance->parked);
        if (job)
                ending_fail(job, failure_copy(failure));
        while ((job = TAILQ_FIRST(&instance->parked)))
                place_end_soon(job, JOB_FAILED, failure_brief(failure));
}

void provision_module_loaded(Instance *instance, Gpuq__V1__ModuleReady *report) {
        _cleanup_(module_unrefp) Module *module = module_ref(instance->module);

        module->n_tries = 0;
        instance_end_load(instance);
        instance->state = INSTANCE_READY;
        provision_unpark(instance);
        module_loaded(module, report);
}

/* Its context is one more on the device: the main executor may still have memory. */
static bool provision_may_load_elsewhere(const Instance *instance, const Failure *failure) {
        return instance->executor->is_express && failure->code == FAILURE_MEMORY;
}

static void provision_load_elsewhere(Instance *instance) {
        Slot *slot = instance->executor->slot;

        express_retire(slot);
        provision_unpark(instance);
        instance_drop(instance);
        provision_slot(slot);
}

/* Freed, as in the worker: a module that loaded once is loaded again with its next job. */
void provision_module_failed(Instance *instance, Failure *failure) {
        _cleanup_(module_unrefp) Module *module = module_ref(instance->module);

        if (provision_may_load_elsewhere(instance, failure)) {
                provision_load_elsewhere(instance);
                failure_free(failure);
                return;
        }
        module->n_tries = 0;
        instance_end_load(instance);
        instance->state = INSTANCE_FAILED;
        provision_fail_parked(instance, failure);
        slot_wake(instance->executor->slot); /* more jobs may wait in their queues */
        instance_drop(instance);
        module_failed(module, failure);
}

/* ---- workers come and go --------------------------------------------------- */

void provision_worker_ready(Slot *slot) {
        pressure_clear(&slot->pressure);
        slot_set_problem(slot, NULL);
        provision_slot(slot);
}

void provision_express_ready(Slot *slot) {
        provision_relieve(slot);
        provision_slot(slot);
        slot_wake(slot);
}

void provision_express_lost(Slot *slot, bool has_failed, bool by_user) {
        express_lost(slot, has_failed);
        if (by_user)
                slot_note_restart(slot);
        provision_slot(slot);
        slot_wake(slot);
}

void provision_worker_lost(Slot *slot, bool by_user) {
        slot_lose_executor(slot);
        if (by_user)
                slot_note_restart(slot);
        provision_slot(slot);
}

static const char *provision_why(const Slot *slot) {
        return slot->problem ? slot->problem : "gpuqd is out of memory";
}

/* Return: NULL: nothing waits for its worker. */
static Job *provision_first_job(const Slot *slot) {
        Job *job = TAILQ_FIRST(&slot->alone);
        QueueEntry *entry = NULL;
        Lane *lane;

        if (job)
                return job;
        LIST_FOREACH (lane, &slot->lanes, slot_link) {
                entry = queue_pick(&lane->queue, NULL, NULL);
                if (entry)
                        return container_of(entry, Job, entry);
        }
        return NULL;
}

/* Jobs that come meanwhile wait for the next attempt. */
static void provision_give_up_jobs(Slot *slot) {
        const Lane *lane;
        const Job *job;

        if (slot->n_giving_up)
                return;
        TAILQ_FOREACH (job, &slot->alone, link)
                slot->n_giving_up++;
        LIST_FOREACH (lane, &slot->lanes, slot_link)
                slot->n_giving_up += lane->queue.n_entries;
        if (slot->n_giving_up)
                TAILQ_INSERT_TAIL(&slot->engine->giving_up, slot, giving_up_link);
}

bool provision_step(Slot *slot) {
        Job *job = slot->n_giving_up ? provision_first_job(slot) : NULL;

        if (job) {
                slot->n_giving_up--;
                slot->engine->n_steps += job_steps(job);
                if (place_go_home(job))
                        return true;
                ending_fail(job, failure_new(FAILURE_NO_DEVICE, "device %u: %s",
                                             slot->device->index, provision_why(slot)));
                return true;
        }
        slot->n_giving_up = 0;
        TAILQ_REMOVE(&slot->engine->giving_up, slot, giving_up_link);
        provision_slot(slot);
        return false;
}

void provision_give_way(Slot *slot) {
        TAILQ_REMOVE(&slot->engine->giving_up, slot, giving_up_link);
        TAILQ_INSERT_TAIL(&slot->engine->giving_up, slot, giving_up_link);
}

static void provision_give_up(Slot *slot) {
        const char *why = provision_why(slot);
        Arena *arena;
        Module *module;

        log_warning("device %u, uid %u: cannot start a worker after %u attempts: %s",
                    slot->device->index, slot->key.domain, slot->n_failures, why);

        while ((arena = TAILQ_FIRST(&slot->making))) {
                arena_failed(arena, failure_new(FAILURE_NO_DEVICE, "device %u: %s",
                                                slot->device->index, why));
                slot_forget_arena(arena);
        }
        while ((module = TAILQ_FIRST(&slot->loading)))
                module_failed(module, failure_new(FAILURE_NO_DEVICE, "device %u: %s",
                                                  slot->device->index, why));
        provision_give_up_jobs(slot);
}

static bool provision_is_hopeless(const Slot *slot) {
        return slot->n_failures >= PROVISION_TRIES_MAX && health_takes_jobs(&slot->device->health);
}

void provision_worker_failed(Slot *slot, const char *why) {
        uint64_t delay_ms = PROVISION_RETRY_MS;

        slot_lose_executor(slot);
        slot->n_failures++;
        slot_set_problem(slot, why);
        provision_send_home(slot);
        slot_note_restart(slot);
        pressure_clear(&slot->pressure);
        for (unsigned i = 1; i < slot->n_failures && delay_ms < PROVISION_RETRY_MAX_MS; ++i)
                delay_ms *= 2;
        slot->retry_ns = uv_hrtime() + MIN(delay_ms, (uint64_t)PROVISION_RETRY_MAX_MS) * 1000000;

        /* If the device is to blame, the work for it waits for the device. */
        if (provision_is_hopeless(slot) && !slot->claim)
                provision_give_up(slot);
        provision_slot(slot);
}

void provision_device_is_well(Slot *slot) {
        if (provision_is_hopeless(slot))
                provision_give_up(slot);
        provision_slot(slot);
}

static bool provision_holds_variables(const Executor *executor) {
        const Instance *instance;

        for (instance = executor->instances; instance; instance = instance->hh.next)
                if (instance->is_used && instance->module->submitter)
                        return true;
        return false;
}

/* A module or an arena was requested and is not ready yet. */
static bool provision_is_loading(const Executor *executor) {
        const Instance *instance;

        if (!executor->is_express && !TAILQ_EMPTY(&executor->slot->making))
                return true;
        for (instance = executor->instances; instance; instance = instance->hh.next)
                if (instance->state == INSTANCE_QUEUED || instance->state == INSTANCE_ADDING)
                        return true;
        return false;
}

bool provision_is_idle(const Executor *executor) {
        return executor->is_ready && !executor->n_inflight && TAILQ_EMPTY(&executor->leases) &&
               !provision_is_loading(executor) && !provision_holds_variables(executor);
}

/* A module that repeatedly kills the worker loading it fails. */
static void provision_blame(Instance *instance) {
        Module *module = instance->module;
        Failure *failure;

        if (instance->state != INSTANCE_ADDING || ++module->n_tries < MODULE_TRIES_MAX)
                return;

        module->n_tries = 0;
        failure = failure_new(FAILURE_INTERNAL, "the worker process died while it loaded %s",
                              module->name);
        provision_fail_parked(instance, failure);
        module_failed(module, failure);
}

static void provision_forget_instance(Instance *instance, bool is_blamed) {
        _cleanup_(module_unrefp) Module *module = module_ref(instance->module);

        if (is_blamed)
                provision_blame(instance);
        provision_unpark(instance);
        if (instance->is_used)
                module->variables_lost = true;
        if (module->home == instance->executor->device && !instance->executor->is_express)
                module->home = NULL;
        instance_free(instance);
}

void provision_forget(Executor *executor, bool blames_modules) {
        while (executor->instances)
                provision_forget_instance(executor->instances, blames_modules);
        while (executor->mappings)
                mapping_forget(executor->mappings);
}
