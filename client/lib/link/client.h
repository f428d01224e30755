/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_CLIENT_H
#define GPUQ_LINK_CLIENT_H

/*
 * Client
 *
 * What is behind a gpuq_client handle: the connection, the lock, and the state of the rooms above,
 * of which this room knows only the names. One mutex guards all of it.
 *
 * The file that owns an object (buffer.c, module.c, job.c, …) takes the lock with client_enter()
 * in its public functions; its other functions are called with the lock held.
 *
 * Functions of this room never call those of a room above. They report to them through
 * ClientEvents.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <gpuq.h>

#include "proto/direct_ring.h"
#include "proto/gpuq.pb-c.h"
#include "proto/wire.h"

#include "loop.h"
#include "spin.h"
#include "util/bump.h"
#include "util/macro.h"

#define CLIENT_FOREVER INT64_MAX
#define CLIENT_NOW     0

typedef struct Call Call;

/* Events for the rooms above, each reported with the lock held. */
typedef struct ClientEvents {
        /* A frame was read. Its descriptor, if it has one, is the callee's. */
        void (*frame)(gpuq_client *client, const WireFrame *frame);
        /* Another request than one about the direct ring is about to be queued. */
        void (*asking)(gpuq_client *client);
        /* The session goes on after a restart of the daemon: tell it what is unfinished. Return: 0, or a GPUQ_E_. */
        int (*resumed)(gpuq_client *client);
        /* The connection has ended, for the reason in client->error. */
        void (*failed)(gpuq_client *client);
        /* A public call is about to return. */
        void (*leaving)(gpuq_client *client);
        /* No reference is left: free what the other rooms own. Without the lock. */
        void (*freed)(gpuq_client *client);
} ClientEvents;

typedef enum ResumeState {
        RESUME_CONNECTED, /* nothing to do */
        RESUME_HELLO,     /* connected again, asked for the session */
        RESUME_LATER,     /* there is no socket; the next attempt is at due_us */
} ResumeState;

/* Reconnecting to a restarted daemon, see resume.h. */
typedef struct Resume {
        ResumeState state;
        char *path;       /* the daemon's path; NULL: the client ends with its socket */
        unsigned n_tries; /* since the connection was lost */
        int64_t until_us; /* patience */
        int64_t due_us;
        int64_t lost_us;      /* when the daemon was last lost; 0: all clients have reconnected */
        int64_t connected_us; /* since when the daemon knows this session */
        uint32_t serial;      /* of Hello */
        size_t n_pending;     /* bytes of jobs submitted meanwhile */
} Resume;

/* Rings in shared memory, see ringing.h. */
typedef struct Ringing {
        bool is_offered; /* the daemon has rings */
        bool is_asked;   /* for them */
} Ringing;

typedef enum DirectMode {
        DIRECT_NONE,
        DIRECT_ASKED, /* for a ring */
        DIRECT_IDLE,  /* there is one, which is not lent */
        DIRECT_LENT,  /* jobs are fired there */
} DirectMode;

#define DIRECT_OLD_MAX                                                                             \
        64u /* rings of earlier connections that stay mapped; then none is asked for */

/* A direct ring, see direct.h. */
typedef struct Direct {
        DirectMode mode;
        bool is_offered;  /* the daemon has them, and was not asked */
        unsigned n_fires; /* jobs fired by messages, until it is asked */
        uint32_t device;  /* index, on which its jobs run */
        DirectRing ring;
        uint32_t first; /* the oldest entry whose job has not ended; atomic */
        void **jobs;    /* of the entries; NULL: ended */
        DirectRing old[DIRECT_OLD_MAX];
        unsigned n_old;
} Direct;

/** direct_doze() - a thread will sleep until the bell. Return: false: a job has ended: do not. Without the lock. */
static inline bool direct_doze(Direct *direct) {
        return !direct->ring.shared ||
               direct_ring_doze(&direct->ring, __atomic_load_n(&direct->first, __ATOMIC_RELAXED));
}

/** direct_rouse() - it does not sleep any more. */
static inline void direct_rouse(Direct *direct) {
        if (direct->ring.shared)
                direct_ring_rouse(&direct->ring);
}

/*
 * One of the waiting threads, the leader, polls the socket. The others, the followers, wait for a
 * condition. When the leader has what it waited for, a follower becomes the leader. See wait.c.
 */
typedef struct Lead {
        pthread_cond_t cond;  /* the leader left, or something came in; clock is CLOCK_MONOTONIC */
        int wake_fd;          /* eventfd: the leader must check the output, or leave */
        unsigned n_followers; /* threads on the condition */
        uint64_t n_turns;     /* how often something came in or went out */
        Spin spin;            /* of the leader */
        bool is_taken;        /* some thread polls the socket */
        bool polls_out;       /* it also polls for room to write */
} Lead;

