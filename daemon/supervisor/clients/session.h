/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SESSION_H
#define GPUQ_SUPERVISOR_SESSION_H

/*
 * Session
 *
 * One connection: who is there by the kernel's word, its arenas, modules and
 * jobs, and what waits to be told to it. Its requests are decoded in request.c
 * and submit.c; protobuf goes no further than these.
 *
 *     HELLO --> OPEN --> CLOSING --> freed
 *       +---------+---------^
 *
 * CLOSING: nothing is served any more; what is queued is flushed, then the peer
 * is given a moment to read it before the socket closes.
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
#include "util/list.h"
#include "util/table.h"

#define SESSION_VERSION_MIN 1u
#define SESSION_VERSION_MAX 1u
#define SESSION_UNREAD_MAX  (1u << 20)  /* bytes waiting for it before its requests wait too */
#define SESSION_ENDED_MAX   4096u       /* jobs to be told of before its requests wait for a turn */
#define SESSION_BUFFER_FREE (32u << 10) /* of buffers, not counted: `sessions` bounds them */
#define SESSION_LINGER_MS   1000u       /* to read the last words */
#define SESSION_REPLY_BYTES (1u << 20)  /* of completions in one message */
#define SESSION_RING_BYTES  (32u << 10) /* each way; all of it is memory in use once it went round */
#define SESSION_POLL_NS                                                                            \
        2000000ull /* its ring is looked at for so long after something came, or for poll_us */
#define SESSION_GROUPS_MAX 65536u
#define SESSION_CLIENT_MAX 64u

typedef struct DetachedAsk DetachedAsk;
typedef struct Clients Clients;

typedef enum SessionState {
        SESSION_HELLO,
        SESSION_OPEN,
        SESSION_CLOSING,
        SESSION_DEAD, /* its handles close */
} SessionState;

/* Who connects. */
typedef struct Peer {
        uid_t uid;
        gid_t gid;
        pid_t pid;
        bool is_admin;
} Peer;

/* An arena that a session has open. */
typedef struct Opening {
        uint64_t id;
        Arena *arena;
        UT_hash_handle hh; /* session->openings */
} Opening;

/* A Wait for somebody's job. */
typedef struct SessionWatch {
        JobWatch watch;
        Session *session;
        uint32_t serial;
        LIST_ENTRY(SessionWatch) link; /* session->watches */
} SessionWatch;

TAILQ_HEAD(SessionJobs, Job);

/* What is looked at in each turn of the loop instead of its socket. */
typedef struct SessionRing {
        TAILQ_ENTRY(Session) link; /* clients->polled */
        bool is_polled;            /* it is in that list */
        uint64_t received_ns;      /* when something last came by it; 0: in this turn */
        UserCharge charge;         /* of its memory */
} SessionRing;

/* Jobs that ended. */
typedef struct SessionEnds {
        struct SessionJobs list; /* to be reported */
        size_t n;
        LedgerTold told; /* ends that its client has not said to have read of */
} SessionEnds;

/* A request that names what another session has yet to say, or that came before anybody is served. */
typedef struct SessionDeferred {
        uint8_t *data; /* NULL: none */
        size_t n_data;
        uint64_t turn;
        TAILQ_ENTRY(Session) link; /* clients->deferring */
        bool is_second_try;        /* it is served: now or never */
        bool is_early;             /* it came before anybody is served */
} SessionDeferred;

struct Session {
        Submitter submitter; /* its user is NULL where it was turned away at the door */
        Engine *engine;
        Clients *clients;
        Peer peer;
        char client[SESSION_CLIENT_MAX + 1];

        LIST_ENTRY(Session) user_link;   /* user->sessions */
        TAILQ_ENTRY(Session) flush_link; /* clients->flushing */
        UT_hash_handle hh;               /* clients->sessions */

        SessionState state;
        Wire *wire;
        uv_poll_t poll;
        int events;            /* polled for */
        ProcessWatch *process; /* that opened it; NULL: it cannot be watched, or has exited */
        uint64_t closing_ns;

        Opening *openings;
        Prepared *prepared;
        uint32_t last_prepared;
        LIST_HEAD(, SessionWatch) watches;
        LIST_HEAD(, DetachedAsk) asks;
        SessionRing ring;
        SessionEnds ends;
        SessionDeferred deferred;
        uint32_t last_tag;
        UserCharge charge;
        UserCharge buffered; /* what its buffers were when last looked at */

        uint32_t record; /* in the ledger, or LEDGER_NONE */

        bool is_resuming : 1; /* it says again what it had, and is told nothing of ends yet */
        bool is_flushing : 1; /* in clients->flushing */
        bool is_broken : 1;   /* it does not read, or cannot be written to: close it */
        bool is_held_up : 1;  /* requests wait until it has read more */
        bool is_shut : 1;     /* CLOSING: all was written */
};

/** session_next_id() - for a new session, or a submitter of the daemon's own. */
uint32_t session_next_id(Clients *clients);
/** session_find() - Return: NULL: there is no session of that id. */
Session *session_find(const Clients *clients, uint32_t id);
/**
 * session_new() - on a connected socket, consumed on success
 * @refusal: NULL, or why it is turned away; consumed in any case
 *
 * Return: 0, or a negative errno.
 */
