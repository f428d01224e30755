/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients' questions about the history, and their answers.
 */
#include <stdio.h>
#include <string.h>

#include "accounting_state.h"
#include "proto/pack.h"
#include "util/list.h"

#define QUERY_STEPS       16u  /* of a turn, for an answer */
#define QUERY_BYTES_STEP  256u /* bytes that cost one step more */
#define QUERY_REPLY_BYTES (256u << 10)

struct AccountingQuery {
        DiskCall call;
        Accounting *accounting;
        Session *session; /* NULL once it is gone while the thread still reads for it */
        User *user;
        uint32_t serial;
        UserCharge charge; /* with the answer, of which a person has one at a time */
        ArchiveQuery what;
        bool is_report;
        bool is_running; /* the thread has it */
        bool set_aside;  /* the database was damaged */
        uint8_t *data;   /* the packed answer */
        size_t n_data;
        int r;
        TAILQ_ENTRY(AccountingQuery) link; /* accounting->queries */
};

_Static_assert(ARCHIVE_PAGE *(LIMIT_JOB_LABEL + TALLY_KERNELS_MAX + TALLY_REASON_MAX + 320) +
                               sizeof(AccountingQuery) <=
                       QUERY_REPLY_BYTES,
               "the answer is charged");

static void query_free(AccountingQuery *query) {
        TAILQ_REMOVE(&query->accounting->queries, query, link);
        user_uncharge(&query->charge);
        user_release(query->user);
        free(query->data);
        free(query);
}

/* ---- answers --------------------------------------------------------------- */

static Failure *query_failure(const AccountingQuery *query) {
        const Accounting *accounting = query->accounting;

        if (query->r == ARCHIVE_E_LONG)
                return failure_new(FAILURE_TIMEOUT,
                                   "the report took longer than %u s; ask for a shorter time",
                                   ARCHIVE_REPORT_MS / 1000);
        if (*accounting->problem)
                return failure_new(FAILURE_NOT_FOUND, "%s", accounting->problem);
        return failure_new(FAILURE_INTERNAL, "cannot read the history: %s",
                           query->r == ARCHIVE_E_DAMAGED ? "it is damaged" : strerror(-query->r));
}

/* Reply { serial, history or report } */
static void query_send(AccountingQuery *query) {
        unsigned field =
                query->is_report ? GPUQ__V1__REPLY__BODY_REPORT : GPUQ__V1__REPLY__BODY_HISTORY;
        uint8_t *payload, *begin, *p;

        if (!session_reply_begin(query->session, query->serial, -1,
                                 PACK_FIELD_BYTES + PACK_PREFIX_BYTES + query->n_data, &payload))
                return;
        p = pack_number(payload, 1, query->serial);
        begin = p = pack_begin(p, field);
        if (query->n_data)
                memcpy(p, query->data, query->n_data);
        p += query->n_data;
        pack_end(begin, p);
        session_reply_end(query->session, (size_t)(p - payload));
        serving_pay(&query->session->serving, QUERY_STEPS + query->n_data / QUERY_BYTES_STEP);
}

static void query_on_done(void *userdata) {
        AccountingQuery *query = userdata;
        Accounting *accounting = query->accounting;

        if (query->set_aside)
                accounting_note_set_aside(accounting);
        if (query->session && query->r)
                session_fail_request(query->session, query->serial, query_failure(query));
        else if (query->session)
                query_send(query);
        query_free(query);
        queries_serve(accounting);
}

/* ---- the thread ------------------------------------------------------------ */

static void query_in_thread(void *userdata) {
        AccountingQuery *query = userdata;
        Accounting *accounting = query->accounting;

        if (!accounting->archive) {
                query->r = -ENOENT;
                return;
        }
        query->r = query->is_report ? archive_report(accounting->archive, &query->what,
                                                     &query->data, &query->n_data)
                                    : archive_history(accounting->archive, &query->what,
                                                      &query->data, &query->n_data);
        if (query->r != ARCHIVE_E_DAMAGED)
                return;
        accounting->archive = archive_free(accounting->archive);
        query->set_aside = archive_set_aside(accounting->path) == 0;
}

/* ---- in which order -------------------------------------------------------- */

static bool query_may_start(const AccountingQuery *query) {
        const AccountingQuery *other;

        TAILQ_FOREACH (other, &query->accounting->queries, link)
                if (other->is_running && other->user->person == query->user->person)
                        return false;
        return !query->is_running;
}

static bool queries_wait(const Accounting *accounting) {
        const AccountingQuery *query;

        TAILQ_FOREACH (query, &accounting->queries, link)
                if (query_may_start(query))
                        return true;
        return false;
}

/* What ended before a query is written first: the thread makes its calls in order. */
void queries_serve(Accounting *accounting) {
        AccountingQuery *query;

        if (accounting->is_busy || !queries_wait(accounting))
                return;
        if (accounting->tally->n_jobs && !accounting->work.batch)
                accounting_write(accounting);
        TAILQ_FOREACH (query, &accounting->queries, link) {
                if (!query_may_start(query))
                        continue;
                query->is_running = true;
                query->call = (DiskCall){
                        .run = query_in_thread, .done = query_on_done, .userdata = query};
                disk_call(accounting->disk, &accounting->line, &query->call);
        }
}

void accounting_forget(Accounting *accounting, const Session *session) {
        AccountingQuery *query, *next;

        TAILQ_FOREACH_SAFE (query, &accounting->queries, link, next) {
                if (query->session != session)
                        continue;
                if (query->is_running)
                        query->session = NULL;
                else
                        query_free(query);
        }
}

