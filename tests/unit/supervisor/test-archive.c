/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history on disk: what is written is read, by whom and when, page by page; old rows go.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "archive.h"

#define ALICE  1000u
#define BOB    1001u
#define CAROL  1002u
#define MINUTE 1700000040000ull

typedef struct Play {
        char folder[32];
        char path[64];
        Archive *archive;
} Play;

static int play_new(void **state) {
        Play *play = calloc(1, sizeof(*play));

        strcpy(play->folder, "/tmp/gpuq-archive-XXXXXX");
        assert_non_null(mkdtemp(play->folder));
        snprintf(play->path, sizeof(play->path), "%s/history.db", play->folder);
        assert_int_equal(archive_open(play->path, &play->archive), 0);
        *state = play;
        return 0;
}

static int play_free(void **state) {
        Play *play = *state;
        char aside[80];

        archive_free(play->archive);
        archive_remove(play->path);
        snprintf(aside, sizeof(aside), "%s.damaged", play->path);
        (void)unlink(aside);
        assert_int_equal(rmdir(play->folder), 0);
        free(play);
        return 0;
}

static void reopen(Play *play) {
        play->archive = archive_free(play->archive);
        assert_int_equal(archive_open(play->path, &play->archive), 0);
}

static TallyRow job(uint32_t uid, const char *kernels, uint64_t at_ms) {
        TallyRow row = {
                .n_jobs = 1,
                .waited_us = 10,
                .ran_us = 200000,
                .gpu_ns = 100000000,
                .n_bytes = 64,
                .id = 1ull << 32 | 5,
                .at_ms = at_ms,
                .uid = uid,
                .gid = 100,
                .state = JOB_DONE,
        };

        snprintf(row.kernels, sizeof(row.kernels), "%s", kernels);
        return row;
}

static void write_single(Play *play, TallyRow row) {
        assert_int_equal(archive_write(play->archive,
                                       &(TallyBatch){.singles = &row, .n_singles = 1, .n_jobs = 1},
                                       play->folder),
                         0);
}

static void write_share(Play *play, uint32_t uid, size_t n) {
        TallyShare share = {.row = job(uid, "add", MINUTE)};

        share.row.n_jobs = n;
        share.row.waited_us = 10 * n;
        for (size_t i = 0; i < n; ++i) {
                sketch_add(&share.waited, 10);
                sketch_add(&share.ran, 20);
        }
        assert_int_equal(archive_write(play->archive,
                                       &(TallyBatch){.shares = &share, .n_shares = 1, .n_jobs = n},
                                       play->folder),
                         0);
}

static Gpuq__V1__History *read_page(Play *play, ArchiveQuery *query) {
        Gpuq__V1__History *history;
        size_t n_data = 0;
        uint8_t *data;

        if (!query->until_ms)
                query->until_ms = INT64_MAX;
        assert_int_equal(archive_history(play->archive, query, &data, &n_data), 0);
        history = gpuq__v1__history__unpack(NULL, n_data, data);
        assert_non_null(history);
        free(data);
        query->next_ms = history->next_ms;
        query->next_row = history->next_row;
        return history;
}

static void page_free(Gpuq__V1__History *history) {
        gpuq__v1__history__free_unpacked(history, NULL);
}

static size_t count(Play *play, ArchiveQuery query) {
        size_t n = 0;

        do {
                Gpuq__V1__History *history = read_page(play, &query);

                n += history->n_rows;
                page_free(history);
        } while (query.next_ms || query.next_row);
        return n;
}

