/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CHOICE_H
#define GPUQ_SUPERVISOR_CHOICE_H

/*
 * Choice
 *
 * Chooses a device where the client did not.
 */

#include "device.h"

/**
 * choice_device() - the least loaded device that takes jobs, as this user sees it; if none takes
 * jobs, one that will
 */
Device *choice_device(Engine *engine, User *user);

#endif
