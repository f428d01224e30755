/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CHOICE_H
#define GPUQ_SUPERVISOR_CHOICE_H

/*
 * Choice
 *
 * Which device something gets whose client left that open.
 */

#include "device.h"

/** choice_device() - the least loaded that takes jobs, seen by this user; if none does, one that will. */
Device *choice_device(Engine *engine, User *user);

#endif