static void what_is_written_is_read_after_a_restart(void **state) {
        TallyRow row = job(ALICE, "add, scale", MINUTE + 17);
        ArchiveQuery query = {};
        Gpuq__V1__History *history;

        row.state = JOB_FAILED;
        row.code = FAILURE_FAULT;
        row.device = 3;
        row.n_retries = 2;
        row.slurm_job = UINT32_MAX;
        strcpy(row.label, "mine");
        strcpy(row.reason, "it trapped");
        write_single(*state, row);
        reopen(*state);

        history = read_page(*state, &query);
        assert_int_equal(history->n_rows, 1);
        assert_int_equal(history->rows[0]->id, row.id);
        assert_int_equal(history->rows[0]->at_ms, MINUTE + 17);
        assert_int_equal(history->rows[0]->uid, ALICE);
        assert_int_equal(history->rows[0]->gid, 100);
        assert_int_equal(history->rows[0]->device, 4);
        assert_int_equal(history->rows[0]->state, GPUQ__V1__STATE__FAILED);
        assert_int_equal(history->rows[0]->code, GPUQ__V1__CODE__E_FAULT);
        assert_int_equal(history->rows[0]->retries, 2);
        assert_int_equal(history->rows[0]->slurm_job, UINT32_MAX);
        assert_int_equal(history->rows[0]->bytes, 64);
        assert_int_equal(history->rows[0]->gpu_ns, 100000000);
        assert_string_equal(history->rows[0]->label, "mine");
        assert_string_equal(history->rows[0]->kernels, "add, scale");
        assert_string_equal(history->rows[0]->reason, "it trapped");
        assert_null(history->rows[0]->waited);
        page_free(history);
}

static void shares_of_a_minute_add_up_in_one_row(void **state) {
        ArchiveQuery query = {};
        Gpuq__V1__History *history;

        write_share(*state, ALICE, 1);
        history = read_page(*state, &query);
        assert_int_equal(history->rows[0]->id, 1ull << 32 | 5);
        page_free(history);

        write_share(*state, ALICE, 99);
        reopen(*state);
        write_share(*state, ALICE, 900);
        write_share(*state, BOB, 1);
        history = read_page(*state, &query);
        assert_int_equal(history->n_rows, 2);
        assert_int_equal(history->rows[0]->id, 0);
        assert_int_equal(history->rows[0]->jobs, 1000);
        assert_int_equal(history->rows[0]->waited_us, 10000);
        assert_in_range(history->rows[0]->waited->p99, 9, 11);
        assert_in_range(history->rows[0]->ran->median, 18, 22);
        page_free(history);
}

static void shares_of_different_slurm_jobs_do_not(void **state) {
        TallyShare share = {.row = job(ALICE, "add", MINUTE)};
        TallyBatch batch = {.shares = &share, .n_shares = 1, .n_jobs = 2};

        share.row.n_jobs = 2;
        for (unsigned i = 0; i < 4; ++i) {
                share.row.slurm_job = i % 2;
                assert_int_equal(archive_write(((Play *)*state)->archive, &batch, NULL), 0);
        }
        assert_int_equal(count(*state, (ArchiveQuery){}), 2);
        assert_int_equal(count(*state, (ArchiveQuery){.slurm_job = 1}), 1);
}

static void several_jobs_have_no_id(void **state) {
        ArchiveQuery query = {};
        Gpuq__V1__History *history;

        write_share(*state, ALICE, 2);
        history = read_page(*state, &query);
        assert_int_equal(history->rows[0]->id, 0);
        page_free(history);
}