int session_new(Clients *clients, int fd, const Peer *peer, Failure *refusal);
/** session_rename() - it is what was session @id. Return: 0, or -ENOMEM. */
int session_rename(Session *session, uint32_t id);
/** session_close() - now, without a word: its jobs, arenas and modules go. */
void session_close(Session *session);
/** session_refuse() - say why, then close. Consumes @failure. */
void session_refuse(Session *session, Failure *failure);
/** session_defer() - keep this request until all that was sent before it has been read. Return: 0, or -ENOMEM. */
int session_defer(Session *session, const uint8_t *data, size_t n_data);
/** session_hold() - keep this request until anybody is served, and read no more. */
void session_hold(Session *session, const uint8_t *data, size_t n_data);
/** session_serve_deferred() - it has been: serve it, then what came behind it. */
void session_serve_deferred(Session *session);
/** session_poll_ring() - something may come by its ring now; without one nothing happens. */
void session_poll_ring(Session *session);
/** session_read_ring() - serve what is in its ring. Return: whether anything was. */
bool session_read_ring(Session *session);
/** session_unpoll_ring() - look at its ring no more, it rings. Return: false: something is in there. */
bool session_unpoll_ring(Session *session);
/** session_can_ring() - is a ring to be had? */
bool session_can_ring(const Session *session);
/** session_open_ring() - make one, and answer. */
void session_open_ring(Session *session, uint32_t serial);
/** session_begin_ring() - the client uses it from now on, and so do we. Return: NULL, or what is wrong with the protocol. */
const char *session_begin_ring(Session *session, uint32_t serial);
/** session_tick() - CLOSING ones do not linger for ever. */
void session_tick(Session *session, uint64_t now_ns);
/** session_flush_later() - in this turn of the loop. */
void session_flush_later(Session *session);
/** session_flush() - write what waits, completions first made to messages. */
void session_flush(Session *session);

/** session_reply() - queue one reply, a descriptor with it or -1. */
void session_reply(Session *session, Gpuq__V1__Reply *reply, int fd);
/** session_reply_begin() - the same, packed by the caller, of @n_max bytes at most; session_reply_end() follows. Return: false: nobody reads it. */
bool session_reply_begin(Session *session, size_t n_max, uint8_t **ret_payload);
/** session_reply_end() - it has so many. */
void session_reply_end(Session *session, size_t n_bytes);
/** session_reply_failure() - to the request @serial. */
void session_reply_failure(Session *session, uint32_t serial, const Failure *failure);
/** session_fail_request() - the same, and consumes @failure. */
void session_fail_request(Session *session, uint32_t serial, Failure *failure);

/** session_open_arena() - it refers to the arena from now on. Return: 0, or -ENOMEM. */
int session_open_arena(Session *session, Arena *arena);
/** session_close_arena() - no more; unknown ones are fine. */
void session_close_arena(Session *session, uint64_t id);
/** session_drop_arenas() - all of them, and those being made. */
void session_drop_arenas(Session *session);
/** session_reply_arena() - it is there, with its descriptor if the client can map it and has it not. */
void session_reply_arena(Session *session, uint32_t serial, const Arena *arena, bool has_it);
/** session_seen() - it has read so many completions, in all. */
void session_seen(Session *session, uint32_t n_seen);
/** session_submitter_ops() - how a session hears of its jobs, modules and arenas. */
extern const SubmitterOps session_submitter_ops;
/** session_of() - whose submitter it is. */
static inline Session *session_of(Submitter *submitter) {
        return container_of(submitter, Session, submitter);
}
/** session_on_arena_ready() - of session_submitter_ops. */
void session_on_arena_ready(Submitter *submitter, Arena *arena);
/** session_on_arena_failed() - the same. */
void session_on_arena_failed(Submitter *submitter, const Arena *arena, const Failure *failure);
/** session_report_end() - answer a Wait: this job ended. */
void session_report_end(Session *session, uint32_t serial, const Job *job);
/** session_watch() - be told when somebody's job ends. Return: 0, or -ENOMEM. */
int session_watch(Session *session, Job *job, uint32_t serial);
/** completion_fill() - a view of how a job ended; valid as long as the job. */
void completion_fill(Gpuq__V1__Completion *completion, Gpuq__V1__Error *error, const Job *job);
/** session_send_completions() - as the answer to @serial. */
void session_send_completions(Session *session, uint32_t serial, Gpuq__V1__Completion **list,
                              size_t n);
/** session_report_ended() - make messages of the jobs that ended, and free them. */
void session_report_ended(Session *session);
/** session_report_history() - answer a Wait that came after the end. */
void session_report_history(Session *session, uint32_t serial, const HistoryEntry *entry);

/** session_request() - one packed request. Return: NULL, or what is wrong with the protocol, a constant. */
const char *session_request(Session *session, const uint8_t *data, size_t n_data);
/** session_submit() - jobs of one message. Return: NULL, or what is wrong with the protocol, a constant. */
const char *session_submit(Session *session, const Gpuq__V1__Submit *submit);
/** submit_check_job() - what would make a job fail; its lists in @spec are valid until the next job. Return: NULL: nothing. */
Failure *submit_check_job(const Submitter *submitter, const Gpuq__V1__Job *job, JobSpec *spec);
/** session_prepare() - keep a job, and answer. */
void session_prepare(Session *session, uint32_t serial, const Gpuq__V1__Prepare *prepare);
/** session_unprepare() - no more; unknown ones are fine. */
void session_unprepare(Session *session, uint32_t id);
/** session_fire() - prepared jobs of one message. Return: as session_submit(). */
const char *session_fire(Session *session, const Gpuq__V1__Fires *fires);
/** session_report_queue() - answer QueueGet. */
void session_report_queue(Session *session, uint32_t serial, const Gpuq__V1__QueueGet *get);
/** session_report_status() - answer StatusGet. */
void session_report_status(Session *session, uint32_t serial);

#endif
