/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_RESUME_H
#define GPUQ_LIB_RESUME_H

/*
 * Resume
 *
 * The daemon's supervisor may die and be started again. The client's socket ends
 * then without a last word, and the client connects again to the same path, asks
 * for its session, and says again what is unfinished (retell.h). Who waits goes on
 * waiting; what is asked or submitted meanwhile is only noted, and said then.
 *
 *     CONNECTED -> HELLO -> CONNECTED
 *              \   ^  |
 *               v  |  v
 *               LATER       -> the client fails, from HELLO and LATER
 *
 * There is no thread for it: whoever leads (client.h) does what is to be done, and
 * a user's event loop is told when that is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"

typedef struct gpuq_client gpuq_client;

typedef enum ResumeState {
        RESUME_CONNECTED, /* nothing to do */
        RESUME_HELLO,     /* connected again, asked for the session */
        RESUME_LATER,     /* there is no socket; another try at due_us */
} ResumeState;

typedef struct Resume {
        ResumeState state;
        char *path;       /* where the daemon is; NULL: the end of the socket is the client's */
        int timer_fd;     /* rings when resume_turn() is due; -1 until it is needed first */
        unsigned n_tries; /* since the connection was lost */
        int64_t until_us; /* patience */
        int64_t due_us;
        int64_t lost_us; /* when the daemon was lost last; 0: all clients of this process are back */
        int64_t connected_us; /* since then this session is known to the daemon */
        uint32_t serial;      /* of Hello */
        size_t n_pending;     /* bytes of jobs submitted meanwhile */
} Resume;

/** resume_init() - of a client that has never been connected. */
void resume_init(Resume *resume);
/** resume_finish() - free what it holds. */
void resume_finish(Resume *resume);
/** resume_allow() - the client has a session, to be resumed at @path. Return: 0, or GPUQ_E_SYSTEM. */
int resume_allow(gpuq_client *client, const char *path);

/** resume_lost() - the socket ended without a last word. Return: false: so does the client. */
bool resume_lost(gpuq_client *client);
/** resume_turn() - the timer rang, or somebody would read where there is no socket. */
void resume_turn(gpuq_client *client);
/** resume_answered() - the reply to its Hello came. */
void resume_answered(gpuq_client *client, const Gpuq__V1__Reply *reply);
/** resume_stop() - the client has failed: no more of it, and a user's event loop is to look. */
void resume_stop(gpuq_client *client);

#endif