static void a_query_selects(void **state) {
        TallyRow labelled = job(BOB, "scale", MINUTE + 3000),
                 failed = job(BOB, "add", MINUTE + 4000);

        strcpy(labelled.label, "mine");
        failed.state = JOB_FAILED;
        failed.slurm_job = 5;
        write_single(*state, job(ALICE, "add", MINUTE + 1000));
        write_single(*state, job(ALICE, "add, scale", MINUTE + 2000));
        write_single(*state, labelled);
        write_single(*state, failed);

        assert_int_equal(count(*state, (ArchiveQuery){}), 4);
        assert_int_equal(count(*state, (ArchiveQuery){.one_user = true, .uid = ALICE}), 2);
        assert_int_equal(count(*state, (ArchiveQuery){.kernel = "scale"}), 2);
        assert_int_equal(count(*state, (ArchiveQuery){.kernel = "sca"}), 0);
        assert_int_equal(count(*state, (ArchiveQuery){.has_label = true}), 3);
        assert_int_equal(count(*state, (ArchiveQuery){.has_label = true, .label = "mine"}), 1);
        assert_int_equal(count(*state, (ArchiveQuery){.states = 1u << JOB_FAILED}), 1);
        assert_int_equal(count(*state, (ArchiveQuery){.slurm_job = 5}), 1);
        assert_int_equal(count(*state, (ArchiveQuery){.slurm_job = 6}), 0);
        assert_int_equal(count(*state, (ArchiveQuery){.since_ms = MINUTE + 2000}), 3);
        assert_int_equal(count(*state, (ArchiveQuery){.until_ms = MINUTE + 2000}), 1);
}

static void a_query_names_users_jobs_and_a_device(void **state) {
        TallyRow first = job(ALICE, "add", MINUTE), second = job(BOB, "add", MINUTE),
                 third = job(CAROL, "add", MINUTE), nowhere = job(CAROL, "add", MINUTE);

        second.id++;
        second.device = 3;
        nowhere.device = -1;
        nowhere.id = third.id = 1;
        write_single(*state, first);
        write_single(*state, second);
        write_single(*state, third);
        write_single(*state, nowhere);
        write_share(*state, BOB, 2);

        assert_int_equal(count(*state, (ArchiveQuery){.uids = {ALICE, BOB}, .n_uids = 2}), 3);
        assert_int_equal(count(*state, (ArchiveQuery){.uids = {CAROL}, .n_uids = 1}), 2);
        assert_int_equal(count(*state, (ArchiveQuery){.ids = {first.id}, .n_ids = 1}), 1);
        assert_int_equal(count(*state, (ArchiveQuery){.ids = {second.id, first.id}, .n_ids = 2}),
                         2);
        assert_int_equal(count(*state, (ArchiveQuery){.ids = {77}, .n_ids = 1}), 0);
        assert_int_equal(count(*state, (ArchiveQuery){.device = 4}), 1);
        assert_int_equal(count(*state, (ArchiveQuery){.device = 1}), 3);
        assert_int_equal(count(*state, (ArchiveQuery){.device = 4, .ids = {first.id}, .n_ids = 1}),
                         0);
}

/* Its minute began before. */
static void a_row_of_several_jobs_is_in_its_whole_minute(void **state) {
        write_share(*state, ALICE, 5);
        assert_int_equal(count(*state, (ArchiveQuery){.since_ms = MINUTE + 59999}), 1);
        assert_int_equal(count(*state, (ArchiveQuery){.since_ms = MINUTE + 60000}), 0);
        assert_int_equal(count(*state, (ArchiveQuery){.until_ms = MINUTE}), 0);
}

static void many_rows_come_in_pages(void **state) {
        TallyRow *rows = calloc(1000, sizeof(*rows));
        ArchiveQuery query = {};
        Gpuq__V1__History *history;
        uint64_t last_ms = 0;
        size_t n = 0;

        /* Five at each time, so that pages end between rows of one. */
        for (size_t i = 0; i < 1000; ++i)
                rows[i] = job(i % 2 ? ALICE : BOB, "add", MINUTE + i / 5);
        assert_int_equal(archive_write(((Play *)*state)->archive,
                                       &(TallyBatch){.singles = rows, .n_singles = 1000}, NULL),
                         0);
        free(rows);
        do {
                history = read_page(*state, &query);
                assert_true(history->n_rows <= ARCHIVE_PAGE);
                for (size_t i = 0; i < history->n_rows; ++i) {
                        assert_true(history->rows[i]->at_ms >= last_ms);
                        last_ms = history->rows[i]->at_ms;
                }
                n += history->n_rows;
                page_free(history);
        } while (query.next_ms || query.next_row);
        assert_int_equal(n, 1000);
        assert_int_equal(count(*state, (ArchiveQuery){.one_user = true, .uid = ALICE}), 500);
}

