/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients may read of the archive, packed for them.
 */
#include "archive.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "archive_state.h"

/* The columns of a row, in the order of COLUMNS. */
enum {
        COLUMN_ROW,
        COLUMN_AT,
        COLUMN_UID,
        COLUMN_GID,
        COLUMN_ID,
        COLUMN_DEVICE,
        COLUMN_STATE,
        COLUMN_CODE,
        COLUMN_N,
        COLUMN_WAITED,
        COLUMN_RAN,
        COLUMN_GPU,
        COLUMN_BYTES,
        COLUMN_RETRIES,
        COLUMN_LABEL,
        COLUMN_KERNELS,
        COLUMN_REASON,
        COLUMN_WAITED_SKETCH,
        COLUMN_RAN_SKETCH,
        COLUMN_SLURM_JOB,
};

/* ---- a page of rows -------------------------------------------------------- */

typedef struct PageRow {
        Gpuq__V1__HistoryRow row;
        Gpuq__V1__Spread waited;
        Gpuq__V1__Spread ran;
        char label[LIMIT_JOB_LABEL + 1];
        char kernels[TALLY_KERNELS_MAX + 1];
        char reason[TALLY_REASON_MAX + 1];
} PageRow;

typedef struct Page {
        const ArchiveQuery *query;
        PageRow rows[ARCHIVE_PAGE];
        Gpuq__V1__HistoryRow *list[ARCHIVE_PAGE];
        Gpuq__V1__History history;
} Page;

static uint64_t column_number(sqlite3_stmt *statement, int column) {
        return (uint64_t)sqlite3_column_int64(statement, column);
}

static const char *column_text(sqlite3_stmt *statement, int column) {
        const char *text = (const char *)sqlite3_column_text(statement, column);

        return text ? text : "";
}

/* Return: NULL: it is the row of a single job. */
static Gpuq__V1__Spread *column_spread(sqlite3_stmt *statement, int column,
                                       Gpuq__V1__Spread *spread) {
        const uint8_t *data = sqlite3_column_blob(statement, column);
        Sketch sketch = {};

        if (!data)
                return NULL;
        sketch_unpack_add(&sketch, data, (size_t)sqlite3_column_bytes(statement, column));
        gpuq__v1__spread__init(spread);
        spread->median = sketch_quantile(&sketch, 0.5);
        spread->p95 = sketch_quantile(&sketch, 0.95);
        spread->p99 = sketch_quantile(&sketch, 0.99);
        return spread;
}

static bool kernels_include(const char *kernels, const char *name) {
        size_t n_name = strlen(name);

        for (;;) {
                size_t n = strcspn(kernels, ",");

                if (n == n_name && strncmp(kernels, name, n) == 0)
                        return true;
                if (!kernels[n])
                        return false;
                kernels += n + 1 + (kernels[n + 1] == ' ');
        }
}

/* Whose and where. */
static bool page_names(const ArchiveQuery *query, sqlite3_stmt *statement) {
        uint64_t id = column_number(statement, COLUMN_ID),
                 uid = column_number(statement, COLUMN_UID);
        bool has_id = !query->n_ids, has_uid = !query->n_uids;

        for (size_t i = 0; i < query->n_ids && !has_id; ++i)
                has_id = query->ids[i] == id;
        for (size_t i = 0; i < query->n_uids && !has_uid; ++i)
                has_uid = query->uids[i] == uid;
        return has_id && has_uid &&
               (!query->device ||
                query->device == (uint32_t)(sqlite3_column_int(statement, COLUMN_DEVICE) + 1));
}

static bool page_wants(const ArchiveQuery *query, sqlite3_stmt *statement) {
        uint64_t at_ms = column_number(statement, COLUMN_AT);

        if (sqlite3_column_type(statement, COLUMN_WAITED_SKETCH) == SQLITE_NULL &&
            at_ms < query->since_ms)
                return false;
        if (!page_names(query, statement))
                return false;
        if (query->states &&
            !(query->states & 1u << (sqlite3_column_int(statement, COLUMN_STATE) & 31)))
                return false;
        if (query->slurm_job && column_number(statement, COLUMN_SLURM_JOB) != query->slurm_job)
                return false;
        if (query->has_label && strcmp(column_text(statement, COLUMN_LABEL), query->label) != 0)
                return false;
        return !*query->kernel ||
               kernels_include(column_text(statement, COLUMN_KERNELS), query->kernel);
}

