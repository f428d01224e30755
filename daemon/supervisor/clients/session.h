/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SESSION_H
#define GPUQ_SUPERVISOR_SESSION_H

/*
 * Session
 *
 * One connection: the peer's identity from the kernel, its arenas, modules and jobs, and its queued
 * output. Its requests are decoded in request.c and submit.c; protobuf goes no further.
 *
 *     HELLO --> OPEN --> CLOSING --> freed
 *       +---------+---------^
 *
 * CLOSING: requests are not served any more. Queued output is sent, and the peer has a moment to
 * read it before the socket closes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <uv.h>

#include "proto/wire.h"
#include "jobs.h"
#include "base.h"
#include "policy.h"
#include "prepared.h"
#include "report_state.h"
#include "serving.h"
#include "transit.h"
#include "util/activity.h"
#include "util/list.h"
#include "util/table.h"

#define SESSION_VERSION_MIN 1u
#define SESSION_VERSION_MAX 1u
#define SESSION_UNREAD_MAX  (1u << 20)  /* bytes of unread output before its requests wait */
#define SESSION_ENDED_MAX   4096u       /* unreported ends before its requests wait for a turn */
#define SESSION_BUFFER_FREE (32u << 10) /* of buffers, not counted: `sessions` bounds them */
#define SESSION_LINGER_MS   1000u       /* to read the last messages */
#define SESSION_REFUSED_MAX 64u         /* refused connections that linger; others do not */
#define SESSION_REPLY_BYTES (1u << 20)  /* of completions in one message */
#define SESSION_RING_BYTES                                                                         \
        (32u << 10) /* per direction; all of it is memory in use once the ring has wrapped */
#define SESSION_POLL_NS                                                                            \
        2000000ull /* a ring is polled this long after its last request, or for poll_us */
#define SESSION_REPORTS_MAX 16u /* requests for reports that wait before its other requests do */
#define SESSION_CLIENT_MAX  LIMIT_CLIENT_NAME

typedef struct DetachedAsk DetachedAsk;
typedef struct Clients Clients;
typedef struct Lending Lending;
typedef struct SessionCancel SessionCancel;
typedef struct SlurmJob SlurmJob;

typedef enum SessionState {
        SESSION_HELLO,
        SESSION_OPEN,
        SESSION_CLOSING,
        SESSION_DEAD, /* its handles are closing */
} SessionState;

/* The client's identity. */
typedef struct Peer {
        uid_t uid;
        gid_t gid;
        pid_t pid;
        bool is_admin;
        unsigned n_groups;   /* that were read to decide that */
        SlurmJob *slurm_job; /* once the session is admitted; NULL: the client is in none */
} Peer;

/* An arena that a session has open. */
typedef struct Opening {
        uint64_t id;
        Arena *arena;
        UserCharge charge;
        UT_hash_handle hh; /* session->openings */
} Opening;

/* With its place in the hash table, and what malloc() adds. */
#define OPENING_BYTES (sizeof(Opening) + 48u)

/* A Wait for a job of any session. */
typedef struct SessionWatch {
        JobWatch watch;
        Session *session;
        uint32_t serial;
        UserCharge charge;
        LIST_ENTRY(SessionWatch) link; /* session->watches.list */
} SessionWatch;

/* At most LIMIT_WATCHES of each. */
typedef struct SessionWatches {
        LIST_HEAD(, SessionWatch) list;
        unsigned n;
} SessionWatches;

typedef struct SessionAsks {
        LIST_HEAD(, DetachedAsk) list;
        unsigned n;
} SessionAsks;

TAILQ_HEAD(SessionJobs, Job);

/* The ring, which the loop polls in each turn instead of the socket. */
typedef struct SessionRing {
        TAILQ_ENTRY(Session) link; /* clients->polled */
        bool is_polled;            /* in that list */
        uint64_t received_ns;      /* when a request last came by the ring; 0: in this turn */
        UserCharge charge;         /* for the ring's memory */
        Lending *direct;           /* its direct ring (lending.c); NULL: it has none */
} SessionRing;

/* Ends of jobs. */
typedef struct SessionEnds {
        struct SessionJobs list; /* not reported yet */
        size_t n;
        LedgerTold told; /* ends that the client has not acknowledged */
} SessionEnds;

