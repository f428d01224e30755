/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "util/macro.h"

#define FROM_NS 1000000ull
#define END_NS  9000000ull
#define SESSION 12u

typedef struct Document {
        TraceFile *file;
        FILE *stream;
        char *text;
        size_t n_text;
        struct json_object *root, *events;
} Document;

static Document *document_new(void) {
        Document *document = calloc(1, sizeof(*document));

        document->stream = open_memstream(&document->text, &document->n_text);
        assert_int_equal(trace_file_new(document->stream, FROM_NS, &document->file), 0);
        return document;
}

static void document_end(Document *document) {
        trace_file_end(document->file, &(TraceSummary){.now_ns = END_NS,
                                                       .unix_ns = 1700000000000000123ull,
                                                       .n_lost = 3,
                                                       .n_gaps = 1});
        trace_file_free(document->file);
        assert_int_equal(fclose(document->stream), 0);
        document->root = json_tokener_parse(document->text);
        assert_non_null(document->root);
        assert_true(json_object_object_get_ex(document->root, "traceEvents", &document->events));
}

static void document_free(Document *document) {
        json_object_put(document->root);
        free(document->text);
        free(document);
}

static gpuq_trace_job job_of(uint32_t tag) {
        return (gpuq_trace_job){
                .id = (uint64_t)SESSION << 32 | tag,
                .uid = 0,
                .state = "done",
                .code = "",
                .label = "",
                .kernels = "add",
                .program = "prog",
                .client_pid = 77,
                .device = 1,
                .worker_pid = 55,
                .stream = 3,
        };
}

static const char *member(struct json_object *event, const char *name) {
        struct json_object *value;

        return json_object_object_get_ex(event, name, &value) ? json_object_get_string(value) : "";
}

static const char *argument(struct json_object *event, const char *name) {
        struct json_object *args;

        assert_true(json_object_object_get_ex(event, "args", &args));
        return member(args, name);
}

/* The n-th event of a phase and a name. */
static struct json_object *event_of(const Document *document, const char *phase, const char *name,
                                    size_t n) {
        for (size_t i = 0; i < json_object_array_length(document->events); i++) {
                struct json_object *event = json_object_array_get_idx(document->events, i);

                if (strcmp(member(event, "ph"), phase) == 0 &&
                    strcmp(member(event, "name"), name) == 0 && n-- == 0)
                        return event;
        }
        return NULL;
}

static void assert_span(struct json_object *event, const char *ts, const char *dur) {
        assert_non_null(event);
        assert_string_equal(member(event, "ts"), ts);
        assert_string_equal(member(event, "dur"), dur);
}

static void the_parts_of_a_job_follow_each_other(void **state) {
        Document *document = document_new();
        gpuq_trace_job job = job_of(1);

        job.label = "sweep";
        job.submitted_ns = 2000000;
        job.behind_ns = 100500;
        job.parked_ns = 200000;
        job.started_ns = 3000000;
        job.ended_ns = 4000001;
        job.ran_us = 400;
        assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        document_end(document);
        assert_span(event_of(document, "X", "waits for jobs before it", 0), "2000.000", "100.500");
        assert_span(event_of(document, "X", "waits for its modules", 0), "2100.500", "200.000");
        assert_span(event_of(document, "X", "waits for its turn", 0), "2300.500", "699.500");
        assert_span(event_of(document, "X", "in its worker, not running", 0), "3000.000",
                    "600.001");
        assert_span(event_of(document, "X", "sweep: add", 0), "3600.001", "400.000");
        assert_span(event_of(document, "X", "sweep: add", 1), "3600.001", "400.000");
        assert_string_equal(argument(event_of(document, "X", "sweep: add", 1), "job"), "12.1");
        assert_string_equal(argument(event_of(document, "X", "sweep: add", 1), "waited_us"),
                            "1000");
        document_free(document);
}

static void an_arrow_leads_from_the_submission_to_the_run(void **state) {
        Document *document = document_new();
        gpuq_trace_job job = job_of(1);
        struct json_object *from, *to, *run;

        job.submitted_ns = 2000000;
        job.started_ns = 2500000;
        job.ended_ns = 4000000;
        job.ran_us = 1000;
        assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        document_end(document);
        from = event_of(document, "s", "submitted", 0);
        to = event_of(document, "f", "submitted", 0);
        run = event_of(document, "X", "add", 1);
        assert_string_equal(member(from, "ts"), "2000.000");
        assert_string_equal(member(to, "ts"), "3000.000");
        assert_string_equal(member(from, "id"), member(to, "id"));
        assert_string_equal(member(to, "pid"), member(run, "pid"));
        assert_string_equal(member(to, "tid"), member(run, "tid"));
        assert_string_not_equal(member(from, "pid"), member(run, "pid"));
        document_free(document);
}

/* Return: the thread of the n-th job in its session's process. */
static int lane_of(const Document *document, size_t n) {
        struct json_object *event = event_of(document, "X", "waits for its turn", n);

        assert_non_null(event);
        return atoi(member(event, "tid"));
}

static void jobs_that_overlap_get_lanes_and_give_them_back(void **state) {
        static const uint64_t spans[][2] = {{20, 30}, {10, 40}, {30, 50},
                                            {40, 60}, {10, 70}, {70, 80}};
        static const int lanes[] = {1, 2, 1, 2, 3, 1};
        Document *document = document_new();

        for (uint32_t i = 0; i < ARRAY_SIZE(spans); i++) {
                gpuq_trace_job job = job_of(i + 1);

                job.submitted_ns = FROM_NS + spans[i][0];
                job.ended_ns = FROM_NS + spans[i][1];
                job.device = -1;
                assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        }
        document_end(document);
        for (size_t i = 0; i < ARRAY_SIZE(lanes); i++)
                assert_int_equal(lane_of(document, i), lanes[i]);
        assert_string_equal(argument(event_of(document, "M", "thread_name", 0), "name"), "jobs");
        assert_string_equal(argument(event_of(document, "M", "thread_name", 2), "name"),
                            "jobs, lane 3");
        assert_null(event_of(document, "M", "thread_name", 3));
        document_free(document);
}