static void a_page_looks_at_a_bounded_number_of_rows(void **state) {
        size_t n_rows = ARCHIVE_SCAN + 10;
        TallyRow *rows = calloc(n_rows, sizeof(*rows));
        ArchiveQuery query = {.kernel = "rare"};
        Gpuq__V1__History *history;

        for (size_t i = 0; i < n_rows; ++i)
                rows[i] = job(ALICE, i + 1 == n_rows ? "rare" : "add", MINUTE);
        assert_int_equal(archive_write(((Play *)*state)->archive,
                                       &(TallyBatch){.singles = rows, .n_singles = n_rows}, NULL),
                         0);
        free(rows);
        history = read_page(*state, &query);
        assert_int_equal(history->n_rows, 0);
        assert_true(query.next_row != 0);
        page_free(history);
        history = read_page(*state, &query);
        assert_int_equal(history->n_rows, 1);
        assert_int_equal(query.next_row, 0);
        page_free(history);
}

static Gpuq__V1__Report *read_report_of(Play *play, ArchiveQuery query) {
        Gpuq__V1__Report *report;
        size_t n_data = 0;
        uint8_t *data;

        query.until_ms = INT64_MAX;
        assert_int_equal(archive_report(play->archive, &query, &data, &n_data), 0);
        report = gpuq__v1__report__unpack(NULL, n_data, data);
        free(data);
        return report;
}

static Gpuq__V1__Report *read_report(Play *play, Gpuq__V1__Grouping grouping) {
        return read_report_of(play, (ArchiveQuery){.grouping = grouping});
}

static void a_report_of_some_users_and_one_device(void **state) {
        ArchiveQuery many = {.n_uids = ARCHIVE_NAMED};
        TallyRow elsewhere = job(BOB, "add", MINUTE);
        Gpuq__V1__Report *report;

        elsewhere.device = 1;
        write_single(*state, job(ALICE, "add", MINUTE));
        write_single(*state, job(BOB, "add", MINUTE));
        write_single(*state, elsewhere);
        write_single(*state, job(CAROL, "add", MINUTE));

        report = read_report_of(*state, (ArchiveQuery){.uids = {BOB, CAROL}, .n_uids = 2});
        assert_int_equal(report->n_rows, 2);
        assert_int_equal(report->rows[0]->uid, BOB);
        assert_int_equal(report->rows[0]->jobs, 2);
        gpuq__v1__report__free_unpacked(report, NULL);
        report = read_report_of(*state, (ArchiveQuery){.device = 2});
        assert_int_equal(report->n_rows, 1);
        assert_int_equal(report->rows[0]->jobs, 1);
        gpuq__v1__report__free_unpacked(report, NULL);

        for (size_t i = 0; i < ARCHIVE_NAMED; ++i)
                many.uids[i] = UINT32_MAX - (uint32_t)i;
        many.uids[ARCHIVE_NAMED - 1] = ALICE;
        report = read_report_of(*state, many);
        assert_int_equal(report->n_rows, 1);
        gpuq__v1__report__free_unpacked(report, NULL);
}

