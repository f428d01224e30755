/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/batch.h"
#include "worker/move.h"

static Function function_a, function_b;
static Stream stream_x, stream_y;

static Job job_of(Function *function) {
        return (Job){
                .kind = {.function = function, .grid = {4, 1, 1}, .block = {256, 1, 1}},
                .n_rows = 3,
                .n_small = 1000,
        };
}

typedef struct Place {
        Blocks blocks;
        Forming forming;
} Place;

static void place_init(Place *place) {
        *place = (Place){0};
        blocks_init(&place->blocks);
        forming_init(&place->forming);
}

/* As the runner does it. Return: a batch that is to be issued, or NULL. */
static Batch *place_add(Place *place, Job *job, Stream *stream) {
        Batch *batch = forming_find(&place->forming, job, stream);

        if (!batch)
                return forming_open(&place->forming, batch_new(&place->blocks, job, stream, 0));
        batch_add(batch, job);
        if (!batch_is_full(batch))
                return NULL;
        forming_close(&place->forming, batch);
        return batch;
}

static void place_end(Place *place) {
        Batch *batch;

        while ((batch = TAILQ_FIRST(&place->forming.open))) {
                forming_close(&place->forming, batch);
                batch_free(batch, &place->blocks);
        }
        assert_int_equal(place->forming.n_open, 0);
        blocks_clear(&place->blocks);
}

static size_t batch_count(const Batch *batch) {
        const Job *job;
        size_t n = 0;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                ++n;
        assert_int_equal(n, batch->n_jobs);
        return n;
}

static void jobs_of_one_kind_come_together_until_it_is_full(void **state) {
        Job jobs[4] = {job_of(&function_a), job_of(&function_a), job_of(&function_a),
                       job_of(&function_a)};
        Place place;
        Batch *batch;

        place_init(&place);
        assert_null(place_add(&place, &jobs[0], NULL));
        assert_null(place_add(&place, &jobs[1], NULL));
        batch = place_add(&place, &jobs[2], NULL);
        assert_non_null(batch);
        assert_int_equal(batch_count(batch), 3);
        assert_ptr_equal(TAILQ_FIRST(&batch->jobs), &jobs[0]);
        assert_int_equal(batch->n_small, 3000);
        batch_free(batch, &place.blocks);

        assert_null(place_add(&place, &jobs[3], NULL));
        assert_int_equal(place.forming.n_open, 1);
        place_end(&place);
}

static void what_differs_stays_apart(void **state) {
        Job jobs[7];
        Place place;

        place_init(&place);
        for (size_t i = 0; i < 7; ++i)
                jobs[i] = job_of(&function_a);
        jobs[1].kind.function = &function_b;
        jobs[2].kind.grid[1] = 2;
        jobs[3].kind.block[0] = 128;
        jobs[4].kind.shared_bytes = 4;
        jobs[5].kind.class = STREAM_HIGH;
        for (size_t i = 0; i < 6; ++i)
                assert_null(place_add(&place, &jobs[i], NULL));
        assert_null(place_add(&place, &jobs[6], &stream_x));
        assert_int_equal(place.forming.n_open, 7);
        place_end(&place);
}

static void jobs_behind_one_stream_come_together(void **state) {
        Job jobs[3] = {job_of(&function_a), job_of(&function_a), job_of(&function_a)};
        Place place;

        place_init(&place);
        assert_null(place_add(&place, &jobs[0], &stream_x));
        assert_null(place_add(&place, &jobs[1], &stream_y));
        assert_null(place_add(&place, &jobs[2], &stream_x));
        assert_int_equal(place.forming.n_open, 2);
        assert_int_equal(batch_count(TAILQ_FIRST(&place.forming.open)), 2);
        assert_true(TAILQ_FIRST(&place.forming.open)->is_behind);
        place_end(&place);
}

static void too_many_bytes_begin_another(void **state) {
        enum { N = 20 };
        Job jobs[N];
        Place place;
        Batch *batch;
        size_t n = 0;

        place_init(&place);
        for (size_t i = 0; i < N; ++i) {
                jobs[i] = job_of(&function_a);
                jobs[i].n_rows = 1000;
                jobs[i].n_small = JOB_SMALL_BYTES;
                batch = place_add(&place, &jobs[i], NULL);
                if (!batch)
                        continue;
                assert_int_equal(batch->n_small, BATCH_BYTES_MAX);
                n += batch_count(batch);
                batch_free(batch, &place.blocks);
        }
        assert_int_equal(n, BATCH_BYTES_MAX / JOB_SMALL_BYTES);
        place_end(&place);
}

static void more_kinds_than_are_formed_at_once_push_the_oldest_out(void **state) {
        Job jobs[FORMING_MAX + 1];
        Place place;
        Batch *batch;

        place_init(&place);
        for (size_t i = 0; i <= FORMING_MAX; ++i) {
                jobs[i] = job_of(&function_a);
                jobs[i].kind.grid[0] = (unsigned)i + 1;
                batch = place_add(&place, &jobs[i], NULL);
                assert_true((batch != NULL) == (i == FORMING_MAX));
        }
        assert_ptr_equal(TAILQ_FIRST(&batch->jobs), &jobs[0]);
        assert_int_equal(place.forming.n_open, FORMING_MAX);
        batch_free(batch, &place.blocks);
        place_end(&place);
}

