/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call
 */

#include "call.h"

#include "error.h"
#include "wait.h"

#define CALL_ROOM_BYTES (4u << 20) /* with more bytes to be sent, the daemon does not respond */
#define CALL_ROOM_MS    10000

static void call_free(Call *call) {
        reply_freep(&call->reply);
        closep(&call->fd);
        free(call);
}

static int call_pack(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                     Call **ret_call) {
        Gpuq__V1__Request request;
        size_t n_request;
        Call *call;

        client_fill_request(client, body, message, &request);
        n_request = gpuq__v1__request__get_packed_size(&request);
        call = calloc(1, sizeof(*call) + n_request);
        if (!call)
                return error_memory();

        call->fd = -1;
        call->serial = request.serial;
        call->n_request = n_request;
        gpuq__v1__request__pack(&request, call->request);
        *ret_call = call;
        return 0;
}

static int call_new(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
                    Call **ret_call) {
        Call *call;
        int r;

        r = client_make_room(client, CALL_ROOM_BYTES, CALL_ROOM_MS);
        if (r < 0)
                return r;
        r = call_pack(client, body, message, &call);
        if (r < 0)
                return r;

        r = client_say(client, call->request, call->n_request);
        if (r < 0) {
                free(call);
                return r;
        }

        client->serial = call->serial;
        TAILQ_INSERT_TAIL(&client->calls, call, calls);
        client_flush(client);
        *ret_call = call;
        return 0;
}

static bool call_done(gpuq_client *client, void *userdata) {
        const Call *call = userdata;

        return call->done;
}

static int call_wait(gpuq_client *client, Call *call, int64_t deadline_us) {
        int r;

        call->waiting = true;
        r = client_wait(client, call_done, call, deadline_us, false);
        call->waiting = false;
        if (r == GPUQ_E_AGAIN)
                return r;

        return call->reply ? 0 : client_error(client);
}

/* Return: 0 if it is what the caller expects. */
static int call_check(gpuq_client *client, Call *call, Gpuq__V1__Reply__BodyCase expected,
                      bool with_fd) {
        const Gpuq__V1__Reply *reply = call->reply;

        if (reply->body_case == GPUQ__V1__REPLY__BODY_ERROR)
                return error_set(error_from_code(reply->error->code), "%s", reply->error->text);

        if (reply->body_case != expected || (call->fd >= 0) > with_fd) {
                client_fail(
                        client, GPUQ_E_PROTOCOL,
                        "protocol error: gpuqd answered a request with the reply to another one");
                return client_error(client);
        }
        return 0;
}

int call_run(gpuq_client *client, Gpuq__V1__Request__BodyCase body, void *message,
             Gpuq__V1__Reply__BodyCase expected, int64_t deadline_us, Gpuq__V1__Reply **ret_reply,
             int *ret_fd) {
        Call *call;
        int r;

        r = call_new(client, body, message, &call);
        if (r < 0)
                return r;

        r = call_wait(client, call, deadline_us);
        TAILQ_REMOVE(&client->calls, call, calls);
        if (r == 0)
                r = call_check(client, call, expected, ret_fd != NULL);
        if (r == 0) {
                *ret_reply = TAKE_PTR(call->reply);
                if (ret_fd)
                        *ret_fd = TAKE_FD(call->fd);
        }

        call_free(call);
        return r;
}

/* A call that an earlier gpuq_wait_id() left behind after its timeout. */
static Call *call_find_left(gpuq_client *client, uint64_t id) {
        Call *call;

        TAILQ_FOREACH (call, &client->calls, calls)
                if (call->id == id && !call->waiting)
                        return call;

        return NULL;
}

int call_wait_id(gpuq_client *client, uint64_t id, int64_t deadline_us,
                 Gpuq__V1__Reply **ret_reply) {
        Gpuq__V1__Wait wait = GPUQ__V1__WAIT__INIT;
        Call *call = call_find_left(client, id);
        int r;

        if (!call) {
                wait.id = id;
                r = call_new(client, GPUQ__V1__REQUEST__BODY_WAIT, &wait, &call);
                if (r < 0)
                        return r;
                call->id = id;
        }

        r = call_wait(client, call, deadline_us);
        if (r == GPUQ_E_AGAIN)
                return r; /* the call stays */

        TAILQ_REMOVE(&client->calls, call, calls);
        if (r == 0)
                r = call_check(client, call, GPUQ__V1__REPLY__BODY_COMPLETIONS, false);
        if (r == 0)
                *ret_reply = TAKE_PTR(call->reply);

        call_free(call);
        return r;
}

void calls_end(gpuq_client *client) {
        Call *call;

        TAILQ_FOREACH (call, &client->calls, calls)
                call->done = true;
}

void calls_free(gpuq_client *client) {
        Call *call;

        while ((call = TAILQ_FIRST(&client->calls))) {
                TAILQ_REMOVE(&client->calls, call, calls);
                call_free(call);
        }
}

bool calls_take(gpuq_client *client, Gpuq__V1__Reply *reply, int fd) {
        Call *call;

        TAILQ_FOREACH (call, &client->calls, calls) {
                if (call->serial != reply->serial || call->done)
                        continue;

                call->reply = reply;
                call->fd = fd;
                call->done = true;
                return true;
        }

        return false;
}
