/* SPDX-License-Identifier: Apache-2.0 */
#include "module.h"

#include <assert.h>
#include <string.h>

#include "arena.h"
#include "engine.h"
#include "executor.h"
#include "slot.h"
#include "util/list.h"

static int texts_copy_list(char *const *list, size_t n, char ***ret_copy, size_t *ret_n) {
        char **copy;

        copy = *ret_copy = calloc(n + 1, sizeof(*copy));
        if (!copy)
                return -ENOMEM;

        for (; *ret_n < n; ++*ret_n) {
                copy[*ret_n] = strdup(list[*ret_n]);
                if (!copy[*ret_n])
                        return -ENOMEM;
        }
        return 0;
}

/* @to is zeroed, and to be cleared also after an error. */
static int texts_copy(ModuleTexts *to, const ModuleTexts *from) {
        int r;

        to->n_header_bytes = from->n_header_bytes;
        r = texts_copy_list(from->options, from->n_options, &to->options, &to->n_options);
        if (r < 0)
                return r;
        return texts_copy_list(from->names, from->n_names, &to->names, &to->n_names);
}

static void texts_clear_list(char **list, size_t n) {
        for (size_t i = 0; i < n; ++i)
                free(list[i]);
        free(list);
}

static void texts_clear(ModuleTexts *texts) {
        texts_clear_list(texts->options, texts->n_options);
        texts_clear_list(texts->names, texts->n_names);
}

static uint64_t texts_list_bytes(char *const *list, size_t n) {
        uint64_t n_bytes = 0;

        for (size_t i = 0; i < n; ++i)
                n_bytes += sizeof(char *) + strlen(list[i]) + 1;
        return n_bytes;
}

static int module_copy(Module *module, const ModuleSpec *spec) {
        module->format = spec->format;
        module->length = spec->length;
        module->serial = spec->serial;
        module->wanted_device = spec->device;
        module->image = spec->image ? arena_ref(spec->image) : NULL;
        module->name_key = duration_key(0, spec->name, strlen(spec->name));
        module->name = strdup(spec->name);
        if (!module->name)
                return -ENOMEM;
        return texts_copy(&module->texts, &spec->texts);
}

/* Rewrites the record after a change. */
static void module_record(Module *module) {
        Ledger *ledger = module->engine->ledger;
        LedgerModule record = {
                .id = module->id,
                .image = module->image ? module->image->id : 0,
                .session = module->session,
                .has_variables = module->has_variables,
                .is_used = module->is_used,
        };

        if (module->record == LEDGER_NONE)
                module->record = ledger_add(ledger, LEDGER_MODULE, &record);
        else
                module->record = ledger_change(ledger, LEDGER_MODULE, module->record, &record);
}

/* The variables were in a worker that has ended. */
static void module_resume(Module *module, const ModuleSpec *spec) {
        module->is_resumed = true;
        module->record = spec->record;
        module->has_variables = spec->has_variables;
        module->is_used = module->variables_lost = spec->is_used;
}

static uint64_t module_text_bytes(const ModuleSpec *spec) {
        const ModuleTexts *texts = &spec->texts;

        return strlen(spec->name) + 1 + texts_list_bytes(texts->options, texts->n_options) +
               texts_list_bytes(texts->names, texts->n_names);
}

Failure *module_quota_failure(const User *user, const ModuleSpec *spec) {
        if (!user_may_charge(user, USER_MODULES, 1))
                return user_quota_failure(user, USER_MODULES, 1);
        return user_quota_failure(user, USER_RECORD_BYTES, module_text_bytes(spec));
}

_Static_assert(sizeof(Module) + sizeof(Instance) + 128 <= FOOTPRINT_MODULE,
               "a module takes more than gpuqd --check says");

int module_new(Submitter *submitter, const ModuleSpec *spec, Module **ret_module) {
        _cleanup_(module_unrefp) Module *module = NULL;
        Engine *engine = submitter->engine;
        int r;

        module = calloc(1, sizeof(*module));
        if (!module)
                return -ENOMEM;

        module->engine = engine;
        module->user = submitter->user;
        module->session = submitter->id;
        module->asked_ns = engine_now(engine);
        module->n_refs = 1;
        LIST_INIT(&module->instances);
        module->record = LEDGER_NONE;
        module->id = spec->id ? spec->id : ++engine->last.module;
        ledger_note_id(engine->ledger, LEDGER_MODULE, engine->last.module);
        HASH_ADD(hh, engine->modules, id, sizeof(module->id), module);
        if (!module->hh.tbl) {
                free(TAKE_PTR(module));
                return -ENOMEM;
        }

        user_hold(module->user);
        r = module_copy(module, spec);
        if (r < 0)
                return r;
        if (user_charge(submitter->user, &module->charge, USER_MODULES, 1) == USER_E_QUOTA ||
            user_charge(submitter->user, &module->record_charge, USER_RECORD_BYTES,
                        module_text_bytes(spec)) == USER_E_QUOTA)
                return MODULE_E_QUOTA;

        module->submitter = submitter;
        if (spec->id)
                module_resume(module, spec);
        else
                module_record(module);
        LIST_INSERT_HEAD(&submitter->modules, module, submitter_link);
        *ret_module = TAKE_PTR(module);
        return 0;
}

