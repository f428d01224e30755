/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "proto/text.h"

static void only_the_drawn_moves_are_legal(void **state) {
        const struct {
                JobState from, to;
        } legal[] = {
                {JOB_WAITING, JOB_RUNNING},   {JOB_WAITING, JOB_FAILED},
                {JOB_WAITING, JOB_CANCELLED}, {JOB_RUNNING, JOB_WAITING},
                {JOB_RUNNING, JOB_DONE},      {JOB_RUNNING, JOB_FAILED},
                {JOB_RUNNING, JOB_CANCELLED},
        };

        for (int from = 0; from < _JOB_STATE_N; ++from) {
                for (int to = 0; to < _JOB_STATE_N; ++to) {
                        bool want = false;

                        for (size_t i = 0; i < ARRAY_SIZE(legal); ++i)
                                want |= (int)legal[i].from == from && (int)legal[i].to == to;
                        assert_int_equal(job_may_move((JobState)from, (JobState)to), want);
                }
        }
}

static void a_job_that_has_ended_goes_nowhere(void **state) {
        assert_int_equal(job_place_moves[JOB_ENDED], 0);
        for (int from = 0; from < JOB_ENDED; ++from) {
                assert_false(job_place_moves[from] & 1u << from);
                assert_true(from == JOB_NOWHERE || job_place_moves[from] & 1u << JOB_NOWHERE);
                assert_true(from == JOB_NOWHERE || !(job_place_moves[from] & 1u << JOB_ENDED));
        }
}

static void an_unknown_code_of_a_worker_becomes_internal(void **state) {
        Failure *failure = failure_from_worker(77, "strange");

        assert_int_equal(failure->code, FAILURE_INTERNAL);
        assert_string_equal(failure->text, "strange");
        failure_free(failure);
        failure = failure_from_worker(UINT32_MAX, "stranger");
        assert_int_equal(failure->code, FAILURE_INTERNAL);
        failure_free(failure);
        assert_null(failure_from_worker(0, "none"));
}

static void names_of_kernels_fit_their_room(void **state) {
        char small[12], large[64];
        JobKernel kernels[] = {{.name = "add"}, {.name = "scale"}};
        Job job = {.id = 1ull << 32 | 2, .work.kernels = kernels};

        job_kernel_names(&job, large, sizeof(large));
        assert_string_equal(large, "job 1.2");
        job.work.n_kernels = 1;
        job_kernel_names(&job, large, sizeof(large));
        assert_string_equal(large, "kernel add");
        job.work.n_kernels = 2;
        job_kernel_names(&job, large, sizeof(large));
        assert_string_equal(large, "kernels add, scale");
        job_kernel_names(&job, small, sizeof(small));
        assert_string_equal(small, "kernels add");
}

/* A compiler's log is long, and a hundred thousand jobs may depend on one. */
static void one_that_depends_on_a_failed_job_has_the_beginning_of_its_text(void **state) {
        enum { N = 100000 };
        char *text = malloc(2 * N + 1);
        Failure *first, *next;

        for (size_t i = 0; i < N; ++i)
                memcpy(text + 2 * i, "\u00e9", 3);
        first = failure_depends(7, false, FAILURE_IMAGE, 0, text);
        assert_in_range(strlen(first->text), FAILURE_BRIEF_MAX - 1, FAILURE_BRIEF_MAX + 100);
        assert_true(text_is_clean(first->text, SIZE_MAX));
        next = failure_depends(8, false, first->code, first->root, first->text);
        assert_in_range(strlen(next->text), FAILURE_BRIEF_MAX - 1, FAILURE_BRIEF_MAX + 100);
        assert_true(text_is_clean(next->text, SIZE_MAX));
        failure_free(first);
        failure_free(next);
        free(text);
}

/* Half a character would make the whole answer unreadable for clients that check it. */
static void what_is_remembered_of_a_text_ends_with_a_whole_character(void **state) {
        char text[2 * HISTORY_TEXT_MAX] = "x";
        const HistoryEntry *entry;
        History *history;

        for (size_t i = 1; i + 2 < sizeof(text); i += 2)
                memcpy(text + i, "\u00e9", 3);
        assert_int_equal(history_new(&history), 0);
        history_add(history, &(HistoryEntry){.id = 1, .text = text});
        entry = history_find(history, 1);
        assert_int_equal(strlen(entry->text), HISTORY_TEXT_MAX - 1);
        assert_true(text_is_clean(entry->text, SIZE_MAX));
        history_free(history);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_remembered_of_a_text_ends_with_a_whole_character),
                cmocka_unit_test(one_that_depends_on_a_failed_job_has_the_beginning_of_its_text),
                cmocka_unit_test(only_the_drawn_moves_are_legal),
                cmocka_unit_test(a_job_that_has_ended_goes_nowhere),
                cmocka_unit_test(an_unknown_code_of_a_worker_becomes_internal),
                cmocka_unit_test(names_of_kernels_fit_their_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