/* Its output, for the end of a turn, or until the keeper has the arenas that the output names. */
typedef struct SessionFlush {
        TAILQ_ENTRY(Session) link; /* clients->flushing or clients->keeping */
        bool is_queued;            /* in one of them */
        bool is_waiting;           /* in clients->keeping */
        uint64_t position;         /* on the keeper link, that it waits for */
} SessionFlush;

/* A request that names jobs another session has yet to submit, or that came before serving started. */
typedef struct SessionDeferred {
        uint8_t *data; /* NULL: none */
        size_t n_data;
        uint64_t turn;
        TAILQ_ENTRY(Session) link; /* clients->deferring, until it is due */
        bool is_second_try;        /* being served for the last time */
        bool is_early;             /* it came before serving started */
        bool is_due;               /* it waits for a later turn: its user has no steps left */
} SessionDeferred;

/* What later turns go on with. */
typedef struct SessionUnfinished {
        SessionCancel *cancel; /* NULL: none; other requests wait */
        size_t n_served;       /* jobs of the next message that earlier turns served */
        bool may_leave_off;    /* the message that is served can be put back */
} SessionUnfinished;

struct Session {
        Submitter submitter; /* its user is NULL if the connection was refused */
        Engine *engine;
        Clients *clients;
        Peer peer;
        char client[SESSION_CLIENT_MAX + 1];

        LIST_ENTRY(Session) user_link; /* user->sessions */
        UT_hash_handle hh;             /* clients->sessions */

        SessionState state;
        Wire *wire;
        Transit *transit; /* NULL: it was never sent a descriptor */
        SessionFlush flush;
        uv_poll_t poll;
        int events;            /* polled for */
        ProcessWatch *process; /* the client's; NULL: it cannot be watched, or has exited */
        uint64_t closing_ns;

        Opening *openings;
        Prepared *prepared;
        uint32_t last_prepared;
        SessionWatches watches;
        SessionAsks asks;
        SessionRing ring;
        SessionEnds ends;
        SessionDeferred deferred;
        ServingMember serving;
        SessionReports reports;
        SessionUnfinished unfinished;
        uint32_t last_tag;
        UserCharge charge;
        UserCharge buffered; /* the charge of its buffers, as last updated */

        uint32_t record; /* in the ledger, or LEDGER_NONE */

        bool is_resuming : 1;  /* it resubmits its jobs and receives no ends yet */
        bool is_broken : 1;    /* it does not read, or writing failed: close it */
        bool is_held_up : 1;   /* requests wait until it has read more */
        bool is_shut : 1;      /* CLOSING: all output was sent */
        bool is_abandoned : 1; /* its process has exited, though others may have its socket */
};

bool lending_waits(const Session *session); /* below */

/** session_is_busy() - its other requests wait: it cancels all jobs, asked for too many reports, or its direct ring is on its way back. */
static inline bool session_is_busy(const Session *session) {
        return session->unfinished.cancel || (session->ring.direct && lending_waits(session)) ||
               session->reports.n_asks >= SESSION_REPORTS_MAX;
}

/** session_is_refused() - the connection was refused: it is CLOSING from its start. */
static inline bool session_is_refused(const Session *session) {
        return !session->submitter.user;
}

/** session_next_id() - for a new session, or a submitter of the daemon's own. */
uint32_t session_next_id(Clients *clients);
/** session_find() - Return: NULL: there is no session of that id. */
Session *session_find(const Clients *clients, uint32_t id);
/**
 * session_new() - on a connected socket, consumed on success
 * @refusal: NULL, or why the connection is refused; consumed in any case
 *
 * Return: 0, or a negative errno.
 */
int session_new(Clients *clients, int fd, const Peer *peer, Failure *refusal);
/** session_rename() - give it the id of the session that it resumes. Return: 0, or -ENOMEM. */
int session_rename(Session *session, uint32_t id);
/** session_close() - close at once without a message: its jobs, arenas and modules go. */
void session_close(Session *session);
/** session_refuse() - send the reason, then close. Consumes @failure. */
void session_refuse(Session *session, Failure *failure);
/** session_defer() - keep this request until all earlier input of other sessions was read. Return: 0, or -ENOMEM. */
int session_defer(Session *session, const uint8_t *data, size_t n_data);
/** session_hold() - keep this request until serving starts, and stop reading. */
void session_hold(Session *session, const uint8_t *data, size_t n_data);
/** session_serve_deferred() - serve the deferred request, then the requests behind it. */
void session_serve_deferred(Session *session);
/** session_serve_waiting() - it waited for its part of a turn: serve what it sent. */
void session_serve_waiting(Session *session);
/** session_poll_ring() - its ring may get requests now: poll it. Without a ring nothing happens. */
void session_poll_ring(Session *session);
/** session_read_ring() - serve the requests in its ring. Return: whether there were any. */
bool session_read_ring(Session *session);
/**
 * session_unpoll_ring() - stop polling its ring; the client rings the bell from now on
 *
 * Return: false: the ring is not empty.
 */
