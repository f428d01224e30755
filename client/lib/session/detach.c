/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detached jobs: handing a job to the daemon, and fetching its outputs.
 */

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "call.h"
#include "checked.h"
#include "error.h"
#include "submit.h"

/* A fetched result with its texts and arrays, in one block. */
typedef struct Fetched {
        gpuq_fetched view; /* first: the pointer that the user holds is also ours */
        Gpuq__V1__Reply *reply;
        void *map; /* NULL: nothing was written */
        size_t n_map;
        gpuq_output *outputs;
} Fetched;

/* ---- detach ---------------------------------------------------------------------- */

/* The same request may reach the daemon twice, which recognizes it by this number. */
static uint64_t detach_key(void) {
        uint64_t key = 0;

        while (key == 0)
                if (getrandom(&key, sizeof(key), 0) < 0)
                        key = client_now_ns();
        return key;
}

static int detach_call(gpuq_job *job, const void *note, size_t n_note, uint64_t *ret_id) {
        Gpuq__V1__Detach detach = GPUQ__V1__DETACH__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        r = submit_message(job, &detach.job);
        if (r < 0)
                return r;
        detach.note = (ProtobufCBinaryData){n_note, (uint8_t *)note};
        detach.key = detach_key();
        r = call_run(job->client, GPUQ__V1__REQUEST__BODY_DETACH, &detach,
                     GPUQ__V1__REPLY__BODY_DETACHED, CLIENT_FOREVER, &reply, NULL);
        gpuq__v1__job__free_unpacked(detach.job, NULL);
        if (r < 0)
                return r;

        *ret_id = reply->detached->id;
        return 0;
}

int gpuq_job_detach(gpuq_job *job, const void *note, size_t n_note, uint64_t *ret_id) {
        gpuq_client *client = job ? job->client : NULL;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;
        job_ref(job);
        r = submit_check(client, job, 1);
        if (r == 0 && job->n_after)
                r = error_set(GPUQ_E_INVALID, "a detached job cannot depend on other jobs");
        if (r == 0 && n_note > GPUQ_NOTE_MAX)
                r = error_set(GPUQ_E_INVALID, "the note has %zu bytes, the limit is %u", n_note,
                              GPUQ_NOTE_MAX);
        if (r == 0)
                r = checked_prepare(job);
        if (r == 0)
                r = detach_call(job, note, n_note, ret_id);
        job_unref(job);
        return client_leave(client, r);
}

/* ---- fetch ----------------------------------------------------------------------- */

static int fetched_map(Fetched *fetched, int fd) {
        const Gpuq__V1__Fetched *reply = fetched->reply->fetched;
        struct stat st;
        void *map;

        if (!reply->arena)
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size < reply->size || !reply->size)
                return error_set(GPUQ_E_PROTOCOL,
                                 "protocol error: gpuqd sent a job's outputs without their memory");
        map = mmap(NULL, reply->size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return error_system("cannot map the outputs");

        fetched->map = map;
        fetched->n_map = reply->size;
        return 0;
}

static int fetched_outputs(Fetched *fetched) {
        const Gpuq__V1__Fetched *reply = fetched->reply->fetched;

        fetched->outputs = calloc(reply->n_outputs + 1, sizeof(*fetched->outputs));
        if (!fetched->outputs)
                return error_memory();
        for (size_t i = 0; i < reply->n_outputs; i++) {
                const Gpuq__V1__Output *output = reply->outputs[i];

                if (output->offset > fetched->n_map ||
                    output->length > fetched->n_map - output->offset)
                        return error_set(GPUQ_E_PROTOCOL, "protocol error: gpuqd sent an output "
                                                          "outside of the outputs' memory");
                fetched->outputs[i] = (gpuq_output){
                        .data = (const uint8_t *)fetched->map + output->offset,
                        .size = output->length,
                };
        }
        fetched->view.outputs = fetched->outputs;
        fetched->view.n_outputs = reply->n_outputs;
        return 0;
}

static int fetched_result(Fetched *fetched) {
        const Gpuq__V1__Fetched *reply = fetched->reply->fetched;
        const Gpuq__V1__Completion *completion = reply->completion;

        if (!completion)
                return error_set(GPUQ_E_PROTOCOL,
                                 "protocol error: gpuqd sent outputs without the job's result");
        fetched->view.result = (gpuq_result){
                .state = (gpuq_state)completion->state,
                .error = completion->state == GPUQ__V1__STATE__DONE ? 0
                         : completion->error ? error_from_code(completion->error->code)
                                             : GPUQ_E_INTERNAL,
                .text = completion->error ? completion->error->text : "",
                .output = completion->output,
                .waited_us = completion->waited_us,
                .ran_us = completion->ran_us,
                .gpu_ns = completion->gpu_ns,
                .device = (int)completion->device,
        };
        fetched->view.note = reply->note.data;
        fetched->view.n_note = reply->note.len;
        return 0;
}

void gpuq_fetched_free(gpuq_fetched *view) {
        Fetched *fetched = (Fetched *)view;

        if (!fetched)
                return;
        if (fetched->map)
                munmap(fetched->map, fetched->n_map);
        if (fetched->reply)
                gpuq__v1__reply__free_unpacked(fetched->reply, NULL);
        free(fetched->outputs);
        free(fetched);
}

static int fetch_call(gpuq_client *client, uint64_t id, Fetched *fetched) {
        Gpuq__V1__Fetch fetch = GPUQ__V1__FETCH__INIT;
        _cleanup_(closep) int fd = -1;
        int r;

        fetch.id = id;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_FETCH, &fetch, GPUQ__V1__REPLY__BODY_FETCHED,
                     CLIENT_FOREVER, &fetched->reply, &fd);
        if (r < 0)
                return r;

        r = fetched_map(fetched, fd);
        if (fetched->reply->fetched->arena) /* the mapping is enough */
                arena_close(client, fetched->reply->fetched->arena);
        if (r == 0)
                r = fetched_outputs(fetched);
        return r < 0 ? r : fetched_result(fetched);
}

int gpuq_fetch(gpuq_client *client, uint64_t id, gpuq_fetched **ret_fetched) {
        Fetched *fetched;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;
        fetched = calloc(1, sizeof(*fetched));
        if (!fetched)
                return client_leave(client, error_memory());

        r = fetch_call(client, id, fetched);
        if (r < 0)
                gpuq_fetched_free(&fetched->view);
        else
                *ret_fetched = &fetched->view;
        return client_leave(client, r);
}

/* After a restart the daemon is asked again, and may have deleted the job at the first request. */
static int discard_call(gpuq_client *client, uint64_t id) {
        Gpuq__V1__Discard discard = GPUQ__V1__DISCARD__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int64_t connected_us = client_is_connected(client) ? client->resume.connected_us : 0;
        int r;

        discard.id = id;
        r = call_run(client, GPUQ__V1__REQUEST__BODY_DISCARD, &discard,
                     GPUQ__V1__REPLY__BODY_DISCARDED, CLIENT_FOREVER, &reply, NULL);
        return r == GPUQ_E_NOT_FOUND && connected_us && client->resume.connected_us != connected_us
                       ? 0
                       : r;
}

int gpuq_discard(gpuq_client *client, uint64_t id) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, discard_call(client, id));
}
