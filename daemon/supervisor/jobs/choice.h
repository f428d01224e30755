/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CHOICE_H
#define GPUQ_SUPERVISOR_CHOICE_H

/*
 * Choice
 *
 * Which devices a user may use (the key devices of gpuqd.conf), and which of them where the client
 * did not choose.
 */

#include "base.h"
#include "device.h"
#include "submitter.h"

/** choice_check() - is there device @wanted for this user; below 0: any device? Return: NULL, or why not. */
Failure *choice_check(const Engine *engine, const User *user, int wanted);
/**
 * choice_device() - the least loaded device that takes jobs, as this user sees it; if none takes
 * jobs, one that will
 */
Device *choice_device(Engine *engine, User *user);
/** choice_takes() - whether a job of the user could run there now, for all that is known. */
bool choice_takes(Device *device, User *user, uint64_t now_ns);
/** choice_work_ns() - what the jobs of all users there, queued or running, will probably still take. */
uint64_t choice_work_ns(Device *device, uint64_t now_ns);
/** choice_own_ns() - the part of it that is this user's. */
uint64_t choice_own_ns(const Device *device, const User *user, uint64_t now_ns);
/**
 * choice_home() - the device for device memory of @submitter that names none
 *
 * All of it is where the first was, so that its jobs find their data together. Submitters are divided
 * among the devices when they first ask: most of their jobs will follow. The home changes if it takes no jobs
 * any more, or has no memory for their user's worker.
 */
Device *choice_home(Submitter *submitter);

#endif
