/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_STORE_H
#define GPUQ_SUPERVISOR_STORE_H

/*
 * Store
 *
 * Detached jobs on disk:
 *
 *     jobs.sqlite      jobs and their ends: one row each, with a checksum
 *     NUMBER.UID.in    a job's input, then the images of its modules
 *     NUMBER.UID.out   a job's output
 *
 * A file is written and synced before the row that refers to it is committed, and removed after that
 * row. A file without a row is therefore left over from an interrupted call. Opening the store removes
 * it, unless rows may be lost. SQLite's exclusive lock keeps other daemons out.
 *
 * Payload bytes are not in SQLite. 1 GiB as rows of 1 MiB took as long to write as a file (3 to 5 s),
 * but 6 to 9 s instead of 3 s to read back from the disk (SQLite 3.40, pages of 64 KiB; more with
 * smaller ones). SQLite's single writer would delay other users' small jobs meanwhile, and the
 * database would not give back the space of fetched results.
 *
 * No loop and no log. Calls block on the disk. Any thread may call, with one call per job at a time.
 */

#include "extent.h"
#include "payload.h"
#include "proto/detached.pb-c.h"
#include "util/macro.h"

typedef struct Store Store;

enum {
        _STORE_E_SUCCESS,
        STORE_E_DAMAGED = PAYLOAD_E_DAMAGED,
        STORE_E_BUSY,    /* another daemon uses the store */
        STORE_E_VERSION, /* a newer gpuqd wrote it */
        STORE_E_SHARE,   /* too little of the disk would be left for others */
};

typedef struct StoredJob {
        uint32_t number;
        uint32_t uid;
        Gpuq__Detached__Record *record; /* NULL: damaged */
        Gpuq__Detached__End *end;       /* NULL: it has not ended */
        char *damage;                   /* the problem; NULL: none */
        Extent *extents;                /* of the record's job, in the job's one arena */
        size_t n_extents;
} StoredJob;

/* The content of a store when it is opened. */
typedef struct StoreContent {
        StoredJob *jobs; /* by number */
        size_t n_jobs;
        uint32_t last;  /* the highest number that may have been given out */
        unsigned n_old; /* folders of jobs in the previous format */
} StoreContent;

/**
 * store_open() - open the existing folder @path of this process's user
 *
 * Return: 0 with both outputs, STORE_E_DAMAGED: the database as a whole, STORE_E_BUSY, STORE_E_VERSION, or a negative errno.
 */
int store_open(const char *path, Store **ret_store, StoreContent *ret_content);
/** store_free() - NULL is fine. Return: NULL. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store, store_free)
/** store_content_clear() - free the jobs that are still in it. */
void store_content_clear(StoreContent *content);

/**
 * stored_job_check() - whether this program can use its record
 *
 * Sets the extents.
 *
 * Return: 0, STORE_E_DAMAGED, or -ENOMEM.
 */
int stored_job_check(StoredJob *job);
/** stored_job_clear() - free all that it points to. */
void stored_job_clear(StoredJob *job);
/**
 * stored_job_parts() - its input extents, or those of its @output, in an arena
 *
 * @parts: n_extents entries suffice.
 *
 * Return: their number.
 */
size_t stored_job_parts(const StoredJob *job, bool output, int fd, PayloadPart *parts);

/**
 * store_check_share() - may a user have more of the disk?
 * @n_held: the user's bytes there, with the new ones
 * @n_new:  the new ones
 *
 * A user has at most half of what was free without that user's files, as far as limits allow that.
 *
 * Return: 0, STORE_E_SHARE, or a negative errno: -ENOSPC if the disk has no room for them at all.
 */
int store_check_share(const Store *store, uint64_t n_held, uint64_t n_new);
/**
 * store_add() - add a job with its input from the parts
 *
 * Return: 0: all is synced; or a negative errno: nothing is left of it.
 */
int store_add(Store *store, StoredJob *job, const PayloadPart *parts, size_t n_parts);
/**
 * store_load() - read its input, or its @output, into the parts
 *
 * Return: 0, STORE_E_DAMAGED (recorded) with @damage, or a negative errno.
 */
int store_load(Store *store, const StoredJob *job, bool output, const PayloadPart *parts,
               size_t n_parts, char damage[PAYLOAD_DAMAGE_MAX]);
/**
 * store_end() - write job->end, with its output from the parts, and remove the input
 *
 * Return: 0: all is synced; or a negative errno: nothing has changed.
 */
int store_end(Store *store, StoredJob *job, const PayloadPart *parts, size_t n_parts);
/** store_remove() - after success it is not found any more. Return: 0, or a negative errno. */
int store_remove(Store *store, const StoredJob *job);

#endif
