/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tally of ended jobs: which of them share a row, what is told of them, and what happens when it is
 * full. The clock is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sketch.h"
#include "tally.h"

#define ALICE  1000u
#define BOB    1001u
#define MINUTE 1700000040000ull /* a full one */

static Tally *tally_at(uint64_t ms) {
        Tally *tally;

        assert_int_equal(tally_new(&tally), 0);
        tally_tick(tally, ms);
        return tally;
}

static TallyRow job(uint32_t uid, const char *kernels, uint64_t ran_us) {
        TallyRow row = {
                .n_jobs = 1,
                .waited_us = 10,
                .ran_us = ran_us,
                .gpu_ns = ran_us * 500,
                .n_bytes = 100,
                .id = 7,
                .uid = uid,
                .person = uid,
                .state = JOB_DONE,
        };

        snprintf(row.kernels, sizeof(row.kernels), "%s", kernels);
        return row;
}

static void add(Tally *tally, TallyRow row) {
        tally_add(tally, &row, duration_key(0, row.kernels, strlen(row.kernels)));
}

static void add_many(Tally *tally, TallyRow row, size_t n) {
        for (size_t i = 0; i < n; ++i)
                add(tally, row);
}

static TallyBatch *take(Tally *tally) {
        TallyBatch *batch;

        assert_int_equal(tally_take(tally, &batch), 0);
        return batch;
}

static uint64_t jobs_in(const TallyBatch *batch) {
        uint64_t n = batch->n_singles;

        for (size_t i = 0; i < batch->n_shares; ++i)
                n += batch->shares[i].row.n_jobs;
        return n;
}

/* ---- sketches -------------------------------------------------------------- */

static void a_quantile_is_right_to_a_tenth(void **state) {
        Sketch sketch = {};

        for (uint64_t us = 1; us <= 100000; ++us)
                sketch_add(&sketch, us);
        assert_in_range(sketch_quantile(&sketch, 0.5), 45000, 55000);
        assert_in_range(sketch_quantile(&sketch, 0.95), 86000, 104000);
        assert_in_range(sketch_quantile(&sketch, 0.99), 90000, 108000);
}

static void a_class_holds_what_it_tells(void **state) {
        for (uint64_t us = 0; us < 10000000; us += us / 7 + 1) {
                Sketch sketch = {};
                uint64_t told;

                sketch_add(&sketch, us);
                told = sketch_quantile(&sketch, 0.5);
                assert_int_equal(sketch_class(told), sketch_class(us));
        }
        assert_int_equal(sketch_class(UINT64_MAX - 4), SKETCH_CLASSES - 1);
        assert_int_equal(sketch_quantile(&(Sketch){}, 0.5), 0);
}

static void packed_sketches_add_up(void **state) {
        uint8_t data[SKETCH_BYTES_MAX];
        Sketch sketch = {}, sum = {};
        size_t n;

        for (unsigned i = 0; i < 1000; ++i)
                sketch_add(&sketch, i * i);
        n = sketch_pack(&sketch, data);
        sketch_unpack_add(&sum, data, n);
        sketch_unpack_add(&sum, data, n);
        for (unsigned i = 0; i < SKETCH_CLASSES; ++i)
                assert_int_equal(sum.counts[i], 2 * sketch.counts[i]);
        sketch_unpack_add(&sum, (uint8_t[]){255, 1, 1, 1, 1, 3},
                          6); /* no class, and half an entry */
}

/* ---- rows ------------------------------------------------------------------ */

static void short_jobs_of_a_kind_share_a_row(void **state) {
        Tally *tally = tally_at(MINUTE + 5000);
        TallyBatch *batch;

        add_many(tally, job(ALICE, "add", 20), 500);
        batch = take(tally);
        assert_int_equal(batch->n_singles, 0);
        assert_int_equal(batch->n_shares, 1);
        assert_int_equal(batch->n_jobs, 500);
        assert_int_equal(batch->shares[0].row.n_jobs, 500);
        assert_int_equal(batch->shares[0].row.waited_us, 5000);
        assert_int_equal(batch->shares[0].row.ran_us, 10000);
        assert_int_equal(batch->shares[0].row.gpu_ns, 5000000);
        assert_int_equal(batch->shares[0].row.n_bytes, 50000);
        assert_int_equal(batch->shares[0].row.at_ms, MINUTE);
        assert_in_range(sketch_quantile(&batch->shares[0].ran, 0.5), 18, 22);
        tally_batch_free(batch);
        tally_free(tally);
}

static void other_jobs_do_not(void **state) {
        Tally *tally = tally_at(MINUTE);
        TallyRow labelled = job(ALICE, "add", 20), elsewhere = labelled, slurm = labelled;
        TallyBatch *batch;

        strcpy(labelled.label, "mine");
        elsewhere.device = 1;
        slurm.slurm_job = 7;
        for (unsigned i = 0; i < 3; ++i) {
                add(tally, job(ALICE, "add", 20));
                add(tally, job(BOB, "add", 20));
                add(tally, job(ALICE, "scale", 20));
                add(tally, labelled);
                add(tally, elsewhere);
                add(tally, slurm);
        }
        batch = take(tally);
        assert_int_equal(batch->n_shares, 6);
        for (size_t i = 0; i < batch->n_shares; ++i)
                assert_int_equal(batch->shares[i].row.n_jobs, 3);
        tally_batch_free(batch);
        tally_free(tally);
}

