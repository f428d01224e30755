/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SESSION_RETELL_H
#define GPUQ_SESSION_RETELL_H

/*
 * Retell
 *
 * After a restart of the daemon, sends again what belongs to this session and what is
 * unfinished, in the order of PROTOCOL.md: arenas, modules, prepared jobs, jobs, and
 * requests without a reply. The replies to the first three are ignored: using an
 * object that no longer exists fails later.
 */

#include "client.h"

/** retell() - send all of it; nothing else may be queued yet. Return: 0, or a GPUQ_E_. */
int retell(gpuq_client *client);

#endif