static void page_add(Page *page, sqlite3_stmt *statement) {
        PageRow *to = &page->rows[page->history.n_rows];
        Gpuq__V1__HistoryRow *row = &to->row;

        gpuq__v1__history_row__init(row);
        snprintf(to->label, sizeof(to->label), "%s", column_text(statement, COLUMN_LABEL));
        snprintf(to->kernels, sizeof(to->kernels), "%s", column_text(statement, COLUMN_KERNELS));
        snprintf(to->reason, sizeof(to->reason), "%s", column_text(statement, COLUMN_REASON));
        row->label = to->label;
        row->kernels = to->kernels;
        row->reason = to->reason;
        row->id = column_number(statement, COLUMN_ID);
        row->at_ms = column_number(statement, COLUMN_AT);
        row->uid = (uint32_t)column_number(statement, COLUMN_UID);
        row->gid = (uint32_t)column_number(statement, COLUMN_GID);
        row->device = (uint32_t)column_number(statement, COLUMN_DEVICE) + 1;
        row->state = (Gpuq__V1__State)sqlite3_column_int(statement, COLUMN_STATE);
        row->code = (Gpuq__V1__Code)sqlite3_column_int(statement, COLUMN_CODE);
        row->jobs = column_number(statement, COLUMN_N);
        row->waited_us = column_number(statement, COLUMN_WAITED);
        row->ran_us = column_number(statement, COLUMN_RAN);
        row->gpu_ns = column_number(statement, COLUMN_GPU);
        row->bytes = column_number(statement, COLUMN_BYTES);
        row->retries = column_number(statement, COLUMN_RETRIES);
        row->slurm_job = (uint32_t)column_number(statement, COLUMN_SLURM_JOB);
        row->waited = column_spread(statement, COLUMN_WAITED_SKETCH, &to->waited);
        row->ran = column_spread(statement, COLUMN_RAN_SKETCH, &to->ran);
        page->list[page->history.n_rows++] = row;
}

/* Ends after so many rows, wanted or not, so that no answer takes long. */
static int page_fill(Page *page, sqlite3_stmt *statement) {
        Gpuq__V1__History *history = &page->history;
        unsigned n_seen = 0;
        int code;

        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                if (page_wants(page->query, statement))
                        page_add(page, statement);
                if (history->n_rows < ARCHIVE_PAGE && ++n_seen < ARCHIVE_SCAN)
                        continue;
                history->next_ms = column_number(statement, COLUMN_AT);
                history->next_row = column_number(statement, COLUMN_ROW);
                break;
        }
        return code;
}

/* A row of several jobs began up to a minute before their ends. */
static void query_bind(sqlite3_stmt *statement, const ArchiveQuery *query) {
        uint64_t from_ms =
                query->since_ms > TALLY_MINUTE_MS ? query->since_ms - TALLY_MINUTE_MS + 1 : 0;
        bool is_first = !query->next_ms && !query->next_row;

        sqlite3_bind_int64(statement, 1, (int64_t)(is_first ? from_ms : query->next_ms));
        sqlite3_bind_int64(statement, 2, (int64_t)query->until_ms);
        sqlite3_bind_int64(statement, 3, is_first ? -1 : (int64_t)query->next_row);
        if (query->one_user)
                sqlite3_bind_int64(statement, 4, query->uid);
}

static int pack(const ProtobufCMessage *message, uint8_t **ret_data, size_t *ret_n_data) {
        uint8_t *data;

        data = malloc(protobuf_c_message_get_packed_size(message) + 1);
        if (!data)
                return -ENOMEM;
        *ret_n_data = protobuf_c_message_pack(message, data);
        *ret_data = data;
        return 0;
}

int archive_history(Archive *archive, const ArchiveQuery *query, uint8_t **ret_data,
                    size_t *ret_n_data) {
        static const char of_user[] = "SELECT * FROM ends WHERE uid = ?4 AND at >= ?1 AND at < ?2 "
                                      "AND (at > ?1 OR row > ?3) ORDER BY at, row",
                          of_all[] = "SELECT * FROM ends WHERE at >= ?1 AND at < ?2 "
                                     "AND (at > ?1 OR row > ?3) ORDER BY at, row";
        _cleanup_(freep) Page *page = calloc(1, sizeof(*page));
        sqlite3_stmt *statement = NULL;
        int code, r;

        if (!page)
                return -ENOMEM;
        page->query = query;
        gpuq__v1__history__init(&page->history);
        page->history.rows = page->list;
        code = sqlite3_prepare_v2(archive->db, query->one_user ? of_user : of_all, -1, &statement,
                                  NULL);
        if (code == SQLITE_OK) {
                query_bind(statement, query);
                code = page_fill(page, statement);
        }
        r = archive_error(archive, code);
        sqlite3_finalize(statement);
        return r ? r : pack(&page->history.base, ret_data, ret_n_data);
}

/* ---- a report -------------------------------------------------------------- */

typedef struct Sums {
        Gpuq__V1__Grouping grouping;
        Gpuq__V1__ReportRow rows[ARCHIVE_SUMS];
        char names[ARCHIVE_SUMS][LIMIT_JOB_LABEL + 1]; /* labels or accounts */
        Gpuq__V1__ReportRow *list[ARCHIVE_SUMS];
        Gpuq__V1__Report report;
} Sums;