/* ---- requests -------------------------------------------------------------- */

/* Only an administrator may name others than itself. */
static Failure *query_whose(const Session *session, const uint32_t *uids, size_t n_uids,
                            ArchiveQuery *what) {
        if (n_uids > ARCHIVE_NAMED)
                return failure_new(FAILURE_INVALID, "more than %u users", ARCHIVE_NAMED);
        for (size_t i = 0; i < n_uids && !session->peer.is_admin; ++i)
                if (uids[i] != session->peer.uid)
                        return failure_new(
                                FAILURE_DENIED,
                                "only root and the admin group may see other users' history");
        what->one_user = n_uids == 1 || !session->peer.is_admin;
        what->uid = n_uids ? uids[0] : (uint32_t)session->peer.uid;
        if (what->one_user)
                return NULL;
        what->n_uids = n_uids;
        if (n_uids)
                memcpy(what->uids, uids, n_uids * sizeof(*uids));
        return NULL;
}

static Failure *query_check(const Accounting *accounting) {
        if (accounting->disk && !accounting->is_on)
                return failure_new(FAILURE_NOT_FOUND,
                                   "there is no history: history_keep_days is 0 in gpuqd.conf");
        if (!accounting->disk)
                return failure_new(FAILURE_NOT_FOUND, "%s", accounting->problem);
        return NULL;
}

static Failure *query_new(Accounting *accounting, Session *session, uint32_t serial,
                          AccountingQuery **ret_query) {
        User *user = session->submitter.user;
        AccountingQuery *query;
        Failure *failure;

        failure = query_check(accounting);
        if (failure)
                return failure;
        query = calloc(1, sizeof(*query));
        if (!query)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for the request");
        if (user_charge(user, &query->charge, USER_RECORD_BYTES, QUERY_REPLY_BYTES) ==
            USER_E_QUOTA) {
                free(query);
                return user_quota_failure(user, USER_RECORD_BYTES, QUERY_REPLY_BYTES);
        }
        query->accounting = accounting;
        query->session = session;
        query->user = user_hold(user);
        query->serial = serial;
        TAILQ_INSERT_TAIL(&accounting->queries, query, link);
        *ret_query = query;
        return NULL;
}

static uint64_t query_time(uint64_t ms) {
        return MIN(ms, (uint64_t)INT64_MAX);
}

static void query_begin(Session *session, uint32_t serial, AccountingQuery *query,
                        Failure *failure) {
        Accounting *accounting = session->clients->accounting;

        if (failure) {
                session_fail_request(session, serial, failure);
                if (query)
                        query_free(query);
                return;
        }
        queries_serve(accounting);
}

static Failure *history_read(const Session *session, const Gpuq__V1__HistoryGet *get,
                             ArchiveQuery *what) {
        if (strlen(get->kernel) >= sizeof(what->kernel))
                return failure_new(FAILURE_INVALID,
                                   "the name of the kernel is longer than %u bytes",
                                   TALLY_KERNELS_MAX);
        if (strlen(get->label) >= sizeof(what->label))
                return failure_new(FAILURE_INVALID, "the label is longer than %u bytes",
                                   LIMIT_JOB_LABEL);
        if (get->n_ids > ARCHIVE_NAMED)
                return failure_new(FAILURE_INVALID, "more than %u ids", ARCHIVE_NAMED);
        what->n_ids = get->n_ids;
        if (get->n_ids)
                memcpy(what->ids, get->ids, get->n_ids * sizeof(*get->ids));
        what->device = get->device;
        snprintf(what->kernel, sizeof(what->kernel), "%s", get->kernel);
        snprintf(what->label, sizeof(what->label), "%s", get->label);
        what->has_label = get->one_label;
        what->slurm_job = get->slurm_job;
        what->since_ms = query_time(get->since_ms);
        what->until_ms = get->until_ms ? query_time(get->until_ms) : INT64_MAX;
        what->states = get->states;
        what->next_ms = query_time(get->next_ms);
        what->next_row = query_time(get->next_row);
        return get->one_user ? query_whose(session, &get->uid, 1, what)
                             : query_whose(session, get->uids, get->n_uids, what);
}

void accounting_on_history(Accounting *accounting, Session *session, uint32_t serial,
                           const Gpuq__V1__HistoryGet *get) {
        AccountingQuery *query = NULL;
        Failure *failure;

        failure = query_new(accounting, session, serial, &query);
        if (!failure)
                failure = history_read(session, get, &query->what);
        query_begin(session, serial, query, failure);
}

static Failure *report_read(const Session *session, const Gpuq__V1__ReportGet *get,
                            ArchiveQuery *what) {
        if ((unsigned)get->grouping > GPUQ__V1__GROUPING__BY_ACCOUNT)
                return failure_new(FAILURE_INVALID, "unknown grouping");
        what->grouping = get->grouping;
        what->since_ms = query_time(get->since_ms);
        what->until_ms = get->until_ms ? query_time(get->until_ms) : INT64_MAX;
        what->device = get->device;
        return get->one_user ? query_whose(session, &get->uid, 1, what)
                             : query_whose(session, get->uids, get->n_uids, what);
}

void accounting_on_report(Accounting *accounting, Session *session, uint32_t serial,
                          const Gpuq__V1__ReportGet *get) {
        AccountingQuery *query = NULL;
        Failure *failure;

        failure = query_new(accounting, session, serial, &query);
        if (!failure) {
                query->is_report = true;
                failure = report_read(session, get, &query->what);
        }
        query_begin(session, serial, query, failure);
}
