/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include "listing.h"
#include "proto/pack.h"
#include "registry.h"
#include "session.h"
#include "status.h"
#include "util/list.h"

#define SNAPSHOT_STEPS      16u  /* of a turn, for an answer */
#define SNAPSHOT_BYTES_STEP 256u /* bytes of a status that cost one step more */

struct SnapshotAsk {
        Session *session;
        uint32_t serial;
        bool is_status;
        bool is_ready; /* not in snapshot->waiting any more */
        Gpuq__V1__QueueGet get;
        TAILQ_ENTRY(SnapshotAsk) link;      /* session->reports.asks */
        TAILQ_ENTRY(SnapshotAsk) wait_link; /* snapshot->waiting */
};

void snapshot_init(Snapshot *snapshot, uv_loop_t *loop) {
        TAILQ_INIT(&snapshot->waiting);
        (void)uv_timer_init(loop, &snapshot->timer); /* cannot fail: it only links */
        snapshot->has_timer = true;
}

void snapshot_close(Snapshot *snapshot) {
        if (snapshot->has_timer)
                uv_close((uv_handle_t *)&snapshot->timer, NULL);
        free(snapshot->status);
        snapshot->status = NULL;
}

/* ---- taking it ------------------------------------------------------------- */

void snapshot_take(Clients *clients, uint64_t now_ns) {
        Snapshot *snapshot = &clients->snapshot;
        SnapshotAsk *ask;

        (void)uv_timer_stop(&snapshot->timer);
        snapshot->taken_ns = now_ns;
        snapshot->n_taken++;
        free(snapshot->status);
        snapshot->status = NULL;
        while ((ask = TAILQ_FIRST(&snapshot->waiting))) {
                TAILQ_REMOVE(&snapshot->waiting, ask, wait_link);
                ask->is_ready = true;
                serving_wait(&clients->serving, &ask->session->serving);
        }
}

static void snapshot_on_timer(uv_timer_t *timer) {
        Clients *clients = timer->data;

        snapshot_take(clients, engine_now(clients->engine));
}

static bool snapshot_is_due(const Snapshot *snapshot, uint64_t now_ns) {
        return !snapshot->taken_ns || now_ns >= snapshot->taken_ns + SNAPSHOT_NS;
}

static void snapshot_await(Clients *clients, SnapshotAsk *ask, uint64_t now_ns) {
        Snapshot *snapshot = &clients->snapshot;
        uint64_t wait_ns = snapshot->taken_ns + SNAPSHOT_NS - now_ns;

        if (TAILQ_EMPTY(&snapshot->waiting)) {
                snapshot->timer.data = clients;
                uv_update_time(clients->engine->loop);
                uv_timer_start(&snapshot->timer, snapshot_on_timer, wait_ns / 1000000 + 1, 0);
        }
        TAILQ_INSERT_TAIL(&snapshot->waiting, ask, wait_link);
}

/* ---- asking ---------------------------------------------------------------- */

/* @get: NULL: the status. */
static void snapshot_ask(Session *session, uint32_t serial, const Gpuq__V1__QueueGet *get) {
        uint64_t now_ns = engine_now(session->engine);
        Clients *clients = session->clients;
        SnapshotAsk *ask;

        ask = calloc(1, sizeof(*ask));
        if (!ask) {
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_MEMORY, "gpuqd has no memory for a report"));
                return;
        }
        ask->session = session;
        ask->serial = serial;
        ask->is_status = !get;
        gpuq__v1__queue_get__init(&ask->get);
        if (get) {
                ask->get.all_users = get->all_users;
                ask->get.one_user = get->one_user;
                ask->get.uid = get->uid;
        }
        TAILQ_INSERT_TAIL(&session->reports.asks, ask, link);
        session->reports.n_asks++;

        if (!snapshot_is_due(&clients->snapshot, now_ns)) {
                snapshot_await(clients, ask, now_ns);
                session_flush_later(session); /* which stops reading if it is too busy */
                return;
        }
        ask->is_ready = true;
        snapshot_take(clients, now_ns);
        session_answer_reports(session);
}

void snapshot_ask_status(Session *session, uint32_t serial) {
        snapshot_ask(session, serial, NULL);
}

void snapshot_ask_queue(Session *session, uint32_t serial, const Gpuq__V1__QueueGet *get) {
        snapshot_ask(session, serial, get);
}

/* ---- answering ------------------------------------------------------------- */

/* Reply { serial, status }: first what every client gets alike, then the limits of this client's user. */
static void snapshot_send_status(Session *session, uint32_t serial, const uint8_t *own,
                                 size_t n_own) {
        const Snapshot *snapshot = &session->clients->snapshot;
        uint8_t *payload, *begin, *p;

        if (!session_reply_begin(session, serial, -1,
                                 PACK_FIELD_BYTES + PACK_PREFIX_BYTES + snapshot->n_status + n_own,
                                 &payload))
                return;
        p = pack_number(payload, 1, serial);
        begin = p = pack_begin(p, GPUQ__V1__REPLY__BODY_STATUS);
        if (snapshot->n_status)
                memcpy(p, snapshot->status, snapshot->n_status);
        p += snapshot->n_status;
        memcpy(p, own, n_own);
        p += n_own;
        pack_end(begin, p);
        session_reply_end(session, (size_t)(p - payload));
}

static void snapshot_answer_status(Session *session, uint32_t serial) {
        Snapshot *snapshot = &session->clients->snapshot;
        size_t n_own = 0;
        uint8_t *own;
        int r = 0;

        if (!snapshot->status)
                r = status_pack(session->clients, &snapshot->status, &snapshot->n_status);
        if (r == 0)
                r = status_pack_own(session->clients, session->submitter.user,
                                    session->peer.is_admin, &own, &n_own);
        if (r < 0)
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_MEMORY, "gpuqd has no memory for the status"));
        else
                snapshot_send_status(session, serial, own, n_own);
        bump_reset(session->clients->bump);
        serving_pay(&session->serving,
                    SNAPSHOT_STEPS + (snapshot->n_status + n_own) / SNAPSHOT_BYTES_STEP);
}

static void snapshot_drop_ask(SnapshotAsk *ask) {
        if (!ask->is_ready)
                TAILQ_REMOVE(&ask->session->clients->snapshot.waiting, ask, wait_link);
        TAILQ_REMOVE(&ask->session->reports.asks, ask, link);
        ask->session->reports.n_asks--;
        free(ask);
}

static void snapshot_answer_one(Session *session, const SnapshotAsk *ask) {
        if (ask->is_status)
                snapshot_answer_status(session, ask->serial);
        else
                listing_begin(session, ask->serial, &ask->get);
}

void session_answer_reports(Session *session) {
        Serving *serving = &session->clients->serving;
        SnapshotAsk *ask;

        while ((ask = TAILQ_FIRST(&session->reports.asks)) && ask->is_ready) {
                if (!serving_goes_on(&session->serving)) {
                        serving_wait(serving, &session->serving);
                        return;
                }
                snapshot_answer_one(session, ask);
                snapshot_drop_ask(ask);
        }
}

void session_drop_reports(Session *session) {
        while (!TAILQ_EMPTY(&session->reports.asks))
                snapshot_drop_ask(TAILQ_FIRST(&session->reports.asks));
        listing_drop_all(session);
}
