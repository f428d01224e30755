/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_STORE_H
#define GPUQ_SUPERVISOR_STORE_H

/*
 * Store
 *
 * Detached jobs on disk:
 *
 *     jobs.sqlite      what is to run, and how it ended: a row each, with a checksum
 *     NUMBER.UID.in    the bytes that a job reads, then the images of its modules
 *     NUMBER.UID.out   the bytes that it wrote
 *
 * A file is written and synced before the row that counts on it is committed, and removed after
 * that row. So a file without a row is the remains of an interrupted call; opening the store
 * removes it, unless rows may be lost. SQLite's exclusive lock keeps other daemons out.
 *
 * Payload bytes are not in SQLite. 1 GiB as rows of 1 MiB took as long to write as a file (3 to 5 s),
 * but 6 to 9 s instead of 3 s to read back from the disk (SQLite 3.40, pages of 64 KiB; more with
 * smaller ones). Its one writer would let everybody's small jobs wait meanwhile, and the database
 * would not give back the space of fetched results.
 *
 * No loop and no log. Calls block on the disk. Any thread may call, for one job one at a time.
 */

#include "extent.h"
#include "payload.h"
#include "proto/detached.pb-c.h"
#include "util/macro.h"

typedef struct Store Store;

enum {
        _STORE_E_SUCCESS,
        STORE_E_DAMAGED = PAYLOAD_E_DAMAGED,
        STORE_E_BUSY,    /* another daemon uses it */
        STORE_E_VERSION, /* a newer gpuqd wrote it */
};

typedef struct StoredJob {
        uint32_t number;
        uint32_t uid;
        Gpuq__Detached__Record *record; /* NULL: damaged */
        Gpuq__Detached__End *end;       /* NULL: it has not ended */
        char *damage;                   /* what is wrong; NULL: nothing */
        Extent *extents;                /* of the record's job, in its one arena */
        size_t n_extents;
} StoredJob;

/* What is in a store when it is opened. */
typedef struct StoreContent {
        StoredJob *jobs; /* by number */
        size_t n_jobs;
        uint32_t last;  /* the highest number that may have been given out */
        unsigned n_old; /* folders of jobs in the format before this one */
} StoreContent;

/**
 * store_open() - the folder @path, which is there and ours
 *
 * Return: 0 with both outputs, STORE_E_DAMAGED: the database as a whole, STORE_E_BUSY, STORE_E_VERSION, or a negative errno.
 */
int store_open(const char *path, Store **ret_store, StoreContent *ret_content);
/** store_free() - NULL is fine. Return: NULL. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store, store_free)
/** store_content_clear() - jobs that were not taken out of it. */
void store_content_clear(StoreContent *content);

/** stored_job_check() - is its record one that this program can use? Fills in the extents. Return: 0, STORE_E_DAMAGED, or -ENOMEM. */
int stored_job_check(StoredJob *job);
/** stored_job_clear() - all that it points to. */
void stored_job_clear(StoredJob *job);
/** stored_job_parts() - its extents in an arena: those of its input, or of its @output. @parts: room for n_extents. Return: how many. */
size_t stored_job_parts(const StoredJob *job, bool output, int fd, PayloadPart *parts);

/** store_add() - a new job, with its input from the parts. Return: 0: all is synced; or a negative errno: nothing is left of it. */
int store_add(Store *store, StoredJob *job, const PayloadPart *parts, size_t n_parts);
/** store_load() - its input, or its @output, into the parts. Return: 0, STORE_E_DAMAGED, which is noted, with @damage, or a negative errno. */
int store_load(Store *store, const StoredJob *job, bool output, const PayloadPart *parts,
               size_t n_parts, char damage[PAYLOAD_DAMAGE_MAX]);
/** store_end() - job->end, with its output from the parts. The input goes. Return: 0: all is synced; or a negative errno: nothing has changed. */
int store_end(Store *store, StoredJob *job, const PayloadPart *parts, size_t n_parts);
/** store_remove() - it is not found any more once this returns 0. Return: 0, or a negative errno. */
int store_remove(Store *store, const StoredJob *job);

#endif
