/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client in a user's own event loop: which descriptor to poll, and what to call then.
 */

#include <poll.h>

#include "error.h"
#include "job.h"
#include "wait.h"

static int client_open_loop(gpuq_client *client) {
        int r;

        r = loop_open(&client->loop, client->wire);
        if (r < 0)
                return r;

        if (!TAILQ_EMPTY(&client->jobs->callbacks))
                loop_notify(&client->loop);
        loop_poll_out(&client->loop, client->wire, client_wants_out(client));
        client_arm(client);
        return 0;
}

int gpuq_client_fd(gpuq_client *client) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        r = client->loop.epoll_fd >= 0 ? 0 : client_open_loop(client);
        return client_leave(client, r < 0 ? r : client->loop.epoll_fd);
}

int gpuq_client_events(gpuq_client *client) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, POLLIN | (client_wants_out(client) ? POLLOUT : 0));
}

static bool client_has_turned(gpuq_client *client, void *userdata) {
        jobs_run_callbacks(client);
        return client->lead.n_turns != *(uint64_t *)userdata;
}

int gpuq_dispatch(gpuq_client *client, int timeout_ms) {
        uint64_t n_turns, n_ended;
        bool had_callbacks;
        int r;

        r = client_enter(client);
        if (r < 0)
                return r;

        n_turns = client->lead.n_turns;
        n_ended = client->jobs->n_ended;
        had_callbacks = !TAILQ_EMPTY(&client->jobs->callbacks);
        client_flush(client);
        r = client_wait(client, client_has_turned, &n_turns,
                        had_callbacks ? CLIENT_NOW : client_deadline_us(timeout_ms), true);
        jobs_run_callbacks(client);

        n_ended = client->jobs->n_ended - n_ended;
        if (n_ended > 0 || r == GPUQ_E_AGAIN || r == 0)
                return client_leave(client, (int)MIN(n_ended, INT32_MAX));

        return client_leave(client, client_error(client));
}
