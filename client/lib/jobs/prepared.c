/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared
 */

#include "prepared.h"

#include <string.h>

static void prepared_free_memory(gpuq_prepared *prepared) {
        free(prepared->buffers);
        free(prepared->modules);
        free(prepared->scalars);
        free(prepared->apart.pairs);
        free(prepared->now);
        free(prepared->slices);
        free(prepared->patches);
        free(prepared->values);
        free(prepared);
}

static void prepared_free(gpuq_prepared *prepared) {
        gpuq_client *client = prepared->client;

        for (size_t i = 0; i < prepared->n_buffers; i++)
                buffer_unref(prepared->buffers[i].buffer);
        for (size_t i = 0; i < prepared->n_modules; i++)
                module_unref(prepared->modules[i]);
        apart_forget(&prepared->apart, 0);
        kept_free(prepared->job);
        prepared_free_memory(prepared);
        client_unref(client);
}

gpuq_prepared *prepared_ref(gpuq_prepared *prepared) {
        prepared->refs++;
        return prepared;
}

static void prepared_untell(gpuq_prepared *prepared) {
        Gpuq__V1__Unprepare unprepare = GPUQ__V1__UNPREPARE__INIT;
        gpuq_client *client = prepared->client;

        if (prepared->id == 0)
                return;

        TAILQ_REMOVE(&client->prepareds->known, prepared, entries);
        unprepare.prepared = prepared->id;
        if (client->error == 0 &&
            client_send(client, GPUQ__V1__REQUEST__BODY_UNPREPARE, &unprepare, NULL) == 0)
                client_flush(client);
}

void prepared_unref(gpuq_prepared *prepared) {
        if (!prepared || --prepared->refs > 0)
                return;

        prepared_untell(prepared);
        prepared_free(prepared);
}

Gpuq__V1__Job *prepared_unpack(const gpuq_prepared *prepared) {
        return gpuq__v1__job__unpack(NULL, prepared->job->n_bytes, prepared->job->bytes);
}

/* In a child: buffers, modules and the jobs fired from it belong to the parent. */
static void prepared_free_forked(gpuq_prepared *prepared) {
        gpuq_client *client = prepared->client;

        if (--prepared->refs > 0)
                return;

        prepared_free_memory(prepared);
        client_unref(client);
}

void gpuq_prepared_free(gpuq_prepared *prepared) {
        gpuq_client *client;

        if (!prepared)
                return;
        client = prepared->client;
        if (client_forked(client)) {
                prepared_free_forked(prepared);
                return;
        }

        client_ref(client);
        pthread_mutex_lock(&client->lock);
        prepared_unref(prepared);
        client_leave(client, 0);
}