static void a_report_sums_up(void **state) {
        TallyRow failed = job(BOB, "add", MINUTE), labelled = job(BOB, "add", MINUTE);
        Gpuq__V1__Report *report;

        failed.state = JOB_FAILED;
        failed.n_bytes = INT64_MAX; /* sums may be larger than any number */
        strcpy(labelled.label, "mine");
        write_share(*state, ALICE, 10);
        write_single(*state, failed);
        write_single(*state, failed);
        write_single(*state, labelled);

        report = read_report(*state, GPUQ__V1__GROUPING__BY_USER);
        assert_int_equal(report->n_rows, 2);
        assert_int_equal(report->rows[0]->uid, BOB);
        assert_int_equal(report->rows[0]->jobs, 3);
        assert_int_equal(report->rows[0]->failed, 2);
        assert_int_equal(report->rows[0]->gpu_ns, 300000000);
        assert_int_equal(report->rows[1]->jobs, 10);
        assert_int_equal(report->rows[1]->waited_us, 100);
        assert_false(report->cut);
        gpuq__v1__report__free_unpacked(report, NULL);

        report = read_report(*state, GPUQ__V1__GROUPING__BY_GROUP);
        assert_int_equal(report->n_rows, 1);
        assert_int_equal(report->rows[0]->gid, 100);
        assert_int_equal(report->rows[0]->jobs, 13);
        gpuq__v1__report__free_unpacked(report, NULL);

        report = read_report(*state, GPUQ__V1__GROUPING__BY_LABEL);
        assert_int_equal(report->n_rows, 3);
        gpuq__v1__report__free_unpacked(report, NULL);
}

static void a_report_sums_up_slurm_jobs(void **state) {
        TallyRow slurm = job(BOB, "add", MINUTE);
        Gpuq__V1__Report *report;

        slurm.slurm_job = 5;
        write_single(*state, slurm);
        write_single(*state, slurm);
        write_single(*state, job(BOB, "add", MINUTE));
        write_single(*state, job(ALICE, "add", MINUTE));

        report = read_report(*state, GPUQ__V1__GROUPING__BY_SLURM_JOB);
        assert_int_equal(report->n_rows, 3);
        assert_int_equal(report->rows[0]->slurm_job, 5);
        assert_int_equal(report->rows[0]->uid, BOB);
        assert_int_equal(report->rows[0]->jobs, 2);
        assert_int_equal(report->rows[1]->slurm_job, 0);
        assert_int_equal(report->rows[1]->jobs, 1);
        gpuq__v1__report__free_unpacked(report, NULL);
}

static void set_account(const Play *play, unsigned slurm_job, const char *text) {
        char path[80];
        int fd;

        snprintf(path, sizeof(path), "%s/account-%u", play->folder, slurm_job);
        (void)unlink(path);
        if (!text)
                return;
        fd = open(path, O_WRONLY | O_CREAT, 0644);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
}

static TallyRow slurm_row(uint32_t uid, uint32_t slurm_job) {
        TallyRow row = job(uid, "add", MINUTE + slurm_job);

        row.slurm_job = slurm_job;
        return row;
}

/* The file may be gone when the next rows of the job are written. */
static void a_report_sums_up_accounts(void **state) {
        Play *play = *state;
        Gpuq__V1__Report *report;

        set_account(play, 5, "physics\n");
        set_account(play, 6, "physics");
        set_account(play, 7, "\tma\xffths\nphysics\n");
        write_single(play, slurm_row(ALICE, 5));
        set_account(play, 5, NULL);
        write_single(play, slurm_row(ALICE, 5));
        write_single(play, slurm_row(BOB, 6));
        write_single(play, slurm_row(BOB, 7));
        write_single(play, slurm_row(BOB, 7));
        write_single(play, slurm_row(BOB, 8));
        reopen(play);

        report = read_report(play, GPUQ__V1__GROUPING__BY_ACCOUNT);
        assert_int_equal(report->n_rows, 3);
        assert_string_equal(report->rows[0]->account, "physics");
        assert_int_equal(report->rows[0]->jobs, 3);
        assert_string_equal(report->rows[1]->account, "?ma?ths");
        assert_int_equal(report->rows[1]->jobs, 2);
        assert_string_equal(report->rows[2]->account, "");
        assert_int_equal(report->rows[2]->jobs, 1);
        gpuq__v1__report__free_unpacked(report, NULL);
        set_account(play, 6, NULL);
        set_account(play, 7, NULL);
}