static void shortest_timeout_is_the_batchs(void **state) {
        Job jobs[3] = {job_of(&function_a), job_of(&function_a), job_of(&function_a)};
        Place place;
        Batch *batch;

        place_init(&place);
        jobs[1].timeout_ms = 50;
        jobs[2].timeout_ms = 70;
        place_add(&place, &jobs[0], NULL);
        place_add(&place, &jobs[1], NULL);
        batch = place_add(&place, &jobs[2], NULL);
        assert_int_equal(batch->timeout_ms, 50);
        batch_free(batch, &place.blocks);
        place_end(&place);
}

static void first_job_can_be_split_off(void **state) {
        Job jobs[3] = {job_of(&function_a), job_of(&function_a), job_of(&function_a)};
        Place place;
        Batch *batch, *rest;

        place_init(&place);
        jobs[0].timeout_ms = 5;
        for (size_t i = 0; i < 2; ++i)
                place_add(&place, &jobs[i], NULL);
        batch = place_add(&place, &jobs[2], NULL);
        batch->stream = &stream_x; /* where the first is to go */
        rest = batch_split(batch, &place.blocks);
        assert_int_equal(batch_count(batch), 1);
        assert_int_equal(batch_count(rest), 2);
        assert_int_equal(batch->n_small, 1000);
        assert_int_equal(batch->timeout_ms, 5);
        assert_int_equal(rest->n_small, 2000);
        assert_int_equal(rest->timeout_ms, 0);
        assert_null(rest->stream);
        assert_ptr_equal(TAILQ_FIRST(&rest->jobs), &jobs[1]);
        batch_free(batch, &place.blocks);
        batch_free(rest, &place.blocks);
        place_end(&place);
}

/* ---- rows of a move -------------------------------------------------------------------------- */

static void rows_that_go_on_are_joined(void **state) {
        MoveTable table = {.n_rows = 0};

        assert_true(move_table_add(&table, &(MoveRow){1000, 5000, 100}));
        assert_true(move_table_add(&table, &(MoveRow){1100, 5100, 50}));
        assert_int_equal(table.n_rows, 1);
        assert_int_equal(table.rows[0].n_bytes, 150);
        assert_true(move_table_add(&table, &(MoveRow){1150, 6000, 50})); /* from elsewhere */
        assert_true(move_table_add(&table, &(MoveRow){1200, 0, 50}));    /* zeros */
        assert_true(move_table_add(&table, &(MoveRow){1250, 0, 50}));
        assert_true(move_table_add(&table, &(MoveRow){1300, 50, 50})); /* not zeros */
        assert_true(move_table_add(&table, &(MoveRow){2000, 100, 50}));
        assert_int_equal(table.n_rows, 5);
        assert_int_equal(table.rows[2].n_bytes, 100);
}

static void full_table_takes_only_what_goes_on(void **state) {
        MoveTable table = {.n_rows = 0};

        for (uint64_t i = 0; i < MOVE_ROWS_MAX; ++i)
                assert_true(move_table_add(&table, &(MoveRow){1 + 100 * i, 0, 10}));
        assert_false(move_table_add(&table, &(MoveRow){1, 0, 10}));
        assert_true(move_table_add(&table, &(MoveRow){1 + 100 * (MOVE_ROWS_MAX - 1) + 10, 0, 10}));
        assert_int_equal(table.n_rows, MOVE_ROWS_MAX);
}

static void longest_row_and_their_number_say_how_many_blocks(void **state) {
        MoveTable table = {.n_rows = 0};

        move_table_add(&table, &(MoveRow){1, 0, 10});
        assert_int_equal(move_table_blocks(&table), 1);
        move_table_add(&table, &(MoveRow){1000, 0, 40000});
        assert_int_equal(move_table_blocks(&table), 3);
        move_table_add(&table, &(MoveRow){100000, 0, UINT64_C(1) << 40});
        assert_int_equal(move_table_blocks(&table), 32);
        while (table.n_rows < 64)
                move_table_add(&table, &(MoveRow){1, 0, 10});
        assert_int_equal(move_table_blocks(&table), 2);
        while (table.n_rows < MOVE_ROWS_MAX)
                move_table_add(&table, &(MoveRow){1, 0, 10});
        assert_int_equal(move_table_blocks(&table), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(jobs_of_one_kind_come_together_until_it_is_full),
                cmocka_unit_test(what_differs_stays_apart),
                cmocka_unit_test(jobs_behind_one_stream_come_together),
                cmocka_unit_test(too_many_bytes_begin_another),
                cmocka_unit_test(more_kinds_than_are_formed_at_once_push_the_oldest_out),
                cmocka_unit_test(shortest_timeout_is_the_batchs),
                cmocka_unit_test(first_job_can_be_split_off),
                cmocka_unit_test(rows_that_go_on_are_joined),
                cmocka_unit_test(full_table_takes_only_what_goes_on),
                cmocka_unit_test(longest_row_and_their_number_say_how_many_blocks),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