bool session_unpoll_ring(Session *session);
/** session_can_ring() - whether the session may get a ring. */
bool session_can_ring(const Session *session);
/** session_open_ring() - make a ring and answer. */
void session_open_ring(Session *session, uint32_t serial);
/**
 * session_begin_ring() - the client uses the ring from now on, and so does the session
 *
 * Return: NULL, or the protocol error.
 */
const char *session_begin_ring(Session *session, uint32_t serial);
/** session_tick() - sessions do not stay CLOSING, or without a hello, for ever; what the kernel refused is sent again. */
void session_tick(Session *session, uint64_t now_ns);
/** session_unqueue() - do not flush it. */
void session_unqueue(Session *session);
/** session_flush_later() - flush at the end of this turn of the loop. */
void session_flush_later(Session *session);
/** session_flush() - encode queued completions, and write all queued output. */
void session_flush(Session *session);

/**
 * session_check_room() - for a reply with a descriptor; call it before there is anything to undo
 *
 * Return: NULL, or why there is none.
 */
Failure *session_check_room(Session *session);
/** session_reply() - queue one reply with a descriptor, or -1. */
void session_reply(Session *session, Gpuq__V1__Reply *reply, int fd);
/**
 * session_reply_begin() - the same for a reply of at most @n_max bytes that the caller packs;
 * session_reply_end() follows
 * @serial: of the request, for the error that is its answer if there is no room for @fd
 *
 * Return: false: the reply is not wanted, or was the error.
 */
bool session_reply_begin(Session *session, uint32_t serial, int fd, size_t n_max,
                         uint8_t **ret_payload);
/** session_reply_end() - the packed reply has @n_bytes. */
void session_reply_end(Session *session, size_t n_bytes);
/** session_reply_failure() - reply to request @serial. */
void session_reply_failure(Session *session, uint32_t serial, const Failure *failure);
/** session_fail_request() - the same, and consumes @failure. */
void session_fail_request(Session *session, uint32_t serial, Failure *failure);

/** session_open_arena() - keep a reference to the arena. Return: 0, USER_E_QUOTA, or -ENOMEM. */
int session_open_arena(Session *session, Arena *arena);
/** session_opening_failure() - why session_open_arena() returned @r. */
Failure *session_opening_failure(const Session *session, int r);
/** session_close_arena() - release the arena; unknown ids are fine. */
void session_close_arena(Session *session, uint64_t id);
/** session_drop_arenas() - release all arenas, and those being created. */
void session_drop_arenas(Session *session);
/**
 * session_reply_arena() - the arena exists; sends the descriptor if the client can map it and does
 * not have it yet
 */
void session_reply_arena(Session *session, uint32_t serial, const Arena *arena, bool has_it);
/** session_name_arena() - what is sent from now on waits until the keeper has the arena, to which it may refer. */
void session_name_arena(Session *session, const Arena *arena);
/** session_seen() - the client has read @n_seen completions in all. */
void session_seen(Session *session, uint32_t n_seen);
/** session_submitter_ops - the results of its jobs, modules and arenas. */
extern const SubmitterOps session_submitter_ops;
/** session_of() - the session of a submitter. */
static inline Session *session_of(Submitter *submitter) {
        return container_of(submitter, Session, submitter);
}
/** session_begin() - what follows is done for this session. */
static inline void session_begin(const Session *session, ActivityKind kind) {
        activity_begin(kind, 0, session->peer.uid, session->submitter.id);
}
/** session_on_arena_ready() - of session_submitter_ops. */
void session_on_arena_ready(Submitter *submitter, Arena *arena);
/** session_on_arena_failed() - the same. */
void session_on_arena_failed(Submitter *submitter, const Arena *arena, const Failure *failure);
/** session_report_end() - answer a Wait: the job ended. */
void session_report_end(Session *session, uint32_t serial, const Job *job);
/** session_watch() - report the end of a job of any session. Return: 0, USER_E_QUOTA, or -ENOMEM. */
int session_watch(Session *session, Job *job, uint32_t serial);
/** completion_fill() - a view of a job's end, valid as long as the job is. */
void completion_fill(Gpuq__V1__Completion *completion, Gpuq__V1__Error *error, const Job *job);
/** session_send_completions() - send completions as the answer to @serial. */
void session_send_completions(Session *session, uint32_t serial, Gpuq__V1__Completion **list,
                              size_t n);
