/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drain: how an administrator drains and resumes a device.
 */

#include "call.h"
#include "error.h"

static int drain_call(gpuq_client *client, Gpuq__V1__Request__BodyCase what, void *body,
                      Gpuq__V1__Drained *ret_drained) {
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        r = call_run(client, what, body, GPUQ__V1__REPLY__BODY_DRAINED, CLIENT_FOREVER, &reply,
                     NULL);
        if (r < 0)
                return r;

        *ret_drained = *reply->drained; /* without its unknown fields, which nobody reads */
        return 0;
}

int gpuq_drain(gpuq_client *client, unsigned device, const char *reason) {
        Gpuq__V1__Drain drain = GPUQ__V1__DRAIN__INIT;
        Gpuq__V1__Drained drained;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        drain.device = device;
        drain.reason = reason ? (char *)reason : (char *)"";
        r = drain_call(client, GPUQ__V1__REQUEST__BODY_DRAIN, &drain, &drained);
        return client_leave(client, r < 0 ? r : (int)drained.running);
}

int gpuq_resume(gpuq_client *client, unsigned device) {
        Gpuq__V1__Resume resume = GPUQ__V1__RESUME__INIT;
        Gpuq__V1__Drained drained;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        resume.device = device;
        r = drain_call(client, GPUQ__V1__REQUEST__BODY_RESUME, &resume, &drained);
        return client_leave(client, r < 0 ? r : drained.changed);
}
