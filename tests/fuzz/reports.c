/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people read of a daemon that lies (liar.h): status, queue, history, report, explanation and
 * trace. Each text and each row must be there in full, and each state is one that the header names.
 */

#include <gpuq.h>

#include <stdlib.h>

#include "input.h"
#include "liar.h"

#define REPORTS_STEPS_MAX 50u

typedef struct Reader {
        Input input;
        gpuq_client *client;
        gpuq_history_query query;
        gpuq_trace_cursor cursor;
} Reader;

static void must(bool is_so) {
        if (!is_so)
                abort();
}

static void use_bytes(const void *bytes, size_t n) {
        const volatile uint8_t *p = bytes;

        for (size_t i = 0; i < n; i++)
                (void)p[i];
}

static void use_text(const char *text) {
        use_bytes(text, strlen(text) + 1);
}

/* "unknown": a newer daemon's. */
static void use_state(const char *state, const char *const *names) {
        while (*names && strcmp(*names, state) != 0)
                names++;
        must(*names || strcmp(state, "unknown") == 0);
}

static void use_end(const char *state) {
        static const char *const names[] = {"done", "failed", "cancelled", NULL};

        use_state(state, names);
}

static void read_status(Reader *reader) {
        gpuq_status *status;

        if (gpuq_get_status(reader->client, &status) < 0)
                return;
        use_text(status->daemon);
        use_text(status->history_problem);
        if (status->lacks)
                use_text(status->lacks);
        for (size_t i = 0; i < status->n_devices; i++) {
                use_text(status->devices[i].pci);
                use_text(status->devices[i].state);
                if (status->devices[i].drained)
                        use_text(status->devices[i].drained);
        }
        use_bytes(status->workers, status->n_workers * sizeof(*status->workers));
        for (size_t i = 0; i < status->n_workers; i++)
                use_text(status->workers[i].state);
        use_bytes(status->users, status->n_users * sizeof(*status->users));
        for (size_t i = 0; i < status->n_users; i++)
                use_text(status->users[i].user);
        for (size_t i = 0; i < status->n_limits; i++)
                use_text(status->limits[i].key);
        gpuq_status_free(status);
}

static void read_queue(Reader *reader) {
        gpuq_queue *queue;

        if (gpuq_get_queue(reader->client, input_u8(&reader->input) - 1, &queue) < 0)
                return;
        use_bytes(queue->entries, queue->n_entries * sizeof(*queue->entries));
        for (size_t i = 0; i < queue->n_entries; i++) {
                use_text(queue->entries[i].label);
                use_text(queue->entries[i].state);
                use_text(queue->entries[i].reason);
        }
        for (size_t i = 0; i < queue->n_modules; i++) {
                use_text(queue->modules[i].name);
                use_text(queue->modules[i].reason);
        }
        gpuq_queue_free(queue);
}

/* A page; the next one goes on, or begins anew. */
static void read_history(Reader *reader) {
        static const char *const states[] = {NULL, "done", "cancelled", "lost"};
        gpuq_history *history;

        if (input_below(&reader->input, 4) == 0)
                reader->query = (gpuq_history_query){
                        .uid = input_u8(&reader->input) - 1,
                        .device = -1,
                        .state = states[input_below(&reader->input, 4)],
                };
        if (gpuq_get_history(reader->client, &reader->query, &history) < 0)
                return;
        use_bytes(history->rows, history->n_rows * sizeof(*history->rows));
        for (size_t i = 0; i < history->n_rows; i++) {
                use_end(history->rows[i].state);
                use_text(history->rows[i].code);
                use_text(history->rows[i].label);
                use_text(history->rows[i].kernels);
                use_text(history->rows[i].reason);
        }
        gpuq_history_free(history);
}

static void read_report(Reader *reader) {
        gpuq_report_query query = {.by = GPUQ_REPORT_BY_LABEL, .uid = -1, .device = -1};
        gpuq_report *report;

        if (gpuq_get_report(reader->client, &query, &report) < 0)
                return;
        use_bytes(report->rows, report->n_rows * sizeof(*report->rows));
        for (size_t i = 0; i < report->n_rows; i++)
                use_text(report->rows[i].label);
        gpuq_report_free(report);
}

static void read_explanation(Reader *reader) {
        static const char *const states[] = {"waiting", "running",   "done",
                                             "failed",  "cancelled", NULL};
        gpuq_explanation *explanation;

        if (gpuq_explain(reader->client, input_edge(&reader->input), &explanation) < 0)
                return;
        use_state(explanation->state, states);
        use_text(explanation->label);
        use_text(explanation->kernel);
        use_text(explanation->reason);
        use_text(explanation->advice);
        gpuq_explanation_free(explanation);
}

static void read_trace(Reader *reader) {
        gpuq_trace *trace;

        if (gpuq_get_trace(reader->client, &reader->cursor, &trace) < 0)
                return;
        use_bytes(trace->jobs, trace->n_jobs * sizeof(*trace->jobs));
        for (size_t i = 0; i < trace->n_jobs; i++) {
                use_end(trace->jobs[i].state);
                use_text(trace->jobs[i].code);
                use_text(trace->jobs[i].label);
                use_text(trace->jobs[i].kernels);
                use_text(trace->jobs[i].program);
        }
        gpuq_trace_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        static void (*const steps[])(Reader * reader) = {
                read_history, read_report, read_explanation, read_trace, read_status, read_queue,
        };
        Reader reader = {.input = {data, n_data}, .query = {.uid = -1}};

        liar_start(&reader.input);
        if (gpuq_connect(liar_path(), &reader.client) == 0) {
                for (unsigned i = 0; i < REPORTS_STEPS_MAX && reader.input.n; i++)
                        steps[input_below(&reader.input, ARRAY_SIZE(steps))](&reader);
                gpuq_client_free(reader.client);
        }
        liar_stop();
        return 0;
}