static void each_stream_of_a_worker_is_a_thread_of_its_device(void **state) {
        Document *document = document_new();

        for (uint32_t i = 0; i < 4; i++) {
                gpuq_trace_job job = job_of(i + 1);

                job.stream = (int)i % 2;
                job.submitted_ns = job.started_ns = 2000000 + i;
                job.ended_ns = 3000000 + i;
                job.ran_us = 1;
                assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        }
        document_end(document);
        assert_non_null(strstr(document->text, "\"worker 55, stream 0\""));
        assert_non_null(strstr(document->text, "\"worker 55, stream 1\""));
        assert_non_null(strstr(document->text, "\"worker 55, stream 1, lane 2\""));
        assert_null(strstr(document->text, "lane 3, "));
        assert_non_null(strstr(document->text, "\"device 1\""));
        assert_non_null(strstr(document->text, "\"prog (pid 77) of root, session 12\""));
        document_free(document);
}

static void what_was_before_the_trace_is_not_drawn(void **state) {
        Document *document = document_new();
        gpuq_trace_job job = job_of(1);

        job.submitted_ns = 100;
        job.behind_ns = 50;
        job.started_ns = 500;
        job.ended_ns = FROM_NS + 1000;
        job.ran_us = FROM_NS / 1000;
        assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        job.ended_ns = FROM_NS - 1;
        assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        document_end(document);
        assert_null(event_of(document, "X", "waits for jobs before it", 0));
        assert_null(event_of(document, "X", "waits for its turn", 0));
        assert_span(event_of(document, "X", "add", 1), "1000.000", "1.000");
        assert_null(event_of(document, "X", "add", 2));
        document_free(document);
}

static void an_unfinished_job_says_why_it_waits(void **state) {
        Document *document = document_new();
        gpuq_trace_job job = job_of(1);
        struct json_object *event;

        job.state = "waiting";
        job.device = -1;
        job.submitted_ns = 2000000;
        job.ended_ns = END_NS;
        assert_int_equal(trace_file_add(document->file, &job, "queued (2 jobs ahead)"), 0);
        document_end(document);
        event = event_of(document, "X", "waits", 0);
        assert_string_equal(argument(event, "waited_for_jobs_us"), "");
        assert_span(event, "2000.000", "7000.000");
        assert_string_equal(argument(event, "waits"), "queued (2 jobs ahead)");
        assert_string_equal(argument(event, "state"), "waiting");
        assert_null(event_of(document, "s", "submitted", 0));
        document_free(document);
}

static void texts_are_escaped_and_printable(void **state) {
        Document *document = document_new();
        gpuq_trace_job job = job_of(1);

        job.label = "a \"b\" \\ c\x01\n\xff \xc3\xa4";
        job.submitted_ns = job.started_ns = 2000000;
        job.ended_ns = 3000000;
        job.ran_us = 1000;
        assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        document_end(document);
        assert_string_equal(
                argument(event_of(document, "X", "a \"b\" \\ c? ? \xc3\xa4: add", 0), "label"),
                "a \"b\" \\ c? ? \xc3\xa4");
        document_free(document);
}

static void a_job_without_duration_is_drawn(void **state) {
        Document *document = document_new();
        gpuq_trace_job job = job_of(1);

        job.kernels = "";
        job.state = "failed";
        job.code = "GPUQ_E_NOT_FOUND";
        job.device = -1;
        job.submitted_ns = job.ended_ns = 2000000;
        assert_int_equal(trace_file_add(document->file, &job, ""), 0);
        document_end(document);
        assert_span(event_of(document, "X", "job without a kernel", 0), "2000.000", "0.000");
        assert_string_equal(argument(event_of(document, "X", "job without a kernel", 0), "code"),
                            "GPUQ_E_NOT_FOUND");
        document_free(document);
}

static void the_document_says_what_is_missing_and_which_clock_it_has(void **state) {
        Document *document = document_new();
        struct json_object *other;

        trace_file_mark(document->file, 2000000, "3 jobs are missing");
        document_end(document);
        assert_true(json_object_object_get_ex(document->root, "otherData", &other));
        assert_string_equal(member(other, "missing_jobs"), "3");
        assert_string_equal(member(other, "gaps"), "1");
        assert_string_equal(member(other, "monotonic_us"), "9000.000");
        assert_string_equal(member(other, "unix_us"), "1700000000000000.123");
        assert_string_equal(member(event_of(document, "i", "3 jobs are missing", 0), "s"), "g");
        document_free(document);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_parts_of_a_job_follow_each_other),
                cmocka_unit_test(an_arrow_leads_from_the_submission_to_the_run),
                cmocka_unit_test(jobs_that_overlap_get_lanes_and_give_them_back),
                cmocka_unit_test(each_stream_of_a_worker_is_a_thread_of_its_device),
                cmocka_unit_test(what_was_before_the_trace_is_not_drawn),
                cmocka_unit_test(an_unfinished_job_says_why_it_waits),
                cmocka_unit_test(texts_are_escaped_and_printable),
                cmocka_unit_test(a_job_without_duration_is_drawn),
                cmocka_unit_test(the_document_says_what_is_missing_and_which_clock_it_has),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
