/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "util/macro.h"

static char *written(const gpuq_explanation *explanation, size_t width) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        assert_int_equal(explain_write(stream, explanation, width), 0);
        assert_int_equal(fclose(stream), 0);
        return text;
}

static gpuq_explanation explanation_of(const char *state) {
        return (gpuq_explanation){
                .id = 12ull << 32 | 3,
                .state = state,
                .label = "",
                .kernel = "",
                .reason = "",
                .device = -1,
                .advice = "nothing",
        };
}

static void parts_stand_beside_their_medians(void **state) {
        gpuq_explanation explanation = explanation_of("done");
        char *text;

        explanation.device = 1;
        explanation.times = (gpuq_job_times){.queue_us = 250, .launch_us = 40, .ran_us = 12000};
        explanation.median = (gpuq_job_times){.queue_us = 30, .launch_us = 41, .ran_us = 11000};
        explanation.n_median = 812;
        text = written(&explanation, 0);
        assert_text_has(text, "job 12.3 is done, device 1\n");
        assert_text_has(text, "waited for its turn         250 us 30.0 us\n");
        assert_text_has(text, "ran, with copies           12.0 ms 11.0 ms\n");
        assert_text_has(text, "of 812 done jobs");
        assert_text_has(text, "Nothing to gain");
        assert_null(strstr(text, "host data"));
        free(text);
}

static void without_equal_jobs_there_is_no_median(void **state) {
        gpuq_explanation explanation = explanation_of("waiting");
        char *text;

        explanation.kernel = "add";
        explanation.label = "night";
        explanation.reason = "depends on job 12.2";
        explanation.times = (gpuq_job_times){.dependencies_us = 3000000, .moved_bytes = 4096};
        text = written(&explanation, 0);
        assert_text_has(text,
                        "job 12.3, kernel add, label night is waiting: depends on job 12.2\n");
        assert_text_has(text, "waited for jobs before it    3.00 s      -\n");
        assert_text_has(text, "4.00 KiB");
        assert_text_has(text, "No other job of these kernels and this size has been done.");
        free(text);
}

static void jobs_without_success_get_no_advice(void **state) {
        gpuq_explanation explanation = explanation_of("failed");
        char *text;

        explanation.reason = "kernel add: out of range";
        text = written(&explanation, 0);
        assert_text_has(text, "job 12.3 failed: kernel add: out of range\n");
        assert_null(strstr(text, "gain"));
        free(text);
        explanation.state = "cancelled";
        text = written(&explanation, 0);
        assert_text_has(text, "job 12.3 was cancelled: ");
        assert_null(strstr(text, "gain"));
        free(text);
}

/* The keys of the library are those of gpuq(1); each is a sentence here. */
static void each_advice_is_a_sentence_of_whole_words(void **state) {
        static const char *const keys[] = {"nothing",   "less-memory", "pin",
                                           "keep-data", "in-flight",   "prepare"};

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                gpuq_explanation explanation = explanation_of("running");
                char *text, *line;

                explanation.advice = keys[i];
                text = written(&explanation, 80);
                line = strstr(text, "has been done.\n");
                assert_non_null(line);
                line += strlen("has been done.\n");
                assert_true(*line >= 'A' && *line <= 'Z');
                for (line = text; *line; line += strcspn(line, "\n") + 1)
                        assert_in_range(strcspn(line, "\n"), 0, 80);
                free(text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts_stand_beside_their_medians),
                cmocka_unit_test(without_equal_jobs_there_is_no_median),
                cmocka_unit_test(jobs_without_success_get_no_advice),
                cmocka_unit_test(each_advice_is_a_sentence_of_whole_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
