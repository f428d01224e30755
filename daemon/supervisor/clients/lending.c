/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lending
 *
 * A lending decides who reads its session's direct ring (proto/direct_ring.h). gpuqd offers the ring to a session that fires
 * prepared jobs and does nothing else. Once it does, and its earlier jobs have ended, a worker has the ring as a lease
 * (jobs/lease.h); at all other times what is in it is read here, as if it had come in messages.
 *
 *     IDLE --> OFFERED --> BEGUN --> LENT --> RETURNING --> LEFT --> IDLE
 *                 |          |                               ^
 *                 +----------+-------------------------------+
 *
 * OFFERED: the client may use it, and has not answered yet. BEGUN: it does; its earlier jobs have not ended. RETURNING:
 * the worker was asked for it. LEFT: the client was asked to stop, and has not answered yet. Whatever the client wants
 * besides begins with its answer that it has stopped, DirectEnd, so the order of its jobs is known.
 */
#include "session.h"

#include <string.h>

#include "proto/direct_ring.h"
#include "registry.h"
#include "util/list.h"
#include "util/log.h"

#define LENDING_AFTER        64u /* unchanged jobs fired one after the other before the ring is offered */
#define LENDING_PREPARED_MAX 4096u /* a session with more is offered none */
#define LENDING_BEGUN_NS                                                                           \
        5000000ull /* a ring that waits longer for its session's earlier jobs is read here */
#define LENDING_SHORT_NS 100000000ull  /* a loan that ended sooner did not pay */
#define LENDING_WAIT_NS  10000000ull   /* until the next offer, */
#define LENDING_WAIT_MAX 2560000000ull /* and after several such loans */

typedef enum LendingState {
        LENDING_IDLE,
        LENDING_OFFERED,
        LENDING_BEGUN,
        LENDING_LENT,
        LENDING_RETURNING,
        LENDING_LEFT,
} LendingState;

struct Lending {
        Session *session;
        LendingState state;
        TAILQ_ENTRY(Lending) link; /* clients->lent: OFFERED to RETURNING */
        DirectRing ring;
        UserCharge charge;
        Lease lease;
        unsigned n_fires;  /* plain ones since another request */
        uint64_t begun_ns; /* when the client began to use the ring; 0: it does not */
        uint64_t lent_ns;  /* when the worker got it; 0: it has not */
        uint64_t again_ns; /* no offer before this time */
        uint64_t wait_ns;
        bool has_begun; /* the client fires jobs there, as far as is known */
        bool is_closing;
};

/* ---- its life -------------------------------------------------------------- */

static const LeaseOps lending_lease_ops;

static Lending *lending_of(Lease *lease) {
        return container_of(lease, Lending, lease);
}

bool lending_can(const Session *session) {
        const Config *config = session->engine->config;

        return config->rings.direct && !config->isolation.shared;
}

static Failure *lending_make(Session *session, int ret_bells[static 2]) {
        Lending *lending;
        int r;

        if (!lending_can(session))
                return failure_new(FAILURE_INVALID,
                                   "direct rings are switched off; see direct in gpuqd.conf");
        if (session->ring.direct)
                return failure_new(FAILURE_INVALID, "this session already has a direct ring");
        lending = calloc(1, sizeof(*lending));
        if (!lending)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a direct ring");

        *lending = (Lending){
                .session = session,
                .wait_ns = LENDING_WAIT_NS,
                .lease = {.ops = &lending_lease_ops,
                          .submitter = &session->submitter,
                          .ring_fd = -1,
                          .bell_fd = -1},
        };
        session->ring.direct = lending;
        if (user_charge(session->submitter.user, &lending->charge, USER_RING_BYTES,
                        direct_ring_bytes()) == USER_E_QUOTA)
                return failure_new(FAILURE_QUOTA,
                                   "the connections of user %s already have %u MiB of rings; this "
                                   "limit is fixed",
                                   session->submitter.user->name, USER_RINGS_MAX >> 20);
        r = direct_ring_make(&lending->ring, &lending->lease.ring_fd);
        if (r == 0)
                r = direct_bell_make(ret_bells);
        if (r < 0)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a direct ring: %s",
                                   strerror(-r));
        lending->lease.bell_fd = ret_bells[0];
        return NULL;
}