/** session_report_ended() - encode the queued ends of jobs, and free the jobs. */
void session_report_ended(Session *session);
/** session_report_history() - answer a Wait for a job that had already ended. */
void session_report_history(Session *session, uint32_t serial, const HistoryEntry *entry);

/** session_request() - serve one packed request. Return: NULL, or the protocol error, a constant. */
const char *session_request(Session *session, const uint8_t *data, size_t n_data);
/** session_submit() - submit the jobs of one message. Return: NULL, or the protocol error, a constant. */
const char *session_submit(Session *session, const Gpuq__V1__Submit *submit);
/**
 * submit_check_job() - check a job; the lists in @spec are valid until the next call
 *
 * Return: NULL, or why the job fails.
 */
Failure *submit_check_job(const Submitter *submitter, const Gpuq__V1__Job *job, JobSpec *spec);
/** session_prepare() - keep a prepared job and answer. */
void session_prepare(Session *session, uint32_t serial, const Gpuq__V1__Prepare *prepare);
/** session_unprepare() - drop a prepared job; unknown ids are fine. */
void session_unprepare(Session *session, uint32_t id);
/** session_fire() - submit the prepared jobs of one message. Return: as session_submit(). */
const char *session_fire(Session *session, const Gpuq__V1__Fires *fires);
/** session_fire_one() - submit a prepared job unchanged. Return: NULL, or the protocol error, a constant. */
const char *session_fire_one(Session *session, uint32_t prepared, uint32_t tag);
/** session_lease_prepared() - add a template of it to the lease. Return: false: it cannot be leased. */
bool session_lease_prepared(const Session *session, const Prepared *prepared, Lease *lease);
/** session_answer_reports() - answer the requests for reports that may be answered now. */
void session_answer_reports(Session *session);
/** session_drop_reports() - the session ends. */
void session_drop_reports(Session *session);
/** session_cancel_more() - go on with a request to cancel all jobs of its user. */
void session_cancel_more(Session *session);
/** session_drop_cancel() - the session ends. */
void session_drop_cancel(Session *session);

/* ---- its direct ring: lending.c ---- */

/** lending_open() - make the ring, and answer. */
void lending_open(Session *session, uint32_t serial);
/** lending_free() - the session ends; no lease of it is out. */
void lending_free(Session *session);
/** lending_can() - whether sessions may have rings. */
bool lending_can(const Session *session);

/** lending_note_fires() - the session, which has a ring, fired prepared jobs by a message: offer it the ring if it is time. */
void lending_note_fires(Session *session, const Gpuq__V1__Fires *fires);
/** lending_note_request() - it sent a request, maybe to fire jobs. Return: NULL, or the protocol error. */
const char *lending_note_request(Session *session, bool is_fire);
/** lending_begin() - the client uses the ring from now on. Return: NULL, or the protocol error. */
const char *lending_begin(Session *session);
/** lending_end() - the client does not use it any more. Return: NULL, or the protocol error. */
const char *lending_end(Session *session);
/** lending_waits() - it has a ring, and its other requests wait until the worker has given the ring back. */
bool lending_waits(const Session *session);
/** lending_turn() - at the end of a turn: its earlier jobs may have ended. */
void lending_turn(Session *session);

/** lendings_review() - once a turn: fetch those rings back that workers may not have any more. */
void lendings_review(Clients *clients);
/** lending_is_out() - a worker has the ring, so jobs of the session may be unknown. */
bool lending_is_out(const Session *session);
/** lending_fetch() - have it given back, if a worker has it. Return: whether it has. */
bool lending_fetch(Session *session);
/** lending_close_later() - the session is to be closed, as soon as the ring is back. Return: false: it may be closed now. */
bool lending_close_later(Session *session);
/** lending_is_closing() - lending_close_later() was true. */
bool lending_is_closing(const Session *session);

#endif
