/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_JOBS_ROOM_H
#define GPUQ_SUPERVISOR_JOBS_ROOM_H

#include "arena.h"
#include "dependency.h"
#include "device.h"
#include "ending.h"
#include "executor.h"
#include "engine.h"
#include "job.h"
#include "limit.h"
#include "module.h"
#include "recovery.h"
#include "scheduler.h"
#include "slot.h"
#include "submitter.h"
#include "user.h"

#endif
