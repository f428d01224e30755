/* SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "archive_state.h"

#define ARCHIVE_VERSION 2

/* ---- SQLite ---------------------------------------------------------------- */

int archive_error(const Archive *archive, int code) {
        switch (code & 0xff) {
                case SQLITE_OK:
                case SQLITE_ROW:
                case SQLITE_DONE:
                        return 0;
                case SQLITE_BUSY:
                        return ARCHIVE_E_BUSY;
                case SQLITE_INTERRUPT:
                        return ARCHIVE_E_LONG;
                case SQLITE_ERROR: /* the statements are correct, so the tables are not */
                case SQLITE_CORRUPT:
                case SQLITE_NOTADB:
                        return ARCHIVE_E_DAMAGED;
                case SQLITE_NOMEM:
                        return -ENOMEM;
                case SQLITE_FULL:
                        return -ENOSPC;
                case SQLITE_READONLY:
                        return -EROFS;
                default:
                        code = archive->db ? sqlite3_system_errno(archive->db) : 0;
                        return code ? -code : -EIO;
        }
}

static int archive_exec(Archive *archive, const char *sql) {
        return archive_error(archive, sqlite3_exec(archive->db, sql, NULL, NULL, NULL));
}

/* Return: as archive_open(). */
static int archive_number(Archive *archive, const char *sql, int64_t *ret_number) {
        sqlite3_stmt *statement = NULL;
        int code;

        code = sqlite3_prepare_v2(archive->db, sql, -1, &statement, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                *ret_number = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
        return archive_error(archive, code);
}

/* ---- open ------------------------------------------------------------------ */

#define ARCHIVE_ACCOUNTS                                                                           \
        "CREATE TABLE accounts (slurm_job INTEGER PRIMARY KEY, at INTEGER, account TEXT);"

static int archive_prepare(Archive *archive) {
        static const char schema[] =
                "CREATE TABLE ends (row INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, uid "
                "INTEGER, "
                "gid INTEGER, id INTEGER, device INTEGER, state INTEGER, code INTEGER, n INTEGER, "
                "waited INTEGER, ran INTEGER, gpu INTEGER, bytes INTEGER, retries INTEGER, "
                "label TEXT, kernels TEXT, reason TEXT, waited_sketch BLOB, ran_sketch BLOB, "
                "slurm_job INTEGER NOT NULL DEFAULT 0);"
                "CREATE INDEX by_time ON ends (at);"
                "CREATE INDEX by_user ON ends (uid, at);" ARCHIVE_ACCOUNTS
                "PRAGMA user_version = 2", /* ARCHIVE_VERSION */
                from_1[] = "ALTER TABLE ends ADD COLUMN slurm_job INTEGER NOT NULL DEFAULT "
                           "0;" ARCHIVE_ACCOUNTS "PRAGMA user_version = 2";
        int64_t version = 0;
        int r;

        r = archive_exec(archive,
                         "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; "
                         "PRAGMA synchronous = NORMAL; PRAGMA secure_delete = OFF; "
                         "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 1048576; "
                         "BEGIN EXCLUSIVE");
        if (r == 0)
                r = archive_number(archive, "PRAGMA user_version", &version);
        if (r)
                return r;
        if (version == 0)
                r = archive_exec(archive, schema);
        else if (version == 1)
                r = archive_exec(archive, from_1);
        else if (version != ARCHIVE_VERSION)
                r = ARCHIVE_E_VERSION;
        if (r == 0)
                r = archive_exec(archive, "COMMIT");
        return r;
}

int archive_open(const char *path, Archive **ret_archive) {
        _cleanup_(archive_freep) Archive *archive = NULL;
        _cleanup_(closep) int fd = -1;
        int r;

        fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                  0600); /* SQLite's has mode 0644 */
        if (fd < 0)
                return -errno;
        archive = calloc(1, sizeof(*archive));
        if (!archive)
                return -ENOMEM;
        r = archive_error(archive,
                          sqlite3_open_v2(path, &archive->db,
                                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
        if (r == 0)
                r = archive_prepare(archive);
        if (r)
                return r;
        *ret_archive = TAKE_PTR(archive);
        return 0;
}

Archive *archive_free(Archive *archive) {
        if (!archive)
                return NULL;
        (void)sqlite3_close(archive->db);
        free(archive);
        return NULL;
}

static void archive_remove_log(const char *path) {
        _cleanup_(freep) char *log = NULL;

        if (asprintf(&log, "%s-wal", path) < 0)
                log = NULL;
        else
                (void)unlink(log);
}

/* The log belongs to the file, and would damage the next one. */
int archive_set_aside(const char *path) {
        _cleanup_(freep) char *aside = NULL;

        if (asprintf(&aside, "%s.damaged", path) < 0) {
                aside = NULL;
                return -ENOMEM;
        }
        archive_remove_log(path);
        return rename(path, aside) < 0 ? -errno : 0;
}

void archive_remove(const char *path) {
        archive_remove_log(path);
        (void)unlink(path);
}

/* ---- write ----------------------------------------------------------------- */

/* The last parameters of a row. */
#define ROW_WAITED_SKETCH 17
#define ROW_RAN_SKETCH    18
#define ROW_SLURM_JOB     19

/* Its parameters from 1 on; the sketches and the Slurm job are not among them. */
static void row_bind(sqlite3_stmt *statement, const TallyRow *row) {
        const int64_t numbers[] = {
                (int64_t)row->at_ms,
                row->uid,
                row->gid,
                row->n_jobs == 1 ? (int64_t)row->id : 0,
                row->device,
                row->state,
                row->code,
                (int64_t)row->n_jobs,
                (int64_t)row->waited_us,
                (int64_t)row->ran_us,
                (int64_t)row->gpu_ns,
                (int64_t)MIN(row->n_bytes, (uint64_t)INT64_MAX),
                (int64_t)row->n_retries,
        };
        const char *texts[] = {row->label, row->kernels, row->reason};
        int at = 1;

        for (size_t i = 0; i < ARRAY_SIZE(numbers); ++i)
                sqlite3_bind_int64(statement, at++, numbers[i]);
        for (size_t i = 0; i < ARRAY_SIZE(texts); ++i)
                sqlite3_bind_text(statement, at++, texts[i], -1, SQLITE_STATIC);
        sqlite3_bind_int64(statement, ROW_SLURM_JOB, row->slurm_job);
}

static int statement_run(sqlite3_stmt *statement) {
        int code = sqlite3_step(statement);

        sqlite3_reset(statement);
        return code;
}

static int sketch_bind(sqlite3_stmt *statement, int at, const Sketch *sketch) {
        uint8_t data[SKETCH_BYTES_MAX];
        size_t n = sketch_pack(sketch, data);

        return sqlite3_bind_blob64(statement, at, data, n, SQLITE_TRANSIENT);
}

static void column_add_sketch(sqlite3_stmt *statement, int column, Sketch *sketch) {
        const uint8_t *data = sqlite3_column_blob(statement, column);

        if (data)
                sketch_unpack_add(sketch, data, (size_t)sqlite3_column_bytes(statement, column));
}

/* The statements of one transaction. */
typedef struct Writer {
        sqlite3_stmt *insert;
        sqlite3_stmt *find;
        sqlite3_stmt *update;
} Writer;

static void writer_clear(Writer *writer) {
        sqlite3_finalize(writer->insert);
        sqlite3_finalize(writer->find);
        sqlite3_finalize(writer->update);
}

static int writer_prepare(Archive *archive, Writer *writer) {
        int code;

        code = sqlite3_prepare_v2(archive->db,
                                  "INSERT INTO ends VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                                  "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
                                  -1, &writer->insert, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_prepare_v2(
                        archive->db,
                        "SELECT row, waited_sketch, ran_sketch FROM ends WHERE at = ?1 AND "
                        "uid = ?2 AND waited_sketch NOTNULL AND device = ?5 AND state = ?6 AND "
                        "code = ?7 AND "
                        "label = ?14 AND kernels = ?15 AND slurm_job = ?19",
                        -1, &writer->find, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_prepare_v2(
                        archive->db,
                        "UPDATE ends SET id = 0, n = n + ?8, waited = waited + ?9, ran = ran + "
                        "?10, "
                        "gpu = gpu + ?11, bytes = bytes + ?12, retries = retries + ?13, "
                        "waited_sketch = ?17, ran_sketch = ?18 WHERE row = ?1",
                        -1, &writer->update, NULL);
        return code;
}

/* Adds to the row of this minute, if there is one. */
static int write_share(Writer *writer, const TallyShare *share) {
        Sketch waited = share->waited, ran = share->ran;
        sqlite3_stmt *statement = writer->insert;
        int64_t row = 0;
        int code;

        row_bind(writer->find, &share->row);
        code = sqlite3_step(writer->find);
        if (code == SQLITE_ROW) {
                row = sqlite3_column_int64(writer->find, 0);
                column_add_sketch(writer->find, 1, &waited);
                column_add_sketch(writer->find, 2, &ran);
                statement = writer->update;
        }
        sqlite3_reset(writer->find);
        if (code != SQLITE_ROW && code != SQLITE_DONE)
                return code;

        row_bind(statement, &share->row);
        if (row)
                sqlite3_bind_int64(statement, 1, row);
        sketch_bind(statement, ROW_WAITED_SKETCH, &waited);
        sketch_bind(statement, ROW_RAN_SKETCH, &ran);
        return statement_run(statement);
}

static int write_rows(Writer *writer, const TallyBatch *batch) {
        int code = SQLITE_DONE;

        for (size_t i = 0; i < batch->n_singles && code == SQLITE_DONE; ++i) {
                row_bind(writer->insert, &batch->singles[i]);
                code = statement_run(writer->insert);
        }
        for (size_t i = 0; i < batch->n_shares && code == SQLITE_DONE; ++i)
                code = write_share(writer, &batch->shares[i]);
        return code;
}

int archive_write(Archive *archive, const TallyBatch *batch, const char *slurm_dir) {
        Writer writer = {};
        int code, r;

        r = archive_exec(archive, "BEGIN IMMEDIATE");
        if (r)
                return r;
        code = writer_prepare(archive, &writer);
        if (code == SQLITE_OK)
                code = write_rows(&writer, batch);
        if (code == SQLITE_DONE && slurm_dir)
                code = archive_keep_accounts(archive, batch, slurm_dir);
        r = archive_error(archive, code);
        writer_clear(&writer);
        if (r == 0)
                r = archive_exec(archive, "COMMIT");
        if (r)
                (void)archive_exec(archive, "ROLLBACK");
        return r;
}

/* ---- prune ----------------------------------------------------------------- */

static int archive_bytes(Archive *archive, uint64_t *ret_n_bytes) {
        int64_t n_pages = 0, n_free = 0, n_page = 0;
        int r;

        r = archive_number(archive, "PRAGMA page_count", &n_pages);
        if (r == 0)
                r = archive_number(archive, "PRAGMA freelist_count", &n_free);
        if (r == 0)
                r = archive_number(archive, "PRAGMA page_size", &n_page);
        if (r)
                return r;
        /* The file would seem to be too large, and its rows would go. */
        if (n_free < 0 || n_free > n_pages)
                return ARCHIVE_E_DAMAGED;
        *ret_n_bytes = (uint64_t)((n_pages - n_free) * n_page);
        return 0;
}

/* Of a file that is too large the oldest rows of one user go, so that no user pushes out the others'. */
int archive_prune(Archive *archive, uint64_t before_ms, uint64_t n_bytes_max, bool *ret_has_more) {
        static const char of_all[] = "DELETE FROM ends WHERE row IN (SELECT row FROM ends WHERE "
                                     "at < ?1 ORDER BY at LIMIT ?2)",
                          of_most[] = "DELETE FROM ends WHERE row IN (SELECT row FROM ends WHERE "
                                      "uid = (SELECT uid FROM ends GROUP BY uid "
                                      "ORDER BY count(*) DESC LIMIT 1) ORDER BY at LIMIT ?2)";
        sqlite3_stmt *statement = NULL;
        uint64_t n_bytes = 0;
        int code, n_gone = 0, r;

        r = archive_bytes(archive, &n_bytes);
        if (r)
                return r;
        code = sqlite3_prepare_v2(archive->db, n_bytes > n_bytes_max ? of_most : of_all, -1,
                                  &statement, NULL);
        if (code == SQLITE_OK) {
                sqlite3_bind_int64(statement, 1, (int64_t)before_ms);
                sqlite3_bind_int64(statement, 2, ARCHIVE_PRUNE);
                code = sqlite3_step(statement);
        }
        sqlite3_finalize(statement);
        if (code == SQLITE_DONE)
                n_gone = sqlite3_changes(archive->db);
        if (n_gone)
                code = archive_prune_accounts(archive, before_ms);
        r = archive_error(archive, code);
        if (r == 0)
                *ret_has_more = n_gone == (int)ARCHIVE_PRUNE;
        return r;
}
