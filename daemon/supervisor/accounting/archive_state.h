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

#endif