void lending_open(Session *session, uint32_t serial) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__DirectReady ready = GPUQ__V1__DIRECT_READY__INIT;
        Gpuq__V1__DirectBell bell = GPUQ__V1__DIRECT_BELL__INIT;
        bool had_one = session->ring.direct;
        int bells[2] = {-1, -1};
        Failure *failure;

        failure = session_check_room(session);
        if (!failure)
                failure = lending_make(session, bells);
        if (failure) {
                if (!had_one)
                        lending_free(session);
                session_fail_request(session, serial, failure);
                return;
        }

        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_DIRECT_READY;
        reply.direct_ready = &ready;
        session_reply(session, &reply, session->ring.direct->lease.ring_fd);
        reply.body_case = GPUQ__V1__REPLY__BODY_DIRECT_BELL;
        reply.direct_bell = &bell;
        session_reply(session, &reply, bells[1]);
        close(bells[1]);
}

void lending_free(Session *session) {
        Lending *lending = session->ring.direct;

        if (!lending)
                return;
        if (lending->state >= LENDING_OFFERED && lending->state <= LENDING_RETURNING)
                TAILQ_REMOVE(&session->clients->lent, lending, link);
        lease_drop(&lending->lease);
        direct_ring_release(&lending->ring);
        closep(&lending->lease.ring_fd);
        closep(&lending->lease.bell_fd);
        user_uncharge(&lending->charge);
        free(lending);
        session->ring.direct = NULL;
}

/* ---- what the client is told ------------------------------------------------- */

static void lending_tell_lend(Lending *lending, const Device *device) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__DirectLend lend = GPUQ__V1__DIRECT_LEND__INIT;

        lend.device = device->index;
        reply.body_case = GPUQ__V1__REPLY__BODY_DIRECT_LEND;
        reply.direct_lend = &lend;
        session_reply(lending->session, &reply, -1);
}

static void lending_tell_recall(Lending *lending) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__DirectRecall recall = GPUQ__V1__DIRECT_RECALL__INIT;

        reply.body_case = GPUQ__V1__REPLY__BODY_DIRECT_RECALL;
        reply.direct_recall = &recall;
        session_reply(lending->session, &reply, -1);
}

/* ---- reading what a worker does not read --------------------------------------- */

static void lending_break(Lending *lending) {
        lending->session->is_broken = true;
        session_flush_later(lending->session);
}

/* Entries as messages would have brought them. */
static void lending_read(Lending *lending) {
        Session *session = lending->session;
        uint32_t tag, prepared;

        for (unsigned i = 0; i < DIRECT_RING_ENTRIES; ++i) {
                if (session->is_broken || session->state >= SESSION_CLOSING ||
                    !direct_ring_look(&lending->ring, &tag, &prepared))
                        return;
                direct_ring_take(&lending->ring, tag);
                if (session_fire_one(session, prepared, tag))
                        lending_break(lending);
        }
}

static void lending_adopt_one(Lending *lending, Executor *executor, LeaseTaken job) {
        Session *session = lending->session;

        if (job.tag <= session->last_tag) {
                lending_break(lending);
                return;
        }
        session->last_tag = job.tag;
        if (lease_adopt(&lending->lease, executor, job.prepared, job.tag) < 0)
                lending_break(lending);
}

/*
 * The jobs that the worker had when it died, as it noted in the ring. The client may have changed that: then jobs of its
 * own run again, or do not.
 */
