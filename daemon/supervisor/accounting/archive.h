/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ARCHIVE_H
#define GPUQ_SUPERVISOR_ARCHIVE_H

/*
 * Archive
 *
 * The rows of the history on disk, in one SQLite database. Calls block on the disk and come from one
 * thread at a time. No loop and no log.
 *
 * A write-ahead log without a sync for each transaction: after a power failure the last seconds may be
 * missing, and the database is whole. SQLite's exclusive lock keeps other daemons out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tally.h"

#define ARCHIVE_PAGE      256u         /* rows in one answer */
#define ARCHIVE_SCAN      20000u       /* rows that are looked at for one answer */
#define ARCHIVE_SUMS      1000u        /* lines of one report */
#define ARCHIVE_BYTES_MAX (1ull << 30) /* beyond that rows of the user with the most go */
#define ARCHIVE_PRUNE     2000u        /* rows removed at a time */
#define ARCHIVE_REPORT_MS 10000u       /* for one report */
#define ARCHIVE_NAMED     100u         /* users or jobs that a query names */

typedef struct Archive Archive;

enum {
        _ARCHIVE_E_SUCCESS,
        ARCHIVE_E_DAMAGED,
        ARCHIVE_E_BUSY,    /* another daemon uses it */
        ARCHIVE_E_VERSION, /* a newer gpuqd wrote it; that of an older one is converted */
        ARCHIVE_E_LONG,    /* the report took ARCHIVE_REPORT_MS */
};

typedef struct ArchiveQuery {
        bool one_user;
        uint32_t uid;
        uint32_t uids[ARCHIVE_NAMED];       /* unless one_user */
        size_t n_uids;                      /* 0: all */
        uint64_t ids[ARCHIVE_NAMED];        /* of single jobs */
        size_t n_ids;                       /* 0: all */
        uint32_t device;                    /* index + 1; 0: all */
        uint64_t since_ms;                  /* since 1970 */
        uint64_t until_ms;                  /* not included */
        uint32_t states;                    /* bits 1 << State; 0: all */
        char kernel[TALLY_KERNELS_MAX + 1]; /* one of the row's; "": all */
        char label[LIMIT_JOB_LABEL + 1];
        bool has_label;
        uint32_t slurm_job; /* 0: all */
        uint64_t next_ms;   /* where the page before ended; both 0: the first page */
        uint64_t next_row;
        Gpuq__V1__Grouping grouping; /* of a report */
} ArchiveQuery;

/** archive_open() - the database file @path, made if missing. Return: 0, or a negative errno or ARCHIVE_E_. */
int archive_open(const char *path, Archive **ret_archive);
/** archive_free() - NULL is fine. Return: NULL. */
Archive *archive_free(Archive *archive);
DEFINE_CLEANUP(Archive, archive_free)
/** archive_set_aside() - rename a damaged file to PATH.damaged, in the place of an earlier one. Return: 0, or a negative errno. */
int archive_set_aside(const char *path);
/** archive_remove() - delete the file. */
void archive_remove(const char *path);

/**
 * archive_write() - all of a batch or nothing
 * @slurm_dir: where the accounts of Slurm's jobs are, see archive_account.c; NULL: nowhere
 *
 * Return: as archive_open().
 */
int archive_write(Archive *archive, const TallyBatch *batch, const char *slurm_dir);
/**
 * archive_prune() - remove some rows from before @before_ms, or, if the file has more than
 * @n_bytes_max, the oldest rows of the user who has the most rows
 *
 * Return: as archive_open().
 */
int archive_prune(Archive *archive, uint64_t before_ms, uint64_t n_bytes_max, bool *ret_has_more);
/**
 * archive_history() - a page of rows, packed as Gpuq__V1__History; *@ret_data is the caller's
 *
 * Return: as archive_open().
 */
int archive_history(Archive *archive, const ArchiveQuery *query, uint8_t **ret_data,
                    size_t *ret_n_data);
/** archive_report() - sums, packed as Gpuq__V1__Report. Return: as archive_open(). */
int archive_report(Archive *archive, const ArchiveQuery *query, uint8_t **ret_data,
                   size_t *ret_n_data);

#endif