void module_stop_waiting(Module *module) {
        if (!module->is_waiting)
                return;
        if (module->slot)
                TAILQ_REMOVE(&module->slot->loading, module, wait_link);
        else
                TAILQ_REMOVE(&module->engine->unplaced.modules, module, wait_link);
        module->is_waiting = false;
}

/* ---- instances ------------------------------------------------------------- */

Instance *module_find_instance(const Module *module, const Executor *executor) {
        Instance *instance = LIST_FIRST(&module->instances); /* most modules have one instance */

        if (instance && instance->executor == executor)
                return instance;
        HASH_FIND(hh, executor->instances, &module->id, sizeof(module->id), instance);
        return instance;
}

static int instance_load(Instance *instance) {
        Executor *executor = instance->executor;
        int r;

        r = executor->engine->executor_ops->push_module(executor, instance->module);
        if (r == 0)
                instance->state = INSTANCE_ADDING;
        return r;
}

static int instance_begin_load(Instance *instance) {
        Loads *loads = &instance->executor->engine->loads;

        if (!loads_begin(loads, &instance->module->user->person->loads, &instance->load))
                return 0;
        return instance_load(instance);
}

void instance_end_load(Instance *instance) {
        Engine *engine = instance->executor->engine;

        if (instance->load.state == LOAD_RUNNING)
                engine->loads.has_free = true;
        loads_end(&engine->loads, &instance->load);
}

void instances_load(Engine *engine) {
        Load *load;

        if (!engine->loads.has_free)
                return;
        engine->loads.has_free = false;
        while ((load = loads_next(&engine->loads)))
                if (instance_load(container_of(load, Instance, load)) < 0) {
                        loads_put_back(&engine->loads, load);
                        engine->loads.has_free = true; /* a later turn tries again */
                        return;
                }
}

void instance_free(Instance *instance) {
        assert(TAILQ_EMPTY(&instance->parked));
        instance_end_load(instance);
        LIST_REMOVE(instance, link);
        HASH_DEL(instance->executor->instances, instance);
        free(instance);
}

Instance *module_add_instance(Module *module, Executor *executor) {
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
        if (instance_begin_load(instance) == 0)
                return instance;
        instance_free(instance);
        return NULL;
}

void instance_drop(Instance *instance) {
        Executor *executor = instance->executor;
        bool is_loading = instance->state == INSTANCE_ADDING;

        if (is_loading || instance->state == INSTANCE_READY)
                executor->engine->executor_ops->drop_module(executor, instance->id, is_loading);
        instance_free(instance);
}

/* ---- references ------------------------------------------------------------ */

static void module_free(Module *module) {
        Instance *instance;

        assert(!module->submitter);

        while ((instance = LIST_FIRST(&module->instances)))
                instance_drop(instance);
        module_stop_waiting(module);
        HASH_DEL(module->engine->modules, module);
        user_uncharge(&module->charge);
        user_uncharge(&module->record_charge);
        user_release(module->user);
        ledger_drop(module->engine->ledger, LEDGER_MODULE, module->record);
        arena_unref(module->image);
        texts_clear(&module->texts);
        free(module->name);
        free(module);
}

Module *module_find(const Engine *engine, uint64_t id) {
        Module *module;

        HASH_FIND(hh, engine->modules, &id, sizeof(id), module);
        return module;
}

Module *module_ref(Module *module) {
        module->n_refs++;
        return module;
}

Module *module_unref(Module *module) {
        if (module && --module->n_refs == 0)
                module_free(module);
        return NULL;
}

void module_wait(Module *module, Slot *slot) {
        module->slot = slot;
        module->is_waiting = true;
        if (slot)
                TAILQ_INSERT_TAIL(&slot->loading, module, wait_link);
        else
                TAILQ_INSERT_TAIL(&module->engine->unplaced.modules, module, wait_link);
}

void module_loaded(Module *module, Gpuq__V1__ModuleReady *report) {
        if (module->state != MODULE_LOADING)
                return;

        module_stop_waiting(module);
        module->state = MODULE_READY;
        module->slot = NULL;
        report->module = module->id;
        if (module->has_variables != report->has_variables) {
                module->has_variables = report->has_variables;
                module_record(module);
        }
        if (module->submitter)
                module->submitter->ops->module_ready(module->submitter, module, report);
}

void module_failed(Module *module, Failure *failure) {
        _cleanup_(failure_freep) Failure *owned = failure;

        if (module->state != MODULE_LOADING)
                return;

        module_stop_waiting(module);
        module->state = MODULE_FAILED;
        module->slot = NULL;
        if (module->submitter) {
                module->submitter->ops->module_failed(module->submitter, module, owned);
                module_detach(module);
        }
}

void module_note_use(Module *module) {
        if (module->is_used || !module->has_variables)
                return;
        module->is_used = true;
        module_record(module);
}

void module_forget_use(Module *module) {
        module->variables_lost = false;
        module->is_used = false;
        module_record(module);
}

void module_detach(Module *module) {
        if (!module->submitter)
                return;

        LIST_REMOVE(module, submitter_link);
        module->submitter = NULL;
        module_unref(module);
}
