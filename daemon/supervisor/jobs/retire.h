/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RETIRE_H
#define GPUQ_SUPERVISOR_RETIRE_H

/*
 * Retire
 *
 * Frees users that have had nothing for RETIRE_NS: no session, job, arena, module or worker. A
 * person stays until its use of the devices is forgotten, so leaving pays no debt; a subordinate uid
 * has none of its own. Without this, 65,536 uids of one range would stay for ever.
 */

#include <stdint.h>

#define RETIRE_NS 600000000000ull

typedef struct Engine Engine;

/** retire_users() - once in a tick. */
void retire_users(Engine *engine, uint64_t now_ns);

#endif