/* What the supervisor does for most jobs. */
static void the_quick_way_finds_the_same_row(void **state) {
        Tally *tally = tally_at(MINUTE);
        uint64_t class = duration_key(0, "add", 3);
        TallyShare *share;

        assert_null(tally_find(tally, tally_key(tally, class, ALICE, 0, 0), ALICE, 0));
        add(tally, job(ALICE, "add", 20));
        share = tally_find(tally, tally_key(tally, class, ALICE, 0, 0), ALICE, 0);
        assert_non_null(share);
        assert_null(tally_find(tally, tally_key(tally, class, BOB, 0, 0), BOB, 0));
        assert_null(tally_find(tally, tally_key(tally, class, ALICE, 7, 0), ALICE, 7));
        tally_count(tally, share, 1, 2, 3, 4);
        assert_int_equal(share->row.n_jobs, 2);
        assert_int_equal(share->row.ran_us, 22);
        assert_int_equal(tally->n_jobs, 2);
        tally_free(tally);
}

static void long_and_failed_jobs_have_their_own(void **state) {
        TallyRow failed = job(ALICE, "add", 20), retried = failed;
        Tally *tally = tally_at(MINUTE + 123);
        TallyBatch *batch;

        failed.state = JOB_FAILED;
        retried.n_retries = 1;
        add(tally, job(ALICE, "add", TALLY_SHORT_US));
        add(tally, failed);
        add(tally, retried);
        batch = take(tally);
        assert_int_equal(batch->n_singles, 3);
        assert_int_equal(batch->n_shares, 0);
        assert_int_equal(batch->singles[0].at_ms, MINUTE + 123);
        assert_int_equal(batch->singles[1].state, JOB_FAILED);
        assert_int_equal(batch->singles[2].n_retries, 1);
        tally_batch_free(batch);
        tally_free(tally);
}

static void too_many_failures_share_rows_by_their_reason(void **state) {
        TallyRow failed = job(ALICE, "add", 20), other = failed;
        Tally *tally = tally_at(MINUTE);
        TallyBatch *batch;

        failed.state = other.state = JOB_FAILED;
        failed.code = FAILURE_FAULT;
        other.code = FAILURE_TIMEOUT;
        add_many(tally, failed, TALLY_USER_SINGLES);
        add_many(tally, failed, 100);
        add_many(tally, other, 50);
        add_many(tally, job(BOB, "add", TALLY_SHORT_US), 2);
        batch = take(tally);
        assert_int_equal(batch->n_singles, TALLY_USER_SINGLES + 2);
        assert_int_equal(batch->n_shares, 2);
        assert_int_equal(batch->shares[0].row.n_jobs, 100);
        assert_int_equal(batch->shares[1].row.n_jobs, 50);
        assert_int_equal(batch->shares[1].row.code, FAILURE_TIMEOUT);
        tally_batch_free(batch);
        tally_free(tally);
}

/* ---- minutes --------------------------------------------------------------- */

static void a_minute_goes_on_after_a_take(void **state) {
        Tally *tally = tally_at(MINUTE + 1000);
        TallyBatch *first, *second;

        add(tally, job(ALICE, "add", 20));
        first = take(tally);
        tally_tick(tally, MINUTE + 2000);
        add_many(tally, job(ALICE, "add", 20), 2);
        second = take(tally);
        assert_int_equal(second->shares[0].row.n_jobs, 2);
        assert_int_equal(second->shares[0].row.at_ms, first->shares[0].row.at_ms);
        assert_int_equal(second->shares[0].key, first->shares[0].key);
        tally_batch_free(first);
        tally_batch_free(second);
        tally_free(tally);
}

static void the_next_minute_has_rows_of_its_own(void **state) {
        Tally *tally = tally_at(MINUTE);
        TallyBatch *batch;

        add(tally, job(ALICE, "add", 20));
        tally_tick(tally, MINUTE + TALLY_MINUTE_MS);
        tally_batch_free(take(tally));
        add_many(tally, job(ALICE, "add", TALLY_SHORT_US), TALLY_USER_SINGLES);
        add(tally, job(ALICE, "add", 20));
        batch = take(tally);
        assert_int_equal(batch->n_singles, TALLY_USER_SINGLES);
        assert_int_equal(batch->shares[0].row.at_ms, MINUTE + TALLY_MINUTE_MS);
        tally_batch_free(batch);
        tally_free(tally);
}

