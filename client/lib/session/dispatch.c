/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatch
 */

#include "dispatch.h"

#include "call.h"
#include "completions_scan.h"
#include "direct.h"
#include "error.h"
#include "job.h"
#include "resume.h"
#include "ringing.h"

static bool dispatch_completion(gpuq_client *client, const Gpuq__V1__Completion *completion) {
        uint32_t tag = (uint32_t)completion->id;
        gpuq_job *job;

        if (completion->id >> 32 != client->session || tag == 0 || tag > client->jobs->tag)
                return false;

        /* The job may have ended already: a restarted daemon does not know which completions
         * were read. */
        HASH_FIND(hh, client->jobs->submitted, &tag, sizeof(tag), job);
        return !job || job_complete(job, completion);
}

static void dispatch_completions(gpuq_client *client, const Gpuq__V1__Completions *completions) {
        client->jobs->n_seen += (uint32_t)completions->n_completions;
        for (size_t i = 0; i < completions->n_completions; i++)
                if (!dispatch_completion(client, completions->completions[i])) {
                        client_fail(client, GPUQ_E_PROTOCOL,
                                    "protocol error: gpuqd reported an invalid end of a job");
                        return;
                }
        ringing_consider(client, client->jobs->n_ended);
}

/* Messages that are not replies. */
static void dispatch_event(gpuq_client *client, const Gpuq__V1__Reply *reply) {
        if (direct_told(client, reply))
                return;
        switch (reply->body_case) {
                case GPUQ__V1__REPLY__BODY_COMPLETIONS:
                        dispatch_completions(client, reply->completions);
                        break;
                case GPUQ__V1__REPLY__BODY_ERROR:
                        client_fail(client, error_from_code(reply->error->code),
                                    reply->error->text);
                        break;
                default:
                        client_fail(client, GPUQ_E_PROTOCOL,
                                    "protocol error: gpuqd sent an unexpected message");
        }
}

/* Return: whether a call took reply and descriptor. */
static bool dispatch_reply(gpuq_client *client, Gpuq__V1__Reply *reply, int fd) {
        if (reply->body_case == GPUQ__V1__REPLY__BODY__NOT_SET) {
                client_fail(client, GPUQ_E_PROTOCOL,
                            "protocol error: gpuqd sent a reply without a body");
                return false;
        }
        if (reply->serial == 0) {
                dispatch_event(client, reply);
                return false;
        }
        if (!client_is_connected(client) && reply->serial == client->resume.serial) {
                resume_answered(client, reply);
                return false;
        }
        if (ringing_answered(client, reply, fd) || direct_answered(client, reply, fd))
                return false;

        /* Replies without a call: to a Cancel that was not waited for, to a request that was
         * sent again, or to a request whose thread timed out. */
        return calls_take(client, reply, fd);
}

/* Completions, which are most messages. Return: false: it is another message. */
static bool dispatch_ends(gpuq_client *client, const WireFrame *frame) {
        const Gpuq__V1__Reply *reply = NULL;

        if (frame->fd < 0)
                reply = completions_scan(client->bump, frame->data, frame->n_data);
        if (!reply)
                return false;

        dispatch_completions(client, reply->completions);
        bump_reset(client->bump);
        return true;
}

void dispatch_frame(gpuq_client *client, const WireFrame *frame) {
        Gpuq__V1__Reply *reply;

        if (dispatch_ends(client, frame))
                return;

        reply = gpuq__v1__reply__unpack(NULL, frame->n_data, frame->data);
        if (!reply) {
                client_fail(client, GPUQ_E_PROTOCOL,
                            "protocol error: gpuqd sent a frame that is not a message");
                if (frame->fd >= 0)
                        close(frame->fd);
                return;
        }

        if (dispatch_reply(client, reply, frame->fd))
                return;

        gpuq__v1__reply__free_unpacked(reply, NULL);
        if (frame->fd >= 0)
                close(frame->fd);
}
