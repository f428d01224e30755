/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PROVISION_H
#define GPUQ_SUPERVISOR_PROVISION_H

/*
 * Provision
 *
 * Gets a slot what its work needs: a worker, device arenas and loaded modules. Starts a worker when
 * there is work, retries later when that fails, and fails the work after repeated failures.
 */

#include "executor.h"
#include "module.h"
#include "slot.h"

#define PROVISION_TRIES_MAX 3u /* workers that fail to start before the work fails */

/** provision_slot() - the slot may have work: start a worker, or hand it the work. */
void provision_slot(Slot *slot);
/** provision_arena() - choose a slot and have the DEVICE arena created there; its maker gets the result. */
void provision_arena(Arena *arena);
/** provision_module() - choose a slot and have the module loaded there; its submitter gets the result. */
void provision_module(Module *module);
/** provision_unplaced() - arenas and modules: the devices are known now, or it is known that there are none. */
void provision_unplaced(Engine *engine);
/** provision_module_loaded() - jobs that waited for it go on; the module gets the report. */
void provision_module_loaded(Instance *instance, Gpuq__V1__ModuleReady *report);
/** provision_module_failed() - jobs that waited for it end; the module gets the failure. Consumes @failure. */
void provision_module_failed(Instance *instance, Failure *failure);

/**
 * provision_watch() - work waits for the main executor: look again soon whether a long job holds it up
 *
 * Repeating it is harmless.
 */
void provision_watch(Slot *slot);
/** provision_is_idle() - the executor is idle, and stopping it loses nothing. */
bool provision_is_idle(const Executor *executor);
/** provision_worker_ready() - the slot's worker is ready. */
void provision_worker_ready(Slot *slot);
/** provision_express_ready() - its express worker is. */
void provision_express_ready(Slot *slot);
/** provision_express_lost() - that is gone. @has_failed: as of express_lost(). @by_user: as below. */
void provision_express_lost(Slot *slot, bool has_failed, bool by_user);
/**
 * provision_forget() - the executor is lost and its jobs are settled: forget its arenas and modules
 *
 * @blames_modules: modules that it was loading may be the cause.
 */
void provision_forget(Executor *executor, bool blames_modules);
/** provision_worker_lost() - the slot's worker is gone or unusable. @by_user: because of what its users did. */
void provision_worker_lost(Slot *slot, bool by_user);
/** provision_worker_failed() - the same for a worker that never became ready: @why. */
void provision_worker_failed(Slot *slot, const char *why);
/** provision_step() - fail one job of a slot in engine->giving_up. Return: false: done, and it left that list. */
bool provision_step(Slot *slot);
/** provision_give_way() - the next slot in engine->giving_up is served before this one. */
void provision_give_way(Slot *slot);
/** provision_device_is_well() - the device passed its check, so the failure is the worker's own. */
void provision_device_is_well(Slot *slot);

#endif
