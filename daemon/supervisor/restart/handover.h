/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_HANDOVER_H
#define GPUQ_SUPERVISOR_HANDOVER_H

/*
 * Handover
 *
 * How a supervisor ends when the service is restarted: it leaves what a takeover needs,
 * as if it had been killed, but at a moment when nothing is in flight, since workers end with
 * the keeper and not every job may run twice. Dispatches nothing meanwhile; clients are
 * served, and what they submit they say again to the next one.
 */

typedef struct Supervisor Supervisor;

/** handover_begin() - leave the loop, with nothing said, once nothing is in flight or KEEPER_HANDOVER_S are over. */
void handover_begin(Supervisor *supervisor);

#endif