static void lending_adopt_lost(Lending *lending, Executor *executor) {
        const DirectRing *ring = &lending->ring;
        Lease *lease = &lending->lease;

        lease->n_taken = __atomic_load_n(&ring->shared->n_taken, __ATOMIC_ACQUIRE);
        lease->last_tag = __atomic_load_n(&ring->shared->last_tag, __ATOMIC_RELAXED);
        for (uint32_t i = 0; i < DIRECT_RING_ENTRIES; ++i) {
                const DirectEntry *entry = direct_ring_entry(ring, lease->n_taken + i);
                uint32_t tag = __atomic_load_n(&entry->taken, __ATOMIC_ACQUIRE);
                uint32_t prepared = __atomic_load_n(&entry->prepared, __ATOMIC_RELAXED);

                if (tag > lending->session->last_tag && tag <= lease->last_tag &&
                    !direct_ring_is_done(entry, tag))
                        lending_adopt_one(lending, executor, (LeaseTaken){tag, prepared});
        }
}

/*
 * Jobs before the first one that is not done are done. The history gets those behind it, which ended in no order.
 * @before: the last tag before the loan
 */
static void lending_note_loan(Lending *lending, uint32_t before) {
        uint32_t n_written = __atomic_load_n(&lending->ring.shared->n_written, __ATOMIC_SEQ_CST);
        Submitter *submitter = &lending->session->submitter;
        const Job *job = TAILQ_FIRST(&submitter->jobs);
        History *history = submitter->user->history;
        uint32_t last_tag;
        uint64_t first; /* behind the last tag that there is, if need be */

        lending->ring.position = lending->lease.n_taken;
        if (n_written - lending->ring.position > DIRECT_RING_ENTRIES)
                lending_break(lending);
        last_tag = lending->session->last_tag =
                MAX(lending->session->last_tag, lending->lease.last_tag);
        first = job ? (uint32_t)job->id : (uint64_t)last_tag + 1;
        if (last_tag > before)
                history_add_loan(history, submitter->id, before + 1, (uint32_t)(first - 1));
        for (uint64_t tag = first; tag <= last_tag && tag - first < DIRECT_RING_ENTRIES; ++tag) {
                uint64_t id = (uint64_t)submitter->id << 32 | tag;

                if (!job_find(submitter->engine, id))
                        history_enter(history, id, history_hash(id), NULL)->state = JOB_DONE;
        }
}

/* ---- offering ---------------------------------------------------------------- */

/* Of many prepared jobs those that were fired last have a place. */
static bool lending_takes(const Session *session, const Prepared *prepared) {
        return HASH_COUNT(session->prepared) <= LEASE_TEMPLATES_MAX ||
               (prepared->last_tag && session->last_tag - prepared->last_tag < LEASE_TEMPLATES_MAX);
}

/* Those that are not leased are no obstacle: the worker gives the ring back when one is fired. */
static void lending_add_templates(Lending *lending) {
        Session *session = lending->session;
        const Prepared *prepared;

        if (HASH_COUNT(session->prepared) > LENDING_PREPARED_MAX)
                return;
        for (prepared = session->prepared; prepared; prepared = prepared->hh.next) {
                if (!lending_takes(session, prepared))
                        continue;
                serving_pay(&session->serving, 1);
                (void)session_lease_prepared(session, prepared, &lending->lease);
        }
}

/* After a loan that was short, or an offer that came to nothing, the next one comes later. */
static void lending_rest(Lending *lending) {
        uint64_t now_ns = engine_now(lending->session->engine);

        if (lending->lent_ns && now_ns - lending->lent_ns >= LENDING_SHORT_NS)
                lending->wait_ns = LENDING_WAIT_NS;
        else if (lending->lent_ns)
                lending->wait_ns = MIN(2 * lending->wait_ns, LENDING_WAIT_MAX);
        lending->again_ns = now_ns + lending->wait_ns;
        lending->begun_ns = lending->lent_ns = 0;
        lending->n_fires = 0;
        lease_clear(&lending->lease);
}