static void an_account_goes_with_the_rows_of_its_job(void **state) {
        Play *play = *state;
        Gpuq__V1__Report *report;
        bool has_more;

        set_account(play, 5, "physics\n");
        write_single(play, slurm_row(ALICE, 5));
        set_account(play, 5, NULL);
        assert_int_equal(archive_prune(play->archive, MINUTE + 5, UINT64_MAX, &has_more), 0);
        report = read_report(play, GPUQ__V1__GROUPING__BY_ACCOUNT);
        assert_string_equal(report->rows[0]->account, "physics");
        gpuq__v1__report__free_unpacked(report, NULL);

        assert_int_equal(archive_prune(play->archive, MINUTE + 6, UINT64_MAX, &has_more), 0);
        write_single(play, slurm_row(ALICE, 5)); /* of a later job with this number */
        report = read_report(play, GPUQ__V1__GROUPING__BY_ACCOUNT);
        assert_string_equal(report->rows[0]->account, "");
        gpuq__v1__report__free_unpacked(report, NULL);
}

static void old_rows_go(void **state) {
        Play *play = *state;
        bool has_more = true;

        write_single(play, job(ALICE, "add", MINUTE));
        write_single(play, job(ALICE, "add", MINUTE + 1));
        assert_int_equal(archive_prune(play->archive, MINUTE + 1, UINT64_MAX, &has_more), 0);
        assert_false(has_more);
        assert_int_equal(count(play, (ArchiveQuery){}), 1);
}

/* One user with many kinds of jobs could push out what the others had in weeks. */
static void a_file_that_is_too_large_loses_rows_of_the_user_with_the_most(void **state) {
        Play *play = *state;
        bool has_more = true;

        write_single(play, job(ALICE, "add", MINUTE));
        for (unsigned i = 1; i <= 5; ++i)
                write_single(play, job(BOB, "add", MINUTE + i));
        assert_int_equal(archive_prune(play->archive, 0, 1, &has_more), 0);
        assert_int_equal(count(play, (ArchiveQuery){.one_user = true, .uid = BOB}), 0);
        assert_int_equal(count(play, (ArchiveQuery){.one_user = true, .uid = ALICE}), 1);
}

