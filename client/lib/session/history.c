/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of ended jobs, and reports about it.
 */

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "call.h"
#include "error.h"

/* ---- history --------------------------------------------------------------- */

static const char *const history_states[] = {
        [GPUQ__V1__STATE__DONE] = "done",
        [GPUQ__V1__STATE__FAILED] = "failed",
        [GPUQ__V1__STATE__CANCELLED] = "cancelled",
};

static const char *history_state(Gpuq__V1__State state) {
        const char *text =
                (size_t)state < ARRAY_SIZE(history_states) ? history_states[state] : NULL;

        return text ? text : "unknown";
}

/* Return: 0: there is no such state. */
static uint32_t history_state_bit(const char *state, size_t n_state) {
        for (size_t i = 0; i < ARRAY_SIZE(history_states); i++)
                if (history_states[i] && strlen(history_states[i]) == n_state &&
                    strncmp(history_states[i], state, n_state) == 0)
                        return 1u << i;
        return 0;
}

/* Of a list with commas. */
static int history_state_bits(const char *states, uint32_t *ret_states) {
        uint32_t bits = 0;

        for (;;) {
                size_t n = strcspn(states, ",");
                uint32_t bit = history_state_bit(states, n);

                if (!bit)
                        return error_set(GPUQ_E_INVALID, "no jobs end in state \"%.*s\"", (int)n,
                                         states);
                bits |= bit;
                if (!states[n])
                        break;
                states += n + 1;
        }
        *ret_states = bits;
        return 0;
}

static gpuq_spread history_spread(const Gpuq__V1__Spread *spread, uint64_t us) {
        if (!spread)
                return (gpuq_spread){us, us, us};
        return (gpuq_spread){spread->median, spread->p95, spread->p99};
}

/* A row with spreads is of jobs that short ones share, even if there is only one. */
static uint64_t history_submitted_ms(const Gpuq__V1__HistoryRow *row) {
        uint64_t took_ms = (row->waited_us + row->ran_us) / 1000;

        return row->waited || took_ms > row->at_ms ? 0 : row->at_ms - took_ms;
}

static gpuq_history_row history_row(const Gpuq__V1__HistoryRow *row, Block *block) {
        return (gpuq_history_row){
                .id = row->id,
                .at_ms = row->at_ms,
                .submitted_ms = history_submitted_ms(row),
                .uid = row->uid,
                .gid = row->gid,
                .label = block_text(block, row->label),
                .kernels = block_text(block, row->kernels),
                .state = history_state(row->state),
                .code = row->code ? gpuq_error_name(error_from_code(row->code)) : "",
                .reason = block_text(block, row->reason),
                .device = (int)(row->device - 1),
                .jobs = row->jobs,
                .waited_us = row->waited_us,
                .ran_us = row->ran_us,
                .gpu_ns = row->gpu_ns,
                .bytes = row->bytes,
                .retries = row->retries,
                .waited = history_spread(row->jobs > 1 ? row->waited : NULL, row->waited_us),
                .ran = history_spread(row->jobs > 1 ? row->ran : NULL, row->ran_us),
                .slurm_job = row->slurm_job,
        };
}

static size_t history_n_texts(const Gpuq__V1__History *from) {
        size_t n = 0;

        for (size_t i = 0; i < from->n_rows; i++)
                n += strlen(from->rows[i]->label) + strlen(from->rows[i]->kernels) +
                     strlen(from->rows[i]->reason) + 3;
        return n;
}

static int history_new(const Gpuq__V1__History *from, gpuq_history **ret_history) {
        gpuq_history *history;
        Block block;
        int r;

        r = block_new(sizeof(*history) + from->n_rows * sizeof(*history->rows),
                      history_n_texts(from), &block);
        if (r < 0)
                return r;

        history = (gpuq_history *)block.memory;
        history->rows = (gpuq_history_row *)(history + 1);
        history->n_rows = from->n_rows;
        history->is_last = !from->next_ms && !from->next_row;
        for (size_t i = 0; i < from->n_rows; i++)
                history->rows[i] = history_row(from->rows[i], &block);
        *ret_history = history;
        return 0;
}