static void lending_offer(Lending *lending) {
        const Executor *executor = NULL;

        if (lease_is_possible(&lending->session->submitter)) {
                lending_add_templates(lending);
                executor = lease_choose(&lending->lease);
        }
        if (!executor) {
                lending_rest(lending);
                return;
        }
        lending->state = LENDING_OFFERED;
        TAILQ_INSERT_TAIL(&lending->session->clients->lent, lending, link);
        direct_ring_lend(&lending->ring, true);
        lending_tell_lend(lending, executor->device);
}

static bool lending_is_plain(const Gpuq__V1__Fires *fires) {
        for (size_t i = 0; i < fires->n_fires; ++i)
                if (fires->fires[i]->n_slices || fires->fires[i]->n_patches)
                        return false;
        return true;
}

void lending_note_fires(Session *session, const Gpuq__V1__Fires *fires) {
        Lending *lending = session->ring.direct;

        if (lending->state != LENDING_IDLE)
                return;
        lending->n_fires =
                lending_is_plain(fires) ? lending->n_fires + (unsigned)fires->n_fires : 0;
        if (lending->n_fires < LENDING_AFTER || session->is_resuming || session->is_broken ||
            session->state != SESSION_OPEN || engine_now(session->engine) < lending->again_ns)
                return;
        lending_offer(lending);
}

/* ---- taking back --------------------------------------------------------------- */

/* Nobody reads it; the client is asked to stop. */
static void lending_withdraw(Lending *lending) {
        TAILQ_REMOVE(&lending->session->clients->lent, lending, link);
        direct_ring_lend(&lending->ring, false);
        lending->state = LENDING_LEFT;
        lending_rest(lending);
        lending_tell_recall(lending);
        if (lending->has_begun)
                lending_read(lending);
}

static void lending_recall(Lending *lending) {
        direct_ring_lend(&lending->ring, false);
        lending->state = LENDING_RETURNING;
        lease_recall(&lending->lease);
        if (lending->has_begun)
                lending_tell_recall(lending);
}

/* It was held up, or is to be closed. */
static void lending_go_on(Lending *lending) {
        Session *session = lending->session;

        if (lending->is_closing) {
                session_close(session);
                return;
        }
        if (session->state >= SESSION_CLOSING)
                return;
        session->engine->has_new_work = true;
        serving_wait(&session->clients->serving, &session->serving);
        session_flush_later(session);
}

static void lending_is_back(Lending *lending, uint32_t before) {
        bool was_asked = lending->state == LENDING_RETURNING;

        TAILQ_REMOVE(&lending->session->clients->lent, lending, link);
        direct_ring_lend(&lending->ring, false);
        lending_note_loan(lending, before);
        lending_rest(lending);
        if (!was_asked)
                lending_tell_recall(lending);
        lending->state = lending->has_begun ? LENDING_LEFT : LENDING_IDLE;
        lending_read(lending);
        lending_go_on(lending);
}

static void lending_on_returned(Lease *lease, Executor *executor, const LeaseTaken *jobs,
                                size_t n_jobs) {
        Lending *lending = lending_of(lease);
        uint32_t before = lending->session->last_tag;

        for (size_t i = 0; i < n_jobs; ++i)
                lending_adopt_one(lending, executor, jobs[i]);
        lending_is_back(lending, before);
}

static void lending_on_lost(Lease *lease, Executor *executor) {
        Lending *lending = lending_of(lease);
        uint32_t before = lending->session->last_tag;

        lending_adopt_lost(lending, executor);
        lending_is_back(lending, before);
}

static const LeaseOps lending_lease_ops = {
        .returned = lending_on_returned,
        .lost = lending_on_lost,
};

/* ---- the client's requests ------------------------------------------------------- */