/* The disk is slow: nothing is taken for an hour. */
static void a_minute_that_nobody_takes_loses_nothing(void **state) {
        Tally *tally = tally_at(MINUTE);
        TallyBatch *batch;

        for (unsigned i = 0; i < 60; ++i) {
                tally_tick(tally, MINUTE + i * TALLY_MINUTE_MS);
                add_many(tally, job(ALICE, "add", 20), 100);
                add_many(tally, job(ALICE, "add", TALLY_SHORT_US), 50);
        }
        batch = take(tally);
        assert_int_equal(tally->n_lost, 0);
        assert_int_equal(jobs_in(batch), 60 * 150);
        assert_int_equal(batch->n_jobs, 60 * 150);
        tally_batch_free(batch);
        tally_free(tally);
}

static void idle_time_ends_a_minute(void **state) {
        Tally *tally = tally_at(MINUTE);
        TallyBatch *batch;

        add_many(tally, job(ALICE, "add", TALLY_SHORT_US), TALLY_USER_SINGLES);
        tally_batch_free(take(tally));
        tally_tick(tally, MINUTE + 5 * TALLY_MINUTE_MS);
        add(tally, job(ALICE, "add", TALLY_SHORT_US));
        batch = take(tally);
        assert_int_equal(batch->n_singles, 1);
        tally_batch_free(batch);
        tally_free(tally);
}

/* ---- bounds ---------------------------------------------------------------- */

static void many_kinds_of_one_user_end_in_one_row(void **state) {
        Tally *tally = tally_at(MINUTE);
        TallyBatch *batch;
        char name[16];

        for (unsigned i = 0; i < 1000; ++i) {
                snprintf(name, sizeof(name), "kernel%u", i);
                add(tally, job(ALICE, name, 20));
        }
        add(tally, job(BOB, "add", 20));
        batch = take(tally);
        assert_int_equal(batch->n_shares, TALLY_USER_ROWS + 2);
        assert_int_equal(jobs_in(batch), 1001);
        assert_string_equal(batch->shares[TALLY_USER_ROWS].row.kernels, "");
        assert_int_equal(batch->shares[TALLY_USER_ROWS].row.n_jobs, 1000 - TALLY_USER_ROWS);
        assert_int_equal(tally->n_lost, 0);
        tally_batch_free(batch);
        tally_free(tally);
}

/* A user namespace has 65,536 of them. */
static void subordinate_uids_have_no_more_rows(void **state) {
        Tally *tally = tally_at(MINUTE);
        TallyBatch *batch;

        for (uint32_t uid = 100000; uid < 101000; ++uid) {
                TallyRow row = job(uid, "add", 20), failed = row;

                row.person = failed.person = ALICE;
                failed.state = JOB_FAILED;
                add(tally, row);
                add(tally, failed);
        }
        batch = take(tally);
        assert_int_equal(batch->n_singles, TALLY_USER_SINGLES);
        assert_int_equal(batch->n_shares, TALLY_USER_ROWS + 2);
        assert_int_equal(jobs_in(batch), 2000);
        tally_batch_free(batch);
        tally_free(tally);
}

static void a_full_table_counts_what_it_loses(void **state) {
        Tally *tally = tally_at(MINUTE);
        TallyBatch *batch;
        size_t n_added = 0;
        char name[16];

        for (uint32_t uid = 5000; uid < 5000 + 2 * TALLY_USERS; ++uid)
                for (unsigned i = 0; i < TALLY_USER_ROWS; ++i, ++n_added) {
                        snprintf(name, sizeof(name), "kernel%u", i);
                        add(tally, job(uid, name, 20));
                }
        batch = take(tally);
        assert_int_equal(batch->n_shares, TALLY_ROWS_MAX);
        assert_true(tally->n_lost > 0);
        assert_int_equal(jobs_in(batch) + tally->n_lost, n_added);
        tally_batch_free(batch);

        tally_tick(tally, MINUTE + TALLY_MINUTE_MS);
        add(tally, job(ALICE, "add", 20));
        batch = take(tally);
        assert_int_equal(jobs_in(batch), 1);
        tally_batch_free(batch);
        tally_free(tally);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_quantile_is_right_to_a_tenth),
                cmocka_unit_test(a_class_holds_what_it_tells),
                cmocka_unit_test(packed_sketches_add_up),
                cmocka_unit_test(short_jobs_of_a_kind_share_a_row),
                cmocka_unit_test(other_jobs_do_not),
                cmocka_unit_test(the_quick_way_finds_the_same_row),
                cmocka_unit_test(long_and_failed_jobs_have_their_own),
                cmocka_unit_test(too_many_failures_share_rows_by_their_reason),
                cmocka_unit_test(a_minute_goes_on_after_a_take),
                cmocka_unit_test(the_next_minute_has_rows_of_its_own),
                cmocka_unit_test(a_minute_that_nobody_takes_loses_nothing),
                cmocka_unit_test(idle_time_ends_a_minute),
                cmocka_unit_test(many_kinds_of_one_user_end_in_one_row),
                cmocka_unit_test(subordinate_uids_have_no_more_rows),
                cmocka_unit_test(a_full_table_counts_what_it_loses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
