/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ACCOUNTING_ROOM_H
#define GPUQ_SUPERVISOR_ACCOUNTING_ROOM_H

/*
 * Accounting: the history of ended jobs
 *
 * Owns the tally of jobs that are not written yet, the database, and the thread that uses it. It
 * learns of ends as the engine's EndObserver, and calls clients (answers), jobs and base. Only the loop
 * calls it, and clients do so through AccountingOps.
 *
 * It promises: a job costs a few counters and never waits for the disk. While the disk is slow or full,
 * rows collect in memory of a fixed size, and jobs for which there is no room are counted. Users read
 * their own rows, administrators all. A query reads a bounded number of rows, and each person has one at
 * a time.
 */

#include "clients.h"
#include "jobs.h"

/** accounting_ops - for clients. */
extern const AccountingOps accounting_ops;

/** accounting_new() - observe the engine's jobs, and open the database in the thread. Return: 0, or -ENOMEM. */
int accounting_new(Engine *engine, Accounting **ret_accounting);
/** accounting_tick() - called periodically: write what has ended, and take in the configuration. */
void accounting_tick(Accounting *accounting, uint64_t now_ns);
/** accounting_close() - write the rest and close the handles; all sessions and jobs are gone. NULL is fine. */
void accounting_close(Accounting *accounting);
/** accounting_free() - call it once the loop has ended. NULL is fine. Return: NULL. */
Accounting *accounting_free(Accounting *accounting);

#endif