struct gpuq_client {
        unsigned refs;        /* atomic: the handle, each object made from it, each call inside */
        unsigned generation;  /* the process that it belongs to, see generation.h; never changes */
        pthread_mutex_t lock; /* of all below */
        const ClientEvents *events;
        TAILQ_ENTRY(gpuq_client) siblings; /* of this process, see siblings.h */
        bool is_sibling;                   /* in that list */
        bool freed;                        /* the handle is gone */

        uint32_t session;
        unsigned n_devices;
        int error;        /* 0, or why the connection ended, a GPUQ_E_ */
        char *error_text; /* the text of the error; NULL: there was no memory for it */

        Wire *wire;      /* NULL: there is no socket, see resume.h */
        int send_errno;  /* why sending failed, unless the daemon closed the connection */
        bool deaf;       /* the daemon reads no more; its last messages may still be unread */
        uint32_t serial; /* of the last request */
        Bump *bump;      /* memory for a message that is being read */
        Loop loop;
        Lead lead;
        Resume resume;
        Ringing ringing;
        Direct direct;
        TAILQ_HEAD(, Call) calls; /* requests that wait for their reply */
        unsigned n_unread;        /* jobs submitted since the socket was last read */

        struct Memory *memory;
        struct Modules *modules;
        struct Prepareds *prepareds;
        struct Jobs *jobs;
};

/**
 * client_init() - take a connected, non-blocking socket; all else in @client is zero or the caller's
 *
 * Return: 0, or GPUQ_E_SYSTEM; @fd is consumed always. The last client_unref() frees @client.
 */
int client_init(gpuq_client *client, int fd, const ClientEvents *events);
/** client_new_wire() - a socket as the library's end of frames. Return: 0, or -ENOMEM; @fd is consumed always. */
int client_new_wire(int fd, Wire **ret_wire);
/** client_ref() - Return: @client. */
gpuq_client *client_ref(gpuq_client *client);
/** client_unref() - without the lock, unless another reference is sure to be there. */
void client_unref(gpuq_client *client);

/** client_forked() - was the handle inherited through fork()? Sets no error. */
bool client_forked(const gpuq_client *client);
/**
 * client_enter() - take the lock and a reference
 *
 * Return: 0; without either GPUQ_E_FORKED, or GPUQ_E_INVALID if there is no client.
 */
int client_enter(gpuq_client *client);
/** client_enter_open() - as client_enter(), for calls that need the daemon. Return: 0, or why
 * the connection ended. */
int client_enter_open(gpuq_client *client);
/** client_leave() - give up lock and reference. Return: @r, for use in a return statement. */
int client_leave(gpuq_client *client, int r);
/** client_error() - set this thread's error to why the connection ended. Return: that error. */
int client_error(gpuq_client *client);

/** client_wants_out() - does something wait for room in the socket? */
bool client_wants_out(const gpuq_client *client);
/** client_close_fds() - all but the socket, and forget the path to the daemon. */
void client_close_fds(gpuq_client *client);
/** client_set_spin() - how long a waiting thread may spin, as the daemon says. */
void client_set_spin(gpuq_client *client, uint32_t poll_us);

/** client_is_connected() - false: requests are not sent; their callers keep them until the daemon is back. */
static inline bool client_is_connected(const gpuq_client *client) {
        return client->resume.state == RESUME_CONNECTED;
}
/** client_pending() - bytes that wait to be sent. */
size_t client_pending(const gpuq_client *client);
/** client_fill_request() - with the serial that is next; it counts as taken when client->serial is set to it. */
void client_fill_request(const gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                         Gpuq__V1__Request *ret_request);
/** client_say() - queue a request that is packed already. Return: 0, or a GPUQ_E_. */
int client_say(gpuq_client *client, const void *request, size_t n_bytes);
/** client_not_queued() - set this thread's error. @r: of wire_queue() or wire_begin(). Return: that error. */
int client_not_queued(int r);
/**
 * client_send() - queue a request; client_flush() sends it
 *
 * Without a connection it is dropped: only its caller knows whether it is still
 * wanted. Return: 0, or a GPUQ_E_.
 */
int client_send(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                uint32_t *ret_serial);
/** client_flush() - write what the socket takes; a leader, if there is one, sends the rest. */
void client_flush(gpuq_client *client);
/** client_fail() - end the connection, its calls and jobs with this error; a second error is
 * ignored. */
void client_fail(gpuq_client *client, int error, const char *text);

/** client_arm() - without a leading thread: make gpuq_client_fd() readable when the ring has input. */
void client_arm(gpuq_client *client);
/** client_let_others() - wake the followers. */
void client_let_others(gpuq_client *client);
/** client_wake() - wake all waiting threads, also the leader: something changed without a message. */
void client_wake(gpuq_client *client);

/** client_now_ns() - CLOCK_MONOTONIC. */
uint64_t client_now_ns(void);
/** client_now_us() - the same in microseconds. */
int64_t client_now_us(void);
/** client_deadline_us() - @timeout_ms from now; -1: CLIENT_FOREVER, 0: CLIENT_NOW. */
int64_t client_deadline_us(int timeout_ms);

#endif
