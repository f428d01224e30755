/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PROVISION_H
#define GPUQ_SUPERVISOR_PROVISION_H

/*
 * Provision
 *
 * Gets a slot what its work needs: a worker, device arenas made in it and modules
 * loaded in it. Starts a worker when there is something to do, tries again later when
 * that fails, and gives the work up when it keeps failing.
 */

#include "executor.h"
#include "module.h"
#include "slot.h"

#define PROVISION_TRIES_MAX 3u /* workers that fail to start before the work is given up */

/** provision_slot() - it may have something to do: start a worker, or hand it over. */
void provision_slot(Slot *slot);
/** provision_arena() - have a DEVICE arena made in a slot. */
void provision_arena(Slot *slot, Arena *arena);
/** provision_module() - choose a slot, then have the module loaded there; its submitter hears of the end. */
void provision_module(Module *module);
/** provision_module_loaded() - jobs that waited for it go on; the module is told. */
void provision_module_loaded(Instance *instance, Gpuq__V1__ModuleReady *report);
/** provision_module_failed() - jobs that waited for it end; the module is told. Consumes @failure. */
void provision_module_failed(Instance *instance, Failure *failure);

/** provision_is_spare() - the executor is idle, and nothing is lost with it. */
bool provision_is_spare(const Executor *executor);
/** provision_worker_ready() - the slot's worker came up. */
void provision_worker_ready(Slot *slot);
/** provision_forget() - the executor is lost, its jobs were judged: forget what it was given. @blames_modules: those that it was loading may be to blame. */
void provision_forget(Executor *executor, bool blames_modules);
/** provision_worker_lost() - the slot's worker is gone, or as good as. @crashed: by a job of it. */
void provision_worker_lost(Slot *slot, bool crashed);
/** provision_worker_failed() - the same, and it never came up: @why. */
void provision_worker_failed(Slot *slot, const char *why);
/** provision_device_is_well() - what the slot's workers said of the device, @why, was their own trouble. */
void provision_device_is_well(Slot *slot, const char *why);

#endif
