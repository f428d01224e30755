/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receive
 */

#include "receive.h"

#include <stdio.h>
#include <string.h>

#include "resume.h"

static void client_fail_to_send(gpuq_client *client) {
        char text[128];

        snprintf(text, sizeof(text), "cannot send to gpuqd: %s", strerror(client->send_errno));
        client_fail(client, GPUQ_E_SYSTEM, text);
}

static void client_fail_protocol(gpuq_client *client) {
        char text[128];

        snprintf(text, sizeof(text), "protocol error: gpuqd sent %s", wire_problem(client->wire));
        client_fail(client, GPUQ_E_PROTOCOL, text);
}

static void receive_problem(gpuq_client *client, int r) {
        bool ended = (r == WIRE_E_CLOSED || r == WIRE_E_PROTOCOL) && wire_has_ended(client->wire);

        if (ended && client->send_errno)
                client_fail_to_send(client);
        else if (ended && resume_lost(client))
                return;
        else if (r == WIRE_E_PROTOCOL)
                client_fail_protocol(client);
        else if (r == WIRE_E_CLOSED)
                client_fail(client, GPUQ_E_CLOSED, "gpuqd closed the connection");
        else if (r < 0)
                client_fail(client, GPUQ_E_CLOSED, strerror(-r));
}

/* @r: of receiving. */
static void receive_frames(gpuq_client *client, int r) {
        WireFrame frame;

        client->lead.n_turns++;
        client->n_unread = 0;
        if (r != 0) {
                receive_problem(client, r);
                return;
        }

        while (client->error == 0) {
                r = wire_next(client->wire, &frame);
                if (r != 0) {
                        receive_problem(client, r);
                        return;
                }

                client->events->frame(client, &frame);
        }
}

void client_receive(gpuq_client *client) {
        if (client->wire)
                receive_frames(client, wire_receive(client->wire));
        else
                resume_turn(client);
}

void client_look(gpuq_client *client) {
        receive_frames(client, wire_look(client->wire));
}
