/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RESTART_ROOM_H
#define GPUQ_SUPERVISOR_RESTART_ROOM_H

/*
 * Restart: the room's public header
 *
 * Owns what passes from one supervisor to the next: the takeover of sessions, arenas and ends from the
 * ledger and the keeper, dormant sessions, whose clients have not reconnected yet, and the handover
 * when the service is restarted. It calls clients/, jobs/ and base/; sessions reach it through
 * ResumeOps. It promises that no job ends twice, that a client that reconnects keeps its session and
 * data, and that a session without a connection is kept as long as its process lives, or for takeover_s
 * if that process cannot be watched.
 */

#include "handover.h"
#include "takeover.h"

#endif
