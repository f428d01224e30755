/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of the history, damaged in any way, as the accounting opens, writes, prunes and reads
 * it. A file that is found to be damaged is set aside, and the next one is sound.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "archive.h"
#include "input.h"

#define HISTORY_PAGE      512u /* bytes of the database's pages, so that few hold much */
#define HISTORY_BYTES_MAX (64u << 10)
#define HISTORY_EDITS_MAX 64u
#define HISTORY_STEPS_MAX 12u
#define HISTORY_PAGES_MAX 16u /* of rows, read in a row */
#define HISTORY_MINUTE    1700000040000ull

/* A file as a sound gpuqd left it. */
typedef struct Original {
        uint8_t data[HISTORY_BYTES_MAX];
        size_t n;
} Original;

static char folder[64], path[96], wal_path[100], aside_path[110];
static Original database;
static Original database_before,
        log_beside; /* as a crash leaves them: the last rows are in the log */

static void must(bool is_so) {
        if (!is_so)
                abort();
}

/* ---- files ------------------------------------------------------------------- */

static void file_write(const char *to, const uint8_t *data, size_t n) {
        int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        must(fd >= 0 && write(fd, data, n) == (ssize_t)n);
        close(fd);
}

static void file_read(const char *from, Original *original) {
        int fd = open(from, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, original->data, sizeof(original->data));

        must(n > 0 && n < (ssize_t)sizeof(original->data));
        original->n = (size_t)n;
        close(fd);
}

static void files_remove(void) {
        (void)unlink(path);
        (void)unlink(wal_path);
        (void)unlink(aside_path);
}

static void folder_remove(void) {
        files_remove();
        (void)rmdir(folder);
}

/* ---- a sound one --------------------------------------------------------------- */

static TallyRow row_make(uint32_t uid, uint64_t at_ms) {
        TallyRow row = {
                .n_jobs = 1,
                .waited_us = 10,
                .ran_us = 2000,
                .gpu_ns = 1000,
                .id = 1ull << 32 | 5,
                .at_ms = at_ms,
                .uid = uid,
                .state = JOB_DONE,
                .label = "mine",
                .kernels = "add, scale",
                .reason = "it trapped",
        };

        return row;
}

static int archive_add(Archive *archive, unsigned n) {
        TallyShare share = {.row = row_make(1000, HISTORY_MINUTE)};
        TallyRow rows[8];

        for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
                rows[i] = row_make(1000 + i % 3, HISTORY_MINUTE + i * 20000);
        share.row.n_jobs = n;
        sketch_add(&share.waited, 10);
        sketch_add(&share.ran, 20);
        return archive_write(
                archive,
                &(TallyBatch){
                        .singles = rows, .n_singles = MIN(n, 8u), .shares = &share, .n_shares = 1},
                NULL);
}

/* With small pages; the archive makes its tables in it. */
static void database_begin(void) {
        char sql[40];
        sqlite3 *db;

        snprintf(sql, sizeof(sql), "PRAGMA page_size = %u; VACUUM", HISTORY_PAGE);
        must(sqlite3_open(path, &db) == SQLITE_OK);
        must(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
        sqlite3_close(db);
}

static void originals_make(void) {
        Archive *archive;

        database_begin();
        must(archive_open(path, &archive) == 0 && archive_add(archive, 8) == 0);
        archive_free(archive);
        file_read(path, &database_before);
        must(archive_open(path, &archive) == 0 && archive_add(archive, 3) == 0);
        file_read(wal_path, &log_beside);
        archive_free(archive);
        file_read(path, &database);
        files_remove();
}

static void start(void) {
        if (*folder)
                return;
        strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/gpuq-fuzz-XXXXXX"
                                                     : "/tmp/gpuq-fuzz-XXXXXX");
        must(mkdtemp(folder) != NULL);
        snprintf(path, sizeof(path), "%s/history.db", folder);
        snprintf(wal_path, sizeof(wal_path), "%s-wal", path);
        snprintf(aside_path, sizeof(aside_path), "%s.damaged", path);
        atexit(folder_remove);
        originals_make();
}

/* ---- damage -------------------------------------------------------------------- */

static void original_edit(Original *file, Input *input) {
        size_t at = input_u16(input) % file->n;
        size_t page = at / HISTORY_PAGE * HISTORY_PAGE;
        size_t other = input_u8(input) * HISTORY_PAGE % file->n;
        uint64_t number;

        switch (input_below(input, 8)) {
                case 0:
                        file->n = at + 1;
                        break;
                case 1:
                        memset(file->data + page, 0, MIN((size_t)HISTORY_PAGE, file->n - page));
                        break;
                case 2:
                        memmove(file->data + page, file->data + other,
                                MIN((size_t)HISTORY_PAGE, file->n - MAX(page, other)));
                        break;
                case 3:
                        number = __builtin_bswap64(input_edge(input)); /* as SQLite writes them */
                        memcpy(file->data + at, &number, MIN(sizeof(number), file->n - at));
                        break;
                default: /* most of all in a page's head, which the rest depends on */
                        file->data[page + at % 24] = input_u8(input);
                        break;
                case 7:
                        file->data[at] = input_u8(input);
        }
}

