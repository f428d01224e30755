/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SPOOL_H
#define GPUQ_SUPERVISOR_SPOOL_H

/*
 * Spool
 *
 * Detached jobs on disk, a folder each:
 *
 *     last                  numbers up to this one may have been given out
 *     NUMBER.UID/job        what is to run: a Record, sealed
 *     NUMBER.UID/input      what its kernels read
 *     NUMBER.UID/image.N    its modules
 *     NUMBER.UID/output     what they wrote
 *     NUMBER.UID/end        how it ended: an End, sealed; input and images go then
 *     damaged/              folders in which something was wrong, for a person to look at
 *     lock                  held by the one who uses all this
 *
 * A folder is filled under another name and renamed once all in it is synced, so a
 * job is there wholly or not at all. "end" is written after "output" was synced. A
 * folder that is to go is renamed first. What has another name than these is the
 * remains of what was interrupted, and is removed when the spool is opened.
 *
 * Pure: no loop, no log, no table. Calls block on the disk, any thread may make them,
 * but at most one at a time for one job.
 */

#include <stdbool.h>

#include "proto/spool.pb-c.h"
#include "spool_file.h"

#define SPOOL_NAME_MAX 32u /* bytes of a folder's name */

typedef struct Spool Spool;

enum {
        SPOOL_E_BUSY = SPOOL_E_DAMAGED + 1, /* another daemon uses it */
};

/* What was found of one job; either has a record or is damaged. */
typedef struct SpoolEntry {
        uint32_t number;
        uint32_t uid;
        Gpuq__Spool__Record *record; /* the callee's */
        Gpuq__Spool__End *end;       /* NULL: it has not ended; the callee's */
        const char *damage;          /* NULL: none */
} SpoolEntry;

/* Return: 0, or a negative errno, which ends the scan. */
typedef int (*SpoolFound)(const SpoolEntry *entry, void *userdata);

/** spool_open() - the folder @path, which is there and ours. Return: 0, SPOOL_E_BUSY, or a negative errno. */
int spool_open(const char *path, Spool **ret_spool);
/** spool_free() - NULL is fine. Return: NULL. */
Spool *spool_free(Spool *spool);
DEFINE_CLEANUP(Spool, spool_free)

/**
 * spool_scan() - every job that is there, in no order; once, after spool_open()
 * @ret_last: the highest number that may have been given out
 *
 * Damaged ones are set aside here. Return: 0, or a negative errno.
 */
int spool_scan(Spool *spool, SpoolFound found, void *userdata, uint32_t *ret_last);

/**
 * spool_store() - a new job
 * @record: complete but for its digests, which are filled in here
 * @input:  of each extent of it, or NULL: they are not needed
 * @images: of each module of it; fd -1 of a built-in one
 *
 * Return: 0: all is synced; or a negative errno: nothing of it is left.
 */
int spool_store(Spool *spool, Gpuq__Spool__Record *record, const SpoolPart *input,
                const SpoolPart *images);
/**
 * spool_load() - the bytes of a job's input and images, checked
 * @arena:  descriptor of memory of record->size bytes
 * @images: descriptors, one for each module; -1 of a built-in one
 *
 * Return: 0, SPOOL_E_DAMAGED, or a negative errno.
 */
int spool_load(Spool *spool, const Gpuq__Spool__Record *record, int arena, const int *images,
               SpoolProblem *problem);
/**
 * spool_end() - how a job ended, and what it wrote
 * @end:   its digest is filled in here
 * @arena: -1: there is no output
 *
 * Return: 0: all is synced; or a negative errno: it is as it was.
 */
int spool_end(Spool *spool, const Gpuq__Spool__Record *record, Gpuq__Spool__End *end, int arena);
/** spool_load_output() - what a job wrote, one extent after the other, checked. Return: as spool_load(). */
int spool_load_output(Spool *spool, const Gpuq__Spool__Record *record, const Gpuq__Spool__End *end,
                      int fd, SpoolProblem *problem);
/** spool_output_bytes() - how much that is. */
uint64_t spool_output_bytes(const Gpuq__Spool__Record *record);
/** spool_remove() - a job is not to be found any more once this returns 0. Return: 0, or a negative errno. */
int spool_remove(Spool *spool, const Gpuq__Spool__Record *record);
/** spool_set_aside() - move it to damaged/. Return: 0, or a negative errno. */
int spool_set_aside(Spool *spool, uint32_t number, uint32_t uid);

#endif