const char *lending_note_request(Session *session, bool is_fire) {
        Lending *lending = session->ring.direct;

        if (lending->has_begun)
                return "the client sent a request while it fired jobs in its direct ring";
        if (is_fire)
                return NULL;
        lending->n_fires = 0;
        if (lending->state == LENDING_OFFERED)
                lending_withdraw(lending);
        return NULL;
}

const char *lending_begin(Session *session) {
        Lending *lending = session->ring.direct;

        if (!lending || lending->has_begun ||
            (lending->state != LENDING_OFFERED && lending->state != LENDING_LEFT))
                return "the client began to use a direct ring that it was not offered";
        lending->has_begun = true;
        if (lending->state == LENDING_LEFT) {
                lending_read(lending);
                return NULL;
        }
        lending->state = LENDING_BEGUN;
        lending->begun_ns = engine_now(session->engine);
        session_flush_later(session);
        return NULL;
}

const char *lending_end(Session *session) {
        Lending *lending = session->ring.direct;

        if (!lending || !lending->has_begun)
                return "the client ended to use a direct ring that it did not use";
        lending->has_begun = false;
        if (lending->state == LENDING_LENT) {
                lending_recall(lending);
                return NULL;
        }
        if (lending->state == LENDING_RETURNING)
                return NULL;
        if (lending->state == LENDING_BEGUN) {
                TAILQ_REMOVE(&session->clients->lent, lending, link);
                direct_ring_lend(&lending->ring, false);
                lending_rest(lending);
        }
        lending_read(lending);
        lending->state = LENDING_IDLE;
        return NULL;
}

bool lending_waits(const Session *session) {
        const Lending *lending = session->ring.direct;

        return lending->state == LENDING_RETURNING && !lending->has_begun;
}

void lending_turn(Session *session) {
        Lending *lending = session->ring.direct;
        Executor *executor;

        if (!lending || lending->state != LENDING_BEGUN || !TAILQ_EMPTY(&session->submitter.jobs))
                return;
        lending->lease.n_taken = lending->ring.position;
        lending->lease.last_tag = session->last_tag;
        executor = lease_choose(&lending->lease);
        if (!executor || lease_begin(&lending->lease, executor) < 0) {
                lending_withdraw(lending);
                return;
        }
        lending->state = LENDING_LENT;
        lending->lent_ns = engine_now(session->engine);
        session->engine->has_new_work = true;
}

/* ---- what others want ---------------------------------------------------------------- */

static bool lending_is_hopeless(const Lending *lending) {
        const Session *session = lending->session;

        return !lease_is_possible(&session->submitter) ||
               (lending->state == LENDING_BEGUN &&
                engine_now(session->engine) - lending->begun_ns > LENDING_BEGUN_NS);
}

static void lending_review(Lending *lending) {
        if (lending->state == LENDING_RETURNING)
                return;
        if (lending->state != LENDING_LENT && lending_is_hopeless(lending))
                lending_withdraw(lending);
        else if (lending->state == LENDING_LENT && !lease_holds(&lending->lease))
                lending_recall(lending);
}

void lendings_review(Clients *clients) {
        Lending *lending, *next;

        TAILQ_FOREACH_SAFE (lending, &clients->lent, link, next)
                lending_review(lending);
}

bool lending_is_out(const Session *session) {
        return session->ring.direct && session->ring.direct->lease.executor;
}

bool lending_fetch(Session *session) {
        Lending *lending = session->ring.direct;

        if (!lending)
                return false;
        if (lending->state == LENDING_OFFERED || lending->state == LENDING_BEGUN)
                lending_withdraw(lending);
        if (lending->state == LENDING_LENT)
                lending_recall(lending);
        return lending->state == LENDING_RETURNING;
}

bool lending_close_later(Session *session) {
        if (!lending_is_out(session))
                return false;
        session->ring.direct->is_closing = true;
        return lending_fetch(session);
}

bool lending_is_closing(const Session *session) {
        return session->ring.direct && session->ring.direct->is_closing;
}
