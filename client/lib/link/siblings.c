/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Siblings
 *
 * The lock of another client is only tried for. A thread that holds it serves that client itself.
 */

#include "siblings.h"

#include <string.h>

#include "receive.h"

#define SIBLINGS_ENDS_US 1000000 /* by then all sockets of a daemon that died are closed */

static pthread_mutex_t siblings_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t siblings_once = PTHREAD_ONCE_INIT;
static TAILQ_HEAD(, gpuq_client) siblings = TAILQ_HEAD_INITIALIZER(siblings);

/* A child has none: those that it inherited are its parent's. */
static void siblings_forget(void) {
        pthread_mutex_init(&siblings_lock, NULL);
        TAILQ_INIT(&siblings);
}

static void siblings_watch_forks(void) {
        pthread_atfork(NULL, NULL, siblings_forget);
}

void siblings_add(gpuq_client *client) {
        pthread_once(&siblings_once, siblings_watch_forks);
        pthread_mutex_lock(&siblings_lock);
        TAILQ_INSERT_TAIL(&siblings, client, siblings);
        client->is_sibling = true;
        pthread_mutex_unlock(&siblings_lock);
}

void siblings_remove(gpuq_client *client) {
        if (!client->is_sibling)
                return;

        pthread_mutex_lock(&siblings_lock);
        TAILQ_REMOVE(&siblings, client, siblings);
        client->is_sibling = false;
        pthread_mutex_unlock(&siblings_lock);
}

/* A client that seems connected may not have noticed that its daemon died. */
static bool siblings_is_back(const gpuq_client *client, int64_t lost_us) {
        if (client->lead.is_taken || client->error != 0)
                return true;

        return client_is_connected(client) && (client->resume.connected_us >= lost_us ||
                                               client_now_us() > lost_us + SIBLINGS_ENDS_US);
}

/* Return: whether it has not reconnected yet and no thread serves it. */
static bool siblings_visit_one(gpuq_client *other, int64_t lost_us) {
        bool is_back;

        if (pthread_mutex_trylock(&other->lock) != 0)
                return true;

        is_back = siblings_is_back(other, lost_us);
        if (!is_back) {
                client_receive(other);
                client_wake(other);
        }
        pthread_mutex_unlock(&other->lock);
        return !is_back;
}

bool siblings_visit(gpuq_client *client, int64_t lost_us) {
        gpuq_client *other;
        bool any = false;

        if (pthread_mutex_trylock(&siblings_lock) != 0)
                return true;

        TAILQ_FOREACH (other, &siblings, siblings)
                if (other != client && !client_forked(other) &&
                    strcmp(other->resume.path, client->resume.path) == 0)
                        any |= siblings_visit_one(other, lost_us);
        pthread_mutex_unlock(&siblings_lock);
        return any;
}
