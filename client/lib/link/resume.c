/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resume
 *
 * The keeper owns the listening socket, which therefore outlives the supervisor. Usually
 * connecting succeeds at once, and the reply comes from the next supervisor. If no process listens
 * any more, the daemon has ended and waiting is useless.
 */

#include "resume.h"

#include <stdio.h>
#include <string.h>

#include "connect.h"
#include "direct.h"
#include "error.h"
#include "ringing.h"

/* More than gpuqd takes at worst: 15 s until workers have ended, 20 s until clients are let in without devices. */
#define RESUME_PATIENCE_S INT64_C(45)
#define RESUME_DELAY_US                                                                            \
        INT64_C(10000) /* before the third try; twice as long before each one after it */
#define RESUME_DELAY_MAX INT64_C(500000)
#define RESUME_LOST      "gpuqd closed the connection"

int resume_allow(gpuq_client *client, const char *path) {
        client->resume.path = strdup(path);
        if (!client->resume.path)
                return error_memory();

        client->resume.connected_us = client_now_us();
        return 0;
}

/* ---- time ------------------------------------------------------------------------ */

static int64_t resume_delay_us(const Resume *resume) {
        unsigned n = resume->n_tries;

        return n < 2 ? 0 : MIN(RESUME_DELAY_US << MIN(n - 2, 10u), RESUME_DELAY_MAX);
}

/* ---- giving up ------------------------------------------------------------------- */

static void resume_give_up(gpuq_client *client, const char *why) {
        char text[256];

        snprintf(text, sizeof(text), RESUME_LOST ", and this session could not reconnect: %s", why);
        client_fail(client, GPUQ_E_CLOSED, text);
}

static void resume_give_up_late(gpuq_client *client) {
        char why[64];

        snprintf(why, sizeof(why), "no answer within %d s", (int)RESUME_PATIENCE_S);
        resume_give_up(client, why);
}

/* ---- connecting ------------------------------------------------------------------- */

/* Errors of a connection that is refused for now, or of a process that is out of a resource for
 * now. */
static bool resume_may_pass(int r) {
        return r == -EAGAIN || r == -EINTR || r == -EMFILE || r == -ENFILE || r == -ENOMEM ||
               r == -ENOBUFS;
}

static void resume_later(gpuq_client *client) {
        Resume *resume = &client->resume;
        int64_t now_us = client_now_us();

        if (now_us >= resume->until_us) {
                resume_give_up_late(client);
                return;
        }

        resume->state = RESUME_LATER;
        resume->due_us = MIN(now_us + resume_delay_us(resume), resume->until_us);
        loop_set_timer(&client->loop, resume->due_us);
}

static void resume_drop_wire(gpuq_client *client) {
        loop_unwatch(&client->loop, client->wire);
        client->wire = wire_free(client->wire);
        client->deaf = true;
}

/* Return: 0, or a negative errno. */
static int resume_say_hello(gpuq_client *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;
        char name[CONNECT_NAME_MAX + 1];

        connect_fill_hello(&hello, name);
        hello.resume = client->session;
        client_fill_request(client, GPUQ__V1__REQUEST__BODY_HELLO, &hello, &request);
        client->serial = client->resume.serial = request.serial;
        return wire_queue(client->wire, &request.base, -1);
}

/* Return: 0, or a negative errno; @fd is consumed always. */
static int resume_take(gpuq_client *client, int fd) {
        int r;

        r = client_new_wire(fd, &client->wire);
        if (r < 0)
                return r;

        r = resume_say_hello(client);
        if (r == 0)
                r = loop_watch(&client->loop, client->wire);
        if (r < 0) {
                client->wire = wire_free(client->wire);
                return r;
        }

        client->deaf = false;
        client->resume.state = RESUME_HELLO;
        client->resume.due_us = client->resume.until_us;
        loop_set_timer(&client->loop, client->resume.due_us);
        client_flush(client);
        return 0;
}

static void resume_try(gpuq_client *client) {
        int fd, r;

        client->resume.n_tries++;
        r = connect_open(client->resume.path, 0, &fd);
        if (r == 0)
                r = resume_take(client, fd);
        if (r == 0)
                return;

        if (resume_may_pass(r))
                resume_later(client);
        else
                resume_give_up(client, strerror(-r));
}

bool resume_lost(gpuq_client *client) {
        Resume *resume = &client->resume;

        if (client->error != 0 || !resume->path || client_forked(client))
                return false;

        if (resume->state == RESUME_CONNECTED) {
                if (loop_make_timer(&client->loop) < 0)
                        return false;
                resume->n_tries = 0;
                resume->n_pending = 0;
                resume->lost_us = client_now_us();
                resume->until_us = resume->lost_us + RESUME_PATIENCE_S * 1000000;
        }

        direct_lost(client);
        resume_drop_wire(client);
        if (resume->n_tries == 0)
                resume_try(client);
        else
                resume_later(client);
        return true;
}

void resume_turn(gpuq_client *client) {
        int64_t now_us = client_now_us();

        if (client->error != 0 || client->resume.state == RESUME_CONNECTED ||
            now_us < client->resume.due_us)
                return;

        client->lead.n_turns++;
        if (now_us >= client->resume.until_us)
                resume_give_up_late(client);
        else
                resume_try(client);
}

/* ---- connected again ----------------------------------------------------------------- */

static bool resume_is_ours(const gpuq_client *client, const Gpuq__V1__Reply *reply) {
        return reply->body_case == GPUQ__V1__REPLY__BODY_WELCOME && reply->welcome->resumed &&
               reply->welcome->session == client->session &&
               reply->welcome->version == CONNECT_VERSION;
}

void resume_answered(gpuq_client *client, const Gpuq__V1__Reply *reply) {
        if (reply->body_case == GPUQ__V1__REPLY__BODY_ERROR) {
                client_fail(client, error_from_code(reply->error->code), reply->error->text);
                return;
        }
        if (!resume_is_ours(client, reply)) {
                client_fail(client, GPUQ_E_SHUTDOWN,
                            "gpuqd was restarted and no longer knows this session; connect and "
                            "submit again");
                return;
        }

        client->resume.state = RESUME_CONNECTED;
        client->resume.connected_us = client_now_us();
        loop_set_timer(&client->loop, 0);
        wire_set_frame_max(client->wire, WIRE_FRAME_MAX);
        client_set_spin(client, reply->welcome->poll_us);
        ringing_init(client, reply->welcome);
        if (client->events->resumed(client) < 0)
                client_fail(
                        client, GPUQ_E_SYSTEM,
                        "this process ran out of memory while it reconnected to a restarted gpuqd");
        direct_init(client, reply->welcome);
        client_flush(client);
}