static void sums_add(Sums *sums, sqlite3_stmt *statement) {
        size_t i = sums->report.n_rows++;
        Gpuq__V1__ReportRow *row = &sums->rows[i];

        gpuq__v1__report_row__init(row);
        snprintf(sums->names[i], sizeof(sums->names[i]), "%s", column_text(statement, 2));
        row->uid = (uint32_t)column_number(statement, 0);
        row->gid = (uint32_t)column_number(statement, 1);
        if (sums->grouping == GPUQ__V1__GROUPING__BY_ACCOUNT)
                row->account = sums->names[i];
        else
                row->label = sums->names[i];
        row->slurm_job = (uint32_t)column_number(statement, 3);
        row->jobs = column_number(statement, 4);
        row->failed = column_number(statement, 5);
        row->cancelled = column_number(statement, 6);
        row->waited_us = column_number(statement, 7);
        row->ran_us = column_number(statement, 8);
        row->gpu_ns = column_number(statement, 9);
        row->bytes = column_number(statement, 10);
        row->retries = column_number(statement, 11);
        sums->list[i] = row;
}

static int sums_fill(Sums *sums, sqlite3_stmt *statement) {
        int code;

        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                if (sums->report.n_rows == ARCHIVE_SUMS) {
                        sums->report.cut = true;
                        break;
                }
                sums_add(sums, statement);
        }
        return code;
}

static uint64_t clock_ms(void) {
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int report_takes_long(void *userdata) {
        return clock_ms() > *(const uint64_t *)userdata;
}

/* "AND uid IN (1,2)", or nothing. */
static void report_users(const ArchiveQuery *query, char *sql, size_t n_sql) {
        size_t n = 0;

        sql[0] = '\0';
        for (size_t i = 0; i < query->n_uids; ++i)
                n += (size_t)snprintf(sql + n, n_sql - n, "%s%u", i ? "," : "AND uid IN (",
                                      query->uids[i]);
        if (n)
                snprintf(sql + n, n_sql - n, ")");
}

/* total() and not sum(), which fails if a number gets too large. */
static int report_prepare(Archive *archive, const ArchiveQuery *query, sqlite3_stmt **ret) {
        static const char *const keys[][2] = {
                [GPUQ__V1__GROUPING__BY_USER] = {"uid, max(gid), '', 0", "uid"},
                [GPUQ__V1__GROUPING__BY_GROUP] = {"0, gid, '', 0", "gid"},
                [GPUQ__V1__GROUPING__BY_LABEL] = {"uid, 0, label, 0", "uid, label"},
                [GPUQ__V1__GROUPING__BY_SLURM_JOB] = {"uid, max(gid), '', slurm_job",
                                                      "uid, slurm_job"},
                [GPUQ__V1__GROUPING__BY_ACCOUNT] =
                        {"0, 0, ifnull((SELECT account FROM accounts WHERE "
                         "accounts.slurm_job = ends.slurm_job), ''), 0",
                         "3"}, /* that column */
        };
        char users[16 + ARCHIVE_NAMED * 11], sql[800 + sizeof(users)];

        report_users(query, users, sizeof(users));
        snprintf(sql, sizeof(sql),
                 "SELECT %s, total(n), total(n * (state = %d)), total(n * (state = %d)), "
                 "total(waited), total(ran), total(gpu), total(bytes), total(retries) FROM ends "
                 "WHERE at >= ?1 AND "
                 "at < ?2 %s %s %s GROUP BY %s ORDER BY total(gpu) DESC LIMIT %u",
                 keys[query->grouping][0], JOB_FAILED, JOB_CANCELLED,
                 query->one_user ? "AND uid = ?3" : "", users,
                 query->device ? "AND device = ?4" : "", keys[query->grouping][1],
                 ARCHIVE_SUMS + 1);
        return sqlite3_prepare_v2(archive->db, sql, -1, ret, NULL);
}

int archive_report(Archive *archive, const ArchiveQuery *query, uint8_t **ret_data,
                   size_t *ret_n_data) {
        _cleanup_(freep) Sums *sums = calloc(1, sizeof(*sums));
        uint64_t until_ms = clock_ms() + ARCHIVE_REPORT_MS;
        sqlite3_stmt *statement = NULL;
        int code, r;

        if (!sums)
                return -ENOMEM;
        sums->grouping = query->grouping;
        gpuq__v1__report__init(&sums->report);
        sums->report.rows = sums->list;
        code = report_prepare(archive, query, &statement);
        if (code == SQLITE_OK) {
                sqlite3_bind_int64(statement, 1, (int64_t)query->since_ms);
                sqlite3_bind_int64(statement, 2, (int64_t)query->until_ms);
                if (query->one_user)
                        sqlite3_bind_int64(statement, 3, query->uid);
                if (query->device)
                        sqlite3_bind_int64(statement, 4, query->device - 1);
                sqlite3_progress_handler(archive->db, 10000, report_takes_long, &until_ms);
                code = sums_fill(sums, statement);
                sqlite3_progress_handler(archive->db, 0, NULL, NULL);
        }
        r = archive_error(archive, code);
        sqlite3_finalize(statement);
        return r ? r : pack(&sums->report.base, ret_data, ret_n_data);
}
