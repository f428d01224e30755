/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_POLICY_ROOM_H
#define GPUQ_SUPERVISOR_POLICY_ROOM_H

/*
 * Policy: the room's public header
 *
 * Owns the decisions: which user and job run next (fair share, queue, quanta), a job's expected
 * time (duration), what a job costs on each device (placement), the order that a session's buffers
 * impose (order), whether a device may be used (health), which job caused a fault (fault, suspects),
 * how often a user may cost others something (allowance), how much of something finite one user may
 * hold (quota), where device memory is mapped (addresses, regions), how many modules load at once (loads), and
 * when to retry for memory (pressure). It also counts durations for quantiles (sketch, waits). All of
 * it is pure: time is an argument, and nothing here does I/O, logs, or knows
 * another room. The cost of a decision grows at most with the logarithm of users and jobs.
 * tests/unit/policy tests it on a simulated clock.
 */

#include "addresses.h"
#include "advice.h"
#include "allowance.h"
#include "decay.h"
#include "duration.h"
#include "fairshare.h"
#include "fault.h"
#include "health.h"
#include "loads.h"
#include "order.h"
#include "placement.h"
#include "pressure.h"
#include "quanta.h"
#include "queue.h"
#include "quota.h"
#include "regions.h"
#include "sketch.h"
#include "suspects.h"
#include "waits.h"

#endif
