/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_CALL_H
#define GPUQ_LINK_CALL_H

/*
 * Call
 *
 * A request with a reply. gpuq_wait_id() may time out. Its call then stays, and the next
 * gpuq_wait_id() for the same job reuses it, so that repeated calls do not pile up requests in the
 * daemon.
 */

#include "client.h"

typedef struct Call {
        uint32_t serial;
        uint64_t id; /* of the job, if it is a Wait */
        TAILQ_ENTRY(Call) calls;
        Gpuq__V1__Reply *reply; /* NULL with done: the connection ended */
        int fd;                 /* that came with the reply, or -1 */
        bool done;
        bool waiting; /* a thread waits for it */
        size_t n_request;
        uint8_t request[]; /* packed; sent again after a restart of the daemon */
} Call;

/**
 * call_run() - send a request and wait for its reply; the lock is given up meanwhile
 *
 * @expected: what the reply must be, unless it is an error
 * @ret_fd:   the descriptor that came with it, the caller's; NULL: none is expected
 *
 * Return: 0; the daemon's error; GPUQ_E_AGAIN after the deadline; why the connection ended.
 * @ret_reply is the caller's.
 */
int call_run(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
             Gpuq__V1__Reply__BodyCase expected, int64_t deadline_us, Gpuq__V1__Reply **ret_reply,
             int *ret_fd);
/** call_wait_id() - a Wait for a job, taken over or new. As call_run(). */
int call_wait_id(gpuq_client *client, uint64_t id, int64_t deadline_us,
                 Gpuq__V1__Reply **ret_reply);

/** calls_end() - the connection ended; the waiting threads see that themselves. */
void calls_end(gpuq_client *client);
/** calls_free() - free the calls that no thread waits for. */
void calls_free(gpuq_client *client);
/** calls_take() - a reply arrived: take it and its descriptor if a call waits for it. */
bool calls_take(gpuq_client *client, Gpuq__V1__Reply *reply, int fd);

static inline void reply_freep(Gpuq__V1__Reply **reply) {
        if (*reply)
                gpuq__v1__reply__free_unpacked(*reply, NULL);
}

#endif