static void original_spoil(Original *file, Input *input) {
        for (unsigned n = input_below(input, HISTORY_EDITS_MAX); n && input->n; n--)
                original_edit(file, input);
}

static void files_make(Input *input) {
        unsigned what = input_below(input, 4);
        static Original spoilt;
        size_t n;

        if (what == 0) { /* no database at all, or a head that looks like one */
                const uint8_t *data = input_take(input, input_u16(input) % 1024, &n);

                file_write(path, data, n);
                return;
        }
        spoilt = what == 1 ? database : database_before;
        if (what < 3)
                original_spoil(&spoilt, input);
        file_write(path, spoilt.data, spoilt.n);
        if (what == 1)
                return;
        spoilt = log_beside;
        original_spoil(&spoilt, input);
        file_write(wal_path, spoilt.data, spoilt.n);
}

/* ---- what the accounting does ---------------------------------------------------- */

static int read_page(Archive *archive, ArchiveQuery *query) {
        Gpuq__V1__History *history;
        uint8_t *data;
        size_t n;
        int r;

        r = archive_history(archive, query, &data, &n);
        if (r)
                return r;
        history = gpuq__v1__history__unpack(NULL, n, data);
        must(history && history->n_rows <= ARCHIVE_PAGE);
        must((!history->next_ms && !history->next_row) || history->next_ms > query->next_ms ||
             (history->next_ms == query->next_ms && history->next_row > query->next_row));
        query->next_ms = history->next_ms;
        query->next_row = history->next_row;
        gpuq__v1__history__free_unpacked(history, NULL);
        free(data);
        return 0;
}

static int read_rows(Archive *archive, uint8_t how) {
        ArchiveQuery query = {
                .one_user = how & 1,
                .uid = 1000 + how / 64,
                .since_ms = how & 2 ? HISTORY_MINUTE + 30000 : 0,
                .until_ms = INT64_MAX,
                .has_label = how & 4,
                .kernel = "scale",
        };
        int r;

        if (how & 8)
                *query.kernel = '\0';
        for (unsigned i = 0; i < HISTORY_PAGES_MAX; i++) {
                r = read_page(archive, &query);
                if (r || (!query.next_ms && !query.next_row))
                        return r;
        }
        return 0;
}

static int read_report(Archive *archive, Input *input) {
        ArchiveQuery query = {.grouping = (Gpuq__V1__Grouping)input_below(input, 3),
                              .until_ms = INT64_MAX};
        Gpuq__V1__Report *report;
        uint8_t *data;
        size_t n;
        int r;

        r = archive_report(archive, &query, &data, &n);
        if (r)
                return r;
        report = gpuq__v1__report__unpack(NULL, n, data);
        must(report && report->n_rows <= ARCHIVE_SUMS);
        gpuq__v1__report__free_unpacked(report, NULL);
        free(data);
        return 0;
}

static int prune(Archive *archive, Input *input) {
        uint64_t before_ms = input_below(input, 2) ? HISTORY_MINUTE + 50000 : 0;
        bool has_more;

        return archive_prune(archive, before_ms, ARCHIVE_BYTES_MAX, &has_more);
}

static int step(Archive *archive, Input *input) {
        switch (input_below(input, 4)) {
                case 0:
                        return archive_add(archive, 1 + input_below(input, 8));
                case 1:
                        return read_rows(archive, input_u8(input));
                case 2:
                        return read_report(archive, input);
                default:
                        return prune(archive, input);
        }
}

/* Return: as archive_open(). */
static int use(Archive *archive, Input *input) {
        int r = 0;

        for (unsigned i = 0; i < HISTORY_STEPS_MAX && r == 0; i++)
                r = step(archive, input);
        return r;
}

/* A new file takes all. */
static void use_anew(void) {
        Archive *archive = NULL;

        must(archive_set_aside(path) == 0 && archive_open(path, &archive) == 0);
        must(archive_add(archive, 4) == 0 && read_rows(archive, 0) == 0);
        archive_free(archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        Input input = {data, n_data};
        Archive *archive = NULL;
        int r;

        start();
        files_make(&input);
        r = archive_open(path, &archive);
        if (r == 0)
                r = use(archive, &input);
        archive_free(archive);
        must(r <= 0 || r == ARCHIVE_E_DAMAGED || r == ARCHIVE_E_VERSION);
        if (r == ARCHIVE_E_DAMAGED)
                use_anew();
        files_remove();
        return 0;
}
