/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ARCHIVE_STATE_H
#define GPUQ_SUPERVISOR_ARCHIVE_STATE_H

/*
 * What the files of the archive share.
 */

#include <sqlite3.h>

#include "archive.h"

struct Archive {
        sqlite3 *db;
};

/** archive_error() - SQLite's result @code. Return: as archive_open(). */
int archive_error(const Archive *archive, int code);
/**
 * archive_keep_accounts() - within a transaction, note the accounts of the batch's Slurm jobs
 * @folder: with a file account-NUMBER for each
 *
 * A job without such a file has no account. Return: SQLITE_DONE or SQLITE_OK, or SQLite's error.
 */
int archive_keep_accounts(Archive *archive, const TallyBatch *batch, const char *folder);
/** archive_prune_accounts() - of Slurm jobs without rows since @before_ms. Return: as archive_keep_accounts(). */
int archive_prune_accounts(Archive *archive, uint64_t before_ms);

#endif
