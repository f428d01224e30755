/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_POLICY_ROOM_H
#define GPUQ_SUPERVISOR_POLICY_ROOM_H

/*
 * Policy: the room's public header
 *
 * Owns the decisions: who runs next (fair share, queue, quanta), what a job is expected to
 * take (duration), which jobs a session's buffers put in order (order), whether a device may be
 * used (health), which job is to blame for a fault (fault, suspects, crashes), and when to try
 * for memory again (pressure). All of it is pure: time is an argument, and nothing here does I/O,
 * logs, or knows another room. It promises a cost per decision that grows at most with the
 * logarithm of users and jobs. tests/unit/policy tests it on a simulated clock.
 */

#include "crashes.h"
#include "decay.h"
#include "duration.h"
#include "fairshare.h"
#include "fault.h"
#include "health.h"
#include "order.h"
#include "pressure.h"
#include "quanta.h"
#include "queue.h"
#include "suspects.h"

#endif
