/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DETACHED_ROOM_H
#define GPUQ_SUPERVISOR_DETACHED_ROOM_H

/*
 * Detached jobs
 *
 * They are stored on disk and outlive their client, the supervisor and the daemon. This room owns
 * the store, the threads that use it, and a submitter for each user with such jobs,
 * by which they run like any other job. It calls clients (checks, answers), jobs and base; the
 * loop alone calls it, and clients do so through DetachedOps.
 *
 * It promises: a job is acknowledged once all of it is synced; it runs at least once; one end is
 * told, once that is synced; input on disk never changes; results stay until they are fetched and
 * discarded, or are too old; damage is found, and told to the job's user alone; the loop never
 * waits for the disk; memory is bounded whatever the size of a job.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "clients.h"
#include "jobs.h"

/* What the loop gives to this room. */
typedef struct DetachedHost {
        Clients *clients;
        void (*may_listen)(void *userdata); /* detached_is_known() became true */
        void *userdata;
} DetachedHost;

/** detached_ops - for clients. */
extern const DetachedOps detached_ops;

/** detached_new() - begin to find out what is on disk. Return: 0, or a negative errno; the table is the caller's in any case. */
int detached_new(const DetachedHost *host, DetachedTable **ret_table);
/** detached_begin() - session numbers of the supervisor before us are known, so submitters may be made. */
void detached_begin(DetachedTable *table);
/** detached_is_known() - clients may be let in: what is on disk is known, or cannot be known now. */
bool detached_is_known(const DetachedTable *table);
/** detached_tick() - do what is due. */
void detached_tick(DetachedTable *table, uint64_t now_ns);
/** detached_stop() - begin nothing any more, and close the submitters. NULL is fine. */
void detached_stop(DetachedTable *table);
/** detached_close() - the handles; the loop goes on until the disk has done what was begun. NULL is fine. */
void detached_close(DetachedTable *table);
/** detached_free() - once the loop has run out. NULL is fine. Return: NULL. */
DetachedTable *detached_free(DetachedTable *table);

#endif
