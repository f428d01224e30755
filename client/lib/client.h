/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_CLIENT_H
#define GPUQ_LIB_CLIENT_H

/*
 * Client
 *
 * One connection and everything that hangs on it. One mutex guards it all. Of
 * the threads that wait, one reads the socket, the leader, and the others follow
 * on a condition; when the leader has what it waited for, a follower takes over.
 *
 * The file that owns an object (arena.c, buffer.c, module.c, job.c, …) takes the
 * lock with client_enter() in its public functions; its other functions are
 * called with the lock held.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uthash.h>

#include <gpuq.h>

#include "proto/gpuq.pb-c.h"
#include "proto/wire.h"

#include "resume.h"
#include "ringing.h"
#include "spin.h"
#include "util/bump.h"
#include "util/macro.h"
#include "util/pool.h"

#define CLIENT_FOREVER INT64_MAX
#define CLIENT_NOW     0

typedef struct Arena Arena;
typedef struct Call Call;
typedef struct Upload Upload;
typedef struct Words Words;

struct gpuq_client {
        unsigned refs;        /* atomic: the handle, each object made from it, each call inside */
        unsigned generation;  /* whose process this is, see generation.h; never changes */
        pthread_mutex_t lock; /* of all below */
        pthread_cond_t cond;  /* the leader left, or something came in; clock is CLOCK_MONOTONIC */

        Wire *wire;    /* NULL: there is no socket, see resume.h */
        int wake_fd;   /* eventfd: the leader shall look at the output, or leave */
        int epoll_fd;  /* what gpuq_client_fd() gives, see loop.h; -1 until asked for */
        int notify_fd; /* eventfd: callbacks wait for a dispatching thread */

        Resume resume;
        TAILQ_ENTRY(gpuq_client) siblings; /* of this process, see siblings.h */
        bool is_sibling;                   /* in that list */
        uint32_t session;
        unsigned n_devices;
        uint32_t serial; /* of the last request */
        uint32_t tag;    /* of the last job */
        uint32_t n_seen; /* completions that were read */
        Bump *bump;      /* of the completions that are being read */

        int error;        /* 0, or why the connection ended */
        char *error_text; /* of the same; NULL: out of memory then */

        TAILQ_HEAD(, Call) calls;         /* requests that wait for their reply */
        gpuq_job *jobs;                   /* submitted and not ended, by tag */
        Pool kept;                        /* of their packed bytes, see kept.h */
        TAILQ_HEAD(, gpuq_job) callbacks; /* ended, callback not run yet */
        TAILQ_HEAD(, gpuq_prepared) prepared;
        TAILQ_HEAD(, gpuq_module) modules;
        TAILQ_HEAD(, Upload) uploads; /* images that no module has yet */
        TAILQ_HEAD(, Arena) arenas;
        TAILQ_HEAD(, Arena) spares; /* arenas without buffers, see spare.h */
        unsigned n_spares;
        uint64_t n_spare_bytes;
        int64_t spares_due_us; /* when the first of them is to go; 0: there is none */
        pthread_mutex_t
                arena_lock; /* one thread at a time makes or opens an arena; before `lock` */

        uint64_t n_turns;     /* how often something came in or went out */
        uint64_t n_ended;     /* jobs */
        unsigned n_followers; /* threads on the condition */
        unsigned n_unread;    /* jobs submitted since the socket was last read */
        unsigned n_open;      /* jobs submitted and not known to be done */
        unsigned n_waits;     /* for jobs, up to WORD_AFTER */
        Spin spin;            /* of the leader */
        Ringing ringing;      /* of this connection */
        Words *words;         /* NULL: not made */

        bool prompted;    /* notify_fd tells of the ring */
        bool leading;     /* some thread polls the socket */
        bool leading_out; /* it also polls for room to write */
        bool epolling_out;
        int send_errno; /* why that is, if it was not the daemon's doing */
        bool deaf; /* the daemon takes no more bytes; what it said last may still be there to read */
        bool freed; /* the handle is gone */
};

typedef enum ClientFlags {
        CLIENT_CALLBACKS = 1 << 0,     /* this call may run them */
        CLIENT_INTERRUPTIBLE = 1 << 1, /* a signal handler ends the wait */
} ClientFlags;

typedef bool (*ClientDone)(gpuq_client *client, void *userdata);

/** client_new() - take a connected, non-blocking socket. Return: 0, or GPUQ_E_SYSTEM; @fd is consumed always. */
int client_new(int fd, gpuq_client **ret_client);
/** client_new_wire() - the same socket as the library's end of frames. Return: 0, or -ENOMEM; @fd is consumed always. */
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
/** client_enter_open() - the same, for what needs the daemon. Return: 0, or why it is not there. */
int client_enter_open(gpuq_client *client);
/** client_leave() - give both back. Return: @r, to end a function with. */
int client_leave(gpuq_client *client, int r);
/** client_error() - set this thread's error to why the connection ended. Return: that error. */
int client_error(gpuq_client *client);

/** client_set_spin() - how long one that waits may look, as the daemon told. */
void client_set_spin(gpuq_client *client, uint32_t poll_us);

/** client_is_connected() - no: what is to be said is only noted by whoever says it, until retell(). */
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
 * Without a connection it is dropped: nobody but its caller knows whether it would still be
 * said. Return: 0, or a GPUQ_E_.
 */
int client_send(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                uint32_t *ret_serial);
/** client_flush() - write what the socket takes; the rest is the leader's, if there is one. */
void client_flush(gpuq_client *client);
/** client_make_room() - wait, bounded, until at most @n_bytes wait to be sent. Return: 0, GPUQ_E_AGAIN, … */
int client_make_room(gpuq_client *client, size_t n_bytes, int timeout_ms);

/**
 * client_wait() - read and write until @done, until the deadline, or until the connection ends
 * @deadline_us: of client_now_us(); CLIENT_NOW: one look
 *
 * Gives up the lock while it waits. Return: 0; GPUQ_E_AGAIN (also after a signal,
 * if interruptible); or why the connection ended. No error text is set.
 */
int client_wait(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                ClientFlags flags);
/**
 * client_wait_word() - the same for what a completion word may tell first
 * @word: looked at before it sleeps; @done shall see it too. NULL: there is none
 */
int client_wait_word(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                     ClientFlags flags, const uint32_t *word, uint32_t value);
/** client_arm() - unless somebody leads: whoever polls gpuq_client_fd() shall learn of what comes by the ring. */
void client_arm(gpuq_client *client);
/** client_wake() - all who wait look again, the leader too: something changed that no message tells. */
void client_wake(gpuq_client *client);
/** client_now_ns() - CLOCK_MONOTONIC. */
uint64_t client_now_ns(void);
/** client_now_us() - the same in microseconds. */
int64_t client_now_us(void);
/** client_deadline_us() - @timeout_ms from now; -1: CLIENT_FOREVER, 0: CLIENT_NOW. */
int64_t client_deadline_us(int timeout_ms);

/** client_receive() - read once what the socket has, and the ring, and act on it. */
void client_receive(gpuq_client *client);
/** client_look() - the same for the ring alone, without a system call. */
void client_look(gpuq_client *client);
/** client_fail() - end the connection, calls and jobs, with this error; the first one counts. */
void client_fail(gpuq_client *client, int error, const char *text);
/** client_run_callbacks() - of all ended jobs; gives up the lock while each runs. */
void client_run_callbacks(gpuq_client *client);

#endif
