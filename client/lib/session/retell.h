/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SESSION_RETELL_H
#define GPUQ_SESSION_RETELL_H

/*
 * Retell
 *
 * Says to a daemon that was started again what this session is and what of it is
 * unfinished, in the order of PROTOCOL.md: arenas, modules, prepared jobs, jobs,
 * what waits for a reply. What it answers to the first three nobody waits for: one
 * that is gone is refused where it is used.
 */

#include "client.h"

/** retell() - all of it, behind nothing else. Return: 0, or a GPUQ_E_. */
int retell(gpuq_client *client);

#endif