static int history_get(gpuq_client *client, gpuq_history_query *query, gpuq_history **ret_history) {
        Gpuq__V1__HistoryGet get = GPUQ__V1__HISTORY_GET__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        get.since_ms = query->since_ms;
        get.until_ms = query->until_ms;
        get.one_user = query->uid >= 0;
        get.uid = query->uid < 0 ? 0 : (uint32_t)query->uid;
        get.kernel = (char *)(query->kernel ? query->kernel : "");
        get.one_label = query->label != NULL;
        get.label = (char *)(query->label ? query->label : "");
        get.uids = (uint32_t *)query->uids;
        get.n_uids = query->n_uids;
        get.ids = (uint64_t *)query->ids;
        get.n_ids = query->n_ids;
        get.device = query->device < 0 ? 0 : (uint32_t)query->device + 1;
        get.slurm_job = query->slurm_job;
        get.next_ms = query->next_ms;
        get.next_row = query->next_row;
        r = query->state ? history_state_bits(query->state, &get.states) : 0;
        if (r < 0)
                return r;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_HISTORY_GET, &get,
                     GPUQ__V1__REPLY__BODY_HISTORY, CLIENT_FOREVER, &reply, NULL);
        if (r < 0)
                return r;
        query->next_ms = reply->history->next_ms;
        query->next_row = reply->history->next_row;
        return history_new(reply->history, ret_history);
}

int gpuq_get_history(gpuq_client *client, gpuq_history_query *query, gpuq_history **ret_history) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;
        if (query->uid > UINT32_MAX)
                return client_leave(client, error_set(GPUQ_E_INVALID, "the uid is out of range"));

        return client_leave(client, history_get(client, query, ret_history));
}

void gpuq_history_free(gpuq_history *history) {
        free(history);
}

/* ---- reports --------------------------------------------------------------- */

static gpuq_report_row report_row(const Gpuq__V1__ReportRow *row, Block *block) {
        return (gpuq_report_row){
                .uid = row->uid,
                .gid = row->gid,
                .label = block_text(block, row->label),
                .jobs = row->jobs,
                .failed = row->failed,
                .cancelled = row->cancelled,
                .waited_us = row->waited_us,
                .ran_us = row->ran_us,
                .gpu_ns = row->gpu_ns,
                .bytes = row->bytes,
                .retries = row->retries,
                .slurm_job = row->slurm_job,
                .account = block_text(block, row->account),
        };
}

static int report_new(const Gpuq__V1__Report *from, gpuq_report **ret_report) {
        gpuq_report *report;
        size_t n_texts = 0;
        Block block;
        int r;

        for (size_t i = 0; i < from->n_rows; i++)
                n_texts += strlen(from->rows[i]->label) + strlen(from->rows[i]->account) + 2;
        r = block_new(sizeof(*report) + from->n_rows * sizeof(*report->rows), n_texts, &block);
        if (r < 0)
                return r;

        report = (gpuq_report *)block.memory;
        report->rows = (gpuq_report_row *)(report + 1);
        report->n_rows = from->n_rows;
        report->is_cut = from->cut;
        for (size_t i = 0; i < from->n_rows; i++)
                report->rows[i] = report_row(from->rows[i], &block);
        *ret_report = report;
        return 0;
}

static int report_get(gpuq_client *client, Gpuq__V1__ReportGet *get, gpuq_report **ret_report) {
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        r = call_run(client, GPUQ__V1__REQUEST__BODY_REPORT_GET, get, GPUQ__V1__REPLY__BODY_REPORT,
                     CLIENT_FOREVER, &reply, NULL);
        return r < 0 ? r : report_new(reply->report, ret_report);
}

int gpuq_get_report(gpuq_client *client, const gpuq_report_query *query, gpuq_report **ret_report) {
        Gpuq__V1__ReportGet get = GPUQ__V1__REPORT_GET__INIT;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;
        if (query->uid > UINT32_MAX)
                return client_leave(client, error_set(GPUQ_E_INVALID, "the uid is out of range"));

        get.since_ms = query->since_ms;
        get.until_ms = query->until_ms;
        get.one_user = query->uid >= 0;
        get.uid = query->uid < 0 ? 0 : (uint32_t)query->uid;
        get.uids = (uint32_t *)query->uids;
        get.n_uids = query->n_uids;
        get.device = query->device < 0 ? 0 : (uint32_t)query->device + 1;
        get.grouping = (Gpuq__V1__Grouping)query->by;
        return client_leave(client, report_get(client, &get, ret_report));
}

void gpuq_report_free(gpuq_report *report) {
        free(report);
}