static void only_its_user_can_read_the_file(void **state) {
        struct stat st;

        assert_int_equal(stat(((Play *)*state)->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_file_that_is_no_database_can_be_set_aside(void **state) {
        Play *play = *state;
        int fd;

        play->archive = archive_free(play->archive);
        fd = open(play->path, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, "this is no database, and has never been one", 43), 43);
        close(fd);
        assert_int_equal(archive_open(play->path, &play->archive), ARCHIVE_E_DAMAGED);
        assert_int_equal(archive_set_aside(play->path), 0);
        assert_int_equal(archive_open(play->path, &play->archive), 0);
        write_single(play, job(ALICE, "add", MINUTE));
        assert_int_equal(count(play, (ArchiveQuery){}), 1);
}

static void execute(const char *path, const char *sql) {
        sqlite3 *db;

        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- damage that SQLite does not see ----------------------------------------- */

/* Changes the closed database. */
static void spoil(Play *play, const char *sql) {
        play->archive = archive_free(play->archive);
        execute(play->path, sql);
}

/* As gpuqd wrote it before it knew of Slurm jobs. */
static void the_file_of_an_older_gpuqd_is_converted(void **state) {
        Play *play = *state;
        ArchiveQuery query = {};
        Gpuq__V1__History *history;
        TallyRow row = job(BOB, "add", MINUTE + 9);

        play->archive = archive_free(play->archive);
        archive_remove(play->path);
        execute(play->path,
                "CREATE TABLE ends (row INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, uid "
                "INTEGER, "
                "gid INTEGER, id INTEGER, device INTEGER, state INTEGER, code INTEGER, n INTEGER, "
                "waited INTEGER, ran INTEGER, gpu INTEGER, bytes INTEGER, retries INTEGER, "
                "label TEXT, kernels TEXT, reason TEXT, waited_sketch BLOB, ran_sketch BLOB);"
                "CREATE INDEX by_time ON ends (at); CREATE INDEX by_user ON ends (uid, at);"
                "PRAGMA user_version = 1;"
                "INSERT INTO ends VALUES (NULL, 1700000040001, 1000, 100, 5, 0, 2, 0, 1, 10, 20, "
                "30, 40, 0, 'old', 'add', '', NULL, NULL)");
        reopen(play);
        row.slurm_job = 8;
        write_single(play, row);
        reopen(play);

        history = read_page(play, &query);
        assert_int_equal(history->n_rows, 2);
        assert_string_equal(history->rows[0]->label, "old");
        assert_int_equal(history->rows[0]->slurm_job, 0);
        assert_int_equal(history->rows[1]->slurm_job, 8);
        page_free(history);
}

static void the_file_of_a_newer_gpuqd_is_left_alone(void **state) {
        Play *play = *state;
        Archive *archive;

        play->archive = archive_free(play->archive);
        execute(play->path, "PRAGMA user_version = 99");
        assert_int_equal(archive_open(play->path, &archive), ARCHIVE_E_VERSION);
}

/* UBSan ended the supervisor. */
static void a_device_of_any_number_is_read(void **state) {
        Play *play = *state;
        ArchiveQuery query = {};

        write_single(play, job(ALICE, "add", MINUTE));
        spoil(play, "UPDATE ends SET device = 2147483647");
        reopen(play);
        page_free(read_page(play, &query));
}

/* The file seemed to be larger than it may be, so that all rows of a user went. */
static void a_wrong_number_of_free_pages_is_damage(void **state) {
        static const uint8_t number[] = {0x7f, 0xff, 0xff, 0xff};
        Play *play = *state;
        bool has_more;
        int fd;

        write_single(play, job(ALICE, "add", MINUTE));
        play->archive = archive_free(play->archive);
        fd = open(play->path, O_WRONLY);
        assert_int_equal(pwrite(fd, number, sizeof(number), 36), sizeof(number));
        close(fd);
        assert_int_equal(archive_open(play->path, &play->archive), 0);
        assert_int_equal(archive_prune(play->archive, 0, ARCHIVE_BYTES_MAX, &has_more),
                         ARCHIVE_E_DAMAGED);
}

static void one_program_at_a_time_uses_it(void **state) {
        Archive *other;

        assert_int_equal(archive_open(((Play *)*state)->path, &other), ARCHIVE_E_BUSY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, play_new, play_free)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(what_is_written_is_read_after_a_restart),
                TEST(shares_of_a_minute_add_up_in_one_row),
                TEST(shares_of_different_slurm_jobs_do_not),
                TEST(several_jobs_have_no_id),
                TEST(a_query_selects),
                TEST(a_query_names_users_jobs_and_a_device),
                TEST(a_row_of_several_jobs_is_in_its_whole_minute),
                TEST(many_rows_come_in_pages),
                TEST(a_page_looks_at_a_bounded_number_of_rows),
                TEST(a_report_sums_up),
                TEST(a_report_of_some_users_and_one_device),
                TEST(a_report_sums_up_slurm_jobs),
                TEST(a_report_sums_up_accounts),
                TEST(an_account_goes_with_the_rows_of_its_job),
                TEST(old_rows_go),
                TEST(a_file_that_is_too_large_loses_rows_of_the_user_with_the_most),
                TEST(only_its_user_can_read_the_file),
                TEST(a_file_that_is_no_database_can_be_set_aside),
                TEST(the_file_of_an_older_gpuqd_is_converted),
                TEST(the_file_of_a_newer_gpuqd_is_left_alone),
                TEST(a_device_of_any_number_is_read),
                TEST(a_wrong_number_of_free_pages_is_damage),
                TEST(one_program_at_a_time_uses_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
