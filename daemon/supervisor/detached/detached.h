/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DETACHED_ROOM_H
#define GPUQ_SUPERVISOR_DETACHED_ROOM_H

/*
 * Detached jobs
 *
 * They are stored on disk and outlive their client, the supervisor and the daemon. This room owns the
 * store, the threads that use it, and a submitter for each user with detached jobs, so that they run
 * like other jobs. It calls clients (checks, answers), jobs and base. Only the loop calls it, and
 * clients do so through DetachedOps.
 *
 * It promises: a job is acknowledged when all of it is synced. It runs at least once. One end is
 * reported, after that is synced. Input on disk never changes. Results stay until they are fetched
 * and discarded, or expire. Damage is detected and reported to the job's user alone. The loop never
 * waits for the disk. Memory is bounded whatever the size of a job.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "clients.h"
#include "jobs.h"

/* Provided by the loop. */
typedef struct DetachedHost {
        Clients *clients;
        void (*may_listen)(void *userdata); /* detached_is_known() became true */
        void *userdata;
} DetachedHost;

/** detached_ops - for clients. */
extern const DetachedOps detached_ops;

/**
 * detached_new() - start reading the store
 *
 * Return: 0, or a negative errno; the table is the caller's in any case.
 */
int detached_new(const DetachedHost *host, DetachedTable **ret_table);
/** detached_begin() - the previous supervisor's session numbers are known, so submitters may be made. */
void detached_begin(DetachedTable *table);
/** detached_is_known() - clients may connect: the content of the disk is known, or cannot be known now. */
bool detached_is_known(const DetachedTable *table);
/** detached_tick() - called periodically: do what is due. */
void detached_tick(DetachedTable *table, uint64_t now_ns);
/** detached_stop() - start nothing more, and close the submitters. NULL is fine. */
void detached_stop(DetachedTable *table);
/** detached_close() - close the handles; the loop runs until pending disk calls are done. NULL is fine. */
void detached_close(DetachedTable *table);
/** detached_free() - call it once the loop has ended. NULL is fine. Return: NULL. */
DetachedTable *detached_free(DetachedTable *table);

#endif
