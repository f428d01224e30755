/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_MODULE_H
#define GPUQ_SUPERVISOR_MODULE_H

/*
 * Module
 *
 * Kernels of one session. Each worker that uses the module has an Instance of it, loaded when the
 * module is first requested, and again in any other worker whose jobs need it. A module lives as
 * long as its session keeps it or an unfinished job uses it.
 *
 *     LOADING --> READY      the session got the answer; jobs may name it
 *        +------> FAILED
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base.h"
#include "policy.h"
#include "submitter.h"
#include "user.h"
#include "util/macro.h"
#include "util/table.h"

#define MODULE_NAME_MAX  256u
#define MODULE_OPTIONS   64u
#define MODULE_NAMES     512u  /* kernels that its client names */
#define MODULE_NAMES_MAX 1024u /* bytes of each, as of a kernel of a job */
#define MODULE_TRIES_MAX 3u    /* workers that die while loading it, before it is to blame */

typedef struct Arena Arena;
typedef struct Device Device;
typedef struct Instance Instance;
typedef struct Module Module;
typedef struct Slot Slot;
typedef struct Submitter Submitter;
typedef struct Engine Engine;
typedef struct Executor Executor;

typedef enum ModuleState {
        MODULE_LOADING,
        MODULE_READY,
        MODULE_FAILED,
} ModuleState;

typedef enum InstanceState {
        INSTANCE_QUEUED, /* other loads come first (policy/loads.h) */
        INSTANCE_ADDING, /* the executor loads it */
        INSTANCE_READY,
        INSTANCE_FAILED, /* reported, about to be freed */
} InstanceState;

#define INSTANCE_PARKED_MAX                                                                        \
        1024u /* jobs that wait for one instance; the others stay in their queues */

TAILQ_HEAD(InstanceJobs, Job);

/* A module in one executor. */
struct Instance {
        uint64_t id; /* of the module */
        Module *module;
        Executor *executor;
        InstanceState state;
        Load load;
        bool is_used;               /* a job may have changed its variables */
        struct InstanceJobs parked; /* wait until the instance is READY */
        unsigned n_parked;
        LIST_ENTRY(Instance) link; /* module->instances */
        UT_hash_handle hh;         /* executor->instances */
};

enum {
        _MODULE_E_SUCCESS,
        MODULE_E_QUOTA, /* see module_quota_failure() */
};

/* What it is compiled with. */
typedef struct ModuleTexts {
        char **options;
        size_t n_options;
        char **names; /* of kernels, as C++ expressions */
        size_t n_names;
        uint64_t n_header_bytes; /* behind the image, in its arena */
} ModuleTexts;

typedef struct ModuleSpec {
        int format;
        Arena *image; /* NULL: built-in */
        uint64_t length;
        ModuleTexts texts; /* borrowed */
        const char *name;
        int device; /* -1: any */
        uint32_t serial;
        uint64_t id; /* 0: a new module; else the id in a resumed session, with these: */
        uint32_t record;
        bool has_variables;
        bool is_used;
} ModuleSpec;

struct Module {
        uint64_t id;
        Engine *engine;
        Submitter *submitter; /* NULL once the submitter detached */
        uint32_t session;     /* the session's id in the ledger */
        User *user;
        unsigned n_refs;

        LIST_ENTRY(Module) submitter_link; /* submitter->modules */
        LIST_HEAD(, Instance) instances;
        UT_hash_handle hh; /* engine->modules */

        ModuleState state;
        uint32_t serial; /* of the request to answer */
        unsigned n_tries;
        int wanted_device; /* -1: any */
        uint64_t asked_ns; /* when its session asked for it */
        Slot *slot;        /* LOADING: the slot that loads it */
        bool is_waiting;   /* in slot->loading or engine->unplaced.modules */
        TAILQ_ENTRY(Module) wait_link;

        int format;
        Arena *image;
        uint64_t length;
        ModuleTexts texts;
        char *name;
        uint64_t name_key; /* for the durations of its kernels */

        bool has_variables;
        Device *home;        /* where its variables are, once a job used them; else NULL */
        bool variables_lost; /* the next job that uses them fails with VARIABLES_LOST */

        uint32_t record; /* in the ledger, or LEDGER_NONE */
        bool is_used;    /* a job may have changed its variables since they were loaded */
        bool is_resumed; /* from a resumed session: jobs may name it before it is READY */
        UserCharge charge;
        UserCharge record_charge; /* its texts */
};

/** module_new() - LOADING, with its submitter's reference. Return: 0, MODULE_E_QUOTA, or -ENOMEM. */
int module_new(Submitter *submitter, const ModuleSpec *spec, Module **ret_module);
/** module_quota_failure() - why module_new() returned MODULE_E_QUOTA. */
Failure *module_quota_failure(const User *user, const ModuleSpec *spec);
/** module_find() - Return: NULL: no module has this id. */
Module *module_find(const Engine *engine, uint64_t id);
/** module_ref() - Return: the module. */
Module *module_ref(Module *module);
/** module_unref() - the last reference unloads it everywhere. NULL is fine. Return: NULL. */
Module *module_unref(Module *module);
DEFINE_CLEANUP(Module, module_unref)
/** module_wait() - wait until the slot's worker, or with @slot NULL a device, is available. */
void module_wait(Module *module, Slot *slot);
/** module_stop_waiting() - remove it from the waiting list. */
void module_stop_waiting(Module *module);
/** module_loaded() - a worker loaded it: READY. @report: from the worker, passed on to the client. */
void module_loaded(Module *module, Gpuq__V1__ModuleReady *report);
/** module_failed() - the first load failed: tell the session. Consumes @failure. */
void module_failed(Module *module, Failure *failure);
/** module_note_use() - a job ran that may have changed its variables. */
void module_note_use(Module *module);
/** module_forget_use() - its variables have their initial values again. */
void module_forget_use(Module *module);
/** module_find_instance() - its instance in this executor. Return: NULL: it has none. */
Instance *module_find_instance(const Module *module, const Executor *executor);
/** module_add_instance() - have the executor load it: QUEUED or ADDING. Return: NULL: out of memory. */
Instance *module_add_instance(Module *module, Executor *executor);
/** instance_end_load() - it is loaded or not to be. Others start with instances_load(). */
void instance_end_load(Instance *instance);
/** instances_load() - once a turn: start loads that waited and whose turn it is. */
void instances_load(Engine *engine);
/** instance_drop() - have the executor unload it; no job waits for it. */
void instance_drop(Instance *instance);
/** instance_free() - the same for an executor that is gone. */
void instance_free(Instance *instance);
/** module_detach() - its session releases it. */
void module_detach(Module *module);

#endif
